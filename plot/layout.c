/*
 * layout.c - where things go on the page: the scale of the type, the boxes of plot, panel, legend
 * strip and footnote, and the ranges of the axes. Small pages lose the panel first, then lines of
 * the footnote, so that the plot keeps its share.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

#define NOTE_LINES 8 /* at most */

static double clamp(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

size_t rfl_figure__wrap(struct rfl_figure *f, const char *text, double size, double width,
			const char **lines, size_t max)
{
	size_t n = 0;

	while (*text && n < max) {
		size_t len = 0, next = 0;
		const char *line = "";

		while (text[next]) {
			size_t word = next + strcspn(text + next, " ");
			const char *longer = rfl_scene_printf(f->scene, "%.*s", (int)word, text);

			if (len > 0 && rfl_text_width(longer, RFL_FACE_REGULAR, size) > width)
				break;
			line = longer;
			len = word;
			next = word + strspn(text + word, " ");
		}
		if (n + 1 == max && text[next]) /* no room for the rest */
			line = rfl_scene_printf(f->scene, "%s\xe2\x80\xa6", line);
		lines[n++] = rfl_words_fit(f->scene, line, RFL_FACE_REGULAR, size, width);
		text += next;
	}
	return n;
}

static const char *join_notes(struct rfl_figure *f, size_t from, size_t to)
{
	const char *text = "";

	for (size_t i = from; i < to; i++)
		text = *text ? rfl_scene_printf(f->scene, "%s  %s", text, f->notes[i])
			     : f->notes[i];
	return text;
}

size_t rfl_figure__note_lines(struct rfl_figure *f, const char ***lines)
{
	double size = SZ(f, footnote);
	size_t max = (size_t)((f->foot.h - 22 * f->scale) / (13 * f->scale) + 0.5);
	size_t n = 0, from = 0;

	*lines = rfl_scene_array(f->scene, NOTE_LINES + 1, sizeof(const char *));
	if (!*lines)
		return 0;
	if (max > NOTE_LINES)
		max = NOTE_LINES;
	for (size_t i = 0; i < RFL_ARRAY_LEN(f->note_groups); i++) {
		n += rfl_figure__wrap(f, join_notes(f, from, f->note_groups[i]), size, f->foot.w,
				      *lines + n, max + 1 - n);
		from = f->note_groups[i];
	}
	if (n <= max)
		return n;
	/* too many lines: one flowing text, cut at the end */
	return rfl_figure__wrap(f, join_notes(f, 0, f->nnotes), size, f->foot.w, *lines, max);
}

static size_t wanted_lines(struct rfl_figure *f, double width)
{
	const char **lines;

	f->foot = (struct rfl_box){ 0, 0, width, (22 + 13 * NOTE_LINES) * f->scale };
	return rfl_figure__note_lines(f, &lines);
}

/* Ranges of the data. A point more than three decades from the knee or from the roof does not
 * stretch the axes: it becomes a mark at the edge. */
static void fit_axes(struct rfl_figure *f)
{
	double x0 = f->knee / 20, x1 = f->knee * 4, y0 = f->gflops / 20, y1 = f->gflops;
	double s = f->scale;

	for (size_t i = 0; i < f->nmarks; i++) {
		const struct rfl_mark *m = &f->marks[i];
		double best = isnan(m->x_best) ? m->x : m->x_best;

		x0 = fmin(x0, m->x * 0.5);
		x1 = fmax(x1, fmax(m->x * 4, best * 5));
		y0 = fmin(y0, m->y * 0.5);
		y1 = fmax(y1, m->y);
	}
	for (size_t i = 0; i < f->nceilings; i++)
		if (f->ceilings[i].kind == RFL_FIG_COMPUTE)
			y1 = fmax(y1, f->ceilings[i].value);
	x0 = fmax(x0, f->knee / 1000);
	x1 = fmin(x1, f->knee * 3000);
	y0 = fmax(y0, f->gflops / 3000);
	y1 = fmin(y1, f->gflops * 10);
	f->unit = y1 > 20000 ? 1000 : 1;
	f->unit_name = f->unit > 1 ? "TFLOP/s" : "GFLOP/s";
	rfl_axis_fit(&f->x, x0, x1, f->plot.x, f->plot.x + f->plot.w, 40 * s);
	rfl_axis_fit(&f->y, y0 / f->unit, y1 * 1.6 / f->unit, f->plot.y + f->plot.h, f->plot.y,
		     24 * s);
}

static void fit_boxes(struct rfl_figure *f)
{
	double w = f->scene->width, h = f->scene->height, s = f->scale;
	double left = 92 * s, right = 32 * s, top = (*f->subtitle ? 84 : 62) * s, below = 62 * s;
	double panel_w = 330 * s, gap = 30 * s;
	double wide = w - left - right;
	size_t lines = wanted_lines(f, wide);
	double strip_h;

	f->has_panel = wide - panel_w - gap >= fmax(400 * s, 0.5 * w) && h >= 560 * s;
	f->plot = (struct rfl_box){ left, top, wide - (f->has_panel ? panel_w + gap : 0), 0 };
	strip_h = f->has_panel
			  ? 0
			  : rfl_draw__legend(f, (struct rfl_box){ 0, 0, wide, 0 }, false) + 8 * s;
	if (strip_h > 0.3 * h)
		strip_h = 0;
	for (;;) {
		f->foot.h = (22 + 13 * (double)lines) * s;
		f->plot.h = h - top - below - strip_h - f->foot.h;
		if (f->plot.h >= 0.45 * h)
			break;
		if (lines > 1)
			lines--;
		else if (strip_h > 0)
			strip_h = 0;
		else
			break;
	}
	f->foot = (struct rfl_box){ left, h - f->foot.h, wide, f->foot.h };
	f->strip = (struct rfl_box){ left, f->plot.y + f->plot.h + below, wide, strip_h };
	f->panel = (struct rfl_box){ left + f->plot.w + gap, top, panel_w, f->plot.h + below };
}

void rfl_figure__layout(struct rfl_figure *f)
{
	f->scale = clamp(fmin(f->scene->width / RFL_PLOT_WIDTH, f->scene->height / RFL_PLOT_HEIGHT),
			 0.62, 4);
	/* The second round knows which kinds of marks there are, and so what is to be explained. */
	for (int round = 0; round < 2; round++) {
		rfl_figure__words(f);
		fit_boxes(f);
		fit_axes(f);
		rfl_draw__survey(f);
	}
	f->place = rfl_place_new(f->scene, rfl_box_grow(f->plot, -3 * f->scale));
}
