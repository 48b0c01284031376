/* ONNX files: counts equal to those of the zoo, and every refusal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "complexity/count.h"
#include "complexity/net/file.h"
#include "complexity/onnx/onnx.h"
#include "complexity/op.h"
#include "complexity/zoo.h"
#include "tests/unit/rfl_test.h"

/* --- files of torch.onnx.export ------------------------------------------------------------------
 */

static int64_t macs_of(const struct rfl_net *net)
{
	const struct rfl_count_options one = { .batch = 1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;
	int64_t macs;

	assert_ok(rfl_count_net(net, &one, &count, &err), &err);
	macs = count->total.macs[RFL_PASS_FORWARD];
	rfl_count_free(count);
	return macs;
}

static struct rfl_net *load(const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	char path[128];

	(void)snprintf(path, sizeof(path), "onnx/%s.onnx", name);
	assert_ok(rfl_net_load(data_path(path), &net, &err), &err);
	return net;
}

static int count_op(const struct rfl_net *net, enum rfl_op op)
{
	int n = 0;

	for (int i = 0; i < net->nnodes; i++)
		n += net->nodes[i].op == op;
	return n;
}

static void files_count_as_the_zoo(void **state)
{
	static const struct {
		const char *model;
		int folded;
	} all[] = {
		{ "alexnet", 0 },         { "efficientnet_b0", 49 },
		{ "mobilenet_v2", 52 },   { "mobilenet_v3_small", 34 },
		{ "regnet_x_400mf", 71 }, { "resnet18", 20 },
		{ "squeezenet1_1", 0 },   { "vgg11", 0 },
		{ "vgg11_bn", 8 },
	};
	struct rfl_err err = RFL_ERR_INIT;
	char name[64], text[64];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(all); i++) {
		struct rfl_net *zoo = NULL, *folded, *whole;

		assert_ok(rfl_zoo_build(all[i].model, &(struct rfl_zoo_options){ 0 }, &zoo, &err),
			  &err);
		(void)snprintf(name, sizeof(name), "%s.default", all[i].model);
		folded = load(name);
		(void)snprintf(name, sizeof(name), "%s.unfolded", all[i].model);
		whole = load(name);
		assert_int_equal(macs_of(folded), macs_of(zoo));
		assert_int_equal(macs_of(whole), macs_of(zoo));
		assert_int_equal(rfl_net_param_count(whole), rfl_net_param_count(zoo));
		assert_int_equal(rfl_net_buffer_count(whole), rfl_net_buffer_count(zoo));
		assert_int_equal(whole->nparams, zoo->nparams);
		for (int k = 0; k < zoo->nparams; k++) { /* names and order of the state_dict */
			assert_string_equal(whole->params[k].name, zoo->params[k].name);
			assert_memory_equal(whole->params[k].dim, zoo->params[k].dim,
					    sizeof(int64_t) * (size_t)zoo->params[k].ndim);
		}
		assert_null(whole->caution);
		assert_null(whole->uncounted);
		assert_null(folded->uncounted);
		(void)snprintf(text, sizeof(text), "%d batch norms are folded", all[i].folded);
		if (all[i].folded)
			assert_non_null(strstr(folded->caution, text));
		else
			assert_null(folded->caution);
		rfl_net_free(zoo);
		rfl_net_free(folded);
		rfl_net_free(whole);
	}
}

static void transformers_count_as_the_zoo(void **state)
{
	static const char *const models[] = { "vit_b_16", "swin_t" };
	struct rfl_err err = RFL_ERR_INIT;
	char name[64];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(models); i++) {
		struct rfl_net *zoo = NULL, *net;

		assert_ok(rfl_zoo_build(models[i], &(struct rfl_zoo_options){ 0 }, &zoo, &err),
			  &err);
		(void)snprintf(name, sizeof(name), "%s.default", models[i]);
		net = load(name);
		assert_int_equal(macs_of(net), macs_of(zoo));
		if (i == 0)
			assert_int_equal(rfl_net_param_count(net), rfl_net_param_count(zoo));
		else /* its pooling is written as an element-wise gather of a flattened tensor */
			assert_string_equal(net->uncounted, "1 Gather");
		rfl_net_free(zoo);
		rfl_net_free(net);
	}
}

