/*
 * ncu_process.c - which launches of ncu's processes, and which kernels of its summaries,
 * were read already. Numbers are kept as runs, so that memory does not grow with their count.
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/capture/impl.h"
#include "profile/import/ncu_impl.h"

#define RUNS_MAX 65536 /* of a process: beyond it nothing is looked for */

/* --- numbers that are over ------------------------------------------------------------------- */

struct rfl_ncu_process *rfl_ncu__process(struct rfl_ncu *n, int64_t id)
{
	for (size_t i = n->nprocesses; i-- > 0;)
		if (n->processes[i].id == id)
			return &n->processes[i];
	if (!rfl_capture__room(&n->processes, n->nprocesses, &n->processes_cap,
			       sizeof(*n->processes)))
		return NULL;
	n->processes[n->nprocesses] = (struct rfl_ncu_process){ .id = id };
	return &n->processes[n->nprocesses++];
}

/* The first run that ends at `id` or behind it. */
static size_t find_run(const struct rfl_ncu_process *p, int64_t id)
{
	size_t low = 0, high = p->nruns;

	if (high > 0 && p->runs[high - 1].last < id)
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->runs[mid].last < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool rfl_ncu__was_read(const struct rfl_ncu_process *p, int64_t id)
{
	size_t i = find_run(p, id);

	return i < p->nruns && p->runs[i].first <= id;
}

static bool add_run(struct rfl_ncu_process *p, size_t at, int64_t id)
{
	if (p->nruns >= RUNS_MAX)
		return true;
	if (!rfl_capture__room(&p->runs, p->nruns, &p->cap, sizeof(*p->runs)))
		return false;
	memmove(p->runs + at + 1, p->runs + at, (p->nruns - at) * sizeof(*p->runs));
	p->runs[at] = (struct rfl_ncu_run){ .first = id, .last = id };
	p->nruns++;
	return true;
}

bool rfl_ncu__mark_read(struct rfl_ncu_process *p, int64_t id)
{
	size_t i = find_run(p, id);

	if (i > 0 && p->runs[i - 1].last == id - 1) {
		p->runs[i - 1].last = id;
		if (i < p->nruns && p->runs[i].first == id + 1) {
			p->runs[i - 1].last = p->runs[i].last;
			p->nruns--;
			memmove(p->runs + i, p->runs + i + 1, (p->nruns - i) * sizeof(*p->runs));
		}
		return true;
	}
	if (i < p->nruns && p->runs[i].first == id + 1) {
		p->runs[i].first = id;
		return true;
	}
	return add_run(p, i, id);
}

/* --- kernels of a summary that are over ------------------------------------------------------ */

static bool grow_kernels(struct rfl_ncu *n)
{
	size_t cap = n->kernels_cap ? 2 * n->kernels_cap : 64;
	uint64_t *kernels = rfl_alloc_array(cap, sizeof(*kernels));

	if (!kernels)
		return false;
	for (size_t i = 0; i < n->kernels_cap; i++) {
		size_t at = n->kernels[i] & (cap - 1);

		while (n->kernels[i] != 0 && kernels[at] != 0)
			at = (at + 1) & (cap - 1);
		if (n->kernels[i] != 0)
			kernels[at] = n->kernels[i];
	}
	free(n->kernels);
	n->kernels = kernels;
	n->kernels_cap = cap;
	return true;
}

int rfl_ncu__add_kernel(struct rfl_ncu *n, struct rfl_span identity)
{
	/* Where no process is told the same kernel in another table is of another run. */
	uint64_t seed = n->process == RFL_NCU_UNNUMBERED ? n->tables : 0;
	uint64_t hash = rfl_hash64(seed, identity.at, identity.len) | 1;
	size_t at;

	if (2 * (n->nkernels + 1) > n->kernels_cap && !grow_kernels(n))
		return -1;
	for (at = hash & (n->kernels_cap - 1); n->kernels[at] != 0;
	     at = (at + 1) & (n->kernels_cap - 1))
		if (n->kernels[at] == hash)
			return 1;
	n->kernels[at] = hash;
	n->nkernels++;
	return 0;
}

/* --- tables and the end ---------------------------------------------------------------------- */

void rfl_ncu__forget_unnumbered(struct rfl_ncu *n)
{
	for (size_t i = 0; i < n->nprocesses; i++)
		if (n->processes[i].id == RFL_NCU_UNNUMBERED) {
			n->processes[i].nruns = 0;
			n->processes[i].summarized = false;
		}
}

void rfl_ncu__processes_fini(struct rfl_ncu *n)
{
	for (size_t i = 0; i < n->nprocesses; i++)
		free(n->processes[i].runs);
	free(n->processes);
	free(n->kernels);
}
