/*
 * loader_rate.c - measures the speed of a source of batches with warm or cold files.
 */
#define _DEFAULT_SOURCE /* mincore() */

#include "data/parts.h"

#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/os.h"
#include "machine/machine.h"

#define SAMPLED 500 /* files checked: enough for a resolution of 1 % */

/* Drop the pages of a file from the page cache. */
static void drop_pages(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd); /* dirty pages cannot be dropped */
	rfl_os_drop_pages(fd);
	close(fd);
}

/* Add the number of pages of a file and the number of its pages in memory. */
static void count_pages(const char *path, size_t *pages, size_t *resident)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char present[4096];
	struct stat st;
	size_t size, n;
	void *map;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		size = (size_t)st.st_size;
		if (size > sizeof(present) * page)
			size = sizeof(present) * page;
		map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		n = (size + page - 1) / page;
		if (map != MAP_FAILED && mincore(map, size, (void *)present) == 0) {
			*pages += n;
			for (size_t i = 0; i < n; i++)
				*resident += present[i] & 1U;
		}
		if (map != MAP_FAILED)
			munmap(map, size);
	}
	close(fd);
}

/* Drop the files from the page cache, or read them into it up to half of the free memory.
 * @param in_page_cache  resulting fraction of their pages in it; NaN: unknown
 * @param per_epoch      batches in an epoch */
static enum rfl_rc prepare_pages(const struct rfl_loader_rate_config *c, double *in_page_cache,
				 int64_t *per_epoch, struct rfl_err *err)
{
	size_t step, pages = 0, resident = 0, read = 0, most = 0;
	RFL_AUTOPTR(dataset) set = NULL;
	struct rfl_machine *m = NULL;
	RFL_AUTO(buf) bytes = { .len = 0 };
	char path[4096];
	enum rfl_rc rc;

	*in_page_cache = NAN;
	*per_epoch = INT64_MAX;
	if (c->data.kind != RFL_DATA_IMAGEFOLDER)
		return RFL_OK;
	/* the loader logs skipped files and checks the number of classes */
	rc = rfl_dataset_open(c->data.dir, "train", INT64_MAX, false, true, &set, err);
	if (rc)
		return rc;
	if (rfl_machine_new(&m, NULL) == RFL_OK)
		most = (size_t)m->memory_available_bytes / 2;
	rfl_machine_free(m);
	for (size_t i = 0; i < set->nimages; i++) {
		if (rfl_dataset_path(set, i, path, sizeof(path), NULL))
			continue;
		rfl_buf_reset(&bytes);
		if (c->cold)
			drop_pages(path);
		else if (read < most && rfl_file_read(path, &bytes, NULL) == RFL_OK)
			read += bytes.len;
	}
	step = set->nimages / SAMPLED + 1;
	for (size_t i = 0; i < set->nimages; i += step)
		if (rfl_dataset_path(set, i, path, sizeof(path), NULL) == RFL_OK)
			count_pages(path, &pages, &resident);
	if (pages > 0)
		*in_page_cache = (double)resident / (double)pages;
	*per_epoch = (int64_t)set->nimages / c->batch;
	return RFL_OK;
}

static double cpu_s(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		return NAN;
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum rfl_rc rfl_loader_rate_measure(const struct rfl_loader_rate_config *config,
				    struct rfl_loader_rate *ret, struct rfl_err *err)
{
	struct rfl_loader_rate rate = { .images = 0 };
	struct rfl_data_stats stats;
	RFL_AUTOPTR(data) data = NULL;
	struct rfl_batch batch;
	double begun, cpu;
	int64_t n, batches = 0, most = config->batches, per_epoch = 0;
	enum rfl_rc rc;

	if ((rc = prepare_pages(config, &rate.in_page_cache, &per_epoch, err)) != RFL_OK ||
	    (rc = rfl_data_open_images(&config->data, &config->shape, config->batch, config->layout,
				       NULL, &data, err)) != RFL_OK)
		return rc;
	/* first consume the batches decoded ahead, unless this would warm the files */
	n = config->data.workers ? config->data.ahead + 1 : 1;
	for (int64_t i = 0; i < n && !config->cold && rc == RFL_OK; i++)
		rc = rfl_data_next(data, &batch, err);
	if (rc)
		return rc;

	/* a cold window ends with the epoch, after which the files are warm */
	if (config->cold && (most == 0 || most > per_epoch))
		most = per_epoch > 0 ? per_epoch : 1;
	rfl_data_reset_stats(data);
	begun = rfl_clock_s();
	cpu = cpu_s();
	do {
		rc = rfl_data_next(data, &batch, err);
		batches++;
	} while (rc == RFL_OK && (most == 0 || batches < most) &&
		 (config->batches > 0 || rfl_clock_s() < begun + config->seconds));
	if (rc)
		return rc;
	rate.wall_s = rfl_clock_s() - begun;
	rate.cpu_s = cpu_s() - cpu;
	rate.images = batches * config->batch;
	stats = rfl_data_stats(data);
	rate.images_per_s = (double)rate.images / rate.wall_s;
	rate.images_per_thread_s = (double)stats.decoded / stats.decode_s;
	rate.images_per_cpu_s = (double)rate.images / rate.cpu_s;
	/* stats.decoded includes images beyond the last batch */
	rate.bytes_per_s = stats.read_bytes > 0 ? (double)stats.read_bytes / (double)stats.decoded *
							  rate.images_per_s
						: (double)NAN;
	rate.queue_mean = stats.queue_mean;
	rate.bad = stats.bad;
	*ret = rate;
	return rc;
}
