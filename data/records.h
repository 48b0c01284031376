/*
 * records.h - inside data/: small images that lie in memory all together, and the files that they
 * come from: CIFAR-10's binary version and MNIST's idx files.
 */
#ifndef RFL_DATA_RECORDS_H
#define RFL_DATA_RECORDS_H

#include "base/buf.h"
#include "data/data.h"

/** Images of one size, planes of channels behind each other, with a label each. */
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

/* ---- CIFAR-10: data_batch_1.bin to data_batch_5.bin, records of a label and 3 x 32 x 32 ---- */

#define RFL_CIFAR10_RECORD 3073
#define RFL_CIFAR10_FILES  5

/** The folder at or under `dir` with CIFAR-10's files. False: there is none. */
bool rfl_cifar10_find(const char *dir, char *out, size_t size);
/** Are all files there, of whole records? @param dir  as found */
enum rfl_rc rfl_cifar10_check(const char *dir, struct rfl_err *err) RFL_WARN_UNUSED;
/** @param ret  zeroed; release with rfl_records_fini() in any case */
enum rfl_rc rfl_cifar10_read(const char *dir, struct rfl_records *ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;
/** Are these whole records with labels from 0 to 9? */
enum rfl_rc rfl_cifar10_check_records(const char *name, const void *data, size_t len,
				      struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- MNIST: idx files, gzipped or not ---- */

struct rfl_mnist_files {
	char images[4096], labels[4096];
};

/** MNIST's training files in or under `dir`. False: there are no images. */
bool rfl_mnist_find(const char *dir, struct rfl_mnist_files *ret);
/** Are both files there, and do their headers fit each other? */
enum rfl_rc rfl_mnist_check(const struct rfl_mnist_files *files,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** @param ret  zeroed; release with rfl_records_fini() in any case */
enum rfl_rc rfl_mnist_read(const struct rfl_mnist_files *files, struct rfl_records *ret,
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
