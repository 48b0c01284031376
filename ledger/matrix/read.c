/*
 * read.c - matrix.json as it is written: strict, every refusal with its place. Which cells
 * come of it is matrix.c's; which options a run has is known above.
 */
#include "ledger/matrix/parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

#define SCHEMA      "roofline.matrix/1"
#define REPEATS_MAX 1000
#define BATCH_MAX   (1 << 20)

enum { DEFAULT_REPEATS = 3 };

struct reader {
	struct rfl_matrix__file *f;
	struct rfl_where w;
	struct rfl_err *err;
};

static enum rfl_rc no_memory(struct reader *r)
{
	return rfl_matrix__no_memory(r->f->path, r->err);
}

static enum rfl_rc keep(struct reader *r, const char *text, const char **ret)
{
	*ret = rfl_arena_strdup(r->f->arena, text);
	return *ret ? RFL_OK : no_memory(r);
}

/* ---- one value, or a list of values ---- */

/* Reads one value into the i-th place of a list. */
typedef enum rfl_rc read_item_fn(struct reader *r, const json_t *value, void *items, size_t i);

/* A list with at least one entry; one value stands for a list of one. */
static enum rfl_rc read_list(struct reader *r, const json_t *value, size_t size, read_item_fn *item,
			     void **items, size_t *n)
{
	const bool many = json_is_array(value);
	enum rfl_rc rc = RFL_OK;

	*n = many ? json_array_size(value) : 1;
	if (*n == 0)
		return rfl_where_fail(&r->w, r->err,
				      "is an empty list; leave the key out or name one");
	*items = rfl_arena_array(r->f->arena, *n, size);
	if (!*items)
		return no_memory(r);
	for (size_t i = 0; i < *n && rc == RFL_OK; i++) {
		const size_t mark = many ? rfl_where_index(&r->w, i) : 0;

		rc = item(r, many ? json_array_get(value, i) : value, *items, i);
		if (many && rc == RFL_OK)
			rfl_where_up(&r->w, mark);
	}
	return rc;
}

static enum rfl_rc must_be(struct reader *r, const json_t *value, const char *what)
{
	char shown[80];

	return rfl_where_fail(&r->w, r->err, "%s is not %s",
			      rfl_json_show(value, shown, sizeof(shown)), what);
}

static enum rfl_rc read_batch(struct reader *r, const json_t *value, void *items, size_t i)
{
	int64_t batch = json_is_integer(value) ? json_integer_value(value) : 0;

	if (batch < 1 || batch > BATCH_MAX)
		return must_be(r, value, "a batch size from 1 to 1048576");
	((int64_t *)items)[i] = batch;
	return RFL_OK;
}

static enum rfl_rc read_name(struct reader *r, const json_t *value, const char *const *names,
			     const char *what, const char **ret)
{
	const char *text = json_string_value(value), *near;
	struct rfl_buf known;
	enum rfl_rc rc;

	for (size_t i = 0; text && names[i]; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = names[i];
			return RFL_OK;
		}
	}
	near = text ? rfl_text_nearest(text, names) : NULL;
	if (near)
		return rfl_where_fail(&r->w, r->err, "'%s' is no %s; did you mean '%s'?", text,
				      what, near);
	rfl_buf_init(&known, 1024);
	for (size_t i = 0; names[i]; i++)
		rfl_buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	rc = rfl_where_fail(&r->w, r->err, "%s%s%s is no %s; there are %s", text ? "'" : "this",
			    text ? text : "", text ? "'" : "", what, rfl_buf_str(&known));
	rfl_buf_fini(&known);
	return rc;
}

static enum rfl_rc read_precision(struct reader *r, const json_t *value, void *items, size_t i)
{
	return read_name(r, value, rfl_precision_names, "precision", (const char **)items + i);
}

static enum rfl_rc read_backend(struct reader *r, const json_t *value, const char **ret)
{
	static const char *const names[] = { "auto", "cpu", "cuda", "mps", NULL };

