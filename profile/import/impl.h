/*
 * impl.h - what the importers of summaries share: a builder made from the import, and
 * metrics given by name.
 */
#ifndef RFL_PROFILE_IMPORT_IMPL_H
#define RFL_PROFILE_IMPORT_IMPL_H

#include "profile/capture.h"
#include "profile/import/importer.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A builder with the label, the path and the steps of the import.
 * @param source    "perf"
 * @param formulas  family; NULL: "any"
 * @param all       keep metrics that no formula names whatever the options say
 */
enum rfl_rc rfl_import_builder(const struct rfl_import *import, const char *source,
			       const char *formulas, bool all, struct rfl_capture_builder **ret,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/** What an importer read of one metric. */
struct rfl_reading {
	const char *name, *unit;
	double value; /**< NaN: unavailable */
	enum rfl_validity validity;
	const char *reason; /**< kept by the caller until the builder is freed; NULL: none */
};

/* Metrics that were asked for: the builder counts those that it does not keep once per question. */
struct rfl_metric_ids {
	struct rfl_metric_id {
		char *name;
		int id;
	} * rows;
	size_t n, cap;
	size_t next; /* files repeat their metrics in one order */
};
void rfl_metric_ids_fini(struct rfl_metric_ids *ids);

/** Give the current launch a metric. A metric that is not kept is no failure. */
enum rfl_rc rfl_import_give(struct rfl_capture_builder *b, struct rfl_metric_ids *ids,
			    const struct rfl_reading *r, enum rfl_given *given,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** A whole range with its metrics. */
enum rfl_rc rfl_import_range(struct rfl_capture_builder *b, struct rfl_metric_ids *ids,
			     enum rfl_range_kind kind, const char *name,
			     const struct rfl_reading *readings, size_t n,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The index of a column by its title, or -1. "Total Time" is also found as "Total Time (ns)" and
 * "Time" as "Time(%)".
 * @param unit  what stands in the parentheses, empty when there are none; may be NULL
 */
int rfl_import_column(const struct rfl_span *fields, size_t n, const char *title,
		      struct rfl_span *unit);

/** A field without blanks at its ends; empty when the column is -1 or the row is short. */
struct rfl_span rfl_import_field(const struct rfl_span *fields, size_t n, int column);

/** "(12, 1, 1)" of three columns, or NULL when one is empty. @return out */
const char *rfl_import_shape(const struct rfl_span *fields, size_t n, const int columns[3],
			     char out[64]);

/** How many of a unit of time, as profilers write it ("ns", "us", "msec", "s", ...), are a second;
 * 0: not one. What is divided by 1e9 is exact where what is multiplied by 1e-9 is not. */
double rfl_import_per_second(struct rfl_span unit);

/** Copies and fills of memory are told in a note. @param bytes, seconds  NaN: not known */
void rfl_import_note_copies(struct rfl_capture_builder *b, double bytes, double seconds,
			    int64_t operations);

/** Whether a value, printed with so much uncertainty, may be off by more than 1 %. */
bool rfl_import_is_rounded(double value, double half_digit);

/** Finish into `to` and carry over how many rows were left out. */
enum rfl_rc rfl_import_finish(const struct rfl_import *import, struct rfl_capture_builder *b,
			      struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * The capture of a file in which the profiler says why it counted nothing: everything in it is
 * unavailable for this reason, which is also told as a warning. One line, with the cure.
 */
enum rfl_rc rfl_import_refused(struct rfl_import *import, const char *source,
			       struct rfl_captures *to, struct rfl_err *err, const char *fmt, ...)
	RFL_PRINTF(5, 6) RFL_WARN_UNUSED;

extern const struct rfl_importer rfl_importer_ncu, rfl_importer_nvprof, rfl_importer_nsys,
	rfl_importer_perf, rfl_importer_time, rfl_importer_likwid, rfl_importer_counters;

#ifdef __cplusplus
}
#endif
#endif
