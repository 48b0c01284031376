/*
 * test_profile_cupti_faults.c - every call of the driver and of CUPTI fails once, with every result
 * that is met in the field: each time a message that names the call, nothing left open, and the
 * rest of the measurement continues where it can.
 */
#include <math.h>
#include <stdlib.h>

#include "profile/cupti/api.h"
#include "profile/source.h"
#include "tests/unit/fake_gpu.h"

static const char *const names[] = { "fwd", "bwd", "opt", NULL };

static const unsigned all_sets = RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_AUDIT | RFL_SET_LINKS |
				 RFL_SET_KERNELS | RFL_SET_SELF_TEST;

static enum rfl_rc measure(const char *cuda, const char *cupti, unsigned sets,
			   struct rfl_captures *to, struct rfl_err *err)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = sets, .precision = "tf32", .label = "test" };
	char text[256];
	/* a small copy is a fast one */
	int len = snprintf(text, sizeof(text), "%s;free=8e6;l2=65536", cuda);

	assert_in_range(len, 1, sizeof(text) - 1);
	fake_scripts(text, cupti);
	rfl_captures_init(to);
	w.max_ranges = 3;
	return rfl_source_cupti.measure(&r, &w, to, err);
}

/* Whether a text of the capture, or the error, speaks of it. */
static bool is_told(const struct rfl_captures *to, const struct rfl_err *err, const char *word)
{
	return strstr(err->msg, word) || (to->n > 0 && fake_noted(to->captures[0], word) != NULL);
}

/* Calls whose failure costs nothing that is asked for: they are made to close something, or for the
 * idle range alone, or are asked again later. */
static bool is_harmless(const char *call)
{
	static const char *const calls[] = {
		"cuptiProfilerDeInitialize",
		"cuptiProfilerHostDeinitialize",
		"cuptiRangeProfilerDisable",
		"cuptiActivityDisable",
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(calls); i++)
		if (strcmp(calls[i], call) == 0)
			return true;
	return false;
}

/* This code of this call speaks of a metric that cannot be counted together with the others. */
static bool names_a_metric(const char *call, int code, const struct rfl_captures *to)
{
	return strcmp(call, "cuptiProfilerHostConfigAddMetrics") == 0 &&
	       code == RFL_CUPTI_UNKNOWN && to->n == 1 &&
	       fake_noted(to->captures[0], "GH100 cannot count 'gpu__time_duration.sum'");
}

static void each_call_of_cupti_fails(void **state)
{
#define NAME(member, symbol, arguments) #symbol,
	static const char *const calls[] = { RFL_CUPTI_FUNCTIONS(NAME) };
#undef NAME
	static const int codes[] = { RFL_CUPTI_INSUFFICIENT_PRIVILEGES,
				     RFL_CUPTI_MULTIPLE_SUBSCRIBERS, RFL_CUPTI_UNKNOWN,
				     RFL_CUPTI_HARDWARE_BUSY, RFL_CUPTI_NOT_INITIALIZED };
	size_t tried = 0;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(calls); i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(codes); k++) {
			struct rfl_captures to;
			struct rfl_err err = RFL_ERR_INIT;
			char script[256], leaks[256];
			enum rfl_rc rc;

			snprintf(script, sizeof(script), "quiet=1;fail=%s:%d", calls[i], codes[k]);
			rc = measure("", script, all_sets, &to, &err);
			if (fake_calls(fake.cupti_log(), calls[i]) == 0) {
				rfl_captures_fini(&to);
				continue; /* not called by the source */
			}
			tried++;
			if (rc != RFL_OK && rc != RFL_EUNAVAILABLE)
				fail_msg("%s: rc %d: %s", script, rc, err.msg);
			if (rc == RFL_OK && to.n != 1)
				fail_msg("%s: no capture", script);
			if (!is_harmless(calls[i]) && !is_told(&to, &err, calls[i]) &&
			    !names_a_metric(calls[i], codes[k], &to))
				fail_msg("%s: not reported (%s)", script, err.msg);
			if (fake.cuda_leaks(leaks, sizeof(leaks)))
				fail_msg("%s: left open: %s", script, leaks);
			rfl_captures_fini(&to);
		}
	assert_true(tried >= 29 * RFL_ARRAY_LEN(codes));
}

