/* Directories of images: what is listed and in which order, what is left out. */
#include "tests/unit/image_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "data/parts.h"

/* As before a run: only as far as the first images. */
static enum rfl_rc probe(const char *dir, int64_t max_classes, struct rfl_err *err)
{
	struct rfl_dataset *set = NULL;
	enum rfl_rc rc = rfl_dataset_open(dir, "train", max_classes, true, true, &set, err);

	rfl_dataset_free(set);
	return rc;
}

static void images_are_listed_in_order(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dataset *set = NULL;

	make_folder(*state);
	assert_ok(rfl_dataset_open(*state, "train", INT64_MAX, false, false, &set, &err), &err);
	assert_int_equal(set->nclasses, 3);
	assert_string_equal(set->classes[0], "Ant"); /* bytewise: capitals first, as in Python */
	assert_string_equal(set->classes[1], "bee");
	assert_string_equal(set->classes[2], "zebra");
	assert_int_equal(set->nimages, 9);
	for (size_t i = 0; i < 9; i++)
		assert_int_equal(set->images[i].label, i / 3);
	assert_string_equal(set->images[0].name, "2.JPEG");
	assert_string_equal(set->images[1].name, "5.jpg");
	assert_string_equal(set->images[2].name, "8.JPEG");
	rfl_dataset_free(set);
}

/* Directories within a class's are read after its files; a link to nowhere is a file that
 * cannot be read, a pipe is nothing. */
static void classes_may_hold_folders_and_links(void **state)
{
	static const char *const names[] = { "gone.jpg", "z.jpg", "b/1.jpg", "b/c/0.jpg",
					     "d/2.jpg" };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dataset *set = NULL;

	put_image(*state, "cat/d", "2.jpg", "jpeg_420.jpg", SIZE_MAX);
	put_image(*state, "cat/b/c", "0.jpg", "jpeg_420.jpg", SIZE_MAX);
	assert_ok(probe(*state, 1, &err), &err); /* no file lies in cat itself */
	put_image(*state, "cat/b", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	put_image(*state, "cat/b", "notes.txt", "jpeg_420.jpg", SIZE_MAX);
	put_image(*state, "cat", "z.jpg", "jpeg_420.jpg", SIZE_MAX);
	assert_int_equal(symlink("nowhere.jpg", tmp_path(*state, "train/cat/gone.jpg")), 0);
	assert_int_equal(mkfifo(tmp_path(*state, "train/cat/pipe.jpg"), 0600), 0);
	assert_ok(rfl_dataset_open(*state, "train", INT64_MAX, false, false, &set, &err), &err);
	assert_int_equal(set->nclasses, 1);
	assert_int_equal(set->nimages, RFL_ARRAY_LEN(names));
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++)
		assert_string_equal(set->images[i].name, names[i]);
	assert_int_equal(set->skipped, 1);
	rfl_dataset_free(set);
}

static void hear(enum rfl_log_level level, const char *line, void *ctx)
{
	(void)level;
	rfl_buf_printf(ctx, "%s\n", line);
}

/* Links that lead back, or twice to the same: each directory is read once, which is linear. Without
 * that the 16 levels below would be 65536 directories, and the link back endless. */
