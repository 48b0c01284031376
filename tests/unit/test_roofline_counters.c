/* What counters measured beside what is counted: per step, checked, and every ratio by hand. */
#include "counters_fixture.h"

/* One configuration of lab_gpu: resnet50 fp32 bs 4 in 100 timed steps, and a profiled run of 30
 * with 5 steps of warm-up. */
#define PROF "lab_gpu_resnet50_fp32_prof"

static struct fixture *profiled(void **state, struct captures **c)
{
	struct fixture *f = fixture_new();

	add_gpu_run(f, NULL, "a", "fp32", 4, 100);
	add_gpu_run(f, PROF, "b", "fp32", 4, 30);
	use_peaks(f, state, GPU_PEAKS);
	*c = captures_new(f);
	return f;
}

static void finish(struct fixture *f, struct captures *c)
{
	fixture_free(f);
	free(c);
}

#define FLOPS 97196310528.0 /* 4 x TRAINING_FLOPS */
#define BYTES 4e9           /* of a step; between compulsory and unfused */

static void bytes_per_step(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	const struct rfl_point *p;
	double unfused, compulsory;

	give_bytes(capture, 30 * BYTES);
	capture->total[RFL_QUANTITY_FLOPS].reason = "flop_count_sp is n/a";
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	p = &f->pts->points[0];
	unfused = FLOPS / p->ai_unfused;
	compulsory = FLOPS / p->ai_compulsory;

	assert_close(p->bytes_counters, BYTES, 1e-15);
	assert_int_equal(p->counters_steps, 30);
	assert_int_equal(p->counters_repeats, 1);
	assert_string_equal(p->counters_source, "ncu");
	assert_string_equal(p->counters_validity, "ok");
	assert_non_null(strstr(p->counters_note, PROF ": 30 steps as in logs/metrics.csv:3"));
	assert_non_null(strstr(p->counters_note, "FLOPs unavailable: flop_count_sp is n/a"));
	assert_close(p->bytes_over_unfused, BYTES / unfused, 1e-12);
	assert_close(p->bytes_over_compulsory, BYTES / compulsory, 1e-12);
	/* FLOPs were not counted: not 0, not known; the model's stand over the measured bytes */
	assert_true(isnan(p->flops_counters));
	assert_true(isnan(p->ai_counters));
	assert_true(isnan(p->flops_measured_over_counted));
	assert_string_equal(p->flops_source, "counted: forward + dgrad + wgrad (counters not used: "
					     "FLOPs unavailable: flop_count_sp is n/a)");
	assert_string_equal(p->bytes_source, "counters");
	assert_close(p->flops_per_step, FLOPS, 0);
	assert_close(p->bytes_per_step, BYTES, 1e-15);
	assert_close(p->ai, 24.299077632, 1e-15);
	assert_close(p->attained_gflops, 971.96310528, 1e-12); /* in 100 ms */
	assert_close(p->attainable_gflops, 24299.077632, 1e-12);
	assert_close(p->percent_of_attainable, 4.0, 1e-12);
	assert_non_null(strstr(p->verdict, "; bytes measured by ncu: "));
	finish(f, c);
}

