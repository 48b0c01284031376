/*
 * perf.c - imports the output of perf stat. perf_forms.c reads the rows of its three formats. This
 * file adds up the rows of an event over intervals and CPUs for each PMU, then over the PMUs.
 * The kinds of cores of a hybrid CPU are weighted by their shares of the time.
 *
 * perf has already scaled its values to the whole time. A value that was scaled from less than half
 * of the time is refused.
 */
#include "profile/import/perf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define PARTS_MAX   4096
#define EVENT_MAX   1024
#define LEAST_SHARE 50.0 /* percent of the time */

/* An event on one of its PMUs: hybrid CPUs have two for their cores, and memory controllers
 * have many. Counts in user mode and in kernel mode are separate parts. */
struct rfl_perf_part {
	const char *event, *unit, *pmu, *modifiers;
	double value, running, half_digit;
	double raw;    /* the count before perf scaled it */
	double shares; /* percent of the time, summed over the rows */
	bool placed;   /* rows are for single CPUs or sockets */
	int64_t counted, not_counted, not_supported;
};

/* The name of an event in the formulas, and its unit. */
struct name {
	char name[EVENT_MAX + 1];
	char pmu[EVENT_MAX + 1]; /* "cpu_core", "uncore_imc_3"; "": none */
	const char *unit;        /* SI base unit */
	double scale;            /* factor to that unit, as in struct rfl_unit */
	char modifiers[16];      /* "u", "k"; "": none */
};

/* Other names for events that formulas use. */
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
};

/* Events that perf prints in nanoseconds if it prints no unit. */
static const char *const nanoseconds[] = { "task-clock", "cpu-clock", "duration_time", "user_time",
					   "system_time" };

static const struct rfl_unit units[] = {
	{ "msec", "s", -1e3 },     { "ns", "s", -1e9 },       { "nsec", "s", -1e9 },
	{ "us", "s", -1e6 },       { "sec", "s", 1.0 },       { "MiB", "byte", 0x1p20 },
	{ "KiB", "byte", 0x1p10 }, { "GiB", "byte", 0x1p30 }, { "Bytes", "byte", 1.0 },
	{ "bytes", "byte", 1.0 },  { "MB", "byte", 1e6 },     { "Joules", "J", 1.0 },
	{ "C", "C", 1.0 },
};

/* Split an event into its name in the formulas, its PMU and its modifiers.
 * "cpu_core/instructions/" becomes "instructions" on cpu_core, and "uncore_imc_3/cas_count_read/"
 * becomes "uncore_imc/cas_count_read/" on uncore_imc_3. Raw event codes of cores are unchanged. */
static void split_event(struct rfl_span event, struct name *ret)
{
	size_t n = event.len;

	/* modifiers: ":u", ":ukP", "/u" */
	while (n > 0 && strchr("ukhGHpPSDWeIb", event.at[n - 1]) && event.at[n - 1] != '\0')
		n--;
	if (n >= 2 && n < event.len && (event.at[n - 1] == ':' || event.at[n - 1] == '/')) {
		rfl_span_copy(rfl_span_from(event, n), ret->modifiers, sizeof(ret->modifiers));
		event.len = event.at[n - 1] == ':' ? n - 1 : n;
	}
	const size_t slash = n = rfl_span_find(event, "/");
	struct rfl_span pmu = { .at = event.at, .len = slash };
	struct rfl_span body = rfl_span_from(event, slash + 1);
	rfl_span_copy(event, ret->name, sizeof(ret->name));
	if (slash == event.len || !rfl_span_ends(event, "/") || body.len < 1)
		return;
	body.len--;
	const bool core = rfl_span_is(pmu, "cpu") || rfl_span_starts(pmu, "cpu_") ||
			  rfl_span_starts(pmu, "armv");
	if (!rfl_span_is(pmu, "cpu")) /* "cpu" is the PMU of events without a PMU */
		rfl_span_copy(pmu, ret->pmu, sizeof(ret->pmu));
	if ((core && !memchr(body.at, '=', body.len)) ||
	    (rfl_span_is(pmu, "amd_df") &&
	     rfl_span_starts(body, "dram_channel_data_controller_"))) {
		rfl_span_copy(body, ret->name, sizeof(ret->name));
		return;
	}
	while (n > 0 && pmu.at[n - 1] >= '0' && pmu.at[n - 1] <= '9')
		n--;
	if (n > 1 && n < pmu.len && pmu.at[n - 1] == '_')
		pmu.len = n - 1;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s/%.*s/", (int)pmu.len, pmu.at,
		       (int)body.len, body.at);
}

