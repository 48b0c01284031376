/* chart_script.c - lays a chart out and writes it as a gnuplot script with its data inside. */
#include "plot/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "plot/figure.h"

#define MAX_TICKS 128

/* Font sizes and distances in points. */
#define TEXT  9.0
#define TITLE 12.0
#define NOTE  7.5
#define LINE  1.25 /* in font sizes */
#define EDGE  14.0
#define GAP   6.0
/* Widths in the key, with the distance to the text, of a piece of line and of a piece of bar. */
#define LINE_SAMPLE 34.0
#define BAR_SAMPLE  17.0
#define NARROW      420.0
#define MIN_PLOT    150.0
#define BAR         5.8 /* half of the height of a bar */
#define CAP         2.5 /* half of the width of an error bar's end */
#define MAX_LINES   8   /* of a text; the rest is cut */

/* Signs of gnuplot that differ in shape, in the order of enum rfl_marker, then a cross. */
static const int point_types[RFL_CHART_MARKS] = { 7, 5, 9, 13, 11, 15, 1, 2 };
static const double point_sizes[RFL_CHART_MARKS] = {
	0.75, 0.7, 0.85, 0.95, 0.85, 0.85, 0.75, 0.65
};
static const char *const dashes[RFL_CHART_DASHES] = { "1", "(10,8)", "(1,6)", "(20,7,1,7)",
						      "(4,7)" };

/* ---- axes ---- */

struct ticks {
	size_t n;
	double at[MAX_TICKS];
	char text[MAX_TICKS][RFL_NUM_MAX];
};

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

/* An axis of base 2 has a tick at each value of the data. Labels that would touch others are left
 * out, those of powers of two last. */
static void fit_log2(struct rfl_chart_axis *a, const struct rfl_chart_panel *p, double length,
		     struct ticks *t)
{
	double lo, hi, kept[MAX_TICKS], shown[MAX_TICKS][2]; /* centre and half width */
	bool named[MAX_TICKS] = { false };
	size_t n = 0, nshown = 0;

	extent(p, false, &lo, &hi);
	a->lo = lo / pow(hi / lo, 0.06) / (hi > lo ? 1 : 2);
	a->hi = hi * pow(hi / lo, 0.06) * (hi > lo ? 1 : 2);
	for (size_t i = 0; i < p->n; i++)
		for (size_t k = 0; k < p->series[i].n && n < MAX_TICKS; k++) {
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
			const double half = rfl_text_width(t->text[i], RFL_FACE_REGULAR, TEXT) / 2;
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

static void fit_linear(struct rfl_chart_axis *a, double lo, double hi, int most, struct ticks *t)
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
	for (t->n = 0; t->n < MAX_TICKS; t->n++) {
		const double at = a->lo + (double)t->n * step;

		if (at > a->hi + step / 2)
			break;
		t->at[t->n] = at;
		(void)rfl_num_fixed(at == 0 ? 0 : at, decimals, t->text[t->n]);
	}
}

static double widest(const struct ticks *t)
{
	double most = 0;

	for (size_t i = 0; i < t->n; i++)
		most = fmax(most, rfl_text_width(t->text[i], RFL_FACE_REGULAR, TEXT));
	return most;
}

/* ---- texts ---- */

/* Write a text as a gnuplot string in single quotes, in which nothing is special. A single quote is
 * added in double quotes: gnuplot misreads a doubled one at the beginning of a string. */
static void put_text(struct rfl_buf *out, const char *text, size_t len)
{
	rfl_buf_putc(out, '\'');
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (c == '\'')
			rfl_buf_puts(out, "'.\"'\".'");
		else
			rfl_buf_putc(out, c < ' ' || c == 0x7f ? '?' : text[i]);
	}
	rfl_buf_putc(out, '\'');
}

/* The length of the first line of a text: broken at a blank if there is one, else anywhere. */
static size_t line_len(const char *text, double size, double width)
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

