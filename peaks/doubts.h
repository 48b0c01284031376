/* doubts.h - doubts about a measurement; peaks.h has those about a file. */
#ifndef RFL_PEAKS_DOUBTS_H
#define RFL_PEAKS_DOUBTS_H

#include "base/text.h"
#include "peaks/peaks.h"

/** The lines of rfl_peaks_doubts() for an environment that was measured: it gets its name, and the
 * names of its cells in the arena. */
size_t rfl_peaks_doubts_of(const char *name, struct rfl_peaks_env *env, struct rfl_arena *a,
			   struct rfl_buf *lines);

/** The better OPENBLAS_CORETYPE of an OpenBLAS that uses kernels without AVX2, because it does not
 * know the CPU; NULL if there is none.
 * @param library  "OpenBLAS 0.3.21 (Prescott kernels)", with other text before and after
 * @param kernels  set to the name of the kernels, unless NULL is returned */
const char *rfl_peaks_openblas_core(const char *library, bool avx2, bool avx512,
				    struct rfl_span *kernels);

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
