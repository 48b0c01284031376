/*
 * test_plot_layout.c - what must hold of every figure, over many sizes and sets of points:
 * everything on the page, no text over a text, a mark or a line.
 */
#include "rfl_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plot/place.h"
#include "plot_demo.h"

#define LEAST_TEXT 5.999 /* points, at the size of the page */

static bool begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

static bool is_mark(const struct rfl_prim *p)
{
	return p->kind == RFL_PRIM_MARKER &&
	       (begins(p->id, "mark-") || begins(p->id, "best-") || begins(p->id, "cache-"));
}

/* Lines that no text may touch. Grid lines lie under the halo of a text. */
static bool is_line(const struct rfl_prim *p)
{
	static const char *const words[] = {
		"roof-",      "knee-drop", "headroom-", "levels-", "traffic-",
		"spread-y-",  "spread-x-", "leader-",   "axis-",   "footnote-rule",
		"isochrone-", "diagonal",  "series-",
	};

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
	case RFL_PRIM_POLYGON:
		return around(p->at.polygon.points, p->at.polygon.n);
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

/* No two points have the same name in the plot, or, with "key-", in the list. */
static void check_names(const struct rfl_scene *s, const char *word, const char *what)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < i && begins(s->prims[i].id, word); k++)
			if (begins(s->prims[k].id, word) &&
			    strcmp(name_of(&s->prims[i]), name_of(&s->prims[k])) == 0)
				fail_msg("%s: %s and %s are '%s'", what, s->prims[k].id,
					 s->prims[i].id, name_of(&s->prims[i]));
}

/* A number inside its own mark, which also covers its hollow mark and the lines drawn before. */
static bool is_inside(const struct rfl_prim *text, const struct rfl_prim *other)
{
	const char *number = text->id + strlen("number-");

	return begins(text->id, "number-") && text->kind == RFL_PRIM_TEXT &&
	       text->at.text.face == RFL_FACE_BOLD &&
	       ((is_mark(other) && strcmp(number, strrchr(other->id, '-') + 1) == 0) ||
		(is_line(other) && !begins(other->id, "leader-")));
}

static void check_scene(const struct rfl_scene *s, const char *what)
{
	const struct rfl_box page = { 0, 0, s->width, s->height };
	struct rfl_hull *hulls = calloc(s->n, sizeof(*hulls));
	bool *solid = calloc(s->n, sizeof(*solid)); /* no text may touch it */

	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];
		const struct rfl_box box = bounds(p);

		hulls[i] = hull_of(p);
		solid[i] = p->kind == RFL_PRIM_TEXT || is_mark(p) || is_line(p);
		if (p->kind == RFL_PRIM_TEXT && p->at.text.size < LEAST_TEXT)
			fail_msg("%s: '%s' (%s) has %.2f points", what, name_of(p), p->id,
				 p->at.text.size);
		if (p->kind == RFL_PRIM_TEXT &&
		    (strstr(name_of(p), "e+00") || strstr(name_of(p), "e+01") ||
		     strstr(name_of(p), "e+02") || strstr(name_of(p), "e+03")))
			fail_msg("%s: '%s' (%s) has an exponent", what, name_of(p), p->id);
		if (!rfl_box_holds(&page, &box))
			fail_msg("%s: '%s' (%s) leaves the page", what, name_of(p), p->id);
	}
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; s->prims[i].kind == RFL_PRIM_TEXT && k < s->n; k++) {
			const struct rfl_prim *p = &s->prims[i], *o = &s->prims[k];

			if (solid[k] && k != i && rfl_hull_meet(&hulls[i], &hulls[k]) &&
			    !is_inside(p, o) && !is_inside(o, p))
				fail_msg("%s: text '%s' (%s) is over '%s' (%s)", what, name_of(p),
					 p->id, name_of(o), o->id);
		}
	free(hulls);
	free(solid);
}

/* Distance of a point from a line. */
static double distance(const struct rfl_prim *line, double x, double y)
{
	const double dx = line->at.line.x1 - line->at.line.x0;
	const double dy = line->at.line.y1 - line->at.line.y0;
	const double t = ((x - line->at.line.x0) * dx + (y - line->at.line.y0) * dy) /
			 fmax(dx * dx + dy * dy, 1e-12);
	const double at = fmin(fmax(t, 0), 1);

	return hypot(line->at.line.x0 + at * dx - x, line->at.line.y0 + at * dy - y);
}

static const char *owner_of(const struct rfl_prim *p)
{
	return strrchr(p->id, '-') + 1;
}

