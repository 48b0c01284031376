/*
 * session.h - one configuration of counters on one device: ranges of a workload that is run
 * once per pass, counted by CUPTI's range profiler with ranges and replay of our own (UserRange,
 * UserReplay). Nothing is saved or restored here: whoever gives the workload does that.
 */
#ifndef RFL_PROFILE_CUPTI_SESSION_H
#define RFL_PROFILE_CUPTI_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/cupti/plan.h"
#include "profile/cupti/target.h"
#include "profile/source.h"

/** Ranges at once: CUPTI refuses some 2000 and more. Workloads that have more are run again for the
 * rest. */
#define RFL_CUPTI_RANGES_AT_ONCE 1000

/** A workload as the session sees it: it is run passes x batches times. */
struct rfl_replay {
	/** In front of each run, and never counted with it; NULL: nothing to do. */
	enum rfl_rc (*ready)(void *ctx, struct rfl_err *err);
	enum rfl_rc (*run)(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err);
	void *ctx;
	size_t max_ranges; /**< of one run */
	enum rfl_rc rc;    /**< out: what ready() or run() returned when it failed; the error is its
			    *   own then */
};
/** Call its ready(). The session does, whoever calls rfl_counted_walk() has to. */
enum rfl_rc rfl_replay_ready(struct rfl_replay *work, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_counted_range {
	enum rfl_range_kind kind;
	const char *name;
	double wall_s;  /**< of the last run: with what counting costs */
	bool has_data;  /**< false: CUPTI kept nothing of it */
	double *values; /**< per metric of the session, in SI base units; NaN: no value */
};

/** Ranges in the order of their beginning. */
struct rfl_counted {
	struct rfl_arena *arena;
	struct rfl_counted_range *ranges;
	size_t n, cap;
	size_t nvalues; /**< per range */
	size_t runs;    /**< of the workload */
};
void rfl_counted_fini(struct rfl_counted *c); /* accepts a zeroed struct */
/** Of all ranges. */
double rfl_counted_wall_s(const struct rfl_counted *c);

struct rfl_cupti_session;

/**
 * Turn counters on. Where those of a session before could not be turned off, that is the error.
 * @param target, planned  kept by the caller until the session is closed
 * @param max_ranges       of all workloads that it will count
 * @param ret              set on success only; release with rfl_cupti_session_close()
 */
enum rfl_rc rfl_cupti_session_open(struct rfl_cupti_target *target,
				   const struct rfl_cupti_planned *planned, size_t max_ranges,
				   struct rfl_cupti_session **ret,
				   struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_session_close(struct rfl_cupti_session *s); /* accepts NULL */

/**
 * Count a workload; can be called again, for another one.
 * @param ret  its arena and ranges are made here; release with rfl_counted_fini(), also after a
 *             failure
 * @return RFL_OK, also when a range without work has no data; RFL_EFAILED when ranges were dropped,
 *         or differ from run to run
 */
enum rfl_rc rfl_cupti_session_count(struct rfl_cupti_session *s, struct rfl_replay *work,
				    struct rfl_counted *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Run a workload once without counting, for its ranges and their wall times.
 * @param ret  as above; values are NULL
 */
enum rfl_rc rfl_counted_walk(struct rfl_replay *work, struct rfl_counted *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
