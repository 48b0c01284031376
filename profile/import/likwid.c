/*
 * likwid.c - imports the CSV of likwid-perfctr -O: for each group, or each region of the marker
 * API, a table of raw events and a table of metrics, with a column for each hardware thread.
 *
 * The formulas of CPUs use perf's names for raw events. If they use no event of a group,
 * likwid's own metrics (MFLOP/s x run time, GBytes) serve as estimates.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/import/impl.h"

#define EVENTS_MAX 1024
#define EVENT_MAX  96

enum table { NO_TABLE, RAW, METRICS };

/* likwid's events, and perf's names for them, which the formulas use. */
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
	/* client CPUs */
	{ "DRAM_READS", "uncore_imc/data_reads/", "byte", 64.0 },
	{ "DRAM_WRITES", "uncore_imc/data_writes/", "byte", 64.0 },
	{ "RETIRED_SSE_AVX_FLOPS_ALL", "fp_ret_sse_avx_ops.all", "", 1.0 },
};

/* likwid's metrics, added up over the threads; a rate is first multiplied by the run time of its
 * thread. likwid 4 prints the names without brackets. */
static const struct {
	const char *metric, *name, *unit;
	double scale;
	bool of_flops; /* the metric is a rate of FLOPs */
} derived[] = {
	{ "HP [MFLOP/s]", "likwid_hp_flops", "FLOP", 1e6, true },
	{ "SP [MFLOP/s]", "likwid_sp_flops", "FLOP", 1e6, true },
	{ "SP MFLOP/s", "likwid_sp_flops", "FLOP", 1e6, true },
	{ "DP [MFLOP/s]", "likwid_dp_flops", "FLOP", 1e6, true },
	{ "DP MFLOP/s", "likwid_dp_flops", "FLOP", 1e6, true },
	{ "Memory data volume [GBytes]", "likwid_memory_bytes", "byte", 1e9, false },
	{ "Memory read data volume [GBytes]", "likwid_memory_read_bytes", "byte", 1e9, false },
	{ "Memory load data volume [GBytes]", "likwid_memory_read_bytes", "byte", 1e9, false },
	{ "Memory write data volume [GBytes]", "likwid_memory_write_bytes", "byte", 1e9, false },
	{ "Memory evict data volume [GBytes]", "likwid_memory_write_bytes", "byte", 1e9, false },
};

struct sum {
	char name[EVENT_MAX];
	const char *unit;
	double value;
	int64_t readings;
	bool missing; /* "-" or nan in a column */
};

struct likwid {
	struct rfl_import i;
	enum table table;
	struct sum *sums;
	size_t nsums;
	double time;       /* the longest run time of a thread in the range */
	double half_digit; /* half a unit of the last digit of `time` */
	double by_metric[RFL_ARRAY_LEN(derived)];
	bool raw_flops, raw_bytes;
	size_t threads; /* number of thread columns in the current table */
	double *times;  /* run times of the threads in the current table of metrics */
	size_t times_cap;
	char name[256]; /* name of the range; "": no range is open */
	bool any, regions;
};

static void clear(struct likwid *k)
{
	k->nsums = 0;
	k->time = NAN;
	k->raw_flops = k->raw_bytes = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(derived); i++)
		k->by_metric[i] = NAN;
	k->name[0] = '\0';
}

static void flush(struct likwid *k)
{
	struct rfl_reading time = { .name = "duration_time", .unit = "s", .value = k->time };
	char text[RFL_NUM_MAX];

	if (k->name[0] == '\0')
		return;
	if (rfl_import_is_rounded(k->time, k->half_digit)) {
		time.validity = RFL_VALID_ESTIMATE;
		time.reason = "rounded to the printed decimals";
		rfl_capture_note(k->i.b, "likwid rounds the time of %s to within %s s", k->name,
				 rfl_num_people(k->half_digit, 1, text));
	}
	rfl_capture_begin(k->i.b, RFL_RANGE_PROCESS, k->name, NULL, NULL);
	if (!isnan(k->time))
		(void)rfl_import_give(&k->i, &time);
	for (size_t i = 0; i < k->nsums; i++) {
		const struct sum *s = &k->sums[i];
		struct rfl_reading r = { .name = s->name, .unit = s->unit, .value = s->value };

		if (s->readings == 0) {
			r.value = NAN;
			r.validity = RFL_VALID_UNAVAILABLE;
			r.reason = "likwid printed no value";
		} else if (s->missing) {
			r.validity = RFL_VALID_PARTIAL;
			r.reason = "likwid printed no value for some hardware threads";
		}
		(void)rfl_import_give(&k->i, &r);
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(derived); i++) {
		const struct rfl_reading r = {
			.name = derived[i].name,
			.unit = derived[i].unit,
			.value = k->by_metric[i] * derived[i].scale,
			.validity = RFL_VALID_ESTIMATE,
			.reason = "from likwid's own metric, rounded to four decimals"
		};

		if (!k->i.options->strict && !isnan(r.value) &&
		    !(derived[i].of_flops ? k->raw_flops : k->raw_bytes))
			(void)rfl_import_give(&k->i, &r);
	}
	clear(k);
}

