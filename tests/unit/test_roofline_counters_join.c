/* Which run of the ledger a file of counters is of. */
#include "counters_fixture.h"

/* 2  lab_gpu fp32  64        5  lab_gpu amp 128          8  other_gpu fp32 32
 * 3  lab_gpu fp32 128        6  lab_cpu fp32 16          9  lab_gpu fp32 128, profiled
 * 4  lab_gpu fp32 128 again  7  lab_cpu fp32 16, fwd    10  lab_gpu vgg16 fp32 8 */
static struct fixture *ledger(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row;

	add_gpu_run(f, "lab_gpu_resnet50_fp32_bs64_run1", "a", "fp32", 64, 100);
	add_gpu_run(f, "lab_gpu_resnet50_fp32_bs128_run1", "b", "fp32", 128, 100);
	add_gpu_run(f, "lab_gpu_resnet50_fp32_bs128_run2", "b", "fp32", 128, 100);
	set(&add_gpu_run(f, "tuesday", "c", "amp", 128, 100)->run_id, "R5");
	add_run(f, "lab_cpu", "d", 16, 500);
	set(&add_run(f, "lab_cpu", "e", 16, 200)->mode, "fwd");
	row = add_gpu_run(f, "other_gpu_resnet50_fp32_bs32_run1", "f", "fp32", 32, 100);
	set(&row->env, "other_gpu");
	add_gpu_run(f, "lab_gpu_resnet50_fp32_prof", "g", "fp32", 128, 30);
	set(&add_gpu_run(f, NULL, "h", "fp32", 8, 100)->model, "vgg16");
	use_peaks(f, state,
		  "{\"lab_gpu\": {\"peak_gflops\": 40000, \"peak_gbps\": 1000}, "
		  "\"other_gpu\": {\"peak_gflops\": 40000, \"peak_gbps\": 1000}, "
		  "\"lab_cpu\": {\"peak_gflops\": 420, \"peak_gbps\": 92}}");
	return f;
}

/* "env model precision batch mode" of every point that has counters. */
static void joined(const struct fixture *f, struct rfl_buf *out)
{
	for (size_t i = 0; i < f->pts->n; i++) {
		const struct rfl_point *p = &f->pts->points[i];

		if (p->counters_source)
			rfl_buf_printf(out, "%s%s %s %s %lld %s", out->len ? "; " : "", p->env,
				       p->model, p->precision, (long long)p->batch, p->mode);
	}
}

#define GPU64  "lab_gpu resnet50 fp32 64 train"
#define GPU128 "lab_gpu resnet50 fp32 128 train"
#define AMP128 "lab_gpu resnet50 amp 128 train"
#define CPU    "lab_cpu resnet50 fp32 16 train"
#define CPUFWD "lab_cpu resnet50 fp32 16 fwd"
#define OTHER  "other_gpu resnet50 fp32 32 train"
#define VGG    "lab_gpu vgg16 fp32 8 train"

