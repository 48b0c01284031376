/* lm_time.c - minimum times of a language model's steps. */
#include "roofline/lm_time.h"

#include <math.h>

#include "base/text.h"

const char *const rfl_lm_limit_names[] = { "compute", "vector", "memory", "link", NULL };

double rfl_lm_time_sum(const struct rfl_lm_time *t)
{
	double sum = 0;

	for (int i = 0; i < RFL_LM_LIMIT_COUNT; i++)
		sum += t->limit_s[i];
	return sum;
}

void rfl_lm_time_add(struct rfl_lm_time *sum, const struct rfl_lm_time *t, int64_t times)
{
	for (int i = 0; i < RFL_LM_LIMIT_COUNT; i++)
		sum->limit_s[i] += (double)times * t->limit_s[i];
}

const char *rfl_lm_time_bound(const struct rfl_lm_time *t)
{
	int longest = 0;

	for (int i = 1; i < RFL_LM_LIMIT_COUNT; i++)
		if (t->limit_s[i] > t->limit_s[longest])
			longest = i;
	return t->limit_s[longest] > 0 ? rfl_lm_limit_names[longest] : NULL;
}

static struct rfl_lm_time time_of(const struct rfl_lm_run *run, const struct rfl_lm_op *op)
{
	const double link = op->bytes[RFL_LM_LINK];
	struct rfl_lm_time t = { .limit_s = { 0 } };
	struct rfl_attained device;

	if (!run->roof)
		return t;
	device = rfl_attain(run->roof, op->flops, op->elementwise, rfl_lm_traffic(op));
	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		t.limit_s[i] = device.limit_s[i];
	if (run->link_byte_per_s > 0) /* an operation moves bytes of one kind or the other */
		t.limit_s[RFL_LM_LIMIT_LINK] = link / run->link_byte_per_s;
	return t;
}

void rfl_lm_run(struct rfl_lm_run *run)
{
	struct rfl_lm_step step = run->step;
	struct rfl_lm_count one;

	for (int64_t i = 0; i < run->steps; i++) {
		step.past = run->step.past + (int64_t)((double)i * run->advance);
		rfl_lm_count(run->lm, &step, &one);
		for (size_t k = 0; k < one.n; k++) {
			const struct rfl_lm_time t = time_of(run, &one.ops[k]);

			if (i > 0)
				rfl_lm_op_add(&one.ops[k], &run->count.ops[k], 1);
			else
				run->times[k] = (struct rfl_lm_time){ .limit_s = { 0 } };
			rfl_lm_time_add(&run->times[k], &t, 1);
		}
		run->count = one;
	}
}

struct search {
	const struct rfl_lm *lm;
	struct rfl_lm_step step;
	double ridge;
	bool weights_only;
};

static bool below_ridge(int64_t batch, void *ctx)
{
	struct search *s = ctx;
	double flops = 0, bytes = 0;
	struct rfl_lm_count c;

	s->step.batch = batch;
	rfl_lm_count(s->lm, &s->step, &c);
	for (size_t i = 0; i < c.n; i++) {
		const struct rfl_lm_op *op = &c.ops[i];

		if (!s->weights_only || (op->flops > 0 && op->bytes[RFL_LM_WEIGHTS] > 0)) {
			flops += op->flops * (double)op->layers;
			bytes += rfl_lm_traffic(op) * (double)op->layers;
		}
	}
	return flops < s->ridge * bytes;
}

int64_t rfl_lm_ridge_batch(const struct rfl_lm *lm, const struct rfl_lm_step *step,
			   const struct rfl_attain_roof *roof, bool weights_only)
{
	struct search s = { .lm = lm,
			    .step = *step,
			    .ridge = roof->compute_flop_per_s / roof->bandwidth_byte_per_s,
			    .weights_only = weights_only };
	const int64_t below = rfl_lm_largest(RFL_LM_FIT_MAX, below_ridge, &s);

	return below == RFL_LM_FIT_MAX ? 0 : below + 1;
}

enum rfl_rc rfl_lm_steps_of(const struct rfl_ledger_row *row, const char *net,
			    const struct rfl_peaks *peaks, struct rfl_arena *arena,
			    struct rfl_lm_steps *ret, struct rfl_err *err)
{
	const bool decode = rfl_text_same(row->mode, "decode");
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	ret->least_s = NAN;
	if ((rc = rfl_lm_named(net ? net : row->model, arena, &ret->lm, NULL, err)))
		return rc;
	ret->run = (struct rfl_lm_run){
		.lm = &ret->lm,
		.step = rfl_lm_step_of(row->precision, rfl_text_same(row->weights, "int8"),
				       row->batch, row->past, row->context_length),
		.steps = decode && row->iters > 0 ? row->iters : 1,
		.advance = 1,
	};
	if (peaks)
		rc = rfl_attain_find(peaks, row->env, row->precision, RFL_FUSION_FUSED, &ret->roof,
				     &why);
	if (peaks && rc == RFL_OK)
		ret->run.roof = &ret->roof;
	rfl_lm_run(&ret->run);
	if (rc)
		return rfl_fail(err, RFL_EMISSING, 0, "%s", why.msg);
	if (!peaks)
		return RFL_OK;
	ret->least_s = 0;
	for (size_t i = 0; i < ret->run.count.n; i++)
		ret->least_s +=
			rfl_lm_time_sum(&ret->run.times[i]) * (double)ret->run.count.ops[i].layers;
	ret->least_s /= (double)ret->run.steps;
	return RFL_OK;
}
