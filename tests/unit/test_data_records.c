/*
 * CIFAR-10 and MNIST: what comes out of their files, what is refused and how, and how kinds of
 * directories are recognised.
 */
#include "tests/unit/records_fixture.h"

#include <math.h>
#include <sys/stat.h>

#include "complexity/zoo.h"
#include "data/data.h"
#include "data/parts.h"

static struct rfl_net *net_of(const char *model)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, &(struct rfl_zoo_options){ .image_size = 0 }, &net, &err),
		  &err);
	return net;
}

static struct rfl_data *open_data(enum rfl_data_kind kind, const char *dir, const char *model,
				  bool augment, enum rfl_layout layout)
{
	const struct rfl_data_spec spec = {
		.kind = kind, .dir = dir, .augment = augment, .workers = 2, .ahead = 1, .seed = 3
	};
	struct rfl_net *net = net_of(model);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;

	assert_ok(rfl_data_probe(&spec, net, &err), &err);
	assert_ok(rfl_data_open(&spec, net, 10, layout, 1, NULL, &data, &err), &err);
	rfl_net_free(net);
	return data;
}

/* Which of n records is this, planes of `plane` pixels? A label leaves every tenth. */
static size_t which_record(const uint8_t *pixels, size_t numel, int64_t label, size_t n)
{
	for (size_t i = (size_t)label; i < n; i += 10) {
		size_t k = 0;

		while (k < numel && pixels[k] == record_pixel(i, k))
			k++;
		if (k == numel)
			return i;
	}
	fail_msg("no record of label %d looks like this", (int)label);
	return 0;
}

static void each_record_comes_once(void **state)
{
	struct rfl_data *data;
	struct rfl_batch batch;
	struct rfl_err err = RFL_ERR_INIT;
	int seen[40] = { 0 };

	put_cifar10(*state, 8);
	data = open_data(RFL_DATA_CIFAR10, *state, "cifar_cnn", false, RFL_LAYOUT_NCHW);
	for (int b = 0; b < 4; b++) {
		assert_ok(rfl_data_next(data, &batch, &err), &err);
		assert_int_equal(batch.kind, RFL_INPUT_PIXELS);
		assert_true(fabsf(batch.scale->mean[1] - 0.4822F) < 1e-6F);
		for (int i = 0; i < 10; i++)
			seen[which_record(batch.pixels + (size_t)i * 3072, 3072, batch.labels[i],
					  40)]++;
	}
	for (int i = 0; i < 40; i++)
		assert_int_equal(seen[i], 1);
	rfl_data_free(data);
}

static void layouts_hold_the_same_pixels(void **state)
{
	struct rfl_data *nchw, *nhwc;
	struct rfl_batch a, b;
	struct rfl_err err = RFL_ERR_INIT;

	put_cifar10(*state, 8);
	nchw = open_data(RFL_DATA_CIFAR10, *state, "cifar_cnn", true, RFL_LAYOUT_NCHW);
	nhwc = open_data(RFL_DATA_CIFAR10, *state, "cifar_cnn", true, RFL_LAYOUT_NHWC);
	assert_ok(rfl_data_next(nchw, &a, &err), &err);
	assert_ok(rfl_data_next(nhwc, &b, &err), &err);
	for (size_t i = 0; i < 10; i++)
		for (size_t p = 0; p < 1024; p++)
			for (size_t c = 0; c < 3; c++)
				assert_int_equal(a.pixels[i * 3072 + c * 1024 + p],
						 b.pixels[i * 3072 + 3 * p + c]);
	rfl_data_free(nchw);
	rfl_data_free(nhwc);
}

/* Is the image the record, shifted by (dx, dy), black from outside, flipped or not? */
static bool is_shifted(const uint8_t *pixels, size_t record, int dx, int dy, bool flip)
{
	for (int y = 0; y < 32; y++) {
		for (int x = 0; x < 32; x++) {
			int fx = (flip ? 31 - x : x) + dx, fy = y + dy;
			uint8_t want = fx < 0 || fx > 31 || fy < 0 || fy > 31
					       ? 0
					       : record_pixel(record, (size_t)(fy * 32 + fx));

			if (pixels[y * 32 + x] != want)
				return false;
		}
	}
	return true;
}

