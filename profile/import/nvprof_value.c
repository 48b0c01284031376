/*
 * nvprof_value.c - a value as nvprof prints it, with its unit inside.
 */
#include <math.h>
#include <string.h>

#include "profile/import/nvprof.h"

/* Prefixes of nvprof are of 1024. */
static double prefix_of(char c)
{
	static const char prefixes[] = "KMGT";
	const char *at = c != '\0' ? strchr(prefixes, c) : NULL;

	return at ? pow(1024.0, (double)(at - prefixes) + 1.0) : 0.0;
}

/* Bytes of "B", "KB", "MB", "GB"; 0: not a size. */
double rfl_nvprof__size(struct rfl_span unit)
{
	if (rfl_span_is(unit, "B"))
		return 1.0;
	return unit.len == 2 && unit.at[1] == 'B' ? prefix_of(unit.at[0]) : 0.0;
}

/* "123", "0.45", "12.3GB/s", "45.6%", "Idle (0)", "<OVERFLOW>". */
enum rfl_nvprof_kind rfl_nvprof__value(struct rfl_span s, double *ret, const char **unit)
{
	size_t len = rfl_span_number_len(s);
	struct rfl_span rest = rfl_span_trim(rfl_span_from(s, len));
	double scale;

	*unit = "";
	if (rfl_span_ends(s, ")") && len == 0) {
		size_t at = rfl_span_find(s, "(");

		s = rfl_span_from(s, at + 1);
		s.len -= s.len > 0;
		return rfl_span_number(s, ret) ? RFL_NVPROF_LEVEL : RFL_NVPROF_NO_VALUE;
	}
	if (s.len == 0 || rfl_span_starts(s, "<") || rfl_span_is(s, "nan") ||
	    rfl_span_is(s, "inf") || rfl_span_is(s, "n/a") || rfl_span_is(s, "N/A"))
		return RFL_NVPROF_NOT_THERE;
	if (rfl_span_number(s, ret))
		return memchr(s.at, '.', s.len) ? RFL_NVPROF_RATIO : RFL_NVPROF_COUNT;
	s.len = len;
	if (!rfl_span_number(s, ret))
		return RFL_NVPROF_NO_VALUE;
	if (rfl_span_is(rest, "%")) {
		*unit = "%";
		return RFL_NVPROF_RATIO;
	}
	if (!rfl_span_ends(rest, "/s"))
		return RFL_NVPROF_NO_VALUE;
	rest.len -= 2;
	scale = rfl_nvprof__size(rest);
	if (scale == 0.0)
		return RFL_NVPROF_NO_VALUE;
	*ret *= scale;
	*unit = "byte/s";
	return RFL_NVPROF_RATE;
}