static void labels_join(void **state)
{
	static const struct {
		const char *label, *run_id;
		const char *points; /* "": none */
		const char *note;   /* NULL: none of a capture without a run */
	} cases[] = {
		/* the suffixes do not count */
		{ "lab_gpu_resnet50_fp32_bs64_run1", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_run7", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_r3", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_r3_20251114_120856", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_20251114_120856", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_20251114_120856_2", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_prof", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_run1_prof", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_prof_bs64", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_ncu", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_train_prof", NULL, GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs128_prof", NULL, GPU128, NULL },
		/* without bs: the row with the label, else the only one */
		{ "lab_gpu_resnet50_fp32_prof", NULL, GPU128, NULL },
		{ "lab_gpu_resnet50_fp32_prof_20251114_120856", NULL, GPU128, NULL },
		{ "lab_gpu_resnet50_fp32_prof2", NULL, "",
		  "does not contain the batch, and logs/metrics.csv has lab_gpu resnet50 fp32 with "
		  "64 "
		  "and 128: add it to the name" },
		{ "lab_gpu_resnet50_amp_prof", NULL, AMP128, NULL },
		{ "lab_gpu_resnet50_amp", NULL, AMP128, NULL },
		{ "lab_gpu_vgg16_prof", NULL, VGG, NULL },
		{ "lab_gpu_vgg16", NULL, VGG, NULL },
		{ "other_gpu_resnet50_perf", NULL, OTHER, NULL },
		{ "other_gpu_resnet50_bs32", NULL, OTHER, NULL },
		/* without precision */
		{ "lab_gpu_resnet50_bs128", NULL, "",
		  "does not contain the precision, and logs/metrics.csv has lab_gpu resnet50 bs128 "
		  "with fp32 and amp" },
		{ "lab_gpu_resnet50_bs64", NULL, GPU64, NULL },
		/* without mode */
		{ "lab_cpu_resnet50_fp32_bs16_perf", NULL, "",
		  "does not contain the mode, and logs/metrics.csv has lab_cpu resnet50 fp32 bs16 "
		  "with train and fwd" },
		{ "lab_cpu_resnet50_fp32_bs16_fwd", NULL, CPUFWD, NULL },
		{ "lab_cpu_resnet50_fp32_bs16_train_run2", NULL, CPU, NULL },
		{ "lab_cpu_resnet50_fp32_bs16_fwd_bwd", NULL, "",
		  "has no timed run of lab_cpu resnet50 fp32 bs16 fwd_bwd" },
		/* a row with the label needs no grammar */
		{ "tuesday", NULL, AMP128, NULL },
		{ "tuesday_20251114_120856", NULL, AMP128, NULL },
		{ "wednesday", NULL, "", "its label 'wednesday' does not name a model" },
		{ "wednesday", "R5", AMP128, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_run1", "R5", AMP128, NULL },
		{ "wednesday", "R9", "", "does not name a model" },
		/* environments */
		{ "4090_resnet50_fp32_bs128", NULL, "",
		  "'4090' is not a valid environment name (a lower-case letter, then" },
		{ "Lab_resnet50_fp32_bs64", NULL, "", "'Lab' is not a valid environment name" },
		{ "resnet50_fp32_bs64", NULL, "", "does not name" },
		{ "gpu_resnet50_fp32_bs64", NULL, "",
		  "has no timed run of gpu resnet50 fp32 bs64" },
		{ "lab_gpu_resnet50_fp32_bs65", NULL, "",
		  "has no timed run of lab_gpu resnet50 fp32 bs65" },
		{ "lab_gpu_resnet50_bf16_bs64", NULL, "",
		  "has no timed run of lab_gpu resnet50 bf16 bs64" },
		{ "lab_gpu_mobilenet_v2_fp32_bs64", NULL, "",
		  "has no timed run of lab_gpu mobilenet_v2" },
		{ "", NULL, "", "does not name" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fixture *f = ledger(state);
		struct captures *c = captures_new(f);
		struct rfl_buf points;

		rfl_buf_init(&points, 0);
		add_capture(c, cases[i].label)->run_id = cases[i].run_id;
		if (strncmp(cases[i].label, "lab_cpu", 7) == 0)
			c->capture[0].source = "perf";
		assert_ok(merge(f), &f->err);
		assert_int_equal(f->pts->n, 7);
		joined(f, &points);
		if (strcmp(rfl_buf_str(&points), cases[i].points) != 0)
			fail_msg("%s: joins '%s', not '%s'; %s", cases[i].label,
				 rfl_buf_str(&points), cases[i].points,
				 rfl_buf_str(&f->report.notes));
		assert_int_equal(f->report.unjoined, cases[i].note != NULL);
		if (cases[i].note) {
			assert_notes(f, "matches no run");
			assert_notes(f, cases[i].note);
		} else {
			assert_null(strstr(rfl_buf_str(&f->report.notes), "matches no run"));
		}
		rfl_buf_fini(&points);
		fixture_free(f);
		free(c);
	}
}

/* The profiled row supplies batch and steps; its time is in no point. */
static void profiled_rows_are_not_timed(void **state)
{
	struct fixture *f = ledger(state);

	f->rows[7].step_ms_median = 5000;
	f->rows[7].samples_per_s = 1;
	assert_ok(merge(f), &f->err);
	assert_notes(f, "skipped 1 run recorded under a profiler");
	for (size_t i = 0; i < f->pts->n; i++)
		assert_true(f->pts->points[i].step_s < 1);
	fixture_free(f);
}

static void only_a_profiled_run(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	add_gpu_run(f, "lab_gpu_resnet50_fp32_prof", "a", "fp32", 128, 30);
	use_peaks(f, state, GPU_PEAKS);
	give_bytes(add_capture(c, "lab_gpu_resnet50_fp32_prof"), 1e9);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 0);
	assert_notes(f, "has no timed run of lab_gpu resnet50 fp32 bs128 train (runs labelled "
			"_prof are not timed)");
	fixture_free(f);
	free(c);
}

/* The label does not say the layout; its row does. */
static void layouts_are_told_by_the_row(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	add_gpu_run(f, NULL, "a", "fp32", 8, 100);
	set(&add_gpu_run(f, NULL, "b", "fp32", 8, 100)->layout, "nhwc");
	use_peaks(f, state, GPU_PEAKS);
	add_capture(c, "lab_gpu_resnet50_fp32_bs8_prof");
	assert_ok(merge(f), &f->err);
	assert_notes(f, "does not contain the layout");
	assert_notes(f, "with nchw and nhwc: use this label (--label) for the profiled run");

	set(&add_gpu_run(f, "lab_gpu_resnet50_fp32_bs8_prof", "c", "fp32", 8, 30)->layout, "nhwc");
	assert_ok(merge(f), &f->err);
	assert_null(f->pts->points[0].counters_source);
	assert_string_equal(f->pts->points[1].counters_source, "ncu");

	/* what was profiled is not what was timed */
	f->rows[2].img_size = 160;
	assert_ok(merge(f), &f->err);
	assert_null(f->pts->points[1].counters_source);
	assert_notes(f, "metrics.csv:4, the profiled run, has a different 'img_size'");
	fixture_free(f);
	free(c);
}

/* A configuration that was timed with 50 and with 100 steps is two points of the same work. */
static void one_capture_serves_equal_work(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	add_gpu_run(f, NULL, "a", "fp32", 8, 100);
	add_gpu_run(f, NULL, "b", "fp32", 8, 50);
	use_peaks(f, state, GPU_PEAKS);
	add_capture(c, "lab_gpu_resnet50_fp32_bs8_prof");
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 2);
	assert_string_equal(f->pts->points[0].counters_source, "ncu");
	assert_string_equal(f->pts->points[1].counters_source, "ncu");
	fixture_free(f);
	free(c);
}

/* Another library, or another device under the same name, moves other bytes. */
static void another_engine_is_other_work(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	set(&add_gpu_run(f, NULL, "a", "fp32", 8, 100)->engine, "torch");
	set(&add_gpu_run(f, NULL, "b", "fp32", 8, 100)->engine, "cudnn");
	use_peaks(f, state, GPU_PEAKS);
	add_capture(c, "lab_gpu_resnet50_fp32_bs8_prof");
	assert_ok(merge(f), &f->err);
	assert_notes(f,
		     "does not contain the engine, and logs/metrics.csv has lab_gpu resnet50 fp32 "
		     "bs8 with torch and cudnn");

	/* both were counted: each has its own */
	set(&f->rows[0].run_id, "R1");
	set(&f->rows[1].run_id, "R2");
	add_capture(c, "x")->run_id = "R2";
	c->capture[0].run_id = "R1";
	give_bytes(&c->capture[0], 1e9);
	give_bytes(&c->capture[1], 2e9);
	c->capture[0].steps = c->capture[1].steps = 1;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].bytes_counters, 1e9, 0);
	assert_close(f->pts->points[1].bytes_counters, 2e9, 0);
	fixture_free(f);
	free(c);
}

