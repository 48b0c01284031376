/*
 * chart_draw.c - draws a chart: panels in one or two columns, the key in the cell that they leave
 * or below them, and the note. Positions and sizes are in units of the page, `u` points each: on a
 * small page, texts are larger in proportion.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "plot/chart.h"
#include "plot/figure.h"

/* Font sizes, distances and lengths. */
#define TEXT      9.0
#define TITLE     12.0
#define NOTE      7.5
#define SPACING   1.25 /* of lines of text, in font sizes */
#define LINE      (SPACING * TEXT)
#define ROW       (LINE + 3) /* of the key */
#define EDGE      14.0
#define GAP       6.0
#define BAR       5.8   /* half of the height of a bar */
#define CROSSED   10.0  /* distance between crossed marks, which have no value */
#define CAP       2.5   /* half of the width of an error bar's end */
#define MARK      3.2   /* radius */
#define SAMPLE    28.0  /* of a line in the key, with the distance to its text */
#define NARROW    420.0 /* on a narrower page, plots are stacked */
#define MIN_PLOT  150.0
#define MAX_LINES 8 /* of a text; the rest is cut */
#define MAX_TICKS 128
#define FEW_TICKS 14    /* with more values, an axis of base 2 has ticks of its own */
#define LARGEST   1e300 /* value on an axis, so that its limits do not overflow */

struct axis {
	struct rfl_chart_axis of; /* with its range */
	double from, to;          /* positions of its ends */
	size_t n;
	struct {
		double at;
		const char *text; /* "": no label */
	} ticks[MAX_TICKS];
};

struct page {
	struct rfl_chart *c;
	struct rfl_scene *s;
	const struct rfl_theme *theme;
	double u, width;
	size_t columns;
	struct axis x[RFL_CHART_PANELS], y[RFL_CHART_PANELS];
};

/* ---- axes ---- */

static double place(const struct axis *a, double value)
{
	const double share = a->of.log ? log(value / a->of.lo) / log(a->of.hi / a->of.lo)
				       : (value - a->of.lo) / (a->of.hi - a->of.lo);

	return a->from + share * (a->to - a->from);
}

/* The extent of the data along an axis; on a logarithmic one, only positive values count. */
static void extent(const struct rfl_chart_panel *p, bool along_y, double *lo, double *hi)
{
	const bool positive = along_y && p->y.log;

	*lo = INFINITY;
	*hi = -INFINITY;
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->series[i].n; k++) {
			const struct rfl_chart_row *r = &p->series[i].rows[k];

			/* fmin() and fmax() ignore NaN */
			*lo = fmin(*lo, !along_y                   ? r->x
					: positive && !(r->lo > 0) ? r->y
								   : fmin(r->y, r->lo));
			*hi = fmax(*hi, along_y ? fmax(r->y, r->hi) : r->x);
		}
}

static void add_tick(struct axis *a, double at, const char *text)
{
	if (a->n < MAX_TICKS) {
		a->ticks[a->n].at = at;
		a->ticks[a->n++].text = text;
	}
}

/* Base 10: limits at 1, 2 or 5 times a power of ten. */
static void fit_log10(struct page *p, struct axis *a, double lo, double hi, double length,
		      double room)
{
	struct rfl_axis t;
	char text[RFL_NUM_MAX];

	a->of.lo = rfl_axis_step(lo, false);
	a->of.hi = rfl_axis_step(hi > lo ? hi : 2 * lo, true);
	if (a->of.hi < 1.99 * a->of.lo)
		a->of.hi = rfl_axis_step(2 * a->of.lo, true);
	rfl_axis_set(&t, a->of.lo, a->of.hi, 0, length, room);
	for (size_t i = 0; i < t.nticks; i++)
		if (t.ticks[i].labelled)
			add_tick(a, t.ticks[i].value,
				 rfl_scene_printf(p->s, "%s",
						  rfl_num_exact(t.ticks[i].value, text)));
}

