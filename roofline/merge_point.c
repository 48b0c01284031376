/*
 * merge_point.c - chooses between counts and counters for a point, fills in its columns, and adds
 * the counters to its verdict.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "roofline/step_time.h"
#include "roofline/verdict.h"

const char *const rfl_ai_names[] = { "auto",     "unfused",     "fused", "compulsory",
				     "counters", "lower-bound", NULL };
const char *const rfl_flops_names[] = { "auto", "model", "counters", NULL };

/* Return why a measurement cannot be used for a point; NULL: it can.
 * @param demanded  the user requested counters: only invalid values are refused */
static const char *obstacle(struct rfl_merge_job *job, const struct rfl_measured *m,
			    const struct rfl_measure *x, bool demanded)
{
	if (isnan(x->value))
		return x->why;
	if (!(x->value > 0))
		return rfl_merge__text(job, "the count is %g", x->value);
	if (m->doubtful && !(demanded && m->sure))
		return rfl_merge__text(
			job, "they disagree with the count: %s; see counters_note for the causes",
			m->doubt);
	if (demanded)
		return NULL;
	if (x->validity == RFL_VALID_MARKED)
		return "the self-test deviated by more than 2 %";
	if (x->validity == RFL_VALID_PARTIAL && !(x->coverage >= RFL_COUNTERS_COVERAGE))
		return rfl_merge__text(job, "counted in only %.3g %% of the time",
				       100 * x->coverage);
	return m->process ? "counted over a whole process including set-up; use --ai counters to "
			    "use them anyway"
			  : NULL;
}

/* @param x  NULL: both FLOPs and bytes are known, but of different launches */
static void demand(struct rfl_merge_job *job, struct rfl_config *c, const char *what,
		   const struct rfl_measure *x, const char *why)
{
	const struct rfl_ledger_row *row = c->row;
	const size_t before = job->missing.n;
	const char *fix =
		"count again with the metrics named above ('roofline counters list --chip CHIP "
		"--ncu' lists the metrics of a GPU), or use the count (--ai auto, --flops auto)";

	if (!x)
		fix = "count both in every launch, or use the count (--ai auto, --flops auto)";
	else if (c->measured->refused && isnan(x->value))
		fix = "follow the advice in the reason ('roofline counters check' verifies it), "
		      "or use the count (--ai auto, --flops auto)";
	else if (!c->measured->any)
		fix = "use roofline run --counters step; or profile a run with a label that ends "
		      "in _prof, and import its file with --ncu-dir, --perf-dir or --counters";
	else if (c->measured->no_steps || c->measured->doubtful)
		fix = "use --counter-steps LABEL=N with the number of steps of the profiled run, "
		      "or use the count (--ai auto, --flops auto)";
	if (!c->nruns) {
		rfl_missing_add(
			job, c,
			rfl_merge__text(job, "%s of %s: %s", what,
					rfl_counters__name(c->counted->capture), why),
			"'roofline counters import FILE' prints what was counted; counts in "
			"another file are joined with 'counters import --label'");
		job->missing.of_counters += job->missing.n - before;
		return;
	}
	rfl_missing_add(job, c,
			rfl_merge__text(job, "%s from counters for %s %s %s bs%lld %s%s%s: %s",
					what, c->env, row->model, row->precision,
					(long long)row->batch, row->mode,
					row->layout && *row->layout ? " " : "",
					row->layout ? row->layout : "", why),
			fix);
	job->missing.of_counters += job->missing.n - before;
}

/* Skip a program without FLOPs or bytes: a time alone is not a point, and not an error. */
static void leave_out(struct rfl_merge_job *job, struct rfl_config *c, const char *why)
{
	if (job->nprograms++ == 0) {
		job->program = c;
		job->program_why = why;
	}
	c->missing = true;
}

/* Return why there are no counters. */
static const char *no_capture(struct rfl_merge_job *job, const struct rfl_config *c)
{
	const char *status = NULL;

	for (size_t i = 0; i < c->nruns && !(status && *status); i++)
		status = c->runs[i].run->like->counters_status;
	return rfl_merge__text(job, "no capture belongs to the configuration%s%s",
			       status && *status ? "; counters_status in its ledger row: " : "",
			       status ? status : "");
}

