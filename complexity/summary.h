/*
 * summary.h - one network (a model at one context length, or a user's own) counted in inference and
 * training, with its memory, by module, layer or kind of operation, at one batch size at a time;
 * rfl_summary_at() moves it to another without allocating.
 *
 * Pairs are indexed by `training`: [0] is an inference, [1] a training step.
 */
#ifndef RFL_COMPLEXITY_SUMMARY_H
#define RFL_COMPLEXITY_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "complexity/count.h"
#include "complexity/count/memory.h"
#include "complexity/net.h"
#include "complexity/zoo.h"

/** How operations are grouped into rows: one per model, per module (the first `depth` parts of the
 * path), per operation in order of execution, or per kind of operation. */
enum rfl_summary_by {
	RFL_SUMMARY_BY_MODEL,
	RFL_SUMMARY_BY_MODULE,
	RFL_SUMMARY_BY_LAYER,
	RFL_SUMMARY_BY_KIND
};

/** "model", "module", "layer", "kind", NULL. */
extern const char *const rfl_summary_by_names[];

struct rfl_summary_options {
	struct rfl_zoo_options sizes;
	const char *precision; /**< one of rfl_precision_names */
	/** The summary sets batch, training and storage. */
	struct rfl_memory_options work;
	bool unwanted[2]; /**< not counted, because it is not shown */
	bool memory;      /**< also compute memory */
	enum rfl_summary_by by;
	int depth;                            /**< depth of modules, at least 1 */
	const struct rfl_attained_roof *roof; /**< NULL: no times; borrowed */
};

/** The work of a row. */
struct rfl_summary_work {
	int64_t macs, elementwise, bytes[RFL_FUSION_COUNT];
	int64_t pass_macs[RFL_PASS_COUNT];
	struct rfl_attained attained; /**< zeros without a roof */
};

struct rfl_summary_row {
	const char *name; /**< of the model, module, layer or kind */
	const char *kind; /**< the operation; "" for a group */
	char output[64];  /**< output shape per sample; "" for a group */
	int64_t params;
	int64_t saved_bytes; /**< kept for the backward pass; 0 without options.memory */
	bool step_only;      /**< the loss and the optimizer, not part of an inference */
	struct rfl_summary_work work[2];
};

/** The row of each node is found once; the sums are computed for every batch. */
struct rfl_summary_rows {
	size_t n;
	struct rfl_summary_row *rows;
	struct rfl_summary_row
		total;  /**< sum of all rows; its training part includes step_only rows */
	size_t *row_of; /**< per node, then for the loss and the update */
	struct rfl_attained *times;
	struct rfl_arena *arena; /**< owns everything above, including this struct */
};

/** The largest batch and context that fit into a memory; see rfl_summary_fit(). */
struct rfl_fit {
	bool training; /**< in a training step, otherwise in an inference */
	int64_t bytes; /**< available for tensors */
	int64_t batch; /**< the largest that fits at the summary's context; 0: none */
	struct rfl_memory
		at;        /**< memory at that batch, or at batch 1 if none fits; without nodes */
	int64_t next_peak; /**< peak with one more sample; -1: not counted, above 63 bits */
	char peak_at[96];  /**< the operation at the peak */
	bool has_context;  /**< a language model with a free context; the next four are valid */
	int64_t context_batch; /**< batch used to search for a context */
	int64_t context;       /**< the largest that fits; 0: none */
	int64_t context_peak;  /**< peak at that context */
	int64_t context_limit; /**< the end of the search range */
};

/** The maximum number of tokens in a search for the largest context. */
#define RFL_FIT_MAX_CONTEXT (INT64_C(1) << 20)

/** One network. The members after `batch` are valid if batch is not 0. */
struct rfl_summary {
	struct rfl_summary_options options; /**< a copy; its borrowed pointers stay borrowed */
	const struct rfl_zoo_model *model;  /**< NULL: a user's own network */
	const char *name, *title, *about;   /**< of the model or the user's network */
	struct rfl_net *net;
	int64_t context_length;       /**< tokens; 0: an image model */
	bool counted;                 /**< whether `one` is filled */
	struct rfl_count one[2];      /**< counts at batch 1, that is per sample; `nodes` is NULL */
	struct rfl_fit *fit;          /**< NULL before rfl_summary_fit() */
	int64_t batch;                /**< batch of the members below */
	struct rfl_count *count[2];   /**< NULL if unwanted */
	struct rfl_memory *memory[2]; /**< NULL if unwanted or without options.memory */
	struct rfl_summary_rows *rows;
};

/**
 * Build a model. It is counted on the first rfl_summary_at().
 * @param options  borrowed pointers in it must outlive the summary
 * @param ret      set on success only; release with rfl_summary_free()
 * @return RFL_OK, or the failure of rfl_zoo_build()
 */
enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Build the summary of a user's own network. */
struct rfl_summary *rfl_summary_of_net(struct rfl_net *take_net,
				       const struct rfl_summary_options *options) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_summary_free(struct rfl_summary *s);
RFL_AUTOPTR_TYPE(summary, free);

/**
 * Move a summary to a batch size. Allocates only the first time.
 * @return RFL_OK; RFL_EINVAL for an unknown precision; RFL_EOVERFLOW, naming the node, which leaves
 * no current batch
 */
enum rfl_rc rfl_summary_at(struct rfl_summary *s, int64_t batch,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Count both inference and training from now on, starting at batch 1 if necessary. */
enum rfl_rc rfl_summary_want_both(struct rfl_summary *s, struct rfl_err *err) RFL_WARN_UNUSED;

/** Sum the work of every row at the summary's batch, and the times under options.roof. */
void rfl_summary_sum(struct rfl_summary *s);

/** Release the memory used for counting; the next rfl_summary_at() allocates it again. */
void rfl_summary_rest(struct rfl_summary *s);

/**
 * Find the largest batch with a peak of at most `bytes` and, for a language model, the largest
 * context at `context_batch`. The result is s->fit.
 * @param s  created with options.memory
 */
enum rfl_rc rfl_summary_fit(struct rfl_summary *s, bool training, int64_t bytes,
			    int64_t context_batch, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the options with which one sample fits, " It fits with --precision bf16 (peak 3,072.0
 * MiB), or ...", or the peak with all options that lower it. Nothing if none does. */
enum rfl_rc rfl_summary_fit_help(const struct rfl_summary *s, struct rfl_buf *text,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
