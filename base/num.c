/* num.c - conversion between numbers and text, in the C locale. */
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

#define EXPONENT_MAX 99999 /* far beyond the range of a double */
#define DIGITS_MAX   800   /* later digits only matter if one of them is not 0 */

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

int rfl_num_vprint(char *out, size_t size, const char *fmt, va_list ap)
{
	locale_t before;
	int len;

	pthread_once(&c_locale_once, make_c_locale);
	before = uselocale(c_locale);
	len = vsnprintf(out, size, fmt, ap);
	uselocale(before);
	return len;
}

int rfl_num_print(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = rfl_num_vprint(out, size, fmt, ap);
	va_end(ap);
	return len;
}

char *rfl_num_exact(double value, char out[RFL_NUM_MAX])
{
	if (!isfinite(value)) {
		snprintf(out, RFL_NUM_MAX, "%s", isnan(value) ? "" : value > 0 ? "inf" : "-inf");
		return out;
	}
	/* A double preserves any decimal of up to 15 digits; a subnormal preserves fewer. */
	for (int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG; digits <= DBL_DECIMAL_DIG;
	     digits++) {
		rfl_num_print(out, RFL_NUM_MAX, "%.*g", digits, value);
		if (rfl_num_plain(out, strlen(out)) == value)
			break;
	}
	return out;
}

/* Remove trailing zeros: "4.00" gives "4", "1.50" gives "1.5", "100" is unchanged. */
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

/* Write number, space, prefix and unit; no space if there is neither prefix nor unit. NaN: "n/a".
 */
static char *with_unit(double value, const char *number, const char *prefix, const char *unit,
		       char *out, size_t out_size)
{
	const char *blank = prefix[0] != '\0' || unit[0] != '\0' ? " " : "";

	if (isnan(value))
		snprintf(out, out_size, "n/a");
	else
		snprintf(out, out_size, "%s%s%s%s", number, blank, prefix, unit);
	return out;
}

char *rfl_num_si(double value, const char *unit, int digits, char *out, size_t out_size)
{
	static const char *const prefixes[] = {
		"p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E"
	};
	char number[64];
	int exponent = 0, step, decimals;

	digits = digits < 1 ? 1 : digits > 9 ? 9 : digits;
	if (isfinite(value)) { /* rounding can raise the exponent: 999.96 -> 1.00e+03 */
		rfl_num_print(number, sizeof(number), "%.*e", digits - 1, value);
		(void)sscanf(strchr(number, 'e'), "e%d", &exponent);
	}
	step = (exponent + 300) / 3 - 100; /* floor(exponent / 3) */
	if (!isfinite(value) || step < -4 || step > 6) {
		rfl_num_print(number, sizeof(number), "%.*g", digits, value);
		step = 0;
	} else {
		decimals = digits - 1 - (exponent - 3 * step);
		rfl_num_print(number, sizeof(number), "%.*f", decimals > 0 ? decimals : 0,
			      value / pow(10, 3 * step));
		strip_zeros(number);
	}
	return with_unit(value, number, prefixes[step + 4], unit ? unit : "", out, out_size);
}

char *rfl_num_bytes(double bytes, char *out, size_t out_size)
{
	static const char *const prefixes[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	char number[64];
	double size = fabs(bytes);
	size_t step = 0;

	for (; size >= 1023.5 && step + 1 < RFL_ARRAY_LEN(prefixes); step++)
		size /= 1024;
	rfl_num_print(number, sizeof(number), "%.*f",
		      size < 9.995   ? 2
		      : size < 99.95 ? 1
				     : 0,
		      bytes < 0 ? -size : size);
	strip_zeros(number);
	return with_unit(bytes, number, prefixes[step], "B", out, out_size);
}

/* Separate the integer part into groups of three digits with commas. */
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

char *rfl_num_people(double value, int digits, char out[RFL_NUM_MAX])
{
	char plain[RFL_NUM_MAX], *point;
	int exponent = 0;

	if (isnan(value)) {
		snprintf(out, RFL_NUM_MAX, "n/a");
		return out;
	}
	if (isinf(value))
		return rfl_num_exact(value, out);
	digits = digits < 1 ? 1 : digits > 17 ? 17 : digits;
	if (fabs(value) < 1e15)
		rfl_num_print(plain, sizeof(plain), "%#.*g", digits, value);
	else
		rfl_num_print(plain, sizeof(plain), "%.*e", digits - 1, value);
	if (strchr(plain, 'e'))
		(void)sscanf(strchr(plain, 'e'), "e%d", &exponent);
	if (exponent > 0 && exponent < 15) /* a whole number that has more digits than requested */
		rfl_num_print(plain, sizeof(plain), "%.0f", value);
	point = strchr(plain, '.');
	if (point && !(point[1] >= '0' && point[1] <= '9'))
		memmove(point, point + 1, strlen(point));
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
		rfl_num_print(plain, sizeof(plain), value > 0 ? "<%.*f" : ">%.*f", decimals,
			      value > 0 ? least : -least);
	else
		rfl_num_print(plain, sizeof(plain), "%.*f", decimals, value);
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
	char *end = NULL;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (*first < '0' || *first > '9' || *end != '\0')
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is not an integer", what, text);
	if (errno == ERANGE)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "%s: '%s' exceeds 63 bits", what, text);
	*ret = (int64_t)value;
	return RFL_OK;
}

