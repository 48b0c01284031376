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
#include "tests/fakes/fake_cuda.h"

RFL_EXPORT int cuProfilerStart(void);
RFL_EXPORT int cuProfilerStop(void);

RFL_EXPORT void fake_cuda_control(const char *script);
RFL_EXPORT const char *fake_cuda_log(void);
RFL_EXPORT const char *fake_cuda_complaints(void);
RFL_EXPORT const struct fake_work *fake_cuda_work(void);
RFL_EXPORT int fake_cuda_leaks(char *out, size_t size);

struct rfl_cuda_context {
	int references, depth;
};
struct rfl_cuda_module {
	const struct rfl_selftest_kernel *kernel;
	const struct rfl_gpu_kernel *loop; /* NULL: one of the self-test */
	int profiler;                      /* that was initialised at its load; 0: none */
	struct fake_cuda_twins *twins;     /* NULL: one of the others */
};

struct fake_script fake_cuda_script = { .variable = "FAKE_CUDA" };
#define script fake_cuda_script
static struct rfl_cuda_context context;
static struct fake_work work;
static int blocks, modules; /* allocated */
int fake_cuda_pinned;
static struct {
	uintptr_t at;
	size_t size;
	void *block;
} allocated[4096];
static size_t nallocated; /* of them were used */
/* Bytes: alignment of memory, as the driver's; what is written after it; what takes long to fill.
 */
enum { ALIGNMENT = 256, GUARD = 64, LARGE = 1 << 24 };
static const unsigned char GUARD_BYTE = 0xa5;
static double clock_s;
static const float *multiplied[2]; /* the last products */
static bool started;

#define ENTER()                                                  \
	do {                                                     \
		int code = fake_script_enter(&script, __func__); \
		if (code)                                        \
			return code;                             \
	} while (0)
#define ENTER_CONTEXT()                               \
	do {                                          \
		int code = fake_cuda_enter(__func__); \
		if (code)                             \
			return code;                  \
	} while (0)
/* A call that waits for the default stream (settle), or that captures do not allow (forbidden). */
#define ENTER_CHECKED(check)                                \
	do {                                                \
		int code = fake_cuda_enter(__func__);       \
		if (code == 0)                              \
			code = fake_cuda_##check(__func__); \
		if (code)                                   \
			return code;                        \
	} while (0)

int fake_cuda_enter(const char *call)
{
	int code = fake_script_enter(&script, call);

	return code ? code : context.depth ? RFL_CUDA_SUCCESS : RFL_CUDA_INVALID_CONTEXT;
}

bool fake_cuda_current(void)
{
	return context.depth > 0;
}

