/*
 * nvprof.c - the CSV of nvprof: metrics per kernel, metrics per launch, the trace of the GPU
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
#include "profile/import/impl.h"
#include "profile/import/nvprof.h"

static const struct rfl_span nowhere = { .at = "", .len = 0 };

/* --- headers --------------------------------------------------------------------------------- */

static enum rfl_nvprof_table table_of(const struct rfl_nvprof *k, const int c[NVPROF_COLUMNS],
				      const struct rfl_span *f, size_t n)
{
	if (c[NVPROF_DEVICE] >= 0 && c[NVPROF_KERNEL] >= 0) {
		if (c[NVPROF_INVOCATIONS] < 0)
			return NVPROF_LAUNCHES;
		return c[NVPROF_METRIC] >= 0 && c[NVPROF_AVERAGE] >= 0 ? NVPROF_METRICS
								       : NVPROF_EVENTS;
	}
	if (rfl_import_column(f, n, "Start", NULL) >= 0 && c[NVPROF_DURATION] >= 0)
		return rfl_import_column(f, n, "Grid X", NULL) >= 0 ? NVPROF_TRACE
								    : NVPROF_CALLS_OF_API;
	if (c[NVPROF_TIME] >= 0 && c[NVPROF_CALLS] >= 0)
		return k->aside ? NVPROF_CALLS_OF_API : NVPROF_SUMMARY;
	return NVPROF_NO_TABLE;
}

/* "Time(%)" is a column of its own, so that titles are compared as they are. */
static int exact(const struct rfl_span *f, size_t n, const char *title)
{
	for (size_t i = 0; i < n; i++)
		if (rfl_span_is(rfl_span_trim(f[i]), title))
			return (int)i;
	return -1;
}

static enum rfl_rc ask_metrics(struct rfl_nvprof *k, const struct rfl_span *f, size_t n,
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

static enum rfl_rc begin_table(struct rfl_nvprof *k, const struct rfl_span *f, size_t n, bool *mine,
			       struct rfl_err *err)
{
	static const char *const sides[] = { "X", "Y", "Z" };
	int c[NVPROF_COLUMNS];
	enum rfl_nvprof_table table;
	enum rfl_rc rc;

	for (size_t i = 0; i < NVPROF_COLUMNS; i++)
		c[i] = exact(f, n, rfl_nvprof__titles[i]);
	table = table_of(k, c, f, n);
	*mine = table != NVPROF_NO_TABLE;
	if (!*mine)
		return RFL_OK;
	rc = rfl_nvprof__close(k, err);
	if (rc != RFL_OK)
		return rc;
	k->table = table;
	memcpy(k->column, c, sizeof(c));
	k->name = exact(f, n, "Name");
	k->width = n;
	k->want_units =
		table == NVPROF_TRACE || table == NVPROF_SUMMARY || table == NVPROF_LAUNCHES;
	k->per_second = k->size_unit = 0.0;
	for (size_t i = 0; i < RFL_ARRAY_LEN(sides); i++) {
		char title[16];

		(void)snprintf(title, sizeof(title), "Grid %s", sides[i]);
		k->grid[i] = exact(f, n, title);
		(void)snprintf(title, sizeof(title), "Block %s", sides[i]);
		k->block[i] = exact(f, n, title);
	}
	k->any = k->any || (table != NVPROF_EVENTS && table != NVPROF_CALLS_OF_API);
	k->events = k->events || table == NVPROF_EVENTS;
	k->calls = k->calls || table == NVPROF_CALLS_OF_API;
	if ((table == NVPROF_TRACE || table == NVPROF_SUMMARY) && k->name < 0)
		return rfl_fail(
			err, RFL_EFORMAT, 0, "%s:%zu: column 'Name' is missing in the header",
			rfl_input_name(k->import->in), rfl_input_line_number(k->import->in));
	return table == NVPROF_LAUNCHES ? ask_metrics(k, f, n, err) : RFL_OK;
}

/* The row of units: "ms,us,,,,,,,,KB,B,MB,GB/s,,,,,,". */
static enum rfl_rc take_units(struct rfl_nvprof *k, const struct rfl_span *f, size_t n, bool *mine,
			      struct rfl_err *err)
{
	struct rfl_span time = rfl_import_field(
		f, n,
		k->table == NVPROF_TRACE ? k->column[NVPROF_DURATION] : k->column[NVPROF_TIME]);
	struct rfl_span size = rfl_import_field(f, n, k->column[NVPROF_SIZE]);
	struct rfl_reading with_unit;

	k->want_units = false;
	if (k->table == NVPROF_LAUNCHES) {
		*mine = rfl_import_field(f, n, k->column[NVPROF_DEVICE]).len == 0;
		return RFL_OK;
	}
	k->per_second = rfl_import_per_second(time);
	k->size_unit = rfl_nvprof__size(size);
	*mine = k->per_second > 0.0;
	if (*mine || rfl_nvprof__time(k, time, &with_unit))
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s:%zu: a row of units must follow the header, and '%.*s' is not a unit "
			"of time (known: ns, us, ms, s)",
			rfl_input_name(k->import->in), rfl_input_line_number(k->import->in),
			RFL_SPAN_ARG(time));
}

