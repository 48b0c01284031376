/*
 * long_line.h - a line of a gigabyte between two texts, made as it is read: the reading end of a
 * pipe as a path.
 */
#ifndef RFL_TESTS_LONG_LINE_H
#define RFL_TESTS_LONG_LINE_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/rfl_test.h"

struct long_line {
	const char *before, *after; /* the line begins where `before` ends */
	char path[32];
	int ends[2];
	pthread_t writer;
};

static inline void long_line_put(int fd, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, text + at, len - at);

		if (n <= 0)
			return; /* the reader has gone */
		at += (size_t)n;
	}
}

static inline void *long_line_write(void *arg)
{
	static char block[1 << 20];
	const struct long_line *line = arg;

	memset(block, 'x', sizeof(block));
	long_line_put(line->ends[1], line->before, strlen(line->before));
	for (int i = 0; i < 1024; i++)
		long_line_put(line->ends[1], block, sizeof(block));
	long_line_put(line->ends[1], line->after, strlen(line->after));
	(void)close(line->ends[1]);
	return NULL;
}

static inline void long_line_begin(struct long_line *line)
{
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(line->ends), 0);
	(void)snprintf(line->path, sizeof(line->path), "/dev/fd/%d", line->ends[0]);
	assert_int_equal(pthread_create(&line->writer, NULL, long_line_write, line), 0);
}

static inline void long_line_end(struct long_line *line)
{
	(void)close(line->ends[0]);
	assert_int_equal(pthread_join(line->writer, NULL), 0);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/** Peak resident memory of this process in KiB; -1: not known, or not what the program needs: the
 * address sanitizer keeps what was freed. */
static inline long peak_kib(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return -1;
#else
	char text[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(text, sizeof(text), f))
		(void)sscanf(text, "VmHWM: %ld", &kib);
	if (f)
		(void)fclose(f);
	return kib;
#endif
}

#endif
