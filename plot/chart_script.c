/* chart_script.c - writes a chart as a gnuplot script with its data inside. */
#include <math.h>
#include <string.h>

#include "plot/chart_page.h"

/* Filled point types of gnuplot that differ in shape, in the order of enum rfl_marker, then two
 * crosses. The number before a filled type is the same shape as an outline. */
static const int point_types[RFL_CHART_MARKS] = { 7, 5, 9, 13, 11, 15, 1, 2 };
static const double point_sizes[RFL_CHART_MARKS] = {
	0.75, 0.7, 0.85, 0.95, 0.85, 0.85, 0.75, 0.65
};
static const char *const dashes[RFL_CHART_DASHES] = { "1", "(7,5)", "(1,5)", "(14,5,1,5)",
						      "(3,6)" };

/* ---- texts ---- */

/* Write a text as a gnuplot string in single quotes, which has no escapes. Single quotes are
 * written in double quotes: gnuplot misreads a doubled one at the beginning of a string. */
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

/* Write a text of several lines. If it is cut, the last line ends in an ellipsis. */
static void put_lines(struct rfl_buf *out, const char *text, double size, double width)
{
	for (size_t n = 1; n == 1 || *text; n++) {
		const size_t len = rfl_text_line(text, rfl_chart__face(size), size, width);

		rfl_buf_puts(out, n > 1 ? ".\"\\n\"." : "");
		put_text(out, text, len);
		if (n == RFL_CHART_LINES && text[len]) {
			rfl_buf_puts(out, ".'\xe2\x80\xa6'");
			return;
		}
		text += len;
		text += strspn(text, " ");
	}
}

/* ---- the script ---- */

/* The texts of this section belong to the scene of the chart. */

static const char *number(const struct rfl_chart_page *p, double value)
{
	char text[RFL_NUM_MAX];

	return isnan(value) ? "NaN"
			    : rfl_scene_printf(p->c.scene, "%s", rfl_num_exact(value, text));
}

static const char *rgb(const struct rfl_chart_page *p, struct rfl_color c)
{
	return rfl_scene_printf(p->c.scene, "rgb '#%02x%02x%02x'", c.r, c.g, c.b);
}

/* A position on the page, in points from its upper left corner. */
static const char *position(const struct rfl_chart_page *p, double x, double y)
{
	return rfl_scene_printf(p->c.scene, "screen %.5f, screen %.5f", x / p->width,
				1 - y / p->height);
}

static void put_label(const struct rfl_chart_page *p, const char *text, double x, double y,
		      double size, double width, struct rfl_color color, const char *more)
{
	const char *bold = rfl_chart__face(size) == RFL_FACE_BOLD ? " Bold" : "";

	if (!*text)
		return;
	rfl_buf_puts(p->out, "set label ");
	put_lines(p->out, text, size, width);
	rfl_buf_printf(p->out, " at %s font '%s%s,%g' %s textcolor %s\n", position(p, x, y),
		       *bold ? p->family : "", bold, size * p->terminal, more, rgb(p, color));
}

static struct rfl_color color_of(const struct rfl_chart_page *p, const struct rfl_chart_series *s)
{
	const struct rfl_theme *t = p->theme;

	if (p->c.nramp) /* without the end close to the paper's colour: it suits areas, not lines */
		return rfl_theme_ramp(t, (size_t)s->color + p->c.nramp / 2,
				      p->c.nramp + p->c.nramp / 2);
	return p->c.nbars ? t->phase[s->color % (int)RFL_ARRAY_LEN(t->phase)]
			  : t->category[s->color % (int)RFL_ARRAY_LEN(t->category)];
}

static const char *mark_of(const struct rfl_chart_page *p, const struct rfl_chart_series *s)
{
	const size_t i = (size_t)s->marker % RFL_CHART_MARKS;
	const bool outline = s->dash % 2 && point_types[i] > 2; /* marks may have no line */

	return rfl_scene_printf(p->c.scene, " pointtype %d pointsize %g", point_types[i] - outline,
				point_sizes[i] * p->terminal);
}

