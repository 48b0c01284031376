/*
 * attain.c - counts under ceilings: the least time of every operation, of a pass and of a step.
 */
#include "roofline/attain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "roofline/parts.h"

struct rfl_attained rfl_attain(const struct rfl_attain_roof *roof, int64_t core_flops,
			       int64_t elementwise, int64_t bytes)
{
	const double times[RFL_LIMIT_COUNT] = {
		[RFL_LIMIT_COMPUTE] = (double)core_flops / roof->compute_flop_per_s,
		[RFL_LIMIT_VECTOR] = isnan(roof->vector_flop_per_s)
					     ? 0
					     : (double)elementwise / roof->vector_flop_per_s,
		[RFL_LIMIT_MEMORY] = (double)bytes / roof->bandwidth_byte_per_s,
	};
	struct rfl_attained ret = { .limit_s = { 0 } };
	int longest = 0;

	for (int i = 1; i < RFL_LIMIT_COUNT; i++)
		if (times[i] > times[longest])
			longest = i;
	ret.limit_s[longest] = times[longest];
	return ret;
}

/* Additions of a bias are of the forward pass. */
static struct rfl_attained attain_cost(const struct rfl_attain_roof *roof,
				       const struct rfl_cost *cost, int passes)
{
	struct rfl_attained sum = { .limit_s = { 0 } };

	for (int pass = 0; pass < passes; pass++) {
		const struct rfl_traffic *t = &cost->traffic[roof->base.fusion][pass];
		int64_t elementwise = rfl_elementwise_sum(&cost->elementwise[pass]);
		struct rfl_attained one;

		if (pass == RFL_PASS_FORWARD)
			elementwise += cost->bias_adds;
		one = rfl_attain(roof, 2 * cost->macs[pass], elementwise,
				 t->read_bytes + t->write_bytes);
		rfl_attained_add(&sum, &one);
	}
	return sum;
}

void rfl_attain_count(const struct rfl_attained_roof *base, const struct rfl_count *count,
		      struct rfl_attained *times)
{
	const struct rfl_attain_roof *roof = (const struct rfl_attain_roof *)base;
	int passes = count->options.training ? RFL_PASS_COUNT : RFL_PASS_FORWARD + 1;
	int64_t update;

	for (int i = 0; i < count->nnodes; i++)
		times[i] = attain_cost(roof, &count->nodes[i], passes);
	if (!count->options.training)
		return;
	times[count->nnodes] = attain_cost(roof, &count->loss, passes);
	update = rfl_count_bytes(count, base->fusion, RFL_SCOPE_STEP) -
		 rfl_count_bytes(count, base->fusion, RFL_SCOPE_FORWARD_BACKWARD);
	times[count->nnodes + 1] =
		rfl_attain(roof, 0, rfl_elementwise_sum(&count->optimizer_flops), update);
}

/* --- which ceilings --- */

/* The word of the table of ceilings for a device. The short form does not say what it is, and
 * serves every key alike. */
static const char *backend_of(const struct rfl_peaks_env *env)
{
	if (env->kind && strcmp(env->kind, "cpu") == 0)
		return "cpu";
	if (env->device && strstr(env->device, "Apple"))
		return "mps";
	return "cuda";
}

/* Append what is wrong with an environment (no key), or with a cell of it, if anything is. */
static enum rfl_rc check(const struct rfl_peaks *peaks, const char *name,
			 const struct rfl_peaks_env *env, const char *key,
			 const struct rfl_peak *peak, struct rfl_buf *text, struct rfl_err *err)
{
	struct rfl_buf fact, fix;
	enum rfl_rc rc = RFL_OK;

	if (peak && rfl_peak_usable(peak))
		return RFL_OK;
	rfl_buf_init(&fact, 0);
	rfl_buf_init(&fix, 0);
	if (env)
		rfl_missing_cell_text(peaks, env, key, peak, &fact, &fix);
	else
		rc = rfl_missing_env_text(peaks, name, &fact, &fix, err);
	if (peak && peak->status == RFL_PEAK_UNSUPPORTED)
		rfl_buf_puts(&fix, "choose another --precision");
	rfl_buf_printf(text, "%s  %s\n    fix: %s", text->len ? "\n" : "", rfl_buf_str(&fact),
		       rfl_buf_str(&fix));
	rfl_buf_fini(&fact);
	rfl_buf_fini(&fix);
	return rc;
}

