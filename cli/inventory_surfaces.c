/*
 * inventory_surfaces.c - the output formats of figures.
 */
#include "cli/inventory_impl.h"

#include "base/alloc.h"
#include "plot/surface.h"

enum rfl_rc rfl_collect_surfaces(struct rfl_cli *cli, struct rfl_inventory *inv,
				 struct rfl_err *err)
{
	const struct rfl_surface_ops *s;
	const char *fonts = rfl_arena_printf(inv->arena, "%s/fonts", cli->data_dir);
	const struct rfl_surface_spec spec = { .font_dir = fonts };

	if (!fonts)
		return rfl_fail(err, RFL_ENOMEM, 0, "list of surfaces: out of memory");
	for (size_t i = 0; (s = rfl_surface_at(i)); i++) {
		struct rfl_item item = { .registry = "surfaces",
					 .name = s->name,
					 .summary = s->summary };
		struct rfl_err why = RFL_ERR_INIT;
		enum rfl_rc rc;

		if (s->missing)
			item.reason = s->missing;
		else if (s->probe && s->probe(&spec, &why) != RFL_OK)
			item.reason = rfl_inventory_keep(inv, &why);
		rc = rfl_inventory_add(inv, &item, err);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}
