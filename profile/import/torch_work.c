/*
 * torch_work.c - FLOPs and bytes of the operators of PyTorch's profiler, from their shapes. FLOPs
 * are counted as in complexity/op: 2 per multiply-add of products, convolutions and attention (all
 * scores, also under a causal mask; 4 products in its backward pass), 0 for other operators.
 */
#include "profile/import/torch.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

#define COUNT_MAX 1e18 /* larger products of dimensions are not plausible */

const char rfl_torch_no_rule[] = "some operators have no rule for their FLOPs and bytes";

static const struct type {
	const char *name;
	double size;
	unsigned metric;
} types[] = {
	{ "float", 4, 1 },
	{ "double", 8, 2 },
	{ "c10::Half", 2, 3 },
	{ "c10::BFloat16", 2, 4 },
	{ "c10::Float8_", 1, 5 },
	{ "long", 8, 0 },
	{ "int", 4, 0 },
	{ "short", 2, 0 },
	{ "unsigned char", 1, 0 },
	{ "signed char", 1, 0 },
	{ "bool", 1, 0 },
	{ "c10::complex<float>", 8, 0 },
	{ "c10::complex<d", 16, 0 },
};
const char *const rfl_torch_metrics[] = { "",           "flops_fp32", "flops_fp64", "flops_fp16",
					  "flops_bf16", "flops_fp8",  NULL };

/* How work follows from shapes. `a` and `b` are inputs. */
enum form {
	NOTHING,    /* a view, an allocation, a bookkeeping step */
	CALL,       /* computes only by the operators that it calls */
	PRODUCT,    /* a[..., m, k] b[..., k, n] */
	LINEAR,     /* a[..., k] b[n, k] */
	CONVOLVE,   /* aten::convolution */
	UNCONVOLVE, /* aten::convolution_backward */
	ATTEND,     /* q, k, v are the inputs from a */
	UNATTEND,   /* the same; writes their gradients */
	BROADCAST,  /* one output, as large as the inputs are together */
	LIKE,       /* b outputs of the size of input a */
	READ,       /* the outputs are small */
	ONLY,       /* one pass over input a */
	SCATTER,    /* rows of input 0 to a table of as many rows as the value of input a */
	COPY,       /* input 1 to input 0 */
	GATHER,     /* rows of input 0, as many as input a has elements */
	POOL,       /* by size, stride, padding and dilation from input 1; b: with indices */
};

struct rfl_torch_rule {
	enum form form;
	unsigned a, b;
	const char *names; /* without "aten::" and the "_" of operators in place */
};

