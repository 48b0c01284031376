/*
 * num.h - convert numbers to text (exact, rounded, with prefixes) and back, always in the C locale.
 */
#ifndef RFL_BASE_NUM_H
#define RFL_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RFL_NUM_MAX 40 /* enough for any number this header writes */

/** The shortest decimal text that reads back to exactly the same double ("0.1", "1e+30"); NaN is ""
 * (unknown), infinities "inf" and "-inf". @return out */
char *rfl_num_exact(double value, char out[RFL_NUM_MAX]);

/**
 * A value with an SI prefix and its unit: (4089184256, "FLOP", 3) gives "4.09 GFLOP".
 * Prefixes run from p (1e-12) to E (1e18); beyond them an exponent is written. NaN writes "n/a".
 * Trailing zeros are left out: 4e9 with three digits is "4 GFLOP".
 * @param digits  significant digits, 1 to 9
 * @return out
 */
char *rfl_num_si(double value, const char *unit, int digits, char *out, size_t out_size);

/** A byte count with a binary prefix: 1610612736 gives "1.5 GiB". @return out */
char *rfl_num_bytes(double bytes, char *out, size_t out_size);

/** An integer with groups of three: 25557032 gives "25,557,032". @return out */
char *rfl_num_grouped(int64_t value, char out[RFL_NUM_MAX]);

/** A value with all its digits, a whole one in groups of three. @return out */
char *rfl_num_full(double value, char out[RFL_NUM_MAX]);

/** For tables: `digits` (1 to 17) significant digits, trailing zeros kept, grouped by three
 * ("138.4", "1,235,000"), with an exponent below 1e-4 and from 1e15. NaN: "n/a". @return out */
char *rfl_num_people(double value, int digits, char out[RFL_NUM_MAX]);

/** For columns of numbers that are compared: `decimals` (0 to 9) digits after the point, grouped by
 * three ("22,447.3"). A value that rounds to 0 is "<0.1" or ">-0.1". NaN: "n/a". @return out */
char *rfl_num_fixed(double value, int decimals, char out[RFL_NUM_MAX]);

/** Parse the whole text as a finite decimal double. RFL_EFORMAT quotes it and names `what`. */
enum rfl_rc rfl_num_parse_double(const char *text, const char *what, double *ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Parse the whole of `text` as a decimal int64. Same errors; RFL_EOVERFLOW beyond 63 bits. */
enum rfl_rc rfl_num_parse_int(const char *text, const char *what, int64_t *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Parse the whole text as bytes, at least 1: "80e9", "24GiB", "22.5 GiB", "512MB", "4k". kB to TB
 * are powers of 1000, KiB to TiB of 1024, in any case; a lone letter is binary. Same errors. */
enum rfl_rc rfl_num_parse_bytes(const char *text, const char *what, int64_t *ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** value * 10^power, -22 to 22, rounded once: a multiplication or a division. */
double rfl_num_shift(double value, int power);

/** Checked int64 arithmetic: true when the result is exact, false on overflow (*ret unchanged). */
bool rfl_num_mul(int64_t a, int64_t b, int64_t *ret) RFL_WARN_UNUSED;
bool rfl_num_add(int64_t a, int64_t b, int64_t *ret) RFL_WARN_UNUSED;

/* --- numbers written by people and other programs: grouped digits, a decimal point or comma, an
 * exponent, and perhaps a unit after them --- */

/* The parts of a number whose point or comma is not yet interpreted. */
struct rfl_num_parts {
	const char *text;
	size_t len;
	uint64_t digits; /* all digits as one integer, if at most 19 */
	int ndigits;     /* without leading zeros */
	int commas, points;
	int others;     /* signs that only separate groups: ' and no-break blanks */
	int lead, tail; /* digits before the first sign and after the last */
	int before_last,
		middle;     /* before the last sign; of all groups before that (-1: they differ) */
	char last;          /* the last of point and comma */
	bool ends_by_other; /* the last sign is neither of them */
	bool negative, begins_zero, has_exponent;
	int exponent;
};

/** Split the number at the beginning of a text into its parts.
 * @param blanks  blanks may separate groups
 * @return its length; 0: no number */
size_t rfl_num_cut(const char *text, size_t len, bool blanks, struct rfl_num_parts *ret);

/** The decimal sign, as far as the number alone shows it: '.' in "1,234.5" and "0.25", ',' in
 * "1.234.567,0"; '?' if a single sign can be either ("1.234"), 0 without one. */
char rfl_num_shown(const struct rfl_num_parts *p);

/** Whether groups have three digits (or two before the last three, as in India) and none follow the
 * decimal sign. */
bool rfl_num_is_sound(const struct rfl_num_parts *p, char decimal);

/** Number of decimals minus the exponent: the last digit has the value 10^-n. */
int rfl_num_decimals(const struct rfl_num_parts *p, char decimal);

/** The value times 10^exponent, rounded once; NaN if not sound, infinity if too large. */
double rfl_num_value(const struct rfl_num_parts *p, char decimal, int exponent);

/** The whole text as a number of the C locale without groups; NaN: not a number. */
double rfl_num_plain(const char *text, size_t len);

/** "", "-", "n/a", "nan", "inf", ...: written by programs for missing values. */
bool rfl_num_is_missing(const char *text, size_t len);

#endif
