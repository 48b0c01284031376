/*
 * draw_panel.c - the panel to the right of the plot: the table of the points, the phases of a step,
 * and the legend. If there is too little room, the phases are dropped first, then rows of the
 * table, but never the legend. Without a panel, only the legend is drawn.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

#define KEY_COLUMNS 3 /* maximum number of columns of names */
#define PHASE_ROWS  4
#define PHASES_X    128.0 /* x at which the bars begin */

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
	COLUMN_BANDWIDTH,
	COLUMN_STEP,
	COLUMN_PERCENT,
	COLUMN_LIMIT,
	COLUMNS
};

static const char *const column_ids[COLUMNS] = { "table-time", "table-l1",       "table-l2",
						 "table-ai",   "table-traffic",  "table-rate",
						 "table-gbps", "table-measured", "table-percent",
						 "table-limit" };

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
		at.two_lines = is_variant(&f->marks[i]) &&
			       rfl_width(f->marks[i].name, SZ(f, table)) > room;
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

	name = rfl_words_fit_name(f->scene, name, size, at->room);
	rfl_draw__text(f, at->id, name, at->x, y, size, f->theme->ink, RFL_ANCHOR_START);
	if (!two)
		return;
	/* second line: the full variant if it fits, otherwise its short form */
	if (!m->cut || !under || m->numbered || rfl_width(under, small) > width)
		under = rfl_words_fit(f->scene, m->way, RFL_FACE_REGULAR, small, width);
	rfl_draw__text(f, SAY(f, "%s-variant", at->id), under, at->x, y + 12 * f->scale, small,
		       f->theme->soft, RFL_ANCHOR_START);
}

static const char *cell_of(const struct rfl_figure *f, const struct table *t, enum column column,
			   const struct rfl_mark *m)
{
	struct rfl_scene *s = f->scene;
	const double ratio = m->x_best / m->x;
	const char *rate;

	if (isnan(m->y) &&
	    (column == COLUMN_AI || column == COLUMN_RATE || column == COLUMN_TRAFFIC))
		return ""; /* no FLOPs */
	switch (column) {
	case COLUMN_TIME:
		return m->point->time_share >= 0 ? rfl_figure__share(f, m->point->time_share)
						 : rfl_words_number(s, NAN);
	case COLUMN_L1:
	case COLUMN_L2:
		return rfl_words_number(s, m->x_cache[column - COLUMN_L1]);
	case COLUMN_AI:
		return rfl_words_number(s, m->x);
	case COLUMN_TRAFFIC:
		return isnan(ratio) ? "" : SAY(f, "%.*f\xc3\x97", ratio < 9.95 ? 1 : 0, ratio);
	case COLUMN_RATE:
		if (t->unit > 0)
			return rfl_words_number(s, m->y / t->unit);
		rate = rfl_figure__rate(f, m->y);
		return SAY(f, "%.*s", (int)(strlen(rate) - strlen("FLOP/s")), rate);
	case COLUMN_BANDWIDTH:
		return rfl_words_number(s, m->point->attained_gbps);
	case COLUMN_STEP:
		return rfl_words_number(s, m->time);
	case COLUMN_PERCENT:
		return isnan(m->percent) ? "" : rfl_figure__percent(f, m->percent);
	case COLUMN_LIMIT:
	case COLUMNS:
		break;
	}
	return strcmp(m->limit, "memory") == 0 && !f->in->env->short_form ? "DRAM" : m->limit;
}

/* Choose the columns of the table for the first n marks. */
static struct table table_of(const struct rfl_figure *f, size_t n)
{
	struct table t = { .titles = { [COLUMN_AI] = "AI",
				       [COLUMN_RATE] = "GFLOP/s",
				       [COLUMN_PERCENT] = "of roof",
				       [COLUMN_LIMIT] = "limited by" },
			   .unit = 1 };
	const bool parts = f->parts && f->in->kind <= RFL_PLOT_KERNELS;
	double lo = INFINITY, hi = 0, end = f->panel.w;

