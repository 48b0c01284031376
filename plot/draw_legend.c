/*
 * draw_legend.c - the legend, "Reading the marks", and the list of names that continues the table
 * or is a part of the legend. Without a panel, the legend is in a strip below the axis.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

#define LINE_H 16 /* of a line of text, at scale 1 */

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

/* Styles that print a caption have a short legend: the caption has the rest of the sentence. */
static bool is_brief(const struct rfl_figure *f)
{
	return !f->has_footnote;
}

/* A text or, in a short legend, its part before the colon. */
static const char *either(const struct rfl_figure *f, const char *text)
{
	return text && is_brief(f) ? SAY(f, "%.*s", (int)strcspn(text, ":"), text) : text;
}

/* The sizes in whose order lines join marks. @param words  for batch, context and past */
static const char *joined(const struct rfl_figure *f, const char *const words[3])
{
	const char *text = "";

	for (int i = 0; i < 3; i++)
		if (f->joins & 1U << (RFL_BY_BATCH + i))
			text = rfl_words_join(f->scene, text, " or ", words[i]);
	return text;
}

/* The text for lines that join marks. */
static const char *series_text(const struct rfl_figure *f)
{
	static const char *const one[] = { "batch", "context", "past" };
	static const char *const many[] = { "batches", "context lengths", "lengths of the cache" };

	if (f->nbefore)
		return SAY(f, "arrow: from its position in %s (grey)",
			   f->in->before_name ? f->in->before_name : "the earlier points");
	if (!f->has_series)
		return NULL;
	if (f->in->kind == RFL_PLOT_TRAJECTORY)
		return f->stops ? SAY(f, "arrows: %s %s", joined(f, one), f->stops)
				: SAY(f, "arrows: from the smallest %s to the largest",
				      joined(f, one));
	return SAY(f, "%s of one configuration, in order", joined(f, many));
}

/* Whether a ceiling of the figure or of its parts has a property. */
static bool any_ceiling(const struct rfl_figure *f, bool (*has)(const struct rfl_fig_ceiling *))
{
	bool any = false;

	for (size_t i = 0; i < f->nceilings; i++)
		any = any || has(&f->ceilings[i]);
	for (size_t k = 0; k < f->nsubs; k++)
		any = any || any_ceiling(&f->subs[k], has);
	return any;
}

static bool has_band(const struct rfl_fig_ceiling *c)
{
	return c->primary && c->hi > c->lo;
}

static bool is_dotted(const struct rfl_fig_ceiling *c)
{
	return c->dash == RFL_DASH_DOTTED;
}

/* Begin a new line if the entry does not fit in the current one. */
static void advance(struct pen *pen, double width)
{
	if (pen->x > pen->box.x && pen->x + width > pen->box.x + pen->box.w) {
		pen->x = pen->box.x;
		pen->y += pen->line_h;
	}
}

/* Begin an entry with this text and write it. @return the centre of its sign */
static struct rfl_xy entry(struct rfl_figure *f, struct pen *pen, const char *text)
{
	const double s = f->scale, size = SZ(f, legend), indent = 24 * s;
	const char *lines[3];
	const size_t n = rfl_words_wrap(f->scene, text, RFL_FACE_REGULAR, size, pen->box.w - indent,
					lines, 3);
	const double width = indent + (n ? rfl_width(lines[0], size) : 0);
	struct rfl_xy at;

	advance(pen, pen->flow ? width : pen->box.w);
	at = (struct rfl_xy){ pen->x + 8 * s, pen->y - RFL_TEXT_CAP / 2 * size };
	for (size_t i = 0; i < n; i++)
		put_text(f, lines[i], pen->x + indent, pen->y + (double)i * 13 * s);
	if (pen->flow && n == 1) {
		pen->x += width + 14 * s;
	} else {
		pen->y += pen->line_h + (n > 1 ? (double)(n - 1) * 13 * s : 0);
		pen->x = pen->box.x;
	}
	return at;
}

/* Begin an entry unless the figure lacks what it explains. @param at  set to the centre of its sign
 */
static bool begin(struct rfl_figure *f, struct pen *pen, const char *text, struct rfl_xy *at)
{
	if (text)
		*at = entry(f, pen, text);
	return text != NULL;
}

