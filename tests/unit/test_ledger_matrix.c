/*
 * matrix.json: what cells it asks for, how they are named, and every refusal with its words.
 */
#include "tests/unit/invalid_files.h"
#include "tests/unit/json_schema.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json.h"
#include "ledger/matrix.h"

static struct rfl_matrix *load_text(void *state, const char *text)
{
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_matrix_load(write_file(state, "matrix.json", text), &m, &err), &err);
	return m;
}

/* A matrix of a few cells with more members, which begin with a comma. */
static struct rfl_matrix *load_with(void *state, const char *more)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
		       "{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"repeats\": 2,"
		       "\"environments\": [{\"name\": \"lab\", \"backend\": \"cpu\"}],"
		       "\"models\": [\"resnet18\", \"vgg16\"], \"batch_sizes\": [2, 4],"
		       "\"precisions\": [\"fp32\"]%s}",
		       more);
	return load_text(state, text);
}

static void assert_args(const struct rfl_matrix_cell *cell, const char *expected)
{
	char text[1024] = "";
	size_t len = 0;

	for (size_t i = 0; cell->args[i]; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
					cell->args[i]);
	assert_string_equal(text, expected);
}

static void write_net(void *state, const char *name, const char *out_features)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "{\"schema\": \"roofline.net/1\", \"model\": \"mine\", \"input\": "
		       "{\"image\": [1, 4, 4]},"
		       "\"nodes\": [{\"op\": \"flatten\"},"
		       "{\"name\": \"fc\", \"op\": \"linear\", \"out_features\": %s}]}",
		       out_features);
	(void)write_file(state, name, text);
}

static struct rfl_matrix *load_net(void *state, const char *name)
{
	char text[1024];

	(void)snprintf(
		text, sizeof(text),
		"{\"schema\": \"roofline.matrix/1\", \"name\": \"m\","
		"\"environments\": [{\"name\": \"lab\", \"backend\": \"cpu\"}],"
		"\"models\": [\"vgg16\", \"%s\"], \"batch_sizes\": 2, \"precisions\": \"fp32\","
		"\"exclude\": {\"model\": \"vgg16\"}}",
		tmp_path(state, name));
	return load_text(state, text);
}

/* A network file is run from its path, has the name of its model, and counts by its contents. */
static void a_model_can_be_a_file(void **state)
{
	struct rfl_matrix *m, *other;
	char args[512];

	write_net(*state, "a.json", "10");
	write_net(*state, "b.json", "10");
	m = load_net(*state, "a.json");
	assert_int_equal(m->ncells, 1);
	assert_string_equal(m->cells[0].model, "mine");
	(void)snprintf(args, sizeof(args),
		       "--arch=%s --batch-size=2 --precision=fp32 --backend=cpu --env=lab",
		       tmp_path(*state, "a.json"));
	assert_args(&m->cells[0], args);
	other = load_net(*state, "b.json");
	assert_string_equal(m->cells[0].id, other->cells[0].id);
	rfl_matrix_free(other);
	write_net(*state, "b.json", "11");
	other = load_net(*state, "b.json");
	assert_string_not_equal(m->cells[0].id, other->cells[0].id);
	rfl_matrix_free(other);
	rfl_matrix_free(m);
}

static void cells_are_the_product(void **state)
{
	struct rfl_matrix *m = load_with(*state, "");
	static const struct {
		const char *model;
		int64_t batch;
	} want[] = { { "resnet18", 2 }, { "resnet18", 4 }, { "vgg16", 2 }, { "vgg16", 4 } };
	char label[RFL_LABEL_MAX + 1];

	assert_string_equal(m->name, "m");
	assert_int_equal(m->repeats, 2);
	assert_int_equal(m->ncells, RFL_ARRAY_LEN(want));
	for (size_t i = 0; i < m->ncells; i++) {
		assert_string_equal(m->cells[i].model, want[i].model);
		assert_int_equal(m->cells[i].batch, want[i].batch);
		assert_string_equal(m->cells[i].env, "lab");
		assert_string_equal(m->cells[i].backend, "cpu");
		assert_string_equal(m->cells[i].pointer, "/environments/0");
		assert_int_equal(strlen(m->cells[i].id), 16);
	}
	assert_args(&m->cells[3],
		    "--arch=vgg16 --batch-size=4 --precision=fp32 --backend=cpu --env=lab");
	rfl_matrix_label(&m->cells[3], 2, label);
	assert_string_equal(label, "lab_vgg16_fp32_bs4_run2");
	rfl_matrix_free(m);
}

