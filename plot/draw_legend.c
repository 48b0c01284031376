/*
 * draw_legend.c - "Reading the marks": what each sign means, only those that are in the picture. In
 * a panel the entries are under each other; in a strip under the axis they flow in lines.
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
	double line_h;
	bool flow, draw;
};

/* What a sign means; NULL when it is not in the picture. @param at  where to draw it; NULL: nowhere
 */
static const char *sign_text(struct rfl_figure *f, enum sign sign, const struct rfl_xy *at)
{
	const double s = f->scale, r = SZ(f, marker), thin = SZ(f, stroke_mark);
	const double x = at ? at->x : 0, y = at ? at->y : 0;
	const struct rfl_color main = f->theme->category[0], ink = f->theme->ink;
	const char *source = f->marks[0].point->step_source;
	struct rfl_scene *sc = f->scene;

	switch (sign) {
	case SIGN_USED:
		if (at)
			rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x, y, r, main, ink, thin);
		return f->used;
	case SIGN_BEST:
		if (at)
			rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x, y, r * 0.94, RFL_COLOR_NONE,
					 main, 1.7 * s);
		for (size_t i = 0; i < f->nmarks; i++)
			if (!isnan(f->marks[i].px_best))
				return f->best;
		return NULL;
	case SIGN_SPREAD:
		if (at)
			rfl_scene_line(sc, x, y - 7 * s, x, y + 7 * s, ink, 1.2 * s);
		if (!f->has_errors)
			return NULL;
		return source && *source ? rfl_scene_printf(sc, "uncertainty: %s", source)
					 : "uncertainty of rate or intensity";
	case SIGN_HEADROOM:
		if (at)
			rfl_scene_line(sc, x, y - 7 * s, x, y + 7 * s, main, SZ(f, stroke_thin))
				->dash = RFL_DASH_DASHED;
		return f->has_whiskers ? "headroom: times faster at this intensity, at best" : NULL;
	case SIGN_BAND:
		if (at)
			rfl_scene_rect(sc, (struct rfl_box){ x - 7 * s, y - 5 * s, 14 * s, 10 * s },
				       f->theme->band);
		for (size_t i = 0; i < f->nceilings; i++)
			if (f->ceilings[i].primary && f->ceilings[i].hi > f->ceilings[i].lo)
				return "spread of the measured ceiling";
		return NULL;
	case SIGN_ABOVE:
		if (at)
			rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x, y, r, main, f->theme->alarm,
					 2.4 * s);
		return f->has_above ? "above its roof: see the note below" : NULL;
	case SIGN_EDGE:
		if (at)
			rfl_scene_marker(sc, RFL_MARKER_RIGHT, x, y, r, main, ink, thin);
		return f->has_edges ? "arrow: lies beyond the edge of the plot" : NULL;
	case SIGN_NUMBER:
		if (at)
			rfl_draw__text(f, "", "7", x, y + RFL_TEXT_CAP / 2 * SZ(f, legend),
				       SZ(f, label_second), ink, RFL_ANCHOR_MIDDLE);
		if (!f->has_numbers)
			return NULL;
		return f->has_panel
			       ? "number: line of the table, in the order of the points file"
			       : "number: line among the points of the environment in their file";
	case SIGN_COUNT:
		break;
	}
	return NULL;
}

/* Room for an entry of some width; a new line when there is none. */
static void advance(struct pen *pen, double width)
{
	if (pen->x > pen->box.x && pen->x + width > pen->box.x + pen->box.w) {
		pen->x = pen->box.x;
		pen->y += pen->line_h;
	}
}

