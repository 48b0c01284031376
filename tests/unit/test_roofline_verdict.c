/* What a point shows in words, and why a point may stand above its roof. */
#include "roofline_fixture.h"

#include "roofline/roofline.h"
#include "roofline/verdict.h"

static struct rfl_arena *arena;

/* A point of 16 threads under 1000 GFLOP/s over 100 GB/s (ridge point 10), with an L3 of 32 MB. */
struct scene {
	struct rfl_point point;
	struct rfl_peaks_env env;
	struct rfl_peak_compute compute[2];
	struct rfl_peak_level levels[2];
	struct rfl_verdict_facts facts;
};

static struct rfl_peak measured(double value, double median, int threads)
{
	return (struct rfl_peak){
		.status = RFL_PEAK_MEASURED,
		.value = value,
		.threads = threads,
		.stats = { .n = 5, .median = median, .min = median, .max = value },
	};
}

static void scene_init(struct scene *s, double ai, double attained, double spread)
{
	struct rfl_point *p = &s->point;

	*s = (struct scene){
		.env = { .name = "lab", .kind = "cpu", .units = 16, .ncompute = 1, .nlevels = 2 },
		.compute = { { .key = "fp32.vector", .peak = measured(1000e9, 1000e9, 16) } },
		.levels = { { .level = "L3",
			      .scope = "socket",
			      .capacity_bytes = 32000000,
			      .peak = { .status = RFL_PEAK_UNKNOWN, .value = NAN } },
			    { .level = "DRAM",
			      .scope = "node",
			      .peak = measured(100e9, 100e9, 16) } },
	};
	s->env.compute = s->compute;
	s->env.levels = s->levels;
	s->facts = (struct rfl_verdict_facts){
		.env = &s->env,
		.compute = &s->compute[0].peak,
		.dram = &s->levels[1].peak,
		.step_compulsory_bytes = 1e9,
	};
	rfl_fields_clear(rfl_point_fields, RFL_POINT_NCOLUMNS, p);
	p->backend = (char *)(uintptr_t) "cpu";
	p->precision = (char *)(uintptr_t) "fp32";
	p->compute_key = (char *)(uintptr_t) "fp32.vector";
	p->bytes_source = (char *)(uintptr_t) "unfused";
	p->threads = 16;
	p->step_s = 1;
	p->peak_gflops = 1000;
	p->peak_gbps = 100;
	p->knee_ai = 10;
	p->ai = p->ai_unfused = ai;
	p->ai_fused = ai * 2;
	p->ai_compulsory = ai * 10;
	p->attained_gflops = attained;
	p->attained_gflops_lo = attained * (1 - spread);
	p->attained_gflops_hi = attained * (1 + spread);
}

/* The place of the words in the sentence; fails when they are missing. */
static size_t at(const struct rfl_buf *text, const char *words)
{
	const char *found = strstr(rfl_buf_str(text), words);

	if (!found)
		fail_msg("'%s' is not in '%s'", words, rfl_buf_str(text));
	return (size_t)(found - rfl_buf_str(text));
}

/* Judge the point, and write its verdict. */
static struct rfl_point_verdict judge(struct scene *s, struct rfl_buf *text)
{
	rfl_point_judge(&s->point, &s->facts, arena);
	if (text) {
		rfl_buf_reset(text);
		rfl_verdict_write(&s->point, &s->facts, text);
	}
	return rfl_point_verdict(&s->point);
}

static void verdict(struct scene *s, struct rfl_buf *text)
{
	(void)judge(s, text);
}

#define NOT_SAID(words) assert_null(strstr(rfl_buf_str(&text), (words)))

static void below_the_roof(void **state)
{
	struct rfl_buf text;
	struct scene s;

	(void)state;
	rfl_buf_init(&text, 0);
	scene_init(&s, 2, 120, 0.02); /* 120 of 2 x 100 */
	verdict(&s, &text);
	assert_string_equal(
		rfl_buf_str(&text),
		"memory-bound: 60 % of the limit for 100 GB/s at 2 FLOP/byte; a step takes "
		"1 s and would take 600 ms at the roof");
	scene_init(&s, 50, 750, 0.02);
	verdict(&s, &text);
	at(&text, "compute-bound: 75 % of 1 TFLOP/s (fp32.vector)");
	scene_init(&s, 10, 500, 0.02);
	verdict(&s, &text);
	at(&text,
	   "at the ridge point: 50 % of the joint limit for 1 TFLOP/s (fp32.vector) and 100 GB/s");
	scene_init(&s, 2, 20, 0.02); /* a tenth of what it could be */
	verdict(&s, &text);
	assert_string_equal(rfl_buf_str(&text),
			    "neither ceiling explains the time: 10 % of the limit for 100 GB/s at "
			    "2 FLOP/byte; a step takes 1 s and would take 100 ms at the roof");
	s.point.data_wait_ms = 400;
	verdict(&s, &text);
	at(&text, "waiting for data takes 40 % of the step");
	rfl_buf_fini(&text);
}