static void cifar_is_shifted_and_flipped(void **state)
{
	struct rfl_data *data;
	struct rfl_batch batch;
	struct rfl_err err = RFL_ERR_INIT;
	int found = 0, flipped = 0, moved = 0;

	put_cifar10(*state, 2); /* one record per label */
	data = open_data(RFL_DATA_CIFAR10, *state, "cifar_cnn", true, RFL_LAYOUT_NCHW);
	for (int b = 0; b < 20; b++) {
		assert_ok(rfl_data_next(data, &batch, &err), &err);
		for (int i = 0; i < 10; i++) {
			const uint8_t *p = batch.pixels + (size_t)i * 3072;

			for (int k = 0; k < 9 * 9 * 2; k++) {
				int dx = k % 9 - 4, dy = k / 9 % 9 - 4;
				size_t record = (size_t)batch.labels[i];

				if (!is_shifted(p, record, dx, dy, k >= 81))
					continue;
				found++;
				flipped += k >= 81;
				moved += dx != 0 || dy != 0;
				break;
			}
		}
	}
	assert_int_equal(found, 200);
	assert_in_range(flipped, 70, 130);
	assert_in_range(moved, 180, 200);
	rfl_data_free(data);
}

static void mnist_is_read_gzipped_or_not(void **state)
{
	static const struct {
		const char *under, *suffix;
	} forms[] = { { "a", "" }, { "b", ".gz" }, { "c/MNIST/raw", ".gz" }, { "d/raw", "" } };

	for (size_t f = 0; f < RFL_ARRAY_LEN(forms); f++) {
		const char top[] = { forms[f].under[0], '\0' };
		struct rfl_err err = RFL_ERR_INIT;
		enum rfl_data_kind kind;
		struct rfl_data *data;
		struct rfl_batch batch;

		put_mnist(tmp_path(*state, forms[f].under), 30, forms[f].suffix);
		assert_ok(rfl_data_detect(tmp_path(*state, top), &kind, &err), &err);
		assert_int_equal(kind, RFL_DATA_MNIST);
		data = open_data(kind, tmp_path(*state, top), "mnist_cnn", true, RFL_LAYOUT_NHWC);
		assert_ok(rfl_data_next(data, &batch, &err), &err);
		assert_true(fabsf(batch.scale->std[0] - 0.3081F) < 1e-6F);
		for (int i = 0; i < 10; i++)
			(void)which_record(batch.pixels + (size_t)i * 784, 784, batch.labels[i],
					   30);
		rfl_data_free(data);
	}
}

static struct rfl_data *open_spec(const struct rfl_data_spec *spec, const char *model,
				  int64_t batch, enum rfl_layout layout)
{
	struct rfl_net *net = net_of(model);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;

	assert_ok(rfl_data_probe(spec, net, &err), &err);
	assert_ok(rfl_data_open(spec, net, batch, layout, 1, NULL, &data, &err), &err);
	rfl_net_free(net);
	return data;
}

/* Every sample once per epoch, in order and as it is; the last batch is smaller. */
static void test_sets_are_read_in_order(void **state)
{
	struct rfl_data_spec spec = {
		.kind = RFL_DATA_MNIST,
		.dir = *state,
		.test = true,
		.augment = true,
		.rotation = 90,
		.workers = 3,
		.ahead = 2,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_batch batch;
	struct rfl_data *data;

	put_mnist(*state, 40, "");
	put_mnist_part(*state, "t10k", 25, "");
	data = open_spec(&spec, "mnist_cnn", 10, RFL_LAYOUT_NCHW);
	assert_int_equal(rfl_data_samples(data), 25);
	assert_int_equal(rfl_data_epoch_batches(data), 3);
	for (size_t b = 0; b < 7; b++) {
		assert_ok(rfl_data_next(data, &batch, &err), &err);
		assert_int_equal(batch.n, b % 3 == 2 ? 5 : 10);
		for (size_t i = 0; i < (size_t)batch.n; i++) {
			assert_int_equal(batch.labels[i], i);
			for (size_t k = 0; k < 784; k++)
				assert_int_equal(batch.pixels[i * 784 + k],
						 record_pixel(b % 3 * 10 + i, k));
		}
	}
	rfl_data_free(data);

	put_cifar10(*state, 3);
	spec.kind = RFL_DATA_CIFAR10;
	assert_int_equal(
		rename(tmp_path(*state, "data_batch_2.bin"), tmp_path(*state, "test_batch.bin")),
		0);
	data = open_spec(&spec, "cifar_cnn", 2, RFL_LAYOUT_NCHW);
	for (size_t b = 0; b < 2; b++) {
		assert_ok(rfl_data_next(data, &batch, &err), &err);
		assert_int_equal(batch.n, 2 - b);
		assert_int_equal(batch.labels[0], 3 + 2 * b);
		assert_true(is_shifted(batch.pixels, 3 + 2 * b, 0, 0, false));
	}
	rfl_data_free(data);
	spec.kind = RFL_DATA_MNIST;
	spec.test = false;
	data = open_spec(&spec, "mnist_cnn", 12, RFL_LAYOUT_NCHW);
	assert_int_equal(rfl_data_samples(data), 40);
	assert_int_equal(rfl_data_epoch_batches(data), 3);
	rfl_data_free(data);
}

/* The same samples have one digest, gzipped or not; another label is enough for another. */
static void a_digest_tells_records_apart(void **state)
{
	static const char *const names[] = { "plain", "packed", "relabelled", "shorter" };
	uint64_t digests[RFL_ARRAY_LEN(names)];
	struct rfl_buf labels;

	put_mnist(tmp_path(*state, "plain"), 40, "");
	put_mnist(tmp_path(*state, "packed"), 40, ".gz");
	put_mnist(tmp_path(*state, "relabelled"), 40, "");
	idx_labels(&labels, 40);
	labels.data[20]++;
	put_bytes(tmp_path(*state, "relabelled/train-labels-idx1-ubyte"), &labels);
	rfl_buf_fini(&labels);
	put_mnist(tmp_path(*state, "shorter"), 39, "");
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		struct rfl_data *data = open_data(RFL_DATA_MNIST, tmp_path(*state, names[i]),
						  "mnist_cnn", false, RFL_LAYOUT_NCHW);

		digests[i] = rfl_data_digest(data);
		rfl_data_free(data);
		for (size_t k = 0; k < i; k++)
			assert_int_equal(digests[i] == digests[k], i == 1);
	}
}

