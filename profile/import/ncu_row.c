/*
 * ncu_row.c - reads the rows of ncu's tables. The launch of a row is identified by its process and
 * launch IDs, in a summary by kernel, block and grid. Values may be in any locale and unit,
 * rounded, missing, or repeated.
 *
 * The first unambiguous cell determines whether the decimal sign of the file is a point or a comma.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/num.h"
#include "profile/capture/impl.h"
#include "profile/import/ncu.h"

#define EXACT_ENOUGH 1e-7 /* relative; smaller rounding errors are not reported */

/* --- units: "Mbyte", "usecond", "Ghz", "cycle/nsecond", "inst/cycle" ------------------------- */

static const struct {
	const char *text;
	int exponent; /* power of ten, in seconds */
} times_of[] = {
	{ "s", 0 },        { "second", 0 },   { "ms", -3 },        { "msecond", -3 },
	{ "us", -6 },      { "usecond", -6 }, { "\xc2\xb5s", -6 }, { "ns", -9 },
	{ "nsecond", -9 }, { "ps", -12 },     { "psecond", -12 },
};

/* Units of counts, which may have a prefix K, M, G, T, P or E. */
static const char *const counts[] = {
	"byte", "inst",   "thread_inst", "thread inst", "sector",   "request", "cycle",
	"warp", "block",  "thread",      "pass",        "sample",   "math_op", "op",
	"flop", "FLOP",   "transaction", "wavefront",   "register", "access",  "packet",
	"SM",   "launch", "group",       "instance",    "cluster",  "branch",
};

static bool find_time(struct rfl_span text, int *exponent)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(times_of); i++)
		if (rfl_span_is(text, times_of[i].text)) {
			*exponent = times_of[i].exponent;
			return true;
		}
	return false;
}

static int prefix_exponent(char c)
{
	static const char prefixes[] = "KMGTPE";
	const char *at = c != '\0' ? strchr(prefixes, c == 'k' ? 'K' : c) : NULL;

	return at ? 3 * (int)(at - prefixes + 1) : 0;
}

/* Find a unit of counts, and remove its prefix from *text. */
static bool find_count(struct rfl_span *text, int *exponent)
{
	int prefix = text->len > 1 ? prefix_exponent(text->at[0]) : 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(counts); i++) {
		bool plain = rfl_span_is(*text, counts[i]);

		if (!plain && (prefix == 0 || !rfl_span_is(rfl_span_from(*text, 1), counts[i])))
			continue;
		*exponent = plain ? 0 : prefix;
		*text = rfl_span_from(*text, plain ? 0 : 1);
		return true;
	}
	return false;
}

static struct rfl_ncu_unit make(enum rfl_ncu_unit_kind kind, int exponent, struct rfl_span base,
				const char *slash, struct rfl_span per)
{
	struct rfl_ncu_unit unit = { .kind = kind, .exponent = exponent };

	(void)snprintf(unit.base, sizeof(unit.base), "%.*s%s%.*s", RFL_SPAN_ARG(base), slash,
		       RFL_SPAN_ARG(per));
	return unit;
}

struct rfl_ncu_unit rfl_ncu_unit_parse(struct rfl_span text)
{
	const struct rfl_span none = rfl_span_of("");
	size_t slash = rfl_span_find(text, "/");
	struct rfl_span above = rfl_span_trim((struct rfl_span){ .at = text.at, .len = slash });
	struct rfl_span below = rfl_span_trim(rfl_span_from(text, slash + 1)), whole = above;
	int exponent = 0, per = 0;