/* Write a text of several lines. With `out` NULL, only count them. The last of too many ends in an
 * ellipsis. */
static size_t put_lines(struct rfl_buf *out, const char *text, double size, double width,
			size_t most)
{
	size_t n = 0;

	do {
		const size_t len = line_len(text, size, width);
		const bool cut = ++n == most && text[len];

		if (out) {
			rfl_buf_puts(out, n > 1 ? ".\"\\n\"." : "");
			put_text(out, text, len);
			rfl_buf_puts(out, cut ? ".'\xe2\x80\xa6'" : "");
		}
		text += len;
		text += strspn(text, " ");
		if (cut)
			break;
	} while (*text);
	return n;
}

/* ---- the page ---- */

struct page {
	struct rfl_buf *out;
	const struct rfl_theme *theme;
	/* Points per unit of the lengths below: on a small page, texts are larger in proportion. */
	double scale;
	struct rfl_chart c; /* a copy, with the ranges of its axes */
	double width, height;
	/* edges of the plots */
	double left[RFL_CHART_PANELS], right[RFL_CHART_PANELS];
	double top[RFL_CHART_PANELS], bottom[RFL_CHART_PANELS];
	bool stacked; /* one plot above the other, not side by side */
	struct ticks across[RFL_CHART_PANELS], up[RFL_CHART_PANELS];

	/* the key */
	bool below;          /* below the plots, not to the right */
	double key_x, key_y; /* its first entry */
	size_t rows;
	double key, sample, text, column; /* widths: all, sample, text, distance of columns */

	double terminal;  /* scale that the terminal does not apply itself: SVG */
	double bar, name; /* distance between bars, width of their names */
	double note_y;
};

/* Choose the place of the key, the width of its texts, and the number of its rows. */
static void arrange_key(struct page *p)
{
	const struct rfl_chart_panel *first = &p->c.panels[0];
	const double room = p->width - 2 * EDGE;
	size_t columns = 1;
	double most = 0;

	if (first->n == 0)
		return;
	p->sample = p->c.nbars ? BAR_SAMPLE : LINE_SAMPLE;
	for (size_t i = 0; i < first->n; i++)
		most = fmax(most, rfl_text_width(first->series[i].name, RFL_FACE_REGULAR, TEXT));
	p->below = p->c.npanels > 1 || p->c.nbars || most > 0.3 * p->width || p->width < NARROW;
	p->text = fmin(most, room - p->sample) + 1;
	p->column = p->text + p->sample + 2 * GAP;
	if (p->below)
		columns = (size_t)fmax(1, floor((room + 2 * GAP) / p->column));
	p->rows = (first->n + columns - 1) / columns;
	p->key = (double)((first->n + p->rows - 1) / p->rows) * p->column;
}

/* The upper edge of a row of the key, from that of the key. Rows have their own heights. */
static double row_top(const struct page *p, size_t row)
{
	const struct rfl_chart_panel *first = &p->c.panels[0];
	double y = 0;

	for (size_t i = 0; i < row; i++) {
		size_t lines = 1;

		for (size_t k = i; k < first->n; k += p->rows) {
			const size_t n =
				put_lines(NULL, first->series[k].name, TEXT, p->text, MAX_LINES);

			lines = n > lines ? n : lines;
		}
		y += 3 + (double)lines * LINE * TEXT + (lines > 1 ? 4 : 0);
	}
	return y;
}

/* Width of the bars' names, and the distance between bars. */
static void arrange_bars(struct page *p, double *end)
{
	size_t lines = 1;

	*end = 0;
	for (size_t i = 0; i < p->c.nbars; i++) {
		const struct rfl_chart_bar *b = &p->c.bars[i];

		p->name = fmax(p->name, rfl_text_width(b->name, RFL_FACE_REGULAR, TEXT));
		*end = fmax(*end, GAP + rfl_text_width(b->end, RFL_FACE_REGULAR, NOTE));
	}
	p->name = fmin(p->name, 0.4 * p->width) + 1;
	for (size_t i = 0; i < p->c.nbars; i++) {
		const size_t n = put_lines(NULL, p->c.bars[i].name, TEXT, p->name, MAX_LINES);

		lines = n > lines ? n : lines;
	}
	p->bar = fmax(16, (double)lines * LINE * TEXT + 4);
}

