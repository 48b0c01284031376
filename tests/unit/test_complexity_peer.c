/*
 * test_complexity_peer.c - totals of FLOP-counting tools to the integer: every row of what they
 * printed for a model of the zoo, and what is refused because the tool cannot do it.
 */
#include "tests/unit/published.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "complexity/count.h"
#include "complexity/op.h"
#include "complexity/peer.h"
#include "tests/unit/build_rig.h"

static enum rfl_rc peer_total(const struct rfl_peer *peer, const struct rfl_net *net, int64_t *ret,
			      struct rfl_err *err)
{
	struct rfl_peer_count count;
	enum rfl_rc rc = rfl_peer_count(peer, net, &count, NULL, err);

	if (rc == RFL_OK)
		*ret = count.total;
	return rc;
}

static const struct rfl_peer *find(const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_peer *peer = NULL;

	assert_ok(rfl_peer_find(name, &peer, &err), &err);
	return peer;
}

/* The files name a tool and a setting of it. */
static const struct rfl_peer *peer_of(struct rfl_csv *csv)
{
	static const char *const settings[] = { "aten", "train" };
	const char *setting = text(csv, "setting");
	char name[64];

	for (size_t i = 0; i < RFL_ARRAY_LEN(settings); i++) {
		if (strcmp(setting, settings[i]) != 0)
			continue;
		(void)snprintf(name, sizeof(name), "%s-%s", text(csv, "tool"), setting);
		return find(name);
	}
	return find(text(csv, "tool"));
}

/* The network of a row; the one before is reused. */
static const struct rfl_net *net_of(struct rfl_csv *csv, struct rfl_net **net)
{
	const char *model = text(csv, "model");

	if (!*net || strcmp((*net)->model, model) != 0) {
		rfl_net_free(*net);
		*net = build(model);
	}
	return *net;
}

static struct rfl_peer_count count(const struct rfl_peer *peer, const struct rfl_net *net,
				   int64_t *nodes)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_peer_count ret = { 0 };

	assert_ok(rfl_peer_count(peer, net, &ret, nodes, &err), &err);
	return ret;
}

/* A row's figure by our rule. @return false: a metric that is not a count */
static bool same_as_ours(struct rfl_csv *csv, const struct rfl_net *net, int64_t *ret)
{
	static const char *const others[] = { "input_bytes", "forward_backward_bytes",
					      "param_bytes" };
	const struct rfl_peer *peer = peer_of(csv);
	const char *metric = text(csv, "metric");
	struct rfl_peer_count c;

	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		if (strcmp(metric, others[i]) == 0)
			return false;
	c = count(peer, net, NULL);
	if (strcmp(metric, "params") == 0)
		*ret = c.params;
	else if (strcmp(metric, "activations") == 0)
		*ret = c.outputs;
	else if (strcmp(metric, "macs") == 0)
		*ret = peer->is_flops ? c.macs : c.total;
	else if (strcmp(metric, "flops") == 0 || strcmp(metric, "mult_adds") == 0)
		*ret = c.total;
	else
		fail_msg("%s: no metric of a counter", metric);
	return true;
}

struct tally {
	int same, refused, by_operation, elsewhere;
};

/* "macs.conv": the part of a kind of operation. */
static void check_operation(struct rfl_csv *csv, const struct rfl_net *net)
{
	static const struct {
		const char *word;
		enum rfl_op op;
	} words[] = {
		{ "conv", RFL_OP_CONV2D },
		{ "linear", RFL_OP_LINEAR },
		{ "matmul", RFL_OP_MATMUL },
		{ "batch_norm", RFL_OP_BATCH_NORM },
		{ "layer_norm", RFL_OP_LAYER_NORM },
		{ "adaptive_avg_pool2d", RFL_OP_ADAPTIVE_AVG_POOL },
	};
	const char *word = strchr(text(csv, "metric"), '.') + 1;
	int64_t *nodes = calloc((size_t)net->nnodes, sizeof(*nodes));
	enum rfl_op op = RFL_OP_COUNT;
	int64_t sum = 0;

	assert_non_null(nodes);
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++)
		if (strcmp(word, words[i].word) == 0)
			op = words[i].op;
	assert_int_not_equal(op, RFL_OP_COUNT);
	(void)count(peer_of(csv), net, nodes);
	for (int i = 0; i < net->nnodes; i++)
		if (net->nodes[i].op == op)
			sum += nodes[i];
	assert_int_equal(sum, integer(csv, "value"));
	free(nodes);
}

/* What the tool could not do is refused here too. */
static void check_refusal(struct rfl_csv *csv, const struct rfl_net *net)
{
	struct rfl_err err = RFL_ERR_INIT;
	int64_t total = -1;

	assert_int_equal(peer_total(peer_of(csv), net, &total, &err), RFL_EUNAVAILABLE);
	assert_int_equal(total, -1);
	assert_says(&err, "AuxLogits");
	assert_says(&err, "one value per channel");
}

