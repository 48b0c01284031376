/*
 * world.c - a run as one of several processes, on the child's side: meeting, and putting
 * together what each has measured.
 */
#include "runner/run/parts.h"

#include <stdlib.h>

#include "base/alloc.h"

#define STEPS_PER_PIECE 256

/* ---- meeting ---- */

static enum rfl_rc agree_on_number(struct rfl_run__job *job, int64_t *ret, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const double mine = (double)w->run_number;
	double *all = rfl_alloc_array((size_t)w->size, sizeof(*all));
	enum rfl_rc rc;

	if (!all)
		return rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", w->size);
	rc = job->choice.ops->gather(job->engine, &mine, 1, all, err);
	*ret = w->run_number;
	for (int r = 0; rc == RFL_OK && r < w->size; r++)
		*ret = all[r] > (double)*ret ? (int64_t)all[r] : *ret;
	free(all);
	return rc;
}

enum rfl_rc rfl_run__join(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	const struct rfl_world *w = &job->config.world;
	const struct rfl_engine_world world = {
		.rank = w->rank,
		.size = w->size,
		.local_rank = w->local_rank,
		.address = w->address,
		.port = w->port,
		.hosted = w->hosted,
		.timeout_s = w->timeout_s,
		.bucket_bytes = w->bucket_bytes,
		.interconnect = w->interconnect,
	};
	int64_t number = 0;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	if (!ops->join || !ops->barrier || !ops->gather)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot be one of several processes; leave out --world",
				ops->name);
	rc = ops->join(job->engine, &world, err);
	if (rc == RFL_OK)
		rc = agree_on_number(job, &number, err);
	if (rc == RFL_OK)
		rfl_run__tell(job, json_pack("{s:s, s:I}", "event", "met", "run_number",
					     (json_int_t)number));
	return rc;
}

enum rfl_rc rfl_run__meet(struct rfl_run__job *job, struct rfl_err *err)
{
	if (job->config.world.size <= 1)
		return RFL_OK;
	return job->choice.ops->barrier(job->engine, err);
}

/* ---- what was measured ---- */

/* The times of the slowest process, and the mean loss of all, in pieces. */
static enum rfl_rc report_steps(struct rfl_run__job *job, int slowest, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const struct rfl_burst *b = &job->r.burst;
	struct rfl_burst_step *all =
		rfl_alloc_array((size_t)STEPS_PER_PIECE * (size_t)w->size, sizeof(*all));
	enum rfl_rc rc = RFL_OK;

	if (!all)
		return rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", w->size);
	for (int64_t first = 0; rc == RFL_OK && first < b->nsteps; first += STEPS_PER_PIECE) {
		const int64_t left = b->nsteps - first;
		const int64_t n = left < STEPS_PER_PIECE ? left : STEPS_PER_PIECE;
		struct rfl_burst_step *times = all + slowest * n;

		rc = job->choice.ops->gather(job->engine, (const double *)(b->steps + first),
					     (size_t)n * RFL_RUN__STEP_NUMBERS, (double *)all, err);
		for (int64_t i = 0; rc == RFL_OK && i < n; i++) {
			double loss = 0;

			for (int r = 0; r < w->size; r++)
				loss += all[r * n + i].loss;
			times[i].loss = loss / w->size;
		}
		if (rc == RFL_OK && w->rank == 0)
			rfl_run__tell(job, rfl_run__pack_steps("world_steps", times, first, n));
	}
	free(all);
	return rc;
}

enum rfl_rc rfl_run__report_world(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	struct rfl_run__results all = job->r;
	int slowest = 0;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	rc = rfl_run__unite(job->choice.ops, job->engine, w->size, &all, &slowest, err);
	if (rc == RFL_OK)
		rc = report_steps(job, slowest, err);
	if (rc == RFL_OK && w->rank == 0)
		rfl_run__tell(job, rfl_run__pack(RFL_RUN__WORLD, &all));
	return rc;
}
