/*
 * cmd_matrix_status.c - roofline matrix status: how much of a matrix a log folder has.
 */
#include "cli/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/matrix.h"
#include "cli/put.h"

struct status_args {
	struct rfl_opt_list operands, only;
	const char *log_dir;
	int format;
};

#define AT(member) offsetof(struct status_args, member)

static const struct rfl_opt opts[] = {
	RFL_MATRIX_LOG_DIR_ROW(AT(log_dir)),
	RFL_MATRIX_ONLY_ROW(AT(only)),
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};

/* What is known of one cell. */
struct cell_state {
	bool chosen;
	size_t asked, done, failed, surplus;
};

struct status {
	const struct rfl_matrix *m;
	const struct rfl_matrix_pick *pick;
	const struct rfl_matrix_coverage *cover;
	struct cell_state *cells;
	size_t done;
};

static void count(struct status *s)
{
	for (size_t i = 0; i < s->pick->n; i++) {
		const struct rfl_matrix_run *run = &s->cover->runs[s->pick->runs[i]];
		struct cell_state *c = &s->cells[run->cell];

		c->chosen = true;
		c->asked++;
		c->done += run->state == RFL_MATRIX_DONE;
		c->failed += run->state == RFL_MATRIX_FAILED;
		c->surplus += run->ok > 1 ? run->ok - 1 : 0;
		s->done += run->state == RFL_MATRIX_DONE;
	}
}

static enum rfl_rc no_memory(const struct status *s, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->m->path);
}

/* ---- model x batch, for each environment and precision ---- */

/* The cells of one table, in the order of the file. */
struct group {
	size_t n;
	size_t *cells;
	size_t nbatches;
	int64_t *batches; /* rising */
};

static bool same_group(const struct rfl_matrix_cell *a, const struct rfl_matrix_cell *b)
{
	return strcmp(a->env, b->env) == 0 && strcmp(a->precision, b->precision) == 0;
}

static void add_batch(struct group *g, int64_t batch)
{
	size_t at = g->nbatches;

	for (size_t i = 0; i < g->nbatches; i++)
		if (g->batches[i] == batch)
			return;
	for (; at > 0 && g->batches[at - 1] > batch; at--)
		g->batches[at] = g->batches[at - 1];
	g->batches[at] = batch;
	g->nbatches++;
}

/* The group that begins with a cell; empty when an earlier cell has begun it. */
static void collect(const struct status *s, size_t first, struct group *g)
{
	const struct rfl_matrix_cell *cells = s->m->cells;

	g->n = g->nbatches = 0;
	for (size_t i = 0; i < first; i++)
		if (s->cells[i].chosen && same_group(&cells[i], &cells[first]))
			return;
	for (size_t i = first; i < s->m->ncells; i++) {
		if (!s->cells[i].chosen || !same_group(&cells[i], &cells[first]))
			continue;
		g->cells[g->n++] = i;
		add_batch(g, cells[i].batch);
	}
}

static bool same_model(const struct status *s, size_t a, size_t b)
{
	return strcmp(s->m->cells[a].model, s->m->cells[b].model) == 0;
}

/* Cells of one model and batch differ in their options only: the k-th of them, from 0. */
static size_t variant_of(const struct status *s, const struct group *g, size_t i)
{
	size_t k = 0;

	for (size_t j = 0; j < i; j++)
		k += same_model(s, g->cells[j], g->cells[i]) &&
		     s->m->cells[g->cells[j]].batch == s->m->cells[g->cells[i]].batch;
	return k;
}

/* The cell of a model's k-th variant at a batch; NULL: the matrix does not ask for it. */
static const struct cell_state *find(const struct status *s, const struct group *g, size_t like,
				     size_t variant, int64_t batch)
{
	for (size_t i = 0; i < g->n; i++)
		if (same_model(s, g->cells[i], like) && s->m->cells[g->cells[i]].batch == batch &&
		    variant_of(s, g, i) == variant)
			return &s->cells[g->cells[i]];
	return NULL;
}

static void add_share(struct rfl_table *t, const struct cell_state *c)
{
	char text[48];

	if (!c) {
		rfl_table_text(t, "-");
		return;
	}
	(void)snprintf(text, sizeof(text), "%zu/%zu", c->done, c->asked);
	rfl_table_text(t, text);
}

