/* matrix_status.c - roofline matrix status: show how much of a matrix is done. */
#include "cli/cmd/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "ledger/repeats/row_index.h"

#define SHOWN 2 /* number of labels in a row of gaps; others are only counted */

struct status_args {
	struct rfl_opt_list operands, only;
	const char *log_dir;
	int format;
};

#define OPT(kind, member, ...) RFL_OPT(struct status_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(TEXT, log_dir, RFL_MATRIX_LOG_DIR),
	OPT(LIST, only, RFL_MATRIX_ONLY),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

/* ---- a row per model, a column per batch size ---- */

/* The order of cells in the grid. Cells with the same model and batch size differ only in their
 * options: they are variants, numbered from 0, and each variant has a row. */
enum { TABLE, MODEL, VARIANT, BATCH, KEYS };

struct place {
	const struct rfl_matrix_cell *cell;
	const struct rfl_matrix_share *share;
	int64_t keys[KEYS];
};

static int compare_int(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = 0;

	for (int k = 0; k < KEYS && order == 0; k++)
		order = compare_int(&x->keys[k], &y->keys[k]);
	return order ? order : (x->cell > y->cell) - (x->cell < y->cell);
}

/* Sort the selected cells by table and row; a matrix can have 100,000 cells. @param places one
 * element per cell; the first *n are set */
static void arrange(const struct rfl_matrix *m, const struct rfl_matrix_share *shares,
		    struct place *places, size_t *n)
{
	RFL_AUTOFREE struct rfl_matrix_alike *alike = rfl_matrix_alike(m);

	for (size_t i = 0; i < m->ncells; i++)
		if (shares[i].asked > 0)
			places[(*n)++] = (struct place){
				.cell = &m->cells[i],
				.share = &shares[i],
				.keys = { [TABLE] = (int64_t)alike[i].table,
					  [MODEL] = (int64_t)alike[i].model,
					  [BATCH] = m->cells[i].batch },
			};

	/* Sort by batch size first, which makes variants adjacent, then by variant. */
	qsort(places, *n, sizeof(*places), by_place);
	for (struct place *p = places + 1; p < places + *n; p++)
		if (p->keys[MODEL] == p[-1].keys[MODEL] && p->keys[BATCH] == p[-1].keys[BATCH])
			p->keys[VARIANT] = p[-1].keys[VARIANT] + 1;
	qsort(places, *n, sizeof(*places), by_place);
}

/* Render one table. */
static void put_grid(struct rfl_arena *arena, const struct place *places, size_t n,
		     enum rfl_format format, struct rfl_buf *out)
{
	int64_t *batches = rfl_arena_array(arena, n, sizeof(*batches));
	struct rfl_column *columns;
	struct rfl_table *t;
	size_t nbatches = 0;

	for (size_t i = 0; i < n; i++)
		batches[i] = places[i].cell->batch;
	qsort(batches, n, sizeof(*batches), compare_int);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || batches[i] != batches[nbatches - 1])
			batches[nbatches++] = batches[i];
	columns = rfl_arena_array(arena, nbatches + 1, sizeof(*columns));
	columns[0] = (struct rfl_column){ .key = "model", .title = "Model" };
	for (size_t b = 0; b < nbatches; b++)
		columns[b + 1].key = columns[b + 1].title =
			rfl_arena_printf(arena, "bs %" PRId64, batches[b]);
	t = rfl_table_new(columns, nbatches + 1);
	for (size_t at = 0; at < n;) {
		const struct place *first = &places[at];

		rfl_table_text(t, first->keys[VARIANT]
					  ? rfl_arena_printf(arena, "%s (%d)", first->cell->model,
							     (int)first->keys[VARIANT] + 1)
					  : first->cell->model);
		for (size_t b = 0; b < nbatches; b++) {
			if (at == n || places[at].keys[MODEL] != first->keys[MODEL] ||
			    places[at].keys[VARIANT] != first->keys[VARIANT] ||
			    places[at].keys[BATCH] != batches[b]) {
				rfl_table_text(t, "-");
				continue;
			}
			rfl_table_text(t, rfl_arena_printf(arena, "%zu/%zu", places[at].share->done,
							   places[at].share->asked));
			at++;
		}
	}
	rfl_buf_printf(out, "%s%s%s, %s\n\n", out->len ? "\n" : "",
		       format == RFL_FORMAT_MD ? "## " : "", places[0].cell->env,
		       places[0].cell->precision);
	rfl_table_finish(t, format, out);
}