/* Base 2: ticks at the values of the data, or at powers of two if there are many; labels that would
 * touch the one before are omitted. */
static void fit_log2(struct page *p, struct axis *a, const struct rfl_chart_panel *d, double lo,
		     double hi, double length)
{
	const double margin = hi > lo ? pow(hi / lo, 0.06) : 2;
	double values[FEW_TICKS + 1], free = -INFINITY;
	size_t n = 0;

	a->of.lo = lo / margin;
	a->of.hi = hi * margin;
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->series[i].n && n <= FEW_TICKS; k++) {
			size_t found = 0;

			while (found < n && values[found] != d->series[i].rows[k].x)
				found++;
			n += found == n;
			values[found] = d->series[i].rows[k].x;
		}
	qsort(values, n, sizeof(*values), rfl_by_double);
	for (size_t i = 0; n <= FEW_TICKS && i < n; i++)
		add_tick(a, values[i], "");
	for (double at = exp2(ceil(log2(a->of.lo))); n > FEW_TICKS && at <= a->of.hi; at *= 2)
		add_tick(a, at, "");
	for (size_t i = 0; i < a->n; i++) {
		const double x = length * log(a->ticks[i].at / a->of.lo) / log(a->of.hi / a->of.lo);
		char text[RFL_NUM_MAX];
		double half;

		if (a->of.bytes)
			(void)rfl_num_bytes(a->ticks[i].at, text, sizeof(text));
		else
			(void)rfl_num_exact(a->ticks[i].at, text);
		half = rfl_width(text, TEXT) / 2;
		if (x - half < free)
			continue;
		a->ticks[i].text = rfl_scene_printf(p->s, "%s", text);
		free = x + half + GAP;
	}
}

static void fit_linear(struct page *p, struct axis *a, double lo, double hi, double most)
{
	char text[RFL_NUM_MAX];
	double step;
	int decimals;

	lo = a->of.zero ? 0 : isnan(a->of.lo) ? lo : a->of.lo;
	hi = isnan(a->of.hi) ? hi : a->of.hi;
	lo = fmin(fmax(lo, -LARGEST), LARGEST);
	hi = fmin(fmax(hi, -LARGEST), LARGEST);
	if (!(hi > lo)) { /* one value, or only zeros */
		hi = hi > 0 ? hi * 1.05 : hi + fmax(1, -0.05 * hi);
		lo = a->of.zero ? 0 : lo > 0 ? lo * 0.95 : lo - fmax(1, -0.05 * lo);
	}
	step = fmax(rfl_axis_step((hi - lo) / floor(fmax(1, fmin(most, 20))), true),
		    a->of.whole ? 1 : 0);
	a->of.lo = step * floor(lo / step + 1e-9);
	a->of.hi = step * ceil(hi / step - 1e-9);
	decimals = (int)fmin(9, fmax(0, -floor(log10(step) + 1e-9)));
	for (int i = 0; a->of.lo + i * step <= a->of.hi + step / 2 && i < MAX_TICKS; i++) {
		const double at = a->of.lo + i * step;

		if (step >= 1e12 && at != 0)
			(void)rfl_num_people(at, 3, text);
		else
			(void)rfl_num_fixed(at == 0 ? 0 : at, decimals, text);
		add_tick(a, at, rfl_scene_printf(p->s, "%s", text));
	}
}

/* Choose the range and the ticks of an axis of this length. */
static void fit(struct page *p, struct axis *a, const struct rfl_chart_panel *d, bool along_y,
		double length)
{
	double lo, hi;

	a->of = along_y ? d->y : d->x;
	extent(d, along_y, &lo, &hi);
	if (a->of.log == 2)
		fit_log2(p, a, d, lo, hi, length);
	else if (a->of.log)
		fit_log10(p, a, lo, hi, length, along_y ? 2 * TEXT : 40);
	else
		fit_linear(p, a, lo, hi, along_y && !p->c->nbars ? length / 25 : length / 45);
}

