/*
 * doctor.c - roofline doctor: one screen that says what works here, what does not, what that
 * means and what to do. The checks are in doctor.c; this file prints them and draws the conclusion.
 */
#include "cli/cmd.h"

#include "base/table.h"
#include "cli/cmd/doctor_checks.h"
#include "cli/put.h"

struct doctor_args {
	int format;
};

static const struct rfl_opt opts[] = {
	RFL_OPT_FORMAT_ROW(offsetof(struct doctor_args, format)),
	{ .name = NULL },
};

static const char *const verdict_names[] = { "ok", "warn", "no" };

static const struct rfl_column columns[] = {
	{ .key = "check", .title = "Check", .kind = RFL_COLUMN_TEXT },
	{ .key = "verdict", .title = "Verdict", .kind = RFL_COLUMN_TEXT },
	{ .key = "needed", .title = "Needed", .kind = RFL_COLUMN_TEXT },
	{ .key = "finding", .title = "Finding", .kind = RFL_COLUMN_TEXT },
	{ .key = "advice", .title = "What to do", .kind = RFL_COLUMN_TEXT },
};

static void print_lines(struct rfl_cli *cli, const struct rfl_doctor *d)
{
	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_doctor_check *c = &d->checks[i];

		rfl_cli_printf(cli, "%-4s  %-10s  %s\n", verdict_names[c->verdict], c->name,
			       c->finding);
		if (c->advice)
			rfl_cli_printf(cli, "%-4s  %-10s  -> %s\n", "", "", c->advice);
	}
}

static enum rfl_rc print_table(struct rfl_cli *cli, const struct rfl_doctor *d,
			       enum rfl_format format, struct rfl_err *err)
{
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < d->n; i++) {
		const struct rfl_doctor_check *c = &d->checks[i];

		rfl_table_text(t, c->name);
		rfl_table_text(t, verdict_names[c->verdict]);
		rfl_table_text(t, c->needed ? "yes" : "no");
		rfl_table_text(t, c->finding);
		rfl_table_text(t, c->advice);
	}
	rc = rfl_cli_put_table(cli, t, format, err);
	rfl_table_free(t);
	return rc;
}

/* The main job: train, count, measure the machine, merge, draw. */
static bool main_job_works(const struct rfl_doctor *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->checks[i].needed && d->checks[i].verdict == RFL_DOCTOR_NO)
			return false;
	return true;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct doctor_args *a = args;
	struct rfl_doctor *d = NULL;
	enum rfl_rc rc;
	bool works;

	rfl_cli_progress(cli, "looking at this machine and its engines ...");
	rc = rfl_doctor_new(cli, &d, err);
	rfl_cli_progress(cli, NULL);
	if (rc != RFL_OK)
		return rc;
	works = main_job_works(d);
	if (a->format == RFL_FORMAT_TABLE) {
		print_lines(cli, d);
		rfl_cli_printf(
			cli, "\n%s\n",
			works ? "The main job works here: train, count, measure the machine, "
				"merge, draw."
			      : "The main job does not work here: see the lines that say no.");
	} else {
		rc = print_table(cli, d, (enum rfl_format)a->format, err);
	}
	rfl_doctor_free(d);
	return rc != RFL_OK || works ? rc : RFL_EFAILED;
}

const struct rfl_cmd rfl_cmd_doctor = {
	.name = "doctor",
	.summary = "say in one screen what works here, what does not, and what to do",
	.description =
		"Every line is ok, warn (it works, but slower or with less than it could) or no "
		"(not "
		"here), followed by what to do about it. The exit code is 0 when the main job "
		"works "
		"(train, count, measure the machine, merge, draw a PNG), and 1 when something that "
		"it needs is missing; a GPU or JPEG support may be missing.",
	.opts = opts,
	.args_size = sizeof(struct doctor_args),
	.operands_offset = -1,
	.run = run,
};
