/*
 * matrix.c - reads a matrix strictly, reporting the position of every error, and expands it into
 * cells. Option values are checked by the caller.
 */
#include "ledger/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bind.h"
#include "base/file.h"
#include "base/text.h"
#include "complexity/lm.h"
#include "complexity/net/file.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

#define SCHEMA          "roofline.matrix/1"
#define STUDY           "roofline.study/1"
#define DEFAULT_REPEATS 3
#define REPEATS_MAX     1000
#define NAME_MAX_LEN    64
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

struct network {
	const char *name, *file, *digest; /* file, digest: NULL for a model of the zoo */
};

struct model {
	struct network of;
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

struct reader {
	struct rfl_bind b;
	struct rfl_matrix *m; /* the result */
	const char *top;      /* pointer of the matrix in the file */
	const char *name;
	int repeats;
	struct axes axes;
	size_t nenvs, nrules, nextras;
	struct block *envs, *extras;
	struct rule *rules;
};

/* Go to a place in the file, for the next message. */
static void go_to(struct reader *r, const char *pointer)
{
	if (!r->b.rc)
		rfl_where_begin(&r->b.at, r->m->path, pointer);
}

static void go_to_key(struct reader *r, const char *key)
{
	go_to(r, r->top);
	(void)rfl_where_key(&r->b.at, key);
}

static const char *pointer_of(const struct rfl_bind *b)
{
	return rfl_arena_strdup(b->arena, b->at.pointer);
}

static enum rfl_rc read_file(struct rfl_arena *arena, const char *path, struct network *ret,
			     struct rfl_err *err)
{
	struct rfl_net *net = NULL;
	struct rfl_lm lm;
	char digest[17];
	enum rfl_rc rc;

	if (!rfl_lm_is_config(path))
		rc = rfl_net_load(path, &net, err);
	else if ((rc = rfl_lm_named(path, arena, &lm, NULL, err)) == RFL_OK)
		rc = rfl_lm_net(&lm, 1, &net, err);
	if (rc == RFL_OK)
		rc = rfl_net_digest(net, digest, err);
	if (rc == RFL_OK)
		*ret = (struct network){ .name = rfl_arena_strdup(arena, net->model),
					 .file = rfl_arena_strdup(arena, path),
					 .digest = rfl_arena_strdup(arena, digest) };
	rfl_net_free(net);
	return rc;
}

/* "resnet50", or the path of a network file. */
static void read_network(struct rfl_bind *b, const json_t *value, void *member)
{
	const char *text = json_string_value(value);
	const struct rfl_zoo_model *model = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	struct network *network = member;
	struct rfl_lm lm;

	if (!text)
		rfl_bind_must(b, value, "the name of a model");
	else if (!rfl_net_is_file(text) && rfl_zoo_find(text, &model, NULL) != RFL_OK &&
		 rfl_lm_named(text, b->arena, &lm, NULL, NULL) == RFL_OK)
		network->name = lm.name; /* for modes decode and prefill */
	else if (rfl_net_is_file(text) ? read_file(b->arena, text, network, &why)
				       : rfl_zoo_find(text, &model, &why))
		rfl_bind_refuse(b, "%s", why.msg);
	else if (!network->file)
		network->name = model->numbered ? rfl_arena_strdup(b->arena, text) : model->name;
}

static void read_model_name(struct rfl_bind *b, const json_t *value, void *member)
{
	struct network network = { .name = NULL };

	read_network(b, value, &network);
	*(const char **)member = network.name;
}

#define BATCHES(key_, structure, member)                                                      \
	{                                                                                     \
		key_, RFL_MEMBERS(INT, structure, member.items, member.n),                    \
			.min = 1, .max = BATCH_MAX, .what = "a batch size from 1 to 1048576", \
			BATCH_LIST                                                            \
	}
#define BATCH_LIST .or_one = true, .filled = true
#define ENV_NAME                                                                             \
	.filled = true, .valid = rfl_text_is_env_name, .what = "the name of an environment", \
	.fix = RFL_ENV_NAME_RULE

/* An entry is "resnet50" or {"name": "resnet50", "batch_sizes": [16, 32]}. */
static const struct rfl_member of_model[] = {
	{ "name", RFL_MEMBER(OTHER, struct model, of), .must = true, .read = read_network,
	  .example = "\"resnet50\"" },
	BATCHES("batch_sizes", struct model, batches),
	{ .key = NULL },
};

static void read_model(struct rfl_bind *b, const json_t *value, void *member)
{
	if (json_is_object(value))
		rfl_bind_read(b, value, of_model, member);
	else
		read_network(b, value, &((struct model *)member)->of);
}

static void read_setting(struct rfl_bind *b, const char *name, const json_t *value, void *to)
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
	const char **values = rfl_arena_array(b->arena, n + 1, sizeof(*values));
	bool valid = n > 0 || json_is_boolean(value);
	struct settings *settings = to;

