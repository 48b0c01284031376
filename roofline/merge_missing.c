/*
 * merge_missing.c - facts that the points need and no file supplies: collected first, then reported
 * all at once, with who needs them and what supplies them.
 */
#include "roofline/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "peaks/measure.h"

#define WHO_SHOWN 2
#define FIX_THE_RUN \
	"correct the run's environment or precision, or leave it out with --skip-missing"

struct rfl_missing_fact {
	char *fact, *fix;
	size_t nwho;
	const struct rfl_config *who[WHO_SHOWN];
};

enum rfl_rc rfl_missing_add(struct rfl_missing *m, const char *fact, const char *fix,
			    struct rfl_config *config, struct rfl_err *err)
{
	struct rfl_missing_fact *f = NULL;

	config->missing = true;
	for (size_t i = 0; i < m->n && !f; i++)
		if (strcmp(m->facts[i].fact, fact) == 0)
			f = &m->facts[i];
	if (!f) {
		if (rfl_grow(&m->facts, &m->cap, m->n + 1, SIZE_MAX, err) != RFL_OK)
			return RFL_ENOMEM;
		f = &m->facts[m->n++];
		*f = (struct rfl_missing_fact){ .fact = strdup(fact), .fix = strdup(fix) };
		if (!f->fact || !f->fix)
			return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	}
	if (f->nwho < WHO_SHOWN)
		f->who[f->nwho] = config;
	f->nwho++;
	return RFL_OK;
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
			const char *label = c->runs[0].run->label;

			rfl_buf_puts(out, k ? ", " : "; needed by ");
			if (label && *label)
				rfl_buf_puts(out, label);
			else
				rfl_buf_printf(out, "%s %s %s bs%lld", c->env, c->row->model,
					       c->row->precision, (long long)c->row->batch);
		}
		if (f->nwho > shown)
			rfl_buf_printf(out, " and %zu more", f->nwho - shown);
		/* the same fix is written once */
		if (i + 1 == m->n || strcmp(f->fix, m->facts[i + 1].fix) != 0)
			rfl_buf_printf(out, "\n    fix: %s", f->fix);
	}
}

void rfl_missing_fini(struct rfl_missing *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->facts[i].fact);
		free(m->facts[i].fix);
	}
	free(m->facts);
	*m = (struct rfl_missing){ .n = 0 };
}

/* --- ceilings --- */

static const char *peaks_path(const struct rfl_peaks *peaks)
{
	return peaks->path ? peaks->path : "peaks.json";
}

enum rfl_rc rfl_missing_env_text(const struct rfl_peaks *peaks, const char *env,
				 struct rfl_buf *fact, struct rfl_buf *fix, struct rfl_err *err)
{
	const char **names = rfl_alloc_array(peaks->nenvs + 1, sizeof(*names));
	const char *near;

	if (!names)
		return rfl_fail(err, RFL_ENOMEM, 0, "ceilings: out of memory");
	rfl_buf_printf(fact, "environment '%s' is not in the file (it has: ", env);
	for (size_t i = 0; i < peaks->nenvs; i++) {
		names[i] = peaks->envs[i].name;
		rfl_buf_printf(fact, "%s%s", i ? ", " : "", names[i]);
	}
	rfl_buf_puts(fact, peaks->nenvs ? ")" : "none)");
	near = rfl_text_nearest(env, names);
	if (near)
		rfl_buf_printf(fact, "; did you mean '%s'?", near);
	rfl_buf_printf(fix, "on that machine, roofline peaks measure --env %s --output %s", env,
		       peaks_path(peaks));
	free(names);
	return RFL_OK;
}

void rfl_missing_cell_text(const struct rfl_peaks *peaks, const struct rfl_peaks_env *env,
			   const char *key, const struct rfl_peak *peak, struct rfl_buf *fact,
			   struct rfl_buf *fix)
{
	const bool cpu = !env->kind || strcmp(env->kind, "cpu") == 0;
	bool measured = false; /* 'roofline peaks measure' finds it: those of processors */
	char cell[96];