void rfl_matrix_grid_render(const struct rfl_matrix *m, const struct rfl_matrix_share *shares,
			    enum rfl_format format, struct rfl_buf *out)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	struct place *places = rfl_arena_array(arena, m->ncells, sizeof(*places));
	size_t n = 0;

	arrange(m, shares, places, &n);
	for (size_t begin = 0, end; begin < n; begin = end) {
		for (end = begin; end < n && places[end].keys[TABLE] == places[begin].keys[TABLE];)
			end++;
		put_grid(arena, &places[begin], end - begin, format, out);
	}
}

/* ---- runs that are not done ---- */

static const struct rfl_column gap_columns[] = {
	{ .key = "labels", .title = "Not done" },
	{ .key = "runs", .title = "Runs", .kind = RFL_COLUMN_INT },
	{ .key = "status", .title = "Status" },
	{ .key = "reason", .title = "Reason" },
};

/* The gaps of one row. */
struct reason {
	const struct rfl_matrix_gap *first[SHOWN];
	size_t n;
};

void rfl_matrix_gaps_render(const struct rfl_matrix *m, const struct rfl_matrix_gap *gaps, size_t n,
			    enum rfl_format format, struct rfl_buf *out)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	struct reason *reasons = rfl_arena_array(arena, n, sizeof(*reasons));
	struct rfl_table *t;
	RFL_AUTO(texts) known = { .arena = NULL };
	RFL_AUTO(buf) text = { .len = 0 };

	if (n == 0)
		return;
	t = rfl_table_new(gap_columns, RFL_ARRAY_LEN(gap_columns));
	for (size_t i = 0, k; i < n; i++) {
		rfl_buf_reset(&text);
		rfl_buf_printf(&text, "%s: %s", gaps[i].status ? gaps[i].status : "",
			       gaps[i].reason ? gaps[i].reason : "");
		k = rfl_texts_put(&known, rfl_buf_str(&text));
		if (reasons[k].n++ < SHOWN)
			reasons[k].first[reasons[k].n - 1] = &gaps[i];
	}
	for (const struct reason *r = reasons; r < reasons + known.index.n; r++) {
		char label[RFL_LABEL_MAX + 1];

		rfl_buf_reset(&text); /* "lab_vgg16_fp32_bs2_run1, lab_vgg16_... and 7 more" */
		for (size_t i = 0; i < r->n && i < SHOWN; i++) {
			(void)rfl_cli_matrix_cell(m, r->first[i]->run, label);
			rfl_buf_printf(&text, "%s%s", i > 0 ? ", " : "", label);
		}
		if (r->n > SHOWN)
			rfl_buf_printf(&text, " and %zu more", r->n - SHOWN);
		rfl_table_text(t, rfl_buf_str(&text));
		rfl_table_int(t, (int64_t)r->n);
		rfl_table_text(t, r->first[0]->status);
		rfl_table_text(t, r->first[0]->reason);
	}
	rfl_table_finish(t, format, out);
}

struct status {
	const struct rfl_matrix *m;
	const struct rfl_matrix_pick *pick;
	const struct rfl_matrix_coverage *cover;
	struct rfl_matrix_share *shares; /* one for each cell */
	bool *chosen;                    /* one for each run */
	size_t done, failed;
};

static const struct rfl_column twice_columns[] = {
	{ .key = "label", .title = "Repeated runs" },
	{ .key = "ok", .title = "ok rows", .kind = RFL_COLUMN_INT },
	{ .key = "run_id", .title = "Row that counts" },
};

