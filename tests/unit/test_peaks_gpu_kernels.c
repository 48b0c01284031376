/*
 * test_peaks_gpu_kernels.c - the loops for GPUs: what they count, that NVIDIA's assembler takes
 * them without spilling registers, and that their innermost loop has the instructions that are
 * counted and little else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/num.h"
#include "base/proc.h"
#include "peaks/gpu_kernels.h"
#include "tests/unit/rfl_test.h"

static const int capabilities[] = { 75, 80, 86, 89, 90, 100, 120 };

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

/* Run a tool; its output, or NULL if it is not here. The caller frees it. */
static char *output_of(const char *const *argv, bool *fine)
{
	struct rfl_proc_spec spec = {
		.argv = argv, .capture_stdout = true, .capture_stderr = true, .timeout_s = 120
	};
	struct rfl_proc_result result;
	char *text = NULL;

	*fine = false;
	if (rfl_proc_run(&spec, &result, NULL) == RFL_OK) {
		const size_t size = result.out.len + result.err.len + 1;

		text = malloc(size);
		assert_non_null(text);
		snprintf(text, size, "%s%s", rfl_buf_str(&result.out), rfl_buf_str(&result.err));
		*fine = result.exited && result.exit_code == 0;
		rfl_proc_result_fini(&result);
	}
	return text;
}

/* Multiply-adds of a thread in an instruction, from its PTX name. */
static double fmas_of(const struct rfl_gpu_kernel *k)
{
	int64_t shape[3];
	const char *at = strstr(k->op, ".m");

	if (k->kind == RFL_GPU_FMA)
		return strstr(k->op, "x2") ? 2 : 1;
	for (int i = 0; i < 3; i++) {
		char digits[8];
		const size_t len = strspn(at + 1 + (i == 0), "0123456789");

		at += 1 + (i == 0);
		snprintf(digits, sizeof(digits), "%.*s", (int)len, at);
		assert_ok(rfl_num_parse_int(digits, "shape", &shape[i], NULL), NULL);
		at += len;
	}
	return (double)(shape[0] * shape[1] * shape[2]) / 32; /* threads of a warp */
}

/* The declared work of a turn is that of the instructions between label and branch. */
static void a_turn_does_what_is_counted(void **state)
{
	const struct rfl_gpu_kernel *k;
	struct rfl_buf ptx;

	(void)state;
	for (size_t i = 0; (k = rfl_gpu_kernel_at(i)); i++) {
		const char *loop;

		rfl_buf_init(&ptx, 0);
		rfl_gpu_ptx(k, &ptx);
		loop = strstr(rfl_buf_str(&ptx), "turn:");
		assert_non_null(loop);
		*strstr(loop, "bra turn") = '\0';
		if (k->bytes_per_turn > 0)
			assert_close((double)(count(loop, "ld.global.cg.v4.b32") +
					      count(loop, "st.global.v4.b32")) *
					     16 * RFL_GPU_THREADS,
				     k->bytes_per_turn, 0);
		else
			assert_close((double)count(loop, k->op) * 2 * fmas_of(k) * RFL_GPU_THREADS,
				     k->flops_per_turn, 0);
		/* every second product is subtracted */
		assert_int_equal(count(loop, "{%n0"), count(loop, "{%b0"));
		rfl_buf_fini(&ptx);
	}
}

static void names_are_unique(void **state)
{
	const struct rfl_gpu_kernel *a, *b;

	(void)state;
	for (size_t i = 0; (a = rfl_gpu_kernel_at(i)); i++)
		for (size_t j = 0; j < i && (b = rfl_gpu_kernel_at(j)); j++)
			assert_string_not_equal(a->name, b->name);
}

