/* The kernels' CPU twins: types, inputs, elementwise operations. Where the engine has the same loop
 * for a CPU, results have the same bits. */
#include "runner/planned/host.h"
#include "tests/unit/kernels_rig.h"

static const int64_t lengths[] = { 0, 1, 7, 8, 64, 1003 };

/* ---- types ---- */

static void f16_is_widened(void **state)
{
	enum { N = 65536 };
	uint16_t *const x = empty(RFL_VALUE_F16, N), *const back = empty(RFL_VALUE_F16, N);
	float *const y = floats(N);

	(void)state;
	for (int i = 0; i < N; i++)
		x[i] = (uint16_t)i;
	RUN(widen, { .n = N, .type = RFL_VALUE_F16, .from = x, .y = y });
	RUN(narrow, { .n = N, .type = RFL_VALUE_F16, .from = y, .y = back });
	for (int i = 0; i < N; i++) {
		const double want = ieee_unpack(&rfl_ieee_fp16, x[i]);

		assert_true(isnan(want) ? isnan(y[i]) : (double)y[i] == want);
		assert_true(!signbit(y[i]) == !(i & 0x8000) || isnan(want));
		assert_true(isnan(want) ? isnan(get(RFL_VALUE_F16, back, i)) : back[i] == x[i]);
	}
	free_kept();
}

/* At, below and above the middle of two neighbours, and of the largest and 2^16; in packs, and one
 * by one. */
static void narrowing_rounds_to_even(void **state)
{
	enum { N = 3 * 0x7f80 };
	float *const x = floats(N);
	uint16_t *const y = empty(RFL_VALUE_F16, N);

	(void)state;
	for (int type = RFL_VALUE_BF16; type <= RFL_VALUE_F16; type++) {
		const int numbers = type == RFL_VALUE_F16 ? 0x7c00 : 0x7f80;

		for (int i = 0; i < numbers; i++) {
			const double low = ieee_unpack(format_of(type), (uint32_t)i);
			const float middle =
				(float)(low + rfl_ieee_spacing(format_of(type), low) / 2);

			x[3 * i] = nextafterf(middle, 0);
			x[3 * i + 1] = i % 2 ? middle : -middle;
			x[3 * i + 2] = nextafterf(middle, INFINITY);
		}
		for (int64_t at = 0; at < 3 * numbers;) {
			const int64_t n = 3 * numbers - at > 7 ? 7 : 3 * numbers - at;

			RUN(narrow, { .n = n, .type = type, .from = x + at, .y = y + at });
			at += 4;
		}
		for (int i = 0; i < 3 * numbers; i++)
			assert_int_equal(y[i], rfl_ieee_pack(format_of(type), (double)x[i]));
		x[0] = NAN;
		x[1] = -INFINITY;
		RUN(narrow, { .n = 2, .type = type, .from = x, .y = y });
		assert_true(isnan(get(type, y, 0)) && get(type, y, 1) == (double)-INFINITY);
	}
	free_kept();
}

static void floats_are_added(void **state)
{
	(void)state;
	for (size_t l = 0; l < RFL_ARRAY_LEN(lengths); l++) {
		const int64_t n = lengths[l];
		const float *const x = some(RFL_VALUE_F32, n, 1, 0, 1);
		float *const y = some(RFL_VALUE_F32, n + 1, 2, 0, 1);
		const float *const old = again(RFL_VALUE_F32, y, n + 1);

		RUN(add_floats, { .n = n, .x = x, .y = y });
		for (int64_t i = 0; i <= n; i++)
			assert_true(y[i] == (i < n ? old[i] + x[i] : old[i]));
		free_kept();
	}
}

/* ---- inputs ---- */

static void input_case(struct rfl_batch batch, int type, int64_t channels)
{
	enum { HEIGHT = 7, WIDTH = 9, AREA = HEIGHT * WIDTH };
	const int64_t n = batch.n * channels * AREA;
	const bool is_pixels = batch.kind == RFL_INPUT_PIXELS;
	uint8_t *const pixels = kept(room((size_t)n));
	float *const images = some(RFL_VALUE_F32, n, 1, 0, 2);
	float *const want = floats(n);
	void *const y = empty(type, n);
	struct rfl_k_input k = { .n = n,
				 .type = type,
				 .pixels = is_pixels,
				 .nhwc = batch.layout == RFL_LAYOUT_NHWC,
				 .channels = channels,
				 .area = AREA,
				 .from = is_pixels ? (const void *)pixels : images,
				 .y = y };

	for (int64_t i = 0; i < n; i++)
		pixels[i] = (uint8_t)(i * 37 % 256);
	if (is_pixels)
		batch.pixels = pixels;
	else
		batch.images = images;
	memcpy(k.mean, batch.scale->mean, sizeof(k.mean));
	memcpy(k.std, batch.scale->std, sizeof(k.std));
	RUN(input, k);
	rfl_host_input(&batch, channels, HEIGHT, WIDTH, RFL_HOST_F32, want);
	for (int64_t i = 0; i < n; i++)
		assert_true(get(type, y, i) == rfl_ieee_round(format_of(type), (double)want[i]));
	free_kept();
}

