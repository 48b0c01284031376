/*
 * runs.c - tables for a summary of repeats and for a comparison. CSV and JSON have every fact;
 * other formats have the facts that name a configuration and those that vary. Also writes a summary
 * as Markdown with one column per repeat.
 */
#include "report/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"

#define FLAGS_MOST   32 /* flags of individual runs; there are about ten */
#define NAMING_FACTS 6  /* env, model, precision, batch, mode, layout: shown if any is known */

/* Flags that select the columns of a table. */
enum { FOR_PEOPLE = 1, FOR_PROGRAMS = 2, EFFICIENCY = 4, BY = 8, SCALING = 16 };

#define INT(type_, member_, key_, title_) \
	RFL_CELL(type_, member_), .key = (key_), .title = (title_), .kind = RFL_COLUMN_INT
#define REAL(type_, member_, key_, title_)                                                   \
	RFL_CELL(type_, member_), .key = (key_), .title = (title_), .kind = RFL_COLUMN_REAL, \
				  .digits = 5
#define TEXT(type_, member_, key_, title_) \
	RFL_CELL(type_, member_), .key = (key_), .title = (title_)

static struct rfl_column column_of(const struct rfl_fact *f, size_t row_at)
{
	return (struct rfl_column){ .title = f->title,
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
	const char *config_hash, *metric, *said, *flags, *run_flags, *values;
	double ci95_lo, ci95_hi;
};
#define OF struct summary

static const struct rfl_column of_summary[] = {
	{ TEXT(OF, config_hash, "config_hash", "Hash"), .when = FOR_PROGRAMS },
	{ TEXT(OF, metric, "metric", "Metric"), .when = FOR_PROGRAMS },
	{ INT(OF, c.n, "n", "n") },
	{ REAL(OF, c.stats.mean, "mean", "Mean") },
	{ REAL(OF, c.stats.std, "std", "Std") },
	{ REAL(OF, c.stats.median, "median", "Median"), .when = FOR_PROGRAMS },
	{ REAL(OF, ci95_lo, "ci95_lo", "CI95 from"), .when = FOR_PROGRAMS },
	{ REAL(OF, ci95_hi, "ci95_hi", "CI95 to"), .when = FOR_PROGRAMS },
	{ REAL(OF, c.stats.ci95, "ci95", "CI95 +-"), .when = FOR_PEOPLE },
	{ REAL(OF, c.cv, "cv", "CV %"), .decimals = 2, .scale = 0.01 },
	{ REAL(OF, c.stats.median, "median", "Median"), .when = FOR_PEOPLE },
	{ REAL(OF, c.stats.min, "min", "Min") },
	{ REAL(OF, c.stats.max, "max", "Max") },
	{ REAL(OF, c.drift, "drift", "Drift %"), .decimals = 2, .scale = 0.01 },
	{ INT(OF, c.failed, "failed", "Failed"), .when = FOR_PROGRAMS },
	{ TEXT(OF, said, "flags", "Flags"), .when = FOR_PEOPLE },
	{ TEXT(OF, flags, "flags", "Flags"), .when = FOR_PROGRAMS },
	{ TEXT(OF, run_flags, "run_flags", "Flags of runs"), .when = FOR_PROGRAMS },
	{ REAL(OF, c.efficiency, "efficiency", "Efficiency %"), .decimals = 1, .scale = 0.01,
	  .when = EFFICIENCY },
	{ TEXT(OF, values, "values", "Values"), .when = FOR_PROGRAMS },
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
			rfl_buf_printf(out, "%s%s", out->len ? " " : "",
				       people ? words[i].said : words[i].word);
}

/* Write the flags of runs with the number of runs that have them: "loader_bound:2 throttled:1"; for
 * people "2 of 3 runs loader_bound; 1 of 3 runs throttled". */
static void put_run_flags(const struct rfl_repeats_config *c, bool people, struct rfl_buf *out)
{
	struct {
		const char *text;
		size_t len, n;
		size_t last; /* last run with this flag */
	} words[FLAGS_MOST];
	size_t n = 0, k;

	for (size_t i = 0; i < c->n; i++) {
		const char *at = c->runs[i].run->like->flags;
		size_t len;

		for (at = at ? at + strspn(at, " ") : ""; *at; at += len, at += strspn(at, " ")) {
			len = strcspn(at, " ");
			for (k = 0; k < n; k++)
				if (words[k].len == len && memcmp(words[k].text, at, len) == 0)
					break;
			if (k == FLAGS_MOST || (k < n && words[k].last == i))
				continue;
			if (k == n) {
				words[n].text = at;
				words[n].len = len;
				words[n++].n = 0;
			}
			words[k].n++;
			words[k].last = i;
		}
	}
	for (k = 0; k < n; k++)
		if (people)
			rfl_buf_printf(out, "%s%zu of %zu runs %.*s", out->len ? "; " : "",
				       words[k].n, c->n, (int)words[k].len, words[k].text);
		else
			rfl_buf_printf(out, "%s%.*s:%zu", k ? " " : "", (int)words[k].len,
				       words[k].text, words[k].n);
}

struct rfl_table *rfl_repeats_table(const struct rfl_repeats *r, bool people, const char *more)
{
	struct rfl_column columns[RFL_FACTS_MAX + RFL_ARRAY_LEN(of_summary)];
	struct rfl_facts_apart apart = { .first = { NULL } };
	unsigned given = people ? FOR_PEOPLE : FOR_PROGRAMS | EFFICIENCY;
	struct rfl_buf said, flags, run_flags, values;
	char number[RFL_NUM_MAX];
	struct rfl_table *t;
	size_t n = 0;

