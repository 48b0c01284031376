/* Rounding to fp32, fp16 and bf16, to nearest and ties to even. */
#include "tests/unit/ieee_unpack.h"
#include "tests/unit/rfl_test.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/ieee.h"

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* The CPU's conversion is the oracle, over the whole range of exponents. */
static void fp32_is_the_processors(void **state)
{
	uint64_t seed = 1;
	uint32_t bits;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		const uint64_t r = next_random(&seed);
		/* half of them on or near a tie */
		const double fraction = i & 1 ? (double)(r >> 11) * 0x1p-53
					      : (double)((r >> 39 << 1) | 1) * 0x1p-26;
		const double x =
			ldexp(r & 1 ? fraction + 1 : -fraction - 1, (int)(r >> 1 & 511) - 200);

		assert_true(rfl_ieee_round(&rfl_ieee_fp32, x) == (double)(float)x);
		memcpy(&bits, &(float){ (float)x }, sizeof(bits));
		assert_int_equal(rfl_ieee_pack(&rfl_ieee_fp32, x), bits);
		assert_true(ieee_unpack(&rfl_ieee_fp32, bits) == (double)(float)x);
	}
}

/* Values from the tables of the formats. */
static void known_values(void **state)
{
	static const struct {
		const struct rfl_ieee *format;
		double x, rounded;
	} cases[] = {
		{ &rfl_ieee_fp16, 0.01, 0.01000213623046875 },
		{ &rfl_ieee_bf16, 0.01, 0.010009765625 },
		{ &rfl_ieee_fp16, 65504, 65504 },
		{ &rfl_ieee_fp16, 65519.99, 65504 },
		{ &rfl_ieee_fp16, 65520, INFINITY }, /* a tie goes to the even neighbour */
		{ &rfl_ieee_fp16, -1e6, -INFINITY },
		{ &rfl_ieee_fp16, 2049, 2048 },
		{ &rfl_ieee_fp16, 2051, 2052 },
		{ &rfl_ieee_fp16, 0x1p-24, 0x1p-24 },
		{ &rfl_ieee_fp16, 0x1p-25, 0 },
		{ &rfl_ieee_fp16, 0x1.8p-24, 0x1p-23 },
		{ &rfl_ieee_bf16, 0x1.8p-133, 0x1p-132 },
		{ &rfl_ieee_fp32, -0x1.8p-149, -0x1p-148 },
		{ &rfl_ieee_fp16, 0x1.8p-25, 0x1p-24 },
		{ &rfl_ieee_fp16, 0x1p-26, 0 },
		{ &rfl_ieee_fp16, 0x3p-25, 0x1p-23 },
		{ &rfl_ieee_fp16, 0x5p-25, 0x1p-23 },
		{ &rfl_ieee_fp16, 0, 0 },
		{ &rfl_ieee_fp16, DBL_MIN / 4, 0 },
		{ &rfl_ieee_bf16, 257, 256 },
		{ &rfl_ieee_bf16, 259, 260 },
		{ &rfl_ieee_bf16, 3.39e38, 0x1.fep127 },
		{ &rfl_ieee_bf16, 3.4e38, INFINITY },
		{ &rfl_ieee_bf16, INFINITY, INFINITY },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		if (rfl_ieee_round(cases[i].format, cases[i].x) != cases[i].rounded)
			fail_msg("%s of %g is %g", cases[i].format->name, cases[i].x,
				 rfl_ieee_round(cases[i].format, cases[i].x));
	assert_true(isnan(rfl_ieee_round(&rfl_ieee_fp16, NAN)));
	assert_true(rfl_ieee_spacing(&rfl_ieee_fp16, 9.95) == 0x1p-7);
	assert_true(rfl_ieee_spacing(&rfl_ieee_fp16, 0) == 0x1p-24);
	assert_true(rfl_ieee_spacing(&rfl_ieee_bf16, 4) == 0x1p-5);
	assert_true(rfl_ieee_spacing(&rfl_ieee_fp32, 1) == (double)FLT_EPSILON);
}

/* All patterns of 16 bits are numbers, infinities or NaN, and come back. */
static void bits_come_back(void **state)
{
	static const struct rfl_ieee *const formats[] = { &rfl_ieee_fp16, &rfl_ieee_bf16 };

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		uint32_t nans = 0;

		for (uint32_t bits = 0; bits < 1 << 16; bits++) {
			const double x = ieee_unpack(formats[f], bits);

			if (isnan(x))
				nans++;
			else
				assert_int_equal(rfl_ieee_pack(formats[f], x), bits);
		}
		/* of both signs, every fraction but that of infinity */
		assert_int_equal(nans, 2 * ((1 << (formats[f]->bits - 1)) - 1));
		assert_true(isnan(ieee_unpack(formats[f], rfl_ieee_pack(formats[f], NAN))));
	}
	assert_int_equal(rfl_ieee_pack(&rfl_ieee_fp16, 1), 0x3c00);
	assert_int_equal(rfl_ieee_pack(&rfl_ieee_fp16, -65520), 0xfc00);
	assert_int_equal(rfl_ieee_pack(&rfl_ieee_fp16, 0x1p-24), 1);
	assert_int_equal(rfl_ieee_pack(&rfl_ieee_bf16, 1), 0x3f80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fp32_is_the_processors),
		cmocka_unit_test(known_values),
		cmocka_unit_test(bits_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
