/* From ledger, counts and ceilings to points: every number against one worked out by hand. */
#include "roofline_fixture.h"

#include "complexity/count.h"
#include "complexity/zoo.h"

/* ResNet-50: 4089184256 MACs forward; a training step counts 24299077632 FLOPs per sample. */
#define FORWARD_FLOPS  (2 * 4089184256.0)
#define TRAINING_FLOPS 24299077632.0

static void assert_consistent(const struct rfl_point *p)
{
	assert_close(p->percent_of_attainable / 100 * p->attainable_gflops, p->attained_gflops,
		     1e-12);
	assert_close(p->ai * p->bytes_per_step, p->flops_per_step, 1e-12);
	assert_close(p->attained_gflops * 1e9 * p->step_s, p->flops_per_step, 1e-12);
	assert_close(p->knee_ai * p->peak_gbps, p->peak_gflops, 1e-12);
	assert_true(p->attainable_gflops <= p->peak_gflops * (1 + 1e-12));
	assert_true(p->attainable_gflops <= p->ai * p->peak_gbps * (1 + 1e-12));
	assert_true(p->ai_unfused <= p->ai_fused && p->ai_fused <= p->ai_compulsory);
	assert_true(p->ai_lo <= p->ai && p->ai <= p->ai_hi);
	assert_true(p->attained_gflops_lo <= p->attained_gflops);
	assert_true(p->attained_gflops <= p->attained_gflops_hi);
	assert_non_null(p->verdict);
}

static void one_run(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row = add_run(f, "lab_cpu", "aa", 4, 500);
	const struct rfl_point *p;

	set(&row->flags, "unstable_not drift unstable busy");
	row->fwd_ms_mean = 150;
	row->bwd_ms_mean = 320;
	row->opt_ms_mean = 25;
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	p = &f->pts->points[0];
	assert_consistent(p);

	assert_string_equal(p->env, "lab_cpu");
	assert_string_equal(p->engine, "torch 1.13.1");
	assert_int_equal(p->batch, 4);
	assert_int_equal(p->runs, 1);
	assert_int_equal(p->steps, 10);
	assert_close(p->step_s, 0.5, 1e-15);
	assert_close(p->step_s_lo, 0.49, 1e-15); /* p10 */
	assert_close(p->step_s_hi, 0.52, 1e-15); /* p90 */
	assert_string_equal(p->step_source, "p10-p90 of the steps");
	assert_close(p->samples_per_s, 8, 1e-15);
	assert_close(p->fwd_ms, 150, 0);
	assert_true(isnan(p->data_wait_ms));

	/* 4 x 24299077632 = 97196310528 FLOP in 0.5 s = 194.392621056 GFLOP/s */
	assert_close(p->flops_per_step, 97196310528.0, 0);
	assert_string_equal(p->flops_source, "counted: forward + dgrad + wgrad");
	assert_close(p->attained_gflops, 194.392621056, 1e-12);
	assert_close(p->attained_gflops_lo, 186.91598178461538, 1e-12); /* / 0.52 */
	assert_close(p->attained_gflops_hi, 198.35981740408163, 1e-12); /* / 0.49 */

	assert_string_equal(p->compute_key, "fp32.vector");
	assert_string_equal(p->peak_gflops_status, "user");
	assert_close(p->peak_gflops, 420, 1e-15);
	assert_close(p->peak_gbps, 92, 1e-15);
	assert_close(p->knee_ai, 4.565217391304348, 1e-14);
	assert_string_equal(p->bytes_source, "unfused");
	assert_close(p->ai, p->ai_unfused, 0);
	/* right of the ridge point: 194.39 of 420; 97.196 / 420 = 0.23142 s at the roof */
	assert_string_equal(p->bound, "compute");
	assert_close(p->attainable_gflops, 420, 1e-15);
	assert_close(p->percent_of_attainable, 46.28395739428571, 1e-12);
	assert_close(p->headroom_s, 0.2685802130285714, 1e-12);
	assert_non_null(strstr(p->verdict, "compute-bound: 46.3 % of 420 GFLOP/s (fp32.vector)"));
	assert_non_null(strstr(p->verdict, "; the step times are flagged as unstable; other "
					   "programs used the CPU during the run"));
	assert_string_equal(p->peaks_hash, "8899aabbccddeeff");
	assert_string_equal(rfl_buf_str(&f->report.notes), "");
	fixture_free(f);
}

