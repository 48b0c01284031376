/*
 * costs.c - add up the costs of a network's operations. The cost of a single operation is defined
 * in its file in op/, and its role in the graph is found by links.c. This file computes the costs
 * that belong to no single operation: sums of gradients, recomputation, compulsory traffic, the
 * loss, the update, and the totals.
 *
 * All values that do not depend on the batch are prepared once, not in rfl_count_at().
 */
#include "complexity/count.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/count/links.h"
#include "complexity/op.h"
#include "machine/terms.h"

const char *const rfl_fusion_names[] = { "unfused", "fused", "compulsory", NULL };

/*
 * The cost per parameter of one update of all trained parameters. Weight decay is counted for
 * AdamW, where it is part of the method; otherwise it would cost 1 add and 1 mul.
 *
 *	sgd       w -= lr g                                                   1 add 1 mul
 *	momentum  b = mu b + g; w -= lr b                                     2 add 2 mul
 *	adam      m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g;
 *	          w -= a m / (sqrt(v) / c + eps)                   4 add 6 mul 3 special
 *	adamw     the same, and w *= 1 - lr wd                     4 add 7 mul 3 special
 *
 * The formulas are those documented by torch.optim; a and c are the bias corrections, which are the
 * same for all parameters. One fused kernel is assumed: it reads the weight, gradient and state and
 * writes the weight and state. Clipping the gradients reads them for their norm, 1 add 1 mul, and
 * reads and writes them to scale them, 1 mul.
 */
const struct rfl_optimizer rfl_optimizers[] = {
	[RFL_OPT_SGD] = { .per_param = { .add = 1, .mul = 1 } },
	[RFL_OPT_MOMENTUM] = { .per_param = { .add = 2, .mul = 2 }, .state = 1 },
	/* If all parameters are updated together, torch.optim keeps sqrt(v) of all of them;
	 * otherwise sqrt(v) and the denominator of one. SGD and momentum work in place. */
	[RFL_OPT_ADAM] = { { .add = 4, .mul = 6, .special = 3 }, 2, 1, 2 },
	[RFL_OPT_ADAMW] = { { .add = 4, .mul = 7, .special = 3 }, 2, 1, 2 },
};

const char *const rfl_optimizer_names[] = { "sgd", "momentum", "adam", "adamw", NULL };

enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err)
{
	/* in the order of enum rfl_precision; tf32 affects only products, so its tensors are F32 */
	static const enum rfl_dtype stored[] = { RFL_DTYPE_F32, RFL_DTYPE_F32, RFL_DTYPE_F16,
						 RFL_DTYPE_BF16, RFL_DTYPE_F16 };

	for (int i = 0; rfl_precision_names[i]; i++) {
		if (strcmp(rfl_precision_names[i], precision) != 0)
			continue;
		*dtype = stored[i];
		*master_weights = i == RFL_PRECISION_AMP;
		return RFL_OK;
	}
	return rfl_fail(err, RFL_EINVAL, 0, "no precision '%s'; use fp32, tf32, amp, bf16 or fp16",
			precision);
}

int64_t rfl_dtype_bytes(enum rfl_dtype dtype)
{
	static const int64_t bytes[] = {
		[RFL_DTYPE_F32] = 4, [RFL_DTYPE_F16] = 2, [RFL_DTYPE_BF16] = 2, [RFL_DTYPE_I64] = 8
	};

	return bytes[dtype];
}

int64_t rfl_elementwise_sum(const struct rfl_elementwise *e)
{
	return e->add + e->mul + e->compare + e->special;
}

/* Count the forward pass, biases included, once more. Compulsory traffic does not grow: another
 * schedule could keep the recomputed tensors. */
static void count_again(struct rfl_cost_context *c, struct rfl_cost *cost)
{
	const struct rfl_elementwise *e = &cost->elementwise[RFL_PASS_FORWARD];
	struct rfl_elementwise *again = &cost->elementwise[RFL_PASS_RECOMPUTE];
	int64_t *macs = cost->macs;

	macs[RFL_PASS_RECOMPUTE] =
		rfl_cost_add(c, macs[RFL_PASS_RECOMPUTE], macs[RFL_PASS_FORWARD]);
	again->add += e->add + cost->bias_adds;
	again->mul += e->mul;
	again->compare += e->compare;
	again->special += e->special;
	for (int level = RFL_FUSION_UNFUSED; level <= RFL_FUSION_FUSED; level++) {
		struct rfl_traffic *t = cost->traffic[level], *forward = &t[RFL_PASS_FORWARD];

		rfl_cost_move(c, &t[RFL_PASS_RECOMPUTE], forward->read_bytes, 1,
			      forward->write_bytes, 1);
	}
}

