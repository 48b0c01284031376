/*
 * impl.h - what the importers share. The skeleton in importer.c opens the file and a builder, hands
 * out lines and records, and finishes; it has columns, units and metrics by name, too.
 */
#ifndef RFL_PROFILE_IMPORT_IMPL_H
#define RFL_PROFILE_IMPORT_IMPL_H

#include "base/alloc.h"
#include "base/text.h"
#include "profile/import/importer.h"
#include "profile/import/input.h"

/* A file as it is read: the first member of each importer's own struct. */
struct rfl_import {
	struct rfl_input *in;
	const struct rfl_import_options *options;
	struct rfl_captures *to;
	struct rfl_err *err; /* of the caller: every failure goes there */
	const char *label;   /* chosen: never NULL */
	int64_t left_out;    /* rows */

	struct rfl_capture_builder *b;
	struct rfl_arena *arena;  /* of texts that the builder borrows */
	char delimiter;           /* of records */
	const struct rfl_span *f; /* the record at hand */
	size_t n;

	/* Metrics that were asked for: the builder counts those that it does not keep once per
	 * question. */
	struct rfl_metric_id {
		const char *name; /* in the arena */
		int id;
	} * ids;
	size_t nids, ids_cap;
	size_t next_id; /* files repeat their metrics in one order */
};

/* ---- failures and doubts ---- */

enum rfl_rc rfl_import_no_memory(const struct rfl_import *import);
/** RFL_EFORMAT with "file:line: ...". @param line  0: of the whole file */
enum rfl_rc rfl_import_refuse(const struct rfl_import *import, size_t line, const char *fmt, ...)
	RFL_PRINTF(3, 4);
/**
 * A row that cannot be read: with keep_going it is counted and warned of, and RFL_OK is returned;
 * else RFL_EFORMAT with "file:line: ...".
 * @param column  NULL: none in particular
 */
enum rfl_rc rfl_import_bad_row(struct rfl_import *import, const char *column, const char *fmt, ...)
	RFL_PRINTF(3, 4);
/** The same of a record that has not as many fields as its header. */
enum rfl_rc rfl_import_bad_width(struct rfl_import *import, size_t width);
void rfl_import_warn(struct rfl_import *import, const char *fmt, ...) RFL_PRINTF(2, 3);

/** The profiler says why it counted nothing: everything is unavailable for this reason, which is
 * also a warning. One line, with the remedy. */
void rfl_import_nothing_counted(struct rfl_import *import, const char *fmt, ...) RFL_PRINTF(2, 3);

/* ---- metrics ---- */

/** What an importer read of one metric. */
struct rfl_reading {
	const char *name, *unit;
	double value; /**< NaN: unavailable */
	enum rfl_validity validity;
	const char *reason; /**< kept by the caller until the builder is freed; NULL: none */
};

/** Give the current launch a metric. A metric that is not kept is no failure. */
enum rfl_rc rfl_import_give(struct rfl_import *import, const struct rfl_reading *r,
			    enum rfl_given *given) RFL_WARN_UNUSED;

/** A kernel's launches with their time. @param block, grid  may be NULL */
enum rfl_rc rfl_import_times(struct rfl_import *import, struct rfl_span kernel, const char *block,
			     const char *grid, int64_t launches,
			     const struct rfl_reading *time) RFL_WARN_UNUSED;

/** A note of copies and fills of memory, which are in no total. @param bytes, seconds  NaN: not
 * known */
void rfl_import_note_copies(struct rfl_import *import, double bytes, double seconds,
			    int64_t operations);

/** Whether a value, printed with so much uncertainty, may be off by more than 1 %. */
bool rfl_import_is_rounded(double value, double half_digit);

/* ---- the record at hand ---- */

/**
 * The index of a column by its title, or -1. "Total Time" is also found as "Total Time (ns)" and
 * "Time" as "Time(%)".
 * @param unit  the text in the parentheses, empty when there are none; may be NULL
 */
int rfl_import_column(const struct rfl_import *import, const char *title, struct rfl_span *unit);
/** The same by the title as it is. */
int rfl_import_exact_column(const struct rfl_import *import, const char *title);

/** A field without blanks at its ends; empty when the column is -1 or the row is short. */
struct rfl_span rfl_import_field(const struct rfl_import *import, int column);

/** "(12, 1, 1)" of three columns, or NULL when one is empty. @return out */
const char *rfl_import_shape(const struct rfl_import *import, const int columns[3], char out[64]);

/** A number of launches: whole, and 1 or more. */
bool rfl_import_launches(struct rfl_span s, double *ret);

/* ---- tables of texts ---- */

/** What a unit is worth: `value` is in the base unit `unit`; below 0 it is divided by: what is
 * divided by 1e9 is exact where what is multiplied by 1e-9 is not. */
struct rfl_unit {
	const char *text, *unit;
	double value;
};
/** The row of a text; NULL: none. */
const struct rfl_unit *rfl_unit_find(const struct rfl_unit *units, size_t n, struct rfl_span text);
/** What it is worth; 0: none. */
double rfl_unit_value(const struct rfl_unit *units, size_t n, struct rfl_span text);
double rfl_unit_apply(double value, double scale);

/** How many of a unit of time ("ns", "us", "msec", "s", ...) are a second; 0: not a unit of time.
 */
double rfl_import_per_second(struct rfl_span unit);

/** Whether the text begins with one of the texts, which a NULL ends. */
bool rfl_span_starts_any(struct rfl_span s, const char *const *texts);

extern const struct rfl_importer rfl_importer_ncu, rfl_importer_nvprof, rfl_importer_nsys,
	rfl_importer_perf, rfl_importer_time, rfl_importer_likwid, rfl_importer_counters;

#endif