	return read_name(r, value, names, "backend", ret);
}

static enum rfl_rc read_zoo_name(struct reader *r, const json_t *value, const char **ret)
{
	const char *text = json_string_value(value);
	const struct rfl_zoo_model *model;
	struct rfl_err why = RFL_ERR_INIT;

	if (!text)
		return must_be(r, value, "the name of a model");
	if (rfl_zoo_find(text, &model, &why) != RFL_OK)
		return rfl_where_fail(&r->w, r->err, "%s", why.msg);
	*ret = model->name;
	return RFL_OK;
}

static enum rfl_rc read_model_name(struct reader *r, const json_t *value, void *items, size_t i)
{
	return read_zoo_name(r, value, (const char **)items + i);
}

static enum rfl_rc read_env_name(struct reader *r, const json_t *value, void *items, size_t i)
{
	const char *text = json_string_value(value);

	if (!text || !rfl_text_is_env_name(text))
		return must_be(r, value,
			       "a name of an environment: a letter a-z, then a-z, 0-9 and _, at "
			       "most 48 characters");
	return keep(r, text, (const char **)items + i);
}

/* ---- members of objects ---- */

static enum rfl_rc only_keys(struct reader *r, const json_t *object, const char *const *keys)
{
	return rfl_json_only_keys(object, keys, r->w.file, r->w.pointer, r->err);
}

static enum rfl_rc missing(struct reader *r, const char *key, const char *example)
{
	return rfl_where_fail(&r->w, r->err, "the key \"%s\" is missing; write \"%s\": %s", key,
			      key, example);
}

/* The list under a key, when it is there. */
static enum rfl_rc read_member(struct reader *r, const json_t *object, const char *key, size_t size,
			       read_item_fn *item, void **items, size_t *n)
{
	const json_t *value = json_object_get(object, key);
	size_t mark;
	enum rfl_rc rc;

	if (!value)
		return RFL_OK;
	mark = rfl_where_key(&r->w, key);
	rc = read_list(r, value, size, item, items, n);
	if (rc == RFL_OK)
		rfl_where_up(&r->w, mark);
	return rc;
}

static enum rfl_rc read_sizes(struct reader *r, const json_t *object, struct rfl_matrix__sizes *ret)
{
	void *items = NULL;
	enum rfl_rc rc = read_member(r, object, "batch_sizes", sizeof(*ret->items), read_batch,
				     &items, &ret->n);

	ret->items = items;
	return rc;
}

static enum rfl_rc read_names(struct reader *r, const json_t *object, const char *key,
			      read_item_fn *item, struct rfl_matrix__names *ret)
{
	void *items = NULL;
	enum rfl_rc rc = read_member(r, object, key, sizeof(*ret->items), item, &items, &ret->n);

	ret->items = items;
	return rc;
}

/* "resnet50", or {"name": "resnet50", "batch_sizes": [16, 32]}. */
static enum rfl_rc read_model(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "name", "batch_sizes", NULL };
	struct rfl_matrix__model *model = (struct rfl_matrix__model *)items + i;
	const json_t *name = json_object_get(value, "name");
	enum rfl_rc rc;
	size_t mark;

	if (!json_is_object(value))
		return read_zoo_name(r, value, &model->name);
	rc = only_keys(r, value, keys);
	if (rc == RFL_OK && !name)
		rc = missing(r, "name", "\"resnet50\"");
	if (rc)
		return rc;
	mark = rfl_where_key(&r->w, "name");
	rc = read_zoo_name(r, name, &model->name);
	if (rc)
		return rc;
	rfl_where_up(&r->w, mark);
	return read_sizes(r, value, &model->batches);
}

static enum rfl_rc read_axes(struct reader *r, const json_t *object, struct rfl_matrix__axes *ret)
{
	const json_t *options = json_object_get(object, "options");
	void *models = NULL;
	enum rfl_rc rc = read_member(r, object, "models", sizeof(*ret->models), read_model, &models,
				     &ret->nmodels);
	size_t mark;

