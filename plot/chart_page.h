/* chart_page.h - internal: the layout of a chart, in points from the upper left corner of the page.
 */
#ifndef RFL_PLOT_CHART_PAGE_H
#define RFL_PLOT_CHART_PAGE_H

#include "base/num.h"
#include "plot/chart.h"
#include "plot/figure.h"

/* Font sizes, distances and lengths. */
#define RFL_CHART_TEXT    9.0
#define RFL_CHART_TITLE   12.0
#define RFL_CHART_NOTE    7.5
#define RFL_CHART_LINE    1.25 /**< line spacing in font sizes */
#define RFL_CHART_EDGE    14.0
#define RFL_CHART_GAP     6.0
#define RFL_CHART_BAR     5.8   /**< half of the height of a bar */
#define RFL_CHART_CROSSED 10.0  /**< distance between crossed marks, which have no value */
#define RFL_CHART_CAP     2.5   /**< half of the width of an error bar's end */
#define RFL_CHART_NARROW  420.0 /**< on a narrower page, plots are stacked */
#define RFL_CHART_LINES   8     /**< maximum number of lines of a text; the rest is cut */
#define RFL_CHART_TICKS   128

struct rfl_chart_ticks {
	size_t n;
	double at[RFL_CHART_TICKS];
	char text[RFL_CHART_TICKS][RFL_NUM_MAX];
};

struct rfl_chart_page {
	struct rfl_buf *out;
	const struct rfl_theme *theme;
	/* Points per unit of the lengths below: on a small page, texts are larger in proportion. */
	double scale;
	struct rfl_chart c; /* a copy, with the ranges of its axes */
	double width, height;
	/* edges of the plots */
	double left[RFL_CHART_PANELS], right[RFL_CHART_PANELS];
	double top[RFL_CHART_PANELS], bottom[RFL_CHART_PANELS];
	size_t columns; /* plots side by side; the others are below them */
	struct rfl_chart_ticks across[RFL_CHART_PANELS], up[RFL_CHART_PANELS];

	/* the key */
	bool below;          /* below the plots, not to the right */
	double key_x, key_y; /* its first entry */
	size_t rows;
	double key, sample, text, column; /* widths: all, sample, text; column spacing */

	double terminal;    /* scale that the gnuplot terminal (SVG) does not apply itself */
	const char *family; /* of its fonts */
	double bar, name;   /* distance between bars, width of their names */
	double note_y;
};

/** Fit the axes and position everything. The caller sets theme, scale, chart, width and height; the
 * height may grow. */
void rfl_chart__arrange(struct rfl_chart_page *p);

/** The face of a text by its size: titles are bold. */
static inline enum rfl_face rfl_chart__face(double size)
{
	return size >= RFL_CHART_TITLE ? RFL_FACE_BOLD : RFL_FACE_REGULAR;
}

/** The number of lines of a text. */
size_t rfl_chart__lines(const char *text, double size, double width);
/** The height of a text as wide as the page; 0 for an empty one. */
double rfl_chart__height(const struct rfl_chart_page *p, const char *text, double size);

double rfl_chart__widest(const struct rfl_chart_ticks *t);

/** The upper edge of a row of the key, from that of the key. Rows differ in height. */
double rfl_chart__row_top(const struct rfl_chart_page *p, size_t row);

#endif