static const char *spread_text(const struct rfl_figure *f)
{
	const char *source = f->marks[0].point->step_source;

	return !f->has_errors      ? NULL
	       : source && *source ? either(f, SAY(f, "uncertainty: %s", source))
				   : "uncertainty of rate or intensity";
}

static const char *number_text(const struct rfl_figure *f)
{
	return !f->has_numbers ? NULL
	       : f->has_panel  ? "number: row of the table, in the order of the points file"
	       : !f->has_key && !f->side.columns ? "number: row among the points of the environment"
	       : is_brief(f)                     ? NULL /* the list is next to it */
						 : "number: see the list of names";
}

/* What the marks and the lines mean. */
static void add_signs(struct rfl_figure *f, struct pen *pen)
{
	const double s = f->scale, r = SZ(f, marker), thin = SZ(f, stroke_mark);
	const double quiet = SZ(f, stroke_quiet);
	const struct rfl_color main = f->theme->leader, ink = f->theme->ink;
	const struct rfl_color line = f->theme->roof_quiet;
	const bool timed = rfl_figure__is_time(f);
	const char *best = NULL;
	struct rfl_scene *sc = f->scene;
	struct rfl_xy at;

	for (const struct rfl_mark *m = f->marks; m < f->marks + f->nmarks; m++)
		best = m->px_best > 0 ? either(f, f->best) : best;
	at = entry(f, pen, strncmp(f->used, "bytes:", 6) == 0 ? f->used : either(f, f->used));
	rfl_scene_marker(sc, RFL_MARKER_CIRCLE, at.x, at.y, r, main, ink, thin);
	if (begin(f, pen, best, &at))
		rfl_scene_marker(sc, RFL_MARKER_CIRCLE, at.x, at.y, r * 0.94, RFL_COLOR_NONE, main,
				 1.7 * s);
	if (f->by == RFL_BY_LEVEL) {
		at = entry(f, pen, "one point: compare each mark with the roof of its level");
		for (int i = 0; i <= RFL_FIG_CACHES; i++)
			rfl_scene_marker(sc, RFL_MARKER_CIRCLE, at.x + (i - 1) * 5 * s, at.y, 3 * s,
					 f->palette[i], ink, thin);
	}
	if (timed) {
		at = entry(f, pen, "isochrone: equal minimum time (bytes or FLOPs)");
		rfl_scene_line(sc, at.x - 7 * s, at.y - 5 * s, at.x + 4 * s, at.y - 5 * s, line,
			       quiet);
		rfl_scene_line(sc, at.x + 4 * s, at.y - 5 * s, at.x + 4 * s, at.y + 6 * s, line,
			       quiet);
	}
	if (begin(f, pen, spread_text(f), &at))
		rfl_scene_line(sc, at.x, at.y - 7 * s, at.x, at.y + 7 * s, ink, 1.2 * s);
	if (f->has_whiskers) {
		at = entry(f, pen,
			   timed ? "distance to the measured time: possible speedup"
				 : either(f, "headroom: possible speedup at this intensity"));
		rfl_scene_line(sc, at.x, at.y - 7 * s, at.x, at.y + 7 * s, main, SZ(f, stroke_thin))
			->dash = RFL_DASH_DASHED;
	}
	if (any_ceiling(f, has_band)) {
		at = entry(f, pen, "spread of the measured ceiling");
		rfl_scene_rect(sc, (struct rfl_box){ at.x - 7 * s, at.y - 5 * s, 14 * s, 10 * s },
			       f->theme->band);
	}
	if (any_ceiling(f, is_dotted)) {
		at = entry(f, pen, "achieved by GEMM of the framework");
		rfl_scene_line(sc, at.x - 7 * s, at.y, at.x + 7 * s, at.y, line, quiet)->dash =
			RFL_DASH_DOTTED;
	}
	if (f->has_above) {
		at = entry(f, pen,
			   is_brief(f) ? "hatched: above its roof"
				       : "hatched: above its roof, see the note below");
		rfl_scene_marker(sc, RFL_MARKER_CIRCLE, at.x, at.y, r, main, f->theme->alarm,
				 2.4 * s);
		rfl_draw__hatch(f, "", RFL_MARKER_CIRCLE, at, r - 1.2 * s);
	}
	if (f->has_edges) {
		at = entry(f, pen, "point beyond the edge of the plot");
		rfl_scene_marker(sc, RFL_MARKER_RIGHT, at.x, at.y, 0.7 * r, main, ink, thin);
	}
	if (begin(f, pen, series_text(f), &at))
		rfl_scene_line(sc, at.x - 7 * s, at.y, at.x + 7 * s, at.y, main, 1.1 * s);
	if (begin(f, pen, f->has_prefills ? "from prefill to decode of one model" : NULL, &at))
		rfl_scene_line(sc, at.x - 7 * s, at.y, at.x + 7 * s, at.y, main, 0.6 * s);
	if (begin(f, pen, number_text(f), &at))
		rfl_draw__text(f, "", "7", at.x, at.y + RFL_TEXT_CAP / 2 * SZ(f, legend),
			       SZ(f, label_second), ink, RFL_ANCHOR_MIDDLE);
}

