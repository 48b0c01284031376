/*
 * api.h - the part of CUPTI that is used here, declared anew: the structs, numbers and
 * functions of the profiler host, range profiler and activity APIs as CUDA 13.0 has them (12.8 has
 * the same). So no header of NVIDIA is needed to build, and its host header, which is C++ in 13.0,
 * does not matter. tests/unit/test_profile_cupti_abi.c compares all of it with NVIDIA's headers
 * where they are installed.
 *
 * A struct says its size in its first member: the end of its last member, which is less than
 * sizeof where padding follows. Later versions of the library accept the sizes of 13.0, so these
 * are always used: `struct rfl_cupti_start p = { RFL_CUPTI_SIZED(start), .profiler = ... };`
 */
#ifndef RFL_PROFILE_CUPTI_API_H
#define RFL_PROFILE_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

/* ---- numbers ---- */

/* X(name, CUPTI's name, value): results that a caller or the table of messages knows. */
/* clang-format off */
#define RFL_CUPTI_RESULTS(X) \
	X(SUCCESS, CUPTI_SUCCESS, 0) \
	X(INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER, 1) \
	X(INVALID_DEVICE, CUPTI_ERROR_INVALID_DEVICE, 2) \
	X(INVALID_CONTEXT, CUPTI_ERROR_INVALID_CONTEXT, 3) \
	X(INVALID_OPERATION, CUPTI_ERROR_INVALID_OPERATION, 7) \
	X(OUT_OF_MEMORY, CUPTI_ERROR_OUT_OF_MEMORY, 8) \
	X(HARDWARE, CUPTI_ERROR_HARDWARE, 9) \
	X(PARAMETER_SIZE, CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, 10) \
	X(NOT_IMPLEMENTED, CUPTI_ERROR_API_NOT_IMPLEMENTED, 11) \
	X(MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED, 12) \
	X(NOT_READY, CUPTI_ERROR_NOT_READY, 13) \
	X(NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE, 14) \
	X(NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED, 15) \
	X(INVALID_METRIC_NAME, CUPTI_ERROR_INVALID_METRIC_NAME, 17) \
	X(INVALID_KIND, CUPTI_ERROR_INVALID_KIND, 21) \
	X(DISABLED, CUPTI_ERROR_DISABLED, 23) \
	X(HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY, 26) \
	X(NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED, 27) \
	X(VIRTUALIZED_DEVICE, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, 33) \
	X(INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 35) \
	X(OLD_PROFILER_API, CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, 36) \
	X(LEGACY_PROFILER, CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, 38) \
	X(MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39) \
	X(VIRTUALIZED_PRIVILEGES, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, 40) \
	X(CONFIDENTIAL_COMPUTING, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, 41) \
	X(CMP_DEVICE, CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, 42) \
	X(MIG_DEVICE, CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, 43) \
	X(SLI_DEVICE, CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, 44) \
	X(WSL_DEVICE, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, 45) \
	X(INVALID_CHIP_NAME, CUPTI_ERROR_INVALID_CHIP_NAME, 46) \
	X(UNKNOWN, CUPTI_ERROR_UNKNOWN, 999)
/* clang-format on */

#define RFL_CUPTI_RESULT_ID(name, theirs, value) RFL_CUPTI_##name = (value),
enum rfl_cupti_result { RFL_CUPTI_RESULTS(RFL_CUPTI_RESULT_ID) };
#undef RFL_CUPTI_RESULT_ID

/* The structs hold these as int32_t, so that their size does not depend on the enums. */
enum { RFL_CUPTI_TYPE_RANGE_PROFILER = 0 }; /* CUpti_ProfilerType */
/* CUpti_MetricType */
enum rfl_cupti_metric_type {
	RFL_CUPTI_METRIC_COUNTER = 0,
	RFL_CUPTI_METRIC_RATIO = 1,
	RFL_CUPTI_METRIC_THROUGHPUT = 2,
	RFL_CUPTI_METRIC_TYPE_COUNT = 3,
};
enum { RFL_CUPTI_API_RANGE_PROFILING = 0 }; /* CUpti_Profiler_API */
/* CUpti_Profiler_Support_Level */
enum rfl_cupti_support {
	RFL_CUPTI_SUPPORT_UNKNOWN = 0,
	RFL_CUPTI_SUPPORT_UNSUPPORTED = 1,
	RFL_CUPTI_SUPPORT_DISABLED = 2,
	RFL_CUPTI_SUPPORT_SUPPORTED = 3,
	RFL_CUPTI_SUPPORT_LIMITED = 4, /**< since 13.3: some metrics only */
};
enum { RFL_CUPTI_USER_RANGE = 2 };  /* CUpti_ProfilerRange */
enum { RFL_CUPTI_USER_REPLAY = 3 }; /* CUpti_ProfilerReplayMode */
/* CUpti_ActivityKind */
enum {
	RFL_CUPTI_ACTIVITY_KERNEL = 3, /**< takes the concurrency of kernels away */
	RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL = 10,
};
enum { RFL_CUPTI_FLUSH_FORCED = 1 }; /* CUpti_ActivityFlag */

