/*
 * op.h - the table of operations: one row each, defined in the files of op/.
 *
 * A row holds everything that the program knows of an operation: its names, output shape,
 * parameters and costs. A new operation is one row and one line of op/list.inc. op/parts.h has the
 * macros that write rows.
 */
#ifndef RFL_COMPLEXITY_OP_H
#define RFL_COMPLEXITY_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"

#define RFL_OP_MAX_PARAMS 6

/** A parameter that an operation owns, before it has a full name and a position. */
struct rfl_op_param {
	const char *suffix; /**< "weight" */
	enum rfl_param_kind kind;
	int ndim;
	int64_t dim[RFL_NET_MAX_DIMS];
};

/** One input of a node. */
struct rfl_cost_input {
	const struct rfl_shape *shape;
	int64_t numel; /**< of one sample; of the whole tensor when it is batchless */
	bool batchless;
	bool grad;    /**< it needs a gradient */
	bool outside; /**< a parameter or a constant: no activation */
};

/** The arguments of a cost function. Element counts are over the whole batch. Products and sums go
 * through rfl_cost_mul() and rfl_cost_add(), which set `overflow` once for the whole node. */
struct rfl_cost_context {
	const struct rfl_node *node;
	const struct rfl_count_options *options;
	struct rfl_shape in_shape; /**< of the first input, per sample */
	int64_t batch;
	int64_t out_sample; /**< elements of the output of one sample; of all when it is batchless
			     */
	int64_t in;         /**< elements of the first input */
	int64_t out;        /**< elements of the output */
	const struct rfl_cost_input *inputs; /**< one for each input of the node */
	int64_t value_bytes;                 /**< of one activation */
	int64_t param_bytes;                 /**< of one parameter as it is stored */
	bool needs_dgrad;                    /**< some input needs a gradient */
	bool needs_wgrad;                    /**< it owns or borrows a trained parameter */
	bool fused;        /**< at the fused level this operation is part of the one before it */
	bool input_shared; /**< another node reads the input too, so it must not be overwritten */
	bool overflow;
	enum rfl_loss loss; /**< of cross entropy: how it is written */
	bool on_cpu;        /**< PyTorch's CPU and GPU kernels save different tensors */
};

/* Inline because a sweep calls them some fifty times per node and batch. A result that does not fit
 * is 0, so that later sums do not overflow. */
static inline int64_t rfl_cost_mul(struct rfl_cost_context *c, int64_t a, int64_t b)
{
	int64_t product;
	bool over = __builtin_mul_overflow(a, b, &product);

	c->overflow |= over;
	return over ? 0 : product;
}

static inline int64_t rfl_cost_add(struct rfl_cost_context *c, int64_t a, int64_t b)
{
	int64_t sum;
	bool over = __builtin_add_overflow(a, b, &sum);

	c->overflow |= over;
	return over ? 0 : sum;
}

/** Elements of the k-th input over the batch. */
static inline int64_t rfl_cost_in(struct rfl_cost_context *c, int k)
{
	const struct rfl_cost_input *in = &c->inputs[k];

	return in->batchless ? in->numel : rfl_cost_mul(c, c->batch, in->numel);
}

/** Add bytes of `elements` values of `size` bytes to a traffic, at one level. */
static inline void rfl_cost_read(struct rfl_cost_context *c, struct rfl_traffic *t,
				 int64_t elements, int64_t size)
{
	t->read_bytes = rfl_cost_add(c, t->read_bytes, rfl_cost_mul(c, elements, size));
}

static inline void rfl_cost_write(struct rfl_cost_context *c, struct rfl_traffic *t,
				  int64_t elements, int64_t size)
{
	t->write_bytes = rfl_cost_add(c, t->write_bytes, rfl_cost_mul(c, elements, size));
}

/** The traffic of one kernel: read elements of one size, write elements of another. */
static inline void rfl_cost_move(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t reads,
				 int64_t read_size, int64_t writes, int64_t write_size)
{
	rfl_cost_read(c, t, reads, read_size);
	rfl_cost_write(c, t, writes, write_size);
}

/** One attribute of an operation, for network files. */
enum rfl_attr_type {
	RFL_ATTR_INT,
	RFL_ATTR_REAL,
	RFL_ATTR_BOOL,
	RFL_ATTR_SHAPE, /**< struct rfl_shape: a list of sizes */
	RFL_ATTR_ORDER, /**< RFL_NET_MAX_DIMS int64_t, as many as the input has dimensions */
};

