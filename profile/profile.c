/* profile.c - the lists of quantities, sets of counters, and live sources. */
#include <assert.h>
#include <string.h>

#include "profile/source.h"

#define ROW(id, n, u, m) [RFL_QUANTITY_##id] = { .name = n, .unit = u, .meaning = m },
static const struct rfl_quantity_info rows[RFL_QUANTITY_COUNT] = { RFL_QUANTITIES(ROW) };

const struct rfl_quantity_info *rfl_quantity_info(enum rfl_quantity q)
{
	assert((int)q >= 0 && q < RFL_QUANTITY_COUNT);
	return &rows[q];
}

enum rfl_quantity rfl_quantity_find(const char *name)
{
	int q = 0;

	while (q < RFL_QUANTITY_COUNT && strcmp(rows[q].name, name) != 0)
		q++;
	return q;
}

bool rfl_quantity_is_part(enum rfl_quantity part, enum rfl_quantity sum)
{
	if (sum == RFL_QUANTITY_DRAM)
		return part == RFL_QUANTITY_DRAM_READ || part == RFL_QUANTITY_DRAM_WRITE;
	return sum == RFL_QUANTITY_FLOPS && rfl_quantity_is_flops(part);
}

bool rfl_quantity_is_flops(enum rfl_quantity q)
{
	return q >= RFL_QUANTITY_FLOPS_FP16 && q < RFL_QUANTITY_FLOPS;
}

const char *rfl_quantity_precision(enum rfl_quantity part)
{
	const char *name = rows[part].name + strlen("flops.");

	return name + (strncmp(name, "tensor_", 7) == 0 ? 7 : 0);
}

const char *const rfl_counter_set_names[] = { "core",    "flops",     "audit", "links",
					      "kernels", "self-test", NULL };

const char *rfl_counter_set_name(unsigned set)
{
	size_t i = 0;

	while (rfl_counter_set_names[i + 1] && set != 1U << i)
		i++;
	return rfl_counter_set_names[i];
}

/* If several sources support a backend, the first is preferred. */
static const struct rfl_source_ops *const sources[] = { &rfl_source_cupti, &rfl_source_perf };

const struct rfl_source_ops *rfl_source_at(size_t i)
{
	return i < RFL_ARRAY_LEN(sources) ? sources[i] : NULL;
}

enum rfl_rc rfl_source_for(const char *backend, const struct rfl_source_ops **ret,
			   struct rfl_err *err)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(sources); i++)
		if (strcmp(sources[i]->device, backend) == 0) {
			*ret = sources[i];
			return RFL_OK;
		}
	return rfl_fail(err, RFL_ENOTFOUND, 0, "no counter source supports the backend '%s'",
			backend);
}
