/*
 * nsys.c - the CSV of `nsys stats`: summaries and traces of GPU kernels. Times only: nsys
 * counts neither FLOPs nor bytes of kernels.
 *
 * One output may hold several reports. The first table of kernels is taken; copies and fills of
 * memory are told in notes; tables of calls and ranges are passed over.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/import/impl.h"
#include "profile/import/span.h"

/* What a table is, by its columns. */
enum table {
	NO_TABLE,     /* before the first header */
	KERNELS,      /* a row per kernel: total and instances */
	EXECUTIONS,   /* cuda_kern_exec_sum: an average and a count */
	TRACE,        /* cuda_gpu_trace: a row per launch or copy */
	COPIES_BYTES, /* cuda_gpu_mem_size_sum */
	COPIES_TIME,  /* cuda_gpu_mem_time_sum */
	OTHER,        /* calls, ranges: not looked at */
};

enum column { TOTAL, COUNT, NAME, CATEGORY, GRID, BLOCK, BYTES, COLUMNS };

/* Titles per table, in the spellings of all versions; the first that a header has. */
static const char *const total_titles[] = { "Total Time", NULL };
static const char *const average_titles[] = { "KAvg", NULL };
static const char *const duration_titles[] = { "Duration", NULL };
static const char *const size_titles[] = { "Total", "Total Size", NULL };
static const char *const count_titles[] = { "Instances", "Count", "Operations", NULL };
static const char *const name_titles[] = { "Kernel Name", "Name", "Operation", NULL };
static const char *const category_titles[] = { "Category", NULL };
static const char *const grid_titles[] = { "GridXYZ", NULL };
static const char *const block_titles[] = { "BlockXYZ", NULL };
static const char *const bytes_titles[] = { "Bytes", NULL };
static const char *const calls_titles[] = {
	"Num Calls", "Calls", "Style", "Range", "Event ID", NULL
};

struct nsys {
	struct rfl_import *import;
	struct rfl_capture_builder *b;
	struct rfl_metric_ids ids;
	enum table table;
	int column[COLUMNS];
	int grid[3], block[3]; /* of a trace */
	size_t width;
	double per_second, size_unit;
	bool kernels_done; /* a table of kernels was read */
	double copied_bytes, copied_s;
	int64_t copies, copies_timed;
	char skipped[160]; /* the line by which nsys says that there is nothing */
	bool column_form;  /* its table for people was passed */
};

static int find(const struct rfl_span *fields, size_t n, const char *const *titles,
		struct rfl_span *unit)
{
	int i = -1;

	while (i < 0 && *titles)
		i = rfl_import_column(fields, n, *titles++, unit);
	return i;
}

/* --- headers --------------------------------------------------------------------------------- */

/* "(MB)" is 10^6 bytes in nsys, "(MiB)" 2^20; before nsys named units they were KiB. NaN: not one.
 */
