/*
 * build_impl.h - between the builder (net/build.c), the calls that write one operation down
 * (net/build_ops.c) and files (net/file.c).
 */
#ifndef RFL_COMPLEXITY_NET_BUILD_IMPL_H
#define RFL_COMPLEXITY_NET_BUILD_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"
#include "complexity/net/build.h"

/** Blocks within blocks; the deepest of the zoo (MaxViT) has 5. */
#define RFL_NET_MAX_DEPTH 8

struct rfl_net_builder {
	struct rfl_arena *arena; /**< names and lists of inputs; the finished net takes it over */
	const char *model, *family, *title;
	/** What messages begin with: the model, or the place in a file, "my.json: /nodes/3". */
	const char *label;
	struct rfl_node *nodes; /**< heap; the finished net takes them over, and the params */
	struct rfl_param *params;
	int nnodes, nparams;
	size_t node_cap, param_cap;
	int64_t param_elements;
	const char *scope[RFL_NET_MAX_DEPTH]; /**< full paths; scope[depth] is the current one */
	int depth;
	int nblocks;
	int nfunctions;
	bool in_block, in_auxiliary, in_function;
	bool ties; /**< some node borrows a parameter */
	enum rfl_loss loss;
	double eps, momentum; /**< of the batch norms that follow */
	struct rfl_err err;   /**< sticky: rc other than RFL_OK ends all building */
};

bool rfl_net__failed(const struct rfl_net_builder *b);

/** Whether x is a node of a builder that has not failed. */
bool rfl_net__is_tensor(const struct rfl_net_builder *b, int x);

/**
 * Append a node whose operation, attributes and inputs are set; shape and parameters follow.
 * @param name  within the block; NULL: a functional step
 * @return its index, -1 when the builder has failed
 */
int rfl_net__append(struct rfl_net_builder *b, struct rfl_node *node, const char *name);

/** The parameter that a weight tied to this node uses; no dimensions where there is none. */
struct rfl_shape rfl_net__first_param(const struct rfl_net_builder *b, int owner);

#endif
