/*
 * ring.c - batches of a set, made by worker threads. Batches live in a ring; samples are tickets
 * that workers draw, so that all of them work on the same batch and the first is ready as early as
 * it can be. What a ticket becomes is a function of its number alone.
 */
#include "data/ring.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "machine/machine.h"

#define NAMED_BAD  100  /* damaged samples named one by one in the log; the rest is counted */
#define BAD_IN_ROW 1000 /* so many damaged samples one after the other end everything */

#define SMALL ((uint64_t)64 << 20) /* bytes for which the system is not asked */

struct slot {
	uint8_t *pixels;
	int64_t *labels; /* after the pixels, in the same block */
	int64_t filled;  /* samples that are complete */
};

struct worker {
	struct ring *ring;
	void *own; /* of the set */
	pthread_t thread;
};

struct ring {
	struct rfl_data base;
	struct rfl_samples *set;
	struct rfl_ring_config config;
	struct rfl_data_memory memory; /* what config.memory points to, when it is not NULL */
	uint64_t per_epoch;            /* samples of all ranks; the rest of an epoch is left out */
	int nslots;
	struct slot *slots;
	int nworkers; /* structs; config.workers of them are threads */
	struct worker *workers;
	int nthreads;      /* started */
	atomic_uchar *bad; /* per sample: has been found damaged, and named */
	pthread_mutex_t lock;
	pthread_cond_t ready, room;
	/* under the lock: */
	int64_t next_ticket;
	int64_t consumed; /* batches given back */
	bool in_use;      /* batch `consumed` is with the caller */
	bool stop;
	int64_t nbad;
	struct rfl_err error; /* what stops everything */
	struct rfl_data_stats stats;
	int64_t asked;     /* batches that were asked for */
	int64_t ready_sum; /* ready batches, over those */
	int64_t ready_min;
};

void rfl_samples_free(struct rfl_samples *s)
{
	if (s)
		s->ops->free(s);
}

/* ---- memory: a system that overcommits gives more than it has and ends the process that uses it,
 * so it is asked before ---- */

enum rfl_rc rfl_data__room(int64_t *ret, struct rfl_err *err)
{
	struct rfl_machine *m = NULL;
	enum rfl_rc rc = rfl_machine_new(&m, err);

	if (rc)
		return rc;
	*ret = m->memory_available_bytes - m->memory_available_bytes / 10;
	rfl_machine_free(m);
	if (*ret <= 0) /* the system does not say */
		*ret = INT64_MAX;
	return RFL_OK;
}

enum rfl_rc rfl_data__check_room(const char *name, int64_t batches, int64_t samples, size_t bytes,
				 struct rfl_err *err)
{
	char need[RFL_NUM_MAX], have[RFL_NUM_MAX];
	const double total = (double)batches * (double)bytes;
	int64_t room;
	enum rfl_rc rc;

	if (total <= (double)SMALL)
		return RFL_OK;
	rc = rfl_data__room(&room, err);
	if (rc || total <= (double)room)
		return rc;
	rfl_num_bytes(total, need, sizeof(need));
	rfl_num_bytes((double)room, have, sizeof(have));
	return rfl_fail(err, RFL_ENOMEM, 0,
			"%s: %lld batch%s of %lld samples need %s, but %s of memory may be taken "
			"(nine tenths of what is free): use a smaller --batch-size%s",
			name, (long long)batches, batches == 1 ? "" : "es", (long long)samples,
			need, have, batches == 1 ? "" : " or --prefetch-factor");
}

enum rfl_rc rfl_data__alloc(const struct rfl_data_memory *memory, size_t bytes, void **ret,
			    struct rfl_err *err)
{
	const size_t line = 64;

	if (bytes > SIZE_MAX - line)
		return rfl_fail(err, RFL_ENOMEM, 0, "a batch is larger than any memory");
	bytes = (bytes + line - 1) / line * line;
	if (memory)
		return memory->alloc(memory->ctx, bytes, ret, err);
	*ret = aligned_alloc(line, bytes);
	if (!*ret)
		return rfl_fail(err, RFL_ENOMEM, 0,
				"a batch of %zu bytes: out of memory; take a smaller --batch-size",
				bytes);
	memset(*ret, 0, bytes); /* its pages are there before anything is timed */
	return RFL_OK;
}

