/*
 * nsys.c - imports the CSV of `nsys stats`: summaries and traces of GPU kernels. It has only times,
 * since nsys counts neither the FLOPs nor the bytes of kernels.
 *
 * One output may contain several reports. The first table of kernels is read; memory copies and
 * fills are added up in notes; tables of API calls and NVTX ranges are skipped.
 */
#include <math.h>

#include "base/file.h"
#include "profile/import/impl.h"

/* The kinds of tables, which differ in their columns. */
enum table {
	NO_TABLE,     /* before the first header */
	KERNELS,      /* a row per kernel: total and instances */
	EXECUTIONS,   /* cuda_kern_exec_sum: an average and a count */
	TRACE,        /* cuda_gpu_trace: a row per launch or copy */
	COPIES_BYTES, /* cuda_gpu_mem_size_sum */
	COPIES_TIME,  /* cuda_gpu_mem_time_sum */
	OTHER,        /* API calls, ranges: ignored */
};

/* The titles of a column in all versions of nsys; the first one present is used. */
#define COLUMN_LIST(F)                                               \
	F(TOTAL, "Total Time")                                       \
	F(AVERAGE, "KAvg")                                           \
	F(DURATION, "Duration")                                      \
	F(SIZE, "Total", "Total Size")                               \
	F(COUNT, "Instances", "Count", "Operations")                 \
	F(NAME, "Kernel Name", "Name", "Operation")                  \
	F(CATEGORY, "Category")                                      \
	F(GRID, "GridXYZ")                                           \
	F(BLOCK, "BlockXYZ")                                         \
	F(BYTES, "Bytes")                                            \
	F(CALLS, "Num Calls", "Calls", "Style", "Range", "Event ID") \
	F(SOURCE, "Source")                                          \
	F(EVENTS, "Count")                                           \
	F(OPERATION, "Operation")                                    \
	F(CORRELATION, "CorrId")                                     \
	F(GRID_X, "GrdX")                                            \
	F(GRID_Y, "GrdY")                                            \
	F(GRID_Z, "GrdZ")                                            \
	F(BLOCK_X, "BlkX")                                           \
	F(BLOCK_Y, "BlkY")                                           \
	F(BLOCK_Z, "BlkZ")
enum column { COLUMN_LIST(RFL_LIST_ID) COLUMNS };
static rfl_titles titles[] = { COLUMN_LIST(RFL_LIST_ROW) };

struct nsys {
	struct rfl_import i;
	enum column value; /* the column of times or sizes */
	double per_second, size_unit;
	bool kernels_done; /* a table of kernels was found */
	bool unnamed;      /* it is a summary, and nothing names the report */
	bool elsewhere;    /* the report is one of other events */
	bool named;        /* the report is one of kernels */
	double copied_bytes, copied_s;
	int64_t copies, copies_timed;
	char skipped[160]; /* the line in which nsys reports that there is no data on kernels */
	bool column_form;  /* the file has nsys's aligned table instead of CSV */
};

/* nsys's "(MB)" is 10^6 bytes, and "(MiB)" 2^20 bytes; versions that print no unit use KiB. */
static const struct rfl_unit sizes[] = {
	{ "B", "byte", 1.0 },      { "bytes", "byte", 1.0 },  { "KB", "byte", 1e3 },
	{ "kB", "byte", 1e3 },     { "MB", "byte", 1e6 },     { "GB", "byte", 1e9 },
	{ "KiB", "byte", 0x1p10 }, { "MiB", "byte", 0x1p20 }, { "GiB", "byte", 0x1p30 },
	{ "", "byte", 0x1p10 },
};

/* Learn from the name of a report whether it is one of kernels, or one of other events, whose table
 * may have the same columns. */
static void name_report(struct nsys *k, const char *name, size_t len)
{
	static const char *const others[] = { "mpi_event_sum", "openmp_sum",  "openacc_sum",
					      "openmpevtsum",  "syscall_sum", "um_sum" };
	const struct rfl_span report = { .at = name, .len = len };

	k->named = rfl_span_has(report, "kern");
	k->elsewhere = false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(others); i++)
		k->elsewhere = k->elsewhere || rfl_span_ends(report, others[i]);
}

