/*
 * net_build.c - the builder: nodes and parameters in growing arrays, names in the arena that the
 * finished net will own, one sticky failure.
 */
#include "complexity/net_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/net_build_impl.h"
#include "complexity/op.h"

enum {
	MAX_NODES = 1 << 20, /* and parameters: far above any network, far below what int holds */
	MAX_DEPTH = 8,
	ARENA_MAX = 1 << 30,
};

struct rfl_net_builder {
	struct rfl_arena *arena;
	const char *model, *family, *title;
	const char *label; /* what messages begin with: the model */
	struct rfl_node *nodes;
	int nnodes, node_cap;
	struct rfl_param *params;
	int nparams, param_cap;
	int64_t param_elements;
	const char *scope[MAX_DEPTH]; /* full paths; scope[depth] is the current one */
	int depth;
	int nblocks;
	int nfunctions;
	bool in_block, in_auxiliary, in_function;
	bool ties; /* some node borrows a parameter */
	enum rfl_loss loss;
	double eps, momentum;
	struct rfl_err err; /* sticky: rc other than RFL_OK ends all building */
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

static bool failed(const struct rfl_net_builder *b)
{
	return b->err.rc != RFL_OK;
}

int rfl_net__refuse(struct rfl_net_builder *b, const char *why)
{
	if (!failed(b))
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: %s", b->label, why);
	return -1;
}

int rfl_net_refuse(struct rfl_net_builder *b, const char *fmt, ...)
{
	char why[160];
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

int rfl_net__count(const struct rfl_net_builder *b)
{
	return b->nnodes;
}

static void out_of_memory(struct rfl_net_builder *b)
{
	(void)rfl_fail(&b->err, RFL_ENOMEM, 0, "%s: out of memory", b->label);
}

void rfl_net_title(struct rfl_net_builder *b, const char *title)
{
	if (failed(b))
		return;
	b->title = rfl_arena_strdup(b->arena, title);
	if (!b->title)
		out_of_memory(b);
}

/* Make room for one more item of an array that doubles. */
static bool grow(struct rfl_net_builder *b, void **items, int used, int *cap, size_t size)
{
	int more = *cap ? *cap * 2 : 64;
	void *p;

	if (used < *cap)
		return true;
	if (more > MAX_NODES) {
		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0, "%s: more than %d nodes or parameters",
			       b->label, MAX_NODES);
		return false;
	}
	p = realloc(*items, (size_t)more * size);
	if (!p) {
		out_of_memory(b);
		return false;
	}
	*items = p;
	*cap = more;
	return true;
}

void rfl_net_enter(struct rfl_net_builder *b, const char *fmt, ...)
{
	char part[128];
	const char *outer;
	va_list ap;
	int n;

	if (failed(b))
		return;
	if (b->depth + 1 >= MAX_DEPTH) {
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: blocks nest deeper than %d", b->label,
			       MAX_DEPTH - 1);
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
	outer = b->scope[b->depth];
	b->scope[++b->depth] = rfl_arena_printf(b->arena, "%s%s%s", outer, *outer ? "." : "", part);
	if (!b->scope[b->depth]) {
		b->scope[b->depth] = "";
		out_of_memory(b);
	}
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

	return failed(b) || x < 0 || x >= b->nnodes ? none : b->nodes[x].shape;
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

void rfl_net__batch_norm(const struct rfl_net_builder *b, struct rfl_batch_norm *norm)
{
	norm->eps = b->eps;
	norm->momentum = b->momentum;
}

struct rfl_shape rfl_net__first_param(const struct rfl_net_builder *b, int owner)
{
	struct rfl_shape shape = { 0 };
	const struct rfl_param *p;

	if (failed(b) || owner < 0 || owner >= b->nnodes || b->nodes[owner].nparams < 1)
		return shape;
	p = &b->params[b->nodes[owner].param[0]];
	shape.ndim = p->ndim;
	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	return shape;
}

int64_t rfl_net__tied_rows(const struct rfl_net_builder *b, int owner)
{
	return rfl_net__first_param(b, owner).dim[0];
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

/* Product of n dimensions, each at least 1; false when one is not or the product does not fit. */
static bool product(const int64_t *dim, int n, int64_t *ret)
{
	int64_t p = 1;

	for (int i = 0; i < n; i++)
		if (dim[i] < 1 || !rfl_num_mul(p, dim[i], &p))
			return false;
	*ret = p;
	return true;
}

static bool add_param(struct rfl_net_builder *b, struct rfl_node *node,
		      const struct rfl_op_param *from)
{
	struct rfl_param *p;

	if (!grow(b, (void **)&b->params, b->nparams, &b->param_cap, sizeof(*b->params)))
		return false;
	p = &b->params[b->nparams];
	*p = (struct rfl_param){
		.name = rfl_arena_printf(b->arena, "%s%s%s", node->name,
					 *node->name && *from->suffix ? "." : "", from->suffix),
		.kind = from->kind,
		.ndim = from->ndim,
		.position = (uint32_t)b->nparams,
		.node = b->nnodes,
	};
	if (!p->name) {
		out_of_memory(b);
		return false;
	}
	memcpy(p->dim, from->dim, sizeof(p->dim));
	if (!product(p->dim, p->ndim, &p->numel)) {
		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0, "%s: %s does not fit 63 bits", b->label,
			       p->name);
		return false;
	}
	if (!rfl_num_add(b->param_elements, p->numel, &b->param_elements)) {
		(void)rfl_fail(&b->err, RFL_EOVERFLOW, 0,
			       "%s: with %s the parameters together do not fit 63 bits", b->label,
			       p->name);
		return false;
	}
	node->param[node->nparams++] = b->nparams++;
	return true;
}

static bool add_params(struct rfl_net_builder *b, struct rfl_node *node)
{
	_Static_assert(RFL_ARRAY_LEN(node->param) == RFL_OP_MAX_PARAMS, "a node holds them all");
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	struct rfl_op_param params[RFL_OP_MAX_PARAMS] = { 0 };
	int n = op->params ? op->params(node, params) : 0;

	if (node->tied) {
		if (node->tied >= b->nnodes || b->nodes[node->tied].nparams < 1) {
			(void)rfl_fail(&b->err, RFL_EINVAL, 0,
				       "%s: %s is tied to a node that has no parameter", b->label,
				       node->name);
			return false;
		}
		node->param[node->nparams++] = b->nodes[node->tied].param[0];
		b->ties = true;
		return true;
	}
	for (int i = 0; i < n; i++)
		if (!add_param(b, node, &params[i]))
			return false;
	return true;
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
	int64_t numel;
	char text[160];

	node->batchless |= node->ninputs > 0;
	for (int i = 0; i < node->ninputs; i++) {
		if (node->input[i] < 0 || node->input[i] >= b->nnodes) {
			(void)rfl_fail(&b->err, RFL_EINVAL, 0, "input %d is not a tensor", i);
			return false;
		}
		in[i] = b->nodes[node->input[i]].shape;
		node->batchless &= b->nodes[node->input[i]].batchless;
	}
	if (rfl_op_info_of(node->op)->infer(node, in, &node->shape, &b->err) != RFL_OK)
		return false;
	if (!product(node->shape.dim, node->shape.ndim, &numel)) {
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
		out_of_memory(b);
		return false;
	}
	memcpy(input, node->input, (size_t)node->ninputs * sizeof(*input));
	node->input = input;
	return true;
}

int rfl_net__append(struct rfl_net_builder *b, struct rfl_node *node, const char *name)
{
	const char *scope = b->nnodes ? b->scope[b->depth] : ""; /* the input is in no block */

	if (failed(b) || !grow(b, (void **)&b->nodes, b->nnodes, &b->node_cap, sizeof(*b->nodes)))
		return -1;
	node->functional = node->functional || !name;
	node->block = b->in_block ? b->nblocks : 0;
	node->function = b->in_function ? b->nfunctions : 0;
	node->auxiliary = b->in_auxiliary;
	node->name = !name ? scope
			   : rfl_arena_printf(b->arena, "%s%s%s", scope, *scope ? "." : "", name);
	if (!node->name) {
		out_of_memory(b);
		return -1;
	}
	if (!infer(b, node)) {
		fail_at(b, node);
		return -1;
	}
	if (!keep_inputs(b, node) || !add_params(b, node))
		return -1;
	b->nodes[b->nnodes] = *node;
	return b->nnodes++;
}

int rfl_net_as_module(struct rfl_net_builder *b, int x, const char *name)
{
	const char *scope = b->scope[b->depth];

	if (failed(b) || x < 0 || x >= b->nnodes)
		return -1;
	b->nodes[x].functional = false;
	b->nodes[x].name = rfl_arena_printf(b->arena, "%s%s%s", scope, *scope ? "." : "", name);
	if (b->nodes[x].name)
		return x;
	out_of_memory(b);
	return -1;
}

int rfl_net_as_function(struct rfl_net_builder *b, int x)
{
	if (failed(b) || x < 0 || x >= b->nnodes)
		return -1;
	b->nodes[x].functional = true;
	return x;
}

int rfl_net_in_place(struct rfl_net_builder *b, int x)
{
	if (failed(b) || x < 0 || x >= b->nnodes)
		return -1;
	b->nodes[x].inplace = true;
	return x;
}

/* The slots that the nodes' parameters hold are the last ones; fill them in the new order. */
void rfl_net_state_dict_order(struct rfl_net_builder *b, const int *nodes, int n)
{
	struct rfl_param *sorted;
	int moved = 0, first;

	for (int i = 0; i < n && !failed(b); i++)
		moved += b->nodes[nodes[i]].nparams;
	first = b->nparams - moved;
	if (failed(b) || first < 0) {
		(void)rfl_net__refuse(b, "the order of parameters names more than there are");
		return;
	}
	sorted = rfl_alloc_array((size_t)moved + 1, sizeof(*sorted));
	if (!sorted) {
		out_of_memory(b);
		return;
	}
	moved = 0;
	for (int i = 0; i < n; i++) {
		struct rfl_node *node = &b->nodes[nodes[i]];

		for (int k = 0; k < node->nparams; k++) {
			if (node->param[k] < first) {
				(void)rfl_net__refuse(
					b, "only the last parameters can be put in order");
				break;
			}
			sorted[moved] = b->params[node->param[k]];
			sorted[moved].position = (uint32_t)(first + moved);
			node->param[k] = first + moved;
			moved++;
		}
	}
	if (!failed(b))
		memcpy(b->params + first, sorted, (size_t)moved * sizeof(*sorted));
	for (int i = 0; b->ties && i < b->nnodes; i++) /* who borrows a parameter follows it */
		if (b->nodes[i].tied)
			b->nodes[i].param[0] = b->nodes[b->nodes[i].tied].param[0];
	free(sorted);
}

/* Copy the arrays into the arena and hand it over. */
static enum rfl_rc pack(struct rfl_net_builder *b, int output, struct rfl_net **ret,
			struct rfl_err *err)
{
	struct rfl_net *net = rfl_arena_array(b->arena, 1, sizeof(*net));
	/* a net without parameters still gets an array */
	size_t nparams = b->nparams ? (size_t)b->nparams : 1;
	struct rfl_node *nodes = rfl_arena_array(b->arena, (size_t)b->nnodes, sizeof(*nodes));
	struct rfl_param *params = rfl_arena_array(b->arena, nparams, sizeof(*params));

	if (!net || !nodes || !params)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", b->label);
	memcpy(nodes, b->nodes, (size_t)b->nnodes * sizeof(*nodes));
	if (b->nparams)
		memcpy(params, b->params, (size_t)b->nparams * sizeof(*params));
	*net = (struct rfl_net){
		.model = b->model,
		.family = b->family,
		.title = b->title,
		.nnodes = b->nnodes,
		.nodes = nodes,
		.nparams = b->nparams,
		.params = params,
		.output = output,
		.classes = nodes[output].shape.dim[nodes[output].shape.ndim - 1],
		.nblocks = b->nblocks,
		.loss = b->loss,
		.arena = b->arena,
	};
	b->arena = NULL;
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
	if (failed(take_b))
		rc = rfl_fail(err, take_b->err.rc, take_b->err.native, "%s", take_b->err.msg);
	else if (output < 0 || output >= take_b->nnodes)
		rc = rfl_fail(err, RFL_EINVAL, 0, "%s: the output is not a tensor", take_b->label);
	else if (take_b->nodes[output].batchless || take_b->nodes[output].shape.ndim < 1 ||
		 take_b->nodes[output].shape.ndim > 2)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: the output is %s per sample; logits are {classes} or {rows, "
			      "classes}",
			      take_b->label,
			      rfl_shape_text(&take_b->nodes[output].shape, text, sizeof(text)));
	else
		rc = pack(take_b, output, ret, err);
	rfl_net_builder_free(take_b);
	return rc;
}
