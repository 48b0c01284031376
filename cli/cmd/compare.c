/* compare.c - roofline compare: report whether one ledger is slower than another. */
#include "cli/cmd.h"

#include "base/log.h"
#include "cli/inputs.h"
#include "report/runs.h"

struct compare_args {
	struct rfl_opt_list files, fail_if;
	struct rfl_cli_runs_args in;
	double threshold;
	const char *baseline;
	int format, by; /* by: 1 + index of rfl_facts; 0: not given */
};

#define OPT(kind, member, ...) RFL_OPT(struct compare_args, kind, member, __VA_ARGS__)

static const char *const failures[] = { "slower", "faster", "unclear", "missing", NULL };

static const struct rfl_opt opts[] = {
	OPT(LIST, in.metrics, .name = "metrics", .often = true, .meta = "FILE",
	    .project = "metrics",
	    .help = "ledgers that contain both sides, for --env A B or --by without files"),
	OPT(LIST, in.env, .name = "env", .often = true, .meta = "NAME",
	    .help = "environments of A and B; a single name is used for both; with --by, "
		    "environments to include"),
	OPT(CHOICE, by, .name = "by", .often = true, .meta = "COLUMN", .choices = rfl_fact_names,
	    .first = 1, .help = "compare configurations that differ only in this column"),
	OPT(TEXT, baseline, .name = "baseline", .often = true, .meta = "VALUE",
	    .help = "value of the --by column for side A; default: the value with the most "
		    "comparisons and, of several, the smallest number or the slowest name"),
	OPT(CHOICE, in.metric, .name = "metric", .often = true, .meta = "NAME",
	    .choices = rfl_ledger_speed_names, .def = "samples_per_s", .help = "metric to compare"),
	OPT(REAL, threshold, .name = "threshold", .often = true, .meta = "PERCENT",
	    .def = RFL_QUOTED(RFL_COMPARE_PERCENT), .rmin = 0, .rmax = 100,
	    .help = "smallest relevant difference in percent"),
	OPT(LIST, fail_if, .name = "fail-if", .often = true, .meta = "VERDICT", .choices = failures,
	    .help = "verdicts that lead to exit code 1"),
	OPT(LIST, in.model, RFL_OPT_ONLY("model", "models")),
	OPT(LIST, in.precision, RFL_OPT_ONLY("precision", "precisions")),
	OPT(LIST, in.map, RFL_OPT_MAP),
	OPT(CHOICE, format, RFL_OPT_FORMAT),
	{ .name = NULL },
};

struct side {
	const char *name; /* name to print */
	struct rfl_runs *runs;
	struct rfl_repeats *repeats;
};

/* A is side 0, B is side 1. If both are environments of one ledger, they share its runs. */
static enum rfl_rc load_side(const struct compare_args *a, size_t i, struct side *s,
			     struct rfl_err *err)
{
	const bool two_files = !a->by && a->files.n == 2;
	const bool two_envs = !a->by && a->in.env.n == 2;
	const char *const *paths = a->in.metrics.items;
	size_t npaths = a->in.metrics.n;
	enum rfl_rc rc;

	if (!a->by)
		s->name = two_files ? a->files.items[i] : a->in.env.items[i];
	if (a->files.n > 0) {
		paths = &a->files.items[two_files ? i : 0];
		npaths = two_files ? 1 : a->files.n;
	}
	rc = rfl_cli_load_repeats(
		paths, npaths, &a->in, two_envs ? &a->in.env.items[i] : a->in.env.items,
		two_envs ? 1 : a->in.env.n, RFL_ROWS_SHORT, &s->runs, &s->repeats, err);
	if (rc == RFL_OK && s->repeats->n == 0)
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "%s: no runs to compare; name another ledger, or select other runs",
			      paths[0]);
	return rc;
}

/* Fail with one message for all verdicts of --fail-if; name the first configuration of each. */
static enum rfl_rc check_verdicts(const struct rfl_comparison *c,
				  const struct rfl_opt_list *fail_if, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };

	for (size_t v = 0; v < RFL_SPEED_VERDICTS; v++) {
		const struct rfl_ledger_row *row;
		size_t i = 0;

		if (!rfl_opt_list_has(fail_if, rfl_speed_verdict_names[v]) || c->count[v] == 0)
			continue;
		while ((size_t)c->pairs[i].verdict != v)
			i++;
		row = (c->pairs[i].a ? c->pairs[i].a : c->pairs[i].b)->row;
		rfl_buf_printf(&text, "%s%zu of %zu configurations %s %s (first: %s %s bs%lld)",
			       text.len ? "; " : "", c->count[v], c->n,
			       c->count[v] == 1 ? "is" : "are", rfl_speed_verdict_names[v],
			       row->model, row->precision, (long long)row->batch);
	}
	return text.len ? rfl_fail(err, RFL_EFAILED, 0, "%s", rfl_buf_str(&text)) : RFL_OK;
}

/* Compare both sides, or one ledger by a column, and add notes to the repeats. */
static enum rfl_rc compare(struct rfl_cli *cli, const struct compare_args *a, struct side sides[2],
			   struct rfl_comparison **ret, struct rfl_buf *notes, struct rfl_err *err)
{
	const struct rfl_fact *by = a->by ? &rfl_facts[a->by - 1] : NULL;
	struct rfl_err why = RFL_ERR_INIT;
	char number[RFL_NUM_MAX];
	enum rfl_rc rc = load_side(a, 0, &sides[0], err);