/* Fit the axes of all panels, and place the plots and the key across the page. */
static void arrange_across(struct page *p)
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
		labels = fmax(labels, widest(&p->up[i]));
	}
	labels = p->c.nbars ? p->name + 6 : labels + 2 * GAP + LINE * TEXT;
	plot = (p->width - columns * 2 * EDGE - key) / columns;
	for (size_t i = 0; i < p->c.npanels; i++) {
		struct rfl_chart_panel *panel = &p->c.panels[i];
		const double from = EDGE + (p->stacked ? 0 : (double)i * (plot + 2 * EDGE));
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
	p->key_x = p->right[p->c.npanels - 1] + 2 * GAP;
	if (p->below) /* from the axis, if all columns fit */
		p->key_x = fmax(EDGE, fmin(p->left[0], p->width - EDGE + 2 * GAP - p->key));
}

/* The height of a text as wide as the page; 0 for an empty one. */
static double height_of(const struct page *p, const char *text, double size)
{
	const double width = p->width - 2 * EDGE;

	return *text ? (double)put_lines(NULL, text, size, width, MAX_LINES) * LINE * size : 0;
}

/* Place everything down the page. Bars have their natural height; the plots of lines fill the page,
 * which is extended if they would be too low. */
static void arrange_down(struct page *p)
{
	const double axis = GAP + 2 * LINE * TEXT + 2 * GAP; /* labels of the ticks, title */
	const double title = height_of(p, p->c.title, TITLE);
	const double subtitle = height_of(p, p->c.subtitle, TEXT);
	const double head = EDGE + title + subtitle + (title + subtitle > 0 ? 2 * GAP : 0);
	const double notes = height_of(p, p->c.note, NOTE);
	const double rows = p->stacked ? (double)p->c.npanels : 1, key = row_top(p, p->rows);
	const double foot = notes + EDGE + (p->below ? key + GAP : 0);
	double plot = (p->height - head - foot) / rows - axis;

	plot = p->c.nbars ? (double)p->c.nbars * p->bar
			  : fmax(plot, fmax(MIN_PLOT, p->below ? 0 : key));
	for (size_t i = 0; i < p->c.npanels; i++) {
		p->top[i] = head + (p->stacked ? (double)i * (plot + axis) : 0);
		p->bottom[i] = p->top[i] + plot;
	}
	p->height = ceil(head + rows * (plot + axis) + foot);
	p->key_y = p->below ? p->bottom[p->c.npanels - 1] + axis + GAP : p->top[0];
	p->key_y += LINE * TEXT / 2;
	p->note_y = p->height - EDGE / 2 - notes;
}

/* ---- the script ---- */

static void put_number(struct rfl_buf *out, double value)
{
	char text[RFL_NUM_MAX];

	rfl_buf_puts(out, isnan(value) ? "NaN" : rfl_num_exact(value, text));
}

static void put_color(struct rfl_buf *out, const char *what, struct rfl_color c)
{
	rfl_buf_printf(out, " %s rgb '#%02x%02x%02x'", what, c.r, c.g, c.b);
}

/* A place on the page, in points from its upper left corner. */
static void put_at(const struct page *p, double x, double y)
{
	rfl_buf_printf(p->out, "screen %.5f, screen %.5f", x / p->width, 1 - y / p->height);
}

static void put_label(const struct page *p, const char *text, double x, double y, double size,
		      double width, struct rfl_color color, const char *more)
{
	if (!*text)
		return;
	rfl_buf_puts(p->out, "set label ");
	put_lines(p->out, text, size, width, MAX_LINES);
	rfl_buf_puts(p->out, " at ");
	put_at(p, x, y);
	rfl_buf_printf(p->out, " font ',%g' %s", size * p->terminal, more);
	put_color(p->out, "textcolor", color);
	rfl_buf_putc(p->out, '\n');
}

