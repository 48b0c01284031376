/*
 * net.h - the description of a network that is counted analytically and executed by the engines.
 *
 * A net is a static graph in execution order. Nodes are operations with one output tensor each.
 * Shapes are per sample; the batch is an implicit leading dimension: an image is {3, 224, 224}, a
 * text {tokens}, attention scores {heads, tokens, tokens}. Parameters have the names, order and
 * kinds of the published model's state_dict. A net is built once through complexity/net/build.h, by
 * a zoo family or from a file, and is immutable from then on; it owns everything that it points to,
 * and rfl_net_free() releases all of it.
 */
#ifndef RFL_COMPLEXITY_NET_H
#define RFL_COMPLEXITY_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

RFL_API_BEGIN

/** Operations, in the order of op/list.inc; RFL_OP_INPUT is 0. */
enum rfl_op {
#define OP(number, row) RFL_OP_##number,
#include "complexity/op/list.inc"
#undef OP
	RFL_OP_COUNT,
};

#define RFL_NET_MAX_DIMS   6
#define RFL_NET_MAX_INPUTS 64

/** A shape per sample: an image is {3, 224, 224}. */
struct rfl_shape {
	int ndim;
	int64_t dim[RFL_NET_MAX_DIMS];
};

enum rfl_dtype { RFL_DTYPE_F32, RFL_DTYPE_F16, RFL_DTYPE_BF16, RFL_DTYPE_I64 };

/** The kind of a parameter; decides its fill (data/fill.h) and whether it is trained. */
enum rfl_param_kind {
	RFL_PARAM_CONV_WEIGHT,
	RFL_PARAM_CONV_BIAS,
	RFL_PARAM_LINEAR_WEIGHT,
	RFL_PARAM_LINEAR_BIAS,
	RFL_PARAM_NORM_WEIGHT,
	RFL_PARAM_NORM_BIAS,
	RFL_PARAM_RUNNING_MEAN, /**< a buffer: not trained, not counted as a parameter */
	RFL_PARAM_RUNNING_VAR,  /**< a buffer */
	RFL_PARAM_EMBEDDING_WEIGHT,
	RFL_PARAM_OTHER,
	RFL_PARAM_KIND_COUNT,
};

bool rfl_param_is_buffer(enum rfl_param_kind kind);

struct rfl_param {
	const char *name; /**< "layer1.0.conv1.weight" */
	enum rfl_param_kind kind;
	int ndim;
	int64_t dim[RFL_NET_MAX_DIMS]; /**< as PyTorch stores it: conv {out, in/groups, kh, kw} */
	int64_t numel;
	/** Position among the floating-point tensors of the state_dict: p in data/fill.h. */
	uint32_t position;
	int node; /**< the node that owns it */
};

/** A learned tensor. The node's name is its name in the state_dict. */
struct rfl_parameter {
	struct rfl_shape stored; /**< as in the state_dict */
	int64_t drop;            /**< leading dimensions of size 1 omitted from the node's shape */
	/** Whether it is the weight or bias of a normalisation that is written out in steps. */
	bool norm_weight, norm_bias;
};

struct rfl_conv2d {
	int64_t in_channels, out_channels;
	int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
	int64_t groups;
	bool bias;
};

struct rfl_batch_norm {
	int64_t channels;
	double eps, momentum;
};

struct rfl_pool {
	int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
	bool ceil_mode;
	bool exclude_padding; /**< for averages, divide by the taps inside the image */
};

struct rfl_adaptive_pool {
	int64_t out_h, out_w;
};

struct rfl_linear {
	int64_t in_features, out_features;
	bool bias;
	bool in_proj;  /**< a packed attention projection, named "in_proj_weight", "in_proj_bias" */
	bool out_proj; /**< the output projection of the same, "out_proj.weight", "out_proj.bias" */
	bool transposed; /**< stored as {in, out}, as in GPT-2's Conv1D */
};

struct rfl_embedding {
	int64_t vocab, features;
};

/** Layer norm and RMS norm over the last dimension. */
struct rfl_norm {
	int64_t features;
	double eps;
};

/** {.., m, k} times {.., k, n}, or {.., n, k} with transpose_b; leading dimensions are equal. */
struct rfl_matmul {
	bool transpose_b;
	/** Part of an attention under a causal mask: half of the product is not used. */
	bool causal;
};

/** The inputs q, k, v are {.., heads, tokens, features}; k and v may have fewer heads, a
 * divisor of the heads of q; each then serves as many consecutive ones. */
struct rfl_sdpa {
	bool causal;
	double dropout;
	int64_t window; /**< a query sees so many of the last keys, with its own; 0: all */
};

struct rfl_affine {
	double scale, shift;
};

/** `count` dimensions starting at `first`. */
struct rfl_reduce {
	int64_t first, count;
	bool keepdim;
};

struct rfl_slice {
	int64_t dim, start, length, step;
};

/** Zero padding around the dimensions {height, width} that begin at `dim`. */
struct rfl_pad {
	int64_t dim, top, bottom, left, right;
};

/** A cyclic shift of the dimensions {height, width} that begin at `dim`. */
struct rfl_roll {
	int64_t dim, shift_h, shift_w;
};