/* What a library's products achieve is named beside the roof, of the same precision only, and not
 * where memory is the limit. */
static void beside_the_products_of_a_library(void **state)
{
	struct rfl_buf text;
	struct scene s;

	(void)state;
	rfl_buf_init(&text, 0);
	scene_init(&s, 50, 600, 0.02);
	s.env.ncompute = 2;
	s.compute[1] =
		(struct rfl_peak_compute){ .key = "fp32.gemm", .peak = measured(800e9, 800e9, 16) };
	verdict(&s, &text);
	at(&text, "compute-bound: 60 % of 1 TFLOP/s (fp32.vector)");
	at(&text, "; 75 % of the 800 GFLOP/s that a GEMM achieves (fp32.gemm)");
	s.compute[1].key = "bf16.gemm";
	verdict(&s, &text);
	NOT_SAID("GEMM");
	s.compute[1].key = "fp32.gemm";
	s.point.flops_source = (char *)(uintptr_t) "counters"; /* also of other operations */
	verdict(&s, &text);
	NOT_SAID("GEMM");
	scene_init(&s, 2, 120, 0.02);
	s.env.ncompute = 2;
	s.compute[1] =
		(struct rfl_peak_compute){ .key = "fp32.gemm", .peak = measured(800e9, 800e9, 16) };
	verdict(&s, &text);
	NOT_SAID("GEMM");
	rfl_buf_fini(&text);
}

/* The word for the bound, its adjective, and the column of the point are one decision. */
static void one_decision(void **state)
{
	static const struct {
		double ai, attained;
		const char *source, *word, *adjective;
		enum rfl_bound roof;
	} cases[] = {
		{ 2, 120, "unfused", "memory", "memory-bound", RFL_BOUND_MEMORY },
		{ 50, 750, "unfused", "compute", "compute-bound", RFL_BOUND_COMPUTE },
		{ 10, 500, "unfused", "ridge", "at the ridge point", RFL_BOUND_KNEE },
		{ 2, 60, "unfused", "memory", "memory-bound", RFL_BOUND_MEMORY },
		{ 2, 59.9, "unfused", "neither", "below 30 % of the roof", RFL_BOUND_MEMORY },
		{ 50, 299, "unfused", "neither", "below 30 % of the roof", RFL_BOUND_COMPUTE },
		{ 2, 260, "unfused", "above", "above the roof", RFL_BOUND_MEMORY },
		{ 3, 300, "lower-bound", "by construction", "on the roof by construction",
		  RFL_BOUND_MEMORY },
		{ 10, 950, "lower-bound", "compute", "compute-bound", RFL_BOUND_KNEE },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_point_verdict v;
		struct scene s;

		scene_init(&s, cases[i].ai, cases[i].attained, 0.02);
		s.point.bytes_source = (char *)(uintptr_t)cases[i].source;
		v = judge(&s, NULL);
		assert_string_equal(s.point.bound, cases[i].word);
		assert_string_equal(rfl_bound_words[v.bound].word, cases[i].word);
		assert_string_equal(rfl_bound_words[v.bound].adjective, cases[i].adjective);
		assert_int_equal(v.roof, cases[i].roof);
	}
}

/* A file of version 0.1.0 has no uncertainty, but says in its sentence whether a point is above. */
static void verdicts_of_older_files(void **state)
{
	struct scene s;

	(void)state;
	scene_init(&s, 50, 1250, 0.02);
	s.point.bound = (char *)(uintptr_t) "compute";
	s.point.verdict = (char *)(uintptr_t) "compute-bound: 125 % of 1 TFLOP/s (fp32.vector); "
					      "above the measured ceiling, but within the "
					      "uncertainty of 40 %";
	assert_string_equal(rfl_point_bound(&s.point), "compute");
	s.point.verdict = (char *)(uintptr_t) "above the roof: 125 % of 1 TFLOP/s";
	assert_string_equal(rfl_point_bound(&s.point), "above");
	s.point.verdict = NULL; /* of a file written by hand: 2 % and 1 % */
	assert_string_equal(rfl_point_bound(&s.point), "above");
	scene_init(&s, 50, 200, 0.02);
	s.point.bound = (char *)(uintptr_t) "compute";
	assert_string_equal(rfl_point_bound(&s.point), "neither");
	scene_init(&s, 10, 500, 0.02);
	s.point.peak_gbps = NAN; /* the file alone has the bound, by its older name */
	s.point.bound = (char *)(uintptr_t) "knee";
	assert_int_equal(rfl_point_verdict(&s.point).roof, RFL_BOUND_KNEE);
}