/* An embedding with its own table reads only the rows for its tokens. */
static int64_t params_read(struct rfl_cost_context *c, const struct rfl_link *link)
{
	const struct rfl_embedding *a = &c->node->attr.embedding;

	if (c->node->op != RFL_OP_EMBEDDING || link->lent || c->in >= a->vocab)
		return link->params;
	return rfl_cost_mul(c, c->in, a->features);
}

/*
 * The traffic that no schedule can avoid: each parameter is read once and its gradient written once
 * (an embedding's gradient is dense), the image is read, and in inference the logits are written.
 * Running statistics are read and written in training, but folded into parameters in inference.
 */
static void count_compulsory(struct rfl_cost_context *c, const struct rfl_net *net,
			     const struct rfl_link *link, struct rfl_cost *cost)
{
	struct rfl_traffic *t = cost->traffic[RFL_FUSION_COMPULSORY];

	rfl_cost_read(c, &t[RFL_PASS_FORWARD], params_read(c, link), c->param_bytes);
	rfl_cost_write(c, &t[RFL_PASS_WGRAD], link->trained, c->param_bytes);
	if (c->options->training) {
		rfl_cost_read(c, &t[RFL_PASS_FORWARD], link->buffers, c->param_bytes);
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], link->buffers, c->param_bytes);
	} else if (c->node == &net->nodes[net->output]) {
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	}
	if (c->node->op == RFL_OP_INPUT) {
		int64_t size = c->node->dtype == RFL_DTYPE_I64 ? rfl_dtype_bytes(RFL_DTYPE_I64)
							       : c->value_bytes;

		rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->out, size);
		if (link->grad)
			rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->out, size);
	}
}

/* The members of a cost are never negative, so a sum of two that exceeds 63 bits still fits in 64
 * and sets the top bit. A sweep spends most of its time in this loop: it has no branches, and `sum`
 * and `cost` never overlap, so that the compiler can vectorise it. */
static void add_cost(struct rfl_cost_context *c, struct rfl_cost *sum, const struct rfl_cost *cost)
{
	enum { WORDS = sizeof(*sum) / sizeof(uint64_t) };
	_Static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "a cost consists of int64 only");
	uint64_t *restrict to = (uint64_t *)(void *)sum, seen = 0;
	const uint64_t *restrict from = (const uint64_t *)(const void *)cost;

	for (int i = 0; i < WORDS; i++) {
		to[i] += from[i];
		seen |= to[i];
	}
	c->overflow |= seen > INT64_MAX;
}

/* Count the nodes, then in training the losses. */
static enum rfl_rc count_operations(struct rfl_count *count, int64_t *unread, struct rfl_err *err)
{
	const struct rfl_links *links = count->links;
	int n = count->options.training ? links->nops : count->nnodes;

