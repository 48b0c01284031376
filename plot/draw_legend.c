/*
 * draw_legend.c - the legend, "Reading the marks", and the list of names that continues the table
 * or is a part of the legend. Without a panel, the legend is in a strip below the axis.
 */
#include <math.h>

#include "plot/figure.h"

enum sign {
	SIGN_USED,
	SIGN_BEST,
	SIGN_LEVELS,
	SIGN_ISOCHRONE,
	SIGN_SPREAD,
	SIGN_HEADROOM,
	SIGN_BAND,
	SIGN_PRODUCT,
	SIGN_ABOVE,
	SIGN_EDGE,
	SIGN_SERIES,
	SIGN_NUMBER,
	SIGN_COUNT,
};

/* Position of the next legend entry. */
struct pen {
	struct rfl_box box;
	double x, y; /* left end and baseline of the next entry */
	double line_h;
	bool flow;
};

static void put_text(struct rfl_figure *f, const char *text, double x, double y)
{
	rfl_draw__text(f, "legend", text, x, y, SZ(f, legend), f->theme->ink, RFL_ANCHOR_START);
}

/* Draw a sign. @return its meaning; NULL if the figure does not contain it */
static const char *put_sign(struct rfl_figure *f, enum sign sign, double x, double y)
{
	const double s = f->scale, r = SZ(f, marker), thin = SZ(f, stroke_mark);
	const struct rfl_color main = f->theme->leader, ink = f->theme->ink;
	const char *source = f->marks[0].point->step_source;
	struct rfl_scene *sc = f->scene;
	const char *const what = !f->joins_contexts ? "batch"
				 : f->joins_batches ? "batch or context"
						    : "context";

	switch (sign) {
	case SIGN_USED:
		rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x, y, r, main, ink, thin);
		return f->used;
	case SIGN_BEST:
		rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x, y, r * 0.94, RFL_COLOR_NONE, main,
				 1.7 * s);
		for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++)
			if (m->px_best > 0)
				return f->best;
		return NULL;
	case SIGN_LEVELS:
		for (int i = 0; i <= RFL_FIG_CACHES && f->by == RFL_BY_LEVEL; i++)
			rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x + (i - 1) * 5 * s, y, 3 * s,
					 f->palette[i], ink, thin);
		return f->by == RFL_BY_LEVEL
			       ? "one point: compare each mark with the roof of its level"
			       : NULL;
	case SIGN_ISOCHRONE:
		rfl_scene_line(sc, x - 7 * s, y - 5 * s, x + 4 * s, y - 5 * s, f->theme->roof_quiet,
			       SZ(f, stroke_quiet));
		rfl_scene_line(sc, x + 4 * s, y - 5 * s, x + 4 * s, y + 6 * s, f->theme->roof_quiet,
			       SZ(f, stroke_quiet));
		return rfl_figure__is_time(f) ? "isochrone: equal least time (bytes or FLOPs)"
					      : NULL;
	case SIGN_SPREAD:
		rfl_scene_line(sc, x, y - 7 * s, x, y + 7 * s, ink, 1.2 * s);
		if (!f->has_errors)
			return NULL;
		return source && *source ? SAY(f, "uncertainty: %s", source)
					 : "uncertainty of rate or intensity";
	case SIGN_HEADROOM:
		rfl_scene_line(sc, x, y - 7 * s, x, y + 7 * s, main, SZ(f, stroke_thin))->dash =
			RFL_DASH_DASHED;
		return !f->has_whiskers         ? NULL
		       : rfl_figure__is_time(f) ? "distance to the measured time: possible speedup"
						: "headroom: possible speedup at this intensity";
	case SIGN_BAND:
		rfl_scene_rect(sc, (struct rfl_box){ x - 7 * s, y - 5 * s, 14 * s, 10 * s },
			       f->theme->band);
		for (size_t i = 0; i < f->nceilings; i++)
			if (f->ceilings[i].primary && f->ceilings[i].hi > f->ceilings[i].lo)
				return "spread of the measured ceiling";
		return NULL;
	case SIGN_PRODUCT:
		rfl_scene_line(sc, x - 7 * s, y, x + 7 * s, y, f->theme->roof_quiet,
			       SZ(f, stroke_quiet))
			->dash = RFL_DASH_DOTTED;
		for (size_t i = 0; i < f->nceilings; i++)
			if (f->ceilings[i].dash == RFL_DASH_DOTTED)
				return "attained by a matrix product of the framework";
		return NULL;
	case SIGN_ABOVE:
		rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x, y, r, main, f->theme->alarm, 2.4 * s);
		rfl_draw__hatch(f, "", RFL_MARKER_CIRCLE, (struct rfl_xy){ x, y }, r - 1.2 * s);
		return f->has_above ? "hatched: above its roof, see the note below" : NULL;
	case SIGN_EDGE:
		rfl_scene_marker(sc, RFL_MARKER_RIGHT, x, y, r, main, ink, thin);
		return f->has_edges ? "arrow: point beyond the edge of the plot" : NULL;
	case SIGN_SERIES:
		rfl_scene_line(sc, x - 7 * s, y, x + 7 * s, y, main, 1.1 * s);
		if (f->nbefore)
			return SAY(f, "arrow: from its position in %s (grey)",
				   f->in->before_name ? f->in->before_name : "the earlier points");
		if (!f->has_series)
			return NULL;
		if (f->in->kind != RFL_PLOT_TRAJECTORY)
			return !f->joins_contexts ? "line: batches of one configuration, in order"
			       : !f->joins_batches
				       ? "line: context lengths of one configuration, in order"
				       : "line: batches or context lengths of one configuration, "
					 "in order";
		return f->stops ? SAY(f, "arrows: %s %s", what, f->stops)
				: SAY(f, "arrows: from the smallest %s to the largest", what);
	case SIGN_NUMBER:
		rfl_draw__text(f, "", "7", x, y + RFL_TEXT_CAP / 2 * SZ(f, legend),
			       SZ(f, label_second), ink, RFL_ANCHOR_MIDDLE);
		if (!f->has_numbers)
			return NULL;
		return f->has_panel ? "number: row of the table, in the order of the points file"
		       : f->has_key || f->side.columns
			       ? "number: see the list of names"
			       : "number: row among the points of the environment";
	case SIGN_COUNT:
		break;
	}
	return NULL;
}

