/*
 * build.c - queries on a finished network, and the builder. The builder keeps nodes and parameters
 * in growing arrays and names in the arena of the future net; its first failure is sticky.
 */
#include "complexity/net/build.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/op.h"

bool rfl_param_is_buffer(enum rfl_param_kind kind)
{
	return kind == RFL_PARAM_RUNNING_MEAN || kind == RFL_PARAM_RUNNING_VAR;
}

static int64_t count_elements(const struct rfl_net *net, bool buffers)
{
	int64_t sum = 0;

	/* The builder has checked that the sum over all parameters fits. */
	for (int i = 0; i < net->nparams; i++)
		if (rfl_param_is_buffer(net->params[i].kind) == buffers)
			sum += net->params[i].numel;
	return sum;
}

int64_t rfl_net_param_count(const struct rfl_net *net)
{
	return count_elements(net, false);
}

int64_t rfl_node_param_count(const struct rfl_net *net, const struct rfl_node *node)
{
	int64_t sum = 0;

	for (int i = 0; i < node->nparams; i++)
		if (!node->tied && !rfl_param_is_buffer(net->params[node->param[i]].kind))
			sum += net->params[node->param[i]].numel;
	return sum;
}

int64_t rfl_net_buffer_count(const struct rfl_net *net)
{
	return count_elements(net, true);
}

int64_t rfl_shape_numel(const struct rfl_shape *shape)
{
	int64_t numel = 1;

	for (int i = 0; i < shape->ndim; i++)
		numel *= shape->dim[i];
	return numel;
}

bool rfl_shape_fits(const struct rfl_shape *shape)
{
	int64_t numel = 1;

	for (int i = 0; i < shape->ndim; i++)
		if (shape->dim[i] < 1 || !rfl_num_mul(numel, shape->dim[i], &numel))
			return false;
	return true;
}

char *rfl_shape_text(const struct rfl_shape *shape, char *out, size_t out_size)
{
	size_t used = 0;

	if (out_size > 0)
		out[0] = '\0';
	for (int i = 0; i < shape->ndim && used < out_size; i++) {
		int n = snprintf(out + used, out_size - used, "%s%lld", i ? "x" : "",
				 (long long)shape->dim[i]);

		if (n < 0)
			break;
		used += (size_t)n;
	}
	return out;
}

void rfl_net_free(struct rfl_net *net)
{
	if (!net)
		return;
	free(net->nodes);
	free(net->params);
	rfl_arena_free(net->arena); /* the net itself is in the arena */
}

/* --- the builder --- */

struct rfl_net_builder *rfl_net_builder_new(const char *model, const char *family)
{
	struct rfl_net_builder *b = rfl_alloc_array(1, sizeof(*b));

	b->eps = 1e-5;
	b->momentum = 0.1;
	b->scope[0] = "";
	b->arena = rfl_arena_new();
	b->model = b->label = rfl_arena_strdup(b->arena, model);
	b->family = rfl_arena_strdup(b->arena, family);
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

bool rfl_net_is_tensor(const struct rfl_net_builder *b, int x)
{
	return !failed(b) && x >= 0 && x < b->nnodes;
}

int rfl_net_refuse(struct rfl_net_builder *b, const char *fmt, ...)
{
	char why[160] = "";
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (!failed(b))
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: %s%s%s", b->label, b->scope[b->depth],
			       *b->scope[b->depth] ? ": " : "", why);
	return -1;
}

/* Join "layer1.0" and "conv1" to "layer1.0.conv1"; either may be empty. */
static const char *join(struct rfl_net_builder *b, const char *scope, const char *name)
{
	const size_t outer = strlen(scope), dot = outer > 0 && *name;
	char *path = rfl_arena_array(b->arena, outer + dot + strlen(name) + 1, 1);

	memcpy(path, scope, outer);
	if (dot)
		path[outer] = '.';
	memcpy(path + outer + dot, name, strlen(name)); /* the arena is zeroed */
	return path;
}

static void enter(struct rfl_net_builder *b, const char *fmt, va_list ap)
{
	const char *outer = b->scope[b->depth];
	char part[128];
	int n;

	if (failed(b))
		return;
	n = vsnprintf(part, sizeof(part), fmt, ap);
	if (b->depth + 1 >= RFL_NET_MAX_DEPTH)
		(void)rfl_net_refuse(b, "blocks are nested too deeply; use at most %d levels",
				     RFL_NET_MAX_DEPTH - 1);
	else if (n < 0 || (size_t)n >= sizeof(part))
		(void)rfl_net_refuse(b, "a block's name is too long; use at most %zu bytes",
				     sizeof(part) - 1);
	else
		b->scope[++b->depth] = join(b, outer, part);
	b->number[b->depth] = 0;
}

