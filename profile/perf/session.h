/*
 * session.h - internal: one run of a workload under the events of one pass. Events are opened
 * for every thread that exists, and inherited by those that come; ranges are differences of two
 * readings.
 */
#ifndef RFL_PROFILE_PERF_SESSION_H
#define RFL_PROFILE_PERF_SESSION_H

#include "profile/perf/plan.h"
#include "profile/source.h"

/* What one event counted in one range, over threads or sockets. */
struct rfl_perf_tally {
	double value;                /* each reading scaled to its own time */
	double read;                 /* as it was read, not scaled */
	double enabled_s, running_s; /* of all that ran at all */
	double lost_s;               /* enabled, but never on a counter */
	int pass;
};

struct rfl_perf_span {
	enum rfl_range_kind kind;
	char *name;
	int64_t launches;               /* of the first pass */
	double time_s;                  /* of the first pass */
	struct rfl_perf_tally *tallies; /* one per item of the plan */
};

struct rfl_perf_session;

enum rfl_rc rfl_perf_session_new(struct rfl_perf_plan *plan, struct rfl_perf_session **ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_perf_session_free(struct rfl_perf_session *s); /* accepts NULL */

/**
 * Open the events of a pass, run the workload, close them. An event that cannot be opened after all
 * gets its reason in the plan.
 */
enum rfl_rc rfl_perf_session_run(struct rfl_perf_session *s, int pass,
				 const struct rfl_workload *workload,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** The ranges so far, in the order in which they began first. */
const struct rfl_perf_span *rfl_perf_session_spans(const struct rfl_perf_session *s, size_t *n);

/** A tally scaled to the whole range. @param share  of the time on a counter, 0 to 1 */
double rfl_perf_tally_value(const struct rfl_perf_tally *t, double *share);

struct rfl_perf_facts {
	size_t threads;            /* that were counted from the start */
	size_t appeared, vanished; /* while it ran; counted as well */
	double reading_s;          /* of one boundary, all events */
	double shortest_s;         /* mean duration of the shortest range */
};
struct rfl_perf_facts rfl_perf_session_facts(const struct rfl_perf_session *s);

#endif
