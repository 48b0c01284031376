/*
 * peer.c - other FLOP-counting tools: their rules as data (a weight per multiply-add, bias and
 * element for each tool and operation) and their results for a network. The weights were read from
 * the source of each tool and checked against its output; operations not listed in a table are
 * free. docs/reference/peers.md explains the rules.
 */
#include "complexity/peer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "complexity/count.h"

/* The code that runs an operation. */
enum caller {
	STEP,      /* code between modules */
	MODULE,    /* a separate module */
	ATTENTION, /* an nn.MultiheadAttention */
	FUNCTIONS, /* an attention written with functions, including its projections */
};

/* The count of a tool for an operation. */
struct weights {
	int macs;    /* per multiply-add, including taps in the padding */
	int bias;    /* per bias addition, one for each output element */
	int in, out; /* per element of the first input and of the output */
	int weights; /* per parameter used, for any size of the input */
};

/* One operation of a network as seen by tools; sizes are for one sample. */
struct site {
	const struct rfl_net *net;
	const struct rfl_node *node;
	int64_t macs, bias, in, out, weights;
};

/* A tool that replaces functions (or reads a trace) sees every operation; a tool that hooks modules
 * sees an operation only if a module of one of PyTorch's own classes runs it; a tool with both
 * methods counts such an operation twice. */
struct rule {
	struct weights call;      /* in all cases */
	struct weights module;    /* in addition, if a module runs it */
	struct weights attention; /* in addition, if nn.MultiheadAttention runs it */
	/* In addition, in an attention written with torch.matmul and F.softmax. */
	struct weights functions;
	/* An amount that no weight expresses; NULL: none. False if too large to be exact. */
	bool (*odd)(const struct site *site, enum caller caller, int64_t *ret);
};

/* How a tool counts a Conv1D, GPT-2's linear layer, a separate class that calls addmm. */
enum conv1d {
	CONV1D_LINEAR, /* as a linear layer */
	CONV1D_ADDMM,  /* its products, and the bias once for all rows */
	CONV1D_CONV,   /* as a convolution, because of its name */
	CONV1D_UNSEEN,
};

struct rfl_peer_rules {
	bool training;   /* runs the net in training mode, with auxiliary heads */
	bool subclasses; /* its hooks apply to classes derived from PyTorch's */
	enum conv1d conv1d;
	bool hooked_params; /* counts only the parameters of hooked modules */
	struct rule of[RFL_OP_COUNT];
};

/* The core count: only convolutions and matmuls. */
#define CORE(n_)                                                                          \
	[RFL_OP_CONV2D] = { .call.macs = (n_) }, [RFL_OP_LINEAR] = { .call.macs = (n_) }, \
	[RFL_OP_MATMUL] = { .call.macs = (n_) }

#define FVCORE(batch_norm_)                                          \
	CORE(1), [RFL_OP_BATCH_NORM] = { .call.in = (batch_norm_) }, \
		 [RFL_OP_LAYER_NORM] = { .call.in = 5 },             \
		 [RFL_OP_ADAPTIVE_AVG_POOL] = { .call.in = 1 }

#define FVCORE_FAULTS                                                                      \
	"the reported FLOPs are multiply-adds; fused attention is missing except for its " \
	"projections"

/* The number of scores that a softmax reads: one per pair of a query and a key. */
static bool ptflops_attention(const struct site *site, enum caller caller, int64_t *ret)
{
	const struct rfl_shape *q = &site->net->nodes[site->node->input[0]].shape;
	const struct rfl_shape *k = &site->net->nodes[site->node->input[1]].shape;

	*ret = 0;
	return caller != ATTENTION ||
	       rfl_num_mul(site->in / q->dim[q->ndim - 1], k->dim[k->ndim - 2], ret);
}

/* k + 1 per output element, where k is the quotient of the sizes, not necessarily an integer. */
static bool thop_adaptive(const struct site *site, enum caller caller, int64_t *ret)
{
	const int64_t exact = INT64_C(1) << 52; /* above it, a double may be off by one */

	*ret = 0;
	if (caller != MODULE)
		return true;
	if (site->in > exact || site->out > exact)
		return false;
	*ret = (int64_t)(((double)site->in / (double)site->out + 1) * (double)site->out);
	return true;
}

