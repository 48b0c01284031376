/* What counters measured beside what is counted: per step, demanded, of several captures; every
 * ratio by hand. */
#include "counters_fixture.h"

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

/* --- demanded --- */

static void counters_are_demanded(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture;
	struct rfl_counter_steps said = { PROF, 30 };

	f->options.ai = RFL_AI_COUNTERS;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err,
		    "DRAM bytes from counters for lab_gpu resnet50 fp32 bs4 train nchw: no "
		    "capture belongs to the configuration");
	assert_says(&f->err, "fix: use roofline run --counters step; or profile a run with a label "
			     "that ends in _prof");

	capture = add_capture(c, PROF); /* live: its reason says what to do */
	capture->total[RFL_QUANTITY_DRAM].reason = "dram__bytes_read.sum is n/a";
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "DRAM bytes unavailable: dram__bytes_read.sum is n/a");
	assert_says(&f->err, "fix: follow the advice");

	capture->path = "ncu/" PROF ".csv";
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "roofline counters list --chip");

	f->options.skip_missing = true;
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 0);
	assert_int_equal(f->report.left_out, 1);
	assert_notes(f, "skipped 1 of the configurations");
	f->options.skip_missing = false;

	give_bytes(capture, 30 * BYTES);
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source, "counters");

	/* a ratio of 3 is not used on the ledger's word, but on the user's */
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 90 * FLOPS);
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err,
		    "they disagree with the count: 3 x the FLOPs counted from the network");
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
	assert_says(&f->err, "FLOPs from counters for lab_gpu resnet50 fp32 bs4 train nchw: FLOPs "
			     "unavailable");
	finish(f, c);
}

/* One of four launches has no FLOPs: their sums have no ratio. */
static void both_are_demanded_of_different_launches(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * FLOPS);
	capture->total[RFL_QUANTITY_DRAM].launches = 4;
	capture->total[RFL_QUANTITY_FLOPS].launches = 3;
	capture->total[RFL_QUANTITY_FLOPS].validity = RFL_VALID_PARTIAL;
	f->options.ai = RFL_AI_COUNTERS;
	f->options.flops = RFL_FLOPS_COUNTERS;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "FLOPs and DRAM bytes from counters for lab_gpu resnet50 fp32 bs4 "
			     "train nchw: FLOPs and bytes are from different launches");
	assert_says(&f->err, "fix: count both in every launch, or use the count");

	/* not demanded: counted FLOPs over the bytes of the network */
	f->options.ai = RFL_AI_AUTO;
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].flops_source, "counters");
	assert_string_equal(f->pts->points[0].bytes_source,
			    "unfused (counters not used: FLOPs and bytes are from different "
			    "launches)");
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
		  "unfused (counters not used: counted in only 80 % of the time)" },
		{ RFL_VALID_MARKED, 100, "marked",
		  "unfused (counters not used: the self-test deviated by more than 2 %)" },
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
	f->rows[0].samples_per_s = (double)f->rows[0].batch / 4e-3;
	give_bytes(add_capture(c, PROF), 30 * 1.5 * BYTES);
	assert_ok(merge(f), &f->err);
	/* 6 GB in 4 ms are 1500 GB/s of 1000 */
	assert_close(f->pts->points[0].percent_of_attainable, 150, 1e-12);
	assert_non_null(strstr(f->pts->points[0].verdict, "above the roof: 150 % of"));
	assert_non_null(strstr(f->pts->points[0].verdict, "(use ncu --cache-control none)"));
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
			    "unfused (counters not used: the count is 0)");
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
	assert_says(&f->err, "remove one of them");
	/* and so are those of two tools */
	c->capture[1].label = labels[1];
	c->capture[1].source = "nvprof";
	assert_int_equal(merge(f), RFL_EFORMAT);

	/* with --keep-going the first is used, and its repeats */
	f->in.counters.keep_going = true;
	assert_ok(merge(f), &f->err);
	assert_notes(f, "run2_prof both have the DRAM bytes of");
	assert_notes(f, "remove one of them; lab_gpu_resnet50_fp32_bs4_run2_prof is skipped\n");
	p = &f->pts->points[0];
	assert_int_equal(p->counters_repeats, 2);
	assert_close(p->bytes_counters, 4.05e9, 1e-14);
	assert_non_null(strstr(p->counters_note, "run2_prof: skipped: 10 steps"));
	/* better one whose steps are known */
	c->capture[0].steps = -1;
	c->capture[2].label = labels[0];
	assert_ok(merge(f), &f->err);
	assert_notes(f, "run1_prof is skipped\n");
	assert_close(f->pts->points[0].bytes_counters, 3.8e9, 1e-14);
	finish(f, c);
}

/* A median is only as good as its worst capture. */
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

/* A run that could not be counted does not affect other metrics. */
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
	assert_says(&f->err,
		    "fix: follow the advice in the reason ('roofline counters check' verifies it)");
	/* its capture is not among the files */
	c->all.n = 0;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "no capture belongs to the configuration; counters_status in its "
			     "ledger row: unavailable: "
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
	assert_notes(f,
		     "counters: " PROF " disagrees with the count: 1 of 1 kernels have a launch");
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
	assert_says(&f->err, "counters: ncu/" PROF ".csv exists twice");
	finish(f, c);
}

/* --- CPUs --- */

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
	assert_non_null(strstr(p->counters_note, "12 steps, including warm-up, as in"));
	assert_non_null(strstr(p->counters_note, "set-up is also included"));
	assert_non_null(strstr(p->counters_note, "IPC 1.5"));
	assert_non_null(strstr(p->bytes_source, "unfused (counters not used: counted over a whole "
						"process"));
	f->options.ai = RFL_AI_COUNTERS;
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].bytes_source, "counters");
	finish(f, c);
}

/* Intensities of the caches: the FLOPs of the point, so that all levels have one rate. ncu's bytes
 * returned from L2 are another definition, used where the usual one is unknown, and named. */
static void intensities_of_the_caches(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);
	const struct rfl_point *p;

	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * 1.1 * FLOPS);
	know(capture->total, RFL_QUANTITY_L2_RETURN, 30 * 2 * BYTES);
	know(capture->total, RFL_QUANTITY_L1, 30 * 8 * BYTES);
	know(capture->total, RFL_QUANTITY_L1_RETURN, 30 * BYTES);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->ai_l2, FLOPS / 2 / BYTES, 1e-14);
	assert_close(p->ai_l1, FLOPS / 8 / BYTES, 1e-14);
	assert_non_null(strstr(p->counters_note, "; l2_return_bytes: from L2 to the SMs"));
	assert_non_null(strstr(p->counters_note, "; l1_bytes: through the tags of L1"));
	f->options.flops = RFL_FLOPS_COUNTERS;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].ai_l2, 1.1 * FLOPS / 2 / BYTES, 1e-14);
	/* doubtful counters set no intensity */
	f->options.flops = RFL_FLOPS_MODEL;
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 300 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_true(isnan(f->pts->points[0].ai_l2) && isnan(f->pts->points[0].ai_l1));
	finish(f, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(intensities_of_the_caches),
		T(bytes_per_step),
		T(twins),
		T(counters_are_demanded),
		T(flops_are_demanded),
		T(both_are_demanded_of_different_launches),
		T(validity_decides),
		T(above_the_roof_with_measured_bytes),
		T(no_bytes_at_all),
		T(repeats_give_a_median),
		T(the_worst_repeat_counts),
		T(live_repeats_are_told_by_run_id),
		T(refused_live_counts),
		T(captures_complete_each_other),
		T(the_same_file_twice),
		T(whole_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
