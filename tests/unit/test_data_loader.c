/*
 * Batches of a directory of images: the same whatever the number of threads, damaged files left out
 * and named.
 */
#define _GNU_SOURCE /* pthread_setattr_default_np() */
#include "tests/unit/image_fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "complexity/zoo.h"
#include "data/data.h"
#include "data/fill.h"
#include "data/jpeg.h"
#include "machine/machine.h"

#define SIZE     16
#define PIXELS   (3 * SIZE * SIZE)
#define NBATCHES 12

static struct rfl_buf logged; /* lines of the log, newline-terminated */

static void keep_line(enum rfl_log_level level, const char *line, void *ctx)
{
	(void)level, (void)ctx;
	rfl_buf_printf(&logged, "%s\n", line);
}

static int set_up(void **state)
{
	rfl_buf_init(&logged, 0);
	rfl_log_set(keep_line, NULL, RFL_LOG_WARN);
	return tmpdir_make(state);
}

static int tear_down(void **state)
{
	rfl_log_set(NULL, NULL, RFL_LOG_ERROR);
	rfl_buf_fini(&logged);
	return tmpdir_remove(state);
}

static void need_jpeg(void)
{
	struct rfl_jpeg *j = NULL;

	if (rfl_jpeg_new(&j, NULL) != RFL_OK)
		skip();
	rfl_jpeg_free(j);
}

struct config {
	struct rfl_data_spec spec;
	struct rfl_data_shape shape;
	int64_t batch;
	enum rfl_layout layout;
};

static struct config config_of(int workers)
{
	return (struct config){
		.spec = { .kind = RFL_DATA_IMAGEFOLDER,
			  .workers = workers,
			  .ahead = 2,
			  .augment = true,
			  .seed = 17 },
		.shape = { "net", 3, SIZE, SIZE, 1000 },
		.batch = 4,
		.layout = RFL_LAYOUT_NHWC,
	};
}

static struct rfl_data *open_loader(const char *dir, const struct config *config)
{
	struct rfl_data_spec spec = config->spec;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;

	spec.dir = dir;
	assert_ok(rfl_data_open_images(&spec, &config->shape, config->batch, config->layout, NULL,
				       &data, &err),
		  &err);
	return data;
}

/* Take nbatches batches; images and labels one after the other. */
static void take(const char *dir, const struct config *config, int nbatches, uint8_t *images,
		 int64_t *labels)
{
	struct rfl_data *data = open_loader(dir, config);
	struct rfl_err err = RFL_ERR_INIT;

	for (int b = 0; b < nbatches; b++) {
		struct rfl_batch batch;

		assert_ok(rfl_data_next(data, &batch, &err), &err);
		assert_int_equal(batch.n, config->batch);
		assert_int_equal(batch.layout, config->layout);
		assert_int_equal(batch.kind, RFL_INPUT_PIXELS);
		assert_int_equal((uintptr_t)batch.pixels % 64, 0);
		memcpy(images + (size_t)b * 4 * PIXELS, batch.pixels, (size_t)4 * PIXELS);
		memcpy(labels + (size_t)b * 4, batch.labels, 4 * sizeof(int64_t));
	}
	rfl_data_free(data);
}

static void batches_do_not_depend_on_threads(void **state)
{
	static uint8_t want[NBATCHES * 4 * PIXELS], got[NBATCHES * 4 * PIXELS];
	static const int workers[] = { 1, 2, 8 };
	int64_t want_labels[NBATCHES * 4], got_labels[NBATCHES * 4];
	struct config config = config_of(0);

	need_jpeg();
	make_folder(*state);
	take(*state, &config, NBATCHES, want, want_labels);
	for (size_t i = 0; i < RFL_ARRAY_LEN(workers); i++) {
		config = config_of(workers[i]);
		config.spec.ahead = 1 + (int)i;
		memset(got, 0, sizeof(got));
		take(*state, &config, NBATCHES, got, got_labels);
		assert_memory_equal(got_labels, want_labels, sizeof(want_labels));
		assert_memory_equal(got, want, sizeof(want));
	}
	config.spec.seed = 18;
	take(*state, &config, NBATCHES, got, got_labels);
	assert_true(memcmp(got, want, sizeof(want)) != 0);
}

