/* The golden fill: test vectors to the bit, in every variant and split, and the inputs. */
#include <stdlib.h>
#include <string.h>

#include "rfl_test.h"
#include "base/compiler.h"
#include "data/fill.h"

static void raw_matches_splitmix64(void **state)
{
	(void)state;
	assert_true(rfl_fill_raw(0, 0) == UINT64_C(0xe220a8397b1dcdaf));
	assert_true(rfl_fill_raw(1, 2) == UINT64_C(0xb3703ad894507022));
	assert_true(rfl_fill_raw(RFL_FILL_IMAGE, 0) == UINT64_C(0x219fc13d6bc5b015));
}

static void vectors_match_to_the_bit(void **state)
{
	const struct rfl_fill_vector *v;

	(void)state;
	for (size_t i = 0; (v = rfl_fill_vector_at(i)); i++) {
		uint32_t first5[5], bitsum;

		rfl_fill_vector_run(v, first5, &bitsum);
		assert_memory_equal(first5, v->first5, sizeof(first5));
		assert_int_equal(bitsum, v->bitsum);
	}
}

/* Lengths and starts that leave a rest after the last whole register. */
static void variants_agree(void **state)
{
	enum { N = 1000 };
	static const size_t lengths[] = { 0, 1, 7, 8, 15, 16, 17, 63, 64, 65, 333, N };
	static const struct rfl_fill_rule rules[] = {
		{ RFL_FILL_SCALED, 0.0417f },
		{ RFL_FILL_ONE_PLUS, 0.1f },
		{ RFL_FILL_ONE_PLUS_ABS, 0.1f },
	};
	float want[N + 1], got[N + 1];

	(void)state;
	for (size_t r = 0; r < RFL_ARRAY_LEN(rules); r++) {
		for (size_t l = 0; l < RFL_ARRAY_LEN(lengths); l++) {
			const size_t n = lengths[l], first = 11 * r + l;

			for (size_t i = 0; i < n; i++)
				rfl_fill_values(rules[r], 3, first + i, 1, &want[i]);
			for (size_t v = 0; rfl_fill_variant(v); v++) {
				memset(got, 0x55, sizeof(got));
				memcpy(&want[n], &got[n], sizeof(got[n]));
				rfl_fill_variant(v)(rules[r], UINT64_C(3) << 32 | first, n, got);
				assert_memory_equal(got, want, (n + 1) * sizeof(*got));
			}
		}
	}
}

/* Three tensors, one longer than a block: any number of threads gives the same bits. */
static void threads_agree(void **state)
{
	enum { LONG = 700001 };
	const struct rfl_fill_rule rule = { RFL_FILL_SCALED, 0.5f };
	float *want = malloc(LONG * sizeof(*want)), *got = malloc((LONG + 6) * sizeof(*got));
	struct rfl_fill_job jobs[3] = {
		{ rule, 4, 0, 5, NULL },
		{ rule, 9, 0, LONG, NULL },
		{ rule, 2, 0, 1, NULL },
	};

	(void)state;
	assert_non_null(want);
	assert_non_null(got);
	jobs[0].out = got;
	jobs[1].out = got + 5;
	jobs[2].out = got + 5 + LONG;
	rfl_fill_values(rule, 9, 0, LONG, want);
	for (int threads = 1; threads <= 4; threads++) {
		float few[5], one;

		memset(got, 0, (LONG + 6) * sizeof(*got));
		rfl_fill_run(jobs, 3, threads);
		assert_memory_equal(jobs[1].out, want, LONG * sizeof(*want));
		rfl_fill_values(rule, 4, 0, 5, few);
		assert_memory_equal(jobs[0].out, few, sizeof(few));
		rfl_fill_values(rule, 2, 0, 1, &one);
		assert_memory_equal(jobs[2].out, &one, sizeof(one));
	}
	free(got);
	free(want);
}

