/* Reference files: reading, refusals with their path, and the rules, with no engine at all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfl_test.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"
#include "runner/verify/golden.h"
#include "runner/verify.h"

static struct rfl_golden *load(const char *name)
{
	struct rfl_golden *g = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_golden_load(data_path(name), &g, &err), &err);
	return g;
}

static void reads_logits(void **state)
{
	struct rfl_golden *g = load("golden/logits_resnet18.json");

	(void)state;
	assert_false(g->is_train);
	assert_string_equal(g->model, "resnet18");
	assert_int_equal(g->batch, 2);
	assert_int_equal(g->height, 224);
	assert_int_equal(g->logits.params, 11689512);
	assert_int_equal(g->logits.tensors, 102);
	assert_int_equal(g->logits.classes, 1000);
	assert_int_equal(g->logits.nlayers, 60);
	assert_string_equal(g->logits.layers[0].name, "conv1");
	assert_int_equal(g->logits.layers[0].numel, 2 * 64 * 112 * 112);
	assert_int_equal(g->logits.fp64.logits.rows, 2);
	assert_int_equal(g->logits.fp64.logits.columns, 16);
	assert_close(g->logits.fp64.loss, 10.0858099760, 1e-8);
	assert_true(g->logits.has_batch_stats);
	assert_true(isnan(g->logits.batch_stats.min_margin));
	rfl_golden_free(g);
}

static void reads_train(void **state)
{
	struct rfl_golden *g = load("golden/train_mobilenet_v2.json");
	static const char *const names[] = { "sgd", "sgd_gentle", "sgd_frozen_bn" };
	static const double lr[] = { 0.01, 1e-6, 0.001 };

	(void)state;
	assert_true(g->is_train);
	assert_int_equal(g->train.nparams, 158);
	assert_int_equal(g->train.nsections, 3);
	for (int i = 0; i < 3; i++) {
		const struct rfl_golden_section *s = &g->train.sections[i];

		assert_string_equal(s->name, names[i]);
		assert_true(s->optimizer.lr == lr[i]);
		assert_true(s->optimizer.momentum == 0.9);
		assert_true(s->optimizer.weight_decay == 1e-4);
		assert_int_equal(s->fp64.nlosses, 6);
		assert_int_equal(s->fp32.ngrads, 158);
		assert_true(!isnan(s->fp64.norms[RFL_GOLDEN_RUNNING_MEAN]));
	}
	assert_int_equal(g->train.sections[2].mode, RFL_ENGINE_TRAIN_FROZEN_BN);
	rfl_golden_free(g);
	g = load("golden/train_vgg16.json");
	assert_int_equal(g->train.nsections, 1);
	assert_true(isnan(g->train.sections[0].fp64.norms[RFL_GOLDEN_RUNNING_MEAN]));
	rfl_golden_free(g);
}

/* A good file with one text replaced: the exact message after the file's name. */
static void refuses_bad_files(void **state)
{
	static const struct {
		const char *file, *from, *to, *message;
	} cases[] = {
		{ "golden/logits_vgg16.json",
		  "\"params\":", "\"parms\":", "/: the key \"params\" is missing; add it" },
		{ "golden/logits_vgg16.json", "\"batch\": 2", "\"batch\": \"2\"",
		  "/batch: must be an integer from 1 to 1048576, not \"2\"" },
		{ "golden/logits_vgg16.json",
		  "\"trace\":", "\"tracy\":", "/: the key \"trace\" is missing; add it" },
		{ "golden/logits_vgg16.json", "\"name\": \"features.2\"", "\"nam\": \"features.2\"",
		  "/trace/2: the key \"name\" is missing; add it" },
		{ "golden/logits_vgg16.json", "\"shape\": [2, 64, 224, 224]",
		  "\"shape\": [2, 64, 0, 224]", "/trace/0/shape: must be the shape of a layer" },
		{ "golden/logits_vgg16.json", "\"shape\": [2, 64, 224, 224]",
		  "\"shape\": [4294967296, 4294967296]",
		  "/trace/0/shape: must be the shape of a layer" },
		{ "golden/logits_vgg16.json", "\"input_shape\": [2,", "\"input_shape\": [3,",
		  "/input_shape: must be [batch, channels, height, width] or [batch, tokens]" },
		{ "golden/logits_vgg16.json", "\"max_abs_diff_fp32\":", "\"max\":",
		  "/fp64: the key \"max_abs_diff_fp32\" is missing; add it" },
		{ "golden/train_vgg16.json",
		  "\"sgd_fp64\":", "\"sgd_fp46\":", "/: the key \"sgd_fp64\" is missing; add it" },
		{ "golden/train_vgg16.json", "\"momentum\": 0.9", "\"momentum\": null",
		  "/sgd_hyper/momentum: must be a number, not null" },
		{ "golden/train_vgg16.json", "\"param_names\": [\"features.0.weight\", ",
		  "\"param_names\": [",
		  "/sgd_fp64: grad_l2_each_step0 must have one entry per name in param_names" },
		{ "golden/train_tiny_lm.json", "\"betas\": [0.9, 0.999]", "\"betas\": [0.9]",
		  "/adamw_hyper/betas: must be two numbers" },
		{ "golden/train_tiny_lm.json",
		  "\"eps\":", "\"epsilon\":", "/adamw_hyper: the key \"eps\" is missing; add it" },
		{ "golden/train_tiny_lm.json", "\"adamw_hyper\":", "\"adam_hyper\":",
		  "/: the key \"adamw_hyper\" is missing; add it" },
		{ "golden/train_tiny_lm.json", "\"adamw_fp64\":", "\"adamw_fp46\":",
		  "/: the key \"adamw_fp64\" is missing; add it" },
		{ "golden/zoo/resnet18.json", "\"auxiliary_weight\": 0",
		  "\"auxiliary_weight\": true",
		  "/gradient/auxiliary_weight: must be a number, not true" },
		{ "golden/zoo/resnet18.json", "\"loss_abs_diff_fp32\"", "\"diff\"",
		  "/gradient: the key \"loss_abs_diff_fp32\" is missing; add it" },
		{ "golden/zoo/resnet18.json", "\"each\": [", "\"each\": [1, ",
		  "/: bf16/each and gradient/each differ in length" },
		{ "golden/zoo/resnet18.json", "\"bf16\": {\"eval\": {\"logits_first16\": [[",
		  "\"bf16\": {\"eval\": {\"logits_first16\": [[], [",
		  "/bf16/eval/logits_first16/1: is not as long as the row before it" },
		{ "golden/zoo/resnet18.json", "\"bf16\": {\"eval\": {\"logits_first16\":",
		  "\"bf16\": {\"eval\": {\"logits_first16\": [[1]], \"other\":",
		  "/: the logits of bf16, fp64 and the batch statistics differ in length" },
		{ "golden/zoo/resnet18.json", "\"train\": {", "\"training\": {",
		  "/bf16: the key \"train\" is missing; add it" },
		{ "golden/zoo/tiny_lm_naive.json", "\"attention\": \"naive\"",
		  "\"attention\": \"quick\"",
		  "/attention: must be one of auto, composed, naive, sdpa, not \"quick\"" },
		{ "golden/zoo/tiny_lm_naive.json", "\"batch\": 2", "\"batch\": 4611686018427387904",
		  "/batch: must be an integer from 1 to 1048576, not 4611686018427387904" },
		{ "golden/zoo/tiny_lm_naive.json", "\"batch\": 2,\n \"input_shape\": [2,",
		  "\"batch\": 1048577,\n \"input_shape\": [1048577,",
		  "/batch: must be an integer from 1 to 1048576, not 1048577" },
		{ "golden/zoo/tiny_lm_naive.json", "\"logits_shape\": [48, 200]",
		  "\"logits_shape\": [200]", "/logits_shape: must be [.., rows, classes]" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_golden *g = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_buf good, bad;
		char message[512];
		const char *at, *path;

		rfl_buf_init(&good, 0);
		rfl_buf_init(&bad, 0);
		assert_ok(rfl_file_read(data_path(cases[i].file), &good, &err), &err);
		at = strstr(rfl_buf_str(&good), cases[i].from);
		assert_non_null(at);
		rfl_buf_append(&bad, good.data, (size_t)(at - good.data));
		rfl_buf_puts(&bad, cases[i].to);
		rfl_buf_puts(&bad, at + strlen(cases[i].from));
		path = write_file(*state, "bad.json", rfl_buf_str(&bad));
		assert_int_equal(rfl_golden_load(path, &g, &err), RFL_EFORMAT);
		(void)snprintf(message, sizeof(message), "%s: %s", path, cases[i].message);
		assert_string_equal(err.msg, message);
		assert_null(g);
		rfl_buf_fini(&good);
		rfl_buf_fini(&bad);
	}
}

static void refuses_other_json(void **state)
{
	static const char *const texts[] = { "{}", "[]", "{\"model\": \"vgg16\"}" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		struct rfl_golden *g = NULL;
		struct rfl_err err = RFL_ERR_INIT;
		const char *path = write_file(*state, "other.json", texts[i]);

		assert_int_equal(rfl_golden_load(path, &g, &err), RFL_EFORMAT);
		assert_says(&err, "is not a reference file");
	}
}

static size_t differing(const struct rfl_checks *checks)
{
	size_t n = 0;

	for (size_t i = 0; i < checks->n; i++)
		n += checks->items[i].verdict == RFL_VERDICT_DIFFERS;
	return n;
}

static void verdict_at_the_limit(void **state)
{
	static const struct {
		double got, allowed;
		enum rfl_verdict verdict;
	} cases[] = {
		{ 10.5, 0.5, RFL_VERDICT_AGREES },   { 9.5, 0.5, RFL_VERDICT_AGREES },
		{ 10.75, 0.5, RFL_VERDICT_DIFFERS }, { 10, 0, RFL_VERDICT_AGREES },
		{ 10.001, 0, RFL_VERDICT_DIFFERS },  { 99, (double)NAN, RFL_VERDICT_REPORTED },
	};
	struct rfl_checks *checks = rfl_checks_new();

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_check check = { .section = "s",
						 .what = "w",
						 .expected = 10,
						 .got = cases[i].got,
						 .allowed = cases[i].allowed };

		rfl_checks_add(checks, &check);
		assert_int_equal(checks->items[i].verdict, cases[i].verdict);
	}
	rfl_checks_add(checks, &(struct rfl_check){ .section = "s",
						    .what = "w",
						    .expected = 1,
						    .got = (double)NAN,
						    .allowed = 1e300 });
	assert_int_equal(checks->items[checks->n - 1].verdict, RFL_VERDICT_DIFFERS);
	rfl_checks_free(checks);
}

