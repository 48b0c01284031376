/*
 * build.c - the builder: nodes and parameters in growing arrays, names in the arena that the
 * finished net will own, one sticky failure.
 */
#include "complexity/net/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/net/build_impl.h"
#include "complexity/op.h"

enum {
	MAX_ITEMS = 1 << 20, /* nodes, or parameters: far above any network, far below INT_MAX */
	ARENA_MAX = 1 << 30, /* names and lists of inputs */
};

struct rfl_net_builder *rfl_net_builder_new(const char *model, const char *family)
{
	struct rfl_net_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->eps = 1e-5;
	b->momentum = 0.1;
	b->scope[0] = "";
	b->arena = rfl_arena_new(ARENA_MAX);
	if (b->arena) {
		b->model = rfl_arena_strdup(b->arena, model);
		b->family = rfl_arena_strdup(b->arena, family);
	}
	if (!b->model || !b->family) {
		rfl_net_builder_free(b);
		return NULL;
	}
	b->label = b->model;
	return b;
}

void rfl_net_builder_free(struct rfl_net_builder *b)
{
	if (!b)
		return;
	rfl_arena_free(b->arena);
	free(b->nodes);
	free(b->params);
	free(b);
}

bool rfl_net__failed(const struct rfl_net_builder *b)
{
	return b->err.rc != RFL_OK;
}

bool rfl_net__is_tensor(const struct rfl_net_builder *b, int x)
{
	return !rfl_net__failed(b) && x >= 0 && x < b->nnodes;
}

int rfl_net_refuse(struct rfl_net_builder *b, const char *fmt, ...)
{
	char why[160] = "";
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (!rfl_net__failed(b))
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: %s%s%s", b->label, b->scope[b->depth],
			       *b->scope[b->depth] ? ": " : "", why);
	return -1;
}

static void out_of_memory(struct rfl_net_builder *b)
{
	(void)rfl_fail(&b->err, RFL_ENOMEM, 0, "%s: out of memory", b->label);
}

void rfl_net_title(struct rfl_net_builder *b, const char *title)
{
	if (rfl_net__failed(b))
		return;
	b->title = rfl_arena_strdup(b->arena, title);
	if (!b->title)
		out_of_memory(b);
}

/* After rfl_grow(): false where it failed. */
static bool grown(struct rfl_net_builder *b, enum rfl_rc rc)
{
	if (rc != RFL_OK)
		rfl_err_prefix(&b->err, "%s", b->label);
	return rc == RFL_OK;
}

/* "layer1.0" and "conv1" in one string of the arena, "layer1.0.conv1"; either may be empty. NULL
 * when the builder has failed. */
static const char *join(struct rfl_net_builder *b, const char *scope, const char *name)
{
	size_t outer = strlen(scope), inner = strlen(name);
	size_t dot = outer > 0 && inner > 0;
	char *path = rfl_arena_array(b->arena, outer + dot + inner + 1, 1);

	if (!path) {
		out_of_memory(b);
		return NULL;
	}
	memcpy(path, scope, outer);
	if (dot)
		path[outer] = '.';
	memcpy(path + outer + dot, name, inner); /* the arena zeroed its end */
	return path;
}

void rfl_net_enter(struct rfl_net_builder *b, const char *fmt, ...)
{
	char part[128];
	const char *path;
	va_list ap;
	int n;

	if (rfl_net__failed(b))
		return;
	if (b->depth + 1 >= RFL_NET_MAX_DEPTH) {
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: blocks nest deeper than %d", b->label,
			       RFL_NET_MAX_DEPTH - 1);
		return;
	}
	va_start(ap, fmt);
	n = vsnprintf(part, sizeof(part), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(part)) {
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: a block's name is longer than %zu",
			       b->label, sizeof(part) - 1);
		return;
	}
	path = join(b, b->scope[b->depth], part);
	if (path)
		b->scope[++b->depth] = path;
}

void rfl_net_leave(struct rfl_net_builder *b)
{
	if (b->depth > 0)
		b->depth--;
}

