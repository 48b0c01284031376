/*
 * ncu.c - files of Nsight Compute's command line with --csv: finds the tables between what
 * ncu and the application print, and says what there is instead where there is no table.
 */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "profile/import/impl.h"
#include "profile/import/ncu_impl.h"
#include "profile/import/span.h"

enum rfl_rc rfl_ncu__no_memory(const struct rfl_ncu *n, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", rfl_input_name(n->import->in));
}

/* --- detection ------------------------------------------------------------------------------- */

static bool is_source_page(struct rfl_span line)
{
	return rfl_span_has(line, "\"Address\"") && rfl_span_has(line, "\"Source\"") &&
	       rfl_span_has(line, "Warp Stall");
}

static bool is_session_page(struct rfl_span line)
{
	return rfl_span_has(line, "Launch Settings") || rfl_span_has(line, "Device Attribute");
}

/* The tables for people have the same titles between blanks. */
static bool is_text_report(struct rfl_span line)
{
	return rfl_span_starts(rfl_span_trim(line), "Metric Name ") &&
	       rfl_span_has(line, " Metric Unit ") && rfl_span_ends(line, " Metric Value");
}

static bool is_message(struct rfl_span line)
{
	return rfl_span_starts(line, "==PROF==") || rfl_span_starts(line, "==ERROR==") ||
	       rfl_span_starts(line, "==WARNING==");
}

static int detect(struct rfl_span head)
{
	struct rfl_span line;
	size_t skip;
	int sure = 0;

	while (rfl_span_next_line(&head, &line)) {
		int here = 0;

		if (rfl_ncu__is_header(line, &skip))
			return 95;
		if (is_message(line))
			here = 60;
		else if (is_source_page(line) || is_text_report(line))
			here = 50;
		else if (is_session_page(line))
			here = 30;
		sure = here > sure ? here : sure;
	}
	return sure;
}

/* --- lines that are no table ----------------------------------------------------------------- */

static void keep_first(struct rfl_buf *b, struct rfl_span line)
{
	if (b->len > 0)
		return;
	rfl_buf_append(b, line.at, line.len < 400 ? line.len : 400);
	if (b->data)
		rfl_text_one_line(b->data);
}

static void look_at_line(struct rfl_ncu *n, struct rfl_span line)
{
	if (rfl_span_starts(line, "==ERROR==")) {
		n->errors++;
		keep_first(&n->first_error, line);
	} else if (rfl_span_starts(line, "==WARNING==")) {
		keep_first(&n->first_warning, line);
	} else if (!rfl_span_starts(line, "==PROF==")) {
		n->noise += rfl_span_trim(line).len > 0;
		n->text_report = n->text_report || is_text_report(line);
	}
	if (!n->other_page && !n->builder && (is_source_page(line) || is_session_page(line))) {
		n->other_page = is_source_page(line) ? "source" : "session";
		n->other_page_line = rfl_input_line_number(n->import->in);
	}
}

/* What to do about what ncu says. */
static const char *cure_of(const char *message)
{
	static const struct {
		const char *word, *cure;
	} cures[] = {
		{ "ERR_NVGPUCTRPERM",
		  "counters need permission: run ncu as root, or let the administrator set "
		  "NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia ('roofline counters "
		  "check' tells more)" },
		{ "No kernels were profiled",
		  "no launch was matched: look at --kernel-name, --launch-skip, --nvtx-include and "
		  "--profile-from-start, and add --target-processes all where a script starts the "
		  "program" },
		{ "returned an error code", "the application failed: run it without ncu first; "
					    "what was counted before is not "
					    "in this file" },
		{ "driver resource was unavailable",
		  "another tool holds the counters: stop dcgm-exporter, nv-hostengine or the other "
		  "profiler" },
		{ "out of memory", "replaying a kernel needs memory for a copy: try --replay-mode "
				   "application, or fewer metrics in each pass" },
		{ "Failed to profile", "try fewer metrics, or --replay-mode application" },
		{ "Failed to find metric",
		  "take the names that 'roofline counters list --chip CHIP --ncu' prints" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cures); i++)
		if (strstr(message, cures[i].word))
			return cures[i].cure;
	return "run 'ncu --csv --page raw --print-units base --log-file out.csv ...' again";
}

/* No launch was counted. Where ncu says why, that is what the capture says of everything. */
static enum rfl_rc no_launch(struct rfl_ncu *n, struct rfl_captures *to, struct rfl_err *err)
{
	const char *name = rfl_input_name(n->import->in);
	const struct rfl_buf *said = n->first_error.len > 0 ? &n->first_error : &n->first_warning;