/* A source that begins with batch n gives what one from the beginning gives from there on. */
static void a_source_can_begin_anywhere(void **state)
{
	struct rfl_data_spec spec = { .kind = RFL_DATA_CIFAR10,
				      .dir = *state,
				      .augment = true,
				      .rotation = 15,
				      .workers = 2,
				      .ahead = 2,
				      .seed = 5 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *whole, *rest;
	struct rfl_batch a, b;

	put_cifar10(*state, 5); /* 25 records: 3 batches of 8 in an epoch */
	whole = open_spec(&spec, "cifar_cnn", 8, RFL_LAYOUT_NCHW);
	for (int i = 0; i < 4; i++)
		assert_ok(rfl_data_next(whole, &a, &err), &err);
	spec.first_batch = 4;
	spec.workers = 0;
	rest = open_spec(&spec, "cifar_cnn", 8, RFL_LAYOUT_NCHW);
	for (int i = 0; i < 5; i++) {
		assert_ok(rfl_data_next(whole, &a, &err), &err);
		assert_ok(rfl_data_next(rest, &b, &err), &err);
		assert_memory_equal(a.pixels, b.pixels, 8 * 3072);
		assert_memory_equal(a.labels, b.labels, 8 * sizeof(*a.labels));
	}
	rfl_data_free(whole);
	rfl_data_free(rest);
}

/* Rotations keep the centre and turn the corners black, in both layouts alike; half of the images
 * are mirrored, but no digit. By a tiny angle, an image remains as it is. */
static void images_are_rotated(void **state)
{
	struct rfl_data_spec spec = { .kind = RFL_DATA_CIFAR10,
				      .dir = *state,
				      .augment = true,
				      .rotation = 1e-9,
				      .workers = 1,
				      .ahead = 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data, *other;
	struct rfl_batch a, b;
	int flipped = 0, black = 0;

	put_cifar10(*state, 2); /* one record per label */
	put_mnist(*state, 20, "");
	data = open_spec(&spec, "cifar_cnn", 10, RFL_LAYOUT_NCHW);
	for (int n = 0; n < 100; n++) {
		const uint8_t *p = a.pixels + n % 10 * 3072;

		if (n % 10 == 0) {
			assert_ok(rfl_data_next(data, &a, &err), &err);
			p = a.pixels;
		}
		flipped += is_shifted(p, (size_t)a.labels[n % 10], 0, 0, true);
		assert_true(is_shifted(p, (size_t)a.labels[n % 10], 0, 0, false) !=
			    is_shifted(p, (size_t)a.labels[n % 10], 0, 0, true));
	}
	assert_in_range(flipped, 30, 70);
	rfl_data_free(data);

	spec.rotation = 60;
	data = open_spec(&spec, "cifar_cnn", 10, RFL_LAYOUT_NCHW);
	other = open_spec(&spec, "cifar_cnn", 10, RFL_LAYOUT_NHWC);
	assert_ok(rfl_data_next(data, &a, &err), &err);
	assert_ok(rfl_data_next(other, &b, &err), &err);
	for (size_t i = 0; i < 10; i++)
		for (size_t k = 0; k < 3072; k++)
			assert_int_equal(a.pixels[i * 3072 + k],
					 b.pixels[i * 3072 + k % 1024 * 3 + k / 1024]);
	for (size_t i = 0; i < 10; i++)
		black += a.pixels[i * 3072] == 0;
	assert_in_range(black, 6, 10);
	rfl_data_free(data);
	rfl_data_free(other);

	spec.kind = RFL_DATA_MNIST;
	spec.rotation = 1e-9;
	data = open_spec(&spec, "mnist_cnn", 10, RFL_LAYOUT_NCHW);
	assert_ok(rfl_data_next(data, &a, &err), &err);
	for (size_t i = 0; i < 10; i++)
		(void)which_record(a.pixels + i * 784, 784, a.labels[i], 20);
	rfl_data_free(data);
}

/* ---- what is refused ---- */

static enum rfl_rc try_open(enum rfl_data_kind kind, const char *dir, const char *model,
			    struct rfl_err *err)
{
	const struct rfl_data_spec spec = { .kind = kind, .dir = dir, .workers = 1, .ahead = 1 };
	struct rfl_net *net = net_of(model);
	struct rfl_data *data = NULL;
	enum rfl_rc rc;

	rfl_err_clear(err);
	rc = rfl_data_open(&spec, net, 4, RFL_LAYOUT_NCHW, 1, NULL, &data, err);
	assert_true((rc == RFL_OK) == (data != NULL));
	rfl_data_free(data);
	rfl_net_free(net);
	return rc;
}

static void change_byte(const char *path, size_t at, int value)
{
	FILE *f = fopen(path, "r+b");

	assert_non_null(f);
	assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
	assert_int_equal(fputc(value, f), value);
	assert_int_equal(fclose(f), 0);
}

static void damaged_cifar_is_refused(void **state)
{
	const char *third = tmp_path(*state, "data_batch_3.bin");
	struct rfl_err err = RFL_ERR_INIT;

	put_cifar10(*state, 2);
	change_byte(third, 3073, 10);
	assert_int_equal(try_open(RFL_DATA_CIFAR10, *state, "cifar_cnn", &err), RFL_EFORMAT);
	assert_says(&err, "data_batch_3.bin: byte 3073: the label of record 1 is 10, not 0 to 9");
	change_byte(third, 3073, 9);
	change_byte(third, 2 * 3073, 1);
	assert_int_equal(try_open(RFL_DATA_CIFAR10, *state, "cifar_cnn", &err), RFL_EFORMAT);
	assert_says(&err, "data_batch_3.bin: 6147 bytes are not a multiple of 3073");
	assert_int_equal(remove(third), 0);
	assert_int_equal(try_open(RFL_DATA_CIFAR10, *state, "cifar_cnn", &err), RFL_EINVAL);
	assert_says(&err, "data_batch_3.bin is missing; unpack data_batch_1.bin");
}

/* Rewrite one file of a good pair and see what is said. */
static void check_mnist(void *state, const char *name, const struct rfl_buf *bytes,
			const char *message)
{
	struct rfl_err err = RFL_ERR_INIT;

	put_mnist(state, 12, "");
	put_bytes(tmp_path(state, name), bytes);
	assert_int_equal(try_open(RFL_DATA_MNIST, state, "mnist_cnn", &err), RFL_EFORMAT);
	assert_says(&err, name);
	assert_says(&err, message);
}

static void damaged_mnist_is_refused(void **state)
{
	static const char images[] = "train-images-idx3-ubyte",
			  labels[] = "train-labels-idx1-ubyte";
	struct rfl_buf b;

	idx_images(&b, 12, 28);
	b.len -= 100;
	check_mnist(*state, images, &b, "ends at byte 9324 of 9424: truncated or damaged");
	b.len = 10;
	check_mnist(*state, images, &b, "ends at byte 10 of 16");
	b.len = 0;
	check_mnist(*state, images, &b, "ends at byte 0 of 16");
	rfl_buf_fini(&b);
	idx_images(&b, 12, 28);
	rfl_buf_putc(&b, 'x');
	check_mnist(*state, images, &b, "longer than the 9424 bytes given in its header");
	b.data[2] = 9;
	check_mnist(*state, images, &b, "byte 0: the magic number is 0x00000903, not 0x00000803");
	b.data[2] = 8;
	memset(b.data + 4, 0, 4);
	check_mnist(*state, images, &b, "byte 4: 0 items");
	memset(b.data + 4, 0xff, 12);
	check_mnist(*state, images, &b, "byte 8: 4294967295 pixels per side");
	rfl_buf_fini(&b);
	idx_labels(&b, 12);
	check_mnist(*state, images, &b, "byte 0: contains labels instead of images");
	b.data[8 + 5] = 11;
	check_mnist(*state, labels, &b,
		    "byte 13: the label of image 5 is 11, not 0 to 9: damaged, or not MNIST's "
		    "labels; download it again");
	rfl_buf_fini(&b);
	idx_labels(&b, 11);
	put_mnist(*state, 12, "");
	put_bytes(tmp_path(*state, labels), &b);
	rfl_buf_fini(&b);
	{
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err), RFL_EFORMAT);
		assert_says(&err, "train-images-idx3-ubyte: 12 images, but ");
		assert_says(&err, "train-labels-idx1-ubyte has 11 labels");
		assert_int_equal(remove(tmp_path(*state, labels)), 0);
		assert_int_equal(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err), RFL_EINVAL);
		assert_says(&err, "train-labels-idx1-ubyte is missing, also with .gz");
	}
}

