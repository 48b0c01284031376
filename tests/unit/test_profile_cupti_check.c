/*
 * test_profile_cupti_check.c - the report of what is in the way of counters, for each thing that
 * can be.
 */
#include "profile/source.h"
#include "tests/unit/fake_gpu.h"

struct expected {
	const char *cuda, *cupti;
	const char *what; /* the row that fails; NULL: none */
	const char *reason, *remedy;
	size_t skipped; /* rows after it */
	enum rfl_rc rc; /* of the row */
};

static const struct expected cases[] = {
	{ "", "", NULL, NULL, NULL, 0, RFL_OK },
	{ "fail=cuInit:34", "", "driver", "the stub of a CUDA toolkit", "lib64/stubs", 7,
	  RFL_EUNAVAILABLE },
	{ "fail=cuInit:100", "", "driver", "reports no GPU", "--gpus all", 7, RFL_EUNAVAILABLE },
	{ "count=0", "", "device", "reports no GPU", "--gpus all", 6, RFL_EUNAVAILABLE },
	{ "fail=cuDevicePrimaryCtxRetain:2", "", "device", "free memory", "nvidia-smi", 6,
	  RFL_EUNAVAILABLE },
	{ "", "fail=cuptiProfilerInitialize:39", "profiler", "another profiler", "without it", 5,
	  RFL_EUNAVAILABLE },
	{ "", "fail=cuptiDeviceGetChipName:999", "chip", "cuptiDeviceGetChipName", NULL, 4,
	  RFL_EUNAVAILABLE },
	{ "", "unsupported=vgpu:2", "support", "switched off: it is a virtual GPU", NULL, 3,
	  RFL_EUNAVAILABLE },
	{ "", "unsupported=architecture:0;unsupported=wsl:1", "support",
	  "unsupported: this WSL version", NULL, 3, RFL_EUNAVAILABLE },
	{ "", "unsupported=cmp:0", "support", "possibly unsupported: it is a mining card", NULL, 3,
	  RFL_EUNAVAILABLE },
	{ "", "unsupported=wsl:1", "support", "unsupported: this WSL version", NULL, 3,
	  RFL_EUNAVAILABLE },
	{ "", "fail=cuptiProfilerGetCounterAvailability:35", "permission", "administrators",
	  "NVreg_RestrictProfilingToAdminUsers=0", 2, RFL_EUNAVAILABLE },
	{ "", "fail=cuptiProfilerGetCounterAvailability:26", "permission", "another program uses",
	  "dcgm-exporter", 2, RFL_EUNAVAILABLE },
	{ "", "chip=XX999", "counters", "XX999", NULL, 0, RFL_EUNAVAILABLE },
	{ "", "chip=GV100", "counters core", "no chip 'GV100'", NULL, 0, RFL_EUNAVAILABLE },
	{ "free=8e6;l2=65536;wrong=1", "", "self-test", "computed", NULL, 0, RFL_EFAILED },
	{ "free=8e6;l2=65536", "scale=1.03", "self-test dram_read_bytes", "more than 2 %",
	  "check again", 0, RFL_EFAILED },
	{ "free=8e6;l2=65536;ecc=1", "scale_dram=1.3", "self-test dram_read_bytes", "more than 2 %",
	  "check again", 0, RFL_EFAILED },
	{ "free=8e6;l2=65536;ecc=1", "scale_dram=0.9", "self-test dram_read_bytes", "more than 2 %",
	  "check again", 0, RFL_EFAILED },
	{ "free=8e6;l2=65536", "fail=cuptiRangeProfilerStart:35", "permission", "administrators",
	  "NVreg_RestrictProfilingToAdminUsers=0", 1, RFL_EUNAVAILABLE },
	{ "free=8e6;l2=65536", "fail=cuptiRangeProfilerEnable:26", "self-test",
	  "another program uses", "dcgm-exporter", 0, RFL_EUNAVAILABLE },
	{ "free=8e6;l2=65536", "drop=1", "self-test", "dropped 1 of 2", NULL, 0, RFL_EFAILED },
	{ "free=8e6;l2=65536", "quiet=1;fail=cuptiProfilerHostConfigAddMetrics:27@3",
	  "counters core", "cannot count", NULL, 0, RFL_EFAILED },
};

