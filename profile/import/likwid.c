/*
 * likwid.c - likwid-perfctr -O (CSV): tables of raw events and of metrics per hardware
 * thread, one pair per group, and per region of the marker API.
 *
 * Raw events go through the formulas of processors under perf's names. Where a group has events
 * that no formula knows, likwid's own metrics (MFLOP/s x run time, GBytes) stand in, as estimates.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "profile/capture/impl.h"
#include "profile/import/impl.h"
#include "profile/import/likwid.h"

#define EVENTS_MAX 1024

enum table { NO_TABLE, RAW, METRICS, STATISTICS };

/* Metrics of likwid: the sum over threads; a rate is multiplied by the run time of its thread. In
 * the names of likwid 5 and, without brackets, 4. */
static const struct {
	const char *metric, *name, *unit;
	double scale;
	bool rate, of_flops;
} derived[] = {
	{ "HP [MFLOP/s]", "likwid_hp_flops", "FLOP", 1e6, true, true },
	{ "SP [MFLOP/s]", "likwid_sp_flops", "FLOP", 1e6, true, true },
	{ "SP MFLOP/s", "likwid_sp_flops", "FLOP", 1e6, true, true },
	{ "DP [MFLOP/s]", "likwid_dp_flops", "FLOP", 1e6, true, true },
	{ "DP MFLOP/s", "likwid_dp_flops", "FLOP", 1e6, true, true },
	{ "Memory data volume [GBytes]", "likwid_memory_bytes", "byte", 1e9, false, false },
	{ "Memory read data volume [GBytes]", "likwid_memory_read_bytes", "byte", 1e9, false,
	  false },
	{ "Memory load data volume [GBytes]", "likwid_memory_read_bytes", "byte", 1e9, false,
	  false },
	{ "Memory write data volume [GBytes]", "likwid_memory_write_bytes", "byte", 1e9, false,
	  false },
	{ "Memory evict data volume [GBytes]", "likwid_memory_write_bytes", "byte", 1e9, false,
	  false },
};

struct sum {
	char name[RFL_LIKWID_NAME_MAX], unit[8];
	double value;
	int64_t readings;
	bool missing; /* "-" or nan in a column */
};

struct likwid {
	struct rfl_import *import;
	struct rfl_capture_builder *b;
	struct rfl_metric_ids ids;
	enum table table;
	struct sum *sums;
	size_t nsums, cap;
	double time;       /* of the range: the longest of its threads */
	double half_digit; /* of that, as it was printed */
	double by_metric[RFL_ARRAY_LEN(derived)];
	bool raw_flops, raw_bytes;
	size_t threads; /* columns of the current table */
	double *times;  /* of the threads in the current table of metrics */
	size_t times_cap;
	char name[256]; /* of the range; "": none is open */
	bool any, regions;
};

static const char estimate[] = "from likwid's own metric, which it rounds to four decimals";

/* --- lines ----------------------------------------------------------------------------------- */

/* likwid quotes nothing. Take the next field off. */
static bool next_field(struct rfl_span *rest, struct rfl_span *field)
{
	const char *end;

	if (!rest->at)
		return false;
	end = rest->len > 0 ? memchr(rest->at, ',', rest->len) : NULL;
	*field = (struct rfl_span){ .at = rest->at,
				    .len = end ? (size_t)(end - rest->at) : rest->len };
	if (end)
		*rest = rfl_span_from(*rest, field->len + 1);
	else
		*rest = (struct rfl_span){ .at = NULL, .len = 0 };
	*field = rfl_span_trim(*field);
	return true;
}

/* --- sums ------------------------------------------------------------------------------------ */

static void clear(struct likwid *k)
{
	k->nsums = 0;
	k->time = NAN;
	k->raw_flops = k->raw_bytes = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(derived); i++)
		k->by_metric[i] = NAN;
	k->name[0] = '\0';
}

static enum rfl_rc give_sums(struct likwid *k, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < k->nsums && rc == RFL_OK; i++) {
		const struct sum *s = &k->sums[i];
		struct rfl_reading r = { .name = s->name, .unit = s->unit, .value = s->value };

		if (s->readings == 0) {
			r.value = NAN;
			r.validity = RFL_VALID_UNAVAILABLE;
			r.reason = "likwid has no value for it";
		} else if (s->missing) {
			r.validity = RFL_VALID_PARTIAL;
			r.reason = "likwid has no value of some hardware threads";
		}
		rc = rfl_import_give(k->b, &k->ids, &r, NULL, err);
	}
	return rc;
}

