/* doubts.h - doubts about a measurement; peaks.h has those about a file. */
#ifndef RFL_PEAKS_DOUBTS_H
#define RFL_PEAKS_DOUBTS_H

#include <jansson.h>

#include "peaks/peaks.h"

/** The lines of rfl_peaks_doubts() for an environment in the long form.
 * @param value  borrowed; must be valid */
size_t rfl_peaks_doubts_of(const char *env, json_t *value, struct rfl_buf *lines);

/* Internal: how the doubts that a measurement records begin. */
#define RFL_DOUBT_DISTURBED      "disturbed: "
#define RFL_DOUBT_OTHERS         "other programs used "
#define RFL_DOUBT_HYPERVISOR     "the hypervisor withheld "
#define RFL_DOUBT_NOT_REPEATABLE "not repeatable: "
#define RFL_DOUBT_NO_PLATEAU     "no plateau: "
#define RFL_DOUBT_HALF_THE_SIZE  "arrays of half the size are "
#define RFL_DOUBT_SLOWEST_PART   "the slowest of the "
#define RFL_DOUBT_UNBOUND        "the system does not let memory be bound "

#endif
