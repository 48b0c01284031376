/*
 * test_plot_layout.c - what must hold of every figure, over many sizes and sets of points:
 * everything on the page, no text over a text, a mark or a line.
 */
#include "rfl_test.h"

#include <stdio.h>
#include <string.h>

#include "plot/place.h"
#include "plot_demo.h"

static bool begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

static bool is_mark(const struct rfl_prim *p)
{
	return p->kind == RFL_PRIM_MARKER && (begins(p->id, "mark-") || begins(p->id, "best-"));
}

/* Lines that no text may touch. Grid lines lie under the halo of a text. */
static bool is_line(const struct rfl_prim *p)
{
	static const char *const words[] = { "roof-",    "knee-drop", "headroom-",
					     "traffic-", "spread-y-", "spread-x-",
					     "leader-",  "axis-",     "footnote-rule" };

	for (size_t i = 0; p->kind == RFL_PRIM_LINE && i < sizeof(words) / sizeof(words[0]); i++)
		if (begins(p->id, words[i]))
			return true;
	return false;
}

static struct rfl_box around(const struct rfl_xy *points, size_t n)
{
	double x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;

	for (size_t i = 0; i < n; i++) {
		x0 = fmin(x0, points[i].x);
		x1 = fmax(x1, points[i].x);
		y0 = fmin(y0, points[i].y);
		y1 = fmax(y1, points[i].y);
	}
	return (struct rfl_box){ x0, y0, x1 - x0, y1 - y0 };
}

/* Upright box around a primitive, stroke not included. */
static struct rfl_box bounds(const struct rfl_prim *p)
{
	const double x = p->at.marker.x, y = p->at.marker.y, r = p->at.marker.r;
	struct rfl_xy q[RFL_MARKER_MAX_POINTS];
	size_t n;

	switch (p->kind) {
	case RFL_PRIM_TEXT:
		rfl_prim_text_corners(p, q);
		return around(q, 4);
	case RFL_PRIM_LINE:
		q[0] = (struct rfl_xy){ p->at.line.x0, p->at.line.y0 };
		q[1] = (struct rfl_xy){ p->at.line.x1, p->at.line.y1 };
		return around(q, 2);
	case RFL_PRIM_POLYLINE:
		return around(p->at.polyline.points, p->at.polyline.n);
	case RFL_PRIM_RECT:
		return p->at.rect;
	case RFL_PRIM_MARKER:
		break;
	}
	n = rfl_marker_outline(p->at.marker.shape, r, q);
	if (n == 0)
		return (struct rfl_box){ x - r, y - r, 2 * r, 2 * r };
	for (size_t i = 0; i < n; i++)
		q[i] = (struct rfl_xy){ x + q[i].x, y + q[i].y };
	return around(q, n);
}

static struct rfl_hull hull_of(const struct rfl_prim *p)
{
	struct rfl_xy c[4];

	if (p->kind == RFL_PRIM_TEXT) {
		rfl_prim_text_corners(p, c);
		return rfl_hull_corners(c);
	}
	if (p->kind == RFL_PRIM_LINE)
		return rfl_hull_line(p->at.line.x0, p->at.line.y0, p->at.line.x1, p->at.line.y1);
	return rfl_hull_box(bounds(p));
}

static const char *name_of(const struct rfl_prim *p)
{
	return p->kind == RFL_PRIM_TEXT ? p->at.text.text : p->id;
}

static void check_pair(const struct rfl_prim *text, const struct rfl_prim *other, const char *what)
{
	struct rfl_hull a = hull_of(text), b = hull_of(other);

	if (rfl_hull_meet(&a, &b))
		fail_msg("%s: text '%s' (%s) is over '%s' (%s)", what, name_of(text), text->id,
			 name_of(other), other->id);
}

/* No two points have the same name. */
static void check_names(const struct rfl_scene *s, const char *what)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < i && begins(s->prims[i].id, "name-"); k++)
			if (begins(s->prims[k].id, "name-") &&
			    strcmp(name_of(&s->prims[i]), name_of(&s->prims[k])) == 0)
				fail_msg("%s: %s and %s are '%s'", what, s->prims[k].id,
					 s->prims[i].id, name_of(&s->prims[i]));
}

