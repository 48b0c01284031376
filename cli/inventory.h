/* inventory.h - inside cli/: the items of every registry with their status. */
#ifndef RFL_CLI_INVENTORY_H
#define RFL_CLI_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "cli/cmd.h"

struct rfl_item {
	const char *registry; /**< "engines" */
	const char *name;
	bool ok;
	const char *summary;
	/** Library, devices and BLAS of a working engine; sample shape and aliases of a model;
	 * version of a library; else NULL. */
	const char *detail;
	/** For a model, with one sample of the default size; else RFL_INT_UNKNOWN. */
	int64_t params, forward_flops;
	const char *reason; /**< why it does not work here, and the fix; NULL if ok */
};

struct rfl_inventory {
	struct rfl_arena *arena; /**< owns everything below */
	size_t n, cap;
	struct rfl_item *items; /**< ordered by registry, then by preference */
	bool failed;            /**< out of memory while filling it */
};

/** "models", "engines", ..., NULL. */
extern const char *const rfl_registry_names[];

/**
 * Check the rows of some registries. Engines are opened in child processes.
 * @param names  registries to check; other names are ignored; none: all
 * @param ret    set only on success; release with rfl_inventory_free()
 */
enum rfl_rc rfl_inventory_new(struct rfl_cli *cli, const char *const *names, size_t nnames,
			      struct rfl_inventory **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_inventory_free(struct rfl_inventory *inv);

/** The number of items of a registry that work here. */
size_t rfl_inventory_usable(const struct rfl_inventory *inv, const char *registry);

/** The result of opening an engine plugin. */
struct rfl_probe {
	bool ok;             /**< whether at least one device can be used */
	const char *devices; /**< usable devices, such as "cpu, cuda"; "": none */
	const char *library; /**< version reported by the library; NULL: unknown */
	const char *blas;    /**< path of the loaded BLAS; NULL: unknown */
	const char *no_gpu;  /**< why it cannot use a GPU although built for one; else NULL */
	const char *reason;  /**< why it is not ok; NULL if ok */
};

/**
 * Open the plugin `id` ("torch-1.13-cpu") in a child process, so that a plugin that crashes, hangs
 * or needs much memory does not affect this process.
 * @param ret  its strings are owned by the arena
 * @return RFL_OK, even if the child failed; RFL_ENOMEM; RFL_EIO if it could not be started
 */
enum rfl_rc rfl_probe_engine(struct rfl_cli *cli, const char *id, struct rfl_arena *arena,
			     struct rfl_probe *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
