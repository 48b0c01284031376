/* file.h - files and folders: whole reads, atomic writes, exclusive creation, paths. */
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

/** Replace a file atomically, by a synced temporary file next to it: readers see the old or the new
 * content. A link is followed unless another user made it in a folder that is not theirs. */
enum rfl_rc rfl_file_write(const char *path, const void *data, size_t len,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a temporary file next to one that is too large for rfl_file_write(). The caller fills and
 * closes it, renames or removes it, and frees its name. */
enum rfl_rc rfl_file_neighbour(const char *path, char **name, FILE **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Remove the temporary files that killed processes left next to a file. */
void rfl_file_sweep(const char *path);

enum rfl_file_use {
	RFL_FILE_FOLDER,   /**< files can be created in it */
	RFL_FILE_APPENDED, /**< it can be appended to */
	RFL_FILE_OPTIONAL, /**< it is a regular file: writing may fail, but not block */
};

/** Check that a path can be used in this way; an absent one can. RFL_EIO. */
enum rfl_rc rfl_file_check_use(const char *path, enum rfl_file_use use,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a file that must not exist yet. RFL_EIO with native EEXIST when it does. */
enum rfl_rc rfl_file_create(const char *path, const void *data, size_t len,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a file for reading and appending, creating it if absent, and wait for its exclusive lock. A
 * file that is replaced meanwhile is reopened; a device is not locked. Links are followed as by
 * rfl_file_write(). A wait of more than a second is logged.
 * @param ret  release with rfl_file_unlock() */
enum rfl_rc rfl_file_lock(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a file for reading with a shared lock. RFL_EIO if it is absent. */
enum rfl_rc rfl_file_lock_shared(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append to a file that rfl_file_lock() opened, in one write, and sync it. After RFL_EIO (a full
 * disk) the file is unchanged. */
enum rfl_rc rfl_file_append(int fd, const char *path, const void *data, size_t len,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Close the file, which releases its lock. Accepts -1. RFL_EIO: written data may be lost. */
enum rfl_rc rfl_file_unlock(int fd, const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** mkdir -p of a folder, or of the folder of a file. */
enum rfl_rc rfl_file_mkdirs(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_file_mkdirs_for(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** dir + "/" + name. malloc'ed; NULL if out of memory. */
char *rfl_path_join(const char *dir, const char *name) RFL_WARN_UNUSED;

/** The part after the last slash. Borrowed. */
const char *rfl_path_base(const char *path);

bool rfl_file_exists(const char *path);
/** Bytes of a regular file; 0 if it is empty, absent, or not a regular file. */
uint64_t rfl_file_size(const char *path);
bool rfl_dir_exists(const char *path);

/** 64-bit FNV-1a of a block, for content fingerprints (not for security). Start with h = 0. */
uint64_t rfl_hash64(uint64_t h, const void *data, size_t len);

/** A fingerprint as 16 hex digits. */
void rfl_hash64_text(uint64_t h, char out[17]);

#endif
