/* Numbers as text and back. */
#include "tests/unit/rfl_test.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/proc.h"

static void exact_is_shortest(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0.1, "0.1" },
		{ 0, "0" },
		{ -0.0, "-0" },
		{ 1e30, "1e+30" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 4089184256.0, "4089184256" },
		{ DBL_MAX, "1.7976931348623157e+308" },
		{ DBL_MIN, "2.2250738585072014e-308" },
		{ 4.9406564584124654e-324, "5e-324" },
		{ NAN, "" },
		{ INFINITY, "inf" },
		{ -INFINITY, "-inf" },
	};
	char out[RFL_NUM_MAX];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(rfl_num_exact(cases[i].value, out), cases[i].text);
}

/* Every bit pattern that a generator makes reads back as itself. */
static void exact_reads_back(void **state)
{
	uint64_t bits = 0x9e3779b97f4a7c15u;
	char out[RFL_NUM_MAX];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		double value, back = 0;

		bits = bits * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		assert_int_equal(rfl_num_parse_double(rfl_num_exact(value, out), "x", &back, NULL),
				 RFL_OK);
		assert_memory_equal(&back, &value, sizeof(value));
	}
}

/* Compile a German locale into the test's directory and take it. */
static bool set_made_locale(void *dir)
{
	const char *path = tmp_path(dir, "de_DE.UTF-8");
	const char *const argv[] = { "localedef", "-i", "de_DE", "-f", "UTF-8", path, NULL };
	struct rfl_proc_result r;

	if (rfl_proc_run(&(struct rfl_proc_spec){ .argv = argv, .capture_stderr = true }, &r, NULL))
		return false;
	rfl_proc_result_fini(&r);
	setenv("LOCPATH", dir, 1);
	return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

/* With a comma as the decimal sign in the process's locale, texts keep their point. */
static void the_locale_does_not_matter(void **state)
{
	char text[RFL_NUM_MAX], si[64];
	double back = 0;

	if (!setlocale(LC_ALL, "de_DE.UTF-8") && !set_made_locale(*state))
		skip(); /* a system without the sources of locales */
	assert_string_equal(localeconv()->decimal_point, ",");
	assert_string_equal(rfl_num_exact(0.5, text), "0.5");
	assert_string_equal(rfl_num_si(4.09e9, "FLOP", 3, si, sizeof(si)), "4.09 GFLOP");
	assert_string_equal(rfl_num_people(1234.5, 5, text), "1,234.5");
	assert_string_equal(rfl_num_bytes(1536, si, sizeof(si)), "1.5 KiB");
	assert_int_equal(rfl_num_parse_double("0.25", "x", &back, NULL), RFL_OK);
	assert_true(back == 0.25);
	assert_int_equal(rfl_num_parse_double("0,25", "x", &back, NULL), RFL_EFORMAT);
	setlocale(LC_ALL, "C");
}

static void si_prefixes(void **state)
{
	static const struct {
		double value;
		int digits;
		const char *text;
	} cases[] = {
		{ 4089184256, 3, "4.09 GFLOP" }, { 4e9, 3, "4 GFLOP" },
		{ 999.96, 3, "1 kFLOP" },        { 999.4, 3, "999 FLOP" },
		{ 999999999, 4, "1 GFLOP" },     { 0, 3, "0 FLOP" },
		{ -1500, 2, "-1.5 kFLOP" },      { 1e-12, 3, "1 pFLOP" },
		{ 2.5e-6, 3, "2.5 uFLOP" },      { 9.99e20, 3, "999 EFLOP" },
		{ 1e22, 3, "1e+22 FLOP" },       { 1e-15, 3, "1e-15 FLOP" },
		{ 123456, 1, "123 kFLOP" },      { NAN, 3, "n/a" },
		{ INFINITY, 3, "inf FLOP" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(
			rfl_num_si(cases[i].value, "FLOP", cases[i].digits, out, sizeof(out)),
			cases[i].text);
	assert_string_equal(rfl_num_si(5, "", 3, out, sizeof(out)), "5");
	assert_string_equal(rfl_num_si(5e6, NULL, 3, out, sizeof(out)), "5 M");
	assert_string_equal(rfl_num_si(5e6, "B/s", 3, out, 4), "5 M"); /* cut, and ended */
}

static void byte_counts(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 1610612736, "1.5 GiB" },
		{ 0, "0 B" },
		{ 1, "1 B" },
		{ 1023, "1023 B" },
		{ 1024, "1 KiB" },
		{ 1048064, "1 MiB" },
		{ 97.5 * 1048576, "97.5 MiB" },
		{ -2048, "-2 KiB" },
		{ NAN, "n/a" },
		{ 1152921504606846976.0, "1 EiB" },
		{ 2e21, "1735 EiB" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(rfl_num_bytes(cases[i].value, out, sizeof(out)), cases[i].text);
}

static void groups_of_three(void **state)
{
	char out[RFL_NUM_MAX];

	(void)state;
	assert_string_equal(rfl_num_grouped(25557032, out), "25,557,032");
	assert_string_equal(rfl_num_grouped(0, out), "0");
	assert_string_equal(rfl_num_grouped(999, out), "999");
	assert_string_equal(rfl_num_grouped(-1000, out), "-1,000");
	assert_string_equal(rfl_num_grouped(INT64_MIN, out), "-9,223,372,036,854,775,808");
	assert_string_equal(rfl_num_grouped(INT64_MAX, out), "9,223,372,036,854,775,807");
	assert_string_equal(rfl_num_full(25557032, out), "25,557,032");
	assert_string_equal(rfl_num_full(0.5, out), "0.5");
	assert_string_equal(rfl_num_full(1e300, out), "1e+300");
	assert_string_equal(rfl_num_full(NAN, out), "");
}

static void reals_for_people(void **state)
{
	static const struct {
		double value;
		int digits;
		const char *text;
	} cases[] = {
		{ 138.357544, 4, "138.4" },
		{ 4.089184, 4, "4.089" },
		{ 4, 4, "4.000" },
		{ 0, 4, "0.000" },
		{ 1234567.8, 4, "1,234,568" },
		{ 0.00012345, 3, "0.000123" },
		{ 0.000012345, 3, "1.23e-05" },
		{ 1e15, 4, "1.000e+15" },
		{ -9999.96, 5, "-10,000" },
		{ NAN, 4, "n/a" },
		{ INFINITY, 4, "inf" },
		{ 123456789012345.6, 17, "123,456,789,012,345.59" },
	};
	char out[RFL_NUM_MAX];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(rfl_num_people(cases[i].value, cases[i].digits, out),
				    cases[i].text);
}

static void with_fixed_decimals(void **state)
{
	static const struct {
		double value;
		int decimals;
		const char *text;
	} cases[] = {
		{ 22447.25, 1, "22,447.2" }, /* a tie goes to the even digit */
		{ 97.695, 1, "97.7" },
		{ 4, 2, "4.00" },
		{ 0, 1, "0.0" },
		{ 0.05, 1, "0.1" },
		{ 0.049, 1, "<0.1" },
		{ -0.049, 1, ">-0.1" },
		{ 0.4, 0, "<1" },
		{ -1234.56, 1, "-1,234.6" },
		{ NAN, 1, "n/a" },
		{ -INFINITY, 1, "-inf" },
		{ 2e15, 1, "2.0000000000000000e+15" },
	};
	char out[RFL_NUM_MAX];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(rfl_num_fixed(cases[i].value, cases[i].decimals, out),
				    cases[i].text);
}

static void doubles_that_are_none(void **state)
{
	static const char *const bad[] = { "",     " ",   "1 ",  " 1",   "abc",   "1.5x",
					   "0x10", "inf", "nan", "-inf", "1e999", "--1",
					   "1,5",  "+",   ".",   "1e",   "-" };
	double value = 7;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(bad); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(rfl_num_parse_double(bad[i], "--dpi", &value, &err), RFL_EFORMAT);
		assert_says(&err, "--dpi: '");
		assert_says(&err, bad[i]);
		assert_true(value == 7);
	}
}

static void doubles_that_are(void **state)
{
	double value = 0;

	(void)state;
	assert_int_equal(rfl_num_parse_double("-.5e3", "x", &value, NULL), RFL_OK);
	assert_true(value == -500);
	assert_int_equal(rfl_num_parse_double("+7", "x", &value, NULL), RFL_OK);
	assert_true(value == 7);
	assert_int_equal(rfl_num_parse_double("1e-400", "x", &value, NULL), RFL_OK);
	assert_true(value == 0);
}

/* Short decimals are read without strtod(): to the same bits. */
static void short_doubles_are_as_those_of_the_library(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		char digits[24], text[32];
		int len, point;
		double value = 0;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		len = snprintf(digits, sizeof(digits), "%" PRIu64, random >> (random % 61));
		point = (int)(random >> 40) % (len + 1);
		snprintf(text, sizeof(text), "%.*s%s%s", point, digits, i % 5 ? "." : "",
			 digits + point);
		assert_int_equal(rfl_num_parse_double(text, "x", &value, NULL), RFL_OK);
		assert_true(value == strtod(text, NULL));
	}
}

static void integers(void **state)
{
	static const char *const bad[] = { "", "1.5", "a", "1e3", "0x1", " 1", "1 ", "-" };
	struct rfl_err err = RFL_ERR_INIT;
	int64_t value = 7;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(bad); i++)
		assert_int_equal(rfl_num_parse_int(bad[i], "x", &value, NULL), RFL_EFORMAT);
	assert_int_equal(rfl_num_parse_int("9223372036854775808", "x", &value, &err),
			 RFL_EOVERFLOW);
	assert_says(&err, "9223372036854775808");
	assert_true(value == 7);
	assert_int_equal(rfl_num_parse_int("-9223372036854775808", "x", &value, NULL), RFL_OK);
	assert_true(value == INT64_MIN);
	assert_int_equal(rfl_num_parse_int("+042", "x", &value, NULL), RFL_OK);
	assert_true(value == 42);
}

