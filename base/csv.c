/*
 * csv.c - the streaming reader. libcsv gets one physical line at a time, so that only one row is in
 * memory and its line number is known. Lines without quotes are split here, which is faster.
 */
#include "base/csv.h"

#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"

#define BLOCK_SIZE  262144
#define ROW_MAX     ((size_t)16 << 20) /* a longer row indicates an unclosed quote */
#define COLUMNS_MAX 65536

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

/* --- rows ------------------------------------------------------------------------------------ */

static void on_field(void *data, size_t len, void *ctx)
{
	struct rfl_csv *csv = ctx;

	if (csv->nfields > COLUMNS_MAX)
		return; /* the row is rejected when it ends */
	rfl_reserve(&csv->fields, &csv->fields_cap, csv->nfields + 1);
	csv->fields[csv->nfields++] = csv->text.len;
	rfl_buf_append(&csv->text, data, len);
	rfl_buf_putc(&csv->text, '\0');
}

static void on_row(int ended_by, void *ctx)
{
	struct rfl_csv *csv = ctx;

	(void)ended_by;
	csv->row_done = true;
}

/* Blanks are part of a field (RFC 4180); the CR of a CRLF is not. */
static int is_carriage_return(unsigned char c)
{
	return c == '\r';
}

static int is_line_feed(unsigned char c)
{
	return c == '\n';
}

static void *checked_realloc(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		rfl_out_of_memory();
	return p;
}

static void init_parser(struct csv_parser *p)
{
	(void)csv_init(p, CSV_STRICT | CSV_STRICT_FINI); /* fails for NULL only */
	csv_set_realloc_func(p, checked_realloc);
	csv_set_free_func(p, free);
	csv_set_blk_size(p, 65536); /* increment of its buffer; 128 by default */
	csv_set_space_func(p, is_carriage_return);
	csv_set_term_func(p, is_line_feed);
}

/* Read the next block; it is empty at the end of the file. */
static enum rfl_rc fill_block(struct rfl_csv *csv, struct rfl_err *err)
{
	csv->block_offset += csv->block_len;
	csv->block_at = 0;
	errno = 0;
	csv->block_len = fread(csv->block, 1, BLOCK_SIZE, csv->f);
	if (csv->block_len == 0 && ferror(csv->f))
		return rfl_fail_errno(err, "%s: cannot read", csv->path);
	if (csv->hashed)
		csv->hash = rfl_hash64(csv->hash, csv->block, csv->block_len);
	return RFL_OK;
}

/* Check the size of the row after appending to it. */
static enum rfl_rc check_row_size(struct rfl_csv *csv, struct rfl_err *err)
{
	if (csv->text.failed || csv_get_buffer_size(csv->parser) > ROW_MAX)
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: a row of more than %zu bytes begins here; close its quote",
				csv->path, csv->line, ROW_MAX);
	return RFL_OK;
}

/* Split a line at its commas, except after `most` fields, and return the number of fields. Fields
 * are short, so checking 64 bytes at once is faster than a memchr() per field. */
static size_t cut_at_commas(char *text, size_t len, size_t *fields, size_t most)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	size_t n = 1, at = 0;

	fields[0] = 0;
	for (; len - at >= 64; at += 64) {
		uint64_t commas = 0; /* bit k is set if byte k is a comma */

		for (unsigned i = 0; i < 64; i += 8) {
			uint64_t word;

			memcpy(&word, text + at + i, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
			word = __builtin_bswap64(word);
#endif
			word ^= UINT64_C(0x2c2c2c2c2c2c2c2c);        /* turn commas into 0 */
			word = ~(((word & low) + low) | word | low); /* mark each zero byte */
			commas |= (word * UINT64_C(0x2040810204081)) >> 56 << i; /* gather them */
		}
		for (; commas && n < most; commas &= commas - 1) {
			const size_t comma = at + (size_t)__builtin_ctzll(commas);

			text[comma] = '\0';
			fields[n++] = comma + 1;
		}
	}
	for (; at < len; at++)
		if (text[at] == ',' && n < most) {
			text[at] = '\0';
			fields[n++] = at + 1;
		}
	return n;
}