/* ---- texts and lines ---- */

static enum rfl_face face_of(double size)
{
	return size >= TITLE ? RFL_FACE_BOLD : RFL_FACE_REGULAR;
}

static size_t wrap(const struct page *p, const char *text, double size, double width,
		   const char *lines[MAX_LINES])
{
	return rfl_words_wrap(p->s, text, face_of(size), size, width, lines, MAX_LINES);
}

static double height_of(const struct page *p, const char *text, double size, double width)
{
	const char *lines[MAX_LINES];

	return (double)wrap(p, text, size, width, lines) * SPACING * size;
}

static void put_line(const struct page *p, double x0, double y0, double x1, double y1,
		     struct rfl_color color, double width, enum rfl_dash dash)
{
	const double u = p->u;

	rfl_scene_line(p->s, x0 * u, y0 * u, x1 * u, y1 * u, color, width * u)->dash = dash;
}

/* Write a text that is centred at y, on several lines if it is wider than `width`. */
static void put_text(const struct page *p, const char *text, double x, double y, double size,
		     double width, struct rfl_color color, enum rfl_anchor anchor, bool upright)
{
	const char *lines[MAX_LINES];
	const size_t n = wrap(p, text, size, width, lines);

	for (size_t i = 0; i < n; i++) {
		const double off = ((double)i - (double)(n - 1) / 2) * SPACING * size +
				   RFL_TEXT_CAP / 2 * size;
		struct rfl_prim *prim =
			rfl_scene_text(p->s, lines[i], (upright ? x + off : x) * p->u,
				       (upright ? y : y + off) * p->u, size * p->u, color);

		prim->at.text.anchor = anchor;
		prim->at.text.face = face_of(size);
		prim->at.text.angle = upright ? acos(0) : 0;
	}
}

/* Write a text from y down. @return the end of its last line */
static double put_down(const struct page *p, const char *text, double y, double size,
		       struct rfl_color color)
{
	const double width = p->width - 2 * EDGE, h = height_of(p, text, size, width);

	put_text(p, text, EDGE, y + h / 2, size, width, color, RFL_ANCHOR_START, false);
	return y + h;
}

static struct rfl_color color_of(const struct page *p, const struct rfl_chart_series *s)
{
	const struct rfl_theme *t = p->theme;

	if (p->c->nramp) /* without the end close to the paper's colour, which suits areas */
		return rfl_theme_ramp(t, (size_t)s->color + p->c->nramp / 2,
				      p->c->nramp + p->c->nramp / 2);
	return p->c->nbars ? t->phase[s->color % (int)RFL_ARRAY_LEN(t->phase)]
			   : t->category[s->color % (int)RFL_ARRAY_LEN(t->category)];
}

static enum rfl_dash dash_of(const struct rfl_chart_series *s)
{
	return (enum rfl_dash)(s->dash % RFL_DASH_COUNT);
}

static void put_mark(const struct page *p, const struct rfl_chart_series *s, double x, double y)
{
	const struct rfl_color color = color_of(p, s);

	if (s->marker >= 0)
		rfl_scene_marker(p->s, (enum rfl_marker)(s->marker % RFL_CHART_MARKS), x * p->u,
				 y * p->u, MARK * p->u, s->dash % 2 ? p->theme->paper : color,
				 color, p->u);
}

/* ---- panels ---- */

