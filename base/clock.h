/* clock.h - monotonic time for measurements and calendar time for records. */
#ifndef RFL_BASE_CLOCK_H
#define RFL_BASE_CLOCK_H

#include <stdint.h>

/** Nanoseconds of CLOCK_MONOTONIC. */
int64_t rfl_clock_ns(void);

/** Seconds of CLOCK_MONOTONIC. */
double rfl_clock_s(void);

#define RFL_TIME_ISO_SIZE 24

/** Current UTC time as "2026-11-21T05:31:00Z", or the time set by rfl_clock_fix(). */
void rfl_clock_iso(char out[RFL_TIME_ISO_SIZE]);

/** Current local time as "20261121_053100", for log file names. */
void rfl_clock_stamp(char out[RFL_TIME_ISO_SIZE]);

/** Fix the calendar time at `unix_s`, always in UTC, for tests and reproducible output
 * (SOURCE_DATE_EPOCH). */
void rfl_clock_fix(int64_t unix_s);

#endif
