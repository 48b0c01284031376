/* file.c - read, write, append and lock files. */
#define _DEFAULT_SOURCE /* flock */

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

#define BLOCK_SIZE  65536
#define LEFT_OVER_S 60   /* minimum age in seconds of a stale temporary file before removal */
#define PAUSE_MS    32   /* maximum pause between attempts to lock */
#define SILENT_MS   1000 /* wait for a lock before logging it */
#define LINKS_MAX   40   /* as in Linux */
#define PATH_SIZE   4096 /* longest path on Linux, including the NUL */

/* The directory of a file with its slash: "./" if it has none. A path that is too long is cut, and
 * then does not exist. */
static const char *folder_of(const char *path, char out[PATH_SIZE])
{
	const int len = (int)(rfl_path_base(path) - path);

	(void)snprintf(out, PATH_SIZE, "%.*s", len ? len : 2, len ? path : "./");
	return out;
}

/* In a directory that other users may write to, their links could point to any file of this user.
 * Only links made by this user, root or the owner of the directory are followed. */
static bool is_foreign_link(const char *path)
{
	const int code = errno;
	char folder[PATH_SIZE];
	struct stat link, in;
	bool foreign = lstat(path, &link) == 0 && S_ISLNK(link.st_mode) &&
		       link.st_uid != geteuid() && link.st_uid != 0 &&
		       (stat(folder_of(path, folder), &in) != 0 || in.st_uid != link.st_uid);

	errno = code;
	return foreign;
}

static enum rfl_rc fail_foreign_link(struct rfl_err *err, const char *path)
{
	return rfl_fail(err, RFL_EIO, ELOOP,
			"%s: symbolic links of other users are not followed; remove it", path);
}

enum rfl_rc rfl_file_target(const char *path, char **ret, struct rfl_err *err)
{
	char at[PATH_SIZE], to[PATH_SIZE], folder[PATH_SIZE];
	size_t size = (size_t)snprintf(at, sizeof(at), "%s", path) + 1;
	ssize_t len;

	for (int n = 0; (len = readlink(at, to, sizeof(to) - 1)) >= 0; n++) {
		if (is_foreign_link(at))
			return fail_foreign_link(err, at);
		to[len] = '\0';
		folder_of(at, folder);
		size = (size_t)snprintf(at, sizeof(at), "%s%s", to[0] == '/' ? "" : folder, to) + 1;
		if (n < LINKS_MAX && size <= sizeof(at))
			continue;
		errno = n == LINKS_MAX ? ELOOP : ENAMETOOLONG;
		return rfl_fail_errno(err, "%s: cannot resolve", path);
	}
	*ret = rfl_strdup(size <= sizeof(at) ? at : path);
	return RFL_OK;
}

/* Open with O_NOFOLLOW, because a link may be created after the check. */
static int open_own(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0666);

	if (fd < 0 && errno == ELOOP && !is_foreign_link(path))
		return open(path, flags | O_CLOEXEC, 0666);
	return fd;
}

static ssize_t read_block(int fd, char block[BLOCK_SIZE])
{
	ssize_t n;

	do
		n = read(fd, block, BLOCK_SIZE);
	while (n < 0 && errno == EINTR);
	return n;
}

/* Append the rest of an open file, and close it. */
static enum rfl_rc read_to_end(int fd, const char *path, struct rfl_buf *out, struct rfl_err *err)
{
	char block[BLOCK_SIZE];
	enum rfl_rc rc;
	ssize_t n = 1;

	while (n > 0 && !out->failed) {
		n = read_block(fd, block);
		if (n > 0)
			rfl_buf_append(out, block, (size_t)n);
	}
	rc = n < 0 ? rfl_fail_errno(err, "%s: cannot read", path) : rfl_buf_check(out, path, err);
	close(fd);
	return rc;
}

