/*
 * test_complexity_zoo.c - the zoo's networks are the published ones: every parameter by name,
 * shape, kind and position, every layer by name, shape and order.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complexity/net_build.h"
#include "complexity/op.h"

static void check_param(struct rfl_csv *csv, const struct rfl_param *p)
{
	struct rfl_shape shape = { .ndim = p->ndim };
	char buf[96];

	memcpy(shape.dim, p->dim, sizeof(shape.dim));
	assert_string_equal(p->name, text(csv, "name"));
	assert_string_equal(rfl_shape_text(&shape, buf, sizeof(buf)), text(csv, "shape"));
	assert_string_equal(rfl_param_kind_name(p->kind), text(csv, "kind"));
	assert_int_equal(p->numel, integer(csv, "numel"));
	assert_int_equal(p->position, integer(csv, "p"));
	assert_int_equal(!rfl_param_is_buffer(p->kind), integer(csv, "trainable"));
}

/* All models of a params file that the zoo knows; returns how many. */
static int check_params_file(const char *file)
{
	struct rfl_csv *csv = open_published(file);
	struct rfl_net *net = NULL;
	int next_param = 0, models = 0;

	while (next(csv)) {
		const char *model = text(csv, "model");

		if (!in_zoo(model))
			continue;
		if (!net || strcmp(net->model, model) != 0) {
			if (net)
				assert_int_equal(next_param, net->nparams);
			rfl_net_free(net);
			net = build(model);
			next_param = 0;
			models++;
		}
		assert_true(next_param < net->nparams);
		check_param(csv, &net->params[next_param++]);
	}
	assert_non_null(net);
	assert_int_equal(next_param, net->nparams);
	rfl_net_free(net);
	rfl_csv_close(csv);
	return models;
}

static void parameters_are_those_of_the_state_dict(void **state)
{
	static const struct {
		const char *file;
		int models;
	} files[] = {
		{ "params_alexnet.csv", 1 },    { "params_convnext.csv", 1 },
		{ "params_densenet.csv", 1 },   { "params_efficientnet.csv", 1 },
		{ "params_googlenet.csv", 2 },  { "params_inception.csv", 1 },
		{ "params_mnasnet.csv", 1 },    { "params_mobilenet.csv", 3 },
		{ "params_own.csv", 1 },        { "params_regnet.csv", 1 },
		{ "params_resnet.csv", 7 },     { "params_shufflenet.csv", 1 },
		{ "params_squeezenet.csv", 2 }, { "params_vgg.csv", 8 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++)
		assert_int_equal(check_params_file(files[i].file), files[i].models);
}

/* eps and momentum of every norm; an empty column stands for a network without any. */
static void check_norms(struct rfl_csv *csv, const struct rfl_net *net)
{
	const char *eps = text(csv, "norm_eps"), *momentum = text(csv, "batch_norm_momentum");
	int norms = 0, batch_norms = 0;

	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (node->op == RFL_OP_BATCH_NORM) {
			assert_true(node->attr.batch_norm.eps == strtod(eps, NULL));
			assert_true(node->attr.batch_norm.momentum == strtod(momentum, NULL));
			batch_norms++;
		} else if (node->op == RFL_OP_LAYER_NORM || node->op == RFL_OP_RMS_NORM) {
			assert_true(node->attr.norm.eps == strtod(eps, NULL));
			norms++;
		}
	}
	assert_int_equal(norms + batch_norms > 0, *eps != '\0');
	assert_int_equal(batch_norms > 0, *momentum != '\0');
}

static void totals_are_the_published_ones(void **state)
{
	struct rfl_csv *csv = open_published("params_totals.csv");
	int models = 0;

	(void)state;
	while (next(csv)) {
		struct rfl_net *net;

		if (!in_zoo(text(csv, "model")))
			continue;
		net = build(text(csv, "model"));
		assert_int_equal(net->nparams, integer(csv, "tensors"));
		assert_int_equal(rfl_net_param_count(net), integer(csv, "params"));
		assert_int_equal(rfl_net_buffer_count(net), integer(csv, "buffer_elements"));
		check_norms(csv, net);
		rfl_net_free(net);
		models++;
	}
	rfl_csv_close(csv);
	assert_int_equal(models, 31);
}

