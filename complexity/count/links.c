/*
 * links.c - walk the graph once forward and once backward and write down what the operations'
 * costs depend on but their batch.
 *
 * Gradients. A tensor needs one when something trained, or an image that asks for it, lies before
 * it and a loss lies after it. So the first layer of a trained network has no dgrad, a frozen
 * layer below the lowest trained one has no backward pass at all, and one above it has dgrad only.
 *
 * Checkpointing, as torch.utils.checkpoint does it without re-entrance. Blocks are taken K at a
 * time; a segment reaches from the first operation of its first block to the last of its last one.
 * Its backward pass runs it again up to the last tensor that autograd had kept and stops there
 * (early stop, PyTorch's default). Inputs and weights are kept before an operation computes,
 * results after it: when the last tensor kept is an input, that operation is not run again. So a
 * transformer's block that ends in x + linear(y) repeats everything but that linear layer. Where
 * nothing is kept (a segment below everything trained) nothing is run again.
 */
#include "complexity/count/links.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"

enum { SUGGESTIONS = 3 };

/* --- frozen modules --- */

static bool is_listed(const char *const *names, size_t n, const char *name, size_t length)
{
	for (size_t i = n; i-- > 0;)
		if (strncmp(names[i], name, length) == 0 && names[i][length] == '\0')
			return true;
	return false;
}

/* The paths of all modules that have parameters, ended by NULL. */
static const char *const *modules_of(const struct rfl_net *net, struct rfl_arena *arena)
{
	const char **names;
	size_t n = 0, max = (size_t)net->nnodes + 1;

	for (int i = 0; i < net->nnodes; i++)
		for (const char *dot = net->nodes[i].name; (dot = strchr(dot, '.')); dot++)
			max++;
	names = rfl_arena_array(arena, max, sizeof(*names));
	for (int i = 0; names && i < net->nnodes; i++) {
		const char *path = net->nodes[i].name;
		size_t length = 0, end = net->nodes[i].nparams > 0 ? strlen(path) : 0;

		while (length < end) {
			length += strcspn(path + length, ".");
			if (!is_listed(names, n, path, length)) {
				names[n] = rfl_arena_printf(arena, "%.*s", (int)length, path);
				if (!names[n++])
					return NULL;
			}
			length++; /* past the dot */
		}
	}
	return names;
}

static enum rfl_rc no_such_module(const struct rfl_net *net, const char *module,
				  struct rfl_arena *arena, struct rfl_err *err)
{
	const char *const *names = modules_of(net, arena);
	struct rfl_buf near;
	enum rfl_rc rc;

	if (!names)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	rfl_buf_init(&near, 0);
	if (rfl_text_suggest(module, names, SUGGESTIONS, &near) > 0)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: no module '%s' has parameters to freeze; did you mean %s?",
			      net->model, module, rfl_buf_str(&near));
	else
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: no module '%s' has parameters to freeze",
			      net->model, module);
	rfl_buf_fini(&near);
	return rc;
}

/* A tensor that two modules share is frozen with either. */
static enum rfl_rc freeze(const struct rfl_net *net, const struct rfl_count_options *options,
			  bool *frozen, struct rfl_arena *arena, struct rfl_err *err)
{
	for (size_t k = 0; k < options->nfrozen; k++) {
		const char *module = options->frozen[k];
		size_t n = strlen(module);
		bool found = false;

		for (int i = 0; i < net->nnodes; i++) {
			const struct rfl_node *node = &net->nodes[i];

			if (node->nparams == 0 || strncmp(node->name, module, n) != 0 ||
			    (node->name[n] != '\0' && node->name[n] != '.'))
				continue;
			found = true;
			for (int p = 0; p < node->nparams; p++)
				frozen[node->param[p]] = true;
		}
		if (!found)
			return no_such_module(net, module, arena, err);
	}
	return RFL_OK;
}

/* --- what the graph says --- */

static void tally_params(const struct rfl_net *net, const struct rfl_node *node, const bool *frozen,
			 struct rfl_link *link)
{
	for (int k = 0; k < node->nparams; k++) {
		const struct rfl_param *p = &net->params[node->param[k]];

		if (rfl_param_is_buffer(p->kind)) {
			link->buffers += p->numel;
			continue;
		}
		link->trains |= !frozen[node->param[k]];
		link->params += node->tied ? 0 : p->numel;
		link->trained += node->tied || frozen[node->param[k]] ? 0 : p->numel;
	}
}

