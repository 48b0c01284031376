/* project.c - find and read roofline.json. */
#include "cli/project.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"

#define NAME       "roofline.json"
#define MAX_LEVELS 64

/* @param dir  folder of the file: "" or "../../" */
static enum rfl_rc load(struct rfl_project *p, const char *path, const char *dir,
			struct rfl_err *err)
{
	static const char *const keys[] = { "schema", "env", "log_dir", "peaks", NULL };
	/* the options that a key sets; a path is relative to the folder of the file */
	static const struct {
		int key;
		const char *option, *leaf;
		bool path;
	} rows[] = {
		{ 1, "env", "", false },
		{ 2, "log-dir", "", true },
		{ 2, "metrics", "/metrics.csv", true },
		{ 2, "env FILE", "/env.json", true },
		{ 3, "peaks", "", true },
	};
	const char *schema;
	struct rfl_where where;
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	if (rc)
		return rc;
	rfl_where_begin(&where, path, "");
	schema = json_string_value(json_object_get(root, "schema"));
	if (json_object_get(root, "empirical")) { /* ERT's results have the same file name */
		json_decref(root);
		return RFL_OK;
	}
	if (!schema || strcmp(schema, "roofline.project/1") != 0)
		rc = rfl_where_fail(&where, err,
				    "not a project file; begin it with {\"schema\": "
				    "\"roofline.project/1\"}, or rename the file");
	else
		rc = rfl_json_only_keys(root, keys, path, "", err);
	_Static_assert(RFL_ARRAY_LEN(rows) == RFL_PROJECT_VALUES, "a value per option");
	for (size_t i = 0; rc == RFL_OK && i < RFL_ARRAY_LEN(rows); i++) {
		const json_t *value = json_object_get(root, keys[rows[i].key]);
		const char *text = json_string_value(value);

		p->values[i].option = rows[i].option;
		if (!value)
			continue;
		if (!text || !*text) {
			(void)rfl_where_key(&where, keys[rows[i].key]);
			rc = rfl_where_fail(&where, err, "not a string; write \"%s\": \"...\"",
					    keys[rows[i].key]);
			break;
		}
		p->values[i].text = rfl_arena_printf(p->arena, "%s%s%s",
						     rows[i].path && *text != '/' ? dir : "", text,
						     rows[i].leaf);
		if (!p->values[i].text)
			rc = rfl_no_memory(err, path);
	}
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_DEBUG, "project: %s", path);
	json_decref(root);
	return rc;
}

/* Look for the file in the current folder and those above it. */
static enum rfl_rc look(struct rfl_project *p, struct rfl_err *err)
{
	char up[3 * MAX_LEVELS + 1] = "", path[sizeof(up) + sizeof(NAME)], here[4096] = "";
	size_t levels = 0;

	p->looked = true;
	p->arena = rfl_arena_new();
	if (!p->arena)
		return rfl_no_memory(err, NAME);
	if (getcwd(here, sizeof(here)))
		for (const char *c = here; (c = strchr(c, '/')) && levels < MAX_LEVELS; c++)
			levels++;
	for (size_t level = 0; level <= levels; level++) {
		(void)snprintf(path, sizeof(path), "%s" NAME, up);
		if (access(path, F_OK) == 0)
			return load(p, path, up, err);
		if (level < levels)
			memcpy(up + 3 * level, "../", 4);
	}
	return RFL_OK;
}

enum rfl_rc rfl_project_value(struct rfl_project *p, const char *option, const char **ret,
			      struct rfl_err *err)
{
	enum rfl_rc rc = p->looked ? RFL_OK : look(p, err);

	*ret = NULL;
	for (size_t i = 0; rc == RFL_OK && i < RFL_PROJECT_VALUES && p->values[i].option; i++)
		if (strcmp(p->values[i].option, option) == 0)
			*ret = p->values[i].text;
	if (*ret && strcmp(option, "env FILE") == 0 && access(*ret, F_OK) != 0)
		*ret = NULL;
	return rc;
}

void rfl_project_fini(struct rfl_project *p)
{
	rfl_arena_free(p->arena);
}
