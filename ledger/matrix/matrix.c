/*
 * matrix.c - reads matrix.json strictly, reporting the position of every error, and expands it into
 * cells. Option values are checked by the caller.
 */
#include "ledger/matrix.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

#define SCHEMA          "roofline.matrix/1"
#define DEFAULT_REPEATS 3
#define REPEATS_MAX     1000
#define BATCH_MAX       (1 << 20)
#define CELLS_MAX       100000
#define RUNS_MAX        1000000

struct names {
	size_t n;
	const char **items;
};

struct sizes {
	size_t n;
	int64_t *items;
};

struct model {
	const char *name;
	struct sizes batches; /* for this model only; n = 0: the batch sizes of the axes */
};

/* An option in the file; `off` removes an option set at an outer level. */
struct setting {
	struct rfl_matrix_option option;
	bool off;
};

struct settings {
	size_t n;
	struct setting *items;
};

/* The keys allowed at the top level, in an environment and in extra cells. Those that are missing
 * there are taken from the top level, except the settings. */
struct axes {
	size_t nmodels; /* 0: the key is missing, as in the lists */
	struct model *models;
	struct sizes batches;
	struct names precisions;
	struct settings settings;
};

/* An environment, or extra cells in an environment. */
struct block {
	const char *env, *backend;
	const char *pointer;
	struct axes axes;
	const struct settings *outer; /* options of the environment, for extra cells; else NULL */
};

/* Excludes the cells that match all non-empty lists. */
struct rule {
	const char *pointer;
	struct names envs, models, precisions;
	struct sizes batches;
	size_t matched;
};

/* Keeps the first error; values read after it are ignored. */
struct reader {
	struct rfl_matrix *m; /* the result */
	struct axes axes;
	size_t nenvs, nrules, nextras;
	struct block *envs, *extras;
	struct rule *rules;
	struct rfl_where w;
	struct rfl_err *err;
	enum rfl_rc rc;
};

static RFL_PRINTF(2, 3) void refuse(struct reader *r, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!r->rc)
		r->rc = rfl_where_fail(&r->w, r->err, "%s", text);
}

/* Go to a place in the file, for the next message. */
static void go_to(struct reader *r, const char *pointer)
{
	if (!r->rc)
		rfl_where_begin(&r->w, r->m->path, pointer);
}

/* Fail if an allocation returned NULL. */
static void *kept(struct reader *r, void *memory)
{
	if (!memory && !r->rc)
		r->rc = rfl_no_memory(r->err, r->m->path);
	return memory;
}

static void *array(struct reader *r, size_t n, size_t size)
{
	return kept(r, rfl_arena_array(r->m->arena, n, size));
}

static const char *keep(struct reader *r, const char *text)
{
	return kept(r, rfl_arena_strdup(r->m->arena, text));
}

static void must_be(struct reader *r, const json_t *value, const char *what)
{
	char shown[80];

	refuse(r, "%s is not %s", rfl_json_show(value, shown, sizeof(shown)), what);
}

/* Read one value into element i of a list. */
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
		refuse(r, "'%s' is not a valid %s; did you mean '%s'?", text, what, near);
		return NULL;
	}
	rfl_buf_init(&known, 1024);
	for (size_t i = 0; names[i]; i++)
		rfl_buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
	refuse(r, "%s%s%s is not a valid %s; use one of %s", text ? "'" : "this", text ? text : "",
	       text ? "'" : "", what, rfl_buf_str(&known));
	rfl_buf_fini(&known);
	return NULL;
}

static void read_precision(struct reader *r, const json_t *value, void *items, size_t i)
{
	((const char **)items)[i] = read_word(r, value, rfl_precision_names, "precision");
}

static void read_backend(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const names[] = { "auto", "cpu", "cuda", "mps", NULL };

	((const char **)items)[i] = read_word(r, value, names, "backend");
}

static void read_model_name(struct reader *r, const json_t *value, void *items, size_t i)
{
	const char *text = json_string_value(value);
	const struct rfl_zoo_model *model;
	struct rfl_err why = RFL_ERR_INIT;

	if (!text)
		must_be(r, value, "a model name");
	else if (rfl_zoo_find(text, &model, &why) != RFL_OK)
		refuse(r, "%s", why.msg);
	else
		((const char **)items)[i] = model->numbered ? keep(r, text) : model->name;
}

static void read_env_name(struct reader *r, const json_t *value, void *items, size_t i)
{
	const char *text = json_string_value(value);

	if (!text || !rfl_text_is_env_name(text))
		must_be(r, value, "an environment name; " RFL_ENV_NAME_RULE);
	else
		((const char **)items)[i] = keep(r, text);
}

