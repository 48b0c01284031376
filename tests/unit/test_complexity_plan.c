/*
 * test_complexity_plan.c - plans: every tensor is written before it is read and keeps its place
 * until its last reader, what is fused, what is refused, memory against its bound.
 */
#include "complexity/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "complexity/zoo.h"
#include "complexity/zoo/blocks.h"
#include "tests/unit/build_rig.h"
#include "tests/unit/rfl_test.h"

static struct rfl_net *net_of(const char *model)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_net *net = NULL;

	assert_ok(rfl_zoo_build(model, NULL, &net, &err), &err);
	return net;
}

static struct rfl_plan *plan_of(const struct rfl_net *net, struct rfl_plan_setup setup)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_plan *plan = NULL;

	if (!setup.value_bytes)
		setup.value_bytes = 4;
	assert_ok(rfl_plan_new(net, &setup, &plan, &err), &err);
	rfl_plan_place(plan);
	return plan;
}

/* Whether a step writes a slot. DY and DY2 may be written too, where the result lies over them. */
static bool writes(const struct rfl_plan_step *s, enum rfl_plan_slot slot)
{
	const bool forward = s->pass == RFL_PLAN_FORWARD;

	switch (slot) {
	case RFL_PLAN_Y:
	case RFL_PLAN_MASK:
	case RFL_PLAN_MEAN:
	case RFL_PLAN_INVERSE:
		return forward;
	case RFL_PLAN_DX:
	case RFL_PLAN_DOTHER:
	case RFL_PLAN_DWEIGHT:
	case RFL_PLAN_DBIAS:
		return true;
	default:
		return false;
	}
}

/* Execute a plan on owners of memory instead of values: each 64 bytes know the buffer that was
 * written there last. A step that finds another buffer where it reads would read rubbish. */
static void check_lives(const struct rfl_plan *plan)
{
	const int64_t cells = plan->bytes / 64 + 1;
	int *owner = rfl_alloc_array((size_t)cells, sizeof(*owner));

	for (int64_t c = 0; c < cells; c++)
		owner[c] = -1;
	for (int i = 0; i < plan->nsteps; i++) {
		const struct rfl_plan_step *s = &plan->steps[i];

		for (int write = 0; write < 2; write++)
			for (int k = 0; k < RFL_PLAN_SLOTS; k++) {
				const int b = s->buffer[k];
				const struct rfl_plan_buffer *buffer =
					&plan->buffers[b < 0 ? 0 : b];

				/* copies of columns complete a tensor in several steps */
				if (b < 0 || writes(s, (enum rfl_plan_slot)k) != write)
					continue;
				assert_true(buffer->first <= i && i <= buffer->last);
				for (int64_t c = 0; c < (buffer->bytes + 63) / 64; c++) {
					int *at = &owner[buffer->offset / 64 + c];

					if (write)
						*at = b;
					else
						assert_int_equal(*at, b);
				}
			}
	}
	free(owner);
}

static int count_steps(const struct rfl_plan *plan, enum rfl_plan_op op, enum rfl_plan_pass pass)
{
	int n = 0;

	for (int i = 0; i < plan->nsteps; i++)
		n += plan->steps[i].op == op && plan->steps[i].pass == pass;
	return n;
}

static const char *const models[] = {
	"alexnet",
	"vgg11",
	"vgg16_bn",
	"resnet18",
	"resnet50",
	"resnext50_32x4d",
	"wide_resnet50_2",
	"densenet121",
	"mobilenet_v2",
	"mobilenet_v3_large",
	"mnasnet1_0",
	"googlenet",
	"inception_v3",
	"squeezenet1_1",
	"shufflenet_v2_x1_0",
	"regnet_x_400mf",
	"regnet_y_400mf",
	"efficientnet_b0",
	"cifar_cnn",
};

static void tensors_live_as_long_as_needed(void **state)
{
	static const struct rfl_plan_setup setups[] = {
		{ .batch = 2, .training = true, .dropout = true },
		{ .batch = 1, .training = true, .frozen = true, .unfused = true },
		{ .batch = 3 },
		{ .batch = 2, .training = true, .value_bytes = 2 },
	};

	(void)state;
	for (size_t m = 0; m < RFL_ARRAY_LEN(models); m++) {
		struct rfl_net *net = net_of(models[m]);

		for (size_t k = 0; k < RFL_ARRAY_LEN(setups); k++) {
			struct rfl_plan *plan = plan_of(net, setups[k]);

			check_lives(plan);
			assert_true(plan->bytes >= plan->live_bytes);
			if (plan->bytes > plan->live_bytes + plan->live_bytes / 20)
				fail_msg("%s: %lld bytes, but %lld live", models[m],
					 (long long)plan->bytes, (long long)plan->live_bytes);
			rfl_plan_free(plan);
		}
		rfl_net_free(net);
	}
}

