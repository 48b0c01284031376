/*
 * net_build_impl.h - between the builder (net_build.c) and the calls that write one operation down
 * (net_build_*.c).
 */
#ifndef RFL_COMPLEXITY_NET_BUILD_IMPL_H
#define RFL_COMPLEXITY_NET_BUILD_IMPL_H

#include "complexity/net.h"
#include "complexity/net_build.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Append a node whose operation, attributes and inputs are set; shape and parameters follow.
 * @param name  within the block; NULL: a functional step
 * @return its index, -1 when the builder has failed
 */
int rfl_net__append(struct rfl_net_builder *b, struct rfl_node *node, const char *name);

/** Fail, unless the builder has failed already. @return -1 */
int rfl_net__refuse(struct rfl_net_builder *b, const char *why);

/** Messages begin with this in place of the model's name: "my.json: /nodes/3". Borrowed until the
 * next call. */
void rfl_net__label(struct rfl_net_builder *b, const char *label);

/** The first failure; its rc is RFL_OK while there is none. */
const struct rfl_err *rfl_net__failure(const struct rfl_net_builder *b);

/** Nodes so far. */
int rfl_net__count(const struct rfl_net_builder *b);

/** The parameter that a weight tied to this node uses; no dimensions where there is none. */
struct rfl_shape rfl_net__first_param(const struct rfl_net_builder *b, int owner);

/** Its first dimension: the outputs of the layer. */
int64_t rfl_net__tied_rows(const struct rfl_net_builder *b, int owner);

/** eps and momentum that batch norms have here. */
void rfl_net__batch_norm(const struct rfl_net_builder *b, struct rfl_batch_norm *norm);

#ifdef __cplusplus
}
#endif
#endif
