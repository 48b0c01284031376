/*
 * fake_cublaslt.c - libcublasLt.so.13 for tests: it checks what it is given and spends time of the
 * fake driver. Steered by FAKE_CUBLASLT or fake_lt_control(); see README.md.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "peaks/gpu_matmul.h"
#include "tests/fakes/fake_script.h"

#define DECLARE(member, symbol, arguments) RFL_EXPORT int symbol arguments;
RFL_LT_FUNCTIONS(DECLARE)
#undef DECLARE
RFL_EXPORT size_t cublasLtGetVersion(void);

RFL_EXPORT void fake_lt_control(const char *script);
RFL_EXPORT const char *fake_lt_log(void);
RFL_EXPORT const char *fake_lt_complaints(void);
RFL_EXPORT int fake_lt_open(void);

enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

struct rfl_lt_handle {
	int unused;
};
struct rfl_lt_operation {
	int compute, scale_type;
	int32_t transa;
};
struct rfl_lt_layout {
	int type;
	uint64_t rows, columns;
	int64_t ld;
};
struct rfl_lt_preference {
	uint64_t workspace;
};

static struct fake_script script = { .variable = "FAKE_CUBLASLT" };
static int opened; /* handles and descriptors */

#define ENTER()                                                  \
	do {                                                     \
		int code = fake_script_enter(&script, __func__); \
		if (code)                                        \
			return code;                             \
	} while (0)
#define LEAVE(pointer)                                           \
	do {                                                     \
		int left = fake_script_enter(&script, __func__); \
		free(pointer);                                   \
		opened--;                                        \
		return left;                                     \
	} while (0)
#define CREATE(ret, ...)                                        \
	do {                                                    \
		ENTER();                                        \
		if (!(*(ret) = malloc(sizeof(**(ret)))))        \
			return 3;                               \
		**(ret) = (__typeof__(**(ret))){ __VA_ARGS__ }; \
		opened++;                                       \
		return 0;                                       \
	} while (0)

void fake_lt_control(const char *text)
{
	fake_script_set(&script, text);
	opened = 0;
}

const char *fake_lt_log(void)
{
	return script.log;
}

const char *fake_lt_complaints(void)
{
	return script.complaints;
}

int fake_lt_open(void)
{
	return opened;
}

size_t cublasLtGetVersion(void)
{
	return 130100;
}

int cublasLtCreate(struct rfl_lt_handle **handle)
{
	CREATE(handle, 0);
}

int cublasLtDestroy(struct rfl_lt_handle *handle)
{
	LEAVE(handle);
}

int cublasLtMatmulDescCreate(struct rfl_lt_operation **operation, int compute, int scale_type)
{
	CREATE(operation, compute, scale_type, 0);
}

int cublasLtMatmulDescDestroy(struct rfl_lt_operation *operation)
{
	LEAVE(operation);
}

int cublasLtMatmulDescSetAttribute(struct rfl_lt_operation *operation, int attribute,
				   const void *value, size_t size)
{
	ENTER();
	if (attribute != RFL_LT_OPERATION_TRANSA || size != sizeof(operation->transa))
		return INVALID_VALUE;
	memcpy(&operation->transa, value, size);
	return 0;
}

int cublasLtMatrixLayoutCreate(struct rfl_lt_layout **layout, int type, uint64_t rows,
			       uint64_t columns, int64_t ld)
{
	CREATE(layout, type, rows, columns, ld);
}

int cublasLtMatrixLayoutDestroy(struct rfl_lt_layout *layout)
{
	LEAVE(layout);
}

int cublasLtMatmulPreferenceCreate(struct rfl_lt_preference **preference)
{
	CREATE(preference, 0);
}

int cublasLtMatmulPreferenceDestroy(struct rfl_lt_preference *preference)
{
	LEAVE(preference);
}

int cublasLtMatmulPreferenceSetAttribute(struct rfl_lt_preference *preference, int attribute,
					 const void *value, size_t size)
{
	ENTER();
	if (attribute != RFL_LT_PREFERENCE_WORKSPACE || size != sizeof(preference->workspace))
		return INVALID_VALUE;
	memcpy(&preference->workspace, value, size);
	return 0;
}

