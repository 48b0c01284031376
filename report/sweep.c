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
#include "roofline/roofline.h"

#define UNMEASURED "nothing was measured"
#define ATTENTION  "attention_d" /* the names of the networks, before the number of features */

const char *const rfl_sweep_settings[] = { "none",       "precision",    "attention",
					   "cuda-graph", "warmup-iters", NULL };

static enum rfl_rc no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "table of runs: out of memory");
}

void rfl_sweep_row_init(struct rfl_sweep_row *r)
{
	const struct rfl_stats unknown = { .mean = NAN, .std = NAN };

	*r = (struct rfl_sweep_row){
		.status = "missing",
		.forward = unknown,
		.backward = unknown,
		.both = unknown,
		.optimizer_step = unknown,
		.step = unknown,
		.samples_per_s = NAN,
		.tokens_per_s = NAN,
		.model_flops = NAN,
		.flops = NAN,
		.bytes = NAN,
		.memory_model = NAN,
		.memory_forward = NAN,
		.memory_peak = NAN,
		.memory_of_forward = NAN,
		.memory_of_backward = NAN,
		.ratio = NAN,
		.measured_peak = NAN,
		.measured_model = NAN,
		.measured_forward = NAN,
		.measured_backward = NAN,
		.measured_optimizer = NAN,
		.grad_clip = NAN,
		.flop_per_s = NAN,
		.ai = NAN,
		.mfu = NAN,
		.speedup_forward = NAN,
		.speedup_step = NAN,
	};
}

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

enum rfl_rc rfl_sweep_count(struct rfl_sweep *s, struct rfl_sweep_row *r,
			    const struct rfl_ledger_row *last, bool cuda, struct rfl_err *err)
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
	struct rfl_memory *memory = NULL;
	struct rfl_count *count = NULL;
	struct rfl_net *net = NULL;
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
		rc = rfl_fail(&why, RFL_EINVAL, 0, "unknown form of attention '%s'", r->attention);
	if (rc == RFL_OK && (rc = rfl_zoo_build(r->model, &sizes, &net, &why)) == RFL_OK &&
	    (rc = rfl_count_net(net, &o.count, &count, &why)) == RFL_OK)
		rc = rfl_memory_new(net, &o, &memory, &why);
	if (count)
		r->form = rfl_count_attention(count);
	if (rc == RFL_ENOMEM) {
		rc = rfl_err_pass(err, &why);
		goto done;
	}
	if (rc)
		goto refused;
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
	r->memory_of_forward = r->memory_forward - r->memory_model;
	r->memory_of_backward = r->memory_peak - r->memory_forward;
	goto done;
refused:
	rc = RFL_OK;
	if (strcmp(r->status, "missing") == 0) {
		r->status = "refused";
		r->reason = rfl_arena_strdup(s->arena, why.msg);
		rc = r->reason ? RFL_OK : no_memory(err);
	}
done:
	rfl_memory_free(memory);
	rfl_count_free(count);
	rfl_net_free(net);
	return rc;
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
	struct rfl_csv *csv = NULL;
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
		if (rc == RFL_OK)
			rc = rfl_grow(&to->s, &to->cap, to->n + 1, SIZE_MAX, err);
		if (rc == RFL_OK)
			memcpy(to->s[to->n++], s, sizeof(s));
	}
	if (rc == RFL_OK)
		rc = rfl_runs_check_steps(csv, to->n - before, iters, err);
	if (rc) /* all steps of a run, or none */
		to->n = before;
	rfl_csv_close(csv);
	return rc;
}

static enum rfl_rc describe(const struct steps *steps, struct rfl_sweep_row *r, struct rfl_err *err)
{
	struct rfl_stats *const to[PHASES] = { &r->forward, &r->backward, &r->optimizer_step,
					       &r->step, &r->both };
	double *values = rfl_alloc_array(steps->n, sizeof(*values));
	enum rfl_rc rc = values ? RFL_OK : no_memory(err);

