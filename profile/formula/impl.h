/*
 * impl.h - the inside of a set of formulas, for the files of formula/.
 */
#ifndef RFL_PROFILE_FORMULA_IMPL_H
#define RFL_PROFILE_FORMULA_IMPL_H

#include <stdint.h>

#include "base/alloc.h"
#include "profile/formula.h"

/* Slots of one family, at most: presence is a bitmap of a few words. */
#define RFL_SLOTS_MAX  512
#define RFL_SLOT_WORDS (RFL_SLOTS_MAX / 64)
#define RFL_WORD_MAX   256 /* of a metric's name, and of any other word of a file */

struct rfl_formula_slot {
	const char *name;
	const char *unit; /* NULL: any */
	bool is_report;
};

struct rfl_formula_way {
	size_t first, nterms; /* of the terms of the family */
	enum rfl_way_kind kind;
	const char *caveat;
};

/* Taken off a quantity where the metric is there: weight x slot. */
struct rfl_formula_less {
	double weight;
	size_t slot;
	const char *reason;
};

struct rfl_formula_quantity {
	struct rfl_formula_way *ways;
	size_t nways, cap;
	struct rfl_formula_less less; /* reason NULL: none */
	const char *impossible;
};

/* A metric whose name begins with `from` is the one that begins with `to`. */
struct rfl_formula_alias {
	const char *from, *to;
};

struct rfl_formulas {
	struct rfl_arena *arena; /* owns all texts */
	const char *family, *command;
	const char **chips;
	size_t nchips, chips_cap;

	struct rfl_formula_slot *slots;
	size_t nslots, slots_cap;
	uint32_t *table;   /* slot + 1 by hash of the name, 0 free */
	size_t table_size; /* a power of two */

	struct rfl_term *terms;
	size_t nterms, terms_cap;
	struct rfl_formula_quantity quantities[RFL_QUANTITY_COUNT];

	struct rfl_trap *traps;
	size_t ntraps, traps_cap;
	struct rfl_formula_alias *aliases;
	size_t naliases, aliases_cap;
};

/* ---- formula.c ---- */

/** The slot of a name, made when there is none. RFL_SLOTS_MAX: too many; SIZE_MAX: memory. */
size_t rfl_formulas__slot_add(struct rfl_formulas *f, const char *name, size_t len,
			      const char *unit, bool is_report);

/** Which way each quantity is found by, given which slots have a value (a bitmap). */
void rfl_formulas__choose(const struct rfl_formulas *f, const uint64_t *present,
			  int way[RFL_QUANTITY_COUNT]);
/** The values of the ways that were chosen; NaN for none and where the result is no count. */
void rfl_formulas__apply(const struct rfl_formulas *f, const double *slots,
			 const int way[RFL_QUANTITY_COUNT], double ret[RFL_QUANTITY_COUNT]);

static inline bool rfl_slot_is_present(const uint64_t *present, size_t slot)
{
	return present[slot / 64] >> (slot % 64) & 1;
}

/* ---- formula/files.c ---- */

struct rfl_formula_file {
	const char *name; /* "hopper": of profile/formulas/hopper.formulas */
	const char *text;
	size_t len;
};
/** The i-th file that was compiled in; NULL behind the last. */
const struct rfl_formula_file *rfl_formulas__file_at(size_t i);
const struct rfl_formula_file *rfl_formulas__file(const char *name);

#endif