/* Begin a new line if the entry does not fit in the current one. */
static void advance(struct pen *pen, double width)
{
	if (pen->x > pen->box.x && pen->x + width > pen->box.x + pen->box.w) {
		pen->x = pen->box.x;
		pen->y += pen->line_h;
	}
}

/* Draw a sign with its meaning if the figure contains it. */
static void entry(struct rfl_figure *f, struct pen *pen, enum sign sign)
{
	const double s = f->scale, size = SZ(f, legend), indent = 24 * s;
	const size_t before = f->scene->n;
	const char *text = put_sign(f, sign, 0, 0), *lines[3];
	double width = indent;
	size_t n;

	f->scene->n = before;
	if (!text)
		return;
	n = rfl_figure__wrap(f, text, size, pen->box.w - indent, lines, 3);
	if (n)
		width += rfl_width(lines[0], size);
	advance(pen, pen->flow ? width : pen->box.w);
	(void)put_sign(f, sign, pen->x + 8 * s, pen->y - RFL_TEXT_CAP / 2 * size);
	for (size_t i = 0; i < n; i++)
		put_text(f, lines[i], pen->x + indent, pen->y + (double)i * 13 * s);
	if (pen->flow && n == 1) {
		pen->x += width + 18 * s;
	} else {
		pen->y += pen->line_h + (n > 1 ? (double)(n - 1) * 13 * s : 0);
		pen->x = pen->box.x;
	}
}

/* Draw a shape or a coloured square and its meaning; several may share a line. */
static void chip(struct rfl_figure *f, struct pen *pen, enum rfl_marker shape, bool square,
		 struct rfl_color color, const char *text)
{
	const double s = f->scale, size = SZ(f, legend), indent = 18 * s;
	double cy;