static enum rfl_rc give_derived(struct likwid *k, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(derived) && rc == RFL_OK; i++) {
		struct rfl_reading r = { .name = derived[i].name,
					 .unit = derived[i].unit,
					 .validity = RFL_VALID_ESTIMATE,
					 .reason = estimate };

		r.value = k->by_metric[i] * derived[i].scale;
		if (k->import->options->strict || isnan(r.value) ||
		    (derived[i].of_flops ? k->raw_flops : k->raw_bytes))
			continue;
		rc = rfl_import_give(k->b, &k->ids, &r, NULL, err);
	}
	return rc;
}

static enum rfl_rc flush(struct likwid *k, struct rfl_err *err)
{
	struct rfl_reading time = { .name = "duration_time", .unit = "s", .value = k->time };
	char text[RFL_NUM_MAX];
	enum rfl_rc rc;

	if (k->name[0] == '\0')
		return RFL_OK;
	if (rfl_import_is_rounded(k->time, k->half_digit)) {
		time.validity = RFL_VALID_ESTIMATE;
		time.reason = "rounded by its decimals";
		rfl_capture_note(k->b, "likwid prints the time of %s to within %s s", k->name,
				 rfl_num_people(k->half_digit, 1, text));
	}
	rc = rfl_capture_begin(k->b, RFL_RANGE_PROCESS, k->name, NULL, NULL, err);
	if (rc == RFL_OK && !isnan(k->time))
		rc = rfl_import_give(k->b, &k->ids, &time, NULL, err);
	if (rc == RFL_OK)
		rc = give_sums(k, err);
	if (rc == RFL_OK)
		rc = give_derived(k, err);
	if (rc == RFL_OK)
		rc = rfl_capture_end(k->b, err);
	clear(k);
	return rc;
}

static struct sum *sum_of(struct likwid *k, const char *name, const char *unit)
{
	for (size_t i = 0; i < k->nsums; i++)
		if (strcmp(k->sums[i].name, name) == 0)
			return &k->sums[i];
	if (!rfl_capture__room(&k->sums, k->nsums, &k->cap, sizeof(*k->sums)))
		return NULL;
	k->sums[k->nsums] = (struct sum){ .value = 0.0 };
	(void)snprintf(k->sums[k->nsums].name, sizeof(k->sums->name), "%s", name);
	(void)snprintf(k->sums[k->nsums].unit, sizeof(k->sums->unit), "%s", unit);
	return &k->sums[k->nsums++];
}

/* --- rows ------------------------------------------------------------------------------------ */

static bool is_missing(struct rfl_span s)
{
	return s.len == 0 || rfl_span_is(s, "-") || rfl_span_is(s, "nan") ||
	       rfl_span_is(s, "-nan") || rfl_span_is(s, "inf") || rfl_span_is(s, "int");
}

static bool is_time(struct rfl_span name)
{
	return rfl_span_is(name, "Runtime (RDTSC) [s]") || rfl_span_is(name, "RDTSC Runtime [s]");
}

struct columns {
	double sum, most;
	double half_digit; /* of the most */
	double work;       /* each multiplied by the time of its thread */
	int64_t readings;
	bool missing;
};

/* The columns of the hardware threads; NaN in the sum when none has a value. */
static enum rfl_rc read_columns(struct likwid *k, struct rfl_span name, struct rfl_span rest,
				struct columns *ret, bool *ok, struct rfl_err *err)
{
	struct rfl_span field;

	*ret = (struct columns){ .most = NAN };
	*ok = false;
	for (size_t i = 0; i < k->threads; i++) {
		double v;

		if (!next_field(&rest, &field))
			return rfl_import_bad_row(
				k->import, NULL, err,
				"'%.*s' has %zu of %zu values, one for each hardware "
				"thread%s",
				RFL_SPAN_ARG(name), i, k->threads,
				rfl_input_torn(k->import->in) ? ": the file is cut off" : "");
		if (is_missing(field)) {
			ret->missing = true;
			continue;
		}
		if (!rfl_span_number(field, &v))
			return rfl_import_bad_row(k->import, NULL, err,
						  "'%.*s' of %.*s is no number",
						  RFL_SPAN_ARG(field), RFL_SPAN_ARG(name));
		ret->readings++;
		ret->sum += v;
		ret->work += v * k->times[i];
		if (is_time(name))
			k->times[i] = v;
		if (isnan(ret->most) || v > ret->most) {
			ret->most = v;
			ret->half_digit = rfl_span_half_digit(field, RFL_DECIMAL_POINT);
		}
	}
	*ok = true;
	return RFL_OK;
}

