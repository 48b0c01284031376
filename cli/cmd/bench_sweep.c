/* bench_sweep.c - a sweep of language models or attentions: a run matrix in memory, and its
 * execution. The rows of its table are read back from the ledger. */
#include "cli/cmd/bench_sweep.h"

#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cmd/run_config.h"
#include "cli/inputs.h"
#include "complexity/zoo.h"

const char *const rfl_sweep_states[] = { "off", "on", NULL };

/* A sweep while it is made. */
struct job {
	struct rfl_cli *cli;
	const struct rfl_sweep_plan *plan;
	const struct rfl_sweep_args *a;
	struct rfl_sweep *s;
	char env_name[49];
	const char *env;         /* a copy in the arena of the sweep */
	struct rfl_peaks *peaks; /* NULL: none */
	struct rfl_matrix *m;
	size_t *row_of; /* for each cell of the matrix: its row */
};

static enum rfl_rc no_memory(const struct job *j, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", j->plan->name);
}

/* ---- the output, which is checked before the runs ---- */

/* Check that a file can be created in the folder of the output. */
static enum rfl_rc check_output(const char *path, struct rfl_err *err)
{
	char *target = NULL, *name = NULL;
	FILE *f = NULL;
	struct stat st;
	enum rfl_rc rc;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return rfl_fail(err, RFL_EUSAGE, 0, "--output: %s: this is a folder, not a file",
				path);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return RFL_OK; /* a device or pipe */
	if ((rc = rfl_file_target(path, &target, err)) == RFL_OK &&
	    (rc = rfl_file_neighbour(target, &name, &f, err)) == RFL_OK)
		(void)!rfl_file_replace(f, name, target, RFL_EFAILED, NULL); /* remove it */
	if (rc)
		rfl_err_prefix(err, "--output");
	free(target);
	return rc;
}

/* The format of the table: --format, else by the suffix of --output. */
static enum rfl_rc find_format(const struct rfl_sweep_args *a, enum rfl_format *ret,
			       struct rfl_err *err)
{
	const char *dot = a->output ? strrchr(rfl_path_base(a->output), '.') : NULL;
	int format = a->format;

	if (dot && !a->format_given && strcmp(dot, ".txt") != 0) {
		for (format = 0; rfl_format_names[format];)
			if (strcmp(dot + 1, rfl_format_names[format]) == 0)
				break;
			else
				format++;
		if (!rfl_format_names[format])
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--output: '%s' has an unknown suffix; use .md, .csv, "
					".json or .txt, or add --format",
					a->output);
	}
	*ret = (enum rfl_format)format;
	return RFL_OK;
}

/* ---- the rows, and what is known of them before they run ---- */

static void add_row(struct job *j, int64_t warmup, bool graph, const char *precision,
		    const char *attention, const char *model, int64_t context)
{
	struct rfl_sweep_row row;

	rfl_sweep_row_init(&row);
	row.env = j->env;
	row.model = model;
	row.precision = precision;
	row.attention = attention;
	row.mode = j->plan->mode;
	row.optimizer = strcmp(j->plan->mode, "train") == 0 ? j->plan->optimizer : NULL;
	row.clips = j->plan->grad_clip > 0;
	row.grad_clip = row.clips ? j->plan->grad_clip : (double)NAN;
	row.context = context;
	row.batch = j->a->batch;
	row.warmup = warmup;
	row.graph = graph;
	/* a replayed step allocates nothing */
	row.profile_memory = j->a->profile_memory && !graph;
	for (size_t i = 0; i < j->s->n; i++)
		if (rfl_sweep_differs(&j->s->rows[i], &row) == 0)
			return; /* written twice on the command line */
	j->s->rows[j->s->n++] = row;
}

static enum rfl_rc add_rows(struct job *j, struct rfl_err *err)
{
	const struct rfl_sweep_args *a = j->a;
	const struct rfl_sweep_plan *p = j->plan;
	const struct rfl_opt_int_list *w = &a->warmup_study;
	const size_t nwarm = w->n ? w->n : 1;

