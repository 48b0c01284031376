/*
 * test_peaks_gpu_ptx.c - runs the PTX of the loops on the CPU, thread by thread, with an
 * interpreter of the instructions that they use: which bytes are read and written, and results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/num.h"
#include "peaks/gpu_kernels.h"
#include "tests/unit/rfl_test.h"

enum { ARRAYS = 3, TOKENS = 12, LINES = 512, REGISTERS = 128 };
#define BASE(array) ((uint64_t)((array) + 1) << 32)

static struct {
	const char *lines[LINES];
	size_t n, turn; /* number of lines; index of the label */
	uint8_t *arrays[ARRAYS];
	size_t size;
	int *touched[ARRAYS]; /* accesses of each vector of 16 bytes */
	uint64_t parameters[6];
	unsigned thread, block, blocks;
	struct {
		char name[16];
		uint64_t value;
	} registers[REGISTERS];
} gpu;

static uint64_t *reg(const char *name)
{
	size_t i = 0;

	while (gpu.registers[i].name[0] && strcmp(gpu.registers[i].name, name) != 0)
		i++;
	assert_in_range(i, 0, REGISTERS - 2);
	snprintf(gpu.registers[i].name, sizeof(gpu.registers[i].name), "%s", name);
	return &gpu.registers[i].value;
}

/* The value of a register, a special register or a number. */
static uint64_t value(const char *token)
{
	int64_t number;

	if (strcmp(token, "%tid.x") == 0)
		return gpu.thread;
	if (strcmp(token, "%ctaid.x") == 0)
		return gpu.block;
	if (strcmp(token, "%nctaid.x") == 0)
		return gpu.blocks;
	if (token[0] == '%')
		return *reg(token);
	assert_ok(rfl_num_parse_int(token, "number", &number, NULL), NULL);
	return (uint64_t)number;
}

static uint64_t parameter(const char *name)
{
	static const char *const names[] = { "to", "from", "other", "size", "turns", "word" };
	size_t i = 0;

	while (strcmp(names[i], name) != 0)
		i++;
	return gpu.parameters[i];
}

static uint8_t *memory(uint64_t address, size_t bytes)
{
	const size_t array = (size_t)(address >> 32) - 1, at = (size_t)(address & 0xffffffff);

	assert_in_range(array, 0, ARRAYS - 1);
	assert_true(at + bytes <= gpu.size);
	gpu.touched[array][at / 16] += bytes == 16;
	return gpu.arrays[array] + at;
}

static float as_float(uint64_t bits)
{
	const uint32_t word = (uint32_t)bits;
	float f;

	memcpy(&f, &word, sizeof(f));
	return f;
}

static uint64_t as_bits(float f)
{
	uint32_t word;

	memcpy(&word, &f, sizeof(word));
	return word;
}

static bool is(const char *op, const char *prefix)
{
	return strncmp(op, prefix, strlen(prefix)) == 0;
}

static void access(char (*t)[32], size_t n, bool store, size_t width)
{
	const size_t vector = strstr(t[0], ".v4") ? 4 : 1;
	size_t address = store ? 1 : 1 + vector, at = store ? 2 : 1;
	uint64_t where = value(t[address]);
	uint8_t *bytes;

	if (address + 1 < n && t[address + 1][0] != '%') {
		where += value(t[address + 1]);
		at += store;
	}
	bytes = memory(where, vector * width);
	for (size_t i = 0; i < vector; i++) {
		uint64_t word = store ? value(t[at + i]) : 0;

		if (store) {
			memcpy(bytes + i * width, &word, width);
		} else {
			memcpy(&word, bytes + i * width, width);
			*reg(t[at + i]) = word;
		}
	}
}

