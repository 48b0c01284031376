/*
 * test_plot_style.c - the styles: contrast of text, categories in greyscale and for colour-blind
 * readers, sizes of text and pages, and the texts that only the caption has.
 */
#include "rfl_test.h"

#include <math.h>
#include <string.h>

#include "plot/figure.h"
#include "plot_demo.h"

#define CONTRAST       4.5  /* WCAG 2, level AA */
#define GREY_APART     7.5  /* difference in CIE L*, of 100 */
#define HUE_APART      10.0 /* distance in CIE L*a*b* */
#define RAMP_STEP      2.5  /* difference in CIE L* of neighbours */
#define RFL_LEAST_TEXT 6.0  /* points */

struct linear {
	double at[3];
};

static struct linear linear_of(struct rfl_color c)
{
	const uint8_t parts[3] = { c.r, c.g, c.b };
	struct linear ret;

	for (int i = 0; i < 3; i++) {
		const double v = parts[i] / 255.0;

		ret.at[i] = v <= .04045 ? v / 12.92 : pow((v + .055) / 1.055, 2.4);
	}
	return ret;
}

static void text_has_contrast(void **state)
{
	(void)state;
	assert_close(rfl_color_contrast((struct rfl_color){ 0, 0, 0, 255 },
					(struct rfl_color){ 255, 255, 255, 255 }),
		     21, 1e-9);
	assert_close(rfl_color_contrast((struct rfl_color){ 255, 0, 0, 255 },
					(struct rfl_color){ 255, 255, 255, 255 }),
		     1.05 / .2626, 1e-9);
	for (size_t i = 0; rfl_plot_styles[i]; i++) {
		const struct rfl_theme *t = &rfl_themes[i];
		const struct rfl_color texts[] = { t->ink, t->soft, t->alarm };
		const struct rfl_color grounds[] = { t->paper, t->memory, t->compute };

		assert_string_equal(t->name, rfl_plot_styles[i]);
		for (int k = 0; k < 9; k++)
			if (rfl_color_contrast(texts[k / 3], grounds[k % 3]) < RFL_CONTRAST)
				fail_msg("%s: text %d on ground %d has a contrast of %.2f", t->name,
					 k / 3, k % 3,
					 rfl_color_contrast(texts[k / 3], grounds[k % 3]));
	}
}

/* A colour in CIE L*a*b* (D65), as seen with a matrix of Machado, Oliveira and Fernandes (2009). */
static struct linear lab_of(struct rfl_color color, const double seen[3][3])
{
	static const double xyz[3][3] = {
		{ .4124564 / .95047, .3575761 / .95047, .1804375 / .95047 },
		{ .2126729, .7151522, .0721750 },
		{ .0193339 / 1.08883, .1191920 / 1.08883, .9503041 / 1.08883 }
	};
	const struct linear c = linear_of(color);
	double rgb[3], f[3];

	for (int i = 0; i < 3; i++) {
		rgb[i] = seen[i][0] * c.at[0] + seen[i][1] * c.at[1] + seen[i][2] * c.at[2];
		rgb[i] = fmin(fmax(rgb[i], 0), 1);
	}
	for (int i = 0; i < 3; i++) {
		const double v = xyz[i][0] * rgb[0] + xyz[i][1] * rgb[1] + xyz[i][2] * rgb[2];

		f[i] = v > 216.0 / 24389 ? cbrt(v) : (24389.0 / 27 * v + 16) / 116;
	}
	return (struct linear){ { 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2]) } };
}

/* Colours as printed and as colour-blind readers see them. */
static const double views[3][3][3] = {
	{ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
	{ { .367322, .860646, -.227968 }, /* deuteranopia */
	  { .280085, .672501, .047413 },
	  { -.011820, .042940, .968881 } },
	{ { .152286, 1.052583, -.204868 }, /* protanopia */
	  { .114503, .786281, .099216 },
	  { -.003882, -.048116, 1.051998 } },
};

static void categories_stay_apart(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_plot_styles[i]; i++)
		for (int k = 1; k < RFL_THEME_COLORS; k++)
			for (int j = 0; j < k; j++)
				for (int v = 0; v < 3; v++) {
					const struct rfl_theme *t = &rfl_themes[i];
					const struct linear a = lab_of(t->category[j], views[v]);
					const struct linear b = lab_of(t->category[k], views[v]);
					const double grey = fabs(a.at[0] - b.at[0]);
					const double all = hypot(hypot(grey, a.at[1] - b.at[1]),
								 a.at[2] - b.at[2]);

					if (all < HUE_APART || (v == 0 && grey < GREY_APART))
						fail_msg("%s: categories %d and %d in view %d are "
							 "%.1f apart, %.1f in lightness",
							 t->name, j, k, v, all, grey);
				}
}

