/* plot_charts.c - roofline plot: the charts of the ledger and of the ceilings. */
#include "cli/cmd/plot_charts.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "plot/chart.h"

/* The inputs of charts. */
struct inputs {
	struct rfl_cli *cli;
	const struct rfl_plot_args *args;
	const struct rfl_chart_kind *kind;
	struct rfl_runs *runs;
	struct rfl_repeats *repeats;
	struct rfl_peaks *peaks;
	size_t nenvs;
	const char **envs; /* without duplicates; borrowed from the repeats or the peaks */
};

static void drop(struct inputs *in)
{
	rfl_repeats_free(in->repeats);
	rfl_runs_free(in->runs);
	rfl_peaks_free(in->peaks);
	in->repeats = NULL;
	in->runs = NULL;
	in->peaks = NULL;
	in->nenvs = 0;
}

/* Add an environment unless it is in the list, which has room for all. */
static void add_env(struct inputs *in, const char *env)
{
	for (size_t i = 0; i < in->nenvs; i++)
		if (rfl_text_same(in->envs[i], env))
			return;
	in->envs[in->nenvs++] = env;
}

/* Keep the configurations that --batch and --mode select. @return whether one has a value */
static bool select_configs(const struct rfl_plot_args *a, struct rfl_repeats *r)
{
	size_t kept = 0;
	bool any = false;

	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_ledger_row *row = r->configs[i].row;
		char batch[RFL_NUM_MAX];

		(void)snprintf(batch, sizeof(batch), "%lld", (long long)row->batch);
		if ((a->batch.n && !rfl_opt_list_has(&a->batch, batch)) ||
		    (a->mode.n && !(row->mode && rfl_opt_list_has(&a->mode, row->mode))))
			continue;
		any |= r->configs[i].n > 0;
		r->configs[kept++] = r->configs[i];
	}
	r->n = kept;
	return any;
}

static enum rfl_rc load_metric(struct inputs *in, struct rfl_err *err)
{
	struct rfl_cli_runs_args args = in->args->runs;
	const bool filtered = in->args->batch.n || in->args->mode.n;
	enum rfl_rc rc;

	while (strcmp(rfl_ledger_metric_names[args.metric], in->kind->metric) != 0)
		args.metric++;
	args.losses = in->kind->losses;
	rc = rfl_cli_load_repeats(args.metrics.items, args.metrics.n, &args, args.env.items,
				  args.env.n, in->kind->axis ? RFL_ROWS_SHORT : RFL_ROWS_WHOLE,
				  &in->runs, &in->repeats, err);
	if (rc != RFL_OK)
		return rc;
	if (!select_configs(in->args, in->repeats))
		return rfl_fail(err, RFL_EMISSING, 0, "%s: no run%s has a value of %s",
				args.metrics.items[0],
				filtered ? " selected by --batch and --mode" : "",
				in->kind->metric);
	in->envs = rfl_arena_array(in->cli->arena, in->repeats->n, sizeof(*in->envs));
	for (size_t i = 0; i < in->repeats->n; i++)
		add_env(in, in->repeats->configs[i].row->env);
	return RFL_OK;
}

/* Load the repeats with the first metric of the kind that any selected run has. */
static enum rfl_rc load_runs(struct inputs *in, struct rfl_err *err)
{
	for (;; in->kind++) {
		const char *next = in->kind[1].name;
		struct rfl_err why = RFL_ERR_INIT;
		const enum rfl_rc rc = load_metric(in, &why);

		if (rc == RFL_OK)
			return RFL_OK;
		if (!next || strcmp(next, in->kind->name) != 0 ||
		    (rc != RFL_EFORMAT && rc != RFL_EMISSING))
			return rfl_fail(err, rc, why.native, "%s", why.msg);
		drop(in);
	}
}