/* Find perf's name of an event: "fp_arith_inst_retired.256b_packed_double" for
 * "FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE". @return the factor from counts to the SI base unit */
static double name_event(struct rfl_span event, char name[EVENT_MAX], const char **unit)
{
	static const char *const groups[] = { "FP_ARITH_INST_RETIRED2_", "FP_ARITH_INST_RETIRED_" };

	*unit = "";
	for (size_t i = 0; i < RFL_ARRAY_LEN(events); i++)
		if (rfl_span_is(event, events[i].event)) {
			(void)snprintf(name, EVENT_MAX, "%s", events[i].name);
			*unit = events[i].unit;
			return events[i].scale;
		}
	rfl_span_copy(event, name, EVENT_MAX);
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

/* Read a table row: an event or a metric, with a column for each hardware thread. */
static enum rfl_rc read_row(struct likwid *k, struct rfl_span name, struct rfl_span rest)
{
	/* The time and call rows of a region have no counter column. */
	bool region = rfl_span_is(name, "RDTSC Runtime [s]") || rfl_span_is(name, "call count");
	bool is_time = region ? rfl_span_is(name, "RDTSC Runtime [s]")
			      : rfl_span_is(name, "Runtime (RDTSC) [s]");
	double sum = 0, most = NAN, half_of_most = 0, scale;
	double work = 0; /* sum of value x time over the threads */
	bool missing = false;
	int64_t readings = 0;
	char text[EVENT_MAX];
	struct rfl_span field;
	const char *unit;
	struct sum *s;

	if (k->table == RAW && !region && !rfl_span_next_field(&rest, ',', &field))
		return rfl_import_bad_row(&k->i, NULL, "'%.*s' has no values", RFL_SPAN_ARG(name));
	for (size_t i = 0; i < k->threads; i++) {
		double v, half;

		if (!rfl_span_next_field(&rest, ',', &field))
			return rfl_import_bad_row(
				&k->i, NULL, "'%.*s' has values for %zu of %zu hardware threads%s",
				RFL_SPAN_ARG(name), i, k->threads,
				k->i.in->torn ? ": the file is cut off" : "");
		if (rfl_num_is_missing(field.at, field.len) || rfl_span_is(field, "int")) {
			missing = true;
			continue;
		}
		if (!rfl_span_number(field, &v) || !rfl_span_grouped(field, '.', &v, &half))
			return rfl_import_bad_row(&k->i, NULL, "'%.*s' of %.*s is not a number",
						  RFL_SPAN_ARG(field), RFL_SPAN_ARG(name));
		readings++;
		sum += v;
		work += v * k->times[i];
		if (is_time)
			k->times[i] = v;
		if (isnan(most) || v > most) {
			most = v;
			half_of_most = half;
		}
	}
	/* Both tables contain the time: use the value with more digits. */
	if (is_time && (isnan(k->time) || half_of_most < k->half_digit)) {
		k->time = most;
		k->half_digit = half_of_most;
	}
	if (k->table == METRICS) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(derived) && readings > 0; i++)
			if (rfl_span_is(name, derived[i].metric))
				k->by_metric[i] = derived[i].of_flops ? work : sum;
		return RFL_OK;
	}
	if (is_time || region)
		return RFL_OK;
	if (k->nsums >= EVENTS_MAX)
		return rfl_import_refuse(&k->i, k->i.in->line, "more than %d events in a group",
					 EVENTS_MAX);
	scale = name_event(name, text, &unit);
	for (s = k->sums; s < k->sums + k->nsums && strcmp(s->name, text) != 0; s++)
		continue;
	if (s == k->sums + k->nsums) {
		s = rfl_arena_append(k->i.arena, &k->sums, &k->nsums);
		s->unit = unit;
		memcpy(s->name, text, sizeof(text));
	}
	s->value += sum * scale;
	s->readings += readings;
	s->missing = s->missing || missing;
	k->raw_flops = k->raw_flops || strncmp(text, "fp_", 3) == 0;
	k->raw_bytes = k->raw_bytes || strncmp(text, "uncore_imc", 10) == 0;
	return RFL_OK;
}

