/*
 * op.h - the table of operations, with one row each, defined in the files of op/.
 *
 * A row holds everything the program knows about an operation: its names, output shape, parameters
 * and costs. A new operation needs one row and one line of op/list.inc. op/parts.h has macros for
 * writing rows. docs/reference/operations.md lists the resulting counts and the traffic of each
 * operation. In comments, X and Y are the input and output, dX and dY their gradients.
 */
#ifndef RFL_COMPLEXITY_OP_H
#define RFL_COMPLEXITY_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RFL_OP_MAX_PARAMS 6

/** The arguments of a function that infers an output shape. */
struct rfl_op_shapes {
	const struct rfl_node *node;
	const struct rfl_shape *in; /**< of each input */
	struct rfl_shape *out;
	struct rfl_err *err;
	char text[3][96]; /**< shapes in a message */
	int ntexts;
};

/** A parameter of an operation, before it has a full name and a position. */
struct rfl_op_param {
	const char *suffix; /**< "weight" */
	enum rfl_param_kind kind;
	struct rfl_shape shape;
};

/** One input of a node. */
struct rfl_cost_input {
	const struct rfl_shape *shape;
	int64_t numel; /**< per sample; of the whole tensor if batchless */
	bool batchless;
	bool grad;    /**< whether it needs a gradient */
	bool outside; /**< a parameter or a constant, not an activation */
};

/** The largest tensor, in elements over the batch. Sums and multiples of its size by less than 64
 * in total fit in 63 bits, so that formulas need no checks; products of sizes, multiply-adds and
 * bytes are checked by the functions below, which set `overflow` for the whole node. */
#define RFL_COST_MAX_SIZE (INT64_MAX / 64)

/** The arguments of a cost function. Element counts are over the whole batch. */
struct rfl_cost_context {
	const struct rfl_node *node;
	const struct rfl_count_options *options;
	struct rfl_shape in_shape; /**< of the first input, per sample */
	int64_t batch;
	int64_t out_sample; /**< output elements per sample; all of them if batchless */
	int64_t in;         /**< elements of the first input */
	int64_t out;        /**< elements of the output */
	const struct rfl_cost_input *inputs; /**< one for each input of the node */
	int64_t value_bytes;                 /**< per activation */
	int64_t param_bytes;                 /**< per parameter as stored */
	bool needs_dgrad;                    /**< whether some input needs a gradient */
	bool needs_wgrad;  /**< whether a parameter that it owns or borrows is trained */
	bool fused;        /**< fused into the operation before it, at the fused level */
	bool input_shared; /**< another node also reads the input, so it must survive */
	bool overflow;
	enum rfl_loss loss;    /**< of cross entropy: how it is computed */
	bool on_cpu;           /**< PyTorch's CPU and GPU kernels save different tensors */
	struct rfl_cost *cost; /**< the result of `cost` functions */
};

/* Inline because a sweep calls them about fifty times per node and batch. A result that does not
 * fit becomes 0, so that later sums do not overflow. */
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

/** The size of a tensor of a times b elements; 0 if above RFL_COST_MAX_SIZE. */
static inline int64_t rfl_cost_size(struct rfl_cost_context *c, int64_t a, int64_t b)
{
	int64_t size = rfl_cost_mul(c, a, b);

	c->overflow |= size > RFL_COST_MAX_SIZE;
	return size > RFL_COST_MAX_SIZE ? 0 : size;
}

/** Elements of the k-th input over the batch. */
static inline int64_t rfl_cost_in(struct rfl_cost_context *c, int k)
{
	return rfl_cost_size(c, c->inputs[k].batchless ? 1 : c->batch, c->inputs[k].numel);
}

/** Add `elements` values of `size` bytes to the bytes read. */
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

/** The traffic of one kernel: reads and writes are element counts, each with its element size. */
static inline void rfl_cost_move(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t reads,
				 int64_t read_size, int64_t writes, int64_t write_size)
{
	rfl_cost_read(c, t, reads, read_size);
	rfl_cost_write(c, t, writes, write_size);
}

/** An attribute of an operation, for network files. */
enum rfl_attr_type {
	RFL_ATTR_INT,
	RFL_ATTR_REAL,
	RFL_ATTR_BOOL,
	RFL_ATTR_SHAPE, /**< struct rfl_shape: a list of sizes */
	RFL_ATTR_ORDER, /**< RFL_NET_MAX_DIMS values of int64_t, one per input dimension in use */
};

struct rfl_op_attr {
	const char *name; /**< "kernel_h", like the struct member */
	enum rfl_attr_type type;
	size_t offset; /**< in struct rfl_node */
	bool required; /**< if false, files may omit it, and `def` is used */
	double def;    /**< default of an INT, REAL or BOOL */
	int64_t min;   /**< INT, REAL: the smallest allowed value; INT64_MIN: no limit */
	bool inferred; /**< follows from the input's shape; files omit it */
	/** "kernel" for kernel_h, if the next row is kernel_w: a file may set both at once. */
	const char *pair;
};

