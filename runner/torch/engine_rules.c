/* engine_rules.c - what the torch engine does without libtorch. */
#include "runner/torch/engine_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/dl.h"
#include "base/num.h"

/* The CPU allocator and the vendors' libraries report lack of memory and missing kernels only in
 * the message text. */
enum rfl_rc rfl_torch_meaning(const char *text)
{
	static const struct {
		const char *part;
		enum rfl_rc rc;
	} meanings[] = {
		{ "can't allocate memory", RFL_EDEVMEM },
		{ "out of memory", RFL_EDEVMEM },
		{ "not enough memory", RFL_EDEVMEM },
		{ "Cannot allocate memory", RFL_EDEVMEM },
		{ "ALLOC_FAILED", RFL_EDEVMEM },
		/* "... not implemented for 'Half'" */
		{ "not implemented for", RFL_EUNSUPPORTED },
		/* "Could not run 'aten::x' with arguments from the 'MPS' backend" */
		{ "Could not run '", RFL_EUNSUPPORTED },
		{ "does not have a deterministic implementation", RFL_EUNSUPPORTED },
		/* cuBLAS without a workspace configuration */
		{ "Deterministic behavior was enabled", RFL_EUNSUPPORTED },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(meanings); i++)
		if (strstr(text, meanings[i].part))
			return meanings[i].rc;
	return RFL_EFAILED;
}

void rfl_torch_asked(const char *text, char *out, size_t size)
{
	static const char before[] = "ried to allocate "; /* Tried, tried */
	const char *at = strstr(text, before);
	char unit[8], bytes[32];
	double amount;

	out[0] = '\0';
	if (!at || sscanf(at + strlen(before), "%lf %7[a-zA-Z]", &amount, unit) != 2)
		return;
	if (strcmp(unit, "bytes") == 0)
		(void)snprintf(out, size, "%s", rfl_num_bytes(amount, bytes, sizeof(bytes)));
	else
		(void)snprintf(out, size, "%g %s", amount, unit);
}

bool rfl_batch_same(const struct rfl_batch *a, const struct rfl_batch *b)
{
	return a->n > 0 && a->n == b->n && a->id == b->id && a->kind == b->kind &&
	       a->layout == b->layout && a->images == b->images && a->labels == b->labels;
}

/* ------------------------------------------------------------------ refusals */

const char *rfl_graph_refusal(const struct rfl_graph_facts *f)
{
	const bool counts_on_host = f->step && !f->fused && f->rule != RFL_RULE_SGD;
	const bool waits = f->step && !f->fused && f->scaled;
	const struct {
		bool holds;
		const char *why;
	} rows[] = {
		{ f->missing != NULL, f->missing },
		{ f->marked, "per-layer counters and ranges would observe the recording instead of "
			     "the replays; leave them out" },
		{ f->exchanged, "the exchange of gradients between processes cannot be recorded; "
				"run one process, or leave out --cuda-graph" },
		{ counts_on_host, "unfused Adam counts its steps on the host, and a recording "
				  "would repeat one count; use the fused kernels" },
		{ waits, "loss scaling with unfused updates waits for the device; use the fused "
			 "kernels, or bf16" },
		{ f->steps < RFL_GRAPH_STEPS_BEFORE,
		  "at least 3 ordinary steps must precede it; use --warmup-iters 3 or more" },
		{ f->step && f->updates == 0,
		  "the optimizer has no memory yet; run an ordinary update first" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		if (rows[i].holds)
			return rows[i].why;
	return NULL;
}

const char *rfl_cuda_precision_missing(enum rfl_precision precision, enum rfl_cast cast,
				       int capability)
{
	if (capability == 0 || capability >= 80)
		return NULL;
	if (precision == RFL_PRECISION_TF32)
		return "tf32 requires a GPU of compute capability 8.0 (Ampere) or newer, and this "
		       "GPU would compute in fp32; use fp32 or fp16";
	if (cast == RFL_CAST_BF16)
		return "bf16 requires a GPU of compute capability 8.0 (Ampere) or newer; use fp16";
	return NULL;
}

/* ------------------------------------------------------------------ names and versions */

void rfl_loaded_libraries(struct rfl_engine_device *ret)
{
	/* looked up by name, so no headers are needed */
	static const char *const cudnn[] = { "libcudnn.so.9", "libcudnn.so.8", NULL };
	static const char *const nccl[] = { "libnccl.so.2", NULL };
	size_t (*cudnn_version)(void) = NULL;
	int (*nccl_version)(int *version) = NULL, number = 0;
	const struct rfl_dl_symbol of_cudnn = { "cudnnGetVersion", &cudnn_version, false };
	const struct rfl_dl_symbol of_nccl = { "ncclGetVersion", &nccl_version, false };
	struct rfl_dl *dl = NULL;

	if (rfl_dl_open(cudnn, RFL_DL_MAPPED, &of_cudnn, 1, &dl, NULL) == RFL_OK) {
		rfl_library_version_text((int)cudnn_version(), RFL_CUDNN_WIDE, ret->cudnn,
					 sizeof(ret->cudnn));
		rfl_dl_close(dl);
	}
	if (rfl_dl_open(nccl, RFL_DL_MAPPED, &of_nccl, 1, &dl, NULL) == RFL_OK) {
		if (nccl_version(&number) == 0)
			rfl_library_version_text(number, RFL_NCCL_WIDE, ret->nccl,
						 sizeof(ret->nccl));
		rfl_dl_close(dl);
	}
}

void rfl_cuda_version_text(int number, char *out, size_t size)
{
	out[0] = '\0';
	if (number > 0)
		(void)snprintf(out, size, "%d.%d", number / 1000, number % 1000 / 10);
}

void rfl_library_version_text(int number, int wide, char *out, size_t size)
{
	const int major = number >= wide ? 10000 : 1000;

	out[0] = '\0';
	if (number > 0)
		(void)snprintf(out, size, "%d.%d.%d", number / major, number % major / 100,
			       number % 100);
}

void rfl_pci_bus_id_text(int domain, int bus, int device, char *out, size_t size)
{
	out[0] = '\0';
	if (domain >= 0 && bus >= 0 && device >= 0)
		(void)snprintf(out, size, "%08X:%02X:%02X.0", (unsigned)domain, (unsigned)bus,
			       (unsigned)device);
}
