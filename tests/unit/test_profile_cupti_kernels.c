/*
 * test_profile_cupti_kernels.c - times of kernels: what they are by their names, and their records
 * as ranges of a capture.
 */
#include <math.h>

#include "profile/cupti/impl.h"
#include "profile/capture.h"
#include "profile/source.h"
#include "tests/unit/fake_gpu.h"

/* Names as cuBLAS, cuDNN, CUTLASS, PyTorch, FlashAttention, NCCL and Triton give them. */
static const struct {
	const char *name;
	enum rfl_kernel_class is;
} kernels[] = {
	{ "ampere_sgemm_128x64_nn", RFL_KERNEL_MATRIX },
	{ "volta_scudnn_128x64_relu_interior_nn_v1", RFL_KERNEL_MATRIX },
	{ "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", RFL_KERNEL_MATRIX },
	{ "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_"
	  "stage4_warpsize2x2x1_g1_tensor16x8x8_kernel_cudnn",
	  RFL_KERNEL_MATRIX },
	{ "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x"
	  "16",
	  RFL_KERNEL_MATRIX },
	{ "sm90_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", RFL_KERNEL_MATRIX },
	{ "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", RFL_KERNEL_MATRIX },
	{ "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x1_tn_"
	  "align8>(T1::Params)",
	  RFL_KERNEL_MATRIX },
	{ "void Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>("
	  "Params)",
	  RFL_KERNEL_MATRIX },
	{ "void gemm_v0<float>(T1 *, T1 *, T1 *, int, int, int)", RFL_KERNEL_MATRIX },
	{ "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, "
	  "false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<float const>>>(...)",
	  RFL_KERNEL_MATRIX },
	{ "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float>(...)",
	  RFL_KERNEL_MATRIX },
	{ "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(...)",
	  RFL_KERNEL_MATRIX },
	{ "void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int, int, int)",
	  RFL_KERNEL_MATRIX },
	{ "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, false, "
	  "true>(...)",
	  RFL_KERNEL_MATRIX },
	{ "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, 0, 0, "
	  "bfloat16_t>>(Flash_fwd_params)",
	  RFL_KERNEL_MATRIX },
	{ "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
	  RFL_KERNEL_MATRIX },
	{ "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, "
	  "(cudnnKernelDataType_t)2>(...)",
	  RFL_KERNEL_COPY },
	{ "void cudnn::ops::convertTensor_kernel<float, float, __half>(...)", RFL_KERNEL_COPY },
	{ "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4, 64, "
	  "64>(...)",
	  RFL_KERNEL_COPY },
	{ "void at::native::vectorized_elementwise_kernel<(int)4, "
	  "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda(float) "
	  "(instance 1)], std::array<char *, 2>>(int, T2, T3)",
	  RFL_KERNEL_COPY },
	{ "void at::native::elementwise_kernel<128, 2, "
	  "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(...)>>(int, T3)",
	  RFL_KERNEL_COPY },
	{ "void at::native::vectorized_elementwise_kernel<4, "
	  "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>(int, T2, T3)",
	  RFL_KERNEL_ELEMENTWISE },
	{ "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctorOnSelf_add<float>>",
	  RFL_KERNEL_ELEMENTWISE },
	{ "triton_poi_fused_add_relu_3", RFL_KERNEL_ELEMENTWISE },
	{ "triton_red_fused_native_layer_norm_7", RFL_KERNEL_NORMALISATION },
	{ "triton_red_fused_sum_2", RFL_KERNEL_REDUCTION },
	{ "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(...)",
	  RFL_KERNEL_NORMALISATION },
	{ "void at::native::batch_norm_collect_statistics_kernel<at::native::InvStd, float>(...)",
	  RFL_KERNEL_NORMALISATION },
	{ "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(...)",
	  RFL_KERNEL_NORMALISATION },
	{ "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
	  "at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, "
	  "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>(T1, T2, T3...)",
	  RFL_KERNEL_OPTIMIZER },
	{ "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
	  "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4>>(T3)",
	  RFL_KERNEL_REDUCTION },
	{ "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, "
	  "float>(...)",
	  RFL_KERNEL_REDUCTION },
	{ "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(...)",
	  RFL_KERNEL_POOLING },
	{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
	  RFL_KERNEL_COLLECTIVE },
	{ "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1",
	  RFL_KERNEL_MATRIX },
	{ "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x1x1",
	  RFL_KERNEL_MATRIX },
	{ "cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise_pointwise_knob_3",
	  RFL_KERNEL_MATRIX },
	{ "void convolve_common_engine_float_NHWC<__nv_bfloat16, __nv_bfloat16, 128, 6, 7, 3, 3, "
	  "5, 1, false, true>(int, int, int)",
	  RFL_KERNEL_MATRIX },
	{ "void cudnn::cnn::dgrad2d_grouped_direct_kernel<float, int, float, float, false, true, "
	  "1, "
	  "0>(cudnn::cnn::DgradGroupedDirectParams, float const *, float const *, float *)",
	  RFL_KERNEL_MATRIX },
	{ "turing_fp16_s1688cudnn_fp16_256x64_sliced1x2_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
	  RFL_KERNEL_MATRIX },
	{ "volta_fp16_s884cudnn_fp16_256x64_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1",
	  RFL_KERNEL_MATRIX },
	{ "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn", RFL_KERNEL_MATRIX },
	{ "void fft2d_r2c_32x32<float, false, 1u, false>(float2*, float const*, int, int, int)",
	  RFL_KERNEL_MATRIX },
	{ "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Params)",
	  RFL_KERNEL_MATRIX },
	{ "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, "
	  "int>(...)",
	  RFL_KERNEL_MATRIX },
	{ "void internal::gemvx::kernel<int, int, __half, __half, __half, float, false, true, "
	  "true, "
	  "false, 7, false, cublasGemvParamsEx<int>>(...)",
	  RFL_KERNEL_MATRIX },
	{ "triton_tem_fused_addmm_3", RFL_KERNEL_MATRIX },
	{ "triton_poi_fused_convolution_relu_12", RFL_KERNEL_ELEMENTWISE },
	{ "triton_red_fused_convolution_backward_threshold_backward_31", RFL_KERNEL_REDUCTION },
	{ "void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*, float)",
	  RFL_KERNEL_ELEMENTWISE },
	{ "void op_generic_tensor_kernel<2, float, float, float, 256, "
	  "(cudnnGenericOp_t)0>(cudnnTensorStruct, float*)",
	  RFL_KERNEL_ELEMENTWISE },
	{ "void cudnn::ops::nhwcToFoldedNhwcKernel<__half, __half, float, true, "
	  "(cudnnKernelDataType_t)0>(...)",
	  RFL_KERNEL_COPY },
	{ "void cudnn::ops::nhwcAddPaddingKernel<__half, __half, float, true, "
	  "(cudnnKernelDataType_t)0>(...)",
	  RFL_KERNEL_COPY },
	{ "void at::native::im2col_kernel<float>(long, float const *, long, long, long, long)",
	  RFL_KERNEL_COPY },
	{ "void at::native::col2im_kernel<float, float>(long, float const *, long, long, long)",
	  RFL_KERNEL_ELEMENTWISE },
	{ "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	  "std::array<char*, 1ul>>(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)",
	  RFL_KERNEL_COPY },
	{ "void cudnn::detail::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(...)",
	  RFL_KERNEL_NORMALISATION },
	{ "void cudnn::batchnorm_bwtr_nhwc_semiPersist<__half, float, float, 512, 2, 2>(...)",
	  RFL_KERNEL_NORMALISATION },
	{ "void at::native::(anonymous namespace)::max_pool_backward_nchw<float, float>(...)",
	  RFL_KERNEL_POOLING },
	{ "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, "
	  "float, long>(...)",
	  RFL_KERNEL_REDUCTION },
	{ "void randomInit<float>(T1 *, int, int, unsigned int)", RFL_KERNEL_OTHER },
};