/* Open a file that is not a directory. */
static enum rfl_rc open_to_read(const char *path, int *fd, struct rfl_err *err)
{
	struct stat st;

	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return rfl_fail_errno(err, "%s", path);
	if (fstat(*fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(*fd);
		return rfl_fail(err, RFL_EIO, EISDIR, "%s: this is a directory, not a file", path);
	}
	return RFL_OK;
}

enum rfl_rc rfl_file_read(const char *path, struct rfl_buf *out, struct rfl_err *err)
{
	int fd;
	const enum rfl_rc rc = open_to_read(path, &fd, err);

	return rc ? rc : read_to_end(fd, path, out, err);
}

enum rfl_rc rfl_file_hash(const char *path, char out[17], struct rfl_err *err)
{
	char block[BLOCK_SIZE];
	uint64_t hash = rfl_hash64(0, "", 0);
	ssize_t n;
	int fd;
	enum rfl_rc rc = open_to_read(path, &fd, err);

	if (rc != RFL_OK)
		return rc;
	while ((n = read_block(fd, block)) > 0)
		hash = rfl_hash64(hash, block, (size_t)n);
	if (n < 0)
		rc = rfl_fail_errno(err, "%s: cannot read", path);
	close(fd);
	rfl_hash64_text(hash, out);
	return rc;
}

enum rfl_rc rfl_file_read_found(const char *path, struct rfl_buf *out, struct rfl_err *err)
{
	char folder[PATH_SIZE];
	struct stat st, in;
	int fd = is_foreign_link(path) ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (is_foreign_link(path))
		return fail_foreign_link(err, path);
	if (fd < 0)
		return rfl_fail_errno(err, "%s", path);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return rfl_fail(err, RFL_EIO, EINVAL, "%s: not a regular file", path);
	}
	if (st.st_uid != geteuid() && st.st_uid != 0 &&
	    (stat(folder_of(path, folder), &in) != 0 || in.st_uid != st.st_uid)) {
		close(fd);
		return rfl_fail(err, RFL_EIO, EPERM,
				"%s: belongs to another user, who does not own the directory",
				path);
	}
	return read_to_end(fd, path, out, err);
}

/* Pipes and devices cannot be synced and do not need it. */
static enum rfl_rc sync_file(int fd, const char *path, struct rfl_err *err)
{
	if (fsync(fd) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
		return rfl_fail_errno(err, "%s: cannot sync", path);
	return RFL_OK;
}

static enum rfl_rc write_all(int fd, const char *path, const void *data, size_t len,
			     struct rfl_err *err)
{
	const char *at = data;

	for (const char *const end = at + len; at < end;) {
		const ssize_t n = write(fd, at, (size_t)(end - at));

		if (n >= 0)
			at += n;
		else if (errno != EINTR)
			return rfl_fail_errno(err, "%s: cannot write", path);
	}
	return RFL_OK;
}

/* Write, sync and close; the descriptor is also closed on failure. */
static enum rfl_rc finish(int fd, const char *path, const void *data, size_t len,
			  struct rfl_err *err)
{
	enum rfl_rc rc = write_all(fd, path, data, len, err);