/** What autograd keeps of an operation until its backward pass has run: an input, its own result,
 * or bytes over the batch that are not a tensor of the net. */
struct rfl_op_saved {
	int tensor; /**< the number of the input, or one of these: */
#define RFL_SAVED_OUTPUT -1
#define RFL_SAVED_BYTES  -2
	enum rfl_saved_class kind; /**< of the bytes */
	int64_t bytes;
};

#define RFL_OP_MAX_SAVED 6

struct rfl_op_saves {
	int n;
	struct rfl_op_saved item[RFL_OP_MAX_SAVED];
};

/** Temporary bytes that PyTorch allocates while an operation runs, besides its result, saved
 * tensors and gradients; over the batch. */
struct rfl_op_scratch {
	int64_t forward, backward;
};

/** Special values of rfl_op_info.arity. */
#define RFL_OP_NO_INPUTS  -1
#define RFL_OP_ANY_INPUTS -2 /**< one to RFL_NET_MAX_INPUTS */

/** How autocast runs an operation: in the type of its inputs, in 16 bits, or in F32. */
enum rfl_autocast { RFL_AUTOCAST_KEEP, RFL_AUTOCAST_LOWER, RFL_AUTOCAST_F32 };

/** Data read by the gradient besides dY: the input or result, one bit per element, or nothing. */
enum rfl_op_needs { RFL_OP_NEEDS_TENSOR, RFL_OP_NEEDS_BIT, RFL_OP_NEEDS_NOTHING };

struct rfl_op_unary {
	struct rfl_elementwise forward, dgrad; /**< per element */
	enum rfl_op_needs needs;
	/** Additional kernels of the gradient in eager mode; each reads and writes one tensor. */
	int64_t steps;
};

struct rfl_op_info {
	const char *name;     /**< "conv2d": the name in tables and files of this program */
	const char *module;   /**< "Conv2d": the class that a PyTorch trace prints */
	const char *autograd; /**< "ConvolutionBackward0": PyTorch's gradient node */
	bool fuses;           /**< can be merged into the operation before it */
	bool view;            /**< its output shares the memory of its first input */
	enum rfl_autocast autocast;
	/** The number of leading inputs whose gradient shares the memory of the result's. */
	int passes;
	const struct rfl_op_attr *attrs;
	size_t nattrs;
	int arity; /**< number of inputs; 0 means one; see the special values above */
	/** The dimensions required of the first input, and the name of such an input in error
	 * messages. The builder checks them before `infer`. max_dims 0: no upper limit. */
	int min_dims, max_dims;
	const char *needs;

	/** Infer the output shape. The builder has checked the lower limits of attributes; it
	 * checks that all dimensions are at least 1, and prefixes error messages with the layer. */
	enum rfl_rc (*infer)(struct rfl_op_shapes *s);
	/** Fill in the parameters in state_dict order and return their number. NULL: none. */
	int (*params)(const struct rfl_node *node, struct rfl_op_param *out);
	/** Add to c->cost, except for the compulsory traffic. NULL: free. */
	void (*cost)(struct rfl_cost_context *c);
	struct rfl_op_unary unary; /**< used by rfl_op_unary_cost() */
	/** List the tensors saved by PyTorch's eager mode for the required gradients
	 * (c->inputs[k].grad, c->needs_wgrad), except parameters, in an empty list; a tensor may be
	 * listed twice. NULL: nothing. */
	void (*saved)(struct rfl_cost_context *c, struct rfl_op_saves *out);
	/** Fill a zeroed scratch. NULL: nothing. */
	void (*scratch)(struct rfl_cost_context *c, struct rfl_op_scratch *out);
};

/** The row of an operation; never NULL for a value below RFL_OP_COUNT. */
const struct rfl_op_info *rfl_op_info_of(enum rfl_op op);

/** Write the name of a node in captures of layers: the path of its module or, for a functional
 * step, the path of its block with the operation ("layer1.0.add").
 * @return the length, like snprintf() */
int rfl_op_layer_name(const struct rfl_node *node, char *out, size_t size);

#define RFL_MARK_SIZE 520

/** Format the name of a mark: "fwd/conv1" for the pass "fwd". @param node  nnodes: the loss
 * @return out */
const char *rfl_mark_name(const char *pass, const struct rfl_net *net, int node,
			  char out[RFL_MARK_SIZE]);

#define OP(number, row) extern const struct rfl_op_info rfl_op_##row;
#include "complexity/op/list.inc"
#undef OP

#ifdef __cplusplus
}
#endif
#endif