	text = rfl_words_fit(f->scene, text, RFL_FACE_REGULAR, size, pen->box.w - indent);
	advance(pen, indent + rfl_width(text, size));
	cy = pen->y - RFL_TEXT_CAP / 2 * size;
	if (square)
		rfl_scene_rect(f->scene,
			       (struct rfl_box){ pen->x + 2 * s, cy - 5 * s, 10 * s, 10 * s },
			       color);
	else
		rfl_scene_marker(f->scene, shape, pen->x + 8 * s, cy, 5 * s, color, f->theme->ink,
				 SZ(f, stroke_mark) * 0.8);
	put_text(f, text, pen->x + indent, pen->y);
	pen->x += indent + rfl_width(text, size) + 12 * s;
}

static void end_chips(struct pen *pen)
{
	if (!pen->flow && pen->x > pen->box.x) {
		pen->x = pen->box.x;
		pen->y += pen->line_h;
	}
}

/* Draw the colours. Many batches are drawn as a strip with names at its ends. */
static void color_chips(struct rfl_figure *f, struct pen *pen)
{
	const double s = f->scale, w = 130 * s / (double)f->ncolors;
	const char *first = f->colors[0], *last = f->colors[f->ncolors - 1];
	const double left = rfl_width(first, SZ(f, legend)), right = rfl_width(last, SZ(f, legend));

	if (f->ncolors <= RFL_FIG_BATCHES) {
		for (size_t i = 0; i < f->ncolors; i++)
			chip(f, pen, RFL_MARKER_CIRCLE, true, f->palette[i], f->colors[i]);
		return;
	}
	advance(pen, 154 * s + left + right);
	put_text(f, first, pen->x, pen->y);
	rfl_draw__text(f, "legend", last, pen->x + 142 * s + left + right, pen->y, SZ(f, legend),
		       f->theme->ink, RFL_ANCHOR_END);
	for (size_t i = 0; i < f->ncolors; i++)
		rfl_scene_rect(f->scene,
			       (struct rfl_box){ pen->x + 6 * s + (double)i * w + left,
						 pen->y - 9 * s, w, 10 * s },
			       f->palette[i]);
	pen->x += 154 * s + left + right;
}

/* Draw circles with the areas of three shares of the time. */
static void area_chips(struct rfl_figure *f, struct pen *pen)
{
	static const struct {
		double share;
		const char *text;
	} sizes[] = { { .01, "1 %" }, { .1, "10 %" }, { .5, "50 % of the time" } };
	const double s = f->scale, size = SZ(f, legend);
	double room = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++)
		room += 2 * rfl_draw__share_radius(f, sizes[i].share) + 18 * s +
			rfl_width(sizes[i].text, size);
	advance(pen, room);
	pen->y += 7 * s; /* the largest is higher than a line */
	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
		const double r = rfl_draw__share_radius(f, sizes[i].share);

		rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, pen->x + 2 * s + r,
				 pen->y - RFL_TEXT_CAP / 2 * size, r, f->theme->leader,
				 f->theme->ink, SZ(f, stroke_mark));
		put_text(f, sizes[i].text, pen->x + 7 * s + 2 * r, pen->y);
		pen->x += 2 * r + 18 * s + rfl_width(sizes[i].text, size);
	}
	pen->x = pen->box.x;
	pen->y += pen->line_h + 6 * s;
}

/* ---- the list of names ---- */

#define ROW_H 11.4 /* at scale 1 */

/* Name and position of a mark, for those with no label. */
static const char *position_text(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_figure__is_time(f)
		       ? SAY(f, "%s: %s ms", m->name, rfl_words_number(f->scene, m->time))
		       : SAY(f, "%s: AI %s, %s", m->name, rfl_words_number(f->scene, m->x),
			     rfl_figure__rate(f, m->y));
}

/* Width of a column of names. Until everything is drawn, any mark may still need its position. */
static double column_of(const struct rfl_figure *f, double scale)
{
	double widest = 60 * scale;

	for (size_t i = 0; i < f->nmarks; i++)
		widest = fmax(widest, rfl_width(f->has_positions ? position_text(f, &f->marks[i])
								 : f->marks[i].name,
						f->theme->table_head * scale));
	return widest + 38 * scale;
}

struct rfl_key rfl_draw__key_of(const struct rfl_figure *f, size_t from, double width, size_t most)
{
	struct rfl_key k = { .from = from, .scale = f->scale };

