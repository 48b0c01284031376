/*
 * bench_decode.c - roofline bench decode: language models that generate, over models, batches and
 * caches. A run matrix in memory: every cell is a run of the ledger.
 */
#include "cli/cmd/bench.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/inputs.h"
#include "cli/inventory.h"
#include "report/generation.h"

struct decode_args {
	struct rfl_opt_list models, precisions, weights;
	struct rfl_opt_int_list batches, pasts, prompts;
	int64_t warmup, iters, repeats, threads;
	const char *env, *engine, *peaks, *output;
	int backend, format;
	bool format_given;
	struct rfl_matrix_execution how;
};

#define D(kind, member, ...) RFL_OPT(struct decode_args, kind, member, __VA_ARGS__)

static const struct rfl_opt decode_opts[] = {
	D(LIST, models, .name = "models", .often = true, .meta = "MODEL", .def = "smollm2_135m",
	  .help = "language models, such as llama3.2_1b, or config.json files of Hugging Face"),
	D(INT_LIST, batches, .name = "batch-size", .often = true, .meta = "N", .def = "1 4 16",
	  .min = 1, .max = 1 << 20, .help = "sequences that are generated together"),
	D(INT_LIST, pasts, .name = "past", .often = true, .meta = "N", .def = "64 1024", .min = 0,
	  .max = 1 << 24, .help = "tokens in the cache before the first step"),
	D(INT_LIST, prompts, .name = "prompt", .often = true, .meta = "N", .min = 1, .max = 1 << 24,
	  .help = "also measure prompts of so many tokens (mode prefill)"),
	D(LIST, precisions, .name = "precision", .often = true, .meta = "P",
	  .choices = rfl_precision_names, .def = "bf16",
	  .help = "types of weights, activations and cache"),
	D(LIST, weights, .name = "weights", .often = true, .meta = "FORMAT",
	  .choices = rfl_run_weights_names, .def = "plain",
	  .help = "how the weights of the layers are stored"),
	D(INT, warmup, .name = "warmup-iters", .meta = "N", .def = "3", .min = 0, .max = 1000000,
	  .help = "number of steps before the measured ones"),
	D(INT, iters, .name = "iters", .meta = "N", .def = "32", .min = 1, .max = 10000000,
	  .help = "tokens to generate of each sequence; a prompt is measured a quarter as often"),
	D(INT, repeats, .name = "repeats", .often = true, .meta = "N", .def = "1", .min = 1,
	  .max = 1000, .help = "runs of each configuration"),
	D(CHOICE, backend, .name = "backend", .often = true, .meta = "DEVICE",
	  .choices = rfl_run_device_choices, .def = "auto", .help = "device to run on"),
	D(TEXT, engine, .name = "engine", .meta = "NAME", .def = "auto",
	  .help = "engine to use; see 'roofline list engines'"),
	D(INT, threads, .name = "threads", .meta = "N", .def = "0", .min = 0, .max = 4096,
	  .help = "number of compute threads; 0: one per usable core"),
	D(TEXT, env, .name = "env", .meta = "NAME", .project = "env", .help = RFL_ENV_HELP),
	D(TEXT, peaks, .name = "peaks", .meta = "FILE", .project = "peaks", .found = true,
	  .help = "peaks file with the ceilings of the environment, for the bound"),
	D(TEXT, how.log_dir, RFL_MATRIX_LOG_DIR),
	D(FLAG, how.retry_failed, RFL_MATRIX_RETRY_FAILED),
	D(FLAG, how.share_device, RFL_MATRIX_SHARE_DEVICE),
	D(FLAG, how.dry_run, RFL_MATRIX_DRY_RUN),
	D(TEXT, output, RFL_OPT_OUTPUT,
	  .help = "file for the table; without --format, the suffix .md, .csv or .json selects the "
		  "format; default: standard output"),
	D(CHOICE, format, .given = offsetof(struct decode_args, format_given), RFL_OPT_FORMAT),
	{ .name = NULL },
};

/* The runs of one mode with one length of the cache or of the prompt, as an environment of a
 * matrix, because options belong to environments. */
static void add(const struct decode_args *a, const char *env, const char *weights, int64_t past,
		int64_t prompt, json_t *envs)
{
	const int64_t iters = prompt && a->iters > 4 ? a->iters / 4 : a->iters;
	json_t *models = json_array(), *precisions = json_array(), *batches = json_array();
	json_t *o = json_pack("{s:s, s:I, s:I}", "mode", prompt ? "prefill" : "decode",
			      "warmup-iters", (json_int_t)a->warmup, "iters", (json_int_t)iters);

	if (prompt)
		rfl_json_put(&o, "context-length", json_integer(prompt));
	if (past)
		rfl_json_put(&o, "past", json_integer(past));
	if (strcmp(weights, rfl_run_weights_names[0]) != 0)
		rfl_json_put(&o, "weights", json_string(weights));
	if (strcmp(a->engine, "auto") != 0)
		rfl_json_put(&o, "engine", json_string(a->engine));
	if (a->threads)
		rfl_json_put(&o, "threads", json_integer(a->threads));
	for (size_t i = 0; i < a->models.n; i++)
		(void)json_array_append_new(models, json_string(a->models.items[i]));
	for (size_t i = 0; i < a->precisions.n; i++)
		(void)json_array_append_new(precisions, json_string(a->precisions.items[i]));
	for (size_t i = 0; i < a->batches.n; i++)
		(void)json_array_append_new(batches, json_integer(a->batches.items[i]));
	(void)json_array_append_new(envs, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", env,
						    "backend", rfl_run_device_choices[a->backend],
						    "models", models, "precisions", precisions,
						    "batch_sizes", batches, "options", o));
}

