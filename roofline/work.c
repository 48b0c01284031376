/*
 * work.c - the FLOPs and bytes of one step: those of a file where it has the step, else the
 * network's own; where there are both they are compared.
 */
#include "roofline/work_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/zoo.h"

const char *const rfl_train_factor_names[] = { "exact", "2", "3", NULL };

static enum rfl_rc scope_of(const char *mode, enum rfl_scope *ret, struct rfl_err *err)
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
static enum rfl_rc optimizer_of(const struct rfl_work_query *q, enum rfl_optimizer_kind *ret,
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

static enum rfl_rc storage_of(const struct rfl_work_query *q, enum rfl_dtype *dtype, bool *master,
			      struct rfl_err *err)
{
	enum rfl_rc rc = rfl_precision_storage(q->precision, dtype, master, err);

	if (rc == RFL_OK && q->autocast && *dtype != RFL_DTYPE_F32)
		*master = true;
	return rc;
}

static enum rfl_rc attention_of(const char *attention, enum rfl_attention *ret, struct rfl_err *err)
{
	for (int i = 0; rfl_attention_names[i]; i++)
		if (!attention || strcmp(attention, rfl_attention_names[i]) == 0) {
			*ret = (enum rfl_attention)i;
			return RFL_OK;
		}
	return rfl_fail(err, RFL_EINVAL, 0, "attention '%s' is none of auto, composed, naive, sdpa",
			attention);
}

static double flops_of(enum rfl_scope scope, enum rfl_train_factor factor, double forward,
		       double training)
{
	if (scope == RFL_SCOPE_FORWARD)
		return forward;
	if (factor == RFL_TRAIN_EXACT)
		return training;
	return (factor == RFL_TRAIN_2 ? 2 : 3) * forward;
}

static const char *source_of(enum rfl_scope scope, enum rfl_train_factor factor, bool recomputes)
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

static enum rfl_rc count_own(const struct rfl_work_query *q, struct rfl_work *ret,
			     struct rfl_err *err)
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
	rc = scope_of(q->mode, &scope, err);
	if (rc == RFL_OK)
		rc = storage_of(q, &options.dtype, &options.master_weights, err);
	if (rc == RFL_OK && scope == RFL_SCOPE_STEP)
		rc = optimizer_of(q, &options.optimizer, err);
	if (rc == RFL_OK)
		rc = attention_of(q->attention, &sizes.attention, err);
	if (rc == RFL_OK)
		rc = rfl_zoo_build(q->model, &sizes, &net, err);
	options.training = scope != RFL_SCOPE_FORWARD;
	if (rc == RFL_OK)
		rc = rfl_count_net(net, &options, &count, err);
	if (rc != RFL_OK)
		goto done;
	ret->flops = (double)forwards * flops_of(scope, q->factor,
						 (double)rfl_count_forward_flops(count),
						 (double)rfl_count_training_flops(count));
	ret->flops_source = source_of(scope, q->factor, count->total.macs[RFL_PASS_RECOMPUTE] > 0);
	for (int f = 0; f < RFL_FUSION_COUNT; f++)
		ret->bytes[f] = step_bytes(count, (enum rfl_fusion)f, scope, forwards);
done:
	rfl_count_free(count);
	rfl_net_free(net);
	return rc;
}

/* --- a file ---------------------------------------------------------------------------------- */

/* Does the file count what this run does, per element and per parameter? */
static const char *other_convention(const struct rfl_work_file *f, const struct rfl_work_query *q,
				    enum rfl_scope scope)
{
	enum rfl_dtype dtype = RFL_DTYPE_F32;
	enum rfl_optimizer_kind optimizer = RFL_OPT_SGD;
	bool master = false;

	if (f->unlike)
		return f->unlike;
	if (storage_of(q, &dtype, &master, NULL) != RFL_OK ||
	    rfl_dtype_bytes(dtype) != rfl_dtype_bytes(f->dtype) || master != f->master_weights)
		return "another precision";
	if (strcmp(f->attention, q->attention ? q->attention : rfl_attention_names[0]) != 0)
		return "another form of attention";
	if (scope == RFL_SCOPE_STEP &&
	    (optimizer_of(q, &optimizer, NULL) != RFL_OK || (int)optimizer != f->optimizer))
		return "another optimizer";
	return NULL;
}

/* A query that names no context length means the model's own. */
static int64_t context_of(const struct rfl_work_query *q)
{
	const struct rfl_zoo_model *model = NULL;

	if (q->context_length > 0 || rfl_zoo_find(q->model, &model, NULL) != RFL_OK)
		return q->context_length;
	return model->context_length;
}

static const char *other_sizes(const struct rfl_work__model *m, const struct rfl_work_query *q)
{
	int64_t context = context_of(q);

	if (q->image_size > 0 && m->image_size > 0 && q->image_size != m->image_size)
		return "another image size";
	if (q->classes > 0 && m->classes > 0 && q->classes != m->classes)
		return "another number of classes";
	if (context > 0 && m->context_length > 0 && context != m->context_length)
		return "another context length";
	return NULL;
}