/* After a rest nothing is read any more: the directory may go. */
static void a_resting_loader_reads_nothing(void **state)
{
	const struct timespec soon = { .tv_nsec = 20000000 };
	struct config config = config_of(2);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_batch batch;
	struct rfl_data *data;

	need_jpeg();
	make_folder(*state);
	config.spec.ahead = 50;
	data = open_loader(*state, &config);
	assert_ok(rfl_data_next(data, &batch, &err), &err);
	rfl_data_rest(data);
	assert_int_equal(rename(tmp_path(*state, "train"), tmp_path(*state, "gone")), 0);
	(void)nanosleep(&soon, NULL);
	assert_int_equal(rfl_data_stats(data).skipped, 0);
	rfl_data_rest(data); /* again: it does */
	rfl_data_free(data);
	assert_int_equal(rename(tmp_path(*state, "gone"), tmp_path(*state, "train")), 0);

	config = config_of(0); /* without threads there is nothing to wait for */
	data = open_loader(*state, &config);
	rfl_data_rest(data);
	rfl_data_free(data);
}

/* No image twice in an epoch of two whole batches of the nine images; another order in the next;
 * and never the same crop. */
static void epochs_leave_the_last_images_out(void **state)
{
	static uint8_t images[8 * 4 * PIXELS];
	int64_t labels[8 * 4];
	struct config config = config_of(2);
	int repeated = 0;

	need_jpeg();
	make_folder(*state);
	take(*state, &config, 8, images, labels); /* 32 samples: four epochs */
	for (int epoch = 0; epoch < 4; epoch++) {
		int count[3] = { 0 };

		for (int i = 0; i < 8; i++)
			count[labels[epoch * 8 + i]]++;
		assert_true(count[0] <= 3 && count[1] <= 3 && count[2] <= 3);
	}
	for (int a = 0; a < 32; a++) {
		for (int b = 0; b < a; b++)
			repeated += memcmp(images + (size_t)a * PIXELS, images + (size_t)b * PIXELS,
					   PIXELS) == 0;
	}
	assert_int_equal(repeated, 0);
}

/* With fewer images than a batch, epochs follow each other without a gap. */
static void few_images_fill_a_batch(void **state)
{
	struct config config = config_of(2);
	struct rfl_err err = RFL_ERR_INIT;
	int count[3] = { 0 };
	struct rfl_batch batch;
	struct rfl_data *data;

	need_jpeg();
	make_folder(*state);
	config.batch = 18;
	data = open_loader(*state, &config);
	assert_ok(rfl_data_next(data, &batch, &err), &err);
	for (int i = 0; i < 18; i++)
		count[batch.labels[i]]++;
	assert_true(count[0] == 6 && count[1] == 6 && count[2] == 6);
	rfl_data_free(data);
}

/* Three processes: what they see of an epoch is what one sees, each a part of it. */
static void ranks_share_each_epoch(void **state)
{
	static uint8_t all[6 * 4 * PIXELS], part[2 * 4 * PIXELS];
	int64_t all_labels[6 * 4], labels[2 * 4];
	struct config config = config_of(2);

	need_jpeg();
	make_folder(*state);
	for (int i = 0; i < 15; i++) {
		char name[32];

		snprintf(name, sizeof(name), "more%d.jpg", i);
		put_image(*state, "bee", name, i % 2 ? "jpeg_420.jpg" : "jpeg_wide.jpg", SIZE_MAX);
	}
	take(*state, &config, 6, all, all_labels);
	config.spec.world_size = 3;
	for (int rank = 0; rank < 3; rank++) {
		config.spec.rank = rank;
		take(*state, &config, 2, part, labels);
		for (int b = 0; b < 2; b++) {
			assert_memory_equal(part + (size_t)b * 4 * PIXELS,
					    all + (size_t)(3 * b + rank) * 4 * PIXELS,
					    (size_t)4 * PIXELS);
			assert_memory_equal(labels + (size_t)b * 4, all_labels + (3 * b + rank) * 4,
					    4 * sizeof(int64_t));
		}
	}
}

