/*
 * test_plot_truth.c - a figure agrees with its points: ceilings and ridge points of each precision,
 * limits, factors, statistics and coverage.
 */
#include "rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "plot_demo.h"

static struct rfl_scene *draw(struct demo *d)
{
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	return s;
}

/* The primitive with an id; fail if there is none. */
static const struct rfl_prim *get(const struct rfl_scene *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->prims[i].id, id) == 0)
			return &s->prims[i];
	fail_msg("no '%s'", id);
	return NULL;
}

static size_t count(const struct rfl_scene *s, const char *word)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += strncmp(s->prims[i].id, word, strlen(word)) == 0;
	return n;
}

static void precisions_have_their_own_knees(void **state)
{
	struct demo *d = demo_six();
	const struct rfl_prim *memory, *knee, *tint;
	struct rfl_scene *s;

	(void)state;
	/* GPU-like: the ceiling of a few points is sixteen times that of most */
	demo_precision(d, demo_point(d, "resnet50", 4, 24.3, 900, 60, 70), false, 2900);
	demo_precision(d, demo_point(d, "resnet50", 8, 24.3, 300, 150, 160), true, 700);
	s = draw(d);
	assert_int_equal(count(s, "knee-drop"), 3);
	assert_int_equal(count(s, "label-knee"), 3);
	/* the bandwidth reaches the ridge point of the highest ceiling */
	memory = get(s, "roof-memory");
	knee = get(s, "knee-roof-bf16.matrix");
	assert_close(memory->at.line.x1, knee->at.marker.x, 1e-9);
	assert_close(memory->at.line.y1, knee->at.marker.y, 1e-9);
	assert_close(get(s, "roof-bf16.matrix")->at.line.y0, knee->at.marker.y, 1e-9);
	/* each ridge point has the colour of its precision */
	assert_memory_equal(&knee->fill, &get(s, "mark-7")->fill, sizeof(knee->fill));
	assert_memory_equal(&get(s, "knee")->fill, &get(s, "mark-1")->fill, sizeof(knee->fill));
	/* tints only where all ceilings agree */
	tint = get(s, "ground-memory");
	assert_close(tint->at.rect.x + tint->at.rect.w, get(s, "knee")->at.marker.x, 1e-9);
	tint = get(s, "ground-compute");
	assert_close(tint->at.rect.x, knee->at.marker.x, 1e-9);
	/* compute-bound in tf32, memory-bound in bf16: headroom up to its own roof */
	assert_true(get(s, "headroom-8")->at.line.y1 > get(s, "headroom-7")->at.line.y1);
	assert_close(get(s, "headroom-8")->at.line.y1, get(s, "roof-tf32.matrix")->at.line.y0,
		     1e-9);
	rfl_scene_free(s);
	free(d);
}

/* The axes of a figure: texts and positions of their labels. */
static char *axes(struct demo *d)
{
	struct rfl_scene *s = draw(d);
	char *ret = calloc(1, 4096);

	for (size_t i = 0; i < s->n; i++)
		if (strncmp(s->prims[i].id, "tick-", 5) == 0)
			snprintf(ret + strlen(ret), 4096 - strlen(ret), "%s %.3f %.3f, ",
				 s->prims[i].at.text.text, s->prims[i].at.text.x,
				 s->prims[i].at.text.y);
	rfl_scene_free(s);
	return ret;
}

/* Two ledgers of one machine: other models, rates, intensities and precisions. */
static void axes_are_those_of_the_machine(void **state)
{
	struct demo *d = demo_six(), *e = demo_new();
	char *a, *b;

	(void)state;
	demo_precision(d, demo_point(d, "resnet50", 4, 24.3, 900, 60, 70), false, 2900);
	demo_precision(e, demo_point(e, "vit_b_16", 1, 24.3, 500, 300, 700), false, 2900);
	d->points.n--; /* the ceiling remains in the peaks file */
	demo_point(e, "alexnet", 64, 2, 5, 0.7, NAN);
	a = axes(d);
	b = axes(e);
	assert_string_equal(a, b);
	/* a step far below the roof extends them to 1, 2 or 5 times a power of ten */
	free(b);
	demo_point(e, "mnist_cnn", 1, 2, 0.7, 0.04, NAN);
	b = axes(e);
	assert_non_null(strstr(b, "0.02 "));
	assert_null(strstr(b, "0.01 "));
	assert_non_null(strstr(b, "0.5 83"));
	free(b);
	/* one farther away does not, but is at the edge */
	e->points.n--;
	demo_point(e, "mnist_cnn", 1, 2, 0.001, 0.04, NAN);
	b = axes(e);
	assert_string_equal(a, b);
	free(a);
	free(b);
	free(d);
	free(e);
}

