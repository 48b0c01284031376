/*
 * matrix_gaps.h - inside cli/: the runs of a matrix that are not done, those that have the same
 * status and reason in one row.
 */
#ifndef RFL_CLI_MATRIX_GAPS_H
#define RFL_CLI_MATRIX_GAPS_H

#include "ledger/matrix.h"
#include "report/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A run that is not done. Texts are borrowed. */
struct rfl_matrix_gap {
	size_t run;                  /**< as rfl_matrix_coverage counts them */
	const char *status, *reason; /**< NULL: not known */
};

/**
 * A table with a row for each status and reason: the first labels, how many runs. Rows are in the
 * order of the first run of each.
 * @param gaps  are sorted; n 0: nothing is written
 */
enum rfl_rc rfl_matrix_gaps_render(const struct rfl_matrix *m, struct rfl_matrix_gap *gaps,
				   size_t n, enum rfl_format format, struct rfl_buf *out,
				   struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
