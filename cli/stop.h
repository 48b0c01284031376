/* stop.h - SIGINT, SIGTERM and SIGHUP ask a command to stop as soon as it can. */
#ifndef RFL_CLI_STOP_H
#define RFL_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>

#define RFL_STOP_SIGNALS 3

/** The handlers that were replaced. */
struct rfl_stop {
	struct sigaction old[RFL_STOP_SIGNALS];
};

/** Block these signals, and only these, until rfl_stop_let() or rfl_stop_catch(). Signals that the
 * parent process had blocked are unblocked. */
void rfl_stop_hold(void);
void rfl_stop_let(void);

/** Only note these signals from here on. A signal that the parent process had set to be ignored
 * (nohup, a background job of a script) stays ignored. Calls may be nested; the outermost clears
 * the flag. */
void rfl_stop_catch(struct rfl_stop *ret);
void rfl_stop_restore(const struct rfl_stop *stop);

/** Whether a signal has come since the outermost rfl_stop_catch(), also after rfl_stop_restore().
 */
bool rfl_stop_asked(void);

#endif
