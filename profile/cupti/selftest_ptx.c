/* selftest_ptx.c - the kernels of the self-test in PTX. */
#include "profile/cupti/impl.h"

#include "base/compiler.h"

/* Multiply-add units: four consecutive elements along k, 16 bytes. */
#define FMA(offset)                                                    \
	"\tld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1" offset "];\n" \
	"\tld.global.v4.f32 {%f4, %f5, %f6, %f7}, [%rd2" offset "];\n" \
	"\tfma.rn.f32 %f16, %f0, %f4, %f16;\n"                         \
	"\tfma.rn.f32 %f16, %f1, %f5, %f16;\n"                         \
	"\tfma.rn.f32 %f16, %f2, %f6, %f16;\n"                         \
	"\tfma.rn.f32 %f16, %f3, %f7, %f16;\n"

/* Tensor Cores: %r8 to %r11 are this thread's part of A, %r12 and %r13 its part of B. */
#define MMA(shape, type)                                                    \
	"\tmma.sync.aligned." shape ".row.col.f32." type "." type ".f32\n"  \
	"\t\t{%f0, %f1, %f2, %f3}, {%r8, %r9, %r10, %r11}, {%r12, %r13},\n" \
	"\t\t{%f0, %f1, %f2, %f3};\n"

/* Turing has only the product of half the depth: run it twice. */
static const char mma_f16_step[] =
	"\tmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32\n"
	"\t\t{%f0, %f1, %f2, %f3}, {%r8, %r9}, {%r12}, {%f0, %f1, %f2, %f3};\n"
	"\tmma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32\n"
	"\t\t{%f0, %f1, %f2, %f3}, {%r10, %r11}, {%r13}, {%f0, %f1, %f2, %f3};\n";

/* name, type, bytes of an element, capability, tile, threads, quantity, step */
static const struct rfl_selftest_kernel kernels[] = {
	{ "rfl_selftest_f32", RFL_SELFTEST_F32, 4, 75, 4, 32, 128, RFL_QUANTITY_FLOPS_FP32,
	  FMA("") FMA("+16") },
	{ "rfl_selftest_f16", RFL_SELFTEST_F16, 2, 75, 16, 8, 32, RFL_QUANTITY_FLOPS_TENSOR_FP16,
	  mma_f16_step },
	{ "rfl_selftest_bf16", RFL_SELFTEST_BF16, 2, 80, 16, 8, 32, RFL_QUANTITY_FLOPS_TENSOR_BF16,
	  MMA("m16n8k16", "bf16") },
	{ "rfl_selftest_tf32", RFL_SELFTEST_TF32, 4, 80, 16, 8, 32, RFL_QUANTITY_FLOPS_TENSOR_TF32,
	  MMA("m16n8k8", "tf32") },
};

/* One thread per element of C: a block has 4 rows of 32 elements. */
static const char fma_address[] = "\tshr.u32 %r5, %r1, 5;\n"
				  "\tmad.lo.u32 %r6, %r3, 4, %r5;\n" /* row */
				  "\tand.b32 %r5, %r1, 31;\n"
				  "\tmad.lo.u32 %r7, %r2, 32, %r5;\n" /* column */
				  "\tmul.wide.u32 %rd4, %r6, %r4;\n"
				  "\tadd.u64 %rd1, %rd1, %rd4;\n"
				  "\tmul.wide.u32 %rd4, %r7, %r4;\n"
				  "\tadd.u64 %rd2, %rd2, %rd4;\n"
				  "\tmad.lo.u32 %r6, %r6, %r0, %r7;\n"
				  "\tmul.wide.u32 %rd4, %r6, 4;\n"
				  "\tadd.u64 %rd3, %rd3, %rd4;\n"
				  "\tmov.f32 %f16, 0f00000000;\n";
static const char fma_store[] = "\tst.global.f32 [%rd3], %f16;\n";

/* A warp computes 16 x 8 elements of C: thread t holds rows t / 4 and t / 4 + 8, each with 4 bytes
 * of k at 4 x (t % 4) and 16 bytes later, and 2 adjacent elements of C. */
static const char mma_address[] = "\tshr.u32 %r5, %r1, 2;\n"
				  "\tand.b32 %r14, %r1, 3;\n"
				  "\tmad.lo.u32 %r6, %r3, 16, %r5;\n" /* row */
				  "\tmad.lo.u32 %r7, %r2, 8, %r5;\n"  /* column of B */
				  "\tmul.wide.u32 %rd4, %r6, %r4;\n"
				  "\tmad.wide.u32 %rd4, %r14, 4, %rd4;\n"
				  "\tadd.u64 %rd1, %rd1, %rd4;\n"
				  "\tmul.wide.u32 %rd4, %r4, 8;\n"
				  "\tadd.u64 %rd5, %rd1, %rd4;\n" /* 8 rows below */
				  "\tmul.wide.u32 %rd4, %r7, %r4;\n"
				  "\tmad.wide.u32 %rd4, %r14, 4, %rd4;\n"
				  "\tadd.u64 %rd2, %rd2, %rd4;\n"
				  "\tshl.b32 %r7, %r14, 1;\n"
				  "\tmad.lo.u32 %r7, %r2, 8, %r7;\n" /* column of C */
				  "\tmad.lo.u32 %r6, %r6, %r0, %r7;\n"
				  "\tmul.wide.u32 %rd4, %r6, 4;\n"
				  "\tadd.u64 %rd3, %rd3, %rd4;\n"
				  "\tmov.f32 %f0, 0f00000000;\n"
				  "\tmov.f32 %f1, 0f00000000;\n"
				  "\tmov.f32 %f2, 0f00000000;\n"
				  "\tmov.f32 %f3, 0f00000000;\n";
