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

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

struct rfl_formulas; /* the ways of one family, ready to be evaluated */

/**
 * The formulas of a chip ("GH100", as CUPTI names it), of a family ("hopper", "cpu-intel"), or of a
 * file of another profiler whose chip is not known: "any", every way of every GPU and every legacy
 * name.
 * @param ret  set on success only; release with rfl_formulas_free()
 * @return RFL_OK; RFL_ENOTFOUND naming the chips that are known
 */
enum rfl_rc rfl_formulas_new(const char *chip, struct rfl_formulas **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same from a text; `name` stands for the file in messages. For tests and fuzzing. */
enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_formulas_free(struct rfl_formulas *f); /* accepts NULL */

/** The family's name. */
const char *rfl_formulas_family(const struct rfl_formulas *f);

/* Metrics that any way names have a slot, 0 to slots - 1. */
size_t rfl_formulas_slots(const struct rfl_formulas *f);
const char *rfl_formulas_slot_name(const struct rfl_formulas *f, size_t slot);
/** The name stands in a report (ncu's "Duration", nvprof's flop_count_sp): no chip has a metric of
 * that name. */
bool rfl_formulas_slot_is_report(const struct rfl_formulas *f, size_t slot);
/** The unit that a metric must have to be this one ("byte/s"); NULL: any. */
const char *rfl_formulas_slot_unit(const struct rfl_formulas *f, size_t slot);
/** -1: no way names this metric, by an alias either. */
int rfl_formulas_slot(const struct rfl_formulas *f, const char *metric, size_t len);

struct rfl_term {
	double weight;
	size_t slot;
	int per_slot;     /**< a second metric that is multiplied in (a rate x time), or -1 */
	int over_slot;    /**< a metric that it is divided by (cycles / rate), or -1 */
	int per_quantity; /**< a quantity that is multiplied in, found before this one, or -1 */
};

/** Ways of a quantity, in order of preference; 0: this family cannot measure it. */
size_t rfl_formula_ways(const struct rfl_formulas *f, enum rfl_quantity q);
const struct rfl_term *rfl_formula_way(const struct rfl_formulas *f, enum rfl_quantity q,
				       size_t way, size_t *nterms);
/** Why the family cannot measure a quantity ("integrated memory: ..."); NULL when it can. */
const char *rfl_formula_impossible(const struct rfl_formulas *f, enum rfl_quantity q);
/** The slot of a metric that is taken off a quantity where it is there, or -1. @param weight  by
 * which it is multiplied; may be NULL */
int rfl_formula_subtracted(const struct rfl_formulas *f, enum rfl_quantity q, double *weight);
/** A way whose result is an estimate, or another thing than the name says: the words to show. */
const char *rfl_formula_caveat(const struct rfl_formulas *f, enum rfl_quantity q, size_t way);

/** What a result of this way is, when its metrics are: a whole value, a lower bound, an estimate.
 */
enum rfl_way_kind { RFL_WAY_FULL, RFL_WAY_PARTIAL, RFL_WAY_ESTIMATE };
enum rfl_way_kind rfl_formula_way_kind(const struct rfl_formulas *f, enum rfl_quantity q,
				       size_t way);

/** How such metrics are counted ("ncu --metrics"), in front of their names; NULL: not known. */
const char *rfl_formulas_command(const struct rfl_formulas *f);

/**
 * A trap: where two counts are equal, times a weight, the quantity does not measure what it is
 * named after, and is left out. `equal` is compared with weight x `other`.
 */
struct rfl_trap {
	enum rfl_quantity quantity;
	size_t equal, other; /**< slots */
	double weight;
	const char *reason;
};
const struct rfl_trap *rfl_formulas_traps(const struct rfl_formulas *f, size_t *n);

/**
 * All quantities of one launch or range. The first way whose metrics are all there is taken;
 * DRAM is the sum of read and write where nothing better is known, FLOPS the sum of its known
 * parts.
 * @param slots  one value per slot, NaN where the metric is not there
 * @param ret    NaN where no way can be taken
 * @param way    the way taken, -1 for none, RFL_FORMULA_SUM for a sum of quantities; may be NULL
 */
#define RFL_FORMULA_SUM (-2)
void rfl_formulas_eval(const struct rfl_formulas *f, const double *slots,
		       double ret[RFL_QUANTITY_COUNT], int way[RFL_QUANTITY_COUNT]);

/** A way in words: "smsp__... + 2 x smsp__...". */
void rfl_formula_text(const struct rfl_formulas *f, enum rfl_quantity q, int way,
		      struct rfl_buf *out);
/** Why there is no value: what every way needs and lacks.
 * @param slots    NULL: no metric is there
 * @param strange  a metric that looks like a count of it and that no formula names; NULL: none */
void rfl_formula_reason(const struct rfl_formulas *f, enum rfl_quantity q, const double *slots,
			const char *strange, struct rfl_buf *out);

/** A name of nvprof or the Metric API ("flop_count_sp"), which chips since Turing do not have:
 * every metric of CUPTI and ncu has "__" in its name. */
bool rfl_metric_is_legacy(const char *metric, size_t len);

/** The families: NULL behind the last. */
const char *rfl_formulas_family_at(size_t i);
/** The chips that a family serves; NULL behind the last one of the family. */
const char *rfl_formulas_chip_at(const struct rfl_formulas *f, size_t i);

#endif
