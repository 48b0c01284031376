/*
 * parts.h - what the files merge_*.c and counters_*.c share; private to the room.
 */
#ifndef RFL_ROOFLINE_PARTS_H
#define RFL_ROOFLINE_PARTS_H

#include "ledger/repeats.h"
#include "roofline/merge.h"
#include "roofline/roofline.h"

/* ---- what counters measured ---- */

/** Outside of these the measured FLOPs over the counted ones are in doubt. */
#define RFL_COUNTERS_LEAST_RATIO 0.5
#define RFL_COUNTERS_MOST_RATIO  2.0
/** Measured bytes over those of operation after operation: more is in doubt. */
#define RFL_COUNTERS_MOST_BYTES 4.0
/** Less than this share of the kernels' time counted: not taken unless asked for. */
#define RFL_COUNTERS_COVERAGE 0.95

/** FLOPs or bytes of a step, over the captures that counted them. */
struct rfl_measure {
	double value, lo, hi; /**< per step; NaN: not known */
	enum rfl_validity validity;
	double coverage; /**< share of the time in which it was counted; NaN: not known */
	char why[560];   /**< why it is not known, or in doubt; "" else */
};

/** What counters measured of a configuration. */
struct rfl_measured {
	struct rfl_measure flops, bytes;
	double ai; /**< FLOP per byte; NaN: not known, or they are not of the same launches */
	double part[RFL_QUANTITY_COUNT]; /**< the terms of the FLOPs, per step; NaN: not known */
	bool any;                        /**< a capture belongs to the configuration */
	bool refused;  /**< it could not be counted, and the reason says what to do */
	bool doubtful; /**< measured and counted do not fit: `doubt` and its `causes` */
	bool sure;     /**< the steps are the capture's own, or were given for it by its label */
	bool process;  /**< counted over a whole process: setup and others are in it */
	bool no_steps; /**< what was counted cannot be brought to one step */
	int64_t steps; /**< that the totals were divided by; -1: not known */
	int64_t repeats;
	char source[48];
	double zero_share;           /**< of the kernels' time; NaN: not known */
	double expected_share;       /**< of the FLOPs, in the run's own precision; NaN */
	enum rfl_quantity foreign;   /**< the largest part in another precision */
	struct rfl_buf zero_kernels; /**< all of them, with their shares, longest first */
	struct rfl_buf zero_longest; /**< the first few */
	struct rfl_buf doubt, causes, note;
};

/** Who says how many steps a capture covers. */
enum rfl_steps_from {
	RFL_STEPS_UNKNOWN,
	RFL_STEPS_OWN,     /**< the capture itself: counted live */
	RFL_STEPS_LABEL,   /**< the user, for this label */
	RFL_STEPS_LEDGER,  /**< the window of the row that has its label */
	RFL_STEPS_PROCESS, /**< the same with its warm-up: a whole process was counted */
	RFL_STEPS_GIVEN,   /**< the user, for all captures whose steps nothing else says */
};

/** A capture that belongs to a configuration. */
struct rfl_joined {
	const struct rfl_capture *capture;
	const struct rfl_run *home; /**< the run that has its label; NULL */
	int64_t steps;              /**< -1: not known */
	enum rfl_steps_from from;
	bool left_out;     /**< it counts what another one counts, and the user said to continue */
	char unknown[200]; /**< why the steps are not known */
};

/* ---- configurations (merge.c) ---- */

/** A configuration: its repeats, its work, its roof, its counters. */
struct rfl_config {
	const char *env;
	const struct rfl_ledger_row *row; /* stands for all runs; the label is theirs */
	const struct rfl_repeat *runs;    /* borrowed from the repeats */
	size_t nruns;
	struct rfl_stats rate;            /* samples per second, over the repeats */
	const struct rfl_peaks_env *penv; /* NULL until resolved */
	const char *key; /* of its ceiling; NULL: its backend and precision have none */
	const struct rfl_peak *compute, *dram;
	struct rfl_work work;
	struct rfl_joined *counted; /* captures that are of it; owned */
	size_t ncounted, counted_cap;
	struct rfl_measured measured;
	bool flops_counted, bytes_counted;   /* the point stands on counters */
	char flops_why[600], bytes_why[600]; /* why not, where there are counters; "" else */
	bool missing;                        /* a fact is missing: no point */
};