/* A gzipped file that was cut, and one with a flipped bit. */
static void damaged_gzip_is_refused(void **state)
{
	const char *path = tmp_path(*state, "train-images-idx3-ubyte.gz");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf whole;

	put_mnist(*state, 12, ".gz");
	rfl_buf_init(&whole, 0);
	assert_ok(rfl_file_read(path, &whole, &err), &err);
	assert_ok(rfl_file_write(path, whole.data, whole.len / 2, &err), &err);
	assert_int_equal(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err), RFL_EFORMAT);
	assert_says(&err, "train-images-idx3-ubyte.gz: ends at byte ");
	assert_says(&err, "truncated or damaged; download it again");
	whole.data[whole.len - 6] ^= 0x20; /* the checksum */
	rfl_err_clear(&err);
	assert_ok(rfl_file_write(path, whole.data, whole.len, &err), &err);
	assert_int_equal(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err), RFL_EFORMAT);
	assert_says(&err, "train-images-idx3-ubyte.gz: ");
	/* cut after the last value: the checksum is not all there */
	whole.data[whole.len - 6] ^= 0x20;
	for (size_t cut = 1; cut <= 8; cut++) {
		rfl_err_clear(&err);
		assert_ok(rfl_file_write(path, whole.data, whole.len - cut, &err), &err);
		assert_int_equal(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err), RFL_EFORMAT);
		assert_says(&err,
			    "-ubyte.gz: unexpected end of file after the last of its 9424 bytes");
	}
	/* data after the end of a gzipped file is ignored */
	rfl_buf_puts(&whole, "and so on");
	rfl_err_clear(&err);
	assert_ok(rfl_file_write(path, whole.data, whole.len, &err), &err);
	assert_ok(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err), &err);
	rfl_buf_fini(&whole);
}

