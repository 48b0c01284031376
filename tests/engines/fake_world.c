/*
 * fake_world.c - the meeting of several fake engines: at every call each rank writes its numbers to
 * a file <directory>/<world>.<call>.<rank> and waits for the files of the others. The world is the
 * port, or the inode of the file in which processes of one machine meet.
 */
#include "tests/engines/fake_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/engines/fake_told.h"

struct fake_world {
	const char *dir;
	int rank, size, calls;
	long long world;
	double timeout_s;
	char text[320];
};

static void path_of(const struct fake_world *w, int call, int rank, const char *end, char out[512])
{
	(void)snprintf(out, 512, "%s/%lld.%d.%d%s", w->dir, w->world, call, rank, end);
}

static enum rfl_rc put(const struct fake_world *w, const double *mine, size_t n,
		       struct rfl_err *err)
{
	char path[512], temporary[512];
	FILE *f;

	path_of(w, w->calls, w->rank, "", path);
	path_of(w, w->calls, w->rank, ".new", temporary);
	f = fopen(temporary, "wb");
	if (!f || fwrite(mine, sizeof(*mine), n, f) != n || fclose(f) != 0 ||
	    rename(temporary, path) != 0)
		return rfl_fail(err, RFL_EIO, 0, "fake: %s cannot be written", path);
	return RFL_OK;
}

static bool get(const struct fake_world *w, int rank, double *out, size_t n)
{
	char path[512];
	bool whole;
	FILE *f;

	path_of(w, w->calls, rank, "", path);
	f = fopen(path, "rb");
	if (!f)
		return false;
	whole = fread(out, sizeof(*out), n, f) == n;
	(void)fclose(f);
	return whole;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum rfl_rc fake_world_gather(struct fake_world *w, const double *mine, size_t n, double *all,
			      struct rfl_err *err)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const double until = now_s() + w->timeout_s;
	enum rfl_rc rc = put(w, mine, n, err);

	for (int r = 0; r < w->size && rc == RFL_OK; r++)
		while (rc == RFL_OK && !get(w, r, all + (size_t)r * n, n)) {
			nanosleep(&pause, NULL);
			if (now_s() > until)
				rc = rfl_fail(err, RFL_ETIMEOUT, 0,
					      "fake: rank %d of %d: missing: rank %d", w->rank,
					      w->size, r);
		}
	w->calls++;
	return rc;
}

enum rfl_rc fake_world_join(const struct rfl_world *world, struct fake_world **ret,
			    struct rfl_err *err)
{
	struct fake_world *w = calloc(1, sizeof(*w));
	const double here = world->rank;
	double *all = calloc((size_t)world->size, sizeof(*all));
	struct stat file = { .st_ino = 0 };
	enum rfl_rc rc = RFL_ENOMEM;

	if (!world->port && stat(world->address, &file) != 0) {
		rc = rfl_fail(err, RFL_EFAILED, errno, "fake: %s: no such file", world->address);
		goto done;
	}
	if (!w || !all) {
		rfl_fail(err, rc, 0, "fake: out of memory");
		goto done;
	}
	*w = (struct fake_world){ .dir = getenv("RFL_FAKE_WORLD"),
				  .rank = world->rank,
				  .size = world->size,
				  .world = world->port ? world->port : (long long)file.st_ino,
				  .timeout_s = world->timeout_s };
	(void)snprintf(w->text, sizeof(w->text), "rank=%d of %d at %s hosted=%d bucket=%lld via %s",
		       world->rank, world->size, world->address, world->hosted,
		       (long long)world->bucket_bytes, world->interconnect);
	if (!w->dir)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0, "fake: RFL_FAKE_WORLD is not set");
	else
		rc = RFL_OK;
	if (rc == RFL_OK)
		rc = fake_world_gather(w, &here, 1, all, err);
	if (rc == RFL_OK) {
		*ret = w;
		w = NULL;
	}
done:
	free(w);
	free(all);
	return rc;
}

void fake_world_leave(struct fake_world *w)
{
	free(w);
}

const char *fake_world_text(const struct fake_world *w)
{
	return w ? w->text : "alone";
}

int fake_world_rank(const struct fake_world *w)
{
	return w ? w->rank : -1;
}