static void walk_forward(const struct rfl_net *net, const struct rfl_count_options *options,
			 const bool *frozen, struct rfl_link *links)
{
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		struct rfl_link *link = &links[i];
		bool input = node->op == RFL_OP_INPUT, rides = rfl_op_info_of(node->op)->rides;

		link->runs = !node->auxiliary || (options->training && options->auxiliary);
		if (!link->runs)
			continue;
		tally_params(net, node, frozen, link);
		links[node->tied].lent |= node->tied > 0;
		link->hosts = !rides && node->ninputs > 0;
		link->grad = link->trains ||
			     (input && options->input_grad && node->dtype != RFL_DTYPE_I64);
		for (int k = 0; k < node->ninputs; k++) {
			struct rfl_link *from = &links[node->input[k]];

			from->readers++;
			link->grad |= from->grad;
			link->hosts |= rides && from->hosts;
		}
	}
}

/* What no loss depends on has no gradient. `gradients` counts the ways back from the losses. */
static void walk_backward(const struct rfl_net *net, struct rfl_link *links)
{
	/* Logits are what the net puts out, and what an auxiliary head leaves unread. */
	for (int i = 0; i < net->nnodes; i++)
		links[i].logits = i == net->output || (net->nodes[i].auxiliary && links[i].runs &&
						       links[i].readers == 0);
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
		for (int k = 0; k < node->ninputs; k++)
			links[node->input[k]].gradients++;
	}
}

/* --- contexts --- */

struct rfl_cost_context *rfl_links_at(struct rfl_cost_context *c, int64_t batch)
{
	c->batch = batch;
	c->overflow = false;
	c->in = c->node->ninputs ? rfl_cost_in(c, 0) : 0;
	c->out = c->node->batchless ? c->out_sample : rfl_cost_mul(c, batch, c->out_sample);
	return c;
}

/* `backward`: a gradient of its output comes. */
static struct rfl_cost_context context_of(const struct rfl_net *net,
					  const struct rfl_count_options *options,
					  const struct rfl_link *links, const struct rfl_node *node,
					  bool backward, struct rfl_cost_input *inputs)
{
	struct rfl_cost_context c = {
		.node = node,
		.options = options,
		.out_sample = rfl_shape_numel(&node->shape),
		.inputs = inputs,
		.value_bytes = rfl_dtype_bytes(options->dtype),
		.param_bytes =
			rfl_dtype_bytes(options->master_weights ? RFL_DTYPE_F32 : options->dtype),
		.input_shared = node->ninputs > 0,
		.loss = net->loss,
	};

	if (node->ninputs > 0)
		c.in_shape = net->nodes[node->input[0]].shape;
	for (int k = 0; k < node->ninputs; k++) {
		const struct rfl_link *from = &links[node->input[k]];
		const struct rfl_node *source = &net->nodes[node->input[k]];

		inputs[k] = (struct rfl_cost_input){
			.shape = &source->shape,
			.numel = rfl_shape_numel(&source->shape),
			.batchless = source->batchless,
			.grad = backward && from->grad,
			.outside = source->op == RFL_OP_PARAMETER || source->op == RFL_OP_CONSTANT,
			.shared = from->readers > 1,
		};
		c.needs_dgrad |= inputs[k].grad;
		c.rides |= rfl_op_info_of(node->op)->rides && from->hosts;
		c.input_shared &= inputs[k].shared;
	}
	return c;
}

static bool make_contexts(struct rfl_links *links, const struct rfl_count_options *options)
{
	const struct rfl_net *net = links->net;
	struct rfl_cost_input *inputs;
	size_t n = 1;

	for (int i = 0; i < net->nnodes; i++)
		n += (size_t)net->nodes[i].ninputs;
	inputs = rfl_arena_array(links->arena, n, sizeof(*inputs));
	if (!inputs)
		return false;
	for (int i = 0; i < net->nnodes; i++) {
		struct rfl_link *link = &links->nodes[i];
		const struct rfl_node *node = &net->nodes[i];
		struct rfl_cost_context *c = &links->contexts[i];

		*c = context_of(net, options, links->nodes, node, link->grad, inputs);
		c->params = link->params;
		c->needs_wgrad = link->trains;
		/* Nothing of it is counted at any batch: views, above all. */
		link->free = !link->runs ||
			     (rfl_op_is_free(rfl_op_info_of(node->op)) &&
			      node->op != RFL_OP_INPUT && !link->logits && link->params == 0 &&
			      link->buffers == 0 && (!link->grad || link->gradients < 2));
		inputs += node->ninputs;
	}
	return true;
}

static void add_loss(struct rfl_links *links, const struct rfl_count_options *options, int logits)
{
	const struct rfl_net *net = links->net;
	const struct rfl_shape *shape = &net->nodes[logits].shape;
	struct rfl_links_loss *loss = &links->losses[links->nlosses++];

	loss->logits = logits;
	loss->node = (struct rfl_node){
		.op = RFL_OP_CROSS_ENTROPY,
		.name = "loss",
		.functional = true,
		.ninputs = 1,
		.input = &loss->logits,
		.shape = { .ndim = 1, .dim = { shape->ndim == 2 ? shape->dim[0] : 1 } },
	};
	loss->context = context_of(net, options, links->nodes, &loss->node,
				   links->nodes[logits].grad, &loss->input);
}

