/*
 * A driver of before the renaming of the throttle reasons, on a GPU without an energy counter.
 */
#include <math.h>
#include <time.h>

#include "machine/gpu.h"
#include "tests/unit/fake_nvml.h"

static int load(void **state)
{
	(void)state;
	fake_nvml_load("nvml-old");
	return 0;
}

static void finds_the_old_name(void **state)
{
	const struct timespec pause = { .tv_sec = 1, .tv_nsec = 100000000 };
	struct rfl_sampler *s = NULL;
	struct rfl_gpu_samples got;

	(void)state;
	fake_nvml.control("reasons=8;average=25");
	assert_int_equal(rfl_sampler_new(NULL, 100, &s, NULL), RFL_OK);
	assert_int_equal(rfl_sampler_start(s, NULL), RFL_OK);
	(void)nanosleep(&pause, NULL);
	rfl_sampler_stop(s, &got);
	assert_true(got.throttle_known);
	assert_int_equal(got.throttle_bits, 8);
	assert_close(got.energy_j, 25 * got.window_s, 1e-12);
	rfl_sampler_free(s);
}

static void settings_that_are_not_told(void **state)
{
	struct rfl_gpus *g = NULL;

	(void)state;
	fake_nvml.control("");
	assert_int_equal(rfl_gpus_new(&g, NULL), RFL_OK);
	assert_true(isnan(g->gpus[0].sm_clock_max_hz) && isnan(g->gpus[0].power_limit_w));
	assert_int_equal(g->gpus[0].ecc, RFL_NOT_KNOWN);
	assert_int_equal(g->gpus[0].persistence, RFL_NOT_KNOWN);
	rfl_gpus_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_old_name),
		cmocka_unit_test(settings_that_are_not_told),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