static struct rfl_scene *draw(struct demo *d)
{
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	return s;
}

static int count(const struct rfl_scene *s, const char *prefix)
{
	int n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += strncmp(s->prims[i].id, prefix, strlen(prefix)) == 0;
	return n;
}

/* Twelve batches are a ramp of lightness in all styles, for all readers. */
static void batches_are_a_ramp(void **state)
{
	struct demo *d = demo_new();

	(void)state;
	for (int i = 0; i < 12; i++)
		demo_point(d, "resnet50", 1 << i, 10, 20 + i, pow(1.4, i), NAN);
	for (size_t i = 0; rfl_plot_styles[i]; i++) {
		double light[3][12];
		struct rfl_scene *s;
		size_t n = 0;

		d->input.style = rfl_plot_styles[i];
		s = draw(d);
		for (size_t k = 0; k < s->n; k++)
			if (strncmp(s->prims[k].id, "mark-", 5) == 0) {
				for (int v = 0; v < 3; v++)
					light[v][n] = lab_of(s->prims[k].fill, views[v]).at[0];
				n++;
			}
		assert_int_equal(n, 12);
		for (int v = 0; v < 3; v++)
			for (size_t k = 1; k < n; k++) {
				const double step = light[v][k] - light[v][k - 1];

				if (fabs(step) < RAMP_STEP ||
				    (step > 0) != (light[v][1] > light[v][0]))
					fail_msg("%s: batches %zu and %zu in view %d are %.1f "
						 "apart in lightness",
						 d->input.style, k - 1, k, v, step);
			}
		rfl_scene_free(s);
	}
	free(d);
}

static void styles_have_their_page_and_parts(void **state)
{
	static const struct {
		double width, height; /* 0: as high as the contents */
		bool panel, title, footnote, tints;
	} cases[] = {
		{ 1180, 760, true, true, true, true },  { 504, 0, false, true, true, false },
		{ 241, 0, false, false, false, false }, { 960, 540, false, true, false, true },
		{ 1180, 760, true, true, true, true },  { 1180, 760, true, true, true, false },
	};
	struct demo *d = demo_six();

	(void)state;
	for (size_t i = 0; rfl_plot_styles[i]; i++) {
		struct rfl_scene *s;
		double least = INFINITY;

		d->input.style = rfl_plot_styles[i];
		s = draw(d);
		assert_close(s->width, cases[i].width, 1e-9);
		if (cases[i].height > 0)
			assert_close(s->height, cases[i].height, 1e-9);
		assert_int_equal(count(s, "table-head") > 0, cases[i].panel);
		assert_int_equal(count(s, "title") > 2, cases[i].title); /* the axes have 2 */
		assert_int_equal(count(s, "footnote-1"), cases[i].footnote);
		assert_int_equal(count(s, "ground-"), cases[i].tints ? 2 : 0);
		assert_int_equal(s->has_caption, cases[i].title && cases[i].footnote);
		assert_true(count(s, "legend") > 3);
		/* the caption has all texts */
		assert_non_null(strstr(s->caption, "Training steps on AMD EPYC 9B45, 2 threads. "));
		assert_non_null(strstr(s->caption, "no dgrad of the first layer."));
		assert_non_null(strstr(s->caption, "points.csv 5b0e77d1"));
		for (size_t k = 0; k < s->n; k++)
			if (s->prims[k].kind == RFL_PRIM_TEXT)
				least = fmin(least, s->prims[k].at.text.size);
		if (least < RFL_LEAST_TEXT)
			fail_msg("%s: the smallest text has %.2f points", d->input.style, least);
		rfl_scene_free(s);
	}
	d->input.style = "fancy";
	assert_int_equal(rfl_plot_roofline(&d->input, &(struct rfl_scene *){ NULL }, NULL),
			 RFL_EINVAL);
	free(d);
}

/* A given title is drawn in every style; a given height stays. */
static void the_caller_overrides_the_style(void **state)
{
	struct demo *d = demo_six();
	struct rfl_scene *s;

	(void)state;
	d->input.style = "column";
	d->input.title = "Mine";
	d->input.height = 300;
	s = draw(d);
	assert_int_equal(count(s, "title"), 3);
	assert_close(s->height, 300, 1e-9);
	rfl_scene_free(s);
	d->input.style = NULL;
	d->input.title = NULL;
	d->input.height = 0;
	d->input.no_panel = true;
	s = draw(d);
	assert_int_equal(count(s, "table-"), 0);
	assert_true(count(s, "legend") > 3);
	rfl_scene_free(s);
	free(d);
}

