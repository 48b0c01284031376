/*
 * golden_read.c - reads values out of a golden file; the first failure is kept and names the place.
 */
#include "runner/verify/golden_read.h"

#include <stdio.h>

void rfl_golden__refuse(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			const char *key, const char *what)
{
	if (r->rc == RFL_OK)
		r->rc = rfl_fail(r->err, RFL_EFORMAT, 0, "%s: %s%s%s%s%s", r->file, at->path,
				 key ? "/" : "", key ? key : "", key || *at->path ? " " : "", what);
}

void *rfl_golden__take(struct rfl_golden_reader *r, int64_t n, size_t size)
{
	void *memory = NULL;

	if (r->rc == RFL_OK) {
		memory = rfl_arena_array(r->arena, (size_t)n, size);
		if (!memory && n > 0)
			r->rc = rfl_fail(r->err, RFL_ENOMEM, 0, "%s: out of memory", r->file);
	}
	return memory;
}

struct rfl_golden_place rfl_golden__member(struct rfl_golden_reader *r,
					   const struct rfl_golden_place *at, const char *key)
{
	struct rfl_golden_place p = { .json = r->rc == RFL_OK ? json_object_get(at->json, key)
							      : NULL };

	(void)snprintf(p.path, sizeof(p.path), "%.60s/%.32s", at->path, key);
	if (!p.json)
		rfl_golden__refuse(r, at, key, "is missing");
	return p;
}

struct rfl_golden_place rfl_golden__element(const struct rfl_golden_place *at, int64_t i)
{
	struct rfl_golden_place p = { .json = json_array_get(at->json, (size_t)i) };

	(void)snprintf(p.path, sizeof(p.path), "%.72s/%lld", at->path, (long long)i);
	return p;
}

double rfl_golden__real_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at)
{
	if (r->rc == RFL_OK && !json_is_number(at->json))
		rfl_golden__refuse(r, at, NULL, "is not a number");
	return r->rc == RFL_OK ? json_number_value(at->json) : 0;
}

int64_t rfl_golden__int_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at)
{
	if (r->rc == RFL_OK && !json_is_integer(at->json))
		rfl_golden__refuse(r, at, NULL, "is not an integer");
	return r->rc == RFL_OK ? json_integer_value(at->json) : 0;
}

int64_t rfl_golden__length_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at)
{
	if (r->rc == RFL_OK && !json_is_array(at->json))
		rfl_golden__refuse(r, at, NULL, "is not a list");
	return r->rc == RFL_OK ? (int64_t)json_array_size(at->json) : 0;
}

double rfl_golden__get_real(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			    const char *key)
{
	const struct rfl_golden_place p = rfl_golden__member(r, at, key);

	return rfl_golden__real_of(r, &p);
}

int64_t rfl_golden__get_int(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			    const char *key)
{
	const struct rfl_golden_place p = rfl_golden__member(r, at, key);

	return rfl_golden__int_of(r, &p);
}

const char *rfl_golden__text_of(struct rfl_golden_reader *r, const struct rfl_golden_place *at)
{
	char *copy = NULL;

	if (r->rc == RFL_OK && !json_is_string(at->json))
		rfl_golden__refuse(r, at, NULL, "is not a text");
	if (r->rc == RFL_OK) {
		copy = rfl_arena_strdup(r->arena, json_string_value(at->json));
		if (!copy)
			r->rc = rfl_fail(r->err, RFL_ENOMEM, 0, "%s: out of memory", r->file);
	}
	return copy;
}

const char *rfl_golden__get_text(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
				 const char *key)
{
	const struct rfl_golden_place p = rfl_golden__member(r, at, key);

	return rfl_golden__text_of(r, &p);
}

double *rfl_golden__get_reals(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			      const char *key, int64_t *n)
{
	const struct rfl_golden_place list = rfl_golden__member(r, at, key);
	double *values;

	*n = rfl_golden__length_of(r, &list);
	values = rfl_golden__take(r, *n, sizeof(*values));
	for (int64_t i = 0; values && i < *n; i++) {
		const struct rfl_golden_place p = rfl_golden__element(&list, i);

		values[i] = rfl_golden__real_of(r, &p);
	}
	return values;
}

int64_t *rfl_golden__get_ints(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			      const char *key, int64_t *n)
{
	const struct rfl_golden_place list = rfl_golden__member(r, at, key);
	int64_t *values;

	*n = rfl_golden__length_of(r, &list);
	values = rfl_golden__take(r, *n, sizeof(*values));
	for (int64_t i = 0; values && i < *n; i++) {
		const struct rfl_golden_place p = rfl_golden__element(&list, i);

		values[i] = rfl_golden__int_of(r, &p);
	}
	return values;
}

/* A list of rows, all of one length. */
double *rfl_golden__get_matrix(struct rfl_golden_reader *r, const struct rfl_golden_place *at,
			       const char *key, int64_t *rows, int64_t *columns)
{
	const struct rfl_golden_place list = rfl_golden__member(r, at, key);
	double *values = NULL;

	*rows = rfl_golden__length_of(r, &list);
	*columns = 0;
	for (int64_t i = 0; r->rc == RFL_OK && i < *rows; i++) {
		const struct rfl_golden_place row = rfl_golden__element(&list, i);
		const int64_t n = rfl_golden__length_of(r, &row);

		if (i == 0) {
			*columns = n;
			values = rfl_golden__take(r, *rows * n, sizeof(*values));
		}
		if (n != *columns)
			rfl_golden__refuse(r, &row, NULL, "is not as long as the row before it");
		for (int64_t j = 0; r->rc == RFL_OK && j < n; j++) {
			const struct rfl_golden_place p = rfl_golden__element(&row, j);

			values[i * n + j] = rfl_golden__real_of(r, &p);
		}
	}
	return values;
}
