/* importer.h - readers of other profilers' files. The format is detected, or named by the user. */
#ifndef RFL_PROFILE_IMPORTER_H
#define RFL_PROFILE_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/capture.h"

struct rfl_import_options {
	const char *from;  /**< name of an importer; NULL: detect it */
	const char *label; /**< of the run; NULL: the file's stem */
	int64_t steps;     /**< training steps that a file covers; 0: unknown */
	bool keep_going;   /**< leave out unreadable rows, and count them */
	bool strict;       /**< refuse rounded values */
	bool all_metrics;  /**< keep metrics that no formula names */
	/** Called with each warning: one line, "file:line: column 'x': ...". */
	void (*warn)(const char *line, void *ctx);
	void *ctx;
};

struct rfl_import;
struct rfl_span;

/* A line that identifies a format: it begins with `begin` and contains all of `has`; NULL: any. */
struct rfl_sign {
	const char *begin, *has[3];
	int sure; /* 1 to 100; 0 ends a list */
};

/* A format. The state of a file is in a struct that begins with struct rfl_import (impl.h), zeroed
 * before the first line. */
struct rfl_importer {
	const char *name;    /**< "ncu", "nvprof", "nsys", "perf", "time", "likwid", "counters" */
	const char *summary; /**< which commands write it */
	const char *formulas;
	bool finished;    /**< end() appends the captures itself */
	bool all_metrics; /**< keep metrics that no formula names */
	size_t size;      /**< of the state */

	/** How sure it is: 0 another format, 100 certain. The larger of the two, either may be
	 * NULL. */
	const struct rfl_sign *signs;
	int (*detect)(struct rfl_span head);
	/** Called before the first line with the first bytes; may be NULL. */
	void (*begin)(struct rfl_import *import, struct rfl_span head);
	/** Whether a CSV record begins here, and not a line; NULL: there are lines only. */
	bool (*is_record)(const struct rfl_import *import, struct rfl_span ahead);
	enum rfl_rc (*line)(struct rfl_import *import, struct rfl_span line);
	enum rfl_rc (*record)(struct rfl_import *import);
	/** Called after the last row; fails if there was none. */
	enum rfl_rc (*end)(struct rfl_import *import);
	void (*fini)(struct rfl_import *import); /**< may be NULL */
};

/** The i-th importer, or NULL past the last. */
const struct rfl_importer *rfl_importer_at(size_t i);

/** The importer of this name; NULL with RFL_ENOTFOUND and a list of names. */
const struct rfl_importer *rfl_importer_find(const char *name, struct rfl_err *err);

/**
 * Read a file, "-" for standard input.
 * @return RFL_OK; RFL_EFORMAT with file, line and column, or with advice for other formats;
 *         RFL_ENOTFOUND for options->from; RFL_EIO
 */
enum rfl_rc rfl_import_file(const char *path, const struct rfl_import_options *options,
			    struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;
/** Read a file in memory. */
enum rfl_rc rfl_import_text(const char *text, size_t len, const char *name,
			    const struct rfl_import_options *options, struct rfl_captures *to,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** Read every file of a folder in a known format, sorted by name; warn about the others. */
enum rfl_rc rfl_import_dir(const char *dir, const struct rfl_import_options *options,
			   struct rfl_captures *to, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
