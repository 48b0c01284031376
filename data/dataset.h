/*
 * dataset.h - inside data/: the list of a folder's images. Opening them is left to others.
 */
#ifndef RFL_DATA_DATASET_H
#define RFL_DATA_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct rfl_arena;

struct rfl_dataset_image {
	uint32_t label;   /**< index into classes */
	const char *name; /**< within its class's folder: a path, when there are folders in it */
};

struct rfl_dataset {
	const char *dir; /**< DIR/train */
	size_t nclasses;
	const char **classes; /**< sorted bytewise */
	size_t nimages;
	struct rfl_dataset_image *images; /**< sorted by class, then by folder and name */
	size_t skipped;          /**< files that are not named .jpg or .jpeg; logged by name */
	struct rfl_arena *arena; /**< owns everything above */
};

/**
 * List a folder of images; none is opened.
 * @param named  files that are left out have been named in the log before
 * @param ret    set on success only; release with rfl_dataset_free()
 * @return RFL_OK; RFL_EIO; RFL_EINVAL when there is no train folder, no class or no image
 */
enum rfl_rc rfl_dataset_open(const char *dir, bool named, struct rfl_dataset **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_dataset_free(struct rfl_dataset *set);

/**
 * Is there at least one image, and are there at most max_classes classes? As rfl_data_open() says
 * it, but without listing every file.
 */
enum rfl_rc rfl_dataset_probe(const char *dir, int64_t max_classes,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** Path of an image's file. RFL_EIO when it is longer than `size`. */
enum rfl_rc rfl_dataset_path(const struct rfl_dataset *set, size_t index, char *out, size_t size,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** RFL_EINVAL when a folder has more classes than a network has outputs. */
enum rfl_rc rfl_dataset_check_classes(const struct rfl_dataset *set, int64_t max_classes,
				      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
