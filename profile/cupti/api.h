/*
 * api.h - declarations of the parts of CUPTI and NVTX that are used, so that building needs no
 * NVIDIA headers. They match CUDA 13.0; tests/unit/test_profile_cupti_abi.c compares them with
 * NVIDIA's headers if those are installed.
 *
 * The first member of a struct holds its size up to the end of the last member, without padding.
 * Later versions of the library accept the sizes of 13.0, so these are always used: struct
 * rfl_cupti_start p = { RFL_CUPTI_SIZED(start), ... };
 */
#ifndef RFL_PROFILE_CUPTI_API_H
#define RFL_PROFILE_CUPTI_API_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/cuda.h"

/* X(name, CUPTI's name, value, our code, meaning, remedy): results that can occur. Remedy NULL:
 * none. UPDATE, ADMIN and OWN_MISTAKE are defined in lib.c. */
/* clang-format off */
#define RFL_CUPTI_RESULTS(X) \
	X(SUCCESS, CUPTI_SUCCESS, 0, OK, NULL, NULL) \
	X(INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER, 1, EFAILED, OWN_MISTAKE, UPDATE) \
	X(INVALID_DEVICE, CUPTI_ERROR_INVALID_DEVICE, 2, EUNAVAILABLE, "there is no such GPU", \
	  "list the GPUs with 'roofline probe'") \
	X(INVALID_CONTEXT, CUPTI_ERROR_INVALID_CONTEXT, 3, EUNAVAILABLE, \
	  "no CUDA context is current on this thread", NULL) \
	X(INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION, 7, EFAILED, \
	  "the call is not allowed in this state, or there are too many ranges in one pass", \
	  "count fewer ranges: --counters phase or step instead of layer") \
	X(OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY, 8, EDEVMEM, \
	  "no memory is left for the counters", "use a smaller batch") \
	X(HARDWARE, CUPTI_ERROR_HARDWARE, 9, EUNAVAILABLE, "the counters of the GPU do not work", \
	  "reboot; if that does not help, have the GPU checked") \
	X(PARAMETER_SIZE, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, 10, EFAILED, OWN_MISTAKE, UPDATE) \
	X(NOT_IMPLEMENTED, CUPTI_ERROR_API_NOT_IMPLEMENTED, 11, EUNAVAILABLE, \
	  "this CUPTI lacks the function", UPDATE) \
	X(MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED, 12, EFAILED, \
	  "there are no more records", NULL) \
	X(NOT_READY, CUPTI_ERROR_NOT_READY, 13, EUNAVAILABLE, "CUPTI is not ready yet", "try again") \
	X(NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE, 14, EUNAVAILABLE, \
	  "CUPTI conflicts with this driver, or with another tool in the process", \
	  "use the CUPTI of the driver's CUDA version (set RFL_CUPTI_PATH to its directory)") \
	X(NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED, 15, EUNAVAILABLE, \
	  "CUPTI could not start: libnvperf_host.so is missing or has another version", \
	  "reinstall CUPTI, or set RFL_CUPTI_PATH to the directory of another one") \
	X(INVALID_METRIC_NAME, CUPTI_ERROR_INVALID_METRIC_NAME, 17, ENOTFOUND, \
	  "the chip has no such metric", "list its metrics: 'roofline counters list --chip CHIP --all'") \
	X(INVALID_KIND, CUPTI_ERROR_INVALID_KIND, 21, EFAILED, \
	  "the chip does not provide records of this kind", NULL) \
	X(DISABLED, CUPTI_ERROR_DISABLED, 23, EUNAVAILABLE, \
	  "profiling is disabled on this system", "ask the administrator to enable it") \
	X(HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY, 26, EUNAVAILABLE, \
	  "another program uses the counters of this GPU", \
	  "stop dcgm-exporter, nv-hostengine, ncu and other profilers") \
	X(NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED, 27, EUNSUPPORTED, \
	  "the chip is not supported, or these metrics cannot be counted together", \
	  "find the metric with 'roofline counters check --chip CHIP --metrics ...'") \
	X(VIRTUALIZED_DEVICE, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, 33, EUNAVAILABLE, \
	  "this virtual GPU has no counters", "use a GPU with full passthrough") \
	X(INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 35, EUNAVAILABLE, \
	  "the driver allows only administrators to read counters", ADMIN) \
	X(OLD_PROFILER_API, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, 36, EUNAVAILABLE, \
	  "something in this process uses CUPTI's old profiler, which excludes the new one", \
	  "run without it") \
	X(LEGACY_PROFILER, CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, 38, EUNAVAILABLE, \
	  "the chip no longer supports the old profiler", UPDATE) \
	X(MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39, EUNAVAILABLE, \
	  "another profiler is active in this process: ncu, nsys, cuda-gdb, or PyTorch's", \
	  "run without it, or without --counters and import its file ('roofline counters import')") \
	X(VIRTUALIZED_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, 40, \
	  EUNAVAILABLE, "this virtual GPU may not be profiled", \
	  "ask the hypervisor's administrator to enable vGPU profiling") \
	X(CONFIDENTIAL_COMPUTING, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, 41, EUNAVAILABLE, \
	  "the GPU is in confidential computing mode, which has no counters", \
	  "ask an administrator to turn it off") \
	X(CMP_DEVICE, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, 42, EUNAVAILABLE, \
	  "mining cards have no counters", NULL) \
	X(MIG_DEVICE, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, 43, EUNAVAILABLE, \
	  "this MIG instance may not be profiled", \
	  "use a dedicated instance (not a shared compute instance), or the whole GPU") \
	X(SLI_DEVICE, CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, 44, EUNAVAILABLE, \
	  "GPUs joined by SLI may not be profiled", "turn SLI off") \
	X(WSL_DEVICE, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, 45, EUNAVAILABLE, \
	  "this WSL version or its driver lacks counters", "update WSL, and the driver to 525 or later") \
	X(INVALID_CHIP_NAME, CUPTI_ERROR_INVALID_CHIP_NAME, 46, EUNAVAILABLE, \
	  "this CUPTI is older than the chip and does not support it", \
	  "install a newer CUPTI, or set RFL_CUPTI_PATH to its directory") \
	X(UNKNOWN, CUPTI_ERROR_UNKNOWN, 999, EUNAVAILABLE, \
	  "an internal CUPTI error, usually because there is no working NVIDIA driver", \
	  "check that nvidia-smi works")