/* A normalisation written out in steps is still a module with a weight. */
static bool torchinfo_parameter(const struct site *site, enum caller caller, int64_t *ret)
{
	const struct rfl_parameter *a = &site->node->attr.parameter;

	(void)caller;
	*ret = a->norm_weight || a->norm_bias ? site->weights : 0;
	return true;
}

#define CALFLOPS                                                                      \
	[RFL_OP_CONV2D] = { .call = { .macs = 2, .bias = 1 } },                       \
	[RFL_OP_LINEAR] = { .call.macs = 2 }, [RFL_OP_BATCH_NORM] = { .call.in = 2 }, \
	[RFL_OP_LAYER_NORM] = { .call.in = 5 }, [RFL_OP_RELU] = { .call.in = 1 },     \
	[RFL_OP_SILU] = { .call.in = 1 }, [RFL_OP_GELU] = { .call.in = 1 },           \
	[RFL_OP_MAX_POOL] = { .call.in = 1 }, [RFL_OP_AVG_POOL] = { .call.in = 1 },   \
	[RFL_OP_ADAPTIVE_AVG_POOL] = { .call.in = 1 },                                \
	[RFL_OP_SOFTMAX] = { .attention.in = 1, .functions.in = 1 }

#define RULES(...)                              \
	.rules = &(const struct rfl_peer_rules) \
	{                                       \
		__VA_ARGS__                     \
	}