	for (int i = 0; i < n; i++) {
		const struct rfl_link *link = &links->nodes[i];
		bool loss = i >= count->nnodes;
		struct rfl_cost of_loss, *cost = loss ? &of_loss : &count->nodes[i];
		struct rfl_cost_context *c;
		const struct rfl_op_info *op;

		if (link->free)
			continue;
		c = rfl_links_at(&links->contexts[i], count->options.batch);
		op = rfl_op_info_of(c->node->op);
		*cost = (struct rfl_cost){ 0 }; /* free operations were zeroed on allocation */
		c->cost = cost;
		if (op->cost && !c->overflow)
			op->cost(c);
		if (link->again)
			count_again(c, cost);
		/* A tensor with k readers receives k gradients, which takes k - 1 additions per
		 * element. Unfused, each addition reads two tensors and writes one; fused, the
		 * operation that computes the gradient only reads the sum. */
		if (link->grad && link->gradients > 1) {
			int64_t sums = rfl_cost_mul(c, link->gradients - 1, c->out);
			int64_t *adds = &cost->elementwise[RFL_PASS_DGRAD].add;

			*adds = rfl_cost_add(c, *adds, sums);
			rfl_cost_move(c, &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_DGRAD], sums,
				      2 * c->value_bytes, sums, c->value_bytes);
			rfl_cost_read(c, &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_DGRAD], sums,
				      c->value_bytes);
		}
		count_compulsory(c, count->net, link, cost);
		if (i == count->nnodes &&
		    count->net->loss != RFL_LOSS_MEAN) /* all losses read the same labels */
			rfl_cost_read(c, &cost->traffic[RFL_FUSION_COMPULSORY][RFL_PASS_FORWARD],
				      c->out, rfl_dtype_bytes(RFL_DTYPE_I64));
		if (loss)
			add_cost(c, &count->loss, cost);
		add_cost(c, &count->total, cost);
		if (link->trained)
			*unread += link->params - params_read(c, link);
		if (c->overflow)
			return rfl_fail(err, RFL_EOVERFLOW, 0,
					"%s: %s (%s): its counts at batch %lld exceed 63 bits; use "
					"a smaller batch or network",
					count->net->model,
					*c->node->name ? c->node->name : "top level", op->module,
					(long long)c->batch);
	}
	return RFL_OK;
}

static int64_t word_bytes(const struct rfl_count *count)
{
	return rfl_dtype_bytes(count->options.master_weights ? RFL_DTYPE_F32
							     : count->options.dtype);
}

int64_t rfl_count_state_bytes(const struct rfl_count *count)
{
	return rfl_optimizers[count->options.optimizer].state * word_bytes(count) * count->trained;
}

/* `unread` is the number of elements of trained parameters that the counted passes do not read. */
static enum rfl_rc count_update(struct rfl_count *count, int64_t unread, struct rfl_err *err)
{
	const struct rfl_optimizer *o = &rfl_optimizers[count->options.optimizer];
	const struct rfl_traffic *passes = count->total.traffic[RFL_FUSION_COMPULSORY];
	struct rfl_traffic *step = &count->step_compulsory;
	struct rfl_cost_context c = { 0 };
	int64_t word = word_bytes(count), n = count->trained, clip = count->options.grad_clip;

	count->optimizer_flops = (struct rfl_elementwise){
		.add = rfl_cost_mul(&c, o->per_param.add + clip, n),
		.mul = rfl_cost_mul(&c, o->per_param.mul + 2 * clip, n),
		.compare = rfl_cost_mul(&c, o->per_param.compare, n),
		.special = rfl_cost_mul(&c, o->per_param.special, n),
	};
	count->optimizer = *step = (struct rfl_traffic){ 0 };
	rfl_cost_move(&c, &count->optimizer, n, (2 + 2 * clip + o->state) * word, n,
		      (1 + clip + o->state) * word);

	/* The passes have already read the weights, except some rows of embeddings, and written the
	 * gradients; the update need not move them again. */
	for (int pass = 0; pass < RFL_PASS_COUNT; pass++)
		rfl_cost_move(&c, step, passes[pass].read_bytes, 1, passes[pass].write_bytes, 1);
	rfl_cost_read(&c, step, unread, word);
	rfl_cost_move(&c, step, n, o->state * word, n, (1 + o->state) * word);
	return c.overflow ? rfl_fail(err, RFL_EOVERFLOW, 0,
				     "the update of %lld parameters exceeds 63 bits; use a smaller "
				     "network",
				     (long long)n)
			  : RFL_OK;
}

/* If the sum of all totals fits, with MACs as FLOPs, so do the sums over some passes and kinds that
 * the functions below and summary.c compute without checks. */
static enum rfl_rc check_sums(const struct rfl_count *count, struct rfl_err *err)
{
	const struct {
		struct rfl_cost total;
		struct rfl_elementwise update;
		struct rfl_traffic optimizer;
	} all = { .total = count->total,
		  .update = count->optimizer_flops,
		  .optimizer = count->optimizer };
	const int64_t *word = (const int64_t *)(const void *)&all;
	struct rfl_cost_context c = { 0 };
	int64_t sum = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*word); i++)
		sum = rfl_cost_add(&c, sum, word[i]);
	for (int pass = 0; pass < RFL_PASS_COUNT; pass++)
		sum = rfl_cost_add(&c, sum, count->total.macs[pass]);
	if (!c.overflow)
		return RFL_OK;
	return rfl_fail(err, RFL_EOVERFLOW, 0,
			"%s: totals at batch %lld exceed 63 bits; use a smaller batch or network",
			count->net->model, (long long)count->options.batch);
}