static const char *stroke_of(const struct rfl_chart_page *p, const struct rfl_chart_series *s)
{
	return rfl_scene_printf(p->c.scene, " linewidth 1.3 dashtype %s linecolor %s",
				dashes[(size_t)s->dash % RFL_CHART_DASHES], rgb(p, color_of(p, s)));
}

/* The key consists of labels, and of boxes for bars, because gnuplot's own key guesses the widths
 * of texts. */
static void put_key(const struct rfl_chart_page *p)
{
	for (size_t i = 0; i < p->c.panels[0].n; i++) {
		const struct rfl_chart_series *s = &p->c.panels[0].series[i];
		const double x = p->key_x + (double)(i / p->rows) * p->column;
		const double y = p->key_y + rfl_chart__row_top(p, i % p->rows);

		put_label(p, s->name, x + p->sample, y, RFL_CHART_TEXT, p->text, p->theme->ink,
			  "left");
		if (p->c.nbars)
			rfl_buf_printf(p->out,
				       "set object rectangle from %s to %s fillstyle solid 1 "
				       "noborder fillcolor %s\n",
				       position(p, x + p->sample - 16, y - 4),
				       position(p, x + p->sample - 6, y + 4),
				       rgb(p, color_of(p, s)));
	}
}

/* Line samples are a plot of the whole page: the SVG terminal draws no other dashed lines. */
static void put_key_lines(const struct rfl_chart_page *p)
{
	const struct rfl_chart_panel *d = &p->c.panels[0];
	const char *before = "plot ";
	struct rfl_buf *out = p->out;

	rfl_buf_puts(
		out,
		"unset label\nunset object\nunset border\nunset xtics\nunset ytics\n"
		"unset logscale\nunset arrow\nset lmargin at screen 0\nset rmargin at screen 1\n"
		"set tmargin at screen 1\nset bmargin at screen 0\n");
	rfl_buf_printf(out, "set xrange [0:%g]\nset yrange [%g:0]\n", p->width, p->height);
	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_chart_series *s = &d->series[i];

		if (s->n > 1) { /* a single mark has no line */
			rfl_buf_printf(out, "%s$key_%zu with lines%s", before, i + 1,
				       stroke_of(p, s));
			before = ", \\\n     ";
		}
		if (s->marker >= 0) {
			rfl_buf_printf(out, "%s$key_%zu every ::1::1 with points%s linecolor %s",
				       before, i + 1, mark_of(p, s), rgb(p, color_of(p, s)));
			before = ", \\\n     ";
		}
	}
	rfl_buf_putc(out, '\n');
}

/* The range and the ticks of an axis. */
static void put_axis(const struct rfl_chart_page *p, char axis, const struct rfl_chart_axis *a,
		     const struct rfl_chart_ticks *t)
{
	rfl_buf_printf(p->out, "set %crange [%s:%s]\nset %ctics (", axis, number(p, a->lo),
		       number(p, a->hi), axis);
	for (size_t i = 0; i < t->n; i++)
		rfl_buf_printf(p->out, "%s'%s' %s", i ? ", " : "", t->text[i], number(p, t->at[i]));
	rfl_buf_puts(p->out, ")\n");
}

/* Draw the crossed mark of its series at each x without a value, in the rows that the layout left
 * above the data, one for each series. */
static void put_crossed(const struct rfl_chart_page *p, size_t panel)
{
	const struct rfl_chart_panel *d = &p->c.panels[panel];
	size_t rows = 0;

	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_chart_series *s = &d->series[i];
		double share, at;

		if (!s->has_crossed)
			continue;
		share = 1 - RFL_CHART_CROSSED * ((double)rows++ + 0.6) /
				    (p->bottom[panel] - p->top[panel]);
		at = d->y.log ? d->y.lo * pow(d->y.hi / d->y.lo, share)
			      : d->y.lo + share * (d->y.hi - d->y.lo);
		for (int cross = 0; cross < 2; cross++)
			rfl_buf_printf(
				p->out,
				", \\\n     $panel%zu_%zu using 1:($5 == 0 ? %s : NaN) with "
				"points%s linecolor %s",
				panel + 1, i + 1, number(p, at),
				cross ? rfl_scene_printf(p->c.scene,
							 " pointtype 2 pointsize %g linewidth 1.2",
							 1.15 * p->terminal)
				      : mark_of(p, s),
				rgb(p, color_of(p, s)));
	}
}