static void the_cache_gives_the_same_batches(void **state)
{
	static uint8_t want[NBATCHES * 4 * PIXELS], got[NBATCHES * 4 * PIXELS];
	int64_t want_labels[NBATCHES * 4], labels[NBATCHES * 4];
	struct config config = config_of(2);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;
	struct rfl_data_spec spec;

	need_jpeg();
	make_folder(*state);
	put_image(*state, "bee", "cut.jpg", "jpeg_444.jpg", 4000);
	put_image(*state, "Ant", "empty.jpeg", "jpeg_444.jpg", 0);
	take(*state, &config, NBATCHES, want, want_labels);
	config.spec.kind = RFL_DATA_IMAGEFOLDER_CACHED;
	take(*state, &config, NBATCHES, got, labels);
	assert_memory_equal(got, want, sizeof(want));
	assert_memory_equal(labels, want_labels, sizeof(labels));

	spec = config.spec;
	spec.dir = *state;
	spec.cache_bytes = 4096;
	assert_int_equal(
		rfl_data_open_images(&spec, &config.shape, 4, RFL_LAYOUT_NHWC, NULL, &data, &err),
		RFL_ENOMEM);
	assert_says(&err, ": 11 images need ");
	assert_says(&err, "but the cache is limited to 4 KiB; use imagefolder");
	assert_null(data);
}

/* An allocation that is always refused. */
static enum rfl_rc count_request(void *ctx, size_t bytes, void **ret, struct rfl_err *err)
{
	(void)bytes, (void)ret;
	++*(int *)ctx;
	return rfl_fail(err, RFL_ENOMEM, 0, "memory was asked for");
}

/* Each batch would fit, all of the ring do not: a system that overcommits would give them, and end
 * the process when they are filled. */
static void a_ring_larger_than_memory_is_refused(void **state)
{
	int requests = 0;
	const struct rfl_data_memory memory = { .alloc = count_request, .ctx = &requests };
	struct config config = config_of(2);
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;
	int64_t half;

	need_jpeg();
	make_folder(*state);
	assert_ok(rfl_machine_new(&m, &err), &err);
	if (m->memory_available_bytes <= 0)
		skip(); /* the system does not say */
	half = m->memory_available_bytes / 2 / PIXELS;
	rfl_machine_free(m);
	config.spec.dir = *state;
	assert_int_equal(rfl_data_open_images(&config.spec, &config.shape, half, RFL_LAYOUT_NHWC,
					      &memory, &data, &err),
			 RFL_ENOMEM);
	assert_null(data);
	assert_int_equal(requests, 0);
	assert_says(&err, ": 3 batches of ");
	assert_says(&err, "of memory may be used (nine tenths of the free memory); use a smaller "
			  "--batch-size or --prefetch-factor");

	config.spec.workers = 0; /* one batch, and room for it: now its memory is asked for */
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_int_equal(rfl_data_open_images(&config.spec, &config.shape, half, RFL_LAYOUT_NHWC,
					      &memory, &data, &err),
			 RFL_ENOMEM);
	assert_int_equal(requests, 1);
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_int_equal(rfl_data_open_images(&config.spec, &config.shape, 4 * half,
					      RFL_LAYOUT_NHWC, &memory, &data, &err),
			 RFL_ENOMEM);
	assert_int_equal(requests, 1);
	assert_says(&err, ": 1 batch of ");
	assert_says(&err, "the free memory); use a smaller --batch-size");
}

