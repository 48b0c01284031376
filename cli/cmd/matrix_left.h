/*
 * matrix_left.h - inside cli/: how long the rest of a matrix will take, from the runs of it that
 * are known.
 */
#ifndef RFL_CLI_MATRIX_LEFT_H
#define RFL_CLI_MATRIX_LEFT_H

#include "ledger/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Known times, and of how many samples or runs they are. */
struct rfl_matrix_known {
	double seconds, amount;
};

/** Sums of known times. Zeroed is empty. */
struct rfl_matrix_left {
	const struct rfl_matrix *m;
	size_t *kinds;                    /**< per cell: the number of its kind */
	struct rfl_matrix_known *of_cell; /**< of the runs of each cell */
	struct rfl_matrix_known *of_kind; /**< of the samples of each kind */
	struct rfl_matrix_known of_all;   /**< of all runs */
};

/** @param ret  release with rfl_matrix_left_fini() in any case */
enum rfl_rc rfl_matrix_left_init(const struct rfl_matrix *m, struct rfl_matrix_left *ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_matrix_left_fini(struct rfl_matrix_left *l);

/** A run of a cell took this long; NaN is passed over. */
void rfl_matrix_left_add(struct rfl_matrix_left *l, size_t cell, double seconds);

/** The time of a run by its row: set-up, warm-up and window; NaN when the row does not say. */
double rfl_matrix_left_of_row(const struct rfl_ledger_row *row);

/**
 * What a run of a cell is expected to take: as other runs of the cell, else as its model does per
 * sample, else as the average run. NaN: nothing is known.
 */
double rfl_matrix_left_cell(const struct rfl_matrix_left *l, size_t cell);

/** "about 14 min left"; "" when seconds is NaN. @return out */
const char *rfl_matrix_left_text(double seconds, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
