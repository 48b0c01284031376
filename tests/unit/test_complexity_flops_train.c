/*
 * test_complexity_flops_train.c - forward and backward FLOPs against what PyTorch's
 * FlopCounterMode said of the same networks.
 *
 * Rows exact_* are 2 x multiply-adds from the shapes of modules and must be ours. The other rows
 * are the counter's own numbers; it is known to be wrong in three places, and each is worked out
 * here by the rule of its error, so that every row is met to the integer:
 *
 *	weight gradient of a grouped convolution: the groups are forgotten, so it is that many
 *	times too large;
 *	fused attention on a CPU: no formula, so both products are missing, forward and backward;
 *	nn.MultiheadAttention in evaluation without gradients: one fused operation that has no
 *	formula either, so the projections are missing too.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "complexity/count.h"

/* The same network in both modes, at the batch of the file. */
struct subject {
	char model[32];
	struct rfl_net *net;
	struct rfl_count *inference, *training;
};

/* A training runs the auxiliary heads, where a network has them. */
static struct rfl_count *count_of(const struct rfl_net *net, int64_t batch, bool training)
{
	struct rfl_count_options options = {
		.batch = batch,
		.training = training,
		.auxiliary = true,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	return count;
}

static void subject_free(struct subject *s)
{
	rfl_count_free(s->inference);
	rfl_count_free(s->training);
	rfl_net_free(s->net);
	*s = (struct subject){ .model = "" };
}

/* Input "1x3x224x224" of images, or "1x32" of tokens: the last number is the size. */
static void subject_load(struct subject *s, struct rfl_csv *csv)
{
	const char *model = text(csv, "model"), *input = text(csv, "input");
	int64_t batch = strtoll(input, NULL, 10), size = strtoll(strrchr(input, 'x') + 1, NULL, 10);
	bool tokens = strchr(input, 'x') == strrchr(input, 'x');
	const struct rfl_zoo_options options = {
		.image_size = tokens ? 0 : size,
		.context_length = tokens ? size : 0,
	};
	struct rfl_err err = RFL_ERR_INIT;

	if (strcmp(s->model, model) == 0)
		return;
	subject_free(s);
	(void)snprintf(s->model, sizeof(s->model), "%s", model);
	assert_ok(rfl_zoo_build(model, &options, &s->net, &err), &err);
	s->inference = count_of(s->net, batch, false);
	s->training = count_of(s->net, batch, true);
}

/* FLOPs by kind of operation. */
struct flops {
	int64_t convolution, linear, attention;
};

static int64_t flops_sum(const struct flops *f)
{
	return f->convolution + f->linear + f->attention;
}

static struct flops exact(const struct rfl_count *count, bool backward)
{
	struct flops f = { 0 };

	for (int i = 0; i < count->nnodes; i++) {
		const int64_t *macs = count->nodes[i].macs;
		int64_t flops = 2 * (backward ? macs[RFL_PASS_DGRAD] + macs[RFL_PASS_WGRAD]
					      : macs[RFL_PASS_FORWARD]);

		if (count->net->nodes[i].op == RFL_OP_CONV2D)
			f.convolution += flops;
		else if (count->net->nodes[i].op == RFL_OP_LINEAR)
			f.linear += flops;
		else
			f.attention += flops;
	}
	return f;
}

/* What the counter says, its errors included. */
static struct flops as_counted(const struct rfl_count *count, bool backward, bool no_grad)
{
	struct flops f = exact(count, backward);

	for (int i = 0; i < count->nnodes; i++) {
		const struct rfl_node *node = &count->net->nodes[i];
		const int64_t *macs = count->nodes[i].macs;
		int64_t groups = node->op == RFL_OP_CONV2D ? node->attr.conv2d.groups : 1;

		if (backward)
			f.convolution += 2 * (groups - 1) * macs[RFL_PASS_WGRAD];
		if (node->op == RFL_OP_SDPA)
			f.attention -=
				2 * (backward ? macs[RFL_PASS_DGRAD] : macs[RFL_PASS_FORWARD]);
		if (no_grad && node->op == RFL_OP_LINEAR &&
		    (node->attr.linear.in_proj || node->attr.linear.out_proj))
			f.linear -= 2 * macs[RFL_PASS_FORWARD];
	}
	return f;
}

/* -1: the row is a part of a sum that another row has. */
static int64_t expected(const struct subject *s, struct rfl_csv *csv)
{
	const char *phase = text(csv, "phase"), *op = text(csv, "op"), *mode = text(csv, "mode");
	const struct rfl_count *count = strcmp(mode, "train") == 0 ? s->training : s->inference;
	bool is_exact = strncmp(phase, "exact_", 6) == 0;
	bool backward = strstr(phase, "backward") != NULL;
	struct flops f = is_exact ? exact(count, backward)
				  : as_counted(count, backward, strcmp(mode, "eval_no_grad") == 0);

	if (strcmp(op, "total") == 0)
		return flops_sum(&f);
	if (strncmp(op, "convolution", 11) == 0)
		return f.convolution;
	if (strcmp(op, "linear") == 0)
		return f.linear;
	if (strcmp(op, "attention") == 0)
		return f.attention;
	return -1; /* mm, addmm, bmm: products by the way they were called */
}

static void every_row_to_the_integer(void **state)
{
	struct rfl_csv *csv = open_published("flops_train.csv");
	struct subject s = { .model = "" };
	int rows = 0, wrong = 0;

	(void)state;
	while (next(csv)) {
		int64_t flops;

		subject_load(&s, csv);
		flops = expected(&s, csv);
		if (flops < 0)
			continue;
		rows++;
		if (flops == integer(csv, "flops"))
			continue;
		print_error("%s, %s, %s, %s: %" PRId64 " FLOPs, the file has %s\n",
			    text(csv, "model"), text(csv, "mode"), text(csv, "phase"),
			    text(csv, "op"), flops, text(csv, "flops"));
		wrong++;
	}
	subject_free(&s);
	rfl_csv_close(csv);
	assert_int_equal(wrong, 0);
	assert_int_equal(rows, 507);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_to_the_integer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
