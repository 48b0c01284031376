/* The kernels' CPU twins: sums of columns, batch norm and its gradient, the latter against the
 * loops for a CPU. */
#include <omp.h>

#include "runner/planned/host.h"
#include "tests/unit/kernels_rig.h"

/* ---- sums of columns ---- */

static void column_case(const struct shape *s)
{
	enum { FOLDED = 3 };
	void *const x = some(s->type, s->n, 1, 0.5, 1);
	float *const partials = floats(s->chunks * s->columns), *const y = floats(s->columns);
	float *const folded = floats(FOLDED * s->columns), *const y2 = floats(s->columns);

	RUN(column_partials, { .n = s->chunks * s->columns,
			       .type = s->type,
			       .rows = s->rows,
			       .columns = s->columns,
			       .chunks = s->chunks,
			       .x = x,
			       .partials = partials });
	RUN(column_totals, { .n = s->columns, .chunks = s->chunks, .partials = partials, .y = y });
	RUN(fold_partials, { .n = FOLDED * s->columns,
			     .rows = s->chunks,
			     .columns = s->columns,
			     .chunks = FOLDED,
			     .from = partials,
			     .to = folded });
	RUN(column_totals, { .n = s->columns, .chunks = FOLDED, .partials = folded, .y = y2 });
	for (int64_t c = 0; c < s->columns; c++) {
		double total = 0, sizes = 0;

		for (int64_t chunk = 0; chunk < s->chunks; chunk++) {
			double sum = 0;

			for (int64_t r = chunk; r < s->rows; r += s->chunks) {
				sum += get(s->type, x, r * s->columns + c);
				sizes += fabs(get(s->type, x, r * s->columns + c));
			}
			check_near(RFL_VALUE_F32, partials, chunk * s->columns + c, sum, sizes);
			total += sum;
		}
		check_near(RFL_VALUE_F32, y, c, total, sizes);
		check_near(RFL_VALUE_F32, y2, c, total, sizes);
	}
}

static void columns_are_summed(void **state)
{
	(void)state;
	for_shapes(TYPES, column_case);
}

/* ---- batch norm ---- */

/* Values of a column from 1 to 1.9. */
static float *per_column(int64_t columns, int step)
{
	float *const p = floats(columns);

	for (int64_t c = 0; c < columns; c++)
		p[c] = 1 + 0.1f * (float)(c * step % 10);
	return p;
}

/* Partial sums of norm or its gradient, folded in two where there are more chunks. */
static const float *fold(const float *partials, int64_t columns, int64_t *chunks)
{
	float *const to = floats(4 * columns);

	if (*chunks <= 2)
		return partials;
	RUN(fold_partials, { .n = 4 * columns,
			     .rows = *chunks,
			     .columns = 2 * columns,
			     .chunks = 2,
			     .from = partials,
			     .to = to });
	*chunks = 2;
	return to;
}

static void run_norm(const struct shape *s, const struct rfl_host_norm *h)
{
	float *const partials = floats(2 * s->chunks * s->columns);
	float *const slope_of = floats(s->columns), *const shift = floats(s->columns);
	int64_t chunks = s->chunks;
	const float *folded;

	RUN(norm_partials, { .n = s->chunks * s->columns,
			     .type = s->type,
			     .rows = s->rows,
			     .columns = s->columns,
			     .chunks = s->chunks,
			     .x = h->x,
			     .partials = partials });
	folded = fold(partials, s->columns, &chunks);
	RUN(norm_finish, { .n = s->columns,
			   .type = s->type,
			   .running = h->running,
			   .rows = s->rows,
			   .chunks = chunks,
			   .eps = h->eps,
			   .momentum = h->momentum,
			   .x = h->running ? NULL : h->x,
			   .partials = h->running ? NULL : folded,
			   .gamma = h->gamma,
			   .beta = h->beta,
			   .mean = h->mean,
			   .inverse = h->inverse,
			   .running_mean = h->running_mean,
			   .running_variance = h->running_variance,
			   .slope = slope_of,
			   .shift = shift });
	RUN(norm_apply, { .n = s->n,
			  .type = s->type,
			  .activation = (int32_t)h->activation,
			  .columns = s->columns,
			  .x = h->x,
			  .residual = h->residual,
			  .slope = slope_of,
			  .shift = shift,
			  .y = h->y,
			  .mask = h->mask });
}

/* With running statistics all is equal; the statistics of a batch depend on the order of the sums,
 * so that a result may be rounded to another neighbour. */
static void check_norm(const struct shape *s, const struct rfl_host_norm *got,
		       const struct rfl_host_norm *want)
{
	if (got->running) {
		check_same(s->type, got->y, want->y, s->n);
		check_floats(got->mean, want->mean, s->columns, 0);
		check_floats(got->inverse, want->inverse, s->columns, 0);
	} else {
		check_floats(got->mean, want->mean, s->columns, 2e-6);
		check_floats(got->inverse, want->inverse, s->columns, 1e-5);
		for (int64_t i = 0; i < s->n; i++)
			check_near(s->type, got->y, i, get(s->type, want->y, i), 64);
	}
	if (got->running_mean) {
		check_floats(got->running_mean, want->running_mean, s->columns, 2e-6);
		check_floats(got->running_variance, want->running_variance, s->columns, 1e-5);
	}
	if (got->mask && got->running)
		assert_memory_equal(got->mask, want->mask, (size_t)s->n);
}

