/*
 * nvtx.c - an NVTX client without NVIDIA's header (api.h declares the protocol), and profiler
 * windows.
 */
#include "profile/cupti/nvtx.h"

#include <string.h>

#include "base/dl.h"
#include "profile/cupti/api.h"

static struct rfl_dl *tool; /* NULL: no tool is attached */

/* The tool keeps the addresses of the slots until the process ends. */
static rfl_nvtx_function *slots[RFL_NVTX_MODULE_END][RFL_NVTX_SLOTS_MAX];
static rfl_nvtx_function **table_of[RFL_NVTX_MODULE_END][RFL_NVTX_SLOTS_MAX];

#define MODULE_SLOTS(id, number, nslots) [number] = (nslots),
static const unsigned slots_of[RFL_NVTX_MODULE_END] = { RFL_NVTX_MODULES(MODULE_SLOTS) };

static int module_table(enum rfl_nvtx_module module, rfl_nvtx_function ****table, unsigned *size)
{
	const int m = (int)module;

	if (m <= 0 || m >= RFL_NVTX_MODULE_END)
		return 0;
	for (unsigned i = 1; i < slots_of[m]; i++)
		table_of[m][i] = &slots[m][i];
	if (size)
		*size = slots_of[m];
	if (table)
		*table = table_of[m];
	return 1;
}

static void take_tool_version(uint32_t version)
{
	(void)version; /* not needed */
}

static const struct rfl_nvtx_callbacks callbacks = {
	.struct_size = sizeof(callbacks),
	.module_table = module_table,
};

static const struct rfl_nvtx_version version = {
	.struct_size = sizeof(version),
	.version = RFL_NVTX_VERSION,
	.set_tool_version = take_tool_version,
};

static const void *get_table(uint32_t table)
{
	if (table == RFL_NVTX_TABLE_CALLBACKS)
		return &callbacks;
	return table == RFL_NVTX_TABLE_VERSION ? &version : NULL;
}

enum rfl_rc rfl_nvtx_open(const char *injection, struct rfl_err *err)
{
	const char *const names[] = { injection, NULL };
	rfl_nvtx_initialize_fn *initialize = NULL;
	const struct rfl_dl_symbol symbol = { RFL_NVTX_INITIALIZE, &initialize, false };

	rfl_nvtx_close();
	if (!injection || injection[0] == '\0')
		return RFL_OK;
	enum rfl_rc rc = rfl_dl_open(names, RFL_DL_LOAD, &symbol, 1, &tool, err);
	if (rc != RFL_OK && err)
		rfl_err_prefix(err, "NVTX_INJECTION64_PATH is not the path of a tool's library");
	if (rc != RFL_OK || initialize(get_table)) /* the tool fills the slots */
		return rc;
	memset(slots, 0, sizeof(slots));
	rfl_nvtx_close();
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"%s: the tool does not accept NVTX ranges, which are skipped; start the "
			"program from the tool (ncu --nvtx, nsys profile -t nvtx)",
			injection);
}

void rfl_nvtx_close(void)
{
	rfl_dl_close(tool);
	tool = NULL;
}

bool rfl_nvtx_is_heard(void)
{
	return tool && slots[RFL_NVTX_CORE][RFL_NVTX_CORE_PUSH_A];
}

void rfl_nvtx_push(const char *name)
{
	rfl_nvtx_function *push = slots[RFL_NVTX_CORE][RFL_NVTX_CORE_PUSH_A];

	if (tool && push)
		(void)((rfl_nvtx_push_fn *)push)(name);
}

void rfl_nvtx_pop(void)
{
	rfl_nvtx_function *pop = slots[RFL_NVTX_CORE][RFL_NVTX_CORE_POP];

	if (tool && pop)
		(void)((rfl_nvtx_pop_fn *)(void (*)(void))pop)();
}

/* cudaProfilerStart() of the runtime is cuProfilerStart() of the driver, which every tool hooks. */
static void call_driver(const char *symbol)
{
	static const char *const names[] = { "libcuda.so.1", NULL };
	int (*call)(void) = NULL;
	const struct rfl_dl_symbol wanted = { symbol, &call, false };
	RFL_AUTOPTR(dl) dl = NULL;

	if (rfl_dl_open(names, RFL_DL_MAPPED, &wanted, 1, &dl, NULL) != RFL_OK)
		return;
	(void)call(); /* fails without a context or a tool: then there is no window */
}

void rfl_profiler_start(void)
{
	call_driver("cuProfilerStart");
}

void rfl_profiler_stop(void)
{
	call_driver("cuProfilerStop");
}