static void put_plot(const struct rfl_chart_page *p, size_t panel)
{
	const struct rfl_chart_panel *d = &p->c.panels[panel];
	const char *before = "plot ";
	struct rfl_buf *out = p->out;

	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_chart_series *s = &d->series[i];

		if (!s->has_value) /* gnuplot would warn */
			continue;
		rfl_buf_printf(out, "%s$panel%zu_%zu using ", before, panel + 1, i + 1);
		before = ", \\\n     ";
		if (p->c.nbars) {
			rfl_buf_printf(out,
				       "(($3 + $4) / 2):1:3:4:($1 - %g):($1 + %g) with boxxyerror "
				       "fillstyle solid 1 noborder fillcolor %s",
				       RFL_CHART_BAR / p->bar, RFL_CHART_BAR / p->bar,
				       rgb(p, color_of(p, s)));
			continue;
		}
		if (s->has_bars) {
			/* gnuplot's yerrorbars would hide other marks nearby */
			if (d->y.log)
				rfl_buf_printf(
					out, "1:($3 > %g ? $3 : %g):(0):($4 - ($3 > %g ? $3 : %g))",
					d->y.lo, d->y.lo, d->y.lo, d->y.lo);
			else
				rfl_buf_puts(out, "1:3:(0):($4 - $3)");
			rfl_buf_printf(out,
				       " with vectors heads size screen %.5f,90 linewidth 0.9 "
				       "linecolor %s, \\\n     $panel%zu_%zu using ",
				       RFL_CHART_CAP / p->width, rgb(p, color_of(p, s)), panel + 1,
				       i + 1);
		}
		rfl_buf_printf(out, "1:2 with %s%s%s", s->marker < 0 ? "lines" : "linespoints",
			       stroke_of(p, s), s->marker < 0 ? "" : mark_of(p, s));
		if (s->every > 1)
			rfl_buf_printf(out, " pointinterval %d", s->every);
	}
	if (*before == 'p')
		rfl_buf_puts(out, "plot NaN");
	put_crossed(p, panel);
	rfl_buf_putc(out, '\n');
}

/* Lines across the panel. Each text is to the right of its line, in the first row of texts with
 * room for it. */
static void put_edges(const struct rfl_chart_page *p, size_t i)
{
	const struct rfl_chart_panel *d = &p->c.panels[i];
	double end[RFL_CHART_EDGES] = { 0 }; /* of the rows */

	for (const struct rfl_chart_edge *e = d->edges; e < d->edges + d->nedges; e++) {
		const double share = log(e->x / d->x.lo) / log(d->x.hi / d->x.lo);
		const double at = p->left[i] + share * (p->right[i] - p->left[i]);
		const double width = rfl_width(e->text, RFL_CHART_NOTE);
		const double x = at + 2 + width < p->right[i] ? at + 2 : at - 2 - width;
		size_t row = 0;

		if (!(share > 0 && share < 1))
			continue;
		rfl_buf_printf(p->out,
			       "set arrow from first %s, graph 0 rto graph 0, graph 1 nohead back "
			       "linewidth 0.8 dashtype (4,4) linecolor %s\n",
			       number(p, e->x), rgb(p, p->theme->soft));
		while (end[row] > x)
			row++;
		end[row] = x + width + RFL_CHART_GAP;
		put_label(p, e->text, x,
			  p->top[i] + ((double)row + 0.6) * RFL_CHART_LINE * RFL_CHART_NOTE,
			  RFL_CHART_NOTE, p->width, p->theme->soft, "left");
	}
}

