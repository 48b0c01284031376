/*
 * matrix_status.c - roofline matrix status: how much of a matrix a log folder has.
 */
#include "cli/cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/cmd/matrix.h"
#include "cli/cmd/matrix_gaps.h"
#include "cli/cmd/matrix_grid.h"
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

struct status {
	const struct rfl_matrix *m;
	const struct rfl_matrix_pick *pick;
	const struct rfl_matrix_coverage *cover;
	struct rfl_matrix_share *cells;
	bool *chosen; /* per run */
	size_t done;
};

static void count(struct status *s)
{
	for (size_t i = 0; i < s->pick->n; i++) {
		const struct rfl_matrix_run *run = &s->cover->runs[s->pick->runs[i]];
		struct rfl_matrix_share *c = &s->cells[run->cell];

		s->chosen[s->pick->runs[i]] = true;
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

/* ---- what is not there, and what is there twice ---- */

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

static enum rfl_rc put_gaps(const struct status *s, enum rfl_format format, struct rfl_buf *out,
			    struct rfl_err *err)
{
	struct rfl_matrix_gap *gaps = rfl_alloc_array(s->pick->n, sizeof(*gaps));
	size_t n = 0;
	enum rfl_rc rc;

	if (!gaps)
		return no_memory(s, err);
	for (size_t i = 0; i < s->pick->n; i++) {
		const struct rfl_matrix_run *run = &s->cover->runs[s->pick->runs[i]];

		if (run->state != RFL_MATRIX_DONE)
			gaps[n++] = (struct rfl_matrix_gap){
				.run = s->pick->runs[i],
				.status = run->row ? run->row->status : "missing",
				.reason = run->row ? run->row->error_text : "no row",
			};
	}
	if (n)
		rfl_buf_putc(out, '\n');
	rc = rfl_matrix_gaps_render(s->m, gaps, n, format, out, err);
	free(gaps);
	return rc;
}

static enum rfl_rc put_twice(const struct status *s, enum rfl_format format, struct rfl_buf *out,
			     struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(twice_columns, RFL_ARRAY_LEN(twice_columns));
	enum rfl_rc rc = RFL_OK;

	if (!t)
		return no_memory(s, err);
	for (size_t i = 0; i < s->pick->n; i++)
		add_twice(t, s, &s->cover->runs[s->pick->runs[i]]);
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
	enum rfl_rc rc = rfl_matrix_grid_render(s->m, s->cells, format, out, err);

	if (rc == RFL_OK && is_begun(s))
		rc = put_gaps(s, format, out, err);
	if (rc == RFL_OK)
		rc = put_twice(s, format, out, err);
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
	for (size_t i = cell; i < s->cover->nruns; i += s->m->ncells) {
		const struct rfl_matrix_run *run = &s->cover->runs[i];

		if (!s->chosen[i] || run->state == RFL_MATRIX_DONE)
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
		const struct rfl_matrix_share *state = &s->cells[i];
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
		rc = rfl_cli_put_as(cli, format, &out, "status", err);
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
		.chosen = rfl_alloc_array(view->cover.nruns, sizeof(*s.chosen)),
	};
	enum rfl_rc rc = s.cells && s.chosen ? RFL_OK : no_memory(&s, err);

	if (rc == RFL_OK) {
		count(&s);
		rc = put(cli, &s, (enum rfl_format)a->format, err);
	}
	free(s.cells);
	free(s.chosen);
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
