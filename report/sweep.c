/* sweep.c - rows of a sweep: counted, read from the ledger and its tables of steps, and as tables.
 */
#include "report/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/log.h"
#include "base/num.h"
#include "base/text.h"
#include "complexity/count/memory.h"
#include "complexity/zoo.h"
#include "ledger/runs.h"
#include "ledger/step.h"
#include "roofline/step_time.h"
#include "roofline/verdict.h"

#define UNMEASURED "nothing was measured"
#define ATTENTION  "attention_d" /* the names of the networks, before the number of features */

const char *const rfl_sweep_settings[] = { "none",       "precision",    "attention",
					   "cuda-graph", "warmup-iters", NULL };

bool rfl_sweep_is_attention(const char *model)
{
	return model && strncmp(model, ATTENTION, strlen(ATTENTION)) == 0;
}

/* The name of a precision in PyTorch. */
static const char *dtype_of(const char *precision)
{
	static const char *const names[][2] = { { "fp32", "float32" },
						{ "bf16", "bfloat16" },
						{ "fp16", "float16" } };

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++)
		if (strcmp(precision, names[i][0]) == 0)
			return names[i][1];
	return precision;
}

void rfl_sweep_count(struct rfl_sweep *s, struct rfl_sweep_row *r,
		     const struct rfl_ledger_row *last, bool cuda)
{
	const bool trains = strcmp(r->mode, "train") == 0;
	const bool forward_only = strcmp(r->mode, "fwd") == 0;
	const enum rfl_scope scope = trains         ? RFL_SCOPE_STEP
				     : forward_only ? RFL_SCOPE_FORWARD
						    : RFL_SCOPE_FORWARD_BACKWARD;
	struct rfl_zoo_options sizes = { .context_length = r->context };
	struct rfl_memory_options o;
	struct rfl_ledger_row step; /* with borrowed texts */
	struct rfl_err why = RFL_ERR_INIT;
	RFL_AUTOPTR(memory) memory = NULL;
	RFL_AUTOPTR(count) count = NULL;
	RFL_AUTOPTR(net) net = NULL;
	enum rfl_rc rc;

	r->dtype = dtype_of(r->precision);
	if (rfl_sweep_is_attention(r->model))
		r->features = strtoll(r->model + strlen(ATTENTION), NULL, 10);
	while (rfl_attention_names[sizes.attention] &&
	       strcmp(rfl_attention_names[sizes.attention], r->attention) != 0)
		sizes.attention++;
	rfl_ledger_row_init(&step);
	if (last)
		step = *last;
	step.batch = step.micro_batch = r->batch;
	step.accum = 1;
	step.precision = (char *)r->precision;
	step.mode = (char *)r->mode;
	step.optimizer = (char *)r->optimizer;
	step.grad_clip = r->clips ? 1 : (double)NAN;
	if (!step.backend)
		step.backend = (char *)(cuda ? "cuda" : "cpu");
	if (rfl_attention_names[sizes.attention])
		rc = rfl_step_options(&step, &o, &why);
	else
		rc = rfl_fail(&why, RFL_EINVAL, 0, "unknown attention implementation '%s'",
			      r->attention);
	if (rc == RFL_OK && (rc = rfl_zoo_build(r->model, &sizes, &net, &why)) == RFL_OK &&
	    (rc = rfl_count_net(net, &o.count, &count, &why)) == RFL_OK)
		rc = rfl_memory_new(net, &o, &memory, &why);
	if (count)
		r->form = rfl_count_attention(count);
	if (rc != RFL_OK) {
		if (strcmp(r->status, "missing") == 0) {
			r->status = "refused";
			r->reason = rfl_arena_strdup(s->arena, why.msg);
		}
		return;
	}
	r->flops = (double)(forward_only ? rfl_count_forward_flops(count)
					 : rfl_count_training_flops(count));
	r->model_flops = (double)(forward_only ? rfl_count_forward_flops(count)
					       : rfl_count_model_flops(count));
	r->bytes = (double)rfl_count_bytes(count, RFL_FUSION_UNFUSED, scope);
	r->ai = r->flops / r->bytes;
	r->memory_model =
		(double)(memory->weights + memory->buffers + memory->state + memory->input);
	r->memory_forward = r->memory_model +
			    (double)(memory->saved - memory->saved_class[RFL_SAVED_CLASS_INPUT]);
	r->memory_peak = (double)memory->peak;
	r->memory_backward =
		forward_only ? (double)NAN : r->memory_model + (double)memory->gradients;
	r->memory_of_forward = r->memory_forward - r->memory_model;
	r->memory_of_backward = r->memory_peak - r->memory_forward;
}