/* The error bars and the line of a series, then its marks. */
static void put_series(const struct page *p, size_t i, const struct rfl_chart_series *s)
{
	const struct axis *x = &p->x[i], *y = &p->y[i];
	const struct rfl_box box = { x->from, y->to, x->to - x->from, y->from - y->to };
	const struct rfl_color color = color_of(p, s);
	const struct rfl_chart_row *before = NULL;

	for (const struct rfl_chart_row *r = s->rows; r < s->rows + s->n; r++) {
		const double px = place(x, r->x), py = place(y, r->y);
		const double lo = place(y, fmax(r->lo, y->of.lo)), hi = place(y, r->hi);

		if (isnan(r->y))
			continue;
		if (before) {
			double x0 = place(x, before->x), y0 = place(y, before->y), x1 = px, y1 = py;

			if (rfl_clip_line(&box, &x0, &y0, &x1, &y1))
				put_line(p, x0, y0, x1, y1, color, s->thin ? 0.6 : 1.3, dash_of(s));
		}
		before = r;
		if (isnan(r->lo))
			continue;
		put_line(p, px, lo, px, hi, color, 0.9, RFL_DASH_SOLID);
		put_line(p, px - CAP, lo, px + CAP, lo, color, 0.9, RFL_DASH_SOLID);
		put_line(p, px - CAP, hi, px + CAP, hi, color, 0.9, RFL_DASH_SOLID);
	}
	for (size_t k = 0; k < s->n; k++)
		if (!isnan(s->rows[k].y) && (s->every < 2 || (int)k % s->every == 0) &&
		    s->rows[k].x >= x->of.lo && s->rows[k].x <= x->of.hi)
			put_mark(p, s, place(x, s->rows[k].x), place(y, s->rows[k].y));
}

/* Draw the crossed mark of a series at each x without a value, in a row above the data. */
static void put_crossed(const struct page *p, size_t i, const struct rfl_chart_series *s, double y)
{
	const struct rfl_color color = color_of(p, s);

	for (size_t k = 0; k < s->n; k++) {
		const double x = place(&p->x[i], s->rows[k].x), r = 1.4 * MARK;

		if (s->rows[k].n)
			continue;
		put_mark(p, s, x, y);
		put_line(p, x - r, y - r, x + r, y + r, color, 1.2, RFL_DASH_SOLID);
		put_line(p, x - r, y + r, x + r, y - r, color, 1.2, RFL_DASH_SOLID);
	}
}

/* Lines across the panel. Each text is to the right of its line, in the first row of texts with
 * room for it. */
static void put_edges(const struct page *p, size_t i)
{
	const struct rfl_chart_panel *d = &p->c->panels[i];
	const struct axis *x = &p->x[i];
	double end[RFL_CHART_EDGES] = { 0 }; /* of the rows */

	for (const struct rfl_chart_edge *e = d->edges; e < d->edges + d->nedges; e++) {
		const double at = place(x, e->x), width = rfl_width(e->text, NOTE);
		const double left = at + 2 + width < x->to ? at + 2 : at - 2 - width;
		size_t row = 0;

		if (!(at > x->from && at < x->to))
			continue;
		put_line(p, at, p->y[i].from, at, p->y[i].to, p->theme->soft, 0.8, RFL_DASH_DASHED);
		while (end[row] > left && row + 1 < RFL_ARRAY_LEN(end))
			row++;
		end[row] = left + width + GAP;
		put_text(p, e->text, left, p->y[i].to + ((double)row + 0.6) * SPACING * NOTE, NOTE,
			 p->width, p->theme->soft, RFL_ANCHOR_START, false);
	}
}

static void put_bars(const struct page *p, double names)
{
	const struct rfl_chart *c = p->c;
	const struct axis *x = &p->x[0];
	const double step = (p->y[0].from - p->y[0].to) / (double)c->nbars;

	for (size_t k = 0; k < c->panels[0].n; k++)
		for (size_t i = 0; i < c->panels[0].series[k].n; i++) {
			const struct rfl_chart_series *s = &c->panels[0].series[k];
			const struct rfl_chart_row *r = &s->rows[i];
			const double y = p->y[0].to + (r->x + 0.5) * step;

			rfl_scene_rect(p->s,
				       (struct rfl_box){ place(x, r->lo) * p->u, (y - BAR) * p->u,
							 (place(x, r->hi) - place(x, r->lo)) * p->u,
							 2 * BAR * p->u },
				       color_of(p, s));
		}
	for (size_t i = 0; i < c->nbars; i++) {
		const double y = p->y[0].to + ((double)i + 0.5) * step;

		put_text(p, c->bars[i].name, x->from - GAP, y, TEXT, names, p->theme->ink,
			 RFL_ANCHOR_END, false);
		put_text(p, c->bars[i].end, x->to + GAP, y, NOTE, p->width, p->theme->soft,
			 RFL_ANCHOR_START, false);
	}
}

