/*
 * likwid_names.c - names of likwid's events, as the formulas of processors have them.
 */
#include <stdio.h>
#include <string.h>

#include "profile/import/likwid.h"

/* Events that the formulas call by perf's names. */
static const struct {
	const char *event, *name, *unit;
	double scale;
} events[] = {
	{ "INSTR_RETIRED_ANY", "instructions", "inst", 1.0 },
	{ "RETIRED_INSTRUCTIONS", "instructions", "inst", 1.0 },
	{ "INST_RETIRED", "instructions", "inst", 1.0 },
	{ "CPU_CLK_UNHALTED_CORE", "cycles", "cycle", 1.0 },
	{ "CPU_CLOCKS_UNHALTED", "cycles", "cycle", 1.0 },
	{ "CPU_CYCLES", "cycles", "cycle", 1.0 },
	{ "CAS_COUNT_RD", "uncore_imc/cas_count_read/", "byte", 64.0 },
	{ "CAS_COUNT_WR", "uncore_imc/cas_count_write/", "byte", 64.0 },
	/* client processors */
	{ "DRAM_READS", "uncore_imc/data_reads/", "byte", 64.0 },
	{ "DRAM_WRITES", "uncore_imc/data_writes/", "byte", 64.0 },
	{ "RETIRED_SSE_AVX_FLOPS_ALL", "fp_ret_sse_avx_ops.all", "", 1.0 },
};

double rfl_likwid__event(struct rfl_span event, char name[RFL_LIKWID_NAME_MAX], const char **unit)
{
	static const char *const groups[] = { "FP_ARITH_INST_RETIRED2_", "FP_ARITH_INST_RETIRED_" };

	*unit = "";
	for (size_t i = 0; i < RFL_ARRAY_LEN(events); i++) {
		if (!rfl_span_is(event, events[i].event))
			continue;
		(void)snprintf(name, RFL_LIKWID_NAME_MAX, "%s", events[i].name);
		*unit = events[i].unit;
		return events[i].scale;
	}
	rfl_span_copy(event, name, 96);
	for (size_t i = 0; i < RFL_ARRAY_LEN(groups); i++) {
		if (!rfl_span_starts(event, groups[i]))
			continue;
		for (char *c = name; *c; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c - 'A' + 'a');
		name[strlen(groups[i]) - 1] = '.';
		break;
	}
	return 1.0;
}
