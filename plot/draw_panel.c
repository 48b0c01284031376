/*
 * draw_panel.c - the legend, "Reading the marks", and the panel to the right of the plot. The panel
 * contains the table of the points, the phases of a step, and the legend; without a panel, the
 * legend is in a strip below the axis. If there is too little room, the phases are dropped first,
 * then rows of the table, but never the legend.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

/* ---- the legend ---- */

#define KEY_COLUMNS 3 /* maximum number of columns of names in the panel */

enum sign {
	SIGN_USED,
	SIGN_BEST,
	SIGN_LEVELS,
	SIGN_SPREAD,
	SIGN_HEADROOM,
	SIGN_BAND,
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
	bool flow, draw;
};

/* The meaning of a sign; NULL if the figure does not contain it.
 * @param at  where to draw the sign; may be NULL */
static const char *sign_text(struct rfl_figure *f, enum sign sign, const struct rfl_xy *at)
{
	const double s = f->scale, r = SZ(f, marker), thin = SZ(f, stroke_mark);
	const double x = at ? at->x : 0, y = at ? at->y : 0;
	const struct rfl_color main = f->theme->leader, ink = f->theme->ink;
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
	case SIGN_LEVELS:
		for (int i = 0; at && i <= RFL_FIG_CACHES && f->by == RFL_BY_LEVEL; i++)
			rfl_scene_marker(sc, RFL_MARKER_CIRCLE, x + (i - 1) * 5 * s, y, 3 * s,
					 f->palette[i], ink, thin);
		return f->by == RFL_BY_LEVEL
			       ? "one point: compare each mark with the roof of its level"
			       : NULL;
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
		return f->has_whiskers ? "headroom: possible speedup at this intensity" : NULL;
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
		if (at)
			rfl_draw__hatch(f, "", RFL_MARKER_CIRCLE, *at, r - 1.2 * s);
		return f->has_above ? "hatched: above its roof, see the note below" : NULL;
	case SIGN_EDGE:
		if (at)
			rfl_scene_marker(sc, RFL_MARKER_RIGHT, x, y, r, main, ink, thin);
		return f->has_edges ? "arrow: point beyond the edge of the plot" : NULL;
	case SIGN_SERIES:
		if (at)
			rfl_scene_line(sc, x - 7 * s, y, x + 7 * s, y, main, 1.1 * s);
		if (f->nbefore)
			return rfl_scene_printf(sc, "arrow: from its place in %s, in grey",
						f->in->before_name ? f->in->before_name
								   : "the earlier points");
		if (!f->has_series)
			return NULL;
		if (f->in->kind != RFL_PLOT_TRAJECTORY)
			return "line: batches of one configuration, in order";
		return f->batches ? rfl_scene_printf(sc, "arrows: batch %s", f->batches)
				  : "arrows: from the smallest batch to the largest";
	case SIGN_NUMBER:
		if (at)
			rfl_draw__text(f, "", "7", x, y + RFL_TEXT_CAP / 2 * SZ(f, legend),
				       SZ(f, label_second), ink, RFL_ANCHOR_MIDDLE);
		if (!f->has_numbers)
			return NULL;
		return f->has_panel ? "number: row of the table, in the order of the points file"
		       : f->has_key ? "number: see the list of names"
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

/* Draw a shape or a coloured square and its meaning; several may share a line. */
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

/* Draw the colours. Many batches are one strip with names at its ends. */
static void color_chips(struct rfl_figure *f, struct pen *pen)
{
	const double s = f->scale, size = SZ(f, legend), w = 130 * s / (double)f->ncolors;
	const char *first = f->colors[0], *last = f->colors[f->ncolors - 1];
	double x;

	if (f->ncolors <= RFL_FIG_BATCHES) {
		for (size_t i = 0; i < f->ncolors; i++)
			chip(f, pen, RFL_MARKER_CIRCLE, true, f->palette[i], f->colors[i]);
		return;
	}
	x = 154 * s + rfl_text_width(first, RFL_FACE_REGULAR, size) +
	    rfl_text_width(last, RFL_FACE_REGULAR, size);
	advance(pen, x);
	if (pen->draw) {
		rfl_draw__text(f, "legend", first, pen->x, pen->y, size, f->theme->ink,
			       RFL_ANCHOR_START);
		rfl_draw__text(f, "legend", last, pen->x + x - 12 * s, pen->y, size, f->theme->ink,
			       RFL_ANCHOR_END);
	}
	for (size_t i = 0; i < f->ncolors && pen->draw; i++)
		rfl_scene_rect(
			f->scene,
			(struct rfl_box){ pen->x + 6 * s + (double)i * w +
						  rfl_text_width(first, RFL_FACE_REGULAR, size),
					  pen->y - 9 * s, w, 10 * s },
			f->palette[i]);
	pen->x += x;
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
			rfl_text_width(sizes[i].text, RFL_FACE_REGULAR, size);
	advance(pen, room);
	pen->y += 7 * s; /* the largest is higher than a line */
	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
		const double r = rfl_draw__share_radius(f, sizes[i].share);

		if (pen->draw) {
			rfl_scene_marker(f->scene, RFL_MARKER_CIRCLE, pen->x + 2 * s + r,
					 pen->y - RFL_TEXT_CAP / 2 * size, r, f->theme->leader,
					 f->theme->ink, SZ(f, stroke_mark));
			rfl_draw__text(f, "legend", sizes[i].text, pen->x + 7 * s + 2 * r, pen->y,
				       size, f->theme->ink, RFL_ANCHOR_START);
		}
		pen->x += 2 * r + 18 * s + rfl_text_width(sizes[i].text, RFL_FACE_REGULAR, size);
	}
	pen->x = pen->box.x;
	pen->y += pen->line_h + 6 * s;
}

