/* plot_charts.c - roofline plot: the charts that gnuplot draws from the ledger. */
#include "cli/cmd/plot_charts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/chart.h"

/* Write the script, then a picture per format. The script stays if gnuplot fails. */
static enum rfl_rc write_chart(struct rfl_cli *cli, const struct rfl_plot_charts_args *a,
			       struct rfl_chart *c, struct rfl_err *err)
{
	const struct rfl_chart_spec spec = { .width = a->width,
					     .height = a->height,
					     .dpi = a->dpi,
					     .data_dir = cli->data_dir,
					     .style = a->style };
	struct rfl_buf script, picture, path;
	const char *caption;
	size_t stem;
	enum rfl_rc rc;

	rfl_buf_init(&script, 0);
	rfl_buf_init(&picture, 0);
	rfl_buf_init(&path, 0);
	if (a->title)
		c->title = rfl_scene_printf(c->scene, "%s", a->title);
	rfl_buf_printf(&path, "%s/%s.gp", a->output_dir, c->stem);
	stem = path.len - 2;
	if ((rc = rfl_chart_script(c, &spec, a->format.items, a->format.n, true, &script, err)) ||
	    (rc = rfl_buf_check(&path, "path", err)) ||
	    (rc = rfl_file_write(path.data, script.data, script.len, err)))
		goto done;
	for (size_t i = 0; i < a->format.n && rc == RFL_OK; i++) {
		rfl_buf_reset(&picture);
		rc = rfl_chart_draw(c, &spec, a->format.items[i], path.data, &picture, err);
		if (rc)
			break;
		script.len = 0; /* reused for the path of the picture */
		rfl_buf_printf(&script, "%.*s%s", (int)stem, path.data, a->format.items[i]);
		if (!(rc = rfl_buf_check(&script, "path", err)) &&
		    !(rc = rfl_file_write(script.data, picture.data, picture.len, err)))
			rfl_cli_printf(cli, "%s\n", script.data);
	}
	caption = rfl_chart_caption(c, a->style);
	if (rc == RFL_OK && caption)
		rfl_cli_printf(cli, "caption: %s\n", caption);
done:
	rfl_buf_fini(&script);
	rfl_buf_fini(&picture);
	rfl_buf_fini(&path);
	return rc;
}

/* The inputs of a chart. */
struct inputs {
	const struct rfl_plot_charts_args *args;
	struct rfl_runs *runs;
	struct rfl_repeats *repeats;
	const struct rfl_chart_quantity *quantity;
	struct rfl_peaks *peaks;
	size_t nenvs;
	/* without duplicates; borrowed from the repeats or the peaks; NULL: one chart of all */
	const char **envs;
};

