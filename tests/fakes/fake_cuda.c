/*
 * fake_cuda.c - libcuda.so.1 for tests: one GPU whose memory is the host's and which knows the
 * kernels of our self-test and the loops of our peaks by name. Loops take time on a clock of its
 * own. Steered by FAKE_CUDA or fake_cuda_control(); see README.md.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "peaks/gpu_kernels.h"
#include "profile/cupti/impl.h"
#include "tests/fakes/fake_script.h"

#define DECLARE(member, symbol, arguments) RFL_EXPORT int symbol arguments;
RFL_CUDA_FUNCTIONS(DECLARE)
#undef DECLARE
RFL_EXPORT int cuProfilerStart(void);
RFL_EXPORT int cuProfilerStop(void);

RFL_EXPORT void fake_cuda_control(const char *script);
RFL_EXPORT const char *fake_cuda_log(void);
RFL_EXPORT const char *fake_cuda_complaints(void);
RFL_EXPORT const struct fake_work *fake_cuda_work(void);
RFL_EXPORT int fake_cuda_leaks(char *out, size_t size);
RFL_EXPORT void fake_cuda_spend(const char *what, double amount, double usual);
RFL_EXPORT bool fake_cuda_owns(uint64_t address, size_t size);

struct rfl_cuda_context {
	int references, depth;
};
struct rfl_cuda_module {
	const struct rfl_selftest_kernel *kernel;
	const struct rfl_gpu_kernel *loop; /* NULL: one of the self-test */
	int profiler;                      /* that was initialised at its load; 0: none */
};
struct rfl_cuda_event {
	double at_s;
	bool recorded;
};

static struct fake_script script = { .variable = "FAKE_CUDA" };
static struct rfl_cuda_context context;
static struct fake_work work;
static int blocks, modules, events, pinned; /* allocated */
static struct {
	uintptr_t at;
	size_t size;
	void *block;
} allocated[64];
enum { ALIGNMENT = 256 }; /* of memory, as the driver's */
static double clock_s;
static const float *multiplied[2]; /* the last products */
static bool started;

#define ENTER()                                                  \
	do {                                                     \
		int code = fake_script_enter(&script, __func__); \
		if (code)                                        \
			return code;                             \
	} while (0)
#define ENTER_CONTEXT()                                  \
	do {                                             \
		ENTER();                                 \
		if (context.depth == 0)                  \
			return RFL_CUDA_INVALID_CONTEXT; \
	} while (0)

void fake_cuda_control(const char *text)
{
	fake_script_set(&script, text);
	memset(&context, 0, sizeof(context));
	memset(&work, 0, sizeof(work));
	blocks = modules = events = pinned = 0;
	memset(allocated, 0, sizeof(allocated));
	clock_s = 0;
	started = false;
}

const char *fake_cuda_log(void)
{
	return script.log;
}

const char *fake_cuda_complaints(void)
{
	return script.complaints;
}

const struct fake_work *fake_cuda_work(void)
{
	return &work;
}

int fake_cuda_leaks(char *out, size_t size)
{
	snprintf(out, size,
		 "%d references and depth %d of the context, %d blocks, %d modules, %d events, "
		 "%d pinned",
		 context.references, context.depth, blocks, modules, events, pinned);
	return context.references || context.depth || blocks || modules || events || pinned;
}

__attribute__((destructor)) static void at_exit(void)
{
	char text[256];

	if (fake_cuda_leaks(text, sizeof(text)))
		fprintf(stderr, "FAKE_CUDA: LEAK: %s\n", text);
}

/* ---- driver and device ---- */

int cuInit(unsigned flags)
{
	ENTER();
	started = true;
	return flags ? RFL_CUDA_INVALID_VALUE : RFL_CUDA_SUCCESS;
}

int cuDriverGetVersion(int *version)
{
	ENTER();
	*version = (int)fake_script_number(&script, "version", 13000);
	return RFL_CUDA_SUCCESS;
}

