/*
 * planned_fakes.h - the fake driver and the fake cuDNN in this process, as the planned engine's
 * CUDA back end calls them.
 */
#ifndef RFL_TESTS_PLANNED_FAKES_H
#define RFL_TESTS_PLANNED_FAKES_H

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runner/planned/cuda/graph.h"
#include "tests/unit/rfl_test.h"

static struct rfl_cuda_functions cuda;
static struct rfl_queue_functions queue;
static struct rfl_cudnn_functions dnn;
static void (*cuda_control)(const char *script), (*dnn_control)(const char *script);
static const char *(*cuda_complaints)(void), *(*dnn_complaints)(void);
static int (*cuda_leaks)(char *out, size_t size), (*dnn_open)(void);
static long (*executions)(int kind);

static inline void *open_fake(const char *name)
{
	char path[4096];
	void *dl;

	snprintf(path, sizeof(path), "%s/tests/fakes/%s", RFL_TEST_BUILD, name);
	dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		fail_msg("%s", dlerror());
	return dl;
}

static inline void find(void *dl, const char *name, void *slot)
{
	void *address = dlsym(dl, name);

	if (!address)
		fail_msg("%s is not in the fake library", name);
	memcpy(slot, &address, sizeof(address));
}

static inline void load(void)
{
	void *driver = open_fake("libcuda.so.1"), *library = open_fake("cudnn/libcudnn.so.9");

#define CUDA(member, symbol, arguments)        find(driver, #symbol, &cuda.member);
#define QUEUE(member, symbol, arguments)       find(driver, #symbol, &queue.member);
#define CUDNN(member, symbol, type, arguments) find(library, #symbol, &dnn.member);
	RFL_CUDA_FUNCTIONS(CUDA)
	RFL_QUEUE_FUNCTIONS(QUEUE)
	RFL_CUDNN_FUNCTIONS(CUDNN)
	find(driver, "fake_cuda_control", &cuda_control);
	find(driver, "fake_cuda_complaints", &cuda_complaints);
	find(driver, "fake_cuda_leaks", &cuda_leaks);
	find(library, "fake_cudnn_control", &dnn_control);
	find(library, "fake_cudnn_complaints", &dnn_complaints);
	find(library, "fake_cudnn_open", &dnn_open);
	find(library, "fake_cudnn_executions", &executions);
}

static inline int set_up(void **state)
{
	struct rfl_cuda_context *context = NULL;

	(void)state;
	if (!cuda_control)
		load();
	cuda_control("quiet=1;poison=1");
	dnn_control("quiet=1");
	assert_int_equal(cuda.init(0), 0);
	assert_int_equal(cuda.primary_retain(&context, 0), 0);
	assert_int_equal(cuda.context_push(context), 0);
	return 0;
}

static inline int tear_down(void **state)
{
	struct rfl_cuda_context *context = NULL;
	char text[256];

	(void)state;
	(void)cuda.context_pop(&context);
	(void)cuda.primary_release(0);
	if (cuda_leaks(text, sizeof(text)))
		fail_msg("left open: %s", text);
	assert_int_equal(dnn_open(), 0);
	return 0;
}

static inline struct rfl_cuda_stream *new_stream(void)
{
	struct rfl_cuda_stream *s = NULL;

	assert_int_equal(queue.create(&s, RFL_STREAM_NON_BLOCKING), 0);
	return s;
}

static inline rfl_cuda_address new_memory(size_t size)
{
	rfl_cuda_address a = 0;

	assert_int_equal(cuda.memory_alloc(&a, size), 0);
	return a;
}

#endif
