/*
 * counters_impl.h - the columns of counters.csv by number, for its writer and its reader.
 */
#ifndef RFL_PROFILE_COUNTERS_IMPL_H
#define RFL_PROFILE_COUNTERS_IMPL_H

#include "profile/capture/counters_csv.h"

#define RFL_COUNTERS_ENUM(kind, name, meaning) COLUMN_##name,
enum { RFL_COUNTER_COLUMNS(RFL_COUNTERS_ENUM) COUNTER_COLUMNS };

/** The words of column `kind`. */
enum rfl_counters_row { ROW_CAPTURE, ROW_QUANTITY, ROW_METRIC, ROW_REFUSAL, ROW_NOTE };
extern const char *const rfl_counters__rows[];

#endif
