/*
 * sums.c - other counters: finding one by its name, and applying its rules to a network.
 */
#include "complexity/peer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/num.h"
#include "complexity/count.h"
#include "complexity/peer/impl.h"

const struct rfl_peer *rfl_peer_at(size_t i)
{
	const struct rfl_peer_row *row = rfl_peer__row(i);

	return row ? &row->peer : NULL;
}

enum rfl_rc rfl_peer_find(const char *name, const struct rfl_peer **ret, struct rfl_err *err)
{
	const struct rfl_peer *peer;
	struct rfl_buf all;
	enum rfl_rc rc;

	for (size_t i = 0; (peer = rfl_peer_at(i)); i++) {
		if (strcmp(peer->name, name) == 0) {
			*ret = peer;
			return RFL_OK;
		}
	}
	rfl_buf_init(&all, 0);
	for (size_t i = 0; (peer = rfl_peer_at(i)); i++)
		rfl_buf_printf(&all, "%s%s", i ? ", " : "", peer->name);
	rc = rfl_fail(err, RFL_ENOTFOUND, 0, "no counter '%s'; known are %s", name,
		      rfl_buf_str(&all));
	rfl_buf_fini(&all);
	return rc;
}

/* A network under a tool. */
struct view {
	const struct rfl_peer_row *row;
	const struct rfl_net *net;
	struct rfl_count *count;
	enum rfl_peer_caller *caller; /* of each node */
};

/* LayerNorm2d: a module of its own around the permutations and the norm. */
static bool is_derived(const struct rfl_net *net, const struct rfl_node *node)
{
	const struct rfl_node *before = node->ninputs ? &net->nodes[node->input[0]] : node;

	return node->op == RFL_OP_LAYER_NORM && before->op == RFL_OP_PERMUTE &&
	       strcmp(before->name, node->name) == 0;
}

static bool is_conv1d(const struct rfl_node *node)
{
	return node->op == RFL_OP_LINEAR && node->attr.linear.transposed;
}

static bool is_linear_function(const struct rfl_node *node)
{
	return node->op == RFL_OP_LINEAR && node->functional;
}

/* Swin's version 2 multiplies normalised queries and keys by the operator, all else by functions.
 */
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

/*
 * A packed projection carries the path of its nn.MultiheadAttention; so do the steps after it. An
 * attention in functions lies between two linear layers that are called as functions.
 */
static void find_callers(struct view *v)
{
	const struct rfl_net *net = v->net;
	const char *attention = NULL; /* path of the one that we are in */
	bool functions = false;

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (node->op == RFL_OP_LINEAR && node->attr.linear.in_proj)
			attention = node->name;
		else if (attention && strcmp(node->name, attention) != 0)
			attention = NULL;
		if (attention)
			v->caller[i] = RFL_PEER_ATTENTION;
		else if ((functions && !is_cosine_product(net, node)) || is_linear_function(node))
			v->caller[i] = RFL_PEER_FUNCTIONS;
		else if (!node->functional && !is_conv1d(node) &&
			 (v->row->subclasses || !is_derived(net, node)))
			v->caller[i] = RFL_PEER_MODULE;
		functions ^= is_linear_function(node);
	}
}

static enum rfl_rc view_init(struct view *v, const struct rfl_peer *peer, const struct rfl_net *net,
			     struct rfl_err *err)
{
	*v = (struct view){ .row = (const struct rfl_peer_row *)(const void *)peer, .net = net };
	struct rfl_count_options options = {
		.batch = 1,
		.training = v->row->training,
		.auxiliary = v->row->training,
	};

	v->caller = rfl_alloc_array((size_t)net->nnodes, sizeof(*v->caller));
	if (!v->caller)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", net->model);
	find_callers(v);
	return rfl_count_net(net, &options, &v->count, err);
}

/* Parameters that it uses, its own or another's. */
static int64_t weights(const struct rfl_net *net, const struct rfl_node *node)
{
	int64_t sum = 0;

	for (int k = 0; k < node->nparams; k++)
		if (!rfl_param_is_buffer(net->params[node->param[k]].kind))
			sum += net->params[node->param[k]].numel;
	return sum;
}

static struct rfl_peer_site site_of(const struct view *v, int i)
{
	const struct rfl_node *node = &v->net->nodes[i];
	const struct rfl_cost *cost = &v->count->nodes[i];

	return (struct rfl_peer_site){
		.net = v->net,
		.node = node,
		.macs = cost->macs[RFL_PASS_FORWARD],
		.bias = cost->bias_adds,
		.in = node->ninputs ? rfl_shape_numel(&v->net->nodes[node->input[0]].shape) : 0,
		.out = rfl_shape_numel(&node->shape),
		.weights = weights(v->net, node),
	};
}

static bool add(int64_t weight, int64_t amount, int64_t *sum)
{
	int64_t product;

	return rfl_num_mul(weight, amount, &product) && rfl_num_add(*sum, product, sum);
}

static bool apply(const struct rfl_peer_weights *w, const struct rfl_peer_site *s, int64_t *sum)
{
	return add(w->macs, s->macs, sum) && add(w->bias, s->bias, sum) && add(w->in, s->in, sum) &&
	       add(w->out, s->out, sum) && add(w->weights, s->weights, sum);
}

/* What the tool cannot do. */
static enum rfl_rc check_closed(const struct view *v, const struct rfl_peer_site *s,
				struct rfl_err *err)
{
	const struct rfl_node *node = s->node;

	if (node->op == RFL_OP_BATCH_NORM && v->row->training &&
	    s->in == node->attr.batch_norm.channels)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"%s: %s runs one image in training mode, and PyTorch refuses a "
				"batch norm over one value for each channel",
				node->name, v->row->peer.name);
	return RFL_OK;
}

