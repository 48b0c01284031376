/*
 * time_value.c - durations as `time` of GNU, BSD, busybox and shells prints them.
 */
#include <string.h>

#include "profile/import/time.h"

bool rfl_time__decimal(struct rfl_span s, double *ret)
{
	enum rfl_decimal sign = memchr(s.at, ',', s.len) ? RFL_DECIMAL_COMMA : RFL_DECIMAL_POINT;

	return s.len > 0 && s.at[0] >= '0' && s.at[0] <= '9' && rfl_span_grouped(s, sign, ret);
}

static double seconds_of(char unit)
{
	static const char units[] = "dhms";
	static const double seconds[] = { 86400.0, 3600.0, 60.0, 1.0 };
	const char *at = unit != '\0' ? strchr(units, unit) : NULL;

	return at ? seconds[at - units] : 0.0;
}

bool rfl_time__duration(struct rfl_span s, double *ret)
{
	double total = 0.0;

	while (s.len > 0) {
		size_t n = 0;
		double part;

		while (n < s.len && s.at[n] != ':' && seconds_of(s.at[n]) == 0.0)
			n++;
		if (!rfl_time__decimal((struct rfl_span){ .at = s.at, .len = n }, &part))
			return false;
		if (n == s.len)
			total += part;
		else if (s.at[n] == ':')
			total = 60.0 * (total + part);
		else
			total += part * seconds_of(s.at[n]);
		if (n + 1 == s.len && s.at[n] == ':')
			return false;
		s = rfl_span_trim(rfl_span_from(s, n + 1));
	}
	*ret = total;
	return true;
}

double rfl_time__half_digit(struct rfl_span s)
{
	return rfl_span_half_digit(s, memchr(s.at, ',', s.len) ? RFL_DECIMAL_COMMA
							       : RFL_DECIMAL_POINT);
}