/* Algorithm 0 is slow, 1 is fast, 2 is not available, 3 wants more workspace than allowed. */
int cublasLtMatmulAlgoGetHeuristic(struct rfl_lt_handle *handle, struct rfl_lt_operation *operation,
				   struct rfl_lt_layout *a, struct rfl_lt_layout *b,
				   struct rfl_lt_layout *c, struct rfl_lt_layout *d,
				   struct rfl_lt_preference *preference, int wanted,
				   struct rfl_lt_candidate *candidates, int *found)
{
	ENTER();
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
	*found = (int)fake_script_number(&script, "candidates", 4);
	if (*found > wanted)
		*found = wanted;
	for (int i = 0; i < *found; i++)
		candidates[i] = (struct rfl_lt_candidate){
			.algorithm = { .data = { (uint64_t)i } },
			.workspace_bytes = i == 3 ? preference->workspace + 1 : 0,
			.state = i == 2 ? NOT_SUPPORTED : 0,
		};
	return 0;
}

static const struct {
	int type;
	size_t bytes;
	const char *name;
} types[] = {
	{ RFL_LT_R_32F, 4, "fp32" }, { RFL_LT_R_64F, 8, "fp64" },  { RFL_LT_R_16F, 2, "fp16" },
	{ RFL_LT_R_8I, 1, "int8" },  { RFL_LT_R_32I, 4, "int32" }, { RFL_LT_R_16BF, 2, "bf16" },
	{ RFL_LT_R_E4M3, 1, "fp8" },
};

static size_t type_of(const struct rfl_lt_layout *l)
{
	size_t i = 0;

	while (types[i].type != l->type)
		i++;
	return i;
}

static void *symbol_of_driver(const char *name)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *address = cuda ? dlsym(cuda, name) : NULL;

	if (cuda)
		(void)dlclose(cuda);
	return address;
}

static bool holds(const void *memory, const struct rfl_lt_layout *l)
{
	void *address = symbol_of_driver("fake_cuda_owns");
	bool (*owns)(uint64_t at, size_t size);

	memcpy(&owns, &address, sizeof(owns));
	return (uint64_t)l->ld >= l->rows &&
	       owns((uint64_t)(uintptr_t)memory,
		    (size_t)l->ld * l->columns * types[type_of(l)].bytes);
}

/* 1 and 0 in the scale type, as bytes. */
static bool scales(const struct rfl_lt_operation *o, const void *alpha, const void *beta)
{
	static const unsigned char zero[8] = { 0 };
	const float one = 1;
	const double one64 = 1;
	const int32_t one32 = 1;
	const uint16_t one16 = 0x3c00;
	const void *expected = o->scale_type == RFL_LT_R_64F   ? (const void *)&one64
			       : o->scale_type == RFL_LT_R_32I ? (const void *)&one32
			       : o->scale_type == RFL_LT_R_16F ? (const void *)&one16
							       : (const void *)&one;
	const size_t size = o->scale_type == RFL_LT_R_64F   ? 8
			    : o->scale_type == RFL_LT_R_16F ? 2
							    : 4;

	return memcmp(alpha, expected, size) == 0 && memcmp(beta, zero, size) == 0;
}

int cublasLtMatmul(struct rfl_lt_handle *handle, struct rfl_lt_operation *operation,
		   const void *alpha, const void *a, struct rfl_lt_layout *a_layout, const void *b,
		   struct rfl_lt_layout *b_layout, const void *beta, const void *c,
		   struct rfl_lt_layout *c_layout, void *d, struct rfl_lt_layout *d_layout,
		   const struct rfl_lt_algorithm *algorithm, void *workspace,
		   size_t workspace_bytes, struct rfl_cuda_stream *stream)
{
	void *address = symbol_of_driver("fake_cuda_spend");
	void (*spend)(const char *what, double amount, double usual);
	char what[64];

	ENTER();
	(void)handle, (void)workspace, (void)workspace_bytes, (void)stream;
	memcpy(&spend, &address, sizeof(spend));
	if (operation->transa != RFL_LT_OP_T || c != d || a_layout->type != b_layout->type ||
	    c_layout->type != d_layout->type || !scales(operation, alpha, beta) ||
	    !holds(a, a_layout) || !holds(b, b_layout) || !holds(d, d_layout)) {
		fake_script_complain(&script, "cublasLtMatmul: wrong arguments");
		return INVALID_VALUE;
	}
	if (algorithm->data[0] > 1)
		fake_script_complain(&script, "cublasLtMatmul: algorithm %d",
				     (int)algorithm->data[0]);
	snprintf(what, sizeof(what), "lt_%s_%d", types[type_of(a_layout)].name, operation->compute);
	spend(what,
	      2.0 * (double)d_layout->rows * (double)d_layout->columns * (double)a_layout->rows /
		      (algorithm->data[0] == 1 ? 1 : 0.5),
	      1e11);
	return 0;
}
