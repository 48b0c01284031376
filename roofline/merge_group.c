/*
 * merge_group.c - the configurations of a ledger, as its summary has them, that can be placed under
 * a roof.
 */
#include "roofline/merge_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"

/* What the FLOPs and the roof are looked up by. */
static enum rfl_rc check_told(const struct rfl_runs *runs, const struct rfl_run *run,
			      struct rfl_err *err)
{
	const struct rfl_ledger_row *row = run->like;
	const char *lacks = !row->mode ? "mode" : !row->backend ? "backend" : NULL;
	struct rfl_buf where;

	if (!lacks)
		return RFL_OK;
	rfl_buf_init(&where, 0);
	rfl_runs_where(runs, run, &where);
	(void)rfl_fail(err, RFL_EFORMAT, 0,
		       "%s: column '%s' is empty; runs with status ok need it (for all rows: --map "
		       "'%s=\"%s\"')",
		       rfl_buf_str(&where), lacks, lacks, row->mode ? "cpu" : "train");
	rfl_buf_fini(&where);
	return RFL_EFORMAT;
}

static uint64_t hash_of_hash(const void *item)
{
	const struct rfl_run *run = item;

	return rfl_hash64(0, run->like->config_hash, strlen(run->like->config_hash));
}

static bool same_hash(const void *x, const void *y)
{
	const struct rfl_run *a = x, *b = y;

	return strcmp(a->like->config_hash, b->like->config_hash) == 0 &&
	       strcmp(a->like->env, b->like->env) == 0;
}

/* A config_hash stands for one kind of work. */
static enum rfl_rc check_hash(const struct rfl_runs *runs, struct rfl_row_index *hashes,
			      const struct rfl_run *run, struct rfl_err *err)
{
	const struct rfl_run *first;
	size_t i;
	enum rfl_rc rc;

	if (!run->like->config_hash)
		return RFL_OK;
	rc = rfl_row_index_put(hashes, run, &i, err);
	if (rc != RFL_OK)
		return rc;
	first = hashes->rows[i];
	for (size_t k = 0; k < rfl_nfacts; k++)
		if (rfl_facts[k].role == RFL_FACT_WORK &&
		    !rfl_fact_same(&rfl_facts[k], first->like, run->like))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:%zu: has the config_hash %s of line %zu but "
					"a different '%s'; one of the rows was edited",
					runs->files[0].path, run->line, run->like->config_hash,
					first->line, rfl_facts[k].name);
	return RFL_OK;
}

bool rfl_merge__wanted(const struct rfl_merge_options *o, const char *env)
{
	for (size_t i = 0; i < o->nenvs; i++)
		if (strcmp(o->envs[i], env) == 0)
			return true;
	return o->nenvs == 0;
}

int64_t rfl_merge__roofs(const struct rfl_ledger_row *row)
{
	if (row->world_size <= 1)
		return 1;
	if (rfl_text_same(row->backend, "cuda"))
		return row->world_size;
	return rfl_text_same(row->launcher, "roofline") ? 1 : 0;
}

int64_t rfl_merge__batch(const struct rfl_ledger_row *row)
{
	const int64_t roofs = rfl_merge__roofs(row);

	return roofs > 1 && row->batch % roofs == 0 ? row->batch / roofs : row->batch;
}

static void leave_out(const struct rfl_runs *runs, const struct rfl_run *run, const char *why,
		      struct rfl_merge_report *report)
{
	rfl_buf_puts(&report->notes, "left out ");
	rfl_runs_where(runs, run, &report->notes);
	rfl_buf_printf(&report->notes, ": %s\n", why);
}

static enum rfl_rc add_config(const struct rfl_runs *runs, const struct rfl_repeats_config *from,
			      struct rfl_configs *cs, struct rfl_merge_report *report,
			      struct rfl_err *err)
{
	struct rfl_config *c = &cs->configs[cs->n];
	const struct rfl_run *run = from->runs[0].run;
	const struct rfl_ledger_row *row = run->like;
	const double samples = (double)row->batch;
	enum rfl_rc rc = check_told(runs, run, err);

	if (rc != RFL_OK)
		return rc;
	if (rfl_merge__roofs(row) == 0) {
		leave_out(runs, run,
			  "its processes ran on processors of an unknown number of machines",
			  report);
		return RFL_OK;
	}
	if (!(samples / from->stats.max > 0 && isfinite(samples / from->stats.min)) ||
	    from->stats.min <= 0) {
		leave_out(runs, run, "samples_per_s is not a rate", report);
		return RFL_OK;
	}
	c->env = row->env;
	c->row = row;
	c->runs = from->runs;
	c->nruns = from->n;
	c->rate = from->stats;
	cs->n++;
	return check_hash(runs, &cs->hashes, run, err);
}

enum rfl_rc rfl_merge__group(const struct rfl_merge_inputs *in,
			     const struct rfl_merge_options *options, struct rfl_configs *ret,
			     struct rfl_merge_report *report, struct rfl_err *err)
{
	const struct rfl_repeats_options o = {
		.metric = &rfl_ledger_metrics[0], /* samples_per_s */
		.envs = options->envs,
		.nenvs = options->nenvs,
	};
	enum rfl_rc rc = rfl_repeats_new(in->runs, &o, &ret->repeats, err);
	const struct rfl_repeats *r = ret->repeats;

	if (rc != RFL_OK)
		return rc;
	rfl_buf_puts(&report->notes, rfl_buf_str(&r->notes));
	ret->hashes = (struct rfl_row_index){ .hash = hash_of_hash, .alike = same_hash };
	ret->configs = rfl_alloc_array(r->n, sizeof(*ret->configs));
	if (!ret->configs)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		if (r->configs[i].n > 0)
			rc = add_config(in->runs, &r->configs[i], ret, report, err);
	return rc;
}

void rfl_configs_fini(struct rfl_configs *configs)
{
	for (size_t i = 0; i < configs->n; i++) {
		free(configs->configs[i].counted);
		rfl_measured_fini(&configs->configs[i].measured);
	}
	free(configs->configs);
	rfl_row_index_fini(&configs->hashes);
	rfl_repeats_free(configs->repeats);
	*configs = (struct rfl_configs){ .n = 0 };
}
