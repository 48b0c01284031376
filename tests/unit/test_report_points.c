/* Points of one environment, model, precision, mode and batch are distinguished by their facts. */
#include "roofline_fixture.h"

#include <math.h>

#include "report/runs.h"

#define GPU_PEAKS "{\"lab_gpu\": {\"peak_gflops\": 14000, \"peak_gbps\": 400}}"

static void assert_variant(const struct fixture *f, size_t i, const char *words)
{
	const char *have = f->pts->points[i].variant;

	assert_string_equal(have ? have : "(none)", words);
}

static void alone_there_is_nothing_to_tell(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	add_run(f, "lab_cpu", "aa", 4, 510);
	add_run(f, "lab_cpu", "bb", 8, 900);
	set(&add_run(f, "lab_cpu", "cc", 16, 900)->optimizer, "adamw");
	set(&add_run(f, "lab_cpu", "dd", 4, 300)->precision, "bf16");
	set(&add_run(f, "lab_cpu", "ee", 4, 200)->mode, "fwd_bwd");
	set(&add_run(f, "lab_cpu", "ff", 4, 100)->model, "resnet18");
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 6);
	for (size_t i = 0; i < f->pts->n; i++)
		assert_variant(f, i, "(none)");
	fixture_free(f);
}

static void what_differs_is_said(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row;

	add_run(f, "lab_cpu", "aa", 16, 500);
	add_run(f, "lab_cpu", "xx", 8, 500); /* another batch: of no concern */
	set(&add_run(f, "lab_cpu", "bb", 16, 510)->optimizer, "adamw");
	row = add_run(f, "lab_cpu", "cc", 16, 520);
	set(&row->data_mode, "imagefolder");
	row->workers = 8;
	row = add_run(f, "lab_cpu", "dd", 16, 530);
	row->accum = 4;
	row->micro_batch = 4;
	set(&row->layout, "nhwc");
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 5);
	assert_variant(f, 0, "(none)"); /* by batch, as in the summary */
	assert_variant(f, 1, "layout nchw, accum 1, optimizer sgd, data_mode synthetic");
	assert_variant(f, 2, "layout nchw, accum 1, optimizer adamw, data_mode synthetic");
	assert_variant(f, 3,
		       "layout nchw, accum 1, optimizer sgd, data_mode imagefolder, workers 8");
	assert_variant(f, 4, "layout nhwc, accum 4, optimizer sgd, data_mode synthetic");
	fixture_free(f);
}

/* One environment may have machines with other devices or numbers of threads: the hash is the
 * same, since it is of what was asked for. */
static void devices_and_threads_are_said(void **state)
{
	struct fixture *f = fixture_new();

	set(&add_run(f, "lab_cpu", "aa", 4, 500)->device_name, "EPYC 9B45");
	set(&add_run(f, "lab_cpu", "aa", 4, 300)->device_name, "Xeon 8480+, 56 cores");
	add_run(f, "lab_cpu", "aa", 8, 800)->threads = 1;
	add_run(f, "lab_cpu", "aa", 8, 400)->threads = 4;
	for (size_t i = 2; i < 4; i++)
		set(&f->rows[i].config_hash, "bb");
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 4);
	assert_variant(f, 0, "device_name EPYC 9B45");
	assert_variant(f, 1, "device_name Xeon 8480+, 56 cores");
	assert_variant(f, 2, "threads 1");
	assert_variant(f, 3, "threads 4");
	fixture_free(f);
}

/* The batch of a point is that of one GPU: 2 x 32 are a variant of 32, not of 64. */
static void processes_are_said(void **state)
{
	struct fixture *f = fixture_new();
	static const int64_t sizes[][2] = { { 32, 1 }, { 64, 2 }, { 64, 1 } };

	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
		char hash[2] = { (char)('a' + (int)i), '\0' };
		struct rfl_ledger_row *row = add_run(f, "lab_gpu", hash, sizes[i][0], 100);

		set(&row->backend, "cuda");
		row->micro_batch = 32;
		row->accum = i == 2 ? 2 : 1;
		row->world_size = sizes[i][1];
	}
	use_peaks(f, state, GPU_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 3);
	assert_int_equal(f->pts->points[1].batch, 32);
	assert_variant(f, 0, "world_size 1");
	assert_variant(f, 1, "world_size 2");
	assert_variant(f, 2, "(none)");
	fixture_free(f);
}

/* The hash is made of more than the facts. */
static void another_hash_is_said(void **state)
{
	struct fixture *f = fixture_new();

	for (size_t i = 0; i < 4; i++) {
		char hash[2] = { (char)('a' + (int)i), '\0' };
		struct rfl_ledger_row *row = add_run(f, "lab_cpu", hash, 4, 500);

		row->momentum = i == 1 ? 0 : 0.9;
	}
	set(&add_run(f, "lab_cpu", "e", 4, 500)->optimizer, "adamw");
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 5);
	assert_variant(f, 0, "optimizer sgd, momentum 0.9, config_hash a");
	assert_variant(f, 1, "optimizer sgd, momentum 0");
	assert_variant(f, 2, "optimizer sgd, momentum 0.9, config_hash c");
	assert_variant(f, 3, "optimizer sgd, momentum 0.9, config_hash d");
	assert_variant(f, 4, "optimizer adamw");
	fixture_free(f);
}

