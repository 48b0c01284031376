/*
 * options.c - the options of a cell: read, merged from the outer place to the inner one, and
 * written as arguments. Whether a run has such an option is known above.
 */
#include "ledger/matrix/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"

/* ---- reading ---- */

/* What the matrix itself gives to a run, or what would break it. */
static const char *refusal(const char *name)
{
	static const struct {
		const char *name, *why;
	} reserved[] = {
		{ "arch", "the networks stand under \"models\"" },
		{ "batch-size", "the batch sizes stand under \"batch_sizes\"" },
		{ "precision", "the precisions stand under \"precisions\"" },
		{ "backend", "it stands in the environment" },
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
static const char *value_text(const json_t *value, struct rfl_arena *arena)
{
	char number[RFL_NUM_MAX];

	if (json_is_integer(value))
		return rfl_arena_printf(arena, "%" PRId64, (int64_t)json_integer_value(value));
	if (json_is_real(value))
		return rfl_arena_strdup(arena, rfl_num_exact(json_real_value(value), number));
	if (json_is_string(value))
		return rfl_arena_strdup(arena, json_string_value(value));
	return NULL;
}

static bool is_scalar(const json_t *value)
{
	return json_is_number(value) || json_is_string(value);
}

static bool all_scalar(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!is_scalar(json_array_get(list, i)))
			return false;
	return json_array_size(list) > 0;
}

static enum rfl_rc read_values(const json_t *value, struct rfl_arena *arena, struct rfl_where *w,
			       struct rfl_matrix_option *ret, struct rfl_err *err)
{
	const bool many = json_is_array(value);
	const char **values;

	if (many ? !all_scalar(value) : !is_scalar(value))
		return rfl_where_fail(w, err,
				      "must be true or false, a number, a text, or a list of them");
	ret->n = many ? json_array_size(value) : 1;
	values = rfl_arena_array(arena, ret->n, sizeof(*values));
	if (!values)
		return rfl_matrix__no_memory(w->file, err);
	for (size_t i = 0; i < ret->n; i++) {
		values[i] = value_text(many ? json_array_get(value, i) : value, arena);
		if (!values[i])
			return rfl_matrix__no_memory(w->file, err);
	}
	ret->values = values;
	return RFL_OK;
}

static enum rfl_rc read_setting(const char *name, const json_t *value, struct rfl_arena *arena,
				struct rfl_where *w, struct rfl_matrix__setting *ret,
				struct rfl_err *err)
{
	const char *why = refusal(name);

	if (why)
		return rfl_where_fail(w, err, "is no option of a matrix: %s", why);
	ret->option.name = rfl_arena_strdup(arena, name);
	ret->option.pointer = rfl_arena_strdup(arena, w->pointer);
	if (!ret->option.name || !ret->option.pointer)
		return rfl_matrix__no_memory(w->file, err);
	ret->off = json_is_false(value);
	if (json_is_boolean(value))
		return RFL_OK;
	return read_values(value, arena, w, &ret->option, err);
}

enum rfl_rc rfl_matrix__read_settings(const json_t *value, struct rfl_arena *arena,
				      struct rfl_where *w, struct rfl_matrix__settings *ret,
				      struct rfl_err *err)
{
	json_t *object =
		(json_t *)(uintptr_t)value; /* iterators take it without const, and only read */
	const char *name;
	json_t *entry;

	if (!json_is_object(value))
		return rfl_where_fail(w, err, "must be an object such as {\"iters\": 100}");
	ret->items = rfl_arena_array(arena, json_object_size(value) + 1, sizeof(*ret->items));
	if (!ret->items)
		return rfl_matrix__no_memory(w->file, err);
	json_object_foreach(object, name, entry)
	{
		const size_t mark = rfl_where_key(w, name);
		enum rfl_rc rc = read_setting(name, entry, arena, w, &ret->items[ret->n], err);

		if (rc)
			return rc;
		rfl_where_up(w, mark);
		ret->n++;
	}
	return RFL_OK;
}

/* ---- merging ---- */

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

enum rfl_rc rfl_matrix__merge_settings(const struct rfl_matrix__settings *const places[], size_t n,
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

enum rfl_rc rfl_matrix__make_args(struct rfl_arena *arena, struct rfl_matrix_cell *cell,
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
