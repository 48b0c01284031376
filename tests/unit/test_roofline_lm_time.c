/*
 * test_roofline_lm_time.c - minimum times of language models: attainable rates of Table 1 of "LLM
 * Inference Unveiled" (arXiv 2402.16363), sums of steps, the batch at the ridge point, ceilings of
 * data sheets.
 */
#include "roofline/lm_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peaks/edit.h"
#include "tests/unit/rfl_test.h"

/* The GPU of the table: an NVIDIA A6000. */
static const struct rfl_attain_roof a6000 = {
	.compute_flop_per_s = 155e12,
	.vector_flop_per_s = NAN,
	.bandwidth_byte_per_s = 768e9,
};

static struct rfl_lms *lms;

static int load(void **state)
{
	(void)state;
	lms = rfl_lms_new();
	return 0;
}

static int unload(void **state)
{
	(void)state;
	rfl_lms_free(lms);
	return 0;
}

static struct rfl_lm_run *run_of(const char *name, int64_t batch, int64_t past, int64_t tokens)
{
	struct rfl_lm_run *run = calloc(1, sizeof(*run));
	struct rfl_err err = RFL_ERR_INIT;

	assert_non_null(run);
	assert_ok(rfl_lms_find(lms, name, &run->lm, &err), &err);
	run->roof = &a6000;
	run->steps = 1;
	run->advance = 1;
	run->step = (struct rfl_lm_step){ .batch = batch,
					  .past = past,
					  .tokens = tokens,
					  .logits = 1,
					  .decode = tokens == 1,
					  .fusion = RFL_FUSION_FUSED };
	rfl_lm_formats_fill(&run->step.formats);
	return run;
}

static double time_of(const struct rfl_lm_run *run)
{
	struct rfl_lm_time sum = { .limit_s = { 0 } };

	for (size_t i = 0; i < run->count.n; i++)
		rfl_lm_time_add(&sum, &run->times[i], run->count.ops[i].layers);
	return rfl_lm_time_sum(&sum);
}

static void rates_of_the_table(void **state)
{
	static const struct {
		const char *name;
		bool decode;
		double rate; /* OP/s as printed; 155T: compute */
	} rows[] = {
		{ "q_proj", false, 155e12 },   { "gate_proj", false, 155e12 },
		{ "qk_matmul", false, 87e12 }, { "sv_matmul", false, 87e12 },
		{ "softmax", false, 960e9 },   { "attn_add", false, 192e9 },
		{ "o_proj", true, 768e9 },     { "down_proj", true, 768e9 },
		{ "qk_matmul", true, 762e9 },  { "softmax", true, 960e9 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_lm_run *run = run_of("llama2_7b", 1, rows[i].decode ? 2047 : 0,
						rows[i].decode ? 1 : 2048);
		size_t k = 0;

		run->step.fusion = RFL_FUSION_UNFUSED;
		rfl_lm_run(run);
		while (strcmp(run->count.ops[k].name, rows[i].name) != 0)
			k++;

		const struct rfl_lm_op *op = &run->count.ops[k];
		const double work = op->flops > 0 ? op->flops : op->elementwise;

		assert_close(work / rfl_lm_time_sum(&run->times[k]), rows[i].rate, 0.005);
		assert_string_equal(rfl_lm_time_bound(&run->times[k]),
				    rows[i].rate < 155e12 ? "memory" : "compute");
		free(run);
	}
}

static void steps_add_up(void **state)
{
	struct rfl_lm_run *all = run_of("gemma3_1b", 3, 500, 1), *one = NULL;
	double time = 0, flops = 0;

	(void)state;
	all->steps = 20;
	all->advance = 2.5;
	rfl_lm_run(all);
	for (int i = 0; i < 20; i++) {
		one = run_of("gemma3_1b", 3, 500 + (int64_t)(i * 2.5), 1);
		rfl_lm_run(one);
		time += time_of(one);
		flops += rfl_lm_total(&one->count).flops;
		assert_close(rfl_lm_total(&one->count).params, rfl_lm_total(&all->count).params, 0);
		if (i < 19)
			free(one);
	}
	assert_close(time_of(all), time, 1e-12);
	assert_close(rfl_lm_total(&all->count).flops, flops, 0);
	assert_close(all->count.cache_bytes, one->count.cache_bytes, 0);
	free(one);
	free(all);
}

static double intensity(struct rfl_lm_run *run, int64_t batch)
{
	struct rfl_lm_op total;

	run->step.batch = batch;
	rfl_lm_run(run);
	total = rfl_lm_total(&run->count);
	return rfl_lm_intensity(&total);
}

static void the_batch_at_the_ridge(void **state)
{
	struct rfl_lm_run *run = run_of("llama3_8b", 1, 10, 1);
	const double ridge = 155e12 / 768e9;
	int64_t batch = rfl_lm_ridge_batch(run->lm, &run->step, &a6000, false);

	(void)state;
	assert_true(batch > 1);
	assert_true(intensity(run, batch) >= ridge);
	assert_true(intensity(run, batch - 1) < ridge);
	/* each sequence brings 131,072 bytes of cache per token, and 16 GFLOP */
	run->step.past = 4096;
	assert_int_equal(rfl_lm_ridge_batch(run->lm, &run->step, &a6000, false), 0);
	batch = rfl_lm_ridge_batch(run->lm, &run->step, &a6000, true);
	assert_in_range(batch, 202, 240);
	/* a quarter of the bytes, with scales a little more */
	run->step.formats.weights = *rfl_lm_format_find("int4");
	run->step.formats.head = run->step.formats.weights;
	assert_in_range(rfl_lm_ridge_batch(run->lm, &run->step, &a6000, true), batch / 4,
			batch / 3);
	free(run);
}

static void a_link_takes_time(void **state)
{
	struct rfl_lm_run *run = run_of("llama3_70b", 16, 1000, 1);
	double alone;

	(void)state;
	run->step.tensor = 8;
	rfl_lm_run(run);
	alone = time_of(run);
	run->link_byte_per_s = 450e9;
	rfl_lm_run(run);
	assert_close(time_of(run) - alone, 80 * 2 * 2 * 7 / 8.0 * 16 * 8192 * 2 / 450e9, 1e-9);
	free(run);
}

static void a_sheet_has_ceilings(void **state)
{
	static const struct {
		const char *precision, *key;
		double rate;
	} cases[] = {
		{ "bf16", "bf16.matrix", 989.4e12 },
		{ "fp8", "fp8.matrix", 1978.9e12 },
		{ "int8", "int8.matrix", 1978.9e12 },
	};
	RFL_AUTOPTR(devices) devices = rfl_devices_new();
	RFL_AUTOPTR(peaks) peaks = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_attain_roof roof;

	(void)state;
	assert_ok(rfl_peaks_of_sheet(rfl_devices_get(devices, "NVIDIA H200"), &peaks, &err), &err);
	assert_string_equal(peaks->envs[0].name, "nvidia_h200");
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		assert_ok(rfl_attain_find(peaks, "nvidia_h200", cases[i].precision,
					  RFL_FUSION_FUSED, &roof, &err),
			  &err);
		assert_string_equal(roof.compute_key, cases[i].key);
		assert_close(roof.compute_flop_per_s, cases[i].rate, 1e-12);
		assert_close(roof.bandwidth_byte_per_s, 4800e9, 1e-12);
	}
	assert_int_equal(
		rfl_attain_find(peaks, "nvidia_h200", "int4", RFL_FUSION_FUSED, &roof, &err),
		RFL_ENOTFOUND);
	/* every sheet becomes a valid file */
	for (size_t i = 0; i < devices->n; i++) {
		struct rfl_peaks *p = NULL;

		rfl_err_clear(&err);
		assert_ok(rfl_peaks_of_sheet(&devices->sheets[i], &p, &err), &err);
		rfl_peaks_free(p);
	}
}

