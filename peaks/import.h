/*
 * import.h - reads the results of other tools that measure ceilings. Each format is a row of the
 * table in import.c, and has a table that maps the tool's names to keys of peaks.json; names
 * without a key are listed, never guessed.
 */
#ifndef RFL_PEAKS_IMPORT_H
#define RFL_PEAKS_IMPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"

struct rfl_csv;
struct rfl_peaks;
struct rfl_peaks_env;

struct rfl_peaks_import_options {
	const char *from;   /**< one of rfl_peaks_format_names; NULL: detect it */
	const char *device; /**< name for the environment; NULL: the one in the files */
	const char *select; /**< the device in the files, by name or number; NULL: the only one */
	const char *kind;   /**< "cpu" or "gpu"; NULL: as the format says */
	const char *level;  /**< the memory level that likwid-bench measured; NULL: unknown */
	const char *precision; /**< of NERSC's compute roofs; NULL: unknown */
};

/** Files that are being read into one environment. Of several values for a key, the highest is
 * used. */
struct rfl_peaks_import {
	const struct rfl_peaks_import_options *options;
	const struct rfl_peaks_format *format; /**< of the current file, like the next members */
	const char *name;
	struct rfl_span text;
	char tool[128];      /**< with its version; the source of the values */
	char device[256];    /**< "" if the files do not name it */
	bool gpu;            /**< unless the options say otherwise */
	json_t *compute;     /**< by key */
	json_t *memory;      /**< list of levels */
	json_t *devices;     /**< names or numbers of all devices in the current file, as keys */
	json_t *ignored;     /**< names in all files that have no key, as keys */
	struct rfl_err *err; /**< of the current call */
};

/** A name in another tool's file, as a pattern of fnmatch(), and its key: "fp32.vector", "DRAM", or
 * NULL to ignore it. The first match counts. */
struct rfl_peaks_name {
	const char *name, *key;
};

struct rfl_peaks_format {
	const char *name; /**< "ert" */
	const char *tool; /**< "Empirical Roofline Toolkit" */
	bool (*detect)(struct rfl_span text);
	enum rfl_rc (*read)(struct rfl_peaks_import *in);
	const struct rfl_peaks_name *names; /**< ends with an empty row */
};

extern const struct rfl_peaks_format rfl_peaks_format_ert, rfl_peaks_format_likwid,
	rfl_peaks_format_rocprof, rfl_peaks_format_clpeak, rfl_peaks_format_nvbandwidth,
	rfl_peaks_format_nersc;

/** The names of the formats, in the order of detection; ends with NULL. */
extern const char *const rfl_peaks_format_names[];

/** @param options  borrowed */
void rfl_peaks_import_init(struct rfl_peaks_import *in,
			   const struct rfl_peaks_import_options *options);
void rfl_peaks_import_fini(struct rfl_peaks_import *in);

/** @return RFL_OK; RFL_EFORMAT; RFL_EINVAL for an option that does not fit; RFL_EIO */
enum rfl_rc rfl_peaks_import_file(struct rfl_peaks_import *in, const char *path,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** Load another tool's file as a peaks file of one environment.
 * @param ret  NULL if no format fits; release with rfl_peaks_free()
 * @return as the functions above */
enum rfl_rc rfl_peaks_import_load(const char *path, const struct rfl_peaks_import_options *options,
				  const char *env, struct rfl_peaks **ret,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** The environment, for rfl_peaks_edit_merge().
 * @param ret  set on success only; a new reference
 * @return RFL_OK; RFL_EFORMAT if no name in the files has a key */
enum rfl_rc rfl_peaks_import_env(const struct rfl_peaks_import *in, json_t **ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** An environment as the roofline.json of the Empirical Roofline Toolkit.
 * @param skipped  ", "-separated cells that this file cannot hold are appended
 * @return a new reference */
json_t *rfl_peaks_export_ert(const struct rfl_peaks_env *env, struct rfl_buf *skipped);

/* --- for the formats --- */

/* Add the tool's version to its name. @param version  NULL: unknown */
void rfl_peaks_import_version(struct rfl_peaks_import *in, const char *version);

/* Read the text as CSV with these columns. @param at  set to their places */
enum rfl_rc rfl_peaks_import_csv(struct rfl_peaks_import *in, const char *const *names, int *at,
				 enum rfl_rc (*row)(struct rfl_peaks_import *in,
						    const struct rfl_csv *csv, const int *at));

/* Note a device of the file. @param id  its name or number, for --select
 * @return whether its values are to be taken */
bool rfl_peaks_import_device(struct rfl_peaks_import *in, const char *id, const char *name);

/* The key of a name in the format; NULL: none. */
const char *rfl_peaks_import_key(const struct rfl_peaks_import *in, const char *name);

/* Take a rate in GFLOP/s or GB/s.
 * @param key      NULL: list the name as ignored
 * @param threads  0: unknown; with 1, the key has the suffix .1core */
enum rfl_rc rfl_peaks_import_put(struct rfl_peaks_import *in, const char *key, const char *name,
				 double value, int threads);

/* Note that a rate could not be measured. @param status  "unsupported", "failed" or "unknown" */
enum rfl_rc rfl_peaks_import_lacks(struct rfl_peaks_import *in, const char *name,
				   const char *status, const char *reason);

/* Fail with RFL_EFORMAT and "file: ...". */
enum rfl_rc rfl_peaks_import_refuse(const struct rfl_peaks_import *in, const char *fmt, ...)
	RFL_PRINTF(2, 3);

#endif
