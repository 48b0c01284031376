/*
 * ring.h - inside data/: a ring of batches that worker threads fill from a set of samples, and what
 * such a set is. Batches ahead, threads, statistics and damaged samples are the ring's; where a
 * sample comes from and what is done to it are the set's.
 */
#ifndef RFL_DATA_RING_H
#define RFL_DATA_RING_H

#include "data/data.h"
#include "data/random.h"

struct rfl_samples;

/** One sample, being made. */
struct rfl_sample {
	uint8_t *pixels; /**< where to write sample_bytes, in `layout` */
	enum rfl_layout layout;
	int64_t label;      /**< set by load() */
	int64_t read_bytes; /**< of its file, set by load() */
};

/** A kind of set. Several threads call load() at once, each with a worker of its own. */
struct rfl_samples_ops {
	/** What one thread keeps from sample to sample. NULL: nothing. */
	enum rfl_rc (*worker_new)(const struct rfl_samples *s, void **ret, struct rfl_err *err);
	void (*worker_free)(void *worker);
	/**
	 * Make one sample.
	 * @param random  of this sample, at its beginning
	 * @return RFL_OK; RFL_EFORMAT, RFL_EIO when this sample is damaged; others end everything
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
	int64_t skipped; /**< files that are no samples */
};

struct rfl_ring_config {
	int64_t batch;
	enum rfl_layout layout;
	int workers, ahead;
	uint64_t seed;
	int rank, world_size;
	bool named;                           /**< damaged samples have been named in the log */
	const struct rfl_data_memory *memory; /**< NULL: malloc */
};

/** Batches of a set. @param take_set  taken, also on failure */
enum rfl_rc rfl_ring_open(struct rfl_samples *take_set, const struct rfl_ring_config *config,
			  struct rfl_data **ret, struct rfl_err *err) RFL_WARN_UNUSED;

void rfl_samples_free(struct rfl_samples *s); /**< accepts NULL */

/* ---- memory of batches ---- */

/** Bytes that batches or a cache may take: nine tenths of what is free, control group included;
 * INT64_MAX when the system does not say. */
enum rfl_rc rfl_data__room(int64_t *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Is there room for so many batches of so many bytes each? Before they are taken, and whatever
 * memory is used.
 * @param name  of the data, for the message
 * @return RFL_OK; RFL_ENOMEM with what is needed, what there is, and what to make smaller
 */
enum rfl_rc rfl_data__check_room(const char *name, int64_t batches, int64_t samples, size_t bytes,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Aligned for vectors; from `memory` when it is not NULL. */
enum rfl_rc rfl_data__alloc(const struct rfl_data_memory *memory, size_t bytes, void **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_data__free(const struct rfl_data_memory *memory, void *p);

/* ---- the kinds ---- */

/** One batch of the golden fill, from sample `first` on; the same at every step. @param keep  the
 * device may keep it */
enum rfl_rc rfl_data__synthetic(const struct rfl_net *net, int64_t first, int64_t batch,
				enum rfl_layout layout, int threads, bool keep,
				const struct rfl_data_memory *memory, struct rfl_data **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** JPEG files of spec->dir. */
enum rfl_rc rfl_samples_folder(const struct rfl_data_spec *spec, const struct rfl_data_shape *shape,
			       struct rfl_samples **ret, struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_samples_folder_probe(const struct rfl_data_spec *spec,
				     const struct rfl_data_shape *shape,
				     struct rfl_err *err) RFL_WARN_UNUSED;

/** Records of one size, in memory: CIFAR-10 and MNIST. */
enum rfl_rc rfl_samples_records(const struct rfl_data_spec *spec,
				const struct rfl_data_shape *shape, struct rfl_samples **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_samples_records_probe(const struct rfl_data_spec *spec,
				      const struct rfl_data_shape *shape,
				      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