static void add_row(struct rfl_table *t, const struct status *s, const struct group *g, size_t i,
		    size_t variant)
{
	const char *model = s->m->cells[g->cells[i]].model;
	char name[128];

	(void)snprintf(name, sizeof(name), variant ? "%s (%zu)" : "%s", model, variant + 1);
	rfl_table_text(t, name);
	for (size_t b = 0; b < g->nbatches; b++)
		add_share(t, find(s, g, g->cells[i], variant, g->batches[b]));
}

/* A row for each model and variant, where it comes first. */
static void add_rows(struct rfl_table *t, const struct status *s, const struct group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const size_t variant = variant_of(s, g, i);
		bool seen = false;

		for (size_t j = 0; j < i && !seen; j++)
			seen = same_model(s, g->cells[j], g->cells[i]) &&
			       variant_of(s, g, j) == variant;
		if (!seen)
			add_row(t, s, g, i, variant);
	}
}

static enum rfl_rc put_group(const struct status *s, const struct group *g, enum rfl_format format,
			     struct rfl_buf *out, struct rfl_err *err)
{
	const struct rfl_matrix_cell *first = &s->m->cells[g->cells[0]];
	struct rfl_column *columns = rfl_alloc_array(g->nbatches + 1, sizeof(*columns));
	char(*titles)[24] = rfl_alloc_array(g->nbatches + 1, sizeof(*titles));
	struct rfl_table *t = NULL;
	enum rfl_rc rc = RFL_OK;

	if (!columns || !titles) {
		rc = no_memory(s, err);
		goto done;
	}
	columns[0] = (struct rfl_column){ .key = "model", .title = "Model" };
	for (size_t b = 0; b < g->nbatches; b++) {
		(void)snprintf(titles[b], sizeof(titles[b]), "bs %" PRId64, g->batches[b]);
		columns[b + 1] = (struct rfl_column){ .key = titles[b], .title = titles[b] };
	}
	t = rfl_table_new(columns, g->nbatches + 1);
	if (!t) {
		rc = no_memory(s, err);
		goto done;
	}
	add_rows(t, s, g);
	rfl_buf_printf(out, "%s%s%s, %s\n\n", out->len ? "\n" : "",
		       format == RFL_FORMAT_MD ? "## " : "", first->env, first->precision);
	rc = rfl_table_render(t, format, out, err);
done:
	rfl_table_free(t);
	free(titles);
	free(columns);
	return rc;
}

/* ---- what is not there, and what is there twice ---- */

static const struct rfl_column gap_columns[] = {
	{ .key = "label", .title = "Not done", .kind = RFL_COLUMN_TEXT },
	{ .key = "status", .title = "Status", .kind = RFL_COLUMN_TEXT },
	{ .key = "reason", .title = "Reason", .kind = RFL_COLUMN_TEXT },
};

static const struct rfl_column twice_columns[] = {
	{ .key = "label", .title = "More than once", .kind = RFL_COLUMN_TEXT },
	{ .key = "ok", .title = "ok rows", .kind = RFL_COLUMN_INT },
	{ .key = "run_id", .title = "The last counts", .kind = RFL_COLUMN_TEXT },
};

static void label_of(const struct status *s, const struct rfl_matrix_run *run,
		     char label[RFL_LABEL_MAX + 1])
{
	rfl_matrix_label(&s->m->cells[run->cell], run->repeat, label);
}

static void add_gap(struct rfl_table *t, const struct status *s, const struct rfl_matrix_run *run)
{
	char label[RFL_LABEL_MAX + 1];

	if (run->state == RFL_MATRIX_DONE)
		return;
	label_of(s, run, label);
	rfl_table_text(t, label);
	rfl_table_text(t, run->row ? run->row->status : "missing");
	rfl_table_text(t, run->row ? run->row->error_text : "no row");
}

static void add_twice(struct rfl_table *t, const struct status *s, const struct rfl_matrix_run *run)
{
	char label[RFL_LABEL_MAX + 1];

	if (run->ok < 2)
		return;
	label_of(s, run, label);
	rfl_table_text(t, label);
	rfl_table_int(t, (int64_t)run->ok);
	rfl_table_text(t, run->row->run_id);
}

