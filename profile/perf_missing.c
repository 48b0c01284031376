/* perf_missing.c - the perf source on systems other than Linux. */
#include "profile/source.h"

enum rfl_rc rfl_perf_look(struct rfl_perf_status *ret, struct rfl_err *err)
{
	(void)ret;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"perf events exist on Linux only; the output of 'time -l' can be imported "
			"with 'roofline counters import'");
}

static enum rfl_rc probe(const struct rfl_source_request *request, struct rfl_err *err)
{
	(void)request;
	return rfl_perf_look(NULL, err);
}

static enum rfl_rc measure(const struct rfl_source_request *request,
			   const struct rfl_workload *workload, struct rfl_captures *to,
			   struct rfl_err *err)
{
	(void)workload;
	(void)to;
	return probe(request, err);
}

const struct rfl_source_ops rfl_source_perf = {
	.name = "perf",
	.summary = "hardware and kernel counters of CPUs, on Linux",
	.device = "cpu",
	.probe = probe,
	.measure = measure,
};
