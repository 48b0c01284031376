/* run_config.h - inside cli/: the options of `roofline run`, also used by run matrices. */
#ifndef RFL_CLI_RUN_CONFIG_H
#define RFL_CLI_RUN_CONFIG_H

#include "cli/cmd.h"
#include "runner/run.h"

/** The parsed options; must be zeroed before parsing. */
struct rfl_run_args {
	struct rfl_run_config config;
#define RFL_RUN_C_LIST         struct rfl_opt_list
#define RAW(kind, member, ...) RFL_RUN_C_##kind member;
#include "runner/run/facts.inc"
	struct {
#define FACT(kind, member, ...) bool member;
#include "runner/run/facts.inc"
	} given; /**< whether the user wrote the option */
};

/** The option rows, terminated by a row with name NULL. */
extern const struct rfl_opt rfl_run_opts[];

#define RFL_RUN_NO_GPU "running on CPU: no usable GPU (-v shows the reason)"

/** Reject contradictory options and complete the configuration. @return RFL_OK; RFL_EUSAGE */
enum rfl_rc rfl_run_args_settle(const struct rfl_cli *cli, const struct rfl_run_args *args,
				struct rfl_run_config *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Parse the options of `roofline run`.
 * @param argv  argv[0] is ignored; the strings must outlive the configuration, which points to them
 * @return RFL_OK; RFL_EUSAGE
 */
enum rfl_rc rfl_run_config_parse(const struct rfl_cli *cli, int argc, char *const *argv,
				 struct rfl_run_config *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Replace the options that say where a run is recorded, and what happens if it fails, by their
 * defaults, and those that its row knows better by what ran. */
void rfl_run_forget_records(struct rfl_run_config *config, const struct rfl_ledger_row *row);

/** Append the command that repeats a run: for struct rfl_run_host. */
void rfl_run_write_command(const struct rfl_run_config *config, const struct rfl_ledger_row *row,
			   struct rfl_buf *out);
void rfl_train_write_command(const struct rfl_run_config *config, const struct rfl_ledger_row *row,
			     struct rfl_buf *out);

/**
 * Execute a run: catch signals, show progress, write the row. With --oom shrink or search, there
 * may be several rows; the result is for the requested batch, or of the largest that fits.
 * @param command_line  recorded with the run
 * @param cell          id of the cell in the matrix; NULL: none
 */
enum rfl_rc rfl_cli_run(struct rfl_cli *cli, const struct rfl_run_config *config,
			const char *command_line, const char *cell, struct rfl_run_result *ret,
			struct rfl_err *err) RFL_WARN_UNUSED;

#endif
