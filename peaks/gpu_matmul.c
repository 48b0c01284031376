/* gpu_matmul.c - GEMMs by cuBLASLt. */
#include "peaks/gpu_matmul.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

enum { CANDIDATES = 8, SIZE_LEAST = 512, SIZE_FIRST = 4096, SIZE_MOST = 16384 };
#define LONGEST_S 0.25 /* larger products are not tried */
#define TILE      ((size_t)4 << 20)

/* 1 in each type, as the bits that a little-endian host stores */
#define F16_1 0x3c00
#define F32_1 0x3f800000
#define F64_1 0x3ff0000000000000
#define I32_1 1
#define ROW(key_, name_, acc, capability, type_, compute_, scale, in_, out_, bytes, ...) \
	{                                                                                \
		.key = (key_), .name = (name_), .accumulate = (acc),                     \
		.min_capability = (capability), .type = RFL_GPU_##type_,                 \
		.compute = RFL_LT_COMPUTE_##compute_, .scale_type = RFL_LT_R_##scale,    \
		.in = RFL_LT_R_##in_, .out = RFL_LT_R_##out_, .out_bytes = (bytes),      \
		.one = __VA_ARGS__                                                       \
	}

/* fp32 uses the vector units. The sums of fp8 with fast accumulation are not fp32. */
static const struct rfl_gpu_product products[] = {
	ROW("fp64.matrix", "fp64", "fp64", 80, F64, 64F, 64F, 64F, 64F, 8, F64_1),
	ROW("fp32.vector", "fp32", "fp32", 75, F32, 32F, 32F, 32F, 32F, 4, F32_1),
	ROW("tf32.matrix", "tf32", "fp32", 80, F32, TF32, 32F, 32F, 32F, 4, F32_1),
	ROW("fp16.matrix", "fp16", "fp32", 75, F16, 32F, 32F, 16F, 16F, 2, F32_1),
	ROW("fp16.matrix.fp16acc", "fp16", "fp16", 75, F16, 16F, 16F, 16F, 16F, 2, F16_1),
	ROW("bf16.matrix", "bf16", "fp32", 80, BF16, 32F, 32F, 16BF, 16BF, 2, F32_1),
	ROW("fp8.matrix", "fp8 (e4m3) to bf16", "fp32", 89, E4M3, 32F, 32F, E4M3, 16BF, 2, F32_1),
	ROW("fp8.matrix.fastacc", "fp8 (e4m3) to bf16, fast accumulation", NULL, 89, E4M3, 32F, 32F,
	    E4M3, 16BF, 2, F32_1, .fast = true),
	ROW("int8.matrix", "int8 to int32", "int32", 75, I8, 32I, 32I, 8I, 32I, 4, I32_1),
};

const struct rfl_gpu_product *rfl_gpu_product_at(size_t i)
{
	return i < RFL_ARRAY_LEN(products) ? &products[i] : NULL;
}

/* ---- results ---- */

struct lt_symbols {
	RFL_LT_FUNCTIONS(RFL_CUDA_SYMBOL)
};
static const struct lt_symbols symbols = { RFL_LT_FUNCTIONS(RFL_CUDA_NAME) };

/* cublasStatus_t */
static const struct rfl_cuda_message messages[] = {
	{ 1, RFL_EUNAVAILABLE, "cuBLASLt could not start",
	  "check that nvidia-smi works, and that the driver is not older than the library" },
	{ 3, RFL_EDEVMEM, "the device does not have enough free memory",
	  "end other programs on it (listed by nvidia-smi)" },
	{ 8, RFL_EUNSUPPORTED, "this cuBLASLt does not support the GPU", "install a newer one" },
	{ 15, RFL_EUNSUPPORTED, "this cuBLASLt does not support the product on this GPU", NULL },
};

static enum rfl_rc lt_check(int status, const char *call, struct rfl_err *err)
{
	if (status == 0)
		return RFL_OK;
	return rfl_cuda_explain(messages, RFL_ARRAY_LEN(messages), status, call, "cuBLAS status",
				err);
}
#define LT_CALL(m, member, err, ...) lt_check((m)->calls.member(__VA_ARGS__), symbols.member, err)

/* ---- library ---- */

