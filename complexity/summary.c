/*
 * summary.c - build a network, count it in inference and in training, and move it from batch to
 * batch. What is made for the counting is given back between one table and the next, so that many
 * networks take little memory.
 */
#include "complexity/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

const char *const rfl_by_names[] = { "model", "module", "layer", "kind", NULL };
const char *const rfl_precision_words[] = { "fp32", "tf32", "amp", "bf16", "fp16", NULL };
const char *const rfl_limit_names[] = { "compute", "vector", "memory", NULL };
const char *const rfl_summary_convention =
	"A MAC is one multiply-add of a convolution or matrix product, taps in the padding "
	"included, "
	"bias not; FLOPs = 2 x MACs. Elementwise operations are counted apart.";

enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err)
{
	/* tf32 is how products are made; what is stored is F32 */
	static const struct {
		enum rfl_dtype dtype;
		bool master;
	} rows[] = {
		{ RFL_DTYPE_F32, false },  { RFL_DTYPE_F32, false }, { RFL_DTYPE_F16, true },
		{ RFL_DTYPE_BF16, false }, { RFL_DTYPE_F16, false },
	};
	_Static_assert(RFL_ARRAY_LEN(rows) + 1 == RFL_ARRAY_LEN(rfl_precision_words),
		       "a row for each precision");

	for (size_t i = 0; rfl_precision_words[i]; i++) {
		if (strcmp(rfl_precision_words[i], precision) != 0)
			continue;
		*dtype = rows[i].dtype;
		*master_weights = rows[i].master;
		return RFL_OK;
	}
	return rfl_fail(err, RFL_EINVAL, 0, "no precision '%s': fp32, tf32, amp, bf16 or fp16",
			precision);
}

enum rfl_rc rfl_summary_count_options(const struct rfl_summary_options *options,
				      struct rfl_count_options *ret, struct rfl_err *err)
{
	struct rfl_count_options count = {
		.batch = 1,
		.input_grad = options->input_grad,
		.optimizer = options->optimizer,
		.causal_half = options->causal_half,
		.auxiliary = options->auxiliary,
		.checkpoint = options->checkpoint,
		.frozen = options->frozen,
		.nfrozen = options->nfrozen,
	};
	enum rfl_rc rc =
		rfl_precision_storage(options->precision, &count.dtype, &count.master_weights, err);

	if (rc == RFL_OK)
		*ret = count;
	return rc;
}

double rfl_attained_time(const struct rfl_attained *a)
{
	double sum = 0;

	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		sum += a->limit_s[i];
	return sum;
}

enum rfl_limit rfl_attained_bound(const struct rfl_attained *a)
{
	enum rfl_limit most = RFL_LIMIT_COUNT;

	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		if (a->limit_s[i] > 0 &&
		    (most == RFL_LIMIT_COUNT || a->limit_s[i] > a->limit_s[most]))
			most = (enum rfl_limit)i;
	return most;
}

static enum rfl_rc account(struct rfl_summary *s, const struct rfl_count_options *count,
			   bool training, struct rfl_memory **ret, struct rfl_err *err)
{
	struct rfl_memory_options memory = {
		.count = *count,
		.device = s->options.device,
		.update = s->options.update,
		.accumulate = s->options.accumulate,
	};

	memory.count.training = training;
	/* what only a training step has would be refused, or has no meaning, without one */
	if (!training) {
		memory.count.checkpoint = 0;
		memory.accumulate = 1;
	}
	return rfl_memory_new(s->net, &memory, ret, err);
}

/* The totals of a count, without what belongs to the count itself. */
static struct rfl_count totals_of(const struct rfl_count *count)
{
	struct rfl_count copy = *count;

	copy.nodes = NULL;
	copy.needs_dgrad = NULL;
	copy.workspace = NULL;
	return copy;
}

static bool wants_training(const struct rfl_summary *s)
{
	return s->options.train || s->options.both;
}

static bool wants_inference(const struct rfl_summary *s)
{
	return !s->options.train || s->options.both;
}

static void drop(struct rfl_count **count)
{
	rfl_count_free(*count);
	*count = NULL;
}

/* The first time, both are counted once: the facts of one sample are of both. */
static enum rfl_rc wake_counts(struct rfl_summary *s, struct rfl_count_options count,
			       struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!s->forward && (!s->counted || wants_inference(s)))
		rc = rfl_count_net(s->net, &count, &s->forward, err);
	count.training = true;
	if (rc == RFL_OK && !s->training && (!s->counted || wants_training(s)))
		rc = rfl_count_net(s->net, &count, &s->training, err);
	if (rc != RFL_OK || s->counted)
		return rc;
	s->one_forward = totals_of(s->forward);
	s->one_training = totals_of(s->training);
	s->counted = true;
	if (!wants_training(s))
		drop(&s->training);
	if (!wants_inference(s))
		drop(&s->forward);
	return RFL_OK;
}

