/* chart_page.c - the layout of a chart: ticks, lines of text, and the positions of plots, key and
 * notes. */
#include "plot/chart_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Widths of a line sample and a bar sample in the key, with the distance to the text. */
#define LINE_SAMPLE 34.0
#define BAR_SAMPLE  17.0
#define MIN_PLOT    150.0

/* ---- axes ---- */

static double nice_step(double range, int most)
{
	const double least = range / most, power = pow(10, floor(log10(least)));

	return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

/* The extent of the data along an axis. */
static void extent(const struct rfl_chart_panel *p, bool along_y, double *lo, double *hi)
{
	*lo = INFINITY;
	*hi = -INFINITY;
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->series[i].n; k++) {
			const struct rfl_chart_row *r = &p->series[i].rows[k];

			/* fmin() and fmax() ignore NaN */
			*lo = fmin(*lo, along_y ? fmin(r->y, r->lo) : r->x);
			*hi = fmax(*hi, along_y ? fmax(r->y, r->hi) : r->x);
		}
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* An axis of base 2 has a tick at each value of the data. Labels that would touch others are
 * omitted, those of powers of two last. */
static void fit_log2(struct rfl_chart_axis *a, const struct rfl_chart_panel *p, double length,
		     struct rfl_chart_ticks *t)
{
	double lo, hi, kept[RFL_CHART_TICKS], shown[RFL_CHART_TICKS][2]; /* centre and half width */
	bool named[RFL_CHART_TICKS] = { false };
	size_t n = 0, nshown = 0;

	extent(p, false, &lo, &hi);
	a->lo = lo / pow(hi / lo, 0.06) / (hi > lo ? 1 : 2);
	a->hi = hi * pow(hi / lo, 0.06) * (hi > lo ? 1 : 2);
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->series[i].n && n < RFL_CHART_TICKS; k++) {
			const double x = p->series[i].rows[k].x;
			size_t at = 0;

			while (at < n && kept[at] != x)
				at++;
			if (at == n)
				kept[n++] = x;
		}
	qsort(kept, n, sizeof(*kept), by_value);
	t->n = n;
	for (size_t i = 0; i < n; i++) {
		t->at[i] = kept[i];
		if (a->bytes)
			(void)rfl_num_bytes(kept[i], t->text[i], sizeof(t->text[i]));
		else
			(void)rfl_num_exact(kept[i], t->text[i]);
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			const double half =
				rfl_text_width(t->text[i], RFL_FACE_REGULAR, RFL_CHART_TEXT) / 2;
			const double at = length * log(kept[i] / a->lo) / log(a->hi / a->lo);
			bool free = (log2(kept[i]) == floor(log2(kept[i]))) == (pass == 0);

			for (size_t k = 0; k < nshown && free; k++)
				free = fabs(at - shown[k][0]) > half + shown[k][1] + 4;
			if (!free)
				continue;
			shown[nshown][0] = at;
			shown[nshown++][1] = half;
			named[i] = true;
		}
	for (size_t i = 0; i < n; i++)
		if (!named[i])
			t->text[i][0] = '\0';
}

static void fit_linear(struct rfl_chart_axis *a, double lo, double hi, int most,
		       struct rfl_chart_ticks *t)
{
	double step;
	int decimals;

	lo = a->zero ? 0 : isnan(a->lo) ? lo : a->lo;
	hi = isnan(a->hi) ? hi : a->hi;
	if (!(hi > lo)) { /* one value, or only zeros */
		hi = hi > 0 ? hi * 1.05 : hi + 1;
		lo = a->zero ? 0 : lo > 0 ? lo * 0.95 : lo - 1;
	}
	step = nice_step(hi - lo, most);
	a->lo = step * floor(lo / step + 1e-9);
	a->hi = step * ceil(hi / step - 1e-9);
	decimals = (int)fmin(9, fmax(0, -floor(log10(step) + 1e-9)));
	for (t->n = 0; t->n < RFL_CHART_TICKS; t->n++) {
		const double at = a->lo + (double)t->n * step;

		if (at > a->hi + step / 2)
			break;
		t->at[t->n] = at;
		(void)rfl_num_fixed(at == 0 ? 0 : at, decimals, t->text[t->n]);
	}
}

