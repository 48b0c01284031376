/*
 * links.c - walk the graph once forward and once backward and record everything that determines the
 * costs of operations, except the batch.
 *
 * Gradients. A tensor needs one if a trained parameter, or an image with a gradient, comes before
 * it and a loss after it. So the first layer of a trained network has no dgrad, a frozen layer
 * below the lowest trained one has no backward pass at all, and one above it has only a dgrad.
 *
 * Checkpointing follows torch.utils.checkpoint with use_reentrant=False. Each segment is K
 * consecutive blocks, from the first operation of the first block to the last operation of the
 * last. Its backward pass runs it again up to the last tensor saved by autograd and stops there
 * (early stop, PyTorch's default). Autograd saves inputs and weights before an operation runs, and
 * results after it: if the last saved tensor is an input, that operation is not run again. So a
 * transformer block that ends in x + linear(y) repeats everything but that linear layer. If nothing
 * is saved (a segment below everything trained), nothing is run again.
 */
#include "complexity/count/links.h"

#include <string.h>

#include "base/text.h"

enum { SUGGESTIONS = 3 };

/* --- frozen modules --- */

/* Report a module without parameters and suggest the nearest that have some. */
static enum rfl_rc no_such_module(const struct rfl_net *net, const char *module,
				  struct rfl_err *err)
{
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	char advice[RFL_ADVICE_SIZE];
	size_t n = 0, max = (size_t)net->nnodes + 1;
	const char **names;

	for (int i = 0; i < net->nnodes; i++)
		for (const char *dot = net->nodes[i].name; (dot = strchr(dot, '.')); dot++)
			max++;
	names = rfl_arena_array(arena, max, sizeof(*names));
	for (int i = 0; i < net->nnodes; i++) {
		const char *path = net->nodes[i].name;
		size_t length = 0, end = net->nodes[i].nparams > 0 ? strlen(path) : 0;

		for (; length < end; length++) { /* skip the dot */
			size_t k = n;

			length += strcspn(path + length, ".");
			while (k > 0 && (strncmp(names[k - 1], path, length) != 0 ||
					 names[k - 1][length] != '\0'))
				k--;
			if (k > 0)
				continue;
			names[n++] = rfl_arena_printf(arena, "%.*s", (int)length, path);
		}
	}
	rfl_text_advice(module, names, SUGGESTIONS,
			"run 'roofline complexity --by layer' to list the modules", advice);
	return rfl_fail(err, RFL_EINVAL, 0, "%s: no module '%s' with parameters to freeze; %s",
			net->model, module, advice);
}

/* Whether a node has parameters and is in a module. */
static bool is_in(const struct rfl_node *node, const char *module)
{
	size_t n = strlen(module);

	return node->nparams > 0 && strncmp(node->name, module, n) == 0 &&
	       (node->name[n] == '\0' || node->name[n] == '.');
}

enum rfl_rc rfl_count_check_frozen(const struct rfl_net *net, const char *module,
				   struct rfl_err *err)
{
	for (int i = 0; i < net->nnodes; i++)
		if (is_in(&net->nodes[i], module))
			return RFL_OK;
	return no_such_module(net, module, err);
}

/* A tensor shared by two modules is frozen with either. */
static enum rfl_rc freeze(const struct rfl_net *net, const struct rfl_count_options *options,
			  bool *frozen, struct rfl_err *err)
{
	for (size_t k = 0; k < options->nfrozen; k++) {
		enum rfl_rc rc = rfl_count_check_frozen(net, options->frozen[k], err);

		if (rc != RFL_OK)
			return rc;
		for (int i = 0; i < net->nnodes; i++)
			for (int p = 0; p < net->nodes[i].nparams; p++)
				if (is_in(&net->nodes[i], options->frozen[k]))
					frozen[net->nodes[i].param[p]] = true;
	}
	return RFL_OK;
}

/* Forward: record which nodes run, who reads each result, and which results depend on trained
 * parameters. Backward: a node that no loss depends on has no gradient; `gradients` counts the uses
 * of a result on paths to the losses. */
