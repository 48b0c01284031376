/*
 * test_planned_norms.c - batch norm in training as plans of cuDNN, on GPUs that are only described.
 * cuDNN compiles their kernels at run time: tests/fakes/standin is the driver.
 *
 * A plan takes about a second. RFL_TEST_ALL=1 asks for every shape of ResNet-50.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "runner/planned/cuda/graph_norm.h"
#include "tests/unit/described_gpu.h"

#define MAX_NORMS 64

/* The distinct batch norms of a net's training step for a batch of 32. */
static int norms_of(const char *model, struct rfl_norm_graph *norms)
{
	const struct rfl_plan_setup setup = { .batch = 32, .value_bytes = 4, .training = true };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	struct rfl_plan *plan = NULL;
	int n = 0, same;

	assert_ok(rfl_zoo_build(model, NULL, &net, &err), &err);
	assert_ok(rfl_plan_new(net, &setup, &plan, &err), &err);
	for (int i = 0; i < plan->nsteps; i++) {
		if (plan->steps[i].op != RFL_PLAN_NORM)
			continue;
		assert_true(n < MAX_NORMS);
		memset(&norms[n], 0, sizeof(norms[n]));
		norms[n] = rfl_norm_of(plan, i);
		for (same = 0; memcmp(&norms[same], &norms[n], sizeof(norms[n])) != 0;)
			same++;
		n += same == n;
	}
	rfl_plan_free(plan);
	rfl_net_free(net);
	return n;
}

/* Ask for one plan. Returns its workspace in bytes; -1: there is none. */
static int64_t plan_norm(const struct rfl_cudnn *lib, const struct rfl_norm_graph *norm,
			 enum rfl_value type)
{
	const struct rfl_conv_rules rules = { .type = type, .workspace = 64 << 20 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_conv_plan plan = { 0 };
	char place[16]; /* nothing reads it */
	void *tensors[RFL_NORM_TENSORS];
	const double start = rfl_clock_s();
	int n = -1;
	const enum rfl_rc rc = rfl_norm_plans(lib, norm, &rules, 1, &plan, &n, &err);

	print_message("%s%s%s%s, %lld channels, %lld x %lld: %lld bytes, %.2f s\n",
		      norm->backward ? "backward" : "forward", norm->sum ? " of a sum" : "",
		      norm->activation ? " with ReLU" : "", norm->other ? " and other" : "",
		      (long long)norm->channels, (long long)norm->size[0], (long long)norm->size[1],
		      rc == RFL_OK ? (long long)plan.workspace : -1, rfl_clock_s() - start);
	if (rc == RFL_EUNSUPPORTED) {
		assert_int_equal(n, 0);
		return -1;
	}
	assert_ok(rc, &err);
	assert_int_equal(n, 1);
	for (int i = 0; i < RFL_NORM_TENSORS; i++)
		tensors[i] = place;
	assert_ok(rfl_norm_run(lib, norm, &plan, tensors, 1e-5f, 0.1f, place, &err), &err);
	assert_int_equal(lib->calls.descriptor_destroy(plan.plan), 0);
	return plan.workspace;
}

/* The forms that ResNet-50 has, each with its smallest image. */
static void resnet_has_plans(void **state)
{
	static const enum described chips[] = { H100, A100 };
	static const enum rfl_value types[] = { RFL_VALUE_BF16, RFL_VALUE_F32, RFL_VALUE_F16 };
	static struct rfl_norm_graph norms[MAX_NORMS];
	const int n = norms_of("resnet50", norms);
	const bool all = getenv("RFL_TEST_ALL") != NULL;

	(void)state;
	for (size_t c = 0; c < RFL_ARRAY_LEN(chips); c++) {
		struct rfl_cudnn *lib = open_described(chips[c]);

		watch_packs(lib);
		for (size_t t = 0; t < RFL_ARRAY_LEN(types); t++)
			for (int i = 0; i < n; i++) {
				if (!all && (norms[i].size[0] > 7 || c + t > 1))
					continue;
				if (plan_norm(lib, &norms[i], types[t]) < 0)
					fail_msg("%s: no plan", described[chips[c]].name);
			}
		rfl_cudnn_close(lib);
	}
}

/* What else a plan may fuse. */
static void other_forms(void **state)
{
	static const struct {
		struct rfl_norm_graph norm;
		bool refused; /* by cuDNN 9.19 */
	} rows[] = {
		{ { .other = true }, true },
		{ { .activation = RFL_PLAN_RELU6 }, true },
		{ { .backward = true, .sum = true }, true },
		{ { .backward = true, .sum = true, .other = true }, true },
		{ { .backward = true, .sum = true, .activation = RFL_PLAN_RELU }, false },
		{ { .backward = true, .activation = RFL_PLAN_RELU6 }, true },
	};
	struct rfl_cudnn *lib = open_described(H100);

	(void)state;
	watch_packs(lib);
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_norm_graph norm = rows[i].norm;
		int64_t bytes;

		norm.batch = 32;
		norm.channels = 64;
		norm.size[0] = norm.size[1] = 14;
		bytes = plan_norm(lib, &norm, RFL_VALUE_BF16);
		if ((bytes < 0) != rows[i].refused && !(bytes >= 0 && is_newer(lib)))
			fail_msg("row %zu", i);
	}
	rfl_cudnn_close(lib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_forms),
		cmocka_unit_test(resnet_has_plans),
	};

	load_standin();
	return has_cudnn() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
