/*
 * loader.c - loads the batches of a set with worker threads, reads texts from a file of tokens, or
 * provides one synthetic batch that never changes. Batches form a ring. Workers take a ticket for
 * each sample, so that all of them work on the same batch and the first batch is ready as early as
 * possible. A sample depends only on its ticket number.
 */
#include "data/parts.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/num.h"
#include "data/fill.h"
#include "machine/machine.h"

#define NAMED_BAD  100  /* damaged samples to name in the log */
#define BAD_IN_ROW 1000 /* consecutive damaged samples before giving up */

#define SMALL ((uint64_t)64 << 20) /* bytes allocated without checking the free memory */

#define NO_SAMPLE (-1) /* label of an empty place in a batch of a test set */

struct slot {
	uint8_t *pixels;
	int64_t *labels; /* after the pixels, in the same block */
	int64_t filled;  /* complete samples */
};

struct worker {
	struct rfl_data *data;
	void *own; /* state created by the set */
	pthread_t thread;
};

struct rfl_data {
	struct rfl_data_memory memory; /* alloc NULL: malloc */
	/* only for a synthetic batch: */
	struct rfl_batch fixed;
	void *inputs, *labels;
	struct rfl_token_file *tokens; /* fills the same memory for every batch; NULL: none */
	int64_t next_text, context;    /* number of its next batch, tokens of a sample */

	struct rfl_samples *set; /* NULL: synthetic, or tokens */
	struct rfl_data_spec spec;
	int64_t batch;
	enum rfl_layout layout;
	/* Samples of all ranks in an epoch: whole batches. The rest of a training set is omitted; a
	 * test set is filled up with empty places. */
	uint64_t per_epoch;
	int nslots;
	struct slot *slots;
	int nworkers; /* at least 1; spec.workers of them are threads */
	struct worker *workers;
	int nthreads; /* started */
	pthread_mutex_t lock;
	pthread_cond_t ready, room;
	/* protected by the lock: */
	int64_t next_ticket;
	int64_t consumed; /* batches returned by the caller */
	bool in_use;      /* the caller is using batch `consumed` */
	bool stop;
	bool *bad;            /* per sample: found damaged, and logged */
	int64_t nbad;         /* how many */
	struct rfl_err error; /* fatal */
	struct rfl_data_stats stats;
	int64_t asked;     /* calls of rfl_data_next() */
	int64_t ready_sum; /* batches ready at those calls */
	int64_t ready_min;
};

/* ---- memory: systems that overcommit kill the process that uses too much, so the free memory is
 * checked first ---- */

enum rfl_rc rfl_data__room(int64_t *ret, struct rfl_err *err)
{
	struct rfl_machine *m = NULL;
	enum rfl_rc rc = rfl_machine_new(&m, err);

	if (rc)
		return rc;
	*ret = m->memory_available_bytes - m->memory_available_bytes / 10;
	rfl_machine_free(m);
	if (*ret <= 0) /* unknown */
		*ret = INT64_MAX;
	return RFL_OK;
}

/* Check that the memory for batches of `bytes` each is free. @param name  name of the data */
static enum rfl_rc check_room(const char *name, int64_t batches, int64_t samples, size_t bytes,
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
			"%s: %lld batch%s of %lld samples need%s %s, but only %s of memory may be "
			"used (nine tenths of the free memory); use a smaller --batch-size%s",
			name, (long long)batches, batches == 1 ? "" : "es", (long long)samples,
			batches == 1 ? "s" : "", need, have,
			batches == 1 ? "" : " or --prefetch-factor");
}

/* Allocate memory aligned for vector instructions. */
static enum rfl_rc alloc(const struct rfl_data *d, size_t bytes, void **ret, struct rfl_err *err)
{
	const size_t line = 64;

	if (bytes > SIZE_MAX - line)
		return rfl_fail(err, RFL_ENOMEM, 0,
				"a batch exceeds the address space; use a smaller --batch-size");
	bytes = (bytes + line - 1) / line * line;
	if (d->memory.alloc)
		return d->memory.alloc(d->memory.ctx, bytes, ret, err);
	*ret = aligned_alloc(line, bytes);
	if (!*ret)
		return rfl_fail(err, RFL_ENOMEM, 0,
				"a batch of %zu bytes: out of memory; use a smaller --batch-size",
				bytes);
	memset(*ret, 0, bytes); /* map its pages before anything is timed */
	return RFL_OK;
}

static void release(const struct rfl_data *d, void *p)
{
	if (p && d->memory.alloc)
		d->memory.free(d->memory.ctx, p);
	else
		free(p);
}

