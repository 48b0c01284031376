/*
 * fake_told.h - settings of tests for the engine that computes nothing, through the environment:
 *
 *   RFL_FAKE=<action>:<place>[:<n>]   at the n-th call (from 0) of that place:
 *       kill hup segv exit hang wait edevmem fail nan     at open forward backward step snapshot
 * restore capture close watch or RFL_FAKE=unsupported, RFL_FAKE=unavailable RFL_FAKE_GATE=<fifo>
 * what "wait" waits for: a writer RFL_FAKE_DEVICE=cuda|mps                     serves this device
 * beside the cpu RFL_FAKE_LACKS=snapshot,mark,events,upload,capture,pinned,kernels,join, watch has
 * no such slots RFL_FAKE_LOG=<file>                          receives at close how it was opened,
 * how often what was called, and how many updates the parameters have seen
 *   RFL_FAKE_MS=<forward>,<backward>,<step>      milliseconds, 0 when absent
 *   RFL_FAKE_PID=<file>                          receives the process id at open
 *   RFL_FAKE_WORLD=<directory>                      where several of them meet
 *   RFL_FAKE_RANK=<n>                            of several only this one goes wrong, or is slow
 *   RFL_FAKE_JOINED=<file>                       every rank appends how it joined
 *   RFL_FAKE_FITS=<n>                            a forward of more than n samples finds no memory
 */
#ifndef RFL_TESTS_FAKE_TOLD_H
#define RFL_TESTS_FAKE_TOLD_H

#include <stdbool.h>

#include "base/err.h"

/** Is this RFL_FAKE, as a whole? */
bool fake_told(const char *word);
/** Do what RFL_FAKE wants at the n-th call of a place; it may not return. */
enum rfl_rc fake_misbehave(const char *place, int n, struct rfl_err *err);
/** Should the loss be none from this call on? */
bool fake_told_nan(const char *place, int n);
bool fake_lacks(const char *slot);
void fake_note_pid(void);

#endif
