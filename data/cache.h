/*
 * cache.h - inside data/: the bytes of files, read one by one or kept in memory all together.
 */
#ifndef RFL_DATA_CACHE_H
#define RFL_DATA_CACHE_H

#include "data/dataset.h"

/** Larger files are refused. */
#define RFL_IMAGE_FILE_MAX ((int64_t)256 << 20)

/** Memory that is read into again and again; zeroed at first, `data` is the owner's to free. */
struct rfl_file_bytes {
	uint8_t *data;
	size_t len, cap;
};

/** Read a whole file. RFL_EIO; RFL_EFORMAT when it is larger than an image may be; RFL_ENOMEM. */
enum rfl_rc rfl_file_bytes_read(struct rfl_file_bytes *b, const char *path,
				struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_cache_files;

/**
 * Read all files of a set into memory.
 * @param most     bytes that may be kept; 0: nine tenths of the memory that is free
 * @param readers  threads; at least one is used
 * @return RFL_OK; RFL_ENOMEM naming both sizes when the files are more than that. A file that
 *         cannot be read is left out; reading it when it is needed reports the error.
 */
enum rfl_rc rfl_cache_files_new(const struct rfl_dataset *set, int64_t most, int readers,
				struct rfl_cache_files **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The bytes of the set's image `index`, borrowed; NULL when it was left out. */
const uint8_t *rfl_cache_files_at(const struct rfl_cache_files *c, size_t index, size_t *len);

void rfl_cache_files_free(struct rfl_cache_files *c); /**< accepts NULL */

#endif