/* Find the name of an event in the formulas; false: the unit is unknown. */
static bool name_event(struct rfl_span event, struct rfl_span unit, struct name *ret)
{
	const struct rfl_unit *known = rfl_unit_find(units, RFL_ARRAY_LEN(units), unit);

	ret->name[0] = ret->pmu[0] = ret->modifiers[0] = '\0';
	ret->unit = "";
	ret->scale = 1.0;
	split_event(event, ret);
	for (size_t i = 0; i < RFL_ARRAY_LEN(aliases); i++)
		if (strcmp(ret->name, aliases[i].alias) == 0) {
			(void)snprintf(ret->name, sizeof(ret->name), "%s", aliases[i].name);
			break;
		}
	if (known) {
		ret->unit = known->unit;
		ret->scale = known->value;
	}
	if (unit.len > 0)
		return known;
	/* A CAS moves 64 bytes. perf prints MiB if the kernel defines that unit. */
	if (strncmp(ret->name, "uncore_imc", 10) == 0 &&
	    (strstr(ret->name, "/cas_count_") || strstr(ret->name, "/data_"))) {
		ret->unit = "byte";
		ret->scale = 64.0;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(nanoseconds); i++)
		if (strcmp(ret->name, nanoseconds[i]) == 0) {
			ret->unit = "s";
			ret->scale = -1e9;
		}
	return true;
}

bool rfl_perf__is_known(struct rfl_span unit)
{
	return unit.len == 0 || rfl_unit_find(units, RFL_ARRAY_LEN(units), unit);
}

/* Find the first part of an event. */
static const struct rfl_perf_part *find_event(const struct rfl_perf *k, const char *name)
{
	for (size_t i = 0; i < k->nparts; i++)
		if (strcmp(k->parts[i].event, name) == 0)
			return &k->parts[i];
	return NULL;
}

/* Find the part to which a row belongs, or add it. */
static struct rfl_perf_part *part_of(struct rfl_perf *k, const struct name *name)
{
	struct rfl_perf_part *p;

	for (p = k->parts; p < k->parts + k->nparts; p++)
		if (strcmp(p->event, name->name) == 0 && strcmp(p->pmu, name->pmu) == 0 &&
		    strcmp(p->modifiers, name->modifiers) == 0)
			return p;
	p = rfl_arena_append(k->i.arena, &k->parts, &k->nparts);
	*p = (struct rfl_perf_part){
		.event = rfl_arena_strdup(k->i.arena, name->name),
		.unit = name->unit,
		.pmu = rfl_arena_strdup(k->i.arena, name->pmu),
		.modifiers = rfl_arena_strdup(k->i.arena, name->modifiers),
		.running = 100.0,
	};
	return p;
}

enum rfl_rc rfl_perf__row(struct rfl_perf *k, const struct rfl_perf_row *row)
{
	double value, share = isnan(row->running) ? 100.0 : row->running;
	struct {
		uint64_t part, time, place; /* the last two are hashes */
	} key = { .time = rfl_hash64(1, row->time.at, row->time.len),
		  .place = rfl_hash64(1, row->place.at, row->place.len) };
	bool is_new;
	struct name name;

