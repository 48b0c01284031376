/*
 * Runs on a device that works while the runner continues (tests/engines/fake_device.h): what the
 * times are taken from, who waits for whom, what is uploaded, recorded and replayed.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "runner/run.h"
#include "tests/unit/run_rig.h"

/* What the engine wrote at its close. */
static char said[4096];

static struct rfl_run_config gpu_config(void)
{
	struct rfl_run_config c = small_config();

	c.device = RFL_DEVICE_CUDA;
	c.warmup = 2;
	c.iters = 8;
	return c;
}

static void run_here(void *state, const struct rfl_run_config *asked, struct rfl_run_result *ret)
{
	const struct rfl_run_host host = host_of(NULL);
	struct rfl_run_config config = *asked;
	const char *log = tmp_path(state, "engine.txt");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	setenv("RFL_FAKE_LOG", log, 1);
	setenv("RFL_FAKE_DEVICE", rfl_device_names[asked->device], 1);
	config.env = "lab";
	config.log_dir = tmp_path(state, "logs");
	config.in_process = true;
	assert_ok(rfl_run(&config, &host, ret, &err), &err);
	unsetenv("RFL_FAKE_DEVICE");
	unsetenv("RFL_FAKE_LOG");
	rfl_buf_init(&text, 0);
	said[0] = '\0';
	if (rfl_file_exists(log)) {
		assert_ok(rfl_file_read(log, &text, &err), &err);
		snprintf(said, sizeof(said), "%s", rfl_buf_str(&text));
		remove(log);
	}
	rfl_buf_fini(&text);
}

static void assert_said(const char *words)
{
	if (!strstr(said, words))
		fail_msg("the engine did not say '%s':\n%s", words, said);
}

/* A mean has the moments in it in which the queue was empty: of the first step. */
static void assert_ms(double mean, double ms)
{
	if (!(mean > ms * (1 - 1e-6) && mean < ms * 1.5))
		fail_msg("a mean of %g ms, expected %g", mean, ms);
}

static void run_ok(void *state, const struct rfl_run_config *config, struct rfl_run_result *ret)
{
	run_here(state, config, ret);
	if (ret->rc != RFL_OK)
		fail_msg("%s: %s", ret->row.status, ret->row.error_text);
}

/* A forward of 4 ms, a backward of 6 and an update of 2, queued in no time. */
static void steps_are_timed_by_the_devices_marks(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	setenv("RFL_FAKE_MS", "4,6,2", 1);
	run_ok(*state, &config, &r);
	unsetenv("RFL_FAKE_MS");
	assert_ms(r.row.fwd_ms_mean, 4);
	assert_ms(r.row.bwd_ms_mean, 6);
	assert_ms(r.row.opt_ms_mean, 2);
	assert_close(r.row.step_ms_median, 12, 1e-6); /* the queue is never empty but at first */
	assert_true(r.row.wall_s >= 8 * 12e-3);
	assert_close(r.row.launch_gap, 1 - 8e-3 * r.row.step_ms_mean / r.row.wall_s, 1e-6);
	assert_true(r.row.launch_gap >= 0 && r.row.launch_gap < 1);
	assert_close(r.row.samples_per_s, 16 / r.row.wall_s, 1e-12);
	assert_int_equal(r.row.sync_each_step, 0);
	assert_int_equal(r.row.cuda_graph, 0);
	assert_string_equal(r.row.device_name, "Fake GPU");
	assert_string_equal(r.row.pci_bus_id, "00000000:0A:00.0");
	assert_string_equal(r.row.cuda_driver, "13.1");
	assert_string_equal(r.row.cudnn_version, "9.19.0");
	assert_close(r.row.device_memory_bytes, 8.0 * (1 << 30), 0);
	/* there is no NVML for a GPU that is none */
	assert_true(isnan(r.row.power_mean_w) && isnan(r.row.sm_clock_mean_hz));
	assert_true(r.row.unwatched && *r.row.unwatched);
	/* after the first step, the warm-up and the window: never in it; so with the losses */
	assert_said("sync=3 loss=2 ");
	rfl_run_result_fini(&r);
}