	for (size_t i = 0; i < n; i++) {
		const struct rfl_mark *m = f->rows[i];

		lo = fmin(lo, m->y); /* ignores NaN */
		hi = fmax(hi, m->y);
		if (m->x_best > 0 && !m->ratio)
			t.titles[COLUMN_TRAFFIC] = "traffic";
		if (parts &&
		    m->point->attained_gbps > 0) { /* instead of the position in the plot */
			t.titles[COLUMN_BANDWIDTH] = "GB/s";
			t.titles[COLUMN_AI] = NULL;
		}
	}
	if (parts)
		t.titles[COLUMN_TRAFFIC] = NULL;
	if (f->shares[0] > 0)
		t.titles[COLUMN_TIME] = "time";
	if (f->in->kind == RFL_PLOT_HIERARCHICAL) {
		t.titles[COLUMN_L1] = "AI L1";
		t.titles[COLUMN_L2] = "L2";
		t.titles[COLUMN_AI] = "DRAM";
	}
	if (rfl_figure__is_time(f)) {
		t.titles[COLUMN_AI] = "bytes";
		t.titles[COLUMN_RATE] = "FLOPs";
		t.titles[COLUMN_STEP] = "measured";
		lo = hi = 1; /* no other unit */
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
	/* three intensities leave too little room for names */
	if (f->in->kind == RFL_PLOT_HIERARCHICAL)
		t.titles[COLUMN_PERCENT] = NULL;
	for (int c = COLUMNS - 1; c >= 0; c--) {
		double w = 0;

		if (!t.titles[c])
			continue;
		w = rfl_width(t.titles[c], SZ(f, table_head));
		for (size_t i = 0; i < n; i++)
			w = fmax(w, rfl_width(cell_of(f, &t, (enum column)c, f->rows[i]),
					      SZ(f, table)));
		t.ends[c] = end;
		end -= w + 10 * f->scale;
	}
	t.names = end;
	return t;
}

/* The number of rows of the table so that a list of the others also fits in `room`; all if there is
 * too little room. */
static size_t rows_before_key(const struct rfl_figure *f, double room, size_t rows,
			      const struct name_place *at)
{
	double h = 0;

	for (size_t i = 0; i < rows; i++)
		h += row_h(f) + name_more(f, f->rows[i], at);
	for (;; rows--) {
		const struct rfl_key k = rfl_draw__key_of(f, rows, f->panel.w, KEY_COLUMNS);

		if ((rows ? 52 : 20) * f->scale + h + rfl_draw__key_height(&k) + 12 * f->scale <=
		    room)
			return rows;
		if (rows == 0)
			return f->nrows;
		h -= row_h(f) + name_more(f, f->rows[rows - 1], at);
	}
}

/* Whether the numbers or the positions of the marks need a list of all names. */
static bool needs_key(const struct rfl_figure *f)
{
	return (f->has_numbers || f->nlost) && f->nmarks <= RFL_FIG_NUMBERED;
}

/* Draw the table in at most `room`. @return its height */
static double draw_table(struct rfl_figure *f, double top, double room)
{
	const double s = f->scale, x = f->panel.x, indent = needs_key(f) ? 20 * s : 0;
	const double size = SZ(f, table), head = SZ(f, table_head);
	/* for all rows that could be shown */
	const struct table t =
		table_of(f, (size_t)fmin((double)f->nrows, fmax(room / row_h(f), 0)));
	const struct name_place at = names_at(f, x + indent, t.names - indent, "table-step");
	const struct rfl_color soft = f->theme->soft, ink = f->theme->ink;
	struct rfl_scene *sc = f->scene;
	double y = top + 12 * s, h = 0;
	size_t shown = 0, fit = 0; /* rows; `fit` leaves room for the line "and n more" */
	struct rfl_key small = { .columns = 0 };
	bool key = false;

	for (; shown < f->nrows; shown++) {
		h += row_h(f) + name_more(f, f->rows[shown], &at);
		if (h > room - 52 * s)
			break;
		if (h + row_h(f) <= room - 52 * s)
			fit = shown + 1;
	}
	f->lists_all = shown == f->nrows;
	if (!f->lists_all && needs_key(f) && !f->names_few) {
		const size_t before = rows_before_key(f, room, fit, &at);

		if (before == 0 || before == f->nrows)
			small = rfl_draw__key_in(f, f->panel.w, room - 32 * s);
		key = small.columns || (before > 0 && before < f->nrows);
		fit = small.columns ? 0 : key ? before : fit;
	}
	if (shown < f->nrows)
		shown = fit;
	if (shown == 0 && !key)
		return 0;
	rfl_draw__heading(f, "Measured points", y);
	if (small.columns) {
		rfl_draw__key(f, &small, x, y + 10 * s);
		return y + 20 * s + rfl_draw__key_height(&small) - top;
	}
	y += 24 * s;
	rfl_draw__text(
		f, "table-head",
		SAY(f, "%s%s", f->parts ? f->parts : "step", rfl_figure__is_time(f) ? " (ms)" : ""),
		x, y, head, soft, RFL_ANCHOR_START);
	for (int i = 0; i < COLUMNS; i++)
		if (t.titles[i])
			rfl_draw__text(f, "table-head", t.titles[i], x + t.ends[i], y, head, soft,
				       RFL_ANCHOR_END);
	rfl_scene_line(sc, x, y + 6 * s, x + f->panel.w, y + 6 * s, f->theme->leader, 0.8 * s)->id =
		"table-rule";
	y += 7 * s;
	for (size_t i = 0; i < shown; i++) {
		const struct rfl_mark *m = f->rows[i];

		y += row_h(f);
		if (needs_key(f))
			rfl_draw__text(f, "table-number", SAY(f, "%d", m->number), x + 14 * s, y,
				       size, soft, RFL_ANCHOR_END);
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
		const struct rfl_key k = rfl_draw__key_of(f, shown, f->panel.w, KEY_COLUMNS);

		rfl_draw__key(f, &k, x, y + 9 * s);
		y += 9 * s + rfl_draw__key_height(&k);
	} else if (shown < f->nrows) {
		const char *file = f->in->points_name ? f->in->points_name : "the points file";

		y += row_h(f);
		rfl_draw__text(f, "table-more",
			       SAY(f, "and %zu more in %s", f->nrows - shown, file), x, y, head,
			       soft, RFL_ANCHOR_START);
	}
	return y + 10 * s - top;
}

static int by_rate(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;

	return x->y != y->y ? (x->y > y->y ? -1 : 1) : x->number - y->number;
}

static int by_time(const void *a, const void *b)
{
	const struct rfl_mark *x = *(struct rfl_mark *const *)a, *y = *(struct rfl_mark *const *)b;

	return x->time != y->time ? (x->time > y->time ? -1 : 1) : x->number - y->number;
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
		prim->id = SAY(f, "phase-%s-%d", phase_names[i], m->number);
		prim->tip = SAY(f, "%s: %s ms, %.0f %%", phase_names[i],
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
	const bool timed = rfl_figure__is_time(f);
	const char *order = timed ? "longest first" : "highest rate first";
	struct rfl_mark **marks = rfl_figure__sort(f, timed ? by_time : by_rate);
	struct rfl_scene *sc = f->scene;
	size_t rows = 0, known = 0;
	bool all = true; /* the phases cover the steps */

	for (size_t i = 0; i < f->nmarks && !f->parts; i++) {
		struct rfl_mark *m = marks[i];

		if (!(m->point->fwd_ms > 0 && m->point->bwd_ms >= 0))
			continue;
		marks[known++] = m;
		left -= row_h(f) + name_more(f, m, &at);
		rows += rows + 1 == known && known <= PHASE_ROWS && left >= 0;
	}
	if (rows == 0)
		return 0;
	rfl_draw__heading(f, "Phases of a step", y);
	rfl_draw__text(f, "phase-order",
		       known > rows ? SAY(f, "%zu of %zu, %s", rows, known, order) : order, right,
		       y, size, f->theme->soft, RFL_ANCHOR_END);
	y += 6 * s;
	for (size_t i = 0; i < rows; i++) {
		const struct rfl_mark *m = marks[i];
		const double ms = step_ms(m);

		y += row_h(f);
		draw_name(f, m, &at, y);
		all = draw_bar(f, m, x, y, f->panel.w - PHASES_X * s - 58 * s) && all;
		rfl_draw__text(f, "phase-time", rfl_words_time(sc, ms), right, y, SZ(f, table),
			       f->theme->ink, RFL_ANCHOR_END);
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
		x += 11 * s + rfl_width(phase_names[i], size) + 8 * s;
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
		if (f->side.columns) {
			const double x = f->plot.x + f->plot.w + 12 * s;

			rfl_draw__key(f, &f->side, x, f->plot.y);
			if (f->strip.h <= 0)
				rfl_draw__roof_list(f, x,
						    f->plot.y + rfl_draw__key_height(&f->side));
		}
		return;
	}
	const struct rfl_key all = rfl_draw__key_of(f, 0, box.w, KEY_COLUMNS);

	legend = rfl_draw__legend(f, box, false);
	/* the table gets the room left by the legend and three bars */
	phases = 48 * s + 3 * row_h(f);
	table = f->panel.h - legend - phases - 2 * gap;
	if (table < 52 * s + 3 * row_h(f) ||
	    (needs_key(f) && table < 32 * s + rfl_draw__key_height(&all)))
		table += phases;
	y += draw_table(f, y, table);
	y += gap;
	phases = draw_phases(f, y, f->panel.y + f->panel.h - y - legend - gap);
	if (phases > 0)
		y += phases + gap;
	box.y = y;
	rfl_draw__legend(f, box, true);
}