static bool has_row(const struct rfl_matrix_run *run)
{
	return run->ok + run->failed > 0;
}

static void render_for_people(struct rfl_cli *cli, const struct status *s, enum rfl_format format,
			      struct rfl_buf *out)
{
	struct rfl_matrix_gap *gaps = rfl_arena_array(cli->arena, s->pick->n, sizeof(*gaps));
	RFL_AUTOPTR(table) twice = rfl_table_new(twice_columns, RFL_ARRAY_LEN(twice_columns));
	size_t ngaps = 0;

	rfl_matrix_grid_render(s->m, s->shares, format, out);
	for (size_t i = 0; i < s->pick->n; i++) {
		const struct rfl_matrix_run *run = &s->cover->runs[s->pick->runs[i]];
		char label[RFL_LABEL_MAX + 1];

		if (run->state != RFL_MATRIX_DONE)
			gaps[ngaps++] = (struct rfl_matrix_gap){
				.run = s->pick->runs[i],
				.status = has_row(run) ? run->status : "missing",
				.reason = has_row(run) ? run->reason : "no row",
			};
		if (run->ok <= 1)
			continue;
		(void)rfl_cli_matrix_cell(s->m, s->pick->runs[i], label);
		rfl_table_text(twice, label);
		rfl_table_int(twice, (int64_t)run->ok);
		rfl_table_text(twice, run->run_id);
	}
	if (s->done || s->failed) { /* omit a list of all runs */
		rfl_buf_puts(out, ngaps ? "\n" : "");
		rfl_matrix_gaps_render(s->m, gaps, ngaps, format, out);
	}
	if (rfl_table_rows(twice)) {
		rfl_buf_putc(out, '\n');
		rfl_table_render(twice, format, out);
	}
	rfl_buf_printf(out, "\n%s: %zu of %zu runs ok", s->m->name, s->done, s->pick->n);
	if (s->cover->foreign)
		rfl_buf_printf(out, "; %zu other row%s in this ledger", s->cover->foreign,
			       s->cover->foreign == 1 ? "" : "s");
	if (s->cover->stale)
		rfl_buf_printf(out, ", %zu with labels of this matrix but other options",
			       s->cover->stale);
	rfl_buf_putc(out, '\n');
}

/* The row of a cell in csv and json. */
struct cell {
	const char *id, *env, *backend, *model, *precision, *reasons;
	int64_t batch;
	size_t runs, ok, missing, failed, surplus;
};

static const struct rfl_column cell_columns[] = {
	RFL_COLUMN(TEXT, struct cell, id, "cell", NULL),
	RFL_COLUMN(TEXT, struct cell, env, "env", NULL),
	RFL_COLUMN(TEXT, struct cell, backend, "backend", NULL),
	RFL_COLUMN(TEXT, struct cell, model, "model", NULL),
	RFL_COLUMN(TEXT, struct cell, precision, "precision", NULL),
	RFL_COLUMN(INT, struct cell, batch, "batch", NULL),
	RFL_COLUMN(INT, struct cell, runs, "runs", NULL),
	RFL_COLUMN(INT, struct cell, ok, "ok", NULL),
	RFL_COLUMN(INT, struct cell, missing, "missing", NULL),
	RFL_COLUMN(INT, struct cell, failed, "failed", NULL),
	RFL_COLUMN(INT, struct cell, surplus, "surplus_rows", NULL),
	RFL_COLUMN(TEXT, struct cell, reasons, "reasons", NULL),
};

