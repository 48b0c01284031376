/*
 * fake_cuda_twins.c - modules of the fake NVRTC, with all kernels of the planned engine: a launch
 * runs the CPU twin of a kernel.
 */
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runner/planned/cuda/arguments.h"
#include "runner/planned/cuda/twins.h"
#include "tests/fakes/fake_cuda.h"

#define complain(...) fake_script_complain(&fake_cuda_script, __VA_ARGS__)

struct fake_cuda_twins {
	struct fake_cuda_twins *next;
	int type; /* of values */
	struct rfl_cuda_function {
		struct fake_cuda_twins *module;
		const struct rfl_twin *twin;
	} functions[64];
	size_t nfunctions;
};

static struct fake_cuda_twins *loaded;

int fake_cuda_twins_load(const char *image, int capability, struct fake_cuda_twins **ret)
{
	const char *target = strstr(image, "\n--gpu-architecture=sm_");
	const char *type = strstr(image, "\n-DRFL_KERNEL_TYPE=");
	struct fake_cuda_twins *m;

	if (!target || !type)
		return RFL_CUDA_INVALID_PTX;
	if (strtod(strchr(target, '_') + 1, NULL) > capability) {
		complain("cuModuleLoadData: code for a GPU that is newer than this one");
		return RFL_CUDA_INVALID_PTX;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return RFL_CUDA_OUT_OF_MEMORY;
	m->type = (int)strtod(strchr(type, '=') + 1, NULL);
	m->next = loaded;
	loaded = *ret = m;
	return RFL_CUDA_SUCCESS;
}

void fake_cuda_twins_free(struct fake_cuda_twins *twins)
{
	struct fake_cuda_twins **at = &loaded;

	while (*at && *at != twins)
		at = &(*at)->next;
	if (*at)
		*at = twins->next;
	free(twins);
}

int fake_cuda_twins_find(struct fake_cuda_twins *twins, const char *name,
			 struct rfl_cuda_function **ret)
{
	const struct rfl_twin *twin = rfl_twin_find(name);
	struct rfl_cuda_function *f = twins->functions;

	if (!twin)
		return RFL_CUDA_NOT_FOUND;
	while (f->twin && f->twin != twin)
		f++;
	*f = (struct rfl_cuda_function){ .module = twins, .twin = twin };
	*ret = f;
	return RFL_CUDA_SUCCESS;
}

bool fake_cuda_twins_own(const struct rfl_cuda_function *function)
{
	for (const struct fake_cuda_twins *m = loaded; m; m = m->next)
		if (function >= m->functions &&
		    function < m->functions + RFL_ARRAY_LEN(m->functions))
			return true;
	return false;
}

struct launch {
	const struct rfl_twin *twin;
	alignas(16) unsigned char argument[512];
};

/* The twin can read all memory of this process, which a GPU cannot. A word of the argument that
 * looks like an address must be one of the device; the size of an array is less than 2^44, a small
 * number after padding has no more than 12 bits. */
static bool is_reachable(const struct rfl_twin *twin, const void *argument)
{
	for (size_t at = 0; at + sizeof(uint64_t) <= twin->argument_bytes; at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, (const char *)argument + at, sizeof(word));
		if (word >> 44 == 0 || word >> 48 != 0 || (uint32_t)word < 4096 ||
		    fake_cuda_owns(word, 1))
			continue;
		complain("%s: the pointer at %zu of its argument is not to memory of the device",
			 twin->name, at);
		return false;
	}
	return true;
}

static void run(const void *argument)
{
	const struct launch *l = argument;
	int64_t n;

	memcpy(&n, l->argument, sizeof(n));
	fake_cuda_spend(l->twin->name, (double)n, 1e10);
	if (is_reachable(l->twin, l->argument))
		l->twin->run(l->argument);
}

/* Kernels without values; the others have their type after n. */
static bool has_type(const char *name)
{
	static const char *const without[] = {
		"add_floats",           "column_totals", "fold_partials",
		"norm_gradient_finish", "totals",        "squares",
		"fold_squares",         "decide",        "begin",
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(without); i++)
		if (strcmp(name + strlen("rfl_k_"), without[i]) == 0)
			return false;
	return true;
}

int fake_cuda_twins_launch(struct rfl_cuda_function *function, const unsigned grid[3],
			   const unsigned block[3], unsigned shared_bytes,
			   struct rfl_cuda_stream *stream, void **arguments, void **extra)
{
	const struct rfl_twin *twin = function->twin;
	struct launch l = { .twin = twin };
	const char *wrong = NULL;
	int32_t type;
	int64_t n;

	if (grid[0] < 1 || grid[0] > 0x7fffffff || block[0] < 1 || block[0] > 1024)
		wrong = "the grid or its blocks are too large, or empty";
	else if (grid[1] != 1 || grid[2] != 1 || block[1] != 1 || block[2] != 1)
		wrong = "the kernels use one dimension";
	else if (shared_bytes || extra || !arguments || !arguments[0])
		wrong = "shared memory, or no argument";
	else if (twin->argument_bytes > sizeof(l.argument))
		abort();
	if (!wrong) {
		memcpy(l.argument, arguments[0], twin->argument_bytes);
		memcpy(&n, l.argument, sizeof(n));
		memcpy(&type, l.argument + sizeof(n), sizeof(type));
		if (n < 0)
			wrong = "a negative number of units";
		else if (has_type(twin->name) && type != function->module->type)
			wrong = "compiled for another type";
		else if (!is_reachable(twin, l.argument))
			wrong = "a wrong pointer";
	}
	if (!wrong)
		return fake_cuda_submit(stream, run, &l, sizeof(l));
	complain("%s: %s", twin->name, wrong);
	return RFL_CUDA_INVALID_VALUE;
}
