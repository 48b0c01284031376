/*
 * test_complexity_ops_rows.c - the table of operations: every row has what its kind needs, every
 * cost is what a cost can be, and autograd keeps what PyTorch keeps.
 */
#include "tests/unit/ops_expect.h"
#include "tests/unit/ops_rig.h"
#include "tests/unit/published.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"

/* --- what autograd keeps --- */

struct kept {
	bool in[3], out;
	int64_t other;
};

static struct kept kept_of(struct rfl_cost_context *c)
{
	const struct rfl_op_info *op = rfl_op_info_of(c->node->op);
	struct rfl_op_saves saves = { 0 };
	struct kept kept = { .out = false };

	if (op->saved)
		op->saved(rfl_links_at(c, BATCH), &saves);
	assert_in_range(saves.n, 0, RFL_OP_MAX_SAVED);
	for (int i = 0; i < saves.n; i++) {
		if (saves.item[i].tensor >= 0)
			kept.in[saves.item[i].tensor] = true;
		else if (saves.item[i].tensor == RFL_SAVED_OUTPUT)
			kept.out = true;
		else
			kept.other += saves.item[i].bytes;
	}
	assert_false(c->overflow);
	return kept;
}

static struct rfl_links *links_of(const struct rfl_net *net,
				  const struct rfl_count_options *options, struct rfl_arena *arena)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_links *links = NULL;

	assert_ok(rfl_links_new(net, options, arena, &links, &err), &err);
	return links;
}

/* One row of op_saved.csv. */
static void check_kept(const char *name, const char *tensors, int64_t other)
{
	static const char *const names[] = { "op" };
	bool loss = strncmp(name, "cross_entropy", 13) == 0;
	struct rfl_count_options options = {
		.batch = BATCH,
		.training = true,
		.frozen = names,
		.nfrozen = says(name, "frozen"),
	};
	int node = 0;
	struct rfl_net *net =
		loss ? classifier(says(name, "composed") ? RFL_LOSS_COMPOSED : RFL_LOSS_FUSED)
		     : rig_case(name, &node);
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_links *links = links_of(net, &options, arena);
	struct rfl_cost_context *c = &links->contexts[loss ? net->nnodes : node];
	struct kept kept;

	c->on_cpu = true;
	kept = kept_of(c);
	if (kept.in[0] != says(tensors, "in0") || kept.in[1] != says(tensors, "in1") ||
	    kept.in[2] != says(tensors, "in2") || kept.out != says(tensors, "out") ||
	    kept.other != other)
		fail_msg("%s: keeps%s%s%s%s and %lld bytes, not '%s' and %lld", name,
			 kept.in[0] ? " in0" : "", kept.in[1] ? " in1" : "",
			 kept.in[2] ? " in2" : "", kept.out ? " out" : "", (long long)kept.other,
			 tensors, (long long)other);
	rfl_arena_free(arena);
	rfl_net_free(net);
}

static void keeps_what_pytorch_keeps(void **state)
{
	struct rfl_csv *csv = open_published("op_saved.csv");
	int rows = 0;

	(void)state;
	while (next(csv)) {
		check_kept(text(csv, "case"), text(csv, "tensors"), integer(csv, "other_bytes"));
		rows++;
	}
	rfl_csv_close(csv);
	assert_int_equal(rows, 71);
}

/* Where PyTorch's kernels for a GPU keep something else; statistics of 16-bit tensors are F32. */
static void keeps_something_else_on_a_gpu(void **state)
{
	static const struct {
		const char *name;
		enum rfl_dtype dtype;
		struct kept kept;
	} rows[] = {
		{ "dropout", RFL_DTYPE_F32, { .other = 384 } }, /* one byte per element */
		{ "dropout inplace", RFL_DTYPE_F32, { .other = 1536 } },
		{ "rms_norm", RFL_DTYPE_F32, { .in = { true }, .other = 192 } },
		{ "layer_norm", RFL_DTYPE_BF16, { .in = { true }, .other = 384 } },
		{ "relu6 inplace", RFL_DTYPE_BF16, { .other = 768 } },
		{ "sdpa dropout",
		  RFL_DTYPE_F32,
		  { .in = { true, true, true }, .out = true, .other = 192 } },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_count_options options = {
			.batch = BATCH,
			.training = true,
			.dtype = rows[i].dtype,
		};
		int node;
		struct rfl_net *net = rig_case(rows[i].name, &node);
		struct rfl_arena *arena = rfl_arena_new();
		struct rfl_links *links = links_of(net, &options, arena);
		struct kept kept = kept_of(&links->contexts[node]);

		assert_memory_equal(kept.in, rows[i].kept.in, sizeof(kept.in));
		assert_int_equal(kept.out, rows[i].kept.out);
		assert_int_equal(kept.other, rows[i].kept.other);
		rfl_arena_free(arena);
		rfl_net_free(net);
	}
}

