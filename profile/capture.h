/*
 * capture.h - the results of a source or an importer: ranges with metrics and quantities.
 *
 * A capture is built launch by launch (rfl_capture_builder). Launches of the same kind, name, block
 * and grid share one range, so the size of a capture does not depend on the number of launches.
 */
#ifndef RFL_PROFILE_CAPTURE_H
#define RFL_PROFILE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/formula.h"
#include "profile/profile.h"

enum rfl_range_kind {
	RFL_RANGE_KERNEL, /**< all launches of a GPU kernel */
	RFL_RANGE_STEP,   /**< a training step */
	RFL_RANGE_PHASE,  /**< fwd, bwd, opt */
	RFL_RANGE_LAYER,  /**< fwd/conv1, bwd/conv1, ... */
	RFL_RANGE_OP, /**< all calls of an operator of PyTorch, without the operators it calls */
	RFL_RANGE_PROCESS, /**< a whole process or region: perf, time, likwid */
	RFL_RANGE_IDLE,    /**< no activity of this run: counts other programs; not in totals */
	/** A copy or a GEMM of known size; not in totals. Its metrics are
	 * "selftest.<quantity>.known", ".measured" and ".ratio". */
	RFL_RANGE_SELF_TEST,
};
/** "kernel", "step", "phase", "layer", "op", "process", "idle", "self-test", NULL. */
extern const char *const rfl_range_kind_names[];

/** How the values of several launches are combined; derived from the name of the metric. */
enum rfl_rollup { RFL_ROLLUP_SUM, RFL_ROLLUP_MAX, RFL_ROLLUP_MIN, RFL_ROLLUP_MEAN };
/** "sum", "max", "min", "mean", NULL. */
extern const char *const rfl_rollup_names[];

enum rfl_validity {
	RFL_VALID,          /**< counted in full */
	RFL_VALID_SCALED,   /**< multiplexed: scaled to the whole time */
	RFL_VALID_ESTIMATE, /**< derived from rounded or indirect values; `reason` explains how */
	RFL_VALID_PARTIAL,  /**< a lower bound: a part was not counted */
	RFL_VALID_MARKED,   /**< the self-test of this capture was off by more than 2 % */
	RFL_VALID_UNAVAILABLE, /**< no value (NaN), with a reason */
};
/** "ok", "scaled", "estimate", "partial", "marked", "unavailable", NULL: from best to worst. */
extern const char *const rfl_validity_names[];

/** A raw metric in SI base units, combined over the launches of its range. */
struct rfl_metric {
	const char *name; /**< "dram__bytes_read.sum" */
	const char *unit; /**< "byte", "s", "Hz", "%", "" */
	enum rfl_rollup rollup;
	enum rfl_validity validity;
	double value;       /**< NaN: unavailable */
	int64_t launches;   /**< launches with a value */
	int pass;           /**< pass of a live source, from 0; -1: unknown */
	const char *reason; /**< why it is unavailable, or a caveat; NULL: none */
};

/** A quantity of a range or of a capture. If any launch of the range (or of the ranges in a total)
 * has no value, `validity` is RFL_VALID_PARTIAL or worse. */
struct rfl_amount {
	double value; /**< NaN: unavailable */
	enum rfl_validity validity;
	int64_t launches;   /**< launches with a value */
	const char *rule;   /**< the formula; NULL: none */
	const char *reason; /**< why it is unavailable, or a caveat; NULL: none */
};

/** A requested set of counters that could not be counted at all. */
struct rfl_refusal {
	const char *set; /**< one of rfl_counter_set_names (profile/source.h), or RFL_REFUSED_ALL */
	const char *reason;
};

/** The value of `set` for a file that only states why nothing was counted. */
#define RFL_REFUSED_ALL "all"

