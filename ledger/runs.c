/*
 * runs.c - several ledgers as one, in little memory: of a row only what it does not share with its
 * repeats.
 */
#include "ledger/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/label.h"
#include "ledger/file/steps.h"

#define BATCH ((size_t)1024) /* rows that are whole at a time */

/* What summary, compare and points look at besides the facts and the metric. */
static const enum rfl_ledger_at columns[] = {
	RFL_LEDGER_AT_schema_version,  RFL_LEDGER_AT_cell,          RFL_LEDGER_AT_config_hash,
	RFL_LEDGER_AT_repeat,          RFL_LEDGER_AT_timestamp_utc, RFL_LEDGER_AT_label,
	RFL_LEDGER_AT_status,          RFL_LEDGER_AT_error_text,    RFL_LEDGER_AT_rank,
	RFL_LEDGER_AT_requested_batch, RFL_LEDGER_AT_flags,         RFL_LEDGER_AT_version,
};

/* And points alone. */
static const enum rfl_ledger_at columns_of_points[] = {
	RFL_LEDGER_AT_run_id,
	RFL_LEDGER_AT_step_ms_median,
	RFL_LEDGER_AT_step_ms_p10,
	RFL_LEDGER_AT_step_ms_p90,
	RFL_LEDGER_AT_fwd_ms_mean,
	RFL_LEDGER_AT_bwd_ms_mean,
	RFL_LEDGER_AT_opt_ms_mean,
	RFL_LEDGER_AT_data_wait_ms_mean,
	RFL_LEDGER_AT_momentum,
	RFL_LEDGER_AT_weight_decay,
	RFL_LEDGER_AT_model_flops_per_step,
	RFL_LEDGER_AT_counters_status,
	RFL_LEDGER_AT_launcher,
};

/* --- what is kept of a row ------------------------------------------------------------------- */

static const char *known(const char *text)
{
	return text ? text : "";
}

static uint64_t like_hash(const void *item)
{
	const struct rfl_ledger_row *row = item;
	const char *const texts[] = { known(row->status), known(row->error_text), known(row->flags),
				      known(row->counters_status) };
	uint64_t h = rfl_hash64(rfl_facts_hash(row), &row->model_flops_per_step,
				sizeof(row->model_flops_per_step));

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++)
		h = rfl_hash64(h, texts[i], strlen(texts[i]) + 1);
	return h;
}

/* What matters of momentum and weight decay is whether there is any, as in the config_hash. */
static bool same_use(double a, double b)
{
	return isnan(a) == isnan(b) && (a == 0) == (b == 0);
}

static bool like_alike(const void *x, const void *y)
{
	const struct rfl_ledger_row *a = x, *b = y;

	return rfl_text_same(a->status, b->status) && rfl_text_same(a->error_text, b->error_text) &&
	       rfl_text_same(a->flags, b->flags) &&
	       rfl_text_same(a->counters_status, b->counters_status) &&
	       rfl_text_same(a->launcher, b->launcher) && a->rank == b->rank &&
	       a->model_flops_per_step == b->model_flops_per_step &&
	       same_use(a->momentum, b->momentum) && same_use(a->weight_decay, b->weight_decay) &&
	       rfl_facts_repeats(a, b);
}

static enum rfl_rc add_run(struct rfl_runs *runs, struct rfl_ledger_row *row, struct rfl_err *err)
{
	size_t cap = runs->cap, like;
	struct rfl_ledger_row *copy;
	char env[49];
	enum rfl_rc rc = RFL_OK;

	/* a row of our own without an environment has the one of its label, or its backend */
	if (!row->env &&
	    rfl_label_env(NULL, row->label, row->model, row->backend ? row->backend : "", env,
			  NULL) == RFL_OK &&
	    env[0] && !(row->env = rfl_ledger__text(runs->ledger, env, true)))
		return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	if ((runs->timed && (rc = rfl_grow(&runs->times, &cap, runs->n + 1, SIZE_MAX, err))) ||
	    (rc = rfl_grow(&runs->runs, &runs->cap, runs->n + 1, SIZE_MAX, err)))
		return rc;

