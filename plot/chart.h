/*
 * chart.h - charts: a few panels of lines or bars, from the ledger, the step files and the
 * ceilings. A chart is drawn as a scene, and its numbers are written as a gnuplot script.
 */
#ifndef RFL_PLOT_CHART_H
#define RFL_PLOT_CHART_H

#include <math.h>

#include "base/buf.h"
#include "ledger/repeats.h"
#include "peaks/peaks.h"
#include "plot/scene.h"

/** Sizes in points (1/72 inch): 7 inches wide, the text width of a page. */
#define RFL_CHART_WIDTH  504.0
#define RFL_CHART_HEIGHT 310.0

#define RFL_CHART_PANELS 4
#define RFL_CHART_EDGES  8
#define RFL_CHART_MARKS  8 /**< the first of enum rfl_marker */

struct rfl_chart_row {
	double x, y;
	double lo, hi; /**< ends of the error bar, or of the segment of a bar; NaN: none */
	size_t n;      /**< number of runs, steps or trials of the value; 0: none, and y is NaN */
};

/** A line with marks, or one colour of stacked bars. */
struct rfl_chart_series {
	const char *name;
	int color;                /**< index in the palette */
	int dash;                 /**< index of the dash; odd: with outlined marks */
	int marker;               /**< -1: none */
	int every;                /**< rows from one mark to the next; 0: a mark on every row */
	bool thin;                /**< a bound: a thin line, not in the key; after the others */
	bool has_value, has_bars; /**< some row has a value, an error bar */
	bool has_crossed;         /**< some x has no value */
	size_t n, cap;
	struct rfl_chart_row *rows; /**< sorted by x */
};

struct rfl_chart_axis {
	const char *title;
	double lo, hi; /**< range; NaN: from the data */
	bool zero;     /**< begins at 0 */
	bool whole;    /**< linear: labels only at whole numbers */
	/** Base of a logarithmic axis; 0: linear. With base 2, ticks are at the values of the data,
	 * or at powers of two if there are many values. */
	int log;
	bool bytes; /**< labels are byte counts with binary prefixes */
};

/** A vertical line across a panel, with a text at the top. */
struct rfl_chart_edge {
	double x;
	const char *text;
};

struct rfl_chart_panel {
	struct rfl_chart_axis x, y;
	size_t nedges;
	struct rfl_chart_edge edges[RFL_CHART_EDGES]; /**< sorted by x */
	size_t n, cap;
	struct rfl_chart_series *series;
};

/** A bar, at y = its index, and the names to its left and right. */
struct rfl_chart_bar {
	const char *name, *end;
};

/** A chart. Its texts are data: they are printed and never executed. */
struct rfl_chart {
	struct rfl_scene *scene; /**< owns everything, including this struct; has the drawing */
	const char *stem;        /**< file name without suffix: letters, digits and _ */
	const char *title, *subtitle, *note;
	const char *warning; /**< what the data lacked, for the user; NULL: nothing */
	size_t nbars;        /**< 0: lines */
	size_t nramp; /**< colours are ordered: the number of steps; 0: they are categories */
	struct rfl_chart_bar *bars;
	size_t npanels;
	struct rfl_chart_panel panels[RFL_CHART_PANELS]; /**< with equal series; one key for all */
};

/** Create an empty chart. */
struct rfl_chart *rfl_chart_new(const char *stem, const char *env) RFL_WARN_UNUSED;
/** Accepts NULL. */
static inline void rfl_chart_free(struct rfl_chart *c)
{
	rfl_scene_free(c ? c->scene : NULL);
}
RFL_AUTOPTR_TYPE(chart, free);

/** Find the series with this name, or add it. */
struct rfl_chart_series *rfl_chart_series(struct rfl_chart *c, size_t panel, const char *name);
void rfl_chart_add(struct rfl_chart *c, struct rfl_chart_series *s, struct rfl_chart_row row);

/** A row without an error bar. */
static inline struct rfl_chart_row rfl_chart_point(double x, double y, size_t n)
{
	return (struct rfl_chart_row){ .x = x, .y = y, .lo = NAN, .hi = NAN, .n = n };
}

/** The data of a chart; borrowed for the call only. */
struct rfl_chart_input {
	const struct rfl_repeats *repeats; /**< of the metric of the kind */
	const struct rfl_runs *runs;       /**< with whole rows, unless the kind has an `axis` */
	const struct rfl_peaks_env *peaks; /**< of a kind without a metric */
	const struct rfl_peaks *ceilings;  /**< for bounds; NULL: none */
	const char *env;                   /**< NULL: all, for a kind with `together` */
	const char *dir; /**< directory of the files of runs; NULL: `folder` next to each ledger */
};

struct rfl_chart_runs;

/** The runs that a chart is about, by their mode. */
enum rfl_chart_modes {
	RFL_CHART_ANY,
	RFL_CHART_PASSES, /**< not decode or prefill, which have no phases of a training step */
	RFL_CHART_DECODE
};

/** A kind of chart. */
struct rfl_chart_kind {
	const char *name;
	const char *metric; /**< of the repeats, from rfl_ledger_metrics; NULL: drawn from peaks */
	const char *title;
	const char *axis; /**< of the metric against the batch size: title of the y-axis; or NULL */
	double unit;      /**< unit of this axis, in units of the metric */
	const char *folder, *writer; /**< of the files of runs, <run_id>.csv; NULL: not read */
	enum rfl_chart_modes modes;  /**< of the runs that it shows */
	bool together;               /**< one chart for all environments */
	bool losses;                 /**< see struct rfl_repeats_options */
	enum rfl_rc (*make)(struct rfl_chart_runs *of, struct rfl_err *err); /**< internal */
};

/** All kinds; rows with the same name are in order of preference. The last has name NULL. */
extern const struct rfl_chart_kind rfl_chart_kinds[];

/** The first row with this name, which must exist. */
const struct rfl_chart_kind *rfl_chart_find(const char *name) RFL_WARN_UNUSED;

/**
 * Create a chart.
 * @param ret  set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if the environment has no such data; RFL_EFORMAT names file and line
 */
enum rfl_rc rfl_chart_make(const struct rfl_chart_kind *kind, const struct rfl_chart_input *in,
			   struct rfl_chart **ret, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_chart_spec {
	double width, height; /**< in points; 0: the defaults. The height grows with the key */
	const char *style;    /**< one of rfl_plot_styles; NULL: the first */
};

/** Draw a chart in its scene, instead of an earlier drawing. @return RFL_OK; RFL_EINVAL: it does
 * not fit on a page; RFL_ENOTFOUND: no such style */
enum rfl_rc rfl_chart_draw(struct rfl_chart *c, const struct rfl_chart_spec *spec,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** Append a gnuplot script with the numbers, which draws them as STEM_gnuplot.png. */
void rfl_chart_script(const struct rfl_chart *c, struct rfl_buf *out);

#endif
