/*
 * launch.h - starts a program with our own standard streams, forwards signals to it, and waits for
 * it or for its whole tree. The child is stopped before its exec, so that counters can be opened
 * on it; proc.h runs helpers whose output is captured.
 */
#ifndef RFL_BASE_LAUNCH_H
#define RFL_BASE_LAUNCH_H

#include "base/proc.h"

struct rfl_launch_spec {
	const char *const *argv; /**< NULL-terminated; argv[0] is a path, or a name found in PATH */
	const char *const *env;  /**< additional "NAME=value", NULL-terminated; may be NULL */
	bool all;                /**< wait for all descendants, including daemons */
	double limit_s; /**< how long to wait for them after the child has ended; 0: no limit */
	int watch_fd;   /**< ready() is called while this is readable; 0: none */
	void (*ready)(void *ctx); /**< also called every 30 s; may be NULL without watch_fd */
	void *ctx;
};

struct rfl_launch;

/** Fork the child, which waits for rfl_launch_go(). RFL_EINTR: a signal has arrived before.
 * @param spec  borrowed until the launch is freed
 * @param ret   set on success only; release with rfl_launch_free() */
enum rfl_rc rfl_launch_new(const struct rfl_launch_spec *spec, struct rfl_launch **ret,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The process id of the child. */
pid_t rfl_launch_pid(const struct rfl_launch *l);

/** Execute the program. RFL_EUNAVAILABLE: it cannot be executed, with errno in err->native. */
enum rfl_rc rfl_launch_go(struct rfl_launch *l, struct rfl_err *err) RFL_WARN_UNUSED;

/** Wait. A terminal sends its signals to the child itself; others are forwarded.
 * @param ret  `timed_out`: the limit was reached; `cancelled`: a signal arrived after the child had
 * ended, which is then in `signal`; `wall_s` covers the whole wait. Output is not captured. */
enum rfl_rc rfl_launch_wait(struct rfl_launch *l, struct rfl_proc_result *ret,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Kill the child if it has not been executed, and restore the signals. Accepts NULL. */
void rfl_launch_free(struct rfl_launch *l);
RFL_AUTOPTR_TYPE(launch, free);

#endif