/* Add the roofs that had no room for a label, in any round of the layout unless `now`. */
static void add_roofs(struct rfl_figure *f, struct pen *pen, const struct rfl_figure *of, bool now)
{
	for (const struct rfl_fig_ceiling *c = of->ceilings; c < of->ceilings + of->nceilings;
	     c++) {
		const char *label = c->labels[RFL_ARRAY_LEN(c->labels) - 1];
		struct rfl_xy at;

		if (!c->listed || (now && c->labelled))
			continue;
		if (f->nsubs && !f->in->overlay) /* an overlay has them in the labels */
			label = SAY(f, "%s: %s", of->in->env->name, label);
		if (now && pen->y + LINE_H * f->scale > f->scene->height)
			return; /* a page without room for them */
		label = rfl_words_fit(f->scene, label, RFL_FACE_REGULAR, SZ(f, legend),
				      pen->box.w - 26 * f->scale);
		at = entry(f, pen, label);
		rfl_scene_line(f->scene, at.x - 7 * f->scale, at.y, at.x + 7 * f->scale, at.y,
			       c->primary ? of->theme->roof : of->theme->roof_quiet,
			       c->primary ? SZ(f, stroke_roof) : SZ(f, stroke_quiet))
			->dash = c->dash;
	}
	for (size_t k = 0; k < of->nsubs; k++)
		add_roofs(f, pen, &of->subs[k], now);
}

double rfl_draw__roofs_height(const struct rfl_figure *f)
{
	double h = 0;

	for (size_t i = 0; i < f->nceilings; i++)
		h += f->ceilings[i].listed ? LINE_H * f->scale : 0;
	for (size_t k = 0; k < f->nsubs; k++)
		h += rfl_draw__roofs_height(&f->subs[k]);
	return h;
}

void rfl_draw__roof_list(struct rfl_figure *f, double x, double y)
{
	const struct rfl_box box = { x, y, f->scene->width - x - 4 * f->scale, 0 };
	struct pen pen = { box, x, y + LINE_H * f->scale, LINE_H * f->scale, false };

	add_roofs(f, &pen, f, true);
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
	} sizes[] = { { .01, "1 %" }, { .05, "5 %" }, { .25, "25 % of the time" } };
	const double s = f->scale, size = SZ(f, legend);
	double room = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++)
		room += 2 * rfl_draw__share_radius(f, sizes[i].share) + 18 * s +
			rfl_width(sizes[i].text, size);
	advance(pen, room);
	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
		const double r = rfl_draw__share_radius(f, sizes[i].share);

		rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, pen->x + 2 * s + r,
				 pen->y - RFL_TEXT_CAP / 2 * size, r, f->theme->leader,
				 f->theme->ink, SZ(f, stroke_mark));
		put_text(f, sizes[i].text, pen->x + 7 * s + 2 * r, pen->y);
		pen->x += 2 * r + 18 * s + rfl_width(sizes[i].text, size);
	}
	end_chips(pen);
}

/* ---- the list of names ---- */

#define ROW_H 11.4 /* at scale 1 */

