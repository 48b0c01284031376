/*
 * inventory.c - what `list` and `doctor` know of every registry. How the rows of one registry are
 * looked at is in its own file, inventory_<registry>.c.
 */
#include "cli/inventory_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define ITEMS_MAX 4096

enum rfl_rc rfl_inventory_add(struct rfl_inventory *inv, const struct rfl_item *item,
			      struct rfl_err *err)
{
	struct rfl_item copy = *item;

	if (inv->n == inv->cap) {
		size_t cap = inv->cap > 0 ? 2 * inv->cap : 64;
		void *bigger = cap <= ITEMS_MAX ? realloc(inv->items, cap * sizeof(copy)) : NULL;

		if (!bigger)
			return rfl_fail(err, RFL_ENOMEM, 0, "list of %s: out of memory",
					item->registry);
		inv->items = bigger;
		inv->cap = cap;
	}
	copy.ok = !copy.reason;
	inv->items[inv->n++] = copy;
	return RFL_OK;
}

const char *rfl_inventory_keep(struct rfl_inventory *inv, const struct rfl_err *why)
{
	const char *text =
		rfl_arena_strdup(inv->arena, why->msg[0] != '\0' ? why->msg : rfl_rc_text(why->rc));

	return text ? text : "out of memory";
}

#define NAME(name) #name,
#define ROW(name)  { #name, rfl_collect_##name },

const char *const rfl_registry_names[] = { RFL_REGISTRIES(NAME) NULL };

static const struct {
	const char *name;
	rfl_collect_fn *collect;
} registries[] = { RFL_REGISTRIES(ROW) };

static bool wanted(const char *name, const char *const *names, size_t nnames)
{
	for (size_t i = 0; i < nnames; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return nnames == 0;
}

enum rfl_rc rfl_inventory_new(struct rfl_cli *cli, const char *const *names, size_t nnames,
			      struct rfl_inventory **ret, struct rfl_err *err)
{
	struct rfl_inventory *inv = calloc(1, sizeof(*inv));
	enum rfl_rc rc = RFL_OK;

	if (inv)
		inv->arena = rfl_arena_new(0);
	if (!inv || !inv->arena) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
		goto done;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(registries) && rc == RFL_OK; i++)
		if (wanted(registries[i].name, names, nnames))
			rc = registries[i].collect(cli, inv, err);
	if (rc != RFL_OK)
		goto done;
	*ret = inv;
	inv = NULL;
done:
	rfl_inventory_free(inv);
	return rc;
}

void rfl_inventory_free(struct rfl_inventory *inv)
{
	if (!inv)
		return;
	free(inv->items);
	rfl_arena_free(inv->arena);
	free(inv);
}

size_t rfl_inventory_usable(const struct rfl_inventory *inv, const char *registry)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n; i++)
		n += inv->items[i].ok && strcmp(inv->items[i].registry, registry) == 0;
	return n;
}