	/* People see the facts that name a configuration and those that vary, programs all but
	 * notes. */
	for (size_t i = 0; i < r->n; i++) {
		rfl_facts_apart_add(&apart, r->configs[i].row);
		given |= isnan(r->configs[i].efficiency) ? 0 : EFFICIENCY;
	}
	for (size_t i = 0; i < rfl_nfacts; i++) {
		bool shown = rfl_facts[i].role != RFL_FACT_NOTE;

		if (people) {
			shown = i >= NAMING_FACTS && rfl_facts_apart_told(&apart, i);
			for (size_t k = 0; i < NAMING_FACTS && k < r->n && !shown; k++)
				shown = rfl_fact_known(&rfl_facts[i], r->configs[k].row);
		}
		if (shown)
			columns[n++] = column_of(&rfl_facts[i], offsetof(struct summary, c.row));
	}
	memcpy(columns + n, of_summary, sizeof(of_summary));
	t = rfl_table_of(columns, n + RFL_ARRAY_LEN(of_summary), given);

	rfl_buf_init(&said, 0);
	rfl_buf_init(&flags, 0);
	rfl_buf_init(&run_flags, 0);
	rfl_buf_init(&values, 0);
	for (const struct rfl_repeats_config *c = r->configs; c < r->configs + r->n; c++) {
		rfl_buf_reset(&said);
		rfl_buf_reset(&flags);
		rfl_buf_reset(&run_flags);
		rfl_buf_reset(&values);
		if (people) { /* "spread > 5 % drift; 2 of 3 runs loader_bound" */
			put_flags(c->flags, true, &said);
			put_run_flags(c, true, &said);
			if (c->failed)
				rfl_buf_printf(&said, "%s%zu failed", said.len ? "; " : "",
					       c->failed);
		} else {
			put_flags(c->flags, false, &flags);
			put_run_flags(c, false, &run_flags);
			for (size_t i = 0; i < c->n; i++)
				rfl_buf_printf(&values, "%s%s", i ? " " : "",
					       rfl_num_exact(c->runs[i].value, number));
		}
		const struct summary row = {
			.c = *c,
			.config_hash = c->row->config_hash,
			.metric = r->metric->name,
			.said = words_of(&said),
			.flags = words_of(&flags),
			.run_flags = words_of(&run_flags),
			.values = words_of(&values),
			.ci95_lo = c->stats.mean - c->stats.ci95,
			.ci95_hi = c->stats.mean + c->stats.ci95,
		};

		rfl_table_add(t, &row, 1, sizeof(row));
	}
	rfl_buf_fini(&said);
	rfl_buf_fini(&flags);
	rfl_buf_fini(&run_flags);
	rfl_buf_fini(&values);
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
	{ TEXT(OF, env[0], "env_a", "Env A"), .when = FOR_PROGRAMS },
	{ TEXT(OF, env[1], "env_b", "Env B"), .when = FOR_PROGRAMS },
	{ TEXT(OF, by, "by", "By"), .when = FOR_PROGRAMS | BY },
	{ TEXT(OF, value[0], "value_a", "Value A"), .when = FOR_PROGRAMS | BY },
	{ TEXT(OF, value[1], "value_b", "Value B"), .when = FOR_PROGRAMS | BY },
	{ TEXT(OF, metric, "metric", "Metric"), .when = FOR_PROGRAMS },
	{ INT(OF, n[0], "n_a", "n A") },
	{ REAL(OF, geomean[0], "geomean_a", "Geomean A") },
	{ INT(OF, n[1], "n_b", "n B") },
	{ REAL(OF, geomean[1], "geomean_b", "Geomean B") },
	{ REAL(OF, ratio.value, "ratio", "B : A"), .decimals = 3 },
	{ REAL(OF, ratio.lo, "ratio_lo", "from"), .decimals = 3 },
	{ REAL(OF, ratio.hi, "ratio_hi", "to"), .decimals = 3 },
	{ REAL(OF, scaling, "scaling", "Scaling"), .decimals = 3, .when = SCALING },
	{ TEXT(OF, verdict, "verdict", "Verdict") },
	{ TEXT(OF, why, "why", "Why") },
	{ TEXT(OF, differences, "differences", "Differences"), .when = FOR_PROGRAMS },
};
#undef OF

/* The row that is shown: with `by`, that of the other value. */
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
	    (!people && (f->role == RFL_FACT_WORK || (c->by && f->role == RFL_FACT_WAY))))
		return true;
	if (f->role == RFL_FACT_NOTE || f->column == RFL_LEDGER_AT_micro_batch)
		return false;
	if (f->column == RFL_LEDGER_AT_model || f->column == RFL_LEDGER_AT_precision ||
	    f->column == RFL_LEDGER_AT_batch)
		return true;
	for (size_t i = 0; i < c->n && people && !varies; i++) {
		const struct rfl_ledger_row *row = row_of(c, &c->pairs[i]);

		if (!rfl_fact_known(f, row))
			continue;
		varies = first && !rfl_fact_same(f, first, row);
		first = row;
	}
	return varies;
}

