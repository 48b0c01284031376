/* The document, the tables and the lists of layers of `roofline complexity`. */
#include "tests/unit/json_schema.h"
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "complexity/op.h"
#include "complexity/peer.h"
#include "complexity/summary.h"
#include "machine/terms.h"
#include "report/complexity.h"

static const int64_t batches[] = { 1, 16 };

static struct rfl_complexity plain(void)
{
	return (struct rfl_complexity){
		.options = { .precision = "fp32",
			     .work.count.optimizer = RFL_OPT_MOMENTUM,
			     .depth = 1 },
		.batches = batches,
		.nbatches = RFL_ARRAY_LEN(batches),
		.fusion = RFL_FUSION_ALL,
	};
}

static struct rfl_summary *summary_of(const char *model, const struct rfl_complexity *r)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_summary *s = NULL;

	assert_ok(rfl_summary_new(model, &r->options, &s, &err), &err);
	assert_ok(rfl_summary_at(s, 1, &err), &err);
	return s;
}

/* The same of one network. */
static const struct rfl_complexity *of(struct rfl_complexity *r, struct rfl_summary **s)
{
	r->items = s;
	r->n = 1;
	return r;
}

static json_t *document_of(const struct rfl_complexity *r)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *document = NULL;

	assert_ok(rfl_complexity_json(r, "1.2.3", &document, &err), &err);
	return document;
}

static json_int_t at(const json_t *o, const char *a, const char *b)
{
	const json_t *value = b ? json_object_get(json_object_get(o, a), b) : json_object_get(o, a);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

/* A machine on which a node takes a second per MAC. */
static void second_per_mac(const struct rfl_attained_roof *roof, const struct rfl_count *count,
			   struct rfl_attained *times)
{
	(void)roof;
	for (int i = 0; i < count->nnodes; i++)
		times[i].limit_s[RFL_LIMIT_COMPUTE] = (double)count->nodes[i].macs[0];
}

static const struct rfl_attained_roof slow_machine = {
	.attain = second_per_mac,
	.about = "one multiply-add per second",
	.env = "slow",
	.fusion = RFL_FUSION_FUSED,
};

static void document_conforms(const json_t *schema, struct rfl_complexity *r)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_summary *s[2] = { summary_of("resnet18", r), summary_of("vgg11", r) };
	json_t *document, *model;
	size_t i;

	r->items = s;
	r->n = 2;
	for (size_t k = 0; r->device.memory_bytes && k < 2; k++)
		assert_ok(rfl_summary_fit(s[k], r->train, r->device.memory_bytes, 1, &err), &err);
	document = document_of(r);
	conforms(schema, schema, document);
	json_array_foreach(json_object_get(document, "models"), i, model)
	{
		assert_int_equal(json_object_get(model, "rows") != NULL,
				 r->options.by != RFL_SUMMARY_BY_MODEL);
		assert_int_equal(json_object_get(model, "peers") != NULL, r->npeers > 0);
		assert_int_equal(json_object_get(model, "fit") != NULL, r->device.name != NULL);
	}
	assert_int_equal(json_object_get(document, "roof") != NULL, r->options.roof != NULL);
	json_decref(document);
	rfl_summary_free(s[0]);
	rfl_summary_free(s[1]);
}

