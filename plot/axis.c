/*
 * axis.c - logarithmic axes.
 */
#include "plot/axis.h"

#include <math.h>

/* The nearest value with one digit (1, 2, ... 9 times a power of ten) at or below, at or above. */
static double round_end(double value, int dir)
{
	double decade = pow(10, floor(log10(value) + 1e-9));
	double m = value / decade;

	return (dir < 0 ? floor(m + 1e-9) : ceil(m - 1e-9)) * decade;
}

/* Which digits carry labels: 1; 1 and 3; or 1, 2 and 5. */
static int label_steps(const struct rfl_axis *a, double room)
{
	double decade = rfl_axis_decade(a);

	if (decade * 0.3 >= room)
		return 3;
	return decade * 0.47 >= room ? 2 : 1;
}

static bool labelled(int digit, int steps)
{
	if (steps == 3)
		return digit == 1 || digit == 2 || digit == 5;
	return digit == 1 || (steps == 2 && digit == 3);
}

void rfl_axis_fit(struct rfl_axis *a, double lo, double hi, double from, double to, double room)
{
	int steps;

	a->min = round_end(lo, -1);
	a->max = round_end(hi, 1);
	if (a->max < a->min * 9)
		a->max = a->min * 10;
	a->from = from;
	a->to = to;
	a->nticks = 0;
	steps = label_steps(a, room);
	for (double decade = pow(10, floor(log10(a->min) + 1e-9)); decade <= a->max * 1.0001;
	     decade *= 10) {
		for (int digit = 1; digit < 10; digit++) {
			double value = decade * digit;

			if (value < a->min * 0.9999 || value > a->max * 1.0001 ||
			    a->nticks == RFL_AXIS_MAX_TICKS)
				continue;
			a->ticks[a->nticks++] = (struct rfl_tick){
				.value = value,
				.major = digit == 1,
				.labelled = labelled(digit, steps),
			};
		}
	}
}

double rfl_axis_at(const struct rfl_axis *a, double value)
{
	return a->from + (a->to - a->from) * log10(value / a->min) / log10(a->max / a->min);
}

double rfl_axis_value(const struct rfl_axis *a, double at)
{
	return a->min * pow(a->max / a->min, (at - a->from) / (a->to - a->from));
}

double rfl_axis_decade(const struct rfl_axis *a)
{
	return fabs(a->to - a->from) / log10(a->max / a->min);
}