static enum rfl_rc load_peaks(struct inputs *in, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &in->args->runs.env;
	enum rfl_rc rc;

	if ((rc = rfl_cli_load_peaks(in->args->peaks, &in->peaks, err)))
		return rc;
	in->envs = rfl_arena_array(in->cli->arena, in->peaks->nenvs + asked->n, sizeof(*in->envs));
	for (size_t i = 0; i < asked->n; i++) {
		if (!rfl_peaks_find(in->peaks, asked->items[i]))
			return rfl_fail(err, RFL_ENOTFOUND, 0, "--env: %s has no environment '%s'",
					in->args->peaks, asked->items[i]);
		add_env(in, asked->items[i]);
	}
	for (size_t i = 0; asked->n == 0 && i < in->peaks->nenvs; i++)
		add_env(in, in->peaks->envs[i].name);
	return RFL_OK;
}

static enum rfl_rc draw(void *ctx, const struct rfl_plot_size *size, const struct rfl_scene **ret,
			struct rfl_err *err)
{
	const struct rfl_chart_spec spec = { size->width, size->height, size->style };
	struct rfl_chart *c = ctx;

	*ret = c->scene;
	return rfl_chart_draw(c, &spec, err);
}

/* Draw one environment, or all if it is NULL. @param missing  why this environment lacks data
 * that others may have */
static enum rfl_rc draw_env(struct rfl_plot_outputs *all, const struct inputs *in, const char *env,
			    struct rfl_err *missing, struct rfl_err *err)
{
	const struct rfl_chart_input input = {
		.repeats = in->repeats,
		.runs = in->runs,
		.peaks = in->peaks ? rfl_peaks_find(in->peaks, env) : NULL,
		.ceilings = in->peaks,
		.env = env,
		.dir = in->args->steps,
	};
	RFL_AUTOPTR(chart) c = NULL;
	enum rfl_rc rc = env ? rfl_text_check_env_name(in->args->runs.metrics.items[0], env,
						       RFL_EFORMAT, err)
			     : RFL_OK;

	if (rc != RFL_OK)
		return rc;
	rc = rfl_chart_make(in->kind, &input, &c, missing);
	if (rc == RFL_OK) {
		if (c->warning)
			rfl_log(RFL_LOG_WARN, "%s", c->warning);
		if (in->args->title)
			c->title = rfl_scene_printf(c->scene, "%s", in->args->title);
		if (in->args->format.n > 1 || strcmp(in->args->format.items[0], "terminal") != 0)
			rfl_chart_script(c, rfl_plot_add_file(all, c->stem, "gp"));
		rc = rfl_plot_add(all, draw, c, c->stem, err);
	} else if (rc != RFL_EMISSING) {
		(void)rfl_fail(err, rc, missing->native, "%s", missing->msg);
	}
	return rc;
}

enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_args *a, struct rfl_err *err)
{
	RFL_CLEANUP(drop)
	struct inputs in = { .cli = cli,
			     .args = a,
			     .kind = rfl_chart_find(rfl_plot_kinds[a->kind]) };
	RFL_AUTO(plot_outputs) all = { .cli = cli, .args = a };
	struct rfl_err first_missing = RFL_ERR_INIT;
	RFL_AUTO(buf) skipped = { .len = 0 };
	size_t drawn = 0;
	enum rfl_rc rc = in.kind->metric ? load_runs(&in, err) : load_peaks(&in, err);

	if (rc)
		return rc;
	if (strcmp(in.kind->name, "decode") == 0 && rfl_file_exists(a->peaks) &&
	    (rc = rfl_cli_load_peaks(a->peaks, &in.peaks, err)))
		return rc;
	if (in.repeats)
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&in.repeats->notes));
	for (size_t i = 0; i < (in.kind->together ? 1 : in.nenvs); i++) {
		struct rfl_err missing = RFL_ERR_INIT;

		rc = draw_env(&all, &in, in.kind->together ? NULL : in.envs[i], &missing, err);
		if (rc && rc != RFL_EMISSING)
			return rc;
		drawn += rc == RFL_OK;
		if (rc == RFL_OK)
			continue;
		rfl_buf_printf(&skipped, "%s\n", missing.msg);
		if (first_missing.rc == RFL_OK)
			first_missing = missing;
	}
	if (drawn == 0)
		return rfl_fail(err, RFL_EMISSING, 0, "%s", first_missing.msg);
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&skipped));
	return rfl_plot_write(&all, err);
}
