/*
 * runs_table.c - a summary of repeats, and a comparison of two sides, as tables: CSV and JSON with
 * all that is known, the others with the facts that name a configuration and those that vary.
 */
#include "report/runs.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ledger/facts.h"

#define DIGITS     5
#define FLAGS_MOST 32 /* of the runs themselves; there are about ten */

/* --- facts ----------------------------------------------------------------------------------- */

struct layout {
	bool people, efficiency;
	size_t nfacts;
	const struct rfl_fact *facts[RFL_FACTS_MAX];
	size_t ncolumns;
	struct rfl_column columns[RFL_FACTS_MAX + 24];
};

static bool is_int(const struct rfl_fact *f)
{
	return rfl_ledger_fields[f->column].kind == RFL_FIELD_INT;
}

static void add_fact(struct layout *l, const struct rfl_fact *f)
{
	l->facts[l->nfacts++] = f;
	l->columns[l->ncolumns++] =
		(struct rfl_column){ .key = f->name,
				     .title = f->title,
				     .kind = is_int(f) ? RFL_COLUMN_INT : RFL_COLUMN_TEXT };
}

static void add_columns(struct layout *l, const struct rfl_column *columns, size_t n)
{
	memcpy(&l->columns[l->ncolumns], columns, n * sizeof(*columns));
	l->ncolumns += n;
}

static void put_facts(struct rfl_table *t, const struct layout *l, const struct rfl_ledger_row *row)
{
	for (size_t i = 0; i < l->nfacts; i++) {
		const struct rfl_field *f = &rfl_ledger_fields[l->facts[i]->column];

		if (!rfl_field_known(f, row))
			rfl_table_null(t);
		else if (f->kind == RFL_FIELD_INT)
			rfl_table_int(t, *rfl_field_int_at(f, row));
		else
			rfl_table_text(t, *rfl_field_text_at(f, row));
	}
}

/* --- a summary ------------------------------------------------------------------------------- */

#define NAMING_FACTS 6 /* env, model, precision, batch, mode, layout: shown where one is known */

/* What is said of the values, after the facts. */
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
/* After them, where a configuration has one. */
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

static void put_flag_words(unsigned flags, struct rfl_buf *out)
{
	static const struct {
		unsigned flag;
		const char *word;
	} words[] = {
		{ RFL_REPEATS_UNSTABLE, "unstable" },
		{ RFL_REPEATS_DRIFT, "drift" },
		{ RFL_REPEATS_OUTLIER, "outlier" },
	};
	const char *before = "";

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (flags & words[i].flag) {
			rfl_buf_printf(out, "%s%s", before, words[i].word);
			before = " ";
		}
}

/* A word among the flags of runs, and how many have it. */
struct word {
	const char *text;
	size_t len, n;
	size_t last; /* the last run that does */
};

/* Count a word; those beyond the room for them are left out. */
static void count_word(struct word *words, size_t *nwords, const char *text, size_t len, size_t run)
{
	size_t i = 0;

	while (i < *nwords && (words[i].len != len || memcmp(words[i].text, text, len) != 0))
		i++;
	if (i == FLAGS_MOST)
		return;
	if (i == *nwords)
		words[(*nwords)++] = (struct word){ .text = text, .len = len, .last = SIZE_MAX };
	words[i].n += words[i].last != run;
	words[i].last = run;
}

/* "loader_bound:2 throttled:1" */
static void put_run_flags(const struct rfl_repeats_config *c, struct rfl_buf *out)
{
	struct word words[FLAGS_MOST];
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const char *at = c->runs[i].run->like->flags;

		for (; at && *at; at += strspn(at, " ")) {
			size_t len = strcspn(at, " ");

			if (len > 0)
				count_word(words, &n, at, len, i);
			at += len;
		}
	}
	for (size_t i = 0; i < n; i++)
		rfl_buf_printf(out, "%s%.*s:%zu", i ? " " : "", (int)words[i].len, words[i].text,
			       words[i].n);
}

/* "spread > 5 % drift; 2 of 3 runs loader_bound; 1 failed" */
static void put_all_flags(struct rfl_table *t, const struct rfl_repeats_config *c)
{
	struct rfl_buf words, more;
	size_t len;

	rfl_buf_init(&words, 0);
	rfl_buf_init(&more, 0);
	rfl_buf_puts(&words, c->flags & RFL_REPEATS_UNSTABLE ? "spread > 5 %" : "");
	put_flag_words(c->flags & ~(unsigned)RFL_REPEATS_UNSTABLE, &more);
	if (more.len)
		rfl_buf_printf(&words, "%s%s", words.len ? " " : "", rfl_buf_str(&more));
	rfl_buf_reset(&more);
	put_run_flags(c, &more); /* "loader_bound:2 not_warm:1" */
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
	put_flag_words(c->flags, &words);
	put_words(t, &words);
	put_run_flags(c, &words);
	put_words(t, &words);
	rfl_table_real(t, c->efficiency);
	put_values(t, c);
	rfl_buf_fini(&words);
}

