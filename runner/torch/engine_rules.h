/*
 * engine_rules.h - what the torch engine does without libtorch: which batches are equal, when a
 * step can be recorded, which precisions a GPU lacks, the meaning of libtorch's messages, names and
 * versions as text.
 */
#ifndef RFL_RUNNER_TORCH_ENGINE_RULES_H
#define RFL_RUNNER_TORCH_ENGINE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/batch.h"
#include "machine/terms.h"
#include "runner/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The code for an exception of a general type. The text identifies lack of memory and missing
 * kernels; everything else is RFL_EFAILED. */
enum rfl_rc rfl_torch_meaning(const char *text);

/** Write how much memory could not be allocated, "392 MiB", according to a message of libtorch; ""
 * if the message does not include it. */
void rfl_torch_asked(const char *text, char *out, size_t size);

/** Is a copy of batch a one of batch b? Micro-batches of one batch share its id, but not its
 * memory. False if a is empty. */
bool rfl_batch_same(const struct rfl_batch *a, const struct rfl_batch *b);

/** Ordinary steps required before a recording: libraries choose and load their kernels in them. */
#define RFL_GRAPH_STEPS_BEFORE 3

struct rfl_graph_facts {
	const char *missing; /**< reason why nothing can be recorded; NULL: recording works */
	bool step;           /**< the step includes an update */
	enum rfl_optimizer_rule rule;
	bool fused;      /**< the update is one pass and counts its steps on the device */
	bool scaled;     /**< losses are scaled */
	bool marked;     /**< a callback is called for each node */
	bool exchanged;  /**< gradients are averaged over several processes */
	int64_t steps;   /**< ordinary steps so far in this mode */
	int64_t updates; /**< updates by this optimizer so far */
};

/** Return why a step cannot be recorded and how to fix it; NULL if it can be recorded. A recording
 * contains kernels, addresses and numbers, but no work of the host between the kernels. */
const char *rfl_graph_refusal(const struct rfl_graph_facts *f);

/** Return NULL if a GPU of this compute capability (80 is 8.0; 0: unknown) supports the precision
 * in hardware, else the reason and the fix: libraries would silently use another precision. */
const char *rfl_cuda_precision_missing(enum rfl_precision precision, enum rfl_cast cast,
				       int capability);

/** Fill in the versions of the libraries that libtorch has loaded: cuDNN and NCCL. */
void rfl_loaded_libraries(struct rfl_engine_device *ret);

/** Format a CUDA version: 13000 as "13.0", 12080 as "12.8", 0 as "". */
void rfl_cuda_version_text(int number, char *out, size_t size);

/** Format a version: 91900 of cuDNN as "9.19.0", 8907 as "8.9.7", 22809 of NCCL as "2.28.9"; 0 as
 * "".
 * @param wide  from this number on, major is number / 10000, otherwise number / 1000 */
void rfl_library_version_text(int number, int wide, char *out, size_t size);
#define RFL_CUDNN_WIDE 90000
#define RFL_NCCL_WIDE  10000

/** Format a PCI bus id as the driver does: "00000000:01:00.0"; "" if a number is negative. */
void rfl_pci_bus_id_text(int domain, int bus, int device, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