	j->s->arena = rfl_arena_new();
	j->s->rows = rfl_alloc_array(nwarm * a->graphs.n * a->precisions.n * a->attentions.n *
					     p->nmodels * a->contexts.n,
				     sizeof(*j->s->rows));
	j->env = j->s->arena ? rfl_arena_strdup(j->s->arena, j->env_name) : NULL;
	if (!j->env || !j->s->rows)
		return no_memory(j, err);
	for (size_t i = 0; i < nwarm; i++)
		for (size_t g = 0; g < a->graphs.n; g++)
			for (size_t k = 0; k < a->precisions.n; k++)
				for (size_t f = 0; f < a->attentions.n; f++)
					for (size_t m = 0; m < p->nmodels; m++)
						for (size_t c = 0; c < a->contexts.n; c++)
							add_row(j, w->n ? w->items[i] : a->warmup,
								strcmp(a->graphs.items[g], "on") ==
									0,
								a->precisions.items[k],
								a->attentions.items[f],
								p->models[m], a->contexts.items[c]);
	return RFL_OK;
}

/* ---- the matrix ---- */

/* The options that are not set by the matrix itself. Defaults are left out, so that the id of a
 * cell does not change when an option is added. */
static json_t *options_of(const struct job *j, const struct rfl_sweep_row *r)
{
	const struct rfl_sweep_plan *p = j->plan;
	json_t *o = json_pack("{s:I, s:I, s:I, s:s, s:b}", "warmup-iters", (json_int_t)r->warmup,
			      "iters", (json_int_t)j->a->iters, "context-length",
			      (json_int_t)r->context, "mode", p->mode, "synthetic", 1);
	bool ok = o != NULL;

	if (ok && strcmp(r->attention, "auto") != 0)
		ok = json_object_set_new(o, "attention", json_string(r->attention)) == 0;
	if (ok && r->graph)
		ok = json_object_set_new(o, "cuda-graph", json_true()) == 0;
	if (ok && r->profile_memory)
		ok = json_object_set_new(o, "profile-memory", json_true()) == 0;
	if (ok && strcmp(j->a->engine, "auto") != 0)
		ok = json_object_set_new(o, "engine", json_string(j->a->engine)) == 0;
	if (ok && j->a->threads)
		ok = json_object_set_new(o, "threads", json_integer(j->a->threads)) == 0;
	if (ok && strcmp(p->mode, "train") == 0)
		ok = json_object_set_new(o, "optimizer", json_string(p->optimizer)) == 0;
	if (ok && p->grad_clip > 0)
		ok = json_object_set_new(o, "grad-clip", json_real(p->grad_clip)) == 0;
	if (!ok) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* One environment for each row, because options belong to environments. */
static enum rfl_rc make_matrix(struct job *j, struct rfl_err *err)
{
	json_t *envs = json_array();
	json_t *root =
		json_pack("{s:s, s:s, s:I, s:o}", "schema", "roofline.matrix/1", "name", "bench",
			  "repeats", (json_int_t)j->a->repeats, "environments", envs);
	struct rfl_buf text;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&text, 0);
	j->row_of = rfl_alloc_array(j->s->n, sizeof(*j->row_of));
	for (size_t i = 0; root && j->row_of && i < j->s->n; i++) {
		const struct rfl_sweep_row *r = &j->s->rows[i];
		json_t *env, *options;

		if (r->reason)
			continue;
		options = options_of(j, r);
		env = json_pack("{s:s, s:s, s:[s], s:[s], s:[I], s:o}", "name", j->env, "backend",
				rfl_run_device_choices[j->a->backend], "models", r->model,
				"precisions", r->precision, "batch_sizes", (json_int_t)r->batch,
				"options", options);
		if (!options || json_array_append_new(envs, env) != 0) {
			json_decref(root);
			root = NULL;
		} else {
			j->row_of[n++] = i;
		}
	}
	if (!root || !j->row_of) {
		rc = no_memory(j, err);
		goto done;
	}
	if (n > 0) {
		rfl_json_write(&text, root);
		if ((rc = rfl_buf_check(&text, j->plan->name, err)) == RFL_OK)
			rc = rfl_matrix_parse(rfl_buf_str(&text), text.len, j->plan->name, &j->m,
					      err);
	}
done:
	json_decref(root);
	rfl_buf_fini(&text);
	return rc;
}