/* Tables of events and of metrics have it with different numbers of digits. */
static void take_time(struct likwid *k, const struct columns *c)
{
	if (!isnan(k->time) && c->half_digit >= k->half_digit)
		return;
	k->time = c->most;
	k->half_digit = c->half_digit;
}

static enum rfl_rc raw_row(struct likwid *k, struct rfl_span name, struct rfl_span rest,
			   struct rfl_err *err)
{
	struct rfl_span counter;
	struct columns c;
	char text[RFL_LIKWID_NAME_MAX];
	const char *unit;
	struct sum *s;
	double scale;
	bool ok;
	/* The rows of a region's time and calls have no column of counters. */
	bool region = rfl_span_is(name, "RDTSC Runtime [s]") || rfl_span_is(name, "call count");
	enum rfl_rc rc;

	if (!region && !next_field(&rest, &counter))
		return rfl_import_bad_row(k->import, NULL, err, "'%.*s' has no values",
					  RFL_SPAN_ARG(name));
	rc = read_columns(k, name, rest, &c, &ok, err);
	if (rc != RFL_OK || !ok)
		return rc;
	if (is_time(name))
		take_time(k, &c);
	if (is_time(name) || region)
		return RFL_OK;
	scale = rfl_likwid__event(name, text, &unit);
	if (k->nsums >= EVENTS_MAX)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: more than %d events in a group",
				rfl_input_name(k->import->in), rfl_input_line_number(k->import->in),
				EVENTS_MAX);
	s = sum_of(k, text, unit);
	if (!s)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory",
				rfl_input_name(k->import->in));
	s->value += c.sum * scale;
	s->readings += c.readings;
	s->missing = s->missing || c.missing;
	k->raw_flops = k->raw_flops || strncmp(text, "fp_", 3) == 0;
	k->raw_bytes = k->raw_bytes || strncmp(text, "uncore_imc", 10) == 0;
	return RFL_OK;
}

static enum rfl_rc metric_row(struct likwid *k, struct rfl_span name, struct rfl_span rest,
			      struct rfl_err *err)
{
	struct columns c;
	bool ok;
	enum rfl_rc rc = read_columns(k, name, rest, &c, &ok, err);

	if (rc != RFL_OK || !ok || c.readings == 0)
		return rc;
	if (is_time(name))
		take_time(k, &c);
	for (size_t i = 0; i < RFL_ARRAY_LEN(derived); i++)
		if (rfl_span_is(name, derived[i].metric))
			k->by_metric[i] = derived[i].rate ? c.work : c.sum;
	return RFL_OK;
}

/* --- tables ---------------------------------------------------------------------------------- */

/* "TABLE,Group 1 Raw,MEM_DP,21", "TABLE,Region triad,Group 1 Metric STAT,MEM_DP,18" */
static enum rfl_rc begin_table(struct likwid *k, struct rfl_span rest, struct rfl_err *err)
{
	struct rfl_span region = { .at = "", .len = 0 }, title, group;
	bool first;
	char name[256];
	enum rfl_rc rc = RFL_OK;

	if (!next_field(&rest, &title))
		return RFL_OK;
	if (rfl_span_starts(title, "Region ")) {
		region = rfl_span_from(title, strlen("Region "));
		if (!next_field(&rest, &title))
			return RFL_OK;
	}
	k->table = NO_TABLE;
	if (!rfl_span_starts(title, "Group ") || !next_field(&rest, &group))
		return RFL_OK;
	first = rfl_span_starts(title, "Group 1 ");
	if (region.len > 0)
		(void)snprintf(name, sizeof(name), first ? "%.*s" : "%.*s (%.*s)",
			       RFL_SPAN_ARG(region), RFL_SPAN_ARG(group));
	else
		rfl_span_copy(group, name, sizeof(name));
	k->table = rfl_span_ends(title, " STAT")     ? STATISTICS
		   : rfl_span_ends(title, " Raw")    ? RAW
		   : rfl_span_ends(title, " Metric") ? METRICS
						     : NO_TABLE;
	if (k->table == RAW || (k->table == METRICS && strcmp(name, k->name) != 0))
		rc = flush(k, err);
	if (k->table == RAW || k->table == METRICS) {
		(void)snprintf(k->name, sizeof(k->name), "%s", name[0] ? name : "process");
		k->any = true;
		k->regions = k->regions || region.len > 0;
	}
	k->threads = 0;
	return rc;
}

