/*
 * run_rig.h - a small run with the engine that fails on request (tests/engines/engine_fake.c).
 */
#ifndef RFL_TESTS_RUN_RIG_H
#define RFL_TESTS_RUN_RIG_H

#include "runner/run.h"

static const char *const plugin_dirs[] = { RFL_TEST_BUILD "/tests/engines", NULL };

static inline struct rfl_run_config small_config(void)
{
	return (struct rfl_run_config){
		.arch = "resnet18",
		.image_size = 32,
		.micro_batch = 2,
		.accum = 1,
		.device = RFL_DEVICE_CPU,
		.engine = "fake",
		.plugin_dirs = plugin_dirs,
		.lr = 0.01,
		.momentum = 0.9,
		.threads = 1,
		.prefetch = 2,
		.warmup = 1,
		.iters = 6,
	};
}

/* Its files in `dir`. */
static inline struct rfl_run_config config_in(const char *dir)
{
	struct rfl_run_config config = small_config();

	config.env = "lab";
	config.log_dir = dir;
	return config;
}

/* @param child  the command line of a run's child; NULL where the run stays in this process */
static inline struct rfl_run_host host_of(const char *const *child)
{
	return (struct rfl_run_host){
		.command_line = "roofline run --arch resnet18",
		.child_argv = child,
	};
}

#endif