	if (row->event.len > EVENT_MAX)
		return rfl_import_bad_row(&k->i, NULL,
					  "the event '%.*s...' has more than %d characters",
					  RFL_SPAN_ARG(row->event), EVENT_MAX);
	if (!name_event(row->event, row->unit, &name))
		return rfl_import_bad_row(&k->i, "unit", "'%.*s' of %.*s is not a known unit",
					  RFL_SPAN_ARG(row->unit), RFL_SPAN_ARG(row->event));
	if (row->state == RFL_PERF_COUNTED && row->value < 0)
		return rfl_import_bad_row(&k->i, NULL, "%.*s is below 0", RFL_SPAN_ARG(row->event));
	if (row->state == RFL_PERF_COUNTED && k->i.options->strict &&
	    rfl_import_is_rounded(row->value, row->half_digit))
		return rfl_import_bad_row(
			&k->i, NULL,
			"%.*s is rounded; run perf stat with -j, or leave out --strict",
			RFL_SPAN_ARG(row->event));
	if (k->nparts >= PARTS_MAX)
		return rfl_import_refuse(&k->i, k->i.in->line, "more than %d events", PARTS_MAX);
	struct rfl_perf_part *part = part_of(k, &name);
	/* perf prints an event once for each group that contains it: use only the first count. */
	key.part = (uint64_t)(part - k->parts);
	(void)rfl_keys_add(&k->rows, k->i.arena, &key, sizeof(key), &is_new);
	if (!is_new) {
		rfl_capture_note(k->i.b, "perf repeated an event: the first count is used");
		return RFL_OK;
	}
	if (strcmp(name.modifiers, "u") == 0)
		rfl_capture_note(k->i.b, "events with ':u' were counted in user mode only");
	part->counted += row->state == RFL_PERF_COUNTED;
	part->not_counted += row->state == RFL_PERF_NOT_COUNTED;
	part->not_supported += row->state == RFL_PERF_NOT_SUPPORTED;
	if (row->state != RFL_PERF_COUNTED)
		return RFL_OK;
	value = rfl_unit_apply(row->value, name.scale);
	part->value += value;
	part->half_digit += rfl_unit_apply(row->half_digit, name.scale);
	part->raw += value * share / 100.0;
	part->shares += share;
	part->placed = part->placed || row->place.len > 0;
	if (row->running < part->running)
		part->running = row->running;
	if (!isnan(row->cpus_utilized))
		k->cpus_utilized =
			part->counted + part->not_counted == 1 ? row->cpus_utilized : NAN;
	return RFL_OK;
}

struct merged {
	struct rfl_perf_part all;
	bool weighted, unclear;
	const char *only; /* the only kind of core with the event, which ran part of the time */
};

/* Whether perf counted CPUs, not a process: then every kind of core counts all the time. */
static bool is_of_processors(const struct rfl_perf *k)
{
	return strcmp(k->command, "system wide") == 0 || strncmp(k->command, "CPU(s) ", 7) == 0;
}