/* The leader of a label crosses neither a whisker nor the mark of another point, unless that mark
 * touches its own. */
static void check_leaders(const struct rfl_scene *s, const char *what)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; begins(s->prims[i].id, "leader-") && k < s->n; k++) {
			const struct rfl_prim *l = &s->prims[i], *o = &s->prims[k];
			const struct rfl_hull line = hull_of(l), other = hull_of(o);
			const bool same = is_mark(o) && strcmp(owner_of(o), owner_of(l)) == 0;

			if (begins(o->id, "headroom-") && strcmp(owner_of(o), owner_of(l)) != 0 &&
			    rfl_hull_meet(&line, &other))
				fail_msg("%s: '%s' crosses '%s'", what, l->id, o->id);
			if (is_mark(o) && !same &&
			    distance(l, o->at.marker.x, o->at.marker.y) < 0.6 * o->at.marker.r &&
			    hypot(o->at.marker.x - l->at.line.x0, o->at.marker.y - l->at.line.y0) >
				    3.5 * o->at.marker.r)
				fail_msg("%s: '%s' crosses '%s'", what, l->id, o->id);
		}
}

/* The value of each roof is in its label or in the legend. */
static void check_roofs(const struct rfl_scene *s, const char *what)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];
		const char *end = p->kind == RFL_PRIM_LINE && begins(p->id, "roof-")
					  ? strstr(p->tip, strstr(p->tip, "B/s") ? "B/s" : "FLOP/s")
					  : NULL;
		char value[32] = "";
		bool found = !end;

		for (const char *at = end; at && at > p->tip && *value == '\0'; at--)
			if (at[-1] == ' ' && at[0] >= '0' && at[0] <= '9')
				snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, " "), at);
		for (size_t k = 0; k < s->n && !found; k++)
			found = s->prims[k].kind == RFL_PRIM_TEXT &&
				strstr(s->prims[k].at.text.text, value);
		if (!found)
			fail_msg("%s: the value of '%s' is nowhere", what, p->tip);
	}
}

/* ---- every point is identified, and no sign has two meanings ---- */

#define MOST 128

/* The labels and marks of each point; [0] is unused. */
struct shown {
	const struct rfl_prim *mark[MOST + 1];
	bool known[MOST + 1], listed[MOST + 1];
	int next[MOST + 1]; /* the point that a series line leads to */
};

static int to_int(const char *text)
{
	return (int)strtoimax(text, NULL, 10);
}

static int number_in(const char *id, const char *word)
{
	const int n = begins(id, word) ? to_int(id + strlen(word)) : 0;

	return n > 0 && n <= MOST ? n : 0;
}

/* @param strict  a number identifies a point only if a list has it; a point without a label is
 * identified by its position in a list */
static void look(const struct rfl_scene *s, bool strict, struct shown *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];
		int n;

		if ((n = number_in(p->id, "mark-")))
			ret->mark[n] = p;
		if ((n = number_in(p->id, "name-")))
			ret->known[n] = true;
		if (strcmp(p->id, "table-number") == 0) { /* its row has the position */
			n = to_int(p->at.text.text);
			ret->listed[n] = true;
			ret->known[n] |= strict;
		}
		if ((n = number_in(p->id, "key-")) && *p->at.text.text) {
			ret->listed[n] = true;
			ret->known[n] |= strict && strstr(p->at.text.text, ": ");
		}
	}
	for (size_t i = 0; i < s->n; i++) /* "5", "5, 9" or "5: AI 3" */
		for (const char *at = begins(s->prims[i].id, "number-") ? name_of(&s->prims[i])
									: NULL;
		     at;) {
			ret->known[to_int(at)] |= ret->listed[to_int(at)] || !strict;
			at = strchr(at, ',');
			at = at ? at + 2 : NULL;
		}
	for (size_t i = 0; i < s->n; i++) {
		const struct rfl_prim *p = &s->prims[i];
		const int from = number_in(p->id, "series-");

		for (int n = 1; from && n <= MOST; n++)
			if (ret->mark[n] && ret->mark[n]->at.marker.x == p->at.line.x1 &&
			    ret->mark[n]->at.marker.y == p->at.line.y1)
				ret->next[from] = n;
	}
}

