/*
 * nvtx_api.h - internal: what an NVTX client and a tool's library say to each other, version 3 of
 * the protocol. Declared here so that no header of NVIDIA is needed; a test compares it with theirs
 * where they are.
 *
 * The tool's library exports rfl_nvtx_initialize's type as "InitializeInjectionNvtx2". It asks the
 * client for the table of a module, and writes its functions into the slots that it wants to hear.
 */
#ifndef RFL_PROFILE_NVTX_API_H
#define RFL_PROFILE_NVTX_API_H

#include <stddef.h>
#include <stdint.h>

#define RFL_NVTX_INITIALIZE "InitializeInjectionNvtx2"
#define RFL_NVTX_VERSION    3

typedef void rfl_nvtx_function(void); /* of any type; cast before it is called */

enum { RFL_NVTX_TABLE_CALLBACKS = 1, RFL_NVTX_TABLE_VERSION = 3 };

/* X(ID, number, slots): slot 0 of a module is never used. */
/* clang-format off */
#define RFL_NVTX_MODULES(X) \
	X(CORE, 1, 16) \
	X(CUDA, 2, 9) \
	X(OPENCL, 3, 15) \
	X(CUDART, 4, 7) \
	X(CORE2, 5, 16) \
	X(SYNC, 6, 7)
/* clang-format on */
#define RFL_NVTX_MODULE_ID(id, number, slots) RFL_NVTX_##id = (number),
enum rfl_nvtx_module { RFL_NVTX_MODULES(RFL_NVTX_MODULE_ID) RFL_NVTX_MODULE_END = 7 };
#define RFL_NVTX_SLOTS_MAX 16

/* Slots of the module CORE that we call. */
enum { RFL_NVTX_CORE_PUSH_A = 9, RFL_NVTX_CORE_POP = 11 };
typedef int rfl_nvtx_push_fn(const char *message);
typedef int rfl_nvtx_pop_fn(void);

struct rfl_nvtx_callbacks {
	size_t struct_size;
	/* `table` gets an array of pointers to slots, `size` how many; 0: no such module */
	int (*module_table)(enum rfl_nvtx_module module, rfl_nvtx_function ****table,
			    unsigned *size);
};

struct rfl_nvtx_version {
	size_t struct_size;
	uint32_t version, reserved;
	void (*set_tool_version)(uint32_t version);
};

typedef const void *rfl_nvtx_export_fn(uint32_t table);
typedef int rfl_nvtx_initialize_fn(rfl_nvtx_export_fn *get_table); /* 0: it could not */

#endif