/** One operation. The member of `attr` with the name of the operation holds its attributes. */
struct rfl_node {
	enum rfl_op op;
	/** The model's code calls it as a function, not as a module; traces omit it. */
	bool functional;
	bool inplace; /**< may overwrite its first input, as the published model does */
	/** The tensor has no batch dimension: a parameter, a table, or computed from these. */
	bool batchless;
	/** Part of a head that runs only in training with auxiliary losses. It owns parameters, and
	 * is counted and executed only on request. */
	bool auxiliary;
	/** Path of the module that runs it, or of the block around a functional step. A module that
	 * runs twice yields two nodes of the same name (layer1.0.relu of a ResNet block). */
	const char *name;
	/** The repeated block that contains it (a unit of checkpointing), from 1. 0: none. */
	int block;
	/** Number, from 1, of the function in the model's code that computes this node. The results
	 * are local variables there, kept in memory until it returns. 0: none. */
	int function;
	/** The earlier node whose first parameter is used instead of one of its own (a head tied to
	 * the embedding). 0: none; node 0 is the input and owns nothing. */
	int tied;
	int ninputs;
	const int *input;       /**< indices of earlier nodes */
	struct rfl_shape shape; /**< per sample, of its output */
	enum rfl_dtype dtype; /**< of its output in the model as written: F32, or I64 for indices */
	int nparams;
	int param[6]; /**< indices into params, in the order documented for the operation */
	union {
		struct rfl_parameter parameter;
		struct rfl_conv2d conv2d;
		struct rfl_linear linear;
		struct rfl_embedding embedding;
		struct rfl_batch_norm batch_norm;
		struct rfl_norm norm;
		struct rfl_matmul matmul;
		struct rfl_sdpa sdpa;
		struct rfl_affine affine;
		struct rfl_reduce reduce;
		struct rfl_pool pool;
		struct rfl_adaptive_pool adaptive_pool;
		struct rfl_slice slice;
		struct rfl_pad padding;
		struct rfl_roll roll;
		struct {
			bool tanh;
		} gelu; /**< whether to use the tanh approximation */
		struct {
			double theta; /**< the base */
			bool halves; /**< pair feature i with i + features / 2, not adjacent ones */
		} rope;              /**< rotates pairs of features of {.., tokens, features} */
		struct {
			double probability;
		} dropout; /**< also for stochastic depth */
		struct {
			int64_t first;
		} flatten; /**< the dimensions from this one on are merged into one */
		struct {
			int64_t dim;
		} concat;
		struct {
			struct rfl_shape shape;
		} constant, reshape;
		struct {
			struct rfl_shape shape;
		} gather; /**< its last dimension is the table's width */
		/** Output dimension i is input dimension order[i]. */
		struct {
			int64_t order[RFL_NET_MAX_DIMS];
		} permute;
	} attr;
};

/** How the loss after the logits is computed: cross entropy in one operation, or with every
 * elementwise step of the log-softmax as a separate operation; or the mean of the output, without
 * labels. */
enum rfl_loss { RFL_LOSS_FUSED, RFL_LOSS_COMPOSED, RFL_LOSS_MEAN };

struct rfl_arena;

struct rfl_net {
	const char *model;  /**< zoo name: "resnet50" */
	const char *family; /**< "resnet" */
	const char *title;  /**< "ResNet-50"; NULL if not given */
	int nnodes;
	struct rfl_node *nodes; /**< execution order; node 0 is the (first) input */
	int nparams;
	struct rfl_param *params; /**< state_dict order */
	int ninputs;              /**< the first nodes; more than one: sequences of equal shape
				       {tokens, features} that need gradients */
	int output;               /**< node that outputs the logits, {classes} or {rows, classes} */
	int64_t classes; /**< last dimension of the logits; the vocabulary of a language model */
	int nblocks;     /**< repeated blocks; 0: nothing to checkpoint */
	enum rfl_loss loss;
	/** Of a network that another program wrote: the operations that are not supported, with
	 * their numbers ("2 TopK"), which are not counted, so that it cannot run; and what the user
	 * should know of it. NULL: nothing. */
	const char *uncounted, *caution;
	bool named_by_file; /**< `model` is the name of its file, not part of its content */
	struct rfl_arena *
		arena; /**< owns names, lists of inputs and this struct, but not nodes and params */
};

/** Trained parameters, in elements; without buffers. */
int64_t rfl_net_param_count(const struct rfl_net *net);
/** Trained parameters owned by one node, in elements; a tied weight belongs to its owner. */
int64_t rfl_node_param_count(const struct rfl_net *net, const struct rfl_node *node);
/** Elements of buffers (running statistics). */
int64_t rfl_net_buffer_count(const struct rfl_net *net);

/** Elements of a shape, per sample. The builder has checked that the product fits in 63 bits. */
int64_t rfl_shape_numel(const struct rfl_shape *shape);
/** Whether all dimensions are at least 1 and their product fits in 63 bits. */
bool rfl_shape_fits(const struct rfl_shape *shape);
/** Format a shape as "64x112x112". @return out */
char *rfl_shape_text(const struct rfl_shape *shape, char *out, size_t out_size);

/** Whether a model is named by the path of a network file, *.json or *.onnx, instead of a name of
 * the zoo. */
bool rfl_net_is_file(const char *model);

/**
 * Read a network: a JSON document, or an ONNX file, recognised by its contents.
 *
 * @param path  appears in messages
 * @param ret   set on success only; release with rfl_net_free()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with file, JSON path and reason (a cycle, a missing tensor,
 * shapes that do not match, a duplicate name, sizes above 63 bits)
 */
enum rfl_rc rfl_net_load(const char *path, struct rfl_net **ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_net_free(struct rfl_net *net);
RFL_AUTOPTR_TYPE(net, free);

RFL_API_END
#endif
