/*
 * num.c - numbers as text and back, in the C locale whatever the process's locale is.
 */
#include "base/num.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num_read.h"

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* snprintf() in the C locale. */
static RFL_PRINTF(3, 4) void print(char *out, size_t size, const char *fmt, ...)
{
	locale_t before;
	va_list ap;

	pthread_once(&c_locale_once, make_c_locale);
	before = uselocale(c_locale);
	va_start(ap, fmt);
	vsnprintf(out, size, fmt, ap);
	va_end(ap);
	uselocale(before);
}

char *rfl_num_exact(double value, char out[RFL_NUM_MAX])
{
	if (!isfinite(value)) {
		snprintf(out, RFL_NUM_MAX, "%s", isnan(value) ? "" : value > 0 ? "inf" : "-inf");
		return out;
	}
	/* 15 digits hold every decimal of up to 15 digits; subnormals have fewer to begin with. */
	for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG;
	     digits++) {
		print(out, RFL_NUM_MAX, "%.*g", digits, value);
		if (rfl_num_plain(out, strlen(out)) == value)
			break;
	}
	return out;
}

/* "4.00" -> "4", "1.50" -> "1.5", "100" stays. */
static void strip_zeros(char *text)
{
	size_t len = strlen(text);

	if (!strchr(text, '.'))
		return;
	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	text[len] = '\0';
}

/* Number, blank, prefix and unit; no blank when there is neither prefix nor unit. */
static char *with_unit(const char *number, const char *prefix, const char *unit, char *out,
		       size_t out_size)
{
	const char *blank = prefix[0] != '\0' || unit[0] != '\0' ? " " : "";

	snprintf(out, out_size, "%s%s%s%s", number, blank, prefix, unit);
	return out;
}

/* The exponent at the end of what "%e" wrote. */
static int written_exponent(const char *scientific)
{
	int64_t exponent = 0;

	if (rfl_num_parse_int(strchr(scientific, 'e') + 1, "exponent", &exponent, NULL) != RFL_OK)
		return 0; /* printf always writes one */
	return (int)exponent;
}

char *rfl_num_si(double value, const char *unit, int digits, char *out, size_t out_size)
{
	static const char *const prefixes[] = {
		"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"
	};
	char number[64];
	int exponent = 0, step, decimals;

	if (isnan(value)) {
		snprintf(out, out_size, "n/a");
		return out;
	}
	digits = digits < 1 ? 1 : digits > 9 ? 9 : digits;
	if (!isinf(value)) { /* rounding can raise the exponent: 999.96 -> 1.00e+03 */
		print(number, sizeof(number), "%.*e", digits - 1, value);
		exponent = written_exponent(number);
	}
	step = (exponent + 300) / 3 - 100; /* floor(exponent / 3) */
	if (isinf(value) || step < -4 || step > 6) {
		print(number, sizeof(number), "%.*g", digits, value);
		step = 0;
	} else {
		decimals = digits - 1 - (exponent - 3 * step);
		print(number, sizeof(number), "%.*f", decimals > 0 ? decimals : 0,
		      value / pow(10, 3 * step));
		strip_zeros(number);
	}
	return with_unit(number, prefixes[step + 4], unit ? unit : "", out, out_size);
}

