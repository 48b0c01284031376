/*
 * import_nvprof.h - inside the importer of nvprof: values with their units inside.
 */
#ifndef RFL_PROFILE_IMPORT_NVPROF_H
#define RFL_PROFILE_IMPORT_NVPROF_H

#include "profile/span.h"

enum rfl_nvprof_kind {
	RFL_NVPROF_COUNT,     /* whole: a total over the threads of one launch */
	RFL_NVPROF_RATIO,     /* with decimals, or in percent */
	RFL_NVPROF_RATE,      /* bytes per second */
	RFL_NVPROF_LEVEL,     /* "Low (2)" */
	RFL_NVPROF_NOT_THERE, /* "", "<OVERFLOW>", "nan" */
	RFL_NVPROF_NO_VALUE,  /* none of these */
};

/** Bytes of "B", "KB", "MB", "GB", whose prefixes are of 1024; 0: not a size. */
double rfl_nvprof__size(struct rfl_span unit);

/** @param unit  set to the SI base unit */
enum rfl_nvprof_kind rfl_nvprof__value(struct rfl_span s, double *ret, const char **unit);

#endif
