/* proc.h - child processes without a shell, with a deadline and resource usage. */
#ifndef RFL_BASE_PROC_H
#define RFL_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct rfl_proc_spec {
	const char *const *argv; /**< NULL-terminated; argv[0] is a path, or a name found in PATH */
	const char *const *env; /**< "NAME=value", NULL-terminated, added to our own; may be NULL */
	const void *input;      /**< written to its standard input, then closed; NULL: /dev/null */
	size_t input_len;
	int report_fd; /**< descriptor in the child: write end of a pipe that we read; 0: none */
	bool capture_stdout; /**< else inherited */
	bool capture_stderr; /**< else inherited */
	double timeout_s;    /**< 0: none. SIGTERM at the deadline, SIGKILL 5 s later */
	/** Called with each complete line that arrives on report_fd, without its newline. */
	void (*on_report)(const char *line, void *ctx);
	/** Called ten times a second; true stops the child as a deadline does. May be NULL. */
	bool (*cancelled)(void *ctx);
	void *ctx;
};

struct rfl_proc_result {
	bool started;  /**< the child was started, even if watching it failed */
	bool exited;   /**< else killed by a signal */
	int exit_code; /**< valid when exited */
	int signal;    /**< valid when not exited */
	bool timed_out;
	bool cancelled;
	double wall_s, user_s, system_s;
	double max_rss_bytes; /**< at least the memory of the parent at the fork */
	long minor_faults, major_faults;
	long voluntary_switches, involuntary_switches;
	long fs_inputs, fs_outputs;
	struct rfl_buf out; /**< captured stdout, at most 64 MiB */
	struct rfl_buf err; /**< captured stderr, at most 64 MiB */
};

/** Run a child until it ends, without waiting for grandchildren that keep a pipe open. SIGPIPE is
 * not raised in the parent. If the calling thread ends, the child is killed (Linux). Unread input
 * is not a failure. Captured output beyond the maximum is discarded, and `failed` is set in its
 * buffer.
 * @param ret  release with rfl_proc_result_fini(), also after a failure
 * @return RFL_OK if the child was started and reaped; RFL_EUNAVAILABLE if the program cannot be
 *         executed; RFL_EIO */
enum rfl_rc rfl_proc_run(const struct rfl_proc_spec *spec, struct rfl_proc_result *ret,
			 struct rfl_err *err) RFL_WARN_UNUSED;

void rfl_proc_result_fini(struct rfl_proc_result *r);

/** The path of the running program, links resolved. malloc'ed; NULL with err on failure. */
char *rfl_proc_self(struct rfl_err *err) RFL_WARN_UNUSED;

#endif