	k.columns = (size_t)fmin(fmax(width / column_of(f, f->scale), 1), (double)most);
	k.rows = (f->nmarks - from + k.columns - 1) / k.columns;
	k.column_w = width / (double)k.columns;
	return k;
}

struct rfl_key rfl_draw__key_in(const struct rfl_figure *f, double width, double height)
{
	const double least = RFL_LEAST_TEXT / f->theme->table_head;
	struct rfl_key k = { .scale = f->scale };

	for (;; k.scale = fmax(k.scale * 0.9, least)) {
		const double rows = floor(height / (ROW_H * k.scale));
		const bool last = k.scale <= least; /* cut the names */

		k.columns = rows < 1 ? 0 : (size_t)ceil((double)f->nmarks / rows);
		k.column_w = column_of(f, k.scale);
		if (k.columns && last)
			k.column_w = fmin(k.column_w, width / (double)k.columns);
		if (k.columns && k.column_w * (double)k.columns <= width + 1e-6 &&
		    k.column_w >= 98 * k.scale) {
			k.rows = (f->nmarks + k.columns - 1) / k.columns;
			return k;
		}
		if (last)
			return (struct rfl_key){ .columns = 0 };
	}
}

double rfl_draw__key_height(const struct rfl_key *k)
{
	return (double)k->rows * ROW_H * k->scale;
}

void rfl_draw__key(struct rfl_figure *f, const struct rfl_key *k, double x, double y)
{
	const double s = k->scale, size = f->theme->table_head * s;

	f->lists_all = true;
	for (size_t i = k->from; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		const size_t at = i - k->from;
		const double left = x + (double)(at / k->rows) * k->column_w;
		const double base = y + ((double)(at % k->rows + 1) * ROW_H - 2.4) * s;

		rfl_draw__text(f, rfl_draw__id(f, "key-number", m), SAY(f, "%d", m->number),
			       left + 20 * s, base, size, f->theme->soft, RFL_ANCHOR_END);
		rfl_draw__text(f, rfl_draw__id(f, "key", m),
			       rfl_words_fit_name(f->scene, m->lost ? position_text(f, m) : m->name,
						  size, k->column_w - 34 * s),
			       left + 26 * s, base, size, f->theme->ink, RFL_ANCHOR_START);
	}
}

void rfl_draw__heading(struct rfl_figure *f, const char *text, double y)
{
	rfl_draw__text(f, "panel-heading", text, f->panel.x, y, SZ(f, heading), f->theme->ink,
		       RFL_ANCHOR_START)
		->at.text.face = RFL_FACE_BOLD;
}

double rfl_draw__legend(struct rfl_figure *f, struct rfl_box box, bool draw)
{
	const double s = f->scale;
	const size_t before = f->scene->n;
	const bool both = f->by == RFL_BY_MODEL; /* both shape and colour stand for the model */
	struct pen pen = {
		.box = box, .x = box.x, .y = box.y + 12 * s, .line_h = 18 * s, .flow = !f->has_panel
	};

	if (!pen.flow) {
		rfl_draw__heading(f, "Reading the marks", pen.y);
		pen.y += 21 * s;
	}
	for (size_t i = 0; i < f->nshapes && (f->nshapes > 1 || both); i++)
		chip(f, &pen, (enum rfl_marker)i, false,
		     both ? f->palette[i % f->ncolors] : f->theme->paper, f->shapes[i]);
	end_chips(&pen);
	if (!both && f->by != RFL_BY_NONE)
		color_chips(f, &pen);
	end_chips(&pen);
	if (f->shares[0] > 0)
		area_chips(f, &pen);
	for (int i = 0; i < SIGN_COUNT; i++)
		entry(f, &pen, (enum sign)i);
	if (pen.flow && pen.x > box.x)
		pen.y += pen.line_h;
	if (f->has_key && pen.flow) {
		const struct rfl_key k = rfl_draw__key_of(f, 0, box.w, 8);

		if (draw)
			rfl_draw__key(f, &k, box.x, pen.y - 11 * s);
		pen.y += rfl_draw__key_height(&k);
	}
	if (!draw)
		f->scene->n = before;
	return pen.y - pen.line_h + 6 * s - box.y;
}
