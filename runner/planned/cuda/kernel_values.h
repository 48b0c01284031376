/*
 * kernel_values.h - what the kernels of arguments.h share. They are in kernel_*.h, in the common
 * subset of C11 and CUDA C++. Compiled by NVRTC, from one text of all these files, a kernel shares
 * its units among all threads, and the type of values is RFL_KERNEL_TYPE, a constant on which
 * branches vanish. Compiled as C, by twins.c, it handles one unit after the other.
 *
 * Most kernels handle packs: neighbouring units, of which 16 bytes are moved at once. They are
 * written once for `width` units, a constant that is 1 where packs do not fit.
 */
#ifndef RFL_RUNNER_PLANNED_CUDA_KERNEL_VALUES_H
#define RFL_RUNNER_PLANNED_CUDA_KERNEL_VALUES_H

#ifdef __CUDACC_RTC__
#define INLINE     static __device__ __forceinline__
#define ALIASED(n) __align__(n)
#define KERNEL(name) \
	extern "C" __global__ void rfl_k_##name(const __grid_constant__ struct rfl_k_##name k)
#define FIRST    ((int64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP     ((int64_t)gridDim.x * blockDim.x)
#define TYPE(k)  RFL_KERNEL_TYPE
#define UNROLLED _Pragma("unroll 8")
#else
#include <math.h>

#include "base/compiler.h"
#include "runner/planned/cuda/arguments.h"

#define INLINE       static inline
#define ALIASED(n)   RFL_ALIGNED(n) RFL_MAY_ALIAS
#define KERNEL(name) static void rfl_k_##name(const struct rfl_k_##name k)
#define FIRST        0
#define STEP         1
#define TYPE(k)      ((k)->type)
#define UNROLLED
#endif

/* Units of a pack: 16 bytes of values, or of floats. */
#define WIDE(type) ((type) == RFL_VALUE_F32 ? 4 : 8)
#define FLOATS     4
#define DEEP       4 /* rows that are read before one is added */

#define INFINITE as_float(0x7f800000)

/* Define a kernel from name_at(k, i), which handles unit i. */
#define UNITS(name)                                         \
	KERNEL(name)                                        \
	{                                                   \
		for (int64_t i = FIRST; i < k.n; i += STEP) \
			name##_at(&k, i);                   \
	}

/* Define a kernel from name_at(k, i, width), which handles the units from i: in packs of `wide`,
 * and the rest, or all if packs do not fit, one by one. */
#define PACKS(name, wide, fit)                                            \
	KERNEL(name)                                                      \
	{                                                                 \
		const int64_t packs = (fit) ? k.n / (wide) : 0;           \
		const int64_t jobs = k.n - packs * ((wide)-1);            \
                                                                          \
		for (int64_t t = FIRST; t < jobs; t += STEP)              \
			if (t < packs)                                    \
				name##_at(&k, t *(wide), wide);           \
			else                                              \
				name##_at(&k, t + packs * ((wide)-1), 1); \
	}

/* ---- values ---- */

union word {
	float value;
	uint32_t bits;
};

INLINE float as_float(uint32_t bits)
{
	union word w;

	w.bits = bits;
	return w.value;
}

INLINE uint32_t as_bits(float value)
{
	union word w;

	w.value = value;
	return w.bits;
}

#ifdef __CUDACC_RTC__
INLINE float from_f16(uint16_t bits)
{
	float value;

	asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
	return value;
}

INLINE uint16_t to_f16(float value)
{
	uint16_t bits;

	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
	return bits;
}
#else
INLINE float from_f16(uint16_t bits)
{
	const uint32_t sign = (uint32_t)(bits & 0x8000) << 16, size = (uint32_t)(bits & 0x7fff)
								      << 13;
	const uint32_t infinite = size >= 0x0f800000 ? 0x7f800000 : 0;

	return as_float(sign | infinite | as_bits(as_float(size) * 0x1p112f));
}

/* A subnormal number is rounded by the addition of 0.5, where floats are as far apart. */
INLINE uint16_t to_f16(float value)
{
	const uint32_t sign = as_bits(value) >> 16 & 0x8000, size = as_bits(value) & 0x7fffffff;
	uint32_t bits;

	if (size > 0x7f800000)
		return 0x7fff;
	if (size >= 0x477ff000) /* rounds to 2^16 or more */
		bits = 0x7c00;
	else if (size < 0x38800000)
		bits = as_bits(as_float(size) + 0.5f) - 0x3f000000;
	else
		bits = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
	return (uint16_t)(sign | bits);
}
#endif

INLINE uint16_t to_bf16(float value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
	uint16_t bits;

	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
	return bits;
#else
	const uint32_t bits = as_bits(value), rounded = bits + 0x7fff + (bits >> 16 & 1);

	return (uint16_t)((value != value ? bits | 0x400000 : rounded) >> 16);
#endif
}

INLINE float widened(int type, uint16_t bits)
{
	return type == RFL_VALUE_BF16 ? as_float((uint32_t)bits << 16) : from_f16(bits);
}

INLINE uint16_t narrowed(int type, float value)
{
	return type == RFL_VALUE_BF16 ? to_bf16(value) : to_f16(value);
}

INLINE float load_one(int type, const void *p, int64_t i)
{
	if (type == RFL_VALUE_F32)
		return ((const float *)p)[i];
	return widened(type, ((const uint16_t *)p)[i]);
}

INLINE void store_one(int type, void *p, int64_t i, float value)
{
	if (type == RFL_VALUE_F32)
		((float *)p)[i] = value;
	else
		((uint16_t *)p)[i] = narrowed(type, value);
}

