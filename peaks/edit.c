/*
 * edit.c - a peaks file in memory, to be changed and saved.
 */
#include "peaks/edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "peaks/edit_impl.h"
#include "peaks/peaks_parse.h"
#include "rfl_config.h"

enum rfl_rc rfl_peaks_edit__no_memory(const struct rfl_peaks_edit *e, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", e->path);
}

/* The same checks as when the file is read. */
static enum rfl_rc check(const struct rfl_peaks_edit *e, struct rfl_err *err)
{
	struct rfl_peaks p = { .path = e->path };
	enum rfl_rc rc;

	p.arena = rfl_arena_new(0);
	if (!p.arena)
		return rfl_peaks_edit__no_memory(e, err);
	rc = rfl_peaks__parse(e->root, &p, err);
	rfl_arena_free(p.arena);
	return rc;
}

enum rfl_rc rfl_peaks_edit_open(const char *path, struct rfl_peaks_edit **ret, struct rfl_err *err)
{
	struct rfl_peaks_edit *e = calloc(1, sizeof(*e));
	enum rfl_rc rc;

	if (!e || !(e->path = strdup(path))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	e->is_new = !rfl_file_exists(path);
	if (e->is_new) {
		e->root = json_pack("{s:s, s:{}}", "schema_version", RFL_PEAKS_SCHEMA_VERSION,
				    "environments");
		rc = e->root ? RFL_OK : rfl_peaks_edit__no_memory(e, err);
	} else {
		rc = rfl_peaks__read(path, &e->root, NULL, err);
		if (rc == RFL_OK)
			rc = check(e, err);
	}
	if (rc != RFL_OK)
		goto done;

	*ret = e;
	e = NULL;
done:
	rfl_peaks_edit_close(e);
	return rc;
}

void rfl_peaks_edit_close(struct rfl_peaks_edit *e)
{
	if (!e)
		return;
	json_decref(e->root);
	free(e->path);
	free(e);
}

json_t *rfl_peaks_edit__envs(struct rfl_peaks_edit *e, bool to_long)
{
	json_t *envs = rfl_peaks__environments(e->root);
	json_t *root;

	if (envs != e->root || !to_long)
		return envs;
	root = json_pack("{s:s, s:O}", "schema_version", RFL_PEAKS_SCHEMA_VERSION, "environments",
			 envs);
	if (!root)
		return NULL;
	rfl_log(RFL_LOG_INFO,
		"%s: in the long form from now on; its environments stay as they are "
		"written",
		e->path);
	json_decref(e->root);
	e->root = root;
	return json_object_get(root, "environments");
}

enum rfl_rc rfl_peaks_edit_save(struct rfl_peaks_edit *e, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (rfl_peaks__environments(e->root) != e->root &&
	    json_object_set_new(e->root, "generated_by", json_string("roofline " RFL_VERSION)) != 0)
		return rfl_peaks_edit__no_memory(e, err);
	rc = check(e, err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs_for(e->path, err);
	if (rc == RFL_OK)
		rc = rfl_json_save(e->path, e->root, err);
	return rc;
}
