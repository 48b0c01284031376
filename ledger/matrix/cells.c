/*
 * cells.c - from what matrix.json says to the cells that it asks for, and the labels of their
 * runs.
 */
#include "ledger/matrix.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ledger/matrix/parts.h"

#define CELLS_MAX 100000
#define RUNS_MAX  1000000

enum rfl_rc rfl_matrix__no_memory(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
}

static enum rfl_rc fail_at(const struct rfl_matrix__file *f, const char *pointer,
			   struct rfl_err *err, const char *text)
{
	struct rfl_where w;

	rfl_where_begin(&w, f->path, pointer);
	return rfl_where_fail(&w, err, "%s", text);
}

/* ---- what of an axis counts for a block ---- */

/* The axes of a block with those of the file where it has none of its own. */
static struct rfl_matrix__axes axes_of(const struct rfl_matrix__file *f,
				       const struct rfl_matrix__block *b)
{
	struct rfl_matrix__axes a = b->axes;

	if (a.nmodels == 0) {
		a.nmodels = f->axes.nmodels;
		a.models = f->axes.models;
	}
	if (a.batches.n == 0)
		a.batches = f->axes.batches;
	if (a.precisions.n == 0)
		a.precisions = f->axes.precisions;
	return a;
}

static const struct rfl_matrix__sizes *batches_of(const struct rfl_matrix__axes *a,
						  const struct rfl_matrix__model *model)
{
	return model->batches.n ? &model->batches : &a->batches;
}

static enum rfl_rc check_axes(const struct rfl_matrix__file *f, const struct rfl_matrix__block *b,
			      const struct rfl_matrix__axes *a, struct rfl_err *err)
{
	const char *lacks = a->nmodels == 0 ? "models" : a->precisions.n == 0 ? "precisions" : NULL;
	char text[128];

	for (size_t i = 0; i < a->nmodels && !lacks; i++)
		if (batches_of(a, &a->models[i])->n == 0)
			lacks = "batch_sizes";
	if (!lacks)
		return RFL_OK;
	(void)snprintf(text, sizeof(text), "has no %s; give \"%s\" here or for the whole file",
		       lacks, lacks);
	return fail_at(f, b->pointer, err, text);
}

static size_t count_cells(const struct rfl_matrix__axes *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->nmodels; i++)
		n += batches_of(a, &a->models[i])->n * a->precisions.n;
	return n;
}

/* ---- exclusions ---- */

static bool has_name(const struct rfl_matrix__names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->items[i], name) == 0)
			return true;
	return names->n == 0; /* not given: matches all */
}

static bool has_size(const struct rfl_matrix__sizes *sizes, int64_t size)
{
	for (size_t i = 0; i < sizes->n; i++)
		if (sizes->items[i] == size)
			return true;
	return sizes->n == 0;
}

/* Every rule is asked, so that each knows whether it matches anything. */
static bool is_excluded(struct rfl_matrix__file *f, const struct rfl_matrix_cell *cell)
{
	bool excluded = false;

	for (size_t i = 0; i < f->nrules; i++) {
		struct rfl_matrix__rule *rule = &f->rules[i];

		if (!has_name(&rule->envs, cell->env) || !has_name(&rule->models, cell->model) ||
		    !has_name(&rule->precisions, cell->precision) ||
		    !has_size(&rule->batches, cell->batch))
			continue;
		rule->matched++;
		excluded = true;
	}
	return excluded;
}

static enum rfl_rc check_rules(const struct rfl_matrix__file *f, struct rfl_err *err)
{
	for (size_t i = 0; i < f->nrules; i++)
		if (f->rules[i].matched == 0)
			return fail_at(f, f->rules[i].pointer, err,
				       "leaves out nothing: no cell matches it");
	return RFL_OK;
}

/* ---- options of a cell, from the outermost place to the innermost, by name ---- */

/* Sets or replaces one option of a growing list. */
static void put(struct rfl_matrix__setting *list, size_t *n, const struct rfl_matrix__setting *s)
{
	size_t i = 0;

	while (i < *n && strcmp(list[i].option.name, s->option.name) != 0)
		i++;
	list[i] = *s;
	*n += i == *n;
}

