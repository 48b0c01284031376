/*
 * run_args.c - from the options of a run to its configuration: defaults that depend on other
 * options, and what does not go together.
 */
#include "cli/cmd/run_opts.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cli/places.h"
#include "complexity/zoo.h"
#include "runner/burst/counted.h"

/* Before a step is recorded, libraries have chosen their kernels and allocated what they keep. */
#define GRAPH_WARMUP RFL_BURST_GRAPH_WARMUP

extern const struct rfl_cmd rfl_cmd_run;

/* ---- what does not go together ---- */

struct objection {
	bool raised;
	const char *text;
};

static enum rfl_rc first_raised(const struct objection *list, size_t n, struct rfl_err *err)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].raised)
			return rfl_fail(err, RFL_EUSAGE, 0, "%s", list[i].text);
	return RFL_OK;
}

static bool is_backend(const struct rfl_run_args *a, enum rfl_device device)
{
	return a->backend == RFL_RUN_BACKEND_OF_DEVICE + (int)device;
}

/* A backend was chosen, and CUDA is not it. */
static bool never_cuda(const struct rfl_run_args *a)
{
	return a->backend != RFL_RUN_BACKEND_AUTO && !is_backend(a, RFL_DEVICE_CUDA);
}

static enum rfl_rc check_device(const struct rfl_run_args *a, struct rfl_err *err)
{
	const bool graph = a->cuda_graph;
	const struct objection list[] = {
		{ a->pin_memory && never_cuda(a),
		  "--pin-memory: only a CUDA device reads such memory; leave it out, or use "
		  "--backend cuda" },
		{ a->cudnn_benchmark && never_cuda(a),
		  "--cudnn-benchmark: cuDNN is of CUDA devices; leave it out, or use --backend "
		  "cuda" },
		{ a->cudnn_benchmark && a->deterministic,
		  "--cudnn-benchmark: a choice by timing differs from run to run, which "
		  "--deterministic forbids; leave one of them out" },
		{ a->sync_each_step && is_backend(a, RFL_DEVICE_CPU),
		  "--sync-each-step: a processor has done a step when the step returns; leave it "
		  "out" },
		{ graph && never_cuda(a),
		  "--cuda-graph: only a CUDA device replays steps; leave it out, or use --backend "
		  "cuda" },
		{ graph && a->grad_accum_steps > 1,
		  "--cuda-graph: a recorded step has one forward; leave out --grad-accum-steps" },
		{ graph && a->warmup_iters < GRAPH_WARMUP,
		  "--cuda-graph: a step is recorded after three that were not; use --warmup-iters "
		  "3 or more" },
		{ graph && a->nvtx == RFL_DETAIL_LAYER,
		  "--nvtx layer: a step that is replayed has no layers; use --nvtx step, or leave "
		  "out --cuda-graph" },
		{ graph && a->nvtx == RFL_DETAIL_PHASE,
		  "--nvtx phase: a step that is replayed has no phases; use --nvtx step, or leave "
		  "out --cuda-graph" },
	};

	return first_raised(list, RFL_ARRAY_LEN(list), err);
}

static enum rfl_rc check_step(const struct rfl_run_args *a, struct rfl_err *err)
{
	const struct rfl_run_given *g = &a->given;
	const bool trains = a->mode == RFL_RUN_TRAIN, sgd = a->optimizer == RFL_RULE_SGD;
	const struct objection list[] = {
		{ !trains && (g->optimizer || g->optimizer_kernels || g->lr || g->momentum ||
			      g->weight_decay || g->beta1 || g->beta2 || g->eps),
		  "--optimizer and what belongs to it: without --mode train nothing is updated; "
		  "leave them out" },
		{ a->mode == RFL_RUN_FWD && a->grad_accum_steps > 1,
		  "--grad-accum-steps: --mode fwd has no gradients; use a larger --batch-size" },
		{ g->momentum && !sgd,
		  "--momentum: of sgd only; adam and adamw have --beta1 and --beta2" },
		{ (g->beta1 || g->beta2 || g->eps) && sgd,
		  "--beta1, --beta2, --eps: of adam and adamw only; sgd has --momentum" },
		{ g->until_max && !a->until,
		  "--until-max: nothing goes on behind the window; add --until stdrel=0.5%" },
	};

	return first_raised(list, RFL_ARRAY_LEN(list), err);
}

/* Options of image files are of use where there are files. With --data beside --synthetic they wait
 * for the files to come: a run that is tried out before the data is there. */
