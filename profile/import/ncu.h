/*
 * ncu.h - private interface of the ncu importer: ncu.c (the file and its tables) and ncu_row.c
 * (launches, numbers, units and cells of rows).
 */
#ifndef RFL_PROFILE_IMPORT_NCU_H
#define RFL_PROFILE_IMPORT_NCU_H

#include "profile/chips.h"
#include "profile/import/impl.h"

enum rfl_ncu_unit_kind {
	RFL_NCU_UNIT_COUNT,   /* bytes, instructions, cycles, ...: integers in the base unit */
	RFL_NCU_UNIT_TIME,    /* times: integers in nanoseconds */
	RFL_NCU_UNIT_RATE,    /* per second, hertz */
	RFL_NCU_UNIT_RATIO,   /* per cycle, per block, ..., and percent: never added up */
	RFL_NCU_UNIT_UNKNOWN, /* the value is not converted */
};

struct rfl_ncu_unit {
	enum rfl_ncu_unit_kind kind;
	int exponent;  /* base = value x 10^exponent: prefixes are decimal */
	char base[48]; /* "byte", "s", "Hz", "byte/s", "inst/cycle", "%", "" */
};

/** Parse a unit. An unknown unit becomes its own base. */
struct rfl_ncu_unit rfl_ncu_unit_parse(struct rfl_span text);

/* The number format of a file, as far as it is known from the cells read so far. */
struct rfl_ncu_convention {
	char decimal;     /* '.' or ','; 0: unknown so far */
	bool no_group;    /* digits are not grouped with '.' or ',' */
	bool assumed;     /* an ambiguous cell was read as in the C locale */
	char witness[40]; /* the cell that shows `decimal`, or the first ambiguous cell */
	size_t witness_line;
};

struct rfl_ncu_number {
	enum { RFL_NCU_VALUE, RFL_NCU_MISSING, RFL_NCU_BAD, RFL_NCU_CONTRADICTS } what;
	double value; /* in the base unit */
	int decimals; /* decimal places in the cell */
};

/** Read a cell: a number, optionally followed by instance values in parentheses, which are ignored.
 * An empty cell, n/a, nan, inf, ... are missing values.
 * @param whole     the metric is an integer in this unit: 117.344 can only be 117344
 * @param exponent  exponent of the unit
 * @param line      line number for messages */
struct rfl_ncu_number rfl_ncu_number_read(struct rfl_ncu_convention *c, struct rfl_span cell,
					  bool whole, int exponent, size_t line);

enum rfl_ncu_layout {
	RFL_NCU_LONG,    /* a row is a metric of a launch */
	RFL_NCU_WIDE,    /* a row is a launch */
	RFL_NCU_SUMMARY, /* a row is a metric, averaged over the launches of a kernel */
};

/* Known columns; others are metrics on a wide page, else ignored. The first eight identify a
 * launch; the last five are listed only so that they are not read as metrics. */
#define RFL_NCU_COLUMN_LIST(F)          \
	F(ID, "ID")                     \
	F(PROCESS, "Process ID")        \
	F(KERNEL, "Kernel Name")        \
	F(BLOCK, "Block Size")          \
	F(GRID, "Grid Size")            \
	F(DEVICE, "Device")             \
	F(CC, "CC")                     \
	F(INVOCATIONS, "Invocations")   \
	F(SECTION, "Section Name")      \
	F(METRIC_NAME, "Metric Name")   \
	F(METRIC_UNIT, "Metric Unit")   \
	F(METRIC_VALUE, "Metric Value") \
	F(MINIMUM, "Minimum")           \
	F(MAXIMUM, "Maximum")           \
	F(AVERAGE, "Average")           \
	F(PROCESS_NAME, "Process Name") \
	F(HOST_NAME, "Host Name")       \
	F(KERNEL_TIME, "Kernel Time")   \
	F(CONTEXT, "Context")           \
	F(STREAM, "Stream")
enum rfl_ncu_column {
#define F(id, title) RFL_NCU_##id,
	RFL_NCU_COLUMN_LIST(F)
#undef F
		RFL_NCU_COLUMNS
};

