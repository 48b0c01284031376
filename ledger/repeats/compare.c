/* compare.c - matches the configurations of two sides and compares their repeats. */
#include "ledger/repeats.h"

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

static const enum rfl_ledger_at work[] = { RFL_LEDGER_AT_model, RFL_LEDGER_AT_precision,
					   RFL_LEDGER_AT_batch };

static uint64_t work_hash(const void *row)
{
	return rfl_ledger_hash(work, RFL_ARRAY_LEN(work), row);
}

static bool work_alike(const void *a, const void *b)
{
	return rfl_ledger_same(work, RFL_ARRAY_LEN(work), a, b);
}

/* The configurations of one side, in linked lists of equal work. */
struct side {
	const struct rfl_repeats *r;
	size_t *work;  /* index of the work of each configuration */
	size_t *first; /* first configuration of each work; SIZE_MAX: none */
	size_t *next;  /* next configuration of equal work; SIZE_MAX: end */
};

static enum rfl_rc list_works(struct rfl_row_index *works, const struct side *s, size_t nworks,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < nworks; i++)
		s->first[i] = SIZE_MAX;
	for (size_t i = s->r->n; i-- > 0 && rc == RFL_OK;) {
		rc = rfl_row_index_put(works, s->r->configs[i].row, &s->work[i], err);
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
		return fail_no_memory(err);
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

enum rfl_rc rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b, double threshold,
			struct rfl_comparison **ret, struct rfl_err *err)
{
	const size_t n = a->n + b->n;
	size_t *room = rfl_alloc_array(6 * n, sizeof(*room));
	bool *used = rfl_alloc_array(n, sizeof(*used)); /* of b */
	struct rfl_comparison *c = calloc(1, sizeof(*c));
	struct rfl_row_index works = { .hash = work_hash, .alike = work_alike };
	enum rfl_rc rc;

	if (c)
		c->pairs = rfl_alloc_array(n, sizeof(*c->pairs));
	if (!room || !used || !c || !c->pairs) {
		rc = fail_no_memory(err);
		goto done;
	}
	c->metric = a->metric;
	c->threshold = threshold;
	const struct side sa = { a, room, room + n, room + 2 * n };
	const struct side sb = { b, room + 3 * n, room + 4 * n, room + 5 * n };

	if ((rc = list_works(&works, &sa, n, err)) || (rc = list_works(&works, &sb, n, err)))
		goto done;
	for (size_t i = 0; i < a->n && rc == RFL_OK; i++) {
		const struct rfl_ledger_row *row = a->configs[i].row;
		const struct rfl_repeats_config *partner = NULL;
		const size_t number = sa.work[i];
		bool must[RFL_FACTS_MAX];

		for (size_t k = 0; k < rfl_nfacts; k++)
			must[k] = rfl_facts[k].role == RFL_FACT_WAY &&
				  (varies(&sa, number, &rfl_facts[k]) ||
				   varies(&sb, number, &rfl_facts[k]));
		for (size_t j = sb.first[number]; j != SIZE_MAX && !partner; j = sb.next[j]) {
			const struct rfl_ledger_row *other = b->configs[j].row;
			bool same = !used[j] && rfl_facts_agree(RFL_FACT_WORK, row, other);

			for (size_t k = 0; k < rfl_nfacts && same; k++)
				same = !must[k] || rfl_fact_agree(&rfl_facts[k], row, other);
			used[j] = used[j] || same;
			partner = same ? &b->configs[j] : NULL;
		}
		rc = add_pair(c, &a->configs[i], partner, err);
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
