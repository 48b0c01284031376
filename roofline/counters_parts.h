/*
 * counters_parts.h - what the files counters_*.c share; private to the room.
 */
#ifndef RFL_ROOFLINE_COUNTERS_PARTS_H
#define RFL_ROOFLINE_COUNTERS_PARTS_H

#include "roofline/counters.h"
#include "roofline/merge_parts.h"

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

/** The file of a capture, else its label: for messages. */
const char *rfl_counters__name(const struct rfl_capture *c);

/** Has a run the label, or the run_id, of a capture? Stamps of log files do not count. */
bool rfl_counters__bears(const struct rfl_runs *runs, const struct rfl_run *run,
			 const struct rfl_capture *c);

/** Hand every capture to its configurations, or note why it has none. */
enum rfl_rc rfl_counters__join(const struct rfl_merge_inputs *in,
			       const struct rfl_merge_options *options, struct rfl_configs *cs,
			       struct rfl_merge_report *report,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** How many steps it covers, and who says so. */
void rfl_counters__steps(const struct rfl_merge_inputs *in, struct rfl_joined *counted);

/** A quantity over a capture, as it is: not per step. */
struct rfl_amount rfl_counters__total(const struct rfl_joined *counted, enum rfl_quantity q);

/** Does it count single kernels over a whole process, not a range of steps? */
bool rfl_counters__whole_process(const struct rfl_joined *counted);

/** The share of the time (of the launches, where times are not known) in which a quantity was
 * counted. NaN: there is no range. */
double rfl_counters__coverage(const struct rfl_config *config, const struct rfl_joined *counted,
			      enum rfl_quantity q);

/** Did a capture count a quantity; of FLOPs, those of the run's precision among them? */
bool rfl_counters__knows(const struct rfl_config *config, const struct rfl_joined *counted,
			 enum rfl_quantity q);

/** The FLOPs that a run of this precision is mostly made of; of any precision: flops.total. */
enum rfl_quantity rfl_counters__main_part(const struct rfl_config *config);

/** From config->measured.part: expected_share and foreign. */
void rfl_counters__precision(struct rfl_config *config);

/** Share of the kernels' time in kernels without a FLOP, and their names, into m->zero_*; left as
 * they are where that is not known. */
enum rfl_rc rfl_counters__zero_flop(const struct rfl_config *config,
				    const struct rfl_joined *counted, struct rfl_measured *m,
				    struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Set m->doubtful where measured and counted work do not fit, say in m->doubt what, and in
 * m->causes why that may be, likeliest first.
 * @param flops, bytes  of a step, as this capture counted them; NaN: it did not
 */
void rfl_counters__doubt(const struct rfl_joined *counted, const struct rfl_work *work,
			 double flops, double bytes, struct rfl_measured *m);

/** All captures of a configuration as one measurement. RFL_EFORMAT naming two that count the same;
 * to continue is to leave the second out. */
enum rfl_rc rfl_counters__measure(const struct rfl_merge_inputs *in, struct rfl_config *config,
				  struct rfl_merge_report *report,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** Choose what the point stands on (config->flops_counted, ->bytes_counted, and why not), or note
 * what is missing where the user demands counters. */
enum rfl_rc rfl_counters__choose(const struct rfl_merge_options *options, struct rfl_config *config,
				 struct rfl_missing *missing, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