int cuGetErrorName(int result, const char **name)
{
#define NAME(member, theirs, value, ...) { value, #theirs },
	static const struct {
		int code;
		const char *name;
	} names[] = { RFL_CUDA_RESULTS(NAME) };
#undef NAME

	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++)
		if (names[i].code == result) {
			*name = names[i].name;
			return RFL_CUDA_SUCCESS;
		}
	return RFL_CUDA_INVALID_VALUE;
}

int cuDeviceGetCount(int *count)
{
	ENTER();
	*count = (int)fake_script_number(&script, "count", 1);
	return started ? RFL_CUDA_SUCCESS : RFL_CUDA_NOT_INITIALIZED;
}

int cuDeviceGet(int *device, int index)
{
	ENTER();
	*device = index;
	return RFL_CUDA_SUCCESS;
}

int cuDeviceGetName(char *name, int size, int device)
{
	char text[FAKE_VALUE_MAX] = "Fake GPU";

	ENTER();
	(void)device;
	(void)fake_script_text(&script, "name", text);
	snprintf(name, (size_t)size, "%s", text);
	return RFL_CUDA_SUCCESS;
}

/* Of the i-th that CUDA_VISIBLE_DEVICES names: all bytes a0 + its number, or those of "GPU-a1...",
 * "MIG-b0...". */
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
	const char *name = getenv("CUDA_VISIBLE_DEVICES");
	unsigned long byte = 0xa0 + (unsigned long)device;

	ENTER();
	for (int i = 0; name && i < device; i++)
		name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL;
	if (name)
		byte = strchr("GM", name[0]) ? strtoul(name + 4, NULL, 16) >> 24
					     : 0xa0 + strtoul(name, NULL, 10);
	memset(uuid, (int)byte, 16);
	return RFL_CUDA_SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	int capability = (int)fake_script_number(&script, "cc", 90);

	ENTER();
	(void)device;
	switch (attribute) {
	case RFL_CUDA_ATTRIBUTE_CC_MAJOR:
		*value = capability / 10;
		return RFL_CUDA_SUCCESS;
	case RFL_CUDA_ATTRIBUTE_CC_MINOR:
		*value = capability % 10;
		return RFL_CUDA_SUCCESS;
	case RFL_CUDA_ATTRIBUTE_L2_CACHE_BYTES:
		*value = (int)fake_script_number(&script, "l2", 1 << 20);
		return RFL_CUDA_SUCCESS;
	case RFL_CUDA_ATTRIBUTE_MULTIPROCESSORS:
		*value = (int)fake_script_number(&script, "sms", 4);
		return RFL_CUDA_SUCCESS;
	case RFL_CUDA_ATTRIBUTE_INTEGRATED:
		*value = (int)fake_script_number(&script, "integrated", 0);
		return RFL_CUDA_SUCCESS;
	case RFL_CUDA_ATTRIBUTE_ECC_ENABLED:
		*value = (int)fake_script_number(&script, "ecc", 0);
		return RFL_CUDA_SUCCESS;
	default:
		*value = 0;
		return RFL_CUDA_SUCCESS;
	}
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	ENTER();
	(void)device;
	*bytes = (size_t)16e9;
	return RFL_CUDA_SUCCESS;
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	ENTER();
	snprintf(id, (size_t)size, "00000000:%02X:00.0", 0x0a + (unsigned)device);
	return RFL_CUDA_SUCCESS;
}

/* ---- context ---- */

int cuDevicePrimaryCtxRetain(struct rfl_cuda_context **ret, int device)
{
	ENTER();
	(void)device;
	context.references++;
	*ret = &context;
	return RFL_CUDA_SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	int code = fake_script_enter(&script, __func__);

	(void)device;
	if (context.references-- == 0)
		fake_script_complain(&script, "the primary context was released once too often");
	return code;
}

int cuCtxPushCurrent_v2(struct rfl_cuda_context *c)
{
	ENTER();
	if (c != &context)
		return RFL_CUDA_INVALID_CONTEXT;
	context.depth++;
	return RFL_CUDA_SUCCESS;
}

int cuCtxPopCurrent_v2(struct rfl_cuda_context **ret)
{
	int code = fake_script_enter(&script, __func__);

	if (context.depth == 0)
		return RFL_CUDA_INVALID_CONTEXT;
	context.depth--;
	*ret = &context;
	return code;
}