/* Headers that ask for gigabytes are refused before anything is read. */
static void bombs_are_refused_by_their_headers(void **state)
{
	static const struct {
		uint32_t n, height, width;
		const char *says;
	} bombs[] = {
		{ 0xffffffff, 1, 1, "4294967295 images, but " },
		{ 12, 4097, 28, "images of 4097 x 28 pixels" },
		{ 60000, 65536, 65536, "byte 12: 65536 pixels per side" },
		{ 12, 32, 28,
		  "mnist images are 32 x 28, but mnist_cnn accepts 28 x 28; use another "
		  "network" },
		{ 12, 32, 32,
		  "mnist images are 32 x 32, but mnist_cnn accepts 28 x 28; use "
		  "--image-size 32, or another network" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(bombs); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf b;

		rfl_buf_init(&b, 0);
		put_big_endian(&b, 0x803);
		put_big_endian(&b, bombs[i].n);
		put_big_endian(&b, bombs[i].height);
		put_big_endian(&b, bombs[i].width); /* and not a single pixel */
		put_mnist(*state, 12, "");
		put_bytes(tmp_path(*state, "train-images-idx3-ubyte"), &b);
		rfl_buf_fini(&b);
		assert_true(try_open(RFL_DATA_MNIST, *state, "mnist_cnn", &err) != RFL_OK);
		assert_says(&err, bombs[i].says);
	}
}

static void networks_must_fit(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	const char *cifar = tmp_path(*state, "cifar"), *mnist = tmp_path(*state, "mnist");

	put_cifar10(tmp_path(*state, "cifar/cifar-10-batches-bin"), 2);
	put_mnist(mnist, 12, "");
	assert_int_equal(try_open(RFL_DATA_CIFAR10, cifar, "cifar_cnn", &err), RFL_OK);
	assert_int_equal(try_open(RFL_DATA_CIFAR10, cifar, "resnet18", &err), RFL_EINVAL);
	assert_says(&err, "cifar10 images are 32 x 32, but resnet18 accepts 224 x 224; use "
			  "--image-size 32");
	assert_int_equal(try_open(RFL_DATA_MNIST, mnist, "cifar_cnn", &err), RFL_EINVAL);
	assert_says(&err, "mnist images have 1 channel, but cifar_cnn accepts 3");
	assert_int_equal(try_open(RFL_DATA_MNIST, cifar, "mnist_cnn", &err), RFL_EINVAL);
	assert_says(&err, "this is a directory of cifar10, not of mnist");
	assert_int_equal(try_open(RFL_DATA_IMAGEFOLDER, cifar, "mnist_cnn", &err), RFL_EINVAL);
	assert_says(&err, "mnist_cnn accepts 1 x 28 x 28");
	assert_int_equal(try_open(RFL_DATA_CIFAR10, cifar, "tiny_lm", &err), RFL_EINVAL);
	assert_says(&err, "tiny_lm accepts no images");
	assert_int_equal(try_open(RFL_DATA_CIFAR10, NULL, "cifar_cnn", &err), RFL_EINVAL);
	assert_says(&err, "cifar10 data needs a directory");
}

/* ---- which kind a directory is ---- */

static void folders_are_told_apart(void **state)
{
	static const struct {
		const char *file, *says; /* says NULL: cifar10, mnist or imagefolder, by letter */
	} cases[] = {
		{ "c/data_batch_1.bin", NULL },
		{ "m/train-images-idx3-ubyte", NULL },
		{ "i/train/cat/x.jpg", NULL },
		{ "p/data_batch_1", "the Python version of CIFAR-10" },
		{ "t/cifar-10-binary.tar.gz", "unpack it first" },
		{ "h/train.bin", "looks like CIFAR-100" },
		{ "l/train-labels-idx1-ubyte.gz", "images are missing" },
		{ "x/train/x.jpg", "use its parent directory" },
		{ "u/cat/x.jpg", "no known data found; use " },
	};
	struct rfl_err err = RFL_ERR_INIT;
	enum rfl_data_kind kind;

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = tmp_path(*state, cases[i].file);
		char dir[4096];

		rfl_err_clear(&err);
		assert_ok(rfl_file_mkdirs_for(path, &err), &err);
		assert_ok(rfl_file_create(path, "x", 1, &err), &err);
		snprintf(dir, sizeof(dir), "%s/%.1s%s", (const char *)*state, cases[i].file,
			 cases[i].file[0] == 'x' ? "/train/" : "");
		if (!cases[i].says) {
			assert_ok(rfl_data_detect(dir, &kind, &err), &err);
			assert_int_equal(rfl_data_kind_names[kind][0], cases[i].file[0]);
			continue;
		}
		assert_int_equal(rfl_data_detect(dir, &kind, &err), RFL_EINVAL);
		assert_says(&err, cases[i].says);
	}
	rfl_err_clear(&err);
	assert_int_equal(rfl_data_detect(tmp_path(*state, "none"), &kind, &err), RFL_EINVAL);
	assert_says(&err, "no such file or directory; use a directory of images");
	rfl_err_clear(&err);
	write_file(*state, "h/a.tar.gz", "x");
	assert_int_equal(rfl_data_detect(tmp_path(*state, "h/a.tar.gz"), &kind, &err), RFL_EINVAL);
	assert_says(&err, "this is a file, not a directory");
	assert_ok(rfl_data_detect(tmp_path(*state, "h/train.bin"), &kind, &err), &err);
	assert_int_equal(kind, RFL_DATA_TOKENS);
}