/* Make what is not there, all of it at batch 1. */
static enum rfl_rc wake(struct rfl_summary *s, struct rfl_err *err)
{
	struct rfl_count_options count;
	enum rfl_rc rc = rfl_summary_count_options(&s->options, &count, err);

	if (rc == RFL_OK)
		rc = wake_counts(s, count, err);
	if (rc == RFL_OK && s->options.memory && wants_training(s) && !s->training_memory)
		rc = account(s, &count, true, &s->training_memory, err);
	if (rc == RFL_OK && s->options.memory && wants_inference(s) && !s->forward_memory)
		rc = account(s, &count, false, &s->forward_memory, err);
	if (rc == RFL_OK && !s->rows)
		rc = rfl_summary_rows_new(s, s->options.by, s->options.depth, &s->rows, err);
	return rc;
}

/* What was counted last is often what is asked for: the first batch. */
static enum rfl_rc count_at(struct rfl_count *count, int64_t batch, struct rfl_err *err)
{
	if (!count || count->options.batch == batch)
		return RFL_OK;
	return rfl_count_at(count, batch, err);
}

static enum rfl_rc memory_at(struct rfl_memory *memory, int64_t batch, struct rfl_err *err)
{
	if (!memory || memory->options.count.batch == batch)
		return RFL_OK;
	return rfl_memory_at(memory, batch, err);
}

enum rfl_rc rfl_summary_at(struct rfl_summary *s, int64_t batch, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (s->batch == batch)
		return RFL_OK;
	s->batch = 0; /* until all of it is there */
	rc = wake(s, err);
	if (rc == RFL_OK)
		rc = count_at(s->forward, batch, err);
	if (rc == RFL_OK)
		rc = count_at(s->training, batch, err);
	if (rc == RFL_OK)
		rc = memory_at(s->forward_memory, batch, err);
	if (rc == RFL_OK)
		rc = memory_at(s->training_memory, batch, err);
	if (rc == RFL_OK)
		s->batch = batch;
	else
		rfl_summary_rest(s); /* what has failed means nothing */
	return rc;
}

enum rfl_rc rfl_summary_want_both(struct rfl_summary *s, struct rfl_err *err)
{
	if (!s->options.both)
		s->batch = 0;
	s->options.both = true;
	return s->batch ? RFL_OK : rfl_summary_at(s, 1, err);
}

void rfl_summary_rest(struct rfl_summary *s)
{
	rfl_summary_rows_free(s->rows);
	rfl_count_free(s->forward);
	rfl_count_free(s->training);
	rfl_memory_free(s->forward_memory);
	rfl_memory_free(s->training_memory);
	s->rows = NULL;
	s->forward = s->training = NULL;
	s->forward_memory = s->training_memory = NULL;
	s->batch = 0;
}

enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *found = NULL;
	struct rfl_summary *s = NULL;
	enum rfl_rc rc = rfl_zoo_find(model, &found, err);

	if (rc != RFL_OK)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", model);
	s->options = *options;
	s->model = found;
	s->name = found->name;
	s->title = found->title;
	s->about = found->summary;
	if (found->context_length)
		s->context_length = options->sizes.context_length ? options->sizes.context_length
								  : found->context_length;
	rc = rfl_zoo_build(found->name, &options->sizes, &s->net, err);
	if (rc != RFL_OK) {
		rfl_summary_free(s);
		return rc;
	}
	*ret = s;
	return RFL_OK;
}

enum rfl_rc rfl_summary_of_net(struct rfl_net *take_net, const struct rfl_summary_options *options,
			       struct rfl_summary **ret, struct rfl_err *err)
{
	struct rfl_summary *s = calloc(1, sizeof(*s));

	if (!s) {
		rfl_net_free(take_net);
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	}
	s->options = *options;
	s->net = take_net;
	s->name = take_net->model;
	s->title = take_net->title ? take_net->title : take_net->model;
	s->about = "from a file";
	if (take_net->nodes[0].dtype == RFL_DTYPE_I64)
		s->context_length = take_net->nodes[0].shape.dim[0];
	*ret = s;
	return RFL_OK;
}

void rfl_summary_free(struct rfl_summary *s)
{
	if (!s)
		return;
	rfl_summary_rest(s);
	rfl_net_free(s->net);
	free(s->fit);
	free(s);
}
