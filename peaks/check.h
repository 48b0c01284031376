/*
 * check.h - doubts about ceilings that have the right format: levels out of order, a measurement
 * far from the data sheet, an unsteady or an old one.
 */
#ifndef RFL_PEAKS_CHECK_H
#define RFL_PEAKS_CHECK_H

#include <stdint.h>

#include "base/err.h"
#include "peaks/peaks.h"

/** A measured ceiling is unsteady when its fastest repeat is this many times the median. */
#define RFL_PEAKS_UNSTEADY 1.10

/** Receives one doubt. */
typedef void (*rfl_peaks_doubt_fn)(const char *env, const char *cell, const char *text, void *ctx);

/**
 * Look for doubts, environment by environment.
 * @param today  "2026-11-21T05:31:00Z", from which age is counted; NULL: age is not checked
 * @return how many there were
 */
size_t rfl_peaks_check(const struct rfl_peaks *p, const char *today, rfl_peaks_doubt_fn fn,
		       void *ctx);

#endif