/* Parse the block up to the next line feed or to its end. */
static enum rfl_rc feed_piece(struct rfl_csv *csv, struct rfl_err *err)
{
	const char *piece = csv->block + csv->block_at;
	size_t left = csv->block_len - csv->block_at;
	const char *nl = memchr(piece, '\n', left);
	size_t len = nl ? (size_t)(nl - piece) + 1 : left, text;

	if (nl && len == 1 && !csv->begun) { /* an empty line is not a row */
		csv->offset = csv->block_offset + ++csv->block_at;
		csv->line = ++csv->next_line;
		return RFL_OK;
	}
	if (memchr(piece, '\0', len))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: contains a NUL byte; save the file as UTF-8 text",
				csv->path, csv->next_line);
	/* A row on one line, without quotes and without a CR before its end, is split here: this
	 * gives the same fields as libcsv, several times faster. It is not possible if libcsv has
	 * read the beginning of the row, or for the header, before `fields` is allocated. */
	text = nl ? len - 1 : 0;
	text -= text > 0 && piece[text - 1] == '\r';
	if (text > 0 && !csv->begun && csv->fields_cap > csv->ncolumns &&
	    !memchr(piece, '"', text) && !memchr(piece, '\r', text)) {
		rfl_buf_append(&csv->text, piece, text);
		if (!csv->text.failed)
			csv->nfields =
				cut_at_commas(csv->text.data, text, csv->fields, csv->ncolumns + 1);
		csv->row_done = csv->begun = true;
	} else if (csv_parse(csv->parser, piece, len, on_field, on_row, csv) != len) {
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:%zu: not CSV: a field that contains a quote must be quoted, "
				"and that quote doubled",
				csv->path, csv->next_line);
	}
	csv->block_at += len;
	for (size_t i = 0; i < len && !csv->begun; i++) /* an empty line is not a row */
		csv->begun = piece[i] != '\r' && piece[i] != '\n';
	if (nl)
		csv->next_line++;
	if (!csv->begun) {
		csv->line = csv->next_line;
		csv->offset = csv->block_offset + csv->block_at;
	}
	return check_row_size(csv, err);
}

/* Read one row into `text` and `fields`; set *more to false at the end of the file. A last row
 * without a newline is marked as torn. */