static void repeats_give_mean_and_range(void **state)
{
	struct fixture *f = fixture_new();
	static const double ms[] = { 500, 520, 480, 510 };
	const struct rfl_point *p;

	for (size_t i = 0; i < 4; i++) {
		struct rfl_ledger_row *row = add_run(f, "lab_cpu", "aa", 4, ms[i]);

		row->data_wait_ms_mean = 100 + (double)i;
		row->fwd_ms_mean = 150;
		row->bwd_ms_mean = ms[i] - 150 - row->data_wait_ms_mean;
	}
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	set(&f->rows[2].flags, "drift unstable_not");
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	p = &f->pts->points[0];
	assert_consistent(p);
	assert_null(strstr(p->verdict, "flagged"));
	assert_int_equal(p->runs, 4);
	assert_int_equal(p->steps, 40);
	/* the mean of 4 samples in 480, 500, 510 and 520 ms */
	assert_close(p->samples_per_s, (4 / .48 + 4 / .5 + 4 / .51 + 4 / .52) / 4, 1e-14);
	/* by Python: statistics.stdev([4 / .48, 4 / .5, 4 / .51, 4 / .52]) */
	assert_close(p->samples_per_s_std, 0.2745218893576663, 1e-12);
	assert_close(p->step_s, 4 / p->samples_per_s, 1e-14);
	assert_close(p->step_median_s, 0.505, 1e-14);
	assert_close(p->step_s_lo, 0.48, 1e-14);
	assert_close(p->step_s_hi, 0.52, 1e-14);
	assert_string_equal(p->step_source, "min-max of the repeats");
	/* weighted by the rates, so that the phases add up to the step */
	assert_close(p->data_wait_ms,
		     (100 / .5 + 101 / .52 + 102 / .48 + 103 / .51) /
			     (1 / .5 + 1 / .52 + 1 / .48 + 1 / .51),
		     1e-14);
	assert_close(p->fwd_ms + p->bwd_ms + p->data_wait_ms, 1e3 * p->step_s, 1e-14);
	/* 101.5 / 502 = 20.2 % */
	assert_non_null(strstr(p->verdict, "waiting for data takes 20 % of the step"));
	fixture_free(f);
}

/* The rate is that of the window, also where one step in ten takes 1.4 s and the median 0.5; a run
 * that is there twice counts once, as in the summary. */
static void rate_of_the_window(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row;
	const struct rfl_point *p;

	for (int i = 0; i < 2; i++) {
		row = add_run(f, "lab_cpu", "aa", 4, 500);
		row->samples_per_s = i ? 4 / 0.59 : 100;
		row->repeat = 1;
		set(&row->label, "lab_cpu_resnet50_fp32_bs4_run1");
	}
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_consistent(p);
	assert_int_equal(p->runs, 1);
	assert_notes(f, "duplicate: lab_cpu_resnet50_fp32_bs4_run1");
	assert_close(p->samples_per_s, 4 / 0.59, 1e-15);
	assert_close(p->step_s, 0.59, 1e-15);
	assert_close(p->step_median_s, 0.5, 1e-15);
	assert_close(p->step_s_lo, 0.49, 1e-15); /* p10 */
	assert_close(p->step_s_hi, 0.59, 1e-15); /* above p90 */
	assert_close(p->attained_gflops, 97.196310528 / 0.59, 1e-12);
	fixture_free(f);
}

/* A spread that was not recorded is not known; it is not zero. */
static void a_run_without_percentiles(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row = add_run(f, "lab_cpu", "aa", 4, 500);

	row->step_ms_p10 = NAN;
	row->iters = -1;
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_true(isnan(f->pts->points[0].step_s_lo));
	assert_true(isnan(f->pts->points[0].attained_gflops_hi));
	assert_int_equal(f->pts->points[0].steps, -1);
	assert_non_null(strstr(f->pts->points[0].step_source, "not recorded"));
	fixture_free(f);
}

