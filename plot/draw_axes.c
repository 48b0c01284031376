/*
 * draw_axes.c - draws the background (tints, grid), the frame (axes, ticks, titles) and the caption
 * (title, subtitle, footnote), with helpers for drawing text.
 */
#include <math.h>

#include "plot/figure.h"

/* The x of a ridge point on the page, limited to the frame. */
static double knee_at(const struct rfl_figure *f, double knee)
{
	return fmin(fmax(rfl_axis_at(&f->x, knee), f->plot.x), f->plot.x + f->plot.w);
}

struct rfl_color rfl_draw__ground_color(const struct rfl_figure *f, double px, double py)
{
	if (rfl_figure__is_time(f))
		return rfl_draw__is_memory_side(f, px, py) ? f->theme->memory : f->theme->compute;
	return px < knee_at(f, f->knee_lo)    ? f->theme->memory
	       : px >= knee_at(f, f->knee_hi) ? f->theme->compute
					      : f->theme->paper;
}

const char *rfl_draw__id(const struct rfl_figure *f, const char *element, const struct rfl_mark *m)
{
	return SAY(f, "%s-%d", element, m->number);
}

struct rfl_prim *rfl_draw__text(struct rfl_figure *f, const char *id, const char *text, double x,
				double y, double size, struct rfl_color color,
				enum rfl_anchor anchor)
{
	struct rfl_prim *p = rfl_scene_text(f->scene, text, x, y, size, color);

	p->id = id;
	p->at.text.anchor = anchor;
	return p;
}

struct rfl_prim *rfl_draw__halo_text(struct rfl_figure *f, const char *id, const char *text,
				     double x, double y, double size, struct rfl_color color,
				     enum rfl_anchor anchor)
{
	struct rfl_prim *p = rfl_draw__text(f, id, text, x, y, size, color, anchor);

	p->at.text.halo = rfl_draw__ground_color(f, x, y);
	p->at.text.halo_width = SZ(f, halo);
	return p;
}

bool rfl_draw__word(struct rfl_figure *f, const char *id, const char *text, double size, double x,
		    double y, enum rfl_anchor anchor, double pad_x, double pad_y)
{
	const double w = rfl_width(text, size);
	const struct rfl_box box = rfl_text_box(x - w * anchor / 2, y, w, size);
	const struct rfl_hull hull = rfl_hull_box((struct rfl_box){
		box.x - pad_x, box.y - pad_y, box.w + 2 * pad_x, box.h + 2 * pad_y });

	if (!rfl_place_free(f->place, RFL_OBSTACLE_ALL, RFL_NO_OWNER, &hull))
		return false;
	rfl_draw__halo_text(f, id, text, x, y, size, f->theme->soft, anchor);
	rfl_place_add(f->place, RFL_OBSTACLE_TEXT, RFL_NO_OWNER, rfl_hull_box(box));
	return true;
}

void rfl_draw__ground(struct rfl_figure *f)
{
	const struct rfl_box *b = &f->plot;
	const struct rfl_axis *const axes[] = { &f->x, &f->y };
	/* no tint between several ridge points: there, the limit depends on the precision */
	const double lo = knee_at(f, f->knee_lo), hi = knee_at(f, f->knee_hi);

	if (rfl_figure__is_time(f)) {
		rfl_draw__time_ground(f);
	} else if (rfl_theme_is_tinted(f->theme)) {
		rfl_scene_rect(f->scene, (struct rfl_box){ b->x, b->y, lo - b->x, b->h },
			       f->theme->memory)
			->id = "ground-memory";
		rfl_scene_rect(f->scene, (struct rfl_box){ hi, b->y, b->x + b->w - hi, b->h },
			       f->theme->compute)
			->id = "ground-compute";
	}
	/* draw the lines of decades over the others */
	for (int k = 0; k < 4; k++) {
		const struct rfl_axis *a = axes[k % 2];
		const bool major = k >= 2;
		const struct rfl_color color = major ? f->theme->grid : f->theme->grid_minor;
		const double width = SZ(f, stroke_grid) * (major ? 1 : 0.8);

		for (size_t i = 0; i < a->nticks; i++) {
			double at = rfl_axis_at(a, a->ticks[i].value);

			if (a->ticks[i].major != major)
				continue;
			if (a == &f->x)
				rfl_scene_line(f->scene, at, b->y, at, b->y + b->h, color, width);
			else
				rfl_scene_line(f->scene, b->x, at, b->x + b->w, at, color, width);
		}
	}
}

const char *rfl_draw__tick_text(const struct rfl_figure *f, double value)
{
	const int power = (int)floor(log10(value) + 1e-9);

	return power < 5 && power > -5 ? SAY(f, "%.12g", value)
				       : SAY(f, "%.0fe%d", value / pow(10, power), power);
}

