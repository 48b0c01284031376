/*
 * parts.h - declarations that the files of data/ share: sets of samples, their lists and their
 * files. A set reads and transforms samples; the loader does the rest: threads, batches ahead,
 * statistics, damaged samples.
 */
#ifndef RFL_DATA_PARTS_H
#define RFL_DATA_PARTS_H

#include "base/buf.h"
#include "data/data.h"
#include "data/random.h"

/* ---- sets of samples ---- */

struct rfl_samples;

/** One sample, while it is loaded. */
struct rfl_sample {
	uint8_t *pixels; /**< where to write sample_bytes, in `layout` */
	enum rfl_layout layout;
	int64_t label;      /**< set by load() */
	int64_t read_bytes; /**< of its file, set by load() */
};

/** A kind of set. Threads call load() concurrently, each with its own worker. */
struct rfl_samples_ops {
	/** State that a thread keeps from sample to sample. NULL: none. */
	enum rfl_rc (*worker_new)(const struct rfl_samples *s, void **ret, struct rfl_err *err);
	void (*worker_free)(void *worker);
	/**
	 * Load one sample.
	 * @param random  of this sample, at its beginning
	 * @return RFL_OK; RFL_EFORMAT, RFL_EIO if this sample is damaged; others are fatal
	 */
	enum rfl_rc (*load)(const struct rfl_samples *s, void *worker, size_t index,
			    struct rfl_random *random, struct rfl_sample *ret, struct rfl_err *err);
	void (*free)(struct rfl_samples *s);
};

/** A set of samples; a kind's own struct begins with this one. */
struct rfl_samples {
	const struct rfl_samples_ops *ops;
	const char *name; /**< of the folder, for messages */
	size_t n;         /**< at least 1 */
	size_t sample_bytes;
	const struct rfl_pixel_scale *scale;
	int64_t skipped; /**< files that are not samples */
};

/** The JPEG files of spec->dir (folder.c). @param ret  NULL: check without reading all files */
enum rfl_rc rfl_samples_folder(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       struct rfl_samples **ret, struct rfl_err *err) RFL_WARN_UNUSED;
/** CIFAR-10 and MNIST, in memory (records.c). @param ret  NULL: check headers and sizes only */
enum rfl_rc rfl_samples_records(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, struct rfl_samples **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- sources of batches (loader.c) ---- */

/** Batches of a set. @param take_set  owned, also on failure */
enum rfl_rc rfl_data__loader(struct rfl_samples *take_set, const struct rfl_data_spec *spec,
			     int64_t batch, enum rfl_layout layout,
			     const struct rfl_data_memory *memory, struct rfl_data **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** One batch of the golden fill, from sample `first` on, the same at every step. @param keep  allow
 * the device to keep it */
enum rfl_rc rfl_data__synthetic(const struct rfl_net *net, int64_t first, int64_t batch,
				enum rfl_layout layout, int threads, bool keep,
				const struct rfl_data_memory *memory, struct rfl_data **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Bytes that batches or a cache may use: nine tenths of the free memory, within the control group;
 * INT64_MAX if unknown. */
enum rfl_rc rfl_data__room(int64_t *ret, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_dataset_image {
	uint32_t label;   /**< index into classes */
	const char *name; /**< path within the folder of its class */
};

struct rfl_dataset {
	const char *dir; /**< DIR/train */
	size_t nclasses;
	const char **classes; /**< sorted bytewise */
	size_t nimages;
	struct rfl_dataset_image *images; /**< sorted by class, then by folder and name */
	size_t skipped;                   /**< files not named .jpg or .jpeg */
	struct rfl_arena *arena;          /**< owns the texts */
};

/**
 * List a folder of images without opening them.
 * @param first  stop at the first folder with images, and log nothing
 * @param named  skipped files are already in the log: log them at debug level
 * @param ret    set on success only; release with rfl_dataset_free()
 * @return RFL_OK; RFL_EIO; RFL_EINVAL if there is no train folder, no class, no image, or more than
 *         max_classes classes
 */
enum rfl_rc rfl_dataset_open(const char *dir, int64_t max_classes, bool first, bool named,
			     struct rfl_dataset **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_dataset_free(struct rfl_dataset *set); /**< accepts NULL */

/** Path of an image's file. RFL_EIO if it is longer than `size`. */
enum rfl_rc rfl_dataset_path(const struct rfl_dataset *set, size_t index, char *out, size_t size,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- files of records (records.c) ---- */

/** Does `dir` contain the training files of CIFAR-10 or MNIST? */
bool rfl_records_are_in(const char *dir, enum rfl_data_kind kind);

#define RFL_CIFAR10_RECORD 3073 /* bytes: a label and 3 x 32 x 32 pixels */

/** Check that these are whole records of CIFAR-10 with labels from 0 to 9. */
enum rfl_rc rfl_cifar10_check_records(const char *name, const void *data, size_t len,
				      struct rfl_err *err) RFL_WARN_UNUSED;

/** Sizes of an idx file. */
struct rfl_idx {
	int ndim;
	int64_t dim[3];
};

/**
 * Read an idx file of unsigned bytes with `ndim` (1 or 3) dimensions, gzipped or not.
 * @param values  the values are appended; NULL: read the header only
 * @return RFL_OK; RFL_EFORMAT with the file, the place and the fault; RFL_EIO; RFL_ENOMEM
 */
enum rfl_rc rfl_idx_read(const char *path, int ndim, struct rfl_idx *ret, struct rfl_buf *values,
			 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
