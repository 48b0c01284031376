/* file.h - files and directories: reading, atomic writing, exclusive creation, locks, paths. */
#ifndef RFL_BASE_FILE_H
#define RFL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

RFL_API_BEGIN

struct rfl_arena;

/** Append a whole file to a buffer; RFL_EIO, or RFL_EOVERFLOW if the buffer is too small. */
enum rfl_rc rfl_file_read(const char *path, struct rfl_buf *out,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a file that the user did not name but the program found, perhaps in a directory that others
 * can write to: RFL_EIO also if it is not a regular file, or neither this user's, nor root's, nor
 * the directory owner's. */
enum rfl_rc rfl_file_read_found(const char *path, struct rfl_buf *out,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Replace a file atomically with a synced temporary file: readers see the old or the new content.
 * A link is followed unless another user made it in a directory that this user does not own. */
enum rfl_rc rfl_file_write(const char *path, const void *data, size_t len,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Replace a file atomically with a copy of another, of any size. */
enum rfl_rc rfl_file_copy(const char *from, const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** The file to which a path leads: symbolic links are followed, also to a file that does not exist
 * yet. RFL_EIO for a loop, or a link that rfl_file_write() does not follow.
 * @param ret  malloc'ed */
enum rfl_rc rfl_file_target(const char *path, char **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a temporary file in the directory of a file too large for rfl_file_write(). The caller
 * fills it, and calls rfl_file_replace(). */
enum rfl_rc rfl_file_neighbour(const char *path, char **name, FILE **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Sync a temporary file and rename it, so that it replaces `path`; then sync the directory.
 * @param rc  a failure: the temporary file is removed instead
 * @return rc, or RFL_EIO */
enum rfl_rc rfl_file_replace(FILE *take_file, char *take_name, const char *path, enum rfl_rc rc,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Remove temporary files of a file, or of all files in a directory, left by killed processes. */
void rfl_file_sweep(const char *path);
void rfl_dir_sweep(const char *dir);

/** Is this the name of a temporary file? */
bool rfl_file_is_temporary(const char *path);

enum rfl_file_use {
	RFL_FILE_FOLDER,   /**< a directory in which files can be created, or that can be created */
	RFL_FILE_APPENDED, /**< a file that can be appended to */
	RFL_FILE_REPLACED, /**< a file that can be changed by rfl_file_lock() and rfl_file_write()
			    */
	RFL_FILE_OPTIONAL, /**< a regular file: writing may fail, but does not block */
};

/** Check that a path, which need not exist, can be used in this way. RFL_EIO if not. */
enum rfl_rc rfl_file_check_use(const char *path, enum rfl_file_use use,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a file; RFL_EIO with native EEXIST if it already exists. */
enum rfl_rc rfl_file_create(const char *path, const void *data, size_t len,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a file for reading and appending, create it if it does not exist, and wait for an exclusive
 * lock. A file that is replaced in the meantime is reopened; a device is not locked. Links are
 * followed as by rfl_file_write(). A wait of more than a second is logged.
 * @param ret  release with rfl_file_unlock() */
enum rfl_rc rfl_file_lock(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** rfl_file_lock() without waiting. @param ret  -1: another process holds the lock */
enum rfl_rc rfl_file_try_lock(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Open a file for reading with a shared lock. RFL_EIO if it does not exist.
 * @param ret  -1: a pipe, which is neither opened nor locked */
enum rfl_rc rfl_file_lock_shared(const char *path, int *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Append to a file opened by rfl_file_lock() in one write, and sync it. After RFL_EIO (such as a
 * full disk) the file is unchanged. */
enum rfl_rc rfl_file_append(int fd, const char *path, const void *data, size_t len,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Close the file, which releases its lock. Accepts -1. RFL_EIO if written data may be lost. */
enum rfl_rc rfl_file_unlock(int fd, const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Create a directory, or the directory of a file, with its parents (mkdir -p). */
enum rfl_rc rfl_file_mkdirs(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_file_mkdirs_for(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/** Join a directory and a name with "/". malloc'ed. */
char *rfl_path_join(const char *dir, const char *name) RFL_WARN_UNUSED;

/** A path relative to the directory of a file: ("a/b.json", "c") gives "a/c". malloc'ed. */
char *rfl_path_beside(const char *file, const char *name) RFL_WARN_UNUSED;

/** The part after the last slash. Borrowed. */
const char *rfl_path_base(const char *path);

/** List the paths of the entries of a directory, without hidden ones, sorted by name, and numbers
 * by value. Finds none if the directory does not exist.
 * @param is     which entries; NULL: all
 * @param arena  owns the list */
enum rfl_rc rfl_dir_list(const char *dir, bool (*is)(const char *path), struct rfl_arena *arena,
			 const char ***ret, size_t *n, struct rfl_err *err) RFL_WARN_UNUSED;

bool rfl_file_exists(const char *path);
/** Size of a regular file in bytes; 0 if absent or not a regular file. */
uint64_t rfl_file_size(const char *path);
bool rfl_dir_exists(const char *path);

/** 64-bit FNV-1a of a block, for content fingerprints (not for security). Start with h = 0. */
uint64_t rfl_hash64(uint64_t h, const void *data, size_t len);

/** A fingerprint as 16 hex digits. */
void rfl_hash64_text(uint64_t h, char out[17]);

/** The fingerprint of a file of any size. */
enum rfl_rc rfl_file_hash(const char *path, char out[17], struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
