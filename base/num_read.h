/*
 * num_read.h - numbers as people and other programs write them: digits in groups, a decimal point
 * or comma, an exponent, and perhaps a unit after them. The locale of the process does not matter.
 */
#ifndef RFL_BASE_NUM_READ_H
#define RFL_BASE_NUM_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number taken apart, before it is known what its point or comma means. */
struct rfl_num_parts {
	const char *text;
	size_t len;
	uint64_t digits; /* all of them as one integer, unless there are more than 19 */
	int ndigits;     /* without leading zeros */
	int commas, points;
	int others;     /* signs that only separate groups: ', blanks that do not break */
	int lead, tail; /* digits before the first sign and after the last */
	int before_last,
		middle;     /* before the last sign; of all groups before that, -1: they differ */
	char last;          /* the last of point and comma */
	bool ends_by_other; /* the last sign is neither */
	bool any;           /* a digit */
	bool negative, begins_zero, has_exponent;
	int exponent;
};

/**
 * Take the number at the beginning of a text apart.
 * @param blanks  a blank separates groups, too
 * @return its length; 0: there is none
 */
size_t rfl_num_cut(const char *text, size_t len, bool blanks, struct rfl_num_parts *ret);

/**
 * The decimal sign as the number alone shows it: '.' in "1,234.5" and "0.25", ',' in "1.234.567,0";
 * '?' for one sign that may be either ("1.234"), 0 without one.
 */
char rfl_num_shown(const struct rfl_num_parts *p);

/** Whether groups have three digits, or two before the last three as in India, and decimals none.
 */
bool rfl_num_is_sound(const struct rfl_num_parts *p, char decimal);

/** How many decimals were written, less the exponent: the last digit is a 10^-n. */
int rfl_num_decimals(const struct rfl_num_parts *p, char decimal);

/** The value times 10^exponent, rounded once; NaN if not sound, infinite if too large. */
double rfl_num_value(const struct rfl_num_parts *p, char decimal, int exponent);

/** The whole text as a number of the C locale without groups; NaN: it is not one. */
double rfl_num_plain(const char *text, size_t len);

/** "", "-", "n/a", "nan", "inf", ...: what programs write where there is no value. */
bool rfl_num_is_missing(const char *text, size_t len);

#endif