void rfl_net_batch_norm_defaults(struct rfl_net_builder *b, double eps, double momentum)
{
	b->eps = eps;
	b->momentum = momentum;
}

struct rfl_shape rfl_net_shape(const struct rfl_net_builder *b, int x)
{
	static const struct rfl_shape none;

	return rfl_net__is_tensor(b, x) ? b->nodes[x].shape : none;
}

int64_t rfl_net_channels(const struct rfl_net_builder *b, int x)
{
	struct rfl_shape shape = rfl_net_shape(b, x);

	return shape.ndim ? shape.dim[0] : 0;
}

int64_t rfl_net_features(const struct rfl_net_builder *b, int x)
{
	struct rfl_shape shape = rfl_net_shape(b, x);

	return shape.ndim ? shape.dim[shape.ndim - 1] : 0;
}

void rfl_net_block_begin(struct rfl_net_builder *b)
{
	if (b->in_block)
		(void)rfl_net_refuse(b, "repeated blocks do not nest");
	b->in_block = true;
	b->nblocks++;
}

void rfl_net_block_end(struct rfl_net_builder *b)
{
	b->in_block = false;
}

void rfl_net_function_begin(struct rfl_net_builder *b)
{
	if (b->in_function)
		(void)rfl_net_refuse(b, "functions do not nest");
	b->in_function = true;
	b->nfunctions++;
}

void rfl_net_function_end(struct rfl_net_builder *b)
{
	b->in_function = false;
}

void rfl_net_auxiliary_begin(struct rfl_net_builder *b)
{
	b->in_auxiliary = true;
}

void rfl_net_auxiliary_end(struct rfl_net_builder *b)
{
	b->in_auxiliary = false;
}

void rfl_net_loss(struct rfl_net_builder *b, enum rfl_loss loss)
{
	b->loss = loss;
}

static bool infer(struct rfl_net_builder *b, struct rfl_node *node)
{
	struct rfl_shape in[RFL_NET_MAX_INPUTS]; /* ninputs of them are set */

	node->batchless |= node->ninputs > 0;
	for (int i = 0; i < node->ninputs; i++) {
		if (!rfl_net__is_tensor(b, node->input[i])) {
			(void)rfl_fail(&b->err, RFL_EINVAL, 0, "input %d is not a tensor", i);
			return false;
		}
		in[i] = b->nodes[node->input[i]].shape;
		node->batchless &= b->nodes[node->input[i]].batchless;
	}
	if (rfl_op_info_of(node->op)->infer(node, in, &node->shape, &b->err) != RFL_OK)
		return false;
	if (!rfl_shape_fits(&node->shape)) {
		char text[160];

		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0, "output %s does not fit 63 bits",
			       rfl_shape_text(&node->shape, text, sizeof(text)));
		return false;
	}
	return true;
}

struct rfl_shape rfl_net__first_param(const struct rfl_net_builder *b, int owner)
{
	struct rfl_shape shape = { 0 };
	const struct rfl_param *p;

	if (!rfl_net__is_tensor(b, owner) || b->nodes[owner].nparams < 1)
		return shape;
	p = &b->params[b->nodes[owner].param[0]];
	shape.ndim = p->ndim;
	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	return shape;
}

/* Elements of a parameter, if they and those of all before it fit. */
static bool add_elements(struct rfl_net_builder *b, struct rfl_param *p)
{
	struct rfl_shape shape = { .ndim = p->ndim };

	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	if (!rfl_shape_fits(&shape)) {
		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0, "%s: %s does not fit 63 bits", b->label,
			       p->name);
		return false;
	}
	p->numel = rfl_shape_numel(&shape);
	if (!rfl_num_add(b->param_elements, p->numel, &b->param_elements)) {
		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0,
			       "%s: with %s the parameters together do not fit 63 bits", b->label,
			       p->name);
		return false;
	}
	return true;
}