/* Without FLOPs, the bytes are compared with the bandwidth. */
static void rated_by_bandwidth(void **state)
{
	struct rfl_buf text;
	struct scene s;

	rfl_buf_init(&text, 0);
	(void)state;
	scene_init(&s, NAN, 0, NAN);
	s.point.flops_per_step = 0;
	s.point.bytes_per_step = 60e9; /* in 1 s, at 100 GB/s */
	s.point.part_kind = (char *)(uintptr_t) "layer";
	assert_int_equal(judge(&s, &text).bound, RFL_BOUND_MEMORY);
	assert_close(s.point.attained_gbps, 60, 1e-12);
	assert_close(s.point.percent_of_attainable, 60, 1e-12);
	assert_close(s.point.headroom_s, 0.4, 1e-12);
	assert_string_equal(rfl_buf_str(&text),
			    "memory-bound: 60 % of 100 GB/s; the layer takes 1 s and would take "
			    "600 ms at the roof");
	s.point.bytes_per_step = 29e9;
	assert_int_equal(judge(&s, NULL).bound, RFL_BOUND_NEITHER);
	rfl_buf_fini(&text);
}

/* Above by less than the uncertainty is not above. */
static void combined_uncertainty(void **state)
{
	struct scene s;

	(void)state;
	/* 3 % of the point, nothing of the roof (counts as 1 %): root of 10 = 3.16 % */
	scene_init(&s, 2, 200 * 1.031, 0.03);
	assert_int_not_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
	scene_init(&s, 2, 200 * 1.032, 0.03);
	assert_int_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
	/* a bandwidth whose median run reached 96 of 100: 4 %; with 3 % it makes 5 % */
	s.levels[1].peak.stats.median = 96e9;
	assert_int_not_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
	scene_init(&s, 2, 200 * 1.051, 0.03);
	s.levels[1].peak.stats.median = 96e9;
	assert_int_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
	/* the compute ceiling's spread says nothing of a memory-bound point */
	scene_init(&s, 2, 200 * 1.04, 0.03);
	s.compute[0].peak.stats.median = 500e9;
	assert_int_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
	/* spreads that are not recorded count as 1 % each: 1.41 % */
	scene_init(&s, 2, 200 * 1.014, NAN);
	s.levels[1].peak.stats.n = 0;
	assert_int_not_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
	scene_init(&s, 2, 200 * 1.015, NAN);
	s.levels[1].peak.stats.n = 0;
	assert_int_equal(judge(&s, NULL).bound, RFL_BOUND_ABOVE);
}

/* What is seen to lie above the ceiling is said, also within the uncertainty. */
static void above_within_the_uncertainty(void **state)
{
	struct rfl_buf text;
	struct scene s;

	(void)state;
	rfl_buf_init(&text, 0);
	scene_init(&s, 50, 1250, 0.4);
	assert_int_equal(judge(&s, NULL).bound, RFL_BOUND_COMPUTE);
	assert_true(judge(&s, NULL).over);
	verdict(&s, &text);
	at(&text, "compute-bound: 125 % of 1 TFLOP/s (fp32.vector)");
	at(&text, "above the measured ceiling, but within the uncertainty of 40 %: measure the "
		  "ceilings again");
	s.compute[0].peak.status = RFL_PEAK_USER;
	verdict(&s, &text);
	at(&text,
	   "above the given ceiling, but within the uncertainty of 40 %: measure the ceilings "
	   "while");
	scene_init(&s, 50, 1004, 0.4); /* rounds to 100 % */
	verdict(&s, &text);
	assert_false(rfl_point_verdict(&s.point).over);
	NOT_SAID("above");
	rfl_buf_fini(&text);
}

