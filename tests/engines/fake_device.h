/*
 * fake_device.h - a device that works while its caller continues: a queue is a moment in time up
 * to which it is busy, and marks in it.
 */
#ifndef RFL_TESTS_FAKE_DEVICE_H
#define RFL_TESTS_FAKE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct fake_device;

/** NULL out of memory. */
struct fake_device *fake_device_new(void);
void fake_device_free(struct fake_device *d); /* accepts NULL */

/** Add work after what is queued. Returns at once. */
void fake_device_queue(struct fake_device *d, double seconds);

/** Sleep until the queue is done. */
void fake_device_wait(struct fake_device *d);

/** False: out of memory, a place that is not reserved, a mark that is not passed. */
bool fake_device_reserve(struct fake_device *d, int64_t n);
bool fake_device_record(struct fake_device *d, int64_t i);
bool fake_device_elapsed(const struct fake_device *d, int64_t from, int64_t to, double *ret);

#endif