/* --- what holds for every row of the table --- */

static size_t size_of(enum rfl_attr_type type)
{
	switch (type) {
	case RFL_ATTR_INT:
		return sizeof(int64_t);
	case RFL_ATTR_REAL:
		return sizeof(double);
	case RFL_ATTR_BOOL:
		return sizeof(bool);
	case RFL_ATTR_SHAPE:
		return sizeof(struct rfl_shape);
	case RFL_ATTR_ORDER:
		return RFL_NET_MAX_DIMS * sizeof(int64_t);
	}
	return 0;
}

static void check_attrs(const struct rfl_op_info *op)
{
	const size_t end = offsetof(struct rfl_node, attr) + sizeof(((struct rfl_node *)0)->attr);

	assert_true((op->attrs == NULL) == (op->nattrs == 0));
	for (size_t i = 0; i < op->nattrs; i++) {
		const struct rfl_op_attr *a = &op->attrs[i];

		assert_true(a->offset >= offsetof(struct rfl_node, attr));
		assert_true(a->offset + size_of(a->type) <= end);
		assert_false(a->required && a->inferred);
		if (a->type == RFL_ATTR_INT && !a->required && !a->inferred)
			assert_true(a->def >= (double)a->min);
		for (size_t k = 0; k < i; k++) {
			size_t other = op->attrs[k].offset;

			assert_string_not_equal(a->name, op->attrs[k].name);
			assert_true(a->offset >= other + size_of(op->attrs[k].type) ||
				    other >= a->offset + size_of(a->type));
		}
	}
}

static void every_row_is_complete(void **state)
{
	(void)state;
	for (int i = 0; i < RFL_OP_UNKNOWN; i++) {
		const struct rfl_op_info *op = rfl_op_info_of((enum rfl_op)i);

		assert_non_null(op->name);
		assert_non_null(op->module);
		assert_non_null(op->infer);
		/* What has inputs takes part in the backward pass. */
		assert_true((op->autograd == NULL) == (op->arity == RFL_OP_NO_INPUTS));
		if (op->view)
			assert_true(op->fuses && op->saved == NULL);
		else if (op->arity != RFL_OP_NO_INPUTS)
			assert_non_null(op->cost);
		check_attrs(op);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(op->name, rfl_op_info_of((enum rfl_op)k)->name);
	}
}

/* docs/reference/operations.md names every operation: what it computes, what it moves, what is kept.
 */
static void every_row_is_documented(void **state)
{
	static const char *const parts[] = { "## Multiply-adds", "## Traffic",
					     "## What autograd keeps" };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf page;

	(void)state;
	rfl_buf_init(&page, 0);
	assert_ok(rfl_file_read(RFL_TEST_DATA "/../../docs/reference/operations.md", &page, &err),
		  &err);
	for (size_t part = 0; part < RFL_ARRAY_LEN(parts); part++) {
		const char *from = strstr(rfl_buf_str(&page), parts[part]);
		const char *to = part + 1 < RFL_ARRAY_LEN(parts)
					 ? strstr(rfl_buf_str(&page), parts[part + 1])
					 : page.data + page.len;

		assert_true(from && to && from < to);
		for (int i = 0; i < RFL_OP_UNKNOWN; i++) {
			const char *name = rfl_op_info_of((enum rfl_op)i)->name, *at;
			char quoted[64];

			(void)snprintf(quoted, sizeof(quoted), "`%s`", name);
			at = strstr(from, quoted);
			if (!at || at > to)
				fail_msg("%s: %s is not there", parts[part], name);
		}
	}
	rfl_buf_fini(&page);
}

static int64_t bytes_of(const struct rfl_cost *cost, enum rfl_fusion level, enum rfl_pass pass)
{
	return cost->traffic[level][pass].read_bytes + cost->traffic[level][pass].write_bytes;
}