	if (rc == RFL_OK)
		rc = sync_file(fd, path, err);
	if (close(fd) != 0 && rc == RFL_OK && errno != EINTR)
		rc = rfl_fail_errno(err, "%s: cannot write", path);
	return rc;
}

/* Sync the directory to make a new name durable. Errors are ignored: the data is on disk. */
static void sync_folder_of(const char *path)
{
	char folder[PATH_SIZE];
	int fd = open(folder_of(path, folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

/* Create "<path>.tmp.<pid>.<n>" with the permissions of the target. The caller frees the name.
 * Returns -1 with errno set and no name on failure. */
static int open_neighbour(const char *path, const struct stat *target, char **name)
{
	static atomic_uint counter;
	const size_t size = strlen(path) + 48;
	int fd;

	*name = rfl_alloc_array(size, 1);
	do {
		snprintf(*name, size, "%s.tmp.%ld.%u", path, (long)getpid(),
			 atomic_fetch_add(&counter, 1));
		fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0) {
		const int code = errno;

		free(*name);
		*name = NULL;
		errno = code;
	} else if (target) {
		(void)fchmod(fd, target->st_mode & 0777);
	}
	return fd;
}

enum rfl_rc rfl_file_neighbour(const char *path, char **name, FILE **ret, struct rfl_err *err)
{
	struct stat target;
	const int fd = open_neighbour(path, stat(path, &target) == 0 ? &target : NULL, name);
	enum rfl_rc rc;

	*ret = fd < 0 ? NULL : fdopen(fd, "w");
	if (*ret)
		return RFL_OK;
	rc = rfl_fail_errno(err, "%s: cannot create a temporary file in the same directory", path);
	if (fd >= 0) {
		close(fd);
		unlink(*name);
		free(*name);
		*name = NULL;
	}
	return rc;
}

/* The process that created a temporary file; 0: the name has another form.
 * @param len  length of the name of the file in `name` */
static long maker_of(const char *name, size_t *len)
{
	const char *last = NULL;
	unsigned number;
	int used = 0;
	long pid;

	for (const char *at = name; (at = strstr(at, ".tmp.")) != NULL; at++)
		last = at;
	if (!last || sscanf(last, ".tmp.%ld.%u%n", &pid, &number, &used) != 2 || last[used])
		return 0;
	*len = (size_t)(last - name);
	return pid > 0 ? pid : 0;
}

bool rfl_file_is_temporary(const char *path)
{
	size_t len;

	return maker_of(rfl_path_base(path), &len) > 0;
}

/* @param base  of this file only; NULL: of all files */
static void sweep(const char *folder, const char *base)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		struct stat st;
		size_t len;
		const long pid = maker_of(entry->d_name, &len);

		if (pid > 0 &&
		    (!base || (strlen(base) == len && memcmp(entry->d_name, base, len) == 0)) &&
		    kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		    time(NULL) - st.st_mtime > LEFT_OVER_S)
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

void rfl_file_sweep(const char *path)
{
	char folder[PATH_SIZE];

	sweep(folder_of(path, folder), rfl_path_base(path));
}

void rfl_dir_sweep(const char *dir)
{
	sweep(dir, NULL);
}

/* Rename a complete temporary file, or remove it after a failure; free its name, which may be NULL.
 */
static enum rfl_rc put_in_place(char *take_name, const char *path, enum rfl_rc rc,
				struct rfl_err *err)
{
	if (rc == RFL_OK && rename(take_name, path) != 0)
		rc = rfl_fail_errno(err, "%s: cannot replace", path);
	if (rc == RFL_OK)
		sync_folder_of(path);
	else if (take_name)
		unlink(take_name);
	free(take_name);
	return rc;
}

enum rfl_rc rfl_file_replace(FILE *take_file, char *take_name, const char *path, enum rfl_rc rc,
			     struct rfl_err *err)
{
	if (rc == RFL_OK && (ferror(take_file) || fflush(take_file) != 0 ||
			     sync_file(fileno(take_file), path, NULL) != RFL_OK))
		rc = rfl_fail_errno(err, "%s: cannot write", path);
	if (fclose(take_file) != 0 && rc == RFL_OK)
		rc = rfl_fail_errno(err, "%s: cannot write", path);
	return put_in_place(take_name, path, rc, err);
}

enum rfl_rc rfl_file_write(const char *path, const void *data, size_t len, struct rfl_err *err)
{
	struct stat st;
	const bool exists = stat(path, &st) == 0;
	char *name = NULL;
	RFL_AUTOFREE char *target = NULL;
	enum rfl_rc rc;
	int fd;

	if (is_foreign_link(path))
		return fail_foreign_link(err, path);
	if (exists && S_ISDIR(st.st_mode))
		return rfl_fail(err, RFL_EIO, EISDIR, "%s: this is a directory, not a file", path);
	if (exists && !S_ISREG(st.st_mode)) { /* write to a device or pipe; do not replace it */
		fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? rfl_fail_errno(err, "%s: cannot write", path)
			      : finish(fd, path, data, len, err);
	}
	rc = rfl_file_target(path, &target, err); /* a link is kept */
	if (rc)
		return rc;
	fd = open_neighbour(target, exists ? &st : NULL, &name);
	rc = fd < 0 ? rfl_fail_errno(err, "%s: cannot create", target)
		    : finish(fd, target, data, len, err);
	rc = put_in_place(name, target, rc, err);
	return rc;
}

enum rfl_rc rfl_file_copy(const char *from, const char *path, struct rfl_err *err)
{
	char block[BLOCK_SIZE], *name = NULL;
	RFL_AUTOFREE char *target = NULL;
	enum rfl_rc rc = rfl_file_target(path, &target, err);
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat st;
	ssize_t n = 1;

	if (rc == RFL_OK && (in < 0 || fstat(in, &st) != 0))
		rc = rfl_fail_errno(err, "%s", from);
	if (rc == RFL_OK && (out = open_neighbour(target, &st, &name)) < 0)
		rc = rfl_fail_errno(err, "%s: cannot create", target);
	while (rc == RFL_OK && n != 0) {
		n = read(in, block, sizeof(block));
		if (n > 0)
			rc = write_all(out, target, block, (size_t)n, err);
		else if (n < 0 && errno != EINTR)
			rc = rfl_fail_errno(err, "%s: cannot read", from);
	}
	if (out >= 0) {
		const enum rfl_rc ended = finish(out, target, "", 0, err);

		rc = rc ? rc : ended;
	}
	rc = put_in_place(name, target, rc, err);
	if (in >= 0)
		close(in);
	return rc;
}

enum rfl_rc rfl_file_create(const char *path, const void *data, size_t len, struct rfl_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	enum rfl_rc rc;

	if (fd < 0)
		return rfl_fail_errno(err, "%s: cannot create", path);
	rc = finish(fd, path, data, len, err);
	if (rc != RFL_OK)
		unlink(path);
	else
		sync_folder_of(path);
	return rc;
}

static int try_lock(int fd, int how)
{
	int code;

	do
		code = flock(fd, how) == 0 ? 0 : errno;
	while (code == EINTR);
	return code;
}

/* flock() instead of fcntl(): its lock also excludes other threads, and closing another descriptor
 * of the file does not release it. Appends are short, so that a long wait is worth a message. */
static int lock_whole(int fd, int how, const char *path)
{
	int code = try_lock(fd, how | LOCK_NB);

	for (int ms = 1, waited = 0; code == EWOULDBLOCK && waited < SILENT_MS; waited += ms) {
		const struct timespec pause = { .tv_nsec = ms * 1000000L };

		(void)nanosleep(&pause, NULL);
		ms = ms < PAUSE_MS ? 2 * ms : ms;
		code = try_lock(fd, how | LOCK_NB);
	}
	if (code != EWOULDBLOCK)
		return code;
	rfl_log(RFL_LOG_INFO, "%s: waiting until another process unlocks it", path);
	return try_lock(fd, how);
}

/* Open and lock; retry if the file was replaced in the meantime. Continue without a lock on
 * devices, and for reading if the file system does not support locks.
 * @param waits  false: *ret is -1 if the file is locked */
static enum rfl_rc open_locked(const char *path, int how, bool waits, int *ret, struct rfl_err *err)
{
	for (;;) {
		struct stat ours, named;
		int fd = how == LOCK_EX ? open_own(path, O_RDWR | O_CREAT | O_APPEND)
					: open(path, O_RDONLY | O_CLOEXEC);
		int code;

		if (fd < 0 && errno == ELOOP && how == LOCK_EX && is_foreign_link(path))
			return fail_foreign_link(err, path);
		if (fd < 0)
			return rfl_fail_errno(
				err, how == LOCK_EX ? "%s: cannot open for appending" : "%s", path);
		code = waits ? lock_whole(fd, how, path) : try_lock(fd, how | LOCK_NB);
		if (code == EWOULDBLOCK) {
			close(fd);
			*ret = -1;
			return RFL_OK;
		}
		if (code != 0 && how == LOCK_EX && code != EINVAL && code != ENOTSUP &&
		    code != EOPNOTSUPP) {
			close(fd);
			return rfl_fail(err, RFL_EIO, code, "%s: cannot lock: %s", path,
					strerror(code));
		}
		if (code != 0 || (fstat(fd, &ours) == 0 && stat(path, &named) == 0 &&
				  ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)) {
			*ret = fd;
			return RFL_OK;
		}
		close(fd);
	}
}

enum rfl_rc rfl_file_lock(const char *path, int *ret, struct rfl_err *err)
{
	return open_locked(path, LOCK_EX, true, ret, err);
}

enum rfl_rc rfl_file_try_lock(const char *path, int *ret, struct rfl_err *err)
{
	return open_locked(path, LOCK_EX, false, ret, err);
}

enum rfl_rc rfl_file_lock_shared(const char *path, int *ret, struct rfl_err *err)
{
	struct stat st;

	*ret = -1;
	if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode)) /* its writer waits for one reader only */
		return RFL_OK;
	return open_locked(path, LOCK_SH, true, ret, err);
}

enum rfl_rc rfl_file_append(int fd, const char *path, const void *data, size_t len,
			    struct rfl_err *err)
{
	struct stat st;
	enum rfl_rc rc;
	ssize_t n;

	if (fstat(fd, &st) != 0)
		return rfl_fail_errno(err, "%s: cannot stat", path);
	do
		n = write(fd, data, len);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && (size_t)n < len) {
		errno = ENOSPC;
		n = -1;
	}
	rc = n < 0 ? rfl_fail_errno(err, "%s: cannot append", path) : sync_file(fd, path, err);
	if (rc != RFL_OK)
		(void)!ftruncate(fd, st.st_size);
	else if (st.st_size == 0)
		sync_folder_of(path);
	return rc;
}

enum rfl_rc rfl_file_unlock(int fd, const char *path, struct rfl_err *err)
{
	if (fd >= 0 && close(fd) != 0 && errno != EINTR)
		return rfl_fail_errno(err, "%s: cannot append", path);
	return RFL_OK;
}

enum rfl_rc rfl_file_check_use(const char *path, enum rfl_file_use use, struct rfl_err *err)
{
	const bool folder = use == RFL_FILE_FOLDER;
	char in[PATH_SIZE], above[PATH_SIZE];
	RFL_AUTOFREE char *target = NULL;
	enum rfl_rc rc = RFL_OK;
	struct stat st;
	int fd;