/* ---- times, from the tables of steps ---- */

enum { FORWARD, BACKWARD, OPTIMIZER, STEP, BOTH, PHASES };

struct steps {
	size_t n, cap;
	double (*s)[PHASES];
};

static enum rfl_rc read_steps(const char *path, const char *mode, int64_t iters, struct steps *to,
			      struct rfl_err *err)
{
	static const char *const names[] = { "forward_ms", "backward_ms", "optimizer_ms",
					     "step_ms" };
	RFL_AUTOPTR(csv) csv = NULL;
	const size_t before = to->n;
	bool more = true;
	int at[BOTH] = { -1 };
	enum rfl_rc rc;

	rc = rfl_csv_open(path, &csv, err);
	for (int i = 0; i < BOTH && rc == RFL_OK; i++)
		rc = rfl_csv_need(csv, names[i], &at[i], err);
	while (rc == RFL_OK && (rc = rfl_csv_next(csv, &more, err)) == RFL_OK && more) {
		double s[PHASES] = { 0 };

		for (int i = 0; i < BOTH && rc == RFL_OK; i++) {
			rc = rfl_csv_double(csv, at[i], &s[i], err);
			s[i] *= 1e-3;
		}
		/* a replayed step has no phases, but may have only one */
		if (isnan(s[FORWARD]) && strcmp(mode, "fwd") == 0)
			s[FORWARD] = s[STEP];
		s[BOTH] = isnan(s[FORWARD]) && strcmp(mode, "fwd_bwd") == 0
				  ? s[STEP]
				  : s[FORWARD] + s[BACKWARD];
		rfl_reserve(&to->s, &to->cap, to->n + 1);
		memcpy(to->s[to->n++], s, sizeof(s));
	}
	if (rc == RFL_OK)
		rc = rfl_runs_check_steps(csv, to->n - before, iters, err);
	if (rc) /* all steps of a run, or none */
		to->n = before;
	return rc;
}

/* Describe the phases over the steps that have them: runs may differ in what they record. */
static void describe(const struct steps *steps, struct rfl_sweep_row *r)
{
	struct rfl_stats *const to[PHASES] = { &r->forward, &r->backward, &r->optimizer_step,
					       &r->step, &r->both };
	RFL_AUTOFREE double *values = rfl_alloc_array(steps->n, sizeof(*values));

	for (int i = 0; i < PHASES; i++) {
		size_t n = 0;

		for (size_t k = 0; k < steps->n; k++)
			if (!isnan(steps->s[k][i]))
				values[n++] = steps->s[k][i];
		*to[i] = rfl_stats_of(values, n);
	}
}

/* The means in the ledger, of a table of another program or without steps. */
static void take_means(const struct rfl_sweep_run *runs, size_t n, struct rfl_sweep_row *r)
{
	const struct {
		enum rfl_ledger_at mean, std;
		struct rfl_stats *to;
	} times[] = {
		{ RFL_LEDGER_AT_fwd_ms_mean, RFL_LEDGER_AT_fwd_ms_std, &r->forward },
		{ RFL_LEDGER_AT_bwd_ms_mean, RFL_LEDGER_AT_bwd_ms_std, &r->backward },
		{ RFL_LEDGER_AT_opt_ms_mean, RFL_LEDGER_AT_opt_ms_std, &r->optimizer_step },
		{ RFL_LEDGER_AT_step_ms_mean, RFL_LEDGER_AT_step_ms_std, &r->step },
	};

	for (size_t k = 0; k < RFL_ARRAY_LEN(times); k++) {
		double sum = 0;

		for (size_t i = 0; i < n; i++)
			sum += rfl_field_number(&rfl_ledger_fields[times[k].mean], runs[i].row);
		times[k].to->mean = sum / (double)n * 1e-3;
		times[k].to->std =
			n == 1 ? rfl_field_number(&rfl_ledger_fields[times[k].std], runs->row) *
					 1e-3
			       : (double)NAN;
	}
	r->both.mean = r->forward.mean + r->backward.mean;
	/* of the step, if it has no other parts */
	if (strcmp(r->mode, "fwd_bwd") == 0)
		r->both.std = r->step.std;
}

