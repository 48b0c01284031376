/* gpu_kernels.c - the table of the loops for GPUs, their PTX, and their operands. */
#include "peaks/gpu_kernels.h"

#include <string.h>

#include "base/compiler.h"

#define MOVE(id, kind_, arrays, summary_)                                                \
	{                                                                                \
		.name = "rfl_" id, .summary = summary_, .key = "DRAM", .kind = kind_,    \
		.min_capability = 75, .bytes_per_turn = (arrays) * (double)RFL_GPU_CHUNK \
	}
/* With a factor of -1 and a summand of 1, x alternates between two values and never settles.
 * @param lanes  numbers in a register */
#define FMA(dtype, capability, type_, acc, op_, bits_, lanes, minus_one, one)                \
	{                                                                                    \
		.name = "rfl_fma_" dtype, .summary = dtype " multiply-adds in registers",    \
		.key = dtype ".vector", .kind = RFL_GPU_FMA, .min_capability = (capability), \
		.type = (type_), .accumulate = (acc), .op = "fma.rn." op_, .bits = (bits_),  \
		.flops_per_turn =                                                            \
			2.0 * (lanes)*RFL_GPU_CHAINS * RFL_GPU_FMA_UNROLL * RFL_GPU_THREADS, \
		.words = {                                                                   \
			minus_one,                                                           \
			one                                                                  \
		}                                                                            \
	}
/* Every second product is subtracted (its B has other signs), so that sums stay small. */
#define MMA(id, key_, capability, type_, acc, m, n, k, types, bits_, a_, b_, c_, sign)          \
	{                                                                                       \
		.name = "rfl_mma_" id, .summary = "mma m" #m "n" #n "k" #k " in registers",     \
		.key = (key_), .kind = RFL_GPU_MMA, .min_capability = (capability),             \
		.type = (type_), .accumulate = (acc),                                           \
		.op = "mma.sync.aligned.m" #m "n" #n "k" #k ".row.col." types, .bits = (bits_), \
		.flops_per_turn = 2.0 * (m) * (n) * (k)*RFL_GPU_CHAINS * RFL_GPU_MMA_UNROLL *   \
				  RFL_GPU_THREADS / 32,                                         \
		.a = (a_), .b = (b_), .c = (c_), .words = {                                     \
			sign,                                                                   \
			0                                                                       \
		}                                                                               \
	}

/* Of several loops for a key, the last that the device has is used, except for DRAM. */
static const struct rfl_gpu_kernel kernels[] = {
	MOVE("read", RFL_GPU_READ, 1, "read"),
	MOVE("write", RFL_GPU_WRITE, 1, "write"),
	MOVE("copy", RFL_GPU_COPY, 2, "copy"),
	MOVE("triad", RFL_GPU_TRIAD, 3, "triad"),
	FMA("fp64", 75, RFL_GPU_F64, "fp64", "f64", 64, 1, 0xbff0000000000000, 0x3ff0000000000000),
	FMA("fp32", 75, RFL_GPU_F32, "fp32", "f32", 32, 1, 0xbf800000, 0x3f800000),
	FMA("fp16", 75, RFL_GPU_F16, "fp16", "f16x2", 32, 2, 0xbc00bc00, 0x3c003c00),
	FMA("bf16", 80, RFL_GPU_BF16, NULL, "bf16x2", 32, 2, 0xbf80bf80, 0x3f803f80),
	MMA("fp64_8", "fp64.matrix", 80, RFL_GPU_F64, "fp64", 8, 8, 4, "f64.f64.f64.f64", 64, 1, 1,
	    2, 1ull << 63),
	MMA("fp64_16", "fp64.matrix", 90, RFL_GPU_F64, "fp64", 16, 8, 16, "f64.f64.f64.f64", 64, 8,
	    4, 4, 1ull << 63),
	MMA("tf32", "tf32.matrix", 80, RFL_GPU_F32, "fp32", 16, 8, 8, "f32.tf32.tf32.f32", 32, 4, 2,
	    4, 0x80000000),
	MMA("fp16_8", "fp16.matrix", 75, RFL_GPU_F16, "fp32", 16, 8, 8, "f32.f16.f16.f32", 32, 2, 1,
	    4, 0x80008000),
	MMA("fp16_16", "fp16.matrix", 80, RFL_GPU_F16, "fp32", 16, 8, 16, "f32.f16.f16.f32", 32, 4,
	    2, 4, 0x80008000),
	MMA("fp16acc_8", "fp16.matrix.fp16acc", 75, RFL_GPU_F16, "fp16", 16, 8, 8,
	    "f16.f16.f16.f16", 32, 2, 1, 2, 0x80008000),
	MMA("fp16acc_16", "fp16.matrix.fp16acc", 80, RFL_GPU_F16, "fp16", 16, 8, 16,
	    "f16.f16.f16.f16", 32, 4, 2, 2, 0x80008000),
	MMA("bf16", "bf16.matrix", 80, RFL_GPU_BF16, "fp32", 16, 8, 16, "f32.bf16.bf16.f32", 32, 4,
	    2, 4, 0x80008000),
	MMA("int8_16", "int8.matrix", 75, RFL_GPU_I8, "int32", 8, 8, 16, "s32.s8.s8.s32", 32, 1, 1,
	    2, 0),
	MMA("int8_32", "int8.matrix", 80, RFL_GPU_I8, "int32", 16, 8, 32, "s32.s8.s8.s32", 32, 4, 2,
	    4, 0),
};