static void repeats_are_three_unless_given(void **state)
{
	struct rfl_matrix *m = load_text(
		*state, "{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"environments\": "
			"{\"name\": \"lab\", \"backend\": \"cpu\"}, \"models\": \"resnet18\","
			"\"batch_sizes\": 2, \"precisions\": \"fp32\"}");

	assert_int_equal(m->repeats, 3);
	assert_int_equal(m->ncells, 1);
	rfl_matrix_free(m);
}

static void inner_options_win(void **state)
{
	struct rfl_matrix *m = load_text(
		*state,
		"{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"options\": {\"iters\": 100,"
		"\"deterministic\": true, \"lr\": 1e-3, \"counter-sets\": [\"core\", \"flops\"]},"
		"\"environments\": [{\"name\": \"a\", \"backend\": \"cpu\", \"options\": "
		"{\"iters\": 7, \"deterministic\": false, \"workers\": -1}}, {\"name\": \"b\","
		"\"backend\": \"cuda\"}], \"models\": [\"resnet18\"], \"batch_sizes\": [2],"
		"\"precisions\": [\"fp32\"], \"include\": [{\"env\": \"a\", \"batch_sizes\": [8],"
		"\"options\": {\"iters\": 9}}]}");

	assert_int_equal(m->ncells, 3);
	assert_args(&m->cells[0],
		    "--arch=resnet18 --batch-size=2 --precision=fp32 --backend=cpu --env=a "
		    "--counter-sets=core --counter-sets=flops --iters=7 --lr=0.001 --workers=-1");
	assert_args(&m->cells[1],
		    "--arch=resnet18 --batch-size=2 --precision=fp32 --backend=cuda --env=b "
		    "--counter-sets=core --counter-sets=flops --deterministic --iters=100 "
		    "--lr=0.001");
	assert_args(&m->cells[2],
		    "--arch=resnet18 --batch-size=8 --precision=fp32 --backend=cpu --env=a "
		    "--counter-sets=core --counter-sets=flops --iters=9 --lr=0.001 --workers=-1");
	assert_string_equal(m->cells[0].options[1].name, "iters");
	assert_string_equal(m->cells[0].options[1].pointer, "/environments/0/options/iters");
	assert_string_equal(m->cells[1].options[2].pointer, "/options/iters");
	assert_string_equal(m->cells[2].options[1].pointer, "/include/0/options/iters");
	rfl_matrix_free(m);
}

static void models_may_have_their_own_batches(void **state)
{
	struct rfl_matrix *m = load_text(
		*state,
		"{\"schema\": \"roofline.matrix/1\", \"name\": \"m\","
		"\"environments\": [{\"name\": \"a\", \"backend\": \"cpu\"}, {\"name\": \"b\","
		"\"backend\": \"cpu\", \"models\": [\"alexnet\"], \"precisions\": "
		"[\"bf16\"]}], \"models\": [\"resnet18\", {\"name\": \"vgg16\","
		"\"batch_sizes\": [1]}], \"batch_sizes\": [2, 4], \"precisions\": "
		"[\"fp32\"]}");
	static const char *const labels[] = { "a_resnet18_fp32_bs2_run1",
					      "a_resnet18_fp32_bs4_run1", "a_vgg16_fp32_bs1_run1",
					      "b_alexnet_bf16_bs2_run1",
					      "b_alexnet_bf16_bs4_run1" };

	assert_int_equal(m->ncells, RFL_ARRAY_LEN(labels));
	for (size_t i = 0; i < m->ncells; i++) {
		char label[RFL_LABEL_MAX + 1];

		rfl_matrix_label(&m->cells[i], 1, label);
		assert_string_equal(label, labels[i]);
	}
	rfl_matrix_free(m);
}