	if (use != RFL_FILE_OPTIONAL && is_foreign_link(path))
		return fail_foreign_link(err, path);
	if (use == RFL_FILE_REPLACED && !(rc = rfl_file_target(path, &target, err)))
		rc = rfl_file_check_use(folder_of(target, in), RFL_FILE_FOLDER, err);
	if (rc)
		return rc;
	if (stat(path, &st) != 0 && errno == ENOENT && folder && lstat(path, &st) != 0) {
		/* it will be created in the directory above it */
		(void)snprintf(in, sizeof(in), "%s", path);
		for (size_t len = strlen(in); len > 1 && in[len - 1] == '/'; len--)
			in[len - 1] = '\0';
		return rfl_file_check_use(folder_of(in, above), RFL_FILE_FOLDER, err);
	}
	if (stat(path, &st) != 0)
		return errno == ENOENT && !folder ? RFL_OK : rfl_fail_errno(err, "%s", path);
	if (folder && !S_ISDIR(st.st_mode))
		return rfl_fail(err, RFL_EIO, ENOTDIR, "%s: not a directory", path);
	if (folder)
		return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0
			       ? RFL_OK
			       : rfl_fail_errno(err, "%s: cannot create files in this directory",
						path);
	if (!S_ISREG(st.st_mode))
		return rfl_fail(err, RFL_EIO, EINVAL, "%s: %s", path,
				S_ISDIR(st.st_mode) ? "this is a directory, not a file"
						    : "not a regular file; move it away");
	if (use == RFL_FILE_OPTIONAL)
		return RFL_OK;
	fd = open_own(path, O_WRONLY | O_APPEND | O_NONBLOCK);
	if (fd < 0)
		return rfl_fail_errno(err, "%s: cannot open for appending", path);
	close(fd);
	return RFL_OK;
}

/* @param len  length of the directory part of the path */
static enum rfl_rc make_folders(const char *path, size_t len, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	char *part = rfl_strdup(path);

	part[len] = '\0';
	for (char *slash = part; slash && *part && rc == RFL_OK;) {
		int code;

		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		code = mkdir(part, 0777) == 0 ? 0 : errno;
		if (code == EEXIST && is_foreign_link(part))
			rc = fail_foreign_link(err, part);
		else if (code == EEXIST && !rfl_dir_exists(part))
			rc = rfl_fail(err, RFL_EIO, ENOTDIR, "%s: not a directory", part);
		else if (code != 0 && !rfl_dir_exists(part))
			rc = rfl_fail(err, RFL_EIO, code, "%s: cannot create the directory: %s",
				      part, strerror(code));
		if (slash)
			*slash = '/';
	}
	free(part);
	return rc;
}

enum rfl_rc rfl_file_mkdirs(const char *path, struct rfl_err *err)
{
	return make_folders(path, strlen(path), err);
}

enum rfl_rc rfl_file_mkdirs_for(const char *path, struct rfl_err *err)
{
	return make_folders(path, (size_t)(rfl_path_base(path) - path), err);
}

char *rfl_path_join(const char *dir, const char *name)
{
	size_t len = strlen(dir), size = len + strlen(name) + 2;
	char *path = rfl_alloc_array(size, 1);

	snprintf(path, size, "%s%s%s", dir, len == 0 || dir[len - 1] == '/' ? "" : "/", name);
	return path;
}

char *rfl_path_beside(const char *file, const char *name)
{
	char folder[PATH_SIZE];

	return rfl_path_join(name[0] == '/' || !strchr(file, '/') ? "" : folder_of(file, folder),
			     name);
}

const char *rfl_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Two numbers are compared by value, so that task 2 comes before task 10. */
static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	const char *p = rfl_path_base(*x), *q = rfl_path_base(*y);
	const bool numbers =
		strspn(p, "0123456789") == strlen(p) && strspn(q, "0123456789") == strlen(q);

