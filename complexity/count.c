/*
 * count.c - walk a network once and add up what its operations cost. What one operation costs is in
 * its own file op_*.c; here is what only the graph knows: who needs a gradient, who shares a
 * tensor, what rides on what, and what must move at least.
 */
#include "complexity/count.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/op.h"
#include "complexity/optimizer.h"

const char *const rfl_fusion_names[] = { "unfused", "fused", "compulsory", NULL };

/* What the graph says of one node's output. */
struct link {
	int readers;        /* how many inputs read it; the loss counts as one of the logits */
	bool requires_grad; /* something trained, or the image, lies before it */
	bool hosts;         /* an operation that computes: others may ride on it */
};

int64_t rfl_dtype_bytes(enum rfl_dtype dtype)
{
	switch (dtype) {
	case RFL_DTYPE_F16:
	case RFL_DTYPE_BF16:
		return 2;
	case RFL_DTYPE_I64:
		return 8;
	case RFL_DTYPE_F32:
		break;
	}
	return 4;
}

int64_t rfl_elementwise_sum(const struct rfl_elementwise *e)
{
	return e->add + e->mul + e->compare + e->special;
}

static void link_nodes(const struct rfl_net *net, const struct rfl_count_options *options,
		       struct link *links)
{
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		bool input = node->op == RFL_OP_INPUT;
		bool rides = rfl_op_info_of(node->op)->rides;

		links[i].hosts = !input && !rides;
		links[i].requires_grad =
			(input && options->input_grad && node->dtype != RFL_DTYPE_I64) ||
			rfl_node_param_count(net, node) > 0;
		for (int k = 0; k < node->ninputs; k++) {
			struct link *from = &links[node->input[k]];

			from->readers++;
			links[i].requires_grad |= from->requires_grad;
			links[i].hosts |= rides && from->hosts;
		}
	}
	links[net->output].readers++;
}

static int64_t node_buffers(const struct rfl_net *net, const struct rfl_node *node)
{
	int64_t sum = 0;

	for (int i = 0; i < node->nparams; i++)
		if (rfl_param_is_buffer(net->params[node->param[i]].kind))
			sum += net->params[node->param[i]].numel;
	return sum;
}

static struct rfl_cost_context context_of(const struct rfl_net *net,
					  const struct rfl_count_options *options,
					  const struct link *links, const struct rfl_node *node,
					  struct rfl_cost_input inputs[RFL_NET_MAX_INPUTS])
{
	struct rfl_cost_context c = {
		.node = node,
		.options = options,
		.batch = options->batch,
		.params = rfl_node_param_count(net, node),
		.value_bytes = rfl_dtype_bytes(options->dtype),
		.param_bytes =
			rfl_dtype_bytes(options->master_weights ? RFL_DTYPE_F32 : options->dtype),
		.input_shared = node->ninputs > 0,
		.needs_wgrad = node->nparams > 0,
		.inputs = inputs,
	};

	if (node->ninputs > 0)
		c.in_shape = net->nodes[node->input[0]].shape;
	for (int i = 0; i < node->ninputs; i++) {
		const struct link *from = &links[node->input[i]];
		const struct rfl_node *source = &net->nodes[node->input[i]];

		inputs[i] = (struct rfl_cost_input){
			.shape = &source->shape,
			.numel = rfl_shape_numel(&source->shape),
			.batchless = source->batchless,
			.grad = from->requires_grad,
			.outside = source->op == RFL_OP_PARAMETER || source->op == RFL_OP_CONSTANT,
			.shared = from->readers > 1,
		};
		c.needs_dgrad |= from->requires_grad;
		c.rides |= rfl_op_info_of(node->op)->rides && from->hosts;
		c.input_shared &= from->readers > 1;
	}
	c.in = node->ninputs ? rfl_cost_in(&c, 0) : 0;
	c.out = rfl_cost_mul(&c, node->batchless ? 1 : c.batch, rfl_shape_numel(&node->shape));
	return c;
}

/*
 * A tensor with k readers collects k gradients: k - 1 additions per element. Unfused each reads two
 * tensors and writes one; fused the addition is part of the operation that makes the gradient,
 * which reads what is there already.
 */
static void count_joins(struct rfl_cost_context *c, const struct link *link, struct rfl_cost *cost)
{
	struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][RFL_PASS_DGRAD];
	struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][RFL_PASS_DGRAD];
	int64_t *adds = &cost->elementwise[RFL_PASS_DGRAD].add;
	int64_t n;

	if (!link->requires_grad || link->readers < 2)
		return;
	n = rfl_cost_mul(c, link->readers - 1, c->out);
	*adds = rfl_cost_add(c, *adds, n);
	rfl_cost_read(c, u, n, 2 * c->value_bytes);
	rfl_cost_write(c, u, n, c->value_bytes);
	rfl_cost_read(c, f, n, c->value_bytes);
}

