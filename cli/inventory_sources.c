/*
 * inventory_sources.c - the sources of live counters, each asked whether it can count here, now.
 */
#include "cli/inventory_impl.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/places.h"
#include "profile/perf.h"
#include "profile/source.h"

/* Which of the events of processors can be counted, and why the others cannot. */
static const char *perf_detail(struct rfl_inventory *inv, struct rfl_err *err)
{
	struct rfl_perf_status s;

	if (rfl_perf_look(&s, err) != RFL_OK)
		return NULL;
	if (s.hardware == 0)
		return rfl_arena_printf(inv->arena, "%s: %zu events of the kernel only; %s",
					s.processor, s.software, s.no_hardware);
	return rfl_arena_printf(inv->arena,
				"%s: %zu events of the kernel, %zu of hardware (%zu of FLOPs, %zu "
				"of memory controllers)%s%s%s%s",
				s.processor, s.software, s.hardware, s.flops, s.dram,
				s.flops == 0 ? "; no FLOPs: " : "", s.flops == 0 ? s.no_flops : "",
				s.dram == 0 ? "; no DRAM: " : "", s.dram == 0 ? s.no_dram : "");
}

static enum rfl_rc add_source(struct rfl_inventory *inv, const struct rfl_source_ops *source,
			      struct rfl_err *err)
{
	const struct rfl_source_request request = { .sets = RFL_SET_CORE,
						    .precision = "fp32",
						    .places = rfl_cli_places() };
	struct rfl_item item = { .registry = "sources",
				 .name = source->name,
				 .summary = source->summary };
	struct rfl_err why = RFL_ERR_INIT;

	if (source->missing)
		item.reason = source->missing;
	else if (source->probe(&request, &why) != RFL_OK)
		item.reason = rfl_inventory_keep(inv, &why);
	else if (strcmp(source->name, "perf") == 0)
		item.detail = perf_detail(inv, &why);
	return rfl_inventory_add(inv, &item, err);
}

enum rfl_rc rfl_collect_sources(struct rfl_cli *cli, struct rfl_inventory *inv, struct rfl_err *err)
{
	const struct rfl_source_ops *source;
	enum rfl_rc rc = RFL_OK;

	(void)cli;
	for (size_t i = 0; rc == RFL_OK && (source = rfl_source_at(i)); i++)
		rc = add_source(inv, source, err);
	return rc;
}
