/*
 * import_nvprof.c - the CSV of nvprof: metrics per kernel, metrics per launch, the trace of the GPU
 * and the summary of times.
 *
 * A kernel's metric is the minimum, maximum and average over its invocations; a count is its
 * average times the invocations. Sizes have prefixes of 1024. Copies and fills of memory are told
 * in notes, apart from kernels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/import_impl.h"
#include "profile/import_nvprof.h"

enum table {
	NO_TABLE,
	METRICS,  /* a row per kernel and metric */
	LAUNCHES, /* a row per launch, a column per metric */
	TRACE,    /* a row per launch or copy: start, duration, shape */
	SUMMARY,  /* a row per kernel or copy: time and calls */
	OTHER,    /* events, calls of the API */
};

enum column {
	DEVICE,
	KERNEL,
	INVOCATIONS,
	METRIC,
	LEAST,
	MOST,
	AVERAGE,
	TYPE,
	TIME,
	CALLS,
	DURATION,
	SIZE,
	COLUMNS
};

static const char *const titles[COLUMNS] = {
	[DEVICE] = "Device",      [KERNEL] = "Kernel",     [INVOCATIONS] = "Invocations",
	[METRIC] = "Metric Name", [LEAST] = "Min",         [MOST] = "Max",
	[AVERAGE] = "Avg",        [TYPE] = "Type",         [TIME] = "Time",
	[CALLS] = "Calls",        [DURATION] = "Duration", [SIZE] = "Size",
};

struct nvprof {
	struct rfl_import *import;
	struct rfl_capture_builder *b;
	struct rfl_metric_ids ids;
	enum table table;
	int column[COLUMNS], name, grid[3], block[3];
	size_t width;
	bool want_units; /* the row behind the header may hold units */
	double per_second, size_unit;
	int *metric; /* of LAUNCHES: the builder's number per column, -1: none */
	size_t metric_cap;
	char kernel[4096], device[256]; /* of the open range of METRICS */
	bool open, device_told, any, events;
	double copied_bytes, copied_s;
	int64_t copies;
	char complaint[200]; /* the first line by which nvprof says that something failed */
};

static const struct rfl_span nowhere = { .at = "", .len = 0 };

/* --- headers --------------------------------------------------------------------------------- */

static enum table table_of(const int c[COLUMNS], const struct rfl_span *f, size_t n)
{
	if (c[DEVICE] >= 0 && c[KERNEL] >= 0) {
		if (c[INVOCATIONS] < 0)
			return LAUNCHES;
		return c[METRIC] >= 0 && c[AVERAGE] >= 0 ? METRICS : OTHER;
	}
	if (rfl_import_column(f, n, "Start", NULL) >= 0 && c[DURATION] >= 0)
		return TRACE;
	if (c[TIME] >= 0 && c[CALLS] >= 0)
		return SUMMARY;
	return NO_TABLE;
}

/* "Time(%)" is a column of its own, so that titles are compared as they are. */
static int exact(const struct rfl_span *f, size_t n, const char *title)
{
	for (size_t i = 0; i < n; i++)
		if (rfl_span_is(rfl_span_trim(f[i]), title))
			return (int)i;
	return -1;
}

static enum rfl_rc ask_metrics(struct nvprof *k, const struct rfl_span *f, size_t n,
			       struct rfl_err *err)
{
	static const char *const own[] = { "Device", "Context", "Stream",
					   "Kernel", "Start",   "Correlation_ID" };

	k->device_told = true;
	if (n > k->metric_cap) {
		int *more = realloc(k->metric, n * sizeof(*more));

		if (!more)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory",
					rfl_input_name(k->import->in));
		k->metric = more;
		k->metric_cap = n;
	}
	for (size_t i = 0; i < n; i++) {
		struct rfl_span name = rfl_span_trim(f[i]);

		k->metric[i] = name.len > 0 ? 0 : -1;
		for (size_t j = 0; j < RFL_ARRAY_LEN(own); j++)
			if (rfl_span_is(name, own[j]))
				k->metric[i] = -1;
		if (k->metric[i] < 0)
			continue;
		k->metric[i] = rfl_capture_metric_id(k->b, name.at, name.len, "");
		if (k->metric[i] == -2)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory",
					rfl_input_name(k->import->in));
	}
	return RFL_OK;
}