static void exclusions_match_all_that_they_name(void **state)
{
	struct rfl_matrix *m = load_with(
		*state, ", \"exclude\": [{\"model\": \"vgg16\", \"batch_size\": [4, 8]}, "
			"{\"env\": [\"lab\"], \"precision\": \"fp32\", \"model\": \"resnet18\","
			"\"batch_size\": 2}]");

	assert_int_equal(m->ncells, 2);
	assert_string_equal(m->cells[0].model, "resnet18");
	assert_int_equal(m->cells[0].batch, 4);
	assert_string_equal(m->cells[1].model, "vgg16");
	assert_int_equal(m->cells[1].batch, 2);
	rfl_matrix_free(m);
}

/* What was excluded may come back, with options of its own. */
static void extra_cells_are_added(void **state)
{
	struct rfl_matrix *m = load_with(
		*state,
		", \"exclude\": [{\"model\": \"vgg16\"}], \"include\": [{\"env\": \"lab\","
		"\"models\": [\"vgg16\"], \"batch_sizes\": [1], \"options\": {\"iters\": 5}}]");

	assert_int_equal(m->ncells, 3);
	assert_args(&m->cells[2],
		    "--arch=vgg16 --batch-size=1 --precision=fp32 --backend=cpu --env=lab "
		    "--iters=5");
	assert_string_equal(m->cells[2].pointer, "/include/0");
	rfl_matrix_free(m);
}

/* ---- ids ---- */

static const char *id_of(const struct rfl_matrix *m, const char *model, int64_t batch)
{
	for (size_t i = 0; i < m->ncells; i++)
		if (strcmp(m->cells[i].model, model) == 0 && m->cells[i].batch == batch)
			return m->cells[i].id;
	fail_msg("no cell %s %lld", model, (long long)batch);
	return NULL;
}

static void ids_do_not_hang_on_order_or_repeats(void **state)
{
	static const char *const others[] = {
		/* reordered, more repeats, other name, options in another order and place */
		"{\"name\": \"other\", \"precisions\": [\"fp32\"], \"batch_sizes\": [8, 4, 2], "
		"\"models\": [\"vgg16\", \"alexnet\", \"resnet18\"], \"repeats\": 9, "
		"\"environments\": [{\"name\": \"gpu\", \"backend\": \"cuda\"}, {\"backend\": "
		"\"cpu\","
		"\"name\": \"lab\"}], \"options\": {\"workers\": 0, \"iters\": 5}, "
		"\"exclude\": [{\"env\": \"gpu\"}], \"schema\": \"roofline.matrix/1\"}",
		"{\"name\": \"m\", \"precisions\": \"fp32\", \"batch_sizes\": [2, 4], "
		"\"models\": [\"resnet18\", \"vgg16\"], \"environments\": [{\"name\": \"lab\","
		"\"backend\": \"cpu\", \"options\": {\"iters\": 5}}], \"options\": {\"iters\": 50,"
		"\"workers\": 0, \"channels-last\": false}, \"schema\": \"roofline.matrix/1\"}",
	};
	struct rfl_matrix *a = load_with(*state, ", \"options\": {\"iters\": 5, \"workers\": 0}");

	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++) {
		struct rfl_matrix *b = load_text(*state, others[i]);

		for (size_t k = 0; k < a->ncells; k++)
			assert_string_equal(a->cells[k].id,
					    id_of(b, a->cells[k].model, a->cells[k].batch));
		rfl_matrix_free(b);
	}
	rfl_matrix_free(a);
}

