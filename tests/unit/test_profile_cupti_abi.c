/*
 * What profile/cupti/api.h declares is what NVIDIA's headers declare: each offset and
 * size, each number, and the name of each function. Built where those headers are installed.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>

#ifdef RFL_TEST_CUPTI_HEADERS

#include <cuda.h>
#if __has_include(<cudaProfiler.h>)
#include <cudaProfiler.h>
#else /* left out of some packages */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
#endif
#include <cupti_activity.h>
#include <cupti_profiler_host.h> /* C with an empty file in place of <string> */
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include "base/compiler.h"
#include "profile/cupti/api.h"

/* The layout of records has a new number with each field that is added after the others. */
#define KERNEL_RECORD CUpti_ActivityKernel10

struct pair {
	const char *what;
	size_t ours, theirs;
};

#define SIZE_OF(type, member) sizeof(((type *)0)->member)

/* A member of a struct: where it is, and how large. */
#define AT(ours, o, theirs, t)                                                       \
	{ #theirs ": place of " #t, offsetof(struct ours, o), offsetof(theirs, t) }, \
	{                                                                            \
#theirs ": size of " #t, SIZE_OF(struct ours, o), SIZE_OF(theirs, t) \
	}

/* A whole struct; every struct begins with its size. */
#define STRUCT(name, theirs)                                             \
	AT(rfl_cupti_##name, struct_size, theirs, structSize),           \
		AT(rfl_cupti_##name, priv, theirs, pPriv),               \
	{                                                                \
#theirs, sizeof(struct rfl_cupti_##name), sizeof(theirs) \
	}
#define M(name, o, theirs, t) AT(rfl_cupti_##name, o, theirs, t)

/* clang-format off */
static const struct pair layout[] = {
	STRUCT(host_initialize, CUpti_Profiler_Host_Initialize_Params),
	M(host_initialize, type, CUpti_Profiler_Host_Initialize_Params, profilerType),
	M(host_initialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName),
	M(host_initialize, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage),
	M(host_initialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject),
	STRUCT(host_deinitialize, CUpti_Profiler_Host_Deinitialize_Params),
	M(host_deinitialize, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject),
	STRUCT(host_chips, CUpti_Profiler_Host_GetSupportedChips_Params),
	M(host_chips, n, CUpti_Profiler_Host_GetSupportedChips_Params, numChips),
	M(host_chips, names, CUpti_Profiler_Host_GetSupportedChips_Params, ppChipNames),
	STRUCT(host_base_metrics, CUpti_Profiler_Host_GetBaseMetrics_Params),
	M(host_base_metrics, host, CUpti_Profiler_Host_GetBaseMetrics_Params, pHostObject),
	M(host_base_metrics, type, CUpti_Profiler_Host_GetBaseMetrics_Params, metricType),
	M(host_base_metrics, names, CUpti_Profiler_Host_GetBaseMetrics_Params, ppMetricNames),
	M(host_base_metrics, n, CUpti_Profiler_Host_GetBaseMetrics_Params, numMetrics),
	STRUCT(host_metric_properties, CUpti_Profiler_Host_GetMetricProperties_Params),
	M(host_metric_properties, host, CUpti_Profiler_Host_GetMetricProperties_Params, pHostObject),
	M(host_metric_properties, metric, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName),
	M(host_metric_properties, description, CUpti_Profiler_Host_GetMetricProperties_Params, pDescription),
	M(host_metric_properties, hw_unit, CUpti_Profiler_Host_GetMetricProperties_Params, pHwUnit),
	M(host_metric_properties, unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit),
	M(host_metric_properties, type, CUpti_Profiler_Host_GetMetricProperties_Params, metricType),
	STRUCT(host_add_metrics, CUpti_Profiler_Host_ConfigAddMetrics_Params),
	M(host_add_metrics, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject),
	M(host_add_metrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames),
	M(host_add_metrics, n, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics),
	STRUCT(host_config_size, CUpti_Profiler_Host_GetConfigImageSize_Params),
	M(host_config_size, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject),
	M(host_config_size, size, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize),
	STRUCT(host_config_image, CUpti_Profiler_Host_GetConfigImage_Params),
	M(host_config_image, host, CUpti_Profiler_Host_GetConfigImage_Params, pHostObject),
	M(host_config_image, size, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize),
	M(host_config_image, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage),
	STRUCT(host_passes, CUpti_Profiler_Host_GetNumOfPasses_Params),
	M(host_passes, size, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize),
	M(host_passes, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage),
	M(host_passes, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses),
	STRUCT(host_values, CUpti_Profiler_Host_EvaluateToGpuValues_Params),
	M(host_values, host, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pHostObject),
	M(host_values, data, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage),
	M(host_values, data_size, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize),
	M(host_values, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex),
	M(host_values, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames),
	M(host_values, n, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics),
	M(host_values, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues),
	STRUCT(profiler_initialize, CUpti_Profiler_Initialize_Params),
	STRUCT(profiler_deinitialize, CUpti_Profiler_DeInitialize_Params),
	STRUCT(device_supported, CUpti_Profiler_DeviceSupported_Params),
	M(device_supported, device, CUpti_Profiler_DeviceSupported_Params, cuDevice),
	M(device_supported, supported, CUpti_Profiler_DeviceSupported_Params, isSupported),
	M(device_supported, architecture, CUpti_Profiler_DeviceSupported_Params, architecture),
	M(device_supported, sli, CUpti_Profiler_DeviceSupported_Params, sli),
	M(device_supported, vgpu, CUpti_Profiler_DeviceSupported_Params, vGpu),
	M(device_supported, confidential_compute, CUpti_Profiler_DeviceSupported_Params, confidentialCompute),
	M(device_supported, cmp, CUpti_Profiler_DeviceSupported_Params, cmp),
	M(device_supported, wsl, CUpti_Profiler_DeviceSupported_Params, wsl),
	M(device_supported, api, CUpti_Profiler_DeviceSupported_Params, api),
	STRUCT(availability, CUpti_Profiler_GetCounterAvailability_Params),
	M(availability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx),
	M(availability, size, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize),
	M(availability, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage),
	STRUCT(chip_name, CUpti_Device_GetChipName_Params),
	M(chip_name, device, CUpti_Device_GetChipName_Params, deviceIndex),
	M(chip_name, name, CUpti_Device_GetChipName_Params, pChipName),
	STRUCT(enable, CUpti_RangeProfiler_Enable_Params),
	M(enable, context, CUpti_RangeProfiler_Enable_Params, ctx),
	M(enable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject),
	STRUCT(disable, CUpti_RangeProfiler_Disable_Params),
	M(disable, profiler, CUpti_RangeProfiler_Disable_Params, pRangeProfilerObject),
	STRUCT(set_config, CUpti_RangeProfiler_SetConfig_Params),
	M(set_config, profiler, CUpti_RangeProfiler_SetConfig_Params, pRangeProfilerObject),
	M(set_config, config_size, CUpti_RangeProfiler_SetConfig_Params, configSize),
	M(set_config, config, CUpti_RangeProfiler_SetConfig_Params, pConfig),
	M(set_config, data_size, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize),
	M(set_config, data, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage),
	M(set_config, range, CUpti_RangeProfiler_SetConfig_Params, range),
	M(set_config, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode),
	M(set_config, max_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass),
	M(set_config, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels),
	M(set_config, min_nesting_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel),
	M(set_config, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex),
	M(set_config, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel),
	STRUCT(start, CUpti_RangeProfiler_Start_Params),
	M(start, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject),
	STRUCT(stop, CUpti_RangeProfiler_Stop_Params),
	M(stop, profiler, CUpti_RangeProfiler_Stop_Params, pRangeProfilerObject),
	M(stop, pass, CUpti_RangeProfiler_Stop_Params, passIndex),
	M(stop, target_nesting_level, CUpti_RangeProfiler_Stop_Params, targetNestingLevel),
	M(stop, all_passes_submitted, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted),
	STRUCT(push_range, CUpti_RangeProfiler_PushRange_Params),
	M(push_range, profiler, CUpti_RangeProfiler_PushRange_Params, pRangeProfilerObject),
	M(push_range, name, CUpti_RangeProfiler_PushRange_Params, pRangeName),
	STRUCT(pop_range, CUpti_RangeProfiler_PopRange_Params),
	M(pop_range, profiler, CUpti_RangeProfiler_PopRange_Params, pRangeProfilerObject),
	STRUCT(decode, CUpti_RangeProfiler_DecodeData_Params),
	M(decode, profiler, CUpti_RangeProfiler_DecodeData_Params, pRangeProfilerObject),
	M(decode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped),
	STRUCT(data_size, CUpti_RangeProfiler_GetCounterDataSize_Params),
	M(data_size, profiler, CUpti_RangeProfiler_GetCounterDataSize_Params, pRangeProfilerObject),
	M(data_size, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames),
	M(data_size, n, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics),
	M(data_size, max_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges),
	M(data_size, max_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes),
	M(data_size, size, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize),
	STRUCT(data_initialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params),
	M(data_initialize, profiler, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pRangeProfilerObject),
	M(data_initialize, size, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize),
	M(data_initialize, data, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData),
	STRUCT(data_info, CUpti_RangeProfiler_GetCounterDataInfo_Params),
	M(data_info, data, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage),
	M(data_info, size, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize),
	M(data_info, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges),
	STRUCT(range_info, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params),
	M(range_info, data, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, pCounterDataImage),
	M(range_info, size, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, counterDataImageSize),
	M(range_info, range, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeIndex),
	M(range_info, delimiter, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeDelimiter),
	M(range_info, name, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeName),
	AT(rfl_cupti_kernel_record, kind, KERNEL_RECORD, kind),
	AT(rfl_cupti_kernel_record, shared_memory_config, KERNEL_RECORD, sharedMemoryConfig),
	AT(rfl_cupti_kernel_record, registers, KERNEL_RECORD, registersPerThread),
	AT(rfl_cupti_kernel_record, cache_config, KERNEL_RECORD, cacheConfig),
	AT(rfl_cupti_kernel_record, cache_requested, KERNEL_RECORD, partitionedGlobalCacheRequested),
	AT(rfl_cupti_kernel_record, cache_executed, KERNEL_RECORD, partitionedGlobalCacheExecuted),
	AT(rfl_cupti_kernel_record, start_ns, KERNEL_RECORD, start),
	AT(rfl_cupti_kernel_record, end_ns, KERNEL_RECORD, end),
	AT(rfl_cupti_kernel_record, completed_ns, KERNEL_RECORD, completed),
	AT(rfl_cupti_kernel_record, device, KERNEL_RECORD, deviceId),
	AT(rfl_cupti_kernel_record, context, KERNEL_RECORD, contextId),
	AT(rfl_cupti_kernel_record, stream, KERNEL_RECORD, streamId),
	AT(rfl_cupti_kernel_record, static_shared, KERNEL_RECORD, staticSharedMemory),
	AT(rfl_cupti_kernel_record, dynamic_shared, KERNEL_RECORD, dynamicSharedMemory),
	AT(rfl_cupti_kernel_record, local_per_thread, KERNEL_RECORD, localMemoryPerThread),
	AT(rfl_cupti_kernel_record, local_total, KERNEL_RECORD, localMemoryTotal),
	AT(rfl_cupti_kernel_record, correlation, KERNEL_RECORD, correlationId),
	AT(rfl_cupti_kernel_record, grid_id, KERNEL_RECORD, gridId),
	AT(rfl_cupti_kernel_record, name, KERNEL_RECORD, name),
};

/* What each says of its own size. */
static const struct pair sizes[] = {
	{ "CUpti_Profiler_Host_Initialize_Params", rfl_cupti_size_host_initialize, CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_Deinitialize_Params", rfl_cupti_size_host_deinitialize, CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_GetSupportedChips_Params", rfl_cupti_size_host_chips, CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_GetBaseMetrics_Params", rfl_cupti_size_host_base_metrics, CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_GetMetricProperties_Params", rfl_cupti_size_host_metric_properties, CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_ConfigAddMetrics_Params", rfl_cupti_size_host_add_metrics, CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_GetConfigImageSize_Params", rfl_cupti_size_host_config_size, CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_GetConfigImage_Params", rfl_cupti_size_host_config_image, CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_GetNumOfPasses_Params", rfl_cupti_size_host_passes, CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Host_EvaluateToGpuValues_Params", rfl_cupti_size_host_values, CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_Initialize_Params", rfl_cupti_size_profiler_initialize, CUpti_Profiler_Initialize_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_DeInitialize_Params", rfl_cupti_size_profiler_deinitialize, CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_DeviceSupported_Params", rfl_cupti_size_device_supported, CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE },
	{ "CUpti_Profiler_GetCounterAvailability_Params", rfl_cupti_size_availability, CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE },
	{ "CUpti_Device_GetChipName_Params", rfl_cupti_size_chip_name, CUpti_Device_GetChipName_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_Enable_Params", rfl_cupti_size_enable, CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_Disable_Params", rfl_cupti_size_disable, CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_SetConfig_Params", rfl_cupti_size_set_config, CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_Start_Params", rfl_cupti_size_start, CUpti_RangeProfiler_Start_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_Stop_Params", rfl_cupti_size_stop, CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_PushRange_Params", rfl_cupti_size_push_range, CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_PopRange_Params", rfl_cupti_size_pop_range, CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_DecodeData_Params", rfl_cupti_size_decode, CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_GetCounterDataSize_Params", rfl_cupti_size_data_size, CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_CounterDataImage_Initialize_Params", rfl_cupti_size_data_initialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_GetCounterDataInfo_Params", rfl_cupti_size_data_info, CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE },
	{ "CUpti_RangeProfiler_CounterData_GetRangeInfo_Params", rfl_cupti_size_range_info, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE },
};

#define RESULT(name, theirs, value, ...) { #theirs, RFL_CUPTI_##name, theirs },
#define CUDA_RESULT(name, theirs, value, ...) { #theirs, RFL_CUDA_##name, theirs },
#define ATTRIBUTE(name, theirs, value) { #theirs, RFL_CUDA_ATTRIBUTE_##name, theirs },
#define NUMBER(ours, theirs) { #theirs, ours, theirs }
static const struct pair numbers[] = {
	RFL_CUPTI_RESULTS(RESULT)
	RFL_CUDA_RESULTS(CUDA_RESULT)
	RFL_CUDA_ATTRIBUTES(ATTRIBUTE)
	NUMBER(RFL_CUPTI_TYPE_RANGE_PROFILER, CUPTI_PROFILER_TYPE_RANGE_PROFILER),
	NUMBER(RFL_CUPTI_METRIC_COUNTER, CUPTI_METRIC_TYPE_COUNTER),
	NUMBER(RFL_CUPTI_METRIC_RATIO, CUPTI_METRIC_TYPE_RATIO),
	NUMBER(RFL_CUPTI_METRIC_THROUGHPUT, CUPTI_METRIC_TYPE_THROUGHPUT),
	NUMBER(RFL_CUPTI_METRIC_TYPE_COUNT, CUPTI_METRIC_TYPE__COUNT),
	NUMBER(RFL_CUPTI_API_RANGE_PROFILING, CUPTI_PROFILER_RANGE_PROFILING),
	NUMBER(RFL_CUPTI_SUPPORT_UNKNOWN, CUPTI_PROFILER_CONFIGURATION_UNKNOWN),
	NUMBER(RFL_CUPTI_SUPPORT_UNSUPPORTED, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED),
	NUMBER(RFL_CUPTI_SUPPORT_DISABLED, CUPTI_PROFILER_CONFIGURATION_DISABLED),
	NUMBER(RFL_CUPTI_SUPPORT_SUPPORTED, CUPTI_PROFILER_CONFIGURATION_SUPPORTED),
#if CUPTI_API_VERSION >= 130300
	NUMBER(RFL_CUPTI_SUPPORT_LIMITED, CUPTI_PROFILER_CONFIGURATION_LIMITED_SUPPORT),
#endif
	NUMBER(RFL_CUPTI_USER_RANGE, CUPTI_UserRange),
	NUMBER(RFL_CUPTI_USER_REPLAY, CUPTI_UserReplay),
	NUMBER(RFL_CUPTI_ACTIVITY_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL),
	NUMBER(RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
	NUMBER(RFL_CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
	{ "CUdeviceptr", sizeof(rfl_cuda_address), sizeof(CUdeviceptr) },
	{ "CUdevice", sizeof(int), sizeof(CUdevice) },
};
/* clang-format on */

static int compare(const struct pair *pairs, size_t n, const char *kind)
{
	int wrong = 0;

	for (size_t i = 0; i < n; i++)
		if (pairs[i].ours != pairs[i].theirs) {
			print_error("%s of %s: %zu here, %zu in NVIDIA's header\n", kind,
				    pairs[i].what, pairs[i].ours, pairs[i].theirs);
			wrong++;
		}
	return wrong;
}

static void structs_are_laid_out_alike(void **state)
{
	(void)state;
	assert_int_equal(compare(layout, RFL_ARRAY_LEN(layout), "layout"), 0);
	/* the three places of grid and block follow each other */
	assert_int_equal(offsetof(struct rfl_cupti_kernel_record, grid[2]),
			 offsetof(KERNEL_RECORD, gridZ));
	assert_int_equal(offsetof(struct rfl_cupti_kernel_record, block[0]),
			 offsetof(KERNEL_RECORD, blockX));
	assert_int_equal(offsetof(struct rfl_cupti_kernel_record, block[2]),
			 offsetof(KERNEL_RECORD, blockZ));
}

/* Later headers may say more, since structs grow at their end; the smaller sizes stay allowed. */
static void sizes_that_are_said_are_those_of_13_0(void **state)
{
	(void)state;
	if (CUPTI_API_VERSION > 130001) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++)
			assert_true(sizes[i].ours <= sizes[i].theirs);
		return;
	}
	assert_int_equal(compare(sizes, RFL_ARRAY_LEN(sizes), "structSize"), 0);
}

static void numbers_are_the_same(void **state)
{
	(void)state;
	assert_int_equal(compare(numbers, RFL_ARRAY_LEN(numbers), "value"), 0);
}

/* It compiles: the headers declare a function of every symbol that is looked up. */
#define DECLARED(member, symbol, arguments) sizeof(&symbol) == sizeof(void (*)(void)) &&
static void functions_are_declared(void **state)
{
	(void)state;
	assert_true(RFL_CUPTI_FUNCTIONS(DECLARED) RFL_CUDA_FUNCTIONS(DECLARED) 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_are_laid_out_alike),
		cmocka_unit_test(sizes_that_are_said_are_those_of_13_0),
		cmocka_unit_test(numbers_are_the_same),
		cmocka_unit_test(functions_are_declared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("skipped: no headers of CUPTI 13.0 or later were found when this was configured");
	return 77;
}

#endif