static enum rfl_rc check_data(const struct rfl_run_args *a, struct rfl_err *err)
{
	const struct rfl_run_given *g = &a->given;
	const int kind = a->data_mode - RFL_RUN_DATA_OF_KIND;
	const bool made_up = a->data_mode != RFL_RUN_DATA_AUTO &&
			     (kind == RFL_DATA_SYNTHETIC || kind == RFL_DATA_SYNTHETIC_HOST);
	const bool synthetic = a->synthetic || made_up;
	const bool no_files = synthetic && !a->data;
	const struct objection list[] = {
		{ !a->data && !synthetic, "give --data DIR, or --synthetic" },
		{ a->synthetic && g->data_mode && a->data_mode != RFL_RUN_DATA_AUTO && !made_up,
		  "--data-mode: --synthetic wins over it; leave one of them out" },
		{ no_files && g->workers && a->workers > 0,
		  "--workers: synthetic data is made once, without threads; leave it out" },
		{ no_files && g->prefetch_factor,
		  "--prefetch-factor: synthetic data is made once; leave it out" },
		{ no_files && a->no_augment,
		  "--no-augment: synthetic data is neither cropped nor mirrored; leave it out" },
		{ !synthetic && g->prefetch_factor && g->workers && a->workers == 0,
		  "--prefetch-factor: with --workers 0 nothing is decoded ahead; leave it out" },
	};

	return first_raised(list, RFL_ARRAY_LEN(list), err);
}

static enum rfl_rc check_records(const struct rfl_run_args *a, struct rfl_err *err)
{
	const struct objection list[] = {
		{ a->in_process && a->timeout > 0, "--timeout: with --in-process there is nobody "
						   "to keep it; leave one of them out" },
		{ a->in_process && a->oom != RFL_OOM_RECORD,
		  "--oom: with --in-process there is one attempt; leave one of them out" },
		{ a->counter_sets.n && a->counters == RFL_DETAIL_OFF,
		  "--counter-sets: nothing is counted; add --counters step, phase or layer" },
		{ a->counter_sets.n && never_cuda(a),
		  "--counter-sets: they are of a GPU (--backend cuda); a processor counts all that "
		  "it can at once; leave it out" },
	};

	return first_raised(list, RFL_ARRAY_LEN(list), err);
}

/* What one process may do alone, and several cannot do together. */
static enum rfl_rc check_world(const struct rfl_run_args *a, struct rfl_err *err)
{
	const struct rfl_run_given *g = &a->given;
	const bool world = a->world != NULL;
	const struct objection list[] = {
		{ !world && (g->interconnect || g->bucket_mb || g->world_timeout),
		  "--interconnect, --bucket-mb, --world-timeout: one process exchanges nothing; "
		  "add "
		  "--world, or leave them out" },
		{ world && a->cuda_graph,
		  "--cuda-graph: a recorded step has no exchange of gradients in it; leave it out, "
		  "or --world" },
		{ world && a->until,
		  "--until: processes would stop at different steps; leave it out, or --world" },
		{ world && a->counters != RFL_DETAIL_OFF,
		  "--counters: a counted step is repeated, which processes that wait for each "
		  "other "
		  "cannot do; count a run without --world" },
		{ world && a->oom != RFL_OOM_RECORD, "--oom: all processes have the same batch; "
						     "with --world it is recorded only: leave "
						     "one of them out" },
		{ world && a->in_process,
		  "--in-process: with --world every rank has a child; leave one of them out" },
		{ world && is_backend(a, RFL_DEVICE_MPS),
		  "--world: processes exchange gradients on processors and NVIDIA GPUs, not on "
		  "mps; leave it out, or use --backend cpu" },
		{ world && a->interconnect == RFL_RUN_NCCL && is_backend(a, RFL_DEVICE_CPU),
		  "--interconnect nccl: NCCL exchanges memory of GPUs; leave it out, or use "
		  "--backend cuda" },
		{ world && a->interconnect == RFL_RUN_GLOO && is_backend(a, RFL_DEVICE_CUDA),
		  "--interconnect gloo: gradients on GPUs are exchanged by NCCL; leave it out" },
	};

	return first_raised(list, RFL_ARRAY_LEN(list), err);
}

static enum rfl_rc check_args(const struct rfl_run_args *a, struct rfl_err *err)
{
	static enum rfl_rc (*const checks[])(const struct rfl_run_args *, struct rfl_err *) = {
		check_data, check_step, check_device, check_records, check_world,
	};
	const struct rfl_zoo_model *model;

	if (rfl_zoo_find(a->arch, &model, err) != RFL_OK)
		return RFL_EUSAGE;
	for (size_t i = 0; i < RFL_ARRAY_LEN(checks); i++)
		if (checks[i](a, err) != RFL_OK)
			return RFL_EUSAGE;
	return RFL_OK;
}

