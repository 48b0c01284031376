/* regions.c - a server for the marks of a program and its children. */
#define _GNU_SOURCE /* accept4, struct ucred */

#include "runner/program/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#define NAME_MAX_LEN    64
#define PACKET_MAX      256
#define WARNINGS_MAX    4096
#define PACKETS_AT_ONCE 1000 /* then other events have their turn */

RFL_PRINTF(2, 3)
static void warn(struct rfl_regions *r, const char *fmt, ...)
{
	RFL_AUTO(buf) line = { .len = 0 };
	va_list ap;

	va_start(ap, fmt);
	rfl_buf_vprintf(&line, fmt, ap);
	va_end(ap);
	rfl_buf_putc(&line, '\n');
	/* a loop makes the same mistake every time */
	if (r->warnings.len + line.len < WARNINGS_MAX &&
	    !strstr(rfl_buf_str(&r->warnings), rfl_buf_str(&line)))
		rfl_buf_puts(&r->warnings, rfl_buf_str(&line));
}

enum rfl_rc rfl_regions_new(const char *only, double flops, double bytes, struct rfl_regions **ret,
			    struct rfl_err *err)
{
	RFL_AUTOPTR(regions) r = rfl_alloc_array(1, sizeof(*r));
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct epoll_event wanted = { .events = EPOLLIN };
	const uint64_t seed[] = { (uint64_t)rfl_clock_ns(), (uint64_t)getpid() };
	size_t len;

	*r = (struct rfl_regions){
		.only = only,
		.flops = flops,
		.bytes = bytes,
		.listener = -1,
		.fd = -1,
		.time_s = NAN,
		.arena = rfl_arena_new(),
	};
	len = (size_t)snprintf(r->variable, sizeof(r->variable),
			       RFL_REGIONS_VARIABLE "=roofline-%ld-%016" PRIx64, (long)getpid(),
			       rfl_hash64(0, seed, sizeof(seed)));
	/* an abstract name: sun_path begins with a 0, and there is no file to remove */
	len -= sizeof(RFL_REGIONS_VARIABLE);
	memcpy(at.sun_path + 1, r->variable + sizeof(RFL_REGIONS_VARIABLE), len);
	r->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r->fd = epoll_create1(EPOLL_CLOEXEC);
	wanted.data.fd = r->listener;
	if (r->listener < 0 || r->fd < 0 ||
	    bind(r->listener, (const struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0 ||
	    listen(r->listener, RFL_REGIONS_CLIENTS) != 0 ||
	    epoll_ctl(r->fd, EPOLL_CTL_ADD, r->listener, &wanted) != 0)
		return rfl_fail_errno(err, "the socket for regions");
	*ret = r;
	r = NULL;
	return RFL_OK;
}

/* Only processes of the same user, and root, may mark. */
static void take_client(struct rfl_regions *r)
{
	const int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event wanted = { .events = EPOLLIN, .data.fd = fd };
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0)
		return;
	if (r->nclients == RFL_REGIONS_CLIENTS ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
	    (peer.uid != geteuid() && peer.uid != 0) ||
	    epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &wanted) != 0) {
		if (r->nclients == RFL_REGIONS_CLIENTS)
			warn(r, "regions of more than %d processes are not separated",
			     RFL_REGIONS_CLIENTS);
		close(fd);
		return;
	}
	r->clients[r->nclients++] = (struct rfl_region_client){ fd, peer.pid };
}

void rfl_regions_add_given(struct rfl_ranges *ranges, double flops, double bytes, bool by_user)
{
	if (!isnan(flops))
		ranges->add(ranges, RFL_METRIC_GIVEN "FLOPs", "", flops,
			    by_user ? "by --flops" : "by the program");
	if (!isnan(bytes))
		ranges->add(ranges, RFL_METRIC_GIVEN "bytes", "byte", bytes,
			    by_user ? "by --bytes" : "by the program");
}

static void stop(struct rfl_regions *r)
{
	r->time_s += rfl_clock_s() - r->since_s;
	r->ranges->end(r->ranges);
	r->open = NULL;
}

/* The name as it lives in the arena, or NULL: there are too many. */
static const char *find_name(struct rfl_regions *r, const char *name)
{
	for (size_t i = 0; i < r->nnames; i++)
		if (strcmp(r->names[i], name) == 0)
			return r->names[i];
	if (r->nnames == RFL_REGIONS_NAMES)
		return NULL;
	return r->names[r->nnames++] = rfl_arena_strdup(r->arena, name);
}