/* Copy the texts of the last run, whose row may be freed before the sweep. */
static void take_texts(struct rfl_sweep *s, struct rfl_sweep_row *r,
		       const struct rfl_ledger_row *last)
{
	const bool ok = rfl_text_same(last->status, "ok");

	r->status = rfl_arena_strdup(s->arena, last->status ? last->status : "ok");
	r->device = rfl_arena_strdup(s->arena, last->backend);
	r->reason = ok ? NULL : rfl_arena_strdup(s->arena, last->error_text);
}

void rfl_sweep_collect(struct rfl_sweep *s, struct rfl_sweep_row *r,
		       const struct rfl_sweep_run *runs, size_t n)
{
	struct rfl_run_step *list = rfl_arena_array(s->arena, n, sizeof(*list));
	const struct rfl_ledger_row *last = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	struct steps steps = { .n = 0 };
	struct rfl_step_time t;

	r->runs = 0;
	for (size_t i = 0; i < n; i++) {
		const struct rfl_ledger_row *row = runs[i].row;

		if (!last || rfl_text_same(last->status, "ok")) /* the first that is not ok */
			last = row;
		if (!rfl_text_same(row->status, "ok") && !rfl_text_same(row->status, "nan"))
			continue;
		list[r->runs++] = rfl_run_step_of_row(row);
		/* fmax() ignores unknown values */
		r->measured_peak = fmax(r->measured_peak, isnan(row->mem_alloc_peak_bytes)
								  ? row->mem_step_peak_bytes
								  : row->mem_alloc_peak_bytes);
		r->measured_model = fmax(r->measured_model, row->mem_model_bytes);
		r->measured_forward = fmax(r->measured_forward, row->mem_fwd_bytes);
		r->measured_backward = fmax(r->measured_backward, row->mem_bwd_bytes);
		r->measured_optimizer = fmax(r->measured_optimizer, row->mem_opt_bytes);
		r->profile_memory |= !isnan(row->mem_model_bytes);
		if (runs[i].steps &&
		    read_steps(runs[i].steps, r->mode, row->iters, &steps, &why) != RFL_OK) {
			rfl_log(RFL_LOG_WARN, "%s; its steps are missing in the table", why.msg);
			rfl_err_clear(&why);
		}
	}
	if (last) {
		take_texts(s, r, last);
		rfl_sweep_count(s, r, last, false);
	} else {
		r->reason = "the run was refused before it started; repeat the command to see why";
	}
	if (steps.n)
		describe(&steps, r);
	else if (r->runs == (int64_t)n && n > 0)
		take_means(runs, n, r);
	free(steps.s);
	r->deviation.forward = r->forward.std / r->forward.mean;
	r->deviation.backward = r->backward.std / r->backward.mean;
	r->deviation.step = r->step.std / r->step.mean;
	r->ratio = r->measured_peak / r->memory_peak;
	t = rfl_step_time((double)r->batch, list, (size_t)r->runs);
	r->samples_per_s = t.rate.mean;
	r->tokens_per_s = r->samples_per_s * (double)r->context;
	r->flop_per_s = r->flops * r->samples_per_s / (double)r->batch;
	r->flop_per_s_lo = r->flops / t.hi_s;
	r->flop_per_s_hi = r->flops / t.lo_s;
}

