/*
 * test_complexity_zoo_layers.c - the zoo's networks are the published ones, layer by layer: names,
 * shapes, windows and order.
 */
#include "tests/unit/published.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "complexity/op.h"

/* The words of the layer lists. */
static const char *layer_word(enum rfl_op op)
{
	static const char *const words[RFL_OP_COUNT] = {
		[RFL_OP_CONV2D] = "conv",
		[RFL_OP_BATCH_NORM] = "bn",
		[RFL_OP_LAYER_NORM] = "ln",
		[RFL_OP_RELU] = "relu",
		[RFL_OP_RELU6] = "relu6",
		[RFL_OP_SIGMOID] = "sigmoid",
		[RFL_OP_SILU] = "silu",
		[RFL_OP_GELU] = "gelu",
		[RFL_OP_HARD_SIGMOID] = "hardsigmoid",
		[RFL_OP_HARD_SWISH] = "hardswish",
		[RFL_OP_MAX_POOL] = "maxpool",
		[RFL_OP_ADAPTIVE_AVG_POOL] = "gap",
		[RFL_OP_LINEAR] = "linear",
		[RFL_OP_MATMUL] = "matmul",
		[RFL_OP_SOFTMAX] = "softmax",
		[RFL_OP_ADD] = "add",
		[RFL_OP_MUL] = "mul",
		[RFL_OP_CONCAT] = "cat",
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

static void check_list(const char *model)
{
	struct rfl_net *net;
	struct rfl_csv *csv;
	char file[64];
	int layers = 0;

	(void)snprintf(file, sizeof(file), "layers/%s.csv", model);
	csv = open_published(file);
	net = build_naive(model, 0);
	for (int i = 0; i < net->nnodes; i++) {
		/* the lists leave out what computes nothing in inference */
		if (!layer_word(net->nodes[i].op))
			continue;
		assert_true(next(csv));
		check_layer(csv, net, &net->nodes[i]);
		layers++;
	}
	assert_false(next(csv));
	assert_true(layers > 18);
	rfl_csv_close(csv);
	rfl_net_free(net);
}

static void layers_are_those_of_the_lists(void **state)
{
	static const char *const models[] = {
		"alexnet",
		"efficientnet_b0",
		"mobilenet_v2",
		"mobilenet_v3_large",
		"mobilenet_v3_small",
		"resnet18",
		"resnet34",
		"resnet50",
		"resnet101",
		"resnet152",
		"vgg11",
		"vgg16",
		"vgg16_bn",
		"vgg19",
		"vit_b_16",
	};

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++)
		check_list(models[m]);
}

static uint64_t hash_line(uint64_t hash, const struct rfl_buf *line)
{
	return rfl_hash64(hash, line->data, line->len);
}

/* "features.0.weight 64x3x11x11" of every tensor of the state_dict. */
static uint64_t hash_of_params(const struct rfl_net *net)
{
	struct rfl_buf line;
	uint64_t hash = 0;
	char shape[96];

	rfl_buf_init(&line, 0);
	for (int i = 0; i < net->nparams; i++) {
		struct rfl_shape s = { .ndim = net->params[i].ndim };

		memcpy(s.dim, net->params[i].dim, sizeof(s.dim));
		rfl_buf_reset(&line);
		rfl_buf_printf(&line, "%s %s\n", net->params[i].name,
			       rfl_shape_text(&s, shape, sizeof(shape)));
		hash = hash_line(hash, &line);
	}
	rfl_buf_fini(&line);
	return hash;
}

/* "ReLU features.1 64x55x55 1" of every module, in the order in which they run. */
static uint64_t hash_of_modules(const struct rfl_net *net, int64_t *modules)
{
	struct rfl_buf line;
	uint64_t hash = 0;
	char shape[96];

	rfl_buf_init(&line, 0);
	for (int i = 0; i < net->nnodes; i++) {
		const struct rfl_node *node = &net->nodes[i];

		if (node->functional)
			continue;
		rfl_buf_reset(&line);
		rfl_buf_printf(&line, "%s %s %s %d\n", rfl_op_info_of(node->op)->module, node->name,
			       rfl_shape_text(&node->shape, shape, sizeof(shape)), node->inplace);
		hash = hash_line(hash, &line);
		++*modules;
	}
	rfl_buf_fini(&line);
	return hash;
}

static void check_hash(struct rfl_csv *csv, const char *column, uint64_t hash)
{
	char hex[17];

	(void)snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
	if (strcmp(hex, text(csv, column)) != 0)
		fail_msg("%s of %s is %s, of torchvision %s", column, text(csv, "model"), hex,
			 text(csv, column));
}

/* Every model that torchvision has, and every module of the convolutional ones: classes, names,
 * output shapes, order, and what overwrites its input. */
static void modules_are_those_of_torchvision(void **state)
{
	struct rfl_csv *csv = open_published("module_traces.csv");
	int models = 0, traces = 0;

	(void)state;
	while (next(csv)) {
		struct rfl_net *net = build(text(csv, "model"));
		int64_t modules = 0;
		uint64_t trace = hash_of_modules(net, &modules);

		assert_int_equal(net->nodes[0].shape.dim[1], integer(csv, "image_size"));
		assert_int_equal(net->nparams, integer(csv, "tensors"));
		check_hash(csv, "state_dict_fnv1a", hash_of_params(net));
		if (*text(csv, "trace_fnv1a")) {
			assert_int_equal(modules, integer(csv, "modules"));
			check_hash(csv, "trace_fnv1a", trace);
			traces++;
		}
		rfl_net_free(net);
		models++;
	}
	rfl_csv_close(csv);
	assert_int_equal(models, 82);
	assert_int_equal(traces, 66);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers_are_those_of_the_lists),
		cmocka_unit_test(modules_are_those_of_torchvision),
		cmocka_unit_test(names_follow_the_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
