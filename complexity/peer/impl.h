/*
 * impl.h - the rules of other counters as data: for each tool and operation so much per
 * multiply-add, per bias, per element. peer/rules.c has the tables, sums.c applies them.
 */
#ifndef RFL_COMPLEXITY_PEER_IMPL_H
#define RFL_COMPLEXITY_PEER_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complexity/net.h"
#include "complexity/peer.h"

/** Who runs an operation. */
enum rfl_peer_caller {
	RFL_PEER_STEP,      /**< code between modules */
	RFL_PEER_MODULE,    /**< a module of its own */
	RFL_PEER_ATTENTION, /**< an nn.MultiheadAttention */
	RFL_PEER_FUNCTIONS, /**< an attention in calls of functions, its projections too */
};

/** What a tool charges an operation, by what. */
struct rfl_peer_weights {
	int macs;    /**< per multiply-add, taps in the padding included */
	int bias;    /**< per addition of a bias: one for each element of the output */
	int in, out; /**< per element of the first input, of the output */
	int weights; /**< per parameter that it uses, whatever the size of the image or the text */
};

/** One operation of a network, as tools see it: sizes of one sample. */
struct rfl_peer_site {
	const struct rfl_net *net;
	const struct rfl_node *node;
	int64_t macs, bias, in, out, weights;
};

/**
 * A tool that replaces functions (or reads operations from a trace) sees an operation however it
 * is called; one that hooks modules sees it where a module of PyTorch's own class runs it; one that
 * does both counts such an operation twice.
 */
struct rfl_peer_rule {
	struct rfl_peer_weights call;      /**< always */
	struct rfl_peer_weights module;    /**< and where a module runs it */
	struct rfl_peer_weights attention; /**< or, instead, where nn.MultiheadAttention does */
	/** Or in an attention that is written with torch.matmul and F.softmax, not with operators.
	 */
	struct rfl_peer_weights functions;
	/** What no weight can say, on top. False: too large to be exact. NULL: nothing. */
	bool (*odd)(const struct rfl_peer_site *site, enum rfl_peer_caller caller, int64_t *ret);
};

/** What a Conv1D is to a tool: the linear layer of GPT-2, a class of its own around addmm. */
enum rfl_peer_conv1d {
	RFL_PEER_CONV1D_LINEAR, /**< a linear layer, as what it computes */
	RFL_PEER_CONV1D_ADDMM,  /**< its products, and the bias once, however many rows there are */
	RFL_PEER_CONV1D_CONV,   /**< a convolution, by its name: each parameter at each output */
	RFL_PEER_CONV1D_UNSEEN,
};

struct rfl_peer_row {
	struct rfl_peer peer; /* first: a struct rfl_peer is turned into its row */
	bool training;        /**< it runs the net in training mode, auxiliary heads included */
	bool subclasses;      /**< its hooks know classes that are derived from PyTorch's own */
	enum rfl_peer_conv1d conv1d;
	bool hooked_params; /**< of parameters it sees those of the modules that it hooks */
	const struct rfl_peer_rule *rules; /**< RFL_OP_COUNT of them */
};

/** The i-th row, or NULL past the last. */
const struct rfl_peer_row *rfl_peer__row(size_t i);

#endif
