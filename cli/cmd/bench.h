/* bench.h - inside cli/: what the benchmarks share whose runs are a matrix in memory. */
#ifndef RFL_CLI_BENCH_H
#define RFL_CLI_BENCH_H

#include <jansson.h>

#include "cli/cmd/matrix.h"
#include "report/table.h"

/**
 * Find the format of the table, by --format, else by the suffix of --output, and check that the
 * file can be written, before the runs.
 * @param output  NULL: standard output
 * @param given   whether `format` was given
 * @param check   false: no file will be written
 */
enum rfl_rc rfl_bench_output(const char *output, int format, bool given, bool check,
			     enum rfl_format *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Make a matrix of environments. @param name  for messages: "bench lm" */
enum rfl_rc rfl_bench_matrix(const char *name, int64_t repeats, json_t *take_environments,
			     struct rfl_matrix **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Execute what is missing in the ledger. An option that 'roofline run' rejects is reported as
 * there. */
enum rfl_rc rfl_bench_execute(struct rfl_cli *cli, struct rfl_matrix *m,
			      const struct rfl_matrix_execution *how,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