static void walk(const struct rfl_net *net, const struct rfl_count_options *options,
		 const bool *frozen, struct rfl_links *ret)
{
	struct rfl_link *links = ret->nodes;

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		struct rfl_link *link = &links[i];
		bool input = node->op == RFL_OP_INPUT, fuses = rfl_op_info_of(node->op)->fuses;

		link->runs = !node->auxiliary || (options->training && options->auxiliary);
		if (!link->runs)
			continue;
		for (int k = 0; k < node->nparams; k++) {
			const struct rfl_param *p = &net->params[node->param[k]];
			bool buffer = rfl_param_is_buffer(p->kind), fixed = frozen[node->param[k]];

			link->trains |= !buffer && !fixed;
			link->buffers += buffer ? p->numel : 0;
			link->params += buffer || node->tied ? 0 : p->numel;
			link->trained += buffer || node->tied || fixed ? 0 : p->numel;
		}
		links[node->tied].lent |= node->tied > 0;
		link->hosts = !fuses && node->ninputs > 0;
		link->grad = link->trains || (input && (options->input_grad || net->ninputs > 1) &&
					      node->dtype != RFL_DTYPE_I64);
		for (int k = 0; k < node->ninputs; k++) {
			struct rfl_link *from = &links[node->input[k]];

			from->readers++;
			link->grad |= from->grad;
			link->hosts |= fuses && from->hosts;
		}
	}
	/* The logits are the net's output and the unread results of auxiliary heads. */
	ret->nops = net->nnodes;
	for (int i = 0; i < net->nnodes; i++) {
		links[i].logits = i == net->output || (net->nodes[i].auxiliary && links[i].runs &&
						       links[i].readers == 0);
		ret->nops += links[i].logits;
	}
	for (int i = net->nnodes - 1; i >= 0; i--) {
		const struct rfl_node *node = &net->nodes[i];
		struct rfl_link *link = &links[i];

		link->readers += link->logits;
		link->gradients += link->logits;
		if (!link->runs || link->gradients == 0) {
			link->grad = link->trains = false;
			link->trained = 0;
			continue;
		}
		ret->trained += link->trained;
		for (int k = 0; k < node->ninputs; k++)
			links[node->input[k]].gradients++;
	}
}

struct rfl_cost_context *rfl_links_at(struct rfl_cost_context *c, int64_t batch)
{
	c->batch = batch;
	c->overflow = false;
	c->in = c->node->ninputs ? rfl_cost_in(c, 0) : 0;
	c->out = rfl_cost_size(c, c->node->batchless ? 1 : batch, c->out_sample);
	return c;
}

static struct rfl_cost_context context_of(const struct rfl_links *links,
					  const struct rfl_count_options *options,
					  const struct rfl_node *node, const struct rfl_link *link,
					  struct rfl_cost_input *inputs)
{
	const struct rfl_net *net = links->net;
	struct rfl_cost_context c = {
		.node = node,
		.options = options,
		.out_sample = rfl_shape_numel(&node->shape),
		.inputs = inputs,
		.value_bytes = rfl_dtype_bytes(options->dtype),
		.param_bytes =
			rfl_dtype_bytes(options->master_weights ? RFL_DTYPE_F32 : options->dtype),
		.needs_wgrad = link->trains,
		.input_shared = node->ninputs > 0,
		.loss = net->loss,
	};

	if (node->ninputs > 0)
		c.in_shape = net->nodes[node->input[0]].shape;
	for (int k = 0; k < node->ninputs; k++) {
		const struct rfl_link *from = &links->nodes[node->input[k]];
		const struct rfl_node *source = &net->nodes[node->input[k]];

		inputs[k] = (struct rfl_cost_input){
			.shape = &source->shape,
			.numel = rfl_shape_numel(&source->shape),
			.batchless = source->batchless,
			.grad = link->grad && from->grad,
			.outside = source->op == RFL_OP_PARAMETER || source->op == RFL_OP_CONSTANT,
		};
		c.needs_dgrad |= inputs[k].grad;
		c.fused |= rfl_op_info_of(node->op)->fuses && from->hosts;
		c.input_shared &= from->readers > 1;
	}
	return c;
}

/* Each loss becomes an operation, first for the net's logits, then for other heads. */
static void make_contexts(struct rfl_links *links, const struct rfl_count_options *options,
			  struct rfl_arena *arena)
{
	const struct rfl_net *net = links->net;
	const int nlosses = links->nops - net->nnodes;
	struct rfl_cost_input *inputs;
	struct rfl_node *losses;
	int *logits, i = 0;
	size_t n = (size_t)nlosses;

