/*
 * read.c - matrix.json as it is written: strict, every refusal with its place. Which cells
 * come of it is matrix.c's; which options a run has is known above.
 */
#include "ledger/matrix/parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

#define SCHEMA      "roofline.matrix/1"
#define REPEATS_MAX 1000
#define BATCH_MAX   (1 << 20)

enum { DEFAULT_REPEATS = 3 };

/* The first failure stays; what is read after it does not matter. */
struct reader {
	struct rfl_matrix__file *f;
	struct rfl_where w;
	struct rfl_err *err;
	enum rfl_rc rc;
};

static void fail(struct reader *r, enum rfl_rc rc)
{
	r->rc = r->rc ? r->rc : rc;
}

static const char *keep(struct reader *r, const char *text)
{
	const char *copy = rfl_arena_strdup(r->f->arena, text);

	if (!copy)
		fail(r, rfl_matrix__no_memory(r->f->path, r->err));
	return copy;
}

static void must_be(struct reader *r, const json_t *value, const char *what)
{
	char shown[80];

	fail(r, rfl_where_fail(&r->w, r->err, "%s is not %s",
			       rfl_json_show(value, shown, sizeof(shown)), what));
}

/* ---- single values ---- */

/* Reads one value into the i-th place of a list. */
typedef void read_item_fn(struct reader *r, const json_t *value, void *items, size_t i);

static void read_batch(struct reader *r, const json_t *value, void *items, size_t i)
{
	int64_t batch = json_is_integer(value) ? json_integer_value(value) : 0;

	if (batch < 1 || batch > BATCH_MAX)
		must_be(r, value, "a batch size from 1 to 1048576");
	((int64_t *)items)[i] = batch;
}

static const char *read_word(struct reader *r, const json_t *value, const char *const *names,
			     const char *what)
{
	const char *text = json_string_value(value), *near;
	struct rfl_buf known;

	for (size_t i = 0; text && names[i]; i++)
		if (strcmp(text, names[i]) == 0)
			return names[i];
	near = text ? rfl_text_nearest(text, names) : NULL;
	if (near) {
		fail(r, rfl_where_fail(&r->w, r->err, "'%s' is no %s; did you mean '%s'?", text,
				       what, near));
		return NULL;
	}
	rfl_buf_init(&known, 1024);
	for (size_t i = 0; names[i]; i++)
		rfl_buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	fail(r, rfl_where_fail(&r->w, r->err, "%s%s%s is no %s; there are %s", text ? "'" : "this",
			       text ? text : "", text ? "'" : "", what, rfl_buf_str(&known)));
	rfl_buf_fini(&known);
	return NULL;
}

static void read_precision(struct reader *r, const json_t *value, void *items, size_t i)
{
	((const char **)items)[i] = read_word(r, value, rfl_precision_names, "precision");
}

static void read_model_name(struct reader *r, const json_t *value, void *items, size_t i)
{
	const char *text = json_string_value(value);
	const struct rfl_zoo_model *model;
	struct rfl_err why = RFL_ERR_INIT;

	if (!text)
		must_be(r, value, "the name of a model");
	else if (rfl_zoo_find(text, &model, &why) != RFL_OK)
		fail(r, rfl_where_fail(&r->w, r->err, "%s", why.msg));
	else
		((const char **)items)[i] = model->name;
}

static void read_env_name(struct reader *r, const json_t *value, void *items, size_t i)
{
	const char *text = json_string_value(value);

	if (!text || !rfl_text_is_env_name(text))
		must_be(r, value, "a name for an environment; " RFL_ENV_NAME_RULE);
	else
		((const char **)items)[i] = keep(r, text);
}

/* ---- members of objects ---- */

static void only_keys(struct reader *r, const json_t *object, const char *const *keys)
{
	if (!r->rc)
		r->rc = rfl_json_only_keys(object, keys, r->w.file, r->w.pointer, r->err);
}

/* The value of a key that must be there; NULL after any failure. */
static const json_t *need(struct reader *r, const json_t *object, const char *key,
			  const char *example)
{
	const json_t *value = json_object_get(object, key);

	if (!r->rc && !value)
		r->rc = rfl_where_fail(&r->w, r->err, "the key \"%s\" is missing; write \"%s\": %s",
				       key, key, example);
	return r->rc ? NULL : value;
}

