/*
 * described_gpu.h - cuDNN for GPUs that are only described, and the layers of nets as convolutions.
 */
#ifndef RFL_TESTS_DESCRIBED_GPU_H
#define RFL_TESTS_DESCRIBED_GPU_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/zoo.h"
#include "runner/planned/cuda/graph.h"
#include "tests/unit/rfl_test.h"

enum described { H100, A100, L4, RTX_4090, B200, T4, DESCRIBED };

static const struct {
	const char *name;
	int capability, multiprocessors, shared_bytes, blocks, threads; /* shared: of a block */
	int clock_khz, memory_khz, l2_bytes;
	int64_t memory_bytes;
} described[DESCRIBED] = {
	[H100] = { "NVIDIA H100 80GB HBM3", 90, 132, 232448, 32, 2048, 1980000, 2619000, 52428800,
		   85017755648 },
	[A100] = { "NVIDIA A100-SXM4-80GB", 80, 108, 166912, 32, 2048, 1410000, 1593000, 41943040,
		   85017755648 },
	[L4] = { "NVIDIA L4", 89, 58, 101376, 24, 1536, 2040000, 6251000, 50331648, 23802019840 },
	[RTX_4090] = { "NVIDIA GeForce RTX 4090", 89, 128, 101376, 24, 1536, 2520000, 10501000,
		       75497472, 25386352640 },
	[B200] = { "NVIDIA B200", 100, 148, 232448, 32, 2048, 1965000, 3996000, 132644864,
		   191503138816 },
	[T4] = { "Tesla T4", 75, 40, 65536, 16, 1024, 1590000, 5001000, 4194304, 15655829504 },
};

/* What a net is computed in. */
static const struct {
	const char *name;
	enum rfl_value type;
	bool tf32;
} precisions[] = {
	{ "fp32", RFL_VALUE_F32, false },
	{ "tf32", RFL_VALUE_F32, true },
	{ "fp16", RFL_VALUE_F16, false },
	{ "bf16", RFL_VALUE_BF16, false },
};

/* Open cuDNN for one of these GPUs. */
static inline enum rfl_rc try_described(enum described which, struct rfl_cudnn **ret,
					struct rfl_err *err)
{
	char json[1024];

	(void)snprintf(
		json, sizeof(json),
		"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
		"\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
		"\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
		"\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
		"\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,"
		"\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":%d,"
		"\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"deviceName\":\"%s\","
		"\"deviceVer\":%d,\"driverVer\":13000,\"totalGlobalMem\":%lld,\"cudaDeviceId\":0}",
		described[which].multiprocessors, described[which].shared_bytes,
		described[which].blocks, described[which].threads, described[which].clock_khz,
		described[which].memory_khz, described[which].l2_bytes, described[which].name,
		described[which].capability * 10, (long long)described[which].memory_bytes);
	return rfl_cudnn_open(json, ret, err);
}

static inline struct rfl_cudnn *open_described(enum described which)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_cudnn *lib = NULL;

	assert_ok(try_described(which, &lib, &err), &err);
	return lib;
}

/* Without cuDNN the tests are skipped. With it the libraries stay loaded: without a GPU, cuDNN
 * opens and closes those of others many times. */
static inline bool has_cudnn(void)
{
	static const char *const others[] = { "libcublasLt.so.13", "libnvrtc.so.13" };
	static struct rfl_cudnn *lib;
	struct rfl_err err = RFL_ERR_INIT;
	const enum rfl_rc rc = try_described(H100, &lib, &err);

	if (rc == RFL_EUNAVAILABLE)
		printf("skipped: %s\n", err.msg);
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		(void)dlopen(others[i], RTLD_NOW | RTLD_LOCAL);
	return rc != RFL_EUNAVAILABLE;
}

