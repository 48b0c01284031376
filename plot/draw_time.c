/*
 * draw_time.c - the background of a time-based roofline: isochrones, which are lines of equal least
 * time (of the bytes or of the FLOPs, whichever is longer), and the diagonal between the
 * two regions, where both times are equal.
 */
#include <math.h>

#include "plot/figure.h"

static double value_at(const struct rfl_axis *a, double at)
{
	return a->min * pow(a->max / a->min, (at - a->from) / (a->to - a->from));
}

bool rfl_draw__is_memory_side(const struct rfl_figure *f, double px, double py)
{
	return value_at(&f->x, px) > value_at(&f->y, py);
}

/* The diagonal in the plot. @return false if the plot is on one side of it */
static bool diagonal(const struct rfl_figure *f, struct rfl_xy ends[2])
{
	const double lo = fmax(f->x.min, f->y.min), hi = fmin(f->x.max, f->y.max);

	ends[0] = (struct rfl_xy){ rfl_axis_at(&f->x, lo), rfl_axis_at(&f->y, lo) };
	ends[1] = (struct rfl_xy){ rfl_axis_at(&f->x, hi), rfl_axis_at(&f->y, hi) };
	return lo < hi;
}

void rfl_draw__time_ground(struct rfl_figure *f)
{
	const struct rfl_box *b = &f->plot;
	const double right = b->x + b->w, bottom = b->y + b->h;
	struct rfl_xy p[5];
	size_t n = 2;

	if (!rfl_theme_is_tinted(f->theme))
		return;
	if (!diagonal(f, p)) {
		rfl_scene_rect(f->scene, *b,
			       rfl_draw__ground_color(f, b->x + b->w / 2, b->y + b->h / 2));
		return;
	}
	rfl_scene_rect(f->scene, *b, f->theme->compute)->id = "ground-compute";
	/* from the ends of the diagonal, around the lower right corner */
	if (f->x.max > f->y.max)
		p[n++] = (struct rfl_xy){ right, b->y };
	p[n++] = (struct rfl_xy){ right, bottom };
	if (f->x.min > f->y.min)
		p[n++] = (struct rfl_xy){ b->x, bottom };
	rfl_scene_polygon(f->scene, p, n, f->theme->memory)->id = "ground-memory";
}

static void draw_line(struct rfl_figure *f, const char *id, struct rfl_xy from, struct rfl_xy to,
		      struct rfl_color color, double width)
{
	rfl_scene_line(f->scene, from.x, from.y, to.x, to.y, color, width)->id = id;
	rfl_place_add(f->place, RFL_OBSTACLE_QUIET, RFL_NO_OWNER,
		      rfl_hull_band(from.x, from.y, to.x, to.y, width));
}

/* Whether a tick has an isochrone: it is labelled on each axis that has it. */
static bool has_isochrone(const struct rfl_figure *f, const struct rfl_tick *t)
{
	bool labelled = t->labelled;

	for (size_t i = 0; i < f->x.nticks; i++)
		if (fabs(f->x.ticks[i].value / t->value - 1) < 1e-6)
			labelled = labelled && f->x.ticks[i].labelled;
	return labelled && t->value > f->y.min * 1.001 && t->value > f->x.min * 1.001;
}

void rfl_draw__isochrones(struct rfl_figure *f)
{
	const double left = f->plot.x, bottom = f->plot.y + f->plot.h, thin = SZ(f, stroke_quiet);
	const struct rfl_color color = f->theme->roof_quiet;
	struct rfl_xy ends[2];

	for (const struct rfl_tick *t = f->y.ticks; t < f->y.ticks + f->y.nticks; t++) {
		const struct rfl_xy corner = { rfl_axis_at(&f->x, fmin(t->value, f->x.max)),
					       rfl_axis_at(&f->y, t->value) };

		if (!has_isochrone(f, t))
			continue;
		draw_line(f, "isochrone-flops", (struct rfl_xy){ left, corner.y }, corner, color,
			  thin);
		if (t->value <= f->x.max)
			draw_line(f, "isochrone-bytes", corner, (struct rfl_xy){ corner.x, bottom },
				  color, thin);
	}
	/* corner above the plot: only the vertical leg is in it */
	for (const struct rfl_tick *t = f->x.ticks; t < f->x.ticks + f->x.nticks; t++)
		if (t->labelled && t->value > f->y.max * 1.001) {
			const double px = rfl_axis_at(&f->x, t->value);

			draw_line(f, "isochrone-bytes", (struct rfl_xy){ px, f->plot.y },
				  (struct rfl_xy){ px, bottom }, color, thin);
		}
	if (diagonal(f, ends))
		draw_line(f, "diagonal", ends[0], ends[1], f->theme->roof,
			  0.8 * SZ(f, stroke_roof));
}

/* Label the regions at an edge next to the upper left and the lower right corner, between
 * isochrones.
 */
static void label_regions(struct rfl_figure *f)
{
	const struct rfl_box *b = &f->plot;
	const double s = f->scale, size = SZ(f, ceiling_quiet);
	bool compute = false, memory = false;

	for (int i = 0; i < 12; i++) {
		compute = compute ||
			  rfl_draw__word(f, "label-compute", "compute-bound", size, b->x + 9 * s,
					 b->y + (8 + 7 * i) * s + RFL_TEXT_CAP * size,
					 RFL_ANCHOR_START, 2 * s, s);
		memory = memory || rfl_draw__word(f, "label-memory", "memory-bound", size,
						  b->x + b->w - (9 + 12 * i) * s,
						  b->y + b->h - 9 * s, RFL_ANCHOR_END, 2 * s, s);
	}
}

void rfl_draw__isochrone_labels(struct rfl_figure *f)
{
	const double s = f->scale, size = SZ(f, ceiling_quiet);

	label_regions(f);
	for (const struct rfl_tick *t = f->y.ticks; t < f->y.ticks + f->y.nticks; t++) {
		const double px = rfl_axis_at(&f->x, t->value), py = rfl_axis_at(&f->y, t->value);
		const char *text = SAY(f, "%s ms", rfl_draw__tick_text(f, t->value));

		if (has_isochrone(f, t) && t->value < f->x.max && t->value < f->y.max &&
		    !rfl_draw__word(f, "label-isochrone", text, size, px + 5 * s, py + 13 * s,
				    RFL_ANCHOR_START, s, s))
			(void)rfl_draw__word(f, "label-isochrone", text, size, px - 5 * s,
					     py - 6 * s, RFL_ANCHOR_END, s, s);
	}
}
