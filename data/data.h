/*
 * data.h - sources of batches: JPEG images, CIFAR-10, MNIST, a file of tokens, or one synthetic
 * batch that never changes.
 *
 * A directory of images DIR contains DIR/train/<class>/<image>.jpg (torchvision's ImageFolder; a
 * class may have subdirectories), and for test images DIR/val or DIR/test with the same classes.
 * Classes are the sorted directory names, numbered from 0. The contents of a batch depend on the
 * directory, the seed and the number of the batch, not on the number of threads.
 */
#ifndef RFL_DATA_DATA_H
#define RFL_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"
#include "data/batch.h"

enum rfl_data_kind {
	RFL_DATA_SYNTHETIC,          /**< one synthetic batch, kept by a GPU */
	RFL_DATA_SYNTHETIC_HOST,     /**< the same, copied to the device at every step */
	RFL_DATA_IMAGEFOLDER,        /**< JPEG files, read and decoded as needed */
	RFL_DATA_IMAGEFOLDER_CACHED, /**< the same, with the files cached in memory */
	RFL_DATA_CIFAR10,            /**< data_batch_*.bin */
	RFL_DATA_MNIST,              /**< train-images-idx3-ubyte[.gz] and labels */
	RFL_DATA_TOKENS,             /**< a file of 16-bit tokens */
};

/** In the order of the enum, then NULL. */
extern const char *const rfl_data_kind_names[];

/** The data of a run. Strings are borrowed. */
struct rfl_data_spec {
	enum rfl_data_kind kind;
	const char *dir; /**< a directory, or the file of tokens; NULL for synthetic data */
	/** The test set instead of the training set: every sample once per epoch, in order and not
	 * augmented. Damaged samples are omitted, so a batch may be smaller, and even empty. */
	bool test;
	bool augment; /**< random crop and flip, else resize and centre crop */
	/** With augment, rotate CIFAR-10 and MNIST by a random angle of at most this many degrees,
	 * instead of cropping CIFAR-10; 0: crop. */
	double rotation;
	int workers;     /**< decoding threads; 0: rfl_data_next() decodes */
	int ahead;       /**< batches decoded ahead of the one in use, at least 1 */
	bool pin_memory; /**< the caller passes an engine's memory to rfl_data_open() */
	uint64_t seed;   /**< for the order, the crops and the flips */
	/** Each of several processes gets a different part of every epoch, also with synthetic
	 * data: the parts together form the batch of a single process. */
	int rank, world_size; /**< 0 and 1 for a single process; a world_size of 0 means 1 */
	int64_t first_batch;  /**< begin as if so many batches had already been used */
	/** Limit for imagefolder-cached; 0: nine tenths of the free memory. */
	int64_t cache_bytes;
	/** The skipped files of this directory are already in the log: log them at debug level
	 * only.
	 */
	bool named;
};

struct rfl_data;

/**
 * Wait for the next batch. It is valid until the next call.
 * @return RFL_OK; RFL_EFORMAT if no image of the directory can be read; RFL_ENOMEM
 */
