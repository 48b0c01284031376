/*
 * test_complexity_summary.c - the document, the tables and the layer lists of `roofline
 * complexity`.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "complexity/complexity.h"

static const int64_t batches[] = { 1, 16 };

static struct rfl_summary_options plain(void)
{
	return (struct rfl_summary_options){
		.batches = batches,
		.nbatches = RFL_ARRAY_LEN(batches),
		.precision = "fp32",
		.optimizer = RFL_OPT_MOMENTUM,
		.depth = 1,
		.fusion = -1,
	};
}

static struct rfl_summary *summary_of(const char *model, const struct rfl_summary_options *options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_summary *s = NULL;

	assert_ok(rfl_summary_new(model, options, &s, &err), &err);
	return s;
}

static json_t *document_of(struct rfl_summary *const *s, size_t n,
			   const struct rfl_summary_options *options)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *document = NULL;

	assert_ok(rfl_summary_json(s, n, options, "1.2.3", &document, &err), &err);
	return document;
}

static json_int_t at(const json_t *o, const char *a, const char *b)
{
	const json_t *value = b ? json_object_get(json_object_get(o, a), b) : json_object_get(o, a);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

/* The part of JSON Schema that docs/complexity.schema.json uses. */
static void conforms(const json_t *root, const json_t *schema, const json_t *value);

static void conforms_object(const json_t *root, const json_t *schema, const json_t *value)
{
	const json_t *props = json_object_get(schema, "properties"), *item;
	size_t i;
	const char *key;
	json_t *member;

	assert_true(json_is_object(value));
	assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
	json_array_foreach(json_object_get(schema, "required"), i, item)
	{
		if (!json_object_get(value, json_string_value(item)))
			fail_msg("the document lacks '%s'", json_string_value(item));
	}
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		if (!json_object_get(props, key))
			fail_msg("the schema lacks '%s'", key);
		conforms(root, json_object_get(props, key), member);
	}
}

static void conforms_type(const json_t *root, const json_t *schema, const json_t *value)
{
	const char *type = json_string_value(json_object_get(schema, "type"));
	const json_t *item;
	size_t i;

	assert_non_null(type);
	if (strcmp(type, "object") == 0) {
		conforms_object(root, schema, value);
	} else if (strcmp(type, "array") == 0) {
		assert_true(json_is_array(value));
		json_array_foreach(value, i, item)
			conforms(root, json_object_get(schema, "items"), item);
	} else if (strcmp(type, "integer") == 0) {
		assert_true(json_is_integer(value));
		assert_true(json_integer_value(value) >=
			    json_integer_value(json_object_get(schema, "minimum")));
	} else if (strcmp(type, "string") == 0) {
		assert_true(json_is_string(value));
	} else if (strcmp(type, "boolean") == 0) {
		assert_true(json_is_boolean(value));
	} else {
		fail_msg("this test does not know the type '%s'", type);
	}
}

static void conforms(const json_t *root, const json_t *schema, const json_t *value)
{
	static const char prefix[] = "#/$defs/";
	const json_t *ref = json_object_get(schema, "$ref"), *item;
	const json_t *constant = json_object_get(schema, "const");
	const json_t *choices = json_object_get(schema, "enum");
	bool found = false;
	size_t i;

	if (ref) {
		const char *name = json_string_value(ref);

		assert_memory_equal(name, prefix, strlen(prefix));
		schema = json_object_get(json_object_get(root, "$defs"), name + strlen(prefix));
		assert_non_null(schema);
		conforms(root, schema, value);
	} else if (constant) {
		assert_true(json_equal(constant, value));
	} else if (choices) {
		json_array_foreach(choices, i, item) found |= json_equal(item, value) == 1;
		assert_true(found);
	} else {
		conforms_type(root, schema, value);
	}
}

static void document_has_exactly_the_keys_of_its_schema(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *schema = NULL;

	(void)state;
	assert_ok(rfl_json_load(data_path("../../docs/complexity.schema.json"), &schema, &err),
		  &err);
	for (int by = RFL_BY_MODEL; by <= RFL_BY_KIND; by++) {
		struct rfl_summary_options options = plain();
		struct rfl_summary *s[2];
		json_t *document, *model;
		size_t i;

		options.by = (enum rfl_by)by;
		s[0] = summary_of("resnet18", &options);
		s[1] = summary_of("vgg11", &options);
		document = document_of(s, 2, &options);
		conforms(schema, schema, document);
		json_array_foreach(json_object_get(document, "models"), i, model) assert_int_equal(
			json_object_get(model, "rows") != NULL, by != RFL_BY_MODEL);
		json_decref(document);
		rfl_summary_free(s[0]);
		rfl_summary_free(s[1]);
	}
	json_decref(schema);
}