static void document_has_exactly_the_keys_of_its_schema(void **state)
{
	const struct rfl_peer *peers[] = { rfl_peer_at(0), rfl_peer_at(1) };
	struct rfl_err err = RFL_ERR_INIT;
	json_t *schema = NULL;

	(void)state;
	assert_ok(rfl_json_load(data_path("../../docs/complexity.schema.json"), &schema, &err),
		  &err);
	for (int by = RFL_SUMMARY_BY_MODEL; by <= RFL_SUMMARY_BY_KIND; by++) {
		struct rfl_complexity r = plain();

		r.options.by = (enum rfl_summary_by)by;
		document_conforms(schema, &r);
		r.options.memory = true;
		r.options.roof = &slow_machine;
		r.peers = peers;
		r.npeers = RFL_ARRAY_LEN(peers);
		r.device.name = "1 GiB";
		r.device.memory_bytes = INT64_C(1) << 30;
		document_conforms(schema, &r);
		r.train = true;
		document_conforms(schema, &r);
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
	struct rfl_complexity r = plain();

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_summary *s = summary_of(rows[i].model, &r);
		json_t *document = document_of(of(&r, &s)), *model, *batch;

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
	struct rfl_complexity r = plain();
	struct rfl_summary *s;
	json_t *document, *model;

	(void)state;
	r.options.work.count.input_grad = true;
	s = summary_of("resnet18", &r);
	document = document_of(of(&r, &s));
	model = json_array_get(json_object_get(document, "models"), 0);
	assert_int_equal(at(model, "training", "flops"), INT64_C(10884440064));
	assert_true(json_is_true(
		json_object_get(json_object_get(document, "convention"), "first_layer_dgrad")));
	json_decref(document);
	rfl_summary_free(s);
}

/* The rows of every way of gathering add up to the totals, loss and optimizer included, at every
 * batch that the summary is moved to. */
static void rows_add_up_at(struct rfl_summary *s)
{
	const struct rfl_summary_rows *rows = s->rows;
	struct rfl_summary_row sum = { 0 };

	rfl_summary_sum(s);
	for (size_t i = 0; i < rows->n; i++) {
		sum.params += rows->rows[i].params;
		sum.work[0].macs += rows->rows[i].work[0].macs;
		sum.work[1].macs += rows->rows[i].work[1].macs;
		for (int level = 0; level < RFL_FUSION_COUNT; level++) {
			sum.work[0].bytes[level] += rows->rows[i].work[0].bytes[level];
			sum.work[1].bytes[level] += rows->rows[i].work[1].bytes[level];
		}
	}
	assert_int_equal(sum.params, s->count[0]->params);
	assert_int_equal(2 * sum.work[0].macs, rfl_count_forward_flops(s->count[0]));
	assert_int_equal(2 * sum.work[1].macs, rfl_count_training_flops(s->count[1]));
	assert_int_equal(rows->total.work[1].macs, sum.work[1].macs);
	for (int level = 0; level < RFL_FUSION_COUNT; level++) {
		enum rfl_fusion fusion = (enum rfl_fusion)level;

		assert_int_equal(sum.work[0].bytes[level],
				 rfl_count_bytes(s->count[0], fusion, RFL_SCOPE_FORWARD));
		assert_int_equal(sum.work[1].bytes[level],
				 rfl_count_bytes(s->count[1], fusion, RFL_SCOPE_STEP));
		assert_int_equal(rows->total.work[1].bytes[level], sum.work[1].bytes[level]);
	}
}

static void rows_add_up(void **state)
{
	struct rfl_complexity r = plain();
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	r.options.depth = 2;
	for (int by = RFL_SUMMARY_BY_MODEL; by <= RFL_SUMMARY_BY_KIND; by++) {
		struct rfl_summary *s;

		r.options.by = (enum rfl_summary_by)by;
		s = summary_of("mobilenet_v2", &r);
		assert_int_equal(s->rows->n == 1, by == RFL_SUMMARY_BY_MODEL);
		for (int64_t batch = 1; batch <= 64; batch *= 8) {
			assert_ok(rfl_summary_at(s, batch, &err), &err);
			rows_add_up_at(s);
		}
		rfl_summary_free(s);
	}
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
	struct rfl_complexity r = plain();

	(void)state;
	r.options.by = RFL_SUMMARY_BY_MODULE;
	for (size_t c = 0; c < RFL_ARRAY_LEN(cases); c++) {
		struct rfl_summary *s;
		bool found = false;

		r.options.depth = cases[c].depth;
		s = summary_of("resnet18", &r);
		for (size_t i = 0; i < s->rows->n; i++)
			found |= strcmp(s->rows->rows[i].name, cases[c].name) == 0;
		assert_true(found);
		assert_int_equal(s->rows->n, cases[c].rows);
		rfl_summary_free(s);
	}
}

static void table_states_its_convention(void **state)
{
	static const enum rfl_format formats[] = { RFL_FORMAT_TABLE, RFL_FORMAT_MD };
	struct rfl_complexity r = plain();
	struct rfl_summary *s = summary_of("resnet50", &r);
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int train = 0; train < 2; train++) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(formats); i++) {
			struct rfl_buf out;

			rfl_buf_init(&out, 0);
			r.train = train != 0;
			assert_ok(rfl_complexity_table(of(&r, &s), formats[i], &out, &err), &err);
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

/* The largest first, equal ones in order; a layer may lead by one column and trail by another. */
static void rows_are_sorted_by_a_column(void **state)
{
	static const struct {
		enum rfl_summary_by by;
		const char *sort, *first, *refused;
	} cases[] = {
		{ RFL_SUMMARY_BY_LAYER, NULL, "name,macs\nconv1,118013952\n", NULL },
		{ RFL_SUMMARY_BY_LAYER, "macs", "name,macs\nconv1,118013952\n", NULL },
		{ RFL_SUMMARY_BY_LAYER, "params", "name,macs,params\nlayer4.0.conv2,", NULL },
		{ RFL_SUMMARY_BY_LAYER, "bytes", "name,macs,fused_bytes\n", NULL },
		{ RFL_SUMMARY_BY_LAYER, "kind", NULL, "--sort: 'kind' is text; choose a number" },
		{ RFL_SUMMARY_BY_LAYER, "parms", NULL,
		  "--sort: no column 'parms'; did you mean params?" },
		{ RFL_SUMMARY_BY_LAYER, "time", NULL, "'time_s' needs ceilings" },
		{ RFL_SUMMARY_BY_MODEL, "name", NULL, "describes a part" },
	};
	static const char *const chosen[] = { "name", "macs" };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_complexity r = plain();
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_summary *s;
		struct rfl_buf out;
		enum rfl_rc rc;

		rfl_buf_init(&out, 0);
		r.options.by = cases[i].by;
		r.nbatches = 1;
		r.top = cases[i].sort ? 0 : 3;
		r.sort = cases[i].sort;
		r.columns = chosen;
		r.ncolumns = cases[i].by == RFL_SUMMARY_BY_MODEL ? 0 : 2;
		rfl_complexity_needs(&r, false);
		s = summary_of("resnet18", &r);
		rc = rfl_complexity_table(of(&r, &s), RFL_FORMAT_CSV, &out, &err);
		if (cases[i].refused) {
			assert_int_equal(rc, RFL_EUSAGE);
			assert_says(&err, cases[i].refused);
		} else {
			assert_ok(rc, &err);
			if (!strstr(rfl_buf_str(&out), cases[i].first))
				print_message("%s", rfl_buf_str(&out));
			assert_non_null(strstr(rfl_buf_str(&out), cases[i].first));
		}
		rfl_buf_fini(&out);
		rfl_summary_free(s);
	}
}