	for (size_t i = 0; rfl_measure_keys[i] && cpu; i++)
		measured = measured || strcmp(rfl_measure_keys[i], key) == 0;
	rfl_peaks_cell(env, key, cell, sizeof(cell));
	rfl_buf_printf(fact, "environment '%s': %s is ", env->name, cell);
	if (!peak)
		rfl_buf_puts(fact, "not in the file");
	else
		rfl_buf_printf(fact, "%s%s%s%s", rfl_peak_status_name(peak->status),
			       peak->reason ? " (" : "", peak->reason ? peak->reason : "",
			       peak->reason ? ")" : "");
	if (peak && peak->status == RFL_PEAK_UNSUPPORTED) {
		rfl_buf_puts(fix, "the device cannot do this: ");
		return;
	}
	if (measured)
		rfl_buf_printf(fix,
			       "on that machine, roofline peaks measure --env %s --output %s; or, "
			       "if you know the value, ",
			       env->name, peaks_path(peaks));
	else if (!cpu)
		rfl_buf_puts(fix, "'roofline peaks measure' does not measure GPUs; take the value "
				  "from the data sheet ('roofline peaks devices' has some): ");
	else
		rfl_buf_printf(fix,
			       "'roofline peaks measure' has no %.*s kernel; take the value from a "
			       "data sheet or another benchmark: ",
			       (int)strcspn(key, "."), key);
	rfl_buf_printf(fix, "roofline peaks set %s %s %s VALUE --source TEXT", peaks_path(peaks),
		       env->name, cell);
}

/* Note that an environment is not in the file (no key), or a cell of it is absent (peak NULL) or
 * has no usable value. */
static enum rfl_rc note_missing(const struct rfl_peaks *peaks, const char *key,
				const struct rfl_peak *peak, struct rfl_config *c,
				struct rfl_missing *missing, struct rfl_err *err)
{
	struct rfl_buf fact, fix;
	enum rfl_rc rc = RFL_OK;

	if (peak && rfl_peak_usable(peak))
		return RFL_OK;
	rfl_buf_init(&fact, 1 << 16);
	rfl_buf_init(&fix, 1 << 16);
	if (key)
		rfl_missing_cell_text(peaks, c->penv, key, peak, &fact, &fix);
	else
		rc = rfl_missing_env_text(peaks, c->env, &fact, &fix, err);
	if (peak && peak->status == RFL_PEAK_UNSUPPORTED)
		rfl_buf_puts(&fix, FIX_THE_RUN);
	if (rc == RFL_OK)
		rc = rfl_missing_add(missing, rfl_buf_str(&fact), rfl_buf_str(&fix), c, err);
	rfl_buf_fini(&fact);
	rfl_buf_fini(&fix);
	return rc;
}

enum rfl_rc rfl_merge__roof(const struct rfl_peaks *peaks, struct rfl_config *config,
			    struct rfl_missing *missing, struct rfl_err *err)
{
	const struct rfl_ceiling *ceiling = NULL;
	const struct rfl_ledger_row *row = config->row;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	rc = rfl_ceiling_find(row->backend, row->precision, RFL_CLASS_MATRIX, &ceiling, &why);
	if (rc != RFL_OK)
		return rfl_missing_add(missing, why.msg, FIX_THE_RUN, config, err);
	config->key = ceiling->key;
	config->penv = rfl_peaks_find(peaks, config->env);
	if (!config->penv)
		return note_missing(peaks, NULL, NULL, config, missing, err);
	config->key = rfl_ceiling_key(ceiling, config->penv);
	config->compute = rfl_peaks_compute(config->penv, config->key);
	config->dram = rfl_peaks_dram(config->penv);
	rc = note_missing(peaks, config->key, config->compute, config, missing, err);
	return rc ? rc : note_missing(peaks, "DRAM", config->dram, config, missing, err);
}
