/*
 * fill_run.c - the golden fill over many tensors and threads: whole engines, whole batches.
 *
 * The work is cut into blocks; threads draw the next block from one counter. A thread that touches
 * fresh memory pays for its pages, so this spreads that cost as well.
 */
#include "data/fill.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define BLOCK       ((size_t)1 << 18) /* elements: 1 MiB, half a huge page */
#define MAX_THREADS 64

struct work {
	const struct rfl_fill_job *jobs;
	size_t njobs;
	atomic_size_t next; /* block that nobody has drawn yet, counted over all jobs */
};

/* Blocks are drawn in growing order, so each thread walks the jobs once. */
static void *work_run(void *ctx)
{
	struct work *w = ctx;
	size_t job = 0, before = 0; /* blocks of the jobs in front of `job` */

	for (;;) {
		const size_t ticket = atomic_fetch_add(&w->next, 1);
		size_t first, n;

		while (job < w->njobs) {
			const size_t blocks = (w->jobs[job].n + BLOCK - 1) / BLOCK;

			if (ticket < before + blocks)
				break;
			before += blocks;
			job++;
		}
		if (job == w->njobs)
			return NULL;
		first = (ticket - before) * BLOCK;
		n = w->jobs[job].n - first;
		rfl_fill_values(w->jobs[job].rule, w->jobs[job].p, w->jobs[job].first + first,
				n < BLOCK ? n : BLOCK, w->jobs[job].out + first);
	}
}

enum rfl_rc rfl_fill_run(const struct rfl_fill_job *jobs, size_t njobs, int threads,
			 struct rfl_err *err)
{
	struct work work = { .jobs = jobs, .njobs = njobs };
	pthread_t helper[MAX_THREADS];
	int nhelpers = 0, failed = 0;

	if (threads < 1)
		return rfl_fail(err, RFL_EINVAL, 0, "fill: %d threads", threads);
	atomic_init(&work.next, 0);
	while (!failed && nhelpers < threads - 1 && nhelpers < MAX_THREADS) {
		failed = pthread_create(&helper[nhelpers], NULL, work_run, &work);
		if (!failed)
			nhelpers++;
	}
	(void)work_run(&work);
	for (int i = 0; i < nhelpers; i++)
		(void)pthread_join(helper[i], NULL);
	if (failed)
		return rfl_fail(err, RFL_ENOMEM, failed, "fill: cannot start a thread: %s",
				strerror(failed));
	return RFL_OK;
}

struct rfl_fill_job rfl_fill_job_of(const struct rfl_param *param, float *out)
{
	return (struct rfl_fill_job){
		.rule = rfl_fill_rule_of(param),
		.p = param->position,
		.n = (size_t)param->numel,
		.out = out,
	};
}

static void to_nhwc(const float *nchw, int64_t n, int64_t channels, int64_t pixels, float *out)
{
	for (int64_t b = 0; b < n; b++, nchw += channels * pixels, out += channels * pixels)
		for (int64_t c = 0; c < channels; c++)
			for (int64_t i = 0; i < pixels; i++)
				out[i * channels + c] = nchw[c * pixels + i];
}

enum rfl_rc rfl_fill_images(const struct rfl_shape *shape, int64_t n, enum rfl_layout layout,
			    int threads, float *out, struct rfl_err *err)
{
	return rfl_fill_images_from(shape, 0, n, layout, threads, out, err);
}

enum rfl_rc rfl_fill_images_from(const struct rfl_shape *shape, int64_t first, int64_t n,
				 enum rfl_layout layout, int threads, float *out,
				 struct rfl_err *err)
{
	const size_t total = (size_t)(n * rfl_shape_numel(shape));
	struct rfl_fill_job job = {
		.rule = { .form = RFL_FILL_SCALED, .scale = 1.0f },
		.p = RFL_FILL_IMAGE,
		.first = (uint64_t)(first * rfl_shape_numel(shape)),
		.n = total,
		.out = out,
	};
	float *nchw = NULL;
	enum rfl_rc rc;

	if (shape->ndim != 3) {
		rc = rfl_fail(err, RFL_EINVAL, 0, "fill: an image has 3 dimensions, not %d",
			      shape->ndim);
		goto done;
	}
	if (layout == RFL_LAYOUT_NHWC) {
		nchw = rfl_alloc_array(total, sizeof(*nchw));
		if (!nchw) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "fill: out of memory");
			goto done;
		}
		job.out = nchw;
	}
	rc = rfl_fill_run(&job, 1, threads, err);
	if (rc == RFL_OK && nchw)
		to_nhwc(nchw, n, shape->dim[0], shape->dim[1] * shape->dim[2], out);
done:
	free(nchw);
	return rc;
}
