/* planned_rig.h - arrays of values for the tests of the planned engine's loops and kernels. */
#ifndef RFL_TESTS_PLANNED_RIG_H
#define RFL_TESTS_PLANNED_RIG_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/planned/cuda/arguments.h"
#include "tests/unit/ieee_unpack.h"
#include "tests/unit/rfl_test.h"

/* Types are enum rfl_value, of which enum rfl_host_type has the first two. */
static inline size_t size_of(int type)
{
	return type == RFL_VALUE_F32 ? 4 : 2;
}

static inline const struct rfl_ieee *format_of(int type)
{
	return type == RFL_VALUE_F32    ? &rfl_ieee_fp32
	       : type == RFL_VALUE_BF16 ? &rfl_ieee_bf16
					: &rfl_ieee_fp16;
}

static inline double get(int type, const void *p, int64_t i)
{
	if (type == RFL_VALUE_F32)
		return (double)((const float *)p)[i];
	return ieee_unpack(format_of(type), ((const uint16_t *)p)[i]);
}

static inline void put(int type, void *p, int64_t i, double value)
{
	if (type == RFL_VALUE_F32)
		((float *)p)[i] = (float)value;
	else
		((uint16_t *)p)[i] = (uint16_t)rfl_ieee_pack(format_of(type), value);
}

static inline void *room(size_t bytes)
{
	void *p = aligned_alloc(64, bytes ? (bytes + 63) / 64 * 64 : 64);

	assert_non_null(p);
	memset(p, 0x55, bytes);
	return p;
}

/* Numbers from -1 to 1, the same for the same seed. */
static inline double noise(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return (double)(*seed >> 8) * 0x1p-23 - 1;
}

/* Uniform within `spread` of `centre`. */
static inline void *values(int type, int64_t n, uint32_t seed, double centre, double spread)
{
	void *p = room((size_t)n * size_of(type));

	for (int64_t i = 0; i < n; i++)
		put(type, p, i, centre + spread * noise(&seed));
	return p;
}

static inline void *copy_of(const void *p, size_t bytes)
{
	return memcpy(room(bytes), p, bytes);
}

#endif
