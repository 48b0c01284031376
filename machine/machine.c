/*
 * machine.c - puts the record together; the pieces are in topology_*.c, limits.c and identity.c.
 */
#include "machine/machine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "machine/machine_parts.h"

static enum rfl_rc find_cores(struct rfl_machine *m, const struct rfl_cpuset *usable,
			      struct rfl_err *err)
{
#ifdef RFL_HAVE_HWLOC
	struct rfl_err hwloc_err = RFL_ERR_INIT;

	if (rfl_machine__topology_hwloc(m, usable, &hwloc_err) == RFL_OK)
		return RFL_OK;
	if (hwloc_err.rc == RFL_ENOMEM)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s", hwloc_err.msg);
	rfl_log(RFL_LOG_WARN, "%s; reading /sys instead", hwloc_err.msg);
#endif
	return rfl_machine__topology_sys(m, "", usable, err);
}

/* Cores, and caches: a container may show the former and hide the latter. */
static enum rfl_rc find_topology(struct rfl_machine *m, const struct rfl_cpuset *usable,
				 struct rfl_err *err)
{
	enum rfl_rc rc = find_cores(m, usable, err);

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