static void drop(struct inputs *in)
{
	rfl_repeats_free(in->repeats);
	rfl_runs_free(in->runs);
	free(in->envs);
	in->repeats = NULL;
	in->runs = NULL;
	in->envs = NULL;
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
static bool select_configs(const struct rfl_plot_charts_args *a, struct rfl_repeats *r)
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

static enum rfl_rc load_metric(struct inputs *in, const char *metric, enum rfl_rows rows,
			       struct rfl_err *err)
{
	struct rfl_cli_runs_args args = in->args->in;
	enum rfl_rc rc;

	while (strcmp(rfl_ledger_metric_names[args.metric], metric) != 0)
		args.metric++;
	rc = rfl_cli_load_repeats(args.metrics.items, args.metrics.n, &args, args.env.items,
				  args.env.n, rows, &in->runs, &in->repeats, err);
	if (rc != RFL_OK)
		return rc;
	if (!select_configs(in->args, in->repeats))
		return rfl_fail(err, RFL_EMISSING, 0, "%s: no run%s has a value of %s",
				args.metrics.items[0],
				in->args->batch.n || in->args->mode.n
					? " selected by --batch and --mode"
					: "",
				metric);
	in->envs = rfl_alloc_array(in->repeats->n, sizeof(*in->envs));
	if (!in->envs)
		return rfl_fail(err, RFL_ENOMEM, 0, "plot: out of memory");
	for (size_t i = 0; i < in->repeats->n; i++)
		add_env(in, in->repeats->configs[i].row->env);
	return RFL_OK;
}

/* Load the repeats with the first metric of the kind that any selected run has. */
static enum rfl_rc load_quantity(struct inputs *in, struct rfl_err *err)
{
	const char *kind = in->args->kind;
	const struct rfl_chart_quantity *q = rfl_chart_quantities;

	while (strcmp(q->kind, kind) != 0)
		q++;
	for (;; q++) {
		const bool last = !q[1].kind || strcmp(q[1].kind, kind) != 0;
		struct rfl_err why = RFL_ERR_INIT;
		const enum rfl_rc rc = load_metric(in, q->metric, RFL_ROWS_SHORT, &why);

		in->quantity = q;
		if (rc == RFL_OK)
			return RFL_OK;
		if (last || (rc != RFL_EFORMAT && rc != RFL_EMISSING))
			return rfl_fail(err, rc, why.native, "%s", why.msg);
		drop(in);
	}
}

static enum rfl_rc draw_quantity(const struct inputs *in, const char *env, struct rfl_chart **ret,
				 struct rfl_err *err)
{
	return rfl_chart_batches(in->repeats, env, in->quantity, ret, err);
}

static enum rfl_rc load_rows(struct inputs *in, struct rfl_err *err)
{
	return load_metric(in, "samples_per_s", RFL_ROWS_WHOLE, err);
}

static enum rfl_rc draw_phases(const struct inputs *in, const char *env, struct rfl_chart **ret,
			       struct rfl_err *err)
{
	return rfl_chart_phases(in->repeats, in->runs, env, ret, err);
}

static enum rfl_rc draw_scaling(const struct inputs *in, const char *env, struct rfl_chart **ret,
				struct rfl_err *err)
{
	return rfl_chart_scaling(in->repeats, in->runs, env, ret, err);
}

static enum rfl_rc draw_steps(const struct inputs *in, const char *env, struct rfl_chart **ret,
			      struct rfl_err *err)
{
	return rfl_chart_steps(in->repeats, in->runs, env, in->args->kind, in->args->steps, ret,
			       err);
}

static enum rfl_rc draw_timeline(const struct inputs *in, const char *env, struct rfl_chart **ret,
				 struct rfl_err *err)
{
	return rfl_chart_timeline(in->repeats, in->runs, env, in->args->steps, ret, err);
}

/* One chart for all environments. */
static enum rfl_rc load_together(struct inputs *in, struct rfl_err *err)
{
	enum rfl_rc rc = load_rows(in, err);

	if (rc == RFL_OK) {
		in->envs[0] = NULL;
		in->nenvs = 1;
	}
	return rc;
}

static enum rfl_rc draw_accuracy(const struct inputs *in, const char *env, struct rfl_chart **ret,
				 struct rfl_err *err)
{
	(void)env;
	return rfl_chart_accuracy(in->repeats, in->runs, in->args->steps, ret, err);
}

static enum rfl_rc load_peaks(struct inputs *in, struct rfl_err *err)
{
	const struct rfl_opt_list *asked = &in->args->in.env;
	enum rfl_rc rc;

	if (!in->args->peaks)
		return rfl_fail(err, RFL_EUSAGE, 0, "--peaks FILE is required for --kind %s",
				in->args->kind);
	if ((rc = rfl_cli_load_peaks(in->args->peaks, &in->peaks, err)))
		return rc;
	in->envs = rfl_alloc_array(in->peaks->nenvs + asked->n, sizeof(*in->envs));
	if (!in->envs)
		return rfl_fail(err, RFL_ENOMEM, 0, "plot: out of memory");
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

static enum rfl_rc draw_bandwidth(const struct inputs *in, const char *env, struct rfl_chart **ret,
				  struct rfl_err *err)
{
	return rfl_chart_bandwidth(rfl_peaks_find(in->peaks, env), ret, err);
}

static const struct {
	const char *kind;
	enum rfl_rc (*load)(struct inputs *in, struct rfl_err *err);
	enum rfl_rc (*draw)(const struct inputs *in, const char *env, struct rfl_chart **ret,
			    struct rfl_err *err);
} kinds[] = {
	{ "throughput", load_quantity, draw_quantity },
	{ "memory", load_quantity, draw_quantity },
	{ "phases", load_rows, draw_phases },
	{ "scaling", load_rows, draw_scaling },
	{ "steps", load_rows, draw_steps },
	{ "loss", load_rows, draw_steps },
	{ "accuracy", load_together, draw_accuracy },
	{ "timeline", load_rows, draw_timeline },
	{ "bandwidth", load_peaks, draw_bandwidth },
};

static enum rfl_rc check_formats(const struct rfl_opt_list *formats, struct rfl_err *err)
{
	for (size_t i = 0; i < formats->n; i++) {
		bool known = false;

		for (size_t k = 0; rfl_chart_formats[k]; k++)
			known |= strcmp(formats->items[i], rfl_chart_formats[k]) == 0;
		if (!known)
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--format: charts cannot be drawn as '%s'; use png, svg or "
					"pdf",
					formats->items[i]);
	}
	return RFL_OK;
}

/* Draw one environment. Skip it if it lacks the data, which others may have. */
static enum rfl_rc draw_env(struct rfl_cli *cli, const struct inputs *in, size_t kind,
			    const char *env, struct rfl_err *missing, struct rfl_err *err)
{
	struct rfl_chart *c = NULL;
	enum rfl_rc rc =
		env ? rfl_text_check_env_name(in->args->in.metrics.items[0], env, RFL_EFORMAT, err)
		    : RFL_OK;

	if (rc != RFL_OK)
		return rc;
	rc = kinds[kind].draw(in, env, &c, missing);
	if (rc == RFL_OK)
		rc = write_chart(cli, in->args, c, err);
	else if (rc != RFL_EMISSING)
		(void)rfl_fail(err, rc, missing->native, "%s", missing->msg);
	rfl_chart_free(c);
	return rc;
}

enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_charts_args *a,
			    struct rfl_err *err)
{
	struct rfl_err first_missing = RFL_ERR_INIT;
	struct inputs in = { .args = a };
	size_t kind = 0, drawn = 0;
	struct rfl_buf skipped;
	enum rfl_rc rc;

