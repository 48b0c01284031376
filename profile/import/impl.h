/*
 * impl.h - the code that importers share. importer.c opens the file, creates a capture builder,
 * passes lines and records to the importer, and finishes the captures.
 */
#ifndef RFL_PROFILE_IMPORT_IMPL_H
#define RFL_PROFILE_IMPORT_IMPL_H

#include "base/alloc.h"
#include "base/input.h"
#include "base/text.h"
#include "profile/import/importer.h"
#include "base/keys.h"

/* The ids and the other arguments of the rows of a list F(id, ...), such as columns and their
 * titles. */
#define RFL_LIST_ID(id, ...)  id,
#define RFL_LIST_ROW(id, ...) { __VA_ARGS__ },

/* The columns of a table; -1: absent. */
struct rfl_columns {
	int at[24];
	struct rfl_span unit[24]; /* in the header; empty: none */
	size_t width;             /* number of titles in the header */
};

/* The state of a file being read: the first member of each importer's struct. */
struct rfl_import {
	struct rfl_input *in;
	const struct rfl_import_options *options;
	struct rfl_captures *to;
	struct rfl_err *err; /* set by every failure */
	const char *label;   /* never NULL */
	int64_t left_out;    /* skipped rows */

	struct rfl_capture_builder *b;
	struct rfl_arena *arena;  /* owns this struct, and what the builder borrows */
	struct rfl_span head;     /* the first bytes of the file, valid before the first line */
	char delimiter;           /* between the fields of a record */
	const struct rfl_span *f; /* fields of the current record */
	size_t n;
	int table;                  /* kind of the current table; 0: none */
	struct rfl_columns columns; /* its columns; the units are known only while table() runs */
	struct rfl_keys launches;   /* process and number of those that were read */
	bool any_kernel;            /* rfl_import_times() got a name that only a kernel can have */
};

/* ---- failures and warnings ---- */

/** Fail with RFL_EFORMAT and "file:line: ...". @param line  0: the whole file */
enum rfl_rc rfl_import_refuse(const struct rfl_import *import, size_t line, const char *fmt, ...)
	RFL_PRINTF(3, 4);
/** Refuse a row: RFL_EFORMAT with "file:line: ..."; with keep_going, a warning and RFL_OK.
 * @param column  may be NULL */
enum rfl_rc rfl_import_bad_row(struct rfl_import *import, const char *column, const char *fmt, ...)
	RFL_PRINTF(3, 4);
/** Refuse a row in the same way because "'<text>' is not <what>", or because it has more or fewer
 * fields than the header. */
enum rfl_rc rfl_import_bad_field(struct rfl_import *import, const char *column,
				 struct rfl_span text, const char *what);
enum rfl_rc rfl_import_bad_width(struct rfl_import *import);
/** Skip an unreadable part of a file with a warning if keep_going is set, else fail with `why`. */
enum rfl_rc rfl_import_leave_out(struct rfl_import *import, const struct rfl_err *why);
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

/** Add a metric to the current launch. */
static inline enum rfl_given rfl_import_give(struct rfl_import *import, const struct rfl_reading *r)
{
	return rfl_capture_put(import->b, r->name, r->unit, r->value, r->validity, -1, r->reason);
}

/** Add the launches of a kernel with their total time. @param block, grid  may be NULL */
void rfl_import_times(struct rfl_import *import, struct rfl_span kernel, const char *block,
		      const char *grid, int64_t launches, const struct rfl_reading *time);

/** Unless a name was certainly a kernel's, add a note that other tables have these columns.
 */
void rfl_import_note_kernels(struct rfl_import *import, const char *others);

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

/** The i-th field, trimmed; empty if the row does not have it. */
struct rfl_span rfl_import_cell(const struct rfl_import *import, int i);
/** The field in a column of the table. */
static inline struct rfl_span rfl_import_field(const struct rfl_import *import, int column)
{
	return rfl_import_cell(import, import->columns.at[column]);
}

/** Join three columns, from `x` on, to "(12, 1, 1)". @return out, or NULL if one is empty */
const char *rfl_import_shape(const struct rfl_import *import, int x, char out[64]);

/** Read an integer, which a double may not hold, or a number of launches: an integer of at least 1.
 */
bool rfl_import_integer(struct rfl_span s, uint64_t *ret);
bool rfl_import_launches(struct rfl_span s, double *ret);

/** Record a launch by its process and number. Returns false if it was read before, and would count
 * twice, such as on two pages of a report. */
bool rfl_import_launch(struct rfl_import *import, int64_t process, uint64_t id);

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
	rfl_importer_torch, rfl_importer_counters;

#endif
