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
#define FEW_TICKS   14    /* with more values, a logarithmic axis has ticks of its own */
#define LARGEST     1e300 /* value on an axis, so that its limits do not overflow */

/* ---- axes ---- */

static double nice_step(double range, int most)
{
	const double least = range / most, power = pow(10, floor(log10(least)));

	return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
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

/* Whether a value of a logarithmic axis is a power of its base. */
static bool is_power(const struct rfl_chart_axis *a, double value)
{
	const double power = log(value) / log(a->log);

	return fabs(power - round(power)) < 1e-9;
}

/* The values that may get a tick: 1, 2 and 5 of each decade; with base 2, the values of the data if
 * there are few, otherwise powers of two. */
static size_t log_values(const struct rfl_chart_axis *a, const struct rfl_chart_panel *p,
			 double at[RFL_CHART_TICKS])
{
	static const double digits[] = { 1, 2, 5 };
	double first, step;
	size_t n = 0;

	for (size_t i = 0; i < p->n && a->log == 2 && n <= FEW_TICKS; i++)
		for (size_t k = 0; k < p->series[i].n && n <= FEW_TICKS; k++) {
			const double x = p->series[i].rows[k].x;
			size_t found = 0;

			while (found < n && at[found] != x)
				found++;
			if (found == n)
				at[n++] = x;
		}
	if (n > 0 && n <= FEW_TICKS) {
		qsort(at, n, sizeof(*at), rfl_by_double);
		return n;
	}
	n = 0;
	first = floor(log(a->lo) / log(a->log) + 1e-9);
	step = ceil((log(a->hi) / log(a->log) - first) / (RFL_CHART_TICKS / 4));
	for (double power = first; pow(a->log, power) <= a->hi * (1 + 1e-9); power += step)
		for (size_t i = 0; i < (a->log == 10 && step <= 1 ? RFL_ARRAY_LEN(digits) : 1);
		     i++) {
			const double value = digits[i] * pow(a->log, power);

			if (value >= a->lo * (1 - 1e-9) && value <= a->hi * (1 + 1e-9) &&
			    n < RFL_CHART_TICKS)
				at[n++] = value;
		}
	return n;
}

/* The next value of 1, 2 or 5 times a power of ten, downwards or upwards. */
static double round_log(double value, bool up)
{
	const double step = nice_step(value, 1); /* not below the value */

	if (up || step <= value * (1 + 1e-9))
		return step;
	return step / (step >= 5 * pow(10, floor(log10(step) + 1e-9)) * (1 - 1e-9) ? 2.5 : 2);
}

static bool is_named(const struct rfl_chart_axis *a, double value, int every)
{
	return fmod(round(log(value) / log(a->log)), every) == 0;
}

/* Whether the labels of every second, fourth ... power would touch. */
static bool every_touches(const struct rfl_chart_axis *a, const struct rfl_chart_ticks *t,
			  int every, double length)
{
	double most = 0;

	for (size_t i = 0; i < t->n; i++)
		if (is_named(a, t->at[i], every))
			most = fmax(most, rfl_width(t->text[i], RFL_CHART_TEXT));
	return most + 6 > length * every * log(a->log) / log(a->hi / a->lo);
}

/* Labels that would touch others are omitted, those of powers of the base last; of many powers of
 * two, every second, fourth or eighth has one. */
static void fit_log(struct rfl_chart_axis *a, const struct rfl_chart_panel *p, bool along_y,
		    double length, struct rfl_chart_ticks *t)
{
	double lo, hi, shown[RFL_CHART_TICKS][2]; /* centre and half width */
	bool named[RFL_CHART_TICKS] = { false };
	size_t nshown = 0;
	int every = 1;

	extent(p, along_y, &lo, &hi);
	if (a->log == 10) {
		a->lo = round_log(lo, false);
		a->hi = round_log(hi > lo ? hi : 2 * lo, true);
	} else {
		a->lo = lo / pow(hi / lo, 0.06) / (hi > lo ? 1 : 2);
		a->hi = hi * pow(hi / lo, 0.06) * (hi > lo ? 1 : 2);
	}
	t->n = log_values(a, p, t->at);
	for (size_t i = 0; i < t->n; i++)
		if (a->bytes)
			(void)rfl_num_bytes(t->at[i], t->text[i], sizeof(t->text[i]));
		else
			(void)rfl_num_exact(t->at[i], t->text[i]);
	while (t->n > FEW_TICKS && every_touches(a, t, every, length))
		every *= 2;
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < t->n; i++) {
			const double half = along_y ? 0.6 * RFL_CHART_TEXT
						    : rfl_width(t->text[i], RFL_CHART_TEXT) / 2;
			const double at = length * log(t->at[i] / a->lo) / log(a->hi / a->lo);
			bool free = is_power(a, t->at[i]) == (pass == 0) &&
				    (every == 1 || is_named(a, t->at[i], every));

			for (size_t k = 0; k < nshown && free; k++)
				free = fabs(at - shown[k][0]) > half + shown[k][1] + 4;
			if (!free)
				continue;
			shown[nshown][0] = at;
			shown[nshown++][1] = half;
			named[i] = true;
		}
	for (size_t i = 0; i < t->n; i++)
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
	lo = fmin(fmax(lo, -LARGEST), LARGEST);
	hi = fmin(fmax(hi, -LARGEST), LARGEST);
	if (!(hi > lo)) { /* one value, or only zeros */
		hi = hi > 0 ? hi * 1.05 : hi + fmax(1, -0.05 * hi);
		lo = a->zero ? 0 : lo > 0 ? lo * 0.95 : lo - fmax(1, -0.05 * lo);
	}
	step = fmax(nice_step(hi - lo, most), a->whole ? 1 : 0);
	a->lo = step * floor(lo / step + 1e-9);
	a->hi = step * ceil(hi / step - 1e-9);
	decimals = (int)fmin(9, fmax(0, -floor(log10(step) + 1e-9)));
	for (t->n = 0; t->n < RFL_CHART_TICKS; t->n++) {
		const double at = a->lo + (double)t->n * step;

		if (at > a->hi + step / 2)
			break;
		t->at[t->n] = at;
		if (step >= 1e12 && at != 0)
			(void)rfl_num_people(at, 3, t->text[t->n]);
		else
			(void)rfl_num_fixed(at == 0 ? 0 : at, decimals, t->text[t->n]);
	}
}

