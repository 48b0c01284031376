/*
 * world.c - a run as one of several processes: who we are among them, from what each launcher
 * leaves in the environment; and in the child, meeting the others and putting together what each
 * has measured.
 */
#include "runner/run/parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"

#define DEFAULT_PORT    29500
#define JOB_PORTS       15000 /* of jobs with a number, this one and those after it */
#define JOB_PORTS_N     10000
#define STEPS_PER_PIECE 256

/* ---- who we are ---- */

/* The variables of one launcher. It is the one at work when its rank is set. */
struct launcher {
	const char *name;
	const char *rank, *size, *local_rank, *local_size; /* local_size may be NULL */
	const char *nodes;  /* a list of hosts, the first of which has rank 0; may be NULL */
	const char *nnodes; /* how many hosts; may be NULL */
	const char *job;    /* a number that distinguishes jobs, for their ports; may be NULL */
	const char *hosted; /* "True": the launcher listens at the address; may be NULL */
};

/* torchrun first: it can itself be started by srun or mpirun, and then it decides. */
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

/* A whole number from `least` to `most`; 0 after a failure. @param absent  when it is not set; -2:
 * it must be */
static int number(struct reader *r, const char *name, int least, int most, int absent)
{
	const char *text = get(r, name);
	int64_t value = 0;

	if (r->rc != RFL_OK)
		return 0;
	if (!text && absent == -2)
		r->rc = rfl_fail(r->err, RFL_EINVAL, 0,
				 "%s is not set, but %s is: start every process by one launcher "
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

/* The first host of "node[003-007,9],gpu4", the form in which Slurm lists them. */
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

static enum rfl_rc find_address(const struct reader *r, struct rfl_world *w)
{
	const char *given = get(r, "MASTER_ADDR");
	const char *nodes = get(r, r->launcher->nodes);

	if (given) {
		if (strlen(given) >= sizeof(w->address))
			return rfl_fail(r->err, RFL_EINVAL, 0, "MASTER_ADDR: longer than %zu",
					sizeof(w->address) - 1);
		memcpy(w->address, given, strlen(given) + 1);
		return RFL_OK;
	}
	if (w->local_size != w->size && nodes && first_host(nodes, w->address, sizeof(w->address)))
		return RFL_OK;
	if (w->local_size != w->size)
		return rfl_fail(r->err, RFL_EINVAL, 0,
				"MASTER_ADDR is not set: give the host of rank 0 (%s does not say "
				"where it is)",
				r->launcher->name);
	memcpy(w->address, "127.0.0.1", sizeof("127.0.0.1"));
	return RFL_OK;
}

static enum rfl_rc read_launcher(struct reader *r, struct rfl_world *w)
{
	const struct launcher *l = r->launcher;
	const char *hosted = get(r, l->hosted);
	int nodes, job;

	w->launcher = l->name;
	w->hosted = hosted && strcmp(hosted, "True") == 0;
	w->size = number(r, l->size, 1, 1 << 20, -2);
	w->rank = number(r, l->rank, 0, w->size - 1, -2);
	w->local_rank = number(r, l->local_rank, 0, w->size - 1, w->size == 1 ? 0 : -2);
	nodes = number(r, l->nnodes, 1, INT_MAX, -1);
	w->local_size =
		number(r, l->local_size, 1, w->size, w->size == 1 || nodes == 1 ? w->size : -1);
	/* jobs of one scheduler may share a host: then each has a port of its own */
	job = number(r, l->job, 0, INT_MAX, -1);
	w->port = number(r, "MASTER_PORT", 1, 65535,
			 job < 0 ? DEFAULT_PORT : JOB_PORTS + job % JOB_PORTS_N);
	return r->rc == RFL_OK ? find_address(r, w) : r->rc;
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
		.bucket_bytes = (int64_t)25 << 20, /* as PyTorch's DDP has it */
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

/* ---- meeting ---- */

static enum rfl_rc agree_on_number(struct rfl_run__job *job, int64_t *ret, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const double mine = (double)w->run_number;
	double *all = rfl_alloc_array((size_t)w->size, sizeof(*all));
	enum rfl_rc rc;

	if (!all)
		return rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", w->size);
	rc = job->choice.ops->gather(job->engine, &mine, 1, all, err);
	*ret = w->run_number;
	for (int r = 0; rc == RFL_OK && r < w->size; r++)
		*ret = all[r] > (double)*ret ? (int64_t)all[r] : *ret;
	free(all);
	return rc;
}

enum rfl_rc rfl_run__join(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_engine_ops *ops = job->choice.ops;
	const struct rfl_world *w = &job->config.world;
	int64_t number = 0;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	if (!ops->join || !ops->barrier || !ops->gather)
		return rfl_fail(err, RFL_EUNSUPPORTED, 0,
				"engine '%s' cannot be one of several processes; leave out --world",
				ops->name);
	rc = ops->join(job->engine, w, err);
	if (rc == RFL_OK)
		rc = agree_on_number(job, &number, err);
	if (rc == RFL_OK)
		rfl_run__tell(job, json_pack("{s:s, s:I}", "event", "met", "run_number",
					     (json_int_t)number));
	return rc;
}

enum rfl_rc rfl_run__meet(struct rfl_run__job *job, struct rfl_err *err)
{
	if (job->config.world.size <= 1)
		return RFL_OK;
	return job->choice.ops->barrier(job->engine, err);
}

/* ---- what was measured ---- */

/* The times of the slowest process, and the mean loss of all, in pieces. */
static enum rfl_rc report_steps(struct rfl_run__job *job, int slowest, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	const struct rfl_burst *b = &job->r.burst;
	struct rfl_burst_step *all =
		rfl_alloc_array((size_t)STEPS_PER_PIECE * (size_t)w->size, sizeof(*all));
	enum rfl_rc rc = RFL_OK;

	if (!all)
		return rfl_fail(err, RFL_ENOMEM, 0, "%d processes: out of memory", w->size);
	for (int64_t first = 0; rc == RFL_OK && first < b->nsteps; first += STEPS_PER_PIECE) {
		const int64_t left = b->nsteps - first;
		const int64_t n = left < STEPS_PER_PIECE ? left : STEPS_PER_PIECE;
		struct rfl_burst_step *times = all + slowest * n;

		rc = job->choice.ops->gather(job->engine, (const double *)(b->steps + first),
					     (size_t)n * RFL_RUN__STEP_NUMBERS, (double *)all, err);
		for (int64_t i = 0; rc == RFL_OK && i < n; i++) {
			double loss = 0;

			for (int r = 0; r < w->size; r++)
				loss += all[r * n + i].loss;
			times[i].loss = loss / w->size;
		}
		if (rc == RFL_OK && w->rank == 0)
			rfl_run__tell(job, rfl_run__pack_steps("world_steps", times, first, n));
	}
	free(all);
	return rc;
}

enum rfl_rc rfl_run__report_world(struct rfl_run__job *job, struct rfl_err *err)
{
	const struct rfl_world *w = &job->config.world;
	struct rfl_run__results all = job->r;
	int slowest = 0;
	enum rfl_rc rc;

	if (w->size <= 1)
		return RFL_OK;
	rc = rfl_run__unite(job->choice.ops, job->engine, w->size, &all, &slowest, err);
	if (rc == RFL_OK)
		rc = report_steps(job, slowest, err);
	if (rc == RFL_OK && w->rank == 0)
		rfl_run__tell(job, rfl_run__pack(RFL_RUN__WORLD, &all));
	return rc;
}