enum rfl_rc rfl_gpu_matmul_open(struct rfl_gpu_matmul *m, struct rfl_gpu_bench *bench,
				const struct rfl_cuda_places *places, struct rfl_err *err)
{
#define SYMBOL(member, symbol, arguments) { #symbol, &m->calls.member, false },
	const struct rfl_dl_symbol wanted[] = { RFL_LT_FUNCTIONS(SYMBOL){ "cublasLtGetVersion",
									  &m->version, false } };
	static const char *const libraries[] = { "libcublasLt.so.13", "libcublasLt.so.12",
						 "libcublasLt.so.11" };
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	const char *names[64];
	size_t n = 0;
	enum rfl_rc rc;

	*m = (struct rfl_gpu_matmul){ .bench = bench };
	for (size_t i = 0; i < RFL_ARRAY_LEN(libraries); i++)
		n += rfl_cuda_library(arena, libraries[i], "cublas", places, names + n,
				      RFL_ARRAY_LEN(names) - 1 - n);
	names[n] = NULL;
	rc = rfl_dl_open(names, RFL_DL_LOAD, wanted, RFL_ARRAY_LEN(wanted), &m->dl, err);
	if (rc) {
		rfl_err_prefix(err,
			       "cuBLASLt was not found (it is part of CUDA toolkits and of "
			       "CUDA builds of PyTorch; set CUDA_HOME to a toolkit, or add its "
			       "directory to LD_LIBRARY_PATH)");
		return rc;
	}
	return LT_CALL(m, create, err, &m->handle);
}

void rfl_gpu_matmul_close(struct rfl_gpu_matmul *m)
{
	if (m->handle)
		(void)m->calls.destroy(m->handle);
	rfl_dl_close(m->dl);
	*m = (struct rfl_gpu_matmul){ .dl = NULL };
}

/* ---- products ---- */

/* A product of one size with its memory and descriptors. */
struct product {
	struct rfl_gpu_matmul *m;
	const struct rfl_gpu_product *p;
	int64_t n;
	rfl_cuda_address a, b, d, workspace;
	size_t workspace_bytes;
	struct rfl_lt_operation *operation;
	struct rfl_lt_layout *in, *out;
	struct rfl_lt_preference *preference;
	struct rfl_lt_candidate candidate; /* the algorithm that is used */
};

/* An address of the device as the library takes it. */
static void *pointer(rfl_cuda_address address)
{
	return (void *)(uintptr_t)address;
}

static enum rfl_rc multiply(void *ctx, struct rfl_err *err)
{
	static const uint64_t zero;
	struct product *s = ctx;

	return LT_CALL(s->m, multiply, err, s->m->handle, s->operation, &s->p->one, pointer(s->a),
		       s->in, pointer(s->b), s->in, &zero, pointer(s->d), s->out, pointer(s->d),
		       s->out, &s->candidate.algorithm, pointer(s->workspace), s->workspace_bytes,
		       NULL);
}

/* Allocate an operand and fill it with copies of a random tile. */
static enum rfl_rc operand(const struct product *s, rfl_cuda_address *ret, struct rfl_err *err)
{
	const struct rfl_cuda *c = s->m->bench->cuda;
	const size_t size = (size_t)(s->n * s->n) * rfl_gpu_type_bytes(s->p->type);
	RFL_AUTOFREE unsigned char *tile = rfl_alloc_array(TILE, 1);
	enum rfl_rc rc;

	rfl_gpu_fill(s->p->type, tile, TILE);
	rc = RFL_CUDA_CALL(c, memory_alloc, err, ret, size);
	for (size_t at = 0; at < size && rc == RFL_OK; at += TILE)
		rc = RFL_CUDA_CALL(c, copy_to_device, err, *ret + at, tile,
				   size - at < TILE ? size - at : TILE);
	return rc;
}

/* Prepare a product of one size. The library accepts a leading dimension smaller than the number of
 * rows, and then reads past the end: here both are n. A is transposed, B is not, which all types
 * support. */
static enum rfl_rc prepare(struct product *s, struct rfl_gpu_matmul *m,
			   const struct rfl_gpu_product *p, int64_t size, size_t available,
			   struct rfl_err *err)
{
	const struct rfl_cuda *c = m->bench->cuda;
	const size_t wanted = (size_t)(c->capability >= 90 ? 256 : 32) << 20;
	const uint64_t n = (uint64_t)size,
		       workspace = wanted < available / 8 ? wanted : available / 8;
	const int32_t transposed = RFL_LT_OP_T;
	const int8_t fast = 1;
	enum rfl_rc rc;

	*s = (struct product){ .m = m, .p = p, .n = size, .workspace_bytes = (size_t)workspace };
	if ((rc = operand(s, &s->a, err)) || (rc = operand(s, &s->b, err)) ||
	    (rc = RFL_CUDA_CALL(c, memory_alloc, err, &s->d, (size_t)(n * n) * p->out_bytes)) ||
	    (rc = RFL_CUDA_CALL(c, memory_alloc, err, &s->workspace, s->workspace_bytes)) ||
	    (rc = LT_CALL(m, operation_create, err, &s->operation, p->compute, p->scale_type)) ||
	    (rc = LT_CALL(m, operation_set, err, s->operation, RFL_LT_OPERATION_TRANSA, &transposed,
			  sizeof(transposed))) ||
	    (p->fast && (rc = LT_CALL(m, operation_set, err, s->operation, RFL_LT_OPERATION_FAST,
				      &fast, sizeof(fast)))) ||
	    (rc = LT_CALL(m, layout_create, err, &s->in, p->in, n, n, size)) ||
	    (rc = LT_CALL(m, layout_create, err, &s->out, p->out, n, n, size)) ||
	    (rc = LT_CALL(m, preference_create, err, &s->preference)))
		return rc;
	return LT_CALL(m, preference_set, err, s->preference, RFL_LT_PREFERENCE_WORKSPACE,
		       &workspace, sizeof(workspace));
}