/* A Conv1D where it is no linear layer to the tool; the products are part of it. */
static bool charge_conv1d(const struct view *v, const struct rfl_peer_site *s, int64_t *ret,
			  int64_t *products)
{
	int64_t features = s->node->attr.linear.out_features;

	switch (v->row->conv1d) {
	case RFL_PEER_CONV1D_LINEAR:
	case RFL_PEER_CONV1D_UNSEEN:
		break;
	case RFL_PEER_CONV1D_ADDMM:
		return add(v->row->peer.is_flops ? 2 : 1, s->macs, products) &&
		       rfl_num_add(*products, s->bias ? features : 0, ret);
	case RFL_PEER_CONV1D_CONV:
		*products = 0;
		return rfl_num_mul(s->weights, features, ret);
	}
	return true;
}

/* GPT-2 writes the formula of its GELU out with operators: no tool sees it. */
static bool is_written_out(const struct rfl_node *node)
{
	return node->op == RFL_OP_GELU && node->attr.gelu.tanh;
}

/* What it charges beside the call; NULL: nothing. */
static const struct rfl_peer_weights *more_of(const struct rfl_peer_rule *rule,
					      enum rfl_peer_caller caller)
{
	switch (caller) {
	case RFL_PEER_MODULE:
		return &rule->module;
	case RFL_PEER_ATTENTION:
		return &rule->attention;
	case RFL_PEER_FUNCTIONS:
		return &rule->functions;
	case RFL_PEER_STEP:
		break;
	}
	return NULL;
}

/* What it charges one node, and the part of that which are multiply-adds, times their weight. */
static enum rfl_rc charge(const struct view *v, int i, int64_t *ret, int64_t *products,
			  struct rfl_err *err)
{
	const struct rfl_node *node = &v->net->nodes[i];
	const struct rfl_peer_rule *rule = &v->row->rules[node->op];
	const struct rfl_peer_weights *more = more_of(rule, v->caller[i]);
	struct rfl_peer_site s;
	int64_t odd = 0;
	enum rfl_rc rc;
	bool fits;

	*ret = *products = 0;
	if ((node->auxiliary && !v->row->training) || is_written_out(node))
		return RFL_OK;
	s = site_of(v, i);
	rc = check_closed(v, &s, err);
	if (rc != RFL_OK)
		return rc;
	if (is_conv1d(node) && v->row->conv1d != RFL_PEER_CONV1D_LINEAR)
		fits = charge_conv1d(v, &s, ret, products);
	else
		fits = apply(&rule->call, &s, ret) && add(rule->call.macs, s.macs, products);
	if (fits && more)
		fits = apply(more, &s, ret) && add(more->macs, s.macs, products);
	if (fits && rule->odd)
		fits = rule->odd(&s, v->caller[i], &odd) && rfl_num_add(*ret, odd, ret);
	return fits ? RFL_OK
		    : rfl_fail(err, RFL_EOVERFLOW, 0, "%s: %s: does not fit 63 bits", v->net->model,
			       node->name);
}

/* Parameters that a tool with hooks sees at a node: those of the modules that it hooks. */
static int64_t hooked_params(const struct view *v, int i)
{
	const struct rfl_node *node = &v->net->nodes[i];
	const struct rfl_peer_weights *w = &v->row->rules[node->op].module;

	if (node->auxiliary || v->caller[i] != RFL_PEER_MODULE || !(w->macs || w->in))
		return 0;
	return weights(v->net, node);
}

/* One node's share of everything that is said of the network. */
static enum rfl_rc add_node(const struct view *v, int i, struct rfl_peer_count *sum, int64_t *node,
			    struct rfl_err *err)
{
	int64_t products, outputs, params;
	enum rfl_rc rc = charge(v, i, node, &products, err);

	if (rc != RFL_OK)
		return rc;
	outputs = products > 0 ? rfl_shape_numel(&v->net->nodes[i].shape) : 0;
	params = v->row->hooked_params ? hooked_params(v, i) : 0;
	if (rfl_num_add(sum->total, *node, &sum->total) &&
	    rfl_num_add(sum->macs, products, &sum->macs) &&
	    rfl_num_add(sum->outputs, outputs, &sum->outputs) &&
	    rfl_num_add(sum->params, params, &sum->params))
		return RFL_OK;
	return rfl_fail(err, RFL_EOVERFLOW, 0, "%s: does not fit 63 bits", v->net->model);
}

enum rfl_rc rfl_peer_count(const struct rfl_peer *peer, const struct rfl_net *net,
			   struct rfl_peer_count *ret, int64_t *nodes, struct rfl_err *err)
{
	struct rfl_peer_count sum = { 0 };
	int64_t node;
	struct view v;
	enum rfl_rc rc = view_init(&v, peer, net, err);

	for (int i = 0; rc == RFL_OK && i < net->nnodes; i++) {
		rc = add_node(&v, i, &sum, &node, err);
		if (rc == RFL_OK && nodes)
			nodes[i] = node;
	}
	if (rc == RFL_OK) {
		sum.macs /= peer->is_flops ? 2 : 1;
		if (!v.row->hooked_params)
			sum.params = rfl_net_param_count(net);
		*ret = sum;
	}
	rfl_count_free(v.count);
	free(v.caller);
	return rc;
}

enum rfl_rc rfl_peer_total(const struct rfl_peer *peer, const struct rfl_net *net, int64_t *ret,
			   struct rfl_err *err)
{
	struct rfl_peer_count count;
	enum rfl_rc rc = rfl_peer_count(peer, net, &count, NULL, err);

	if (rc == RFL_OK)
		*ret = count.total;
	return rc;
}
