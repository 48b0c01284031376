/*
 * test_profile_cupti_source.c - counting a workload on the fake GPU: values through formulas to
 * quantities, passes, what is saved and put back, and what is said when a part fails.
 */
#include <math.h>
#include <stdlib.h>

#include "machine/cuda.h"
#include "profile/cupti/impl.h"
#include "profile/source.h"
#include "tests/unit/fake_gpu.h"

static const char *const step_names[] = { "step", NULL };
static const char *const phase_names[] = { "fwd", "bwd", "opt", NULL };

#define SASS(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"

/* What the counters read, unless a test says otherwise. */
static const char values[] =
	"val=dram__bytes_read.sum:3e9;val=dram__bytes_write.sum:1e9;"
	"val=lts__t_sectors_srcnode_gpc.sum:2.5e8;val=gpu__time_duration.sum:2.5e6;"
	"val=sm__ops_path_tensor_src_bf16_dst_fp32.sum:6e12;"
	"val=" SASS("fadd") ":1e9;val=" SASS("fmul") ":2e9;"
						     "val=" SASS("ffma") ":5e9;value=0";

struct counted {
	struct rfl_captures captures;
	struct rfl_err err;
	enum rfl_rc rc;
	const struct rfl_capture *c; /* the only one, or NULL */
};

static struct counted count(const char *script, unsigned sets, struct fake_step *step,
			    size_t max_ranges)
{
	struct rfl_workload w = fake_workload(step);
	struct rfl_source_request r = { .sets = sets, .precision = "bf16", .label = "test" };
	struct counted k = { .err = RFL_ERR_INIT };
	char text[2048];

	snprintf(text, sizeof(text), "%s;%s", script, values);
	fake_scripts("", text);
	rfl_captures_init(&k.captures);
	w.max_ranges = max_ranges;
	k.rc = rfl_source_cupti.measure(&r, &w, &k.captures, &k.err);
	k.c = k.captures.n == 1 ? k.captures.captures[0] : NULL;
	return k;
}

static void forget(struct counted *k)
{
	rfl_captures_fini(&k->captures);
}

static double amount(const struct rfl_range *r, enum rfl_quantity q)
{
	return r->amount[q].value;
}

/* One pass: the step is run once, and nothing is saved. */
static void counts_a_step_in_one_pass(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("", RFL_SET_CORE, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_non_null(k.c);
	assert_string_equal(step.happened, "r");
	assert_string_equal(k.c->chip, "GH100");
	assert_string_equal(k.c->source, "cupti");
	assert_int_equal(k.c->steps, 1);
	assert_int_equal(k.c->passes, 1);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_non_null(r);
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	assert_close(amount(r, RFL_QUANTITY_L2), 8e9, 0);
	assert_close(amount(r, RFL_QUANTITY_TIME), 2.5e-3, 1e-15);
	assert_close(amount(r, RFL_QUANTITY_FLOPS_TENSOR_BF16), 6e12, 0);
	assert_true(isnan(amount(r, RFL_QUANTITY_FLOPS_FP32)));
	assert_close(k.c->total[RFL_QUANTITY_DRAM].value, 4e9, 0);
	fake_is_clean();
	forget(&k);
}

/* Two sessions of a pass each: the state is kept once and put back once. */
static void counts_flops_in_a_second_pass(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names };
	struct counted k = count("", RFL_SET_CORE | RFL_SET_FLOPS, &step, 3);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_string_equal(step.happened, "srbr");
	for (size_t i = 0; phase_names[i]; i++) {
		r = fake_range(k.c, RFL_RANGE_PHASE, phase_names[i]);
		assert_non_null(r);
		assert_close(amount(r, RFL_QUANTITY_FLOPS_FP32), 1e9 + 2e9 + 2 * 5e9, 0);
		assert_close(amount(r, RFL_QUANTITY_FLOPS), 6e12 + 13e9, 0);
		assert_int_equal(fake_metric(r, "dram__bytes_read.sum")->pass, 0);
		assert_int_equal(fake_metric(r, SASS("ffma"))->pass, 1);
	}
	assert_close(k.c->total[RFL_QUANTITY_FLOPS_FP32].value, 3 * 13e9, 0);
	assert_int_equal(k.c->passes, 2);
	fake_is_clean();
	forget(&k);
}