	/* the row that stands for this one and others; it is copied when it is the first */
	like = rfl_row_index_find(&runs->likes, row);
	if (like == SIZE_MAX) {
		copy = rfl_arena_array(runs->arena, 1, sizeof(*copy));
		if (!copy)
			return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
		*copy = *row;
		copy->label = copy->timestamp_utc = copy->run_id = NULL;
		copy->repeat = -1;
		rc = rfl_row_index_put(&runs->likes, copy, &like, err);
		if (rc)
			return rc;
	}
	if (runs->timed)
		runs->times[runs->n] = (struct rfl_run_times){
			.run_id = row->run_id,
			.step_ms_median = row->step_ms_median,
			.step_ms_p10 = row->step_ms_p10,
			.step_ms_p90 = row->step_ms_p90,
			.fwd_ms_mean = row->fwd_ms_mean,
			.bwd_ms_mean = row->bwd_ms_mean,
			.opt_ms_mean = row->opt_ms_mean,
			.data_wait_ms_mean = row->data_wait_ms_mean,
		};
	runs->runs[runs->n++] = (struct rfl_run){
		.like = runs->likes.rows[like],
		.label = row->label,
		.time = row->timestamp_utc,
		.value = rfl_ledger_metric_value(runs->metric, row),
		.repeat = row->repeat,
		.line = row->line,
	};
	return RFL_OK;
}

/* Turn the rows read since the last call into runs; drop them unless they are to be kept. */
static enum rfl_rc take_rows(struct rfl_ledger *l, struct rfl_err *err)
{
	struct rfl_runs *runs = l->ctx;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = l->batch ? 0 : runs->n; i < l->nrows && rc == RFL_OK; i++)
		rc = add_run(runs, &l->rows[i], err);
	if (l->batch)
		l->nrows = 0;
	return rc;
}

/* The last file is read once more. */
static void forget_file(struct rfl_ledger *l)
{
	struct rfl_runs *runs = l->ctx;

	runs->n = runs->files[runs->nfiles - 1].first;
}

/* --- files ----------------------------------------------------------------------------------- */

enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, enum rfl_rows rows,
			  struct rfl_runs **ret, struct rfl_err *err)
{
	bool wanted[RFL_LEDGER_NCOLUMNS] = { false };
	const bool timed = rows == RFL_ROWS_TIMES;
	struct rfl_runs *runs = calloc(1, sizeof(*runs));
	enum rfl_rc rc = RFL_OK;

	if (!runs)
		return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	rfl_buf_init(&runs->notes, 0);
	runs->metric = metric;
	runs->timed = timed;
	runs->likes = (struct rfl_row_index){ .hash = like_hash, .alike = like_alike };
	runs->arena = rfl_arena_new(0);
	runs->files = rfl_alloc_array(npaths, sizeof(*runs->files));
	runs->ledger = calloc(1, sizeof(*runs->ledger));
	if (!runs->arena || !runs->files || !runs->ledger) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
		goto done;
	}
	runs->ledger->batch = rows == RFL_ROWS_KEPT ? 0 : BATCH;
	runs->ledger->hashed = timed;
	runs->ledger->take = take_rows;
	runs->ledger->again = forget_file;
	runs->ledger->ctx = runs;
	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++)
		wanted[columns[i]] = true;
	for (size_t i = 0; i < rfl_nfacts; i++)
		wanted[rfl_facts[i].column] = true;
	for (size_t i = 0; timed && i < RFL_ARRAY_LEN(columns_of_points); i++)
		wanted[columns_of_points[i]] = true;
	wanted[metric->column] = wanted[metric->instead] = true;
	for (size_t i = 0; i < npaths && rc == RFL_OK; i++) {
		runs->files[runs->nfiles++] =
			(struct rfl_runs_file){ .path = paths[i], .first = runs->n };
		rc = rfl_foreign_read(paths[i], map, metric, timed, wanted, runs->ledger,
				      &runs->notes, err);
	}
	if (rc == RFL_OK)
		rc = rfl_buf_check(&runs->notes, "notes", err);
	if (rc == RFL_OK) {
		*ret = runs;
		runs = NULL;
	}
done:
	rfl_runs_free(runs);
	return rc;
}

void rfl_runs_free(struct rfl_runs *runs)
{
	if (!runs)
		return;
	rfl_row_index_fini(&runs->likes);
	rfl_arena_free(runs->arena);
	rfl_ledger_free(runs->ledger);
	free(runs->runs);
	free(runs->times);
	free(runs->files);
	rfl_buf_fini(&runs->notes);
	free(runs);
}

const struct rfl_run_times *rfl_runs_times(const struct rfl_runs *runs, const struct rfl_run *run)
{
	return &runs->times[run - runs->runs];
}

void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_run *run, struct rfl_buf *out)
{
	size_t at = (size_t)(run - runs->runs), i = runs->nfiles - 1;

	while (i > 0 && runs->files[i].first > at)
		i--;
	rfl_buf_printf(out, "%s:%zu", runs->files[i].path, run->line);
}
