/*
 * causal.h - what the products of attention share: which shapes go together, how many pairs of a
 * query and a key a causal mask leaves.
 */
#ifndef RFL_COMPLEXITY_OP_CAUSAL_H
#define RFL_COMPLEXITY_OP_CAUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "complexity/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether two tensors of {.., rows, columns} have the same dimensions in front. */
bool rfl_shape_same_leading(const struct rfl_shape *a, const struct rfl_shape *b);

/** Pairs in which query i, counted from 0, sees the keys up to i: T (T + 1) / 2 when there are as
 * many keys as queries. */
int64_t rfl_causal_pairs(struct rfl_cost_context *c, int64_t queries, int64_t keys);

#ifdef __cplusplus
}
#endif
#endif
