/*
 * runs_md.c - a summary as Markdown with every repeat in a column of its own.
 */
#include "report/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"

#define RUNS_MOST 12 /* with more repeats the columns of single runs are left out */

/* Configurations that are one table: they differ in the batch size. */
struct part {
	size_t n;
	const struct rfl_repeats_config **configs;
	size_t ncolumns; /* of runs */
	int64_t runs[RUNS_MOST];
	bool numbered; /* runs[] are numbers of labels */
};

/* --- columns of runs ------------------------------------------------------------------------- */

static bool has_number(const struct part *p, int64_t number)
{
	for (size_t i = 0; i < p->ncolumns; i++)
		if (p->runs[i] == number)
			return true;
	return false;
}

/* Every run of a configuration has a number of its own. */
static bool is_numbered(const struct rfl_repeats_config *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->runs[i].run->repeat < 1)
			return false;
		for (size_t k = 0; k < i; k++)
			if (c->runs[k].run->repeat == c->runs[i].run->repeat)
				return false;
	}
	return true;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The numbers of the labels where they differ by them, else 1 to the most runs. */
static void choose_runs(struct part *p)
{
	size_t most = 0;

	p->numbered = true;
	p->ncolumns = 0;
	for (size_t i = 0; i < p->n; i++) {
		most = p->configs[i]->n > most ? p->configs[i]->n : most;
		p->numbered =
			p->numbered && p->configs[i]->n <= RUNS_MOST && is_numbered(p->configs[i]);
	}
	for (size_t i = 0; p->numbered && i < p->n; i++)
		for (size_t k = 0; k < p->configs[i]->n; k++) {
			int64_t number = p->configs[i]->runs[k].run->repeat;

			if (has_number(p, number))
				continue;
			if (p->ncolumns == RUNS_MOST) {
				p->numbered = false;
				break;
			}
			p->runs[p->ncolumns++] = number;
		}
	if (p->numbered) {
		qsort(p->runs, p->ncolumns, sizeof(*p->runs), by_number);
		return;
	}
	p->ncolumns = most <= RUNS_MOST ? most : 0;
	for (size_t i = 0; i < p->ncolumns; i++)
		p->runs[i] = (int64_t)i + 1;
}

static double value_of_run(const struct part *p, const struct rfl_repeats_config *c, size_t column)
{
	if (!p->numbered)
		return column < c->n ? c->runs[column].value : (double)NAN;
	for (size_t i = 0; i < c->n; i++)
		if (c->runs[i].run->repeat == p->runs[column])
			return c->runs[i].value;
	return NAN;
}

/* --- text ------------------------------------------------------------------------------------ */

/* Two decimals, unless they would leave next to nothing of a small number. */
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
		for (size_t k = 0; k < p->ncolumns; k++)
			put_number(out, value_of_run(p, c, k));
		if (p->ncolumns == 0)
			rfl_buf_printf(out, " %zu |", c->n);
		put_number(out, c->stats.mean);
		put_number(out, c->stats.std);
		rfl_buf_putc(out, '\n');
	}
}

/* Text of a file in a heading: one line, and nothing that Markdown reads. */
static void put_plain(struct rfl_buf *out, const char *text)
{
	for (; *text; text++)
		rfl_buf_putc(out, strchr("\n\r\t#*<>[]`|\\", *text) ? ' ' : *text);
}

/* "## resnet50 fp32 on lab_cpu, layout nhwc, threads 2" */
static void put_heading(const struct rfl_ledger_row *row, const struct rfl_facts_apart *apart,
			struct rfl_buf *out)
{
	struct rfl_buf words;

	rfl_buf_init(&words, 0);
	rfl_facts_apart_put(apart, row, &words);
	rfl_buf_puts(out, "\n## ");
	put_plain(out, row->model);
	rfl_buf_putc(out, ' ');
	put_plain(out, row->precision);
	rfl_buf_puts(out, " on ");
	put_plain(out, row->env);
	rfl_buf_puts(out, words.len ? ", " : "");
	put_plain(out, rfl_buf_str(&words));
	rfl_buf_puts(out, "\n\n");
	rfl_buf_fini(&words);
}

/* --- parts ----------------------------------------------------------------------------------- */

static bool same_block(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b)
{
	return strcmp(a->env, b->env) == 0 && strcmp(a->model, b->model) == 0 &&
	       strcmp(a->precision, b->precision) == 0;
}

static bool same_in_told(const struct rfl_facts_apart *apart, const struct rfl_ledger_row *a,
			 const struct rfl_ledger_row *b)
{
	for (size_t i = 0; i < rfl_nfacts; i++)
		if (rfl_facts_apart_told(apart, i) && !rfl_fact_same(&rfl_facts[i], a, b))
			return false;
	return true;
}

/* The configurations of one environment, model and precision: a table for each way to run them. */
static void put_block(const struct rfl_repeats_config *configs, size_t n, struct part *p,
		      bool *done, struct rfl_buf *out)
{
	struct rfl_facts_apart apart = { .first = { NULL } };

	for (size_t i = 0; i < n; i++)
		rfl_facts_apart_add(&apart, configs[i].row);
	for (size_t i = 0; i < n; i++) {
		if (done[i])
			continue;
		p->n = 0;
		for (size_t k = i; k < n; k++)
			if (!done[k] && same_in_told(&apart, configs[i].row, configs[k].row)) {
				p->configs[p->n++] = &configs[k];
				done[k] = true;
			}
		choose_runs(p);
		put_heading(configs[i].row, &apart, out);
		put_table(p, out);
	}
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
	const size_t begin = out->len;
	size_t next;

	if (!p.configs || !done) {
		free(p.configs);
		free(done);
		return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
	}
	rfl_buf_printf(
		out,
		"# Repeats of each configuration\n\nValues are %s; Run N is the repeat of that "
		"number, or the N-th in time where runs have none; Std Dev is the sample "
		"standard deviation (n - 1).\n",
		r->metric->title);
	for (size_t i = 0; i < r->n; i = next) {
		next = i + 1;
		while (next < r->n && same_block(r->configs[i].row, r->configs[next].row))
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