static const char *cell(const struct rfl_scene *s, const char *id, size_t row)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->prims[i].id, id) == 0 && row-- == 0)
			return s->prims[i].at.text.text;
	return "";
}

static void panel_agrees_with_the_verdict(void **state)
{
	struct demo *d = demo_new();
	struct rfl_scene *s;
	struct rfl_point *p;

	(void)state;
	demo_point(d, "resnet50", 8, 24.3, 0.8, 40, NAN); /* 0.4 % of the roof */
	p = demo_point(d, "vgg16", 8, 92, 110, 110 / 38.6, 40);
	p->bytes_source = (char *)"lower-bound";
	p = demo_point(d, "vgg19", 8, 92, 176, 182.4 / 38.6, NAN);
	p->bytes_source = (char *)"lower-bound";
	demo_point(d, "alexnet", 8, 2, 60, 182.4 / 38.6, NAN);
	demo_point(d, "googlenet", 8, 2, 200, 80, NAN); /* no verdict: above by any excess */
	p = demo_point(d, "resnet18", 8, 2, 184, 80, NAN);
	p->verdict = (char *)"compute-bound: 101 % of 182 GFLOP/s; above the measured ceiling, but "
			     "within the uncertainty";
	demo_point(d, "mobilenet_v2", 8, 2, 60, 3, NAN);
	s = draw(d);
	assert_string_equal(cell(s, "table-limit", 0), "neither");
	assert_string_equal(cell(s, "table-percent", 0), "0.4 %");
	assert_string_equal(cell(s, "table-limit", 1), "by construction");
	assert_string_equal(cell(s, "table-limit", 2), "compute");
	assert_string_equal(cell(s, "table-limit", 3), "ridge");
	assert_string_equal(cell(s, "table-limit", 4), "above");
	assert_string_equal(cell(s, "table-limit", 5), "compute");
	assert_string_equal(cell(s, "table-limit", 6), "DRAM");
	/* only the point above its roof is hatched and noted */
	assert_true(count(s, "hatch-5") > 2);
	assert_int_equal(count(s, "hatch-"), count(s, "hatch-5"));
	assert_non_null(strstr(s->caption, "GoogLeNet bs 8 is above its roof"));
	assert_null(strstr(s->caption, "ResNet-18"));
	rfl_scene_free(s);
	d->points.n = 1;
	d->input.no_panel = true; /* no table that has the rates */
	d->rows[0] = d->rows[1];
	s = draw(d);
	assert_int_equal(count(s, "best-"), 0); /* nothing to compare with a lower bound */
	assert_int_equal(count(s, "ratio-"), 0);
	rfl_scene_free(s);
	d->rows[0] = d->rows[5];
	s = draw(d);
	assert_string_equal(get(s, "second-1")->at.text.text,
			    "184 GFLOP/s \xc2\xb7 101 % of roof, within the uncertainty");
	rfl_scene_free(s);
	free(d);
}

static void every_factor_is_in_the_plot_or_in_the_table(void **state)
{
	struct demo *d = demo_six();
	struct rfl_scene *s;

	(void)state;
	d->input.ylim[0] = 9; /* with room between the marks */
	d->input.ylim[1] = 300;
	s = draw(d);
	/* all six pairs have a ratio next to them, the first with its meaning */
	assert_int_equal(count(s, "ratio-"), 6);
	assert_int_equal(count(s, "table-traffic"), 0);
	rfl_scene_free(s);
	d->points.points[2].ai_fused = d->points.points[2].ai * 1.1; /* too short for a text */
	s = draw(d);
	assert_int_equal(count(s, "ratio-"), 5);
	assert_int_equal(count(s, "table-traffic"), 6);
	assert_string_equal(cell(s, "table-traffic", 2), "1.1\xc3\x97");
	rfl_scene_free(s);
	free(d);
}

