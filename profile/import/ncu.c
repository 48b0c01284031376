/*
 * ncu.c - imports the CSV of Nsight Compute's command line: finds the tables between ncu's messages
 * and the application's output, reads their rows, and explains why there is no table.
 */
#include <string.h>

#include "base/num.h"
#include "profile/import/ncu.h"

/* What to do about a message that explains why nothing was counted; NULL: it does not. */
static const char *remedy_of(const char *message)
{
	static const struct {
		const char *word, *remedy;
	} remedies[] = {
		{ "ERR_NVGPUCTRPERM",
		  "run ncu as root, or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia "
		  "module (see 'roofline counters check')" },
		{ "No kernels were profiled",
		  "check --kernel-name, --launch-skip, --nvtx-include and --profile-from-start; "
		  "add "
		  "--target-processes all if a script starts the program" },
		{ "returned an error code", "the application failed; run it without ncu first" },
		{ "driver resource was unavailable",
		  "stop other users of the counters, such as dcgm-exporter or nv-hostengine" },
		{ "out of memory", "try --replay-mode application, or fewer metrics" },
		{ "Failed to profile", "try --replay-mode application, or fewer metrics" },
		{ "Failed to find metric",
		  "use the names that 'roofline counters list --chip CHIP --ncu' prints" },
		{ "==ERROR==",
		  "run 'ncu --csv --page raw --print-units base --log-file out.csv ...' again" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(remedies); i++)
		if (strstr(message, remedies[i].word))
			return remedies[i].remedy;
	return NULL;
}

/* --- headers --------------------------------------------------------------------------------- */

static const char *const titles[] = {
#define F(id, title) title,
	RFL_NCU_COLUMN_LIST(F)
#undef F
};

static bool is_delimiter(char c)
{
	return c == ',' || c == ';' || c == '\t';
}

/* Whether a line is a table header. @param skip  set to the number of bytes before the header,
 * which are output without a newline @return the delimiter; 0: not a header */
static char header_of(struct rfl_span line, size_t *skip)
{
	/* without quotes if another tool saved the file */
	static const char *const beginnings[] = { "\"ID\"", "\"Process ID\"", "ID", "Process ID" };

	*skip = 0;
	/* A summary per device has no kernels. */
	if (!rfl_span_has(line, "Kernel Name") &&
	    !(rfl_span_has(line, "Invocations") && rfl_span_has(line, "Metric Name")))
		return 0;
	/* A saved data frame has its index in the first column, with an empty title. */
	for (size_t from = 0; from < 2 && line.len > 1; from++) {
		struct rfl_span s = rfl_span_from(line, from);

		if (from == 1 && !is_delimiter(line.at[0]))
			break;
		for (size_t i = 0; i < RFL_ARRAY_LEN(beginnings); i++) {
			size_t len = strlen(beginnings[i]);

			if (rfl_span_starts(s, beginnings[i]) && s.len > len &&
			    is_delimiter(s.at[len]))
				return s.at[len];
		}
	}
	*skip = rfl_span_find(line, "\"ID\",\"Process ID\",");
	if (*skip == line.len)
		*skip = rfl_span_find(line, "\"Process ID\",\"Process Name\",");
	return *skip < line.len ? ',' : 0;
}

/* Read the current record as a header. */
static enum rfl_rc read_header(struct rfl_ncu *n)
{
	struct rfl_ncu_table *t = &n->table;
	const int *c = t->column;
	const char *missing = NULL;

	t->ncolumns = n->i.in->width = n->i.n;
	t->left_out = n->i.left_out;
	t->line = n->i.in->line;
	for (int k = 0; k < RFL_NCU_COLUMNS; k++) {
		t->column[k] = -1;
		for (size_t i = 0; i < t->ncolumns; i++) {
			if (!rfl_span_is(rfl_span_trim(n->i.f[i]), titles[k]))
				continue;
			if (t->column[k] >= 0)
				return rfl_import_refuse(&n->i, n->i.in->line,
							 "the header names column '%s' twice",
							 titles[k]);
			t->column[k] = (int)i;
		}
		if (k <= RFL_NCU_INVOCATIONS && t->column[k] + 1 > (int)t->identity_end)
			t->identity_end = (size_t)(t->column[k] + 1);
	}
	t->layout = c[RFL_NCU_METRIC_NAME] < 0     ? RFL_NCU_WIDE
		    : c[RFL_NCU_METRIC_VALUE] >= 0 ? RFL_NCU_LONG
						   : RFL_NCU_SUMMARY;
	t->units_due = t->layout == RFL_NCU_WIDE;
	if (t->layout != RFL_NCU_SUMMARY)
		missing = c[RFL_NCU_ID] < 0 ? "ID" : NULL;
	else
		missing = c[RFL_NCU_AVERAGE] < 0       ? "Metric Value"
			  : c[RFL_NCU_INVOCATIONS] < 0 ? "Invocations"
						       : NULL;
	t->least = (size_t)(c[RFL_NCU_METRIC_NAME] + 1);
	if (missing)
		return rfl_import_refuse(&n->i, n->i.in->line,
					 "the header of this ncu table has no column '%s'",
					 missing);
	/* A raw page does not group digits. */
	if (n->convention.decimal == 0)
		n->convention.no_group = t->layout == RFL_NCU_WIDE;
	if (t->layout != RFL_NCU_WIDE)
		return RFL_OK;
	/* The titles of a wide page are metrics; they are requested once the chip is known. */
	t->metrics = rfl_arena_array(n->i.arena, t->ncolumns, sizeof(*t->metrics));
	t->used = rfl_arena_array(n->i.arena, t->ncolumns, sizeof(*t->used));
	for (size_t i = 0; i < t->ncolumns; i++) {
		struct rfl_ncu_metric *m = &t->metrics[i];

		*m = (struct rfl_ncu_metric){ .unit_text = rfl_span_of(""), .id = -1 };
		m->name = rfl_ncu__keep(n, rfl_span_trim(n->i.f[i]));
		if (rfl_span_is(m->name, "device__attribute_display_name"))
			t->display_name = (int)i;
	}
	return RFL_OK;
}

/* Determine the decimal sign from the first rows of a table; otherwise, the cells determine it when
 * they are read. */
static void look_ahead(struct rfl_ncu *n)
{
	static const enum rfl_ncu_column numbers[] = { RFL_NCU_METRIC_VALUE, RFL_NCU_MINIMUM,
						       RFL_NCU_MAXIMUM, RFL_NCU_AVERAGE };
	struct rfl_span text;
	bool more = true;

	if (rfl_input_peek(n->i.in, RFL_INPUT_HEAD, &text, NULL) != RFL_OK)
		return;
	RFL_AUTOPTR(input) in = rfl_input_open_text(text.at, text.len, "");
	while (more && n->convention.decimal == 0) {
		const enum rfl_rc rc =
			rfl_input_record(in, n->i.delimiter, &n->i.f, &n->i.n, &more, NULL);

		if (rc != RFL_OK)
			more = true;
		if (rc != RFL_OK || !more || in->torn || n->i.n < n->table.least)
			continue;
		struct rfl_ncu_unit unit =
			rfl_ncu_unit_parse(rfl_ncu__field(n, RFL_NCU_METRIC_UNIT));
		bool whole = rfl_ncu__is_whole(rfl_ncu__field(n, RFL_NCU_METRIC_NAME), &unit);
		for (size_t i = 0; i < RFL_ARRAY_LEN(numbers); i++) {
			(void)rfl_ncu_number_read(&n->convention, rfl_ncu__field(n, numbers[i]),
						  whole && numbers[i] != RFL_NCU_AVERAGE, 0,
						  n->table.line + in->line);
			n->convention.assumed = false; /* no value has been used yet */
		}
	}
}

static enum rfl_rc begin_table(struct rfl_ncu *n, struct rfl_span line, char delimiter)
{
	RFL_AUTOPTR(input) in = rfl_input_open_text(line.at, line.len, n->i.in->name);
	bool more = true;

	n->open = n->bad = false;
	n->table = (struct rfl_ncu_table){ .display_name = -1 };
	n->table.quoted = line.at[0] == '"';
	n->i.delimiter = delimiter;
	n->tables++;
	enum rfl_rc rc = rfl_input_record(in, delimiter, &n->i.f, &n->i.n, &more, n->i.err);
	if (rc == RFL_OK)
		rc = read_header(n);
	if (rc == RFL_OK && n->table.layout != RFL_NCU_WIDE && n->convention.decimal == 0)
		look_ahead(n);
	return rc;
}

/* --- rows of long tables and summaries ------------------------------------------------------- */

static bool is_metric(const struct rfl_ncu_metric *m, struct rfl_span section, struct rfl_span name,
		      struct rfl_span unit)
{
	return rfl_span_same(m->name, name) && rfl_span_same(m->unit_text, unit) &&
	       rfl_span_same(m->section, section);
}

/* Find the metric of a row: usually the metric that followed the previous one last time; else by
 * hash; a new metric is added. */
static struct rfl_ncu_metric *find_metric(struct rfl_ncu *n)
{
	struct rfl_span section = rfl_ncu__field(n, RFL_NCU_SECTION);
	struct rfl_span name = rfl_ncu__field(n, RFL_NCU_METRIC_NAME);
	struct rfl_span unit = rfl_ncu__field(n, RFL_NCU_METRIC_UNIT);
	size_t i = n->last < n->nmetrics ? n->metrics[n->last].next : SIZE_MAX;

	if (i >= n->nmetrics || !is_metric(&n->metrics[i], section, name, unit)) {
		section = rfl_ncu__keep(n, section);
		name = rfl_ncu__keep(n, name);
		unit = rfl_ncu__keep(n, unit);
		const char *const key[] = { section.at, name.at, unit.at };
		i = rfl_keys_add(&n->metric_keys, n->i.arena, key, sizeof(key), NULL) - 1;
		if (i == n->nmetrics)
			rfl_ncu__metric_init(
				n, rfl_arena_append(n->i.arena, &n->metrics, &n->nmetrics), section,
				name, unit);
		if (n->last < n->nmetrics)
			n->metrics[n->last].next = i;
	}
	n->last = i;
	return &n->metrics[i];
}

/* Read a row of a long table or of a summary, which has averages over its launches. */
static enum rfl_rc long_row(struct rfl_ncu *n)
{
	bool summary = n->table.layout == RFL_NCU_SUMMARY;
	enum rfl_ncu_column column = summary ? RFL_NCU_AVERAGE : RFL_NCU_METRIC_VALUE;

	if (rfl_ncu__field(n, RFL_NCU_METRIC_NAME).len == 0)
		return RFL_OK; /* the row has advice of ncu, not a metric */
	if (n->i.n <= (size_t)n->table.column[column])
		return rfl_import_bad_row(&n->i, titles[column], "the row ends before it");
	struct rfl_ncu_metric *m = find_metric(n);
	if (m->id < 0 && !m->legacy)
		return RFL_OK;
	return rfl_ncu__cell(n, m, rfl_ncu__field(n, column), summary ? n->invocations : 1,
			     titles[column]);
}

static enum rfl_rc wide_row(struct rfl_ncu *n)
{
	struct rfl_ncu_table *t = &n->table;
	int64_t left_out = n->i.left_out;
	enum rfl_rc rc = RFL_OK;

	/* Request the metrics of the columns, now that the chip is known. */
	for (size_t i = 0; !t->ready && i < t->ncolumns; i++) {
		struct rfl_ncu_metric *m = &t->metrics[i];
		struct rfl_span unit = m->unit_text;
		/* NVTX ranges have columns named after their domain. */
		bool metric = m->name.len > 0 && !strstr(m->name.at, "Domain:");

		for (int c = 0; c < RFL_NCU_COLUMNS && metric; c++)
			metric = t->column[c] != (int)i;
		if (!metric)
			continue;
		if (n->no_units && strstr(m->name.at, "__time_"))
			unit = rfl_span_of("ns"); /* ncu's base unit */
		rfl_ncu__metric_init(n, m, rfl_span_of(""), m->name, unit);
		if (m->id >= 0 || m->legacy)
			t->used[t->nused++] = i;
	}
	t->ready = true;
	for (size_t i = 0; rc == RFL_OK && i < t->nused && t->used[i] < n->i.n; i++) {
		struct rfl_ncu_metric *m = &t->metrics[t->used[i]];

		rc = rfl_ncu__cell(n, m, n->i.f[t->used[i]], 1, m->name.at);
	}
	/* A row with several unreadable cells counts once. */
	if (n->i.left_out > left_out)
		n->i.left_out = left_out + 1;
	n->open = false; /* each row is a launch */
	return rc;
}

static enum rfl_rc refuse_size(struct rfl_ncu *n)
{
	if (n->i.n > n->table.ncolumns)
		return rfl_import_bad_row(&n->i, NULL,
					  "%zu fields, but the header on line %zu has %zu columns",
					  n->i.n, n->table.line, n->table.ncolumns);
	return rfl_import_bad_row(&n->i, NULL, "%zu of %zu fields: the row is cut off", n->i.n,
				  n->table.ncolumns);
}

static enum rfl_rc read_record(struct rfl_import *import)
{
	struct rfl_ncu *n = (struct rfl_ncu *)import;
	struct rfl_ncu_table *t = &n->table;
	bool units, known = n->open && n->follows && import->in->same >= t->identity_end;
	enum rfl_rc rc;

	n->follows = false;
	if (import->n > t->ncolumns || import->n < t->least ||
	    (import->in->torn && import->n < t->ncolumns && !t->least))
		return refuse_size(n);
	if (t->units_due) {
		/* The row after the header of a wide page may contain the units. */
		units = rfl_ncu__field(n, RFL_NCU_ID).len == 0 &&
			rfl_ncu__field(n, RFL_NCU_KERNEL).len == 0;
		if (units && import->n < t->ncolumns)
			return refuse_size(n);
		t->units_due = false;
		if (!units && import->left_out > t->left_out)
			return rfl_import_refuse(import, import->in->line,
						 "the row of units after the header on line %zu "
						 "was skipped: values cannot be converted",
						 t->line);
		n->no_units = n->no_units || !units;
		for (size_t i = 0; units && i < t->ncolumns; i++)
			t->metrics[i].unit_text = rfl_ncu__keep(n, rfl_span_trim(import->f[i]));
		if (units)
			return RFL_OK;
	}
	if (!known) {
		rc = rfl_ncu__launch(n);
		if (rc != RFL_OK)
			return rc;
	}
	n->follows = true;
	if (n->bad) { /* its first row was counted with the warning */
		import->left_out += n->bad_rows++ > 0;
		return RFL_OK;
	}
	return t->layout == RFL_NCU_WIDE ? wide_row(n) : long_row(n);
}

/* --- the file -------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A row of the open table begins with a number, or, if it contains units, with an empty field.
 * Output of the application rarely does. */
static bool is_record(const struct rfl_import *import, struct rfl_span ahead)
{
	const struct rfl_ncu_table *t = &((const struct rfl_ncu *)import)->table;
	size_t i = 0;

	if (t->ncolumns == 0 || ahead.len == 0)
		return false;
	if (t->quoted)
		return ahead.len > 1 && ahead.at[0] == '"' &&
		       (is_digit(ahead.at[1]) || (t->units_due && ahead.at[1] == '"'));
	while (i < ahead.len && (is_digit(ahead.at[i]) || ahead.at[i] == '.'))
		i++;
	return i < ahead.len && ahead.at[i] == import->delimiter && (i > 0 || t->units_due);
}

static enum rfl_rc read_line(struct rfl_import *import, struct rfl_span line)
{
	struct rfl_ncu *n = (struct rfl_ncu *)import;
	const int len = (int)(line.len < 400 ? line.len : 400);
	bool source = rfl_span_has(line, "\"Address\"") && rfl_span_has(line, "\"Source\"") &&
		      rfl_span_has(line, "Warp Stall");
	static const char report[] = "==PROF== Report: ";
	size_t skip;
	char delimiter = header_of(line, &skip);

	if (delimiter != 0)
		return begin_table(n, rfl_span_from(line, skip), delimiter);
	if (rfl_span_starts(line, "==ERROR==")) {
		n->errors++;
		(void)rfl_fail(&n->first_error, RFL_EFAILED, 0, "%.*s", len, line.at);
	} else if (rfl_span_starts(line, "==WARNING==")) {
		struct rfl_err said = RFL_ERR_INIT;

		(void)rfl_fail(&said, RFL_EFAILED, 0, "%.*s", len, line.at);
		if (remedy_of(said.msg))
			(void)rfl_err_pass(&n->cause, &said);
	} else if (rfl_span_starts(line, "==PROF==")) {
		if (rfl_span_starts(line, report) && rfl_span_ends(line, ".ncu-rep"))
			rfl_span_copy(rfl_span_from(line, strlen(report)), n->report,
				      sizeof(n->report));
	} else {
		n->noise += rfl_span_trim(line).len > 0;
		/* The aligned tables have the same titles, separated by blanks. */
		n->text_report =
			n->text_report || (rfl_span_starts(rfl_span_trim(line), "Metric Name ") &&
					   rfl_span_has(line, " Metric Unit ") &&
					   rfl_span_ends(line, " Metric Value"));
	}
	if (!n->other_page && n->tables == 0 &&
	    (source || rfl_span_has(line, "Launch Settings") ||
	     rfl_span_has(line, "Device Attribute"))) {
		n->other_page = source ? "source" : "session";
		n->other_page_line = import->in->line;
	}
	return RFL_OK;
}

static void note_all(struct rfl_ncu *n)
{
	const struct rfl_ncu_convention *c = &n->convention;
	struct rfl_capture_builder *b = n->i.b;
	char percent[RFL_NUM_MAX], count[RFL_NUM_MAX];

	rfl_capture_note(b, "bytes are measured with cold caches and times at the base clock, "
			    "unless ncu's --cache-control and --clock-control change that");
	if (n->table.layout == RFL_NCU_SUMMARY)
		rfl_capture_note(b, "a summary: values are averages x invocations");
	if (n->processes.n > 1 && n->processes.n > n->tables)
		rfl_capture_note(b, "kernels of several processes are added up");
	if (n->mixed_device)
		rfl_capture_note(b, "kernels of several devices are added up, as are their times, "
				    "although they may have run concurrently");
	if (n->tables > 1)
		rfl_capture_note(b, "%zu tables in one file are added up", n->tables);
	if (n->rounded > 0)
		rfl_capture_note(
			b, "%s values are rounded by up to %s %%; run ncu with --print-units base",
			rfl_num_grouped(n->rounded, count),
			rfl_num_people(100 * n->worst, 2, percent));
	if (n->no_units)
		rfl_capture_note(b, "no row of units: values are assumed to be in base units");
	if (c->assumed) {
		rfl_import_warn(&n->i,
				"no cell shows whether point or comma is the decimal sign ('%s' on "
				"line %zu): the point is assumed",
				c->witness, c->witness_line);
		rfl_capture_note(b, "the point is assumed to be the decimal sign ('%s', line %zu)",
				 c->witness, c->witness_line);
	}
	if (n->mixed_cc)
		rfl_capture_note(b,
				 "the devices differ in compute capability: the formulas for the "
				 "first, %s, are used",
				 n->cc);
	if (n->errors > 0) {
		rfl_import_warn(&n->i, "the capture is incomplete: ncu reports '%s'; %s",
				n->first_error.msg, remedy_of(n->first_error.msg));
		rfl_capture_note(b, "incomplete: ncu reports '%s' (%zu error line%s)",
				 n->first_error.msg, n->errors, n->errors == 1 ? "" : "s");
	}
	if (n->legacy > 0)
		rfl_capture_note(b,
				 "'%s' is an nvprof metric that ncu does not have; see 'roofline "
				 "counters list --chip %s --ncu'",
				 n->legacy_name, n->chip ? n->chip->name : "CHIP");
	if (n->noise > 0)
		rfl_capture_note(b, "skipped %zu line%s of other output", n->noise,
				 n->noise == 1 ? "" : "s");
}

static enum rfl_rc end(struct rfl_import *import)
{
	struct rfl_ncu *n = (struct rfl_ncu *)import;
	const char *said = n->first_error.msg[0] ? n->first_error.msg : n->cause.msg;

	if (n->tables > 0 && (n->launches > 0 || import->left_out > 0)) {
		note_all(n);
		return RFL_OK;
	}
	/* No launch was counted: give ncu's reason, if it printed one. */
	if (said[0] != '\0' && !n->text_report) { /* a report means that kernels were profiled */
		rfl_import_nothing_counted(import, "ncu reports '%s'; %s", said, remedy_of(said));
		return RFL_OK;
	}
	if (n->report[0] != '\0')
		return rfl_import_refuse(
			import, 0,
			"ncu's messages; the results are in '%.300s': convert it with "
			"'ncu --import FILE --csv --page raw --print-units base'",
			n->report);
	if (n->tables > 0)
		return rfl_import_refuse(import, 0,
					 "the table on line %zu has no rows: no launch was counted",
					 n->table.line);
	if (n->other_page)
		return rfl_fail(import->err, RFL_EFORMAT, 0,
				"%s:%zu: ncu's %s page, which has no counters; run 'ncu -i REPORT "
				"--csv --page raw --print-units base'",
				import->in->name, n->other_page_line, n->other_page);
	return rfl_import_refuse(import, 0,
				 "%s; run 'ncu --csv --page raw --print-units base --log-file "
				 "out.csv ...'",
				 n->text_report ? "an ncu report, not CSV" : "no ncu table");
}

static void begin(struct rfl_import *import)
{
	struct rfl_ncu *n = (struct rfl_ncu *)import;

	n->last = SIZE_MAX;
	n->table.display_name = -1;
	n->first_error = n->cause = (struct rfl_err)RFL_ERR_INIT;
}

static const struct rfl_sign signs[] = {
	{ "==PROF==", { NULL }, 60 },
	{ "==ERROR==", { NULL }, 60 },
	{ "==WARNING==", { NULL }, 60 },
	{ NULL, { "\"Address\"", "\"Source\"", "Warp Stall" }, 50 },
	{ NULL, { "Metric Name ", " Metric Unit ", " Metric Value" }, 50 },
	{ NULL, { "Launch Settings" }, 30 },
	{ NULL, { "Device Attribute" }, 30 },
	{ .sure = 0 },
};

static int detect(struct rfl_span head)
{
	struct rfl_span line;
	size_t skip;

	while (rfl_span_next_line(&head, &line))
		if (header_of(line, &skip) != 0)
			return 95;
	return 0;
}

const struct rfl_importer rfl_importer_ncu = {
	.name = "ncu",
	.summary = "Nsight Compute: ncu --csv (any page with metrics) and ncu --print-summary",
	.size = sizeof(struct rfl_ncu),
	.signs = signs,
	.detect = detect,
	.begin = begin,
	.is_record = is_record,
	.line = read_line,
	.record = read_record,
	.end = end,
};
