/*
 * build_params.c - the builder's parameters: created with the operation that owns them,
 * borrowed by a tied weight, and put into the order of the state_dict.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/net/build.h"
#include "complexity/net/build_impl.h"
#include "complexity/op.h"

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

static bool add_param(struct rfl_net_builder *b, struct rfl_node *node,
		      const struct rfl_op_param *from)
{
	struct rfl_param *params =
		rfl_net__grown(b, b->params, b->nparams, &b->param_cap, sizeof(*b->params));
	struct rfl_param p = {
		.name = params ? rfl_net__path(b, node->name, from->suffix) : NULL,
		.kind = from->kind,
		.ndim = from->ndim,
		.position = (uint32_t)b->nparams,
		.node = b->nnodes,
	};

	if (!params)
		return false;
	b->params = params;
	memcpy(p.dim, from->dim, sizeof(p.dim));
	if (!p.name || !add_elements(b, &p))
		return false;
	b->params[b->nparams] = p;
	node->param[node->nparams++] = b->nparams++;
	return true;
}

static bool borrow(struct rfl_net_builder *b, struct rfl_node *node)
{
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

bool rfl_net__add_params(struct rfl_net_builder *b, struct rfl_node *node)
{
	_Static_assert(RFL_ARRAY_LEN(node->param) == RFL_OP_MAX_PARAMS, "a node holds them all");
	const struct rfl_op_info *op = rfl_op_info_of(node->op);
	struct rfl_op_param params[RFL_OP_MAX_PARAMS] = { 0 };
	int n;

	if (node->tied)
		return borrow(b, node);
	n = op->params ? op->params(node, params) : 0;
	for (int i = 0; i < n; i++)
		if (!add_param(b, node, &params[i]))
			return false;
	return true;
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
		(void)rfl_net__refuse(b, "the order of parameters names a node that owns none");
		return;
	}
	sorted = rfl_alloc_array((size_t)moved, sizeof(*sorted));
	if (!sorted) {
		rfl_net__out_of_memory(b);
		return;
	}
	if (reorder(b, nodes, n, first, sorted))
		memcpy(b->params + first, sorted, (size_t)moved * sizeof(*sorted));
	else
		(void)rfl_net__refuse(b, "only the last parameters can be put in order, each once");
	for (int i = 0; b->ties && i < b->nnodes; i++) /* who borrows a parameter follows it */
		if (b->nodes[i].tied)
			b->nodes[i].param[0] = b->nodes[b->nodes[i].tied].param[0];
	free(sorted);
}
