/*
 * fake_log.h - how the engine that computes nothing was opened and what was called, for tests.
 */
#ifndef RFL_TESTS_FAKE_LOG_H
#define RFL_TESTS_FAKE_LOG_H

#include <stdint.h>

#include "runner/engine.h"

struct fake_log {
	int calls[3]; /* of forward, backward, step */
	int zeroed, replays, captures, syncs, losses, uploads, last_backwards, pinned;
	int snapshots, restores;
	double weights;  /* of all backwards together */
	int64_t updates; /* the state that a step changes */
};

/** Write it to the file that RFL_FAKE_LOG names; nothing without one. */
void fake_log_write(const struct fake_log *log, const struct rfl_engine_config *config);

#endif
