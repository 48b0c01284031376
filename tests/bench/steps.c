/*
 * steps.c - training steps of an engine on demand, for lockstep.py: the counterpart of
 * torch_loop.py, with the same arguments, input and output. What a step does is what burst.c does.
 *
 * Usage: bench_steps PLUGIN_DIR ENGINE MODEL BATCH nchw|nhwc|ATTENTION THREADS PRECISION CONTEXT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/num.h"
#include "complexity/zoo.h"
#include "runner/engine.h"
#include "data/fill.h"

struct bench {
	const struct rfl_engine_ops *ops;
	struct rfl_net *net;
	struct rfl_engine *engine;
	struct rfl_batch batch;
	float *images;
	int64_t *labels, *tokens;
	int64_t context; /* 0: images */
};

static enum rfl_rc make_batch(struct bench *b, int64_t n, enum rfl_layout layout, int threads,
			      struct rfl_err *err)
{
	const struct rfl_shape *shape = &b->net->nodes[0].shape;
	const int64_t all = n * b->context;

	if (b->context > 0) {
		b->tokens = rfl_alloc_array((size_t)all, sizeof(*b->tokens));
		b->labels = rfl_alloc_array((size_t)all, sizeof(*b->labels));
		if (!b->tokens || !b->labels)
			return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		rfl_fill_tokens(0, all, b->net->classes, b->tokens);
		rfl_fill_labels(0, all, b->net->classes, b->labels);
		b->batch = (struct rfl_batch){
			.kind = RFL_INPUT_TOKENS, .n = n, .tokens = b->tokens, .labels = b->labels
		};
		return RFL_OK;
	}
	b->images = rfl_alloc_array((size_t)(n * rfl_shape_numel(shape)), sizeof(float));
	b->labels = rfl_alloc_array((size_t)n, sizeof(*b->labels));
	if (!b->images || !b->labels)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	rfl_fill_labels(0, n, b->net->classes, b->labels);
	b->batch = (struct rfl_batch){
		.n = n, .images = b->images, .layout = layout, .labels = b->labels
	};
	return rfl_fill_images(shape, 0, n, layout, threads, b->images, err);
}

static enum rfl_rc index_of(const char *name, const char *const *names, int *ret,
			    struct rfl_err *err)
{
	for (*ret = 0; names[*ret]; ++*ret)
		if (strcmp(name, names[*ret]) == 0)
			return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0, "unknown argument '%s'", name);
}

static enum rfl_rc open_bench(struct bench *b, char **argv, struct rfl_err *err)
{
	const char *const dirs[] = { argv[1], NULL };
	struct rfl_engine_config config = {
		.layout = strcmp(argv[5], "nhwc") == 0 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
		.optimizer = { .lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4 },
		.dropout = true,
	};
	struct rfl_zoo_options sizes = { .image_size = 0 };
	struct rfl_engine_list *list = NULL;
	int precision = 0, attention = 0;
	int64_t threads = 1;
	enum rfl_rc rc = rfl_num_parse_int(argv[4], "BATCH", &config.max_batch, err);

	if (rc == RFL_OK)
		rc = rfl_num_parse_int(argv[6], "THREADS", &threads, err);
	config.threads = (int)threads;
	if (rc == RFL_OK)
		rc = index_of(argv[7], rfl_precision_names, &precision, err);
	config.precision = (enum rfl_precision)precision;
	if (rc == RFL_OK)
		rc = rfl_num_parse_int(argv[8], "CONTEXT", &b->context, err);
	if (rc == RFL_OK && b->context > 0) {
		rc = index_of(argv[5], rfl_attention_names, &attention, err);
		sizes.context_length = b->context;
		sizes.attention = (enum rfl_attention)attention;
		config.optimizer = (struct rfl_optimizer){ .rule = RFL_RULE_ADAMW,
							   .lr = 1e-3,
							   .weight_decay = 0.01,
							   .beta1 = 0.9,
							   .beta2 = 0.999,
							   .eps = 1e-8 };
	}
	if (rc == RFL_OK)
		rc = rfl_engine_list_new(dirs, &list, err);
	if (rc == RFL_OK)
		rc = rfl_engine_load(list, argv[2], RFL_DEVICE_CPU, &b->ops, err);
	rfl_engine_list_free(list);
	if (rc == RFL_OK)
		rc = rfl_zoo_build(argv[3], &sizes, &b->net, err);
	if (rc == RFL_OK)
		rc = b->ops->open(b->net, &config, &b->engine, err);
	if (rc == RFL_OK)
		rc = rfl_fill_engine(b->ops, b->engine, b->net, config.threads, err);
	if (rc == RFL_OK)
		rc = b->ops->set_mode(b->engine, RFL_ENGINE_TRAIN, err);
	return rc == RFL_OK ? make_batch(b, config.max_batch, config.layout, config.threads, err)
			    : rc;
}

#define PARTS 3 /* forward, backward, update */

/* A moment, and the CPU time used until then. */
struct mark {
	double ms, cpu_ms;
};

static struct mark mark(void)
{
	return (struct mark){ .ms = (double)rfl_clock_ns() * 1e-6,
			      .cpu_ms = (double)clock() * 1e3 / (double)CLOCKS_PER_SEC };
}

static enum rfl_rc step(struct bench *b, struct rfl_err *err)
{
	struct mark at[PARTS + 1] = { mark() };
	double loss;
	enum rfl_rc rc = b->ops->zero_grad(b->engine, err);

	if (rc == RFL_OK)
		rc = b->ops->forward(b->engine, &b->batch, err);
	at[1] = mark();
	if (rc == RFL_OK)
		rc = b->ops->backward(b->engine, NULL, err);
	at[2] = mark();
	if (rc == RFL_OK)
		rc = b->ops->step(b->engine, err);
	at[3] = mark();
	if (rc == RFL_OK)
		rc = b->ops->loss(b->engine, &loss, err);
	if (rc != RFL_OK)
		return rc;
	for (int i = 1; i <= PARTS; i++)
		printf("%.6f ", at[i].ms - at[0].ms);
	for (int i = 1; i <= PARTS; i++)
		printf("%.6f ", at[i].cpu_ms - at[0].cpu_ms);
	printf("%.9g\n", loss);
	(void)fflush(stdout);
	return RFL_OK;
}

static int64_t parameters_of(const struct rfl_net *net)
{
	int64_t n = 0;

	for (int i = 0; i < net->nparams; i++)
		if (!rfl_param_is_buffer(net->params[i].kind))
			n += net->params[i].numel;
	return n;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct rfl_err err = RFL_ERR_INIT;
	char line[16];
	enum rfl_rc rc;

	if (argc != 9) {
		fputs("usage: bench_steps PLUGIN_DIR ENGINE MODEL BATCH nchw|nhwc|ATTENTION "
		      "THREADS PRECISION CONTEXT\n",
		      stderr);
		return 2;
	}
	rc = open_bench(&b, argv, &err);
	if (rc == RFL_OK) {
		printf("ready %s %lld\n", b.ops->library_version(),
		       (long long)parameters_of(b.net));
		(void)fflush(stdout);
	}
	while (rc == RFL_OK && fgets(line, sizeof(line), stdin))
		rc = step(&b, &err);
	if (rc != RFL_OK)
		fprintf(stderr, "bench_steps: %s\n", err.msg);
	if (b.engine)
		b.ops->close(b.engine);
	rfl_net_free(b.net);
	free(b.images);
	free(b.labels);
	free(b.tokens);
	return rc == RFL_OK ? 0 : 1;
}