/* Return true if a fact other than `by` is known on both sides of a pair and differs. micro_batch
 * follows from batch and accum. */
static bool differs(const struct rfl_comparison *c, const struct rfl_compared *p,
		    const struct rfl_fact *f)
{
	return p->a && p->b && f != c->by && f->column != RFL_LEDGER_AT_micro_batch &&
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

/* Writes one line per fact: "differs: threads 2 -> 4 (9 of 9)". */
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

			if (!differs(c, p, &rfl_facts[k]))
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
			       alike ? "" : ", in several ways; first shown");
		rfl_buf_fini(&text);
	}
}

struct rfl_table *rfl_comparison_table(const struct rfl_comparison *c, bool people,
				       const char *const names[2], const char *lines)
{
	struct rfl_column columns[RFL_FACTS_MAX + RFL_ARRAY_LEN(of_comparison)];
	/* rate B : A divided by batch B : A; for a time per step, the ratio itself */
	const bool scaling = c->by && c->by->column == RFL_LEDGER_AT_batch && c->metric->speed > 0;
	char numbers[2][RFL_NUM_MAX];
	struct rfl_buf differences;
	struct rfl_table *t;
	size_t n = 0;

	for (size_t i = 0; i < rfl_nfacts; i++)
		if (is_shown(c, &rfl_facts[i], people))
			columns[n++] = column_of(&rfl_facts[i], offsetof(struct compared, row));
	memcpy(columns + n, of_comparison, sizeof(of_comparison));
	t = rfl_table_of(columns, n + RFL_ARRAY_LEN(of_comparison),
			 (people ? FOR_PEOPLE : FOR_PROGRAMS) | (c->by ? BY : 0U) |
				 (scaling ? SCALING : 0U));
	rfl_buf_init(&differences, 0);
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
			if (differs(c, p, &rfl_facts[i])) {
				rfl_buf_puts(&differences, differences.len ? "; " : "");
				put_difference(p, &rfl_facts[i], &differences);
			}
		row.differences = words_of(&differences);
		rfl_table_add(t, &row, 1, sizeof(row));
	}
	rfl_buf_fini(&differences);
	rfl_table_note(t,
		       "A: %s; B: %s; %s, geometric means; B : A is the speed of B over that of A, "
		       "with its 95 %% interval; threshold %g %%",
		       names[0], names[1], c->metric->title, 100 * c->threshold);
	if (scaling)
		rfl_table_note(t, "Scaling: B : A of the rate per sample of the batch; 1: the rate "
				  "grows like the batch; batch A / batch B: it does not grow");
	if (c->unknown)
		rfl_table_note(t, "skipped %zu configuration%s without %s", c->unknown,
			       c->unknown == 1 ? "" : "s", c->by->name);
	if (c->alone)
		rfl_table_note(t,
			       "skipped %zu configuration%s without a counterpart that differs "
			       "only in %s",
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

/* The configurations of one table, which differ only in batch size. */
struct part {
	size_t n;
	const struct rfl_repeats_config **configs;
	size_t ncolumns; /* of runs */
	int64_t runs[RUNS_MOST];
	bool numbered; /* runs[] has repeat numbers */
};

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Use repeat numbers as columns if all runs have them, they are unique in each configuration, and
 * there are at most RUNS_MOST. */
static bool take_numbers(struct part *p)
{
	p->ncolumns = 0;
	for (size_t i = 0; i < p->n; i++) {
		const struct rfl_repeats_config *c = p->configs[i];

		for (size_t k = 0; k < c->n; k++) {
			const int64_t number = c->runs[k].run->repeat;
			size_t at = 0;

			if (number < 1 || c->n > RUNS_MOST)
				return false;
			for (size_t before = 0; before < k; before++)
				if (c->runs[before].run->repeat == number)
					return false;
			while (at < p->ncolumns && p->runs[at] != number)
				at++;
			if (at == RUNS_MOST)
				return false;
			p->runs[at] = number;
			p->ncolumns += at == p->ncolumns;
		}
	}
	qsort(p->runs, p->ncolumns, sizeof(*p->runs), by_number);
	return true;
}

/* Write two decimals, or three significant digits for a small number. */
static void put_number(struct rfl_buf *out, double value)
{
	char text[RFL_NUM_MAX];

	if (isnan(value))
		rfl_buf_puts(out, " - |");
	else if (value == 0 || fabs(value) >= 0.1)
		rfl_buf_printf(out, " %.2f |", value);
	else
		rfl_buf_printf(out, " %s |", rfl_num_people(value, 3, text));
}

static void put_table(const struct part *p, struct rfl_buf *out)
{
	rfl_buf_puts(out, "| Batch Size |");
	for (size_t i = 0; i < p->ncolumns; i++)
		rfl_buf_printf(out, " Run %" PRId64 " |", p->runs[i]);
	rfl_buf_printf(out, "%s Mean | Std Dev |\n|---:|", p->ncolumns ? "" : " n |");
	for (size_t i = 0; i < p->ncolumns + (p->ncolumns ? 2 : 3); i++)
		rfl_buf_puts(out, "---:|");
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; i < p->n; i++) {
		const struct rfl_repeats_config *c = p->configs[i];

		rfl_buf_printf(out, "| %" PRId64 " |", c->row->batch);
		for (size_t k = 0; k < p->ncolumns; k++) {
			size_t run = 0;

			while (run < c->n &&
			       (p->numbered ? c->runs[run].run->repeat != p->runs[k] : run != k))
				run++;
			put_number(out, run < c->n ? c->runs[run].value : (double)NAN);
		}
		if (p->ncolumns == 0)
			rfl_buf_printf(out, " %zu |", c->n);
		put_number(out, c->stats.mean);
		put_number(out, c->stats.std);
		rfl_buf_putc(out, '\n');
	}
}

