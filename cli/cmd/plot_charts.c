/* plot_charts.c - roofline plot: the charts that gnuplot draws from the ledger. */
#include "cli/cmd/plot_charts.h"

#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "plot/chart.h"

/* Write the script, then a picture per format. The script stays if gnuplot fails. */
static enum rfl_rc write_chart(struct rfl_cli *cli, const struct rfl_plot_charts_args *a,
			       struct rfl_chart *c, struct rfl_err *err)
{
	const struct rfl_chart_spec spec = {
		.width = a->width, .height = a->height, .dpi = a->dpi, .data_dir = cli->data_dir
	};
	struct rfl_buf script, picture, path;
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
done:
	rfl_buf_fini(&script);
	rfl_buf_fini(&picture);
	rfl_buf_fini(&path);
	return rc;
}

/* Load the repeats with the first metric of the kind that any selected run has. */
static enum rfl_rc load(const struct rfl_plot_charts_args *a, struct rfl_runs **runs,
			struct rfl_repeats **ret, const struct rfl_chart_quantity **q,
			struct rfl_err *err)
{
	struct rfl_cli_runs_args in = a->in;
	enum rfl_rc rc = RFL_OK;

	for (*q = rfl_chart_quantities; (*q)->kind; (*q)++) {
		const bool last = !(*q)[1].kind || strcmp((*q)[1].kind, a->kind) != 0;
		struct rfl_err why = RFL_ERR_INIT;

		if (strcmp((*q)->kind, a->kind) != 0)
			continue;
		in.metric = 0;
		while (strcmp(rfl_ledger_metric_names[in.metric], (*q)->metric) != 0)
			in.metric++;
		rc = rfl_cli_load_repeats(in.metrics.items, in.metrics.n, &in, in.env.items,
					  in.env.n, RFL_ROWS_SHORT, runs, ret, &why);
		for (size_t i = 0; rc == RFL_OK && i < (*ret)->n; i++)
			if ((*ret)->configs[i].n)
				return RFL_OK;
		if (last || (rc != RFL_OK && rc != RFL_EFORMAT))
			return rc ? rfl_fail(err, rc, why.native, "%s", why.msg)
				  : rfl_fail(err, RFL_EMISSING, 0,
					     "%s: no selected run has a value of %s",
					     in.metrics.items[0], (*q)->metric);
		rfl_repeats_free(*ret);
		rfl_runs_free(*runs);
		*ret = NULL;
		*runs = NULL;
	}
	return rfl_fail(err, RFL_EINVAL, 0, "--kind: no chart '%s'", a->kind);
}

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

enum rfl_rc rfl_plot_charts(struct rfl_cli *cli, const struct rfl_plot_charts_args *a,
			    struct rfl_err *err)
{
	const struct rfl_chart_quantity *q = NULL;
	struct rfl_runs *runs = NULL;
	struct rfl_repeats *r = NULL;
	enum rfl_rc rc;

	if ((rc = check_formats(&a->format, err)) || (rc = rfl_chart_probe(NULL, err)) ||
	    (rc = load(a, &runs, &r, &q, err)) || (rc = rfl_file_mkdirs(a->output_dir, err)))
		goto done;
	rfl_cli_log_lines(RFL_LOG_WARN, rfl_buf_str(&r->notes));
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++) {
		const char *env = r->configs[i].row->env;
		struct rfl_chart *c = NULL;
		size_t first = 0;

		while (!rfl_text_same(r->configs[first].row->env, env))
			first++;
		if (first < i) /* this environment is done */
			continue;
		if ((rc = rfl_text_check_env_name(a->in.metrics.items[0], env, RFL_EFORMAT, err)) ||
		    (rc = rfl_chart_batches(r, env, q, &c, err)))
			break;
		rc = write_chart(cli, a, c, err);
		rfl_chart_free(c);
	}
done:
	rfl_repeats_free(r);
	rfl_runs_free(runs);
	return rc;
}
