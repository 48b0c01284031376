/* device_lock.c - file locks, with flock() for devices and fcntl() for single bytes. */
#define _DEFAULT_SOURCE /* flock */

#include "cli/device_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/stop.h"
#include "machine/cuda.h"

/* ---- devices ---- */

static void add(struct rfl_device_lock *l, const char *dir, const char *kind, const char *which)
{
	(void)snprintf(l->path[l->n], sizeof(l->path[0]), "%s/roofline-%s%s%.32s.lock", dir, kind,
		       which ? "-" : "", which ? which : "");
	l->fd[l->n++] = -1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

void rfl_device_lock_init(struct rfl_device_lock *l, const char *backend, size_t ngpus,
			  const char *dir)
{
	const bool any = strcmp(backend, "auto") == 0, cpu = strcmp(backend, "cpu") == 0;
	char which[RFL_DEVICE_LOCKS_MAX - 1][RFL_CUDA_UUID_MAX];

	l->n = 0;
	if (any || cpu)
		add(l, dir, "cpu", NULL);
	if (cpu)
		return;
	if (ngpus > RFL_ARRAY_LEN(which))
		ngpus = RFL_ARRAY_LEN(which);
	for (size_t i = rfl_cuda_uuids(which, ngpus); i < ngpus; i++)
		(void)snprintf(which[i], sizeof(which[0]), "%zu", i);
	/* sort them, so that runs that share GPUs lock them in the same order */
	qsort(which, ngpus, sizeof(which[0]), by_name);
	for (size_t i = 0; i < ngpus; i++)
		add(l, dir, "gpu", which[i]);
}

/* In a sticky directory such as /tmp, O_CREAT fails for the files of other users. They can be
 * opened read-only, which is sufficient for flock(). */
static int open_lock(const char *path)
{
	for (int attempt = 0; attempt < 100; attempt++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

		if (fd >= 0 || errno != ENOENT)
			return fd;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd >= 0)
			(void)fchmod(fd, 0644); /* let other users open it despite our umask */
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

enum rfl_rc rfl_device_lock_try(struct rfl_device_lock *l, bool *busy, struct rfl_err *err)
{
	*busy = false;
	for (int i = 0; i < l->n; i++) {
		l->fd[i] = open_lock(l->path[i]);
		if (l->fd[i] >= 0 && flock(l->fd[i], LOCK_EX | LOCK_NB) == 0)
			continue;
		const int code = errno;

		*busy = l->fd[i] >= 0 && (code == EWOULDBLOCK || code == EINTR);
		rfl_device_lock_release(l);
		if (*busy)
			return RFL_OK;
		return rfl_fail(err, RFL_EIO, code,
				"%s: cannot lock the device: %s; set ROOFLINE_LOCK_DIR to a local "
				"directory, or use --share-device",
				l->path[i], strerror(code));
	}
	return RFL_OK;
}

void rfl_device_lock_release(struct rfl_device_lock *l)
{
	for (int i = 0; i < l->n; i++) {
		if (l->fd[i] >= 0)
			(void)close(l->fd[i]);
		l->fd[i] = -1;
	}
}

void rfl_device_pause(struct rfl_cli *cli, bool *said, const char *what)
{
	const struct timespec pause = { .tv_nsec = 50000000 };

	if (!*said && !cli->progress)
		rfl_log(RFL_LOG_INFO, "%swaiting: %s", cli->line.prefix ? cli->line.prefix : "",
			what);
	rfl_cli_progress(cli, "waiting: %s", what);
	*said = true;
	if (!rfl_stop_asked())
		(void)nanosleep(&pause, NULL);
}

enum rfl_rc rfl_device_lock_wait(struct rfl_device_lock *l, const char *backend, size_t ngpus,
				 struct rfl_cli *cli, struct rfl_err *err)
{
	const char *dir = getenv("ROOFLINE_LOCK_DIR");
	bool busy = true, said = false;
	enum rfl_rc rc = RFL_OK;

	rfl_device_lock_init(l, backend, ngpus, dir && *dir ? dir : "/tmp");
	while (rc == RFL_OK && busy && !rfl_stop_asked()) {
		rc = rfl_device_lock_try(l, &busy, err);
		if (rc == RFL_OK && busy)
			rfl_device_pause(cli, &said, "another timed run is using this device");
	}
	if (said)
		rfl_cli_progress(cli, NULL);
	return rc;
}

/* ---- claims ---- */

enum rfl_rc rfl_claims_open(const char *log_dir, int *ret, struct rfl_err *err)
{
	char path[4096];
	enum rfl_rc rc = rfl_file_mkdirs(log_dir, err);

	if (rc)
		return rc;
	(void)snprintf(path, sizeof(path), "%s/.matrix.lock", log_dir);
	*ret = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (*ret < 0)
		return rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
	return RFL_OK;
}

static struct flock byte_of(uint64_t run, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(run & INT32_MAX), /* fits in an offset of 32 bits */
		.l_len = 1,
	};
}

enum rfl_rc rfl_claim_try(int claims, uint64_t run, bool *busy, struct rfl_err *err)
{
	struct flock byte = byte_of(run, F_WRLCK);

	*busy = false;
	while (fcntl(claims, F_SETLK, &byte) != 0) {
		if (errno == EINTR)
			continue;
		*busy = errno == EACCES || errno == EAGAIN;
		if (*busy)
			return RFL_OK;
		return rfl_fail(err, RFL_EIO, errno, ".matrix.lock in the log directory: %s",
				strerror(errno));
	}
	return RFL_OK;
}

void rfl_claim_release(int claims, uint64_t run)
{
	struct flock byte = byte_of(run, F_UNLCK);

	(void)fcntl(claims, F_SETLK, &byte);
}
