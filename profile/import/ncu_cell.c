/*
 * ncu_cell.c - the values of ncu's tables: number and unit to SI, what was rounded, what is
 * not there, what is there twice.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "profile/import/ncu_impl.h"
#include "profile/import/span.h"

#define EXACT_ENOUGH 1e-7 /* of the value: no rounding worth a word */

/* "dram__bytes_read.sum" in bytes: a count, not an average or a ratio. */
bool rfl_ncu__is_whole(struct rfl_span name, const struct rfl_ncu_unit *unit)
{
	if (!(unit->kind == RFL_NCU_UNIT_COUNT && unit->exponent == 0) &&
	    !(unit->kind == RFL_NCU_UNIT_TIME && unit->exponent == -9))
		return false;
	return rfl_span_has(name, "__") &&
	       (rfl_span_ends(name, ".sum") || rfl_span_ends(name, ".max") ||
		rfl_span_ends(name, ".min"));
}

/* "Duration (gpu__time_duration.sum)" of --print-metric-name label-name: what is in brackets. */
static struct rfl_span without_label(struct rfl_span name)
{
	size_t at = name.len;

	if (!rfl_span_ends(name, ")"))
		return name;
	while (at > 0 && name.at[at - 1] != '(')
		at--;
	if (at < 2 || name.at[at - 2] != ' ')
		return name;
	struct rfl_span inner = { .at = name.at + at, .len = name.len - at - 1 };

	return rfl_span_has(inner, "__") && !rfl_span_has(inner, " ") ? inner : name;
}

static const char *keep_text(struct rfl_ncu *n, struct rfl_span s)
{
	char *text = rfl_arena_array(n->arena, s.len + 1, 1);

	if (text)
		memcpy(text, s.at, s.len);
	return text;
}

/* Whether a formula names a metric, which then cannot be taken in a unit that is not known. */
static enum rfl_rc is_needed(const struct rfl_ncu *n, const struct rfl_ncu_metric *m, bool *ret,
			     struct rfl_err *err)
{
	struct rfl_span name =
		without_label((struct rfl_span){ .at = m->name, .len = m->name_len });
	struct rfl_formulas *f = NULL;
	enum rfl_rc rc = rfl_formulas_new(n->chip ? n->chip->name : "any", &f, err);

	if (rc == RFL_OK)
		*ret = rfl_formulas_slot(f, name.at, name.len) >= 0;
	rfl_formulas_free(f);
	return rc;
}

/* A unit that is not known: told once, where the values are of use to a reader only. */
static enum rfl_rc look_at_unit(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (m->unit.kind != RFL_NCU_UNIT_UNKNOWN || m->id < 0)
		return RFL_OK;
	rc = is_needed(n, m, &m->refused, err);
	if (rc != RFL_OK || m->refused || strstr(rfl_buf_str(&n->units_told), m->unit_text))
		return rc;
	rfl_buf_printf(&n->units_told, "%s\n", m->unit_text);
	rfl_import_warn(n->import, "'%s' is no unit that is known: values are kept as they are",
			m->unit_text);
	return RFL_OK;
}

enum rfl_rc rfl_ncu__metric_init(struct rfl_ncu *n, struct rfl_ncu_metric *m,
				 struct rfl_span section, struct rfl_span name,
				 struct rfl_span unit, struct rfl_err *err)
{
	*m = (struct rfl_ncu_metric){ .section = keep_text(n, section),
				      .name = keep_text(n, name),
				      .unit_text = keep_text(n, unit),
				      .section_len = section.len,
				      .name_len = name.len,
				      .unit_len = unit.len,
				      .unit = rfl_ncu_unit_parse(unit),
				      .next = SIZE_MAX,
				      .launch = -1,
				      .decimals = -1 };
	if (!m->section || !m->name || !m->unit_text)
		return rfl_ncu__no_memory(n, err);
	name = without_label(name);
	m->whole = rfl_ncu__is_whole(name, &m->unit);
	m->legacy = rfl_metric_is_legacy(name.at, name.len);
	m->id = rfl_capture_metric_id(n->builder, name.at, name.len, m->unit.base);
	return m->id == -2 ? rfl_ncu__no_memory(n, err) : look_at_unit(n, m, err);
}

/* --- precision ------------------------------------------------------------------------------- */

