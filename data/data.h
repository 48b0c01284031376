/*
 * data.h - where batches come from: JPEG images, CIFAR-10, MNIST, or one synthetic batch that never
 * changes. A source hands out batches in the engines' form, one at a time.
 *
 * A folder of images DIR holds DIR/train/<class>/<image>.jpg (torchvision's ImageFolder; images may
 * lie in folders within their class's). Classes are the sorted folder names and count from 0. What
 * a batch holds is a function of the folder, the seed and the number of the batch: not of the
 * number of threads.
 */
#ifndef RFL_DATA_DATA_H
#define RFL_DATA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "complexity/net.h"
#include "data/batch.h"

/* ---- what a run is fed ---- */

enum rfl_data_kind {
	RFL_DATA_SYNTHETIC,          /**< one synthetic batch; a GPU keeps it */
	RFL_DATA_SYNTHETIC_HOST,     /**< the same, brought to the device at every step */
	RFL_DATA_IMAGEFOLDER,        /**< JPEG files, read and decoded as they are needed */
	RFL_DATA_IMAGEFOLDER_CACHED, /**< the same; the files stay in memory */
	RFL_DATA_CIFAR10,            /**< data_batch_*.bin */
	RFL_DATA_MNIST,              /**< train-images-idx3-ubyte[.gz] and labels */
};

/** "synthetic", "synthetic-host", "imagefolder", "imagefolder-cached", "cifar10", "mnist", NULL:
 * in the order of the enum. */
extern const char *const rfl_data_kind_names[];

/** Everything about a run's data. Texts are borrowed. */
struct rfl_data_spec {
	enum rfl_data_kind kind;
	const char *dir; /**< NULL for synthetic data */
	bool augment;    /**< random crop and flip, else resize and centre crop */
	int workers;     /**< decoding threads; 0: decode when the batch is asked for */
	int ahead;       /**< batches decoded ahead of the one in use, at least 1 */
	bool pin_memory; /**< the caller hands rfl_data_open() an engine's memory */
	uint64_t seed;   /**< of the order, the crops and the flips */
	/** Of several processes each sees its own part of every epoch. Of synthetic data too: the
	 * batches of all are what one process with a batch of all their samples would see. */
	int rank, world_size; /**< 0 and 1 when there is one; a world_size of 0 is 1 */
	/** The most that imagefolder-cached may keep. 0: nine tenths of the memory that is free. */
	int64_t cache_bytes;
	/** This folder's files that are left out have been named in the log: now they are only
	 * counted (at the log's debug level they are named again). */
	bool named;
};

/* ---- sources of batches ---- */

struct rfl_data;

/**
 * The next batch; waits for it. It stays as it is until the next call.
 * @return RFL_OK; RFL_EFORMAT when no image of the folder can be read; RFL_ENOMEM
 */
