/*
 * bench_sweep.h - inside cli/: a sweep of language models or attentions. It is a run matrix in
 * memory: every cell is a run of the ledger, and the rows of the table are read back from there.
 */
#ifndef RFL_CLI_BENCH_SWEEP_H
#define RFL_CLI_BENCH_SWEEP_H

#include "cli/cmd/matrix.h"
#include "report/sweep.h"

/** The options of all sweeps. The first member is for commands with operands. */
struct rfl_sweep_args {
	struct rfl_opt_int_list contexts, warmup_study;
	struct rfl_opt_list precisions, attentions, graphs;
	int64_t batch, warmup, iters, repeats, threads;
	const char *env, *engine, *peaks, *output;
	int backend, by, format;
	bool profile_memory, format_given;
	struct rfl_matrix_execution how;
};

/** Their rows, for an argument struct with a member `sweep`. */
#define RFL_SWEEP_OPTS(type, iters_)                                                               \
	RFL_OPT(type, INT_LIST, sweep.contexts, .name = "context-length", .meta = "N",             \
		.def = "256", .min = 1, .max = 1 << 24, .help = "tokens per sample"),              \
		RFL_OPT(type, LIST, sweep.precisions, .name = "precision", .meta = "P",            \
			.choices = rfl_precision_names, .def = "fp32",                             \
			.help = "numeric precisions"),                                             \
		RFL_OPT(type, LIST, sweep.graphs, .name = "cuda-graph", .meta = "STATE",           \
			.choices = rfl_sweep_states, .def = "off",                                 \
			.help = "whether one step is recorded as a CUDA graph and replayed"),      \
		RFL_OPT(type, INT, sweep.warmup, .name = "warmup-iters", .meta = "N", .def = "5",  \
			.min = 0, .max = 1000000,                                                  \
			.help = "number of steps before the measured ones"),                       \
		RFL_OPT(type, INT_LIST, sweep.warmup_study, .name = "warmup-study", .meta = "N",   \
			.against = "warmup-iters", .min = 0, .max = 1000000,                       \
			.help = "several numbers of warm-up steps, instead of --warmup-iters"),    \
		RFL_OPT(type, INT, sweep.iters, .name = "iters", .meta = "N", .def = iters_,       \
			.min = 1, .max = 10000000, .help = "number of measured steps"),            \
		RFL_OPT(type, INT, sweep.repeats, .name = "repeats", .meta = "N", .def = "1",      \
			.min = 1, .max = 1000,                                                     \
			.help = "runs of each configuration; their steps are pooled"),             \
		RFL_OPT(type, CHOICE, sweep.backend, .name = "backend", .meta = "DEVICE",          \
			.choices = rfl_run_device_choices, .def = "auto",                          \
			.help = "device to run on"),                                               \
		RFL_OPT(type, TEXT, sweep.engine, .name = "engine", .meta = "NAME", .def = "auto", \
			.help = "engine to use; see 'roofline list engines'"),                     \
		RFL_OPT(type, INT, sweep.threads, .name = "threads", .meta = "N", .def = "0",      \
			.min = 0, .max = 4096,                                                     \
			.help = "number of compute threads; 0: one per usable core"),              \
		RFL_OPT(type, TEXT, sweep.env, .name = "env", .meta = "NAME",                      \
			.help = "name of the environment; default: the backend, or local for "     \
				"auto"),                                                           \
		RFL_OPT(type, TEXT, sweep.peaks, .name = "peaks", .meta = "FILE",                  \
			.help = "peaks file with the ceilings of the environment, for MFU and "    \
				"bound"),                                                          \
		RFL_OPT(type, CHOICE, sweep.by, .name = "by", .meta = "SETTING",                   \
			.choices = rfl_sweep_settings, .def = "none",                              \
			.help = "add the speed-up over the first value of this setting"),          \
		RFL_OPT(type, FLAG, sweep.profile_memory, .name = "profile-memory",                \
			.help = "record the memory of one more step of each run"),                 \
		RFL_OPT(type, TEXT, sweep.how.log_dir, RFL_MATRIX_LOG_DIR),                        \
		RFL_OPT(type, FLAG, sweep.how.retry_failed, RFL_MATRIX_RETRY_FAILED),              \
		RFL_OPT(type, FLAG, sweep.how.share_device, RFL_MATRIX_SHARE_DEVICE),              \
		RFL_OPT(type, FLAG, sweep.how.dry_run, RFL_MATRIX_DRY_RUN),                        \
		RFL_OPT(type, TEXT, sweep.output, .name = "output", .meta = "FILE",                \
			.help = "file for the table; without --format, the suffix .md, .csv or "   \
				".json selects the format; default: standard output"),             \
		RFL_OPT(type, CHOICE, sweep.format, .given = offsetof(type, sweep.format_given),   \
			RFL_OPT_FORMAT)

extern const char *const rfl_sweep_states[]; /**< "off", "on", NULL */

/** A sweep, and the options of its runs that are the same in every cell. */
struct rfl_sweep_plan {
	const char *name; /**< for messages: "bench lm" */
	const struct rfl_sweep_args *args;
	size_t nmodels;
	const char *const *models; /**< as the table shows them */
	const char *mode, *optimizer;
	double grad_clip; /**< 0: none */
};

/** Execute what is missing in the ledger, and collect the rows. With --dry-run there are none.
 * @param ret  release with rfl_sweep_fini() in any case */
enum rfl_rc rfl_sweep_run(struct rfl_cli *cli, const struct rfl_sweep_plan *plan,
			  struct rfl_sweep *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the table to standard output or --output. @return RFL_EFAILED if no run is ok;
 * RFL_EUNAVAILABLE if the reason is that none can run here */
enum rfl_rc rfl_sweep_put(struct rfl_cli *cli, const struct rfl_sweep_plan *plan,
			  const struct rfl_sweep *s, enum rfl_sweep_table kind,
			  struct rfl_err *err) RFL_WARN_UNUSED;

#endif