static void csv_is_exact(void **state)
{
	struct rfl_complexity r = plain();
	struct rfl_summary *s = summary_of("resnet50", &r);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	r.fusion = RFL_FUSION_COMPULSORY;
	rfl_buf_init(&out, 0);
	assert_ok(rfl_complexity_table(of(&r, &s), RFL_FORMAT_CSV, &out, &err), &err);
	assert_non_null(strstr(rfl_buf_str(&out),
			       "model,params,forward_macs,forward_flops,training_"
			       "flops,batch,macs,flops,elementwise,"
			       "compulsory_bytes,compulsory_ai"));
	assert_non_null(strstr(rfl_buf_str(&out),
			       "resnet50,25557032,4089184256,8178368512,24299077632,16,65426948096,"
			       "130853896192,"));
	assert_null(strstr(rfl_buf_str(&out), "unfused"));
	rfl_buf_fini(&out);
	rfl_summary_free(s);
}

static void layer_list_has_every_layer_and_the_totals(void **state)
{
	struct rfl_complexity r = plain();
	struct rfl_summary *s = summary_of("vgg16", &r);
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	assert_ok(rfl_complexity_layers(of(&r, &s), s, &out, &err), &err);
	for (int i = 0; i < s->net->nnodes; i++)
		assert_non_null(strstr(rfl_buf_str(&out), s->net->nodes[i].name));
	assert_non_null(strstr(rfl_buf_str(&out), "classifier.0"));
	assert_non_null(strstr(rfl_buf_str(&out), "102,764,544")); /* its parameters */
	assert_non_null(strstr(rfl_buf_str(&out), "15,470,264,320"));
	assert_non_null(strstr(rfl_buf_str(&out), "30,940,528,640"));
	rfl_buf_fini(&out);
	rfl_summary_free(s);
}

/* The largest batch fits and one more does not; what does not fit at all has its numbers. */
static void largest_batch_is_the_largest(void **state)
{
	struct rfl_complexity r = plain();
	struct rfl_err err = RFL_ERR_INIT;
	const int64_t room = INT64_C(2) << 30;
	struct rfl_summary *s;

	(void)state;
	r.options.memory = r.train = true;
	s = summary_of("resnet18", &r);
	assert_ok(rfl_summary_fit(s, true, room, 1, &err), &err);
	assert_true(s->fit->batch > 1);
	assert_true(s->fit->at.peak <= room);
	assert_true(s->fit->next_peak > room);
	assert_ok(rfl_summary_at(s, s->fit->batch, &err), &err);
	assert_int_equal(s->memory[1]->peak, s->fit->at.peak);
	assert_false(s->fit->has_context);
	assert_ok(rfl_summary_fit(s, true, 1 << 20, 1, &err), &err);
	assert_int_equal(s->fit->batch, 0);
	assert_true(s->fit->at.peak > 1 << 20);
	/* the counts are where they were asked to be, after a fit as before */
	assert_ok(rfl_summary_at(s, 1, &err), &err);
	assert_int_equal(rfl_count_training_flops(s->count[1]), INT64_C(10648412160));
	rfl_summary_free(s);
}

