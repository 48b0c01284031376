/* driver.c - a libcuda that only counts the calls that open and close a profiler's window. */
#include "base/compiler.h"

RFL_EXPORT int cuProfilerStart(void);
RFL_EXPORT int cuProfilerStop(void);
RFL_EXPORT int fake_profiler_calls(int of_stop);

static int starts, stops;

RFL_EXPORT int cuProfilerStart(void)
{
	starts++;
	return 0;
}

RFL_EXPORT int cuProfilerStop(void)
{
	stops++;
	return 0;
}

RFL_EXPORT int fake_profiler_calls(int of_stop)
{
	return of_stop ? stops : starts;
}