void rfl_merge__choose(struct rfl_merge_job *job, struct rfl_config *c)
{
	const struct rfl_merge_options *o = job->options;
	const struct rfl_measured *m = c->measured;
	const bool demanded = o->ai == RFL_AI_COUNTERS || c->is_program;
	const char *why;

	if (demanded || (o->ai == RFL_AI_AUTO && m->any)) {
		why = m->any ? obstacle(job, m, &m->bytes, demanded) : no_capture(job, c);
		c->bytes_counted = !why;
		if (why && c->is_program)
			leave_out(job, c, why);
		else if (why && demanded)
			demand(job, c, "DRAM bytes", &m->bytes, why);
		else if (why)
			c->bytes_why = why;
	}
	if (o->flops != RFL_FLOPS_COUNTERS && !c->is_program) {
		if (m->any && isnan(m->flops.value))
			c->flops_why = m->flops.why;
		return;
	}
	why = m->any ? obstacle(job, m, &m->flops, true) : no_capture(job, c);
	if (!why && m->foreign != RFL_QUANTITY_COUNT && !c->is_program)
		why = rfl_merge__text(
			job, "%.3g %% of them are not %s but %s, which has another ceiling",
			100 * (1 - m->expected_share), c->row->precision,
			rfl_quantity_info(m->foreign)->name);
	c->flops_counted = !why;
	if (!why && !c->nruns && !(c->counted->capture->total[RFL_QUANTITY_TIME].value > 0))
		why = "its time is unknown; join it with a file of times";
	if (why && c->is_program) {
		if (!c->missing)
			leave_out(job, c, why);
	} else if (why) {
		demand(job, c, "FLOPs", &m->flops, why);
	} else if (c->bytes_counted && isnan(m->ai)) {
		c->bytes_counted = false;
		c->bytes_why = RFL_COUNTERS_APART;
		c->flops_counted = !demanded;
		if (demanded)
			demand(job, c, "FLOPs and DRAM bytes", NULL, RFL_COUNTERS_APART);
	}
}

/* The intensity of a cache: the FLOPs of the point over the counted bytes. */
static double cache_ai(struct rfl_merge_job *job, const struct rfl_measured *m,
		       const struct rfl_measure *bytes, enum rfl_quantity as,
		       const struct rfl_point *p, struct rfl_buf *note)
{
	if (obstacle(job, m, bytes, job->options->ai == RFL_AI_COUNTERS))
		return NAN;
	rfl_buf_printf(note, "; %s: %s", rfl_quantity_info(as)->name,
		       rfl_quantity_info(as)->meaning);
	return p->flops_per_step / bytes->value;
}

/* Fill in the columns of the counters, even if the point does not use them. */
static void fill_counters(struct rfl_merge_job *job, const struct rfl_config *c,
			  struct rfl_point *p)
{
	const struct rfl_measured *m = c->measured;
	const struct rfl_measure *const known[] = { &m->flops, &m->bytes };
	const char *validity = rfl_validity_names[RFL_VALID_UNAVAILABLE];
	enum rfl_validity worst = RFL_VALID;
	struct rfl_buf note = { .len = 0 };

	if (!m->any)
		return;
	p->flops_counters = m->flops.value;
	p->bytes_counters = m->bytes.value;
	p->ai_counters = m->ai;
	p->flops_measured_over_counted = m->flops.value / c->work.flops;
	p->bytes_over_compulsory = m->bytes.value / c->work.bytes[RFL_FUSION_COMPULSORY];
	p->bytes_over_unfused = m->bytes.value / c->work.bytes[RFL_FUSION_UNFUSED];
	p->counters_steps = m->steps;
	p->counters_repeats = m->repeats;
	p->coverage = isnan(m->flops.value) ? m->bytes.coverage : m->flops.coverage;
	p->zero_flop_share = m->zero_share;
	rfl_buf_puts(&note, m->note);
	p->ai_l2 = cache_ai(job, m, &m->l2, m->l2_as, p, &note);
	p->ai_l1 = cache_ai(job, m, &m->l1, m->l1_as, p, &note);
	if (m->doubtful)
		rfl_buf_printf(&note, "; disagrees with the count: %s; likely causes:%s", m->doubt,
			       m->causes);
	for (size_t i = 0; i < RFL_ARRAY_LEN(known); i++) {
		if (known[i]->why[0])
			rfl_buf_printf(&note, "; %s", known[i]->why);
		if (isnan(known[i]->value))
			continue;
		worst = known[i]->validity > worst ? known[i]->validity : worst;
		validity = rfl_validity_names[worst];
	}
	p->counters_note = rfl_merge__keep(job, &note);
	p->counters_source = rfl_merge__copy(job, m->source);
	p->counters_validity = rfl_merge__copy(job, m->doubtful ? "doubtful" : validity);
	p->zero_flop_kernels = rfl_merge__copy(job, m->zero_kernels);
}