	if (said->len > 0 && !n->text_report) /* else kernels were profiled */
		return rfl_import_refused(n->import, "ncu", to, err, "ncu says '%s': %s",
					  rfl_buf_str(said), cure_of(rfl_buf_str(said)));
	if (n->builder)
		return rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: the table of ncu on line %zu has no rows: no launch was counted", name,
			n->table.line);
	if (n->other_page)
		return rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s:%zu: this is ncu's %s page, which has no counters of kernels; take "
			"the raw page: ncu -i REPORT --csv --page raw --print-units base",
			name, n->other_page_line, n->other_page);
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: %s; run it with --csv, as in 'ncu --csv --page raw --print-units "
			"base --log-file out.csv ...'",
			name,
			n->text_report ? "ncu wrote its report for people here"
				       : "holds no table of ncu");
}

/* --- reading --------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether a row of the open table begins here: by its first field, a number; or none, in a row of
 * units. What an application prints seldom does. */
static bool is_row(const struct rfl_ncu_table *t, struct rfl_span ahead)
{
	size_t i = 0;

	if (t->ncolumns == 0 || ahead.len == 0)
		return false;
	if (t->quoted)
		return ahead.len > 1 && ahead.at[0] == '"' &&
		       (is_digit(ahead.at[1]) || (t->units_due && ahead.at[1] == '"'));
	while (i < ahead.len && (is_digit(ahead.at[i]) || ahead.at[i] == '.'))
		i++;
	return i < ahead.len && ahead.at[i] == t->delimiter && (i > 0 || t->units_due);
}

static enum rfl_rc begin_table(struct rfl_ncu *n, struct rfl_span line, struct rfl_err *err)
{
	enum rfl_rc rc = n->builder ? rfl_ncu__close(n, err) : RFL_OK;

	if (rc == RFL_OK && !n->builder)
		rc = rfl_import_builder(n->import, "ncu", NULL, false, &n->builder, err);
	if (rc == RFL_OK)
		rc = rfl_ncu__header(n, line, err);
	if (rc != RFL_OK)
		return rc;
	rfl_ncu__forget_unnumbered(n);
	rfl_ncu__look_ahead(n);
	return RFL_OK;
}

static enum rfl_rc read_row(struct rfl_ncu *n, bool *more, struct rfl_err *err)
{
	const struct rfl_span *fields;
	size_t nfields;
	enum rfl_rc rc;

	rc = rfl_import_record(n->import, n->table.delimiter, &fields, &nfields, more, err);
	return rc == RFL_OK && *more ? rfl_ncu__row(n, fields, nfields, err) : rc;
}

/* Any line but a row: a header, a message, or what the application printed. */
static enum rfl_rc read_other(struct rfl_ncu *n, bool *more, struct rfl_err *err)
{
	struct rfl_span line;
	size_t skip = 0;
	enum rfl_rc rc = rfl_import_line(n->import, &line, more, err);

	if (rc != RFL_OK || !*more)
		return rc;
	if (rfl_ncu__is_header(line, &skip))
		return begin_table(n, rfl_span_from(line, skip), err);
	look_at_line(n, line);
	return RFL_OK;
}

static enum rfl_rc read_all(struct rfl_ncu *n, struct rfl_err *err)
{
	struct rfl_span ahead;
	enum rfl_rc rc = RFL_OK;
	bool more = true;

	while (rc == RFL_OK && more) {
		rc = rfl_input_ahead(n->import->in, &ahead, err);
		if (rc == RFL_OK && is_row(&n->table, ahead))
			rc = read_row(n, &more, err);
		else if (rc == RFL_OK)
			rc = read_other(n, &more, err);
	}
	return rc == RFL_OK && n->builder ? rfl_ncu__close(n, err) : rc;
}

/* --- what a reader must know ----------------------------------------------------------------- */

static void note_doubts(struct rfl_ncu *n)
{
	const struct rfl_ncu_convention *c = &n->convention;
	char percent[RFL_NUM_MAX], count[RFL_NUM_MAX];

	if (n->rounded > 0)
		rfl_capture_note(n->builder,
				 "%s figures were rounded by their unit, by up to %s %%: ncu "
				 "--print-units base prints them whole",
				 rfl_num_grouped(n->rounded, count),
				 rfl_num_people(100 * n->worst, 2, percent));
	if (n->no_units)
		rfl_capture_note(n->builder,
				 "the table has no row of units: they are taken to be base units");
	if (c->assumed) {
		rfl_import_warn(
			n->import,
			"'%s' on line %zu can be read in two ways, and no cell shows which: a "
			"point is taken to be the decimal sign",
			c->witness, c->witness_line);
		rfl_capture_note(
			n->builder,
			"no cell shows whether point or comma is the decimal sign ('%s' on "
			"line %zu): a point is taken to be",
			c->witness, c->witness_line);
	}
	if (n->mixed_cc)
		rfl_capture_note(
			n->builder,
			"kernels of devices of several compute capabilities: the formulas are "
			"those of the first, %s",
			n->cc);
}

