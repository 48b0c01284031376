/*
 * test_profile_import_ncu_number.c - numbers in every locale that ncu prints them in, and its
 * units.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profile/import/ncu.h"
#include "tests/unit/rfl_test.h"

static struct rfl_span span(const char *text)
{
	return (struct rfl_span){ .at = text, .len = strlen(text) };
}

/* Cells of one file, in order, and what they are. */
struct cell {
	const char *text;
	bool whole;
	double value; /* NaN: missing; -1: no number; -2: contradicts */
};

static void check_file(const struct cell *cells, size_t n)
{
	struct rfl_ncu_convention c = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct rfl_ncu_number number =
			rfl_ncu_number_read(&c, span(cells[i].text), cells[i].whole, 0, i + 1);

		if (isnan(cells[i].value))
			assert_int_equal(number.what, RFL_NCU_MISSING);
		else if (cells[i].value == -1)
			assert_int_equal(number.what, RFL_NCU_BAD);
		else if (cells[i].value == -2)
			assert_int_equal(number.what, RFL_NCU_CONTRADICTS);
		else if (number.what != RFL_NCU_VALUE || number.value != cells[i].value)
			fail_msg("'%s' is %.17g, not %.17g", cells[i].text, number.value,
				 cells[i].value);
	}
}

#define CHECK_FILE(...)                                              \
	do {                                                         \
		static const struct cell cells[] = { __VA_ARGS__ };  \
		check_file(cells, sizeof(cells) / sizeof(cells[0])); \
	} while (0)

static void reads_commas_as_groups(void **state)
{
	(void)state;
	CHECK_FILE({ "1,342,177,280", false, 1342177280 }, { "117,344", false, 117344 },
		   { "117.344", false, 117.344 }, { "5,318,969,728.00", false, 5318969728 });
	CHECK_FILE({ "99.63", false, 99.63 }, { "1,234", false, 1234 }, { "12", false, 12 });
	CHECK_FILE({ "16,764,800,860,160.00", false, 16764800860160 },
		   { "205288867102720.00", false, 205288867102720 });
}

static void reads_points_as_groups(void **state)
{
	(void)state;
	CHECK_FILE({ "27.595.520", false, 27595520 }, { "65,77", false, 65.77 },
		   { "117.344", false, 117344 }, { "1.234,5", false, 1234.5 });
	CHECK_FILE({ "65,77", false, 65.77 }, { "117.344", false, 117344 });
}

static void reads_other_groups(void **state)
{
	(void)state;
	CHECK_FILE({ "1'342'177", false, 1342177 }, { "117.344", false, 117.344 });
	CHECK_FILE({ "1\xc2\xa0"
		     "342\xe2\x80\xaf"
		     "177,5",
		     false, 1342177.5 },
		   { "117,344", false, 117.344 });
	CHECK_FILE({ "12,34,567", false, 1234567 });
}

/* A count is whole: that decides what one group alone leaves open. */
static void a_count_decides(void **state)
{
	(void)state;
	CHECK_FILE({ "117.344", true, 117344 }, { "3,5", false, 3.5 });
	CHECK_FILE({ "117,344", true, 117344 }, { "3.5", false, 3.5 });
}

/* Nothing decides: the C locale, until a cell says otherwise. */
static void assumes_and_says_so(void **state)
{
	struct rfl_ncu_convention c = { 0 };
	struct rfl_ncu_number number;

	(void)state;
	number = rfl_ncu_number_read(&c, span("117.344"), false, 0, 5);
	assert_close(number.value, 117.344, 0);
	assert_true(c.assumed);
	assert_int_equal(c.witness_line, 5);
	assert_string_equal(c.witness, "117.344");
	number = rfl_ncu_number_read(&c, span("117,344"), false, 0, 6);
	assert_close(number.value, 117344, 0);
	number = rfl_ncu_number_read(&c, span("0,5"), false, 0, 7);
	assert_int_equal(number.what, RFL_NCU_CONTRADICTS);
	number = rfl_ncu_number_read(&c, span("0.5"), false, 0, 8);
	assert_close(number.value, 0.5, 0);
	assert_false(c.assumed);
}

static void tells_what_is_no_number(void **state)
{
	(void)state;
	CHECK_FILE({ "n/a", false, NAN }, { "", false, NAN }, { "nan", false, NAN },
		   { "-nan", false, NAN }, { "inf", false, NAN }, { "(!) n/a", false, NAN },
		   { "no data", false, NAN }, { " N/A ", false, NAN },
		   { "PolicySpread", false, -1 }, { "12x", false, -1 }, { "1.2.3,4,5", false, -1 },
		   { ",", false, -1 }, { "1e", false, -1 }, { "0x10", false, -1 },
		   { "1,2345,678", false, -1 });
	CHECK_FILE({ "1.5", false, 1.5 }, { "1,5", false, -2 }, { "1,5000", false, -2 });
	CHECK_FILE({ "-12.5", false, -12.5 }, { "1.5e+06", false, 1.5e6 }, { "+3", false, 3 },
		   { "2.5E-3", false, 2.5e-3 }, { "1e400", false, -1 });
}