static void check_scene(const struct rfl_scene *s, const char *what)
{
	const struct rfl_box page = { 0, 0, s->width, s->height };

	check_names(s, what);

	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];
		struct rfl_box box = bounds(p);

		if (!rfl_box_holds(&page, &box))
			fail_msg("%s: '%s' (%s) leaves the page", what, name_of(p), p->id);
		if (p->kind != RFL_PRIM_TEXT)
			continue;
		for (size_t k = 0; k < s->n; k++) {
			const struct rfl_prim *o = &s->prims[k];

			if ((o->kind == RFL_PRIM_TEXT && k > i) || is_mark(o) || is_line(o))
				check_pair(p, o, what);
		}
	}
}

static void check(struct demo *d, double width, double height, const char *what)
{
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	char text[128];

	snprintf(text, sizeof(text), "%s at %.0f x %.0f", what, width, height);
	d->input.width = width;
	d->input.height = height;
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	check_scene(s, text);
	rfl_scene_free(s);
}

static const double sizes[][2] = {
	{ 1180, 760 }, { 1000, 700 },  { 504, 340 }, { 504, 504 }, { 320, 240 },  { 400, 900 },
	{ 1600, 500 }, { 2360, 1520 }, { 800, 560 }, { 760, 480 }, { 4000, 700 }, { 640, 1000 },
};

#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static void demonstration_holds_at_all_sizes(void **state)
{
	struct demo *d = demo_six();

	(void)state;
	for (size_t i = 0; i < NSIZES; i++)
		check(d, sizes[i][0], sizes[i][1], "six points");
	for (double w = 330; w < 1500; w += 97)
		check(d, w, 700, "six points");
	free(d);
}

/* The same numbers on every machine. */
static double next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

static void random_points(struct demo *d, size_t n, uint64_t seed)
{
	static const char *const models[] = { "resnet50",     "vgg16",
					      "mobilenet_v2", "resnet18",
					      "vgg16_bn",     "a_network_with_quite_a_long_name" };

	d->points.n = 0;
	for (size_t i = 0; i < n; i++) {
		double ai = pow(10, -0.3 + 3 * next(&seed));
		double rate = fmin(ai * 38.6, 182.4) * (0.02 + 1.1 * next(&seed));
		int64_t batch = (int64_t)1 << (int)(6 * next(&seed));
		double best = ai * (0.9 + 3 * next(&seed));
		struct rfl_point *p =
			demo_point(d, models[(size_t)(6 * next(&seed))], batch, 20, rate, ai, best);

		if (next(&seed) < 0.3) {
			p->attained_gflops_lo = rate * 0.6;
			p->attained_gflops_hi = rate * 1.4;
		}
		if (next(&seed) < 0.2) {
			p->ai_lo = ai * 0.5;
			p->ai_hi = ai * 1.7;
		}
	}
}

static void random_points_hold(void **state)
{
	static const size_t counts[] = { 1, 2, 3, 5, 8, 13, 14, 15, 30, 100 };
	struct demo *d = demo_new();
	char what[64];

	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			const double *size = sizes[(seed * 5 + i) % NSIZES];

			random_points(d, counts[i], seed * 1000 + i);
			snprintf(what, sizeof(what), "%zu points, seed %d", counts[i], (int)seed);
			check(d, size[0], size[1], what);
			check(d, 1180, 760, what);
		}
	}
	free(d);
}

/* All styles, on their own pages and on others, down to the smallest. */
static void styles_hold(void **state)
{
	static const size_t counts[] = { 1, 4, 9, 14, 27, 60 };
	struct demo *d = demo_new();
	char what[64];

	(void)state;
	for (size_t k = 0; rfl_plot_styles[k]; k++)
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			const double *size = sizes[(k * 5 + i) % NSIZES];

			d->input.style = rfl_plot_styles[k];
			random_points(d, counts[i], k * 100 + i);
			snprintf(what, sizeof(what), "%zu points, style %s", counts[i],
				 rfl_plot_styles[k]);
			check(d, 0, 0, what);
			check(d, 0, size[1], what);
			check(d, size[0], size[1], what);
			check(d, RFL_PLOT_MIN_WIDTH, RFL_PLOT_MIN_HEIGHT, what);
		}
	free(d);
}