static enum rfl_rc make_matrix(const struct decode_args *a, const char *env,
			       struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *envs = json_array();

	for (size_t w = 0; w < a->weights.n; w++) {
		for (size_t i = 0; i < a->prompts.n; i++)
			add(a, env, a->weights.items[w], 0, a->prompts.items[i], envs);
		for (size_t i = 0; i < a->pasts.n; i++)
			add(a, env, a->weights.items[w], a->pasts.items[i], 0, envs);
	}
	return rfl_bench_matrix("bench decode", a->repeats, envs, ret, err);
}

static enum rfl_rc put(struct rfl_cli *cli, const struct decode_args *a, enum rfl_format format,
		       const struct rfl_matrix *m, const struct rfl_peaks *peaks,
		       struct rfl_err *err)
{
	struct rfl_generation *rows = rfl_arena_array(cli->arena, m->ncells, sizeof(*rows));
	const struct rfl_ledger_row **of =
		rfl_arena_array(cli->arena, (size_t)m->repeats, sizeof(struct rfl_ledger_row *));
	RFL_AUTO(matrix_view) view = { .ledger = NULL };
	RFL_AUTO(buf) out = { .len = 0 };
	size_t n = 0, ok = 0;
	enum rfl_rc rc = rfl_cli_matrix_view_rows(m, a->how.log_dir, &view, err);

	for (size_t c = 0; rc == RFL_OK && c < m->ncells; c++) {
		size_t k = 0;

		for (size_t i = c; i < view.cover.nruns; i += m->ncells)
			if (view.cover.runs[i].row)
				of[k++] = view.cover.runs[i].row;
		if (k == 0)
			continue;
		rfl_generation_of(of, k, m->cells[c].file, peaks, cli->arena, &rows[n]);
		ok += (size_t)rows[n++].runs;
	}
	if (rc)
		return rc;
	if (n == 0)
		return rfl_fail(err, RFL_EFAILED, 0, "no run was started");
	rfl_table_finish(rfl_generation_table(rows, n, !rfl_format_for_people(format)), format,
			 &out);
	rc = rfl_cli_deliver(cli, a->output, format, &out, "table", err);
	if (rc == RFL_OK && ok == 0)
		return rfl_fail(err, RFL_EFAILED, 0,
				"no run is ok (%zu in all); the table has the reasons", n);
	return rc;
}

static enum rfl_rc run_decode(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct decode_args *a = args;
	const char *device = rfl_run_device_choices[a->backend], *env;
	RFL_AUTOPTR(matrix) m = NULL;
	RFL_AUTOPTR(peaks) peaks = NULL;
	enum rfl_format format = RFL_FORMAT_TABLE;
	enum rfl_rc rc;

	if ((rc = rfl_bench_output(a->output, a->format, a->format_given, !a->how.dry_run, &format,
				   err)) ||
	    (a->env && (rc = rfl_text_check_env_name("--env", a->env, RFL_EUSAGE, err))) ||
	    (!a->backend && (rc = rfl_cli_auto_device(cli, a->engine, &device, err))) ||
	    (a->peaks && (rc = rfl_cli_load_peaks(a->peaks, &peaks, err))))
		return rc;
	env = a->env ? a->env : device;
	if ((rc = make_matrix(a, env, &m, err)) || (rc = rfl_bench_execute(cli, m, &a->how, err)) ||
	    a->how.dry_run)
		return rc;
	return put(cli, a, format, m, peaks, err);
}

const struct rfl_cmd rfl_cmd_bench_decode = {
	.name = "bench decode",
	.summary = "measure how fast language models generate",
	.description =
		"Measures the steps in which a language model generates a token of each sequence, "
		"over models, batches and lengths of the cache, and with --prompt the time to the "
		"first token (docs/reference/bench.md). The weights are random numbers, which does "
		"not change the time. Each combination is a run of the ledger, in the modes decode "
		"and prefill: 'points', 'plot' and 'report' use them, and repeating the command "
		"runs only what is missing.",
	.example = "roofline bench decode --models smollm2_135m --batch-size 1 16\n"
		   "roofline bench decode --models llama3.2_1b --precision bf16 --weights plain "
		   "int8 --prompt 512",
	.opts = decode_opts,
	.args_size = sizeof(struct decode_args),
	.run = run_decode,
};
