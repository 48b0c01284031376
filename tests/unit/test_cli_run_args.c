/* The options of roofline run: what they come to, and what does not go together. */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "cli/cmd/run_config.h"

enum { MOST_WORDS = 32 };

/* "run --arch resnet18 --synthetic" and the words of a case. */
static enum rfl_rc parse(const char *words, struct rfl_run_config *ret, struct rfl_err *err)
{
	static char text[1024];
	static const struct rfl_cli cli;
	static char *argv[MOST_WORDS];
	int argc = 0;

	snprintf(text, sizeof(text), "run --arch resnet18%s%s", *words ? " " : "", words);
	for (char *p = text; p && argc < MOST_WORDS; argc++) {
		argv[argc] = p;
		p = strchr(p, ' ');
		if (p)
			*p++ = '\0';
	}
	return rfl_run_config_parse(&cli, argc, argv, ret, err);
}

static struct rfl_run_config must(const char *words)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_run_config r;

	assert_ok(parse(words, &r, &err), &err);
	return r;
}

static void defaults_are_the_usual_ones(void **state)
{
	struct rfl_run_config r = must("--synthetic");
	const struct rfl_run_config *c = &r;

	(void)state;
	assert_int_equal(c->micro_batch, 32);
	assert_int_equal(c->accum, 1);
	assert_int_equal(c->warmup, 10);
	assert_int_equal(c->iters, 100);
	assert_int_equal(c->device, RFL_RUN_DEVICE_AUTO);
	assert_int_equal(c->precision, RFL_PRECISION_FP32);
	assert_int_equal(c->optimizer, RFL_RULE_SGD);
	assert_int_equal(c->optimizer_kernels, RFL_KERNELS_AUTO);
	assert_close(c->lr, 0.001, 0);
	assert_close(c->momentum, 0.9, 0);
	assert_close(c->weight_decay, 1e-4, 0);
	assert_int_equal(c->data_kind, RFL_DATA_SYNTHETIC);
	assert_int_equal(c->world.size, 1);
	assert_close(c->until_stdrel, 0, 0);
	assert_int_equal(r.oom, RFL_OOM_RECORD);
	assert_string_equal(r.log_dir, "logs");
	assert_false(c->deterministic || c->cudnn_benchmark || c->cuda_graph || c->sync_each_step);
}

/* As torch.optim.Adam and AdamW have them. */
static void each_rule_has_its_decay(void **state)
{
	static const struct {
		const char *words;
		double decay, beta1, beta2, eps;
	} cases[] = {
		{ "--optimizer adam", 0, 0.9, 0.999, 1e-8 },
		{ "--optimizer adamw", 0.01, 0.9, 0.999, 1e-8 },
		{ "--optimizer adamw --weight-decay 0", 0, 0.9, 0.999, 1e-8 },
		{ "--weight-decay 0.5 --momentum 0", 0.5, 0.9, 0.999, 1e-8 },
		{ "--optimizer adam --beta1 0.8 --beta2 0.95 --eps 0.001 --weight-decay 0.1", 0.1,
		  0.8, 0.95, 0.001 },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		char words[256];

		snprintf(words, sizeof(words), "--synthetic %s", cases[i].words);
		struct rfl_run_config r = must(words);

		assert_close(r.weight_decay, cases[i].decay, 0);
		assert_close(r.beta1, cases[i].beta1, 0);
		assert_close(r.beta2, cases[i].beta2, 0);
		assert_close(r.eps, cases[i].eps, 0);
	}
}

/* As older scripts write it, without a value. */
static void ranges_have_a_usual_kind(void **state)
{
	static const struct {
		const char *words;
		enum rfl_detail detail;
	} cases[] = {
		{ "--synthetic", RFL_DETAIL_OFF },
		{ "--nvtx --synthetic", RFL_DETAIL_PHASE },
		{ "--synthetic --nvtx", RFL_DETAIL_PHASE },
		{ "--synthetic --nvtx step", RFL_DETAIL_STEP },
		{ "--nvtx=layer --synthetic", RFL_DETAIL_LAYER },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_run_config r = must(cases[i].words);

		assert_int_equal(r.nvtx, cases[i].detail);
	}
}

