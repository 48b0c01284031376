/*
 * likwid.h - inside the importer of likwid-perfctr: what its events are called here.
 */
#ifndef RFL_PROFILE_IMPORT_LIKWID_H
#define RFL_PROFILE_IMPORT_LIKWID_H

#include "profile/import/span.h"

#define RFL_LIKWID_NAME_MAX 96

/**
 * "FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE" is perf's "fp_arith_inst_retired.256b_packed_double".
 * @param unit  set to the SI base unit
 * @return what its counts are multiplied by, to that unit
 */
double rfl_likwid__event(struct rfl_span event, char name[RFL_LIKWID_NAME_MAX], const char **unit);

#endif