/* Name and position of a mark, for those with no label. */
static const char *position_text(const struct rfl_figure *f, const struct rfl_mark *m)
{
	return rfl_figure__is_time(f)
		       ? SAY(f, "%s: %s ms", m->full, rfl_words_number(f->scene, m->time))
		       : SAY(f, "%s: AI %s, %s", m->full, rfl_words_number(f->scene, m->x),
			     rfl_figure__rate(f, m->y));
}

/* Whether a list from row `from` has a row: below a plot, only those without a name. */
static bool is_in(const struct rfl_figure *f, size_t from, size_t i)
{
	return i >= from && !isnan(f->rows[i]->y) && (f->has_panel || f->rows[i]->listed);
}

static size_t count_in(const struct rfl_figure *f, size_t from)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nrows; i++)
		n += is_in(f, from, i);
	return n;
}

/* Width of a column of names. Until everything is drawn, any mark may still need its position. */
static double column_of(const struct rfl_figure *f, size_t from, double scale)
{
	double widest = 60 * scale;

	for (size_t i = 0; i < f->nrows; i++)
		if (is_in(f, from, i))
			widest = fmax(widest,
				      rfl_width(f->has_positions ? position_text(f, f->rows[i])
								 : f->rows[i]->full,
						f->theme->table_head * scale));
	return widest + 32 * scale;
}

struct rfl_key rfl_draw__key_of(const struct rfl_figure *f, size_t from, double width, size_t most)
{
	struct rfl_key k = { .from = from, .scale = f->scale };

	k.columns = (size_t)fmin(fmax(width / column_of(f, from, f->scale), 1), (double)most);
	k.rows = (count_in(f, from) + k.columns - 1) / k.columns;
	k.column_w = width / (double)k.columns;
	return k;
}

struct rfl_key rfl_draw__key_in(const struct rfl_figure *f, double width, double height)
{
	const double least =
		(f->has_panel ? RFL_LEAST_LIST : RFL_LEAST_TEXT) / f->theme->table_head;
	const size_t n = count_in(f, 0);
	struct rfl_key k = { .scale = f->scale };

	for (;; k.scale = fmax(k.scale * 0.9, least)) {
		const double rows = floor(height / (ROW_H * k.scale));
		const bool last = k.scale <= least; /* cut the names */

		k.columns = rows < 1 ? 0 : (size_t)ceil((double)n / rows);
		k.column_w = column_of(f, 0, k.scale);
		if (k.columns && last)
			k.column_w = fmin(k.column_w, width / (double)k.columns);
		if (k.columns && k.column_w * (double)k.columns <= width + 1e-6 &&
		    k.column_w >= 92 * k.scale) {
			k.rows = (n + k.columns - 1) / k.columns;
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
	size_t at = 0;

	f->lists_all = true;
	for (size_t i = 0; i < f->nrows; i++) {
		const struct rfl_mark *m = f->rows[i];
		const double left = x + (double)(at / k->rows) * k->column_w;
		const double base = y + ((double)(at % k->rows + 1) * ROW_H - 2.4) * s;

		if (!is_in(f, k->from, i))
			continue;
		at++;
		rfl_draw__text(f, rfl_draw__id(f, "key-number", m), SAY(f, "%d", m->number),
			       left + 18 * s, base, size, f->theme->soft, RFL_ANCHOR_END);
		rfl_draw__text(f, rfl_draw__id(f, "key", m),
			       rfl_words_fit_name(f->scene, m->lost ? position_text(f, m) : m->full,
						  size, k->column_w - 30 * s),
			       left + 23 * s, base, size, f->theme->ink, RFL_ANCHOR_START);
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
	const bool spare = f->spare.w > 0;
	const struct rfl_box signs = spare ? f->spare : box;
	struct pen pen = { .box = signs,
			   .x = signs.x,
			   .y = signs.y + 12 * s,
			   .line_h = (f->has_panel ? 18 : LINE_H) * s,
			   .flow = !f->has_panel };

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
	add_signs(f, &pen);
	add_roofs(f, &pen, f, draw);
	if (pen.flow && pen.x > signs.x)
		pen.y += pen.line_h;
	if (spare && pen.y > f->spare.y + f->spare.h) { /* no room for them */
		f->scene->n = before;
		f->spare.w = 0;
		return rfl_draw__legend(f, box, draw);
	}
	pen.y = spare ? box.y + 12 * s : pen.y;
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