static const struct rfl_peer peers[] = {
	{
		.name = "torchvision",
		.version = "0.26.0",
		.prints = "GFLOPS",
		.rule = "1 per multiply-add of convolutions, linear layers and both products of "
			"attention (the core count)",
		.wrong = "the reported FLOPs are multiply-adds",
		RULES(.of = { CORE(1), [RFL_OP_SDPA] = { .call.macs = 1 } }),
	},
	{
		.name = "fvcore",
		.version = "0.1.5.post20221221",
		.prints = "FLOPs",
		.rule = "1 per multiply-add; batch norm 2 and layer norm 5 per element, adaptive "
			"average pooling 1 per input element",
		.wrong = FVCORE_FAULTS,
		RULES(.of = { FVCORE(2) }),
	},
	{
		.name = "fvcore-train",
		.version = "0.1.5.post20221221",
		.prints = "FLOPs",
		.rule = "as fvcore, but in training mode: batch norm 5 per element, auxiliary "
			"heads included; forward pass only",
		.wrong = FVCORE_FAULTS,
		RULES(.training = true, .of = { FVCORE(5) }),
	},
	{
		.name = "flopcounter",
		.version = "2.11.0",
		.prints = "FLOPs",
		.is_flops = true,
		.rule = "2 per multiply-add of convolutions and matmuls",
		.wrong = "fused attention is missing on a CPU; in backward passes, the count for "
			 "the weight gradient of a grouped convolution is too high by a factor of "
			 "the number of groups",
		RULES(.of = { CORE(2) }),
	},
	{
		.name = "ptflops",
		.version = "0.7.5",
		.prints = "MACs",
		.rule = "1 per multiply-add and per bias, batch norm 2 and layer norm 1 per "
			"element, activations and pooling 1 per input element; "
			"nn.MultiheadAttention includes its scaling and softmax",
		.wrong = "ReLU, GELU and pooling modules are counted twice, by their hook and by "
			 "the function they call; classes derived from nn.LayerNorm, products with "
			 "the operator @ and other fused attention are missing",
		RULES(.conv1d = CONV1D_ADDMM,
		      .of = { [RFL_OP_CONV2D] = { .module = { .macs = 1, .bias = 1 } },
			      [RFL_OP_LINEAR] = { .module = { .macs = 1, .bias = 1 },
						  .attention = { .macs = 1, .bias = 1 } },
			      [RFL_OP_BATCH_NORM] = { .module.in = 2 },
			      /* it has no attribute `affine` */
			      [RFL_OP_LAYER_NORM] = { .module.in = 1 },
			      [RFL_OP_RELU] = { .call.in = 1, .module.in = 1 },
			      [RFL_OP_RELU6] = { .module.in = 1 },
			      [RFL_OP_GELU] = { .call.in = 1, .module.in = 1 },
			      [RFL_OP_SILU] = { .call.in = 1 },
			      [RFL_OP_MAX_POOL] = { .call.in = 1, .module.in = 1 },
			      [RFL_OP_AVG_POOL] = { .call.in = 1, .module.in = 1 },
			      [RFL_OP_ADAPTIVE_AVG_POOL] = { .call.in = 1, .module.in = 1 },
			      /* both products, the scaled queries, the softmax */
			      [RFL_OP_SDPA] = { .attention = { .macs = 1, .in = 1 },
						.odd = ptflops_attention },
			      [RFL_OP_MATMUL] = { .attention.macs = 1, .functions.macs = 1 },
			      [RFL_OP_AFFINE] = { .attention.in = 1 },
			      [RFL_OP_SOFTMAX] = { .attention.in = 1, .functions.in = 1 } }),
	},
	{
		.name = "ptflops-aten",
		.version = "0.7.5",
		.prints = "MACs",
		.rule = "1 per multiply-add of convolutions and matmuls, 1 per bias",
		.wrong = "fused attention is missing on a CPU",
		RULES(.of = { [RFL_OP_CONV2D] = { .call = { .macs = 1, .bias = 1 } },
			      [RFL_OP_LINEAR] = { .call = { .macs = 1, .bias = 1 } },
			      [RFL_OP_MATMUL] = { .call.macs = 1 } }),
	},
	{
		.name = "thop",
		.version = "0.1.1.post2209072238",
		.prints = "MACs",
		.rule = "1 per multiply-add of convolution and linear modules, norms 4 per "
			"element, average pooling 1 and adaptive pooling of k elements k + 1 per "
			"output element",
		.wrong = "nn.MultiheadAttention is missing, including its projections and "
			 "parameters, as is everything except modules of PyTorch's own classes",
		RULES(.conv1d = CONV1D_UNSEEN, .hooked_params = true,
		      .of = { [RFL_OP_CONV2D] = { .module.macs = 1 },
			      [RFL_OP_LINEAR] = { .module.macs = 1 },
			      [RFL_OP_BATCH_NORM] = { .module.in = 4 },
			      [RFL_OP_LAYER_NORM] = { .module.in = 4 },
			      [RFL_OP_AVG_POOL] = { .module.out = 1 },
			      [RFL_OP_ADAPTIVE_AVG_POOL] = { .odd = thop_adaptive } }),
	},
	{
		.name = "torchinfo",
		.version = "1.8.0",
		.prints = "mult-adds",
		.rule = "each weight and bias of a convolution once per output position, each "
			"parameter of other modules once",
		.wrong = "a linear layer over many tokens is counted for only one; an embedding is "
			 "counted as a product with its whole table; a Conv1D is counted as a "
			 "convolution; nn.MultiheadAttention is missing",
		RULES(.conv1d = CONV1D_CONV, .subclasses = true,
		      .of = { [RFL_OP_CONV2D] = { .module = { .macs = 1, .bias = 1 } },
			      [RFL_OP_LINEAR] = { .module.weights = 1 },
			      [RFL_OP_EMBEDDING] = { .module.weights = 1 },
			      [RFL_OP_BATCH_NORM] = { .module.weights = 1 },
			      [RFL_OP_LAYER_NORM] = { .module.weights = 1 },
			      [RFL_OP_RMS_NORM] = { .module.weights = 1 },
			      [RFL_OP_PARAMETER] = { .odd = torchinfo_parameter } }),
	},
	{
		.name = "deepspeed",
		.version = "0.19.6",
		.prints = "FLOPs",
		.is_flops = true,
		.rule = "2 per multiply-add, 1 per bias of a convolution; batch norm 2 and layer "
			"norm 5 per element, ReLU, SiLU, GELU and pooling 1 per input element",
		.wrong = "ReLU6, the hard activations, sigmoid, and all arithmetic with operators "
			 "are missing; a second profile in the same process counts matmuls "
			 "twice",
		RULES(.conv1d = CONV1D_ADDMM,
		      .of = { CALFLOPS, [RFL_OP_MATMUL] = { .call.macs = 2 },
			      [RFL_OP_SDPA] = { .call.macs = 2 } }),
	},
	{
		.name = "calflops",
		.version = "0.3.2",
		.prints = "FLOPs",
		.is_flops = true,
		.rule = "as deepspeed, without products with the operator @ and without fused "
			"attention",
		.wrong = "both products of attention (but not its projections), ReLU6, the hard "
			 "activations, sigmoid, and all arithmetic with operators are missing",
		RULES(.conv1d = CONV1D_ADDMM,
		      .of = { CALFLOPS, [RFL_OP_MATMUL] = { .functions.macs = 2 } }),
	},
};