	for (size_t i = 0; i < RFL_ARRAY_LEN(reserved); i++)
		if (strcmp(name, reserved[i].name) == 0)
			rfl_bind_refuse(b, "is not allowed in a matrix; %s", reserved[i].why);
	for (size_t i = 0; i < n && valid; i++) {
		char number[RFL_NUM_MAX];
		const char *text = rfl_json_scalar(many ? json_array_get(value, i) : value, number);

		valid = text != NULL;
		values[i] = rfl_arena_strdup(b->arena, text);
	}
	if (!valid)
		rfl_bind_refuse(b,
				"must be true or false, a number, a string, or a list of numbers "
				"and strings");
	settings->items[settings->n++] =
		(struct setting){ .option = { .name = rfl_arena_strdup(b->arena, name),
					      .pointer = pointer_of(b),
					      .n = n,
					      .values = n ? values : NULL },
				  .off = json_is_false(value) };
}

static void read_settings(struct rfl_bind *b, const json_t *value, void *member)
{
	struct settings *settings = member;

	if (!json_is_object(value))
		rfl_bind_refuse(b, "must be an object such as {\"iters\": 100}");
	settings->items =
		rfl_arena_array(b->arena, json_object_size(value) + 1, sizeof(*settings->items));
	rfl_bind_each(b, value, read_setting, settings);
}

#define AXES(structure)                                                                       \
	{ "models", RFL_MEMBERS(OTHER, structure, axes.models, axes.nmodels), .or_one = true, \
	  .filled = true, .read = read_model },                                               \
		BATCHES("batch_sizes", structure, axes.batches),                              \
		{ "precisions",                                                               \
		  RFL_MEMBERS(CHOICE, structure, axes.precisions.items, axes.precisions.n),   \
		  .or_one = true, .filled = true, .choices = rfl_precision_names },           \
	{                                                                                     \
		"options", RFL_MEMBER(OTHER, structure, axes.settings), .read = read_settings \
	}

static void read_env(struct rfl_bind *b, const json_t *value, void *member)
{
	static const char *const backends[] = { "auto", "cpu", "cuda", "mps", NULL };
	static const struct rfl_member of_env[] = {
		{ "name", RFL_MEMBER(TEXT, struct block, env), .must = true, ENV_NAME,
		  .example = "\"lab_cpu\"" },
		{ "backend", RFL_MEMBER(CHOICE, struct block, backend), .must = true,
		  .choices = backends, .example = "\"cpu\"" },
		AXES(struct block),
		{ .key = NULL },
	};
	struct block *env = member;

	env->pointer = pointer_of(b);
	env->axes = ((const struct reader *)b->ctx)->axes;
	env->axes.settings.n = 0;
	rfl_bind_read(b, value, of_env, env);
}

static void read_rule(struct rfl_bind *b, const json_t *value, void *member)
{
	static const struct rfl_member of_rule[] = {
		{ "env", RFL_MEMBERS(TEXT, struct rule, envs.items, envs.n), .or_one = true,
		  ENV_NAME },
		{ "model", RFL_MEMBERS(OTHER, struct rule, models.items, models.n), .or_one = true,
		  .filled = true, .read = read_model_name },
		{ "precision", RFL_MEMBERS(CHOICE, struct rule, precisions.items, precisions.n),
		  .or_one = true, .filled = true, .choices = rfl_precision_names },
		BATCHES("batch_size", struct rule, batches),
		{ .key = NULL },
	};
	struct rule *rule = member;

	rule->pointer = pointer_of(b);
	rfl_bind_read(b, value, of_rule, rule);
	if (json_object_size(value) == 0)
		rfl_bind_refuse(b, "would exclude every configuration; name those to exclude");
}