static double widest(const struct axis *a)
{
	double most = 0;

	for (size_t i = 0; i < a->n; i++)
		most = fmax(most, rfl_width(a->ticks[i].text, TEXT));
	return most;
}

/* The grid, the ticks and the titles. */
static void put_axes(const struct page *p, size_t i)
{
	const struct axis *x = &p->x[i], *y = &p->y[i];
	const struct rfl_color ink = p->theme->ink;
	const bool bars = p->c->nbars > 0;

	for (size_t k = 0; k < x->n; k++) {
		const double at = place(x, x->ticks[k].at);

		if (bars)
			put_line(p, at, y->from, at, y->to, p->theme->grid, 0.6, RFL_DASH_SOLID);
		put_line(p, at, y->from, at, y->from + 2.5, ink, 0.8, RFL_DASH_SOLID);
		put_text(p, x->ticks[k].text, at, y->from + GAP + LINE / 2, TEXT, p->width, ink,
			 RFL_ANCHOR_MIDDLE, false);
	}
	for (size_t k = 0; k < y->n; k++) {
		const double at = place(y, y->ticks[k].at);

		put_line(p, x->from, at, x->to, at, p->theme->grid, 0.6, RFL_DASH_SOLID);
		put_line(p, x->from - 2.5, at, x->from, at, ink, 0.8, RFL_DASH_SOLID);
		put_text(p, y->ticks[k].text, x->from - GAP, at, TEXT, p->width, ink,
			 RFL_ANCHOR_END, false);
	}
	put_line(p, x->from, y->from, x->to, y->from, ink, 0.8, RFL_DASH_SOLID);
	put_text(p, x->of.title, (x->from + x->to) / 2,
		 y->from + 2 * GAP + LINE + height_of(p, x->of.title, TEXT, x->to - x->from) / 2,
		 TEXT, x->to - x->from, ink, RFL_ANCHOR_MIDDLE, false);
	if (bars)
		return;
	put_line(p, x->from, y->from, x->from, y->to, ink, 0.8, RFL_DASH_SOLID);
	put_text(p, y->of.title,
		 x->from - widest(y) - 2 * GAP -
			 height_of(p, y->of.title, TEXT, y->from - y->to) / 2,
		 (y->from + y->to) / 2, TEXT, y->from - y->to, ink, RFL_ANCHOR_MIDDLE, true);
}

/* ---- the page ---- */

/* Draw the key in a box, of which the height is not used. @return its height */
static double put_key(const struct page *p, double x, double y, double room, bool draw)
{
	const struct rfl_chart_panel *d = &p->c->panels[0];
	const double sample = p->c->nbars ? 17 : SAMPLE + GAP;
	double most = 0, width;
	size_t columns, rows, n = 0;

	for (; n < d->n && !d->series[n].thin; n++)
		most = fmax(most, rfl_width(d->series[n].name, TEXT));
	width = fmin(most, room - sample) + 1;
	columns = (size_t)fmax(1, floor((room + 2 * GAP) / (width + sample + 2 * GAP)));
	rows = (n + columns - 1) / columns;
	for (size_t i = 0; i < n && draw; i++) {
		const struct rfl_chart_series *s = &d->series[i];
		const double left = x + (double)(i / rows) * (width + sample + 2 * GAP);
		const double mid = y + ((double)(i % rows) + 0.5) * ROW;

		if (p->c->nbars)
			rfl_scene_rect(p->s,
				       (struct rfl_box){ (left + 1) * p->u, (mid - 4) * p->u,
							 10 * p->u, 8 * p->u },
				       color_of(p, s));
		else if (s->n > 1) /* a single mark has no line */
			put_line(p, left, mid, left + SAMPLE, mid, color_of(p, s), 1.3, dash_of(s));
		if (!p->c->nbars)
			put_mark(p, s, left + SAMPLE / 2, mid);
		put_text(p, rfl_words_fit_name(p->s, s->name, TEXT, width), left + sample, mid,
			 TEXT, p->width, p->theme->ink, RFL_ANCHOR_START, false);
	}
	return (double)rows * ROW;
}

