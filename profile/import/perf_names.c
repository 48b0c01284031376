/*
 * perf_names.c - names and units of perf's events, as the formulas of processors have them.
 */
#include <stdio.h>
#include <string.h>

#include "profile/import/perf.h"

/* Other names of what the formulas call by one. */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{ "cpu-cycles", "cycles" },
	{ "cpu_clk_unhalted.thread", "cycles" },
	{ "cpu_clk_unhalted.core", "cycles" },
	{ "inst_retired.any", "instructions" },
	{ "task-clock-msecs", "task-clock" },
	{ "faults", "page-faults" },
	{ "cs", "context-switches" },
	{ "migrations", "cpu-migrations" },
	{ "unc_m_cas_count.rd", "uncore_imc/cas_count_read/" },
	{ "unc_m_cas_count.wr", "uncore_imc/cas_count_write/" },
	{ "uncore_imc/unc_m_cas_count.rd/", "uncore_imc/cas_count_read/" },
	{ "uncore_imc/unc_m_cas_count.wr/", "uncore_imc/cas_count_write/" },
	{ "umc_cas_cmd.rd", "amd_umc/umc_cas_cmd.rd/" },
	{ "umc_cas_cmd.wr", "amd_umc/umc_cas_cmd.wr/" },
	{ "amd_df/dram_channel_data_controller_0/", "dram_channel_data_controller_0" },
	{ "amd_df/dram_channel_data_controller_1/", "dram_channel_data_controller_1" },
	{ "amd_df/dram_channel_data_controller_2/", "dram_channel_data_controller_2" },
	{ "amd_df/dram_channel_data_controller_3/", "dram_channel_data_controller_3" },
	{ "amd_df/dram_channel_data_controller_4/", "dram_channel_data_controller_4" },
	{ "amd_df/dram_channel_data_controller_5/", "dram_channel_data_controller_5" },
	{ "amd_df/dram_channel_data_controller_6/", "dram_channel_data_controller_6" },
	{ "amd_df/dram_channel_data_controller_7/", "dram_channel_data_controller_7" },
};

/* Events that perf prints in nanoseconds when it names no unit. */
static const char *const nanoseconds[] = { "task-clock", "cpu-clock", "duration_time", "user_time",
					   "system_time" };

static const struct {
	const char *text, *unit;
	double scale; /* below 0: divided by, so that 28794.62 msec is 28.79462 s */
} units[] = {
	{ "msec", "s", -1e3 },     { "ns", "s", -1e9 },
	{ "nsec", "s", -1e9 },     { "us", "s", -1e6 },
	{ "sec", "s", 1.0 },       { "MiB", "byte", 1048576.0 },
	{ "KiB", "byte", 1024.0 }, { "GiB", "byte", 1073741824.0 },
	{ "Bytes", "byte", 1.0 },  { "bytes", "byte", 1.0 },
	{ "MB", "byte", 1e6 },     { "Joules", "J", 1.0 },
	{ "C", "C", 1.0 },
};

/* PMUs of cores: "cpu", "cpu_core", "cpu_atom", "armv8_pmuv3_0", "armv9_cortex_a710". */
static bool is_core_pmu(struct rfl_span pmu)
{
	return rfl_span_is(pmu, "cpu") || rfl_span_starts(pmu, "cpu_") ||
	       rfl_span_starts(pmu, "armv");
}

/* Without the number of a unit: "uncore_imc_3" is one of "uncore_imc". */
static struct rfl_span without_number(struct rfl_span pmu)
{
	size_t n = pmu.len;

	while (n > 0 && pmu.at[n - 1] >= '0' && pmu.at[n - 1] <= '9')
		n--;
	if (n > 1 && n < pmu.len && pmu.at[n - 1] == '_')
		pmu.len = n - 1;
	return pmu;
}

/* Take ":u", ":ukP" off. */
static struct rfl_span without_modifiers(struct rfl_span event, char modifiers[16])
{
	size_t n = event.len;

	while (n > 0 && strchr("ukhGHpPSDWeIb", event.at[n - 1]) && event.at[n - 1] != '\0')
		n--;
	if (n < 2 || n == event.len || (event.at[n - 1] != ':' && event.at[n - 1] != '/'))
		return event;
	rfl_span_copy(rfl_span_from(event, n), modifiers, 16);
	event.len = event.at[n - 1] == ':' ? n - 1 : n;
	return event;
}

/* "cpu_core/instructions/" is "instructions" on cpu_core; "uncore_imc_3/cas_count_read/" is
 * "uncore_imc/cas_count_read/" on uncore_imc_3. Raw codes of cores keep their form. */
static void split(struct rfl_span event, struct rfl_perf_name *ret)
{
	size_t slash = rfl_span_find(event, "/");
	struct rfl_span pmu = { .at = event.at, .len = slash }, body, base;

	if (slash == event.len || !rfl_span_ends(event, "/") || slash + 2 > event.len) {
		rfl_span_copy(event, ret->name, sizeof(ret->name));
		return;
	}
	body = rfl_span_from(event, slash + 1);
	body.len--;
	if (!rfl_span_is(pmu, "cpu")) /* which events without a PMU are on as well */
		rfl_span_copy(pmu, ret->pmu, sizeof(ret->pmu));
	if (is_core_pmu(pmu) && !memchr(body.at, '=', body.len)) {
		rfl_span_copy(body, ret->name, sizeof(ret->name));
		return;
	}
	base = without_number(pmu);
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s/%.*s/", (int)(base.len & 63), base.at,
		       (int)(body.len & 127), body.at);
}

static void no_unit(struct rfl_perf_name *ret)
{
	/* A CAS moves 64 bytes; perf prints MiB where the kernel tells it that. */
	if (strncmp(ret->name, "uncore_imc", 10) == 0 &&
	    (strstr(ret->name, "/cas_count_") || strstr(ret->name, "/data_"))) {
		ret->unit = "byte";
		ret->scale = 64.0;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(nanoseconds); i++) {
		if (strcmp(ret->name, nanoseconds[i]) != 0)
			continue;
		ret->unit = "s";
		ret->scale = -1e9;
	}
}

bool rfl_perf__name(struct rfl_span event, struct rfl_span unit, struct rfl_perf_name *ret)
{
	*ret = (struct rfl_perf_name){ .unit = "", .scale = 1.0 };
	split(without_modifiers(event, ret->modifiers), ret);
	for (size_t i = 0; i < RFL_ARRAY_LEN(aliases); i++) {
		if (strcmp(ret->name, aliases[i].alias) != 0)
			continue;
		(void)snprintf(ret->name, sizeof(ret->name), "%s", aliases[i].name);
		break;
	}
	if (unit.len == 0) {
		no_unit(ret);
		return true;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++) {
		if (!rfl_span_is(unit, units[i].text))
			continue;
		ret->unit = units[i].unit;
		ret->scale = units[i].scale;
		return true;
	}
	return false;
}
