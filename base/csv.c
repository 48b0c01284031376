/* csv.c - tables with a header row. input.c splits them into fields. */
#include "base/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/input.h"
#include "base/num.h"

#define ROW_MAX ((size_t)16 << 20) /* a longer row indicates an unclosed quote */

struct rfl_csv_name {
	const char *name; /* borrowed from the arena */
	size_t at;
};

/* Trim blanks from both ends of a field; the result is not NUL-terminated. */
static const char *trim(const char *s, size_t *len)
{
	s += strspn(s, " \t");
	*len = strlen(s);
	while (*len > 0 && (s[*len - 1] == ' ' || s[*len - 1] == '\t'))
		--*len;
	return s;
}

/* Remove blanks, and the marks of bold text and code, around a Markdown cell. */
static struct rfl_span bare(struct rfl_span cell)
{
	cell = rfl_span_trim(cell);
	while (cell.len >= 2 && cell.at[0] == cell.at[cell.len - 1] && strchr("*`", cell.at[0]))
		cell = rfl_span_trim((struct rfl_span){ cell.at + 1, cell.len - 2 });
	return cell;
}

/* Whether the first line that may belong to a Markdown table does: what is above the table, such as
 * a title, has neither its bars nor the commas of a CSV header. */
static bool is_markdown(struct rfl_span text)
{
	struct rfl_span line;

	while (rfl_span_next_line(&text, &line)) {
		line = rfl_span_trim(line);
		if (line.len > 0 && (line.at[0] == '|' || memchr(line.at, ',', line.len)))
			return line.at[0] == '|';
	}
	return false;
}

/* Read a row of a Markdown table; skip what is above the header, and the row of dashes below it. */
static enum rfl_rc read_markdown(struct rfl_csv *csv, bool *more, struct rfl_err *err)
{
	struct rfl_span line, dashes;
	enum rfl_rc rc;

	do {
		if ((rc = rfl_input_line(csv->in, &line, more, err)) != RFL_OK || !*more)
			return rc;
		line = rfl_span_trim(line);
		for (dashes = line; dashes.len > 0 && strchr("|-: \t", dashes.at[0]);)
			dashes = rfl_span_from(dashes, 1);
	} while ((dashes.len == 0 && (line.len == 0 || memchr(line.at, '-', line.len))) ||
		 (csv->ncolumns == 0 && line.at[0] != '|'));
	if (line.at[0] != '|')
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: this is not a row of the Markdown table; keep only the "
				"table in the file",
				csv->path, csv->in->line);
	line = rfl_span_from(line, 1);
	line.len -= line.len > 0 && line.at[line.len - 1] == '|';
	for (size_t at = 0, begin = 0; at <= line.len; at++) {
		if (at < line.len && (line.at[at] != '|' || (at > 0 && line.at[at - 1] == '\\')))
			continue;
		rfl_reserve(&csv->cells, &csv->cells_cap, csv->nfields + 1);
		csv->cells[csv->nfields++] = bare((struct rfl_span){ line.at + begin, at - begin });
		begin = at + 1;
	}
	csv->fields = csv->cells;
	return RFL_OK;
}

/* Read one row into `fields`; set *more to false at the end of the file. A last row without a
 * newline is marked as torn. */
static enum rfl_rc read_row(struct rfl_csv *csv, bool *more, struct rfl_err *err)
{
	struct rfl_input *in = csv->in;
	enum rfl_rc rc;

	in->hashed = csv->hashed;
	csv->nfields = 0;
	rc = csv->markdown ? read_markdown(csv, more, err)
			   : rfl_input_record(in, ',', &csv->fields, &csv->nfields, more, err);
	csv->hash = in->hash;
	csv->line = in->line;
	csv->offset = in->offset;
	csv->end = in->next_offset;
	if (rc != RFL_OK || *more)
		csv->torn = in->torn;
	return rc;
}

/* --- header ---------------------------------------------------------------------------------- */

