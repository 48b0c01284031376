/* fields.c - read and write structs as rows of CSV tables. */
#include "base/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void rfl_fields_clear(const struct rfl_field *fields, size_t n, void *row)
{
	for (const struct rfl_field *f = fields; f < fields + n; f++)
		if (f->kind == RFL_FIELD_TEXT)
			*rfl_field_text_at(f, row) = NULL;
		else if (f->kind == RFL_FIELD_INT)
			*rfl_field_int_at(f, row) = RFL_UNKNOWN;
		else
			*rfl_field_real_at(f, row) = (double)NAN;
}

void rfl_fields_free(const struct rfl_field *fields, size_t n, void *row)
{
	for (const struct rfl_field *f = fields; f < fields + n; f++)
		if (f->kind == RFL_FIELD_TEXT) {
			free(*rfl_field_text_at(f, row));
			*rfl_field_text_at(f, row) = NULL;
		}
}

void rfl_field_set(char **field, const char *text)
{
	char *copy = rfl_strdup(text && *text ? text : NULL); /* before free(): `text` may be it */

	free(*field);
	*field = copy;
}

size_t rfl_fields_find(const struct rfl_field *fields, size_t n, const char *name)
{
	size_t i = 0;

	while (i < n && strcmp(fields[i].name, name) != 0)
		i++;
	return i;
}

bool rfl_field_known(const struct rfl_field *f, const void *row)
{
	if (f->kind == RFL_FIELD_INT)
		return *rfl_field_int_at(f, row) != RFL_UNKNOWN;
	if (f->kind == RFL_FIELD_REAL)
		return !isnan(*rfl_field_real_at(f, row));
	return *rfl_field_text_at(f, row) && **rfl_field_text_at(f, row);
}

bool rfl_field_same(const struct rfl_field *f, const void *a, const void *b)
{
	if (f->kind == RFL_FIELD_INT)
		return *rfl_field_int_at(f, a) == *rfl_field_int_at(f, b);
	if (f->kind == RFL_FIELD_REAL)
		return *rfl_field_real_at(f, a) == *rfl_field_real_at(f, b) ||
		       (!rfl_field_known(f, a) && !rfl_field_known(f, b));
	return rfl_text_same(*rfl_field_text_at(f, a), *rfl_field_text_at(f, b));
}

double rfl_field_number(const struct rfl_field *f, const void *row)
{
	if (f->kind == RFL_FIELD_REAL)
		return *rfl_field_real_at(f, row);
	return f->kind == RFL_FIELD_INT && rfl_field_known(f, row)
		       ? (double)*rfl_field_int_at(f, row)
		       : (double)NAN;
}

const char *rfl_field_write(const struct rfl_field *f, const void *row, char number[RFL_NUM_MAX])
{
	const char *text = f->kind == RFL_FIELD_TEXT ? *rfl_field_text_at(f, row) : NULL;

	number[0] = '\0';
	if (f->kind == RFL_FIELD_REAL)
		return rfl_num_exact(rfl_num_shift(*rfl_field_real_at(f, row), -f->power), number);
	if (f->kind == RFL_FIELD_INT && rfl_field_known(f, row))
		snprintf(number, RFL_NUM_MAX, "%" PRId64, *rfl_field_int_at(f, row));
	return text ? text : number;
}

void rfl_fields_write_header(const struct rfl_field *fields, size_t n, struct rfl_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		rfl_csv_write_field(out, fields[i].name);
		rfl_buf_putc(out, i + 1 < n ? ',' : '\n');
	}
}

void rfl_fields_write(const struct rfl_field *fields, size_t n, const void *row,
		      struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];

	for (size_t i = 0; i < n; i++) {
		rfl_csv_write_field(out, rfl_field_write(&fields[i], row, number));
		rfl_buf_putc(out, i + 1 < n ? ',' : '\n');
	}
}

enum rfl_rc rfl_fields_bind(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    int *columns, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		if (fields[i].needed)
			rc = rfl_csv_need(csv, fields[i].name, &columns[i], err);
		else
			columns[i] = rfl_csv_find(csv, fields[i].name);
	return rc;
}

enum rfl_rc rfl_field_read_number(const struct rfl_field *f, const struct rfl_csv *csv, int column,
				  void *row, struct rfl_err *err)
{
	const bool whole = f->kind == RFL_FIELD_INT;
	const char *text = rfl_csv_text(csv, column);
	double *real = rfl_field_real_at(f, row);
	enum rfl_rc rc =
		whole ? rfl_csv_int(csv, column, RFL_UNKNOWN, rfl_field_int_at(f, row), err)
		      : rfl_csv_double(csv, column, real, err);

	if (rc == RFL_OK && text[0] != '\0' && !f->is_signed &&
	    (whole ? *rfl_field_int_at(f, row) < 0 : *real < 0))
		return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu: column '%s': '%s' is negative",
				csv->path, csv->line, f->name, text);
	if (rc == RFL_OK && f->power)
		*real = rfl_num_shift(*real, f->power);
	return rc;
}

enum rfl_rc rfl_fields_read(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    const int *columns, struct rfl_arena *copies, void *row,
			    struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const struct rfl_field *f = &fields[i];
		const char *text = rfl_csv_text(csv, columns[i]);

		if (f->kind != RFL_FIELD_TEXT)
			rc = rfl_field_read_number(f, csv, columns[i], row, err);
		else if (!*text)
			*rfl_field_text_at(f, row) = NULL;
		else
			*rfl_field_text_at(f, row) =
				copies ? rfl_arena_strdup(copies, text) : (char *)(uintptr_t)text;
	}
	return rc;
}