static void inputs_are_converted(void **state)
{
	static const struct rfl_pixel_scale scale = { { 0.485f, 0.456f, 0.406f },
						      { 0.229f, 0.224f, 0.225f } };

	(void)state;
	for (int type = 0; type < TYPES; type++)
		for (int i = 0; i < 8; i++)
			input_case((struct rfl_batch){ .n = 3,
						       .kind = i & 1 ? RFL_INPUT_PIXELS
								     : RFL_INPUT_IMAGES,
						       .layout = i & 2 ? RFL_LAYOUT_NHWC
								       : RFL_LAYOUT_NCHW,
						       .scale = &scale },
				   type, i & 4 ? 1 : 3);
	/* More than the three channels that pixels have. */
	input_case((struct rfl_batch){ .n = 2, .layout = RFL_LAYOUT_NCHW, .scale = &scale },
		   RFL_VALUE_F32, 5);
}

/* ---- elementwise ---- */

static double sigmoid(double a)
{
	return 1 / (1 + exp(-a));
}

static double activation(int op, double a)
{
	switch (op) {
	case RFL_E_RELU:
		return fmax(a, 0);
	case RFL_E_RELU6:
		return fmin(fmax(a, 0), 6);
	case RFL_E_SIGMOID:
		return sigmoid(a);
	case RFL_E_TANH:
		return tanh(a);
	case RFL_E_SILU:
		return a * sigmoid(a);
	case RFL_E_MISH:
		return a * tanh(log1p(exp(a)));
	case RFL_E_GELU:
		return a / 2 * (1 + erf(a / sqrt(2)));
	case RFL_E_GELU_TANH:
		return a / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (a + 0.044715 * pow(a, 3))));
	case RFL_E_HARD_SIGMOID:
		return fmin(fmax(a / 6 + 0.5, 0), 1);
	case RFL_E_HARD_SWISH:
		return a * fmin(fmax(a + 3, 0), 6) / 6;
	default:
		fail_msg("no activation %d", op);
		return 0;
	}
}

/* At a = 0, 6, 3 and -3 some have no derivative; arguments avoid them. */
static double slope(int op, double a)
{
	const double h = 1e-5;

	return (activation(op, a + h) - activation(op, a - h)) / (2 * h);
}

static void activation_case(int op, int type, int64_t n)
{
	const int gradient = op - RFL_E_RELU + RFL_E_RELU_GRADIENT;
	const bool of_result = op == RFL_E_SIGMOID || op == RFL_E_TANH;
	void *const x = some(type, n, 1, 1, 9), *const b = some(type, n, 2, 0, 2);
	void *const y = empty(type, n), *const dx = empty(type, n);

	if (n == 1003) {
		put(type, x, 0, 60);
		put(type, x, 1, -60);
	}
	for (int64_t i = 0; i < n; i++)
		if (fmod(get(type, x, i), 3) == 0)
			put(type, x, i, 1);
	RUN(elements, { .n = n, .type = type, .op = op, .a = x, .y = y });
	for (int64_t i = 0; i < n; i++)
		check_near(type, y, i, activation(op, get(type, x, i)),
			   fmin(fabs(get(type, x, i)), 10));
	RUN(elements,
	    { .n = n, .type = type, .op = gradient, .a = of_result ? y : x, .b = b, .y = dx });
	for (int64_t i = 0; i < n; i++) {
		const double a = get(type, of_result ? y : x, i), db = get(type, b, i);
		const double d = op == RFL_E_SIGMOID ? a * (1 - a)
				 : op == RFL_E_TANH  ? 1 - a * a
						     : slope(op, a);

		check_near(type, dx, i, db * d, 10 * fabs(db));
	}
	/* The gradients of RELU and RELU6 from their results. */
	if (op == RFL_E_RELU || op == RFL_E_RELU6) {
		RUN(elements, { .n = n, .type = type, .op = gradient, .a = y, .b = b, .y = b });
		check_same(type, b, dx, n);
	}
	RUN(elements, { .n = n, .type = type, .op = op, .a = x, .y = x });
	check_same(type, x, y, n);
	for (int64_t i = 0; i < n; i++)
		put(type, x, i, (double)NAN);
	RUN(elements, { .n = n, .type = type, .op = op, .a = x, .y = y });
	for (int64_t i = 0; i < n; i++)
		assert_true(isnan(get(type, y, i)));
	free_kept();
}

