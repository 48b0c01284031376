/*
 * table.c - a summary as a table: text and Markdown for people, CSV and JSON with all that
 * is known.
 */
#include "ledger/repeats.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ledger/facts.h"

#define NAMING_FACTS 6 /* env, model, precision, batch, mode, layout: shown where one is known */

/* What is said of the values, behind the facts. */
#define DIGITS 5
static const struct rfl_column for_people[] = {
	{ .key = "n", .title = "n", .kind = RFL_COLUMN_INT },
	{ .key = "mean", .title = "Mean", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "std", .title = "Std", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "ci95", .title = "CI95 +-", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "cv", .title = "CV %", .kind = RFL_COLUMN_REAL, .decimals = 2, .scale = 0.01 },
	{ .key = "median", .title = "Median", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "min", .title = "Min", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "max", .title = "Max", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "drift",
	  .title = "Drift %",
	  .kind = RFL_COLUMN_REAL,
	  .decimals = 2,
	  .scale = 0.01 },
	{ .key = "flags", .title = "Flags", .kind = RFL_COLUMN_TEXT },
};
/* Behind them, where a configuration has one. */
static const struct rfl_column of_efficiency = {
	.key = "efficiency",
	.title = "Efficiency %",
	.kind = RFL_COLUMN_REAL,
	.decimals = 1,
	.scale = 0.01,
};
static const struct rfl_column for_programs[] = {
	{ .key = "config_hash", .title = "config_hash", .kind = RFL_COLUMN_TEXT },
	{ .key = "metric", .title = "metric", .kind = RFL_COLUMN_TEXT },
	{ .key = "n", .title = "n", .kind = RFL_COLUMN_INT },
	{ .key = "mean", .title = "mean", .kind = RFL_COLUMN_REAL },
	{ .key = "std", .title = "std", .kind = RFL_COLUMN_REAL },
	{ .key = "median", .title = "median", .kind = RFL_COLUMN_REAL },
	{ .key = "ci95_lo", .title = "ci95_lo", .kind = RFL_COLUMN_REAL },
	{ .key = "ci95_hi", .title = "ci95_hi", .kind = RFL_COLUMN_REAL },
	{ .key = "cv", .title = "cv", .kind = RFL_COLUMN_REAL },
	{ .key = "min", .title = "min", .kind = RFL_COLUMN_REAL },
	{ .key = "max", .title = "max", .kind = RFL_COLUMN_REAL },
	{ .key = "drift", .title = "drift", .kind = RFL_COLUMN_REAL },
	{ .key = "failed", .title = "failed", .kind = RFL_COLUMN_INT },
	{ .key = "flags", .title = "flags", .kind = RFL_COLUMN_TEXT },
	{ .key = "run_flags", .title = "run_flags", .kind = RFL_COLUMN_TEXT },
	{ .key = "efficiency", .title = "efficiency", .kind = RFL_COLUMN_REAL },
	{ .key = "values", .title = "values", .kind = RFL_COLUMN_TEXT },
};

/* --- cells ----------------------------------------------------------------------------------- */

static void put_fact(struct rfl_table *t, const struct rfl_fact *f,
		     const struct rfl_ledger_row *row)
{
	char number[RFL_NUM_MAX];

	if (!rfl_fact_known(f, row))
		rfl_table_null(t);
	else if (rfl_ledger_fields[f->column].kind == RFL_FIELD_INT)
		rfl_table_int(t, (int64_t)rfl_field_number(&rfl_ledger_fields[f->column], row));
	else
		rfl_table_text(t, rfl_field_write(&rfl_ledger_fields[f->column], row, number));
}

/* "spread > 5 % drift; 2 of 3 runs loader_bound; 1 failed" */
static void put_all_flags(struct rfl_table *t, const struct rfl_repeats_config *c)
{
	struct rfl_buf words, more;
	size_t len;

	rfl_buf_init(&words, 0);
	rfl_buf_init(&more, 0);
	rfl_buf_puts(&words, c->flags & RFL_REPEATS_UNSTABLE ? "spread > 5 %" : "");
	rfl_repeats_flag_words(c->flags & ~(unsigned)RFL_REPEATS_UNSTABLE, &more);
	if (more.len)
		rfl_buf_printf(&words, "%s%s", words.len ? " " : "", rfl_buf_str(&more));
	rfl_buf_reset(&more);
	rfl_repeats_run_flags(c, &more); /* "loader_bound:2 not_warm:1" */
	for (const char *at = rfl_buf_str(&more); *at; at += len + (at[len] == ' ')) {
		const int word = (int)strcspn(at, ":");

		len = strcspn(at, " ");
		rfl_buf_printf(&words, "%s%.*s of %zu runs %.*s", words.len ? "; " : "",
			       (int)len - word - 1, at + word + 1, c->n, word, at);
	}
	if (c->failed)
		rfl_buf_printf(&words, "%s%zu failed", words.len ? "; " : "", c->failed);
	rfl_table_text(t, words.len ? rfl_buf_str(&words) : NULL);
	rfl_buf_fini(&words);
	rfl_buf_fini(&more);
}

static void put_for_people(struct rfl_table *t, const struct rfl_repeats_config *c)
{
	const struct rfl_stats *s = &c->stats;

	rfl_table_int(t, (int64_t)c->n);
	rfl_table_real(t, s->mean);
	rfl_table_real(t, s->std);
	rfl_table_real(t, s->ci95);
	rfl_table_real(t, c->cv);
	rfl_table_real(t, s->median);
	rfl_table_real(t, s->min);
	rfl_table_real(t, s->max);
	rfl_table_real(t, c->drift);
	put_all_flags(t, c);
}

