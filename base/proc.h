/* proc.h - runs child processes without a shell, with a deadline and resource usage. */
#ifndef RFL_BASE_PROC_H
#define RFL_BASE_PROC_H

#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct rusage;

struct rfl_proc_spec {
	const char *const *argv; /**< NULL-terminated; argv[0] is a path, or a name found in PATH */
	const char *const *env;  /**< additional "NAME=value", NULL-terminated; may be NULL */
	const void *input;       /**< data for its standard input; NULL: /dev/null */
	size_t input_len;
	int report_fd;       /**< descriptor in the child for lines passed to on_report; 0: none */
	bool capture_stdout; /**< false: stdout is inherited */
	bool capture_stderr; /**< false: stderr is inherited */
	double timeout_s;    /**< seconds until SIGTERM; 0: no deadline */
	double grace_s;      /**< seconds from SIGTERM to SIGKILL; 0: 5 s */
	/** Called with each complete line that arrives on report_fd, without its newline. */
	void (*on_report)(const char *line, void *ctx);
	/** Called ten times per second; returning true stops the child. May be NULL. */
	bool (*cancelled)(void *ctx);
	void *ctx;
};

struct rfl_proc_result {
	bool started;  /**< true if the child was started, even if watching it failed */
	bool exited;   /**< false: killed by a signal */
	int exit_code; /**< valid if `exited` */
	int signal;    /**< valid unless `exited` */
	bool timed_out;
	bool cancelled;
	double wall_s, user_s, system_s;
	double max_rss_bytes; /**< includes the memory of the parent at the fork */
	long minor_faults, major_faults;
	long voluntary_switches, involuntary_switches;
	long fs_inputs, fs_outputs;
	struct rfl_buf out; /**< captured stdout, at most 64 MiB */
	struct rfl_buf err; /**< captured stderr, at most 64 MiB */
};

/** Run a child until it ends, without waiting for grandchildren that keep a pipe open. No SIGPIPE
 * is delivered to the parent. On Linux, the child is killed if the calling thread ends. Unread
 * input is not an error. If captured output exceeds the maximum, the rest is discarded and `failed`
 * is set in its buffer.
 * @param ret  release with rfl_proc_result_fini(), also on failure
 * @return RFL_OK if the child was started and reaped; RFL_EUNAVAILABLE if the program cannot be
 *         executed; RFL_EIO */
enum rfl_rc rfl_proc_run(const struct rfl_proc_spec *spec, struct rfl_proc_result *ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

void rfl_proc_result_fini(struct rfl_proc_result *r);

/* The parts of rfl_proc_run() that launch.c shares. */

/** Add the resources of a reaped process to those of earlier ones; the memory is the maximum. */
void rfl_proc_add_usage(struct rfl_proc_result *r, const struct rusage *usage);

/** Set how the process ended. */
void rfl_proc_set_status(struct rfl_proc_result *r, int status);

/** The environment with added variables ("NAME=value"), NULL-terminated; its strings are borrowed.
 * Release with free(). */
char **rfl_proc_env(const char *const *added) RFL_WARN_UNUSED;

/** In the child: execute, with this signal mask, or write errno to `failure` and exit. */
RFL_NORETURN void rfl_proc_exec(const char *const *argv, char **env, const sigset_t *mask,
				int failure);

/** In the parent: wait until the child has executed. @return 0, or errno; the child is reaped */
int rfl_proc_exec_errno(int failure, pid_t pid) RFL_WARN_UNUSED;

/** Path of the running program with links resolved, malloc'ed. NULL with `err` set on failure. */
char *rfl_proc_self(struct rfl_err *err) RFL_WARN_UNUSED;

#endif