static enum rfl_rc close_range(struct nvprof *k, struct rfl_err *err)
{
	if (!k->open)
		return RFL_OK;
	k->open = false;
	return rfl_capture_end(k->b, err);
}

static enum rfl_rc begin_table(struct nvprof *k, const struct rfl_span *f, size_t n, bool *mine,
			       struct rfl_err *err)
{
	static const char *const sides[] = { "X", "Y", "Z" };
	int c[COLUMNS];
	enum table table;
	enum rfl_rc rc;

	for (size_t i = 0; i < COLUMNS; i++)
		c[i] = exact(f, n, titles[i]);
	table = table_of(c, f, n);
	*mine = table != NO_TABLE;
	if (!*mine)
		return RFL_OK;
	rc = close_range(k, err);
	if (rc != RFL_OK)
		return rc;
	k->table = table;
	memcpy(k->column, c, sizeof(c));
	k->name = exact(f, n, "Name");
	k->width = n;
	k->want_units = table == TRACE || table == SUMMARY || table == LAUNCHES;
	k->per_second = k->size_unit = 0.0;
	for (size_t i = 0; i < RFL_ARRAY_LEN(sides); i++) {
		char title[16];

		(void)snprintf(title, sizeof(title), "Grid %s", sides[i]);
		k->grid[i] = exact(f, n, title);
		(void)snprintf(title, sizeof(title), "Block %s", sides[i]);
		k->block[i] = exact(f, n, title);
	}
	k->any = k->any || table != OTHER;
	k->events = k->events || table == OTHER;
	if ((table == TRACE || table == SUMMARY) && k->name < 0)
		return rfl_fail(
			err, RFL_EFORMAT, 0, "%s:%zu: column 'Name' is missing in the header",
			rfl_input_name(k->import->in), rfl_input_line_number(k->import->in));
	return table == LAUNCHES ? ask_metrics(k, f, n, err) : RFL_OK;
}

/* The row of units: "ms,us,,,,,,,,KB,B,MB,GB/s,,,,,,". */
static enum rfl_rc take_units(struct nvprof *k, const struct rfl_span *f, size_t n, bool *mine,
			      struct rfl_err *err)
{
	struct rfl_span time =
		rfl_import_field(f, n, k->table == TRACE ? k->column[DURATION] : k->column[TIME]);
	struct rfl_span size = rfl_import_field(f, n, k->column[SIZE]);

	k->want_units = false;
	if (k->table == LAUNCHES) {
		*mine = rfl_import_field(f, n, k->column[DEVICE]).len == 0;
		return RFL_OK;
	}
	k->per_second = rfl_import_per_second(time);
	k->size_unit = rfl_nvprof__size(size);
	*mine = k->per_second > 0.0;
	if (*mine)
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s:%zu: a row of units belongs behind the header, and '%.*s' is no unit "
			"of time (known: ns, us, ms, s)",
			rfl_input_name(k->import->in), rfl_input_line_number(k->import->in),
			RFL_SPAN_ARG(time));
}

/* --- rows ------------------------------------------------------------------------------------ */

/* "GeForce GTX 1080 Ti (0)": without the index. */
static enum rfl_rc tell_device(struct nvprof *k, struct rfl_span device, struct rfl_err *err)
{
	char name[256];
	size_t n = device.len;

	if (k->device_told)
		return RFL_OK;
	k->device_told = true; /* now or never: the builder takes it in front of all metrics */
	if (device.len == 0)
		return RFL_OK;
	while (n > 0 && device.at[n - 1] != '(')
		n--;
	if (n > 1 && device.at[device.len - 1] == ')')
		device.len = n - 1;
	rfl_span_copy(rfl_span_trim(device), name, sizeof(name));
	return rfl_capture_chip(k->b, NULL, name, err);
}

