/*
 * num.h - converts numbers to text (exact, rounded, with prefixes) and back, in the C locale.
 */
#ifndef RFL_BASE_NUM_H
#define RFL_BASE_NUM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

RFL_API_BEGIN

#define RFL_NUM_MAX 40 /* buffer size for the functions of this header */

/** vsnprintf() in the C locale, in which files and figures are written. */
int rfl_num_vprint(char *out, size_t size, const char *fmt, va_list ap) RFL_VPRINTF(3);
int rfl_num_print(char *out, size_t size, const char *fmt, ...) RFL_PRINTF(3, 4);

/** The shortest decimal that is read back as the same double ("0.1", "1e+30"). Unknown (NaN) is "",
 * infinities are "inf" and "-inf". */
char *rfl_num_exact(double value, char out[RFL_NUM_MAX]);

/** A value with an SI prefix and its unit: (4089184256, "FLOP", 3) gives "4.09 GFLOP". Prefixes run
 * from p (1e-12) to E (1e18); beyond them an exponent is written. NaN is "n/a". Trailing zeros are
 * omitted: 4e9 with three digits is "4 GFLOP".
 * @param digits  significant digits, 1 to 9
 * @return out */
char *rfl_num_si(double value, const char *unit, int digits, char *out, size_t out_size);

/** A byte count with a binary prefix: 1610612736 gives "1.5 GiB". @return out */
char *rfl_num_bytes(double bytes, char *out, size_t out_size);

/** An integer with digits in groups of three: 25557032 gives "25,557,032". @return out */
char *rfl_num_grouped(int64_t value, char out[RFL_NUM_MAX]);

/** A value with all its digits, in groups of three if it is a whole number. @return out */
char *rfl_num_full(double value, char out[RFL_NUM_MAX]);

/** For tables: `digits` (1 to 17) significant digits, trailing zeros kept, grouped by three
 * ("138.4", "1,235,000"), with an exponent below 1e-4 and from 1e15 on. NaN is "n/a". */
char *rfl_num_people(double value, int digits, char out[RFL_NUM_MAX]);

/** For columns of comparable numbers: `decimals` (0 to 9) digits after the point, grouped by three
 * ("22,447.3"). A value that rounds to 0 is "<0.1" or ">-0.1". NaN is "n/a". */
char *rfl_num_fixed(double value, int decimals, char out[RFL_NUM_MAX]);

/** Parse the whole text as a finite decimal double. A message of RFL_EFORMAT begins with `what`. */
enum rfl_rc rfl_num_parse_double(const char *text, const char *what, double *ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Parse the whole of `text` as a decimal int64. Errors as above; RFL_EOVERFLOW beyond 63 bits. */
enum rfl_rc rfl_num_parse_int(const char *text, const char *what, int64_t *ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Parse the whole text as a size, at least 1 byte: "80e9", "24GiB", "22.5 GiB", "512MB", "4k". kB
 * to TB are powers of 1000, KiB to TiB and single letters of 1024, in any case. Errors as above. */
enum rfl_rc rfl_num_parse_bytes(const char *text, const char *what, int64_t *ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** value * 10^power, rounded once; power is from -22 to 22. */
double rfl_num_shift(double value, int power);

/** Checked int64 arithmetic: true if the result is exact, false on overflow (*ret unchanged). */
bool rfl_num_mul(int64_t a, int64_t b, int64_t *ret) RFL_WARN_UNUSED;
bool rfl_num_add(int64_t a, int64_t b, int64_t *ret) RFL_WARN_UNUSED;

/* --- numbers written by people and other programs: with grouped digits, a decimal point or comma,
 * an exponent, and possibly followed by a unit --- */

/* Parts of a number before its decimal sign is known. Signs are points, commas and separators. */
struct rfl_num_parts {
	const char *text;
	size_t len;
	uint64_t digits; /* all digits as one integer, if at most 19 */
	int ndigits;     /* digits without leading zeros */
	int commas, points;
	int others;     /* signs that can only separate groups: apostrophes and no-break spaces */
	int lead, tail; /* digits before the first sign and after the last */
	int before_last, middle; /* digits between the last two signs; digits of each group before
				    (-1: they differ) */
	char last;               /* the last point or comma; 0: none */
	bool ends_by_other;      /* the last sign is neither a point nor a comma */
	bool negative, begins_zero, has_exponent;
	int exponent;
};

/** Split the number at the beginning of a text into its parts.
 * @param blanks  true if spaces may separate groups
 * @return its length; 0: no number */
size_t rfl_num_cut(const char *text, size_t len, bool blanks, struct rfl_num_parts *ret);

/** The decimal sign, as far as the number alone shows it: '.' in "1,234.5" and "0.25", ',' in
 * "1.234.567,0"; '?' if its only sign is ambiguous ("1.234"), 0 if it has none. */
char rfl_num_shown(const struct rfl_num_parts *p);

/** Do all groups have three digits (or two before the last three, as in India), with none after the
 * decimal sign? */
bool rfl_num_is_sound(const struct rfl_num_parts *p, char decimal);

/** Number of decimals minus the exponent: the last digit has the value 10^-n. */
int rfl_num_decimals(const struct rfl_num_parts *p, char decimal);

/** The value times 10^exponent, rounded once; NaN if groups are invalid, infinity if too large. */
double rfl_num_value(const struct rfl_num_parts *p, char decimal, int exponent);

/** Parse the whole text as a number in the C locale without groups; NaN if it is not a number. */
double rfl_num_plain(const char *text, size_t len);

/** Is the text one that programs write for a missing value: "", "-", "n/a", "nan", "inf", ...? */
bool rfl_num_is_missing(const char *text, size_t len);

RFL_API_END
#endif
