/*
 * work.h - what one step of a configuration does: FLOPs and bytes, counted from the network that
 * the run executed, or taken from the file that `roofline complexity` wrote.
 */
#ifndef RFL_ROOFLINE_WORK_H
#define RFL_ROOFLINE_WORK_H

#include "base/buf.h"
#include "complexity/count.h"

/** How the FLOPs of a training step are made: counted pass by pass, or a multiple of the forward
 * FLOPs as older reports have it. */
enum rfl_train_factor { RFL_TRAIN_EXACT, RFL_TRAIN_2, RFL_TRAIN_3 };

/** "exact", "2", "3", NULL. */
extern const char *const rfl_train_factor_names[];

/** A step, in the words of the ledger. */
struct rfl_work_query {
	const char *model, *precision, *mode;
	const char *optimizer;       /**< of mode train; else not used */
	bool no_momentum;            /**< of sgd: no buffer is read and written */
	int64_t batch;               /**< samples per optimizer step */
	int64_t micro_batch, accum;  /**< samples per forward, forwards per step; -1: one forward */
	int64_t image_size, classes; /**< -1: the model's own */
	int64_t context_length;      /**< tokens; 0 or -1: the model's own */
	bool autocast; /**< weights, their gradients and the optimizer's state are fp32 */
	enum rfl_train_factor factor;
};

struct rfl_work {
	double flops;                   /**< of a step, core count, 2 per MAC */
	double bytes[RFL_FUSION_COUNT]; /**< of a step; NaN where it cannot be counted */
	const char *flops_source;       /**< a literal */
};

/** Counts of a file written by `roofline complexity`. */
struct rfl_work_file;

/** Load the file. @param ret  set on success only; release with rfl_work_file_free() */
enum rfl_rc rfl_work_file_load(const char *path, struct rfl_work_file **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_work_file_free(struct rfl_work_file *file); /* accepts NULL */

/**
 * Count a step.
 * @param file   NULL: count the network of that name. Else the file's numbers are used where it has
 *               the model, and compared with our own where the program knows the model.
 * @param notes  one line per disagreement is appended, ended by a newline
 * @return RFL_OK; RFL_EMISSING when neither file nor program knows the model; RFL_EINVAL for a
 * mode, precision or optimizer that cannot be counted; RFL_EOVERFLOW; RFL_ENOMEM
 */
enum rfl_rc rfl_work_count(const struct rfl_work_query *query, const struct rfl_work_file *file,
			   struct rfl_buf *notes, struct rfl_work *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
