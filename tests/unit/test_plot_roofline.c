/*
 * test_plot_roofline.c - figures as they are: exact lists of primitives, one exact SVG, one PNG
 * without text against a reference, and what is refused. RFL_TEST_UPDATE=1 rewrites the
 * expectations under tests/data/plot; look at the difference before it is kept.
 */
#include "rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "plot_demo.h"

static const struct rfl_surface_spec spec = { .dpi = 72,
					      .font_dir = RFL_TEST_BUILD "/share/roofline/fonts" };

static void draw(const struct demo *d, const char *format, const struct rfl_surface_spec *how,
		 struct rfl_buf *out)
{
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	assert_ok(rfl_surface_draw(rfl_surface_find(format, NULL), how, s, out, &err), &err);
	rfl_scene_free(s);
}

/* The first line that differs, for the message. */
static void report(const char *name, const char *want, const char *got)
{
	size_t line = 1;

	while (*want && *want == *got) {
		line += *want == '\n';
		want++;
		got++;
	}
	fail_msg("%s, line %zu: expected ...%.80s, got ...%.80s", name, line, want, got);
}

static void compare(const char *name, const struct rfl_buf *got)
{
	const char *path = data_path(name);
	struct rfl_buf want;
	struct rfl_err err = RFL_ERR_INIT;

	if (getenv("RFL_TEST_UPDATE")) {
		assert_ok(rfl_file_write(path, got->data, got->len, &err), &err);
		return;
	}
	rfl_buf_init(&want, 0);
	assert_ok(rfl_file_read(path, &want, &err), &err);
	if (strcmp(rfl_buf_str(&want), rfl_buf_str(got)) != 0)
		report(name, rfl_buf_str(&want), rfl_buf_str(got));
	rfl_buf_fini(&want);
}

static struct demo *short_form(void)
{
	struct demo *d = demo_six();
	const struct rfl_peak given = { .status = RFL_PEAK_USER,
					.spec = NAN,
					.source = "entered by the user (short form)" };

	d->env = (struct rfl_peaks_env){ .name = "lab_cpu",
					 .short_form = true,
					 .ncompute = 1,
					 .compute = d->compute,
					 .nlevels = 1,
					 .levels = &d->levels[1] };
	d->compute[0] =
		(struct rfl_peak_compute){ .key = "*", .cell = "peak_gflops", .peak = given };
	d->compute[0].peak.value = 182.4e9;
	d->levels[1].peak = given;
	d->levels[1].peak.value = 38.6e9;
	return d;
}

/* Error bars both ways, a point above its roof, points beyond the edges, data sheet values. */
static struct demo *everything(void)
{
	struct demo *d = demo_six();
	struct rfl_point *p;

	d->levels[1].peak.spec = 76.8e9;
	demo_point(d, "resnet18", 1, 10.8, 0.02, 0.003, 0.004);
	demo_point(d, "vgg11", 1, 10.8, 170, 60000, NAN);
	p = demo_point(d, "mobilenet_v2", 16, 1.79, 240, 8.2, 20);
	p->verdict = (char *)"above the roof: 132 % of what 102 GB/s allow; likely causes: (1) the "
			     "working set fits into the cache";
	p = demo_point(d, "resnet50", 16, 24.3, 60, 28, 60);
	p->attained_gflops_lo = 40;
	p->attained_gflops_hi = 90;
	p->ai_lo = 14;
	p->ai_hi = 44;
	p = demo_point(d, "resnet34", 16, 24.3, NAN, 28, 60);
	return d;
}

static struct demo *two_precisions(void)
{
	struct demo *d = demo_six();
	struct rfl_point *p = demo_point(d, "resnet50", 8, 24.3, 190, 40, 90);

	d->compute[2] =
		(struct rfl_peak_compute){ .key = "bf16.matrix",
					   .cell = "compute.bf16.matrix",
					   .peak = demo_peak(410e9, "avx512 bf16 dot", 2, .02) };
	d->env.ncompute = 3;
	p->precision = (char *)"bf16";
	p->compute_key = (char *)"bf16.matrix";
	p->peak_gflops = 410;
	return d;
}

/* What products achieve is drawn below the roofs, in the precisions of the points, unless it is
 * above its roof. */