static enum rfl_rc open_range(struct nvprof *k, struct rfl_span kernel, struct rfl_span device,
			      int64_t launches, struct rfl_err *err)
{
	enum rfl_rc rc = close_range(k, err);

	if (rc == RFL_OK)
		rc = tell_device(k, device, err);
	rfl_span_copy(kernel, k->kernel, sizeof(k->kernel));
	rfl_span_copy(device, k->device, sizeof(k->device));
	if (rc == RFL_OK)
		rc = rfl_capture_begin(k->b, RFL_RANGE_KERNEL, k->kernel, NULL, NULL, err);
	if (rc != RFL_OK)
		return rc;
	k->open = true;
	rfl_capture_launches(k->b, launches);
	return RFL_OK;
}

static bool same_range(const struct nvprof *k, struct rfl_span kernel, struct rfl_span device)
{
	char text[sizeof(k->kernel)];

	return k->open && strcmp(rfl_span_copy(kernel, text, sizeof(text)), k->kernel) == 0 &&
	       strcmp(rfl_span_copy(device, text, sizeof(k->device)), k->device) == 0;
}

/* One metric over the invocations of a kernel. */
static enum rfl_rc give_metric(struct nvprof *k, const struct rfl_span *f, size_t n,
			       double launches, struct rfl_err *err)
{
	static const char rounded[] = "average x invocations; nvprof rounds the average of counts";
	struct rfl_span average = rfl_import_field(f, n, k->column[AVERAGE]);
	struct rfl_span least = rfl_import_field(f, n, k->column[LEAST]);
	struct rfl_span most = rfl_import_field(f, n, k->column[MOST]);
	struct rfl_reading r = { .validity = RFL_VALID };
	enum rfl_given given;
	enum rfl_nvprof_kind kind = rfl_nvprof__value(average, &r.value, &r.unit);
	bool same = least.len == most.len && memcmp(least.at, most.at, least.len) == 0;
	char name[256];
	enum rfl_rc rc;

	if (kind == RFL_NVPROF_NO_VALUE)
		return rfl_import_bad_row(k->import, titles[AVERAGE], err, "'%.*s' is no value",
					  RFL_SPAN_ARG(average));
	r.name = rfl_span_copy(rfl_import_field(f, n, k->column[METRIC]), name, sizeof(name));
	if (kind == RFL_NVPROF_COUNT)
		r.value *= launches;
	if (kind == RFL_NVPROF_COUNT && launches > 1 && !same && k->import->options->strict)
		return rfl_import_bad_row(k->import, titles[AVERAGE], err,
					  "'%s' is an average of %.0f invocations that nvprof has "
					  "rounded; leave out --strict, or count with "
					  "--print-gpu-trace",
					  name, launches);
	if (kind == RFL_NVPROF_COUNT && launches > 1 && !same) {
		r.validity = RFL_VALID_ESTIMATE;
		r.reason = rounded;
	}
	if (kind == RFL_NVPROF_NOT_THERE) {
		r.value = NAN;
		r.validity = RFL_VALID_UNAVAILABLE;
		r.reason = "nvprof has no value for it";
	}
	rc = rfl_import_give(k->b, &k->ids, &r, &given, err);
	if (rc == RFL_OK && given == RFL_GIVEN_DIFFERS)
		return rfl_import_bad_row(k->import, titles[METRIC], err,
					  "'%s' is there a second time for this kernel, with "
					  "another value",
					  name);
	return rc;
}

static enum rfl_rc metrics_row(struct nvprof *k, const struct rfl_span *f, size_t n,
			       struct rfl_err *err)
{
	struct rfl_span kernel = rfl_import_field(f, n, k->column[KERNEL]);
	struct rfl_span device = rfl_import_field(f, n, k->column[DEVICE]);
	struct rfl_span many = rfl_import_field(f, n, k->column[INVOCATIONS]);
	double launches;
	enum rfl_rc rc = RFL_OK;