void fake_cuda_control(const char *text)
{
	fake_script_set(&script, text);
	memset(&context, 0, sizeof(context));
	memset(&work, 0, sizeof(work));
	blocks = modules = fake_cuda_pinned = 0;
	memset(allocated, 0, sizeof(allocated));
	nallocated = 0;
	fake_cuda_queue_reset();
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
	const struct fake_cuda_open open = fake_cuda_queue_open();

	snprintf(out, size,
		 "%d references and depth %d of the context, %d blocks, %d modules, %d events, "
		 "%d pinned, %d streams, %d graphs, %d executable graphs",
		 context.references, context.depth, blocks, modules, open.events, fake_cuda_pinned,
		 open.streams, open.graphs, open.execs);
	return context.references || context.depth || blocks || modules || open.events ||
	       fake_cuda_pinned || open.streams || open.graphs || open.execs;
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
	ENTER_CHECKED(forbidden);
	fake_cuda_drain();
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
	const bool poison = fake_script_number(&script, "poison", 0) != 0;
	size_t i = 0;
	void *block;

	ENTER_CHECKED(forbidden);
	for (; i < nallocated && allocated[i].at; i++)
		;
	if (size == 0)
		return RFL_CUDA_INVALID_VALUE;
	block = i < RFL_ARRAY_LEN(allocated) ? calloc(1, size + ALIGNMENT + GUARD) : NULL;
	if (!block)
		return RFL_CUDA_OUT_OF_MEMORY;
	blocks++;
	nallocated += i == nallocated;
	allocated[i].block = block;
	allocated[i].at = ((uintptr_t)block + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
	allocated[i].size = size;
	if (poison)
		memset((void *)allocated[i].at, 0xff, size);
	memset((char *)allocated[i].at + size, GUARD_BYTE, GUARD);
	multiplied[0] = multiplied[1] = NULL;
	*address = (rfl_cuda_address)allocated[i].at;
	return RFL_CUDA_SUCCESS;
}

static bool is_guarded(size_t i)
{
	const unsigned char *guard = (const unsigned char *)allocated[i].at + allocated[i].size;
	int intact = 0;

	for (int k = 0; k < GUARD; k++)
		intact += guard[k] == GUARD_BYTE;
	return intact == GUARD;
}

/* Waits for all work, as the driver does. */
int cuMemFree_v2(rfl_cuda_address address)
{
	int code = fake_script_enter(&script, __func__), forbidden = fake_cuda_forbidden(__func__);
	size_t i = 0;

	fake_cuda_drain();
	for (; i < nallocated && (!allocated[i].at || allocated[i].at != (uintptr_t)address); i++)
		;
	if (i == nallocated) {
		fake_script_complain(&script, "cuMemFree: no such memory");
		return RFL_CUDA_INVALID_VALUE;
	}
	if (!is_guarded(i))
		fake_script_complain(&script, "memory of %zu bytes was written past its end",
				     allocated[i].size);
	if (allocated[i].size < LARGE) /* for those who still read it */
		memset((void *)allocated[i].at, 0xff, allocated[i].size);
	free(allocated[i].block); /* whatever it answers */
	allocated[i].at = 0;
	blocks--;
	return code ? code : forbidden ? forbidden : context.depth ? 0 : RFL_CUDA_INVALID_CONTEXT;
}

/* Not in an allocation: a fault of a real GPU. */
static int foreign(const char *call, rfl_cuda_address address, size_t size)
{
	if (fake_cuda_owns(address, size))
		return RFL_CUDA_SUCCESS;
	fake_script_complain(&script, "%s: %zu bytes that are not in memory of the device", call,
			     size);
	return RFL_CUDA_INVALID_VALUE;
}

int cuMemcpyHtoD_v2(rfl_cuda_address to, const void *from, size_t size)
{
	ENTER_CHECKED(settle);
	if (foreign(__func__, to, size))
		return RFL_CUDA_INVALID_VALUE;
	memcpy(host(to), from, size);
	return RFL_CUDA_SUCCESS;
}

int cuMemcpyDtoH_v2(void *to, rfl_cuda_address from, size_t size)
{
	ENTER_CHECKED(settle);
	if (foreign(__func__, from, size))
		return RFL_CUDA_INVALID_VALUE;
	memcpy(to, host(from), size);
	return RFL_CUDA_SUCCESS;
}

int cuMemsetD32_v2(rfl_cuda_address address, unsigned value, size_t n)
{
	uint32_t *words = host(address);

	ENTER_CHECKED(settle);
	if (address % sizeof(*words) || foreign(__func__, address, n * sizeof(*words)))
		return RFL_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		words[i] = value;
	return RFL_CUDA_SUCCESS;
}

bool fake_cuda_owns(uint64_t address, size_t size)
{
	for (size_t i = 0; i < nallocated; i++)
		if (allocated[i].at && address >= allocated[i].at &&
		    address - allocated[i].at <= allocated[i].size &&
		    size <= allocated[i].size - (address - allocated[i].at))
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

double fake_cuda_clock(void)
{
	return clock_s;
}

/* ---- host memory ---- */

int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
	ENTER_CHECKED(forbidden);
	*address = malloc(size);
	fake_cuda_pinned++;
	return flags ? RFL_CUDA_INVALID_VALUE : RFL_CUDA_SUCCESS;
}

int cuMemFreeHost(void *address)
{
	int code = fake_script_enter(&script, __func__), forbidden = fake_cuda_forbidden(__func__);

	fake_cuda_drain();
	free(address);
	fake_cuda_pinned--;
	return code ? code : forbidden;
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

	ENTER_CHECKED(forbidden);
	if (strncmp(image, FAKE_NVRTC_MARKER, strlen(FAKE_NVRTC_MARKER)) == 0) {
		int code = fake_cuda_twins_load(image, (int)fake_script_number(&script, "cc", 90),
						&found.twins);

		if (code)
			return code;
	}
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
	if (!found.kernel && !found.loop && !found.twins)
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

	fake_cuda_drain();
	fake_cuda_twins_free(module->twins);
	free(module);
	modules--;
	return context.depth ? code : RFL_CUDA_INVALID_CONTEXT;
}

int cuModuleGetFunction(struct rfl_cuda_function **ret, struct rfl_cuda_module *module,
			const char *name)
{
	ENTER_CONTEXT();
	if (module->twins)
		return fake_cuda_twins_find(module->twins, name, ret);
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
	const struct rfl_selftest_kernel *k;

	ENTER_CONTEXT();
	if (fake_cuda_twins_own(function))
		return fake_cuda_twins_launch(function, (unsigned[3]){ grid_x, grid_y, grid_z },
					      (unsigned[3]){ block_x, block_y, block_z },
					      shared_bytes, stream, arguments, extra);
	k = module->kernel;
	if (stream) /* the program uses only the default stream for these */
		return FAKE_CUDA_INVALID_HANDLE;
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
