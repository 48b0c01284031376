/*
 * fake_cudnn_run.c - executing plans of the fake cuDNN: the convolutions themselves, in double.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ieee.h"
#include "tests/fakes/fake_cudnn.h"
#include "tests/unit/ieee_unpack.h"

static long executions[FAKE_KIND_COUNT];

long fake_cudnn_executions(int kind)
{
	long n = 0;

	for (int i = 0; i < FAKE_KIND_COUNT; i++)
		n += kind < 0 || kind == i ? executions[i] : 0;
	return n;
}

void fake_count(enum fake_cudnn_kind kind)
{
	executions[kind]++;
}

void fake_executions_reset(void)
{
	memset(executions, 0, sizeof(executions));
}

int64_t fake_workspace(const struct fake_graph *conv, enum fake_cudnn_engine engine)
{
	return engine == FAKE_WORKSPACE ? 1024 + 16 * conv->n : 0;
}

/* Work in the queue of a stream: all that it needs, since the plan may be destroyed before. */
struct task {
	struct fake_graph conv;
	enum fake_cudnn_engine engine;
	void *tensors[FAKE_TENSORS], *workspace;
};

static int64_t elements(const struct fake_graph *c, int tensor)
{
	switch (tensor) {
	case FAKE_X:
		return c->n * c->in[0] * c->in[1] * c->c;
	case FAKE_W:
		return c->k * c->kernel[0] * c->kernel[1] * (c->c / c->groups);
	case FAKE_Y:
		return c->n * c->out[0] * c->out[1] * c->k;
	default:
		return c->k;
	}
}

static size_t bytes(const struct fake_graph *c, int tensor)
{
	return (size_t)elements(c, tensor) * (c->type[tensor] == RFL_CUDNN_DATA_FLOAT ? 4 : 2);
}

static int written(const struct fake_graph *c)
{
	return c->kind == FAKE_BACKWARD_DATA     ? FAKE_X
	       : c->kind == FAKE_BACKWARD_FILTER ? FAKE_W
						 : FAKE_Y;
}

/* ---- numbers ---- */

