/*
 * failing_memory.c - to preload: the allocation number FAIL_AT of the process fails, as when memory
 * runs out. Without FAIL_AT, the process writes the number of its allocations to the file
 * COUNT_TO when it ends. Its children are not affected.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The allocator of glibc under the names that are not replaced. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static atomic_ulong count;
static unsigned long fail_at;
static char count_to[4096];

__attribute__((constructor)) static void start(void)
{
	const char *at = getenv("FAIL_AT"), *to = getenv("COUNT_TO");

	snprintf(count_to, sizeof(count_to), "%s", to ? to : "");
	unsetenv("LD_PRELOAD");
	atomic_store(&count, 0);
	fail_at = at ? strtoul(at, NULL, 10) : 0;
}

__attribute__((destructor)) static void report(void)
{
	char line[32];
	int fd = fail_at || !count_to[0] ? -1 : open(count_to, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0)
		return;
	(void)!write(fd, line, (size_t)snprintf(line, sizeof(line), "%lu\n", atomic_load(&count)));
	close(fd);
}

static int fails(void)
{
	if (atomic_fetch_add(&count, 1) + 1 != fail_at)
		return 0;
	errno = ENOMEM;
	return 1;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}