static const struct rfl_torch_rule rules[] = {
	{ PRODUCT, 0, 1, "mm bmm mv dot" },
	{ PRODUCT, 1, 2, "addmm addmv baddbmm _addmm_activation" },
	{ LINEAR, 0, 1, "linear mkldnn_linear" },
	{ CONVOLVE, 0, 0, "convolution" },
	{ UNCONVOLVE, 0, 0, "convolution_backward" },
	{ ATTEND, 0, 0,
	  "scaled_dot_product_attention _scaled_dot_product_flash_attention "
	  "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
	  "_scaled_dot_product_cudnn_attention" },
	{ UNATTEND, 1, 0,
	  "_scaled_dot_product_flash_attention_backward "
	  "_scaled_dot_product_flash_attention_for_cpu_backward "
	  "_scaled_dot_product_efficient_attention_backward "
	  "_scaled_dot_product_cudnn_attention_backward" },
	{ BROADCAST, 0, 0,
	  "add sub rsub mul div pow exp log sqrt rsqrt neg abs reciprocal square sin cos erf "
	  "sign maximum minimum where masked_fill clamp clamp_min clamp_max addcmul addcdiv lerp "
	  "relu relu6 threshold_backward gelu gelu_backward silu silu_backward sigmoid "
	  "sigmoid_backward tanh tanh_backward hardtanh hardtanh_backward hardswish "
	  "hardswish_backward hardsigmoid hardsigmoid_backward leaky_relu leaky_relu_backward "
	  "elu elu_backward softplus mish tril triu eq ne lt le gt ge logical_and logical_not "
	  "bitwise_and bitwise_not native_dropout_backward" },
	{ LIKE, 0, 1,
	  "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data "
	  "native_layer_norm native_layer_norm_backward native_group_norm native_batch_norm "
	  "cudnn_batch_norm miopen_batch_norm cudnn_batch_norm_backward "
	  "miopen_batch_norm_backward native_batch_norm_backward _fused_rms_norm flip roll cat "
	  "cumsum" },
	{ LIKE, 1, 1, "max_pool2d_with_indices_backward" },
	{ LIKE, 0, 2, "native_dropout _fused_sgd" },
	{ LIKE, 0, 3, "_fused_adam _fused_adamw" },
	{ READ, 0, 0,
	  "sum mean amax amin max argmax norm linalg_vector_norm var std any all "
	  "_adaptive_avg_pool2d" },
	{ ONLY, 0, 0, "fill zero bernoulli normal uniform random" },
	{ ONLY, 1, 0, "nll_loss_forward nll_loss_backward _adaptive_avg_pool2d_backward" },
	{ SCATTER, 2, 0, "embedding_dense_backward" },
	{ COPY, 0, 0, "copy" },
	{ GATHER, 2, 0, "index_select" },
	{ POOL, 0, 1, "max_pool2d_with_indices" },
	{ POOL, 0, 0, "avg_pool2d" },
	{ NOTHING, 0, 0,
	  "t transpose view as_strided expand permute slice select narrow unsqueeze squeeze "
	  "reshape detach alias empty empty_like empty_strided resize resize_as split "
	  "split_with_sizes chunk unbind unflatten flatten set _reshape_alias _unsafe_view "
	  "lift_fresh is_nonzero item _local_scalar_dense result_type to contiguous conj "
	  "resolve_conj resolve_neg view_as expand_as movedim swapaxes new_empty "
	  "new_empty_strided zeros zeros_like ones ones_like full full_like new_zeros dropout "
	  "record_stream" },
	{ CALL, 0, 0,
	  "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d _convolution "
	  "matmul einsum tensordot inner outer batch_norm instance_norm group_norm layer_norm "
	  "rms_norm _batch_norm_impl_index _batch_norm_impl_index_backward cross_entropy_loss "
	  "nll_loss nll_loss_nd nll_loss2d softmax log_softmax max_pool1d max_pool2d max_pool3d "
	  "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d embedding "
	  "embedding_backward _to_copy clone repeat tile stack concat concatenate hstack vstack "
	  "pad constant_pad_nd multiply subtract divide true_divide clip selu celu l1_loss lstm "
	  "gru _scaled_dot_product_attention_math" },
};

static const struct rfl_torch_rule nothing = { .form = NOTHING };
static const struct rfl_torch_rule calls = { .form = CALL };
static const struct rfl_torch_rule of_lists = { .form = LIKE, .a = 0, .b = 1 };

const struct rfl_torch_rule *rfl_torch_rule_of(const char *name)
{
	struct rfl_span op = rfl_span_of(name), list, word;

	/* autograd's nodes, which call the operators */
	if (rfl_span_starts(op, "autograd::") || rfl_span_starts(op, "torch::autograd::") ||
	    (!rfl_span_has(op, "::") && rfl_span_has(op, "Backward")) ||
	    rfl_span_starts(op, "detach"))
		return &nothing;
	/* ranges of the profiler, which older versions write as operators */
	if (rfl_span_starts(op, "ProfilerStep#") || rfl_span_starts(op, "Optimizer."))
		return &calls;
	if (!rfl_span_starts(op, "aten::"))
		return NULL;
	op = rfl_span_from(op, strlen("aten::"));
	if (rfl_span_starts(op, "_foreach_"))
		return rfl_span_has(op, "norm") ? NULL : &of_lists;
	if (rfl_span_ends(op, "_"))
		op.len--;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rules); i++)
		for (list = rfl_span_of(rules[i].names); rfl_span_next_word(&list, &word);)
			if (rfl_span_same(word, op))
				return &rules[i];
	return NULL;
}

enum rfl_torch_kind rfl_torch_kind_of(const struct rfl_torch_rule *rule)
{
	if (!rule)
		return RFL_TORCH_UNKNOWN;
	return rule->form <= CALL               ? RFL_TORCH_CALLS
	       : rule->form <= UNATTEND         ? RFL_TORCH_MULTIPLIES
	       : rule->form == ONLY && !rule->a ? RFL_TORCH_FILLS
						: RFL_TORCH_COMPUTES;
}

static const struct type *type_of(const struct rfl_torch_input *in)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(types); i++)
		if (strncmp(in->type, types[i].name, strlen(types[i].name)) == 0)
			return &types[i];
	return in->is_list ? &types[0] : NULL; /* lists of the optimizer: parameters in fp32 */
}