/* A value under a key that may be absent. */
static void read_one(struct reader *r, const json_t *value, const char *key, read_item_fn *item,
		     void *ret)
{
	size_t mark;

	if (r->rc || !value)
		return;
	mark = rfl_where_key(&r->w, key);
	item(r, value, ret, 0);
	if (!r->rc)
		rfl_where_up(&r->w, mark);
}

/* The list under a key, when it is there, with at least one entry; one value is a list of one. */
static void *read_list(struct reader *r, const json_t *object, const char *key, size_t size,
		       read_item_fn *item, size_t *n)
{
	const json_t *value = json_object_get(object, key);
	const bool many = json_is_array(value);
	size_t mark;
	void *items;

	if (r->rc || !value)
		return NULL;
	mark = rfl_where_key(&r->w, key);
	*n = many ? json_array_size(value) : 1;
	items = *n ? rfl_arena_array(r->f->arena, *n, size) : NULL;
	if (*n == 0)
		fail(r, rfl_where_fail(&r->w, r->err,
				       "is an empty list; leave the key out or name one"));
	else if (!items)
		fail(r, rfl_matrix__no_memory(r->f->path, r->err));
	for (size_t i = 0; i < *n && !r->rc; i++) {
		const size_t at = many ? rfl_where_index(&r->w, i) : 0;

		item(r, many ? json_array_get(value, i) : value, items, i);
		if (many && !r->rc)
			rfl_where_up(&r->w, at);
	}
	if (!r->rc)
		rfl_where_up(&r->w, mark);
	return items;
}

static void read_sizes(struct reader *r, const json_t *object, const char *key,
		       struct rfl_matrix__sizes *ret)
{
	ret->items = read_list(r, object, key, sizeof(*ret->items), read_batch, &ret->n);
}

static void read_names(struct reader *r, const json_t *object, const char *key, read_item_fn *item,
		       struct rfl_matrix__names *ret)
{
	ret->items = read_list(r, object, key, sizeof(*ret->items), item, &ret->n);
}

/* "resnet50", or {"name": "resnet50", "batch_sizes": [16, 32]}. */
static void read_model(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "name", "batch_sizes", NULL };
	struct rfl_matrix__model *model = (struct rfl_matrix__model *)items + i;

	if (!json_is_object(value)) {
		read_model_name(r, value, &model->name, 0);
		return;
	}
	only_keys(r, value, keys);
	read_one(r, need(r, value, "name", "\"resnet50\""), "name", read_model_name, &model->name);
	read_sizes(r, value, "batch_sizes", &model->batches);
}

