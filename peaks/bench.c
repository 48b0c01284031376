/*
 * bench.c - CPUs, arrays and threads of a benchmark job: each thread pins itself, warms up, then
 * runs the repeats together with the others, and watches whether it was left on its CPU.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#endif
#include "peaks/bench.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/stats.h"
#include "machine/load.h"

enum {
	GRAIN = 4096, /* bytes; a slice is a multiple of a page and of every kernel's step */
	HUGE_PAGE = 2 << 20,
	ARRAYS = 3,
	LLC_FACTOR = 4,
	/* used if neither the system nor the CPU reports the caches; a high estimate */
	LLC_LEAST = 256 << 20,
	LLC_PER_THREAD = 16 << 20,
	HOPELESS = 12, /* repeats, all of them disturbed, after which a job ends */
	ENOUGH = 3,    /* undisturbed repeats, so that the disturbed ones need not be counted */
};

/* Arrays begin at different offsets within a page. Otherwise, loads from one array would appear to
 * depend on stores to another (4K aliasing). */
static const size_t offsets[ARRAYS] = { 0, GRAIN + 1344, 2 * (size_t)GRAIN + 2688 };

#define DISTURBED  0.01 /* share of a repeat that a thread may be off its CPU */
#define TOGETHER_S 1e-3
#define NOISE_S    5e-5 /* but interrupts and the reading of clocks are no disturbance */

/* One thread during one repeat. */
struct span {
	double start_s, stop_s;
	double on_s; /* time on the CPU, without what the hypervisor withheld */
	double clock_hz;
};

struct worker {
	struct team *team;
	int index;
	pthread_t thread;
	struct span *spans; /* one per repeat */
	bool unbound;
	struct rfl_err err;
};

/* As in POSIX, where it is optional. */
struct barrier {
	pthread_mutex_t lock;
	pthread_cond_t open;
	int n, missing; /* threads in all, and those that are not yet waiting */
	unsigned round;
};

/* The threads of one job. */
struct team {
	struct rfl_bench *bench;
	const struct rfl_bench_job *job; /* NULL: touch the arrays */
	int n;
	struct worker *workers;
	pthread_mutex_t gate; /* held until all threads exist, or one of them could not start */
	bool aborted;
	struct barrier barrier;
	atomic_int awake; /* threads that have passed the barrier, in all repeats */
	/* set by worker 0 between barriers */
	uint64_t iters;       /* iterations (chains) or passes (arrays) per repeat */
	double work_per_iter; /* bytes or FLOPs per thread */
	int spans, clean;     /* repeats so far, and the undisturbed ones among them */
	double limit_s;       /* time of the clock */
	bool more;
	double begin_s;
	long switches;
	struct rfl_load load; /* at begin_s */
	struct rfl_interference seen;
};

/* --- CPUs and arrays --- */

static int64_t round_up(int64_t value, int64_t to)
{
	return (value + to - 1) / to * to;
}

/* Workers of a NUMA node, and so their slices, are next to each other. */
static int by_node(const void *a, const void *b)
{
	const struct rfl_cpu *x = *(const struct rfl_cpu *const *)a;
	const struct rfl_cpu *y = *(const struct rfl_cpu *const *)b;

	if (x->package != y->package)
		return x->package - y->package;
	return x->numa_node != y->numa_node ? x->numa_node - y->numa_node : (x > y) - (x < y);
}

enum rfl_rc rfl_bench_open(const struct rfl_machine *m, int threads, int64_t array_bytes,
			   struct rfl_bench **ret, struct rfl_err *err)
{
	const int64_t llc = rfl_machine_llc_bytes(m);
	const int64_t assumed = (int64_t)m->hw_threads * LLC_PER_THREAD;
	const int64_t room = m->memory_available_bytes / 2 / ARRAYS;
	RFL_AUTOPTR(bench) b = NULL;
	int64_t bytes, grain;
	char *base;
	size_t stride;
	enum rfl_rc rc = RFL_OK;