/* ---- synthetic ---- */

static void texts_are_the_golden_tokens(void **state)
{
	const struct rfl_data_spec device = { .kind = RFL_DATA_SYNTHETIC },
				   host = { .kind = RFL_DATA_SYNTHETIC_HOST };
	struct rfl_net *net = net_of("tiny_lm");
	struct rfl_data *a = NULL, *b = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_batch one, two;
	int64_t context = net->nodes[0].shape.dim[0];

	(void)state;
	assert_ok(rfl_data_open(&device, net, 2, RFL_LAYOUT_NCHW, 1, NULL, &a, &err), &err);
	assert_ok(rfl_data_open(&host, net, 2, RFL_LAYOUT_NCHW, 1, NULL, &b, &err), &err);
	assert_ok(rfl_data_next(a, &one, &err), &err);
	assert_ok(rfl_data_next(b, &two, &err), &err);
	assert_int_equal(one.kind, RFL_INPUT_TOKENS);
	assert_true(one.id != 0);
	assert_int_equal(two.id, 0); /* it is brought to the device at every step */
	if (net->classes == 256) {
		assert_int_equal(one.tokens[0], 80);
		assert_int_equal(one.tokens[7], 109);
	}
	for (int64_t i = 0; i < 2 * context; i++) {
		assert_int_equal(one.labels[i], 37 * i % net->classes);
		assert_int_equal(one.tokens[i], two.tokens[i]);
	}
	rfl_data_free(a);
	rfl_data_free(b);
	rfl_net_free(net);
}

