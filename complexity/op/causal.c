/*
 * causal.c - what the products of attention share.
 */
#include "complexity/op/causal.h"

bool rfl_shape_same_leading(const struct rfl_shape *a, const struct rfl_shape *b)
{
	if (a->ndim != b->ndim || a->ndim < 2)
		return false;
	for (int i = 0; i < a->ndim - 2; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

int64_t rfl_causal_pairs(struct rfl_cost_context *c, int64_t queries, int64_t keys)
{
	int64_t side = queries < keys ? queries : keys;
	int64_t triangle = side % 2 ? rfl_cost_mul(c, side / 2 + 1, side)
				    : rfl_cost_mul(c, side / 2, side + 1);

	return rfl_cost_add(c, triangle, rfl_cost_mul(c, queries - side, keys));
}
