/* Points of the kernels and layers of a step. */
#include "counters_fixture.h"

/* Add a kernel with all quantities known. */
static struct rfl_range *add_known(struct captures *c, const char *name, int64_t launches,
				   double time_s, enum rfl_quantity part, double flops,
				   double bytes)
{
	struct rfl_range *r = add_kernel(c, name, launches, time_s);

	know(r->amount, part, flops);
	know(r->amount, RFL_QUANTITY_FLOPS, flops);
	know(r->amount, RFL_QUANTITY_DRAM, bytes);
	if (part != RFL_QUANTITY_FLOPS_FP32)
		know(r->amount, RFL_QUANTITY_FLOPS_FP32, 0);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		r->amount[q].launches = isnan(r->amount[q].value) ? 0 : launches;
	return r;
}

static const struct rfl_point *point_of(const struct fixture *f, const char *part)
{
	for (size_t i = 0; i < f->pts->n; i++)
		if (strcmp(f->pts->points[i].part, part) == 0)
			return &f->pts->points[i];
	fail_msg("no point of %s", part);
	return NULL;
}

static struct fixture *of_kernels(void **state, struct captures **c)
{
	struct fixture *f = profiled(state, c);
	struct rfl_capture *capture = add_capture(*c, PROF);

	f->options.by = RFL_BY_KERNEL;
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 30 * FLOPS);
	return f;
}

/* 30 steps on a card of 40 TFLOP/s in fp32 and 1000 GB/s. axpy ran on two grids:
 *   time      0.5 s + 1 s = 1.5 s of 6 s: a share of 1/4; 1.5 s / 30 = 50 ms a step
 *   FLOPs     1e12 + 2e12 = 3e12: 1e11 a step
 *   rate      3e12 / 1.5 s = 2000 GFLOP/s
 *   bytes     2e11 + 4e11 = 6e11: 2e10 a step; 3e12 / 6e11 = 5 FLOP/byte
 *   roof      5 x 1000 = 5000 GFLOP/s, left of the ridge point at 40; 2000 / 5000 = 40 %
 *   headroom  50 ms x (1 - 0.4) = 30 ms
 *   caches    L2 1.2e12 bytes: 2.5; L1 2.4e12 bytes: 1.25 */
static void a_kernel_by_hand(void **state)
{
	struct captures *c;
	struct fixture *f = of_kernels(state, &c);
	const struct rfl_point *p;
	struct rfl_range *r;

	r = add_known(c, "axpy", 10, 0.5, RFL_QUANTITY_FLOPS_FP32, 1e12, 2e11);
	r->amount[RFL_QUANTITY_L2] = (struct rfl_amount){ .value = 4e11, .launches = 10 };
	r->amount[RFL_QUANTITY_L1] = (struct rfl_amount){ .value = 8e11, .launches = 10 };
	r = add_known(c, "axpy", 20, 1, RFL_QUANTITY_FLOPS_FP32, 2e12, 4e11);
	r->amount[RFL_QUANTITY_L2] = (struct rfl_amount){ .value = 8e11, .launches = 20 };
	r->amount[RFL_QUANTITY_L1] = (struct rfl_amount){ .value = 16e11, .launches = 20 };
	add_known(c, "conv", 30, 4.5, RFL_QUANTITY_FLOPS_FP32, 9e13, 9e11);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 2);
	assert_string_equal(f->pts->points[0].part, "conv"); /* the longest first */
	p = &f->pts->points[1];
	assert_string_equal(p->part, "axpy");
	assert_string_equal(p->part_kind, "kernel");
	assert_string_equal(p->model, "resnet50");
	assert_int_equal(p->batch, 4);
	assert_int_equal(p->launches, 30);
	assert_int_equal(p->counters_steps, 30);
	assert_true(p->time_share == 0.25);
	assert_true(p->step_s == 0.05);
	assert_true(p->flops_per_step == 1e11);
	assert_true(p->bytes_per_step == 2e10);
	assert_true(p->attained_gflops == 2000);
	assert_true(p->ai == 5);
	assert_true(p->ai_l2 == 2.5);
	assert_true(p->ai_l1 == 1.25);
	assert_true(p->knee_ai == 40);
	assert_true(p->attainable_gflops == 5000);
	assert_true(p->percent_of_attainable == 40);
	assert_close(p->headroom_s, 0.03, 1e-15);
	assert_string_equal(p->bound, "memory");
	assert_string_equal(p->compute_key, "fp32.vector");
	assert_string_equal(p->flops_source, "counters");
	assert_string_equal(p->bytes_source, "counters");
	assert_string_equal(p->step_source, "kernel times of ncu");
	assert_string_equal(p->counters_validity, "ok");
	assert_non_null(strstr(p->verdict, "memory-bound: 40 % of the limit for 1 TB/s at 5 "
					   "FLOP/byte; the kernel takes 50 ms and would take 20 ms "
					   "at the roof; time as profiled by ncu, at ncu's clock"));
	assert_non_null(strstr(p->counters_note, "l2_bytes: through the tags of L2"));
	finish(f, c);
}

