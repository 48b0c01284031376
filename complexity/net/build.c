/*
 * build.c - the builder: nodes in a growing array, names in the arena that the finished net
 * will own, one sticky failure. Parameters are created in net/build_params.c.
 */
#include "complexity/net/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/net/build_impl.h"
#include "complexity/op.h"

enum {
	MAX_ITEMS = 1 << 20, /* nodes, or parameters: far above any network, far below INT_MAX */
	FIRST_ITEMS = 64,    /* room that an array begins with */
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

int rfl_net__refuse(struct rfl_net_builder *b, const char *why)
{
	if (!rfl_net__failed(b))
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: %s%s%s", b->label, b->scope[b->depth],
			       *b->scope[b->depth] ? ": " : "", why);
	return -1;
}

int rfl_net_refuse(struct rfl_net_builder *b, const char *fmt, ...)
{
	char why[160] = "";
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return rfl_net__refuse(b, why);
}

void rfl_net__label(struct rfl_net_builder *b, const char *label)
{
	b->label = label;
}

const struct rfl_err *rfl_net__failure(const struct rfl_net_builder *b)
{
	return &b->err;
}

void rfl_net__out_of_memory(struct rfl_net_builder *b)
{
	(void)rfl_fail(&b->err, RFL_ENOMEM, 0, "%s: out of memory", b->label);
}

void rfl_net_title(struct rfl_net_builder *b, const char *title)
{
	if (rfl_net__failed(b))
		return;
	b->title = rfl_arena_strdup(b->arena, title);
	if (!b->title)
		rfl_net__out_of_memory(b);
}

void *rfl_net__grown(struct rfl_net_builder *b, void *items, int used, int *cap, size_t size)
{
	int more = *cap ? *cap * 2 : FIRST_ITEMS;
	void *p;

	if (used < *cap)
		return items;
	if (more > MAX_ITEMS) {
		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0, "%s: more than %d nodes or parameters",
			       b->label, MAX_ITEMS);
		return NULL;
	}
	p = realloc(items, (size_t)more * size);
	if (p)
		*cap = more;
	else
		rfl_net__out_of_memory(b);
	return p;
}

const char *rfl_net__path(struct rfl_net_builder *b, const char *scope, const char *name)
{
	size_t outer = strlen(scope), inner = strlen(name);
	size_t dot = outer > 0 && inner > 0;
	char *path = rfl_arena_array(b->arena, outer + dot + inner + 1, 1);

	if (!path) {
		rfl_net__out_of_memory(b);
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
	path = rfl_net__path(b, b->scope[b->depth], part);
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
		(void)rfl_net__refuse(b, "repeated blocks do not nest");
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
		(void)rfl_net__refuse(b, "functions do not nest");
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

/* "layer4.0.conv1 (Conv2d)" for messages. */
static void fail_at(struct rfl_net_builder *b, const struct rfl_node *node)
{
	rfl_err_prefix(&b->err, "%s: %s (%s)", b->label, *node->name ? node->name : "top level",
		       rfl_op_info_of(node->op)->module);
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

/* The caller's list goes out of scope. */
static bool keep_inputs(struct rfl_net_builder *b, struct rfl_node *node)
{
	int *input;

	if (node->ninputs == 0)
		return true;
	input = rfl_arena_array(b->arena, (size_t)node->ninputs, sizeof(*input));
	if (!input) {
		rfl_net__out_of_memory(b);
		return false;
	}
	memcpy(input, node->input, (size_t)node->ninputs * sizeof(*input));
	node->input = input;
	return true;
}

int rfl_net__append(struct rfl_net_builder *b, struct rfl_node *node, const char *name)
{
	const char *scope = b->nnodes ? b->scope[b->depth] : ""; /* the input is in no block */
	struct rfl_node *nodes;

	if (rfl_net__failed(b))
		return -1;
	nodes = rfl_net__grown(b, b->nodes, b->nnodes, &b->node_cap, sizeof(*b->nodes));
	if (!nodes)
		return -1;
	b->nodes = nodes;
	node->functional = node->functional || !name;
	node->block = b->in_block ? b->nblocks : 0;
	node->function = b->in_function ? b->nfunctions : 0;
	node->auxiliary = b->in_auxiliary;
	node->name = name ? rfl_net__path(b, scope, name) : scope;
	if (!node->name)
		return -1;
	if (!infer(b, node)) {
		fail_at(b, node);
		return -1;
	}
	if (!keep_inputs(b, node) || !rfl_net__add_params(b, node))
		return -1;
	b->nodes[b->nnodes] = *node;
	return b->nnodes++;
}

int rfl_net_as_module(struct rfl_net_builder *b, int x, const char *name)
{
	const char *path;

	if (!rfl_net__is_tensor(b, x))
		return -1;
	path = rfl_net__path(b, b->scope[b->depth], name);
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

/* Let go of the room that an array has left; one without items keeps room for one, so that no net
 * has a NULL in its place. */
static void *trimmed(struct rfl_net_builder *b, void *items, int n, int *cap, size_t size)
{
	void *p = realloc(items, (n ? (size_t)n : 1) * size);

	if (p)
		*cap = n;
	else
		rfl_net__out_of_memory(b);
	return p;
}

/* Hand the arrays and the arena over. */
static enum rfl_rc hand_over(struct rfl_net_builder *b, int output, struct rfl_net **ret,
			     struct rfl_err *err)
{
	struct rfl_net *net = rfl_arena_array(b->arena, 1, sizeof(*net));
	struct rfl_node *nodes = trimmed(b, b->nodes, b->nnodes, &b->node_cap, sizeof(*b->nodes));
	struct rfl_param *params =
		trimmed(b, b->params, b->nparams, &b->param_cap, sizeof(*b->params));

	b->nodes = nodes ? nodes : b->nodes;
	b->params = params ? params : b->params;
	if (!net || !nodes || !params)
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