static struct rfl_color color_of(const struct page *p, const struct rfl_chart_series *s)
{
	const struct rfl_theme *t = p->theme;

	return p->c.nbars ? t->phase[s->color % (int)RFL_ARRAY_LEN(t->phase)]
			  : t->category[s->color % (int)RFL_ARRAY_LEN(t->category)];
}

static void put_mark(const struct page *p, const struct rfl_chart_series *s)
{
	const size_t i = (size_t)s->marker % RFL_CHART_MARKS;

	rfl_buf_printf(p->out, " pointtype %d pointsize %g", point_types[i],
		       point_sizes[i] * p->terminal);
}

static void put_stroke(const struct page *p, const struct rfl_chart_series *s)
{
	struct rfl_buf *out = p->out;

	rfl_buf_printf(out, " linewidth 1.3 dashtype %s",
		       dashes[(size_t)s->dash % RFL_CHART_DASHES]);
	put_color(out, "linecolor", color_of(p, s));
}

/* The key has its texts as labels, and boxes for bars: gnuplot's own key guesses the widths of
 * texts. */
static void put_key(const struct page *p)
{
	for (size_t i = 0; i < p->c.panels[0].n; i++) {
		const struct rfl_chart_series *s = &p->c.panels[0].series[i];
		const double x = p->key_x + (double)(i / p->rows) * p->column;
		const double y = p->key_y + row_top(p, i % p->rows);

		put_label(p, s->name, x + p->sample, y, TEXT, p->text, p->theme->ink, "left");
		if (!p->c.nbars)
			continue;
		rfl_buf_puts(p->out, "set object rectangle from ");
		put_at(p, x + p->sample - 16, y - 4);
		rfl_buf_puts(p->out, " to ");
		put_at(p, x + p->sample - 6, y + 4);
		rfl_buf_puts(p->out, " fillstyle solid 1 noborder");
		put_color(p->out, "fillcolor", color_of(p, s));
		rfl_buf_putc(p->out, '\n');
	}
}

/* Samples of lines are a plot of the whole page: the SVG terminal draws no other dashed lines. */
static void put_key_lines(const struct page *p)
{
	const struct rfl_chart_panel *d = &p->c.panels[0];
	const char *before = "plot ";
	struct rfl_buf *out = p->out;

	rfl_buf_puts(out, "unset label\nunset object\nunset border\nunset xtics\nunset ytics\n"
			  "unset logscale x\nset lmargin at screen 0\nset rmargin at screen 1\n"
			  "set tmargin at screen 1\nset bmargin at screen 0\n");
	rfl_buf_printf(out, "set xrange [0:%g]\nset yrange [%g:0]\n", p->width, p->height);
	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_chart_series *s = &d->series[i];

		if (s->n > 1) { /* a single mark has no line */
			rfl_buf_printf(out, "%s$key_%zu with lines", before, i + 1);
			put_stroke(p, s);
			before = ", \\\n     ";
		}
		if (s->marker >= 0) {
			rfl_buf_printf(out, "%s$key_%zu every ::1::1 with points", before, i + 1);
			put_mark(p, s);
			put_color(out, "linecolor", color_of(p, s));
			before = ", \\\n     ";
		}
	}
	rfl_buf_putc(out, '\n');
}

static void put_ticks(struct rfl_buf *out, char axis, const struct ticks *t)
{
	rfl_buf_printf(out, "set %ctics (", axis);
	for (size_t i = 0; i < t->n; i++) {
		rfl_buf_printf(out, "%s'%s' ", i ? ", " : "", t->text[i]);
		put_number(out, t->at[i]);
	}
	rfl_buf_puts(out, ")\n");
}

