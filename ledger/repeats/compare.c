/* compare.c - matches the configurations of two sides, or those that differ in one fact, and
 * compares their repeats. */
#include "ledger/repeats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/repeats/row_index.h"

#define VALUES_MOST 20 /* maximum number in a message */

const char *const rfl_speed_verdict_names[] = { "same",    "faster",  "slower",
						"unclear", "missing", NULL };

/* Compute the statistics of the logarithms.
 * @param ok  set to false if there are no values or one is not positive */
static enum rfl_rc describe_logs(const double *x, size_t n, bool *ok, struct rfl_stats *ret,
				 struct rfl_err *err)
{
	double few[16], *logs = few;
	enum rfl_rc rc;

	*ok = n > 0;
	for (size_t i = 0; i < n; i++)
		*ok = *ok && x[i] > 0 && isfinite(x[i]);
	if (!*ok)
		return RFL_OK;
	if (n > RFL_ARRAY_LEN(few))
		logs = rfl_alloc_array(n, sizeof(*logs));
	if (!logs)
		return rfl_no_memory(err, "compare");
	for (size_t i = 0; i < n; i++)
		logs[i] = log(x[i]);
	rc = rfl_stats_describe(logs, n, ret, err);
	if (logs != few)
		free(logs);
	return rc;
}

enum rfl_rc rfl_compare_ratio(const double *a, size_t na, const double *b, size_t nb, int speed,
			      struct rfl_speed_ratio *ret, struct rfl_err *err)
{
	struct rfl_stats sa, sb;
	struct rfl_stats_difference d;
	bool oka, okb = false;
	enum rfl_rc rc = describe_logs(a, na, &oka, &sa, err);

	*ret = (struct rfl_speed_ratio){ (double)NAN, (double)NAN, (double)NAN };
	if (rc == RFL_OK)
		rc = describe_logs(b, nb, &okb, &sb, err);
	if (rc != RFL_OK || !oka || !okb)
		return rc;
	d = speed > 0 ? rfl_stats_welch(&sa, &sb) : rfl_stats_welch(&sb, &sa);
	ret->value = exp(d.value);
	ret->lo = exp(d.lo);
	ret->hi = exp(d.hi);
	return RFL_OK;
}

enum rfl_speed_verdict rfl_compare_verdict(const struct rfl_speed_ratio *ratio, double threshold)
{
	const double up = 1 + threshold, down = 1 / (1 + threshold);

	if (isnan(ratio->lo) || isnan(ratio->hi))
		return RFL_SPEED_UNCLEAR;
	if (ratio->lo >= down && ratio->hi <= up)
		return RFL_SPEED_SAME;
	if (ratio->lo > up)
		return RFL_SPEED_FASTER;
	return ratio->hi < down ? RFL_SPEED_SLOWER : RFL_SPEED_UNCLEAR;
}

/* Facts that follow from another one, and may differ when configurations are compared by it. */
static const struct {
	enum rfl_ledger_at by, follows;
} followers[] = {
	{ RFL_LEDGER_AT_model, RFL_LEDGER_AT_img_size },
	{ RFL_LEDGER_AT_model, RFL_LEDGER_AT_context_length },
	{ RFL_LEDGER_AT_model, RFL_LEDGER_AT_vocab },
	{ RFL_LEDGER_AT_model, RFL_LEDGER_AT_classes },
	{ RFL_LEDGER_AT_precision, RFL_LEDGER_AT_autocast },
	{ RFL_LEDGER_AT_batch, RFL_LEDGER_AT_micro_batch },
	{ RFL_LEDGER_AT_micro_batch, RFL_LEDGER_AT_accum },
	{ RFL_LEDGER_AT_accum, RFL_LEDGER_AT_micro_batch },
	{ RFL_LEDGER_AT_optimizer, RFL_LEDGER_AT_optimizer_kernels },
	{ RFL_LEDGER_AT_data_mode, RFL_LEDGER_AT_augment },
	{ RFL_LEDGER_AT_data_mode, RFL_LEDGER_AT_workers },
	{ RFL_LEDGER_AT_data_mode, RFL_LEDGER_AT_prefetch },
	{ RFL_LEDGER_AT_data_mode, RFL_LEDGER_AT_pin_memory },
	{ RFL_LEDGER_AT_workers, RFL_LEDGER_AT_prefetch },
	{ RFL_LEDGER_AT_world_size, RFL_LEDGER_AT_interconnect },
	{ RFL_LEDGER_AT_world_size, RFL_LEDGER_AT_micro_batch },
	{ RFL_LEDGER_AT_engine, RFL_LEDGER_AT_engine_id },
	{ RFL_LEDGER_AT_engine, RFL_LEDGER_AT_engine_version },
	{ RFL_LEDGER_AT_engine, RFL_LEDGER_AT_optimizer_kernels },
	{ RFL_LEDGER_AT_engine_id, RFL_LEDGER_AT_engine_version },
	{ RFL_LEDGER_AT_engine_version, RFL_LEDGER_AT_engine_id },
};

