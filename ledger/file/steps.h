/*
 * steps.h - internal to ledger/: the steps of reading a table and of appending to the ledger.
 * Functions that append are called with the lock of metrics.csv held.
 */
#ifndef RFL_LEDGER_LEDGER_FILE_H
#define RFL_LEDGER_LEDGER_FILE_H

#include <sys/types.h>

#include "ledger/ledger.h"

/* Size limit for a ledger that is read into memory, to be repaired or upgraded. */
#define RFL_LEDGER__BYTES_MAX ((size_t)4 << 30)

/* Columns of repeats that are read. */
#define RFL_LEDGER__RUNS_MOST 64

/* Incomplete rows that are named in messages; more are counted. */
#define RFL_LEDGER__NAMED_MAX 10

/* The source of a ledger column in a table. */
struct rfl_ledger_source {
	int column;       /* index in the table; -1: none */
	double scale;     /* factor for numbers; 0: none */
	const char *text; /* value of every row if there is no column; borrowed; NULL: unknown */
	/* text with {NAME} for the value of column NAME; `column` is the first; NULL: none */
	const char *pattern;
	bool foreign; /* accept "True", "no" and "32.0" as integers, and "1.7 +- 0.2" as a mean */
	bool of_runs; /* its deviation is samples_per_s_std */
	int nruns;    /* columns of repeats from `column` on, whose mean is the value; 0: none */
};

/* Find the wanted columns of a ledger (NULL: all) by name. */
void rfl_ledger__bind(const struct rfl_csv *csv, const bool *wanted,
		      struct rfl_ledger_source from[RFL_LEDGER_NREAD]);

/* Append the remaining rows of a table, or the next batch, to a ledger.
 * @param more  set if rows may remain; always false if the ledger has no batch size
 * @return RFL_OK; RFL_EFORMAT with file, line and column: the preceding rows may have been added */
enum rfl_rc rfl_ledger__read(struct rfl_csv *csv,
			     const struct rfl_ledger_source from[RFL_LEDGER_NREAD],
			     struct rfl_ledger *to, bool *more,
			     struct rfl_err *err) RFL_WARN_UNUSED;

typedef enum rfl_rc rfl_ledger__reader(struct rfl_csv *csv, struct rfl_ledger *to, void *ctx,
				       struct rfl_err *err);

/* Open a file under a shared lock and call `read`. If the file is a ledger and cannot be read, call
 * `read` again without the torn rows. */
enum rfl_rc rfl_ledger__read_file(const char *path, rfl_ledger__reader *read, void *ctx,
				  struct rfl_ledger *to, struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_span;

/* Convert what another program writes about points, but not as a table; `csv` stays empty if it is
 * something else. @param path  for messages */
enum rfl_rc rfl_foreign__text(struct rfl_span text, const char *path, struct rfl_buf *csv,
			      struct rfl_err *err) RFL_WARN_UNUSED;

struct rfl_column_map;

/* Convert the rules of a map into sources, which borrow its texts. RFL_EINVAL names a column that
 * the table lacks and lists the columns that it has. */
enum rfl_rc rfl_column_map__bind(const struct rfl_column_map *map, const struct rfl_csv *csv,
				 struct rfl_ledger_source from[RFL_LEDGER_NREAD],
				 struct rfl_err *err) RFL_WARN_UNUSED;

/* Find the column that is named by `source` up to `end`, without blanks around it. -1: none. */
int rfl_column_map__named(const struct rfl_csv *csv, const char *source, const char *end);

/* Milliseconds in a unit of time; NaN: it is not one. */
double rfl_column_map__ms(const char *unit);

/* The number of columns of repeats ("Run 1", "Run 2") that begin with this one; 0: it is not one.
 */
int rfl_column_map__runs(const struct rfl_csv *csv, int column);

/* Append the column names of a table to a message, at most 40: "'a', 'b'". */
void rfl_column_map__list(const struct rfl_csv *csv, struct rfl_buf *out);

/* Rows as text: complete records with these columns. */
struct rfl_ledger__rows {
	const char *const *columns;
	size_t ncolumns;
	const struct rfl_buf *text;
};

/* Append rows as rfl_ledger_append_rows() does. Columns of theirs that the file does not have are
 * added to it. */
enum rfl_rc rfl_ledger__append(const char *path, const struct rfl_ledger__rows *rows,
			       struct rfl_err *err) RFL_WARN_UNUSED;

/* Write a header: the columns of this version, then the list's other columns. */
void rfl_ledger__put_header(const char *const *columns, size_t n, struct rfl_buf *out);

/* Add the rows that the mirror lacks. A failure only causes a warning because the next append
 * repairs the mirror.
 * @param header  the ledger, opened
 * @param before  its size before rows were added
 * @param whole   build the mirror anew if necessary, even if the ledger is large */
void rfl_ledger__mirror(const char *path, const struct rfl_csv *header, off_t before, bool whole);

/* Replace the suffix of "logs/metrics.csv", for example to get "logs/metrics.jsonl". The caller
 * frees the name. */
char *rfl_ledger__beside(const char *path, const char *suffix);

/* Remove the file with that suffix, which is derived from the ledger, if it exists. */
void rfl_ledger__drop(const char *path, const char *suffix);

/* Return true if the file is empty or only contains the beginning of a ledger header, possibly
 * followed by zero bytes: it was cut short on creation and has no rows. Return false if it cannot
 * be read. */
bool rfl_ledger__is_cut_header(const char *path);

/* Open a ledger without its torn records and report each of them.
 * @param why  the error from reading the unchanged file, returned if no record is torn
 * @param text  empty buffer for the table; release it after the table
 * @param hash  set to the hash of the unchanged file; may be NULL */
enum rfl_rc rfl_ledger__open_whole(const char *path, const struct rfl_err *why,
				   struct rfl_buf *text, uint64_t *hash, struct rfl_csv **ret,
				   struct rfl_err *err) RFL_WARN_UNUSED;

/* Check that torn records can be moved to <name>.torn.csv. */
enum rfl_rc rfl_ledger__check_torn(const char *path, struct rfl_err *err) RFL_WARN_UNUSED;

/* Move torn records to <name>.torn.csv and report each of them. The file is truncated, or replaced
 * if complete rows follow a torn row.
 * @param mended  set if the file was changed */
enum rfl_rc rfl_ledger__mend(int fd, const char *path, bool *mended,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* Replace the file by one with the current columns, followed by its foreign columns and by the
 * columns of a list. The old file is kept as <name>.v<version>.csv, with a warning. */
enum rfl_rc rfl_ledger__upgrade(const char *path, const char *const *columns, size_t n,
				struct rfl_err *err) RFL_WARN_UNUSED;

#endif
