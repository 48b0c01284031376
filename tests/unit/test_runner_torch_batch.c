/* What the torch engine makes of a batch: 8-bit pixels against the formula, in every order, and
 * batches that do not fit the network. */
#include "tests/unit/torch_rig.h"

#include "base/compiler.h"

static const struct rfl_pixel_scale scale = {
	.mean = { 0.485F, 0.456F, 0.406F },
	.std = { 0.229F, 0.224F, 0.225F },
};

static uint8_t pixels[BATCH * IMAGE];

/* Every value of 8 bits in every channel. */
static void fill_pixels(int64_t channels)
{
	const int64_t plane = SIDE * SIDE;

	for (int64_t i = 0; i < BATCH * channels * plane; i++)
		pixels[i] = (uint8_t)(i * 37 + i / plane);
}

/* As torchvision: ToTensor, then Normalize, in float32. */
static float normalised(uint8_t value, int64_t channel)
{
	return ((float)value / 255.0F - scale.mean[channel]) / scale.std[channel];
}

/* From NCHW to the order of `layout`. */
static int64_t place(enum rfl_layout layout, int64_t channels, int64_t i)
{
	const int64_t plane = SIDE * SIDE, image = channels * plane;
	const int64_t b = i / image, c = i % image / plane, x = i % plane;

	return layout == RFL_LAYOUT_NHWC ? b * image + x * channels + c : i;
}

static enum rfl_rc keep_input(int node, const float *values, int64_t numel, void *ctx,
			      struct rfl_err *err)
{
	(void)err;
	if (node == 0)
		memcpy(ctx, values, (size_t)numel * sizeof(*values));
	return RFL_OK;
}

static void pixels_follow_the_formula(int64_t channels, enum rfl_layout of_engine,
				      enum rfl_layout of_batch)
{
	const int64_t numel = BATCH * channels * SIDE * SIDE;
	const struct rfl_engine_config config = config_of(of_engine);
	static uint8_t ordered[BATCH * IMAGE];
	static float got[BATCH * IMAGE];
	struct rfl_batch batch = {
		.n = BATCH,
		.kind = RFL_INPUT_PIXELS,
		.pixels = ordered,
		.layout = of_batch,
		.scale = &scale,
		.labels = labels,
	};
	struct rfl_engine *e = open_with(&config);
	struct rfl_err err = RFL_ERR_INIT;

	for (int64_t i = 0; i < numel; i++)
		ordered[place(of_batch, channels, i)] = pixels[i];
	assert_ok(ops->forward_traced(e, &batch, keep_input, got, &err), &err);
	for (int64_t i = 0; i < numel; i++) {
		const float want = normalised(pixels[i], i / (SIDE * SIDE) % channels);

		if (got[i] != want)
			fail_msg("%lld: %.9g, not %.9g", (long long)i, (double)got[i],
				 (double)want);
	}
	ops->close(e);
}

static struct rfl_net *net_of(int64_t channels)
{
	struct rfl_net_builder *b = rfl_net_builder_new("grey", "test");
	struct rfl_net *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x;

	assert_non_null(b);
	x = rfl_net_input(b, channels, SIDE, SIDE);
	x = rfl_conv2d(b, x, "conv", 4, .kernel = 3, .pad = 1);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "fc", CLASSES, true);
	assert_ok(rfl_net_finish(b, x, &ret, &err), &err);
	return ret;
}

static void pixels_are_normalised(void **state)
{
	struct rfl_net *small = net;

	(void)state;
	for (int64_t channels = 1; channels <= 3; channels += 2) {
		net = net_of(channels);
		fill_pixels(channels);
		for (int i = 0; i < 4; i++)
			pixels_follow_the_formula(channels,
						  i & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
						  i & 2 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW);
		rfl_net_free(net);
	}
	net = small;
}

static void refuses_what_does_not_fit(void **state)
{
	static const int64_t tokens[BATCH] = { 0 };
	struct rfl_batch batch = batch_of(BATCH);
	struct rfl_net *small = net;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = open_plain();

	(void)state;
	batch.kind = RFL_INPUT_TOKENS;
	batch.tokens = tokens;
	assert_int_equal(ops->forward(e, &batch, &err), RFL_EINVAL);
	assert_says(&err, "small accepts images, not tokens");
	rfl_err_clear(&err);
	batch.kind = RFL_INPUT_PIXELS;
	batch.pixels = pixels;
	assert_int_equal(ops->forward(e, &batch, &err), RFL_EINVAL);
	assert_says(&err, "need a scale");
	rfl_err_clear(&err);
	batch.n = 0;
	assert_int_equal(ops->forward(e, &batch, &err), RFL_EINVAL);
	assert_says(&err, "1 to 3 samples, not 0");
	ops->close(e);

	net = net_of(4);
	e = open_plain();
	batch.n = 1;
	batch.scale = &scale;
	rfl_err_clear(&err);
	assert_int_equal(ops->forward(e, &batch, &err), RFL_EINVAL);
	assert_says(&err, "1 to 3 channels, not 4");
	ops->close(e);
	rfl_net_free(net);
	net = small;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pixels_are_normalised),
		cmocka_unit_test(refuses_what_does_not_fit),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
