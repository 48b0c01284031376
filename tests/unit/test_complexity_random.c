/*
 * test_complexity_random.c - what must hold of the counts and the memory of any network: random
 * ones of all operations, with sizes of every magnitude. A size that does not fit is refused, the
 * rest is never negative and never more where more is fused. Sanitizers see to the arithmetic.
 */
#include "tests/unit/rfl_test.h"

#include <string.h>

#include "complexity/count.h"
#include "complexity/count/memory.h"
#include "complexity/op.h"
#include "tests/unit/build_rig.h"

enum { NETS = 100000, MAX_OPS = 5, MAX_OPERANDS = 3 };

/* Marsaglia's xorshift, so that every run sees the same networks. */
static uint64_t draw(uint64_t n)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static bool coin(void)
{
	return draw(2);
}

static int64_t any_size(void)
{
	static const int64_t small[] = { 1, 1, 2, 3, 7, 8 };

	switch (draw(10)) {
	case 0:
		return INT64_C(1) << draw(63);
	case 1:
		return (INT64_C(1) << draw(62)) + 1;
	case 2:
		return INT64_MAX / (1 + (int64_t)draw(17));
	default:
		return small[draw(RFL_ARRAY_LEN(small))];
	}
}

/* A dimension, or a size, most of them 1 or 2; half of the values that may be 0 are. */
static int64_t any_int(const struct rfl_op_attr *attr)
{
	if (strstr(attr->name, "dim") || strstr(attr->name, "first") || strstr(attr->name, "drop"))
		return (int64_t)draw(3);
	if (attr->min <= 0 && coin())
		return 0;
	return draw(4) ? 1 + (int64_t)draw(2) : any_size();
}

static void fill_attr(struct rfl_node *node, const struct rfl_op_attr *attr)
{
	void *at = (char *)node + attr->offset;

	if (attr->type == RFL_ATTR_INT) {
		*(int64_t *)at = any_int(attr);
	} else if (attr->type == RFL_ATTR_REAL) {
		*(double *)at = (double)draw(10) / 10;
	} else if (attr->type == RFL_ATTR_BOOL) {
		*(bool *)at = coin();
	} else if (attr->type == RFL_ATTR_SHAPE) {
		struct rfl_shape *shape = at;

		shape->ndim = 1 + (int)draw(3);
		for (int i = 0; i < shape->ndim; i++)
			shape->dim[i] = any_size();
	} else {
		int64_t *order = at;
		int64_t turned = (int64_t)draw(2);

		for (int i = 0; i < RFL_NET_MAX_DIMS; i++)
			order[i] = i < 2 ? i ^ turned : i;
	}
}

/* What must agree with the input for the operation to be taken at all. */
static void fit_attrs(struct rfl_node *node, const struct rfl_shape *in)
{
	struct rfl_conv2d *conv = &node->attr.conv2d;
	int64_t last = in->ndim > 0 ? in->dim[in->ndim - 1] : 1;
	struct rfl_shape *rows = &node->attr.gather.shape;

	if (node->op == RFL_OP_CONV2D) {
		conv->in_channels = in->dim[0];
		conv->groups = coin() ? 1 : conv->in_channels;
		conv->out_channels *= conv->groups == 1 || conv->out_channels > 1 << 20
					      ? 1
					      : conv->groups % (1 << 20);
	} else if (node->op == RFL_OP_LINEAR) {
		node->attr.linear.in_features = last;
	} else if (node->op == RFL_OP_BATCH_NORM) {
		node->attr.batch_norm.channels = in->dim[0];
	} else if (node->op == RFL_OP_LAYER_NORM || node->op == RFL_OP_RMS_NORM) {
		node->attr.norm.features = last;
	} else if (node->op == RFL_OP_GATHER) {
		rows->dim[rows->ndim - 1] = last;
	} else if (node->op == RFL_OP_RESHAPE && coin()) {
		node->attr.reshape.shape = *in;
	}
}

static int operands_of(const struct rfl_op_info *op)
{
	switch (op->arity) {
	case 0:
		return 1;
	case RFL_OP_NO_INPUTS:
		return 0;
	case RFL_OP_ANY_INPUTS:
		return 1 + (int)draw(MAX_OPERANDS);
	default:
		return op->arity;
	}
}

/* @return its place, -1 when it was refused */
static int add_any(struct rfl_net_builder *b)
{
	enum rfl_op op = (enum rfl_op)(RFL_OP_INPUT + 1 + draw(RFL_OP_CROSS_ENTROPY - 1));
	const struct rfl_op_info *info = rfl_op_info_of(op);
	struct rfl_node node = { .op = op, .ninputs = operands_of(info) };
	int input[MAX_OPERANDS];

	for (int k = 0; k < node.ninputs; k++)
		input[k] = coin() ? b->nnodes - 1 : (int)draw((uint64_t)b->nnodes);
	node.input = input;
	node.batchless = node.ninputs == 0;
	node.inplace = node.ninputs > 0 && op >= RFL_OP_RELU && op <= RFL_OP_DIV && coin();
	for (size_t i = 0; i < info->nattrs; i++)
		fill_attr(&node, &info->attrs[i]);
	if (node.ninputs > 0)
		fit_attrs(&node, &b->nodes[input[0]].shape);
	return rfl_net_append(b, &node, "op");
}

