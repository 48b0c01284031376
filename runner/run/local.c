/*
 * local.c - several processes on this machine without a launcher: a run for each rank, begun
 * here and watched together.
 */
#include "runner/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* When one has ended badly the others notice it by themselves, mostly, and say more than we can. */
#define GRACE_S 3

/* What the ranks share. */
struct team {
	const struct rfl_run_host *host;
	pthread_mutex_t lock;
	int failed;     /* the rank that ended first, and badly; -1: none */
	double since_s; /* when */
	char why[300];  /* for the rows of the others */
};

struct member {
	struct team *team;
	struct rfl_run_config config;
	struct rfl_run_host host;
	struct rfl_run_result result;
	struct rfl_err err;
	enum rfl_rc rc;
	bool begun;
	pthread_t thread;
};

static bool ends_now(void *ctx)
{
	struct member *m = ctx;
	struct team *t = m->team;
	bool late;

	if (t->host->cancelled && t->host->cancelled(t->host->ctx))
		return true;
	pthread_mutex_lock(&t->lock);
	late = t->failed >= 0 && rfl_clock_s() - t->since_s > GRACE_S;
	pthread_mutex_unlock(&t->lock);
	return late;
}

static const char *why_it_ends(void *ctx)
{
	struct member *m = ctx;
	struct team *t = m->team;
	const char *why;

	if (t->host->cancelled && t->host->cancelled(t->host->ctx))
		return NULL;
	pthread_mutex_lock(&t->lock);
	why = t->failed >= 0 ? t->why : NULL; /* written once */
	pthread_mutex_unlock(&t->lock);
	return why;
}

static void on_progress(const char *phase, int64_t done, int64_t total, void *ctx)
{
	const struct member *m = ctx;
	const struct rfl_run_host *o = m->team->host;

	if (m->config.world.rank == 0 && o->progress)
		o->progress(phase, done, total, o->ctx);
}

static void on_unrecorded(const char *ledger, const struct rfl_ledger_row *row, void *ctx)
{
	const struct rfl_run_host *o = ((const struct member *)ctx)->team->host;

	if (o->unrecorded)
		o->unrecorded(ledger, row, o->ctx);
}

static void note_end(struct member *m)
{
	struct team *t = m->team;
	const struct rfl_ledger_row *row = &m->result.row;
	const bool refused = m->rc != RFL_OK;

	if (!refused && m->result.rc == RFL_OK)
		return;
	pthread_mutex_lock(&t->lock);
	if (t->failed < 0) {
		t->failed = m->config.world.rank;
		t->since_s = rfl_clock_s();
		(void)snprintf(t->why, sizeof(t->why), "stopped: rank %d ended first (%s: %.200s)",
			       t->failed, refused ? "refused" : row->status,
			       refused           ? m->err.msg
			       : row->error_text ? row->error_text
						 : "");
	}
	pthread_mutex_unlock(&t->lock);
}

static void *run_member(void *arg)
{
	struct member *m = arg;

	m->rc = rfl_run(&m->config, &m->host, &m->result, &m->err);
	note_end(m);
	return NULL;
}

/* Reserve a free port until rank 0, which takes seconds to start, listens there. While *fd is bound
 * and does not listen, Linux gives the port to no other program, but lets rank 0 bind it, because
 * both have SO_REUSEADDR (as the servers of c10d do). The caller closes *fd, unless it is -1. */
static enum rfl_rc reserve_port(int *fd, int *port, struct rfl_err *err)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	const int on = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(*fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    getsockname(*fd, (struct sockaddr *)&address, &len) != 0)
		return rfl_fail(err, RFL_EIO, errno, "no free port at 127.0.0.1: %s",
				strerror(errno));
	*port = ntohs(address.sin_port);
	return RFL_OK;
}

static void set_up(struct member *m, struct team *team, const struct rfl_run_config *config,
		   int rank, int port)
{
	struct rfl_world *w = &m->config.world;

	m->team = team;
	m->config = *config;
	w->rank = w->local_rank = rank;
	w->local_size = w->size;
	w->port = port;
	w->launcher = "roofline";
	(void)snprintf(w->address, sizeof(w->address), "127.0.0.1");
	m->host = *team->host;
	m->host.cancelled = ends_now;
	m->host.why_cancelled = why_it_ends;
	m->host.progress = on_progress;
	m->host.unrecorded = on_unrecorded;
	m->host.attempt = NULL;
	m->host.ctx = m;
	rfl_ledger_row_init(&m->result.row);
}

/* The result is rank 0's. A rank that wrote no row at all is reported in any case. */
static enum rfl_rc conclude(struct member *members, int n, struct rfl_run_result *ret,
			    struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int i = 0; i < n; i++)
		if (rc == RFL_OK && members[i].rc != RFL_OK)
			rc = rfl_fail(err, members[i].rc, members[i].err.native, "%s",
				      members[i].err.msg);
	for (int i = 1; i < n; i++)
		rfl_run_result_fini(&members[i].result);
	*ret = members[0].result;
	return rc;
}

enum rfl_rc rfl_run_local(const struct rfl_run_config *config, const struct rfl_run_host *host,
			  struct rfl_run_result *ret, struct rfl_err *err)
{
	const int n = config->world.size;
	struct team team = { .host = host, .failed = -1 };
	struct member *members = rfl_alloc_array((size_t)n, sizeof(*members));
	int port = 0, reserved = -1;
	enum rfl_rc rc = reserve_port(&reserved, &port, err);

	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	if (!members && rc == RFL_OK)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", n);
	if (rc == RFL_OK && pthread_mutex_init(&team.lock, NULL) != 0)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", n);
	if (rc)
		goto done;
	for (int i = 0; i < n; i++)
		set_up(&members[i], &team, config, i, port);
	for (int i = 0; i < n; i++) {
		struct member *m = &members[i];
		const int code = pthread_create(&m->thread, NULL, run_member, m);

		m->begun = code == 0;
		if (!m->begun) {
			m->rc = rfl_fail(&m->err, RFL_ENOMEM, code, "rank %d: no thread: %s", i,
					 strerror(code));
			note_end(m);
		}
	}
	for (int i = 0; i < n; i++)
		if (members[i].begun)
			pthread_join(members[i].thread, NULL);
	rc = conclude(members, n, ret, err);
	pthread_mutex_destroy(&team.lock);
done:
	if (reserved >= 0)
		close(reserved);
	free(members);
	return rc;
}
