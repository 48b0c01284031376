/*
 * inventory.h - every item of every registry with its status on this machine, for `roofline list`,
 * `doctor` and `version`.
 */
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
	/** A working engine's library, devices and BLAS; a model's sample shape and aliases; a
	 * library's version; else NULL. */
	const char *detail;
	/** Of a model, for one sample of its default size; else RFL_INT_UNKNOWN. */
	int64_t params, forward_flops;
	const char *reason; /**< why it does not work here and the fix; NULL when ok */
};

struct rfl_inventory {
	struct rfl_arena *arena; /**< owns everything below */
	size_t n, cap;
	struct rfl_item *items; /**< in the order of the registries, and of preference within */
	bool failed;            /**< out of memory while it was filled */
};

/** "models", "engines", ..., NULL. */
extern const char *const rfl_registry_names[];

/**
 * Check the rows of some registries. Engines are opened in child processes.
 * @param names  of rfl_registry_names, others are ignored; none: all
 * @param ret    set on success only; release with rfl_inventory_free()
 */
enum rfl_rc rfl_inventory_new(struct rfl_cli *cli, const char *const *names, size_t nnames,
			      struct rfl_inventory **ret, struct rfl_err *err) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_inventory_free(struct rfl_inventory *inv);

/** How many rows of a registry work here. */
size_t rfl_inventory_usable(const struct rfl_inventory *inv, const char *registry);

/** What an engine's plugin reports when it is opened. */
struct rfl_probe {
	bool ok;             /**< at least one device can be used */
	const char *devices; /**< "cpu, cuda": those that can be used; "" for none */
	const char *library; /**< version that the library reports; NULL when not known */
	const char *blas;    /**< file of the BLAS that came with it; NULL when not known */
	const char *no_gpu;  /**< why it cannot use a GPU that it is built for; else NULL */
	const char *reason;  /**< why not, when not ok */
};

/**
 * Open the plugin `id` ("torch-1.13-cpu") in a child process, so that a plugin that crashes, hangs
 * or needs a gigabyte does not harm this one.
 * @param ret  its texts are owned by the arena
 * @return RFL_OK however the child ended; RFL_ENOMEM; RFL_EIO when it could not be started
 */
enum rfl_rc rfl_probe_engine(struct rfl_cli *cli, const char *id, struct rfl_arena *arena,
			     struct rfl_probe *ret, struct rfl_err *err) RFL_WARN_UNUSED;

#endif
