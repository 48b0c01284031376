/*
 * merge_point.c - the numbers of one point.
 */
#include "roofline/merge_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/stats.h"
#include "roofline/verdict.h"

const char *const rfl_ai_names[] = { "auto",     "unfused",     "fused", "compulsory",
				     "counters", "lower-bound", NULL };

enum rfl_rc rfl_merge__texts(const struct rfl_merge_text *texts, size_t n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		rc = rfl_field_set(texts[i].to, texts[i].from, err);
	return rc;
}

/* --- time --- */

/* The median of a time over the repeats that know it; NaN when none does. @param at  its offset in
 * struct rfl_run_times */
static enum rfl_rc median_of(const struct rfl_runs *runs, const struct rfl_config *c, size_t at,
			     double *ret, struct rfl_err *err)
{
	double *values = rfl_alloc_array(c->nruns, sizeof(*values));
	struct rfl_stats stats = { .median = NAN };
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	if (!values)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < c->nruns; i++) {
		memcpy(&values[n], (const char *)rfl_runs_times(runs, c->runs[i].run) + at,
		       sizeof(*values));
		n += isnan(values[n]) ? 0 : 1;
	}
	if (n)
		rc = rfl_stats_describe(values, n, &stats, err);
	free(values);
	*ret = stats.median;
	return rc;
}

/* The rate is that of the summary; of several roofs, the share of one. */
static enum rfl_rc fill_time(const struct rfl_runs *runs, const struct rfl_config *c,
			     struct rfl_point *p, struct rfl_err *err)
{
	const struct rfl_run_times *one = rfl_runs_times(runs, c->runs[0].run);
	const double samples = (double)c->row->batch; /* of a step */
	const char *source = "spread not recorded";
	const struct {
		size_t at;
		double *to;
	} parts[] = {
		{ offsetof(struct rfl_run_times, step_ms_median), &p->step_median_s },
		{ offsetof(struct rfl_run_times, fwd_ms_mean), &p->fwd_ms },
		{ offsetof(struct rfl_run_times, bwd_ms_mean), &p->bwd_ms },
		{ offsetof(struct rfl_run_times, opt_ms_mean), &p->opt_ms },
		{ offsetof(struct rfl_run_times, data_wait_ms_mean), &p->data_wait_ms },
	};
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(parts) && rc == RFL_OK; i++)
		rc = median_of(runs, c, parts[i].at, parts[i].to, err);
	p->step_median_s /= 1e3;
	p->step_s = samples / c->rate.mean;
	p->samples_per_s = (double)p->batch / p->step_s;
	if (c->nruns >= 2) {
		p->step_s_lo = samples / c->rate.max;
		p->step_s_hi = samples / c->rate.min;
		source = "min-max of the repeats";
	} else if (!isnan(one->step_ms_p10) && !isnan(one->step_ms_p90)) {
		p->step_s_lo = fmin(one->step_ms_p10 / 1e3, p->step_s);
		p->step_s_hi = fmax(one->step_ms_p90 / 1e3, p->step_s);
		source = "p10-p90 of the steps";
	}
	return rc == RFL_OK ? rfl_field_set(&p->step_source, source, err) : rc;
}

/* --- what ran --- */

static enum rfl_rc fill_run(const struct rfl_config *c, struct rfl_point *p, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = c->row;
	char engine[128];

	(void)snprintf(engine, sizeof(engine), "%s%s%s", row->engine ? row->engine : "",
		       row->engine_version && *row->engine_version ? " " : "",
		       row->engine_version ? row->engine_version : "");
	const struct rfl_merge_text texts[] = {
		{ &p->env, c->env },
		{ &p->model, row->model },
		{ &p->precision, row->precision },
		{ &p->mode, row->mode },
		{ &p->layout, row->layout },
		{ &p->backend, row->backend },
		{ &p->data_mode, row->data_mode },
		{ &p->engine, engine },
		{ &p->device_name, row->device_name },
		{ &p->config_hash, row->config_hash },
	};
	p->batch = rfl_merge__batch(row);
	p->threads = row->threads;
	p->runs = (int64_t)c->nruns;
	p->steps = 0;
	for (size_t i = 0; i < c->nruns; i++) {
		const int64_t iters = c->runs[i].run->like->iters;

		/* not known of one is not known of all */
		if (iters < 0 || !rfl_num_add(p->steps, iters, &p->steps)) {
			p->steps = -1;
			break;
		}
	}
	return rfl_merge__texts(texts, RFL_ARRAY_LEN(texts), err);
}