void rfl_data__free(const struct rfl_data_memory *memory, void *p)
{
	if (!p)
		return;
	if (memory)
		memory->free(memory->ctx, p);
	else
		free(p);
}

/* ---- one sample ---- */

static void found_bad(struct ring *r, size_t index, const struct rfl_err *why)
{
	int64_t n;

	if (atomic_exchange(&r->bad[index], 1))
		return;
	pthread_mutex_lock(&r->lock);
	n = ++r->nbad;
	pthread_mutex_unlock(&r->lock);
	rfl_log(n <= NAMED_BAD && !r->config.named ? RFL_LOG_WARN : RFL_LOG_DEBUG, "%s: skipped",
		why->msg);
}

/* The sample at a place of the set, or the next one in the set's order that is not damaged. Nothing
 * is remembered of those: whether a file is too damaged may depend on the part of it that is
 * needed, and a sample must not depend on what other threads have seen before. */
static enum rfl_rc load_near(struct worker *w, size_t first, uint32_t epoch,
			     struct rfl_sample *sample, struct rfl_err *err)
{
	struct ring *r = w->ring;
	struct rfl_samples *set = r->set;
	size_t most = set->n < BAD_IN_ROW ? set->n : BAD_IN_ROW;

	for (size_t i = 0; i < most; i++) {
		size_t index = (first + i) % set->n;
		struct rfl_err why = RFL_ERR_INIT;
		struct rfl_random random;
		enum rfl_rc rc;

		/* a stand-in gets the numbers of the sample that it stands for: it comes a second
		 * time in this epoch, and shall not look the same */
		rfl_random_init(&random, r->config.seed, epoch, first);
		rc = set->ops->load(set, w->own, index, &random, sample, &why);
		if (rc == RFL_OK)
			return RFL_OK;
		if (rc != RFL_EFORMAT && rc != RFL_EIO)
			return rfl_fail(err, rc, why.native, "%s", why.msg);
		found_bad(r, index, &why);
	}
	if (most == set->n)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: none of its %zu images can be read",
				set->name, set->n);
	return rfl_fail(
		err, RFL_EFORMAT, 0,
		"%s: %zu images one after the other cannot be read; the log names the first",
		set->name, most);
}

/* ---- threads ---- */

