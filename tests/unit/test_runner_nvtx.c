/*
 * What tools see of a run: NVTX ranges around the steps of the window and nothing of the warm-up,
 * and the window itself as reported to profilers. The engine is the fake one.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setenv */
#endif
#include "tests/unit/rfl_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "complexity/zoo.h"
#include "profile/source.h"
#include "runner/run.h"

#define MODEL  "mnist_cnn"
#define TOOL   RFL_TEST_BUILD "/tests/fakes/nvtx/libfake_nvtx_tool.so"
#define DRIVER RFL_TEST_BUILD "/tests/fakes/nvtx/libcuda.so.1"

static const char *const plugin_dirs[] = { RFL_TEST_BUILD "/tests/engines", NULL };

static const char *(*tool_log)(void);
static void (*tool_reset)(int refuse);
static int (*profiler_calls)(int of_stop);

static void *symbol_of(const char *library, const char *symbol)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *found;

	if (!handle)
		fail_msg("%s", dlerror());
	found = dlsym(handle, symbol);
	assert_non_null(found);
	return found;
}

static int open_fakes(void **state)
{
	void *found = symbol_of(TOOL, "fake_nvtx_log");

	(void)state;
	memcpy(&tool_log, &found, sizeof(found));
	found = symbol_of(TOOL, "fake_nvtx_reset");
	memcpy(&tool_reset, &found, sizeof(found));
	found = symbol_of(DRIVER, "fake_profiler_calls");
	memcpy(&profiler_calls, &found, sizeof(found));
	return 0;
}

static void run_named(const char *dir, enum rfl_detail nvtx, const char *tool, int64_t iters,
		      struct rfl_run_result *ret)
{
	struct rfl_run_config config = {
		.arch = MODEL,
		.micro_batch = 2,
		.device = RFL_DEVICE_CPU,
		.engine = "fake",
		.plugin_dirs = plugin_dirs,
		.threads = 1,
		.prefetch = 2,
		.accum = 1,
		.warmup = 2,
		.iters = iters,
		.nvtx = nvtx,
		.nvtx_injection = tool,
		.log_dir = dir,
		.in_process = true,
	};
	const struct rfl_run_host host = { .command_line = "roofline run" };
	struct rfl_err err = RFL_ERR_INIT;

	tool_reset(0);
	assert_ok(rfl_run(&config, &host, ret, &err), &err);
}

/* What the tool received after its greeting. */
static const char *heard(void)
{
	const char *first = strstr(tool_log(), "push");

	return first ? first : "";
}

/* The layers of one phase, each ended by the next; the last by the end of the phase. */
static void put_layers(struct rfl_buf *b, const struct rfl_net *net, const char *phase)
{
	const bool back = strcmp(phase, "bwd") == 0;

	rfl_buf_printf(b, "push %s\n", phase);
	for (int k = 0; k < net->nnodes + !back; k++) {
		int i = back ? net->nnodes - k : k;

		rfl_buf_printf(b, "push %s/%s\npop\n", phase,
			       i < net->nnodes ? net->nodes[i].name : "loss");
	}
	rfl_buf_puts(b, "pop\n");
}

#define STEP_HEARD   "push step\npop\n"
#define PHASES_HEARD "push step\npush fwd\npop\npush bwd\npop\npush opt\npop\npop\n"

static void tools_hear_the_window(void **state)
{
	static const char *const expected[] = {
		[RFL_DETAIL_OFF] = "",
		[RFL_DETAIL_STEP] = STEP_HEARD STEP_HEARD,
		[RFL_DETAIL_PHASE] = PHASES_HEARD PHASES_HEARD,
	};

	for (int detail = RFL_DETAIL_OFF; detail <= RFL_DETAIL_PHASE; detail++) {
		struct rfl_run_result result;

		run_named(*state, (enum rfl_detail)detail, TOOL, 2, &result);
		assert_string_equal(result.row.status, "ok");
		assert_string_equal(heard(), expected[detail]);
		rfl_run_result_fini(&result);
	}
}

static void tools_hear_layers(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_result result;
	struct rfl_net *net = NULL;
	struct rfl_buf expected;

	rfl_buf_init(&expected, 0);
	assert_ok(rfl_zoo_build(MODEL, NULL, &net, &err), &err);
	rfl_buf_puts(&expected, "push step\n");
	put_layers(&expected, net, "fwd");
	put_layers(&expected, net, "bwd");
	rfl_buf_puts(&expected, "push opt\npop\npop\n");
	run_named(*state, RFL_DETAIL_LAYER, TOOL, 1, &result);
	assert_string_equal(result.row.status, "ok");
	assert_string_equal(heard(), rfl_buf_str(&expected));
	rfl_run_result_fini(&result);
	rfl_buf_fini(&expected);
	rfl_net_free(net);
}

static void without_a_tool_nothing_is_named(void **state)
{
	struct rfl_run_result result;

	run_named(*state, RFL_DETAIL_LAYER, NULL, 2, &result);
	assert_string_equal(result.row.status, "ok");
	assert_string_equal(tool_log(), "");
	rfl_run_result_fini(&result);
}

static void what_cannot_be_named_ends_the_run_early(void **state)
{
	struct rfl_run_result result;

	setenv("RFL_FAKE_LACKS", "mark", 1);
	run_named(*state, RFL_DETAIL_LAYER, TOOL, 2, &result);
	assert_string_equal(result.row.status, "unsupported");
	assert_non_null(strstr(result.row.error_text, "'fake' cannot tell layers apart"));
	rfl_run_result_fini(&result);
	unsetenv("RFL_FAKE_LACKS");

	run_named(*state, RFL_DETAIL_STEP, "/nonexistent/tool.so", 2, &result);
	assert_string_equal(result.row.status, "unsupported");
	assert_non_null(strstr(result.row.error_text, "/nonexistent/tool.so"));
	rfl_run_result_fini(&result);
}

/* Once, around the measured steps, whatever is named. */
static void profilers_are_told_of_the_window(void **state)
{
	struct rfl_run_result result;
	int before[2] = { profiler_calls(0), profiler_calls(1) };

	run_named(*state, RFL_DETAIL_OFF, NULL, 5, &result);
	assert_int_equal(profiler_calls(0), before[0] + 1);
	assert_int_equal(profiler_calls(1), before[1] + 1);
	rfl_run_result_fini(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tools_hear_the_window, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(tools_hear_layers, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(without_a_tool_nothing_is_named, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(profilers_are_told_of_the_window, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(what_cannot_be_named_ends_the_run_early,
						tmpdir_make, tmpdir_remove),
	};

	return cmocka_run_group_tests(tests, open_fakes, NULL);
}
