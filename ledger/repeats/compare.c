/*
 * compare.c - which configurations of two sides belong together, and what their repeats say.
 */
#include "ledger/repeats/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/repeats/row_index.h"

const char *const rfl_speed_verdict_names[] = { "same",    "faster",  "slower",
						"unclear", "missing", NULL };

static enum rfl_rc fail_no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "compare: out of memory");
}

/* --- the verdict ----------------------------------------------------------------------------- */

/* Statistics of the logarithms. @return false: a value is not above 0, or there is none */
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
		return fail_no_memory(err);
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

/* --- pairs ----------------------------------------------------------------------------------- */

static uint64_t work_hash(const void *item)
{
	const struct rfl_ledger_row *row = item;
	uint64_t h = rfl_hash64(0, row->model, strlen(row->model));

	h = rfl_hash64(h, row->precision, strlen(row->precision));
	return rfl_hash64(h, &row->batch, sizeof(row->batch));
}

static bool work_alike(const void *x, const void *y)
{
	const struct rfl_ledger_row *a = x, *b = y;

	return a->batch == b->batch && strcmp(a->model, b->model) == 0 &&
	       strcmp(a->precision, b->precision) == 0;
}

struct matcher {
	const struct rfl_repeats *a, *b;
	struct rfl_row_index works; /* model, precision, batch */
	size_t *work_a, *work_b;    /* by configuration */
	size_t *first, *next;       /* of b: lists of one work; SIZE_MAX ends them */
	size_t *first_a, *next_a;   /* the same of a */
	bool *used;                 /* of b */
	struct rfl_comparison *c;
};

/* Do the configurations of a list differ in a fact, as far as they know it? */
static bool varies(const struct rfl_repeats *side, const size_t *next, size_t first,
		   const struct rfl_fact *f)
{
	const struct rfl_ledger_row *known = NULL;

	for (size_t i = first; i != SIZE_MAX; i = next[i]) {
		const struct rfl_ledger_row *row = side->configs[i].row;

		if (!rfl_fact_known(f, row))
			continue;
		if (known && !rfl_fact_same(f, known, row))
			return true;
		known = row;
	}
	return false;
}

static bool agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		  const struct rfl_ledger_row *b)
{
	return rfl_fact_same(f, a, b) || !rfl_fact_known(f, a) || !rfl_fact_known(f, b);
}

/* The configuration of B for one of A; SIZE_MAX: there is none. */
static size_t find_partner(const struct matcher *m, size_t a, const bool must[])
{
	const struct rfl_ledger_row *row = m->a->configs[a].row;

	for (size_t i = m->first[m->work_a[a]]; i != SIZE_MAX; i = m->next[i]) {
		const struct rfl_ledger_row *other = m->b->configs[i].row;
		bool same = !m->used[i] && rfl_facts_comparable(row, other);

		for (size_t k = 0; k < rfl_nfacts && same; k++)
			same = !must[k] || agree(&rfl_facts[k], row, other);
		if (same)
			return i;
	}
	return SIZE_MAX;
}

static enum rfl_rc judge(struct rfl_comparison *c, struct rfl_compared *p, struct rfl_err *err)
{
	const struct rfl_repeats_config *a = p->a, *b = p->b;
	double *values;
	enum rfl_rc rc;

	p->ratio = (struct rfl_speed_ratio){ (double)NAN, (double)NAN, (double)NAN };
	p->verdict = RFL_SPEED_MISSING;
	p->why = !b ? "only in A" : !a ? "only in B" : a->n == 0 ? "no run of A is ok" : "";
	if (a && b && a->n > 0 && b->n == 0)
		p->why = "no run of B is ok";
	if (p->why[0])
		return RFL_OK;
	values = rfl_alloc_array(a->n + b->n, sizeof(*values));
	if (!values)
		return fail_no_memory(err);
	for (size_t i = 0; i < a->n; i++)
		values[i] = a->runs[i].value;
	for (size_t i = 0; i < b->n; i++)
		values[a->n + i] = b->runs[i].value;
	rc = rfl_compare_ratio(values, a->n, values + a->n, b->n, c->metric->speed, &p->ratio, err);
	free(values);
	p->verdict = rfl_compare_verdict(&p->ratio, c->threshold);
	if (isnan(p->ratio.value))
		p->why = "a value is not above 0";
	else if (a->n < 2 || b->n < 2)
		p->why = "one repeat has no spread";
	else if (p->verdict == RFL_SPEED_UNCLEAR)
		p->why = "the interval crosses the threshold";
	return rc;
}

