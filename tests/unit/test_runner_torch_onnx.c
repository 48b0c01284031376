/* The torch engine on networks from ONNX files: one that equals a network of the zoo computes the
 * same, and others learn a batch. */
#include "tests/unit/torch_rig.h"

#include <math.h>
#include <stdio.h>

#include "complexity/net/file.h"
#include "complexity/zoo.h"

enum { STEPS = 3, LOGITS = 1000, PIXELS = 3 * 224 * 224 };

/* Train on one image. @param losses  before each step */
static void train(const struct rfl_net *of, double losses[STEPS], float logits[LOGITS])
{
	static float image[PIXELS];
	const struct rfl_engine_config config = {
		.layout = RFL_LAYOUT_NCHW,
		.threads = 2,
		.max_batch = 1,
		.optimizer = { .lr = 1e-3 },
		.seed = 1,
	};
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_engine *e = NULL;
	int64_t label;
	const struct rfl_batch batch = { .n = 1, .images = image, .labels = &label };

	assert_int_equal(rfl_shape_numel(&of->nodes[0].shape), PIXELS);
	rfl_fill_labels(0, 1, of->classes, &label);
	assert_ok(rfl_fill_images(&of->nodes[0].shape, 0, 1, config.layout, 1, image, &err), &err);
	assert_ok(ops->open(of, &config, &e, &err), &err);
	assert_ok(rfl_fill_engine(ops, e, of, 2, &err), &err);
	for (int i = 0; i < STEPS; i++) {
		assert_ok(ops->zero_grad(e, &err), &err);
		assert_ok(ops->forward(e, &batch, &err), &err);
		if (i == 0)
			assert_ok(ops->logits(e, logits, LOGITS, &err), &err);
		assert_ok(ops->backward(e, NULL, &err), &err);
		assert_ok(ops->step(e, &err), &err);
		assert_ok(ops->loss(e, &losses[i], &err), &err);
	}
	ops->close(e);
}

static struct rfl_net *load(const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *ret = NULL;

	assert_ok(rfl_net_load(data_path(name), &ret, &err), &err);
	return ret;
}

/* The logits of the network of the zoo are checked against PyTorch's by verify. */
static void computes_what_the_zoo_does(void **state)
{
	static float logits[2][LOGITS];
	struct rfl_net *file = load("onnx/resnet18.unfolded.onnx"), *zoo = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	double losses[2][STEPS];

	(void)state;
	assert_ok(rfl_zoo_build("resnet18", &(struct rfl_zoo_options){ 0 }, &zoo, &err), &err);
	train(file, losses[0], logits[0]);
	train(zoo, losses[1], logits[1]);
	for (int i = 0; i < LOGITS; i++)
		assert_close((double)logits[0][i], (double)logits[1][i], 1e-5);
	for (int i = 0; i < STEPS; i++)
		assert_close(losses[0][i], losses[1][i], 1e-4);
	rfl_net_free(file);
	rfl_net_free(zoo);
}

static void trains(void **state)
{
	static const char *const names[] = { "onnx/squeezenet1_1.unfolded.onnx",
					     "onnx/mobilenet_v3_small.default.onnx",
					     "onnx/regnet_x_400mf.default.onnx" };
	static float logits[LOGITS];
	double losses[STEPS];

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(names); i++) {
		struct rfl_net *file = load(names[i]);

		train(file, losses, logits);
		assert_true(isfinite(losses[0]) && losses[STEPS - 1] < losses[0]);
		rfl_net_free(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(computes_what_the_zoo_does),
		cmocka_unit_test(trains),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
