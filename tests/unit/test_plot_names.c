/* test_plot_names.c - what the points of a figure are called: no two alike. */
#include "rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "complexity/zoo.h"
#include "plot/figure.h"
#include "plot_demo.h"

struct figure {
	struct demo *d;
	struct rfl_scene *scene;
};

static void draw(struct figure *f)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_scene_free(f->scene);
	f->scene = NULL;
	assert_ok(rfl_plot_roofline(&f->d->input, &f->scene, &err), &err);
}

static void figure_fini(struct figure *f)
{
	rfl_scene_free(f->scene);
	free(f->d);
}

/* The n-th text, from 0, with an id. */
static const char *text_at(const struct figure *f, const char *id, size_t n)
{
	for (size_t i = 0; i < f->scene->n; i++) {
		const struct rfl_prim *p = &f->scene->prims[i];

		if (p->kind == RFL_PRIM_TEXT && strcmp(p->id, id) == 0 && n-- == 0)
			return p->at.text.text;
	}
	return "(none)";
}

static const char *name(const struct figure *f, int number)
{
	char id[24];

	(void)snprintf(id, sizeof(id), "name-%d", number);
	return text_at(f, id, 0);
}

static bool noted(const struct figure *f, const char *words)
{
	for (size_t i = 0; i < f->scene->n; i++) {
		const struct rfl_prim *p = &f->scene->prims[i];

		if (p->kind == RFL_PRIM_TEXT && strncmp(p->id, "footnote", 8) == 0 &&
		    strstr(p->at.text.text, words))
			return true;
	}
	return false;
}

/* Points of one step, with variants, far enough apart that all are named. */
static void add(struct figure *f, const char *variant)
{
	const double n = (double)f->d->points.n;
	struct rfl_point *p =
		demo_point(f->d, "resnet50", 8, 24.3, 150 / (n * n + 1), 21.6 / (n + 1), 24);

	p->variant = (char *)(uintptr_t)variant;
}

static void one_step_is_said_once(void **state)
{
	struct figure f = { .d = demo_new() };

	(void)state;
	add(&f, "optimizer sgd");
	add(&f, "optimizer adamw");
	draw(&f);
	assert_string_equal(name(&f, 1), "sgd");
	assert_string_equal(name(&f, 2), "adamw");
	assert_int_equal(strncmp(text_at(&f, "subtitle", 0), "ResNet-50 bs 8 ", 15), 0);
	assert_string_equal(text_at(&f, "table-step", 0), "sgd");
	assert_string_equal(text_at(&f, "phase-step", 1), "adamw");
	assert_string_equal(text_at(&f, "legend", 0), "sgd");
	assert_string_equal(text_at(&f, "legend", 1), "adamw");
	assert_false(noted(&f, "Names omit"));
	figure_fini(&f);
}

static void facts_have_short_words(void **state)
{
	struct figure f = { .d = demo_new() };

	(void)state;
	add(&f, "accum 1, data_mode imagefolder, workers 1");
	add(&f, "accum 4, data_mode imagefolder, workers 8");
	add(&f, "accum 4, optimizer_kernels fused, cuda_graph 1");
	add(&f, "made by hand");
	draw(&f);
	assert_string_equal(name(&f, 1), "accum 1, images, 1 worker");
	assert_string_equal(name(&f, 2), "accum 4, images, 8 workers");
	assert_string_equal(name(&f, 3), "accum 4, fused kernels, cuda_graph 1");
	assert_string_equal(name(&f, 4), "made by hand");
	figure_fini(&f);
}

/* What the name says of all marks is not said twice. */
static void steps_of_several_models(void **state)
{
	struct figure f = { .d = demo_new() };

	(void)state;
	add(&f, "layout nhwc, optimizer sgd, workers 16");
	add(&f, "layout nchw, optimizer sgd, workers 16");
	add(&f, "layout nhwc, optimizer adamw, workers 16");
	demo_point(f.d, "vgg16", 8, 92, 152, 80, NAN);
	f.d->rows[1].layout = (char *)"nchw";
	draw(&f);
	assert_string_equal(name(&f, 1), "ResNet-50 bs 8 nhwc, sgd, 16 workers");
	assert_string_equal(name(&f, 2), "ResNet-50 bs 8 nchw, sgd, 16 workers");
	assert_string_equal(name(&f, 3), "ResNet-50 bs 8 nhwc, adamw, 16 workers");
	assert_string_equal(name(&f, 4), "VGG-16 bs 8 nhwc");
	/* names with variants have no room in the table: their words stand under the step */
	assert_string_equal(text_at(&f, "table-step", 0), "ResNet-50 bs 8");
	assert_string_equal(text_at(&f, "table-step-variant", 2), "nhwc, adamw, 16 workers");
	assert_string_equal(text_at(&f, "table-step", 3), "VGG-16 bs 8 nhwc");
	figure_fini(&f);
}