double rfl_chart__widest(const struct rfl_chart_ticks *t)
{
	double most = 0;

	for (size_t i = 0; i < t->n; i++)
		most = fmax(most, rfl_text_width(t->text[i], RFL_FACE_REGULAR, RFL_CHART_TEXT));
	return most;
}

/* ---- texts ---- */

size_t rfl_chart__line(const char *text, double size, double width)
{
	size_t blank = 0, len = 0;
	double used = 0;

	while (text[len]) {
		size_t n = rfl_text_utf8(text + len, strlen(text + len));
		char one[5] = "";

		n = n ? n : 1;
		memcpy(one, text + len, n);
		used += rfl_text_width(one, RFL_FACE_REGULAR, size);
		if (used > width && len > 0)
			return blank ? blank : len;
		if (text[len] == ' ' && len > 0)
			blank = len;
		len += n;
	}
	return len;
}

size_t rfl_chart__lines(const char *text, double size, double width)
{
	size_t n = 0;

	do {
		text += rfl_chart__line(text, size, width);
		text += strspn(text, " ");
	} while (++n < RFL_CHART_LINES && *text);
	return n;
}

/* ---- the page ---- */

/* Choose the position of the key, the width of its texts, and the number of its rows. */
static void arrange_key(struct rfl_chart_page *p)
{
	const struct rfl_chart_panel *first = &p->c.panels[0];
	const double room = p->width - 2 * RFL_CHART_EDGE;
	size_t columns = 1;
	double most = 0;

	if (first->n == 0)
		return;
	p->sample = p->c.nbars ? BAR_SAMPLE : LINE_SAMPLE;
	for (size_t i = 0; i < first->n; i++)
		most = fmax(most, rfl_text_width(first->series[i].name, RFL_FACE_REGULAR,
						 RFL_CHART_TEXT));
	p->below = p->c.npanels > 1 || p->c.nbars || most > 0.3 * p->width ||
		   p->width < RFL_CHART_NARROW;
	p->text = fmin(most, room - p->sample) + 1;
	p->column = p->text + p->sample + 2 * RFL_CHART_GAP;
	if (p->below)
		columns = (size_t)fmax(1, floor((room + 2 * RFL_CHART_GAP) / p->column));
	p->rows = (first->n + columns - 1) / columns;
	p->key = (double)((first->n + p->rows - 1) / p->rows) * p->column;
}

double rfl_chart__row_top(const struct rfl_chart_page *p, size_t row)
{
	const struct rfl_chart_panel *first = &p->c.panels[0];
	double y = 0;

	for (size_t i = 0; i < row; i++) {
		size_t lines = 1;

		for (size_t k = i; k < first->n; k += p->rows) {
			const size_t n =
				rfl_chart__lines(first->series[k].name, RFL_CHART_TEXT, p->text);

			lines = n > lines ? n : lines;
		}
		y += 3 + (double)lines * RFL_CHART_LINE * RFL_CHART_TEXT + (lines > 1 ? 4 : 0);
	}
	return y;
}

/* Choose the width of the bars' names and the distance between bars. */
static void arrange_bars(struct rfl_chart_page *p, double *end)
{
	size_t lines = 1;

	*end = 0;
	for (size_t i = 0; i < p->c.nbars; i++) {
		const struct rfl_chart_bar *b = &p->c.bars[i];

		p->name = fmax(p->name, rfl_text_width(b->name, RFL_FACE_REGULAR, RFL_CHART_TEXT));
		*end = fmax(*end, RFL_CHART_GAP +
					  rfl_text_width(b->end, RFL_FACE_REGULAR, RFL_CHART_NOTE));
	}
	p->name = fmin(p->name, 0.4 * p->width) + 1;
	for (size_t i = 0; i < p->c.nbars; i++) {
		const size_t n = rfl_chart__lines(p->c.bars[i].name, RFL_CHART_TEXT, p->name);

		lines = n > lines ? n : lines;
	}
	p->bar = fmax(16, (double)lines * RFL_CHART_LINE * RFL_CHART_TEXT + 4);
}