/* The parameters of a node that is about to be appended, or the one that it borrows. */
static bool add_params(struct rfl_net_builder *b, struct rfl_node *node)
{
	_Static_assert(RFL_ARRAY_LEN(node->param) == RFL_OP_MAX_PARAMS, "a node holds them all");
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	struct rfl_op_param from[RFL_OP_MAX_PARAMS] = { 0 };
	int n;

	if (node->tied) {
		if (!rfl_net__is_tensor(b, node->tied) || b->nodes[node->tied].nparams < 1) {
			(void)rfl_fail(&b->err, RFL_EINVAL, 0,
				       "%s: %s is tied to a node that has no parameter", b->label,
				       node->name);
			return false;
		}
		node->param[node->nparams++] = b->nodes[node->tied].param[0];
		b->ties = true;
		return true;
	}
	n = op->params ? op->params(node, from) : 0;
	for (int i = 0; i < n; i++) {
		struct rfl_param p = {
			.name = join(b, node->name, from[i].suffix),
			.kind = from[i].kind,
			.ndim = from[i].ndim,
			.position = (uint32_t)b->nparams,
			.node = b->nnodes,
		};

		memcpy(p.dim, from[i].dim, sizeof(p.dim));
		if (!p.name || !add_elements(b, &p) ||
		    !grown(b, rfl_grow(&b->params, &b->param_cap, (size_t)b->nparams + 1, MAX_ITEMS,
				       &b->err)))
			return false;
		b->params[b->nparams] = p;
		node->param[node->nparams++] = b->nparams++;
	}
	return true;
}

int rfl_net__append(struct rfl_net_builder *b, struct rfl_node *node, const char *name)
{
	const char *scope = b->nnodes ? b->scope[b->depth] : ""; /* the input is in no block */
	int *input;

	if (rfl_net__failed(b) ||
	    !grown(b, rfl_grow(&b->nodes, &b->node_cap, (size_t)b->nnodes + 1, MAX_ITEMS, &b->err)))
		return -1;
	node->functional = node->functional || !name;
	node->block = b->in_block ? b->nblocks : 0;
	node->function = b->in_function ? b->nfunctions : 0;
	node->auxiliary = b->in_auxiliary;
	node->name = name ? join(b, scope, name) : scope;
	if (!node->name)
		return -1;
	if (!infer(b, node)) { /* "layer4.0.conv1 (Conv2d)" for messages */
		rfl_err_prefix(&b->err, "%s: %s (%s)", b->label,
			       *node->name ? node->name : "top level",
			       rfl_op_info_of(node->op)->module);
		return -1;
	}
	/* the caller's list goes out of scope */
	input = rfl_arena_array(b->arena, (size_t)node->ninputs + 1, sizeof(*input));
	if (!input) {
		out_of_memory(b);
		return -1;
	}
	if (node->ninputs)
		memcpy(input, node->input, (size_t)node->ninputs * sizeof(*input));
	node->input = input;
	if (!add_params(b, node))
		return -1;
	b->nodes[b->nnodes] = *node;
	return b->nnodes++;
}

int rfl_net_as_module(struct rfl_net_builder *b, int x, const char *name)
{
	const char *path;

	if (!rfl_net__is_tensor(b, x))
		return -1;
	path = join(b, b->scope[b->depth], name);
	if (!path)
		return -1;
	b->nodes[x].functional = false;
	b->nodes[x].name = path;
	return x;
}

int rfl_net_as_function(struct rfl_net_builder *b, int x)
{
	if (!rfl_net__is_tensor(b, x))
		return -1;
	b->nodes[x].functional = true;
	return x;
}

int rfl_net_in_place(struct rfl_net_builder *b, int x)
{
	if (!rfl_net__is_tensor(b, x))
		return -1;
	b->nodes[x].inplace = true;
	return x;
}

/* How many parameters these nodes own; -1 where one of them is no node, or borrows. */
static int owned(const struct rfl_net_builder *b, const int *nodes, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		if (!rfl_net__is_tensor(b, nodes[i]) || b->nodes[nodes[i]].tied)
			return -1;
		sum += b->nodes[nodes[i]].nparams;
	}
	return sum;
}