static void put_range(struct rfl_buf *out, char axis, double lo, double hi)
{
	rfl_buf_printf(out, "set %crange [", axis);
	put_number(out, lo);
	rfl_buf_putc(out, ':');
	put_number(out, hi);
	rfl_buf_puts(out, "]\n");
}

static bool has_error_bars(const struct rfl_chart_series *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!isnan(s->rows[i].lo))
			return true;
	return false;
}

static void put_plot(const struct page *p, size_t panel)
{
	const struct rfl_chart_panel *d = &p->c.panels[panel];
	const char *before = "plot ";
	struct rfl_buf *out = p->out;

	for (size_t i = 0; i < d->n; i++, before = ", \\\n     ") {
		const struct rfl_chart_series *s = &d->series[i];
		const struct rfl_color color = color_of(p, s);

		if (s->n == 0)
			continue;
		rfl_buf_printf(out, "%s$panel%zu_%zu using ", before, panel + 1, i + 1);
		if (p->c.nbars) {
			rfl_buf_printf(out,
				       "(($3 + $4) / 2):1:3:4:($1 - %g):($1 + %g) with boxxyerror "
				       "fillstyle solid 1 noborder",
				       BAR / p->bar, BAR / p->bar);
			put_color(out, "fillcolor", color);
			continue;
		}
		if (has_error_bars(s)) {
			/* gnuplot's yerrorbars would hide what is near their marks */
			rfl_buf_printf(out,
				       "1:3:(0):($4 - $3) with vectors heads size screen %.5f,90 "
				       "linewidth 0.9",
				       CAP / p->width);
			put_color(out, "linecolor", color);
			rfl_buf_printf(out, ", \\\n     $panel%zu_%zu using ", panel + 1, i + 1);
		}
		rfl_buf_printf(out, "1:2 with %s", s->marker < 0 ? "lines" : "linespoints");
		put_stroke(p, s);
		if (s->marker >= 0)
			put_mark(p, s);
		if (s->every > 1)
			rfl_buf_printf(out, " pointinterval %d", s->every);
	}
	rfl_buf_putc(out, '\n');
}

static void put_panel(const struct page *p, size_t i)
{
	const struct rfl_chart_panel *d = &p->c.panels[i];
	const struct rfl_theme *t = p->theme;
	const bool bars = p->c.nbars > 0;
	const struct rfl_chart_axis *across = bars ? &d->y : &d->x;
	struct rfl_buf *out = p->out;

	rfl_buf_printf(out,
		       "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
		       "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
		       p->left[i] / p->width, p->right[i] / p->width, 1 - p->top[i] / p->height,
		       1 - p->bottom[i] / p->height);
	rfl_buf_puts(out, across->log2 ? "set logscale x 2\n" : "unset logscale x\n");
	put_range(out, 'x', across->lo, across->hi);
	put_ticks(out, 'x', &p->across[i]);
	if (bars) {
		put_range(out, 'y', (double)p->c.nbars - 0.5, -0.5);
		rfl_buf_puts(out, "unset ytics\n");
	} else {
		put_range(out, 'y', d->y.lo, d->y.hi);
		put_ticks(out, 'y', &p->up[i]);
		put_label(p, d->y.title, p->left[i] - widest(&p->up[i]) - 2 * GAP - LINE * TEXT / 2,
			  (p->top[i] + p->bottom[i]) / 2, TEXT, p->bottom[i] - p->top[i] + 2 * EDGE,
			  t->ink, "center rotate by 90");
	}
	put_label(p, across->title, (p->left[i] + p->right[i]) / 2,
		  p->bottom[i] + 2 * GAP + 1.5 * LINE * TEXT, TEXT,
		  p->right[i] - p->left[i] + 2 * EDGE, t->ink, "center");
	for (size_t k = 0; k < p->c.nbars; k++) {
		const double y = p->top[i] + ((double)k + 0.5) * p->bar;

		put_label(
			p, p->c.bars[k].name, p->left[i] - GAP,
			y - (double)(put_lines(NULL, p->c.bars[k].name, TEXT, p->name, MAX_LINES) -
				     1) *
					LINE * TEXT / 2,
			TEXT, p->name, t->ink, "right");
		put_label(p, p->c.bars[k].end, p->right[i] + GAP, y, NOTE, p->width, t->soft,
			  "left");
	}
	put_plot(p, i);
}

