/*
 * bench_worker.c - one thread of a team: pin, touch, settle, then repeat after repeat together with
 * the others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "peaks/bench_impl.h"

/* Chains of 1 + tiny: they stay at 1, normal numbers, whatever the number of iterations. */
enum { CHAIN_BYTES = 24 * 64 };

struct part {
	struct rfl_kernel_arrays arrays;
	struct rfl_kernel_chains chains;
	unsigned char x[CHAIN_BYTES] RFL_ALIGNED(64);
};

static void fill_chains(const struct rfl_peak_kernel *k, struct part *part)
{
	const int n = k->step * k->accumulators;

	for (int i = 0; i < n; i++) {
		if (strcmp(k->dtype, "fp32") == 0)
			((float *)(void *)part->x)[i] = 1.0f;
		else
			((double *)(void *)part->x)[i] = 1.0;
	}
	part->chains = (struct rfl_kernel_chains){
		.x = part->x, .mul = 1.0 - 0x1p-20, .add = 0x1p-20, .iters = 1
	};
}

/* The worker's own slice of each array. First touch: whoever writes a page first has it near. */
static void take_slice(struct rfl_bench_worker *w, struct part *part)
{
	const struct rfl_bench *b = w->team->bench;
	const struct rfl_bench_job *job = w->team->job;
	const size_t n = (size_t)b->slice_bytes / sizeof(double);
	double *slices[3];

	for (int i = 0; i < 3; i++) {
		slices[i] = b->arrays[i] + (size_t)w->index * n;
		for (size_t j = 0; !b->touched && j < n; j++)
			slices[i][j] = 1.0;
	}
	part->arrays = (struct rfl_kernel_arrays){
		.a = slices[0], .b = slices[1], .c = slices[2], .scale = 3.0, .n = n, .passes = 1
	};
	if (job->slice_bytes > 0 && job->slice_bytes < b->slice_bytes)
		part->arrays.n = (size_t)job->slice_bytes / sizeof(double);
	part->arrays.n -= part->arrays.n % (size_t)job->kernel->step;
}

static void work(const struct rfl_peak_kernel *k, struct part *part, uint64_t iters)
{
	if (k->kind == RFL_KERNEL_CHAIN) {
		part->chains.iters = iters;
		k->chains(&part->chains);
	} else {
		part->arrays.passes = (size_t)iters;
		k->arrays(&part->arrays);
	}
}

/* Run for settle_s or longer. @return seconds of one iteration, from the fastest stretch */
static double settle(const struct rfl_bench_job *job, struct part *part)
{
	const double begin = rfl_clock_s();
	double best = 0;
	uint64_t iters = 1;
	double now = begin;

	do {
		const double start = now;

		work(job->kernel, part, iters);
		now = rfl_clock_s();
		const double each = (now - start) / (double)iters;

		if (now - start < job->window_s / 16) {
			iters *= 2;
			continue;
		}
		if (best <= 0 || each < best)
			best = each;
	} while (best <= 0 || now - begin < job->settle_s);
	return best;
}

static void run_part(struct rfl_bench_worker *w, struct part *part)
{
	struct rfl_bench_team *team = w->team;
	const struct rfl_bench_job *job = team->job;
	const double each_s = settle(job, part);

	if (w->index == 0) {
		const double iters = job->window_s / each_s;

		team->iters = iters > 1 ? (uint64_t)(iters + 0.5) : 1;
		team->work_per_iter =
			job->kernel->kind == RFL_KERNEL_CHAIN
				? job->kernel->flops_per_iter
				: job->kernel->bytes_per_iter *
					  (double)(part->arrays.n / (size_t)job->kernel->step);
	}
	for (int r = 0; r < job->repeats; r++) {
		pthread_barrier_wait(&team->barrier);
		w->spans[r].start_s = rfl_clock_s();
		work(job->kernel, part, team->iters);
		w->spans[r].stop_s = rfl_clock_s();
	}
}

static bool wait_at_gate(struct rfl_bench_team *team)
{
	bool open;

	pthread_mutex_lock(&team->lock);
	while (team->gate == RFL_GATE_SHUT)
		pthread_cond_wait(&team->opened, &team->lock);
	open = team->gate == RFL_GATE_OPEN;
	pthread_mutex_unlock(&team->lock);
	return open;
}

static void set_gate(struct rfl_bench_team *team, bool open)
{
	pthread_mutex_lock(&team->lock);
	team->gate = open ? RFL_GATE_OPEN : RFL_GATE_ABORT;
	pthread_cond_broadcast(&team->opened);
	pthread_mutex_unlock(&team->lock);
}

static void *worker_main(void *arg)
{
	struct rfl_bench_worker *w = arg;
	struct rfl_bench_team *team = w->team;
	struct part part;

	if (!wait_at_gate(team))
		return NULL;
	/* a thread that cannot be pinned still comes to the barriers; the job fails at its end */
	(void)!rfl_pin_thread(team->bench->places[w->index], &w->err);
	memset(&part, 0, sizeof(part));
	if (team->job->kernel->kind == RFL_KERNEL_CHAIN)
		fill_chains(team->job->kernel, &part);
	else
		take_slice(w, &part);
	pthread_barrier_wait(&team->barrier);
	run_part(w, &part);
	return NULL;
}

static enum rfl_rc start_and_join(struct rfl_bench_team *team, struct rfl_err *err)
{
	const int n = team->job->threads;
	enum rfl_rc rc = RFL_OK;
	int started = 0;

	for (; started < n; started++) {
		struct rfl_bench_worker *w = &team->workers[started];
		const int failed = pthread_create(&w->thread, NULL, worker_main, w);

		if (failed) {
			rc = rfl_fail(err, RFL_EUNAVAILABLE, failed,
				      "cannot start thread %d of %d: %s", started + 1, n,
				      strerror(failed));
			break;
		}
	}
	set_gate(team, rc == RFL_OK);
	for (int i = 0; i < started; i++)
		pthread_join(team->workers[i].thread, NULL);
	for (int i = 0; i < started && rc == RFL_OK; i++) {
		if (team->workers[i].err.rc != RFL_OK)
			rc = rfl_fail(err, team->workers[i].err.rc, team->workers[i].err.native,
				      "%s", team->workers[i].err.msg);
	}
	return rc;
}

enum rfl_rc rfl_bench__run_team(struct rfl_bench_team *team, struct rfl_err *err)
{
	enum rfl_rc rc;

	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->opened, NULL);
	const int failed = pthread_barrier_init(&team->barrier, NULL, (unsigned)team->job->threads);

	if (failed) {
		rc = rfl_fail(err, RFL_EUNAVAILABLE, failed, "cannot make a barrier: %s",
			      strerror(failed));
	} else {
		rc = start_and_join(team, err);
		pthread_barrier_destroy(&team->barrier);
	}
	pthread_cond_destroy(&team->opened);
	pthread_mutex_destroy(&team->lock);
	return rc;
}
