/*
 * runs.c - tables for a summary of repeats and for a comparison. CSV and JSON have every field;
 * other formats have the fields that name a configuration and those that vary. Also writes a
 * summary as Markdown with one column per repeat.
 */
#include "report/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "report/page.h"

#define FLAGS_MOST   32 /* flags of individual runs; there are about ten */
#define NAMING_FACTS 6  /* env, model, precision, batch, mode, layout: shown if any is known */

/* Flags that select the columns of a table. */
enum { FOR_PEOPLE = 1, FOR_PROGRAMS = 2, EFFICIENCY = 4, BY = 8, SCALING = 16 };

static struct rfl_column column_of(const struct rfl_fact *f, size_t row_at)
{
	static const char *const titles[NAMING_FACTS] = { "Env",   "Model", "Precision",
							  "Batch", "Mode",  "Layout" };

	return (struct rfl_column){ .title = f < rfl_facts + NAMING_FACTS ? titles[f - rfl_facts]
									  : f->name,
				    .field = &rfl_ledger_fields[f->column],
				    .at = row_at,
				    .size = sizeof(struct rfl_ledger_row *) };
}

static const char *words_of(const struct rfl_buf *words)
{
	return words->len ? rfl_buf_str(words) : NULL;
}

/* A row of the table. */
struct summary {
	struct rfl_repeats_config c;
	const char *config_hash, *metric, *flags, *run_flags, *values;
	double ci95_lo, ci95_hi;
};
#define OF struct summary

static const struct rfl_column of_summary[] = {
	RFL_COLUMN(TEXT, OF, config_hash, "config_hash", "Hash", .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, OF, metric, "metric", "Metric", .when = FOR_PROGRAMS),
	RFL_COLUMN(INT, OF, c.stats.n, "n", "n"),
	RFL_COLUMN(REAL, OF, c.stats.mean, "mean", "Mean", .digits = 5),
	RFL_COLUMN(REAL, OF, c.stats.std, "std", "Std", .digits = 5),
	RFL_COLUMN(REAL, OF, c.stats.median, "median", "Median", .digits = 5, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, OF, ci95_lo, "ci95_lo", "CI95 from", .digits = 5, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, OF, ci95_hi, "ci95_hi", "CI95 to", .digits = 5, .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, OF, c.stats.ci95, "ci95", "CI95 +-", .digits = 5, .when = FOR_PEOPLE),
	RFL_COLUMN(REAL, OF, c.cv, "cv", "CV %", .decimals = 2, .scale = 0.01),
	RFL_COLUMN(REAL, OF, c.stats.median, "median", "Median", .digits = 5, .when = FOR_PEOPLE),
	RFL_COLUMN(REAL, OF, c.stats.min, "min", "Min", .digits = 5),
	RFL_COLUMN(REAL, OF, c.stats.max, "max", "Max", .digits = 5),
	RFL_COLUMN(REAL, OF, c.drift, "drift", "Drift %", .decimals = 2, .scale = 0.01),
	RFL_COLUMN(INT, OF, c.failed, "failed", "Failed", .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, OF, flags, "flags", "Flags"),
	RFL_COLUMN(TEXT, OF, run_flags, "run_flags", "Flags of runs", .when = FOR_PROGRAMS),
	RFL_COLUMN(REAL, OF, c.efficiency, "efficiency", "Efficiency %", .decimals = 1,
		   .scale = 0.01, .when = EFFICIENCY),
	RFL_COLUMN(TEXT, OF, values, "values", "Values", .when = FOR_PROGRAMS),
};
#undef OF

