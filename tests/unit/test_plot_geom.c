/*
 * test_plot_geom.c - shapes, obstacles, axes.
 */
#include "rfl_test.h"

#include <math.h>

#include "plot/figure.h"

static bool meet(struct rfl_hull a, struct rfl_hull b)
{
	assert_int_equal(rfl_hull_meet(&a, &b), rfl_hull_meet(&b, &a));
	return rfl_hull_meet(&a, &b);
}

static void shapes_meet_or_not(void **state)
{
	struct rfl_hull box = rfl_hull_box((struct rfl_box){ 10, 10, 20, 10 });

	(void)state;
	assert_true(meet(box, rfl_hull_box((struct rfl_box){ 25, 15, 20, 20 })));
	assert_true(meet(box, rfl_hull_box((struct rfl_box){ 15, 12, 2, 2 })));
	assert_false(meet(box, rfl_hull_box((struct rfl_box){ 30, 10, 5, 5 }))); /* touches */
	assert_false(meet(box, rfl_hull_box((struct rfl_box){ 10, 30, 5, 5 })));
	assert_true(meet(box, rfl_hull_line(0, 0, 40, 30)));
	/* the box around the line meets the box, the line does not */
	assert_false(meet(box, rfl_hull_line(0, 12, 12, 0)));
	assert_true(meet(box, rfl_hull_line(20, 0, 20, 40)));
	assert_false(meet(box, rfl_hull_line(31, 0, 31, 40)));
	assert_true(meet(box, rfl_hull_band(31, 0, 31, 40, 4)));
	assert_false(meet(rfl_hull_line(0, 0, 10, 10), rfl_hull_line(0, 5, 4, 9)));
	assert_true(meet(rfl_hull_line(0, 0, 10, 10), rfl_hull_line(0, 10, 10, 0)));
}

static void tilted_text_is_not_its_box(void **state)
{
	struct rfl_scene *s = rfl_scene_new(400, 400);
	struct rfl_prim *p;
	struct rfl_xy c[4];
	struct rfl_hull hull;

	(void)state;
	assert_non_null(s);
	p = rfl_scene_text(s, "DRAM 38.6 GB/s measured", 100, 300, 10, s->paper);
	p->at.text.angle = atan(1);
	rfl_prim_text_corners(p, c);
	hull = rfl_hull_corners(c);
	/* goes up to the right at 45 degrees */
	assert_close(c[1].x - c[0].x, c[0].y - c[1].y, 1e-9);
	assert_true(meet(hull, rfl_hull_line(130, 250, 130, 290)));
	assert_false(
		meet(hull, rfl_hull_line(150, 280, 170, 299))); /* in its box, below the text */
	rfl_scene_free(s);
}

static void lines_are_clipped(void **state)
{
	const struct rfl_box box = { 0, 0, 100, 50 };
	double x0 = -50, y0 = 75, x1 = 150, y1 = -25;

	(void)state;
	assert_true(rfl_clip_line(&box, &x0, &y0, &x1, &y1));
	assert_close(x0, 0, 1e-12);
	assert_close(y0, 50, 1e-12);
	assert_close(x1, 100, 1e-12);
	assert_close(y1, 0, 1e-12);
	x0 = -10, y0 = 20, x1 = -1, y1 = 20;
	assert_false(rfl_clip_line(&box, &x0, &y0, &x1, &y1));
	assert_close(x0, -10, 0);
}

static void owners_and_kinds_are_told_apart(void **state)
{
	struct rfl_scene *s = rfl_scene_new(100, 100);
	struct rfl_place *p = rfl_place_new(s, (struct rfl_box){ 0, 0, 100, 100 });
	struct rfl_hull here = rfl_hull_box((struct rfl_box){ 10, 10, 10, 10 });
	struct rfl_hull out = rfl_hull_box((struct rfl_box){ 95, 10, 10, 10 });
	size_t n;

	(void)state;
	assert_non_null(p);
	assert_true(rfl_place_free(p, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &here));
	assert_false(rfl_place_free(p, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &out));
	assert_false(rfl_place_hit(p, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &out));
	n = rfl_place_count(p);
	rfl_place_add(p, RFL_OBSTACLE_LINE, 3, rfl_hull_line(0, 15, 100, 15));
	assert_false(rfl_place_free(p, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &here));
	assert_false(rfl_place_free(p, RFL_OBSTACLE_ALL, 2, &here));
	assert_true(rfl_place_free(p, RFL_OBSTACLE_ALL, 3, &here));
	assert_true(rfl_place_free(p, RFL_OBSTACLE_TEXT | RFL_OBSTACLE_MARK, RFL_NO_OWNER, &here));
	for (int i = 0; i < 1000; i++) /* the list grows */
		rfl_place_add(p, RFL_OBSTACLE_TEXT, i, rfl_hull_line(0, 50, 1, 51));
	assert_true(rfl_place_hit(p, RFL_OBSTACLE_LINE, RFL_NO_OWNER, &here));
	rfl_place_truncate(p, n);
	assert_true(rfl_place_free(p, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &here));
	rfl_scene_free(s);
}