static void put_panel(const struct rfl_chart_page *p, size_t i)
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
	rfl_buf_puts(out, "unset logscale\n");
	if (across->log)
		rfl_buf_printf(out, "set logscale x %d\n", across->log);
	if (!bars && d->y.log)
		rfl_buf_printf(out, "set logscale y %d\n", d->y.log);
	put_axis(p, 'x', across, &p->across[i]);
	if (bars) {
		rfl_buf_printf(out, "set yrange [%s:-0.5]\nunset ytics\n",
			       number(p, (double)p->c.nbars - 0.5));
	} else {
		put_axis(p, 'y', &d->y, &p->up[i]);
		put_label(p, d->y.title,
			  p->left[i] - rfl_chart__widest(&p->up[i]) - 2 * RFL_CHART_GAP -
				  RFL_CHART_LINE * RFL_CHART_TEXT / 2,
			  (p->top[i] + p->bottom[i]) / 2, RFL_CHART_TEXT,
			  p->bottom[i] - p->top[i] + 2 * RFL_CHART_EDGE, t->ink,
			  "center rotate by 90");
	}
	put_label(p, across->title, (p->left[i] + p->right[i]) / 2,
		  p->bottom[i] + 2 * RFL_CHART_GAP + 1.5 * RFL_CHART_LINE * RFL_CHART_TEXT,
		  RFL_CHART_TEXT, p->right[i] - p->left[i] + 2 * RFL_CHART_EDGE, t->ink, "center");
	for (size_t k = 0; k < p->c.nbars; k++) {
		const double y = p->top[i] + ((double)k + 0.5) * p->bar;

		put_label(
			p, p->c.bars[k].name, p->left[i] - RFL_CHART_GAP,
			y - (double)(rfl_chart__lines(p->c.bars[k].name, RFL_CHART_TEXT, p->name) -
				     1) *
					RFL_CHART_LINE * RFL_CHART_TEXT / 2,
			RFL_CHART_TEXT, p->name, t->ink, "right");
		put_label(p, p->c.bars[k].end, p->right[i] + RFL_CHART_GAP, y, RFL_CHART_NOTE,
			  p->width, t->soft, "left");
	}
	put_edges(p, i);
	put_plot(p, i);
}

static void put_body(const struct rfl_chart_page *p)
{
	const struct rfl_theme *t = p->theme;
	const double width = p->width - 2 * RFL_CHART_EDGE;
	struct rfl_buf *out = p->out;
	double y = RFL_CHART_EDGE;

	rfl_buf_printf(out,
		       "reset\nset datafile missing 'NaN'\nset multiplot\nunset key\n"
		       "set border %d linewidth 0.8 linecolor %s\n"
		       "set tics nomirror out scale 0.5 font ',%g' textcolor %s\n"
		       "set grid %s linetype 1 linewidth 0.6 dashtype solid linecolor %s\n"
		       "unset label\nunset object\nunset arrow\n",
		       p->c.nbars ? 1 : 3, rgb(p, t->ink), RFL_CHART_TEXT * p->terminal,
		       rgb(p, t->ink), p->c.nbars ? "xtics noytics" : "ytics noxtics",
		       rgb(p, t->grid));
	put_label(p, p->c.title, RFL_CHART_EDGE, y + RFL_CHART_TITLE / 2, RFL_CHART_TITLE, width,
		  t->ink, "left");
	y += rfl_chart__height(p, p->c.title, RFL_CHART_TITLE);
	put_label(p, p->c.subtitle, RFL_CHART_EDGE, y + RFL_CHART_TEXT / 2, RFL_CHART_TEXT, width,
		  t->soft, "left");
	put_label(p, p->c.note, RFL_CHART_EDGE, p->note_y + RFL_CHART_NOTE / 2, RFL_CHART_NOTE,
		  width, t->soft, "left");
	put_key(p);
	for (size_t i = 0; i < p->c.npanels; i++) {
		if (i > 0)
			rfl_buf_puts(out, "unset label\nunset object\nunset arrow\n");
		put_panel(p, i);
	}
	if (!p->c.nbars)
		put_key_lines(p);
	rfl_buf_puts(out, "unset multiplot\n");
}

/* Write the terminal of a format. The cairo terminals assume font sizes for 96 pixels per inch, and
 * the PDF terminal draws lines at half their width. */