static void put_flags(unsigned flags, bool people, struct rfl_buf *out)
{
	static const struct {
		unsigned flag;
		const char *word, *said;
	} words[] = {
		{ RFL_REPEATS_UNSTABLE, "unstable", "spread > 5 %" },
		{ RFL_REPEATS_DRIFT, "drift", "drift" },
		{ RFL_REPEATS_OUTLIER, "outlier", "outlier" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (flags & words[i].flag)
			rfl_buf_printf(out, "%s%s",
				       !out->len ? ""
				       : people  ? "; "
						 : " ",
				       people ? words[i].said : words[i].word);
}

/* Write the flags of runs with the number of runs that have them: "loader_bound:2 throttled:1"; for
 * people "2 of 3 runs loader_bound; 1 of 3 runs throttled". */
static void put_run_flags(const struct rfl_repeats_config *c, bool people, struct rfl_buf *out)
{
	struct {
		struct rfl_span flag;
		size_t n, last; /* last run with this flag */
	} flags[FLAGS_MOST];
	size_t n = 0, k;

	for (size_t i = 0; i < c->n; i++) {
		const char *text = c->runs[i].run->like->flags;
		struct rfl_span rest = rfl_span_of(text ? text : ""), flag;

		while (rfl_span_next_word(&rest, &flag)) {
			for (k = 0; k < n && !rfl_span_same(flags[k].flag, flag);)
				k++;
			if (k == FLAGS_MOST || (k < n && flags[k].last == i))
				continue;
			if (k == n) {
				flags[n].flag = flag;
				flags[n++].n = 0;
			}
			flags[k].n++;
			flags[k].last = i;
		}
	}
	for (k = 0; k < n; k++)
		if (people)
			rfl_buf_printf(out, "%s%zu of %zu runs %.*s", out->len ? "; " : "",
				       flags[k].n, c->n, (int)flags[k].flag.len, flags[k].flag.at);
		else
			rfl_buf_printf(out, "%s%.*s:%zu", k ? " " : "", (int)flags[k].flag.len,
				       flags[k].flag.at, flags[k].n);
}

struct rfl_table *rfl_repeats_table(const struct rfl_repeats *r, bool people, const char *more)
{
	struct rfl_column columns[RFL_FACTS_MAX + RFL_ARRAY_LEN(of_summary)];
	struct rfl_facts_apart apart = { .first = { NULL } };
	unsigned given = people ? FOR_PEOPLE : FOR_PROGRAMS | EFFICIENCY;
	RFL_AUTO(buf) flags = { .len = 0 };
	RFL_AUTO(buf) run_flags = { .len = 0 };
	RFL_AUTO(buf) values = { .len = 0 };
	char number[RFL_NUM_MAX];
	struct rfl_table *t;
	size_t n = 0;

	/* People see the fields that name a configuration and those that vary, programs all that
	 * identify its speed. */
	for (size_t i = 0; i < r->n; i++) {
		rfl_facts_apart_add(&apart, r->configs[i].row);
		given |= isnan(r->configs[i].efficiency) ? 0 : EFFICIENCY;
	}
	for (size_t i = 0; i < rfl_nfacts; i++) {
		bool shown = (i >= NAMING_FACTS && rfl_facts_apart_told(&apart, i)) ||
			     (!people && (rfl_facts[i].identity & RFL_IDENTITY_SPEED));

		for (size_t k = 0; i < NAMING_FACTS && k < r->n && !shown; k++)
			shown = rfl_fact_known(&rfl_facts[i], r->configs[k].row);
		if (shown)
			columns[n++] = column_of(&rfl_facts[i], offsetof(struct summary, c.row));
	}
	memcpy(columns + n, of_summary, sizeof(of_summary));
	t = rfl_table_of(columns, n + RFL_ARRAY_LEN(of_summary), given);

	for (const struct rfl_repeats_config *c = r->configs; c < r->configs + r->n; c++) {
		rfl_buf_reset(&flags);
		rfl_buf_reset(&run_flags);
		rfl_buf_reset(&values);
		/* people read "spread > 5 %; drift; 2 of 3 runs loader_bound" */
		put_flags(c->flags, people, &flags);
		put_run_flags(c, people, people ? &flags : &run_flags);
		if (people && c->failed)
			rfl_buf_printf(&flags, "%s%zu failed", flags.len ? "; " : "", c->failed);
		for (size_t i = 0; !people && i < c->n; i++)
			rfl_buf_printf(&values, "%s%s", i ? " " : "",
				       rfl_num_exact(c->runs[i].value, number));
		const struct summary row = {
			.c = *c,
			.config_hash = c->row->config_hash,
			.metric = r->metric->name,
			.flags = words_of(&flags),
			.run_flags = words_of(&run_flags),
			.values = words_of(&values),
			.ci95_lo = c->stats.mean - c->stats.ci95,
			.ci95_hi = c->stats.mean + c->stats.ci95,
		};

		rfl_table_add(t, &row, 1, sizeof(row));
	}
	rfl_table_note(t,
		       "%s; Std: sample standard deviation; CI95: interval of the mean, from "
		       "Student's t; Drift: change from first to last repeat",
		       r->metric->title);
	if (given & EFFICIENCY)
		rfl_table_note(t, "Efficiency: n processes / (n x one process) with the same batch "
				  "per process (weak scaling)");
	rfl_table_note_lines(t, rfl_buf_str(&r->notes));
	rfl_table_note_lines(t, more);
	return t;
}

/* A row of the table. */
struct compared {
	const struct rfl_ledger_row *row; /* row of either side */
	const char *env[2], *by, *value[2], *metric, *verdict, *why, *differences;
	int64_t n[2];
	double geomean[2], scaling;
	struct rfl_speed_ratio ratio;
};
#define OF struct compared

static const struct rfl_column of_comparison[] = {
	RFL_COLUMN(TEXT, OF, env[0], "env_a", "Env A", .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, OF, env[1], "env_b", "Env B", .when = FOR_PROGRAMS),
	RFL_COLUMN(TEXT, OF, by, "by", "By", .when = FOR_PROGRAMS | BY),
	RFL_COLUMN(TEXT, OF, value[0], "value_a", "Value A", .when = FOR_PROGRAMS | BY),
	RFL_COLUMN(TEXT, OF, value[1], "value_b", "Value B", .when = FOR_PROGRAMS | BY),
	RFL_COLUMN(TEXT, OF, metric, "metric", "Metric", .when = FOR_PROGRAMS),
	RFL_COLUMN(INT, OF, n[0], "n_a", "n A"),
	RFL_COLUMN(REAL, OF, geomean[0], "geomean_a", "Geomean A", .digits = 5),
	RFL_COLUMN(INT, OF, n[1], "n_b", "n B"),
	RFL_COLUMN(REAL, OF, geomean[1], "geomean_b", "Geomean B", .digits = 5),
	RFL_COLUMN(REAL, OF, ratio.value, "ratio", "B : A", .decimals = 3),
	RFL_COLUMN(REAL, OF, ratio.lo, "ratio_lo", "from", .decimals = 3),
	RFL_COLUMN(REAL, OF, ratio.hi, "ratio_hi", "to", .decimals = 3),
	RFL_COLUMN(REAL, OF, scaling, "scaling", "Scaling", .decimals = 3, .when = SCALING),
	RFL_COLUMN(TEXT, OF, verdict, "verdict", "Verdict"),
	RFL_COLUMN(TEXT, OF, why, "why", "Why"),
	RFL_COLUMN(TEXT, OF, differences, "differences", "Differences", .when = FOR_PROGRAMS),
};
#undef OF

/* The row that is shown: with `by`, the row of the other value. */
static const struct rfl_ledger_row *row_of(const struct rfl_comparison *c,
					   const struct rfl_compared *p)
{
	return (p->a && !c->by ? p->a : p->b)->row;
}

static bool is_shown(const struct rfl_comparison *c, const struct rfl_fact *f, bool people)
{
	const struct rfl_ledger_row *first = NULL;
	bool varies = false;

	if (f == c->by || (c->by && f->column == RFL_LEDGER_AT_env) ||
	    (!people &&
	     (f->identity == RFL_IDENTITY_BOTH || (c->by && f->identity == RFL_IDENTITY_SPEED))))
		return true;
	if (!(f->identity & RFL_IDENTITY_BOTH) || f->column == RFL_LEDGER_AT_micro_batch)
		return false;
	if (f->column == RFL_LEDGER_AT_model || f->column == RFL_LEDGER_AT_precision ||
	    f->column == RFL_LEDGER_AT_batch)
		return true;
	for (size_t i = 0; i < c->n && people && !varies; i++) {
		const struct rfl_ledger_row *row = row_of(c, &c->pairs[i]);

		if (!(f->identity & rfl_facts_identity(row)) || !rfl_fact_known(f, row))
			continue;
		varies = first && !rfl_fact_same(f, first, row);
		first = row;
	}
	return varies;
}

/* The values of a field in the runs of a side: "5.10, 6.1". Only a field that identifies nothing
 * can have several. "": unknown. */
static const char *values_of(const struct rfl_repeats_config *side, const struct rfl_fact *f,
			     char number[RFL_NUM_MAX], struct rfl_buf *out)
{
	const struct rfl_field *field = &rfl_ledger_fields[f->column];
	const char *last = NULL, *next;

	if (f->identity != RFL_IDENTITY_NEITHER || side->n == 0)
		return rfl_field_write(field, side->row, number);
	for (rfl_buf_reset(out);; last = next) {
		next = NULL;
		for (size_t i = 0; i < side->n; i++) {
			const char *text = *rfl_field_text_at(field, side->runs[i].run->like);

			if (text && (!last || strcmp(text, last) > 0) &&
			    (!next || strcmp(text, next) < 0))
				next = text;
		}
		if (!next)
			return rfl_buf_str(out);
		rfl_buf_printf(out, "%s%s", last ? ", " : "", next);
	}
}

/* Write "threads 2 -> 4" if a field other than `by` is known on both sides of a pair and differs.
 * micro_batch follows from batch and accum; the speed of a burst does not depend on what identifies
 * a training run. @return whether it does */
static bool put_difference(const struct rfl_comparison *c, const struct rfl_compared *p,
			   const struct rfl_fact *f, struct rfl_buf *out)
{
	char numbers[2][RFL_NUM_MAX];
	struct rfl_buf lists[2] = { { .len = 0 }, { .len = 0 } };
	const char *a, *b;
	bool differs;

	if (!p->a || !p->b || f == c->by || f->column == RFL_LEDGER_AT_micro_batch ||
	    (f->identity && !(f->identity & rfl_facts_identity(p->a->row))))
		return false;
	a = values_of(p->a, f, numbers[0], &lists[0]);
	b = values_of(p->b, f, numbers[1], &lists[1]);
	differs = *a && *b && strcmp(a, b) != 0;
	if (differs)
		rfl_buf_printf(out, "%s%s %s -> %s", out->len ? "; " : "", f->name, a, b);
	rfl_buf_fini(&lists[0]);
	rfl_buf_fini(&lists[1]);
	return differs;
}

/* Writes one line per field: "differs: threads 2 -> 4 (9 of 9)". */
static void note_differences(struct rfl_table *t, const struct rfl_comparison *c)
{
	RFL_AUTO(buf) text = { .len = 0 };
	RFL_AUTO(buf) first = { .len = 0 };
	size_t pairs = 0;

	for (size_t i = 0; i < c->n; i++)
		pairs += c->pairs[i].a && c->pairs[i].b;
	for (size_t k = 0; k < rfl_nfacts; k++) {
		bool alike = true;
		size_t n = 0;

		rfl_buf_reset(&first);
		for (size_t i = 0; i < c->n; i++) {
			rfl_buf_reset(&text);
			if (!put_difference(c, &c->pairs[i], &rfl_facts[k], n ? &text : &first))
				continue;
			alike = alike &&
				(n == 0 || strcmp(rfl_buf_str(&text), rfl_buf_str(&first)) == 0);
			n++;
		}
		if (n)
			rfl_table_note(t, "differs: %s (%zu of %zu%s)", rfl_buf_str(&first), n,
				       pairs, alike ? "" : ", in several ways; first shown");
	}
}

struct rfl_table *rfl_comparison_table(const struct rfl_comparison *c, bool people,
				       const char *const names[2], const char *lines)
{
	struct rfl_column columns[RFL_FACTS_MAX + RFL_ARRAY_LEN(of_comparison)];
	/* rate B : A divided by batch B : A; for a time per step, the ratio itself */
	const bool scaling = c->by && c->by->column == RFL_LEDGER_AT_batch && c->metric->speed > 0;
	char numbers[2][RFL_NUM_MAX];
	RFL_AUTO(buf) differences = { .len = 0 };
	struct rfl_table *t;
	size_t n = 0;

	for (size_t i = 0; i < rfl_nfacts; i++)
		if (is_shown(c, &rfl_facts[i], people))
			columns[n++] = column_of(&rfl_facts[i], offsetof(struct compared, row));
	memcpy(columns + n, of_comparison, sizeof(of_comparison));
	t = rfl_table_of(columns, n + RFL_ARRAY_LEN(of_comparison),
			 (people ? FOR_PEOPLE : FOR_PROGRAMS) | (c->by ? BY : 0U) |
				 (scaling ? SCALING : 0U));
	for (const struct rfl_compared *p = c->pairs; p < c->pairs + c->n; p++) {
		struct compared row = {
			.row = row_of(c, p),
			.metric = c->metric->name,
			.ratio = p->ratio,
			.scaling = (double)NAN,
			.verdict = rfl_speed_verdict_names[p->verdict],
			.why = p->why[0] ? p->why : NULL,
		};

		if (scaling && p->a && p->b)
			row.scaling = p->ratio.value * (double)p->a->row->batch /
				      (double)p->b->row->batch;
		if (c->by)
			row.by = c->by->name;

		for (int i = 0; i < 2; i++) {
			const struct rfl_repeats_config *side = i == 0 ? p->a : p->b;
			double sum = 0; /* NaN if a value is not positive */

			for (size_t k = 0; side && k < side->n; k++)
				sum += side->runs[k].value > 0 ? log(side->runs[k].value)
							       : (double)NAN;
			row.env[i] = side ? side->row->env : NULL;
			if (c->by && side)
				row.value[i] = rfl_field_write(&rfl_ledger_fields[c->by->column],
							       side->row, numbers[i]);
			row.n[i] = side ? (int64_t)side->n : RFL_INT_UNKNOWN;
			row.geomean[i] = side && side->n ? exp(sum / (double)side->n) : (double)NAN;
		}
		rfl_buf_reset(&differences);
		for (size_t i = 0; i < rfl_nfacts; i++)
			(void)put_difference(c, p, &rfl_facts[i], &differences);
		row.differences = words_of(&differences);
		rfl_table_add(t, &row, 1, sizeof(row));
	}
	rfl_table_note(t,
		       "A: %s; B: %s; %s, geometric means; B : A is the speed of B divided by the "
		       "speed of A, with its 95 %% interval; threshold %g %%",
		       names[0], names[1], c->metric->title, 100 * c->threshold);
	if (scaling)
		rfl_table_note(t, "Scaling: B : A divided by batch B / batch A; 1: the rate grows "
				  "like the batch; batch A / batch B: it does not grow");
	if (c->unknown)
		rfl_table_note(t, "skipped %zu configuration%s without %s", c->unknown,
			       c->unknown == 1 ? "" : "s", c->by->name);
	if (c->alone)
		rfl_table_note(
			t,
			"skipped %zu configuration%s without a counterpart that differs only in %s",
			c->alone, c->alone == 1 ? "" : "s", c->by->name);
	rfl_table_note(t, "%zu same, %zu faster, %zu slower, %zu unclear, %zu missing on one side",
		       c->count[RFL_SPEED_SAME], c->count[RFL_SPEED_FASTER],
		       c->count[RFL_SPEED_SLOWER], c->count[RFL_SPEED_UNCLEAR],
		       c->count[RFL_SPEED_MISSING]);
	note_differences(t, c);
	rfl_table_note_lines(t, lines);
	return t;
}

#define RUNS_MOST 12 /* with more repeats, columns for single runs are omitted */

/* The columns of single runs: repeat numbers, or the order in time. */
struct run_columns {
	size_t n;
	int64_t runs[RUNS_MOST];
	bool numbered;
};

/* Use repeat numbers as columns if all runs have one up to 64, they are unique in each
 * configuration, and there are at most RUNS_MOST. */
static bool take_numbers(const struct rfl_repeats_config *const *configs, size_t n,
			 struct run_columns *to)
{
	uint64_t all = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t seen = 0;

		for (size_t k = 0; k < configs[i]->n; k++) {
			const int64_t number = configs[i]->runs[k].run->repeat;

			if (number < 1 || number > 64 || seen >> (number - 1) & 1)
				return false;
			seen |= UINT64_C(1) << (number - 1);
		}
		all |= seen;
	}
	for (int64_t number = 1; number <= 64; number++) {
		if (!(all >> (number - 1) & 1))
			continue;
		if (to->n == RUNS_MOST)
			return false;
		to->runs[to->n++] = number;
	}
	return true;
}

static struct run_columns columns_of(const struct rfl_repeats_config *const *configs, size_t n)
{
	struct run_columns to = { .n = 0 };
	size_t most = 0;

	to.numbered = take_numbers(configs, n, &to);
	for (size_t i = 0; !to.numbered && i < n; i++)
		most = configs[i]->n > most ? configs[i]->n : most;
	if (!to.numbered)
		to.n = most <= RUNS_MOST ? most : 0;
	for (size_t k = 0; !to.numbered && k < to.n; k++)
		to.runs[k] = (int64_t)k + 1;
	return to;
}

/* Two decimals, or three significant digits for a small number. */
static void put_number(struct rfl_table *t, double value)
{
	char text[RFL_NUM_MAX];

	if (value == 0 || fabs(value) >= 0.1)
		(void)rfl_num_print(text, sizeof(text), "%.2f", value);
	else
		rfl_num_people(value, 3, text);
	rfl_table_text(t, isnan(value) ? "-" : text); /* not NULL: the column stays */
}

/* @param names  of the configurations; NULL: they are named by the batch size, and mean and
 * deviation follow the runs */
static struct rfl_table *values_table(const struct rfl_repeats_config *const *configs, size_t n,
				      const char *const *names, struct rfl_page *page)
{
	const struct run_columns runs = columns_of(configs, n);
	struct rfl_column columns[RUNS_MOST + 4] = { { .title = "Configuration" } };
	struct rfl_table *t;
	size_t ncolumns = 1;

	if (!names)
		columns[0] = (struct rfl_column){ .title = "Batch Size", .kind = RFL_COLUMN_INT };
	for (size_t i = 0; i < runs.n; i++)
		columns[ncolumns++].title = rfl_page_printf(page, "Run %" PRId64, runs.runs[i]);
	if (runs.n == 0)
		columns[ncolumns++].title = "n";
	if (!names) {
		columns[ncolumns++].title = "Mean";
		columns[ncolumns++].title = "Std Dev";
	}
	for (size_t i = 1; i < ncolumns; i++)
		columns[i].kind = runs.n == 0 && i == 1 ? RFL_COLUMN_INT : RFL_COLUMN_REAL;
	t = rfl_table_new(columns, ncolumns);
	for (size_t i = 0; i < n; i++) {
		const struct rfl_repeats_config *c = configs[i];

		if (names)
			rfl_table_text(t, names[i]);
		else
			rfl_table_int(t, c->row->batch);
		for (size_t k = 0; k < runs.n; k++) {
			size_t run = 0;

			while (run < c->n &&
			       (runs.numbered ? c->runs[run].run->repeat != runs.runs[k]
					      : run != k))
				run++;
			put_number(t, run < c->n ? c->runs[run].value : (double)NAN);
		}
		if (runs.n == 0)
			rfl_table_int(t, (int64_t)c->n);
		for (int k = 0; !names && k < 2; k++)
			put_number(t, k == 0 ? c->stats.mean : c->stats.std);
	}
	return t;
}

struct rfl_table *rfl_repeats_values(const struct rfl_repeats *r, const char *const *names,
				     struct rfl_page *page)
{
	const struct rfl_repeats_config **several =
		rfl_arena_array(page->arena, r->n, sizeof(*several));
	const char **of = rfl_arena_array(page->arena, r->n, sizeof(*of));
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->configs[i].n > 1 && r->configs[i].n <= RUNS_MOST) {
			of[n] = names[i];
			several[n++] = &r->configs[i];
		}
	return values_table(several, n, of, page);
}

