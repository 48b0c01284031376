/* chart_runs.h - internal: names, colours and lines of the runs of one environment in a chart. */
#ifndef RFL_PLOT_CHART_RUNS_H
#define RFL_PLOT_CHART_RUNS_H

#include "ledger/facts.h"
#include "plot/chart.h"

/** Texts in the order of their first use. */
struct rfl_chart_list {
	size_t n, cap;
	const char **items;
};

struct rfl_chart_runs {
	struct rfl_scene *scene;
	const struct rfl_repeats *repeats;
	const char *env;
	struct rfl_facts_apart apart; /**< what differs between the runs */
	struct rfl_chart_list models, ways;
	size_t least, most; /**< number of repeats of a configuration */
	bool lengths;       /**< names need the numbers of steps to be unique */
};

/** Begin a chart of an environment: title, and a subtitle with the facts that all runs share.
 * @return RFL_OK; RFL_EMISSING without runs; RFL_ENOMEM */
enum rfl_rc rfl_chart__begin(const struct rfl_repeats *r, const char *env, const char *stem,
			     const char *title, struct rfl_chart_runs *runs, struct rfl_chart **ret,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Whether a configuration is drawn: it belongs to the environment and has runs. */
bool rfl_chart__has(const struct rfl_chart_runs *runs, const struct rfl_repeats_config *c);

/** "ResNet-50, amp, workers 8": the model and the facts that differ; or "ResNet-50, batch 8".
 */
const char *rfl_chart__name(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row,
			    bool batch);

/** Set colour, mark and dash: the colour shows the model, the dash the other differences. 40 lines
 * of one model look different, and so do 56 models with one dash. @param way  the text that selects
 * the dash */
void rfl_chart__look(struct rfl_chart_runs *runs, const char *model, const char *way,
		     struct rfl_chart_series *s);

/** The facts except model and batch that distinguish runs: "amp, workers 8"; "" if none. */
const char *rfl_chart__way(struct rfl_chart_runs *runs, const struct rfl_ledger_row *row);

/** Return a finished chart, with a note if lines look alike. Free it if memory ran out. */
enum rfl_rc rfl_chart__finish(struct rfl_chart *take_c, struct rfl_chart **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** "3 runs", "1 to 3 runs". */
const char *rfl_chart__count(const struct rfl_chart_runs *runs);

#endif