static void only_keys(struct reader *r, const json_t *object, const char *const *keys)
{
	if (!r->rc)
		r->rc = rfl_json_only_keys(object, keys, r->w.file, r->w.pointer, r->err);
}

/* Return the value of a required key, or NULL after any error. */
static const json_t *need(struct reader *r, const json_t *object, const char *key,
			  const char *example)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		refuse(r, "the key \"%s\" is missing; write \"%s\": %s", key, key, example);
	return r->rc ? NULL : value;
}

/* Read the value of an optional key. */
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

/* Read a list from an optional key into the pointer `ret`. The list must not be empty; a single
 * value is read as a list of one. Without the key, nothing is changed. */
static void read_list(struct reader *r, const json_t *object, const char *key, size_t size,
		      read_item_fn *item, size_t *n, void *ret)
{
	const json_t *value = json_object_get(object, key);
	const bool many = json_is_array(value);
	void *items;
	size_t mark;

	if (r->rc || !value)
		return;
	mark = rfl_where_key(&r->w, key);
	*n = many ? json_array_size(value) : 1;
	if (*n == 0)
		refuse(r, "is an empty list; add an entry or remove the key");
	items = array(r, *n, size);
	for (size_t i = 0; i < *n && !r->rc; i++) {
		const size_t at = many ? rfl_where_index(&r->w, i) : 0;

		item(r, many ? json_array_get(value, i) : value, items, i);
		if (many && !r->rc)
			rfl_where_up(&r->w, at);
	}
	if (!r->rc)
		rfl_where_up(&r->w, mark);
	memcpy(ret, &items, sizeof(items));
}

static void read_sizes(struct reader *r, const json_t *object, const char *key, struct sizes *ret)
{
	read_list(r, object, key, sizeof(*ret->items), read_batch, &ret->n, &ret->items);
}

static void read_names(struct reader *r, const json_t *object, const char *key, read_item_fn *item,
		       struct names *ret)
{
	read_list(r, object, key, sizeof(*ret->items), item, &ret->n, &ret->items);
}

/* An entry is "resnet50" or {"name": "resnet50", "batch_sizes": [16, 32]}. */
static void read_model(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "name", "batch_sizes", NULL };
	struct model *model = (struct model *)items + i;

	if (!json_is_object(value)) {
		read_model_name(r, value, &model->name, 0);
		return;
	}
	only_keys(r, value, keys);
	read_one(r, need(r, value, "name", "\"resnet50\""), "name", read_model_name, &model->name);
	read_sizes(r, value, "batch_sizes", &model->batches);
}

static void read_setting(struct reader *r, const char *name, const json_t *value,
			 struct setting *ret)
{
	/* These options are set by the matrix or would break it. */
	static const struct {
		const char *name, *why;
	} reserved[] = {
		{ "arch", "list the models under \"models\"" },
		{ "batch-size", "list the batch sizes under \"batch_sizes\"" },
		{ "precision", "list the precisions under \"precisions\"" },
		{ "backend", "set it in the environment" },
		{ "env", "use the name of the environment" },
		{ "label", "labels are generated as {env}_{model}_{precision}_bs{batch}_run{N}" },
		{ "log-dir", "use it with the matrix commands" },
		{ "in-process", "every run of a matrix is a separate process" },
	};
	const bool many = json_is_array(value);
	const size_t n = many ? json_array_size(value) : !json_is_boolean(value);
	bool valid = n > 0 || json_is_boolean(value);
	const char **values;

	for (size_t i = 0; i < RFL_ARRAY_LEN(reserved); i++)
		if (strcmp(name, reserved[i].name) == 0)
			refuse(r, "is not allowed in a matrix; %s", reserved[i].why);
	values = array(r, n + 1, sizeof(*values));
	for (size_t i = 0; i < n && valid && !r->rc; i++) {
		char number[RFL_NUM_MAX];
		const char *text = rfl_json_scalar(many ? json_array_get(value, i) : value, number);

		valid = text != NULL;
		values[i] = valid ? keep(r, text) : NULL;
	}
	if (!valid)
		refuse(r, "must be true or false, a number, a string, or a list of numbers and "
			  "strings");
	if (r->rc)
		return;
	ret->option = (struct rfl_matrix_option){ .name = keep(r, name),
						  .pointer = keep(r, r->w.pointer),
						  .n = n,
						  .values = n ? values : NULL };
	ret->off = json_is_false(value);
}

