/* parts.h - declarations shared by merge*.c and counters_*.c; private to roofline/. */
#ifndef RFL_ROOFLINE_PARTS_H
#define RFL_ROOFLINE_PARTS_H

#include "base/alloc.h"
#include "ledger/repeats.h"
#include "roofline/merge.h"
#include "roofline/roofline.h"

/** Limits for measured / counted FLOPs; ratios outside them are doubtful. */
#define RFL_COUNTERS_LEAST_RATIO 0.5
#define RFL_COUNTERS_MOST_RATIO  2.0
/** Limit for measured / unfused bytes; ratios above it are doubtful. */
#define RFL_COUNTERS_MOST_BYTES 4.0
/** If the coverage of the kernel time is lower, counters are only used on request. */
#define RFL_COUNTERS_COVERAGE 0.95
/** Why there is no arithmetic intensity although both are known. */
#define RFL_COUNTERS_APART "FLOPs and bytes are from different launches"

/* Texts below belong to the arena of the merge; "" if there is nothing to say. */

/** FLOPs or bytes of a step, over the captures that counted them. */
struct rfl_measure {
	double value, lo, hi; /**< per step; NaN: unknown */
	enum rfl_validity validity;
	double coverage; /**< share of the time in which they were counted; NaN: unknown */
	const char *why; /**< why they are unknown or doubtful */
	bool given;      /**< not counted, but given by the user or the program */
};

/** The counters of a configuration. */
struct rfl_measured {
	struct rfl_measure flops, bytes;
	struct rfl_measure l2, l1;      /**< bytes of the caches */
	enum rfl_quantity l2_as, l1_as; /**< the definition of these bytes */
	double ai; /**< FLOP per byte; NaN: unknown or from different launches */
	double part[RFL_QUANTITY_COUNT]; /**< parts of the FLOPs, per step; NaN: unknown */
	bool any;                        /**< a capture belongs to the configuration */
	bool refused;                    /**< not counted; the reason contains the fix */
	bool doubtful; /**< measured and counted work disagree: see `doubt` and `causes` */
	bool sure;     /**< the number of steps comes from the capture or was given for its label */
	bool process;  /**< counted over a whole process, including set-up */
	bool no_steps; /**< counted, but the number of steps is unknown */
	int64_t steps; /**< number of steps by which totals are divided; -1: unknown */
	int64_t repeats;
	char source[48];
	double zero_share;     /**< share of kernel time in kernels without FLOPs; NaN: unknown */
	double expected_share; /**< share of FLOPs in the precision of the run; NaN: unknown */
	enum rfl_quantity foreign; /**< largest part in another precision */
	const char *zero_kernels;  /**< names and shares of these kernels, longest time first */
	const char *zero_longest;  /**< the first few of them */
	const char *doubt, *causes, *note;
};

/** The source of the number of steps of a capture. */
enum rfl_steps_from {
	RFL_STEPS_UNKNOWN,
	RFL_STEPS_OWN,     /**< the capture, which was counted live */
	RFL_STEPS_LABEL,   /**< an option for this label */
	RFL_STEPS_LEDGER,  /**< window of the row with this label */
	RFL_STEPS_PROCESS, /**< window and warm-up, for counts of a whole process */
	RFL_STEPS_GIVEN,   /**< an option for all captures without another source */
	RFL_STEPS_CAPTURE, /**< without a ledger, the whole capture is one step */
};

/** A capture that belongs to a configuration. */
struct rfl_joined {
	const struct rfl_capture *capture;
	const struct rfl_run *home; /**< run with its label, or NULL */
	int64_t steps;              /**< -1: unknown */
	int64_t number;             /**< of the repeat, from its label; -1: unknown */
	enum rfl_steps_from from;
	bool left_out;       /**< duplicate of another capture, with --keep-going */
	const char *unknown; /**< why the number of steps is unknown */
};

/** A kernel or layer of a step. */
struct rfl_part {
	const char *name; /**< borrowed; without "fwd/" and "bwd/" */
	size_t index;     /**< of its first range in the capture */
	/** Sums over the launches of a capture; `launches` and the time may come from another. */
	struct rfl_amounts_sum sum;
	double fwd_s, bwd_s;               /**< the parts of the time of a layer; NaN: none */
	const struct rfl_work_layer *work; /**< as counted from the network; NULL: not counted */
};