static enum rfl_rc
put_list(const struct status *s, enum rfl_format format, const struct rfl_column *columns,
	 void (*add)(struct rfl_table *, const struct status *, const struct rfl_matrix_run *),
	 struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(columns, 3);
	enum rfl_rc rc = RFL_OK;

	if (!t)
		return no_memory(s, err);
	for (size_t i = 0; i < s->pick->n; i++)
		add(t, s, &s->cover->runs[s->pick->runs[i]]);
	if (rfl_table_rows(t)) {
		rfl_buf_putc(out, '\n');
		rc = rfl_table_render(t, format, out, err);
	}
	rfl_table_free(t);
	return rc;
}

/* With nothing done at all a list of everything says nothing. */
static bool is_begun(const struct status *s)
{
	for (size_t i = 0; i < s->m->ncells; i++)
		if (s->cells[i].done || s->cells[i].failed)
			return true;
	return false;
}

static enum rfl_rc render_for_people(const struct status *s, enum rfl_format format,
				     struct rfl_buf *out, struct rfl_err *err)
{
	struct group g = { .cells = rfl_alloc_array(s->m->ncells, sizeof(*g.cells)),
			   .batches = rfl_alloc_array(s->m->ncells, sizeof(*g.batches)) };
	enum rfl_rc rc = g.cells && g.batches ? RFL_OK : no_memory(s, err);

	for (size_t i = 0; rc == RFL_OK && i < s->m->ncells; i++) {
		if (!s->cells[i].chosen)
			continue;
		collect(s, i, &g);
		if (g.n)
			rc = put_group(s, &g, format, out, err);
	}
	free(g.cells);
	free(g.batches);
	if (rc == RFL_OK && is_begun(s))
		rc = put_list(s, format, gap_columns, add_gap, out, err);
	if (rc == RFL_OK)
		rc = put_list(s, format, twice_columns, add_twice, out, err);
	rfl_buf_printf(out, "\n%s: %zu of %zu runs ok", s->m->name, s->done, s->pick->n);
	if (s->cover->foreign)
		rfl_buf_printf(out, "; %zu other row%s in this ledger", s->cover->foreign,
			       s->cover->foreign == 1 ? "" : "s");
	if (s->cover->stale)
		rfl_buf_printf(out, ", %zu with labels of this matrix, but other options",
			       s->cover->stale);
	rfl_buf_putc(out, '\n');
	return rc;
}

/* ---- for programs: a row per cell ---- */

static const struct rfl_column cell_columns[] = {
	{ .key = "cell", .kind = RFL_COLUMN_TEXT },
	{ .key = "env", .kind = RFL_COLUMN_TEXT },
	{ .key = "backend", .kind = RFL_COLUMN_TEXT },
	{ .key = "model", .kind = RFL_COLUMN_TEXT },
	{ .key = "precision", .kind = RFL_COLUMN_TEXT },
	{ .key = "batch", .kind = RFL_COLUMN_INT },
	{ .key = "runs", .kind = RFL_COLUMN_INT },
	{ .key = "ok", .kind = RFL_COLUMN_INT },
	{ .key = "missing", .kind = RFL_COLUMN_INT },
	{ .key = "failed", .kind = RFL_COLUMN_INT },
	{ .key = "surplus_rows", .kind = RFL_COLUMN_INT },
	{ .key = "reasons", .kind = RFL_COLUMN_TEXT },
};

/* "run2: oom: no memory left; run3: missing" */
static void write_reasons(const struct status *s, size_t cell, struct rfl_buf *out)
{
	for (size_t i = 0; i < s->pick->n; i++) {
		const struct rfl_matrix_run *run = &s->cover->runs[s->pick->runs[i]];

		if (run->cell != cell || run->state == RFL_MATRIX_DONE)
			continue;
		rfl_buf_printf(out, "%srun%d: %s", out->len ? "; " : "", run->repeat,
			       run->row ? run->row->status : "missing");
		if (run->row && run->row->error_text)
			rfl_buf_printf(out, ": %s", run->row->error_text);
	}
}