static enum rfl_rc add_pair(struct matcher *m, size_t a, size_t b, struct rfl_err *err)
{
	struct rfl_compared *p = &m->c->pairs[m->c->n++];
	enum rfl_rc rc;

	p->a = a == SIZE_MAX ? NULL : &m->a->configs[a];
	p->b = b == SIZE_MAX ? NULL : &m->b->configs[b];
	if (b != SIZE_MAX)
		m->used[b] = true;
	rc = judge(m->c, p, err);
	m->c->count[p->verdict]++;
	return rc;
}

/* Lists of the configurations of each work, in their order. */
static enum rfl_rc list_works(struct rfl_row_index *works, const struct rfl_repeats *side,
			      size_t *work, size_t *first, size_t *next, size_t nworks,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < nworks; i++)
		first[i] = SIZE_MAX;
	for (size_t i = side->n; i > 0 && rc == RFL_OK; i--) {
		rc = rfl_row_index_put(works, side->configs[i - 1].row, &work[i - 1], err);
		if (rc != RFL_OK)
			break;
		next[i - 1] = first[work[i - 1]];
		first[work[i - 1]] = i - 1;
	}
	return rc;
}

static enum rfl_rc match(struct matcher *m, struct rfl_err *err)
{
	size_t nworks = m->a->n + m->b->n;
	enum rfl_rc rc = list_works(&m->works, m->a, m->work_a, m->first_a, m->next_a, nworks, err);

	if (rc == RFL_OK)
		rc = list_works(&m->works, m->b, m->work_b, m->first, m->next, nworks, err);
	for (size_t i = 0; i < m->a->n && rc == RFL_OK; i++) {
		const size_t work = m->work_a[i];
		bool must[64]; /* more than there are facts */

		for (size_t k = 0; k < rfl_nfacts; k++)
			must[k] = rfl_facts[k].role == RFL_FACT_WAY &&
				  (varies(m->a, m->next_a, m->first_a[work], &rfl_facts[k]) ||
				   varies(m->b, m->next, m->first[work], &rfl_facts[k]));
		rc = add_pair(m, i, find_partner(m, i, must), err);
	}
	for (size_t i = 0; i < m->b->n && rc == RFL_OK; i++)
		if (!m->used[i])
			rc = add_pair(m, SIZE_MAX, i, err);
	return rc;
}

enum rfl_rc rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b, double threshold,
			struct rfl_comparison **ret, struct rfl_err *err)
{
	size_t n = a->n + b->n;
	size_t *room = rfl_alloc_array(6 * n, sizeof(*room));
	struct matcher m = { .a = a, .b = b, .works = { .hash = work_hash, .alike = work_alike } };
	enum rfl_rc rc;

	m.used = rfl_alloc_array(n, sizeof(*m.used));
	m.c = calloc(1, sizeof(*m.c));
	if (m.c)
		m.c->pairs = rfl_alloc_array(n, sizeof(*m.c->pairs));
	if (!room || !m.used || !m.c || !m.c->pairs) {
		rc = fail_no_memory(err);
		goto done;
	}
	m.work_a = room;
	m.work_b = room + n;
	m.first = room + 2 * n;
	m.next = room + 3 * n;
	m.first_a = room + 4 * n;
	m.next_a = room + 5 * n;
	m.c->metric = a->metric;
	m.c->threshold = threshold;
	rc = match(&m, err);
	if (rc == RFL_OK) {
		*ret = m.c;
		m.c = NULL;
	}
done:
	rfl_row_index_fini(&m.works);
	rfl_comparison_free(m.c);
	free(m.used);
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
