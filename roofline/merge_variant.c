/*
 * merge_variant.c - what distinguishes a point from the others of the same names.
 */
#include "roofline/merge_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "ledger/facts.h"

/* A point and the run that stands for its configuration. */
struct member {
	struct rfl_point *point;
	const struct rfl_ledger_row *row;
};

/* The config_hash is made of these too, and no fact is: whether an optimizer has momentum and
 * weight decay at all. The last is the hash itself. */
static const enum rfl_ledger_at hashed[] = {
	RFL_LEDGER_AT_momentum,
	RFL_LEDGER_AT_weight_decay,
	RFL_LEDGER_AT_config_hash,
};

static int by_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_name(const void *x, const void *y)
{
	const struct rfl_point *a = ((const struct member *)x)->point;
	const struct rfl_point *b = ((const struct member *)y)->point;
	int order = by_text(a->env, b->env);

	order = order ? order : by_text(a->model, b->model);
	order = order ? order : by_text(a->precision, b->precision);
	order = order ? order : by_text(a->mode, b->mode);
	return order ? order : (a->batch > b->batch) - (a->batch < b->batch);
}

static int by_words(const void *x, const void *y)
{
	return by_text(((const struct member *)x)->point->variant,
		       ((const struct member *)y)->point->variant);
}

/* Where those of the same words differ in a column, add it to their words. */
static enum rfl_rc add_column(struct member *group, size_t n, const struct rfl_field *f,
			      struct rfl_buf *words, struct rfl_err *err)
{
	char number[RFL_NUM_MAX];
	enum rfl_rc rc = RFL_OK;
	size_t end;

	qsort(group, n, sizeof(*group), by_words);
	for (size_t begin = 0; begin < n; begin = end) {
		bool differ = false;

		for (end = begin + 1; end < n && by_words(&group[begin], &group[end]) == 0; end++)
			differ = differ || !rfl_field_same(f, group[begin].row, group[end].row);
		for (size_t i = begin; i < end && differ && rc == RFL_OK; i++) {
			char **variant = &group[i].point->variant;

			if (!rfl_field_known(f, group[i].row))
				continue;
			rfl_buf_reset(words);
			rfl_buf_printf(words, "%s%s%s %s", *variant ? *variant : "",
				       *variant ? ", " : "", f->name,
				       rfl_field_write(f, group[i].row, number));
			rc = rfl_field_set(variant, rfl_buf_str(words), err);
		}
	}
	return rc;
}

static enum rfl_rc tell_apart(struct member *group, size_t n, struct rfl_buf *words,
			      struct rfl_err *err)
{
	struct rfl_facts_apart apart = { .first = { NULL } };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n; i++)
		rfl_facts_apart_add(&apart, group[i].row);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		rfl_buf_reset(words);
		rfl_facts_apart_put(&apart, group[i].row, words);
		rc = rfl_field_set(&group[i].point->variant, rfl_buf_str(words), err);
	}
	for (size_t k = 0; k < RFL_ARRAY_LEN(hashed) && rc == RFL_OK; k++)
		rc = add_column(group, n, &rfl_ledger_fields[hashed[k]], words, err);
	return rc == RFL_OK ? rfl_buf_check(words, "variants of the points", err) : rc;
}

enum rfl_rc rfl_merge__variants(const struct rfl_configs *configs, struct rfl_points *points,
				struct rfl_err *err)
{
	struct member *members = rfl_alloc_array(points->n + 1, sizeof(*members));
	struct rfl_buf words;
	size_t n = 0, end;
	enum rfl_rc rc = RFL_OK;

	if (!members)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	rfl_buf_init(&words, 0);
	for (size_t i = 0; i < configs->n; i++)
		if (!configs->configs[i].missing) {
			members[n] = (struct member){ .point = &points->points[n],
						      .row = configs->configs[i].row };
			n++;
		}
	qsort(members, n, sizeof(*members), by_name);
	for (size_t begin = 0; begin < n && rc == RFL_OK; begin = end) {
		for (end = begin + 1; end < n && by_name(&members[begin], &members[end]) == 0;)
			end++;
		if (end - begin > 1)
			rc = tell_apart(&members[begin], end - begin, &words, err);
	}
	rfl_buf_fini(&words);
	free(members);
	return rc;
}
