/*
 * loader_rate.h - how fast a source makes batches, with nothing that consumes them.
 */
#ifndef RFL_DATA_LOADER_RATE_H
#define RFL_DATA_LOADER_RATE_H

#include "data/data.h"

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