static void twins(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	const struct rfl_point *p;

	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * 1.25 * FLOPS);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->flops_counters, 1.25 * FLOPS, 1e-15);
	assert_close(p->flops_measured_over_counted, 1.25, 1e-15);
	assert_close(p->ai_counters, 1.25 * FLOPS / BYTES, 1e-15);
	/* rate and intensity keep the model's FLOPs unless asked */
	assert_close(p->flops_per_step, FLOPS, 0);
	assert_close(p->ai, FLOPS / BYTES, 1e-15);
	assert_string_equal(p->flops_source, "counted: forward + dgrad + wgrad");

	f->options.flops = RFL_FLOPS_COUNTERS;
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_string_equal(p->flops_source, "counters");
	assert_close(p->flops_per_step, 1.25 * FLOPS, 1e-15);
	assert_close(p->ai, p->ai_counters, 1e-15);
	assert_close(p->attained_gflops, 1214.9538816, 1e-12);
	assert_string_equal(p->compute_key, "fp32.vector");

	/* other bytes were asked for: the twin stays in its columns */
	f->options.ai = RFL_AI_FUSED;
	f->options.flops = RFL_FLOPS_MODEL;
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_string_equal(p->bytes_source, "fused");
	assert_close(p->ai, p->ai_fused, 0);
	assert_close(p->bytes_counters, BYTES, 1e-15);
	finish(f, c);
}

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
		{ -1, 35, 50, 35, "35 steps as --counter-steps says", PROF },
		{ -1, 0, 50, 30, "30 steps as in logs/metrics.csv:3", PROF },
		{ -1, 0, 0, 30, "30 steps as in", PROF },
		{ -1, 0, 50, 50, "50 steps as --counter-steps says",
		  "lab_gpu_resnet50_fp32_bs4_prof" },
		{ -1, 0, 0, -1,
		  "how many steps lab_gpu_resnet50_fp32_bs4_prof covers is not known: no row of "
		  "the ledger bears its label (--counter-steps lab_gpu_resnet50_fp32_bs4_prof=N)",
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
			assert_non_null(strstr(p->bytes_source, "unfused (counters not used: how "
								"many steps"));
			assert_notes(f, "counters: how many steps");
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
			       "rows 2 and 3 of the ledger bear its label, with 100 and 30 steps"));
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
	assert_notes(f, "--counter-steps typo=3: no counters bear that label");
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
		  "(1) the run that was profiled had another number of steps (9 would fit): "
		  "--counter-steps " PROF "=N" },
		{ 0.49, true, "Winograd" },
		{ 0.51, false, NULL },
		{ 1.0, false, NULL },
		{ 1.6, false, NULL },
		{ 1.99, false, NULL },
		{ 3.0, true, "another number of steps (90 would fit)" },
		{ 3.0, true, "(2) elementwise work and the optimizer are in the counters" },
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
			assert_null(strstr(rfl_buf_str(&f->report.notes), "does not fit"));
		} else {
			assert_non_null(strstr(p->bytes_source, "unfused (counters not used: they "
								"do not fit: "));
			assert_close(p->ai, p->ai_unfused, 0);
			assert_string_equal(p->counters_validity, "doubtful");
			assert_notes(f, "counters: " PROF " does not fit: ");
			assert_notes(f, cases[i].cause);
			assert_non_null(strstr(p->verdict, "do not fit the count"));
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
	assert_notes(f, "2 of 2 kernels were launched a number of times that is no multiple of 30 "
			"(30 steps); likely causes: (1) the warm-up was profiled too, 35 steps in "
			"all: --counter-steps " PROF "=35");

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

/* 20 steps, where the ledger has 30: told by the FLOPs, or by the launches alone. */
static void another_number_of_steps(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	add_kernel(c, "conv", 20 * 4, 0);
	add_kernel(c, "relu", 20, 0);
	give_bytes(capture, 20 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "(1) the run that was profiled had another number of steps (every kernel "
			"ran a multiple of 20 times): --counter-steps");
	capture->rows_left_out = 3;
	assert_ok(merge(f), &f->err);
	assert_notes(f, "(1) rows of the file could not be read and were left out; (2) the run");
	capture->rows_left_out = 0;
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 20 * 1.01 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "0.673 x the FLOPs counted from the network; 2 of 2 kernels");
	assert_notes(f, "(1) the run that was profiled had another number of steps (20 would fit)");
	finish(f, c);
}