/* Fit the axes of all panels, and position the plots and the key horizontally. */
static void arrange_across(struct rfl_chart_page *p)
{
	const double columns = p->stacked ? 1 : (double)p->c.npanels;
	const double key = p->rows && !p->below ? p->column : 0;
	double plot, end = 0, labels = 0;

	if (p->c.nbars)
		arrange_bars(p, &end);
	for (size_t i = 0; i < p->c.npanels; i++) {
		struct rfl_chart_panel *panel = &p->c.panels[i];
		double lo, hi;

		extent(panel, true, &lo, &hi);
		fit_linear(&panel->y, lo, hi, 6, p->c.nbars ? &p->across[i] : &p->up[i]);
		labels = fmax(labels, rfl_chart__widest(&p->up[i]));
	}
	labels = p->c.nbars ? p->name + 6
			    : labels + 2 * RFL_CHART_GAP + RFL_CHART_LINE * RFL_CHART_TEXT;
	plot = (p->width - columns * 2 * RFL_CHART_EDGE - key) / columns;
	for (size_t i = 0; i < p->c.npanels; i++) {
		struct rfl_chart_panel *panel = &p->c.panels[i];
		const double from =
			RFL_CHART_EDGE + (p->stacked ? 0 : (double)i * (plot + 2 * RFL_CHART_EDGE));
		double lo, hi;

		p->left[i] = from + labels;
		p->right[i] = from + plot - end;
		extent(panel, false, &lo, &hi);
		if (panel->x.log2)
			fit_log2(&panel->x, panel, p->right[i] - p->left[i], &p->across[i]);
		else if (!p->c.nbars)
			fit_linear(&panel->x, lo, hi,
				   (int)fmin(20, (p->right[i] - p->left[i]) / 45) + 1,
				   &p->across[i]);
	}
	p->key_x = p->right[p->c.npanels - 1] + 2 * RFL_CHART_GAP;
	if (p->below) /* from the axis, if all columns fit */
		p->key_x =
			fmax(RFL_CHART_EDGE, fmin(p->left[0], p->width - RFL_CHART_EDGE +
								      2 * RFL_CHART_GAP - p->key));
}

double rfl_chart__height(const struct rfl_chart_page *p, const char *text, double size)
{
	const double width = p->width - 2 * RFL_CHART_EDGE;

	return *text ? (double)rfl_chart__lines(text, size, width) * RFL_CHART_LINE * size : 0;
}

/* Position everything vertically. Bars have a fixed height; line plots fill the page, which is
 * extended if they would be too low. */
static void arrange_down(struct rfl_chart_page *p)
{
	const double axis = RFL_CHART_GAP + 2 * RFL_CHART_LINE * RFL_CHART_TEXT +
			    2 * RFL_CHART_GAP; /* labels of the ticks, title */
	const double title = rfl_chart__height(p, p->c.title, RFL_CHART_TITLE);
	const double subtitle = rfl_chart__height(p, p->c.subtitle, RFL_CHART_TEXT);
	const double head =
		RFL_CHART_EDGE + title + subtitle + (title + subtitle > 0 ? 2 * RFL_CHART_GAP : 0);
	const double notes = rfl_chart__height(p, p->c.note, RFL_CHART_NOTE);
	const double rows = p->stacked ? (double)p->c.npanels : 1,
		     key = rfl_chart__row_top(p, p->rows);
	const double foot = notes + RFL_CHART_EDGE + (p->below ? key + RFL_CHART_GAP : 0);
	double plot = (p->height - head - foot) / rows - axis;

	plot = p->c.nbars ? (double)p->c.nbars * p->bar
			  : fmax(plot, fmax(MIN_PLOT, p->below ? 0 : key));
	for (size_t i = 0; i < p->c.npanels; i++) {
		p->top[i] = head + (p->stacked ? (double)i * (plot + axis) : 0);
		p->bottom[i] = p->top[i] + plot;
	}
	p->height = ceil(head + rows * (plot + axis) + foot);
	p->key_y = p->below ? p->bottom[p->c.npanels - 1] + axis + RFL_CHART_GAP : p->top[0];
	p->key_y += RFL_CHART_LINE * RFL_CHART_TEXT / 2;
	p->note_y = p->height - RFL_CHART_EDGE / 2 - notes;
}

void rfl_chart__arrange(struct rfl_chart_page *p)
{
	p->stacked = p->c.npanels > 1 && p->width < RFL_CHART_NARROW;
	arrange_key(p);
	arrange_across(p);
	arrange_down(p);
}
