/*
 * window.c - sliding windows along one axis. The formulas are those of torch.nn.Conv2d and
 * torch.nn.MaxPool2d ("Shape" in their documentation).
 */
#include "complexity/window.h"

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

int64_t rfl_window_real_taps(const struct rfl_window *w, int64_t in, int64_t out)
{
	int64_t sum = 0;

	for (int64_t k = 0; k < w->kernel; k++) {
		/* tap k of position o reads o * stride + offset, which must lie in [0, in) */
		int64_t offset = k * w->dilation - w->pad;
		int64_t first = offset >= 0 ? 0 : (-offset + w->stride - 1) / w->stride;
		int64_t last = in - 1 - offset < 0 ? -1 : (in - 1 - offset) / w->stride;

		if (last > out - 1)
			last = out - 1;
		if (last >= first)
			sum += last - first + 1;
	}
	return sum;
}