static void each_call_of_the_driver_fails(void **state)
{
#define NAME(member, symbol, arguments) #symbol,
	static const char *const calls[] = { RFL_CUDA_FUNCTIONS(NAME) };
#undef NAME
	static const int codes[] = { RFL_CUDA_OUT_OF_MEMORY, RFL_CUDA_NO_DEVICE, RFL_CUDA_UNKNOWN };
	/* asked for a detail, or at the end */
	static const char quiet[] =
		"cuDeviceGetName cuDeviceGetAttribute cuMemGetInfo_v2 cuCtxPopCurrent_v2 "
		"cuDevicePrimaryCtxRelease_v2 cuMemFree_v2 cuModuleUnload";
	size_t tried = 0;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(calls); i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(codes); k++) {
			struct rfl_captures to;
			struct rfl_err err = RFL_ERR_INIT;
			char script[256], call[64];
			enum rfl_rc rc;

			snprintf(call, sizeof(call), "%.*s", (int)strcspn(calls[i], "_"), calls[i]);
			snprintf(script, sizeof(script), "fail=%s:%d", calls[i], codes[k]);
			rc = measure(script, "", all_sets, &to, &err);
			if (fake_calls(fake.cuda_log(), calls[i]) > 0) {
				tried++;
				if (rc != RFL_OK && rc != RFL_EUNAVAILABLE && rc != RFL_EDEVMEM)
					fail_msg("%s: rc %d: %s", script, rc, err.msg);
				if (!strstr(quiet, calls[i]) && !is_told(&to, &err, call))
					fail_msg("%s: not reported (%s)", script, err.msg);
				assert_string_equal(fake.cupti_complaints(), "");
			}
			rfl_captures_fini(&to);
		}
	assert_true(tried >= 15 * RFL_ARRAY_LEN(codes));
}

