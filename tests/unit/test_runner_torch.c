/* The torch engine on a small network: the order of calls, its errors, layouts, dropout, memory,
 * and SGD against the formula. Numbers of real networks are compared by `roofline verify`. */
#include "tests/unit/torch_rig.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/compiler.h"
#include "complexity/zoo.h"

static int param_index(const char *name)
{
	for (int i = 0; i < net->nparams; i++)
		if (strcmp(net->params[i].name, name) == 0)
			return i;
	fail_msg("no parameter %s", name);
	return -1;
}

static void says_what_it_is(void **state)
{
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine_memory memory;

	(void)state;
	assert_string_equal(ops->name, "torch");
	assert_int_equal(strncmp(ops->library_version(), ops->version, strlen(ops->version)), 0);
	assert_ok(ops->memory(e, &memory, &err), &err);
	assert_true(isnan(memory.allocated_peak)); /* malloc does not count bytes */
	ops->close(e);
	ops->close(NULL);
}

/* A row that is lost is noticed here. */
static void runs_every_operation(void **state)
{
	static const enum rfl_precision precisions[] = { RFL_PRECISION_FP32, RFL_PRECISION_TF32,
							 RFL_PRECISION_AMP, RFL_PRECISION_BF16,
							 RFL_PRECISION_FP16 };

	(void)state;
	for (int op = 0; op < RFL_OP_UNKNOWN; op++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(precisions); i++)
			assert_null(ops->unsupported((enum rfl_op)op, precisions[i]));
	assert_non_null(ops->unsupported(RFL_OP_UNKNOWN, RFL_PRECISION_FP32));
	assert_string_equal(ops->unsupported(RFL_OP_COUNT, RFL_PRECISION_FP32), "not an operation");
}

/* README.md and docs/internals/engines.md say how many networks of the zoo it runs. */
static void runs_so_many_of_the_zoo(void **state)
{
	const struct rfl_zoo_model *model;
	int runs = 0;

	(void)state;
	for (size_t i = 0; (model = rfl_zoo_at(i)); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_net *zoo = NULL;
		bool all = true;

		assert_ok(rfl_zoo_build(model->name, NULL, &zoo, &err), &err);
		for (int k = 0; k < zoo->nnodes; k++)
			all &= !ops->unsupported(zoo->nodes[k].op, RFL_PRECISION_FP32);
		runs += all;
		rfl_net_free(zoo);
	}
	assert_int_equal(runs, 97);
}