static void check_properties(const char *name, const struct rfl_net *net, int node,
			     const struct rfl_count *count, bool trained)
{
	const struct rfl_op_info *op = rfl_op_info_of(net->nodes[node].op);
	const struct rfl_cost *cost = &count->nodes[node];

	if (!op->view && !says(name, "none"))
		assert_true(bytes_of(cost, RFL_FUSION_UNFUSED, RFL_PASS_FORWARD) > 0);
	for (int pass = 0; pass < RFL_PASS_COUNT; pass++) {
		const struct rfl_elementwise *e = &cost->elementwise[pass];

		assert_true(e->add >= 0 && e->mul >= 0 && e->compare >= 0 && e->special >= 0);
		assert_true(bytes_of(cost, RFL_FUSION_FUSED, (enum rfl_pass)pass) <=
			    bytes_of(cost, RFL_FUSION_UNFUSED, (enum rfl_pass)pass));
		if (pass == RFL_PASS_FORWARD || trained)
			continue;
		assert_int_equal(cost->macs[pass], 0);
		assert_int_equal(rfl_elementwise_sum(e), 0);
		assert_int_equal(bytes_of(cost, RFL_FUSION_UNFUSED, (enum rfl_pass)pass), 0);
		assert_int_equal(bytes_of(cost, RFL_FUSION_FUSED, (enum rfl_pass)pass), 0);
	}
}

/* Trained, with everything frozen, in inference, in 16 bits: and every operation is among them. */
static void properties_of_every_operation(void **state)
{
	static const char *const all[] = { "x", "y", "z", "op" };
	struct rfl_csv *csv = open_published("op_saved.csv");
	bool seen[RFL_OP_COUNT] = { [RFL_OP_INPUT] = true, [RFL_OP_CROSS_ENTROPY] = true };

	(void)state;
	while (next(csv)) {
		const char *name = text(csv, "case");
		struct rfl_count_options trained = { .training = true };
		struct rfl_count_options frozen = { .training = true, .frozen = all };
		struct rfl_count *count;
		struct rfl_net *net;
		int node;

		if (strncmp(name, "cross_entropy", 13) == 0)
			continue;
		net = rig_case(name, &node);
		for (int i = 0; i < net->nnodes; i++)
			seen[net->nodes[i].op] = true;
		count = count_of(net, trained);
		check_properties(name, net, node, count, true);
		rfl_count_free(count);
		frozen.frozen = net->nodes[node].op == RFL_OP_EMBEDDING ? all + 3 : all;
		frozen.nfrozen = net->nodes[node].op == RFL_OP_EMBEDDING ? 1 : 3;
		for (int i = 0; i < net->nparams && frozen.nfrozen == 3; i++)
			if (strncmp(net->params[i].name, "op", 2) == 0)
				frozen.nfrozen = 4;
		count = count_of(net, frozen);
		check_properties(name, net, node, count, false);
		rfl_count_free(count);
		rfl_net_free(net);
	}
	rfl_csv_close(csv);
	for (int i = 0; i < RFL_OP_UNKNOWN; i++)
		assert_true(seen[i]);
}

static void check_levels(const struct rfl_net *net, struct rfl_count_options options)
{
	struct rfl_count *count = count_of(net, options);

	for (int i = 0; i < net->nnodes; i++) {
		int64_t unfused = 0, fused = 0;

		for (int pass = 0; pass < RFL_PASS_COUNT; pass++) {
			const struct rfl_cost *cost = &count->nodes[i];

			unfused += bytes_of(cost, RFL_FUSION_UNFUSED, (enum rfl_pass)pass);
			fused += bytes_of(cost, RFL_FUSION_FUSED, (enum rfl_pass)pass);
		}
		if (fused > unfused)
			fail_msg("%s: %s (%s) moves more when it is fused", net->model,
				 net->nodes[i].name, rfl_op_info_of(net->nodes[i].op)->name);
	}
	rfl_count_free(count);
}

/* In every network of the zoo, with attention in each of its forms, over all passes: a fused
 * product that reads F32 weights has no 16-bit copy to read in its backward pass. */
static void fusing_never_moves_more(void **state)
{
	const struct rfl_zoo_model *model;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++)
		for (int a = RFL_ATTENTION_AUTO; a <= RFL_ATTENTION_SDPA; a++) {
			struct rfl_zoo_options how = { .attention = (enum rfl_attention)a };
			struct rfl_err err = RFL_ERR_INIT;
			struct rfl_net *net;

			if (rfl_zoo_build(model->name, &how, &net, &err) != RFL_OK)
				continue; /* it has no attention */
			check_levels(net, (struct rfl_count_options){ .training = true });
			check_levels(net, (struct rfl_count_options){ .training = true,
								      .dtype = RFL_DTYPE_BF16,
								      .master_weights = true });
			rfl_net_free(net);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_pytorch_keeps),
		cmocka_unit_test(keeps_something_else_on_a_gpu),
		cmocka_unit_test(every_row_is_complete),
		cmocka_unit_test(every_row_is_documented),
		cmocka_unit_test(properties_of_every_operation),
		cmocka_unit_test(fusing_never_moves_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
