/*
 * rules.c - what each tool charges each operation, read from its source and checked against
 * what it prints. An operation that a table does not name is free to that tool. The reasons are in
 * docs/appendix/peers.md.
 */
#include "complexity/peer/impl.h"

#include "base/num.h"

/* The core count: convolutions and matrix products, nothing else. */
#define CORE(n_)                                                                          \
	[RFL_OP_CONV2D] = { .call.macs = (n_) }, [RFL_OP_LINEAR] = { .call.macs = (n_) }, \
	[RFL_OP_MATMUL] = { .call.macs = (n_) }

static const struct rfl_peer_rule torchvision[RFL_OP_COUNT] = {
	CORE(1),
	[RFL_OP_SDPA] = { .call.macs = 1 },
};

static const struct rfl_peer_rule flopcounter[RFL_OP_COUNT] = { CORE(2) };

#define FVCORE(batch_norm_)                                          \
	CORE(1), [RFL_OP_BATCH_NORM] = { .call.in = (batch_norm_) }, \
		 [RFL_OP_LAYER_NORM] = { .call.in = 5 },             \
		 [RFL_OP_ADAPTIVE_AVG_POOL] = { .call.in = 1 }

static const struct rfl_peer_rule fvcore[RFL_OP_COUNT] = { FVCORE(2) };
static const struct rfl_peer_rule fvcore_train[RFL_OP_COUNT] = { FVCORE(5) };

/* The scores that a softmax reads: a row of keys for each query. */
static bool scores(const struct rfl_peer_site *site, int64_t *ret)
{
	const struct rfl_shape *q = &site->net->nodes[site->node->input[0]].shape;
	const struct rfl_shape *k = &site->net->nodes[site->node->input[1]].shape;

	return rfl_num_mul(site->in / q->dim[q->ndim - 1], k->dim[k->ndim - 2], ret);
}

static bool ptflops_attention(const struct rfl_peer_site *site, enum rfl_peer_caller caller,
			      int64_t *ret)
{
	*ret = 0;
	return caller != RFL_PEER_ATTENTION || scores(site, ret);
}

static const struct rfl_peer_rule ptflops[RFL_OP_COUNT] = {
	[RFL_OP_CONV2D] = { .module = { .macs = 1, .bias = 1 } },
	[RFL_OP_LINEAR] = { .module = { .macs = 1, .bias = 1 },
			    .attention = { .macs = 1, .bias = 1 } },
	[RFL_OP_BATCH_NORM] = { .module.in = 2 },
	[RFL_OP_LAYER_NORM] = { .module.in = 1 }, /* it looks for BatchNorm's word of affine */
	[RFL_OP_RELU] = { .call.in = 1, .module.in = 1 },
	[RFL_OP_RELU6] = { .module.in = 1 },
	[RFL_OP_GELU] = { .call.in = 1, .module.in = 1 },
	[RFL_OP_SILU] = { .call.in = 1 },
	[RFL_OP_MAX_POOL] = { .call.in = 1, .module.in = 1 },
	[RFL_OP_AVG_POOL] = { .call.in = 1, .module.in = 1 },
	[RFL_OP_ADAPTIVE_AVG_POOL] = { .call.in = 1, .module.in = 1 },
	/* nn.MultiheadAttention: both products, the scaled queries, the softmax */
	[RFL_OP_SDPA] = { .attention = { .macs = 1, .in = 1 }, .odd = ptflops_attention },
	[RFL_OP_MATMUL] = { .attention.macs = 1, .functions.macs = 1 },
	[RFL_OP_AFFINE] = { .attention.in = 1 },
	[RFL_OP_SOFTMAX] = { .attention.in = 1, .functions.in = 1 },
};

static const struct rfl_peer_rule ptflops_aten[RFL_OP_COUNT] = {
	[RFL_OP_CONV2D] = { .call = { .macs = 1, .bias = 1 } },
	[RFL_OP_LINEAR] = { .call = { .macs = 1, .bias = 1 } },
	[RFL_OP_MATMUL] = { .call.macs = 1 },
};

