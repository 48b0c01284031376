/*
 * count.h - internal to the cupti source: everything that is counted of a workload, session
 * by session, before it becomes a capture.
 */
#ifndef RFL_PROFILE_CUPTI_COUNT_H
#define RFL_PROFILE_CUPTI_COUNT_H

#include "profile/cupti/cuda_lib.h"
#include "profile/cupti/activity.h"
#include "profile/cupti/plan.h"
#include "profile/cupti/session.h"
#include "profile/cupti/target.h"
#include "profile/cupti/selftest.h"
#include "profile/source.h"

/* What a session gave. */
struct rfl_cupti_outcome {
	struct rfl_counted counted;
	struct rfl_err why; /* empty: it was counted */
	size_t first_pass;  /* passes of the sessions before it */
};

struct rfl_cupti_count {
	const struct rfl_source_request *request;
	const struct rfl_workload *workload;
	struct rfl_cuda *cuda;
	struct rfl_cupti *lib;
	struct rfl_cupti_target target;
	struct rfl_cupti_plan *plan; /* NULL: no counters, see `refused` */
	struct rfl_err refused;
	struct rfl_cupti_outcome outcomes[RFL_CUPTI_SESSIONS]; /* of the plan's sessions */
	struct rfl_counted idle;                               /* one range, or none */
	struct rfl_counted walked;                             /* with the times of kernels */
	struct rfl_kernel_launches kernels;
	struct rfl_err no_kernels; /* why there are no times of kernels */
	struct rfl_selftest selftest;
	struct rfl_err no_selftest;
	size_t planned_runs, runs; /* of the workload */
	bool saved;
	struct rfl_err not_saved; /* the workload cannot go back: its steps follow each other */
};

/* Driver, CUPTI and device. RFL_EUNAVAILABLE when not even the times of kernels are to be had. */
enum rfl_rc rfl_cupti_count_open(struct rfl_cupti_count *c,
				 const struct rfl_source_request *request,
				 struct rfl_err *err) RFL_WARN_UNUSED;
/* Self-test, sessions, idle range, kernels. Only an error of the workload is an error here. */
enum rfl_rc rfl_cupti_count_run(struct rfl_cupti_count *c, const struct rfl_workload *workload,
				struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_count_close(struct rfl_cupti_count *c);

/* Whether a session was counted. */
bool rfl_cupti_count_any(const struct rfl_cupti_count *c);
/* The ranges of the workload: of the first session that was counted, else of the kernels' run. */
const struct rfl_counted *rfl_cupti_count_ranges(const struct rfl_cupti_count *c);

/* All of it as one capture (cupti/capture.c). */
enum rfl_rc rfl_cupti_capture(const struct rfl_cupti_count *c, struct rfl_captures *to,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