/* --- under the roof --- */

/* A lower bound lies on the roof; what rounding leaves of its distance is none. */
#define ON_THE_ROOF 1e-12

static enum rfl_fusion fusion_of(enum rfl_ai ai)
{
	if (ai == RFL_AI_FUSED)
		return RFL_FUSION_FUSED;
	if (ai == RFL_AI_COMPULSORY)
		return RFL_FUSION_COMPULSORY;
	return RFL_FUSION_UNFUSED;
}

static void fill_ai(const struct rfl_config *c, const struct rfl_roof *roof, enum rfl_ai ai,
		    struct rfl_point *p)
{
	const struct rfl_work *w = &c->work;

	p->ai_unfused = w->flops / w->bytes[RFL_FUSION_UNFUSED];
	p->ai_fused = w->flops / w->bytes[RFL_FUSION_FUSED];
	p->ai_compulsory = w->flops / w->bytes[RFL_FUSION_COMPULSORY];
	if (ai == RFL_AI_LOWER_BOUND) {
		p->ai = rfl_roof_lower_bound_ai(roof, p->attained_gflops * 1e9);
		p->ai_lo = rfl_roof_lower_bound_ai(roof, p->attained_gflops_lo * 1e9);
		p->ai_hi = rfl_roof_lower_bound_ai(roof, p->attained_gflops_hi * 1e9);
		p->bytes_per_step = p->flops_per_step / p->ai;
		return;
	}
	if (c->bytes_counted) {
		p->bytes_per_step = c->measured.bytes.value;
		p->ai = p->flops_per_step / p->bytes_per_step;
		p->ai_lo = p->flops_per_step / c->measured.bytes.hi;
		p->ai_hi = p->flops_per_step / c->measured.bytes.lo;
		return;
	}
	/* a count has no spread; how far it may be off is seen from its three levels */
	p->bytes_per_step = w->bytes[fusion_of(ai)];
	p->ai = p->ai_lo = p->ai_hi = p->flops_per_step / p->bytes_per_step;
}

/* Where FLOPs and bytes come from; where there are counters that are not used, why not. */
static enum rfl_rc fill_sources(const struct rfl_config *c, enum rfl_ai ai, struct rfl_point *p,
				struct rfl_err *err)
{
	const char *bytes = rfl_ai_names[c->bytes_counted    ? RFL_AI_COUNTERS
					 : ai == RFL_AI_AUTO ? RFL_AI_UNFUSED
							     : ai];
	const struct {
		char **to;
		const char *source, *why;
	} sources[] = {
		{ &p->flops_source, c->flops_counted ? "counters" : c->work.flops_source,
		  c->flops_why },
		{ &p->bytes_source, bytes, c->bytes_why },
	};
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&text, 1 << 16);
	for (size_t i = 0; i < RFL_ARRAY_LEN(sources) && rc == RFL_OK; i++) {
		rfl_buf_reset(&text);
		rfl_buf_puts(&text, sources[i].source);
		if (sources[i].why[0])
			rfl_buf_printf(&text, RFL_POINT_NOT_COUNTERS "%s)", sources[i].why);
		rc = rfl_buf_check(&text, "points", err);
		if (rc == RFL_OK)
			rc = rfl_field_set(sources[i].to, rfl_buf_str(&text), err);
	}
	rfl_buf_fini(&text);
	return rc;
}

static enum rfl_rc fill_roof(const struct rfl_config *c, enum rfl_ai ai, struct rfl_point *p,
			     struct rfl_err *err)
{
	struct rfl_roof roof = { .compute_flop_per_s = c->compute->value,
				 .bandwidth_byte_per_s = c->dram->value };
	struct rfl_mixed_roof mixed = { .key = "" };
	enum rfl_bound bound;
	enum rfl_rc rc;