/*
 * What must move whatever the schedule: each parameter is read once and its gradient written once,
 * the image is read, and in inference the logits are written. Running statistics are read and
 * written in training; in inference they fold into the parameters.
 */
static void count_compulsory(struct rfl_cost_context *c, const struct rfl_net *net,
			     const struct link *link, struct rfl_cost *cost)
{
	struct rfl_traffic *t = cost->traffic[RFL_FUSION_COMPULSORY];
	int64_t buffers = node_buffers(net, c->node);

	rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->params, c->param_bytes);
	rfl_cost_write(c, &t[RFL_PASS_WGRAD], c->params, c->param_bytes);
	if (c->options->training) {
		rfl_cost_read(c, &t[RFL_PASS_FORWARD], buffers, c->param_bytes);
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], buffers, c->param_bytes);
	} else if (c->node == &net->nodes[net->output]) {
		rfl_cost_write(c, &t[RFL_PASS_FORWARD], c->out, c->value_bytes);
	}
	if (c->node->op == RFL_OP_INPUT) {
		int64_t size = c->node->dtype == RFL_DTYPE_I64 ? rfl_dtype_bytes(RFL_DTYPE_I64)
							       : c->value_bytes;

		rfl_cost_read(c, &t[RFL_PASS_FORWARD], c->out, size);
		if (link->requires_grad)
			rfl_cost_write(c, &t[RFL_PASS_DGRAD], c->out, size);
	}
}

static void add_elementwise(struct rfl_cost_context *c, struct rfl_elementwise *sum,
			    const struct rfl_elementwise *e)
{
	sum->add = rfl_cost_add(c, sum->add, e->add);
	sum->mul = rfl_cost_add(c, sum->mul, e->mul);
	sum->compare = rfl_cost_add(c, sum->compare, e->compare);
	sum->special = rfl_cost_add(c, sum->special, e->special);
}

static void add_cost(struct rfl_cost_context *c, struct rfl_cost *sum, const struct rfl_cost *cost)
{
	sum->macs_excl_padding = rfl_cost_add(c, sum->macs_excl_padding, cost->macs_excl_padding);
	sum->bias_adds = rfl_cost_add(c, sum->bias_adds, cost->bias_adds);
	for (int pass = 0; pass < RFL_PASS_COUNT; pass++) {
		sum->macs[pass] = rfl_cost_add(c, sum->macs[pass], cost->macs[pass]);
		add_elementwise(c, &sum->elementwise[pass], &cost->elementwise[pass]);
		for (int level = 0; level < RFL_FUSION_COUNT; level++) {
			rfl_cost_read(c, &sum->traffic[level][pass],
				      cost->traffic[level][pass].read_bytes, 1);
			rfl_cost_write(c, &sum->traffic[level][pass],
				       cost->traffic[level][pass].write_bytes, 1);
		}
	}
}

static enum rfl_rc too_big(const struct rfl_net *net, const struct rfl_node *node, int64_t batch,
			   struct rfl_err *err)
{
	return rfl_fail(err, RFL_EOVERFLOW, 0,
			"%s: %s (%s): its counts at batch %lld do not fit 63 bits", net->model,
			*node->name ? node->name : "top level", rfl_op_info_of(node->op)->module,
			(long long)batch);
}

static enum rfl_rc count_nodes(const struct rfl_net *net, const struct link *links,
			       struct rfl_count *count, struct rfl_err *err)
{
	struct rfl_cost_input inputs[RFL_NET_MAX_INPUTS];

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct rfl_op_info *op = rfl_op_info_of(node->op);
		struct rfl_cost *cost = &count->nodes[i];
		struct rfl_cost_context c = context_of(net, &count->options, links, node, inputs);

		count->needs_dgrad[i] = c.needs_dgrad;
		if (op->cost && !c.overflow)
			op->cost(&c, cost);
		count_joins(&c, &links[i], cost);
		count_compulsory(&c, net, &links[i], cost);
		add_cost(&c, &count->total, cost);
		if (c.overflow)
			return too_big(net, node, count->options.batch, err);
	}
	return RFL_OK;
}

/* The loss is no node of the net: engines know it, and inference has none. */
static enum rfl_rc count_loss(const struct rfl_net *net, const struct link *links,
			      struct rfl_count *count, struct rfl_err *err)
{
	struct rfl_node node = {
		.op = RFL_OP_CROSS_ENTROPY,
		.name = "loss",
		.functional = true,
		.ninputs = 1,
		.input = (const int[]){ net->output },
		.shape = { .ndim = 1,
			   .dim = { net->nodes[net->output].shape.ndim == 2
					    ? net->nodes[net->output].shape.dim[0]
					    : 1 } },
	};
	struct rfl_cost_input inputs[RFL_NET_MAX_INPUTS];
	struct rfl_cost_context c;