	if (threads < 1 || (size_t)threads > m->ncpus)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%d threads: out of range; use 1 to %zu threads", threads,
				m->ncpus);
	b = rfl_alloc_array(1, sizeof(*b));
	b->cpus = rfl_alloc_array((size_t)threads, sizeof(*b->cpus));
	b->machine = m;
	b->threads = threads;
	for (int i = 0; i < threads; i++)
		b->cpus[i] = &m->cpus[i];
	qsort(b->cpus, (size_t)threads, sizeof(*b->cpus), by_node);

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
		return rc;
	}
	stride = (size_t)round_up(bytes, HUGE_PAGE) + HUGE_PAGE;
	b->map_bytes = ARRAYS * stride + HUGE_PAGE;
	b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (b->map == MAP_FAILED) {
		b->map = NULL;
		return rfl_fail(err, RFL_ENOMEM, errno,
				"cannot reserve %zu bytes for the bandwidth measurement: %s",
				b->map_bytes, strerror(errno));
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
	return rc;
}

void rfl_bench_close(struct rfl_bench *b)
{
	if (!b)
		return;
	if (b->map)
		munmap(b->map, b->map_bytes);
	free(b->cpus);
	free(b);
}

enum rfl_known rfl_bench_huge_pages(const struct rfl_bench *b)
{
	RFL_AUTO(buf) text = { .max = 1 << 20 };
	enum rfl_known known = RFL_NOT_KNOWN;
	const char *line;
	int64_t kib;

	if (b->touched && rfl_file_read("/proc/self/smaps_rollup", &text, NULL) == RFL_OK) {
		line = strstr(rfl_buf_str(&text), "AnonHugePages:");
		if (line && sscanf(line, "AnonHugePages: %" SCNd64 " kB", &kib) == 1)
			known = kib * 1024 > b->array_bytes * ARRAYS / 2 ? RFL_YES : RFL_NO;
	}
	return known;
}

char *rfl_bench_places(const struct rfl_bench *b, int first, int n, char *out, size_t out_size)
{
	const struct rfl_cpu *const *cpus = b->cpus + first;
	size_t len = (size_t)snprintf(out, out_size, rfl_pins_threads ? "cpu " : "any cpu");

	for (int i = 0; rfl_pins_threads && i < n && len < out_size; i++) {
		int last = i;

		while (last + 1 < n && cpus[last + 1]->os_index == cpus[last]->os_index + 1)
			last++;
		len += (size_t)snprintf(out + len, out_size - len, "%s%d", i ? "," : "",
					cpus[i]->os_index);
		if (last > i && len < out_size)
			len += (size_t)snprintf(out + len, out_size - len, "%c%d",
						last > i + 1 ? '-' : ',', cpus[last]->os_index);
		i = last;
	}
	return out;
}

/* --- one thread of a job --- */

static void wait_at(struct barrier *b)
{
	pthread_mutex_lock(&b->lock);
	const unsigned round = b->round;

	if (--b->missing == 0) {
		b->missing = b->n;
		b->round++;
		pthread_cond_broadcast(&b->open);
	}
	while (round == b->round)
		pthread_cond_wait(&b->open, &b->lock);
	pthread_mutex_unlock(&b->lock);
}

struct part {
	struct rfl_kernel_arrays arrays;
	struct rfl_kernel_chains chains;
};

static void work(const struct rfl_peak_kernel *k, struct part *part, uint64_t iters)
{
	part->chains.iters = iters;
	part->arrays.passes = (size_t)iters;
	if (k->kind == RFL_LOOP_CHAIN)
		k->chains(&part->chains);
	else
		k->arrays(&part->arrays);
}

/* First touch: a page is allocated near the thread that first writes to it. Where there are several
 * nodes, memory is also bound, so that the kernel does not move it to threads of another node. */