/* Load the sample at an index of the set. If it is damaged, a training set has the next one in its
 * place, and a test set none: each of its samples counts once. Known damaged files are tried again:
 * the crop may determine whether a file can be used, and a sample must not depend on other threads.
 */
static enum rfl_rc load_near(struct worker *w, size_t first, uint32_t epoch,
			     struct rfl_sample *sample, struct rfl_err *err)
{
	struct rfl_data *d = w->data;
	struct rfl_samples *set = d->set;
	const size_t most = set->n < BAD_IN_ROW ? set->n : BAD_IN_ROW;
	int64_t nbad = 0;

	for (size_t i = 0; i < most && !(i > 0 && d->spec.test); i++) {
		size_t index = (first + i) % set->n;
		struct rfl_err why = RFL_ERR_INIT;
		struct rfl_random random;
		bool known;
		enum rfl_rc rc;

		/* A replacement occurs twice in this epoch. It looks different because it uses the
		 * random numbers of the replaced sample. */
		rfl_random_init(&random, d->spec.seed, epoch, first);
		rc = set->ops->load(set, w->own, index, &random, sample, &why);
		if (rc == RFL_OK)
			return RFL_OK;
		if (rc != RFL_EFORMAT && rc != RFL_EIO)
			return rfl_err_pass(err, &why);
		/* Another thread may have found this damage for a later epoch: the number that is
		 * read here includes it, so that the thread that reads the last damaged image of a
		 * set without any good one sees it. */
		pthread_mutex_lock(&d->lock);
		known = d->bad[index];
		d->bad[index] = true;
		nbad = d->nbad += !known;
		pthread_mutex_unlock(&d->lock);
		if (known)
			continue;
		rfl_log(nbad <= NAMED_BAD && !d->spec.named ? RFL_LOG_WARN : RFL_LOG_DEBUG,
			"%s: skipped", why.msg);
	}
	if (d->spec.test && nbad < (int64_t)set->n) {
		sample->label = NO_SAMPLE;
		return RFL_OK;
	}
	if (most == set->n || d->spec.test)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: none of its %zu images can be read",
				set->name, set->n);
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: %zu consecutive images cannot be read; see the log", set->name, most);
}

/* ---- threads ---- */