static struct demo *products(bool above)
{
	struct demo *d = two_precisions();
	const struct rfl_peak_compute gemm[] = {
		{ .key = "fp32.gemm",
		  .cell = "compute.fp32.gemm",
		  .peak = demo_peak(above ? 190e9 : 131e9, "torch 1.13, products", 2, .02) },
		{ .key = "bf16.gemm",
		  .cell = "compute.bf16.gemm",
		  .peak = demo_peak(350e9, "torch 1.13, products", 2, .02) },
	};

	for (size_t i = 0; i < sizeof(gemm) / sizeof(gemm[0]); i++)
		d->compute[d->env.ncompute++] = gemm[i];
	return d;
}

static void products_above_the_roof_are_not_drawn(void **state)
{
	(void)state;
	for (int above = 0; above < 2; above++) {
		struct demo *d = products(above);
		struct rfl_buf got;

		draw(d, "record", &spec, &got);
		assert_int_equal(!strstr(rfl_buf_str(&got), "id=roof-fp32.gemm"), above);
		assert_non_null(strstr(rfl_buf_str(&got), "id=roof-bf16.gemm"));
		rfl_buf_fini(&got);
		free(d);
	}
}

/* Does a piece of the footnote hold these words? */
static bool noted(const struct rfl_scene *s, const char *words)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];

		if (p->kind == RFL_PRIM_TEXT && strncmp(p->id, "footnote", 8) == 0 &&
		    strstr(p->at.text.text, words))
			return true;
	}
	return false;
}

/* Only two, so that a change of a few words changes few files; properties are tested elsewhere. */
static void records_are_exact(void **state)
{
	static const struct {
		const char *file;
		struct demo *(*make)(void);
		const char *style;
	} cases[] = {
		{ "plot/everything.txt", everything, "screen" },
		{ "plot/column.txt", demo_six, "column" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct demo *d = cases[i].make();
		struct rfl_buf got;

		d->input.style = cases[i].style;
		draw(d, "record", &spec, &got);
		compare(cases[i].file, &got);
		rfl_buf_fini(&got);
		free(d);
	}
}

static void svg_is_exact(void **state)
{
	struct demo *d = demo_six();
	struct rfl_buf got;

	(void)state;
	draw(d, "svg", &spec, &got);
	compare("plot/six.svg", &got);
	rfl_buf_fini(&got);
	free(d);
}

#ifdef RFL_HAVE_CAIRO
#include <png.h>

struct pixels {
	png_image image;
	unsigned char *rgb;
	size_t size;
};

static void decode(const struct rfl_buf *png, struct pixels *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->image.version = PNG_IMAGE_VERSION;
	assert_true(png_image_begin_read_from_memory(&ret->image, png->data, png->len));
	ret->image.format = PNG_FORMAT_RGB;
	ret->size = PNG_IMAGE_SIZE(ret->image);
	ret->rgb = malloc(ret->size);
	assert_non_null(ret->rgb);
	assert_true(png_image_finish_read(&ret->image, NULL, ret->rgb, 0, NULL));
}

/* At most 0.05 % of the pixels may differ, none by more than 8 of 255. */
static void compare_pixels(const struct pixels *want, const struct pixels *got)
{
	size_t changed = 0, total = want->size / 3;

	assert_int_equal(want->image.width, got->image.width);
	assert_int_equal(want->image.height, got->image.height);
	for (size_t i = 0; i < total; i++) {
		int most = 0;

		for (size_t c = 3 * i; c < 3 * i + 3; c++)
			most = abs(want->rgb[c] - got->rgb[c]) > most
				       ? abs(want->rgb[c] - got->rgb[c])
				       : most;
		changed += most > 0;
		if (most > 8)
			fail_msg("pixel %zu,%zu differs by %d of 255", i % want->image.width,
				 i / want->image.width, most);
	}
	if (changed * 2000 > total)
		fail_msg("%zu of %zu pixels differ", changed, total);
}

static void png_without_text_is_as_the_reference(void **state)
{
	struct rfl_surface_spec how = { .dpi = 48, .no_text = true };
	struct demo *d = everything();
	struct rfl_buf got, want;
	struct pixels a, b;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	draw(d, "png", &how, &got);
	if (getenv("RFL_TEST_UPDATE"))
		compare("plot/everything_no_text.png", &got);
	rfl_buf_init(&want, 0);
	assert_ok(rfl_file_read(data_path("plot/everything_no_text.png"), &want, &err), &err);
	decode(&want, &a);
	decode(&got, &b);
	compare_pixels(&a, &b);
	free(a.rgb);
	free(b.rgb);
	rfl_buf_fini(&got);
	rfl_buf_fini(&want);
	free(d);
}
#else
static void png_without_text_is_as_the_reference(void **state)
{
	(void)state;
	skip();
}
#endif

static void same_input_same_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_surface_formats[i]; i++) {
		struct demo *d = everything(), *e = everything();
		struct rfl_buf a, b;

		if (rfl_surface_find(rfl_surface_formats[i], NULL)) {
			draw(d, rfl_surface_formats[i], &spec, &a);
			draw(e, rfl_surface_formats[i], &spec, &b);
			assert_int_equal(a.len, b.len);
			assert_memory_equal(a.data, b.data, a.len);
			rfl_buf_fini(&a);
			rfl_buf_fini(&b);
		}
		free(d);
		free(e);
	}
}