/* A metric of the file: a column of a wide page, otherwise a section, name and unit. */
struct rfl_ncu_metric {
	struct rfl_span section, name, unit_text; /* in the arena, NUL-terminated */
	struct rfl_ncu_unit unit;
	int id;       /* the builder's id; below 0: not kept */
	bool whole;   /* an integer in this unit: a count, or nanoseconds */
	bool legacy;  /* an nvprof metric */
	bool refused; /* in a formula, but its unit is unknown */
	bool hidden;  /* in no formula: kept for a message only */
	bool warned;
	size_t next;         /* index of the metric that followed last time */
	int64_t launch;      /* the last launch with a value */
	int decimals;        /* decimal places for `rounded` */
	const char *rounded; /* the reason given for values with `decimals`; NULL: none yet */
};

struct rfl_ncu_table {
	enum rfl_ncu_layout layout;
	bool quoted; /* every field is in quotes */
	size_t line; /* line of the header */
	int column[RFL_NCU_COLUMNS];
	size_t ncolumns, least;         /* least: fields that a row must have */
	size_t identity_end;            /* index after the columns that identify a launch */
	bool units_due;                 /* wide: the next row may contain the units */
	int64_t left_out;               /* rows skipped before the table */
	bool ready;                     /* wide: the metrics have been requested */
	struct rfl_ncu_metric *metrics; /* wide: one per column */
	size_t *used, nused;            /* wide: columns that are kept */
	int display_name;               /* wide: column of the device's name */
};

struct rfl_ncu {
	struct rfl_import i;
	struct rfl_ncu_convention convention;
	struct rfl_ncu_table table;
	size_t tables;

	struct rfl_ncu_metric *metrics; /* of long tables and summaries */
	size_t nmetrics, last;
	struct rfl_keys metric_keys; /* their sections, names and units */
	struct rfl_keys texts;       /* interned */

	uint64_t identity; /* hash of the fields that identify the launch of a row */
	bool open, bad;    /* open: a launch is open; bad: its rows are skipped */
	bool follows;      /* the previous row belonged to the open launch */
	int64_t process, id;
	int64_t launches, bad_rows;
	double invocations; /* summary: launches of the open kernel */
	struct rfl_keys processes;
	bool *summarized; /* whether a process has a summary; otherwise it has launches */
	size_t summarized_cap;
	char cc[16], device[16];
	const struct rfl_chip *chip; /* NULL: unknown */
	bool chip_chosen, mixed_cc, mixed_device;

	/* Lines outside tables. */
	struct rfl_err first_error, cause; /* cause: a warning that explains the lack of kernels */
	char report[400];                  /* the file that has the results, by ncu's last line */
	size_t errors, noise;
	const char *other_page; /* "source", "session"; NULL: none seen */
	size_t other_page_line;
	bool text_report;

	int64_t rounded, legacy;      /* number of such cells */
	const char *legacy_name;      /* the first nvprof metric; in the arena */
	struct rfl_keys units_warned; /* unknown units that were reported */
	double worst;                 /* largest relative rounding error of the cells */
	bool not_whole_warned, no_units;
};

/** A field of the current row; empty if the row or the table does not have it. */
static inline struct rfl_span rfl_ncu__field(const struct rfl_ncu *n, enum rfl_ncu_column column)
{
	int i = n->table.column[column];

	if (i < 0 || (size_t)i >= n->i.n)
		return rfl_span_of("");
	return n->i.f[i];
}

/** Open the launch of the current row unless it is open. Sets n->bad if its rows are skipped. */
enum rfl_rc rfl_ncu__launch(struct rfl_ncu *n) RFL_WARN_UNUSED;

/** Whether a metric is an integer in a unit, as counts and times in nanoseconds are. */
bool rfl_ncu__is_whole(struct rfl_span name, const struct rfl_ncu_unit *unit);
/** Request a metric from the builder, and parse its unit. @param section, name, unit  kept */
void rfl_ncu__metric_init(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span section,
			  struct rfl_span name, struct rfl_span unit);
/** Add a value to the open launch. @param times  launches averaged by a summary, else 1 */
enum rfl_rc rfl_ncu__cell(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span cell,
			  double times, const char *column) RFL_WARN_UNUSED;
/** A unique, NUL-terminated copy in the arena. */
struct rfl_span rfl_ncu__keep(struct rfl_ncu *n, struct rfl_span s);

#endif