static void merge(const struct rfl_perf *k, const struct rfl_perf_part *first, struct merged *ret)
{
	const struct rfl_perf_part *end = k->parts + k->nparts, *p;
	bool hybrid = false, plain = false, halves = true, mixed = false;
	bool one_thread = k->cpus_utilized <= 1.1; /* false if unknown (NaN) */
	bool intel = strncmp(first->pmu, "cpu_", 4) == 0;
	struct rfl_perf_part all = { .running = 100.0 };
	int64_t most_rows = 0; /* of any part */

	for (p = first; p < end; p++) {
		if (strcmp(p->event, first->event) != 0)
			continue;
		plain = plain || p->modifiers[0] == '\0';
		halves = halves &&
			 (strcmp(p->modifiers, "u") == 0 || strcmp(p->modifiers, "k") == 0);
		hybrid = hybrid ||
			 ((strncmp(p->pmu, "cpu_", 4) == 0 || strncmp(p->pmu, "armv", 4) == 0) &&
			  strcmp(p->pmu, first->pmu) != 0);
	}
	for (p = first; p < end; p++) {
		int64_t rows = p->counted + p->not_counted + p->not_supported;

		/* "cycles" includes "cycles:u"; "cycles:u" and "cycles:k" add up. */
		if (strcmp(p->event, first->event) != 0 ||
		    (plain ? p->modifiers[0] != '\0'
			   : !halves && strcmp(p->modifiers, first->modifiers) != 0))
			continue;
		all.counted += p->counted;
		all.not_counted += p->not_counted;
		all.not_supported += p->not_supported;
		most_rows = rows > most_rows ? rows : most_rows;
		mixed = mixed || (all.modifiers && strcmp(all.modifiers, p->modifiers) != 0);
		all.modifiers = p->modifiers;
		if (p->counted == 0)
			continue;
		all.value += p->value;
		all.half_digit += p->half_digit;
		all.raw += p->raw;
		all.shares += p->shares;
		all.placed = all.placed || p->placed;
		if (p->running < all.running)
			all.running = p->running;
	}
	*ret = (struct merged){ .all = all };
	if (all.counted == 0)
		return;
	if (!hybrid) {
		/* Intel's E-cores have no event for FLOPs: time on them looks like time without a
		 * counter, and only the unscaled count is certain. */
		if (intel && all.running <= 99.5 && !all.placed && !is_of_processors(k)) {
			ret->only = first->pmu;
			ret->all.value = floor(all.raw + 0.5);
		}
		return;
	}
	/* A kind of core without a count never ran the process. */
	ret->all.not_counted = ret->all.not_supported = 0;
	/* A thread moves between the kinds of cores, and perf scales the count of each kind as if
	 * the thread had run on it all the time. For a single thread, the shares add up to 100 %:
	 * add the unscaled counts, and scale them by the sum of the shares. For several threads,
	 * add the scaled counts. A sum below 100 % can be either case. */
	double shares = most_rows > 0 ? all.shares / (double)most_rows : 0.0;
	if (shares <= 0.0 || shares > 101.0 || all.running >= 100.0 || all.placed || mixed ||
	    is_of_processors(k))
		return;
	ret->unclear = shares < 99.0 && !one_thread;
	ret->weighted = true;
	ret->all.running = shares < 99.5 ? shares : 100.0;
	ret->all.value = all.raw * 100.0 / shares;
	if (first->unit[0] == '\0')
		ret->all.value = floor(ret->all.value + 0.5);
	/* Shares have two decimals. */
	ret->all.half_digit += ret->all.value * 0.005 / shares;
}

static void give_event(struct rfl_perf *k, const struct rfl_perf_part *first)
{
	struct rfl_reading r = { .name = first->event, .unit = first->unit };
	struct rfl_arena *arena = k->i.arena;
	struct merged m;

	merge(k, first, &m);
	r.value = m.all.value;
	r.validity = RFL_VALID_UNAVAILABLE;
	long long missing = (long long)(m.all.not_counted + m.all.not_supported);
	if (strcmp(r.name, "cpu-clock") == 0 &&
	    (is_of_processors(k) || strcmp(k->command, "process") == 0)) {
		r.reason = "may be the time of all CPUs, busy or idle (perf -a); count "
			   "task-clock";
	} else if (m.all.counted == 0 && m.all.not_counted == 0) {
		r.reason = "perf: <not supported> by this CPU or virtual machine";
	} else if (m.all.counted == 0) {
		r.reason = "perf: <not counted>: never scheduled; count fewer events at once";
	} else if (m.unclear) {
		r.reason = "the shares of the kinds of cores do not add up to 100 %, and the "
			   "process may have several threads; count fewer events, and task-clock";
	} else if (m.all.running < LEAST_SHARE) {
		r.reason = rfl_arena_printf(arena,
					    "counted during %.4g %% of the time, too short to "
					    "scale; count fewer events at once",
					    m.all.running);
	} else if (m.only) {
		r.validity = RFL_VALID_PARTIAL;
		r.reason = rfl_arena_printf(arena,
					    "counted on %s only, during %.4g %% of the time, and "
					    "not scaled: a lower bound",
					    m.only, m.all.running);
	} else if (missing > 0) {
		r.validity = RFL_VALID_PARTIAL;
		r.reason = rfl_arena_printf(arena, "not counted in %lld of %lld readings", missing,
					    missing + (long long)m.all.counted);
	} else if (m.all.running < 100.0) {
		r.validity = RFL_VALID_SCALED;
		r.reason = rfl_arena_printf(
			arena, "counted during %.4g %% of the time, scaled by perf%s",
			m.all.running, m.weighted ? "; kinds of cores weighted by share" : "");
	} else if (m.weighted && m.all.counted > 1) {
		r.validity = RFL_VALID_SCALED;
		r.reason = "kinds of cores weighted by share of the time";
	} else if (rfl_import_is_rounded(m.all.value, m.all.half_digit)) {
		r.validity = RFL_VALID_ESTIMATE;
		r.reason = "rounded to the printed digits; perf stat -j prints more";
	} else {
		r.validity = RFL_VALID;
	}
	if (r.validity == RFL_VALID_UNAVAILABLE)
		r.value = NAN;
	(void)rfl_import_give(&k->i, &r);
}