static void refused(struct demo *d, enum rfl_rc rc, const char *word)
{
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), rc);
	assert_null(s);
	assert_says(&err, word);
	free(d);
}

static void what_cannot_be_drawn_is_refused(void **state)
{
	struct demo *d = demo_new();

	(void)state;
	refused(d, RFL_EMISSING, "lab_cpu: no point to draw");
	d = demo_six();
	d->env.name = "elsewhere"; /* points of another environment only */
	refused(d, RFL_EMISSING, "elsewhere: no point to draw");
	d = demo_new();
	demo_point(d, "vgg16", 4, 92.65, NAN, 33.0, 58.0);
	refused(d, RFL_EMISSING, "none has both");
	d = demo_six();
	d->points.points[2].peak_gbps = NAN;
	refused(d, RFL_EMISSING, "point 3 (vgg16): peak_gbps is missing");
	d = demo_six();
	d->compute[0].peak.status = RFL_PEAK_UNKNOWN;
	refused(d, RFL_EMISSING, "fp32.vector");
	d = demo_six();
	d->levels[1].peak.status = RFL_PEAK_UNKNOWN;
	refused(d, RFL_EMISSING, "DRAM");
	d = demo_six();
	d->compute[0].peak.value = 190e9;
	refused(d, RFL_EINVAL, "run 'roofline points' again");
	d = demo_six();
	d->levels[1].peak.value = 40e9;
	refused(d, RFL_EINVAL, "memory bandwidth");
	d = demo_six();
	d->input.width = 100;
	refused(d, RFL_EINVAL, "width of 100");
	d = demo_six();
	d->input.height = 1e6;
	refused(d, RFL_EINVAL, "height of 1e+06");
}

/* The text of a primitive, or NULL. */
static const char *text_of(const struct rfl_scene *s, const char *id)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->prims[i].kind == RFL_PRIM_TEXT && strcmp(s->prims[i].id, id) == 0)
			return s->prims[i].at.text.text;
	return NULL;
}

/* Ceilings measured while something else ran, and repeats that reach down below them: the point
 * is marked and explained all the same. */
static void above_the_roof_is_said(void **state)
{
	struct demo *d = demo_new();
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_point *p = demo_point(d, "resnet50", 8, 24.3, 182.4 * 1.25, 21.6, 52.4);

	(void)state;
	p->attained_gflops_lo = 150;
	demo_point(d, "resnet18", 8, 24.3, 190, 21.6, 52.4);
	demo_point(d, "vgg11", 8, 24.3, 183, 21.6, 52.4); /* a third of a percent is not seen */
	demo_point(d, "vgg13", 8, 24.3, 200, 21.6, 52.4)->verdict =
		(char *)"above the roof: 110 % of 182 GFLOP/s; likely causes: the FLOPs";
	demo_point(d, "vgg16", 8, 24.3, 201, 21.6, 52.4)->verdict =
		(char *)"above the roof: 111 % of 182 GFLOP/s; likely causes: the FLOPs";
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	assert_string_equal(text_of(s, "second-1"), "228 GFLOP/s \xc2\xb7 125 % of roof: above it");
	assert_string_equal(text_of(s, "second-3"), "183 GFLOP/s \xc2\xb7 100 % of roof");
	assert_true(noted(s, "ResNet-50 bs 8 is above its roof: faster than"));
	assert_true(noted(s, "VGG-13 bs 8 is above its roof: 110 %")); /* another diagnosis */
	assert_true(noted(s, "2 more points are above the roof."));
	rfl_scene_free(s);
	free(d);
}

