/*
 * chart.h - charts drawn by gnuplot: a few panels of lines or bars, from the ledger, the step files
 * and the ceilings. A chart becomes one gnuplot script that contains its data and is kept next to
 * the picture: 'gnuplot FILE.gp' redraws it. The same chart gives the same script.
 */
#ifndef RFL_PLOT_CHART_H
#define RFL_PLOT_CHART_H

#include "base/buf.h"
#include "ledger/repeats.h"
#include "peaks/peaks.h"
#include "plot/scene.h"

/** Sizes in points (1/72 inch): 7 inches wide, the text width of a page. */
#define RFL_CHART_WIDTH  504.0
#define RFL_CHART_HEIGHT 310.0

#define RFL_CHART_PANELS 4
#define RFL_CHART_EDGES  8
#define RFL_CHART_DASHES 5
#define RFL_CHART_MARKS  8

struct rfl_chart_row {
	double x, y;
	double lo, hi; /**< ends of the error bar, or of the segment of a bar; NaN: none */
	size_t n;      /**< number of runs, steps or trials of the value; 0: none, and y is NaN */
};

/** A line with marks, or one colour of stacked bars. */
struct rfl_chart_series {
	const char *name;
	int color;  /**< index in the palette */
	int dash;   /**< index of the dash pattern; odd: with outlined marks */
	int marker; /**< -1: none */
	int every;  /**< distance of marks in rows; 0: a mark on every row */
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
	struct rfl_scene *scene; /**< owns everything */
	const char *stem;        /**< file name without suffix: letters, digits and _ */
	const char *title, *subtitle, *note;
	size_t nbars; /**< 0: lines */
	size_t nramp; /**< colours are ordered: the number of steps; 0: they are categories */
	struct rfl_chart_bar *bars;
	size_t npanels;
	struct rfl_chart_panel panels[RFL_CHART_PANELS]; /**< with equal series; one key for all */
};

/** Create an empty chart. NULL if out of memory. */
struct rfl_chart *rfl_chart_new(const char *stem, const char *env) RFL_WARN_UNUSED;
/** Accepts NULL. */
void rfl_chart_free(struct rfl_chart *c);

/** Find the series with this name, or add it. NULL if out of memory; the scene has failed then. */
struct rfl_chart_series *rfl_chart_series(struct rfl_chart *c, size_t panel, const char *name);
void rfl_chart_add(struct rfl_chart *c, struct rfl_chart_series *s, struct rfl_chart_row row);

/** A quantity of runs, drawn against the batch size. */
struct rfl_chart_quantity {
	const char *kind;   /**< "throughput" */
	const char *metric; /**< name in rfl_ledger_metrics */
	const char *title;  /**< title of the chart */
	const char *axis;   /**< title of the y-axis, with the unit */
	double unit;        /**< unit of the axis, in units of the metric */
};

/** All quantities; the metrics of a kind are in order of preference. The last has kind NULL. */
extern const struct rfl_chart_quantity rfl_chart_quantities[];

/**
 * Create a chart with a line for each model, precision and other difference between the runs of an
 * environment; error bars are the sample standard deviation over repeats.
 * @param r    repeats of the quantity's metric
 * @param ret  set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no run of the environment has a value
 */
