/* Which steps counters are of, and what is said when measured and counted work do not fit. */
#include "counters_fixture.h"

/* --- steps --- */

static void who_tells_the_steps(void **state)
{
	static const struct {
		int64_t own, of_label, of_all;
		int64_t steps; /* -1: not known */
		const char *note;
		const char *label;
	} cases[] = {
		{ 7, 0, 0, 7, PROF ": 7 steps", PROF },
		{ 7, 35, 50, 7, PROF ": 7 steps", PROF },
		{ -1, 35, 50, 35, "35 steps as given by --counter-steps", PROF },
		{ -1, 0, 50, 30, "30 steps as in logs/metrics.csv:3", PROF },
		{ -1, 0, 0, 30, "30 steps as in", PROF },
		{ -1, 0, 50, 50, "50 steps as given by --counter-steps",
		  "lab_gpu_resnet50_fp32_bs4_prof" },
		{ -1, 0, 0, -1,
		  "the number of steps of lab_gpu_resnet50_fp32_bs4_prof is unknown: no row of "
		  "the ledger has its label; use --counter-steps lab_gpu_resnet50_fp32_bs4_prof=N",
		  "lab_gpu_resnet50_fp32_bs4_prof" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct captures *c;
		struct fixture *f = profiled(state, &c);
		struct rfl_capture *capture = add_capture(c, cases[i].label);
		struct rfl_counter_steps said[2];
		const struct rfl_point *p;

		f->in.counters.steps = said;
		if (cases[i].of_all)
			said[f->in.counters.nsteps++] =
				(struct rfl_counter_steps){ NULL, cases[i].of_all };
		if (cases[i].of_label)
			said[f->in.counters.nsteps++] =
				(struct rfl_counter_steps){ cases[i].label, cases[i].of_label };
		capture->steps = cases[i].own;
		give_bytes(capture, 1000 * BYTES / 25);
		assert_ok(merge(f), &f->err);
		p = &f->pts->points[0];
		assert_int_equal(p->counters_steps, cases[i].steps);
		assert_non_null(strstr(p->counters_note, cases[i].note));
		if (cases[i].steps > 0) {
			assert_close(p->bytes_counters, 40 * BYTES / (double)cases[i].steps, 1e-14);
		} else {
			assert_true(isnan(p->bytes_counters));
			assert_non_null(strstr(p->bytes_source, "unfused (counters not used: the "
								"number of steps"));
			assert_notes(f, "counters: the number of steps");
		}
		finish(f, c);
	}
}

/* Under one label a timed run of 100 steps and a profiled one of 30. */
static void two_rows_of_one_label(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	add_gpu_run(f, "mine", "a", "fp32", 4, 100);
	add_gpu_run(f, "mine", "a", "fp32", 4, 30);
	use_peaks(f, state, GPU_PEAKS);
	give_bytes(add_capture(c, "mine"), 30 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_non_null(strstr(f->pts->points[0].bytes_source,
			       "rows 2 and 3 of the ledger have its label but 100 and 30 steps"));
	finish(f, c);
}

/* Numbers of a ledger that was written by hand. */
static void steps_beyond_all_bounds(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	f->rows[1].iters = INT64_MAX - 1;
	add_kernel(c, "conv", 30, 0);
	give_bytes(capture, 30 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].counters_validity, "doubtful");
	capture->nranges = 0;
	capture->total_kind = RFL_RANGE_PROCESS;
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->points[0].counters_steps, -1);
	finish(f, c);
}

static void steps_of_no_label(void **state)
{
	const struct rfl_counter_steps said = { "typo", 3 };
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	f->in.counters.steps = &said;
	f->in.counters.nsteps = 1;
	add_capture(c, PROF);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "--counter-steps typo=3: no counters have this label");
	finish(f, c);
}

