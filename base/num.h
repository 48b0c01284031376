/*
 * num.h - numbers as text: exact, shortest, with SI prefixes, and back again.
 *
 * All functions use the C locale whatever the process's locale is.
 */
#ifndef RFL_BASE_NUM_H
#define RFL_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define RFL_NUM_MAX 40 /* enough for any number this header writes */

/** The shortest decimal text that reads back to exactly the same double ("0.1", "1e+30"); NaN is ""
 * (not known), infinities "inf" and "-inf". @return out */
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

/** Checked int64 arithmetic: true when the result is exact, false on overflow (*ret unchanged). */
bool rfl_num_mul(int64_t a, int64_t b, int64_t *ret) RFL_WARN_UNUSED;
bool rfl_num_add(int64_t a, int64_t b, int64_t *ret) RFL_WARN_UNUSED;

#endif