static double size_of(struct rfl_span unit)
{
	static const struct {
		const char *text;
		double bytes;
	} units[] = {
		{ "B", 1.0 },      { "bytes", 1.0 },     { "KB", 1e3 },
		{ "kB", 1e3 },     { "MB", 1e6 },        { "GB", 1e9 },
		{ "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 },
		{ "", 1024.0 },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(units); i++)
		if (rfl_span_is(unit, units[i].text))
			return units[i].bytes;
	return NAN;
}

static enum table table_of(const struct rfl_span *f, size_t n, struct rfl_span *unit)
{
	bool by_operation = rfl_import_column(f, n, "Operation", NULL) >= 0;

	if (n < 3)
		return NO_TABLE;
	if (find(f, n, average_titles, unit) >= 0)
		return EXECUTIONS;
	if (find(f, n, duration_titles, unit) >= 0 && rfl_import_column(f, n, "CorrId", NULL) >= 0)
		return TRACE;
	if (find(f, n, total_titles, unit) >= 0) {
		if (find(f, n, calls_titles, NULL) >= 0)
			return OTHER;
		if (by_operation && find(f, n, category_titles, NULL) < 0)
			return COPIES_TIME;
		return find(f, n, name_titles, NULL) >= 0 ? KERNELS : OTHER;
	}
	if (by_operation && find(f, n, size_titles, unit) >= 0)
		return COPIES_BYTES;
	return NO_TABLE;
}

static void find_columns(struct nsys *k, const struct rfl_span *f, size_t n)
{
	static const char *const *const totals[] = {
		[KERNELS] = total_titles,     [EXECUTIONS] = average_titles,
		[TRACE] = duration_titles,    [COPIES_BYTES] = size_titles,
		[COPIES_TIME] = total_titles, [OTHER] = total_titles,
	};
	static const char *const sides[] = { "X", "Y", "Z" };
	struct rfl_span bytes_unit = { .at = "", .len = 0 };

	k->width = n;
	k->column[TOTAL] = find(f, n, totals[k->table], NULL);
	k->column[COUNT] = find(f, n, count_titles, NULL);
	k->column[NAME] = find(f, n, name_titles, NULL);
	k->column[CATEGORY] = find(f, n, category_titles, NULL);
	k->column[GRID] = find(f, n, grid_titles, NULL);
	k->column[BLOCK] = find(f, n, block_titles, NULL);
	k->column[BYTES] = find(f, n, bytes_titles, &bytes_unit);
	for (size_t i = 0; i < RFL_ARRAY_LEN(sides); i++) {
		char title[8];

		(void)snprintf(title, sizeof(title), "Grd%s", sides[i]);
		k->grid[i] = rfl_import_column(f, n, title, NULL);
		(void)snprintf(title, sizeof(title), "Blk%s", sides[i]);
		k->block[i] = rfl_import_column(f, n, title, NULL);
	}
	if (k->table == TRACE)
		k->size_unit = size_of(bytes_unit);
}

/* A header begins a table. A second table of kernels may be of the same launches. */
static enum rfl_rc begin_table(struct nsys *k, const struct rfl_span *f, size_t n, bool *mine,
			       struct rfl_err *err)
{
	struct rfl_span unit = { .at = "", .len = 0 };
	enum table table = table_of(f, n, &unit);

	*mine = table != NO_TABLE;
	if (!*mine)
		return RFL_OK;
	k->table = table;
	k->per_second = unit.len > 0 ? rfl_import_per_second(unit) : 1e9;
	if (table == COPIES_BYTES)
		k->size_unit = size_of(unit);
	find_columns(k, f, n);
	if (table != KERNELS && table != EXECUTIONS && table != TRACE)
		return RFL_OK;
	if (k->kernels_done) {
		rfl_import_warn(k->import, "a second table of kernels is left out, because it may "
					   "show the same launches: keep one report per file");
		k->table = OTHER;
		return RFL_OK;
	}
	k->kernels_done = true;
	if (k->per_second == 0.0)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: unknown unit of time '%.*s' in the header (known: ns, us, "
				"ms, s)",
				rfl_input_name(k->import->in), rfl_input_line_number(k->import->in),
				RFL_SPAN_ARG(unit));
	if (k->column[TOTAL] < 0 || k->column[NAME] < 0 || (table != TRACE && k->column[COUNT] < 0))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: this table of kernels has no column of %s",
				rfl_input_name(k->import->in), rfl_input_line_number(k->import->in),
				k->column[NAME] < 0 ? "names" : "counts");
	return RFL_OK;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Plain digits, or digits in groups: nsys writes a point before decimals. */
static bool number(struct rfl_span s, double *ret)
{
	return rfl_span_number(s, ret) || rfl_span_grouped(s, RFL_DECIMAL_POINT, ret);
}

static enum rfl_rc add_kernel(struct nsys *k, const char *name, const char *block, const char *grid,
			      double seconds, int64_t launches, struct rfl_err *err)
{
	static const char rounded[] = "average x count; nsys rounds the average to 0.1 ns";
	const bool average = k->table == EXECUTIONS;
	const struct rfl_reading time = {
		.name = "gpu__time_duration.sum",
		.unit = "s",
		.value = seconds,
		.validity = average && launches > 1 ? RFL_VALID_ESTIMATE : RFL_VALID,
		.reason = average && launches > 1 ? rounded : NULL,
	};
	enum rfl_rc rc;

	if (time.reason && k->import->options->strict)
		return rfl_import_bad_row(k->import, "KAvg", err,
					  "is an average that nsys has rounded; leave out "
					  "--strict, or use the report cuda_gpu_kern_sum");
	rc = rfl_capture_begin(k->b, RFL_RANGE_KERNEL, name, block, grid, err);
	if (rc != RFL_OK)
		return rc;
	rfl_capture_launches(k->b, launches);
	rc = rfl_import_give(k->b, &k->ids, &time, NULL, err);
	return rc == RFL_OK ? rfl_capture_end(k->b, err) : rc;
}

static void add_copy(struct nsys *k, double bytes, double seconds, int64_t count)
{
	if (!isnan(bytes)) {
		k->copied_bytes += bytes;
		k->copies += count;
	}
	if (!isnan(seconds)) {
		k->copied_s += seconds;
		k->copies_timed += count;
	}
}

/* A row of a table of kernels, which may also hold copies. */
static enum rfl_rc kernel_row(struct nsys *k, const struct rfl_span *f, size_t n, double value,
			      double count, struct rfl_err *err)
{
	struct rfl_span category = rfl_import_field(f, n, k->column[CATEGORY]);
	struct rfl_span bytes = rfl_import_field(f, n, k->column[BYTES]);
	double seconds = value / k->per_second * (k->table == EXECUTIONS ? count : 1.0);
	bool copy = k->table == TRACE ? bytes.len > 0
				      : category.len > 0 && !rfl_span_has(category, "KERNEL");
	char block[64], grid[64], name[4096];
	const char *b = NULL, *g = NULL;

	if (copy) {
		double size = NAN;

		if (bytes.len > 0 && (!number(bytes, &size) || isnan(k->size_unit)))
			return rfl_import_bad_row(k->import, "Bytes", err,
						  "'%.*s' is no size in a known unit",
						  RFL_SPAN_ARG(bytes));
		add_copy(k, size * k->size_unit, seconds, (int64_t)count);
		return RFL_OK;
	}
	rfl_span_copy(rfl_import_field(f, n, k->column[NAME]), name, sizeof(name));
	if (k->table == TRACE) {
		b = rfl_import_shape(f, n, k->block, block);
		g = rfl_import_shape(f, n, k->grid, grid);
	} else {
		if (k->column[BLOCK] >= 0)
			b = rfl_span_copy(rfl_import_field(f, n, k->column[BLOCK]), block,
					  sizeof(block));
		if (k->column[GRID] >= 0)
			g = rfl_span_copy(rfl_import_field(f, n, k->column[GRID]), grid,
					  sizeof(grid));
	}
	return add_kernel(k, name, b, g, seconds, (int64_t)count, err);
}

static enum rfl_rc row(struct nsys *k, const struct rfl_span *f, size_t n, struct rfl_err *err)
{
	struct rfl_span total = rfl_import_field(f, n, k->column[TOTAL]);
	struct rfl_span many = rfl_import_field(f, n, k->column[COUNT]);
	double value, count = 1.0;

	if (n != k->width)
		return rfl_import_bad_row(
			k->import, NULL, err, "%zu fields where the header has %zu%s", n, k->width,
			rfl_input_torn(k->import->in) ? ": the file is cut off" : "");
	if (!number(total, &value) || value < 0)
		return rfl_import_bad_row(k->import, k->table == EXECUTIONS ? "KAvg" : "time", err,
					  "'%.*s' is no time", RFL_SPAN_ARG(total));
	if (k->column[COUNT] >= 0 &&
	    (!number(many, &count) || count < 1 || count > 9e15 || count != floor(count)))
		return rfl_import_bad_row(k->import, "instances", err,
					  "'%.*s' is no number of launches", RFL_SPAN_ARG(many));
	if (k->table == COPIES_BYTES)
		add_copy(k, value * k->size_unit, NAN, (int64_t)count);
	else if (k->table == COPIES_TIME)
		add_copy(k, NAN, value / k->per_second, (int64_t)count);
	else
		return kernel_row(k, f, n, value, count, err);
	return RFL_OK;
}

/* How the first line of a table begins, in all its reports. */
static bool may_be_header(struct rfl_span ahead)
{
	static const char *const begins[] = { "Time", "Total", "Start (",
					      "PID,", "Count", "Duration" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(begins); i++)
		if (rfl_span_starts(ahead, begins[i]))
			return true;
	return false;
}

/* Lines around the tables: "Processing [...]", "Generating ...", and what nsys could not do. */
static bool is_around(const struct nsys *k, struct rfl_span ahead)
{
	static const char *const begins[] = { "Processing", "Generating ", "Export",  "Running [",
					      "Using ",     "NOTICE",      "WARNING", "** ",
					      " ** ",       "SKIPPED",     "ERROR",   "FATAL" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(begins); i++)
		if (rfl_span_starts(ahead, begins[i]))
			return true;
	return k->table == NO_TABLE && !may_be_header(ahead);
}

/* The aligned table for people has the same titles between blanks. */
static bool is_column_form(struct rfl_span line)
{
	return rfl_span_has(line, "Total Time") && rfl_span_has(line, "Instances") &&
	       !rfl_span_has(line, ",");
}

static enum rfl_rc pass_line(struct nsys *k, bool *more, struct rfl_err *err)
{
	struct rfl_span line;
	enum rfl_rc rc = rfl_import_line(k->import, &line, more, err);

	if (rc != RFL_OK || !*more)
		return rc;
	k->column_form = k->column_form || is_column_form(line);
	if (k->skipped[0] == '\0' &&
	    (rfl_span_starts(line, "SKIPPED") || rfl_span_starts(line, "ERROR") ||
	     rfl_span_starts(line, "FATAL")))
		rfl_span_copy(rfl_span_trim(line), k->skipped, sizeof(k->skipped));
	return RFL_OK;
}

static enum rfl_rc one_record(struct nsys *k, bool *more, struct rfl_err *err)
{
	const struct rfl_span *f;
	size_t n;
	bool header = false;
	enum rfl_rc rc = rfl_import_record(k->import, ',', &f, &n, more, err);

	if (rc != RFL_OK || !*more || (n == 1 && rfl_span_trim(f[0]).len == 0))
		return rc;
	rc = begin_table(k, f, n, &header, err);
	if (rc == RFL_OK && !header && k->table != NO_TABLE && k->table != OTHER)
		rc = row(k, f, n, err);
	return rc;
}

static enum rfl_rc read_records(struct nsys *k, struct rfl_err *err)
{
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && more) {
		struct rfl_span ahead;

		rc = rfl_input_ahead(k->import->in, &ahead, err);
		if (rc == RFL_OK)
			rc = is_around(k, ahead) ? pass_line(k, &more, err)
						 : one_record(k, &more, err);
	}
	return rc;
}

