/*
 * axis.c - logarithmic axes.
 */
#include "plot/axis.h"

#include <math.h>

static double decade_of(double value)
{
	return pow(10, floor(log10(value) + 1e-9));
}

void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room)
{
	double decade = decade_of(lo), length;

	/* ends of one digit: 1, 2, ... 9 times a power of ten */
	a->min = floor(lo / decade + 1e-9) * decade;
	decade = decade_of(hi);
	a->max = ceil(hi / decade - 1e-9) * decade;
	if (a->max < a->min * 9)
		a->max = a->min * 10;
	a->from = from;
	a->to = to;
	a->nticks = 0;
	length = fabs(to - from) / log10(a->max / a->min); /* of a decade on the page */
	for (decade = decade_of(a->min); decade <= a->max * 1.0001; decade *= 10) {
		for (int digit = 1; digit < 10; digit++) {
			double value = decade * digit;
			bool labelled = digit == 1;

			if (value < a->min * 0.9999 || value > a->max * 1.0001 ||
			    a->nticks == RFL_AXIS_MAX_TICKS)
				continue;
			/* labels at 1, 2, 5; or 1, 3; or 1: as there is room */
			if (length * 0.3 >= room)
				labelled = labelled || digit == 2 || digit == 5;
			else if (length * 0.47 >= room)
				labelled = labelled || digit == 3;
			a->ticks[a->nticks++] = (struct rfl_tick){ value, digit == 1, labelled };
		}
	}
}

double rfl_axis_at(const struct rfl_axis *a, double value)
{
	return a->from + (a->to - a->from) * log10(value / a->min) / log10(a->max / a->min);
}