static void place(struct rfl_sweep *s, struct rfl_sweep_row *r, const struct rfl_peaks *peaks)
{
	struct rfl_verdict_facts facts = { .step_compulsory_bytes = NAN };
	struct rfl_attain_roof roof;
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_point p;

	if (!peaks)
		r->mfu_reason = "no ceilings of the environment; measure them with 'roofline peaks "
				"measure', and add --peaks FILE";
	else if (isnan(r->samples_per_s))
		r->mfu_reason = UNMEASURED;
	if (!peaks || isnan(r->ai))
		return;
	if (rfl_attain_find(peaks, r->env, r->precision, RFL_FUSION_UNFUSED, &roof, &why)) {
		if (!r->mfu_reason)
			r->mfu_reason = rfl_arena_strdup(s->arena, why.msg);
		return;
	}
	facts.env = rfl_peaks_find(peaks, r->env);
	facts.compute = rfl_peaks_compute(facts.env, roof.compute_key);
	facts.dram = rfl_peaks_dram(facts.env);
	rfl_fields_clear(rfl_point_fields, RFL_POINT_NCOLUMNS, &p);
	p.ai = p.ai_lo = p.ai_hi = r->ai;
	p.attained_gflops = r->flop_per_s / 1e9;
	p.attained_gflops_lo = r->flop_per_s_lo / 1e9;
	p.attained_gflops_hi = r->flop_per_s_hi / 1e9;
	p.peak_gflops = roof.compute_flop_per_s / 1e9;
	p.peak_gbps = roof.bandwidth_byte_per_s / 1e9;
	rfl_point_judge(&p, &facts, s->arena);
	r->mfu = r->model_flops * r->samples_per_s / (double)r->batch / roof.compute_flop_per_s;
	/* before a run, the lower ceiling */
	r->bound = p.bound ? p.bound : rfl_bound_words[rfl_point_verdict(&p).roof].word;
}

void rfl_sweep_place(struct rfl_sweep *s, const struct rfl_peaks *peaks)
{
	for (size_t i = 0; i < s->n; i++)
		place(s, &s->rows[i], peaks);
}

unsigned rfl_sweep_differs(const struct rfl_sweep_row *a, const struct rfl_sweep_row *b)
{
	const bool same[] = {
		strcmp(a->precision, b->precision) == 0,
		strcmp(a->attention, b->attention) == 0,
		a->graph == b->graph,
		a->warmup == b->warmup,
		strcmp(a->model, b->model) == 0 && a->context == b->context,
		rfl_text_same(a->env, b->env) && strcmp(a->mode, b->mode) == 0 &&
			a->batch == b->batch && a->clips == b->clips &&
			rfl_text_same(a->optimizer, b->optimizer),
	};
	unsigned ret = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(same); i++)
		ret |= same[i] ? 0U : 1U << i;
	return ret;
}

void rfl_sweep_compare(struct rfl_sweep *s, enum rfl_sweep_by by)
{
	const unsigned setting = by == RFL_SWEEP_BY_NONE ? 0 : 1U << (by - 1);
	const struct rfl_sweep_row *first =
		s->rows; /* has the value with which others are compared */

	for (size_t i = 1; s->in_report && setting == RFL_SWEEP_OTHER_WARMUP && i < s->n; i++)
		if (s->rows[i].warmup >= 0 &&
		    (first->warmup < 0 || s->rows[i].warmup < first->warmup))
			first = &s->rows[i];
	for (struct rfl_sweep_row *r = s->rows; setting && r < s->rows + s->n; r++) {
		const struct rfl_sweep_row *b = s->rows;

		while (b < s->rows + s->n && ((rfl_sweep_differs(b, r) & ~setting) ||
					      (rfl_sweep_differs(b, first) & setting)))
			b++;
		/* rows of another program may be equal in all settings */
		if (b < s->rows + s->n && rfl_sweep_differs(b, r) == 0)
			b = r;
		r->base = b < s->rows + s->n ? b : NULL;
		r->speedup_forward = r->base ? b->forward.mean / r->forward.mean : (double)NAN;
		r->speedup_step = r->base ? b->step.mean / r->step.mean : (double)NAN;
	}
}

void rfl_sweep_fini(struct rfl_sweep *s)
{
	free(s->rows);
	rfl_arena_free(s->arena);
	*s = (struct rfl_sweep){ .n = 0 };
}

