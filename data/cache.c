/*
 * cache.c - the bytes of files, read one by one or kept in memory all together.
 */
#include "data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/num.h"
#include "data/ring.h"

#define MAX_READERS 16

/* ---- one file ---- */

static enum rfl_rc read_all(int fd, uint8_t *to, size_t size, size_t *got)
{
	for (*got = 0; *got < size;) {
		ssize_t n = read(fd, to + *got, size - *got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return RFL_EIO;
		if (n == 0)
			break;
		*got += (size_t)n;
	}
	return RFL_OK;
}

enum rfl_rc rfl_file_bytes_read(struct rfl_file_bytes *b, const char *path, struct rfl_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum rfl_rc rc = RFL_OK;
	struct stat st;

	b->len = 0;
	if (fd < 0 || fstat(fd, &st) != 0) {
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
		goto done;
	}
	if (st.st_size > RFL_IMAGE_FILE_MAX) {
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s: larger than 256 MiB", path);
		goto done;
	}
	if ((size_t)st.st_size > b->cap) {
		free(b->data);
		b->data = malloc((size_t)st.st_size);
		b->cap = b->data ? (size_t)st.st_size : 0;
		if (!b->data) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
			goto done;
		}
	}
	if (read_all(fd, b->data, (size_t)st.st_size, &b->len))
		rc = rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
done:
	if (fd >= 0)
		close(fd);
	return rc;
}

/* ---- all files ---- */

struct entry {
	size_t at, size; /* place in the block; size 0: not kept */
};

struct rfl_cache_files {
	size_t n;
	struct entry *entries;
	uint8_t *block;
	/* while it is filled: */
	const struct rfl_dataset *set;
	atomic_size_t next;
};

void rfl_cache_files_free(struct rfl_cache_files *c)
{
	if (!c)
		return;
	free(c->entries);
	free(c->block);
	free(c);
}

const uint8_t *rfl_cache_files_at(const struct rfl_cache_files *c, size_t index, size_t *len)
{
	*len = c->entries[index].size;
	return *len ? c->block + c->entries[index].at : NULL;
}

/* Files into their places. One that has become shorter, or cannot be read, is not kept. */
static void *reader_main(void *arg)
{
	struct rfl_cache_files *c = arg;
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->n) {
		struct entry *e = &c->entries[i];
		char path[4096];
		size_t got = 0;
		int fd = -1;

		if (e->size > 0 && rfl_dataset_path(c->set, i, path, sizeof(path), NULL) == RFL_OK)
			fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read_all(fd, c->block + e->at, e->size, &got) || got < e->size)
			e->size = 0;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

/* A thread that does not start is no loss: this one reads as well. */
static void fill(struct rfl_cache_files *c, int readers)
{
	pthread_t threads[MAX_READERS];
	int n = 0, wanted = readers < MAX_READERS ? readers : MAX_READERS;

	while (n < wanted - 1 && pthread_create(&threads[n], NULL, reader_main, c) == 0)
		n++;
	reader_main(c);
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

/* Do the files fit the caller's bound, and what is free? */
static enum rfl_rc check_size(const struct rfl_cache_files *c, size_t total, int64_t most,
			      struct rfl_err *err)
{
	char need[RFL_NUM_MAX], have[RFL_NUM_MAX];
	int64_t available;
	enum rfl_rc rc = rfl_data__room(&available, err);

	if (rc)
		return rc;
	if (most <= 0 || most > available)
		most = available;
	if (total <= (uint64_t)most)
		return RFL_OK;
	rfl_num_bytes((double)total, need, sizeof(need));
	rfl_num_bytes((double)most, have, sizeof(have));
	return rfl_fail(err, RFL_ENOMEM, 0,
			"%s: its %zu images are %s, but the cache may hold %s; use imagefolder, "
			"which reads them as they are needed",
			c->set->dir, c->n, need, have);
}

enum rfl_rc rfl_cache_files_new(const struct rfl_dataset *set, int64_t most, int readers,
				struct rfl_cache_files **ret, struct rfl_err *err)
{
	struct rfl_cache_files *c = calloc(1, sizeof(*c));
	enum rfl_rc rc = RFL_OK;
	size_t total = 0;

	if (c)
		c->entries = rfl_alloc_array(set->nimages, sizeof(*c->entries));
	if (!c || !c->entries) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", set->dir);
		goto done;
	}
	c->n = set->nimages;
	c->set = set;
	for (size_t i = 0; i < c->n; i++) {
		char path[4096];
		struct stat st;

		c->entries[i].at = total;
		if (rfl_dataset_path(set, i, path, sizeof(path), NULL) || stat(path, &st) != 0 ||
		    st.st_size > RFL_IMAGE_FILE_MAX || st.st_size < 0)
			continue; /* no readable image file by its size: not kept */
		c->entries[i].size = (size_t)st.st_size;
		total += c->entries[i].size;
	}
	rc = check_size(c, total, most, err);
	if (rc)
		goto done;
	c->block = malloc(total > 0 ? total : 1);
	if (!c->block) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: cache of %zu bytes: out of memory", set->dir,
			      total);
		goto done;
	}
	fill(c, readers);
	*ret = c;
	c = NULL;
done:
	rfl_cache_files_free(c);
	return rc;
}
