/*
 * fake_cudnn_graph.c - what the fake cuDNN checks when descriptors are finalized, and which graphs
 * it has engines for: convolutions over NHWC images with all tensors of one type and sums of
 * float32, forward also with a bias and ReLU.
 */
#include <string.h>

#include "tests/fakes/fake_cudnn.h"

#define NAME(attribute) RFL_CUDNN_ATTR_##attribute

int fake_finish_tensor(struct fake_descriptor *d)
{
	const int type = fake_enum(d, NAME(TENSOR_DATA_TYPE));
	int64_t n, nstrides;
	const int64_t *dims = fake_values(d, NAME(TENSOR_DIMENSIONS), &n);
	const int64_t *strides = fake_values(d, NAME(TENSOR_STRIDES), &nstrides);

	if (n != 4 || nstrides != 4)
		return fake_refuse(FAKE_BAD_PARAM, "a tensor with %lld dimensions, %lld strides",
				   (long long)n, (long long)nstrides);
	for (int i = 0; i < 4; i++)
		if (dims[i] < 1)
			return fake_refuse(FAKE_BAD_PARAM, "a tensor with an empty dimension");
	if (type != RFL_CUDNN_DATA_FLOAT && type != RFL_CUDNN_DATA_HALF &&
	    type != RFL_CUDNN_DATA_BFLOAT16 && type != RFL_CUDNN_DATA_BOOLEAN)
		return fake_refuse(FAKE_DATA_TYPE, "a tensor of type %d", type);
	if (fake_int(d, NAME(TENSOR_BYTE_ALIGNMENT)) != 16)
		return fake_refuse(FAKE_BAD_PARAM, "a tensor that is not aligned to 16 bytes");
	if (strides[1] != 1 || strides[3] != dims[1] || strides[2] != dims[3] * strides[3] ||
	    strides[0] != dims[2] * strides[2])
		return fake_refuse(FAKE_LAYOUT, "a tensor that is not NHWC (weights: KRSC)");
	return 0;
}

bool fake_is_virtual(const struct fake_descriptor *tensor)
{
	const bool *v = fake_values(tensor, NAME(TENSOR_IS_VIRTUAL), NULL);

	return v && *v;
}

static int64_t id_of(const struct fake_descriptor *tensor)
{
	return fake_int(tensor, NAME(TENSOR_UNIQUE_ID));
}

const int64_t *fake_dims(const struct fake_descriptor *tensor)
{
	return fake_values(tensor, NAME(TENSOR_DIMENSIONS), NULL);
}

int fake_finish_convolution(struct fake_descriptor *d)
{
	static const struct {
		int name;
		int64_t least;
	} arrays[] = {
		{ NAME(CONVOLUTION_DILATIONS), 1 },
		{ NAME(CONVOLUTION_FILTER_STRIDES), 1 },
		{ NAME(CONVOLUTION_POST_PADDINGS), 0 },
		{ NAME(CONVOLUTION_PRE_PADDINGS), 0 },
	};

	if (fake_int(d, NAME(CONVOLUTION_SPATIAL_DIMS)) != 2)
		return fake_refuse(FAKE_BAD_PARAM, "a convolution not of images");
	for (size_t i = 0; i < RFL_ARRAY_LEN(arrays); i++) {
		int64_t n;
		const int64_t *v = fake_values(d, arrays[i].name, &n);

		if (n != 2 || v[0] < arrays[i].least || v[1] < arrays[i].least)
			return fake_refuse(FAKE_BAD_PARAM, "attribute %d of a convolution",
					   arrays[i].name);
	}
	if (fake_enum(d, NAME(CONVOLUTION_COMP_TYPE)) != RFL_CUDNN_DATA_FLOAT)
		return fake_refuse(FAKE_DATA_TYPE, "a convolution with other sums than of float32");
	if (fake_enum(d, NAME(CONVOLUTION_CONV_MODE)) != RFL_CUDNN_CROSS_CORRELATION)
		return fake_refuse(FAKE_BAD_PARAM, "a convolution with mirrored weights");
	return 0;
}

