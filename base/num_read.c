/*
 * num_read.c - the one reader of decimal numbers.
 */
#include "base/num_read.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define EXPONENT_MAX 99999 /* far beyond any double */
#define DIGITS_MAX   800   /* no more can matter to the nearest double, but whether any is left */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Signs that separate groups in some locales: apostrophes; no-break blanks, also narrow and thin.
 */
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

/* "e+06". @return its length; 0: none is here */
static size_t cut_exponent(const char *at, size_t left, int *ret)
{
	size_t i = left > 1 && (at[1] == '-' || at[1] == '+') ? 2 : 1, first = i;
	int exponent = 0;

	for (; i < left && is_digit(at[i]); i++)
		if (exponent < EXPONENT_MAX)
			exponent = 10 * exponent + (at[i] - '0');
	if (i == first)
		return 0;
	*ret = at[1] == '-' ? -exponent : exponent;
	return i;
}

size_t rfl_num_cut(const char *text, size_t len, bool blanks, struct rfl_num_parts *ret)
{
	/* in registers: ncu's files have hundreds of millions of numbers */
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
			size_t exponent_len = cut_exponent(text + i, len - i, &exponent);

			has_exponent = exponent_len > 0;
			i += exponent_len;
			break;
		}
		if (text[i] == ',' || text[i] == '.') {
			char next = i + 1 < len ? text[i + 1] : 'e';

			/* "5." and ".5" are numbers; a comma after one is not part of it. */
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

static inline bool is_sound(const struct rfl_num_parts *p, char decimal)
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

bool rfl_num_is_sound(const struct rfl_num_parts *p, char decimal)
{
	return is_sound(p, decimal);
}

int rfl_num_decimals(const struct rfl_num_parts *p, char decimal)
{
	return ((decimal == ',' ? p->commas : p->points) > 0 ? p->tail : 0) - p->exponent;
}

/* More digits than an integer holds, or a large power of ten: as text without a decimal sign. */
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
			text[n - 1] |= 1; /* which rounds as all that is left out would */
	}
	(void)snprintf(text + n, sizeof(text) - n, "%se%d", n == 0 ? "0" : "", exponent);
	return strtod(text, NULL);
}

/*
 * Most digits and powers of ten are doubles themselves, so that one operation rounds as strtod()
 * does (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990).
 */
double rfl_num_value(const struct rfl_num_parts *p, char decimal, int exponent)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	uint64_t digits = p->digits;
	int shorter = 0;
	double value;

	if (!is_sound(p, decimal))
		return NAN;
	exponent -= rfl_num_decimals(p, decimal);
	while (p->ndigits <= 19 && digits > UINT64_C(1) << 53 && digits % 10 == 0) {
		digits /= 10;
		shorter++;
	}
	if (p->ndigits > 19 || digits > UINT64_C(1) << 53 || exponent + shorter < -22 ||
	    exponent + shorter > 22 ||
	    FLT_EVAL_METHOD != 0) /* of more precision would be rounded twice */
		value = value_of_text(p, exponent);
	else
		value = exponent + shorter < 0 ? (double)digits / powers[-(exponent + shorter)]
					       : (double)digits * powers[exponent + shorter];
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
