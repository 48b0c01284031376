/*
 * runner.h - overview of the code that runs networks and records the results.
 *
 * - engine.h: the interface of engines, which execute a net, and the registry of their plugins
 * - burst.h: the measured burst: warm-up steps, then a window in which only training happens
 * - burst/counted.h: the step after the window that is repeated with hardware counters
 * - run.h: one run, from configuration to ledger row: parent, child, files, several processes
 * - program.h: any program as one step: timed, counted, and recorded like a run
 * - verify.h: compares an engine with reference files from PyTorch
 *
 * docs/internals/architecture.md describes the stages of a run, docs/reference/run.md its files and
 * columns. A net must outlive the engine opened on it; close an engine before freeing its plugin's
 * list. Use an engine from one thread only.
 */
#ifndef RFL_RUNNER_RUNNER_H
#define RFL_RUNNER_RUNNER_H

#include "runner/burst.h"
#include "runner/burst/counted.h"
#include "runner/engine.h"
#include "runner/program.h"
#include "runner/run.h"
#include "runner/verify.h"

#endif