/* A point need not be distinguished from a configuration without one. */
static void what_is_left_out_is_not_told_from(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	add_run(f, "lab_cpu", "bb", 4, 520);
	set(&f->rows[1].optimizer, "adamw");
	set(&f->rows[1].status, "crash");
	add_run(f, "lab_gpu", "cc", 4, 100);
	f->options.skip_missing = true;
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	assert_variant(f, 0, "(none)");
	fixture_free(f);
}

static void render(const struct fixture *f, enum rfl_format format, struct rfl_buf *out)
{
	rfl_buf_init(out, 0);
	rfl_table_finish(rfl_points_table(f->pts, rfl_format_for_people(format)), format, out);
}

static void the_table_has_a_column_where_one_is_needed(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_buf out;

	add_run(f, "lab_cpu", "aa", 4, 500);
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	render(f, RFL_FORMAT_TABLE, &out);
	assert_null(strstr(rfl_buf_str(&out), "Variant"));
	rfl_buf_fini(&out);

	set(&add_run(f, "lab_cpu", "bb", 4, 510)->optimizer, "adamw");
	assert_ok(merge(f), &f->err);
	render(f, RFL_FORMAT_TABLE, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "Layout  Variant"));
	assert_non_null(strstr(rfl_buf_str(&out), "\nlab_cpu resnet50 fp32 bs4 train nchw, adamw: "
						  "compute-bound: "));
	rfl_buf_fini(&out);
	render(f, RFL_FORMAT_JSON, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "\"variant\": \"optimizer adamw\""));
	rfl_buf_fini(&out);
	fixture_free(f);
}

/* 60 and 68 samples/s by two processes: each has 30 and 34, with a deviation of sqrt(8). */
static void the_summary_has_the_spread_of_one_gpu(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_buf out;

	for (size_t i = 0; i < 2; i++) {
		struct rfl_ledger_row *row = add_run(f, "lab_gpu", "aa", 64, 64e3 / (i ? 68 : 60));

		set(&row->backend, "cuda");
		row->micro_batch = 32;
		row->accum = 1;
		row->world_size = 2;
	}
	use_peaks(f, state, GPU_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].samples_per_s, 32, 1e-12);
	assert_close(f->pts->points[0].samples_per_s_std, sqrt(8), 1e-12);
	rfl_buf_init(&out, 0);
	rfl_table_finish(rfl_points_summary(f->pts, true), RFL_FORMAT_TABLE, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "  2     32.000  2.828  8.84  "));
	assert_null(strstr(rfl_buf_str(&out), "Layout"));
	rfl_buf_fini(&out);
	fixture_free(f);
}

/* The columns of options appear when the options vary; layers are no rows. */
static void the_summary_tells_steps_apart(void **state)
{
	static char part[] = "conv1";
	struct fixture *f = fixture_new();
	struct rfl_buf out;

	add_run(f, "lab_cpu", "aa", 4, 500);
	set(&add_run(f, "lab_cpu", "bb", 4, 510)->layout, "nhwc");
	add_run(f, "lab_cpu", "cc", 8, 900);
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 3);
	f->pts->points[2].part = part;
	rfl_buf_init(&out, 0);
	rfl_table_finish(rfl_points_summary(f->pts, true), RFL_FORMAT_MD, &out);
	assert_non_null(
		strstr(rfl_buf_str(&out), "| Layout | Variant | n | Samples/s | GFLOP/s |"));
	assert_null(strstr(rfl_buf_str(&out), "| Mode |"));
	assert_non_null(strstr(rfl_buf_str(&out), "| 4 | nhwc | nhwc | 1 | 7.8431 |"));
	assert_null(strstr(rfl_buf_str(&out), "| 8 |"));
	/* the rate of language models is in tokens, for people */
	for (size_t i = 0; i < f->pts->n; i++)
		f->pts->points[i].context_length = 100;
	rfl_buf_reset(&out);
	rfl_table_finish(rfl_points_summary(f->pts, true), RFL_FORMAT_MD, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "| n | Tokens/s | GFLOP/s |"));
	assert_non_null(strstr(rfl_buf_str(&out), "| 4 | nhwc | nhwc | 1 | 784.31 |"));
	rfl_buf_fini(&out);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(alone_there_is_nothing_to_tell),
		T(what_differs_is_said),
		T(devices_and_threads_are_said),
		T(processes_are_said),
		T(another_hash_is_said),
		T(what_is_left_out_is_not_told_from),
		T(the_table_has_a_column_where_one_is_needed),
		T(the_summary_has_the_spread_of_one_gpu),
		T(the_summary_tells_steps_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
