/*
 * inventory_importers.c - the readers of other profilers' files. They need nothing but the file.
 */
#include "cli/inventory_impl.h"

#include "profile/import/importer.h"

enum rfl_rc rfl_collect_importers(struct rfl_cli *cli, struct rfl_inventory *inv,
				  struct rfl_err *err)
{
	const struct rfl_importer *importer;
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; (importer = rfl_importer_at(i)) && rc == RFL_OK; i++) {
		const struct rfl_item item = { .registry = "importers",
					       .name = importer->name,
					       .summary = importer->summary };

		rc = rfl_inventory_add(inv, &item, err);
	}
	return rc;
}