static void ids_hang_on_what_is_run(void **state)
{
	static const char *const others[] = {
		", \"options\": {\"iters\": 6, \"workers\": 0}",
		", \"options\": {\"iters\": 5}",
		", \"options\": {\"iters\": 5, \"workers\": 0, \"deterministic\": true}",
	};
	struct rfl_matrix *a = load_with(*state, ", \"options\": {\"iters\": 5, \"workers\": 0}");

	for (size_t i = 0; i < a->ncells; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(a->cells[i].id, a->cells[k].id);
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++) {
		struct rfl_matrix *b = load_with(*state, others[i]);

		assert_string_not_equal(a->cells[0].id, b->cells[0].id);
		rfl_matrix_free(b);
	}
	rfl_matrix_free(a);
}

/* Written down: an id that changes with the program would make finished runs be run again. */
static void ids_stay_between_versions(void **state)
{
	struct rfl_matrix *m = load_with(*state, ", \"options\": {\"iters\": 5, \"lr\": 0.1}");

	assert_string_equal(m->cells[0].id, "76aac41c415e0020");
	rfl_matrix_free(m);
}

/* ---- refusals ---- */

static enum rfl_rc try_load(const char *path, bool *made, struct rfl_err *err)
{
	struct rfl_matrix *m = NULL;
	enum rfl_rc rc = rfl_matrix_load(path, &m, err);

	*made = m != NULL;
	rfl_matrix_free(m);
	return rc;
}

static void refuses_bad_files(void **state)
{
	check_invalid_files(*state, "matrix/invalid.txt", 52, try_load);
}

static void refuses_too_many_cells(void **state)
{
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, "{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"models\": "
			    "[\"resnet18\"], \"precisions\": [\"fp32\"], \"environments\": [");
	for (int i = 0; i < 101; i++)
		rfl_buf_printf(&text, "%s{\"name\": \"e%d\", \"backend\": \"cpu\"}", i ? "," : "",
			       i);
	rfl_buf_puts(&text, "], \"batch_sizes\": [1");
	for (int i = 2; i <= 1000; i++)
		rfl_buf_printf(&text, ",%d", i);
	rfl_buf_puts(&text, "]}");
	assert_int_equal(rfl_matrix_parse(text.data, text.len, "big.json", &m, &err), RFL_EFORMAT);
	assert_string_equal(err.msg,
			    "big.json: /environments/100: has more than 100,000 configurations; split the matrix into several files");
	assert_null(m);
	rfl_buf_fini(&text);
}

static void refuses_too_many_runs(void **state)
{
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text,
		     "{\"schema\": \"roofline.matrix/1\", \"name\": \"m\", \"repeats\": 1000, "
		     "\"models\": [\"resnet18\"], \"precisions\": [\"fp32\"], \"environments\": "
		     "[{\"name\": \"lab\", \"backend\": \"cpu\"}], \"batch_sizes\": [1");
	for (int i = 2; i <= 1001; i++)
		rfl_buf_printf(&text, ",%d", i);
	rfl_buf_puts(&text, "]}");
	assert_int_equal(rfl_matrix_parse(text.data, text.len, "big.json", &m, &err), RFL_EFORMAT);
	assert_string_equal(err.msg, "big.json: /repeats: results in more than 1,000,000 runs; "
				     "reduce the number of repeats");
	assert_null(m);
	rfl_buf_fini(&text);
}

static void a_file_that_is_not_there_is_named(void **state)
{
	struct rfl_matrix *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_matrix_load(tmp_path(*state, "none.json"), &m, &err), RFL_EIO);
	assert_says(&err, "none.json");
	assert_null(m);
}

/* ---- examples ---- */

