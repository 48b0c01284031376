/*
 * nvprof.c - imports the CSV of nvprof: metrics per kernel, metrics per launch, the GPU trace and
 * the summary of times.
 *
 * nvprof prints the minimum, maximum and average of a metric over the invocations of a kernel; the
 * total of a count is average x invocations. Memory copies and fills are added up in a note.
 */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "profile/import/impl.h"

enum table {
	NO_TABLE,
	METRICS,  /* a row per kernel and metric */
	LAUNCHES, /* a row per launch, a column per metric */
	TRACE,    /* a row per launch or copy: start, duration, shape */
	SUMMARY,  /* a row per kernel or copy: time and calls */
	EVENTS,
	API_CALLS, /* or kernels by NVTX range, which are also in the summary */
};

#define COLUMN_LIST(F)                \
	F(DEVICE, "Device")           \
	F(KERNEL, "Kernel")           \
	F(INVOCATIONS, "Invocations") \
	F(METRIC, "Metric Name")      \
	F(LEAST, "Min")               \
	F(MOST, "Max")                \
	F(AVERAGE, "Avg")             \
	F(TYPE, "Type")               \
	F(TIME, "Time")               \
	F(CALLS, "Calls")             \
	F(DURATION, "Duration")       \
	F(SIZE, "Size")               \
	F(NAME, "Name")               \
	F(START, "Start")             \
	F(GRID, "Grid X")             \
	F(GRID_Y, "Grid Y")           \
	F(GRID_Z, "Grid Z")           \
	F(BLOCK, "Block X")           \
	F(BLOCK_Y, "Block Y")         \
	F(BLOCK_Z, "Block Z")
enum column { COLUMN_LIST(RFL_LIST_ID) COLUMNS };
static rfl_titles titles[] = { COLUMN_LIST(RFL_LIST_ROW) };

struct nvprof {
	struct rfl_import i;
	bool want_units; /* the row after the header may contain units */
	double per_second, size_unit;
	int *metric; /* LAUNCHES: the builder's id per column, -1: none */
	size_t metric_cap;
	char kernel[4096], device[256]; /* METRICS: kernel and device of the open range */
	bool open, device_given, any, events, calls;
	bool aside; /* the title announces API calls, or kernels that are already counted */
	double copied_bytes, copied_s;
	int64_t copies;
	bool text_form;      /* the file has nvprof's aligned tables instead of CSV */
	char complaint[200]; /* nvprof's first error or warning */
	char cause[200];     /* the first one that explains why there are no kernels */
};

/* nvprof's prefixes are powers of 1024. */
static const struct rfl_unit sizes[] = {
	{ "B", "byte", 1.0 },     { "KB", "byte", 0x1p10 }, { "MB", "byte", 0x1p20 },
	{ "GB", "byte", 0x1p30 }, { "TB", "byte", 0x1p40 },
};

enum kind {
	COUNT,     /* an integer: a total over the threads of one launch */
	RATIO,     /* a rate, a level, a percentage or a number with decimals: not a total */
	NOT_THERE, /* "", "<OVERFLOW>", "nan" */
	NO_VALUE,  /* unreadable */
};

/* Read "123", "0.45", "12.3GB/s", "45.6%", "Idle (0)" or "<OVERFLOW>". @param unit  the SI unit */
static enum kind read_value(struct rfl_span s, double *ret, const char **unit)
{
	size_t len = rfl_span_number_len(s);
	struct rfl_span rest = rfl_span_trim(rfl_span_from(s, len));

	*unit = "";
	if (rfl_span_ends(s, ")") && len == 0) {
		s = rfl_span_from(s, rfl_span_find(s, "(") + 1);
		s.len -= s.len > 0;
		return rfl_span_number(s, ret) ? RATIO : NO_VALUE;
	}
	if (rfl_num_is_missing(s.at, s.len) || rfl_span_starts(s, "<"))
		return NOT_THERE;
	s.len = len;
	if (!rfl_span_number(s, ret))
		return NO_VALUE;
	if (rest.len == 0)
		return memchr(s.at, '.', s.len) ? RATIO : COUNT;
	if (rfl_span_is(rest, "%")) {
		*unit = "%";
		return RATIO;
	}
	if (!rfl_span_ends(rest, "/s"))
		return NO_VALUE;
	rest.len -= 2;
	double scale = rfl_unit_value(sizes, RFL_ARRAY_LEN(sizes), rest);
	*ret *= scale;
	*unit = "byte/s";
	return scale > 0.0 ? RATIO : NO_VALUE;
}

