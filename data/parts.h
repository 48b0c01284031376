/*
 * parts.h - declarations shared by the files of data/: sets of samples, lists of files and files of
 * records. A set reads and transforms samples; the loader handles threads, batches ahead,
 * statistics and damaged samples.
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
	uint8_t *pixels; /**< destination of sample_bytes bytes, in `layout` */
	enum rfl_layout layout;
	int64_t label;      /**< set by load() */
	int64_t read_bytes; /**< size of its file, set by load() */
};

/** The operations of a kind of set. Threads call load() concurrently with separate workers. */
struct rfl_samples_ops {
	/** Create the state that a thread keeps from sample to sample. NULL: no state. */
	enum rfl_rc (*worker_new)(const struct rfl_samples *s, void **ret, struct rfl_err *err);
	void (*worker_free)(void *worker);
	/**
	 * Load one sample.
	 * @param random  the unused random numbers of this sample
	 * @return RFL_OK; RFL_EFORMAT, RFL_EIO if this sample is damaged; other codes are fatal
	 */
	enum rfl_rc (*load)(const struct rfl_samples *s, void *worker, size_t index,
			    struct rfl_random *random, struct rfl_sample *ret, struct rfl_err *err);
	void (*free)(struct rfl_samples *s);
};

/** A set of samples; the struct of each kind begins with this struct. */
struct rfl_samples {
	const struct rfl_samples_ops *ops;
	const char *name; /**< name of the directory, for messages */
	size_t n;         /**< at least 1 */
	size_t sample_bytes;
	const struct rfl_pixel_scale *scale;
	int64_t skipped; /**< files that are not samples */
	uint64_t digest; /**< see rfl_data_digest() */
};

/** Open JPEG files in spec->dir (folder.c). @param ret  NULL: check without listing all files */
enum rfl_rc rfl_samples_folder(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       struct rfl_samples **ret, struct rfl_err *err) RFL_WARN_UNUSED;
/** Open CIFAR-10 or MNIST in memory (records.c). @param ret  NULL: check headers and sizes only */
enum rfl_rc rfl_samples_records(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, struct rfl_samples **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Continue a digest with the size and the beginning of data in memory. */
uint64_t rfl_data__digest(uint64_t digest, const void *data, size_t bytes);

/* ---- sources of batches (loader.c) ---- */

/** Create a source without contents; one of the next three functions provides them. */
struct rfl_data *rfl_data__new(const struct rfl_data_spec *spec, int64_t batch,
			       enum rfl_layout layout, const struct rfl_data_memory *memory);

/** Start loading the samples of a set. @param take_set  owned by the source, also on failure */
enum rfl_rc rfl_data__load(struct rfl_data *data, struct rfl_samples *take_set,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Provide one batch of the golden fill, the same at every step. */
enum rfl_rc rfl_data__synthetic(struct rfl_data *data, const struct rfl_net *net, int threads,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Provide batches from a file of tokens. */
enum rfl_rc rfl_data__texts(struct rfl_data *data, const struct rfl_net *net,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Get the bytes that batches or a cache may use: nine tenths of the memory that is free in the
 * control group; INT64_MAX if unknown. */
enum rfl_rc rfl_data__room(int64_t *ret, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_dataset_image {
	uint32_t label;   /**< index into classes */
	const char *name; /**< path below its class directory */
};

struct rfl_dataset {
	const char *dir; /**< DIR/train, for example */
	size_t nclasses;
	const char **classes; /**< sorted bytewise */
	size_t nimages;
	struct rfl_dataset_image *images; /**< sorted by class, then by directory and name */
	size_t skipped;                   /**< files not named .jpg or .jpeg */
	uint64_t digest;                  /**< see rfl_data_digest() */
	struct rfl_arena *arena;          /**< owns all of this */
};

/**
 * List DIR/part, a directory of images, without opening the images.
 * @param part   "train", "val" or "test"
 * @param first  stop at the first directory with images, and log nothing
 * @param named  skipped files are already in the log: log them at debug level
 * @param ret    set on success only; release with rfl_dataset_free()
 * @return RFL_OK; RFL_EIO; RFL_EINVAL if there is no such directory, class or image, or more than
 *         max_classes classes
 */
enum rfl_rc rfl_dataset_open(const char *dir, const char *part, int64_t max_classes, bool first,
			     bool named, struct rfl_dataset **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_dataset_free(struct rfl_dataset *set); /**< accepts NULL */
RFL_AUTOPTR_TYPE(dataset, free);

/** Get the path of an image. RFL_EIO if it does not fit in `size` bytes. */
enum rfl_rc rfl_dataset_path(const struct rfl_dataset *set, size_t index, char *out, size_t size,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- files of tokens (tokens.c) ---- */

/** A file in memory; read-only, any number of threads. */
struct rfl_token_file {
	const unsigned char *data;
	size_t bytes;
	int64_t tokens, context;
};

/**
 * Map a file of 16-bit tokens.
 * @param check  read the whole file, and refuse tokens outside the vocabulary
 * @param ret    set on success only; release with rfl_token_file_free()
 * @return RFL_OK; RFL_EINVAL if the net reads no tokens or the file is shorter than a sample;
 *         RFL_EFORMAT for half a token or one outside the vocabulary; RFL_EIO
 */
enum rfl_rc rfl_token_file_open(const char *path, const struct rfl_net *net, bool check,
				struct rfl_token_file **ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_token_file_free(struct rfl_token_file *f); /**< accepts NULL */
RFL_AUTOPTR_TYPE(token_file, free);

/** Read the sample with this number: a context of tokens at a random place, and the token after
 * each of them. */
void rfl_token_file_sample(const struct rfl_token_file *f, uint64_t seed, uint64_t sample,
			   int64_t *tokens, int64_t *labels);

/* ---- files of records (records.c) ---- */

/** Return whether `dir` contains the training files of CIFAR-10 or MNIST. */
bool rfl_records_are_in(const char *dir, enum rfl_data_kind kind);

#define RFL_CIFAR10_RECORD 3073 /* bytes: a label and 3 x 32 x 32 pixels */

/** Check for whole records of CIFAR-10 with labels from 0 to 9. */
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
 * @return RFL_OK; RFL_EFORMAT with the file, the offset and the fault; RFL_EIO
 */
enum rfl_rc rfl_idx_read(const char *path, int ndim, struct rfl_idx *ret, struct rfl_buf *values,
			 struct rfl_err *err) RFL_WARN_UNUSED;

#endif