/* Begin a table. A second table of kernels is skipped. */
static enum rfl_rc begin_table(struct rfl_import *import, const struct rfl_columns *columns,
			       int *table)
{
	struct nsys *k = (struct nsys *)import;
	enum column value = TOTAL;
	const int *c = columns->at;

	if (import->n < 3)
		return RFL_OK;
	if (c[AVERAGE] >= 0) {
		*table = EXECUTIONS;
		value = AVERAGE;
	} else if (c[DURATION] >= 0 && c[CORRELATION] >= 0) {
		*table = TRACE;
		value = DURATION;
	} else if (c[TOTAL] >= 0 && c[CALLS] >= 0) {
		*table = OTHER;
	} else if (c[TOTAL] >= 0 && c[OPERATION] >= 0 && c[CATEGORY] < 0) {
		*table = COPIES_TIME;
	} else if (c[TOTAL] >= 0) {
		*table = c[NAME] >= 0 && c[SOURCE] < 0 && c[EVENTS] < 0 && !k->elsewhere ? KERNELS
											 : OTHER;
	} else if (c[OPERATION] >= 0 && c[SIZE] >= 0) {
		*table = COPIES_BYTES;
		value = SIZE;
	} else {
		return RFL_OK;
	}
	const struct rfl_span unit = columns->unit[value];
	k->value = value;
	k->per_second = unit.len > 0 ? rfl_import_per_second(unit) : 1e9;
	if (*table == COPIES_BYTES || *table == TRACE)
		k->size_unit = rfl_unit_value(sizes, RFL_ARRAY_LEN(sizes),
					      columns->unit[*table == TRACE ? BYTES : value]);
	if (*table != KERNELS && *table != EXECUTIONS && *table != TRACE)
		return RFL_OK;
	if (k->kernels_done) {
		rfl_import_warn(import, "a second table of kernels is skipped, as it may contain "
					"the same launches; keep one report per file");
		*table = OTHER;
		return RFL_OK;
	}
	k->kernels_done = true;
	k->unnamed = *table == KERNELS && !k->named;
	if (k->per_second == 0.0)
		return rfl_import_refuse(import, import->in->line,
					 "unknown time unit '%.*s' in the header",
					 RFL_SPAN_ARG(unit));
	if (c[NAME] < 0 || (*table != TRACE && c[COUNT] < 0))
		return rfl_import_refuse(import, import->in->line,
					 "the header has no column for %s",
					 c[NAME] < 0 ? "names" : "counts");
	return RFL_OK;
}

/* "(12, 1, 1)" from one column, or from three from `x` on; NULL: unknown. */
static const char *shape(const struct nsys *k, enum column whole, enum column x, char out[64])
{
	if (k->i.columns.at[whole] < 0)
		return rfl_import_shape(&k->i, (int)x, out);
	return rfl_span_copy(rfl_import_field(&k->i, whole), out, 64);
}

/* Read a row of a table of kernels: a kernel or a memory copy. */
static enum rfl_rc kernel_row(struct nsys *k, double seconds, double count)
{
	bool trace = k->i.table == TRACE;
	struct rfl_span category = rfl_import_field(&k->i, CATEGORY);
	struct rfl_span bytes = rfl_import_field(&k->i, BYTES);
	struct rfl_reading time = { .name = "gpu__time_duration.sum", .unit = "s" };
	char block[64], grid[64];

	if (trace ? bytes.len > 0 : category.len > 0 && !rfl_span_has(category, "KERNEL")) {
		double size;

		if (bytes.len > 0) {
			if (!rfl_span_grouped(bytes, '.', &size, NULL) || k->size_unit == 0.0)
				return rfl_import_bad_field(&k->i, "Bytes", bytes, "a size");
			k->copied_bytes += size * k->size_unit;
			k->copies += (int64_t)count;
		}
		k->copied_s += seconds;
		k->copies_timed += (int64_t)count;
		return RFL_OK;
	}
	time.value = k->i.table == EXECUTIONS ? seconds * count : seconds;
	if (k->i.table == EXECUTIONS && count > 1) {
		if (k->i.options->strict)
			return rfl_import_bad_row(&k->i, "KAvg",
						  "is a rounded average; leave out --strict, or "
						  "use the report cuda_gpu_kern_sum");
		time.validity = RFL_VALID_ESTIMATE;
		time.reason = "average x count; nsys rounds the average to 0.1 ns";
	}
	rfl_import_times(&k->i, rfl_import_field(&k->i, NAME), shape(k, BLOCK, BLOCK_X, block),
			 shape(k, GRID, GRID_X, grid), (int64_t)count, &time);
	return RFL_OK;
}

static enum rfl_rc read_row(struct rfl_import *import)
{
	struct nsys *k = (struct nsys *)import;
	double value, count = 1.0;

	if (import->table == OTHER)
		return RFL_OK;
	struct rfl_span total = rfl_import_field(import, k->value);
	struct rfl_span many = rfl_import_field(import, COUNT);
	if (import->n != import->columns.width)
		return rfl_import_bad_width(import);
	if (!rfl_span_grouped(total, '.', &value, NULL) || value < 0)
		return rfl_import_bad_field(import, k->i.table == EXECUTIONS ? "KAvg" : "time",
					    total, "a time");
	if (k->i.columns.at[COUNT] >= 0 && !rfl_import_launches(many, &count))
		return rfl_import_bad_field(import, "instances", many, "a launch count");
	if (import->table == COPIES_BYTES) {
		if (k->size_unit > 0.0) {
			k->copied_bytes += value * k->size_unit;
			k->copies += (int64_t)count;
		}
		return RFL_OK;
	}
	if (import->table != COPIES_TIME)
		return kernel_row(k, value / k->per_second, count);
	if (k->per_second > 0) {
		k->copied_s += value / k->per_second;
		k->copies_timed += (int64_t)count;
	}
	return RFL_OK;
}