static void draw_ticks(struct rfl_figure *f, const struct rfl_axis *a)
{
	const bool is_x = a == &f->x;
	const double x = f->plot.x, y = f->plot.y + f->plot.h, s = f->scale, size = SZ(f, tick);

	for (const struct rfl_tick *t = a->ticks; t < a->ticks + a->nticks; t++) {
		const double at = rfl_axis_at(a, t->value);
		const double length = (t->labelled ? 5 : 3) * s;
		const double width = SZ(f, stroke_axis) * (t->labelled ? 1 : 0.6);
		const char *text;
		double most;

		if (is_x)
			rfl_scene_line(f->scene, at, y, at, y + length, f->theme->ink, width);
		else
			rfl_scene_line(f->scene, x - length, at, x, at, f->theme->ink, width);
		if (!t->labelled || !(is_x ? f->has_tick_x : f->has_tick_y))
			continue;
		text = rfl_draw__tick_text(f, t->value);
		/* the last label may be wider than the margin */
		most = f->scene->width - rfl_width(text, size) / 2 - 1;
		rfl_draw__text(f, is_x ? "tick-x" : "tick-y", text,
			       is_x ? fmin(at, most) : x - 9 * s,
			       is_x ? y + 18 * s : at + RFL_TEXT_CAP / 2 * size, size,
			       f->theme->ink, is_x ? RFL_ANCHOR_MIDDLE : RFL_ANCHOR_END);
	}
}

void rfl_draw__axes(struct rfl_figure *f)
{
	const struct rfl_box *b = &f->plot;
	double w = SZ(f, stroke_axis);
	struct rfl_color ink = f->theme->ink;

	rfl_scene_line(f->scene, b->x, b->y, b->x + b->w, b->y, f->theme->grid, SZ(f, stroke_grid));
	rfl_scene_line(f->scene, b->x + b->w, b->y, b->x + b->w, b->y + b->h, f->theme->grid,
		       SZ(f, stroke_grid));
	rfl_scene_line(f->scene, b->x, b->y, b->x, b->y + b->h, ink, w)->id = "axis-y";
	rfl_scene_line(f->scene, b->x, b->y + b->h, b->x + b->w, b->y + b->h, ink, w)->id =
		"axis-x";
	draw_ticks(f, &f->x);
	draw_ticks(f, &f->y);
}

/* The longest title for which the axis has room. */
static void draw_title(struct rfl_figure *f, bool is_x)
{
	static const char *const words[][3] = {
		{ "Arithmetic intensity (FLOP per byte of memory traffic)",
		  "Arithmetic intensity (FLOP/byte)", "FLOP/byte" },
		{ "Achieved performance (GFLOP/s)", "Performance (GFLOP/s)", "GFLOP/s" },
		{ "Achieved performance (TFLOP/s)", "Performance (TFLOP/s)", "TFLOP/s" },
		{ "Arithmetic intensity (FLOP per byte of the level's traffic)",
		  "Arithmetic intensity (FLOP/byte)", "FLOP/byte" },
		{ "Time to move the bytes at peak bandwidth (ms)", "Bytes at peak bandwidth (ms)",
		  "Bytes (ms)" },
		{ "Time to execute the FLOPs at the peak rate (ms)", "FLOPs at the peak rate (ms)",
		  "FLOPs (ms)" },
	};
	const int hierarchical = f->in->kind == RFL_PLOT_HIERARCHICAL;
	const char *const *row = words[rfl_figure__is_time(f) ? (is_x ? 4 : 5)
				       : is_x                 ? 3 * hierarchical
				       : f->unit > 1          ? 2
							      : 1];
	const struct rfl_box *b = &f->plot;
	const double s = f->scale, size = SZ(f, axis), room = is_x ? b->w : b->h;
	size_t i = 0;

	while (i < 2 && rfl_width(row[i], size) > room)
		i++;
	rfl_draw__text(f, is_x ? "title-x" : "title-y", row[i],
		       is_x ? b->x + b->w / 2 : b->x - f->theme->title_y * s,
		       is_x ? b->y + b->h + f->theme->title_x * s : b->y + b->h / 2, size,
		       f->theme->ink, RFL_ANCHOR_MIDDLE)
		->at.text.angle = is_x ? 0 : acos(0);
}

void rfl_draw__axis_titles(struct rfl_figure *f)
{
	draw_title(f, true);
	draw_title(f, false);
}

void rfl_draw__caption(struct rfl_figure *f)
{
	double s = f->scale, x = f->plot.x, room = f->scene->width - x - 20 * s;
	double size = SZ(f, title), y = (f->theme->top - 29) * s;
	double width = rfl_text_width(f->title, RFL_FACE_BOLD, size);
	const char **lines;
	size_t n;

	if (width > room)
		size = fmax(size * 0.75, size * room / width);
	if (f->has_title)
		rfl_draw__text(f, "title",
			       rfl_words_fit(f->scene, f->title, RFL_FACE_BOLD, size, room), x,
			       y - 21 * s, size, f->theme->ink, RFL_ANCHOR_START)
			->at.text.face = RFL_FACE_BOLD;
	if (f->has_title && *f->subtitle)
		rfl_draw__text(f, "subtitle",
			       rfl_words_fit(f->scene, f->subtitle, RFL_FACE_REGULAR,
					     SZ(f, subtitle), room),
			       x, y, SZ(f, subtitle), f->theme->soft, RFL_ANCHOR_START);
	if (!f->has_footnote)
		return;
	n = rfl_figure__note_lines(f, &lines);
	rfl_scene_line(f->scene, f->foot.x, f->foot.y, f->foot.x + f->foot.w, f->foot.y,
		       f->theme->faint, 0.8 * s)
		->id = "footnote-rule";
	for (size_t i = 0; i < n; i++)
		rfl_draw__text(f, SAY(f, "footnote-%zu", i + 1), lines[i], f->foot.x,
			       f->foot.y + (15 + 13 * (double)i) * s, SZ(f, footnote),
			       f->theme->soft, RFL_ANCHOR_START);
}
