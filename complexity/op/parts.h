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
enum rfl_rc rfl_op_same_shape(struct rfl_op_shapes *s);

/** Fail because the shapes or attributes do not fit; at most three shapes can be shown. */
#define rfl_op_refuse(s, ...) rfl_fail((s)->err, RFL_EINVAL, 0, __VA_ARGS__)
const char *rfl_op_show(struct rfl_op_shapes *s, const struct rfl_shape *shape);

/** Part of the row of an operation that reads {channels, height, width}. */
#define RFL_OP_READS_IMAGE \
	.min_dims = 3, .max_dims = 3, .needs = "an image {channels, height, width}"

/** Compute the cost from `unary` in the operation's row, or from a given one. */
void rfl_op_unary_cost(struct rfl_cost_context *c);
void rfl_op_unary_cost_of(struct rfl_cost_context *c, const struct rfl_op_unary *op);

/* Short for rows. */
#define FORWARD   RFL_PASS_FORWARD
#define DGRAD     RFL_PASS_DGRAD
#define WGRAD     RFL_PASS_WGRAD
#define RECOMPUTE RFL_PASS_RECOMPUTE
#define UNFUSED   RFL_FUSION_UNFUSED
#define FUSED     RFL_FUSION_FUSED

/** Whether a pass runs. The functions below add nothing to one that does not. */
static inline bool rfl_op_runs(const struct rfl_cost_context *c, enum rfl_pass pass)
{
	return pass == DGRAD ? c->needs_dgrad : pass != WGRAD || c->needs_wgrad;
}

/** Add `per_element` times `elements` to the operations of a pass. */
static inline void rfl_op_count_each(struct rfl_cost_context *c, enum rfl_pass pass,
				     const struct rfl_elementwise *per_element, int64_t elements)
{
	struct rfl_elementwise *sum = &c->cost->elementwise[pass];

	if (!rfl_op_runs(c, pass))
		return;
	sum->add += per_element->add * elements;
	sum->mul += per_element->mul * elements;
	sum->compare += per_element->compare * elements;
	sum->special += per_element->special * elements;
}
/** Add operations to a pass: rfl_op_count(c, DGRAD, .add = n, .mul = 2 * n) */
#define rfl_op_count(c, pass, ...) \
	rfl_op_count_each((c), (pass), &(const struct rfl_elementwise){ __VA_ARGS__ }, 1)

/** Add elements read and written in a pass, each with its size. */
static inline void rfl_op_move_at(struct rfl_cost_context *c, enum rfl_fusion level,
				  enum rfl_pass pass, int64_t reads, int64_t read_size,
				  int64_t writes, int64_t write_size)
{
	if (rfl_op_runs(c, pass))
		rfl_cost_move(c, &c->cost->traffic[level][pass], reads, read_size, writes,
			      write_size);
}

/** Add activations read and written by unfused operations. */
static inline void rfl_op_move(struct rfl_cost_context *c, enum rfl_pass pass, int64_t reads,
			       int64_t writes)
{
	rfl_op_move_at(c, UNFUSED, pass, reads, c->value_bytes, writes, c->value_bytes);
}

/* A chain of fused operations has only one tensor in memory: the first operation writes it, and the
 * operation after the chain reads it. The members of the chain only add the needs of their backward
 * passes, and a tensor of their own if another node also reads their input. */

/** Fill the fused level: if the operation is fused into the previous one, a mask of one bit per
 * element in training (and the output, if the input must survive), else the same as unfused. */
void rfl_op_fuse_with_mask(struct rfl_cost_context *c);

/** Fill the fused level if the gradient reads `kept` elements of the input or result again. */
void rfl_op_fuse(struct rfl_cost_context *c, int64_t kept);

/** Copy the unfused level to the fused level. */
void rfl_op_fuse_not(struct rfl_cost_context *c);

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

/** Append the result, or `elements` of `size` bytes that are not a tensor of the net. */
void rfl_op_save_output(struct rfl_op_saves *out);
void rfl_op_save(struct rfl_cost_context *c, enum rfl_saved_class kind, int64_t elements,
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
enum rfl_rc rfl_window_image(struct rfl_op_shapes *s, const struct rfl_window w[2],
			     int64_t channels) RFL_WARN_UNUSED;

/** Taps of all `out` positions that read the image, not its padding. kernel * out must fit. */
int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out);

#endif
