/*
 * ncu_number.h - numbers and units as ncu prints them: digits in groups by the user's
 * locale, a unit that may change from row to row.
 */
#ifndef RFL_PROFILE_IMPORT_NCU_NUMBER_H
#define RFL_PROFILE_IMPORT_NCU_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/import/input.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- units ---- */

enum rfl_ncu_unit_kind {
	RFL_NCU_UNIT_COUNT,   /**< bytes, instructions, cycles, ...: whole numbers in a base unit */
	RFL_NCU_UNIT_TIME,    /**< whole nanoseconds */
	RFL_NCU_UNIT_RATE,    /**< per second, hertz */
	RFL_NCU_UNIT_RATIO,   /**< per cycle, per block, ..., and percent: never added up */
	RFL_NCU_UNIT_UNKNOWN, /**< the value is kept as it is */
};

struct rfl_ncu_unit {
	enum rfl_ncu_unit_kind kind;
	int exponent;  /**< base = value x 10^exponent: prefixes are decimal */
	char base[48]; /**< "byte", "s", "Hz", "byte/s", "inst/cycle", "%", "" */
};

/** What a unit's text says. An unknown one is its own base. */
struct rfl_ncu_unit rfl_ncu_unit_parse(struct rfl_span text);

/* ---- numbers ---- */

/** How a file writes numbers, as far as its cells have shown it. */
struct rfl_ncu_convention {
	char decimal;  /**< '.' or ','; 0: no cell has decided yet */
	bool no_group; /**< neither of them separates groups: a page without them, or ' or blanks do
			*/
	bool assumed;  /**< an undecided cell was read as in the C locale */
	char witness[40]; /**< the cell that decided, or the first that was assumed */
	size_t witness_line;
};

struct rfl_ncu_number {
	enum { RFL_NCU_VALUE, RFL_NCU_MISSING, RFL_NCU_BAD, RFL_NCU_CONTRADICTS } what;
	double value; /**< in the base unit */
	int decimals; /**< digits behind the decimal sign, as written */
};

/**
 * Read a cell: digits with groups and a decimal sign, an exponent, values of instances in brackets
 * behind, which are passed over; or n/a, nan, inf, an empty cell, ...: missing.
 * @param whole     the metric has no fractions in this unit: 117.344 can only be 117344
 * @param exponent  of the unit
 * @param line      for messages
 */
struct rfl_ncu_number rfl_ncu_number_read(struct rfl_ncu_convention *c, struct rfl_span cell,
					  bool whole, int exponent, size_t line);

/** n/a, nan, inf, an empty cell, ... */
bool rfl_ncu_is_missing(struct rfl_span cell);

#ifdef __cplusplus
}
#endif
#endif