/* ---- tables ---- */

/* Flags of columns. */
enum {
	OF_LM = 1 << 0,
	OF_ATTENTION = 1 << 1,
	WITH_SPEEDUPS = 1 << 2,
	PROFILED = 1 << 3,
	FOR_PROGRAMS = 1 << 4, /* people see the reasons below the table */
	WITH_STEPS = 1 << 5,   /* steps that are more than forward and backward */
	/* of tables for people: */
	MODELS = 1 << 6,
	TIMES = 1 << 7,
	RATES = 1 << 8,
	MEMORY = 1 << 9,
	IN_REPORT = 1 << 10,
	PREDICTED = 1 << 11, /* in a report, or nothing was measured */
};

/* The key and the title of a column are the first two arguments after the member. */
#define TEXT(member, ...)  RFL_COLUMN(TEXT, struct rfl_sweep_row, member, __VA_ARGS__)
#define INT(member, ...)   RFL_COLUMN(INT, struct rfl_sweep_row, member, __VA_ARGS__)
#define REAL(member, ...)  RFL_COLUMN(REAL, struct rfl_sweep_row, member, __VA_ARGS__)
#define SECONDS            .digits = 6
#define GIB                .scale = 0x1p30
#define MIB                .scale = 0x1p20
#define DEVIATION(of, ...) REAL(deviation.of, "", "+- %", .digits = 2, .scale = 0.01, __VA_ARGS__)
#define SETTING            .setting = true