/* Half of the last digit as it was printed, in the base unit. */
static double half_digit(const struct rfl_ncu_metric *m, int decimals)
{
	return 0.5 * pow(10, m->unit.exponent - decimals);
}

/* Whether a figure lost digits: its last one is above the finest step that its unit has. */
static bool is_rounded(const struct rfl_ncu_metric *m, const struct rfl_ncu_number *number)
{
	static const int steps[] = { [RFL_NCU_UNIT_COUNT] = 0,
				     [RFL_NCU_UNIT_TIME] = -9,
				     [RFL_NCU_UNIT_RATE] = 0,
				     [RFL_NCU_UNIT_RATIO] = INT_MIN,
				     [RFL_NCU_UNIT_UNKNOWN] = INT_MIN };

	return m->unit.exponent - number->decimals > steps[m->unit.kind] &&
	       half_digit(m, number->decimals) > EXACT_ENOUGH * fabs(number->value);
}

/* The words for it, kept: most cells of a metric have as many decimals. */
static const char *rounded_reason(struct rfl_ncu *n, struct rfl_ncu_metric *m, int decimals)
{
	char half[RFL_NUM_MAX];

	if (m->rounded && m->decimals == decimals)
		return m->rounded;
	m->decimals = decimals;
	m->rounded = rfl_arena_printf(n->arena, "printed in %s with %d decimals: +-%s %s a launch",
				      m->unit_text, decimals,
				      rfl_num_exact(0.5 * pow(10, -decimals), half), m->unit_text);
	return m->rounded ? m->rounded : "rounded by its unit";
}

static enum rfl_rc refuse_rounded(struct rfl_ncu *n, const struct rfl_ncu_metric *m,
				  struct rfl_span cell, const char *column, struct rfl_err *err)
{
	return rfl_import_bad_row(n->import, column, err,
				  "'%.*s %s' of '%s' was rounded by its unit; run ncu with "
				  "--print-units base, or leave out --strict",
				  RFL_SPAN_ARG(cell), m->unit_text, m->name);
}

/* --- what cannot be read --------------------------------------------------------------------- */

static enum rfl_rc give_missing(struct rfl_ncu *n, const struct rfl_ncu_metric *m)
{
	if (m->legacy) {
		n->legacy++;
		if (n->legacy_name.len == 0)
			rfl_buf_puts(&n->legacy_name, m->name);
	}
	if (m->id >= 0)
		(void)rfl_capture_metric(
			n->builder, m->id, NAN, RFL_VALID_UNAVAILABLE, -1,
			m->legacy ? "a name of nvprof that no chip since Turing has: ncu prints "
				    "n/a for it"
				  : "ncu printed no value (n/a)");
	return RFL_OK;
}

static enum rfl_rc refuse_number(struct rfl_ncu *n, const struct rfl_ncu_metric *m,
				 struct rfl_span cell, bool contradicts, const char *column,
				 struct rfl_err *err)
{
	const struct rfl_ncu_convention *c = &n->convention;

	if (!contradicts)
		return rfl_import_bad_row(n->import, column, err,
					  "'%.*s' is not a number (metric '%s')",
					  RFL_SPAN_ARG(cell), m->name);
	return rfl_import_bad_row(
		n->import, column, err,
		"'%.*s' takes the other decimal sign than '%s' on line %zu: a file "
		"has one; run ncu with LC_ALL=C",
		RFL_SPAN_ARG(cell), c->witness, c->witness_line);
}

/* A metric that a formula names, in a unit that cannot be converted. */
static enum rfl_rc refuse_unit(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_err *err)
{
	const char *column = n->table.layout == RFL_NCU_WIDE ? m->name : "Metric Unit";

	return rfl_import_bad_row(n->import, column, err,
				  "'%s' is no unit that is known (metric '%s'); run ncu with "
				  "--print-units base",
				  m->unit_text, m->name);
}

static void warn_not_whole(struct rfl_ncu *n, const struct rfl_ncu_metric *m, struct rfl_span cell)
{
	if (n->not_whole_warned)
		return;
	n->not_whole_warned = true;
	rfl_import_warn(n->import,
			"'%.*s' of '%s' is read as a fraction of a %s: is its decimal sign "
			"understood?",
			RFL_SPAN_ARG(cell), m->name, m->unit.base[0] ? m->unit.base : "count");
}