/* ---- objects of the library and the driver ---- */

struct rfl_cupti_host_object;  /* CUpti_Profiler_Host_Object */
struct rfl_cupti_range_object; /* CUpti_RangeProfiler_Object */
struct rfl_cuda_context;       /* CUctx_st: a CUcontext is a pointer to it */

/** What the structs of all calls begin with. */
#define RFL_CUPTI_HEAD      \
	size_t struct_size; \
	void *priv

/* ---- host API: needs no device and no driver ---- */

struct rfl_cupti_host_initialize {
	RFL_CUPTI_HEAD;
	int32_t type; /**< RFL_CUPTI_TYPE_RANGE_PROFILER */
	const char *chip;
	const uint8_t *availability;        /**< NULL: what the chip has */
	struct rfl_cupti_host_object *host; /**< out */
};

struct rfl_cupti_host_deinitialize {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
};

struct rfl_cupti_host_chips {
	RFL_CUPTI_HEAD;
	size_t n;                 /**< out */
	const char *const *names; /**< out; the library's */
};

struct rfl_cupti_host_base_metrics {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
	int32_t type;       /**< enum rfl_cupti_metric_type */
	const char **names; /**< out; the library's */
	size_t n;           /**< out */
};

struct rfl_cupti_host_metric_properties {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
	const char *metric;      /**< with or without its rollup */
	const char *description; /**< out */
	const char *hw_unit;     /**< out: "dram" */
	const char *unit;        /**< out: "byte" */
	int32_t type;            /**< out: enum rfl_cupti_metric_type */
};

struct rfl_cupti_host_add_metrics {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
	const char **names; /**< with rollups; read during the call */
	size_t n;
};

struct rfl_cupti_host_config_size {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
	size_t size; /**< out */
};

struct rfl_cupti_host_config_image {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
	size_t size;
	uint8_t *image; /**< filled */
};

struct rfl_cupti_host_passes {
	RFL_CUPTI_HEAD;
	size_t size;
	uint8_t *image;
	size_t passes; /**< out */
};

struct rfl_cupti_host_values {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_host_object *host;
	const uint8_t *data; /**< decoded counter data */
	size_t data_size;
	size_t range;
	const char **names;
	size_t n;
	double *values; /**< filled */
};

/* ---- target API: without a driver some of these calls crash inside the library ---- */

struct rfl_cupti_profiler_initialize {
	RFL_CUPTI_HEAD;
};

struct rfl_cupti_profiler_deinitialize {
	RFL_CUPTI_HEAD;
};

struct rfl_cupti_device_supported {
	RFL_CUPTI_HEAD;
	int32_t device;    /**< CUdevice */
	int32_t supported; /**< out: enum rfl_cupti_support, as those that follow */
	int32_t architecture, sli, vgpu, confidential_compute, cmp, wsl; /**< out */
	int32_t api; /**< RFL_CUPTI_API_RANGE_PROFILING */
};

struct rfl_cupti_availability {
	RFL_CUPTI_HEAD;
	struct rfl_cuda_context *context;
	size_t size;    /**< in and out: with image NULL the size needed */
	uint8_t *image; /**< filled */
};

struct rfl_cupti_chip_name {
	RFL_CUPTI_HEAD;
	size_t device;    /**< its index */
	const char *name; /**< out: "GH100" */
};

struct rfl_cupti_enable {
	RFL_CUPTI_HEAD;
	struct rfl_cuda_context *context;
	struct rfl_cupti_range_object *profiler; /**< out */
};

struct rfl_cupti_disable {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
};

struct rfl_cupti_set_config {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
	size_t config_size;
	const uint8_t *config; /**< must stay until disable */
	size_t data_size;
	uint8_t *data; /**< must stay until disable */
	int32_t range, replay;
	size_t max_ranges; /**< per pass */
	uint16_t nesting_levels, min_nesting_level;
	size_t pass;
	uint16_t target_nesting_level; /**< a size_t in struct rfl_cupti_stop */
};

struct rfl_cupti_start {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
};

struct rfl_cupti_stop {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
	size_t pass;                  /**< out */
	size_t target_nesting_level;  /**< out */
	uint8_t all_passes_submitted; /**< out */
};

struct rfl_cupti_push_range {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
	const char *name;
};

struct rfl_cupti_pop_range {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
};