/* Several passes of one session: put back before each but the first. */
static void puts_the_state_back_before_each_further_pass(void **state)
{
	static const struct {
		const char *script, *happened;
	} cases[] = {
		{ "passes=1", "r" },
		{ "passes=2", "srbr" },
		{ "passes=3", "srbrbr" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
		struct counted k = count(cases[i].script, RFL_SET_CORE, &step, 1);

		assert_ok(k.rc, &k.err);
		assert_string_equal(step.happened, cases[i].happened);
		assert_close(amount(fake_range(k.c, RFL_RANGE_STEP, "step"), RFL_QUANTITY_DRAM),
			     4e9, 0);
		fake_is_clean();
		forget(&k);
	}
}

/* An engine that cannot go back: the passes are steps that follow each other, and that is said. */
static void says_when_passes_are_different_steps(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP,
				  .names = step_names,
				  .save_rc = RFL_EUNSUPPORTED };
	struct counted k = count("passes=2", RFL_SET_CORE, &step, 1);

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_string_equal(step.happened, "srr");
	assert_non_null(fake_noted(
		k.c, "counted 2 consecutive steps instead of the same step: this engine keeps"));
	fake_is_clean();
	forget(&k);
}

/* More ranges than CUPTI takes at once: the workload is run again for the rest. */
static void counts_many_ranges_in_batches(void **state)
{
	enum { N = 2500 };
	static char texts[N][16];
	static const char *names[N + 1];
	struct fake_step step = { .kind = RFL_RANGE_LAYER, .names = names };
	struct counted k;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		snprintf(texts[i], sizeof(texts[i]), "fwd/layer%zu", i);
		names[i] = texts[i];
	}
	k = count("", RFL_SET_CORE, &step, N);
	assert_ok(k.rc, &k.err);
	assert_string_equal(step.happened, "srbrbr");
	for (size_t i = 0; i < N; i += 499) {
		const struct rfl_range *r = fake_range(k.c, RFL_RANGE_LAYER, names[i]);

		assert_non_null(r);
		assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	}
	assert_close(k.c->total[RFL_QUANTITY_DRAM].value, N * 4e9, 1e-15);
	fake_is_clean();
	forget(&k);
}

/* The same name twice in a step is two launches of one range. */
static void adds_up_ranges_of_one_name(void **state)
{
	static const char *const names[] = { "conv1", "bn1", "conv1", NULL };
	struct fake_step step = { .kind = RFL_RANGE_LAYER, .names = names };
	struct counted k = count("", RFL_SET_CORE, &step, 3);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_LAYER, "conv1");
	assert_int_equal(r->launches, 2);
	assert_close(amount(r, RFL_QUANTITY_DRAM), 8e9, 0);
	fake_is_clean();
	forget(&k);
}

/* What others move meanwhile is a range of its own, in no total. */
static void reports_idle_bytes(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("idle=2e6", RFL_SET_CORE, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_IDLE, "idle");
	assert_non_null(r);
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e6, 0);
	assert_close(k.c->total[RFL_QUANTITY_DRAM].value, 4e9, 0);
	assert_non_null(fake_noted(k.c, "4 Mbyte moved through device memory"));
	fake_is_clean();
	forget(&k);
}

static void a_counter_without_a_value_is_unavailable(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("nan=dram__bytes_read.sum", RFL_SET_CORE, &step, 1);
	const struct rfl_range *r;
	const struct rfl_metric *m;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	m = fake_metric(r, "dram__bytes_read.sum");
	assert_non_null(m);
	assert_true(isnan(m->value));
	assert_int_equal(m->validity, RFL_VALID_UNAVAILABLE);
	assert_non_null(strstr(m->reason, "MIG"));
	assert_true(isnan(amount(r, RFL_QUANTITY_DRAM)));
	assert_non_null(r->amount[RFL_QUANTITY_DRAM].reason);
	assert_close(amount(r, RFL_QUANTITY_L2), 8e9, 0);
	fake_is_clean();
	forget(&k);
}

