/*
 * gpu.h - the NVIDIA GPUs that the driver lists, and a thread that samples the clocks, power,
 * temperature and throttling of one GPU while a workload runs. Uses NVML, loaded on demand.
 */
#ifndef RFL_MACHINE_GPU_H
#define RFL_MACHINE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/machine.h"

struct rfl_gpu {
	char name[96];                               /**< as named by the driver: "NVIDIA L4" */
	char uuid[96];                               /**< "" if unknown */
	int64_t memory_bytes;                        /**< 0 if unknown */
	int cc_major, cc_minor;                      /**< compute capability; 0, 0 if unknown */
	double sm_clock_max_hz, memory_clock_max_hz; /**< NaN if unknown */
	double power_limit_w;                        /**< the enforced limit; NaN if unknown */
	enum rfl_known ecc, persistence;             /**< whether the mode is on */
};

struct rfl_gpus {
	char driver[96]; /**< version of the driver; "" if unknown */
	size_t n;        /**< at least 1 */
	struct rfl_gpu *gpus;
};

/** List the GPUs that the driver reports.
 * @param ret  release with rfl_gpus_free()
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason: no library, no driver, no permission, no
 *         device */
enum rfl_rc rfl_gpus_new(struct rfl_gpus **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_gpus_free(struct rfl_gpus *g);
RFL_AUTOPTR_TYPE(gpus, free);

/** Samples between start and stop. NaN: not reported by the device, or no sample. */
struct rfl_gpu_samples {
	int64_t n;
	double sm_clock_mean_hz, sm_clock_min_hz, memory_clock_mean_hz;
	double power_mean_w; /**< mean of instantaneous samples; older drivers report only the mean
				of the last second and are not read in the first second */
	double energy_j; /**< energy of the whole window: from the energy counter if the window is 1
			    s or longer and the counter advanced, else power times time */
	double temperature_max_c;
	double memory_used_peak_bytes; /**< peak of the whole device, all processes */
	uint64_t throttle_bits;        /**< all reasons seen, as NVML's bits, except idle */
	bool throttle_known;           /**< the device reports throttle reasons */
	double window_s;
};

struct rfl_sampler;

/** Open NVML and find a device without starting the thread.
 * @param pci_bus_id  as CUDA writes it, "00000000:0A:00.0" (case and width of the domain do not
 *                    matter); NULL: device 0
 * @param hz          samples per second, for example 10
 * @param ret         set on success only; release with rfl_sampler_free()
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason (no driver, no such device); RFL_EINVAL */
enum rfl_rc rfl_sampler_new(const char *pci_bus_id, double hz, struct rfl_sampler **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Begin a window; the thread takes the first sample at once. RFL_ENOMEM if the thread cannot be
 * started; RFL_EINVAL while a window is open. */
enum rfl_rc rfl_sampler_start(struct rfl_sampler *s, struct rfl_err *err) RFL_WARN_UNUSED;

/** End the window after a last sample. Means exclude samples without a value. */
void rfl_sampler_stop(struct rfl_sampler *s, struct rfl_gpu_samples *ret);

/** Also ends an open window. Accepts NULL. */
void rfl_sampler_free(struct rfl_sampler *s);

/** Write the reasons to out as "SW power cap, HW thermal slowdown"; "" if none. @return out */
char *rfl_throttle_words(uint64_t bits, char *out, size_t size);

#endif