static void refuses_what_it_cannot(void **state)
{
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_engine *e = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	config.precision = RFL_PRECISION_TF32;
	assert_int_equal(ops->open(net, &config, &e, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "does not exist on cpu; use fp32 or bf16");
	rfl_err_clear(&err);
	config = config_of(RFL_LAYOUT_NCHW);
	config.device = RFL_DEVICE_CUDA;
	assert_int_equal(ops->open(net, &config, &e, &err), RFL_EUNAVAILABLE);
	rfl_err_clear(&err);
	config = config_of(RFL_LAYOUT_NCHW);
	config.threads = 0;
	assert_int_equal(ops->open(net, &config, &e, &err), RFL_EINVAL);
	assert_null(e);
}

/* config.threads reaches the runtime that libtorch computes with. */
static void threads_reach_libtorch(void **state)
{
	static const int counts[] = { 2, 1 };
	void *runtime = dlopen("libgomp.so.1", RTLD_NOLOAD | RTLD_LAZY);
	int (*max_threads)(void) = NULL;

	(void)state;
	if (!runtime) {
		print_message("skipped: libtorch uses an OpenMP runtime other than libgomp.so.1\n");
		skip();
	}
	*(void **)&max_threads = dlsym(runtime, "omp_get_max_threads");
	assert_non_null(max_threads);
	for (size_t i = 0; i < RFL_ARRAY_LEN(counts); i++) {
		struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
		struct rfl_engine *e = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		config.threads = counts[i];
		assert_ok(ops->open(net, &config, &e, &err), &err);
		assert_int_equal(max_threads(), counts[i]);
		ops->close(e);
	}
	assert_int_equal(dlclose(runtime), 0);
}

/* Every call at the wrong time is refused with words, and the engine stays usable. */
static void calls_in_order_only(void **state)
{
	struct rfl_engine *e = open_plain();
	const struct rfl_batch batch = batch_of(BATCH);
	const int bias = param_index("fc.bias"), mean = param_index("bn1.running_mean");
	struct rfl_batch large = batch_of(BATCH + 1);
	struct rfl_err err = RFL_ERR_INIT;
	float grad[CLASSES], wrong[CLASSES + 1], statistics[8];
	double loss;

	(void)state;
#define REFUSED(call, word)                         \
	do {                                        \
		rfl_err_clear(&err);                \
		assert_int_equal(call, RFL_EINVAL); \
		assert_says(&err, word);            \
	} while (0)
	REFUSED(ops->loss(e, &loss, &err), "no loss; run forward first");
	REFUSED(ops->backward(e, NULL, &err), "forward");
	REFUSED(ops->step(e, &err), "backward");
	REFUSED(ops->forward(e, &large, &err), "1 to 3 samples");
	rfl_err_clear(&err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	REFUSED(ops->get_grad(e, bias, grad, CLASSES, &err), "between backward and step");
	rfl_err_clear(&err);
	assert_ok(ops->backward(e, NULL, &err), &err);
	REFUSED(ops->backward(e, NULL, &err), "forward");
	REFUSED(ops->get_grad(e, mean, statistics, 8, &err), "is a buffer");
	REFUSED(ops->get_grad(e, bias, wrong, CLASSES + 1, &err), "5 elements");
	REFUSED(ops->get_param(e, net->nparams, wrong, 1, &err), "does not exist");
	rfl_err_clear(&err);
	assert_ok(ops->get_grad(e, bias, grad, CLASSES, &err), &err);
	assert_ok(ops->step(e, &err), &err);
	REFUSED(ops->get_grad(e, bias, grad, CLASSES, &err), "between backward and step");
	REFUSED(ops->step(e, &err), "backward");
	rfl_err_clear(&err);
	assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	REFUSED(ops->backward(e, NULL, &err), "training mode");
	rfl_err_clear(&err);
	assert_ok(ops->loss(e, &loss, &err), &err);
	assert_true(isfinite(loss));
#undef REFUSED
	ops->close(e);
}

static void parameters_come_back(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int layout = 0; layout < 2; layout++) {
		const struct rfl_engine_config config = config_of((enum rfl_layout)layout);
		struct rfl_engine *e = open_with(&config);

		for (int i = 0; i < net->nparams; i++) {
			const struct rfl_param *p = &net->params[i];
			float *want = malloc((size_t)p->numel * sizeof(*want));
			float *got = malloc((size_t)p->numel * sizeof(*got));
			const float *inside = ops->param_data(e, i);

			assert_non_null(want);
			assert_non_null(got);
			rfl_fill_values(rfl_fill_rule_of(p), p->position, 0, (size_t)p->numel,
					want);
			assert_ok(ops->get_param(e, i, got, p->numel, &err), &err);
			assert_memory_equal(got, want, (size_t)p->numel * sizeof(*got));
			if (inside)
				assert_memory_equal(inside, want, (size_t)p->numel * sizeof(*got));
			free(want);
			free(got);
		}
		ops->close(e);
	}
}

static void eval_logits(const struct rfl_engine_config *config, const struct rfl_batch *batch,
			float out[BATCH * CLASSES])
{
	struct rfl_engine *e = open_with(config);
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
	assert_ok(ops->forward(e, batch, &err), &err);
	assert_ok(ops->logits(e, out, BATCH * CLASSES, &err), &err);
	ops->close(e);
}

/* Layout of the engine and layout of the images, each in both orders: the same function. */
static void layouts_agree(void **state)
{
	static float nhwc[BATCH * IMAGE];
	float want[BATCH * CLASSES];
	struct rfl_batch batch = batch_of(BATCH);
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);

	(void)state;
	eval_logits(&config, &batch, want);
	for (size_t b = 0; b < BATCH; b++)
		for (size_t c = 0; c < 3; c++)
			for (size_t i = 0; i < SIDE * SIDE; i++)
				nhwc[b * IMAGE + i * 3 + c] =
					images[b * IMAGE + c * SIDE * SIDE + i];
	for (int i = 1; i < 4; i++) {
		float got[BATCH * CLASSES];

		config.layout = i & 1 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW;
		batch.layout = i & 2 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW;
		batch.images = i & 2 ? nhwc : images;
		eval_logits(&config, &batch, got);
		for (int j = 0; j < BATCH * CLASSES; j++)
			assert_true(fabs((double)got[j] - (double)want[j]) < 1e-5);
	}
}