/* --- the file -------------------------------------------------------------------------------- */

/* Tables behind these titles are no kernels, or the same kernels a second time, by NVTX range. */
static bool is_aside(struct rfl_span title)
{
	static const char *const titles[] = { "API calls:", "NVTX result:", "OpenACC", "OpenMP" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(titles); i++)
		if (rfl_span_has(title, titles[i]))
			return true;
	return false;
}

/* "==7853== Profiling result:", warnings, and what the application prints. The line that ends in a
 * colon is the title of a table, and ends the one before. */
static enum rfl_rc pass_line(struct rfl_nvprof *k, bool *more, struct rfl_err *err)
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
	if (!rfl_span_ends(line, ":"))
		return RFL_OK;
	k->table = NVPROF_NO_TABLE;
	k->aside = is_aside(line);
	return RFL_OK;
}

static enum rfl_rc one_record(struct rfl_nvprof *k, bool *more, struct rfl_err *err)
{
	const struct rfl_span *f;
	size_t n;
	bool header = false, units = false;
	enum rfl_rc rc = rfl_import_record(k->import, ',', &f, &n, more, err);

	if (rc != RFL_OK || !*more)
		return rc;
	rc = begin_table(k, f, n, &header, err);
	if (rc != RFL_OK || header || k->table == NVPROF_NO_TABLE || k->table == NVPROF_EVENTS ||
	    k->table == NVPROF_CALLS_OF_API)
		return rc;
	if (k->want_units) {
		rc = take_units(k, f, n, &units, err);
		if (rc != RFL_OK || units)
			return rc;
	}
	return rfl_nvprof__row(k, f, n, err);
}

/* Rows begin with a quote, rows of times with a number, the row of units with anything. What the
 * application prints is none of these. */
static bool is_row(const struct rfl_nvprof *k, struct rfl_span ahead)
{
	struct rfl_span line;

	if (!rfl_span_next_line(&ahead, &line))
		return true;
	if (line.len == 0 || rfl_span_starts(line, "=="))
		return false;
	if (line.at[0] == '"' || rfl_span_starts(line, "Time(%),") ||
	    (k->want_units && k->table != NVPROF_NO_TABLE))
		return true;
	return (k->table == NVPROF_TRACE || k->table == NVPROF_SUMMARY) &&
	       rfl_span_number_len(line) > 0 && memchr(line.at, ',', line.len);
}

static enum rfl_rc read_records(struct rfl_nvprof *k, struct rfl_err *err)
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
	return rc == RFL_OK ? rfl_nvprof__close(k, err) : rc;
}

static bool is_text_form(struct rfl_span line)
{
	return (rfl_span_has(line, "Time(%)") && rfl_span_has(line, "Calls") &&
		!rfl_span_has(line, ",")) ||
	       (rfl_span_has(line, "Metric Description") && !rfl_span_has(line, "\"")) ||
	       (rfl_span_has(line, "Grid Size") && rfl_span_has(line, "Block Size") &&
		rfl_span_has(line, "SrcMemType") && !rfl_span_has(line, ","));
}

/* No kernel. Where nvprof says why, that is what the capture says of everything. */
static enum rfl_rc nothing(const struct rfl_nvprof *k, bool text_form, struct rfl_captures *to,
			   struct rfl_err *err)
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
	if (k->calls)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s: calls of the API, but no kernels: run nvprof with "
				"--print-gpu-trace --csv",
				path);
	if (k->complaint[0] != '\0')
		return rfl_import_refused(
			k->import, "nvprof", to, err, "nvprof says '%s': %s", k->complaint,
			strstr(k->complaint, "permission")
				? "counters need permission: run nvprof as root, or let the "
				  "administrator set NVreg_RestrictProfilingToAdminUsers=0 for the "
				  "module nvidia"
				: "mend that, then run nvprof --csv again");
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: no table of nvprof: write it with 'nvprof --csv --log-file FILE "
			"--metrics ...' or 'nvprof --csv --print-gpu-trace'",
			path);
}

static enum rfl_rc read_nvprof(struct rfl_import *import, struct rfl_captures *to,
			       struct rfl_err *err)
{
	struct rfl_nvprof *k = calloc(1, sizeof(*k));
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
		rc = nothing(k, text_form, to, err);
	else if (rc == RFL_OK) {
		rfl_import_note_copies(k->b, k->copied_bytes, k->copied_s, k->copies);
		if (k->complaint[0] != '\0')
			rfl_capture_note(k->b, "nvprof says: %s", k->complaint);
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
		{ "== NVPROF is profiling ", 95 },
		{ "\"Device\",\"Kernel\",\"Invocations\"", 95 },
		{ "\"Start\",\"Duration\",\"Grid X\"", 90 },
		{ "\"Time(%)\",\"Time\",\"Calls\"", 90 },
		{ "\"Device\",\"Context\",\"Stream\",\"Kernel\"", 85 },
		{ "Time(%),Time,Calls,", 85 }, /* of 2013 */
		{ " GPU activities:  ", 60 },
		{ "======== Error: ", 60 },
		{ "======== Warning: ", 60 },
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
