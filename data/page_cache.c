/*
 * page_cache.c - which files of a set the system keeps in memory, and how to change that.
 */
#define _DEFAULT_SOURCE /* mincore() */

#include "data/loader_rate.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/cache.h"
#include "machine/machine.h"

#define SAMPLED 500 /* files that are looked at: enough for a part in a hundred */

static int open_at(const struct rfl_dataset *set, size_t i)
{
	char path[4096];

	return rfl_dataset_path(set, i, path, sizeof(path), NULL)
		       ? -1
		       : open(path, O_RDONLY | O_CLOEXEC);
}

void rfl_dataset_drop_pages(const struct rfl_dataset *set)
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

void rfl_dataset_warm_pages(const struct rfl_dataset *set)
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

double rfl_dataset_resident(const struct rfl_dataset *set)
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
