/* doubts.h - internal: how the doubts that a measurement records begin. peaks.h has the checks. */
#ifndef RFL_PEAKS_DOUBTS_H
#define RFL_PEAKS_DOUBTS_H

#include "peaks/peaks.h"

#define RFL_DOUBT_DISTURBED      "disturbed: "
#define RFL_DOUBT_OTHERS         "other programs used "
#define RFL_DOUBT_HYPERVISOR     "the hypervisor withheld "
#define RFL_DOUBT_NOT_REPEATABLE "not repeatable: "
#define RFL_DOUBT_NO_PLATEAU     "no plateau: "
#define RFL_DOUBT_HALF_THE_SIZE  "arrays of half the size are "
#define RFL_DOUBT_SLOWEST_PART   "the slowest of the "
#define RFL_DOUBT_UNBOUND        "the system does not let memory be bound "

#endif