static void layouts_hold_the_same_pixels(void **state)
{
	static uint8_t nhwc[4 * PIXELS], nchw[4 * PIXELS];
	struct config config = config_of(1);
	int64_t labels[4];

	need_jpeg();
	make_folder(*state);
	config.spec.augment = false;
	take(*state, &config, 1, nhwc, labels);
	config.layout = RFL_LAYOUT_NCHW;
	take(*state, &config, 1, nchw, labels);
	for (int s = 0; s < 4; s++) {
		for (int p = 0; p < SIZE * SIZE; p++) {
			for (int c = 0; c < 3; c++)
				assert_true(nhwc[s * PIXELS + 3 * p + c] ==
					    nchw[s * PIXELS + c * SIZE * SIZE + p]);
		}
	}
}

static void damaged_files_are_named_and_skipped(void **state)
{
	static uint8_t want[NBATCHES * 4 * PIXELS], got[NBATCHES * 4 * PIXELS];
	int64_t want_labels[NBATCHES * 4], labels[NBATCHES * 4];
	struct config config = config_of(2);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data;
	struct rfl_batch batch;

	need_jpeg();
	make_folder(*state);
	put_image(*state, "bee", "cut.jpg", "jpeg_444.jpg", 4000);
	put_image(*state, "bee", "picture.jpg", "resize_37x29.ppm", SIZE_MAX);
	put_image(*state, "Ant", "empty.jpeg", "jpeg_444.jpg", 0);
	put_image(*state, "Ant", "notes.txt", "resize_37x29.ppm", 10);
	data = open_loader(*state, &config);
	for (int i = 0; i < 40; i++)
		assert_ok(rfl_data_next(data, &batch, &err), &err);
	assert_int_equal(rfl_data_stats(data).skipped, 4);
	rfl_data_free(data);
	assert_non_null(strstr(rfl_buf_str(&logged), "bee/cut.jpg: truncated"));
	assert_non_null(
		strstr(rfl_buf_str(&logged), "bee/picture.jpg: not a JPEG file but a PPM file"));
	assert_non_null(strstr(rfl_buf_str(&logged), "Ant/empty.jpeg: the file is empty"));
	assert_non_null(strstr(rfl_buf_str(&logged), "Ant/notes.txt: skipped: not named"));
	assert_null(strstr(strstr(rfl_buf_str(&logged), "cut.jpg") + 1, "cut.jpg")); /* once */

	take(*state, &config, NBATCHES, want, want_labels);
	config = config_of(8);
	take(*state, &config, NBATCHES, got, labels);
	assert_memory_equal(got, want, sizeof(want));
	assert_memory_equal(labels, want_labels, sizeof(labels));
}

/* Of a test set, each readable image once: a damaged one is left out, not replaced. */
static void damaged_test_images_are_left_out(void **state)
{
	static const int workers[] = { 0, 3 };
	static uint8_t whole[9 * PIXELS], part[9 * PIXELS];

	need_jpeg();
	make_folder(*state);
	assert_int_equal(rename(tmp_path(*state, "train"), tmp_path(*state, "val")), 0);
	make_folder(*state); /* classes Ant, bee, zebra of three images each, in this order */
	for (size_t i = 0; i <= RFL_ARRAY_LEN(workers); i++) {
		struct config config = config_of(i ? workers[i - 1] : 0);
		uint8_t *out = i ? part : whole;
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_data *data;
		int64_t n = 0;

		if (i == 1) { /* the second batch of two is lost, and half of the third */
			assert_int_equal(truncate(tmp_path(*state, "val/Ant/8.JPEG"), 0), 0);
			assert_int_equal(truncate(tmp_path(*state, "val/bee/1.jpg"), 1000), 0);
			assert_int_equal(truncate(tmp_path(*state, "val/bee/4.JPEG"), 0), 0);
		}
		config.spec.test = true;
		config.batch = 2;
		data = open_loader(*state, &config);
		assert_int_equal(rfl_data_samples(data), 9);
		assert_int_equal(rfl_data_epoch_batches(data), 5);
		for (int b = 0; b < 10; b++) { /* two epochs */
			static const int64_t sizes[] = { 2, 0, 1, 2, 1 };
			static const int64_t classes[] = { 0, 0, 1, 2, 2, 2 };
			struct rfl_batch batch;

			assert_ok(rfl_data_next(data, &batch, &err), &err);
			assert_int_equal(batch.n, i ? sizes[b % 5] : b % 5 < 4 ? 2 : 1);
			for (int64_t s = 0; s < batch.n; s++, n++) {
				memcpy(out + n % (i ? 6 : 9) * PIXELS, batch.pixels + s * PIXELS,
				       PIXELS);
				assert_int_equal(batch.labels[s],
						 i ? classes[n % 6] : n % 9 / 3);
			}
		}
		assert_int_equal(n, i ? 12 : 18);
		assert_int_equal(rfl_data_stats(data).skipped, i ? 3 : 0);
		rfl_data_free(data);
		if (i) {
			assert_memory_equal(part, whole, (size_t)2 * PIXELS);
			assert_memory_equal(part + 2 * PIXELS, whole + 5 * PIXELS,
					    (size_t)4 * PIXELS);
		}
	}
}

