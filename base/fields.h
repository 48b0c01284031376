/*
 * fields.h - a struct as a row of a CSV table. A const array has one entry per column: its name,
 * its type, the member that holds it and the unit of its text. Reading, writing, clearing and
 * freeing of rows, the header and the documentation tests follow from that array.
 *
 * Not known is NULL for a text, RFL_UNKNOWN for an integer, NaN for a real, and an empty field.
 */
#ifndef RFL_BASE_FIELDS_H
#define RFL_BASE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/csv.h"
#include "base/num.h"

/** An integer that is not known: counts and sizes, which no column has below 0. */
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
	/** Of a real: the member is the text's value times 10^power, so -3 for a column in ms whose
	 * member is in seconds. One multiplication or division by a power of ten, -22 to 22. */
	int power;
	bool needed; /**< a table without this column is refused */
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

/** The members of a row. The text is of a row that may be written to, whatever `row` says. */
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

/** Make every member "not known". */
void rfl_fields_clear(const struct rfl_field *fields, size_t n, void *row);

/** Free the texts, where they belong to the row, and make them NULL. */
void rfl_fields_free(const struct rfl_field *fields, size_t n, void *row);

/** Replace a text that belongs to a row by a copy; NULL and "" make it "not known". RFL_ENOMEM. */
enum rfl_rc rfl_field_set(char **field, const char *text, struct rfl_err *err) RFL_WARN_UNUSED;

/** The place of the column with this name; n: there is none. */
size_t rfl_fields_find(const struct rfl_field *fields, size_t n, const char *name);

bool rfl_field_known(const struct rfl_field *f, const void *row);
bool rfl_field_same(const struct rfl_field *f, const void *a, const void *b);

/** A real, or an integer as one; NaN: not known, or a text. */
double rfl_field_number(const struct rfl_field *f, const void *row);

/** As the file has it, "" when not known. @return `number`, or the row's own text */
const char *rfl_field_write(const struct rfl_field *f, const void *row, char number[RFL_NUM_MAX]);

/** Append the header, or a row. */
void rfl_fields_write_header(const struct rfl_field *fields, size_t n, struct rfl_buf *out);
void rfl_fields_write(const struct rfl_field *fields, size_t n, const void *row,
		      struct rfl_buf *out);

/** Find the columns in a table by their names: -1 where it has none. RFL_EFORMAT for one that is
 * needed. */
enum rfl_rc rfl_fields_bind(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    int *columns, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read a number of the current row into its member. RFL_EFORMAT with file, line, column. */
enum rfl_rc rfl_field_read_number(const struct rfl_field *f, const struct rfl_csv *csv, int column,
				  void *row, struct rfl_err *err) RFL_WARN_UNUSED;

/** Read the current row.
 * @param columns  of rfl_fields_bind()
 * @param own      texts are copies that belong to the row, which was cleared or read before; else
 *                 they are the table's, and valid until its next row */
enum rfl_rc rfl_fields_read(const struct rfl_field *fields, size_t n, const struct rfl_csv *csv,
			    const int *columns, bool own, void *row,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