static bool make_losses(struct rfl_links *links, const struct rfl_count_options *options)
{
	const struct rfl_net *net = links->net;
	size_t n = 0;

	for (int i = 0; i < net->nnodes; i++)
		n += links->nodes[i].logits;
	links->losses = rfl_arena_array(links->arena, n, sizeof(*links->losses));
	if (!links->losses)
		return false;
	add_loss(links, options, net->output);
	for (int i = 0; i < net->nnodes; i++)
		if (links->nodes[i].logits && i != net->output)
			add_loss(links, options, i);
	return true;
}

/* --- checkpointing --- */

/* What lies between two blocks of a segment belongs to it. */
static int mark_segments(const struct rfl_net *net, int64_t blocks, struct rfl_link *links)
{
	int before = 0, segment = 0;

	for (int i = 0; i < net->nnodes; i++) {
		int own;

		if (net->nodes[i].block == 0)
			continue;
		own = (int)((net->nodes[i].block - 1) / blocks) + 1;
		for (int k = own == segment ? before + 1 : i; k <= i; k++)
			links[k].segment = own;
		before = i;
		segment = own;
	}
	return segment;
}

enum kept { KEPT_NOTHING, KEPT_BEFORE, KEPT_AFTER };

/* When autograd keeps the last of an operation's tensors: before it computes, or after. */
static enum kept keeps(struct rfl_cost_context *c)
{
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_op_saved saved[RFL_OP_MAX_SAVED];
	int n = op->saved ? op->saved(rfl_links_at(c, 1), saved) : 0;
	enum kept kept =
		n > 0 || (c->node->nparams > 0 && c->needs_dgrad) ? KEPT_BEFORE : KEPT_NOTHING;

	for (int i = 0; i < n; i++)
		if (saved[i].kind != RFL_SAVED_INPUT && saved[i].kind != RFL_SAVED_CLONE)
			kept = KEPT_AFTER;
	return kept;
}

/* From the end of a segment back: from the last tensor that is kept on, all runs again. */
static void mark_again(struct rfl_links *links)
{
	bool reached = false;
	int segment = 0;

	for (int i = links->net->nnodes - 1; i >= 0; i--) {
		struct rfl_link *link = &links->nodes[i];
		enum kept kept;

		if (!link->segment || !link->runs)
			continue;
		if (link->segment != segment)
			reached = false;
		segment = link->segment;
		kept = keeps(&links->contexts[i]);
		link->again = reached || kept == KEPT_AFTER;
		reached |= kept != KEPT_NOTHING;
	}
}

enum rfl_rc rfl_links_new(const struct rfl_net *net, const struct rfl_count_options *options,
			  struct rfl_links **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	struct rfl_links *links = arena ? rfl_arena_array(arena, 1, sizeof(*links)) : NULL;
	enum rfl_rc rc = RFL_ENOMEM;
	bool *frozen;

	if (!links)
		goto done;
	links->net = net;
	links->arena = arena;
	links->nodes = rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*links->nodes));
	links->contexts = rfl_arena_array(arena, (size_t)net->nnodes, sizeof(*links->contexts));
	frozen = rfl_arena_array(arena, (size_t)net->nparams + 1, sizeof(*frozen));
	if (!frozen || !links->nodes || !links->contexts)
		goto done;
	rc = freeze(net, options, frozen, arena, err);
	if (rc != RFL_OK)
		goto done;
	walk_forward(net, options, frozen, links->nodes);
	walk_backward(net, links->nodes);
	for (int i = 0; i < net->nnodes; i++)
		links->trained += links->nodes[i].trained;
	if (!make_contexts(links, options) || !make_losses(links, options)) {
		rc = RFL_ENOMEM;
		goto done;
	}
	if (options->checkpoint < 0)
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: cannot checkpoint %lld blocks at a time",
			      net->model, (long long)options->checkpoint);
	else if (options->checkpoint > 0 && net->nblocks == 0)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: has no repeated blocks, so there is nothing to checkpoint",
			      net->model);
	if (rc != RFL_OK)
		goto done;
	if (options->checkpoint > 0) {
		links->nsegments = mark_segments(net, options->checkpoint, links->nodes);
		mark_again(links);
	}
	*ret = links;
	arena = NULL;
done:
	rfl_arena_free(arena);
	return rc == RFL_ENOMEM ? rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model)
				: rc;
}

void rfl_links_free(struct rfl_links *links)
{
	if (links)
		rfl_arena_free(links->arena);
}