/* A file of tokens 1000 + i: every window and its labels are consecutive, another for each sample,
 * the same for the same seed, and those of two ranks are those of one process. */
static void texts_are_windows_of_the_file(void **state)
{
	enum { TOKENS = 500, BATCH = 4, STEPS = 6 };
	struct rfl_data_spec spec = { .kind = RFL_DATA_TOKENS,
				      .dir = tmp_path(*state, "words.bin"),
				      .seed = 7 };
	struct rfl_net *net = net_of("cs336_small");
	const int64_t context = net->nodes[0].shape.dim[0];
	int64_t first[2][STEPS * BATCH] = { { 0 } };
	unsigned char file[TOKENS * 2];
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_batch b;

	for (int i = 0; i < TOKENS; i++) {
		file[2 * i] = (unsigned char)((1000 + i) & 255);
		file[2 * i + 1] = (unsigned char)((1000 + i) >> 8);
	}
	assert_ok(rfl_file_create(spec.dir, (const char *)file, sizeof(file), &err), &err);
	for (int world = 1; world <= 2; world++)
		for (int rank = 0; rank < world; rank++) {
			struct rfl_data *d = NULL;

			spec.rank = rank;
			spec.world_size = world;
			assert_ok(rfl_data_open(&spec, net, BATCH, RFL_LAYOUT_NCHW, 1, NULL, &d,
						&err),
				  &err);
			for (int step = rank; step < STEPS; step += world) {
				assert_ok(rfl_data_next(d, &b, &err), &err);
				assert_int_equal(b.id, 0);
				for (int64_t i = 0; i < BATCH * context; i++) {
					const int64_t start = b.tokens[i / context * context];

					assert_int_equal(b.tokens[i], start + i % context);
					assert_int_equal(b.labels[i], b.tokens[i] + 1);
					assert_true(b.labels[i] < 1000 + TOKENS);
				}
				for (int i = 0; i < BATCH; i++)
					first[world - 1][step * BATCH + i] = b.tokens[i * context];
			}
			rfl_data_free(d);
		}
	assert_memory_equal(first[0], first[1], sizeof(first[0]));
	assert_true(first[0][0] != first[0][1] && first[0][0] != first[0][BATCH]);
	rfl_net_free(net);
}

/* A named pipe is refused, not waited for. */
static void a_pipe_is_no_token_file(void **state)
{
	const struct rfl_data_spec spec = { .kind = RFL_DATA_TOKENS,
					    .dir = tmp_path(*state, "pipe.bin") };
	struct rfl_net *net = net_of("tiny_lm");
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(mkfifo(spec.dir, 0600), 0);
	assert_int_equal(rfl_data_probe(&spec, net, &err), RFL_EINVAL);
	assert_says(&err, "not a file");
	rfl_net_free(net);
}