/* The same encoder by two exporters and in three opsets. */
static void forms_are_recognised(void **state)
{
	static const char *const names[] = { "encoder.dynamo.opset18", "encoder.dynamo.opset23",
					     "encoder.torchscript.opset17" };
	struct rfl_net *net;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		net = load(names[i]);
		assert_null(net->uncounted);
		assert_int_equal(macs_of(net), 2359296);
		assert_int_equal(count_op(net, RFL_OP_SDPA), 2);
		assert_int_equal(count_op(net, RFL_OP_GELU), 2);
		assert_int_equal(count_op(net, RFL_OP_LAYER_NORM), 4);
		assert_int_equal(count_op(net, RFL_OP_LINEAR), 8);
		/* untrained: the exporter of the first two drops biases of zeros */
		assert_int_equal(rfl_net_param_count(net), i == 2 ? 66944 : 66816);
		rfl_net_free(net);
	}
	/* A mask without its elements may be any: the attention stays in its parts. */
	net = load("tiny_gpt.dynamo.opset20");
	assert_null(net->uncounted);
	assert_int_equal(count_op(net, RFL_OP_SDPA), 0);
	assert_int_equal(count_op(net, RFL_OP_SOFTMAX), 2);
	assert_int_equal(count_op(net, RFL_OP_EMBEDDING), 1);
	assert_int_equal(macs_of(net), 3932160);
	rfl_net_free(net);
}

/* Small networks of the TorchScript exporter: shapes are inferred, also with a batch that is
 * dynamic or not 1, and constants are computed from shapes. The numbers follow from small/make.py.
 */
static void scripts_are_read(void **state)
{
	static const struct {
		const char *name;
		int64_t params, macs;
		enum rfl_op op; /* n of them */
		int n;
		bool folded;
	} all[] = {
		{ "cnn", 197, 2340, RFL_OP_SILU, 1, true },
		{ "cnn_opset11", 197, 2340, RFL_OP_HARD_SWISH, 1, true },
		{ "cnn_train", 201, 2340, RFL_OP_BATCH_NORM, 1, false },
		{ "cnn_batch4", 197, 2340, RFL_OP_RELU6, 1, true },
		{ "cnn_dynamic", 197, 2340, RFL_OP_PAD, 2, true },
		{ "gpt", 1096, 3680, RFL_OP_SDPA, 1, false },
		{ "gpt_batch2", 1096, 3680, RFL_OP_GELU, 1, false },
		{ "gpt_dynamic", 1096, 3680, RFL_OP_SDPA, 1, false },
		{ "llama", 968, 3680, RFL_OP_RMS_NORM, 3, false },
		{ "llama_batch2", 968, 3680, RFL_OP_SDPA, 1, false },
		{ "mlp_dynamic", 432, 424, RFL_OP_GELU, 1, false },
		{ "pixels", 150, 8448, RFL_OP_MISH, 1, false },
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(all); i++) {
		struct rfl_net *net;

		(void)snprintf(name, sizeof(name), "small/%s", all[i].name);
		net = load(name);
		assert_null(net->uncounted);
		assert_int_equal(net->caution != NULL, all[i].folded);
		assert_int_equal(rfl_net_param_count(net), all[i].params);
		assert_int_equal(macs_of(net), all[i].macs);
		assert_int_equal(count_op(net, all[i].op), all[i].n);
		for (int k = 0; k < net->nnodes; k++)
			if (net->nodes[k].op == RFL_OP_SDPA)
				assert_true(net->nodes[k].attr.sdpa.causal);
		rfl_net_free(net);
	}
}

/* --- files by hand ------------------------------------------------------------------------------
 */

static void put_varint(struct rfl_buf *b, uint64_t v)
{
	for (; v > 127; v >>= 7)
		rfl_buf_putc(b, (char)(v | 128));
	rfl_buf_putc(b, (char)v);
}

static void put_number(struct rfl_buf *b, int field, uint64_t v)
{
	put_varint(b, (uint64_t)field << 3);
	put_varint(b, v);
}