static int by_name(const void *a, const void *b)
{
	const struct rfl_matrix_option *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static enum rfl_rc merge_settings(const struct rfl_matrix__settings *const places[], size_t n,
				  struct rfl_arena *arena, struct rfl_matrix_cell *ret,
				  struct rfl_err *err)
{
	struct rfl_matrix__setting *list;
	struct rfl_matrix_option *options;
	size_t most = 1, have = 0;

	for (size_t i = 0; i < n; i++)
		most += places[i] ? places[i]->n : 0;
	list = rfl_arena_array(arena, most, sizeof(*list));
	options = rfl_arena_array(arena, most, sizeof(*options));
	if (!list || !options)
		return rfl_matrix__no_memory("matrix", err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; places[i] && k < places[i]->n; k++)
			put(list, &have, &places[i]->items[k]);
	for (size_t i = 0; i < have; i++)
		if (!list[i].off)
			options[ret->noptions++] = list[i].option;
	qsort(options, ret->noptions, sizeof(*options), by_name);
	ret->options = options;
	return RFL_OK;
}

/* ---- as arguments ---- */

static size_t count_args(const struct rfl_matrix_cell *cell)
{
	size_t n = 5; /* what the matrix gives */

	for (size_t i = 0; i < cell->noptions; i++)
		n += cell->options[i].n ? cell->options[i].n : 1;
	return n;
}

/* "--name=value" rather than two words: a value may begin with a dash. */
static bool put_option(struct rfl_arena *arena, const struct rfl_matrix_option *o,
		       const char **args, size_t *n)
{
	if (o->n == 0) {
		args[(*n)++] = rfl_arena_printf(arena, "--%s", o->name);
		return args[*n - 1] != NULL;
	}
	for (size_t i = 0; i < o->n; i++) {
		args[(*n)++] = rfl_arena_printf(arena, "--%s=%s", o->name, o->values[i]);
		if (!args[*n - 1])
			return false;
	}
	return true;
}

/* What the matrix gives comes first and always in this order, the options by name: neither depends
 * on how the file is ordered. */
static void make_id(struct rfl_matrix_cell *cell, const char *const *args, size_t n)
{
	uint64_t h = rfl_hash64(0, NULL, 0);

	for (size_t i = 0; i < n; i++)
		h = rfl_hash64(h, args[i], strlen(args[i]) + 1);
	(void)snprintf(cell->id, sizeof(cell->id), "%016" PRIx64, h);
}

static enum rfl_rc make_args(struct rfl_arena *arena, struct rfl_matrix_cell *cell,
			     struct rfl_err *err)
{
	const char **args = rfl_arena_array(arena, count_args(cell) + 1, sizeof(*args));
	bool ok = args != NULL;
	size_t n = 0;

	if (ok) {
		args[n++] = rfl_arena_printf(arena, "--arch=%s", cell->model);
		args[n++] = rfl_arena_printf(arena, "--batch-size=%" PRId64, cell->batch);
		args[n++] = rfl_arena_printf(arena, "--precision=%s", cell->precision);
		args[n++] = rfl_arena_printf(arena, "--backend=%s", cell->backend);
		args[n++] = rfl_arena_printf(arena, "--env=%s", cell->env);
	}
	for (size_t i = 0; i < n; i++)
		ok = ok && args[i];
	for (size_t i = 0; ok && i < cell->noptions; i++)
		ok = put_option(arena, &cell->options[i], args, &n);
	if (!ok)
		return rfl_matrix__no_memory("matrix", err);
	make_id(cell, args, n);
	cell->args = args;
	return RFL_OK;
}

/* ---- cells ---- */

static enum rfl_rc add_cell(struct rfl_matrix__file *f, const struct rfl_matrix__block *b,
			    const struct rfl_matrix_cell *like, struct rfl_matrix *m,
			    struct rfl_err *err)
{
	const struct rfl_matrix__settings *const places[] = { &f->axes.settings, b->outer,
							      &b->axes.settings };
	struct rfl_matrix_cell *cell = &m->cells[m->ncells];
	enum rfl_rc rc;

	*cell = *like;
	rc = merge_settings(places, RFL_ARRAY_LEN(places), f->arena, cell, err);
	if (rc == RFL_OK)
		rc = make_args(f->arena, cell, err);
	m->ncells += rc == RFL_OK;
	return rc;
}

/* The cells of a block: precision by precision, model by model, batch by batch. */
static enum rfl_rc add_block(struct rfl_matrix__file *f, const struct rfl_matrix__block *b,
			     bool may_exclude, struct rfl_matrix *m, struct rfl_err *err)
{
	const struct rfl_matrix__axes a = axes_of(f, b);
	struct rfl_matrix_cell cell = { .env = b->env,
					.backend = b->backend,
					.pointer = b->pointer };
	enum rfl_rc rc = RFL_OK;

	for (size_t p = 0; p < a.precisions.n; p++)
		for (size_t i = 0; i < a.nmodels; i++) {
			const struct rfl_matrix__sizes *batches = batches_of(&a, &a.models[i]);

			cell.precision = a.precisions.items[p];
			cell.model = a.models[i].name;
			for (size_t k = 0; k < batches->n && rc == RFL_OK; k++) {
				cell.batch = batches->items[k];
				if (!may_exclude || !is_excluded(f, &cell))
					rc = add_cell(f, b, &cell, m, err);
			}
		}
	return rc;
}

static int by_id(const void *a, const void *b)
{
	const struct rfl_matrix_cell *const *x = a, *const *y = b;
	int order = strcmp((*x)->id, (*y)->id);

	return order ? order : (*x > *y) - (*x < *y);
}

static enum rfl_rc check_unique(const struct rfl_matrix__file *f, const struct rfl_matrix *m,
				struct rfl_err *err)
{
	const struct rfl_matrix_cell **sorted =
		rfl_arena_array(f->arena, m->ncells, sizeof(const struct rfl_matrix_cell *));
	char text[256];

	if (!sorted)
		return rfl_matrix__no_memory(f->path, err);
	for (size_t i = 0; i < m->ncells; i++)
		sorted[i] = &m->cells[i];
	qsort(sorted, m->ncells, sizeof(const struct rfl_matrix_cell *), by_id);
	for (size_t i = 1; i < m->ncells; i++) {
		const struct rfl_matrix_cell *c = sorted[i];

		if (strcmp(sorted[i - 1]->id, c->id) != 0)
			continue;
		const bool same_block = strcmp(sorted[i - 1]->pointer, c->pointer) == 0;

		(void)snprintf(text, sizeof(text), "asks for %s %s %s batch %" PRId64 " %s%s",
			       c->env, c->model, c->precision, c->batch,
			       same_block ? "twice" : "with the same options as ",
			       same_block ? "" : sorted[i - 1]->pointer);
		return fail_at(f, c->pointer, err, text);
	}
	return RFL_OK;
}

static enum rfl_rc allot(struct rfl_matrix__file *f, struct rfl_matrix *m, struct rfl_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nenvs + f->nextras; i++) {
		const struct rfl_matrix__block *b =
			i < f->nenvs ? &f->envs[i] : &f->extras[i - f->nenvs];
		const struct rfl_matrix__axes a = axes_of(f, b);
		enum rfl_rc rc = check_axes(f, b, &a, err);

		if (rc)
			return rc;
		n += count_cells(&a);
		if (n > CELLS_MAX)
			return fail_at(f, b->pointer, err, "more than 100,000 cells");
	}
	if (n * (size_t)f->repeats > RUNS_MAX)
		return fail_at(f, "/repeats", err,
			       "more than 1,000,000 runs of all cells together");
	m->cells = rfl_arena_array(f->arena, n, sizeof(*m->cells));
	return m->cells ? RFL_OK : rfl_matrix__no_memory(f->path, err);
}

