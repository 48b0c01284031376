/*
 * work.h - the FLOPs and bytes of one step of a configuration, counted from its network or read
 * from the output of `roofline complexity`.
 */
#ifndef RFL_ROOFLINE_WORK_H
#define RFL_ROOFLINE_WORK_H

#include "base/alloc.h"
#include "base/buf.h"
#include "complexity/count.h"
#include "complexity/peer.h"

/** The FLOPs of a training step: counted for each pass, or a multiple of the forward FLOPs, as in
 * older reports. */
enum rfl_train_factor { RFL_TRAIN_EXACT, RFL_TRAIN_2, RFL_TRAIN_3 };

/** "exact", "2", "3", NULL. */
extern const char *const rfl_train_factor_names[];

/** A step, described by values from the ledger. */
struct rfl_work_query {
	const char *model, *precision, *mode;
	const char *optimizer;       /**< only used in mode train */
	bool no_momentum;            /**< sgd without a momentum buffer */
	int64_t batch;               /**< samples per optimizer step, of all processes */
	int64_t processes;           /**< each of which makes the update; 0 and -1: one */
	int64_t micro_batch;         /**< samples per forward pass; -1: all of the process */
	int64_t accum;               /**< forward passes per step of a process; 0 and -1: one */
	int64_t image_size, classes; /**< -1: default of the model */
	int64_t context_length;      /**< tokens; 0 or -1: default of the model */
	/** In modes decode and prefill: tokens in the cache, the steps of the run, and whether the
	 * weights are stored as int8. The work is the mean of the steps; `model` is one of
	 * complexity/lm.h, or `net_file` a configuration. */
	int64_t past, steps;
	bool int8_weights;
	const char *attention;                    /**< one of rfl_attention_names; NULL: auto */
	enum rfl_fused_attention fused_attention; /**< of the engine that ran it */
	bool planned;                             /**< run by the planned engine */
	bool grad_clip; /**< the gradients are clipped before the update */
	bool autocast;  /**< weights, their gradients and the optimizer state are fp32 */
	enum rfl_train_factor factor;
	/** Use the FLOPs of a forward pass as another counter prints them; NULL: counted. Training
	 * then needs a factor. */
	const struct rfl_peer *as;
	/** A network file (roofline.net/1) that is the model; "": not at hand; NULL: the zoo's. */
	const char *net_file;
};

struct rfl_work {
	double flops;                   /**< per step; core count, 2 per multiply-add */
	double bytes[RFL_FUSION_COUNT]; /**< per step; NaN: unknown */
	double plan_bytes;              /**< of the planned engine's steps; NaN: another engine */
	char flops_source[160];
};

/** A layer of a step: a module or a functional step over all passes, the loss, or the update
 * ("opt"). Nodes with the same name are one layer. */
struct rfl_work_layer {
	const char *name; /**< as in captures of layers, without "fwd/" and "bwd/" */
	double flops;
	double bytes[RFL_FUSION_COUNT]; /**< compulsory: NaN, because it belongs to the whole step
					 */
};

struct rfl_work_layers {
	size_t n;
	struct rfl_work_layer *layers; /**< sorted by name */
	const char *flops_source;      /**< a string literal */
};

/** Count the layers of a step from the network; their FLOPs and unfused and fused bytes add up to
 * the result of rfl_work_count().
 * @param arena  gets the layers
 * @param ret    set on success only */
enum rfl_rc rfl_work_count_layers(const struct rfl_work_query *query, struct rfl_arena *arena,
				  struct rfl_work_layers *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** A file written by `roofline complexity`. */
struct rfl_work_file;

/** Load the file. @param ret  set on success only; release with rfl_work_file_free() */
enum rfl_rc rfl_work_file_load(const char *path, struct rfl_work_file **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_work_file_free(struct rfl_work_file *file); /* accepts NULL */
RFL_AUTOPTR_TYPE(work_file, free);

/**
 * Count a step.
 * @param file  NULL: count the network. Otherwise, counts in the file are used if it has the model;
 * they are compared with the network if the program knows the model.
 * @param notes  one line per disagreement is appended
 * @return RFL_OK; RFL_EMISSING: neither the file nor the program knows the model; RFL_EINVAL:
 * unsupported mode, precision or optimizer; RFL_EOVERFLOW
 */
enum rfl_rc rfl_work_count(const struct rfl_work_query *query, const struct rfl_work_file *file,
			   struct rfl_buf *notes, struct rfl_work *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
