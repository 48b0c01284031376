/*
 * impl.h - the code that importers share. importer.c opens the file, creates a capture builder,
 * passes lines and records to the importer, and finishes the captures.
 */
#ifndef RFL_PROFILE_IMPORT_IMPL_H
#define RFL_PROFILE_IMPORT_IMPL_H

#include "base/alloc.h"
#include "base/text.h"
#include "profile/import/importer.h"
#include "profile/import/input.h"
#include "profile/places.h"

/* The state of a file being read: the first member of each importer's struct. */
struct rfl_import {
	struct rfl_input *in;
	const struct rfl_import_options *options;
	struct rfl_captures *to;
	struct rfl_err *err; /* set by every failure */
	const char *label;   /* never NULL */
	int64_t left_out;    /* skipped rows */

	struct rfl_capture_builder *b;
	struct rfl_arena *arena;  /* owns the strings that the builder borrows */
	char delimiter;           /* between the fields of a record */
	const struct rfl_span *f; /* fields of the current record */
	size_t n;

	/* Requested metrics. Each is requested once, since the builder counts metrics not kept. */
	struct rfl_metric_id {
		const char *name; /* in the arena */
		int id;
	} * ids;
	size_t nids, ids_cap;
	size_t next_id; /* the index to try first: files repeat metrics in the same order */
};

/* ---- failures and warnings ---- */

enum rfl_rc rfl_import_no_memory(const struct rfl_import *import);
/** Fail with RFL_EFORMAT and "file:line: ...". @param line  0: the whole file */
enum rfl_rc rfl_import_refuse(const struct rfl_import *import, size_t line, const char *fmt, ...)
	RFL_PRINTF(3, 4);
/**
 * Refuse a row: RFL_EFORMAT with "file:line: ..."; with keep_going, a warning and RFL_OK.
 * @param column  may be NULL
 */
enum rfl_rc rfl_import_bad_row(struct rfl_import *import, const char *column, const char *fmt, ...)
	RFL_PRINTF(3, 4);
/** Refuse a record with more or fewer fields than its header in the same way. */
enum rfl_rc rfl_import_bad_width(struct rfl_import *import, size_t width);
void rfl_import_warn(struct rfl_import *import, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Warn that the profiler counted nothing, and give the message as the reason for each missing
 * metric. The message is one line that names the remedy. */
void rfl_import_nothing_counted(struct rfl_import *import, const char *fmt, ...) RFL_PRINTF(2, 3);

/* ---- metrics ---- */

/** The value of one metric. */
struct rfl_reading {
	const char *name, *unit;
	double value; /**< NaN: unavailable */
	enum rfl_validity validity;
	const char *reason; /**< must outlive the builder; NULL: none */
};

/** The builder's id of a metric, below 0 if it is not kept; -2: out of memory. */
int rfl_import_metric(struct rfl_import *import, const char *name, const char *unit);

/** Add a metric to the current launch. A metric that the builder does not keep is ignored. */
enum rfl_rc rfl_import_give(struct rfl_import *import, const struct rfl_reading *r,
			    enum rfl_given *given) RFL_WARN_UNUSED;

/** Add the launches of a kernel with their total time. @param block, grid  may be NULL */
enum rfl_rc rfl_import_times(struct rfl_import *import, struct rfl_span kernel, const char *block,
			     const char *grid, int64_t launches,
			     const struct rfl_reading *time) RFL_WARN_UNUSED;

/** Add a note on memory copies and fills, which no total includes. @param bytes, seconds  NaN if
 * unknown */
void rfl_import_note_copies(struct rfl_import *import, double bytes, double seconds,
			    int64_t operations);

/** Whether rounding to the printed digits may change a value by more than 1 %. */
static inline bool rfl_import_is_rounded(double value, double half_digit)
{
	return half_digit > 0.01 * value;
}

/* ---- the current record ---- */

/**
 * Find the index of a column by its title; -1: none.
 * @param unit  if not NULL, the title may be followed by a unit, as in "Total Time (ns)"; set to
 *              that unit, or to an empty string
 */
int rfl_import_column(const struct rfl_import *import, const char *title, struct rfl_span *unit);

/** A field, trimmed; empty if the column is -1 or missing from the row. */
struct rfl_span rfl_import_field(const struct rfl_import *import, int column);

/** Find the index of the column with the first of these titles, a NULL-terminated list. */
int rfl_import_column_of(const struct rfl_import *import, const char *const *titles,
			 struct rfl_span *unit);

/** Join three columns to "(12, 1, 1)". @return out, or NULL if a column is empty */
const char *rfl_import_shape(const struct rfl_import *import, const int columns[3], char out[64]);

/** Read a number of launches: an integer of at least 1. */
bool rfl_import_launches(struct rfl_span s, double *ret);

/* ---- finished launches ---- */

/* Launches that were read to the end. One that appears again is refused: two pages of a report
 * would count everything twice. */
struct rfl_import_seen {
	struct rfl_import_launch {
		int64_t process;
		uint64_t id;
	} * launches;
	size_t n, cap;
	struct rfl_places places; /* index + 1, by hash */
};

/** Find a launch by its process and number. @param add  record it if it is not found */
enum rfl_rc rfl_import_seen(const struct rfl_import *import, struct rfl_import_seen *seen,
			    int64_t process, uint64_t id, bool add, bool *found) RFL_WARN_UNUSED;
void rfl_import_seen_fini(struct rfl_import_seen *seen);

/* ---- lookup tables ---- */

/** The conversion of a unit to the base unit `unit`: multiply by `value`, or, if it is negative,
 * divide by -value, since 1e9 is exact and 1e-9 is not. */
struct rfl_unit {
	const char *text, *unit;
	double value;
};
/** Find a unit by its text; NULL: unknown. */
const struct rfl_unit *rfl_unit_find(const struct rfl_unit *units, size_t n, struct rfl_span text);
/** The `value` of a unit; 0: unknown. */
double rfl_unit_value(const struct rfl_unit *units, size_t n, struct rfl_span text);
double rfl_unit_apply(double value, double scale);

/** The number of "ns", "us", "msec", "s", ... in a second; 0: not a unit of time. */
double rfl_import_per_second(struct rfl_span unit);

/** Whether `s` begins with one of `texts`, a NULL-terminated list. */
bool rfl_span_starts_any(struct rfl_span s, const char *const *texts);

extern const struct rfl_importer rfl_importer_ncu, rfl_importer_nvprof, rfl_importer_nsys,
	rfl_importer_rocprof, rfl_importer_perf, rfl_importer_time, rfl_importer_likwid,
	rfl_importer_counters;

#endif
