/*
 * ncu_impl.h - the inside of the reader of ncu's CSV: import/ncu.c (the file: what is a
 * table and what is not), import/ncu_table.c (headers), import/ncu_rows.c (rows),
 * import/ncu_launch.c (which launch a row is of), import/ncu_process.c (which were read already),
 * import/ncu_cell.c (values).
 */
#ifndef RFL_PROFILE_IMPORT_NCU_IMPL_H
#define RFL_PROFILE_IMPORT_NCU_IMPL_H

#include "base/alloc.h"
#include "base/buf.h"
#include "profile/capture.h"
#include "profile/chips.h"
#include "profile/import/ncu_number.h"
#include "profile/import/importer.h"

enum rfl_ncu_layout {
	RFL_NCU_LONG,    /* a row is a metric of a launch */
	RFL_NCU_WIDE,    /* a row is a launch */
	RFL_NCU_SUMMARY, /* a row is a metric over the launches of a kernel */
};

/* X(ID, title): columns that mean something here; all others are ignored, or metrics when wide. */
#define RFL_NCU_COLUMNS(X)              \
	X(ID, "ID")                     \
	X(PROCESS, "Process ID")        \
	X(KERNEL, "Kernel Name")        \
	X(BLOCK, "Block Size")          \
	X(GRID, "Grid Size")            \
	X(DEVICE, "Device")             \
	X(CC, "CC")                     \
	X(INVOCATIONS, "Invocations")   \
	X(SECTION, "Section Name")      \
	X(METRIC, "Metric Name")        \
	X(UNIT, "Metric Unit")          \
	X(VALUE, "Metric Value")        \
	X(MINIMUM, "Minimum")           \
	X(MAXIMUM, "Maximum")           \
	X(AVERAGE, "Average")           \
	X(PROCESS_NAME, "Process Name") \
	X(HOST, "Host Name")            \
	X(TIME, "Kernel Time")          \
	X(CONTEXT, "Context")           \
	X(STREAM, "Stream")
#define RFL_NCU_COLUMN_ID(id, title) RFL_NCU_COLUMN_##id,
enum rfl_ncu_column { RFL_NCU_COLUMNS(RFL_NCU_COLUMN_ID) RFL_NCU_COLUMN_COUNT };
extern const char *const rfl_ncu_titles[RFL_NCU_COLUMN_COUNT];

/* A metric as the file writes it: a column of a wide page; else a section, name and unit. */
struct rfl_ncu_metric {
	const char *section, *name, *unit_text; /* in the arena */
	size_t section_len, name_len, unit_len;
	struct rfl_ncu_unit unit;
	int id;              /* of the builder; below 0: not kept */
	bool whole;          /* in this unit it has no decimals: a count, or nanoseconds */
	bool legacy;         /* a name of nvprof */
	bool refused;        /* a formula names it, and its unit is not known */
	size_t next;         /* the metric that followed last time */
	int64_t launch;      /* that had it last */
	int decimals;        /* for which `rounded` was made */
	const char *rounded; /* what to say of a value with so many decimals; NULL: exact */
	bool warned;
};

struct rfl_ncu_table {
	enum rfl_ncu_layout layout;
	char delimiter;
	bool quoted; /* every field is in quotes */
	size_t line; /* of the header */
	int column[RFL_NCU_COLUMN_COUNT];
	size_t ncolumns, least;         /* fields that a row must have */
	size_t identity_end;            /* columns in front of it tell launches apart */
	bool units_due;                 /* wide: the next row may be that of the units */
	int64_t left_out;               /* rows, when it began */
	bool ready;                     /* wide: the metrics have their numbers */
	struct rfl_ncu_metric *metrics; /* wide: one per column */
	size_t *used, nused;            /* wide: columns that are kept */
	int display_name;               /* wide: column of the device's name */
};

/* Launches of a process that are over: their numbers, as runs without gaps. */
struct rfl_ncu_process {
	int64_t id; /* RFL_NCU_UNNUMBERED: of tables that do not tell */
	bool summarized;
	struct rfl_ncu_run {
		int64_t first, last;
	} * runs;
	size_t nruns, cap;
};

#define RFL_NCU_UNNUMBERED (-1)

struct rfl_ncu {
	struct rfl_import *import;
	struct rfl_capture_builder *builder; /* NULL: no table yet */
	struct rfl_arena *arena;
	struct rfl_ncu_convention convention;
	struct rfl_ncu_table table;

	struct rfl_ncu_metric *metrics; /* long and summary */
	size_t nmetrics, metrics_cap, last;
	uint32_t *slots; /* metric + 1 by hash, 0 free */
	size_t nslots;

