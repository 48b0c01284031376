/*
 * inventory_engines.c - the engines, each asked in a child process.
 */
#include "cli/inventory_impl.h"

#include "base/alloc.h"
#include "cli/probe.h"
#include "runner/engine.h"

/* "cpu; library 1.13.1; /usr/lib/.../libblas.so.3": what people want to know of an engine. */
static const char *engine_detail(struct rfl_inventory *inv, const struct rfl_probe *probe)
{
	return rfl_arena_printf(inv->arena, "%s; library %s%s%s%s%s", probe->devices,
				probe->library ? probe->library : "of unknown version",
				probe->blas ? "; BLAS " : "", probe->blas ? probe->blas : "",
				probe->no_gpu ? "; no GPU: " : "",
				probe->no_gpu ? probe->no_gpu : "");
}

static enum rfl_rc add_engine(struct rfl_cli *cli, struct rfl_inventory *inv,
			      const struct rfl_engine_row *row, struct rfl_err *err)
{
	struct rfl_item item = { .registry = "engines" };
	struct rfl_probe probe = { .ok = false };
	enum rfl_rc rc;

	/* The rows end with their list; the inventory lives on. */
	item.name = rfl_arena_strdup(inv->arena, row->id ? row->id : row->name);
	item.summary = rfl_arena_strdup(inv->arena, row->summary ? row->summary : "");
	if (row->missing) {
		item.reason = rfl_arena_strdup(inv->arena, row->missing);
	} else {
		rc = rfl_probe_engine(cli, row->id, inv->arena, &probe, err);
		if (rc != RFL_OK)
			return rc;
		item.reason = probe.ok ? NULL : probe.reason;
		item.detail = probe.ok ? engine_detail(inv, &probe) : NULL;
	}
	if (!item.name || !item.summary || (!item.reason && !item.detail))
		return rfl_fail(err, RFL_ENOMEM, 0, "list of engines: out of memory");
	return rfl_inventory_add(inv, &item, err);
}

enum rfl_rc rfl_collect_engines(struct rfl_cli *cli, struct rfl_inventory *inv, struct rfl_err *err)
{
	struct rfl_engine_list *list = NULL;
	const struct rfl_engine_row *row;
	enum rfl_rc rc;

	rc = rfl_engine_list_new(cli->plugin_dirs, &list, err);
	for (size_t i = 0; rc == RFL_OK && (row = rfl_engine_list_at(list, i)); i++)
		rc = add_engine(cli, inv, row, err);
	rfl_engine_list_free(list);
	return rc;
}
