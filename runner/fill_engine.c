/*
 * fill_engine.c - the fill of every parameter of an open engine.
 */
#include "runner/fill_engine.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "data/fill.h"

/* A parameter that the engine does not let us write into: by way of a block of our own. */
static enum rfl_rc fill_by_copy(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
				const struct rfl_net *net, int param, int threads, float *scratch,
				struct rfl_err *err)
{
	const struct rfl_fill_job job = rfl_fill_job_of(&net->params[param], scratch);
	enum rfl_rc rc = rfl_fill_run(&job, 1, threads, err);

	if (rc == RFL_OK)
		rc = ops->set_param(engine, param, scratch, net->params[param].numel, err);
	return rc;
}

enum rfl_rc rfl_fill_engine(const struct rfl_engine_ops *ops, struct rfl_engine *engine,
			    const struct rfl_net *net, int threads, struct rfl_err *err)
{
	struct rfl_fill_job *jobs = rfl_alloc_array((size_t)net->nparams, sizeof(*jobs));
	float *scratch = NULL;
	size_t njobs = 0, largest = 0;
	enum rfl_rc rc;

	if (!jobs && net->nparams > 0) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "fill: out of memory");
		goto done;
	}
	for (int i = 0; i < net->nparams; i++) {
		float *out = ops->param_data(engine, i);

		if (out)
			jobs[njobs++] = rfl_fill_job_of(&net->params[i], out);
		else if ((size_t)net->params[i].numel > largest)
			largest = (size_t)net->params[i].numel;
	}
	rc = rfl_fill_run(jobs, njobs, threads, err);
	if (rc != RFL_OK || largest == 0)
		goto done;
	scratch = rfl_alloc_array(largest, sizeof(*scratch));
	if (!scratch) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "fill: out of memory");
		goto done;
	}
	for (int i = 0; i < net->nparams && rc == RFL_OK; i++)
		if (!ops->param_data(engine, i))
			rc = fill_by_copy(ops, engine, net, i, threads, scratch, err);
done:
	free(scratch);
	free(jobs);
	return rc;
}