/* Write the configurations of one environment, model and precision, with one table per set of
 * options. */
static void put_block(const struct rfl_repeats_config *configs, size_t n, struct rfl_page *page)
{
	const struct rfl_repeats_config **same = rfl_arena_array(page->arena, n, sizeof(*same));
	bool *done = rfl_arena_array(page->arena, n, sizeof(*done));
	struct rfl_facts_apart apart = { .first = { NULL } };
	RFL_AUTO(buf) words = { .len = 0 };

	for (size_t i = 0; i < n; i++)
		rfl_facts_apart_add(&apart, configs[i].row);
	for (size_t i = 0; i < n; i++) {
		const struct rfl_ledger_row *row = configs[i].row;
		size_t nsame = 0;

		for (size_t k = i; k < n && !done[i]; k++) {
			size_t f = 0;

			while (f < rfl_nfacts &&
			       (!rfl_facts_apart_told(&apart, f) ||
				rfl_fact_same(&rfl_facts[f], row, configs[k].row)))
				f++;
			if (done[k] || f < rfl_nfacts)
				continue;
			same[nsame++] = &configs[k];
			done[k] = k > i;
		}
		if (nsame == 0)
			continue;
		/* "## resnet50 fp32 on lab_cpu, layout nhwc, threads 2" */
		rfl_buf_reset(&words);
		rfl_facts_apart_put(&apart, row, &words);
		rfl_page_section(page, "%s %s on %s%s%s", row->model, row->precision, row->env,
				 words.len ? ", " : "", rfl_buf_str(&words));
		rfl_page_table(page, "", values_table(same, nsame, NULL, page));
	}
}

