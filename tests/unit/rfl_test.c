/*
 * rfl_test.c - what our tests need besides cmocka.
 */
#undef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* nftw */

#include "tests/unit/rfl_test.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define MAX_PATHS 512
#define RING      16

static char *paths[MAX_PATHS]; /* handed out during the current test */
static size_t npaths;

void rfl_test_close(double a, double b, double rel, const char *expr, const char *file, int line)
{
	if (isnan(a) && isnan(b))
		return;
	if (a == b) /* infinities, and zero */
		return;
	if (fabs(a - b) <= rel * fmax(fabs(a), fabs(b)))
		return;
	print_error("%s is %.17g, expected %.17g within %g (relative difference %.3g)\n", expr, a,
		    b, rel, fabs(a - b) / fmax(fabs(a), fabs(b)));
	_fail(file, line);
}

void rfl_test_ok(enum rfl_rc rc, const struct rfl_err *err, const char *expr, const char *file,
		 int line)
{
	if (rc == RFL_OK)
		return;
	print_error("%s: %s: %s\n", expr, rfl_rc_text(rc), err ? err->msg : "(no message)");
	_fail(file, line);
}

void rfl_test_says(const struct rfl_err *err, const char *word, const char *file, int line)
{
	if (strstr(err->msg, word))
		return;
	print_error("the message does not contain '%s': '%s'\n", word, err->msg);
	_fail(file, line);
}

int tmpdir_make(void **state)
{
	const char *base = getenv("TMPDIR");
	char *path = malloc(PATH_SIZE);

	if (!path)
		return -1;
	snprintf(path, PATH_SIZE, "%s/rfl-test-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(path)) {
		perror(path);
		free(path);
		return -1;
	}
	*state = path;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int tmpdir_remove(void **state)
{
	int rc = nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	free(*state);
	*state = NULL;
	for (size_t i = 0; i < npaths; i++)
		free(paths[i]);
	npaths = 0;
	return rc;
}

const char *tmp_path(void *state, const char *name)
{
	char *path = malloc(PATH_SIZE);

	if (!path || npaths == MAX_PATHS)
		fail_msg("too many paths in one test");
	snprintf(path, PATH_SIZE, "%s/%s", (const char *)state, name);
	paths[npaths++] = path;
	return path;
}

/* The directories of a name such as "logs/steps/a.csv". */
static void make_folders(void *state, const char *name)
{
	char path[PATH_SIZE];

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(path, sizeof(path), "%s/%.*s", (const char *)state, (int)(slash - name),
			 name);
		mkdir(path, 0777);
	}
}

const char *write_file(void *state, const char *name, const char *text)
{
	const char *path = tmp_path(state, name);
	FILE *f;

	make_folders(state, name);
	f = fopen(path, "wb");
	if (!f)
		fail_msg("cannot write %s", path);
	if (fwrite(text, 1, strlen(text), f) != strlen(text))
		fail_msg("cannot write %s", path);
	if (fclose(f) != 0)
		fail_msg("cannot write %s", path);
	return path;
}

const char *data_path(const char *name)
{
	static char ring[RING][PATH_SIZE];
	static size_t next;
	char *path = ring[next++ % RING];

	snprintf(path, PATH_SIZE, "%s/%s", RFL_TEST_DATA, name);
	return path;
}