static enum rfl_rc nothing(const struct nsys *k, struct rfl_err *err)
{
	const char *path = rfl_input_name(k->import->in);

	if (k->column_form)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: nsys wrote its table for people here: write it with 'nsys "
				"stats --report cuda_gpu_kern_sum --format csv'",
				path);
	if (k->skipped[0] != '\0')
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: no kernels: nsys says \"%s\"", path,
				k->skipped);
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: no table of kernels: write it with 'nsys stats --report "
			"cuda_gpu_kern_sum --format csv'",
			path);
}

static enum rfl_rc read_nsys(struct rfl_import *import, struct rfl_captures *to,
			     struct rfl_err *err)
{
	struct nsys k = { .import = import };
	enum rfl_rc rc = rfl_import_builder(import, "nsys", NULL, false, &k.b, err);

	if (rc == RFL_OK)
		rc = read_records(&k, err);
	if (rc == RFL_OK && !k.kernels_done)
		rc = nothing(&k, err);
	if (rc == RFL_OK) {
		rfl_import_note_copies(k.b, k.copied_bytes, NAN, k.copies);
		rfl_import_note_copies(k.b, NAN, k.copied_s, k.copies_timed);
		rc = rfl_import_finish(import, k.b, to, err);
	}
	rfl_metric_ids_fini(&k.ids);
	rfl_capture_builder_free(k.b);
	return rc;
}