/* Equal work serves only where there is nothing of its own. */
static void own_counters_come_first(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	set(&add_gpu_run(f, NULL, "a", "fp32", 8, 100)->run_id, "R1");
	set(&add_gpu_run(f, NULL, "b", "fp32", 8, 50)->run_id, "R2");
	use_peaks(f, state, GPU_PEAKS);
	add_capture(c, "x")->run_id = "R1";
	give_bytes(&c->capture[0], 1e9);
	c->capture[0].steps = 1;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].bytes_counters, 1e9, 0);
	assert_close(f->pts->points[1].bytes_counters, 1e9, 0);
	/* one that could not be counted is no reason to take nothing */
	add_capture(c, "y")->run_id = "R2";
	c->capture[1].steps = 1;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[1].bytes_counters, 1e9, 0);
	give_bytes(&c->capture[1], 3e9);
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].bytes_counters, 1e9, 0);
	assert_close(f->pts->points[1].bytes_counters, 3e9, 0);
	fixture_free(f);
	free(c);
}

/* The record of a process counts nothing, whatever it is called. */
static void time_logs_need_no_run(void **state)
{
	struct fixture *f = ledger(state);
	struct captures *c = captures_new(f);

	add_capture(c, "4090_resnet50_fp32_bs128")->source = "time";
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->report.unjoined, 0);
	assert_null(strstr(rfl_buf_str(&f->report.notes), "4090"));
	fixture_free(f);
	free(c);
}

/* A model that the program does not know, whose name ends in one that it does. */
static void models_of_the_ledger_are_known(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	set(&add_gpu_run(f, NULL, "a", "fp32", 8, 100)->model, "my_resnet50");
	use_peaks(f, state, GPU_PEAKS);
	f->options.skip_missing = true;
	add_capture(c, "lab_gpu_my_resnet50_fp32_bs8_prof");
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->report.unjoined, 0);
	fixture_free(f);
	free(c);
}