	if (slash == text.len) {
		/* "hz" and "Ghz" in any case, but m is not M */
		bool hertz = above.len >= 2 && above.len <= 3 &&
			     strncasecmp(above.at + above.len - 2, "hz", 2) == 0;

		if (above.len == 0)
			return make(RFL_NCU_UNIT_COUNT, 0, none, "", none);
		if (rfl_span_is(above, "%") || rfl_span_is(above, "ratio"))
			return make(RFL_NCU_UNIT_RATIO, 0, none, "", above);
		if (find_time(above, &exponent))
			return make(RFL_NCU_UNIT_TIME, exponent, none, "s", none);
		if (hertz && above.len == 3)
			exponent = prefix_exponent(above.at[0]);
		if (hertz && (above.len == 2 || exponent != 0))
			return make(RFL_NCU_UNIT_RATE, exponent, none, "Hz", none);
		if (find_count(&above, &exponent))
			return make(RFL_NCU_UNIT_COUNT, exponent, above, "", none);
		return make(RFL_NCU_UNIT_UNKNOWN, 0, whole, "", none);
	}
	/* "byte/second", "inst/cycle", "%/register" */
	if (find_count(&above, &exponent) || rfl_span_is(above, "%") ||
	    find_time(above, &exponent)) {
		if (find_time(below, &per))
			return rfl_span_is(above, "cycle")
				       ? make(RFL_NCU_UNIT_RATE, exponent - per, none, "Hz", none)
				       : make(RFL_NCU_UNIT_RATE, exponent - per, above, "/s", none);
		for (size_t i = 0; i < RFL_ARRAY_LEN(counts); i++)
			if (rfl_span_is(below, counts[i]))
				return make(RFL_NCU_UNIT_RATIO, exponent, above, "/", below);
	}
	return make(RFL_NCU_UNIT_UNKNOWN, 0, rfl_span_trim(text), "", none);
}

/* Determine the decimal sign of a cell from the cell or the file, or assume one. @return '!' if the
 * cell contradicts an earlier one */
static char decide(struct rfl_ncu_convention *c, const struct rfl_num_parts *p,
		   struct rfl_span cell, bool whole, size_t line)
{
	char shown = rfl_num_shown(p);

	if (p->others > 0)
		c->no_group = true;
	if (shown == 0)
		return c->decimal ? c->decimal : '.';
	if (shown == '?' && c->decimal != 0)
		return c->decimal;
	if (shown == '?' && whole)
		shown = p->last == '.' ? ',' : '.';
	else if (shown == '?' && c->no_group)
		shown = p->last;
	if (shown == '?') {
		if (c->assumed)
			return '.';
		c->assumed = true;
	} else {
		if (shown == c->decimal || !rfl_num_is_sound(p, shown))
			return shown; /* known already, or not a number */
		if (c->decimal != 0 || (c->assumed && shown == ','))
			return '!';
		c->decimal = shown;
		c->assumed = false;
	}
	(void)rfl_span_copy(cell, c->witness, sizeof(c->witness));
	c->witness_line = line;
	return shown == '?' ? '.' : shown;
}

struct rfl_ncu_number rfl_ncu_number_read(struct rfl_ncu_convention *c, struct rfl_span cell,
					  bool whole, int exponent, size_t line)
{
	struct rfl_ncu_number number = { .what = RFL_NCU_BAD, .value = NAN };
	struct rfl_num_parts p;

	cell = rfl_span_trim(cell);
	/* In "12 (3; 4; 5)" of --print-metric-instances, the total is first. */
	if (cell.len > 0 && cell.at[cell.len - 1] == ')') {
		size_t at = rfl_span_find(cell, " (");

		if (at > 0)
			cell = rfl_span_trim((struct rfl_span){ .at = cell.at, .len = at });
	}
	if (cell.len == 0 || rfl_num_cut(cell.at, cell.len, true, &p) != cell.len) {
		if (rfl_num_is_missing(cell.at, cell.len))
			number.what = RFL_NCU_MISSING;
		return number;
	}
	char decimal = decide(c, &p, cell, whole, line);
	if (decimal == '!') {
		number.what = RFL_NCU_CONTRADICTS;
		return number;
	}
	number.value = rfl_num_value(&p, decimal, exponent);
	number.decimals = rfl_num_decimals(&p, decimal);
	if (isfinite(number.value))
		number.what = RFL_NCU_VALUE;
	return number;
}