static void sizes_in_bytes(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} good[] = {
		{ "1", 1 },
		{ "80e9", INT64_C(80000000000) },
		{ "24GiB", INT64_C(25769803776) },
		{ "24 GB", INT64_C(24000000000) },
		{ "22.5gib", INT64_C(24159191040) },
		{ "512MB", 512000000 },
		{ "4k", 4096 },
		{ "1.5 kB", 1500 },
		{ "2T", INT64_C(2199023255552) },
		{ "7B", 7 },
	};
	static const char *const bad[] = { "",     "GiB", "24XB", "0",    "-1GiB",  "0.5",
					   "0x10", "inf", "nan",  "1G B", "24GiB ", " 1" };
	struct rfl_err err = RFL_ERR_INIT;
	int64_t value = -7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_ok(rfl_num_parse_bytes(good[i].text, "x", &value, &err), &err);
		assert_int_equal(value, good[i].bytes);
	}
	value = -7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rfl_num_parse_bytes(bad[i], "x", &value, NULL), RFL_EFORMAT);
	assert_int_equal(rfl_num_parse_bytes("9e18GiB", "x", &value, &err), RFL_EOVERFLOW);
	assert_int_equal(value, -7);
	assert_says(&err, "x: '9e18GiB'");
}

static void checked_arithmetic(void **state)
{
	int64_t r = 7;

	(void)state;
	assert_true(rfl_num_mul(3037000499, 3037000499, &r));
	assert_true(r == INT64_C(9223372030926249001));
	assert_false(rfl_num_mul(3037000500, 3037000500, &r));
	assert_false(rfl_num_add(INT64_MAX, 1, &r));
	assert_false(rfl_num_mul(INT64_MIN, -1, &r));
	assert_true(r == INT64_C(9223372030926249001));
	assert_true(rfl_num_add(INT64_MAX, -1, &r));
	assert_true(r == INT64_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_is_shortest),
		cmocka_unit_test(exact_reads_back),
		cmocka_unit_test_setup_teardown(the_locale_does_not_matter, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(si_prefixes),
		cmocka_unit_test(byte_counts),
		cmocka_unit_test(groups_of_three),
		cmocka_unit_test(reals_for_people),
		cmocka_unit_test(with_fixed_decimals),
		cmocka_unit_test(doubles_that_are_none),
		cmocka_unit_test(doubles_that_are),
		cmocka_unit_test(short_doubles_are_as_those_of_the_library),
		cmocka_unit_test(integers),
		cmocka_unit_test(sizes_in_bytes),
		cmocka_unit_test(checked_arithmetic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
