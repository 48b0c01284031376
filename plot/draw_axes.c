/*
 * draw_axes.c - the ground (tints, grid) and the frame (axes, ticks, titles), and what stands
 * outside of the plot: title, subtitle, footnote.
 */
#include <math.h>

#include "plot/figure.h"

static double knee_at(const struct rfl_figure *f)
{
	double px = rfl_axis_at(&f->x, f->knee);

	return fmin(fmax(px, f->plot.x), f->plot.x + f->plot.w);
}

struct rfl_color rfl_draw__ground_color(const struct rfl_figure *f, double px)
{
	return px < knee_at(f) ? f->theme->memory : f->theme->compute;
}

static void draw_grid(struct rfl_figure *f, bool major)
{
	const struct rfl_box *b = &f->plot;
	struct rfl_color color = major ? f->theme->grid : f->theme->grid_minor;
	double width = SZ(f, stroke_grid) * (major ? 1 : 0.8);

	for (size_t i = 0; i < f->x.nticks; i++) {
		double px = rfl_axis_at(&f->x, f->x.ticks[i].value);

		if (f->x.ticks[i].major == major)
			rfl_scene_line(f->scene, px, b->y, px, b->y + b->h, color, width);
	}
	for (size_t i = 0; i < f->y.nticks; i++) {
		double py = rfl_axis_at(&f->y, f->y.ticks[i].value);

		if (f->y.ticks[i].major == major)
			rfl_scene_line(f->scene, b->x, py, b->x + b->w, py, color, width);
	}
}

void rfl_draw__ground(struct rfl_figure *f)
{
	const struct rfl_box *b = &f->plot;
	double px = knee_at(f);

	rfl_scene_rect(f->scene, (struct rfl_box){ b->x, b->y, px - b->x, b->h }, f->theme->memory)
		->id = "ground-memory";
	rfl_scene_rect(f->scene, (struct rfl_box){ px, b->y, b->x + b->w - px, b->h },
		       f->theme->compute)
		->id = "ground-compute";
	draw_grid(f, false);
	draw_grid(f, true);
}

static void draw_x_ticks(struct rfl_figure *f)
{
	double y = f->plot.y + f->plot.h, s = f->scale;

	for (size_t i = 0; i < f->x.nticks; i++) {
		const struct rfl_tick *t = &f->x.ticks[i];
		double px = rfl_axis_at(&f->x, t->value);
		struct rfl_prim *p;

		rfl_scene_line(f->scene, px, y, px, y + (t->labelled ? 5 : 3) * s, f->theme->ink,
			       SZ(f, stroke_axis) * (t->labelled ? 1 : 0.6));
		if (!t->labelled)
			continue;
		p = rfl_scene_text(f->scene, rfl_scene_printf(f->scene, "%.12g", t->value), px,
				   y + 18 * s, SZ(f, tick), f->theme->ink);
		p->at.text.anchor = RFL_ANCHOR_MIDDLE;
		p->id = "tick-x";
	}
}

static void draw_y_ticks(struct rfl_figure *f)
{
	double x = f->plot.x, s = f->scale;

	for (size_t i = 0; i < f->y.nticks; i++) {
		const struct rfl_tick *t = &f->y.ticks[i];
		double py = rfl_axis_at(&f->y, t->value);
		struct rfl_prim *p;

		rfl_scene_line(f->scene, x - (t->labelled ? 5 : 3) * s, py, x, py, f->theme->ink,
			       SZ(f, stroke_axis) * (t->labelled ? 1 : 0.6));
		if (!t->labelled)
			continue;
		p = rfl_scene_text(f->scene, rfl_scene_printf(f->scene, "%.12g", t->value),
				   x - 9 * s, py + RFL_TEXT_CAP / 2 * SZ(f, tick), SZ(f, tick),
				   f->theme->ink);
		p->at.text.anchor = RFL_ANCHOR_END;
		p->id = "tick-y";
	}
}

void rfl_draw__axes(struct rfl_figure *f)
{
	const struct rfl_box *b = &f->plot;
	double s = f->scale, w = SZ(f, stroke_axis);
	struct rfl_prim *p;

	rfl_scene_line(f->scene, b->x, b->y, b->x + b->w, b->y, f->theme->grid, SZ(f, stroke_grid));
	rfl_scene_line(f->scene, b->x + b->w, b->y, b->x + b->w, b->y + b->h, f->theme->grid,
		       SZ(f, stroke_grid));
	rfl_scene_line(f->scene, b->x, b->y, b->x, b->y + b->h, f->theme->ink, w)->id = "axis-y";
	rfl_scene_line(f->scene, b->x, b->y + b->h, b->x + b->w, b->y + b->h, f->theme->ink, w)
		->id = "axis-x";
	draw_x_ticks(f);
	draw_y_ticks(f);
	p = rfl_scene_text(f->scene, "Arithmetic intensity (FLOP per byte of memory traffic)",
			   b->x + b->w / 2, b->y + b->h + 42 * s, SZ(f, axis), f->theme->ink);
	p->at.text.anchor = RFL_ANCHOR_MIDDLE;
	p->id = "title-x";
	p = rfl_scene_text(f->scene,
			   rfl_scene_printf(f->scene, "Attained performance (%s)", f->unit_name),
			   b->x - 58 * s, b->y + b->h / 2, SZ(f, axis), f->theme->ink);
	p->at.text.anchor = RFL_ANCHOR_MIDDLE;
	p->at.text.angle = acos(0);
	p->id = "title-y";
}

static void draw_notes(struct rfl_figure *f)
{
	const char **lines;
	size_t n = rfl_figure__note_lines(f, &lines);
	double s = f->scale;

	rfl_scene_line(f->scene, f->foot.x, f->foot.y, f->foot.x + f->foot.w, f->foot.y,
		       f->theme->faint, 0.8 * s)
		->id = "footnote-rule";
	for (size_t i = 0; i < n; i++)
		rfl_scene_text(f->scene, lines[i], f->foot.x, f->foot.y + (15 + 13 * (double)i) * s,
			       SZ(f, footnote), f->theme->soft)
			->id = rfl_scene_printf(f->scene, "footnote-%zu", i + 1);
}

void rfl_draw__caption(struct rfl_figure *f)
{
	double s = f->scale, x = f->plot.x, room = f->scene->width - x - 20 * s;
	double size = SZ(f, title);
	double width = rfl_text_width(f->title, RFL_FACE_BOLD, size);
	const char *text;
	struct rfl_prim *p;

	if (width > room)
		size = fmax(size * 0.75, size * room / width);
	text = rfl_words_fit(f->scene, f->title, RFL_FACE_BOLD, size, room);
	p = rfl_scene_text(f->scene, text, x, 34 * s, size, f->theme->ink);
	p->at.text.face = RFL_FACE_BOLD;
	p->id = "title";
	if (*f->subtitle) {
		text = rfl_words_fit(f->scene, f->subtitle, RFL_FACE_REGULAR, SZ(f, subtitle),
				     room);
		rfl_scene_text(f->scene, text, x, 55 * s, SZ(f, subtitle), f->theme->soft)->id =
			"subtitle";
	}
	draw_notes(f);
}