static bool is_known(const struct rfl_repeats *r, const struct rfl_fact *f)
{
	for (size_t i = 0; i < r->n; i++)
		if (rfl_fact_known(f, r->configs[i].row))
			return true;
	return false;
}

static void choose_summary(const struct rfl_repeats *r, struct layout *l)
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
		add_fact(l, f);
	}
	add_columns(l, rest, nrest);
	for (size_t i = 0; i < r->n; i++)
		l->efficiency = l->efficiency || (l->people && !isnan(r->configs[i].efficiency));
	if (l->efficiency)
		add_columns(l, &of_efficiency, 1);
}

enum rfl_rc rfl_repeats_table(const struct rfl_repeats *r, enum rfl_format format, const char *more,
			      struct rfl_buf *out, struct rfl_err *err)
{
	struct layout l = { .people = format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD };
	struct rfl_table *t;
	enum rfl_rc rc;

	choose_summary(r, &l);
	t = rfl_table_new(l.columns, l.ncolumns);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	for (size_t i = 0; i < r->n; i++) {
		put_facts(t, &l, r->configs[i].row);
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

/* --- a comparison ---------------------------------------------------------------------------- */

static const struct rfl_column results[] = {
	{ .key = "n_a", .title = "n A", .kind = RFL_COLUMN_INT },
	{ .key = "geomean_a", .title = "Geomean A", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "n_b", .title = "n B", .kind = RFL_COLUMN_INT },
	{ .key = "geomean_b", .title = "Geomean B", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "ratio", .title = "B : A", .kind = RFL_COLUMN_REAL, .decimals = 3 },
	{ .key = "ratio_lo", .title = "from", .kind = RFL_COLUMN_REAL, .decimals = 3 },
	{ .key = "ratio_hi", .title = "to", .kind = RFL_COLUMN_REAL, .decimals = 3 },
	{ .key = "verdict", .title = "Verdict", .kind = RFL_COLUMN_TEXT },
	{ .key = "why", .title = "Why", .kind = RFL_COLUMN_TEXT },
};

static const struct rfl_ledger_row *row_of(const struct rfl_compared *p)
{
	return (p->a ? p->a : p->b)->row;
}

/* Is a fact known on one side, and do configurations differ in it? */
static bool is_telling(const struct rfl_comparison *c, const struct rfl_fact *f, bool *known)
{
	const struct rfl_ledger_row *first = NULL;
	bool varies = false;

	*known = false;
	for (size_t i = 0; i < c->n; i++) {
		const struct rfl_ledger_row *row = row_of(&c->pairs[i]);

		if (!rfl_fact_known(f, row))
			continue;
		*known = true;
		varies = varies || (first && !rfl_fact_same(f, first, row));
		first = row;
	}
	return varies;
}

static bool is_shown(const struct rfl_comparison *c, const struct rfl_fact *f, bool people)
{
	bool known, varies = is_telling(c, f, &known);

	if (f->role == RFL_FACT_WORK && !people)
		return true;
	if (f->role == RFL_FACT_NOTE || f->column == RFL_LEDGER_AT_micro_batch)
		return false;
	if (f->column == RFL_LEDGER_AT_model || f->column == RFL_LEDGER_AT_precision ||
	    f->column == RFL_LEDGER_AT_batch)
		return true;
	return people && known && varies;
}

static void choose_compared(const struct rfl_comparison *c, struct layout *l)
{
	static const struct rfl_column sides[] = {
		{ .key = "env_a", .title = "env_a" },
		{ .key = "env_b", .title = "env_b" },
		{ .key = "metric", .title = "metric" },
	};
	static const struct rfl_column differences = { .key = "differences",
						       .title = "differences" };

	for (size_t i = 0; i < rfl_nfacts; i++)
		if (is_shown(c, &rfl_facts[i], l->people))
			add_fact(l, &rfl_facts[i]);
	if (!l->people)
		add_columns(l, sides, RFL_ARRAY_LEN(sides));
	add_columns(l, results, RFL_ARRAY_LEN(results));
	if (!l->people)
		add_columns(l, &differences, 1);
}

/* Facts that both know, and in which a pair that can be compared differs. */
static bool differs(const struct rfl_compared *p, const struct rfl_fact *f)
{
	return p->a && p->b && f->role != RFL_FACT_WORK &&
	       !rfl_fact_same(f, p->a->row, p->b->row) && rfl_fact_known(f, p->a->row) &&
	       rfl_fact_known(f, p->b->row);
}

static void put_difference(const struct rfl_compared *p, const struct rfl_fact *f,
			   struct rfl_buf *out)
{
	char x[RFL_NUM_MAX], y[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s %s -> %s", f->name,
		       rfl_field_write(&rfl_ledger_fields[f->column], p->a->row, x),
		       rfl_field_write(&rfl_ledger_fields[f->column], p->b->row, y));
}

static void put_differences(struct rfl_table *t, const struct rfl_compared *p)
{
	struct rfl_buf list;

	rfl_buf_init(&list, 0);
	for (size_t i = 0; i < rfl_nfacts; i++)
		if (differs(p, &rfl_facts[i])) {
			rfl_buf_puts(&list, list.len ? "; " : "");
			put_difference(p, &rfl_facts[i], &list);
		}
	rfl_table_text(t, list.len ? rfl_buf_str(&list) : NULL);
	rfl_buf_fini(&list);
}

/* "differs: threads 2 -> 4 (9 of 9)", a line for each fact. */
static void note_differences(struct rfl_table *t, const struct rfl_comparison *c)
{
	size_t pairs = 0;

	for (size_t i = 0; i < c->n; i++)
		pairs += c->pairs[i].a && c->pairs[i].b;
	for (size_t k = 0; k < rfl_nfacts; k++) {
		const struct rfl_compared *first = NULL;
		struct rfl_buf text;
		size_t n = 0;
		bool alike = true;

		for (size_t i = 0; i < c->n; i++) {
			const struct rfl_compared *p = &c->pairs[i];

			if (!differs(p, &rfl_facts[k]))
				continue;
			first = first ? first : p;
			alike = alike && rfl_fact_same(&rfl_facts[k], first->a->row, p->a->row) &&
				rfl_fact_same(&rfl_facts[k], first->b->row, p->b->row);
			n++;
		}
		if (!first)
			continue;
		rfl_buf_init(&text, 0);
		put_difference(first, &rfl_facts[k], &text);
		rfl_table_note(t, "differs: %s (%zu of %zu%s)", rfl_buf_str(&text), n, pairs,
			       alike ? "" : ", in several ways; the first");
		rfl_buf_fini(&text);
	}
}

/* What the ratio is of; NaN where a value is not above 0. */
static double geometric_mean(const struct rfl_repeats_config *c)
{
	double sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += c->runs[i].value > 0 ? log(c->runs[i].value) : (double)NAN;
	return c->n ? exp(sum / (double)c->n) : (double)NAN;
}

static void put_side(struct rfl_table *t, const struct rfl_repeats_config *c)
{
	if (!c) {
		rfl_table_null(t);
		rfl_table_null(t);
		return;
	}
	rfl_table_int(t, (int64_t)c->n);
	rfl_table_real(t, geometric_mean(c));
}

static void put_pair(struct rfl_table *t, const struct rfl_comparison *c, const struct layout *l,
		     const struct rfl_compared *p)
{
	put_facts(t, l, row_of(p));
	if (!l->people) {
		rfl_table_text(t, p->a ? p->a->row->env : NULL);
		rfl_table_text(t, p->b ? p->b->row->env : NULL);
		rfl_table_text(t, c->metric->name);
	}
	put_side(t, p->a);
	put_side(t, p->b);
	rfl_table_real(t, p->ratio.value);
	rfl_table_real(t, p->ratio.lo);
	rfl_table_real(t, p->ratio.hi);
	rfl_table_text(t, rfl_speed_verdict_names[p->verdict]);
	rfl_table_text(t, p->why[0] ? p->why : NULL);
	if (!l->people)
		put_differences(t, p);
}

static void note_comparison(struct rfl_table *t, const struct rfl_comparison *c,
			    const char *const names[2], const char *lines)
{
	rfl_table_note(t,
		       "A: %s; B: %s; %s, geometric means; B : A is B's speed over A's, with its "
		       "95 %% interval; threshold %g %%",
		       names[0], names[1], c->metric->title, 100 * c->threshold);
	rfl_table_note(t, "%zu same, %zu faster, %zu slower, %zu unclear, %zu missing on one side",
		       c->count[RFL_SPEED_SAME], c->count[RFL_SPEED_FASTER],
		       c->count[RFL_SPEED_SLOWER], c->count[RFL_SPEED_UNCLEAR],
		       c->count[RFL_SPEED_MISSING]);
	note_differences(t, c);
	rfl_table_note_lines(t, lines);
}

enum rfl_rc rfl_comparison_table(const struct rfl_comparison *c, enum rfl_format format,
				 const char *const names[2], const char *lines, struct rfl_buf *out,
				 struct rfl_err *err)
{
	struct layout l = { .people = format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD };
	struct rfl_table *t;
	enum rfl_rc rc;

	choose_compared(c, &l);
	t = rfl_table_new(l.columns, l.ncolumns);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "compare: out of memory");
	for (size_t i = 0; i < c->n; i++)
		put_pair(t, c, &l, &c->pairs[i]);
	note_comparison(t, c, names, lines);
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
