/* project.c - find and read roofline.json. */
#include "cli/project.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"

#define NAME       "roofline.json"
#define MAX_LEVELS 64

/* Keep `dir`/`text`/`leaf`; an absolute `text` replaces `dir`. */
static char *join(const char *dir, const char *text, const char *leaf)
{
	struct rfl_buf path;
	char *ret;

	rfl_buf_init(&path, 0);
	rfl_buf_printf(&path, "%s%s%s", *text == '/' ? "" : dir, text, leaf);
	ret = path.failed ? NULL : strdup(rfl_buf_str(&path));
	rfl_buf_fini(&path);
	return ret;
}

/* @param dir  folder of the file: "" or "../../" */
static enum rfl_rc load(struct rfl_project *p, const char *path, const char *dir,
			struct rfl_err *err)
{
	static const char *const keys[] = { "schema", "env", "log_dir", "peaks", NULL };
	const char *texts[3], *schema;
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
	for (size_t i = 0; rc == RFL_OK && i < 3; i++) {
		const json_t *value = json_object_get(root, keys[i + 1]);

		texts[i] = json_string_value(value);
		(void)rfl_where_key(&where, keys[i + 1]);
		if (value && (!texts[i] || !*texts[i]))
			rc = rfl_where_fail(&where, err, "not a text; write \"%s\": \"...\"",
					    keys[i + 1]);
		rfl_where_begin(&where, path, "");
	}
	if (rc == RFL_OK) {
		p->env = texts[0] ? strdup(texts[0]) : NULL;
		p->log_dir = texts[1] ? join(dir, texts[1], "") : NULL;
		p->metrics = texts[1] ? join(dir, texts[1], "/metrics.csv") : NULL;
		p->env_file = texts[1] ? join(dir, texts[1], "/env.json") : NULL;
		p->peaks = texts[2] ? join(dir, texts[2], "") : NULL;
		if ((texts[0] && !p->env) ||
		    (texts[1] && (!p->log_dir || !p->metrics || !p->env_file)) ||
		    (texts[2] && !p->peaks))
			rc = rfl_no_memory(err, path);
		else
			rfl_log(RFL_LOG_DEBUG, "project: %s", path);
	}
	json_decref(root);
	return rc;
}

enum rfl_rc rfl_project_value(struct rfl_project *p, const char *option, const char **ret,
			      struct rfl_err *err)
{
	char path[3 * (MAX_LEVELS + 1) + sizeof(NAME)], here[4096] = "";
	int levels = 0;
	enum rfl_rc rc = RFL_OK;

	*ret = NULL;
	if (!p->looked && getcwd(here, sizeof(here)))
		for (const char *c = here; (c = strchr(c, '/')) && levels < MAX_LEVELS; c++)
			levels++;
	for (int level = 0; !p->looked && level <= levels; level++) {
		const size_t len = 3 * (size_t)level;

		for (int i = 0; i < level; i++)
			memcpy(path + 3 * i, "../", 3);
		memcpy(path + len, NAME, sizeof(NAME));
		if (access(path, F_OK) == 0) {
			char dir[3 * (MAX_LEVELS + 1)];

			memcpy(dir, path, len);
			dir[len] = '\0';
			p->looked = true;
			rc = load(p, path, dir, err);
		}
	}
	p->looked = true;
	if (rc)
		return rc;
	if (p->env_file && strcmp(option, "env FILE") == 0 && access(p->env_file, F_OK) == 0)
		*ret = p->env_file;
	else
		*ret = strcmp(option, "env") == 0       ? p->env
		       : strcmp(option, "log-dir") == 0 ? p->log_dir
		       : strcmp(option, "peaks") == 0   ? p->peaks
		       : strcmp(option, "metrics") == 0 ? p->metrics
							: NULL;
	return RFL_OK;
}

void rfl_project_fini(struct rfl_project *p)
{
	free(p->env);
	free(p->log_dir);
	free(p->peaks);
	free(p->metrics);
	free(p->env_file);
}
