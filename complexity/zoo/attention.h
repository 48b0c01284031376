/*
 * attention.h - what transformers of several families are made of: normalisations and softmax,
 * as one operation or written out in steps, and attention between heads.
 */
#ifndef RFL_COMPLEXITY_ZOO_ATTENTION_H
#define RFL_COMPLEXITY_ZOO_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "complexity/net/build.h"
#include "complexity/zoo.h"

/** One operation, or every elementwise step an operation of its own. */
enum rfl_zoo_form { RFL_ZOO_WHOLE, RFL_ZOO_STEPS };

/** Composed attention comes with normalisations in steps; the other settings leave them whole. */
enum rfl_zoo_form rfl_zoo_form_of(enum rfl_attention attention);

/** Nodes that own parameters, for those who put a state_dict in order. */
struct rfl_zoo_owners {
	int n, node[16];
};
void rfl_zoo_own(struct rfl_zoo_owners *owners, int node);

/**
 * (x - mean) rsqrt(variance + eps) weight + bias, over the last dimension.
 * @param owners  gets the nodes that own weight and bias; may be NULL
 */
int rfl_zoo_layer_norm(struct rfl_net_builder *b, int x, const char *name, double eps,
		       enum rfl_zoo_form form, struct rfl_zoo_owners *owners);

/**
 * x rsqrt(mean(x^2) + eps) weight, over the last dimension.
 * @param owners  gets the node that owns the weight; may be NULL
 */
int rfl_zoo_rms_norm(struct rfl_net_builder *b, int x, const char *name, double eps,
		     enum rfl_zoo_form form, struct rfl_zoo_owners *owners);

/** In steps: the maximum of each row, x - max, exp, the sum of each row, exp / sum. */
int rfl_zoo_softmax(struct rfl_net_builder *b, int x, enum rfl_zoo_form form);

/** {tokens, features} seen as {heads, tokens, features / heads}. */
int rfl_zoo_split_heads(struct rfl_net_builder *b, int x, int64_t heads);

/**
 * {heads, tokens, features} as {tokens, heads x features}.
 * @param copy  memory is in the order of the heads, so the tensor must be laid out afresh; a fused
 *              attention returns memory in the order of the tokens
 */
int rfl_zoo_merge_heads(struct rfl_net_builder *b, int x, bool copy);

struct rfl_zoo_attention_args {
	bool fused; /**< one operation; what is said below of steps is void */
	enum rfl_zoo_form softmax;
	bool causal;
	/** The query is divided by sqrt(features), not the scores. */
	bool scale_query;
	/** Inputs of a batched product that are strided views, and are laid out afresh for it. */
	bool copy_q, copy_k, copy_v;
	double dropout; /**< of the softmax; 0: there is none */
};

/** softmax(q k^T / sqrt(features)) v of {heads, tokens, features}, or with more in front. */
int rfl_zoo_attend(struct rfl_net_builder *b, int q, int k, int v,
		   const struct rfl_zoo_attention_args *args);

/** The two halves of it, for those who do something to the scores in between. */
int rfl_zoo_attention_scores(struct rfl_net_builder *b, int q, int k,
			     const struct rfl_zoo_attention_args *args);
int rfl_zoo_attention_values(struct rfl_net_builder *b, int scores, int v,
			     const struct rfl_zoo_attention_args *args);

#endif