struct rfl_range {
	enum rfl_range_kind kind;
	const char *name;         /**< a kernel, or "step", "fwd", "bwd/layer1.0.conv1", ... */
	const char *block, *grid; /**< "(32, 32, 1)"; NULL: unknown */
	int64_t launches;
	size_t nmetrics;
	const struct rfl_metric *metrics; /**< used by a formula, or all on request */
	struct rfl_amount amount[RFL_QUANTITY_COUNT];
};

/** One file of another profiler, or the counted steps of one run. */
struct rfl_capture {
	struct rfl_arena *arena; /**< owns everything, this struct included */
	const char *label;    /**< label of the run; by default the file name without its suffix */
	const char *path;     /**< the imported file; NULL: counted live */
	const char *source;   /**< "cupti", "perf", "ncu", "nvprof", "nsys", "torch", ... */
	const char *run_id;   /**< NULL: unknown */
	const char *time_utc; /**< ISO 8601; NULL: unknown */
	const char *device;   /**< NULL: unknown */
	const char *chip;     /**< "GH100"; NULL: unknown */
	const char *family;   /**< chip family of the formulas */
	int64_t steps;        /**< training steps that the totals cover; -1: unknown */
	int64_t passes;       /**< runs of the workload for these steps; -1: unknown */
	int64_t unused_metrics; /**< metrics of the file that no formula uses */
	size_t nranges;
	const struct rfl_range *ranges;
	struct rfl_amount total[RFL_QUANTITY_COUNT]; /**< sums over the ranges of `total_kind` */
	enum rfl_range_kind total_kind;
	size_t nrefusals;
	const struct rfl_refusal *refusals; /**< sets that could not be counted */
	size_t nnotes;
	const char *const *notes; /**< for the user, one line each */
	int64_t rows_left_out;    /**< unreadable rows that were skipped (keep_going) */
};

/** A list that owns its captures, in the order in which they were added. */
struct rfl_captures {
	size_t n, cap;
	const struct rfl_capture **captures;
};
void rfl_captures_init(struct rfl_captures *c);
void rfl_captures_fini(struct rfl_captures *c);

/** Append the names of all sets refused for the same reason as the i-th: "core, flops". Returns
 * false and appends nothing if an earlier refusal has the same reason. */
bool rfl_capture_refused_alike(const struct rfl_capture *c, size_t i, struct rfl_buf *sets);

/** The number of launches of all ranges of `total_kind`. */
int64_t rfl_capture_launches_of_total(const struct rfl_capture *c);
/** Whether the source counts GPUs. */
bool rfl_capture_is_of_gpu(const struct rfl_capture *c);
/** Instructions per cycle of a CPU. NaN for GPUs, which count the cycles of one SM only. */
double rfl_capture_ipc(const struct rfl_capture *c);

/** Arithmetic intensity in FLOP/byte: flops.total / dram_bytes. NaN if either is unknown, if no
 * byte was moved, or if the two cover different launches. */
double rfl_amounts_ai(const struct rfl_amount amount[RFL_QUANTITY_COUNT]);
/** Why rfl_amounts_ai() is NaN. */
const char *rfl_amounts_no_ai(const struct rfl_amount *amount);

/** The largest part of the FLOPs; RFL_QUANTITY_COUNT: none. */
enum rfl_quantity rfl_amounts_most_flops(const struct rfl_amount *amount);

/** Whether the user or the program gave the value, so that it was not counted. */
bool rfl_amount_is_given(const struct rfl_amount *a);

struct rfl_amounts_sum {
	struct rfl_amount amount[RFL_QUANTITY_COUNT];
	int64_t launches;
};

/** Begin a sum in which nothing is known. */
void rfl_amounts_clear(struct rfl_amounts_sum *sum);
/** Add the amounts of a range or capture with this number of launches. If a quantity is unknown for
 * some of the launches, the sum is a lower bound. */
void rfl_amounts_add(struct rfl_amounts_sum *sum, const struct rfl_amount *amount,
		     int64_t launches);

void rfl_captures_total(const struct rfl_captures *captures, struct rfl_amounts_sum *ret);

/** The fraction (0 to 1) of the launches of a range that have a value for `q`. */
double rfl_range_share(const struct rfl_range *r, enum rfl_quantity q);