/* The widest name to the left of the bars, the widest text to their right, and the distance between
 * bars. */
static double measure_bars(const struct page *p, double *names, double *ends)
{
	double most = 0;

	*names = *ends = 0;
	for (const struct rfl_chart_bar *b = p->c->bars; b < p->c->bars + p->c->nbars; b++) {
		*names = fmax(*names, rfl_width(b->name, TEXT));
		*ends = fmax(*ends, GAP + rfl_width(b->end, NOTE));
	}
	*names = fmin(*names, 0.4 * p->width) + 1;
	for (const struct rfl_chart_bar *b = p->c->bars; b < p->c->bars + p->c->nbars; b++)
		most = fmax(most, height_of(p, b->name, TEXT, *names));
	return fmax(16, most + 4);
}

/* Place a panel in a cell from x, y, and draw it.
 * @param left  room for the labels and the title of the y-axis, or the names of the bars
 * @param right  for the texts of the bars */
static void put_panel(struct page *p, size_t i, double x, double y, double width, double height,
		      double left, double right)
{
	const struct rfl_chart_panel *d = &p->c->panels[i];
	double rows = 0;

	p->x[i].from = x + left;
	p->x[i].to = x + width - right;
	p->y[i].from = y + height;
	p->y[i].to = y;
	fit(p, &p->x[i], d, p->c->nbars > 0, p->x[i].to - p->x[i].from);
	for (size_t k = 0; k < d->n && !p->c->nbars; k++)
		rows += d->series[k].has_crossed;
	/* the data end below the crossed marks */
	p->y[i].to += fmin(0.5 * height, CROSSED * (rows + (rows > 0)));
	put_axes(p, i);
	for (size_t k = 0; k < d->n && !p->c->nbars; k++) {
		put_series(p, i, &d->series[k]);
		if (d->series[k].has_crossed)
			put_crossed(p, i, &d->series[k], y + CROSSED * (rows-- - 0.4));
	}
	if (p->c->nbars) {
		put_bars(p, left - GAP);
		return;
	}
	put_line(p, p->x[i].from, p->y[i].to, p->x[i].from, y, p->theme->ink, 0.8, RFL_DASH_SOLID);
	p->y[i].to = y;
	put_edges(p, i);
}