enum rfl_rc rfl_num_parse_bytes(const char *text, const char *what, int64_t *ret,
				struct rfl_err *err)
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
	const size_t len = strcspn(text, " BbKkMmGgTt");
	const char *unit = text + len + strspn(text + len, " ");
	double value = rfl_num_plain(text, len);
	size_t i = 0;

	while (i < RFL_ARRAY_LEN(units) && strcasecmp(unit, units[i].name) != 0)
		i++;
	if (isnan(value) || i == RFL_ARRAY_LEN(units))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: '%s' is not a size in bytes, such as 24GiB or 80e9", what,
				text);
	value *= units[i].bytes;
	if (value < 1)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%s' is less than 1 byte", what, text);
	if (value >= 0x1p63)
		return rfl_fail(err, RFL_EOVERFLOW, 0, "%s: '%s' exceeds 63 bits", what, text);
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

double rfl_num_shift(double value, int power)
{
	/* these doubles are exact, so that the operation rounds only once */
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

	return power < 0 ? value / powers[-power] : value * powers[power];
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Match a group separator: an apostrophe, or a no-break, narrow or thin space. */
static size_t group_sign(const char *at, size_t left, bool blanks)
{
	static const char *const signs[] = { "'", "\xe2\x80\x99", "\xc2\xa0", "\xe2\x80\xaf",
					     "\xe2\x80\x89" };

	if (*at == ' ')
		return blanks ? 1 : 0;
	for (size_t i = 0; i < RFL_ARRAY_LEN(signs); i++) {
		size_t len = strlen(signs[i]);

		if (len <= left && memcmp(at, signs[i], len) == 0)
			return len;
	}
	return 0;
}

size_t rfl_num_cut(const char *text, size_t len, bool blanks, struct rfl_num_parts *ret)
{
	/* local variables for speed: ncu files can contain hundreds of millions of numbers */
	int ndigits = 0, signs = 0, commas = 0, points = 0, exponent = 0;
	int lead = 0, tail = 0, before_last = 0, middle = 0;
	bool has_exponent = false;
	char last = 0, sign = 0;
	size_t i = len > 0 && (text[0] == '-' || text[0] == '+'), begin;
	uint64_t digits = 0;

	for (;;) {
		size_t sign_len = 1;

		for (begin = i; i < len && is_digit(text[i]); i++)
			digits = 10 * digits + (unsigned char)(text[i] - '0');
		tail = (int)(i - begin);
		while (ndigits == 0 && begin < i && text[begin] == '0')
			begin++;
		ndigits += (int)(i - begin);
		if (i == len)
			break;
		if (tail + signs > 0 && (text[i] | 0x20) == 'e') {
			const bool minus = i + 1 < len && text[i + 1] == '-';
			size_t at = i + 1 + (minus || (i + 1 < len && text[i + 1] == '+'));

			has_exponent = at < len && is_digit(text[at]);
			for (; at < len && is_digit(text[at]); i = ++at)
				if (exponent < EXPONENT_MAX)
					exponent = 10 * exponent + (text[at] - '0');
			exponent = minus ? -exponent : exponent;
			break;
		}
		if (text[i] == ',' || text[i] == '.') {
			char next = i + 1 < len ? text[i + 1] : 'e';

			/* "5." and ".5" are numbers; a comma that follows one is not part of it. */
			if (!is_digit(next) &&
			    (text[i] == ',' || tail + signs == 0 || (next | 0x20) != 'e'))
				break;
			last = text[i];
			commas += last == ',';
			points += last == '.';
		} else {
			sign_len = group_sign(text + i, len - i, blanks);
			if (sign_len == 0 || i + sign_len >= len || !is_digit(text[i + sign_len]))
				break;
		}
		sign = text[i];
		if (signs++ == 0) {
			lead = tail;
		} else {
			if (before_last > 0)
				middle = middle == 0 || middle == before_last ? before_last : -1;
			before_last = tail;
		}
		i += sign_len;
	}
	*ret = (struct rfl_num_parts){
		.text = text,
		.len = tail + signs > 0 ? i : 0,
		.digits = digits,
		.ndigits = ndigits,
		.commas = commas,
		.points = points,
		.others = signs - commas - points,
		.lead = lead,
		.tail = tail,
		.before_last = before_last,
		.middle = middle,
		.last = last,
		.ends_by_other = sign != last,
		.negative = len > 0 && text[0] == '-',
		.begins_zero = lead > 0 && text[text[0] == '-' || text[0] == '+'] == '0',
		.has_exponent = has_exponent,
		.exponent = exponent,
	};
	return ret->len;
}

char rfl_num_shown(const struct rfl_num_parts *p)
{
	int signs = p->commas + p->points;

	if (signs == 0)
		return 0;
	if (p->commas > 0 && p->points > 0)
		return p->last;
	if (signs > 1)
		return p->last == '.' ? ',' : '.';
	if (p->others > 0 || p->tail != 3 || p->lead > 3 || p->lead == 0 || p->begins_zero ||
	    p->has_exponent)
		return p->last;
	return '?';
}

bool rfl_num_is_sound(const struct rfl_num_parts *p, char decimal)
{
	int decimals = decimal == ',' ? p->commas : p->points;
	int groups = p->commas + p->points + p->others - decimals;
	int last = p->tail, middle = p->middle;

	if (decimals > 1 || (decimals == 1 && (p->last != decimal || p->ends_by_other)))
		return false;
	if (groups == 0)
		return true;
	if (decimals == 1)
		last = p->before_last;
	else if (p->before_last > 0)
		middle = middle == 0 || middle == p->before_last ? p->before_last : -1;
	return last == 3 && p->lead >= 1 && p->lead <= 3 &&
	       (middle == 0 || middle == 3 || (middle == 2 && p->lead <= 2));
}

int rfl_num_decimals(const struct rfl_num_parts *p, char decimal)
{
	return ((decimal == ',' ? p->commas : p->points) > 0 ? p->tail : 0) - p->exponent;
}

/* Use strtod() for values with too many digits for an integer or a large power of ten. */
static double value_of_text(const struct rfl_num_parts *p, int exponent)
{
	char text[DIGITS_MAX + 16];
	size_t n = 0;

	for (size_t i = 0; i < p->len && (text[n] = p->text[i], (text[n] | 0x20) != 'e'); i++) {
		if (!is_digit(text[n]) || (n == 0 && text[n] == '0'))
			continue;
		if (n < DIGITS_MAX) {
			n++;
			continue;
		}
		exponent++;
		if (text[n] != '0')
			text[n - 1] |= 1; /* makes the value round as with the omitted digits */
	}
	(void)snprintf(text + n, sizeof(text) - n, "%se%d", n == 0 ? "0" : "", exponent);
	return strtod(text, NULL);
}

/* Digits and powers of ten are usually exact doubles, so that one operation rounds like strtod()
 * (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990). */
double rfl_num_value(const struct rfl_num_parts *p, char decimal, int exponent)
{
	uint64_t digits = p->digits;
	int shorter = 0;
	double value;

	if (!rfl_num_is_sound(p, decimal))
		return NAN;
	exponent -= rfl_num_decimals(p, decimal);
	while (p->ndigits <= 19 && digits > UINT64_C(1) << 53 && digits % 10 == 0) {
		digits /= 10;
		shorter++;
	}
	if (p->ndigits > 19 || digits > UINT64_C(1) << 53 || exponent + shorter < -22 ||
	    exponent + shorter > 22 || FLT_EVAL_METHOD != 0) /* extra bits would be rounded twice */
		value = value_of_text(p, exponent);
	else
		value = rfl_num_shift((double)digits, exponent + shorter);
	return p->negative ? -value : value;
}

double rfl_num_plain(const char *text, size_t len)
{
	struct rfl_num_parts p;

	if (len == 0 || rfl_num_cut(text, len, false, &p) != len || p.commas + p.others > 0)
		return NAN;
	return rfl_num_value(&p, '.', 0);
}

bool rfl_num_is_missing(const char *text, size_t len)
{
	static const char *const words[] = {
		"",     "-",    "n/a",  "N/A",  "nan",     "-nan",    "NaN",          "inf",
		"-inf", "+inf", "null", "None", "(!) n/a", "no data", "not available"
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
			return true;
	return false;
}