int cuCtxSynchronize(void)
{
	ENTER_CONTEXT();
	return RFL_CUDA_SUCCESS;
}

/* ---- memory ---- */

static void *host(rfl_cuda_address address)
{
	return (void *)(uintptr_t)address;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	ENTER_CONTEXT();
	*free_bytes = (size_t)fake_script_number(&script, "free", 8e9);
	*total_bytes = (size_t)16e9;
	return RFL_CUDA_SUCCESS;
}

int cuMemAlloc_v2(rfl_cuda_address *address, size_t size)
{
	size_t i = 0;
	void *block;

	ENTER_CONTEXT();
	for (; i < RFL_ARRAY_LEN(allocated) && allocated[i].at; i++)
		;
	block = i < RFL_ARRAY_LEN(allocated) ? calloc(1, size + ALIGNMENT) : NULL;
	if (!block)
		return RFL_CUDA_OUT_OF_MEMORY;
	blocks++;
	allocated[i].block = block;
	allocated[i].at = ((uintptr_t)block + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
	allocated[i].size = size;
	multiplied[0] = multiplied[1] = NULL;
	*address = (rfl_cuda_address)allocated[i].at;
	return RFL_CUDA_SUCCESS;
}

int cuMemFree_v2(rfl_cuda_address address)
{
	int code = fake_script_enter(&script, __func__);

	for (size_t i = 0; i < RFL_ARRAY_LEN(allocated); i++)
		if (allocated[i].at == (uintptr_t)address) {
			free(allocated[i].block); /* whatever it answers */
			allocated[i].at = 0;
		}
	blocks--;
	return context.depth ? code : RFL_CUDA_INVALID_CONTEXT;
}

int cuMemcpyHtoD_v2(rfl_cuda_address to, const void *from, size_t size)
{
	ENTER_CONTEXT();
	memcpy(host(to), from, size);
	return RFL_CUDA_SUCCESS;
}

int cuMemcpyDtoH_v2(void *to, rfl_cuda_address from, size_t size)
{
	ENTER_CONTEXT();
	memcpy(to, host(from), size);
	return RFL_CUDA_SUCCESS;
}

int cuMemsetD32_v2(rfl_cuda_address address, unsigned value, size_t n)
{
	uint32_t *words = host(address);

	ENTER_CONTEXT();
	for (size_t i = 0; i < n; i++)
		words[i] = value;
	return RFL_CUDA_SUCCESS;
}

bool fake_cuda_owns(uint64_t address, size_t size)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(allocated); i++)
		if (allocated[i].at && address >= allocated[i].at &&
		    address + size <= allocated[i].at + allocated[i].size)
			return true;
	return false;
}

/* ---- the clock ---- */

/* "rate=WHAT:R" sets the rate of one kind of work, "fade=S:F" multiplies all rates by F after S
 * seconds of work. */
void fake_cuda_spend(const char *what, double amount, double usual)
{
	char item[FAKE_VALUE_MAX];
	const size_t len = strlen(what);
	double rate = usual;
	size_t at = 0;

	while (fake_script_next(&script, "rate", &at, item))
		if (strncmp(item, what, len) == 0 && item[len] == ':')
			rate = strtod(item + len + 1, NULL);
	if (fake_script_text(&script, "fade", item) && clock_s > strtod(item, NULL))
		rate *= strtod(strchr(item, ':') + 1, NULL);
	if (fake_script_number(&script, "frozen", 0) == 0)
		clock_s += amount / rate;
}

int cuEventCreate(struct rfl_cuda_event **ret, unsigned flags)
{
	ENTER_CONTEXT();
	*ret = calloc(1, sizeof(**ret));
	events++;
	return flags ? RFL_CUDA_INVALID_VALUE : RFL_CUDA_SUCCESS;
}

int cuEventDestroy_v2(struct rfl_cuda_event *event)
{
	int code = fake_script_enter(&script, __func__);

	free(event);
	events--;
	return code;
}