static void norm_case(const struct shape *s)
{
	const size_t size = (size_t)s->n * size_of(s->type);
	void *const x = some(s->type, s->n, 1, 3, 2);

	for (int v = 0; v < 24; v++) {
		struct rfl_host_norm h = {
			.type = (enum rfl_host_type)s->type,
			.activation = (enum rfl_host_activation)(v % 3),
			.rows = s->rows,
			.columns = (int)s->columns,
			.running = v / 3 % 2,
			.eps = 1e-3f,
			.momentum = 0.1f,
			.x = x,
			.residual = v / 6 % 2 ? some(s->type, s->n, 2, 0, 4) : NULL,
			.y = empty(s->type, s->n),
			.mask = v / 12 % 2 ? kept(room((size_t)s->n)) : NULL,
			.gamma = per_column(s->columns, 1),
			.beta = per_column(s->columns, 9),
			.mean = per_column(s->columns, 0),
			.inverse = per_column(s->columns, 0),
			.scratch = kept(room(rfl_host_norm_scratch((int)s->columns, 1))),
		};
		struct rfl_host_norm k = h;

		if (h.running || v / 6 % 2) {
			h.running_mean = per_column(s->columns, 7);
			h.running_variance = per_column(s->columns, 3);
			k.running_mean = per_column(s->columns, 7);
			k.running_variance = per_column(s->columns, 3);
		}
		rfl_host_norm(&h);
		k.x = again(s->type, x, s->n);
		k.residual = h.residual ? again(s->type, h.residual, s->n) : NULL;
		/* y apart, x or the residual */
		k.y = v % 4 == 1                 ? (void *)(uintptr_t)k.x
		      : v % 4 == 2 && h.residual ? (void *)(uintptr_t)k.residual
						 : kept(room(size));
		k.mask = h.mask ? kept(room((size_t)s->n)) : NULL;
		k.mean = floats(s->columns);
		k.inverse = floats(s->columns);
		run_norm(s, &k);
		check_norm(s, &k, &h);
		while (kept_arrays.n > 1)
			free(kept_arrays.array[--kept_arrays.n]);
	}
}

static void norm_matches(void **state)
{
	(void)state;
	omp_set_num_threads(1);
	for_shapes(HOST_TYPES, norm_case);
}

/* At the bounds of an activation, its gradient is zero. NaN stays, and passes no gradient. */
static void masks_exclude_bounds(void **state)
{
	enum { N = 11 };
	RFL_ALIGNED(64) const float x[N] = { 0, -0.0f, 0.5f, 5.5f, 6, 7, -1, NAN, INFINITY, 1, 2 };
	const char *const passing[] = { "11111110011", "00111100011", "00110000011" };
	const float one = 1, zero = 0;
	RFL_ALIGNED(64) float y[N];
	RFL_ALIGNED(64) uint8_t mask[N];

	(void)state;
	for (int32_t act = 0; act < 3; act++) {
		RUN(norm_apply, { .n = N,
				  .activation = act,
				  .columns = 1,
				  .x = x,
				  .slope = &one,
				  .shift = &zero,
				  .y = y,
				  .mask = mask });
		for (int i = 0; i < N; i++) {
			const float want = act && x[i] < 0 ? 0 : act == 2 && x[i] > 6 ? 6 : x[i];

			assert_int_equal(mask[i], passing[act][i] - '0');
			assert_true(isnan(x[i]) ? isnan(y[i]) : y[i] == want);
		}
	}
}

/* A mean of 1000 standard deviations must not hide the variance. */
static void norm_keeps_small_variances(void **state)
{
	const struct shape s = { .rows = 5000, .columns = 5, .chunks = 16, .n = 25000 };
	const float *const x = some(RFL_VALUE_F32, s.n, 4, 1000, sqrt(3));
	float *const mean = floats(5), *const inverse = floats(5);

	(void)state;
	run_norm(&s, &(struct rfl_host_norm){ .x = x,
					      .y = floats(s.n),
					      .gamma = per_column(5, 0),
					      .beta = per_column(5, 0),
					      .mean = mean,
					      .inverse = inverse });
	for (int c = 0; c < 5; c++) {
		double sum = 0, squares = 0;

		for (int64_t r = 0; r < s.rows; r++)
			sum += (double)x[r * 5 + c] / (double)s.rows;
		for (int64_t r = 0; r < s.rows; r++)
			squares += pow((double)x[r * 5 + c] - sum, 2) / (double)s.rows;
		assert_close((double)mean[c], sum, 1e-6);
		assert_close((double)inverse[c], 1 / sqrt(squares), 1e-5);
	}
	free_kept();
}

