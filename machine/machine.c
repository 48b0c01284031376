/*
 * machine.c - puts the record together, and binds threads; the pieces are in topology_*.c, cpuid.c,
 * limits.c and identity.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity, CPU_SET */
#endif
#include "machine/machine.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
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

/* A decimal number at *p, which moves past it; -1 when there is none or it is too large. */
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

/* Cores, and caches: a container may show the former and hide the latter. */
static enum rfl_rc find_topology(struct rfl_machine *m, const struct rfl_cpuset *usable,
				 struct rfl_err *err)
{
	enum rfl_rc rc = RFL_EUNAVAILABLE;
#ifdef RFL_HAVE_HWLOC
	struct rfl_err hwloc_err = RFL_ERR_INIT;

	rc = rfl_machine__topology_hwloc(m, usable, &hwloc_err);
	if (rc == RFL_ENOMEM)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s", hwloc_err.msg);
	if (rc != RFL_OK)
		rfl_log(RFL_LOG_WARN, "%s; reading /sys instead", hwloc_err.msg);
#endif
	if (rc != RFL_OK)
		rc = rfl_machine__topology_sys(m, "", usable, err);
	if (rc != RFL_OK || m->ncaches > 0)
		return rc;
	rc = rfl_machine__caches_cpuid(m, err);
	if (rc != RFL_OK || m->ncaches == 0)
		return rc;
	m->topology_source = rfl_arena_printf(m->arena, "%s, caches by cpuid", m->topology_source);
	return m->topology_source ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
}

enum rfl_rc rfl_machine_new(struct rfl_machine **ret, struct rfl_err *err)
{
	struct rfl_machine *m = calloc(1, sizeof(*m));
	struct rfl_cpuset usable = { { 0 } };
	enum rfl_rc rc;

	if (!m || !(m->arena = rfl_arena_new(0))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory while looking at the machine");
		goto done;
	}
	m->isa = rfl_isa_detect();
	rc = rfl_machine__affinity(&usable, err);
	if (rc != RFL_OK)
		goto done;
	rc = find_topology(m, &usable, err);
	if (rc != RFL_OK)
		goto done;
	rfl_machine__limits(m, "");
	rc = rfl_machine__identity(m, "", err);
	if (rc != RFL_OK)
		goto done;

	*ret = m;
	m = NULL;
done:
	rfl_machine_free(m);
	return rc;
}

void rfl_machine_free(struct rfl_machine *m)
{
	if (!m)
		return;
	rfl_arena_free(m->arena);
	free(m);
}

int rfl_machine_threads(const struct rfl_machine *m)
{
	int n = m->usable_cores;

	if (!isnan(m->cpu_quota) && ceil(m->cpu_quota) < n)
		n = (int)ceil(m->cpu_quota);
	return n > 0 ? n : 1;
}

const struct rfl_cache *rfl_machine_cache(const struct rfl_machine *m, int level)
{
	for (size_t i = 0; i < m->ncaches; i++) {
		if (m->caches[i].level == level)
			return &m->caches[i];
	}
	return NULL;
}

int64_t rfl_machine_llc_bytes(const struct rfl_machine *m)
{
	const struct rfl_cache *last = m->ncaches > 0 ? &m->caches[m->ncaches - 1] : NULL;

	return last ? last->size_bytes * last->count : 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct rfl_cpu *x = a;
	const struct rfl_cpu *y = b;

	if (x->smt_rank != y->smt_rank)
		return x->smt_rank - y->smt_rank;
	return x->os_index - y->os_index;
}

static int by_level(const void *a, const void *b)
{
	return ((const struct rfl_cache *)a)->level - ((const struct rfl_cache *)b)->level;
}

void rfl_machine__sort_caches(struct rfl_machine *m)
{
	if (m->ncaches > 0)
		qsort(m->caches, m->ncaches, sizeof(*m->caches), by_level);
}

void rfl_machine__rank_cpus(struct rfl_machine *m)
{
	m->usable_cores = 0;
	for (size_t i = 0; i < m->ncpus; i++) {
		m->cpus[i].smt_rank = 0;
		for (size_t j = 0; j < i; j++)
			m->cpus[i].smt_rank += m->cpus[j].core == m->cpus[i].core;
		m->usable_cores += m->cpus[i].smt_rank == 0;
	}
	if (m->ncpus > 0)
		qsort(m->cpus, m->ncpus, sizeof(*m->cpus), by_rank);
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
