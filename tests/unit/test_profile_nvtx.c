/* NVTX ranges as a tool hears them, our declarations against NVIDIA's, and the profiler's window.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setenv */
#endif
#include "tests/unit/rfl_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/cupti/nvtx.h"
#include "profile/cupti/api.h"

#ifdef RFL_TEST_NVTX3
#include <nvtx3/nvToolsExt.h>
#endif

#define TOOL   RFL_TEST_BUILD "/tests/fakes/nvtx/libfake_nvtx_tool.so"
#define DRIVER RFL_TEST_BUILD "/tests/fakes/nvtx/libcuda.so.1"

static const char *(*tool_log)(void);
static void (*tool_reset)(int refuse);

static void *address(void *library, const char *symbol)
{
	void *found = dlsym(library, symbol);

	assert_non_null(found);
	return found;
}

static int open_tool(void **state)
{
	void *tool = dlopen(TOOL, RTLD_NOW | RTLD_LOCAL);
	void *found;

	(void)state;
	if (!tool)
		fail_msg("%s", dlerror());
	found = address(tool, "fake_nvtx_log");
	memcpy(&tool_log, &found, sizeof(found));
	found = address(tool, "fake_nvtx_reset");
	memcpy(&tool_reset, &found, sizeof(found));
	return 0;
}

/* Without a tool every call is allowed and nothing happens. */
static void is_silent_without_a_tool(void **state)
{
	static const char *const none[] = { NULL, "" };

	(void)state;
	tool_reset(0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(none); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_ok(rfl_nvtx_open(none[i], &err), &err);
		assert_false(rfl_nvtx_is_heard());
		rfl_nvtx_push("step");
		rfl_nvtx_pop();
		rfl_nvtx_close();
	}
	assert_string_equal(tool_log(), "");
}

static void refuses_bad_tools(void **state)
{
	static const struct {
		const char *path, *word;
	} cases[] = {
		{ "/nonexistent/tool.so", "/nonexistent/tool.so" },
		{ "libm.so.6", "InitializeInjectionNvtx2" },
		{ TOOL, "does not accept NVTX ranges" },
	};

	(void)state;
	tool_reset(1);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_nvtx_open(cases[i].path, &err), RFL_EUNAVAILABLE);
		assert_says(&err, cases[i].word);
		assert_false(rfl_nvtx_is_heard());
	}
}

/* What the tool hears of a client that goes through a step; `hello` is what it heard at first. */
#define HELLO                                     \
	"version 3, table 2 none, table 4 none\n" \
	"module 0: none\n"                        \
	"module 1: 16, 15 slots\n"                \
	"module 2: 9, 8 slots\n"                  \
	"module 3: 15, 14 slots\n"                \
	"module 4: 7, 6 slots\n"                  \
	"module 5: 16, 15 slots\n"                \
	"module 6: 7, 6 slots\n"                  \
	"module 7: none\n"
#define STEP                        \
	"push step\n"               \
	"push fwd\n"                \
	"push fwd/layer1.0.conv1\n" \
	"pop\n"                     \
	"pop\n"                     \
	"push \n"                   \
	"pop\n"                     \
	"pop\n"

static void tells_names_in_order(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	tool_reset(0);
	assert_ok(rfl_nvtx_open(TOOL, &err), &err);
	assert_true(rfl_nvtx_is_heard());
	rfl_nvtx_push("step");
	rfl_nvtx_push("fwd");
	rfl_nvtx_push("fwd/layer1.0.conv1");
	rfl_nvtx_pop();
	rfl_nvtx_pop();
	rfl_nvtx_push("");
	rfl_nvtx_pop();
	rfl_nvtx_pop();
	assert_string_equal(tool_log(), HELLO STEP);
	rfl_nvtx_close();
}

#ifdef RFL_TEST_NVTX3
/* NVIDIA's own client, which is header only, is heard as ours is. */
static void is_heard_like_nvidias_client(void **state)
{
	(void)state;
	tool_reset(0);
	assert_int_equal(setenv("NVTX_INJECTION64_PATH", TOOL, 1), 0);
	nvtxRangePushA("step");
	nvtxRangePushA("fwd");
	nvtxRangePushA("fwd/layer1.0.conv1");
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangePushA("");
	nvtxRangePop();
	nvtxRangePop();
	assert_string_equal(tool_log(), HELLO STEP);
}

#define SAME_MEMBER(ours, a, theirs, b)                                                    \
	do {                                                                               \
		assert_int_equal(offsetof(struct ours, a), offsetof(theirs, b));           \
		assert_int_equal(sizeof(((struct ours *)0)->a), sizeof(((theirs *)0)->b)); \
	} while (0)

static void has_nvidias_layouts(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct rfl_nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
	SAME_MEMBER(rfl_nvtx_callbacks, struct_size, NvtxExportTableCallbacks, struct_size);
	SAME_MEMBER(rfl_nvtx_callbacks, module_table, NvtxExportTableCallbacks,
		    GetModuleFunctionTable);
	assert_int_equal(sizeof(struct rfl_nvtx_version), sizeof(NvtxExportTableVersionInfo));
	SAME_MEMBER(rfl_nvtx_version, version, NvtxExportTableVersionInfo, version);
	SAME_MEMBER(rfl_nvtx_version, set_tool_version, NvtxExportTableVersionInfo,
		    SetInjectionNvtxVersion);
	assert_int_equal(RFL_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
	assert_int_equal(RFL_NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
	assert_int_equal(RFL_NVTX_CORE_PUSH_A, NVTX_CBID_CORE_RangePushA);
	assert_int_equal(RFL_NVTX_CORE_POP, NVTX_CBID_CORE_RangePop);
	assert_int_equal(RFL_NVTX_VERSION, NVTX_VERSION);
#define SAME_MODULE(id, number, slots)                        \
	assert_int_equal(RFL_NVTX_##id, NVTX_CB_MODULE_##id); \
	assert_int_equal(slots, NVTX_CBID_##id##_SIZE);       \
	assert_true(NVTX_CBID_##id##_SIZE <= RFL_NVTX_SLOTS_MAX);
	RFL_NVTX_MODULES(SAME_MODULE)
	assert_int_equal(RFL_NVTX_MODULE_END, NVTX_CB_MODULE_SIZE);
}
#endif

/* The window opens only where a driver is mapped already; none is ever loaded for it. */
static void opens_a_window_where_a_driver_is(void **state)
{
	int (*calls)(int) = NULL;
	void *driver, *found;

	(void)state;
	assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
	rfl_profiler_start();
	rfl_profiler_stop();
	assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));

	driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(driver);
	found = address(driver, "fake_profiler_calls");
	memcpy(&calls, &found, sizeof(found));
	rfl_profiler_start();
	assert_int_equal(calls(0), 1);
	assert_int_equal(calls(1), 0);
	rfl_profiler_stop();
	assert_int_equal(calls(0), 1);
	assert_int_equal(calls(1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_silent_without_a_tool),
		cmocka_unit_test(refuses_bad_tools),
		cmocka_unit_test(tells_names_in_order),
#ifdef RFL_TEST_NVTX3
		cmocka_unit_test(is_heard_like_nvidias_client),
		cmocka_unit_test(has_nvidias_layouts),
#endif
		cmocka_unit_test(opens_a_window_where_a_driver_is),
	};
	return cmocka_run_group_tests(tests, open_tool, NULL);
}
