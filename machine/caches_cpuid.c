/*
 * caches_cpuid.c - caches as the processor itself describes them, for systems that hide
 * /sys/devices/system/cpu (containers): leaf 4 of Intel, leaf 0x8000001D of AMD, of one layout.
 */
#include "base/alloc.h"
#include "machine/machine_parts.h"

enum { CACHES_MAX = 8, TYPE_NONE = 0, TYPE_INSTRUCTION = 2 };

static unsigned bits(uint32_t reg, int from, int n)
{
	return (reg >> from) & ((1u << n) - 1);
}

bool rfl_machine__cpuid_cache(const struct rfl_cpuid *r, struct rfl_cache *ret)
{
	const unsigned type = bits(r->a, 0, 5);
	const int64_t line = bits(r->b, 0, 12) + 1;
	const int64_t partitions = bits(r->b, 12, 10) + 1;
	const int64_t ways = bits(r->b, 22, 10) + 1;

	if (type == TYPE_NONE)
		return false;
	*ret = (struct rfl_cache){
		.level = type == TYPE_INSTRUCTION ? 0 : (int)bits(r->a, 5, 3),
		.line_bytes = (int)line,
		.sharers = (int)bits(r->a, 14, 12) + 1,
		.size_bytes = line * partitions * ways * ((int64_t)r->c + 1),
	};
	return true;
}

/* Sharers are numbers that are set aside, a power of two; what there is of threads is less, and a
 * cache does not reach beyond its package. */
static void count(const struct rfl_machine *m, struct rfl_cache *c)
{
	const int packages = m->packages > 0 ? m->packages : 1;
	const int threads = m->hw_threads > 0 ? m->hw_threads : 1;
	const int of_package = threads > packages ? threads / packages : 1;

	if (c->sharers > of_package)
		c->sharers = of_package;
	c->count = (threads + c->sharers - 1) / c->sharers;
}

#if defined(__x86_64__)

/* The leaf that describes caches here; 0: none does. */
static uint32_t cache_leaf(void)
{
	enum { TOPOEXT = 22 };

	if (rfl_cpuid(0x80000000u, 0).a >= 0x8000001du &&
	    bits(rfl_cpuid(0x80000001u, 0).c, TOPOEXT, 1))
		return 0x8000001du;
	return rfl_cpuid(0, 0).a >= 4 ? 4 : 0;
}

enum rfl_rc rfl_machine__caches_cpuid(struct rfl_machine *m, struct rfl_err *err)
{
	const uint32_t leaf = cache_leaf();
	struct rfl_cache *caches = rfl_arena_array(m->arena, CACHES_MAX, sizeof(*caches));
	size_t n = 0;

	if (!caches)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory for the caches");
	for (uint32_t sub = 0; leaf && sub < 16 && n < CACHES_MAX; sub++) {
		const struct rfl_cpuid r = rfl_cpuid(leaf, sub);

		if (!rfl_machine__cpuid_cache(&r, &caches[n]))
			break;
		if (caches[n].level < 1)
			continue;
		count(m, &caches[n++]);
	}
	m->caches = caches;
	m->ncaches = n;
	rfl_machine__sort_caches(m);
	return RFL_OK;
}

#else

enum rfl_rc rfl_machine__caches_cpuid(struct rfl_machine *m, struct rfl_err *err)
{
	(void)count;
	(void)err;
	m->ncaches = 0;
	return RFL_OK;
}

#endif