static void points_have_the_labels_asked_for(void **state)
{
	static const struct {
		enum rfl_plot_labels labels;
		int names[2], numbers[2]; /* least and most */
	} cases[] = {
		{ RFL_PLOT_LABELS_AUTO, { 6, 12 }, { 6, 14 } },
		{ RFL_PLOT_LABELS_ALL, { 13, 20 }, { 0, 7 } },
		{ RFL_PLOT_LABELS_NONE, { 0, 0 }, { 0, 0 } },
		{ RFL_PLOT_LABELS_NUMBERS, { 0, 0 }, { 20, 20 } },
	};
	struct demo *d = demo_new();

	(void)state;
	for (int i = 0; i < 20; i++)
		demo_point(d, i % 2 ? "vgg16" : "resnet50", 1 + i, 10, pow(1.27, i),
			   pow(1.3, (i * 7) % 20), NAN);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rfl_scene *s;

		d->input.labels = cases[i].labels;
		s = draw(d);
		assert_in_range(count(s, "name-"), cases[i].names[0], cases[i].names[1]);
		assert_in_range(count(s, "number-"), cases[i].numbers[0], cases[i].numbers[1]);
		rfl_scene_free(s);
	}
	free(d);
}

static void limits_are_exact_and_checked(void **state)
{
	static const struct {
		double lo, hi;
		const char *word;
	} bad[] = {
		{ 100, 1, "xlim: 100:1 is reversed; use 1:100" },
		{ 0, 10, "not a valid range" },
		{ -1, 10, "not a valid range" },
		{ 5, 6, "HI from 3 times LO" },
		{ NAN, 10, "not a valid range" },
		{ 1, INFINITY, "not a valid range" },
		{ 1e-6, 1e12, "not a valid range" },
	};
	struct demo *d = demo_six();
	struct rfl_scene *s;
	int left = 0, right = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rfl_err err = RFL_ERR_INIT;

		d->input.xlim[0] = bad[i].lo;
		d->input.xlim[1] = bad[i].hi;
		s = NULL;
		assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EINVAL);
		assert_null(s);
		if (!strstr(err.msg, bad[i].word))
			fail_msg("'%s' lacks '%s'", err.msg, bad[i].word);
	}
	/* of six points, two lie left of 10 FLOP/byte and two right of 32 */
	d->input.xlim[0] = 10;
	d->input.xlim[1] = 32;
	s = draw(d);
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];

		if (p->kind != RFL_PRIM_MARKER || strncmp(p->id, "mark-", 5) != 0)
			continue;
		left += p->at.marker.shape == RFL_MARKER_LEFT;
		right += p->at.marker.shape == RFL_MARKER_RIGHT;
	}
	assert_int_equal(left, 2);
	assert_int_equal(right, 2);
	assert_true(count(s, "tick-x") >= 2);
	rfl_scene_free(s);
	free(d);
}

/* For all limits, axes have labels that do not touch. */
static void limited_axes_have_ticks(void **state)
{
	(void)state;
	for (double lo = 1e-3; lo < 1e5; lo *= 1.37)
		for (double ratio = 3; ratio < 1e7; ratio *= 1.9) {
			struct rfl_axis a;
			double last = -100;
			int n = 0;

			rfl_axis_set(&a, lo, lo * ratio, 0, 180, 25);
			assert_close(a.min, lo, 1e-12);
			for (size_t i = 0; i < a.nticks; i++) {
				const double at = rfl_axis_at(&a, a.ticks[i].value);

				if (!a.ticks[i].labelled)
					continue;
				assert_true(at >= -0.1 && at <= 180.1);
				if (at < last + 17)
					fail_msg("%g to %g: labels at %g and %g", lo, a.max, last,
						 at);
				last = at;
				n++;
			}
			if (n < 1)
				fail_msg("%g to %g: no label", lo, a.max);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_contrast),
		cmocka_unit_test(categories_stay_apart),
		cmocka_unit_test(batches_are_a_ramp),
		cmocka_unit_test(styles_have_their_page_and_parts),
		cmocka_unit_test(the_caller_overrides_the_style),
		cmocka_unit_test(points_have_the_labels_asked_for),
		cmocka_unit_test(limits_are_exact_and_checked),
		cmocka_unit_test(limited_axes_have_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