	for (int i = 0; i < PHASES && rc == RFL_OK; i++) {
		for (size_t k = 0; k < steps->n; k++)
			values[k] = steps->s[k][i];
		if (!isnan(values[0]))
			rc = rfl_stats_describe(values, steps->n, to[i], err);
	}
	free(values);
	return rc;
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
	/* that of the step, if it has no other parts */
	if (strcmp(r->mode, "fwd_bwd") == 0)
		r->both.std = r->step.std;
}

/* Copy the texts of the last run, whose row may be freed before the sweep. */
static enum rfl_rc take_texts(struct rfl_sweep *s, struct rfl_sweep_row *r,
			      const struct rfl_ledger_row *last, struct rfl_err *err)
{
	const bool ok = rfl_text_same(last->status, "ok");
	const struct {
		const char **to, *from;
	} texts[] = { { &r->status, last->status ? last->status : "ok" },
		      { &r->device, last->backend },
		      { &r->reason, ok ? NULL : last->error_text } };

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		*texts[i].to = texts[i].from ? rfl_arena_strdup(s->arena, texts[i].from) : NULL;
		if (texts[i].from && !*texts[i].to)
			return no_memory(err);
	}
	return RFL_OK;
}

enum rfl_rc rfl_sweep_collect(struct rfl_sweep *s, struct rfl_sweep_row *r,
			      const struct rfl_sweep_run *runs, size_t n, struct rfl_err *err)
{
	const struct rfl_ledger_row *last = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	struct steps steps = { .n = 0 };
	double rate = 0;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n; i++) {
		const struct rfl_ledger_row *row = runs[i].row;

		if (!last || rfl_text_same(last->status, "ok")) /* the first that is not ok */
			last = row;
		if (!rfl_text_same(row->status, "ok") && !rfl_text_same(row->status, "nan"))
			continue;
		r->runs++;
		rate += row->samples_per_s;
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
	if (last && (rc = take_texts(s, r, last, err)) == RFL_OK)
		rc = rfl_sweep_count(s, r, last, false, err);
	else if (!last)
		r->reason = "the run was refused before it started; repeat the command to see why";
	if (rc == RFL_OK && steps.n)
		rc = describe(&steps, r, err);
	else if (r->runs == (int64_t)n && n > 0)
		take_means(runs, n, r);
	r->ratio = r->measured_peak / r->memory_peak;
	if (r->runs > 0) {
		r->samples_per_s = rate / (double)r->runs; /* as in 'summary' */
		r->tokens_per_s = r->samples_per_s * (double)r->context;
		r->flop_per_s = r->flops * r->samples_per_s / (double)r->batch;
	}
	free(steps.s);
	return rc;
}

static enum rfl_rc place(struct rfl_sweep *s, struct rfl_sweep_row *r,
			 const struct rfl_peaks *peaks, struct rfl_err *err)
{
	struct rfl_attain_roof roof;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!peaks)
		r->mfu_reason = "use --peaks FILE with the ceilings of the environment, which "
				"'roofline peaks measure' writes";
	else if (isnan(r->samples_per_s))
		r->mfu_reason = UNMEASURED;
	if (!peaks || isnan(r->ai))
		return RFL_OK;
	rc = rfl_attain_find(peaks, r->env, r->precision, RFL_FUSION_UNFUSED, &roof, &why);
	if (rc && !r->mfu_reason)
		r->mfu_reason = rfl_arena_strdup(s->arena, why.msg);
	if (rc)
		return rc == RFL_ENOMEM || !r->mfu_reason ? no_memory(err) : RFL_OK;
	const struct rfl_roof two = { .compute_flop_per_s = roof.compute_flop_per_s,
				      .bandwidth_byte_per_s = roof.bandwidth_byte_per_s };

	r->mfu = r->model_flops * r->samples_per_s / (double)r->batch / roof.compute_flop_per_s;
	r->bound = rfl_bound_names[rfl_roof_bound(&two, r->ai, NAN, NAN)];
	return RFL_OK;
}

enum rfl_rc rfl_sweep_place(struct rfl_sweep *s, const struct rfl_peaks *peaks, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < s->n && rc == RFL_OK; i++)
		rc = place(s, &s->rows[i], peaks, err);
	return rc;
}