static const struct rfl_column all_columns[] = {
	TEXT(model, "model", "model", .when = OF_LM),
	INT(context, "context_length", "context_length"),
	INT(features, "d_model", "d_model", .when = OF_ATTENTION),
	TEXT(attention, "attention", "attention", SETTING, .when = OF_ATTENTION),
	REAL(forward.mean, "fwd_avg_s", "fwd avg (sec)", SECONDS),
	REAL(forward.std, "fwd_std_s", "fwd std (sec)", SECONDS),
	REAL(backward.mean, "back_avg_s", "back avg (sec)", SECONDS),
	REAL(backward.std, "back_std_s", "back std (sec)", SECONDS),
	REAL(both.mean, "fwd_back_avg_s", "fwd & back avg (sec)", SECONDS),
	REAL(both.std, "fwd_back_std_s", "fwd & back std (sec)", SECONDS),
	REAL(optimizer_step.mean, "opt_avg_s", "opt avg (sec)", SECONDS, .when = OF_LM),
	REAL(optimizer_step.std, "opt_std_s", "opt std (sec)", SECONDS, .when = OF_LM),
	REAL(memory_model, "model_memory_bytes", "model mem (MiB)", MIB, .when = OF_ATTENTION),
	REAL(memory_forward, "model_fwd_memory_bytes", "model+fwd mem", MIB, .when = OF_ATTENTION),
	REAL(memory_peak, "model_fwd_back_memory_bytes", "model+fwd+back mem", MIB,
	     .when = OF_ATTENTION),
	REAL(memory_of_forward, "fwd_memory_bytes", "fwd mem", MIB, .when = OF_ATTENTION),
	REAL(memory_of_backward, "back_memory_bytes", "back mem", MIB, .when = OF_ATTENTION),
	REAL(measured_peak, "measured_memory_bytes", "measured peak", MIB, .when = OF_ATTENTION),
	REAL(measured_model, "measured_model_bytes", "model MiB", MIB,
	     .when = OF_ATTENTION | PROFILED),
	REAL(measured_forward, "measured_fwd_bytes", "+fwd MiB", MIB,
	     .when = OF_ATTENTION | PROFILED),
	REAL(measured_backward, "measured_back_bytes", "+back MiB", MIB,
	     .when = OF_ATTENTION | PROFILED),
	REAL(measured_optimizer, "measured_opt_bytes", "+opt MiB", MIB,
	     .when = OF_ATTENTION | PROFILED),
	TEXT(status, "status", "status"),
	TEXT(dtype, "dtype", "dtype", SETTING),
	TEXT(device, "device", "device", SETTING),
	INT(batch, "batch_size", "batch_size", SETTING),
	TEXT(mode, "mode", "mode", SETTING),
	TEXT(optimizer, "optimizer", "optimizer", SETTING),
	REAL(grad_clip, "grad_clip", "grad_clip", SETTING),
	TEXT(graph, "compiled", "compiled", SETTING),
	TEXT(profile_memory, "profile_memory", "profile_memory", SETTING),
	TEXT(attention, "attention", "attention", SETTING, .when = OF_LM),
	REAL(memory_peak, "estimated_memory_bytes", "est. GiB", GIB, .digits = 3, .when = OF_LM),
	REAL(measured_peak, "measured_memory_bytes", "peak GiB", GIB, .digits = 3, .when = OF_LM),
	REAL(measured_model, "measured_model_bytes", "model GiB", GIB, .when = OF_LM | PROFILED),
	REAL(measured_forward, "measured_fwd_bytes", "+fwd GiB", GIB, .when = OF_LM | PROFILED),
	REAL(measured_backward, "measured_back_bytes", "+back GiB", GIB, .when = OF_LM | PROFILED),
	REAL(measured_optimizer, "measured_opt_bytes", "+opt GiB", GIB, .when = OF_LM | PROFILED),
	INT(warmup, "warmup", "warm-up", SETTING),
	INT(runs, "runs", "runs", SETTING),
	REAL(step.mean, "step_avg_s", "step avg (sec)", SECONDS, .when = WITH_STEPS),
	REAL(step.std, "step_std_s", "step std (sec)", SECONDS, .when = WITH_STEPS),
	REAL(tokens_per_s, "tokens_per_s", "tokens/s"),
	REAL(model_flops, "model_flops", "GFLOP", .digits = 5, .scale = 1e9),
	REAL(flop_per_s, "flop_per_s", "GFLOP/s", .scale = 1e9),
	REAL(mfu, "mfu", "MFU %", .digits = 3, .scale = 0.01),
	REAL(ai, "ai", "FLOP/byte", .digits = 3),
	TEXT(bound, "bound", "bound"),
	REAL(speedup_forward, "fwd_speedup", "fwd speed-up", .digits = 3, .when = WITH_SPEEDUPS),
	REAL(speedup_step, "step_speedup", "step speed-up", .digits = 3, .when = WITH_SPEEDUPS),
	TEXT(form, "attention_form", "attention form", .when = FOR_PROGRAMS),
	TEXT(cell, "cell", "cell", .when = FOR_PROGRAMS),
	TEXT(reason, "reason", "reason", .when = FOR_PROGRAMS),
	TEXT(mfu_reason, "mfu_reason", "mfu_reason", .when = FOR_PROGRAMS),
};

