/*
 * bench_sweep.c - roofline bench lm and attention: sweeps of language models, and of one attention
 * without heads. A sweep is a run matrix in memory: every cell is a run of the ledger, and the rows
 * of the table are read back from there.
 */
#include "cli/cmd/bench.h"

#include <stdio.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cmd/run_config.h"
#include "cli/inputs.h"
#include "cli/inventory.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"
#include "report/sweep.h"

static const char *const states[] = { "off", "on", NULL };

/* The options of all sweeps. The first member is for commands with operands. */
struct sweep_args {
	struct rfl_opt_int_list contexts, warmup_study;
	struct rfl_opt_list precisions, attentions, graphs;
	int64_t batch, warmup, iters, repeats, threads;
	const char *env, *engine, *peaks, *output;
	int backend, by, format;
	bool profile_memory, format_given;
	struct rfl_matrix_execution how;
};

/* Their rows, for an argument struct with a member `sweep`. */
#define SWEEP_OPTS(type, iters_)                                                                   \
	RFL_OPT(type, INT_LIST, sweep.contexts, .name = "context-length", .often = true,           \
		.meta = "N", .def = "256", .min = 1, .max = 1 << 24, .help = "tokens per sample"), \
		RFL_OPT(type, LIST, sweep.precisions, .name = "precision", .often = true,          \
			.meta = "P", .choices = rfl_precision_names, .def = "fp32",                \
			.help = "numeric precisions"),                                             \
		RFL_OPT(type, LIST, sweep.graphs, .name = "cuda-graph", .meta = "STATE",           \
			.choices = states, .def = "off",                                           \
			.help = "whether one step is recorded as a CUDA graph and replayed"),      \
		RFL_OPT(type, INT, sweep.warmup, .name = "warmup-iters", .meta = "N", .def = "5",  \
			.min = 0, .max = 1000000,                                                  \
			.help = "number of steps before the measured ones"),                       \
		RFL_OPT(type, INT_LIST, sweep.warmup_study, .name = "warmup-study", .meta = "N",   \
			.against = "warmup-iters", .min = 0, .max = 1000000,                       \
			.help = "repeat the benchmark with each number of warm-up steps; "         \
				"replaces --warmup-iters"),                                        \
		RFL_OPT(type, INT, sweep.iters, .name = "iters", .meta = "N", .def = iters_,       \
			.min = 1, .max = 10000000, .help = "number of measured steps"),            \
		RFL_OPT(type, INT, sweep.repeats, .name = "repeats", .often = true, .meta = "N",   \
			.def = "1", .min = 1, .max = 1000,                                         \
			.help = "runs of each configuration; their steps are pooled"),             \
		RFL_OPT(type, CHOICE, sweep.backend, .name = "backend", .often = true,             \
			.meta = "DEVICE", .choices = rfl_run_device_choices, .def = "auto",        \
			.help = "device to run on"),                                               \
		RFL_OPT(type, TEXT, sweep.engine, .name = "engine", .meta = "NAME", .def = "auto", \
			.help = "engine to use; see 'roofline list engines'"),                     \
		RFL_OPT(type, INT, sweep.threads, .name = "threads", .meta = "N", .def = "0",      \
			.min = 0, .max = 4096,                                                     \
			.help = "number of compute threads; 0: one per usable core"),              \
		RFL_OPT(type, TEXT, sweep.env, .name = "env", .meta = "NAME", .project = "env",    \
			.help = RFL_ENV_HELP),                                                     \
		RFL_OPT(type, TEXT, sweep.peaks, .name = "peaks", .meta = "FILE",                  \
			.project = "peaks", .found = true,                                         \
			.help = "peaks file with the ceilings of the environment, for MFU and "    \
				"bound"),                                                          \
		RFL_OPT(type, CHOICE, sweep.by, .name = "by", .often = true, .meta = "SETTING",    \
			.choices = rfl_sweep_settings, .def = "none",                              \
			.help = "add the speedup over the first value of this setting"),           \
		RFL_OPT(type, FLAG, sweep.profile_memory, .name = "profile-memory",                \
			.help = "record the memory of one more step of each run"),                 \
		RFL_OPT(type, TEXT, sweep.how.log_dir, RFL_MATRIX_LOG_DIR),                        \
		RFL_OPT(type, FLAG, sweep.how.retry_failed, RFL_MATRIX_RETRY_FAILED),              \
		RFL_OPT(type, FLAG, sweep.how.share_device, RFL_MATRIX_SHARE_DEVICE),              \
		RFL_OPT(type, FLAG, sweep.how.dry_run, RFL_MATRIX_DRY_RUN),                        \
		RFL_OPT(type, TEXT, sweep.output, RFL_OPT_OUTPUT,                                  \
			.help = "file for the table; without --format, the suffix .md, .csv or "   \
				".json selects the format; default: standard output"),             \
		RFL_OPT(type, CHOICE, sweep.format, .given = offsetof(type, sweep.format_given),   \
			RFL_OPT_FORMAT)