static void kernels_are_told_by_their_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(kernels); i++)
		if (rfl_kernel_classify(kernels[i].name) != kernels[i].is)
			fail_msg("%s is taken for one of %s", kernels[i].name,
				 rfl_kernel_class_names[rfl_kernel_classify(kernels[i].name)]);
}

static enum rfl_rc measure(const char *script, struct rfl_captures *to, struct rfl_err *err)
{
	static const char *const names[] = { "fwd", "bwd", NULL };
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = RFL_SET_KERNELS, .label = "test", .step_s = 25e-3 };

	fake_scripts("", script);
	rfl_captures_init(to);
	return rfl_source_cupti.measure(&r, &w, to, err);
}

static void launches_become_ranges(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_capture *c;
	const struct rfl_range *r;

	(void)state;
	assert_ok(measure("kernel=ampere_sgemm_128x64_nn|3000000|64,8,1|128,1,1|4;"
			  "kernel=void copy_kernel(float*)|1000000|10,1,1|256,1,1|2;"
			  "kernel=ampere_sgemm_128x64_nn|1000000|32,8,1|128,1,1|6",
			  &to, &err),
		  &err);
	c = to.captures[0];
	r = fake_range(c, RFL_RANGE_KERNEL, "ampere_sgemm_128x64_nn");
	assert_non_null(r);
	assert_string_equal(r->grid, "(64, 8, 1)");
	assert_string_equal(r->block, "(128, 1, 1)");
	assert_int_equal(r->launches, 4);
	assert_close(r->amount[RFL_QUANTITY_TIME].value, 12e-3, 1e-12);
	assert_true(isnan(r->amount[RFL_QUANTITY_FLOPS].value));
	assert_non_null(fake_noted(c, "12 launches of 2 kernels take 20 ms: GEMMs 90.0 %"));
	assert_non_null(fake_noted(
		c, "idle: kernels run for 20 ms of a step of 25 ms; no kernel runs for 20.0 %"));
	fake_is_clean();
	rfl_captures_fini(&to);
}

