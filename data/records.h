/*
 * records.h - inside data/: small images that are in memory all together, and the files that they
 * come from: CIFAR-10's binary version, and MNIST's idx files, gzipped or not.
 */
#ifndef RFL_DATA_RECORDS_H
#define RFL_DATA_RECORDS_H

#include "base/buf.h"
#include "data/data.h"

/** Images of one size, planes of channels one after the other, with a label each. */
struct rfl_records {
	size_t n;
	int channels, height, width;
	int pad;   /**< augmentation: black pixels around, then a random crop of the old size */
	bool flip; /**< augmentation: half of them change left and right */
	struct rfl_pixel_scale scale;
	const uint8_t *pixels, *labels; /**< of the first; they lie in the blocks */
	size_t pixels_step, labels_step;
	struct rfl_buf blocks[2];
};
void rfl_records_fini(struct rfl_records *r);

/** Where a set lies. CIFAR-10: images is the folder of its files. */
struct rfl_record_files {
	char images[4096], labels[4096];
};

/** The set's training files in or under `dir`. False: there are none. */
bool rfl_cifar10_find(const char *dir, struct rfl_record_files *ret);
bool rfl_mnist_find(const char *dir, struct rfl_record_files *ret);

/**
 * Check that all files are there and fit each other, and read them.
 * @param values  false: only as far as n, channels, height and width need it
 * @param ret     zeroed; release with rfl_records_fini() in any case
 */
enum rfl_rc rfl_cifar10_read(const struct rfl_record_files *files, bool values,
			     struct rfl_records *ret, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_mnist_read(const struct rfl_record_files *files, bool values,
			   struct rfl_records *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#define RFL_CIFAR10_RECORD 3073 /* bytes: a label and 3 x 32 x 32 pixels */

/** Are these whole records of CIFAR-10 with labels from 0 to 9? */
enum rfl_rc rfl_cifar10_check_records(const char *name, const void *data, size_t len,
				      struct rfl_err *err) RFL_WARN_UNUSED;

/** Sizes of an idx file of unsigned bytes. */
struct rfl_idx {
	int ndim;
	int64_t dim[3];
};

/**
 * Read an idx file of unsigned bytes with `ndim` (1 or 3) dimensions; gunzipped on the way.
 * @param values  all of them are appended; NULL: only the header is read
 * @return RFL_OK; RFL_EFORMAT with the file, the place and what is wrong; RFL_EIO; RFL_ENOMEM
 */
enum rfl_rc rfl_idx_read(const char *path, int ndim, struct rfl_idx *ret, struct rfl_buf *values,
			 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