enum rfl_rc rfl_chart_batches(const struct rfl_repeats *r, const char *env,
			      const struct rfl_chart_quantity *q, struct rfl_chart **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create a chart with a bar per configuration: the mean times of its phases, per sample. Waiting
 * for data and copying it count only as far as they do not overlap with the other phases.
 * @param r     repeats of any metric of `runs`
 * @param runs  with whole rows (RFL_ROWS_WHOLE)
 * @param ret   set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no run of the environment has times of phases
 */
enum rfl_rc rfl_chart_phases(const struct rfl_repeats *r, const struct rfl_runs *runs,
			     const char *env, struct rfl_chart **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create a chart of the times of forward, backward and the whole step, and of the peak memory,
 * against the context length, with a line for each model and other difference. Configurations that
 * ran out of memory are marked.
 * @param r     repeats of any metric of `runs`
 * @param runs  with whole rows (RFL_ROWS_WHOLE)
 * @param ret   set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no run of the environment has a context length
 */
enum rfl_rc rfl_chart_scaling(const struct rfl_repeats *r, const struct rfl_runs *runs,
			      const char *env, struct rfl_chart **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create a chart with a line per configuration. "steps": the distribution of step times relative to
 * the median of their run, and their median in windows of the run. "loss": the loss over the steps.
 * @param r     repeats of any metric of `runs`
 * @param runs  with whole rows (RFL_ROWS_WHOLE)
 * @param dir   folder of <run_id>.csv; NULL: steps/ next to each ledger
 * @param ret   set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no run of the environment has a file; RFL_EFORMAT names file and
 * line
 */
enum rfl_rc rfl_chart_steps(const struct rfl_repeats *r, const struct rfl_runs *runs,
			    const char *env, const char *kind, const char *dir,
			    struct rfl_chart **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create a chart of loss and accuracy, epoch by epoch, with a line for training and test of each
 * configuration of all environments: the means of its repeats.
 * @param r     repeats of any metric of `runs`
 * @param runs  with whole rows (RFL_ROWS_WHOLE)
 * @param dir   folder of <run_id>.csv; NULL: epochs/ next to each ledger
 * @param ret   set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no run has a file; RFL_EFORMAT names file and line
 */
enum rfl_rc rfl_chart_accuracy(const struct rfl_repeats *r, const struct rfl_runs *runs,
			       const char *dir, struct rfl_chart **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create a chart of the memory of a profiled step over its layers, beside the prediction: that of
 * the last run of the environment that has it.
 * @param r     repeats of any metric of `runs`
 * @param runs  with whole rows (RFL_ROWS_WHOLE)
 * @param dir   folder of <run_id>.csv; NULL: memory/ next to each ledger
 * @param ret   set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no run of the environment has a file; RFL_EFORMAT names file and
 * line
 */
enum rfl_rc rfl_chart_timeline(const struct rfl_repeats *r, const struct rfl_runs *runs,
			       const char *env, const char *dir, struct rfl_chart **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Create a chart of the bandwidths of an environment against the working set: the ceilings with the
 * range of their repeats and, if they were recorded, the curves of all cores and of one core, with
 * the capacities of the caches.
 * @param ret  set on success only; release with rfl_chart_free()
 * @return RFL_OK; RFL_EMISSING if no bandwidth was measured with its working set
 */
enum rfl_rc rfl_chart_bandwidth(const struct rfl_peaks_env *env, struct rfl_chart **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Check that gnuplot can be executed. RFL_EUNAVAILABLE: the message says how to install it.
 * @param version  "5.4 patchlevel 4" is appended; may be NULL */
enum rfl_rc rfl_chart_probe(struct rfl_buf *version, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_chart_spec {
	double width, height; /**< in points; 0: the defaults. The height grows with the key */
	double dpi;           /**< resolution of PNG; 0: 144 */
	const char *style;    /**< one of rfl_plot_styles; NULL: the first */
	const char *data_dir; /**< folder with fonts/; NULL: only the fonts of the system */
};

/** The formats of charts: "png", "svg", "pdf", NULL. */
extern const char *const rfl_chart_formats[];

/** The title and note of a chart if the style does not draw them; otherwise NULL. Owned by the
 * chart. */
const char *rfl_chart_caption(const struct rfl_chart *c, const char *style);

/** Append a script that draws the chart in each format.
 * @param to_files  write to STEM.FORMAT in the current folder, not to standard output */
enum rfl_rc rfl_chart_script(const struct rfl_chart *c, const struct rfl_chart_spec *spec,
			     const char *const *formats, size_t nformats, bool to_files,
			     struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Run gnuplot and append the picture.
 * @param script_path  file with the script, for messages
 * @return RFL_OK; RFL_EUNAVAILABLE without gnuplot; RFL_EFAILED with its messages if it fails or
 * writes no picture
 */
enum rfl_rc rfl_chart_draw(const struct rfl_chart *c, const struct rfl_chart_spec *spec,
			   const char *format, const char *script_path, struct rfl_buf *out,
			   struct rfl_err *err) RFL_WARN_UNUSED;

#endif