/* The steps of a row are those of its cache and its new tokens, and no more can be reached than
 * what the bytes of the weights and of the cache allow. */
static void the_steps_of_a_row(void **state)
{
	static const char text[] = "{\"lab\": {\"peak_gflops\": {\"bf16\": 100000}, "
				   "\"peak_gbps\": 100}}";
	const char *path = write_file(*state, "peaks.json", text);
	struct rfl_ledger_row row = { .env = (char *)"lab",
				      .model = (char *)"smollm2_135m",
				      .precision = (char *)"bf16",
				      .mode = (char *)"decode",
				      .batch = 4,
				      .context_length = 1,
				      .past = 100,
				      .iters = 3 };
	struct rfl_lm_steps *steps = calloc(1, sizeof(*steps));
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_peaks *peaks = NULL;
	double bytes, int8;

	assert_non_null(steps);
	assert_ok(rfl_peaks_load(path, &peaks, &err), &err);
	/* 134.5 M parameters of 2 bytes, the embedding once; 30 layers that read 2 x 3 heads of 64
	 * for 102 tokens (of 101, 102 and 103), and write those of one */
	bytes = 134515008.0 * 2;
	bytes += 4 * 30 * 2 * 3 * 64 * 2 * (102.0 + 1);
	assert_ok(rfl_lm_steps_of(&row, NULL, peaks, arena, steps, &err), &err);
	assert_int_equal(steps->run.steps, 3);
	assert_true(steps->least_s > bytes / 100e9);
	assert_close(steps->least_s, bytes / 100e9, 0.02); /* activations are few */
	/* int8 halves the matrices of the layers, not the embedding of 28.3 M */
	row.weights = (char *)"int8";
	int8 = bytes - (134515008.0 - 49152 * 576);
	assert_ok(rfl_lm_steps_of(&row, NULL, peaks, arena, steps, &err), &err);
	assert_close(steps->least_s, int8 / 100e9, 0.03);
	row.weights = NULL;
	/* without ceilings, only counts */
	assert_ok(rfl_lm_steps_of(&row, NULL, NULL, arena, steps, &err), &err);
	assert_true(isnan(steps->least_s) && steps->run.count.n > 0);
	row.env = (char *)"elsewhere";
	assert_int_equal(rfl_lm_steps_of(&row, NULL, peaks, arena, steps, &err), RFL_EMISSING);
	assert_non_null(strstr(err.msg, "elsewhere"));
	assert_true(isnan(steps->least_s) && steps->run.count.n > 0);
	rfl_err_clear(&err);
	row.model = (char *)"unknown_lm";
	assert_int_equal(rfl_lm_steps_of(&row, NULL, peaks, arena, steps, &err), RFL_ENOTFOUND);
	rfl_peaks_free(peaks);
	rfl_arena_free(arena);
	free(steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_of_the_table),
		cmocka_unit_test(steps_add_up),
		cmocka_unit_test(the_batch_at_the_ridge),
		cmocka_unit_test(a_link_takes_time),
		cmocka_unit_test(a_sheet_has_ceilings),
		cmocka_unit_test_setup_teardown(the_steps_of_a_row, tmpdir_make, tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
