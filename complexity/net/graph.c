/*
 * graph.c - a finished network: what can be asked of it. It is built in net/build.c.
 */
#include "complexity/net.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/num.h"

const char *rfl_param_kind_name(enum rfl_param_kind kind)
{
	static const char *const names[RFL_PARAM_KIND_COUNT] = {
		[RFL_PARAM_CONV_WEIGHT] = "conv.weight",
		[RFL_PARAM_CONV_BIAS] = "conv.bias",
		[RFL_PARAM_LINEAR_WEIGHT] = "linear.weight",
		[RFL_PARAM_LINEAR_BIAS] = "linear.bias",
		[RFL_PARAM_NORM_WEIGHT] = "norm.weight",
		[RFL_PARAM_NORM_BIAS] = "norm.bias",
		[RFL_PARAM_RUNNING_MEAN] = "running_mean",
		[RFL_PARAM_RUNNING_VAR] = "running_var",
		[RFL_PARAM_EMBEDDING_WEIGHT] = "embedding.weight",
		[RFL_PARAM_OTHER] = "other",
	};

	return (unsigned)kind < RFL_PARAM_KIND_COUNT ? names[kind] : "unknown";
}

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
	rfl_arena_free(net->arena); /* the net itself goes with it */
}
