/*
 * bench.c - CPUs, arrays and threads of a benchmark job: each thread pins itself, touches its
 * slices, warms up, then runs the repeats together with the others.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#endif
#include "peaks/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

enum {
	GRAIN = 4096, /* bytes; a slice is a multiple of a page and of every kernel's step */
	HUGE_PAGE = 2 << 20,
	ARRAYS = 3,
	LLC_FACTOR = 4,
	/* used if neither the system nor the processor reports the caches; a high estimate */
	LLC_LEAST = 256 << 20,
	LLC_PER_THREAD = 16 << 20,
};

/* Arrays begin at different offsets within a page. Otherwise, loads from one array would appear to
 * depend on stores to another (4K aliasing). */
static const size_t offsets[ARRAYS] = { 0, GRAIN + 1344, 2 * (size_t)GRAIN + 2688 };

struct span {
	double start_s, stop_s;
};

struct worker {
	struct team *team;
	int index;
	pthread_t thread;
	struct span *spans; /* one per repeat */
	struct rfl_err err;
};

/* The threads of one job. */
struct team {
	struct rfl_bench *bench;
	const struct rfl_bench_job *job;
	struct worker *workers;
	pthread_mutex_t lock;
	pthread_cond_t opened;
	enum { GATE_SHUT, GATE_OPEN, GATE_ABORT } gate;
	pthread_barrier_t barrier;
	uint64_t iters; /* iterations (chains) or passes (arrays) per repeat; set by worker 0 */
	double work_per_iter; /* bytes or FLOPs per thread */
};

/* --- CPUs and arrays --- */

static int64_t round_up(int64_t value, int64_t to)
{
	return (value + to - 1) / to * to;
}

enum rfl_rc rfl_bench_open(const struct rfl_machine *m, int threads, int64_t array_bytes,
			   struct rfl_bench **ret, struct rfl_err *err)
{
	const int64_t llc = rfl_machine_llc_bytes(m);
	const int64_t assumed = (int64_t)m->hw_threads * LLC_PER_THREAD;
	const int64_t room = m->memory_available_bytes / 2 / ARRAYS;
	struct rfl_bench *b = NULL;
	int64_t bytes, grain;
	char *base;
	size_t stride;
	enum rfl_rc rc = RFL_OK;

	if (threads < 1 || (size_t)threads > m->ncpus)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%d threads: out of range; use 1 to %zu threads", threads,
				m->ncpus);
	b = calloc(1, sizeof(*b));
	if (!b || !(b->places = rfl_alloc_array((size_t)threads, sizeof(*b->places)))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %d threads", threads);
		goto done;
	}
	b->machine = m;
	b->threads = threads;
	for (int i = 0; i < threads; i++)
		b->places[i] = m->cpus[i].os_index;

	/* The size requested, but at most half of the available memory. */
	b->llc_bytes = llc > 0 ? llc : assumed > LLC_LEAST ? assumed : LLC_LEAST;
	grain = (int64_t)GRAIN * threads;
	bytes = round_up(array_bytes > 0 ? array_bytes : LLC_FACTOR * b->llc_bytes, grain);
	if (m->memory_available_bytes > 0 && bytes > room) {
		bytes = room / grain * grain;
		b->capped = true;
	}
	b->array_bytes = bytes;
	b->slice_bytes = bytes / threads;
	if (b->slice_bytes < GRAIN) {
		rc = rfl_fail(err, RFL_ENOMEM, 0,
			      "%" PRId64 " bytes of memory are available, too few for a bandwidth "
			      "measurement; free some memory",
			      m->memory_available_bytes);
		goto done;
	}
	stride = (size_t)round_up(bytes, HUGE_PAGE) + HUGE_PAGE;
	b->map_bytes = ARRAYS * stride + HUGE_PAGE;
	b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (b->map == MAP_FAILED) {
		b->map = NULL;
		rc = rfl_fail(err, RFL_ENOMEM, errno,
			      "cannot reserve %zu bytes for the bandwidth measurement: %s",
			      b->map_bytes, strerror(errno));
		goto done;
	}
#ifdef MADV_HUGEPAGE
	/* reduces page walks; rfl_bench_huge_pages() later checks whether the request was
	 * granted */
	(void)madvise(b->map, b->map_bytes, MADV_HUGEPAGE);
