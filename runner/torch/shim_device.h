/*
 * shim_device.h - where tensors live and work: this machine, an NVIDIA GPU, an Apple GPU. Its
 * queue of work, copies to it, marks in its queue, its memory, and recorded work.
 *
 * A GPU works on a stream of its own, which is current on the thread that opened it: everything
 * that this thread asks of libtorch goes there. Another stream copies batches.
 */
#ifndef RFL_RUNNER_TORCH_SHIM_DEVICE_H
#define RFL_RUNNER_TORCH_SHIM_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "machine/terms.h"
#include "runner/torch/shim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_torch_device;

/**
 * Can tensors live there, now? RFL_TORCH_FAILED otherwise; rfl_torch_error() has the reason and the
 * fix. Leaves the device usable: its context is made.
 */
RFL_TORCH_CALL rfl_torch_device_probe(enum rfl_device device) RFL_TORCH_NOEXCEPT;

/**
 * @param index  of the GPU among those that are visible
 * @param ret    set on success only; release with rfl_torch_device_close()
 */
RFL_TORCH_CALL rfl_torch_device_open(enum rfl_device device, int index,
				     struct rfl_torch_device **ret) RFL_TORCH_NOEXCEPT;
/** Waits for it. No tensor of the device may be used afterwards. Accepts NULL. */
void rfl_torch_device_close(struct rfl_torch_device *d) RFL_TORCH_NOEXCEPT;

/** Wait until everything that was asked for is done. */
RFL_TORCH_CALL rfl_torch_device_sync(struct rfl_torch_device *d) RFL_TORCH_NOEXCEPT;

/** A flat block of zeros there: rfl_torch_leaf() makes parameters of it. */
RFL_TORCH_CALL rfl_torch_device_zeros(struct rfl_torch_device *d, int64_t numel,
				      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/** A tensor of this machine there, strides kept; the memory may be reused when it returns. */
RFL_TORCH_CALL rfl_torch_device_bring(struct rfl_torch_device *d,
				      const struct rfl_torch_tensor *host,
				      struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;

/* ---- copies beside the work ---- */

/** Memory of this machine that the device reads by itself. RFL_TORCH_FAILED: it has no such. */
RFL_TORCH_CALL rfl_torch_device_host_alloc(struct rfl_torch_device *d, size_t bytes,
					   void **ret) RFL_TORCH_NOEXCEPT;
/** Accepts NULL. */
void rfl_torch_device_host_free(struct rfl_torch_device *d, void *memory) RFL_TORCH_NOEXCEPT;

/**
 * Begin to copy a tensor of this machine. Its memory must stay until rfl_torch_device_copied(), and
 * the copy may be used after rfl_torch_device_use().
 */
RFL_TORCH_CALL rfl_torch_device_copy(struct rfl_torch_device *d,
				     const struct rfl_torch_tensor *host,
				     struct rfl_torch_tensor **ret) RFL_TORCH_NOEXCEPT;
/** Let the work that is asked for from now on wait for the copies begun so far; `t` is one. */
RFL_TORCH_CALL rfl_torch_device_use(struct rfl_torch_device *d,
				    const struct rfl_torch_tensor *t) RFL_TORCH_NOEXCEPT;
/** Wait for the copies begun so far. */
RFL_TORCH_CALL rfl_torch_device_copied(struct rfl_torch_device *d) RFL_TORCH_NOEXCEPT;

/* ---- marks in its queue ---- */

/** Make n of them. RFL_TORCH_FAILED: the device has no such. */
RFL_TORCH_CALL rfl_torch_device_reserve(struct rfl_torch_device *d, int64_t n) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_device_record(struct rfl_torch_device *d, int64_t i) RFL_TORCH_NOEXCEPT;
/** Seconds between two that are passed. */
RFL_TORCH_CALL rfl_torch_device_elapsed(struct rfl_torch_device *d, int64_t from, int64_t to,
					double *ret) RFL_TORCH_NOEXCEPT;

/* ---- the record ---- */

/** Largest bytes in use and held since the last reset; NaN: it keeps no account. */
RFL_TORCH_CALL rfl_torch_device_memory(struct rfl_torch_device *d, double *allocated,
				       double *reserved) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_device_reset_memory(struct rfl_torch_device *d) RFL_TORCH_NOEXCEPT;

/** Versions as NVIDIA writes them: 13000 is CUDA 13.0; 0: not known. */
struct rfl_torch_device_facts {
	char name[128];
	int pci_domain, pci_bus, pci_device; /**< -1: it is on no PCI bus */
	int64_t memory_bytes;                /**< -1: not known */
	int runtime, driver;
	int capability; /**< of an NVIDIA GPU: 80 is 8.0; 0: not known */
};
RFL_TORCH_CALL rfl_torch_device_facts(struct rfl_torch_device *d,
				      struct rfl_torch_device_facts *ret) RFL_TORCH_NOEXCEPT;

/* ---- recorded work ---- */

struct rfl_torch_graph;

/** NULL: work can be recorded. Else why not. Borrowed. */
const char *rfl_torch_graph_missing(const struct rfl_torch_device *d) RFL_TORCH_NOEXCEPT;

/** What is asked for until rfl_torch_graph_end() is recorded, not done. */
RFL_TORCH_CALL rfl_torch_graph_begin(struct rfl_torch_device *d,
				     struct rfl_torch_graph **ret) RFL_TORCH_NOEXCEPT;
/** @return RFL_TORCH_FAILED when something cannot be recorded; the graph is then good for nothing
 */
RFL_TORCH_CALL rfl_torch_graph_end(struct rfl_torch_graph *g) RFL_TORCH_NOEXCEPT;
RFL_TORCH_CALL rfl_torch_graph_replay(struct rfl_torch_graph *g) RFL_TORCH_NOEXCEPT;
/** Accepts NULL. */
void rfl_torch_graph_free(struct rfl_torch_graph *g) RFL_TORCH_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