static void touch(struct worker *w)
{
	const struct rfl_bench *b = w->team->bench;
	const size_t n = (size_t)b->slice_bytes / sizeof(double);

	for (int i = 0; i < ARRAYS; i++) {
		double *slice = b->arrays[i] + (size_t)w->index * n;

		if (b->machine->numa_nodes > 1 &&
		    rfl_bind_memory(slice, n * sizeof(double), b->cpus[w->index]->numa_node,
				    NULL) != RFL_OK)
			w->unbound = true;
		for (size_t j = 0; j < n; j++)
			slice[j] = 1.0;
	}
}

/* Initialise the chains, or find this thread's slice of each array. */
static void prepare(struct worker *w, struct part *part)
{
	const struct rfl_bench *b = w->team->bench;
	const struct rfl_bench_job *job = w->team->job;
	const struct rfl_peak_kernel *k = job->kernel;
	const size_t n = (size_t)b->slice_bytes / sizeof(double);
	const size_t at = (size_t)(job->slices + w->index) * n;

	memset(part, 0, sizeof(*part));
	if (k->kind == RFL_LOOP_CHAIN) {
		rfl_peak_kernel_prepare(k, &part->chains);
		return;
	}
	part->arrays = (struct rfl_kernel_arrays){ .a = b->arrays[0] + at,
						   .b = b->arrays[1] + at,
						   .c = b->arrays[2] + at,
						   .scale = 3.0,
						   .n = n,
						   .passes = 1 };
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

/* The CPU time of the calling thread. */
static double thread_s(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How often a thread of this process had to let another run. */
static long switches(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nivcsw;
}

static struct rfl_load read_load(const struct team *team)
{
	int cpus[256];
	int n = team->n < 256 ? team->n : 256; /* a sample is enough */
	struct rfl_load ret;

	for (int i = 0; i < n; i++)
		cpus[i] = team->bench->cpus[team->job->first + i]->os_index;
	(void)rfl_load_read("", cpus, (size_t)n, &ret);
	ret.steal_s *= (double)team->n / n;
	return ret;
}

/* Before the first repeat: note the time and the load. */
static void begin(struct team *team, double each_s, double work_per_iter)
{
	const struct rfl_bench_job *job = team->job;
	const double iters = job->window_s / each_s;

	team->iters = iters > 1 ? (uint64_t)(iters + 0.5) : 1;
	team->work_per_iter = work_per_iter;
	team->more = true;
	team->load = read_load(team);
	team->switches = switches();
	team->begin_s = rfl_clock_s();
	team->limit_s = job->limit_s > 0 ? team->begin_s + job->limit_s : INFINITY;
}

/* The share of a repeat that one of its threads was off its CPU, at most. */
static double disturbance(const struct team *team, int repeat)
{
	double most = 0, start_s = INFINITY;

	for (int i = 0; i < team->n; i++)
		start_s = fmin(start_s, team->workers[i].spans[repeat].start_s);
	for (int i = 0; i < team->n; i++) {
		const struct span *s = &team->workers[i].spans[repeat];
		const double wall = s->stop_s - start_s; /* includes a late start */

		most = fmax(most, (wall - s->on_s - NOISE_S) / wall);
	}
	return most;
}

/* After a repeat: decide whether there is another one. */
static void count_repeat(struct team *team)
{
	const struct rfl_bench_job *job = team->job;

	team->clean += disturbance(team, team->spans) <= DISTURBED;
	team->spans++;
	team->more = team->clean < job->repeats && team->spans < 2 * job->repeats &&
		     (team->spans < job->least || (rfl_clock_s() < team->limit_s &&
						   (team->clean > 0 || team->spans < HOPELESS)));
}

/* After the last repeat: what other programs and the hypervisor took meanwhile. Times of less than
 * the resolution of the system's clock count as none. */
static void finish(struct team *team)
{
	struct rfl_interference *seen = &team->seen;
	const double wall = rfl_clock_s() - team->begin_s;
	const struct rfl_load now = read_load(team);
	const double steal_s = now.steal_s - team->load.steal_s - rfl_load_tick_s() * team->n;

	seen->switches = switches() - team->switches;
	seen->thread_s = wall * team->n;
	seen->machine_s = wall * team->bench->machine->hw_threads;
	seen->others_s = rfl_load_others(&team->load, &now) * seen->machine_s;
	seen->steal_s = steal_s < 0 ? 0 : steal_s;
}

/* Start a repeat together. A barrier wakes the threads one after the other; those that are already
 * awake wait for the others, but not for long, because one may have lost its CPU. */
static void start_together(struct team *team, int repeat)
{
	const double limit_s = rfl_clock_s() + TOGETHER_S;

	wait_at(&team->barrier);
	atomic_fetch_add(&team->awake, 1);
	while (atomic_load(&team->awake) < team->n * (repeat + 1) && rfl_clock_s() < limit_s)
		;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct team *team = w->team;
	const struct rfl_bench_job *job = team->job;
	const struct rfl_cpu *const *cpus = team->bench->cpus + (job ? job->first : 0);
	struct part part;
	double each_s;

	pthread_mutex_lock(&team->gate);
	pthread_mutex_unlock(&team->gate);
	if (team->aborted)
		return NULL;
	/* a thread that cannot be pinned still waits at the barriers; the job fails at the end */
	(void)!rfl_pin_thread(cpus[w->index]->os_index, &w->err);
	if (!job) {
		touch(w);
		return NULL;
	}
	prepare(w, &part);
	wait_at(&team->barrier);
	each_s = settle(job, &part);
	if (w->index == 0) {
		const struct rfl_peak_kernel *k = job->kernel;

		begin(team, each_s,
		      k->kind == RFL_LOOP_CHAIN
			      ? k->flops_per_iter
			      : k->bytes_per_iter * (double)(part.arrays.n / (size_t)k->step));
	}
	for (struct span *s = w->spans;; s++) {
		start_together(team, (int)(s - w->spans));
		if (!team->more)
			break;
		s->start_s = rfl_clock_s();
		s->on_s = -thread_s();
		work(job->kernel, &part, team->iters);
		s->on_s += thread_s();
		s->stop_s = rfl_clock_s();
		s->clock_hz = rfl_core_clock_hz();
		wait_at(&team->barrier);
		if (w->index == 0)
			count_repeat(team);
	}
	if (w->index == 0)
		finish(team);
	return NULL;
}

/* Start the threads, let them run the job, and wait for them. */
static enum rfl_rc run_team(struct team *team, struct rfl_err *err)
{
	const int n = team->n;
	enum rfl_rc rc = RFL_OK;
	int started = 0;
	int failed;

	team->barrier = (struct barrier){ .n = n, .missing = n };
	pthread_mutex_init(&team->barrier.lock, NULL);
	pthread_cond_init(&team->barrier.open, NULL);
	pthread_mutex_init(&team->gate, NULL);
	pthread_mutex_lock(&team->gate);
	for (; started < n && rc == RFL_OK; started += rc == RFL_OK) {
		struct worker *w = &team->workers[started];

		failed = pthread_create(&w->thread, NULL, worker_main, w);
		if (failed)
			rc = rfl_fail(err, RFL_EUNAVAILABLE, failed,
				      "cannot start thread %d of %d: %s", started + 1, n,
				      strerror(failed));
	}
	team->aborted = rc != RFL_OK;
	pthread_mutex_unlock(&team->gate);
	for (int i = 0; i < started; i++) {
		pthread_join(team->workers[i].thread, NULL);
		if (rc == RFL_OK && team->workers[i].err.rc != RFL_OK)
			rc = rfl_err_pass(err, &team->workers[i].err);
	}
	pthread_cond_destroy(&team->barrier.open);
	pthread_mutex_destroy(&team->barrier.lock);
	pthread_mutex_destroy(&team->gate);
	return rc;
}

/* Let every worker write to its slices. */
static enum rfl_rc touch_all(struct rfl_bench *b, struct rfl_err *err)
{
	struct team team = { .bench = b, .n = b->threads };
	enum rfl_rc rc;

	team.workers = rfl_alloc_array((size_t)team.n, sizeof(*team.workers));
	for (int i = 0; i < team.n; i++)
		team.workers[i] = (struct worker){ .team = &team, .index = i };
	rc = run_team(&team, err);
	b->touched = rc == RFL_OK;
	for (int i = 0; i < team.n; i++)
		b->unbound = b->unbound || team.workers[i].unbound;
	free(team.workers);
	return rc;
}

struct attempt {
	double disturbance, rate;
};

static int by_disturbance(const void *a, const void *b)
{
	const double x = ((const struct attempt *)a)->disturbance;
	const double y = ((const struct attempt *)b)->disturbance;

	return (x > y) - (x < y);
}

/* Fill the result from the spans of the workers. */
static void evaluate(const struct team *team, struct rfl_bench_result *ret)
{
	const struct rfl_bench_job *job = team->job;
	const int n = team->n, total = team->spans;
	const int least = job->repeats < ENOUGH ? job->repeats : ENOUGH;
	const int counted = team->clean < least ? total : team->clean;
	struct rfl_interference *seen = &ret->interference;
	RFL_AUTOFREE struct attempt *attempts = rfl_alloc_array((size_t)total, sizeof(*attempts));
	RFL_AUTOFREE double *clocks = rfl_alloc_array((size_t)(total * n), sizeof(*clocks));

	*seen = team->seen;
	for (int r = 0; r < total; r++) { /* timed from first start to last stop */
		double start = INFINITY, stop = 0;

		for (int i = 0; i < n; i++) {
			const struct span *s = &team->workers[i].spans[r];

			start = fmin(start, s->start_s);
			stop = fmax(stop, s->stop_s);
			seen->off_s += fmax(s->stop_s - s->start_s - s->on_s, 0);
			clocks[r * n + i] = s->clock_hz;
		}
		attempts[r] = (struct attempt){
			.disturbance = disturbance(team, r),
			.rate = team->work_per_iter * (double)team->iters * n / (stop - start),
		};
	}
	qsort(attempts, (size_t)total, sizeof(*attempts), by_disturbance);
	seen->repeats = counted < job->repeats ? counted : job->repeats;
	seen->discarded = total - seen->repeats;
	for (int r = 0; r < seen->repeats; r++) {
		ret->rates[r] = attempts[r].rate;
		seen->disturbed += attempts[r].disturbance > DISTURBED;
	}
	ret->clock_hz = rfl_stats_of(clocks, (size_t)(total * n)).median;
}

enum rfl_rc rfl_bench_run(struct rfl_bench *b, const struct rfl_bench_job *job,
			  struct rfl_bench_result *ret, struct rfl_err *err)
{
	struct team team = { .bench = b, .job = job, .n = job->threads };
	struct span *spans = NULL;
	enum rfl_rc rc = rfl_peak_kernel_probe(job->kernel, err);

	if (rc != RFL_OK)
		return rc;
	assert(job->threads >= 1 && job->first >= 0 && job->slices >= 0 && job->repeats >= 1);
	assert(job->first + job->threads <= b->threads);
	assert(job->slices + job->threads <= b->threads);
	assert(job->slice_bytes <=
	       (job->threads == 1 ? (b->threads - job->slices) * b->slice_bytes : b->slice_bytes));
	const size_t n = (size_t)job->threads, repeats = 2 * (size_t)job->repeats;

	team.workers = rfl_alloc_array(n, sizeof(*team.workers));
	spans = rfl_alloc_array(n * repeats, sizeof(*spans));
	for (size_t i = 0; i < n; i++)
		team.workers[i] = (struct worker){ .team = &team,
						   .index = (int)i,
						   .spans = spans + i * repeats };
	if (job->kernel->kind != RFL_LOOP_CHAIN && !b->touched)
		rc = touch_all(b, err);
	if (rc == RFL_OK)
		rc = run_team(&team, err);
	if (rc == RFL_OK)
		evaluate(&team, ret);
	free(spans);
	free(team.workers);
	return rc;
}
