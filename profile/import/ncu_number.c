/*
 * ncu_number.c - numbers as ncu prints them. Which of point and comma is the decimal sign is
 * decided by the first cells that can mean one thing only, and holds for the whole file.
 */
#include "profile/import/ncu_number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/num.h"
#include "profile/import/span.h"

/* A cell taken apart, before it is known what its signs mean. */
struct shape {
	uint64_t digits; /* all of them, as one integer */
	int ndigits;     /* without zeros in front; above 19 `digits` is no good */
	int commas, dots, others;
	int lead;       /* digits in front of the first sign */
	int tail;       /* behind the last point or comma */
	bool pieces_ok; /* every piece behind a sign, but the last, has 2 or 3 digits */
	bool negative, begins_zero, has_exponent;
	char last; /* the last of point and comma */
	int exponent;
};

/* A sign that separates groups in some locales: ', no-break blank, its narrow and thin kin. */
static size_t other_group(const char *at, size_t left)
{
	static const char *const groups[] = {
		"'", "\xe2\x80\x99", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", " "
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(groups); i++) {
		size_t len = strlen(groups[i]);

		if (len <= left && memcmp(at, groups[i], len) == 0)
			return len;
	}
	return 0;
}

/* "e+06" */
static bool take_exponent(struct shape *s, struct rfl_span rest)
{
	bool negative = false;
	size_t i = 1;

	if (i < rest.len && (rest.at[i] == '+' || rest.at[i] == '-'))
		negative = rest.at[i++] == '-';
	if (i == rest.len || rest.len - i > 4)
		return false;
	for (; i < rest.len; i++) {
		if (rest.at[i] < '0' || rest.at[i] > '9')
			return false;
		s->exponent = 10 * s->exponent + (rest.at[i] - '0');
	}
	if (negative)
		s->exponent = -s->exponent;
	s->has_exponent = true;
	return true;
}

/* A piece of digits has ended by a sign. */
static void end_piece(struct shape *s, int piece)
{
	if (s->commas + s->dots + s->others == 0)
		s->lead = piece;
	else
		s->pieces_ok = s->pieces_ok && (piece == 3 || piece == 2);
}

static bool take_apart(struct rfl_span cell, struct shape *s)
{
	size_t i = 0, len;
	int piece = 0;

	*s = (struct shape){ .pieces_ok = true };
	if (i < cell.len && (cell.at[i] == '-' || cell.at[i] == '+'))
		s->negative = cell.at[i++] == '-';
	s->begins_zero = i < cell.len && cell.at[i] == '0';
	for (; i < cell.len; i++) {
		unsigned digit = (unsigned)(unsigned char)cell.at[i] - '0';

		if (digit <= 9) {
			s->digits = 10 * s->digits + digit;
			s->ndigits += s->ndigits > 0 || digit > 0;
			piece++;
			continue;
		}
		if ((cell.at[i] == 'e' || cell.at[i] == 'E') && piece > 0) {
			if (!take_exponent(s, rfl_span_from(cell, i)))
				return false;
			break;
		}
		end_piece(s, piece);
		piece = 0;
		if (cell.at[i] == ',' || cell.at[i] == '.') {
			s->commas += cell.at[i] == ',';
			s->dots += cell.at[i] == '.';
			s->last = cell.at[i];
			continue;
		}
		len = other_group(cell.at + i, cell.len - i);
		if (len == 0)
			return false;
		s->others++;
		i += len - 1;
	}
	s->tail = piece;
	return piece > 0 || s->lead > 0;
}

static char other_sign(char sign)
{
	return sign == '.' ? ',' : '.';
}

/* What a cell alone says of the decimal sign: it, 0 for nothing, '?' for one sign and either. */
static char decimal_shown(const struct shape *s)
{
	int signs = s->commas + s->dots;

	if (signs == 0)
		return 0;
	if (s->commas > 0 && s->dots > 0)
		return s->last;
	if (signs > 1)
		return other_sign(s->last);
	if (s->others > 0 || s->tail != 3 || s->lead > 3 || s->lead == 0 || s->begins_zero ||
	    s->has_exponent)
		return s->last;
	return '?';
}

/* Groups that are none: the decimal sign twice, pieces of other lengths, decimals in groups. */
static bool is_sound(const struct shape *s, char decimal)
{
	int decimals = decimal == ',' ? s->commas : s->dots;
	int groups = s->commas + s->dots + s->others - decimals;

	if (decimals > 1 || (decimals == 1 && s->last != decimal))
		return false;
	if (groups == 0)
		return true;
	return s->pieces_ok && s->lead >= 1 && s->lead <= 3 && (decimals == 1 || s->tail == 3);
}

