/*
 * A GPU is sampled beside what runs on it: means over its answers, nothing without an answer.
 */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "machine/gpu.h"
#include "tests/unit/fake_nvml.h"

#define LONG 210 /* samples at 200 Hz: more than a second */

static int load(void **state)
{
	(void)state;
	fake_nvml_load("nvml");
	return 0;
}

/* Until the sampler took n samples, or a test would wait for ever. */
static void wait_for(int n)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const double until = rfl_clock_s() + 20;

	while (fake_nvml.calls("power") < n) {
		if (rfl_clock_s() > until)
			fail_msg("%d samples were not taken in 20 s", n);
		(void)nanosleep(&pause, NULL);
	}
}

static struct rfl_sampler *sampler(const char *script, const char *place)
{
	struct rfl_sampler *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	fake_nvml.control(script);
	if (rfl_sampler_new(place, 200, &s, &err) != RFL_OK)
		fail_msg("%s", err.msg);
	return s;
}

/* A window of at least n samples. */
static void window(struct rfl_sampler *s, int n, struct rfl_gpu_samples *ret)
{
	assert_int_equal(rfl_sampler_start(s, NULL), RFL_OK);
	wait_for(n);
	rfl_sampler_stop(s, ret);
}

static void tells_what_was_seen(void **state)
{
	/* the last value stays: means are of n samples, the first of which are known */
	struct rfl_sampler *s = sampler("sm=1800,1200,1500;mem=5000;power=100,200,150;"
					"temperature=60,71,65;reasons=1,4,33;used=1e9,3e9,2e9;"
					"energy=1000,1042.5",
					NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, LONG, &got);
	assert_true(got.n >= 3);
	assert_close(got.sm_clock_mean_hz,
		     (1800e6 + 1200e6 + 1500e6 * (double)(got.n - 2)) / (double)got.n, 1e-12);
	assert_close(got.sm_clock_min_hz, 1200e6, 0);
	assert_close(got.memory_clock_mean_hz, 5000e6, 0);
	assert_close(got.power_mean_w, (100 + 200 + 150.0 * (double)(got.n - 2)) / (double)got.n,
		     1e-12);
	assert_close(got.temperature_max_c, 71, 0);
	assert_close(got.memory_used_peak_bytes, 3e9, 0);
	assert_close(got.energy_j, 42.5, 1e-9);
	assert_true(got.throttle_known);
	assert_int_equal(got.throttle_bits, 4 | 32); /* 1 is idle */
	assert_true(got.window_s > 0 && got.window_s < 20);
	rfl_sampler_free(s);
	assert_int_equal(fake_nvml.sessions(), 0);
}

/* Each window begins anew. */
static void windows_do_not_mix(void **state)
{
	struct rfl_sampler *s =
		sampler("sm=100,2000;temperature=99,40;reasons=8,0;energy=1,3,7,8", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, LONG, &got);
	assert_close(got.sm_clock_min_hz, 100e6, 0);
	assert_close(got.energy_j, 2, 1e-9);
	window(s, fake_nvml.calls("power") + LONG, &got);
	assert_close(got.sm_clock_min_hz, 2000e6, 0);
	assert_close(got.temperature_max_c, 40, 0);
	assert_close(got.energy_j, 1, 1e-9);
	assert_int_equal(got.throttle_bits, 0);
	assert_true(got.throttle_known);
	rfl_sampler_free(s);
}

/* A query that is lost midway: the mean of the earlier answers. */
static void loses_a_query(void **state)
{
	struct rfl_sampler *s = sampler("lose=sm@3;lose=energy@2;lose=temperature@1;lose=reasons@1;"
					"sm=1000,2000;power=50;energy=7",
					NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, 5, &got);
	assert_close(got.sm_clock_mean_hz, 1500e6, 0);
	assert_close(got.energy_j, 50 * got.window_s, 1e-12); /* power times time */
	assert_true(isnan(got.temperature_max_c));
	assert_false(got.throttle_known);
	rfl_sampler_free(s);
}

