/*
 * parts.h - internal: the pieces of the record of an environment.
 */
#ifndef RFL_RUNNER_ENV_PARTS_H
#define RFL_RUNNER_ENV_PARTS_H

#include "runner/env/record.h"

/* The record of this machine, now: system, program, engines, processor, limits, memory, gpus,
 * storage, network, container, cloud, now, missing. A new reference. */
enum rfl_rc rfl_env__facts(const struct rfl_env_spec *spec, json_t **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/* The first line of a page that may be written again. */
#define RFL_ENV__PAGE_MARK "<!-- made from env.json by roofline; what it cannot know: --note -->"

#endif
