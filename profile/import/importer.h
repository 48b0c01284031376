/*
 * importer.h - readers of other profilers' files. A kind of file is one row of a table; it is found
 * by content, or named by the user.
 */
#ifndef RFL_PROFILE_IMPORTER_H
#define RFL_PROFILE_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/capture.h"
#include "profile/import/input.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_import_options {
	const char *from;  /**< name of an importer; NULL: by content */
	const char *label; /**< of the run; NULL: the file's stem */
	int64_t steps;     /**< training steps that a file covers; 0: not known */
	bool keep_going;   /**< leave out rows that cannot be read, and count them */
	bool strict;       /**< refuse figures that were rounded by their unit */
	bool all_metrics;  /**< keep metrics that no formula names */
	/** Told of every row left out and every doubt: one line, "file:line: column 'x': ...". */
	void (*warn)(const char *line, void *ctx);
	void *ctx;
};

/** Tells about a file as it is read. */
struct rfl_import {
	struct rfl_input *in;
	const struct rfl_import_options *options;
	const char *label; /**< chosen: never NULL */
	int64_t left_out;
};

struct rfl_importer {
	const char *name;    /**< "ncu", "nvprof", "nsys", "perf", "time", "likwid", "counters" */
	const char *summary; /**< which commands write it */
	/** How sure: 0 not this kind, 100 certain. Looks at the first bytes only. */
	int (*detect)(struct rfl_span head);
	/** Read it all and append one capture, or several (several processes, several labels). */
	enum rfl_rc (*read)(struct rfl_import *import, struct rfl_captures *to,
			    struct rfl_err *err);
};

/** The i-th importer, or NULL behind the last. */
const struct rfl_importer *rfl_importer_at(size_t i);

/** The importer of this name; NULL, with RFL_ENOTFOUND naming those that there are. */
const struct rfl_importer *rfl_importer_find(const char *name, struct rfl_err *err);

/**
 * Read a file, "-" for standard input.
 * @return RFL_OK; RFL_EFORMAT naming file, line and column, or saying what the file is instead
 *         (error lines are quoted); RFL_ENOTFOUND for options->from; RFL_EIO
 */
enum rfl_rc rfl_import_file(const char *path, const struct rfl_import_options *options,
			    struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;
/** The same from memory. */
enum rfl_rc rfl_import_text(const char *text, size_t len, const char *name,
			    const struct rfl_import_options *options, struct rfl_captures *to,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** Every file of a folder, by name, that an importer knows; others are named in a warning. */
enum rfl_rc rfl_import_dir(const char *dir, const struct rfl_import_options *options,
			   struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- for importers ---- */

/* The next record or line (input.h); with keep_going a line that cannot be cut is left out, counted
 * and told. */
enum rfl_rc rfl_import_record(struct rfl_import *import, char delimiter,
			      const struct rfl_span **fields, size_t *nfields, bool *more,
			      struct rfl_err *err) RFL_WARN_UNUSED;
enum rfl_rc rfl_import_line(struct rfl_import *import, struct rfl_span *ret, bool *more,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * A row that cannot be read: with keep_going it is counted, told and RFL_OK is returned; else
 * RFL_EFORMAT with "file:line: ...".
 * @param column  NULL: none in particular
 */
enum rfl_rc rfl_import_bad_row(struct rfl_import *import, const char *column, struct rfl_err *err,
			       const char *fmt, ...) RFL_PRINTF(4, 5);
void rfl_import_warn(struct rfl_import *import, const char *fmt, ...) RFL_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