static void examples_ask_for_their_runs(void **state)
{
	static const struct {
		const char *file, *env, *backend, *first, *last;
		size_t cells;
		int repeats;
	} examples[] = {
		{ "laptop", "laptop_cpu", "cpu", "laptop_cpu_resnet18_fp32_bs4_run1",
		  "laptop_cpu_mobilenet_v2_fp32_bs8_run2", 4, 2 },
		{ "quickstart", "local_cpu", "cpu", "local_cpu_resnet50_fp32_bs8_run1",
		  "local_cpu_mobilenet_v2_fp32_bs8_run3", 3, 3 },
		{ "mac-mps", "mac_mps", "mps", "mac_mps_resnet50_fp32_bs16_run1",
		  "mac_mps_mobilenet_v2_fp32_bs64_run3", 9, 3 },
		{ "project", "rtx4090", "cuda", "rtx4090_resnet50_fp32_bs64_run1",
		  "mac_mps_mobilenet_v2_fp32_bs64_run3", 54, 3 },
		{ "project-report", "mac_cpu", "cpu", "mac_cpu_resnet50_fp32_bs16_run1",
		  "gcp_l4_mobilenet_v2_amp_bs256_run3", 60, 3 },
		{ "lm", "mac_cpu", "cpu", "mac_cpu_cs336_small_fp32_bs4_run1",
		  "rtx_pro_6000_attention_d128_fp32_bs8_run1", 70, 1 },
		{ "cifar", "mac_cpu", "cpu", "mac_cpu_cifar_cnn_fp32_bs32_run1",
		  "mac_mps_cifar_cnn_fp32_bs256_run3", 8, 3 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(examples); i++) {
		struct rfl_matrix *m = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		char path[256], label[RFL_LABEL_MAX + 1];

		(void)snprintf(path, sizeof(path), "../../examples/study-%s.json",
			       examples[i].file);
		assert_ok(rfl_matrix_load(data_path(path), &m, &err), &err);
		assert_int_equal(m->ncells, examples[i].cells);
		assert_int_equal(m->repeats, examples[i].repeats);
		assert_string_equal(m->cells[0].env, examples[i].env);
		assert_string_equal(m->cells[0].backend, examples[i].backend);
		rfl_matrix_label(&m->cells[0], 1, label);
		assert_string_equal(label, examples[i].first);
		rfl_matrix_label(&m->cells[m->ncells - 1], m->repeats, label);
		assert_string_equal(label, examples[i].last);
		rfl_matrix_free(m);
	}
}

/* What the schema says is what the reader takes: every example, and a file with everything in it.
 */
static void files_conform_to_the_schema(void **state)
{
	static const char *const files[] = {
		"../../examples/study-laptop.json",  "../../examples/study-quickstart.json",
		"../../examples/study-mac-mps.json", "../../examples/study-project.json",
		"../../examples/study-lm.json",      "../../examples/study-project-report.json",
		"../../examples/study-cifar.json",   "matrix/small.json"
	};
	struct rfl_err err = RFL_ERR_INIT;
	json_t *schema = NULL;

	(void)state;
	assert_ok(rfl_json_load(data_path("../../docs/matrix.schema.json"), &schema, &err), &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(files); i++) {
		json_t *file = NULL, *matrix;

		assert_ok(rfl_json_load_commented(data_path(files[i]), &file, &err), &err);
		matrix = json_object_get(file,
					 "matrix"); /* of a study, where "schema" is optional */
		if (matrix)
			rfl_json_put(&matrix, "schema", json_string("roofline.matrix/1"));
		conforms(schema, schema, matrix ? matrix : file);
		json_decref(file);
	}
	json_decref(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cells_are_the_product, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(a_model_can_be_a_file, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(repeats_are_three_unless_given, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(inner_options_win, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(models_may_have_their_own_batches, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(exclusions_match_all_that_they_name, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(extra_cells_are_added, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(ids_do_not_hang_on_order_or_repeats, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(ids_hang_on_what_is_run, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(ids_stay_between_versions, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test_setup_teardown(refuses_bad_files, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(refuses_too_many_cells),
		cmocka_unit_test(refuses_too_many_runs),
		cmocka_unit_test_setup_teardown(a_file_that_is_not_there_is_named, tmpdir_make,
						tmpdir_remove),
		cmocka_unit_test(examples_ask_for_their_runs),
		cmocka_unit_test(files_conform_to_the_schema),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
