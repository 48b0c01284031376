/*
 * merge.c - the way from a ledger to points: take the configurations of the summary that can be
 * placed under a roof, find roofs, count work, then either say all that is missing or fill the
 * points.
 */
#include "roofline/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "roofline/counters_parts.h"
#include "roofline/merge_parts.h"

/* --- configurations -------------------------------------------------------------------------- */

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

static enum rfl_rc group(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
			 struct rfl_configs *ret, struct rfl_merge_report *report,
			 struct rfl_err *err)
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

static void configs_fini(struct rfl_configs *configs)
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

/* --- roofs and work -------------------------------------------------------------------------- */

static enum rfl_rc count_work(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			      struct rfl_config *c, struct rfl_missing *missing,
			      struct rfl_merge_report *report, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = c->row;
	const int64_t together = row->world_size > 1 ? row->world_size / rfl_merge__roofs(row) : 1;
	const struct rfl_work_query query = {
		.model = row->model,
		.precision = row->precision,
		.mode = row->mode,
		.optimizer = row->optimizer,
		.no_momentum = row->momentum == 0, /* a file that does not say has it */
		.batch = rfl_merge__batch(row),
		.micro_batch = row->micro_batch,
		.accum = row->accum > 0 ? row->accum * together : row->accum,
		.image_size = row->img_size,
		.classes = row->context_length > 0 ? row->vocab : row->classes,
		.context_length = row->context_length,
		.autocast = row->autocast && *row->autocast,
		.factor = o->factor,
	};
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_work_count(&query, in->work, &report->notes, &c->work, &why);

	if (rc == RFL_EMISSING)
		return rfl_missing_add(
			missing, why.msg,
			"roofline complexity --models, --batch-sizes and --output-dir, "
			"then --complexity-json DIR/summary.json",
			c, err);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s:%zu: %s", in->runs->files[0].path,
				c->runs[0].run->line, why.msg);
	return RFL_OK;
}

/* The core FLOPs that the runner itself put into the ledger are of the same count. */
static void compare_ledger(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			   const struct rfl_config *c, struct rfl_merge_report *report)
{
	if (o->factor != RFL_TRAIN_EXACT)
		return;
	for (size_t i = 0; i < c->nruns; i++) {
		const struct rfl_run *run = c->runs[i].run;
		const struct rfl_ledger_row *row = run->like;

		if (row->model_flops_per_step < 0 ||
		    (double)row->model_flops_per_step ==
			    c->work.flops * (double)rfl_merge__roofs(row))
			continue;
		rfl_buf_printf(
			&report->notes,
			"%s:%zu: %s: the ledger has %lld FLOPs per step, the count %.0f; the "
			"count is used\n",
			in->runs->files[0].path, run->line, row->model,
			(long long)row->model_flops_per_step, c->work.flops);
		return;
	}
}

/* What the user says of steps must be of some capture. */
static void check_labels(const struct rfl_merge_inputs *in, struct rfl_merge_report *report)
{
	const struct rfl_counter_inputs *c = &in->counters;

	for (size_t i = 0; i < c->nsteps; i++) {
		bool found = !c->steps[i].label;

		for (size_t k = 0; c->captures && k < c->captures->n && !found; k++)
			found = c->captures->captures[k]->label &&
				strcmp(c->captures->captures[k]->label, c->steps[i].label) == 0;
		if (!found)
			rfl_buf_printf(&report->notes,
				       "--counter-steps %s=%lld: no counters have that label\n",
				       c->steps[i].label, (long long)c->steps[i].steps);
	}
}

/* Counters of every configuration, and what its point stands on. */
static enum rfl_rc add_counters(const struct rfl_merge_inputs *in,
				const struct rfl_merge_options *o, struct rfl_configs *cs,
				struct rfl_missing *missing, struct rfl_merge_report *report,
				struct rfl_err *err)
{
	enum rfl_rc rc = rfl_counters__join(in, o, cs, report, err);