/* A page without room for a key explains its numbers. */
static void numbers_are_explained(void **state)
{
	struct demo *d = demo_new();
	struct rfl_scene *s;

	(void)state;
	for (int i = 0; i < 20; i++)
		demo_point(d, i % 2 ? "vgg16" : "resnet50", 1 + i, 24.3, 10 + 5 * i, 2 + i, NAN);
	d->input.width = 320;
	d->input.height = 240;
	s = draw(d);
	assert_true(count(s, "number-") > 0);
	assert_int_equal(count(s, "legend") + count(s, "key-"), 0);
	assert_non_null(strstr(get(s, "footnote-1")->at.text.text,
			       "Numbers: points of lab_cpu in points.csv."));
	rfl_scene_free(s);
	free(d);
}

static void phases_are_of_the_steps_shown(void **state)
{
	struct demo *d = demo_six();
	struct rfl_scene *s;
	char want[32];

	(void)state;
	/* half of the slowest step is in no phase */
	d->rows[3].fwd_ms *= .5;
	d->rows[3].bwd_ms *= .5;
	d->rows[3].opt_ms = d->rows[3].data_wait_ms = NAN;
	s = draw(d);
	assert_string_equal(get(s, "phase-order")->at.text.text, "4 of 6, highest rate first");
	assert_string_equal(cell(s, "phase-step", 0), "VGG-16 bs 8");
	assert_string_equal(cell(s, "phase-step", 1), "VGG-16 bs 4");
	snprintf(want, sizeof(want), "%.2f s",
		 d->rows[3].step_s); /* 4.88 s, the time of the mark */
	assert_string_equal(cell(s, "phase-time", 0), want);
	assert_close(get(s, "phase-other-4")->at.rect.w / get(s, "phase-backward-4")->at.rect.w,
		     (1 - .475) / .32, 0.02);
	rfl_scene_free(s);
	free(d);
}

static void units_and_sheets_are_given(void **state)
{
	struct demo *d = demo_new();
	struct rfl_scene *s;

	(void)state;
	d->levels[1].peak.spec = 51.2e9;
	demo_precision(d, demo_point(d, "resnet50", 4, 24.3, 29224, 2000, NAN), false, 60000);
	demo_precision(d, demo_point(d, "resnet50", 8, 24.3, 999.7, 2000, NAN), false, 60000);
	s = draw(d);
	assert_string_equal(cell(s, "table-rate", 0), "29.2 T");
	assert_string_equal(cell(s, "table-rate", 1), "1.00 T");
	assert_non_null(strstr(get(s, "second-1")->at.text.text, "29.2 TFLOP/s"));
	assert_non_null(strstr(get(s, "roof-memory")->tip, "measured, 75 % of sheet"));
	rfl_scene_free(s);
	free(d);
}

/* A kernel with a share of the time; without FLOPs if ai is NaN. */
static void kernel(struct demo *d, const char *name, double share, double ai)
{
	struct rfl_point *p = demo_point(d, "resnet50", 32, 24.3, fmin(ai * 20, 90), ai, NAN);

	p->part = (char *)(uintptr_t)name;
	p->part_kind = (char *)"kernel";
	p->time_share = share;
	if (isnan(ai))
		p->flops_per_step = p->attained_gflops = 0;
}