static void runs_that_did_not_end_well_are_counted(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	set(&add_run(f, "lab_cpu", "aa", 4, 1)->status, "crash");
	set(&add_run(f, "lab_cpu", "aa", 4, 1)->status, "oom");
	set(&add_run(f, "lab_cpu", "bb", 8, 1)->status, "crash");
	add_run(f, "lab_cpu", "aa", 4, NAN);
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	assert_int_equal(f->pts->points[0].runs, 1);
	assert_close(f->pts->points[0].step_s, 0.5, 1e-15);
	assert_notes(f, "failed: lab_cpu_resnet50_fp32_bs4_run2: crash (logs/metrics.csv:3)");
	assert_notes(f, "failed: lab_cpu_resnet50_fp32_bs4_run3: oom (logs/metrics.csv:4)");
	assert_notes(f, "skipped 1 row with status ok but without samples_per_s (first: "
			"logs/metrics.csv:6)");
	fixture_free(f);
}

/* An older report: 2 x forward, AI = achieved / bandwidth. 16 samples in 3.357 s are 4.77 images/s,
 * 77.95 GFLOP/s, 0.74 FLOP/byte under 105 GB/s. */
static void lower_bound_and_factor_two(void **state)
{
	struct fixture *f = fixture_new();
	const struct rfl_point *p;

	add_run(f, "lab_cpu", "aa", 16, 16 * 2 * FORWARD_FLOPS / 77.95e9 * 1e3);
	use_peaks(f, state, "{\"lab_cpu\": {\"peak_gflops\": 1000, \"peak_gbps\": 105}}");
	f->options.ai = RFL_AI_LOWER_BOUND;
	f->options.factor = RFL_TRAIN_2;
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_consistent(p);
	assert_close(p->flops_per_step, 16 * 16356737024.0, 0);
	assert_string_equal(p->flops_source, "2 x forward, as in older reports");
	assert_string_equal(p->bytes_source, "lower-bound");
	assert_close(p->attained_gflops, 77.95, 1e-12);
	assert_true(fabs(p->samples_per_s - 4.77) < 0.005);
	assert_close(p->ai, 77.95 / 105, 1e-12);
	assert_true(fabs(p->ai - 0.74) < 0.005);
	assert_close(p->ai_lo, p->attained_gflops_lo / 105, 1e-12);
	assert_close(p->ai_hi, p->attained_gflops_hi / 105, 1e-12);
	/* on the roof by construction, and the verdict says so */
	assert_close(p->percent_of_attainable, 100, 1e-12);
	assert_non_null(strstr(p->verdict, "by construction"));
	assert_non_null(strstr(p->verdict, " % of fp32.vector"));
	/* the counted intensities are there all the same */
	assert_true(p->ai_unfused > 1);

	/* near the compute roof: 77.95 of 80 */
	use_peaks(f, state, "{\"lab_cpu\": {\"peak_gflops\": 80, \"peak_gbps\": 105}}");
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_consistent(p);
	assert_close(p->ai, 80.0 / 105, 1e-12);
	assert_string_equal(p->bound, "compute");
	assert_non_null(strstr(p->verdict, "near the compute roof: 97.4 %"));
	fixture_free(f);
}