static void empty(struct rfl_perf *k)
{
	k->rows = (struct rfl_keys){ 0 };
	k->nparts = 0;
	k->elapsed = k->user = k->system = k->cpus_utilized = NAN;
	k->open = k->intervals = false;
}

static void flush(struct rfl_perf *k)
{
	const struct rfl_perf_part *clock = find_event(k, "task-clock");
	size_t of_clock = 0; /* number of parts of the clock event */
	struct rfl_reading times[] = {
		{ .name = "duration_time", .unit = "s", .value = k->elapsed },
		{ .name = "user_time", .unit = "s", .value = k->user },
		{ .name = "system_time", .unit = "s", .value = k->system },
	};

	if (!k->open || (k->nparts == 0 && isnan(k->elapsed))) {
		empty(k);
		return;
	}
	/* -x and -j print no elapsed time, but the ratio of a clock to it. */
	clock = clock ? clock : find_event(k, "cpu-clock");
	for (size_t i = 0; clock && i < k->nparts; i++)
		of_clock += strcmp(k->parts[i].event, clock->event) == 0;
	if (isnan(k->elapsed) && k->cpus_utilized > 0.0 && of_clock == 1 && !k->i.options->strict) {
		times[0].value = clock->value / k->cpus_utilized;
		times[0].validity = RFL_VALID_ESTIMATE;
		times[0].reason = "clock / 'CPUs utilized', which perf rounds; add duration_time "
				  "to the events";
	}
	k->any = true;
	rfl_capture_begin(k->i.b, RFL_RANGE_PROCESS, k->command, NULL, NULL);
	for (size_t i = 0; i < k->nparts; i++)
		if (find_event(k, k->parts[i].event) == &k->parts[i])
			give_event(k, &k->parts[i]);
	for (size_t i = 0; i < RFL_ARRAY_LEN(times); i++)
		if (!isnan(times[i].value) && !find_event(k, times[i].name))
			(void)rfl_import_give(&k->i, &times[i]);
	if (k->intervals)
		rfl_capture_note(k->i.b, "the values of all intervals are added up");
	empty(k);
}

void rfl_perf__begin(struct rfl_perf *k, struct rfl_span command)
{
	flush(k);
	k->open = true;
	rfl_span_copy(command, k->command, sizeof(k->command));
}

static int detect(struct rfl_span head)
{
	rfl_perf_form *form;

	return rfl_perf__form(head, &form);
}

static void begin(struct rfl_import *import)
{
	struct rfl_perf *k = (struct rfl_perf *)import;

	empty(k);
	k->decimal = rfl_perf__decimal(import->head);
	(void)rfl_perf__form(import->head, &k->form);
	if (k->form != rfl_perf__text) { /* the text has a header for each block */
		k->open = true;
		(void)snprintf(k->command, sizeof(k->command), "process");
	}
}

static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	return ((struct rfl_perf *)import)->form((struct rfl_perf *)import, line);
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct rfl_perf *k = (struct rfl_perf *)import;

	k->any = false; /* the last block must contain events */
	flush(k);
	if (!k->any)
		return rfl_import_refuse(
			import, 0,
			"no events; expected the output of perf stat, with or without -x or -j");
	return RFL_OK;
}

const struct rfl_importer rfl_importer_perf = {
	.name = "perf",
	.summary = "perf stat: default output, -x with any separator, -j",
	.formulas = "cpu",
	.size = sizeof(struct rfl_perf),
	.detect = detect,
	.begin = begin,
	.line = read_line,
	.end = end,
};