static void parts_have_areas_and_a_gutter(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct demo *d = demo_six();
	struct rfl_scene *s = NULL;

	(void)state;
	kernel(d, "void lib::sgemm_128x64_nt<float, 3>(int)", .40, 40);
	kernel(d, "batch_norm_kernel(float *)", .10, 0.8);
	kernel(d, "void lib::Kernel2<gemm_small>(P)", .01, 20);
	kernel(d, "void copy_kernel(float *)", .25, NAN);
	d->rows[d->points.n - 1].attained_gbps = 30;
	kernel(d, "memset", .15, NAN);
	kernel(d, "unknown", NAN, NAN); /* neither FLOPs nor time: not shown */
	kernel(d, "untimed", NAN, 30);
	/* steps only */
	s = draw(d);
	assert_int_equal(count(s, "mark-"), 6);
	assert_int_equal(count(s, "idle-"), 0);
	assert_string_equal(cell(s, "table-head", 1), "AI");
	rfl_scene_free(s);
	/* kernels only; the numbers are still those of the rows */
	d->input.kind = RFL_PLOT_KERNELS;
	s = draw(d);
	assert_int_equal(count(s, "mark-"), 4);
	assert_string_equal(get(s, "name-7")->at.text.text, "sgemm_128x64_nt");
	assert_string_equal(get(s, "name-9")->at.text.text, "Kernel2<gemm_small>");
	assert_string_equal(cell(s, "table-time", 0), "40.0 %");
	assert_string_equal(cell(s, "table-time", 5), "n.a.");
	/* a kernel without FLOPs is rated by the bandwidth */
	assert_string_equal(cell(s, "table-step", 1), "copy_kernel");
	assert_string_equal(cell(s, "table-rate", 1), "");
	assert_string_equal(cell(s, "table-gbps", 1), "30.0");
	assert_string_equal(cell(s, "table-percent", 1), "78 %");
	assert_string_equal(cell(s, "table-limit", 1), "DRAM");
	assert_string_equal(cell(s, "table-limit", 2), "");
	assert_int_equal(count(s, "phase-"), 0);
	assert_non_null(strstr(get(s, "title")->at.text.text, "Kernels of training steps"));
	assert_non_null(strstr(get(s, "subtitle")->at.text.text, "ResNet-50 bs 32"));
	/* area: four times the time is twice the radius */
	assert_close(get(s, "mark-7")->at.marker.r / get(s, "mark-8")->at.marker.r, 2, 0.001);
	assert_string_equal(get(s, "idle-name-0")->at.text.text, "no FLOPs: 40.0 % of the time");
	assert_string_equal(get(s, "idle-name-1")->at.text.text,
			    "copy_kernel 25.0 %, 30.0 GB/s (78 % of roof)");
	assert_string_equal(get(s, "idle-name-2")->at.text.text, "memset 15.0 %");
	assert_close(get(s, "idle-1")->at.marker.r, 18 * sqrt(.25), 1e-9);
	/* the rest of the parts is not in the file */
	assert_non_null(strstr(get(s, "footnote-2")->at.text.text,
			       "Points shown: 51.0 % of the time; without FLOPs: 40.0 %."));
	rfl_scene_free(s);
	d->input.kind = RFL_PLOT_LAYERS;
	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EMISSING);
	assert_non_null(strstr(err.msg, "no point is a layer"));
	free(d);
}

static void names_of_parts_are_cut_where_they_do_not_differ(void **state)
{
	struct demo *d = demo_six();
	struct rfl_scene *s;

	(void)state;
	kernel(d, "__omp_offloading_32_6b6b__QQmain_l18", .4, 40);
	kernel(d, "__omp_offloading_32_6b6b__QQmain_l41", .3, 4);
	kernel(d,
	       "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2"
	       "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2"
	       "l1",
	       .2, 1);
	d->input.kind = RFL_PLOT_KERNELS;
	s = draw(d);
	assert_string_equal(get(s, "name-7")->at.text.text,
			    "__omp_offloading_\xe2\x80\xa6__QQmain_l18");
	assert_string_equal(get(s, "name-8")->at.text.text,
			    "__omp_offloading_\xe2\x80\xa6__QQmain_l41");
	/* the table has less room */
	assert_string_equal(cell(s, "table-step", 0), "__omp_offloadin\xe2\x80\xa6main_l18");
	/* no character is cut */
	assert_string_equal(get(s, "name-9")->at.text.text,
			    "\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2"
			    "\xe2\x80\xa6\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2l1");
	rfl_scene_free(s);
	free(d);
}

