/*
 * usable.c - which hardware threads this process may use, and binding a thread to one of them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity, CPU_SET */
#endif
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/machine.h"
#include "machine/machine_parts.h"

void rfl_cpuset__add(struct rfl_cpuset *set, int cpu)
{
	if (cpu >= 0 && cpu < RFL_CPUSET_MAX)
		set->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

bool rfl_cpuset__has(const struct rfl_cpuset *set, int cpu)
{
	return cpu >= 0 && cpu < RFL_CPUSET_MAX && ((set->bits[cpu / 64] >> (cpu % 64)) & 1);
}

int rfl_cpuset__count(const struct rfl_cpuset *set)
{
	int n = 0;

	for (int cpu = 0; cpu < RFL_CPUSET_MAX; cpu++)
		n += rfl_cpuset__has(set, cpu);
	return n;
}

/* A decimal number at *p, which moves behind it; -1 when there is none or it is too large. */
static int parse_cpu(const char **p)
{
	int value = 0;

	if (**p < '0' || **p > '9')
		return -1;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		value = value * 10 + (**p - '0');
		if (value >= RFL_CPUSET_MAX)
			return -1;
	}
	return value;
}

bool rfl_cpuset__parse(const char *text, struct rfl_cpuset *set)
{
	const char *p = text;

	while (*p) {
		const int first = parse_cpu(&p);
		int last = first;

		if (first < 0)
			return false;
		if (*p == '-') {
			p++;
			last = parse_cpu(&p);
		}
		if (last < first)
			return false;
		for (int cpu = first; cpu <= last; cpu++)
			rfl_cpuset__add(set, cpu);
		if (*p == ',')
			p++;
		else if (*p)
			return false;
	}
	return true;
}

enum rfl_rc rfl_machine__affinity(struct rfl_cpuset *set, struct rfl_err *err)
{
	const size_t size = CPU_ALLOC_SIZE(RFL_CPUSET_MAX);
	cpu_set_t *mask = CPU_ALLOC(RFL_CPUSET_MAX);
	enum rfl_rc rc = RFL_OK;

	if (!mask)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for an affinity mask");
	CPU_ZERO_S(size, mask);
	if (sched_getaffinity(0, size, mask) != 0) {
		rc = rfl_fail(err, RFL_EIO, errno, "sched_getaffinity: %s", strerror(errno));
		goto done;
	}
	for (int cpu = 0; cpu < RFL_CPUSET_MAX; cpu++) {
		if (CPU_ISSET_S((size_t)cpu, size, mask))
			rfl_cpuset__add(set, cpu);
	}
done:
	CPU_FREE(mask);
	return rc;
}

enum rfl_rc rfl_pin_thread(int os_index, struct rfl_err *err)
{
	const size_t size = CPU_ALLOC_SIZE(RFL_CPUSET_MAX);
	cpu_set_t *mask;
	enum rfl_rc rc = RFL_OK;

	if (os_index < 0 || os_index >= RFL_CPUSET_MAX)
		return rfl_fail(err, RFL_EINVAL, 0, "there is no cpu %d", os_index);
	mask = CPU_ALLOC(RFL_CPUSET_MAX);
	if (!mask)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for an affinity mask");
	CPU_ZERO_S(size, mask);
	CPU_SET_S((size_t)os_index, size, mask);
	if (sched_setaffinity(0, size, mask) != 0)
		rc = rfl_fail(err, RFL_EUNAVAILABLE, errno,
			      "cannot bind a thread to cpu %d: %s; is it within the affinity mask "
			      "of this process (taskset -p)?",
			      os_index, strerror(errno));
	CPU_FREE(mask);
	return rc;
}
