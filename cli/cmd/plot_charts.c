/* plot_charts.c - roofline plot: the charts that gnuplot draws from the ledger. */
#include "cli/cmd/plot_charts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "plot/chart.h"

/* The inputs of charts. */
struct inputs {
	const struct rfl_plot_args *args;
	const struct rfl_chart_kind *kind;
	struct rfl_opt_list formats; /* each once */
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
	in->envs = rfl_alloc_array(in->repeats->n, sizeof(*in->envs));
	if (!in->envs)
		return rfl_fail(err, RFL_ENOMEM, 0, "plot: out of memory");
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

	if (!in->args->peaks)
		return rfl_fail(err, RFL_EUSAGE, 0, "--peaks FILE is required for --kind %s",
				in->kind->name);
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

/* Write the script, then a picture per format. The script stays if gnuplot fails. */
static enum rfl_rc write_chart(struct rfl_cli *cli, const struct inputs *in, struct rfl_chart *c,
			       struct rfl_err *err)
{
	const struct rfl_opt_list *formats = &in->formats;
	const struct rfl_plot_args *a = in->args;
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
	if ((rc = rfl_chart_script(c, &spec, formats->items, formats->n, true, &script, err)) ||
	    (rc = rfl_buf_check(&path, "path", err)) ||
	    (rc = rfl_file_write(path.data, script.data, script.len, err)))
		goto done;
	for (size_t i = 0; i < formats->n && rc == RFL_OK; i++) {
		rfl_buf_reset(&picture);
		rc = rfl_chart_draw(c, &spec, formats->items[i], path.data, &picture, err);
		if (rc)
			break;
		script.len = 0; /* reused for the path of the picture */
		rfl_buf_printf(&script, "%.*s%s", (int)stem, path.data, formats->items[i]);
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

static enum rfl_rc check_formats(const struct rfl_opt_list *asked, struct rfl_opt_list *ret,
				 struct rfl_err *err)
{
	ret->items = rfl_alloc_array(asked->n, sizeof(*ret->items));
	if (!ret->items)
		return rfl_fail(err, RFL_ENOMEM, 0, "plot: out of memory");
	for (size_t i = 0; i < asked->n; i++) {
		bool known = false;

		for (size_t k = 0; rfl_chart_formats[k]; k++)
			known |= strcmp(asked->items[i], rfl_chart_formats[k]) == 0;
		if (!known)
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--format: charts cannot be drawn as '%s'; use png, svg or "
					"pdf",
					asked->items[i]);
		if (!rfl_plot_is_again(asked, i))
			ret->items[ret->n++] = asked->items[i];
	}
	return RFL_OK;
}

/* Draw one environment, or all if it is NULL. @param missing  why this environment lacks data
 * that others may have */
static enum rfl_rc draw_env(struct rfl_cli *cli, const struct inputs *in, const char *env,
			    struct rfl_err *missing, struct rfl_err *err)
{
	const struct rfl_chart_input input = {
		.repeats = in->repeats,
		.runs = in->runs,
		.peaks = in->peaks ? rfl_peaks_find(in->peaks, env) : NULL,
		.env = env,
		.dir = in->args->steps,
	};
	struct rfl_chart *c = NULL;
	enum rfl_rc rc = env ? rfl_text_check_env_name(in->args->runs.metrics.items[0], env,
						       RFL_EFORMAT, err)
			     : RFL_OK;

	if (rc != RFL_OK)
		return rc;
	rc = rfl_chart_make(in->kind, &input, &c, missing);
	if (rc == RFL_OK)
		rc = write_chart(cli, in, c, err);
	else if (rc != RFL_EMISSING)
		(void)rfl_fail(err, rc, missing->native, "%s", missing->msg);
	rfl_chart_free(c);
	return rc;
}

enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_args *a, struct rfl_err *err)
{
	struct inputs in = { .args = a, .kind = rfl_chart_find(rfl_plot_kinds[a->kind]) };
	struct rfl_err first_missing = RFL_ERR_INIT;
	struct rfl_buf skipped;
	size_t drawn = 0;
	enum rfl_rc rc;

	rfl_buf_init(&skipped, 0);
	if ((rc = check_formats(&a->format, &in.formats, err)) ||
	    (rc = rfl_chart_probe(NULL, err)) ||
	    (rc = in.kind->metric ? load_runs(&in, err) : load_peaks(&in, err)) ||
	    (rc = rfl_file_mkdirs(a->output_dir, err)))
		goto done;
	if (in.repeats)
		rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&in.repeats->notes));
	for (size_t i = 0; i < (in.kind->together ? 1 : in.nenvs) && rc == RFL_OK; i++) {
		struct rfl_err missing = RFL_ERR_INIT;

		rc = draw_env(cli, &in, in.kind->together ? NULL : in.envs[i], &missing, err);
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
	free(in.formats.items);
	rfl_peaks_free(in.peaks);
	rfl_buf_fini(&skipped);
	return rc;
}