static void put_bytes(struct rfl_buf *b, int field, const void *data, size_t n)
{
	put_varint(b, (uint64_t)field << 3 | 2);
	put_varint(b, n);
	rfl_buf_append(b, data, n);
}

/* Put a message into a field of another, and empty it. */
static void put_message(struct rfl_buf *b, int field, struct rfl_buf *message)
{
	put_bytes(b, field, message->data, message->len);
	rfl_buf_reset(message);
}

static void put_text(struct rfl_buf *b, int field, const char *text)
{
	put_bytes(b, field, text, strlen(text));
}

/* A value with dimensions; -1 is dynamic. */
static void put_value(struct rfl_buf *graph, int field, const char *name, int type, const int *dims)
{
	struct rfl_buf dim = { .max = 1 << 20 }, shape = dim, tensor = dim, value = dim;

	for (; *dims; dims++) {
		if (*dims > 0)
			put_number(&dim, 1, (uint64_t)*dims);
		else
			put_text(&dim, 2, "batch");
		put_message(&shape, 1, &dim);
	}
	put_number(&tensor, 1, (uint64_t)type);
	put_message(&tensor, 2, &shape);
	put_message(&value, 1, &tensor); /* the TypeProto */
	put_message(&shape, 2, &value);
	put_text(&value, 1, name);
	rfl_buf_append(&value, shape.data, shape.len);
	put_message(graph, field, &value);
	rfl_buf_fini(&dim);
	rfl_buf_fini(&shape);
	rfl_buf_fini(&tensor);
	rfl_buf_fini(&value);
}

static void put_weight(struct rfl_buf *graph, const char *name, const int *dims,
		       const char *location)
{
	struct rfl_buf tensor = { .max = 1 << 20 }, entry = tensor;

	for (; *dims; dims++)
		put_number(&tensor, 1, (uint64_t)*dims);
	put_number(&tensor, 2, 1);
	put_text(&tensor, 8, name);
	if (location) {
		put_text(&entry, 1, "location");
		put_text(&entry, 2, location);
		put_message(&tensor, 13, &entry);
	}
	put_message(graph, 5, &tensor);
	rfl_buf_fini(&tensor);
	rfl_buf_fini(&entry);
}

/* A node of "op in in > out". */
static void put_node(struct rfl_buf *graph, const char *text)
{
	struct rfl_buf node = { .max = 1 << 20 };
	struct rfl_span rest = rfl_span_of(text), word, op;
	int field = 1;

	assert_true(rfl_span_next_word(&rest, &op));
	while (rfl_span_next_word(&rest, &word))
		if (rfl_span_is(word, ">"))
			field = 2;
		else
			put_bytes(&node, field, word.at, word.len);
	put_bytes(&node, 4, op.at, op.len);
	put_message(graph, 1, &node);
	rfl_buf_fini(&node);
}

static void put_model(struct rfl_buf *out, struct rfl_buf *graph, int opset)
{
	struct rfl_buf set = { .max = 1 << 20 };

	put_number(out, 1, 8);
	put_number(&set, 2, (uint64_t)opset);
	put_message(out, 8, &set);
	put_message(out, 7, graph);
	rfl_buf_fini(&set);
}

static enum rfl_rc parse(const struct rfl_buf *file, struct rfl_net **ret, struct rfl_err *err)
{
	const enum rfl_rc rc = rfl_onnx_from_memory((struct rfl_span){ file->data, file->len },
						    "a.onnx", ret, err);

	assert_true((rc == RFL_OK) == (*ret != NULL));
	if (rc != RFL_OK) {
		assert_memory_equal(err->msg, "a.onnx: ", 8);
		assert_null(strchr(err->msg, '\n'));
	}
	return rc;
}

static void refuses(struct rfl_buf *file, const char *why)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_int_not_equal(parse(file, &net, &err), RFL_OK);
	assert_says(&err, why);
	rfl_buf_reset(file);
}

#define DIMS(...) ((const int[]){ __VA_ARGS__, 0 })