/* Rounded once: digits and the unit's power of ten together. */
static void scales_without_error(void **state)
{
	static const struct {
		const char *text;
		int exponent;
		double value;
		int decimals;
	} cases[] = {
		{ "23.42", -6, 23.42e-6, 2 },
		{ "21,058,944", -9, 0.021058944, 0 },
		{ "3.35", 6, 3350000, 2 },
		{ "22.592000", 6, 22592000, 6 },
		{ "0.1", -9, 1e-10, 1 },
		{ "123456789012345678901234", 0, 123456789012345678901234.0, 0 },
		{ "18446744073709551615", 0, 18446744073709551615.0, 0 },
		{ "9007199254740993", 0, 9007199254740993.0, 0 },
		{ "0.000000000000000000000000000001", 0, 1e-30, 30 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_ncu_convention c = { .decimal = '.' };
		struct rfl_ncu_number number =
			rfl_ncu_number_read(&c, span(cases[i].text), false, cases[i].exponent, 1);

		assert_int_equal(number.what, RFL_NCU_VALUE);
		assert_close(number.value, cases[i].value, 0);
		assert_int_equal(number.decimals, cases[i].decimals);
	}
}

static void knows_units(void **state)
{
	static const struct {
		const char *text, *base;
		enum rfl_ncu_unit_kind kind;
		int exponent;
	} cases[] = {
		{ "byte", "byte", RFL_NCU_UNIT_COUNT, 0 },
		{ "Kbyte", "byte", RFL_NCU_UNIT_COUNT, 3 },
		{ "Tbyte", "byte", RFL_NCU_UNIT_COUNT, 12 },
		{ "byte/second", "byte/s", RFL_NCU_UNIT_RATE, 0 },
		{ "Gbyte/s", "byte/s", RFL_NCU_UNIT_RATE, 9 },
		{ "Mbyte/us", "byte/s", RFL_NCU_UNIT_RATE, 12 },
		{ "nsecond", "s", RFL_NCU_UNIT_TIME, -9 },
		{ "us", "s", RFL_NCU_UNIT_TIME, -6 },
		{ "msecond", "s", RFL_NCU_UNIT_TIME, -3 },
		{ "second", "s", RFL_NCU_UNIT_TIME, 0 },
		{ "cycle/second", "Hz", RFL_NCU_UNIT_RATE, 0 },
		{ "cycle/nsecond", "Hz", RFL_NCU_UNIT_RATE, 9 },
		{ "cycle/usecond", "Hz", RFL_NCU_UNIT_RATE, 6 },
		{ "hz", "Hz", RFL_NCU_UNIT_RATE, 0 },
		{ "Ghz", "Hz", RFL_NCU_UNIT_RATE, 9 },
		{ "Mhz", "Hz", RFL_NCU_UNIT_RATE, 6 },
		{ "GHz", "Hz", RFL_NCU_UNIT_RATE, 9 },
		{ "inst", "inst", RFL_NCU_UNIT_COUNT, 0 },
		{ "Kinst", "inst", RFL_NCU_UNIT_COUNT, 3 },
		{ "cluster", "cluster", RFL_NCU_UNIT_COUNT, 0 },
		{ "inst/cycle", "inst/cycle", RFL_NCU_UNIT_RATIO, 0 },
		{ "Kbyte/block", "byte/block", RFL_NCU_UNIT_RATIO, 3 },
		{ "register/thread", "register/thread", RFL_NCU_UNIT_RATIO, 0 },
		{ "%/register", "%/register", RFL_NCU_UNIT_RATIO, 0 },
		{ "%", "%", RFL_NCU_UNIT_RATIO, 0 },
		{ "", "", RFL_NCU_UNIT_COUNT, 0 },
		{ " sector ", "sector", RFL_NCU_UNIT_COUNT, 0 },
		{ "furlong", "furlong", RFL_NCU_UNIT_UNKNOWN, 0 },
		{ "furlong/second", "furlong/second", RFL_NCU_UNIT_UNKNOWN, 0 },
		{ "mbyte", "mbyte", RFL_NCU_UNIT_UNKNOWN, 0 },
		{ "/", "/", RFL_NCU_UNIT_UNKNOWN, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_ncu_unit unit = rfl_ncu_unit_parse(span(cases[i].text));

		assert_string_equal(unit.base, cases[i].base);
		assert_int_equal(unit.kind, cases[i].kind);
		assert_int_equal(unit.exponent, cases[i].exponent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_commas_as_groups), cmocka_unit_test(reads_points_as_groups),
		cmocka_unit_test(reads_other_groups),     cmocka_unit_test(a_count_decides),
		cmocka_unit_test(assumes_and_says_so),    cmocka_unit_test(tells_what_is_no_number),
		cmocka_unit_test(scales_without_error),   cmocka_unit_test(knows_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