/* g += wd p; buf = momentum buf + g; p -= lr buf: from the engine's own gradients, in double. */
static void sgd_follows_the_formula(void **state)
{
	const struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	const struct rfl_batch batch = batch_of(BATCH);
	const int w = param_index("conv1.weight");
	enum { N = 8 * 3 * 3 * 3 };
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;
	double p[N], buf[N] = { 0 };
	float now[N], grad[N];

	(void)state;
	assert_ok(ops->get_param(e, w, now, N, &err), &err);
	for (int i = 0; i < N; i++)
		p[i] = (double)now[i];
	for (int step = 0; step < 4; step++) {
		if (step == 2) { /* forgetting momentum is starting again */
			assert_ok(ops->reset_optimizer(e, &err), &err);
			memset(buf, 0, sizeof(buf));
		}
		assert_ok(ops->zero_grad(e, &err), &err);
		assert_ok(ops->forward(e, &batch, &err), &err);
		assert_ok(ops->backward(e, NULL, &err), &err);
		assert_ok(ops->get_grad(e, w, grad, N, &err), &err);
		assert_ok(ops->step(e, &err), &err);
		assert_ok(ops->get_param(e, w, now, N, &err), &err);
		for (int i = 0; i < N; i++) {
			const double g = (double)grad[i] + config.optimizer.weight_decay * p[i];

			buf[i] = config.optimizer.momentum * buf[i] + g;
			p[i] -= config.optimizer.lr * buf[i];
			assert_true(fabs(p[i] - (double)now[i]) < 1e-6);
		}
	}
	ops->close(e);
}

/* The gradient of one weight against a difference of losses. */
static void gradients_match_differences(void **state)
{
	const struct rfl_batch batch = batch_of(BATCH);
	const int w = param_index("fc.weight");
	enum { N = 8 * 4 * CLASSES };
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;
	float grad[N], values[N];

	(void)state;
	assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN_FROZEN_BN, &err), &err);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	assert_ok(ops->backward(e, NULL, &err), &err);
	assert_ok(ops->get_grad(e, w, grad, N, &err), &err);
	assert_ok(ops->get_param(e, w, values, N, &err), &err);
	for (int i = 0; i < N; i += 13) {
		const float h = 0.02f, old = values[i];
		double above, below;

		values[i] = old + h;
		assert_ok(ops->set_param(e, w, values, N, &err), &err);
		assert_ok(ops->zero_grad(e, &err), &err);
		assert_ok(ops->forward(e, &batch, &err), &err);
		assert_ok(ops->loss(e, &above, &err), &err);
		values[i] = old - h;
		assert_ok(ops->set_param(e, w, values, N, &err), &err);
		assert_ok(ops->zero_grad(e, &err), &err);
		assert_ok(ops->forward(e, &batch, &err), &err);
		assert_ok(ops->loss(e, &below, &err), &err);
		values[i] = old;
		assert_true(fabs((above - below) / (2 * (double)h) - (double)grad[i]) < 2e-4);
	}
	ops->close(e);
}

/* x tanh(log(1 + exp(x))), of the input itself. */
static enum rfl_rc check_mish(int node, const float *values, int64_t numel, void *ctx,
			      struct rfl_err *err)
{
	(void)err;
	for (int64_t i = 0; i < numel && node == *(const int *)ctx; i++) {
		double x = (double)images[i];

		assert_true(fabs(x * tanh(log1p(exp(x))) - (double)values[i]) < 1e-6);
	}
	return RFL_OK;
}

static void mish_is_that_of_its_paper(void **state)
{
	const struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_net_builder *b = rfl_net_builder_new("mish", "test");
	struct rfl_net *own = NULL;
	struct rfl_engine *e = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int mish, x;

	(void)state;
	assert_non_null(b);
	mish = rfl_unary(b, RFL_OP_MISH, rfl_net_input(b, 3, SIDE, SIDE), "mish", RFL_OUT_OF_PLACE);
	x = rfl_linear(b, rfl_flatten(b, mish), "fc", CLASSES, true);
	assert_ok(rfl_net_finish(b, x, &own, &err), &err);
	assert_ok(ops->open(own, &config, &e, &err), &err);
	assert_ok(ops->forward_traced(e, &batch, check_mish, &mish, &err), &err);
	ops->close(e);
	rfl_net_free(own);
}