/* The model, which the file may have at several sizes; or why it is not there. */
static const char *find(const struct rfl_work_file *f, const struct rfl_work_query *q,
			const struct rfl_work__model **ret)
{
	const char *lacks = "no such model";

	for (size_t i = 0; i < f->nmodels; i++) {
		if (strcmp(f->models[i].name, q->model) != 0)
			continue;
		lacks = other_sizes(&f->models[i], q);
		*ret = &f->models[i];
		if (!lacks)
			break;
	}
	return lacks;
}

/* The numbers of a step, or why the file does not have them. */
static const char *take(const struct rfl_work_file *f, const struct rfl_work_query *q,
			enum rfl_scope scope, struct rfl_work *ret)
{
	bool accum = q->accum > 1 && q->micro_batch > 0;
	int64_t batch = accum ? q->micro_batch : q->batch;
	enum rfl_scope again = scope == RFL_SCOPE_STEP ? RFL_SCOPE_FORWARD_BACKWARD : scope;
	double forwards = accum ? (double)q->accum : 1;
	const struct rfl_work__model *m = NULL;
	const struct rfl_work__batch *b = NULL;
	const char *lacks = find(f, q, &m);

	if (lacks)
		return lacks;
	lacks = other_convention(f, q, scope);
	if (lacks)
		return lacks;
	for (size_t i = 0; i < m->nbatches && !b; i++)
		if (m->batches[i].batch == batch)
			b = &m->batches[i];
	if (!b)
		return "no such batch size";
	if (isnan(b->scopes[scope].flops) || isnan(b->scopes[RFL_SCOPE_FORWARD].flops) ||
	    (accum && isnan(b->scopes[again].flops)))
		return "no counts of that mode";
	ret->flops = forwards * flops_of(scope, q->factor, b->scopes[RFL_SCOPE_FORWARD].flops,
					 b->scopes[scope].flops);
	ret->flops_source = source_of(scope, q->factor, m->recomputes);
	for (int k = 0; k < RFL_FUSION_COUNT; k++)
		ret->bytes[k] =
			b->scopes[scope].bytes[k] + (forwards - 1) * b->scopes[again].bytes[k];
	return NULL;
}

/* Several configurations may meet the same disagreement (another layout, another machine). */
static void note_once(struct rfl_buf *notes, const struct rfl_work_file *f,
		      const struct rfl_work_query *q, const char *says)
{
	struct rfl_buf line;

	rfl_buf_init(&line, 1 << 16);
	rfl_buf_printf(&line, "%s: %s at batch %lld, %s: %s\n", f->path, q->model,
		       (long long)q->batch, q->mode, says);
	if (!strstr(rfl_buf_str(notes), rfl_buf_str(&line)))
		rfl_buf_puts(notes, rfl_buf_str(&line));
	rfl_buf_fini(&line);
}

static void compare(const struct rfl_work_file *f, const struct rfl_work_query *q,
		    const struct rfl_work *own, const struct rfl_work *file, struct rfl_buf *notes)
{
	char says[200];

	if (own->flops != file->flops) {
		(void)snprintf(
			says, sizeof(says),
			"the file has %.0f FLOPs per step, the network %.0f; the file is used",
			file->flops, own->flops);
		note_once(notes, f, q, says);
	}
	for (int k = 0; k < RFL_FUSION_COUNT; k++) {
		if (own->bytes[k] == file->bytes[k])
			continue;
		(void)snprintf(says, sizeof(says),
			       "the file has %.0f bytes per step %s, the network %.0f; the file is "
			       "used",
			       file->bytes[k], rfl_fusion_names[k], own->bytes[k]);
		note_once(notes, f, q, says);
	}
}

enum rfl_rc rfl_work_count(const struct rfl_work_query *q, const struct rfl_work_file *f,
			   struct rfl_buf *notes, struct rfl_work *ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *model = NULL;
	bool known = rfl_zoo_find(q->model, &model, NULL) == RFL_OK;
	struct rfl_work own = { .flops = NAN }, file = { .flops = NAN };
	enum rfl_scope scope = RFL_SCOPE_STEP;
	const char *lacks = "no file";
	enum rfl_rc rc = scope_of(q->mode, &scope, err);

	if (rc == RFL_OK && known)
		rc = count_own(q, &own, err);
	if (rc != RFL_OK)
		return rc;
	if (f)
		lacks = take(f, q, scope, &file);
	if (lacks && !known && f)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is not one that the program knows, and %s cannot stand "
				"in for it at batch %lld: %s",
				q->model, f->path, (long long)q->batch, lacks);
	if (lacks && !known)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is not one that the program knows ('roofline list "
				"models')",
				q->model);
	if (f && lacks) {
		char says[120];

		(void)snprintf(says, sizeof(says), "the file has %s; the network is counted",
			       lacks);
		note_once(notes, f, q, says);
	} else if (f && known) {
		compare(f, q, &own, &file, notes);
	}
	*ret = lacks ? own : file;
	return RFL_OK;
}
