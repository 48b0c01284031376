/*
 * fake_cupti_activity.c - the activity API: records of kernels that the script lists, or of three
 * that a training step is full of, once per time that it is enabled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/fake_cupti_impl.h"

#define RECORD_SIZE 208 /* of CUDA 13.0: more than we know of it */

/* name | ns | grid | block | launches */
static const char *const usual[] = {
	"_ZN7cutlass6KernelI53cutlass_80_tensorop_s1688gemm_128x128_16x3_nn_align4_E|500000|"
	"64,8,1|256,1,1|10",
	"void at::native::vectorized_elementwise_kernel<4, "
	"at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >|100000|512,1,1|128,1,1|"
	"20",
	"void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, "
	"true>|250000|64,1,1|512,1,1|4",
};

static rfl_cupti_buffer_requested requested;
static rfl_cupti_buffer_completed completed;
static bool enabled, pending;
static uint64_t clock_ns;

struct buffer {
	uint8_t *data;
	size_t size, used;
};

static void put(struct buffer *b, const char *item)
{
	static char names[64][FAKE_VALUE_MAX]; /* as the library's, they stay */
	static size_t next;
	struct rfl_cupti_kernel_record *k = (void *)(b->data + b->used);
	unsigned long long ns = 0;
	int launches = 1, *g = k->grid, *c = k->block;
	char *name = names[next++ % RFL_ARRAY_LEN(names)], *bar;

	snprintf(name, FAKE_VALUE_MAX, "%s", item);
	bar = strchr(name, '|');
	if (!bar || sscanf(bar, "|%llu|%d,%d,%d|%d,%d,%d|%d", &ns, &g[0], &g[1], &g[2], &c[0],
			   &c[1], &c[2], &launches) < 7) {
		fake_script_complain(&fake_cupti_script, "kernel=%s: not name|ns|x,y,z|x,y,z|n",
				     item);
		return;
	}
	*bar = '\0';
	for (int i = 0; i < launches && b->used + RECORD_SIZE <= b->size; i++) {
		struct rfl_cupti_kernel_record *record = (void *)(b->data + b->used);

		if (record != k)
			memcpy(record, k, sizeof(*k));
		record->kind = RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL;
		record->name = name;
		record->start_ns = ns ? clock_ns += 1000 : 0; /* 0: not collected */
		record->end_ns = ns ? clock_ns += ns : 0;
		b->used += RECORD_SIZE;
	}
}

int cuptiActivityRegisterCallbacks(rfl_cupti_buffer_requested request,
				   rfl_cupti_buffer_completed complete)
{
	ENTER();
	requested = request;
	completed = complete;
	return RFL_CUPTI_SUCCESS;
}

int cuptiActivityEnable(int kind)
{
	ENTER();
	if (kind != RFL_CUPTI_ACTIVITY_CONCURRENT_KERNEL || !requested)
		return RFL_CUPTI_INVALID_KIND;
	enabled = pending = true;
	return RFL_CUPTI_SUCCESS;
}

int cuptiActivityDisable(int kind)
{
	ENTER();
	(void)kind;
	if (!enabled)
		fake_script_complain(&fake_cupti_script, "cuptiActivityDisable: not enabled");
	enabled = false;
	return RFL_CUPTI_SUCCESS;
}

int cuptiActivityFlushAll(uint32_t flags)
{
	struct buffer b = { .data = NULL };
	char item[FAKE_VALUE_MAX];
	size_t at = 0, n = 0, max_records = 1;

	ENTER();
	(void)flags;
	if (!pending)
		return RFL_CUPTI_SUCCESS;
	pending = false;
	requested(&b.data, &b.size, &max_records);
	if (!b.data || (uintptr_t)b.data % 8 != 0 || max_records != 0) {
		fake_script_complain(&fake_cupti_script, "a buffer that cannot be used");
		return RFL_CUPTI_SUCCESS;
	}
	memset(b.data, 0, b.size);
	for (; fake_script_next(&fake_cupti_script, "kernel", &at, item); n++)
		put(&b, item);
	for (size_t i = 0; n == 0 && i < RFL_ARRAY_LEN(usual); i++)
		put(&b, usual[i]);
	completed(NULL, 0, b.data, b.size, b.used);
	return RFL_CUPTI_SUCCESS;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct rfl_cupti_record **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + RECORD_SIZE : buffer;

	if (next >= buffer + valid)
		return RFL_CUPTI_MAX_LIMIT_REACHED;
	*record = (void *)next;
	return RFL_CUPTI_SUCCESS;
}

int cuptiActivityGetNumDroppedRecords(struct rfl_cuda_context *context, uint32_t stream,
				      size_t *dropped)
{
	ENTER();
	(void)context;
	(void)stream;
	*dropped = (size_t)fake_script_number(&fake_cupti_script, "lost", 0);
	return RFL_CUPTI_SUCCESS;
}