static void steps_are_parsed(void **state)
{
	static const struct {
		const char *text, *label;
		int64_t steps; /* 0: refused */
	} cases[] = {
		{ "30", NULL, 30 },  { "a=30", "a", 30 }, { "a=b=30", "a=b", 30 },
		{ "=30", NULL, 0 },  { "a=", NULL, 0 },   { "0", NULL, 0 },
		{ "a=-1", NULL, 0 }, { "a", NULL, 0 },    { "1.5", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_counter_steps s;
		struct rfl_err err = RFL_ERR_INIT;
		char room[40];

		(void)snprintf(room, sizeof(room), "%s", cases[i].text);
		if (!cases[i].steps) {
			assert_int_equal(rfl_counter_steps_parse(room, &s, &err), RFL_EUSAGE);
			assert_says(&err, "--counter-steps");
			continue;
		}
		assert_ok(rfl_counter_steps_parse(room, &s, &err), &err);
		assert_int_equal(s.steps, cases[i].steps);
		if (cases[i].label)
			assert_string_equal(s.label, cases[i].label);
		else
			assert_null(s.label);
	}
}

/* --- what does not fit --- */

static void ratios_out_of_range(void **state)
{
	static const struct {
		double ratio;
		bool doubtful;
		const char *cause;
	} cases[] = {
		{ 0.3, true,
		  "(1) the profiled run had a different number of steps (9 would match): "
		  "use --counter-steps " PROF "=N" },
		{ 0.49, true, "Winograd" },
		{ 0.51, false, NULL },
		{ 1.0, false, NULL },
		{ 1.6, false, NULL },
		{ 1.99, false, NULL },
		{ 3.0, true, "a different number of steps (90 would match)" },
		{ 3.0, true, "(2) the counters include elementwise work and the optimizer" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct captures *c;
		struct fixture *f = profiled(state, &c);
		struct rfl_capture *capture = add_capture(c, PROF);
		const struct rfl_point *p;

		give_bytes(capture, 30 * BYTES);
		give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * cases[i].ratio * FLOPS);
		assert_ok(merge(f), &f->err);
		p = &f->pts->points[0];
		assert_close(p->flops_measured_over_counted, cases[i].ratio, 1e-14);
		if (!cases[i].doubtful) {
			assert_string_equal(p->bytes_source, "counters");
			assert_null(strstr(rfl_buf_str(&f->report.notes), "disagrees with"));
		} else {
			assert_non_null(strstr(p->bytes_source, "unfused (counters not used: they "
								"disagree with the count: "));
			assert_close(p->ai, p->ai_unfused, 0);
			assert_string_equal(p->counters_validity, "doubtful");
			assert_notes(f, "counters: " PROF " disagrees with the count: ");
			assert_notes(f, cases[i].cause);
			assert_non_null(strstr(p->verdict, "disagree with the count"));
		}
		finish(f, c);
	}
}

/* 5 steps of warm-up in 35: every kernel ran in those as well. */
static void a_profiled_warm_up(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	struct rfl_counter_steps said = { PROF, 35 };
	const struct rfl_point *p;

	add_kernel(c, "conv", 35 * 4, 0);
	add_kernel(c, "relu", 35, 0);
	give_bytes(capture, 35 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 35 * FLOPS);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->flops_measured_over_counted, 35.0 / 30, 1e-14);
	assert_string_equal(p->counters_validity, "doubtful");
	assert_notes(f, "2 of 2 kernels have a launch count that is not a multiple of 30 "
			"(30 steps); likely causes: (1) the warm-up was profiled too, 35 steps in "
			"total: use --counter-steps " PROF "=35");

	f->in.counters.steps = &said;
	f->in.counters.nsteps = 1;
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->flops_measured_over_counted, 1, 1e-14);
	assert_close(p->bytes_counters, BYTES, 1e-14);
	assert_string_equal(p->counters_validity, "ok");
	assert_string_equal(p->bytes_source, "counters");
	finish(f, c);
}

/* 20 steps, where the ledger has 30: detected by the FLOPs, or by the launches alone. */
static void another_number_of_steps(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	add_kernel(c, "conv", 20 * 4, 0);
	add_kernel(c, "relu", 20, 0);
	give_bytes(capture, 20 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "(1) the profiled run had a different number of steps (all launch counts "
			"are multiples of 20): use --counter-steps");
	capture->rows_left_out = 3;
	assert_ok(merge(f), &f->err);
	assert_notes(
		f,
		"(1) some rows of the file could not be read and were skipped; (2) the profiled");
	capture->rows_left_out = 0;
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 20 * 1.01 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "0.673 x the FLOPs counted from the network; 2 of 2 kernels");
	assert_notes(f, "(1) the profiled run had a different number of steps (20 would match)");
	finish(f, c);
}