/* What the user calls a ceiling: the short form has one for all. */
static const char *name_of(const struct rfl_peaks_env *env, const char *key, char *cell,
			   size_t size)
{
	if (!env->short_form)
		return key;
	rfl_peaks_cell(env, key, cell, size);
	return cell;
}

static void describe(struct rfl_attain_roof *r, const struct rfl_peaks_env *env)
{
	char compute[RFL_NUM_MAX], vector[RFL_NUM_MAX], bandwidth[RFL_NUM_MAX];
	char compute_cell[48], vector_cell[48];
	const char *compute_name = name_of(env, r->compute_key, compute_cell, sizeof(compute_cell));
	const char *vector_name = name_of(env, r->vector_key, vector_cell, sizeof(vector_cell));

	rfl_num_si(r->compute_flop_per_s, "FLOP/s", 4, compute, sizeof(compute));
	rfl_num_si(r->bandwidth_byte_per_s, "B/s", 4, bandwidth, sizeof(bandwidth));
	rfl_num_si(r->vector_flop_per_s, "FLOP/s", 4, vector, sizeof(vector));
	if (isnan(r->vector_flop_per_s))
		(void)snprintf(r->about, sizeof(r->about),
			       "Ceilings of %s: %s (%s) for multiply-adds, %s of DRAM; that of "
			       "elementwise operations (%s) is not known, and they take no time.",
			       env->name, compute, compute_name, bandwidth, vector_name);
	else
		(void)snprintf(r->about, sizeof(r->about),
			       "Ceilings of %s: %s (%s) for multiply-adds, %s (%s) for elementwise "
			       "operations, %s of DRAM.",
			       env->name, compute, compute_name, vector, vector_name, bandwidth);
}

enum rfl_rc rfl_attain_find(const struct rfl_peaks *peaks, const char *env, const char *precision,
			    enum rfl_fusion fusion, struct rfl_attain_roof *ret,
			    struct rfl_err *err)
{
	const struct rfl_peaks_env *e = rfl_peaks_find(peaks, env);
	const struct rfl_ceiling *matrix = NULL, *vector = NULL;
	const struct rfl_peak *compute = NULL, *elementwise = NULL, *dram = NULL;
	const char *compute_key = NULL;
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	if (e) {
		const char *backend = backend_of(e);

		if ((rc = rfl_ceiling_find(backend, precision, RFL_CLASS_MATRIX, &matrix, err)) ||
		    (rc = rfl_ceiling_find(backend, precision, RFL_CLASS_ELEMENTWISE, &vector,
					   err)))
			return rc;
		compute_key = rfl_ceiling_key(matrix, e);
		compute = rfl_peaks_compute(e, compute_key);
		elementwise = rfl_peaks_compute(e, vector->key);
		dram = rfl_peaks_dram(e);
	}
	rc = check(peaks, env, e, compute_key, compute, &text, err);
	if (rc == RFL_OK && e)
		rc = check(peaks, env, e, "DRAM", dram, &text, err);
	if (rc == RFL_OK)
		rc = rfl_buf_check(&text, env, err);
	if (rc == RFL_OK && text.len)
		rc = rfl_fail(err, RFL_EMISSING, 0,
			      "%s: the least times need what is not known\n%s",
			      peaks->path ? peaks->path : "peaks.json", rfl_buf_str(&text));
	rfl_buf_fini(&text);
	if (rc != RFL_OK)
		return rc;
	*ret = (struct rfl_attain_roof){
		.base = { .attain = rfl_attain_count,
			  .about = ret->about,
			  .env = e->name,
			  .fusion = fusion },
		.compute_flop_per_s = compute->value,
		.vector_flop_per_s =
			elementwise && rfl_peak_usable(elementwise) ? elementwise->value : NAN,
		.bandwidth_byte_per_s = dram->value,
		.compute_key = compute_key,
		.vector_key = vector->key,
	};
	describe(ret, e);
	return RFL_OK;
}