static void document_has_the_published_numbers(void **state)
{
	static const struct {
		const char *model;
		json_int_t params, macs, training_flops;
	} rows[] = {
		{ "resnet50", 25557032, 4089184256, 24299077632 },
		{ "vgg16", 138357544, 15470264320, 2 * 46324088832 },
		{ "mobilenet_v2", 3504872, 300774272, 2 * 891484800 },
	};
	struct rfl_summary_options options = plain();

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_summary *s = summary_of(rows[i].model, &options);
		json_t *document = document_of(&s, 1, &options), *model, *batch;

		model = json_array_get(json_object_get(document, "models"), 0);
		assert_string_equal(json_string_value(json_object_get(model, "model")),
				    rows[i].model);
		assert_int_equal(at(model, "params", NULL), rows[i].params);
		assert_int_equal(at(model, "forward", "macs"), rows[i].macs);
		assert_int_equal(at(model, "forward", "flops"), 2 * rows[i].macs);
		assert_int_equal(at(model, "training", "flops"), rows[i].training_flops);
		batch = json_array_get(json_object_get(model, "batches"), 1);
		assert_int_equal(at(batch, "batch", NULL), 16);
		assert_int_equal(at(batch, "forward", "macs"), 16 * rows[i].macs);
		assert_int_equal(at(batch, "training", "flops"), 16 * rows[i].training_flops);
		json_decref(document);
		rfl_summary_free(s);
	}
}

static void input_gradient_reaches_the_document(void **state)
{
	struct rfl_summary_options options = plain();
	struct rfl_summary *s;
	json_t *document, *model;

	(void)state;
	options.input_grad = true;
	s = summary_of("resnet18", &options);
	document = document_of(&s, 1, &options);
	model = json_array_get(json_object_get(document, "models"), 0);
	assert_int_equal(at(model, "training", "flops"), INT64_C(10884440064));
	assert_true(json_is_true(
		json_object_get(json_object_get(document, "convention"), "first_layer_dgrad")));
	json_decref(document);
	rfl_summary_free(s);
}

/* The rows of every way of gathering add up to the totals, loss and optimizer included. */
static void rows_add_up(void **state)
{
	struct rfl_summary_options options = plain();
	struct rfl_summary *s = summary_of("mobilenet_v2", &options);
	const struct rfl_count *training = s->training[1], *forward = s->forward[1];
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int by = RFL_BY_MODEL; by <= RFL_BY_KIND; by++) {
		struct rfl_summary_row *rows = NULL, sum = { 0 };
		size_t n = 0;

		assert_ok(rfl_summary_rows(s, 1, (enum rfl_by)by, 2, &rows, &n, &err), &err);
		for (size_t i = 0; i < n; i++) {
			sum.params += rows[i].params;
			sum.forward.macs += rows[i].forward.macs;
			sum.training.macs += rows[i].training.macs;
			for (int level = 0; level < RFL_FUSION_COUNT; level++) {
				sum.forward.bytes[level] += rows[i].forward.bytes[level];
				sum.training.bytes[level] += rows[i].training.bytes[level];
			}
		}
		assert_int_equal(n == 1, by == RFL_BY_MODEL);
		assert_int_equal(sum.params, forward->params);
		assert_int_equal(2 * sum.forward.macs, rfl_count_forward_flops(forward));
		assert_int_equal(2 * sum.training.macs, rfl_count_training_flops(training));
		for (int level = 0; level < RFL_FUSION_COUNT; level++) {
			enum rfl_fusion fusion = (enum rfl_fusion)level;

			assert_int_equal(sum.forward.bytes[level],
					 rfl_count_bytes(forward, fusion, RFL_SCOPE_FORWARD));
			assert_int_equal(sum.training.bytes[level],
					 rfl_count_bytes(training, fusion, RFL_SCOPE_STEP));
		}
		free(rows);
	}
	rfl_summary_free(s);
}

static void modules_are_cut_at_the_depth(void **state)
{
	static const struct {
		int depth;
		const char *name;
		size_t rows;
	} cases[] = {
		/* conv1 bn1 relu maxpool layer1-4 avgpool fc, input, top, loss, optimizer */
		{ 1, "layer3", 14 },
		/* two blocks in each layer */
		{ 2, "layer3.1", 18 },
	};
	struct rfl_summary_options options = plain();
	struct rfl_summary *s = summary_of("resnet18", &options);
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t c = 0; c < RFL_ARRAY_LEN(cases); c++) {
		struct rfl_summary_row *rows = NULL;
		bool found = false;
		size_t n = 0;

		assert_ok(rfl_summary_rows(s, 0, RFL_BY_MODULE, cases[c].depth, &rows, &n, &err),
			  &err);
		for (size_t i = 0; i < n; i++)
			found |= strcmp(rows[i].name, cases[c].name) == 0;
		assert_true(found);
		assert_int_equal(n, cases[c].rows);
		free(rows);
	}
	rfl_summary_free(s);
}

