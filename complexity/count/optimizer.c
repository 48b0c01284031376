/*
 * optimizer.c - what one update of all trained parameters costs, per parameter. Decay of weights
 * is counted in AdamW, where it is part of the method; elsewhere it would add one multiplication
 * and one addition.
 *
 *	sgd       w -= lr g                                                   1 add 1 mul
 *	momentum  b = mu b + g; w -= lr b                                     2 add 2 mul
 *	adam      m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g;
 *	          w -= a m / (sqrt(v) / c + eps)                   4 add 6 mul 3 special
 *	adamw     the same, and w *= 1 - lr wd                     4 add 7 mul 3 special
 *
 * The formulas are those that torch.optim documents, with a and c the bias corrections, which are
 * the same for all parameters. One fused kernel is assumed: it reads weight, gradient and state
 * and writes weight and state.
 */
#include "complexity/count/optimizer.h"

#include "complexity/op.h"

const char *const rfl_optimizer_names[] = { "sgd", "momentum", "adam", "adamw", NULL };

/* torch.optim keeps sqrt(v) of all parameters while they are updated together; in turn, sqrt(v) and
 * what it is divided to. SGD and momentum work in place. */
#define ADAM_SCRATCH                     \
	{                                \
		.lists = 1, .tensors = 2 \
	}

static const struct row {
	struct rfl_elementwise per_param;
	int64_t state; /* words per parameter, read and written */
	struct rfl_optimizer_scratch scratch;
} rows[] = {
	[RFL_OPT_SGD] = { .per_param = { .add = 1, .mul = 1 }, .state = 0 },
	[RFL_OPT_MOMENTUM] = { .per_param = { .add = 2, .mul = 2 }, .state = 1 },
	[RFL_OPT_ADAM] = { .per_param = { .add = 4, .mul = 6, .special = 3 },
			   .state = 2,
			   .scratch = ADAM_SCRATCH },
	[RFL_OPT_ADAMW] = { .per_param = { .add = 4, .mul = 7, .special = 3 },
			    .state = 2,
			    .scratch = ADAM_SCRATCH },
};

int64_t rfl_optimizer_state_words(enum rfl_optimizer_kind kind)
{
	return rows[kind].state;
}

const struct rfl_optimizer_scratch *rfl_optimizer_scratch_of(enum rfl_optimizer_kind kind)
{
	return &rows[kind].scratch;
}

static int64_t word_bytes(const struct rfl_count *count)
{
	return rfl_dtype_bytes(count->options.master_weights ? RFL_DTYPE_F32
							     : count->options.dtype);
}

int64_t rfl_count_state_bytes(const struct rfl_count *count)
{
	return rows[count->options.optimizer].state * word_bytes(count) * count->trained;
}

enum rfl_rc rfl_optimizer_count(struct rfl_count *count, int64_t unread, struct rfl_err *err)
{
	const struct row *row = &rows[count->options.optimizer];
	const struct rfl_traffic *passes = count->total.traffic[RFL_FUSION_COMPULSORY];
	struct rfl_traffic *step = &count->step_compulsory;
	struct rfl_cost_context c = { 0 };
	int64_t word = word_bytes(count);

	count->optimizer_flops = (struct rfl_elementwise){
		.add = rfl_cost_mul(&c, row->per_param.add, count->trained),
		.mul = rfl_cost_mul(&c, row->per_param.mul, count->trained),
		.compare = rfl_cost_mul(&c, row->per_param.compare, count->trained),
		.special = rfl_cost_mul(&c, row->per_param.special, count->trained),
	};
	count->optimizer = *step = (struct rfl_traffic){ 0 };
	rfl_cost_read(&c, &count->optimizer, count->trained, (2 + row->state) * word);
	rfl_cost_write(&c, &count->optimizer, count->trained, (1 + row->state) * word);

	/* The passes have read the weights but for some rows of embeddings, and written the
	 * gradients; the update finds them at hand. */
	for (int pass = 0; pass < RFL_PASS_COUNT; pass++) {
		rfl_cost_read(&c, step, passes[pass].read_bytes, 1);
		rfl_cost_write(&c, step, passes[pass].write_bytes, 1);
	}
	rfl_cost_read(&c, step, unread, word);
	rfl_cost_read(&c, step, count->trained, row->state * word);
	rfl_cost_write(&c, step, count->trained, (1 + row->state) * word);
	return c.overflow ? rfl_fail(err, RFL_EOVERFLOW, 0,
				     "an update of %lld parameters does not fit 63 bits",
				     (long long)count->trained)
			  : RFL_OK;
}
