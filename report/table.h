/*
 * table.h - a table that is written as aligned text, CSV, JSON, Markdown or HTML.
 *
 * CSV and JSON have exact values under column keys. Other formats have rounded values under
 * column titles, and '?' instead of characters that are unsafe on a terminal; HTML also has the
 * exact values, for sorting.
 *
 *	static const struct rfl_column columns[] = {
 *		{ RFL_CELL(struct point, name), .key = "name", .title = "Name" },
 *		{ RFL_CELL(struct point, time_s), .key = "time_s", .title = "Time (ms)",
 *		  .kind = RFL_COLUMN_REAL, .scale = 1e-3 },
 *	};
 *	struct rfl_table *t = rfl_table_of(columns, RFL_ARRAY_LEN(columns), 0);
 *
 *	rfl_table_add(t, points, npoints, sizeof(*points));
 *	rfl_table_note(t, "Times are means of %d runs.", runs);
 *	rfl_table_finish(t, format, out);
 */
#ifndef RFL_REPORT_TABLE_H
#define RFL_REPORT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fields.h"

enum rfl_format {
	RFL_FORMAT_TABLE,
	RFL_FORMAT_CSV,
	RFL_FORMAT_JSON,
	RFL_FORMAT_MD,
	/* of a page (report/page.h), not choices of --format: */
	RFL_FORMAT_HTML,
	RFL_FORMAT_PDF, /**< rendered by page_pdf.c */
};

/** Return true if the format is for people, not for programs. */
static inline bool rfl_format_for_people(enum rfl_format format)
{
	return format != RFL_FORMAT_CSV && format != RFL_FORMAT_JSON;
}

/** "table", "csv", "json", "md", NULL: in the order of enum rfl_format; used for an option. */
extern const char *const rfl_format_names[];

enum rfl_column_kind {
	RFL_COLUMN_TEXT,
	RFL_COLUMN_INT,  /**< digits are grouped by three for people */
	RFL_COLUMN_REAL, /**< shown to people with `digits` significant digits */
};

/** An unknown integer. */
#define RFL_INT_UNKNOWN INT64_MIN

struct rfl_table;

struct rfl_column {
	const char *key;   /**< machine name: "forward_macs" */
	const char *title; /**< shown to people: "Forward MACs" */
	enum rfl_column_kind kind;
	int digits;    /**< significant digits of a real; 0 means 4 */
	int decimals;  /**< digits after the point instead of significant digits; 0: unused */
	double scale;  /**< people see value / scale (1e9 for a title in G); 0 means 1 */
	unsigned when; /**< flags that rfl_table_of() requires to include the column */
	/** For people, a column with the same known value in all rows becomes a note. */
	bool setting;
	/** The row member for rfl_table_add(), set by RFL_CELL(): a const char * or bool, an int,
	 * int64_t or size_t, or a double, according to `kind`. */
	size_t at, size;
	/** Instead of a member: a column of a CSV table, which sets kind and default key and title.
	 * It is in the row or, if `size` is set, in the row to which the member at `at` points. */
	const struct rfl_field *field;
	/** Instead of a member: a function that adds one cell. */
	void (*put)(struct rfl_table *t, const void *row);
};

/** Sets the members of struct rfl_column for a row member. */
#define RFL_CELL(type, member) .at = offsetof(type, member), .size = sizeof(((type *)NULL)->member)

/** A column for a row member; the title and other members follow the key. */
#define RFL_COLUMN(kind_, type, member, key_, ...)                               \
	{                                                                        \
		RFL_CELL(type, member), .kind = RFL_COLUMN_##kind_, .key = key_, \
					.title = __VA_ARGS__                     \
	}

/** Create a table.
 * @param columns  copied; strings are borrowed and must outlive the table */
struct rfl_table *rfl_table_new(const struct rfl_column *columns, size_t n) RFL_WARN_UNUSED;
/** Create a table with those columns for which all flags of `when` are in `given`. */
struct rfl_table *rfl_table_of(const struct rfl_column *columns, size_t n,
			       unsigned given) RFL_WARN_UNUSED;
void rfl_table_free(struct rfl_table *t);
RFL_AUTOPTR_TYPE(table, free);

/** Add a row for each element of an array of structs. */
void rfl_table_add(struct rfl_table *t, const void *rows, size_t n, size_t row_size);

/* Cells are added from left to right; a row ends when its last column is filled. Text is copied. */
void rfl_table_text(struct rfl_table *t, const char *value); /* NULL: unknown */
void rfl_table_int(struct rfl_table *t, int64_t value);      /* or RFL_INT_UNKNOWN */
void rfl_table_real(struct rfl_table *t, double value);      /* NaN: unknown */

size_t rfl_table_rows(const struct rfl_table *t);

/** Add a line below the text and Markdown forms, such as a convention or a source. Copied. */
void rfl_table_note(struct rfl_table *t, const char *fmt, ...) RFL_PRINTF(2, 3);
/** Add a note for each line of a text. */
void rfl_table_note_lines(struct rfl_table *t, const char *lines);

/** In HTML, number the rows from 0 in this attribute, such as "data-point". Borrowed. */
void rfl_table_number_rows(struct rfl_table *t, const char *attribute);

/** Remove the columns without any known value, and note the settings that are the same everywhere.
 */
void rfl_table_trim(struct rfl_table *t);

/** A table as texts for people. */
struct rfl_table_texts {
	size_t ncolumns, nrows; /**< rows with the row of titles */
	const char **cells;     /**< the titles, then the rows */
	const struct rfl_column *columns;
	size_t nnotes;
	const char *const *notes;
};
/** @param arena  owns the cells; all else is borrowed */
struct rfl_table_texts rfl_table_texts(const struct rfl_table *t, struct rfl_arena *arena);

/** Write the table, of which all rows are complete; JSON is an array of objects. */
void rfl_table_render(const struct rfl_table *t, enum rfl_format format, struct rfl_buf *out);

/** Render a table and free it. For people, it is trimmed before. */
void rfl_table_finish(struct rfl_table *take_t, enum rfl_format format, struct rfl_buf *out);

#endif
