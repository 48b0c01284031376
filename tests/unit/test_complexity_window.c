/*
 * test_complexity_window.c - sliding windows: taps and positions against loops that count them, and
 * windows that no loop would end with.
 */
#include "tests/unit/count_rig.h"

#include "complexity/op/parts.h"

static int64_t taps_one_by_one(const struct rfl_window *w, int64_t in, int64_t out)
{
	int64_t taps = 0;

	for (int64_t o = 0; o < out; o++)
		for (int64_t k = 0; k < w->kernel; k++) {
			int64_t at = o * w->stride + k * w->dilation - w->pad;

			taps += at >= 0 && at < in;
		}
	return taps;
}

/* All windows with small numbers, those that begin in the right padding included. */
static void taps_against_loops(void **state)
{
	int windows = 0;

	(void)state;
	for (int i = 0; i < 6 * 5 * 7 * 5 * 14 * 2; i++) {
		struct rfl_window w = {
			.kernel = 1 + i % 6,
			.stride = 1 + i / 6 % 5,
			.pad = i / 30 % 7,
			.dilation = 1 + i / 210 % 5,
			.ceil_mode = i / 14700,
		};
		int64_t in = 1 + i / 1050 % 14, out;

		if (rfl_window_positions(&w, in, &out, NULL) != RFL_OK)
			continue;
		assert_int_equal(rfl_window_real_taps(&w, in, out), taps_one_by_one(&w, in, out));
		windows++;
	}
	assert_true(windows > 20000);
}

/* Padded by a kernel less one, every tap meets every element once, whatever the sizes: here
 * kernel * in, which no loop over taps would reach at a hundred batches. */
static void the_largest_windows(void **state)
{
	const int64_t kernel = INT64_C(1) << 24, rows = INT64_C(1) << 30;
	const struct rfl_window w = {
		.kernel = kernel, .stride = 1, .pad = kernel - 1, .dilation = 1
	};
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_count_options options = { .batch = 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;
	struct rfl_net *net;
	int64_t out = 0;
	int x = rfl_net_input(b, 1, rows, 1);

	(void)state;
	assert_ok(rfl_window_positions(&w, rows, &out, &err), &err);
	assert_int_equal(out, rows + kernel - 1);
	assert_int_equal(rfl_window_real_taps(&w, rows, out), kernel * rows);
	x = rfl_conv2d(b, x, "conv", 1, .kernel_h = kernel, .kernel_w = 1, .pad_h = kernel - 1);
	net = finish(b, rfl_flatten(b, x));
	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	for (int64_t batch = 1; batch <= 100; batch++) {
		assert_ok(rfl_count_at(count, batch, &err), &err);
		assert_int_equal(count->total.macs_excl_padding, batch * kernel * rows);
		assert_int_equal(count->total.macs[RFL_PASS_FORWARD], batch * kernel * out);
	}
	rfl_count_free(count);
	rfl_net_free(net);
}

/* Count the taps of a convolution one by one. */
static void count_taps(const struct rfl_conv2d *a, int64_t h, int64_t w,
		       const struct rfl_shape *out, int64_t *all, int64_t *real)
{
	*all = *real = 0;
	for (int64_t y = 0; y < out->dim[1]; y++)
		for (int64_t x = 0; x < out->dim[2]; x++)
			for (int64_t i = 0; i < a->kernel_h; i++)
				for (int64_t j = 0; j < a->kernel_w; j++) {
					int64_t row =
						y * a->stride_h - a->pad_h + i * a->dilation_h;
					int64_t col =
						x * a->stride_w - a->pad_w + j * a->dilation_w;

					(*all)++;
					*real += row >= 0 && row < h && col >= 0 && col < w;
				}
	*all *= a->out_channels * (a->in_channels / a->groups);
	*real *= a->out_channels * (a->in_channels / a->groups);
}

static void convolutions_against_loops(void **state)
{
	static const struct rfl_window_args cases[] = {
		{ .kernel = 1 },
		{ .kernel = 3, .pad = 1 },
		{ .kernel = 3, .pad = 2, .stride = 2, .dilation = 2 },
		{ .kernel = 5, .pad = 4, .stride = 3 },
		{ .kernel = 7, .pad = 3, .stride = 2, .groups = 2 },
		{ .kernel_h = 1, .kernel_w = 7, .pad_w = 3 },
		{ .kernel_h = 3, .kernel_w = 1, .pad_h = 9, .stride_h = 4 },
	};
	const struct rfl_count_options options = { .batch = 3 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
		int64_t all, real;
		struct rfl_net *net;
		struct rfl_count *count = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		int x = rfl_net_input(b, 4, 11, 13);

		x = rfl_net_conv2d(b, x, "conv", 6, &cases[i]);
		net = finish(b, rfl_flatten(b, x));
		assert_ok(rfl_count_net(net, &options, &count, &err), &err);
		count_taps(&net->nodes[x].attr.conv2d, 11, 13, &net->nodes[x].shape, &all, &real);
		assert_int_equal(count->total.macs[RFL_PASS_FORWARD], 3 * all);
		assert_int_equal(count->total.macs_excl_padding, 3 * real);
		rfl_count_free(count);
		rfl_net_free(net);
	}
}

/* The taps of one axis may be counted only where the MACs of all fit. */
static void refuses_windows_that_do_not_fit(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_count_options options = { .batch = 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;
	struct rfl_net *net;
	int x = rfl_net_input(b, 1, INT64_C(1) << 50, 1);

	(void)state;
	x = rfl_conv2d(b, x, "conv", 1, .kernel_h = 1 << 20, .kernel_w = 1);
	net = finish(b, rfl_flatten(b, x));
	assert_int_equal(rfl_count_net(net, &options, &count, &err), RFL_EOVERFLOW);
	assert_says(&err, "toy: conv (Conv2d)");
	assert_null(count);
	rfl_net_free(net);
}

/* Windows in the padding alone would have fewer terms than sums. */
static void refuses_pools_that_see_only_padding(void **state)
{
	static const struct rfl_window_args cases[] = {
		{ .kernel = 2, .pad = 2, .exclude_padding = true },
		{ .kernel_h = 4, .kernel_w = 3, .pad_h = 2, .pad_w = 2 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		for (int average = 0; average < 2; average++) {
			struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
			struct rfl_err err = RFL_ERR_INIT;
			struct rfl_net *net = NULL;
			int x = rfl_net_input(b, 1, 8, 8);

			x = rfl_net_pool(b, average ? RFL_OP_AVG_POOL : RFL_OP_MAX_POOL, x, "pool",
					 &cases[i]);
			assert_int_equal(rfl_net_finish(b, x, &net, &err), RFL_EINVAL);
			assert_says(&err, "use at most half the kernel");
			assert_null(net);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taps_against_loops),
		cmocka_unit_test(the_largest_windows),
		cmocka_unit_test(convolutions_against_loops),
		cmocka_unit_test(refuses_windows_that_do_not_fit),
		cmocka_unit_test(refuses_pools_that_see_only_padding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
