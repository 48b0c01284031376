/*
 * fake_cudnn_norm.c - batch norm in training in the fake cuDNN, in double: forward with a second
 * operand, ReLU and its mask, backward with a sum and a mask before it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakes/fake_cudnn.h"

#define NAME(attribute) RFL_CUDNN_ATTR_##attribute

/* ---- graphs ---- */

/* The tensors that the operations themselves name. */
static const struct {
	int operation, name;
	enum fake_norm_tensor tensor;
} named[] = {
#define FORWARD(name, tensor)                                                     \
	{                                                                         \
		RFL_CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,              \
			NAME(OPERATION_NORM_FWD_##name##DESC), FAKE_NORM_##tensor \
	}
#define BACKWARD(name, tensor)                                                    \
	{                                                                         \
		RFL_CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,             \
			NAME(OPERATION_NORM_BWD_##name##DESC), FAKE_NORM_##tensor \
	}
	FORWARD(X, X),
	FORWARD(MEAN_, MEAN),
	FORWARD(INV_VARIANCE_, INVERSE),
	FORWARD(SCALE_, GAMMA),
	FORWARD(BIAS_, BETA),
	FORWARD(EPSILON_, EPS),
	FORWARD(EXP_AVG_FACTOR_, MOMENTUM),
	FORWARD(INPUT_RUNNING_MEAN_, RUNNING_MEAN),
	FORWARD(INPUT_RUNNING_VAR_, RUNNING_VARIANCE),
	FORWARD(OUTPUT_RUNNING_MEAN_, NEW_MEAN),
	FORWARD(OUTPUT_RUNNING_VAR_, NEW_VARIANCE),
	FORWARD(Y, Y),
	BACKWARD(X, X),
	BACKWARD(MEAN_, MEAN),
	BACKWARD(INV_VARIANCE_, INVERSE),
	BACKWARD(DY, G),
	BACKWARD(SCALE_, GAMMA),
	BACKWARD(DSCALE_, DGAMMA),
	BACKWARD(DBIAS_, DBETA),
	BACKWARD(DX, DX),
};

static int type_of(const struct fake_descriptor *tensor)
{
	return fake_enum(tensor, NAME(TENSOR_DATA_TYPE));
}

static bool is_scalar(const struct fake_descriptor *tensor)
{
	const bool *by_value = fake_values(tensor, NAME(TENSOR_IS_BY_VALUE), NULL);
	const int64_t *dims = fake_dims(tensor);

	return by_value && *by_value && dims[0] * dims[1] * dims[2] * dims[3] == 1 &&
	       type_of(tensor) == RFL_CUDNN_DATA_FLOAT;
}

static bool is_channels(const struct fake_descriptor *tensor, int64_t channels)
{
	const int64_t *dims = fake_dims(tensor);

	return dims[0] == 1 && dims[1] == channels && dims[2] == 1 && dims[3] == 1 &&
	       type_of(tensor) == RFL_CUDNN_DATA_FLOAT && !fake_is_virtual(tensor);
}

static void put(struct fake_graph *g, enum fake_norm_tensor which,
		const struct fake_descriptor *tensor)
{
	g->norm.has[which] = true;
	g->norm.id[which] = fake_int(tensor, NAME(TENSOR_UNIQUE_ID));
}

int fake_finish_norm(struct fake_descriptor *d)
{
	const bool backward = d->type == RFL_CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
	const struct fake_descriptor *x = fake_ref(d, backward ? NAME(OPERATION_NORM_BWD_XDESC)
							       : NAME(OPERATION_NORM_FWD_XDESC));
	const int64_t *dims = fake_dims(x);
	struct fake_graph g = { .kind = backward ? FAKE_NORM_BACKWARD : FAKE_NORM_FORWARD,
				.type = { type_of(x) },
				.n = dims[0],
				.c = dims[1],
				.in = { dims[2], dims[3] } };

	if (fake_enum(d, backward ? NAME(OPERATION_NORM_BWD_MODE)
				  : NAME(OPERATION_NORM_FWD_MODE)) != RFL_CUDNN_BATCH_NORM ||
	    (!backward &&
	     fake_enum(d, NAME(OPERATION_NORM_FWD_PHASE)) != RFL_CUDNN_NORM_FWD_TRAINING))
		return fake_refuse(FAKE_BAD_PARAM, "a norm that is not a batch norm in training");
	for (size_t i = 0; i < RFL_ARRAY_LEN(named); i++) {
		const struct fake_descriptor *t;
		bool fits;

		if (named[i].operation != d->type)
			continue;
		t = fake_ref(d, named[i].name);
		fits = named[i].tensor < FAKE_NORM_MASK
			       ? memcmp(fake_dims(t), dims, 4 * sizeof(*dims)) == 0
		       : named[i].tensor >= FAKE_NORM_EPS ? is_scalar(t)
							  : is_channels(t, dims[1]);
		if (!fits)
			return fake_refuse(FAKE_BAD_PARAM, "attribute %d of a norm: a wrong tensor",
					   named[i].name);
		put(&g, named[i].tensor, t);
	}
	d->conv = g;
	return 0;
}

/* The next operation of a graph, if it is a pointwise one of this mode that begins with x (NULL:
 * any); its second operand and its result. */
static bool next(const struct fake_descriptor *graph, int64_t *at, int mode,
		 const struct fake_descriptor *x, const struct fake_descriptor *got[3])
{
	int64_t n;
	struct fake_descriptor *const *ops = fake_values(graph, NAME(OPERATIONGRAPH_OPS), &n);
	const struct fake_descriptor *op = *at < n ? ops[*at] : NULL;

	if (!op || op->type != RFL_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
	    fake_enum(fake_ref(op, NAME(OPERATION_POINTWISE_PW_DESCRIPTOR)),
		      NAME(POINTWISE_MODE)) != mode)
		return false;
	got[0] = fake_ref(op, NAME(OPERATION_POINTWISE_XDESC));
	got[1] = fake_ref(op, NAME(OPERATION_POINTWISE_BDESC));
	got[2] = fake_ref(op, NAME(OPERATION_POINTWISE_YDESC));
	if (x && got[0] != x)
		return false;
	++*at;
	return true;
}

/* A tensor between operations; or, at the end of a graph, in memory and of the type of x. */
static bool is_result(const struct fake_graph *g, const struct fake_descriptor *t, bool last)
{
	return last ? !fake_is_virtual(t) && type_of(t) == g->type[FAKE_X]
		    : fake_is_virtual(t) && type_of(t) == RFL_CUDNN_DATA_FLOAT;
}

/* Is it an operand in memory of the type? */
static bool is_operand(const struct fake_descriptor *t, int type)
{
	return !fake_is_virtual(t) && type_of(t) == type;
}

static bool is_forward(const struct fake_descriptor *d, const struct fake_descriptor *op,
		       struct fake_graph *g, int64_t *at)
{
	const struct fake_descriptor *y = fake_ref(op, NAME(OPERATION_NORM_FWD_YDESC)), *got[3];

	*at = 1;
	if (next(d, at, RFL_CUDNN_POINTWISE_ADD, y, got)) {
		if (!is_result(g, y, false) || !is_operand(got[1], g->type[FAKE_X]))
			return false;
		put(g, FAKE_NORM_OTHER, got[1]);
		y = got[2];
	}
	if (next(d, at, RFL_CUDNN_POINTWISE_RELU_FWD, y, got)) {
		if (!is_result(g, y, false))
			return false;
		y = got[2];
		if (!next(d, at, RFL_CUDNN_POINTWISE_CMP_GT, y, got) || !is_scalar(got[1]) ||
		    !is_operand(got[2], RFL_CUDNN_DATA_BOOLEAN))
			return false;
		put(g, FAKE_NORM_ZERO, got[1]);
		put(g, FAKE_NORM_MASK, got[2]);
	} else if (g->norm.has[FAKE_NORM_OTHER])
		return false; /* cuDNN has none without an activation */
	put(g, FAKE_NORM_Y, y);
	return is_result(g, y, true);
}

static bool is_backward(const struct fake_descriptor *d, const struct fake_descriptor *op,
			struct fake_graph *g, int64_t *at)
{
	const struct fake_descriptor *dy = fake_ref(op, NAME(OPERATION_NORM_BWD_DYDESC));
	const struct fake_descriptor *from = NULL, *got[3];

	*at = 0;
	if (next(d, at, RFL_CUDNN_POINTWISE_ADD, NULL, got)) {
		if (!is_operand(got[0], g->type[FAKE_X]) || !is_operand(got[1], g->type[FAKE_X]) ||
		    !is_result(g, got[2], false))
			return false;
		put(g, FAKE_NORM_DY, got[0]);
		put(g, FAKE_NORM_DY2, got[1]);
		from = got[2];
	}
	if (next(d, at, RFL_CUDNN_POINTWISE_MUL, from, got)) {
		if (!is_operand(got[1], RFL_CUDNN_DATA_BOOLEAN) || got[2] != dy ||
		    (!from && !is_operand(got[0], g->type[FAKE_X])))
			return false;
		put(g, FAKE_NORM_MASK, got[1]);
		if (!from)
			put(g, FAKE_NORM_DY, got[0]);
	} else if (from)
		return false; /* as above */
	else
		put(g, FAKE_NORM_DY, dy);
	g->norm.has[FAKE_NORM_G] = g->norm.has[FAKE_NORM_MASK] && !fake_is_virtual(dy);
	++*at;
	return type_of(dy) == g->type[FAKE_X];
}

int fake_finish_norm_graph(struct fake_descriptor *d)
{
	int64_t n, at = 0;
	struct fake_descriptor *const *ops = fake_values(d, NAME(OPERATIONGRAPH_OPS), &n);
	struct rfl_cudnn_handle *const *handle = fake_values(d, NAME(OPERATIONGRAPH_HANDLE), NULL);
	const bool backward = ops[0]->conv.kind != FAKE_NORM_FORWARD;
	const struct fake_descriptor *op = backward ? ops[n - 1] : ops[0];
	struct fake_graph g = op->conv;

	if (g.kind != (backward ? FAKE_NORM_BACKWARD : FAKE_NORM_FORWARD) ||
	    !(backward ? is_backward : is_forward)(d, op, &g, &at) || at != n)
		return FAKE_PATTERN; /* without a complaint: cuDNN refuses it, too */
	for (int i = 0; i < FAKE_NORM_TENSORS; i++)
		for (int k = 0; k < i; k++)
			if (g.norm.has[i] && g.norm.has[k] && g.norm.id[i] == g.norm.id[k])
				return fake_refuse(FAKE_DUPLICATED, "two tensors with the id %lld",
						   (long long)g.norm.id[i]);
	if (handle)
		g.capability = (*handle)->capability;
	d->conv = g;
	return 0;
}

/* ---- execution ---- */

struct task {
	struct fake_graph graph;
	void *at[FAKE_NORM_TENSORS]; /* NULL: the graph does not have it */
	float eps, momentum;
	void *workspace;
};

static int64_t rows_of(const struct fake_graph *g)
{
	return g->n * g->in[0] * g->in[1];
}

static size_t bytes(const struct fake_graph *g, int tensor)
{
	const size_t n = (size_t)(rows_of(g) * g->c);

	if (tensor == FAKE_NORM_MASK)
		return (n + 7) / 8;
	if (tensor < FAKE_NORM_MASK)
		return n * (g->type[FAKE_X] == RFL_CUDNN_DATA_FLOAT ? 4 : 2);
	return (size_t)g->c * 4;
}

static bool is_written(const struct fake_graph *g, int tensor)
{
	static const bool forward[FAKE_NORM_EPS] = {
		[FAKE_NORM_Y] = true,        [FAKE_NORM_MASK] = true,
		[FAKE_NORM_MEAN] = true,     [FAKE_NORM_INVERSE] = true,
		[FAKE_NORM_NEW_MEAN] = true, [FAKE_NORM_NEW_VARIANCE] = true,
	};
	static const bool backward[FAKE_NORM_EPS] = {
		[FAKE_NORM_G] = true,
		[FAKE_NORM_DX] = true,
		[FAKE_NORM_DGAMMA] = true,
		[FAKE_NORM_DBETA] = true,
	};

	return (g->kind == FAKE_NORM_FORWARD ? forward : backward)[tensor];
}

/* Running statistics may be updated in place. */
static bool may_be_same(int a, int b)
{
	return a - b == FAKE_NORM_NEW_MEAN - FAKE_NORM_RUNNING_MEAN &&
	       b >= FAKE_NORM_RUNNING_MEAN && a <= FAKE_NORM_NEW_VARIANCE;
}

static const char *wrong_memory(const struct task *t)
{
	const size_t workspace = (size_t)fake_workspace(&t->graph, FAKE_WORKSPACE);

	for (int i = 0; i < FAKE_NORM_EPS; i++) {
		if (!t->at[i])
			continue;
		if (!fake_owns(t->at[i], bytes(&t->graph, i)))
			return "a tensor is not in memory of the device";
		if (fake_overlap(t->at[i], bytes(&t->graph, i), t->workspace, workspace))
			return "the workspace overlaps a tensor";
		for (int k = 0; k < i; k++)
			if (t->at[k] && (is_written(&t->graph, i) || is_written(&t->graph, k)) &&
			    !(may_be_same(i, k) && t->at[i] == t->at[k]) &&
			    fake_overlap(t->at[i], bytes(&t->graph, i), t->at[k],
					 bytes(&t->graph, k)))
				return "a result overlaps another tensor";
	}
	return fake_owns(t->workspace, workspace) ? NULL : "no workspace, or too little of it";
}

static double get(const struct task *t, int tensor, int64_t i)
{
	return t->at[tensor] ? fake_load(t->graph.type[FAKE_X], t->at[tensor], i) : 0;
}

static void set(const struct task *t, int tensor, int64_t i, double value)
{
	if (t->at[tensor])
		fake_store(t->graph.type[FAKE_X], t->at[tensor], i, value);
}

static float *channel(const struct task *t, int tensor, int64_t c)
{
	return (float *)t->at[tensor] + c;
}

static void put_bit(void *mask, int64_t i, bool value)
{
	uint8_t *byte = (uint8_t *)mask + i / 8;

	*byte = (uint8_t)((*byte & ~(1u << i % 8)) | (unsigned)value << i % 8);
}

static bool get_bit(const void *mask, int64_t i)
{
	return !mask || (((const uint8_t *)mask)[i / 8] >> i % 8 & 1);
}

static void run_forward(const struct task *t, int64_t c)
{
	const int64_t rows = rows_of(&t->graph), columns = t->graph.c;
	const double momentum = (double)t->momentum;
	double mean = 0, variance = 0, inverse;

	for (int64_t r = 0; r < rows; r++)
		mean += get(t, FAKE_NORM_X, r * columns + c) / (double)rows;
	for (int64_t r = 0; r < rows; r++) {
		const double d = get(t, FAKE_NORM_X, r * columns + c) - mean;

		variance += d * d / (double)rows;
	}
	inverse = 1 / sqrt(variance + (double)t->eps);
	*channel(t, FAKE_NORM_MEAN, c) = (float)mean;
	*channel(t, FAKE_NORM_INVERSE, c) = (float)inverse;
	*channel(t, FAKE_NORM_NEW_MEAN, c) =
		(float)((1 - momentum) * (double)*channel(t, FAKE_NORM_RUNNING_MEAN, c) +
			momentum * mean);
	*channel(t, FAKE_NORM_NEW_VARIANCE, c) =
		(float)((1 - momentum) * (double)*channel(t, FAKE_NORM_RUNNING_VARIANCE, c) +
			momentum * variance * (double)rows / (double)(rows > 1 ? rows - 1 : 1));
	for (int64_t r = 0; r < rows; r++) {
		const int64_t i = r * columns + c;
		double y = (get(t, FAKE_NORM_X, i) - mean) * inverse *
				   (double)*channel(t, FAKE_NORM_GAMMA, c) +
			   (double)*channel(t, FAKE_NORM_BETA, c) + get(t, FAKE_NORM_OTHER, i);

		if (t->at[FAKE_NORM_MASK] && !(y > 0))
			y = 0;
		set(t, FAKE_NORM_Y, i, y);
		if (t->at[FAKE_NORM_MASK])
			put_bit(t->at[FAKE_NORM_MASK], i, get(t, FAKE_NORM_Y, i) > 0);
	}
}

static void run_backward(const struct task *t, int64_t c)
{
	const int64_t rows = rows_of(&t->graph), columns = t->graph.c;
	const double mean = (double)*channel(t, FAKE_NORM_MEAN, c);
	const double inverse = (double)*channel(t, FAKE_NORM_INVERSE, c);
	const double gamma = (double)*channel(t, FAKE_NORM_GAMMA, c);
	double dgamma = 0, dbeta = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int64_t r = 0; r < rows; r++) {
			const int64_t i = r * columns + c;
			const double x = (get(t, FAKE_NORM_X, i) - mean) * inverse;
			const double g =
				get_bit(t->at[FAKE_NORM_MASK], i)
					? get(t, FAKE_NORM_DY, i) + get(t, FAKE_NORM_DY2, i)
					: 0;

			if (pass == 0) {
				dgamma += g * x;
				dbeta += g;
				continue;
			}
			set(t, FAKE_NORM_G, i, g);
			set(t, FAKE_NORM_DX, i,
			    gamma * inverse *
				    (g - dbeta / (double)rows - x * dgamma / (double)rows));
		}
	*channel(t, FAKE_NORM_DGAMMA, c) = (float)dgamma;
	*channel(t, FAKE_NORM_DBETA, c) = (float)dbeta;
}

static void run(const void *argument)
{
	const struct task *t = argument;
	const struct fake_graph *g = &t->graph;
	const bool forward = g->kind == FAKE_NORM_FORWARD;
	const char *wrong = wrong_memory(t);

	if (wrong) {
		(void)fake_refuse(FAKE_BAD_PARAM, "when a norm was executed: %s", wrong);
		return;
	}
	fake_driver.spend(forward ? "cudnn_norm_forward" : "cudnn_norm_backward",
			  (double)(rows_of(g) * g->c), 1e11);
	memset(t->workspace, 0xff, (size_t)fake_workspace(g, FAKE_WORKSPACE));
	for (int64_t c = 0; c < g->c; c++)
		(forward ? run_forward : run_backward)(t, c);
	fake_count(g->kind);
}

int fake_execute_norm(struct rfl_cudnn_handle *handle, const struct fake_descriptor *plan,
		      const struct fake_descriptor *pack)
{
	int64_t n, expected = 0;
	const int64_t *ids = fake_values(pack, NAME(VARIANT_PACK_UNIQUE_IDS), &n);
	void *const *pointers = fake_values(pack, NAME(VARIANT_PACK_DATA_POINTERS), NULL);
	void *const *workspace = fake_values(pack, NAME(VARIANT_PACK_WORKSPACE), NULL);
	struct task t = { .graph = plan->conv, .workspace = workspace ? *workspace : NULL };
	const char *wrong;

	for (int i = 0; i < FAKE_NORM_TENSORS; i++) {
		if (!t.graph.norm.has[i])
			continue;
		expected++;
		for (int64_t k = 0; k < n; k++)
			if (ids[k] == t.graph.norm.id[i])
				t.at[i] = pointers[k];
		if (!t.at[i])
			return fake_refuse(FAKE_BAD_PARAM, "no pointer for tensor %lld",
					   (long long)t.graph.norm.id[i]);
		if (i < FAKE_NORM_EPS && (uintptr_t)t.at[i] % 16)
			return fake_refuse(FAKE_MISALIGNED,
					   "tensor %lld is not aligned to 16 bytes",
					   (long long)t.graph.norm.id[i]);
	}
	if (n != expected)
		return fake_refuse(FAKE_BAD_PARAM, "%lld tensors for a norm with %lld",
				   (long long)n, (long long)expected);
	wrong = fake_has_driver() ? wrong_memory(&t) : "there is no driver";
	if (wrong)
		return fake_refuse(FAKE_BAD_PARAM, "a norm: %s", wrong);
	if (t.at[FAKE_NORM_EPS]) {
		memcpy(&t.eps, t.at[FAKE_NORM_EPS], sizeof(t.eps));
		memcpy(&t.momentum, t.at[FAKE_NORM_MOMENTUM], sizeof(t.momentum));
	}
	if (t.at[FAKE_NORM_ZERO] && *(const float *)t.at[FAKE_NORM_ZERO] != 0)
		return fake_refuse(FAKE_BAD_PARAM, "a mask of other values than positive ones");
	return fake_driver.submit(handle->stream, run, &t, sizeof(t)) ? FAKE_DRIVER : 0;
}