int fake_finish_pointwise(struct fake_descriptor *d)
{
	const int mode = fake_enum(d, NAME(POINTWISE_MODE));

	if (mode != RFL_CUDNN_POINTWISE_ADD && mode != RFL_CUDNN_POINTWISE_RELU_FWD &&
	    mode != RFL_CUDNN_POINTWISE_MUL && mode != RFL_CUDNN_POINTWISE_CMP_GT)
		return fake_refuse(FAKE_BAD_PARAM, "pointwise mode %d", mode);
	if (fake_enum(d, NAME(POINTWISE_MATH_PREC)) != RFL_CUDNN_DATA_FLOAT)
		return fake_refuse(FAKE_DATA_TYPE, "a pointwise operation not in float32");
	return 0;
}

/* The attributes of the three operations, and what they are. */
static const struct operation {
	int type;
	enum fake_cudnn_kind kind;
	int alpha, beta, convolution, tensors[3]; /* x, w, y */
} operations[] = {
#define ROW(name, kind, x, w, y)                                                          \
	{                                                                                 \
		RFL_CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, FAKE_##kind, \
			NAME(OPERATION_CONVOLUTION_##name##_ALPHA),                       \
			NAME(OPERATION_CONVOLUTION_##name##_BETA),                        \
			NAME(OPERATION_CONVOLUTION_##name##_CONV_DESC),                   \
		{                                                                         \
			NAME(OPERATION_CONVOLUTION_##name##_##x),                         \
				NAME(OPERATION_CONVOLUTION_##name##_##w),                 \
				NAME(OPERATION_CONVOLUTION_##name##_##y)                  \
		}                                                                         \
	}
	ROW(FORWARD, FORWARD, X, W, Y),
	ROW(BWD_DATA, BACKWARD_DATA, DX, W, DY),
	ROW(BWD_FILTER, BACKWARD_FILTER, X, DW, DY),
#undef ROW
};

static const struct operation *operation_of(const struct fake_descriptor *d)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(operations); i++)
		if (operations[i].type == d->type)
			return &operations[i];
	return NULL;
}

int fake_finish_operation(struct fake_descriptor *d)
{
	const struct operation *o = operation_of(d);
	const struct fake_descriptor *convolution = fake_ref(d, o->convolution);
	const struct fake_descriptor *tensors[3] = { fake_ref(d, o->tensors[FAKE_X]),
						     fake_ref(d, o->tensors[FAKE_W]),
						     fake_ref(d, o->tensors[FAKE_Y]) };
	const int64_t *x = fake_dims(tensors[FAKE_X]), *w = fake_dims(tensors[FAKE_W]);
	const int64_t *y = fake_dims(tensors[FAKE_Y]);
	struct fake_graph c = { .kind = o->kind, .n = x[0], .c = x[1], .k = y[1], .ntensors = 3 };
	const struct {
		int name;
		int64_t *to;
	} arrays[] = {
		{ NAME(CONVOLUTION_FILTER_STRIDES), c.stride },
		{ NAME(CONVOLUTION_DILATIONS), c.dilation },
		{ NAME(CONVOLUTION_PRE_PADDINGS), c.pad },
		{ NAME(CONVOLUTION_POST_PADDINGS), c.post },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(arrays); i++)
		memcpy(arrays[i].to, fake_values(convolution, arrays[i].name, NULL),
		       2 * sizeof(int64_t));
	for (int i = 0; i < 3; i++) {
		c.type[i] = fake_enum(tensors[i], NAME(TENSOR_DATA_TYPE));
		c.id[i] = id_of(tensors[i]);
	}
	if (*(const float *)fake_values(d, o->alpha, NULL) != 1 ||
	    *(const float *)fake_values(d, o->beta, NULL) != 0)
		return fake_refuse(FAKE_BAD_PARAM, "a convolution with other factors than 1 and 0");
	if (x[0] != y[0])
		return fake_refuse(FAKE_BAD_PARAM, "a convolution of %lld images to %lld",
				   (long long)x[0], (long long)y[0]);
	c.groups = x[1] / w[1];
	if (x[1] % w[1] || y[1] != w[0] || w[0] % c.groups)
		return fake_refuse(
			FAKE_BAD_PARAM, "a convolution of %lld channels to %lld by %lld x %lld",
			(long long)x[1], (long long)y[1], (long long)w[0], (long long)w[1]);
	for (int i = 0; i < 2; i++) {
		int64_t reach;

		c.in[i] = x[2 + i];
		c.out[i] = y[2 + i];
		c.kernel[i] = w[2 + i];
		reach = c.in[i] + c.pad[i] + c.post[i] - c.dilation[i] * (c.kernel[i] - 1) - 1;
		if (reach < 0 || c.out[i] != reach / c.stride[i] + 1)
			return fake_refuse(FAKE_BAD_PARAM,
					   "a convolution of %lld rows or columns to %lld",
					   (long long)c.in[i], (long long)c.out[i]);
	}
	d->conv = c;
	return 0;
}

int fake_finish_pointwise_operation(struct fake_descriptor *d)
{
	const struct fake_descriptor *x = fake_ref(d, NAME(OPERATION_POINTWISE_XDESC));
	const struct fake_descriptor *b = fake_ref(d, NAME(OPERATION_POINTWISE_BDESC));
	const struct fake_descriptor *y = fake_ref(d, NAME(OPERATION_POINTWISE_YDESC));
	const bool two = fake_enum(fake_ref(d, NAME(OPERATION_POINTWISE_PW_DESCRIPTOR)),
				   NAME(POINTWISE_MODE)) != RFL_CUDNN_POINTWISE_RELU_FWD;

	if (two != (b != NULL))
		return fake_refuse(FAKE_BAD_PARAM,
				   "a pointwise operation with a wrong number of operands");
	if (memcmp(fake_dims(x), fake_dims(y), 4 * sizeof(int64_t)) != 0)
		return fake_refuse(FAKE_BAD_PARAM, "a pointwise operation that changes the shape");
	for (int i = 0; b && i < 4; i++)
		if (fake_dims(b)[i] != 1 && fake_dims(b)[i] != fake_dims(x)[i])
			return fake_refuse(FAKE_BAD_PARAM, "a pointwise operand of another shape");
	return 0;
}

/* Add a pointwise operation to the convolution before it: that must be virtual. */
static int fuse(struct fake_graph *c, const struct fake_descriptor *op,
		const struct fake_descriptor **last)
{
	const struct fake_descriptor *x, *b, *y;
	int mode;

	if (op->type != RFL_CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
		return fake_refuse(FAKE_PATTERN, "a graph with two convolutions");
	mode = fake_enum(fake_ref(op, NAME(OPERATION_POINTWISE_PW_DESCRIPTOR)),
			 NAME(POINTWISE_MODE));
	x = fake_ref(op, NAME(OPERATION_POINTWISE_XDESC));
	b = fake_ref(op, NAME(OPERATION_POINTWISE_BDESC));
	y = fake_ref(op, NAME(OPERATION_POINTWISE_YDESC));
	if (x != *last || !fake_is_virtual(x) ||
	    fake_enum(x, NAME(TENSOR_DATA_TYPE)) != RFL_CUDNN_DATA_FLOAT)
		return fake_refuse(FAKE_PATTERN,
				   "between operations a graph has virtual tensors of float32");
	if (mode == RFL_CUDNN_POINTWISE_ADD && c->kind == FAKE_FORWARD) {
		const int64_t *dims = fake_dims(b);

		const int type = fake_enum(b, NAME(TENSOR_DATA_TYPE));

		if (dims[0] != 1 || dims[1] != c->k || dims[2] != 1 || dims[3] != 1 ||
		    fake_is_virtual(b) || (type != RFL_CUDNN_DATA_FLOAT && type != c->type[FAKE_X]))
			return fake_refuse(FAKE_PATTERN, "a bias that is not [1, K, 1, 1]");
		c->kind = FAKE_FORWARD_BIAS;
		c->type[FAKE_B] = type;
		c->id[FAKE_B] = id_of(b);
		c->ntensors = 4;
	} else if (!b && c->kind == FAKE_FORWARD_BIAS)
		c->kind = FAKE_FORWARD_BIAS_RELU;
	else if (!b && c->kind == FAKE_FORWARD)
		c->kind = FAKE_FORWARD_RELU;
	else
		return fake_refuse(FAKE_PATTERN, "a graph that is not a convolution, a bias, ReLU");
	c->type[FAKE_Y] = fake_enum(y, NAME(TENSOR_DATA_TYPE));
	c->id[FAKE_Y] = id_of(y);
	*last = y;
	return 0;
}

int fake_finish_graph(struct fake_descriptor *d)
{
	int64_t n, ids[8], nids = 0;
	struct fake_descriptor *const *ops = fake_values(d, NAME(OPERATIONGRAPH_OPS), &n);
	struct rfl_cudnn_handle *const *handle = fake_values(d, NAME(OPERATIONGRAPH_HANDLE), NULL);
	const struct operation *o = operation_of(ops[0]);
	const struct fake_descriptor *last;
	struct fake_graph c;
	int code = 0;

	for (int64_t i = 0; i < n; i++)
		if (ops[i]->conv.kind >= FAKE_NORM_FORWARD)
			return fake_finish_norm_graph(d);
	if (!o || n > 3)
		return fake_refuse(FAKE_PATTERN, "a graph that does not begin with a convolution");
	c = ops[0]->conv;
	for (int i = 0; i < 3; i++) {
		last = fake_ref(ops[0], o->tensors[i]);
		ids[nids++] = c.id[i];
		if (fake_is_virtual(last) && (n == 1 || i != FAKE_Y))
			return fake_refuse(FAKE_PATTERN, "a tensor of a convolution is virtual");
	}
	for (int64_t i = 1; i < n && code == 0; i++) {
		const bool biased = c.ntensors == 4;

		code = fuse(&c, ops[i], &last);
		if (c.ntensors == 4 && !biased)
			ids[nids++] = c.id[FAKE_B];
		ids[nids++] = c.id[FAKE_Y];
	}
	if (code)
		return code;
	if (fake_is_virtual(last))
		return fake_refuse(FAKE_PATTERN, "the result of a graph is virtual");
	for (int64_t i = 0; i < nids; i++)
		for (int64_t k = 0; k < i; k++)
			if (ids[i] == ids[k])
				return fake_refuse(FAKE_DUPLICATED, "two tensors with the id %lld",
						   (long long)ids[i]);
	if (handle)
		c.capability = (*handle)->capability;
	d->conv = c;
	return 0;
}

int fake_engines(const struct fake_graph *c, int mode, enum fake_cudnn_engine *engines)
{
	const int wanted = (int)fake_script_number(&fake_cudnn_script, "plans", FAKE_ENGINE_COUNT);
	int n = 0;

	if (c->kind >= FAKE_NORM_FORWARD) {
		engines[n++] = FAKE_WORKSPACE;
		return mode == RFL_CUDNN_HEUR_MODE_A && wanted > 0 && c->capability >= 80 &&
		       fake_script_number(&fake_cudnn_script, "nonorm", 0) == 0;
	}
	/* without a complaint: these are what no engine of cuDNN does */
	if (c->type[FAKE_W] != c->type[FAKE_X] || c->type[FAKE_Y] != c->type[FAKE_X] ||
	    (c->type[FAKE_X] == RFL_CUDNN_DATA_BFLOAT16 && c->capability < 80) ||
	    c->pad[0] != c->post[0] || c->pad[1] != c->post[1] ||
	    (c->kind > FAKE_FORWARD && c->kind <= FAKE_FORWARD_RELU &&
	     fake_script_number(&fake_cudnn_script, "nofuse", 0) != 0))
		return 0;
	if (mode == RFL_CUDNN_HEUR_MODE_FALLBACK)
		engines[n++] = FAKE_FALLBACK;
	for (int e = FAKE_REDUCED; mode == RFL_CUDNN_HEUR_MODE_A && e < FAKE_FALLBACK; e++)
		engines[n++] = (enum fake_cudnn_engine)e;
	return n < wanted ? n : wanted;
}