static void nothing_told_is_nan(void **state)
{
	struct rfl_sampler *s =
		sampler("lose=sm@1;lose=memory@1;lose=power@1;lose=energy@1;lose=average@1;"
			"lose=temperature@1;lose=reasons@1;"
			"lose=nvmlDeviceGetMemoryInfo@1",
			NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, 2, &got);
	assert_true(isnan(got.sm_clock_mean_hz) && isnan(got.sm_clock_min_hz));
	assert_true(isnan(got.memory_clock_mean_hz) && isnan(got.power_mean_w));
	assert_true(isnan(got.energy_j) && isnan(got.temperature_max_c));
	assert_true(isnan(got.memory_used_peak_bytes));
	rfl_sampler_free(s);
}

/* In a window too short for the counter nothing was counted, which is not no energy. */
static void a_counter_that_stood_still_says_nothing(void **state)
{
	struct rfl_sampler *s = sampler("energy=900;power=10", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, 2, &got);
	assert_true(got.energy_j > 0);
	assert_close(got.energy_j, 10 * got.window_s, 1e-12);
	rfl_sampler_free(s);
}

/* The counter moves in ticks of a tenth of a second: one in a short window may be all of another.
 */
static void a_tick_in_a_short_window_is_not_its_energy(void **state)
{
	struct rfl_sampler *s = sampler("energy=900,1000;power=10", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, 2, &got);
	assert_close(got.energy_j, 10 * got.window_s, 1e-12);
	rfl_sampler_free(s);
}

/* What a driver has of the last second is not of a window of less. */
static void a_mean_of_the_second_before_is_not_taken(void **state)
{
	struct rfl_sampler *s = sampler("lose=power@1;lose=energy@1;average=300", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, 4, &got);
	assert_true(isnan(got.power_mean_w) && isnan(got.energy_j));
	window(s, fake_nvml.calls("power") + LONG, &got);
	assert_close(got.power_mean_w, 300, 0);
	rfl_sampler_free(s);
}