static void release(struct product *s)
{
	const rfl_cuda_address blocks[] = { s->a, s->b, s->d, s->workspace };

	for (size_t i = 0; i < RFL_ARRAY_LEN(blocks); i++)
		if (blocks[i])
			(void)s->m->bench->cuda->calls.memory_free(blocks[i]);
	if (s->preference)
		(void)s->m->calls.preference_destroy(s->preference);
	if (s->in)
		(void)s->m->calls.layout_destroy(s->in);
	if (s->out)
		(void)s->m->calls.layout_destroy(s->out);
	if (s->operation)
		(void)s->m->calls.operation_destroy(s->operation);
}

static double flops_of(int64_t n)
{
	return 2.0 * (double)n * (double)n * (double)n;
}

/* Time the algorithms that the library proposes, and keep the fastest: its first is often not.
 * @param time_s  set to the time of a product with it */
static enum rfl_rc choose(struct product *s, double *time_s, struct rfl_err *err)
{
	const struct rfl_gpu_work w = { .enqueue = multiply, .ctx = s, .amount = flops_of(s->n) };
	struct rfl_lt_candidate candidates[CANDIDATES] = { { .state = 0 } };
	struct rfl_err why = RFL_ERR_INIT;
	size_t best = CANDIDATES;
	double t;
	int n = 0;
	enum rfl_rc rc = LT_CALL(s->m, candidates, err, s->m->handle, s->operation, s->in, s->in,
				 s->out, s->out, s->preference, CANDIDATES, candidates, &n);

	if (rc)
		return rc;
	for (size_t i = 0; i < (size_t)n && i < CANDIDATES; i++) {
		s->candidate = candidates[i];
		if (candidates[i].state != 0 ||
		    candidates[i].workspace_bytes > s->workspace_bytes ||
		    rfl_gpu_bench_time(s->m->bench, &w, 3, &t, &why) != RFL_OK)
			continue;
		if (best == CANDIDATES || t < *time_s) {
			best = i;
			*time_s = t;
		}
	}
	if (best == CANDIDATES)
		return why.rc ? rfl_err_pass(err, &why)
			      : rfl_fail(err, RFL_EUNSUPPORTED, 0,
					 "cuBLASLt proposes no algorithm for products of %s",
					 s->p->name);
	s->candidate = candidates[best];
	return RFL_OK;
}

enum rfl_rc rfl_gpu_matmul_run(struct rfl_gpu_matmul *m, const struct rfl_gpu_product *p,
			       int64_t *n, struct rfl_gpu_timed *ret, struct rfl_err *err)
{
	const size_t element = 2 * rfl_gpu_type_bytes(p->type) + p->out_bytes;
	struct product s = { .m = m };
	size_t available = 0, total = 0;
	int64_t size = SIZE_FIRST, best_size = 0;
	double time_s = 0, best_rate = 0;
	struct rfl_lt_candidate best = { .state = 0 };
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_CUDA_CALL(m->bench->cuda, memory_info, err, &available, &total);

	if (rc)
		return rc;
	while (size > SIZE_LEAST && (size_t)(size * size) * element > available / 4)
		size /= 2;
	for (; size <= SIZE_MOST; size *= 2) {
		const double flops = flops_of(size);

		if (best_size && ((size_t)(size * size) * element > available / 4 ||
				  flops / best_rate > LONGEST_S))
			break;
		release(&s);
		if (prepare(&s, m, p, size, available, &why) || choose(&s, &time_s, &why)) {
			if (best_size) /* the smaller ones suffice */
				break;
			rc = rfl_err_pass(err, &why);
			goto done;
		}
		if (flops / time_s > best_rate) {
			best_rate = flops / time_s;
			best_size = size;
			best = s.candidate;
		}
	}
	if (s.n != best_size) {
		release(&s);
		if ((rc = prepare(&s, m, p, best_size, available, err)))
			goto done;
	}
	s.candidate = best;
	const struct rfl_gpu_work w = { .enqueue = multiply, .ctx = &s, .amount = flops_of(s.n) };

	rc = rfl_gpu_bench_run(m->bench, &w, false, ret, err);
	*n = best_size;
done:
	release(&s);
	return rc;
}
