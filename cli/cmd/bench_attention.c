/* bench_attention.c - roofline bench attention: one attention without heads, forward and backward,
 * over contexts, features and forms. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/cmd/bench_sweep.h"
#include "complexity/zoo.h"
#include "runner/run.h"

struct attention_args {
	struct rfl_opt_int_list features;
	struct rfl_sweep_args sweep;
	int mode;
};

#define OPT(kind, member, ...) RFL_OPT(struct attention_args, kind, member, __VA_ARGS__)

/* An attention has no parameters to update. */
static const char *const modes[] = { "fwd_bwd", "fwd", NULL };

static const struct rfl_opt opts[] = {
	OPT(INT_LIST, features, .name = "d-model", .meta = "N", .def = "16 32 64 128", .min = 1,
	    .max = 1 << 20, .help = "features of queries, keys and values"),
	OPT(INT, sweep.batch, .name = "batch-size", .meta = "N", .def = "8", .min = 1,
	    .max = 1 << 20, .help = "samples per pass"),
	OPT(CHOICE, mode, .name = "mode", .meta = "MODE", .choices = modes, .def = "fwd_bwd",
	    .help = "forward and backward, or forward only"),
	OPT(LIST, sweep.attentions, .name = "attention", .meta = "FORM",
	    .choices = rfl_attention_names, .def = "naive sdpa", .help = "forms of attention"),
	RFL_SWEEP_OPTS(struct attention_args, "100"),
	{ .name = NULL },
};

static enum rfl_rc run(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct attention_args *a = args;
	const size_t n = a->features.n;
	char(*names)[32] = rfl_alloc_array(n, sizeof(*names));
	const char **models = rfl_alloc_array(n, sizeof(*models));
	const struct rfl_sweep_plan plan = {
		.name = "bench attention",
		.args = &a->sweep,
		.nmodels = n,
		.models = models,
		.mode = modes[a->mode],
		.optimizer = "sgd",
	};
	struct rfl_sweep sweep = { .n = 0 };
	enum rfl_rc rc;

	if (!names || !models) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "bench attention: out of memory");
		goto done;
	}
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "attention_d%lld",
			       (long long)a->features.items[i]);
		models[i] = names[i];
	}
	rc = rfl_sweep_run(cli, &plan, &sweep, err);
	if (rc == RFL_OK && !a->sweep.how.dry_run)
		rc = rfl_sweep_put(cli, &plan, &sweep, RFL_SWEEP_ATTENTION, err);
done:
	rfl_sweep_fini(&sweep);
	free(models);
	free(names);
	return rc;
}

const struct rfl_cmd rfl_cmd_bench_attention = {
	.name = "bench attention",
	.summary = "time one attention over contexts and features",
	.description =
		"Measures a causal attention without heads or parameters, forward and backward to "
		"queries, keys and values (docs/bench.md). Each combination of the options is a "
		"run in the ledger with the model attention_d<N>, as with 'bench lm'; repeating "
		"the command runs what is missing. Memory is predicted from the network: of the "
		"inputs, of what is kept after the forward pass, and at the peak.",
	.example = "roofline bench attention --context-length 256 1024 4096 --d-model 16 64 128\n"
		   "roofline bench attention --precision fp32 bf16 --by attention --peaks "
		   "peaks.json",
	.opts = opts,
	.args_size = sizeof(struct attention_args),
	.run = run,
};
