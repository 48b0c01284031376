/*
 * runs.c - several ledgers as one.
 */
#include "ledger/runs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "ledger/facts.h"
#include "ledger/label.h"
#include "ledger/ledger_texts.h"

/* What summary and compare look at besides the facts and the metric. */
static void choose_columns(const struct rfl_ledger_metric *metric, bool wanted[RFL_LEDGER_NCOLUMNS])
{
	static const enum rfl_ledger_at others[] = {
		RFL_LEDGER_AT_schema_version, RFL_LEDGER_AT_cell,
		RFL_LEDGER_AT_config_hash,    RFL_LEDGER_AT_repeat,
		RFL_LEDGER_AT_timestamp_utc,  RFL_LEDGER_AT_label,
		RFL_LEDGER_AT_status,         RFL_LEDGER_AT_error_text,
		RFL_LEDGER_AT_rank,           RFL_LEDGER_AT_requested_batch,
		RFL_LEDGER_AT_flags,          RFL_LEDGER_AT_version,
	};

	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++)
		wanted[i] = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		wanted[others[i]] = true;
	for (size_t i = 0; i < rfl_nfacts; i++)
		wanted[rfl_facts[i].column] = true;
	wanted[metric->column] = wanted[metric->instead] = true;
}

/* A row of our own without an environment has the one of its label, or its backend. */
static enum rfl_rc take_envs(struct rfl_ledger *l, struct rfl_err *err)
{
	for (size_t i = 0; i < l->nrows; i++) {
		struct rfl_ledger_row *row = &l->rows[i];
		char env[49];

		if (row->env ||
		    rfl_label_env(NULL, row->label, row->model, row->backend ? row->backend : "",
				  env, NULL) != RFL_OK ||
		    !env[0])
			continue;
		row->env = rfl_ledger__text(l->texts, env, true);
		if (!row->env)
			return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	}
	return RFL_OK;
}

enum rfl_rc rfl_runs_load(const char *const *paths, size_t npaths, const struct rfl_column_map *map,
			  const struct rfl_ledger_metric *metric, bool whole, struct rfl_runs **ret,
			  struct rfl_err *err)
{
	bool wanted[RFL_LEDGER_NCOLUMNS];
	struct rfl_runs *runs = calloc(1, sizeof(*runs));
	enum rfl_rc rc = RFL_OK;

	if (!runs)
		return rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	choose_columns(metric, wanted);
	rfl_buf_init(&runs->notes, 0);
	runs->ledger = rfl_ledger_new();
	runs->files = rfl_alloc_array(npaths, sizeof(*runs->files));
	if (!runs->ledger || !runs->files)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "ledger: out of memory");
	if (rc == RFL_OK)
		runs->ledger->hashed = whole;
	for (size_t i = 0; i < npaths && rc == RFL_OK; i++) {
		runs->files[runs->nfiles++] =
			(struct rfl_runs_file){ .path = paths[i], .first = runs->ledger->nrows };
		rc = rfl_foreign_read(paths[i], map, metric, whole ? NULL : wanted, runs->ledger,
				      &runs->notes, err);
	}
	if (rc == RFL_OK)
		rc = take_envs(runs->ledger, err);
	if (rc == RFL_OK)
		rc = rfl_buf_check(&runs->notes, "notes", err);
	if (rc == RFL_OK) {
		*ret = runs;
		runs = NULL;
	}
	rfl_runs_free(runs);
	return rc;
}

void rfl_runs_free(struct rfl_runs *runs)
{
	if (!runs)
		return;
	rfl_ledger_free(runs->ledger);
	free(runs->files);
	rfl_buf_fini(&runs->notes);
	free(runs);
}

void rfl_runs_where(const struct rfl_runs *runs, const struct rfl_ledger_row *row,
		    struct rfl_buf *out)
{
	size_t at = (size_t)(row - runs->ledger->rows), i = runs->nfiles - 1;

	while (i > 0 && runs->files[i].first > at)
		i--;
	rfl_buf_printf(out, "%s:%zu", runs->files[i].path, row->line);
}