#endif
	base = (char *)round_up((int64_t)(uintptr_t)b->map, HUGE_PAGE);
	for (size_t i = 0; i < ARRAYS; i++)
		b->arrays[i] = (double *)(void *)(base + i * stride + offsets[i]);

	*ret = b;
	b = NULL;
done:
	rfl_bench_close(b);
	return rc;
}

void rfl_bench_close(struct rfl_bench *b)
{
	if (!b)
		return;
	if (b->map)
		munmap(b->map, b->map_bytes);
	free(b->places);
	free(b);
}

enum rfl_known rfl_bench_huge_pages(const struct rfl_bench *b)
{
	struct rfl_buf text;
	enum rfl_known known = RFL_NOT_KNOWN;
	const char *line;
	int64_t kib;

	rfl_buf_init(&text, 1 << 20);
	if (b->touched && rfl_file_read("/proc/self/smaps_rollup", &text, NULL) == RFL_OK) {
		line = strstr(rfl_buf_str(&text), "AnonHugePages:");
		if (line && sscanf(line, "AnonHugePages: %" SCNd64 " kB", &kib) == 1)
			known = kib * 1024 > b->array_bytes * ARRAYS / 2 ? RFL_YES : RFL_NO;
	}
	rfl_buf_fini(&text);
	return known;
}

char *rfl_bench_places(const struct rfl_bench *b, int n, char *out, size_t out_size)
{
	size_t len = (size_t)snprintf(out, out_size, "cpu ");

	for (int i = 0; i < n && i < b->threads && len < out_size; i++) {
		int last = i;

		while (last + 1 < n && last + 1 < b->threads &&
		       b->places[last + 1] == b->places[last] + 1)
			last++;
		len += (size_t)snprintf(out + len, out_size - len, "%s%d", i ? "," : "",
					b->places[i]);
		if (last > i && len < out_size)
			len += (size_t)snprintf(out + len, out_size - len, "%c%d",
						last > i + 1 ? '-' : ',', b->places[last]);
		i = last;
	}
	return out;
}

/* --- one thread of a job --- */

struct part {
	struct rfl_kernel_arrays arrays;
	struct rfl_kernel_chains chains;
};

static void work(const struct rfl_peak_kernel *k, struct part *part, uint64_t iters)
{
	if (k->kind == RFL_LOOP_CHAIN) {
		part->chains.iters = iters;
		k->chains(&part->chains);
	} else {
		part->arrays.passes = (size_t)iters;
		k->arrays(&part->arrays);
	}
}

/* Initialise the chains, or this worker's slice of each array. */
static void prepare(struct worker *w, struct part *part)
{
	const struct rfl_bench *b = w->team->bench;
	const struct rfl_bench_job *job = w->team->job;
	const struct rfl_peak_kernel *k = job->kernel;
	const size_t n = (size_t)b->slice_bytes / sizeof(double);
	double *slices[ARRAYS];

	memset(part, 0, sizeof(*part));
	if (k->kind == RFL_LOOP_CHAIN) {
		rfl_peak_kernel_prepare(k, &part->chains);
		return;
	}
	/* first touch: a page is allocated near the thread that first writes to it */
	for (int i = 0; i < ARRAYS; i++) {
		slices[i] = b->arrays[i] + (size_t)w->index * n;
		for (size_t j = 0; !b->touched && j < n; j++)
			slices[i][j] = 1.0;
	}
	part->arrays = (struct rfl_kernel_arrays){
		.a = slices[0], .b = slices[1], .c = slices[2], .scale = 3.0, .n = n, .passes = 1
	};
	if (job->slice_bytes > 0)
		part->arrays.n = (size_t)job->slice_bytes / sizeof(double);
	part->arrays.n -= part->arrays.n % (size_t)k->step;
}

/* Warm up for at least settle_s. @return seconds per iteration of the fastest interval */
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

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct team *team = w->team;
	const struct rfl_bench_job *job = team->job;
	const struct rfl_peak_kernel *k = job->kernel;
	struct part part;
	double each_s;
	bool open;

	pthread_mutex_lock(&team->lock);
	while (team->gate == GATE_SHUT)
		pthread_cond_wait(&team->opened, &team->lock);
	open = team->gate == GATE_OPEN;
	pthread_mutex_unlock(&team->lock);
	if (!open)
		return NULL;
	/* a thread that cannot be pinned still waits at the barriers; the job fails at the end */
	(void)!rfl_pin_thread(team->bench->places[w->index], &w->err);
	prepare(w, &part);
	pthread_barrier_wait(&team->barrier);
	each_s = settle(job, &part);
	if (w->index == 0) {
		const double iters = job->window_s / each_s;

		team->iters = iters > 1 ? (uint64_t)(iters + 0.5) : 1;
		team->work_per_iter =
			k->kind == RFL_LOOP_CHAIN
				? k->flops_per_iter
				: k->bytes_per_iter * (double)(part.arrays.n / (size_t)k->step);
	}
	for (int r = 0; r < job->repeats; r++) {
		pthread_barrier_wait(&team->barrier);
		w->spans[r].start_s = rfl_clock_s();
		work(k, &part, team->iters);
		w->spans[r].stop_s = rfl_clock_s();
	}
	return NULL;
}

