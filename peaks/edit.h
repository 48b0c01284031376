/*
 * edit.h - changing a peaks file: what is there stays, the file is replaced atomically, and what is
 * written passes the same checks as what is read.
 */
#ifndef RFL_PEAKS_EDIT_H
#define RFL_PEAKS_EDIT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct rfl_peaks_edit; /* a file in memory, to be changed and saved */

/**
 * Read a file for change; one that does not exist starts empty, in the long form.
 * @param ret  set on success only; release with rfl_peaks_edit_close()
 */
enum rfl_rc rfl_peaks_edit_open(const char *path, struct rfl_peaks_edit **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Forgets what was not saved. Accepts NULL. */
void rfl_peaks_edit_close(struct rfl_peaks_edit *e);

/**
 * Would a measurement of this device fit the environment that is there? To be asked before the
 * minute is spent.
 * @return RFL_OK; RFL_EINVAL when the environment is of another device or kind
 */
enum rfl_rc rfl_peaks_edit_fits(const struct rfl_peaks_edit *e, const char *env, const char *kind,
				const char *device, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Merge an environment of the long form. Ceilings that it has replace those that are there (an
 * unknown one replaces nothing that has a value); all others stay. A data sheet value stays beside
 * the measured one. An environment in the short form is replaced and remembered in `notes`.
 * @param value  borrowed
 */
enum rfl_rc rfl_peaks_edit_merge(struct rfl_peaks_edit *e, const char *env, const json_t *value,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** One ceiling given by the user. */
struct rfl_peaks_set {
	const char *env;
	const char *key;    /**< as rfl_peaks_cell() spells it, or "fp32.vector", "DRAM" */
	double value;       /**< GFLOP/s or GB/s */
	const char *source; /**< where it is from */
	const char *kind;   /**< of an environment that is new: "cpu" or "gpu" */
	const char *device; /**< of an environment that is new; NULL: not recorded */
};

/** Set one ceiling; makes the environment when it is new. RFL_EINVAL names what is wrong. */
enum rfl_rc rfl_peaks_edit_set(struct rfl_peaks_edit *e, const struct rfl_peaks_set *set,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** Check everything and replace the file. */
enum rfl_rc rfl_peaks_edit_save(struct rfl_peaks_edit *e, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