/* Speed-ups over the row that differs only in a setting, which has its first value. */
static void compare(const struct rfl_sweep *s, struct rfl_sweep_row *r, enum rfl_sweep_by by)
{
	const struct rfl_sweep_row *first = &s->rows[0];
	int64_t warmup = first->warmup;

	for (size_t i = 1; s->in_report && i < s->n; i++)
		if (s->rows[i].warmup >= 0 && (warmup < 0 || s->rows[i].warmup < warmup))
			warmup = s->rows[i].warmup;
	r->base = NULL;
	r->speedup_forward = r->speedup_step = NAN;
	for (const struct rfl_sweep_row *b = s->rows; b < s->rows + s->n; b++) {
		if (strcmp(b->model, r->model) != 0 || b->context != r->context ||
		    !rfl_text_same(b->env, r->env) || strcmp(b->mode, r->mode) != 0 ||
		    b->batch != r->batch || b->clips != r->clips ||
		    !rfl_text_same(b->optimizer, r->optimizer) ||
		    strcmp(b->precision,
			   by == RFL_SWEEP_BY_PRECISION ? first->precision : r->precision) ||
		    strcmp(b->attention,
			   by == RFL_SWEEP_BY_ATTENTION ? first->attention : r->attention) ||
		    b->graph != (by == RFL_SWEEP_BY_GRAPH ? first->graph : r->graph) ||
		    b->warmup != (by == RFL_SWEEP_BY_WARMUP ? warmup : r->warmup))
			continue;
		/* rows of another program may be equal in all settings */
		if (b->graph == r->graph && b->warmup == r->warmup &&
		    strcmp(b->precision, r->precision) == 0 &&
		    strcmp(b->attention, r->attention) == 0)
			b = r;
		r->base = b;
		r->speedup_forward = b->forward.mean / r->forward.mean;
		r->speedup_step = b->step.mean / r->step.mean;
		return;
	}
}

void rfl_sweep_compare(struct rfl_sweep *s, enum rfl_sweep_by by)
{
	for (size_t i = 0; i < s->n && by != RFL_SWEEP_BY_NONE; i++)
		compare(s, &s->rows[i], by);
}

void rfl_sweep_fini(struct rfl_sweep *s)
{
	free(s->rows);
	rfl_arena_free(s->arena);
	*s = (struct rfl_sweep){ .n = 0 };
}

/* ---- tables ---- */

static void put_compiled(struct rfl_table *t, const void *row)
{
	rfl_table_bool(t, ((const struct rfl_sweep_row *)row)->graph);
}

static void put_profile_memory(struct rfl_table *t, const void *row)
{
	rfl_table_bool(t, ((const struct rfl_sweep_row *)row)->profile_memory);
}

#define WITH_SPEEDUPS 1u
#define PROFILED      2u
#define FOR_PROGRAMS  4u /* people see the reasons below the table */
#define WITH_STEPS    8u /* steps that are more than forward and backward */

#define COLUMN(key_, title_, member, kind_, digits_, scale_, when_)                       \
	{                                                                                 \
		RFL_CELL(struct rfl_sweep_row, member), .key = key_, .title = title_,     \
							.kind = kind_, .digits = digits_, \
							.scale = scale_, .when = when_    \
	}
#define TEXT(key, title, member) COLUMN(key, title, member, RFL_COLUMN_TEXT, 0, 0, 0)
#define INT(key, title, member)  COLUMN(key, title, member, RFL_COLUMN_INT, 0, 0, 0)
#define REAL(key, title, member, digits, scale) \
	COLUMN(key, title, member, RFL_COLUMN_REAL, digits, scale, 0)
#define SETTING(key_, title_, member)                                                 \
	{                                                                             \
		RFL_CELL(struct rfl_sweep_row, member), .key = key_, .title = title_, \
							.setting = true               \
	}
#define SETTING_INT(key_, title_, member)                                                       \
	{                                                                                       \
		RFL_CELL(struct rfl_sweep_row, member), .key = key_, .title = title_,           \
							.kind = RFL_COLUMN_INT, .setting = true \
	}
#define SETTING_OF(key_, put_)                                           \
	{                                                                \
		.key = key_, .title = key_, .put = put_, .setting = true \
	}
