/*
 * nvprof.h - inside the importer of nvprof: its tables, and values with their units inside.
 */
#ifndef RFL_PROFILE_IMPORT_NVPROF_H
#define RFL_PROFILE_IMPORT_NVPROF_H

#include "profile/import/impl.h"
#include "profile/import/span.h"

enum rfl_nvprof_table {
	NVPROF_NO_TABLE,
	NVPROF_METRICS,  /* a row per kernel and metric */
	NVPROF_LAUNCHES, /* a row per launch, a column per metric */
	NVPROF_TRACE,    /* a row per launch or copy: start, duration, shape */
	NVPROF_SUMMARY,  /* a row per kernel or copy: time and calls */
	NVPROF_EVENTS,
	NVPROF_CALLS_OF_API, /* and kernels by NVTX range, which are in the summary */
};

enum rfl_nvprof_column {
	NVPROF_DEVICE,
	NVPROF_KERNEL,
	NVPROF_INVOCATIONS,
	NVPROF_METRIC,
	NVPROF_LEAST,
	NVPROF_MOST,
	NVPROF_AVERAGE,
	NVPROF_TYPE,
	NVPROF_TIME,
	NVPROF_CALLS,
	NVPROF_DURATION,
	NVPROF_SIZE,
	NVPROF_COLUMNS
};

struct rfl_nvprof {
	struct rfl_import *import;
	struct rfl_capture_builder *b;
	struct rfl_metric_ids ids;
	enum rfl_nvprof_table table;
	int column[NVPROF_COLUMNS], name, grid[3], block[3];
	size_t width;
	bool want_units; /* the row behind the header may hold units */
	double per_second, size_unit;
	int *metric; /* of NVPROF_LAUNCHES: the builder's number per column, -1: none */
	size_t metric_cap;
	char kernel[4096], device[256]; /* of the open range of NVPROF_METRICS */
	bool open, device_told, any, events, calls;
	bool aside; /* the title told that no kernels follow, or such that are counted already */
	double copied_bytes, copied_s;
	int64_t copies;
	char complaint[200]; /* the first line by which nvprof says that something failed */
};

enum rfl_nvprof_kind {
	RFL_NVPROF_COUNT,     /* whole: a total over the threads of one launch */
	RFL_NVPROF_RATIO,     /* with decimals, or in percent */
	RFL_NVPROF_RATE,      /* bytes per second */
	RFL_NVPROF_LEVEL,     /* "Low (2)" */
	RFL_NVPROF_NOT_THERE, /* "", "<OVERFLOW>", "nan" */
	RFL_NVPROF_NO_VALUE,  /* none of these */
};

/* ---- import/nvprof_rows.c ---- */

extern const char *const rfl_nvprof__titles[NVPROF_COLUMNS];

/** A row of the current table. */
enum rfl_rc rfl_nvprof__row(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** A time in the unit of its column, or in its own ("542.36ms", of 2013). False: none. */
bool rfl_nvprof__time(const struct rfl_nvprof *k, struct rfl_span s, struct rfl_reading *ret);
/** End the range of the kernel whose metrics were read last. */
enum rfl_rc rfl_nvprof__close(struct rfl_nvprof *k, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- import/nvprof_value.c ---- */

/** Bytes of "B", "KB", "MB", "GB", whose prefixes are of 1024; 0: not a size. */
double rfl_nvprof__size(struct rfl_span unit);

/** @param unit  set to the SI base unit */
enum rfl_nvprof_kind rfl_nvprof__value(struct rfl_span s, double *ret, const char **unit);

#endif