enum rfl_rc rfl_data_next(struct rfl_data *data, struct rfl_batch *ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Samples in the set, or tokens in the file, and batches in an epoch; 0 for synthetic data. */
int64_t rfl_data_samples(const struct rfl_data *data);
int64_t rfl_data_epoch_batches(const struct rfl_data *data);

/** A hash that tells data sets apart without reading all of them: of the names and sizes of the
 * images in a directory, or of the sizes and beginnings of records, labels or tokens. 0: synthetic
 * data. */
uint64_t rfl_data_digest(const struct rfl_data *data);

/** Wait until all batches ahead are decoded; the threads then sleep until rfl_data_next(). */
void rfl_data_rest(struct rfl_data *data);

/** Stop the threads and free everything. Accepts NULL. */
void rfl_data_free(struct rfl_data *data);
RFL_AUTOPTR_TYPE(data, free);

/** An allocator for batches, such as an engine's page-locked memory. */
struct rfl_data_memory {
	enum rfl_rc (*alloc)(void *ctx, size_t bytes, void **ret, struct rfl_err *err);
	void (*free)(void *ctx, void *memory);
	void *ctx;
};

/** Statistics since the source was opened or rfl_data_reset_stats(). NaN: not applicable. */
struct rfl_data_stats {
	int64_t decoded;    /**< images */
	int64_t read_bytes; /**< total size of their files */
	int64_t bad;        /**< files that could not be decoded since opening, each counted once */
	int64_t skipped;    /**< bad files and files not named .jpg or .jpeg */
	double decode_s;    /**< time of all workers, including waits for the disk */
	double queue_mean;  /**< mean number of batches ready at rfl_data_next() */
	double queue_min;
};

/**
 * Detect the data in a directory: JPEG images (DIR/train/<class>/), CIFAR-10 or MNIST. A file whose
 * name ends in .bin has tokens.
 * @param ret  RFL_DATA_IMAGEFOLDER, RFL_DATA_CIFAR10, RFL_DATA_MNIST or RFL_DATA_TOKENS
 * @return RFL_OK; RFL_EINVAL with a message about the expected files
 */
enum rfl_rc rfl_data_detect(const char *dir, enum rfl_data_kind *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Check before a run that the data suits a network. Only names and sizes of files are checked:
 * rfl_data_open() finds damaged files and tokens outside the vocabulary.
 * @return the codes of rfl_data_open()
 */
enum rfl_rc rfl_data_probe(const struct rfl_data_spec *spec, const struct rfl_net *net,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Open a source. Images are 8-bit pixels with their scale (RFL_INPUT_PIXELS), synthetic images are
 * floats, and text consists of tokens.
 *
 * A directory is read in random order, epoch after epoch. An epoch omits the images after its last
 * whole batch (of all ranks together), unless there are fewer images than one batch. A file that
 * cannot be decoded is logged once; a training set has the next image in its place.
 *
 * @param spec    its strings must outlive the source
 * @param net     defines the shape of the input and the number of classes; not kept
 * @param memory  for batches; NULL: ordinary memory. Copied; its ctx must outlive the source
 * @param ret     set on success only; release with rfl_data_free()
 * @return RFL_OK; RFL_EINVAL if the directory does not suit the network; RFL_EFORMAT or RFL_EIO
 * with the name of the file; RFL_ENOMEM, also if a cache would exceed the free memory;
 *         RFL_EUNAVAILABLE without libjpeg-turbo
 */
enum rfl_rc rfl_data_open(const struct rfl_data_spec *spec, const struct rfl_net *net,
			  int64_t batch, enum rfl_layout layout, int threads,
			  const struct rfl_data_memory *memory, struct rfl_data **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** The shape of the images that a net accepts. */
struct rfl_data_shape {
	const char *model;               /**< name for messages */
	int64_t channels, height, width; /**< height 0: size of the images in the files */
	int64_t classes;                 /**< outputs of the net; a set may have fewer */
};

/** rfl_data_open() without a net, for kinds that read a directory. */
enum rfl_rc rfl_data_open_images(const struct rfl_data_spec *spec,
				 const struct rfl_data_shape *shape, int64_t batch,
				 enum rfl_layout layout, const struct rfl_data_memory *memory,
				 struct rfl_data **ret, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_data_stats rfl_data_stats(struct rfl_data *data);

/** Reset the statistics at the beginning of a measured window. */
void rfl_data_reset_stats(struct rfl_data *data);

struct rfl_loader_rate_config {
	struct rfl_data_spec data;
	struct rfl_data_shape shape;
	int64_t batch;
	enum rfl_layout layout;
	double seconds;  /**< minimum length of the window */
	int64_t batches; /**< length in batches instead, if not 0 */
	bool cold;       /**< drop files from the page cache, and end the window with the epoch */
};

struct rfl_loader_rate {
	int64_t images;
	double wall_s;
	double cpu_s; /**< CPU time of all threads */
	double images_per_s;
	double images_per_thread_s; /**< per decoding thread */
	double images_per_cpu_s;    /**< per second of CPU time */
	double bytes_per_s;         /**< bytes read from files; NaN for records in memory */
	/** Fraction of the files in the page cache at the beginning, 0 to 1; NaN: unknown, or no
	 * files are read. */
	double in_page_cache;
	double queue_mean; /**< mean number of batches ready; NaN: no threads */
	int64_t bad;       /**< files that could not be decoded */
};

/** Measure the speed of a source. @return the codes of rfl_data_open() and rfl_data_next() */
enum rfl_rc rfl_loader_rate_measure(const struct rfl_loader_rate_config *config,
				    struct rfl_loader_rate *ret,
				    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