	rfl_buf_init(&skipped, 0);
	while (kind < RFL_ARRAY_LEN(kinds) && strcmp(kinds[kind].kind, a->kind) != 0)
		kind++;
	assert(kind < RFL_ARRAY_LEN(kinds)); /* the choices of --kind */
	if ((rc = check_formats(&a->format, err)) || (rc = rfl_chart_probe(NULL, err)) ||
	    (rc = kinds[kind].load(&in, err)) || (rc = rfl_file_mkdirs(a->output_dir, err)))
		goto done;
	if (in.repeats)
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&in.repeats->notes));
	for (size_t i = 0; i < in.nenvs && rc == RFL_OK; i++) {
		struct rfl_err missing = RFL_ERR_INIT;

		rc = draw_env(cli, &in, kind, in.envs[i], &missing, err);
		drawn += rc == RFL_OK ? 1 : 0;
		if (rc != RFL_EMISSING)
			continue;
		rfl_buf_printf(&skipped, "%s\n", missing.msg);
		if (first_missing.rc == RFL_OK)
			first_missing = missing;
		rc = RFL_OK;
	}
	if (rc == RFL_OK && drawn == 0)
		rc = rfl_fail(err, RFL_EMISSING, 0, "%s", first_missing.msg);
	else
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&skipped));
done:
	drop(&in);
	rfl_peaks_free(in.peaks);
	rfl_buf_fini(&skipped);
	return rc;
}