static void factors_and_modes(void **state)
{
	static const struct {
		const char *mode;
		enum rfl_train_factor factor;
		double flops;
		const char *source;
	} cases[] = {
		{ "train", RFL_TRAIN_EXACT, TRAINING_FLOPS, "counted: forward + dgrad + wgrad" },
		{ "train", RFL_TRAIN_2, 2 * FORWARD_FLOPS, "2 x forward" },
		{ "train", RFL_TRAIN_3, 3 * FORWARD_FLOPS, "3 x forward" },
		{ "fwd_bwd", RFL_TRAIN_EXACT, TRAINING_FLOPS, "counted: forward + dgrad + wgrad" },
		{ "fwd", RFL_TRAIN_EXACT, FORWARD_FLOPS, "counted: forward" },
		{ "fwd", RFL_TRAIN_3, FORWARD_FLOPS, "counted: forward" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fixture *f = fixture_new();

		set(&add_run(f, "lab_cpu", "aa", 3, 100)->mode, cases[i].mode);
		use_peaks(f, state, "{\"lab_cpu\": {\"peak_gflops\": 4200, \"peak_gbps\": 920}}");
		f->options.factor = cases[i].factor;
		assert_ok(merge(f), &f->err);
		assert_consistent(&f->pts->points[0]);
		assert_close(f->pts->points[0].flops_per_step, 3 * cases[i].flops, 0);
		assert_non_null(strstr(f->pts->points[0].flops_source, cases[i].source));
		fixture_free(f);
	}
}

/* The bytes are those of complexity/count.h: the passes that the mode ran, the optimizer's once. */
static void bytes_are_those_of_the_passes(void **state)
{
	static const struct {
		const char *mode;
		enum rfl_scope scope;
	} modes[] = {
		{ "fwd", RFL_SCOPE_FORWARD },
		{ "fwd_bwd", RFL_SCOPE_FORWARD_BACKWARD },
		{ "train", RFL_SCOPE_STEP },
	};
	static const enum rfl_ai ais[] = { RFL_AI_UNFUSED, RFL_AI_FUSED, RFL_AI_COMPULSORY };
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build("resnet50", NULL, &net, NULL), NULL);
	for (size_t i = 0; i < RFL_ARRAY_LEN(modes); i++) {
		const struct rfl_count_options o = { .batch = 4,
						     .training = i > 0,
						     .optimizer = RFL_OPT_MOMENTUM };
		struct rfl_count *count = NULL;

		assert_ok(rfl_count_net(net, &o, &count, NULL), NULL);
		for (size_t k = 0; k < RFL_ARRAY_LEN(ais); k++) {
			struct fixture *f = fixture_new();
			double want =
				(double)rfl_count_bytes(count, (enum rfl_fusion)k, modes[i].scope);

			set(&add_run(f, "lab_cpu", "aa", 4, 5000)->mode, modes[i].mode);
			use_peaks(f, state, SMALL_PEAKS);
			f->options.ai = ais[k];
			assert_ok(merge(f), &f->err);
			assert_consistent(&f->pts->points[0]);
			assert_close(f->pts->points[0].bytes_per_step, want, 0);
			assert_string_equal(f->pts->points[0].bytes_source, rfl_fusion_names[k]);
			fixture_free(f);
		}
		rfl_count_free(count);
	}
	rfl_net_free(net);
}

/* Two forwards of 4 per step: everything twice but the optimizer. */
static void accumulated_steps(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row;
	double fwd_bwd, step;

	set(&add_run(f, "lab_cpu", "aa", 4, 1000)->mode, "fwd_bwd");
	add_run(f, "lab_cpu", "bb", 4, 1000);
	row = add_run(f, "lab_cpu", "cc", 8, 1000);
	row->micro_batch = 4;
	row->accum = 2;
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 3);
	fwd_bwd = f->pts->points[0].bytes_per_step;
	step = f->pts->points[1].bytes_per_step;
	assert_true(step > fwd_bwd);
	assert_close(f->pts->points[2].bytes_per_step, step + fwd_bwd, 0);
	assert_close(f->pts->points[2].flops_per_step, 8 * TRAINING_FLOPS, 0);
	fixture_free(f);
}

/* Two processes of one machine: everything twice, the update included. */
static void processes_of_one_machine(void **state)
{
	static const int64_t accums[] = { 1, 2 };

	for (size_t i = 0; i < RFL_ARRAY_LEN(accums); i++) {
		struct fixture *f = fixture_new();
		struct rfl_ledger_row *row = add_run(f, "lab_cpu", "aa", 4 * accums[i], 1000);

		row->micro_batch = 4;
		row->accum = accums[i];
		row = add_run(f, "lab_cpu", "bb", 8 * accums[i], 1000);
		row->micro_batch = 4;
		row->accum = accums[i];
		row->world_size = 2;
		row->threads = 3;
		set(&row->launcher, "roofline");
		use_peaks(f, state, SMALL_PEAKS);
		assert_ok(merge(f), &f->err);
		assert_int_equal(f->pts->n, 2);
		assert_close(f->pts->points[1].bytes_per_step, 2 * f->pts->points[0].bytes_per_step,
			     0);
		assert_close(f->pts->points[1].flops_per_step, 2 * f->pts->points[0].flops_per_step,
			     0);
		assert_int_equal(f->pts->points[1].threads, 6);
		fixture_free(f);
	}
}

