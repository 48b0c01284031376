/*
 * fake_device.c - a device that works while its caller continues, in the time of the real clock.
 */
#include "tests/engines/fake_device.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct fake_device {
	int64_t done_ns; /* when everything that is queued is done */
	int64_t nmarks;
	int64_t *marks; /* when each is passed; 0: not recorded */
};

struct fake_device *fake_device_new(void)
{
	return calloc(1, sizeof(struct fake_device));
}

void fake_device_free(struct fake_device *d)
{
	if (d)
		free(d->marks);
	free(d);
}

/* An idle device begins at once. */
static int64_t begin_ns(const struct fake_device *d)
{
	const int64_t now = rfl_clock_ns();

	return d->done_ns > now ? d->done_ns : now;
}

void fake_device_queue(struct fake_device *d, double seconds)
{
	d->done_ns = begin_ns(d) + (int64_t)(seconds * 1e9);
}

void fake_device_wait(struct fake_device *d)
{
	for (int64_t left; (left = d->done_ns - rfl_clock_ns()) > 0;) {
		const struct timespec pause = { .tv_sec = left / 1000000000,
						.tv_nsec = left % 1000000000 };

		nanosleep(&pause, NULL);
	}
}

bool fake_device_reserve(struct fake_device *d, int64_t n)
{
	free(d->marks);
	d->marks = calloc((size_t)n, sizeof(*d->marks));
	d->nmarks = d->marks ? n : 0;
	return d->marks;
}

bool fake_device_record(struct fake_device *d, int64_t i)
{
	if (i < 0 || i >= d->nmarks)
		return false;
	d->marks[i] = begin_ns(d);
	return true;
}

bool fake_device_elapsed(const struct fake_device *d, int64_t from, int64_t to, double *ret)
{
	if (from < 0 || to >= d->nmarks || !d->marks[from] || !d->marks[to] ||
	    d->marks[to] > rfl_clock_ns())
		return false;
	*ret = (double)(d->marks[to] - d->marks[from]) * 1e-9;
	return true;
}