/* Fill in rate and times. The rate is the summary's, divided by the number of roofs. */
static void fill_time(struct rfl_merge_job *job, const struct rfl_config *c, struct rfl_point *p)
{
	const struct rfl_amount *total;
	struct rfl_run_step *runs = rfl_arena_array(job->arena, c->nruns, sizeof(*runs));
	const double samples = (double)c->row->batch; /* of a step */
	struct rfl_step_time t;

	if (!c->nruns) { /* counted->steps is at least 1 */
		total = c->counted->capture->total;
		p->step_s = total[RFL_QUANTITY_TIME].value / (double)c->counted->steps;
		p->step_source = rfl_merge__copy(job, RFL_POINT_OF_CAPTURE);
		p->clock_hz = rfl_merge__clock(c->counted->capture, total);
		return;
	}
	for (size_t k = 0; k < c->nruns; k++)
		runs[k] = *rfl_runs_times(job->in->runs, c->runs[k].run);
	t = rfl_step_time(samples, runs, c->nruns);
	p->step_s = t.step_s;
	p->step_s_lo = t.lo_s;
	p->step_s_hi = t.hi_s;
	p->step_source = rfl_merge__copy(job, t.source);
	p->step_median_s = t.median_s;
	p->samples_per_s = (double)p->batch / p->step_s;
	p->samples_per_s_std = c->rate.std * (double)p->batch / samples;
	p->fwd_ms = t.phase_ms[RFL_TIMED_FORWARD];
	p->bwd_ms = t.phase_ms[RFL_TIMED_BACKWARD];
	p->opt_ms = t.phase_ms[RFL_TIMED_OPTIMIZER];
	p->data_wait_ms = t.phase_ms[RFL_TIMED_DATA_WAIT];
}

static void fill_run(struct rfl_merge_job *job, const struct rfl_config *c, struct rfl_point *p)
{
	const struct rfl_ledger_row *row = c->row;
	const bool version = row->engine_version && *row->engine_version;

	p->env = rfl_merge__copy(job, c->env);
	p->model = rfl_merge__copy(job, row->model);
	p->precision = rfl_merge__copy(job, row->precision);
	p->mode = rfl_merge__copy(job, row->mode);
	p->layout = rfl_merge__copy(job, row->layout);
	p->backend = rfl_merge__copy(job, row->backend);
	p->data_mode = rfl_merge__copy(job, row->data_mode);
	p->engine = rfl_merge__copy(
		job, rfl_merge__text(job, "%s%s%s", row->engine ? row->engine : "",
				     version ? " " : "", version ? row->engine_version : ""));
	p->device_name = rfl_merge__copy(job, row->device_name);
	p->config_hash = rfl_merge__copy(job, row->config_hash);
	p->peaks_hash = rfl_merge__copy(job, job->in->peaks_hash);
	p->ledger_hash = rfl_merge__copy(job, job->in->ledger_hash);
	if (!c->nruns) {
		if (rfl_text_same(c->counted->capture->source, "rocprof"))
			p->backend = NULL; /* an AMD GPU */
		return;
	}
	p->batch = rfl_merge__batch(row);
	p->context_length = row->context_length > 0 ? row->context_length : RFL_UNKNOWN;
	p->past = row->past;
	p->threads = row->threads;
	if (row->threads > 0 && !rfl_num_mul(row->threads, rfl_merge__processes(row), &p->threads))
		p->threads = -1;
	p->runs = (int64_t)c->rate.n;
	p->steps = 0;
	for (size_t i = 0; i < c->nruns; i++) {
		const int64_t iters = c->runs[i].run->like->iters;

		/* unknown if any repeat has no number of steps */
		if (iters < 0 || !rfl_num_add(p->steps, iters, &p->steps)) {
			p->steps = -1;
			break;
		}
	}
}

const char *rfl_merge__ceiling_of(enum rfl_quantity part)
{
	static const char *const keys[RFL_QUANTITY_COUNT + 1] = {
		[RFL_QUANTITY_FLOPS_FP16] = "fp16.vector",
		[RFL_QUANTITY_FLOPS_FP32] = "fp32.vector",
		[RFL_QUANTITY_FLOPS_FP64] = "fp64.vector",
		[RFL_QUANTITY_FLOPS_TENSOR_FP16] = "fp16.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_BF16] = "bf16.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_TF32] = "tf32.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP32] = "fp32.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP64] = "fp64.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP8] = "fp8.matrix",
		[RFL_QUANTITY_FLOPS_TENSOR_FP4] = "fp4.matrix",
	};

	return keys[part];
}

