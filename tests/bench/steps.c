/*
 * steps.c - training steps of the torch engine on demand, for lockstep.py: a step per line on
 * standard input, its time in ms on standard output. What a step does is what burst.c does.
 *
 * Usage: bench_steps PLUGIN_DIR MODEL BATCH nchw|nhwc THREADS PRECISION
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	int64_t *labels;
};

static enum rfl_rc make_batch(struct bench *b, int64_t n, enum rfl_layout layout, int threads,
			      struct rfl_err *err)
{
	const struct rfl_shape *shape = &b->net->nodes[0].shape;

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

static enum rfl_rc precision_of(const char *name, enum rfl_precision *ret, struct rfl_err *err)
{
	for (int i = 0; rfl_precision_names[i]; i++) {
		if (strcmp(name, rfl_precision_names[i]) != 0)
			continue;
		*ret = (enum rfl_precision)i;
		return RFL_OK;
	}
	return rfl_fail(err, RFL_EINVAL, 0, "no precision '%s'", name);
}

static enum rfl_rc open_bench(struct bench *b, char **argv, struct rfl_err *err)
{
	const char *const dirs[] = { argv[1], NULL };
	struct rfl_engine_config config = {
		.layout = strcmp(argv[4], "nhwc") == 0 ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
		.optimizer = { .lr = 0.01, .momentum = 0.9, .weight_decay = 1e-4 },
		.dropout = true,
	};
	struct rfl_engine_list *list = NULL;
	int64_t threads = 1;
	enum rfl_rc rc = rfl_num_parse_int(argv[3], "BATCH", &config.max_batch, err);

	if (rc == RFL_OK)
		rc = rfl_num_parse_int(argv[5], "THREADS", &threads, err);
	config.threads = (int)threads;
	if (rc == RFL_OK)
		rc = precision_of(argv[6], &config.precision, err);
	if (rc == RFL_OK)
		rc = rfl_engine_list_new(dirs, &list, err);
	if (rc == RFL_OK)
		rc = rfl_engine_load(list, "torch", RFL_DEVICE_CPU, &b->ops, err);
	rfl_engine_list_free(list);
	if (rc == RFL_OK)
		rc = rfl_zoo_build(argv[2], NULL, &b->net, err);
	if (rc == RFL_OK)
		rc = b->ops->open(b->net, &config, &b->engine, err);
	if (rc == RFL_OK)
		rc = rfl_fill_engine(b->ops, b->engine, b->net, config.threads, err);
	if (rc == RFL_OK)
		rc = b->ops->set_mode(b->engine, RFL_ENGINE_TRAIN, err);
	return rc == RFL_OK ? make_batch(b, config.max_batch, config.layout, config.threads, err)
			    : rc;
}

static enum rfl_rc step(struct bench *b, struct rfl_err *err)
{
	const int64_t start = rfl_clock_ns();
	double loss;
	enum rfl_rc rc = b->ops->zero_grad(b->engine, err);

	if (rc == RFL_OK)
		rc = b->ops->forward(b->engine, &b->batch, err);

	if (rc == RFL_OK)
		rc = b->ops->backward(b->engine, NULL, err);
	if (rc == RFL_OK)
		rc = b->ops->step(b->engine, err);
	if (rc == RFL_OK) {
		printf("%.6f\n", (double)(rfl_clock_ns() - start) * 1e-6);
		(void)fflush(stdout);
		rc = b->ops->loss(b->engine, &loss, err);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct rfl_err err = RFL_ERR_INIT;
	char line[16];
	enum rfl_rc rc;

	if (argc != 7) {
		fputs("usage: bench_steps PLUGIN_DIR MODEL BATCH nchw|nhwc THREADS PRECISION\n",
		      stderr);
		return 2;
	}
	rc = open_bench(&b, argv, &err);
	if (rc == RFL_OK) {
		printf("ready %s\n", b.ops->library_version());
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
	return rc == RFL_OK ? 0 : 1;
}
