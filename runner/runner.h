/*
 * runner.h - read this first: the room that runs networks and writes down what happened.
 *
 * What it answers
 *   engine.h     what an engine is: it executes a net (forward, backward, step). Engines live in
 *                plugins; a registry says which are here and why others are not.
 *   verify.h     an engine against golden files made by PyTorch.
 *   burst.h      the measured burst: warm-up steps, then a window in which only training happens.
 *   counted.h    counted steps after it, for hardware counters.
 *   run.h        one run from configuration to ledger row: parent, child, files.
 * Batches come from data/, rows go to ledger/.
 *
 * How a run goes
 *   rfl_run() checks the request, execs the program again as a child, sends it the configuration
 *   and listens. The child opens engine and data, runs the burst, and reports: engine, ready,
 *   progress, steps, timed; where it is asked to, it counts one more step: counters, counted.
 *   The parent judges how the child ended (ok, oom, timeout, failed, crash, nan, unsupported,
 *   interrupted), writes the table of steps, the process record and, last, the row.
 *   A child that dies after it reported its times has measured: its row says ok, and
 *   counters_status what became of the counting.
 *
 * Ownership
 *   A net must outlive the engine that was opened on it, an engine must be closed before its
 * plugin's list is freed. A batch belongs to its source and stays as it is until the next one is
 * asked for. Texts in a ledger row belong to the row. Everything that a function hands out through
 * `ret` is released by the _free, _close or _fini that its comment names.
 *
 * Threads
 *   An engine is used by one thread. A source of batches has threads of its own and is asked by
 * one.
 *
 * The files and their columns are documented in docs/formats.md.
 */
#ifndef RFL_RUNNER_RUNNER_H
#define RFL_RUNNER_RUNNER_H

#include "runner/burst.h"
#include "runner/burst/counted.h"
#include "runner/engine.h"
#include "runner/run.h"
#include "runner/verify.h"

#endif
