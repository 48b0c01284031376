/*
 * source_cupti.c - counters of NVIDIA GPUs, live: the row of the registry.
 */
#include "profile/source_cupti.h"

#include "profile/cupti_count.h"

static enum rfl_rc probe(const struct rfl_source_request *request, struct rfl_err *err)
{
	static const struct rfl_source_request usual = { .sets = RFL_SET_CORE };
	struct rfl_cupti_count c;
	enum rfl_rc rc = rfl_cupti_count_open(&c, request ? request : &usual, err);

	if (rc == RFL_OK && c.target.gate != RFL_CUPTI_GATE_OPEN)
		rc = rfl_fail(err, c.refused.rc, c.refused.native, "%s", c.refused.msg);
	rfl_cupti_count_close(&c);
	return rc;
}

/* Neither a counter nor the time of a kernel. */
static enum rfl_rc nothing(const struct rfl_cupti_count *c, struct rfl_err *err)
{
	const struct rfl_err *why = &c->refused;

	for (size_t i = 0; c->plan && i < c->plan->n; i++)
		if (why->rc == RFL_OK)
			why = &c->outcomes[i].why;
	if (why->rc == RFL_OK)
		why = &c->no_kernels;
	return rfl_fail(err, RFL_EUNAVAILABLE, why->native, "nothing could be counted: %s",
			why->msg);
}

static enum rfl_rc measure(const struct rfl_source_request *request,
			   const struct rfl_workload *workload, struct rfl_captures *to,
			   struct rfl_err *err)
{
	struct rfl_cupti_count c;
	enum rfl_rc rc = rfl_cupti_count_open(&c, request, err);

	if (rc == RFL_OK)
		rc = rfl_cupti_count_run(&c, workload, err);
	if (rc == RFL_OK && !rfl_cupti_count_any(&c) && c.no_kernels.rc != RFL_OK)
		rc = nothing(&c, err);
	else if (rc == RFL_OK)
		rc = rfl_cupti_capture(&c, to, err);
	rfl_cupti_count_close(&c);
	return rc;
}

const struct rfl_source_ops rfl_source_cupti = {
	.name = "cupti",
	.summary = "FLOPs, bytes and kernel times of NVIDIA GPUs (Turing and later)",
	.device = "cuda",
	.probe = probe,
	.measure = measure,
};
