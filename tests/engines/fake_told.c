/*
 * fake_told.c - settings from the environment for the engine that computes nothing.
 */
#include "tests/engines/fake_told.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* True when RFL_FAKE asks for something at the n-th call of a place; the action's name in `action`.
 */
static bool is_asked(const char *place, int n, char action[16])
{
	const char *text = getenv("RFL_FAKE");
	char where[16] = "";
	int at = 0;

	action[0] = '\0';
	if (!text || sscanf(text, "%15[^:]:%15[^:]:%d", action, where, &at) < 2)
		return false;
	return strcmp(where, place) == 0 && at == n;
}

enum rfl_rc fake_misbehave(const char *place, int n, struct rfl_err *err)
{
	char action[16];

	if (!is_asked(place, n, action))
		return RFL_OK;
	if (strcmp(action, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(action, "hup") == 0) {
		signal(SIGHUP, SIG_DFL); /* nohup may have switched it off */
		raise(SIGHUP);
	}
	if (strcmp(action, "segv") == 0) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer must not turn it into an exit */
		raise(SIGSEGV);
	}
	if (strcmp(action, "exit") == 0)
		_exit(9);
	while (strcmp(action, "hang") == 0)
		pause();
	if (strcmp(action, "wait") == 0) { /* for a writer of the FIFO */
		FILE *gate = fopen(getenv("RFL_FAKE_GATE"), "re");

		if (gate)
			(void)fclose(gate);
	}
	if (strcmp(action, "edevmem") == 0)
		return rfl_fail(err, RFL_EDEVMEM, 0, "fake: no memory left for 7 GiB");
	if (strcmp(action, "fail") == 0)
		return rfl_fail(err, RFL_EFAILED, 0, "fake: asked to fail at %s %d", place, n);
	return RFL_OK;
}

bool fake_told_nan(const char *place, int n)
{
	char action[16];

	return is_asked(place, n, action) && strcmp(action, "nan") == 0;
}

bool fake_told(const char *word)
{
	const char *text = getenv("RFL_FAKE");

	return text && strcmp(text, word) == 0;
}

bool fake_lacks(const char *slot)
{
	const char *text = getenv("RFL_FAKE_LACKS");

	return text && strstr(text, slot);
}

void fake_note_pid(void)
{
	const char *path = getenv("RFL_FAKE_PID");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (f) {
		fprintf(f, "%ld\n", (long)getpid());
		fclose(f);
	}
}
