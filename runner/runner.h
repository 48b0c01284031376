/*
 * runner.h - read this first: the room that runs networks and records the results.
 *
 * - engine.h: the interface of engines, which execute a net, and the registry of their plugins
 * - burst.h: the measured burst: warm-up steps, then a window in which only training happens
 * - burst/counted.h: the steps after it whose hardware counters are read
 * - run.h: one run from configuration to ledger row: parent, child, files, several processes
 * - verify.h: compares an engine with golden files from PyTorch
 *
 * docs/architecture.md has the steps of a run, docs/run.md its files and columns. A net must
 * outlive the engine opened on it; close an engine before freeing its plugin's list. Use an engine
 * from one thread only.
 */
#ifndef RFL_RUNNER_RUNNER_H
#define RFL_RUNNER_RUNNER_H

#include "runner/burst.h"
#include "runner/burst/counted.h"
#include "runner/engine.h"
#include "runner/run.h"
#include "runner/verify.h"

#endif
