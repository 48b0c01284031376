/* project.c - find and read roofline.json. */
#include "cli/project.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bind.h"
#include "base/file.h"
#include "base/log.h"

#define NAME       "roofline.json"
#define MAX_LEVELS 64

struct keys {
	const char *env, *log_dir, *peaks;
};

#define TEXT(key_)                                                                                \
	{                                                                                         \
#key_, RFL_MEMBER(TEXT, struct keys, key_), .filled = true,                       \
							    .fix = "write \"" #key_ "\": \"...\"" \
	}

static const struct rfl_member of_project[] = {
	{ "schema", RFL_CHECKED(TEXT) },
	{ "$schema", RFL_CHECKED(TEXT) },
	TEXT(env),
	TEXT(log_dir),
	TEXT(peaks),
	{ .key = NULL },
};

/* The options that a key sets; a path is relative to the folder of the file. */
static const struct {
	const char *option, *leaf;
	size_t key;
	bool path;
} rows[] = {
	{ "env", "", offsetof(struct keys, env), false },
	{ "log-dir", "", offsetof(struct keys, log_dir), true },
	{ "metrics", "/metrics.csv", offsetof(struct keys, log_dir), true },
	{ "env FILE", "/env.json", offsetof(struct keys, log_dir), true },
	{ "peaks", "", offsetof(struct keys, peaks), true },
};

/* @param dir  folder of the file: "" or "../../" */
static enum rfl_rc load(struct rfl_project *p, const char *text, size_t len, const char *dir,
			struct rfl_err *err)
{
	struct rfl_bind b = { .arena = p->arena, .err = err };
	struct keys keys = { NULL };
	json_t *root = NULL;

	_Static_assert(RFL_ARRAY_LEN(rows) == RFL_PROJECT_VALUES, "a value per option");
	b.rc = rfl_json_loads_commented(text, len, p->path, &root, err);
	if (json_object_get(root, "empirical")) { /* ERT's results have the same file name */
		json_decref(root);
		return RFL_OK;
	}
	rfl_where_begin(&b.at, p->path, "");
	if (!b.rc)
		rfl_bind_schema(&b, root, "roofline.project/1", "a project file");
	if (!b.rc)
		rfl_bind_read(&b, root, of_project, &keys);
	for (size_t i = 0; !b.rc && i < RFL_ARRAY_LEN(rows); i++) {
		const char *value;

		memcpy(&value, (const char *)&keys + rows[i].key, sizeof(value));
		p->values[i].option = rows[i].option;
		if (value)
			p->values[i].text = rfl_arena_printf(
				p->arena, "%s%s%s", rows[i].path && *value != '/' ? dir : "", value,
				rows[i].leaf);
	}
	json_decref(root);
	return b.rc;
}

/* Look for the file in the current folder and those above it. Others may be able to write to such a
 * folder, /tmp for example: their file is not used. */
static enum rfl_rc look(struct rfl_project *p, struct rfl_err *err)
{
	char up[3 * MAX_LEVELS + 1] = "", here[4096] = "";
	struct rfl_buf text = { .len = 0 };
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;
	size_t levels = 0;

	p->looked = true;
	p->arena = rfl_arena_new();
	if (getcwd(here, sizeof(here)))
		for (const char *c = here; (c = strchr(c, '/')) && levels < MAX_LEVELS; c++)
			levels++;
	for (size_t level = 0; level <= levels; level++) {
		p->path = rfl_arena_printf(p->arena, "%s" NAME, up);
		if (access(p->path, F_OK) == 0)
			break;
		p->path = NULL;
		if (level < levels)
			memcpy(up + 3 * level, "../", 4);
	}
	if (!p->path)
		return RFL_OK;
	if (rfl_file_read_found(p->path, &text, &why) == RFL_OK)
		rc = load(p, rfl_buf_str(&text), text.len, up, err);
	else if (why.native == EINVAL || why.native == EPERM || why.native == ELOOP)
		rfl_log(RFL_LOG_WARN, "%s; it is not used", why.msg);
	else
		rc = rfl_err_pass(err, &why);
	rfl_buf_fini(&text);
	return rc;
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
	if (*ret && !p->announced) /* a file in another folder is easily forgotten */
		rfl_log(strchr(p->path, '/') ? RFL_LOG_INFO : RFL_LOG_DEBUG, "using defaults from %s",
			p->path);
	p->announced |= *ret != NULL;
	return rc;
}

void rfl_project_fini(struct rfl_project *p)
{
	rfl_arena_free(p->arena);
}