const struct rfl_gpu_kernel *rfl_gpu_kernel_at(size_t i)
{
	return i < RFL_ARRAY_LEN(kernels) ? &kernels[i] : NULL;
}

bool rfl_gpu_mma_is_full(const char *key, int capability)
{
	return capability < 90 || capability >= 120 || strcmp(key, "fp64.matrix") == 0;
}

/* ---- PTX ---- */

/* Registers: %rd0 to %rd2 to, from, other; %rd3 size, %rd4 turns; %r0 word, %r1 thread; %acc is
 * compared with word at the end. */
static const char head[] = "\tld.param.u64 %rd0, [to];\n"
			   "\tld.param.u64 %rd1, [from];\n"
			   "\tld.param.u64 %rd2, [other];\n"
			   "\tld.param.u64 %rd3, [size];\n"
			   "\tld.param.u64 %rd4, [turns];\n"
			   "\tld.param.b32 %r0, [word];\n"
			   "\tmov.u32 %r1, %tid.x;\n"
			   "\tmov.b32 %acc, 0;\n";

static const char loop[] = "\t.pragma \"nounroll\";\n"
			   "turn:\n";

static const char tail[] = "\tsub.u64 %rd4, %rd4, 1;\n"
			   "\tsetp.ne.u64 %p, %rd4, 0;\n"
			   "\t@%p bra turn;\n";

/* %rd5: offset of this block's chunk; %rd6: distance to its next chunk, both less than size. */
static const char chunks[] = "\tmul.wide.u32 %rd7, %r1, 16;\n"
			     "\tadd.u64 %rd0, %rd0, %rd7;\n"
			     "\tadd.u64 %rd1, %rd1, %rd7;\n"
			     "\tadd.u64 %rd2, %rd2, %rd7;\n"
			     "\tmov.u32 %r2, %ctaid.x;\n"
			     "\tmul.wide.u32 %rd5, %r2, 16384;\n"
			     "\trem.u64 %rd5, %rd5, %rd3;\n"
			     "\tmov.u32 %r2, %nctaid.x;\n"
			     "\tmul.wide.u32 %rd6, %r2, 16384;\n"
			     "\trem.u64 %rd6, %rd6, %rd3;\n";

static const char next_chunk[] = "\tadd.u64 %rd5, %rd5, %rd6;\n"
				 "\tsetp.ge.u64 %p, %rd5, %rd3;\n"
				 "\t@%p sub.u64 %rd5, %rd5, %rd3;\n";

/* Load four vectors into %v<first>... of the array at %rd<array>. */
static void load(struct rfl_buf *out, int array, int first)
{
	rfl_buf_printf(out, "\tadd.u64 %%rd7, %%rd%d, %%rd5;\n", array);
	for (int i = 0; i < 4; i++)
		rfl_buf_printf(out,
			       "\tld.global.cg.v4.b32 {%%v%d, %%v%d, %%v%d, %%v%d}, [%%rd7+%d];\n",
			       first + 4 * i, first + 4 * i + 1, first + 4 * i + 2,
			       first + 4 * i + 3, i * RFL_GPU_CHUNK / 4);
}

