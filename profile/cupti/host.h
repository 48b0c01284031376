/*
 * host.h - what CUPTI knows of a chip without having one: its metrics, whether a set of them
 * can be counted together, and in how many passes.
 */
#ifndef RFL_PROFILE_CUPTI_HOST_H
#define RFL_PROFILE_CUPTI_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/cupti/lib.h"

/** Chips that this libcupti knows. Borrowed until it is closed. */
enum rfl_rc rfl_cupti_chips(struct rfl_cupti *c, const char *const **ret, size_t *n,
			    struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_cupti_host; /* a host object for one chip */

/**
 * @param chip          "GH100"
 * @param availability  of the device (cuptiProfilerGetCounterAvailability), kept by the caller
 * until the object is closed; or NULL: all that such a chip has
 * @param ret           release with rfl_cupti_host_close()
 */
enum rfl_rc rfl_cupti_host_open(struct rfl_cupti *c, const char *chip, const uint8_t *availability,
				struct rfl_cupti_host **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_cupti_host_close(struct rfl_cupti_host *h); /* accepts NULL */

struct rfl_cupti_metric_info {
	const char *description; /**< borrowed until the host object is closed, as the others */
	const char *unit;        /**< "byte", "ns", "math_op", "inst", ... */
	const char *hw_unit;     /**< "dram", "sm", ... */
};

/** RFL_ENOTFOUND when the chip has no such metric (with its rollup suffix). `ret` may be NULL. */
enum rfl_rc rfl_cupti_metric(struct rfl_cupti_host *h, const char *metric,
			     struct rfl_cupti_metric_info *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for a name without rollup suffix, as rfl_cupti_metrics() gives them. */
enum rfl_rc rfl_cupti_describe(struct rfl_cupti_host *h, const char *base,
			       struct rfl_cupti_metric_info *ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** All base metrics of the chip, without rollup suffix. */
enum rfl_rc rfl_cupti_metrics(struct rfl_cupti_host *h, void (*each)(const char *metric, void *ctx),
			      void *ctx, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Make the host object count these metrics and build its configuration.
 * @param image    a malloc'ed config image; the caller frees
 * @param refused  the place in `metrics` of the metric that is named; may be NULL
 * @return RFL_OK; RFL_ENOTFOUND naming a metric; RFL_EUNSUPPORTED naming the metric that this
 *         device cannot count, or not together with those before it
 */
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

#endif