/* One number where all repeats agree, a range where they do not. */
static void repeats_are_counted(void **state)
{
	struct demo *d = demo_new();
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_point *a = demo_point(d, "resnet50", 8, 24.3, 112, 21.6, 52.4);
	struct rfl_point *b = demo_point(d, "resnet18", 8, 24.3, 100, 21.6, 52.4);

	(void)state;
	a->runs = b->runs = 3;
	a->steps = 57;
	b->steps = 60;
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	assert_non_null(
		strstr(text_of(s, "subtitle"), " 3 repeats, 57 to 60 measured steps per point"));
	rfl_scene_free(s);
	a->runs = b->runs = b->steps = a->steps = 1;
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	assert_non_null(strstr(text_of(s, "subtitle"), " 1 repeat, 1 measured step per point"));
	rfl_scene_free(s);
	free(d);
}

/* Does any text of the scene hold these words? */
static bool written(const struct rfl_scene *s, const char *words)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->prims[i].kind == RFL_PRIM_TEXT && strstr(s->prims[i].at.text.text, words))
			return true;
	return false;
}

/* What filled and hollow marks stand for; why counters were not used is not of the picture. */
static void traffic_is_named(void **state)
{
	static const struct {
		const char *a, *b, *used, *best;
	} cases[] = {
		{ "unfused", "unfused", "every operation reads and writes", "activation fused" },
		{ "unfused", "unfused (counters not used: a reason)",
		  "every operation reads and writes", "activation fused" },
		{ "counters", "counters", "measured by hardware counters",
		  "each tensor moved once" },
		{ "counters", "unfused (counters not used: a reason)",
		  "measured by counters if available", "activation fused" },
		{ "counters", "fused", "see points.csv", "activation fused" },
		{ "compulsory", "compulsory", "each tensor moved once", NULL },
		{ "by hand", "by hand", "bytes: by hand", "each tensor moved once" },
	};
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct demo *d = demo_new();
		struct rfl_scene *s = NULL;

		demo_point(d, "resnet50", 8, 24.3, 112, 21.6, 52.4)->bytes_source =
			(char *)(uintptr_t)cases[i].a;
		demo_point(d, "resnet18", 8, 24.3, 100, 21.6, 52.4)->bytes_source =
			(char *)(uintptr_t)cases[i].b;
		assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
		assert_true(written(s, cases[i].used));
		assert_false(written(s, "a reason"));
		assert_int_equal(written(s, "bytes at best"), cases[i].best != NULL);
		if (cases[i].best)
			assert_true(written(s, cases[i].best));
		rfl_scene_free(s);
		s = NULL;
		d->input.width = 504; /* without a panel the legend is under the axis */
		d->input.height = 504;
		assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
		assert_true(written(s, cases[i].used));
		rfl_scene_free(s);
		free(d);
	}
}

/* The ceiling of additions beside multiply-adds is a thin line above the roof, if it is above. */
static void multiply_adds_with_additions(void **state)
{
	static const double values[] = { 273.6e9, 183e9, 140e9 }; /* the roof is 182.4e9 */
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(values); i++) {
		struct demo *d = demo_six();
		struct rfl_scene *s = NULL;

		d->compute[2] =
			(struct rfl_peak_compute){ .key = "fp32.vector.fmaadd",
						   .cell = "compute.fp32.vector.fmaadd",
						   .peak = demo_peak(values[i], "avx512", 2, .02) };
		d->env.ncompute = 3;
		assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
		if (i == 0)
			assert_string_equal(text_of(s, "label-roof-fmaadd"),
					    "FP32 vector, FMA and ADD 274 GFLOP/s");
		else
			assert_null(text_of(s, "label-roof-fmaadd"));
		assert_string_equal(text_of(s, "label-knee"), "ridge 4.73");
		rfl_scene_free(s);
		free(d);
	}
}

