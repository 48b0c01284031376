/*
 * run_rig.h - a small run with the engine that misbehaves when told (tests/engines/engine_fake.c).
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
		.batch = 2,
		.device = RFL_DEVICE_CPU,
		.engine = "fake",
		.plugin_dirs = plugin_dirs,
		.optimizer = { .lr = 0.01, .momentum = 0.9 },
		.threads = 1,
		.data = { .ahead = 2, .augment = true, .world_size = 1 },
		.accum = 1,
		.warmup = 1,
		.iters = 6,
	};
}

/* A run with its files in `dir`. @param child  the command line of its child; NULL where the run
 * stays in this process */
static inline struct rfl_run_options options_in(const char *dir, const char *const *child)
{
	return (struct rfl_run_options){
		.env = "lab",
		.log_dir = dir,
		.command_line = "roofline run --arch resnet18",
		.child_argv = child,
	};
}

#endif