/** The kernels of a configuration, longest time first, or its layers in the order of the step. */
struct rfl_parts {
	enum rfl_range_kind kind;
	size_t n;
	struct rfl_work_layers work; /**< empty for kernels and unknown networks */
	struct rfl_part *parts;
	const struct rfl_joined *counted; /**< the capture with their FLOPs or bytes, or `timed` */
	const struct rfl_joined *timed;   /**< the capture with their times */
};

struct rfl_config {
	const char *env;
	const struct rfl_ledger_row *row; /* shared by all runs; without label */
	const struct rfl_repeat *runs;    /* borrowed from the repeats */
	size_t nruns;                     /* 0: without a ledger */
	struct rfl_stats rate;            /* samples per second, over the repeats */
	const struct rfl_peaks_env *penv; /* NULL until resolved */
	const char *key; /* key of its ceiling; NULL: backend and precision have none */
	const struct rfl_peak *compute, *dram;
	double sheet_clock_hz; /* of its device; NaN: unknown */
	struct rfl_work work;
	bool missing;    /* a value is missing, so there is no point */
	bool is_program; /* a row of 'roofline profile': counters are its only work */

	/* captures that belong to it; the same as the captures of `alike` */
	struct rfl_joined *counted;
	size_t ncounted;
	bool own_counters; /* its own runs were counted, so counts of equal work are not used */
	/* an earlier configuration of equal work with the same captures; NULL: none */
	struct rfl_config *alike;
	size_t name;             /* equal for the same env, model, precision, mode and batch */
	struct rfl_config *next; /* the next that has its name and may share captures */
	const struct rfl_measured *measured; /* not NULL */
	bool flops_counted, bytes_counted;   /* counters are used for the point */
	const char *flops_why, *bytes_why;   /* why existing counters are not used */
	struct rfl_parts parts;              /* empty unless points of parts were requested */
};

/** Missing values in order of appearance, without duplicates. */
struct rfl_missing {
	size_t n;
	size_t of_counters; /* number of values that a peaks file cannot supply */
	struct rfl_missing_fact *facts;
};

/** Runs by a name: label or run_id. */
struct rfl_bearers {
	size_t n;
	struct rfl_bearer {
		const char *name;
		const struct rfl_run *run;
	} * list; /**< sorted by name, then in the order of the ledger */
};

/** A merge in progress. */
struct rfl_merge_job {
	const struct rfl_merge_inputs *in;
	const struct rfl_merge_options *options;
	struct rfl_merge_report *report;
	struct rfl_arena *arena; /**< of the points; owns everything below but the repeats */
	struct rfl_repeats *repeats;
	size_t n;
	struct rfl_config *configs;
	struct rfl_missing missing;
	size_t nprograms;                 /* without FLOPs or bytes */
	const struct rfl_config *program; /* the first of them */
	const char *program_why;
	struct rfl_bearers labels, ids; /**< to find the runs of captures */
};

