/*
 * plan.h - the metrics that CUPTI can count on a chip, and the sessions that count them: one per
 * RFL_SET_*, each with its number of passes. The metrics are chosen by the formulas of the chip's
 * family. Planning needs no GPU.
 */
#ifndef RFL_PROFILE_CUPTI_PLAN_H
#define RFL_PROFILE_CUPTI_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/cupti/lib.h"
#include "profile/formula.h"
#include "profile/source.h"

/* ---- host.c: the chips and metrics that CUPTI supports ---- */

/** The chips that this libcupti supports, borrowed until the library is closed. */
enum rfl_rc rfl_cupti_chips(struct rfl_cupti *c, const char *const **ret, size_t *n,
			    struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_cupti_host; /* a host object for one chip */

/** @param availability  image of the device (cuptiProfilerGetCounterAvailability), valid until the
 * object is closed; NULL: everything that such a chip supports */
enum rfl_rc rfl_cupti_host_open(struct rfl_cupti *c, const char *chip, const uint8_t *availability,
				struct rfl_cupti_host **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_host_close(struct rfl_cupti_host *h); /* accepts NULL */

/** Look up a metric by its name with the rollup suffix. @param ret  strings are borrowed until the
 * host object is closed; may be NULL */
enum rfl_rc rfl_cupti_metric(struct rfl_cupti_host *h, const char *metric,
			     struct rfl_cupti_host_metric_properties *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for a name without a rollup suffix, as rfl_cupti_metrics() returns it. */
enum rfl_rc rfl_cupti_describe(struct rfl_cupti_host *h, const char *base,
			       struct rfl_cupti_host_metric_properties *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** All base metrics of the chip, without a rollup suffix: a malloc'ed, NULL-terminated array of
 * borrowed names. */
enum rfl_rc rfl_cupti_metrics(struct rfl_cupti_host *h, const char ***ret, size_t *n,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Configure the host object for these metrics. Returns RFL_ENOTFOUND for an unknown metric,
 * RFL_EUNSUPPORTED for one that this device cannot count, alone or with those before it.
 * @param image    malloc'ed
 * @param refused  set on failure: the index of the metric in the message; may be NULL */
enum rfl_rc rfl_cupti_config(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			     uint8_t **image, size_t *image_size, size_t *passes, size_t *refused,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The number of passes that these metrics need. */
enum rfl_rc rfl_cupti_passes(struct rfl_cupti_host *h, const char *const *metrics, size_t n,
			     size_t *ret, size_t *refused, struct rfl_err *err) RFL_WARN_UNUSED;

/** Values of a range of decoded counter data, in the metrics' own units. */
enum rfl_rc rfl_cupti_values(struct rfl_cupti_host *h, const uint8_t *data, size_t data_size,
			     size_t range, const char *const *metrics, size_t n, double *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- plan.c ---- */

#define RFL_METRIC_SET_MAX 96

/** A set of metric names, borrowed from the formulas. Zero it before use. */
struct rfl_metric_set {
	const char *names[RFL_METRIC_SET_MAX];
	size_t n;
	/** Metrics that were removed, and why. */
	const char *absent[RFL_METRIC_SET_MAX], *why_absent[RFL_METRIC_SET_MAX];
	size_t nabsent;
};

/** The set (RFL_SET_*) of a quantity in a run of this precision; 0: none (import only). */
unsigned rfl_metric_set_of(enum rfl_quantity q, const char *precision);

/** The first way of a quantity that uses only metrics of the chip, and only those in `within`
 * unless that is NULL; -1: none. */
int rfl_metric_set_way(const struct rfl_formulas *f, enum rfl_quantity q,
		       const struct rfl_metric_set *within);

/** Add the metrics of the sets RFL_SET_CORE, _FLOPS, _AUDIT and _LINKS, including those that are
 * subtracted.
 * @param precision  its matrix FLOPs are in the core, all others in the audit; NULL: the core has
 * none */
void rfl_metric_set_add_sets(struct rfl_metric_set *s, const struct rfl_formulas *f, unsigned sets,
			     const char *precision);

/** The same, but choose how the core counts the matrix FLOPs of the precision: a complete count if
 * possible, in the fewest passes. The audit counts them in every way. Metrics that this CUPTI lacks
 * for the chip, or refuses on this device, are omitted. Returns RFL_EUNSUPPORTED if none is
 * left. */
enum rfl_rc rfl_metric_set_choose(struct rfl_cupti_host *h, const struct rfl_formulas *f,
				  unsigned sets, const char *precision, struct rfl_metric_set *ret,
				  size_t *passes, struct rfl_err *err) RFL_WARN_UNUSED;

/** The metrics to request from ncu: the sets CORE and FLOPS, and AUDIT if no precision is given.
 * Returns RFL_EUNSUPPORTED if there is none.
 * @param h  NULL: names are not checked */
enum rfl_rc rfl_metric_set_ncu(const struct rfl_formulas *f, struct rfl_cupti_host *h,
			       const char *precision, struct rfl_metric_set *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
/** Append the names, separated by commas. */
void rfl_metric_set_text(const struct rfl_metric_set *s, struct rfl_buf *out);

/** The matrix FLOPs of a run in this precision. For "fp32", those of tf32, to show whether tf32 is
 * used; they are counted only if that needs at most one more pass. Returns RFL_QUANTITY_COUNT for
 * an unknown name. */
enum rfl_quantity rfl_precision_matrix(const char *precision);

struct rfl_cupti_unit {
	const char *unit; /**< the SI base unit: "s" */
	double factor;    /**< factor from CUPTI's unit: 1e-9 */
};

struct rfl_cupti_planned {
	const char *name;              /**< "core", "flops", "audit", "links" */
	unsigned set;                  /**< RFL_SET_CORE, ... */
	struct rfl_metric_set metrics; /**< empty: the chip has none of them */
	struct rfl_cupti_unit units[RFL_METRIC_SET_MAX];
	struct rfl_cupti_host *host; /**< configured for this session */
	uint8_t *config;
	size_t config_size;
	size_t passes;
	struct rfl_err why; /**< why it cannot be counted; empty if it can */
};

#define RFL_CUPTI_SESSIONS 4

struct rfl_cupti_plan {
	struct rfl_formulas *formulas;
	size_t n;
	struct rfl_cupti_planned sessions[RFL_CUPTI_SESSIONS];
};

/** Sessions that cannot be counted have the reason in `why`. Returns RFL_ENOTFOUND if there are no
 * formulas for the chip.
 * @param lib   NULL: only choose the metrics, unchecked
 * @param sets  RFL_SET_*; those without counters are ignored */
enum rfl_rc rfl_cupti_plan_new(struct rfl_cupti *lib, const char *chip, const uint8_t *availability,
			       unsigned sets, const char *precision, struct rfl_cupti_plan **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_plan_free(struct rfl_cupti_plan *p); /* accepts NULL */
RFL_AUTOPTR_TYPE(cupti_plan, free);

/** "9 metrics in 1 pass", then the metrics that are omitted, with the reasons. */
void rfl_cupti_planned_text(const struct rfl_cupti_planned *session, struct rfl_buf *out);

#endif
