/* importer.h - imports files of other profilers. The format is detected, or named by the user. */
#ifndef RFL_PROFILE_IMPORTER_H
#define RFL_PROFILE_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/capture.h"

struct rfl_import_options {
	const char *from;  /**< name of an importer; NULL: detect it */
	const char *label; /**< label of the run; NULL: the file's stem */
	int64_t steps;     /**< training steps that a file covers; 0: unknown */
	bool keep_going;   /**< skip unreadable rows, and count them */
	bool strict;       /**< refuse rounded values */
	bool all_metrics;  /**< keep metrics that no formula names */
	/** Called with each warning: one line, "file:line: column 'x': ...". */
	void (*warn)(const char *line, void *ctx);
	void *ctx;
};

struct rfl_import;
struct rfl_columns;
struct rfl_span;

/* A line that identifies a format: it begins with `begin` (NULL: any) and contains all of `has`. */
struct rfl_sign {
	const char *begin, *has[3];
	int sure; /* 1 to 100; 0 ends a list */
};

/* The titles of a column, of which the first one present is used; NULL past the last. */
typedef const char *const rfl_titles[6];

/* The importer of a format. Its state for a file is a struct that begins with struct rfl_import
 * (impl.h), is zeroed before the first line, and has all its memory in the arena. */
struct rfl_importer {
	const char *name;    /**< "ncu", "nvprof", "nsys", "rocprof", "perf", "time", "likwid",
				"torch", "counters" */
	const char *summary; /**< the commands that write the format */
	const char *formulas;
	/** The formulas of a file, by its first bytes; NULL, also as a result: `formulas`. */
	const char *(*choose_formulas)(struct rfl_span head);
	bool all_metrics; /**< keep metrics that no formula names */
	bool has_passes;  /**< the profiler writes a file for each set of counters */
	size_t size;      /**< size of the state */

	/** How sure the importer is of a file, from 0 (another format) to 100 (certain): the larger
	 * result of `signs` and `detect`, either of which may be NULL. */
	const struct rfl_sign *signs;
	int (*detect)(struct rfl_span head);
	/** Reads the whole file and appends the captures; NULL: the functions below do. */
	enum rfl_rc (*read)(struct rfl_import *import);
	/** Reads a file that has no lines or records; NULL: the functions below read the file. */
	enum rfl_rc (*stream)(struct rfl_import *import);
	/** Called before the first line; may be NULL. */
	void (*begin)(struct rfl_import *import);
	/** Whether `ahead` begins a CSV record, and not a line; NULL: the format has only lines. */
	bool (*is_record)(const struct rfl_import *import, struct rfl_span ahead);
	/** NULL: lines are ignored. */
	enum rfl_rc (*line)(struct rfl_import *import, struct rfl_span line);

	/** The columns of tables. A record that does not begin with a digit may be a header:
	 * table() sets the kind of table if it is one. NULL: record() gets every record. */
	rfl_titles *titles;
	size_t ntitles;
	bool has_units; /**< titles may be followed by a unit, as in "Total Time (ns)" */
	enum rfl_rc (*table)(struct rfl_import *import, const struct rfl_columns *c, int *table);
	/** A record, or a row of a table of a kind other than 0. */
	enum rfl_rc (*record)(struct rfl_import *import);

	/** Called after the last row; fails if there was none. NULL with stream(). */
	enum rfl_rc (*end)(struct rfl_import *import);
};

/** The i-th importer, or NULL past the last. */
const struct rfl_importer *rfl_importer_at(size_t i);
/** NULL with RFL_ENOTFOUND and a list of names if it is unknown. */
const struct rfl_importer *rfl_importer_find(const char *name, struct rfl_err *err);

/** Read a file, "-" for standard input.
 * @return RFL_OK; RFL_EFORMAT with file, line and column, or with advice on an unsupported format;
 *         RFL_ENOTFOUND if options->from is unknown; RFL_EIO */
enum rfl_rc rfl_import_file(const char *path, const struct rfl_import_options *options,
			    struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;
/** Read a file that is in memory. */
enum rfl_rc rfl_import_text(const char *text, size_t len, const char *name,
			    const struct rfl_import_options *options, struct rfl_captures *to,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** Join captures of one label that are passes of one run: files of a profiler that runs the
 * application once for each set of counters, with the same launch counts for the kernels that they
 * share. Values that both have are taken from the first. Warn if the launch counts differ. */
enum rfl_rc rfl_import_join_passes(struct rfl_captures *c, const struct rfl_import_options *options,
				   struct rfl_err *err) RFL_WARN_UNUSED;
/** Read the files of a directory in the order of their names; warn about unknown formats. */
enum rfl_rc rfl_import_dir(const char *dir, const struct rfl_import_options *options,
			   struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
