/*
 * matrix_data.h - inside cli/: the folders of data that runs of a matrix will read, looked at
 * before the first of them begins.
 */
#ifndef RFL_CLI_MATRIX_DATA_H
#define RFL_CLI_MATRIX_DATA_H

#include "cli/cmd.h"
#include "ledger/matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Look at the data of some runs, each folder once for each network and size of image. What cannot
 * be read is logged once, with its place in the file and how many runs it costs.
 * @param runs      as rfl_matrix_coverage counts them
 * @param refusals  per run of the matrix: becomes why the run cannot begin, for free(); stays NULL
 *                  where nothing is wrong
 * @return RFL_OK, whatever was found; RFL_ENOMEM
 */
enum rfl_rc rfl_matrix_data_check(const struct rfl_cli *cli, const struct rfl_matrix *m,
				  const size_t *runs, size_t n, char **refusals,
				  struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
