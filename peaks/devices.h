/*
 * devices.h - data sheets of devices. The table, peaks/devices.csv, is compiled into the program;
 * each row gives its source and how it was verified.
 *
 * A data sheet value is not a ceiling: measured ceilings are lower, by a different amount for each
 * device.
 */
#ifndef RFL_PEAKS_DEVICES_H
#define RFL_PEAKS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

RFL_API_BEGIN

/** Arithmetic rates for dense data (without sparsity). */
enum rfl_device_rate {
	RFL_DEVICE_FP64,
	RFL_DEVICE_FP32,
	RFL_DEVICE_FP64_TENSOR,
	RFL_DEVICE_TF32,
	RFL_DEVICE_FP16, /**< on tensor units with FP32 accumulation */
	RFL_DEVICE_BF16,
	RFL_DEVICE_FP8,
	RFL_DEVICE_INT8,
	RFL_DEVICE_RATE_COUNT
};

/** Values that are missing or not trusted are NaN; missing texts are NULL. */
struct rfl_device_sheet {
	const char *name;  /**< name reported by the driver */
	const char *label; /**< unique: the name, followed by the number of units if several devices
			      share it */
	const char *aliases; /**< "one; two"; NULL: none */
	const char *vendor;
	const char *kind;
	const char *compute_capability; /**< "8.9" */
	int64_t units;                  /**< number of multiprocessors, compute units or cores */
	double clock_hz;                /**< boost clock */
	double flop_per_s[RFL_DEVICE_RATE_COUNT];
	double bandwidth_bytes_per_s; /**< memory bandwidth */
	double l2_bytes, llc_bytes;
	/** A data sheet's "GB" of memory is taken as 2^30 bytes, the unit of memory chips; drivers
	 * report slightly less. For unified memory, the largest option. */
	double memory_bytes;
	double power_w;
	const char *source;   /**< document the values are from */
	const char *evidence; /**< ds: from the document; dq: queried from a device; calc: computed
				 from units and clock; mem: from memory, not verified */
	const char *notes;
};

struct rfl_devices {
	size_t n;
	const struct rfl_device_sheet *sheets;
	struct rfl_arena *arena; /**< owns everything above, including this struct */
};

/** Read the table. */
struct rfl_devices *rfl_devices_new(void) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_devices_free(struct rfl_devices *devices);
RFL_AUTOPTR_TYPE(devices, free);

/** The compute keys of the rates in peaks.json: "fp64.vector", ..., "int8.matrix". */
extern const char *const rfl_device_keys[RFL_DEVICE_RATE_COUNT];

/** The rate in FLOP/s of a compute key, or in byte/s of the level DRAM or HBM; NaN if the sheet has
 * none. */
double rfl_device_ceiling(const struct rfl_device_sheet *sheet, const char *key);

/** Is every word of a text in the name, an alias, the vendor or the kind of a sheet? "m3" matches
 * "Apple M3 Pro", and "nvidia 4090" the GeForce RTX 4090. */
bool rfl_device_matches(const struct rfl_device_sheet *sheet, const char *name);

/**
 * Find a device by label, name, alias, or a unique part of them: "NVIDIA L4", "l4", "rtx 4090",
 * "RTX4090". Case and punctuation do not matter, but words must be whole: "l4" does not match
 * "L40". A name that ends in the given words is preferred: "h200" is the H200, not the H200 NVL.
 *
 * @param ret  set on success only; borrowed from devices
 * @return RFL_OK; RFL_ENOTFOUND, listing similar labels or several matches
 */
enum rfl_rc rfl_devices_find(const struct rfl_devices *devices, const char *name,
			     const struct rfl_device_sheet **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** The same; NULL if there is none, or if an argument is NULL. */
const struct rfl_device_sheet *rfl_devices_get(const struct rfl_devices *devices, const char *name);

RFL_API_END
#endif
