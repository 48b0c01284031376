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

struct rfl_import_options {
	const char *from;  /**< name of an importer; NULL: by content */
	const char *label; /**< of the run; NULL: the file's stem */
	int64_t steps;     /**< training steps that a file covers; 0: not known */
	bool keep_going;   /**< leave out rows that cannot be read, and count them */
	bool strict;       /**< refuse figures that were rounded by their unit */
	bool all_metrics;  /**< keep metrics that no formula names */
	/** Called for every row left out and every doubt: one line, "file:line: column 'x': ...".
	 */
	void (*warn)(const char *line, void *ctx);
	void *ctx;
};

struct rfl_import;
struct rfl_span;

/* A sign by which a kind of file is known: a line that begins so, and has all of these; NULL: any.
 */
struct rfl_sign {
	const char *begin, *has[3];
	int sure; /* 0 ends a list */
};

/* A kind of file. Its reader keeps what it knows in a struct that begins with struct rfl_import
 * (impl.h) and is zeroed before a file; rows come one by one. */
struct rfl_importer {
	const char *name;    /**< "ncu", "nvprof", "nsys", "perf", "time", "likwid", "counters" */
	const char *summary; /**< which commands write it */
	const char *formulas;
	bool finished;    /**< end() appends the captures itself */
	bool all_metrics; /**< keep metrics that no formula names */
	size_t size;      /**< of its struct */

	/** How sure: 0 not this kind, 100 certain. Either or both; the surer counts. */
	const struct rfl_sign *signs;
	int (*detect)(struct rfl_span head);
	/** Before the first line; may be NULL. `head`: the first bytes */
	void (*begin)(struct rfl_import *import, struct rfl_span head);
	/** Whether a CSV record begins with these bytes, else a line; NULL: all are lines. */
	bool (*is_record)(const struct rfl_import *import, struct rfl_span ahead);
	enum rfl_rc (*line)(struct rfl_import *import, struct rfl_span line);
	enum rfl_rc (*record)(struct rfl_import *import);
	/** After the last row: fails where there was none. */
	enum rfl_rc (*end)(struct rfl_import *import);
	void (*fini)(struct rfl_import *import); /**< may be NULL */
};

/** The i-th importer, or NULL past the last. */
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

#endif