/* The slots that the nodes' parameters hold are those from `first` on; fill them in the new order.
 * A node that was named twice finds its parameters gone. */
static bool reorder(struct rfl_net_builder *b, const int *nodes, int n, int first,
		    struct rfl_param *sorted)
{
	int moved = 0;

	for (int i = 0; i < n; i++) {
		struct rfl_node *node = &b->nodes[nodes[i]];

		for (int k = 0; k < node->nparams; k++, moved++) {
			if (node->param[k] < first || b->params[node->param[k]].node != nodes[i])
				return false;
			sorted[moved] = b->params[node->param[k]];
			sorted[moved].position = (uint32_t)(first + moved);
			b->params[node->param[k]].node = -1;
			node->param[k] = first + moved;
		}
	}
	return true;
}

void rfl_net_state_dict_order(struct rfl_net_builder *b, const int *nodes, int n)
{
	int moved = rfl_net__failed(b) ? 0 : owned(b, nodes, n);
	int first = b->nparams - moved;
	struct rfl_param *sorted;

	if (rfl_net__failed(b) || moved == 0)
		return;
	if (moved < 0 || first < 0) {
		(void)rfl_net_refuse(b, "the order of parameters names a node that owns none");
		return;
	}
	sorted = rfl_alloc_array((size_t)moved, sizeof(*sorted));
	if (!sorted) {
		out_of_memory(b);
		return;
	}
	if (reorder(b, nodes, n, first, sorted))
		memcpy(b->params + first, sorted, (size_t)moved * sizeof(*sorted));
	else
		(void)rfl_net_refuse(b, "only the last parameters can be put in order, each once");
	for (int i = 0; b->ties && i < b->nnodes; i++) /* who borrows a parameter follows it */
		if (b->nodes[i].tied)
			b->nodes[i].param[0] = b->nodes[b->nodes[i].tied].param[0];
	free(sorted);
}

/* Hand the arrays and the arena over. */
static enum rfl_rc hand_over(struct rfl_net_builder *b, int output, struct rfl_net **ret,
			     struct rfl_err *err)
{
	struct rfl_net *net = rfl_arena_array(b->arena, 1, sizeof(*net));

	/* no net has NULL for its parameters */
	if (!net || rfl_grow(&b->params, &b->param_cap, 1, MAX_ITEMS, NULL) != RFL_OK)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", b->label);
	*net = (struct rfl_net){
		.model = b->model,
		.family = b->family,
		.title = b->title,
		.nnodes = b->nnodes,
		.nodes = b->nodes,
		.nparams = b->nparams,
		.params = b->params,
		.output = output,
		.classes = b->nodes[output].shape.dim[b->nodes[output].shape.ndim - 1],
		.nblocks = b->nblocks,
		.loss = b->loss,
		.arena = b->arena,
	};
	b->arena = NULL;
	b->nodes = NULL;
	b->params = NULL;
	*ret = net;
	return RFL_OK;
}

enum rfl_rc rfl_net_finish(struct rfl_net_builder *take_b, int output, struct rfl_net **ret,
			   struct rfl_err *err)
{
	enum rfl_rc rc;
	char text[160];

	if (!take_b)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for a network");
	if (rfl_net__failed(take_b))
		rc = rfl_fail(err, take_b->err.rc, take_b->err.native, "%s", take_b->err.msg);
	else if (!rfl_net__is_tensor(take_b, output))
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: the output is not a tensor", take_b->label);
	else if (take_b->nodes[output].batchless || take_b->nodes[output].shape.ndim < 1 ||
		 take_b->nodes[output].shape.ndim > 2)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: the output is %s per sample; logits are {classes} or {rows, "
			      "classes}",
			      take_b->label,
			      rfl_shape_text(&take_b->nodes[output].shape, text, sizeof(text)));
	else
		rc = hand_over(take_b, output, ret, err);
	rfl_net_builder_free(take_b);
	return rc;
}
