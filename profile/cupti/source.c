/*
 * source.c - counters of NVIDIA GPUs, live: the row of the registry.
 */
#include "profile/cupti/source.h"

#include <stdlib.h>

#include "profile/cupti/count.h"

/* CUPTI on the device. Kernels that are loaded before it may escape the counters of instructions,
 * which patch them. */
struct rfl_source_early {
	struct rfl_cupti_count count;
	enum rfl_rc rc;
	struct rfl_err err; /* why it is not open */
};

static struct rfl_source_early *open_early(const struct rfl_source_request *request)
{
	struct rfl_source_early *e = calloc(1, sizeof(*e));

	if (e)
		e->rc = rfl_cupti_count_open(&e->count, request, &e->err);
	return e;
}

static void close_early(struct rfl_source_early *e)
{
	if (e)
		rfl_cupti_count_close(&e->count);
	free(e);
}

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
	struct rfl_source_early *e = request->early ? request->early : open_early(request);
	enum rfl_rc rc;

	if (!e)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rc = e->rc;
	e->count.request = request;
	if (rc != RFL_OK)
		(void)rfl_fail(err, rc, e->err.native, "%s", e->err.msg);
	else
		rc = rfl_cupti_count_run(&e->count, workload, err);
	if (rc == RFL_OK && !rfl_cupti_count_any(&e->count) && e->count.no_kernels.rc != RFL_OK)
		rc = nothing(&e->count, err);
	else if (rc == RFL_OK)
		rc = rfl_cupti_capture(&e->count, to, err);
	if (e != request->early)
		close_early(e);
	return rc;
}

const struct rfl_source_ops rfl_source_cupti = {
	.name = "cupti",
	.summary = "FLOPs, bytes and kernel times of NVIDIA GPUs (Turing and later)",
	.device = "cuda",
	.open = open_early,
	.close = close_early,
	.probe = probe,
	.measure = measure,
};