/* As long a warm-up as a window: the launches fit both, the FLOPs tell. */
static void a_warm_up_as_long_as_the_window(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	f->rows[1].warmup = 30;
	add_kernel(c, "conv", 60, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 60 * 0.98 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "(1) the warm-up was profiled too, 60 steps in all");
	/* twice a step is no warm-up when the FLOPs are those of 30 */
	know(capture->total, RFL_QUANTITY_FLOPS_FP32, 30 * FLOPS);
	know(capture->total, RFL_QUANTITY_FLOPS, 30 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_null(strstr(rfl_buf_str(&f->report.notes), "does not fit"));
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
	assert_string_equal(f->pts->points[0].bytes_source,
			    "unfused (counters not used: they do not fit: 0.3 x the FLOPs counted "
			    "from the network (1 step); counters_note has the causes)");
	assert_non_null(strstr(f->pts->points[0].counters_note, "; likely causes: (1) FLOPs of"));
	finish(f, c);
}

/* PyTorch runs convolutions of an fp32 network in TF32 unless told otherwise: the launches fit the
 * steps, and what is missing are the FLOPs of the matrix units. */
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
	assert_notes(f, "(4) the run that was profiled had another number of steps (1 would fit)");
	/* nothing speaks against the bytes */
	assert_string_equal(f->pts->points[0].bytes_source, "counters");
	assert_string_equal(f->pts->points[0].counters_validity, "doubtful");
	assert_non_null(strstr(f->pts->points[0].verdict, "; the measured FLOPs do not fit"));
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_TF32, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_FP16, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_BF16, 0);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "likely causes: (1) not every kernel was profiled");
	assert_null(strstr(rfl_buf_str(&f->report.notes), "another precision"));
	assert_non_null(strstr(f->pts->points[0].bytes_source, "unfused (counters not used: they "
							       "do not fit"));
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
			       "1 of 3 kernels ran a number of times that is no multiple of 30"));
	finish(f, c);
}

static void too_many_bytes(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	give_bytes(add_capture(c, PROF), 30 * 100 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_notes(f, "x the bytes of operation after operation (30 steps)");
	assert_non_null(strstr(f->pts->points[0].bytes_source, "unfused ("));
	finish(f, c);
}

/* --- demanded --- */

static void counters_are_demanded(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture;
	struct rfl_counter_steps said = { PROF, 30 };

	f->options.ai = RFL_AI_COUNTERS;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "DRAM bytes by counters of lab_gpu resnet50 fp32 bs4 train nchw: no "
			     "counters belong to it");
	assert_says(&f->err, "fix: roofline run --counters step; or profile a run whose label ends "
			     "in _prof");

	capture = add_capture(c, PROF);
	capture->total[RFL_QUANTITY_DRAM].reason = "dram__bytes_read.sum is n/a";
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "DRAM bytes unavailable: dram__bytes_read.sum is n/a");
	assert_says(&f->err, "roofline counters list --chip");

	f->options.skip_missing = true;
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 0);
	assert_int_equal(f->report.left_out, 1);
	assert_notes(f, "left out 1 of the configurations");
	f->options.skip_missing = false;

	give_bytes(capture, 30 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source, "counters");

	/* a ratio of 3 is not used on the ledger's word, but on the user's */
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 90 * FLOPS);
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "they do not fit: 3 x the FLOPs counted from the network");
	assert_says(&f->err, "--counter-steps LABEL=N");
	f->in.counters.steps = &said;
	f->in.counters.nsteps = 1;
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source, "counters");
	assert_string_equal(f->pts->points[0].counters_validity, "doubtful");
	finish(f, c);
}

static void flops_are_demanded(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	f->options.flops = RFL_FLOPS_COUNTERS;
	give_bytes(add_capture(c, PROF), 30 * BYTES);
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "FLOPs by counters of lab_gpu resnet50 fp32 bs4 train nchw: FLOPs "
			     "unavailable");
	finish(f, c);
}

/* --- validity --- */