/* ---- what options come to ---- */

/* "stdrel=0.5%" or "stdrel=0.005". */
static enum rfl_rc parse_until(const char *text, double *ret, struct rfl_err *err)
{
	static const char prefix[] = "stdrel=";
	const size_t skip = sizeof(prefix) - 1;
	char number[32];
	double value;
	size_t len;

	*ret = 0;
	if (!text)
		return RFL_OK;
	len = strlen(text);
	if (strncmp(text, prefix, skip) != 0 || len - skip >= sizeof(number))
		goto wrong;
	memcpy(number, text + skip, len - skip + 1);
	len -= skip;
	const bool percent = len > 0 && number[len - 1] == '%';

	if (percent)
		number[len - 1] = '\0';
	if (rfl_num_parse_double(number, "--until", &value, NULL) != RFL_OK)
		goto wrong;
	value = percent ? value / 100 : value;
	if (!(value > 0 && value < 1))
		goto wrong;
	*ret = value;
	return RFL_OK;
wrong:
	return rfl_fail(err, RFL_EUSAGE, 0,
			"--until: '%s' is not stdrel=X%% with X above 0 and below 100, as in "
			"stdrel=0.5%%",
			text);
}

/* As torch.optim has them; sgd's is the usual one of image networks, where PyTorch has 0. */
static double default_weight_decay(enum rfl_optimizer_rule rule)
{
	switch (rule) {
	case RFL_RULE_SGD:
		return 1e-4;
	case RFL_RULE_ADAM:
		return 0;
	case RFL_RULE_ADAMW:
		return 1e-2;
	}
	return 0;
}

static struct rfl_optimizer optimizer_of(const struct rfl_run_args *a)
{
	const enum rfl_optimizer_rule rule = (enum rfl_optimizer_rule)a->optimizer;

	return (struct rfl_optimizer){
		.rule = rule,
		.kernels = (enum rfl_optimizer_kernels)a->optimizer_kernels,
		.lr = a->lr,
		.weight_decay =
			a->given.weight_decay ? a->weight_decay : default_weight_decay(rule),
		.momentum = rule == RFL_RULE_SGD ? a->momentum : 0,
		.beta1 = a->beta1,
		.beta2 = a->beta2,
		.eps = a->eps,
	};
}

static struct rfl_data_spec data_of(const struct rfl_run_args *a)
{
	struct rfl_data_spec spec = {
		.kind = RFL_DATA_SYNTHETIC,
		.augment = !a->no_augment,
		.workers = (int)a->workers,
		.ahead = (int)a->prefetch_factor,
		.pin_memory = a->pin_memory,
		.seed = (uint64_t)a->seed,
		.world_size = 1,
	};
	const bool chosen = a->data_mode != RFL_RUN_DATA_AUTO;

	if (chosen)
		spec.kind = (enum rfl_data_kind)(a->data_mode - RFL_RUN_DATA_OF_KIND);
	if (a->synthetic || spec.kind == RFL_DATA_SYNTHETIC_HOST ||
	    (chosen && spec.kind == RFL_DATA_SYNTHETIC)) {
		spec.augment = false;
		spec.workers = 0;
		return spec;
	}
	spec.dir = a->data;
	if (!chosen) /* until the run begins: the folder may be on another machine */
		spec.kind = RFL_DATA_IMAGEFOLDER;
	return spec;
}

static unsigned sets_of(const struct rfl_opt_list *names)
{
	unsigned sets = 0;

	for (size_t i = 0; i < names->n; i++)
		for (unsigned bit = 0; rfl_counter_set_names[bit]; bit++)
			if (strcmp(names->items[i], rfl_counter_set_names[bit]) == 0)
				sets |= 1U << bit;
	return sets;
}

