/*
 * net_build.h - how a zoo file writes a network down. Not for those who only read nets.
 *
 * Every call adds one operation and returns its tensor: the index of a node. The first call that
 * cannot be right (a shape dies, memory is short) makes the builder fail; the calls after it do
 * nothing, and rfl_net_finish() reports the failure once, naming the layer:
 *
 *	x = rfl_net_input(b, 3, 224, 224);
 *	x = rfl_conv2d(b, x, "conv1", 64, .kernel = 7, .stride = 2, .pad = 3);
 *	x = rfl_batch_norm(b, x, "bn1");
 *	x = rfl_relu(b, x, "relu", RFL_INPLACE);
 *
 * Parameters are created with their operation, so the order of the calls is the order of the
 * state_dict.
 */
#ifndef RFL_COMPLEXITY_NET_BUILD_H
#define RFL_COMPLEXITY_NET_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_net_builder;

/** Whether an operation may overwrite its first input, as the published model does. */
enum rfl_inplace { RFL_OUT_OF_PLACE, RFL_INPLACE };

/** A new builder, or NULL when memory is short. @param model, family  copied */
struct rfl_net_builder *rfl_net_builder_new(const char *model, const char *family) RFL_WARN_UNUSED;

/** For a net that is given up. Accepts NULL. */
void rfl_net_builder_free(struct rfl_net_builder *b);

/**
 * Turn the builder into a net.
 *
 * @param take_b   released, also on failure; NULL is a builder that had no memory
 * @param output   the tensor of the logits, one dimension per sample
 * @param ret      set on success only; release with rfl_net_free()
 * @return RFL_OK, or the builder's first failure
 */
enum rfl_rc rfl_net_finish(struct rfl_net_builder *take_b, int output, struct rfl_net **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The shape of a tensor per sample; all zeros when the builder has failed. */
struct rfl_shape rfl_net_shape(const struct rfl_net_builder *b, int x);

/** Elements of the first dimension: the channels of an image. */
int64_t rfl_net_channels(const struct rfl_net_builder *b, int x);

/** Names until the matching leave are relative to this block: "layer1.0" makes "layer1.0.conv1". */
void rfl_net_enter(struct rfl_net_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);
void rfl_net_leave(struct rfl_net_builder *b);

/** eps and momentum of the batch norms that follow; before the first call 1e-5 and 0.1. */
void rfl_net_batch_norm_defaults(struct rfl_net_builder *b, double eps, double momentum);

/** The image. Must be the first call. */
int rfl_net_input(struct rfl_net_builder *b, int64_t channels, int64_t height, int64_t width);

/** 0 stands for 1 in stride, dilation and groups. The _h and _w members win over the square ones.
 */
struct rfl_conv2d_args {
	int64_t kernel, kernel_h, kernel_w;
	int64_t stride, stride_h, stride_w;
	int64_t pad, pad_h, pad_w;
	int64_t dilation;
	int64_t groups;
	bool bias;
};
int rfl_net_conv2d(struct rfl_net_builder *b, int x, const char *name, int64_t out_channels,
		   const struct rfl_conv2d_args *args);
#define rfl_conv2d(b, x, name, out_channels, ...) \
	rfl_net_conv2d((b), (x), (name), (out_channels), &(struct rfl_conv2d_args){ __VA_ARGS__ })

/** stride 0 stands for the kernel size. */
struct rfl_pool_args {
	int64_t kernel, stride, pad;
	bool ceil_mode;
};
int rfl_net_max_pool(struct rfl_net_builder *b, int x, const char *name,
		     const struct rfl_pool_args *args);
#define rfl_max_pool(b, x, name, ...) \
	rfl_net_max_pool((b), (x), (name), &(struct rfl_pool_args){ __VA_ARGS__ })

int rfl_batch_norm(struct rfl_net_builder *b, int x, const char *name);
int rfl_relu(struct rfl_net_builder *b, int x, const char *name, enum rfl_inplace inplace);
int rfl_relu6(struct rfl_net_builder *b, int x, const char *name, enum rfl_inplace inplace);
int rfl_dropout(struct rfl_net_builder *b, int x, const char *name, double probability);
int rfl_linear(struct rfl_net_builder *b, int x, const char *name, int64_t out_features, bool bias);

/** @param name  NULL where the model calls the function, not a module */
int rfl_adaptive_avg_pool(struct rfl_net_builder *b, int x, const char *name, int64_t out_h,
			  int64_t out_w);

/* Functional steps: they carry the path of the block that runs them. */
int rfl_flatten(struct rfl_net_builder *b, int x);
int rfl_add(struct rfl_net_builder *b, int x, int y, enum rfl_inplace inplace);

#ifdef __cplusplus
}
#endif
#endif
