/*
 * summary.h - one network (a model at one context length, or a user's own) counted in inference and
 * in training, with its memory, by module, layer or kind of operation, at one batch at a time:
 * rfl_summary_at() moves it to the next without allocating.
 *
 * Pairs are indexed by `training`: [0] is of an inference, [1] of a training step.
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
	/** Batch, training and storage are set by the summary. */
	struct rfl_memory_options work;
	bool unwanted[2]; /**< not counted, because only the other is shown */
	bool memory;      /**< account for memory as well */
	enum rfl_summary_by by;
	int depth;                            /**< of modules, at least 1 */
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
	const char *kind; /**< of operation; "" for a group */
	char output[64];  /**< shape per sample; "" for a group */
	int64_t params;
	int64_t saved_bytes; /**< kept for the backward pass; 0 without options.memory */
	bool step_only;      /**< the loss and the optimizer: no part of an inference */
	struct rfl_summary_work work[2];
};

/** The row of each node is found once, the sums are computed at every batch. */
struct rfl_summary_rows {
	size_t n;
	struct rfl_summary_row *rows;
	struct rfl_summary_row total; /**< of all rows; step_only rows are in its training */
	size_t *row_of;               /**< of each node, then of the loss and of the update */
	struct rfl_attained *times;
	struct rfl_arena *arena; /**< owns everything above, this struct included */
};

/** The largest batch and context that fit into a memory; see rfl_summary_fit(). */
struct rfl_fit {
	bool training;         /**< of a training step, else of an inference */
	int64_t bytes;         /**< of memory for tensors */
	int64_t batch;         /**< the largest that fits at the summary's context; 0: none */
	struct rfl_memory at;  /**< at that batch, or at batch 1 when none fits; no nodes */
	int64_t next_peak;     /**< at one sample more; -1: not counted, beyond 63 bits */
	char peak_at[96];      /**< the operation at the peak */
	bool has_context;      /**< a language model whose context is free: the next four hold */
	int64_t context_batch; /**< the batch of the search for a context */
	int64_t context;       /**< the largest context that fits; 0: none */
	int64_t context_peak;  /**< at that context */
	int64_t context_limit; /**< where the search ended */
};

/** The most tokens that a search for the largest context tries. */
#define RFL_FIT_MAX_CONTEXT (INT64_C(1) << 20)

/** One network. The members after `batch` are valid while batch is not 0. */
struct rfl_summary {
	struct rfl_summary_options options; /**< a copy; what it borrows stays borrowed */
	const struct rfl_zoo_model *model;  /**< NULL: a user's own network */
	const char *name, *title, *about;   /**< of the model, or of the user's network */
	struct rfl_net *net;
	int64_t context_length;       /**< tokens; 0: it reads images */
	bool counted;                 /**< `one` is filled */
	struct rfl_count one[2];      /**< at batch 1, so per sample; their `nodes` are NULL */
	struct rfl_fit *fit;          /**< NULL unless rfl_summary_fit() was called */
	int64_t batch;                /**< of the members below */
	struct rfl_count *count[2];   /**< NULL if unwanted */
	struct rfl_memory *memory[2]; /**< NULL if unwanted, or without options.memory */
	struct rfl_summary_rows *rows;
};

/**
 * Build a model. It is counted when it is first moved to a batch.
 * @param options  borrowed pointers in it must outlive the summary
 * @param ret      set on success only; release with rfl_summary_free()
 * @return RFL_OK, or the failure of rfl_zoo_build()
 */
enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for a user's own network. @param take_net  taken, also on failure */
enum rfl_rc rfl_summary_of_net(struct rfl_net *take_net, const struct rfl_summary_options *options,
			       struct rfl_summary **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_summary_free(struct rfl_summary *s);

/**
 * Move a summary to a batch. Allocates only the first time.
 * @return RFL_OK; RFL_EINVAL for an unknown precision; RFL_EOVERFLOW, naming the node; the
 * summary is then at no batch; RFL_ENOMEM
 */
enum rfl_rc rfl_summary_at(struct rfl_summary *s, int64_t batch,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** From now on count inference and training; the summary is at some batch afterwards. */
enum rfl_rc rfl_summary_want_both(struct rfl_summary *s, struct rfl_err *err) RFL_WARN_UNUSED;

/** Sum the work of every row at the summary's batch, the times under options.roof. */
void rfl_summary_sum(struct rfl_summary *s);

/** Release the memory used for counting; the next rfl_summary_at() allocates it again. */
void rfl_summary_rest(struct rfl_summary *s);

/**
 * Find the largest batch whose peak is at most `bytes`, and for a language model the largest
 * context at `context_batch`. The result is s->fit.
 * @param s  made with options.memory
 */
enum rfl_rc rfl_summary_fit(struct rfl_summary *s, bool training, int64_t bytes,
			    int64_t context_batch, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the peak of one sample with each option that is not in use yet, and with all of them
 * together: " These options would help: --checkpoint 1 (peak 3 GiB), ...", or nothing. */
enum rfl_rc rfl_summary_fit_help(const struct rfl_summary *s, struct rfl_buf *text,
				 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