static enum rfl_rc read_row(struct rfl_csv *csv, bool *more, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	csv->row_done = csv->begun = false;
	csv->nfields = 0;
	rfl_buf_reset(&csv->text);
	csv->line = csv->next_line;
	csv->offset = csv->block_offset + csv->block_at;
	while (!csv->row_done && !csv->at_end && rc == RFL_OK) {
		if (csv->block_at == csv->block_len && (rc = fill_block(csv, err)) != RFL_OK)
			return rc;
		if (csv->block_len > 0) {
			rc = feed_piece(csv, err);
			continue;
		}
		csv->at_end = true;
		if (csv_fini(csv->parser, on_field, on_row, csv) == 0) {
			csv->torn = csv->row_done;
			rc = check_row_size(csv, err);
			continue;
		}
		csv->torn = true;
		return rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s:%zu: the file ends inside a quoted field of the row that begins "
			"here",
			csv->path, csv->line);
	}
	csv->end = csv->block_offset + csv->block_at;
	*more = csv->row_done;
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
	const char *text, *nl;
	size_t len, line;
	enum rfl_rc rc;
	bool more;

	if ((rc = fill_block(csv, err)) != RFL_OK)
		return rc;
	if (csv->block_len >= 3 && memcmp(csv->block, "\xef\xbb\xbf", 3) == 0)
		csv->block_at = 3; /* byte order mark */

	/* Reject other formats before their first line is parsed as a header. */
	text = csv->block + csv->block_at;
	len = csv->block_len - csv->block_at;
	nl = memchr(text, '\n', len);
	line = nl ? (size_t)(nl - text) : len;
	if (is_json(text, len))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: this is JSON; pass a CSV table",
				csv->path);
	if (!memchr(text, ',', line) && (memchr(text, ';', line) || memchr(text, '\t', line)))
		return rfl_fail(err, RFL_EFORMAT, 0,
				"%s:1: columns are separated by %s; use commas", csv->path,
				memchr(text, ';', line) ? "semicolons" : "tabs");

	if ((rc = read_row(csv, &more, err)) != RFL_OK)
		return rc;
	if (!more)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: the file is empty; add a header row",
				csv->path);
	if (csv->nfields > COLUMNS_MAX)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:1: has more than %d columns", csv->path,
				COLUMNS_MAX);
	csv->columns = rfl_arena_array(csv->arena, csv->nfields, sizeof(*csv->columns));
	csv->by_name = rfl_arena_array(csv->arena, csv->nfields, sizeof(*csv->by_name));
	for (size_t i = 0; i < csv->nfields; i++) {
		const char *name = trim(csv->text.data + csv->fields[i], &len);

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
	/* One more, to detect a row that is longer than the header. */
	rfl_reserve(&csv->fields, &csv->fields_cap, csv->ncolumns + 1);

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

/* @param text  NULL: read the file `path` */
enum rfl_rc rfl_csv_open_text(const char *text, size_t len, const char *path, struct rfl_csv **ret,
			      struct rfl_err *err)
{
	struct rfl_csv *csv = rfl_alloc_array(1, sizeof(*csv));
	struct stat st;
	enum rfl_rc rc;

	csv->next_line = 1;
	csv->hashed = true; /* the header may span several blocks */
	csv->hash = rfl_hash64(0, NULL, 0);
	rfl_buf_init(&csv->text, ROW_MAX);
	csv->arena = rfl_arena_new();
	csv->path = rfl_arena_strdup(csv->arena, path);
	csv->parser = rfl_arena_array(csv->arena, 1, sizeof(*csv->parser));
	csv->block = rfl_arena_array(csv->arena, BLOCK_SIZE, 1);
	init_parser(csv->parser);
	if (text) /* the cast is safe: opened for reading only */
		csv->f = fmemopen((void *)(uintptr_t)text, len, "rb");
	else
		csv->f = fopen(path, "rbe");
	if (!csv->f) {
		rc = rfl_fail_errno(err, "%s", path);
		goto done;
	}
	if (!text && fstat(fileno(csv->f), &st) == 0 && S_ISDIR(st.st_mode)) {
		rc = rfl_fail(err, RFL_EIO, EISDIR, "%s: this is a folder, not a file", path);
		goto done;
	}
	if (!text)
		setvbuf(csv->f, NULL, _IONBF, 0); /* `block` is the buffer */
	rc = read_header(csv, err);
	if (rc != RFL_OK)
		goto done;
	csv->torn = csv->hashed = false;
	*ret = csv;
	return RFL_OK;
done:
	rfl_csv_close(csv);
	return rc;
}

enum rfl_rc rfl_csv_open(const char *path, struct rfl_csv **ret, struct rfl_err *err)
{
	return rfl_csv_open_text(NULL, 0, path, ret, err);
}

enum rfl_rc rfl_csv_seek(struct rfl_csv *csv, size_t offset, struct rfl_err *err)
{
	csv->block_at = csv->block_len = 0;
	csv->block_offset = offset;
	if (fseeko(csv->f, (off_t)offset, SEEK_SET) != 0)
		return rfl_fail_errno(err, "%s", csv->path);
	return RFL_OK;
}

void rfl_csv_close(struct rfl_csv *csv)
{
	if (!csv)
		return;
	if (csv->f)
		fclose(csv->f);
	csv_free(csv->parser);
	rfl_buf_fini(&csv->text);
	rfl_arena_free(csv->arena);
	free(csv->fields);
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

static void count_row(int ended_by, void *rows)
{
	(void)ended_by;
	++*(size_t *)rows;
}

bool rfl_csv_record(const char *text, size_t len, size_t *end)
{
	const char *nl = memchr(text, '\n', len);
	const size_t line = nl ? (size_t)(nl - text) + 1 : len;
	struct csv_parser p;
	size_t rows = 0, at = 0;

	*end = line; /* the line after a broken one may begin a record */
	if (!nl || memchr(text, '\0', line))
		return false;
	if (!memchr(text, '"', line))
		return true;
	init_parser(&p);
	while (rows == 0 && at < len) {
		const char *stop = memchr(text + at, '\n', len - at);
		const size_t piece = stop ? (size_t)(stop - text) + 1 - at : 0;

		if (piece == 0 || memchr(text + at, '\0', piece) ||
		    csv_parse(&p, text + at, piece, NULL, count_row, &rows) != piece)
			break;
		at += piece;
	}
	csv_free(&p);
	*end = rows > 0 ? at : line;
	return rows > 0;
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
	return csv->text.data + csv->fields[column];
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