/* A zero that was read is 0. */
static void a_counter_that_read_0_is_0(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("val=dram__bytes_read.sum:0", RFL_SET_CORE, &step, 1);

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_close(amount(fake_range(k.c, RFL_RANGE_STEP, "step"), RFL_QUANTITY_DRAM_READ), 0, 0);
	fake_is_clean();
	forget(&k);
}

static void dropped_ranges_are_a_failed_measurement(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names };
	struct counted k = count("drop=1", RFL_SET_CORE, &step, 3);

	(void)state;
	assert_ok(k.rc, &k.err); /* the times of kernels are there */
	assert_true(isnan(amount(fake_range(k.c, RFL_RANGE_PHASE, "fwd"), RFL_QUANTITY_DRAM)));
	assert_non_null(fake_noted(k.c, "dropped 1 of 3 ranges"));
	fake_is_clean();
	forget(&k);
}

/* A range in which nothing runs may leave no data: it is unavailable, and the others stay. */
static void a_range_without_data_is_unavailable(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names };
	struct counted k = count("empty=bwd", RFL_SET_CORE, &step, 3);
	const struct rfl_metric *m;

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_close(amount(fake_range(k.c, RFL_RANGE_PHASE, "fwd"), RFL_QUANTITY_DRAM), 4e9, 0);
	assert_close(amount(fake_range(k.c, RFL_RANGE_PHASE, "opt"), RFL_QUANTITY_DRAM), 4e9, 0);
	m = fake_metric(fake_range(k.c, RFL_RANGE_PHASE, "bwd"), "dram__bytes_read.sum");
	assert_true(isnan(m->value));
	assert_non_null(strstr(m->reason, "recorded nothing for this range"));
	assert_true(isnan(amount(fake_range(k.c, RFL_RANGE_PHASE, "bwd"), RFL_QUANTITY_DRAM)));
	assert_int_not_equal(k.c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
	fake_is_clean();
	forget(&k);
	step = (struct fake_step){ .kind = RFL_RANGE_PHASE, .names = phase_names };
	k = count("empty=:", RFL_SET_CORE, &step, 3); /* not one has data: that is a failure */
	assert_ok(k.rc, &k.err);
	assert_true(isnan(amount(fake_range(k.c, RFL_RANGE_PHASE, "fwd"), RFL_QUANTITY_DRAM)));
	m = fake_metric(fake_range(k.c, RFL_RANGE_PHASE, "fwd"), "dram__bytes_read.sum");
	assert_non_null(strstr(m->reason, "has data for 0"));
	fake_is_clean();
	forget(&k);
}

static void runs_that_differ_do_not_belong_together(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names, .differs_at = 2 };
	struct counted k = count("passes=2", RFL_SET_CORE, &step, 3);

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_non_null(fake_noted(k.c, "range 0 is 'fwd' in one run and 'another' in the next"));
	fake_is_clean();
	forget(&k);
}

/* Nor do those of two sessions: the numbers of the first stay. */
static void sessions_that_differ_do_not_belong_together(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names, .differs_at = 2 };
	struct counted k = count("", RFL_SET_CORE | RFL_SET_FLOPS, &step, 3);
	const struct rfl_range *r = fake_range(k.c, RFL_RANGE_PHASE, "fwd");

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	assert_true(isnan(amount(r, RFL_QUANTITY_FLOPS_FP32)));
	assert_non_null(fake_noted(k.c, "this run has other ranges than the first"));
	fake_is_clean();
	forget(&k);
}

