/*
 * inventory_benchmarks.c - the loops that measure ceilings.
 */
#include "cli/inventory_impl.h"

#include "peaks/kernels.h"

enum rfl_rc rfl_collect_benchmarks(struct rfl_cli *cli, struct rfl_inventory *inv,
				   struct rfl_err *err)
{
	const struct rfl_peak_kernel *k;

	(void)cli;
	for (size_t i = 0; (k = rfl_peak_kernel_at(i)); i++) {
		struct rfl_item item = { .registry = "benchmarks",
					 .name = k->name,
					 .summary = k->summary };
		struct rfl_err why = RFL_ERR_INIT;
		enum rfl_rc rc;

		if (k->missing)
			item.reason = k->missing;
		else if (rfl_peak_kernel_probe(k, &why) != RFL_OK)
			item.reason = rfl_inventory_keep(inv, &why);
		rc = rfl_inventory_add(inv, &item, err);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}
