/*
 * runner.h - read this first: the room that runs networks and writes down what happened.
 *
 *   engine.h  what an engine is: it executes a net (forward, backward, step). Engines are plugins;
 * a registry says which are here and why others are not. burst.h   the measured burst: warm-up
 * steps, then a window in which only training happens. burst/counted.h  counted steps after it, for
 * hardware counters. run.h     one run from configuration to ledger row: parent, child, files,
 * several processes. verify.h  an engine against golden files made by PyTorch.
 *
 * The steps of a run are in docs/architecture.md, its files and columns in docs/run.md. A net must
 * outlive the engine that was opened on it, and an engine must be closed before its plugin's list
 * is freed. An engine is used by one thread; a source of batches has threads of its own and is
 * asked by one.
 */
#ifndef RFL_RUNNER_RUNNER_H
#define RFL_RUNNER_RUNNER_H

#include "runner/burst.h"
#include "runner/burst/counted.h"
#include "runner/engine.h"
#include "runner/run.h"
#include "runner/verify.h"

#endif