static int compare_columns(const void *a, const void *b)
{
	const struct rfl_csv_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* Does the text begin like a JSON object or list? */
static bool is_json(const char *text, size_t len)
{
	size_t at = 0, next;

	while (at < len && strchr(" \t\r\n", text[at]))
		at++;
	for (next = at + 1; next < len && strchr(" \t\r\n", text[next]);)
		next++;
	return next < len && ((text[at] == '{' && strchr("\"}", text[next])) ||
			      (text[at] == '[' && strchr("{[", text[next])));
}

static enum rfl_rc read_header(struct rfl_csv *csv, struct rfl_err *err)
{
	const struct rfl_csv_name *twice = NULL;
	struct rfl_span head;
	const char *text, *nl;
	size_t len, line;
	enum rfl_rc rc;
	bool more;

	/* Reject other formats before their first line is parsed as a header. */
	csv->in->hashed = true;
	if ((rc = rfl_input_peek(csv->in, RFL_INPUT_HEAD, &head, err)) != RFL_OK)
		return rc;
	text = head.at;
	len = head.len;
	csv->markdown = is_markdown(head);
	nl = memchr(text, '\n', len);
	line = nl ? (size_t)(nl - text) : len;
	if (is_json(text, len))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: this is JSON; pass a CSV table",
				csv->path);
	if (!csv->markdown && !memchr(text, ',', line) &&
	    (memchr(text, ';', line) || memchr(text, '\t', line)))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:1: columns are separated by %s; use commas", csv->path,
				memchr(text, ';', line) ? "semicolons" : "tabs");

	if ((rc = read_row(csv, &more, err)) != RFL_OK)
		return rc;
	if (!more)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: the file is empty; add a header row",
				csv->path);
	csv->columns = rfl_arena_array(csv->arena, csv->nfields, sizeof(*csv->columns));
	csv->by_name = rfl_arena_array(csv->arena, csv->nfields, sizeof(*csv->by_name));
	for (size_t i = 0; i < csv->nfields; i++) {
		const char *name = trim(rfl_input_text(&csv->fields[i]), &len);

		if (memchr(name, '\r', len))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:1: lines must end with LF or CRLF, not with CR alone",
					csv->path);
		csv->columns[i] = rfl_arena_printf(csv->arena, "%.*s", (int)len, name);
		csv->ncolumns++;
		/* Spreadsheets may export unnamed columns, which cannot be looked up. */
		if (len > 0)
			csv->by_name[csv->nnamed++] = (struct rfl_csv_name){ csv->columns[i], i };
	}
	/* Sorted for rfl_csv_find() and to detect duplicates. */
	qsort(csv->by_name, csv->nnamed, sizeof(*csv->by_name), compare_columns);
	for (size_t i = 1; i < csv->nnamed; i++) {
		const struct rfl_csv_name *c = &csv->by_name[i];

		if (strcmp(c[-1].name, c->name) == 0 && (!twice || c->at < twice->at))
			twice = c;
	}
	return !twice ? RFL_OK
		      : rfl_fail(err, RFL_EFORMAT, 0, "%s:1: the header names column '%s' twice",
				 csv->path, twice->name);
}

enum rfl_rc rfl_csv_open_input(struct rfl_input *in, struct rfl_csv **ret, struct rfl_err *err)
{
	struct rfl_csv *csv = rfl_alloc_array(1, sizeof(*csv));
	enum rfl_rc rc;

	csv->in = in;
	in->strict = true;
	in->line_max = ROW_MAX;
	csv->hashed = true; /* the header may span several blocks */
	csv->arena = rfl_arena_new();
	csv->path = rfl_arena_strdup(csv->arena, in->name);
	rc = read_header(csv, err);
	csv->torn = csv->hashed = false;
	if (rc == RFL_OK)
		*ret = csv;
	else
		rfl_csv_close(csv);
	return rc;
}

static enum rfl_rc open_own(struct rfl_input *in, struct rfl_csv **ret, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_csv_open_input(in, ret, err);

	if (rc == RFL_OK)
		(*ret)->own = in;
	else
		rfl_input_close(in);
	return rc;
}

enum rfl_rc rfl_csv_open_text(const char *text, size_t len, const char *name, struct rfl_csv **ret,
			      struct rfl_err *err)
{
	return open_own(rfl_input_open_text(text, len, name), ret, err);
}

enum rfl_rc rfl_csv_open(const char *path, struct rfl_csv **ret, struct rfl_err *err)
{
	struct rfl_input *in;
	const enum rfl_rc rc = rfl_input_open(path, &in, err);

	return rc == RFL_OK ? open_own(in, ret, err) : rc;
}

enum rfl_rc rfl_csv_seek(struct rfl_csv *csv, size_t offset, struct rfl_err *err)
{
	struct rfl_span before;
	enum rfl_rc rc = rfl_input_seek(csv->in, offset - 1, err);

	if (rc != RFL_OK || (rc = rfl_input_peek(csv->in, 1, &before, err)) != RFL_OK)
		return rc;
	if (before.len == 0 || *before.at != '\n')
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: no row ends at byte %zu", csv->path,
				offset);
	return rfl_input_seek(csv->in, offset, err);
}

void rfl_csv_close(struct rfl_csv *csv)
{
	if (!csv)
		return;
	rfl_input_close(csv->own);
	rfl_arena_free(csv->arena);
	free(csv->cells);
	free(csv);
}

/* --- access ---------------------------------------------------------------------------------- */

static int compare_name(const void *name, const void *column)
{
	return strcmp(name, ((const struct rfl_csv_name *)column)->name);
}

int rfl_csv_find(const struct rfl_csv *csv, const char *column)
{
	const struct rfl_csv_name *c =
		bsearch(column, csv->by_name, csv->nnamed, sizeof(*c), compare_name);

	return c ? (int)c->at : -1;
}