	ret->models = models;
	if (rc == RFL_OK)
		rc = read_sizes(r, object, &ret->batches);
	if (rc == RFL_OK)
		rc = read_names(r, object, "precisions", read_precision, &ret->precisions);
	if (rc || !options)
		return rc;
	mark = rfl_where_key(&r->w, "options");
	rc = rfl_matrix__read_settings(options, r->f->arena, &r->w, &ret->settings, r->err);
	if (rc == RFL_OK)
		rfl_where_up(&r->w, mark);
	return rc;
}

/* ---- the three lists of objects ---- */

static enum rfl_rc read_env(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "name",       "backend", "models", "batch_sizes",
					    "precisions", "options", NULL };
	struct rfl_matrix__block *env = (struct rfl_matrix__block *)items + i;
	const json_t *name = json_object_get(value, "name");
	const json_t *backend = json_object_get(value, "backend");
	enum rfl_rc rc = only_keys(r, value, keys);
	size_t mark;

	if (rc == RFL_OK && !name)
		rc = missing(r, "name", "\"lab_cpu\"");
	if (rc == RFL_OK && !backend)
		rc = missing(r, "backend", "\"cpu\"");
	if (rc == RFL_OK)
		rc = keep(r, r->w.pointer, &env->pointer);
	if (rc)
		return rc;
	mark = rfl_where_key(&r->w, "name");
	rc = read_env_name(r, name, &env->env, 0);
	if (rc)
		return rc;
	rfl_where_up(&r->w, mark);
	(void)rfl_where_key(&r->w, "backend");
	rc = read_backend(r, backend, &env->backend);
	if (rc)
		return rc;
	rfl_where_up(&r->w, mark);
	return read_axes(r, value, &env->axes);
}

static enum rfl_rc read_rule(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "env", "model", "precision", "batch_size", NULL };
	struct rfl_matrix__rule *rule = (struct rfl_matrix__rule *)items + i;
	void *batches = NULL;
	enum rfl_rc rc = only_keys(r, value, keys);

	if (rc == RFL_OK && json_object_size(value) == 0)
		rc = rfl_where_fail(&r->w, r->err,
				    "would leave out everything; name what it is for");
	if (rc == RFL_OK)
		rc = keep(r, r->w.pointer, &rule->pointer);
	if (rc == RFL_OK)
		rc = read_names(r, value, "env", read_env_name, &rule->envs);
	if (rc == RFL_OK)
		rc = read_names(r, value, "model", read_model_name, &rule->models);
	if (rc == RFL_OK)
		rc = read_names(r, value, "precision", read_precision, &rule->precisions);
	if (rc == RFL_OK)
		rc = read_member(r, value, "batch_size", sizeof(*rule->batches.items), read_batch,
				 &batches, &rule->batches.n);
	rule->batches.items = batches;
	return rc;
}

/* The environment of extra cells, by its name. */
static enum rfl_rc find_env(struct reader *r, const json_t *name,
			    const struct rfl_matrix__block **ret)
{
	const char *text = json_string_value(name);

	if (!text)
		return must_be(r, name, "the name of an environment of this file");
	for (size_t i = 0; i < r->f->nenvs; i++) {
		*ret = &r->f->envs[i];
		if (strcmp((*ret)->env, text) == 0)
			return RFL_OK;
	}
	return rfl_where_fail(&r->w, r->err, "'%s' is not among the environments of this file",
			      text);
}

static enum rfl_rc read_extra(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "env",        "models",  "batch_sizes",
					    "precisions", "options", NULL };
	struct rfl_matrix__block *extra = (struct rfl_matrix__block *)items + i;
	const struct rfl_matrix__block *env = NULL;
	const json_t *name = json_object_get(value, "env");
	enum rfl_rc rc = only_keys(r, value, keys);
	size_t mark;

	if (rc == RFL_OK && !name)
		rc = missing(r, "env", "\"lab_cpu\"");
	if (rc == RFL_OK)
		rc = keep(r, r->w.pointer, &extra->pointer);
	if (rc)
		return rc;
	mark = rfl_where_key(&r->w, "env");
	rc = find_env(r, name, &env);
	if (rc)
		return rc;
	rfl_where_up(&r->w, mark);
	extra->env = env->env;
	extra->backend = env->backend;
	extra->outer = &env->axes.settings;
	return read_axes(r, value, &extra->axes);
}