/* What the matrix itself gives to a run, or what would break it. */
static const char *refusal(const char *name)
{
	static const struct {
		const char *name, *why;
	} reserved[] = {
		{ "arch", "the networks stand under \"models\"" },
		{ "batch-size", "the batch sizes stand under \"batch_sizes\"" },
		{ "precision", "the precisions stand under \"precisions\"" },
		{ "backend", "it is part of the environment" },
		{ "env", "it is the name of the environment" },
		{ "label", "labels are made: {env}_{model}_{precision}_bs{batch}_run{N}" },
		{ "log-dir", "it is an option of the matrix commands" },
		{ "in-process", "every run of a matrix is a process of its own" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(reserved); i++)
		if (strcmp(name, reserved[i].name) == 0)
			return reserved[i].why;
	return NULL;
}

/* A number or a text as an argument; NULL for something else, or out of memory. */
static const char *value_text(struct reader *r, const json_t *value)
{
	struct rfl_arena *arena = r->f->arena;
	char number[RFL_NUM_MAX];

	if (json_is_integer(value))
		return rfl_arena_printf(arena, "%" PRId64, (int64_t)json_integer_value(value));
	if (json_is_real(value))
		return rfl_arena_strdup(arena, rfl_num_exact(json_real_value(value), number));
	return json_is_string(value) ? keep(r, json_string_value(value)) : NULL;
}

static bool is_scalar(const json_t *value)
{
	return json_is_number(value) || json_is_string(value);
}

static void read_setting(struct reader *r, const char *name, const json_t *value,
			 struct rfl_matrix__setting *ret)
{
	const bool many = json_is_array(value);
	const char *why = refusal(name), **values;
	bool scalar = many ? json_array_size(value) > 0 : is_scalar(value);

	for (size_t i = 0; many && i < json_array_size(value); i++)
		scalar = scalar && is_scalar(json_array_get(value, i));
	if (why)
		fail(r, rfl_where_fail(&r->w, r->err, "is not an option of a matrix: %s", why));
	else if (!json_is_boolean(value) && !scalar)
		fail(r, rfl_where_fail(&r->w, r->err,
				       "must be true or false, a number, a text, or a list of "
				       "them"));
	if (r->rc)
		return;
	ret->option.name = keep(r, name);
	ret->option.pointer = keep(r, r->w.pointer);
	ret->off = json_is_false(value);
	if (json_is_boolean(value))
		return;
	ret->option.n = many ? json_array_size(value) : 1;
	ret->option.values = values = rfl_arena_array(r->f->arena, ret->option.n, sizeof(*values));
	for (size_t i = 0; values && i < ret->option.n; i++) {
		values[i] = value_text(r, many ? json_array_get(value, i) : value);
		if (!values[i])
			values = NULL;
	}
	if (!values)
		fail(r, rfl_matrix__no_memory(r->f->path, r->err));
}

static void read_settings(struct reader *r, const json_t *value, void *to, size_t unused)
{
	struct rfl_matrix__settings *ret = to;
	json_t *object =
		(json_t *)(uintptr_t)value; /* iterators take it without const, and only read */
	const char *name;
	json_t *entry;

	(void)unused;
	if (!json_is_object(value)) {
		fail(r,
		     rfl_where_fail(&r->w, r->err, "must be an object such as {\"iters\": 100}"));
		return;
	}
	ret->items = rfl_arena_array(r->f->arena, json_object_size(value) + 1, sizeof(*ret->items));
	if (!ret->items)
		fail(r, rfl_matrix__no_memory(r->f->path, r->err));
	json_object_foreach(object, name, entry)
	{
		const size_t mark = rfl_where_key(&r->w, name);

		if (!r->rc)
			read_setting(r, name, entry, &ret->items[ret->n++]);
		if (r->rc)
			return;
		rfl_where_up(&r->w, mark);
	}
}

static void read_axes(struct reader *r, const json_t *object, struct rfl_matrix__axes *ret)
{
	ret->models =
		read_list(r, object, "models", sizeof(*ret->models), read_model, &ret->nmodels);
	read_sizes(r, object, "batch_sizes", &ret->batches);
	read_names(r, object, "precisions", read_precision, &ret->precisions);
	read_one(r, json_object_get(object, "options"), "options", read_settings, &ret->settings);
}

/* ---- the three lists of objects ---- */

static void read_backend(struct reader *r, const json_t *value, void *ret, size_t i)
{
	static const char *const names[] = { "auto", "cpu", "cuda", "mps", NULL };

	((const char **)ret)[i] = read_word(r, value, names, "backend");
}

static void read_env(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "name",       "backend", "models", "batch_sizes",
					    "precisions", "options", NULL };
	struct rfl_matrix__block *env = (struct rfl_matrix__block *)items + i;
	const json_t *name, *backend;

	only_keys(r, value, keys);
	name = need(r, value, "name", "\"lab_cpu\"");
	backend = need(r, value, "backend", "\"cpu\"");
	env->pointer = keep(r, r->w.pointer);
	read_one(r, name, "name", read_env_name, &env->env);
	read_one(r, backend, "backend", read_backend, &env->backend);
	read_axes(r, value, &env->axes);
}

static void read_rule(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "env", "model", "precision", "batch_size", NULL };
	struct rfl_matrix__rule *rule = (struct rfl_matrix__rule *)items + i;

	only_keys(r, value, keys);
	if (!r->rc && json_object_size(value) == 0)
		r->rc = rfl_where_fail(&r->w, r->err,
				       "would leave out everything; name what it is for");
	rule->pointer = keep(r, r->w.pointer);
	read_names(r, value, "env", read_env_name, &rule->envs);
	read_names(r, value, "model", read_model_name, &rule->models);
	read_names(r, value, "precision", read_precision, &rule->precisions);
	read_sizes(r, value, "batch_size", &rule->batches);
}