static void put_body(const struct page *p)
{
	const struct rfl_theme *t = p->theme;
	const double width = p->width - 2 * EDGE;
	struct rfl_buf *out = p->out;
	double y = EDGE;

	rfl_buf_puts(out, "reset\nset datafile missing 'NaN'\nset multiplot\n");
	rfl_buf_printf(out, "unset key\nset border %d linewidth 0.8", p->c.nbars ? 1 : 3);
	put_color(out, "linecolor", t->ink);
	rfl_buf_printf(out, "\nset tics nomirror out scale 0.5 font ',%g'", TEXT * p->terminal);
	put_color(out, "textcolor", t->ink);
	rfl_buf_puts(out, p->c.nbars ? "\nset grid xtics noytics" : "\nset grid ytics noxtics");
	rfl_buf_puts(out, " linetype 1 linewidth 0.6 dashtype solid");
	put_color(out, "linecolor", t->grid);
	rfl_buf_puts(out, "\nunset label\nunset object\n");
	put_label(p, p->c.title, EDGE, y + TITLE / 2, TITLE, width, t->ink, "left");
	y += height_of(p, p->c.title, TITLE);
	put_label(p, p->c.subtitle, EDGE, y + TEXT / 2, TEXT, width, t->soft, "left");
	put_label(p, p->c.note, EDGE, p->note_y + NOTE / 2, NOTE, width, t->soft, "left");
	put_key(p);
	for (size_t i = 0; i < p->c.npanels; i++) {
		if (i > 0)
			rfl_buf_puts(out, "unset label\nunset object\n");
		put_panel(p, i);
	}
	if (!p->c.nbars)
		put_key_lines(p);
	rfl_buf_puts(out, "unset multiplot\n");
}

/* The terminal of a format. Those of cairo have font sizes for 96 pixels per inch, and that of PDF
 * draws lines of half their width. */
static void put_terminal(const struct page *p, const char *format, double dpi)
{
	const double width = p->width * p->scale, height = p->height * p->scale;
	const double pixels = dpi / 72, scale = p->scale * pixels;

	if (strcmp(format, "png") == 0)
		rfl_buf_printf(
			p->out,
			"set terminal pngcairo noenhanced rounded font 'Liberation Sans,%g' "
			"fontscale %.5f linewidth %.5f pointscale %.5f dashlength 2 size %.0f,%.0f",
			TEXT, scale * 0.75, scale, scale, width * pixels, height * pixels);
	else if (strcmp(format, "pdf") == 0)
		rfl_buf_printf(p->out,
			       "set terminal pdfcairo noenhanced rounded font 'Liberation Sans,%g' "
			       "fontscale %.5f linewidth %.5f pointscale %.5f dashlength 1.4 size "
			       "%.5fin,%.5fin",
			       TEXT, p->scale * 0.75, p->scale * 2, p->scale, width / 72,
			       height / 72);
	else /* Arial has the same widths, and more viewers have it */
		rfl_buf_printf(
			p->out,
			"set terminal svg noenhanced rounded font 'Arial,%g' linewidth %.5f size "
			"%.0f,%.0f",
			TEXT * p->scale, p->scale, width, height);
	put_color(p->out, "background", p->theme->paper);
	rfl_buf_putc(p->out, '\n');
}

