/*
 * world.c - several processes: reads the rank from the environment variables of a launcher or,
 * without a launcher, starts and monitors a run for each rank.
 */
#include "runner/run/parts.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/os.h"

#define DEFAULT_PORT 29500
#define JOB_PORTS    15000 /* first port for jobs with a number */
#define JOB_PORTS_N  10000

/* ---- launchers ---- */

/* The environment variables of a launcher, which is active if its rank is set. */
struct launcher {
	const char *name;
	const char *rank, *size, *local_rank, *local_size; /* local_size may be NULL */
	const char *nodes;  /* list of hosts, rank 0 first; may be NULL */
	const char *nnodes; /* number of hosts; may be NULL */
	const char *job;    /* job ID, from which a port is chosen; may be NULL */
	const char *hosted; /* "True": the launcher listens at the address; may be NULL */
};

/* torchrun is first: if srun or mpirun started it, its variables take precedence. */
static const struct launcher launchers[] = {
	{
		.name = "torchrun",
		.rank = "RANK",
		.size = "WORLD_SIZE",
		.local_rank = "LOCAL_RANK",
		.local_size = "LOCAL_WORLD_SIZE",
		.hosted = "TORCHELASTIC_USE_AGENT_STORE",
	},
	{
		.name = "openmpi",
		.rank = "OMPI_COMM_WORLD_RANK",
		.size = "OMPI_COMM_WORLD_SIZE",
		.local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
		.local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
	},
	{
		.name = "slurm",
		.rank = "SLURM_PROCID",
		.size = "SLURM_NTASKS",
		.local_rank = "SLURM_LOCALID",
		.nodes = "SLURM_JOB_NODELIST",
		.nnodes = "SLURM_STEP_NUM_NODES",
		.job = "SLURM_JOB_ID",
	},
	{
		.name = "mpich",
		.rank = "PMI_RANK",
		.size = "PMI_SIZE",
		.local_rank = "MPI_LOCALRANKID",
		.local_size = "MPI_LOCALNRANKS",
	},
};

struct reader {
	rfl_world_env_fn env;
	void *ctx;
	const struct launcher *launcher;
	struct rfl_err *err;
	enum rfl_rc rc; /* the first failure */
};

static const char *get(const struct reader *r, const char *name)
{
	const char *value = name ? r->env(name, r->ctx) : NULL;

	return value && *value ? value : NULL;
}

/* Read a whole number from `least` to `most`; return 0 after a failure. @param absent default; -2:
 * required */
static int number(struct reader *r, const char *name, int least, int most, int absent)
{
	const char *text = get(r, name);
	int64_t value = 0;

	if (r->rc != RFL_OK)
		return 0;
	if (!text && absent == -2)
		r->rc = rfl_fail(
			r->err, RFL_EINVAL, 0,
			"%s is not set, but %s is: start all processes with the same launcher "
			"(torchrun, srun, mpirun), or set both",
			name, r->launcher->rank);
	else if (!text)
		return absent;
	else if (rfl_num_parse_int(text, name, &value, NULL) != RFL_OK || value < least ||
		 value > most)
		r->rc = rfl_fail(r->err, RFL_EINVAL, 0,
				 "%s: '%s' is not a whole number from %d to %d", name, text, least,
				 most);
	return r->rc == RFL_OK ? (int)value : 0;
}

/* Find the first host of a list in Slurm's syntax, "node[003-007,9],gpu4". */
static bool first_host(const char *list, char *out, size_t size)
{
	const size_t stem = strcspn(list, "[,");
	size_t digits = 0;

	if (list[stem] == '[')
		digits = strcspn(list + stem + 1, "-,]");
	if (stem + digits == 0 || stem + digits >= size)
		return false;
	memcpy(out, list, stem);
	memcpy(out + stem, list + stem + 1, digits);
	out[stem + digits] = '\0';
	return true;
}