/* A classifier of vectors: x w, relu. */
static void put_classifier(struct rfl_buf *graph)
{
	put_value(graph, 11, "x", 1, DIMS(-1, 3, 4, 4));
	put_weight(graph, "conv.weight", DIMS(8, 3, 3, 3), NULL);
	put_node(graph, "Conv x conv.weight > y");
	put_node(graph, "GlobalAveragePool y > z");
	put_node(graph, "Flatten z > f");
}

static void names_do_not_identify(void **state)
{
	struct rfl_buf file = { .max = 1 << 20 }, graph = file;
	struct rfl_err err = RFL_ERR_INIT;
	static const char *const paths[] = { "a.onnx", "other/b.onnx", "a.onnx" };
	char digests[3][17];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rfl_net *net = NULL;

		put_classifier(&graph);
		put_node(&graph, i == 2 ? "Relu f > t" : "Sigmoid f > t");
		put_value(&graph, 12, "t", 1, DIMS(-1, 8));
		put_model(&file, &graph, 20);
		assert_ok(rfl_onnx_from_memory((struct rfl_span){ file.data, file.len }, paths[i],
					       &net, &err),
			  &err);
		assert_ok(rfl_net_digest(net, digests[i], &err), &err);
		rfl_net_free(net);
		rfl_buf_reset(&file);
		rfl_buf_reset(&graph);
	}
	assert_string_equal(digests[0], digests[1]);
	assert_string_not_equal(digests[0], digests[2]);
	rfl_buf_fini(&file);
	rfl_buf_fini(&graph);
}

static void unknown_operations_are_listed(void **state)
{
	struct rfl_buf file = { .max = 1 << 20 }, graph = file;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	(void)state;
	put_classifier(&graph);
	put_value(&graph, 13, "t", 1, DIMS(-1, 8));
	put_node(&graph, "Strange f > s");
	put_node(&graph, "Erf s > e");
	put_node(&graph, "Strange e > t");
	put_node(&graph, "Strange x > unused");
	put_value(&graph, 12, "t", 1, DIMS(-1, 8));
	put_model(&file, &graph, 20);
	/* the first has no shape in the file, so that what follows has none either */
	assert_ok(parse(&file, &net, &err), &err);
	assert_string_equal(net->uncounted, "2 Strange, and 1 that depend on them");
	assert_int_equal(macs_of(net), 2 * 2 * 8 * 27);
	assert_int_equal(net->classes, 8);
	assert_int_equal(rfl_net_write(net, &graph, &err), RFL_EUNSUPPORTED);
	rfl_net_free(net);
	rfl_buf_fini(&file);
	rfl_buf_fini(&graph);
}

