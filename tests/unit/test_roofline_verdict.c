/* What a point shows in words, and why a point may stand above its roof. */
#include "roofline_fixture.h"

#include "roofline/roofline.h"
#include "roofline/verdict.h"

/* A point of 16 threads under 1000 GFLOP/s over 100 GB/s (knee 10), with an L3 of 32 MB. */
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
	const struct rfl_roof roof = { .compute_flop_per_s = 1000e9,
				       .bandwidth_byte_per_s = 100e9 };
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
		.point = p,
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
	p->attainable_gflops = rfl_roof_attainable(&roof, ai) * 1e-9;
	p->percent_of_attainable = 100 * attained / p->attainable_gflops;
	p->headroom_s = p->step_s * (1 - attained / p->attainable_gflops);
	p->bound = (char *)(uintptr_t)rfl_bound_names[rfl_roof_bound(&roof, ai, ai, ai)];
}

/* The place of the words in the sentence; fails when they are missing. */
static size_t at(const struct rfl_buf *text, const char *words)
{
	const char *found = strstr(rfl_buf_str(text), words);

	if (!found)
		fail_msg("'%s' is not in '%s'", words, rfl_buf_str(text));
	return (size_t)(found - rfl_buf_str(text));
}

static void verdict(const struct scene *s, struct rfl_buf *text)
{
	rfl_buf_reset(text);
	rfl_verdict_write(&s->facts, text);
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
	at(&text, "at the knee: 50 % of the joint limit for 1 TFLOP/s (fp32.vector) and 100 GB/s");
	scene_init(&s, 2, 20, 0.02); /* a tenth of what it could be */
	verdict(&s, &text);
	at(&text, "neither ceiling explains the time");
	s.point.data_wait_ms = 400;
	verdict(&s, &text);
	at(&text, "waiting for data takes 40 % of the step");
	rfl_buf_fini(&text);
}

/* What a library's products attain is named beside the roof, of the same precision only, and not
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
	at(&text, "; 75 % of the 800 GFLOP/s that a matrix product attains (fp32.gemm)");
	s.compute[1].key = "bf16.gemm";
	verdict(&s, &text);
	NOT_SAID("matrix product");
	s.compute[1].key = "fp32.gemm";
	s.point.flops_source = (char *)(uintptr_t) "counters"; /* also of other operations */
	verdict(&s, &text);
	NOT_SAID("matrix product");
	scene_init(&s, 2, 120, 0.02);
	s.env.ncompute = 2;
	s.compute[1] =
		(struct rfl_peak_compute){ .key = "fp32.gemm", .peak = measured(800e9, 800e9, 16) };
	verdict(&s, &text);
	NOT_SAID("matrix product");
	rfl_buf_fini(&text);
}

/* Above by less than the uncertainty is not above. */
static void combined_uncertainty(void **state)
{
	struct scene s;

	(void)state;
	/* 3 % of the point, nothing of the roof (counts as 1 %): root of 10 = 3.16 % */
	scene_init(&s, 2, 200 * 1.031, 0.03);
	assert_false(rfl_verdict_above(&s.facts));
	scene_init(&s, 2, 200 * 1.032, 0.03);
	assert_true(rfl_verdict_above(&s.facts));
	/* a bandwidth whose median run reached 96 of 100: 4 %; with 3 % it makes 5 % */
	s.levels[1].peak.stats.median = 96e9;
	assert_false(rfl_verdict_above(&s.facts));
	scene_init(&s, 2, 200 * 1.051, 0.03);
	s.levels[1].peak.stats.median = 96e9;
	assert_true(rfl_verdict_above(&s.facts));
	/* the compute ceiling's spread says nothing of a memory-bound point */
	scene_init(&s, 2, 200 * 1.04, 0.03);
	s.compute[0].peak.stats.median = 500e9;
	assert_true(rfl_verdict_above(&s.facts));
	/* spreads that are not recorded count as 1 % each: 1.41 % */
	scene_init(&s, 2, 200 * 1.014, NAN);
	s.levels[1].peak.stats.n = 0;
	assert_false(rfl_verdict_above(&s.facts));
	scene_init(&s, 2, 200 * 1.015, NAN);
	s.levels[1].peak.stats.n = 0;
	assert_true(rfl_verdict_above(&s.facts));
}

/* What is seen to lie above the ceiling is said, also within the uncertainty. */
static void above_within_the_uncertainty(void **state)
{
	struct rfl_buf text;
	struct scene s;

	(void)state;
	rfl_buf_init(&text, 0);
	scene_init(&s, 50, 1250, 0.4);
	assert_false(rfl_verdict_above(&s.facts));
	assert_true(rfl_verdict_exceeds(&s.point));
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
	assert_false(rfl_verdict_exceeds(&s.point));
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
	/* a matrix unit that is in the file without a value */
	s.env.ncompute = 2;
	s.compute[1].key = "fp32.matrix";
	s.compute[1].peak = (struct rfl_peak){ .status = RFL_PEAK_UNKNOWN, .value = NAN };
	verdict(&s, &text);
	at(&text, "(1) the peaks file lacks the ceiling of the matrix unit");
	/* additions beside multiply-adds, where the ceiling with them is higher */
	s.compute[1].key = "fp32.vector.fmaadd";
	s.compute[1].peak = measured(1500e9, 1500e9, 16);
	verdict(&s, &text);
	at(&text, "(1) the processor runs additions beside multiply-adds");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below_the_roof),
		cmocka_unit_test(beside_the_products_of_a_library),
		cmocka_unit_test(combined_uncertainty),
		cmocka_unit_test(above_within_the_uncertainty),
		cmocka_unit_test(above_the_memory_roof),
		cmocka_unit_test(above_the_compute_roof),
		T(above_the_roof_in_a_merge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