/* NaN: not a tensor */
static double size_of(const struct rfl_torch_input *in)
{
	const struct type *type = type_of(in);

	return type ? type->size : NAN;
}

/* The bytes of a tensor; 0: not a tensor */
static double bytes_of(const struct rfl_torch_input *in)
{
	const struct type *type = type_of(in);

	return type ? in->elements * type->size : 0;
}

/* The i-th value of "[2, 1]", or the last one, since "[2]" is for all dimensions. */
static struct rfl_span field(const struct rfl_torch_input *in, size_t i)
{
	struct rfl_span rest = rfl_span_of(in->value), value = { "", 0 };

	if (rfl_span_starts(rest, "[") && rfl_span_ends(rest, "]"))
		rest = (struct rfl_span){ rest.at + 1, rest.len - 2 };
	for (size_t k = 0; k <= i && rfl_span_next_field(&rest, ',', &value); k++)
		;
	return value;
}

/* NaN: none */
static double value_of(const struct rfl_torch_input *in, size_t i)
{
	double value;

	return rfl_span_number(field(in, i), &value) ? value : NAN;
}

static bool is_true(const struct rfl_torch_input *in, size_t i)
{
	return rfl_span_is(field(in, i), "True");
}

/* The size of a dimension after a window of k elements passed over it. */
static double windows(double size, double k, double stride, double padding, double dilation)
{
	return floor((size + 2 * padding - dilation * (k - 1) - 1) / stride) + 1;
}

/* The output of a convolution of x with w per channel and sample, for each spatial dimension d. */
static double convolved(const struct rfl_torch_input *in, size_t d)
{
	const double k = in[1].dim[d + 2], stride = value_of(&in[3], d);
	const double padding = value_of(&in[4], d), dilation = value_of(&in[5], d);

	if (is_true(&in[6], 0))
		return (in[0].dim[d + 2] - 1) * stride - 2 * padding + dilation * (k - 1) +
		       value_of(&in[7], d) + 1;
	return windows(in[0].dim[d + 2], k, stride, padding, dilation);
}

/* FLOPs of a convolution: every element of the weights meets each sample and position of the
 * output or, if it is transposed, of the input. */
static double convolution(const struct rfl_torch_input *w, double samples, double positions)
{
	return 2 * w->elements * samples * positions;
}

static double positions_of(const struct rfl_torch_input *x)
{
	double n = 1;

	for (size_t d = 2; d < x->ndims; d++)
		n *= x->dim[d];
	return n;
}

static bool sizes(const struct rfl_torch_rule *rule, const struct rfl_torch_call *call, double in,
		  struct rfl_torch_work *work)
{
	const struct rfl_torch_input *x = call->in, *a = &x[rule->a], *b = &x[rule->b], *v = a + 2;
	const bool transposed = rule->form == CONVOLVE ? is_true(&x[6], 0) : is_true(&x[7], 0);
	double out = 1, k, n, grads = 0;

