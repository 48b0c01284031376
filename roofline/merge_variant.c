/*
 * merge_variant.c - what tells a point from the others that bear the same names.
 */
#include "roofline/merge_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/facts.h"

/* A point and the run that stands for its configuration. */
struct member {
	struct rfl_point *point;
	const struct rfl_ledger_row *row;
	bool done;
	bool more; /* the words do not do yet */
};

/* The config_hash is made of these too, and no fact is: whether an optimizer has momentum and
 * weight decay at all. The last is the hash itself. */
static const enum rfl_ledger_at hashed[] = {
	RFL_LEDGER_AT_momentum,
	RFL_LEDGER_AT_weight_decay,
	RFL_LEDGER_AT_config_hash,
};

static bool named_alike(const struct rfl_point *a, const struct rfl_point *b)
{
	return a->batch == b->batch && rfl_text_same(a->env, b->env) &&
	       rfl_text_same(a->model, b->model) && rfl_text_same(a->precision, b->precision) &&
	       rfl_text_same(a->mode, b->mode);
}

/* Has another point the same words, though it differs in a column? */
static bool is_hidden(struct member *const *group, size_t n, const struct member *m,
		      enum rfl_ledger_at column)
{
	char a[RFL_NUM_MAX], b[RFL_NUM_MAX];

	for (size_t i = 0; i < n; i++)
		if (rfl_text_same(group[i]->point->variant, m->point->variant) &&
		    strcmp(rfl_field_write(&rfl_ledger_fields[column], group[i]->row, a),
			   rfl_field_write(&rfl_ledger_fields[column], m->row, b)) != 0)
			return true;
	return false;
}

static enum rfl_rc add_column(struct member *m, enum rfl_ledger_at column, struct rfl_buf *words,
			      struct rfl_err *err)
{
	char number[RFL_NUM_MAX];
	const char *value = rfl_field_write(&rfl_ledger_fields[column], m->row, number);
	const char *before = m->point->variant;

	if (!*value)
		return RFL_OK;
	rfl_buf_reset(words);
	rfl_buf_printf(words, "%s%s%s %s", before ? before : "", before ? ", " : "",
		       rfl_ledger_fields[column].name, value);
	return rfl_field_set(&m->point->variant, rfl_buf_str(words), err);
}

static enum rfl_rc tell_apart(struct member *const *group, size_t n, struct rfl_buf *words,
			      struct rfl_err *err)
{
	struct rfl_facts_apart apart = { .first = { NULL } };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < n; i++)
		rfl_facts_apart_add(&apart, group[i]->row);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		rfl_buf_reset(words);
		rfl_facts_apart_put(&apart, group[i]->row, words);
		rc = rfl_field_set(&group[i]->point->variant, rfl_buf_str(words), err);
	}
	for (size_t k = 0; k < RFL_ARRAY_LEN(hashed); k++) {
		for (size_t i = 0; i < n; i++)
			group[i]->more = is_hidden(group, n, group[i], hashed[k]);
		for (size_t i = 0; i < n && rc == RFL_OK; i++)
			if (group[i]->more)
				rc = add_column(group[i], hashed[k], words, err);
	}
	return rc == RFL_OK ? rfl_buf_check(words, "variants of the points", err) : rc;
}

enum rfl_rc rfl_merge__variants(const struct rfl_configs *configs, struct rfl_points *points,
				struct rfl_err *err)
{
	struct member *members = rfl_alloc_array(points->n + 1, sizeof(*members));
	struct member **group = rfl_alloc_array(points->n + 1, sizeof(*group));
	struct rfl_buf words;
	size_t n = 0;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&words, 0);
	if (!members || !group) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		goto done;
	}
	for (size_t i = 0; i < configs->n; i++)
		if (!configs->configs[i].missing) {
			members[n].row = configs->configs[i].row;
			members[n].point = &points->points[n];
			n++;
		}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		size_t ngroup = 0;

		for (size_t k = i; k < n && !members[i].done; k++)
			if (!members[k].done && named_alike(members[i].point, members[k].point))
				group[ngroup++] = &members[k];
		for (size_t k = 0; k < ngroup; k++)
			group[k]->done = true;
		if (ngroup > 1)
			rc = tell_apart(group, ngroup, &words, err);
	}
done:
	rfl_buf_fini(&words);
	free(group);
	free(members);
	return rc;
}