static struct tally check_file(const char *file)
{
	struct rfl_csv *csv = open_published(file);
	struct rfl_net *net = NULL;
	struct tally t = { 0 };
	int64_t ours;

	while (next(csv)) {
		const char *metric = text(csv, "metric");

		(void)net_of(csv, &net);
		if (strcmp(metric, "error") == 0) {
			check_refusal(csv, net);
			t.refused++;
		} else if (strchr(metric, '.')) {
			check_operation(csv, net);
			t.by_operation++;
		} else if (same_as_ours(csv, net, &ours)) {
			if (ours != integer(csv, "value"))
				fail_msg("%s: %s %s %s: %lld, the tool says %s", net->model,
					 text(csv, "tool"), text(csv, "setting"), metric,
					 (long long)ours, text(csv, "value"));
			t.same++;
		} else {
			t.elsewhere++;
		}
	}
	rfl_net_free(net);
	rfl_csv_close(csv);
	return t;
}

/* 33 models, 7 settings of five tools: 8 totals (calflops has two), 5 numbers of parameters and
 * fvcore's activations, less the one that the tool cannot run. */
static void every_total_is_the_tools(void **state)
{
	struct tally t = check_file("peer_totals.csv");

	(void)state;
	assert_int_equal(t.same, 33 * 8 - 1 + 33 * 5 + 33);
	assert_int_equal(t.refused, 1);
	assert_int_equal(t.by_operation, 228);
	assert_int_equal(t.elsewhere, 33 * 3);
}

/* The other tools on the same models, and all of them on models that no rule was made from. */
static void more_models_agree(void **state)
{
	struct tally t = check_file("peer_totals_more.csv");

	(void)state;
	assert_int_equal(t.same, 33 * 3 + 33 * 12);
	assert_int_equal(t.refused + t.by_operation + t.elsewhere, 0);
}

/* Where PyTorch's own counter says something else, and why. */
static const struct {
	const char *model, *mode;
} elsewhere[] = {
	/* auxiliary heads run in training; the peer is of inference */
	{ "googlenet_aux", "train" },
	{ "inception_v3", "train" },
	/* without gradients nn.MultiheadAttention is one operation, which has no formula at all */
	{ "vit_b_16", "eval_no_grad" },
	{ "vit_b_32", "eval_no_grad" },
};

static bool is_elsewhere(struct rfl_csv *csv)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(elsewhere); i++)
		if (strcmp(text(csv, "model"), elsewhere[i].model) == 0 &&
		    strcmp(text(csv, "mode"), elsewhere[i].mode) == 0)
			return true;
	return false;
}

static int64_t number(const char *digits, size_t length)
{
	struct rfl_err err = RFL_ERR_INIT;
	char word[32];
	int64_t ret = 0;

	(void)snprintf(word, sizeof(word), "%.*s", (int)length, digits);
	assert_ok(rfl_num_parse_int(word, "input", &ret, &err), &err);
	return ret;
}

/* "2x3x299x299": the batch comes first, the size of the image last; "1x32" is of text. */
static struct rfl_net *build_input(struct rfl_csv *csv, int64_t *batch)
{
	const char *input = text(csv, "input"), *last = strrchr(input, 'x');
	struct rfl_zoo_options options = { 0 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_non_null(last);
	*batch = number(input, strcspn(input, "x"));
	if (strchr(input, 'x') != last)
		options.image_size = number(last + 1, strlen(last + 1));
	assert_ok(rfl_zoo_build(text(csv, "model"), &options, &net, &err), &err);
	return net;
}

static void flop_counter_mode_agrees(void **state)
{
	struct rfl_csv *csv = open_published("flops_train.csv");
	const struct rfl_peer *peer = find("flopcounter");
	int same = 0, other = 0;

	(void)state;
	while (next(csv)) {
		struct rfl_net *net;
		int64_t batch;
		bool agrees;

		if (strcmp(text(csv, "phase"), "forward") != 0 ||
		    strcmp(text(csv, "op"), "total") != 0)
			continue;
		net = build_input(csv, &batch);
		agrees = batch * count(peer, net, NULL).total == integer(csv, "flops");
		if (agrees == is_elsewhere(csv))
			fail_msg("%s, %s: %s", net->model, text(csv, "mode"),
				 agrees ? "agrees after all" : "does not agree");
		same += agrees;
		other += !agrees;
		rfl_net_free(net);
	}
	rfl_csv_close(csv);
	assert_true(same >= 70);
	assert_int_equal(other, RFL_ARRAY_LEN(elsewhere));
}

/* The core count is torchvision's, FlopCounterMode has two for each where nothing is fused. */
static void the_core_count_is_torchvisions(void **state)
{
	const struct rfl_zoo_model *model;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_count_options options = { .batch = 1 };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_count *c = NULL;
		struct rfl_net *net = build(model->name);

		assert_ok(rfl_count_net(net, &options, &c, &err), &err);
		assert_int_equal(count(find("torchvision"), net, NULL).total,
				 c->total.macs[RFL_PASS_FORWARD]);
		rfl_count_free(c);
		rfl_net_free(net);
	}
}