/* Write text for a heading: one line, without Markdown syntax. */
static void put_plain(struct rfl_buf *out, const char *text)
{
	for (; *text; text++)
		rfl_buf_putc(out, strchr("\n\r\t#*<>[]`|\\", *text) ? ' ' : *text);
}

/* Write the configurations of one environment, model and precision, with one table per set of
 * options. */
static void put_block(const struct rfl_repeats_config *configs, size_t n, struct part *p,
		      bool *done, struct rfl_buf *out)
{
	struct rfl_facts_apart apart = { .first = { NULL } };
	const struct rfl_ledger_row *row;
	struct rfl_buf words;

	rfl_buf_init(&words, 0);
	for (size_t i = 0; i < n; i++)
		rfl_facts_apart_add(&apart, configs[i].row);
	for (size_t i = 0; i < n; i++) {
		if (done[i])
			continue;
		p->n = 0;
		for (size_t k = i; k < n; k++) {
			size_t f = 0;

			while (f < rfl_nfacts &&
			       (!rfl_facts_apart_told(&apart, f) ||
				rfl_fact_same(&rfl_facts[f], configs[i].row, configs[k].row)))
				f++;
			if (done[k] || f < rfl_nfacts)
				continue;
			p->configs[p->n++] = &configs[k];
			done[k] = true;
		}
		p->numbered = take_numbers(p);
		if (!p->numbered) {
			p->ncolumns = 0;
			for (size_t k = 0; k < p->n; k++)
				if (p->configs[k]->n > p->ncolumns)
					p->ncolumns = p->configs[k]->n;
			p->ncolumns = p->ncolumns <= RUNS_MOST ? p->ncolumns : 0;
			for (size_t k = 0; k < p->ncolumns; k++)
				p->runs[k] = (int64_t)k + 1;
		}
		/* "## resnet50 fp32 on lab_cpu, layout nhwc, threads 2" */
		row = configs[i].row;
		rfl_buf_reset(&words);
		rfl_facts_apart_put(&apart, row, &words);
		rfl_buf_puts(out, "\n## ");
		put_plain(out, row->model);
		rfl_buf_putc(out, ' ');
		put_plain(out, row->precision);
		rfl_buf_puts(out, " on ");
		put_plain(out, row->env);
		rfl_buf_puts(out, words.len ? ", " : "");
		put_plain(out, rfl_buf_str(&words));
		rfl_buf_puts(out, "\n\n");
		put_table(p, out);
	}
	rfl_buf_fini(&words);
}

