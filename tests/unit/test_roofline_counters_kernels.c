/* Values of single kernels: those without a FLOP, shares that are known, precisions. */
#include "counters_fixture.h"

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
	/* Tensor Cores alone */
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

/* Of an amp run: elementwise kernels are known without Tensor Cores, but not without fp16. */
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
		p->verdict,
		"; kernels without FLOPs take 45 % of the kernel time (transpose 20 %; copy 15 %; "
		"fill 5 %; 1 more)"));

	/* without one of the times, launches give the coverage, and the share is unknown */
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
	assert_non_null(strstr(f->pts->points[0].counters_note, "are from different launches"));
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

/* --- precision --- */

static void fp32_that_ran_on_matrix_units(void **state)
{
	struct captures *c;
	struct fixture *f = profiled(state, &c);
	struct rfl_capture *capture = add_capture(c, PROF);

	give_bytes(capture, 30 * BYTES);
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_TF32, 30 * 0.97 * FLOPS);
	assert_ok(merge(f), &f->err);
	assert_non_null(
		strstr(f->pts->points[0].verdict,
		       "; only 0 % of the counted FLOPs are fp32, and most of the rest are "
		       "flops.tensor_tf32; the ceiling for these is tf32.matrix (80 TFLOP/s), not "
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

/* FP32 counters of an amp run know nothing of its Tensor Cores. */
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
	assert_non_null(
		strstr(f->pts->points[0].flops_source,
		       "has no flops.tensor_fp16, the FLOPs in the precision of the run (amp)"));
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
			       "; 28 % of the FLOPs are in a precision without a ceiling in "
			       "the peaks file, so fp16.matrix is used for all"));
	/* the model's FLOPs stand under the Tensor Cores alone */
	f->options.flops = RFL_FLOPS_MODEL;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].peak_gflops, 160000, 1e-12);
	finish(f, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(kernels_of_which_too_little_is_known),
		T(kernels_of_an_amp_run),
		T(kernels_without_a_flop),
		T(flops_and_bytes_of_different_launches),
		T(fp32_that_ran_on_matrix_units),
		T(flops_of_another_precision_alone),
		T(mixed_precision_has_a_mean_roof),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
