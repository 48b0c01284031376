/*
 * test_complexity_zoo.c - the zoo's networks are the published ones: every parameter by name,
 * shape, kind and position; what the table of models promises; what is refused.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complexity/op.h"
#include "tests/unit/build_rig.h"

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
		{ "params_maxvit.csv", 1 },     { "params_mnasnet.csv", 1 },
		{ "params_mobilenet.csv", 3 },  { "params_own.csv", 2 },
		{ "params_regnet.csv", 1 },     { "params_resnet.csv", 7 },
		{ "params_shufflenet.csv", 1 }, { "params_squeezenet.csv", 2 },
		{ "params_swin.csv", 2 },       { "params_vgg.csv", 8 },
		{ "params_vit.csv", 1 },
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
		net = build_naive(text(csv, "model"), 0);
		assert_int_equal(net->nparams, integer(csv, "tensors"));
		assert_int_equal(rfl_net_param_count(net), integer(csv, "params"));
		assert_int_equal(rfl_net_buffer_count(net), integer(csv, "buffer_elements"));
		check_norms(csv, net);
		rfl_net_free(net);
		models++;
	}
	rfl_csv_close(csv);
	assert_int_equal(models, 33);
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

static void refuses(const char *model, int64_t image_size, enum rfl_rc rc, const char *words)
{
	refuses_with(model, &(struct rfl_zoo_options){ .image_size = image_size }, rc, words);
}

static void refusals_name_the_layer(void **state)
{
	(void)state;
	refuses("vgg16", 16, RFL_EINVAL, "features.30 (MaxPool2d)");
	refuses("vgg16", 16, RFL_EINVAL, "image size 16");
	refuses("vgg16", 16, RFL_EINVAL, "use a larger image");
	refuses("cifar_cnn", 7, RFL_EINVAL, "8 (MaxPool2d)");
	refuses("inception_v3", 298, RFL_EINVAL, "AuxLogits.conv1.conv (Conv2d): 16x16 features");
	refuses("inception_v3", 298, RFL_EINVAL, "or inception_v3_no_aux");
	refuses("inception_v3", 30, RFL_EINVAL, "Mixed_6a.branch3x3.conv (Conv2d)");
	refuses("vit_b_16", 225, RFL_EINVAL,
		"vit_b_16: conv_proj (Conv2d): cannot cut an image of 225x225 into patches of "
		"16x16; use a multiple of 16");
	refuses("maxvit_t", 112, RFL_EINVAL,
		"maxvit_t: blocks.3.layers.0.layers.window_attention: cannot cut a map of 4x4 into "
		"windows of 7; use images with a multiple of 224 pixels");
	refuses("maxvit_t", 1, RFL_EINVAL, "blocks.0.layers.0.layers.window_attention: cannot");
	refuses("swin_t", 3, RFL_EINVAL, "swin_t: features.0.0 (Conv2d)");
	refuses("resnet50", INT64_C(1) << 40, RFL_EOVERFLOW, "63 bits");
	refuses("resnet50", INT64_MAX, RFL_EOVERFLOW, "63 bits");
}

static void unknown_names_bring_their_neighbours(void **state)
{
	(void)state;
	refuses("resnet5", 0, RFL_ENOTFOUND, "resnet50");
	refuses("resnet5", 0, RFL_ENOTFOUND, "did you mean");
	refuses("densnet121", 0, RFL_ENOTFOUND, "densenet121");
	refuses("inception_v4", 0, RFL_ENOTFOUND, "inception_v3");
	refuses("2p8", 0, RFL_ENOTFOUND, "2p7"); /* an alias */
	refuses("transmogrifier", 0, RFL_ENOTFOUND, "list models");
}

static void sizes_below_one_are_refused(void **state)
{
	(void)state;
	refuses("resnet50", -1, RFL_EINVAL, "resnet50: image size -1");
	refuses_with("alexnet", &(struct rfl_zoo_options){ .classes = -10 }, RFL_EINVAL,
		     "alexnet: classes -10");
	refuses_with("tiny_lm", &(struct rfl_zoo_options){ .context_length = -3 }, RFL_EINVAL,
		     "tiny_lm: context length -3");
}

/* All names and aliases of the zoo, one after the other; NULL after the last. */
static const char *name_at(size_t i)
{
	const struct rfl_zoo_model *model;

	for (size_t m = 0; (model = rfl_zoo_at(m)); m++) {
		if (i-- == 0)
			return model->name;
		for (const char *const *alias = model->aliases; alias && *alias; alias++)
			if (i-- == 0)
				return *alias;
	}
	return NULL;
}

static void names_are_unique(void **state)
{
	const char *name, *other;

	(void)state;
	for (size_t i = 0; (name = name_at(i)); i++)
		for (size_t k = 0; k < i && (other = name_at(k)); k++)
			assert_string_not_equal(name, other);
}

