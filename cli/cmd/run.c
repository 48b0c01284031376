/*
 * run.c - roofline run: one measured burst of training steps, one row of the ledger.
 */
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/cmd/run_opts.h"

static void join_words(const struct rfl_cli *cli, struct rfl_buf *out)
{
	for (int i = 0; i < cli->argc; i++)
		rfl_buf_printf(out, "%s%s", i ? " " : "", cli->argv[i]);
}

/* A run without its counters is a run all the same. */
static void say_counters(const struct rfl_ledger_row *row)
{
	const char *status = row->counters_status;

	const bool nothing =
		isnan(row->counted_flops_per_step) && isnan(row->counted_dram_bytes_per_step);

	if (status && strcmp(status, "ok") != 0 && !isnan(row->wall_s))
		rfl_log(RFL_LOG_WARN, "counters: %s (the run itself is recorded%s)", status,
			nothing ? "; its work and traffic are counted analytically" : "");
}

/* The line on stdout in any case: label, status and what was measured. A run that is not ok is also
 * our failure, and its reason is that of the command, on stderr: it stands there once. */
static enum rfl_rc conclude(struct rfl_cli *cli, const struct rfl_run_result *result,
			    struct rfl_err *err)
{
	struct rfl_buf line;
	enum rfl_rc rc;

	rfl_buf_init(&line, 0);
	rfl_run_summary(&result->row, &line);
	rc = rfl_buf_check(&line, "summary", err);
	if (rc == RFL_OK)
		rfl_cli_printf(cli, "%s\n", rfl_buf_str(&line));
	rfl_buf_fini(&line);
	if (rc || result->rc == RFL_OK)
		return rc;
	rc = result->rc == RFL_EUNAVAILABLE || strcmp(result->row.status, "unsupported") == 0
		     ? RFL_EUNAVAILABLE
		     : RFL_EFAILED;
	return rfl_fail(err, rc, 0, "%s: %s: %s", result->row.label, result->row.status,
			result->row.error_text ? result->row.error_text : rfl_rc_text(result->rc));
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	struct rfl_run_request request;
	struct rfl_run_result result;
	struct rfl_buf words;
	enum rfl_rc rc = rfl_run_request_of(cli, args, &request, err);

	if (rc)
		return rc;
	rfl_buf_init(&words, 0);
	join_words(cli, &words);
	rc = rfl_run_request_run(cli, &request, rfl_buf_str(&words), NULL, &result, err);
	rfl_buf_fini(&words);
	if (result.recorded) {
		enum rfl_rc concluded;

		say_counters(&result.row);
		concluded = conclude(cli, &result, err);
		rc = rc ? rc : concluded;
		rfl_log(RFL_LOG_INFO, "%s/metrics.csv%s%s%s%s", request.log_dir,
			result.time_log[0] ? ", " : "", result.time_log,
			result.counters_file[0] ? ", " : "", result.counters_file);
	}
	rfl_run_result_fini(&result);
	return rc;
}

const struct rfl_cmd rfl_cmd_run = {
	.name = "run",
	.summary = "one measured training burst",
	.description =
		"Trains a network for a few steps in a process of its own, times them, and appends "
		"one "
		"row to metrics.csv in the log folder, whatever becomes of that process: ok, oom, "
		"timeout, failed, crash, nan, unsupported or interrupted. Times of single steps go "
		"to "
		"steps/<run_id>.csv, the record of the process to time/<label>_<stamp>.txt. With "
		"--counters one more step is run under hardware counters after the timed ones: "
		"its "
		"counts go to counters.csv. Where they cannot be read the run goes on without "
		"them.",
	.example = "roofline run --arch resnet50 --batch-size 8 --synthetic\n"
		   "roofline run --arch vgg16 --batch-size 4 --data images --channels-last --env "
		   "lab_cpu\n"
		   "roofline run --arch resnet50 --synthetic --backend cuda --counters phase",
	.opts = rfl_run_opts,
	.args_size = sizeof(struct rfl_run_args),
	.operands_offset = -1,
	.holds_signals = true,
	.run = run,
};