/* The role of each fact when configurations are matched: WORK must agree, WAY must agree where it
 * varies on one side, NOTE is ignored. */
struct match {
	const struct rfl_fact *by; /* NULL: none */
	enum rfl_fact_role role[RFL_FACTS_MAX];
	enum rfl_ledger_at keys[4]; /* columns of WORK that every configuration has */
	size_t nkeys;
};

static struct match match_of(const struct rfl_fact *by)
{
	static const enum rfl_ledger_at always[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						     RFL_LEDGER_AT_precision, RFL_LEDGER_AT_batch };
	/* another machine may also differ in the facts about the way */
	const bool strict = by && by->column != RFL_LEDGER_AT_env &&
			    by->column != RFL_LEDGER_AT_backend &&
			    by->column != RFL_LEDGER_AT_device_name;
	struct match m = { .by = by };

	for (size_t k = 0; k < rfl_nfacts; k++) {
		const enum rfl_ledger_at column = rfl_facts[k].column;

		m.role[k] = rfl_facts[k].role;
		if (strict && m.role[k] == RFL_FACT_WAY && column != RFL_LEDGER_AT_warmup &&
		    column != RFL_LEDGER_AT_iters)
			m.role[k] = RFL_FACT_WORK;
		for (size_t i = 0; by && i < RFL_ARRAY_LEN(followers); i++)
			if (followers[i].by == by->column && followers[i].follows == column)
				m.role[k] = RFL_FACT_WAY;
		if (by && by->column == column)
			m.role[k] = RFL_FACT_NOTE;
		for (size_t i = 0; i < RFL_ARRAY_LEN(always); i++)
			if (always[i] == column && m.role[k] == RFL_FACT_WORK)
				m.keys[m.nkeys++] = column;
	}
	return m;
}

/* An item of a row index: the keys of a row, with the value of `by` from another row. */
struct item {
	const struct match *match;
	const struct rfl_ledger_row *row, *value;
};

static uint64_t item_hash(const void *item)
{
	const struct item *it = item;
	const struct match *m = it->match;
	const uint64_t h = rfl_ledger_hash(m->keys, m->nkeys, it->row);

	return m->by ? 31 * h + rfl_ledger_hash(&m->by->column, 1, it->value) : h;
}

static bool items_alike(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	const struct match *m = a->match;

	return rfl_ledger_same(m->keys, m->nkeys, a->row, b->row) &&
	       (!m->by || rfl_fact_same(m->by, a->value, b->value));
}

/* The configurations of one side, in linked lists of equal items. */
struct side {
	const struct rfl_repeats *r;
	size_t *work;  /* number of the item of each configuration */
	size_t *first; /* first configuration of each item; SIZE_MAX: none */
	size_t *next;  /* next configuration of an equal item; SIZE_MAX: end */
};

/* @param items  room for one item per configuration */
static enum rfl_rc list_works(struct rfl_row_index *works, const struct match *m,
			      const struct side *s, struct item *items, size_t nworks,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < nworks; i++)
		s->first[i] = SIZE_MAX;
	for (size_t i = s->r->n; i-- > 0 && rc == RFL_OK;) {
		items[i] = (struct item){ m, s->r->configs[i].row, s->r->configs[i].row };
		rc = rfl_row_index_put(works, &items[i], &s->work[i], err);
		if (rc != RFL_OK)
			break;
		s->next[i] = s->first[s->work[i]];
		s->first[s->work[i]] = i;
	}
	return rc;
}