/* Execute all runs. An option that 'roofline run' rejects is reported as there. */
static enum rfl_rc execute(struct job *j, struct rfl_err *err)
{
	const struct rfl_matrix *m = j->m;
	struct rfl_matrix_execution how = j->a->how;
	struct rfl_matrix_pick pick = { .m = j->m };
	enum rfl_rc rc = RFL_OK;

	how.shuffle = -1;
	how.quiet = true;
	for (size_t i = 0; i < m->ncells && rc == RFL_OK; i++) {
		struct rfl_run_config config;
		int argc = 0;
		char **argv = rfl_cli_matrix_argv(&m->cells[i], 0, &argc);

		rc = argv ? rfl_run_config_parse(j->cli, argc, argv, &config, err)
			  : no_memory(j, err);
		free(argv);
		j->s->rows[j->row_of[i]].cell = rfl_arena_strdup(j->s->arena, m->cells[i].id);
		if (rc == RFL_OK && !j->s->rows[j->row_of[i]].cell)
			rc = no_memory(j, err);
	}
	if (rc)
		return rc;
	pick.n = m->ncells * (size_t)m->repeats;
	pick.runs = rfl_alloc_array(pick.n, sizeof(*pick.runs));
	if (!pick.runs)
		return no_memory(j, err);
	for (size_t i = 0; i < pick.n; i++)
		pick.runs[i] = i;
	rc = rfl_cli_matrix_execute(j->cli, &pick, &how, err);
	free(pick.runs);
	return rc;
}

/* Fill in a row from the runs of its cell. */
static void collect(struct job *j, size_t cell, const struct rfl_matrix_view *view)
{
	struct rfl_sweep_run *runs =
		rfl_arena_array(j->s->arena, (size_t)j->m->repeats, sizeof(*runs));
	size_t n = 0;

	for (size_t i = cell; i < view->cover.nruns; i += j->m->ncells) {
		const struct rfl_ledger_row *row = view->cover.runs[i].row;

		if (row)
			runs[n++] = (struct rfl_sweep_run){
				.row = row,
				.steps = rfl_arena_printf(j->s->arena, "%s/steps/%s.csv",
							  j->a->how.log_dir, row->run_id),
			};
	}
	rfl_sweep_collect(j->s, &j->s->rows[j->row_of[cell]], runs, n);
}

enum rfl_rc rfl_sweep_run(struct rfl_cli *cli, const struct rfl_sweep_plan *plan,
			  struct rfl_sweep *ret, struct rfl_err *err)
{
	struct job j = { .cli = cli, .plan = plan, .a = plan->args, .s = ret };
	struct rfl_matrix_view view = { .ledger = NULL };
	const struct rfl_zoo_model *model;
	enum rfl_format format;
	enum rfl_rc rc;

