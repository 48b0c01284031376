/*
 * quantity.c - the list of quantities as a table.
 */
#include <assert.h>
#include <string.h>

#include "profile/profile.h"

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
	return (enum rfl_quantity)q;
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