static void put_lines(const char *lines, struct rfl_buf *out)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		rfl_buf_puts(out, "- ");
		for (size_t i = 0; i < len; i++)
			rfl_buf_printf(out, "%s%c", strchr("*_<>[]`|\\#", lines[i]) ? "\\" : "",
				       lines[i]);
		rfl_buf_putc(out, '\n');
		lines += len + (lines[len] == '\n');
	}
}

enum rfl_rc rfl_repeats_markdown(const struct rfl_repeats *r, const char *more, struct rfl_buf *out,
				 struct rfl_err *err)
{
	struct part p = { .configs = rfl_alloc_array(r->n, sizeof(struct rfl_repeats_config *)) };
	bool *done = rfl_alloc_array(r->n, sizeof(*done));
	static const enum rfl_ledger_at block[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						    RFL_LEDGER_AT_precision };
	const size_t begin = out->len;
	size_t next;

	if (!p.configs || !done) {
		free(p.configs);
		free(done);
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	}
	rfl_buf_printf(out,
		       "# Repeats of each configuration\n\nValues are %s; Run N is the repeat with "
		       "this number or, if runs have no number, the N-th in time; Std Dev is the "
		       "sample standard deviation (n - 1).\n",
		       r->metric->title);
	for (size_t i = 0; i < r->n; i = next) {
		next = i + 1;
		while (next < r->n && rfl_ledger_same(block, RFL_ARRAY_LEN(block),
						      r->configs[i].row, r->configs[next].row))
			next++;
		put_block(&r->configs[i], next - i, &p, &done[i], out);
	}
	if (r->notes.len || *more) {
		rfl_buf_puts(out, "\n## Notes\n\n");
		put_lines(more, out);
		put_lines(rfl_buf_str(&r->notes), out);
	}
	rfl_text_mask_from(out, begin);
	free(p.configs);
	free(done);
	return rfl_buf_check(out, "summary", err);
}