/* k + 1 per element of the output, where k is the quotient of the sizes, whole or not. */
static bool thop_adaptive(const struct rfl_peer_site *site, enum rfl_peer_caller caller,
			  int64_t *ret)
{
	const int64_t exact = INT64_C(1) << 52; /* beyond it a double may be off by one */

	*ret = 0;
	if (caller != RFL_PEER_MODULE)
		return true;
	if (site->in > exact || site->out > exact)
		return false;
	*ret = (int64_t)(((double)site->in / (double)site->out + 1) * (double)site->out);
	return true;
}

static const struct rfl_peer_rule thop[RFL_OP_COUNT] = {
	[RFL_OP_CONV2D] = { .module.macs = 1 },
	[RFL_OP_LINEAR] = { .module.macs = 1 },
	[RFL_OP_BATCH_NORM] = { .module.in = 4 },
	[RFL_OP_LAYER_NORM] = { .module.in = 4 },
	[RFL_OP_AVG_POOL] = { .module.out = 1 },
	[RFL_OP_ADAPTIVE_AVG_POOL] = { .odd = thop_adaptive },
};

/* A normalisation that is written out in steps is a module with a weight nevertheless. */
static bool torchinfo_parameter(const struct rfl_peer_site *site, enum rfl_peer_caller caller,
				int64_t *ret)
{
	const struct rfl_parameter *a = &site->node->attr.parameter;

	(void)caller;
	*ret = a->norm_weight || a->norm_bias ? site->weights : 0;
	return true;
}

static const struct rfl_peer_rule torchinfo[RFL_OP_COUNT] = {
	[RFL_OP_CONV2D] = { .module = { .macs = 1, .bias = 1 } },
	[RFL_OP_LINEAR] = { .module.weights = 1 },
	[RFL_OP_EMBEDDING] = { .module.weights = 1 },
	[RFL_OP_BATCH_NORM] = { .module.weights = 1 },
	[RFL_OP_LAYER_NORM] = { .module.weights = 1 },
	[RFL_OP_RMS_NORM] = { .module.weights = 1 },
	[RFL_OP_PARAMETER] = { .odd = torchinfo_parameter },
};

#define CALFLOPS                                                                      \
	[RFL_OP_CONV2D] = { .call = { .macs = 2, .bias = 1 } },                       \
	[RFL_OP_LINEAR] = { .call.macs = 2 }, [RFL_OP_BATCH_NORM] = { .call.in = 2 }, \
	[RFL_OP_LAYER_NORM] = { .call.in = 5 }, [RFL_OP_RELU] = { .call.in = 1 },     \
	[RFL_OP_SILU] = { .call.in = 1 }, [RFL_OP_GELU] = { .call.in = 1 },           \
	[RFL_OP_MAX_POOL] = { .call.in = 1 }, [RFL_OP_AVG_POOL] = { .call.in = 1 },   \
	[RFL_OP_ADAPTIVE_AVG_POOL] = { .call.in = 1 },                                \
	[RFL_OP_SOFTMAX] = { .attention.in = 1, .functions.in = 1 }

static const struct rfl_peer_rule calflops[RFL_OP_COUNT] = {
	CALFLOPS,
	[RFL_OP_MATMUL] = { .functions.macs = 2 },
};

static const struct rfl_peer_rule deepspeed[RFL_OP_COUNT] = {
	CALFLOPS,
	[RFL_OP_MATMUL] = { .call.macs = 2 },
	[RFL_OP_SDPA] = { .call.macs = 2 },
};

