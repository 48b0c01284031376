/*
 * summary.h - one network (a model at one context length, or a user's own) counted in inference and
 * in training, at one batch at a time: rfl_summary_at() moves it to the next without allocating.
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
#include "complexity/peer.h"
#include "complexity/zoo.h"

/** How rows are gathered: one per model, per module (the first `depth` parts of the path), per
 * operation in order of execution, or per kind of operation. */
enum rfl_by { RFL_BY_MODEL, RFL_BY_MODULE, RFL_BY_LAYER, RFL_BY_KIND };

/** "model", "module", "layer", "kind", NULL: in the order of enum rfl_by. */
extern const char *const rfl_by_names[];

/** What the least time of some work is spent waiting for. */
enum rfl_limit {
	RFL_LIMIT_COMPUTE, /**< multiply-adds of convolutions and matrix products */
	RFL_LIMIT_VECTOR,  /**< elementwise operations */
	RFL_LIMIT_MEMORY,  /**< DRAM traffic */
	RFL_LIMIT_COUNT
};

/** "compute", "vector", "memory", NULL. */
extern const char *const rfl_limit_names[];

/** The least time of some work, split by what bounds its parts: the time is the sum. */
struct rfl_attained {
	double limit_s[RFL_LIMIT_COUNT];
};

/** The sum over all limits. */
double rfl_attained_time(const struct rfl_attained *a);

/** The limit that most of the time goes to; RFL_LIMIT_COUNT when there is no time at all. */
enum rfl_limit rfl_attained_bound(const struct rfl_attained *a);

/** A machine, as the caller knows it: complexity/ has no ceilings of its own. */
struct rfl_summary_roof {
	/**
	 * The least time of every node, then of the loss, then of the update; the last two are left
	 * out of an inference.
	 * @param times  count->nnodes + 2, zeroed
	 */
	void (*attain)(const struct rfl_summary_roof *roof, const struct rfl_count *count,
		       struct rfl_attained *times);
	const char *about;      /**< one line for people: the environment and its ceilings */
	const char *env;        /**< its name */
	enum rfl_fusion fusion; /**< the bytes that stand against its bandwidth */
};

struct rfl_summary_options {
	struct rfl_zoo_options sizes;
	const int64_t *batches; /**< borrowed */
	size_t nbatches;
	const char *precision; /**< one of rfl_precision_words */
	enum rfl_optimizer_kind optimizer;
	bool input_grad, causal_half, auxiliary;
	int64_t checkpoint;        /**< blocks per segment; 0: none */
	int64_t accumulate;        /**< passes per update; 0 is 1 */
	const char *const *frozen; /**< borrowed paths of modules that are not trained */
	size_t nfrozen;
	bool memory; /**< account for memory as well */
	/** Count inference and training at every batch, whichever tables show; documents do. */
	bool both;
	enum rfl_memory_device device;
	enum rfl_update update;
	enum rfl_by by;
	int depth;  /**< of modules, at least 1 */
	bool train; /**< tables show a training step, not an inference */
	int fusion; /**< the one level that tables show; -1: all */
	/** Rows of a model and batch that tables show, most MACs first; 0: all, in order. */
	size_t top;
	const char *const *columns; /**< keys of what tables show; NULL: what suits the rest */
	size_t ncolumns;
	const struct rfl_summary_roof *roof; /**< NULL: no times; borrowed */
	const struct rfl_peer *const *peers; /**< counters to compare with; borrowed */
	size_t npeers;
};

/** "fp32", "tf32", "amp", "bf16", "fp16", NULL. */
extern const char *const rfl_precision_words[];

/** What a precision means for the counts: element size, and weights kept in F32 (amp).
 * RFL_EINVAL for another word. */
enum rfl_rc rfl_precision_storage(const char *precision, enum rfl_dtype *dtype,
				  bool *master_weights, struct rfl_err *err) RFL_WARN_UNUSED;

/** The options of a count that a summary's options stand for, at batch 1 and in inference.
 * RFL_EINVAL for an unknown precision. */
