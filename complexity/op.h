/*
 * op.h - the table of operations: one row each, defined in the operation's own file op_*.c.
 *
 * A row says everything that the program knows of an operation without running it: its names, its
 * output shape, the parameters it owns and what it costs. Adding an operation is one value of
 * enum rfl_op, one file and one line of the table in op.c.
 */
#ifndef RFL_COMPLEXITY_OP_H
#define RFL_COMPLEXITY_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/count.h"
#include "complexity/net.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RFL_OP_MAX_PARAMS 6

/** A parameter that an operation owns, before it has a full name and a position. */
struct rfl_op_param {
	const char *suffix; /**< "weight" */
	enum rfl_param_kind kind;
	int ndim;
	int64_t dim[RFL_NET_MAX_DIMS];
};

/**
 * What a cost function may look at. Element counts are over the whole batch. Products and sums go
 * through rfl_cost_mul() and rfl_cost_add(), which set `overflow` once for the whole node.
 */
struct rfl_cost_context {
	const struct rfl_node *node;
	const struct rfl_count_options *options;
	struct rfl_shape in_shape; /**< of the first input, per sample */
	int64_t batch;
	int64_t in;          /**< elements of the first input */
	int64_t out;         /**< elements of the output */
	int64_t params;      /**< elements of trained parameters, buffers left out */
	int64_t value_bytes; /**< of one activation */
	int64_t param_bytes; /**< of one parameter as it is stored */
	bool needs_dgrad;    /**< some input needs a gradient */
	bool rides;          /**< at the fused level this operation is part of the one before it */
	bool input_shared;   /**< somebody else reads the input too, so it must stay as it is */
	bool overflow;
};

int64_t rfl_cost_mul(struct rfl_cost_context *c, int64_t a, int64_t b);
int64_t rfl_cost_add(struct rfl_cost_context *c, int64_t a, int64_t b);

/** Add bytes of `elements` values of `size` bytes to a traffic, at one level. */
void rfl_cost_read(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t elements,
		   int64_t size);
void rfl_cost_write(struct rfl_cost_context *c, struct rfl_traffic *t, int64_t elements,
		    int64_t size);

struct rfl_op_info {
	const char *name;   /**< "conv2d": the word of our own tables and files */
	const char *module; /**< "Conv2d": the class that a PyTorch trace prints */
	bool rides;         /**< a fusing library makes it part of the operation before it */

	/** The output shape. A failure says what is wrong; the builder puts the layer in front. */
	enum rfl_rc (*infer)(const struct rfl_node *node, const struct rfl_shape *in,
			     struct rfl_shape *out, struct rfl_err *err);
	/** Fill the parameters in state_dict order and return how many. NULL: none. */
	int (*params)(const struct rfl_node *node, struct rfl_op_param *out);
	/** Add to a zeroed cost. NULL: free. Compulsory traffic is the counter's own business. */
	void (*cost)(struct rfl_cost_context *c, struct rfl_cost *cost);
};

/** The row of an operation. Never NULL for a value below RFL_OP_COUNT. */
const struct rfl_op_info *rfl_op_info_of(enum rfl_op op);

extern const struct rfl_op_info rfl_op_input, rfl_op_conv2d, rfl_op_batch_norm, rfl_op_relu,
	rfl_op_relu6, rfl_op_max_pool, rfl_op_adaptive_avg_pool, rfl_op_linear, rfl_op_dropout,
	rfl_op_flatten, rfl_op_add, rfl_op_cross_entropy;

/* Shape inference shared by several rows. */

/** The output has the shape of the first input. */
enum rfl_rc rfl_op_same_shape(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err);

/** Refuse an input that is not {channels, height, width}. */
enum rfl_rc rfl_op_need_image(const struct rfl_shape *in, struct rfl_err *err);

#ifdef __cplusplus
}
#endif
#endif
