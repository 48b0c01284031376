/*
 * work.c - the FLOPs and bytes of one step, from the network itself.
 */
#include "roofline/work_parts.h"

#include <math.h>
#include <string.h>

#include "complexity/zoo.h"

const char *const rfl_train_factor_names[] = { "exact", "2", "3", NULL };

enum rfl_rc rfl_work__mode(const char *mode, enum rfl_scope *ret, struct rfl_err *err)
{
	static const struct {
		const char *mode;
		enum rfl_scope scope;
	} modes[] = {
		{ "train", RFL_SCOPE_STEP },
		{ "fwd_bwd", RFL_SCOPE_FORWARD_BACKWARD },
		{ "fwd", RFL_SCOPE_FORWARD },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(modes); i++)
		if (strcmp(mode, modes[i].mode) == 0) {
			*ret = modes[i].scope;
			return RFL_OK;
		}
	return rfl_fail(err, RFL_EINVAL, 0, "mode '%s' is none of train, fwd_bwd, fwd", mode);
}

/* The runner's sgd has momentum, unless its row says otherwise. */
enum rfl_rc rfl_work__optimizer(const struct rfl_work_query *q, enum rfl_optimizer_kind *ret,
				struct rfl_err *err)
{
	const char *optimizer = q->optimizer;
	static const struct {
		const char *optimizer;
		enum rfl_optimizer_kind kind;
	} rows[] = {
		{ "sgd", RFL_OPT_MOMENTUM },
		{ "adam", RFL_OPT_ADAM },
		{ "adamw", RFL_OPT_ADAMW },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (optimizer && strcmp(optimizer, rows[i].optimizer) == 0) {
			*ret = rows[i].kind;
			if (*ret == RFL_OPT_MOMENTUM && q->no_momentum)
				*ret = RFL_OPT_SGD;
			return RFL_OK;
		}
	return rfl_fail(err, RFL_EINVAL, 0, "optimizer '%s' is none of sgd, adam, adamw",
			optimizer ? optimizer : "");
}

enum rfl_rc rfl_work__storage(const struct rfl_work_query *q, enum rfl_dtype *dtype, bool *master,
			      struct rfl_err *err)
{
	enum rfl_rc rc = rfl_precision_storage(q->precision, dtype, master, err);

	if (rc == RFL_OK && q->autocast && *dtype != RFL_DTYPE_F32)
		*master = true;
	return rc;
}

enum rfl_rc rfl_work__attention(const char *attention, enum rfl_attention *ret, struct rfl_err *err)
{
	for (int i = 0; rfl_attention_names[i]; i++)
		if (!attention || strcmp(attention, rfl_attention_names[i]) == 0) {
			*ret = (enum rfl_attention)i;
			return RFL_OK;
		}
	return rfl_fail(err, RFL_EINVAL, 0, "attention '%s' is none of auto, composed, naive, sdpa",
			attention);
}

double rfl_work__flops(enum rfl_scope scope, enum rfl_train_factor factor, double forward,
		       double training)
{
	if (scope == RFL_SCOPE_FORWARD)
		return forward;
	if (factor == RFL_TRAIN_EXACT)
		return training;
	return (factor == RFL_TRAIN_2 ? 2 : 3) * forward;
}

const char *rfl_work__source(enum rfl_scope scope, enum rfl_train_factor factor, bool recomputes)
{
	if (scope == RFL_SCOPE_FORWARD)
		return "counted: forward";
	if (factor == RFL_TRAIN_EXACT)
		return recomputes ? "counted: forward + dgrad + wgrad + recomputed"
				  : "counted: forward + dgrad + wgrad";
	return factor == RFL_TRAIN_2 ? "2 x forward, as in older reports"
				     : "3 x forward, as in older reports";
}

/* Several forwards per step repeat everything but the optimizer. */
static double step_bytes(const struct rfl_count *count, enum rfl_fusion fusion,
			 enum rfl_scope scope, int64_t forwards)
{
	double once = (double)rfl_count_bytes(count, fusion, scope);
	enum rfl_scope again = scope == RFL_SCOPE_STEP ? RFL_SCOPE_FORWARD_BACKWARD : scope;

	if (forwards == 1)
		return once;
	return once + (double)(forwards - 1) * (double)rfl_count_bytes(count, fusion, again);
}

enum rfl_rc rfl_work__own(const struct rfl_work_query *q, struct rfl_work *ret, struct rfl_err *err)
{
	struct rfl_zoo_options sizes = {
		.image_size = q->image_size > 0 ? q->image_size : 0,
		.classes = q->classes > 0 ? q->classes : 0,
		.context_length = q->context_length > 0 ? q->context_length : 0,
	};
	struct rfl_count_options options = { .batch = q->batch };
	struct rfl_net *net = NULL;
	struct rfl_count *count = NULL;
	enum rfl_scope scope = RFL_SCOPE_STEP;
	int64_t forwards = 1;
	enum rfl_rc rc;

	if (q->accum > 1 && q->micro_batch > 0) {
		options.batch = q->micro_batch;
		forwards = q->accum;
	}
	rc = rfl_work__mode(q->mode, &scope, err);
	if (rc == RFL_OK)
		rc = rfl_work__storage(q, &options.dtype, &options.master_weights, err);
	if (rc == RFL_OK && scope == RFL_SCOPE_STEP)
		rc = rfl_work__optimizer(q, &options.optimizer, err);
	if (rc == RFL_OK)
		rc = rfl_work__attention(q->attention, &sizes.attention, err);
	if (rc == RFL_OK)
		rc = rfl_zoo_build(q->model, &sizes, &net, err);
	options.training = scope != RFL_SCOPE_FORWARD;
	if (rc == RFL_OK)
		rc = rfl_count_net(net, &options, &count, err);
	if (rc != RFL_OK)
		goto done;
	ret->flops = (double)forwards * rfl_work__flops(scope, q->factor,
							(double)rfl_count_forward_flops(count),
							(double)rfl_count_training_flops(count));
	ret->flops_source =
		rfl_work__source(scope, q->factor, count->total.macs[RFL_PASS_RECOMPUTE] > 0);
	for (int f = 0; f < RFL_FUSION_COUNT; f++)
		ret->bytes[f] = step_bytes(count, (enum rfl_fusion)f, scope, forwards);
done:
	rfl_count_free(count);
	rfl_net_free(net);
	return rc;
}