	if (!rfl_span_number(many, &launches) || launches < 1 || launches > 9e15 ||
	    launches != floor(launches))
		return rfl_import_bad_row(k->import, titles[INVOCATIONS], err,
					  "'%.*s' is no number of launches", RFL_SPAN_ARG(many));
	if (!same_range(k, kernel, device))
		rc = open_range(k, kernel, device, (int64_t)launches, err);
	return rc == RFL_OK ? give_metric(k, f, n, launches, err) : rc;
}

static enum rfl_rc launch_row(struct nvprof *k, const struct rfl_span *f, size_t n,
			      struct rfl_err *err)
{
	struct rfl_span kernel = rfl_import_field(f, n, k->column[KERNEL]);
	size_t at = rfl_span_find(kernel, " [");
	enum rfl_rc rc;

	/* "name [307]": the correlation of the launch. */
	if (rfl_span_ends(kernel, "]") && at < kernel.len)
		kernel.len = at;
	rc = open_range(k, kernel, rfl_import_field(f, n, k->column[DEVICE]), 1, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const char *unit;
		double value = NAN;
		enum rfl_nvprof_kind kind;

		if (k->metric[i] < 0)
			continue;
		kind = rfl_nvprof__value(rfl_span_trim(f[i]), &value, &unit);
		if (kind == RFL_NVPROF_NO_VALUE)
			rc = rfl_import_bad_row(k->import, NULL, err, "'%.*s' is no value",
						RFL_SPAN_ARG(f[i]));
		else
			(void)rfl_capture_metric(
				k->b, k->metric[i], kind == RFL_NVPROF_NOT_THERE ? NAN : value,
				kind == RFL_NVPROF_NOT_THERE ? RFL_VALID_UNAVAILABLE : RFL_VALID,
				-1,
				kind == RFL_NVPROF_NOT_THERE ? "nvprof has no value for it" : NULL);
	}
	return rc == RFL_OK ? close_range(k, err) : rc;
}

static bool is_copy(struct rfl_span name)
{
	return rfl_span_starts(name, "[CUDA mem") || rfl_span_starts(name, "[Unified Memory") ||
	       rfl_span_starts(name, "[CUDA peer");
}

/* A row of the trace or the summary: a kernel, a copy, or a call that is passed over. */
static enum rfl_rc time_row(struct nvprof *k, const struct rfl_span *f, size_t n,
			    struct rfl_err *err)
{
	bool trace = k->table == TRACE;
	struct rfl_span name = rfl_import_field(f, n, k->name);
	struct rfl_span text =
		rfl_import_field(f, n, trace ? k->column[DURATION] : k->column[TIME]);
	struct rfl_span many = rfl_import_field(f, n, k->column[CALLS]),
			size = rfl_import_field(f, n, k->column[SIZE]);
	struct rfl_reading time = { .name = "time_s", .unit = "s" };
	double calls = 1.0, bytes = 0.0;
	char block[64], grid[64];
	size_t at = rfl_span_find(name, " [");
	enum rfl_rc rc;

	if (!trace && rfl_span_is(rfl_import_field(f, n, k->column[TYPE]), "API calls"))
		return RFL_OK;
	if (!rfl_span_number(text, &time.value) || time.value < 0)
		return rfl_import_bad_row(k->import, titles[trace ? DURATION : TIME], err,
					  "'%.*s' is no time", RFL_SPAN_ARG(text));
	time.value /= k->per_second;
	if (!trace && (!rfl_span_number(many, &calls) || calls < 1 || calls > 9e15))
		return rfl_import_bad_row(k->import, titles[CALLS], err,
					  "'%.*s' is no number of launches", RFL_SPAN_ARG(many));
	if (is_copy(name)) {
		if (trace && (!rfl_span_number(size, &bytes) || k->size_unit == 0.0))
			return rfl_import_bad_row(k->import, titles[SIZE], err, "'%.*s' is no size",
						  RFL_SPAN_ARG(size));
		k->copied_bytes += trace ? bytes * k->size_unit : NAN;
		k->copied_s += time.value;
		k->copies += (int64_t)calls;
		return RFL_OK;
	}
	if (trace && rfl_span_ends(name, "]") && at < name.len)
		name.len = at;
	rfl_span_copy(name, k->kernel, sizeof(k->kernel));
	rc = tell_device(k, rfl_import_field(f, n, k->column[DEVICE]), err);
	if (rc == RFL_OK)
		rc = rfl_capture_begin(k->b, RFL_RANGE_KERNEL, k->kernel,
				       rfl_import_shape(f, n, k->block, block),
				       rfl_import_shape(f, n, k->grid, grid), err);
	if (rc != RFL_OK)
		return rc;
	rfl_capture_launches(k->b, (int64_t)calls);
	rc = rfl_import_give(k->b, &k->ids, &time, NULL, err);
	return rc == RFL_OK ? rfl_capture_end(k->b, err) : rc;
}