/* A sweep, and the options of its runs that are the same in every cell. */
struct sweep_plan {
	const char *name; /* for messages: "bench lm" */
	const struct sweep_args *args;
	size_t nmodels;
	const char *const *models; /* as the table shows them */
	const char *mode, *optimizer;
	double grad_clip; /* 0: none */
};

/* A sweep while it is made. */
struct job {
	struct rfl_cli *cli;
	const struct sweep_plan *plan;
	const struct sweep_args *a;
	struct rfl_sweep *s;
	const char *device, *env;
	size_t *row_of; /* for each cell of the matrix: its row */
};

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

static void add_rows(struct job *j)
{
	const struct sweep_args *a = j->a;
	const struct sweep_plan *p = j->plan;
	const struct rfl_opt_int_list *w = &a->warmup_study;
	const size_t nwarm = w->n ? w->n : 1;

	j->s->arena = rfl_arena_new();
	j->s->rows = rfl_alloc_array(nwarm * a->graphs.n * a->precisions.n * a->attentions.n *
					     p->nmodels * a->contexts.n,
				     sizeof(*j->s->rows));
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
}

/* ---- the matrix ---- */

/* The options that are not set by the matrix itself. Defaults are omitted, so that the id of a cell
 * does not change when an option is added. */
static json_t *options_of(const struct job *j, const struct rfl_sweep_row *r)
{
	const struct sweep_plan *p = j->plan;
	json_t *o = json_pack("{s:I, s:I, s:I, s:s, s:b}", "warmup-iters", (json_int_t)r->warmup,
			      "iters", (json_int_t)j->a->iters, "context-length",
			      (json_int_t)r->context, "mode", p->mode, "synthetic", 1);

	if (strcmp(r->attention, "auto") != 0)
		rfl_json_put(&o, "attention", json_string(r->attention));
	if (r->graph)
		rfl_json_put(&o, "cuda-graph", json_true());
	if (r->profile_memory)
		rfl_json_put(&o, "profile-memory", json_true());
	if (strcmp(j->a->engine, "auto") != 0)
		rfl_json_put(&o, "engine", json_string(j->a->engine));
	if (j->a->threads)
		rfl_json_put(&o, "threads", json_integer(j->a->threads));
	if (strcmp(p->mode, "train") == 0)
		rfl_json_put(&o, "optimizer", json_string(p->optimizer));
	if (p->grad_clip > 0)
		rfl_json_put(&o, "grad-clip", json_real(p->grad_clip));
	return o;
}

/* One environment for each row, because options belong to environments.
 * @param ret  left NULL if no row can run */
static enum rfl_rc make_matrix(struct job *j, struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *envs = json_array();
	size_t n = 0;

	j->row_of = rfl_arena_array(j->cli->arena, j->s->n, sizeof(*j->row_of));
	for (size_t i = 0; i < j->s->n; i++) {
		const struct rfl_sweep_row *r = &j->s->rows[i];

		if (r->reason)
			continue;
		(void)json_array_append_new(
			envs, json_pack("{s:s, s:s, s:[s], s:[s], s:[I], s:o}", "name", j->env,
					"backend", rfl_run_device_choices[j->a->backend], "models",
					r->model, "precisions", r->precision, "batch_sizes",
					(json_int_t)r->batch, "options", options_of(j, r)));
		j->row_of[n++] = i;
	}
	if (n == 0) {
		json_decref(envs);
		return RFL_OK;
	}
	return rfl_bench_matrix(j->plan->name, j->a->repeats, envs, ret, err);
}