/* Run an instruction; the index of the next line. */
static size_t step(char (*t)[32], size_t n, size_t line)
{
	const char *op = t[0];
	const uint64_t mask = strstr(op, "32") && !is(op, "mul.wide") && !is(op, "mad.wide")
				      ? 0xffffffff
				      : UINT64_MAX;

	if (is(op, "bra"))
		return gpu.turn;
	if (is(op, "ret"))
		return LINES;
	if (is(op, "ld.param"))
		*reg(t[1]) = parameter(t[2]);
	else if (is(op, "ld.global") || is(op, "st.global"))
		access(t, n, is(op, "st"), strstr(op, "b64") ? 8 : 4);
	else if (is(op, "mov"))
		*reg(t[1]) = value(t[2]);
	else if (is(op, "mul.wide"))
		*reg(t[1]) = (uint64_t)(uint32_t)value(t[2]) * (uint32_t)value(t[3]);
	else if (is(op, "mad.wide"))
		*reg(t[1]) = (uint64_t)(uint32_t)value(t[2]) * (uint32_t)value(t[3]) + value(t[4]);
	else if (is(op, "add"))
		*reg(t[1]) = (value(t[2]) + value(t[3])) & mask;
	else if (is(op, "sub"))
		*reg(t[1]) = (value(t[2]) - value(t[3])) & mask;
	else if (is(op, "rem"))
		*reg(t[1]) = value(t[2]) % value(t[3]);
	else if (is(op, "xor"))
		*reg(t[1]) = (value(t[2]) ^ value(t[3])) & mask;
	else if (is(op, "setp.ge"))
		*reg(t[1]) = value(t[2]) >= value(t[3]);
	else if (is(op, "setp.ne"))
		*reg(t[1]) = value(t[2]) != value(t[3]);
	else if (is(op, "setp.eq"))
		*reg(t[1]) = value(t[2]) == value(t[3]);
	else if (is(op, "fma.rn.f32"))
		*reg(t[1]) = as_bits(as_float(value(t[2])) * as_float(value(t[3])) +
				     as_float(value(t[4])));
	else
		fail_msg("%s: not an instruction of the loops", op);
	return line + 1;
}

static void run_thread(unsigned block, unsigned thread)
{
	memset(gpu.registers, 0, sizeof(gpu.registers));
	gpu.block = block;
	gpu.thread = thread;
	for (size_t line = 0; line < gpu.n;) {
		char t[TOKENS][32] = { { 0 } };
		const char *at = gpu.lines[line];
		size_t n = 0;

		for (size_t len; *at && *at != '\n' && n < TOKENS; at += len) {
			at += strspn(at, " \t,;{}[]+");
			len = strcspn(at, " \t,;{}[]+\n");
			if (len > 0)
				snprintf(t[n++], sizeof(t[0]), "%.*s", (int)len, at);
		}
		if (n > 0 && t[0][0] == '@') { /* @%p instruction */
			if (!*reg("%p")) {
				line++;
				continue;
			}
			line = step(t + 1, n - 1, line);
		} else if (n == 0 || t[0][0] == '.' || strchr(t[0], ':')) {
			line++;
		} else {
			line = step(t, n, line);
		}
	}
}

/* Run a loop on arrays of `size` bytes. */
static void run(const struct rfl_gpu_kernel *k, size_t size, unsigned blocks, uint64_t turns,
		uint32_t word)
{
	struct rfl_buf ptx;
	const char *at;

	rfl_buf_init(&ptx, 0);
	rfl_gpu_ptx(k, &ptx);
	gpu.n = 0;
	at = strstr(rfl_buf_str(&ptx), "{\n");
	for (; (at = strchr(at, '\n')) && gpu.n < LINES; at++) {
		gpu.lines[gpu.n] = at + 1;
		if (strncmp(at + 1, "turn:", 5) == 0)
			gpu.turn = gpu.n;
		gpu.n++;
	}
	gpu.blocks = blocks;
	assert_true(size <= gpu.size);
	for (int i = 0; i < ARRAYS; i++) {
		gpu.parameters[i] = BASE(i);
		memset(gpu.touched[i], 0, size / 16 * sizeof(int));
	}
	gpu.parameters[3] = size;
	gpu.parameters[4] = turns;
	gpu.parameters[5] = word;
	for (unsigned b = 0; b < blocks; b++)
		for (unsigned i = 0; i < RFL_GPU_THREADS; i++)
			run_thread(b, i);
	rfl_buf_fini(&ptx);
}

static void allocate(size_t size)
{
	gpu.size = size;
	for (int i = 0; i < ARRAYS; i++) {
		gpu.arrays[i] = malloc(size);
		gpu.touched[i] = calloc(size / 16, sizeof(int));
		assert_true(gpu.arrays[i] && gpu.touched[i]);
		rfl_gpu_fill(RFL_GPU_F32, gpu.arrays[i], size);
	}
	memset(gpu.arrays[0], 0, size);
	gpu.arrays[1][0] ^= 1; /* from and other differ */
}

static void release(void)
{
	for (int i = 0; i < ARRAYS; i++) {
		free(gpu.arrays[i]);
		free(gpu.touched[i]);
	}
}