static enum rfl_rc read_launcher(struct reader *r, struct rfl_world *w)
{
	const struct launcher *l = r->launcher;
	const char *hosted = get(r, l->hosted), *given = get(r, "MASTER_ADDR");
	const char *nodes = get(r, l->nodes);
	int nnodes, job;

	w->launcher = l->name;
	w->hosted = hosted && strcmp(hosted, "True") == 0;
	w->size = number(r, l->size, 1, 1 << 20, -2);
	w->rank = number(r, l->rank, 0, w->size - 1, -2);
	w->local_rank = number(r, l->local_rank, 0, w->size - 1, w->size == 1 ? 0 : -2);
	nnodes = number(r, l->nnodes, 1, INT_MAX, -1);
	w->local_size =
		number(r, l->local_size, 1, w->size, w->size == 1 || nnodes == 1 ? w->size : -1);
	/* jobs of one scheduler may share a host, so each has its own port */
	job = number(r, l->job, 0, INT_MAX, -1);
	w->port = number(r, "MASTER_PORT", 1, 65535,
			 job < 0 ? DEFAULT_PORT : JOB_PORTS + job % JOB_PORTS_N);
	if (r->rc)
		return r->rc;

	if (given && strlen(given) >= sizeof(w->address))
		return rfl_fail(r->err, RFL_EINVAL, 0,
				"MASTER_ADDR: too long; use at most %zu characters",
				sizeof(w->address) - 1);
	if (given || w->local_size == w->size)
		(void)snprintf(w->address, sizeof(w->address), "%s", given ? given : "127.0.0.1");
	else if (!nodes || !first_host(nodes, w->address, sizeof(w->address)))
		return rfl_fail(r->err, RFL_EINVAL, 0,
				"MASTER_ADDR is not set: set it to the host of rank 0 (%s does not "
				"provide it)",
				l->name);
	return RFL_OK;
}

enum rfl_rc rfl_world_from_env(rfl_world_env_fn env, void *ctx, struct rfl_world *ret,
			       struct rfl_err *err)
{
	struct reader r = { .env = env, .ctx = ctx, .err = err };
	struct rfl_world w = {
		.size = 1,
		.local_size = 1,
		.port = DEFAULT_PORT,
		.timeout_s = 300,
		.bucket_bytes = RFL_WORLD_BUCKET_BYTES,
		.interconnect = "auto",
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(launchers) && !w.launcher; i++) {
		r.launcher = &launchers[i];
		if (get(&r, launchers[i].rank))
			r.rc = read_launcher(&r, &w);
	}
	if (r.rc == RFL_OK)
		*ret = w;
	return r.rc;
}

bool rfl_world_gpu(const char *visible, int local_rank, char ret[64])
{
	const char *at = visible;

	if (!visible) {
		(void)snprintf(ret, 64, "%d", local_rank);
		return true;
	}
	for (int i = 0; i < local_rank; i++) {
		at = strchr(at, ',');
		if (!at)
			return false;
		at++;
	}
	const size_t len = strcspn(at, ",");

	if (len == 0 || len >= 64)
		return false;
	memcpy(ret, at, len);
	ret[len] = '\0';
	return true;
}

/* ---- without a launcher ---- */

/* Seconds to wait after a failure: the other processes' own reports are more specific than ours. */
#define GRACE_S 3