static void remember(struct rfl_ncu_convention *c, struct rfl_span cell, size_t line)
{
	(void)snprintf(c->witness, sizeof(c->witness), "%.*s",
		       (int)(cell.len < sizeof(c->witness) - 1 ? cell.len : sizeof(c->witness) - 1),
		       cell.at);
	c->witness_line = line;
}

/* The decimal sign of this cell by itself, by the file, or by assumption; '!': it contradicts what
 * was read before. */
static char decide(struct rfl_ncu_convention *c, const struct shape *s, struct rfl_span cell,
		   bool whole, size_t line)
{
	char shown = decimal_shown(s);

	if (s->others > 0)
		c->no_group = true;
	if (shown == '?' && c->decimal == 0) {
		if (whole)
			shown = other_sign(s->last);
		else if (c->no_group)
			shown = s->last;
	}
	if (shown == 0)
		return c->decimal ? c->decimal : '.';
	if (shown == '?' && c->decimal == 0) {
		if (!c->assumed)
			remember(c, cell, line);
		c->assumed = true;
		return '.';
	}
	if (shown == '?')
		return c->decimal;
	if (!is_sound(s, shown))
		return shown; /* no number: it decides nothing */
	if ((c->decimal != 0 && shown != c->decimal) || (c->assumed && shown == ','))
		return '!';
	if (c->decimal == 0) {
		c->decimal = shown;
		c->assumed = false;
		remember(c, cell, line);
	}
	return shown;
}

/* digits x 10^exponent, rounded once. */
static double scale(uint64_t digits, int exponent)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	char text[RFL_NUM_MAX];
	double value = NAN;

	while (digits > UINT64_C(1) << 53 && digits % 10 == 0) {
		digits /= 10;
		exponent++;
	}
	if (digits <= UINT64_C(1) << 53 && exponent >= -22 && exponent <= 22)
		return exponent < 0 ? (double)digits / powers[-exponent]
				    : (double)digits * powers[exponent];
	(void)snprintf(text, sizeof(text), "%llue%d", (unsigned long long)digits, exponent);
	if (rfl_num_parse_double(text, "", &value, NULL) != RFL_OK)
		return NAN;
	return value;
}

/* More digits than an integer holds: as text. */
static double scale_text(struct rfl_span cell, char decimal, int exponent)
{
	char text[512];
	size_t n = 0;
	double value = NAN;

	for (size_t i = 0; i < cell.len && cell.at[i] != 'e' && cell.at[i] != 'E'; i++) {
		bool digit = cell.at[i] >= '0' && cell.at[i] <= '9';

		if (n > sizeof(text) - 16)
			return NAN;
		if (digit || cell.at[i] == decimal)
			text[n++] = digit ? cell.at[i] : '.';
	}
	(void)snprintf(text + n, sizeof(text) - n, "e%d", exponent);
	if (rfl_num_parse_double(text, "", &value, NULL) != RFL_OK)
		return NAN;
	return value;
}

bool rfl_ncu_is_missing(struct rfl_span cell)
{
	static const char *const words[] = {
		"",     "n/a", "N/A",  "nan",  "-nan",    "NaN",     "inf",          "-inf",
		"+inf", "-",   "null", "None", "(!) n/a", "no data", "not available"
	};

	cell = rfl_span_trim(cell);
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (rfl_span_is(cell, words[i]))
			return true;
	return false;
}

/* "12 (3; 4; 5)" of --print-metric-instances: the figure of all instances is in front. */
static struct rfl_span without_instances(struct rfl_span cell)
{
	size_t at;

	if (cell.len == 0 || cell.at[cell.len - 1] != ')')
		return cell;
	at = rfl_span_find(cell, " (");
	cell.len = at > 0 ? at : cell.len;
	return rfl_span_trim(cell);
}

struct rfl_ncu_number rfl_ncu_number_read(struct rfl_ncu_convention *c, struct rfl_span cell,
					  bool whole, int exponent, size_t line)
{
	struct rfl_ncu_number number = { .what = RFL_NCU_BAD, .value = NAN };
	struct shape s;
	char decimal;

	cell = without_instances(rfl_span_trim(cell));
	if (!take_apart(cell, &s)) {
		if (rfl_ncu_is_missing(cell))
			number.what = RFL_NCU_MISSING;
		return number;
	}
	decimal = decide(c, &s, cell, whole, line);
	if (decimal == '!') {
		number.what = RFL_NCU_CONTRADICTS;
		return number;
	}
	if (!is_sound(&s, decimal))
		return number;
	if ((decimal == ',' ? s.commas : s.dots) > 0)
		number.decimals = s.tail;
	exponent += s.exponent - number.decimals;
	number.value = s.ndigits <= 19 ? scale(s.digits, exponent)
				       : scale_text(cell, decimal, exponent + number.decimals);
	number.decimals -= s.exponent;
	if (s.negative)
		number.value = -number.value;
	if (isfinite(number.value))
		number.what = RFL_NCU_VALUE;
	return number;
}
