/*
 * graph.h - convolutions as execution plans of cuDNN. Needs no device: plans can be made for one
 * that is only described.
 */
#ifndef RFL_RUNNER_PLANNED_CUDA_GRAPH_H
#define RFL_RUNNER_PLANNED_CUDA_GRAPH_H

#include "complexity/plan/plan.h"
#include "runner/planned/cuda/arguments.h"
#include "runner/planned/cuda/cudnn.h"

/** The library, and the device that plans are made for. */
struct rfl_cudnn {
	struct rfl_cudnn_functions calls;
	struct rfl_dl *dl;
	struct rfl_cudnn_handle *handle; /**< NULL: not started */
	rfl_cudnn_descriptor device;     /**< the described one; NULL: the handle's */
	char version[32];                /**< "9.19.0" */
};

/** Open cuDNN 9. RFL_EUNAVAILABLE with the reason and the fix.
 * @param device_json  the properties of the device to describe, as cuDNN's JSON; NULL: none */
enum rfl_rc rfl_cudnn_open(const char *device_json, struct rfl_cudnn **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;
/** Use the device of the current context, and queue work in the stream. */
enum rfl_rc rfl_cudnn_start(struct rfl_cudnn *lib, struct rfl_cuda_stream *stream,
			    struct rfl_err *err);
void rfl_cudnn_close(struct rfl_cudnn *lib); /* accepts NULL */

/** RFL_OK for 0; otherwise the failure of a call, with cuDNN's own message. */
enum rfl_rc rfl_cudnn_check(const struct rfl_cudnn *lib, int status, const char *what,
			    struct rfl_err *err);

/** A convolution over NHWC images: weights are out x kernel x in / groups (KRSC). A GEMM is one
 * over images of 1 x 1. */
struct rfl_conv {
	enum rfl_plan_pass pass;
	int64_t batch, groups;
	int64_t channels[2];   /**< in, out */
	int64_t in[2], out[2]; /**< heights and widths */
	int64_t kernel[2], stride[2], dilation[2], pad[2];
	bool bias, relu; /**< FORWARD: add a bias, then ReLU */
};

/** The convolution of a step CONV or LINEAR. */
struct rfl_conv rfl_conv_of(const struct rfl_plan *plan, int step);

/** What a plan may use. */
struct rfl_conv_rules {
	/** Of images, weights, biases and the gradients of these; sums are float32. */
	enum rfl_value type;
	bool tf32;          /**< float32 may be multiplied with 10 bits of mantissa */
	bool wide_gradient; /**< dW is float32; cuDNN 9.19 has no such plan for 16-bit images */
	bool deterministic;
	int64_t workspace; /**< at most so many bytes */
};

/** The tensors of a plan, by the ids of its variant pack. */
enum rfl_conv_tensor { RFL_CONV_X = 1, RFL_CONV_W, RFL_CONV_Y, RFL_CONV_B };

struct rfl_conv_plan {
	rfl_cudnn_descriptor plan;
	int64_t workspace;
};

/**
 * Make the execution plans for a convolution, the one that cuDNN's heuristics expect to be the
 * fastest first.
 * @param most  stop after so many
 * @param n     their number: at least 1 on success
 * @return RFL_OK; RFL_EUNSUPPORTED: cuDNN has none within the rules
 */
enum rfl_rc rfl_conv_plans(const struct rfl_cudnn *lib, const struct rfl_conv *conv,
			   const struct rfl_conv_rules *rules, int most,
			   struct rfl_conv_plan *plans, int *n, struct rfl_err *err);

/** Queue a plan. X and Y are dx and dy, W is dw in the passes that write them. */
enum rfl_rc rfl_conv_run(const struct rfl_cudnn *lib, const struct rfl_conv_plan *plan,
			 const void *x, const void *w, const void *y, const void *bias,
			 void *workspace, struct rfl_err *err);

#endif