/* The workload's own failure is what measure() returns, unless something has been counted. */
static void a_failing_workload_is_its_own_failure(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names, .fails_at = 1 };
	struct counted k = count("", RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_KERNELS, &step, 3);

	(void)state;
	assert_int_equal(k.rc, RFL_EDEVMEM);
	assert_says(&k.err, "out of device memory");
	assert_int_equal(k.captures.n, 0);
	fake_is_clean();
	forget(&k);
	for (int run = 2; run <= 3; run++) {
		const struct rfl_range *r;

		step = (struct fake_step){ .kind = RFL_RANGE_PHASE,
					   .names = phase_names,
					   .fails_at = run };
		k = count("", RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_KERNELS, &step, 3);
		assert_ok(k.rc, &k.err);
		r = fake_range(k.c, RFL_RANGE_PHASE, "bwd");
		/* run 2 counts the flops, run 3 times the kernels */
		assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
		assert_int_equal(isnan(amount(r, RFL_QUANTITY_FLOPS_FP32)), run == 2);
		assert_int_equal(k.c->nrefusals, run == 2 ? 2 : 1);
		assert_string_equal(k.c->refusals[k.c->nrefusals - 1].set, "kernels");
		assert_string_equal(k.c->refusals[0].set, run == 2 ? "flops" : "kernels");
		assert_string_equal(k.c->refusals[0].reason, "out of device memory");
		if (run == 2)
			assert_string_equal(k.c->refusals[1].reason,
					    "the run ended before this was counted");
		fake_is_clean();
		forget(&k);
	}
}

/* What is handed over before each part, and by when that has to be done. */
struct handed {
	size_t n;
	double within_s[4], dram[4], fp32[4];
	char flops[4][RFL_ERR_MSG_MAX]; /* why they are not there */
	bool kernels[4];
};

static void on_so_far(const struct rfl_captures *so_far, double within_s, void *ctx)
{
	struct handed *h = ctx;
	const struct rfl_capture *c = so_far->captures[0];

	assert_in_range(h->n, 0, 3);
	h->within_s[h->n] = within_s;
	h->dram[h->n] = c->total[RFL_QUANTITY_DRAM].value;
	h->fp32[h->n] = c->total[RFL_QUANTITY_FLOPS_FP32].value;
	h->kernels[h->n] = fake_noted(c, "GEMMs 62.5 %") != NULL;
	for (size_t i = 0; i < c->nrefusals; i++)
		if (strcmp(c->refusals[i].set, "flops") == 0)
			snprintf(h->flops[h->n], RFL_ERR_MSG_MAX, "%s", c->refusals[i].reason);
	h->n++;
}

/* Patching kernels is the last count, also for the self-test; kernels are timed after it. */
static void all_counts_are_handed_over_before_kernels_are_patched(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = phase_names };
	struct rfl_workload w = fake_workload(&step);
	struct handed handed = { .n = 0 };
	const struct rfl_source_request r = {
		.sets = RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_LINKS | RFL_SET_KERNELS |
			RFL_SET_SELF_TEST,
		.precision = "bf16",
		.so_far = on_so_far,
		.ctx = &handed,
	};
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;
	const char *kernels;

	(void)state;
	fake_scripts("free=8e6;l2=65536", values);
	rfl_captures_init(&to);
	assert_ok(rfl_source_cupti.measure(&r, &w, &to, &err), &err);
	assert_int_equal(handed.n, 3); /* before the links, the FLOPs, the kernels */
	for (size_t i = 0; i < handed.n; i++) {
		assert_close(handed.dram[i], 12e9, 0);
		assert_int_equal(isnan(handed.fp32[i]), i < 2);
		assert_false(handed.kernels[i]);
		assert_string_equal(handed.flops[i],
				    i < 2 ? "the run ended before this was counted" : "");
		if (i != 1)
			assert_close(handed.within_s[i], 0, 0);
	}
	assert_true(handed.within_s[1] >= 120 && handed.within_s[1] < 130);
	assert_close(to.captures[0]->total[RFL_QUANTITY_FLOPS_FP32].value, 39e9, 0);
	assert_non_null(fake_noted(to.captures[0], "GEMMs 62.5 %"));
	kernels = strstr(fake.cupti_log(), "cuptiActivityEnable");
	assert_non_null(kernels);
	assert_int_equal(fake_calls(fake.cupti_log(), "cuptiProfilerInitialize"), 1);
	assert_int_equal(fake_calls(kernels, "cuptiRangeProfilerEnable"), 0);
	fake_is_clean();
	rfl_captures_fini(&to);
}