/* Smaller shares of the FLOPs are ignored. */
#define LEAST_PART 0.005

/* Combine the ceilings of all precisions of the counted FLOPs: the harmonic mean, weighted by
 * FLOPs.
 * @param key  in: ceiling of the precision of the run; out: "0.97 fp16.matrix + 0.03 fp32.vector"
 * @return false if there is only one precision or the file lacks a ceiling */
static bool mix_roofs(struct rfl_merge_job *job, const struct rfl_config *c, const char **key,
		      double *flop_per_s)
{
	const double *part = c->measured->part;
	const char *mixed = "";
	double all = 0, time = 0;
	size_t n = 0;

	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (rfl_quantity_is_flops(q) && part[q] > 0)
			all += part[q];
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const char *ceiling = rfl_merge__ceiling_of(q);
		const struct rfl_peak *peak;

		if (!rfl_quantity_is_flops(q) || !(part[q] >= LEAST_PART * all))
			continue;
		peak = ceiling ? rfl_peaks_compute(c->penv, ceiling) : NULL;
		if (!peak || !rfl_peak_usable(peak))
			return false;
		time += part[q] / peak->value;
		mixed = rfl_merge__text(job, "%s%s%.2f %s", mixed, n++ ? " + " : "", part[q] / all,
					ceiling);
	}
	if (n < 2 || c->penv->short_form || !strstr(mixed, *key))
		return false;
	*flop_per_s = all / time;
	*key = mixed;
	return true;
}

char *rfl_merge__source(struct rfl_merge_job *job, const char *source, const char *why)
{
	return rfl_arena_printf(job->arena, "%s%s%s%s", source,
				why[0] ? RFL_POINT_NOT_COUNTERS : "", why, why[0] ? ")" : "");
}

static void fill_roof(struct rfl_merge_job *job, const struct rfl_config *c, struct rfl_point *p)
{
	const enum rfl_ai ai = job->options->ai;
	const struct rfl_work *w = &c->work;
	const char *bytes = rfl_ai_names[ai == RFL_AI_AUTO ? RFL_AI_UNFUSED : ai];
	enum rfl_fusion fusion = RFL_FUSION_UNFUSED;
	struct rfl_roof roof = { .compute_flop_per_s = c->compute->value,
				 .bandwidth_byte_per_s = c->dram->value };
	const char *key = c->key;
	const bool mixed = c->flops_counted && mix_roofs(job, c, &key, &roof.compute_flop_per_s);

	p->flops_per_step = c->flops_counted ? c->measured->flops.value : w->flops;
	p->attained_gflops = p->flops_per_step / p->step_s / 1e9;
	p->attained_gflops_lo = p->flops_per_step / p->step_s_hi / 1e9;
	p->attained_gflops_hi = p->flops_per_step / p->step_s_lo / 1e9;

	p->ai_unfused = w->flops / w->bytes[RFL_FUSION_UNFUSED];
	p->ai_fused = w->flops / w->bytes[RFL_FUSION_FUSED];
	p->ai_compulsory = w->flops / w->bytes[RFL_FUSION_COMPULSORY];
	if (ai == RFL_AI_LOWER_BOUND) {
		p->ai = rfl_roof_lower_bound_ai(&roof, p->attained_gflops * 1e9);
		p->ai_lo = rfl_roof_lower_bound_ai(&roof, p->attained_gflops_lo * 1e9);
		p->ai_hi = rfl_roof_lower_bound_ai(&roof, p->attained_gflops_hi * 1e9);
		p->bytes_per_step = p->flops_per_step / p->ai;
	} else if (c->bytes_counted) {
		bytes = rfl_counters__source(c->counted->capture, c->measured->bytes.given);
		p->bytes_per_step = c->measured->bytes.value;
		p->ai = p->flops_per_step / p->bytes_per_step;
		p->ai_lo = p->flops_per_step / c->measured->bytes.hi;
		p->ai_hi = p->flops_per_step / c->measured->bytes.lo;
	} else {
		/* A count has no spread; the three levels of fusion show the uncertainty. */
		if (ai == RFL_AI_FUSED)
			fusion = RFL_FUSION_FUSED;
		else if (ai == RFL_AI_COMPULSORY)
			fusion = RFL_FUSION_COMPULSORY;
		p->bytes_per_step = w->bytes[fusion];
		if (ai == RFL_AI_AUTO && w->plan_bytes > 0) {
			bytes = RFL_POINT_OF_PLAN;
			p->bytes_per_step = w->plan_bytes;
		}
		p->ai = p->ai_lo = p->ai_hi = p->flops_per_step / p->bytes_per_step;
	}

	rfl_point_set_roof(p, key, roof.compute_flop_per_s,
			   mixed ? RFL_PEAK_DERIVED : c->compute->status, c->dram, job->arena);
	p->flops_source =
		rfl_merge__source(job,
				  c->flops_counted ? rfl_counters__source(c->counted->capture,
									  c->measured->flops.given)
						   : w->flops_source,
				  c->flops_why);
	p->bytes_source = rfl_merge__source(job, bytes, c->bytes_why);
}