	for (int k = 0; k < net->nnodes; k++)
		n += (size_t)net->nodes[k].ninputs;
	inputs = rfl_arena_array(arena, n, sizeof(*inputs));
	losses = rfl_arena_array(arena, (size_t)nlosses, sizeof(*losses));
	logits = rfl_arena_array(arena, (size_t)nlosses, sizeof(*logits));
	links->contexts = rfl_arena_array(arena, (size_t)links->nops, sizeof(*links->contexts));
	for (; i < net->nnodes; i++) {
		struct rfl_link *link = &links->nodes[i];
		const struct rfl_node *node = &net->nodes[i];

		links->contexts[i] = context_of(links, options, node, link, inputs);
		/* Nothing is counted for this node at any batch; most such nodes are views. */
		link->free = !link->runs ||
			     (!rfl_op_info_of(node->op)->cost && node->op != RFL_OP_INPUT &&
			      !link->logits && link->params == 0 && link->buffers == 0 &&
			      (!link->grad || link->gradients < 2));
		inputs += node->ninputs;
	}
	for (int k = -1; k < net->nnodes; k++) {
		int at = k < 0 ? net->output : k;
		const struct rfl_shape *shape = &net->nodes[at].shape;

		if (!links->nodes[at].logits || k == net->output)
			continue;
		*logits = at;
		*losses = (struct rfl_node){
			.op = RFL_OP_CROSS_ENTROPY,
			.name = "loss",
			.functional = true,
			.ninputs = 1,
			.input = logits++,
			.shape = { .ndim = 1, .dim = { shape->ndim == 2 ? shape->dim[0] : 1 } },
		};
		links->nodes[i] = (struct rfl_link){ .runs = true, .grad = links->nodes[at].grad };
		links->contexts[i] =
			context_of(links, options, losses++, &links->nodes[i], inputs++);
		i++;
	}
}

/* --- checkpointing --- */

enum kept { KEPT_NOTHING, KEPT_BEFORE, KEPT_AFTER };

/* Whether autograd saves the last tensor of an operation before or after the operation runs. */
static enum kept keeps(struct rfl_cost_context *c)
{
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_op_saves saves = { 0 };

	if (op->saved)
		op->saved(rfl_links_at(c, 1), &saves);
	for (int i = 0; i < saves.n; i++)
		if (saves.item[i].tensor < 0 && saves.item[i].kind != RFL_SAVED_CLASS_CLONES)
			return KEPT_AFTER;
	return saves.n > 0 || (c->node->nparams > 0 && c->needs_dgrad) ? KEPT_BEFORE : KEPT_NOTHING;
}

/* Mark the segments; nodes between two blocks of a segment belong to it. Then mark the operations
 * of each segment, up to its last saved tensor, to be run again. */
static void checkpoint(struct rfl_links *links, int64_t blocks)
{
	const struct rfl_net *net = links->net;
	int before = 0, segment = 0;
	bool reached = false;

	for (int i = 0; i < net->nnodes; i++) {
		int own;

		if (net->nodes[i].block == 0)
			continue;
		own = (int)((net->nodes[i].block - 1) / blocks) + 1;
		for (int k = own == segment ? before + 1 : i; k <= i; k++)
			links->nodes[k].segment = own;
		before = i;
		segment = own;
	}
	for (int i = net->nnodes - 1; i >= 0; i--) {
		struct rfl_link *link = &links->nodes[i];
		enum kept kept;

		if (!link->segment || !link->runs)
			continue;
		reached &= link->segment == segment;
		segment = link->segment;
		kept = keeps(&links->contexts[i]);
		link->again = reached || kept == KEPT_AFTER;
		reached |= kept != KEPT_NOTHING;
	}
}

enum rfl_rc rfl_links_new(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_arena *arena, struct rfl_links **ret, struct rfl_err *err)
{
	struct rfl_links *links = rfl_arena_array(arena, 1, sizeof(*links));
	bool *frozen = rfl_arena_array(arena, (size_t)net->nparams, sizeof(*frozen));
	size_t n = (size_t)net->nnodes + 1;
	enum rfl_rc rc = freeze(net, options, frozen, err);

	if (rc != RFL_OK)
		return rc;
	for (int i = 0; i < net->nnodes; i++)
		n += net->nodes[i].auxiliary; /* an auxiliary node may have a loss */
	links->net = net;
	links->nodes = rfl_arena_array(arena, n, sizeof(*links->nodes));
	walk(net, options, frozen, links);
	make_contexts(links, options, arena);
	if (options->checkpoint < 0)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: cannot checkpoint %lld blocks at a time; use 1 or more, or 0 for none",
			net->model, (long long)options->checkpoint);
	if (options->checkpoint > 0 && net->nblocks == 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: has no repeated blocks to checkpoint; turn checkpointing off",
				net->model);
	if (options->checkpoint > 0)
		checkpoint(links, options->checkpoint);
	*ret = links;
	return RFL_OK;
}
