/*
 * complexity_freeze.c - --freeze of roofline complexity: a path that freezes nothing anywhere is a
 * slip of the pen, and the message names the path that was probably meant.
 */
#include "cli/cmd/complexity.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* Whether a parameter belongs to the module at a path, or is what the path names. */
static bool freezes_of(const struct rfl_net *net, const char *path)
{
	size_t len = strlen(path);

	for (int i = 0; i < net->nparams; i++) {
		const char *name = net->params[i].name;

		if (strncmp(name, path, len) == 0 && (name[len] == '.' || !name[len]))
			return true;
	}
	return false;
}

static bool freezes(const struct rfl_complexity_report *r, const char *path)
{
	for (size_t i = 0; i < r->n; i++)
		if (freezes_of(r->items[i]->net, path))
			return true;
	return false;
}

static size_t parts_of(const char *name)
{
	size_t n = 1;

	for (; *name; name++)
		n += *name == '.';
	return n;
}

/* "layer1", "layer1.0" and so on for every parameter of a network: what may be frozen. */
static const char *const *paths_of(const struct rfl_net *net, struct rfl_arena *arena)
{
	const char **paths;
	size_t most = 1, n = 0;

	for (int i = 0; i < net->nparams; i++)
		most += parts_of(net->params[i].name);
	paths = rfl_arena_array(arena, most, sizeof(*paths));
	for (int i = 0; paths && i < net->nparams; i++) {
		const char *name = net->params[i].name;

		for (size_t len = strcspn(name, ".");; len += 1 + strcspn(name + len + 1, ".")) {
			paths[n] = rfl_arena_printf(arena, "%.*s", (int)len, name);
			if (!paths[n++])
				return NULL;
			if (!name[len])
				break;
		}
	}
	if (paths)
		paths[n] = NULL;
	return paths;
}

static enum rfl_rc no_path(const struct rfl_complexity_report *r, const char *path,
			   struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	const char *nearest = NULL;
	enum rfl_rc rc = arena ? RFL_OK : RFL_ENOMEM;

	for (size_t i = 0; i < r->n && rc == RFL_OK && !nearest; i++) {
		const char *const *paths = paths_of(r->items[i]->net, arena);

		if (paths)
			nearest = rfl_text_nearest(path, paths);
		else
			rc = RFL_ENOMEM;
	}
	if (rc != RFL_OK)
		rc = rfl_fail(err, rc, 0, "--freeze: out of memory");
	else if (nearest)
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--freeze: no parameter lies under '%s'; did you mean '%s'?", path,
			      nearest);
	else
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--freeze: no parameter lies under '%s'; '--by layer' and "
			      "'--summary' show the paths",
			      path);
	rfl_arena_free(arena);
	return rc;
}

enum rfl_rc rfl_complexity_check_frozen(const struct rfl_complexity_report *r, struct rfl_err *err)
{
	for (size_t i = 0; i < r->options.nfrozen; i++)
		if (!freezes(r, r->options.frozen[i]))
			return no_path(r, r->options.frozen[i], err);
	return RFL_OK;
}