struct rfl_configs {
	size_t n;
	struct rfl_config *configs;
	struct rfl_repeats *repeats;
	struct rfl_row_index hashes; /* runs by config_hash and environment */
};

/** Under how many roofs a step ran: a roof is that of one GPU, or of a machine's processors, which
 * `--world N` shares among its processes. 0: the number of machines is not known. */
int64_t rfl_merge__roofs(const struct rfl_ledger_row *row);

/** Samples of a step under one roof. */
int64_t rfl_merge__batch(const struct rfl_ledger_row *row);

/** Was this environment asked for? */
bool rfl_merge__wanted(const struct rfl_merge_options *options, const char *env);

/** Facts that are not known, in the order in which they were met, each once. */
struct rfl_missing {
	size_t n, cap;
	size_t of_counters; /* of the n: nothing that a peaks file could supply */
	struct rfl_missing_fact *facts;
};

/** Note that a configuration lacks a fact ("compute.fp32.vector (unknown: not measured)").
 * @param fix  the commands that supply it */
enum rfl_rc rfl_missing_add(struct rfl_missing *m, const char *fact, const char *fix,
			    struct rfl_config *config, struct rfl_err *err) RFL_WARN_UNUSED;

/** All facts as lines: fact, who needs it, fix; brief: the facts alone. Ends without a newline. */
void rfl_missing_text(const struct rfl_missing *m, bool brief, struct rfl_buf *out);
void rfl_missing_fini(struct rfl_missing *m);

/**
 * What is wrong with a ceiling, and what supplies it: its environment is not in the file, or its
 * cell is absent (peak NULL) or has no usable value. Texts are appended; nothing where it is
 * usable.
 * @param unsupported  the fix for a cell that the device cannot have
 */
enum rfl_rc rfl_missing_ceiling(const struct rfl_peaks *peaks, const char *env, const char *key,
				const struct rfl_peak *peak, const char *unsupported,
				struct rfl_buf *fact, struct rfl_buf *fix,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Find the two ceilings of a configuration, or note what is missing. */
enum rfl_rc rfl_merge__roof(const struct rfl_peaks *peaks, struct rfl_config *config,
			    struct rfl_missing *missing, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- counters ---- */

/** The file of a capture, else its label: for messages. */
const char *rfl_counters__name(const struct rfl_capture *c);

/** Has a run the label, or the run_id, of a capture? Stamps of log files do not count. */
bool rfl_counters__bears(const struct rfl_runs *runs, const struct rfl_run *run,
			 const struct rfl_capture *c);

/** Hand every capture to its configurations, or note why it has none (counters_join.c). */
enum rfl_rc rfl_counters__join(const struct rfl_merge_inputs *in,
			       const struct rfl_merge_options *options, struct rfl_configs *cs,
			       struct rfl_merge_report *report,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** How many steps it covers, and who says so (counters_steps.c). */
void rfl_counters__steps(const struct rfl_merge_inputs *in, struct rfl_joined *counted);

/** Does it count single kernels over a whole process, not a range of steps? */
bool rfl_counters__whole_process(const struct rfl_joined *counted);

/** Set m->doubtful where measured and counted work do not fit, say in m->doubt what, and in
 * m->causes why that may be, likeliest first. Flops and bytes: of a step; NaN: it counted none. */
void rfl_counters__doubt(const struct rfl_joined *counted, const struct rfl_work *work,
			 double flops, double bytes, struct rfl_measured *m);

/** All captures of a configuration as one measurement (counters_measure.c). RFL_EFORMAT naming two
 * that count the same; to continue is to leave the second out. */
enum rfl_rc rfl_counters__measure(const struct rfl_merge_inputs *in, struct rfl_config *config,
				  struct rfl_merge_report *report,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- points (merge_point.c) ---- */

/** Choose what the point stands on, or note what is missing where the user demands counters. */
enum rfl_rc rfl_merge__choose(const struct rfl_merge_options *options, struct rfl_config *config,
			      struct rfl_missing *missing, struct rfl_err *err) RFL_WARN_UNUSED;

/** All columns of a point from a configuration that has work and roof. */
enum rfl_rc rfl_merge__point(const struct rfl_merge_inputs *in,
			     const struct rfl_merge_options *options,
			     const struct rfl_config *config, struct rfl_point *p,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
