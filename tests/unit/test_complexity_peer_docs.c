/*
 * test_complexity_peer_docs.c - the tables of docs/reference/peers.md (the rules, one network by operation)
 * and of docs/reference/zoo.md (every model by tool). With RFL_TEST_UPDATE=1 they are written.
 */
#include "tests/unit/docs_page.h"

#include <inttypes.h>

#include "base/num.h"
#include "complexity/op.h"
#include "complexity/peer.h"
#include "complexity/zoo.h"

static enum rfl_rc peer_total(const struct rfl_peer *peer, const struct rfl_net *net, int64_t *ret,
			      struct rfl_err *err)
{
	struct rfl_peer_count count;
	enum rfl_rc rc = rfl_peer_count(peer, net, &count, NULL, err);

	if (rc == RFL_OK)
		*ret = count.total;
	return rc;
}

#define DOCS RFL_TEST_DATA "/../../docs/reference/"
#define FROM(what_) \
	"<!-- " what_ ": written by test_complexity_peer_docs with RFL_TEST_UPDATE=1 -->\n"
#define TO(what_) "<!-- end of " what_ " -->\n"

static struct rfl_net *build(const char *model)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, NULL, &net, &err), &err);
	return net;
}

static void check(const char *page, const char *from, const char *to,
		  void (*put)(struct rfl_buf *out))
{
	struct rfl_buf part;

	rfl_buf_init(&part, 0);
	put(&part);
	check_page_part(page, from, to, &part);
	rfl_buf_fini(&part);
}

/* --- the rules --- */

static void put_rules(struct rfl_buf *out)
{
	const struct rfl_peer *peer;

	rfl_buf_puts(out, "| `--as` | version | it prints | what is counted | known errors |\n");
	rfl_buf_puts(out, "|---|---|---|---|---|\n");
	for (size_t i = 0; (peer = rfl_peer_at(i)); i++)
		rfl_buf_printf(out, "| `%s` | %s | %s, %d per multiply-add | %s | %s |\n",
			       peer->name, peer->version, peer->prints, peer->is_flops ? 2 : 1,
			       peer->rule, peer->wrong ? peer->wrong : "");
}

static void rules_are_those_of_the_program(void **state)
{
	(void)state;
	check(DOCS "peers.md", FROM("rules"), TO("rules"), put_rules);
}

/* --- one network by operation --- */

#define EXAMPLE "resnet50"

static const enum rfl_op parts[] = {
	RFL_OP_CONV2D, RFL_OP_LINEAR,   RFL_OP_BATCH_NORM,
	RFL_OP_RELU,   RFL_OP_MAX_POOL, RFL_OP_ADAPTIVE_AVG_POOL,
};

static void put_parts(struct rfl_buf *out, const struct rfl_peer *peer, const struct rfl_net *net)
{
	int64_t *nodes = calloc((size_t)net->nnodes, sizeof(*nodes));
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_peer_count count = { 0 };
	char number[RFL_NUM_MAX];
	int64_t named = 0;

	assert_non_null(nodes);
	assert_ok(rfl_peer_count(peer, net, &count, nodes, &err), &err);
	rfl_buf_printf(out, "| %s |", peer->name);
	for (size_t k = 0; k < RFL_ARRAY_LEN(parts); k++) {
		int64_t sum = 0;

		for (int i = 0; i < net->nnodes; i++)
			if (net->nodes[i].op == parts[k])
				sum += nodes[i];
		named += sum;
		rfl_buf_printf(out, " %s |", sum ? rfl_num_grouped(sum, number) : "");
	}
	assert_int_equal(named, count.total);
	rfl_buf_printf(out, " %s |\n", rfl_num_grouped(count.total, number));
	free(nodes);
}

static void put_example(struct rfl_buf *out)
{
	struct rfl_net *net = build(EXAMPLE);
	const struct rfl_peer *peer;

	rfl_buf_puts(out, "| " EXAMPLE " |");
	for (size_t k = 0; k < RFL_ARRAY_LEN(parts); k++)
		rfl_buf_printf(out, " %s |", rfl_op_info_of(parts[k])->name);
	rfl_buf_puts(out, " total |\n|---|");
	for (size_t k = 0; k <= RFL_ARRAY_LEN(parts); k++)
		rfl_buf_puts(out, "---:|");
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; (peer = rfl_peer_at(i)); i++)
		put_parts(out, peer, net);
	rfl_net_free(net);
}

static void one_network_by_operation(void **state)
{
	(void)state;
	check(DOCS "peers.md", FROM("example"), TO("example"), put_example);
}

/* --- every model --- */

/* Of texts only those whose code the tools were run on. */
static bool is_shown(const struct rfl_zoo_model *model)
{
	return model->image_size > 0 || strcmp(model->name, "tiny_lm") == 0 ||
	       strcmp(model->family, "gpt2") == 0;
}

static void put_ratios(struct rfl_buf *out, const struct rfl_net *net)
{
	const struct rfl_peer *peer;
	struct rfl_err err = RFL_ERR_INIT;
	char number[RFL_NUM_MAX];
	int64_t core = 0, total = 0;

	assert_ok(peer_total(rfl_peer_at(0), net, &core, &err), &err);
	rfl_buf_printf(out, "| %s | %s |", net->model, rfl_num_grouped(core, number));
	for (size_t i = 1; (peer = rfl_peer_at(i)); i++) {
		enum rfl_rc rc = peer_total(peer, net, &total, NULL);

		assert_true(rc == RFL_OK || rc == RFL_EUNAVAILABLE);
		if (rc == RFL_OK)
			rfl_buf_printf(out, " %.4f |",
				       (double)total / (double)core / (peer->is_flops ? 2 : 1));
		else
			rfl_buf_puts(out, " refused |");
	}
	rfl_buf_putc(out, '\n');
}

static void put_models(struct rfl_buf *out)
{
	const struct rfl_zoo_model *model;
	const struct rfl_peer *peer;

	assert_string_equal(rfl_peer_at(0)->name, "torchvision");
	rfl_buf_puts(out, "| model | core MACs |");
	for (size_t i = 1; (peer = rfl_peer_at(i)); i++)
		rfl_buf_printf(out, " %s |", peer->name);
	rfl_buf_puts(out, "\n|---|");
	for (size_t i = 0; rfl_peer_at(i); i++)
		rfl_buf_puts(out, "---:|");
	rfl_buf_putc(out, '\n');
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_net *net;

		if (!is_shown(model))
			continue;
		net = build(model->name);
		put_ratios(out, net);
		rfl_net_free(net);
	}
}

static void every_model_by_tool(void **state)
{
	(void)state;
	check(DOCS "zoo.md", FROM("models"), TO("models"), put_models);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_those_of_the_program),
		cmocka_unit_test(one_network_by_operation),
		cmocka_unit_test(every_model_by_tool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