void rfl_net_enter(struct rfl_net_builder *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	enter(b, fmt, ap);
	va_end(ap);
}

void rfl_net_enter_block(struct rfl_net_builder *b, const char *fmt, ...)
{
	va_list ap;

	assert(!b->in_block); /* repeated blocks do not nest */
	va_start(ap, fmt);
	enter(b, fmt, ap);
	va_end(ap);
	b->in_block = true;
	b->block_depth = b->depth;
	b->nblocks++;
}

void rfl_net_leave(struct rfl_net_builder *b)
{
	if (b->depth == b->block_depth)
		b->in_block = false;
	if (b->depth > 0)
		b->depth--;
}

struct rfl_shape rfl_net_shape(const struct rfl_net_builder *b, int x)
{
	static const struct rfl_shape none;

	return rfl_net_is_tensor(b, x) ? b->nodes[x].shape : none;
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

void rfl_net_infer_attrs(const struct rfl_net_builder *b, struct rfl_node *node)
{
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	struct rfl_shape in = { 0 };

	if (node->ninputs > 0)
		in = rfl_net_shape(b, node->input[0]);
	/* channels are the first dimension of an image, features the last dimension of a token */
	for (size_t i = 0; i < op->nattrs && in.ndim > 0; i++)
		if (op->attrs[i].inferred)
			*(int64_t *)((char *)node + op->attrs[i].offset) =
				in.dim[strstr(op->attrs[i].name, "channels") ? 0 : in.ndim - 1];
}

static enum rfl_rc infer(struct rfl_net_builder *b, struct rfl_node *node)
{
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	struct rfl_shape in[RFL_NET_MAX_INPUTS]; /* ninputs elements are set */
	struct rfl_op_shapes shapes = { node, in, &node->shape, &b->err, .ntexts = 0 };
	char text[160];
	enum rfl_rc rc;

	node->batchless = node->op != RFL_OP_INPUT;
	for (int i = 0; i < node->ninputs; i++) {
		if (!rfl_net_is_tensor(b, node->input[i]))
			return rfl_fail(&b->err, RFL_EINVAL, 0,
					"input %d is not a tensor; build it first", i);
		in[i] = b->nodes[node->input[i]].shape;
		node->batchless &= b->nodes[node->input[i]].batchless;
	}
	if (op->min_dims &&
	    (in[0].ndim < op->min_dims || (op->max_dims && in[0].ndim > op->max_dims)))
		return rfl_fail(&b->err, RFL_EINVAL, 0, "needs %s, got %s", op->needs,
				in[0].ndim ? rfl_shape_text(&in[0], text, sizeof(text))
					   : "a single number");
	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *attr = &op->attrs[i];
		const int64_t *value = (const void *)((const char *)node + attr->offset);

		if (attr->type == RFL_ATTR_INT && *value < attr->min)
			return rfl_fail(&b->err, RFL_EINVAL, 0, "%s %lld must be at least %lld",
					attr->name, (long long)*value, (long long)attr->min);
	}
	rc = op->infer(&shapes);
	for (int i = 0; i < node->shape.ndim && rc == RFL_OK; i++)
		if (node->shape.dim[i] < 1)
			rc = rfl_fail(&b->err, RFL_EINVAL, 0,
				      "dimension %d is %lld; it must be at least 1", i,
				      (long long)node->shape.dim[i]);
	if (rc == RFL_OK && !rfl_shape_fits(&node->shape))
		rc = rfl_fail(&b->err, RFL_EOVERFLOW, 0, "output %s exceeds 63 bits",
			      rfl_shape_text(&node->shape, text, sizeof(text)));
	return rc;
}

struct rfl_shape rfl_net_first_param(const struct rfl_net_builder *b, int owner)
{
	struct rfl_shape shape = { 0 };
	const struct rfl_param *p;

	if (!rfl_net_is_tensor(b, owner) || b->nodes[owner].nparams < 1)
		return shape;
	p = &b->params[b->nodes[owner].param[0]];
	shape.ndim = p->ndim;
	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	return shape;
}