/* Two kernels at once are busy once. */
static void kernels_that_overlap_are_busy_once(void **state)
{
	static struct rfl_kernel_launch launches[] = {
		{ .name = "a", .time_s = 6e-3, .begin_ns = 1000000, .end_ns = 7000000 },
		{ .name = "c", .time_s = 1e-3, .begin_ns = 2000000, .end_ns = 3000000 },
		{ .name = "b", .time_s = 4e-3, .begin_ns = 5000000, .end_ns = 9000000 },
		{ .name = "d", .time_s = 1e-3, .begin_ns = 9000000, .end_ns = 10000000 },
	};
	const struct rfl_kernel_launches l = { .arena = rfl_arena_new(),
					       .launches = launches,
					       .n = 4 };
	const struct rfl_capture_spec spec = { .source = "cupti", .label = "test" };
	struct rfl_capture_builder *b = NULL;
	struct rfl_captures to;

	(void)state;
	rfl_captures_init(&to);
	b = rfl_capture_builder_new(&spec);
	assert_non_null(l.arena);
	rfl_kernel_launches_add(&l, 12e-3, b);
	rfl_arena_free(l.arena);
	assert_int_equal(rfl_capture_finish(b, &to, NULL), RFL_OK);
	assert_non_null(fake_noted(to.captures[0],
				   "run for 9 ms of a step of 12 ms; no kernel runs for 25.0 %"));
	rfl_captures_fini(&to);
}

/* Before Update 1 turning the records off can hang. */
static void records_of_cuda_13_0_stay_on(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int update = 0; update < 2; update++) {
		assert_ok(measure(update ? "version=130001" : "version=130000", &to, &err), &err);
		assert_int_equal(fake_calls(fake.cupti_log(), "cuptiActivityDisable"), update);
		rfl_captures_fini(&to);
	}
}

/* The C++ library reads mangled names; a build without one shows them as they are. */
static void names_can_be_read(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (!dlopen("libstdc++.so.6", RTLD_NOW))
		skip();
	assert_ok(measure("kernel=_Z6kernelPfi|1000|1,1,1|32,1,1|1", &to, &err), &err);
	assert_non_null(fake_range(to.captures[0], RFL_RANGE_KERNEL, "kernel(float*, int)"));
	rfl_captures_fini(&to);
}

static void lost_records_are_told(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(measure("lost=17", &to, &err), &err);
	assert_non_null(fake_noted(to.captures[0], "lost the records of 17 kernels"));
	rfl_captures_fini(&to);
}

static size_t enabled_at_restore;

static enum rfl_rc restore(void *ctx, struct rfl_err *err)
{
	(void)ctx;
	(void)err;
	enabled_at_restore += fake_calls(fake.cupti_log(), "cuptiActivityEnable");
	return RFL_OK;
}

/* Putting the state back starts kernels as well: they are not those of the step. */
static void the_state_is_put_back_before_kernels_are_noted(void **state)
{
	static const char *const names[] = { "step", NULL };
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = RFL_SET_CORE | RFL_SET_KERNELS, .label = "test" };
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	w.restore = restore;
	fake_scripts("", "");
	rfl_captures_init(&to);
	assert_ok(rfl_source_cupti.measure(&r, &w, &to, &err), &err);
	assert_int_equal(step.runs, 2);
	assert_int_equal(enabled_at_restore, 0);
	assert_int_equal(fake_calls(fake.cupti_log(), "cuptiActivityEnable"), 1);
	fake_is_clean();
	rfl_captures_fini(&to);
}

/* A record with times of 0 says that they could not be collected: it is not a launch of 0 s. */
static void launches_without_times_are_told(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_range *r;

	(void)state;
	assert_ok(measure("kernel=ampere_sgemm_128x64_nn|3000000|64,8,1|128,1,1|4;"
			  "kernel=ampere_sgemm_128x64_nn|0|64,8,1|128,1,1|3",
			  &to, &err),
		  &err);
	r = fake_range(to.captures[0], RFL_RANGE_KERNEL, "ampere_sgemm_128x64_nn");
	assert_int_equal(r->launches, 4);
	assert_close(r->amount[RFL_QUANTITY_TIME].value, 12e-3, 1e-12);
	assert_non_null(fake_noted(to.captures[0], "no times for 3 launches"));
	rfl_captures_fini(&to);
	assert_ok(measure("kernel=ampere_sgemm_128x64_nn|0|64,8,1|128,1,1|3", &to, &err), &err);
	assert_null(fake_range(to.captures[0], RFL_RANGE_KERNEL, "ampere_sgemm_128x64_nn"));
	assert_non_null(fake_noted(to.captures[0], "no times for 3 launches"));
	assert_null(fake_noted(to.captures[0], "nothing ran"));
	fake_is_clean();
	rfl_captures_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_told_by_their_names),
		cmocka_unit_test(launches_become_ranges),
		cmocka_unit_test(kernels_that_overlap_are_busy_once),
		cmocka_unit_test(records_of_cuda_13_0_stay_on),
		cmocka_unit_test(names_can_be_read),
		cmocka_unit_test(lost_records_are_told),
		cmocka_unit_test(launches_without_times_are_told),
		cmocka_unit_test(the_state_is_put_back_before_kernels_are_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