static void move(const struct rfl_gpu_kernel *k, struct rfl_buf *out)
{
	rfl_buf_puts(out, chunks);
	for (int i = 0; i < 16 && k->kind == RFL_GPU_WRITE; i++)
		rfl_buf_printf(out, "\tmov.b32 %%v%d, %%r0;\n", i);
	rfl_buf_puts(out, loop);
	if (k->kind != RFL_GPU_WRITE)
		load(out, 1, 0);
	if (k->kind == RFL_GPU_TRIAD)
		load(out, 2, 16);
	for (int i = 0; i < 16; i++)
		if (k->kind == RFL_GPU_READ)
			rfl_buf_printf(out, "\txor.b32 %%acc, %%acc, %%v%d;\n", i);
		else if (k->kind == RFL_GPU_TRIAD)
			rfl_buf_printf(out, "\tfma.rn.f32 %%v%d, %%v%d, %%r0, %%v%d;\n", i, i + 16,
				       i);
	if (k->kind != RFL_GPU_READ)
		rfl_buf_puts(out, "\tadd.u64 %rd7, %rd0, %rd5;\n");
	for (int i = 0; i < 4 && k->kind != RFL_GPU_READ; i++)
		rfl_buf_printf(out,
			       "\tst.global.v4.b32 [%%rd7+%d], {%%v%d, %%v%d, %%v%d, %%v%d};\n",
			       i * RFL_GPU_CHUNK / 4, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
	rfl_buf_puts(out, next_chunk);
}

/* Load the registers `name`0 to `name`<n - 1> of a thread from %rd<array>, and advance it past
 * those of all threads. */
static void operands(struct rfl_buf *out, int array, const char *name, int n, int bits)
{
	rfl_buf_printf(out, "\tmad.wide.u32 %%rd7, %%r1, %d, %%rd%d;\n", n * bits / 8, array);
	for (int i = 0; i < n; i++)
		rfl_buf_printf(out, "\tld.global.b%d %s%d, [%%rd7+%d];\n", bits, name, i,
			       i * bits / 8);
	rfl_buf_printf(out, "\tadd.u64 %%rd%d, %%rd%d, %d;\n", array, array,
		       n * bits / 8 * RFL_GPU_THREADS);
}

static void chains(const struct rfl_gpu_kernel *k, struct rfl_buf *out)
{
	operands(out, 1, "%x", RFL_GPU_CHAINS, k->bits);
	rfl_buf_printf(out, "\tld.global.b%d %%a0, [%%rd2];\n\tld.global.b%d %%b0, [%%rd2+8];\n",
		       k->bits, k->bits);
	rfl_buf_puts(out, loop);
	for (int i = 0; i < RFL_GPU_CHAINS * RFL_GPU_FMA_UNROLL; i++)
		rfl_buf_printf(out, "\t%s %%x%d, %%x%d, %%a0, %%b0;\n", k->op, i % RFL_GPU_CHAINS,
			       i % RFL_GPU_CHAINS);
}

/* A list of registers: "{%x0, %x1}". */
static void list(struct rfl_buf *out, const char *name, int first, int n)
{
	for (int i = 0; i < n; i++)
		rfl_buf_printf(out, "%s%s%d", i == 0 ? "{" : ", ", name, first + i);
	rfl_buf_putc(out, '}');
}

static void products(const struct rfl_gpu_kernel *k, struct rfl_buf *out)
{
	operands(out, 1, "%a", k->a, k->bits);
	operands(out, 1, "%b", k->b, k->bits);
	rfl_buf_printf(out, "\tld.global.b%d %%sign, [%%rd2];\n", k->bits);
	for (int i = 0; i < k->b; i++)
		rfl_buf_printf(out, "\txor.b%d %%n%d, %%b%d, %%sign;\n", k->bits, i, i);
	for (int i = 0; i < RFL_GPU_CHAINS * k->c; i++)
		rfl_buf_printf(out, "\tmov.b%d %%x%d, 0;\n", k->bits, i);
	rfl_buf_puts(out, loop);
	for (int i = 0; i < RFL_GPU_CHAINS * RFL_GPU_MMA_UNROLL; i++) {
		const int sum = i % RFL_GPU_CHAINS * k->c;

		rfl_buf_printf(out, "\t%s\n\t\t", k->op);
		list(out, "%x", sum, k->c);
		rfl_buf_puts(out, ", ");
		list(out, "%a", 0, k->a);
		rfl_buf_puts(out, ", ");
		list(out, i / RFL_GPU_CHAINS % 2 ? "%n" : "%b", 0, k->b);
		rfl_buf_puts(out, ", ");
		list(out, "%x", sum, k->c);
		rfl_buf_puts(out, ";\n");
	}
}

/* Every chain must reach the store, or a compiler could drop it. */
static void combine(const struct rfl_gpu_kernel *k, struct rfl_buf *out)
{
	const int n = RFL_GPU_CHAINS * (k->kind == RFL_GPU_MMA ? k->c : 1);

	for (int i = 0; i < n; i++) {
		if (k->bits == 64)
			rfl_buf_printf(out,
				       "\tmov.b64 {%%r2, %%r3}, %%x%d;\n"
				       "\txor.b32 %%acc, %%acc, %%r2;\n"
				       "\txor.b32 %%acc, %%acc, %%r3;\n",
				       i);
		else
			rfl_buf_printf(out, "\txor.b32 %%acc, %%acc, %%x%d;\n", i);
	}
}

void rfl_gpu_ptx(const struct rfl_gpu_kernel *k, struct rfl_buf *out)
{
	const bool arithmetic = k->kind == RFL_GPU_FMA || k->kind == RFL_GPU_MMA;

	rfl_buf_printf(out,
		       ".version %s\n.target sm_%d\n.address_size 64\n\n"
		       ".visible .entry %s(.param .u64 to, .param .u64 from, .param .u64 other,\n"
		       "\t.param .u64 size, .param .u64 turns, .param .b32 word)\n"
		       ".maxntid %d, 1, 1\n"
		       "{\n"
		       "\t.reg .pred %%p;\n"
		       "\t.reg .b32 %%r<4>, %%acc, %%v<32>;\n"
		       "\t.reg .b64 %%rd<8>;\n",
		       k->min_capability < 80   ? "6.5"
		       : k->min_capability < 90 ? "7.0"
						: "7.8",
		       k->min_capability, k->name, (int)RFL_GPU_THREADS);
	if (arithmetic)
		rfl_buf_printf(out, "\t.reg .b%d %%x<32>, %%a<8>, %%b<4>, %%n<4>, %%sign;\n",
			       k->bits);
	rfl_buf_puts(out, head);
	if (k->kind == RFL_GPU_FMA)
		chains(k, out);
	else if (k->kind == RFL_GPU_MMA)
		products(k, out);
	else
		move(k, out);
	rfl_buf_puts(out, tail);
	if (arithmetic)
		combine(k, out);
	rfl_buf_puts(out, "\tsetp.eq.b32 %p, %acc, %r0;\n"
			  "\t@%p st.global.b32 [%rd0], %acc;\n"
			  "\tret;\n}\n");
}

/* ---- operands ---- */

/* Bytes, bits of the mantissa, bias of the exponent; bias 0: integers. */
static const struct {
	size_t bytes;
	int mantissa, bias;
} types[] = {
	[RFL_GPU_F64] = { 8, 52, 1023 }, [RFL_GPU_F32] = { 4, 23, 127 },
	[RFL_GPU_F16] = { 2, 10, 15 },   [RFL_GPU_BF16] = { 2, 7, 127 },
	[RFL_GPU_E4M3] = { 1, 3, 7 },    [RFL_GPU_I8] = { 1, 7, 0 },
};

size_t rfl_gpu_type_bytes(enum rfl_gpu_type type)
{
	return types[type].bytes;
}

void rfl_gpu_fill(enum rfl_gpu_type type, void *to, size_t bytes)
{
	const size_t size = types[type].bytes;
	const uint64_t mantissa = (UINT64_C(1) << types[type].mantissa) - 1;
	const uint64_t sign = UINT64_C(1) << (8 * size - 1);
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15), value;

	for (size_t i = 0; i + size <= bytes; i += size) {
		/* xorshift64, by G. Marsaglia */
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		value = random & (sign | mantissa);
		if (types[type].bias)
			value |= ((uint64_t)types[type].bias - 4 + (random >> 57 & 3))
				 << types[type].mantissa;
		for (size_t k = 0; k < size; k++)
			((unsigned char *)to)[i + k] = (unsigned char)(value >> 8 * k);
	}
}