static void roofs_with_little_room_have_labels(void **state)
{
	struct demo *d = demo_new();
	struct rfl_scene *s;

	(void)state;
	demo_point(d, "resnet50", 1, 24.3, .3, .01, NAN);
	d->input.xlim[0] = 0.005;
	d->input.xlim[1] = 12;
	s = draw(d);
	/* it begins left of the ridge point */
	assert_string_equal(get(s, "label-roof-fp32.vector")->at.text.text,
			    "FP32 vector 182 GFLOP/s");
	assert_true(get(s, "label-roof-fp32.vector")->at.text.x < get(s, "knee")->at.marker.x);
	assert_true(get(s, "label-roof-fp32.vector")->at.text.y < get(s, "knee")->at.marker.y);
	rfl_scene_free(s);
	free(d);
}

static void levels_of_a_point_have_their_roofs(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct demo *d = demo_new();
	struct rfl_scene *s = NULL;
	const struct rfl_prim *a, *b;

	(void)state;
	demo_point(d, "resnet50", 8, 24.3, 112, 16, 32);
	d->input.kind = RFL_PLOT_HIERARCHICAL;
	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EMISSING);
	assert_non_null(strstr(err.msg, "no point has ai_l1 or ai_l2"));
	d->rows[0].ai_l1 = 1;
	d->rows[0].ai_l2 = 4;
	d->levels[0] = (struct rfl_peak_level){ .level = "L2",
						.scope = "core",
						.peak = demo_peak(150e9, "read", 1, .01) };
	s = draw(d);
	/* at one height, four times apart: a constant distance */
	a = get(s, "cache-L1-1");
	b = get(s, "cache-L2-1");
	assert_close(a->at.marker.y, get(s, "mark-1")->at.marker.y, 1e-9);
	assert_close(get(s, "mark-1")->at.marker.x - b->at.marker.x,
		     b->at.marker.x - a->at.marker.x, 1e-6);
	assert_int_equal(count(s, "levels-1"), 2);
	assert_int_equal(count(s, "best-"), 0);
	assert_string_equal(cell(s, "table-l2", 0), "4.00");
	/* the environment has two cores */
	assert_string_equal(get(s, "roof-L2")->tip, "L2 300 GB/s, 2 times one core");
	rfl_scene_free(s);
	free(d);
}

static void trajectories_go_from_batch_to_batch(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct demo *d = demo_new();
	struct rfl_scene *s = NULL;
	const struct rfl_prim *line;

	(void)state;
	demo_point(d, "resnet50", 16, 24.3, 140, 32, 64); /* not in the order of the batches */
	d->input.kind = RFL_PLOT_TRAJECTORY;
	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EMISSING);
	assert_non_null(strstr(err.msg, "no two points differ only in their batch"));
	demo_point(d, "resnet50", 2, 24.3, 60, 8, 16);
	demo_point(d, "resnet50", 8, 24.3, 100, 16, 32);
	demo_point(d, "resnet50", 8, 24.3, 90, 16, 32)->precision = (char *)"amp";
	s = draw(d);
	assert_int_equal(count(s, "series-"), 2);
	assert_int_equal(count(s, "arrow-"), 2);
	line = get(s, "series-2"); /* from batch 2 to batch 8 */
	assert_close(line->at.line.x0, get(s, "mark-2")->at.marker.x, 1e-9);
	assert_close(line->at.line.x1, get(s, "mark-3")->at.marker.x, 1e-9);
	get(s, "name-1");
	get(s, "name-2");
	get(s, "name-4");
	assert_int_equal(count(s, "name-"), 3); /* the ends */
	assert_int_equal(count(s, "number-"), 0);
	rfl_scene_free(s);
	free(d);
}