/* "dram__bytes_read.sum" is an integer number of bytes; averages and ratios are not integers. */
bool rfl_ncu__is_whole(struct rfl_span name, const struct rfl_ncu_unit *unit)
{
	if (!(unit->kind == RFL_NCU_UNIT_COUNT && unit->exponent == 0) &&
	    !(unit->kind == RFL_NCU_UNIT_TIME && unit->exponent == -9))
		return false;
	return rfl_span_has(name, "__") &&
	       (rfl_span_ends(name, ".sum") || rfl_span_ends(name, ".max") ||
		rfl_span_ends(name, ".min"));
}

struct rfl_span rfl_ncu__keep(struct rfl_ncu *n, struct rfl_span s)
{
	const uint32_t number = rfl_keys_add(&n->texts, n->i.arena, s.at, s.len, NULL);

	return n->texts.keys[number - 1];
}

void rfl_ncu__metric_init(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span section,
			  struct rfl_span name, struct rfl_span unit)
{
	size_t at = name.len;
	struct rfl_span inner;
	bool added;

	*m = (struct rfl_ncu_metric){ .section = section,
				      .name = name,
				      .unit_text = unit,
				      .unit = rfl_ncu_unit_parse(unit),
				      .next = SIZE_MAX,
				      .launch = -1,
				      .decimals = -1 };
	/* Use the name in "Duration (gpu__time_duration.sum)" of --print-metric-name label-name. */
	while (at > 0 && rfl_span_ends(name, ")") && name.at[at - 1] != '(')
		at--;
	if (at > 1 && at < name.len && name.at[at - 2] == ' ') {
		inner = (struct rfl_span){ .at = name.at + at, .len = name.len - at - 1 };
		if (rfl_span_has(inner, "__") && !rfl_span_has(inner, " "))
			name = inner;
	}
	m->whole = rfl_ncu__is_whole(name, &m->unit);
	m->legacy = rfl_metric_is_legacy(name.at, name.len);
	m->id = rfl_capture_metric_id(n->i.b, name.at, name.len, m->unit.base);
	m->hidden = rfl_capture__is_hidden(n->i.b, m->id);
	if (m->unit.kind != RFL_NCU_UNIT_UNKNOWN || m->id < 0 || m->hidden)
		return;
	/* A metric in a formula needs a known unit. For other metrics, warn once per unit. */
	m->refused = rfl_formulas_slot(n->i.b->formulas, name.at, name.len) >= 0;
	if (!m->refused)
		(void)rfl_keys_add(&n->units_warned, n->i.arena, unit.at, unit.len, &added);
	if (!m->refused && added)
		rfl_import_warn(&n->i, "'%s' is not a known unit; values are not converted",
				m->unit_text.at);
}

/* --- cells ----------------------------------------------------------------------------------- */

static void give_missing(struct rfl_ncu *n, const struct rfl_ncu_metric *m)
{
	n->legacy += m->legacy;
	if (m->legacy && !n->legacy_name)
		n->legacy_name = m->name.at;
	if (m->id >= 0)
		(void)rfl_capture_metric(n->i.b, m->id, NAN, RFL_VALID_UNAVAILABLE, -1,
					 m->legacy ? "an nvprof metric that ncu does not have"
						   : "ncu printed no value (n/a)");
}

/* Half a unit of the last printed digit, in the base unit. */
static double half_digit(const struct rfl_ncu_metric *m, int decimals)
{
	return 0.5 * pow(10, m->unit.exponent - decimals);
}

/* Count a rounded value, and describe the rounding in m->rounded. */
static void take_rounded(struct rfl_ncu *n, struct rfl_ncu_metric *m,
			 const struct rfl_ncu_number *number)
{
	double relative = half_digit(m, number->decimals) / fabs(number->value);
	char half[RFL_NUM_MAX];

	n->rounded++;
	if (isfinite(relative) && relative > n->worst)
		n->worst = relative;
	if (m->rounded && m->decimals == number->decimals)
		return; /* most cells of a metric have the same number of decimals */
	m->decimals = number->decimals;
	m->rounded = rfl_arena_printf(
		n->i.arena, "printed in %s with %d decimals: +-%s %s per launch", m->unit_text.at,
		m->decimals, rfl_num_exact(0.5 * pow(10, -m->decimals), half), m->unit_text.at);
}

