/*
 * ops_rig.h - small networks around one operation: three tensors of {3, 8, 8} that need a gradient,
 * and the operation made of them by its name and a variant.
 */
#ifndef RFL_TESTS_OPS_RIG_H
#define RFL_TESTS_OPS_RIG_H

#include <string.h>

#include "complexity/count/links.h"
#include "complexity/op.h"
#include "tests/unit/rfl_test.h"
#include "tests/unit/build_rig.h"

enum { BATCH = 2 };

struct rig {
	struct rfl_net_builder *b;
	int x, y, z; /* {3, 8, 8}, made by convolutions */
};

static inline struct rig rig_new(void)
{
	struct rig r = { .b = rfl_net_builder_new("rig", "test") };
	int image;

	assert_non_null(r.b);
	image = rfl_net_input(r.b, 3, 8, 8);
	r.x = rfl_conv2d(r.b, image, "x", 3, .kernel = 1);
	r.y = rfl_conv2d(r.b, image, "y", 3, .kernel = 1);
	r.z = rfl_conv2d(r.b, image, "z", 3, .kernel = 1);
	return r;
}

static inline bool says(const char *variant, const char *word)
{
	return strstr(variant, word) != NULL;
}

/* A learned tensor or a table of constants of that shape. */
static inline int rig_outside(struct rig *r, const char *variant, const struct rfl_shape *shape)
{
	return says(variant, "constant") ? rfl_constant(r->b, "table", shape)
					 : rfl_parameter(r->b, "op", shape, 0);
}

static inline int rig_binary(struct rig *r, enum rfl_op op, const char *variant)
{
	int y = says(variant, "by") ? rig_outside(r, variant, RFL_DIMS(8)) : r->y;

	return rfl_binary(r->b, op, r->x, y, says(variant, "inplace") ? RFL_INPLACE : 0);
}

static inline int rig_matmul(struct rig *r, const char *variant)
{
	if (!says(variant, "by"))
		return rfl_matmul(r->b, r->x, r->y, true, false);
	return rfl_matmul(r->b, r->x, rig_outside(r, variant, RFL_DIMS(3, 8, 8)), false, false);
}

/* Operations that own parameters carry the name "op". */
static inline int rig_layer(struct rig *r, enum rfl_op op, const char *variant)
{
	switch (op) {
	case RFL_OP_CONV2D:
		return rfl_conv2d(r->b, r->x, "op", 4, .kernel = 3);
	case RFL_OP_LINEAR:
		return rfl_linear(r->b, r->x, "op", 5, true);
	case RFL_OP_BATCH_NORM:
		return rfl_batch_norm(r->b, r->x, "op");
	case RFL_OP_LAYER_NORM:
		return rfl_layer_norm(r->b, r->x, "op", 1e-5);
	case RFL_OP_RMS_NORM:
		return rfl_net_one(r->b, RFL_OP_RMS_NORM, r->x, "op", .attr.norm.eps = 1e-5);
	case RFL_OP_MAX_POOL:
		return rfl_max_pool(r->b, r->x, "op", .kernel = 2);
	case RFL_OP_AVG_POOL:
		return rfl_avg_pool(r->b, r->x, "op", .kernel = 2);
	case RFL_OP_ADAPTIVE_AVG_POOL:
		return says(variant, "1x1") ? rfl_adaptive_avg_pool(r->b, r->x, "op", 1, 1)
					    : rfl_adaptive_avg_pool(r->b, r->x, "op", 2, 2);
	case RFL_OP_DROPOUT:
		return rfl_dropout(r->b, r->x, "op", says(variant, "none") ? 0.0 : 0.5);
	case RFL_OP_STOCHASTIC_DEPTH:
		return rfl_stochastic_depth(r->b, r->x, "op", 0.2);
	case RFL_OP_GELU:
		return rfl_gelu(r->b, r->x, "op", says(variant, "tanh"));
	default:
		return rfl_unary(r->b, op, r->x, "op", says(variant, "inplace") ? RFL_INPLACE : 0);
	}
}