/* Batches at one context length, and context lengths at one batch, which share a point. */
static void trajectories_go_along_contexts(void **state)
{
	static const struct {
		int64_t batch, context;
		const char *variant;
	} runs[] = { { 1, 1024, NULL },
		     { 4, 512, "optimizer adamw, context_length 512" },
		     { 2, 1024, "optimizer adamw" },
		     { 4, 1024, "context_length 1024, optimizer adamw" },
		     { 4, 256, "optimizer adamw, context_length 256" },
		     { 4, 256, "optimizer sgd, context_length 256" } };
	struct demo *d = demo_new();
	struct rfl_scene *s;

	(void)state;
	d->input.kind = RFL_PLOT_TRAJECTORY;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		const double ai =
			4 * (double)runs[i].batch * pow((double)runs[i].context / 1024, .7);
		struct rfl_point *p = demo_point(d, "gpt2", runs[i].batch, 20, 10 * ai, ai, NAN);

		p->context_length = runs[i].context;
		p->variant = (char *)(uintptr_t)runs[i].variant;
	}
	d->points.n = 2; /* nothing in common */
	d->rows[1].variant = (char *)"optimizer adamw";
	assert_int_equal(rfl_plot_roofline(&d->input, &s, NULL), RFL_EMISSING);
	d->rows[1].variant = (char *)(uintptr_t)runs[1].variant;
	d->points.n = 5;
	s = draw(d);
	assert_close(get(s, "series-5")->at.line.x1, get(s, "mark-2")->at.marker.x, 1e-9);
	assert_close(get(s, "series-also-2")->at.line.x1, get(s, "mark-4")->at.marker.x, 1e-9);
	assert_close(get(s, "series-3")->at.line.x1, get(s, "mark-4")->at.marker.x, 1e-9);
	assert_int_equal(count(s, "series-"), 3);
	assert_string_equal(get(s, "name-5")->at.text.text, "GPT-2 bs 4 ctx 256, adamw");
	rfl_scene_free(s);
	/* only the context differs */
	d->rows[0] = d->rows[5];
	d->rows[2] = d->rows[5];
	d->rows[0].context_length = 512;
	d->rows[2].context_length = 1024;
	d->rows[0].variant = d->rows[2].variant = (char *)"optimizer sgd";
	s = draw(d);
	assert_int_equal(count(s, "series-"), 3);
	rfl_scene_free(s);
	for (size_t i = 0; i < d->points.n; i++)
		d->rows[i].variant = NULL;
	d->points.n = 2;
	d->rows[1].context_length = 256;
	d->input.kind = RFL_PLOT_ROOFLINE;
	s = draw(d);
	get(s, "series-2");
	assert_non_null(strstr(get(s, "name-1")->at.text.text, "ctx 512"));
	/* a shade for each context; without differences, it is in the subtitle */
	assert_false(memcmp(&get(s, "mark-1")->fill, &get(s, "mark-2")->fill,
			    sizeof(struct rfl_color)) == 0);
	rfl_scene_free(s);
	d->points.n = 1;
	s = draw(d);
	assert_null(strstr(get(s, "name-1")->at.text.text, "ctx"));
	assert_non_null(strstr(get(s, "subtitle")->at.text.text, "512 tokens per sample"));
	rfl_scene_free(s);
	free(d);
}

/* A point whose bytes, FLOPs and step take these times, in seconds. */
static struct rfl_point *timed(struct demo *d, const char *model, double bytes, double flops,
			       double step)
{
	struct rfl_point *p = demo_point(d, model, 8, flops * 182.4 / 8, flops * 182.4 / step,
					 flops * 182.4 / (bytes * 38.6), NAN);

	p->verdict = (char *)"";
	return p;
}

static double length_of(const struct rfl_prim *p)
{
	return p->at.line.x1 - p->at.line.x0 + p->at.line.y0 - p->at.line.y1;
}

