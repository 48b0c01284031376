/*
 * matrix.h - a run matrix: the requested runs (matrix.json) and their state in a ledger.
 * docs/reference/matrix.md describes the file format.
 *
 * A cell is one configuration; every cell is run `repeats` times. The id of a cell is a hash of its
 * options, so it does not change when cells are reordered, added or removed. A run is done when the
 * ledger has a row with its cell and label and the status ok.
 */
#ifndef RFL_LEDGER_MATRIX_H
#define RFL_LEDGER_MATRIX_H

#include "ledger/label.h"

/** A run option as written in the file. Its name is not checked here. */
struct rfl_matrix_option {
	const char *name;          /**< "iters" */
	const char *pointer;       /**< its JSON pointer: "/environments/0/options/iters" */
	size_t n;                  /**< number of values; 0: a flag */
	const char *const *values; /**< NULL if n is 0 */
};

struct rfl_matrix_cell {
	char id[17]; /**< 16 hex digits */
	const char *env, *backend, *model, *precision;
	const char *file, *net_digest; /**< of a network file; NULL: a model of the zoo */
	int64_t batch;
	const char *pointer; /**< the JSON pointer of its environment: "/environments/0" */
	size_t noptions;
	const struct rfl_matrix_option *options; /**< sorted by name */
	/** Arguments of `roofline run` except the label and the log directory; NULL-terminated. */
	const char *const *args;
};

struct rfl_matrix {
	const char *path, *name;
	int repeats;
	size_t ncells;
	struct rfl_matrix_cell *cells; /**< in file order */
	struct rfl_arena *arena;       /**< owns all texts and cells */
};

/** Read a matrix, or the matrix of a study, which has it as a member or names its file.
 * @param ret  set on success only; release with rfl_matrix_free()
 * @return RFL_OK; RFL_EFORMAT: the message names file, JSON path and fix; RFL_ENOTFOUND: unknown
 * model */
enum rfl_rc rfl_matrix_load(const char *path, struct rfl_matrix **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_free(struct rfl_matrix *m);
RFL_AUTOPTR_TYPE(matrix, free);

/** Read a matrix from memory; `name` is its name in messages. */
enum rfl_rc rfl_matrix_parse(const char *text, size_t len, const char *name,
			     struct rfl_matrix **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the label of a run: {env}_{model}_{precision}_bs{batch}_run{repeat}; repeats count from
 * 1. */
void rfl_matrix_label(const struct rfl_matrix_cell *cell, int repeat, char ret[RFL_LABEL_MAX + 1]);

enum rfl_matrix_state {
	RFL_MATRIX_DONE,
	RFL_MATRIX_MISSING, /**< no row */
	RFL_MATRIX_FAILED,  /**< has rows, but none with status ok and all files */
};

/** A run and its rows. */
struct rfl_matrix_run {
	size_t cell;
	int repeat; /**< from 1 */
	enum rfl_matrix_state state;
	unsigned ok, failed; /**< number of rows; after a retry, ok may exceed 1 */
	/* The row that counts: the last one with status ok and all files, else the last one. */
	const char *status, *reason; /**< NULL: unknown; "files lost" if it is ok otherwise */
	const char *run_id;          /**< NULL: unknown, or the run has at most one ok row */
	double run_s;                /**< its set-up, warm-up and window; NaN: unknown */
	/** The row; NULL if the run is missing, or if rows are not kept. Borrowed. */
	const struct rfl_ledger_row *row;
};

struct rfl_matrix_coverage {
	size_t nruns; /**< ncells * repeats, ordered by repeat: run i is cell i % ncells */
	struct rfl_matrix_run *runs;
	size_t done, missing, failed;
	size_t surplus; /**< additional ok rows after the first of each run */
	size_t foreign; /**< rows that belong to no run */
	/** Foreign rows with a label of this matrix but another cell: their options differ. */
	size_t stale;
	struct rfl_matrix_index *index; /**< private */
};

/** Find every run in a ledger; NULL is an empty ledger. A row belongs to a run by its cell and
 * label. A row without a cell (from an older ledger, a run outside the matrix or another program)
 * is matched by its label or, if the label has another form, by env, model, precision and batch in
 * file order.
 * @param ret  release with rfl_matrix_coverage_fini() */
void rfl_matrix_cover(const struct rfl_matrix *m, const struct rfl_ledger *ledger,
		      struct rfl_matrix_coverage *ret);
/** As above for a file, without keeping its rows in memory.
 * @param path   NULL: no rows
 * @param since  read only the rows after this size of the file; 0: all rows
 * @param ret    release it also after an error */
enum rfl_rc rfl_matrix_cover_file(const struct rfl_matrix *m, const char *path, size_t since,
				  struct rfl_matrix_coverage *ret,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/** The same in steps: rows from elsewhere, which may be freed after each call. */
void rfl_matrix_cover_begin(const struct rfl_matrix *m, struct rfl_matrix_coverage *ret);
void rfl_matrix_cover_row(struct rfl_matrix_coverage *c, const struct rfl_ledger_row *row);
void rfl_matrix_cover_end(struct rfl_matrix_coverage *c);

void rfl_matrix_coverage_fini(struct rfl_matrix_coverage *c);

#endif