/** The fraction (0 to 1) of the time of all ranges of `total_kind` spent in launches that have a
 * value for `q`; NaN if no time is known. */
double rfl_capture_coverage(const struct rfl_capture *c, enum rfl_quantity q);

/** Set the label, run id and time of a capture. Strings are copied; NULL: unchanged. */
void rfl_capture_identify(struct rfl_captures *c, size_t i, const char *label, const char *run_id,
			  const char *time_utc);

/** Remove the totals of a capture that covers only a part of a run; its ranges stay. */
void rfl_capture_of_part(struct rfl_captures *c, size_t i, const char *reason);

enum rfl_kernel_class {
	RFL_KERNEL_MATRIX, /**< GEMM, convolution, attention */
	RFL_KERNEL_NORMALISATION,
	RFL_KERNEL_OPTIMIZER,
	RFL_KERNEL_REDUCTION,
	RFL_KERNEL_POOLING,
	RFL_KERNEL_ELEMENTWISE,
	RFL_KERNEL_COPY,
	RFL_KERNEL_COLLECTIVE,
	RFL_KERNEL_OTHER,
	RFL_KERNEL_CLASSES,
};

/** "GEMMs", "elementwise", ... */
extern const char *const rfl_kernel_class_names[];

/** Classify a kernel by its name, mangled or not; template arguments, if any, are checked last. */
enum rfl_kernel_class rfl_kernel_classify(const char *name);

struct rfl_capture_builder;

struct rfl_capture_spec {
	const char *source; /**< required; all strings are copied */
	const char *label, *path;
	const char *formulas; /**< chip or family; NULL: "any", until rfl_capture_chip() */
	bool all_metrics;     /**< also keep metrics that no formula uses */
};

struct rfl_capture_builder *
rfl_capture_builder_new(const struct rfl_capture_spec *spec) RFL_WARN_UNUSED;
/** Instead of rfl_capture_finish(). */
void rfl_capture_builder_free(struct rfl_capture_builder *b); /* accepts NULL */

/** Name the device, and use the formulas of a known chip; either may be NULL. Without effect after
 * rfl_capture_metric_id() and the first launch. */
void rfl_capture_chip(struct rfl_capture_builder *b, const char *chip, const char *device);

/** Return the id of a metric in an SI base unit. -1: the metric is not kept but counted as unused.
 */
int rfl_capture_metric_id(struct rfl_capture_builder *b, const char *name, size_t len,
			  const char *unit);

/** Begin one launch of a kernel, or one range, and end the previous one: its quantities are derived
 * and added to its range. If there are too many ranges, rfl_capture_finish() fails. */
void rfl_capture_begin(struct rfl_capture_builder *b, enum rfl_range_kind kind, const char *name,
		       const char *block, const char *grid);
/** Declare that the values that follow are totals over n launches. Default: 1. */
void rfl_capture_launches(struct rfl_capture_builder *b, int64_t n);

enum rfl_given { RFL_GIVEN_NEW, RFL_GIVEN_AGAIN, RFL_GIVEN_DIFFERS };
/** Set a metric of the current launch; the first value wins. NaN: unavailable, as are infinities.
 * `reason` must stay valid until the builder is freed. */
enum rfl_given rfl_capture_metric(struct rfl_capture_builder *b, int metric, double value,
				  enum rfl_validity validity, int pass, const char *reason);
/** Look up the id of a metric and set its value. */
enum rfl_given rfl_capture_put(struct rfl_capture_builder *b, const char *name, const char *unit,
			       double value, enum rfl_validity validity, int pass,
			       const char *reason);

/** The sum of a quantity over the ranges of a kind so far, the current one included, which ends.
 * NaN: unknown. */
double rfl_capture_so_far(struct rfl_capture_builder *b, enum rfl_range_kind kind,
			  enum rfl_quantity q);