/* Wherever permission is refused: the fix is reported, and kernels are still timed. */
static void permission_refused_leaves_the_times_of_kernels(void **state)
{
	static const char *const calls[] = { "cuptiProfilerGetCounterAvailability",
					     "cuptiRangeProfilerEnable",
					     "cuptiRangeProfilerSetConfig",
					     "cuptiRangeProfilerStart" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(calls); i++) {
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;
		const struct rfl_capture *c;
		const struct rfl_range *r;
		char script[256];

		snprintf(script, sizeof(script), "fail=%s:35", calls[i]);
		assert_ok(measure("", script, RFL_SET_CORE, &to, &err), &err);
		c = to.captures[0];
		assert_non_null(fake_noted(c, "NVreg_RestrictProfilingToAdminUsers=0"));
		assert_non_null(fake_noted(c, "--cap-add=SYS_ADMIN"));
		assert_non_null(fake_noted(c, calls[i]));
		r = fake_range(c, RFL_RANGE_PHASE, "bwd");
		assert_non_null(r);
		assert_true(isnan(r->amount[RFL_QUANTITY_DRAM].value));
		assert_true(isnan(r->amount[RFL_QUANTITY_FLOPS].value));
		assert_non_null(strstr(r->amount[RFL_QUANTITY_DRAM_READ].reason, calls[i]));
		assert_non_null(strstr(c->total[RFL_QUANTITY_DRAM_WRITE].reason, calls[i]));
		assert_non_null(strstr(c->total[RFL_QUANTITY_FLOPS_TENSOR_TF32].reason, calls[i]));
		assert_non_null(strstr(c->total[RFL_QUANTITY_FLOPS].reason, calls[i]));
		assert_non_null(strstr(c->total[RFL_QUANTITY_DRAM].reason, calls[i]));
		assert_non_null(fake_noted(c, "GEMMs 62.5 %"));
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

static void messages_say_what_to_do(void **state)
{
	static const struct {
		const char *cuda, *cupti, *word;
	} cases[] = {
		{ "fail=cuInit:34", "", "lib64/stubs from LD_LIBRARY_PATH" },
		{ "fail=cuInit:100", "", "CUDA_VISIBLE_DEVICES" },
		{ "fail=cuInit:803", "", "different versions" },
		{ "fail=cuInit:802", "", "nvidia-fabricmanager" },
		{ "fail=cuInit:999", "", "nvidia-modprobe" },
		{ "count=0", "", "reports no GPU" },
		{ "", "fail=cuptiProfilerInitialize:39;fail=cuptiActivityEnable:39", "ncu, nsys" },
		{ "", "unsupported=vgpu:2;fail=cuptiActivityEnable:40", "hypervisor" },
		{ "", "unsupported=architecture:1;fail=cuptiActivityEnable:27", "7.5" },
		{ "", "chip=XX999;fail=cuptiActivityEnable:26", "XX999" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(measure(cases[i].cuda, cases[i].cupti, RFL_SET_CORE, &to, &err),
				 RFL_EUNAVAILABLE);
		assert_says(&err, cases[i].word);
		assert_null(strchr(err.msg, '\n'));
		assert_int_equal(to.n, 0);
		fake_is_clean();
		rfl_captures_fini(&to);
	}
}

/* libnvperf_host.so is opened by libcupti itself, which answers 15 when it is not there. */
static void a_missing_neighbour_is_named(void **state)
{
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(measure("", "fail=cuptiProfilerHostInitialize:15", RFL_SET_CORE, &to, &err),
		  &err);
	assert_non_null(fake_noted(to.captures[0], "libnvperf_host.so is missing from"));
	assert_non_null(fake_noted(to.captures[0], "tests/fakes"));
	rfl_captures_fini(&to);
}

/* CUPTI says how large its images are: one that does not fit ends the counters, not the program. */
static void an_image_that_does_not_fit(void **state)
{
	static const char *const calls[] = { "cuptiProfilerGetCounterAvailability",
					     "cuptiRangeProfilerGetCounterDataSize",
					     "cuptiProfilerHostGetConfigImageSize" };

	(void)state;
#ifdef __SANITIZE_ADDRESS__ /* it ends the program itself */
	skip();
#endif
	for (size_t i = 0; i < RFL_ARRAY_LEN(calls); i++) {
		struct rfl_captures to;
		struct rfl_err err = RFL_ERR_INIT;
		char script[128];
		enum rfl_rc rc;

		(void)snprintf(script, sizeof(script), "quiet=1;huge=%s", calls[i]);
		rc = measure("", script, RFL_SET_CORE, &to, &err);
		assert_true(rc == RFL_OK || rc == RFL_EUNAVAILABLE);
		if (!is_told(&to, &err, "bytes, which does not fit in memory"))
			fail_msg("%s: not reported (%s)", calls[i], err.msg);
		rfl_captures_fini(&to);
	}
}

static void a_device_that_is_not_there(void **state)
{
	struct fake_step step = { .kind = RFL_RANGE_PHASE, .names = names };
	struct rfl_workload w = fake_workload(&step);
	struct rfl_source_request r = { .sets = RFL_SET_CORE, .device = 3 };
	struct rfl_captures to;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	fake_scripts("count=2", "");
	rfl_captures_init(&to);
	assert_int_equal(rfl_source_cupti.measure(&r, &w, &to, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "no GPU 3: this machine has 2; choose one from 0 to 1");
	fake_is_clean();
	rfl_captures_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_of_cupti_fails),
		cmocka_unit_test(each_call_of_the_driver_fails),
		cmocka_unit_test(permission_refused_leaves_the_times_of_kernels),
		cmocka_unit_test(messages_say_what_to_do),
		cmocka_unit_test(a_missing_neighbour_is_named),
		cmocka_unit_test(an_image_that_does_not_fit),
		cmocka_unit_test(a_device_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