static void tables_are_complete(void **state)
{
	const struct rfl_zoo_model *model;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		assert_non_null(model->title);
		assert_non_null(model->family);
		assert_non_null(model->summary);
		assert_true(model->classes > 0);
		assert_true((model->image_size > 0) != (model->context_length > 0));
		assert_true(model->max_context_length == 0 ||
			    model->max_context_length >= model->context_length);
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

/* Numbers of blocks ascend by one from 1, and a block is one run of nodes. */
static void check_blocks(const struct rfl_net *net)
{
	int block = 0, inside = 0;

	for (int i = 0; i < net->nnodes; i++) {
		int next = net->nodes[i].block;

		if (next != 0 && next != inside)
			assert_int_equal(next, ++block);
		inside = next;
	}
	assert_int_equal(block, net->nblocks);
}

static void check_net(const struct rfl_net *net)
{
	assert_int_equal(net->nodes[0].op, RFL_OP_INPUT);
	assert_int_equal(net->output, net->nnodes - 1);
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		assert_true(rfl_shape_fits(&node->shape));
		for (int k = 0; k < node->ninputs; k++) {
			assert_in_range(node->input[k], 0, i - 1);
			/* nothing in the net reads what only a training run with heads has */
			assert_true(node->auxiliary || !net->nodes[node->input[k]].auxiliary);
		}
		for (int k = 0; k < node->nparams && !node->tied; k++)
			assert_int_equal(net->params[node->param[k]].node, i);
	}
	for (int i = 0; i < net->nparams; i++) {
		assert_int_equal(net->params[i].position, i);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(net->params[i].name, net->params[k].name);
	}
	check_blocks(net);
}

static void every_model_is_well_formed(void **state)
{
	const struct rfl_zoo_model *model;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_net *net = build(model->name);

		assert_string_equal(net->model, model->name);
		assert_string_equal(net->family, model->family);
		assert_int_equal(net->classes, model->classes);
		check_net(net);
		rfl_net_free(net);
	}
}

/* At half its size a model is built, or says that it cannot be. */
static void most_models_take_half_their_size(void **state)
{
	const struct rfl_zoo_model *model;
	int models = 0, built = 0;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_zoo_options options = {
			.image_size = model->image_size / 2,
			.context_length = model->context_length / 2,
		};
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;

		if (rfl_zoo_build(model->name, &options, &net, &err) == RFL_OK) {
			check_net(net);
			built++;
		} else {
			assert_null(net);
			assert_says(&err, model->name);
		}
		rfl_net_free(net);
		models++;
	}
	/* all but inception_v3, vit_b_32, vit_l_32 and maxvit_t */
	assert_int_equal(models - built, 4);
}

/* The smallest images that torchvision's models take, as it states them (min_size), and the layer
 * that has nothing left at one pixel less. */
static void smallest_images_are_the_published_ones(void **state)
{
	static const struct {
		const char *model;
		int64_t size;
		const char *layer;
	} cases[] = {
		{ "alexnet", 63, "features.12 (MaxPool2d)" },
		{ "vgg11", 32, "features.20 (MaxPool2d)" },
		{ "squeezenet1_0", 21, "features.11 (MaxPool2d)" },
		{ "squeezenet1_1", 17, "features.8 (MaxPool2d)" },
		{ "densenet121", 29, "features.transition3.pool (AvgPool2d)" },
		{ "densenet161", 29, "features.transition3.pool (AvgPool2d)" },
		{ "googlenet", 15, "maxpool3 (MaxPool2d)" },
		{ "inception_v3_no_aux", 75, "Mixed_7a.branch3x3_2.conv (Conv2d)" },
		{ "convnext_tiny", 32, "features.6.1 (Conv2d)" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_zoo_options options = { .image_size = cases[i].size };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *net = NULL;

		assert_ok(rfl_zoo_build(cases[i].model, &options, &net, &err), &err);
		rfl_net_free(net);
		refuses(cases[i].model, cases[i].size - 1, RFL_EINVAL, cases[i].layer);
	}
}

/* The exact count is in the summary, where a report has a rounded one. */
static void summaries_count_right(void **state)
{
	static const struct {
		const char *model, *params;
	} cases[] = { { "cifar_cnn", "1,276,234" }, { "mnist_cnn", "816,906" } };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_net *net = build(cases[i].model);
		const struct rfl_zoo_model *model = NULL;
		char digits[32] = "";

		assert_ok(rfl_zoo_find(cases[i].model, &model, NULL), NULL);
		assert_non_null(strstr(model->summary, cases[i].params));
		for (const char *c = cases[i].params; *c; c++)
			if (*c != ',')
				(void)strncat(digits, c, 1);
		assert_int_equal(rfl_net_param_count(net), strtoll(digits, NULL, 10));
		rfl_net_free(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_are_those_of_the_state_dict),
		cmocka_unit_test(totals_are_the_published_ones),
		cmocka_unit_test(sizes_can_be_chosen),
		cmocka_unit_test(refusals_name_the_layer),
		cmocka_unit_test(unknown_names_bring_their_neighbours),
		cmocka_unit_test(sizes_below_one_are_refused),
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(tables_are_complete),
		cmocka_unit_test(every_model_is_well_formed),
		cmocka_unit_test(most_models_take_half_their_size),
		cmocka_unit_test(smallest_images_are_the_published_ones),
		cmocka_unit_test(summaries_count_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