static void read_settings(struct reader *r, const json_t *value, void *to, size_t unused)
{
	/* The iterator requires a non-const object, but only reads it. */
	json_t *object = (json_t *)(uintptr_t)value, *entry;
	struct settings *ret = to;
	const char *name;

	(void)unused;
	if (!json_is_object(value)) {
		refuse(r, "must be an object such as {\"iters\": 100}");
		return;
	}
	ret->items = array(r, json_object_size(value) + 1, sizeof(*ret->items));
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

static void read_axes(struct reader *r, const json_t *object, struct axes *ret)
{
	*ret = r->axes;
	ret->settings = (struct settings){ .n = 0 };
	read_list(r, object, "models", sizeof(*ret->models), read_model, &ret->nmodels,
		  &ret->models);
	read_sizes(r, object, "batch_sizes", &ret->batches);
	read_names(r, object, "precisions", read_precision, &ret->precisions);
	read_one(r, json_object_get(object, "options"), "options", read_settings, &ret->settings);
}

static void read_env(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "name",       "backend", "models", "batch_sizes",
					    "precisions", "options", NULL };
	struct block *env = (struct block *)items + i;
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
	struct rule *rule = (struct rule *)items + i;

	only_keys(r, value, keys);
	if (json_object_size(value) == 0)
		refuse(r, "would exclude every cell; name the cells to exclude");
	rule->pointer = keep(r, r->w.pointer);
	read_names(r, value, "env", read_env_name, &rule->envs);
	read_names(r, value, "model", read_model_name, &rule->models);
	read_names(r, value, "precision", read_precision, &rule->precisions);
	read_sizes(r, value, "batch_size", &rule->batches);
}

/* Find the environment of extra cells by name. */
static void find_env(struct reader *r, const json_t *name, void *ret, size_t unused)
{
	const char *text = json_string_value(name);

	(void)unused;
	if (!text) {
		must_be(r, name, "the name of an environment in this file");
		return;
	}
	for (size_t i = 0; i < r->nenvs; i++)
		if (strcmp(r->envs[i].env, text) == 0) {
			*(const struct block **)ret = &r->envs[i];
			return;
		}
	refuse(r,
	       "'%s' is not an environment in this file; add it to \"environments\" or correct the "
	       "name",
	       text);
}

static void read_extra(struct reader *r, const json_t *value, void *items, size_t i)
{
	static const char *const keys[] = { "env",        "models",  "batch_sizes",
					    "precisions", "options", NULL };
	struct block *extra = (struct block *)items + i;
	const struct block *env = NULL;

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

static void read_file(struct reader *r, const json_t *root)
{
	static const char *const keys[] = {
		"$schema", "schema",       "name",   "description", "repeats",
		"options", "environments", "models", "batch_sizes", "precisions",
		"exclude", "include",      NULL
	};
	const json_t *schema = json_object_get(root, "schema");
	const json_t *name = json_object_get(root, "name");
	const json_t *description = json_object_get(root, "description");
	const json_t *repeats = json_object_get(root, "repeats");
	const char *stem = json_string_value(name);

	go_to(r, "");
	only_keys(r, root, keys);
	if (need(r, root, "schema", "\"" SCHEMA "\"") &&
	    (!json_is_string(schema) || strcmp(json_string_value(schema), SCHEMA) != 0))
		refuse(r, "schema must be \"" SCHEMA "\"; for another version, use a program of "
			  "that version");
	if (need(r, root, "name", "\"laptop\"") &&
	    (!stem || rfl_label_check(stem, NULL) != RFL_OK || strlen(stem) > 64))
		refuse(r, "name must be 1 to 64 letters, digits, '_', '-' or '.', beginning with "
			  "a letter or digit");
	if (description && !json_is_string(description))
		refuse(r, "description must be a string");
	if (repeats && (!json_is_integer(repeats) || json_integer_value(repeats) < 1 ||
			json_integer_value(repeats) > REPEATS_MAX))
		refuse(r, "repeats must be an integer from 1 to %d", REPEATS_MAX);
	if (r->rc)
		return;
	r->m->repeats = repeats ? (int)json_integer_value(repeats) : DEFAULT_REPEATS;
	r->m->name = keep(r, stem);
	(void)need(r, root, "environments", "[{\"name\": \"lab_cpu\", \"backend\": \"cpu\"}]");
	read_axes(r, root, &r->axes);
	read_list(r, root, "environments", sizeof(*r->envs), read_env, &r->nenvs, &r->envs);
	read_list(r, root, "exclude", sizeof(*r->rules), read_rule, &r->nrules, &r->rules);
	read_list(r, root, "include", sizeof(*r->extras), read_extra, &r->nextras, &r->extras);
}

static const struct sizes *batches_of(const struct axes *a, const struct model *model)
{
	return model->batches.n ? &model->batches : &a->batches;
}

/* Check the axes of a block, and add the number of its cells. */
static void count_cells(struct reader *r, const struct block *b, size_t *n)
{
	const struct axes *a = &b->axes;
	const char *lacks = a->nmodels == 0 ? "models" : a->precisions.n == 0 ? "precisions" : NULL;

	for (size_t k = 0; k < a->nmodels; k++) {
		const size_t nbatches = batches_of(a, &a->models[k])->n;

		if (nbatches == 0 && !lacks)
			lacks = "batch_sizes";
		*n += nbatches * a->precisions.n;
	}
	go_to(r, b->pointer);
	if (lacks)
		refuse(r, "has no %s; add \"%s\" here or at the top level", lacks, lacks);
	if (*n > CELLS_MAX)
		refuse(r, "has more than 100,000 cells; split the matrix into several files");
}

/* Allocate all cells, including cells to be excluded by rules. */
static void allot(struct reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nenvs; i++)
		count_cells(r, &r->envs[i], &n);
	for (size_t i = 0; i < r->nextras; i++)
		count_cells(r, &r->extras[i], &n);
	go_to(r, "/repeats");
	if (n * (size_t)r->m->repeats > RUNS_MAX)
		refuse(r, "results in more than 1,000,000 runs; reduce the number of repeats");
	if (!r->rc)
		r->m->cells = array(r, n, sizeof(*r->m->cells));
}