/* Return true if configurations of equal work are known to differ in a fact. */
static bool varies(const struct side *s, size_t number, const struct rfl_fact *f)
{
	const struct rfl_ledger_row *known = NULL;

	for (size_t i = s->first[number]; i != SIZE_MAX; i = s->next[i]) {
		const struct rfl_ledger_row *row = s->r->configs[i].row;

		if (!rfl_fact_known(f, row))
			continue;
		if (known && !rfl_fact_same(f, known, row))
			return true;
		known = row;
	}
	return false;
}

/* Return the configuration of side b, item nb, that matches a row of side a, item na. SIZE_MAX:
 * none
 * @param used  configurations to skip; NULL: none */
static size_t partner_of(const struct match *m, const struct rfl_ledger_row *row,
			 const struct side *a, size_t na, const struct side *b, size_t nb,
			 const bool *used)
{
	bool must[RFL_FACTS_MAX];
	size_t j = b->first[nb];

	for (size_t k = 0; k < rfl_nfacts && j != SIZE_MAX; k++)
		must[k] = m->role[k] == RFL_FACT_WORK ||
			  (m->role[k] == RFL_FACT_WAY &&
			   (varies(a, na, &rfl_facts[k]) || varies(b, nb, &rfl_facts[k])));
	for (; j != SIZE_MAX; j = b->next[j]) {
		bool same = !used || !used[j];

		for (size_t k = 0; k < rfl_nfacts && same; k++)
			same = !must[k] || rfl_fact_agree(&rfl_facts[k], row, b->r->configs[j].row);
		if (same)
			return j;
	}
	return SIZE_MAX;
}

static enum rfl_rc add_pair(struct rfl_comparison *c, const struct rfl_repeats_config *a,
			    const struct rfl_repeats_config *b, struct rfl_err *err)
{
	struct rfl_compared *p = &c->pairs[c->n++];
	double *values;
	enum rfl_rc rc;

	*p = (struct rfl_compared){
		.a = a,
		.b = b,
		.ratio = { (double)NAN, (double)NAN, (double)NAN },
		.verdict = RFL_SPEED_MISSING,
		.why = "",
	};
	if (!a || !b)
		p->why = a ? "only in A" : "only in B";
	else if (a->n == 0 || b->n == 0)
		p->why = a->n == 0 ? "no run of A is ok" : "no run of B is ok";
	if (p->why[0]) {
		c->count[RFL_SPEED_MISSING]++;
		return RFL_OK;
	}
	values = rfl_alloc_array(a->n + b->n, sizeof(*values));
	if (!values)
		return rfl_no_memory(err, "compare");
	for (size_t i = 0; i < a->n; i++)
		values[i] = a->runs[i].value;
	for (size_t i = 0; i < b->n; i++)
		values[a->n + i] = b->runs[i].value;
	rc = rfl_compare_ratio(values, a->n, values + a->n, b->n, c->metric->speed, &p->ratio, err);
	free(values);
	p->verdict = rfl_compare_verdict(&p->ratio, c->threshold);
	if (isnan(p->ratio.value))
		p->why = "a value is not positive";
	else if (a->n < 2 || b->n < 2)
		p->why = "a single repeat has no spread";
	else if (p->verdict == RFL_SPEED_UNCLEAR)
		p->why = "the interval includes the threshold";
	c->count[p->verdict]++;
	return rc;
}

/* @param n  maximum number of pairs. NULL: out of memory */
static struct rfl_comparison *comparison_new(const struct rfl_repeats *r, double threshold,
					     size_t n)
{
	struct rfl_comparison *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->metric = r->metric;
	c->threshold = threshold;
	c->pairs = rfl_alloc_array(n, sizeof(*c->pairs));
	if (c->pairs)
		return c;
	free(c);
	return NULL;
}