static void bad_files_are_refused(void **state)
{
	struct rfl_buf file = { .max = 1 << 26 }, graph = file, inner = file, outer = file;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;
	size_t whole;
	char *text;

	(void)state;
	rfl_buf_puts(&file, "\x08\x01");
	refuses(&file, "not an ONNX model");

	/* opsets before 11 and after 23 */
	put_classifier(&graph);
	put_value(&graph, 12, "f", 1, DIMS(-1, 8));
	put_model(&file, &graph, 9);
	refuses(&file, "opset 9 are not supported; export it with opset_version from 11 to 23");
	put_classifier(&graph);
	put_value(&graph, 12, "f", 1, DIMS(-1, 8));
	put_model(&file, &graph, 99);
	refuses(&file, "opset 99");

	/* every shorter file is damaged, or misses something */
	put_classifier(&graph);
	put_value(&graph, 12, "f", 1, DIMS(-1, 8));
	put_model(&file, &graph, 20);
	assert_ok(parse(&file, &net, &err), &err);
	rfl_net_free(net);
	net = NULL;
	whole = file.len;
	text = malloc(whole);
	assert_non_null(text);
	for (size_t n = 0; n < whole; n++) { /* in a block of just this size, for the sanitizer */
		struct rfl_err why = RFL_ERR_INIT;
		char *part = malloc(n + 1);

		assert_non_null(part);
		memcpy(part, file.data, n);
		assert_int_not_equal(
			rfl_onnx_from_memory((struct rfl_span){ part, n }, "a.onnx", &net, &why),
			RFL_OK);
		assert_null(net);
		free(part);
	}
	free(text);
	rfl_buf_reset(&file);

	/* a length that is larger than the file */
	put_number(&file, 1, 8);
	rfl_buf_puts(&file, "\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
	refuses(&file, "cut short or damaged");

	/* a cycle, and a value that nothing computes */
	put_value(&graph, 11, "x", 1, DIMS(1, 3, 4, 4));
	put_node(&graph, "Add x b > a");
	put_node(&graph, "Relu a > b");
	put_value(&graph, 12, "b", 1, DIMS(1, 8));
	put_model(&file, &graph, 20);
	refuses(&file, "reads 'b', which no node before it computes");

	put_value(&graph, 11, "x", 1, DIMS(1, 3, 4, 4));
	put_node(&graph, "Relu x > a");
	put_node(&graph, "Relu x > a");
	put_model(&file, &graph, 20);
	refuses(&file, "two values are called 'a'");

	/* dynamic sizes other than the batch, several inputs */
	put_value(&graph, 11, "tokens", 7, DIMS(-1, -1));
	put_node(&graph, "Relu tokens > a");
	put_value(&graph, 12, "a", 1, DIMS(1, 8));
	put_model(&file, &graph, 20);
	refuses(&file, "dimension 1 of the input 'tokens' is dynamic");
	put_value(&graph, 11, "x", 1, DIMS(1, 3, 4, 4));
	put_value(&graph, 11, "mask", 1, DIMS(1, 4));
	put_node(&graph, "Relu x > a");
	put_value(&graph, 12, "a", 1, DIMS(1, 8));
	put_model(&file, &graph, 20);
	refuses(&file, "several inputs, 'x' and 'mask'");

	/* weights outside the directory of the file */
	static const char *const outside[] = {
		"/etc/passwd", "../w", "a/../../w", "", "a\\b", ".."
	};
	for (size_t i = 0; i < RFL_ARRAY_LEN(outside); i++) {
		put_classifier(&graph);
		put_weight(&graph, "w", DIMS(4), outside[i]);
		put_value(&graph, 12, "f", 1, DIMS(-1, 8));
		put_model(&file, &graph, 20);
		refuses(&file, "outside the directory of the file");
	}

	/* sizes whose product exceeds 63 bits */
	put_value(&graph, 11, "x", 1, DIMS(1, 2147483647, 2147483647, 2147483647));
	put_node(&graph, "Relu x > a");
	put_value(&graph, 12, "a", 1, DIMS(1, 8));
	put_model(&file, &graph, 20);
	refuses(&file, "has 2^63 elements or more");

	/* the shape of the output depends on what is not supported */
	put_value(&graph, 11, "x", 1, DIMS(1, 3, 4, 4));
	put_node(&graph, "Celu x > a");
	put_node(&graph, "NonZero a > b");
	put_value(&graph, 12, "b", 1, DIMS(-1, -1));
	put_model(&file, &graph, 20);
	refuses(&file, "operations are not supported: 1 Celu, 1 NonZero");

	/* graphs in graphs */
	put_node(&outer, "If > y");
	rfl_buf_append(&inner, outer.data, outer.len);
	for (int i = 0; i < 2000; i++) {
		rfl_buf_reset(&graph);
		put_bytes(&graph, 6, inner.data, inner.len); /* attribute: graph */
		rfl_buf_reset(&outer);
		put_bytes(&outer, 5, graph.data, graph.len); /* node: attribute */
		rfl_buf_reset(&inner);
		put_bytes(&inner, 1, outer.data, outer.len); /* graph: node */
	}
	put_model(&file, &inner, 20);
	refuses(&file, "nested more than 64 levels deep");
	rfl_buf_fini(&file);
	rfl_buf_fini(&graph);
	rfl_buf_fini(&inner);
	rfl_buf_fini(&outer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_count_as_the_zoo),
		cmocka_unit_test(transformers_count_as_the_zoo),
		cmocka_unit_test(forms_are_recognised),
		cmocka_unit_test(scripts_are_read),
		cmocka_unit_test(names_do_not_identify),
		cmocka_unit_test(unknown_operations_are_listed),
		cmocka_unit_test(bad_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