/* No FLOPs, FLOPs in a precision that was not counted, and no counters are different cases. */
static void what_is_not_known_of_a_kernel(void **state)
{
	struct captures *c;
	struct fixture *f = of_kernels(state, &c);
	const struct rfl_point *p;
	struct rfl_range *r;

	add_known(c, "conv", 30, 4, RFL_QUANTITY_FLOPS_FP32, 9e13, 9e11);
	add_known(c, "copy", 30, 3, RFL_QUANTITY_FLOPS_FP32, 0, 6e11);
	add_known(c, "sgemm", 30, 2, RFL_QUANTITY_FLOPS_FP32, 0, 9e11); /* TF32? */
	r = add_kernel(c, "secret", 30, 1);
	r->amount[RFL_QUANTITY_FLOPS_FP32].reason = "n/a in the file";
	r = add_known(c, "untraced", 30, 1, RFL_QUANTITY_FLOPS_FP32, 6e12, 0);
	unknown(&r->amount[0]);
	know(r->amount, RFL_QUANTITY_FLOPS_FP32, 6e12);
	know(r->amount, RFL_QUANTITY_FLOPS, 6e12);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 5);
	p = point_of(f, "copy");
	assert_true(p->flops_per_step == 0 && p->attained_gflops == 0 && isnan(p->ai));
	assert_true(p->time_share == 0.3);
	assert_string_equal(p->bound, "neither"); /* 30 x 20 GB in 3 s, at 1 TB/s */
	assert_close(p->attained_gbps, 200, 1e-12);
	assert_non_null(strstr(p->verdict, "no FLOPs; neither ceiling explains the time: "));
	p = point_of(f, "sgemm");
	assert_true(isnan(p->flops_per_step) && isnan(p->attained_gflops) && isnan(p->ai));
	assert_true(p->time_share == 0.2);
	assert_null(p->flops_source);
	assert_non_null(strstr(p->verdict, "its FLOPs were not counted in full"));
	assert_non_null(strstr(p->counters_note, "0 FLOPs in the counted precisions, but others"));
	p = point_of(f, "secret");
	assert_true(isnan(p->flops_per_step) && isnan(p->bytes_per_step));
	assert_true(p->time_share == 0.1);
	assert_non_null(strstr(p->counters_note, "flops.fp32 unavailable: n/a in the file"));
	assert_string_equal(p->counters_validity, "unavailable");
	p = point_of(f, "untraced");
	assert_true(isnan(p->time_share) && isnan(p->attained_gflops));
	finish(f, c);
}

/* The precision of most FLOPs of a kernel selects its ceiling, not that of the run. */
static void the_ceiling_of_a_kernel(void **state)
{
	struct fixture *f = fixture_new();
	struct captures *c = captures_new(f);
	struct rfl_capture *capture;
	struct rfl_range *r;

	add_gpu_run(f, NULL, "a", "amp", 4, 100);
	use_peaks(f, state, GPU_PEAKS);
	f->options.by = RFL_BY_KERNEL;
	capture = add_capture(c, "lab_gpu_resnet50_amp_bs4_prof");
	capture->steps = 1;
	give_flops(capture, RFL_QUANTITY_FLOPS_TENSOR_FP16, FLOPS);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 0);
	r = add_known(c, "gemm", 1, 1, RFL_QUANTITY_FLOPS_TENSOR_FP16, 80e12, 1e11);
	know(r->amount, RFL_QUANTITY_FLOPS_FP32, 1e12);
	know(r->amount, RFL_QUANTITY_FLOPS, 81e12);
	add_known(c, "bn", 1, 1, RFL_QUANTITY_FLOPS_FP32, 20e12, 1e11);
	add_known(c, "double", 1, 1, RFL_QUANTITY_FLOPS_FP64, 1e12, 1e11);
	assert_ok(merge(f), &f->err);
	assert_string_equal(point_of(f, "gemm")->compute_key, "fp16.matrix");
	assert_true(point_of(f, "gemm")->peak_gflops == 160000);
	assert_string_equal(point_of(f, "bn")->compute_key, "fp32.vector");
	assert_true(point_of(f, "bn")->percent_of_attainable == 50); /* 20 of 40 TFLOP/s */
	assert_string_equal(point_of(f, "bn")->bound, "compute");
	assert_string_equal(point_of(f, "double")->compute_key, "fp16.matrix");
	assert_non_null(strstr(point_of(f, "double")->verdict,
			       "most of its FLOPs are under fp64.vector, which has no ceiling in "
			       "the peaks file, so fp16.matrix is used"));
	finish(f, c);
}