static void identical_and_extreme_points_hold(void **state)
{
	struct demo *d = demo_new();

	(void)state;
	for (int i = 0; i < 5; i++)
		demo_point(d, "resnet50", 8, 24.3, 112, 21.6, 52.4);
	check(d, 1180, 760, "five identical points");
	demo_point(d, "vgg16", 1, 10, 1e-4, 1e-6, 1e-5);
	demo_point(d, "vgg16", 2, 10, 150, 1e9, NAN);
	demo_point(d, "vgg16", 4, 10, 1e6, 1e3, NAN);
	demo_point(d, "vgg16", 8, 10, 38.6 * d->points.points[0].knee_ai,
		   d->points.points[0].knee_ai, 1e8);
	for (size_t i = 0; i < NSIZES; i++)
		check(d, sizes[i][0], sizes[i][1], "extreme points");
	free(d);
}

static void long_texts_stay_on_the_page(void **state)
{
	struct demo *d = demo_six();
	char text[600];

	(void)state;
	memset(text, 'W', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	d->input.title = text;
	d->points.points[0].model = text;
	d->points.points[1].engine = text;
	d->points.points[2].flops_source = text;
	d->points.points[3].precision = text;
	d->levels[1].peak.kernel = text;
	for (size_t i = 0; i < NSIZES; i++)
		check(d, sizes[i][0], sizes[i][1], "long texts");
	free(d);
}

/* Two to many variants of one step, and of several, near each other and far. */
static void variants_hold(void **state)
{
	static const char *const words[] = {
		"optimizer sgd",
		"optimizer adamw",
		"optimizer sgd, data_mode imagefolder, workers 8",
		"optimizer adamw, data_mode imagefolder, workers 8",
		"optimizer adam, optimizer_kernels fused, deterministic 1, cudnn_benchmark 1",
		"device_name AMD EPYC 9655 96-Core Processor, threads 96",
		"device_name AMD EPYC 9655 96-Core Processor, threads 48, optimizer_kernels "
		"foreach, warmup 10",
		NULL,
	};
	static const size_t counts[] = { 2, 4, 6, 12, 40 };
	char what[64];

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (uint64_t seed = 1; seed <= 6; seed++) {
			struct demo *d = demo_new();
			const double *size = sizes[(seed * 5 + i) % NSIZES];

			random_points(d, counts[i], seed * 77 + i);
			for (size_t k = 0; k < counts[i]; k++) {
				struct rfl_point *p = &d->rows[k];

				p->variant = (char *)(uintptr_t)words[k % 8];
				if (seed % 2)
					p->model = (char *)"resnet50";
				if (seed % 3)
					p->batch = 8;
				if (seed % 4 == 1) /* close together */
					p->ai = 20 + 0.2 * (double)k;
				if (seed % 4 == 1)
					p->attained_gflops = 100 + (double)k;
			}
			snprintf(what, sizeof(what), "%zu variants, seed %d", counts[i], (int)seed);
			check(d, size[0], size[1], what);
			check(d, 1180, 760, what);
			free(d);
		}
}

/* Of a few points every one is named, and every ceiling has its number. */
static void few_points_are_all_named(void **state)
{
	struct demo *d = demo_six();
	struct rfl_scene *s = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int names = 0, seconds = 0, roofs = 0, labels = 0, factors = 0, whiskers = 0;

	(void)state;
	assert_ok(rfl_plot_roofline(&d->input, &s, &err), &err);
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];

		names += begins(p->id, "name-");
		seconds += begins(p->id, "second-");
		roofs += p->kind == RFL_PRIM_LINE && begins(p->id, "roof-");
		labels += begins(p->id, "label-roof-");
		whiskers += begins(p->id, "headroom-");
		factors += begins(p->id, "factor-");
	}
	assert_int_equal(names, 6);
	assert_int_equal(seconds, 6);
	assert_int_equal(roofs, 4);
	assert_int_equal(labels, 4);
	assert_int_equal(factors, whiskers);
	assert_true(whiskers >= 3);
	rfl_scene_free(s);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demonstration_holds_at_all_sizes),
		cmocka_unit_test(random_points_hold),
		cmocka_unit_test(styles_hold),
		cmocka_unit_test(identical_and_extreme_points_hold),
		cmocka_unit_test(long_texts_stay_on_the_page),
		cmocka_unit_test(variants_hold),
		cmocka_unit_test(few_points_are_all_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
