/*
 * run_opts.c - the option rows of roofline run.
 */
#include "cli/cmd/run_opts.h"

#include "runner/burst/counted.h"

#define AT(member)    offsetof(struct rfl_run_args, member)
#define GIVEN(member) .given = AT(given.member)
#define NO_MAXIMUM    (-1) /* below the minimum: no upper bound */

static const char *const backends[] = { "auto", "cpu", "cuda", "mps", NULL };
static const char *const data_modes[] = {
	"auto",  "synthetic", "synthetic-host", "imagefolder", "imagefolder-cached", "cifar10",
	"mnist", NULL,
};

const char *const rfl_run_interconnects[] = { "auto", "gloo", "nccl", NULL };

/* clang-format off */
const struct rfl_opt rfl_run_opts[] = {
	{ .group = "Network and steps",
	  .name = "arch", .meta = "MODEL", .kind = RFL_OPT_TEXT, .offset = AT(arch), .required = true,
	  .help = "the network; 'roofline list models' names them" },
	{ .name = "batch-size", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(batch_size),
	  .def = "32", .min = 1, .max = 1 << 20, .help = "samples of one forward, in each process" },
	{ .name = "grad-accum-steps", .meta = "K", .kind = RFL_OPT_INT,
	  .offset = AT(grad_accum_steps), .def = "1", .min = 1, .max = 1 << 20,
	  .help = "forwards and backwards before each update: a step has K times the batch size" },
	{ .name = "image-size", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(image_size),
	  .def = "0", .min = 0, .max = 65500, .help = "pixels of a side; 0 is the model's own" },
	{ .name = "context-length", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(context_length),
	  .def = "0", .min = 0, .max = 1 << 24,
	  .help = "tokens of a sample of a language model; 0 is the model's own" },
	{ .name = "mode", .meta = "MODE", .kind = RFL_OPT_CHOICE, .offset = AT(mode),
	  .choices = rfl_run_mode_names, .def = "train",
	  .help = "a step: everything, forward only (evaluation), or without the optimizer" },
	{ .name = "warmup-iters", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(warmup_iters),
	  .def = "10", .min = 0, .max = NO_MAXIMUM, .help = "steps before the measured window" },
	{ .name = "iters", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(iters), .def = "100",
	  .min = 1, .max = 10000000, .help = "steps in the measured window" },
	{ .name = "until", .meta = "stdrel=X%", .kind = RFL_OPT_TEXT, .offset = AT(until),
	  .help = "go on behind the window until the mean step time is known to X % (its standard "
		  "error)" },
	{ .name = "until-max", .meta = "SECONDS", .kind = RFL_OPT_REAL, .offset = AT(until_max),
	  GIVEN(until_max), .def = "60", .rmin = 0.001, .rmax = 1e9,
	  .help = "and no longer than this" },

	{ .group = "Device and arithmetic",
	  .name = "backend", .meta = "DEVICE", .kind = RFL_OPT_CHOICE, .offset = AT(backend),
	  .choices = backends, .def = "auto",
	  .help = "where to run; auto is the fastest that works, and says why" },
	{ .name = "engine", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(engine), .def = "auto",
	  .help = "what runs it: torch, torch@2.11; 'roofline list engines' names them" },
	{ .name = "precision", .meta = "P", .kind = RFL_OPT_CHOICE, .offset = AT(precision),
	  .choices = rfl_precision_names, .def = "fp32",
	  .help = "arithmetic of the network; amp is autocast to fp16 on a GPU, to bf16 on a CPU" },
	{ .name = "channels-last", .kind = RFL_OPT_FLAG, .offset = AT(channels_last),
	  .help = "keep images and weights in NHWC order" },
	{ .name = "threads", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(threads), .def = "0",
	  .min = 0, .max = 4096, .help = "compute threads; 0 is every core that we may use" },
	{ .name = "deterministic", .kind = RFL_OPT_FLAG, .offset = AT(deterministic),
	  .help = "only algorithms that give the same numbers in every run" },
	{ .name = "cudnn-benchmark", .kind = RFL_OPT_FLAG, .offset = AT(cudnn_benchmark),
	  .help = "let cuDNN time its algorithms and take the fastest" },
	{ .name = "cuda-graph", .kind = RFL_OPT_FLAG, .offset = AT(cuda_graph),
	  .help = "record one step and replay it as one piece of work" },
	{ .name = "sync-each-step", .kind = RFL_OPT_FLAG, .offset = AT(sync_each_step),
	  .help = "wait for the GPU after every step, as many scripts do" },
	{ .name = "seed", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(seed), .def = "0", .min = 0,
	  .max = INT64_MAX, .help = "of dropout, order, crops and flips" },

	{ .group = "Several processes",
	  .name = "world", .meta = "env|N", .kind = RFL_OPT_TEXT, .offset = AT(world),
	  .help = "train with several processes: as the launcher (torchrun, srun, mpirun) says in the "
		  "environment, or N on this machine" },
	{ .name = "interconnect", .meta = "HOW", .kind = RFL_OPT_CHOICE, .offset = AT(interconnect),
	  GIVEN(interconnect), .choices = rfl_run_interconnects, .def = "auto",
	  .help = "what exchanges gradients: gloo between processors, nccl between GPUs" },
	{ .name = "bucket-mb", .meta = "MB", .kind = RFL_OPT_REAL, .offset = AT(bucket_mb),
	  GIVEN(bucket_mb), .def = "25", .rmin = 0.001, .rmax = 65536,
	  .help = "gradients are sent in pieces of about this size, while backward goes on" },
	{ .name = "world-timeout", .meta = "SECONDS", .kind = RFL_OPT_REAL,
	  .offset = AT(world_timeout), GIVEN(world_timeout), .def = "300", .rmin = 1, .rmax = 1e6,
	  .help = "give up when a process does not come, or does not answer, for this long" },

	{ .group = "Optimizer",
	  .name = "optimizer", .meta = "NAME", .kind = RFL_OPT_CHOICE, .offset = AT(optimizer),
	  GIVEN(optimizer), .choices = rfl_optimizer_rule_names, .def = "sgd",
	  .help = "rule of the update" },
	{ .name = "optimizer-kernels", .meta = "HOW", .kind = RFL_OPT_CHOICE,
	  .offset = AT(optimizer_kernels), GIVEN(optimizer_kernels),
	  .choices = rfl_optimizer_kernels_names, .def = "auto",
	  .help = "one operation over all parameters after the other, or one pass over everything" },
	{ .name = "lr", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(lr), GIVEN(lr), .def = "0.001",
	  .rmin = 0, .rmax = 1e6, .help = "learning rate, small enough for networks that are not warmed up" },
	{ .name = "momentum", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(momentum),
	  GIVEN(momentum), .def = "0.9", .rmin = 0, .rmax = 1, .help = "of sgd" },
	{ .name = "weight-decay", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(weight_decay),
	  GIVEN(weight_decay), .rmin = 0, .rmax = 1e6,
	  .help = "L2 penalty of sgd (0.0001) and adam (0), decoupled in adamw (0.01)" },
	{ .name = "beta1", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(beta1), GIVEN(beta1),
	  .def = "0.9", .rmin = 0, .rmax = 0.9999999, .help = "of adam and adamw" },
	{ .name = "beta2", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(beta2), GIVEN(beta2),
	  .def = "0.999", .rmin = 0, .rmax = 0.9999999, .help = "of adam and adamw" },
	{ .name = "eps", .meta = "X", .kind = RFL_OPT_REAL, .offset = AT(eps), GIVEN(eps),
	  .def = "1e-8", .rmin = 0, .rmax = 1, .help = "of adam and adamw" },

	{ .group = "Data",
	  .name = "data", .meta = "DIR", .kind = RFL_OPT_TEXT, .offset = AT(data),
	  .help = "train on what is there: DIR/train/<class>/*.jpg, or the files of CIFAR-10 or MNIST" },
	{ .name = "data-mode", .meta = "KIND", .kind = RFL_OPT_CHOICE, .offset = AT(data_mode),
	  GIVEN(data_mode), .choices = data_modes, .def = "auto",
	  .help = "where batches come from; auto looks into --data" },
	{ .name = "synthetic", .kind = RFL_OPT_FLAG, .offset = AT(synthetic),
	  .help = "train on one made-up batch that stays in memory; wins over --data" },
	{ .name = "workers", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(workers), GIVEN(workers),
	  .def = "-1", .min = -1, .max = 1024,
	  .help = "threads that decode images; 0 decodes between steps, -1 chooses by the cores" },
	{ .name = "prefetch-factor", .meta = "N", .kind = RFL_OPT_INT, .offset = AT(prefetch_factor),
	  GIVEN(prefetch_factor), .def = "2", .min = 1, .max = 1024, .help = "batches decoded ahead" },
	{ .name = "pin-memory", .kind = RFL_OPT_FLAG, .offset = AT(pin_memory),
	  .help = "keep batches in memory that a GPU reads while it works" },
	{ .name = "no-augment", .kind = RFL_OPT_FLAG, .offset = AT(no_augment),
	  .help = "resize and centre crop instead of random crop and flip" },

	{ .group = "Records and counters",
	  .name = "label", .meta = "TEXT", .kind = RFL_OPT_TEXT, .offset = AT(label),
	  .help = "name of the run; made when absent: {env}_{model}_{precision}_bs{batch}_run{N}" },
	{ .name = "env", .meta = "NAME", .kind = RFL_OPT_TEXT, .offset = AT(env),
	  .help = "name of this machine, as in 'roofline peaks measure'; else from the label, else the "
		  "backend" },
	{ .name = "log-dir", .meta = "DIR", .kind = RFL_OPT_TEXT, .offset = AT(log_dir),
	  .def = "logs", .help = "where metrics.csv, steps/ and time/ go" },
	{ .name = "counters", .meta = "RANGES", .kind = RFL_OPT_CHOICE, .offset = AT(counters),
	  .choices = rfl_detail_names, .def = "off",
	  .help = "after the window count one more step: as a whole, by phase, or by layer" },
	{ .name = "counter-sets", .meta = "SET", .kind = RFL_OPT_LIST, .offset = AT(counter_sets),
	  .choices = rfl_counter_set_names,
	  .help = "which GPU counters to collect; core flops kernels self-test when absent" },
	{ .name = "nvtx", .meta = "[RANGES]", .kind = RFL_OPT_CHOICE, .offset = AT(nvtx),
	  .choices = rfl_detail_names, .def = "off", .bare = "phase",
	  .help = "name the ranges of the window for ncu and nsys; phase when none is written" },

	{ .group = "Failures",
	  .name = "oom", .meta = "POLICY", .kind = RFL_OPT_CHOICE, .offset = AT(oom),
	  .choices = rfl_oom_policy_names, .def = "record",
	  .help = "a batch that does not fit: is recorded, is shrunk until it fits, or the largest that "
		  "fits is searched for; each attempt is a row" },
	{ .name = "timeout", .meta = "SECONDS", .kind = RFL_OPT_REAL, .offset = AT(timeout),
	  .def = "0", .rmin = 0, .rmax = 1e9, .help = "give up after this long; 0 is never" },
	{ .name = "in-process", .kind = RFL_OPT_FLAG, .offset = AT(in_process),
	  .help = "no child process: for debuggers and profilers" },
	{ .name = NULL },
};
/* clang-format on */