static void validity_decides(void **state)
{
	static const struct {
		enum rfl_validity validity;
		int64_t had; /* of 100 launches */
		const char *word, *source;
	} cases[] = {
		{ RFL_VALID, 100, "ok", "counters" },
		{ RFL_VALID_SCALED, 100, "scaled", "counters" },
		{ RFL_VALID_ESTIMATE, 100, "estimate", "counters" },
		{ RFL_VALID_PARTIAL, 96, "partial", "counters" },
		{ RFL_VALID_PARTIAL, 80, "partial",
		  "unfused (counters not used: counted in 80 % of the time only)" },
		{ RFL_VALID_MARKED, 100, "marked",
		  "unfused (counters not used: the self-test was off by more than 2 %)" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct captures *c;
		struct fixture *f = profiled(state, &c);
		struct rfl_capture *capture = add_capture(c, PROF);
		struct rfl_amount *dram;

		capture->steps = 30;
		dram = add_kernel(c, "conv", 100, 2)->amount;
		know(dram, RFL_QUANTITY_DRAM, 30 * BYTES);
		dram[RFL_QUANTITY_DRAM].validity = cases[i].validity;
		dram[RFL_QUANTITY_DRAM].launches = cases[i].had;
		give_bytes(capture, 30 * BYTES);
		capture->total[RFL_QUANTITY_DRAM].validity = cases[i].validity;
		assert_ok(merge(f), &f->err);
		assert_string_equal(f->pts->points[0].counters_validity, cases[i].word);
		assert_string_equal(f->pts->points[0].bytes_source, cases[i].source);
		assert_close(f->pts->points[0].bytes_counters, BYTES, 1e-14);
		/* who demands them gets them */
		f->options.ai = RFL_AI_COUNTERS;
		assert_ok(merge(f), &f->err);
		assert_string_equal(f->pts->points[0].bytes_source, "counters");
		finish(f, c);
	}
}

/* Cold caches are a cause of a point above its roof that only a profiler's bytes have. */
static void above_the_roof_with_measured_bytes(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	f->rows[0].step_ms_median = f->rows[0].step_ms_p10 = f->rows[0].step_ms_p90 = 4;
	give_bytes(add_capture(c, PROF), 30 * 1.5 * BYTES);
	assert_ok(merge(f), &f->err);
	/* 6 GB in 4 ms are 1500 GB/s of 1000 */
	assert_close(f->pts->points[0].percent_of_attainable, 150, 1e-12);
	assert_non_null(strstr(f->pts->points[0].verdict, "above the roof: 150 % of"));
	assert_non_null(strstr(f->pts->points[0].verdict, "(ncu --cache-control none)"));
	c->capture[0].source = "nvprof";
	assert_ok(merge(f), &f->err);
	assert_null(strstr(f->pts->points[0].verdict, "cache-control"));
	finish(f, c);
}

static void no_bytes_at_all(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	give_bytes(add_capture(c, PROF), 0);
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].bytes_counters, 0, 0); /* read as 0 is 0 */
	assert_string_equal(f->pts->points[0].bytes_source,
			    "unfused (counters not used: counted as 0)");
	finish(f, c);
}

/* --- kernels --- */

static void give_kernel_flops(struct rfl_range *r, double flops)
{
	know(r->amount, RFL_QUANTITY_FLOPS_FP32, flops);
	know(r->amount, RFL_QUANTITY_FLOPS, flops);
}

/* 0 in what was counted is no 0 where the type that a kernel works in was not. */
static void kernels_of_which_too_little_is_known(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	struct rfl_range *gemm;
	const struct rfl_point *p;

	give_kernel_flops(add_kernel(c, "conv", 30, 5), 30 * FLOPS);
	gemm = add_kernel(c, "ampere_sgemm_128x64_nn", 30, 3);
	give_kernel_flops(gemm, 0); /* TF32? */
	/* matrix units alone */
	know(add_kernel(c, "batch_norm", 30, 2)->amount, RFL_QUANTITY_FLOPS, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * FLOPS);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->zero_flop_share, 0, 0);
	assert_null(p->zero_flop_kernels);
	assert_close(p->coverage, 0.8, 1e-14); /* the sum alone is not the run's precision */

	know(gemm->amount, RFL_QUANTITY_FLOPS_TENSOR_FP16, 0);
	know(gemm->amount, RFL_QUANTITY_FLOPS_TENSOR_BF16, 0);
	know(gemm->amount, RFL_QUANTITY_FLOPS_TENSOR_TF32, 0);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].zero_flop_kernels, "ampere_sgemm_128x64_nn 30 %");

	/* FP32 was not counted at all: no kernel is known to have no FLOP */
	unknown(capture->total);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_TF32, 30 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_true(isnan(f->pts->points[0].zero_flop_share));
	finish(f, c);
}