/* Add the parameters of a node that is about to be appended, or refer to the one it borrows. */
static enum rfl_rc add_params(struct rfl_net_builder *b, struct rfl_node *node)
{
	_Static_assert(RFL_ARRAY_LEN(node->param) == RFL_OP_MAX_PARAMS,
		       "a node must hold all its parameters");
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	struct rfl_op_param from[RFL_OP_MAX_PARAMS] = { 0 };
	int n;

	if (node->tied) {
		if (!rfl_net_is_tensor(b, node->tied) || b->nodes[node->tied].nparams < 1)
			return rfl_fail(&b->err, RFL_EINVAL, 0,
					"%s: %s is tied to a node without parameters", b->label,
					node->name);
		node->param[node->nparams++] = b->nodes[node->tied].param[0];
		return RFL_OK;
	}
	n = op->params ? op->params(node, from) : 0;
	for (int i = 0; i < n; i++) {
		struct rfl_param p = {
			.name = join(b, node->name, from[i].suffix),
			.kind = from[i].kind,
			.ndim = from[i].shape.ndim,
			.position = (uint32_t)b->nparams,
			.node = b->nnodes,
		};

		memcpy(p.dim, from[i].shape.dim, sizeof(p.dim));
		if (!rfl_shape_fits(&from[i].shape))
			return rfl_fail(&b->err, RFL_EOVERFLOW, 0, "%s: %s exceeds 63 bits",
					b->label, p.name);
		p.numel = rfl_shape_numel(&from[i].shape);
		if (!rfl_num_add(b->param_elements, p.numel, &b->param_elements))
			return rfl_fail(&b->err, RFL_EOVERFLOW, 0,
					"%s: %s brings the sum of parameters above 63 bits",
					b->label, p.name);
		rfl_reserve(&b->params, &b->param_cap, (size_t)b->nparams + 1);
		b->params[b->nparams] = p;
		node->param[node->nparams++] = b->nparams++;
	}
	return RFL_OK;
}

int rfl_net_append(struct rfl_net_builder *b, const struct rfl_node *from, const char *name)
{
	const char *scope = b->nnodes ? b->scope[b->depth] : ""; /* the input is in no block */
	const bool outside = rfl_op_info_of(from->op)->arity == RFL_OP_NO_INPUTS;
	struct rfl_node *node;
	int *input;

	if (failed(b))
		return -1;
	rfl_reserve(&b->nodes, &b->node_cap, (size_t)b->nnodes + 1);
	node = &b->nodes[b->nnodes];
	*node = *from;
	node->functional = node->functional || !name || outside;
	node->block = b->in_block ? b->nblocks : 0;
	node->function = b->in_function ? b->nfunctions : 0;
	node->auxiliary = b->in_auxiliary;
	node->name = name ? join(b, scope, name) : scope;
	rfl_net_infer_attrs(b, node);
	if (infer(b, node) != RFL_OK) { /* "layer4.0.conv1 (Conv2d)" for messages */
		rfl_err_prefix(&b->err, "%s: %s (%s)", b->label,
			       *node->name ? node->name : "top level",
			       rfl_op_info_of(node->op)->module);
		return -1;
	}
	/* the caller's list is temporary */
	input = rfl_arena_array(b->arena, (size_t)node->ninputs + 1, sizeof(*input));
	if (node->ninputs)
		memcpy(input, node->input, (size_t)node->ninputs * sizeof(*input));
	node->input = input;
	return add_params(b, node) == RFL_OK ? b->nnodes++ : -1;
}

int rfl_net_chain(struct rfl_net_builder *b, int x, const struct rfl_node *layers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct rfl_node node = layers[i];
		char number[16];

		if (node.op == RFL_OP_INPUT)
			continue;
		node.ninputs = 1;
		node.input = &x;
		if (node.op == RFL_OP_BATCH_NORM)
			node.attr.batch_norm =
				(struct rfl_batch_norm){ .eps = b->eps, .momentum = b->momentum };
		if (node.name && strcmp(node.name, "#") == 0) {
			(void)snprintf(number, sizeof(number), "%d", b->number[b->depth]++);
			node.name = number;
		}
		x = rfl_net_append(b, &node, node.name);
	}
	return x;
}

