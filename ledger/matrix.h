/*
 * matrix.h - a run matrix: the wanted runs (matrix.json) and which of them a ledger has. The format
 * of the file: docs/matrix.md.
 *
 * A cell is one configuration; every cell is run `repeats` times. The id of a cell is a hash of its
 * options, so it does not change when the file is reordered or other cells come and go. A run is
 * done when the ledger has a row with its cell and label and status ok.
 */
#ifndef RFL_LEDGER_MATRIX_H
#define RFL_LEDGER_MATRIX_H

#include "ledger/label.h"

/** An option of a run, as in the file; the caller knows the options. */
struct rfl_matrix_option {
	const char *name;          /**< "iters" */
	const char *pointer;       /**< its place: "/environments/0/options/iters" */
	size_t n;                  /**< values; 0: a flag */
	const char *const *values; /**< NULL when n is 0 */
};

struct rfl_matrix_cell {
	char id[17]; /**< 16 hex digits */
	const char *env, *backend, *model, *precision;
	int64_t batch;
	const char *pointer; /**< its part of the file: "/environments/0" */
	size_t noptions;
	const struct rfl_matrix_option *options; /**< by name */
	/** Arguments of `roofline run`, without label and log folder; NULL-terminated. */
	const char *const *args;
};

struct rfl_matrix {
	const char *path, *name;
	int repeats;
	size_t ncells;
	struct rfl_matrix_cell *cells; /**< in the order of the file */
	struct rfl_arena *arena;       /**< owns everything above */
};

/** Read a matrix. @param ret  set on success only; release with rfl_matrix_free()
 * @return RFL_OK; RFL_EFORMAT naming file, JSON path and the fix; RFL_ENOTFOUND for a model */
enum rfl_rc rfl_matrix_load(const char *path, struct rfl_matrix **ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_free(struct rfl_matrix *m);

/** Read a matrix from memory; `name` is used in messages. */
enum rfl_rc rfl_matrix_parse(const char *text, size_t len, const char *name,
			     struct rfl_matrix **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** The label of a run: {env}_{model}_{precision}_bs{batch}_run{repeat}, repeat from 1. */
void rfl_matrix_label(const struct rfl_matrix_cell *cell, int repeat, char ret[RFL_LABEL_MAX + 1]);

enum rfl_matrix_state {
	RFL_MATRIX_DONE,
	RFL_MATRIX_MISSING, /**< no row */
	RFL_MATRIX_FAILED,  /**< rows, none of them ok */
};

/** The rows of one run. */
struct rfl_matrix_run {
	size_t cell;
	int repeat; /**< from 1 */
	enum rfl_matrix_state state;
	/** The row that counts: the last ok one, else the last; NULL if missing. Borrowed. */
	const struct rfl_ledger_row *row;
	size_t ok, failed; /**< number of rows; ok > 1 after a retry */
};

struct rfl_matrix_coverage {
	size_t nruns; /**< ncells * repeats, repeat by repeat: run i is cell i % ncells */
	struct rfl_matrix_run *runs;
	size_t done, missing, failed;
	size_t surplus; /**< ok rows beyond the first of each run */
	size_t foreign; /**< rows of the ledger that belong to no run */
	/** Foreign rows with a label of this file but another cell: they ran with other options. */
	size_t stale;
};

/** Find every run in a ledger (NULL: none yet). A row belongs to a run by its cell and label; a row
 * without a cell (an older ledger, a manual run, a foreign file) by its label or, if that has
 * another form, by env, model, precision and batch, in file order. */
enum rfl_rc rfl_matrix_cover(const struct rfl_matrix *m, const struct rfl_ledger *ledger,
			     struct rfl_matrix_coverage *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_coverage_fini(struct rfl_matrix_coverage *c);

#endif
