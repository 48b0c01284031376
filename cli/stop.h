/* stop.h - let SIGINT, SIGTERM and SIGHUP set a flag that stops a command. */
#ifndef RFL_CLI_STOP_H
#define RFL_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>

#define RFL_STOP_SIGNALS 3

/** The handlers that were replaced. */
struct rfl_stop {
	struct sigaction old[RFL_STOP_SIGNALS];
};

/** Block these signals until rfl_stop_let() or rfl_stop_catch(), and unblock all others. */
void rfl_stop_hold(void);
void rfl_stop_let(void);

/** From now on, let these signals only set a flag. Signals that the parent process has set to be
 * ignored (nohup, a background job in a script) remain ignored. Calls may be nested; the outermost
 * call clears the flag. */
void rfl_stop_catch(struct rfl_stop *ret);
void rfl_stop_restore(const struct rfl_stop *stop);

/** Whether a signal has arrived since the outermost rfl_stop_catch(). */
bool rfl_stop_asked(void);
/** The same, as rfl_proc_spec.cancelled. */
bool rfl_stop_cancels(void *unused);

#endif