/* The environment of extra cells, by its name. */
static void find_env(struct reader *r, const json_t *name, void *ret, size_t unused)
{
	const char *text = json_string_value(name);

	(void)unused;
	if (!text) {
		must_be(r, name, "the name of an environment of this file");
		return;
	}
	for (size_t i = 0; i < r->f->nenvs; i++)
		if (strcmp(r->f->envs[i].env, text) == 0) {
			*(const struct rfl_matrix__block **)ret = &r->f->envs[i];
			return;
		}
	fail(r, rfl_where_fail(&r->w, r->err, "'%s' is not among the environments of this file",
			       text));
}

static void read_extra(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "env",        "models",  "batch_sizes",
					    "precisions", "options", NULL };
	struct rfl_matrix__block *extra = (struct rfl_matrix__block *)items + i;
	const struct rfl_matrix__block *env = NULL;

	only_keys(r, value, keys);
	extra->pointer = keep(r, r->w.pointer);
	read_one(r, need(r, value, "env", "\"lab_cpu\""), "env", find_env, &env);
	if (r->rc)
		return;
	extra->env = env->env;
	extra->backend = env->backend;
	extra->outer = &env->axes.settings;
	read_axes(r, value, &extra->axes);
}

/* ---- the document ---- */

static bool is_file_stem(const char *name)
{
	return rfl_label_check(name, NULL) == RFL_OK && strlen(name) <= 64;
}

static void read_head(struct reader *r, const json_t *root)
{
	const json_t *schema = need(r, root, "schema", "\"" SCHEMA "\"");
	const json_t *name = json_object_get(root, "name");
	const json_t *description = json_object_get(root, "description");
	const json_t *repeats = json_object_get(root, "repeats");

	if (r->rc)
		return;
	if (!json_is_string(schema) || strcmp(json_string_value(schema), SCHEMA) != 0)
		fail(r, rfl_where_fail(&r->w, r->err,
				       "schema must be \"" SCHEMA "\"; a file of another version "
				       "needs a program that knows it"));
	else if (!need(r, root, "name", "\"laptop\""))
		return;
	else if (!json_is_string(name) || !is_file_stem(json_string_value(name)))
		fail(r, rfl_where_fail(&r->w, r->err,
				       "name must be 1 to 64 letters, digits, '_', '-' or '.', "
				       "beginning with a letter or digit"));
	else if (description && !json_is_string(description))
		fail(r, rfl_where_fail(&r->w, r->err, "description must be a text in quotes"));
	else if (repeats && (!json_is_integer(repeats) || json_integer_value(repeats) < 1 ||
			     json_integer_value(repeats) > REPEATS_MAX))
		fail(r, rfl_where_fail(&r->w, r->err, "repeats must be a number from 1 to %d",
				       REPEATS_MAX));
	if (r->rc)
		return;
	r->f->repeats = repeats ? (int)json_integer_value(repeats) : DEFAULT_REPEATS;
	r->f->name = keep(r, json_string_value(name));
	if (description)
		r->f->description = keep(r, json_string_value(description));
}

enum rfl_rc rfl_matrix__read(json_t *root, struct rfl_matrix__file *f, struct rfl_err *err)
{
	static const char *const keys[] = {
		"$schema", "schema",       "name",   "description", "repeats",
		"options", "environments", "models", "batch_sizes", "precisions",
		"exclude", "include",      NULL
	};
	struct reader r = { .f = f, .err = err };

	rfl_where_init(&r.w, f->path);
	only_keys(&r, root, keys);
	read_head(&r, root);
	(void)need(&r, root, "environments", "[{\"name\": \"lab_cpu\", \"backend\": \"cpu\"}]");
	read_axes(&r, root, &f->axes);
	f->envs = read_list(&r, root, "environments", sizeof(*f->envs), read_env, &f->nenvs);
	f->rules = read_list(&r, root, "exclude", sizeof(*f->rules), read_rule, &f->nrules);
	f->extras = read_list(&r, root, "include", sizeof(*f->extras), read_extra, &f->nextras);
	return r.rc;
}