/* ---- packs ---- */

struct pack {
	float at[8];
};

/* 32-bit words of a pack in memory, and what is moved at once. */
struct words {
	uint32_t at[8];
};
struct ALIASED(16) quad {
	uint32_t at[4];
};
struct ALIASED(8) pair {
	uint32_t at[2];
};
struct ALIASED(4) single {
	uint32_t at[1];
};

INLINE struct words load_words(const void *p, int count)
{
	struct words w = { { 0 } };

	for (int j = 0; j + 3 < count; j += 4) {
		const struct quad q = ((const struct quad *)p)[j / 4];

		for (int m = 0; m < 4; m++)
			w.at[j + m] = q.at[m];
	}
	if (count == 2) {
		const struct pair q = *(const struct pair *)p;

		w.at[0] = q.at[0];
		w.at[1] = q.at[1];
	}
	if (count == 1)
		w.at[0] = ((const struct single *)p)->at[0];
	return w;
}

INLINE void store_words(void *p, struct words w, int count)
{
	for (int j = 0; j + 3 < count; j += 4) {
		struct quad q;

		for (int m = 0; m < 4; m++)
			q.at[m] = w.at[j + m];
		((struct quad *)p)[j / 4] = q;
	}
	if (count == 2) {
		struct pair q;

		q.at[0] = w.at[0];
		q.at[1] = w.at[1];
		*(struct pair *)p = q;
	}
	if (count == 1)
		((struct single *)p)->at[0] = w.at[0];
}

/* `width` numbers of 16 bits from number i, two to a word. */
INLINE struct words load_shorts(const void *p, int64_t i, int width)
{
	struct words w = { { 0 } };

	if (width > 1)
		return load_words((const uint16_t *)p + i, width / 2);
	w.at[0] = ((const uint16_t *)p)[i];
	return w;
}

INLINE void store_shorts(void *p, int64_t i, struct words w, int width)
{
	if (width > 1)
		store_words((uint16_t *)p + i, w, width / 2);
	else
		((uint16_t *)p)[i] = (uint16_t)w.at[0];
}

INLINE uint16_t short_of(struct words w, int j)
{
	return (uint16_t)(w.at[j / 2] >> 16 * (j % 2));
}

/* `width` bytes from byte i, four to a word. */
INLINE struct words load_bytes(const uint8_t *p, int64_t i, int width)
{
	struct words w = { { 0 } };

	if (width > 1)
		return load_words(p + i, width / 4);
	w.at[0] = p[i];
	return w;
}

INLINE void store_bytes(uint8_t *p, int64_t i, struct words w, int width)
{
	if (width > 1)
		store_words(p + i, w, width / 4);
	else
		p[i] = (uint8_t)w.at[0];
}

INLINE uint8_t byte_of(struct words w, int j)
{
	return (uint8_t)(w.at[j / 4] >> 8 * (j % 4));
}

INLINE struct pack load(int type, const void *p, int64_t i, int width)
{
	struct pack v = { { 0 } };
	struct words w;

	if (width == 1) {
		v.at[0] = load_one(type, p, i);
	} else if (type == RFL_VALUE_F32) {
		w = load_words((const float *)p + i, width);
		for (int j = 0; j < width; j++)
			v.at[j] = as_float(w.at[j]);
	} else {
		w = load_shorts(p, i, width);
		for (int j = 0; j < width; j++)
			v.at[j] = widened(type, short_of(w, j));
	}
	return v;
}

INLINE void store(int type, void *p, int64_t i, struct pack v, int width)
{
	struct words w = { { 0 } };

	if (width == 1) {
		store_one(type, p, i, v.at[0]);
	} else if (type == RFL_VALUE_F32) {
		for (int j = 0; j < width; j++)
			w.at[j] = as_bits(v.at[j]);
		store_words((float *)p + i, w, width);
	} else {
		for (int j = 0; j < width; j++)
			w.at[j / 2] |= (uint32_t)narrowed(type, v.at[j]) << 16 * (j % 2);
		store_shorts(p, i, w, width);
	}
}

/* i + further, or i if that is not before the end. Loops load several packs from there before they
 * use one, and ignore those that were not: a load in a branch would wait for the one before. */
INLINE int64_t within(int64_t i, int64_t further, int64_t end)
{
	return i + further < end ? i + further : i;
}

INLINE struct pack load_floats(const float *p, int64_t i, int width)
{
	return load(RFL_VALUE_F32, p, i, width);
}

INLINE void store_floats(float *p, int64_t i, struct pack v, int width)
{
	store(RFL_VALUE_F32, p, i, v, width);
}

INLINE struct pack sum_of(struct pack a, struct pack b, int width)
{
	for (int j = 0; j < width; j++)
		a.at[j] += b.at[j];
	return a;
}

/* The columns' numbers for the elements from i. */
INLINE struct pack load_columns(const float *p, int64_t i, int64_t columns, int width)
{
	int64_t column = i % columns;
	struct pack v = { { 0 } };

	if (columns % width == 0)
		return load_floats(p, column, width);
	for (int j = 0; j < width; j++) {
		v.at[j] = p[column];
		column = column + 1 < columns ? column + 1 : 0;
	}
	return v;
}

/* ---- activations that are fused ---- */

/* As enum rfl_plan_activation. */
enum { RELU = 1, RELU6 = 2 };

/* NaN stays. */
INLINE float clamp(float v, float low, float high)
{
	v = v < low ? low : v;
	return v > high ? high : v;
}

INLINE float activated(int activation, float v)
{
	return activation == RELU6 ? clamp(v, 0, 6) : activation == RELU && v < 0 ? 0 : v;
}

#endif