/* The words of the layer lists. */
static const char *layer_word(enum rfl_op op)
{
	static const char *const words[RFL_OP_COUNT] = {
		[RFL_OP_CONV2D] = "conv",      [RFL_OP_BATCH_NORM] = "bn",
		[RFL_OP_RELU] = "relu",        [RFL_OP_RELU6] = "relu6",
		[RFL_OP_MAX_POOL] = "maxpool", [RFL_OP_ADAPTIVE_AVG_POOL] = "gap",
		[RFL_OP_LINEAR] = "linear",    [RFL_OP_ADD] = "add",
	};

	return words[op];
}

static void check_shape(const struct rfl_shape *shape, const char *batched, size_t length)
{
	char buf[96], want[128];

	(void)snprintf(want, sizeof(want), "1x%s", rfl_shape_text(shape, buf, sizeof(buf)));
	assert_int_equal(strlen(want), length);
	assert_memory_equal(want, batched, length);
}

static void check_window(struct rfl_csv *csv, int64_t kernel_h, int64_t kernel_w, int64_t stride_h,
			 int64_t stride_w, int64_t pad_h, int64_t pad_w)
{
	char buf[64];

	(void)snprintf(buf, sizeof(buf), "%" PRId64 "x%" PRId64, kernel_h, kernel_w);
	assert_string_equal(buf, text(csv, "kernel"));
	(void)snprintf(buf, sizeof(buf), "%" PRId64 "x%" PRId64, stride_h, stride_w);
	assert_string_equal(buf, text(csv, "stride"));
	(void)snprintf(buf, sizeof(buf), "%" PRId64 "x%" PRId64, pad_h, pad_w);
	assert_string_equal(buf, text(csv, "pad"));
}

static void check_layer(struct rfl_csv *csv, const struct rfl_net *net, const struct rfl_node *node)
{
	const char *in = text(csv, "in_shapes"), *out = text(csv, "out_shape");

	assert_string_equal(text(csv, "op"), layer_word(node->op));
	assert_string_equal(text(csv, "name"), node->name);
	check_shape(&node->shape, out, strlen(out));
	for (int i = 0; i < node->ninputs; i++) {
		size_t length = strcspn(in, ";");

		check_shape(&net->nodes[node->input[i]].shape, in, length);
		in += length + (in[length] == ';');
	}
	assert_int_equal(*in, '\0');
	if (node->op == RFL_OP_CONV2D) {
		const struct rfl_conv2d *a = &node->attr.conv2d;

		check_window(csv, a->kernel_h, a->kernel_w, a->stride_h, a->stride_w, a->pad_h,
			     a->pad_w);
		assert_int_equal(a->groups, integer(csv, "groups"));
		assert_int_equal(a->bias, integer(csv, "bias"));
		assert_int_equal(net->params[node->param[0]].numel, integer(csv, "weight_numel"));
	} else if (node->op == RFL_OP_MAX_POOL) {
		const struct rfl_pool *a = &node->attr.pool;

		check_window(csv, a->kernel_h, a->kernel_w, a->stride_h, a->stride_w, a->pad_h,
			     a->pad_w);
	}
}

static void layers_are_those_of_the_lists(void **state)
{
	static const char *const models[] = {
		"resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
		"vgg11",    "vgg16",    "vgg16_bn", "vgg19",     "mobilenet_v2",
	};

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		struct rfl_net *net = build(models[m]);
		struct rfl_csv *csv;
		char file[64];
		int layers = 0;

		(void)snprintf(file, sizeof(file), "layers/%s.csv", models[m]);
		csv = open_published(file);
		for (int i = 0; i < net->nnodes; i++) {
			/* the lists leave out what computes nothing in inference */
			if (!layer_word(net->nodes[i].op))
				continue;
			assert_true(next(csv));
			check_layer(csv, net, &net->nodes[i]);
			layers++;
		}
		assert_false(next(csv));
		assert_true(layers > 20);
		rfl_csv_close(csv);
		rfl_net_free(net);
	}
}