struct rfl_cupti_decode {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
	size_t dropped; /**< out: ranges */
};

struct rfl_cupti_data_size {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
	const char **names;
	size_t n;
	size_t max_ranges;
	uint32_t max_nodes; /**< at least max_ranges */
	size_t size;        /**< out */
};

struct rfl_cupti_data_initialize {
	RFL_CUPTI_HEAD;
	struct rfl_cupti_range_object *profiler;
	size_t size;
	uint8_t *data;
};

struct rfl_cupti_data_info {
	RFL_CUPTI_HEAD;
	const uint8_t *data;
	size_t size;
	size_t ranges; /**< out */
};

struct rfl_cupti_range_info {
	RFL_CUPTI_HEAD;
	const uint8_t *data;
	size_t size;
	size_t range;
	const char *delimiter;
	const char *name; /**< out; malloc'ed by the library */
};

/* X(struct, last member, size): sizes of CUDA 13.0. */
/* clang-format off */
#define RFL_CUPTI_STRUCTS(X) \
	X(host_initialize, host, 48) \
	X(host_deinitialize, host, 24) \
	X(host_chips, names, 32) \
	X(host_base_metrics, n, 48) \
	X(host_metric_properties, type, 60) \
	X(host_add_metrics, n, 40) \
	X(host_config_size, size, 32) \
	X(host_config_image, image, 40) \
	X(host_passes, passes, 40) \
	X(host_values, values, 72) \
	X(profiler_initialize, priv, 16) \
	X(profiler_deinitialize, priv, 16) \
	X(device_supported, api, 52) \
	X(availability, image, 40) \
	X(chip_name, name, 32) \
	X(enable, profiler, 32) \
	X(disable, profiler, 24) \
	X(set_config, target_nesting_level, 90) \
	X(start, profiler, 24) \
	X(stop, all_passes_submitted, 41) \
	X(push_range, name, 32) \
	X(pop_range, profiler, 24) \
	X(decode, dropped, 32) \
	X(data_size, size, 64) \
	X(data_initialize, data, 40) \
	X(data_info, ranges, 40) \
	X(range_info, name, 56)
/* clang-format on */

#define RFL_CUPTI_STRUCT_SIZE(name, last, size) rfl_cupti_size_##name = (size),
enum { RFL_CUPTI_STRUCTS(RFL_CUPTI_STRUCT_SIZE) };
#undef RFL_CUPTI_STRUCT_SIZE

/** The first members of an initialiser: size said, the rest zero. */
#define RFL_CUPTI_SIZED(name) .struct_size = (size_t)rfl_cupti_size_##name, .priv = NULL