/* Read a time in the unit of its column, or with its unit, as printed in 2013: "542.36ms". */
static bool read_time(const struct nvprof *k, struct rfl_span s, struct rfl_reading *ret)
{
	struct rfl_span unit = rfl_span_from(s, rfl_span_number_len(s));
	double per_second = unit.len > 0 ? rfl_import_per_second(unit) : k->per_second;
	double half = 0.0;

	s.len -= unit.len;
	*ret = (struct rfl_reading){ .name = "time_s", .unit = "s" };
	if (per_second == 0.0 || !rfl_span_number(s, &ret->value) || ret->value < 0 ||
	    !rfl_span_grouped(s, '.', &ret->value, &half))
		return false;
	ret->value /= per_second;
	if (unit.len > 0 && rfl_import_is_rounded(ret->value, half / per_second)) {
		ret->validity = RFL_VALID_ESTIMATE;
		ret->reason = "rounded to the printed decimals";
	}
	return true;
}

static enum rfl_rc begin_table(struct rfl_import *import, const struct rfl_columns *columns,
			       int *table)
{
	static const char *const own[] = { "Device", "Context", "Stream",
					   "Kernel", "Start",   "Correlation_ID" };
	struct nvprof *k = (struct nvprof *)import;
	const int *c = columns->at;

	if (c[DEVICE] >= 0 && c[KERNEL] >= 0)
		*table = c[INVOCATIONS] < 0                  ? LAUNCHES
			 : c[METRIC] >= 0 && c[AVERAGE] >= 0 ? METRICS
							     : EVENTS;
	else if (c[START] >= 0 && c[DURATION] >= 0)
		*table = c[GRID] >= 0 ? TRACE : API_CALLS;
	else if (c[TIME] >= 0 && c[CALLS] >= 0)
		*table = k->aside ? API_CALLS : SUMMARY;
	else
		return RFL_OK;
	k->open = false;
	k->want_units = *table == TRACE || *table == SUMMARY || *table == LAUNCHES;
	k->per_second = k->size_unit = 0.0;
	k->any = k->any || (*table != EVENTS && *table != API_CALLS);
	k->events = k->events || *table == EVENTS;
	k->calls = k->calls || *table == API_CALLS;
	if ((*table == TRACE || *table == SUMMARY) && c[NAME] < 0)
		return rfl_import_refuse(import, import->in->line,
					 "the header has no column 'Name'");
	if (*table != LAUNCHES)
		return RFL_OK;
	/* All other columns are metrics. */
	k->device_given = true;
	rfl_arena_reserve(import->arena, &k->metric, &k->metric_cap, import->n);
	for (size_t i = 0; i < import->n; i++) {
		struct rfl_span name = rfl_span_trim(import->f[i]);
		bool wanted = name.len > 0;

		for (size_t j = 0; j < RFL_ARRAY_LEN(own); j++)
			wanted = wanted && !rfl_span_is(name, own[j]);
		k->metric[i] =
			wanted ? rfl_capture_metric_id(import->b, name.at, name.len, "") : -1;
	}
	return RFL_OK;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Store the name of the device: "GeForce GTX 1080 Ti (0)" without the index. */
static void give_device(struct nvprof *k)
{
	struct rfl_span device = rfl_import_field(&k->i, DEVICE);
	char name[256];
	size_t n = device.len;

	if (!k->device_given && device.len > 0) {
		while (n > 0 && device.at[n - 1] != '(')
			n--;
		if (n > 1 && device.at[device.len - 1] == ')')
			device.len = n - 1;
		rfl_span_copy(rfl_span_trim(device), name, sizeof(name));
		rfl_capture_chip(k->i.b, NULL, name);
	}
	k->device_given = true; /* the builder accepts it only before the first metric */
}

static void open_range(struct nvprof *k, struct rfl_span kernel, int64_t launches)
{
	rfl_span_copy(kernel, k->kernel, sizeof(k->kernel));
	rfl_span_copy(rfl_import_field(&k->i, DEVICE), k->device, sizeof(k->device));
	give_device(k);
	rfl_capture_begin(k->i.b, RFL_RANGE_KERNEL, k->kernel, NULL, NULL);
	rfl_capture_launches(k->i.b, launches);
	k->open = true;
}

/* Read a row: a metric over the invocations of a kernel. */
static enum rfl_rc metrics_row(struct nvprof *k)
{
	struct rfl_span average = rfl_import_field(&k->i, AVERAGE),
			many = rfl_import_field(&k->i, INVOCATIONS);
	struct rfl_reading r = { .validity = RFL_VALID };
	char text[sizeof(k->kernel)], name[256];
	double launches;

	if (!rfl_import_launches(many, &launches))
		return rfl_import_bad_field(&k->i, titles[INVOCATIONS][0], many, "a launch count");
	if (!k->open ||
	    strcmp(rfl_span_copy(rfl_import_field(&k->i, KERNEL), text, sizeof(text)), k->kernel) !=
		    0 ||
	    strcmp(rfl_span_copy(rfl_import_field(&k->i, DEVICE), text, sizeof(k->device)),
		   k->device) != 0)
		open_range(k, rfl_import_field(&k->i, KERNEL), (int64_t)launches);
	enum kind kind = read_value(average, &r.value, &r.unit);
	if (kind == NO_VALUE)
		return rfl_import_bad_field(&k->i, titles[AVERAGE][0], average, "a value");
	r.name = rfl_span_copy(rfl_import_field(&k->i, METRIC), name, sizeof(name));
	if (kind == COUNT && launches > 1 &&
	    !rfl_span_same(rfl_import_field(&k->i, LEAST), rfl_import_field(&k->i, MOST))) {
		if (k->i.options->strict)
			return rfl_import_bad_row(&k->i, titles[AVERAGE][0],
						  "'%s' is a rounded average of %.0f invocations; "
						  "leave out --strict, or use --print-gpu-trace",
						  name, launches);
		r.validity = RFL_VALID_ESTIMATE;
		r.reason = "average x invocations; nvprof rounds averages of counts";
	}
	if (kind == COUNT)
		r.value *= launches;
	if (kind == NOT_THERE) {
		r.value = NAN;
		r.validity = RFL_VALID_UNAVAILABLE;
		r.reason = "nvprof printed no value";
	}
	if (rfl_import_give(&k->i, &r) == RFL_GIVEN_DIFFERS)
		return rfl_import_bad_row(&k->i, titles[METRIC][0],
					  "'%s' has two different values for this kernel", name);
	return RFL_OK;
}

/* Remove the correlation ID of the launch from "name [307]". */
static struct rfl_span without_correlation(struct rfl_span name)
{
	size_t at = rfl_span_find(name, " [");

	if (rfl_span_ends(name, "]") && at < name.len)
		name.len = at;
	return name;
}

static enum rfl_rc launch_row(struct nvprof *k)
{
	enum rfl_rc rc = RFL_OK;

	open_range(k, without_correlation(rfl_import_field(&k->i, KERNEL)), 1);
	for (size_t i = 0; i < k->i.n && rc == RFL_OK; i++) {
		const char *unit, *reason = NULL;
		double value = NAN;

		if (k->metric[i] < 0)
			continue;
		enum kind kind = read_value(rfl_span_trim(k->i.f[i]), &value, &unit);
		if (kind == NO_VALUE) {
			rc = rfl_import_bad_field(&k->i, NULL, k->i.f[i], "a value");
			continue;
		}
		if (kind == NOT_THERE)
			reason = "nvprof printed no value";
		(void)rfl_capture_metric(k->i.b, k->metric[i], reason ? NAN : value,
					 reason ? RFL_VALID_UNAVAILABLE : RFL_VALID, -1, reason);
	}
	return rc;
}

/* Read a row of the trace or the summary: a kernel, a copy, or an API call, which is ignored. */
static enum rfl_rc time_row(struct nvprof *k)
{
	bool trace = k->i.table == TRACE;
	enum column c = trace ? DURATION : TIME;
	struct rfl_span name = rfl_import_field(&k->i, NAME), text = rfl_import_field(&k->i, c),
			many = rfl_import_field(&k->i, CALLS), size = rfl_import_field(&k->i, SIZE),
			type = rfl_import_field(&k->i, TYPE);
	struct rfl_reading time;
	double calls = 1.0, bytes = 0.0;
	char block[64], grid[64];

	if (!trace && type.len > 0 && !rfl_span_is(type, "GPU activities"))
		return RFL_OK; /* API calls, OpenACC, ranges */
	if (!read_time(k, text, &time))
		return rfl_import_bad_field(&k->i, titles[c][0], text, "a time");
	if (!trace && (!rfl_span_number(many, &calls) || calls < 1 || calls > 9e15))
		return rfl_import_bad_field(&k->i, titles[CALLS][0], many, "a launch count");
	if (rfl_span_starts(name, "[CUDA mem") || rfl_span_starts(name, "[CUDA peer")) {
		if (trace && (!rfl_span_number(size, &bytes) || k->size_unit == 0.0))
			return rfl_import_bad_field(&k->i, titles[SIZE][0], size, "a size");
		k->copied_bytes += trace ? bytes * k->size_unit : NAN;
		k->copied_s += time.value;
		k->copies += (int64_t)calls;
		return RFL_OK;
	}
	give_device(k);
	rfl_import_times(&k->i, trace ? without_correlation(name) : name,
			 rfl_import_shape(&k->i, BLOCK, block), rfl_import_shape(&k->i, GRID, grid),
			 (int64_t)calls, &time);
	return RFL_OK;
}

static enum rfl_rc read_row(struct rfl_import *import)
{
	struct nvprof *k = (struct nvprof *)import;
	const enum table table = (enum table)import->table;
	bool unified = false;
	struct rfl_reading with_unit;
	double duration;

	if (table == EVENTS || table == API_CALLS)
		return RFL_OK;
	/* The row of units: "ms,us,,,,,,,,KB,B,MB,GB/s,,,,,,". */
	if (k->want_units && table == LAUNCHES && rfl_import_field(import, DEVICE).len == 0) {
		k->want_units = false;
		return RFL_OK;
	}
	if (k->want_units && table != LAUNCHES) {
		const struct rfl_span time =
			rfl_import_field(import, table == TRACE ? DURATION : TIME);

		k->per_second = rfl_import_per_second(time);
		k->size_unit =
			rfl_unit_value(sizes, RFL_ARRAY_LEN(sizes), rfl_import_field(&k->i, SIZE));
		k->want_units = false;
		if (k->per_second > 0.0)
			return RFL_OK;
		if (!read_time(k, time, &with_unit))
			return rfl_import_refuse(
				import, import->in->line,
				"a row of units must follow the header; '%.*s' is not a time unit",
				RFL_SPAN_ARG(time));
	}
	k->want_units = false;
	/* Rows of unified memory: "[Unified Memory Memcpy DtoD]" has an additional field for the
	 * second device, page faults have no duration, and no row has a size in the size column. */
	for (size_t i = 0; i < import->n && table == TRACE; i++)
		unified = unified || rfl_span_starts(import->f[i], "[Unified Memory");
	if (unified && rfl_span_number(rfl_import_field(&k->i, DURATION), &duration) &&
	    duration >= 0) {
		k->copied_bytes = NAN;
		k->copied_s += duration / k->per_second;
		k->copies++;
	}
	if (unified)
		return RFL_OK;
	if (import->n != import->columns.width)
		return rfl_import_bad_width(import);
	return table == METRICS ? metrics_row(k) : table == LAUNCHES ? launch_row(k) : time_row(k);
}

/* --- the file -------------------------------------------------------------------------------- */

/* Rows begin with a quote, rows of times with a number, and the row of units with any text; other
 * lines are output of the application. */
static bool is_record(const struct rfl_import *import, struct rfl_span ahead)
{
	const struct nvprof *k = (const struct nvprof *)import;
	struct rfl_span line;

	if (!rfl_span_next_line(&ahead, &line))
		return true;
	if (line.len == 0 || rfl_span_starts(line, "=="))
		return false;
	if (line.at[0] == '"' || rfl_span_starts(line, "Time(%),") ||
	    (k->want_units && import->table != NO_TABLE))
		return true;
	return (import->table == TRACE || import->table == SUMMARY) &&
	       rfl_span_number_len(line) > 0 && memchr(line.at, ',', line.len);
}

/* Read a line of nvprof, "==7853== Profiling result:" or a warning, of the application, or of an
 * aligned table. A line that ends in a colon is the title of a table, and ends the previous table.
 */
static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	struct nvprof *k = (struct nvprof *)import;
	const bool mine = rfl_span_starts(line, "==");

	line = rfl_span_trim(line);
	const bool nothing = rfl_span_has(line, "No kernels were profiled") ||
			     rfl_span_has(line, "No events/metrics were profiled") ||
			     rfl_span_has(line, "No CUDA application was profiled");
	const bool error = mine && rfl_span_has(line, "Error:");
	const bool warning = mine && rfl_span_has(line, "Warning:");
	if (k->complaint[0] == '\0' && (error || warning || nothing))
		rfl_span_copy(line, k->complaint, sizeof(k->complaint));
	if (k->cause[0] == '\0' &&
	    (error || nothing || (warning && rfl_span_has(line, "permission"))))
		rfl_span_copy(line, k->cause, sizeof(k->cause));
	k->text_form = k->text_form ||
		       (!rfl_span_has(line, ",") &&
			((rfl_span_has(line, "Time(%)") && rfl_span_has(line, "Calls")) ||
			 (rfl_span_has(line, "Duration") && rfl_span_has(line, "Grid Size") &&
			  rfl_span_has(line, "Block Size")))) ||
		       (rfl_span_has(line, "Metric Description") && !rfl_span_has(line, "\""));
	if (!mine || !rfl_span_ends(line, ":"))
		return RFL_OK;
	import->table = NO_TABLE;
	k->aside = rfl_span_has(line, "API calls:") || rfl_span_has(line, "NVTX result:") ||
		   rfl_span_has(line, "OpenACC") || rfl_span_has(line, "OpenMP");
	return RFL_OK;
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct nvprof *k = (struct nvprof *)import;

	if (k->any) {
		rfl_import_note_copies(import, k->copied_bytes, k->copied_s, k->copies);
		if (k->complaint[0] != '\0')
			rfl_capture_note(import->b, "nvprof reports: %s", k->complaint);
		return RFL_OK;
	}
	if (k->text_form || k->events || k->calls || k->cause[0] == '\0')
		return rfl_import_refuse(
			import, 0, "%s",
			k->text_form ? "an aligned nvprof table, not CSV; run nvprof with --csv"
			: k->events  ? "events, but no metrics; run nvprof with --csv --metrics "
				       "flop_count_sp,dram_read_transactions,dram_write_transactions"
			: k->calls   ? "API calls, but no kernels; run nvprof with --csv "
				       "--print-gpu-trace"
				   : "no nvprof table; run 'nvprof --csv --log-file FILE --metrics "
				     "...'");
	rfl_import_nothing_counted(
		import, "nvprof reports '%s'; %s", k->cause,
		strstr(k->cause, "permission")
			? "run nvprof as root, or set NVreg_RestrictProfilingToAdminUsers=0 for "
			  "the nvidia module"
			: "fix the problem and run nvprof --csv again");
	return RFL_OK;
}

static const struct rfl_sign signs[] = {
	{ NULL, { "== NVPROF is profiling " }, 95 },
	{ NULL, { "\"Device\",\"Kernel\",\"Invocations\"" }, 95 },
	{ NULL, { "\"Start\",\"Duration\",\"Grid X\"" }, 90 },
	{ NULL, { "\"Time(%)\",\"Time\",\"Calls\"" }, 90 },
	{ NULL, { "\"Device\",\"Context\",\"Stream\",\"Kernel\"" }, 85 },
	{ NULL, { "Time(%),Time,Calls," }, 85 }, /* nvprof of 2013 */
	{ NULL, { " GPU activities:  " }, 60 },
	{ NULL, { "======== Error: " }, 60 },
	{ NULL, { "======== Warning: " }, 60 },
	{ .sure = 0 },
};

const struct rfl_importer rfl_importer_nvprof = {
	.name = "nvprof",
	.summary = "nvprof --csv: metrics, the GPU trace, the summary of times",
	.size = sizeof(struct nvprof),
	.signs = signs,
	.is_record = is_record,
	.line = read_line,
	.titles = titles,
	.ntitles = COLUMNS,
	.table = begin_table,
	.record = read_row,
	.end = end,
};
