/* bench_lm.c - roofline bench lm: forward, backward and update of language models over models,
 * contexts and precisions. */
#include "cli/cmd/bench_sweep.h"
#include "complexity/zoo.h"
#include "runner/run.h"

struct lm_args {
	struct rfl_opt_list models;
	struct rfl_sweep_args sweep;
	int mode, optimizer;
	double grad_clip;
	bool optimizer_given;
};

#define OPT(kind, member, ...) RFL_OPT(struct lm_args, kind, member, __VA_ARGS__)

static const struct rfl_opt opts[] = {
	OPT(LIST, models, .name = "models", .meta = "MODEL", .def = "S",
	    .help = "language models; S, M, L, XL and 2p7 are those of CS336"),
	OPT(INT, sweep.batch, .name = "batch-size", .meta = "N", .def = "4", .min = 1,
	    .max = 1 << 20, .help = "samples per step"),
	OPT(CHOICE, mode, .name = "mode", .meta = "MODE", .choices = rfl_run_mode_names,
	    .def = "fwd_bwd", .help = "parts of a step to run"),
	OPT(CHOICE, optimizer, .name = "optimizer", .meta = "NAME",
	    .given = offsetof(struct lm_args, optimizer_given), .choices = rfl_optimizer_rule_names,
	    .def = "adamw", .help = "update rule, in mode train"),
	OPT(REAL, grad_clip, .name = "grad-clip", .meta = "NORM", .def = "0", .rmin = 0,
	    .rmax = 1e30, .help = "largest norm of the gradients, in mode train; 0: no clipping"),
	OPT(LIST, sweep.attentions, .name = "attention", .meta = "FORM",
	    .choices = rfl_attention_names, .def = "auto", .help = "forms of attention"),
	RFL_SWEEP_OPTS(struct lm_args, "10"),
	{ .name = NULL },
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct lm_args *a = args;
	const struct rfl_sweep_plan plan = {
		.name = "bench lm",
		.args = &a->sweep,
		.nmodels = a->models.n,
		.models = a->models.items,
		.mode = rfl_run_mode_names[a->mode],
		.optimizer = rfl_optimizer_rule_names[a->optimizer],
		.grad_clip = a->grad_clip,
	};
	struct rfl_sweep sweep = { .n = 0 };
	const struct rfl_zoo_model *model;
	enum rfl_rc rc = RFL_OK;

	if (a->mode != RFL_RUN_TRAIN && (a->optimizer_given || a->grad_clip > 0))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--%s: --mode %s does not update the weights; use --mode train, or "
				"leave it out",
				a->optimizer_given ? "optimizer" : "grad-clip",
				rfl_run_mode_names[a->mode]);

	for (size_t i = 0; i < a->models.n && rc == RFL_OK; i++) {
		if (rfl_zoo_find(a->models.items[i], &model, err) != RFL_OK) {
			rfl_err_prefix(err, "--models");
			rc = RFL_EUSAGE;
		} else if (model->context_length == 0) {
			rc = rfl_fail(err, RFL_EUSAGE, 0,
				      "--models: %s reads images; use a language model, such as S",
				      model->name);
		}
	}
	if (rc == RFL_OK)
		rc = rfl_sweep_run(cli, &plan, &sweep, err);
	if (rc == RFL_OK && !a->sweep.how.dry_run)
		rc = rfl_sweep_put(cli, &plan, &sweep, RFL_SWEEP_LM, err);
	rfl_sweep_fini(&sweep);
	return rc;
}

const struct rfl_cmd rfl_cmd_bench_lm = {
	.name = "bench lm",
	.summary = "time language models over sizes, contexts and precisions",
	.description =
		"Measures every combination of the options in a run of its own (docs/bench.md), "
		"with the times of forward, backward and update, the FLOP/s and the memory that "
		"the network should need. The runs are rows of the ledger: 'points', 'summary' and "
		"'plot' use them, and repeating the command runs only what is missing. A run that "
		"does not fit in memory is a row with the status oom, and the sweep continues.",
	.example = "roofline bench lm --models S M --context-length 128 256 --peaks peaks.json\n"
		   "roofline bench lm --models S --precision fp32 bf16 --by precision\n"
		   "roofline bench lm --models S --warmup-study 0 1 5 --format md",
	.opts = opts,
	.args_size = sizeof(struct lm_args),
	.run = run,
};
