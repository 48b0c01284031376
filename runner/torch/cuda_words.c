/*
 * cuda_words.c - numbers of NVIDIA's libraries as people write them, and what its older GPUs cannot
 * compute in.
 */
#include "runner/torch/cuda_words.h"

#include <stdio.h>

void rfl_cuda_version_text(int number, char *out, size_t size)
{
	out[0] = '\0';
	if (number > 0)
		(void)snprintf(out, size, "%d.%d", number / 1000, number % 1000 / 10);
}

/* CUDNN_VERSION is major * 1000 + minor * 100 + patch before 9.0, and major * 10000 from then on.
 */
void rfl_cudnn_version_text(size_t number, char *out, size_t size)
{
	const size_t major = number >= 90000 ? 10000 : 1000;

	out[0] = '\0';
	if (number > 0)
		(void)snprintf(out, size, "%zu.%zu.%zu", number / major, number % major / 100,
			       number % 100);
}

/* NCCL_VERSION_CODE likewise: major * 1000 up to 2.8, then major * 10000. */
void rfl_nccl_version_text(int number, char *out, size_t size)
{
	const int major = number >= 10000 ? 10000 : 1000;

	out[0] = '\0';
	if (number > 0)
		(void)snprintf(out, size, "%d.%d.%d", number / major, number % major / 100,
			       number % 100);
}

const char *rfl_cuda_precision_missing(enum rfl_precision precision, enum rfl_cast cast,
				       int capability)
{
	if (capability == 0 || capability >= 80)
		return NULL;
	if (precision == RFL_PRECISION_TF32)
		return "tf32 needs a GPU of compute capability 8.0 (Ampere) or newer, which this "
		       "is not: it would compute in fp32; use fp32 or fp16";
	if (cast == RFL_CAST_BF16)
		return "bf16 needs a GPU of compute capability 8.0 (Ampere) or newer, which this "
		       "is not; use fp16";
	return NULL;
}

void rfl_pci_bus_id_text(int domain, int bus, int device, char *out, size_t size)
{
	out[0] = '\0';
	if (domain >= 0 && bus >= 0 && device >= 0)
		(void)snprintf(out, size, "%08X:%02X:%02X.0", (unsigned)domain, (unsigned)bus,
			       (unsigned)device);
}