static const struct rfl_peer_row rows[] = {
	{
		.peer = {
			.name = "torchvision",
			.version = "0.26.0",
			.prints = "GFLOPS",
			.rule = "one per multiply-add of convolutions, linear layers and both "
				"products of attention, nothing else: the core count",
			.wrong = "what it calls FLOPs are multiply-adds",
		},
		.rules = torchvision,
	},
	{
		.peer = {
			.name = "fvcore",
			.version = "0.1.5.post20221221",
			.prints = "FLOPs",
			.rule = "one per multiply-add; batch norm 2 and layer norm 5 per element, "
				"adaptive average pooling 1 per element of its input",
			.wrong = "what it calls FLOPs are multiply-adds; fused attention is missing, "
				 "its projections are not",
		},
		.rules = fvcore,
	},
	{
		.peer = {
			.name = "fvcore-train",
			.version = "0.1.5.post20221221",
			.prints = "FLOPs",
			.rule = "fvcore on a model in training mode: batch norm 5 per element, "
				"auxiliary heads included; still the forward pass only",
			.wrong = "what it calls FLOPs are multiply-adds; fused attention is missing, "
				 "its projections are not",
		},
		.training = true,
		.rules = fvcore_train,
	},
	{
		.peer = {
			.name = "flopcounter",
			.version = "2.11.0",
			.prints = "FLOPs",
			.is_flops = true,
			.rule = "two per multiply-add of convolutions and matrix products, nothing "
				"else",
			.wrong = "fused attention is missing on a CPU; in backward passes the weight "
				 "gradient of a grouped convolution is too large by the number of "
				 "groups",
		},
		.rules = flopcounter,
	},
	{
		.peer = {
			.name = "ptflops",
			.version = "0.7.5",
			.prints = "MACs",
			.rule = "one per multiply-add, one per bias, batch norm 2 and "
				"layer norm 1 per element, activations "
				"and pooling 1 per element of the input; attention with its scaling "
				"and softmax where nn.MultiheadAttention does it",
			.wrong = "ReLU, GELU and pooling modules are counted twice, by their hook and "
				 "by the function that they call; classes derived from nn.LayerNorm, "
				 "products by the operator @ and other fused attention are missing",
		},
		.conv1d = RFL_PEER_CONV1D_ADDMM,
		.rules = ptflops,
	},
	{
		.peer = {
			.name = "ptflops-aten",
			.version = "0.7.5",
			.prints = "MACs",
			.rule = "one per multiply-add of convolutions and matrix products, one per "
				"bias",
			.wrong = "fused attention is missing on a CPU",
		},
		.rules = ptflops_aten,
	},
	{
		.peer = {
			.name = "thop",
			.version = "0.1.1.post2209072238",
			.prints = "MACs",
			.rule = "one per multiply-add of convolution and linear modules, norms 4 per "
				"element, average pooling 1 and adaptive pooling of k elements k + 1 "
				"per element of the output",
			.wrong = "nn.MultiheadAttention is missing, with its projections and its "
				 "parameters, as is all that is not a module of PyTorch's own class",
		},
		.hooked_params = true,
		.conv1d = RFL_PEER_CONV1D_UNSEEN,
		.rules = thop,
	},
	{
		.peer = {
			.name = "torchinfo",
			.version = "1.8.0",
			.prints = "mult-adds",
			.rule = "each weight and each bias of a convolution once per place of the "
				"output, each parameter of any other module once",
			.wrong = "a linear layer over many tokens is counted for one of them; an "
				 "embedding is counted as a product with its whole table; a Conv1D is "
				 "taken for a convolution; nn.MultiheadAttention is missing",
		},
		.subclasses = true,
		.conv1d = RFL_PEER_CONV1D_CONV,
		.rules = torchinfo,
	},
	{
		.peer = {
			.name = "deepspeed",
			.version = "0.19.6",
			.prints = "FLOPs",
			.is_flops = true,
			.rule = "two per multiply-add, one per bias of a convolution; batch norm 2 and "
				"layer norm 5 per element, ReLU, SiLU, GELU and pooling 1 per element "
				"of the input",
			.wrong = "ReLU6, the hard activations, sigmoid, and all arithmetic by operators "
				 "are missing; a second profile in one process counts matrix products "
				 "again",
		},
		.conv1d = RFL_PEER_CONV1D_ADDMM,
		.rules = deepspeed,
	},
	{
		.peer = {
			.name = "calflops",
			.version = "0.3.2",
			.prints = "FLOPs",
			.is_flops = true,
			.rule = "as deepspeed, without products by the operator @ and fused attention",
			.wrong = "both products of attention are missing, its projections are not; "
				 "ReLU6, the hard activations, sigmoid, and all arithmetic by operators "
				 "are missing",
		},
		.conv1d = RFL_PEER_CONV1D_ADDMM,
		.rules = calflops,
	},
};

const struct rfl_peer_row *rfl_peer__row(size_t i)
{
	return i < RFL_ARRAY_LEN(rows) ? &rows[i] : NULL;
}
