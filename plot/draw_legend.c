/*
 * draw_legend.c - "Reading the marks": what each sign means, only those that are in the picture. In
 * a panel the entries stand under each other; in a strip under the axis they flow in lines.
 */
#include <math.h>

#include "plot/figure.h"

enum sign {
	SIGN_USED,
	SIGN_BEST,
	SIGN_SPREAD,
	SIGN_HEADROOM,
	SIGN_BAND,
	SIGN_ABOVE,
	SIGN_EDGE,
	SIGN_NUMBER,
	SIGN_COUNT,
};

/* Where the next entry goes. */
struct pen {
	struct rfl_box box;
	double x, y; /* of the next entry: left, baseline */
	bool flow, draw;
};

static double line_h(const struct rfl_figure *f)
{
	return 18 * f->scale;
}

static const char *sign_text(struct rfl_figure *f, enum sign sign)
{
	const char *source = f->marks[0].point->step_source;

	switch (sign) {
	case SIGN_USED:
		return f->used;
	case SIGN_BEST:
		return f->best;
	case SIGN_SPREAD:
		return source && *source ? rfl_scene_printf(f->scene, "uncertainty: %s", source)
					 : "uncertainty of rate or intensity";
	case SIGN_HEADROOM:
		return "headroom: times faster at this intensity, at best";
	case SIGN_BAND:
		return "spread of the measured ceiling";
	case SIGN_ABOVE:
		return "above its roof: see the note below";
	case SIGN_EDGE:
		return "arrow: lies beyond the edge of the plot";
	case SIGN_NUMBER:
		return f->has_panel
			       ? "number: line of the table, in the order of the points file"
			       : "number: line among the points of the environment in their file";
	case SIGN_COUNT:
		break;
	}
	return "";
}

static bool sign_used(const struct rfl_figure *f, enum sign sign)
{
	switch (sign) {
	case SIGN_USED:
		return true;
	case SIGN_BEST:
		for (size_t i = 0; i < f->nmarks; i++)
			if (!isnan(f->marks[i].px_best))
				return true;
		return false;
	case SIGN_SPREAD:
		return f->has_errors;
	case SIGN_HEADROOM:
		return f->has_whiskers;
	case SIGN_BAND:
		for (size_t i = 0; i < f->nceilings; i++)
			if (f->ceilings[i].primary && f->ceilings[i].hi > f->ceilings[i].lo)
				return true;
		return false;
	case SIGN_ABOVE:
		return f->has_above;
	case SIGN_EDGE:
		return f->has_edges;
	case SIGN_NUMBER:
		return f->has_numbers;
	case SIGN_COUNT:
		break;
	}
	return false;
}

static void draw_sign(struct rfl_figure *f, enum sign sign, double x, double y)
{
	double s = f->scale, r = SZ(f, marker);
	struct rfl_color main = f->theme->category[0], none = RFL_COLOR_NONE;

	switch (sign) {
	case SIGN_USED:
		rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, x, y, r, main, f->theme->ink,
				 SZ(f, stroke_mark));
		break;
	case SIGN_BEST:
		rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, x, y, r * 0.94, none, main, 1.7 * s);
		break;
	case SIGN_SPREAD:
		rfl_scene_line(f->scene, x, y - 7 * s, x, y + 7 * s, f->theme->ink, 1.2 * s);
		break;
	case SIGN_HEADROOM:
		rfl_scene_line(f->scene, x, y - 7 * s, x, y + 7 * s, main, SZ(f, stroke_thin))
			->dash = RFL_DASH_DASHED;
		break;
	case SIGN_BAND:
		rfl_scene_rect(f->scene, (struct rfl_box){ x - 7 * s, y - 5 * s, 14 * s, 10 * s },
			       f->theme->band);
		break;
	case SIGN_ABOVE:
		rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, x, y, r, main, f->theme->alarm,
				 2.4 * s);
		break;
	case SIGN_EDGE:
		rfl_scene_marker(f->scene, RFL_MARKER_RIGHT, x, y, r, main, f->theme->ink,
				 SZ(f, stroke_mark));
		break;
	case SIGN_NUMBER:
	case SIGN_COUNT:
		break;
	}
}

/* Room for an entry of some width; a new line when there is none. */
static void advance(const struct rfl_figure *f, struct pen *pen, double width)
{
	if (pen->x > pen->box.x && pen->x + width > pen->box.x + pen->box.w) {
		pen->x = pen->box.x;
		pen->y += line_h(f);
	}
}