	check_labels(in, report);
	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++) {
		struct rfl_config *c = &cs->configs[i];

		/* of an unknown model there is nothing to compare with */
		if (c->missing && !(c->work.flops > 0))
			continue;
		rc = rfl_counters__measure(in, c, report, err);
		if (rc == RFL_OK)
			rc = rfl_counters__choose(o, c, missing, err);
	}
	return rc;
}

static enum rfl_rc resolve(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			   struct rfl_configs *cs, struct rfl_missing *missing,
			   struct rfl_merge_report *report, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++) {
		struct rfl_config *c = &cs->configs[i];

		rc = rfl_merge__roof(in->peaks, c, missing, err);
		if (rc == RFL_OK && c->key)
			rc = count_work(in, o, c, missing, report, err);
		if (rc == RFL_OK && !c->missing)
			compare_ledger(in, o, c, report);
	}
	if (rc == RFL_OK)
		rc = add_counters(in, o, cs, missing, report, err);
	for (size_t i = 0; i < cs->n; i++)
		report->left_out += cs->configs[i].missing;
	return rc;
}

/* Fail, or with --skip-missing say what is left out. */
static enum rfl_rc report_missing(const struct rfl_merge_inputs *in,
				  const struct rfl_merge_options *o,
				  const struct rfl_missing *missing,
				  struct rfl_merge_report *report, struct rfl_err *err)
{
	const char *path = in->peaks->path ? in->peaks->path : "peaks";
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	if (!missing->n)
		return RFL_OK;
	rfl_buf_init(&text, 0);
	rfl_missing_text(missing, false, &text);
	if (o->skip_missing) {
		rfl_buf_printf(&report->notes,
			       "left out %zu of the configurations, for lack of:\n%s\n",
			       report->left_out, rfl_buf_str(&text));
		goto done;
	}
	if (missing->of_counters == missing->n)
		path = in->runs->files[0].path;
	if (text.len > RFL_ERR_MSG_MAX - 512) {
		rfl_buf_reset(&text);
		rfl_missing_text(missing, true, &text);
	}
	rc = rfl_fail(err, RFL_EMISSING, 0,
		      "%s: %zu fact%s that the points need %s not known; nothing was written "
		      "(--skip-missing makes the other points)\n%s",
		      path, missing->n, missing->n == 1 ? "" : "s", missing->n == 1 ? "is" : "are",
		      rfl_buf_str(&text));
done:
	rfl_buf_fini(&text);
	return rc;
}

enum rfl_rc rfl_merge(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
		      struct rfl_points **ret, struct rfl_merge_report *report, struct rfl_err *err)
{
	struct rfl_configs cs = { .n = 0 };
	struct rfl_missing missing = { .n = 0 };
	struct rfl_points *pts = NULL;
	size_t k = 0;
	enum rfl_rc rc;

	*report = (struct rfl_merge_report){ .unjoined = 0 };
	rfl_buf_init(&report->notes, 0);
	if ((rc = group(in, options, &cs, report, err)) ||
	    (rc = resolve(in, options, &cs, &missing, report, err)) ||
	    (rc = report_missing(in, options, &missing, report, err)))
		goto done;

	pts = rfl_points_new(cs.n - report->left_out);
	if (!pts) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		goto done;
	}
	for (size_t i = 0; i < cs.n && rc == RFL_OK; i++)
		if (!cs.configs[i].missing)
			rc = rfl_merge__point(in, options, &cs.configs[i], &pts->points[k++], err);
	if (rc || (rc = rfl_merge__variants(&cs, pts, err)) ||
	    (rc = rfl_buf_check(&report->notes, "notes of the points", err)))
		goto done;
	*ret = pts;
	pts = NULL;
done:
	rfl_points_free(pts);
	rfl_missing_fini(&missing);
	configs_fini(&cs);
	return rc;
}

void rfl_merge_report_fini(struct rfl_merge_report *report)
{
	rfl_buf_fini(&report->notes);
}