/* ---- the list of names ---- */

/* Columns and rows of a list of the marks from `from` on. */
struct key {
	size_t from, columns, rows;
	double column_w, row_h;
};

static struct key key_of(const struct rfl_figure *f, size_t from, double width, size_t most)
{
	const double s = f->scale, number = 26 * s, gap = 12 * s;
	struct key k = { .from = from, .row_h = 11.4 * s };
	double widest = 60 * s;

	for (size_t i = 0; i < f->nmarks; i++)
		widest = fmax(widest, rfl_text_width(f->marks[i].name, RFL_FACE_REGULAR,
						     SZ(f, table_head)));
	k.columns = (size_t)fmin(fmax(width / (number + widest + gap), 1), (double)most);
	k.rows = (f->nmarks - from + k.columns - 1) / k.columns;
	k.column_w = width / (double)k.columns;
	return k;
}

static void draw_key(struct rfl_figure *f, const struct key *k, double x, double y)
{
	const double s = f->scale, size = SZ(f, table_head);

	for (size_t i = k->from; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		const size_t at = i - k->from;
		const double left = x + (double)(at / k->rows) * k->column_w;
		const double base = y + (double)(at % k->rows + 1) * k->row_h - 2.4 * s;

		rfl_draw__text(f, rfl_scene_printf(f->scene, "key-number-%d", m->number),
			       rfl_scene_printf(f->scene, "%d", m->number), left + 20 * s, base,
			       size, f->theme->soft, RFL_ANCHOR_END);
		rfl_draw__text(f, rfl_scene_printf(f->scene, "key-%d", m->number),
			       rfl_words_fit(f->scene, m->name, RFL_FACE_REGULAR, size,
					     k->column_w - 34 * s),
			       left + 26 * s, base, size, f->theme->ink, RFL_ANCHOR_START);
	}
}

static void heading(struct rfl_figure *f, const char *text, double y)
{
	rfl_draw__text(f, "panel-heading", text, f->panel.x, y, SZ(f, heading), f->theme->ink,
		       RFL_ANCHOR_START)
		->at.text.face = RFL_FACE_BOLD;
}