/* NULL: refused, as most are. */
static struct rfl_net *any_net(void)
{
	struct rfl_net_builder *b = rfl_net_builder_new("any", "nets");
	struct rfl_net *net = NULL;
	int x = coin() ? rfl_net_input(b, any_size(), any_size(), any_size())
		       : rfl_net_tokens(b, any_size());

	for (uint64_t n = 1 + draw(MAX_OPS); n > 0 && x >= 0; n--)
		x = add_any(b);
	return rfl_net_finish(b, x, &net, NULL) == RFL_OK ? net : NULL;
}

static struct rfl_memory_options any_options(void)
{
	struct rfl_memory_options o = {
		.count = {
			.batch = coin() ? any_size() : 1,
			.training = coin(),
			.input_grad = coin(),
			.dtype = (enum rfl_dtype)draw(RFL_DTYPE_BF16 + 1),
			.optimizer = (enum rfl_optimizer_kind)draw(RFL_OPT_ADAMW + 1),
			.causal_half = coin(),
		},
		.device = coin() ? RFL_MEMORY_GPU : RFL_MEMORY_CPU,
		.update = (enum rfl_update)draw(RFL_UPDATE_FUSED + 1),
		.accumulate = (int64_t)draw(3),
	};

	o.count.master_weights = o.count.dtype != RFL_DTYPE_F32 && coin();
	return o;
}

static void check_count(const struct rfl_net *net, const struct rfl_count_options *options)
{
	enum { WORDS = sizeof(struct rfl_cost) / sizeof(int64_t) };
	struct rfl_count *count = NULL;
	enum rfl_rc rc = rfl_count_net(net, options, &count, NULL);

	if (rc != RFL_OK) {
		assert_int_equal(rc, RFL_EOVERFLOW);
		return;
	}
	for (int i = 0; i < count->nnodes; i++)
		for (int k = 0; k < WORDS; k++)
			assert_true(((const int64_t *)(const void *)&count->nodes[i])[k] >= 0);
	for (int scope = RFL_SCOPE_FORWARD; scope <= RFL_SCOPE_STEP; scope++)
		assert_true(rfl_count_bytes(count, RFL_FUSION_FUSED, (enum rfl_scope)scope) <=
			    rfl_count_bytes(count, RFL_FUSION_UNFUSED, (enum rfl_scope)scope));
	rfl_count_free(count);
}

static void check_memory(const struct rfl_net *net, const struct rfl_memory_options *options)
{
	const int64_t bytes = any_size();
	struct rfl_memory *m = NULL;
	enum rfl_rc rc = rfl_memory_new(net, options, &m, NULL);
	int64_t most = 0;

	if (rc != RFL_OK) {
		assert_int_equal(rc, RFL_EOVERFLOW);
		return;
	}
	assert_true(m->saved >= 0 && m->input > 0 && m->peak >= m->weights + m->input);
	for (int i = 0; i < m->nnodes; i++)
		assert_true(m->node_saved[i] >= 0);
	if (rfl_memory_fit(m, bytes, &most, NULL) == RFL_OK) {
		assert_true(most == 0 || m->peak <= bytes);
		if (most < INT64_MAX && rfl_memory_at(m, most + 1, NULL) == RFL_OK)
			assert_true(m->peak > bytes);
	}
	rfl_memory_free(m);
}

static void any_network(void **state)
{
	int seen[RFL_OP_COUNT] = { 0 };

	(void)state;
	for (int i = 0; i < NETS; i++) {
		struct rfl_memory_options options = any_options();
		struct rfl_net *net = any_net();

		if (!net)
			continue;
		for (int k = 0; k < net->nnodes; k++)
			seen[net->nodes[k].op]++;
		check_count(net, &options.count);
		check_memory(net, &options);
		rfl_net_free(net);
	}
	for (int op = 0; op < RFL_OP_CROSS_ENTROPY; op++)
		if (!seen[op])
			fail_msg("no network with %s", rfl_op_info_of((enum rfl_op)op)->name);
}

/* A sum that broadcasts past 63 bits, in place: its size is not even computed. */
static void refuses_broadcasts_that_do_not_fit(void **state)
{
	const int64_t side = INT64_C(1) << 40;
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x = rfl_net_input(b, 1, side, 1);

	(void)state;
	x = rfl_add(b, x, rfl_permute(b, x, &(struct rfl_shape){ .ndim = 3, .dim = { 0, 2, 1 } }),
		    RFL_INPLACE);
	assert_int_equal(rfl_net_finish(b, x, &net, &err), RFL_EOVERFLOW);
	assert_null(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_network),
		cmocka_unit_test(refuses_broadcasts_that_do_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
