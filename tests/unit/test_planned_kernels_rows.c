/* The kernels' CPU twins: pooling, rows, columns, dropout. Sums of small integers are exact. */
#include <omp.h>

#include "data/random.h"
#include "runner/planned/host.h"
#include "tests/unit/kernels_rig.h"

/* ---- pooling ---- */

/* Kernels, strides and padding that overlap, leave gaps, reach beyond the image, and adapt. */
static const struct rfl_kernel_window windows[] = {
	{ .in = { 7, 9 },
	  .out = { 4, 5 },
	  .kernel = { 3, 3 },
	  .stride = { 2, 2 },
	  .pad = { 1, 1 } },
	{ .in = { 6, 5 }, .out = { 3, 2 }, .kernel = { 2, 2 }, .stride = { 2, 2 } },
	{ .in = { 7, 7 },
	  .out = { 4, 4 },
	  .kernel = { 2, 3 },
	  .stride = { 2, 2 },
	  .pad = { 0, 1 } },
	{ .in = { 5, 8 },
	  .out = { 5, 8 },
	  .kernel = { 3, 5 },
	  .stride = { 1, 1 },
	  .pad = { 1, 2 } },
	{ .in = { 8, 4 }, .out = { 3, 2 }, .kernel = { 1, 1 }, .stride = { 3, 2 } },
	{ .in = { 7, 7 }, .out = { 1, 1 }, .kernel = { 7, 7 }, .stride = { 7, 7 } },
	{ .in = { 7, 5 }, .out = { 3, 4 }, .unequal = 1 },
	{ .in = { 2, 3 }, .out = { 5, 7 }, .unequal = 1 },
	/* for maxima only */
	{ .in = { 9, 8 },
	  .out = { 7, 5 },
	  .kernel = { 3, 2 },
	  .stride = { 1, 2 },
	  .dilation = { 2, 3 },
	  .pad = { 1, 2 } },
};
enum { DILATED = RFL_ARRAY_LEN(windows) - 1 };

static const int64_t depths[] = { 1, 3, 8, 24 };

/* A window with `columns` columns; where there are none, dilations are 1. */
static struct rfl_kernel_window window_of(size_t i, int64_t columns)
{
	struct rfl_kernel_window w = windows[i];

	w.samples = 2;
	w.columns = columns;
	for (int axis = 0; axis < 2; axis++)
		w.dilation[axis] = w.dilation[axis] ? w.dilation[axis] : 1;
	return w;
}

static int64_t elements_of(const struct rfl_kernel_window *w, const int32_t *size)
{
	return w->samples * size[0] * size[1] * w->columns;
}

/* Integers from -8 to 8, with a NaN and infinities if asked for. */
static void *integers(int type, int64_t n, uint32_t seed, bool odd)
{
	void *const p = empty(type, n);

	for (int64_t i = 0; i < n; i++)
		put(type, p, i, floor(8 * noise(&seed)));
	for (int64_t i = 5; odd && i < n; i += 31)
		put(type, p, i, i % 2 ? (double)-INFINITY : (double)NAN);
	return p;
}

/* Where the window of output o begins along an axis, and how many positions it has. */
static int begin(const struct rfl_kernel_window *w, int axis, int o, int *count)
{
	const int in = w->in[axis], out = w->out[axis];

	*count =
		w->unequal ? (int)ceil((o + 1) * (double)in / out) - o * in / out : w->kernel[axis];
	return w->unequal ? o * in / out : o * w->stride[axis] - w->pad[axis];
}

struct maximum {
	int64_t at; /* in the image, or -1 */
	int place;
};

static bool is_larger(double a, double b)
{
	return a > b || (isnan(a) && !isnan(b));
}

/* The first of the largest in the window of the output with this index. */
static struct maximum search(int type, const void *x, const struct rfl_kernel_window *w, int64_t i)
{
	const int64_t column = i % w->columns, pixel = i / w->columns;
	const int64_t sample = pixel / w->out[1] / w->out[0];
	struct maximum best = { -1, 0 };
	int rows, columns;
	const int top = begin(w, 0, (int)(pixel / w->out[1] % w->out[0]), &rows);
	const int left = begin(w, 1, (int)(pixel % w->out[1]), &columns);

	for (int r = 0; r < rows; r++)
		for (int q = 0; q < columns; q++) {
			const int y = top + r * w->dilation[0], z = left + q * w->dilation[1];
			const int64_t at =
				((sample * w->in[0] + y) * w->in[1] + z) * w->columns + column;

			if (y < 0 || y >= w->in[0] || z < 0 || z >= w->in[1])
				continue;
			if (best.at < 0 || is_larger(get(type, x, at), get(type, x, best.at)))
				best = (struct maximum){
					at, r * (w->unequal ? w->in[1] : w->kernel[1]) + q
				};
		}
	return best;
}