/* Draw a ticket and fill its place. Called with the lock held, returns with it held. */
static void work_once(struct worker *w)
{
	struct ring *r = w->ring;
	int64_t ticket = r->next_ticket++, batch = r->config.batch, place = ticket % batch;
	struct slot *slot = &r->slots[(ticket / batch) % r->nslots];
	struct rfl_sample sample = { .pixels = slot->pixels + (size_t)place * r->set->sample_bytes,
				     .layout = r->config.layout };
	/* tickets count this process's samples; ranks take turns batch by batch */
	const int64_t turn = ticket / batch * r->config.world_size + r->config.rank;
	const uint64_t at = (uint64_t)(turn * batch + place);
	const uint32_t epoch = (uint32_t)(at / r->per_epoch);
	struct rfl_err err = RFL_ERR_INIT;
	double begun;
	enum rfl_rc rc;

	pthread_mutex_unlock(&r->lock);
	begun = rfl_clock_s();
	rc = load_near(
		w, (size_t)rfl_random_permute(r->config.seed, epoch, r->set->n, at % r->per_epoch),
		epoch, &sample, &err);
	slot->labels[place] = sample.label;
	pthread_mutex_lock(&r->lock);
	r->stats.decode_s += rfl_clock_s() - begun;
	r->stats.decoded++;
	r->stats.read_bytes += sample.read_bytes;
	if (rc)
		rfl_fail(&r->error, rc, err.native, "%s", err.msg);
	slot->filled++;
	if (rc || slot->filled == batch)
		pthread_cond_signal(&r->ready);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct ring *r = w->ring;

	pthread_mutex_lock(&r->lock);
	while (!r->stop && r->error.rc == RFL_OK) {
		if (r->next_ticket < (r->consumed + r->nslots) * r->config.batch)
			work_once(w);
		else
			pthread_cond_wait(&r->room, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void count_ready(struct ring *r)
{
	int64_t n = 0;

	while (n < r->nslots && r->slots[(r->consumed + n) % r->nslots].filled == r->config.batch)
		n++;
	if (r->asked == 0 || n < r->ready_min)
		r->ready_min = n;
	r->asked++;
	r->ready_sum += n;
}

static enum rfl_rc ring_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	struct ring *r = (struct ring *)data;
	struct slot *slot;

	pthread_mutex_lock(&r->lock);
	if (r->in_use) {
		r->slots[r->consumed % r->nslots].filled = 0;
		r->consumed++;
		r->in_use = false;
		pthread_cond_broadcast(&r->room);
	}
	count_ready(r);
	slot = &r->slots[r->consumed % r->nslots];
	while (slot->filled < r->config.batch && r->error.rc == RFL_OK) {
		if (r->nthreads == 0)
			work_once(&r->workers[0]);
		else
			pthread_cond_wait(&r->ready, &r->lock);
	}
	if (r->error.rc) {
		rfl_fail(err, r->error.rc, r->error.native, "%s", r->error.msg);
		pthread_mutex_unlock(&r->lock);
		return r->error.rc;
	}
	r->in_use = true;
	pthread_mutex_unlock(&r->lock);
	*ret = (struct rfl_batch){ .n = r->config.batch,
				   .kind = RFL_INPUT_PIXELS,
				   .pixels = slot->pixels,
				   .layout = r->config.layout,
				   .scale = r->set->scale,
				   .labels = slot->labels };
	return RFL_OK;
}

/* All tickets of the ring are drawn, and what was drawn is done. */
static bool is_resting(const struct ring *r)
{
	if (r->error.rc != RFL_OK || r->nthreads == 0)
		return true;
	for (int i = 0; i < r->nslots; i++)
		if (r->slots[i].filled < r->config.batch)
			return false;
	return true;
}

static void ring_rest(struct rfl_data *data)
{
	struct ring *r = (struct ring *)data;

	pthread_mutex_lock(&r->lock);
	while (!is_resting(r))
		pthread_cond_wait(&r->ready, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

/* ---- what it reports ---- */

static struct rfl_data_stats ring_stats(struct rfl_data *data)
{
	struct ring *r = (struct ring *)data;
	bool queue = r->nthreads > 0;
	struct rfl_data_stats ret;

	pthread_mutex_lock(&r->lock);
	ret = r->stats;
	ret.bad = r->nbad;
	ret.skipped = r->set->skipped + r->nbad;
	ret.queue_mean = queue && r->asked ? (double)r->ready_sum / (double)r->asked : (double)NAN;
	ret.queue_min = queue && r->asked ? (double)r->ready_min : (double)NAN;
	pthread_mutex_unlock(&r->lock);
	return ret;
}

static void ring_reset_stats(struct rfl_data *data)
{
	struct ring *r = (struct ring *)data;

	pthread_mutex_lock(&r->lock);
	r->stats = (struct rfl_data_stats){ .decoded = 0 };
	r->asked = r->ready_sum = r->ready_min = 0;
	pthread_mutex_unlock(&r->lock);
}

static void ring_free(struct rfl_data *data)
{
	struct ring *r = (struct ring *)data;

	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_broadcast(&r->room);
	pthread_mutex_unlock(&r->lock);
	for (int i = 0; i < r->nthreads; i++)
		pthread_join(r->workers[i].thread, NULL);
	if (r->nbad > NAMED_BAD && !r->config.named)
		rfl_log(RFL_LOG_WARN,
			"%s: %lld images could not be read; the first %d are named above",
			r->set->name, (long long)r->nbad, NAMED_BAD);
	for (int i = 0; r->workers && i < r->nworkers; i++) {
		if (r->set->ops->worker_free)
			r->set->ops->worker_free(r->workers[i].own);
	}
	for (int i = 0; r->slots && i < r->nslots; i++)
		rfl_data__free(r->config.memory, r->slots[i].pixels);
	free(r->workers);
	free(r->slots);
	free(r->bad);
	pthread_cond_destroy(&r->room);
	pthread_cond_destroy(&r->ready);
	pthread_mutex_destroy(&r->lock);
	rfl_samples_free(r->set);
	free(r);
}

static const struct rfl_data_ops ring_ops = {
	.next = ring_next,
	.rest = ring_rest,
	.free = ring_free,
	.stats = ring_stats,
	.reset_stats = ring_reset_stats,
};

/* ---- making it ---- */

static enum rfl_rc allocate(struct ring *r, struct rfl_err *err)
{
	const size_t batch = (size_t)r->config.batch, align = sizeof(int64_t);
	size_t pixels, all; /* bytes of a batch: its pixels, then its labels */
	enum rfl_rc rc;

	r->bad = rfl_alloc_array(r->set->n, sizeof(*r->bad));
	r->slots = rfl_alloc_array((size_t)r->nslots, sizeof(*r->slots));
	r->workers = rfl_alloc_array((size_t)r->nworkers, sizeof(*r->workers));
	if (!r->bad || !r->slots || !r->workers)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", r->set->name);
	if (r->set->sample_bytes > SIZE_MAX / 2 / batch - align - sizeof(int64_t))
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: a batch of %lld is larger than any memory",
				r->set->name, (long long)r->config.batch);
	pixels = (batch * r->set->sample_bytes + align - 1) / align * align;
	all = pixels + batch * sizeof(int64_t);
	rc = rfl_data__check_room(r->set->name, r->nslots, r->config.batch, all, err);
	for (int i = 0; i < r->nslots && rc == RFL_OK; i++) {
		void *memory = NULL;

		rc = rfl_data__alloc(r->config.memory, all, &memory, err);
		r->slots[i].pixels = memory;
		if (rc == RFL_OK)
			r->slots[i].labels = (int64_t *)(void *)(r->slots[i].pixels + pixels);
	}
	for (int i = 0; i < r->nworkers && rc == RFL_OK; i++) {
		r->workers[i].ring = r;
		if (r->set->ops->worker_new)
			rc = r->set->ops->worker_new(r->set, &r->workers[i].own, err);
	}
	return rc;
}

/* Signals are the main thread's: a worker must not run its handlers. */
static enum rfl_rc start_threads(struct ring *r, struct rfl_err *err)
{
	sigset_t all, old;
	int failed = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (r->nthreads < r->config.workers && !failed) {
		struct worker *w = &r->workers[r->nthreads];

		failed = pthread_create(&w->thread, NULL, worker_main, w);
		if (!failed)
			r->nthreads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return rfl_fail(err, RFL_ENOMEM, failed, "loader thread %d of %d: %s",
				r->nthreads + 1, r->config.workers, strerror(failed));
	return RFL_OK;
}

enum rfl_rc rfl_ring_open(struct rfl_samples *take_set, const struct rfl_ring_config *config,
			  struct rfl_data **ret, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;
	struct ring *r = NULL;
	uint64_t turn;

	if (config->batch < 1 || config->workers < 0 || config->ahead < 1)
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "loader: batch and batches ahead must be at least 1, workers at "
			      "least 0");
	else if (config->rank < 0 || config->rank >= config->world_size)
		rc = rfl_fail(err, RFL_EINVAL, 0, "loader: rank %d of %d processes", config->rank,
			      config->world_size);
	else if (!(r = calloc(1, sizeof(*r))))
		rc = rfl_fail(err, RFL_ENOMEM, 0, "loader: out of memory");
	if (rc) {
		rfl_samples_free(take_set);
		return rc;
	}
	r->base.ops = &ring_ops;
	r->set = take_set;
	r->config = *config;
	if (config->memory) {
		r->memory = *config->memory;
		r->config.memory = &r->memory;
	}
	turn = (uint64_t)config->batch * (uint64_t)config->world_size;
	r->per_epoch = take_set->n < turn ? take_set->n : take_set->n / turn * turn;
	r->nslots = config->workers ? config->ahead + 1 : 1;
	r->nworkers = config->workers ? config->workers : 1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->ready, NULL);
	pthread_cond_init(&r->room, NULL);
	rc = allocate(r, err);
	if (rc == RFL_OK)
		rc = start_threads(r, err);
	if (rc) {
		ring_free(&r->base);
		return rc;
	}
	*ret = &r->base;
	return RFL_OK;
}
