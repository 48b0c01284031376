/*
 * test_planned_fakes.c - the fake driver and the fake cuDNN (tests/fakes) notice what the engines
 * must not do: results that nothing waited for, calls that captures do not allow, descriptors that
 * break a rule.
 */
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

static void *open_fake(const char *name)
{
	char path[4096];
	void *dl;

	snprintf(path, sizeof(path), "%s/tests/fakes/%s", RFL_TEST_BUILD, name);
	dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dl)
		fail_msg("%s", dlerror());
	return dl;
}

static void find(void *dl, const char *name, void *slot)
{
	void *address = dlsym(dl, name);

	if (!address)
		fail_msg("%s is not in the fake library", name);
	memcpy(slot, &address, sizeof(address));
}

static void load(void)
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

static int set_up(void **state)
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

static int tear_down(void **state)
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

static struct rfl_cuda_stream *new_stream(void)
{
	struct rfl_cuda_stream *s = NULL;

	assert_int_equal(queue.create(&s, RFL_STREAM_NON_BLOCKING), 0);
	return s;
}

static rfl_cuda_address new_memory(size_t size)
{
	rfl_cuda_address a = 0;

	assert_int_equal(cuda.memory_alloc(&a, size), 0);
	return a;
}

/* ---- streams and captures ---- */

static void work_waits_until_something_waits_for_it(void **state)
{
	struct rfl_cuda_stream *a = new_stream(), *b = new_stream();
	struct rfl_cuda_event *event = NULL;
	rfl_cuda_address memory = new_memory(4);
	unsigned char got[4] = { 0 };
	float ms;

	(void)state;
	assert_int_equal(cuda.event_create(&event, 0), 0);
	assert_int_equal(queue.fill(memory, 7, 4, a), 0);
	assert_int_equal(cuda.event_record(event, a), 0);
	assert_int_equal(cuda.copy_from_device(got, memory, 4), 0);
	assert_int_equal(got[0], 0xff); /* poison: no one waited for a */
	assert_int_equal(cuda.event_elapsed(&ms, event, event), 600);

	assert_int_equal(queue.wait(b, event, 0), 0);
	assert_int_equal(cuda.fetch(got, memory, 4, b), 0);
	assert_int_equal(got[0], 0xff);
	assert_int_equal(queue.synchronize(b), 0); /* and so a */
	assert_int_equal(got[0], 7);
	assert_int_equal(cuda.event_destroy(event), 0);
	assert_int_equal(queue.destroy(a), 0);
	assert_int_equal(queue.destroy(b), 0);
	assert_int_equal(queue.synchronize(b), 400);
	assert_int_equal(cuda.memory_free(memory), 0);
}

static void captures_record_and_graphs_replay(void **state)
{
	struct rfl_cuda_stream *s = new_stream();
	struct rfl_cuda_graph *graph = NULL;
	struct rfl_cuda_graph_exec *exec = NULL;
	rfl_cuda_address memory = new_memory(8);
	unsigned char got[8];

	(void)state;
	assert_int_equal(queue.begin(s, RFL_CAPTURE_MODE_THREAD_LOCAL), 0);
	assert_int_equal(queue.fill(memory, 1, 4, s), 0);
	assert_int_equal(queue.copy(memory + 4, memory, 4, s), 0);
	assert_int_equal(queue.end(s, &graph), 0);
	assert_int_equal(queue.synchronize(s), 0);
	assert_int_equal(cuda.copy_from_device(got, memory, 8), 0);
	assert_int_equal(got[4], 0xff); /* not executed */
	assert_int_equal(queue.instantiate(&exec, graph, 0), 0);
	assert_int_equal(queue.graph_destroy(graph), 0);
	assert_int_equal(queue.launch(exec, s), 0);
	assert_int_equal(queue.synchronize(s), 0);
	assert_int_equal(cuda.copy_from_device(got, memory, 8), 0);
	assert_int_equal(got[4], 1);
	assert_int_equal(queue.exec_destroy(exec), 0);
	assert_int_equal(queue.destroy(s), 0);
	assert_int_equal(cuda.memory_free(memory), 0);
	assert_string_equal(cuda_complaints(), "");
}

static void captures_do_not_allow_to_wait_or_to_allocate(void **state)
{
	struct rfl_cuda_stream *s = new_stream(), *other = new_stream();
	struct rfl_cuda_graph *graph = NULL;
	rfl_cuda_address memory = new_memory(4), more = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(queue.begin(s, RFL_CAPTURE_MODE_THREAD_LOCAL), 0);
		assert_int_equal(i == 0   ? queue.synchronize(s)
				 : i == 1 ? queue.synchronize(other)
				 : i == 2 ? cuda.memory_alloc(&more, 4)
					  : cuda.copy_from_device(&more, memory, 4),
				 900);
		assert_int_equal(queue.fill(memory, 1, 4, s), 901); /* until it ends */
		assert_int_equal(queue.end(s, &graph), 901);
		assert_null(graph);
	}
	assert_int_equal(queue.end(s, &graph), 903);
	assert_int_equal(queue.destroy(s), 0);
	assert_int_equal(queue.destroy(other), 0);
	assert_int_equal(cuda.memory_free(memory), 0);
}