static const char mma_load[] = "\tld.global.u32 %r8, [%rd1];\n"
			       "\tld.global.u32 %r9, [%rd5];\n"
			       "\tld.global.u32 %r10, [%rd1+16];\n"
			       "\tld.global.u32 %r11, [%rd5+16];\n"
			       "\tld.global.u32 %r12, [%rd2];\n"
			       "\tld.global.u32 %r13, [%rd2+16];\n";
static const char mma_store[] = "\tst.global.v2.f32 [%rd3], {%f0, %f1};\n"
				"\tmul.wide.u32 %rd4, %r0, 32;\n" /* 8 rows of 4 bytes each */
				"\tadd.u64 %rd3, %rd3, %rd4;\n"
				"\tst.global.v2.f32 [%rd3], {%f2, %f3};\n";

const struct rfl_selftest_kernel *rfl_selftest_kernel_at(size_t i)
{
	return i < RFL_ARRAY_LEN(kernels) ? &kernels[i] : NULL;
}

void rfl_selftest_ptx(const struct rfl_selftest_kernel *k, struct rfl_buf *out)
{
	const bool fma = k->type == RFL_SELFTEST_F32;

	rfl_buf_printf(out,
		       ".version %s\n.target sm_%d\n.address_size 64\n\n"
		       ".visible .entry %s(.param .u64 a, .param .u64 b, .param .u64 c,\n"
		       "\t.param .u32 columns, .param .u32 depth)\n"
		       "{\n"
		       "\t.reg .pred %%p;\n"
		       "\t.reg .b32 %%r<16>;\n"
		       "\t.reg .b64 %%rd<6>;\n"
		       "\t.reg .f32 %%f<17>;\n\n"
		       "\tld.param.u64 %%rd1, [a];\n"
		       "\tld.param.u64 %%rd2, [b];\n"
		       "\tld.param.u64 %%rd3, [c];\n"
		       "\tld.param.u32 %%r0, [columns];\n"
		       "\tld.param.u32 %%r4, [depth];\n"
		       "\tmov.u32 %%r1, %%tid.x;\n"
		       "\tmov.u32 %%r2, %%ctaid.x;\n"
		       "\tmov.u32 %%r3, %%ctaid.y;\n",
		       k->min_capability < 80 ? "6.5" : "7.0", k->min_capability, k->name);
	rfl_buf_puts(out, fma ? fma_address : mma_address);
	rfl_buf_puts(out, "turn:\n");
	rfl_buf_puts(out, fma ? "" : mma_load);
	rfl_buf_puts(out, k->step);
	rfl_buf_puts(out, "\tadd.u64 %rd1, %rd1, 32;\n\tadd.u64 %rd2, %rd2, 32;\n");
	rfl_buf_puts(out, fma ? "" : "\tadd.u64 %rd5, %rd5, 32;\n");
	rfl_buf_puts(out, "\tsub.u32 %r4, %r4, 32;\n"
			  "\tsetp.ne.u32 %p, %r4, 0;\n"
			  "\t@%p bra turn;\n");
	rfl_buf_puts(out, fma ? fma_store : mma_store);
	rfl_buf_puts(out, "\tret;\n}\n");
}

void rfl_selftest_copy_ptx(struct rfl_buf *out)
{
	rfl_buf_printf(out,
		       ".version 6.5\n.target sm_75\n.address_size 64\n\n"
		       ".visible .entry " RFL_SELFTEST_COPY "(.param .u64 to, .param .u64 from)\n"
		       "{\n"
		       "\t.reg .b32 %%r<6>;\n"
		       "\t.reg .b64 %%rd<4>;\n\n"
		       "\tld.param.u64 %%rd1, [to];\n"
		       "\tld.param.u64 %%rd2, [from];\n"
		       "\tmov.u32 %%r0, %%tid.x;\n"
		       "\tmov.u32 %%r1, %%ctaid.x;\n"
		       "\tmul.wide.u32 %%rd3, %%r1, %d;\n"
		       "\tmad.wide.u32 %%rd3, %%r0, 16, %%rd3;\n"
		       "\tadd.u64 %%rd1, %%rd1, %%rd3;\n"
		       "\tadd.u64 %%rd2, %%rd2, %%rd3;\n"
		       "\tld.global.v4.u32 {%%r2, %%r3, %%r4, %%r5}, [%%rd2];\n"
		       "\tst.global.v4.u32 [%%rd1], {%%r2, %%r3, %%r4, %%r5};\n"
		       "\tret;\n"
		       "}\n",
		       RFL_SELFTEST_COPY_BYTES);
}
