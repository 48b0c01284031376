/* launch.c - the kernels: compiled by NVRTC for the device that is there, and queued. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runner/planned/cuda/backend.h"
#include "runner/planned/cuda/source.h"

#define THREADS           256
#define BLOCKS_OF_EACH_SM 32

struct nvrtc {
	struct rfl_nvrtc_functions calls;
	struct rfl_dl *dl;
};

/* @param version  of CUDA, of the driver: machine code of a newer compiler may be refused */
static enum rfl_rc open_nvrtc(struct nvrtc *n, int version, struct rfl_err *err)
{
#define SYMBOL(member, symbol, arguments) { #symbol, &n->calls.member, false },
	const struct rfl_dl_symbol symbols[] = { RFL_NVRTC_FUNCTIONS(SYMBOL) };
#undef SYMBOL
	static const char *const all[] = { "libnvrtc.so.13", "libnvrtc.so.12" };
	const size_t skip = version < 13000; /* CUDA 13 */
	const char *const *const files = all + skip;
	const enum rfl_rc rc = rfl_cuda_load(files, RFL_ARRAY_LEN(all) - skip, "cuda_nvrtc",
					     symbols, RFL_ARRAY_LEN(symbols), &n->dl, err);

	if (rc != RFL_OK)
		rfl_err_prefix(err, "NVRTC was not found (it is part of CUDA toolkits and of CUDA "
				    "builds of PyTorch; add its directory to LD_LIBRARY_PATH)");
	return rc;
}

/* The failure of a compilation, with the compiler's first line. */
static enum rfl_rc explain(const struct nvrtc *n, struct rfl_nvrtc_program *program, int result,
			   struct rfl_err *err)
{
	size_t size = 0;
	RFL_AUTOFREE char *log = NULL;

	if (program && n->calls.log_size(program, &size) == 0 && size > 1)
		log = rfl_alloc_array(size + 1, 1);
	if (log && n->calls.log(program, log) != 0)
		*log = '\0';
	if (log)
		log[strcspn(log, "\n")] = '\0';
	if (result == 5) /* NVRTC_ERROR_INVALID_OPTION */
		return rfl_fail(err, RFL_EUNAVAILABLE, result,
				"this NVRTC is older than the GPU: install a newer CUDA toolkit");
	return rfl_fail(err, RFL_EFAILED, result,
			"NVRTC cannot compile the kernels (result %d)%s%s", result,
			log && *log ? ": " : "", log ? log : "");
}

/* @param ret  the machine code, released with free() */
static enum rfl_rc compile(const struct nvrtc *n, int capability, enum rfl_value type, char **ret,
			   struct rfl_err *err)
{
	char architecture[64], define[64];
	const char *const options[] = { architecture, define };
	struct rfl_nvrtc_program *program = NULL;
	enum rfl_rc rc = RFL_OK;
	char *code = NULL;
	size_t size = 0;
	int result;

	(void)snprintf(architecture, sizeof(architecture), "--gpu-architecture=sm_%d", capability);
	(void)snprintf(define, sizeof(define), "-DRFL_KERNEL_TYPE=%d", (int)type);
	result = n->calls.create(&program, rfl_kernel_source, "kernels.cu", 0, NULL, NULL);
	if (result == 0)
		result = n->calls.compile(program, RFL_ARRAY_LEN(options), options);
	if (result == 0)
		result = n->calls.cubin_size(program, &size);
	if (result == 0) {
		code = rfl_alloc_array(size + 1, 1);
		result = n->calls.cubin(program, code);
	}
	if (result != 0) {
		rc = explain(n, program, result, err);
		free(code);
	} else {
		*ret = code;
	}
	if (program)
		(void)n->calls.destroy(&program);
	return rc;
}

enum rfl_rc rfl_cuda__probe_kernels(int version, struct rfl_err *err)
{
	struct nvrtc nvrtc = { .dl = NULL };
	const enum rfl_rc rc = open_nvrtc(&nvrtc, version, err);

	rfl_dl_close(nvrtc.dl);
	return rc;
}

enum rfl_rc rfl_cuda__load_kernels(struct rfl_backend *b, struct rfl_err *err)
{
#define NAME(name) "rfl_k_" #name,
	static const char *const names[] = { RFL_KERNELS(NAME) };
#undef NAME
	struct nvrtc nvrtc = { .dl = NULL };
	char *code = NULL;
	enum rfl_rc rc = open_nvrtc(&nvrtc, b->cuda->version, err);

	if (rc == RFL_OK)
		rc = compile(&nvrtc, b->cuda->capability, b->type, &code, err);
	if (rc == RFL_OK)
		rc = RFL_CUDA_CALL(b->cuda, module_load, err, &b->module, code);
	for (int i = 0; i < KERNEL_COUNT && rc == RFL_OK; i++)
		rc = RFL_CUDA_CALL(b->cuda, module_function, err, &b->kernels[i], b->module,
				   names[i]);
	free(code);
	rfl_dl_close(nvrtc.dl);
	return rc;
}

enum rfl_rc rfl_cuda__launch(const struct rfl_backend *b, enum kernel kernel, const void *argument,
			     struct rfl_err *err)
{
	const int64_t n = *(const int64_t *)argument, needed = (n + THREADS - 1) / THREADS;
	const int64_t sms = b->cuda->multiprocessors > 0 ? b->cuda->multiprocessors : 1;
	const int64_t most = sms * BLOCKS_OF_EACH_SM;
	void *arguments[] = { (void *)(uintptr_t)argument };

	if (n < 1)
		return RFL_OK;
	return RFL_CUDA_CALL(b->cuda, launch, err, b->kernels[kernel],
			     (unsigned)(needed < most ? needed : most), 1, 1, THREADS, 1, 1, 0,
			     b->stream, arguments, NULL);
}
