/*
 * matrix_grid.h - inside cli/: how much of a matrix is done, in a table of models and batch sizes
 * for each environment and precision.
 */
#ifndef RFL_CLI_MATRIX_GRID_H
#define RFL_CLI_MATRIX_GRID_H

#include "ledger/matrix.h"
#include "report/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is known of one cell: of its runs that were asked for, and of rows beyond them. */
struct rfl_matrix_share {
	bool chosen;
	size_t asked, done, failed, surplus;
};

/** @param shares  per cell; those that are not chosen are left out */
enum rfl_rc rfl_matrix_grid_render(const struct rfl_matrix *m,
				   const struct rfl_matrix_share *shares, enum rfl_format format,
				   struct rfl_buf *out, struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