static void images_in_both_layouts(void **state)
{
	enum { N = 2, C = 3, S = 224, TOTAL = N * C * S * S };
	static const uint32_t first5[5] = { 0xbf3cc07e, 0xbe952a6c, 0x3f70ddbc, 0x3db8d730,
					    0x3cfc2340 };
	const struct rfl_shape shape = { .ndim = 3, .dim = { C, S, S } };
	struct rfl_err err = RFL_ERR_INIT;
	float *nchw = malloc(TOTAL * sizeof(*nchw)), *nhwc = malloc(TOTAL * sizeof(*nhwc));

	(void)state;
	assert_non_null(nchw);
	assert_non_null(nhwc);
	assert_ok(rfl_fill_images(&shape, 0, N, RFL_LAYOUT_NCHW, 2, nchw, &err), &err);
	assert_memory_equal(nchw, first5, sizeof(first5));
	assert_int_equal(rfl_fill_bitsum(nchw, TOTAL), 0x3c950262);
	assert_ok(rfl_fill_images(&shape, 0, N, RFL_LAYOUT_NHWC, 2, nhwc, &err), &err);
	assert_int_equal(rfl_fill_bitsum(nhwc, TOTAL), 0x3c950262);
	for (size_t b = 0; b < N; b++)
		for (size_t c = 0; c < C; c++)
			for (size_t i = 0; i < S * S; i += 997)
				assert_memory_equal(&nhwc[(b * S * S + i) * C + c],
						    &nchw[(b * C + c) * S * S + i], sizeof(float));
	free(nhwc);
	free(nchw);
}

static void labels_and_tokens(void **state)
{
	static const int64_t first8[] = { 80, 55, 130, 121, 119, 44, 82, 109 };
	int64_t labels[40], tokens[64], sum = 0;

	(void)state;
	rfl_fill_labels(0, 40, 1000, labels);
	assert_int_equal(labels[0], 0);
	assert_int_equal(labels[1], 37);
	assert_int_equal(labels[39], 37 * 39 % 1000);
	rfl_fill_tokens(0, 64, 256, tokens);
	assert_memory_equal(tokens, first8, sizeof(first8));
	for (size_t i = 0; i < 64; i++)
		sum += tokens[i];
	assert_int_equal(sum, 8477);
}

static void a_part_is_of_the_whole(void **state)
{
	enum { WHOLE = 6, FIRST = 2, PART = 3, SIZE = 3 * 4 * 5 };
	const struct rfl_shape shape = { .ndim = 3, .dim = { 3, 4, 5 } };
	static float whole[WHOLE * SIZE], part[PART * SIZE];
	int64_t all[WHOLE], some[PART];
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int layout = RFL_LAYOUT_NCHW; layout <= RFL_LAYOUT_NHWC; layout++) {
		assert_ok(
			rfl_fill_images(&shape, 0, WHOLE, (enum rfl_layout)layout, 1, whole, &err),
			&err);
		assert_ok(rfl_fill_images(&shape, FIRST, PART, (enum rfl_layout)layout, 2, part,
					  &err),
			  &err);
		assert_memory_equal(part, whole + FIRST * SIZE, sizeof(part));
	}
	rfl_fill_labels(0, WHOLE, 10, all);
	rfl_fill_labels(FIRST, PART, 10, some);
	assert_memory_equal(some, all + FIRST, sizeof(some));
	rfl_fill_tokens(0, WHOLE, 1000, all);
	rfl_fill_tokens(FIRST, PART, 1000, some);
	assert_memory_equal(some, all + FIRST, sizeof(some));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_matches_splitmix64),
		cmocka_unit_test(vectors_match_to_the_bit),
		cmocka_unit_test(variants_agree),
		cmocka_unit_test(threads_agree),
		cmocka_unit_test(a_part_is_of_the_whole),
		cmocka_unit_test(images_in_both_layouts),
		cmocka_unit_test(labels_and_tokens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