static void note_what_is_missing(struct rfl_ncu *n)
{
	if (n->errors > 0) {
		rfl_import_warn(n->import, "the capture is not complete, ncu says '%s': %s",
				rfl_buf_str(&n->first_error),
				cure_of(rfl_buf_str(&n->first_error)));
		rfl_capture_note(n->builder, "not complete: ncu says '%s' (%zu line%s of errors)",
				 rfl_buf_str(&n->first_error), n->errors,
				 n->errors == 1 ? "" : "s");
	}
	if (n->legacy > 0)
		rfl_capture_note(
			n->builder,
			"'%s' is a name of nvprof, which no chip since Turing has: ncu prints "
			"n/a. Count what 'roofline counters list --chip %s --ncu' prints",
			rfl_buf_str(&n->legacy_name), n->chip ? n->chip->name : "CHIP");
}

static void note_all(struct rfl_ncu *n)
{
	rfl_capture_note(
		n->builder,
		"ncu flushes the caches before each kernel and holds the base clock, unless "
		"it is told otherwise (--cache-control, --clock-control): bytes are those of "
		"cold caches, times those of the base clock");
	if (n->table.layout == RFL_NCU_SUMMARY)
		rfl_capture_note(n->builder, "a summary: averages x invocations");
	if (n->nprocesses > 1 && n->nprocesses > n->tables)
		rfl_capture_note(n->builder, "kernels of several processes are added up");
	if (n->mixed_device)
		rfl_capture_note(n->builder, "kernels of several devices are added up, and their "
					     "times, although they may have run side by side");
	if (n->tables > 1)
		rfl_capture_note(n->builder, "%zu tables in one file are added up", n->tables);
	note_doubts(n);
	note_what_is_missing(n);
	if (n->noise > 0)
		rfl_capture_note(n->builder, "%zu line%s of other output %s passed over", n->noise,
				 n->noise == 1 ? "" : "s", n->noise == 1 ? "was" : "were");
}

/* --- a file ---------------------------------------------------------------------------------- */

static void fini(struct rfl_ncu *n)
{
	rfl_ncu__table_fini(&n->table);
	rfl_ncu__processes_fini(n);
	free(n->metrics);
	free(n->slots);
	rfl_buf_fini(&n->identity);
	rfl_buf_fini(&n->kernel);
	rfl_buf_fini(&n->block);
	rfl_buf_fini(&n->grid);
	rfl_buf_fini(&n->first_error);
	rfl_buf_fini(&n->first_warning);
	rfl_buf_fini(&n->legacy_name);
	rfl_buf_fini(&n->units_told);
	rfl_capture_builder_free(n->builder); /* before the arena: it has reasons of it */
	rfl_arena_free(n->arena);
}

static enum rfl_rc init(struct rfl_ncu *n, struct rfl_import *import, struct rfl_err *err)
{
	n->import = import;
	n->last = SIZE_MAX;
	n->table.display_name = -1;
	n->arena = rfl_arena_new(0);
	rfl_buf_init(&n->identity, 0);
	rfl_buf_init(&n->kernel, 0);
	rfl_buf_init(&n->block, 0);
	rfl_buf_init(&n->grid, 0);
	rfl_buf_init(&n->first_error, 0);
	rfl_buf_init(&n->first_warning, 0);
	rfl_buf_init(&n->legacy_name, 0);
	rfl_buf_init(&n->units_told, 0);
	return n->arena ? RFL_OK : rfl_ncu__no_memory(n, err);
}

static enum rfl_rc finish(struct rfl_ncu *n, struct rfl_captures *to, struct rfl_err *err)
{
	note_all(n);
	return rfl_import_finish(n->import, n->builder, to, err);
}

static enum rfl_rc read_file(struct rfl_import *import, struct rfl_captures *to,
			     struct rfl_err *err)
{
	struct rfl_ncu n = { 0 };
	enum rfl_rc rc = init(&n, import, err);

	if (rc == RFL_OK)
		rc = read_all(&n, err);
	if (rc == RFL_OK && (!n.builder || (n.launches == 0 && import->left_out == 0)))
		rc = no_launch(&n, to, err);
	else if (rc == RFL_OK)
		rc = finish(&n, to, err);
	fini(&n);
	return rc;
}

const struct rfl_importer rfl_importer_ncu = {
	.name = "ncu",
	.summary =
		"Nsight Compute: ncu --csv, any page with metrics, with or without --print-summary",
	.detect = detect,
	.read = read_file,
};