static void begin(struct rfl_regions *r, const char *name, pid_t pid)
{
	const char *kept;

	if (r->only && strcmp(r->only, name) != 0)
		return;
	if (!(kept = find_name(r, name))) {
		warn(r, "more than %d regions have different names; '%s' is not separated",
		     RFL_REGIONS_NAMES, name);
		return;
	}
	if (r->open) {
		warn(r, "region '%s' began %s '%s' was open; it is counted as part of '%s'", name,
		     pid == r->owner ? "while" : "in another process while", r->open, r->open);
		return;
	}
	if (r->ranges->begin(r->ranges, RFL_RANGE_PHASE, kept, NULL) != RFL_OK)
		return;
	r->open = kept;
	r->owner = pid;
	if (r->only && isnan(r->time_s)) { /* the first time in this run */
		rfl_regions_add_given(r->ranges, r->flops, r->bytes, true);
		r->time_s = 0;
	}
	r->since_s = rfl_clock_s();
}

static void end(struct rfl_regions *r, const char *name, pid_t pid, double flops, double bytes)
{
	if (r->only && strcmp(r->only, name) != 0)
		return;
	if (r->open && r->owner == pid && strcmp(r->open, name) == 0) {
		rfl_regions_add_given(r->ranges, r->only && !isnan(r->flops) ? NAN : flops,
				      r->only && !isnan(r->bytes) ? NAN : bytes, false);
		stop(r);
	} else if (!r->open) { /* else it is the end of a part */
		warn(r, "region '%s' ended without having begun; ignored", name);
	}
}

/* The process of a client has ended, or closed its socket. */
static void drop_client(struct rfl_regions *r, struct rfl_region_client *client)
{
	if (r->open && r->owner == client->pid) {
		warn(r,
		     "region '%s' was never ended; it is counted until its process, or the "
		     "program, ended",
		     r->open);
		stop(r);
	}
	close(client->fd);
	*client = r->clients[--r->nclients];
}

/* "-" or a number that is not negative. */
static bool take_amount(struct rfl_span s, double *ret)
{
	*ret = NAN;
	if (rfl_span_is(s, "-"))
		return true;
	*ret = rfl_num_plain(s.at, s.len);
	return *ret >= 0 && isfinite(*ret);
}

static bool is_name(struct rfl_span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] < ' ' || s.at[i] == 0x7f)
			return false;
	return s.len > 0 && s.len <= NAME_MAX_LEN;
}

static void take_packet(struct rfl_regions *r, pid_t pid, struct rfl_span rest)
{
	struct rfl_span field[4]; /* verb, name, FLOPs, bytes */
	char name[NAME_MAX_LEN + 1];
	double flops, bytes;
	size_t n = 0;

	while (n < RFL_ARRAY_LEN(field) && rfl_span_next_field(&rest, '\t', &field[n]))
		n++;
	if (n < 2 || !is_name(field[1])) {
		warn(r, "a process sent an invalid mark; it is ignored");
		return;
	}
	rfl_span_copy(field[1], name, sizeof(name));
	if (rfl_span_is(field[0], "begin"))
		begin(r, name, pid);
	else if (rfl_span_is(field[0], "end") && n == 4 && take_amount(field[2], &flops) &&
		 take_amount(field[3], &bytes))
		end(r, name, pid, flops, bytes);
	else
		warn(r, "region '%s': an invalid mark is ignored", name);
}

void rfl_regions_take(struct rfl_regions *r)
{
	struct epoll_event ready;

	for (int i = 0; i < PACKETS_AT_ONCE && epoll_wait(r->fd, &ready, 1, 0) == 1; i++) {
		struct rfl_region_client *client = r->clients;
		char text[PACKET_MAX];
		ssize_t n;

		if (ready.data.fd == r->listener) {
			take_client(r);
			continue;
		}
		while (client->fd != ready.data.fd)
			client++;
		n = recv(client->fd, text, sizeof(text), 0);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n > 0)
			take_packet(r, client->pid, (struct rfl_span){ text, (size_t)n });
		if (n <= 0 || send(client->fd, "ok", 2, MSG_NOSIGNAL) != 2)
			drop_client(r, client);
	}
}

void rfl_regions_begin(struct rfl_regions *r, struct rfl_ranges *ranges)
{
	r->ranges = ranges;
	r->time_s = NAN;
}

void rfl_regions_end(struct rfl_regions *r)
{
	rfl_regions_take(r);
	while (r->nclients > 0)
		drop_client(r, &r->clients[r->nclients - 1]);
}

void rfl_regions_free(struct rfl_regions *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nclients; i++)
		close(r->clients[i].fd);
	if (r->listener >= 0)
		close(r->listener);
	if (r->fd >= 0)
		close(r->fd);
	rfl_buf_fini(&r->warnings);
	rfl_arena_free(r->arena);
	free(r);
}
