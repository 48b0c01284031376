/*
 * edit.h - changes a peaks file: other contents are kept, the file is replaced atomically, and the
 * result must pass the same checks as a file that is read.
 */
#ifndef RFL_PEAKS_EDIT_H
#define RFL_PEAKS_EDIT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct rfl_peaks_edit; /* a file in memory */

/**
 * Read a file for change; one that does not exist starts empty, in the long form.
 * @param ret  set on success only; release with rfl_peaks_edit_close()
 */
enum rfl_rc rfl_peaks_edit_open(const char *path, struct rfl_peaks_edit **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Discards unsaved changes. Accepts NULL. */
void rfl_peaks_edit_close(struct rfl_peaks_edit *e);

/**
 * Check before a measurement that the environment is of this device, if it exists.
 * @return RFL_OK; RFL_EINVAL if the environment is of another device or kind
 */
enum rfl_rc rfl_peaks_edit_fits(const struct rfl_peaks_edit *e, const char *env, const char *kind,
				const char *device, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Merge an environment of the long form. Its ceilings replace existing ones (an unknown one never
 * replaces a value); all others stay, and so do data sheet values. An environment in the short form
 * is replaced and kept in `notes`.
 * @param value  borrowed
 */
enum rfl_rc rfl_peaks_edit_merge(struct rfl_peaks_edit *e, const char *env, const json_t *value,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** One ceiling given by the user. */
struct rfl_peaks_set {
	const char *env;
	const char *key;    /**< as rfl_peaks_cell() spells it, or "fp32.vector", "DRAM" */
	double value;       /**< GFLOP/s or GB/s */
	const char *source; /**< where the value is from */
	const char *kind;   /**< of a new environment: "cpu" or "gpu" */
	const char *device; /**< of a new environment; NULL: not recorded */
};

/** Set one ceiling, and create the environment if it does not exist. RFL_EINVAL names the fault. */
enum rfl_rc rfl_peaks_edit_set(struct rfl_peaks_edit *e, const struct rfl_peaks_set *set,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Check everything and replace the file. */
enum rfl_rc rfl_peaks_edit_save(struct rfl_peaks_edit *e, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
