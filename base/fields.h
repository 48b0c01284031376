/*
 * fields.h - a struct as a row of a CSV table. A const array has one entry per column: its name,
 * type, member and unit. Functions that read, write, clear and free rows use that array, and so do
 * the tests of the documentation.
 *
 * Unknown is NULL for a text, RFL_UNKNOWN for an integer, NaN for a real, and an empty field.
 */
#ifndef RFL_BASE_FIELDS_H
#define RFL_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csv.h"
#include "base/num.h"

/** An unknown integer; integer columns are counts and sizes, never negative. */
#define RFL_UNKNOWN INT64_C(-1)

enum rfl_field_kind {
	RFL_FIELD_TEXT, /**< char * */
	RFL_FIELD_INT,  /**< int64_t */
	RFL_FIELD_REAL, /**< double */
};

struct rfl_field {
	const char *name, *meaning;
	enum rfl_field_kind kind;
	size_t offset; /**< of the member */
	/** For reals: the member is the value in the file times 10^power, -22 to 22. So -3 for a
	 * column in ms and a member in seconds. */
	int power;
	bool needed; /**< a table without this column is rejected */
};

/** An entry of the array, from a list X(KIND, name, meaning) with members of the same names. */
#define RFL_FIELD(k, structure, n, m)                              \
	{                                                          \
		.name = #n, .meaning = (m), .kind = RFL_FIELD_##k, \
		.offset = offsetof(structure, n)                   \
	}

#define RFL_FIELD_C_TEXT char *
#define RFL_FIELD_C_INT  int64_t
#define RFL_FIELD_C_REAL double

/** The member of a row. The result may be written to only if the row may. */
static inline char **rfl_field_text_at(const struct rfl_field *f, const void *row)
{
	return (char **)(void *)((char *)(uintptr_t)row + f->offset);
}
static inline int64_t *rfl_field_int_at(const struct rfl_field *f, const void *row)
{
	return (int64_t *)(void *)((char *)(uintptr_t)row + f->offset);
}
static inline double *rfl_field_real_at(const struct rfl_field *f, const void *row)
{
	return (double *)(void *)((char *)(uintptr_t)row + f->offset);
}

/** Set every member to unknown. */
void rfl_fields_clear(const struct rfl_field *fields, size_t n, void *row);

/** Free the texts, which must belong to the row, and set them to NULL. */
void rfl_fields_free(const struct rfl_field *fields, size_t n, void *row);

/** Replace a text owned by a row by a copy; NULL and "" set it to unknown. RFL_ENOMEM. */
enum rfl_rc rfl_field_set(char **field, const char *text, struct rfl_err *err) RFL_WARN_UNUSED;

/** The index of a column; n: no such column. */
size_t rfl_fields_find(const struct rfl_field *fields, size_t n, const char *name);

bool rfl_field_known(const struct rfl_field *f, const void *row);
bool rfl_field_same(const struct rfl_field *f, const void *a, const void *b);

/** The number as a double; NaN: unknown, or a text. */
double rfl_field_number(const struct rfl_field *f, const void *row);

/** The text as written to the file, "" if unknown. @return `number`, or the text of the row */
const char *rfl_field_write(const struct rfl_field *f, const void *row, char number[RFL_NUM_MAX]);

/** Append the header, or a row. */
void rfl_fields_write_header(const struct rfl_field *fields, size_t n, struct rfl_buf *out);
void rfl_fields_write(const struct rfl_field *fields, size_t n, const void *row,
		      struct rfl_buf *out);

/** Find the columns of a table by name: -1 if absent. RFL_EFORMAT if a needed one is absent. */
enum rfl_rc rfl_fields_bind(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    int *columns, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a number of the current row into its member. RFL_EFORMAT with file, line, column. */
enum rfl_rc rfl_field_read_number(const struct rfl_field *f, const struct rfl_csv *csv, int column,
				  void *row, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read the current row.
 * @param columns  of rfl_fields_bind()
 * @param own      true: texts are copies owned by the row, which was cleared or read before; false:
 *                 they belong to the table and are valid until its next row */
enum rfl_rc rfl_fields_read(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    const int *columns, bool own, void *row,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