/* A value without a precision serves all; the label of one with it has it. */
static void ceilings_of_the_short_form_are_labelled(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int keyed = 0; keyed < 2; keyed++) {
		struct demo *d = short_form();
		struct rfl_scene *s = NULL;

		d->compute[0].key = keyed ? "fp32" : "*";
		assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
		assert_string_equal(text_of(s, "label-roof-fp32.vector"),
				    keyed ? "FP32 182 GFLOP/s as given"
					  : "compute 182 GFLOP/s as given");
		assert_string_equal(text_of(s, "label-roof-memory"), "memory 38.6 GB/s as given");
		rfl_scene_free(s);
		free(d);
	}
}

static void words_come_from_the_data(void **state)
{
	struct demo *d = everything();
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	assert_string_equal(text_of(s, "title"), "Training steps on AMD EPYC 9B45, 2 threads");
	assert_string_equal(text_of(s, "label-knee"), "ridge 4.73");
	assert_string_equal(text_of(s, "label-roof-one-core"),
			    "FP32 vector, one core 95.1 GFLOP/s");
	assert_string_equal(text_of(s, "label-roof-memory-sheet"), "DRAM, data sheet 76.8 GB/s");
	assert_string_equal(text_of(s, "second-9"), "240 GFLOP/s \xc2\xb7 132 % of roof: above it");
	assert_null(text_of(s, "second-11")); /* has no rate */
	assert_true(noted(s, "Not shown: ResNet-34 bs 16 (no rate)."));
	assert_true(noted(s, "is above its roof: 132 % of what"));
	assert_true(noted(s, "peaks.json 3f9a1c0d"));
	rfl_scene_free(s);
	d->input.title = "Mine \x01";
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	assert_string_equal(text_of(s, "title"), "Mine ?");
	assert_string_equal(s->title, "Mine ?");
	rfl_scene_free(s);
	free(d);
}

/* A ceiling that spreads so far that its low end leaves the frame at the bottom: what is grey goes
 * on along the frame, into its corner. */
static void a_wide_band_fills_the_corner(void **state)
{
	struct demo *d = demo_six();
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t found = 0;

	(void)state;
	d->levels[1].peak = demo_peak(38.6e9, "triad nt, avx512", 2, 0.9);
	demo_point(d, "resnet18", 1, 10.8, 8, 3,
		   4); /* so low that the roof leaves the frame at its left */
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];
		double left = INFINITY, bottom = -INFINITY;
		bool corner = false;

		if (strcmp(p->id, "band-roof-memory") != 0)
			continue;
		for (size_t k = 0; k < p->at.polygon.n; k++) {
			left = fmin(left, p->at.polygon.points[k].x);
			bottom = fmax(bottom, p->at.polygon.points[k].y);
		}
		for (size_t k = 0; k < p->at.polygon.n; k++)
			corner |= p->at.polygon.points[k].x <= left &&
				  p->at.polygon.points[k].y >= bottom;
		assert_int_equal(p->at.polygon.n, 5);
		assert_true(corner);
		found++;
	}
	assert_int_equal(found, 1);
	rfl_scene_free(s);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_exact),
		cmocka_unit_test(products_above_the_roof_are_not_drawn),
		cmocka_unit_test(svg_is_exact),
		cmocka_unit_test(png_without_text_is_as_the_reference),
		cmocka_unit_test(same_input_same_bytes),
		cmocka_unit_test(what_cannot_be_drawn_is_refused),
		cmocka_unit_test(multiply_adds_with_additions),
		cmocka_unit_test(words_come_from_the_data),
		cmocka_unit_test(ceilings_of_the_short_form_are_labelled),
		cmocka_unit_test(traffic_is_named),
		cmocka_unit_test(above_the_roof_is_said),
		cmocka_unit_test(repeats_are_counted),
		cmocka_unit_test(a_wide_band_fills_the_corner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