/* From here on libcuda.so.1 is tests/fakes/standin, for cuDNN too. */
static inline void load_standin(void)
{
	if (!dlopen(RFL_TEST_BUILD "/tests/fakes/standin/libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
		printf("%s\n", dlerror());
		exit(1);
	}
}

/* Whether the library is newer than the one that the tables of refusals are about. */
static inline bool is_newer(const struct rfl_cudnn *lib)
{
	return lib->calls.version() >= 92000;
}

/* What rfl_conv_run() and rfl_norm_run() queue: the pack must have the tensors of the plan's graph,
 * and no others. cuDNN makes the pack; nothing is executed. */
static struct {
	const struct rfl_cudnn *lib; /* the one that is watched */
	struct rfl_cudnn_functions real;
	int64_t ids[64], nids; /* of the last pack */
	int executed;
} watch;

static inline int watch_set(rfl_cudnn_descriptor d, int name, int type, int64_t n,
			    const void *values)
{
	if (name == RFL_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
		assert_true(n <= (int64_t)RFL_ARRAY_LEN(watch.ids));
		memcpy(watch.ids, values, (size_t)n * sizeof(watch.ids[0]));
		watch.nids = n;
	}
	return watch.real.set(d, name, type, n, values);
}

static inline int watch_execute(struct rfl_cudnn_handle *handle, rfl_cudnn_descriptor plan,
				rfl_cudnn_descriptor pack)
{
	enum { JSON_REPRESENTATION = 405 }; /* CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION */
	static char json[1 << 20];
	int64_t size = 0, found = 0;

	assert_null(handle);
	assert_non_null(pack);
	assert_int_equal(watch.real.get(plan, JSON_REPRESENTATION, RFL_CUDNN_TYPE_CHAR,
					sizeof(json) - 1, &size, json),
			 0);
	json[size] = '\0';
	*strstr(json, "\"nodes\"") = '\0'; /* before it are the tensors, named by their ids */
	for (const char *at = json; (at = strstr(at, "\"name\":\"")) != NULL; at++) {
		const int64_t id = strtoll(at + strlen("\"name\":\""), NULL, 10);
		const char *const virtual = "\"isVirtual\":true";
		int64_t i = 0;

		if (strncmp(strstr(at, "\"isVirtual\":"), virtual, strlen(virtual)) == 0)
			continue;
		while (i < watch.nids && watch.ids[i] != id)
			i++;
		if (i == watch.nids)
			fail_msg("tensor %lld is not in the pack", (long long)id);
		found++;
	}
	assert_int_equal(found, watch.nids);
	watch.executed++;
	return 0;
}

static inline void watch_packs(struct rfl_cudnn *lib)
{
	watch.lib = lib;
	watch.real = lib->calls;
	lib->calls.set = watch_set;
	lib->calls.execute = watch_execute;
}

struct layer {
	struct rfl_conv conv;
	char name[64];
};
#define MAX_LAYERS 256

/* The distinct convolutions of a net's training step for a batch of 32. */
static inline int layers_of(const char *model, struct layer *layers)
{
	const struct rfl_plan_setup setup = { .batch = 32, .value_bytes = 4, .training = true };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	struct rfl_plan *plan = NULL;
	int n = 0, same;

	assert_ok(rfl_zoo_build(model, NULL, &net, &err), &err);
	assert_ok(rfl_plan_new(net, &setup, &plan, &err), &err);
	for (int i = 0; i < plan->nsteps; i++) {
		const struct rfl_plan_step *const step = &plan->steps[i];

		if (step->op != RFL_PLAN_CONV && step->op != RFL_PLAN_LINEAR)
			continue;
		assert_true(n < MAX_LAYERS);
		layers[n].conv = rfl_conv_of(plan, i);
		for (same = 0;
		     memcmp(&layers[same].conv, &layers[n].conv, sizeof(layers[n].conv)) != 0;)
			same++;
		if (same < n)
			continue;
		(void)snprintf(layers[n++].name, sizeof(layers[0].name), "%s %s %s", model,
			       net->nodes[step->node].name, rfl_plan_pass_names[step->pass]);
	}
	rfl_plan_free(plan);
	rfl_net_free(net);
	return n;
}

/* Ask for one plan. Returns its workspace in bytes; -1: there is none. */
static inline int64_t plan_one(const struct rfl_cudnn *lib, const struct layer *layer,
			       const struct rfl_conv_rules *rules)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_conv_plan plan = { 0 };
	char place[16]; /* nothing reads it */
	int n = -1;
	const enum rfl_rc rc = rfl_conv_plans(lib, &layer->conv, rules, 1, &plan, &n, &err);

	if (rc == RFL_EUNSUPPORTED) {
		assert_int_equal(n, 0);
		return -1;
	}
	assert_ok(rc, &err);
	assert_int_equal(n, 1);
	assert_true(plan.workspace >= 0 && plan.workspace <= rules->workspace);
	if (lib == watch.lib)
		assert_ok(rfl_conv_run(lib, &plan, place, place, place,
				       layer->conv.bias ? place : NULL, place, &err),
			  &err);
	assert_int_equal(lib->calls.descriptor_destroy(plan.plan), 0);
	return plan.workspace;
}

#endif