/* "Event,Counter,HWThread 0,HWThread 1,", "Metric,HWThread 0", "Region Info,HWThread 0"; "Core 0"
 * before likwid 5. */
static bool is_header(struct rfl_span name)
{
	return rfl_span_is(name, "Event") || rfl_span_is(name, "Metric") ||
	       rfl_span_is(name, "Region Info");
}

static enum rfl_rc header(struct likwid *k, struct rfl_span rest, struct rfl_err *err)
{
	struct rfl_span field;
	size_t n = 0;

	while (next_field(&rest, &field))
		n += rfl_span_starts(field, "HWThread ") || rfl_span_starts(field, "Core ");
	if (n > k->times_cap) {
		double *more = realloc(k->times, n * sizeof(*more));

		if (!more)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory",
					rfl_input_name(k->import->in));
		k->times = more;
		k->times_cap = n;
	}
	for (size_t i = 0; i < n; i++)
		k->times[i] = NAN;
	k->threads = n;
	return RFL_OK;
}

static enum rfl_rc device(struct likwid *k, struct rfl_span rest, struct rfl_err *err)
{
	struct rfl_span field;
	char name[256];

	if (k->any || !next_field(&rest, &field) || field.len == 0)
		return RFL_OK;
	return rfl_capture_chip(k->b, NULL, rfl_span_copy(field, name, sizeof(name)), err);
}

static enum rfl_rc one_line(struct likwid *k, struct rfl_span line, struct rfl_err *err)
{
	struct rfl_span rest = line, name;

	if (!next_field(&rest, &name) || name.len == 0)
		return RFL_OK;
	if (rfl_span_is(name, "TABLE"))
		return begin_table(k, rest, err);
	if (rfl_span_is(name, "STRUCT") || rfl_span_starts(name, "-----")) {
		k->table = NO_TABLE;
		return RFL_OK;
	}
	if (rfl_span_is(name, "CPU name:"))
		return device(k, rest, err);
	if (k->table == NO_TABLE || k->table == STATISTICS)
		return RFL_OK;
	if (is_header(name))
		return header(k, rest, err);
	if (!rest.at && !rfl_input_torn(k->import->in))
		return RFL_OK; /* no comma: the program's own output */
	return k->table == RAW ? raw_row(k, name, rest, err) : metric_row(k, name, rest, err);
}

static enum rfl_rc read_lines(struct likwid *k, struct rfl_err *err)
{
	struct rfl_span line;
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK) {
		rc = rfl_import_line(k->import, &line, &more, err);
		if (rc != RFL_OK || !more)
			break;
		rc = one_line(k, line, err);
	}
	return rc == RFL_OK ? flush(k, err) : rc;
}

static enum rfl_rc read_likwid(struct rfl_import *import, struct rfl_captures *to,
			       struct rfl_err *err)
{
	struct likwid k = { .import = import };
	enum rfl_rc rc = rfl_import_builder(import, "likwid", "likwid", false, &k.b, err);

	clear(&k);
	if (rc == RFL_OK)
		rc = read_lines(&k, err);
	if (rc == RFL_OK && !k.any)
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: no tables of likwid: run likwid-perfctr with -O, or with -o and "
			      "a name that ends in .csv",
			      rfl_input_name(import->in));
	if (rc == RFL_OK && k.regions)
		rfl_capture_note(k.b, "the total is the sum of the regions: a region inside "
				      "another one is in it twice");
	if (rc == RFL_OK)
		rc = rfl_import_finish(import, k.b, to, err);
	free(k.sums);
	free(k.times);
	rfl_metric_ids_fini(&k.ids);
	rfl_capture_builder_free(k.b);
	return rc;
}

static int detect(struct rfl_span head)
{
	struct rfl_span line;

	while (rfl_span_next_line(&head, &line)) {
		if (rfl_span_starts(line, "TABLE,Group ") || rfl_span_starts(line, "TABLE,Region "))
			return 95;
		if (rfl_span_starts(line, "STRUCT,Info,3"))
			return 90;
		/* The aligned tables for people: refused with the cure. */
		if (rfl_span_has(line, "HWThread ") && rfl_span_has(line, "|") &&
		    rfl_span_has(line, "Counter"))
			return 80;
	}
	return 0;
}

const struct rfl_importer rfl_importer_likwid = {
	.name = "likwid",
	.summary = "likwid-perfctr -O: groups and regions of the marker API",
	.detect = detect,
	.read = read_likwid,
};