/* For a terminal and for reports; the keys are not used. */
static const struct rfl_column main_columns[] = {
	TEXT(env, "", "environment", SETTING),
	TEXT(model, "", "model", .when = MODELS),
	INT(features, "", "d_model", .when = OF_ATTENTION),
	INT(context, "", "context"),
	TEXT(dtype, "", "dtype", SETTING),
	TEXT(attention, "", "attention", SETTING),
	TEXT(graph, "", "compiled", SETTING),
	INT(warmup, "", "warm-up", SETTING),
	INT(batch, "", "batch size", SETTING),
	TEXT(mode, "", "mode", SETTING),
	TEXT(optimizer, "", "optimizer", SETTING),
	REAL(grad_clip, "", "grad_clip", SETTING),
	REAL(forward.mean, "", "fwd ms", .scale = 1e-3, .when = TIMES),
	DEVIATION(forward, .when = RATES | IN_REPORT),
	REAL(backward.mean, "", "back ms", .scale = 1e-3, .when = RATES),
	DEVIATION(backward, .when = RATES | IN_REPORT),
	REAL(optimizer_step.mean, "", "opt ms", .scale = 1e-3, .when = RATES),
	REAL(step.mean, "", "step ms", .scale = 1e-3, .when = TIMES),
	DEVIATION(step, .when = RATES),
	REAL(tokens_per_s, "", "tokens/s", .when = RATES | MODELS),
	REAL(flop_per_s, "", "GFLOP/s", .scale = 1e9, .when = RATES),
	REAL(mfu, "", "MFU %", .digits = 3, .scale = 0.01, .when = RATES),
	TEXT(bound, "", "bound", .when = RATES),
	REAL(memory_peak, "", "est. GiB", GIB, .digits = 3, .when = RATES | OF_LM | PREDICTED),
	REAL(measured_peak, "", "peak GiB", GIB, .digits = 3, .when = RATES | OF_LM),
	REAL(memory_peak, "", "est. MiB", MIB, .when = RATES | OF_ATTENTION | PREDICTED),
	REAL(measured_peak, "", "peak MiB", MIB, .when = RATES | OF_ATTENTION),
	REAL(speedup_forward, "", "fwd x", .digits = 3, .when = WITH_SPEEDUPS),
	REAL(speedup_step, "", "step x", .digits = 3, .when = WITH_SPEEDUPS),
	REAL(memory_model, "", "predicted: model (MiB)", MIB, .when = MEMORY),
	REAL(memory_forward, "", "+ forward", MIB, .when = MEMORY),
	REAL(memory_backward, "", "+ backward", MIB, .when = MEMORY),
	REAL(memory_peak, "", "peak", MIB, .when = MEMORY),
	REAL(measured_model, "", "measured: model", MIB, .when = MEMORY),
	REAL(measured_forward, "", "+ forward", MIB, .when = MEMORY),
	REAL(measured_backward, "", "+ backward", MIB, .when = MEMORY),
	REAL(measured_optimizer, "", "+ optimizer", MIB, .when = MEMORY),
	REAL(measured_peak, "", "peak", MIB, .when = MEMORY),
	REAL(ratio, "", "measured / predicted", .digits = 3, .when = MEMORY),
	TEXT(status, "", "status", .when = RATES),
	TEXT(status, "", "status", .when = MEMORY),
};

/* Set the numbers in columns to unknown. */
static void set_unknown(struct rfl_sweep_row *r, const struct rfl_column *columns, size_t n)
{
	const double unknown = NAN;

	for (size_t i = 0; i < n; i++)
		if (columns[i].kind == RFL_COLUMN_REAL)
			memcpy((char *)r + columns[i].at, &unknown, sizeof(unknown));
}

void rfl_sweep_row_init(struct rfl_sweep_row *r)
{
	*r = (struct rfl_sweep_row){
		.status = "missing", .flops = NAN, .bytes = NAN, .samples_per_s = NAN
	};
	set_unknown(r, all_columns, RFL_ARRAY_LEN(all_columns));
	set_unknown(r, main_columns, RFL_ARRAY_LEN(main_columns));
}

/* The reasons of the rows that are not ok, each once for a model and context, with the memory that
 * out-of-memory rows were expected to need. */
static void note_reasons(struct rfl_table *t, const struct rfl_sweep *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_sweep_row *r = &s->rows[i], *before = s->rows;
		char need[RFL_NUM_MAX] = "";

		while (r->reason && before < r &&
		       !(before->reason && before->context == r->context &&
			 strcmp(before->model, r->model) == 0 &&
			 strcmp(before->precision, r->precision) == 0 &&
			 strcmp(before->reason, r->reason) == 0))
			before++;
		if (!r->reason || before < r)
			continue;
		if (!isnan(r->memory_peak) && strcmp(r->status, "oom") == 0)
			(void)rfl_num_bytes(r->memory_peak, need, sizeof(need));
		rfl_table_note(t, "%s, context %lld, %s: %s: %s%s%s", r->model,
			       (long long)r->context, r->precision, r->status, r->reason,
			       *need ? "; estimated memory: " : "", need);
	}
	for (const struct rfl_sweep_row *r = s->rows, *before; r < s->rows + s->n; r++) {
		if (!r->mfu_reason || strcmp(r->mfu_reason, UNMEASURED) == 0)
			continue;
		for (before = s->rows; !rfl_text_same(before->mfu_reason, r->mfu_reason);)
			before++;
		if (before == r)
			rfl_table_note(t, "No MFU and no bound: %s", r->mfu_reason);
	}
}