static double random_to(uint32_t *seed, double most)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) * most / (1 << 24);
}

/* What a walk over all obstacles says, beyond the edges as well, and after some were taken back. */
static void the_grid_finds_what_is_there(void **state)
{
	enum { N = 400 };
	struct rfl_scene *s = rfl_scene_new(100, 100);
	struct rfl_place *p = rfl_place_new(s, (struct rfl_box){ 10, 20, 70, 50 });
	struct rfl_hull shapes[N];
	uint32_t seed = 1;
	size_t hits = 0;

	(void)state;
	assert_non_null(p);
	for (int i = 0; i < N; i++) {
		double x = random_to(&seed, 120) - 10, y = random_to(&seed, 120) - 10;

		shapes[i] = i % 3 ? rfl_hull_line(x, y, x + random_to(&seed, 30) - 15,
						  y + random_to(&seed, 30) - 15)
				  : rfl_hull_box((struct rfl_box){ x, y, random_to(&seed, 4),
								   random_to(&seed, 4) });
	}
	for (size_t n = N; n > 0; n = n * 2 / 3) {
		for (size_t i = rfl_place_count(p); i < N; i++)
			rfl_place_add(p, i % 2 ? RFL_OBSTACLE_MARK : RFL_OBSTACLE_LINE, (int)i,
				      shapes[i]);
		rfl_place_truncate(p, n);
		assert_int_equal(rfl_place_count(p), n);
		for (size_t k = 0; k < N; k++) {
			bool expected = false;

			for (size_t i = 1; i < n; i += 2)
				expected |= i != k && rfl_hull_meet(&shapes[i], &shapes[k]);
			hits += expected;
			assert_int_equal(rfl_place_hit(p, RFL_OBSTACLE_MARK, (int)k, &shapes[k]),
					 expected);
		}
	}
	assert_in_range(hits, 100, 2500);
	rfl_scene_free(s);
}

static void axes_have_round_ends_and_ticks(void **state)
{
	struct rfl_axis a;
	size_t labels = 0;

	(void)state;
	rfl_axis_fit(&a, 0.237, 460, 100, 800, 40);
	assert_close(a.min, 0.2, 1e-12);
	assert_close(a.max, 500, 1e-12);
	assert_close(rfl_axis_at(&a, 0.2), 100, 1e-12);
	assert_close(rfl_axis_at(&a, 500), 800, 1e-12);
	assert_close(rfl_axis_at(&a, 10), 100 + 700 * log10(50) / log10(2500), 1e-12);
	for (size_t i = 0; i < a.nticks; i++) {
		assert_true(a.ticks[i].value >= a.min * 0.999 && a.ticks[i].value <= a.max * 1.001);
		labels += a.ticks[i].labelled;
	}
	/* 0.2 0.5 1 2 5 10 20 50 100 200 500 */
	assert_int_equal(labels, 11);
	/* little room: decades only; the axis may run downwards on the page */
	rfl_axis_fit(&a, 1e-3, 1e5, 500, 100, 40);
	labels = 0;
	for (size_t i = 0; i < a.nticks; i++)
		labels += a.ticks[i].labelled;
	assert_int_equal(labels, 9);
	assert_close(rfl_axis_at(&a, 1e5), 100, 1e-9);
	/* one value */
	rfl_axis_fit(&a, 5, 5, 0, 100, 40);
	assert_true(a.max >= a.min * 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_meet_or_not),
		cmocka_unit_test(tilted_text_is_not_its_box),
		cmocka_unit_test(lines_are_clipped),
		cmocka_unit_test(owners_and_kinds_are_told_apart),
		cmocka_unit_test(the_grid_finds_what_is_there),
		cmocka_unit_test(axes_have_round_ends_and_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
