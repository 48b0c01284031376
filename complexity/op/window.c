/*
 * window.c - sliding windows along one axis. The formulas are those of torch.nn.Conv2d and
 * torch.nn.MaxPool2d ("Shape" in their documentation).
 */
#include "complexity/op/window.h"

#include "base/num.h"

enum { LIMIT = 1 << 24 }; /* of kernel, stride, pad and dilation: keeps their products small */

static bool sane(const struct rfl_window *w)
{
	return w->kernel >= 1 && w->kernel <= LIMIT && w->stride >= 1 && w->stride <= LIMIT &&
	       w->dilation >= 1 && w->dilation <= LIMIT && w->pad >= 0 && w->pad <= LIMIT;
}

enum rfl_rc rfl_window_positions(const struct rfl_window *w, int64_t in, int64_t *ret,
				 struct rfl_err *err)
{
	int64_t padded, reach, room, n;

	if (!sane(w))
		return rfl_fail(err, RFL_EINVAL, 0,
				"kernel %lld, stride %lld, padding %lld, dilation %lld: not a "
				"window (kernel, stride and dilation from 1, padding from 0)",
				(long long)w->kernel, (long long)w->stride, (long long)w->pad,
				(long long)w->dilation);
	if (!rfl_num_add(in, 2 * w->pad, &padded))
		return rfl_fail(err, RFL_EOVERFLOW, 0, "input %lld does not fit 63 bits",
				(long long)in);
	reach = (w->kernel - 1) * w->dilation + 1;
	room = padded - reach;
	if (w->ceil_mode && room < 0 && room > -w->stride)
		room = 0; /* the only window ends outside */
	if (room < 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"a window of %lld does not fit into %lld (%lld with its padding); "
				"the image is too small",
				(long long)reach, (long long)in, (long long)padded);
	n = room / w->stride + 1;
	/* One more window ends outside; it must begin, at n * stride, before the right padding. */
	if (w->ceil_mode && room % w->stride != 0 && (n - 1) * w->stride < in + w->pad - w->stride)
		n++;
	*ret = n;
	return RFL_OK;
}

/* The sum of floor((a i + b) / m) over i in [0, n), in as many steps as Euclid's algorithm takes:
 * whole multiples of m come out of a and b, then the points under the line are counted along the
 * other axis (Graham, Knuth, Patashnik, "Concrete Mathematics", 3.5). No term exceeds the sum. */
static int64_t floor_sum(int64_t n, int64_t m, int64_t a, int64_t b)
{
	int64_t sum = 0;

	while (n > 0) {
		int64_t top, old = m;

		sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
		a %= m;
		b %= m;
		top = a * n + b;
		n = top / m;
		b = top % m;
		m = a;
		a = old;
	}
	return sum;
}

/* Taps k of positions o with o * stride + k * dilation < end. The first taps are below it at all
 * positions, the last ones at none. */
static int64_t taps_below(const struct rfl_window *w, int64_t out, int64_t end)
{
	int64_t reach = (out - 1) * w->stride, some = 0, all = 0;

	if (end > 0)
		some = (end - 1) / w->dilation + 1;
	if (end > reach)
		all = (end - reach - 1) / w->dilation + 1;
	if (some > w->kernel)
		some = w->kernel;
	if (all > some)
		all = some;
	if (all == some)
		return all * out;
	/* Tap some - 1 - i lies at (i * dilation + rest) / stride + 1 positions. */
	return all * out + (some - all) +
	       floor_sum(some - all, w->stride, w->dilation, end - 1 - (some - 1) * w->dilation);
}

int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out)
{
	return taps_below(w, out, w->pad + in) - taps_below(w, out, w->pad);
}