/* Handle a second value of a metric in one launch. */
static enum rfl_rc given_twice(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span cell,
			       const char *column)
{
	bool wide = n->table.layout == RFL_NCU_WIDE, two_names = false;
	const struct rfl_ncu_metric *all = wide ? n->table.metrics : n->metrics;
	size_t count = wide ? n->table.ncolumns : n->nmetrics;

	/* The table may have the metric as sm__ and as smsp__, perhaps from different passes. */
	for (size_t i = 0; i < count && !two_names; i++)
		two_names = all[i].name.at && all[i].id == m->id &&
			    strcmp(all[i].name.at, m->name.at) != 0;
	if (!two_names && (m->launch == n->launches || wide))
		return rfl_import_bad_row(&n->i, column, "'%s' has a second value, '%.*s %s'",
					  m->name.at, RFL_SPAN_ARG(cell), m->unit_text.at);
	if (!m->warned)
		rfl_import_warn(&n->i,
				"'%s' of section '%s', '%.*s %s', differs from the value %s: the "
				"first value is used",
				m->name.at, m->section.at, RFL_SPAN_ARG(cell), m->unit_text.at,
				two_names ? "under another name" : "in another section");
	m->warned = true;
	return RFL_OK;
}

enum rfl_rc rfl_ncu__cell(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span cell,
			  double times, const char *column)
{
	/* the exponent of the smallest step of values, by kind of unit */
	static const int steps[] = {
		[RFL_NCU_UNIT_COUNT] = 0, [RFL_NCU_UNIT_TIME] = -9, [RFL_NCU_UNIT_RATE] = 0
	};
	const struct rfl_ncu_convention *c = &n->convention;
	const enum rfl_ncu_unit_kind kind = m->unit.kind;
	enum rfl_validity validity = RFL_VALID;
	const char *reason = NULL;

	if (m->id < 0) {
		cell = rfl_span_trim(cell);
		if (m->legacy && rfl_num_is_missing(cell.at, cell.len))
			give_missing(n, m);
		return RFL_OK;
	}
	struct rfl_ncu_number number = rfl_ncu_number_read(&n->convention, cell, m->whole,
							   m->unit.exponent, n->i.in->line);
	double value = number.value;
	if (m->hidden) {
		(void)rfl_capture_metric(n->i.b, m->id, value, RFL_VALID, -1, NULL);
		return RFL_OK;
	}
	if (number.what == RFL_NCU_MISSING) {
		give_missing(n, m);
		return RFL_OK;
	}
	if (number.what == RFL_NCU_CONTRADICTS)
		return rfl_import_bad_row(&n->i, column,
					  "'%.*s' has a different decimal sign from '%s' on line "
					  "%zu; run ncu with LC_ALL=C",
					  RFL_SPAN_ARG(cell), c->witness, c->witness_line);
	if (number.what != RFL_NCU_VALUE)
		return rfl_import_bad_row(&n->i, column, "'%.*s' is not a number (metric '%s')",
					  RFL_SPAN_ARG(cell), m->name.at);
	if (value < 0)
		return rfl_import_bad_row(&n->i, column, "'%.*s' is below 0 (metric '%s')",
					  RFL_SPAN_ARG(cell), m->name.at);
	if (m->refused)
		return rfl_import_bad_row(
			&n->i, n->table.layout == RFL_NCU_WIDE ? m->name.at : "Metric Unit",
			"'%s' is not a known unit (metric '%s'); run ncu with --print-units base",
			m->unit_text.at, m->name.at);
	if (m->whole && kind == RFL_NCU_UNIT_COUNT && times == 1 && value != floor(value) &&
	    !n->not_whole_warned) {
		n->not_whole_warned = true;
		rfl_import_warn(
			&n->i, "'%.*s' of '%s' is a fraction of a %s; check the decimal sign",
			RFL_SPAN_ARG(cell), m->name.at, m->unit.base[0] ? m->unit.base : "count");
	}
	/* The value is rounded if a unit of its last digit is larger than the smallest step. */
	if ((kind > RFL_NCU_UNIT_RATE || m->unit.exponent - number.decimals > steps[kind]) &&
	    half_digit(m, number.decimals) > EXACT_ENOUGH * fabs(value)) {
		if (n->i.options->strict)
			return rfl_import_bad_row(
				&n->i, column,
				"'%.*s %s' of '%s' is rounded; run ncu with --print-units base, or "
				"leave out --strict",
				RFL_SPAN_ARG(cell), m->unit_text.at, m->name.at);
		take_rounded(n, m, &number);
		validity = RFL_VALID_ESTIMATE;
		reason = m->rounded;
	}
	/* Multiply the averages of a summary, except rates, by the number of launches. Averages of
	 * counts have two decimals, but their sum is an integer. */
	if (times != 1 && (kind == RFL_NCU_UNIT_COUNT || kind == RFL_NCU_UNIT_TIME)) {
		value *= times;
		if (m->whole && kind == RFL_NCU_UNIT_COUNT &&
		    half_digit(m, number.decimals) * times < 0.5)
			value = round(value);
	}
	if (rfl_capture_metric(n->i.b, m->id, value, validity, -1, reason) == RFL_GIVEN_DIFFERS)
		return given_twice(n, m, cell, column);
	m->launch = n->launches;
	return RFL_OK;
}