/** Add a note of one line, unless the capture already has it. */
void rfl_capture_note(struct rfl_capture_builder *b, const char *fmt, ...) RFL_PRINTF(2, 3);
/** Record that a requested set could not be counted at all; strings are copied. */
void rfl_capture_refuse(struct rfl_capture_builder *b, const char *set, const char *reason);
void rfl_capture_steps(struct rfl_capture_builder *b, int64_t steps, int64_t passes);
void rfl_capture_left_out(struct rfl_capture_builder *b, int64_t rows);

/** End the last launch, compute the totals and the reasons, apply the traps of the formulas, append
 * the capture to `to`, and free the builder, also after a failure. RFL_EOVERFLOW: too many ranges.
 */
enum rfl_rc rfl_capture_finish(struct rfl_capture_builder *b, struct rfl_captures *to,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- logs/counters.csv: each row is one metric or quantity of one range of one run. The writer,
 * the reader and the documentation test use the same list of columns. ---- */

#define RFL_COUNTERS_SCHEMA 1

/* X(KIND, name, meaning). An empty cell means unknown. The first row of a capture has the kind
 * "capture"; totals follow, then ranges, refusals and notes. If a range has no row for a quantity,
 * the quantity is unavailable there for the same reason as in the total. */
/* clang-format off */
#define RFL_COUNTER_COLUMNS(X) \
	X(INT, schema_version, "version of this list of columns") \
	X(TEXT, label, "label of the run") \
	X(TEXT, run_id, "id of the run, as in the ledger") \
	X(TEXT, timestamp_utc, "time of the capture, ISO 8601") \
	X(TEXT, source, "cupti, perf, ncu, nvprof, nsys, rocprof, time, likwid or torch") \
	X(TEXT, file, "imported file; empty if counted live") \
	X(TEXT, device, "device name") \
	X(TEXT, chip, "chip of the GPU, such as GH100") \
	X(TEXT, family, "chip family of the formulas") \
	X(INT, steps, "training steps that the values cover") \
	X(INT, passes, "number of runs of the workload") \
	X(TEXT, range_kind, "kernel, step, phase, layer, op, process, idle, self-test; total: over all ranges") \
	X(TEXT, range, "name of the kernel, phase or layer; for a total: the kind of its ranges") \
	X(TEXT, block, "threads per block") \
	X(TEXT, grid, "blocks per grid") \
	X(INT, launches, "number of launches in the range") \
	X(TEXT, kind, "capture: first row of a capture; metric: raw value; quantity: derived by a formula; refusal: set that could not be counted; note: remark") \
	X(TEXT, metric, "name of the metric or quantity; for other kinds: rows_left_out (capture), the set (refusal), unused_metrics (note)") \
	X(SIGNED, value, "value in SI base units; empty if unavailable") \
	X(TEXT, unit, "byte, s, FLOP, ...") \
	X(TEXT, rollup, "sum, max, min or mean over the launches") \
	X(INT, counted_launches, "number of launches with a value") \
	X(INT, pass, "number of the pass that counted the value, from 0") \
	X(TEXT, validity, "ok, partial, scaled, estimate, marked or unavailable") \
	X(TEXT, rule, "formula of a quantity") \
	X(TEXT, reason, "why the value is unavailable, or a caveat")
/* clang-format on */

/** Append captures as CSV rows, preceded by the header line if `header` is set. */
void rfl_counters_write(struct rfl_buf *out, const struct rfl_captures *captures, bool header);

/** Append captures to a file with rfl_csv_append_rows(). */
enum rfl_rc rfl_counters_append(const char *path, const struct rfl_captures *captures,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Check before a run that rows can be added: the file is absent, empty, or has this header. */
enum rfl_rc rfl_counters_check(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append the captures of a file, or of `text` if not NULL. Messages name file, line and column. */
enum rfl_rc rfl_counters_load(const char *path, const char *text, size_t len,
			      struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;
/** The same for an open input. */
struct rfl_input;
enum rfl_rc rfl_counters_read(struct rfl_input *in, struct rfl_captures *to,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
