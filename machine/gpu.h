/*
 * gpu.h - the NVIDIA GPUs that the driver shows, and what one does while something else runs on it:
 * clocks, power, temperature and the reasons for being slowed down, sampled by a thread of its own.
 * By NVML, which is opened on demand.
 */
#ifndef RFL_MACHINE_GPU_H
#define RFL_MACHINE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

struct rfl_gpu {
	char name[96];                               /**< as the driver names it: "NVIDIA L4" */
	char uuid[96];                               /**< "" when not known */
	int64_t memory_bytes;                        /**< 0 when not known */
	int cc_major, cc_minor;                      /**< compute capability; 0, 0 when not known */
	double sm_clock_max_hz, memory_clock_max_hz; /**< NaN when not known */
	double power_limit_w;                        /**< in force; NaN likewise */
	enum rfl_known ecc, persistence;             /**< modes that are switched on */
};

struct rfl_gpus {
	char driver[96]; /**< version of the driver; "" when not known */
	size_t n;        /**< at least 1 */
	struct rfl_gpu *gpus;
};

/** Ask the driver for its GPUs.
 * @param ret  release with rfl_gpus_free()
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason: no library, no driver, no permission, no device
 */
enum rfl_rc rfl_gpus_new(struct rfl_gpus **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_gpus_free(struct rfl_gpus *g);

/** What was seen between start and stop. NaN: not known, or no sample. */
struct rfl_gpu_samples {
	int64_t n;
	double sm_clock_mean_hz, sm_clock_min_hz, memory_clock_mean_hz;
	double power_mean_w; /**< of the samples, each at its instant; an older driver, which has
				only means over a second, is not asked in the first second */
	double energy_j; /**< of the whole window: by the energy counter in windows of 1 s or more
			    in which it has moved, else power times time */
	double temperature_max_c;
	double memory_used_peak_bytes; /**< of the whole device, by all processes */
	uint64_t throttle_bits; /**< every reason that was seen, NVML's bits, idle left out */
	bool throttle_known;    /**< the device reports reasons, or that there are none */
	double window_s;
};

struct rfl_sampler;

/** Open NVML and find a device; no thread runs yet.
 * @param pci_bus_id  of the device, as CUDA names it; NULL: device 0
 *                    "00000000:0A:00.0"; the case and the width of the domain do not matter
 * @param hz          samples per second, 10 for instance
 * @param ret         set on success only; release with rfl_sampler_free()
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason (no driver, no such device); RFL_EINVAL
 */
enum rfl_rc rfl_sampler_new(const char *pci_bus_id, double hz, struct rfl_sampler **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Begin a window: the first sample is taken at once, by the thread. RFL_ENOMEM when a thread
 * cannot be started; RFL_EINVAL while a window is open. */
enum rfl_rc rfl_sampler_start(struct rfl_sampler *s, struct rfl_err *err) RFL_WARN_UNUSED;

/** End it, after a last sample. A quantity that the device does not report is NaN; means are over
 * the samples that have it. */
void rfl_sampler_stop(struct rfl_sampler *s, struct rfl_gpu_samples *ret);

/** Ends a window that is open. Accepts NULL. */
void rfl_sampler_free(struct rfl_sampler *s);

/** The reasons in words, "SW power cap, HW thermal slowdown", into out; "" when there is none. */
void rfl_throttle_words(uint64_t bits, char *out, size_t size);

#endif
