/* host_pool.c - adaptive average pooling with windows of different sizes, which oneDNN lacks. */
#include "runner/planned/host.h"
#include "runner/planned/host_loop.h"

/* The window of output position `o`: [from, to). */
static void window(int64_t in, int64_t out, int64_t o, int64_t *from, int64_t *to)
{
	*from = o * in / out;
	*to = ((o + 1) * in + out - 1) / out;
}

/* One output pixel from its window, or one input pixel's gradient from all windows that hold it. */
static void pixel(const struct rfl_host_adaptive *k, int64_t sample, int64_t row, int64_t column,
		  bool gradient)
{
	const int64_t *const from = gradient ? k->out : k->in, *const to =
								       gradient ? k->in : k->out;
	const int64_t at = ((sample * to[0] + row) * to[1] + column) * k->columns;

	for (int64_t c = 0; c < k->columns; c++) {
		float sum = 0;
		int64_t y0, y1, x0, x1;

		for (int64_t r = 0; r < from[0]; r++) {
			window(k->in[0], k->out[0], gradient ? r : row, &y0, &y1);
			if ((gradient ? row : r) < y0 || (gradient ? row : r) >= y1)
				continue;
			for (int64_t q = 0; q < from[1]; q++) {
				window(k->in[1], k->out[1], gradient ? q : column, &x0, &x1);
				if ((gradient ? column : q) < x0 || (gradient ? column : q) >= x1)
					continue;
				sum += loop_load(k->type, k->x,
						 ((sample * from[0] + r) * from[1] + q) *
								 k->columns +
							 c) /
				       (float)((y1 - y0) * (x1 - x0));
			}
		}
		loop_store(k->type, k->y, at + c, sum);
	}
}

static void run(const struct rfl_host_adaptive *k, bool gradient)
{
	const int64_t *const size = gradient ? k->in : k->out;
	const int64_t pixels = k->samples * size[0] * size[1];

#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < pixels; i++)
		pixel(k, i / (size[0] * size[1]), i / size[1] % size[0], i % size[1], gradient);
}

void rfl_host_adaptive_pool(const struct rfl_host_adaptive *k)
{
	run(k, false);
}

void rfl_host_adaptive_pool_gradient(const struct rfl_host_adaptive *k)
{
	run(k, true);
}