static void phases_by_marks_follow_the_mode(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	setenv("RFL_FAKE_MS", "4,6,2", 1);
	config.mode = RFL_RUN_FWD;
	run_ok(*state, &config, &r);
	assert_ms(r.row.fwd_ms_mean, 4);
	assert_close(r.row.step_ms_median, 4, 1e-6);
	assert_true(isnan(r.row.bwd_ms_mean) && isnan(r.row.opt_ms_mean));
	rfl_run_result_fini(&r);

	config.mode = RFL_RUN_FWD_BWD;
	run_ok(*state, &config, &r);
	assert_ms(r.row.bwd_ms_mean, 6);
	assert_close(r.row.step_ms_median, 10, 1e-6);
	assert_true(isnan(r.row.opt_ms_mean));
	rfl_run_result_fini(&r);

	config.mode = RFL_RUN_TRAIN;
	config.accum = 2; /* of one sample each */
	run_ok(*state, &config, &r);
	assert_ms(r.row.fwd_ms_mean, 8);
	assert_ms(r.row.bwd_ms_mean, 12);
	assert_ms(r.row.opt_ms_mean, 2);
	assert_close(r.row.step_ms_median, 22, 1e-6);
	rfl_run_result_fini(&r);
	unsetenv("RFL_FAKE_MS");
}

static void it_is_waited_for_when_asked(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	setenv("RFL_FAKE_MS", "4,6,2", 1);
	config.sync_each_step = true;
	run_ok(*state, &config, &r);
	unsetenv("RFL_FAKE_MS");
	assert_said("sync=13 "); /* 2 + 8 steps, and the three of every run */
	assert_int_equal(r.row.sync_each_step, 1);
	assert_true(r.row.step_ms_min >= 12); /* by our clock, with what it costs to wait */
	assert_true(isnan(r.row.launch_gap));
	assert_ms(r.row.bwd_ms_mean, 6); /* marks are of use all the same */
	rfl_run_result_fini(&r);
}

static void without_marks_it_has_to_be_waited_for(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	config.device = RFL_DEVICE_MPS;
	setenv("RFL_FAKE_LACKS", "events", 1);
	setenv("RFL_FAKE_MS", "4,6,2", 1);
	run_ok(*state, &config, &r);
	unsetenv("RFL_FAKE_MS");
	unsetenv("RFL_FAKE_LACKS");
	assert_int_equal(r.row.sync_each_step, 1); /* the row says so */
	assert_true(isnan(r.row.fwd_ms_mean) && isnan(r.row.launch_gap));
	assert_true(r.row.step_ms_min >= 12);
	assert_string_equal(r.row.backend, "mps");
	assert_int_equal(r.row.cudnn_benchmark, -1);
	rfl_run_result_fini(&r);
}

/* One batch that never changes is brought once; what changes is brought at every step. */
static void batches_are_uploaded_ahead(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	run_ok(*state, &config, &r);
	assert_said("upload=1 ");
	assert_true(r.row.upload_ms_mean >= 0);
	rfl_run_result_fini(&r);

	config.data_kind = RFL_DATA_SYNTHETIC_HOST;
	run_ok(*state, &config, &r);
	assert_said("upload=11 "); /* 10 steps, and the batch that would be the next one's */
	assert_string_equal(r.row.data_mode, "synthetic-host");
	rfl_run_result_fini(&r);

	setenv("RFL_FAKE_LACKS", "upload", 1);
	run_ok(*state, &config, &r);
	unsetenv("RFL_FAKE_LACKS");
	assert_true(isnan(r.row.upload_ms_mean));
	rfl_run_result_fini(&r);
}

static void pinned_memory_is_the_engines(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	config.data_kind = RFL_DATA_SYNTHETIC_HOST;
	run_ok(*state, &config, &r);
	assert_int_equal(r.row.pin_memory, 0);
	assert_said("pinned=0 ");
	rfl_run_result_fini(&r);

	config.pin_memory = true;
	run_ok(*state, &config, &r);
	assert_int_equal(r.row.pin_memory, 1);
	assert_null(strstr(said, "pinned=0 "));
	rfl_run_result_fini(&r);

	setenv("RFL_FAKE_LACKS", "pinned", 1); /* left out, and the row says so */
	run_ok(*state, &config, &r);
	unsetenv("RFL_FAKE_LACKS");
	assert_int_equal(r.row.pin_memory, 0);
	rfl_run_result_fini(&r);
}