/* Opened before the device has anything to do, it counts as if it were opened then. */
static void it_can_be_opened_early(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = RFL_SET_CORE, .precision = "bf16" };
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		fake_scripts(fails ? "fail=cuInit:100" : "", values);
		rfl_captures_init(&to);
		r.early = rfl_source_cupti.open(&r);
		assert_non_null(r.early);
		assert_int_equal(fake_calls(fake.cupti_log(), "cuptiProfilerInitialize"), !fails);
		assert_int_equal(rfl_source_cupti.measure(&r, &w, &to, &err),
				 fails ? RFL_EUNAVAILABLE : RFL_OK);
		assert_int_equal(fake_calls(fake.cupti_log(), "cuptiProfilerInitialize"), !fails);
		if (fails)
			assert_says(&err, "cuInit");
		rfl_source_cupti.close(r.early);
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* A step that is a product on the GPU, by a kernel that was loaded before counting began. */
struct product {
	const struct rfl_selftest_kernel *kernel;
	struct rfl_cuda *cuda;
	struct rfl_cuda_module *module;
	struct rfl_cuda_function *function;
	rfl_cuda_address memory;
};

enum { SIDE = 64 };

static void product_load(struct product *p)
{
	struct rfl_buf ptx = { 0 };
	struct rfl_err err = RFL_ERR_INIT;

	p->kernel = rfl_selftest_kernel_at(0);
	assert_int_equal(p->kernel->type, RFL_SELFTEST_F32);
	rfl_selftest_ptx(p->kernel, &ptx);
	assert_ok(rfl_cuda_open(0, NULL, &p->cuda, &err), &err);
	assert_int_equal(p->cuda->calls.module_load(&p->module, rfl_buf_str(&ptx)), 0);
	assert_int_equal(p->cuda->calls.module_function(&p->function, p->module, p->kernel->name),
			 0);
	assert_int_equal(p->cuda->calls.memory_alloc(&p->memory, 3 * SIDE * SIDE * sizeof(float)),
			 0);
	rfl_buf_fini(&ptx);
}

static void product_unload(struct product *p)
{
	(void)p->cuda->calls.memory_free(p->memory);
	(void)p->cuda->calls.module_unload(p->module);
	rfl_cuda_close(p->cuda);
}

static enum rfl_rc product_run(void *ctx, struct rfl_ranges *ranges, struct rfl_err *err)
{
	struct product *p = ctx;
	rfl_cuda_address a = p->memory, b = a + SIDE * SIDE * sizeof(float),
			 c = b + SIDE * SIDE * sizeof(float);
	uint32_t columns = SIDE, bytes = SIDE * sizeof(float);
	void *arguments[] = { &a, &b, &c, &columns, &bytes };
	enum rfl_rc rc = ranges->begin(ranges, RFL_RANGE_STEP, "step", err);

	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(p->cuda, launch, err, p->function,
				   SIDE / (unsigned)p->kernel->tile_columns,
				   SIDE / (unsigned)p->kernel->tile_rows, 1,
				   (unsigned)p->kernel->threads, 1, 1, 0, NULL, arguments, NULL);
	return rc;
}