	if (numbers && strlen(p) != strlen(q))
		return strlen(p) < strlen(q) ? -1 : 1;
	return strcmp(p, q);
}

enum rfl_rc rfl_dir_list(const char *dir, bool (*is)(const char *path), struct rfl_arena *arena,
			 const char ***ret, size_t *n, struct rfl_err *err)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	const char **list = NULL;
	size_t cap = 0;
	struct stat st;
	enum rfl_rc rc = RFL_OK;

	*n = 0;
	*ret = NULL;
	if (!d)
		return errno == ENOENT ? RFL_OK : rfl_fail_errno(err, "%s: cannot read", dir);
	for (errno = 0; (entry = readdir(d)) != NULL; errno = 0) {
		const size_t len = strlen(dir);
		const char *path = rfl_arena_printf(
			arena, "%s%s%s", dir, len && dir[len - 1] == '/' ? "" : "/", entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		if (stat(path, &st) != 0 && errno != ENOENT) {
			rc = rfl_fail_errno(err, "%s: cannot read", path);
			break;
		}
		if (is && !is(path))
			continue;
		rfl_reserve(&list, &cap, *n + 1);
		list[(*n)++] = path;
	}
	if (rc == RFL_OK && errno != 0)
		rc = rfl_fail_errno(err, "%s: cannot read", dir);
	closedir(d);
	if (*n) {
		qsort(list, *n, sizeof(*list), compare_names);
		*ret = rfl_arena_array(arena, *n, sizeof(*list));
		memcpy(*ret, list, *n * sizeof(*list));
	}
	free(list);
	return rc;
}

bool rfl_file_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

uint64_t rfl_file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

bool rfl_dir_exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

uint64_t rfl_hash64(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	if (h == 0)
		h = UINT64_C(14695981039346656037); /* FNV-1a offset basis */
	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * UINT64_C(1099511628211);
	return h;
}

void rfl_hash64_text(uint64_t h, char out[17])
{
	snprintf(out, 17, "%016" PRIx64, h);
}