enum rfl_rc rfl_data_next(struct rfl_data *data, struct rfl_batch *ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Wait until nothing is decoded ahead any more: until the next rfl_data_next() its threads sleep.
 */
void rfl_data_rest(struct rfl_data *data);

/** Stops the threads. Accepts NULL. */
void rfl_data_free(struct rfl_data *data);

/** Memory for batches, such as an engine's that a GPU can read while it works. */
struct rfl_data_memory {
	enum rfl_rc (*alloc)(void *ctx, size_t bytes, void **ret, struct rfl_err *err);
	void (*free)(void *ctx, void *memory);
	void *ctx;
};

/** How a source has kept up, since it was opened or rfl_data_reset_stats(). NaN: nothing of the
 * kind happens. */
struct rfl_data_stats {
	int64_t decoded;    /**< images that were made */
	int64_t read_bytes; /**< of the files that they were made from */
	/** Files that could not be decoded, since it was opened: each counts once. */
	int64_t bad;
	int64_t skipped;   /**< those, and files not named as JPEG */
	double decode_s;   /**< by all workers together, waiting for the disk included */
	double queue_mean; /**< batches that were ready when one was asked for */
	double queue_min;
};

/**
 * What a folder holds: JPEG images (DIR/train/<class>/), CIFAR-10 or MNIST.
 * @param ret  RFL_DATA_IMAGEFOLDER, RFL_DATA_CIFAR10 or RFL_DATA_MNIST
 * @return RFL_OK; RFL_EINVAL with what was found and what a folder must look like
 */
enum rfl_rc rfl_data_detect(const char *dir, enum rfl_data_kind *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Could a network be fed so? Checks names and sizes of files but does not open images, to refuse
 * before a run begins. Only rfl_data_open() finds a damaged file.
 * @return as rfl_data_open()
 */
enum rfl_rc rfl_data_probe(const struct rfl_data_spec *spec, const struct rfl_net *net,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Open what a specification says. Images come as 8-bit pixels with their scale (RFL_INPUT_PIXELS),
 * synthetic ones as floats, texts as tokens.
 *
 * A folder is read in a random order, epoch after epoch. The images after the last whole batch of
 * an epoch (of all ranks together) are left out of it; with fewer images than one batch, epochs
 * follow each other without a gap. A file that cannot be decoded is named in the log once, and the
 * image after it takes its place.
 *
 * @param spec    texts must outlive the source
 * @param net     gives the shape of its input and the number of classes; not kept
 * @param memory  of batches; NULL: this machine's own. Copied; its ctx must outlive the source
 * @param ret     set on success only; release with rfl_data_free()
 * @return RFL_OK; RFL_EINVAL when the folder does not fit the network; RFL_EFORMAT, RFL_EIO naming
 *         the file; RFL_ENOMEM, also when a cache would be larger than the memory that is free;
 *         RFL_EUNAVAILABLE without libjpeg-turbo
 */
enum rfl_rc rfl_data_open(const struct rfl_data_spec *spec, const struct rfl_net *net,
			  int64_t batch, enum rfl_layout layout, int threads,
			  const struct rfl_data_memory *memory, struct rfl_data **ret,
			  struct rfl_err *err) RFL_WARN_UNUSED;

/** Images that are wanted; rfl_data_open() takes them from a net. */
struct rfl_data_shape {
	const char *model;               /**< for messages */
	int64_t channels, height, width; /**< height 0: as the files of cifar10 and mnist have it */
	int64_t classes;                 /**< outputs of the net; a set may have fewer */
};

/** rfl_data_open() for a kind that reads a folder, where there is no net. */
enum rfl_rc rfl_data_open_images(const struct rfl_data_spec *spec,
				 const struct rfl_data_shape *shape, int64_t batch,
				 enum rfl_layout layout, const struct rfl_data_memory *memory,
				 struct rfl_data **ret, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_data_stats rfl_data_stats(struct rfl_data *data);

/** Count from here: the beginning of a measured window. */
void rfl_data_reset_stats(struct rfl_data *data);

/* ---- how fast a source makes batches, with nothing that consumes them ---- */

struct rfl_loader_rate_config {
	struct rfl_data_spec data;
	struct rfl_data_shape shape;
	int64_t batch;
	enum rfl_layout layout;
	double seconds;  /**< the window lasts at least so long */
	int64_t batches; /**< or is so many batches, when not 0 */
	bool cold;       /**< files are not in the page cache, and the window ends with the epoch */
};

struct rfl_loader_rate {
	int64_t images;
	double wall_s;
	double cpu_s; /**< of all threads together */
	double images_per_s;
	double images_per_thread_s; /**< of a thread that decodes */
	double images_per_cpu_s;    /**< what one core does that does nothing else */
	double bytes_per_s;         /**< of files; NaN for records in memory */
	/** Part of the files that lay in the page cache when it began, 0 to 1; NaN: not known, or
	 * no files are read. */
	double in_page_cache;
	double queue_mean; /**< batches that were ready when one was asked for; NaN: no threads */
	int64_t bad;       /**< files that could not be decoded */
};

/** Measure it once. @return as rfl_data_open(), rfl_data_next() */
enum rfl_rc rfl_loader_rate_measure(const struct rfl_loader_rate_config *config,
				    struct rfl_loader_rate *ret,
				    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
