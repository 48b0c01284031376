/* kernel_elements.h - kernels that convert inputs and types, and elementwise ones. */
#ifndef RFL_RUNNER_PLANNED_CUDA_KERNEL_ELEMENTS_H
#define RFL_RUNNER_PLANNED_CUDA_KERNEL_ELEMENTS_H

#ifndef __CUDACC_RTC__
#include "runner/planned/cuda/kernel_values.h"
#endif

/* ---- inputs and types ---- */

INLINE float input_value(const struct rfl_k_input *k, int64_t i, int64_t channel)
{
	const float mean = k->mean[k->pixels ? channel : 0], std = k->std[k->pixels ? channel : 0];

	if (!k->pixels)
		return ((const float *)k->from)[i];
	return ((float)((const uint8_t *)k->from)[i] / 255.0f - mean) / std;
}

INLINE void input_at(const struct rfl_k_input *k, int64_t i, int width)
{
	int64_t channel = i % k->channels, place = i / k->channels % k->area;
	int64_t image = i / k->channels / k->area * k->channels;
	struct pack y = { { 0 } };

	for (int j = 0; j < width; j++) {
		y.at[j] = input_value(k, k->nhwc ? i + j : (image + channel) * k->area + place,
				      channel);
		if (++channel < k->channels)
			continue;
		channel = 0;
		if (++place < k->area)
			continue;
		place = 0;
		image += k->channels;
	}
	store(TYPE(k), k->y, i, y, width);
}
PACKS(input, WIDE(TYPE(&k)), 1)

INLINE void narrow_at(const struct rfl_k_narrow *k, int64_t i, int width)
{
	store(TYPE(k), k->y, i, load_floats(k->from, i, width), width);
}
PACKS(narrow, FLOATS, 1)

INLINE void widen_at(const struct rfl_k_widen *k, int64_t i, int width)
{
	store_floats(k->y, i, load(TYPE(k), k->from, i, width), width);
}
PACKS(widen, FLOATS, 1)

INLINE void add_floats_at(const struct rfl_k_add_floats *k, int64_t i, int width)
{
	store_floats(k->y, i,
		     sum_of(load_floats(k->y, i, width), load_floats(k->x, i, width), width),
		     width);
}
PACKS(add_floats, FLOATS, 1)

/* ---- elementwise ---- */

INLINE float sigmoid(float a)
{
	return 1 / (1 + expf(-a));
}

/* With n = e^a * (e^a + 2), tanh(log(1 + e^a)) = n / (n + 2), which is 1 from a = 20. */
INLINE float mish(float a)
{
	const float e = expf(a < 20 ? a : 20), n = e * (e + 2);

	return a < 20 ? a * (n / (n + 2)) : a;
}

INLINE float mish_slope(float a)
{
	const float e = expf(a < 20 ? a : 20), n = e * (e + 2);

	return a < 20 ? n / (n + 2) + a * (4 * e / (n + 2)) * ((1 + e) / (n + 2)) : 1;
}

INLINE float normal_below(float a)
{
	return 0.5f * (1 + erff(a * 0.70710678f));
}

INLINE float gelu_slope(float a)
{
	return normal_below(a) + a * 0.39894228f * expf(-0.5f * a * a);
}

INLINE float gelu_tanh(float a)
{
	return tanhf(0.79788456f * (a + 0.044715f * a * a * a));
}

INLINE float gelu_tanh_slope(float a)
{
	const float t = gelu_tanh(a), inner = 0.79788456f * (1 + 3 * 0.044715f * a * a);

	return 0.5f * (1 + t) + 0.5f * a * (1 - t * t) * inner;
}

INLINE void elements_at(const struct rfl_k_elements *k, int64_t i, int width)
{
	struct pack v = load(TYPE(k), k->a, i, width);
	const struct pack w = k->b ? load(TYPE(k), k->b, i, width) : v;

/* clang-format off */
#define OP(op, result)                                    \
	case op:                                          \
		for (int j = 0; j < width; j++) {         \
			const float a = v.at[j], b = w.at[j]; \
                                                          \
			(void)b;                          \
			v.at[j] = (result);               \
		}                                         \
		break;
	switch (k->op) {
	OP(RFL_E_ADD, a + b)
	OP(RFL_E_MULTIPLY, a * b)
	OP(RFL_E_AFFINE, a * k->scale + k->shift)
	OP(RFL_E_RELU, activated(RELU, a))
	OP(RFL_E_RELU6, activated(RELU6, a))
	OP(RFL_E_SIGMOID, sigmoid(a))
	OP(RFL_E_TANH, tanhf(a))
	OP(RFL_E_SILU, a * sigmoid(a))
	OP(RFL_E_MISH, mish(a))
	OP(RFL_E_GELU, a * normal_below(a))
	OP(RFL_E_GELU_TANH, 0.5f * a * (1 + gelu_tanh(a)))
	OP(RFL_E_HARD_SIGMOID, clamp(a / 6 + 0.5f, 0, 1))
	OP(RFL_E_HARD_SWISH, a * clamp(a + 3, 0, 6) / 6)
	OP(RFL_E_RELU_GRADIENT, a > 0 ? b : 0)
	OP(RFL_E_RELU6_GRADIENT, a > 0 && a < 6 ? b : 0)
	OP(RFL_E_SIGMOID_GRADIENT, b * a * (1 - a))
	OP(RFL_E_TANH_GRADIENT, b * (1 - a * a))
	OP(RFL_E_SILU_GRADIENT, b * sigmoid(a) * (1 + a * (1 - sigmoid(a))))
	OP(RFL_E_MISH_GRADIENT, b * mish_slope(a))
	OP(RFL_E_GELU_GRADIENT, b * gelu_slope(a))
	OP(RFL_E_GELU_TANH_GRADIENT, b * gelu_tanh_slope(a))
	OP(RFL_E_HARD_SIGMOID_GRADIENT, fabsf(a) < 3 ? b / 6 : 0)
	OP(RFL_E_HARD_SWISH_GRADIENT, a <= -3 ? 0 : a < 3 ? b * (a / 3 + 0.5f) : b)
	}
#undef OP
	/* clang-format on */
	store(TYPE(k), k->y, i, v, width);
}
PACKS(elements, WIDE(TYPE(&k)), 1)

INLINE void bias_at(const struct rfl_k_bias *k, int64_t i, int width)
{
	struct pack y = load(TYPE(k), k->y, i, width);

	if (k->bias)
		y = sum_of(y, load_columns(k->bias, i, k->columns, width), width);
	for (int j = 0; j < width; j++)
		y.at[j] = activated(k->activation, y.at[j]);
	store(TYPE(k), k->y, i, y, width);
}
PACKS(bias, WIDE(TYPE(&k)), 1)

#endif
