/* host_pool.c - average pooling with windows that oneDNN lacks: of different sizes, or beyond the
 * padded image. */
#include "runner/planned/host.h"
#include "runner/planned/host_loop.h"

struct window {
	int64_t from, to; /* in the image */
	int64_t size;     /* by which the sum is divided, along this axis */
};

/* The window of output position `o` along an axis. */
static struct window window_at(const struct rfl_host_average *k, int axis, int64_t o)
{
	const int64_t in = k->in[axis], out = k->out[axis];
	struct window w = { o * in / out, ((o + 1) * in + out - 1) / out, 0 };

	if (k->kernel[axis] == 0) {
		w.size = w.to - w.from;
		return w;
	}
	w.from = o * k->stride[axis] - k->pad[axis];
	w.to = w.from + k->kernel[axis];
	w.to = w.to < in + k->pad[axis] ? w.to : in + k->pad[axis];
	w.size = w.to - w.from;
	w.from = w.from > 0 ? w.from : 0;
	w.to = w.to < in ? w.to : in;
	if (k->exclude_padding)
		w.size = w.to - w.from;
	return w;
}

/* One output pixel from its window, or one input pixel's gradient from all windows that hold it. */
static void pixel(const struct rfl_host_average *k, int64_t sample, int64_t row, int64_t column,
		  bool gradient)
{
	const int64_t *const from = gradient ? k->out : k->in, *const to =
								       gradient ? k->in : k->out;
	const int64_t at = ((sample * to[0] + row) * to[1] + column) * k->columns;

	for (int64_t c = 0; c < k->columns; c++) {
		float sum = 0;

		for (int64_t r = 0; r < from[0]; r++) {
			const struct window y = window_at(k, 0, gradient ? r : row);

			if ((gradient ? row : r) < y.from || (gradient ? row : r) >= y.to)
				continue;
			for (int64_t q = 0; q < from[1]; q++) {
				const struct window x = window_at(k, 1, gradient ? q : column);

				if ((gradient ? column : q) >= x.from &&
				    (gradient ? column : q) < x.to)
					sum += loop_load(k->type, k->x,
							 ((sample * from[0] + r) * from[1] + q) *
									 k->columns +
								 c) /
					       (float)(y.size * x.size);
			}
		}
		loop_store(k->type, k->y, at + c, sum);
	}
}

static void run(const struct rfl_host_average *k, bool gradient)
{
	const int64_t *const size = gradient ? k->in : k->out;
	const int64_t pixels = k->samples * size[0] * size[1];

#pragma omp parallel for schedule(static)
	for (int64_t i = 0; i < pixels; i++)
		pixel(k, i / (size[0] * size[1]), i / size[1] % size[0], i % size[1], gradient);
}

void rfl_host_average_pool(const struct rfl_host_average *k)
{
	run(k, false);
}

void rfl_host_average_pool_gradient(const struct rfl_host_average *k)
{
	run(k, true);
}
