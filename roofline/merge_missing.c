/*
 * merge_missing.c - collects missing values and reports them together, with the runs that need them
 * and the commands that supply them.
 */
#include "roofline/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "peaks/gpu.h"
#include "peaks/measure.h"

#define WHO_SHOWN 2
#define FIX_THE_RUN \
	"correct the environment or precision of the run, or leave it out with --skip-missing"

struct rfl_missing_fact {
	const char *fact, *fix;
	size_t nwho;
	const struct rfl_config *who[WHO_SHOWN];
};

void rfl_missing_add(struct rfl_merge_job *job, struct rfl_config *config, const char *fact,
		     const char *fix)
{
	struct rfl_missing *m = &job->missing;
	struct rfl_missing_fact *f = m->facts;

	config->missing = true;
	while (f < m->facts + m->n && strcmp(f->fact, fact) != 0)
		f++;
	if (f == m->facts + m->n) {
		f = rfl_arena_append(job->arena, &m->facts, &m->n);
		f->fact = rfl_arena_strdup(job->arena, fact);
		f->fix = rfl_arena_strdup(job->arena, fix);
	}
	if (f->nwho < WHO_SHOWN)
		f->who[f->nwho] = config;
	f->nwho++;
}

void rfl_missing_text(const struct rfl_missing *m, bool brief, struct rfl_buf *out)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct rfl_missing_fact *f = &m->facts[i];
		const size_t shown = f->nwho < WHO_SHOWN ? f->nwho : WHO_SHOWN;

		rfl_buf_printf(out, "%s  %s", i ? "\n" : "", f->fact);
		if (brief)
			continue;
		for (size_t k = 0; k < shown; k++) {
			const struct rfl_config *c = f->who[k];
			const char *label = c->nruns ? c->runs[0].run->label : c->row->model;

			rfl_buf_puts(out, k ? ", " : "; needed by ");
			if (label && *label)
				rfl_buf_puts(out, label);
			else
				rfl_buf_printf(out, "%s %s %s bs%lld", c->env, c->row->model,
					       c->row->precision, (long long)c->row->batch);
		}
		if (f->nwho > shown)
			rfl_buf_printf(out, " and %zu more", f->nwho - shown);
		/* Consecutive values with the same fix share its line. */
		if (i + 1 == m->n || strcmp(f->fix, m->facts[i + 1].fix) != 0)
			rfl_buf_printf(out, "\n    fix: %s", f->fix);
	}
}

void rfl_missing_ceiling(const struct rfl_peaks *peaks, const char *name, const char *key,
			 const struct rfl_peak *peak, const char *on, const char *unsupported,
			 struct rfl_buf *fact, struct rfl_buf *fix)
{
	const struct rfl_peaks_env *env = rfl_peaks_find(peaks, name);
	const char *path = peaks->path ? peaks->path : "peaks.json", **names, *near;
	const char *const device = env && env->device ? env->device : "", *any = "";
	const char *const *keys = rfl_measure_keys;
	char cell[96], backend[24] = "";
	bool measured;

	if (peak && rfl_peak_usable(peak))
		return;
	if (env && env->kind)
		on = strcmp(env->kind, "cpu") == 0                         ? "cpu"
		     : strstr(device, "Apple")                             ? "mps"
		     : strstr(device, "NVIDIA") || strstr(device, "Tesla") ? "cuda"
									   : "another";
	else if (!on)
		any = " (for a GPU, add --backend cuda or --backend mps)";
	if (on && strcmp(on, "cpu") != 0) {
		keys = rfl_gpu_keys;
		snprintf(backend, sizeof(backend), " --backend %s", on);
	}
	if (!env) {
		names = rfl_alloc_array(peaks->nenvs + 1, sizeof(*names));
		rfl_buf_printf(fact, "environment '%s' is not in the file (it has: ", name);
		for (size_t i = 0; i < peaks->nenvs; i++) {
			names[i] = peaks->envs[i].name;
			rfl_buf_printf(fact, "%s%s", i ? ", " : "", names[i]);
		}
		rfl_buf_puts(fact, peaks->nenvs ? ")" : "none)");
		near = rfl_text_nearest(name, names);
		if (near)
			rfl_buf_printf(fact, "; did you mean %s?", near);
		rfl_buf_printf(fix,
			       "run roofline peaks measure --env %s%s --output %s on that "
			       "machine%s",
			       name, backend, path, any);
		free(names);
		return;
	}
	/* of an Apple GPU, the engine measures anything that a run needs */
	measured = on && strcmp(on, "mps") == 0;
	for (size_t i = 0; keys[i] && !measured; i++)
		measured = strcmp(keys[i], key) == 0;
	rfl_peaks_cell(env, key, cell, sizeof(cell));
	rfl_buf_printf(fact, "environment '%s': %s is ", name, cell);
	if (!peak)
		rfl_buf_puts(fact, "not in the file");
	else
		rfl_buf_printf(fact, "%s%s%s%s", rfl_peak_status_name(peak->status),
			       peak->reason ? " (" : "", peak->reason ? peak->reason : "",
			       peak->reason ? ")" : "");
	if (peak && peak->status == RFL_PEAK_UNSUPPORTED) {
		rfl_buf_printf(fix, "the device does not support this; %s", unsupported);
		return;
	}
	if (on && strcmp(on, "another") == 0)
		rfl_buf_puts(fix, "'roofline peaks measure' measures NVIDIA and Apple GPUs only; "
				  "use a value from the data sheet ('roofline peaks devices' lists "
				  "some): ");
	else if (measured)
		rfl_buf_printf(fix,
			       "run roofline peaks measure --env %s%s --output %s on that "
			       "machine%s; or, if you know the value, run ",
			       name, backend, path, any);
	else
		rfl_buf_printf(fix,
			       "'roofline peaks measure' has no %.*s kernel; use a value from a "
			       "data sheet or another benchmark: ",
			       (int)strcspn(key, "."), key);
	rfl_buf_printf(fix, "roofline peaks set %s %s %s VALUE --source TEXT", path, name, cell);
}

/* Note the problem with an environment or one of its cells, if any. */
static void check(struct rfl_merge_job *job, const char *key, const struct rfl_peak *peak,
		  struct rfl_config *c)
{
	RFL_AUTO(buf) fix = { .len = 0 };
	RFL_AUTO(buf) fact = { .len = 0 };

	rfl_missing_ceiling(job->in->peaks, c->env, key, peak, c->row->backend, FIX_THE_RUN, &fact,
			    &fix);
	if (fact.len)
		rfl_missing_add(job, c, rfl_buf_str(&fact), rfl_buf_str(&fix));
}

void rfl_merge__roof(struct rfl_merge_job *job, struct rfl_config *config)
{
	const struct rfl_ceiling *ceiling = NULL;
	struct rfl_err why = RFL_ERR_INIT;

	if (config->nruns &&
	    rfl_ceiling_find(config->row->backend, config->row->precision, &ceiling, &why)) {
		rfl_missing_add(job, config, why.msg, FIX_THE_RUN);
		return;
	}
	config->key = ceiling ? ceiling->key : config->key;
	config->penv = rfl_peaks_find(job->in->peaks, config->env);
	if (config->penv) {
		config->key = ceiling ? rfl_ceiling_key(ceiling, config->penv) : config->key;
		config->compute = rfl_peaks_compute(config->penv, config->key);
		config->dram = rfl_peaks_dram(config->penv);
	}
	check(job, config->key, config->compute, config);
	if (config->penv)
		check(job, "DRAM", config->dram, config);
}