static void largest_context_is_the_largest(void **state)
{
	struct rfl_complexity r = plain();
	struct rfl_err err = RFL_ERR_INIT;
	const int64_t room = INT64_C(3) << 30;
	struct rfl_summary *s;
	int64_t fits;

	(void)state;
	r.options.memory = r.train = true;
	s = summary_of("cs336_small", &r);
	assert_ok(rfl_summary_fit(s, true, room, 2, &err), &err);
	assert_true(s->fit->has_context);
	fits = s->fit->context;
	assert_true(fits > 1 && fits < s->fit->context_limit);
	assert_true(s->fit->context_peak <= room);
	rfl_summary_free(s);
	for (int64_t context = fits; context <= fits + 1; context++) {
		r.options.sizes.context_length = context;
		s = summary_of("cs336_small", &r);
		assert_ok(rfl_summary_at(s, 2, &err), &err);
		assert_int_equal(s->memory[1]->peak <= room, context == fits);
		rfl_summary_free(s);
	}
}

static void columns_are_chosen_by_key(void **state)
{
	static const struct {
		const char *key, *says;
		enum rfl_summary_by by;
	} refused[] = {
		{ "flopz", "flops", RFL_SUMMARY_BY_MODEL },
		{ "qqqqqqqqqqqq", "help", RFL_SUMMARY_BY_MODEL },
		{ "forward_macs", "--by model", RFL_SUMMARY_BY_KIND },
		{ "name", "--by module", RFL_SUMMARY_BY_MODEL },
		{ "time_s", "--peaks", RFL_SUMMARY_BY_MODEL },
		{ "wgrad_flops", "--train", RFL_SUMMARY_BY_MODEL },
		{ "report", "--by model", RFL_SUMMARY_BY_LAYER },
	};
	static const char *const chosen[] = { "name", "macs" };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(refused); i++) {
		struct rfl_complexity r = plain();
		struct rfl_summary *s;

		r.options.by = refused[i].by;
		r.columns = &refused[i].key;
		r.ncolumns = 1;
		s = summary_of("resnet18", &r);
		rfl_err_clear(&err);
		assert_true(rfl_complexity_table(of(&r, &s), RFL_FORMAT_CSV, &out, &err) != RFL_OK);
		assert_says(&err, refused[i].says);
		rfl_summary_free(s);
	}
	assert_int_equal(out.len, 0);
	struct rfl_complexity r = plain();
	struct rfl_summary *s;

	r.options.by = RFL_SUMMARY_BY_KIND;
	r.nbatches = 1;
	r.columns = chosen;
	r.ncolumns = RFL_ARRAY_LEN(chosen);
	s = summary_of("resnet18", &r);
	rfl_err_clear(&err);
	assert_ok(rfl_complexity_table(of(&r, &s), RFL_FORMAT_CSV, &out, &err), &err);
	assert_non_null(strstr(rfl_buf_str(&out), "name,macs\n"));
	assert_non_null(strstr(rfl_buf_str(&out), "conv2d,1813561344\n"));
	rfl_buf_fini(&out);
	rfl_summary_free(s);
}

static void columns_are_listed(void **state)
{
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	rfl_table_finish(rfl_complexity_columns_table(), RFL_FORMAT_CSV, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "peak_bytes,Peak (MiB),models"));
	rfl_buf_fini(&out);
}

static void precisions_have_a_storage(void **state)
{
	struct rfl_complexity r = plain();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_summary *s = NULL;

	(void)state;
	for (size_t i = 0; rfl_precision_names[i]; i++) {
		r.options.precision = rfl_precision_names[i];
		rfl_summary_free(summary_of("vgg11", &r));
	}
	r.options.precision = "fp8";
	assert_ok(rfl_summary_new("vgg11", &r.options, &s, &err), &err);
	assert_int_equal(rfl_summary_at(s, 1, &err), RFL_EINVAL);
	rfl_summary_free(s);
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
		cmocka_unit_test(rows_are_sorted_by_a_column),
		cmocka_unit_test(csv_is_exact),
		cmocka_unit_test(layer_list_has_every_layer_and_the_totals),
		cmocka_unit_test(largest_batch_is_the_largest),
		cmocka_unit_test(largest_context_is_the_largest),
		cmocka_unit_test(columns_are_chosen_by_key),
		cmocka_unit_test(columns_are_listed),
		cmocka_unit_test(precisions_have_a_storage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