static void memory_is_guarded(void **state)
{
	struct rfl_cuda_stream *s = new_stream();
	rfl_cuda_address memory = new_memory(4);
	char *bytes;

	(void)state;
	assert_int_equal(queue.fill(memory, 0, 5, s), RFL_CUDA_INVALID_VALUE);
	assert_int_equal(cuda.copy_to_device(memory + 1, &memory, 4), RFL_CUDA_INVALID_VALUE);
	assert_int_equal(cuda.memory_free(memory + 1), RFL_CUDA_INVALID_VALUE);
	memcpy(&bytes, &memory, sizeof(bytes));
	bytes[4] = 0;
	assert_int_equal(cuda.memory_free(memory), 0);
	assert_non_null(strstr(cuda_complaints(), "written past its end"));
	assert_int_equal(queue.destroy(s), 0);
}

/* ---- cuDNN ---- */

static rfl_cudnn_descriptor made(int type)
{
	rfl_cudnn_descriptor d = NULL;

	assert_int_equal(dnn.descriptor_create(type, &d), 0);
	return d;
}

static rfl_cudnn_descriptor new_tensor(int64_t id, int64_t size, bool nhwc, int expected)
{
	const int64_t dims[] = { 2, 8, size, size }, alignment = 16;
	const int64_t images[] = { 8 * size * size, 1, 8 * size, 8 };
	const int64_t planes[] = { 8 * size * size, size * size, size, 1 };
	const int type = RFL_CUDNN_DATA_FLOAT;
	rfl_cudnn_descriptor d = made(RFL_CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	assert_int_equal(
		dnn.set(d, RFL_CUDNN_ATTR_TENSOR_DATA_TYPE, RFL_CUDNN_TYPE_DATA_TYPE, 1, &type), 0);
	assert_int_equal(
		dnn.set(d, RFL_CUDNN_ATTR_TENSOR_DIMENSIONS, RFL_CUDNN_TYPE_INT64, 4, dims), 0);
	assert_int_equal(dnn.set(d, RFL_CUDNN_ATTR_TENSOR_STRIDES, RFL_CUDNN_TYPE_INT64, 4,
				 nhwc ? images : planes),
			 0);
	assert_int_equal(dnn.set(d, RFL_CUDNN_ATTR_TENSOR_UNIQUE_ID, RFL_CUDNN_TYPE_INT64, 1, &id),
			 0);
	assert_int_equal(dnn.set(d, RFL_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, RFL_CUDNN_TYPE_INT64, 1,
				 &alignment),
			 0);
	assert_int_equal(dnn.finalize(d), expected);
	return d;
}

static void attributes_are_checked(void **state)
{
	const int64_t one = 1;
	const int mode = RFL_CUDNN_CROSS_CORRELATION;
	rfl_cudnn_descriptor empty = made(RFL_CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	rfl_cudnn_descriptor wrong = new_tensor(1, 5, false, 3004);
	rfl_cudnn_descriptor tensor = new_tensor(1, 5, true, 0);
	rfl_cudnn_descriptor op = made(RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	const struct {
		rfl_cudnn_descriptor d;
		int name, type;
		const void *values;
		int status;
	} rows[] = {
		{ empty, RFL_CUDNN_ATTR_CONVOLUTION_CONV_MODE, RFL_CUDNN_TYPE_CONVOLUTION_MODE,
		  &mode, 2000 },
		{ empty, RFL_CUDNN_ATTR_TENSOR_UNIQUE_ID, RFL_CUDNN_TYPE_DATA_TYPE, &one, 2010 },
		{ empty, RFL_CUDNN_ATTR_TENSOR_UNIQUE_ID, RFL_CUDNN_TYPE_INT64, NULL, 2000 },
		{ tensor, RFL_CUDNN_ATTR_TENSOR_UNIQUE_ID, RFL_CUDNN_TYPE_INT64, &one, 2000 },
		{ op, RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
		  RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, &tensor, 2012 },
		{ op, RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
		  RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, &empty, 2004 },
		{ op, RFL_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
		  RFL_CUDNN_TYPE_BACKEND_DESCRIPTOR, &tensor, 0 },
	};
	int64_t n, got;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(dnn.set(rows[i].d, rows[i].name, rows[i].type, 1, rows[i].values),
				 rows[i].status);
	assert_int_equal(dnn.finalize(empty), 2000); /* attributes are missing */
	assert_int_equal(dnn.finalize(tensor), 2000);
	assert_int_equal(dnn.get(empty, RFL_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
				 RFL_CUDNN_TYPE_INT64, 1, &n, &got),
			 1001);
	assert_int_equal(dnn.descriptor_destroy(tensor), 0);
	assert_int_equal(dnn.finalize(op), 2000); /* x was destroyed, the others are missing */
	assert_int_equal(dnn.descriptor_destroy(op), 0);
	assert_int_equal(dnn.descriptor_destroy(wrong), 0);
	assert_int_equal(dnn.descriptor_destroy(empty), 0);
	assert_int_equal(dnn.descriptor_destroy(empty), 2000);
}

/* Fill memory with ones. */
static void *ones(rfl_cuda_address memory, size_t n)
{
	void *pointer;

	assert_int_equal(cuda.set_words(memory, 0x3f800000, n), 0);
	memcpy(&pointer, &memory, sizeof(pointer));
	return pointer;
}

static void plans_are_executed_on_memory_of_the_device(void **state)
{
	const struct rfl_conv conv = { .batch = 2,
				       .groups = 1,
				       .channels = { 8, 8 },
				       .in = { 1, 1 },
				       .out = { 1, 1 },
				       .kernel = { 1, 1 },
				       .stride = { 1, 1 },
				       .dilation = { 1, 1 },
				       .bias = true };
	static const struct {
		struct rfl_conv_rules rules;
		int n;
	} rows[] = {
		{ { .tf32 = true, .workspace = 4096 }, 4 },
		{ { .workspace = 4096 }, 3 },
		{ { .workspace = 0 }, 2 },
		{ { .deterministic = true, .workspace = 4096 }, 2 },
	};
	struct rfl_cudnn lib = { .calls = dnn, .version = "9.19.0" };
	struct rfl_cuda_stream *s = new_stream();
	struct rfl_conv_plan plans[4];
	struct rfl_err err = RFL_ERR_INIT;
	rfl_cuda_address memory = new_memory(16384);
	const float *x = ones(memory, 2048), *w = x + 16, *y = w + 64, *bias = y + 16;
	void *const workspace = ones(memory + 8192, 1024);
	float host[16] = { 0 };
	int n = 0;

	(void)state;
	assert_int_equal(dnn.create(&lib.handle), 0);
	assert_int_equal(dnn.set_stream(lib.handle, s), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int k = 0; k < n; k++)
			assert_int_equal(dnn.descriptor_destroy(plans[k].plan), 0);
		assert_ok(rfl_conv_plans(&lib, &conv, &rows[i].rules, 4, plans, &n, &err), &err);
		assert_int_equal(n, rows[i].n);
	}
	assert_int_equal(plans[0].workspace, 1024 + 16 * conv.batch);
	assert_string_equal(dnn_complaints(), "");
	assert_int_equal(rfl_conv_run(&lib, &plans[0], x, w, y, bias, NULL, NULL), RFL_EFAILED);
	assert_int_equal(rfl_conv_run(&lib, &plans[1], x, w, host, bias, NULL, NULL), RFL_EFAILED);
	assert_int_equal(rfl_conv_run(&lib, &plans[1], x, w, y + 1, bias, NULL, NULL), RFL_EFAILED);
	assert_int_equal(rfl_conv_run(&lib, &plans[1], x, w, x, bias, NULL, NULL), RFL_EFAILED);
	assert_int_equal(rfl_conv_run(&lib, &plans[1], x, w, y, NULL, NULL, NULL), RFL_EFAILED);
	assert_ok(rfl_conv_run(&lib, &plans[0], x, w, y, bias, workspace, &err), &err);
	assert_int_equal(executions(-1), 0); /* it waits in the queue */
	assert_int_equal(queue.synchronize(s), 0);
	assert_int_equal(executions(1), 1);
	assert_int_equal(cuda.copy_from_device(host, memory + 4 * 80, sizeof(host)), 0);
	for (int i = 0; i < 16; i++)
		assert_close(host[i], 9, 0);
	for (int k = 0; k < n; k++)
		assert_int_equal(dnn.descriptor_destroy(plans[k].plan), 0);
	assert_int_equal(dnn.destroy(lib.handle), 0);
	assert_int_equal(queue.destroy(s), 0);
	assert_int_equal(cuda.memory_free(memory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(work_waits_until_something_waits_for_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(captures_record_and_graphs_replay, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(captures_do_not_allow_to_wait_or_to_allocate,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_is_guarded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(attributes_are_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(plans_are_executed_on_memory_of_the_device, set_up,
						tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
