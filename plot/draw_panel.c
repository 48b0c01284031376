/*
 * draw_panel.c - right of the plot: the table of the points, the phases of a step, and below them
 * the legend. What has no room is left out from the middle on: the legend always stays.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

#define PHASE_ROWS 4

static double row_h(const struct rfl_figure *f)
{
	return 17.5 * f->scale;
}

static void cell(struct rfl_figure *f, const char *text, double x, double y, double size,
		 struct rfl_color color, enum rfl_anchor anchor, const char *id)
{
	struct rfl_prim *p = rfl_scene_text(f->scene, text, x, y, size, color);

	p->at.text.anchor = anchor;
	p->id = id;
}

static void heading(struct rfl_figure *f, const char *text, double y)
{
	struct rfl_prim *p =
		rfl_scene_text(f->scene, text, f->panel.x, y, SZ(f, heading), f->theme->ink);

	p->at.text.face = RFL_FACE_BOLD;
	p->id = "panel-heading";
}

static bool is_variant(const struct rfl_mark *m)
{
	return *m->way && (m->point->variant || m->numbered);
}

/* Is there a variant whose name has no room in one line? Then those of all are in two. */
static bool takes_two_lines(const struct rfl_figure *f, double room)
{
	for (size_t i = 0; i < f->nmarks; i++)
		if (is_variant(&f->marks[i]) &&
		    rfl_text_width(f->marks[i].name, RFL_FACE_REGULAR, SZ(f, table)) > room)
			return true;
	return false;
}

/* What stands under the step of a variant: what its label says, or more where that has room. */
static const char *under_name(struct rfl_figure *f, const struct rfl_mark *m, double width)
{
	double size = SZ(f, table_head);

	if (m->cut && m->point->variant && !m->numbered &&
	    rfl_text_width(m->point->variant, RFL_FACE_REGULAR, size) <= width)
		return rfl_scene_printf(f->scene, "%s", m->point->variant);
	return rfl_words_fit(f->scene, m->way, RFL_FACE_REGULAR, size, width);
}

/* Where a name goes: from x on, `room` wide; the line under it as far as the panel reaches. */
struct name_place {
	double x, room;
	const char *id;
	bool two_lines;
};

static double name_more(const struct rfl_figure *f, const struct rfl_mark *m,
			const struct name_place *at)
{
	return at->two_lines && is_variant(m) ? 13 * f->scale : 0;
}

/* @return the height of the second line */
static double draw_name(struct rfl_figure *f, const struct rfl_mark *m, const struct name_place *at,
			double y)
{
	double s = f->scale, size = SZ(f, table), more = name_more(f, m, at);
	const char *name = more > 0 ? m->step : m->name;

	cell(f, rfl_words_fit(f->scene, name, RFL_FACE_REGULAR, size, at->room), at->x, y, size,
	     f->theme->ink, RFL_ANCHOR_START, at->id);
	if (more > 0)
		cell(f, under_name(f, m, f->panel.x + f->panel.w - at->x), at->x, y + 12 * s,
		     SZ(f, table_head), f->theme->soft, RFL_ANCHOR_START,
		     rfl_scene_printf(f->scene, "%s-variant", at->id));
	return more;
}

/* What limits a point, in the words of its ceiling. */
static const char *limit_of(const struct rfl_figure *f, const struct rfl_mark *m)
{
	const char *bound = m->point->bound;
	const char *memory = f->in->env->short_form ? "memory" : "DRAM";

	if (!bound || !*bound)
		bound = m->x * m->point->peak_gbps < m->point->peak_gflops ? "memory" : "compute";
	if (strcmp(bound, "knee") == 0)
		return "both (knee)";
	return strcmp(bound, "memory") == 0 ? memory : bound;
}