	work->flops = 0;
	work->bytes = in;
	switch (rule->form) {
	case PRODUCT:
	case LINEAR:
		if (a->ndims < 1 || b->ndims < 1)
			return false;
		n = b->ndims < 2 ? 1 : b->dim[rule->form == LINEAR ? 0 : b->ndims - 1];
		k = b->dim[b->ndims < 2 ? 0 : b->ndims - (rule->form == LINEAR ? 1 : 2)];
		if (!(k > 0) || k != a->dim[a->ndims - 1])
			return false;
		work->flops = 2 * a->elements * n;
		work->bytes += a->elements / k * n * size_of(a);
		return true;
	case CONVOLVE:
		if (x[0].ndims < 3 || x[1].ndims != x[0].ndims)
			return false;
		for (size_t d = 0; d + 2 < x[0].ndims; d++)
			out *= convolved(x, d);
		work->flops = convolution(&x[1], x[0].dim[0], transposed ? positions_of(x) : out);
		/* channels: of w, unless it is transposed, where groups divide them */
		work->bytes += x[0].dim[0] * out * size_of(x) *
			       (transposed ? x[1].dim[1] * value_of(&x[8], 0) : x[1].dim[0]);
		return true;
	case UNCONVOLVE:
		if (x[0].ndims < 3 || x[1].ndims != x[0].ndims || x[2].ndims != x[0].ndims)
			return false;
		grads = is_true(&x[10], 0) + is_true(&x[10], 1);
		work->flops = grads * convolution(&x[2], x[0].dim[0],
						  positions_of(transposed ? &x[1] : &x[0]));
		work->bytes += is_true(&x[10], 0) * bytes_of(&x[1]) +
			       is_true(&x[10], 1) * bytes_of(&x[2]) +
			       is_true(&x[10], 2) * x[0].dim[1] * size_of(x);
		return true;
	case ATTEND:
	case UNATTEND:
		if (a->ndims < 2 || a[1].ndims != a->ndims || v->ndims != a->ndims)
			return false;
		/* scores: every query with the keys of its sample and head */
		n = a->elements / a->dim[a->ndims - 1] * a[1].dim[a[1].ndims - 2];
		k = a->dim[a->ndims - 1] + v->dim[v->ndims - 1];
		out = a->elements / a->dim[a->ndims - 1] * v->dim[v->ndims - 1] * size_of(a);
		work->flops = (rule->form == ATTEND ? 2 : 4) * n * k;
		work->bytes +=
			rule->form == ATTEND ? out : bytes_of(a) + bytes_of(a + 1) + bytes_of(v);
		return true;
	case BROADCAST:
		a = x; /* the output has the type of the largest input */
		for (size_t i = 1; i < call->n; i++)
			a = bytes_of(&x[i]) > bytes_of(a) ? &x[i] : a;
		for (size_t d = 0; d < RFL_TORCH_DIMS; d++) {
			k = 1;
			for (size_t i = 0; i < call->n; i++)
				if (d < x[i].ndims && x[i].dim[x[i].ndims - 1 - d] != 1)
					k = x[i].dim[x[i].ndims - 1 - d];
			out *= k;
		}
		work->bytes += out * size_of(a);
		return true;
	case LIKE:
		work->bytes += rule->b * bytes_of(a);
		return true;
	case ONLY:
		work->bytes = bytes_of(a);
		return true;
	case SCATTER:
		if (x[0].ndims < 1)
			return false;
		work->bytes += value_of(a, 0) * x[0].dim[x[0].ndims - 1] * size_of(x);
		return true;
	case GATHER:
		if (x[0].ndims < 1)
			return false;
		out = a->elements * x[0].elements / x[0].dim[0] * size_of(x);
		work->bytes = bytes_of(a) + 2 * out;
		return true;
	case POOL:
		if (x[0].ndims < 3)
			return false;
		out = x[0].elements / positions_of(x);
		for (size_t d = 0; d < 2 && x[0].ndims >= 2; d++) {
			const double size = value_of(&x[1], d), stride = value_of(&x[2], d);
			const double dilation = rule->b ? value_of(&x[4], d) : 1;

			out *= windows(x[0].dim[x[0].ndims - 2 + d], size,
				       isnan(stride) ? size : stride, value_of(&x[3], d), dilation);
		}
		work->bytes += out * (size_of(x) + 8 * rule->b);
		return true;
	default: /* READ, COPY */
		return true;
	}
}

struct rfl_torch_work rfl_torch_work_of(const struct rfl_torch_rule *rule,
					const struct rfl_torch_call *call)
{
	struct rfl_torch_work work = { .flops = 0, .bytes = 0 };
	const struct type *type;
	double in = 0;

	if (rule && rule->form == NOTHING)
		return work;
	if (!rule || rule->form == CALL)
		work.reason = rfl_torch_no_rule;
	else if (!call->has_shapes)
		work.reason = "the trace has no shapes; profile with record_shapes=True";
	else if (!call->has_values && (rule->form == CONVOLVE || rule->form == UNCONVOLVE))
		work.reason = "the trace has no arguments of convolutions; profile with "
			      "record_shapes=True in PyTorch 2.0 or later";
	for (size_t i = 0; i < call->n && !work.reason; i++)
		in += bytes_of(&call->in[i]);
	if (!work.reason &&
	    (!sizes(rule, call, in, &work) || !(work.flops >= 0 && work.flops <= COUNT_MAX) ||
	     !(work.bytes >= 0 && work.bytes <= COUNT_MAX)))
		work.reason = "the shapes of some operators contradict each other";
	if (work.reason)
		return (struct rfl_torch_work){ .flops = NAN, .bytes = NAN, .reason = work.reason };
	type = type_of(&call->in[rule->a]);
	work.metric = type ? type->metric : 0;
	return work;
}