/* Find the environment of extra cells by name. */
static void find_env(struct rfl_bind *b, const json_t *value, void *member)
{
	const struct reader *r = b->ctx;
	const char *text = json_string_value(value);
	struct block *extra = member;

	if (!text)
		rfl_bind_must(b, value, "the name of an environment in this file");
	for (size_t i = 0; text && i < r->nenvs; i++)
		if (strcmp(r->envs[i].env, text) == 0) {
			extra->env = r->envs[i].env;
			extra->backend = r->envs[i].backend;
			extra->outer = &r->envs[i].axes.settings;
			return;
		}
	rfl_bind_refuse(b,
			"'%s' is not an environment in this file; add it to \"environments\" or "
			"correct the name",
			text ? text : "");
}

static void read_extra(struct rfl_bind *b, const json_t *value, void *member)
{
	static const struct rfl_member of_extra[] = {
		{ "env", .kind = RFL_BIND_OTHER, .must = true, .read = find_env,
		  .example = "\"lab_cpu\"" },
		AXES(struct block),
		{ .key = NULL },
	};
	struct block *extra = member;

	extra->pointer = pointer_of(b);
	extra->axes = ((const struct reader *)b->ctx)->axes;
	extra->axes.settings.n = 0;
	rfl_bind_read(b, value, of_extra, extra);
}

static bool is_name(const char *text)
{
	return strlen(text) <= NAME_MAX_LEN && rfl_label_check(text, NULL) == RFL_OK;
}

static const struct rfl_member of_matrix[] = {
	{ "$schema", RFL_CHECKED(TEXT) },
	{ "schema", RFL_CHECKED(TEXT) },
	{ "name", RFL_MEMBER(TEXT, struct reader, name), .valid = is_name,
	  .what = "1 to 64 letters, digits, '_', '-' or '.', beginning with a letter or digit" },
	{ "description", RFL_CHECKED(TEXT) },
	{ "repeats", RFL_MEMBER(INT, struct reader, repeats), .min = 1, .max = REPEATS_MAX },
	AXES(struct reader), /* before the blocks, which inherit them */
	{ "environments", RFL_MEMBERS(OTHER, struct reader, envs, nenvs), .must = true,
	  .or_one = true, .filled = true, .read = read_env,
	  .example = "[{\"name\": \"lab_cpu\", \"backend\": \"cpu\"}]" },
	{ "exclude", RFL_MEMBERS(OTHER, struct reader, rules, nrules), .or_one = true,
	  .filled = true, .read = read_rule },
	{ "include", RFL_MEMBERS(OTHER, struct reader, extras, nextras), .or_one = true,
	  .filled = true, .read = read_extra },
	{ .key = NULL },
};

/* The name of a matrix without one: its file's name. */
static const char *name_of_file(const struct rfl_matrix *m)
{
	const char *base = rfl_path_base(m->path), *dot = strrchr(base, '.');
	const char *name = rfl_arena_printf(m->arena, "%.*s",
					    (int)(dot ? (size_t)(dot - base) : strlen(base)), base);

	return is_name(name) ? name : "matrix";
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

	for (size_t k = 0; k < a->nmodels && *n <= CELLS_MAX; k++) {
		const size_t nbatches = batches_of(a, &a->models[k])->n;

		if (nbatches == 0 && !lacks)
			lacks = "batch_sizes";
		*n += nbatches * a->precisions.n;
	}
	go_to(r, b->pointer);
	if (lacks)
		rfl_bind_refuse(&r->b, "has no %s; add \"%s\" here or at the top level", lacks,
				lacks);
	if (*n > CELLS_MAX)
		rfl_bind_refuse(&r->b, "has more than 100,000 configurations; split the matrix "
				       "into several files");
}

/* Allocate all cells, including cells to be excluded by rules. */
static void allot(struct reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->nenvs; i++)
		count_cells(r, &r->envs[i], &n);
	for (size_t i = 0; i < r->nextras; i++)
		count_cells(r, &r->extras[i], &n);
	go_to_key(r, "repeats");
	if (n * (size_t)r->repeats > RUNS_MAX)
		rfl_bind_refuse(&r->b, "results in more than 1,000,000 runs; reduce the number of "
				       "repeats");
	if (!r->b.rc)
		r->m->cells = rfl_arena_array(r->m->arena, n, sizeof(*r->m->cells));
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