void rfl_net_state_dict_order(struct rfl_net_builder *b, const int *nodes, int n)
{
	struct rfl_param *sorted;
	int first = b->nparams, filled = 0;

	for (int i = 0; i < n; i++) {
		if (!rfl_net_is_tensor(b, nodes[i]) || b->nodes[nodes[i]].tied) {
			(void)rfl_net_refuse(
				b,
				"the parameter order names a node without parameters of its own");
			return;
		}
		first -= b->nodes[nodes[i]].nparams;
	}
	sorted = rfl_arena_array(b->arena, (size_t)(b->nparams - first) + 1, sizeof(*sorted));
	/* These parameters occupy the slots from `first` on and are put there in the new order. The
	 * second time a node is listed, its parameters have already been moved. */
	for (int i = 0; i < n; i++) {
		struct rfl_node *node = &b->nodes[nodes[i]];

		for (int k = 0; k < node->nparams; k++, filled++) {
			if (first < 0 || node->param[k] < first ||
			    b->params[node->param[k]].node != nodes[i]) {
				(void)rfl_net_refuse(b, "only the latest parameters can be "
							"reordered, each only once");
				return;
			}
			sorted[filled] = b->params[node->param[k]];
			sorted[filled].position = (uint32_t)(first + filled);
			b->params[node->param[k]].node = -1;
			node->param[k] = first + filled;
		}
	}
	if (filled > 0)
		memcpy(b->params + first, sorted, (size_t)filled * sizeof(*sorted));
	for (int i = 0; i < b->nnodes; i++) /* a borrowed parameter may have moved */
		if (b->nodes[i].tied)
			b->nodes[i].param[0] = b->nodes[b->nodes[i].tied].param[0];
}

enum rfl_rc rfl_net_finish(struct rfl_net_builder *take_b, int output, struct rfl_net **ret,
			   struct rfl_err *err)
{
	struct rfl_net_builder *b = take_b;
	const struct rfl_shape shape = rfl_net_shape(b, output);
	struct rfl_net *net;
	char text[160];
	enum rfl_rc rc;

	if (!failed(b) && !rfl_net_is_tensor(b, output))
		(void)rfl_fail(&b->err, RFL_EINVAL, 0, "%s: the output is not a tensor", b->label);
	else if (!failed(b) && (b->nodes[output].batchless || shape.ndim < 1 || shape.ndim > 2))
		(void)rfl_fail(&b->err, RFL_EINVAL, 0,
			       "%s: the output is %s per sample; logits must be {classes} or "
			       "{rows, classes}",
			       b->label, rfl_shape_text(&shape, text, sizeof(text)));
	if (failed(b)) {
		rc = rfl_err_pass(err, &b->err);
		rfl_net_builder_free(b);
		return rc;
	}
	net = rfl_arena_array(b->arena, 1, sizeof(*net));
	rfl_reserve(&b->params, &b->param_cap, 1); /* not NULL, even if empty */
	*net = (struct rfl_net){
		.model = b->model,
		.family = b->family,
		.title = rfl_arena_strdup(b->arena, b->title),
		.nnodes = b->nnodes,
		.nodes = b->nodes,
		.nparams = b->nparams,
		.params = b->params,
		.output = output,
		.classes = shape.dim[shape.ndim - 1],
		.nblocks = b->nblocks,
		.loss = b->loss,
		.arena = b->arena,
	};
	while (net->ninputs < net->nnodes && net->nodes[net->ninputs].op == RFL_OP_INPUT)
		net->ninputs++;
	b->arena = NULL; /* now owned by the net */
	b->nodes = NULL;
	b->params = NULL;
	rfl_net_builder_free(b);
	*ret = net;
	return RFL_OK;
}

int rfl_net_add_input(struct rfl_net_builder *b, const char *name, enum rfl_dtype dtype,
		      const struct rfl_shape *shape)
{
	const bool several = dtype == RFL_DTYPE_F32 && shape->ndim == 2;

	if (b->nnodes > 0 && !(several && b->nodes[b->nnodes - 1].op == RFL_OP_INPUT))
		return rfl_net_refuse(b, "the input%s must come first", several ? "s" : "");
	return rfl_net_append(
		b, &(struct rfl_node){ .op = RFL_OP_INPUT, .dtype = dtype, .shape = *shape }, name);
}

int rfl_concat(struct rfl_net_builder *b, const int *xs, int n, int64_t dim)
{
	if (n < 1 || n > RFL_NET_MAX_INPUTS)
		return rfl_net_refuse(b, "a concatenation needs 1 to %d tensors, not %d",
				      RFL_NET_MAX_INPUTS, n);
	return rfl_net_append(
		b,
		&(struct rfl_node){
			.op = RFL_OP_CONCAT, .ninputs = n, .input = xs, .attr.concat.dim = dim },
		NULL);
}