/* Chunk (b + t x blocks) modulo their number belongs to block b in turn t. */
static void each_vector_is_moved_as_often_as_counted(const struct rfl_gpu_kernel *k, size_t size,
						     unsigned blocks, unsigned turns)
{
	const size_t chunks = size / RFL_GPU_CHUNK, vectors = RFL_GPU_CHUNK / 16;
	const bool used[ARRAYS] = { k->kind != RFL_GPU_READ, k->kind != RFL_GPU_WRITE,
				    k->kind == RFL_GPU_TRIAD };
	double bytes = 0;

	for (int a = 0; a < ARRAYS; a++)
		for (size_t i = 0; i < size / 16; i++) {
			int expected = 0;

			for (unsigned n = 0; used[a] && n < blocks * turns; n++)
				expected += n % chunks == i / vectors;
			if (gpu.touched[a][i] != expected)
				fail_msg("%s: vector %zu of array %d: %d times instead of %d",
					 k->name, i, a, gpu.touched[a][i], expected);
			bytes += 16.0 * gpu.touched[a][i];
		}
	assert_close(bytes, k->bytes_per_turn * blocks * turns, 0);
}

static void memory_loops_cover_their_arrays(void **state)
{
	static const struct {
		size_t chunks;
		unsigned blocks, turns;
	} cases[] = { { 1, 1, 1 }, { 1, 2, 2 }, { 5, 2, 3 }, { 4, 4, 1 }, { 3, 5, 2 } };
	const struct rfl_gpu_kernel *k;

	(void)state;
	for (size_t i = 0; (k = rfl_gpu_kernel_at(i)) && k->bytes_per_turn > 0; i++)
		for (size_t c = 0; c < RFL_ARRAY_LEN(cases); c++) {
			const size_t size = cases[c].chunks * RFL_GPU_CHUNK;

			allocate(size);
			run(k, size, cases[c].blocks, cases[c].turns, 0x3f000000);
			each_vector_is_moved_as_often_as_counted(k, size, cases[c].blocks,
								 cases[c].turns);
			for (size_t w = 0; k->kind != RFL_GPU_READ && w < size; w += 4) {
				float to, from, other;

				memcpy(&to, gpu.arrays[0] + w, 4);
				memcpy(&from, gpu.arrays[1] + w, 4);
				memcpy(&other, gpu.arrays[2] + w, 4);
				assert_true(to == (k->kind == RFL_GPU_WRITE ? 0.5F
						   : k->kind == RFL_GPU_COPY
							   ? from
							   : from + 0.5F * other));
			}
			release();
		}
}

/* Only the value that a thread has computed makes it store: the XOR of all words that it reads. */
static void a_read_reaches_its_store(void **state)
{
	const struct rfl_gpu_kernel *k = rfl_gpu_kernel_at(0);
	uint32_t sum = 0, word, stored;

	(void)state;
	assert_int_equal(k->kind, RFL_GPU_READ);
	allocate(RFL_GPU_CHUNK);
	for (size_t vector = 0; vector < 4; vector++) /* of thread 3 */
		for (size_t i = 0; i < 4; i++) {
			memcpy(&word, gpu.arrays[1] + vector * RFL_GPU_CHUNK / 4 + 3 * 16 + 4 * i,
			       4);
			sum ^= word;
		}
	run(k, RFL_GPU_CHUNK, 1, 1, sum);
	/* a thread stores where its part of `to` begins */
	memcpy(&stored, gpu.arrays[0] + 3 * 16, sizeof(stored));
	assert_int_equal(stored, sum);
	memset(gpu.arrays[0], 0, RFL_GPU_CHUNK);
	run(k, RFL_GPU_CHUNK, 1, 1, sum + 1);
	memcpy(&stored, gpu.arrays[0] + 3 * 16, sizeof(stored));
	assert_int_equal(stored, 0);
	release();
}

/* All chains are loaded from different operands, and all reach the store: x becomes 1 - x in each
 * of 16 steps of a turn, so that a turn changes nothing but by rounding. */
static void chains_reach_their_store(void **state)
{
	const struct rfl_gpu_kernel *k = NULL;
	uint32_t sum = 0, word, stored;

	(void)state;
	for (size_t i = 0; !k || strcmp(k->key, "fp32.vector") != 0; i++)
		k = rfl_gpu_kernel_at(i);
	allocate(RFL_GPU_CHUNK);
	memcpy(gpu.arrays[2], k->words, sizeof(k->words));
	for (size_t chain = 0; chain < RFL_GPU_CHAINS; chain++) { /* of thread 7 */
		float x;

		memcpy(&x, gpu.arrays[1] + (7 * RFL_GPU_CHAINS + chain) * 4, 4);
		for (int i = 0; i < 3 * RFL_GPU_FMA_UNROLL; i++)
			x = x * -1.0F + 1.0F;
		memcpy(&word, &x, 4);
		sum ^= word;
	}
	run(k, RFL_GPU_CHUNK, 1, 3, sum);
	memcpy(&stored, gpu.arrays[0], sizeof(stored));
	assert_int_equal(stored, sum);
	release();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_loops_cover_their_arrays),
		cmocka_unit_test(a_read_reaches_its_store),
		cmocka_unit_test(chains_reach_their_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
