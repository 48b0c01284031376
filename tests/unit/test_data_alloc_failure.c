/* Every allocation of opening a source and making its first batches fails once. */
#include "tests/unit/alloc_failure.h"
#include "tests/unit/image_fixture.h"
#include "tests/unit/records_fixture.h"

#include "data/data.h"
#include "data/jpeg.h"

static char dir[4096];

static enum rfl_rc open_and_take(enum rfl_data_kind kind, const char *under,
				 const struct rfl_data_shape *shape, struct rfl_err *err)
{
	struct rfl_data_spec spec = { .kind = kind, .augment = true, .ahead = 1 };
	struct rfl_data *data = NULL;
	struct rfl_batch batch;
	char path[4200];
	enum rfl_rc rc;

	snprintf(path, sizeof(path), "%s/%s", dir, under);
	spec.dir = path;
	rc = rfl_data_open_images(&spec, shape, 3, RFL_LAYOUT_NCHW, NULL, &data, err);
	assert_int_equal(rc == RFL_OK, data != NULL);
	for (int i = 0; i < 2 && rc == RFL_OK; i++)
		rc = rfl_data_next(data, &batch, err);
	rfl_data_free(data);
	return rc;
}

static const struct rfl_data_shape small = { "net", 3, 16, 16, 10 };

static enum rfl_rc folder(struct rfl_err *err)
{
	return open_and_take(RFL_DATA_IMAGEFOLDER, "images", &small, err);
}

static enum rfl_rc cached(struct rfl_err *err)
{
	return open_and_take(RFL_DATA_IMAGEFOLDER_CACHED, "images", &small, err);
}

static enum rfl_rc cifar10(struct rfl_err *err)
{
	const struct rfl_data_shape shape = { "net", 3, 32, 32, 10 };

	return open_and_take(RFL_DATA_CIFAR10, "cifar", &shape, err);
}

static enum rfl_rc mnist(struct rfl_err *err)
{
	const struct rfl_data_shape shape = { "net", 1, 28, 28, 10 };

	return open_and_take(RFL_DATA_MNIST, "mnist", &shape, err);
}

static void each_allocation_fails(void **state)
{
	static const struct alloc_operation operations[] = {
		{ "folder", folder, 10 },
		{ "cached folder", cached, 10 },
		{ "cifar10", cifar10, 5 },
		{ "mnist", mnist, 5 },
	};
	struct rfl_jpeg *j = NULL;
	bool have_jpeg = rfl_jpeg_new(&j, NULL) == RFL_OK;

	rfl_jpeg_free(j);
	snprintf(dir, sizeof(dir), "%s", (const char *)*state);
	put_image(tmp_path(*state, "images"), "a", "1.jpg", "jpeg_420.jpg", SIZE_MAX);
	put_image(tmp_path(*state, "images"), "a", "2.jpg", "jpeg_wide.jpg", SIZE_MAX);
	put_image(tmp_path(*state, "images"), "b", "3.jpg", "jpeg_progressive.jpg", SIZE_MAX);
	put_image(tmp_path(*state, "images"), "b", "cut.jpg", "jpeg_420.jpg", 2000);
	put_cifar10(tmp_path(*state, "cifar"), 1);
	put_mnist(tmp_path(*state, "mnist"), 4, ".gz");
	for (size_t i = have_jpeg ? 0 : 2; i < RFL_ARRAY_LEN(operations); i++)
		assert_each_allocation_fails(&operations[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_allocation_fails, tmpdir_make, tmpdir_remove),
	};

	watch_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