static void a_folder_is_read_once_however_many_links_lead_to_it(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dataset *set = NULL;
	struct rfl_buf log = { 0 };
	char folder[128] = "cat";

	for (int i = 0; i < 16; i++) {
		size_t len = strlen(folder);
		char link[160];

		snprintf(folder + len, sizeof(folder) - len, "/a");
		put_image(*state, folder, i < 15 ? "x.txt" : "deep.jpg", "jpeg_420.jpg", SIZE_MAX);
		snprintf(link, sizeof(link), "train/%.*s/b", (int)len, folder);
		assert_int_equal(symlink("a", tmp_path(*state, link)), 0);
	}
	put_image(*state, "dog", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	assert_int_equal(symlink("..", tmp_path(*state, "train/dog/up")), 0);
	assert_int_equal(symlink("../cat/a", tmp_path(*state, "train/dog/cats")), 0);
	rfl_log_set(hear, &log, RFL_LOG_WARN);
	assert_ok(probe(*state, 2, &err), &err);
	assert_ok(rfl_dataset_open(*state, "train", INT64_MAX, false, false, &set, &err), &err);
	rfl_log_set(NULL, NULL, RFL_LOG_ERROR);
	assert_int_equal(set->nimages, 3); /* a link of another class counts for that class */
	assert_string_equal(set->images[1].name, "1.jpg");
	assert_non_null(
		strstr(rfl_buf_str(&log),
		       "/train/cat/b: skipped: links to a directory that was already read\n"));
	assert_non_null(strstr(rfl_buf_str(&log), "/train/dog/up: skipped: links to"));
	rfl_dataset_free(set);
	rfl_buf_fini(&log);
}

/* The labels of test images are those of the training classes of the same names. */
static void test_images_have_the_labels_of_training(void **state)
{
	const struct rfl_data_spec spec = {
		.kind = RFL_DATA_IMAGEFOLDER, .dir = *state, .test = true, .ahead = 1
	};
	const struct rfl_data_shape shape = {
		.model = "m", .channels = 3, .height = 8, .width = 8, .classes = 5
	};
	char train[512], val[512];
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_data *data = NULL;
	struct rfl_batch batch;

	put_image(*state, "dog", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	put_image(*state, "emu", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	snprintf(train, sizeof(train), "%s", tmp_path(*state, "train"));
	snprintf(val, sizeof(val), "%s", tmp_path(*state, "val"));
	assert_int_equal(rfl_data_open_images(&spec, &shape, 4, RFL_LAYOUT_NCHW, NULL, &data, &err),
			 RFL_EINVAL);
	assert_says(&err, "contains neither a directory 'val' nor 'test'; store test images as");
	rfl_err_clear(&err);
	assert_int_equal(rename(train, val), 0);
	put_image(*state, "cat", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	put_image(*state, "emu", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	assert_int_equal(rfl_data_open_images(&spec, &shape, 4, RFL_LAYOUT_NCHW, NULL, &data, &err),
			 RFL_EINVAL);
	assert_says(&err, "/val/dog: ");
	assert_says(&err,
		    "/train has no class of this name; use the same class directories in both");
	rfl_err_clear(&err);
	put_image(*state, "dog", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	assert_ok(rfl_data_open_images(&spec, &shape, 4, RFL_LAYOUT_NCHW, NULL, &data, &err), &err);
	assert_ok(rfl_data_next(data, &batch, &err), &err);
	assert_int_equal(batch.n, 2);
	assert_int_equal(batch.labels[0], 1); /* dog */
	assert_int_equal(batch.labels[1], 2);
	rfl_data_free(data);
}

static void folders_deeper_than_the_limit(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dataset *set = NULL;

	put_image(*state, "cat/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "x.jpg", "jpeg_420.jpg",
		  SIZE_MAX);
	assert_int_equal(rfl_dataset_open(*state, "train", INT64_MAX, false, false, &set, &err),
			 RFL_EINVAL);
	assert_says(&err, "directories more than 16 deep");
}

static void folders_without_images_are_errors(void **state)
{
	static const struct {
		const char *make, *word;
	} cases[] = {
		{ "a/x", "no directory 'train'" },
		{ "b/train", "no class directories" },
		{ "c/train/cat", "no images in its 1 class directory; " },
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dataset *set = NULL;

	assert_int_equal(rfl_dataset_open(tmp_path(*state, "none"), "train", INT64_MAX, false,
					  false, &set, &err),
			 RFL_EINVAL);
	assert_says(&err, "no such directory");
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *dir = tmp_path(*state, (const char[]){ cases[i].make[0], '\0' });

		rfl_err_clear(&err);
		assert_ok(rfl_file_mkdirs(tmp_path(*state, cases[i].make), &err), &err);
		assert_int_equal(
			rfl_dataset_open(dir, "train", INT64_MAX, false, false, &set, &err),
			RFL_EINVAL);
		assert_says(&err, cases[i].word);
		rfl_err_clear(&err);
		assert_int_equal(probe(dir, 10, &err), RFL_EINVAL);
		assert_says(&err, cases[i].word);
		assert_null(set);
	}
	make_folder(*state);
	rfl_err_clear(&err);
	assert_ok(probe(*state, 3, &err), &err);
	assert_int_equal(probe(*state, 2, &err), RFL_EINVAL);
	assert_says(&err, "3 classes, but the network has 2 outputs");
}

static uint64_t digest_of(const char *dir)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_dataset *set = NULL;
	uint64_t digest;

	assert_ok(rfl_dataset_open(dir, "train", INT64_MAX, false, true, &set, &err), &err);
	digest = set->digest;
	rfl_dataset_free(set);
	return digest;
}

/* A copy has the same digest, whatever else is there; a name, a class or a size makes another. */
static void a_digest_tells_folders_apart(void **state)
{
	const char *one = tmp_path(*state, "one"), *two = tmp_path(*state, "two");

	for (int i = 0; i < 2; i++) {
		put_image(i ? two : one, "cat", i ? "b.jpg" : "a.jpg", "jpeg_420.jpg", SIZE_MAX);
		put_image(i ? two : one, "cat", i ? "a.jpg" : "b.jpg", "jpeg_420.jpg", SIZE_MAX);
		put_image(i ? two : one, "dog", "c.jpg", "jpeg_420.jpg", 100);
	}
	assert_true(digest_of(one) == digest_of(two));
	put_image(two, "dog", "notes.txt", "jpeg_420.jpg", 10);
	assert_true(digest_of(one) == digest_of(two));
	assert_int_equal(truncate(tmp_path(*state, "two/train/dog/c.jpg"), 99), 0);
	assert_false(digest_of(one) == digest_of(two));
	assert_int_equal(truncate(tmp_path(*state, "two/train/dog/c.jpg"), 100), 0);
	assert_true(digest_of(one) == digest_of(two));
	assert_int_equal(rename(tmp_path(*state, "two/train/dog/c.jpg"),
				tmp_path(*state, "two/train/cat/c.jpg")),
			 0);
	assert_false(digest_of(one) == digest_of(two));
	assert_int_equal(rename(tmp_path(*state, "two/train/cat/c.jpg"),
				tmp_path(*state, "two/train/dog/d.jpg")),
			 0);
	assert_false(digest_of(one) == digest_of(two));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(images_are_listed_in_order),
		TEST(a_digest_tells_folders_apart),
		TEST(folders_without_images_are_errors),
		TEST(a_folder_is_read_once_however_many_links_lead_to_it),
		TEST(test_images_have_the_labels_of_training),
		TEST(folders_deeper_than_the_limit),
		TEST(classes_may_hold_folders_and_links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