/* Lines between tables are not records: "Processing [...]", "Generating ...", warnings. */
static bool is_record(const struct rfl_import *import, struct rfl_span ahead)
{
	static const char *const around[] = { "Processing", "Generating ", "Export",  "Running [",
					      "Using ",     "NOTICE",      "WARNING", "** ",
					      " ** ",       "SKIPPED",     "ERROR",   "FATAL",
					      NULL };
	static const char *const headers[] = { "Time",  "Total",    "Start (", "PID,",
					       "Count", "Duration", NULL };
	return !rfl_span_starts_any(ahead, around) &&
	       (import->table != NO_TABLE || rfl_span_starts_any(ahead, headers));
}

static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	static const char *const failures[] = { "SKIPPED", "ERROR", "FATAL", NULL };
	struct nsys *k = (struct nsys *)import;

	/* The aligned table has the same titles, separated by blanks. */
	if (rfl_span_has(line, "Total Time") && rfl_span_has(line, "Instances") &&
	    !rfl_span_has(line, ","))
		k->column_form = true;
	/* "Processing [x.sqlite] with [.../reports/cuda_gpu_kern_sum.py]..." */
	const size_t end = rfl_span_find(line, ".py]");
	if (end < line.len)
		name_report(k, line.at, end);
	if (rfl_span_starts_any(line, failures) &&
	    (!rfl_span_starts(line, "SKIPPED") || rfl_span_has(line, "ernel")) &&
	    k->skipped[0] == '\0')
		rfl_span_copy(rfl_span_trim(line), k->skipped, sizeof(k->skipped));
	return RFL_OK;
}

/* nsys names a file after its report: "report1_mpi_event_sum.csv". */
static void begin(struct rfl_import *import)
{
	const struct rfl_span file = rfl_span_of(rfl_path_base(import->in->name));

	name_report((struct nsys *)import, file.at, rfl_span_find(file, "."));
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct nsys *k = (struct nsys *)import;

	if (k->kernels_done) {
		rfl_import_note_copies(import, k->copied_bytes, NAN, k->copies);
		rfl_import_note_copies(import, NAN, k->copied_s, k->copies_timed);
		if (k->unnamed)
			rfl_import_note_kernels(import, "nsys's reports on OpenMP and OpenACC");
		return RFL_OK;
	}
	if (!k->column_form && k->skipped[0] != '\0')
		return rfl_import_refuse(import, 0, "no kernels: nsys reports '%s'", k->skipped);
	return rfl_import_refuse(
		import, 0,
		"%s; create the file with 'nsys stats --report cuda_gpu_kern_sum --format csv'",
		k->column_form ? "an aligned nsys table, not CSV" : "no table of kernels");
}

/* A header, or a line in which nsys names its report. */
static const struct rfl_sign signs[] = {
	{ "Time", { "Total Time (", "Instances" }, 90 },
	{ "Time", { "Total Time (" }, 75 },
	{ "Time(%),Total Time,", { "Name", "Instances" }, 90 },
	{ "Time(%),Total Time,", { "Name" }, 75 },
	{ "Start (", { "CorrId,GrdX" }, 95 },
	{ "PID,", { "KAvg (" }, 95 },
	{ "Count,", { "KAvg (" }, 95 },
	{ "Total", { "Count,Avg (" }, 80 },
	{ "Processing [", { ".py]" }, 70 },
	{ "Processing [", { "gpukernsum" }, 90 },
	{ "Processing [", { "cuda_gpu_kern" }, 90 },
	{ " Time (%)", { "Total Time (ns)", "Instances" }, 90 },
	{ " Time(%)", { "Total Time (ns)", "Instances" }, 90 },
	{ " Time (%)", { "Total Time (ns)" }, 75 },
	{ " Time(%)", { "Total Time (ns)" }, 75 },
	{ .sure = 0 },
};

const struct rfl_importer rfl_importer_nsys = {
	.name = "nsys",
	.summary = "nsys stats --format csv: summaries and traces of GPU kernels (times only)",
	.size = sizeof(struct nsys),
	.signs = signs,
	.begin = begin,
	.is_record = is_record,
	.line = read_line,
	.titles = titles,
	.ntitles = COLUMNS,
	.has_units = true,
	.table = begin_table,
	.record = read_row,
	.end = end,
};