static void fill_agrees(void **state)
{
	struct rfl_checks *checks = rfl_checks_new();

	(void)state;
	rfl_verify_fill(checks);
	assert_true(checks->n > 50);
	assert_int_equal(differing(checks), 0);
	rfl_checks_free(checks);
}

static void judge(struct rfl_checks *checks, const struct rfl_golden *g,
		  const struct rfl_golden_section *section, const struct rfl_golden_run *got)
{
	const struct rfl_verify__rules rules = { .to = checks, .golden = g };

	rfl_verify__section(&rules, section, got);
}

/* PyTorch's own float32 run agrees; each way to be wrong is found, and only where it is judged. */
static void sections_are_judged(void **state)
{
	struct rfl_golden *g = load("golden/train_resnet18.json");
	struct rfl_golden_section *sgd = &g->train.sections[0], *gentle = &g->train.sections[1];
	struct rfl_checks *checks = rfl_checks_new();

	(void)state;
	for (int i = 0; i < 3; i++)
		judge(checks, g, &g->train.sections[i], &g->train.sections[i].fp32);
	assert_int_equal(differing(checks), 0);
	rfl_checks_free(checks);

	checks = rfl_checks_new();
	gentle->fp32.losses[5] = gentle->fp64.losses[5] + 1e-3; /* also widens the allowance */
	judge(checks, g, gentle, &gentle->fp32);
	assert_int_equal(differing(checks), 0);
	rfl_checks_free(checks);

	checks = rfl_checks_new();
	{
		struct rfl_golden_run got = sgd->fp64;
		double losses[6];

		memcpy(losses, sgd->fp64.losses, sizeof(losses));
		got.losses = losses;
		losses[1] += 1; /* chaotic: reported */
		got.norms[RFL_GOLDEN_RUNNING_VAR] *= 2;
		got.norms[RFL_GOLDEN_DELTA_AFTER] *= 2;
		judge(checks, g, sgd, &got);
		assert_int_equal(differing(checks), 0);
		losses[0] += 1e-4;
		got.norms[RFL_GOLDEN_GRAD_ALL] *= 1.001;
		judge(checks, g, sgd, &got);
		assert_int_equal(differing(checks), 2);
	}
	rfl_checks_free(checks);
	rfl_golden_free(g);
}