static void modes_and_statistics(void **state)
{
	static const struct {
		enum rfl_engine_mode mode;
		bool moves;
	} cases[] = {
		{ RFL_ENGINE_EVAL, false },
		{ RFL_ENGINE_TRAIN_FROZEN_BN, false },
		{ RFL_ENGINE_TRAIN, true },
	};
	const struct rfl_batch batch = batch_of(BATCH);
	const int var = param_index("bn1.running_var");
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;
	float before[8], after[8];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		assert_ok(ops->get_param(e, var, before, 8, &err), &err);
		assert_ok(ops->set_mode(e, cases[i].mode, &err), &err);
		assert_ok(ops->zero_grad(e, &err), &err);
		assert_ok(ops->forward(e, &batch, &err), &err);
		assert_ok(ops->get_param(e, var, after, 8, &err), &err);
		assert_int_equal(memcmp(before, after, sizeof(before)) != 0, cases[i].moves);
	}
	ops->close(e);
}

/* Off: the same loss each time. On: another mask each time, and the same masks from one seed. */
static void dropout_switch_and_seed(void **state)
{
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;
	double loss[2][3];

	(void)state;
	for (int on = 0; on < 2; on++) {
		struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);

		config.dropout = on;
		for (int again = 0; again < 2; again++) {
			struct rfl_engine *e = open_with(&config);

			assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN_FROZEN_BN, &err), &err);
			for (int i = 0; i < 3; i++) {
				assert_ok(ops->zero_grad(e, &err), &err);
				assert_ok(ops->forward(e, &batch, &err), &err);
				assert_ok(ops->loss(e, &loss[again][i], &err), &err);
			}
			ops->close(e);
		}
		assert_memory_equal(loss[0], loss[1], sizeof(loss[0]));
		assert_int_equal(loss[0][0] != loss[0][1] || loss[0][1] != loss[0][2], on);
	}
}

static size_t address_space_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &pages), 1);
	assert_int_equal(fclose(f), 0);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* libtorch's CPU allocator says in words only that there is no memory. A batch whose first result
 * takes 1 GiB meets a process that may grow by an eighth of that. */
static void out_of_memory_is_told_apart(void **state)
{
	enum { MANY = 1 << 19 };
	struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
	struct rfl_batch batch = batch_of(BATCH);
	float *many = calloc((size_t)MANY * IMAGE, sizeof(*many)); /* never touched */
	int64_t *zero = calloc(MANY, sizeof(*zero));
	struct rfl_err err = RFL_ERR_INIT;
	struct rlimit old, tight;
	struct rfl_engine *e;
	enum rfl_rc rc;

	(void)state;
	assert_non_null(many);
	assert_non_null(zero);
	config.max_batch = MANY;
	e = open_with(&config);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err); /* the threads exist from here on */
	batch.n = MANY;
	batch.images = many;
	batch.labels = zero;
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	tight = old;
	tight.rlim_cur = address_space_bytes() + ((size_t)128 << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	rc = ops->forward(e, &batch, &err);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	if (rc != RFL_EDEVMEM)
		print_error("%s\n", err.msg);
	assert_int_equal(rc, RFL_EDEVMEM);
	assert_says(&err, "out of memory");
	rfl_err_clear(&err);
	batch = batch_of(BATCH);
	assert_ok(ops->zero_grad(e, &err), &err);
	assert_ok(ops->forward(e, &batch, &err), &err);
	ops->close(e);
	free(zero);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_it_is),
		cmocka_unit_test(runs_every_operation),
		cmocka_unit_test(runs_so_many_of_the_zoo),
		cmocka_unit_test(refuses_what_it_cannot),
		cmocka_unit_test(threads_reach_libtorch),
		cmocka_unit_test(calls_in_order_only),
		cmocka_unit_test(parameters_come_back),
		cmocka_unit_test(layouts_agree),
		cmocka_unit_test(sgd_follows_the_formula),
		cmocka_unit_test(gradients_match_differences),
		cmocka_unit_test(mish_is_that_of_its_paper),
		cmocka_unit_test(modes_and_statistics),
		cmocka_unit_test(dropout_switch_and_seed),
		cmocka_unit_test(out_of_memory_is_told_apart),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