enum rfl_rc rfl_matrix__build(struct rfl_matrix__file *f, struct rfl_matrix *m, struct rfl_err *err)
{
	enum rfl_rc rc = allot(f, m, err);

	for (size_t i = 0; i < f->nenvs && rc == RFL_OK; i++)
		rc = add_block(f, &f->envs[i], true, m, err);
	if (rc == RFL_OK)
		rc = check_rules(f, err);
	for (size_t i = 0; i < f->nextras && rc == RFL_OK; i++)
		rc = add_block(f, &f->extras[i], false, m, err);
	if (rc == RFL_OK && m->ncells == 0)
		rc = fail_at(f, "/exclude", err, "leaves out every cell");
	if (rc == RFL_OK)
		rc = check_unique(f, m, err);
	return rc;
}

/* ---- the matrix ---- */

static enum rfl_rc make(json_t *root, const char *path, struct rfl_matrix **ret,
			struct rfl_err *err)
{
	struct rfl_matrix *m = calloc(1, sizeof(*m));
	struct rfl_matrix__file f = { 0 };
	enum rfl_rc rc;

	if (!m || !(m->arena = rfl_arena_new(0)) || !(m->path = rfl_arena_strdup(m->arena, path))) {
		rc = rfl_matrix__no_memory(path, err);
		goto done;
	}
	f.path = m->path;
	f.arena = m->arena;
	rc = rfl_matrix__read(root, &f, err);
	if (rc)
		goto done;
	m->name = f.name;
	m->description = f.description;
	m->repeats = f.repeats;
	rc = rfl_matrix__build(&f, m, err);
	if (rc)
		goto done;
	*ret = m;
	m = NULL;
done:
	rfl_matrix_free(m);
	return rc;
}

enum rfl_rc rfl_matrix_parse(const char *text, size_t len, const char *name,
			     struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_loads(text, len, name, &root, err);

	if (rc == RFL_OK)
		rc = make(root, name, ret, err);
	json_decref(root);
	return rc;
}

enum rfl_rc rfl_matrix_load(const char *path, struct rfl_matrix **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	if (rc == RFL_OK)
		rc = make(root, path, ret, err);
	json_decref(root);
	return rc;
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
