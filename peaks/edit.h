/*
 * edit.h - changes a peaks file. It is locked meanwhile, other contents are kept, the result must
 * pass the same checks as a file that is read, and the file is replaced atomically.
 */
#ifndef RFL_PEAKS_EDIT_H
#define RFL_PEAKS_EDIT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "peaks/devices.h"

struct rfl_peaks;
struct rfl_peaks_env;
struct rfl_peaks_edit; /* a peaks file in memory */

/** Lock a file that can be replaced, and read it; if it does not exist, start with an empty one in
 * the long form, and create its directory. Other edits of the file wait: keep it open briefly.
 * @param ret  set on success only; release with rfl_peaks_edit_close() */
enum rfl_rc rfl_peaks_edit_open(const char *path, struct rfl_peaks_edit **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Discard unsaved changes and unlock the file. Accepts NULL. */
void rfl_peaks_edit_close(struct rfl_peaks_edit *e);
RFL_AUTOPTR_TYPE(peaks_edit, close);

/** Check before a measurement that the environment, if it exists, belongs to this device, or that
 * one of them is RFL_PEAKS_NO_DEVICE.
 * @return RFL_OK; RFL_EINVAL if it belongs to another device or is of another kind */
enum rfl_rc rfl_peaks_edit_fits(const struct rfl_peaks_edit *e, const char *env, const char *kind,
				const char *device, struct rfl_err *err) RFL_WARN_UNUSED;

/** Merge an environment of the long form. Its ceilings replace existing ones (an unknown one never
 * replaces a value); all other ceilings and data sheet values are kept. An environment in the short
 * form is replaced, and its text is kept in `notes`.
 * @param value  borrowed */
void rfl_peaks_edit_merge(struct rfl_peaks_edit *e, const char *env, const json_t *value);

/** An environment in the long form. New reference. */
json_t *rfl_peaks_env_json(const struct rfl_peaks_env *env) RFL_WARN_UNUSED;

/** Add the environments of another peaks file. An existing environment must be identical; it is
 * replaced as a whole if `replace` is set.
 * @return RFL_OK; RFL_EINVAL if an environment differs; errors of the other file */
enum rfl_rc rfl_peaks_edit_add(struct rfl_peaks_edit *e, const char *path, bool replace,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Parse a rate: a number, in GFLOP/s or GB/s or followed by another unit ("121 TFLOP/s",
 * "3.35TB/s", "242.5 TOPS").
 *
 * @param key  the ceiling, to refuse a unit of the other kind
 * @param ret  GFLOP/s or GB/s
 * @return RFL_OK; RFL_EUSAGE
 */
enum rfl_rc rfl_peaks_rate(const char *text, const char *key, double *ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** A ceiling given by the user. */
struct rfl_peaks_set {
	const char *env;
	const char *key;    /**< as written by rfl_peaks_cell(), or "fp32.vector", "DRAM" */
	double value;       /**< GFLOP/s or GB/s */
	const char *source; /**< source of the value */
	const char *kind;   /**< kind of a new environment: "cpu" or "gpu" */
	const char *device; /**< device of a new environment; NULL: not recorded */
};

/** Set one ceiling; create the environment if it does not exist. RFL_EINVAL: there is no such key,
 * or the value is twice the dense rate of the device's data sheet. */
enum rfl_rc rfl_peaks_edit_set(struct rfl_peaks_edit *e, const struct rfl_peaks_set *set,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Set all ceilings of a data sheet; create the environment if it does not exist. Ceilings that
 * were measured or given by the user keep their value and get the sheet's as `spec`.
 * @return RFL_OK; RFL_EINVAL if the environment belongs to another device */
enum rfl_rc rfl_peaks_edit_sheet(struct rfl_peaks_edit *e, const char *env,
				 const struct rfl_device_sheet *sheet,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** The ceilings of a data sheet as a peaks file with one environment, named after the device.
 * @param ret  set on success only; release with rfl_peaks_free() */
enum rfl_rc rfl_peaks_of_sheet(const struct rfl_device_sheet *sheet, struct rfl_peaks **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Check the result and replace the file. */
enum rfl_rc rfl_peaks_edit_save(struct rfl_peaks_edit *e, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
