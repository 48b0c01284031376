/*
 * devices.h - data sheets of devices: what vendors say that a device has. The table is
 * peaks/devices.csv, compiled into the program; each row names its source, and how far it was
 * checked against it.
 *
 * A data sheet is no ceiling: measured ones are lower, by how much differs from device to device.
 */
#ifndef RFL_PEAKS_DEVICES_H
#define RFL_PEAKS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/** Dense rates of arithmetic, without sparsity. */
enum rfl_device_rate {
	RFL_DEVICE_FP64,
	RFL_DEVICE_FP32,
	RFL_DEVICE_FP64_TENSOR,
	RFL_DEVICE_TF32,
	RFL_DEVICE_FP16, /**< of tensor units, accumulated in FP32 */
	RFL_DEVICE_BF16,
	RFL_DEVICE_FP8,
	RFL_DEVICE_INT8,
	RFL_DEVICE_RATE_COUNT
};

/** A number that the sheet does not say, or that is not trusted, is NaN; a text is NULL. */
struct rfl_device_sheet {
	const char *name;  /**< as its driver names it */
	const char *label; /**< unique: the name, with units where several devices have one name */
	const char *const *aliases; /**< ended by NULL */
	const char *vendor;
	const char *kind;               /**< "gpu" or "cpu" */
	const char *compute_capability; /**< "8.9" */
	int64_t units;                  /**< multiprocessors, compute units, cores */
	double clock_hz;                /**< boost */
	double flop_per_s[RFL_DEVICE_RATE_COUNT];
	double bandwidth_bytes_per_s; /**< of its memory */
	double l2_bytes, llc_bytes;
	/**
	 * Of its memory. A sheet's "GB" of memory is taken as 2^30 bytes: memory chips come in such
	 * sizes, and a driver reports a little less than that (an H200 of "141 GB" 143771 MiB,
	 * which is 140.4 x 2^30). Unified memory: the largest on offer.
	 */
	double memory_bytes;
	double power_w;
	const char *source;   /**< the document */
	const char *evidence; /**< ds read in it, dq read out of a device, calc computed from units
				 and clock, mem from memory, not read again */
	const char *notes;
};

struct rfl_devices {
	size_t n;
	const struct rfl_device_sheet *sheets;
	struct rfl_arena *arena; /**< owns everything above, this struct included */
};

/** Read the table. @param ret  set on success only; release with rfl_devices_free() */
enum rfl_rc rfl_devices_load(struct rfl_devices **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_devices_free(struct rfl_devices *devices);

/** Whether a name that a person typed is that of a sheet, its label or an alias, or words of one of
 * them: "m3" is part of "Apple M3 Pro". */
bool rfl_device_matches(const struct rfl_device_sheet *sheet, const char *name);

/**
 * A device by label, name, alias, or a part of them that only one has: "NVIDIA L4", "l4", "rtx
 * 4090", "RTX4090". Case and punctuation do not matter; words do: "l4" does not match "L40". Of
 * several, one that ends in these words is meant: "h200" is the H200, not the H200 NVL.
 *
 * @param ret  set on success only; borrowed from devices
 * @return RFL_OK; RFL_ENOTFOUND with the nearest labels, or all that it could be; RFL_ENOMEM
 */
enum rfl_rc rfl_devices_find(const struct rfl_devices *devices, const char *name,
			     const struct rfl_device_sheet **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

#endif