/* As long a warm-up as a window: the launches fit both, the FLOPs decide. */
static void a_warm_up_as_long_as_the_window(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	f->rows[1].warmup = 30;
	add_kernel(c, "conv", 60, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 60 * 0.98 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "(1) the warm-up was profiled too, 60 steps in total");
	/* twice a step is no warm-up when the FLOPs are those of 30 */
	know(capture->total, RFL_QUANTITY_FLOPS_FP32, 30 * FLOPS);
	know(capture->total, RFL_QUANTITY_FLOPS, 30 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_null(strstr(rfl_buf_str(&f->report.notes), "disagrees with"));
	finish(f, c);
}

/* Steps that were counted live are not in doubt; what was counted may be. */
static void live_counts_that_do_not_fit(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	capture->steps = 1;
	give_bytes(capture, BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 0.3 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "0.3 x the FLOPs counted from the network (1 step); likely causes: (1) "
			"FLOPs of another precision were not counted");
	assert_null(strstr(rfl_buf_str(&f->report.notes), "--counter-steps"));
	assert_string_equal(
		f->pts->points[0].bytes_source,
		"unfused (counters not used: they disagree with the count: 0.3 x the FLOPs counted "
		"from the network (1 step); see counters_note for the causes)");
	assert_non_null(strstr(f->pts->points[0].counters_note, "; likely causes: (1) FLOPs of"));
	finish(f, c);
}

/* PyTorch runs convolutions of an fp32 network in TF32 by default: the launches fit the
 * steps, and what is missing may be the FLOPs of the Tensor Cores, or most of the kernels. */
static void tf32_that_was_not_counted(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	add_kernel(c, "conv", 30 * 4, 0);
	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * 0.04 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "0.04 x the FLOPs counted from the network (30 steps); likely causes: (1) "
			"FLOPs of another precision were not counted");
	assert_notes(f, "(4) the profiled run had a different number of steps (1 would match)");
	assert_string_equal(f->pts->points[0].bytes_source,
			    "unfused (counters not used: they disagree with the count: 0.04 x the "
			    "FLOPs counted "
			    "from the network (30 steps); see counters_note for the causes)");
	assert_string_equal(f->pts->points[0].counters_validity, "doubtful");
	assert_close(f->pts->points[0].bytes_counters, BYTES, 1e-14);
	assert_non_null(
		strstr(f->pts->points[0].verdict, "; the counters disagree with the count"));
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_TF32, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_FP16, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_BF16, 0);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "likely causes: (1) not every kernel was profiled");
	assert_null(strstr(rfl_buf_str(&f->report.notes), "another precision"));
	assert_non_null(strstr(f->pts->points[0].bytes_source, "unfused (counters not used: they "
							       "disagree"));
	finish(f, c);
}

/* One small kernel of each step, by a filter of the profiler: its launches fit the steps. */
static void a_fragment_sets_no_intensity(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	double ai;

	assert_ok(merge(f), &f->err);
	ai = f->pts->points[0].ai;
	add_kernel(c, "elementwise", 30, 0);
	give_bytes(capture, 30 * 0.0085 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * 0.000104 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].ai, ai, 0);
	assert_non_null(strstr(
		f->pts->points[0].bytes_source,
		"unfused (counters not used: they disagree with the count: 0.000104 x the FLOPs"));
	finish(f, c);
}

static void a_few_odd_kernels_are_said(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	add_kernel(c, "conv", 30, 0);
	add_kernel(c, "relu", 300, 0);
	add_kernel(c, "tune", 7, 0);
	give_bytes(capture, 30 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source, "counters");
	assert_non_null(strstr(f->pts->points[0].counters_note,
			       "1 of 3 kernels have a launch count that is not a multiple of 30"));
	finish(f, c);
}

static void too_many_bytes(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	give_bytes(add_capture(c, PROF), 30 * 100 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "x the bytes of unfused operations (30 steps)");
	assert_non_null(strstr(f->pts->points[0].bytes_source, "unfused ("));
	finish(f, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(who_tells_the_steps),
		T(two_rows_of_one_label),
		T(steps_beyond_all_bounds),
		T(steps_of_no_label),
		T(steps_are_parsed),
		T(ratios_out_of_range),
		T(a_profiled_warm_up),
		T(another_number_of_steps),
		T(a_warm_up_as_long_as_the_window),
		T(live_counts_that_do_not_fit),
		T(a_fragment_sets_no_intensity),
		T(tf32_that_was_not_counted),
		T(a_few_odd_kernels_are_said),
		T(too_many_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