static void put_lines(const char *lines, struct rfl_page *page)
{
	struct rfl_span rest = rfl_span_of(lines), line;

	while (rfl_span_next_line(&rest, &line))
		rfl_page_item(page, "%.*s", (int)line.len, line.at);
}

enum rfl_rc rfl_repeats_markdown(const struct rfl_repeats *r, const char *more, struct rfl_buf *out,
				 struct rfl_err *err)
{
	static const enum rfl_ledger_at block[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						    RFL_LEDGER_AT_precision };
	RFL_AUTOPTR(page) page = rfl_page_new(RFL_FORMAT_MD, "Repeats of each configuration", "");

	rfl_page_para(page,
		      "Values are %s; Run N is the repeat with this number or, if runs have no "
		      "number, the N-th in time; Std Dev is the sample standard deviation (n - 1).",
		      r->metric->title);
	for (size_t i = 0, next; i < r->n; i = next) {
		next = i + 1;
		while (next < r->n && rfl_ledger_same(block, RFL_ARRAY_LEN(block),
						      r->configs[i].row, r->configs[next].row))
			next++;
		put_block(&r->configs[i], next - i, page);
	}
	if (r->notes.len || *more) {
		rfl_page_section(page, "Notes");
		put_lines(more, page);
		put_lines(rfl_buf_str(&r->notes), page);
	}
	return rfl_page_write(page, out, err);
}