/* To nearest, with so many bits fewer than float32 has. */
static double shorten(double value, int fewer)
{
	float f = (float)value;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if ((bits & 0x7f800000) == 0x7f800000)
		return value;
	bits = (bits + (1u << (fewer - 1))) & ~((1u << fewer) - 1);
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* All numbers of the two types of 16 bits. */
static const double *table_of(int type)
{
	static double tables[2][1 << 16];
	static bool filled;

	for (uint32_t i = 0; i < 1 << 16 && !filled; i++) {
		tables[0][i] = ieee_unpack(&rfl_ieee_fp16, i);
		tables[1][i] = ieee_unpack(&rfl_ieee_bf16, i);
	}
	filled = true;
	return tables[type == RFL_CUDNN_DATA_BFLOAT16];
}

double fake_load(int type, const void *from, int64_t i)
{
	if (type == RFL_CUDNN_DATA_FLOAT)
		return ((const float *)from)[i];
	return table_of(type)[((const uint16_t *)from)[i]];
}

void fake_store(int type, void *to, int64_t i, double value)
{
	if (type == RFL_CUDNN_DATA_FLOAT)
		((float *)to)[i] = (float)value;
	else
		((uint16_t *)to)[i] = (uint16_t)rfl_ieee_pack(
			type == RFL_CUDNN_DATA_HALF ? &rfl_ieee_fp16 : &rfl_ieee_bf16, value);
}

/* ---- convolutions ---- */

/* Operands of one pixel of y, one place of the kernel, one group, which has c and k channels. */
static void multiply(enum fake_cudnn_kind kind, double *restrict x, double *restrict w,
		     double *restrict y, int64_t c, int64_t k, int64_t w_stride)
{
	for (int64_t j = 0; j < k; j++, w += w_stride)
		if (kind == FAKE_BACKWARD_DATA)
			for (int64_t i = 0; i < c; i++)
				x[i] += y[j] * w[i];
		else if (kind == FAKE_BACKWARD_FILTER)
			for (int64_t i = 0; i < c; i++)
				w[i] += y[j] * x[i];
		else
			for (int64_t i = 0; i < c; i++)
				y[j] += x[i] * w[i];
}

/* All places of the kernel at one pixel of y. */
static void convolve_at(const struct fake_graph *c, double *const t[FAKE_TENSORS], int64_t sample,
			int64_t row, int64_t column)
{
	const int64_t c_group = c->c / c->groups, k_group = c->k / c->groups;
	const int64_t w_stride = c->kernel[0] * c->kernel[1] * c_group;
	double *y = t[FAKE_Y] + ((sample * c->out[0] + row) * c->out[1] + column) * c->k;

	for (int64_t r = 0; r < c->kernel[0]; r++)
		for (int64_t s = 0; s < c->kernel[1]; s++) {
			const int64_t at_row = row * c->stride[0] - c->pad[0] + r * c->dilation[0];
			const int64_t at = column * c->stride[1] - c->pad[1] + s * c->dilation[1];
			double *x =
				t[FAKE_X] + ((sample * c->in[0] + at_row) * c->in[1] + at) * c->c;
			double *w = t[FAKE_W] + (r * c->kernel[1] + s) * c_group;

			if (at_row < 0 || at_row >= c->in[0] || at < 0 || at >= c->in[1])
				continue;
			for (int64_t g = 0; g < c->groups; g++)
				multiply(c->kind, x + g * c_group, w + g * k_group * w_stride,
					 y + g * k_group, c_group, k_group, w_stride);
		}
}

static double finish(const struct task *t, const double *bias, int64_t i, double value)
{
	static const double ERROR = 0x1p-20;
	const struct fake_graph *c = &t->conv;

	if (t->engine == FAKE_NONDETERMINISTIC && executions[c->kind] % 2)
		value *= 1 + ERROR;
	if (bias)
		value += bias[i % c->k];
	if (c->kind == FAKE_FORWARD_BIAS_RELU || c->kind == FAKE_FORWARD_RELU)
		return value > 0 ? value : 0;
	return value;
}

static void compute(const struct task *t)
{
	const struct fake_graph *c = &t->conv;
	const bool wide = c->type[FAKE_X] == RFL_CUDNN_DATA_FLOAT;
	const int out = written(c);
	double *values[FAKE_TENSORS] = { NULL };

	for (int i = 0; i < c->ntensors; i++) {
		const int64_t n = elements(c, i);

		values[i] = calloc((size_t)n, sizeof(double));
		if (!values[i])
			abort();
		for (int64_t k = 0; i != out && k < n; k++) {
			double v = fake_load(c->type[i], t->tensors[i], k);

			values[i][k] = t->engine == FAKE_REDUCED && i != FAKE_B
					       ? shorten(v, wide ? 13 : 18)
					       : v;
		}
	}
	for (int64_t sample = 0; sample < c->n; sample++)
		for (int64_t row = 0; row < c->out[0]; row++)
			for (int64_t column = 0; column < c->out[1]; column++)
				convolve_at(c, values, sample, row, column);
	for (int64_t i = 0, n = elements(c, out); i < n; i++)
		fake_store(c->type[out], t->tensors[out], i,
			   finish(t, values[FAKE_B], i, values[out][i]));
	for (int i = 0; i < c->ntensors; i++)
		free(values[i]);
}

/* ---- execution ---- */

struct fake_driver fake_driver;

static bool find(const char *name, void *slot)
{
	void *address = fake_script_driver(name);

	memcpy(slot, &address, sizeof(address));
	return address;
}

bool fake_has_driver(void)
{
	return find("fake_cuda_owns", &fake_driver.owns) &&
	       find("fake_cuda_spend", &fake_driver.spend) &&
	       find("fake_cuda_submit", &fake_driver.submit);
}

bool fake_owns(const void *memory, size_t size)
{
	return fake_driver.owns((uint64_t)(uintptr_t)memory, size);
}

bool fake_overlap(const void *a, size_t a_size, const void *b, size_t b_size)
{
	const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x < y + b_size && y < x + a_size;
}

/* What is wrong with the memory; NULL: nothing. */
static const char *wrong_memory(const struct task *t)
{
	const struct fake_graph *c = &t->conv;
	const size_t workspace = (size_t)fake_workspace(c, t->engine);
	const int out = written(c);

	for (int i = 0; i < c->ntensors; i++) {
		const size_t size = bytes(c, i);

		if (!fake_owns(t->tensors[i], size))
			return "a tensor is not in memory of the device";
		if (i != out && fake_overlap(t->tensors[i], size, t->tensors[out], bytes(c, out)))
			return "the result overlaps an operand";
		if (workspace && fake_overlap(t->tensors[i], size, t->workspace, workspace))
			return "the workspace overlaps a tensor";
	}
	return workspace && !fake_owns(t->workspace, workspace)
		       ? "no workspace, or too little of it"
		       : NULL;
}

static void run(const void *argument)
{
	static const double speed[FAKE_ENGINE_COUNT] = { 1, 0.8, 0.6, 0.1 };
	static const char *const names[FAKE_KIND_COUNT] = {
		"cudnn_forward",      "cudnn_forward_bias",  "cudnn_forward_bias_relu",
		"cudnn_forward_relu", "cudnn_backward_data", "cudnn_backward_filter"
	};
	const struct task *t = argument;
	const struct fake_graph *c = &t->conv;
	const char *wrong = wrong_memory(t);

	if (wrong) {
		(void)fake_refuse(FAKE_BAD_PARAM, "when a plan was executed: %s", wrong);
		return;
	}
	fake_driver.spend(names[c->kind],
			  2.0 * (double)elements(c, FAKE_Y) * (double)elements(c, FAKE_W) /
				  (double)c->k / speed[t->engine],
			  1e11);
	if (t->engine == FAKE_WORKSPACE)
		memset(t->workspace, 0xff, (size_t)fake_workspace(c, t->engine));
	compute(t);
	executions[c->kind]++;
}

int fake_execute(struct rfl_cudnn_handle *handle, const struct fake_descriptor *plan,
		 const struct fake_descriptor *pack)
{
	int64_t n;
	const int64_t *ids = fake_values(pack, RFL_CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n);
	void *const *pointers = fake_values(pack, RFL_CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, NULL);
	void *const *workspace = fake_values(pack, RFL_CUDNN_ATTR_VARIANT_PACK_WORKSPACE, NULL);
	struct task t = { .conv = plan->conv,
			  .engine = plan->engine,
			  .workspace = workspace ? *workspace : NULL };
	const char *wrong;

	if (t.conv.kind >= FAKE_NORM_FORWARD)
		return fake_execute_norm(handle, plan, pack);
	if (plan->conv.capability != handle->capability)
		return fake_refuse(FAKE_NOT_SUPPORTED, "a plan for another GPU is executed");
	if (n != t.conv.ntensors)
		return fake_refuse(FAKE_BAD_PARAM, "%lld tensors for a plan with %d", (long long)n,
				   t.conv.ntensors);
	for (int i = 0; i < t.conv.ntensors; i++) {
		for (int64_t k = 0; k < n; k++)
			if (ids[k] == t.conv.id[i])
				t.tensors[i] = pointers[k];
		if (!t.tensors[i])
			return fake_refuse(FAKE_BAD_PARAM, "no pointer for tensor %lld",
					   (long long)t.conv.id[i]);
		if ((uintptr_t)t.tensors[i] % 16)
			return fake_refuse(FAKE_MISALIGNED,
					   "tensor %lld is not aligned to 16 bytes",
					   (long long)t.conv.id[i]);
	}
	wrong = fake_has_driver() ? wrong_memory(&t) : "there is no driver";
	if (wrong)
		return fake_refuse(FAKE_BAD_PARAM, "%s", wrong);
	return fake_driver.submit(handle->stream, run, &t, sizeof(t)) ? FAKE_DRIVER : 0;
}
