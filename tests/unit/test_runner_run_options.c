/*
 * What is asked of a run reaches the engine, and its row: with an engine that computes nothing and
 * writes down how it was called.
 */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/proc.h"
#include "complexity/zoo.h"
#include "runner/run.h"
#include "tests/unit/run_rig.h"

#include <unistd.h>

static char *self;
static char said[4096];

/* In a child: so every member goes through the configuration's JSON. */
static void run_child(void *state, const struct rfl_run_config *asked, struct rfl_run_result *ret)
{
	const char *const child[] = { self, "run-child", NULL };
	const struct rfl_run_host host = host_of(child);
	struct rfl_run_config config = *asked;
	struct rfl_err err = RFL_ERR_INIT;

	config.env = "lab";
	config.log_dir = tmp_path(state, "logs");
	assert_ok(rfl_run(&config, &host, ret, &err), &err);
}

static void run_it(void *state, const struct rfl_run_config *config, struct rfl_run_result *ret)
{
	const char *log = tmp_path(state, "engine.txt");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	setenv("RFL_FAKE_LOG", log, 1);
	run_child(state, config, ret);
	unsetenv("RFL_FAKE_LOG");
	if (ret->rc != RFL_OK)
		fail_msg("%s: %s", ret->row.status, ret->row.error_text);
	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(log, &text, &err), &err);
	snprintf(said, sizeof(said), "%s", rfl_buf_str(&text));
	rfl_buf_fini(&text);
}

static void assert_said(const char *words)
{
	if (!strstr(said, words))
		fail_msg("the engine did not say '%s':\n%s", words, said);
}

static void the_engine_is_opened_as_asked(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;

	setenv("RFL_FAKE_DEVICE", "cuda", 1);
	config.device = RFL_DEVICE_CUDA;
	config.precision = RFL_PRECISION_AMP;
	config.channels_last = true;
	config.threads = 3;
	config.seed = 12345678901;
	config.deterministic = true;
	config.cudnn_benchmark = true;
	config.optimizer = RFL_RULE_ADAMW;
	config.optimizer_kernels = RFL_KERNELS_FOREACH;
	config.lr = 0.25;
	config.momentum = 0;
	config.weight_decay = 0.125;
	config.beta1 = 0.75;
	config.beta2 = 0.5;
	config.eps = 0.0625;
	config.grad_clip = 0.5;
	run_it(*state, &config, &r);
	unsetenv("RFL_FAKE_DEVICE");
	assert_said("device=cuda precision=amp layout=nhwc threads=3 max_batch=2 seed=12345678901");
	assert_said("deterministic=1 cudnn_benchmark=1");
	assert_said("optimizer=adamw kernels=foreach lr=0.25 momentum=0 weight_decay=0.125 "
		    "betas=0.75,0.5 eps=0.0625 grad_clip=0.5");
	assert_string_equal(r.row.precision, "amp");
	assert_string_equal(r.row.autocast, "fp16");
	assert_string_equal(r.row.layout, "nhwc");
	assert_string_equal(r.row.optimizer, "adamw");
	assert_string_equal(r.row.optimizer_kernels, "foreach");
	assert_close(r.row.lr, 0.25, 0);
	assert_close(r.row.weight_decay, 0.125, 0);
	assert_true(isnan(r.row.momentum));
	assert_close(r.row.grad_clip, 0.5, 0);
	assert_int_equal(r.row.deterministic, 1);
	assert_int_equal(r.row.cudnn_benchmark, 1);
	assert_int_equal(r.row.seed, 12345678901);
	assert_int_equal(r.row.threads, 3);
	rfl_run_result_fini(&r);
}

/* The row names what ran, which auto does not; of an engine without a word for it, what was asked
 * for, and of auto nothing. Without updates there are none. */
static void the_row_names_the_kernels_that_ran(void **state)
{
	static const struct {
		enum rfl_optimizer_kernels asked;
		const char *lacks, *ran;
	} cases[] = {
		{ RFL_KERNELS_AUTO, "", "foreach" },
		{ RFL_KERNELS_FUSED, "", "fused" },
		{ RFL_KERNELS_FOREACH, "kernels", "foreach" },
		{ RFL_KERNELS_AUTO, "kernels", NULL },
	};
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		config.optimizer_kernels = cases[i].asked;
		setenv("RFL_FAKE_LACKS", cases[i].lacks, 1);
		run_it(*state, &config, &r);
		if (cases[i].ran)
			assert_string_equal(r.row.optimizer_kernels, cases[i].ran);
		else
			assert_null(r.row.optimizer_kernels);
		rfl_run_result_fini(&r);
	}
	unsetenv("RFL_FAKE_LACKS");
	config.mode = RFL_RUN_FWD_BWD;
	run_it(*state, &config, &r);
	assert_null(r.row.optimizer_kernels);
	rfl_run_result_fini(&r);
}

