/* compare.c - matches the configurations of two sides, or those that differ in one field, and
 * compares their repeats. */
#include "ledger/repeats.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "ledger/facts.h"
#include "ledger/repeats/row_index.h"

const char *const rfl_speed_verdict_names[] = { "same",    "faster",  "slower",
						"unclear", "missing", NULL };

static struct rfl_stats logs_of(const double *values, size_t n)
{
	RFL_AUTOFREE double *logs = rfl_alloc_array(n, sizeof(*logs));
	struct rfl_stats stats;

	for (size_t i = 0; i < n; i++)
		logs[i] = values[i] > 0 && isfinite(values[i]) ? log(values[i]) : (double)NAN;
	stats = rfl_stats_of(logs, n);
	return stats;
}

struct rfl_speed_ratio rfl_compare_ratio(const double *a, size_t na, const double *b, size_t nb,
					 int speed)
{
	const struct rfl_stats sa = logs_of(a, na), sb = logs_of(b, nb);
	const struct rfl_stats_difference d =
		speed > 0 ? rfl_stats_welch(&sa, &sb) : rfl_stats_welch(&sb, &sa);

	return (struct rfl_speed_ratio){ exp(d.value), exp(d.lo), exp(d.hi) };
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

/* How each field is matched: BOTH must agree, others must agree where they vary on one side,
 * NEITHER is ignored. */
struct match {
	enum rfl_identity as[RFL_FACTS_MAX];
	enum rfl_ledger_at keys[4]; /* columns that must agree and that every configuration has */
	size_t nkeys;
};

static struct match match_of(const struct rfl_fact *by)
{
	static const enum rfl_ledger_at always[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						     RFL_LEDGER_AT_precision, RFL_LEDGER_AT_batch };
	/* another machine may also differ in how it computes */
	const bool strict = by && by->column != RFL_LEDGER_AT_env &&
			    by->column != RFL_LEDGER_AT_backend &&
			    by->column != RFL_LEDGER_AT_device_name;
	struct match m = { .nkeys = 0 };

	for (size_t k = 0; k < rfl_nfacts; k++) {
		const enum rfl_ledger_at column = rfl_facts[k].column;

		m.as[k] = rfl_facts[k].identity & RFL_IDENTITY_BOTH;
		if (strict && m.as[k] && column != RFL_LEDGER_AT_warmup &&
		    column != RFL_LEDGER_AT_iters && column != RFL_LEDGER_AT_epochs)
			m.as[k] = RFL_IDENTITY_BOTH;
		if (by && rfl_fact_follows(&rfl_facts[k], by->column))
			m.as[k] = RFL_IDENTITY_SPEED;
		if (by && by->column == column)
			m.as[k] = RFL_IDENTITY_NEITHER;
		for (size_t i = 0; i < RFL_ARRAY_LEN(always); i++)
			if (always[i] == column && m.as[k] == RFL_IDENTITY_BOTH)
				m.keys[m.nkeys++] = column;
	}
	return m;
}

/* A configuration with the number of its side or of its value of `by`. */
struct entry {
	const struct match *match;
	const struct rfl_repeats_config *config;
	size_t value;
};

static uint64_t entry_hash(const void *item)
{
	const struct entry *e = item;

	return 31 * rfl_ledger_hash(e->match->keys, e->match->nkeys, e->config->row) + e->value;
}

static bool entries_alike(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	return a->value == b->value &&
	       rfl_ledger_same(a->match->keys, a->match->nkeys, a->config->row, b->config->row);
}

/* Linked lists of configurations with equal keys and values; each list is one work. */
struct pool {
	struct match match;
	struct rfl_arena *arena; /* owns the arrays, which have one element per configuration */
	size_t n;
	struct entry *entries;
	struct rfl_row_index works;
	size_t *work;  /* number of the work of each configuration */
	size_t *first; /* first configuration of each work */
	size_t *next;  /* next configuration of a work; SIZE_MAX: end */
	bool *used;
	struct rfl_comparison *c;
};

static void pool_init(struct pool *p, const struct rfl_repeats *r, size_t n,
		      const struct rfl_fact *by, double threshold)
{
	*p = (struct pool){ .match = match_of(by),
			    .arena = rfl_arena_new(),
			    .n = n,
			    .works = { .hash = entry_hash, .alike = entries_alike },
			    .c = rfl_alloc_array(1, sizeof(*p->c)) };
	p->entries = rfl_arena_array(p->arena, n, sizeof(*p->entries));
	p->work = rfl_arena_array(p->arena, n, sizeof(*p->work));
	p->first = rfl_arena_array(p->arena, n, sizeof(*p->first));
	p->next = rfl_arena_array(p->arena, n, sizeof(*p->next));
	p->used = rfl_arena_array(p->arena, n, sizeof(*p->used));
	p->c->pairs = rfl_alloc_array(n, sizeof(*p->c->pairs));
	p->c->metric = r->metric;
	p->c->threshold = threshold;
	p->c->by = by;
}

static void pool_link(struct pool *p)
{
	for (size_t i = p->n; i-- > 0;) {
		const size_t nworks = p->works.n;

		p->work[i] = rfl_row_index_put(&p->works, &p->entries[i]);
		p->next[i] = p->work[i] < nworks ? p->first[p->work[i]] : SIZE_MAX;
		p->first[p->work[i]] = i;
	}
}

/* Release all but the comparison, which is returned. */
static struct rfl_comparison *pool_fini(struct pool *p)
{
	rfl_row_index_fini(&p->works);
	rfl_arena_free(p->arena);
	return p->c;
}

/* Return true if configurations of a work are known to differ in a field. */
static bool varies(const struct pool *p, size_t work, const struct rfl_fact *f)
{
	const struct rfl_ledger_row *known = NULL;

	for (size_t i = p->first[work]; i != SIZE_MAX; i = p->next[i]) {
		const struct rfl_ledger_row *row = p->entries[i].config->row;

		if (!rfl_fact_known(f, row))
			continue;
		if (known && !rfl_fact_same(f, known, row))
			return true;
		known = row;
	}
	return false;
}

/* Return the configuration with another value that matches configuration i. SIZE_MAX: none
 * @param once  skip used configurations */
static size_t partner_of(const struct pool *p, size_t i, size_t value, bool once)
{
	const struct entry key = { &p->match, p->entries[i].config, value };
	const size_t work = rfl_row_index_find(&p->works, &key);
	const unsigned identity = rfl_facts_identity(key.config->row);
	bool must[RFL_FACTS_MAX];

	if (work == SIZE_MAX)
		return SIZE_MAX;
	for (size_t k = 0; k < rfl_nfacts; k++)
		must[k] = (rfl_facts[k].identity & identity) && p->match.as[k] &&
			  (p->match.as[k] == RFL_IDENTITY_BOTH ||
			   varies(p, p->work[i], &rfl_facts[k]) || varies(p, work, &rfl_facts[k]));
	for (size_t j = p->first[work]; j != SIZE_MAX; j = p->next[j]) {
		bool same = !once || !p->used[j];

		for (size_t k = 0; k < rfl_nfacts && same; k++)
			same = !must[k] || rfl_fact_agree(&rfl_facts[k], key.config->row,
							  p->entries[j].config->row);
		if (same)
			return j;
	}
	return SIZE_MAX;
}

static void add_pair(struct rfl_comparison *c, const struct rfl_repeats_config *a,
		     const struct rfl_repeats_config *b)
{
	struct rfl_compared *p = &c->pairs[c->n++];
	RFL_AUTOFREE double *values = NULL;

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
		return;
	}
	values = rfl_alloc_array(a->n + b->n, sizeof(*values));
	for (size_t i = 0; i < a->n; i++)
		values[i] = a->runs[i].value;
	for (size_t i = 0; i < b->n; i++)
		values[a->n + i] = b->runs[i].value;
	p->ratio = rfl_compare_ratio(values, a->n, values + a->n, b->n, c->metric->speed);
	p->verdict = rfl_compare_verdict(&p->ratio, c->threshold);
	if (isnan(p->ratio.value))
		p->why = "a value is not positive";
	else if (a->n < 2 || b->n < 2)
		p->why = "a single repeat has no spread";
	else if (p->verdict == RFL_SPEED_UNCLEAR)
		p->why = "the interval includes the threshold";
	c->count[p->verdict]++;
}