/* Of an amp run: elementwise kernels are known without matrix units, but not without fp16. */
static void kernels_of_an_amp_run(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);
	struct rfl_capture *capture;
	struct rfl_range *gemm, *copy;

	add_gpu_run(f, NULL, "a", "amp", 4, 100);
	use_peaks(f, state, GPU_PEAKS);
	capture = add_capture(c, "lab_gpu_resnet50_amp_bs4_prof");
	capture->steps = 30;
	gemm = add_kernel(c, "ampere_fp16_s16816gemm", 30, 6);
	know(gemm->amount, RFL_QUANTITY_FLOPS_TENSOR_FP16, 30 * FLOPS);
	know(gemm->amount, RFL_QUANTITY_FLOPS, 30 * FLOPS);
	copy = add_kernel(c, "copy", 30, 3);
	give_kernel_flops(copy, 0);
	know(add_kernel(c, "other_gemm", 30, 1)->amount, RFL_QUANTITY_FLOPS_FP32, 0);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_FP16, 30 * FLOPS);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 0);
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].coverage, 0.9, 1e-14);
	assert_close(f->pts->points[0].zero_flop_share, 0, 0);
	know(copy->amount, RFL_QUANTITY_FLOPS_FP16, 0);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].zero_flop_kernels, "copy 30 %");
	finish(f, c);
}

static void kernels_without_a_flop(void **state)
{
	static const struct {
		const char *name;
		double time_s, flops; /* NaN: not counted */
	} kernels[] = {
		{ "conv", 5, 1 },  { "copy", 1, 0 },    { "transpose", 2, 0 },  { "copy", 0.5, 0 },
		{ "fill", .5, 0 }, { "index", 0.5, 0 }, { "secret", 0.5, NAN },
	};
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	const struct rfl_point *p;

	for (size_t i = 0; i < RFL_ARRAY_LEN(kernels); i++) {
		struct rfl_range *r = add_kernel(c, kernels[i].name, 30, kernels[i].time_s);

		if (!isnan(kernels[i].flops))
			give_kernel_flops(r, kernels[i].flops * 30 * FLOPS);
	}
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * FLOPS);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->coverage, 9.5 / 10, 1e-14);
	assert_close(p->zero_flop_share, 4.5 / 10, 1e-14);
	assert_string_equal(p->zero_flop_kernels, "transpose 20 %; copy 15 %; fill 5 %; index 5 %");
	assert_non_null(strstr(
		p->verdict, "; 45 % of the kernels' time has no FLOP (transpose 20 %; copy 15 %; "
			    "fill 5 %; 1 more)"));

	/* without one of the times, launches tell the coverage and nothing the share */
	unknown(c->range[0][2].amount);
	give_kernel_flops(&c->range[0][2], 0);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->coverage, 6.0 / 7, 1e-14);
	assert_true(isnan(p->zero_flop_share));
	assert_null(p->zero_flop_kernels);
	finish(f, c);
}

static void flops_and_bytes_of_different_launches(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF), *other;

	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * 0.8 * FLOPS);
	capture->total[RFL_QUANTITY_DRAM].launches = 300;
	capture->total[RFL_QUANTITY_FLOPS].launches = 240;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].flops_measured_over_counted, 0.8, 1e-14);
	assert_true(isnan(f->pts->points[0].ai_counters));
	assert_non_null(strstr(f->pts->points[0].counters_note, "are of different launches"));
	capture->total[RFL_QUANTITY_FLOPS].launches = 300;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].ai_counters, 0.8 * FLOPS / BYTES, 1e-14);
	/* of two files: each has to be whole */
	unknown(capture->total);
	give_bytes(capture, 30 * BYTES);
	other = add_capture(c, "lab_gpu_resnet50_fp32_bs4_prof");
	other->steps = 1;
	give_flops(other, RFL_QUANTITY_FLOPS_FP32, 0.8 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].ai_counters, 0.8 * FLOPS / BYTES, 1e-14);
	other->total[RFL_QUANTITY_FLOPS].validity = RFL_VALID_PARTIAL;
	assert_ok(merge(f), &f->err);
	assert_true(isnan(f->pts->points[0].ai_counters));
	finish(f, c);
}

/* --- several captures --- */