static void table_head(struct rfl_figure *f, double y)
{
	double x = f->panel.x, s = f->scale, size = SZ(f, table_head);
	struct rfl_color c = f->theme->soft;

	cell(f, "step", x, y, size, c, RFL_ANCHOR_START, "table-head");
	cell(f, "AI", x + 164 * s, y, size, c, RFL_ANCHOR_END, "table-head");
	cell(f, "GFLOP/s", x + 215 * s, y, size, c, RFL_ANCHOR_END, "table-head");
	cell(f, "of roof", x + 262 * s, y, size, c, RFL_ANCHOR_END, "table-head");
	cell(f, "limited by", x + f->panel.w, y, size, c, RFL_ANCHOR_END, "table-head");
	rfl_scene_line(f->scene, x, y + 6 * s, x + f->panel.w, y + 6 * s, f->theme->leader, 0.8 * s)
		->id = "table-rule";
}

static struct name_place in_table(const struct rfl_figure *f)
{
	double s = f->scale, indent = f->has_numbers ? 20 * s : 0;
	struct name_place at = { f->panel.x + indent, 132 * s - indent, "table-step", false };

	at.two_lines = takes_two_lines(f, at.room);
	return at;
}

/* @return the height beyond that of a row in one line */
static double table_row(struct rfl_figure *f, const struct rfl_mark *m, const struct name_place *at,
			double y)
{
	double x = f->panel.x, s = f->scale, size = SZ(f, table), more;
	struct rfl_color ink = f->theme->ink;
	struct rfl_scene *sc = f->scene;

	if (f->has_numbers)
		cell(f, rfl_scene_printf(sc, "%d", m->number), x + 14 * s, y, size, f->theme->soft,
		     RFL_ANCHOR_END, "table-number");
	more = draw_name(f, m, at, y);
	cell(f, rfl_words_number(sc, m->x), x + 164 * s, y, size, ink, RFL_ANCHOR_END, "table-ai");
	cell(f, rfl_words_number(sc, m->y), x + 215 * s, y, size, ink, RFL_ANCHOR_END,
	     "table-rate");
	cell(f, rfl_scene_printf(sc, "%.0f %%", m->percent), x + 262 * s, y, size,
	     m->above ? f->theme->alarm : ink, RFL_ANCHOR_END, "table-percent");
	cell(f, limit_of(f, m), x + f->panel.w, y, size, ink, RFL_ANCHOR_END, "table-limit");
	return more;
}

/* How many rows have room; where that is not all, with one line left to say so. */
static size_t rows_in(const struct rfl_figure *f, const struct name_place *at, double room)
{
	double h = 0;
	size_t fit = 0;

	for (size_t i = 0; i < f->nmarks; i++) {
		h += row_h(f) + name_more(f, &f->marks[i], at);
		if (h > room)
			return fit;
		if (h + row_h(f) <= room)
			fit = i + 1;
	}
	return f->nmarks;
}

/* The table in at most `room`; returns what it took. */
static double draw_table(struct rfl_figure *f, double top, double room)
{
	double s = f->scale, y = top + 12 * s;
	const struct name_place at = in_table(f);
	size_t shown = rows_in(f, &at, room - 52 * s);

	if (shown == 0)
		return 0;
	heading(f, "Where the time goes", y);
	y += 24 * s;
	table_head(f, y);
	y += 7 * s;
	for (size_t i = 0; i < shown; i++) {
		y += row_h(f);
		y += table_row(f, &f->marks[i], &at, y);
	}
	if (shown < f->nmarks) {
		y += row_h(f);
		cell(f,
		     rfl_scene_printf(f->scene, "and %zu more in %s", f->nmarks - shown,
				      f->in->points_name ? f->in->points_name : "the points file"),
		     f->panel.x, y, SZ(f, table_head), f->theme->soft, RFL_ANCHOR_START,
		     "table-more");
	}
	return y + 10 * s - top;
}

/* The phases of a step in ms; false when they are not known. */
static bool phases_of(const struct rfl_point *p, double ms[4])
{
	ms[0] = p->fwd_ms;
	ms[1] = p->bwd_ms;
	ms[2] = p->opt_ms;
	ms[3] = p->data_wait_ms;
	for (int i = 2; i < 4; i++)
		if (isnan(ms[i]))
			ms[i] = 0;
	return ms[0] > 0 && ms[1] >= 0;
}

