/* report_impl.h - inside report/: the sections of a report, and shared helpers. */
#ifndef RFL_REPORT_REPORT_IMPL_H
#define RFL_REPORT_REPORT_IMPL_H

#include "report/report.h"

/* Columns of a table of structs. */
#define TEXT(type_, member_, title_) RFL_CELL(type_, member_), .key = (title_), .title = (title_)
#define INT(type_, member_, title_)  TEXT(type_, member_, title_), .kind = RFL_COLUMN_INT
#define REAL(type_, member_, title_, scale_) \
	TEXT(type_, member_, title_), .kind = RFL_COLUMN_REAL, .scale = (scale_)

/** If an input is missing, write how to create it. @return whether it exists */
bool rfl_report__have(struct rfl_page *page, const void *input, const char *what,
		      const char *option, const char *command);

#define HAVE_POINTS(page, r)                                                              \
	rfl_report__have((page), (r)->points, "points under the roof", "--points",        \
			 "roofline points --metrics logs/metrics.csv --peaks peaks.json " \
			 "--output roofline_points.csv")
#define HAVE_PEAKS(page, r)                                                  \
	rfl_report__have((page), (r)->peaks, "measured ceilings", "--peaks", \
			 "roofline peaks measure --env NAME --output peaks.json")

/** "resnet50 fp32 bs4 on lab_cpu, layout nhwc": the facts that distinguish a configuration. */
const char *rfl_report__name(const struct rfl_report *r, const struct rfl_repeats_config *c,
			     struct rfl_buf *out);
const char *rfl_report__point_name(const struct rfl_point *p, struct rfl_buf *out);

/** The row of a run with all its columns. */
const struct rfl_ledger_row *rfl_report__row(const struct rfl_report *r, const struct rfl_run *run);

/** Below this percentage of the roof, neither ceiling explains the time, as in the verdicts. */
#define RFL_REPORT_FAR_BELOW 30.0

/** The ending of a plural. */
static inline const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* The sections. */
#define SECTION(name) void rfl_report__##name(const struct rfl_report *r, struct rfl_page *page)
SECTION(design);
SECTION(environment);
SECTION(commands);
SECTION(complexity);
SECTION(throughput);
SECTION(phases);
SECTION(counters);
SECTION(peaks);
SECTION(figures);
SECTION(points);
SECTION(parts);
SECTION(method);
SECTION(files);
SECTION(summary);
SECTION(analysis);
SECTION(limitations);

/** The table of --as, part of the points; `peer` is set. */
void rfl_report__as_peer(const struct rfl_report *r, struct rfl_page *page);

#endif