static void forward_is_judged(void **state)
{
	struct rfl_golden *g = load("golden/logits_resnet18.json");
	struct rfl_golden_forward got = g->logits.fp64;
	struct rfl_checks *checks = rfl_checks_new();
	const struct rfl_verify__rules rules = { .to = checks, .golden = g };

	(void)state;
	rfl_verify__forward(&rules, false, &got);
	assert_int_equal(differing(checks), 0);
	got.loss += 1e-3;
	got.sum += 1;
	got.l2 += 0.01;
	rfl_verify__forward(&rules, false, &got);
	assert_int_equal(differing(checks), 3);
	rfl_checks_free(checks);
	rfl_golden_free(g);
}

/* cuDNN's algorithms deviate more than PyTorch's on a CPU, but less than TF32. */
static void a_gpu_has_a_larger_tolerance(void **state)
{
	static const struct {
		enum rfl_device device;
		enum rfl_layout layout;
		double times; /* PyTorch's own deviation */
		size_t differ;
	} cases[] = {
		{ RFL_DEVICE_CPU, RFL_LAYOUT_NCHW, 4, 0 },
		{ RFL_DEVICE_CPU, RFL_LAYOUT_NCHW, 7, 1 },
		{ RFL_DEVICE_CUDA, RFL_LAYOUT_NCHW, 70, 0 },
		{ RFL_DEVICE_CUDA, RFL_LAYOUT_NHWC, 70, 0 },
		{ RFL_DEVICE_CUDA, RFL_LAYOUT_NCHW, 300, 1 },
	};
	struct rfl_golden *g = load("golden/logits_resnet18.json");

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_golden_forward got = g->logits.fp64;
		struct rfl_checks *checks = rfl_checks_new();
		const struct rfl_verify__rules rules = { .to = checks,
							 .golden = g,
							 .device = cases[i].device,
							 .layout = cases[i].layout };
		const size_t bytes =
			(size_t)(got.logits.rows * got.logits.columns) * sizeof(double);
		double *logits = malloc(bytes);

		got.logits.values = memcpy(logits, got.logits.values, bytes);
		logits[1] += cases[i].times * got.max_abs_diff_fp32;
		rfl_verify__forward(&rules, false, &got);
		assert_int_equal(differing(checks), cases[i].differ);
		free(logits);
		rfl_checks_free(checks);
	}
	rfl_golden_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_logits),
		cmocka_unit_test(reads_train),
		cmocka_unit_test_setup_teardown(refuses_bad_files, tmpdir_make, tmpdir_remove),
		cmocka_unit_test_setup_teardown(refuses_other_json, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(verdict_at_the_limit),
		cmocka_unit_test(fill_agrees),
		cmocka_unit_test(sections_are_judged),
		cmocka_unit_test(forward_is_judged),
		cmocka_unit_test(a_gpu_has_a_larger_tolerance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