static void a_step_is_recorded_and_replayed(void **state)
{
	struct rfl_run_config config = gpu_config();
	struct rfl_run_result r;

	config.cuda_graph = true;
	config.warmup = 4;
	setenv("RFL_FAKE_MS", "4,6,2", 1);
	run_ok(*state, &config, &r);
	unsetenv("RFL_FAKE_MS");
	assert_said("forward=3 backward=3 step=3 "); /* before it was recorded */
	assert_said("capture=1 replay=9");
	assert_int_equal(r.row.cuda_graph, 1);
	assert_close(r.row.step_ms_median, 12, 1e-6);
	assert_true(isnan(r.row.fwd_ms_mean) && isnan(r.row.bwd_ms_mean));
	rfl_run_result_fini(&r);

	config.warmup = 3; /* the window replays from its first step on */
	config.mode = RFL_RUN_FWD;
	run_ok(*state, &config, &r);
	assert_said("capture=1 replay=8");
	rfl_run_result_fini(&r);

	setenv("RFL_FAKE_LACKS", "capture", 1);
	run_here(*state, &config, &r);
	unsetenv("RFL_FAKE_LACKS");
	assert_string_equal(r.row.status, "unsupported");
	assert_non_null(strstr(r.row.error_text, "cannot record steps"));
	rfl_run_result_fini(&r);

	setenv("RFL_FAKE", "fail:capture:0", 1);
	run_here(*state, &config, &r);
	unsetenv("RFL_FAKE");
	assert_string_equal(r.row.status, "failed");
	assert_non_null(strstr(r.row.error_text, "capture"));
	rfl_run_result_fini(&r);

	config.device = RFL_DEVICE_CPU;
	run_here(*state, &config, &r);
	assert_string_equal(r.row.status, "unsupported");
	assert_non_null(strstr(r.row.error_text, "cannot replay steps"));
	rfl_run_result_fini(&r);
}

/* auto takes the GPU where one can be used, and says what it was. */
static void auto_says_what_it_took(void **state)
{
	const struct rfl_run_host host = {
		.command_line = "roofline run",
	};
	struct rfl_run_config config = gpu_config();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result r;

	config.env = "lab";
	config.log_dir = tmp_path(*state, "logs");
	config.in_process = true;
	config.device = RFL_RUN_DEVICE_AUTO;
	setenv("RFL_FAKE_DEVICE", "mps", 1);
	assert_ok(rfl_run(&config, &host, &r, &err), &err);
	assert_string_equal(r.row.backend, "mps");
	assert_non_null(strstr(r.row.backend_reason, "not cuda: "));
	assert_non_null(strstr(r.row.backend_reason, "; mps is available"));
	rfl_run_result_fini(&r);
	unsetenv("RFL_FAKE_DEVICE");

	/* what only a GPU has a use for is left out, and the row says so */
	config.sync_each_step = config.cudnn_benchmark = config.pin_memory = true;
	assert_ok(rfl_run(&config, &host, &r, &err), &err);
	assert_string_equal(r.row.backend, "cpu");
	assert_non_null(strstr(r.row.backend_reason, "; not mps: "));
	assert_int_equal(r.row.pin_memory, 0);
	assert_int_equal(r.row.cudnn_benchmark, -1);
	assert_int_equal(r.row.sync_each_step, -1);
	rfl_run_result_fini(&r);

	config.device = RFL_DEVICE_CPU;
	assert_ok(rfl_run(&config, &host, &r, &err), &err);
	assert_null(r.row.backend_reason); /* it was asked for */
	rfl_run_result_fini(&r);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steps_are_timed_by_the_devices_marks),
		TEST(phases_by_marks_follow_the_mode),
		TEST(it_is_waited_for_when_asked),
		TEST(without_marks_it_has_to_be_waited_for),
		TEST(batches_are_uploaded_ahead),
		TEST(pinned_memory_is_the_engines),
		TEST(a_step_is_recorded_and_replayed),
		TEST(auto_says_what_it_took),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