static void long_variants_say_what_it_takes(void **state)
{
	struct figure f = { .d = demo_new() };

	(void)state;
	add(&f, "accum 1, optimizer sgd, optimizer_kernels foreach, deterministic 0");
	add(&f, "accum 4, optimizer adam, optimizer_kernels fused, deterministic 0");
	add(&f, "accum 4, optimizer sgd, optimizer_kernels fused, deterministic 1");
	draw(&f);
	assert_string_equal(name(&f, 1), "accum 1, sgd");
	assert_string_equal(name(&f, 2), "accum 4, adam");
	assert_string_equal(name(&f, 3), "accum 4, sgd");
	assert_true(noted(&f, "Names omit some differences between variants: see the column "
			      "'variant' of points.csv."));
	figure_fini(&f);
}

static void what_words_do_not_tell_apart_has_its_number(void **state)
{
	static const char endless[] = "device_name a device whose name is so very long that it has "
				      "no end, and has commas, too";
	struct figure f = { .d = demo_new() };

	(void)state;
	add(&f, endless);
	add(&f, "device_name short");
	draw(&f);
	assert_string_equal(name(&f, 1), "#1");
	assert_string_equal(name(&f, 2), "short");
	assert_true(noted(&f, "Names omit some differences"));
	figure_fini(&f);

	f = (struct figure){ .d = demo_new() }; /* from a file without variants */
	add(&f, NULL);
	add(&f, NULL);
	demo_point(f.d, "vgg16", 8, 92, 152, 80, NAN);
	draw(&f);
	assert_string_equal(name(&f, 1), "ResNet-50 bs 8 #1");
	assert_string_equal(name(&f, 2), "ResNet-50 bs 8 #2");
	assert_string_equal(name(&f, 3), "VGG-16 bs 8");
	figure_fini(&f);
}

/* Devices and threads of one environment. */
static void devices_are_told_apart(void **state)
{
	struct figure f = { .d = demo_new() };

	(void)state;
	add(&f, "device_name AMD EPYC 9B45, threads 1");
	add(&f, "device_name AMD EPYC 9B45, threads 2");
	add(&f, "device_name Xeon 8480+, 56 cores, threads 2");
	f.d->rows[0].threads = 1;
	f.d->rows[2].device_name = (char *)"Xeon 8480+, 56 cores";
	draw(&f);
	assert_string_equal(text_at(&f, "title", 0), "Training steps on lab_cpu");
	assert_string_equal(name(&f, 1), "1 thread, AMD EPYC 9B45");
	assert_string_equal(name(&f, 2), "2 threads, AMD EPYC 9B45");
	assert_string_equal(name(&f, 3), "2 threads, Xeon 8480+, 56 cores");
	figure_fini(&f);
}

static void models_are_spelled_as_in_their_papers(void **state)
{
	static const char *const cases[][2] = {
		{ "resnet50", "ResNet-50" },
		{ "resnet", "resnet" },
		{ "resnext50_32x4d", "ResNeXt-50 32x4d" },
		{ "wide_resnet50_2", "Wide ResNet-50-2" },
		{ "vgg16", "VGG-16" },
		{ "vgg16_bn", "VGG-16 BN" },
		{ "squeezenet1_1", "SqueezeNet 1.1" },
		{ "vit_b_16", "ViT-B/16" },
		{ "swin_v2_t", "SwinV2-T" },
		{ "mobilenet_v2", "MobileNetV2" },
		{ "mobilenet_v3_small", "MobileNetV3-Small" },
		{ "efficientnet_b0", "EfficientNet-B0" },
		{ "efficientnet_v2_s", "EfficientNetV2-S" },
		{ "regnet_y_1_6gf", "RegNetY-1.6GF" },
		{ "shufflenet_v2_x0_5", "ShuffleNetV2 x0.5" },
		{ "convnext_tiny", "ConvNeXt-Tiny" },
		{ "inception_v3_no_aux", "Inception v3 no aux" },
		{ "gpt2_medium", "GPT-2 medium" },
		{ "gpt2_xl", "GPT-2 XL" },
		{ "llama2_7b", "Llama 2 7B" },
		{ "cs336_2p7b_2025", "CS336 2.7B 2025" },
		{ "vgg_mine", "vgg_mine" },
		{ "my_net", "my_net" },
	};
	struct rfl_scene *scene = rfl_scene_new(1, 1);

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_string_equal(rfl_words_model(scene, cases[i][0]), cases[i][1]);
	for (size_t i = 0; rfl_zoo_at(i); i++)
		assert_null(strchr(rfl_words_model(scene, rfl_zoo_at(i)->name), '_'));
	rfl_scene_free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_are_spelled_as_in_their_papers),
		cmocka_unit_test(one_step_is_said_once),
		cmocka_unit_test(facts_have_short_words),
		cmocka_unit_test(steps_of_several_models),
		cmocka_unit_test(long_variants_say_what_it_takes),
		cmocka_unit_test(what_words_do_not_tell_apart_has_its_number),
		cmocka_unit_test(devices_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