/* Fill in a row from the runs of its cell. */
static void collect(struct job *j, const struct rfl_matrix *m, size_t cell,
		    const struct rfl_matrix_view *view)
{
	struct rfl_sweep_run *runs =
		rfl_arena_array(j->s->arena, (size_t)m->repeats, sizeof(*runs));
	size_t n = 0;

	for (size_t i = cell; i < view->cover.nruns; i += m->ncells) {
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

/* Write the table to standard output or --output; report how many runs are ok, and fail if none is.
 */
static enum rfl_rc put(struct job *j, enum rfl_sweep_table kind, enum rfl_format format,
		       struct rfl_err *err)
{
	const size_t repeats = (size_t)j->a->repeats, all = j->s->n * repeats;
	struct rfl_sweep shown = *j->s;
	size_t ok = 0, refused = 0, unsupported = 0;
	RFL_AUTO(buf) out = { .len = 0 };
	enum rfl_rc rc = RFL_OK;

	shown.complete = !rfl_format_for_people(format);
	shown.narrow = format == RFL_FORMAT_TABLE;
	rfl_table_finish(rfl_sweep_table(&shown, kind, (enum rfl_sweep_by)j->a->by), format, &out);
	if ((j->a->output && (rc = rfl_file_mkdirs_for(j->a->output, err))) ||
	    (rc = rfl_cli_deliver(j->cli, j->a->output, format, &out, "table", err)))
		return rc;
	for (size_t i = 0; i < j->s->n; i++) {
		const struct rfl_sweep_row *r = &j->s->rows[i];

		ok += rfl_text_same(r->status, "nan") ? 0 : (size_t)r->runs;
		refused += rfl_text_same(r->status, "refused") * repeats;
		unsupported += rfl_text_same(r->status, "unsupported");
	}
	if (ok == 0)
		return rfl_fail(err, unsupported == j->s->n ? RFL_EUNAVAILABLE : RFL_EFAILED, 0,
				"no run is ok (%zu in all); the table has the reasons", all);
	if (refused)
		rfl_log(RFL_LOG_INFO, "%zu of %zu runs ok, %zu refused", ok, all, refused);
	else
		rfl_log(RFL_LOG_INFO, "%zu of %zu runs ok", ok, all);
	return RFL_OK;
}

/* Execute what is missing in the ledger, and print the rows; with --dry-run there are none. */
static enum rfl_rc sweep(struct rfl_cli *cli, const struct sweep_plan *plan,
			 enum rfl_sweep_table kind, struct rfl_err *err)
{
	RFL_AUTO(sweep) s = { .n = 0 };
	struct job j = { .cli = cli, .plan = plan, .a = plan->args, .s = &s };
	RFL_AUTO(matrix_view) view = { .ledger = NULL };
	RFL_AUTOPTR(matrix) m = NULL;
	RFL_AUTOPTR(peaks) peaks = NULL;
	const struct rfl_zoo_model *model;
	enum rfl_format format = RFL_FORMAT_TABLE;
	enum rfl_rc rc;

	j.device = rfl_run_device_choices[j.a->backend];
	if ((rc = rfl_bench_output(j.a->output, j.a->format, j.a->format_given, !j.a->how.dry_run,
				   &format, err)) ||
	    (j.a->env && (rc = rfl_text_check_env_name("--env", j.a->env, RFL_EUSAGE, err))) ||
	    (!j.a->backend && (rc = rfl_cli_auto_device(cli, j.a->engine, &j.device, err))) ||
	    (j.a->peaks && (rc = rfl_cli_load_peaks(j.a->peaks, &peaks, err))))
		return rc;
	j.env = j.a->env ? j.a->env : j.device;
	add_rows(&j);
	for (size_t i = 0; i < s.n; i++)
		rfl_sweep_count(&s, &s.rows[i], NULL, strcmp(j.device, "cuda") == 0);
	if ((rc = make_matrix(&j, &m, err)) ||
	    (m && (rc = rfl_bench_execute(cli, m, &j.a->how, err))) || j.a->how.dry_run ||
	    (m && (rc = rfl_cli_matrix_view_rows(m, j.a->how.log_dir, &view, err))))
		return rc;
	for (size_t i = 0; m && i < m->ncells; i++) {
		s.rows[j.row_of[i]].cell = rfl_arena_strdup(s.arena, m->cells[i].id);
		collect(&j, m, i, &view);
	}
	/* the names in the ledger: cs336_small, not S */
	for (size_t i = 0; i < s.n; i++)
		if (rfl_zoo_find(s.rows[i].model, &model, NULL) == RFL_OK &&
		    model->context_length > 0 && !rfl_sweep_is_attention(s.rows[i].model))
			s.rows[i].model = model->name;
	rfl_sweep_compare(&s, (enum rfl_sweep_by)j.a->by);
	rfl_sweep_place(&s, peaks);
	return put(&j, kind, format, err);
}

/* ---- the commands ---- */

struct lm_args {
	struct rfl_opt_list models;
	struct sweep_args sweep;
	int mode, optimizer;
	double grad_clip;
	bool optimizer_given;
};

#define LM(kind, member, ...) RFL_OPT(struct lm_args, kind, member, __VA_ARGS__)

static const struct rfl_opt lm_opts[] = {
	LM(LIST, models, .name = "models", .often = true, .meta = "MODEL", .def = "S",
	   .help = "language models; S, M, L, XL and 2p7 are the sizes of CS336"),
	LM(INT, sweep.batch, .name = "batch-size", .often = true, .meta = "N", .def = "4", .min = 1,
	   .max = 1 << 20, .help = "samples per step"),
	LM(CHOICE, mode, .name = "mode", .often = true, .meta = "MODE",
	   .choices = rfl_run_mode_names, .def = "fwd_bwd", .help = "parts of a step to run"),
	LM(CHOICE, optimizer, .name = "optimizer", .meta = "NAME",
	   .given = offsetof(struct lm_args, optimizer_given), .choices = rfl_optimizer_rule_names,
	   .def = "adamw", .help = "update rule, in mode train"),
	LM(REAL, grad_clip, .name = "grad-clip", .meta = "NORM", .def = "0", .rmin = 0,
	   .rmax = 1e30, .help = "largest norm of the gradients, in mode train; 0: no clipping"),
	LM(LIST, sweep.attentions, .name = "attention", .often = true, .meta = "FORM",
	   .choices = rfl_attention_names, .def = "auto", .help = "attention implementations"),
	SWEEP_OPTS(struct lm_args, "10"),
	{ .name = NULL },
};

static enum rfl_rc run_lm(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct lm_args *a = args;
	const struct sweep_plan plan = {
		.name = "bench lm",
		.args = &a->sweep,
		.nmodels = a->models.n,
		.models = a->models.items,
		.mode = rfl_run_mode_names[a->mode],
		.optimizer = rfl_optimizer_rule_names[a->optimizer],
		.grad_clip = a->grad_clip,
	};
	const struct rfl_zoo_model *model;

	if (a->mode != RFL_RUN_TRAIN && (a->optimizer_given || a->grad_clip > 0))
		return rfl_usage(err,
				 "--%s: --mode %s does not update the weights; use --mode train, "
				 "or leave it out",
				 a->optimizer_given ? "optimizer" : "grad-clip",
				 rfl_run_mode_names[a->mode]);
	for (size_t i = 0; i < a->models.n; i++) {
		if (rfl_net_is_file(a->models.items[i]))
			return rfl_usage(err,
					 "--models: the context of a network file is fixed; use "
					 "'roofline run --arch %s --synthetic'",
					 a->models.items[i]);
		if (rfl_zoo_find(a->models.items[i], &model, err) != RFL_OK)
			return rfl_usage_of("--models", err);
		if (model->context_length == 0)
			return rfl_usage(
				err, "--models: %s reads images; use a language model, such as S",
				model->name);
	}
	return sweep(cli, &plan, RFL_SWEEP_LM, err);
}

const struct rfl_cmd rfl_cmd_bench_lm = {
	.name = "bench lm",
	.summary = "time language models over sizes, contexts and precisions",
	.description =
		"Measures every combination of the options in a run of its own "
		"(docs/reference/bench.md), "
		"with the times of forward, backward and update, the FLOP/s and the memory that "
		"the network should need. The runs are rows of the ledger: 'points', 'summary' and "
		"'plot' use them, and repeating the command runs only what is missing. A run that "
		"does not fit in memory is a row with the status oom, and the sweep continues.",
	.example = "roofline bench lm --models S M --context-length 128 256 --peaks peaks.json\n"
		   "roofline bench lm --models S --precision fp32 bf16 --by precision\n"
		   "roofline bench lm --models S --warmup-study 0 1 5 --format md",
	.opts = lm_opts,
	.args_size = sizeof(struct lm_args),
	.run = run_lm,
};

struct attention_args {
	struct rfl_opt_int_list features;
	struct sweep_args sweep;
	int mode;
};

#define ATTENTION(kind, member, ...) RFL_OPT(struct attention_args, kind, member, __VA_ARGS__)

/* An attention has no parameters to update. */
static const char *const modes[] = { "fwd_bwd", "fwd", NULL };

static const struct rfl_opt attention_opts[] = {
	ATTENTION(INT_LIST, features, .name = "d-model", .often = true, .meta = "N",
		  .def = "16 32 64 128", .min = 1, .max = 1 << 20,
		  .help = "features of queries, keys and values"),
	ATTENTION(INT, sweep.batch, .name = "batch-size", .meta = "N", .def = "8", .min = 1,
		  .max = 1 << 20, .help = "samples per pass"),
	ATTENTION(CHOICE, mode, .name = "mode", .meta = "MODE", .choices = modes, .def = "fwd_bwd",
		  .help = "forward and backward, or forward only"),
	ATTENTION(LIST, sweep.attentions, .name = "attention", .meta = "FORM",
		  .choices = rfl_attention_names, .def = "naive sdpa",
		  .help = "attention implementations"),
	SWEEP_OPTS(struct attention_args, "100"),
	{ .name = NULL },
};

static enum rfl_rc run_attention(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct attention_args *a = args;
	const size_t n = a->features.n;
	const char **models = rfl_arena_array(cli->arena, n, sizeof(*models));
	const struct sweep_plan plan = {
		.name = "bench attention",
		.args = &a->sweep,
		.nmodels = n,
		.models = models,
		.mode = modes[a->mode],
		.optimizer = "sgd",
	};

	for (size_t i = 0; i < n; i++)
		models[i] = rfl_arena_printf(cli->arena, "attention_d%lld",
					     (long long)a->features.items[i]);
	return sweep(cli, &plan, RFL_SWEEP_ATTENTION, err);
}

const struct rfl_cmd rfl_cmd_bench_attention = {
	.name = "bench attention",
	.summary = "time attention alone over context lengths and numbers of features",
	.description =
		"Measures a causal attention without heads or parameters, forward and backward to "
		"queries, keys and values (docs/reference/bench.md). Each combination of the "
		"options is a "
		"run in the ledger with the model attention_d<N>, as with 'bench lm'; repeating "
		"the command runs what is missing. Memory is predicted from the network: of the "
		"inputs, of what is kept after the forward pass, and at the peak.",
	.example =
		"roofline bench attention --context-length 256 1024 4096 --d-model 16 64 128\n"
		"roofline bench attention --precision fp32 bf16 --by attention --peaks peaks.json",
	.opts = attention_opts,
	.args_size = sizeof(struct attention_args),
	.run = run_attention,
};
