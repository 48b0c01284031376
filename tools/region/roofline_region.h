/*
 * roofline_region.h - mark the regions of a program for `roofline profile`. Copy or include this
 * file; there is no library. Outside of `roofline profile`, the functions do nothing.
 *
 *	roofline_begin("solve");
 *	...
 *	roofline_end("solve");                     // counted, if the machine has counters
 *	roofline_end_work("solve", flops, bytes);  // known FLOPs and bytes; negative: unknown
 *
 * Regions follow each other and do not nest. Call the functions from one thread, when the other
 * threads and the GPU have finished their work.
 */
#ifndef ROOFLINE_REGION_H
#define ROOFLINE_REGION_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static inline int roofline__connect(void)
{
	const char *name = getenv("ROOFLINE_CONTROL");
	struct sockaddr_un at;
	size_t n = name ? strlen(name) : 0;
	int fd;

	memset(&at, 0, sizeof(at));
	at.sun_family = AF_UNIX; /* an abstract name: sun_path begins with a 0 */
	if (n == 0 || n >= sizeof(at.sun_path))
		return -1;
	memcpy(at.sun_path + 1, name, n);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Send a mark and wait until it is taken. A child after fork() connects itself. */
static inline void roofline__send(const char *mark)
{
	static int fd = -1;
	static pid_t owner;
	char answer[8];

	if (owner != getpid()) {
		if (fd >= 0)
			close(fd);
		owner = getpid();
		fd = roofline__connect();
	}
	if (fd >= 0 && (send(fd, mark, strlen(mark), MSG_NOSIGNAL) < 0 ||
			recv(fd, answer, sizeof(answer), 0) <= 0)) {
		close(fd);
		fd = -1;
	}
}

static inline void roofline_begin(const char *name)
{
	char mark[256];

	snprintf(mark, sizeof(mark), "begin\t%.64s", name);
	roofline__send(mark);
}

static inline void roofline_end_work(const char *name, double flops, double bytes)
{
	char mark[256], known[2][40] = { "-", "-" };

	if (flops >= 0)
		snprintf(known[0], sizeof(known[0]), "%.17g", flops);
	if (bytes >= 0)
		snprintf(known[1], sizeof(known[1]), "%.17g", bytes);
	snprintf(mark, sizeof(mark), "end\t%.64s\t%s\t%s", name, known[0], known[1]);
	roofline__send(mark);
}

static inline void roofline_end(const char *name)
{
	roofline_end_work(name, -1, -1);
}

#endif