static void labels_of_two_runs_tell_nothing(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	add_gpu_run(f, "mine", "a", "fp32", 8, 100);
	add_gpu_run(f, "mine", "b", "fp32", 16, 100);
	use_peaks(f, state, GPU_PEAKS);
	add_capture(c, "mine");
	assert_ok(merge(f), &f->err);
	assert_notes(f, "metrics.csv:2 and :3 are different runs with its label");
	fixture_free(f);
	free(c);
}

static void environments_that_were_not_asked_for(void **state)
{
	static const char *const only[] = { "lab_cpu" };
	struct fixture *f = ledger(state);
	struct captures *c = captures_new(f);

	f->options.envs = only;
	f->options.nenvs = 1;
	add_capture(c, "lab_gpu_resnet50_fp32_bs64_prof");
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->report.unjoined, 0);
	assert_int_equal(f->report.other_captures, 1);
	assert_string_equal(rfl_buf_str(&f->report.notes), "");
	fixture_free(f);
	free(c);
}

/* A file of ncu with the label of a timed run may be of that very run. */
static void slowed_runs_are_suspected(void **state)
{
	struct fixture *f = ledger(state);
	struct captures *c = captures_new(f);

	add_capture(c, "lab_gpu_resnet50_fp32_bs64_run1");
	assert_ok(merge(f), &f->err);
	assert_notes(f, "has the label of logs/metrics.csv:2, a run with times that are used");
	c->capture[0].source = "perf";
	assert_ok(merge(f), &f->err);
	assert_null(strstr(rfl_buf_str(&f->report.notes), "has the label"));
	c->capture[0].source = "ncu";
	c->capture[0].label = "lab_gpu_resnet50_fp32_prof";
	assert_ok(merge(f), &f->err);
	assert_null(strstr(rfl_buf_str(&f->report.notes), "has the label"));
	fixture_free(f);
	free(c);
}

/* A label says nothing of the device on which a file was counted. */
static void captures_of_another_device_do_not_join(void **state)
{
	static const struct {
		const char *label, *source, *chip, *device, *points, *note;
	} cases[] = {
		{ "lab_cpu_resnet50_fp32_bs16_train_prof", "ncu", "GA100", NULL, "",
		  "matches no run: it was counted on a GPU (GA100), but lab_cpu resnet50 ran on "
		  "cpu; use the label of a run on that device (--label)" },
		{ "lab_cpu_resnet50_fp32_bs16_run5", "ncu", NULL, NULL, "",
		  "it was counted on a GPU, but lab_cpu resnet50 ran on cpu" },
		{ "lab_gpu_resnet50_fp32_bs64_prof", "perf", NULL, NULL, "",
		  "it was counted on a CPU, but lab_gpu resnet50 ran on cuda" },
		{ "lab_gpu_resnet50_fp32_bs64_run1", "ncu", "GA100", "NVIDIA H100 80GB HBM3", "",
		  "it was counted on a GPU (GA100), but lab_gpu resnet50 ran on NVIDIA H100" },
		/* one compute capability, or a device without a chip */
		{ "lab_gpu_resnet50_fp32_bs64_prof", "ncu", "GA102", "NVIDIA GeForce RTX 3070",
		  GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_prof", "ncu", "GA102", "a card", GPU64, NULL },
		{ "lab_gpu_resnet50_fp32_bs64_prof", "rocprof", NULL, "NVIDIA A100", GPU64, NULL },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fixture *f = ledger(state);
		struct captures *c = captures_new(f);
		struct rfl_buf points = { .len = 0 };
		struct rfl_capture *capture = add_capture(c, cases[i].label);

		capture->source = cases[i].source;
		capture->chip = cases[i].chip;
		if (cases[i].device)
			set(&f->rows[0].device_name, cases[i].device);
		assert_ok(merge(f), &f->err);
		joined(f, &points);
		assert_string_equal(rfl_buf_str(&points), cases[i].points);
		assert_int_equal(f->report.unjoined, cases[i].note != NULL);
		if (cases[i].note)
			assert_notes(f, cases[i].note);
		rfl_buf_fini(&points);
		finish(f, c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(labels_join),
		T(captures_of_another_device_do_not_join),
		T(profiled_rows_are_not_timed),
		T(only_a_profiled_run),
		T(layouts_are_told_by_the_row),
		T(one_capture_serves_equal_work),
		T(another_engine_is_other_work),
		T(own_counters_come_first),
		T(time_logs_need_no_run),
		T(models_of_the_ledger_are_known),
		T(labels_of_two_runs_tell_nothing),
		T(environments_that_were_not_asked_for),
		T(slowed_runs_are_suspected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