enum rfl_rc rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b, double threshold,
			struct rfl_comparison **ret, struct rfl_err *err)
{
	const size_t n = a->n + b->n;
	const struct match m = match_of(NULL);
	size_t *room = rfl_alloc_array(6 * n, sizeof(*room));
	struct item *items = rfl_alloc_array(n, sizeof(*items));
	bool *used = rfl_alloc_array(n, sizeof(*used)); /* of b */
	struct rfl_comparison *c = comparison_new(a, threshold, n);
	struct rfl_row_index works = { .hash = item_hash, .alike = items_alike };
	enum rfl_rc rc;

	if (!room || !items || !used || !c) {
		rc = rfl_no_memory(err, "compare");
		goto done;
	}
	const struct side sa = { a, room, room + n, room + 2 * n };
	const struct side sb = { b, room + 3 * n, room + 4 * n, room + 5 * n };

	if ((rc = list_works(&works, &m, &sa, items, n, err)) ||
	    (rc = list_works(&works, &m, &sb, items + a->n, n, err)))
		goto done;
	for (size_t i = 0; i < a->n && rc == RFL_OK; i++) {
		const size_t j =
			partner_of(&m, a->configs[i].row, &sa, sa.work[i], &sb, sa.work[i], used);

		if (j != SIZE_MAX)
			used[j] = true;
		rc = add_pair(c, &a->configs[i], j != SIZE_MAX ? &b->configs[j] : NULL, err);
	}
	for (size_t i = 0; i < b->n && rc == RFL_OK; i++)
		if (!used[i])
			rc = add_pair(c, NULL, &b->configs[i], err);
	if (rc == RFL_OK) {
		*ret = c;
		c = NULL;
	}
done:
	rfl_row_index_fini(&works);
	rfl_comparison_free(c);
	free(used);
	free(items);
	free(room);
	return rc;
}

/* Configurations sorted for a comparison by one fact. Equal work items differ at most in that fact
 * and in facts that their keys do not include. */
struct sorted {
	const struct rfl_fact *by;
	struct rfl_row_index values;
	struct side side;     /* by work and value */
	size_t *work, *value; /* of each configuration; value SIZE_MAX: unknown */
	size_t *nvalues;      /* number of values of each work */
	size_t *shared;       /* number of works that have this value and another one */
};

static const struct rfl_ledger_row *value_at(const struct sorted *x, size_t v)
{
	return ((const struct item *)x->values.rows[v])->value;
}

/* Fail with the known values and the nearest one. */
static enum rfl_rc fail_no_value(const struct sorted *x, const char *asked, struct rfl_err *err)
{
	const struct rfl_field *f = &rfl_ledger_fields[x->by->column];
	const char *seen[VALUES_MOST + 1], *near;
	char numbers[VALUES_MOST][RFL_NUM_MAX];
	const size_t n = x->values.n < VALUES_MOST ? x->values.n : VALUES_MOST;
	struct rfl_buf list;

	rfl_buf_init(&list, 1 << 16);
	for (size_t i = 0; i < n; i++) {
		seen[i] = rfl_field_write(f, value_at(x, i), numbers[i]);
		rfl_buf_printf(&list, "%s%s", i ? ", " : "", seen[i]);
	}
	seen[n] = NULL;
	near = rfl_text_nearest(asked, seen);
	(void)rfl_fail(err, RFL_ENOTFOUND, 0, "no run has %s '%s' (known: %s%s)%s%s%s", x->by->name,
		       asked, rfl_buf_str(&list), n < x->values.n ? ", ..." : "",
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	rfl_buf_fini(&list);
	return RFL_ENOTFOUND;
}

/* Return a row with the value that the user named or, without a name, with the value that most
 * works share and, of several, the smallest number or the first text. NULL: no such value */
static const struct rfl_ledger_row *choose(const struct sorted *x, const char *asked)
{
	const struct rfl_field *f = &rfl_ledger_fields[x->by->column];
	const size_t n = x->side.r->n;
	char number[RFL_NUM_MAX];
	size_t best = 0;

	for (size_t v = 0; asked && v < x->values.n; v++)
		if (strcmp(asked, rfl_field_write(f, value_at(x, v), number)) == 0)
			return value_at(x, v);
	if (asked)
		return NULL;
	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++) {
			if (x->value[i] == SIZE_MAX || x->side.first[x->side.work[i]] != i)
				continue;
			if (pass == 0)
				x->nvalues[x->work[i]]++;
			else if (x->nvalues[x->work[i]] > 1)
				x->shared[x->value[i]]++;
		}
	for (size_t v = 1; v < x->values.n; v++)
		if (x->shared[v] > x->shared[best] ||
		    (x->shared[v] == x->shared[best] &&
		     rfl_field_number(f, value_at(x, v)) < rfl_field_number(f, value_at(x, best))))
			best = v;
	return value_at(x, best);
}