static bool same_color(struct rfl_color a, struct rfl_color b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/* Whether two marks have the same colour if and only if this property of their points is equal. */
static bool color_is(const struct demo *d, const struct shown *a, char property)
{
	for (int i = 1; i <= MOST; i++)
		for (int k = 1; a->mark[i] && k < i; k++) {
			const struct rfl_point *p = &d->rows[i - 1], *q = &d->rows[k - 1];
			const bool same = property == 'p'   ? !strcmp(p->precision, q->precision)
					  : property == 'b' ? p->batch == q->batch
					  : property == 'c' ? p->context_length == q->context_length
					  : property == 'm' ? !strcmp(p->model, q->model)
							    : true;

			if (a->mark[k] && same != same_color(a->mark[i]->fill, a->mark[k]->fill))
				return false;
		}
	return true;
}

/* A line that joins batches in order identifies all its marks if enough are known. */
static void trace(struct shown *a, int enough)
{
	for (int first = 1; first <= MOST; first++) {
		bool head = a->mark[first];
		int known = 0;

		for (int i = 1; i <= MOST; i++)
			head = head && a->next[i] != first;
		for (int i = first; head && i; i = a->next[i])
			known += a->known[i];
		for (int i = first; head && i && known >= enough; i = a->next[i])
			a->known[i] = true;
	}
}

static void check_identity(const struct demo *d, const struct rfl_scene *s, const char *what,
			   bool strict)
{
	struct shown a;
	size_t models = 0, lost = 0, stated;
	const char *note;
	bool batches, ordered = true;

	look(s, strict, &a);
	batches = color_is(d, &a, 'b');
	if (!batches && !color_is(d, &a, 'c') && !color_is(d, &a, 'p') && !color_is(d, &a, 'm') &&
	    !color_is(d, &a, '-'))
		fail_msg("%s: a colour has two meanings, or two colours have one", what);
	for (size_t i = 0; i < d->points.n; i++) {
		size_t k = 0;

		while (strcmp(d->rows[k].model, d->rows[i].model) != 0)
			k++;
		models += k == i;
	}
	/* a shape is a model; if there are more models than shapes, there is one shape */
	for (size_t i = 0; i < d->points.n; i++)
		for (size_t k = 0; k < i; k++) {
			const bool same = strcmp(d->rows[i].model, d->rows[k].model) == 0 ||
					  models > RFL_MARKER_COUNT;

			if (same !=
			    (a.mark[i + 1]->at.marker.shape == a.mark[k + 1]->at.marker.shape))
				fail_msg("%s: shapes of points %zu and %zu", what, i + 1, k + 1);
		}
	/* one name is enough if the colours show the order */
	for (size_t i = 1; i < d->points.n; i++)
		ordered =
			ordered && (batches ? d->rows[i].context_length == d->rows[0].context_length
					    : d->rows[i].batch == d->rows[0].batch);
	trace(&a, ordered && (batches || color_is(d, &a, 'c')) ? 1 : 2);
	/* "7 of 26 marks have neither ..." */
	note = strstr(s->caption, " marks have nei");
	for (int words = 0; note && note > s->caption && words < 3; note--)
		words += note[-1] == ' ';
	stated = note ? (size_t)to_int(note + 1) : 0;
	for (size_t i = 1; i <= d->points.n; i++) {
		lost += !a.known[i];
	}
	if (lost != (strict ? 0 : stated))
		fail_msg("%s: %zu of %zu points are not identified, the figure says %zu", what,
			 lost, d->points.n, stated);
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
	if (d->input.nenvs == 0 || d->input.overlay) /* else the cell completes the name */
		check_names(s, "name-", text);
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

/* Two to seven environments, overlaid and side by side, in all styles. */
static void several_environments_hold(void **state)
{
	static const char *const names[] = { "lab_cpu", "laptop",  "gpu_l4",           "old_box",
					     "mac",     "server2", "quite_a_long_name" };
	const struct rfl_peaks_env *envs[7];
	struct rfl_peaks_env copies[7];
	struct rfl_peak_compute compute[7];
	struct rfl_peak_level levels[7];
	struct demo *d = demo_new();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_scene *s = NULL;
	char what[80];

	(void)state;
	for (size_t k = 0; k < 7; k++) {
		const double faster = pow(3, (double)k - 2);

		compute[k] = d->compute[0];
		compute[k].peak.value *= faster;
		levels[k] = d->levels[1];
		levels[k].peak.value *= sqrt(faster);
		copies[k] = d->env;
		copies[k].name = names[k];
		copies[k].ncompute = copies[k].nlevels = 1;
		copies[k].compute = &compute[k];
		copies[k].levels = &levels[k];
		envs[k] = &copies[k];
	}
	d->input.envs = envs;
	d->input.nenvs = 7; /* too many for a small page */
	d->input.width = 320;
	d->input.height = 240;
	random_points(d, 7, 7);
	for (size_t i = 0; i < 7; i++) {
		d->rows[i].env = (char *)(uintptr_t)names[i];
		d->rows[i].peak_gflops = compute[i].peak.value / 1e9;
		d->rows[i].peak_gbps = levels[i].peak.value / 1e9;
	}
	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EINVAL);
	assert_non_null(strstr(err.msg, "7 environments do not fit"));
	d->rows[3].env = (char *)"elsewhere"; /* then it needs a ceiling for roofs */
	copies[3].ncompute = 0;
	err = (struct rfl_err)RFL_ERR_INIT;
	assert_int_equal(rfl_plot_roofline(&d->input, &s, &err), RFL_EMISSING);
	assert_non_null(strstr(err.msg, "environment old_box: no point to draw"));
	copies[3].ncompute = 1;
	for (size_t n = 2; n <= 7; n++)
		for (size_t style = 0; rfl_plot_styles[style]; style++) {
			random_points(d, 6 * n, n * 10 + style);
			for (size_t i = 0; i < d->points.n; i++) { /* in turns */
				struct rfl_point *p = &d->rows[i];

				p->env = (char *)(uintptr_t)names[i % n];
				p->peak_gflops = compute[i % n].peak.value / 1e9;
				p->peak_gbps = levels[i % n].peak.value / 1e9;
			}
			d->input.nenvs = n;
			d->input.style = rfl_plot_styles[style];
			for (int overlay = 0; overlay < 2; overlay++) {
				d->input.overlay = overlay;
				snprintf(what, sizeof(what), "%zu environments, %s, style %s", n,
					 overlay ? "overlay" : "grid", d->input.style);
				check(d, 0, 0, what);
				if (overlay)
					check(d, sizes[n][0], sizes[n][1], what);
				check(d, 2000, 1400, what);
			}
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

/* Parts of steps: areas from tiny to large, names of any length and script, parts without FLOPs. */
static void parts_hold(void **state)
{
	static const char *const words[] = {
		"conv1",
		"void lib::kernel<float, 3, lib::policy<128>>(int, float *)",
		"<lambda>(int)",
		"a\tb\nc\033[1m",
		"\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1"
		"\xa4"
		"\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1"
		"\xa4",
		"::",
		"layer4.2.downsample.batch_normalisation_of_the_shortcut_with_a_long_name",
	};
	static const size_t counts[] = { 1, 5, 14, 40, 90 };
	char what[64];

	(void)state;
	for (size_t i = 0; i < 5 * NSIZES; i++) {
		struct demo *d = demo_new();
		uint64_t seed = 9000 + i;

		random_points(d, counts[i % 5], i);
		for (size_t k = 0; k < d->points.n; k++) {
			struct rfl_point *p = &d->rows[k];

			p->part = (char *)(uintptr_t)words[(k + i) % 7];
			p->part_kind = (char *)(i % 2 ? "kernel" : "layer");
			p->time_share = k % 9 == 8 ? NAN : pow(10, -4 * next(&seed));
			if (k % 3 == 2)
				p->flops_per_step = 0;
		}
		d->input.kind = i % 2 ? RFL_PLOT_KERNELS : RFL_PLOT_LAYERS;
		snprintf(what, sizeof(what), "%zu parts, %zu", counts[i % 5], i);
		check(d, sizes[i % NSIZES][0], sizes[i % NSIZES][1], what);
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
	assert_in_range(seconds, 5, 6); /* the table has all */
	assert_int_equal(roofs, 4);
	assert_int_equal(labels, 4);
	assert_int_equal(factors, whiskers);
	assert_true(whiskers >= 3);
	rfl_scene_free(s);
	free(d);
}

/* Points of one study, as series of batches with rising intensity, or at random. */
static void random_study(struct demo *d, uint64_t *seed)
{
	static const char *const models[] = {
		"resnet50",        "vgg16",         "mobilenet_v2", "resnet18",
		"vgg16_bn",        "alexnet",       "googlenet",    "densenet121",
		"efficientnet_b0", "squeezenet1_0", "vit_b_16",     "a_network_with_a_long_name",
	};
	const size_t nmodels = 1 + (size_t)(12 * next(seed)),
		     nbatches = 1 + (size_t)(12 * next(seed));
	const size_t most = 1 + (size_t)(60 * next(seed));
	const bool mixed = next(seed) < .4, anywhere = next(seed) < .4;

	d->points.n = 0;
	for (size_t m = 0; m < nmodels; m++) {
		const double first = pow(10, 2.2 * next(seed)), share = .1 + .8 * next(seed);
		const bool bf16 = mixed && next(seed) < .5;

		for (size_t b = 0; b < nbatches && d->points.n < most; b++) {
			const double ai = anywhere ? pow(10, -.3 + 3 * next(seed))
						   : first * pow(1.2, (double)b);
			const double peak = bf16 ? 900 : 182.4;
			struct rfl_point *p = demo_point(
				d, models[m], (int64_t)1 << b, 20,
				fmin(ai * 38.6, peak) * (anywhere ? .02 + next(seed) : share), ai,
				ai * (1 + 2 * next(seed)));

			if (bf16)
				demo_precision(d, p, false, peak);
		}
	}
}

#ifdef __SANITIZE_ADDRESS__
#define STUDIES 30 /* ten times as slow */
#else
#define STUDIES 200
#endif

/* Studies in all styles on their own pages, as a roofline and as another kind in turns. Dark
 * and mono, which differ from screen in colours only, take turns as well, with another page. */
static void studies_identify_every_point(void **state)
{
	static const enum rfl_plot_kind kinds[] = { RFL_PLOT_ROOFLINE, RFL_PLOT_TRAJECTORY,
						    RFL_PLOT_ROOFLINE, RFL_PLOT_HIERARCHICAL,
						    RFL_PLOT_ROOFLINE, RFL_PLOT_COMPARE,
						    RFL_PLOT_ROOFLINE, RFL_PLOT_TIME };
	static struct rfl_point earlier[128];
	struct rfl_points before = { .points = earlier };
	uint64_t seed = 20;
	char what[96];

	(void)state;
	for (size_t i = 0; i < STUDIES; i++) {
		struct demo *d = demo_new();

		random_study(d, &seed);
		for (size_t k = 0; k < d->points.n && i % 5 == 0; k++)
			d->rows[k].context_length = 128 << (i % 2 ? k % 3 : k / 2 % 4);
		before.n = d->points.n;
		for (size_t k = 0; k < d->points.n; k++) {
			d->rows[k].ai_l2 = d->rows[k].ai * next(&seed);
			d->rows[k].ai_l1 = d->rows[k].ai_l2 * next(&seed);
			earlier[k] = d->rows[k];
			earlier[k].attained_gflops *= 0.5 + next(&seed);
		}
		d->input.before = &before;
		for (size_t k = 0; k < 7; k++) {
			const bool own_page = k < 6;
			const size_t style = own_page ? k : i / 2 % 6;
			struct rfl_scene *s = NULL;
			struct rfl_err err = RFL_ERR_INIT;

			if (k > 3 && k % 2 != i % 2)
				continue;
			d->input.style = rfl_plot_styles[style];
			d->input.kind = own_page ? kinds[(i + k) % 8] : RFL_PLOT_ROOFLINE;
			d->input.width = own_page ? 0 : sizes[i % NSIZES][0];
			d->input.height = own_page ? 0 : sizes[i % NSIZES][1];
			snprintf(what, sizeof(what), "study %zu, %zu points, kind %d, %s, %s page",
				 i, d->points.n, (int)d->input.kind, rfl_plot_styles[style],
				 own_page ? "own" : "other");
			if (rfl_plot_roofline(&d->input, &s, &err) != RFL_OK) {
				assert_int_equal(err.rc, RFL_EMISSING); /* no two batches */
				assert_int_equal(d->input.kind, RFL_PLOT_TRAJECTORY);
				continue;
			}
			check_scene(s, what);
			check_leaders(s, what);
			if (own_page)
				check_roofs(s, what);
			check_names(s, own_page ? "key-" : "name-", what);
			check_identity(d, s, what, own_page);
			rfl_scene_free(s);
		}
		free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demonstration_holds_at_all_sizes),
		cmocka_unit_test(random_points_hold),
		cmocka_unit_test(styles_hold),
		cmocka_unit_test(several_environments_hold),
		cmocka_unit_test(identical_and_extreme_points_hold),
		cmocka_unit_test(long_texts_stay_on_the_page),
		cmocka_unit_test(variants_hold),
		cmocka_unit_test(parts_hold),
		cmocka_unit_test(few_points_are_all_named),
		cmocka_unit_test(studies_identify_every_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
