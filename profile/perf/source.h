/*
 * source.h - internal: the row of the perf source, and its inside with the machine as a
 * parameter, for tests.
 */
#ifndef RFL_PROFILE_SOURCE_PERF_H
#define RFL_PROFILE_SOURCE_PERF_H

#include "profile/perf.h"
#include "profile/perf/plan.h"
#include "profile/source.h"

extern const struct rfl_source_ops rfl_source_perf;

enum rfl_rc rfl_source_perf__measure(const struct rfl_perf_env *env,
				     const struct rfl_source_request *request,
				     const struct rfl_workload *workload, struct rfl_captures *to,
				     struct rfl_err *err);
enum rfl_rc rfl_perf_look__at(const struct rfl_perf_env *env, const char *precision,
			      struct rfl_perf_status *ret, struct rfl_err *err);

#endif
