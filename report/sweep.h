/*
 * sweep.h - runs of language models or attentions over sizes, contexts and settings as one table:
 * what the ledger has of them, next to what was counted from the network.
 */
#ifndef RFL_REPORT_SWEEP_H
#define RFL_REPORT_SWEEP_H

#include "base/alloc.h"
#include "base/stats.h"
#include "ledger/ledger.h"
#include "peaks/peaks.h"
#include "report/table.h"

/** One configuration: what it costs, and what its runs took. Unknown numbers are NaN or
 * RFL_INT_UNKNOWN. */
struct rfl_sweep_row {
	const char *env, *model;
	const char *precision, *attention; /**< as on the command line */
	const char *dtype;                 /**< the precision in the words of PyTorch */
	int64_t features;                  /**< of an attention */
	const char *form;                  /**< of attention as it ran; NULL: no attention */
	const char *mode, *optimizer;      /**< optimizer: NULL if not in mode train */
	bool clips;                        /**< the norm of the gradients is limited */
	double grad_clip;                  /**< to this; NaN: it is not */
	int64_t context, batch, warmup, runs;
	bool graph, profile_memory;
	const char *status; /**< of the last run; "refused": never started; "missing" */
	const char *device; /**< NULL: unknown */
	const char *reason; /**< why it is not ok; NULL: it is */
	/* Seconds per step, over the steps of all runs that are ok: not the step time at the mean
	 * rate. `both` is forward + backward. */
	struct rfl_stats forward, backward, both, optimizer_step, step;
	struct {
		double forward, backward, step;
	} deviation; /**< std / mean of these */
	double samples_per_s, tokens_per_s;
	/* counted; model_flops without what the backward pass repeats */
	double model_flops, flops, bytes;
	/* predicted bytes: inputs, parameters and state; with what is kept after the forward pass;
	 * with gradients instead, after the backward pass; the peak */
	double memory_model, memory_forward, memory_backward, memory_peak;
	double memory_of_forward;  /**< memory_forward - memory_model */
	double memory_of_backward; /**< memory_peak - memory_forward */
	double measured_peak;      /**< allocated bytes; NaN on a CPU without --profile-memory */
	/* allocated bytes before, after forward, backward and update of a profiled step */
	double measured_model, measured_forward, measured_backward, measured_optimizer;
	double ratio; /**< measured_peak / memory_peak */
	double flop_per_s, ai, mfu;
	double flop_per_s_lo, flop_per_s_hi;
	const char *bound;      /**< as of a point; before a run, the lower ceiling; NULL: no
				   ceilings */
	const char *mfu_reason; /**< why there is no MFU; NULL: there is */
	double speedup_forward, speedup_step;
	const struct rfl_sweep_row *base; /**< to which they refer; NULL: none */
	const char *cell;                 /**< id in the ledger; NULL: refused */
};

struct rfl_sweep {
	size_t n;
	struct rfl_sweep_row *rows;
	bool in_report; /**< warm-ups are compared with the least one; more columns than a terminal
			 */
	bool complete;  /**< its tables have ids of cells and reasons, for programs */
	bool narrow;    /**< the main columns, for a terminal or a report */
	struct rfl_arena *arena;
};

/** A run of a row. */
struct rfl_sweep_run {
	const struct rfl_ledger_row *row;
	const char *steps; /**< table of its steps; NULL: use the means in the ledger */
};

/** A setting to compare. */
enum rfl_sweep_by {
	RFL_SWEEP_BY_NONE,
	RFL_SWEEP_BY_PRECISION,
	RFL_SWEEP_BY_ATTENTION,
	RFL_SWEEP_BY_GRAPH,
	RFL_SWEEP_BY_WARMUP,
};
/** "none", "precision", "attention", "cuda-graph", "warmup-iters", NULL. */
extern const char *const rfl_sweep_settings[];

/** What two rows differ in: bits, the first in the order of enum rfl_sweep_by. */
enum {
	RFL_SWEEP_OTHER_PRECISION = 1,
	RFL_SWEEP_OTHER_ATTENTION = 2,
	RFL_SWEEP_OTHER_GRAPH = 4,
	RFL_SWEEP_OTHER_WARMUP = 8,
	RFL_SWEEP_OTHER_SIZE = 16, /**< model or context */
	RFL_SWEEP_OTHER_REST = 32, /**< environment, mode, batch size, optimizer or clipping */
};
unsigned rfl_sweep_differs(const struct rfl_sweep_row *a, const struct rfl_sweep_row *b);

/** Set everything to unknown, status to "missing". */
void rfl_sweep_row_init(struct rfl_sweep_row *r);

/** Count the network of a row. One that cannot be built refuses the row if it has not run.
 * @param last  a run of the row, for the device and the kernels; NULL: none
 * @param cuda  without a run: whether it is for a GPU */
void rfl_sweep_count(struct rfl_sweep *s, struct rfl_sweep_row *r,
		     const struct rfl_ledger_row *last, bool cuda);

/** Fill in a row from its runs, and count it again. A table of steps that cannot be read is omitted
 * with a warning. */
void rfl_sweep_collect(struct rfl_sweep *s, struct rfl_sweep_row *r,
		       const struct rfl_sweep_run *runs, size_t n);

/** Find the place of all rows under the roof of their environment. @param peaks  NULL: none */
void rfl_sweep_place(struct rfl_sweep *s, const struct rfl_peaks *peaks);

/** Speed-ups over the rows that differ only in one setting, which has its first value there. */
void rfl_sweep_compare(struct rfl_sweep *s, enum rfl_sweep_by by);

void rfl_sweep_fini(struct rfl_sweep *s);

enum rfl_sweep_table {
	RFL_SWEEP_LM,
	RFL_SWEEP_ATTENTION,
	RFL_SWEEP_SPEEDUPS, /**< rows with a speed-up over a different row */
	RFL_SWEEP_MEMORY,   /**< predicted and measured memory */
};

/** The table, with a note for each reason in the rows. LM and ATTENTION have
 * all columns or, if s->narrow, the main ones, as all others do.
 * @param by  LM and ATTENTION: the setting of the columns of speed-ups; NONE: without them */
struct rfl_table *rfl_sweep_table(const struct rfl_sweep *s, enum rfl_sweep_table kind,
				  enum rfl_sweep_by by) RFL_WARN_UNUSED;

/** Whether a model is one of the attention benchmark, "attention_d64". */
bool rfl_sweep_is_attention(const char *model);

#endif