int cuEventRecord(struct rfl_cuda_event *event, struct rfl_cuda_stream *stream)
{
	ENTER_CONTEXT();
	(void)stream;
	event->at_s = clock_s;
	event->recorded = true;
	return RFL_CUDA_SUCCESS;
}

int cuEventSynchronize(struct rfl_cuda_event *event)
{
	ENTER_CONTEXT();
	return event->recorded ? RFL_CUDA_SUCCESS : RFL_CUDA_INVALID_VALUE;
}

int cuEventElapsedTime(float *ms, struct rfl_cuda_event *from, struct rfl_cuda_event *to)
{
	ENTER_CONTEXT();
	*ms = (float)(1e3 * (to->at_s - from->at_s));
	return from->recorded && to->recorded ? RFL_CUDA_SUCCESS : RFL_CUDA_INVALID_VALUE;
}

/* ---- transfers ---- */

int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
	ENTER_CONTEXT();
	*address = malloc(size);
	pinned++;
	return flags ? RFL_CUDA_INVALID_VALUE : RFL_CUDA_SUCCESS;
}

int cuMemFreeHost(void *address)
{
	int code = fake_script_enter(&script, __func__);

	free(address);
	pinned--;
	return code;
}

int cuMemcpyHtoDAsync_v2(rfl_cuda_address to, const void *from, size_t size,
			 struct rfl_cuda_stream *stream)
{
	ENTER_CONTEXT();
	(void)stream;
	fake_cuda_spend(pinned ? "send_pinned" : "send", (double)size, 1e10);
	return from && fake_cuda_owns(to, size) ? RFL_CUDA_SUCCESS : RFL_CUDA_INVALID_VALUE;
}

int cuMemcpyDtoHAsync_v2(void *to, rfl_cuda_address from, size_t size,
			 struct rfl_cuda_stream *stream)
{
	ENTER_CONTEXT();
	(void)stream;
	fake_cuda_spend(pinned ? "fetch_pinned" : "fetch", (double)size, 1e10);
	return to && fake_cuda_owns(from, size) ? RFL_CUDA_SUCCESS : RFL_CUDA_INVALID_VALUE;
}

/* ---- kernels ---- */

/* Which initialisation of the fake CUPTI's profiler is in effect; 0: none. */
static int profiler_now(void)
{
	void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
	void *address = cupti ? dlsym(cupti, "fake_cupti_profiler") : NULL;
	int (*get)(void);

	if (cupti)
		dlclose(cupti);
	if (!address)
		return 0;
	memcpy(&get, &address, sizeof(get));
	return get();
}

static const struct rfl_selftest_kernel copies = { .name = RFL_SELFTEST_COPY };

static const struct rfl_selftest_kernel *kernel_at(size_t i)
{
	return i == 0 ? &copies : rfl_selftest_kernel_at(i - 1);
}

int cuModuleLoadData(struct rfl_cuda_module **ret, const void *image)
{
	struct rfl_cuda_module found = { .kernel = NULL };
	const struct rfl_selftest_kernel *k;
	const struct rfl_gpu_kernel *loop;
	char entry[128];

	ENTER_CONTEXT();
	for (size_t i = 0; (k = kernel_at(i)); i++) {
		snprintf(entry, sizeof(entry), ".entry %s(", k->name);
		if (strstr(image, entry))
			found.kernel = k;
	}
	for (size_t i = 0; (loop = rfl_gpu_kernel_at(i)); i++) {
		snprintf(entry, sizeof(entry), ".entry %s(", loop->name);
		if (strstr(image, entry))
			found.loop = loop;
	}
	if (!found.kernel && !found.loop)
		return RFL_CUDA_INVALID_PTX;
	found.profiler = profiler_now();
	*ret = malloc(sizeof(**ret));
	if (!*ret)
		return RFL_CUDA_OUT_OF_MEMORY;
	**ret = found;
	modules++;
	return RFL_CUDA_SUCCESS;
}

int cuModuleUnload(struct rfl_cuda_module *module)
{
	int code = fake_script_enter(&script, __func__);

	free(module);
	modules--;
	return context.depth ? code : RFL_CUDA_INVALID_CONTEXT;
}