enum rfl_rc rfl_count_at(struct rfl_count *count, int64_t batch, struct rfl_err *err)
{
	int64_t unread = 0;
	enum rfl_rc rc;

	if (batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: batch %lld is too small; it must be at least 1",
				count->net->model, (long long)batch);
	count->options.batch = batch;
	count->total = count->loss = (struct rfl_cost){ 0 };
	if ((rc = count_operations(count, &unread, err)) != RFL_OK ||
	    (rc = count_update(count, unread, err)) != RFL_OK)
		return rc;
	return check_sums(count, err);
}

enum rfl_rc rfl_count_net(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_count **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_count *count = rfl_arena_array(arena, 1, sizeof(*count));
	enum rfl_rc rc;

	*count = (struct rfl_count){
		.options = *options,
		.params = rfl_net_param_count(net),
		.buffers = rfl_net_buffer_count(net),
		.nnodes = net->nnodes,
		.nodes = rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*count->nodes)),
		.net = net,
		.arena = arena,
	};
	rc = rfl_links_new(net, &count->options, arena, &count->links, err);
	if (rc == RFL_OK) {
		count->trained = count->links->trained;
		rc = rfl_count_at(count, options->batch, err);
	}
	if (rc == RFL_OK)
		*ret = count;
	else
		rfl_arena_free(arena);
	return rc;
}

void rfl_count_free(struct rfl_count *count)
{
	if (count)
		rfl_arena_free(count->arena);
}

int64_t rfl_count_forward_flops(const struct rfl_count *count)
{
	return 2 * count->total.macs[RFL_PASS_FORWARD];
}

int64_t rfl_count_model_flops(const struct rfl_count *count)
{
	const int64_t *macs = count->total.macs;

	return 2 * (macs[RFL_PASS_FORWARD] + macs[RFL_PASS_DGRAD] + macs[RFL_PASS_WGRAD]);
}

const char *rfl_count_attention(const struct rfl_count *c)
{
	const enum rfl_fused_attention fused = c->options.fused_attention;
	const char *form = NULL;

	for (int i = 0; i < c->nnodes; i++) {
		const struct rfl_node *node = &c->net->nodes[i];

		if (node->op == RFL_OP_SDPA)
			return fused == RFL_FUSED_NEVER ||
					       (fused == RFL_FUSED_WITHOUT_DROPOUT &&
						c->options.training && node->attr.sdpa.dropout > 0)
				       ? "sdpa unfused"
				       : "sdpa";
		if (node->op == RFL_OP_MATMUL)
			form = form ? form : "composed";
		else if (node->op == RFL_OP_SOFTMAX)
			form = "naive";
	}
	return form;
}

int64_t rfl_count_training_flops(const struct rfl_count *count)
{
	return rfl_count_model_flops(count) + 2 * count->total.macs[RFL_PASS_RECOMPUTE];
}

static int64_t both_ways(const struct rfl_traffic *t)
{
	return t->read_bytes + t->write_bytes;
}

int64_t rfl_count_bytes(const struct rfl_count *count, enum rfl_fusion fusion, enum rfl_scope scope)
{
	const struct rfl_traffic *t = count->total.traffic[fusion];
	int64_t bytes = both_ways(&t[RFL_PASS_FORWARD]);

	if (scope == RFL_SCOPE_FORWARD)
		return bytes;
	if (scope == RFL_SCOPE_STEP && fusion == RFL_FUSION_COMPULSORY)
		return both_ways(&count->step_compulsory);
	for (int pass = RFL_PASS_DGRAD; pass < RFL_PASS_COUNT; pass++)
		bytes += both_ways(&t[pass]);
	if (scope == RFL_SCOPE_STEP)
		bytes += both_ways(&count->optimizer);
	return bytes;
}

const char *const rfl_limit_names[] = { "compute", "vector", "memory", NULL };

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

void rfl_attained_add(struct rfl_attained *sum, const struct rfl_attained *a)
{
	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		sum->limit_s[i] += a->limit_s[i];
}
