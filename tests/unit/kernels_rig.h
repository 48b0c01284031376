/* kernels_rig.h - running the kernels' CPU twins in tests. */
#ifndef RFL_TESTS_KERNELS_RIG_H
#define RFL_TESTS_KERNELS_RIG_H

#include "base/compiler.h"
#include "runner/planned/cuda/twins.h"
#include "tests/unit/planned_rig.h"

enum { TYPES = 3, HOST_TYPES = 2 };

/* Run a kernel on its argument, struct rfl_k_<name>. */
#define RUN(name, ...)                                                         \
	do {                                                                   \
		const struct rfl_k_##name run_argument = __VA_ARGS__;          \
                                                                               \
		run_twin("rfl_k_" #name, &run_argument, sizeof(run_argument)); \
	} while (0)

static inline void run_twin(const char *name, const void *argument, size_t bytes)
{
	const struct rfl_twin *twin = rfl_twin_find(name);

	assert_non_null(twin);
	assert_int_equal(twin->argument_bytes, bytes);
	twin->run(argument);
}

/* A case's arrays, which free_kept() releases. */
static struct {
	void *array[64];
	size_t n;
} kept_arrays;

static inline void *kept(void *p)
{
	assert_true(kept_arrays.n < RFL_ARRAY_LEN(kept_arrays.array));
	return kept_arrays.array[kept_arrays.n++] = p;
}

static inline void free_kept(void)
{
	while (kept_arrays.n > 0)
		free(kept_arrays.array[--kept_arrays.n]);
}

static inline void *some(int type, int64_t n, uint32_t seed, double centre, double spread)
{
	return kept(values(type, n, seed, centre, spread));
}

static inline void *empty(int type, int64_t n)
{
	return kept(room((size_t)n * size_of(type)));
}

static inline float *floats(int64_t n)
{
	return empty(RFL_VALUE_F32, n);
}

static inline void *again(int type, const void *p, int64_t n)
{
	return kept(copy_of(p, (size_t)n * size_of(type)));
}

/* Element i differs by at most the distance of two neighbours of the type, since `want` may be
 * rounded too, and by 2^-20 of the terms of its sum. */
static inline void check_near(int type, const void *got, int64_t i, double want, double terms)
{
	const double eps = type == RFL_VALUE_F32    ? 0x1p-22
			   : type == RFL_VALUE_BF16 ? 0x1p-7
						    : 0x1p-10;
	const double least = type == RFL_VALUE_F16 ? 0x1p-25 : 1e-37, value = get(type, got, i);

	if (!(fabs(value - want) <= eps * fabs(want) + 0x1p-20 * terms + least))
		fail_msg("type %d: element %lld is %.9g, not %.9g", type, (long long)i, value,
			 want);
}

static inline void check_floats(const float *got, const float *want, int64_t n, double rel)
{
	for (int64_t i = 0; i < n; i++)
		assert_close((double)got[i], (double)want[i], rel);
}

static inline void check_same(int type, const void *got, const void *want, int64_t n)
{
	assert_memory_equal(got, want, (size_t)n * size_of(type));
}

/* An image, and how many chunks its rows are summed in. */
struct shape {
	int type;
	int64_t rows, columns, chunks, n;
};

/* Call a test for shapes with odd columns, columns of packs, one row, and more chunks than rows. */
static inline void for_shapes(int types, void (*test)(const struct shape *s))
{
	static const int64_t columns[] = { 1, 3, 8, 24, 58, 130 }, rows[] = { 1, 7, 203 };
	static const int64_t chunks[] = { 1, 5, 32 };

	for (int type = 0; type < types; type++)
		for (size_t c = 0; c < RFL_ARRAY_LEN(columns); c++)
			for (size_t r = 0; r < RFL_ARRAY_LEN(rows); r++) {
				test(&(struct shape){ .type = type,
						      .rows = rows[r],
						      .columns = columns[c],
						      .chunks = chunks[(c + r) % 3],
						      .n = rows[r] * columns[c] });
				free_kept();
			}
}

#endif