int cuModuleGetFunction(struct rfl_cuda_function **ret, struct rfl_cuda_module *module,
			const char *name)
{
	ENTER_CONTEXT();
	if (strcmp(name, module->loop ? module->loop->name : module->kernel->name) != 0)
		return RFL_CUDA_NOT_FOUND;
	*ret = (struct rfl_cuda_function *)(void *)module; /* which has only this one */
	return RFL_CUDA_SUCCESS;
}

static float element(const struct rfl_selftest_kernel *k, const void *row, size_t i)
{
	uint32_t bits = 0;
	float value;

	if (k->element_bytes == 4) {
		memcpy(&value, (const char *)row + 4 * i, 4);
		return value;
	}
	memcpy(&bits, (const char *)row + 2 * i, 2);
	if (k->type == RFL_SELFTEST_BF16) {
		bits <<= 16;
		memcpy(&value, &bits, 4);
		return value;
	}
	if ((bits & 0x7c00) == 0)
		return 0; /* no subnormals in the self-test */
	value = (float)ldexp(1 + (bits & 0x3ff) / 1024.0, (int)(bits >> 10 & 31) - 15);
	return bits >> 15 ? -value : value;
}

static void multiply(const struct rfl_cuda_module *module, void **arguments, unsigned grid_x,
		     unsigned grid_y, unsigned grid_z)
{
	const struct rfl_selftest_kernel *k = module->kernel;
	size_t columns = *(uint32_t *)arguments[3], bytes = *(uint32_t *)arguments[4];
	size_t rows = (size_t)grid_y * (size_t)k->tile_rows;
	size_t depth = bytes / (size_t)k->element_bytes;
	const char *a = host(*(rfl_cuda_address *)arguments[0]);
	const char *b = host(*(rfl_cuda_address *)arguments[1]);
	float *c = host(*(rfl_cuda_address *)arguments[2]);
	double flops = 2.0 * (double)rows * (double)columns * (double)depth * grid_z;

	if (columns != (size_t)grid_x * (size_t)k->tile_columns)
		fake_script_complain(&script, "%s: the grid does not cover C", k->name);
	if (k->type == RFL_SELFTEST_F32)
		work.fma_f32 += flops / 2;
	if (k->type == RFL_SELFTEST_F32 && module->profiler == profiler_now())
		work.fma_patched += flops / 2;
	if (k->type != RFL_SELFTEST_F32)
		work.tensor_flops[k->type - RFL_SELFTEST_F16] += flops;
	if (c == multiplied[0] || c == multiplied[1] ||
	    fake_script_number(&script, "wrong", 0) == 1)
		return; /* the same once more, or an error of the GPU */
	multiplied[1] = multiplied[0];
	multiplied[0] = c;
	for (size_t row = 0; row < rows; row++)
		for (size_t column = 0; column < columns; column++) {
			float sum = 0;

			for (size_t i = 0; i < depth; i++)
				sum += element(k, a + row * bytes, i) *
				       element(k, b + column * bytes, i);
			c[row * columns + column] = sum;
		}
}

static void copy(void **arguments, unsigned blocks_x)
{
	size_t size = (size_t)blocks_x * RFL_SELFTEST_COPY_BYTES;

	work.copied_bytes += (double)size;
	if (fake_script_number(&script, "wrong", 0) == 0)
		memcpy(host(*(rfl_cuda_address *)arguments[0]),
		       host(*(rfl_cuda_address *)arguments[1]), size);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, struct rfl_cuda_function *function,
						int threads, size_t shared_bytes)
{
	const struct rfl_cuda_module *module = (const void *)function;

	ENTER_CONTEXT();
	*n = (int)fake_script_number(&script, "occupancy", 2);
	return module->loop && threads == RFL_GPU_THREADS && shared_bytes == 0
		       ? RFL_CUDA_SUCCESS
		       : RFL_CUDA_INVALID_VALUE;
}

