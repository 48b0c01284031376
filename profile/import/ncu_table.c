/*
 * ncu_table.c - the headers of ncu's tables: which layout, which columns mean something, and
 * how numbers are written further down.
 */
#include <stdlib.h>
#include <string.h>

#include "profile/import/ncu_impl.h"
#include "profile/import/span.h"

#define TITLE(id, title) [RFL_NCU_COLUMN_##id] = title,
const char *const rfl_ncu_titles[RFL_NCU_COLUMN_COUNT] = { RFL_NCU_COLUMNS(TITLE) };

/* --- finding a header ------------------------------------------------------------------------ */

/* How a header begins: with quotes, or as other tools save it again. */
static const char *const beginnings[] = { "\"ID\"", "\"Process ID\"", "ID", "Process ID" };

static bool is_delimiter(char c)
{
	return c == ',' || c == ';' || c == '\t';
}

/* What every table has; a summary per device names no kernels. */
static bool names_columns(struct rfl_span line)
{
	return rfl_span_has(line, "Kernel Name") ||
	       (rfl_span_has(line, "Invocations") && rfl_span_has(line, "Metric Name"));
}

/* Whether a header begins here, given that the line has its columns. */
static bool begins_here(struct rfl_span s)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(beginnings); i++) {
		size_t len = strlen(beginnings[i]);

		if (rfl_span_starts(s, beginnings[i]) && s.len > len && is_delimiter(s.at[len]))
			return true;
	}
	return false;
}

bool rfl_ncu__is_header(struct rfl_span line, size_t *skip)
{
	size_t at;

	*skip = 0;
	if (!names_columns(line))
		return false;
	/* A data frame puts its index in front, with an empty title. */
	if (begins_here(line) ||
	    (line.len > 1 && is_delimiter(line.at[0]) && begins_here(rfl_span_from(line, 1))))
		return true;
	/* Output without a newline at its end. */
	at = rfl_span_find(line, "\"ID\",\"Process ID\",");
	if (at == line.len)
		at = rfl_span_find(line, "\"Process ID\",\"Process Name\",");
	*skip = at;
	return at < line.len;
}

/* --- what its columns are -------------------------------------------------------------------- */

static bool is_identity(int column)
{
	switch (column) {
	case RFL_NCU_COLUMN_ID:
	case RFL_NCU_COLUMN_PROCESS:
	case RFL_NCU_COLUMN_KERNEL:
	case RFL_NCU_COLUMN_BLOCK:
	case RFL_NCU_COLUMN_GRID:
	case RFL_NCU_COLUMN_DEVICE:
	case RFL_NCU_COLUMN_CC:
	case RFL_NCU_COLUMN_INVOCATIONS:
		return true;
	default:
		return false;
	}
}

static bool find_columns(struct rfl_ncu_table *t, const struct rfl_span *fields, const char **twice)
{
	for (int c = 0; c < RFL_NCU_COLUMN_COUNT; c++) {
		t->column[c] = -1;
		for (size_t i = 0; i < t->ncolumns; i++) {
			if (!rfl_span_is(rfl_span_trim(fields[i]), rfl_ncu_titles[c]))
				continue;
			if (t->column[c] >= 0) {
				*twice = rfl_ncu_titles[c];
				return false;
			}
			t->column[c] = (int)i;
		}
		if (is_identity(c) && t->column[c] + 1 > (int)t->identity_end)
			t->identity_end = (size_t)(t->column[c] + 1);
	}
	return true;
}