/* The options of a block, sorted by name, and their arguments; all cells of the block share them.
 */
struct options {
	size_t n, nargs;
	struct rfl_matrix_option *items;
	const char **args;
};

/* Collect options from the outermost level to the innermost; inner ones override outer ones. */
static void collect(struct reader *r, const struct block *b, struct options *ret)
{
	const struct settings *const places[] = { &r->axes.settings, b->outer, &b->axes.settings };
	struct rfl_arena *arena = r->m->arena;
	size_t most = 0, have = 0, nargs = 0;
	struct setting *list;

	for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++)
		most += places[i] ? places[i]->n : 0;
	list = rfl_arena_array(arena, most, sizeof(*list));
	ret->items = rfl_arena_array(arena, most, sizeof(*ret->items));
	for (size_t i = 0; i < RFL_ARRAY_LEN(places); i++)
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
			ret->items[ret->n++] = list[i].option;
			nargs += list[i].option.n ? list[i].option.n : 1;
		}
	qsort(ret->items, ret->n, sizeof(*ret->items), by_name);
	ret->args = rfl_arena_array(arena, nargs, sizeof(*ret->args));
	for (const struct rfl_matrix_option *o = ret->items; o < ret->items + ret->n; o++) {
		if (o->n == 0)
			ret->args[ret->nargs++] = rfl_arena_printf(arena, "--%s", o->name);
		for (size_t k = 0; k < o->n; k++)
			ret->args[ret->nargs++] =
				rfl_arena_printf(arena, "--%s=%s", o->name, o->values[k]);
	}
}

static void add_cell(struct reader *r, const struct options *o, const struct rfl_matrix_cell *like)
{
	struct rfl_arena *arena = r->m->arena;
	struct rfl_matrix_cell *cell = &r->m->cells[r->m->ncells++];
	const char **args = rfl_arena_array(arena, 5 + o->nargs + 1, sizeof(*args));
	size_t n = 0;
	uint64_t h = 0;

	*cell = *like;
	cell->noptions = o->n;
	cell->options = o->items;
	/* Arguments have the form "--name=value" because a value may begin with a dash. */
	args[n++] = rfl_arena_printf(arena, "--arch=%s", cell->file ? cell->file : cell->model);
	args[n++] = rfl_arena_printf(arena, "--batch-size=%" PRId64, cell->batch);
	args[n++] = rfl_arena_printf(arena, "--precision=%s", cell->precision);
	args[n++] = rfl_arena_printf(arena, "--backend=%s", cell->backend);
	args[n++] = rfl_arena_printf(arena, "--env=%s", cell->env);
	for (size_t i = 0; i < o->nargs; i++)
		args[n++] = o->args[i];
	/* The hash does not depend on the order of options in the file: they are sorted by name. A
	 * network file counts by its contents, not by its path. */
	for (size_t i = 0; i < n; i++) {
		const char *arg = i == 0 && cell->net_digest ? cell->net_digest : args[i];

		h = rfl_hash64(h, arg, strlen(arg) + 1);
	}
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
	struct options options = { .n = 0 };

	collect(r, b, &options);
	for (size_t p = 0; p < a->precisions.n; p++)
		for (size_t i = 0; i < a->nmodels; i++) {
			const struct sizes *batches = batches_of(a, &a->models[i]);

			cell.precision = a->precisions.items[p];
			cell.model = a->models[i].of.name;
			cell.file = a->models[i].of.file;
			cell.net_digest = a->models[i].of.digest;
			for (size_t k = 0; k < batches->n; k++) {
				cell.batch = batches->items[k];
				if (!may_exclude || !is_excluded(r, &cell))
					add_cell(r, &options, &cell);
			}
		}
}

static void check_unique(struct reader *r)
{
	RFL_AUTO(texts) ids = { .arena = NULL };

	for (size_t i = 0; i < r->m->ncells; i++) {
		const struct rfl_matrix_cell *c = &r->m->cells[i];
		const char *before;
		const size_t first = rfl_texts_put(&ids, c->id);
		bool same;

		if (first == i)
			continue;
		before = r->m->cells[first].pointer;
		same = strcmp(before, c->pointer) == 0;
		go_to(r, c->pointer);
		rfl_bind_refuse(&r->b, "contains %s %s %s batch %" PRId64 " %s%s", c->env, c->model,
				c->precision, c->batch,
				same ? "twice" : "with the same options as ", same ? "" : before);
		break;
	}
}