/* Rows that are ok, and what they say. */
static const struct {
	const char *cuda, *cupti, *what, *says;
} good[] = {
	{ "", "", "counters links", "4 metrics in 1 pass" },
	{ "", "support=4", "support", "only some metrics" },
	{ "free=8e6;l2=65536;ecc=1", "scale_dram=1.06", "self-test dram_read_bytes",
	  "1.0600 of the known value of copy (including ECC check bits)" },
	{ "", "unavailable=l1tex__t_bytes", "counters core",
	  "without l1tex__t_bytes.sum (CUPTI refuses to count it on this device)" },
};

static const struct rfl_gpu_check_row *find(const struct rfl_gpu_check *c,
					    enum rfl_gpu_check_state state, size_t *count)
{
	const struct rfl_gpu_check_row *rows, *found = NULL;
	size_t n = 0;

	rows = c->rows;
	n = c->n;
	*count = 0;
	for (size_t i = 0; i < n; i++)
		if (rows[i].state == state && (*count)++ == 0)
			found = &rows[i];
	return found;
}

static void names_what_is_in_the_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct expected *e = &cases[i];
		struct rfl_gpu_check_request request = { .self_test = true,
							 .params_path = "/nonexistent" };
		struct rfl_gpu_check *check = NULL;
		const struct rfl_gpu_check_row *failed;
		size_t nfailed, nskipped;

		fake_scripts(e->cuda, e->cupti);
		check = rfl_gpu_check_new(&request);
		failed = find(check, RFL_GPU_CHECK_FAILED, &nfailed);
		(void)find(check, RFL_GPU_CHECK_SKIPPED, &nskipped);
		assert_int_equal(failed == NULL, e->what == NULL);
		if (e->what) {
			assert_string_equal(failed->what, e->what);
			if (!strstr(failed->reason, e->reason))
				fail_msg("case %zu: %s", i, failed->reason);
			if (e->remedy && !strstr(failed->reason, e->remedy))
				fail_msg("case %zu: what to do: %s", i, failed->reason);
			if (failed->rc != e->rc)
				fail_msg("case %zu: rc %d", i, failed->rc);
		}
		if (e->skipped && nskipped != e->skipped)
			fail_msg("case %zu: %zu rows skipped", i, nskipped);
		rfl_gpu_check_free(check);
		fake_is_clean();
	}
}

static void says_what_works(void **state)
{
	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(good); i++) {
		struct rfl_gpu_check_request request = { .self_test = good[i].cuda[0] != '\0',
							 .params_path = "/nonexistent" };
		const struct rfl_gpu_check_row *rows;
		struct rfl_gpu_check *check = NULL;
		size_t n, at = 0;

		fake_scripts(good[i].cuda, good[i].cupti);
		check = rfl_gpu_check_new(&request);
		rows = check->rows;
		n = check->n;
		while (at < n && strcmp(rows[at].what, good[i].what) != 0)
			at++;
		assert_true(at < n);
		assert_int_equal(rows[at].state, RFL_GPU_CHECK_OK);
		if (!strstr(rows[at].detail, good[i].says))
			fail_msg("%s: %s", rows[at].what, rows[at].detail);
		assert_null(find(check, RFL_GPU_CHECK_FAILED, &at));
		rfl_gpu_check_free(check);
		fake_is_clean();
	}
}

/* The driver's own parameters say why permission is refused. */
static void reads_the_parameters_of_the_driver(void **state)
{
	struct rfl_gpu_check_request request = { .params_path = NULL };
	struct rfl_gpu_check *check = NULL;
	const struct rfl_gpu_check_row *failed;
	size_t n;

	fake_scripts("", "fail=cuptiProfilerGetCounterAvailability:35");
	request.params_path = write_file(*state, "params",
					 "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n");
	check = rfl_gpu_check_new(&request);
	failed = find(check, RFL_GPU_CHECK_FAILED, &n);
	assert_non_null(strstr(failed->reason, "RmProfilingAdminOnly: 1"));
	rfl_gpu_check_free(check);
	fake_is_clean();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_what_is_in_the_way),
		cmocka_unit_test(says_what_works),
		cmocka_unit_test_setup_teardown(reads_the_parameters_of_the_driver, tmpdir_make,
						tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