static void entry(struct rfl_figure *f, struct pen *pen, enum sign sign)
{
	double s = f->scale, size = SZ(f, legend), indent = 24 * s;
	double room = pen->box.w - indent;
	const char *lines[3];
	size_t n = rfl_figure__wrap(f, sign_text(f, sign), size, room, lines, 3);
	double width = indent + (n ? rfl_text_width(lines[0], RFL_FACE_REGULAR, size) : 0);

	advance(f, pen, pen->flow ? width : pen->box.w);
	if (pen->draw) {
		draw_sign(f, sign, pen->x + 8 * s, pen->y - RFL_TEXT_CAP / 2 * size);
		if (sign == SIGN_NUMBER) {
			struct rfl_prim *p = rfl_scene_text(f->scene, "7", pen->x + 8 * s, pen->y,
							    SZ(f, label_second), f->theme->ink);

			p->at.text.anchor = RFL_ANCHOR_MIDDLE;
		}
		for (size_t i = 0; i < n; i++)
			rfl_scene_text(f->scene, lines[i], pen->x + indent,
				       pen->y + (double)i * 13 * s, size, f->theme->ink)
				->id = "legend";
	}
	if (pen->flow && n == 1) {
		pen->x += width + 18 * s;
	} else {
		pen->y += line_h(f) + (n > 1 ? (double)(n - 1) * 13 * s : 0);
		pen->x = pen->box.x;
	}
}

/* One of several small signs in a line: a shape or a colour and what it stands for. */
static void chip(struct rfl_figure *f, struct pen *pen, enum rfl_marker shape, bool square,
		 struct rfl_color color, const char *text)
{
	double s = f->scale, size = SZ(f, legend), indent = 18 * s;
	const char *fit =
		rfl_words_fit(f->scene, text, RFL_FACE_REGULAR, size, pen->box.w - indent);
	double width = indent + rfl_text_width(fit, RFL_FACE_REGULAR, size);
	double cy;

	advance(f, pen, width); /* moves the pen */
	cy = pen->y - RFL_TEXT_CAP / 2 * size;
	if (pen->draw && square)
		rfl_scene_rect(f->scene,
			       (struct rfl_box){ pen->x + 2 * s, cy - 5 * s, 10 * s, 10 * s },
			       color);
	else if (pen->draw)
		rfl_scene_marker(f->scene, shape, pen->x + 8 * s, cy, 5 * s, color, f->theme->ink,
				 SZ(f, stroke_mark) * 0.8);
	if (pen->draw)
		rfl_scene_text(f->scene, fit, pen->x + indent, pen->y, size, f->theme->ink)->id =
			"legend";
	pen->x += width + 12 * s;
}

static void new_line(const struct rfl_figure *f, struct pen *pen)
{
	if (!pen->flow && pen->x > pen->box.x) {
		pen->x = pen->box.x;
		pen->y += line_h(f);
	}
}

/* Which shape is which model, which colour which batch or precision. */
static void chips(struct rfl_figure *f, struct pen *pen)
{
	bool both = f->by == RFL_BY_MODEL;

	for (size_t i = 0; i < f->nshapes && (f->nshapes > 1 || both); i++) {
		struct rfl_color color = f->theme->paper;

		if (both)
			color = f->theme->category[f->color_index[i % f->ncolors]];
		chip(f, pen, (enum rfl_marker)i, false, color, f->shapes[i]);
	}
	new_line(f, pen);
	for (size_t i = 0; i < f->ncolors && !both; i++)
		chip(f, pen, RFL_MARKER_CIRCLE, true, f->theme->category[f->color_index[i]],
		     f->by == RFL_BY_BATCH ? rfl_scene_printf(f->scene, "batch %s", f->colors[i])
					   : f->colors[i]);
	new_line(f, pen);
}

double rfl_draw__legend(struct rfl_figure *f, struct rfl_box box, bool draw)
{
	double s = f->scale;
	struct pen pen = {
		.box = box, .x = box.x, .y = box.y + 12 * s, .draw = draw, .flow = !f->has_panel
	};

	if (!pen.flow) {
		if (draw) {
			struct rfl_prim *p = rfl_scene_text(f->scene, "Reading the marks", box.x,
							    pen.y, SZ(f, heading), f->theme->ink);

			p->at.text.face = RFL_FACE_BOLD;
			p->id = "panel-heading";
		}
		pen.y += 21 * s;
	}
	chips(f, &pen);
	for (int i = 0; i < SIGN_COUNT; i++)
		if (sign_used(f, (enum sign)i))
			entry(f, &pen, (enum sign)i);
	if (pen.flow && pen.x > box.x)
		pen.y += line_h(f);
	return pen.y - line_h(f) + 6 * s - box.y;
}
