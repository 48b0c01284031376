/*
 * engine_views.c - the rows of the torch engine that compute nothing: what comes from
 * outside, views, copies. Dimensions of a node do not count the batch, those of a tensor do.
 */
#include "runner/torch/engine_ops.h"

enum rfl_torch_status rfl_torch__run_parameter(struct rfl_engine *e, const struct rfl_node *node,
					       struct rfl_torch_tensor **ret)
{
	const struct rfl_torch_tensor *stored = e->param[node->param[0]];

	if (node->attr.parameter.drop == 0)
		return rfl_torch_tensor_dup(stored, ret);
	return rfl_torch_reshape(stored, node->shape.ndim, node->shape.dim, ret);
}

enum rfl_torch_status rfl_torch__run_constant(struct rfl_engine *e, const struct rfl_node *node,
					      struct rfl_torch_tensor **ret)
{
	return rfl_torch_tensor_dup(rfl_torch__table(e, node, 0), ret);
}

enum rfl_torch_status rfl_torch__run_flatten(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret)
{
	return rfl_torch_flatten(rfl_torch__input(e, node, 0),
				 node->attr.flatten.first + rfl_torch__input_lead(e, node), ret);
}

enum rfl_torch_status rfl_torch__run_reshape(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret)
{
	int64_t sizes[RFL_NET_MAX_DIMS + 1];
	const int ndim = rfl_torch__sizes(&node->shape, rfl_torch__lead(node), sizes);

	return rfl_torch_reshape(rfl_torch__input(e, node, 0), ndim, sizes, ret);
}

enum rfl_torch_status rfl_torch__run_permute(struct rfl_engine *e, const struct rfl_node *node,
					     struct rfl_torch_tensor **ret)
{
	const int lead = rfl_torch__lead(node);
	int64_t order[RFL_NET_MAX_DIMS + 1] = { 0 };

	for (int i = 0; i < node->shape.ndim; i++)
		order[lead + i] = lead + node->attr.permute.order[i];
	return rfl_torch_permute(rfl_torch__input(e, node, 0), lead + node->shape.ndim, order, ret);
}

enum rfl_torch_status rfl_torch__run_slice(struct rfl_engine *e, const struct rfl_node *node,
					   struct rfl_torch_tensor **ret)
{
	const struct rfl_slice *a = &node->attr.slice;

	return rfl_torch_slice(rfl_torch__input(e, node, 0), a->dim + rfl_torch__lead(node),
			       a->start, a->length, a->step, ret);
}

enum rfl_torch_status rfl_torch__run_contiguous(struct rfl_engine *e, const struct rfl_node *node,
						struct rfl_torch_tensor **ret)
{
	return rfl_torch_tensor_contiguous(rfl_torch__input(e, node, 0), ret);
}

enum rfl_torch_status rfl_torch__run_concat(struct rfl_engine *e, const struct rfl_node *node,
					    struct rfl_torch_tensor **ret)
{
	struct rfl_torch_tensor *parts[RFL_NET_MAX_INPUTS];

	for (int i = 0; i < node->ninputs; i++)
		parts[i] = rfl_torch__input(e, node, i);
	return rfl_torch_concat(parts, node->ninputs, node->attr.concat.dim + rfl_torch__lead(node),
				ret);
}

enum rfl_torch_status rfl_torch__run_pad(struct rfl_engine *e, const struct rfl_node *node,
					 struct rfl_torch_tensor **ret)
{
	const struct rfl_pad *a = &node->attr.padding;

	return rfl_torch_pad(rfl_torch__input(e, node, 0), a->dim + rfl_torch__lead(node), a, ret);
}

enum rfl_torch_status rfl_torch__run_roll(struct rfl_engine *e, const struct rfl_node *node,
					  struct rfl_torch_tensor **ret)
{
	const struct rfl_roll *a = &node->attr.roll;

	return rfl_torch_roll(rfl_torch__input(e, node, 0), a->dim + rfl_torch__lead(node),
			      a->shift_h, a->shift_w, ret);
}

enum rfl_torch_status rfl_torch__run_gather(struct rfl_engine *e, const struct rfl_node *node,
					    struct rfl_torch_tensor **ret)
{
	return rfl_torch_gather(rfl_torch__input(e, node, 0), rfl_torch__table(e, node, 0),
				node->shape.ndim, node->shape.dim, ret);
}