/* clang-format on */

#define RFL_CUPTI_RESULT_ID(name, theirs, value, ...) RFL_CUPTI_##name = (value),
enum rfl_cupti_result { RFL_CUPTI_RESULTS(RFL_CUPTI_RESULT_ID) };
#undef RFL_CUPTI_RESULT_ID

/* The structs hold these as int32_t, so that their size does not depend on the enums. */
enum {
	RFL_CUPTI_TYPE_RANGE_PROFILER = 0, /* CUpti_ProfilerType */
	RFL_CUPTI_METRIC_COUNTER = 0,      /* CUpti_MetricType */
	RFL_CUPTI_METRIC_RATIO = 1,
	RFL_CUPTI_METRIC_THROUGHPUT = 2,
	RFL_CUPTI_METRIC_TYPE_COUNT = 3,
	RFL_CUPTI_API_RANGE_PROFILING = 0, /* CUpti_Profiler_API */
	RFL_CUPTI_SUPPORT_UNKNOWN = 0,     /* CUpti_Profiler_Support_Level */
	RFL_CUPTI_SUPPORT_UNSUPPORTED = 1,
	RFL_CUPTI_SUPPORT_DISABLED = 2,
	RFL_CUPTI_SUPPORT_SUPPORTED = 3,
	RFL_CUPTI_SUPPORT_LIMITED = 4, /* since 13.3: some metrics only */
	RFL_CUPTI_USER_RANGE = 2,      /* CUpti_ProfilerRange */
	RFL_CUPTI_USER_REPLAY = 3,     /* CUpti_ProfilerReplayMode */
	RFL_CUPTI_ACTIVITY_KERNEL = 3, /* CUpti_ActivityKind; serializes kernels */
	RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL = 10,
	RFL_CUPTI_FLUSH_FORCED = 1, /* CUpti_ActivityFlag */
};

struct rfl_cupti_host_object;  /* CUpti_Profiler_Host_Object */
struct rfl_cupti_range_object; /* CUpti_RangeProfiler_Object */

