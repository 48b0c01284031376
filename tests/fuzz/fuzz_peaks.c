/* peaks.json: a usable ceiling is a number above zero, every question has an answer. */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "peaks/peaks.h"
#include "roofline/roofline.h"

static void check_peak(const struct rfl_peak *p)
{
	FUZZ_ASSERT(rfl_peak_status_name(p->status) != NULL);
	if (rfl_peak_usable(p))
		FUZZ_ASSERT(isfinite(p->value) && p->value > 0);
	else
		FUZZ_ASSERT(isnan(p->value) && p->reason);
}

static void check_env(const struct rfl_peaks *p, const struct rfl_peaks_env *env)
{
	const struct rfl_ceiling *c;
	const struct rfl_peak *dram = rfl_peaks_dram(env);
	char cell[96];

	FUZZ_ASSERT(rfl_peaks_find(p, env->name) == env);
	for (size_t i = 0; i < env->ncompute; i++)
		check_peak(&env->compute[i].peak);
	for (size_t i = 0; i < env->nlevels; i++)
		check_peak(&env->levels[i].peak);
	if (dram)
		check_peak(dram);
	for (size_t i = 0; (c = rfl_ceiling_at(i)); i++) {
		const char *key = rfl_ceiling_key(c, env);
		const struct rfl_peak *peak = rfl_peaks_compute(env, key);

		if (peak)
			check_peak(peak);
		FUZZ_ASSERT(strlen(rfl_peaks_cell(env, key, cell, sizeof(cell))) > 0);
	}
	FUZZ_ASSERT(strlen(rfl_peaks_cell(env, "DRAM", cell, sizeof(cell))) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rfl_peaks *p = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const char *path = fuzz_memory(data, size);
	enum rfl_rc rc = rfl_peaks_load(path, &p, &err);

	fuzz_check(rc, p, &err, path);
	for (size_t i = 0; rc == RFL_OK && i < p->nenvs; i++)
		check_env(p, &p->envs[i]);
	rfl_peaks_free(p);
	return 0;
}
