/* report_impl.h - inside report/: the sections of a report, and shared helpers. */
#ifndef RFL_REPORT_REPORT_IMPL_H
#define RFL_REPORT_REPORT_IMPL_H

#include "ledger/repeats/row_index.h"
#include "plot/chart.h"
#include "report/captures_impl.h"
#include "report/report.h"

/* Columns of a table of structs. */
#define TEXT(type_, member_, title_) RFL_CELL(type_, member_), .key = (title_), .title = (title_)
#define INT(type_, member_, title_)  TEXT(type_, member_, title_), .kind = RFL_COLUMN_INT
#define REAL(type_, member_, title_, scale_) \
	TEXT(type_, member_, title_), .kind = RFL_COLUMN_REAL, .scale = (scale_)

/** What the sections share; in the arena of the page. */
struct rfl_report_work {
	/** The last configuration of rfl_report__name() and those next to it with the same
	 * environment, model and precision, with the fields that differ between them. */
	const struct rfl_repeats_config *first, *end;
	struct rfl_facts_apart apart;
	/** The points and parts that figures show: of more than RFL_REPORT_DRAWN, every n-th. */
	struct rfl_points steps, parts;
	struct rfl_sweep *sweep;         /**< of a report on language models or attentions */
	struct rfl_trainings *trainings; /**< of a report on training runs */
	size_t nmissing, cap;
	const char **missing; /**< what the report lacks and how to get it */
};

/** Add a line to the list of what is missing, unless it is there. */
void rfl_report__lacks(const struct rfl_report *r, struct rfl_page *page, const char *fmt, ...)
	RFL_PRINTF(3, 4);

/** If an input is missing, add how to create it to the list. @return whether it exists */
bool rfl_report__have(const struct rfl_report *r, struct rfl_page *page, const void *input,
		      const char *what, const char *option, const char *command);

bool rfl_report__have_points(const struct rfl_report *r, struct rfl_page *page);
#define HAVE_PEAKS(r, page)                                                              \
	rfl_report__have((r), (page), (r)->peaks, "ceilings of the machines", "--peaks", \
			 "roofline peaks measure --env NAME --output peaks.json")

/** "resnet50 fp32 bs4 on lab_cpu, layout nhwc": the fields that distinguish a configuration. */
const char *rfl_report__name(const struct rfl_report *r, struct rfl_page *page,
			     const struct rfl_repeats_config *c);
/** The same of a point, without its part. */
const char *rfl_report__step_name(struct rfl_page *page, const struct rfl_point *p);
/** The name of a part, without the arguments and the middle of a long name of a kernel. */
const char *rfl_report__part_name(const struct rfl_point *p, char out[RFL_CAPTURE_NAME_MAX + 1]);

/** The number of an environment in a set, to which it is added. */
size_t rfl_report__env(struct rfl_texts *envs, const char *env);

/** The number of rows that a table shows, at most RFL_REPORT_ROWS; if not all, write which and how
 * to see the others. @param what  "configurations" */
size_t rfl_report__rows(struct rfl_page *page, size_t n, const char *what, const char *others);
#define RFL_REPORT_ROWS  ((size_t)300)
#define RFL_REPORT_DRAWN 5000

/** The ending of a plural. */
static inline const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/** The path of a file about a run, folder/<run_id>.csv next to its ledger. NULL: there is none */
const char *rfl_report__beside(const struct rfl_report *r, struct rfl_page *page,
			       const struct rfl_run *run, const char *folder);

/** Draw charts of the runs and append them: one, or one for each environment with from `least` to
 * `most` configurations that ran. The list of what is missing has the reason why one is not drawn.
 * @param kind  a name of rfl_chart_kinds */
void rfl_report__charts(const struct rfl_report *r, struct rfl_page *page, const char *kind,
			size_t least, size_t most, const char *caption);

/** The configurations of the ledger as a sweep, in the arena of the page. */
struct rfl_sweep *rfl_report__sweep_new(const struct rfl_report *r, struct rfl_page *page);
/** The training runs of the ledger, likewise. */
struct rfl_trainings *rfl_report__trainings_new(const struct rfl_report *r, struct rfl_page *page);

/** A section, without its heading. */
typedef void rfl_section(const struct rfl_report *r, struct rfl_page *page);

extern rfl_section rfl_report__design, rfl_report__environment, rfl_report__commands,
	rfl_report__complexity, rfl_report__throughput, rfl_report__phases, rfl_report__resources,
	rfl_report__counters, rfl_report__peaks, rfl_report__figures, rfl_report__pictures,
	rfl_report__points, rfl_report__parts, rfl_report__method, rfl_report__files,
	rfl_report__summary, rfl_report__analysis, rfl_report__limitations, rfl_report__missing,
	rfl_report__sweep, rfl_report__speedups, rfl_report__memory, rfl_report__scaling,
	rfl_report__generation, rfl_report__training_summary, rfl_report__training_design,
	rfl_report__training_results, rfl_report__training_curves, rfl_report__training_commands;

/** The table of --as, part of the points; `peer` is set. */
void rfl_report__as_peer(const struct rfl_report *r, struct rfl_page *page);

#endif