#ifndef __cplusplus
#define RFL_CUPTI_STRUCT_CHECK(name, last, size)                                               \
	_Static_assert(sizeof(void *) != 8 ||                                                  \
			       offsetof(struct rfl_cupti_##name, last) +                       \
					       sizeof(((struct rfl_cupti_##name *)0)->last) == \
				       (size),                                                 \
		       "struct rfl_cupti_" #name " is not laid out as in CUDA 13.0");
RFL_CUPTI_STRUCTS(RFL_CUPTI_STRUCT_CHECK)
#undef RFL_CUPTI_STRUCT_CHECK
#endif

/* ---- activity API ---- */

/** What all records begin with. */
struct rfl_cupti_record {
	int32_t kind;
};

/** The first part of a kernel's record, which has stayed as it is since CUDA 11; more follows, so
 * records are reached by pointer only. Times are in ns; 0: not known. */
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
	const char *name; /**< mangled; the library's */
};

#ifndef __cplusplus
_Static_assert(sizeof(void *) != 8 || sizeof(struct rfl_cupti_kernel_record) == 112,
	       "struct rfl_cupti_kernel_record is not laid out as in CUDA 13.0");
#endif

typedef void (*rfl_cupti_buffer_requested)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*rfl_cupti_buffer_completed)(struct rfl_cuda_context *context, uint32_t stream,
					   uint8_t *buffer, size_t size, size_t valid);

/* ---- functions ---- */

#define RFL_CUPTI_P(name) (struct rfl_cupti_##name * p)

/* X(needed, member, symbol, arguments): all return an enum rfl_cupti_result. What every version of
 * the range profiler has is REQUIRED: a library without it is refused as too old. */
/* clang-format off */
#define RFL_CUPTI_FUNCTIONS(X) \
	X(REQUIRED, get_version, cuptiGetVersion, (uint32_t *version)) \
	X(REQUIRED, result_string, cuptiGetResultString, (int result, const char **text)) \
	X(REQUIRED, host_initialize, cuptiProfilerHostInitialize, RFL_CUPTI_P(host_initialize)) \
	X(REQUIRED, host_deinitialize, cuptiProfilerHostDeinitialize, \
	  RFL_CUPTI_P(host_deinitialize)) \
	X(REQUIRED, host_chips, cuptiProfilerHostGetSupportedChips, RFL_CUPTI_P(host_chips)) \
	X(REQUIRED, host_base_metrics, cuptiProfilerHostGetBaseMetrics, \
	  RFL_CUPTI_P(host_base_metrics)) \
	X(REQUIRED, host_metric_properties, cuptiProfilerHostGetMetricProperties, \
	  RFL_CUPTI_P(host_metric_properties)) \
	X(REQUIRED, host_add_metrics, cuptiProfilerHostConfigAddMetrics, \
	  RFL_CUPTI_P(host_add_metrics)) \
	X(REQUIRED, host_config_size, cuptiProfilerHostGetConfigImageSize, \
	  RFL_CUPTI_P(host_config_size)) \
	X(REQUIRED, host_config_image, cuptiProfilerHostGetConfigImage, \
	  RFL_CUPTI_P(host_config_image)) \
	X(REQUIRED, host_passes, cuptiProfilerHostGetNumOfPasses, RFL_CUPTI_P(host_passes)) \
	X(REQUIRED, host_values, cuptiProfilerHostEvaluateToGpuValues, RFL_CUPTI_P(host_values)) \
	X(REQUIRED, profiler_initialize, cuptiProfilerInitialize, \
	  RFL_CUPTI_P(profiler_initialize)) \
	X(REQUIRED, profiler_deinitialize, cuptiProfilerDeInitialize, \
	  RFL_CUPTI_P(profiler_deinitialize)) \
	X(REQUIRED, device_supported, cuptiProfilerDeviceSupported, RFL_CUPTI_P(device_supported)) \
	X(REQUIRED, availability, cuptiProfilerGetCounterAvailability, RFL_CUPTI_P(availability)) \
	X(REQUIRED, chip_name, cuptiDeviceGetChipName, RFL_CUPTI_P(chip_name)) \
	X(REQUIRED, enable, cuptiRangeProfilerEnable, RFL_CUPTI_P(enable)) \
	X(REQUIRED, disable, cuptiRangeProfilerDisable, RFL_CUPTI_P(disable)) \
	X(REQUIRED, set_config, cuptiRangeProfilerSetConfig, RFL_CUPTI_P(set_config)) \
	X(REQUIRED, start, cuptiRangeProfilerStart, RFL_CUPTI_P(start)) \
	X(REQUIRED, stop, cuptiRangeProfilerStop, RFL_CUPTI_P(stop)) \
	X(REQUIRED, push_range, cuptiRangeProfilerPushRange, RFL_CUPTI_P(push_range)) \
	X(REQUIRED, pop_range, cuptiRangeProfilerPopRange, RFL_CUPTI_P(pop_range)) \
	X(REQUIRED, decode, cuptiRangeProfilerDecodeData, RFL_CUPTI_P(decode)) \
	X(REQUIRED, data_size, cuptiRangeProfilerGetCounterDataSize, RFL_CUPTI_P(data_size)) \
	X(REQUIRED, data_initialize, cuptiRangeProfilerCounterDataImageInitialize, \
	  RFL_CUPTI_P(data_initialize)) \
	X(REQUIRED, data_info, cuptiRangeProfilerGetCounterDataInfo, RFL_CUPTI_P(data_info)) \
	X(REQUIRED, range_info, cuptiRangeProfilerCounterDataGetRangeInfo, \
	  RFL_CUPTI_P(range_info)) \
	X(REQUIRED, activity_enable, cuptiActivityEnable, (int kind)) \
	X(REQUIRED, activity_disable, cuptiActivityDisable, (int kind)) \
	X(REQUIRED, activity_register, cuptiActivityRegisterCallbacks, \
	  (rfl_cupti_buffer_requested requested, rfl_cupti_buffer_completed completed)) \
	X(REQUIRED, activity_flush, cuptiActivityFlushAll, (uint32_t flags)) \
	X(REQUIRED, activity_next, cuptiActivityGetNextRecord, \
	  (uint8_t *buffer, size_t valid, struct rfl_cupti_record **record)) \
	X(REQUIRED, activity_dropped, cuptiActivityGetNumDroppedRecords, \
	  (struct rfl_cuda_context *context, uint32_t stream, size_t *dropped))
/* clang-format on */

#define RFL_CUPTI_FUNCTION_SLOT(needed, member, symbol, arguments) int(*member) arguments;
struct rfl_cupti_functions {
	RFL_CUPTI_FUNCTIONS(RFL_CUPTI_FUNCTION_SLOT)
};
#undef RFL_CUPTI_FUNCTION_SLOT

#endif