/* The layout by what is there; what is missing for it. */
static const char *find_layout(struct rfl_ncu_table *t)
{
	const int *c = t->column;

	if (c[RFL_NCU_COLUMN_METRIC] < 0) {
		t->layout = RFL_NCU_WIDE;
		t->units_due = true;
		return c[RFL_NCU_COLUMN_ID] < 0 ? "ID" : NULL;
	}
	if (c[RFL_NCU_COLUMN_VALUE] >= 0) {
		t->layout = RFL_NCU_LONG;
		t->least = (size_t)c[RFL_NCU_COLUMN_METRIC] + 1;
		return c[RFL_NCU_COLUMN_ID] < 0 ? "ID" : NULL;
	}
	t->layout = RFL_NCU_SUMMARY;
	t->least = (size_t)c[RFL_NCU_COLUMN_METRIC] + 1;
	if (c[RFL_NCU_COLUMN_AVERAGE] < 0)
		return "Metric Value";
	return c[RFL_NCU_COLUMN_INVOCATIONS] < 0 ? "Invocations" : NULL;
}

void rfl_ncu__table_fini(struct rfl_ncu_table *t)
{
	free(t->metrics);
	free(t->used);
	*t = (struct rfl_ncu_table){ .display_name = -1 };
}

/* Titles of a wide page are metrics: kept as they are until the chip is known. */
static enum rfl_rc keep_titles(struct rfl_ncu *n, const struct rfl_span *fields,
			       struct rfl_err *err)
{
	struct rfl_ncu_table *t = &n->table;

	t->metrics = rfl_alloc_array(t->ncolumns, sizeof(*t->metrics));
	t->used = rfl_alloc_array(t->ncolumns, sizeof(*t->used));
	if (!t->metrics || !t->used)
		return rfl_ncu__no_memory(n, err);
	for (size_t i = 0; i < t->ncolumns; i++) {
		struct rfl_span title = rfl_span_trim(fields[i]);
		char *name = rfl_arena_array(n->arena, title.len + 1, 1);

		if (!name)
			return rfl_ncu__no_memory(n, err);
		memcpy(name, title.at, title.len);
		t->metrics[i] = (struct rfl_ncu_metric){
			.name = name, .name_len = title.len, .unit_text = "", .id = -1
		};
		if (rfl_span_is(title, "device__attribute_display_name"))
			t->display_name = (int)i;
	}
	return RFL_OK;
}

static enum rfl_rc read_header(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			       struct rfl_err *err)
{
	struct rfl_ncu_table *t = &n->table;
	const char *name = rfl_input_name(n->import->in), *what = NULL;

	t->ncolumns = nfields;
	t->left_out = n->import->left_out;
	t->line = rfl_input_line_number(n->import->in);
	if (!find_columns(t, fields, &what))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: the header names column '%s' twice",
				name, t->line, what);
	what = find_layout(t);
	if (what)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: the header of this table of ncu has no column '%s'", name,
				t->line, what);
	/* A raw page has no groups of digits. */
	if (n->convention.decimal == 0)
		n->convention.no_group = t->layout == RFL_NCU_WIDE;
	return t->layout == RFL_NCU_WIDE ? keep_titles(n, fields, err) : RFL_OK;
}

static char delimiter_of(struct rfl_span line)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(beginnings); i++) {
		size_t at = rfl_span_find(line, beginnings[i]) + strlen(beginnings[i]);

		if (at < line.len && is_delimiter(line.at[at]))
			return line.at[at];
	}
	return ',';
}

enum rfl_rc rfl_ncu__header(struct rfl_ncu *n, struct rfl_span line, struct rfl_err *err)
{
	struct rfl_input *in = NULL;
	const struct rfl_span *fields;
	size_t nfields;
	bool more;
	enum rfl_rc rc;

	rfl_ncu__table_fini(&n->table);
	n->table.delimiter = delimiter_of(line);
	n->table.quoted = line.len > 0 && line.at[0] == '"';
	n->tables++;
	rc = rfl_input_open_text(line.at, line.len, rfl_input_name(n->import->in), &in, err);
	if (rc == RFL_OK)
		rc = rfl_input_record(in, n->table.delimiter, &fields, &nfields, NULL, &more, err);
	if (rc == RFL_OK)
		rc = read_header(n, fields, nfields, err);
	rfl_input_close(in);
	return rc;
}