/* How attention ran where the option does not say it: "tiny_lm, auto: naive". */
static void note_forms(struct rfl_table *t, const struct rfl_sweep *s)
{
	RFL_AUTO(buf) forms = { .len = 0 };

	for (const struct rfl_sweep_row *r = s->rows, *before; r < s->rows + s->n; r++) {
		if (!r->form || strcmp(r->form, r->attention) == 0)
			continue;
		for (before = s->rows; !rfl_text_same(before->form, r->form) ||
				       strcmp(before->attention, r->attention) != 0 ||
				       strcmp(before->model, r->model) != 0;)
			before++;
		if (before == r)
			rfl_buf_printf(&forms, "%s%s, %s: %s", forms.len ? "; " : "", r->model,
				       r->attention, r->form);
	}
	if (forms.len)
		rfl_table_note(t, "Attention as it ran: %s.", rfl_buf_str(&forms));
}

/* Whether a row adds nothing to a table of memory: another one differs only in its warm-up, and is
 * the first or was measured. */
static bool is_memory_known(const struct rfl_sweep *s, const struct rfl_sweep_row *r)
{
	for (const struct rfl_sweep_row *o = s->rows; isnan(r->measured_peak) && o < s->rows + s->n;
	     o++)
		if (o != r && (o < r || !isnan(o->measured_peak)) &&
		    !(rfl_sweep_differs(o, r) & ~(unsigned)RFL_SWEEP_OTHER_WARMUP) &&
		    rfl_text_same(o->status, r->status))
			return true;
	return false;
}

struct rfl_table *rfl_sweep_table(const struct rfl_sweep *s, enum rfl_sweep_table kind,
				  enum rfl_sweep_by by)
{
	static const unsigned kinds[] = {
		[RFL_SWEEP_LM] = OF_LM | MODELS | TIMES | RATES,
		[RFL_SWEEP_ATTENTION] = OF_ATTENTION | TIMES | RATES,
		[RFL_SWEEP_SPEEDUPS] = MODELS | TIMES | WITH_SPEEDUPS,
		[RFL_SWEEP_MEMORY] = MODELS | MEMORY,
	};
	unsigned with = kinds[kind] | (by != RFL_SWEEP_BY_NONE ? WITH_SPEEDUPS : 0U) |
			(s->in_report ? IN_REPORT : 0U) |
			(s->complete ? FOR_PROGRAMS | WITH_STEPS : 0U);
	bool measured = false;
	struct rfl_table *t;

	for (size_t i = 0; i < s->n; i++) {
		with |= (s->rows[i].profile_memory ? PROFILED : 0U) |
			(s->rows[i].optimizer ? WITH_STEPS : 0U);
		measured |= !isnan(s->rows[i].measured_peak);
	}
	with |= s->in_report || !measured ? PREDICTED : 0U;
	t = s->narrow ? rfl_table_of(main_columns, RFL_ARRAY_LEN(main_columns), with)
		      : rfl_table_of(all_columns, RFL_ARRAY_LEN(all_columns), with);
	for (size_t i = 0; i < s->n; i++)
		if (kind == RFL_SWEEP_SPEEDUPS
			    ? s->rows[i].speedup_step > 0 && s->rows[i].base != &s->rows[i]
			    : kind != RFL_SWEEP_MEMORY || !is_memory_known(s, &s->rows[i]))
			rfl_table_add(t, &s->rows[i], 1, sizeof(*s->rows));
	if (with & TIMES)
		rfl_table_note(t, "Times are means over all steps%s%s.",
			       s->narrow && with & RATES ? ", +- is their standard deviation" : "",
			       s->narrow && !s->in_report
				       ? "; more columns: --format md, csv or json"
				       : "");
	if (with & RATES) {
		note_forms(t, s);
		note_reasons(t, s);
	}
	if (by != RFL_SWEEP_BY_NONE)
		rfl_table_note(t, "Speed-ups over the first value of --by %s.",
			       rfl_sweep_settings[by]);
	return t;
}