static void repeats_give_a_median(void **state)
{
	static const char *const labels[] = { "lab_gpu_resnet50_fp32_bs4_run1_prof",
					      "lab_gpu_resnet50_fp32_bs4_run2_prof",
					      "lab_gpu_resnet50_fp32_bs4_run3_prof" };
	static const double bytes[] = { 4.2e9, 3.8e9, 3.9e9 };
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	const struct rfl_point *p;

	for (size_t i = 0; i < 3; i++) {
		struct rfl_capture *capture = add_capture(c, labels[i]);

		capture->steps = 10;
		give_bytes(capture, 10 * bytes[i]);
	}
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_int_equal(p->counters_repeats, 3);
	assert_close(p->bytes_counters, 3.9e9, 1e-14);
	assert_close(p->ai, FLOPS / 3.9e9, 1e-14);
	assert_close(p->ai_lo, FLOPS / 4.2e9, 1e-14);
	assert_close(p->ai_hi, FLOPS / 3.8e9, 1e-14);

	/* the same without numbers are two files for one configuration */
	c->capture[1].label = "lab_gpu_resnet50_fp32_bs4_prof";
	assert_int_equal(merge(f), RFL_EFORMAT);
	assert_says(&f->err, "counters: lab_gpu_resnet50_fp32_bs4_run1_prof and "
			     "lab_gpu_resnet50_fp32_bs4_prof both have the DRAM bytes of lab_gpu "
			     "resnet50 fp32 bs4 train, and are not repeats");
	assert_says(&f->err, "take one of them away");
	/* and so are those of two tools */
	c->capture[1].label = labels[1];
	c->capture[1].source = "nvprof";
	assert_int_equal(merge(f), RFL_EFORMAT);

	/* who goes on has the first, and the repeats of it */
	f->in.counters.keep_going = true;
	assert_ok(merge(f), &f->err);
	assert_notes(f, "run2_prof both have the DRAM bytes of");
	assert_notes(f, "take one of them away; lab_gpu_resnet50_fp32_bs4_run2_prof is left out\n");
	p = &f->pts->points[0];
	assert_int_equal(p->counters_repeats, 2);
	assert_close(p->bytes_counters, 4.05e9, 1e-14);
	assert_non_null(strstr(p->counters_note, "run2_prof: left out: 10 steps"));
	/* better one whose steps are known */
	c->capture[0].steps = -1;
	c->capture[2].label = labels[0];
	assert_ok(merge(f), &f->err);
	assert_notes(f, "run1_prof is left out\n");
	assert_close(f->pts->points[0].bytes_counters, 3.8e9, 1e-14);
	finish(f, c);
}

/* A median is as good as the worst behind it. */
static void the_worst_repeat_counts(void **state)
{
	static const char *const labels[] = { "lab_gpu_resnet50_fp32_bs4_run1_prof",
					      "lab_gpu_resnet50_fp32_bs4_run2_prof",
					      "lab_gpu_resnet50_fp32_bs4_run3_prof" };
	static const int64_t had[] = { 100, 97, 99 };

	struct captures *c;
	struct fixture *f = profiled(state, &c);

	for (size_t i = 0; i < 3; i++) {
		struct rfl_capture *capture = add_capture(c, labels[i]);
		struct rfl_amount *dram = add_kernel(c, "conv", 100, 2)->amount;

		capture->steps = 10;
		give_bytes(capture, 10 * BYTES);
		know(dram, RFL_QUANTITY_DRAM, 10 * BYTES);
		dram[RFL_QUANTITY_DRAM].launches = had[i];
		if (had[i] == 100)
			continue;
		dram[RFL_QUANTITY_DRAM].validity = RFL_VALID_PARTIAL;
		capture->total[RFL_QUANTITY_DRAM].validity = RFL_VALID_PARTIAL;
	}
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].counters_validity, "partial");
	assert_close(f->pts->points[0].coverage, 0.97, 1e-14);
	finish(f, c);
}

static void live_repeats_are_told_by_run_id(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	set(&f->rows[0].run_id, "R1");
	set(&add_gpu_run(f, NULL, "a", "fp32", 4, 100)->run_id, "R2");
	for (size_t i = 0; i < 2; i++) {
		struct rfl_capture *capture = add_capture(c, "mine");

		capture->run_id = i ? "R2" : "R1";
		capture->steps = 1;
		give_bytes(capture, i ? 5e9 : 4e9);
	}
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].bytes_counters, 4.5e9, 1e-14);
	c->capture[1].run_id = "R1";
	assert_int_equal(merge(f), RFL_EFORMAT);
	finish(f, c);
}