#define MEMORY(key, title, member)  REAL(key, title, member, 4, 0x1p20)
#define SPEEDUP(key, title, member) COLUMN(key, title, member, RFL_COLUMN_REAL, 3, 0, WITH_SPEEDUPS)

/* Columns of all sweeps. */
#define TIMES                                                                    \
	REAL("fwd_avg_s", "fwd avg (sec)", forward.mean, 6, 0),                  \
		REAL("fwd_std_s", "fwd std (sec)", forward.std, 6, 0),           \
		REAL("back_avg_s", "back avg (sec)", backward.mean, 6, 0),       \
		REAL("back_std_s", "back std (sec)", backward.std, 6, 0),        \
		REAL("fwd_back_avg_s", "fwd & back avg (sec)", both.mean, 6, 0), \
		REAL("fwd_back_std_s", "fwd & back std (sec)", both.std, 6, 0)
#define SETTINGS                                                                               \
	TEXT("status", "status", status), SETTING("dtype", "dtype", dtype),                    \
		SETTING("device", "device", device),                                           \
		SETTING_INT("batch_size", "batch_size", batch), SETTING("mode", "mode", mode), \
		SETTING("optimizer", "optimizer", optimizer), GRAD_CLIP,                       \
		SETTING_OF("compiled", put_compiled),                                          \
		SETTING_OF("profile_memory", put_profile_memory)
#define GRAD_CLIP                                                                          \
	{                                                                                  \
		RFL_CELL(struct rfl_sweep_row, grad_clip),                                 \
			.key = "grad_clip", .title = "grad_clip", .kind = RFL_COLUMN_REAL, \
			.setting = true                                                    \
	}
#define RATES                                                                            \
	SETTING_INT("warmup", "warm-up", warmup), SETTING_INT("runs", "runs", runs),     \
		COLUMN("step_avg_s", "step avg (sec)", step.mean, RFL_COLUMN_REAL, 6, 0, \
		       WITH_STEPS),                                                      \
		COLUMN("step_std_s", "step std (sec)", step.std, RFL_COLUMN_REAL, 6, 0,  \
		       WITH_STEPS),                                                      \
		REAL("tokens_per_s", "tokens/s", tokens_per_s, 4, 0),                    \
		REAL("model_flops", "GFLOP", model_flops, 5, 1e9),                       \
		REAL("flop_per_s", "GFLOP/s", flop_per_s, 4, 1e9),                       \
		REAL("mfu", "MFU %", mfu, 3, 0.01), REAL("ai", "FLOP/byte", ai, 3, 0),   \
		TEXT("bound", "bound", bound),                                           \
		SPEEDUP("fwd_speedup", "fwd speed-up", speedup_forward),                 \
		SPEEDUP("step_speedup", "step speed-up", speedup_step),                  \
		COLUMN("cell", "cell", cell, RFL_COLUMN_TEXT, 0, 0, FOR_PROGRAMS),       \
		COLUMN("reason", NULL, reason, RFL_COLUMN_TEXT, 0, 0, FOR_PROGRAMS),     \
		COLUMN("mfu_reason", NULL, mfu_reason, RFL_COLUMN_TEXT, 0, 0, FOR_PROGRAMS)

/* Measured memory: model, model + forward, + backward, + optimizer. */
#define PROFILE(key, title, member, scale, when) \
	COLUMN(key, title, member, RFL_COLUMN_REAL, 4, scale, when)
#define PROFILES(unit, scale_, when_)                                                            \
	PROFILE("measured_model_bytes", "model " unit, measured_model, scale_, when_),           \
		PROFILE("measured_fwd_bytes", "+fwd " unit, measured_forward, scale_, when_),    \
		PROFILE("measured_back_bytes", "+back " unit, measured_backward, scale_, when_), \
		PROFILE("measured_opt_bytes", "+opt " unit, measured_optimizer, scale_, when_)

static const struct rfl_column lm_columns[] = {
	TEXT("model", "model", model),
	INT("context_length", "context_length", context),
	TIMES,
	REAL("opt_avg_s", "opt avg (sec)", optimizer_step.mean, 6, 0),
	REAL("opt_std_s", "opt std (sec)", optimizer_step.std, 6, 0),
	SETTINGS,
	SETTING("attention", "attention", form),
	REAL("estimated_memory_bytes", "est. GiB", memory_peak, 3, 0x1p30),
	REAL("measured_memory_bytes", "peak GiB", measured_peak, 3, 0x1p30),
	PROFILES("GiB", 0x1p30, PROFILED),
	RATES,
};