enum rfl_rc rfl_summary_count_options(const struct rfl_summary_options *options,
				      struct rfl_count_options *ret,
				      struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_summary_rows;
struct rfl_fit;

/** One network. What is below `batch` is there while batch is not 0. */
struct rfl_summary {
	struct rfl_summary_options options; /**< a copy; what it borrows stays borrowed */
	const struct rfl_zoo_model *model;  /**< NULL: a user's own network */
	const char *name, *title, *about;   /**< of the model, or of the user's network */
	struct rfl_net *net;
	int64_t context_length; /**< tokens; 0: it reads images */
	bool counted;           /**< the next two are filled */
	/** At batch 1, so per sample; their `nodes` are NULL. */
	struct rfl_count one_forward, one_training;
	struct rfl_fit *fit; /**< NULL unless rfl_summary_fit() was called */
	int64_t batch;       /**< what the rest is at */
	/** Forward is NULL where options.train is set, training where it is not, but for both. */
	struct rfl_count *forward, *training;
	/** Of an inference and of a training step; NULL unless options.memory is set and tables, or
	 * documents, show them. */
	struct rfl_memory *forward_memory, *training_memory;
	struct rfl_summary_rows *rows; /**< of options.by */
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
 * Move a summary to a batch. Nothing is allocated but the first time.
 * @return RFL_OK; RFL_EINVAL for options that do not suit the network; RFL_EOVERFLOW names the node
 */
enum rfl_rc rfl_summary_at(struct rfl_summary *s, int64_t batch,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** From now on count inference and training; the summary is at some batch afterwards. */
enum rfl_rc rfl_summary_want_both(struct rfl_summary *s, struct rfl_err *err) RFL_WARN_UNUSED;

/** Give back what the counting needs; the next rfl_summary_at() makes it again. */
void rfl_summary_rest(struct rfl_summary *s);

/** The work of a row: of one inference, or of one training step. */
struct rfl_summary_work {
	int64_t macs, elementwise, bytes[RFL_FUSION_COUNT];
	int64_t pass_macs[RFL_PASS_COUNT];
	struct rfl_attained attained; /**< zeros without a roof */
};

struct rfl_summary_row {
	const char *name; /**< of the model, module, layer or kind */
	const char *kind; /**< of operation; "" where several are gathered */
	char output[64];  /**< shape per sample; "" where several are gathered */
	int64_t params;
	int64_t saved_bytes; /**< kept for the backward pass; 0 without options.memory */
	bool step_only;      /**< the loss and the optimizer: no part of an inference */
	struct rfl_summary_work forward, training;
};

/** The rows of a summary: which nodes go where is found once, the sums are made at every batch. */
struct rfl_summary_rows {
	size_t n;
	struct rfl_summary_row *rows;
	/** Of all rows; step_only rows are in its training. */
	struct rfl_summary_row total;
	size_t *row_of; /**< of each node, then of the loss and of the update */
	struct rfl_attained *times;
	struct rfl_arena *arena; /**< owns everything above, this struct included */
};

/**
 * Gather the nodes of a network into rows. Rows of a training step add up to the step: the loss and
 * the optimizer are the last two.
 * @param ret  set on success only; release with rfl_summary_rows_free(), before the summary
 */
enum rfl_rc rfl_summary_rows_new(const struct rfl_summary *s, enum rfl_by by, int depth,
				 struct rfl_summary_rows **ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_summary_rows_free(struct rfl_summary_rows *rows); /* accepts NULL */

/** Sum the work of every row at the summary's batch. @param roof  NULL: no times */
void rfl_summary_rows_update(struct rfl_summary_rows *rows, const struct rfl_summary *s,
			     const struct rfl_summary_roof *roof);

/** What of a network fits into a memory; see rfl_summary_fit(). */
struct rfl_fit {
	bool training;         /**< of a training step, else of an inference */
	int64_t bytes;         /**< that it may take */
	int64_t batch;         /**< the largest that fits at the summary's context; 0: none */
	struct rfl_memory at;  /**< at that batch, or at batch 1 when none fits; no nodes */
	int64_t next_peak;     /**< at one sample more; -1: not counted, beyond 63 bits */
	char peak_at[96];      /**< the operation at the peak */
	bool has_context;      /**< a language model whose context is free: the next three hold */
	int64_t context_batch; /**< the batch that the context was looked for at */
	int64_t context;       /**< the largest context that fits; 0: none */
	int64_t context_peak;  /**< at that context */
	int64_t context_limit; /**< where the search ended */
};

/** The most tokens that a search for the largest context tries. */
#define RFL_FIT_MAX_CONTEXT (INT64_C(1) << 20)

/**
 * Find the largest batch whose peak is at most `bytes`, and for a language model the largest
 * context at `context_batch`. The result is s->fit.
 * @param s  made with options->memory
 */
enum rfl_rc rfl_summary_fit(struct rfl_summary *s, const struct rfl_summary_options *options,
			    int64_t bytes, int64_t context_batch,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Append what each option that is not in use yet would make of the peak of one sample, and all of
 * them together: " What would help: --checkpoint 1 (peak 3 GiB), ...", or nothing. */
enum rfl_rc rfl_summary_fit_help(const struct rfl_summary *s, struct rfl_buf *text,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Parameters, buffers and 16-bit copies at the batch of a fit. */
int64_t rfl_fit_weights(const struct rfl_fit *fit);

/** Our own count of one forward pass of one sample, in the unit that a counter means; of a summary
 * that was counted. */
int64_t rfl_summary_core(const struct rfl_summary *s, const struct rfl_peer *peer);

/** A counter's total. @param why  filled where its rule is not closed for this network; RFL_OK */
enum rfl_rc rfl_summary_peer(struct rfl_summary *s, const struct rfl_peer *peer, int64_t *total,
			     struct rfl_err *why, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