/* A header, or a line by which nsys tells which report it writes. */
static int detect_line(struct rfl_span line)
{
	static const struct {
		const char *begin, *has;
		int sure;
	} signs[] = {
		{ "Time", "Total Time (", 75 },
		{ "Time(%),Total Time,", "Name", 75 },
		{ "Start (", "CorrId,GrdX", 95 },
		{ "PID,", "KAvg (", 95 },
		{ "Count,", "KAvg (", 95 },
		{ "Total", "Count,Avg (", 80 },
		{ "Processing [", ".py]", 70 },
		{ "Processing [", "gpukernsum", 90 },
		{ "Processing [", "cuda_gpu_kern", 90 },
		{ " Time (%)", "Total Time (ns)", 75 },
		{ " Time(%)", "Total Time (ns)", 75 },
	};
	int best = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(signs); i++)
		if (signs[i].sure > best && rfl_span_starts(line, signs[i].begin) &&
		    rfl_span_has(line, signs[i].has))
			best = signs[i].sure;
	return best > 0 && rfl_span_has(line, "Instances") ? best + 15 : best;
}

static int detect(struct rfl_span head)
{
	struct rfl_span line;
	int best = 0;

	while (rfl_span_next_line(&head, &line)) {
		int sure = detect_line(line);

		best = sure > best ? sure : best;
	}
	return best;
}

const struct rfl_importer rfl_importer_nsys = {
	.name = "nsys",
	.summary = "nsys stats --format csv: summaries and traces of GPU kernels (times only)",
	.detect = detect,
	.read = read_nsys,
};
