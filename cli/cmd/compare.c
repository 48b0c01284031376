/*
 * compare.c - roofline compare: is B slower than A? For people, and for an automatic check of
 * every change.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/log.h"
#include "cli/put.h"
#include "cli/cmd/runs_args.h"
#include "report/runs.h"

struct compare_args {
	struct rfl_cli_runs_args in;
	struct rfl_opt_list files, fail_if;
	double threshold;
	int format;
};

#define AT(member) offsetof(struct compare_args, member)

static const char *const failures[] = { "slower", "faster", "unclear", "missing", NULL };

static const struct rfl_opt opts[] = {
	{ .name = "metrics",
	  .meta = "FILE",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(in.metrics),
	  .def = "logs/metrics.csv",
	  .help = "the ledgers of both sides, where no file is named for each: with --env A B" },
	{ .name = "env",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(in.env),
	  .help = "the environment of A and that of B; one name is that of both" },
	{ .name = "metric",
	  .meta = "NAME",
	  .kind = RFL_OPT_CHOICE,
	  .offset = AT(in.metric),
	  .choices = rfl_ledger_speed_names,
	  .def = "samples_per_s",
	  .help = "what is compared" },
	{ .name = "threshold",
	  .meta = "PERCENT",
	  .kind = RFL_OPT_REAL,
	  .offset = AT(threshold),
	  .def = "2",
	  .rmin = 0,
	  .rmax = 100,
	  .help = "the least difference that matters" },
	{ .name = "fail-if",
	  .meta = "VERDICT",
	  .kind = RFL_OPT_LIST,
	  .offset = AT(fail_if),
	  .choices = failures,
	  .help = "exit with 1 when a configuration is one of these" },
	RFL_OPT_ONLY_ROW("model", "models", AT(in.model)),
	RFL_OPT_ONLY_ROW("precision", "precisions", AT(in.precision)),
	RFL_OPT_MAP_ROW(AT(in.map)),
	RFL_OPT_FORMAT_ROW(AT(format)),
	{ .name = NULL },
};

/* --- the two sides --------------------------------------------------------------------------- */

struct side {
	const char *name; /* for people */
	const char *const *paths;
	size_t npaths;
	const char *const *envs; /* none or one */
	size_t nenvs;
	struct rfl_runs *runs;
	struct rfl_repeats *repeats;
};

static enum rfl_rc choose_sides(const struct compare_args *a, struct side sides[2],
				struct rfl_err *err)
{
	const bool two_files = a->files.n == 2;

	if (a->in.env.n > 2)
		return rfl_fail(err, RFL_EUSAGE, 0, "--env: %zu names; there are two sides",
				a->in.env.n);
	if (!two_files && a->in.env.n != 2)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"name two ledgers, or two environments with --env A B");
	for (size_t i = 0; i < 2; i++) {
		size_t env = a->in.env.n == 2 ? i : 0;

		sides[i] = (struct side){ .paths = a->in.metrics.items, .npaths = a->in.metrics.n };
		if (a->files.n > 0) {
			sides[i].paths = &a->files.items[two_files ? i : 0];
			sides[i].npaths = 1;
		}
		if (a->in.env.n > 0) {
			sides[i].envs = &a->in.env.items[env];
			sides[i].nenvs = 1;
		}
		sides[i].name = two_files ? a->files.items[i] : a->in.env.items[i];
	}
	return RFL_OK;
}

static enum rfl_rc load_side(const struct compare_args *a, struct side *s, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_cli_load_repeats(s->paths, s->npaths, &a->in, s->envs, s->nenvs,
					      RFL_ROWS_SHORT, &s->runs, &s->repeats, err);

	if (rc == RFL_OK && s->repeats->n == 0)
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s: there is no run to compare", s->paths[0]);
	return rc;
}

/* --- output ---------------------------------------------------------------------------------- */

