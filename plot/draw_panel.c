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
		return f->has_above ? "above its roof: see the note below" : NULL;
	case SIGN_EDGE:
		if (at)
			rfl_scene_marker(sc, RFL_MARKER_RIGHT, x, y, r, main, ink, thin);
		return f->has_edges ? "arrow: point beyond the edge of the plot" : NULL;
	case SIGN_SERIES:
		if (at)
			rfl_scene_line(sc, x - 7 * s, y, x + 7 * s, y, main, 1.1 * s);
		return f->has_series ? "line: batches of one configuration, in order" : NULL;
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

/* The colours. Many batches are one strip with names at its ends. */
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

static const char *const phase_names[] = { "forward", "backward", "optimizer", "data" };

/* The columns of numbers; `end` is the right edge in points at scale 1. */
static const struct {
	const char *title, *id;
	double end;
} columns[] = {
	{ "AI", "table-ai", 164 },
	{ "GFLOP/s", "table-rate", 215 },
	{ "of roof", "table-percent", 262 },
	{ "limited by", "table-limit", 330 },
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

/* The limit of a point, for the table. */
static const char *limit_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	const char *bound = m->point->bound;

	if (!bound || !*bound)
		bound = m->x * m->point->peak_gbps < m->point->peak_gflops ? "memory" : "compute";
	if (strcmp(bound, "knee") == 0)
		return "both (knee)";
	return strcmp(bound, "memory") == 0 && !f->in->env->short_form ? "DRAM" : bound;
}

/* The number of rows of the table if a list names the other marks, all within `room`; nmarks if
 * there is too little room for that. */
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
	const struct name_place at = names_at(f, x + indent, 132 * s - indent, "table-step");
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
	rfl_draw__text(f, "table-head", "step", x, y, head, soft, RFL_ANCHOR_START);
	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++)
		rfl_draw__text(f, "table-head", columns[i].title, x + columns[i].end * s, y, head,
			       soft, RFL_ANCHOR_END);
	rfl_scene_line(sc, x, y + 6 * s, x + f->panel.w, y + 6 * s, f->theme->leader, 0.8 * s)->id =
		"table-rule";
	y += 7 * s;
	for (size_t i = 0; i < shown; i++) {
		const struct rfl_mark *m = &f->marks[i];
		const char *const cells[] = { rfl_words_number(sc, m->x),
					      rfl_words_number(sc, m->y),
					      rfl_scene_printf(sc, "%.0f %%", m->percent),
					      limit_of(f, m) };

		y += row_h(f);
		if (f->has_numbers)
			rfl_draw__text(f, "table-number", rfl_scene_printf(sc, "%d", m->number),
				       x + 14 * s, y, size, soft, RFL_ANCHOR_END);
		draw_name(f, m, &at, y);
		for (size_t k = 0; k < RFL_ARRAY_LEN(columns); k++)
			rfl_draw__text(f, columns[k].id, cells[k], x + columns[k].end * s, y, size,
				       k == 2 && m->above ? f->theme->alarm : ink, RFL_ANCHOR_END);
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

static double draw_phases(struct rfl_figure *f, double top, double room)
{
	const double s = f->scale, size = SZ(f, table_head), right = f->panel.x + f->panel.w;
	const struct name_place at = names_at(f, f->panel.x, 122 * s, "phase-step");
	double x = f->panel.x + PHASES_X * s, y = top + 12 * s, left = room - 48 * s;
	struct rfl_scene *sc = f->scene;
	int rows = 0;

	for (size_t rank = 0; rank < f->nmarks && rows < PHASE_ROWS; rank++) {
		const struct rfl_mark *m = &f->marks[f->by_rank[rank]];
		const struct rfl_point *p = m->point;
		const double ms[4] = { p->fwd_ms, p->bwd_ms, isnan(p->opt_ms) ? 0 : p->opt_ms,
				       isnan(p->data_wait_ms) ? 0 : p->data_wait_ms };
		const double sum = ms[0] + ms[1] + ms[2] + ms[3];
		double from = x;

		if (!(ms[0] > 0 && ms[1] >= 0))
			continue; /* unknown */
		left -= row_h(f) + name_more(f, m, &at);
		if (left < 0)
			break;
		if (rows++ == 0) {
			heading(f, "Phases of a step", y);
			y += 6 * s;
		}
		y += row_h(f);
		draw_name(f, m, &at, y);
		for (int i = 0; i < 4; i++) {
			const double w = (f->panel.w - PHASES_X * s - 58 * s) * ms[i] / sum;
			const struct rfl_box bar = { from, y - 9 * s, fmax(w - 0.8 * s, 0.3 * s),
						     11 * s };
			struct rfl_prim *prim;

			if (w <= 0)
				continue;
			prim = rfl_scene_rect(sc, bar, f->theme->phase[i]);
			prim->id = rfl_scene_printf(sc, "phase-%s-%d", phase_names[i], m->number);
			prim->tip =
				rfl_scene_printf(sc, "%s: %s ms, %.0f %%", phase_names[i],
						 rfl_words_number(sc, ms[i]), 100 * ms[i] / sum);
			from += w;
		}
		rfl_draw__text(
			f, "phase-time",
			rfl_scene_printf(sc, sum < 1000 ? "%s ms" : "%s s",
					 rfl_words_number(sc, sum < 1000 ? sum : sum / 1000)),
			right, y, SZ(f, table), f->theme->ink, RFL_ANCHOR_END);
		y += name_more(f, m, &at);
	}
	if (rows == 0)
		return 0;
	y += row_h(f) - 2 * s;
	for (int i = 0; i < 4; i++) {
		rfl_scene_rect(f->scene, (struct rfl_box){ x, y - 7 * s, 8 * s, 8 * s },
			       f->theme->phase[i]);
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