static const struct rfl_column attention_columns[] = {
	INT("context_length", "context_length", context),
	INT("d_model", "d_model", features),
	SETTING("attention", "attention", form),
	TIMES,
	MEMORY("model_memory_bytes", "model mem (MiB)", memory_model),
	MEMORY("model_fwd_memory_bytes", "model+fwd mem", memory_forward),
	MEMORY("model_fwd_back_memory_bytes", "model+fwd+back mem", memory_peak),
	MEMORY("fwd_memory_bytes", "fwd mem", memory_of_forward),
	MEMORY("back_memory_bytes", "back mem", memory_of_backward),
	MEMORY("measured_memory_bytes", "measured peak", measured_peak),
	PROFILES("MiB", 0x1p20, PROFILED),
	SETTINGS,
	RATES,
};

/* The standard deviation of a step as a part of its mean. */
static void put_deviation(struct rfl_table *t, const void *row)
{
	const struct rfl_sweep_row *r = row;

	rfl_table_real(t, r->step.std / r->step.mean);
}

/* Flags of the columns for a terminal, besides PROFILED and WITH_SPEEDUPS. */
enum {
	OF_MODELS = 1 << 4,
	OF_FEATURES = 1 << 5,
	/* settings that differ between the rows */
	DTYPES = 1 << 6,
	ATTENTIONS = 1 << 7,
	WARMUPS = 1 << 8,
	GRAPHS = 1 << 9,
	/* numbers that a row has */
	BACKWARD_S = 1 << 10,
	UPDATE_S = 1 << 11,
	PLACED = 1 << 12,
	MEASURED = 1 << 13,
	PREDICTED = 1 << 14, /* not measured */
};

