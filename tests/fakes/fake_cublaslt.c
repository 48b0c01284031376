/*
 * fake_cublaslt.c - libcublasLt.so.13 for tests: it checks what it is given and spends time of the
 * fake driver. Steered by FAKE_CUBLASLT or fake_lt_control(); see README.md.
 */
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
enum { ALIGNMENT = 16, WORKSPACE_ALIGNMENT = 256 }; /* bytes */

struct rfl_lt_handle {
	int unused;
};
struct rfl_lt_operation {
	int compute, scale_type;
	int32_t transa;
	int8_t fast;
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
	CREATE(operation, compute, scale_type, 0, 0);
}

int cublasLtMatmulDescDestroy(struct rfl_lt_operation *operation)
{
	LEAVE(operation);
}

int cublasLtMatmulDescSetAttribute(struct rfl_lt_operation *operation, int attribute,
				   const void *value, size_t size)
{
	void *const to = attribute == RFL_LT_OPERATION_TRANSA ? (void *)&operation->transa
			 : attribute == RFL_LT_OPERATION_FAST ? (void *)&operation->fast
							      : NULL;

	ENTER();
	if (!to || size != (attribute == RFL_LT_OPERATION_FAST ? 1 : sizeof(operation->transa)))
		return INVALID_VALUE;
	memcpy(to, value, size);
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

static int capability(void)
{
	void *address = fake_script_driver("cuDeviceGetAttribute");
	int (*get)(int *value, int attribute, int device);
	int major = 0, minor = 0;

	if (!address)
		return 0;
	memcpy(&get, &address, sizeof(get));
	(void)get(&major, RFL_CUDA_ATTRIBUTE_CC_MAJOR, 0);
	(void)get(&minor, RFL_CUDA_ATTRIBUTE_CC_MINOR, 0);
	return 10 * major + minor;
}

/* The table of types in the documentation of cublasLtMatmul(). Narrow types need A transposed, B
 * not, and dimensions that are multiples of some bytes. */
static int supports(const struct rfl_lt_operation *o, const struct rfl_lt_layout *a,
		    const struct rfl_lt_layout *d)
{
	static const struct {
		int compute, scale, in, out, capability;
		uint64_t multiple; /* 0: any */
	} rows[] = {
		{ RFL_LT_COMPUTE_16F, RFL_LT_R_16F, RFL_LT_R_16F, RFL_LT_R_16F, 75, 0 },
		{ RFL_LT_COMPUTE_32I, RFL_LT_R_32I, RFL_LT_R_8I, RFL_LT_R_32I, 75, 4 },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_16F, RFL_LT_R_16F, 75, 0 },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_16BF, RFL_LT_R_16BF, 80, 0 },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_E4M3, RFL_LT_R_16BF, 89, 16 },
		{ RFL_LT_COMPUTE_32F, RFL_LT_R_32F, RFL_LT_R_32F, RFL_LT_R_32F, 75, 0 },
		{ RFL_LT_COMPUTE_TF32, RFL_LT_R_32F, RFL_LT_R_32F, RFL_LT_R_32F, 80, 0 },
		{ RFL_LT_COMPUTE_64F, RFL_LT_R_64F, RFL_LT_R_64F, RFL_LT_R_64F, 75, 0 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (rows[i].compute == o->compute && rows[i].scale == o->scale_type &&
		    rows[i].in == a->type && rows[i].out == d->type)
			return capability() >= rows[i].capability &&
			       (!rows[i].multiple ||
				(o->transa == RFL_LT_OP_T && a->rows % rows[i].multiple == 0 &&
				 a->columns % rows[i].multiple == 0 &&
				 (uint64_t)a->ld % rows[i].multiple == 0));
	return 0;
}

/* Do the shapes fit? D is op(A) B. */
static bool fits(const struct rfl_lt_operation *o, const struct rfl_lt_layout *a,
		 const struct rfl_lt_layout *b, const struct rfl_lt_layout *c,
		 const struct rfl_lt_layout *d)
{
	const bool t = o->transa == RFL_LT_OP_T;

	return a->type == b->type && c->type == d->type && (t ? a->rows : a->columns) == b->rows &&
	       (t ? a->columns : a->rows) == d->rows && b->columns == d->columns &&
	       c->rows == d->rows && c->columns == d->columns;
}

/* An algorithm belongs to its problem. */
static uint64_t mark_of(const struct rfl_lt_operation *o, const struct rfl_lt_layout *a,
			const struct rfl_lt_layout *d)
{
	return (uint64_t)o->compute << 56 ^ (uint64_t)o->fast << 48 ^ (uint64_t)a->type << 40 ^
	       (uint64_t)d->type << 32 ^ a->rows;
}

/* Algorithm 0 is slow, 1 is fast, 2 is not available, 3 wants more workspace than allowed. */
int cublasLtMatmulAlgoGetHeuristic(struct rfl_lt_handle *handle, struct rfl_lt_operation *operation,
				   struct rfl_lt_layout *a, struct rfl_lt_layout *b,
				   struct rfl_lt_layout *c, struct rfl_lt_layout *d,
				   struct rfl_lt_preference *preference, int wanted,
				   struct rfl_lt_candidate *candidates, int *found)
{
	ENTER();
	(void)handle;
	*found = 0;
	if (!fits(operation, a, b, c, d))
		return INVALID_VALUE;
	if (!supports(operation, a, d))
		return NOT_SUPPORTED;
	*found = (int)fake_script_number(&script, "candidates", 4);
	if (*found > wanted)
		*found = wanted;
	for (int i = 0; i < *found; i++)
		candidates[i] = (struct rfl_lt_candidate){
			.algorithm = { .data = { (uint64_t)i, mark_of(operation, a, d) } },
			.workspace_bytes = i == 3 ? preference->workspace + 1 : 0,
			.state = i == 2 ? NOT_SUPPORTED : 0,
		};
	return 0;
}

static bool holds(const void *memory, const struct rfl_lt_layout *l)
{
	void *address = fake_script_driver("fake_cuda_owns");
	bool (*owns)(uint64_t at, size_t size);

	memcpy(&owns, &address, sizeof(owns));
	return (uint64_t)l->ld >= l->rows && (uintptr_t)memory % ALIGNMENT == 0 &&
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
	void *address = fake_script_driver("fake_cuda_spend");
	void (*spend)(const char *what, double amount, double usual);
	char what[64];

	ENTER();
	(void)handle, (void)workspace_bytes, (void)stream;
	memcpy(&spend, &address, sizeof(spend));
	if (!supports(operation, a_layout, d_layout))
		return NOT_SUPPORTED;
	if (c != d || !fits(operation, a_layout, b_layout, c_layout, d_layout) ||
	    !scales(operation, alpha, beta) || !holds(a, a_layout) || !holds(b, b_layout) ||
	    !holds(d, d_layout) || (uintptr_t)workspace % WORKSPACE_ALIGNMENT ||
	    algorithm->data[1] != mark_of(operation, a_layout, d_layout)) {
		fake_script_complain(&script, "cublasLtMatmul: wrong arguments");
		return INVALID_VALUE;
	}
	if (algorithm->data[0] > 1)
		fake_script_complain(&script, "cublasLtMatmul: algorithm %d",
				     (int)algorithm->data[0]);
	snprintf(what, sizeof(what), "lt_%s_%d%s", types[type_of(a_layout)].name,
		 operation->compute, operation->fast ? "_fast" : "");
	spend(what,
	      2.0 * (double)d_layout->rows * (double)d_layout->columns * (double)a_layout->rows /
		      (algorithm->data[0] == 1 ? 1 : 0.5),
	      1e11);
	return 0;
}