static void put_values(struct rfl_table *t, const struct rfl_repeats_config *c)
{
	char number[RFL_NUM_MAX];
	struct rfl_buf values;

	rfl_buf_init(&values, 0);
	for (size_t i = 0; i < c->n; i++)
		rfl_buf_printf(&values, "%s%s", i ? " " : "",
			       rfl_num_exact(c->runs[i].value, number));
	rfl_table_text(t, c->n ? rfl_buf_str(&values) : NULL);
	rfl_buf_fini(&values);
}

static void put_words(struct rfl_table *t, struct rfl_buf *words)
{
	rfl_table_text(t, words->len ? rfl_buf_str(words) : NULL);
	rfl_buf_reset(words);
}

static void put_for_programs(struct rfl_table *t, const struct rfl_repeats_config *c,
			     const struct rfl_ledger_metric *metric)
{
	const struct rfl_stats *s = &c->stats;
	struct rfl_buf words;

	rfl_buf_init(&words, 0);
	rfl_table_text(t, c->row->config_hash);
	rfl_table_text(t, metric->name);
	rfl_table_int(t, (int64_t)c->n);
	rfl_table_real(t, s->mean);
	rfl_table_real(t, s->std);
	rfl_table_real(t, s->median);
	rfl_table_real(t, s->mean - s->ci95);
	rfl_table_real(t, s->mean + s->ci95);
	rfl_table_real(t, c->cv);
	rfl_table_real(t, s->min);
	rfl_table_real(t, s->max);
	rfl_table_real(t, c->drift);
	rfl_table_int(t, (int64_t)c->failed);
	rfl_repeats_flag_words(c->flags, &words);
	put_words(t, &words);
	rfl_repeats_run_flags(c, &words);
	put_words(t, &words);
	rfl_table_real(t, c->efficiency);
	put_values(t, c);
	rfl_buf_fini(&words);
}

/* --- columns --------------------------------------------------------------------------------- */

struct layout {
	bool people, efficiency;
	size_t nfacts;
	const struct rfl_fact *facts[RFL_FACTS_MAX];
	size_t ncolumns;
	struct rfl_column columns[96];
};

static struct rfl_column fact_column(const struct rfl_fact *f)
{
	return (struct rfl_column){ .key = f->name,
				    .title = f->title,
				    .kind = rfl_ledger_fields[f->column].kind == RFL_FIELD_INT
						    ? RFL_COLUMN_INT
						    : RFL_COLUMN_TEXT };
}

static bool is_known(const struct rfl_repeats *r, const struct rfl_fact *f)
{
	for (size_t i = 0; i < r->n; i++)
		if (rfl_fact_known(f, r->configs[i].row))
			return true;
	return false;
}

static void choose_columns(const struct rfl_repeats *r, struct layout *l)
{
	struct rfl_facts_apart apart = { .first = { NULL } };
	const struct rfl_column *rest = l->people ? for_people : for_programs;
	size_t nrest = l->people ? RFL_ARRAY_LEN(for_people) : RFL_ARRAY_LEN(for_programs);

	for (size_t i = 0; i < r->n; i++)
		rfl_facts_apart_add(&apart, r->configs[i].row);
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_fact *f = &rfl_facts[i];
		bool shown = i < NAMING_FACTS ? is_known(r, f) : rfl_facts_apart_told(&apart, i);

		if (l->people ? !shown : f->role == RFL_FACT_NOTE)
			continue;
		l->facts[l->nfacts++] = &rfl_facts[i];
		l->columns[l->ncolumns++] = fact_column(&rfl_facts[i]);
	}
	memcpy(&l->columns[l->ncolumns], rest, nrest * sizeof(*rest));
	l->ncolumns += nrest;
	for (size_t i = 0; i < r->n; i++)
		l->efficiency = l->efficiency || (l->people && !isnan(r->configs[i].efficiency));
	if (l->efficiency)
		l->columns[l->ncolumns++] = of_efficiency;
}

enum rfl_rc rfl_repeats_table(const struct rfl_repeats *r, enum rfl_format format, const char *more,
			      struct rfl_buf *out, struct rfl_err *err)
{
	struct layout l = { .people = format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD };
	struct rfl_table *t;
	enum rfl_rc rc;

	choose_columns(r, &l);
	t = rfl_table_new(l.columns, l.ncolumns);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	for (size_t i = 0; i < r->n; i++) {
		for (size_t k = 0; k < l.nfacts; k++)
			put_fact(t, l.facts[k], r->configs[i].row);
		if (l.people)
			put_for_people(t, &r->configs[i]);
		if (l.efficiency)
			rfl_table_real(t, r->configs[i].efficiency);
		if (!l.people)
			put_for_programs(t, &r->configs[i], r->metric);
	}
	rfl_table_note(t,
		       "%s; Std: sample standard deviation; CI95: of the mean, by Student's t; "
		       "Drift: first to last repeat",
		       r->metric->title);
	if (l.efficiency)
		rfl_table_note(t, "Efficiency: n processes over n times one process with the same "
				  "batch per process (weak scaling)");
	rfl_table_note_lines(t, rfl_buf_str(&r->notes));
	rfl_table_note_lines(t, more);
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