static void damaged_token_files_are_refused(void **state)
{
	static const struct {
		const char *model;
		size_t bytes;
		int token; /* of all, but the last is 0 */
		enum rfl_rc rc;
		const char *says;
	} cases[] = {
		{ "tiny_lm", 101, 1, RFL_EFORMAT, "101 bytes are not a whole number of 16-bit" },
		{ "tiny_lm", 64, 1, RFL_EINVAL,
		  "32 tokens are fewer than one sample, which needs 33" },
		{ "tiny_lm", 0, 1, RFL_EINVAL, "0 tokens are fewer" },
		{ "tiny_lm", 66, 256, RFL_EFORMAT,
		  "token 0 is 256, but the vocabulary of tiny_lm ends" },
		{ "tiny_lm", 66, 255, RFL_OK, NULL },
		{ "resnet18", 66, 1, RFL_EINVAL, "resnet18 reads images, not tokens" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *name = (char[]){ 't', (char)('0' + i), '\0' };
		const struct rfl_data_spec spec = { .kind = RFL_DATA_TOKENS,
						    .dir = tmp_path(*state, name) };
		struct rfl_net *net = net_of(cases[i].model);
		struct rfl_err err = RFL_ERR_INIT, early = RFL_ERR_INIT;
		struct rfl_data *d = NULL;
		char file[256] = "";
		enum rfl_rc rc;

		for (size_t k = 0; k + 2 < cases[i].bytes; k += 2) {
			file[k] = (char)(cases[i].token & 255);
			file[k + 1] = (char)(cases[i].token >> 8);
		}
		assert_ok(rfl_file_create(spec.dir, file, cases[i].bytes, &err), &err);
		rc = rfl_data_open(&spec, net, 1, RFL_LAYOUT_NCHW, 1, NULL, &d, &err);
		assert_int_equal(rc, cases[i].rc);
		if (cases[i].says)
			assert_says(&err, cases[i].says);
		/* all but the vocabulary is found before the run */
		assert_int_equal(rfl_data_probe(&spec, net, &early),
				 cases[i].token > 255 ? RFL_OK : rc);
		rfl_data_free(d);
		rfl_net_free(net);
	}
}

/* ---- memory of an engine ---- */

struct counted_memory {
	int live, made;
	int fail_at; /* the allocation that fails; 0: none */
};

static enum rfl_rc counted_alloc(void *ctx, size_t bytes, void **ret, struct rfl_err *err)
{
	struct counted_memory *m = ctx;

	if (++m->made == m->fail_at)
		return rfl_fail(err, RFL_EDEVMEM, 0, "no page-locked memory");
	*ret = test_malloc(bytes);
	m->live++;
	return RFL_OK;
}

static void counted_free(void *ctx, void *memory)
{
	((struct counted_memory *)ctx)->live--;
	test_free(memory);
}

static void batches_lie_in_the_engines_memory(void **state)
{
	const struct rfl_data_spec cifar = { .kind = RFL_DATA_CIFAR10,
					     .dir = *state,
					     .workers = 2,
					     .ahead = 3 },
				   synthetic = { .kind = RFL_DATA_SYNTHETIC_HOST };
	const struct rfl_data_spec *specs[] = { &cifar, &synthetic };
	struct rfl_net *net = net_of("cifar_cnn");

	put_cifar10(*state, 2);
	for (size_t i = 0; i < 2; i++) {
		for (int fail_at = 0; fail_at <= 2; fail_at++) {
			struct counted_memory m = { .fail_at = fail_at };
			const struct rfl_data_memory memory = { counted_alloc, counted_free, &m };
			struct rfl_err err = RFL_ERR_INIT;
			struct rfl_data *data = NULL;
			enum rfl_rc rc = rfl_data_open(specs[i], net, 4, RFL_LAYOUT_NCHW, 1,
						       &memory, &data, &err);

			assert_int_equal(rc, fail_at ? RFL_EDEVMEM : RFL_OK);
			if (!fail_at)
				assert_int_equal(m.live, i == 0 ? 4 : 2);
			rfl_data_free(data);
			assert_int_equal(m.live, 0);
		}
	}
	rfl_net_free(net);
}

/* ---- statistics ---- */

static void sources_say_how_they_keep_up(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data_stats stats;
	struct rfl_batch batch;
	struct rfl_data *data;

	put_cifar10(*state, 8);
	data = open_data(RFL_DATA_CIFAR10, *state, "cifar_cnn", true, RFL_LAYOUT_NCHW);
	rfl_data_rest(data); /* both batches of the ring are ready */
	stats = rfl_data_stats(data);
	assert_int_equal(stats.decoded, 20);
	assert_true(isnan(stats.queue_mean) && isnan(stats.queue_min)); /* none was asked for */
	assert_ok(rfl_data_next(data, &batch, &err), &err);
	stats = rfl_data_stats(data);
	assert_true(stats.queue_mean == 2.0 && stats.queue_min == 2.0);
	assert_true(stats.decode_s > 0.0);
	assert_int_equal(stats.bad, 0);
	rfl_data_rest(data);
	rfl_data_reset_stats(data);
	stats = rfl_data_stats(data);
	assert_int_equal(stats.decoded, 0);
	assert_true(isnan(stats.queue_mean));
	rfl_data_free(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_record_comes_once),
		TEST(layouts_hold_the_same_pixels),
		TEST(cifar_is_shifted_and_flipped),
		TEST(mnist_is_read_gzipped_or_not),
		TEST(test_sets_are_read_in_order),
		TEST(a_digest_tells_records_apart),
		TEST(a_source_can_begin_anywhere),
		TEST(images_are_rotated),
		TEST(damaged_cifar_is_refused),
		TEST(damaged_mnist_is_refused),
		TEST(damaged_gzip_is_refused),
		TEST(bombs_are_refused_by_their_headers),
		TEST(networks_must_fit),
		TEST(folders_are_told_apart),
		TEST(texts_are_the_golden_tokens),
		TEST(a_pipe_is_no_token_file),
		TEST(texts_are_windows_of_the_file),
		TEST(damaged_token_files_are_refused),
		TEST(batches_lie_in_the_engines_memory),
		TEST(sources_say_how_they_keep_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