enum rfl_rc rfl_csv_need(const struct rfl_csv *csv, const char *column, int *ret,
			 struct rfl_err *err)
{
	int i = rfl_csv_find(csv, column);

	if (i < 0)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:1: the header has no column '%s'",
				csv->path, column);
	*ret = i;
	return RFL_OK;
}

enum rfl_rc rfl_csv_next(struct rfl_csv *csv, bool *more, struct rfl_err *err)
{
	enum rfl_rc rc = read_row(csv, more, err);

	if (rc != RFL_OK || !*more)
		return rc;
	if (csv->nfields > csv->ncolumns)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: the row has more fields than the header has columns (%zu)",
				csv->path, csv->line, csv->ncolumns);
	return RFL_OK;
}

bool rfl_csv_record(const char *text, size_t len, size_t *end)
{
	const char *nl = memchr(text, '\n', len);
	size_t at = 0;

	*end = nl ? (size_t)(nl - text) + 1
		  : len; /* the line after a broken one may begin a record */
	while (nl && at < len && text[at]) {
		bool quoted = text[at] == '"';

		at += quoted;
		while (at < len && text[at]) {
			if (text[at] == '"' && !(quoted && at + 1 < len && text[at + 1] == '"'))
				break;
			if (!quoted && (text[at] == ',' || text[at] == '\n'))
				break;
			at += text[at] == '"' ? 2 : 1;
		}
		if (quoted && (at >= len || text[at++] != '"'))
			break;
		if (at + 1 < len && text[at] == '\r' && text[at + 1] == '\n')
			at++;
		if (at < len && text[at] == '\n') {
			*end = at + 1;
			return true;
		}
		if (at >= len || text[at++] != ',')
			break;
	}
	return false;
}

size_t rfl_csv_split(const char *record, size_t len, struct rfl_span *fields, size_t most)
{
	bool in_quotes = false;
	size_t n = 0, begin = 0;

	while (len > 0 && (record[len - 1] == '\n' || record[len - 1] == '\r'))
		len--;
	for (size_t i = 0; i <= len; i++) {
		if (i < len && record[i] == '"')
			in_quotes = !in_quotes;
		if (i < len && (record[i] != ',' || in_quotes))
			continue;
		if (n < most)
			fields[n] = (struct rfl_span){ .at = record + begin, .len = i - begin };
		n++;
		begin = i + 1;
	}
	for (size_t i = n; i < most; i++)
		fields[i] = (struct rfl_span){ .at = "", .len = 0 };
	return n;
}

const char *rfl_csv_text(const struct rfl_csv *csv, int column)
{
	if (column < 0 || (size_t)column >= csv->nfields)
		return "";
	return rfl_input_text(&csv->fields[column]);
}

#define NUMBER_MAX 512

/* The trimmed text of a number, or NULL for an empty cell. Text longer than any number is cut and
 * ends with "...", so that parsing rejects it and the message shows its beginning.
 * @param cell  set to "file:line: column 'x'" for error messages */
static const char *number_text(const struct rfl_csv *csv, int column, char out[NUMBER_MAX],
			       char cell[1024])
{
	size_t len;
	const char *text = trim(rfl_csv_text(csv, column), &len);

	if (len == 0)
		return NULL;
	snprintf(cell, 1024, "%s:%zu: column '%s'", csv->path, csv->line, csv->columns[column]);
	if (len < NUMBER_MAX)
		snprintf(out, NUMBER_MAX, "%.*s", (int)len, text);
	else
		snprintf(out, NUMBER_MAX, "%.40s...", text);
	return out;
}

enum rfl_rc rfl_csv_double(const struct rfl_csv *csv, int column, double *ret, struct rfl_err *err)
{
	char number[NUMBER_MAX], cell[1024];
	const char *text = rfl_csv_text(csv, column);

	if (text[0] != '\0' && rfl_num_parse_double(text, "", ret, NULL) == RFL_OK)
		return RFL_OK; /* the usual case: no blanks around the number */
	text = number_text(csv, column, number, cell);
	if (text)
		return rfl_num_parse_double(text, cell, ret, err);
	*ret = NAN;
	return RFL_OK;
}

enum rfl_rc rfl_csv_int(const struct rfl_csv *csv, int column, int64_t missing, int64_t *ret,
			struct rfl_err *err)
{
	char number[NUMBER_MAX], cell[1024];
	const char *text = rfl_csv_text(csv, column);
	int64_t value = 0;
	size_t n = 0;

	while (n < 18 && text[n] >= '0' && text[n] <= '9')
		value = 10 * value + (text[n++] - '0');
	if (text[n] == '\0') { /* the usual case: only digits, or empty */
		*ret = n ? value : missing;
		return RFL_OK;
	}
	text = number_text(csv, column, number, cell);
	if (text)
		return rfl_num_parse_int(text, cell, ret, err);
	*ret = missing;
	return RFL_OK;
}
