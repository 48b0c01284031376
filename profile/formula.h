/*
 * formula.h - from metrics to quantities. A formula file (profile/formulas/<family>.formulas,
 * compiled in) has, per quantity, the ways to get it in order of preference; a way is a sum of
 * weight x metric, where a metric may be a rate that is multiplied by the time or the cycles.
 * Metrics are in SI base units when they come here (seconds, bytes, hertz).
 *
 *   chips GA100 GA102
 *   dram_read_bytes = dram__bytes_read.sum | fbpa__dram_read_bytes.sum | 32 dram__sectors_read.sum
 *   flops.fp32 = smsp__..fadd..sum + smsp__..fmul..sum + 2 smsp__..ffma..sum
 *
 * The syntax is described in docs/formulas.md.
 */
#ifndef RFL_PROFILE_FORMULA_H
#define RFL_PROFILE_FORMULA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/places.h"
#include "profile/profile.h"

/* Slots of one family, at most: presence is a bitmap of a few words. */
#define RFL_SLOTS_MAX  512
#define RFL_SLOT_WORDS (RFL_SLOTS_MAX / 64)

/** A metric that any way names. */
struct rfl_formula_slot {
	const char *name;
	const char *unit; /**< that a metric must have to be this one ("byte/s"); NULL: any */
	/** The name is from a report (ncu's "Duration", nvprof's flop_count_sp): no chip has a
	 * metric of that name. */
	bool is_report;
};

struct rfl_term {
	double weight;
	size_t slot;
	int per_slot;     /**< a second metric that is multiplied in (a rate x time), or -1 */
	int over_slot;    /**< a metric that it is divided by (cycles / rate), or -1 */
	int per_quantity; /**< a quantity that is multiplied in, found before this one, or -1 */
};

/** What a result of a way is, when its metrics are: a whole value, a lower bound, an estimate. */
enum rfl_way_kind { RFL_WAY_FULL, RFL_WAY_PARTIAL, RFL_WAY_ESTIMATE };

struct rfl_formula_way {
	size_t first, nterms;         /**< of the terms of the family */
	const struct rfl_term *terms; /**< of the way */
	enum rfl_way_kind kind;
	const char *caveat; /**< its result is an estimate, or another thing than the name says */
};

struct rfl_formula_quantity {
	struct rfl_formula_way *ways; /**< in order of preference */
	size_t nways, cap;            /**< 0: this family cannot measure it */
	/** Subtracted where its metric is there: weight x slot. */
	struct {
		double weight;
		size_t slot;
		const char *reason; /**< NULL: nothing is subtracted */
	} less;
	const char *impossible; /**< why the family cannot measure it; NULL when it can */
};

/** A trap: where `equal` is weight x `other`, the quantity does not measure what it is named after,
 * and is left out. */
struct rfl_trap {
	enum rfl_quantity quantity;
	size_t equal, other; /**< slots */
	double weight;
	const char *reason;
};

/** A metric whose name begins with `from` is the one that begins with `to`. */
struct rfl_formula_alias {
	const char *from, *to;
};

/** The ways of one family, ready to be evaluated; read only. */
struct rfl_formulas {
	struct rfl_arena *arena; /**< owns all texts */
	const char *family;
	const char
		*command; /**< counts such metrics ("ncu --metrics"), before their names, or NULL */
	const char **chips;
	size_t nchips, chips_cap;
	struct rfl_formula_slot *slots;
	size_t nslots, slots_cap;
	struct rfl_places places; /**< slot + 1 by name */
	struct rfl_term *terms;
	size_t nterms, terms_cap;
	struct rfl_formula_quantity quantities[RFL_QUANTITY_COUNT];
	struct rfl_trap *traps;
	size_t ntraps, traps_cap;
	struct rfl_formula_alias *aliases;
	size_t naliases, aliases_cap;
};

/** The formulas of a chip ("GH100", as CUPTI names it), of a family ("hopper", "cpu-intel"), or of
 * a file of another profiler with an unknown chip: "any" or NULL, every way of every GPU and every
 * legacy name. RFL_ENOTFOUND naming the chips that are known. */
enum rfl_rc rfl_formulas_new(const char *chip, struct rfl_formulas **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same from a text; `name` is the file in messages. For tests and fuzzing. */
enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_formulas_free(struct rfl_formulas *f); /* accepts NULL */

/** The i-th family; NULL past the end. */
const char *rfl_formulas_family_at(size_t i);

/** The slot of a metric; -1: no way names it, by an alias either. */
int rfl_formulas_slot(const struct rfl_formulas *f, const char *metric, size_t len);

/** Which way each quantity is found by, given which slots have a value (a bitmap): its number, -1
 * for none, RFL_FORMULA_SUM for a sum of quantities. The first way that has all its metrics is
 * taken; DRAM is the sum of read and write where nothing better is known, FLOPS the sum of its
 * known parts. */
#define RFL_FORMULA_SUM (-2)
void rfl_formulas_choose(const struct rfl_formulas *f, const uint64_t *present,
			 int way[RFL_QUANTITY_COUNT]);
/** The values of the ways that were chosen; NaN for none, and where the result is not a count. */
void rfl_formulas_apply(const struct rfl_formulas *f, const double *slots,
			const int way[RFL_QUANTITY_COUNT], double ret[RFL_QUANTITY_COUNT]);
/** Both: all quantities of one launch or range.
 * @param slots  one value per slot, NaN where the metric is not there
 * @param way    the way taken, as above; -1 where the result is not a count. May be NULL */
void rfl_formulas_eval(const struct rfl_formulas *f, const double *slots,
		       double ret[RFL_QUANTITY_COUNT], int way[RFL_QUANTITY_COUNT]);

/** A way as text: "smsp__... + 2 x smsp__...". */
void rfl_formula_text(const struct rfl_formulas *f, enum rfl_quantity q, int way,
		      struct rfl_buf *out);
/** Why there is no value: what the nearest way needs and lacks.
 * @param slots    NULL: no metric is there
 * @param strange  a metric that looks like a count of it and that no formula names; NULL: none */
void rfl_formula_reason(const struct rfl_formulas *f, enum rfl_quantity q, const double *slots,
			const char *strange, struct rfl_buf *out);

/** A name of nvprof or the Metric API ("flop_count_sp"), which chips since Turing do not have:
 * every metric of CUPTI and ncu has "__" in its name. */
bool rfl_metric_is_legacy(const char *metric, size_t len);

/* ---- formula/evaluate.c, for formula/parse.c ---- */

#define RFL_WORD_MAX 256 /* of a metric's name, and of any other word of a file */

/** The slot of a name, made when there is none. RFL_SLOTS_MAX: too many; SIZE_MAX: memory. */
size_t rfl_formulas__slot_add(struct rfl_formulas *f, const char *name, size_t len,
			      const char *unit, bool is_report);

/* ---- the files that were compiled in ---- */

struct rfl_formula_file {
	const char *name; /* "hopper": of profile/formulas/hopper.formulas */
	const char *text;
	size_t len;
};
/** The i-th file; NULL past the end. */
const struct rfl_formula_file *rfl_formulas__file_at(size_t i);

#endif
