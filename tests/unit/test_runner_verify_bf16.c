/* The rules for autocast to bfloat16, on reference files, with no engine at all. */
#include <math.h>
#include <string.h>

#include "rfl_test.h"
#include "base/compiler.h"
#include "complexity/zoo.h"
#include "runner/verify/golden.h"
#include "runner/verify.h"

enum { GRADIENTS = 512 };

/* A reference file, its network, and gradients to play with. */
struct model {
	struct rfl_golden *golden;
	struct rfl_net *net;
	double each[GRADIENTS];
	struct rfl_golden_gradient got; /* each is the array above */
};

static void model_init(struct model *m, const char *file)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_zoo_options options = { 0 };

	assert_ok(rfl_golden_load(data_path(file), &m->golden, &err), &err);
	options.image_size = m->golden->height;
	options.context_length = m->golden->tokens;
	options.classes = m->golden->is_train ? 0 : m->golden->logits.classes;
	assert_ok(rfl_zoo_build(m->golden->model, &options, &m->net, &err), &err);
	m->got = m->golden->logits.gradient;
	assert_in_range(m->got.n, 0, GRADIENTS);
	for (int64_t i = 0; i < m->got.n; i++)
		m->each[i] = m->golden->logits.gradient.each[i];
	m->got.each = m->each;
}

static void model_fini(struct model *m)
{
	rfl_net_free(m->net);
	rfl_golden_free(m->golden);
}

/* How many have this verdict, in one section or in all (NULL). */
static size_t count(const struct rfl_checks *checks, const char *section, enum rfl_verdict verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < checks->n; i++)
		n += checks->items[i].verdict == verdict &&
		     (!section || strcmp(checks->items[i].section, section) == 0);
	return n;
}

static struct rfl_verify__rules rules_of(const struct model *m, struct rfl_checks *checks)
{
	return (struct rfl_verify__rules){
		.to = checks, .golden = m->golden, .net = m->net, .bf16 = true
	};
}

static struct rfl_checks *judge_gradient(const struct model *m)
{
	struct rfl_checks *checks = rfl_checks_new();
	const struct rfl_verify__rules rules = rules_of(m, checks);

	rfl_verify__gradient(&rules, &m->got);
	return checks;
}

/* Of a parameter, among those that are trained. No buffers in these networks. */
static int64_t place_of(const struct model *m, const char *name)
{
	for (int i = 0; i < m->net->nparams; i++)
		if (strcmp(m->net->params[i].name, name) == 0)
			return i;
	fail_msg("no parameter %s", name);
	return -1;
}

/* 2 u sqrt(3 D): 3 convolutions and 3 linear layers; 13 and 3; 7 linear layers and the 2 products
 * of attention in each of 2 blocks, and the head. */
static void counts_products(void **state)
{
	static const struct {
		const char *file;
		int products;
	} cases[] = {
		{ "golden/zoo/cifar_cnn.json", 6 },
		{ "golden/zoo/vgg16.json", 16 },
		{ "golden/zoo/tiny_lm.json", 2 * (7 + 2) + 1 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct model m = { 0 };

		model_init(&m, cases[i].file);
		assert_close(rfl_verify__bf16_error(m.net),
			     2 * 0x1p-8 * sqrt(3.0 * cases[i].products), 1e-12);
		model_fini(&m);
	}
}

/* Double agrees, PyTorch's own bf16 agrees, and what is just outside is found where it is. */
static void gradients_are_judged(void **state)
{
	struct model m = { 0 };
	struct rfl_checks *checks;
	int64_t head;

	(void)state;
	model_init(&m, "golden/zoo/vgg16.json");
	checks = judge_gradient(&m);
	assert_int_equal(checks->n, 2 * m.got.n);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_AGREES), checks->n);
	rfl_checks_free(checks);

	head = place_of(&m, "classifier.6.weight"); /* one of the large ones */
	memcpy(m.each, m.golden->logits.bf16_each, (size_t)m.got.n * sizeof(m.each[0]));
	m.each[head] *= 1 + 0.51 * 2 * 0x1p-8 * sqrt(9.0 * 16);
	checks = judge_gradient(&m);
	assert_int_equal(count(checks, "PyTorch's bf16, gradient", RFL_VERDICT_DIFFERS), 1);
	assert_int_equal(count(checks, "gradient", RFL_VERDICT_DIFFERS), 0);
	rfl_checks_free(checks);

	m.each[head] =
		m.golden->logits.gradient.each[head] * (1 + 1.01 * 2 * 0x1p-8 * sqrt(9.0 * 16));
	checks = judge_gradient(&m);
	assert_int_equal(count(checks, "gradient", RFL_VERDICT_DIFFERS), 1);
	rfl_checks_free(checks);
	model_fini(&m);
}

/* After a sum in bfloat16: 24 x 24 pixels of 2 images; 6 products in each of 12 blocks, 1 in front
 * of them, 3 between, the head. */