	if (!count->options.training)
		return RFL_OK;
	c = context_of(net, &count->options, links, &node, inputs);
	rfl_op_info_of(node.op)->cost(&c, &count->loss);
	rfl_cost_read(&c, &count->loss.traffic[RFL_FUSION_COMPULSORY][RFL_PASS_FORWARD], c.out,
		      rfl_dtype_bytes(RFL_DTYPE_I64));
	add_cost(&c, &count->total, &count->loss);
	return c.overflow ? too_big(net, &node, count->options.batch, err) : RFL_OK;
}

static int64_t add_kinds(struct rfl_cost_context *c, int64_t sum, const struct rfl_elementwise *e)
{
	sum = rfl_cost_add(c, rfl_cost_add(c, sum, e->add), e->mul);
	return rfl_cost_add(c, rfl_cost_add(c, sum, e->compare), e->special);
}

/* The sums over passes and kinds that are made of the totals, below and in summary.c, must fit too,
 * so that they need no check there. */
static enum rfl_rc check_sums(const struct rfl_net *net, const struct rfl_count *count,
			      struct rfl_err *err)
{
	struct rfl_cost_context c = { 0 };
	int64_t macs = 0,
		elementwise = add_kinds(&c, count->total.bias_adds, &count->optimizer_flops);

	for (int pass = 0; pass < RFL_PASS_COUNT; pass++) {
		macs = rfl_cost_add(&c, macs, count->total.macs[pass]);
		elementwise = add_kinds(&c, elementwise, &count->total.elementwise[pass]);
	}
	(void)rfl_cost_mul(&c, macs, 2);
	for (int level = 0; level < RFL_FUSION_COUNT; level++) {
		int64_t bytes =
			rfl_cost_add(&c, count->optimizer.read_bytes, count->optimizer.write_bytes);

		for (int pass = 0; pass < RFL_PASS_COUNT; pass++) {
			const struct rfl_traffic *t = &count->total.traffic[level][pass];

			bytes = rfl_cost_add(&c, bytes, t->read_bytes);
			bytes = rfl_cost_add(&c, bytes, t->write_bytes);
		}
	}
	if (c.overflow)
		return rfl_fail(err, RFL_EOVERFLOW, 0,
				"%s: totals at batch %lld do not fit 63 bits", net->model,
				(long long)count->options.batch);
	return RFL_OK;
}

static enum rfl_rc fill(const struct rfl_net *net, struct link *links, struct rfl_count *count,
			struct rfl_err *err)
{
	enum rfl_rc rc;

	link_nodes(net, &count->options, links);
	rc = count_nodes(net, links, count, err);
	if (rc == RFL_OK)
		rc = count_loss(net, links, count, err);
	if (rc == RFL_OK)
		rc = rfl_optimizer_count(count, err);
	if (rc == RFL_OK)
		rc = check_sums(net, count, err);
	return rc;
}

enum rfl_rc rfl_count_net(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_count **ret, struct rfl_err *err)
{
	struct rfl_count *count = NULL;
	struct link *links = NULL;
	enum rfl_rc rc;

	if (options->batch < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "%s: batch %lld is not 1 or more", net->model,
				(long long)options->batch);
	count = calloc(1, sizeof(*count));
	links = rfl_alloc_array((size_t)net->nnodes, sizeof(*links));
	if (count) {
		*count = (struct rfl_count){
			.options = *options,
			.params = rfl_net_param_count(net),
			.buffers = rfl_net_buffer_count(net),
			.nnodes = net->nnodes,
			.nodes = rfl_alloc_array((size_t)net->nnodes, sizeof(*count->nodes)),
			.needs_dgrad =
				rfl_alloc_array((size_t)net->nnodes, sizeof(*count->needs_dgrad)),
		};
	}
	if (!links || !count || !count->nodes || !count->needs_dgrad) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
		goto done;
	}
	rc = fill(net, links, count, err);
	if (rc != RFL_OK)
		goto done;
	*ret = count;
	count = NULL;
done:
	rfl_count_free(count);
	free(links);
	return rc;
}

void rfl_count_free(struct rfl_count *count)
{
	if (!count)
		return;
	free(count->nodes);
	free(count->needs_dgrad);
	free(count);
}

int64_t rfl_count_forward_flops(const struct rfl_count *count)
{
	return 2 * count->total.macs[RFL_PASS_FORWARD];
}

int64_t rfl_count_training_flops(const struct rfl_count *count)
{
	const int64_t *macs = count->total.macs;

	return 2 * (macs[RFL_PASS_FORWARD] + macs[RFL_PASS_DGRAD] + macs[RFL_PASS_WGRAD]);
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
	bytes += both_ways(&t[RFL_PASS_DGRAD]) + both_ways(&t[RFL_PASS_WGRAD]);
	if (scope == RFL_SCOPE_STEP)
		bytes += both_ways(&count->optimizer);
	return bytes;
}
