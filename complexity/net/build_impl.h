/*
 * build_impl.h - between the builder (net/build.c: names, nodes, failure; net/build_params.c:
 * parameters) and the calls that write one operation down (net/build_ops.c).
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
	const char *label;      /**< what messages begin with: the model */
	struct rfl_node *nodes; /**< heap; the finished net takes them over, and the params */
	int nnodes, node_cap;
	struct rfl_param *params;
	int nparams, param_cap;
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

/** Fail with RFL_EINVAL, unless the builder has failed already. @return -1 */
int rfl_net__refuse(struct rfl_net_builder *b, const char *why);

/** Fail with RFL_ENOMEM, unless the builder has failed already. */
void rfl_net__out_of_memory(struct rfl_net_builder *b);

/**
 * An array that has room for one more item than the `used` it has: the same one, or twice as large.
 * @return the array, or NULL when the builder has failed: then `items` is as it was
 */
void *rfl_net__grown(struct rfl_net_builder *b, void *items, int used, int *cap, size_t size);

/** "layer1.0" and "conv1" in one string of the arena, "layer1.0.conv1"; either may be empty. NULL
 * when the builder has failed. */
const char *rfl_net__path(struct rfl_net_builder *b, const char *scope, const char *name);

/** Create the parameters of a node that is about to be appended, or borrow the one it is tied to.
 * False when the builder has failed. */
bool rfl_net__add_params(struct rfl_net_builder *b, struct rfl_node *node);

/** Messages begin with this in place of the model's name: "my.json: /nodes/3". Borrowed until the
 * next call. */
void rfl_net__label(struct rfl_net_builder *b, const char *label);

/** The first failure; its rc is RFL_OK while there is none. */
const struct rfl_err *rfl_net__failure(const struct rfl_net_builder *b);

/** The parameter that a weight tied to this node uses; no dimensions where there is none. */
struct rfl_shape rfl_net__first_param(const struct rfl_net_builder *b, int owner);

#endif