/* --- wide: numbers for the columns ----------------------------------------------------------- */

static bool is_metric_column(const struct rfl_ncu_table *t, size_t i)
{
	for (int c = 0; c < RFL_NCU_COLUMN_COUNT; c++)
		if (t->column[c] == (int)i)
			return false;
	/* NVTX ranges have columns named after their domain. */
	return t->metrics[i].name[0] != '\0' && !strstr(t->metrics[i].name, "Domain:");
}

enum rfl_rc rfl_ncu__columns(struct rfl_ncu *n, struct rfl_err *err)
{
	struct rfl_ncu_table *t = &n->table;
	const struct rfl_span none = { .at = "", .len = 0 };

	for (size_t i = 0; i < t->ncolumns; i++) {
		struct rfl_ncu_metric *m = &t->metrics[i];
		struct rfl_span name = { .at = m->name, .len = m->name_len };
		struct rfl_span unit = { .at = m->unit_text, .len = m->unit_len };
		enum rfl_rc rc;

		if (n->no_units && strstr(m->name, "__time_"))
			unit = (struct rfl_span){ .at = "ns", .len = 2 }; /* ncu's base unit */

		if (!is_metric_column(t, i))
			continue;
		rc = rfl_ncu__metric_init(n, m, none, name, unit, err);
		if (rc != RFL_OK)
			return rc;
		if (m->id >= 0 || m->legacy)
			t->used[t->nused++] = i;
	}
	t->ready = true;
	return RFL_OK;
}

/* --- how numbers are written ----------------------------------------------------------------- */

/* One row of a head that is looked at only. */
static void look_at_row(struct rfl_ncu *n, const struct rfl_span *fields, size_t nfields,
			size_t line)
{
	const struct rfl_ncu_table *t = &n->table;
	struct rfl_span name = rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_METRIC);
	struct rfl_span unit = rfl_ncu__field(t, fields, nfields, RFL_NCU_COLUMN_UNIT);
	const struct rfl_ncu_unit parsed = rfl_ncu_unit_parse(unit);
	bool whole = rfl_ncu__is_whole(name, &parsed);
	static const enum rfl_ncu_column numbers[] = { RFL_NCU_COLUMN_VALUE, RFL_NCU_COLUMN_MINIMUM,
						       RFL_NCU_COLUMN_MAXIMUM,
						       RFL_NCU_COLUMN_AVERAGE };

	for (size_t i = 0; i < RFL_ARRAY_LEN(numbers); i++) {
		struct rfl_span cell = rfl_ncu__field(t, fields, nfields, numbers[i]);

		(void)rfl_ncu_number_read(&n->convention, cell,
					  whole && numbers[i] != RFL_NCU_COLUMN_AVERAGE, 0, line);
		n->convention.assumed = false; /* this is no reading yet */
	}
}

void rfl_ncu__look_ahead(struct rfl_ncu *n)
{
	struct rfl_input *head = NULL;
	const struct rfl_span *fields;
	struct rfl_span text;
	size_t nfields;
	bool more = true;

	if (n->table.layout == RFL_NCU_WIDE || n->convention.decimal != 0 ||
	    rfl_input_peek(n->import->in, &text, NULL) != RFL_OK ||
	    rfl_input_open_text(text.at, text.len, "", &head, NULL) != RFL_OK)
		return; /* the cells decide as they come */
	while (more && n->convention.decimal == 0) {
		enum rfl_rc rc = rfl_input_record(head, n->table.delimiter, &fields, &nfields, NULL,
						  &more, NULL);

		if (rc != RFL_OK && rc != RFL_EFORMAT)
			break;
		if (rc == RFL_OK && more && !rfl_input_torn(head) && nfields >= n->table.least)
			look_at_row(n, fields, nfields,
				    n->table.line + rfl_input_line_number(head));
		more = more || rc == RFL_EFORMAT;
	}
	rfl_input_close(head);
}