static void layer_norm_adds_up_in_bf16(void **state)
{
	const double rows = 2 * 24 * 24, nproducts = 6 * 12 + 1 + 3 + 1;
	struct model m = { 0 };
	struct rfl_checks *checks;
	double largest = 0;
	int64_t bias;

	(void)state;
	model_init(&m, "golden/zoo/swin_t.json");
	bias = place_of(&m, "features.1.0.norm1.bias");
	checks = judge_gradient(&m); /* double beside PyTorch's, 17 % apart in that bias */
	assert_int_equal(count(checks, NULL, RFL_VERDICT_AGREES), checks->n);
	assert_string_equal(checks->items[bias].item, "features.1.0.norm1.bias");
	for (int64_t i = 0; i < m.got.n; i++)
		largest = fmax(largest, m.each[i]);
	assert_true(largest > 10 * m.each[bias]); /* a small one: a tenth is its scale */
	assert_close(checks->items[bias].allowed,
		     2 * 0x1p-8 * sqrt(9 * nproducts + rows / 6) * largest / 10, 1e-12);
	largest = 0;
	for (int64_t i = 0; i < m.got.n; i++)
		largest = fmax(largest, m.golden->logits.bf16_each[i]);
	assert_close(checks->items[m.got.n + bias].allowed, /* not the half */
		     2 * 0x1p-8 * sqrt(9 * nproducts + rows / 6) * largest / 10, 1e-12);
	rfl_checks_free(checks);
	model_fini(&m);
}

/* In training nothing is judged after batch norm over two samples. */
static void batch_norm_is_reported(void **state)
{
	struct model m = { 0 };
	struct rfl_verify__rules rules;
	struct rfl_checks *checks;

	(void)state;
	model_init(&m, "golden/zoo/resnet18.json");
	m.each[0] *= 100;
	checks = judge_gradient(&m);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_REPORTED), checks->n);
	rules = rules_of(&m, checks);
	rfl_verify__forward(&rules, true, &m.golden->logits.batch_stats);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_REPORTED), checks->n);
	rfl_checks_free(checks);
	model_fini(&m);
}

static void forward_is_judged(void **state)
{
	struct model m = { 0 };
	struct rfl_golden_forward got;
	struct rfl_checks *checks = rfl_checks_new();
	struct rfl_verify__rules rules;
	double error, logits[64];

	(void)state;
	model_init(&m, "golden/zoo/tiny_lm.json");
	rules = rules_of(&m, checks);
	got = m.golden->logits.fp64;
	error = rfl_verify__bf16_error(m.net) * got.l2;
	assert_in_range(got.logits.rows * got.logits.columns, 1, RFL_ARRAY_LEN(logits));
	memcpy(logits, m.golden->logits.bf16_eval.logits.values,
	       (size_t)(got.logits.rows * got.logits.columns) * sizeof(logits[0]));
	got.logits.values = logits;
	got.l2 = m.golden->logits.bf16_eval.l2;
	got.loss = m.golden->logits.bf16_eval.loss;
	rfl_verify__forward(&rules, false, &got);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_AGREES), checks->n);
	logits[5] = m.golden->logits.fp64.logits.values[5] +
		    2.1 * error / sqrt(48 * 200.0); /* 2 are allowed, 1 beside PyTorch's */
	got.l2 = m.golden->logits.fp64.l2 + 1.01 * error;
	got.loss = NAN;
	rfl_verify__forward(&rules, false, &got);
	assert_int_equal(count(checks, "PyTorch's bf16", RFL_VERDICT_DIFFERS), 1);
	assert_int_equal(count(checks, "logits", RFL_VERDICT_DIFFERS), 3);
	rfl_checks_free(checks);
	model_fini(&m);
}

/* The first step is judged, the others are reported: they amplify. */
static void sections_are_judged(void **state)
{
	struct model m = { 0 };
	struct rfl_golden_section *sgd;
	struct rfl_golden_run got;
	struct rfl_checks *checks = rfl_checks_new();
	struct rfl_verify__rules rules;
	double losses[16];

	(void)state;
	model_init(&m, "golden/train_cifar_cnn.json");
	rules = rules_of(&m, checks);
	sgd = &m.golden->train.sections[0];
	got = sgd->fp64;
	assert_in_range(got.nlosses, 2, RFL_ARRAY_LEN(losses));
	memcpy(losses, got.losses, (size_t)got.nlosses * sizeof(losses[0]));
	got.losses = losses;
	losses[1] *= 2;
	rfl_verify__section(&rules, sgd, &got);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_DIFFERS), 0);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_REPORTED), got.nlosses - 1);
	losses[0] *= 1 + 1.01 * rfl_verify__bf16_error(m.net);
	rfl_verify__section(&rules, sgd, &got);
	assert_int_equal(count(checks, NULL, RFL_VERDICT_DIFFERS), 1);
	rfl_checks_free(checks);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_products),
		cmocka_unit_test(gradients_are_judged),
		cmocka_unit_test(layer_norm_adds_up_in_bf16),
		cmocka_unit_test(batch_norm_is_reported),
		cmocka_unit_test(forward_is_judged),
		cmocka_unit_test(sections_are_judged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