/* A counter that went back, as after a reset, is not a negative energy. */
static void counter_that_went_back(void **state)
{
	struct rfl_sampler *s = sampler("energy=900,1;power=10", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	window(s, 2, &got);
	assert_close(got.energy_j, 10 * got.window_s, 1e-12);
	rfl_sampler_free(s);
}

/* By place, not by index: CUDA_VISIBLE_DEVICES counts otherwise than the driver. */
static void finds_the_device(void **state)
{
	static const char *const places[] = { "00000000:0B:00.0", "0000:0b:00.0",
					      "00000000:0b:00.0" };

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct rfl_sampler *s = sampler("count=2;sm0=1000;sm1=2000", places[i]);
		struct rfl_gpu_samples got;

		window(s, 1, &got);
		assert_close(got.sm_clock_mean_hz, 2000e6, 0);
		rfl_sampler_free(s);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *script, *place;
		double hz;
		enum rfl_rc rc;
		const char *word;
	} cases[] = {
		{ "count=2", "00000000:0F:00.0", 10, RFL_EUNAVAILABLE,
		  "shows 2 GPUs, but none with PCI bus id 00000000:0F:00.0" },
		{ "", "GPU-1234", 10, RFL_EINVAL, "'GPU-1234' is not a valid PCI bus id" },
		{ "", "0000:0A:00", 10, RFL_EINVAL, "not a valid PCI bus id" },
		{ "", "0000:0A:00.1", 10, RFL_EINVAL, "not a valid PCI bus id" },
		{ "fail=nvmlInit_v2:9", NULL, 10, RFL_EUNAVAILABLE,
		  "failed in nvmlInit: Driver Not Loaded" },
		{ "count=0", NULL, 10, RFL_EUNAVAILABLE, "nvmlDeviceGetHandleByIndex" },
		{ "", NULL, 0, RFL_EINVAL, "0 GPU samples per second" },
		{ "", NULL, 1e9, RFL_EINVAL, "at most 1000" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_sampler *s = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		fake_nvml.control(cases[i].script);
		assert_int_equal(rfl_sampler_new(cases[i].place, cases[i].hz, &s, &err),
				 cases[i].rc);
		if (!strstr(err.msg, cases[i].word))
			fail_msg("'%s' does not say '%s'", err.msg, cases[i].word);
		assert_null(s);
		assert_int_equal(fake_nvml.sessions(), 0);
	}
}

static void start_and_stop_in_any_order(void **state)
{
	struct rfl_sampler *s = sampler("", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	rfl_sampler_stop(s, &got); /* nothing is open */
	assert_int_equal(got.n, 0);
	assert_true(isnan(got.window_s) && isnan(got.energy_j));
	assert_int_equal(rfl_sampler_start(s, NULL), RFL_OK);
	assert_int_equal(rfl_sampler_start(s, NULL), RFL_EINVAL);
	rfl_sampler_free(s); /* ends it */
	assert_int_equal(fake_nvml.sessions(), 0);
	rfl_sampler_free(NULL);
}

/* Even a window of no length has the sample of its beginning and that of its end. */
static void shortest_window(void **state)
{
	struct rfl_sampler *s = sampler("power=80", NULL);
	struct rfl_gpu_samples got;

	(void)state;
	assert_int_equal(rfl_sampler_start(s, NULL), RFL_OK);
	rfl_sampler_stop(s, &got);
	assert_true(got.n >= 2);
	assert_close(got.power_mean_w, 80, 0);
	rfl_sampler_free(s);
}

static void names_reasons(void **state)
{
	char text[128], small[8];

	(void)state;
	rfl_throttle_words(0, text, sizeof(text));
	assert_string_equal(text, "");
	rfl_throttle_words(0x4 | 0x40, text, sizeof(text));
	assert_string_equal(text, "SW power cap, HW thermal slowdown");
	rfl_throttle_words(0x80 | 0x10000, text, sizeof(text));
	assert_string_equal(text, "HW power brake, other reasons (0x10000)");
	rfl_throttle_words(0x4, small, sizeof(small));
	assert_string_equal(small, "SW powe");
}

/* The list of GPUs comes through the same opening. */
static void lists_gpus(void **state)
{
	struct rfl_gpus *g = NULL;

	(void)state;
	fake_nvml.control("count=2");
	assert_int_equal(rfl_gpus_new(&g, NULL), RFL_OK);
	assert_int_equal(g->n, 2);
	assert_string_equal(g->driver, "580.00");
	assert_string_equal(g->gpus[1].name, "Fake GPU 1");
	assert_string_equal(g->gpus[1].uuid, "");
	assert_true(g->gpus[1].memory_bytes == 16000000000);
	assert_close(g->gpus[0].sm_clock_max_hz, 2040e6, 0);
	assert_close(g->gpus[0].memory_clock_max_hz, 6251e6, 0);
	assert_close(g->gpus[0].power_limit_w, 72, 0);
	assert_int_equal(g->gpus[0].ecc, RFL_YES);
	assert_int_equal(g->gpus[0].persistence, RFL_NO);
	rfl_gpus_free(g);
	assert_int_equal(fake_nvml.sessions(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_what_was_seen),
		cmocka_unit_test(windows_do_not_mix),
		cmocka_unit_test(loses_a_query),
		cmocka_unit_test(nothing_told_is_nan),
		cmocka_unit_test(a_counter_that_stood_still_says_nothing),
		cmocka_unit_test(a_tick_in_a_short_window_is_not_its_energy),
		cmocka_unit_test(a_mean_of_the_second_before_is_not_taken),
		cmocka_unit_test(counter_that_went_back),
		cmocka_unit_test(finds_the_device),
		cmocka_unit_test(refuses),
		cmocka_unit_test(start_and_stop_in_any_order),
		cmocka_unit_test(shortest_window),
		cmocka_unit_test(names_reasons),
		cmocka_unit_test(lists_gpus),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
