/*
 * formula.h - computes quantities from metrics. A formula file (profile/formulas/<family>.formulas,
 * compiled in) lists the ways to compute each quantity, in order of preference. A way is a sum of
 * weight x metric; a rate may be multiplied by the time or the cycles. Metrics are in SI base units
 * (seconds, bytes, hertz).
 *
 *   dram_read_bytes = dram__bytes_read.sum | fbpa__dram_read_bytes.sum | 32 dram__sectors_read.sum
 *   flops.fp32 = smsp__..fadd..sum + smsp__..fmul..sum + 2 smsp__..ffma..sum
 *
 * The syntax is described in docs/reference/formulas.md.
 */
#ifndef RFL_PROFILE_FORMULA_H
#define RFL_PROFILE_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/keys.h"
#include "profile/profile.h"

/* The maximum number of slots of a family; a bitmap records which are present. */
#define RFL_SLOTS_MAX  512
#define RFL_SLOT_WORDS (RFL_SLOTS_MAX / 64)

/** A metric that a formula uses. */
struct rfl_formula_slot {
	const char *name;
	const char *unit; /**< the required unit ("byte/s"); NULL: any */
	/** A name in reports (ncu's "Duration", nvprof's flop_count_sp), not a metric of a chip. */
	bool is_report;
};

/** weight x slot[0] x slot[1] / slot[2] x quantity; -1: no such factor. */
struct rfl_term {
	double weight;
	int slot[3];
	int quantity; /**< computed earlier */
};

/** The result of a way: the whole value, a lower bound, or an estimate. */
enum rfl_way_kind { RFL_WAY_FULL, RFL_WAY_PARTIAL, RFL_WAY_ESTIMATE };

struct rfl_formula_way {
	struct rfl_term *terms; /**< in the arena of the formulas */
	size_t nterms;
	enum rfl_way_kind kind;
	const char *caveat; /**< how the result differs from the quantity; NULL: not at all */
};

struct rfl_formula_quantity {
	struct rfl_formula_way *ways; /**< in order of preference */
	size_t nways;                 /**< 0: this family cannot measure it */
	/** weight x slot is subtracted if the metric is present. */
	struct {
		double weight;
		size_t slot;
		const char *reason; /**< NULL: nothing is subtracted */
	} less;
	const char *impossible; /**< why the family cannot measure it, or NULL */
};

/** If `slot` is weight x `other`, the metrics of the quantity counted something else, and the
 * quantity is omitted. A doubt: if it is more, the quantity is an estimate. */
struct rfl_trap {
	bool is_doubt;
	enum rfl_quantity quantity;
	size_t slot, other;
	double weight;
	const char *reason;
};

/** Metrics with the prefix `from` are aliases of those with the prefix `to`. */
struct rfl_formula_alias {
	const char *from, *to;
};

/** The formulas of a family. */
struct rfl_formulas {
	struct rfl_arena *arena; /**< owns everything, this struct included */
	const char *family;
	const char *command; /**< that counts metrics ("ncu --metrics"), or NULL */
	struct rfl_formula_slot *slots;
	size_t nslots, slots_cap;
	struct rfl_keys names; /**< in the order of the slots */
	struct rfl_formula_quantity quantities[RFL_QUANTITY_COUNT];
	struct rfl_trap *traps;
	size_t ntraps;
	struct rfl_formula_alias *aliases;
	size_t naliases;
};

/** The formulas of a chip ("GH100", as CUPTI names it) or a family ("hopper", "cpu-intel"). "any"
 * or NULL is for files from an unknown chip: all ways of all GPUs, and legacy names. Returns
 * RFL_ENOTFOUND with the known chips in the message. */
enum rfl_rc rfl_formulas_new(const char *chip, struct rfl_formulas **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;
/** The same, but "any" for an unknown chip. */
struct rfl_formulas *rfl_formulas_or_any(const char *chip) RFL_WARN_UNUSED;

/** Parse the formulas of the family `name`, which messages use as the file name. */
enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_formulas_free(struct rfl_formulas *f); /* accepts NULL */
RFL_AUTOPTR_TYPE(formulas, free);

/** The slot of a metric or of its alias; -1: no formula uses it. */
int rfl_formulas_slot(const struct rfl_formulas *f, const char *metric, size_t len);

/** Choose a way for each quantity, given a bitmap of the slots that have a value. `way` is set to
 * its index, -1 for none, or RFL_FORMULA_SUM for a sum of quantities. The first way that has all
 * its metrics is chosen. Failing that, or if they are more exact, DRAM is the sum of read and
 * write; FLOPS is the sum of its known parts. */
#define RFL_FORMULA_SUM (-2)
void rfl_formulas_choose(const struct rfl_formulas *f, const uint64_t *present,
			 int way[RFL_QUANTITY_COUNT]);
/** Compute the quantities by the chosen ways; NaN: no way, or the result is not a count. */
void rfl_formulas_apply(const struct rfl_formulas *f, const double *slots,
			const int way[RFL_QUANTITY_COUNT], double ret[RFL_QUANTITY_COUNT]);
/** Choose the ways and compute all quantities.
 * @param slots  one value per slot, NaN if the metric is missing
 * @param way    the chosen ways; -1 if the result is not a count. May be NULL */
void rfl_formulas_eval(const struct rfl_formulas *f, const double *slots,
		       double ret[RFL_QUANTITY_COUNT], int way[RFL_QUANTITY_COUNT]);

/** The same by the names of metrics. */
void rfl_formulas_values(const struct rfl_formulas *f, const char *const *names,
			 const double *values, size_t n, double ret[RFL_QUANTITY_COUNT]);

/** A way as text: "smsp__... + 2 x smsp__...". */
void rfl_formula_text(const struct rfl_formulas *f, enum rfl_quantity q, int way,
		      struct rfl_buf *out);
/** Why there is no value: the missing metrics of the nearest way.
 * @param slots    NULL: no metric is present
 * @param strange  a metric that seems to count the quantity but is in no formula, or NULL */
void rfl_formula_reason(const struct rfl_formulas *f, enum rfl_quantity q, const double *slots,
			const char *strange, struct rfl_buf *out);

/** Whether a name is a metric of nvprof or the Metric API ("flop_count_sp"), which no chip since
 * Turing supports; names of CUPTI and ncu contain "__". */
bool rfl_metric_is_legacy(const char *metric, size_t len);

#define RFL_WORD_MAX 256 /* maximum length of any word of a file */

/** A file of profile/formulas, or a part that families share, of profile/formulas/parts. */
struct rfl_formula_file {
	const char *name; /**< "hopper" for hopper.formulas; NULL ends the list */
	const char *text;
	size_t len;
};
extern const struct rfl_formula_file rfl_formula_families[], rfl_formula_parts[];

#endif
