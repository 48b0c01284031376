/*
 * stop.h - SIGINT, SIGTERM and SIGHUP ask a command to stop as soon as it can.
 */
#ifndef RFL_CLI_STOP_H
#define RFL_CLI_STOP_H

#include <signal.h>
#include <stdbool.h>

#define RFL_STOP_SIGNALS 3

/** What the signals did before. */
struct rfl_stop {
	struct sigaction old[RFL_STOP_SIGNALS];
};

/** They wait until rfl_stop_let() or rfl_stop_catch(); no other signal is blocked from here on,
 * whatever our caller has blocked. */
void rfl_stop_hold(void);
void rfl_stop_let(void);

/** From here on they are only noted. One that our caller had switched off (nohup, a job in the
 * background of a script) stays off. Calls may be nested; the outermost forgets what was asked
 * before. */
void rfl_stop_catch(struct rfl_stop *ret);
void rfl_stop_restore(const struct rfl_stop *stop);

/** Has one come since the outermost rfl_stop_catch()? It stays so after rfl_stop_restore(). */
bool rfl_stop_asked(void);

#endif
