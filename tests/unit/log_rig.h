/*
 * log_rig.h - for tests of what is said beside the result: a directory to work in, and every
 * warning since the test began.
 */
#ifndef RFL_TESTS_LOG_RIG_H
#define RFL_TESTS_LOG_RIG_H

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tests/unit/rfl_test.h"

static char said[8192]; /* all lines, each with its newline */

static inline void listen_to(enum rfl_log_level level, const char *line, void *ctx)
{
	(void)level;
	(void)ctx;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", line);
}

static inline int log_rig_make(void **state)
{
	said[0] = '\0';
	rfl_log_set(listen_to, NULL, RFL_LOG_WARN);
	return tmpdir_make(state);
}

static inline int log_rig_remove(void **state)
{
	rfl_log_set(NULL, NULL, RFL_LOG_WARN);
	return tmpdir_remove(state);
}

#endif