static struct rfl_run_config config_of(const struct rfl_cli *cli, const struct rfl_run_args *a)
{
	return (struct rfl_run_config){
		.arch = a->arch,
		.image_size = a->image_size,
		.context_length = a->context_length,
		.batch = a->batch_size * a->grad_accum_steps,
		.accum = a->grad_accum_steps,
		.mode = (enum rfl_run_mode)a->mode,
		.device = a->backend == RFL_RUN_BACKEND_AUTO
				  ? RFL_RUN_DEVICE_AUTO
				  : a->backend - RFL_RUN_BACKEND_OF_DEVICE,
		.precision = (enum rfl_precision)a->precision,
		.layout = a->channels_last ? RFL_LAYOUT_NHWC : RFL_LAYOUT_NCHW,
		.engine = a->engine,
		.plugin_dirs = cli->plugin_dirs,
		.optimizer = optimizer_of(a),
		.seed = (uint64_t)a->seed,
		.deterministic = a->deterministic,
		.cudnn_benchmark = a->cudnn_benchmark,
		.cuda_graph = a->cuda_graph,
		.sync_each_step = a->sync_each_step,
		.threads = (int)a->threads,
		.warmup = a->warmup_iters,
		.iters = a->iters,
		.until_max_s = a->until_max,
		.world = { .size = 1, .local_size = -1, .interconnect = "auto" },
		.counters = (enum rfl_detail)a->counters,
		.counter_sets = sets_of(&a->counter_sets),
		.places = rfl_cli_places(),
		.nvtx = (enum rfl_detail)a->nvtx,
		.nvtx_injection = getenv("NVTX_INJECTION64_PATH"),
	};
}

/* ---- several processes ---- */

static const char *from_environment(const char *name, void *ctx)
{
	(void)ctx;
	return getenv(name);
}

static enum rfl_rc world_of_launcher(struct rfl_world *ret, struct rfl_err *err)
{
	struct rfl_world w;

	if (rfl_world_from_env(from_environment, NULL, &w, err) != RFL_OK)
		return RFL_EUSAGE;
	if (!w.launcher)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--world env: no launcher says who we are (torchrun: RANK, srun: "
				"SLURM_PROCID, mpirun: OMPI_COMM_WORLD_RANK or PMI_RANK); start "
				"this command by one, or use --world N for N processes on this "
				"machine");
	*ret = w;
	return RFL_OK;
}

#define MOST_LOCAL 1024

static enum rfl_rc find_world(const struct rfl_run_args *a, struct rfl_run_request *r,
			      struct rfl_err *err)
{
	struct rfl_world *w = &r->config.world;
	int64_t n = 0;
	enum rfl_rc rc = RFL_OK;

	if (!a->world)
		return RFL_OK;
	if (strcmp(a->world, "env") == 0) {
		rc = world_of_launcher(w, err);
	} else if (rfl_num_parse_int(a->world, "--world", &n, NULL) != RFL_OK || n < 1 ||
		   n > MOST_LOCAL) {
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--world: '%s' is neither 'env' nor a number of processes from 1 to "
			      "%d",
			      a->world, MOST_LOCAL);
	} else {
		w->size = w->local_size = (int)n;
		r->local_world = n > 1;
	}
	if (rc)
		return rc;
	w->interconnect = rfl_run_interconnects[a->interconnect];
	w->timeout_s = a->world_timeout;
	w->bucket_bytes = (int64_t)(a->bucket_mb * (1 << 20));
	r->config.data.rank = w->rank;
	r->config.data.world_size = w->size;
	return RFL_OK;
}

enum rfl_rc rfl_run_request_of(const struct rfl_cli *cli, const struct rfl_run_args *a,
			       struct rfl_run_request *ret, struct rfl_err *err)
{
	enum rfl_rc rc = check_args(a, err);

	*ret = (struct rfl_run_request){ .args = NULL };
	if (rc)
		return rc;
	ret->config = config_of(cli, a);
	rc = parse_until(a->until, &ret->config.until_stdrel, err);
	ret->config.data = data_of(a);
	if (rc == RFL_OK)
		rc = find_world(a, ret, err);
	ret->detect_data = a->data_mode == RFL_RUN_DATA_AUTO && ret->config.data.dir;
	ret->label = a->label;
	ret->env = a->env;
	ret->log_dir = a->log_dir;
	ret->oom = (enum rfl_oom_policy)a->oom;
	ret->timeout_s = a->timeout;
	ret->in_process = a->in_process;
	return rc;
}

enum rfl_rc rfl_run_request_parse(const struct rfl_cli *cli, int argc, char *const *argv,
				  struct rfl_run_request *ret, struct rfl_err *err)
{
	struct rfl_run_args *args = calloc(1, sizeof(*args));
	enum rfl_rc rc;

	*ret = (struct rfl_run_request){ .args = NULL };
	if (!args)
		return rfl_fail(err, RFL_ENOMEM, 0, "options: out of memory");
	rc = rfl_opt_parse(&rfl_cmd_run, argc, argv, args, err);
	if (rc == RFL_OK)
		rc = rfl_run_request_of(cli, args, ret, err);
	ret->args = args;
	return rc;
}

void rfl_run_request_fini(struct rfl_run_request *r)
{
	if (r->args)
		rfl_opt_free(&rfl_cmd_run, r->args);
	free(r->args);
	*r = (struct rfl_run_request){ .args = NULL };
}
