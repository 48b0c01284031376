/*
 * loader_rate.c - takes batches as fast as they come, and counts.
 */
#include "data/loader_rate.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"

static double cpu_s(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		return NAN;
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bring the files into the state that was asked for, and say how far that went. */
static enum rfl_rc prepare_pages(const struct rfl_loader_rate_config *c, double *in_page_cache,
				 int64_t *per_epoch, struct rfl_err *err)
{
	struct rfl_dataset *set = NULL;
	enum rfl_rc rc;

	*in_page_cache = NAN;
	*per_epoch = INT64_MAX;
	if (c->data.kind != RFL_DATA_IMAGEFOLDER)
		return RFL_OK;
	rc = rfl_dataset_open(c->data.dir, true, &set, err); /* the loader names */
	if (rc)
		return rc;
	if (c->cold)
		rfl_dataset_drop_pages(set);
	else
		rfl_dataset_warm_pages(set);
	*in_page_cache = rfl_dataset_resident(set);
	*per_epoch = (int64_t)set->nimages / c->batch;
	rfl_dataset_free(set);
	return RFL_OK;
}

static enum rfl_rc take(struct rfl_data *data, int64_t n, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (int64_t i = 0; i < n && rc == RFL_OK; i++) {
		struct rfl_batch batch;

		rc = rfl_data_next(data, &batch, err);
	}
	return rc;
}

/* Batches until the window is over. A cold one ends with the epoch: then the files are warm. */
static enum rfl_rc window(const struct rfl_loader_rate_config *c, struct rfl_data *data,
			  int64_t per_epoch, int64_t *batches, struct rfl_err *err)
{
	const double end = rfl_clock_s() + c->seconds;
	int64_t most = c->batches;
	enum rfl_rc rc = RFL_OK;

	if (c->cold && (most == 0 || most > per_epoch))
		most = per_epoch > 0 ? per_epoch : 1;
	*batches = 0;
	do {
		rc = take(data, 1, err);
		++*batches;
	} while (rc == RFL_OK && (most == 0 || *batches < most) &&
		 (c->batches > 0 || rfl_clock_s() < end));
	return rc;
}

static void conclude(const struct rfl_data_stats *stats, struct rfl_loader_rate *ret)
{
	const double images = (double)ret->images;

	ret->images_per_s = images / ret->wall_s;
	ret->images_per_thread_s = (double)stats->decoded / stats->decode_s;
	ret->images_per_cpu_s = images / ret->cpu_s;
	/* what is decoded beyond the last batch is in the one count and not in the other */
	ret->bytes_per_s =
		stats->read_bytes > 0
			? (double)stats->read_bytes / (double)stats->decoded * ret->images_per_s
			: (double)NAN;
	ret->queue_mean = stats->queue_mean;
	ret->bad = stats->bad;
}

enum rfl_rc rfl_loader_rate_measure(const struct rfl_loader_rate_config *config,
				    struct rfl_loader_rate *ret, struct rfl_err *err)
{
	struct rfl_loader_rate rate = { .images = 0 };
	struct rfl_data_stats stats;
	struct rfl_data *data = NULL;
	double begun, cpu;
	int64_t batches = 0, per_epoch = 0;
	enum rfl_rc rc = prepare_pages(config, &rate.in_page_cache, &per_epoch, err);

	if (rc == RFL_OK)
		rc = rfl_data_open_images(&config->data, &config->shape, config->batch,
					  config->layout, NULL, &data, err);
	/* what was made ahead before the clock ran is taken first; cold files stay cold only once
	 */
	if (rc == RFL_OK && !config->cold)
		rc = take(data, config->data.workers ? config->data.ahead + 1 : 1, err);
	if (rc)
		goto done;
	rfl_data_reset_stats(data);
	begun = rfl_clock_s();
	cpu = cpu_s();
	rc = window(config, data, per_epoch, &batches, err);
	if (rc)
		goto done;
	rate.wall_s = rfl_clock_s() - begun;
	rate.cpu_s = cpu_s() - cpu;
	rate.images = batches * config->batch;
	rfl_data_stats(data, &stats);
	conclude(&stats, &rate);
	*ret = rate;
done:
	rfl_data_free(data);
	return rc;
}