static int count_of(const char *text, const char *what)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* A hundred names, then only the number; no names of a directory that was named before. */
static void names_come_to_an_end(void **state)
{
	struct config config = config_of(2);
	struct rfl_err err = RFL_ERR_INIT;

	need_jpeg();
	rfl_log_set(keep_line, NULL, RFL_LOG_INFO);
	put_image(*state, "a", "good.jpg", "jpeg_420.jpg", SIZE_MAX);
	put_image(*state, "a", "list.txt", "jpeg_420.jpg", 0);
	for (int i = 0; i < 105; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%d.jpg", i);
		put_image(*state, "b", name, "jpeg_420.jpg", 0);
	}
	config.batch = 106;
	for (int again = 0; again < 2; again++) {
		struct rfl_data *data;
		struct rfl_batch batch;

		config.spec.named = again;
		data = open_loader(*state, &config);
		assert_ok(rfl_data_next(data, &batch, &err), &err);
		assert_int_equal(rfl_data_stats(data).skipped, 106);
		rfl_data_free(data);
		assert_int_equal(count_of(rfl_buf_str(&logged), "the file is empty: skipped"), 100);
		assert_int_equal(count_of(rfl_buf_str(&logged), "list.txt: skipped: not named"), 1);
		assert_int_equal(count_of(rfl_buf_str(&logged),
					  "train: 105 images could not be read; the first 100"),
				 1);
	}
}

static void nothing_readable_is_an_error(void **state)
{
	static const int workers[] = { 0, 3, 0, 3 };

	need_jpeg();
	put_image(*state, "a", "1.jpg", "resize_37x29.ppm", SIZE_MAX);
	put_image(*state, "a", "2.jpg", "jpeg_420.jpg", 3000);
	assert_int_equal(symlink("train", tmp_path(*state, "val")), 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(workers); i++) {
		struct config config = config_of(workers[i]);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_data *data;
		struct rfl_batch batch;

		config.spec.test = i >= 2;
		data = open_loader(*state, &config);
		assert_int_equal(rfl_data_next(data, &batch, &err), RFL_EFORMAT);
		assert_says(&err, "none of its 2 images can be read");
		rfl_data_free(data);
	}
}

/* Closed while the workers are in the middle of everything. */
static void closing_early_is_clean(void **state)
{
	make_folder(*state);
	need_jpeg();
	for (int i = 0; i < 20; i++) {
		struct config config = config_of(4);

		config.spec.ahead = 6;
		rfl_data_free(open_loader(*state, &config));
	}
}

/* No thread can start: its stack exceeds the address space. That is no lack of memory, so a smaller
 * batch would not help. Weights are then filled by the calling thread. */
