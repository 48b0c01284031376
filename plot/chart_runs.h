/* chart_runs.h - internal: names, colours and lines of the runs of one environment in a chart. */
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

struct rfl_chart_runs {
	struct rfl_scene *scene;
	const struct rfl_repeats *repeats;
	const char *env; /**< NULL: all */
	/** column of the x-axis, which is not part of names; RFL_LEDGER_NCOLUMNS: none */
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
};

/** Begin a chart of an environment, or of all: title, and a subtitle with the facts that all runs
 * share.
 * @return RFL_OK; RFL_EMISSING without runs; RFL_ENOMEM */
enum rfl_rc rfl_chart__begin(const struct rfl_repeats *r, const char *env, const char *stem,
			     const char *title, enum rfl_ledger_at across,
			     struct rfl_chart_runs *runs, struct rfl_chart **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Mean and sample standard deviation of a column over the repeats that have it; NaN if none or,
 * for the deviation, fewer than two have it. @param runs  with whole rows */
void rfl_chart__mean(const struct rfl_runs *runs, const struct rfl_repeats_config *c,
		     enum rfl_ledger_at column, double *mean, double *std);

/** Append to the note how many configurations are not shown, if any. */
void rfl_chart__note_lost(struct rfl_chart *c, size_t lost, const char *what);

/** Sort the rows of all series of a panel by x. */
void rfl_chart__sort(struct rfl_chart_panel *p);

/** Whether a configuration is drawn: it belongs to the environment and has runs. */
bool rfl_chart__has(const struct rfl_chart_runs *runs, const struct rfl_repeats_config *c);

/** "ResNet-50, amp, 8 workers": the model and the facts that differ; or "ResNet-50, batch 8".
 */
const char *rfl_chart__name(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
			    bool batch);

/** Set colour, mark and dash of a configuration: the mark is the model, the dash what the colour
 * does not show; of one model, both are. With more models than marks, colour and mark together are
 * the model. */
void rfl_chart__look(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
		     struct rfl_chart_series *s);

/** Set colour and mark by one text, and the dash by another. */
void rfl_chart__look_as(struct rfl_chart_runs *runs, const char *color, const char *dash,
			struct rfl_chart_series *s);

/** Return a finished chart, with a note if lines look alike. Free it if memory ran out. */
enum rfl_rc rfl_chart__finish(struct rfl_chart *take_c, struct rfl_chart **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** The files of the runs of a chart: dir/<run_id>.csv or, if dir is NULL, <folder>/<run_id>.csv
 * next to the ledger. */
struct rfl_chart_files {
	const struct rfl_runs *runs; /**< with whole rows */
	const char *dir, *folder, *what, *writer;
	size_t found, lost;     /**< runs with and without a file */
	const char *first_lost; /**< NULL: none, or rows of another program */
};

typedef enum rfl_rc rfl_chart__reader(const char *path, void *ctx, struct rfl_err *err);

/** Read the files of a configuration. */
enum rfl_rc rfl_chart__read(struct rfl_chart_runs *of, struct rfl_chart_files *files,
			    const struct rfl_repeats_config *c, rfl_chart__reader *read, void *ctx,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Fail because no run has a file, or no file a value in the columns. */
enum rfl_rc rfl_chart__no_file(const struct rfl_chart_runs *of, const struct rfl_chart_files *files,
			       const char *columns, struct rfl_err *err);

/** Append to the note how many runs have no file, if any. */
void rfl_chart__note_files(struct rfl_chart *c, const struct rfl_chart_files *files);

/** Running mean and sample standard deviation. A zeroed struct has no values; NaN is ignored. */
struct rfl_chart_mean {
	double n, mean, squares;
};

void rfl_chart__mean_add(struct rfl_chart_mean *m, double value);
/** A row of a chart with the mean and an error bar of one deviation; without values, y is NaN. */
struct rfl_chart_row rfl_chart__mean_row(const struct rfl_chart_mean *m, double x);

/** "3 runs", "1 to 3 runs". */
const char *rfl_chart__count(const struct rfl_chart_runs *runs);

#endif