/** Format a text in the arena of the merge. */
const char *rfl_merge__text(struct rfl_merge_job *job, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Copy a buffer into the arena of the merge, and release it. */
char *rfl_merge__keep(struct rfl_merge_job *job, struct rfl_buf *take_text);

/** A copy of a text for a point; NULL for NULL and "". */
static inline char *rfl_merge__copy(struct rfl_merge_job *job, const char *text)
{
	return text && *text ? rfl_arena_strdup(job->arena, text) : NULL;
}

/** Allocate points with unknown values; release with free(). */
struct rfl_point *rfl_point__array(size_t n) RFL_WARN_UNUSED;

/** The number of roofs of a step: one per GPU, or one per machine, because the processes of
 * `--world N` share its CPUs. 0: the number of machines is unknown. */
int64_t rfl_merge__roofs(const struct rfl_ledger_row *row);

/** The number of processes of a run under one roof. */
int64_t rfl_merge__processes(const struct rfl_ledger_row *row);

/** The number of samples of a step under one roof. */
int64_t rfl_merge__batch(const struct rfl_ledger_row *row);

/** Record that a configuration lacks a value: "compute.fp32.vector (unknown: not measured)".
 * @param fix  the commands that supply the value */
void rfl_missing_add(struct rfl_merge_job *job, struct rfl_config *config, const char *fact,
		     const char *fix);

/** Write one line per value, with the runs that need it and its fix, or only the values if `brief`
 * is set. There is no final newline. */
void rfl_missing_text(const struct rfl_missing *m, bool brief, struct rfl_buf *out);

/**
 * Append the problem with a ceiling and its fix if the environment is not in the file, or if the
 * cell is missing (peak is NULL) or unusable.
 * @param on           the backend of the runs, for --backend; NULL: unknown
 * @param unsupported  the fix for a cell that the device does not support
 */
void rfl_missing_ceiling(const struct rfl_peaks *peaks, const char *env, const char *key,
			 const struct rfl_peak *peak, const char *on, const char *unsupported,
			 struct rfl_buf *fact, struct rfl_buf *fix);

/** Make a configuration of each capture, without a ledger (merge_captures.c). */
void rfl_merge__captures(struct rfl_merge_job *job);

/** The clock of a GPU over these amounts; NaN: unknown. */
double rfl_merge__clock(const struct rfl_capture *c, const struct rfl_amount *amount);

/** Find the two ceilings of a configuration, or record the missing values. */
void rfl_merge__roof(struct rfl_merge_job *job, struct rfl_config *config);

/** The name of a capture for messages: its file, else its label. */
const char *rfl_counters__name(const struct rfl_capture *c);

/** The flops_source or bytes_source of an amount of a capture. @param given  by the user or the
 * program */
const char *rfl_counters__source(const struct rfl_capture *c, bool given);

/** Assign captures to configurations, or note why a capture has none (counters_join.c). */
void rfl_counters__join(struct rfl_merge_job *job);

/** Find the number of steps of a capture, and its source. */
void rfl_counters__steps(struct rfl_merge_job *job, struct rfl_joined *counted);

/** Return true if it covers a whole process, not a range of steps. */
bool rfl_counters__whole_process(const struct rfl_joined *counted);

/** Set m->doubtful if measured and counted work disagree, m->doubt to the disagreement and
 * m->causes to its likely causes. FLOPs and bytes are per step; NaN: not counted. */
void rfl_counters__doubt(struct rfl_merge_job *job, const struct rfl_joined *counted,
			 const struct rfl_work *work, double flops, double bytes,
			 struct rfl_measured *m, struct rfl_buf *note);

/** The counters of a configuration without captures. */
extern const struct rfl_measured rfl_counters__none;

/** Combine the captures of a configuration (counters_measure.c). RFL_EFORMAT names two captures of
 * the same quantity; with in->counters.keep_going, one of them is omitted instead. */
enum rfl_rc rfl_counters__measure(struct rfl_merge_job *job, struct rfl_config *config,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** The FLOPs of a kernel or layer. NaN: not all of its precisions were counted; `why` is then set
 * to the reason, else to "". */
double rfl_counters__flops(struct rfl_merge_job *job, const struct rfl_config *config,
			   const struct rfl_range *r, const char **why);

/** Find the kernels or layers of a configuration in its captures. If there are none, parts.n is 0.
 * @param query  describes the step with the layers to count */
enum rfl_rc rfl_parts__find(struct rfl_merge_job *job, struct rfl_config *config,
			    const struct rfl_work_query *query,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** The definition of the bytes of a cache: `usual`, unless only ncu's hierarchical roofline is
 * known. */
enum rfl_quantity rfl_counters__cache_as(const struct rfl_amount *amount, enum rfl_quantity usual);

/** The source of FLOPs or bytes, with the reason why existing counters are not used, or "". */
char *rfl_merge__source(struct rfl_merge_job *job, const char *source, const char *why);

/** Replace the points of the configurations without missing values by the points of their parts. */
void rfl_parts__points(struct rfl_merge_job *job, struct rfl_points *points);

/** The key of the ceiling for a part of the FLOPs. NULL: the part has mixed precision. */
const char *rfl_merge__ceiling_of(enum rfl_quantity part);

/** Choose between counts and counters, or record that counters requested by the user are
 * missing. */
void rfl_merge__choose(struct rfl_merge_job *job, struct rfl_config *config);

/** Fill in all columns of a point from a configuration with work and roof. */
void rfl_merge__point(struct rfl_merge_job *job, const struct rfl_config *config,
		      struct rfl_point *p);

#endif