static void environments_stay_apart(void **state)
{
	static const char *const only[] = { "lab_cpu" };
	static const char *const wrong[] = { "lab_gpu", "lab_gpus" };
	struct fixture *f = fixture_new();

	add_run(f, "lab_gpu", "aa", 4, 500);
	add_run(f, "lab_cpu", "aa", 4, 600); /* the same hash elsewhere is no repeat */
	add_run(f, "lab_gpu", "aa", 4, 700);
	add_run(f, "lab_cpu", "bb", 8, 900);
	use_peaks(f, state,
		  "{\"lab_cpu\": {\"peak_gflops\": 420, \"peak_gbps\": 92}, "
		  "\"lab_gpu\": {\"peak_gflops\": 14000, \"peak_gbps\": 400}}");
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 3);
	assert_string_equal(f->pts->points[0].env, "lab_gpu");
	assert_close(f->pts->points[0].step_median_s, 0.6, 1e-14);
	assert_close(f->pts->points[0].peak_gbps, 400, 1e-15);
	assert_string_equal(f->pts->points[1].env, "lab_cpu");
	assert_int_equal(f->pts->points[1].runs, 1);
	assert_string_equal(f->pts->points[2].env, "lab_cpu");
	assert_int_equal(f->pts->points[2].batch, 8);

	f->options.envs = only;
	f->options.nenvs = 1;
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 2);

	f->options.envs = wrong;
	f->options.nenvs = 2;
	assert_int_equal(merge(f), RFL_ENOTFOUND);
	assert_says(&f->err, "no run has env 'lab_gpus' (known: lab_gpu, lab_cpu); did you mean "
			     "lab_gpu?");
	assert_null(f->pts);
	fixture_free(f);
}

/* Rows without a hash are repeats when all distinguishing values are equal. */
static void ledgers_without_hashes(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", NULL, 4, 500);
	add_run(f, "lab_cpu", NULL, 4, 510);
	set(&add_run(f, "lab_cpu", NULL, 4, 300)->layout, "nhwc");
	add_run(f, "lab_cpu", NULL, 8, 900);
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 3);
	assert_int_equal(f->pts->points[0].runs, 2);
	assert_string_equal(f->pts->points[1].layout, "nhwc");
	fixture_free(f);
}

/* As in the summary: the hash is that of the options, and a batch may have been edited. */
static void equal_hashes_do_not_suffice(void **state)
{
	struct fixture *f = fixture_new();

	add_run(f, "lab_cpu", "aa", 4, 500);
	add_run(f, "lab_cpu", "aa", 8, 500);
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 2);
	fixture_free(f);
}

static void empty_columns_are_refused(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row = add_run(f, "lab_cpu", "aa", 4, 500);

	use_peaks(f, state, SMALL_PEAKS);
	set(&row->mode, NULL);
	assert_int_equal(merge(f), RFL_EFORMAT);
	assert_says(&f->err, "metrics.csv:2: column 'mode' is empty");
	set(&row->mode, "backwards");
	assert_int_equal(merge(f), RFL_EINVAL);
	assert_says(&f->err,
		    "metrics.csv:2: mode 'backwards' is not valid; use train, fwd_bwd, fwd, "
		    "decode or prefill");
	set(&row->mode, "train");
	set(&row->optimizer, "lion");
	assert_int_equal(merge(f), RFL_EINVAL);
	assert_says(&f->err, "'lion'");
	set(&row->optimizer, "sgd");
	set(&row->precision, "fp8");
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "'fp8' on backend 'cpu'");
	assert_says(&f->err, "needed by");
	fixture_free(f);
}

/* The runner's own count and this one are both printed when they differ. */
static void ledger_count_is_compared(void **state)
{
	struct fixture *f = fixture_new();
	struct rfl_ledger_row *row = add_run(f, "lab_cpu", "aa", 4, 500);

	use_peaks(f, state, SMALL_PEAKS);
	row->model_flops_per_step = 97196310528;
	assert_ok(merge(f), &f->err);
	assert_string_equal(rfl_buf_str(&f->report.notes), "");
	row->model_flops_per_step = 97196310529;
	assert_ok(merge(f), &f->err);
	assert_notes(f, "97196310529");
	assert_notes(f, "97196310528");
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_run),
		T(repeats_give_mean_and_range),
		T(rate_of_the_window),
		T(a_run_without_percentiles),
		T(runs_that_did_not_end_well_are_counted),
		T(lower_bound_and_factor_two),
		T(factors_and_modes),
		T(bytes_are_those_of_the_passes),
		T(accumulated_steps),
		T(processes_of_one_machine),
		T(environments_stay_apart),
		T(ledgers_without_hashes),
		T(equal_hashes_do_not_suffice),
		T(empty_columns_are_refused),
		T(ledger_count_is_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
