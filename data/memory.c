/*
 * memory.c - memory of batches and of caches: whether there is enough of it, and where it comes
 * from. A system that overcommits gives more than it has, and ends whoever uses it: so it is asked
 * before.
 */
#include "data/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "machine/machine.h"

#define SMALL ((uint64_t)64 << 20) /* bytes for which the system is not asked */

enum rfl_rc rfl_data__room(int64_t *ret, struct rfl_err *err)
{
	struct rfl_machine *m = NULL;
	enum rfl_rc rc = rfl_machine_new(&m, err);

	if (rc)
		return rc;
	*ret = m->memory_available_bytes - m->memory_available_bytes / 10;
	rfl_machine_free(m);
	if (*ret <= 0) /* the system does not say */
		*ret = INT64_MAX;
	return RFL_OK;
}

enum rfl_rc rfl_data__check_room(const char *name, int64_t batches, int64_t samples, size_t bytes,
				 struct rfl_err *err)
{
	char need[RFL_NUM_MAX], have[RFL_NUM_MAX];
	const double total = (double)batches * (double)bytes;
	int64_t room;
	enum rfl_rc rc;

	if (total <= (double)SMALL)
		return RFL_OK;
	rc = rfl_data__room(&room, err);
	if (rc || total <= (double)room)
		return rc;
	rfl_num_bytes(total, need, sizeof(need));
	rfl_num_bytes((double)room, have, sizeof(have));
	return rfl_fail(err, RFL_ENOMEM, 0,
			"%s: %lld batch%s of %lld samples need %s, but %s of memory may be taken "
			"(nine tenths of what is free): use a smaller --batch-size%s",
			name, (long long)batches, batches == 1 ? "" : "es", (long long)samples,
			need, have, batches == 1 ? "" : " or --prefetch-factor");
}

enum rfl_rc rfl_data__alloc(const struct rfl_data_memory *memory, size_t bytes, void **ret,
			    struct rfl_err *err)
{
	const size_t line = 64;

	if (bytes > SIZE_MAX - line)
		return rfl_fail(err, RFL_ENOMEM, 0, "a batch is larger than any memory");
	bytes = (bytes + line - 1) / line * line;
	if (memory)
		return memory->alloc(memory->ctx, bytes, ret, err);
	*ret = aligned_alloc(line, bytes);
	if (!*ret)
		return rfl_fail(err, RFL_ENOMEM, 0,
				"a batch of %zu bytes: out of memory; take a smaller --batch-size",
				bytes);
	memset(*ret, 0, bytes); /* its pages are there before anything is timed */
	return RFL_OK;
}

void rfl_data__free(const struct rfl_data_memory *memory, void *p)
{
	if (!p)
		return;
	if (memory)
		memory->free(memory->ctx, p);
	else
		free(p);
}