/* However the network writes attention down, ptflops sees one nn.MultiheadAttention. */
static void a_hook_does_not_see_how_attention_is_written(void **state)
{
	struct rfl_net *fused = build("vit_b_16"), *naive = build_naive("vit_b_16", 0);

	(void)state;
	assert_true(naive->nnodes > fused->nnodes);
	assert_int_equal(count(find("ptflops"), fused, NULL).total,
			 count(find("ptflops"), naive, NULL).total);
	rfl_net_free(naive);
	rfl_net_free(fused);
}

static void nodes_add_up(void **state)
{
	static const char *const models[] = { "resnet18", "vit_b_16", "tiny_lm" };
	const struct rfl_peer *peer;

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		struct rfl_net *net = build(models[m]);

		for (size_t p = 0; (peer = rfl_peer_at(p)); p++) {
			struct rfl_err err = RFL_ERR_INIT;
			int64_t *nodes = calloc((size_t)net->nnodes, sizeof(*nodes));
			int64_t total = 0, sum = 0;
			struct rfl_peer_count all;

			assert_non_null(nodes);
			assert_ok(rfl_peer_count(peer, net, &all, nodes, &err), &err);
			for (int i = 0; i < net->nnodes; i++)
				sum += nodes[i];
			free(nodes);
			assert_ok(peer_total(peer, net, &total, &err), &err);
			assert_int_equal(all.total, total);
			assert_int_equal(sum, total);
			assert_true(total > 0);
		}
		rfl_net_free(net);
	}
}

/* The same bug in both figures: a layer over all tokens is charged for one. */
static void known_errors_are_kept(void **state)
{
	struct rfl_net *net = build("vit_b_16");

	(void)state;
	assert_int_equal(count(find("torchinfo"), net, NULL).total, 173232616);
	assert_int_equal(count(find("thop"), net, NULL).params, 58067176);
	assert_int_equal(count(find("fvcore"), net, NULL).params, 86567656);
	rfl_net_free(net);
}

/* thop divides sizes as doubles: where a double is off by one there is no total to the integer. */
static void what_is_not_exact_is_refused(void **state)
{
	static const struct {
		int64_t out;
		enum rfl_rc rc;
	} cases[] = { { 1 << 20, RFL_OK }, { 1 << 27, RFL_EOVERFLOW } };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const int64_t out = cases[i].out;
		struct rfl_net_builder *b = rfl_net_builder_new("large", "test");
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;
		int64_t total = -1;
		int x = rfl_net_input(b, 1, 3, 3);

		x = rfl_adaptive_avg_pool(b, x, "pool", out, out);
		x = rfl_flatten(b, x);
		assert_ok(rfl_net_finish(b, x, &net, &err), &err);
		assert_int_equal(peer_total(find("thop"), net, &total, &err), cases[i].rc);
		assert_int_equal(total, cases[i].rc == RFL_OK ? 9 + out * out : -1);
		rfl_net_free(net);
	}
}

static void the_table_is_complete(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_peer *peer, *other;
	size_t n = 0;

	(void)state;
	for (; (peer = rfl_peer_at(n)); n++) {
		assert_true(peer->name[0] && peer->version[0] && peer->prints[0] && peer->rule[0]);
		for (size_t k = 0; k < n && (other = rfl_peer_at(k)); k++)
			assert_string_not_equal(peer->name, other->name);
		assert_ptr_equal(find(peer->name), peer);
	}
	assert_int_equal(n, 10);
	peer = NULL;
	assert_int_equal(rfl_peer_find("nosuch", &peer, &err), RFL_ENOTFOUND);
	assert_null(peer);
	assert_says(&err, "no FLOP counter 'nosuch'; use one of torchvision, fvcore,");
	assert_says(&err, "calflops");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_total_is_the_tools),
		cmocka_unit_test(more_models_agree),
		cmocka_unit_test(flop_counter_mode_agrees),
		cmocka_unit_test(the_core_count_is_torchvisions),
		cmocka_unit_test(a_hook_does_not_see_how_attention_is_written),
		cmocka_unit_test(nodes_add_up),
		cmocka_unit_test(known_errors_are_kept),
		cmocka_unit_test(what_is_not_exact_is_refused),
		cmocka_unit_test(the_table_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
