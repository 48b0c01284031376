/* chart_runs.h - internal: what the charts of runs share: names, colours and lines, means, and the
 * files of the runs. */
#ifndef RFL_PLOT_CHART_RUNS_H
#define RFL_PLOT_CHART_RUNS_H

#include "ledger/facts.h"
#include "plot/chart.h"
#include "plot/figure.h"

/** Texts in the order of their first use. */
struct rfl_chart_list {
	size_t n, cap;
	const char **items;
};

/** A chart in progress. */
struct rfl_chart_runs {
	const struct rfl_chart_kind *kind;
	const struct rfl_chart_input *in;
	const struct rfl_repeats *repeats; /**< those to draw */
	struct rfl_chart *chart;
	struct rfl_scene *scene; /**< of the chart */

	/** column of the x-axis, omitted from the names of series; RFL_LEDGER_NCOLUMNS: none */
	enum rfl_ledger_at across;
	struct rfl_facts_apart apart; /**< `differs`: between the runs of one environment */
	/** What the colour shows, as in rooflines: the precision if it varies, else the batch if
	 * lines differ in it, else the other differences if each has a name, else the model. */
	enum rfl_fig_by by;
	struct rfl_chart_list models, colors, dashes;
	size_t nbatches;
	int64_t *batches;   /**< sorted */
	size_t least, most; /**< number of repeats of a configuration */
	bool lengths;       /**< names need the numbers of steps to be unique */

	size_t found, lost;     /**< runs with and without a file */
	const char *first_lost; /**< NULL: none, or rows of another program */
};

/** The kinds, as in rfl_chart_kinds. */
enum rfl_rc rfl_chart__batches(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__phases(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__decode(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__cache(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__scaling(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__steps(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__accuracy(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__timeline(struct rfl_chart_runs *of, struct rfl_err *err);
enum rfl_rc rfl_chart__bandwidth(struct rfl_chart_runs *of, struct rfl_err *err);

/** Compare the runs of the environment, choose their colours, and write the subtitle, the fields
 * that all share. RFL_EMISSING without runs. */
enum rfl_rc rfl_chart__begin(struct rfl_chart_runs *of, enum rfl_ledger_at across,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Append a sentence to the note of a chart. */
void rfl_chart__note(struct rfl_chart *c, const char *fmt, ...) RFL_PRINTF(2, 3);
/** Append how many configurations are not shown, if any. */
void rfl_chart__note_lost(struct rfl_chart *c, size_t lost, const char *what);

/** Remove the series without rows. */
void rfl_chart__drop_empty(struct rfl_chart_panel *p);

/** Whether a configuration is of the environment of the chart, and whether it is drawn: it also has
 * runs. */
bool rfl_chart__is_of(const struct rfl_chart_runs *of, const struct rfl_repeats_config *c);
bool rfl_chart__has(const struct rfl_chart_runs *of, const struct rfl_repeats_config *c);

/** "ResNet-50, amp, 8 workers": model and fields that differ; or "ResNet-50, batch 8". */
const char *rfl_chart__name(struct rfl_chart_runs *of, const struct rfl_ledger_row *row,
			    bool batch);

/** Set colour, mark and dash of a configuration: the mark is the model, the dash what the colour
 * does not show; of one model, both are. With more models than marks, colour and mark together are
 * the model. */
void rfl_chart__look(struct rfl_chart_runs *of, const struct rfl_ledger_row *row,
		     struct rfl_chart_series *s);

/** Set colour and mark by one text, and the dash by another. */
void rfl_chart__look_as(struct rfl_chart_runs *of, const char *color, const char *dash,
			struct rfl_chart_series *s);

typedef enum rfl_rc rfl_chart__reader(const char *path, void *ctx, struct rfl_err *err);

/** Read the files of a configuration. */
enum rfl_rc rfl_chart__read(struct rfl_chart_runs *of, const struct rfl_repeats_config *c,
			    rfl_chart__reader *read, void *ctx,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Fail because no run has a file, or no file a value in the columns. */
enum rfl_rc rfl_chart__no_file(const struct rfl_chart_runs *of, const char *columns,
			       struct rfl_err *err);

/** Append to the note how many runs have no file, if any. */
void rfl_chart__note_files(struct rfl_chart_runs *of);

/** A row of a chart with the mean and an error bar of one sample standard deviation. Unknown values
 * (NaN) are removed from the array; without values, y is NaN. */
struct rfl_chart_row rfl_chart__mean_row(double *values, size_t n, double x);
/** The same of a column over the repeats of a configuration that have it. */
struct rfl_chart_row rfl_chart__mean(const struct rfl_chart_runs *of,
				     const struct rfl_repeats_config *c, enum rfl_ledger_at column,
				     double x);

#endif
