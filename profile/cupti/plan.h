/*
 * plan.h - what CUPTI can count on a chip, and what will be: metrics, sets of them that are counted
 * together, in how many passes; a session per set of RFL_SET_*, as far as CUPTI has its metrics for
 * the chip. They come from the formulas of the chip's family, so that what is counted is what is
 * evaluated. Needs no GPU.
 */
#ifndef RFL_PROFILE_CUPTI_PLAN_H
#define RFL_PROFILE_CUPTI_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/lib.h"
#include "profile/formula.h"
#include "profile/source.h"

/* ---- host.c: what CUPTI knows of a chip ---- */

/** Chips that this libcupti knows. Borrowed until it is closed. */
enum rfl_rc rfl_cupti_chips(struct rfl_cupti *c, const char *const **ret, size_t *n,
			    struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_cupti_host; /* a host object for one chip */

/** @param availability  of the device (cuptiProfilerGetCounterAvailability), kept by the caller
 * until the object is closed; or NULL: all that such a chip has */
enum rfl_rc rfl_cupti_host_open(struct rfl_cupti *c, const char *chip, const uint8_t *availability,
				struct rfl_cupti_host **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_host_close(struct rfl_cupti_host *h); /* accepts NULL */

/** RFL_ENOTFOUND when the chip has no such metric (with its rollup suffix). @param ret  its texts
 * are borrowed until the host object is closed; may be NULL */
enum rfl_rc rfl_cupti_metric(struct rfl_cupti_host *h, const char *metric,
			     struct rfl_cupti_host_metric_properties *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for a name without rollup suffix, as rfl_cupti_metrics() gives them. */
enum rfl_rc rfl_cupti_describe(struct rfl_cupti_host *h, const char *base,
			       struct rfl_cupti_host_metric_properties *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** All base metrics of the chip, without rollup suffix: an array to be freed, with NULL past the
 * end; the names are borrowed. */
enum rfl_rc rfl_cupti_metrics(struct rfl_cupti_host *h, const char ***ret, size_t *n,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Make the host object count these metrics and build its configuration, a malloc'ed image.
 * RFL_ENOTFOUND naming a metric; RFL_EUNSUPPORTED naming the metric that this device cannot count,
 * or not together with those before it. @param refused  its place in `metrics`; may be NULL */
enum rfl_rc rfl_cupti_config(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			     uint8_t **image, size_t *image_size, size_t *passes, size_t *refused,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Passes alone. */
enum rfl_rc rfl_cupti_passes(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			     size_t *ret, size_t *refused, struct rfl_err *err) RFL_WARN_UNUSED;

/** Values of a range of decoded counter data, in the metrics' own units. */
enum rfl_rc rfl_cupti_values(struct rfl_cupti_host *h, const uint8_t *data, size_t data_size,
			     size_t range, const char *const *metrics, size_t n, double *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- plan.c ---- */

#define RFL_METRIC_SET_MAX 96

/** Names of metrics, each once; borrowed from the formulas. Zero it before use. */
struct rfl_metric_set {
	const char *names[RFL_METRIC_SET_MAX];
	size_t n;
	/** That were taken out, and why. */
	const char *absent[RFL_METRIC_SET_MAX], *why_absent[RFL_METRIC_SET_MAX];
	size_t nabsent;
};

/** The set that a quantity belongs to in a run of this precision, RFL_SET_*; 0: none, it is found
 * in files only. */
unsigned rfl_metric_set_of(enum rfl_quantity q, const char *precision);

/** The first way of a quantity that takes metrics of the chip alone, and only those of `within`
 * when that is not NULL; -1: none. */
int rfl_metric_set_way(const struct rfl_formulas *f, enum rfl_quantity q,
		       const struct rfl_metric_set *within);

/** Add what the sets RFL_SET_CORE, _FLOPS, _AUDIT and _LINKS count, and what is subtracted from it.
 * @param precision  of the run: its matrix FLOPs are in the core, all others in the audit; NULL:
 * the core has none */
void rfl_metric_set_add_sets(struct rfl_metric_set *s, const struct rfl_formulas *f, unsigned sets,
			     const char *precision);

/** The same, but with the best of the ways to count the matrix FLOPs of the precision: one that
 * counts all of them, and of those the one that takes the fewest passes. The audit has them all.
 * What this CUPTI lacks for the chip, or refuses to count on this device, is left out.
 * RFL_EUNSUPPORTED when every metric is refused. */
enum rfl_rc rfl_metric_set_choose(struct rfl_cupti_host *h, const struct rfl_formulas *f,
				  unsigned sets, const char *precision, struct rfl_metric_set *ret,
				  size_t *passes, struct rfl_err *err) RFL_WARN_UNUSED;

/** The matrix FLOPs of a run in this precision: tf32 for "fp32", where they show whether it is that
 * truly, and are counted when that takes at most one pass more. RFL_QUANTITY_COUNT for a name that
 * is not known. */
enum rfl_quantity rfl_precision_matrix(const char *precision);

struct rfl_cupti_unit {
	const char *unit; /**< the SI base unit: "s" */
	double factor;    /**< that makes it of CUPTI's: 1e-9 */
};

struct rfl_cupti_planned {
	const char *name;              /**< "core", "flops", "audit", "links" */
	unsigned set;                  /**< RFL_SET_CORE, ... */
	struct rfl_metric_set metrics; /**< none: the chip has none of them */
	struct rfl_cupti_unit units[RFL_METRIC_SET_MAX];
	struct rfl_cupti_host *host; /**< its last configuration is that of this session */
	uint8_t *config;
	size_t config_size;
	size_t passes;
	struct rfl_err why; /**< why it cannot be counted; empty when it can */
};

#define RFL_CUPTI_SESSIONS 4

struct rfl_cupti_plan {
	struct rfl_formulas *formulas;
	size_t n;
	struct rfl_cupti_planned sessions[RFL_CUPTI_SESSIONS];
};

/** A session that cannot be counted says so in `why`. RFL_ENOTFOUND when there are no formulas for
 * the chip. @param sets  RFL_SET_*; those that are not counters are ignored */
enum rfl_rc rfl_cupti_plan_new(struct rfl_cupti *lib, const char *chip, const uint8_t *availability,
			       unsigned sets, const char *precision, struct rfl_cupti_plan **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_plan_free(struct rfl_cupti_plan *p); /* accepts NULL */

/** "9 metrics in 1 pass", and which are left out and why. */
void rfl_cupti_planned_text(const struct rfl_cupti_planned *session, struct rfl_buf *out);

/** The quantities that the values of a session's metrics give (SI base units, NaN where absent). */
void rfl_cupti_plan_amounts(const struct rfl_cupti_plan *p, const struct rfl_cupti_planned *session,
			    const double *values, double ret[RFL_QUANTITY_COUNT]);

#endif