	if (rc)
		return rc;
	rfl_buf_puts(notes, rfl_buf_str(&sides[0].repeats->notes));
	if (!by) {
		if (a->files.n != 2)
			sides[1].runs = sides[0].runs;
		if ((rc = load_side(a, 1, &sides[1], err)))
			return rc;
		rfl_buf_puts(notes, rfl_buf_str(&sides[1].repeats->notes));
		*ret = rfl_compare(sides[0].repeats, sides[1].repeats, a->threshold / 100);
		return RFL_OK;
	}
	rc = rfl_compare_by(sides[0].repeats, by, a->baseline, a->threshold / 100, ret, &why);
	if (rc)
		return rfl_fail(err, rc, 0, "%s: %s", rc == RFL_ENOTFOUND ? "--baseline" : "--by",
				why.msg);
	sides[0].name = rfl_arena_printf(
		cli->arena, "%s %s", by->name,
		rfl_field_write(&rfl_ledger_fields[by->column], (*ret)->baseline, number));
	if (!a->baseline)
		rfl_buf_printf(notes, "A is %s; --baseline selects another\n", sides[0].name);
	sides[1].name = "the value in the row";
	return RFL_OK;
}

static void release(struct side (*sides)[2])
{
	if ((*sides)[1].runs != (*sides)[0].runs)
		rfl_runs_free((*sides)[1].runs);
	rfl_runs_free((*sides)[0].runs);
	rfl_repeats_free((*sides)[0].repeats);
	rfl_repeats_free((*sides)[1].repeats);
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct compare_args *a = args;
	RFL_CLEANUP(release) struct side sides[2] = { { .name = NULL }, { .name = NULL } };
	const enum rfl_format format = (enum rfl_format)a->format;
	RFL_AUTOPTR(comparison) c = NULL;
	RFL_AUTO(buf) notes = { .len = 0 };
	enum rfl_rc rc;

	if (!a->by && a->in.env.n > 2)
		return rfl_usage(err, "--env: %zu names given; use at most two", a->in.env.n);
	if (!a->by && (a->files.n > 2 || (a->files.n != 2 && a->in.env.n != 2)))
		return rfl_usage(
			err,
			"name two ledgers, two environments with --env A B, or a column with --by");
	if (!a->by && (a->files.n != 2 || strcmp(a->files.items[0], a->files.items[1]) == 0) &&
	    (a->in.env.n != 2 || strcmp(a->in.env.items[0], a->in.env.items[1]) == 0))
		return rfl_usage(err, "both sides are %s; name another one",
				 (a->files.n == 2 ? a->files : a->in.env).items[1]);
	if (a->baseline && !a->by)
		return rfl_usage(err, "--baseline requires a column; name it with --by");
	if ((rc = compare(cli, a, sides, &c, &notes, err)))
		return rc;
	if (c->n == 0)
		return rfl_fail(err, RFL_EFAILED, 0,
				"nothing to compare: no configuration differs from one with %s "
				"only in %s; name another --baseline",
				sides[0].name, c->by->name);
	rc = rfl_cli_put_table(
		cli,
		rfl_comparison_table(c, rfl_format_for_people(format),
				     (const char *const[2]){ sides[0].name, sides[1].name },
				     rfl_buf_str(&notes)),
		format, err);
	if (rc)
		return rc;
	if (!rfl_format_for_people(format))
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&notes));
	if (c->count[RFL_SPEED_MISSING] == c->n)
		return rfl_fail(err, RFL_EFAILED, 0,
				"nothing was compared: no configuration is ok in both %s and %s; "
				"run the same configurations in both",
				sides[0].name, a->by ? "other values" : sides[1].name);
	return check_verdicts(c, &a->fail_if, err);
}

const struct rfl_cmd rfl_cmd_compare = {
	.name = "compare",
	.summary = "compare ledgers, environments or options: same, faster, slower or unclear",
	.operands = "[FILE...]",
	.description =
		"Compares every configuration of A with the configuration of B that did the same "
		"work, that is, has the same model, precision, batch size, mode, layout, sizes and "
		"data. Other differences (threads, versions, device) are listed. The ratio of the "
		"two is given with a 95 % confidence interval, computed from the repeats of both "
		"sides. The verdict is \"same\" if the interval is within the threshold, "
		"\"faster\" or \"slower\" if all of it is beyond the threshold, and otherwise "
		"\"unclear\": repeat the runs more often, or on a quieter machine.\n\nTwo files "
		"are A and B. With --by, all files are read as one ledger: each configuration is "
		"compared, as B, with the configuration A that has the baseline value and differs "
		"only in that column. Dependent columns, such as autocast with precision, may "
		"differ as well.",
	.example = "roofline compare before.csv after.csv --fail-if slower\n"
		   "roofline compare --env mac_cpu mac_mps\n"
		   "roofline compare logs/metrics.csv --by precision --baseline fp32\n"
		   "roofline compare logs/metrics.csv --by batch --model resnet50",
	.opts = opts,
	.args_size = sizeof(struct compare_args),
	.run = run,
};