	struct rfl_buf identity; /* text of the fields that make the open launch */
	bool open, bad;          /* a launch is open; its rows are left out */
	bool follows;            /* the row before was of the open launch */
	int64_t process, id;
	int64_t launches, bad_rows;
	double invocations; /* summary: of the open one */
	struct rfl_ncu_process *processes;
	size_t nprocesses, processes_cap, tables;
	uint64_t *kernels; /* summary: hashes of those that are over, 0 free */
	size_t nkernels, kernels_cap;
	struct rfl_buf kernel, block, grid; /* with their NUL */
	char cc[16], device[16];
	const struct rfl_chip *chip; /* NULL: not known */
	bool chip_chosen, mixed_cc, mixed_device;

	/* Lines that are no table. */
	struct rfl_buf first_error, first_warning;
	size_t errors, noise;
	const char *other_page; /* "source", "session"; NULL: none seen */
	size_t other_page_line;
	bool text_report;
	int64_t rounded, legacy; /* cells */
	struct rfl_buf legacy_name, units_told;
	double worst; /* relative precision of the rounded ones */
	bool not_whole_warned, no_units;
};

/* ---- import/ncu_table.c ---- */

/** Whether a line is a table's header. @param skip  bytes in front of it: output without newline */
bool rfl_ncu__is_header(struct rfl_span line, size_t *skip);
/** A table begins with this header. */
enum rfl_rc rfl_ncu__header(struct rfl_ncu *n, struct rfl_span line,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_ncu__table_fini(struct rfl_ncu_table *t);
/** Wide: numbers for the columns, once the chip is known. */
enum rfl_rc rfl_ncu__columns(struct rfl_ncu *n, struct rfl_err *err) RFL_WARN_UNUSED;
/** The decimal sign, from cells of the bytes that come next. */
void rfl_ncu__look_ahead(struct rfl_ncu *n);

/* ---- import/ncu_rows.c ---- */

/** A row of the table that is open. */
enum rfl_rc rfl_ncu__row(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			 struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- import/ncu_launch.c ---- */

/** Open the launch of a row unless it is open. n->bad: its rows are left out. */
enum rfl_rc rfl_ncu__launch(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** The open launch is over. */
enum rfl_rc rfl_ncu__close(struct rfl_ncu *n, struct rfl_err *err) RFL_WARN_UNUSED;

/* ---- import/ncu_process.c ---- */

/** The process of that number; a new one is made. NULL: out of memory. Until the next call. */
struct rfl_ncu_process *rfl_ncu__process(struct rfl_ncu *n, int64_t id);
bool rfl_ncu__was_read(const struct rfl_ncu_process *p, int64_t launch);
/** @return false: out of memory */
bool rfl_ncu__mark_read(struct rfl_ncu_process *p, int64_t launch);
/** A kernel of a summary. @return 1: it was there already; 0: it is now; -1: out of memory */
int rfl_ncu__add_kernel(struct rfl_ncu *n, struct rfl_span identity);
/** A table begins: numbers of launches may come again where no process is told. */
void rfl_ncu__forget_unnumbered(struct rfl_ncu *n);
void rfl_ncu__processes_fini(struct rfl_ncu *n);

/* ---- import/ncu_cell.c ---- */

/** Whether a metric has no fractions in a unit: counts, and times in the ticks of their clock. */
bool rfl_ncu__is_whole(struct rfl_span name, const struct rfl_ncu_unit *unit);

/** A metric of which a builder's number and a unit are known from now on. */
enum rfl_rc rfl_ncu__metric_init(struct rfl_ncu *n, struct rfl_ncu_metric *m,
				 struct rfl_span section, struct rfl_span name,
				 struct rfl_span unit, struct rfl_err *err) RFL_WARN_UNUSED;
/** A value of the open launch. @param times  that it stands for: launches of a summary */
enum rfl_rc rfl_ncu__cell(struct rfl_ncu *n, struct rfl_ncu_metric *m, struct rfl_span cell,
			  double times, const char *column, struct rfl_err *err) RFL_WARN_UNUSED;

/** A field of a row; empty where the row is short or the table lacks the column. */
static inline struct rfl_span rfl_ncu__field(const struct rfl_ncu_table *t,
					     const struct rfl_span *fields, size_t nfields,
					     enum rfl_ncu_column column)
{
	int i = t->column[column];

	if (i < 0 || (size_t)i >= nfields)
		return (struct rfl_span){ .at = "", .len = 0 };
	return fields[i];
}

enum rfl_rc rfl_ncu__no_memory(const struct rfl_ncu *n, struct rfl_err *err);

#endif