static void max_case(int type, const struct rfl_kernel_window *w)
{
	const int64_t n = elements_of(w, w->out), m = elements_of(w, w->in);
	void *const x = integers(type, m, 1, true), *const dy = integers(type, n, 2, false);
	void *const y = empty(type, n), *const dx = empty(type, m), *const alone = empty(type, n);
	uint16_t *const places = empty(RFL_VALUE_F16, n);
	double *const want = kept(room((size_t)m * sizeof(*want)));

	memset(want, 0, (size_t)m * sizeof(*want));
	RUN(max_pool, { .n = n, .type = type, .window = *w, .x = x, .y = y, .places = places });
	RUN(max_pool, { .n = n, .type = type, .window = *w, .x = x, .y = alone });
	check_same(type, alone, y, n);
	for (int64_t i = 0; i < n; i++) {
		const struct maximum best = search(type, x, w, i);
		const double a = get(type, y, i), b = get(type, x, best.at);

		assert_true(a == b || (isnan(a) && isnan(b)));
		assert_int_equal(places[i], best.place);
		want[best.at] += get(type, dy, i);
	}
	RUN(max_pool_gradient,
	    { .n = m, .type = type, .window = *w, .dy = dy, .places = places, .dx = dx });
	for (int64_t i = 0; i < m; i++)
		assert_true(get(type, dx, i) == want[i]);
	free_kept();
}

static void maxima_match(void **state)
{
	(void)state;
	for (int type = 0; type < TYPES; type++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(windows); i++)
			for (size_t c = 0; c < RFL_ARRAY_LEN(depths); c++) {
				const struct rfl_kernel_window w = window_of(i, depths[c]);

				max_case(type, &w);
			}
}

/* The loops for a CPU add in the same order. */
static void average_case(int type, const struct rfl_kernel_window *w)
{
	const int64_t n = elements_of(w, w->out), m = elements_of(w, w->in);
	struct rfl_host_average h = { .type = (enum rfl_host_type)type,
				      .samples = w->samples,
				      .columns = w->columns,
				      .exclude_padding = w->exclude_padding };
	void *const x = some(type, m, 1, 0, 2), *const dy = some(type, n, 2, 0, 2);
	void *const y = empty(type, n), *const dx = empty(type, m);
	void *const want = empty(type, n > m ? n : m);

	for (int axis = 0; axis < 2; axis++) {
		h.in[axis] = w->in[axis];
		h.out[axis] = w->out[axis];
		h.kernel[axis] = w->kernel[axis];
		h.stride[axis] = w->stride[axis];
		h.pad[axis] = w->pad[axis];
	}
	h.x = x;
	h.y = want;
	rfl_host_average_pool(&h);
	RUN(average_pool, { .n = n, .type = type, .window = *w, .x = x, .y = y });
	check_same(type, y, want, n);
	h.x = dy;
	rfl_host_average_pool_gradient(&h);
	RUN(average_pool_gradient, { .n = m, .type = type, .window = *w, .dy = dy, .dx = dx });
	check_same(type, dx, want, m);
	free_kept();
}

static void averages_match(void **state)
{
	(void)state;
	for (int type = 0; type < HOST_TYPES; type++)
		for (size_t i = 0; i < 2 * DILATED; i++)
			for (size_t c = 0; c < RFL_ARRAY_LEN(depths); c++) {
				struct rfl_kernel_window w = window_of(i / 2, depths[c]);

				w.exclude_padding = i % 2;
				average_case(type, &w);
			}
}

/* ---- rows and columns ---- */

enum { SAMPLES = 3 };

static void rows_case(const struct shape *s)
{
	const int64_t n = SAMPLES * s->n, m = SAMPLES * s->columns, columns = s->columns;
	const enum rfl_host_type type = (enum rfl_host_type)s->type;
	void *const x = some(s->type, n, 1, 1, 2), *const dy = some(s->type, n, 2, 0, 1);
	void *const factor = some(s->type, m, 3, 0, 1), *const want = empty(s->type, n);
	void *const d = empty(s->type, m), *const want_d = empty(s->type, m);
	void *const y = again(s->type, x, n);

	rfl_host_scale_rows(type, SAMPLES, s->rows, (int)columns, x, factor, want);
	RUN(scale_rows, { .n = n,
			  .type = s->type,
			  .rows = s->rows,
			  .columns = columns,
			  .x = y,
			  .factor = factor,
			  .y = y });
	check_same(s->type, y, want, n);
	rfl_host_scale_rows_gradient(type, SAMPLES, s->rows, (int)columns, x, dy, want_d);
	RUN(scale_rows_gradient, { .n = m,
				   .type = s->type,
				   .rows = s->rows,
				   .columns = columns,
				   .x = x,
				   .dy = dy,
				   .y = d });
	/* Terms of at most 3, four of which are added in float32. */
	for (int64_t i = 0; i < m; i++)
		check_near(s->type, d, i, get(s->type, want_d, i), 3 * (double)s->rows);
}

static void scaled_rows_match(void **state)
{
	(void)state;
	omp_set_num_threads(1);
	for_shapes(HOST_TYPES, rows_case);
}