	*ret = (struct rfl_sweep){ .n = 0 };
	if ((rc = find_format(j.a, &format, err)) ||
	    (j.a->output && !j.a->how.dry_run && (rc = check_output(j.a->output, err))))
		return rc;
	if (j.a->env && (rc = rfl_text_check_env_name("--env", j.a->env, RFL_EUSAGE, err)))
		return rc;
	if (rfl_label_env(j.a->env, NULL, NULL,
			  j.a->backend ? rfl_run_device_choices[j.a->backend] : "local", j.env_name,
			  err) != RFL_OK)
		return RFL_EUSAGE;
	if ((j.a->peaks && (rc = rfl_cli_load_peaks(j.a->peaks, &j.peaks, err))) ||
	    (rc = add_rows(&j, err)))
		goto done;
	for (size_t i = 0; i < ret->n; i++)
		rfl_sweep_count(ret, &ret->rows[i], NULL, j.a->backend - 1 == RFL_DEVICE_CUDA);
	if ((rc = make_matrix(&j, err)) || (j.m && (rc = execute(&j, err))))
		goto done;
	if (j.a->how.dry_run) {
		ret->n = 0;
		goto done;
	}
	if (j.m && (rc = rfl_cli_matrix_view_rows(j.m, j.a->how.log_dir, &view, err)))
		goto done;
	for (size_t i = 0; j.m && i < j.m->ncells; i++)
		collect(&j, i, &view);
	/* the names in the ledger: cs336_small, not S */
	for (size_t i = 0; i < ret->n; i++)
		if (rfl_zoo_find(ret->rows[i].model, &model, NULL) == RFL_OK &&
		    model->context_length > 0 && !rfl_sweep_is_attention(ret->rows[i].model))
			ret->rows[i].model = model->name;
	rfl_sweep_compare(ret, (enum rfl_sweep_by)j.a->by);
	rfl_sweep_place(ret, j.peaks);
done:
	rfl_matrix_view_fini(&view);
	rfl_matrix_free(j.m);
	free(j.row_of);
	rfl_peaks_free(j.peaks);
	return rc;
}

/* Say how many runs are ok, and fail if none is. */
static enum rfl_rc judge(const struct rfl_sweep_plan *plan, const struct rfl_sweep *s,
			 struct rfl_err *err)
{
	const size_t all = s->n * (size_t)plan->args->repeats;
	size_t ok = 0, refused = 0, unsupported = 0;

	for (size_t i = 0; i < s->n; i++) {
		ok += rfl_text_same(s->rows[i].status, "nan") ? 0 : (size_t)s->rows[i].runs;
		refused += rfl_text_same(s->rows[i].status, "refused");
		unsupported += rfl_text_same(s->rows[i].status, "unsupported");
	}
	refused *= (size_t)plan->args->repeats;
	if (ok == 0)
		return rfl_fail(err, unsupported == s->n ? RFL_EUNAVAILABLE : RFL_EFAILED, 0,
				"no run is ok (%zu in all); the table has the reasons", all);
	if (refused)
		rfl_log(RFL_LOG_INFO, "%zu of %zu runs ok, %zu refused", ok, all, refused);
	else
		rfl_log(RFL_LOG_INFO, "%zu of %zu runs ok", ok, all);
	return RFL_OK;
}

enum rfl_rc rfl_sweep_put(struct rfl_cli *cli, const struct rfl_sweep_plan *plan,
			  const struct rfl_sweep *s, enum rfl_sweep_table kind, struct rfl_err *err)
{
	const struct rfl_sweep_args *a = plan->args;
	struct rfl_sweep shown = *s;
	enum rfl_format format;
	struct rfl_table *t;
	struct rfl_buf out;
	enum rfl_rc rc = find_format(a, &format, err);

	if (rc)
		return rc;
	shown.complete = !rfl_format_for_people(format);
	shown.narrow = format == RFL_FORMAT_TABLE;
	t = rfl_sweep_table(&shown, kind, (enum rfl_sweep_by)a->by);
	if (!a->output) {
		rc = rfl_cli_put_table(cli, t, format, err);
		return rc ? rc : judge(plan, s, err);
	}
	rfl_buf_init(&out, 0);
	rfl_table_finish(t, format, &out);
	if (!(rc = rfl_buf_check(&out, a->output, err)))
		rc = rfl_file_write(a->output, rfl_buf_str(&out), out.len, err);
	rfl_buf_fini(&out);
	return rc ? rc : judge(plan, s, err);
}