/* A run that could not be counted is no matter of other metrics. */
static void refused_live_counts(void **state)
{
	static const struct rfl_refusal refusal = { "core", "for administrators only" };
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, "mine");

	set(&f->rows[0].run_id, "R1");
	set(&f->rows[0].counters_status, "unavailable: core: for administrators only");
	capture->run_id = "R1";
	capture->source = "cupti";
	capture->steps = 1;
	capture->refusals = &refusal;
	capture->nrefusals = 1;
	capture->total[RFL_QUANTITY_DRAM].reason = "for administrators only";
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source,
			    "unfused (counters not used: DRAM bytes unavailable: for "
			    "administrators only)");
	f->options.ai = RFL_AI_COUNTERS;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "fix: as it says ('roofline counters check' tells when it works)");
	/* its capture is not among the files */
	c->all.n = 0;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "no counters belong to it; its row of the ledger says: unavailable: "
			     "core: for administrators only");
	finish(f, c);
}

static void captures_complete_each_other(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *a, *b;
	const struct rfl_point *p;

	a = add_capture(c, PROF);
	give_bytes(a, 30 * BYTES);
	b = add_capture(c, "lab_gpu_resnet50_fp32_bs4");
	b->source = "nvprof";
	b->steps = 2;
	give_flops(b, RFL_QUANTITY_FLOPS_FP32, 2 * 1.1 * FLOPS);
	add_capture(c, "lab_gpu_resnet50_fp32_bs4_20260101_000000")->source = "time";
	add_capture(c, "lab_gpu_resnet50_fp32_bs4_run4")->source = "nsys";
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_string_equal(p->counters_source, "ncu + nvprof"); /* the others count nothing */
	assert_close(p->bytes_counters, BYTES, 1e-14);
	assert_close(p->flops_counters, 1.1 * FLOPS, 1e-14);
	assert_close(p->ai_counters, 1.1 * FLOPS / BYTES, 1e-14);
	assert_string_equal(p->bytes_source, "counters");

	/* each side is checked: the bytes by the launches of their own capture */
	c->range[0][0] = (struct rfl_range){ .kind = RFL_RANGE_KERNEL, .launches = 7 };
	c->capture[0].nranges = 1;
	assert_ok(merge(f), &f->err);
	assert_notes(f, "counters: " PROF " does not fit: 1 of 1 kernels were launched");
	assert_string_equal(f->pts->points[0].counters_validity, "doubtful");
	finish(f, c);
}

/* A file that was imported into counters.csv and is given as well. */
static void the_same_file_twice(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);

	for (size_t i = 0; i < 2; i++) {
		struct rfl_capture *capture = add_capture(c, PROF);

		capture->path = "ncu/" PROF ".csv";
		give_bytes(capture, 30 * BYTES);
	}
	assert_int_equal(merge(f), RFL_EFORMAT);
	assert_says(&f->err, "counters: ncu/" PROF ".csv is there twice");
	finish(f, c);
}

/* --- precision --- */

static void fp32_that_ran_on_matrix_units(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_TF32, 30 * 0.97 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_non_null(strstr(f->pts->points[0].verdict,
			       "; only 0 % of the counted FLOPs are fp32: most of the rest is "
			       "flops.tensor_tf32, whose ceiling is tf32.matrix (80 TFLOP/s), not "
			       "fp32.vector"));
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * 0.03 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_non_null(strstr(f->pts->points[0].verdict, "; only 3 % of the counted FLOPs"));
	assert_string_equal(f->pts->points[0].compute_key, "fp32.vector");
	/* never one precision's FLOPs under another's roof */
	f->options.flops = RFL_FLOPS_COUNTERS;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "97 % of them are not fp32 but flops.tensor_tf32, which has another "
			     "ceiling");
	finish(f, c);
}

/* FP32 counters of an amp run know nothing of its matrix units. */
static void flops_of_another_precision_alone(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);

	add_gpu_run(f, NULL, "a", "amp", 4, 100);
	add_gpu_run(f, "lab_gpu_resnet50_amp_prof", "b", "amp", 4, 30);
	use_peaks(f, state, GPU_PEAKS);
	give_flops(add_capture(c, "lab_gpu_resnet50_amp_prof"), RFL_QUANTITY_FLOPS_FP32,
		   30 * 0.02 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_true(isnan(f->pts->points[0].flops_counters));
	assert_non_null(strstr(f->pts->points[0].flops_source,
			       "has no flops.tensor_fp16, the FLOPs of the run's precision (amp)"));
	finish(f, c);
}

