/* project.c - find and read roofline.json. */
#include "cli/project.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bind.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/inputs.h"

#define NAME       "roofline.json"
#define MAX_LEVELS 64

struct keys {
	const char *env, *log_dir, *peaks, *output_dir;
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
	TEXT(output_dir),
	{ .key = NULL },
};

#define LOGS "logs"

/* The values: a key of the file, and what is in the directory that it names. */
static const struct row {
	const char *name;
	size_t key;
	const char *leaf, *usual;
} rows[] = {
#define ROW(name_, key_, leaf_, usual_)                           \
	{                                                         \
		name_, offsetof(struct keys, key_), leaf_, usual_ \
	}
#define IN_LOGS(name, leaf)   ROW(name, log_dir, leaf, LOGS "/" leaf)
#define IN_OUTPUT(name, leaf) ROW(name, output_dir, leaf, leaf)
	ROW("env", env, "", NULL),
	ROW("log_dir", log_dir, "", LOGS),
	IN_LOGS("metrics", "metrics.csv"),
	IN_LOGS("counters", "counters.csv"),
	ROW("records", log_dir, "", LOGS),
	IN_LOGS("summary", "model_summaries/summary.json"),
	ROW("peaks", peaks, "", "peaks.json"),
	ROW("output_dir", output_dir, "", "."),
	IN_OUTPUT("points", "roofline_points.csv"),
	IN_OUTPUT("figures", "figures"),
	IN_OUTPUT("report", "report.html"),
};

static size_t index_of(const char *value)
{
	size_t i = 0;

	_Static_assert(RFL_ARRAY_LEN(rows) == RFL_PROJECT_VALUES, "one value per row");
	while (i < RFL_ARRAY_LEN(rows) && strcmp(rows[i].name, value) != 0)
		i++;
	assert(i < RFL_ARRAY_LEN(rows));
	return i;
}

const char *rfl_project_usual(const char *value)
{
	return rows[index_of(value)].usual;
}

/* "../" and "logs": "../logs", with a leaf: "../logs/metrics.csv". */
static const char *join(const char *dir, const char *path, const char *leaf,
			struct rfl_arena *arena)
{
	const bool here = strcmp(path, ".") == 0 && (*dir || *leaf);
	const char *at = rfl_arena_printf(arena, "%s%s", *path == '/' ? "" : dir, here ? "" : path);
	const bool ends = !*at || !*leaf || at[strlen(at) - 1] == '/';

	return rfl_arena_printf(arena, "%s%s%s", at, ends ? "" : "/", leaf);
}

const char *rfl_project_below(const char *key, const char *dir, const char *value,
			      struct rfl_arena *arena)
{
	const struct row *r = &rows[index_of(value)];

	return r->key == rows[index_of(key)].key ? join("", dir, r->leaf, arena) : NULL;
}

bool rfl_project_has(const char *value, const char *path, struct rfl_arena *arena)
{
	const char **records;
	size_t n;

	if (strcmp(value, "records") == 0)
		return rfl_cli_records(path, arena, &records, &n, NULL) == RFL_OK && n;
	return access(path, F_OK) == 0;
}

/* @param dir  directory of the file: "" or "../../" */
static enum rfl_rc load(struct rfl_project *p, const char *text, size_t len, const char *dir,
			struct rfl_err *err)
{
	struct rfl_bind b = { .arena = p->arena, .err = err };
	struct keys keys = { .env = NULL };
	json_auto_t *root = NULL;

	b.rc = rfl_json_loads_commented(text, len, p->path, &root, err);
	if (json_object_get(root, "empirical")) { /* ERT's results have the same file name */
		p->path = NULL;
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
		p->values[i].given = value != NULL;
		if (value)
			p->values[i].text =
				join(rows[i].usual ? dir : "", value, rows[i].leaf, p->arena);
		else if (rows[i].usual)
			p->values[i].text = join(dir, rows[i].usual, "", p->arena);
	}
	return b.rc;
}

/* Look for the file in the current directory and those above it. Others may be able to write to
 * such a directory, /tmp for example: their file is not used. */
static enum rfl_rc look(struct rfl_project *p, struct rfl_err *err)
{
	char up[3 * MAX_LEVELS + 1] = "", here[4096] = "";
	RFL_AUTO(buf) text = { .len = 0 };
	struct rfl_err why = RFL_ERR_INIT;
	size_t levels = 0;

	p->looked = true;
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		p->values[i].text = rows[i].usual;
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
		return load(p, rfl_buf_str(&text), text.len, up, err);
	if (why.native != EINVAL && why.native != EPERM && why.native != ELOOP)
		return rfl_err_pass(err, &why);
	rfl_log(RFL_LOG_WARN, "%s; it is not used", why.msg);
	p->path = NULL;
	return RFL_OK;
}

enum rfl_rc rfl_project_path(struct rfl_project *p, const char *value, const char **ret,
			     struct rfl_err *err)
{
	enum rfl_rc rc = p->looked ? RFL_OK : look(p, err);

	*ret = rc ? NULL : p->values[index_of(value)].text;
	if (*ret && p->path &&
	    !p->announced) { /* a file in another directory is easily forgotten */
		rfl_log(strchr(p->path, '/') ? RFL_LOG_INFO : RFL_LOG_DEBUG,
			"using defaults from %s", p->path);
		p->announced = true;
	}
	return rc;
}

enum rfl_rc rfl_project_given(struct rfl_project *p, const char *value, const char **ret,
			      struct rfl_err *err)
{
	enum rfl_rc rc = rfl_project_path(p, value, ret, err);

	if (rc || !p->values[index_of(value)].given)
		*ret = NULL;
	return rc;
}
