/*
 * inventory.h - inside cli/: what is here and what works, gathered once for `list`, `doctor`,
 * `version` and `env`: a row per model, engine, library, device, tool and property of the machine,
 * with what was found, why it does not work, and what to do.
 */
#ifndef RFL_CLI_INVENTORY_H
#define RFL_CLI_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "cli/cmd.h"

enum rfl_item_state { RFL_ITEM_OK, RFL_ITEM_WARN, RFL_ITEM_NO };

/** "ok", "warn", "no". */
extern const char *const rfl_item_state_names[];

struct rfl_table;
/** The cell with the state of an item. */
void rfl_item_put_state(struct rfl_table *t, const void *item);

struct rfl_item {
	const char *registry; /**< "engines" */
	const char *name;
	enum rfl_item_state state; /**< WARN: works slowly or in part */
	bool needed;               /**< by the main functions of the program */
	const char *summary;       /**< what it is, for rows of a registry; else NULL */
	/** What was found: library, devices and BLAS of an engine; sample shape and aliases of a
	 * model; version of a library; a property of the machine; else NULL. */
	const char *detail;
	const char *reason; /**< why it is not ok; NULL if it is */
	const char *fix;    /**< what to do, unless the reason includes it */
	/* of an engine; else NULL */
	const char *path;    /**< of the plugin */
	const char *devices; /**< that can be used: "cpu, cuda" */
	const char *version; /**< of its library; NULL: unknown */
	/** For a model, with one sample of the default size; else RFL_INT_UNKNOWN. */
	int64_t params, forward_flops;
};

struct rfl_inventory {
	struct rfl_arena *arena; /**< owns everything: the command's arena */
	size_t n;
	struct rfl_item *items; /**< ordered by registry, then by preference */
	/* while it is filled */
	struct rfl_cli *cli;
	struct rfl_err *err;
	enum rfl_rc rc;
};

/** "models", "engines", ..., NULL. */
extern const char *const rfl_registry_names[];

/**
 * Check the rows of some registries. Engines are opened in child processes.
 * @param names  registries to check; other names are ignored; none: all
 */
enum rfl_rc rfl_inventory_new(struct rfl_cli *cli, const char *const *names, size_t nnames,
			      struct rfl_inventory *ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Open the engine item->name ("torch-1.13-cpu", "auto") in a child process, so that a plugin that
 * crashes, hangs or needs much memory does not affect this one, and fill in what it reports.
 * @return RFL_OK, even if it does not work; RFL_EIO if the child could not be started */
enum rfl_rc rfl_item_probe(struct rfl_cli *cli, struct rfl_arena *arena, struct rfl_item *item,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/** The device that 'auto' selects: the fastest that the engine can use. If it can use none, a run
 * with the device reports why. @param ret  a static string */
enum rfl_rc rfl_cli_auto_device(struct rfl_cli *cli, const char *engine, const char **ret,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** The length of the longest name in a registry. @param registry NULL: in all */
int rfl_items_width(const struct rfl_item *items, size_t n, const char *registry);

/** What was found and why it is not ok: "detail", "reason", or "detail; reason". */
const char *rfl_item_finding(const struct rfl_item *item, struct rfl_arena *arena);

/** Fill in what counters of the CPU (perf events) can be read. @param level  set to the value
 * of kernel.perf_event_paranoid, or to RFL_INT_UNKNOWN */
void rfl_item_perf(struct rfl_arena *arena, struct rfl_item *item, int64_t *level);

#endif
