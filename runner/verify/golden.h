/*
 * golden.h - reference files: PyTorch's results, in float32 and in double, for a network filled
 * with the formula of fill.h. A logits file has one forward in eval mode and optionally one with
 * batch statistics and gradients; a train file has a few training steps, in sections. Weights are
 * not stored.
 *
 * Unknown fields are ignored; a missing field is an error that names the file and the field's path.
 */
#ifndef RFL_RUNNER_GOLDEN_H
#define RFL_RUNNER_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/zoo.h"
#include "runner/engine.h"

struct rfl_golden_matrix {
	int64_t rows, columns;
	double *values; /**< rows * columns */
};

/** The results of one forward: the first logits of the first rows, and sums over all logits. */
struct rfl_golden_forward {
	struct rfl_golden_matrix logits; /**< the first columns of the first rows */
	int64_t nargmax, *argmax;        /**< per row */
	double sum, l2, loss;
	double max_abs_diff_fp32; /**< over all logits, between PyTorch's float32 and double */
	double min_margin;        /**< between the two largest logits; NaN if absent */
};

/** The output of one layer. */
struct rfl_golden_layer {
	const char *name;
	int64_t numel; /**< elements of the whole batch */
	double l2;
};

/** Gradients of the mean cross entropy in training mode without dropout, in double. */
struct rfl_golden_gradient {
	double auxiliary_weight; /**< weight of the auxiliary heads' losses; 0: no heads */
	double loss;
	double loss_abs_diff_fp32; /**< deviation of PyTorch's float32 loss */
	int64_t n;
	double *each; /**< l2 of each trained parameter's gradient */
	/** Largest relative deviation of PyTorch's float32 among gradients of at least a hundredth
	 * of the largest. */
	double max_rel_diff_fp32;
};

/** The results of PyTorch's own autocast to bfloat16, in one mode. */
struct rfl_golden_cast {
	struct rfl_golden_matrix logits;
	double l2, loss;
};

/* X(id, name): the norms that summarise a training run, over all parameters unless the name
 * specifies a subset; delta is the difference from the start. */
#define RFL_GOLDEN_NORMS(X)                          \
	X(GRAD_FIRST, "grad_l2_first_step0")         \
	X(GRAD_LAST, "grad_l2_last_step0")           \
	X(GRAD_ALL, "grad_l2_all_step0")             \
	X(PARAM_BEFORE, "param_l2_before")           \
	X(PARAM_STEP1, "param_l2_after_step1")       \
	X(DELTA_STEP1, "delta_l2_after_step1")       \
	X(PARAM_AFTER, "param_l2_after")             \
	X(DELTA_AFTER, "delta_l2_after")             \
	X(PARAM_FIRST_AFTER, "param_l2_first_after") \
	X(PARAM_LAST_AFTER, "param_l2_last_after")   \
	X(RUNNING_MEAN, "running_mean_l2_after")     \
	X(RUNNING_VAR, "running_var_l2_after")

#define RFL_GOLDEN_NORM_ID(id, name) RFL_GOLDEN_##id,
enum rfl_golden_norm { RFL_GOLDEN_NORMS(RFL_GOLDEN_NORM_ID) RFL_GOLDEN_NORM_COUNT };

/** "grad_l2_first_step0", ...: in the order of the enum. */
extern const char *const rfl_golden_norm_names[];

/** The results of one training run. */
struct rfl_golden_run {
	int64_t nlosses; /**< one before each step, one after the last */
	double *losses;
	struct rfl_golden_matrix logits; /**< of the first step */
	int64_t ngrads;
	double *grads;                       /**< l2 of each trained parameter's first gradient */
	double norms[RFL_GOLDEN_NORM_COUNT]; /**< NaN if the network lacks it */
};

/** One section of a train file. */
struct rfl_golden_section {
	const char *name; /**< "sgd", "sgd_gentle", "sgd_frozen_bn", "adamw" */
	struct rfl_optimizer optimizer;
	enum rfl_engine_mode mode;
	struct rfl_golden_run fp32, fp64;
};

struct rfl_golden {
	const char *path; /**< as given */
	const char *model;
	bool is_train;
	int64_t batch;
	int64_t channels, height, width; /**< size of images */
	int64_t tokens;                  /**< tokens per sample; 0: images */
	enum rfl_attention attention;    /**< the attention implementation in the network */
	struct {
		int64_t params, tensors, classes;
		struct rfl_golden_forward fp64; /**< eval mode */
		bool has_batch_stats;
		struct rfl_golden_forward batch_stats; /**< double, batch statistics */
		bool has_gradient;
		struct rfl_golden_gradient gradient;
		bool has_bf16;
		struct rfl_golden_cast bf16_eval, bf16_train;
		int64_t nbf16;
		double *bf16_each;               /**< like gradient.each */
		int64_t nlayers;                 /**< 0: no trace */
		struct rfl_golden_layer *layers; /**< modules in call order, eval mode, fp32 */
	} logits;                                /**< contents of a logits file */
	struct {
		int64_t nparams;
		const char **param_names; /**< trained parameters in order */
		int64_t nsections;
		struct rfl_golden_section *sections;
	} train;                 /**< contents of a train file */
	struct rfl_arena *arena; /**< owns everything above, this struct included */
};

/**
 * Read a reference file of either kind.
 * @param ret  set on success only; release with rfl_golden_free()
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT naming file and path
 */
enum rfl_rc rfl_golden_load(const char *path, struct rfl_golden **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_golden_free(struct rfl_golden *golden);
RFL_AUTOPTR_TYPE(golden, free);

#endif