static void activations_match(void **state)
{
	(void)state;
	for (int type = 0; type < TYPES; type++)
		for (int op = RFL_E_RELU; op < RFL_E_RELU_GRADIENT; op++)
			for (size_t l = 0; l < RFL_ARRAY_LEN(lengths); l++)
				activation_case(op, type, lengths[l]);
}

static void call_host(int op, enum rfl_host_type type, int64_t n, const void *a, const void *b,
		      void *y)
{
	const enum rfl_host_activation relu =
		op == RFL_E_RELU_GRADIENT ? RFL_HOST_RELU : RFL_HOST_RELU6;

	if (op == RFL_E_ADD) {
		rfl_host_add(type, n, a, b, y);
	} else if (op == RFL_E_MULTIPLY) {
		rfl_host_multiply(type, n, a, b, y);
	} else if (op == RFL_E_AFFINE) {
		rfl_host_affine(type, n, a, 1.75f, -0.5f, y);
	} else if (op == RFL_E_HARD_SIGMOID) {
		rfl_host_hard_sigmoid(type, n, a, y);
	} else if (op == RFL_E_HARD_SIGMOID_GRADIENT) {
		rfl_host_hard_sigmoid_gradient(type, n, a, b, y);
	} else {
		memcpy(y, b, (size_t)n * size_of((int)type));
		rfl_host_relu_gradient(type, relu, n, a, y);
	}
}

static void elements_are_those_of_the_host(void **state)
{
	static const int ops[] = { RFL_E_ADD,
				   RFL_E_MULTIPLY,
				   RFL_E_AFFINE,
				   RFL_E_HARD_SIGMOID,
				   RFL_E_HARD_SIGMOID_GRADIENT,
				   RFL_E_RELU_GRADIENT,
				   RFL_E_RELU6_GRADIENT };
	static const double bounds[] = { 0, 6, -3, 3, -0.0 }; /* where activations bend */

	(void)state;
	for (size_t c = 0; c < RFL_ARRAY_LEN(ops) * RFL_ARRAY_LEN(lengths) * HOST_TYPES; c++) {
		const int type = c % HOST_TYPES, op = ops[c / HOST_TYPES % RFL_ARRAY_LEN(ops)];
		const int64_t n = lengths[c / HOST_TYPES / RFL_ARRAY_LEN(ops)];
		void *const a = some(type, n, 1, 2, 6), *const b = some(type, n, 2, 0, 2);
		void *const want = empty(type, n), *const y = empty(type, n);
		struct rfl_k_elements k = {
			.n = n, .type = type, .op = op, .a = a, .b = b, .y = y
		};

		k.scale = 1.75f;
		k.shift = -0.5f;
		for (int64_t i = 0; i < n && i < 5; i++)
			put(type, a, i, bounds[i]);
		call_host(op, (enum rfl_host_type)type, n, a, b, want);
		RUN(elements, k);
		check_same(type, y, want, n);
		k.y = b;
		RUN(elements, k);
		check_same(type, b, want, n);
		free_kept();
	}
}

static void bias_case(const struct shape *s)
{
	const float *const bias = some(RFL_VALUE_F32, s->columns, 2, 1, 3);
	void *const x = some(s->type, s->n, 1, 1, 5), *const want = empty(s->type, s->n);

	for (int variant = 0; variant < 6; variant++) {
		const int act = variant % 3;
		void *const y = again(s->type, x, s->n);

		for (int64_t i = 0; i < s->n; i++) {
			float v = (float)get(s->type, x, i);

			v += variant < 3 ? bias[i % s->columns] : 0;
			v = act && v < 0 ? 0 : act == 2 && v > 6 ? 6 : v;
			put(s->type, want, i, (double)v);
		}
		RUN(bias, { .n = s->n,
			    .type = s->type,
			    .activation = act,
			    .columns = s->columns,
			    .bias = variant < 3 ? bias : NULL,
			    .y = y });
		check_same(s->type, y, want, s->n);
	}
}

static void biases_are_added(void **state)
{
	(void)state;
	for_shapes(TYPES, bias_case);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f16_is_widened),
		cmocka_unit_test(narrowing_rounds_to_even),
		cmocka_unit_test(floats_are_added),
		cmocka_unit_test(inputs_are_converted),
		cmocka_unit_test(activations_match),
		cmocka_unit_test(elements_are_those_of_the_host),
		cmocka_unit_test(biases_are_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
