/*
 * csv_number.c - the cells of a row as numbers.
 */
#include "base/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/csv_parts.h"
#include "base/num.h"

/* "file:line: column 'x'" for the messages of the number parsers. */
static void name_cell(const struct rfl_csv *csv, int column, char *out, size_t size)
{
	snprintf(out, size, "%s:%zu: column '%s'", rfl_csv_path(csv), rfl_csv_line(csv),
		 rfl_csv_column(csv, (size_t)column));
}

/* A field without the blanks around it; a field of blanks is empty. */
static bool copy_number(const char *text, char *out, size_t size)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (len >= size)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

enum rfl_rc rfl_csv_double(const struct rfl_csv *csv, int column, double *ret, struct rfl_err *err)
{
	const char *text = rfl_csv_text(csv, column);
	char number[512], cell[1024];

	if (text[0] >= '0' && text[0] <= '9' && rfl_num_parse_double(text, "", ret, NULL) == RFL_OK)
		return RFL_OK; /* without blanks around it, as nearly all are */
	if (!copy_number(text, number, sizeof(number))) {
		name_cell(csv, column, cell, sizeof(cell));
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%.40s...' is not a number", cell, text);
	}
	if (number[0] == '\0') {
		*ret = NAN;
		return RFL_OK;
	}
	if (rfl_num_parse_double(number, "", ret, NULL) == RFL_OK)
		return RFL_OK;
	name_cell(csv, column, cell, sizeof(cell));
	return rfl_num_parse_double(number, cell, ret, err);
}

/* Up to 18 digits and nothing else, which is what nearly all integers of a file are. */
static bool read_digits(const char *text, int64_t *ret)
{
	int64_t value = 0;
	size_t n = 0;

	for (; text[n] >= '0' && text[n] <= '9' && n <= 18; n++)
		value = 10 * (n < 18 ? value : 0) + (text[n] - '0');
	if (n == 0 || n > 18 || text[n] != '\0')
		return false;
	*ret = value;
	return true;
}

enum rfl_rc rfl_csv_int(const struct rfl_csv *csv, int column, int64_t missing, int64_t *ret,
			struct rfl_err *err)
{
	const char *text = rfl_csv_text(csv, column);
	char number[512], cell[1024];

	if (text[0] == '\0' || read_digits(text, ret)) {
		*ret = text[0] == '\0' ? missing : *ret;
		return RFL_OK;
	}

	if (!copy_number(text, number, sizeof(number))) {
		name_cell(csv, column, cell, sizeof(cell));
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: '%.40s...' is not an integer", cell,
				text);
	}
	if (number[0] == '\0') {
		*ret = missing;
		return RFL_OK;
	}
	if (rfl_num_parse_int(number, "", ret, NULL) == RFL_OK)
		return RFL_OK;
	name_cell(csv, column, cell, sizeof(cell));
	return rfl_num_parse_int(number, cell, ret, err);
}