static enum rfl_rc row(struct nvprof *k, const struct rfl_span *f, size_t n, struct rfl_err *err)
{
	if (k->want_units) {
		bool units = false;
		enum rfl_rc rc = take_units(k, f, n, &units, err);

		if (rc != RFL_OK || units)
			return rc;
	}
	if (n != k->width)
		return rfl_import_bad_row(
			k->import, NULL, err, "%zu fields where the header has %zu%s", n, k->width,
			rfl_input_torn(k->import->in) ? ": the file is cut off" : "");
	switch (k->table) {
	case METRICS:
		return metrics_row(k, f, n, err);
	case LAUNCHES:
		return launch_row(k, f, n, err);
	case TRACE:
	case SUMMARY:
		return time_row(k, f, n, err);
	case NO_TABLE:
	case OTHER:
		break;
	}
	return RFL_OK;
}

/* --- the file -------------------------------------------------------------------------------- */

/* "==7853== Profiling result:", warnings, and what the application prints. The line that ends in a
 * colon is the title of a table, and ends the one before. */
static enum rfl_rc pass_line(struct nvprof *k, bool *more, struct rfl_err *err)
{
	struct rfl_span line;
	enum rfl_rc rc = rfl_import_line(k->import, &line, more, err);

	if (rc != RFL_OK || !*more || !rfl_span_starts(line, "=="))
		return rc;
	line = rfl_span_trim(line);
	if (k->complaint[0] == '\0' &&
	    (rfl_span_has(line, "Error:") || rfl_span_has(line, "Warning:") ||
	     rfl_span_has(line, "No kernels were profiled")))
		rfl_span_copy(line, k->complaint, sizeof(k->complaint));
	if (rfl_span_ends(line, ":"))
		k->table = NO_TABLE;
	return RFL_OK;
}

static enum rfl_rc one_record(struct nvprof *k, bool *more, struct rfl_err *err)
{
	const struct rfl_span *f;
	size_t n;
	bool header = false;
	enum rfl_rc rc = rfl_import_record(k->import, ',', &f, &n, more, err);

	if (rc != RFL_OK || !*more)
		return rc;
	rc = begin_table(k, f, n, &header, err);
	if (rc == RFL_OK && !header && k->table != NO_TABLE && k->table != OTHER)
		rc = row(k, f, n, err);
	return rc;
}

/* Rows begin with a quote, or as their unit or number does; a line without a comma is no row. */
static bool is_row(const struct nvprof *k, struct rfl_span ahead)
{
	struct rfl_span line;

	if (!rfl_span_next_line(&ahead, &line))
		return true;
	if (line.len == 0 || rfl_span_starts(line, "=="))
		return false;
	return line.at[0] == '"' ||
	       (k->table != NO_TABLE && (memchr(line.at, ',', line.len) || k->want_units));
}

static enum rfl_rc read_records(struct nvprof *k, struct rfl_err *err)
{
	bool more = true;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && more) {
		struct rfl_span ahead;

		rc = rfl_input_ahead(k->import->in, &ahead, err);
		if (rc == RFL_OK)
			rc = is_row(k, ahead) ? one_record(k, &more, err)
					      : pass_line(k, &more, err);
	}
	return rc == RFL_OK ? close_range(k, err) : rc;
}