static void put_terminal(const struct rfl_chart_page *p, const char *format, double dpi)
{
	const double width = p->width * p->scale, height = p->height * p->scale;
	const double pixels = dpi / 72, scale = p->scale * pixels;

	if (strcmp(format, "png") == 0)
		rfl_buf_printf(
			p->out,
			"set terminal pngcairo noenhanced rounded font '%s,%g' fontscale %.5f "
			"linewidth %.5f pointscale %.5f dashlength 2 size %.0f,%.0f",
			p->family, RFL_CHART_TEXT, scale * 0.75, scale, scale, width * pixels,
			height * pixels);
	else if (strcmp(format, "pdf") == 0)
		rfl_buf_printf(p->out,
			       "set terminal pdfcairo noenhanced rounded font '%s,%g' fontscale "
			       "%.5f linewidth %.5f pointscale %.5f dashlength 1.4 size "
			       "%.5fin,%.5fin",
			       p->family, RFL_CHART_TEXT, p->scale * 0.75, p->scale * 2, p->scale,
			       width / 72, height / 72);
	else
		rfl_buf_printf(
			p->out,
			"set terminal svg noenhanced rounded font '%s,%g' linewidth %.5f size "
			"%.0f,%.0f",
			p->family, RFL_CHART_TEXT * p->scale, p->scale, width, height);
	rfl_buf_printf(p->out, " background %s\n", rgb(p, p->theme->paper));
}

static void put_data(const struct rfl_chart_page *p)
{
	rfl_buf_puts(p->out, "set encoding utf8\n");
	for (size_t i = 0; i < p->c.npanels; i++)
		for (size_t k = 0; k < p->c.panels[i].n; k++) {
			const struct rfl_chart_series *s = &p->c.panels[i].series[k];

			rfl_buf_printf(p->out, "# x y low high n\n$panel%zu_%zu << EOD\n", i + 1,
				       k + 1);
			for (const struct rfl_chart_row *r = s->rows; r < s->rows + s->n; r++) {
				rfl_buf_printf(p->out, "%s %s %s %s %zu\n", number(p, r->x),
					       number(p, r->y), number(p, r->lo), number(p, r->hi),
					       r->n);
			}
			rfl_buf_puts(p->out, "EOD\n");
		}
	for (size_t i = 0; i < p->c.panels[0].n && !p->c.nbars; i++) {
		const double x = p->key_x + (double)(i / p->rows) * p->column;
		const double y = p->key_y + rfl_chart__row_top(p, i % p->rows);
		const double length = p->sample - RFL_CHART_GAP;

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
	struct rfl_chart_page p = { .out = out, .c = *c, .theme = rfl_theme_find(spec->style) };
	double width, height;
	enum rfl_rc rc = rfl_scene_check(c->scene, err);

	if (rc != RFL_OK)
		return rc;
	if (!p.theme)
		return rfl_fail(err, RFL_ENOTFOUND, 0, "no style '%s'", spec->style);
	/* the screen styles have a page for rooflines; a chart needs less */
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
	rfl_chart__arrange(&p);
	if (p.height * p.scale > RFL_PLOT_MAX_SIDE)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: %zu configurations do not fit on a page; select fewer with "
				"--model, --batch, --precision or --mode",
				c->stem, c->nbars ? c->nbars : c->panels[0].n);
	if (to_files)
		rfl_buf_printf(out, "# Draw again, in this folder: gnuplot %s.gp\n", c->stem);
	put_data(&p);
	for (size_t i = 0; i < nformats; i++) {
		const bool svg = strcmp(formats[i], "svg") == 0;

		/* Arial has the same widths, and more viewers have it */
		p.family = svg ? "Arial" : "Liberation Sans";
		p.terminal = svg ? p.scale : 1;
		put_terminal(&p, formats[i], spec->dpi > 0 ? spec->dpi : 144);
		if (to_files)
			rfl_buf_printf(out, "set output '%s.%s'\n", c->stem, formats[i]);
		put_body(&p);
	}
	rc = rfl_scene_check(c->scene, err);
	return rc == RFL_OK ? rfl_buf_check(out, c->stem, err) : rc;
}
