/*
 * parts.h - shared by the rows of operations: macros for writing rows, costs and shapes common to
 * several operations, operands, fusion with the previous operation, saved tensors, sliding windows.
 */
#ifndef RFL_COMPLEXITY_OP_PARTS_H
#define RFL_COMPLEXITY_OP_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/op.h"

/** The row of an operation: RFL_OP(exp, "Exp", "ExpBackward0", .infer = ..., .cost = ...); */
#define RFL_OP(name_, module_, autograd_, ...)                                            \
	const struct rfl_op_info rfl_op_##name_ = {                                       \
		.name = #name_, .module = (module_), .autograd = (autograd_), __VA_ARGS__ \
	}

/** The attributes of a row: RFL_OP_ATTRS(RFL_OP_ATTR(...), RFL_OP_ATTR(...)) */
#define RFL_OP_ATTRS(...)                                     \
	.attrs = (const struct rfl_op_attr[]){ __VA_ARGS__ }, \
	.nattrs = sizeof((const struct rfl_op_attr[]){ __VA_ARGS__ }) / sizeof(struct rfl_op_attr)

/** An attribute: RFL_OP_ATTR(INT, conv2d, stride_h, .def = 1, .min = 1) */
#define RFL_OP_ATTR(type_, op_, member_, ...)                                      \
	{                                                                          \
		.name = #member_, .type = RFL_ATTR_##type_,                        \
		.offset = offsetof(struct rfl_node, attr.op_.member_), __VA_ARGS__ \
	}

/** The integer attributes x_h and x_w: RFL_OP_ATTR_PAIR(conv2d, pad, .def = 0) */
#define RFL_OP_ATTR_PAIR(op_, stem_, ...)                              \
	RFL_OP_ATTR(INT, op_, stem_##_h, .pair = #stem_, __VA_ARGS__), \
		RFL_OP_ATTR(INT, op_, stem_##_w, __VA_ARGS__)

/** Give the output the shape of the first input. */
enum rfl_rc rfl_op_same_shape(const struct rfl_node *node, const struct rfl_shape *in,
			      struct rfl_shape *out, struct rfl_err *err);

/** Part of the row of an operation that reads {channels, height, width}. */
#define RFL_OP_READS_IMAGE \
	.min_dims = 3, .max_dims = 3, .needs = "an image {channels, height, width}"

/** Compute the cost from `unary` in the operation's row. */
void rfl_op_unary_cost(struct rfl_cost_context *c, struct rfl_cost *cost);
/** Compute the cost from a given `op`. */
void rfl_op_unary_cost_of(struct rfl_cost_context *c, const struct rfl_op_unary *op,
			  struct rfl_cost *cost);

/** Add `per_element` times `elements` to `sum`. */
void rfl_op_add_elementwise(struct rfl_elementwise *sum, const struct rfl_elementwise *per_element,
			    int64_t elements);

/* A chain of fused operations has only one tensor in memory: the first operation writes it, and the
 * operation after the chain reads it. The members of the chain only add the needs of their backward
 * passes, and a tensor of their own if another node also reads their input. */

/** Fill the fused level: if the operation is fused into the previous one, a mask of one bit per
 * element in training (and the output, if the input must survive), else the same as unfused. */
void rfl_op_fuse_with_mask(struct rfl_cost_context *c, struct rfl_cost *cost);

/** Fill the fused level if the gradient reads `kept` elements of the input or result again. */
void rfl_op_fuse(struct rfl_cost_context *c, int64_t kept, struct rfl_cost *cost);

/** Copy the unfused level to the fused level. */
void rfl_op_fuse_not(struct rfl_cost *cost);

/* The gradient of a learned tensor belongs to the operation that reads it and counts as wgrad
 * there, including the sum over samples and positions. */

/** Bytes per element of input k; learned tensors and constants are stored like parameters. */
int64_t rfl_op_operand_bytes(const struct rfl_cost_context *c, int k);

/** Read input k, or write its gradient, at its own size. */
void rfl_op_operand_read(struct rfl_cost_context *c, int k, struct rfl_traffic *t);
void rfl_op_operand_write(struct rfl_cost_context *c, int k, struct rfl_traffic *t);

/** The pass in which the gradient of input k is counted. */
enum rfl_pass rfl_op_operand_pass(const struct rfl_cost_context *c, int k);

/** `saved` for operations whose gradient needs their input; an in-place operation keeps a copy. */
void rfl_op_saves_input(struct rfl_cost_context *c, struct rfl_op_saves *out);

/** `saved` for operations of which only the gradient of the weight needs the input. */
void rfl_op_saves_for_wgrad(struct rfl_cost_context *c, struct rfl_op_saves *out);

/** `saved` for operations whose gradient needs their result, even if in place. */
void rfl_op_saves_output(struct rfl_cost_context *c, struct rfl_op_saves *out);

/** Append input k, unless it is a parameter or a constant. */
void rfl_op_save_operand(const struct rfl_cost_context *c, int k, struct rfl_op_saves *out);

/** Append `elements` of `size` bytes that are not a tensor of the net. */
void rfl_op_save(struct rfl_cost_context *c, enum rfl_saved_kind kind, int64_t elements,
		 int64_t size, struct rfl_op_saves *out);

/** Bytes per mean or deviation: always F32 on a GPU, the type of the parameters on a CPU. */
int64_t rfl_op_statistic_bytes(const struct rfl_cost_context *c);

struct rfl_window {
	int64_t kernel, stride, pad, dilation;
	bool ceil_mode; /**< the last window may end outside the padded input */
};

/** The number of window positions along an axis of size `in`; RFL_EINVAL if there is none. */
enum rfl_rc rfl_window_positions(const struct rfl_window *w, int64_t in, int64_t *ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** The shape of the output for windows over the height and width of an image. */
enum rfl_rc rfl_window_image(const struct rfl_window w[2], const struct rfl_shape *in,
			     int64_t channels, struct rfl_shape *out,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Taps of all `out` positions that read the image, not its padding. kernel * out must fit. */
int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out);

#endif
