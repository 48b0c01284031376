/*
 * net.h - the one description of a network: counted analytically and executed by the engines.
 *
 * A net is a static graph in execution order. Nodes are operations, each with one output tensor;
 * shapes are per sample, the batch is symbolic and always the leading dimension that is not
 * written. Parameters carry the names, the order and the kinds of the published model's
 * state_dict. A net is built once by a zoo file through complexity/net_build.h and is immutable
 * from then on; everything it points to lives in its arena.
 */
#ifndef RFL_COMPLEXITY_NET_H
#define RFL_COMPLEXITY_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Every operation is one row of the table in complexity/op.c and one file complexity/op_*.c. */
enum rfl_op {
	RFL_OP_INPUT,
	RFL_OP_CONV2D,
	RFL_OP_BATCH_NORM,
	RFL_OP_RELU,
	RFL_OP_RELU6,
	RFL_OP_MAX_POOL,
	RFL_OP_ADAPTIVE_AVG_POOL,
	RFL_OP_LINEAR,
	RFL_OP_DROPOUT,
	RFL_OP_FLATTEN,
	RFL_OP_ADD,
	RFL_OP_CROSS_ENTROPY,
	RFL_OP_COUNT,
};

#define RFL_NET_MAX_DIMS   6
#define RFL_NET_MAX_INPUTS 8

/** A shape per sample: an image is {3, 224, 224}. */
struct rfl_shape {
	int ndim;
	int64_t dim[RFL_NET_MAX_DIMS];
};

enum rfl_dtype { RFL_DTYPE_F32, RFL_DTYPE_F16, RFL_DTYPE_BF16, RFL_DTYPE_I64 };

/** What a parameter is; decides its fill (runner/fill.h) and whether it is trained. */
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

/** "conv.weight", "running_var", ...: the words of the golden params files. */
const char *rfl_param_kind_name(enum rfl_param_kind kind);
bool rfl_param_is_buffer(enum rfl_param_kind kind);

struct rfl_param {
	const char *name; /**< "layer1.0.conv1.weight" */
	enum rfl_param_kind kind;
	int ndim;
	int64_t dim[RFL_NET_MAX_DIMS]; /**< as PyTorch stores it: conv {out, in/groups, kh, kw} */
	int64_t numel;
	/** Position in state_dict order among the floating tensors, buffers included: the p of the
	 * fill. */
	uint32_t position;
	int node; /**< the node that owns it */
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
};

struct rfl_adaptive_pool {
	int64_t out_h, out_w;
};

struct rfl_linear {
	int64_t in_features, out_features;
	bool bias;
};

struct rfl_dropout {
	double probability;
};

/** One operation. `attr` is read by the member that carries the operation's name. */
struct rfl_node {
	enum rfl_op op;
	/** Path of the module that runs it. A module that runs twice gives two nodes of one name
	 * (layer1.0.relu of a ResNet block). Functional steps carry the path of the block that runs
	 * them and have `functional` set: they are not modules, and traces do not list them. */
	const char *name;
	bool functional;
	bool inplace; /**< may overwrite its first input, as the published model does */
	int ninputs;
	int input[RFL_NET_MAX_INPUTS]; /**< indices of earlier nodes */
	struct rfl_shape shape;        /**< of its output, per sample */
	enum rfl_dtype
		dtype; /**< of its output as the network is written: F32, or I64 for indices */
	int nparams;
	int param[6]; /**< indices into params, in the order that the op documents */
	union {
		struct rfl_conv2d conv2d;
		struct rfl_batch_norm batch_norm;
		struct rfl_pool pool;
		struct rfl_adaptive_pool adaptive_pool;
		struct rfl_linear linear;
		struct rfl_dropout dropout;
	} attr;
};

struct rfl_arena;

struct rfl_net {
	const char *model;  /**< zoo name: "resnet50" */
	const char *family; /**< "resnet" */
	int nnodes;
	struct rfl_node *nodes; /**< execution order; node 0 is the input */
	int nparams;
	struct rfl_param *params; /**< state_dict order */
	int output;               /**< node whose output are the logits */
	int64_t classes;
	struct rfl_arena *arena; /**< owns everything above, this struct included */
};

/** Trained parameters, in elements; buffers do not count. */
int64_t rfl_net_param_count(const struct rfl_net *net);

/** Trained parameters of one node, in elements. */
int64_t rfl_node_param_count(const struct rfl_net *net, const struct rfl_node *node);

/** Elements of buffers (running statistics). */
int64_t rfl_net_buffer_count(const struct rfl_net *net);

/** Elements of a shape per sample. The builder has checked that it fits. */
int64_t rfl_shape_numel(const struct rfl_shape *shape);

/** "64x112x112". @return out */
char *rfl_shape_text(const struct rfl_shape *shape, char *out, size_t out_size);

/** Accepts NULL. */
void rfl_net_free(struct rfl_net *net);

#ifdef __cplusplus
}
#endif
#endif