static void autocast_is_the_devices(void **state)
{
	static const struct {
		enum rfl_precision precision;
		const char *cast;
		double scale;
	} cases[] = {
		{ RFL_PRECISION_FP32, NULL, (double)NAN },
		{ RFL_PRECISION_AMP, "bf16", (double)NAN },
		{ RFL_PRECISION_BF16, "bf16", (double)NAN },
		{ RFL_PRECISION_FP16, "fp16", 32768 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_run_config config = small_config();
		struct rfl_run_result r;

		config.precision = cases[i].precision;
		run_it(*state, &config, &r);
		if (cases[i].cast)
			assert_string_equal(r.row.autocast, cases[i].cast);
		else
			assert_null(r.row.autocast);
		assert_close(r.row.loss_scale, cases[i].scale, 0);
		assert_int_equal(r.row.scale_skipped, isnan(cases[i].scale) ? -1 : 1);
		rfl_run_result_fini(&r);
	}
}

/* Three forwards of two samples make a step of six: the loss is divided, gradients are forgotten
 * once, and the last backward says that it is the last. */
static void gradients_are_accumulated(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;

	config.micro_batch = 2;
	config.accum = 3;
	config.warmup = 1;
	config.iters = 4;
	run_it(*state, &config, &r);
	assert_said("forward=15 backward=15 step=5 ");
	assert_said("zero_grad=5 last=5 weights=5 ");
	assert_said("max_batch=2 ");
	assert_int_equal(r.row.batch, 6);
	assert_int_equal(r.row.micro_batch, 2);
	assert_int_equal(r.row.accum, 3);
	assert_string_equal(r.row.label, "lab_resnet18_fp32_bs2_run1");
	assert_close(r.row.samples_per_s, 6 * 4 / r.row.wall_s, 1e-12);
	/* the fake's losses are 8 / (1 + forwards so far): the mean over a step's three */
	assert_close(r.row.loss_first, (8.0 + 8.0 / 2 + 8.0 / 3) / 3, 1e-12);
	assert_close(r.row.loss_last, (8.0 / 13 + 8.0 / 14 + 8.0 / 15) / 3, 1e-12);
	rfl_run_result_fini(&r);
}

/* The standard error of a mean of positive numbers is never more than the mean: asked for that,
 * nothing more is needed. The window keeps its own statistics. */
static void it_goes_on_until_the_mean_is_known(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;

	config.iters = 20;
	config.until_stdrel = 1;
	config.until_max_s = 5;
	setenv("RFL_FAKE_MS", "2,0,0", 1);
	run_it(*state, &config, &r);
	assert_int_equal(r.row.iters, 20);
	assert_int_equal(r.row.until_steps, 20); /* nothing was needed */
	assert_false(r.row.flags && strstr(r.row.flags, "until_missed"));
	assert_true(r.row.until_stdrel <= 1 && r.row.until_stdrel >= 0);
	assert_close(r.row.until_step_ms_mean, r.row.step_ms_mean, 1e-12);
	assert_true(r.row.until_stdrel >=
		    r.row.step_ms_std / sqrt(20) / r.row.step_ms_mean * (1 - 1e-9));
	rfl_run_result_fini(&r);

	config.iters = 3;
	config.until_stdrel = 1e-9; /* never: the time is up */
	config.until_max_s = 0.2;
	run_it(*state, &config, &r);
	assert_true(r.row.until_steps > 3 && (r.row.until_steps - 3) % 16 == 0);
	assert_true(r.row.until_stdrel > 1e-9);
	assert_true(r.row.flags && strstr(r.row.flags, "until_missed"));
	assert_close(r.row.samples_per_s, 3 * 2 / r.row.wall_s, 1e-12); /* of the three */
	rfl_run_result_fini(&r);

	config.iters = 1; /* too few say nothing of how far they stray */
	config.until_stdrel = 1;
	run_it(*state, &config, &r);
	assert_int_equal(r.row.until_steps, 17);
	rfl_run_result_fini(&r);
	unsetenv("RFL_FAKE_MS");

	setenv("RFL_FAKE", "kill:forward:9", 1); /* after the window: it is measured */
	config.until_stdrel = 1e-9;
	run_child(*state, &config, &r);
	unsetenv("RFL_FAKE");
	assert_string_equal(r.row.status, "ok");
	assert_int_equal(r.row.until_steps, -1);
	rfl_run_result_fini(&r);

	config.until_stdrel = 0;
	run_it(*state, &config, &r);
	assert_int_equal(r.row.until_steps, -1);
	assert_true(isnan(r.row.until_stdrel));
	rfl_run_result_fini(&r);
}

static void a_language_model_has_tokens(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;

	config.arch = "tiny_lm";
	config.image_size = 0;
	config.context_length = 24;
	run_it(*state, &config, &r);
	assert_int_equal(r.row.context_length, 24);
	assert_true(r.row.vocab > 0);
	assert_int_equal(r.row.img_size, -1);
	assert_int_equal(r.row.classes, -1);
	assert_close(r.row.tokens_per_s, 24 * r.row.samples_per_s, 1e-12);
	rfl_run_result_fini(&r);

	config.context_length = 0;
	run_it(*state, &config, &r);
	assert_true(r.row.context_length > 0 && r.row.context_length != 24);
	rfl_run_result_fini(&r);
}

static void without_warm_up_the_first_step_is_in_the_window(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result r;

	config.warmup = 0;
	run_it(*state, &config, &r);
	assert_said("forward=6 ");
	assert_close(r.row.loss_first, 8, 0);
	assert_true(r.row.ttfb_ms > 0 && r.row.ttfb_ms <= r.row.step_ms_max);
	rfl_run_result_fini(&r);
}

/* The same losses, the same hash; a single bit is enough for another. */
static void losses_have_a_fingerprint(void **state)
{
	struct rfl_run_config config = small_config();
	struct rfl_run_result a, b;

	run_it(*state, &config, &a);
	run_it(*state, &config, &b);
	assert_string_equal(a.row.loss_hash, b.row.loss_hash);
	rfl_run_result_fini(&b);
	config.iters++;
	run_it(*state, &config, &b);
	assert_string_not_equal(a.row.loss_hash, b.row.loss_hash);
	rfl_run_result_fini(&a);
	rfl_run_result_fini(&b);
}

/* An attempt that fails is an attempt at the same configuration, however far it came. */
static void a_failed_attempt_has_the_hash_of_the_others(void **state)
{
	static const char *const ends[] = { "edevmem:open", "kill:open", "edevmem:forward:0",
					    "kill:backward:3" };

	for (int on = RFL_DEVICE_CPU; on <= RFL_DEVICE_CUDA; on++) {
		struct rfl_run_config config = small_config();
		struct rfl_run_result good, bad;

		setenv("RFL_FAKE_DEVICE", rfl_device_names[on], 1);
		config.device = on;
		config.pin_memory = config.cudnn_benchmark = config.sync_each_step = true;
		run_it(*state, &config, &good);
		for (size_t i = 0; i < RFL_ARRAY_LEN(ends); i++) {
			setenv("RFL_FAKE", ends[i], 1);
			run_child(*state, &config, &bad);
			unsetenv("RFL_FAKE");
			assert_string_not_equal(bad.row.status, "ok");
			assert_string_equal(bad.row.config_hash, good.row.config_hash);
			rfl_run_result_fini(&bad);
		}
		if (on == RFL_DEVICE_CPU) { /* which has no use for them */
			config.pin_memory = config.cudnn_benchmark = false;
			config.sync_each_step = false;
			run_it(*state, &config, &bad);
			assert_string_equal(bad.row.config_hash, good.row.config_hash);
			rfl_run_result_fini(&bad);
		}
		rfl_run_result_fini(&good);
	}
	unsetenv("RFL_FAKE_DEVICE");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmpdir_make, tmpdir_remove)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_engine_is_opened_as_asked),
		TEST(the_row_names_the_kernels_that_ran),
		TEST(autocast_is_the_devices),
		TEST(gradients_are_accumulated),
		TEST(it_goes_on_until_the_mean_is_known),
		TEST(a_language_model_has_tokens),
		TEST(without_warm_up_the_first_step_is_in_the_window),
		TEST(losses_have_a_fingerprint),
		TEST(a_failed_attempt_has_the_hash_of_the_others),
	};
	int failed;

	self = rfl_proc_self(NULL);
	if (!self)
		return 1;
	if (argc == 2 && strcmp(argv[1], "run-child") == 0)
		failed = rfl_run_child(STDIN_FILENO, RFL_RUN_REPORT_FD, NULL, NULL, NULL) != RFL_OK;
	else
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(self);
	return failed;
}