/* --- the launch of a row --------------------------------------------------------------------- */

/* Read an integer: "17", or "17.0" from a data frame. */
static bool read_integer(struct rfl_span s, int64_t *ret)
{
	uint64_t value;

	s = rfl_span_trim(s);
	if (s.len > 2 && rfl_span_ends(s, ".0"))
		s.len -= 2;
	if (!rfl_import_integer(s, &value) || value > INT64_MAX)
		return false;
	*ret = (int64_t)value;
	return true;
}

/* Whether the row belongs to the open launch; if not, store its identity. Kernels of a summary have
 * no launch ID. */
static bool keep_identity(struct rfl_ncu *n)
{
	static const enum rfl_ncu_column columns[] = { RFL_NCU_PROCESS, RFL_NCU_ID,
						       RFL_NCU_KERNEL,  RFL_NCU_BLOCK,
						       RFL_NCU_GRID,    RFL_NCU_DEVICE,
						       RFL_NCU_CC };
	const size_t count = n->table.layout == RFL_NCU_SUMMARY ? RFL_ARRAY_LEN(columns) : 2;
	uint64_t identity = 0;

	for (size_t i = 0; i < count; i++) {
		const struct rfl_span f = rfl_ncu__field(n, columns[i]);

		identity = rfl_hash64(rfl_hash64(identity, f.at, f.len), "\n", 1);
	}
	const bool same = identity == n->identity;
	n->identity = identity;
	return (n->open || n->bad) && same;
}

/* Skip the rows of an invalid launch, with one warning. */
static enum rfl_rc refuse_launch(struct rfl_ncu *n, const char *column, struct rfl_span field,
				 const char *why)
{
	n->bad = true;
	n->bad_rows = 0;
	return rfl_import_bad_row(&n->i, column, "'%.*s' %s", RFL_SPAN_ARG(field), why);
}

static enum rfl_rc check_launch(struct rfl_ncu *n)
{
	bool summary = n->table.layout == RFL_NCU_SUMMARY, is_new;
	struct rfl_span id = rfl_ncu__field(n, RFL_NCU_ID);
	struct rfl_span process = rfl_ncu__field(n, RFL_NCU_PROCESS);
	struct rfl_span times = rfl_ncu__field(n, RFL_NCU_INVOCATIONS);
	struct rfl_ncu_convention convention =
		n->convention; /* a copy, which this cell may change */

