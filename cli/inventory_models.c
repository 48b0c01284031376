/*
 * inventory_models.c - the models that the program knows.
 */
#include "cli/inventory_impl.h"

#include "complexity/zoo.h"

enum rfl_rc rfl_collect_models(struct rfl_cli *cli, struct rfl_inventory *inv, struct rfl_err *err)
{
	const struct rfl_zoo_model *m;

	(void)cli;
	for (size_t i = 0; (m = rfl_zoo_at(i)); i++) {
		enum rfl_rc rc = rfl_inventory_add(inv,
						   &(struct rfl_item){ .registry = "models",
								       .name = m->name,
								       .summary = m->summary },
						   err);

		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}