static enum rfl_rc read_blocks(struct reader *r, const json_t *root)
{
	struct rfl_matrix__file *f = r->f;
	void *items = NULL;
	enum rfl_rc rc =
		read_member(r, root, "environments", sizeof(*f->envs), read_env, &items, &f->nenvs);

	f->envs = items;
	items = NULL;
	if (rc == RFL_OK)
		rc = read_member(r, root, "exclude", sizeof(*f->rules), read_rule, &items,
				 &f->nrules);
	f->rules = items;
	items = NULL;
	if (rc == RFL_OK)
		rc = read_member(r, root, "include", sizeof(*f->extras), read_extra, &items,
				 &f->nextras);
	f->extras = items;
	return rc;
}

/* ---- the document ---- */

static bool is_file_stem(const char *name)
{
	return rfl_label_check(name, NULL) == RFL_OK && strlen(name) <= 64;
}

static enum rfl_rc read_head(struct reader *r, const json_t *root)
{
	const json_t *schema = json_object_get(root, "schema");
	const json_t *name = json_object_get(root, "name");
	const json_t *description = json_object_get(root, "description");
	const json_t *repeats = json_object_get(root, "repeats");

	if (!schema)
		return missing(r, "schema", "\"" SCHEMA "\"");
	if (!json_is_string(schema) || strcmp(json_string_value(schema), SCHEMA) != 0)
		return rfl_where_fail(&r->w, r->err,
				      "schema must be \"" SCHEMA "\"; a file of another version "
				      "needs a program that knows it");
	if (!name)
		return missing(r, "name", "\"laptop\"");
	if (!json_is_string(name) || !is_file_stem(json_string_value(name)))
		return rfl_where_fail(&r->w, r->err,
				      "name must be 1 to 64 letters, digits, '_', '-' or '.', "
				      "beginning with a letter or digit");
	if (description && !json_is_string(description))
		return rfl_where_fail(&r->w, r->err, "description must be a text in quotes");
	if (repeats && (!json_is_integer(repeats) || json_integer_value(repeats) < 1 ||
			json_integer_value(repeats) > REPEATS_MAX))
		return rfl_where_fail(&r->w, r->err, "repeats must be a number from 1 to %d",
				      REPEATS_MAX);
	r->f->repeats = repeats ? (int)json_integer_value(repeats) : DEFAULT_REPEATS;
	if (description && keep(r, json_string_value(description), &r->f->description) != RFL_OK)
		return RFL_ENOMEM;
	return keep(r, json_string_value(name), &r->f->name);
}

enum rfl_rc rfl_matrix__read(json_t *root, struct rfl_matrix__file *f, struct rfl_err *err)
{
	static const char *const keys[] = {
		"$schema", "schema",       "name",   "description", "repeats",
		"options", "environments", "models", "batch_sizes", "precisions",
		"exclude", "include",      NULL
	};
	struct reader r = { .f = f, .err = err };
	enum rfl_rc rc;

	rfl_where_init(&r.w, f->path);
	rc = only_keys(&r, root, keys);
	if (rc == RFL_OK)
		rc = read_head(&r, root);
	if (rc == RFL_OK && !json_object_get(root, "environments"))
		rc = missing(&r, "environments", "[{\"name\": \"lab_cpu\", \"backend\": \"cpu\"}]");
	if (rc == RFL_OK)
		rc = read_axes(&r, root, &f->axes);
	if (rc == RFL_OK)
		rc = read_blocks(&r, root);
	return rc;
}