/* 0.9 of them under 160, 0.1 under 40 TFLOP/s: 1 / (0.9/160 + 0.1/40) = 123.0769 */
static void mixed_precision_has_a_mean_roof(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);
	struct rfl_capture *capture;
	const struct rfl_point *p;

	add_gpu_run(f, NULL, "a", "amp", 4, 100);
	use_peaks(f, state, GPU_PEAKS);
	capture = add_capture(c, "lab_gpu_resnet50_amp_bs4_prof");
	capture->steps = 1;
	give_bytes(capture, BYTES / 2);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_FP16, 0.9 * FLOPS);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 0.1 * FLOPS);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP16, 0.001 * FLOPS);
	f->options.flops = RFL_FLOPS_COUNTERS;
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->peak_gflops, 1.001e3 / (0.9 / 160 + 0.1 / 40), 1e-12);
	assert_string_equal(p->compute_key, "0.10 fp32.vector + 0.90 fp16.matrix");
	assert_string_equal(p->peak_gflops_status, "derived");
	assert_close(p->knee_ai, p->peak_gflops / 1000, 1e-12);
	assert_null(strstr(p->verdict, "of another precision"));
	/* a part without a ceiling in the file: all under that of the run, and it is said */
	give_flops(capture, RFL_QUANTITY_FLOPS_FP64, 0.25 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].compute_key, "fp16.matrix");
	assert_non_null(strstr(f->pts->points[0].verdict,
			       "; 28 % of the FLOPs are of another precision, without a ceiling in "
			       "the peaks file: all stand under fp16.matrix"));
	/* the model's FLOPs stand under the matrix units alone */
	f->options.flops = RFL_FLOPS_MODEL;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].peak_gflops, 160000, 1e-12);
	finish(f, c);
}

/* --- processors --- */

static void whole_processes(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);
	struct rfl_capture *capture;
	const struct rfl_point *p;

	set(&add_run(f, "lab_cpu", "a", 4, 500)->label, "lab_cpu_resnet50_fp32_bs4_run1");
	f->rows[0].warmup = 2;
	use_peaks(f, state, SMALL_PEAKS);
	capture = add_capture(c, "lab_cpu_resnet50_fp32_bs4_run1");
	capture->source = "perf";
	capture->total_kind = RFL_RANGE_PROCESS;
	give_bytes(capture, 12 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 12 * 1.05 * FLOPS);
	know(capture->total, RFL_QUANTITY_TIME, 6);
	know(capture->total, RFL_QUANTITY_INSTRUCTIONS, 3e9);
	know(capture->total, RFL_QUANTITY_CYCLES, 2e9);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_int_equal(p->counters_steps, 12); /* 2 + 10 */
	assert_close(p->bytes_counters, BYTES, 1e-14);
	assert_close(p->flops_measured_over_counted, 1.05, 1e-14);
	assert_non_null(strstr(p->counters_note, "12 steps, warm-up included, as in"));
	assert_non_null(strstr(p->counters_note, "set-up is in it"));
	assert_non_null(strstr(p->counters_note, "IPC 1.5"));
	assert_non_null(strstr(p->bytes_source, "unfused (counters not used: counted over a whole "
						"process"));
	f->options.ai = RFL_AI_COUNTERS;
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source, "counters");
	finish(f, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(bytes_per_step),
		T(twins),
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
		T(tf32_that_was_not_counted),
		T(a_few_odd_kernels_are_said),
		T(too_many_bytes),
		T(counters_are_demanded),
		T(flops_are_demanded),
		T(validity_decides),
		T(above_the_roof_with_measured_bytes),
		T(no_bytes_at_all),
		T(kernels_without_a_flop),
		T(kernels_of_which_too_little_is_known),
		T(kernels_of_an_amp_run),
		T(flops_and_bytes_of_different_launches),
		T(repeats_give_a_median),
		T(the_worst_repeat_counts),
		T(live_repeats_are_told_by_run_id),
		T(refused_live_counts),
		T(captures_complete_each_other),
		T(the_same_file_twice),
		T(fp32_that_ran_on_matrix_units),
		T(flops_of_another_precision_alone),
		T(mixed_precision_has_a_mean_roof),
		T(whole_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
