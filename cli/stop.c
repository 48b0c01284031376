/* stop.c - signal handlers that set a flag. */
#include "cli/stop.h"

#include <stdatomic.h>
#include <stddef.h>

static atomic_int asked; /* also read by other threads */
static int depth;        /* nesting depth of rfl_stop_catch() */

static const int signals[RFL_STOP_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

static void on_signal(int number)
{
	(void)number;
	asked = 1;
}

static void set_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < RFL_STOP_SIGNALS; i++)
		sigaddset(&set, signals[i]);
	(void)pthread_sigmask(how, &set, NULL);
}

void rfl_stop_hold(void)
{
	set_mask(SIG_SETMASK);
}

void rfl_stop_let(void)
{
	set_mask(SIG_UNBLOCK);
}

void rfl_stop_catch(struct rfl_stop *ret)
{
	struct sigaction action = { .sa_handler = on_signal };

	if (depth++ == 0)
		asked = 0;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < RFL_STOP_SIGNALS; i++)
		if (sigaction(signals[i], NULL, &ret->old[i]) == 0 &&
		    ret->old[i].sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &action, NULL);
	rfl_stop_let();
}

void rfl_stop_restore(const struct rfl_stop *stop)
{
	depth--;
	for (size_t i = 0; i < RFL_STOP_SIGNALS; i++)
		(void)sigaction(signals[i], &stop->old[i], NULL);
}

bool rfl_stop_asked(void)
{
	return asked != 0;
}

bool rfl_stop_cancels(void *unused)
{
	(void)unused;
	return rfl_stop_asked();
}
