/*
 * file.h - files and folders: whole reads, atomic writes, exclusive creation, paths.
 */
#ifndef RFL_BASE_FILE_H
#define RFL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

/** Append a whole file to a buffer; RFL_EIO, or RFL_EOVERFLOW beyond the buffer's maximum. */
enum rfl_rc rfl_file_read(const char *path, struct rfl_buf *out,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Write a temporary neighbour, sync it, rename it: readers see the old file or the new, never
 * half. A link is followed unless another user made it in a folder that is not theirs. */
enum rfl_rc rfl_file_write(const char *path, const void *data, size_t len,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a temporary neighbour of a file that is too large for rfl_file_write(). The caller fills
 * and closes it, renames or removes it, and frees its name. */
enum rfl_rc rfl_file_neighbour(const char *path, char **name, FILE **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Remove temporary neighbours of a file that a killed process left. */
void rfl_file_sweep(const char *path);

enum rfl_file_use {
	RFL_FILE_FOLDER,   /**< files can be created in it */
	RFL_FILE_APPENDED, /**< it can be appended to */
	RFL_FILE_OPTIONAL, /**< it is a file: to write it may fail, but not block */
};

/** Can this be used so? If absent, it can. RFL_EIO. */
enum rfl_rc rfl_file_check_use(const char *path, enum rfl_file_use use,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a file that must not exist yet. RFL_EIO with native EEXIST when it does. */
enum rfl_rc rfl_file_create(const char *path, const void *data, size_t len,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a file, created when absent, for reading and appending, and wait for its exclusive lock. A
 * file that was replaced meanwhile is opened again; one that cannot be locked (a device) is used
 * without. A link is followed as in rfl_file_write(). A wait of more than a second is logged.
 * @param ret  release with rfl_file_unlock() */
enum rfl_rc rfl_file_lock(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for reading, shared with other readers. RFL_EIO when the file is absent. */
enum rfl_rc rfl_file_lock_shared(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append to a file that rfl_file_lock() opened, in one write, and sync it. After RFL_EIO (a full
 * disk) the file is as it was. */
enum rfl_rc rfl_file_append(int fd, const char *path, const void *data, size_t len,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Close the file, and so give its lock back. Accepts -1. RFL_EIO: what was written may be lost. */
enum rfl_rc rfl_file_unlock(int fd, const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** mkdir -p, and that of the folder that `path` would be in. */
enum rfl_rc rfl_file_mkdirs(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_file_mkdirs_for(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** dir + "/" + name. malloc'ed, the caller frees; NULL out of memory. */
char *rfl_path_join(const char *dir, const char *name) RFL_WARN_UNUSED;

/** The part after the last slash. Borrowed. */
const char *rfl_path_base(const char *path);

bool rfl_file_exists(const char *path);
/** Bytes of a regular file; 0 for one that is empty, absent, or something else. */
uint64_t rfl_file_size(const char *path);
bool rfl_dir_exists(const char *path);

/** 64-bit FNV-1a of a block, for content fingerprints (not for security). Start with h = 0. */
uint64_t rfl_hash64(uint64_t h, const void *data, size_t len);

/** A fingerprint as 16 hex digits. What a reader parsed is hashed by the reader: the file may have
 * grown since. */
void rfl_hash64_text(uint64_t h, char out[17]);

#endif