static inline int rig_move(struct rig *r, enum rfl_op op)
{
	switch (op) {
	case RFL_OP_FLATTEN:
		return rfl_flatten(r->b, r->x);
	case RFL_OP_RESHAPE:
		return rfl_reshape(r->b, r->x, RFL_DIMS(24, 8));
	case RFL_OP_PERMUTE:
		return rfl_permute(r->b, r->x, RFL_DIMS(1, 0, 2));
	case RFL_OP_SLICE:
		return rfl_slice(r->b, r->x, 1, 1, 2, 1);
	case RFL_OP_CONTIGUOUS:
		return rfl_unary(r->b, op, rfl_permute(r->b, r->x, RFL_DIMS(1, 0, 2)), NULL,
				 RFL_OUT_OF_PLACE);
	case RFL_OP_CONCAT:
		return rfl_concat(r->b, (const int[]){ r->x, r->y }, 2, 0);
	case RFL_OP_PAD:
		return rfl_net_pad(r->b, r->x, .dim = 1, .bottom = 1, .right = 1);
	case RFL_OP_ROLL:
		return rfl_net_roll(r->b, r->x, 1, 1, 1);
	default:
		return rfl_gather(r->b, rfl_parameter(r->b, "op", RFL_DIMS(5, 8), 0),
				  RFL_DIMS(8, 8));
	}
}

static inline int rig_make(struct rig *r, enum rfl_op op, const char *variant)
{
	switch (op) {
	case RFL_OP_ADD:
	case RFL_OP_SUB:
	case RFL_OP_MUL:
	case RFL_OP_DIV:
		return rig_binary(r, op, variant);
	case RFL_OP_MATMUL:
		return rig_matmul(r, variant);
	case RFL_OP_SDPA:
		return rfl_sdpa(r->b, r->x, r->y, r->z, says(variant, "causal"),
				says(variant, "dropout") ? 0.1 : 0.0);
	case RFL_OP_MEAN:
	case RFL_OP_SUM:
		return rfl_reduce(r->b, op, r->x, 1, 2, false);
	case RFL_OP_MAX:
		return rfl_reduce(r->b, op, r->x, 2, 1, true);
	case RFL_OP_AFFINE:
		return rfl_affine(r->b, r->x, 2.0, 1.0);
	case RFL_OP_ROPE:
		return rfl_rope(r->b, r->x, 10000.0);
	case RFL_OP_FLATTEN:
	case RFL_OP_RESHAPE:
	case RFL_OP_PERMUTE:
	case RFL_OP_SLICE:
	case RFL_OP_CONTIGUOUS:
	case RFL_OP_CONCAT:
	case RFL_OP_PAD:
	case RFL_OP_ROLL:
	case RFL_OP_GATHER:
		return rig_move(r, op);
	default:
		return rig_layer(r, op, variant);
	}
}

/* What has no samples is added to something that has. */
static inline struct rfl_net *rig_finish(struct rig *r, int output, bool batchless)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	if (batchless)
		output = rfl_add(r->b, r->z, output, RFL_OUT_OF_PLACE);
	assert_ok(rfl_net_finish(r->b, rfl_flatten(r->b, output), &net, &err), &err);
	return net;
}

/* Four tokens of a text with five words. */
static inline struct rfl_net *rig_embedding(void)
{
	struct rig r = { .b = rfl_net_builder_new("rig", "test") };

	return rig_finish(&r, rfl_embedding(r.b, rfl_net_tokens(r.b, 4), "op", 5, 6), false);
}

static inline enum rfl_op rig_op(const char *name, size_t length)
{
	for (int op = 0; op < RFL_OP_COUNT; op++) {
		const char *own = rfl_op_info_of((enum rfl_op)op)->name;

		if (strlen(own) == length && memcmp(own, name, length) == 0)
			return (enum rfl_op)op;
	}
	fail_msg("no operation '%.*s'", (int)length, name);
	return RFL_OP_COUNT;
}

/* "silu inplace": the operation and its variant; *node is where it is. */
static inline struct rfl_net *rig_case(const char *name, int *node)
{
	size_t length = strcspn(name, " ");
	enum rfl_op op = rig_op(name, length);
	struct rig r;

	if (op == RFL_OP_EMBEDDING) {
		*node = 1;
		return rig_embedding();
	}
	r = rig_new();
	*node = rig_make(&r, op, name + length);
	if (says(name, "inplace"))
		*node = rfl_net_in_place(r.b, *node);
	return rig_finish(&r, *node, op == RFL_OP_GATHER);
}

/* 192 features to 10 logits. */
static inline struct rfl_net *classifier(enum rfl_loss loss)
{
	struct rig r = rig_new();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int logits = rfl_linear(r.b, rfl_flatten(r.b, r.x), "head", 10, false);

	r.b->loss = loss;
	assert_ok(rfl_net_finish(r.b, logits, &net, &err), &err);
	return net;
}

#endif