static bool has_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	return names->n == 0; /* an empty list matches all */
}

/* Check every rule even after a match, to find rules that match nothing. */
static bool is_excluded(struct reader *r, const struct rfl_matrix_cell *cell)
{
	bool excluded = false;

	for (size_t i = 0; i < r->nrules; i++) {
		struct rule *rule = &r->rules[i];
		bool matches = rule->batches.n == 0;

		for (size_t k = 0; k < rule->batches.n; k++)
			matches = matches || rule->batches.items[k] == cell->batch;
		matches = matches && has_name(&rule->envs, cell->env) &&
			  has_name(&rule->models, cell->model) &&
			  has_name(&rule->precisions, cell->precision);
		rule->matched += matches;
		excluded = excluded || matches;
	}
	return excluded;
}

static int by_name(const void *a, const void *b)
{
	const struct rfl_matrix_option *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void add_cell(struct reader *r, const struct block *b, const struct rfl_matrix_cell *like)
{
	const struct settings *const places[] = { &r->axes.settings, b->outer, &b->axes.settings };
	struct rfl_arena *arena = r->m->arena;
	struct rfl_matrix_cell *cell = &r->m->cells[r->m->ncells++];
	size_t most = 1, have = 0, nargs = 5, n = 0;
	struct rfl_matrix_option *options;
	struct setting *list;
	const char **args;
	uint64_t h = 0;

	/* Collect options from the outermost level to the innermost; inner ones override outer
	 * ones. */
	*cell = *like;
	for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++)
		most += places[i] ? places[i]->n : 0;
	list = array(r, most, sizeof(*list));
	options = array(r, most, sizeof(*options));
	for (size_t i = 0; i < RFL_ARRAY_LEN(places) && !r->rc; i++)
		for (size_t k = 0; places[i] && k < places[i]->n; k++) {
			const struct setting *s = &places[i]->items[k];
			size_t at = 0;

			while (at < have && strcmp(list[at].option.name, s->option.name) != 0)
				at++;
			list[at] = *s;
			have += at == have;
		}
	for (size_t i = 0; i < have; i++)
		if (!list[i].off) {
			options[cell->noptions++] = list[i].option;
			nargs += list[i].option.n ? list[i].option.n : 1;
		}
	cell->options = options;
	args = array(r, nargs + 1, sizeof(*args));
	if (r->rc)
		return;
	qsort(options, cell->noptions, sizeof(*options), by_name);

	/* Arguments have the form "--name=value" because a value may begin with a dash. */
	args[n++] = rfl_arena_printf(arena, "--arch=%s", cell->model);
	args[n++] = rfl_arena_printf(arena, "--batch-size=%" PRId64, cell->batch);
	args[n++] = rfl_arena_printf(arena, "--precision=%s", cell->precision);
	args[n++] = rfl_arena_printf(arena, "--backend=%s", cell->backend);
	args[n++] = rfl_arena_printf(arena, "--env=%s", cell->env);
	for (const struct rfl_matrix_option *o = options; o < options + cell->noptions; o++) {
		if (o->n == 0)
			args[n++] = rfl_arena_printf(arena, "--%s", o->name);
		for (size_t k = 0; k < o->n; k++)
			args[n++] = rfl_arena_printf(arena, "--%s=%s", o->name, o->values[k]);
	}

	/* The hash does not depend on the order of options in the file: they are sorted by name. */
	for (size_t i = 0; i < n; i++)
		if (args[i])
			h = rfl_hash64(h, args[i], strlen(args[i]) + 1);
		else
			(void)kept(r, NULL);
	rfl_hash64_text(h, cell->id);
	cell->args = args;
}

