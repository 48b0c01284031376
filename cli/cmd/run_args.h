/*
 * run_args.h - the options of `roofline run`, for those who start runs: the command itself, and
 * the matrix, whose cells are such options.
 */
#ifndef RFL_CLI_RUN_ARGS_H
#define RFL_CLI_RUN_ARGS_H

#include "cli/cmd.h"
#include "runner/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parsed options; private to cli/cmd/run_args.c and cli/cmd/run.c. */
struct rfl_run_args;

/** One run, parsed and checked, not begun. */
struct rfl_run_request {
	struct rfl_run_args *args; /**< owned; texts below point into it and into argv */
	struct rfl_run_config config;
	const char *label, *env, *log_dir;
	enum rfl_oom_policy oom;
	double timeout_s;
	bool in_process;
	bool local_world; /**< the processes of config.world are ours to start */
	bool detect_data; /**< of which kind the data is, its folder says when the run begins */
};

/**
 * Parse what would stand behind `roofline run`.
 * @param argv  argv[0] is not looked at; must outlive the request
 * @param ret   release with rfl_run_request_fini() in any case
 * @return RFL_OK; RFL_EUSAGE
 */
enum rfl_rc rfl_run_request_parse(const struct rfl_cli *cli, int argc, char *const *argv,
				  struct rfl_run_request *ret, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_run_request_fini(struct rfl_run_request *r);

/**
 * Run it: signals are caught, progress is shown, the row is written. With --oom shrink or search
 * there may be several rows; the result is of the one that was asked for, or of the largest that
 * fits.
 * @param command_line  for the records
 * @param cell          id of the matrix's cell; NULL: none
 */
enum rfl_rc rfl_run_request_run(struct rfl_cli *cli, const struct rfl_run_request *r,
				const char *command_line, const char *cell,
				struct rfl_run_result *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
