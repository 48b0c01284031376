/*
 * put.h - inside cli/: how a command hands its result to standard output, and in which form.
 */
#ifndef RFL_CLI_PUT_H
#define RFL_CLI_PUT_H

#include "base/buf.h"
#include "cli/cmd.h"
#include "report/table.h"

/** The row of --format: a CHOICE in an int, which will hold an enum rfl_format. */
#define RFL_OPT_FORMAT                                                               \
	.letter = 'f', .name = "format", .meta = "FMT", .choices = rfl_format_names, \
	.def = "table", .help = "output format"

/**
 * Print a text that was made in a buffer. Characters that could steer a terminal become '?'.
 *
 * A failed write is not a failure of the command: rfl_cli_main() notices it, reports it once, and
 * exits with 1.
 * @param what  names the text when the buffer has failed
 * @return RFL_OK; RFL_ENOMEM or RFL_EOVERFLOW when the buffer has failed: nothing is printed
 */
enum rfl_rc rfl_cli_put(struct rfl_cli *cli, struct rfl_buf *text, const char *what,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for a text in a format. CSV is data and stays exact, except on a terminal; JSON has
 * escaped such characters. */
enum rfl_rc rfl_cli_put_as(struct rfl_cli *cli, enum rfl_format format, struct rfl_buf *text,
			   const char *what, struct rfl_err *err) RFL_WARN_UNUSED;

/** Render a table, print it in the same way and free it.
 * @param take_table  NULL is one that could not be made: RFL_ENOMEM */
enum rfl_rc rfl_cli_put_table(struct rfl_cli *cli, struct rfl_table *take_table,
			      enum rfl_format format, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write out what is buffered, and keep the reason when that fails. */
void rfl_cli_flush(struct rfl_cli *cli);

#endif