static void run_norm_gradient(const struct shape *s, const struct rfl_host_norm_gradient *h)
{
	float *const partials = floats(2 * s->chunks * s->columns), *const scale =
									    floats(s->columns);
	float *const slope_of = floats(s->columns), *const shift = floats(s->columns);
	int64_t chunks = s->chunks;
	const float *folded;

	RUN(norm_gradient_partials, { .n = s->chunks * s->columns,
				      .type = s->type,
				      .rows = s->rows,
				      .columns = s->columns,
				      .chunks = s->chunks,
				      .x = h->x,
				      .dy = h->dy,
				      .dy2 = h->dy2,
				      .mask = h->mask,
				      .mean = h->mean,
				      .g = h->g,
				      .partials = partials });
	folded = fold(partials, s->columns, &chunks);
	RUN(norm_gradient_finish, { .n = s->columns,
				    .running = h->running,
				    .rows = s->rows,
				    .chunks = chunks,
				    .partials = folded,
				    .gamma = h->gamma,
				    .mean = h->mean,
				    .inverse = h->inverse,
				    .dgamma = h->dgamma,
				    .dbeta = h->dbeta,
				    .scale = scale,
				    .slope = slope_of,
				    .shift = shift });
	RUN(norm_gradient_apply, { .n = s->n,
				   .type = s->type,
				   .columns = s->columns,
				   .x = h->x,
				   .dy = h->g ? h->g : h->dy,
				   .dy2 = h->g ? NULL : h->dy2,
				   .mask = h->g ? NULL : h->mask,
				   .scale = scale,
				   .slope = slope_of,
				   .shift = shift,
				   .dx = h->dx });
}

static void gradient_variant(const struct shape *s, int v)
{
	const double rows = (double)s->rows;
	uint8_t *const mask = kept(room((size_t)s->n));
	struct rfl_host_norm_gradient h = {
		.type = (enum rfl_host_type)s->type,
		.rows = s->rows,
		.columns = (int)s->columns,
		.running = v / 8 % 2,
		.x = some(s->type, s->n, 1, 3, 2),
		.dy = some(s->type, s->n, 2, 0, 1),
		.dy2 = v % 2 ? some(s->type, s->n, 3, 0.25, 1) : NULL,
		.mask = v / 2 % 2 ? mask : NULL,
		.g = v / 4 % 2 ? empty(s->type, s->n) : NULL,
		.dx = empty(s->type, s->n),
		.gamma = per_column(s->columns, 1),
		.mean = per_column(s->columns, 3),
		.inverse = per_column(s->columns, 9),
		.dgamma = floats(s->columns),
		.dbeta = floats(s->columns),
		.scratch = kept(room(rfl_host_norm_scratch((int)s->columns, 1))),
	};
	struct rfl_host_norm_gradient k = h;

	for (int64_t i = 0; i < s->n; i++)
		mask[i] = i * 7 % 5 < 3;
	k.dgamma = floats(s->columns);
	k.dbeta = floats(s->columns);
	/* g may be dy or dy2, dx what g is not. */
	k.dy = again(s->type, h.dy, s->n);
	k.dy2 = h.dy2 ? again(s->type, h.dy2, s->n) : NULL;
	k.g = !h.g ? NULL : (void *)(uintptr_t)(h.dy2 && h.running ? k.dy2 : k.dy);
	k.dx = h.running ? (void *)(uintptr_t)k.dy : empty(s->type, s->n);
	rfl_host_norm_gradient(&h);
	run_norm_gradient(s, &k);
	if (h.g && k.g != k.dx)
		check_same(s->type, k.g, h.g, s->n);
	/* Sums of terms of at most 2.25 and 2.25 * 5.9 * 1.9, in another order. */
	for (int64_t c = 0; c < s->columns; c++) {
		assert_true(fabs((double)(k.dbeta[c] - h.dbeta[c])) <= 1e-6 * 2.25 * rows);
		assert_true(fabs((double)(k.dgamma[c] - h.dgamma[c])) <= 1e-6 * 25 * rows);
	}
	if (h.running)
		check_same(s->type, k.dx, h.dx, s->n);
	for (int64_t i = 0; i < s->n; i++)
		check_near(s->type, k.dx, i, get(s->type, h.dx, i), 1000);
}

static void gradient_case(const struct shape *s)
{
	for (int v = 0; v < 16; v++) {
		gradient_variant(s, v);
		free_kept();
	}
}

static void norm_gradient_matches(void **state)
{
	(void)state;
	omp_set_num_threads(1);
	for_shapes(HOST_TYPES, gradient_case);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_summed),
		cmocka_unit_test(norm_matches),
		cmocka_unit_test(masks_exclude_bounds),
		cmocka_unit_test(norm_keeps_small_variances),
		cmocka_unit_test(norm_gradient_matches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
