/*
 * run_opts.h - inside cli/: the options of roofline run as they were written. What they come to is
 * in run_args.h.
 */
#ifndef RFL_CLI_RUN_OPTS_H
#define RFL_CLI_RUN_OPTS_H

#include "cli/cmd.h"
#include "cli/cmd/run_args.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Was it written? An option that would change nothing is refused, its default is not. */
struct rfl_run_given {
	bool data_mode, optimizer, optimizer_kernels, lr, momentum, weight_decay, beta1, beta2, eps,
		workers, prefetch_factor, until_max, interconnect, bucket_mb, world_timeout;
};

struct rfl_run_args {
	const char *arch, *data, *engine, *label, *env, *log_dir, *until, *world;
	struct rfl_run_given given;
	int backend, precision, mode, data_mode, optimizer, optimizer_kernels, counters, nvtx, oom,
		interconnect;
	struct rfl_opt_list counter_sets;
	int64_t batch_size, grad_accum_steps, image_size, context_length, warmup_iters, iters,
		workers, prefetch_factor, threads, seed;
	double lr, momentum, weight_decay, beta1, beta2, eps, timeout, until_max, bucket_mb,
		world_timeout;
	bool synthetic, no_augment, pin_memory, channels_last, deterministic, cudnn_benchmark,
		cuda_graph, sync_each_step, in_process;
};

/** "auto" stands in front of the devices, in the order of enum rfl_device. */
enum { RFL_RUN_BACKEND_AUTO, RFL_RUN_BACKEND_OF_DEVICE };
/** Likewise in front of the kinds of data. */
enum { RFL_RUN_DATA_AUTO, RFL_RUN_DATA_OF_KIND };

/** "auto", "gloo", "nccl", NULL. */
extern const char *const rfl_run_interconnects[];
enum { RFL_RUN_GLOO = 1, RFL_RUN_NCCL = 2 };

/** The rows, ended by one with name NULL. */
extern const struct rfl_opt rfl_run_opts[];

/**
 * What options that are parsed come to, checked against each other.
 * @param args  must outlive the request
 * @param ret   borrows args: nothing to release
 */
enum rfl_rc rfl_run_request_of(const struct rfl_cli *cli, const struct rfl_run_args *args,
			       struct rfl_run_request *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#ifdef __cplusplus
}
#endif
#endif