	if (!summary && !read_integer(id, &n->id))
		return refuse_launch(n, "ID", id, "is not a launch ID");
	/* Without process IDs, equal launch IDs in two tables belong to different runs. */
	n->process = -(int64_t)n->tables;
	if (process.len > 0 && !read_integer(process, &n->process))
		return refuse_launch(n, "Process ID", process, "is not a process ID");
	const uint32_t at =
		rfl_keys_add(&n->processes, n->i.arena, &n->process, sizeof(n->process), &is_new);
	rfl_arena_reserve(n->i.arena, &n->summarized, &n->summarized_cap, at);
	if (is_new)
		n->summarized[at - 1] = summary;
	if (n->summarized[at - 1] != summary)
		return refuse_launch(
			n, "Process ID", process,
			summary ? "has individual launches in this file; keep one page "
				  "of a report"
				: "has a summary in this file; keep one page of a "
				  "report");
	if (!summary)
		return rfl_import_launch(&n->i, n->process, (uint64_t)n->id)
			       ? RFL_OK
			       : refuse_launch(n, "ID", id,
					       "is a launch that was already read; keep its rows "
					       "together, and one page of a report");
	struct rfl_ncu_number number = rfl_ncu_number_read(&convention, times, true, 0, 0);
	if (number.what != RFL_NCU_VALUE || !(number.value >= 1 && number.value < 1e15) ||
	    number.value != floor(number.value))
		return refuse_launch(n, "Invocations", times, "is not a launch count");
	n->invocations = number.value;
	if (rfl_import_launch(&n->i, n->process, n->identity))
		return RFL_OK;
	return refuse_launch(n, "Kernel Name", rfl_ncu__field(n, RFL_NCU_KERNEL),
			     "was already read; keep its rows together, and one page of a report");
}

/* Choose the formulas by the compute capability ("8.0") of the first launch and, on a wide page, by
 * its device name. */
static void choose_chip(struct rfl_ncu *n)
{
	char cc_text[sizeof(n->cc)], device[sizeof(n->device)], name[128];
	double cc;

	rfl_span_copy(rfl_span_trim(rfl_ncu__field(n, RFL_NCU_CC)), cc_text, sizeof(cc_text));
	rfl_span_copy(rfl_span_trim(rfl_ncu__field(n, RFL_NCU_DEVICE)), device, sizeof(device));
	if (n->launches > 0) {
		n->mixed_cc = n->mixed_cc || (cc_text[0] && strcmp(n->cc, cc_text) != 0);
		n->mixed_device = n->mixed_device || (device[0] && strcmp(n->device, device) != 0);
	}
	if (n->launches > 0 || n->chip_chosen)
		return;
	n->chip_chosen = true;
	memcpy(n->cc, cc_text, sizeof(cc_text));
	memcpy(n->device, device, sizeof(device));
	rfl_span_copy(rfl_import_cell(&n->i, n->table.display_name), name, sizeof(name));
	if (!rfl_span_number(rfl_span_of(n->cc), &cc) || !(cc >= 0 && cc < 100))
		cc = 0;
	n->chip = rfl_chip_of_device(name[0] ? name : NULL, (int)lround(10 * cc));
	rfl_capture_chip(n->i.b, n->chip ? n->chip->name : NULL, name[0] ? name : NULL);
}

enum rfl_rc rfl_ncu__launch(struct rfl_ncu *n)
{
	static const enum rfl_ncu_column columns[] = { RFL_NCU_KERNEL, RFL_NCU_BLOCK,
						       RFL_NCU_GRID };
	struct rfl_span texts[RFL_ARRAY_LEN(columns)];
	bool summary = n->table.layout == RFL_NCU_SUMMARY;

	if (keep_identity(n))
		return RFL_OK;
	n->open = n->bad = false;
	enum rfl_rc rc = check_launch(n);
	if (rc != RFL_OK || n->bad)
		return rc;
	choose_chip(n);
	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++) {
		struct rfl_span text = rfl_span_trim(rfl_ncu__field(n, columns[i]));

		if (i == 0 && text.len == 0)
			text = rfl_span_of(summary ? "(all kernels)" : "(no name)");
		texts[i] = rfl_ncu__keep(n, text);
	}
	rfl_capture_begin(n->i.b, RFL_RANGE_KERNEL, texts[0].at,
			  texts[1].len > 0 ? texts[1].at : NULL,
			  texts[2].len > 0 ? texts[2].at : NULL);
	n->open = true;
	n->launches++;
	if (summary)
		rfl_capture_launches(n->i.b, (int64_t)n->invocations);
	return RFL_OK;
}