/* Render a table with a row for each cell. */
static void render_for_programs(const struct status *s, enum rfl_format format, struct rfl_buf *out)
{
	struct rfl_table *t = rfl_table_new(cell_columns, RFL_ARRAY_LEN(cell_columns));
	RFL_AUTO(buf) reasons = { .len = 0 }; /* "run2: oom: no memory left; run3: missing" */

	for (size_t i = 0; i < s->m->ncells; i++) {
		const struct rfl_matrix_cell *c = &s->m->cells[i];
		const struct rfl_matrix_share *share = &s->shares[i];

		if (!share->asked)
			continue;
		rfl_buf_reset(&reasons);
		for (size_t k = i; k < s->cover->nruns; k += s->m->ncells) {
			const struct rfl_matrix_run *run = &s->cover->runs[k];

			if (!s->chosen[k] || run->state == RFL_MATRIX_DONE)
				continue;
			rfl_buf_printf(&reasons, "%srun%d: %s", reasons.len ? "; " : "",
				       run->repeat, has_row(run) ? run->status : "missing");
			if (run->reason)
				rfl_buf_printf(&reasons, ": %s", run->reason);
		}
		rfl_table_add(
			t,
			&(struct cell){ .id = c->id,
					.env = c->env,
					.backend = c->backend,
					.model = c->model,
					.precision = c->precision,
					.batch = c->batch,
					.runs = share->asked,
					.ok = share->done,
					.missing = share->asked - share->done - share->failed,
					.failed = share->failed,
					.surplus = share->surplus,
					.reasons = reasons.len ? rfl_buf_str(&reasons) : NULL },
			1, sizeof(struct cell));
	}
	rfl_table_finish(t, format, out);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct status_args *a = args;
	const enum rfl_format format = (enum rfl_format)a->format;
	RFL_AUTO(matrix_view) view = { .size = 0 };
	RFL_AUTO(matrix_pick) pick;
	struct status s = { .pick = &pick, .cover = &view.cover };
	RFL_AUTO(buf) out = { .len = 0 };
	enum rfl_rc rc = rfl_cli_matrix_pick(cli, a->operands.items[0], &a->only, NULL, &pick, err);

	if (rc || (rc = rfl_cli_matrix_view(pick.m, a->log_dir, 0, &view, err)))
		return rc;
	s.m = pick.m;
	s.shares = rfl_arena_array(cli->arena, s.m->ncells, sizeof(*s.shares));
	s.chosen = rfl_arena_array(cli->arena, view.cover.nruns, sizeof(*s.chosen));
	for (size_t i = 0; i < pick.n; i++) {
		const struct rfl_matrix_run *r = &view.cover.runs[pick.runs[i]];
		struct rfl_matrix_share *share = &s.shares[r->cell];
		const bool ok = r->state == RFL_MATRIX_DONE, failed = r->state == RFL_MATRIX_FAILED;

		s.chosen[pick.runs[i]] = true;
		share->asked++;
		share->done += ok;
		share->failed += failed;
		share->surplus += r->ok > 1 ? r->ok - 1 : 0;
		s.done += ok;
		s.failed += failed;
	}
	if (rfl_format_for_people(format))
		render_for_people(cli, &s, format, &out);
	else
		render_for_programs(&s, format, &out);
	if ((rc = rfl_cli_put_as(cli, format, &out, "status", err)))
		return rc;
	if (view.size == 0)
		rfl_log(RFL_LOG_INFO,
			"%s: no ledger yet; run 'roofline matrix run %s --log-dir %s' to create it",
			view.path, s.m->path, a->log_dir);
	return s.done == pick.n ? RFL_OK : RFL_EFAILED; /* the missing runs are already printed */
}

const struct rfl_cmd rfl_cmd_matrix_status = {
	.name = "matrix status",
	.summary = "show how much of a matrix is done",
	.operands = "FILE",
	.description = "Compares a run matrix (docs/reference/matrix.md) with metrics.csv in the "
		       "log directory. For each environment and precision, a table shows how many "
		       "runs are ok for each model and batch size. Tables of missing and failed "
		       "runs, with the reasons, and of repeated runs follow. csv and json have a "
		       "row for each configuration. The exit code is 0 if every run is ok, and 1 "
		       "if not or if there is no ledger yet.",
	.example = "roofline matrix status examples/study-laptop.json\n"
		   "roofline matrix status matrix.json --only lab_gpu --format md",
	.opts = opts,
	.args_size = sizeof(struct status_args),
	.run = run,
};