/* A tool that only recorded times did not slow the kernels down: 15 of 30 launches took 0.25 s, so
 * that the FLOPs of 30 launches took 0.5 s. Kernels that only it has keep their time. */
static void times_of_another_tool(void **state)
{
	struct captures *c;
	struct fixture *f = of_kernels(state, &c);
	struct rfl_capture *nsys;
	const struct rfl_point *p;

	add_known(c, "conv", 30, 4, RFL_QUANTITY_FLOPS_FP32, 3e12, 6e11);
	nsys = add_capture(c, PROF);
	nsys->source = "nsys";
	add_kernel(c, "conv", 15, 0.25);
	add_kernel(c, "fill", 15, 0.75);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 2);
	p = point_of(f, "conv");
	assert_true(p->attained_gflops == 6000);
	assert_true(p->time_share == 0.25);
	assert_int_equal(p->launches, 15);
	assert_true(p->flops_per_step == 1.5e12 / 30);
	assert_true(p->ai == 5);
	assert_string_equal(p->step_source, "kernel times of nsys");
	assert_true(point_of(f, "fill")->time_share == 0.75);
	assert_true(isnan(point_of(f, "fill")->flops_per_step));

	/* names that differ cannot be joined */
	c->range[1][0].name = "void conv<float>(float *)";
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	assert_true(f->pts->points[0].attained_gflops == 750);
	finish(f, c);
}

/* Runs without counters of kernels are left out; if no run has any, that is an error. The network
 * may be unknown. */
static void runs_without_kernels(void **state)
{
	struct captures *c;
	struct fixture *f = of_kernels(state, &c);

	add_known(c, "conv", 30, 4, RFL_QUANTITY_FLOPS_FP32, 3e12, 6e11);
	add_gpu_run(f, NULL, "c", "fp32", 8, 100);
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 1);
	assert_notes(f, "skipped 1 of 2 configurations without counters of kernels (first: "
			"lab_gpu resnet50 fp32 bs8 train)");
	for (size_t i = 0; i < 2; i++)
		set(&f->rows[i].model, "my_model");
	c->capture[0].label = "lab_gpu_my_model_fp32_bs4";
	c->capture[0].steps = 30;
	assert_ok(merge(f), &f->err);
	assert_string_equal(f->pts->points[0].model, "my_model");
	assert_true(f->pts->points[0].ai == 5);
	f->in.counters.captures = NULL;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "no counters have kernels of any of its runs: profile a run");
	finish(f, c);
}

/* Add a range of a layer. */
static struct rfl_range *add_layer(struct captures *c, const char *name, double time_s)
{
	struct rfl_range *r = add_kernel(c, name, 1, time_s);

	r->kind = RFL_RANGE_LAYER;
	return r;
}

/* A capture of one step of ResNet-50 on lab_gpu, layer by layer. */
static struct fixture *of_layers(void **state, struct captures **c)
{
	struct fixture *f = profiled(state, c);
	struct rfl_capture *capture = add_capture(*c, PROF);

	f->options.by = RFL_BY_LAYER;
	capture->source = "cupti";
	capture->total_kind = RFL_RANGE_LAYER;
	capture->steps = 1;
	add_layer(*c, "fwd/conv1", 0.001);
	add_layer(*c, "fwd/relu", 0.002);
	add_layer(*c, "bwd/relu", 0.003);
	add_layer(*c, "bwd/conv1", 0.003);
	add_layer(*c, "opt", 0.001);
	return f;
}

/* Without counters the work is that of the network. conv1 of ResNet-50 with 4 images of 224 x 224:
 *   FLOPs  a pass has 2 x 64 x 112 x 112 x 3 x 7 x 7 x 4; forward and wgrad, as the image needs no
 *          gradient: 2 x 944111616
 *   bytes  fp32: forward reads image and weights and writes the output, 4 x 4 x 3 x 224^2 +
 *          4 x 9408 + 4 x 4 x 64 x 112^2; wgrad reads the gradient of the output and the image and
 *          writes the gradient of the weights: the same again
 *   time   1 ms forward, 3 ms backward */