static void threads_that_cannot_start_are_reported(void **state)
{
	const struct rfl_fill_rule rule = { RFL_FILL_SCALED, 1.0F };
	struct config config = config_of(2);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;
	pthread_attr_t attr, usual;
	float filled[5] = { 0 }, want[5];
	enum rfl_rc rc;

	need_jpeg();
	make_folder(*state);
	config.spec.dir = *state;
	assert_int_equal(pthread_getattr_default_np(&usual), 0);
	assert_int_equal(pthread_getattr_default_np(&attr), 0);
	assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)1 << 50), 0);
	if (pthread_setattr_default_np(&attr) != 0)
		skip();
	rc = rfl_data_open_images(&config.spec, &config.shape, 4, RFL_LAYOUT_NHWC, NULL, &data,
				  &err);
	rfl_fill_run(&(struct rfl_fill_job){ rule, 4, 0, 5, filled }, 1, 3);
	assert_int_equal(pthread_setattr_default_np(&usual), 0);
	assert_int_equal(rc, RFL_EFAILED);
	assert_null(data);
	assert_says(&err, "cannot start loader thread 1 of 2: ");
	assert_says(&err, "use fewer --workers");
	rfl_fill_values(rule, 4, 0, 5, want);
	assert_memory_equal(filled, want, sizeof(want));
	(void)pthread_attr_destroy(&attr);
	(void)pthread_attr_destroy(&usual);
}

static void bad_configurations_are_refused(void **state)
{
	struct config config = config_of(1);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;

	need_jpeg();
	make_folder(*state);
	config.spec.dir = *state;
	config.spec.ahead = 0;
	assert_int_equal(rfl_data_open_images(&config.spec, &config.shape, 4, RFL_LAYOUT_NHWC, NULL,
					      &data, &err),
			 RFL_EINVAL);
	config.spec.ahead = 1;
	config.spec.world_size = 2;
	config.spec.rank = 2;
	rfl_err_clear(&err);
	assert_int_equal(rfl_data_open_images(&config.spec, &config.shape, 4, RFL_LAYOUT_NHWC, NULL,
					      &data, &err),
			 RFL_EINVAL);
	assert_says(&err, "rank 2 is not valid for 2 processes");
	config.spec.rank = 0;
	config.shape.width = 17;
	rfl_err_clear(&err);
	assert_int_equal(rfl_data_open_images(&config.spec, &config.shape, 4, RFL_LAYOUT_NHWC, NULL,
					      &data, &err),
			 RFL_EINVAL);
	assert_says(&err, "images are resized to 3 x N x N, but net accepts 3 x 16 x 17");
	assert_null(data);
}

static void synthetic_is_the_golden_input(void **state)
{
	struct rfl_zoo_options sizes = { .image_size = 32 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;
	struct rfl_net *net = NULL;
	struct rfl_batch first, second;

	(void)state;
	assert_ok(rfl_zoo_build("resnet18", &sizes, &net, &err), &err);
	assert_ok(rfl_data_open(&(struct rfl_data_spec){ .kind = RFL_DATA_SYNTHETIC }, net, 3,
				RFL_LAYOUT_NCHW, 2, NULL, &data, &err),
		  &err);
	assert_ok(rfl_data_next(data, &first, &err), &err);
	assert_ok(rfl_data_next(data, &second, &err), &err);
	assert_int_equal(first.n, 3);
	assert_ptr_equal(first.images, second.images);
	for (uint64_t i = 0; i < 3 * 3 * 32 * 32; i += 101) {
		float u;

		rfl_fill_values((struct rfl_fill_rule){ RFL_FILL_SCALED, 1.0F }, RFL_FILL_IMAGE, i,
				1, &u);
		assert_true(first.images[i] == u);
	}
	assert_int_equal(first.labels[2], 74);
	assert_int_equal(rfl_data_stats(data).skipped, 0);
	rfl_data_free(data);
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_come_to_an_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(batches_do_not_depend_on_threads, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_resting_loader_reads_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(epochs_leave_the_last_images_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(few_images_fill_a_batch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ranks_share_each_epoch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_cache_gives_the_same_batches, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_ring_larger_than_memory_is_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(layouts_hold_the_same_pixels, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_files_are_named_and_skipped, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(damaged_test_images_are_left_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_readable_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closing_early_is_clean, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_that_cannot_start_are_reported, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(bad_configurations_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(synthetic_is_the_golden_input, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