const struct rfl_peer *rfl_peer_at(size_t i)
{
	return i < RFL_ARRAY_LEN(peers) ? &peers[i] : NULL;
}

enum rfl_rc rfl_peer_find(const char *name, const struct rfl_peer **ret, struct rfl_err *err)
{
	const char *names[RFL_ARRAY_LEN(peers) + 1] = { NULL };
	char advice[RFL_ADVICE_SIZE];

	for (size_t i = 0; i < RFL_ARRAY_LEN(peers); i++) {
		if (strcmp(peers[i].name, name) == 0) {
			*ret = &peers[i];
			return RFL_OK;
		}
		names[i] = peers[i].name;
	}
	return rfl_fail(err, RFL_ENOTFOUND, 0, "no FLOP counter '%s'; %s", name,
			rfl_text_advice(name, names, 2, NULL, advice));
}

static bool is_conv1d(const struct rfl_node *node)
{
	return node->op == RFL_OP_LINEAR && node->attr.linear.transposed;
}

/* LayerNorm2d, a separate module around the permutations and the norm. */
static bool is_derived(const struct rfl_net *net, const struct rfl_node *node)
{
	const struct rfl_node *before = node->ninputs ? &net->nodes[node->input[0]] : node;

	return node->op == RFL_OP_LAYER_NORM && before->op == RFL_OP_PERMUTE &&
	       strcmp(before->name, node->name) == 0;
}

/* Swin version 2 multiplies normalised queries and keys with an operator, others with functions. */
static bool is_cosine_product(const struct rfl_net *net, const struct rfl_node *node)
{
	const struct rfl_node *left;

	if (node->op != RFL_OP_MATMUL)
		return false;
	left = &net->nodes[node->input[0]];
	if (left->op == RFL_OP_CONTIGUOUS)
		left = &net->nodes[left->input[0]];
	return left->op == RFL_OP_MUL;
}

/* A packed projection and the steps after it have the path of their nn.MultiheadAttention. An
 * attention written with functions lies between two linear layers called as functions. */
static void find_callers(const struct rfl_peer_rules *rules, const struct rfl_net *net,
			 enum caller *callers)
{
	const char *attention = NULL; /* path of the current one */
	bool functions = false;

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		bool linear_function = node->op == RFL_OP_LINEAR && node->functional;

		if (node->op == RFL_OP_LINEAR && node->attr.linear.in_proj)
			attention = node->name;
		else if (attention && strcmp(node->name, attention) != 0)
			attention = NULL;
		if (attention)
			callers[i] = ATTENTION;
		else if ((functions && !is_cosine_product(net, node)) || linear_function)
			callers[i] = FUNCTIONS;
		else if (!node->functional && !is_conv1d(node) &&
			 (rules->subclasses || !is_derived(net, node)))
			callers[i] = MODULE;
		functions ^= linear_function;
	}
}

static bool add(int64_t weight, int64_t amount, int64_t *sum)
{
	int64_t product;

	return rfl_num_mul(weight, amount, &product) && rfl_num_add(*sum, product, sum);
}

/* Add the weighted count to `sum` and its multiply-adds to `products`. */
static bool apply(const struct weights *w, const struct site *s, int64_t *sum, int64_t *products)
{
	return add(w->macs, s->macs, sum) && add(w->bias, s->bias, sum) && add(w->in, s->in, sum) &&
	       add(w->out, s->out, sum) && add(w->weights, s->weights, sum) &&
	       add(w->macs, s->macs, products);
}

