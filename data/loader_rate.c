/*
 * loader_rate.c - takes batches as fast as they come, and counts; how many of a set's files the
 * system keeps in memory, and how to change that.
 */
#define _DEFAULT_SOURCE /* mincore() */

#include "data/loader_rate.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/cache.h"
#include "data/dataset.h"
#include "machine/machine.h"

#define SAMPLED 500 /* files that are checked: enough for a part in a hundred */

/* ---- the page cache ---- */

static int open_at(const struct rfl_dataset *set, size_t i)
{
	char path[4096];

	return rfl_dataset_path(set, i, path, sizeof(path), NULL)
		       ? -1
		       : open(path, O_RDONLY | O_CLOEXEC);
}

/* Ask the system to forget the pages of a set's files. */
static void drop_pages(const struct rfl_dataset *set)
{
	for (size_t i = 0; i < set->nimages; i++) {
		int fd = open_at(set, i);

		if (fd < 0)
			continue;
		(void)fdatasync(fd); /* a page that is not written yet stays */
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
}

/* Read the files once, as far as half of the free memory goes. */
static void warm_pages(const struct rfl_dataset *set)
{
	struct rfl_file_bytes bytes = { .data = NULL };
	struct rfl_machine *m = NULL;
	uint64_t read = 0, most = 0;

	if (rfl_machine_new(&m, NULL) == RFL_OK)
		most = (uint64_t)m->memory_available_bytes / 2;
	rfl_machine_free(m);
	for (size_t i = 0; i < set->nimages && read < most; i++) {
		char path[4096];

		if (rfl_dataset_path(set, i, path, sizeof(path), NULL) == RFL_OK &&
		    rfl_file_bytes_read(&bytes, path, NULL) == RFL_OK)
			read += bytes.len;
	}
	free(bytes.data);
}

/* Adds the pages of one file, and those that are in memory. */
static void look_at(int fd, size_t page, size_t *pages, size_t *resident)
{
	unsigned char present[4096];
	struct stat st;
	size_t size, n;
	void *map;

	if (fstat(fd, &st) != 0 || st.st_size <= 0)
		return;
	size = (size_t)st.st_size;
	if (size > sizeof(present) * page)
		size = sizeof(present) * page;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return;
	n = (size + page - 1) / page;
	if (mincore(map, size, present) == 0) {
		*pages += n;
		for (size_t i = 0; i < n; i++)
			*resident += present[i] & 1U;
	}
	munmap(map, size);
}

/* Part of the pages of the files that are in memory; NaN: not known. */
static double resident_part(const struct rfl_dataset *set)
{
	const long page = sysconf(_SC_PAGESIZE);
	size_t step = set->nimages / SAMPLED + 1, pages = 0, resident = 0;

	for (size_t i = 0; i < set->nimages && page > 0; i += step) {
		int fd = open_at(set, i);

		if (fd < 0)
			continue;
		look_at(fd, (size_t)page, &pages, &resident);
		close(fd);
	}
	return pages > 0 ? (double)resident / (double)pages : (double)NAN;
}

/* ---- the window ---- */

static double cpu_s(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		return NAN;
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bring the files into the state that was asked for, and say how far that went. */
static enum rfl_rc prepare_pages(const struct rfl_loader_rate_config *c, double *in_page_cache,
				 int64_t *per_epoch, struct rfl_err *err)
{
	struct rfl_dataset *set = NULL;
	enum rfl_rc rc;

	*in_page_cache = NAN;
	*per_epoch = INT64_MAX;
	if (c->data.kind != RFL_DATA_IMAGEFOLDER)
		return RFL_OK;
	rc = rfl_dataset_open(c->data.dir, true, &set, err); /* the loader names */
	if (rc)
		return rc;
	if (c->cold)
		drop_pages(set);
	else
		warm_pages(set);
	*in_page_cache = resident_part(set);
	*per_epoch = (int64_t)set->nimages / c->batch;
	rfl_dataset_free(set);
	return RFL_OK;
}

static enum rfl_rc take(struct rfl_data *data, int64_t n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < n && rc == RFL_OK; i++) {
		struct rfl_batch batch;

		rc = rfl_data_next(data, &batch, err);
	}
	return rc;
}

/* Batches until the window is over. A cold one ends with the epoch: then the files are warm. */
static enum rfl_rc window(const struct rfl_loader_rate_config *c, struct rfl_data *data,
			  int64_t per_epoch, int64_t *batches, struct rfl_err *err)
{
	const double end = rfl_clock_s() + c->seconds;
	int64_t most = c->batches;
	enum rfl_rc rc = RFL_OK;

	if (c->cold && (most == 0 || most > per_epoch))
		most = per_epoch > 0 ? per_epoch : 1;
	*batches = 0;
	do {
		rc = take(data, 1, err);
		++*batches;
	} while (rc == RFL_OK && (most == 0 || *batches < most) &&
		 (c->batches > 0 || rfl_clock_s() < end));
	return rc;
}

enum rfl_rc rfl_loader_rate_measure(const struct rfl_loader_rate_config *config,
				    struct rfl_loader_rate *ret, struct rfl_err *err)
{
	struct rfl_loader_rate rate = { .images = 0 };
	struct rfl_data_stats stats;
	struct rfl_data *data = NULL;
	double begun, cpu;
	int64_t batches = 0, per_epoch = 0;
	enum rfl_rc rc = prepare_pages(config, &rate.in_page_cache, &per_epoch, err);

	if (rc == RFL_OK)
		rc = rfl_data_open_images(&config->data, &config->shape, config->batch,
					  config->layout, NULL, &data, err);
	/* what was made ahead before the clock ran is taken first; cold files stay cold only once
	 */
	if (rc == RFL_OK && !config->cold)
		rc = take(data, config->data.workers ? config->data.ahead + 1 : 1, err);
	if (rc)
		goto done;
	rfl_data_reset_stats(data);
	begun = rfl_clock_s();
	cpu = cpu_s();
	rc = window(config, data, per_epoch, &batches, err);
	if (rc)
		goto done;
	rate.wall_s = rfl_clock_s() - begun;
	rate.cpu_s = cpu_s() - cpu;
	rate.images = batches * config->batch;
	stats = rfl_data_stats(data);
	rate.images_per_s = (double)rate.images / rate.wall_s;
	rate.images_per_thread_s = (double)stats.decoded / stats.decode_s;
	rate.images_per_cpu_s = (double)rate.images / rate.cpu_s;
	/* images decoded beyond the last batch are in the one count and not in the other */
	rate.bytes_per_s = stats.read_bytes > 0 ? (double)stats.read_bytes / (double)stats.decoded *
							  rate.images_per_s
						: (double)NAN;
	rate.queue_mean = stats.queue_mean;
	rate.bad = stats.bad;
	*ret = rate;
done:
	rfl_data_free(data);
	return rc;
}
