/* clock.c - monotonic and calendar time. */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static atomic_bool fixed;
static atomic_llong fixed_unix_s;

int64_t rfl_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

double rfl_clock_s(void)
{
	return (double)rfl_clock_ns() * 1e-9;
}

void rfl_clock_fix(int64_t unix_s)
{
	atomic_store(&fixed_unix_s, unix_s);
	atomic_store(&fixed, true);
}

/* Format the calendar time; a fixed time is always in UTC. */
static void write_now(char out[RFL_TIME_ISO_SIZE], const char *format, bool local)
{
	const bool still = atomic_load(&fixed);
	time_t t = still ? (time_t)atomic_load(&fixed_unix_s) : time(NULL);
	struct tm tm = { 0 };

	if (local && !still)
		localtime_r(&t, &tm);
	else
		gmtime_r(&t, &tm);
	if (strftime(out, RFL_TIME_ISO_SIZE, format, &tm) == 0)
		out[0] = '\0';
}

void rfl_clock_iso(char out[RFL_TIME_ISO_SIZE])
{
	write_now(out, "%Y-%m-%dT%H:%M:%SZ", false);
}

void rfl_clock_stamp(char out[RFL_TIME_ISO_SIZE])
{
	write_now(out, "%Y%m%d_%H%M%S", true);
}