/* ResNet-50: 53 convolutions, each with its batch norm; 16 of these add the residual; the only
 * gradients summed apart are those of the four blocks whose input has two convolutions. */
static void a_residual_network_is_fused(void **state)
{
	struct rfl_net *net = net_of("resnet50");
	struct rfl_plan *plan =
		plan_of(net, (struct rfl_plan_setup){ .batch = 1, .training = true });
	int residual = 0, activated = 0;

	(void)state;
	assert_int_equal(count_steps(plan, RFL_PLAN_CONV, RFL_PLAN_FORWARD), 53);
	assert_int_equal(count_steps(plan, RFL_PLAN_CONV, RFL_PLAN_WGRAD), 53);
	assert_int_equal(count_steps(plan, RFL_PLAN_CONV, RFL_PLAN_DGRAD), 52);
	assert_int_equal(count_steps(plan, RFL_PLAN_NORM, RFL_PLAN_FORWARD), 53);
	assert_int_equal(count_steps(plan, RFL_PLAN_NORM, RFL_PLAN_DGRAD), 53);
	assert_int_equal(count_steps(plan, RFL_PLAN_ADD, RFL_PLAN_FORWARD), 0);
	assert_int_equal(count_steps(plan, RFL_PLAN_ACTIVATION, RFL_PLAN_FORWARD), 0);
	assert_int_equal(count_steps(plan, RFL_PLAN_ACTIVATION, RFL_PLAN_DGRAD), 0);
	assert_int_equal(count_steps(plan, RFL_PLAN_ADD, RFL_PLAN_DGRAD), 1);
	for (int i = 0; i < plan->nforward; i++)
		if (plan->steps[i].op == RFL_PLAN_NORM) {
			residual += plan->steps[i].buffer[RFL_PLAN_OTHER] >= 0;
			activated += plan->steps[i].activation == RFL_PLAN_RELU;
		}
	assert_int_equal(residual, 16);
	assert_int_equal(activated, 49);
	rfl_plan_free(plan);
	rfl_net_free(net);
}

/* VGG-16: ReLU is part of each convolution and of two linear layers; its gradient is a step. */
static void a_plain_network_is_fused(void **state)
{
	struct rfl_net *net = net_of("vgg16");
	struct rfl_plan *plan =
		plan_of(net, (struct rfl_plan_setup){ .batch = 1, .training = true });

	(void)state;
	assert_int_equal(count_steps(plan, RFL_PLAN_CONV, RFL_PLAN_FORWARD), 13);
	assert_int_equal(count_steps(plan, RFL_PLAN_LINEAR, RFL_PLAN_FORWARD), 3);
	assert_int_equal(count_steps(plan, RFL_PLAN_POOL, RFL_PLAN_FORWARD),
			 5); /* not 7x7 to 7x7 */
	assert_int_equal(count_steps(plan, RFL_PLAN_ACTIVATION, RFL_PLAN_FORWARD), 0);
	assert_int_equal(count_steps(plan, RFL_PLAN_ACTIVATION, RFL_PLAN_DGRAD), 15);
	rfl_plan_free(plan);
	rfl_net_free(net);
}

static void what_is_missing_is_named(void **state)
{
	static const struct {
		const char *model, *words;
	} rows[] = {
		{ "gpt2", "classify images" },
		{ "vit_b_16", "layer '" },
		{ "convnext_tiny", "layer '" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++) {
		struct rfl_net *net = net_of(rows[i].model);
		const struct rfl_plan_setup setup = { .batch = 1, .value_bytes = 4 };
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_plan *plan = NULL;

		assert_int_equal(rfl_plan_new(net, &setup, &plan, &err), RFL_EUNSUPPORTED);
		assert_non_null(strstr(err.msg, rows[i].words));
		assert_null(plan);
		rfl_net_free(net);
	}
}

/* Reshape, permute, reshape is the shuffle of channels only if pixels stay where they are. */
static void only_a_shuffle_is_a_shuffle(void **state)
{
	struct rfl_net_builder *b = rfl_net_builder_new("split", "test");
	const struct rfl_plan_setup setup = { .batch = 1, .value_bytes = 4 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_plan *plan = NULL;
	struct rfl_net *net = NULL;
	int x = rfl_net_input(b, 8, 4, 4);

	(void)state;
	x = rfl_chain(b, x, RESHAPE(4, 4, 4, 2), PERMUTE(1, 0, 2, 3), COPY, RESHAPE(16, 4, 2),
		      FLATTEN(NULL), FC("fc", 10));
	assert_ok(rfl_net_finish(b, x, &net, &err), &err);
	assert_int_equal(rfl_plan_new(net, &setup, &plan, &err), RFL_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "reshap"));
	rfl_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors_live_as_long_as_needed),
		cmocka_unit_test(a_residual_network_is_fused),
		cmocka_unit_test(a_plain_network_is_fused),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(only_a_shuffle_is_a_shuffle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
