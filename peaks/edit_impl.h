/* edit_impl.h - internal: what edit.c, edit_merge.c and edit_set.c share. */
#ifndef RFL_PEAKS_EDIT_IMPL_H
#define RFL_PEAKS_EDIT_IMPL_H

#include "peaks/edit.h"
#include "peaks/rules.h"

struct rfl_peaks_edit {
	char *path;
	json_t *root;
	bool is_new;
};

/* The map of environments. `to_long`: turn a file of the short form into the long one first; its
 * environments stay as they are written. NULL out of memory. */
json_t *rfl_peaks_edit__envs(struct rfl_peaks_edit *e, bool to_long);

enum rfl_rc rfl_peaks_edit__no_memory(const struct rfl_peaks_edit *e, struct rfl_err *err);

/* Put a ceiling into the `compute` of an environment. Takes `take_ceiling`. False out of memory. */
bool rfl_peaks_edit__put_compute(json_t *compute, const char *key, json_t *take_ceiling);

/* Put a level into the list of an environment, in the place of one of the same name and scope, or
 * where it belongs between the fastest and the slowest. Takes `take_level`. False out of memory. */
bool rfl_peaks_edit__put_level(json_t *memory, json_t *take_level);

#endif