/* Compute the count and the weighted multiply-adds of one node. False if they do not fit. */
static bool charge(const struct rfl_peer *peer, const struct site *s, enum caller caller,
		   int64_t *ret, int64_t *products)
{
	const struct rule *rule = &peer->rules->of[s->node->op];
	/* in addition to the call */
	const struct weights *more[] = { NULL, &rule->module, &rule->attention, &rule->functions };
	const enum conv1d conv1d = is_conv1d(s->node) ? peer->rules->conv1d : CONV1D_LINEAR;
	int64_t features = s->node->attr.linear.out_features, odd = 0;
	bool fits = true;

	/* GPT-2 writes out its GELU with operators, so no tool sees it. */
	if ((s->node->auxiliary && !peer->rules->training) ||
	    (s->node->op == RFL_OP_GELU && s->node->attr.gelu.tanh))
		return true;
	if (conv1d == CONV1D_LINEAR)
		fits = apply(&rule->call, s, ret, products);
	else if (conv1d == CONV1D_ADDMM)
		fits = add(peer->is_flops ? 2 : 1, s->macs, products) &&
		       rfl_num_add(*products, s->bias ? features : 0, ret);
	else if (conv1d == CONV1D_CONV)
		fits = rfl_num_mul(s->weights, features, ret);
	return fits && (!more[caller] || apply(more[caller], s, ret, products)) &&
	       (!rule->odd || (rule->odd(s, caller, &odd) && rfl_num_add(*ret, odd, ret)));
}

enum rfl_rc rfl_peer_count(const struct rfl_peer *peer, const struct rfl_net *net,
			   struct rfl_peer_count *ret, int64_t *nodes, struct rfl_err *err)
{
	const struct rfl_peer_rules *rules = peer->rules;
	const struct rfl_count_options options = {
		.batch = 1,
		.training = rules->training,
		.auxiliary = rules->training,
	};
	RFL_AUTOFREE enum caller *callers = rfl_alloc_array((size_t)net->nnodes, sizeof(*callers));
	struct rfl_peer_count sum = { 0 };
	RFL_AUTOPTR(count) count = NULL;
	enum rfl_rc rc;

	find_callers(rules, net, callers);
	rc = rfl_count_net(net, &options, &count, err);
	for (int i = 0; rc == RFL_OK && i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];
		const struct weights *hook = &rules->of[node->op].module;
		const struct rfl_cost *cost = &count->nodes[i];
		struct site s = {
			.net = net,
			.node = node,
			.macs = cost->macs[RFL_PASS_FORWARD],
			.bias = cost->bias_adds,
			.in = node->ninputs ? rfl_shape_numel(&net->nodes[node->input[0]].shape)
					    : 0,
			.out = rfl_shape_numel(&node->shape),
		};
		int64_t total = 0, products = 0;
		bool hooked = callers[i] == MODULE && !node->auxiliary && (hook->macs || hook->in);

		for (int k = 0; k < node->nparams; k++) /* owned or borrowed */
			if (!rfl_param_is_buffer(net->params[node->param[k]].kind))
				s.weights += net->params[node->param[k]].numel;
		if (node->op == RFL_OP_BATCH_NORM && rules->training &&
		    s.in == node->attr.batch_norm.channels)
			rc = rfl_fail(
				err, RFL_EUNAVAILABLE, 0,
				"%s: %s runs one image in training mode, where PyTorch rejects a "
				"batch norm over one value per channel; use a larger image",
				node->name, peer->name);
		else if (!charge(peer, &s, callers[i], &total, &products))
			rc = rfl_fail(err, RFL_EOVERFLOW, 0, "%s: %s: the count exceeds 63 bits",
				      net->model, node->name);
		else if (!rfl_num_add(sum.total, total, &sum.total) ||
			 !rfl_num_add(sum.macs, products, &sum.macs) ||
			 !rfl_num_add(sum.outputs, products > 0 ? s.out : 0, &sum.outputs) ||
			 !rfl_num_add(sum.params, hooked ? s.weights : 0, &sum.params))
			rc = rfl_fail(err, RFL_EOVERFLOW, 0, "%s: the count exceeds 63 bits",
				      net->model);
		if (rc == RFL_OK && nodes)
			nodes[i] = total;
	}
	if (rc == RFL_OK) {
		sum.macs /= peer->is_flops ? 2 : 1;
		if (!rules->hooked_params)
			sum.params = rfl_net_param_count(net);
		*ret = sum;
	}
	return rc;
}
