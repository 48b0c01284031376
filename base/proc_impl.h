/*
 * proc_impl.h - between proc.c, which watches a child, and proc_spawn.c, which starts it.
 */
#ifndef RFL_BASE_PROC_IMPL_H
#define RFL_BASE_PROC_IMPL_H

#include <signal.h>

#include "base/proc.h"

/* A started child and our ends of its pipes, non-blocking; -1 where there is none. */
struct rfl_proc__child {
	pid_t pid;
	int in, out, err, report;
};

/* Start it; `mask` is the signal mask that it gets. Nothing is left open after a failure. */
enum rfl_rc rfl_proc__spawn(const struct rfl_proc_spec *spec, const sigset_t *mask,
			    struct rfl_proc__child *ret, struct rfl_err *err) RFL_WARN_UNUSED;

void rfl_proc__child_close(struct rfl_proc__child *child);

#endif
