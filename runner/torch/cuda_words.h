/*
 * cuda_words.h - numbers of NVIDIA's libraries as people write them, and what its older GPUs cannot
 * compute in.
 */
#ifndef RFL_RUNNER_TORCH_CUDA_WORDS_H
#define RFL_RUNNER_TORCH_CUDA_WORDS_H

#include <stddef.h>

#include "machine/terms.h"

#ifdef __cplusplus
extern "C" {
#endif

/** 13000 is "13.0", 12080 "12.8"; "" for 0. */
void rfl_cuda_version_text(int number, char *out, size_t size);

/** 91900 is "9.19.0" (from 9.0 on), 8907 "8.9.7"; "" for 0. */
void rfl_cudnn_version_text(size_t number, char *out, size_t size);

/** 22809 is "2.28.9" (from 2.9 on), 2804 "2.8.4"; "" for 0. */
void rfl_nccl_version_text(int number, char *out, size_t size);

/**
 * Can a GPU of this compute capability (80 is 8.0; 0: not known) compute in that precision itself?
 * NULL: yes. Else why not, and what to do: libraries would silently use another precision.
 */
const char *rfl_cuda_precision_missing(enum rfl_precision precision, enum rfl_cast cast,
				       int capability);

/** "00000000:01:00.0", as the driver writes it; "" when a number is negative. */
void rfl_pci_bus_id_text(int domain, int bus, int device, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