/* Append the counters to a verdict, each part preceded by "; ". */
static void write_counters(const struct rfl_measured *m, const struct rfl_peaks_env *env,
			   const struct rfl_point *p, struct rfl_buf *out)
{
	const bool foreign = m->foreign != RFL_QUANTITY_COUNT;
	const char *key = foreign ? rfl_merge__ceiling_of(m->foreign) : NULL;
	const struct rfl_peak *peak = key ? rfl_peaks_compute(env, key) : NULL;
	char roof[48] = "not in the peaks file";

	if (!m->any)
		return;
	if (p->bytes_source && strncmp(p->bytes_source, "counters", 8) == 0) {
		rfl_buf_printf(out, "; bytes measured by %s", m->source);
		if (!isnan(p->bytes_over_unfused)) /* of a known network */
			rfl_buf_printf(out,
				       ": %.3g x the compulsory bytes, %.3g x the unfused bytes",
				       p->bytes_over_compulsory, p->bytes_over_unfused);
	}
	if (peak && rfl_peak_usable(peak) && !env->short_form)
		rfl_num_si(peak->value, "FLOP/s", 3, roof, sizeof(roof));
	if (foreign)
		rfl_buf_printf(
			out,
			"; only %.3g %% of the counted FLOPs are %s, and most of the rest are %s",
			100 * m->expected_share,
			p->precision ? p->precision : "in the precision of the run",
			rfl_quantity_info(m->foreign)->name);
	if (key)
		rfl_buf_printf(out, "; the ceiling for these is %s (%s), not %s", key, roof,
			       p->compute_key ? p->compute_key : "this one");
	if (p->flops_source && strcmp(p->flops_source, "counters") == 0 && p->compute_key &&
	    !strstr(p->compute_key, " + ") && m->expected_share < 1 - LEAST_PART)
		rfl_buf_printf(out,
			       "; %.2g %% of the FLOPs are in a precision without a ceiling in the "
			       "peaks file, so %s is used for all",
			       100 * (1 - m->expected_share), p->compute_key);
	if (m->doubtful)
		rfl_buf_puts(out, "; the counters disagree with the count");
	if (m->zero_share >= 0.05)
		rfl_buf_printf(out, "; kernels without FLOPs take %.2g %% of the kernel time (%s)",
			       100 * m->zero_share, m->zero_longest);
}

static bool any_flag(const struct rfl_config *c, const char *name)
{
	for (size_t i = 0; i < c->nruns; i++) {
		const char *flags = c->runs[i].run->like->flags;
		struct rfl_span rest = rfl_span_of(flags ? flags : ""), flag;

		while (rfl_span_next_word(&rest, &flag))
			if (rfl_span_is(flag, name))
				return true;
	}
	return false;
}

void rfl_merge__point(struct rfl_merge_job *job, const struct rfl_config *config,
		      struct rfl_point *p)
{
	const struct rfl_verdict_facts facts = {
		.env = config->penv,
		.compute = config->compute,
		.dram = config->dram,
		.factor = job->options->factor != RFL_TRAIN_EXACT,
		.unstable = any_flag(config, "unstable"),
		.busy = any_flag(config, "busy"),
		.step_compulsory_bytes = config->work.bytes[RFL_FUSION_COMPULSORY],
		.sheet_clock_hz = config->sheet_clock_hz,
	};
	struct rfl_buf verdict = { .len = 0 };

	fill_run(job, config, p);
	fill_time(job, config, p);
	fill_roof(job, config, p);
	fill_counters(job, config, p);
	rfl_point_judge(p, &facts, job->arena);
	rfl_verdict_write(p, &facts, &verdict);
	write_counters(config->measured, config->penv, p, &verdict);
	p->verdict = rfl_merge__keep(job, &verdict);
}