static void put_data(const struct page *p)
{
	rfl_buf_puts(p->out, "set encoding utf8\n");
	for (size_t i = 0; i < p->c.npanels; i++)
		for (size_t k = 0; k < p->c.panels[i].n; k++) {
			const struct rfl_chart_series *s = &p->c.panels[i].series[k];

			rfl_buf_printf(p->out, "# x y low high n\n$panel%zu_%zu << EOD\n", i + 1,
				       k + 1);
			for (size_t j = 0; j < s->n; j++) {
				const struct rfl_chart_row *r = &s->rows[j];
				const double values[] = { r->x, r->y, r->lo, r->hi };

				for (size_t m = 0; m < RFL_ARRAY_LEN(values); m++) {
					put_number(p->out, values[m]);
					rfl_buf_putc(p->out, ' ');
				}
				rfl_buf_printf(p->out, "%zu\n", s->rows[j].n);
			}
			rfl_buf_puts(p->out, "EOD\n");
		}
	for (size_t i = 0; i < p->c.panels[0].n && !p->c.nbars; i++) {
		const double x = p->key_x + (double)(i / p->rows) * p->column;
		const double y = p->key_y + row_top(p, i % p->rows);
		const double length = p->sample - GAP;

		rfl_buf_printf(p->out, "$key_%zu << EOD\n%g %g\n%g %g\n%g %g\nEOD\n", i + 1, x, y,
			       x + length / 2, y, x + length, y);
	}
}

const char *rfl_chart_caption(const struct rfl_chart *c, const char *style)
{
	const struct rfl_theme *theme = rfl_theme_find(style);

	if (!theme || theme->has_title)
		return NULL;
	return rfl_scene_printf(c->scene, "%s%s%s%s%s", c->title, *c->title ? ". " : "",
				c->subtitle, *c->subtitle ? ". " : "", c->note);
}

enum rfl_rc rfl_chart_script(const struct rfl_chart *c, const struct rfl_chart_spec *spec,
			     const char *const *formats, size_t nformats, bool to_files,
			     struct rfl_buf *out, struct rfl_err *err)
{
	struct page p = { .out = out, .c = *c, .theme = rfl_theme_find(spec->style) };
	double width, height;
	enum rfl_rc rc = rfl_scene_check(c->scene, err);

	if (rc != RFL_OK)
		return rc;
	if (!p.theme)
		return rfl_fail(err, RFL_ENOTFOUND, 0, "no style '%s'", spec->style);
	/* the pages for the screen are those of the roofline; a chart needs less */
	width = p.theme->width > 1000 ? RFL_CHART_WIDTH : p.theme->width;
	height = p.theme->width > 1000 ? 0 : p.theme->height;
	if (spec->width > 0)
		width = spec->width;
	if (spec->height > 0)
		height = spec->height;
	p.scale = p.theme->width > 1000 ? 1 : p.theme->width / RFL_CHART_WIDTH;
	if (p.scale < 1)
		p.scale = pow(p.scale, 0.3);
	p.width = width / p.scale;
	p.height = height > 0 ? height / p.scale : p.width * RFL_CHART_HEIGHT / RFL_CHART_WIDTH;
	if (!p.theme->has_title) /* the caption has them */
		p.c.title = p.c.subtitle = p.c.note = "";
	p.stacked = c->npanels > 1 && p.width < NARROW;
	arrange_key(&p);
	arrange_across(&p);
	arrange_down(&p);
	if (p.height * p.scale > RFL_PLOT_MAX_SIDE)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %zu configurations do not fit on a page; select fewer with "
				"--model, --batch, --precision or --mode",
				c->stem, c->nbars ? c->nbars : c->panels[0].n);
	if (to_files)
		rfl_buf_printf(out, "# Draw again, in this folder: gnuplot %s.gp\n", c->stem);
	put_data(&p);
	for (size_t i = 0; i < nformats; i++) {
		put_terminal(&p, formats[i], spec->dpi > 0 ? spec->dpi : 144);
		if (to_files)
			rfl_buf_printf(out, "set output '%s.%s'\n", c->stem, formats[i]);
		p.terminal = strcmp(formats[i], "svg") == 0 ? p.scale : 1;
		put_body(&p);
	}
	return rfl_buf_check(out, c->stem, err);
}