	p->flops_per_step = c->flops_counted ? c->measured.flops.value : c->work.flops;
	if (c->flops_counted && rfl_counters_roof(&c->measured, c->penv, c->key, &mixed))
		roof.compute_flop_per_s = mixed.flop_per_s;
	p->attained_gflops = p->flops_per_step / p->step_s / 1e9;
	p->attained_gflops_lo = p->flops_per_step / p->step_s_hi / 1e9;
	p->attained_gflops_hi = p->flops_per_step / p->step_s_lo / 1e9;
	fill_ai(c, &roof, ai, p);

	p->peak_gflops = roof.compute_flop_per_s / 1e9;
	p->peak_gbps = roof.bandwidth_byte_per_s / 1e9;
	p->knee_ai = rfl_roof_knee(&roof);
	p->attainable_gflops = rfl_roof_attainable(&roof, p->ai) / 1e9;
	p->percent_of_attainable = 100 * p->attained_gflops / p->attainable_gflops;
	p->headroom_s = p->step_s * (1 - p->attained_gflops / p->attainable_gflops);
	if (fabs(p->headroom_s) < p->step_s * ON_THE_ROOF)
		p->headroom_s = 0;
	bound = rfl_roof_bound(&roof, p->ai, p->ai_lo, p->ai_hi);

	const struct rfl_merge_text texts[] = {
		{ &p->compute_key, mixed.key[0] ? mixed.key : c->key },
		{ &p->peak_gflops_status,
		  rfl_peak_status_name(mixed.key[0] ? RFL_PEAK_DERIVED : c->compute->status) },
		{ &p->peak_gbps_status, rfl_peak_status_name(c->dram->status) },
		{ &p->bound, rfl_bound_names[bound] },
	};
	rc = fill_sources(c, ai, p, err);
	return rc ? rc : rfl_merge__texts(texts, RFL_ARRAY_LEN(texts), err);
}

/* "unstable" among the flags of a run, which are words with blanks between them. */
static bool any_unstable(const struct rfl_config *c)
{
	static const char word[] = "unstable";
	size_t len;

	for (size_t i = 0; i < c->nruns; i++) {
		const char *flags = c->runs[i].run->like->flags;

		for (; flags && *flags; flags += len + strspn(flags + len, " ")) {
			len = strcspn(flags, " ");
			if (len == sizeof(word) - 1 && strncmp(flags, word, len) == 0)
				return true;
		}
	}
	return false;
}

static enum rfl_rc fill_verdict(const struct rfl_config *c, const struct rfl_merge_options *o,
				struct rfl_point *p, struct rfl_err *err)
{
	const struct rfl_verdict_facts facts = {
		.point = p,
		.env = c->penv,
		.compute = c->compute,
		.dram = c->dram,
		.factor = o->factor != RFL_TRAIN_EXACT,
		.unstable = any_unstable(c),
		.step_compulsory_bytes = c->work.bytes[RFL_FUSION_COMPULSORY],
	};
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 1 << 16);
	rfl_verdict_write(&facts, &text);
	rfl_counters_verdict(&c->measured, c->penv, p, &text);
	rc = rfl_buf_check(&text, "verdict", err);
	if (rc == RFL_OK)
		rc = rfl_field_set(&p->verdict, rfl_buf_str(&text), err);
	rfl_buf_fini(&text);
	return rc;
}

enum rfl_rc rfl_merge__point(const struct rfl_merge_inputs *in,
			     const struct rfl_merge_options *options,
			     const struct rfl_config *config, struct rfl_point *p,
			     struct rfl_err *err)
{
	const struct rfl_merge_text hashes[] = { { &p->peaks_hash, in->peaks_hash },
						 { &p->ledger_hash, in->ledger_hash } };
	enum rfl_rc rc;

	if ((rc = fill_run(config, p, err)) || (rc = fill_time(in->runs, config, p, err)) ||
	    (rc = fill_roof(config, options->ai, p, err)) ||
	    (rc = rfl_counters_columns(&config->measured, &config->work, p, err)) ||
	    (rc = fill_verdict(config, options, p, err)))
		return rc;
	return rfl_merge__texts(hashes, RFL_ARRAY_LEN(hashes), err);
}