enum rfl_rc rfl_compare_by(const struct rfl_repeats *r, const struct rfl_fact *by,
			   const char *baseline, double threshold, struct rfl_comparison **ret,
			   struct rfl_err *err)
{
	const size_t n = r->n;
	/* index by both, by the value, by all but the value */
	const struct match m = match_of(by), only = { .by = by };
	struct match plain = m;
	size_t *room = rfl_alloc_array(8 * n, sizeof(*room));
	struct item *items = rfl_alloc_array(3 * n, sizeof(*items));
	bool *used = rfl_alloc_array(n, sizeof(*used));
	struct rfl_comparison *c = comparison_new(r, threshold, n);
	struct rfl_row_index sides = { .hash = item_hash, .alike = items_alike }, works = sides;
	struct sorted x = { .by = by, .values = sides };
	enum rfl_rc rc;

	if (!room || !items || !used || !c) {
		rc = rfl_no_memory(err, "compare");
		goto done;
	}
	plain.by = NULL;
	c->by = by;
	x.side = (struct side){ r, room, room + n, room + 2 * n };
	x.work = room + 3 * n;
	x.value = room + 4 * n;
	x.nvalues = room + 5 * n;
	x.shared = room + 6 * n;
	size_t *partner = room + 7 * n;

	rc = list_works(&sides, &m, &x.side, items, n, err);
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const struct rfl_ledger_row *row = r->configs[i].row;

		x.value[i] = SIZE_MAX;
		if (!rfl_fact_known(by, row)) {
			c->unknown++;
			continue;
		}
		items[n + i] = (struct item){ &only, row, row };
		items[2 * n + i] = (struct item){ &plain, row, row };
		if (!(rc = rfl_row_index_put(&x.values, &items[n + i], &x.value[i], err)))
			rc = rfl_row_index_put(&works, &items[2 * n + i], &x.work[i], err);
	}
	if (rc)
		goto done;
	if (x.values.n < 2) {
		char number[RFL_NUM_MAX];

		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "all runs have %s %s; name more ledgers, or another column", by->name,
			      x.values.n ? rfl_field_write(&rfl_ledger_fields[by->column],
							   value_at(&x, 0), number)
					 : "unknown");
		goto done;
	}
	c->baseline = choose(&x, baseline);
	if (!c->baseline) {
		rc = fail_no_value(&x, baseline, err);
		goto done;
	}
	for (size_t i = 0; i < n; i++) {
		const struct item it = { &m, r->configs[i].row, c->baseline };
		const size_t at = rfl_row_index_find(&sides, &it);

		partner[i] = SIZE_MAX;
		if (at == SIZE_MAX || x.value[i] == SIZE_MAX ||
		    rfl_fact_same(by, it.row, c->baseline))
			continue;
		partner[i] = partner_of(&m, it.row, &x.side, x.side.work[i], &x.side, at, NULL);
		if (partner[i] != SIZE_MAX)
			used[i] = used[partner[i]] = true;
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		if (partner[i] != SIZE_MAX)
			rc = add_pair(c, &r->configs[partner[i]], &r->configs[i], err);
		else
			c->alone += !used[i] && x.value[i] != SIZE_MAX;
	}
	if (rc == RFL_OK) {
		*ret = c;
		c = NULL;
	}
done:
	rfl_row_index_fini(&sides);
	rfl_row_index_fini(&works);
	rfl_row_index_fini(&x.values);
	rfl_comparison_free(c);
	free(used);
	free(items);
	free(room);
	return rc;
}

void rfl_comparison_free(struct rfl_comparison *c)
{
	if (!c)
		return;
	free(c->pairs);
	free(c);
}