struct rfl_op_attr {
	const char *name; /**< "kernel_h": as the struct's member */
	enum rfl_attr_type type;
	size_t offset; /**< in struct rfl_node */
	bool required; /**< a file must have it; else `def` */
	double def;    /**< of INT, REAL, BOOL */
	int64_t min;   /**< INT, REAL: the least value that is accepted; INT64_MIN: any */
	bool inferred; /**< follows from the input's shape: files leave it out */
	/** "kernel" of kernel_h, if the next row is kernel_w: a file may set both at once. */
	const char *pair;
};

/** What autograd keeps of an operation until its backward pass has run. */
enum rfl_saved_kind {
	RFL_SAVED_INPUT,  /**< a tensor that was an input: `input` says which */
	RFL_SAVED_OUTPUT, /**< its own result */
	RFL_SAVED_CLONE, /**< a copy of the first input, made because the operation overwrites it */
	RFL_SAVED_INDICES,    /**< int64 places of maxima: `bytes` */
	RFL_SAVED_MASK,       /**< of a dropout or a masked fill: `bytes` */
	RFL_SAVED_STATISTICS, /**< means, deviations, sums of rows: `bytes` */
	RFL_SAVED_INTERNAL,   /**< a tensor made inside, such as log-probabilities: `bytes` */
};

struct rfl_op_saved {
	enum rfl_saved_kind kind;
	int input;
	int64_t bytes; /**< of the kinds that are not tensors of the net, over the batch */
};

#define RFL_OP_MAX_SAVED 6

/** Temporary bytes that PyTorch allocates while an operation runs, in addition to its result, saved
 * tensors and gradients; over the batch. */
struct rfl_op_scratch {
	int64_t forward, backward;
};

/** Special values of rfl_op_info.arity. */
#define RFL_OP_NO_INPUTS  -1
#define RFL_OP_ANY_INPUTS -2 /**< one to RFL_NET_MAX_INPUTS */

/** How autocast treats an operation: in 16 bits, in F32, or in the type of its inputs. */
enum rfl_autocast { RFL_AUTOCAST_KEEP, RFL_AUTOCAST_LOWER, RFL_AUTOCAST_F32 };

/** What the gradient reads in addition to dY: the input or the result, one bit per element of it
 * when fused, or nothing. */
enum rfl_op_needs { RFL_OP_NEEDS_TENSOR, RFL_OP_NEEDS_BIT, RFL_OP_NEEDS_NOTHING };

struct rfl_op_unary {
	struct rfl_elementwise forward, dgrad; /**< per element */
	enum rfl_op_needs needs;
	/** Additional kernels of the gradient in an eager framework; each reads and writes one
	 * tensor. */
	int64_t steps;
};

struct rfl_op_info {
	const char *name;     /**< "conv2d": in our own tables and files */
	const char *module;   /**< "Conv2d": the class that a PyTorch trace prints */
	const char *autograd; /**< "ConvolutionBackward0": PyTorch's node that makes the gradient */
	bool fuses;           /**< a fusing library merges it into the operation before it */
	bool view;            /**< its output is its first input's memory */
	enum rfl_autocast autocast;
	/** The gradient of this many leading inputs is the gradient of the result or a view of it,
	 * without memory of its own. */
	int passes;
	const struct rfl_op_attr *attrs;
	size_t nattrs;
	int arity; /**< how many inputs; 0 means one, the two values above none and any */
	/** Dimensions that the first input must have, and what an error message calls such an
	 * input. The builder checks them before `infer`. max_dims 0: no upper limit. */
	int min_dims, max_dims;
	const char *needs;

	/** The output shape. The builder prefixes error messages with the layer. */
	enum rfl_rc (*infer)(const struct rfl_node *node, const struct rfl_shape *in,
			     struct rfl_shape *out, struct rfl_err *err);
	/** Fill the parameters in state_dict order and return their number. NULL: none. */
	int (*params)(const struct rfl_node *node, struct rfl_op_param *out);
	/** Add to a zeroed cost, but not to the compulsory traffic. NULL: free. */
	void (*cost)(struct rfl_cost_context *c, struct rfl_cost *cost);
	struct rfl_op_unary unary; /**< read by rfl_op_unary_cost() */
	/** What PyTorch in eager mode saves for the gradients that are needed (c->inputs[k].grad,
	 * c->needs_wgrad), without parameters; a tensor may be listed twice. Returns their number.
	 * NULL: nothing. */
	int (*saved)(struct rfl_cost_context *c, struct rfl_op_saved out[RFL_OP_MAX_SAVED]);
	/** Set a zeroed scratch. NULL: nothing. */
	void (*scratch)(struct rfl_cost_context *c, struct rfl_op_scratch *out);
};

/** The row of an operation. Never NULL for a value below RFL_OP_COUNT. */
const struct rfl_op_info *rfl_op_info_of(enum rfl_op op);

#define OP(number, row) extern const struct rfl_op_info rfl_op_##row;
#include "complexity/op/list.inc"
#undef OP

#endif