static bool is_text_form(struct rfl_span line)
{
	return (rfl_span_has(line, "Time(%)") && rfl_span_has(line, "Calls") &&
		!rfl_span_has(line, ",")) ||
	       (rfl_span_has(line, "Metric Description") && !rfl_span_has(line, "\"")) ||
	       (rfl_span_has(line, "Grid Size") && rfl_span_has(line, "Block Size") &&
		rfl_span_has(line, "SrcMemType") && !rfl_span_has(line, ","));
}

static enum rfl_rc nothing(const struct nvprof *k, bool text_form, struct rfl_err *err)
{
	const char *path = rfl_input_name(k->import->in);

	if (text_form)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: nvprof wrote its table for people here: run it with --csv "
				"(and --log-file FILE)",
				path);
	if (k->events)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: events, but no metrics: run nvprof with --metrics "
				"flop_count_sp,dram_read_transactions,dram_write_transactions "
				"--csv",
				path);
	if (k->complaint[0] != '\0')
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: no table: nvprof says \"%s\"", path,
				k->complaint);
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: no table of nvprof: write it with 'nvprof --csv --log-file FILE "
			"--metrics ...' or 'nvprof --csv --print-gpu-trace'",
			path);
}

static void tell(struct nvprof *k)
{
	if (k->copies > 0 && !isnan(k->copied_bytes))
		rfl_capture_note(k->b,
				 "copies and fills of memory are in no total: %.6g bytes in %.6g "
				 "s, %lld operations",
				 k->copied_bytes, k->copied_s, (long long)k->copies);
	else if (k->copies > 0)
		rfl_capture_note(k->b,
				 "copies and fills of memory are in no total: %.6g s, %lld "
				 "operations",
				 k->copied_s, (long long)k->copies);
	if (k->complaint[0] != '\0')
		rfl_capture_note(k->b, "nvprof says: %s", k->complaint);
}

static enum rfl_rc read_nvprof(struct rfl_import *import, struct rfl_captures *to,
			       struct rfl_err *err)
{
	struct nvprof *k = calloc(1, sizeof(*k));
	struct rfl_span head = nowhere, line;
	bool text_form = false;
	enum rfl_rc rc;

	if (!k)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory",
				rfl_input_name(import->in));
	k->import = import;
	rc = rfl_import_builder(import, "nvprof", NULL, false, &k->b, err);
	if (rc == RFL_OK)
		rc = rfl_input_peek(import->in, &head, err);
	while (rc == RFL_OK && rfl_span_next_line(&head, &line))
		text_form = text_form || is_text_form(line);
	if (rc == RFL_OK)
		rc = read_records(k, err);
	if (rc == RFL_OK && !k->any)
		rc = nothing(k, text_form, err);
	if (rc == RFL_OK) {
		tell(k);
		rc = rfl_import_finish(import, k->b, to, err);
	}
	rfl_metric_ids_fini(&k->ids);
	rfl_capture_builder_free(k->b);
	free(k->metric);
	free(k);
	return rc;
}

static int detect(struct rfl_span head)
{
	static const struct {
		const char *text;
		int sure;
	} signs[] = {
		{ "== NVPROF is profiling process", 95 },
		{ "\"Device\",\"Kernel\",\"Invocations\"", 95 },
		{ "\"Start\",\"Duration\",\"Grid X\"", 90 },
		{ "\"Time(%)\",\"Time\",\"Calls\"", 90 },
		{ "\"Device\",\"Context\",\"Stream\",\"Kernel\"", 85 },
		{ " GPU activities:  ", 60 },
	};
	int best = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(signs); i++)
		if (signs[i].sure > best && rfl_span_has(head, signs[i].text))
			best = signs[i].sure;
	return best;
}

const struct rfl_importer rfl_importer_nvprof = {
	.name = "nvprof",
	.summary = "nvprof --csv: metrics, the trace of the GPU, the summary of times",
	.detect = detect,
	.read = read_nvprof,
};