/* Draw everything. @param height  of the page, which grows if that is too little */
static void put_page(struct page *p, double height)
{
	const struct rfl_chart *c = p->c;
	const bool titled = p->theme->has_title; /* otherwise the caption has them */
	const double room = p->width - 2 * EDGE, columns = (double)p->columns;
	const double width = (room - (columns - 1) * 2 * EDGE) / columns;
	const double rows = ceil((double)c->npanels / columns);
	const double notes = titled ? height_of(p, c->note, NOTE, room) : 0;
	/* the cell that the panels leave */
	const bool cell = p->columns > 1 && c->npanels % p->columns &&
			  put_key(p, 0, 0, width - GAP, false) < MIN_PLOT;
	const double key = cell ? 0 : put_key(p, 0, 0, room, false) + GAP;
	double y = EDGE, plot, left = 0, right = 0, axis = 0, names;
	const double step = measure_bars(p, &names, &right);

	if (titled) {
		y = put_down(p, c->title, y, TITLE, p->theme->ink);
		y = put_down(p, c->subtitle, y, TEXT, p->theme->soft) + 2 * GAP;
	}
	for (size_t i = 0; i < c->npanels; i++) /* below a plot: labels and title */
		axis = fmax(
			axis,
			3 * GAP + LINE +
				height_of(p, c->nbars ? c->panels[i].y.title : c->panels[i].x.title,
					  TEXT, 0.7 * width));
	plot = (height - y - key - notes - EDGE) / rows - axis;
	plot = c->nbars ? (double)c->nbars * step : fmax(plot, MIN_PLOT);
	for (size_t i = 0; i < c->npanels && !c->nbars; i++) {
		fit(p, &p->y[i], &c->panels[i], true, plot);
		left = fmax(left, widest(&p->y[i]) + 2 * GAP +
					  height_of(p, c->panels[i].y.title, TEXT, plot));
	}
	for (size_t i = 0; i < c->npanels; i++)
		put_panel(p, i, EDGE + (double)(i % p->columns) * (width + 2 * EDGE),
			  y + (double)(i / p->columns) * (plot + axis), width, plot,
			  c->nbars ? names + GAP : left, right);
	if (cell)
		(void)put_key(p, EDGE + width + 2 * EDGE + left,
			      y + (rows - 1) * (plot + axis) + GAP, width - left, true);
	y += rows * (plot + axis);
	if (!cell)
		y += put_key(p, EDGE + (p->columns > 1 ? 0 : fmin(left, EDGE)), y, room, true) +
		     GAP;
	if (titled)
		y = put_down(p, c->note, y, NOTE, p->theme->soft);
	p->s->height = ceil(y + EDGE / 2) * p->u;
}

enum rfl_rc rfl_chart_draw(struct rfl_chart *c, const struct rfl_chart_spec *spec,
			   struct rfl_err *err)
{
	const struct rfl_theme *t = rfl_theme_find(spec->style);
	struct page *p = rfl_arena_array(c->scene->arena, 1, sizeof(*p));
	double width, height, scale;

	if (!t)
		return rfl_fail(err, RFL_ENOTFOUND, 0, "no style '%s'", spec->style);
	/* the screen styles have a page for rooflines; a chart needs less */
	width = t->width > 1000 ? RFL_CHART_WIDTH : t->width;
	height = t->width > 1000 ? 0 : t->height;
	scale = width / RFL_CHART_WIDTH;
	width = spec->width > 0 ? spec->width : width;
	height = spec->height > 0 ? spec->height : height;
	*p = (struct page){ .c = c, .s = c->scene, .theme = t };
	p->u = scale < 1 ? pow(scale, 0.3) : scale;
	p->width = width / p->u;
	p->columns = c->npanels > 1 && p->width >= NARROW ? 2 : 1;
	c->scene->n = 0;
	c->scene->width = width;
	c->scene->paper = t->paper;
	c->scene->title = c->title;
	c->scene->has_caption = t->has_title;
	c->scene->caption =
		rfl_scene_printf(c->scene, "%s%s%s%s%s", c->title, *c->title ? ". " : "",
				 c->subtitle, *c->subtitle ? ". " : "", c->note);
	put_page(p, height > 0 ? height / p->u : p->width * RFL_CHART_HEIGHT / RFL_CHART_WIDTH);
	if (c->scene->height <= RFL_PLOT_MAX_SIDE)
		return RFL_OK;
	return rfl_fail(err, RFL_EINVAL, 0,
			"%s: %zu configurations do not fit on a page; select fewer with --model, "
			"--batch, --precision or --mode",
			c->stem, c->nbars ? c->nbars : c->panels[0].n);
}