static void times_are_distances_to_isochrones(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct demo *d = demo_new();
	struct rfl_scene *s = NULL;
	const struct rfl_prim *a, *b, *mark;

	(void)state;
	d->input.kind = RFL_PLOT_TIME;
	timed(d, "resnet50", 0.1, 0.02, 0.4); /* memory-bound, four times its minimum time */
	timed(d, "vgg16", 0.2, 0.04, 0.4)->step_s_hi = 0.8;
	timed(d, "alexnet", 0.01, 0.1, 0.3); /* compute-bound */
	timed(d, "googlenet", 0.05, 0.05, 0.051);
	timed(d, "vgg19", 0.1, 0.9, 0.6)->verdict = (char *)"above the roof: of a measured lie";
	s = draw(d);
	/* to the right of a memory-bound mark, as far as the time is longer, in decades */
	a = get(s, "headroom-1");
	b = get(s, "headroom-2");
	assert_close(a->at.line.y0, a->at.line.y1, 1e-9);
	assert_close(length_of(a), 2 * length_of(b), 1e-6);
	assert_close(a->at.line.x1, b->at.line.x1, 1e-6); /* one isochrone */
	assert_string_equal(get(s, "factor-1")->at.text.text, "\xc3\x97"
							      "4.0");
	a = get(s, "headroom-3");
	assert_close(a->at.line.x0, a->at.line.x1, 1e-9);
	assert_true(a->at.line.y1 < a->at.line.y0);
	/* equal times are on the diagonal */
	a = get(s, "diagonal");
	mark = get(s, "mark-4");
	assert_close((mark->at.marker.y - a->at.line.y0) / (mark->at.marker.x - a->at.line.x0),
		     (a->at.line.y1 - a->at.line.y0) / (a->at.line.x1 - a->at.line.x0), 1e-9);
	/* the uncertainty is that of the measured time, at its isochrone */
	b = get(s, "headroom-2");
	a = get(s, "spread-x-2");
	assert_true(a->at.line.x0 < b->at.line.x1 && a->at.line.x1 > b->at.line.x1);
	assert_close(a->at.line.x1 - b->at.line.x1, length_of(b), 1e-6);
	/* shorter than its minimum time: diagnosed, without a way to its isochrone */
	assert_int_equal(count(s, "headroom-5"), 0);
	assert_true(count(s, "hatch-5") > 0);
	assert_string_equal(cell(s, "table-ai", 0), "100");
	assert_string_equal(cell(s, "table-rate", 0), "20.0");
	assert_string_equal(cell(s, "table-measured", 0), "400");
	assert_string_equal(cell(s, "table-percent", 0), "25 %");
	rfl_scene_free(s);
	/* what has no place, and why */
	d->rows[0].step_s = NAN;
	d->rows[1].bytes_per_step = NAN;
	d->rows[2].peak_gbps = NAN;
	s = draw(d);
	assert_int_equal(count(s, "mark-"), 2);
	assert_non_null(strstr(s->caption,
			       "Not shown: ResNet-50 bs 8 (no time), VGG-16 bs 8 (no bytes), "
			       "AlexNet bs 8 (no memory ceiling)."));
	rfl_scene_free(s);
	s = NULL;
	d->rows[3].flops_per_step = d->rows[4].peak_gflops = NAN;
	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EMISSING);
	assert_non_null(strstr(err.msg, "none has a time, bytes, FLOPs and ceilings"));
	free(d);
}

static void uncertainties_follow_the_unit(void **state)
{
	struct demo *d = demo_new();
	const struct rfl_prim *bar, *mark;
	struct rfl_scene *s;
	struct rfl_point *p;

	(void)state;
	p = demo_point(d, "resnet50", 8, 24.3, 30000, 300, NAN);
	demo_precision(d, p, false, 90000);
	p->attained_gflops_lo = 15000;
	p->attained_gflops_hi = 60000;
	s = draw(d);
	assert_non_null(strstr(get(s, "title-y")->at.text.text, "TFLOP/s"));
	bar = get(s, "spread-y-1");
	mark = get(s, "mark-1");
	assert_close((bar->at.line.y0 + bar->at.line.y1) / 2, mark->at.marker.y, 1e-6);
	rfl_scene_free(s);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(precisions_have_their_own_knees),
		cmocka_unit_test(axes_are_those_of_the_machine),
		cmocka_unit_test(panel_agrees_with_the_verdict),
		cmocka_unit_test(every_factor_is_in_the_plot_or_in_the_table),
		cmocka_unit_test(numbers_are_explained),
		cmocka_unit_test(phases_are_of_the_steps_shown),
		cmocka_unit_test(units_and_sheets_are_given),
		cmocka_unit_test(parts_have_areas_and_a_gutter),
		cmocka_unit_test(names_of_parts_are_cut_where_they_do_not_differ),
		cmocka_unit_test(roofs_with_little_room_have_labels),
		cmocka_unit_test(levels_of_a_point_have_their_roofs),
		cmocka_unit_test(trajectories_go_from_batch_to_batch),
		cmocka_unit_test(trajectories_go_along_contexts),
		cmocka_unit_test(times_are_distances_to_isochrones),
		cmocka_unit_test(uncertainties_follow_the_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