static enum rfl_rc print(struct rfl_cli *cli, const struct rfl_comparison *c,
			 const struct side sides[2], enum rfl_format format, struct rfl_err *err)
{
	const char *const names[2] = { sides[0].name, sides[1].name };
	struct rfl_buf out, notes;
	enum rfl_rc rc;

	rfl_buf_init(&out, 0);
	rfl_buf_init(&notes, 0);
	for (size_t i = 0; i < 2; i++)
		rfl_buf_puts(&notes, rfl_buf_str(&sides[i].repeats->notes));
	rc = rfl_comparison_table(c, format, names, rfl_buf_str(&notes), &out, err);
	if (rc == RFL_OK)
		rc = rfl_cli_put_as(cli, format, &out, "comparison", err);
	if (format == RFL_FORMAT_CSV || format == RFL_FORMAT_JSON)
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&notes));
	rfl_buf_fini(&out);
	rfl_buf_fini(&notes);
	return rc;
}

/* One message for all verdicts that are not wanted, with the first configuration of each. */
static enum rfl_rc check_verdicts(const struct rfl_comparison *c,
				  const struct rfl_opt_list *fail_if, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&text, 0);
	for (size_t v = 0; v < RFL_SPEED_VERDICTS; v++) {
		size_t i = 0;
		const struct rfl_ledger_row *row;
		bool asked = false;

		for (size_t k = 0; k < fail_if->n; k++)
			asked = asked || strcmp(fail_if->items[k], rfl_speed_verdict_names[v]) == 0;
		if (!asked || c->count[v] == 0)
			continue;
		while ((size_t)c->pairs[i].verdict != v)
			i++;
		row = (c->pairs[i].a ? c->pairs[i].a : c->pairs[i].b)->row;
		rfl_buf_printf(&text, "%s%zu of %zu configurations %s %s (first: %s %s bs%lld)",
			       text.len ? "; " : "", c->count[v], c->n,
			       c->count[v] == 1 ? "is" : "are", rfl_speed_verdict_names[v],
			       row->model, row->precision, (long long)row->batch);
	}
	if (text.len)
		rc = rfl_fail(err, RFL_EFAILED, 0, "%s", rfl_buf_str(&text));
	rfl_buf_fini(&text);
	return rc;
}

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct compare_args *a = args;
	struct side sides[2] = { { .name = NULL }, { .name = NULL } };
	struct rfl_comparison *c = NULL;
	enum rfl_rc rc;

	if ((rc = choose_sides(a, sides, err)) || (rc = load_side(a, &sides[0], err)))
		goto done;
	if (sides[0].paths == sides[1].paths) /* two environments of one ledger */
		sides[1].runs = sides[0].runs;
	if ((rc = load_side(a, &sides[1], err)) ||
	    (rc = rfl_compare(sides[0].repeats, sides[1].repeats, a->threshold / 100, &c, err)) ||
	    (rc = print(cli, c, sides, (enum rfl_format)a->format, err)))
		goto done;
	if (c->count[RFL_SPEED_MISSING] == c->n)
		rc = rfl_fail(
			err, RFL_EFAILED, 0,
			"nothing was compared: %s and %s have no configuration in common that "
			"is ok on both sides",
			sides[0].name, sides[1].name);
	else
		rc = check_verdicts(c, &a->fail_if, err);
done:
	rfl_comparison_free(c);
	if (sides[1].runs != sides[0].runs)
		rfl_runs_free(sides[1].runs);
	rfl_runs_free(sides[0].runs);
	rfl_repeats_free(sides[0].repeats);
	rfl_repeats_free(sides[1].repeats);
	return rc;
}

const struct rfl_cmd rfl_cmd_compare = {
	.name = "compare",
	.summary = "two ledgers or environments: same, faster, slower or unclear",
	.operands = "[A] [B]",
	.description =
		"Every configuration of A is compared with the one of B that did the same work: "
		"model, precision, batch, mode, layout, sizes, data. Other differences (threads, "
		"versions, device) are listed. The ratio has a 95 % confidence interval, from the "
		"repeats of "
		"both sides. Same: the interval is within the threshold. Faster, slower: all of it "
		"is beyond. Unclear: more repeats, or a quieter machine, would be needed.",
	.example = "roofline compare before.csv after.csv --fail-if slower\n"
		   "roofline compare --env mac_cpu mac_mps",
	.opts = opts,
	.args_size = sizeof(struct compare_args),
	.operands_offset = AT(files),
	.run = run,
};