double rfl_chart__widest(const struct rfl_chart_ticks *t)
{
	double most = 0;

	for (size_t i = 0; i < t->n; i++)
		most = fmax(most, rfl_width(t->text[i], RFL_CHART_TEXT));
	return most;
}

/* ---- texts ---- */

size_t rfl_chart__lines(const char *text, double size, double width)
{
	size_t n = 0;

	do {
		text += rfl_text_line(text, rfl_chart__face(size), size, width);
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
		most = fmax(most, rfl_width(first->series[i].name, RFL_CHART_TEXT));
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
	for (const struct rfl_chart_bar *b = p->c.bars; b < p->c.bars + p->c.nbars; b++) {
		p->name = fmax(p->name, rfl_width(b->name, RFL_CHART_TEXT));
		*end = fmax(*end, RFL_CHART_GAP + rfl_width(b->end, RFL_CHART_NOTE));
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
	const double columns = (double)p->columns;
	const double key = p->rows && !p->below ? p->column : 0;
	double plot, end = 0, labels = 0, most = 6;

	if (p->c.nbars) {
		arrange_bars(p, &end);
		most = fmax(1, fmin(most, (p->width - 2 * RFL_CHART_EDGE - p->name - end) / 45));
	}
	for (size_t i = 0; i < p->c.npanels; i++) {
		struct rfl_chart_panel *panel = &p->c.panels[i];
		double lo, hi;

		extent(panel, true, &lo, &hi);
		if (panel->y.log)
			fit_log(&panel->y, panel, true, MIN_PLOT, &p->up[i]);
		else
			fit_linear(&panel->y, lo, hi, (int)most,
				   p->c.nbars ? &p->across[i] : &p->up[i]);
		labels = fmax(labels, rfl_chart__widest(&p->up[i]));
	}
	labels = p->c.nbars ? p->name + 6
			    : labels + 2 * RFL_CHART_GAP + RFL_CHART_LINE * RFL_CHART_TEXT;
	plot = (p->width - columns * 2 * RFL_CHART_EDGE - key) / columns;
	for (size_t i = 0; i < p->c.npanels; i++) {
		struct rfl_chart_panel *panel = &p->c.panels[i];
		const double from =
			RFL_CHART_EDGE + (double)(i % p->columns) * (plot + 2 * RFL_CHART_EDGE);
		double lo, hi;

		p->left[i] = from + labels;
		p->right[i] = from + plot - end;
		extent(panel, false, &lo, &hi);
		if (panel->x.log)
			fit_log(&panel->x, panel, false, p->right[i] - p->left[i], &p->across[i]);
		else if (!p->c.nbars)
			fit_linear(&panel->x, lo, hi,
				   (int)fmin(20, (p->right[i] - p->left[i]) / 45) + 1,
				   &p->across[i]);
	}
	p->key_x = p->right[p->columns - 1] + 2 * RFL_CHART_GAP;
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

/* Extend the y-axis by a row for the crossed marks of each series. */
static void leave_crossed(struct rfl_chart_panel *panel, double height)
{
	struct rfl_chart_axis *y = &panel->y;
	double rows = 0, share;

	for (size_t i = 0; i < panel->n; i++)
		rows += panel->series[i].has_crossed;
	share = fmin(0.5, RFL_CHART_CROSSED * (rows + (rows > 0)) / height);
	if (y->log)
		y->hi = y->lo * pow(y->hi / y->lo, 1 / (1 - share));
	else
		y->hi = y->lo + (y->hi - y->lo) / (1 - share);
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
	const double rows = ceil((double)p->c.npanels / (double)p->columns);
	const double key = rfl_chart__row_top(p, p->rows);
	const double foot = notes + RFL_CHART_EDGE + (p->below ? key + RFL_CHART_GAP : 0);
	double plot = (p->height - head - foot) / rows - axis;

	plot = p->c.nbars ? (double)p->c.nbars * p->bar
			  : fmax(plot, fmax(MIN_PLOT, p->below ? 0 : key));
	for (size_t i = 0; i < p->c.npanels; i++) {
		p->top[i] = head + (double)(i / p->columns) * (plot + axis);
		p->bottom[i] = p->top[i] + plot;
		if (!p->c.nbars)
			leave_crossed(&p->c.panels[i], plot);
	}
	p->height = ceil(head + rows * (plot + axis) + foot);
	p->key_y = p->below ? p->bottom[p->c.npanels - 1] + axis + RFL_CHART_GAP : p->top[0];
	p->key_y += RFL_CHART_LINE * RFL_CHART_TEXT / 2;
	p->note_y = p->height - RFL_CHART_EDGE / 2 - notes;
}

void rfl_chart__arrange(struct rfl_chart_page *p)
{
	p->columns = p->c.npanels > 1 && p->width >= RFL_CHART_NARROW ? 2 : 1;
	arrange_key(p);
	arrange_across(p);
	arrange_down(p);
}
