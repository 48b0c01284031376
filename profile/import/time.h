/*
 * time.h - inside the importer of `time`: its values.
 */
#ifndef RFL_PROFILE_IMPORT_TIME_H
#define RFL_PROFILE_IMPORT_TIME_H

#include "profile/import/span.h"

/** A number with a point or, of another locale, a comma. */
bool rfl_time__decimal(struct rfl_span s, double *ret) RFL_WARN_UNUSED;

/** "36.01", "0:51.40", "1:02:03", "1m18.01s", "1h3.00s", "0m0,004s"; "1h 2m 03s" of busybox: in
 * seconds. */
bool rfl_time__duration(struct rfl_span s, double *ret) RFL_WARN_UNUSED;

/** Half of the last digit of its seconds. */
double rfl_time__half_digit(struct rfl_span s);

#endif