static void add_cells(struct reader *r)
{
	allot(r);
	for (size_t i = 0; i < r->nenvs && !r->b.rc; i++)
		add_block(r, &r->envs[i], true);
	for (size_t i = 0; i < r->nrules && !r->b.rc; i++) {
		go_to(r, r->rules[i].pointer);
		if (r->rules[i].matched == 0)
			rfl_bind_refuse(&r->b, "excludes nothing; remove the rule or correct it");
	}
	for (size_t i = 0; i < r->nextras && !r->b.rc; i++)
		add_block(r, &r->extras[i], false);
	go_to_key(r, "exclude");
	if (r->m->ncells == 0)
		rfl_bind_refuse(&r->b, "excludes every configuration; remove a rule");
	if (!r->b.rc)
		check_unique(r);
}

/* @param top  pointer of the matrix in the file, whose value is `matrix` */
static enum rfl_rc build(const json_t *matrix, const char *top, const char *path,
			 struct rfl_matrix **ret, struct rfl_err *err)
{
	struct rfl_matrix *m = rfl_alloc_array(1, sizeof(*m));
	struct reader r = { .m = m, .top = top, .repeats = DEFAULT_REPEATS };

	m->arena = rfl_arena_new();
	m->path = rfl_arena_strdup(m->arena, path);
	r.b = (struct rfl_bind){ .arena = m->arena, .ctx = &r, .err = err };
	go_to(&r, top);
	if (!*top || json_object_get(matrix, "schema"))
		rfl_bind_schema(&r.b, matrix, SCHEMA, "a matrix");
	if (!r.b.rc)
		rfl_bind_read(&r.b, matrix, of_matrix, &r);
	m->repeats = r.repeats;
	m->name = r.name ? r.name : name_of_file(m);
	if (!r.b.rc)
		add_cells(&r);
	if (r.b.rc)
		rfl_matrix_free(m);
	else
		*ret = m;
	return r.b.rc;
}

static enum rfl_rc build_named(const char *path, struct rfl_matrix **ret, struct rfl_err *err)
{
	json_auto_t *root = NULL;
	enum rfl_rc rc = rfl_json_load_commented(path, &root, err);

	return rc ? rc : build(root, "", path, ret, err);
}

/* A file is a matrix, or a study that contains a matrix or names the file of one. */
static enum rfl_rc build_file(json_t *take_root, const char *path, struct rfl_matrix **ret,
			      struct rfl_err *err)
{
	const char *schema = json_string_value(json_object_get(take_root, "schema"));
	const bool study = schema && strcmp(schema, STUDY) == 0;
	const json_t *matrix = json_object_get(take_root, "matrix");
	const char *named = json_string_value(matrix);
	struct rfl_where w;
	enum rfl_rc rc;

	rfl_where_begin(&w, path, study ? "/matrix" : "");
	if (!study) {
		rc = build(take_root, "", path, ret, err);
	} else if (named && *named) {
		char *beside = rfl_path_beside(path, named);

		/* beside the study, or a path from the current directory */
		rc = build_named(rfl_file_exists(beside) ? beside : named, ret, err);
		free(beside);
	} else if (json_is_object(matrix)) {
		rc = build(matrix, "/matrix", path, ret, err);
	} else {
		rc = rfl_where_fail(&w, err,
				    "write the path of a matrix, or the matrix itself: "
				    "{\"environments\": [{\"name\": \"lab_cpu\", \"backend\": "
				    "\"cpu\"}], \"models\": [...], ...}");
	}
	json_decref(take_root);
	return rc;
}

enum rfl_rc rfl_matrix_parse(const char *text, size_t len, const char *name,
			     struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads_commented(text, len, name, &root, err);

	return rc ? rc : build_file(root, name, ret, err);
}

enum rfl_rc rfl_matrix_load(const char *path, struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load_commented(path, &root, err);

	return rc ? rc : build_file(root, path, ret, err);
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