#define NARROW(title, kind, member, digits, scale, when) \
	COLUMN(title, title, member, RFL_COLUMN_##kind, digits, scale, when)
#define NARROW_OF(title_, kind_, put_, digits_, scale_, when_)                                 \
	{                                                                                      \
		.key = title_, .title = title_, .kind = RFL_COLUMN_##kind_, .digits = digits_, \
		.scale = scale_, .put = put_, .when = when_                                    \
	}

static const struct rfl_column narrow_columns[] = {
	NARROW("model", TEXT, model, 0, 0, OF_MODELS),
	NARROW("d_model", INT, features, 0, 0, OF_FEATURES),
	NARROW("context", INT, context, 0, 0, 0),
	NARROW("dtype", TEXT, dtype, 0, 0, DTYPES),
	NARROW("attention", TEXT, form, 0, 0, ATTENTIONS),
	NARROW("warm-up", INT, warmup, 0, 0, WARMUPS),
	NARROW_OF("compiled", TEXT, put_compiled, 0, 0, GRAPHS),
	NARROW("fwd ms", REAL, forward.mean, 4, 1e-3, 0),
	NARROW("back ms", REAL, backward.mean, 4, 1e-3, BACKWARD_S),
	NARROW("opt ms", REAL, optimizer_step.mean, 4, 1e-3, UPDATE_S),
	NARROW("step ms", REAL, step.mean, 4, 1e-3, 0),
	NARROW_OF("+- %", REAL, put_deviation, 2, 0.01, 0),
	NARROW("tokens/s", REAL, tokens_per_s, 4, 0, OF_MODELS),
	NARROW("GFLOP/s", REAL, flop_per_s, 4, 1e9, 0),
	NARROW("MFU %", REAL, mfu, 3, 0.01, PLACED),
	NARROW("bound", TEXT, bound, 0, 0, PLACED),
	NARROW("est. GiB", REAL, memory_peak, 3, 0x1p30, OF_MODELS | PREDICTED),
	NARROW("est. MiB", REAL, memory_peak, 4, 0x1p20, OF_FEATURES | PREDICTED),
	NARROW("peak GiB", REAL, measured_peak, 3, 0x1p30, OF_MODELS | MEASURED),
	NARROW("peak MiB", REAL, measured_peak, 4, 0x1p20, OF_FEATURES | MEASURED),
	NARROW("fwd x", REAL, speedup_forward, 3, 0, WITH_SPEEDUPS),
	NARROW("step x", REAL, speedup_step, 3, 0, WITH_SPEEDUPS),
	NARROW("status", TEXT, status, 0, 0, 0),
};

static unsigned narrow_flags(const struct rfl_sweep *s, enum rfl_sweep_table kind)
{
	unsigned flags = kind == RFL_SWEEP_LM ? OF_MODELS : OF_FEATURES;
	const struct rfl_sweep_row *first = s->rows;
	const char *form = NULL; /* of the first row that ran */

	for (const struct rfl_sweep_row *r = s->rows; r < s->rows + s->n; r++) {
		form = form ? form : r->form;
		flags |= strcmp(r->precision, first->precision) != 0 ? DTYPES : 0;
		flags |= strcmp(r->attention, first->attention) != 0 ? ATTENTIONS : 0;
		flags |= r->form && !rfl_text_same(r->form, form) ? ATTENTIONS : 0;
		flags |= r->warmup != first->warmup ? WARMUPS : 0;
		flags |= r->graph != first->graph ? GRAPHS : 0;
		flags |= isnan(r->backward.mean) ? 0 : BACKWARD_S;
		flags |= isnan(r->optimizer_step.mean) ? 0 : UPDATE_S;
		flags |= isnan(r->mfu) ? 0 : PLACED;
		flags |= isnan(r->measured_peak) ? 0 : MEASURED;
	}
	return flags & MEASURED ? flags : flags | PREDICTED;
}

/* The settings that have no column, because they are the same in all rows. */
static void note_settings(struct rfl_table *t, const struct rfl_sweep *s, unsigned flags)
{
	const struct rfl_sweep_row *r = s->rows;
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	rfl_buf_printf(&text, "Batch size %lld, mode %s", (long long)r->batch, r->mode);
	if (!(flags & DTYPES))
		rfl_buf_printf(&text, ", %s", r->precision);
	for (size_t i = 0; i < s->n && !(flags & ATTENTIONS); i++)
		if (s->rows[i].form) {
			rfl_buf_printf(&text, ", attention %s", s->rows[i].form);
			break;
		}
	if (!(flags & WARMUPS))
		rfl_buf_printf(&text, ", %lld warm-up steps", (long long)r->warmup);
	if (r->graph && !(flags & GRAPHS))
		rfl_buf_puts(&text, ", CUDA graphs");
	rfl_table_note(t, "%s.", rfl_buf_str(&text));
	rfl_table_note(t, "Times are means, +- is the standard deviation of a step; more columns: "
			  "--format md, csv or json.");
	rfl_buf_fini(&text);
}

/* For the tables of a report. */
static const struct rfl_column speedup_columns[] = {
	SETTING("env", "Environment", env),
	TEXT("model", "Model", model),
	INT("context_length", "Context", context),
	SETTING("dtype", "dtype", dtype),
	SETTING_OF("compiled", put_compiled),
	SETTING("attention", "attention", form),
	SETTING_INT("warmup", "warm-up", warmup),
	SETTING("mode", "mode", mode),
	SETTING("optimizer", "optimizer", optimizer),
	GRAD_CLIP,
	REAL("fwd_avg_s", "fwd avg (sec)", forward.mean, 6, 0),
	REAL("step_avg_s", "step avg (sec)", step.mean, 6, 0),
	REAL("fwd_speedup", "fwd speed-up", speedup_forward, 3, 0),
	REAL("step_speedup", "step speed-up", speedup_step, 3, 0),
};

static const struct rfl_column memory_columns[] = {
	SETTING("env", "Environment", env),
	TEXT("model", "Model", model),
	INT("context_length", "Context", context),
	SETTING("dtype", "dtype", dtype),
	SETTING("attention", "attention", form),
	SETTING("mode", "mode", mode),
	SETTING("optimizer", "optimizer", optimizer),
	GRAD_CLIP,
	MEMORY("model_memory_bytes", "predicted: model (MiB)", memory_model),
	MEMORY("model_fwd_memory_bytes", "+ forward", memory_forward),
	MEMORY("peak_memory_bytes", "peak", memory_peak),
	PROFILE("measured_model_bytes", "measured: model", measured_model, 0x1p20, 0),
	PROFILE("measured_fwd_bytes", "+ forward", measured_forward, 0x1p20, 0),
	PROFILE("measured_back_bytes", "+ backward", measured_backward, 0x1p20, 0),
	PROFILE("measured_opt_bytes", "+ optimizer", measured_optimizer, 0x1p20, 0),
	MEMORY("measured_memory_bytes", "peak", measured_peak),
	REAL("ratio", "measured / predicted", ratio, 3, 0),
	TEXT("status", "status", status),
};

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
			rfl_table_note(t, "MFU and bound are unknown: %s", r->mfu_reason);
	}
}

