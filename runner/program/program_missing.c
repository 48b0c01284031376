/* program_missing.c - programs are measured on Linux only: elsewhere they cannot be stopped before
 * exec. */
#include "runner/program.h"

enum rfl_rc rfl_profiler_new(const struct rfl_profiler_config *config, struct rfl_profiler **ret,
			     struct rfl_err *err)
{
	(void)ret;
	return rfl_fail(err, RFL_EUNAVAILABLE, 0, "%s is not supported on this system",
			config->tool);
}

void rfl_profiler_free(struct rfl_profiler *p)
{
	(void)p;
}

enum rfl_rc rfl_program_run(const struct rfl_program_config *config, struct rfl_program_result *ret,
			    struct rfl_err *err)
{
	*ret = (struct rfl_program_result){ .status = 0 };
	return rfl_fail(err, RFL_EUNAVAILABLE, 0,
			"%s: programs are measured on Linux only; import the output of 'time -l' "
			"with 'roofline counters import'",
			config->argv[0]);
}

const struct rfl_capture *rfl_program_work(const struct rfl_program_result *r)
{
	(void)r;
	return NULL;
}

void rfl_program_result_fini(struct rfl_program_result *r)
{
	(void)r;
}
