/* NVRTC compiles the kernels for all types and generations, with wide loads and without arrays in
 * memory. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/dl.h"
#include "machine/cuda.h"
#include "runner/planned/cuda/source.h"
#include "tests/unit/kernels_rig.h"

struct program;

/* Results are 0 or the number of an error. */
static struct {
	int (*create)(struct program **ret, const char *source, const char *name, int headers,
		      const char *const *texts, const char *const *names);
	int (*compile)(struct program *p, int options, const char *const *option);
	int (*ptx_size)(struct program *p, size_t *ret);
	int (*ptx)(struct program *p, char *ret);
	int (*log_size)(struct program *p, size_t *ret);
	int (*log)(struct program *p, char *ret);
	int (*destroy)(struct program **p);
	int (*architectures)(int *ret);
	int (*architecture)(int *ret);
} nvrtc;

static enum rfl_rc open_nvrtc(struct rfl_dl **ret, struct rfl_err *err)
{
	const struct rfl_dl_symbol symbols[] = {
		{ "nvrtcCreateProgram", &nvrtc.create, false },
		{ "nvrtcCompileProgram", &nvrtc.compile, false },
		{ "nvrtcGetPTXSize", &nvrtc.ptx_size, false },
		{ "nvrtcGetPTX", &nvrtc.ptx, false },
		{ "nvrtcGetProgramLogSize", &nvrtc.log_size, false },
		{ "nvrtcGetProgramLog", &nvrtc.log, false },
		{ "nvrtcDestroyProgram", &nvrtc.destroy, false },
		{ "nvrtcGetNumSupportedArchs", &nvrtc.architectures, false },
		{ "nvrtcGetSupportedArchs", &nvrtc.architecture, false },
	};
	const struct rfl_cuda_places places = { .cuda_home = getenv("CUDA_HOME") };
	const char *names[9] = { NULL };
	RFL_AUTOPTR(arena) arena = rfl_arena_new();
	size_t n;

	n = rfl_cuda_library(arena, "libnvrtc.so.13", "cuda_nvrtc", &places, names, 4);
	rfl_cuda_library(arena, "libnvrtc.so.12", "cuda_nvrtc", &places, names + n, 4);
	return rfl_dl_open(names, RFL_DL_LOAD, symbols, RFL_ARRAY_LEN(symbols), ret, err);
}

static bool is_supported(int compute)
{
	int n, all[64];

	assert_int_equal(nvrtc.architectures(&n), 0);
	assert_in_range(n, 1, RFL_ARRAY_LEN(all));
	assert_int_equal(nvrtc.architecture(all), 0);
	while (n > 0 && all[n - 1] != compute)
		n--;
	return n > 0;
}

static char *compile(int compute, int type)
{
	char architecture[64], definition[64];
	const char *const options[] = { architecture, definition };
	struct program *p;
	size_t size;
	char *ptx;

	snprintf(architecture, sizeof(architecture), "--gpu-architecture=compute_%d", compute);
	snprintf(definition, sizeof(definition), "--define-macro=RFL_KERNEL_TYPE=%d", type);
	assert_int_equal(nvrtc.create(&p, rfl_kernel_source, "kernels", 0, NULL, NULL), 0);
	if (nvrtc.compile(p, RFL_ARRAY_LEN(options), options) != 0) {
		char *log;

		assert_int_equal(nvrtc.log_size(p, &size), 0);
		log = kept(room(size));
		assert_int_equal(nvrtc.log(p, log), 0);
		fail_msg("compute_%d, type %d: %s", compute, type, log);
	}
	assert_int_equal(nvrtc.ptx_size(p, &size), 0);
	ptx = kept(room(size));
	assert_int_equal(nvrtc.ptx(p, ptx), 0);
	assert_int_equal(nvrtc.destroy(&p), 0);
	return ptx;
}

/* Whether a kernel has an instruction, "ld.global" or "st.global", of this many bytes at once. */
static bool moves(const char *ptx, const char *kernel, const char *instruction, int bytes)
{
	static const char *const forms[][2] = {
		{ ".v2.u32", ".v4.u32" }, { ".v2.b32", ".v4.b32" }, { ".v2.f32", ".v4.f32" },
		{ ".u64", ".v2.u64" },    { ".b64", ".v2.b64" },    { ".v4.u16", ".b128" },
		{ ".v4.b16", ".v2.f64" },
	};
	char entry[64];
	const char *at, *end;

	snprintf(entry, sizeof(entry), ".entry rfl_k_%s(", kernel);
	at = strstr(ptx, entry);
	assert_non_null(at);
	end = strstr(at, "\n}");
	assert_non_null(end);
	while ((at = strstr(at + 1, instruction)) && at < end) {
		const size_t len = strcspn(at, " \t");

		for (size_t i = 0; i < RFL_ARRAY_LEN(forms); i++) {
			const char *const form = forms[i][bytes == 16];
			const size_t tail = strlen(form);

			if (len > tail && strncmp(at + len - tail, form, tail) == 0)
				return true;
		}
	}
	return false;
}

/* Kernels that wait for memory, and the bytes of a load and of a store. */
static void check_widths(const char *ptx)
{
	static const struct {
		const char *kernel;
		int load, store;
	} cases[] = {
		{ "elements", 16, 16 },
		{ "bias", 16, 16 },
		{ "norm_apply", 16, 16 },
		{ "norm_gradient_apply", 16, 16 },
		{ "norm_partials", 16, 16 },
		{ "norm_gradient_partials", 16, 16 },
		{ "column_partials", 16, 16 },
		{ "add_floats", 16, 16 },
		{ "columns", 16, 16 },
		{ "scale_rows", 16, 16 },
		{ "max_pool", 16, 16 },
		{ "max_pool_gradient", 16, 16 },
		{ "narrow", 16, 8 },
		{ "widen", 8, 16 },
		{ "sgd", 16, 8 },
		{ "sgd", 16, 16 },
		{ "adam", 16, 8 },
		{ "adam", 16, 16 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		if (!moves(ptx, cases[i].kernel, "ld.global", cases[i].load))
			fail_msg("%s: no loads of %d bytes", cases[i].kernel, cases[i].load);
		if (!moves(ptx, cases[i].kernel, "st.global", cases[i].store))
			fail_msg("%s: no stores of %d bytes", cases[i].kernel, cases[i].store);
	}
}

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void nvrtc_compiles_the_kernels(void **state)
{
	static const int generations[] = { 80, 90, 100, 120 };
	struct rfl_err err = RFL_ERR_INIT;
	RFL_AUTOPTR(dl) dl = NULL;

	(void)state;
	if (open_nvrtc(&dl, &err) != RFL_OK) {
		print_message("skipped: %s\n", err.msg);
		skip();
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(generations); i++)
		for (int type = 0; is_supported(generations[i]) && type < TYPES; type++) {
			const char *ptx;

			/* each takes seconds, more under a sanitizer */
			if (type != RFL_VALUE_BF16 && (generations[i] != 90 || SANITIZED))
				continue;
			ptx = compile(generations[i], type);
#define ENTRY(name) assert_non_null(strstr(ptx, ".entry rfl_k_" #name "("));
			RFL_KERNELS(ENTRY)
			assert_null(strstr(ptx, ".local"));
			if (type != RFL_VALUE_F32)
				check_widths(ptx);
			free_kept();
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nvrtc_compiles_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