static enum rfl_rc render_for_programs(const struct status *s, enum rfl_format format,
				       struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(cell_columns, RFL_ARRAY_LEN(cell_columns));
	enum rfl_rc rc;

	if (!t)
		return no_memory(s, err);
	for (size_t i = 0; i < s->m->ncells; i++) {
		const struct rfl_matrix_cell *c = &s->m->cells[i];
		const struct cell_state *state = &s->cells[i];
		struct rfl_buf reasons;

		if (!state->chosen)
			continue;
		rfl_table_text(t, c->id);
		rfl_table_text(t, c->env);
		rfl_table_text(t, c->backend);
		rfl_table_text(t, c->model);
		rfl_table_text(t, c->precision);
		rfl_table_int(t, c->batch);
		rfl_table_int(t, (int64_t)state->asked);
		rfl_table_int(t, (int64_t)state->done);
		rfl_table_int(t, (int64_t)(state->asked - state->done - state->failed));
		rfl_table_int(t, (int64_t)state->failed);
		rfl_table_int(t, (int64_t)state->surplus);
		rfl_buf_init(&reasons, 0);
		write_reasons(s, i, &reasons);
		rfl_table_text(t, reasons.len ? rfl_buf_str(&reasons) : NULL);
		rfl_buf_fini(&reasons);
	}
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}

/* ---- the command ---- */

static enum rfl_rc put(struct rfl_cli *cli, const struct status *s, enum rfl_format format,
		       struct rfl_err *err)
{
	const bool people = format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD;
	struct rfl_buf out;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rc = people ? render_for_people(s, format, &out, err)
		    : render_for_programs(s, format, &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put(cli, &out, "status", err);
	rfl_buf_fini(&out);
	return rc;
}

static enum rfl_rc show(struct rfl_cli *cli, const struct status_args *a,
			const struct rfl_matrix *m, const struct rfl_matrix_pick *pick,
			const struct rfl_matrix_view *view, struct rfl_err *err)
{
	struct status s = {
		.m = m,
		.pick = pick,
		.cover = &view->cover,
		.cells = rfl_alloc_array(m->ncells, sizeof(*s.cells)),
	};
	enum rfl_rc rc;

	if (!s.cells)
		return no_memory(&s, err);
	count(&s);
	rc = put(cli, &s, (enum rfl_format)a->format, err);
	free(s.cells);
	if (rc)
		return rc;
	if (!view->ledger)
		rfl_log(RFL_LOG_INFO,
			"%s: there is no ledger yet; 'roofline matrix run %s --log-dir %s' makes "
			"one",
			view->path, m->path, a->log_dir);
	return s.done == pick->n ? RFL_OK : RFL_EFAILED; /* the answer is printed, and is no */
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct status_args *a = args;
	struct rfl_matrix_view view = { .ledger = NULL };
	struct rfl_matrix_pick pick = { 0 };
	struct rfl_matrix *m = NULL;
	enum rfl_rc rc = rfl_cli_matrix_load(cli, a->operands.items[0], &m, err);

	if (rc == RFL_OK)
		rc = rfl_cli_matrix_pick(m, &a->only, NULL, &pick, err);
	if (rc == RFL_OK)
		rc = rfl_cli_matrix_view(m, a->log_dir, &view, err);
	if (rc == RFL_OK)
		rc = show(cli, a, m, &pick, &view, err);
	rfl_matrix_view_fini(&view);
	rfl_matrix_pick_fini(&pick);
	rfl_matrix_free(m);
	return rc;
}

const struct rfl_cmd rfl_cmd_matrix_status = {
	.name = "matrix status",
	.summary = "how much of a matrix is done",
	.operands = "FILE",
	.description =
		"Holds a run matrix (docs/matrix.md) against metrics.csv of the log folder: for "
		"each "
		"environment and precision a table of models and batch sizes with the number of "
		"runs that are ok, then what is missing or failed and why, and what was run more "
		"than once. csv and json have a row for each cell. Exit code 0 when every run is "
		"ok, 1 when one is not or when there is no ledger yet.",
	.example = "roofline matrix status examples/matrix-laptop.json\n"
		   "roofline matrix status matrix.json --only lab_gpu --format md",
	.opts = opts,
	.args_size = sizeof(struct status_args),
	.operands_offset = AT(operands),
	.run = run,
};