/* A loop takes time; of what it writes, only the ends. A read out of L2 is faster. */
static int run_loop(const struct rfl_gpu_kernel *k, void **arguments, unsigned blocks_x)
{
	const rfl_cuda_address to = *(rfl_cuda_address *)arguments[0];
	const rfl_cuda_address from = *(rfl_cuda_address *)arguments[1];
	const rfl_cuda_address other = *(rfl_cuda_address *)arguments[2];
	const uint64_t size = *(uint64_t *)arguments[3], turns = *(uint64_t *)arguments[4];
	const uint32_t word = *(uint32_t *)arguments[5];
	const bool memory = k->bytes_per_turn > 0;
	const uint64_t l2 = (uint64_t)fake_script_number(&script, "l2", 1 << 20);
	const double amount = memory ? k->bytes_per_turn : k->flops_per_turn;
	char name[64];

	if (memory && (size == 0 || size % RFL_GPU_CHUNK || !fake_cuda_owns(to, size) ||
		       !fake_cuda_owns(from, size) || !fake_cuda_owns(other, size)))
		return RFL_CUDA_INVALID_VALUE;
	if (!memory &&
	    (!fake_cuda_owns(to, 4) || !fake_cuda_owns(other, sizeof(k->words)) ||
	     !fake_cuda_owns(from, (size_t)RFL_GPU_THREADS * (size_t)k->bits / 8 *
					   (size_t)(k->a + k->b ? k->a + k->b : RFL_GPU_CHAINS))))
		return RFL_CUDA_INVALID_VALUE;
	if (turns == 0)
		return RFL_CUDA_INVALID_VALUE;
	if (!memory && memcmp(host(other), k->words, sizeof(k->words)) != 0)
		fake_script_complain(&script, "%s: not its constants", k->name);
	snprintf(name, sizeof(name), "%s%s", k->name, memory && size <= l2 / 2 ? "_l2" : "");
	fake_cuda_spend(name, amount * (double)turns * blocks_x, 1e12);
	for (int end = 0; end < 2 && memory && fake_script_number(&script, "wrong", 0) == 0;
	     end++) {
		const size_t at = end ? size - 16 : 0;
		float *out = host(to + at), factor;
		const float *a = host(from + at), *b = host(other + at);

		/* a launch must cover the arrays */
		if (end && turns * blocks_x * RFL_GPU_CHUNK < size)
			break;
		memcpy(&factor, &word, sizeof(factor));
		for (int i = 0; i < 4; i++)
			if (k->kind != RFL_GPU_READ)
				out[i] = k->kind == RFL_GPU_WRITE  ? factor
					 : k->kind == RFL_GPU_COPY ? a[i]
								   : a[i] + factor * b[i];
	}
	return RFL_CUDA_SUCCESS;
}

int cuLaunchKernel(struct rfl_cuda_function *function, unsigned grid_x, unsigned grid_y,
		   unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
		   unsigned shared_bytes, struct rfl_cuda_stream *stream, void **arguments,
		   void **extra)
{
	const struct rfl_cuda_module *module = (const void *)function;
	const struct rfl_selftest_kernel *k = module->kernel;

	ENTER_CONTEXT();
	(void)stream;
	if (module->loop)
		return extra || shared_bytes || grid_x == 0 || grid_y != 1 || grid_z != 1 ||
				       block_x != RFL_GPU_THREADS || block_y != 1 || block_z != 1
			       ? RFL_CUDA_INVALID_VALUE
			       : run_loop(module->loop, arguments, grid_x);
	if (extra || shared_bytes || block_y != 1 || block_z != 1 ||
	    block_x != (k == &copies ? (unsigned)RFL_SELFTEST_COPY_THREADS : (unsigned)k->threads))
		return RFL_CUDA_INVALID_VALUE;
	if (k == &copies)
		copy(arguments, grid_x);
	else
		multiply(module, arguments, grid_x, grid_y, grid_z);
	return RFL_CUDA_SUCCESS;
}

int cuProfilerStart(void)
{
	ENTER();
	return RFL_CUDA_SUCCESS;
}

int cuProfilerStop(void)
{
	ENTER();
	return RFL_CUDA_SUCCESS;
}