static void layers_counted_from_the_network(void **state)
{
	const double flops = 2 * 2.0 * 64 * 112 * 112 * 3 * 7 * 7 * 4;
	const double bytes = 2 * 4.0 * (4 * 3 * 224 * 224 + 9408 + 4 * 64 * 112 * 112);
	struct captures *c;
	struct fixture *f = of_layers(state, &c);
	const struct rfl_point *p;

	c->range[0][0].amount[RFL_QUANTITY_FLOPS].reason = "no permission";
	assert_ok(merge(f), &f->err);
	assert_int_equal(f->pts->n, 3);
	p = &f->pts->points[0]; /* in the order of the step */
	assert_string_equal(p->part, "conv1");
	assert_string_equal(p->part_kind, "layer");
	assert_int_equal(p->launches, 2);
	assert_close(p->step_s, 0.004, 1e-15);
	assert_close(p->fwd_ms, 1, 1e-15);
	assert_close(p->bwd_ms, 3, 1e-15);
	assert_close(p->time_share, 0.4, 1e-15);
	assert_true(p->flops_per_step == flops);
	assert_true(p->bytes_per_step == bytes);
	assert_close(p->ai, flops / bytes, 1e-15);
	assert_close(p->attained_gflops, flops / 0.004 / 1e9, 1e-14);
	assert_string_equal(p->bound, "neither"); /* 0.9 of 10 or 20 TFLOP/s */
	assert_non_null(strstr(p->flops_source, "counted: forward + dgrad + wgrad (counters not "
						"used: flops.fp32 unavailable: no permission)"));
	assert_string_equal(p->step_source, "a counted step");
	assert_string_equal(f->pts->points[1].part, "relu");
	assert_true(f->pts->points[1].flops_per_step == 0 && isnan(f->pts->points[1].ai));
	assert_non_null(strstr(f->pts->points[1].verdict, "no multiply-adds; "));
	assert_true(f->pts->points[1].bound && f->pts->points[1].attained_gbps > 0);
	assert_string_equal(f->pts->points[2].part, "opt");
	assert_true(isnan(f->pts->points[2].fwd_ms));
	assert_notes(f, "has no ranges of layers with");

	f->options.ai = RFL_AI_LOWER_BOUND;
	assert_ok(merge(f), &f->err);
	assert_close(f->pts->points[0].ai, flops / 0.004 / 1e12, 1e-14);
	f->options.ai = RFL_AI_COUNTERS;
	assert_ok(merge(f), &f->err);
	assert_true(isnan(f->pts->points[0].ai));
	finish(f, c);
}

/* Counted layers: both passes together. --flops model and --ai unfused still give the network's. */
static void layers_by_counters(void **state)
{
	struct captures *c;
	struct fixture *f = of_layers(state, &c);
	const struct rfl_point *p;

	for (size_t i = 0; i < c->capture[0].nranges; i++) {
		struct rfl_amount *amount = c->range[0][i].amount;

		know(amount, RFL_QUANTITY_FLOPS_FP32, 1e9);
		know(amount, RFL_QUANTITY_FLOPS, 1e9);
		know(amount, RFL_QUANTITY_DRAM, 1e8);
		know(amount, RFL_QUANTITY_L2, 2e8);
	}
	give_flops(&c->capture[0], RFL_QUANTITY_FLOPS_FP32, 5e9);
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[1];
	assert_string_equal(p->part, "relu");
	assert_true(p->flops_per_step == 2e9 && p->bytes_per_step == 2e8 && p->ai == 10);
	assert_true(p->ai_l2 == 5);
	assert_close(p->attained_gflops, 400, 1e-14);     /* 2e9 in 5 ms */
	assert_close(p->percent_of_attainable, 4, 1e-14); /* of 10 x 1000 GFLOP/s */
	assert_string_equal(p->flops_source, "counters");
	p = &f->pts->points[0];
	assert_close(p->flops_measured_over_counted, 2e9 / 1888223232, 1e-14);
	assert_true(p->ai_unfused > 0 && p->ai_fused > 0 && isnan(p->ai_compulsory));
	f->options.flops = RFL_FLOPS_MODEL;
	f->options.ai = RFL_AI_FUSED;
	assert_ok(merge(f), &f->err);
	p = &f->pts->points[0];
	assert_true(p->flops_per_step == 1888223232);
	assert_string_equal(p->flops_source, "counted: forward + dgrad + wgrad");
	assert_string_equal(p->bytes_source, "fused");
	assert_true(p->ai == p->ai_fused);
	finish(f, c);
}

static void runs_without_layers(void **state)
{
	struct captures *c;
	struct fixture *f = of_layers(state, &c);

	c->capture[0].nranges = 0;
	assert_int_equal(merge(f), RFL_EMISSING);
	assert_says(&f->err, "no counters have layers of any of its runs: repeat a run with "
			     "roofline run --counters layer");
	finish(f, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_kernel_by_hand),        T(what_is_not_known_of_a_kernel),
		T(the_ceiling_of_a_kernel), T(times_of_another_tool),
		T(runs_without_kernels),    T(layers_counted_from_the_network),
		T(layers_by_counters),      T(runs_without_layers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