/* A module that runs twice is two nodes of one name; functional steps are no modules. */
static void names_follow_the_modules(void **state)
{
	struct rfl_net *net = build("resnet18");
	int relus = 0;

	(void)state;
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (strcmp(node->name, "layer1.0.relu") == 0) {
			assert_true(node->inplace);
			relus++;
		}
		if (node->op == RFL_OP_ADD || node->op == RFL_OP_FLATTEN ||
		    node->op == RFL_OP_INPUT)
			assert_true(node->functional);
		else
			assert_false(node->functional);
		for (int k = 0; k < node->ninputs; k++)
			assert_true(node->input[k] < i);
		for (int k = 0; k < node->nparams; k++)
			assert_int_equal(net->params[node->param[k]].node, i);
	}
	assert_int_equal(relus, 2);
	assert_int_equal(net->output, net->nnodes - 1);
	assert_int_equal(net->classes, 1000);
	rfl_net_free(net);
	net = build("mobilenet_v2");
	assert_true(net->nodes[net->nnodes - 4].functional);
	assert_int_equal(net->nodes[net->nnodes - 4].op, RFL_OP_ADAPTIVE_AVG_POOL);
	assert_string_equal(net->nodes[net->nnodes - 4].name, "");
	rfl_net_free(net);
}

static void sizes_can_be_chosen(void **state)
{
	struct rfl_zoo_options options = { .image_size = 32, .classes = 10 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	assert_ok(rfl_zoo_build("resnet18", &options, &net, &err), &err);
	assert_int_equal(net->classes, 10);
	assert_int_equal(net->nodes[0].shape.dim[2], 32);
	assert_int_equal(rfl_net_param_count(net), 11689512 - 990 * 513);
	rfl_net_free(net);
}

/* What is refused, and the words that tell why. */
static void refuses(const char *model, int64_t image_size, enum rfl_rc rc, const char *word)
{
	struct rfl_zoo_options options = { .image_size = image_size };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_int_equal(rfl_zoo_build(model, &options, &net, &err), rc);
	assert_null(net);
	assert_says(&err, word);
}

static void refusals_name_the_layer(void **state)
{
	(void)state;
	refuses("resnet5", 0, RFL_ENOTFOUND, "resnet50");
	refuses("resnet5", 0, RFL_ENOTFOUND, "did you mean");
	refuses("transmogrifier", 0, RFL_ENOTFOUND, "list models");
	refuses("vgg16", 16, RFL_EINVAL, "features.30 (MaxPool2d)");
	refuses("vgg16", 16, RFL_EINVAL, "image size 16");
	refuses("vgg16", 16, RFL_EINVAL, "too small");
	refuses("resnet50", -1, RFL_EINVAL, "image size -1");
	refuses("resnet50", INT64_C(1) << 40, RFL_EOVERFLOW, "63 bits");
	refuses("resnet50", INT64_MAX, RFL_EOVERFLOW, "63 bits");
}

/* The builder's first failure wins and the later calls do nothing. */
static void builder_failure_is_sticky(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x, y;

	(void)state;
	x = rfl_net_input(b, 3, 8, 8);
	rfl_net_enter(b, "block");
	x = rfl_conv2d(b, x, "conv", 6, .kernel = 3, .groups = 2);
	y = rfl_linear(b, x, "fc", 7, false);
	rfl_net_leave(b);
	assert_int_equal(y, -1);
	assert_int_equal(rfl_net_finish(b, y, &net, &err), RFL_EINVAL);
	assert_null(net);
	assert_says(&err, "toy: block.conv (Conv2d): 3 input and 6 output channels");
}

static void builder_refuses_unequal_sums(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x, y;

	(void)state;
	x = rfl_net_input(b, 3, 8, 8);
	y = rfl_conv2d(b, x, "conv", 3, .kernel = 3);
	x = rfl_add(b, x, y, RFL_OUT_OF_PLACE);
	assert_int_equal(rfl_net_finish(b, x, &net, &err), RFL_EINVAL);
	assert_says(&err, "3x8x8 and 3x6x6 do not broadcast");
}

static void builder_refuses_an_image_for_logits(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	assert_int_equal(rfl_net_finish(b, rfl_net_input(b, 3, 8, 8), &net, &err), RFL_EINVAL);
	assert_says(&err, "toy: the output is 3x8x8 per sample");
	assert_null(net);
}

static void builder_refuses_a_second_input(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	(void)rfl_net_input(b, 3, 8, 8);
	assert_int_equal(rfl_net_input(b, 3, 8, 8), -1);
	assert_int_equal(rfl_net_finish(b, 0, &net, &err), RFL_EINVAL);
	assert_says(&err, "toy: the input must come first");
}

/* ceil_mode: the last window may hang over, but may not begin behind the input
 * (torch.nn.MaxPool2d). */
static void pooling_rounds_up_on_request(void **state)
{
	static const struct {
		int64_t in, kernel, stride, pad;
		bool ceil;
		int64_t out;
	} cases[] = {
		{ 112, 3, 2, 0, false, 55 }, { 112, 3, 2, 0, true, 56 }, { 7, 2, 2, 0, true, 4 },
		{ 6, 2, 2, 0, true, 3 },     { 5, 1, 3, 0, true, 2 },    { 4, 2, 3, 1, true, 2 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;
		int x = rfl_net_input(b, 1, cases[i].in, cases[i].in);

		x = rfl_max_pool(b, x, "pool", .kernel = cases[i].kernel, .stride = cases[i].stride,
				 .pad = cases[i].pad, .ceil_mode = cases[i].ceil);
		assert_ok(rfl_net_finish(b, rfl_flatten(b, x), &net, &err), &err);
		assert_int_equal(net->nodes[x].shape.dim[2], cases[i].out);
		rfl_net_free(net);
	}
}

/* The end of the last window is looked for without leaving 63 bits. */
static void pooling_of_the_longest_row(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("toy", "toys");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	int x = rfl_net_input(b, 1, 1, INT64_MAX);

	(void)state;
	x = rfl_max_pool(b, x, "pool", .kernel = 1, .stride = 1 << 24, .ceil_mode = true);
	assert_ok(rfl_net_finish(b, rfl_flatten(b, x), &net, &err), &err);
	assert_int_equal(net->nodes[x].shape.dim[2], INT64_C(1) << 39);
	rfl_net_free(net);
}

/* Registries: unique names, required slots. */
static void tables_are_complete(void **state)
{
	const struct rfl_zoo_model *model, *other;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		assert_non_null(model->title);
		assert_non_null(model->family);
		assert_non_null(model->summary);
		assert_true(model->image_size > 0 && model->classes > 0);
		for (size_t k = 0; k < i && (other = rfl_zoo_at(k)); k++)
			assert_string_not_equal(model->name, other->name);
	}
	for (int op = 0; op < RFL_OP_COUNT; op++) {
		const struct rfl_op_info *info = rfl_op_info_of((enum rfl_op)op);

		assert_non_null(info->name);
		assert_non_null(info->module);
		assert_non_null(info->infer);
		for (int k = 0; k < op; k++)
			assert_string_not_equal(info->name, rfl_op_info_of((enum rfl_op)k)->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_those_of_the_state_dict),
		cmocka_unit_test(totals_are_the_published_ones),
		cmocka_unit_test(layers_are_those_of_the_lists),
		cmocka_unit_test(names_follow_the_modules),
		cmocka_unit_test(sizes_can_be_chosen),
		cmocka_unit_test(refusals_name_the_layer),
		cmocka_unit_test(builder_failure_is_sticky),
		cmocka_unit_test(builder_refuses_unequal_sums),
		cmocka_unit_test(builder_refuses_an_image_for_logits),
		cmocka_unit_test(builder_refuses_a_second_input),
		cmocka_unit_test(pooling_rounds_up_on_request),
		cmocka_unit_test(pooling_of_the_longest_row),
		cmocka_unit_test(tables_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