static void table_states_its_convention(void **state)
{
	static const enum rfl_format formats[] = { RFL_FORMAT_TABLE, RFL_FORMAT_MD };
	struct rfl_summary_options options = plain();
	struct rfl_summary *s = summary_of("resnet50", &options);
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int train = 0; train < 2; train++) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(formats); i++) {
			struct rfl_buf out;

			rfl_buf_init(&out, 0);
			options.train = train != 0;
			assert_ok(rfl_summary_table(&s, 1, &options, formats[i], &out, &err), &err);
			assert_non_null(strstr(rfl_buf_str(&out), "25,557,032"));
			assert_non_null(strstr(rfl_buf_str(&out), "GMACs"));
			assert_non_null(strstr(rfl_buf_str(&out), "GFLOPs"));
			assert_non_null(strstr(rfl_buf_str(&out), "FLOPs = 2 x MACs"));
			assert_int_equal(strstr(rfl_buf_str(&out), "training step") != NULL, train);
			rfl_buf_fini(&out);
		}
	}
	rfl_summary_free(s);
}

static void csv_is_exact(void **state)
{
	struct rfl_summary_options options = plain();
	struct rfl_summary *s = summary_of("resnet50", &options);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	options.fusion = RFL_FUSION_COMPULSORY;
	rfl_buf_init(&out, 0);
	assert_ok(rfl_summary_table(&s, 1, &options, RFL_FORMAT_CSV, &out, &err), &err);
	assert_non_null(strstr(rfl_buf_str(&out),
			       "model,params,forward_macs,forward_flops,training_"
			       "flops,batch,macs,flops,elementwise,compulsory_"
			       "bytes,compulsory_ai"));
	assert_non_null(strstr(rfl_buf_str(&out),
			       "resnet50,25557032,4089184256,8178368512,24299077632,16,65426948096,"
			       "130853896192,"));
	assert_null(strstr(rfl_buf_str(&out), "unfused"));
	rfl_buf_fini(&out);
	rfl_summary_free(s);
}

static void layer_list_has_every_layer_and_the_totals(void **state)
{
	struct rfl_summary_options options = plain();
	struct rfl_summary *s = summary_of("vgg16", &options);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	assert_ok(rfl_summary_text(s, &options, &out, &err), &err);
	for (int i = 0; i < s->net->nnodes; i++)
		assert_non_null(strstr(rfl_buf_str(&out), s->net->nodes[i].name));
	assert_non_null(strstr(rfl_buf_str(&out), "classifier.0"));
	assert_non_null(strstr(rfl_buf_str(&out), "102,764,544")); /* its parameters */
	assert_non_null(strstr(rfl_buf_str(&out), "15,470,264,320"));
	assert_non_null(strstr(rfl_buf_str(&out), "30,940,528,640"));
	rfl_buf_fini(&out);
	rfl_summary_free(s);
}

/* The table of docs/complexity.md is what the program counts. */
static void documented_zoo_is_counted(void **state)
{
	const struct rfl_zoo_model *model;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf doc, row;

	(void)state;
	rfl_buf_init(&doc, 0);
	rfl_buf_init(&row, 0);
	assert_ok(rfl_file_read(data_path("../../docs/complexity.md"), &doc, &err), &err);
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_summary_options options = plain();
		struct rfl_summary *s = summary_of(model->name, &options);
		char params[RFL_NUM_MAX], macs[RFL_NUM_MAX], flops[RFL_NUM_MAX], train[RFL_NUM_MAX];
		int64_t forward = rfl_count_forward_flops(s->one_forward);

		rfl_buf_reset(&row);
		rfl_buf_printf(&row, "| %s | %s | %s | %s | %s |\n", model->name,
			       rfl_num_grouped(s->one_forward->params, params),
			       rfl_num_grouped(forward / 2, macs), rfl_num_grouped(forward, flops),
			       rfl_num_grouped(rfl_count_training_flops(s->one_training), train));
		if (!strstr(rfl_buf_str(&doc), rfl_buf_str(&row)))
			fail_msg("docs/complexity.md lacks the row %s", rfl_buf_str(&row));
		rfl_summary_free(s);
	}
	rfl_buf_fini(&doc);
	rfl_buf_fini(&row);
}

static void precisions_have_a_storage(void **state)
{
	struct rfl_summary_options options = plain();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_summary *s = NULL;

	(void)state;
	for (size_t i = 0; rfl_precision_words[i]; i++) {
		options.precision = rfl_precision_words[i];
		rfl_summary_free(summary_of("vgg11", &options));
	}
	options.precision = "fp8";
	assert_int_equal(rfl_summary_new("vgg11", &options, &s, &err), RFL_EINVAL);
	assert_null(s);
	assert_says(&err, "fp8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(document_has_exactly_the_keys_of_its_schema),
		cmocka_unit_test(document_has_the_published_numbers),
		cmocka_unit_test(input_gradient_reaches_the_document),
		cmocka_unit_test(rows_add_up),
		cmocka_unit_test(modules_are_cut_at_the_depth),
		cmocka_unit_test(table_states_its_convention),
		cmocka_unit_test(csv_is_exact),
		cmocka_unit_test(layer_list_has_every_layer_and_the_totals),
		cmocka_unit_test(documented_zoo_is_counted),
		cmocka_unit_test(precisions_have_a_storage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