/* Offsets by which packs fit, if they fit the columns, and some by which they do not. */
static void columns_case(const struct shape *s)
{
	static const int64_t offsets[][3] = {
		{ 8, 16, 24 }, { 3, 16, 24 }, { 8, 5, 24 }, { 0, 0, 9 }
	};
	const int64_t most = s->rows * (s->columns + 48);

	for (int i = 0; i < 8; i++) {
		const int64_t *const o = offsets[i / 2];
		const int64_t x_stride = s->columns + o[2], y_stride = s->columns + 24;
		void *const x = some(s->type, most, 1, 0, 1), *const y =
								      some(s->type, most, 2, 0, 1);
		void *const want = again(s->type, y, most);

		rfl_host_copy_columns((enum rfl_host_type)s->type, s->rows, s->columns,
				      (struct rfl_host_columns){ want, y_stride, o[1] },
				      (struct rfl_host_columns){ x, x_stride, o[0] }, i % 2);
		RUN(columns, { .n = s->n,
			       .type = s->type,
			       .add = i % 2,
			       .columns = s->columns,
			       .x_stride = x_stride,
			       .from = o[0],
			       .y_stride = y_stride,
			       .to = o[1],
			       .x = x,
			       .y = y });
		check_same(s->type, y, want, most);
	}
}

static void columns_are_copied(void **state)
{
	(void)state;
	omp_set_num_threads(1);
	for_shapes(HOST_TYPES, columns_case);
}

static void shuffle_case(const struct shape *s)
{
	void *const x = some(s->type, s->n, 1, 0, 1), *const y = empty(s->type, s->n);
	void *const want = empty(s->type, s->n);

	for (int64_t groups = 1; groups <= s->columns; groups++) {
		if (s->columns % groups != 0)
			continue;
		rfl_host_shuffle((enum rfl_host_type)s->type, s->rows, s->columns, groups, x, want);
		RUN(shuffle, { .n = s->n,
			       .type = s->type,
			       .columns = s->columns,
			       .groups = groups,
			       .x = x,
			       .y = y });
		check_same(s->type, y, want, s->n);
	}
}

static void channels_are_shuffled(void **state)
{
	(void)state;
	omp_set_num_threads(1);
	for_shapes(HOST_TYPES, shuffle_case);
}

/* ---- dropout ---- */

static void dropout_case(int type, int64_t units, int64_t each, double probability)
{
	const enum rfl_host_type host = (enum rfl_host_type)type;
	const struct rfl_kernel_state shared = { .counter = 0xfedcba9876543210 };
	const uint64_t key = 0x0123456789abcdef;
	const int64_t n = units * each;
	void *const x = some(type, n, 1, 0, 1), *const want = empty(type, n);
	void *const y = again(type, x, n), *const dx = empty(type, n);
	uint8_t *const mask = kept(room((size_t)units)), *const masked = kept(room((size_t)units));

	rfl_host_dropout(host, n, units, probability, key, shared.counter, x, masked, want);
	RUN(dropout, { .n = n,
		       .type = type,
		       .each = each,
		       .probability = probability,
		       .key = key,
		       .state = &shared,
		       .x = y,
		       .mask = mask,
		       .y = y });
	assert_memory_equal(mask, masked, (size_t)units);
	check_same(type, y, want, n);
	RUN(dropout_gradient, { .n = n,
				.type = type,
				.each = each,
				.probability = probability,
				.mask = mask,
				.dy = x,
				.dx = dx });
	check_same(type, dx, want, n);
	free_kept();
}

static void dropout_matches(void **state)
{
	static const double probabilities[] = { 0, 0.1, 0.5, 1 };
	static const int64_t cases[][2] = { { 1, 1 },  { 4, 1 },   { 1003, 1 },
					    { 7, 12 }, { 13, 64 }, { 9, 5 } };

	(void)state;
	omp_set_num_threads(1);
	for (int type = 0; type < HOST_TYPES; type++)
		for (size_t i = 0; i < 4 * RFL_ARRAY_LEN(cases); i++)
			dropout_case(type, cases[i / 4][0], cases[i / 4][1], probabilities[i % 4]);
}

/* A probability of output / 2^32 keeps the unit, the next larger one does not. */
static void thresholds_are_exact(void **state)
{
	const struct rfl_kernel_state shared = { .counter = 0xfffffffe };
	const uint32_t key[2] = { 7, 0 }, at[4] = { 0, 0, 0xfffffffe, 0 };
	RFL_ALIGNED(64) float x[4] = { 0 };
	RFL_ALIGNED(64) uint8_t mask[4];
	uint32_t out[4];

	(void)state;
	rfl_philox(key, at, out);
	for (unsigned i = 0; i < 8; i++) {
		RUN(dropout, { .n = 4,
			       .each = 1,
			       .probability = ((double)out[i / 2] + i % 2) * 0x1p-32,
			       .key = 7,
			       .state = &shared,
			       .x = x,
			       .mask = mask,
			       .y = x });
		assert_int_equal(mask[i / 2], i % 2 == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maxima_match),          cmocka_unit_test(averages_match),
		cmocka_unit_test(scaled_rows_match),     cmocka_unit_test(columns_are_copied),
		cmocka_unit_test(channels_are_shuffled), cmocka_unit_test(dropout_matches),
		cmocka_unit_test(thresholds_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