static void above_the_memory_roof(void **state)
{
	struct rfl_buf text;
	struct scene s;

	(void)state;
	rfl_buf_init(&text, 0);
	/* 260 of 200: the compulsory bytes, a tenth, would allow it */
	scene_init(&s, 2, 260, 0.02);
	verdict(&s, &text);
	at(&text,
	   "above the roof: 130 % of the limit for 100 GB/s at 2 FLOP/byte, uncertainty 2.2 %");
	at(&text, "(1) the bytes are overcounted");
	assert_true(at(&text, "the working set stays in cache") < at(&text, "slower when"));
	NOT_SAID("Winograd");
	NOT_SAID("threads");
	/* all that must move fits into the L3 */
	s.facts.step_compulsory_bytes = 31e6;
	verdict(&s, &text);
	at(&text, "(1) the working set stays in cache");
	at(&text, "(2) the bytes are overcounted");
	/* measured with one thread, run with sixteen */
	s.levels[1].peak.threads = 1;
	verdict(&s, &text);
	at(&text, "(1) the ceiling was measured with fewer threads");
	/* compulsory bytes cannot be overcounted */
	scene_init(&s, 2, 260, 0.02);
	s.point.bytes_source = (char *)(uintptr_t) "compulsory";
	verdict(&s, &text);
	NOT_SAID("overcounted");
	/* a value typed in by hand */
	scene_init(&s, 2, 260, 0.02);
	s.point.ai_compulsory = 2.1;
	s.levels[1].peak.status = RFL_PEAK_USER;
	verdict(&s, &text);
	at(&text, "(1) the ceiling was not measured on this device");
	NOT_SAID("slower when");
	rfl_buf_fini(&text);
}

static void above_the_compute_roof(void **state)
{
	struct rfl_buf text;
	struct scene s;

	(void)state;
	rfl_buf_init(&text, 0);
	scene_init(&s, 50, 1300, 0.01);
	verdict(&s, &text);
	at(&text, "above the roof: 130 % of 1 TFLOP/s (fp32.vector)");
	at(&text, "Winograd");
	NOT_SAID("cache");
	NOT_SAID("overcount");
	NOT_SAID("TF32");
	s.facts.factor = true;
	verdict(&s, &text);
	at(&text, "the training factor overcounts the FLOPs");
	/* a matrix ceiling that is in the file without a value */
	s.env.ncompute = 2;
	s.compute[1].key = "fp32.matrix";
	s.compute[1].peak = (struct rfl_peak){ .status = RFL_PEAK_UNKNOWN, .value = NAN };
	verdict(&s, &text);
	at(&text, "(1) the peaks file lacks the ceiling of the matrix cores");
	/* additions beside multiply-adds, where the ceiling with them is higher */
	s.compute[1].key = "fp32.vector.fmaadd";
	s.compute[1].peak = measured(1500e9, 1500e9, 16);
	verdict(&s, &text);
	at(&text, "(1) the CPU runs additions beside multiply-adds");
	s.compute[1].peak = measured(1010e9, 1010e9, 16);
	verdict(&s, &text);
	NOT_SAID("additions");
	/* a GPU whose TF32 ceiling would hold the point */
	s.point.backend = (char *)(uintptr_t) "cuda";
	s.compute[1].key = "tf32.matrix";
	s.compute[1].peak = measured(4000e9, 4000e9, 0);
	verdict(&s, &text);
	at(&text, "(1) the library ran fp32 on tensor cores (TF32)");
	rfl_buf_fini(&text);
}

/* The whole way: a step that is faster than the roof keeps its percent and its negative headroom.
 */
static void above_the_roof_in_a_merge(void **state)
{
	struct fixture *f = fixture_new();
	const struct rfl_point *p;

	add_run(f, "lab_cpu", "aa", 4, 100); /* 97.196310528 / 0.1 = 971.96 of 420 */
	use_peaks(f, state, SMALL_PEAKS);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_close(p->percent_of_attainable, 231.41978697142857, 1e-12);
	assert_close(p->headroom_s, 0.1 - 97.196310528 / 420, 1e-12);
	assert_non_null(strstr(p->verdict, "above the roof: 231 % of 420 GFLOP/s"));
	assert_non_null(strstr(p->verdict, "(1) the ceiling was not measured on this device"));
	fixture_free(f);
}

static int make_arena(void **state)
{
	(void)state;
	arena = rfl_arena_new();
	return 0;
}

static int free_arena(void **state)
{
	(void)state;
	rfl_arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_decision),
		cmocka_unit_test(verdicts_of_older_files),
		cmocka_unit_test(rated_by_bandwidth),
		cmocka_unit_test(below_the_roof),
		cmocka_unit_test(beside_the_products_of_a_library),
		cmocka_unit_test(combined_uncertainty),
		cmocka_unit_test(above_within_the_uncertainty),
		cmocka_unit_test(above_the_memory_roof),
		cmocka_unit_test(above_the_compute_roof),
		T(above_the_roof_in_a_merge),
	};
	return cmocka_run_group_tests(tests, make_arena, free_arena);
}