/* Start the threads, let them run the job, and wait for them. */
static enum rfl_rc run_team(struct team *team, struct rfl_err *err)
{
	const int n = team->job->threads;
	enum rfl_rc rc = RFL_OK;
	int started = 0;
	int failed = pthread_barrier_init(&team->barrier, NULL, (unsigned)n);

	if (failed)
		return rfl_fail(err, RFL_EUNAVAILABLE, failed, "cannot create a barrier: %s",
				strerror(failed));
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->opened, NULL);
	for (; started < n && rc == RFL_OK; started += rc == RFL_OK) {
		struct worker *w = &team->workers[started];

		failed = pthread_create(&w->thread, NULL, worker_main, w);
		if (failed)
			rc = rfl_fail(err, RFL_EUNAVAILABLE, failed,
				      "cannot start thread %d of %d: %s", started + 1, n,
				      strerror(failed));
	}
	pthread_mutex_lock(&team->lock);
	team->gate = rc == RFL_OK ? GATE_OPEN : GATE_ABORT;
	pthread_cond_broadcast(&team->opened);
	pthread_mutex_unlock(&team->lock);
	for (int i = 0; i < started; i++)
		pthread_join(team->workers[i].thread, NULL);
	for (int i = 0; i < started && rc == RFL_OK; i++) {
		const struct rfl_err *e = &team->workers[i].err;

		if (e->rc != RFL_OK)
			rc = rfl_err_pass(err, e);
	}
	pthread_barrier_destroy(&team->barrier);
	pthread_cond_destroy(&team->opened);
	pthread_mutex_destroy(&team->lock);
	return rc;
}

enum rfl_rc rfl_bench_run(struct rfl_bench *b, const struct rfl_bench_job *job, double *rates,
			  struct rfl_err *err)
{
	struct team team = { .bench = b, .job = job };
	struct span *spans = NULL;
	enum rfl_rc rc = rfl_peak_kernel_probe(job->kernel, err);

	if (rc != RFL_OK)
		return rc;
	if (job->threads < 1 || job->threads > b->threads || job->repeats < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%d threads, %d repeats: not possible; use 1 to %d threads and at "
				"least 1 repeat",
				job->threads, job->repeats, b->threads);
	if (job->slice_bytes > (job->threads == 1 && b->touched ? b->array_bytes : b->slice_bytes))
		return rfl_fail(err, RFL_EINVAL, 0,
				"arrays of %" PRId64 " bytes per thread do not fit",
				job->slice_bytes);
	const size_t n = (size_t)job->threads, repeats = (size_t)job->repeats;

	team.workers = rfl_alloc_array(n, sizeof(*team.workers));
	spans = rfl_alloc_array(n * repeats, sizeof(*spans));
	if (!team.workers || !spans) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %d threads, %d repeats",
			      job->threads, job->repeats);
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		team.workers[i] = (struct worker){ .team = &team,
						   .index = (int)i,
						   .spans = spans + i * repeats };
	rc = run_team(&team, err);
	if (rc != RFL_OK)
		goto done;
	for (size_t r = 0; r < repeats; r++) { /* timed from first start to last stop */
		double start = spans[r].start_s, stop = spans[r].stop_s;

		for (size_t i = 1; i < n; i++) {
			const struct span *s = &team.workers[i].spans[r];

			start = s->start_s < start ? s->start_s : start;
			stop = s->stop_s > stop ? s->stop_s : stop;
		}
		rates[r] = team.work_per_iter * (double)team.iters * job->threads / (stop - start);
	}
	if (job->kernel->kind != RFL_LOOP_CHAIN && job->threads == b->threads)
		b->touched = true;
done:
	free(spans);
	free(team.workers);
	return rc;
}