/* The argument structs: RFL_CUPTI_STRUCT(name, size, members after the first two). The sizes are
 * from CUDA 13.0. The library owns strings and images unless noted otherwise. */
#define RFL_CUPTI_STRUCT(name, size, ...)                                                    \
	struct rfl_cupti_##name {                                                            \
		size_t struct_size;                                                          \
		void *priv;                                                                  \
		__VA_ARGS__                                                                  \
	};                                                                                   \
	enum { rfl_cupti_size_##name = (size) };                                             \
	static_assert(sizeof(void *) != 8 ||                                                 \
			      (sizeof(struct rfl_cupti_##name) + 7) / 8 == ((size) + 7) / 8, \
		      "struct rfl_cupti_" #name)

/** The first members of an initializer. */
#define RFL_CUPTI_SIZED(name) .struct_size = (size_t)rfl_cupti_size_##name, .priv = NULL

/* clang-format off */

/* Host API: needs no device and no driver. */
RFL_CUPTI_STRUCT(host_initialize, 48,
	int32_t type; /* RFL_CUPTI_TYPE_RANGE_PROFILER */
	const char *chip;
	const uint8_t *availability; /* NULL: everything the chip supports */
	struct rfl_cupti_host_object *host; /* out */);
RFL_CUPTI_STRUCT(host_deinitialize, 24, struct rfl_cupti_host_object *host;);
RFL_CUPTI_STRUCT(host_chips, 32, size_t n; const char *const *names; /* out */);
RFL_CUPTI_STRUCT(host_base_metrics, 48,
	struct rfl_cupti_host_object *host;
	int32_t type; /* RFL_CUPTI_METRIC_... */
	const char **names; size_t n; /* out */);
RFL_CUPTI_STRUCT(host_metric_properties, 60,
	struct rfl_cupti_host_object *host;
	const char *metric; /* with or without its rollup */
	const char *description, *hw_unit, *unit; /* out: ..., "dram", "byte" */
	int32_t type; /* out: RFL_CUPTI_METRIC_... */);
RFL_CUPTI_STRUCT(host_add_metrics, 40,
	struct rfl_cupti_host_object *host;
	const char **names; /* with rollups; read during the call */
	size_t n;);
RFL_CUPTI_STRUCT(host_config_size, 32, struct rfl_cupti_host_object *host; size_t size; /* out */);
RFL_CUPTI_STRUCT(host_config_image, 40,
	struct rfl_cupti_host_object *host; size_t size; uint8_t *image; /* filled */);
RFL_CUPTI_STRUCT(host_passes, 40, size_t size; uint8_t *image; size_t passes; /* out */);
RFL_CUPTI_STRUCT(host_values, 72,
	struct rfl_cupti_host_object *host;
	const uint8_t *data; size_t data_size; /* decoded counter data */
	size_t range;
	const char **names; size_t n;
	double *values; /* filled */);

/* Target API: without a driver some of these calls crash inside the library. */
RFL_CUPTI_STRUCT(profiler_initialize, 16, );
RFL_CUPTI_STRUCT(profiler_deinitialize, 16, );
RFL_CUPTI_STRUCT(device_supported, 52,
	int32_t device; /* CUdevice */
	/* out: RFL_CUPTI_SUPPORT_... */
	int32_t supported, architecture, sli, vgpu, confidential_compute, cmp, wsl;
	int32_t api; /* RFL_CUPTI_API_RANGE_PROFILING */);
RFL_CUPTI_STRUCT(availability, 40,
	struct rfl_cuda_context *context;
	size_t size; /* in and out: the required size if image is NULL */
	uint8_t *image; /* filled */);
RFL_CUPTI_STRUCT(chip_name, 32,
	size_t device; /* index of the device */
	const char *name; /* out: "GH100" */);
RFL_CUPTI_STRUCT(enable, 32,
	struct rfl_cuda_context *context; struct rfl_cupti_range_object *profiler; /* out */);
RFL_CUPTI_STRUCT(disable, 24, struct rfl_cupti_range_object *profiler;);
RFL_CUPTI_STRUCT(set_config, 90,
	struct rfl_cupti_range_object *profiler;
	size_t config_size; const uint8_t *config; /* must stay allocated until disable */
	size_t data_size; uint8_t *data;           /* the same */
	int32_t range, replay;
	size_t max_ranges; /* maximum per pass */
	uint16_t nesting_levels, min_nesting_level;
	size_t pass;
	uint16_t target_nesting_level; /* a size_t in struct rfl_cupti_stop */);
RFL_CUPTI_STRUCT(start, 24, struct rfl_cupti_range_object *profiler;);
RFL_CUPTI_STRUCT(stop, 41,
	struct rfl_cupti_range_object *profiler;
	size_t pass, target_nesting_level; uint8_t all_passes_submitted; /* out */);
RFL_CUPTI_STRUCT(push_range, 32, struct rfl_cupti_range_object *profiler; const char *name;);
RFL_CUPTI_STRUCT(pop_range, 24, struct rfl_cupti_range_object *profiler;);
RFL_CUPTI_STRUCT(decode, 32,
	struct rfl_cupti_range_object *profiler; size_t dropped; /* out: ranges */);
RFL_CUPTI_STRUCT(data_size, 64,
	struct rfl_cupti_range_object *profiler;
	const char **names; size_t n;
	size_t max_ranges;
	uint32_t max_nodes; /* at least max_ranges */
	size_t size; /* out */);
RFL_CUPTI_STRUCT(data_initialize, 40,
	struct rfl_cupti_range_object *profiler; size_t size; uint8_t *data;);
RFL_CUPTI_STRUCT(data_info, 40, const uint8_t *data; size_t size; size_t ranges; /* out */);
RFL_CUPTI_STRUCT(range_info, 56,
	const uint8_t *data; size_t size;
	size_t range;
	const char *delimiter;
	const char *name; /* out: malloc'ed by the library, freed by the caller */);
/* clang-format on */

/** The first member of every record. */
struct rfl_cupti_record {
	int32_t kind;
};

/** The first part of a kernel's record, unchanged since CUDA 11. More members follow, so use
 * records only through pointers. Times are in ns; 0: unknown. */
struct rfl_cupti_kernel_record {
	int32_t kind;
	uint8_t cache_config, shared_memory_config;
	uint16_t registers;
	int32_t cache_requested, cache_executed;
	uint64_t start_ns, end_ns, completed_ns;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name; /**< mangled; owned by the library */
};

static_assert(sizeof(void *) != 8 || sizeof(struct rfl_cupti_kernel_record) == 112,
	      "struct rfl_cupti_kernel_record");

typedef void (*rfl_cupti_buffer_requested)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*rfl_cupti_buffer_completed)(struct rfl_cuda_context *context, uint32_t stream,
					   uint8_t *buffer, size_t size, size_t valid);

#define RFL_CUPTI_P(name) (struct rfl_cupti_##name * p)

/* X(member, symbol, arguments): all return an enum rfl_cupti_result. Libraries that lack any are
 * too old. */
/* clang-format off */
#define RFL_CUPTI_FUNCTIONS(X) \
	X(get_version, cuptiGetVersion, (uint32_t *version)) \
	X(result_string, cuptiGetResultString, (int result, const char **text)) \
	X(host_initialize, cuptiProfilerHostInitialize, RFL_CUPTI_P(host_initialize)) \
	X(host_deinitialize, cuptiProfilerHostDeinitialize, RFL_CUPTI_P(host_deinitialize)) \
	X(host_chips, cuptiProfilerHostGetSupportedChips, RFL_CUPTI_P(host_chips)) \
	X(host_base_metrics, cuptiProfilerHostGetBaseMetrics, RFL_CUPTI_P(host_base_metrics)) \
	X(host_metric_properties, cuptiProfilerHostGetMetricProperties, \
	  RFL_CUPTI_P(host_metric_properties)) \
	X(host_add_metrics, cuptiProfilerHostConfigAddMetrics, RFL_CUPTI_P(host_add_metrics)) \
	X(host_config_size, cuptiProfilerHostGetConfigImageSize, RFL_CUPTI_P(host_config_size)) \
	X(host_config_image, cuptiProfilerHostGetConfigImage, RFL_CUPTI_P(host_config_image)) \
	X(host_passes, cuptiProfilerHostGetNumOfPasses, RFL_CUPTI_P(host_passes)) \
	X(host_values, cuptiProfilerHostEvaluateToGpuValues, RFL_CUPTI_P(host_values)) \
	X(profiler_initialize, cuptiProfilerInitialize, RFL_CUPTI_P(profiler_initialize)) \
	X(profiler_deinitialize, cuptiProfilerDeInitialize, RFL_CUPTI_P(profiler_deinitialize)) \
	X(device_supported, cuptiProfilerDeviceSupported, RFL_CUPTI_P(device_supported)) \
	X(availability, cuptiProfilerGetCounterAvailability, RFL_CUPTI_P(availability)) \
	X(chip_name, cuptiDeviceGetChipName, RFL_CUPTI_P(chip_name)) \
	X(enable, cuptiRangeProfilerEnable, RFL_CUPTI_P(enable)) \
	X(disable, cuptiRangeProfilerDisable, RFL_CUPTI_P(disable)) \
	X(set_config, cuptiRangeProfilerSetConfig, RFL_CUPTI_P(set_config)) \
	X(start, cuptiRangeProfilerStart, RFL_CUPTI_P(start)) \
	X(stop, cuptiRangeProfilerStop, RFL_CUPTI_P(stop)) \
	X(push_range, cuptiRangeProfilerPushRange, RFL_CUPTI_P(push_range)) \
	X(pop_range, cuptiRangeProfilerPopRange, RFL_CUPTI_P(pop_range)) \
	X(decode, cuptiRangeProfilerDecodeData, RFL_CUPTI_P(decode)) \
	X(data_size, cuptiRangeProfilerGetCounterDataSize, RFL_CUPTI_P(data_size)) \
	X(data_initialize, cuptiRangeProfilerCounterDataImageInitialize, \
	  RFL_CUPTI_P(data_initialize)) \
	X(data_info, cuptiRangeProfilerGetCounterDataInfo, RFL_CUPTI_P(data_info)) \
	X(range_info, cuptiRangeProfilerCounterDataGetRangeInfo, RFL_CUPTI_P(range_info)) \
	X(activity_enable, cuptiActivityEnable, (int kind)) \
	X(activity_disable, cuptiActivityDisable, (int kind)) \
	X(activity_register, cuptiActivityRegisterCallbacks, \
	  (rfl_cupti_buffer_requested requested, rfl_cupti_buffer_completed completed)) \
	X(activity_flush, cuptiActivityFlushAll, (uint32_t flags)) \
	X(activity_next, cuptiActivityGetNextRecord, \
	  (uint8_t *buffer, size_t valid, struct rfl_cupti_record **record)) \
	X(activity_dropped, cuptiActivityGetNumDroppedRecords, \
	  (struct rfl_cuda_context *context, uint32_t stream, size_t *dropped))
/* clang-format on */

/* Pointers to the functions, and their names for messages. */
struct rfl_cupti_functions {
	RFL_CUPTI_FUNCTIONS(RFL_CUDA_SLOT)
};
struct rfl_cupti_symbols {
	RFL_CUPTI_FUNCTIONS(RFL_CUDA_SYMBOL)
};

/* ---- NVTX: version 3 of the protocol between a client and the library of a tool. The library
 * exports RFL_NVTX_INITIALIZE, which requests the client's tables of modules and stores functions
 * in the slots of the calls to record. ---- */

#define RFL_NVTX_INITIALIZE "InitializeInjectionNvtx2"
#define RFL_NVTX_VERSION    3

typedef void rfl_nvtx_function(void); /* any function type; cast it before the call */

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
	/* Set `table` to an array of `size` pointers to slots. Returns 0 for an unknown module. */
	int (*module_table)(enum rfl_nvtx_module module, rfl_nvtx_function ****table,
			    unsigned *size);
};

struct rfl_nvtx_version {
	size_t struct_size;
	uint32_t version, reserved;
	void (*set_tool_version)(uint32_t version);
};

typedef const void *rfl_nvtx_export_fn(uint32_t table);
typedef int rfl_nvtx_initialize_fn(rfl_nvtx_export_fn *get_table); /* 0: failed */

#endif
