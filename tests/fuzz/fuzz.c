/* fuzz.c - what the targets share. */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

static char path[64];

static void remove_file(void)
{
	(void)unlink(path);
}

/* In memory where the system has such a folder: thousands of inputs a second. */
static void make_file(void)
{
	static const char *const folders[] = { "/dev/shm", "/tmp" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(folders); i++) {
		int fd;

		(void)snprintf(path, sizeof(path), "%s/roofline-fuzz-XXXXXX", folders[i]);
		fd = mkstemp(path);
		if (fd >= 0) {
			(void)close(fd);
			(void)atexit(remove_file);
			rfl_log_set(NULL, NULL, RFL_LOG_ERROR);
			return;
		}
	}
	fuzz_fail("a scratch file", __FILE__, __LINE__);
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
	FILE *f;

	if (!path[0])
		make_file();
	f = fopen(path, "wb");
	FUZZ_ASSERT(f != NULL);
	FUZZ_ASSERT(size == 0 || fwrite(data, 1, size, f) == size);
	FUZZ_ASSERT(fclose(f) == 0);
	return path;
}

static bool is_one_line(const char *msg)
{
	for (; *msg; msg++)
		if (rfl_text_control(msg))
			return false;
	return true;
}

void fuzz_check(enum rfl_rc rc, const void *ret, const struct rfl_err *err, const char *file)
{
	FUZZ_ASSERT((rc == RFL_OK) == (ret != NULL));
	FUZZ_ASSERT(rc == err->rc);
	FUZZ_ASSERT((rc == RFL_OK) == (err->msg[0] == '\0'));
	FUZZ_ASSERT(rc == RFL_OK || strstr(err->msg, file));
	FUZZ_ASSERT(is_one_line(err->msg));
}

void fuzz_fail(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s does not hold\n", file, line, condition);
	abort();
}