/* Add the cells of a block, ordered by precision, then model, then batch. */
static void add_block(struct reader *r, const struct block *b, bool may_exclude)
{
	const struct axes *a = &b->axes;
	struct rfl_matrix_cell cell = { .env = b->env,
					.backend = b->backend,
					.pointer = b->pointer };

	for (size_t p = 0; p < a->precisions.n; p++)
		for (size_t i = 0; i < a->nmodels; i++) {
			const struct sizes *batches = batches_of(a, &a->models[i]);

			cell.precision = a->precisions.items[p];
			cell.model = a->models[i].name;
			for (size_t k = 0; k < batches->n && !r->rc; k++) {
				cell.batch = batches->items[k];
				if (!may_exclude || !is_excluded(r, &cell))
					add_cell(r, b, &cell);
			}
		}
}

static void check_unique(struct reader *r)
{
	struct rfl_texts ids = { .arena = NULL };

	for (size_t i = 0; i < r->m->ncells && !r->rc; i++) {
		const struct rfl_matrix_cell *c = &r->m->cells[i];
		const char *before;
		size_t first;
		bool same;

		if (!rfl_texts_put(&ids, c->id, &first))
			(void)kept(r, NULL);
		if (r->rc || first == i)
			continue;
		before = r->m->cells[first].pointer;
		same = strcmp(before, c->pointer) == 0;
		go_to(r, c->pointer);
		refuse(r, "contains %s %s %s batch %" PRId64 " %s%s", c->env, c->model,
		       c->precision, c->batch, same ? "twice" : "with the same options as ",
		       same ? "" : before);
	}
	rfl_texts_fini(&ids);
}

static void add_cells(struct reader *r)
{
	allot(r);
	for (size_t i = 0; i < r->nenvs && !r->rc; i++)
		add_block(r, &r->envs[i], true);
	for (size_t i = 0; i < r->nrules && !r->rc; i++) {
		go_to(r, r->rules[i].pointer);
		if (r->rules[i].matched == 0)
			refuse(r, "excludes nothing; remove the rule or correct it");
	}
	for (size_t i = 0; i < r->nextras && !r->rc; i++)
		add_block(r, &r->extras[i], false);
	go_to(r, "/exclude");
	if (r->m->ncells == 0)
		refuse(r, "excludes every cell; remove a rule");
	check_unique(r);
}

static enum rfl_rc build(json_t *take_root, const char *path, struct rfl_matrix **ret,
			 struct rfl_err *err)
{
	struct rfl_matrix *m = calloc(1, sizeof(*m));
	struct reader r = { .m = m, .err = err };

	if (m && (m->arena = rfl_arena_new()) && (m->path = rfl_arena_strdup(m->arena, path))) {
		read_file(&r, take_root);
		if (!r.rc)
			add_cells(&r);
	} else {
		r.rc = rfl_no_memory(err, path);
	}
	if (r.rc)
		rfl_matrix_free(m);
	else
		*ret = m;
	json_decref(take_root);
	return r.rc;
}

enum rfl_rc rfl_matrix_parse(const char *text, size_t len, const char *name,
			     struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(text, len, name, &root, err);

	return rc ? rc : build(root, name, ret, err);
}

enum rfl_rc rfl_matrix_load(const char *path, struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	return rc ? rc : build(root, path, ret, err);
}

void rfl_matrix_free(struct rfl_matrix *m)
{
	if (!m)
		return;
	rfl_arena_free(m->arena);
	free(m);
}

void rfl_matrix_label(const struct rfl_matrix_cell *cell, int repeat, char ret[RFL_LABEL_MAX + 1])
{
	(void)snprintf(ret, RFL_LABEL_MAX + 1, "%s_%s_%s_bs%" PRId64 "_run%d", cell->env,
		       cell->model, cell->precision, cell->batch, repeat);
}