static void options_arrive(void **state)
{
	struct rfl_run_config r = must(
		"--synthetic --batch-size 8 --grad-accum-steps 4 --backend cuda --precision bf16 "
		"--channels-last --sync-each-step --seed 7 --threads 3 --oom search --timeout 9 "
		"--until stdrel=0.5% --until-max 12 --iters 5 --optimizer-kernels fused");
	const struct rfl_run_config *c = &r;

	(void)state;
	assert_int_equal(c->micro_batch, 8);
	assert_int_equal(c->accum, 4);
	assert_int_equal(c->device, RFL_DEVICE_CUDA);
	assert_int_equal(c->precision, RFL_PRECISION_BF16);
	assert_true(c->channels_last);
	assert_int_equal(c->optimizer_kernels, RFL_KERNELS_FUSED);
	assert_true(c->sync_each_step);
	assert_int_equal(c->seed, 7);
	assert_int_equal(c->threads, 3);
	assert_close(c->until_stdrel, 0.005, 1e-15);
	assert_close(c->until_max_s, 12, 0);
	assert_int_equal(r.oom, RFL_OOM_SEARCH);
	assert_close(r.timeout_s, 9, 0);

	r = must("--data-mode synthetic-host --backend cuda --pin-memory --cudnn-benchmark "
		 "--until stdrel=0.01");
	assert_int_equal(c->data_kind, RFL_DATA_SYNTHETIC_HOST);
	assert_true(c->pin_memory && c->cudnn_benchmark);
	assert_null(c->data_dir);
	assert_close(c->until_stdrel, 0.01, 0);

	r = must("--data-mode imagefolder-cached --data photos --workers 3 --prefetch-factor 4 "
		 "--no-augment");
	assert_int_equal(c->data_kind, RFL_DATA_IMAGEFOLDER_CACHED);
	assert_string_equal(c->data_dir, "photos");
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->prefetch, 4);
	assert_true(c->no_augment);

	/* a command line that is tried out before the data is there */
	r = must("--data photos --workers 3 --no-augment --synthetic");
	assert_int_equal(c->data_kind, RFL_DATA_SYNTHETIC);
	assert_int_equal(c->workers, 0);
}

/* An option that has no effect in a run is no reason to refuse it. */
static void what_has_no_effect_is_accepted(void **state)
{
	static const char *const cases[] = {
		"--synthetic --pin-memory --backend cpu",
		"--synthetic --pin-memory --backend mps",
		"--synthetic --cudnn-benchmark --backend cpu",
		"--synthetic --sync-each-step --backend cpu",
		"--synthetic --mode fwd --optimizer adam",
		"--synthetic --mode fwd_bwd --lr 0.1",
		"--synthetic --optimizer adam --momentum 0.9",
		"--synthetic --beta1 0.9",
		"--synthetic --until-max 3",
		"--synthetic --workers 2",
		"--synthetic --prefetch-factor 2",
		"--synthetic --no-augment",
		"--data-mode synthetic --workers 2",
		"--data x --workers 0 --prefetch-factor 4",
		"--synthetic --counter-sets flops",
		"--synthetic --counters step --counter-sets flops --backend cpu",
		"--synthetic --interconnect gloo --bucket-mb 5 --world-timeout 9",
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		(void)must(cases[i]);
}

static void contradictions_are_refused(void **state)
{
	static const struct {
		const char *words, *says;
	} cases[] = {
		{ "", "use --data DIR or --synthetic" },
		{ "--synthetic --cudnn-benchmark --deterministic", "--deterministic forbids" },
		{ "--synthetic --cuda-graph --backend cpu", "--cuda-graph: only CUDA devices" },
		{ "--synthetic --cuda-graph --grad-accum-steps 2", "has one forward" },
		{ "--synthetic --cuda-graph --warmup-iters 2", "--warmup-iters 3 or more" },
		{ "--synthetic --cuda-graph --nvtx layer", "has no layers" },
		{ "--synthetic --cuda-graph --nvtx phase", "has no phases" },
		{ "--synthetic --mode fwd --grad-accum-steps 2", "no gradients" },
		{ "--synthetic --until 0.5%", "is not stdrel=X%" },
		{ "--synthetic --until stdrel=", "is not stdrel=X%" },
		{ "--synthetic --until stdrel=0", "is not stdrel=X%" },
		{ "--synthetic --until stdrel=100%", "is not stdrel=X%" },
		{ "--synthetic --until stdrel=nan", "is not stdrel=X%" },
		{ "--data-mode cifar10", "use --data DIR" },
		{ "--synthetic --data-mode cifar10", "--synthetic overrides it" },
		{ "--synthetic --oom shrink --in-process", "there is only one attempt" },
		{ "--synthetic --grad-accum-steps 0", "--grad-accum-steps: '0' is not" },
		{ "--synthetic --optimizer rmsprop", "--optimizer: 'rmsprop'" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_run_config r;

		if (parse(cases[i].words, &r, &err) != RFL_EUSAGE)
			fail_msg("'%s' was taken", cases[i].words);
		assert_says(&err, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_usual_ones),
		cmocka_unit_test(each_rule_has_its_decay),
		cmocka_unit_test(ranges_have_a_usual_kind),
		cmocka_unit_test(options_arrive),
		cmocka_unit_test(what_has_no_effect_is_accepted),
		cmocka_unit_test(contradictions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