static void entry(struct rfl_figure *f, struct pen *pen, enum sign sign, const char *text)
{
	double s = f->scale, size = SZ(f, legend), indent = 24 * s;
	const char *lines[3];
	size_t n = rfl_figure__wrap(f, text, size, pen->box.w - indent, lines, 3);
	double width = indent + (n ? rfl_text_width(lines[0], RFL_FACE_REGULAR, size) : 0);

	advance(pen, pen->flow ? width : pen->box.w);
	if (pen->draw) {
		const struct rfl_xy at = { pen->x + 8 * s, pen->y - RFL_TEXT_CAP / 2 * size };

		(void)sign_text(f, sign, &at);
		for (size_t i = 0; i < n; i++)
			rfl_draw__text(f, "legend", lines[i], pen->x + indent,
				       pen->y + (double)i * 13 * s, size, f->theme->ink,
				       RFL_ANCHOR_START);
	}
	if (pen->flow && n == 1) {
		pen->x += width + 18 * s;
	} else {
		pen->y += pen->line_h + (n > 1 ? (double)(n - 1) * 13 * s : 0);
		pen->x = pen->box.x;
	}
}

/* One of several small signs in a line: a shape, or a colour in a square, and what it stands for.
 */
static void chip(struct rfl_figure *f, struct pen *pen, enum rfl_marker shape, bool square,
		 struct rfl_color color, const char *text)
{
	double s = f->scale, size = SZ(f, legend), indent = 18 * s, cy;
	const char *fit =
		rfl_words_fit(f->scene, text, RFL_FACE_REGULAR, size, pen->box.w - indent);
	double width = indent + rfl_text_width(fit, RFL_FACE_REGULAR, size);

	advance(pen, width);
	cy = pen->y - RFL_TEXT_CAP / 2 * size;
	if (pen->draw && square)
		rfl_scene_rect(f->scene,
			       (struct rfl_box){ pen->x + 2 * s, cy - 5 * s, 10 * s, 10 * s },
			       color);
	else if (pen->draw)
		rfl_scene_marker(f->scene, shape, pen->x + 8 * s, cy, 5 * s, color, f->theme->ink,
				 SZ(f, stroke_mark) * 0.8);
	if (pen->draw)
		rfl_draw__text(f, "legend", fit, pen->x + indent, pen->y, size, f->theme->ink,
			       RFL_ANCHOR_START);
	pen->x += width + 12 * s;
}

static void end_chips(struct pen *pen)
{
	if (!pen->flow && pen->x > pen->box.x) {
		pen->x = pen->box.x;
		pen->y += pen->line_h;
	}
}

double rfl_draw__legend(struct rfl_figure *f, struct rfl_box box, bool draw)
{
	const double s = f->scale;
	const bool both = f->by == RFL_BY_MODEL; /* shape and colour stand for the same */
	struct pen pen = { .box = box,
			   .x = box.x,
			   .y = box.y + 12 * s,
			   .line_h = 18 * s,
			   .draw = draw,
			   .flow = !f->has_panel };

	if (!pen.flow) {
		if (draw)
			rfl_draw__text(f, "panel-heading", "Reading the marks", box.x, pen.y,
				       SZ(f, heading), f->theme->ink, RFL_ANCHOR_START)
				->at.text.face = RFL_FACE_BOLD;
		pen.y += 21 * s;
	}
	for (size_t i = 0; i < f->nshapes && (f->nshapes > 1 || both); i++)
		chip(f, &pen, (enum rfl_marker)i, false,
		     both ? f->theme->category[f->color_index[i % f->ncolors]] : f->theme->paper,
		     f->shapes[i]);
	end_chips(&pen);
	for (size_t i = 0; i < f->ncolors && !both; i++)
		chip(f, &pen, RFL_MARKER_CIRCLE, true, f->theme->category[f->color_index[i]],
		     f->by == RFL_BY_BATCH ? rfl_scene_printf(f->scene, "batch %s", f->colors[i])
					   : f->colors[i]);
	end_chips(&pen);
	for (int i = 0; i < SIGN_COUNT; i++) {
		const char *text = sign_text(f, (enum sign)i, NULL);

		if (text)
			entry(f, &pen, (enum sign)i, text);
	}
	if (pen.flow && pen.x > box.x)
		pen.y += pen.line_h;
	return pen.y - pen.line_h + 6 * s - box.y;
}
