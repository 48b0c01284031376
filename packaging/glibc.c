/* glibc.c - what is newer than glibc 2.28, and used by Debian's static libraries. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

void arc4random_buf(void *buf, size_t n) /* since 2.36, for the hash tables of expat */
{
	char *at = buf;
	ssize_t got;

	for (; n > 0; at += got, n -= (size_t)got)
		if ((got = getrandom(at, n, 0)) < 0)
			got = 0;
}

int close_range(unsigned first, unsigned last, int flags) /* since 2.34; GLib does without */
{
	return (int)syscall(SYS_close_range, first, last, flags);
}