struct rfl_comparison *rfl_compare(const struct rfl_repeats *a, const struct rfl_repeats *b,
				   double threshold)
{
	struct pool p;

	pool_init(&p, a, a->n + b->n, NULL, threshold);
	for (size_t i = 0; i < p.n; i++)
		p.entries[i] = i < a->n ? (struct entry){ &p.match, &a->configs[i], 0 }
					: (struct entry){ &p.match, &b->configs[i - a->n], 1 };
	pool_link(&p);
	for (size_t i = 0; i < a->n; i++) {
		const size_t j = partner_of(&p, i, 1, true);

		if (j != SIZE_MAX)
			p.used[j] = true;
		add_pair(p.c, &a->configs[i], j != SIZE_MAX ? p.entries[j].config : NULL);
	}
	for (size_t j = a->n; j < p.n; j++)
		if (!p.used[j])
			add_pair(p.c, NULL, p.entries[j].config);
	return pool_fini(&p);
}

/* The values of `by`. */
struct values {
	struct rfl_texts texts;             /* numbered as they appear */
	const struct rfl_ledger_row **rows; /* a row with each value */
};

/* Whether one configuration is slower than another. False if the speed of one is unknown. */
static bool is_slower(const struct pool *p, const struct entry *a, const struct entry *b)
{
	return p->c->metric->speed * (a->config->stats.mean - b->config->stats.mean) < 0;
}