/* Kernels are patched if they are loaded after the source was opened, whatever else is counted. */
static void kernels_loaded_after_opening_are_patched(void **state)
{
	struct product p = { .kernel = NULL };
	const struct rfl_workload w = { .run = product_run, .ctx = &p };
	struct rfl_source_request r = { .sets = RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_KERNELS |
						RFL_SET_SELF_TEST,
					.precision = "fp32" };
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int early = 0; early < 2; early++) {
		fake_scripts("free=8e6;l2=65536", "");
		rfl_captures_init(&to);
		r.early = early ? rfl_source_cupti.open(&r) : NULL;
		product_load(&p);
		assert_ok(rfl_source_cupti.measure(&r, &w, &to, &err), &err);
		assert_close(to.captures[0]->total[RFL_QUANTITY_FLOPS_FP32].value,
			     early ? 2.0 * SIDE * SIDE * SIDE : 0, 0);
		/* the self-test loads its own kernel, and notices nothing */
		assert_non_null(
			fake_noted(to.captures[0], "flops.fp32 of rfl_selftest_f32 1.0000"));
		product_unload(&p);
		if (early)
			rfl_source_cupti.close(r.early);
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* A metric that the host plans and the device refuses fails its session, and that alone. */
static void a_configuration_that_the_device_refuses_fails_alone(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("refuse=" SASS("ffma"),
				 RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_KERNELS, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	assert_true(isnan(amount(r, RFL_QUANTITY_FLOPS_FP32)));
	assert_non_null(fake_noted(k.c, "cuptiRangeProfilerSetConfig"));
	assert_non_null(fake_noted(k.c, "GEMMs 62.5 %"));
	fake_is_clean();
	forget(&k);
}

/* A kernel that fails is noticed by a later call: what was counted before stays, and nothing is
 * left open. */
static void a_fault_that_is_noticed_late_is_reported(void **state)
{
	static const char *const faults[] = { "late=cuLaunchKernel:700",
					      "late=cuLaunchKernel:700@2",
					      "late=cuModuleLoadData:700@2" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(faults); i++) {
		struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
		struct rfl_workload w = fake_workload(&step);
		const struct rfl_source_request r = { .sets = RFL_SET_CORE | RFL_SET_SELF_TEST,
						      .precision = "bf16" };
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;
		char script[128];

		snprintf(script, sizeof(script), "free=8e6;l2=65536;%s", faults[i]);
		fake_scripts(script, values);
		rfl_captures_init(&to);
		assert_ok(rfl_source_cupti.measure(&r, &w, &to, &err), &err);
		assert_string_equal(to.captures[0]->refusals[0].set, "self-test");
		assert_non_null(fake_noted(to.captures[0], "CUDA_ERROR_ILLEGAL_ADDRESS, 700"));
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* PCI Express is a session of its own, and can fail alone. */
static void one_session_can_fail_alone(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k =
		count("fail=cuptiRangeProfilerStart:26@2", RFL_SET_CORE | RFL_SET_LINKS, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	fake_is_clean();
	forget(&k);
	/* the second start is that of the idle range; the third one is that of the links */
	step = (struct fake_step){ .kind = RFL_RANGE_STEP, .names = step_names };
	k = count("fail=cuptiRangeProfilerStart:26@3", RFL_SET_CORE | RFL_SET_LINKS, &step, 1);
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	assert_true(isnan(amount(r, RFL_QUANTITY_PCIE_READ)));
	assert_non_null(strstr(fake_metric(r, "pcie__read_bytes.sum")->reason, "dcgm-exporter"));
	fake_is_clean();
	forget(&k);
}

/* Kernels are timed last, when the profiler is off, and are not added to the step. */
static void kernels_are_apart_from_the_step(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("", RFL_SET_CORE | RFL_SET_KERNELS, &step, 1);
	const char *off, *on;

	(void)state;
	assert_ok(k.rc, &k.err);
	assert_string_equal(step.happened, "srbr");
	assert_int_equal(k.c->total_kind, RFL_RANGE_STEP);
	assert_close(k.c->total[RFL_QUANTITY_TIME].value, 2.5e-3, 1e-15);
	assert_close(k.c->total[RFL_QUANTITY_DRAM].value, 4e9, 0);
	assert_int_equal(k.c->total[RFL_QUANTITY_DRAM].validity, RFL_VALID);
	assert_non_null(fake_noted(k.c, "GEMMs 62.5 %"));
	off = strstr(fake.cupti_log(), "cuptiProfilerDeInitialize");
	on = strstr(fake.cupti_log(), "cuptiActivityEnable");
	assert_non_null(off);
	assert_true(off < on);
	fake_is_clean();
	forget(&k);
}

/* A metric that this CUPTI does not have is left out, and said to be. */
static void a_metric_that_is_absent_is_said_to_be(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("absent=l1tex__t_bytes", RFL_SET_CORE, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_true(isnan(amount(r, RFL_QUANTITY_L1)));
	assert_non_null(strstr(fake_metric(r, "l1tex__t_bytes.sum")->reason, "lacks the metric"));
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	fake_is_clean();
	forget(&k);
}

/* One that the chip has and this device does not: it alone is lost, and the file says so. */
static void a_metric_that_is_refused_loses_only_itself(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("unavailable=l1tex__t_bytes;unavailable=dram__bytes_write",
				 RFL_SET_CORE, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_true(isnan(amount(r, RFL_QUANTITY_L1)));
	assert_true(isnan(amount(r, RFL_QUANTITY_DRAM_WRITE)));
	assert_close(amount(r, RFL_QUANTITY_DRAM_READ), 3e9, 0);
	assert_close(amount(r, RFL_QUANTITY_L2), 8e9, 0);
	assert_close(amount(r, RFL_QUANTITY_FLOPS_TENSOR_BF16), 6e12, 0);
	assert_non_null(strstr(fake_metric(r, "l1tex__t_bytes.sum")->reason, "refuses"));
	assert_non_null(fake_noted(k.c, "; without "));
	fake_is_clean();
	forget(&k);
	k = count("unavailable=smsp__;unavailable=sm__inst", RFL_SET_CORE | RFL_SET_FLOPS, &step,
		  1); /* all of a set */
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_close(amount(r, RFL_QUANTITY_DRAM), 4e9, 0);
	assert_non_null(fake_noted(k.c, "GH100 cannot count 'smsp__"));
	fake_is_clean();
	forget(&k);
}

/* Links are of the device: neither the image of what is available nor the time goes with them. */
static void links_are_counted_by_themselves(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_STEP, .names = step_names };
	struct counted k = count("val=pcie__read_bytes.sum:5e6;unavailable=nvl",
				 RFL_SET_CORE | RFL_SET_LINKS, &step, 1);
	const struct rfl_range *r;

	(void)state;
	assert_ok(k.rc, &k.err);
	r = fake_range(k.c, RFL_RANGE_STEP, "step");
	assert_close(amount(r, RFL_QUANTITY_PCIE_READ), 5e6, 0);
	assert_close(amount(r, RFL_QUANTITY_TIME), 2.5e-3, 1e-15);
	assert_true(isnan(amount(r, RFL_QUANTITY_NVLINK_RX)));
	fake_is_clean();
	forget(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_a_step_in_one_pass),
		cmocka_unit_test(counts_flops_in_a_second_pass),
		cmocka_unit_test(puts_the_state_back_before_each_further_pass),
		cmocka_unit_test(says_when_passes_are_different_steps),
		cmocka_unit_test(counts_many_ranges_in_batches),
		cmocka_unit_test(adds_up_ranges_of_one_name),
		cmocka_unit_test(reports_idle_bytes),
		cmocka_unit_test(a_counter_without_a_value_is_unavailable),
		cmocka_unit_test(a_counter_that_read_0_is_0),
		cmocka_unit_test(dropped_ranges_are_a_failed_measurement),
		cmocka_unit_test(a_range_without_data_is_unavailable),
		cmocka_unit_test(runs_that_differ_do_not_belong_together),
		cmocka_unit_test(sessions_that_differ_do_not_belong_together),
		cmocka_unit_test(a_failing_workload_is_its_own_failure),
		cmocka_unit_test(all_counts_are_handed_over_before_kernels_are_patched),
		cmocka_unit_test(it_can_be_opened_early),
		cmocka_unit_test(kernels_loaded_after_opening_are_patched),
		cmocka_unit_test(a_configuration_that_the_device_refuses_fails_alone),
		cmocka_unit_test(a_fault_that_is_noticed_late_is_reported),
		cmocka_unit_test(one_session_can_fail_alone),
		cmocka_unit_test(kernels_are_apart_from_the_step),
		cmocka_unit_test(a_metric_that_is_absent_is_said_to_be),
		cmocka_unit_test(a_metric_that_is_refused_loses_only_itself),
		cmocka_unit_test(links_are_counted_by_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
