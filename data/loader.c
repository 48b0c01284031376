/*
 * loader.c - decodes a folder's images into batches by worker threads. Batches live in a ring;
 * samples are tickets that workers draw, so that all of them work on the same batch and the first
 * is ready as early as it can be. What a ticket becomes is a function of its number alone.
 */
#include "data/data.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "data/jpeg.h"
#include "data/random.h"
#include "data/transform.h"

#define MAX_FILE_BYTES ((off_t)256 << 20)

struct slot {
	float *images;
	int64_t *labels;
	int64_t filled; /* samples that are complete */
};

/* What one thread needs to decode; kept from image to image. */
struct worker {
	struct loader *loader;
	struct rfl_jpeg *jpeg;
	struct rfl_resizer resizer;
	struct rfl_image decoded, input;
	uint8_t *file;
	size_t file_cap;
	pthread_t thread;
};

struct loader {
	struct rfl_data base;
	struct rfl_dataset *set;
	struct rfl_loader_config config;
	size_t sample_floats;
	int nslots;
	struct slot *slots;
	int nworkers; /* structs; config.workers of them are threads */
	struct worker *workers;
	int nthreads; /* started */
	pthread_mutex_t lock;
	pthread_cond_t ready, room;
	/* under the lock: */
	int64_t next_ticket;
	int64_t consumed; /* batches given back */
	bool in_use;      /* batch `consumed` is with the caller */
	bool stop;
	bool *bad; /* per image: known to be undecodable */
	int64_t nbad;
	struct rfl_err error; /* what stops everything */
};

/* ---- one sample ---- */

