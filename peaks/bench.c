/*
 * bench.c - places, arrays and the life of a job. One thread's part in a job is bench_worker.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#endif
#include "peaks/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "peaks/bench_impl.h"

enum {
	GRAIN = 4096, /* bytes: slices are whole pages, and whole steps of every kernel */
	HUGE_PAGE = 2 << 20,
	ARRAYS = 3,
	LLC_FACTOR = 4,
	/* taken for the caches when neither system nor processor tells: rather too much */
	LLC_LEAST = 256 << 20,
	LLC_PER_THREAD = 16 << 20,
};

/* Arrays begin at different offsets within a page, or loads of one would seem to depend on stores
 * to another (4K aliasing). */
static const size_t offsets[ARRAYS] = { 0, GRAIN + 1344, 2 * (size_t)GRAIN + 2688 };

static int64_t round_up(int64_t value, int64_t to)
{
	return (value + to - 1) / to * to;
}

static int64_t assumed_llc(const struct rfl_machine *m)
{
	const int64_t bytes = (int64_t)m->hw_threads * LLC_PER_THREAD;

	return bytes > LLC_LEAST ? bytes : LLC_LEAST;
}

/* Bytes of one array: as asked, but at most half of the memory that we could have. */
static void size_arrays(struct rfl_bench *b, int64_t asked)
{
	const struct rfl_machine *m = b->machine;
	const int64_t llc = rfl_machine_llc_bytes(m);
	const int64_t grain = (int64_t)GRAIN * b->threads;
	const int64_t room = m->memory_available_bytes / 2 / ARRAYS;

	b->llc_bytes = llc > 0 ? llc : assumed_llc(m);
	int64_t bytes = asked > 0 ? asked : LLC_FACTOR * b->llc_bytes;

	bytes = round_up(bytes, grain);
	if (m->memory_available_bytes > 0 && bytes > room) {
		bytes = room / grain * grain;
		b->capped = true;
	}
	b->slice_bytes = bytes / b->threads;
}

static enum rfl_rc map_arrays(struct rfl_bench *b, struct rfl_err *err)
{
	const size_t stride = (size_t)round_up(b->slice_bytes * b->threads, HUGE_PAGE) + HUGE_PAGE;

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
	/* fewer page walks; refused where the system has none, which is seen and recorded later */
	(void)madvise(b->map, b->map_bytes, MADV_HUGEPAGE);
#endif
	char *const base = (char *)round_up((int64_t)(uintptr_t)b->map, HUGE_PAGE);

	for (size_t i = 0; i < ARRAYS; i++)
		b->arrays[i] = (double *)(void *)(base + i * stride + offsets[i]);
	return RFL_OK;
}

static void choose_places(struct rfl_bench *b)
{
	for (int i = 0; i < b->threads; i++)
		b->places[i] = b->machine->cpus[i].os_index;
}

enum rfl_rc rfl_bench_open(const struct rfl_bench_config *config, struct rfl_bench **ret,
			   struct rfl_err *err)
{
	const struct rfl_machine *m = config->machine;
	struct rfl_bench *b = NULL;
	enum rfl_rc rc;

	if (config->threads < 1 || (size_t)config->threads > m->ncpus)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%d threads: this process may use 1 to %zu hardware threads",
				config->threads, m->ncpus);
	b = calloc(1, sizeof(*b));
	if (!b || !(b->places = rfl_alloc_array((size_t)config->threads, sizeof(*b->places)))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %d threads", config->threads);
		goto done;
	}
	b->machine = m;
	b->threads = config->threads;
	choose_places(b);
	size_arrays(b, config->array_bytes);
	if (b->slice_bytes < GRAIN) {
		rc = rfl_fail(err, RFL_ENOMEM, 0,
			      "%" PRId64 " bytes of memory are available: too few for a bandwidth "
			      "measurement",
			      m->memory_available_bytes);
		goto done;
	}
	rc = map_arrays(b, err);
	if (rc != RFL_OK)
		goto done;

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

int64_t rfl_bench_array_bytes(const struct rfl_bench *b)
{
	return b->slice_bytes * b->threads;
}

int64_t rfl_bench_llc_bytes(const struct rfl_bench *b)
{
	return b->llc_bytes;
}

bool rfl_bench_capped(const struct rfl_bench *b)
{
	return b->capped;
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
			known = kib * 1024 > rfl_bench_array_bytes(b) * ARRAYS / 2 ? RFL_YES
										   : RFL_NO;
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

/* Rates of a job whose threads have all come back. */
static void sum_up(const struct rfl_bench_team *team, double *rates)
{
	for (int r = 0; r < team->job->repeats; r++) {
		double start = team->workers[0].spans[r].start_s;
		double stop = team->workers[0].spans[r].stop_s;

		for (int i = 1; i < team->job->threads; i++) {
			const struct rfl_bench_span *s = &team->workers[i].spans[r];

			start = s->start_s < start ? s->start_s : start;
			stop = s->stop_s > stop ? s->stop_s : stop;
		}
		rates[r] = team->work_per_iter * (double)team->iters * team->job->threads /
			   (stop - start);
	}
}

static void free_team(struct rfl_bench_team *team)
{
	if (team->workers) {
		for (int i = 0; i < team->job->threads; i++)
			free(team->workers[i].spans);
	}
	free(team->workers);
}

static enum rfl_rc make_team(struct rfl_bench *b, const struct rfl_bench_job *job,
			     struct rfl_bench_team *team, struct rfl_err *err)
{
	*team = (struct rfl_bench_team){ .bench = b, .job = job };
	team->workers = rfl_alloc_array((size_t)job->threads, sizeof(*team->workers));
	for (int i = 0; team->workers && i < job->threads; i++) {
		team->workers[i].team = team;
		team->workers[i].index = i;
		team->workers[i].spans =
			rfl_alloc_array((size_t)job->repeats, sizeof(*team->workers[i].spans));
		if (!team->workers[i].spans)
			return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the repeats");
	}
	if (!team->workers)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for %d threads", job->threads);
	return RFL_OK;
}

enum rfl_rc rfl_bench_run(struct rfl_bench *b, const struct rfl_bench_job *job,
			  struct rfl_bench_result *ret, struct rfl_err *err)
{
	struct rfl_bench_team team = { .job = job };
	double *rates = NULL;
	enum rfl_rc rc = rfl_peak_kernel_probe(job->kernel, err);

	if (rc != RFL_OK)
		return rc;
	if (job->threads < 1 || job->threads > b->threads || job->repeats < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%d threads, %d repeats: not a job for %d threads", job->threads,
				job->repeats, b->threads);
	rc = make_team(b, job, &team, err);
	if (rc != RFL_OK)
		goto done;
	rates = rfl_alloc_array((size_t)job->repeats, sizeof(*rates));
	if (!rates) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the repeats");
		goto done;
	}
	rc = rfl_bench__run_team(&team, err);
	if (rc != RFL_OK)
		goto done;
	sum_up(&team, rates);
	if (job->kernel->kind != RFL_KERNEL_CHAIN && job->threads == b->threads)
		b->touched = true;

	*ret = (struct rfl_bench_result){ .n = job->repeats, .rates = rates };
	rates = NULL;
done:
	free(rates);
	free_team(&team);
	return rc;
}