/* Take a ticket and load its sample. The caller holds the lock, before and after. */
static void work_once(struct worker *w)
{
	struct rfl_data *d = w->data;
	int64_t ticket = d->next_ticket++, batch = d->batch, place = ticket % batch;
	struct slot *slot = &d->slots[(ticket / batch) % d->nslots];
	struct rfl_sample sample = { .pixels = slot->pixels + (size_t)place * d->set->sample_bytes,
				     .layout = d->layout,
				     .label = NO_SAMPLE };
	/* tickets count the samples of this process; ranks take turns by batch */
	const int64_t turn = ticket / batch * d->spec.world_size + d->spec.rank;
	const uint64_t at = (uint64_t)(turn * batch + place);
	const uint32_t epoch = (uint32_t)(at / d->per_epoch);
	struct rfl_err err = RFL_ERR_INIT;
	uint64_t index;
	double begun;
	enum rfl_rc rc;

	pthread_mutex_unlock(&d->lock);
	begun = rfl_clock_s();
	index = at % d->per_epoch;
	if (!d->spec.test)
		index = rfl_random_permute(d->spec.seed, epoch, d->set->n, index);
	rc = index < d->set->n ? load_near(w, (size_t)index, epoch, &sample, &err) : RFL_OK;
	slot->labels[place] = sample.label;
	pthread_mutex_lock(&d->lock);
	d->stats.decode_s += rfl_clock_s() - begun;
	d->stats.decoded += sample.label != NO_SAMPLE;
	d->stats.read_bytes += sample.read_bytes;
	if (rc)
		rfl_err_pass(&d->error, &err);
	slot->filled++;
	if (rc || slot->filled == batch)
		pthread_cond_signal(&d->ready);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct rfl_data *d = w->data;

	pthread_mutex_lock(&d->lock);
	while (!d->stop && d->error.rc == RFL_OK) {
		if (d->next_ticket < (d->consumed + d->nslots) * d->batch)
			work_once(w);
		else
			pthread_cond_wait(&d->room, &d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* Close the gaps of a batch. @return its samples */
static int64_t pack(const struct rfl_data *d, struct slot *slot)
{
	const size_t size = d->set->sample_bytes;
	int64_t n = 0;

	for (int64_t i = 0; i < d->batch; i++) {
		if (slot->labels[i] == NO_SAMPLE)
			continue;
		if (n < i)
			memcpy(slot->pixels + (size_t)n * size, slot->pixels + (size_t)i * size,
			       size);
		slot->labels[n++] = slot->labels[i];
	}
	return n;
}

int64_t rfl_data_samples(const struct rfl_data *d)
{
	return d->set ? (int64_t)d->set->n : d->tokens ? d->tokens->tokens : 0;
}

uint64_t rfl_data_digest(const struct rfl_data *d)
{
	if (d->tokens)
		return rfl_data__digest(0, d->tokens->data, d->tokens->bytes);
	return d->set ? d->set->digest : 0;
}

int64_t rfl_data_epoch_batches(const struct rfl_data *d)
{
	return d->set ? (int64_t)d->per_epoch / (d->batch * d->spec.world_size) : 0;
}

/* Ranks take turns by batch. */
static void next_texts(struct rfl_data *d)
{
	const int64_t batch = d->fixed.n, context = d->context;
	const int64_t turn = d->next_text++ * d->spec.world_size + d->spec.rank;
	int64_t *tokens = d->inputs, *labels = d->labels;

	for (int64_t i = 0; i < batch; i++)
		rfl_token_file_sample(d->tokens, d->spec.seed, (uint64_t)(turn * batch + i),
				      tokens + i * context, labels + i * context);
}

enum rfl_rc rfl_data_next(struct rfl_data *d, struct rfl_batch *ret, struct rfl_err *err)
{
	struct slot *slot;
	int64_t ready = 0;
	enum rfl_rc rc;

	if (d->tokens)
		next_texts(d);
	if (!d->set) {
		*ret = d->fixed;
		return RFL_OK;
	}
	pthread_mutex_lock(&d->lock);
	if (d->in_use) {
		d->slots[d->consumed % d->nslots].filled = 0;
		d->consumed++;
		d->in_use = false;
		pthread_cond_broadcast(&d->room);
	}
	while (ready < d->nslots && d->slots[(d->consumed + ready) % d->nslots].filled == d->batch)
		ready++;
	if (d->asked++ == 0 || ready < d->ready_min)
		d->ready_min = ready;
	d->ready_sum += ready;

	slot = &d->slots[d->consumed % d->nslots];
	while (slot->filled < d->batch && d->error.rc == RFL_OK) {
		if (d->nthreads == 0)
			work_once(&d->workers[0]);
		else
			pthread_cond_wait(&d->ready, &d->lock);
	}
	rc = d->error.rc;
	d->in_use = rc == RFL_OK;
	if (rc)
		rfl_err_pass(err, &d->error);
	else
		*ret = (struct rfl_batch){ .n = pack(d, slot),
					   .kind = RFL_INPUT_PIXELS,
					   .pixels = slot->pixels,
					   .layout = d->layout,
					   .scale = d->set->scale,
					   .labels = slot->labels };
	pthread_mutex_unlock(&d->lock);
	return rc;
}

void rfl_data_rest(struct rfl_data *d)
{
	if (!d->set || d->nthreads == 0)
		return;
	pthread_mutex_lock(&d->lock);
	for (int i = 0; i < d->nslots && d->error.rc == RFL_OK; i++)
		while (d->slots[i].filled < d->batch && d->error.rc == RFL_OK)
			pthread_cond_wait(&d->ready, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

/* ---- statistics ---- */

struct rfl_data_stats rfl_data_stats(struct rfl_data *d)
{
	struct rfl_data_stats ret = { .decode_s = NAN, .queue_mean = NAN, .queue_min = NAN };

	if (!d->set)
		return ret;
	pthread_mutex_lock(&d->lock);
	ret = d->stats;
	ret.bad = d->nbad;
	ret.skipped = d->set->skipped + d->nbad;
	ret.queue_mean = ret.queue_min = (double)NAN;
	if (d->nthreads > 0 && d->asked) {
		ret.queue_mean = (double)d->ready_sum / (double)d->asked;
		ret.queue_min = (double)d->ready_min;
	}
	pthread_mutex_unlock(&d->lock);
	return ret;
}

void rfl_data_reset_stats(struct rfl_data *d)
{
	if (!d->set)
		return;
	pthread_mutex_lock(&d->lock);
	d->stats = (struct rfl_data_stats){ .decoded = 0 };
	d->asked = d->ready_sum = d->ready_min = 0;
	pthread_mutex_unlock(&d->lock);
}

void rfl_data_free(struct rfl_data *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_broadcast(&d->room);
	pthread_mutex_unlock(&d->lock);
	for (int i = 0; i < d->nthreads; i++)
		pthread_join(d->workers[i].thread, NULL);
	if (d->nbad > NAMED_BAD && !d->spec.named)
		rfl_log(RFL_LOG_WARN,
			"%s: %lld images could not be read; the first %d are named above",
			d->set->name, (long long)d->nbad, NAMED_BAD);
	for (int i = 0; d->workers && i < d->nworkers; i++)
		if (d->set->ops->worker_free)
			d->set->ops->worker_free(d->workers[i].own);
	for (int i = 0; d->slots && i < d->nslots; i++)
		release(d, d->slots[i].pixels);
	release(d, d->inputs);
	release(d, d->labels);
	rfl_token_file_free(d->tokens);
	free(d->workers);
	free(d->slots);
	free(d->bad);
	pthread_cond_destroy(&d->room);
	pthread_cond_destroy(&d->ready);
	pthread_mutex_destroy(&d->lock);
	if (d->set)
		d->set->ops->free(d->set);
	free(d);
}

struct rfl_data *rfl_data__new(const struct rfl_data_spec *spec, int64_t batch,
			       enum rfl_layout layout, const struct rfl_data_memory *memory)
{
	struct rfl_data *d = rfl_alloc_array(1, sizeof(*d));

	d->spec = *spec;
	d->spec.world_size = spec->world_size ? spec->world_size : 1;
	d->batch = batch;
	d->layout = layout;
	if (memory)
		d->memory = *memory;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->ready, NULL);
	pthread_cond_init(&d->room, NULL);
	return d;
}

static enum rfl_rc allocate(struct rfl_data *d, struct rfl_err *err)
{
	const size_t batch = (size_t)d->batch, align = sizeof(int64_t);
	size_t pixels, all; /* bytes of a batch: its pixels, then its labels */
	enum rfl_rc rc;

	d->bad = rfl_alloc_array(d->set->n, sizeof(*d->bad));
	d->slots = rfl_alloc_array((size_t)d->nslots, sizeof(*d->slots));
	d->workers = rfl_alloc_array((size_t)d->nworkers, sizeof(*d->workers));
	if (d->set->sample_bytes > SIZE_MAX / 2 / batch - align - sizeof(int64_t))
		return rfl_fail(
			err, RFL_ENOMEM, 0,
			"%s: a batch of %lld exceeds the address space; reduce --batch-size",
			d->set->name, (long long)d->batch);
	pixels = (batch * d->set->sample_bytes + align - 1) / align * align;
	all = pixels + batch * sizeof(int64_t);
	rc = check_room(d->set->name, d->nslots, d->batch, all, err);
	for (int i = 0; i < d->nslots && rc == RFL_OK; i++) {
		void *memory = NULL;

		rc = alloc(d, all, &memory, err);
		d->slots[i].pixels = memory;
		if (rc == RFL_OK)
			d->slots[i].labels = (int64_t *)(void *)(d->slots[i].pixels + pixels);
	}
	for (int i = 0; i < d->nworkers && rc == RFL_OK; i++) {
		d->workers[i].data = d;
		if (d->set->ops->worker_new)
			rc = d->set->ops->worker_new(d->set, &d->workers[i].own, err);
	}
	return rc;
}

enum rfl_rc rfl_data__load(struct rfl_data *d, struct rfl_samples *take_set, struct rfl_err *err)
{
	const struct rfl_data_spec *spec = &d->spec;
	const uint64_t turn = (uint64_t)d->batch * (uint64_t)spec->world_size;
	sigset_t every, old;
	enum rfl_rc rc;
	int failed = 0;

	d->set = take_set;
	if (d->batch < 1 || spec->ahead < 1 || spec->workers < 0 || spec->first_batch < 0 ||
	    (spec->test && spec->world_size > 1))
		return rfl_fail(err, RFL_EINVAL, 0,
				"loader: batch and batches ahead must be at least 1, workers and "
				"first batch at least 0, and only one process reads a test set");
	if (spec->rank < 0 || spec->rank >= spec->world_size)
		return rfl_fail(err, RFL_EINVAL, 0, "loader: rank %d is not valid for %d processes",
				spec->rank, spec->world_size);
	if (spec->test)
		d->per_epoch = (take_set->n + turn - 1) / turn * turn;
	else
		d->per_epoch = take_set->n < turn ? take_set->n : take_set->n / turn * turn;
	d->consumed = spec->first_batch;
	d->next_ticket = spec->first_batch * d->batch;
	d->nslots = spec->workers ? spec->ahead + 1 : 1;
	d->nworkers = spec->workers ? spec->workers : 1;
	rc = allocate(d, err);
	if (rc != RFL_OK)
		return rc;

	/* signal handlers must run in the main thread only */
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &old);
	while (d->nthreads < spec->workers && !failed) {
		struct worker *w = &d->workers[d->nthreads];

		failed = pthread_create(&w->thread, NULL, worker_main, w);
		d->nthreads += !failed;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return failed ? rfl_fail(err, RFL_EFAILED, failed,
				 "cannot start loader thread %d of %d: %s; use fewer --workers, or "
				 "raise the limit on processes (ulimit -u)",
				 d->nthreads + 1, spec->workers, strerror(failed))
		      : RFL_OK;
}

static enum rfl_rc reserve(struct rfl_data *d, int64_t n, int64_t of_each, size_t size, void **ret,
			   struct rfl_err *err)
{
	int64_t bytes;
	enum rfl_rc rc;

	if (!rfl_num_mul(n, of_each, &bytes) || !rfl_num_mul(bytes, (int64_t)size, &bytes))
		return rfl_fail(err, RFL_ENOMEM, 0, "a batch of %lld: out of memory", (long long)n);
	rc = check_room("the batch", 1, n, (size_t)bytes, err);
	return rc ? rc : alloc(d, (size_t)bytes, ret, err);
}

enum rfl_rc rfl_data__synthetic(struct rfl_data *d, const struct rfl_net *net, int threads,
				struct rfl_err *err)
{
	const struct rfl_shape *first_shape = &net->nodes[0].shape;
	/* several inputs lie one after the other, and are filled like the channels of an image */
	const struct rfl_shape inputs = {
		.ndim = 3, .dim = { net->ninputs, first_shape->dim[0], first_shape->dim[1] }
	};
	const struct rfl_shape *shape = net->ninputs > 1 ? &inputs : first_shape;
	const bool tokens = net->nodes[0].dtype == RFL_DTYPE_I64;
	const int64_t each = rfl_shape_numel(shape);
	/* rows of logits per sample, each with a label */
	const int64_t rows = rfl_shape_numel(&net->nodes[net->output].shape) / net->classes;
	const int64_t batch = d->batch, first = d->spec.rank * batch;
	/* these determine the contents of the batch and thus its id */
	const int64_t facts[] = {
		first, batch, (int64_t)d->layout, net->classes, rows, shape->ndim
	};
	enum rfl_rc rc;
	uint64_t id;

	if ((rc = reserve(d, batch, each, tokens ? sizeof(int64_t) : sizeof(float), &d->inputs,
			  err)) ||
	    (rc = reserve(d, batch, rows, sizeof(int64_t), &d->labels, err)))
		return rc;
	rfl_fill_labels(first * rows, batch * rows, net->classes, d->labels);
	d->fixed = (struct rfl_batch){ .n = batch, .layout = d->layout, .labels = d->labels };
	if (d->spec.kind == RFL_DATA_SYNTHETIC) { /* the device may keep it */
		id = rfl_hash64(0, facts, sizeof(facts));
		id = rfl_hash64(id, shape->dim, (size_t)shape->ndim * sizeof(shape->dim[0]));
		d->fixed.id = id ? id : 1;
	}
	if (!tokens) {
		d->fixed.images = d->inputs;
		return rfl_fill_images(shape, first, batch, d->layout, threads, d->inputs, err);
	}
	rfl_fill_tokens(first * each, batch * each, net->classes, d->inputs);
	d->fixed.kind = RFL_INPUT_TOKENS;
	d->fixed.tokens = d->inputs;
	return RFL_OK;
}

enum rfl_rc rfl_data__texts(struct rfl_data *d, const struct rfl_net *net, struct rfl_err *err)
{
	enum rfl_rc rc;

	d->context = net->nodes[0].shape.dim[0];
	if ((rc = rfl_token_file_open(d->spec.dir, net, true, &d->tokens, err)) ||
	    (rc = reserve(d, d->batch, d->context, sizeof(int64_t), &d->inputs, err)) ||
	    (rc = reserve(d, d->batch, d->context, sizeof(int64_t), &d->labels, err)))
		return rc;
	d->fixed = (struct rfl_batch){
		.n = d->batch, .kind = RFL_INPUT_TOKENS, .tokens = d->inputs, .labels = d->labels
	};
	return RFL_OK;
}