static void operands_are_ordinary_numbers(void **state)
{
	float f32[4096];
	double f64[4096], sum = 0;
	uint16_t f16[4096];
	uint8_t fp8[4096];

	(void)state;
	rfl_gpu_fill(RFL_GPU_F32, f32, sizeof(f32));
	rfl_gpu_fill(RFL_GPU_F64, f64, sizeof(f64));
	rfl_gpu_fill(RFL_GPU_F16, f16, sizeof(f16));
	rfl_gpu_fill(RFL_GPU_E4M3, fp8, sizeof(fp8));
	for (size_t i = 0; i < 4096; i++) {
		const float f = f32[i] < 0 ? -f32[i] : f32[i];
		const double d = f64[i] < 0 ? -f64[i] : f64[i];

		assert_true(f >= 1.0F / 16 && f < 1);
		assert_true(d >= 1.0 / 16 && d < 1);
		/* exponents of 1/16 to 1 with biases 15 and 7 */
		assert_in_range(f16[i] >> 10 & 31, 11, 14);
		assert_in_range(fp8[i] >> 3 & 15, 3, 6);
		sum += f64[i];
	}
	assert_true(sum > -100 && sum < 100); /* both signs */
}

/* Assemble a text; a warning about registers is an error. */
static const char *assemble(void *state, const char *name, const char *text, int capability)
{
	char arch[16], *said;
	const char *const source = write_file(state, "ptx", text);
	const char *const cubin = tmp_path(state, "cubin");
	const char *const argv[] = { "ptxas", "-v", "-arch", arch, source, "-o", cubin, NULL };
	bool fine;

	snprintf(arch, sizeof(arch), "sm_%d", capability);
	said = output_of(argv, &fine);
	if (!fine)
		fail_msg("%s for %s: %s", name, arch, said ? said : "no ptxas");
	if (count(said, " 0 bytes spill stores, 0 bytes spill loads") != count(text, ".entry"))
		fail_msg("%s for %s spills registers: %s", name, arch, said);
	free(said);
	return cubin;
}

static bool is_here(const char *tool)
{
	const char *const argv[] = { tool, "--version", NULL };
	bool fine;

	free(output_of(argv, &fine));
	return fine;
}

/* Each as it is given to the driver, for the oldest device. */
static void the_assembler_takes_the_loops(void **state)
{
	const struct rfl_gpu_kernel *k;
	struct rfl_buf ptx;

	if (!is_here("ptxas")) {
		print_message("skipped: no ptxas, which the CUDA toolkit has\n");
		skip();
	}
	for (size_t i = 0; (k = rfl_gpu_kernel_at(i)); i++) {
		rfl_buf_init(&ptx, 0);
		rfl_gpu_ptx(k, &ptx);
		(void)assemble(*state, k->name, rfl_buf_str(&ptx), k->min_capability);
		rfl_buf_fini(&ptx);
	}
}

/* The instructions that carry the work of a loop, and how many there are in a turn. */
static const char *machine_instruction(const struct rfl_gpu_kernel *k, size_t *n)
{
	*n = k->kind == RFL_GPU_MMA   ? (size_t)RFL_GPU_CHAINS * RFL_GPU_MMA_UNROLL
	     : k->kind == RFL_GPU_FMA ? (size_t)RFL_GPU_CHAINS * RFL_GPU_FMA_UNROLL
				      : 4;
	switch (k->kind) {
	case RFL_GPU_READ:
		return "LDG.E.128";
	case RFL_GPU_WRITE:
	case RFL_GPU_COPY:
	case RFL_GPU_TRIAD:
		return "STG.E.128";
	case RFL_GPU_FMA:
		return k->type == RFL_GPU_F64 ? "DFMA" : k->type == RFL_GPU_F32 ? "FFMA" : "HFMA2";
	default:
		return k->type == RFL_GPU_F64 ? "DMMA" : k->type == RFL_GPU_I8 ? "IMMA" : "HMMA";
	}
}