/* The index of the value that occurs in the most works together with another value. In a tie: the
 * smallest number, or the text that is the slowest in the most works. */
static size_t choose(const struct pool *p, const struct values *v)
{
	const struct rfl_field *f = &rfl_ledger_fields[p->c->by->column];
	RFL_AUTO(row_index) works = { .hash = entry_hash, .alike = entries_alike };
	struct entry *plain = rfl_arena_array(p->arena, p->n, sizeof(*plain)); /* without value */
	size_t *work = rfl_arena_array(p->arena, p->n, sizeof(*work));
	size_t *nvalues = rfl_arena_array(p->arena, p->n, sizeof(*nvalues)); /* of a work */
	size_t *shared = rfl_arena_array(p->arena, p->n, sizeof(*shared));   /* works of a value */
	size_t *slow = rfl_arena_array(p->arena, p->n, sizeof(*slow));       /* works of a text */
	const struct entry **slowest = rfl_arena_array(p->arena, p->n, sizeof(struct entry *));
	size_t best = 0;

	for (size_t i = 0; i < p->n; i++) {
		plain[i] = (struct entry){ &p->match, p->entries[i].config, 0 };
		work[i] = rfl_row_index_put(&works, &plain[i]);
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < p->n; i++) {
			if (p->entries[i].value == SIZE_MAX || p->first[p->work[i]] != i)
				continue;
			if (pass == 0) {
				const struct entry **to = &slowest[work[i]];

				*to = !nvalues[work[i]]++ || is_slower(p, &p->entries[i], *to)
					      ? &p->entries[i]
					      : *to;
			} else if (nvalues[work[i]] > 1) {
				shared[p->entries[i].value]++;
				slow[p->entries[i].value] += slowest[work[i]] == &p->entries[i];
			}
		}
	for (size_t i = 1; i < v->texts.index.n; i++)
		if (shared[i] > shared[best] ||
		    (shared[i] == shared[best] &&
		     (f->kind == RFL_FIELD_TEXT ? slow[i] > slow[best]
						: rfl_field_number(f, v->rows[i]) <
							  rfl_field_number(f, v->rows[best]))))
			best = i;
	return best;
}

enum rfl_rc rfl_compare_by(const struct rfl_repeats *r, const struct rfl_fact *by,
			   const char *baseline, double threshold, struct rfl_comparison **ret,
			   struct rfl_err *err)
{
	const struct rfl_field *f = &rfl_ledger_fields[by->column];
	struct values values = { .rows = NULL };
	size_t *partner = NULL, base = 0;
	struct pool p;
	enum rfl_rc rc = RFL_OK;

	pool_init(&p, r, r->n, by, threshold);
	partner = rfl_arena_array(p.arena, p.n, sizeof(*partner));
	values.rows = rfl_arena_array(p.arena, p.n, sizeof(const struct rfl_ledger_row *));
	for (size_t i = 0; i < p.n; i++) {
		struct entry *e = &p.entries[i];
		char number[RFL_NUM_MAX];

		*e = (struct entry){ &p.match, &r->configs[i], SIZE_MAX };
		if (!rfl_fact_known(by, e->config->row)) {
			p.c->unknown++;
			continue;
		}
		e->value = rfl_texts_put(&values.texts, rfl_field_write(f, e->config->row, number));
		values.rows[e->value] = e->config->row;
	}
	pool_link(&p);
	if (values.texts.index.n < 2) {
		rc = rfl_fail(err, RFL_EFAILED, 0,
			      "all runs have %s %s; name more ledgers, or another column", by->name,
			      values.texts.index.n ? (const char *)values.texts.index.rows[0]
						   : "unknown");
		goto done;
	}
	if (!baseline)
		base = choose(&p, &values);
	else if ((base = rfl_row_index_find(&values.texts.index, baseline)) == SIZE_MAX)
		rc = rfl_texts_unknown(&values.texts, by->name, baseline, err);
	if (rc)
		goto done;
	p.c->baseline = values.rows[base];
	for (size_t i = 0; i < p.n; i++) {
		const size_t value = p.entries[i].value;

		partner[i] = value == SIZE_MAX || value == base ? SIZE_MAX
								: partner_of(&p, i, base, false);
		if (partner[i] != SIZE_MAX)
			p.used[i] = p.used[partner[i]] = true;
	}
	for (size_t i = 0; i < p.n; i++) {
		if (partner[i] != SIZE_MAX)
			add_pair(p.c, p.entries[partner[i]].config, &r->configs[i]);
		else
			p.c->alone += !p.used[i] && p.entries[i].value != SIZE_MAX;
	}
done:
	rfl_texts_fini(&values.texts);
	if (rc)
		rfl_comparison_free(pool_fini(&p));
	else
		*ret = pool_fini(&p);
	return rc;
}

void rfl_comparison_free(struct rfl_comparison *c)
{
	if (!c)
		return;
	free(c->pairs);
	free(c);
}