/* State shared by the ranks. */
struct team {
	const struct rfl_run_host *host;
	pthread_mutex_t lock;
	int failed;     /* first rank that failed; -1: none */
	double since_s; /* time of the failure */
	char why[300];  /* error_text for the rows of the other ranks */
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

static bool is_cancelled(const struct rfl_run_host *host)
{
	return host->cancelled && host->cancelled(host->ctx);
}

static bool ends_now(void *ctx)
{
	struct team *t = ((struct member *)ctx)->team;
	bool late;

	pthread_mutex_lock(&t->lock);
	late = t->failed >= 0 && rfl_clock_s() - t->since_s > GRACE_S;
	pthread_mutex_unlock(&t->lock);
	return late || is_cancelled(t->host);
}

static const char *why_it_ends(void *ctx)
{
	struct team *t = ((struct member *)ctx)->team;
	bool failed;

	pthread_mutex_lock(&t->lock);
	failed = t->failed >= 0; /* `why` is then final */
	pthread_mutex_unlock(&t->lock);
	return failed && !is_cancelled(t->host) ? t->why : NULL;
}

static void on_progress(const struct rfl_run_progress *progress, void *ctx)
{
	const struct member *m = ctx;
	const struct rfl_run_host *o = m->team->host;

	if (m->config.world.rank == 0 && o->progress)
		o->progress(progress, o->ctx);
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
	const char *why = row->error_text ? row->error_text : "";

	if (m->rc == RFL_OK && m->result.rc == RFL_OK)
		return;
	pthread_mutex_lock(&t->lock);
	if (t->failed < 0) {
		t->failed = m->config.world.rank;
		t->since_s = rfl_clock_s();
		(void)snprintf(t->why, sizeof(t->why), "stopped: rank %d ended first (%s: %.200s)",
			       t->failed, m->rc ? "refused" : row->status,
			       m->rc ? m->err.msg : why);
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

enum rfl_rc rfl_run_local(const struct rfl_run_config *config, const struct rfl_run_host *host,
			  struct rfl_run_result *ret, struct rfl_err *err)
{
	const int n = config->world.size;
	struct team team = { .host = host, .failed = -1 };
	RFL_AUTOFREE struct member *members = NULL;
	/* The processes meet in a file without a name: it needs no port that others could connect
	 * to, only this user can open it, and it vanishes with this process. */
	const int file = rfl_os_memory_file("roofline world");
	enum rfl_rc rc = RFL_OK;

	*ret = (struct rfl_run_result){ .rc = RFL_OK };
	rfl_ledger_row_init(&ret->row);
	if (file < 0)
		return rfl_fail(err, RFL_EIO, errno,
				"--world %d: cannot create a file in memory: %s", n,
				strerror(errno));
	members = rfl_alloc_array((size_t)n, sizeof(*members));
	(void)pthread_mutex_init(&team.lock, NULL);
	for (int i = 0; i < n; i++) {
		struct member *m = &members[i];
		struct rfl_world *w = &m->config.world;

		m->team = &team;
		m->config = *config;
		w->rank = w->local_rank = i;
		w->local_size = n;
		w->port = 0;
		w->launcher = "roofline";
		(void)snprintf(w->address, sizeof(w->address), "/proc/%ld/fd/%d", (long)getpid(),
			       file);
		m->host = *host;
		m->host.cancelled = ends_now;
		m->host.why_cancelled = why_it_ends;
		m->host.progress = on_progress;
		m->host.unrecorded = on_unrecorded;
		m->host.attempt = NULL;
		m->host.ctx = m;
		rfl_ledger_row_init(&m->result.row);
	}
	for (int i = 0; i < n; i++) {
		struct member *m = &members[i];
		const int code = pthread_create(&m->thread, NULL, run_member, m);

		m->begun = code == 0;
		if (!m->begun) {
			m->rc = rfl_fail(&m->err, RFL_EFAILED, code,
					 "rank %d: cannot create a thread: %s", i, strerror(code));
			note_end(m);
		}
	}
	for (int i = 0; i < n; i++)
		if (members[i].begun)
			pthread_join(members[i].thread, NULL);

	/* the result is rank 0's, but report any rank that wrote no row */
	for (int i = 0; i < n; i++) {
		const struct rfl_err *its = &members[i].err;

		if (rc == RFL_OK && members[i].rc != RFL_OK)
			rc = rfl_fail(err, members[i].rc, its->native, "%s", its->msg);
		if (i > 0)
			rfl_run_result_fini(&members[i].result);
	}
	*ret = members[0].result;
	pthread_mutex_destroy(&team.lock);
	(void)close(file);
	return rc;
}