/* Begin a table: "TABLE,Group 1 Raw,MEM_DP,21", "TABLE,Region triad,Group 1 Metric,MEM_DP,18" */
static void begin_table(struct likwid *k, struct rfl_span rest)
{
	struct rfl_span region = { .at = "", .len = 0 }, title, group;
	char name[256];

	if (!rfl_span_next_field(&rest, ',', &title))
		return;
	if (rfl_span_starts(title, "Region ")) {
		region = rfl_span_from(title, strlen("Region "));
		if (!rfl_span_next_field(&rest, ',', &title))
			return;
	}
	k->table = NO_TABLE;
	if (!rfl_span_starts(title, "Group ") || !rfl_span_next_field(&rest, ',', &group))
		return;
	if (region.len == 0)
		rfl_span_copy(group, name, sizeof(name));
	else if (rfl_span_starts(title, "Group 1 "))
		(void)snprintf(name, sizeof(name), "%.*s", RFL_SPAN_ARG(region));
	else
		(void)snprintf(name, sizeof(name), "%.*s (%.*s)", RFL_SPAN_ARG(region),
			       RFL_SPAN_ARG(group));
	if (rfl_span_ends(title, " Raw"))
		k->table = RAW;
	else if (rfl_span_ends(title, " Metric"))
		k->table = METRICS;
	k->threads = 0;
	if (k->table == NO_TABLE)
		return;
	if (k->table == RAW || strcmp(name, k->name) != 0)
		flush(k);
	(void)snprintf(k->name, sizeof(k->name), "%s", name[0] ? name : "process");
	k->any = true;
	k->regions = k->regions || region.len > 0;
}

static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	struct likwid *k = (struct likwid *)import;
	struct rfl_span rest = line, name, field;
	char device[256];

	if (!rfl_span_next_field(&rest, ',', &name) || name.len == 0)
		return RFL_OK;
	if (rfl_span_is(name, "TABLE")) {
		begin_table(k, rest);
		return RFL_OK;
	}
	if (rfl_span_is(name, "STRUCT") || rfl_span_starts(name, "-----"))
		k->table = NO_TABLE;
	if (rfl_span_is(name, "CPU name:")) {
		if (rfl_span_next_field(&rest, ',', &field) && field.len > 0)
			rfl_capture_chip(import->b, NULL,
					 rfl_span_copy(field, device, sizeof(device)));
		return RFL_OK;
	}
	if (k->table == NO_TABLE)
		return RFL_OK;
	/* a header: "Event,Counter,HWThread 0,HWThread 1,", "Metric,HWThread 0" or "Region
	 * Info,HWThread 0"; likwid 4 prints "Core 0" */
	if (rfl_span_is(name, "Event") || rfl_span_is(name, "Metric") ||
	    rfl_span_is(name, "Region Info")) {
		k->threads = 0;
		while (rfl_span_next_field(&rest, ',', &field))
			k->threads += rfl_span_starts(field, "HWThread ") ||
				      rfl_span_starts(field, "Core ");
		rfl_arena_reserve(import->arena, &k->times, &k->times_cap, k->threads);
		for (size_t i = 0; i < k->threads; i++)
			k->times[i] = NAN;
		return RFL_OK;
	}
	if (!rest.at && !import->in->torn)
		return RFL_OK; /* no comma: output of the profiled program */
	return read_row(k, name, rest);
}

static void begin(struct rfl_import *import)
{
	clear((struct likwid *)import);
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct likwid *k = (struct likwid *)import;

	flush(k);
	if (!k->any)
		return rfl_import_refuse(
			import, 0,
			"no likwid tables; run likwid-perfctr with -O, or with -o FILE.csv");
	if (k->regions)
		rfl_capture_note(
			import->b,
			"the total is the sum of the regions; nested regions are counted twice");
	return RFL_OK;
}

static const struct rfl_sign signs[] = {
	{ "TABLE,Group ", { NULL }, 95 },
	{ "TABLE,Region ", { NULL }, 95 },
	{ "STRUCT,Info,3", { NULL }, 90 },
	{ "|", { "HWThread " }, 80 }, /* aligned tables, which are refused */
	{ .sure = 0 },
};

const struct rfl_importer rfl_importer_likwid = {
	.name = "likwid",
	.summary = "likwid-perfctr -O: groups and regions of the marker API",
	.formulas = "likwid",
	.size = sizeof(struct likwid),
	.signs = signs,
	.begin = begin,
	.line = read_line,
	.end = end,
};