double rfl_draw__legend(struct rfl_figure *f, struct rfl_box box, bool draw)
{
	const double s = f->scale;
	const bool both = f->by == RFL_BY_MODEL; /* both shape and colour stand for the model */
	struct pen pen = { .box = box,
			   .x = box.x,
			   .y = box.y + 12 * s,
			   .line_h = 18 * s,
			   .draw = draw,
			   .flow = !f->has_panel };

	if (!pen.flow) {
		if (draw)
			heading(f, "Reading the marks", pen.y);
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
	for (int i = 0; i < SIGN_COUNT; i++) {
		const char *text = sign_text(f, (enum sign)i, NULL);

		if (text)
			entry(f, &pen, (enum sign)i, text);
	}
	if (pen.flow && pen.x > box.x)
		pen.y += pen.line_h;
	if (f->has_key && pen.flow) {
		const struct key k = key_of(f, 0, box.w, 8);

		if (draw)
			draw_key(f, &k, box.x, pen.y - 11 * s);
		pen.y += (double)k.rows * k.row_h;
	}
	return pen.y - pen.line_h + 6 * s - box.y;
}

/* ---- the table and the phases ---- */

#define PHASE_ROWS 4
#define PHASES_X   128.0 /* x at which the bars begin */

static const char *const phase_names[] = { "forward", "backward", "optimizer", "data", "other" };

#define PHASES ((int)RFL_ARRAY_LEN(phase_names))

static struct rfl_color phase_color(const struct rfl_figure *f, int phase)
{
	return phase < PHASES - 1 ? f->theme->phase[phase] : f->theme->faint;
}

/* The step time from which the rate was computed, or the sum of the phases. */
static double step_ms(const struct rfl_mark *m)
{
	const struct rfl_point *p = m->point;

	return p->step_s > 0 ? p->step_s * 1e3
			     : p->fwd_ms + p->bwd_ms + (isnan(p->opt_ms) ? 0 : p->opt_ms) +
				       (isnan(p->data_wait_ms) ? 0 : p->data_wait_ms);
}

/* The columns to the right of the names. */
enum column {
	COLUMN_TIME,
	COLUMN_L1,
	COLUMN_L2,
	COLUMN_AI,
	COLUMN_TRAFFIC,
	COLUMN_RATE,
	COLUMN_PERCENT,
	COLUMN_LIMIT,
	COLUMNS
};

static const char *const column_ids[COLUMNS] = { "table-time",    "table-l1",      "table-l2",
						 "table-ai",      "table-traffic", "table-rate",
						 "table-percent", "table-limit" };

/* The columns of the table: titles, and right edges of the widest cells. */
struct table {
	const char *titles[COLUMNS]; /**< NULL: no such column */
	double ends[COLUMNS], names; /**< names: width of the names */
	double unit;                 /**< GFLOP/s per unit of the rates; 0: the unit varies */
};

static double row_h(const struct rfl_figure *f)
{
	return 17.5 * f->scale;
}

static bool is_variant(const struct rfl_mark *m)
{
	return *m->way && (m->point->variant || m->numbered);
}

/* Room for a name: from x on, `room` wide; its second line may extend to the end of the panel. */
struct name_place {
	double x, room;
	const char *id;
	bool two_lines;
};

static struct name_place names_at(const struct rfl_figure *f, double x, double room, const char *id)
{
	struct name_place at = { x, room, id, false };

	/* if the name of one variant needs two lines, all variants get two */
	for (size_t i = 0; i < f->nmarks && !at.two_lines; i++)
		at.two_lines =
			is_variant(&f->marks[i]) &&
			rfl_text_width(f->marks[i].name, RFL_FACE_REGULAR, SZ(f, table)) > room;
	return at;
}

/* Height of the second line, or 0. */
static double name_more(const struct rfl_figure *f, const struct rfl_mark *m,
			const struct name_place *at)
{
	return at->two_lines && is_variant(m) ? 13 * f->scale : 0;
}

static void draw_name(struct rfl_figure *f, const struct rfl_mark *m, const struct name_place *at,
		      double y)
{
	const double size = SZ(f, table), small = SZ(f, table_head);
	const double width = f->panel.x + f->panel.w - at->x;
	const bool two = name_more(f, m, at) > 0;
	const char *under = m->point->variant, *name = two ? m->step : m->name;

	name = rfl_words_fit(f->scene, name, RFL_FACE_REGULAR, size, at->room);
	rfl_draw__text(f, at->id, name, at->x, y, size, f->theme->ink, RFL_ANCHOR_START);
	if (!two)
		return;
	/* second line: the full variant if it fits, otherwise its short form */
	if (!m->cut || !under || m->numbered ||
	    rfl_text_width(under, RFL_FACE_REGULAR, small) > width)
		under = rfl_words_fit(f->scene, m->way, RFL_FACE_REGULAR, small, width);
	rfl_draw__text(f, rfl_scene_printf(f->scene, "%s-variant", at->id), under, at->x,
		       y + 12 * f->scale, small, f->theme->soft, RFL_ANCHOR_START);
}

static const char *cell_of(const struct rfl_figure *f, const struct table *t, enum column column,
			   const struct rfl_mark *m)
{
	struct rfl_scene *s = f->scene;
	const double ratio = m->x_best / m->x;
	const char *rate;

	switch (column) {
	case COLUMN_TIME:
		return rfl_scene_printf(s, "%.2g %%", 100 * m->point->time_share);
	case COLUMN_L1:
	case COLUMN_L2:
		return rfl_words_number(s, m->x_cache[column - COLUMN_L1]);
	case COLUMN_AI:
		return rfl_words_number(s, m->x);
	case COLUMN_TRAFFIC:
		return isnan(ratio)
			       ? ""
			       : rfl_scene_printf(s, "%.*f\xc3\x97", ratio < 9.95 ? 1 : 0, ratio);
	case COLUMN_RATE:
		if (t->unit > 0)
			return rfl_words_number(s, m->y / t->unit);
		rate = rfl_figure__rate(f, m->y);
		return rfl_scene_printf(s, "%.*s", (int)(strlen(rate) - strlen("FLOP/s")), rate);
	case COLUMN_PERCENT:
		return rfl_figure__percent(f, m->percent);
	case COLUMN_LIMIT:
	case COLUMNS:
		break;
	}
	return strcmp(m->limit, "memory") == 0 && !f->in->env->short_form ? "DRAM" : m->limit;
}

/* Choose the columns of the table for the first n marks. */
static struct table table_of(const struct rfl_figure *f, size_t n)
{
	struct table t = { .titles = { NULL, NULL, NULL, "AI", NULL, "GFLOP/s", "of roof",
				       "limited by" },
			   .unit = 1 };
	double lo = INFINITY, hi = 0, end = f->panel.w;

	for (size_t i = 0; i < n; i++) {
		const struct rfl_mark *m = &f->marks[i];

		lo = fmin(lo, m->y);
		hi = fmax(hi, m->y);
		if (!isnan(m->x_best) && !m->ratio)
			t.titles[COLUMN_TRAFFIC] = "traffic";
	}
	if (f->shares[0] > 0)
		t.titles[COLUMN_TIME] = "time";
	if (f->in->kind == RFL_PLOT_HIERARCHICAL) {
		t.titles[COLUMN_L1] = "AI L1";
		t.titles[COLUMN_L2] = "L2";
		t.titles[COLUMN_AI] = "DRAM";
	}
	/* use one unit if all rates in it have one to three digits before the point */
	if (lo >= 1000) {
		t.unit = 1000;
		t.titles[COLUMN_RATE] = "TFLOP/s";
	}
	if (hi >= 1000 * t.unit || lo < 0.1 * t.unit) {
		t.unit = 0;
		t.titles[COLUMN_RATE] = "FLOP/s";
	}
	for (int c = COLUMNS - 1; c >= 0; c--) {
		double w = 0;

		if (!t.titles[c])
			continue;
		w = rfl_text_width(t.titles[c], RFL_FACE_REGULAR, SZ(f, table_head));
		for (size_t i = 0; i < n; i++)
			w = fmax(w, rfl_text_width(cell_of(f, &t, (enum column)c, &f->marks[i]),
						   RFL_FACE_REGULAR, SZ(f, table)));
		t.ends[c] = end;
		end -= w + 10 * f->scale;
	}
	t.names = end;
	return t;
}

/* The number of rows of the table so that a list of the other marks also fits in `room`; nmarks if
 * there is too little room. */
static size_t rows_before_key(const struct rfl_figure *f, double room, size_t rows,
			      const struct name_place *at)
{
	double h = 0;

	for (size_t i = 0; i < rows; i++)
		h += row_h(f) + name_more(f, &f->marks[i], at);
	for (;; rows--) {
		const struct key k = key_of(f, rows, f->panel.w, KEY_COLUMNS);

		if ((rows ? 52 : 20) * f->scale + h + (double)(k.rows + 1) * k.row_h <= room)
			return rows;
		if (rows == 0)
			return f->nmarks;
		h -= row_h(f) + name_more(f, &f->marks[rows - 1], at);
	}
}

/* Draw the table in at most `room`. @return its height */
static double draw_table(struct rfl_figure *f, double top, double room)
{
	const double s = f->scale, x = f->panel.x, indent = f->has_numbers ? 20 * s : 0;
	const double size = SZ(f, table), head = SZ(f, table_head);
	/* for all rows that could be shown */
	const struct table t =
		table_of(f, (size_t)fmin((double)f->nmarks, fmax(room / row_h(f), 0)));
	const struct name_place at = names_at(f, x + indent, t.names - indent, "table-step");
	const struct rfl_color soft = f->theme->soft, ink = f->theme->ink;
	struct rfl_scene *sc = f->scene;
	double y = top + 12 * s, h = 0;
	size_t shown = 0, fit = 0; /* rows; `fit` leaves room for the line "and n more" */
	bool key = false;

	for (; shown < f->nmarks; shown++) {
		h += row_h(f) + name_more(f, &f->marks[shown], &at);
		if (h > room - 52 * s)
			break;
		if (h + row_h(f) <= room - 52 * s)
			fit = shown + 1;
	}
	if (shown < f->nmarks && f->has_numbers && f->nmarks <= RFL_FIG_NUMBERED) {
		const size_t before = rows_before_key(f, room, fit, &at);

		key = before < f->nmarks;
		fit = key ? before : fit;
	}
	if (shown < f->nmarks)
		shown = fit;
	if (shown == 0 && !key)
		return 0;
	heading(f, "Measured points", y);
	if (shown == 0) {
		const struct key k = key_of(f, 0, f->panel.w, KEY_COLUMNS);

		draw_key(f, &k, x, y + 10 * s);
		return y + 20 * s + (double)k.rows * k.row_h - top;
	}
	y += 24 * s;
	rfl_draw__text(f, "table-head", f->parts ? f->parts : "step", x, y, head, soft,
		       RFL_ANCHOR_START);
	for (int i = 0; i < COLUMNS; i++)
		if (t.titles[i])
			rfl_draw__text(f, "table-head", t.titles[i], x + t.ends[i], y, head, soft,
				       RFL_ANCHOR_END);
	rfl_scene_line(sc, x, y + 6 * s, x + f->panel.w, y + 6 * s, f->theme->leader, 0.8 * s)->id =
		"table-rule";
	y += 7 * s;
	for (size_t i = 0; i < shown; i++) {
		const struct rfl_mark *m = &f->marks[i];

		y += row_h(f);
		if (f->has_numbers)
			rfl_draw__text(f, "table-number", rfl_scene_printf(sc, "%d", m->number),
				       x + 14 * s, y, size, soft, RFL_ANCHOR_END);
		draw_name(f, m, &at, y);
		for (int k = 0; k < COLUMNS; k++)
			if (t.titles[k])
				rfl_draw__text(f, column_ids[k], cell_of(f, &t, (enum column)k, m),
					       x + t.ends[k], y, size,
					       k == COLUMN_PERCENT && m->above ? f->theme->alarm
									       : ink,
					       RFL_ANCHOR_END);
		y += name_more(f, m, &at);
	}
	if (key) {
		const struct key k = key_of(f, shown, f->panel.w, KEY_COLUMNS);

		draw_key(f, &k, x, y + 6 * s);
		y += 6 * s + (double)k.rows * k.row_h;
	} else if (shown < f->nmarks) {
		const char *file = f->in->points_name ? f->in->points_name : "the points file";

		y += row_h(f);
		rfl_draw__text(f, "table-more",
			       rfl_scene_printf(sc, "and %zu more in %s", f->nmarks - shown, file),
			       x, y, head, soft, RFL_ANCHOR_START);
	}
	return y + 10 * s - top;
}

static int by_rate(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;

	return x->y != y->y ? (x->y > y->y ? -1 : 1) : x->number - y->number;
}

/* Draw the bar of a step. Its length is the step time from which the rate was computed; time that
 * no phase covers is "other". @return false if there is such time */
static bool draw_bar(struct rfl_figure *f, const struct rfl_mark *m, double x, double y,
		     double room)
{
	const struct rfl_point *p = m->point;
	const double s = f->scale;
	double ms[PHASES] = { p->fwd_ms, p->bwd_ms, isnan(p->opt_ms) ? 0 : p->opt_ms,
			      isnan(p->data_wait_ms) ? 0 : p->data_wait_ms };
	const double sum = ms[0] + ms[1] + ms[2] + ms[3], all = fmax(sum, step_ms(m));

	ms[PHASES - 1] = all - sum > 0.01 * all ? all - sum : 0;
	for (int i = 0; i < PHASES; i++) {
		const double w = room * ms[i] / all;
		struct rfl_prim *prim;

		if (w <= 0)
			continue;
		prim = rfl_scene_rect(
			f->scene,
			(struct rfl_box){ x, y - 9 * s, fmax(w - 0.8 * s, 0.3 * s), 11 * s },
			phase_color(f, i));
		prim->id = rfl_scene_printf(f->scene, "phase-%s-%d", phase_names[i], m->number);
		prim->tip = rfl_scene_printf(f->scene, "%s: %s ms, %.0f %%", phase_names[i],
					     rfl_words_number(f->scene, ms[i]), 100 * ms[i] / all);
		x += w;
	}
	return ms[PHASES - 1] <= 0;
}

static double draw_phases(struct rfl_figure *f, double top, double room)
{
	const double s = f->scale, size = SZ(f, table_head), right = f->panel.x + f->panel.w;
	const struct name_place at = names_at(f, f->panel.x, 122 * s, "phase-step");
	double x = f->panel.x + PHASES_X * s, y = top + 12 * s, left = room - 48 * s;
	struct rfl_mark **marks = rfl_figure__sort(f, by_rate);
	struct rfl_scene *sc = f->scene;
	size_t rows = 0, known = 0;
	bool all = true; /* the phases cover the steps */

	for (size_t i = 0; marks && i < f->nmarks && !f->parts; i++) {
		struct rfl_mark *m = marks[i];

		if (!(m->point->fwd_ms > 0 && m->point->bwd_ms >= 0))
			continue;
		marks[known++] = m;
		left -= row_h(f) + name_more(f, m, &at);
		rows += rows + 1 == known && known <= PHASE_ROWS && left >= 0;
	}
	if (rows == 0)
		return 0;
	heading(f, "Phases of a step", y);
	rfl_draw__text(f, "phase-order",
		       known > rows
			       ? rfl_scene_printf(sc, "%zu of %zu, highest rate first", rows, known)
			       : "highest rate first",
		       right, y, size, f->theme->soft, RFL_ANCHOR_END);
	y += 6 * s;
	for (size_t i = 0; i < rows; i++) {
		const struct rfl_mark *m = marks[i];
		const double ms = step_ms(m);

		y += row_h(f);
		draw_name(f, m, &at, y);
		all = draw_bar(f, m, x, y, f->panel.w - PHASES_X * s - 58 * s) && all;
		rfl_draw__text(f, "phase-time",
			       rfl_scene_printf(sc, ms < 1000 ? "%s ms" : "%s s",
						rfl_words_number(sc, ms < 1000 ? ms : ms / 1000)),
			       right, y, SZ(f, table), f->theme->ink, RFL_ANCHOR_END);
		y += name_more(f, m, &at);
	}
	y += row_h(f) - 2 * s;
	if (!all)
		x -= 40 * s;
	for (int i = 0; i < PHASES - all; i++) {
		rfl_scene_rect(sc, (struct rfl_box){ x, y - 7 * s, 8 * s, 8 * s },
			       phase_color(f, i));
		rfl_draw__text(f, "phase-key", phase_names[i], x + 11 * s, y, size, f->theme->soft,
			       RFL_ANCHOR_START);
		x += 11 * s + rfl_text_width(phase_names[i], RFL_FACE_REGULAR, size) + 8 * s;
	}
	return y + 12 * s - top;
}

void rfl_draw__panel(struct rfl_figure *f)
{
	double s = f->scale, y = f->panel.y, gap = 12 * s;
	double legend, phases, table;
	struct rfl_box box = f->panel;

	if (!f->has_panel) {
		if (f->strip.h > 0)
			rfl_draw__legend(f, f->strip, true);
		return;
	}
	legend = rfl_draw__legend(f, box, false);
	/* the table gets the room left by the legend and three bars */
	phases = 48 * s + 3 * row_h(f);
	table = f->panel.h - legend - phases - 2 * gap;
	if (table < 52 * s + 3 * row_h(f) ||
	    (f->has_numbers && f->nmarks <= RFL_FIG_NUMBERED &&
	     table < 20 * s + (double)(key_of(f, 0, box.w, KEY_COLUMNS).rows + 1) * 11.4 * s))
		table += phases;
	y += draw_table(f, y, table);
	y += gap;
	phases = draw_phases(f, y, f->panel.y + f->panel.h - y - legend - gap);
	if (phases > 0)
		y += phases + gap;
	box.y = y;
	rfl_draw__legend(f, box, true);
}
