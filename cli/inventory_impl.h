/*
 * inventory_impl.h - inside the inventory: a registry is one file inventory_<registry>.c that
 * defines rfl_collect_<registry>(), and one line here.
 */
#ifndef RFL_CLI_INVENTORY_IMPL_H
#define RFL_CLI_INVENTORY_IMPL_H

#include "cli/inventory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define RFL_REGISTRIES(X) \
	X(models) \
	X(engines) \
	X(benchmarks) \
	X(sources) \
	X(importers) \
	X(surfaces)
/* clang-format on */

/** Add one item per row of a registry. */
typedef enum rfl_rc rfl_collect_fn(struct rfl_cli *cli, struct rfl_inventory *inv,
				   struct rfl_err *err);

#define RFL_REGISTRY_DECLARE(name) rfl_collect_fn rfl_collect_##name;
RFL_REGISTRIES(RFL_REGISTRY_DECLARE)

/** Append a copy of an item; an item with a reason is not ok. */
enum rfl_rc rfl_inventory_add(struct rfl_inventory *inv, const struct rfl_item *item,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/** The message of a probe, kept as long as the inventory. */
const char *rfl_inventory_keep(struct rfl_inventory *inv, const struct rfl_err *why);

#ifdef __cplusplus
}
#endif
#endif