/* Look at the loop in a listing: from the first label of the kernel to the branch back to it. */
static void check_listing(const struct rfl_gpu_kernel *k, int capability, const char *listing)
{
	size_t expected, lines = 0;
	const char *const word = machine_instruction(k, &expected);
	const char *from, *to;
	char text[64], *loop;

	snprintf(text, sizeof(text), "\n.text.%s:", k->name);
	from = strstr(listing, text);
	from = from ? strstr(from, "\n.L_x_") : NULL;
	snprintf(text, sizeof(text), "`(%.*s)", from ? (int)strcspn(from + 1, ":") : 0,
		 from ? from + 1 : "");
	to = from ? strstr(from, text) : NULL;
	if (!to)
		fail_msg("%s for sm_%d: no loop", k->name, capability);
	loop = strndup(from, (size_t)(to - from));
	assert_non_null(loop);
	for (const char *at = loop; (at = strchr(at, ';')); at++)
		lines++;
	lines -= count(loop, " NOP ");
	/* without the instruction of 9.0, ptxas splits the product */
	if (strcmp(k->name, "rfl_mma_fp64_16") == 0 && capability != 90)
		expected *= 8;
	if (count(loop, word) != expected)
		fail_msg("%s for sm_%d: %zu %s instead of %zu", k->name, capability,
			 count(loop, word), word, expected);
	if (k->kind == RFL_GPU_COPY || k->kind == RFL_GPU_TRIAD)
		assert_int_equal(count(loop, "LDG.E.128"), k->kind == RFL_GPU_COPY ? 4 : 8);
	if (k->bytes_per_turn == 0) {
		if (count(loop, "LDG") || count(loop, "STG") || count(loop, "LDL"))
			fail_msg("%s for sm_%d: memory in the loop", k->name, capability);
		/* before int8 of 8.0, newer devices clear registers for each product */
		if (strcmp(k->name, "rfl_mma_int8_16") != 0 && lines > expected + 8)
			fail_msg("%s for sm_%d: %zu instructions in the loop", k->name, capability,
				 lines);
	}
	free(loop);
}

/* All for each device, in one text, because the tools are slow to start. */
static void the_loops_have_the_counted_instructions(void **state)
{
	const struct rfl_gpu_kernel *k;

	if (!is_here("ptxas") || !is_here(RFL_TEST_NVDISASM)) {
		print_message(
			"skipped: ptxas or nvdisasm is not here; CUDA toolkits have both, and "
			"'pip install nvidia-cuda-nvdisasm' the second\n");
		skip();
	}
	for (size_t c = 0; c < RFL_ARRAY_LEN(capabilities); c++) {
		const int capability = capabilities[c];
		struct rfl_buf all, one;
		const char *cubin;
		char *listing;
		bool fine;

		rfl_buf_init(&all, 0);
		rfl_buf_printf(&all, ".version 7.8\n.target sm_%d\n.address_size 64\n",
			       capability < 90 ? capability : 90);
		for (size_t i = 0; (k = rfl_gpu_kernel_at(i)); i++) {
			if (capability < k->min_capability)
				continue;
			rfl_buf_init(&one, 0);
			rfl_gpu_ptx(k, &one);
			rfl_buf_puts(&all, strstr(rfl_buf_str(&one), ".visible"));
			rfl_buf_fini(&one);
		}
		cubin = assemble(*state, "loops", rfl_buf_str(&all), capability);
		const char *const argv[] = { RFL_TEST_NVDISASM, "-c", cubin, NULL };

		listing = output_of(argv, &fine);
		if (!fine)
			fail_msg("nvdisasm: %s", listing ? listing : "not here");
		for (size_t i = 0; (k = rfl_gpu_kernel_at(i)); i++)
			if (capability >= k->min_capability)
				check_listing(k, capability, listing);
		free(listing);
		rfl_buf_fini(&all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_does_what_is_counted),
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(operands_are_ordinary_numbers),
		cmocka_unit_test_setup_teardown(the_assembler_takes_the_loops, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(the_loops_have_the_counted_instructions,
						tmpdir_make, tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