/* --- giving ---------------------------------------------------------------------------------- */

/* Averages of a summary stand for all launches, unless they are rates. */
static double over_launches(const struct rfl_ncu_metric *m, double value, double half, double times)
{
	double total = value * times;

	if (m->unit.kind != RFL_NCU_UNIT_COUNT && m->unit.kind != RFL_NCU_UNIT_TIME)
		return value;
	/* The average of counts was cut to two decimals; their sum is whole. */
	if (m->whole && m->unit.kind == RFL_NCU_UNIT_COUNT && half * times < 0.5)
		return round(total);
	return total;
}

/* Whether the table has it as sm__ and as smsp__, which other passes may have counted. */
static bool has_two_names(const struct rfl_ncu *n, const struct rfl_ncu_metric *m)
{
	bool wide = n->table.layout == RFL_NCU_WIDE;
	const struct rfl_ncu_metric *other = wide ? n->table.metrics : n->metrics;
	size_t left = wide ? n->table.ncolumns : n->nmetrics;

	while (left > 0 &&
	       (!other->name || other->id != m->id || strcmp(other->name, m->name) == 0)) {
		other++;
		left--;
	}
	return left > 0;
}

/* A second value for a metric of one launch. */
static enum rfl_rc given_twice(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span cell,
			       const char *column, struct rfl_err *err)
{
	bool two_names = has_two_names(n, m);

	if (!two_names && (m->launch == n->launches || n->table.layout == RFL_NCU_WIDE))
		return rfl_import_bad_row(n->import, column, err,
					  "'%s' is there twice for one launch, now as '%.*s %s': "
					  "the values differ",
					  m->name, RFL_SPAN_ARG(cell), m->unit_text);
	if (!m->warned)
		rfl_import_warn(n->import,
				"'%s' of section '%s', '%.*s %s', differs from what another "
				"%s says: the first is taken",
				m->name, m->section, RFL_SPAN_ARG(cell), m->unit_text,
				two_names ? "name of it" : "section");
	m->warned = true;
	return RFL_OK;
}

static void count_rounded(struct rfl_ncu *n, const struct rfl_ncu_metric *m,
			  const struct rfl_ncu_number *number)
{
	double relative = half_digit(m, number->decimals) / fabs(number->value);

	n->rounded++;
	if (isfinite(relative) && relative > n->worst)
		n->worst = relative;
}

enum rfl_rc rfl_ncu__cell(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span cell,
			  double times, const char *column, struct rfl_err *err)
{
	enum rfl_validity validity = RFL_VALID;
	const char *reason = NULL;
	struct rfl_ncu_number number;
	enum rfl_given given;
	double value;

	if (m->id < 0)
		return m->legacy && rfl_ncu_is_missing(cell) ? give_missing(n, m) : RFL_OK;
	number = rfl_ncu_number_read(&n->convention, cell, m->whole, m->unit.exponent,
				     rfl_input_line_number(n->import->in));
	if (number.what == RFL_NCU_MISSING)
		return give_missing(n, m);
	if (number.what != RFL_NCU_VALUE)
		return refuse_number(n, m, cell, number.what == RFL_NCU_CONTRADICTS, column, err);
	if (number.value < 0)
		return rfl_import_bad_row(n->import, column, err,
					  "'%.*s' is below 0, which no counter is (metric '%s')",
					  RFL_SPAN_ARG(cell), m->name);
	if (m->refused)
		return refuse_unit(n, m, err);
	if (m->whole && m->unit.kind == RFL_NCU_UNIT_COUNT && times == 1 &&
	    number.value != floor(number.value))
		warn_not_whole(n, m, cell);
	if (is_rounded(m, &number)) {
		if (n->import->options->strict)
			return refuse_rounded(n, m, cell, column, err);
		count_rounded(n, m, &number);
		validity = RFL_VALID_ESTIMATE;
		reason = rounded_reason(n, m, number.decimals);
	}
	value = number.value;
	if (times != 1)
		value = over_launches(m, value, half_digit(m, number.decimals), times);
	given = rfl_capture_metric(n->builder, m->id, value, validity, -1, reason);
	if (given == RFL_GIVEN_DIFFERS)
		return given_twice(n, m, cell, column, err);
	m->launch = n->launches;
	return RFL_OK;
}