/* Whether a row adds nothing to a table of memory: another one differs only in its warm-up, and is
 * the first or was measured. */
static bool is_memory_known(const struct rfl_sweep *s, const struct rfl_sweep_row *r)
{
	for (const struct rfl_sweep_row *o = s->rows; isnan(r->measured_peak) && o < s->rows + s->n;
	     o++)
		if (o != r && (o < r || !isnan(o->measured_peak)) && o->context == r->context &&
		    o->batch == r->batch && o->clips == r->clips && o->graph == r->graph &&
		    rfl_text_same(o->env, r->env) && rfl_text_same(o->model, r->model) &&
		    rfl_text_same(o->precision, r->precision) &&
		    rfl_text_same(o->attention, r->attention) && rfl_text_same(o->mode, r->mode) &&
		    rfl_text_same(o->optimizer, r->optimizer) &&
		    rfl_text_same(o->status, r->status))
			return true;
	return false;
}

struct rfl_table *rfl_sweep_table(const struct rfl_sweep *s, enum rfl_sweep_table kind,
				  enum rfl_sweep_by by)
{
	static const struct {
		const struct rfl_column *columns;
		size_t n;
	} kinds[] = {
		[RFL_SWEEP_LM] = { lm_columns, RFL_ARRAY_LEN(lm_columns) },
		[RFL_SWEEP_ATTENTION] = { attention_columns, RFL_ARRAY_LEN(attention_columns) },
		[RFL_SWEEP_SPEEDUPS] = { speedup_columns, RFL_ARRAY_LEN(speedup_columns) },
		[RFL_SWEEP_MEMORY] = { memory_columns, RFL_ARRAY_LEN(memory_columns) },
	};
	const bool narrow = s->narrow && s->n > 0;
	unsigned with = by != RFL_SWEEP_BY_NONE ? WITH_SPEEDUPS : 0;
	struct rfl_table *t;

	with |= narrow ? narrow_flags(s, kind) : 0;
	with |= s->complete ? FOR_PROGRAMS | WITH_STEPS : 0;
	for (size_t i = 0; i < s->n; i++)
		with |= (s->rows[i].profile_memory ? PROFILED : 0) |
			(s->rows[i].optimizer ? WITH_STEPS : 0);
	t = narrow ? rfl_table_of(narrow_columns, RFL_ARRAY_LEN(narrow_columns), with)
		   : rfl_table_of(kinds[kind].columns, kinds[kind].n, with);
	for (size_t i = 0; i < s->n; i++)
		if (kind == RFL_SWEEP_SPEEDUPS
			    ? s->rows[i].speedup_step > 0 && s->rows[i].base != &s->rows[i]
			    : kind != RFL_SWEEP_MEMORY || !is_memory_known(s, &s->rows[i]))
			rfl_table_add(t, &s->rows[i], 1, sizeof(*s->rows));
	if (narrow)
		note_settings(t, s, with);
	if (kind == RFL_SWEEP_LM || kind == RFL_SWEEP_ATTENTION)
		note_reasons(t, s);
	if (by != RFL_SWEEP_BY_NONE)
		rfl_table_note(t, "Speed-ups over the first value of --by %s.",
			       rfl_sweep_settings[by]);
	return t;
}