static enum rfl_rc read_whole(struct worker *w, const char *path, size_t *len, struct rfl_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t size, got = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		goto failed;
	if (st.st_size > MAX_FILE_BYTES) {
		close(fd);
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: larger than 256 MiB", path);
	}
	size = (size_t)st.st_size;
	if (size > w->file_cap) {
		free(w->file);
		w->file = malloc(size);
		w->file_cap = w->file ? size : 0;
		if (!w->file) {
			close(fd);
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		}
	}
	while (got < size) {
		ssize_t n = read(fd, w->file + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			goto failed;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	close(fd);
	*len = got;
	return RFL_OK;
failed:
	rfl_fail(err, RFL_EIO, errno, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return RFL_EIO;
}

static enum rfl_rc decode_image(struct worker *w, size_t index, uint32_t epoch, float *out,
				struct rfl_err *err)
{
	const struct loader *l = w->loader;
	const struct rfl_dataset_image *image = &l->set->images[index];
	int size = l->config.image_size, width, height;
	struct rfl_random random;
	struct rfl_view view;
	char path[4096];
	size_t len = 0;
	enum rfl_rc rc;

	snprintf(path, sizeof(path), "%s/%s/%s", l->set->dir, l->set->classes[image->label],
		 image->name);
	rc = read_whole(w, path, &len, err);
	if (rc == RFL_OK)
		rc = rfl_jpeg_begin(w->jpeg, w->file, len, path, &width, &height, err);
	if (rc)
		return rc;
	if (l->config.augment) {
		rfl_random_init(&random, l->config.seed, epoch, index);
		rfl_view_random(width, height, size, &random, &view);
	} else {
		rfl_view_centre(width, height, size, &view);
	}
	rc = rfl_jpeg_decode(w->jpeg, &view.crop, &w->decoded, err);
	if (rc == RFL_OK)
		rc = rfl_image_reserve(&w->input, size, size, err);
	if (rc == RFL_OK)
		rc = rfl_resize(&w->resizer, &w->decoded, &view, RFL_LAYOUT_NHWC, w->input.pixels,
				err);
	if (rc == RFL_OK)
		rfl_normalise(&w->input, false, l->config.layout, out);
	return rc;
}

static bool known_bad(struct loader *l, size_t index)
{
	bool bad;

	pthread_mutex_lock(&l->lock);
	bad = l->bad[index];
	pthread_mutex_unlock(&l->lock);
	return bad;
}

static void mark_bad(struct loader *l, size_t index, const struct rfl_err *why)
{
	pthread_mutex_lock(&l->lock);
	if (!l->bad[index]) {
		l->bad[index] = true;
		l->nbad++;
		rfl_log(RFL_LOG_WARN, "%s: skipped", why->msg);
	}
	pthread_mutex_unlock(&l->lock);
}

/* The image of a ticket, or the next one in the folder's order that can be decoded. */
static enum rfl_rc load_sample(struct worker *w, int64_t ticket, float *out, int64_t *label,
			       struct rfl_err *err)
{
	struct loader *l = w->loader;
	uint64_t n = l->set->nimages;
	uint32_t epoch = (uint32_t)((uint64_t)ticket / n);
	uint64_t first = rfl_random_permute(l->config.seed, epoch, n, (uint64_t)ticket % n);

	for (uint64_t i = 0; i < n; i++) {
		size_t index = (size_t)((first + i) % n);
		struct rfl_err why = RFL_ERR_INIT;
		enum rfl_rc rc;

		if (known_bad(l, index))
			continue;
		rc = decode_image(w, index, epoch, out, &why);
		if (rc == RFL_OK) {
			*label = l->set->images[index].label;
			return RFL_OK;
		}
		if (rc != RFL_EFORMAT && rc != RFL_EIO)
			return rfl_fail(err, rc, why.native, "%s", why.msg);
		mark_bad(l, index, &why);
	}
	return rfl_fail(err, RFL_EFORMAT, 0, "%s: none of its %zu images can be read", l->set->dir,
			l->set->nimages);
}

/* ---- threads ---- */

/* Draw a ticket and fill its place. Called with the lock held, returns with it held. */
static void work_once(struct worker *w)
{
	struct loader *l = w->loader;
	int64_t ticket = l->next_ticket++, batch = l->config.batch, place = ticket % batch;
	struct slot *slot = &l->slots[(ticket / batch) % l->nslots];
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_rc rc;

	pthread_mutex_unlock(&l->lock);
	rc = load_sample(w, ticket, slot->images + (size_t)place * l->sample_floats,
			 &slot->labels[place], &err);
	pthread_mutex_lock(&l->lock);
	if (rc)
		rfl_fail(&l->error, rc, err.native, "%s", err.msg);
	slot->filled++;
	if (rc || slot->filled == batch)
		pthread_cond_signal(&l->ready);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct loader *l = w->loader;

	pthread_mutex_lock(&l->lock);
	while (!l->stop && l->error.rc == RFL_OK) {
		if (l->next_ticket < (l->consumed + l->nslots) * l->config.batch)
			work_once(w);
		else
			pthread_cond_wait(&l->room, &l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static enum rfl_rc loader_next(struct rfl_data *data, struct rfl_batch *ret, struct rfl_err *err)
{
	struct loader *l = (struct loader *)data;
	struct slot *slot;

	pthread_mutex_lock(&l->lock);
	if (l->in_use) {
		l->slots[l->consumed % l->nslots].filled = 0;
		l->consumed++;
		l->in_use = false;
		pthread_cond_broadcast(&l->room);
	}
	slot = &l->slots[l->consumed % l->nslots];
	while (slot->filled < l->config.batch && l->error.rc == RFL_OK) {
		if (l->nthreads == 0)
			work_once(&l->workers[0]);
		else
			pthread_cond_wait(&l->ready, &l->lock);
	}
	if (l->error.rc) {
		rfl_fail(err, l->error.rc, l->error.native, "%s", l->error.msg);
		pthread_mutex_unlock(&l->lock);
		return l->error.rc;
	}
	l->in_use = true;
	pthread_mutex_unlock(&l->lock);
	*ret = (struct rfl_batch){ .n = l->config.batch,
				   .images = slot->images,
				   .layout = l->config.layout,
				   .labels = slot->labels };
	return RFL_OK;
}

/* All tickets of the ring are drawn, and what was drawn is done. */
static bool is_resting(const struct loader *l)
{
	if (l->error.rc != RFL_OK || l->nthreads == 0)
		return true;
	for (int i = 0; i < l->nslots; i++)
		if (l->slots[i].filled < l->config.batch)
			return false;
	return true;
}

static void loader_rest(struct rfl_data *data)
{
	struct loader *l = (struct loader *)data;

	pthread_mutex_lock(&l->lock);
	while (!is_resting(l))
		pthread_cond_wait(&l->ready, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

static int64_t loader_skipped(struct rfl_data *data)
{
	struct loader *l = (struct loader *)data;
	int64_t n;

	pthread_mutex_lock(&l->lock);
	n = (int64_t)l->set->skipped + l->nbad;
	pthread_mutex_unlock(&l->lock);
	return n;
}

static void loader_free(struct rfl_data *data)
{
	struct loader *l = (struct loader *)data;

	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->room);
	pthread_mutex_unlock(&l->lock);
	for (int i = 0; i < l->nthreads; i++)
		pthread_join(l->workers[i].thread, NULL);
	for (int i = 0; l->workers && i < l->nworkers; i++) {
		rfl_jpeg_free(l->workers[i].jpeg);
		rfl_resizer_fini(&l->workers[i].resizer);
		rfl_image_fini(&l->workers[i].decoded);
		rfl_image_fini(&l->workers[i].input);
		free(l->workers[i].file);
	}
	for (int i = 0; l->slots && i < l->nslots; i++) {
		free(l->slots[i].images);
		free(l->slots[i].labels);
	}
	free(l->workers);
	free(l->slots);
	free(l->bad);
	pthread_cond_destroy(&l->room);
	pthread_cond_destroy(&l->ready);
	pthread_mutex_destroy(&l->lock);
	rfl_dataset_free(l->set);
	free(l);
}

static const struct rfl_data_ops loader_ops = {
	.next = loader_next,
	.rest = loader_rest,
	.skipped = loader_skipped,
	.free = loader_free,
};

/* ---- making it ---- */

static enum rfl_rc allocate(struct loader *l, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	l->bad = rfl_alloc_array(l->set->nimages, sizeof(*l->bad));
	l->slots = rfl_alloc_array((size_t)l->nslots, sizeof(*l->slots));
	l->workers = rfl_alloc_array((size_t)l->nworkers, sizeof(*l->workers));
	if (!l->bad || !l->slots || !l->workers)
		goto nomem;
	for (int i = 0; i < l->nslots; i++) {
		struct slot *s = &l->slots[i];

		s->images = rfl_alloc_array((size_t)l->config.batch,
					    l->sample_floats * sizeof(*s->images));
		s->labels = rfl_alloc_array((size_t)l->config.batch, sizeof(*s->labels));
		if (!s->images || !s->labels)
			goto nomem;
	}
	for (int i = 0; i < l->nworkers && rc == RFL_OK; i++) {
		l->workers[i].loader = l;
		rc = rfl_jpeg_new(&l->workers[i].jpeg, err);
	}
	return rc;
nomem:
	return rfl_fail(err, RFL_ENOMEM, 0, "%d batches of %lld images: out of memory", l->nslots,
			(long long)l->config.batch);
}

/* Signals are the main thread's: a worker must not run its handlers. */
static enum rfl_rc start_threads(struct loader *l, struct rfl_err *err)
{
	sigset_t all, old;
	int failed = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (l->nthreads < l->config.workers && !failed) {
		struct worker *w = &l->workers[l->nthreads];

		failed = pthread_create(&w->thread, NULL, worker_main, w);
		if (!failed)
			l->nthreads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (failed)
		return rfl_fail(err, RFL_ENOMEM, failed, "loader thread %d of %d: %s",
				l->nthreads + 1, l->config.workers, strerror(failed));
	return RFL_OK;
}

static enum rfl_rc check_config(const struct rfl_dataset *set,
				const struct rfl_loader_config *config, struct rfl_err *err)
{
	if (config->batch < 1 || config->image_size < 1 || config->workers < 0 || config->ahead < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"loader: batch, image size and batches ahead must be at least 1, "
				"workers at least 0");
	return rfl_dataset_check_classes(set, config->classes, err);
}

enum rfl_rc rfl_data_folder(struct rfl_dataset *take_set, const struct rfl_loader_config *config,
			    struct rfl_data **ret, struct rfl_err *err)
{
	enum rfl_rc rc = check_config(take_set, config, err);
	struct loader *l = rc ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		rfl_dataset_free(take_set);
		return rc ? rc : rfl_fail(err, RFL_ENOMEM, 0, "loader: out of memory");
	}
	l->base.ops = &loader_ops;
	l->set = take_set;
	l->config = *config;
	l->sample_floats = 3 * (size_t)config->image_size * (size_t)config->image_size;
	l->nslots = config->workers ? config->ahead + 1 : 1;
	l->nworkers = config->workers ? config->workers : 1;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->ready, NULL);
	pthread_cond_init(&l->room, NULL);
	rc = allocate(l, err);
	if (rc == RFL_OK)
		rc = start_threads(l, err);
	if (rc) {
		loader_free(&l->base);
		return rc;
	}
	*ret = &l->base;
	return RFL_OK;
}