/* @return the height beyond that of a row in one line */
static double phase_bar(struct rfl_figure *f, const struct rfl_mark *m, const struct name_place *at,
			double y)
{
	static const char *const names[] = { "forward", "backward", "optimizer", "data" };
	double x = f->panel.x, s = f->scale, from = x + 128 * s,
	       width = f->panel.w - 128 * s - 58 * s;
	double more = draw_name(f, m, at, y);
	double ms[4], sum = 0;

	(void)phases_of(m->point, ms);
	for (int i = 0; i < 4; i++)
		sum += ms[i];
	for (int i = 0; i < 4; i++) {
		double w = width * ms[i] / sum;
		struct rfl_prim *p;

		if (w <= 0)
			continue;
		p = rfl_scene_rect(
			f->scene,
			(struct rfl_box){ from, y - 9 * s, fmax(w - 0.8 * s, 0.3 * s), 11 * s },
			f->theme->phase[i]);
		p->id = rfl_scene_printf(f->scene, "phase-%s-%d", names[i], m->number);
		p->tip = rfl_scene_printf(f->scene, "%s: %s ms, %.0f %%", names[i],
					  rfl_words_number(f->scene, ms[i]), 100 * ms[i] / sum);
		from += w;
	}
	cell(f,
	     sum < 1000
		     ? rfl_scene_printf(f->scene, "%s ms", rfl_words_number(f->scene, sum))
		     : rfl_scene_printf(f->scene, "%s s", rfl_words_number(f->scene, sum / 1000)),
	     x + f->panel.w, y, SZ(f, table), f->theme->ink, RFL_ANCHOR_END, "phase-time");
	return more;
}

static void phase_key(struct rfl_figure *f, double y)
{
	static const char *const names[] = { "forward", "backward", "optimizer", "data" };
	double s = f->scale, x = f->panel.x + 128 * s, size = SZ(f, table_head);

	for (int i = 0; i < 4; i++) {
		rfl_scene_rect(f->scene, (struct rfl_box){ x, y - 7 * s, 8 * s, 8 * s },
			       f->theme->phase[i]);
		cell(f, names[i], x + 11 * s, y, size, f->theme->soft, RFL_ANCHOR_START,
		     "phase-key");
		x += 11 * s + rfl_text_width(names[i], RFL_FACE_REGULAR, size) + 8 * s;
	}
}

static double draw_phases(struct rfl_figure *f, double top, double room)
{
	double s = f->scale, y = top + 12 * s, ms[4], left = room - 48 * s;
	struct name_place at = { f->panel.x, 122 * s, "phase-step", false };
	int rows = 0;

	at.two_lines = takes_two_lines(f, at.room);
	for (size_t rank = 0; rank < f->nmarks && rows < PHASE_ROWS; rank++) {
		const struct rfl_mark *m = &f->marks[f->by_rank[rank]];

		if (!phases_of(m->point, ms))
			continue;
		left -= row_h(f) + name_more(f, m, &at);
		if (left < 0)
			break;
		if (rows++ == 0) {
			heading(f, "Phases of a step", y);
			y += 6 * s;
		}
		y += row_h(f);
		y += phase_bar(f, m, &at, y);
	}
	if (rows == 0)
		return 0;
	y += row_h(f) - 2 * s;
	phase_key(f, y);
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
	box.h = 0;
	legend = rfl_draw__legend(f, box, false);
	/* the table may take what legend and three bars leave */
	phases = 48 * s + 3 * row_h(f);
	table = f->panel.h - legend - phases - 2 * gap;
	if (table < 52 * s + 3 * row_h(f))
		table += phases;
	y += draw_table(f, y, table);
	y += gap;
	phases = draw_phases(f, y, f->panel.y + f->panel.h - y - legend - gap);
	if (phases > 0)
		y += phases + gap;
	box.y = y;
	rfl_draw__legend(f, box, true);
}
