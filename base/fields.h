/*
 * fields.h - a struct as a row of a CSV table. A const array has one entry per column with its
 * name, type, member and unit. It is used to read, write, clear and free rows, and by tests of the
 * documentation. An unknown value is NULL for a text, RFL_UNKNOWN for an integer and NaN for a
 * real; its field is empty.
 */
#ifndef RFL_BASE_FIELDS_H
#define RFL_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/num.h"

RFL_API_BEGIN

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
	size_t offset; /**< offset of the member */
	/** For reals: the member is the value in the file times 10^power, with power from -22 to
	 * 22; -3 for a column in ms and a member in seconds. */
	int power;
	bool needed;    /**< a table without this column is rejected */
	bool is_signed; /**< a real that may be below 0; other negative numbers are rejected */
};

/** An array entry from a list X(KIND, name, meaning); members of the struct have the same names.
 * KIND is TEXT, INT, REAL, or SIGNED for a real that may be negative. */
#define RFL_FIELD(k, structure, n, m)                                                  \
	{                                                                              \
		.name = #n, .meaning = (m), .kind = RFL_FIELD_##k,                     \
		.offset = offsetof(structure, n), .is_signed = RFL_FIELD_IS_SIGNED_##k \
	}

#define RFL_FIELD_SIGNED RFL_FIELD_REAL

#define RFL_FIELD_C_TEXT   char *
#define RFL_FIELD_C_INT    int64_t
#define RFL_FIELD_C_REAL   double
#define RFL_FIELD_C_SIGNED double

#define RFL_FIELD_IS_SIGNED_TEXT   false
#define RFL_FIELD_IS_SIGNED_INT    false
#define RFL_FIELD_IS_SIGNED_REAL   false
#define RFL_FIELD_IS_SIGNED_SIGNED true

/** Address of a field's member in a row; writable only if the row is. */
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

/** Replace a text owned by a row with a copy; NULL and "" mean unknown. */
void rfl_field_set(char **field, const char *text);

/** The index of a column, or n if there is none. */
size_t rfl_fields_find(const struct rfl_field *fields, size_t n, const char *name);

bool rfl_field_known(const struct rfl_field *f, const void *row);
bool rfl_field_same(const struct rfl_field *f, const void *a, const void *b);

/** A member as a double; NaN if unknown or a text. */
double rfl_field_number(const struct rfl_field *f, const void *row);

/** A member as text for the file, "" if unknown. @return `number`, or the text of the row */
const char *rfl_field_write(const struct rfl_field *f, const void *row, char number[RFL_NUM_MAX]);

/** Append the header or a row to `out`. */
void rfl_fields_write_header(const struct rfl_field *fields, size_t n, struct rfl_buf *out);
void rfl_fields_write(const struct rfl_field *fields, size_t n, const void *row,
		      struct rfl_buf *out);

/** Find the columns of a table by name; -1 if absent. RFL_EFORMAT if a required one is absent. */
enum rfl_rc rfl_fields_bind(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    int *columns, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a number into its member of the row. RFL_EFORMAT, also for a negative number in a column
 * that has none, names file, line and column. */
enum rfl_rc rfl_field_read_number(const struct rfl_field *f, const struct rfl_csv *csv, int column,
				  void *row, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read the current row.
 * @param columns  from rfl_fields_bind()
 * @param copies   owns copies of the texts; NULL: they are borrowed from the table until its next
 *                 row */
enum rfl_rc rfl_fields_read(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    const int *columns, struct rfl_arena *copies, void *row,
			    struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