char *rfl_num_bytes(double bytes, char *out, size_t out_size)
{
	static const char *const prefixes[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	char number[64];
	double size = fabs(bytes);
	size_t step = 0;

	if (isnan(bytes)) {
		snprintf(out, out_size, "n/a");
		return out;
	}
	while (size >= 1023.5 && step + 1 < sizeof(prefixes) / sizeof(prefixes[0])) {
		size /= 1024;
		step++;
	}
	print(number, sizeof(number), "%.*f",
	      size < 9.995   ? 2
	      : size < 99.95 ? 1
			     : 0,
	      bytes < 0 ? -size : size);
	strip_zeros(number);
	return with_unit(number, prefixes[step], "B", out, out_size);
}

/* Put commas between groups of three of the integer part. */
static char *group_digits(const char *plain, char out[RFL_NUM_MAX])
{
	size_t start = plain[0] == '-' ? 1 : 0;
	size_t whole = start + strspn(plain + start, "0123456789");
	size_t at = 0;

	for (size_t i = 0; i < whole; i++) {
		if (i > start && (whole - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = plain[i];
	}
	snprintf(out + at, RFL_NUM_MAX - at, "%s", plain + whole);
	return out;
}

char *rfl_num_grouped(int64_t value, char out[RFL_NUM_MAX])
{
	char plain[RFL_NUM_MAX];

	snprintf(plain, sizeof(plain), "%lld", (long long)value);
	return group_digits(plain, out);
}

char *rfl_num_full(double value, char out[RFL_NUM_MAX])
{
	if (value == floor(value) && fabs(value) < 9e15)
		return rfl_num_grouped((int64_t)value, out);
	return rfl_num_exact(value, out);
}

/* "-1.234e+01" as "-12.34", "1.234e-02" as "0.01234": for numbers with digits after the point.
 */
static void move_point(const char *scientific, int exponent, char out[RFL_NUM_MAX])
{
	int left = exponent; /* digits before the point, except the next one */

	if (*scientific == '-')
		*out++ = *scientific++;
	for (int i = exponent; i < 0; i++) {
		*out++ = '0';
		if (i == exponent)
			*out++ = '.';
	}
	for (; *scientific != 'e'; scientific++) {
		if (*scientific == '.')
			continue;
		*out++ = *scientific;
		if (left-- == 0)
			*out++ = '.';
	}
	*out = '\0';
}

char *rfl_num_people(double value, int digits, char out[RFL_NUM_MAX])
{
	char scientific[RFL_NUM_MAX], plain[RFL_NUM_MAX];
	int exponent;

	if (isnan(value)) {
		snprintf(out, RFL_NUM_MAX, "n/a");
		return out;
	}
	if (isinf(value))
		return rfl_num_exact(value, out);
	digits = digits < 1 ? 1 : digits > 17 ? 17 : digits;
	print(scientific, sizeof(scientific), "%.*e", digits - 1, value);
	exponent = written_exponent(scientific);
	if (exponent < -4 || exponent >= 15)
		return group_digits(scientific, out);
	if (exponent < digits - 1)
		move_point(scientific, exponent, plain);
	else
		print(plain, sizeof(plain), "%.0f", value); /* more digits than were asked for */
	return group_digits(plain, out);
}

char *rfl_num_fixed(double value, int decimals, char out[RFL_NUM_MAX])
{
	char plain[RFL_NUM_MAX];
	double least;

	if (isnan(value)) {
		snprintf(out, RFL_NUM_MAX, "n/a");
		return out;
	}
	if (isinf(value) || fabs(value) >= 1e15)
		return rfl_num_people(value, 17, out);
	decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
	least = pow(10, -decimals);
	if (value != 0 && fabs(value) < least / 2)
		print(plain, sizeof(plain), value > 0 ? "<%.*f" : ">%.*f", decimals,
		      value > 0 ? least : -least);
	else
		print(plain, sizeof(plain), "%.*f", decimals, value);
	return group_digits(plain, out);
}

enum rfl_rc rfl_num_parse_double(const char *text, const char *what, double *ret,
				 struct rfl_err *err)
{
	double value = rfl_num_plain(text, strlen(text));

	if (isnan(value))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not a number", what, text);
	if (isinf(value))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is too large for a double", what,
				text);
	*ret = value;
	return RFL_OK;
}

enum rfl_rc rfl_num_parse_int(const char *text, const char *what, int64_t *ret, struct rfl_err *err)
{
	const char *first = *text == '+' || *text == '-' ? text + 1 : text;
	long long value;
	char *end;

	if (*first < '0' || *first > '9')
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not an integer", what, text);
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end != '\0')
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not an integer", what, text);
	if (errno == ERANGE)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "%s: '%s' does not fit 63 bits", what, text);
	*ret = (int64_t)value;
	return RFL_OK;
}

/* Bytes of a unit; 0: not a known unit. */
static double bytes_of_unit(const char *unit)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {
		{ "", 1 },         { "B", 1 },        { "kB", 1e3 },     { "MB", 1e6 },
		{ "GB", 1e9 },     { "TB", 1e12 },    { "KiB", 0x1p10 }, { "MiB", 0x1p20 },
		{ "GiB", 0x1p30 }, { "TiB", 0x1p40 }, { "k", 0x1p10 },   { "M", 0x1p20 },
		{ "G", 0x1p30 },   { "T", 0x1p40 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcasecmp(unit, units[i].name) == 0)
			return units[i].bytes;
	return 0;
}

enum rfl_rc rfl_num_parse_bytes(const char *text, const char *what, int64_t *ret,
				struct rfl_err *err)
{
	size_t len = strcspn(text, " BbKkMmGgTt");
	double value = rfl_num_plain(text, len);
	double unit = isnan(value) ? 0 : bytes_of_unit(text + len + strspn(text + len, " "));

	if (unit == 0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: '%s' is not a size in bytes, as 24GiB or 80e9", what, text);
	value *= unit;
	if (value < 1)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not 1 byte or more", what, text);
	if (value >= 0x1p63)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "%s: '%s' does not fit 63 bits", what, text);
	*ret = (int64_t)value;
	return RFL_OK;
}

bool rfl_num_mul(int64_t a, int64_t b, int64_t *ret)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret = product;
	return true;
}

bool rfl_num_add(int64_t a, int64_t b, int64_t *ret)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret = sum;
	return true;
}
