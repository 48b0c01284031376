/*
 * compare_table.c - a comparison as a table, and what else differs between the two sides.
 */
#include "ledger/repeats/compare.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ledger/facts.h"

#define DIGITS 5

static const struct rfl_column results[] = {
	{ .key = "n_a", .title = "n A", .kind = RFL_COLUMN_INT },
	{ .key = "geomean_a", .title = "Geomean A", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "n_b", .title = "n B", .kind = RFL_COLUMN_INT },
	{ .key = "geomean_b", .title = "Geomean B", .kind = RFL_COLUMN_REAL, .digits = DIGITS },
	{ .key = "ratio", .title = "B : A", .kind = RFL_COLUMN_REAL, .decimals = 3 },
	{ .key = "ratio_lo", .title = "from", .kind = RFL_COLUMN_REAL, .decimals = 3 },
	{ .key = "ratio_hi", .title = "to", .kind = RFL_COLUMN_REAL, .decimals = 3 },
	{ .key = "verdict", .title = "Verdict", .kind = RFL_COLUMN_TEXT },
	{ .key = "why", .title = "Why", .kind = RFL_COLUMN_TEXT },
};

struct layout {
	bool people;
	size_t nfacts;
	const struct rfl_fact *facts[64]; /* more than there are */
	size_t ncolumns;
	struct rfl_column columns[96];
};

/* --- which facts ----------------------------------------------------------------------------- */

static const struct rfl_ledger_row *row_of(const struct rfl_compared *p)
{
	return (p->a ? p->a : p->b)->row;
}

/* Is a fact known on one side, and do configurations differ in it? */
static bool is_telling(const struct rfl_comparison *c, const struct rfl_fact *f, bool *known)
{
	const struct rfl_ledger_row *first = NULL;
	bool varies = false;

	*known = false;
	for (size_t i = 0; i < c->n; i++) {
		const struct rfl_ledger_row *row = row_of(&c->pairs[i]);

		if (!rfl_fact_known(f, row))
			continue;
		*known = true;
		varies = varies || (first && !rfl_fact_same(f, first, row));
		first = row;
	}
	return varies;
}

static bool is_shown(const struct rfl_comparison *c, const struct rfl_fact *f, bool people)
{
	bool known, varies = is_telling(c, f, &known);

	if (f->role == RFL_FACT_WORK && !people)
		return true;
	if (f->role == RFL_FACT_NOTE || f->column == RFL_LEDGER_AT_micro_batch)
		return false;
	if (f->column == RFL_LEDGER_AT_model || f->column == RFL_LEDGER_AT_precision ||
	    f->column == RFL_LEDGER_AT_batch)
		return true;
	return people && known && varies;
}

static void choose_columns(const struct rfl_comparison *c, struct layout *l)
{
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_fact *f = &rfl_facts[i];

		if (!is_shown(c, f, l->people))
			continue;
		l->facts[l->nfacts++] = f;
		l->columns[l->ncolumns++] = (struct rfl_column){
			.key = f->name,
			.title = f->title,
			.kind = rfl_ledger_fields[f->column].kind == RFL_FIELD_INT
					? RFL_COLUMN_INT
					: RFL_COLUMN_TEXT,
		};
	}
	if (!l->people) {
		l->columns[l->ncolumns++] = (struct rfl_column){ .key = "env_a", .title = "env_a" };
		l->columns[l->ncolumns++] = (struct rfl_column){ .key = "env_b", .title = "env_b" };
		l->columns[l->ncolumns++] =
			(struct rfl_column){ .key = "metric", .title = "metric" };
	}
	memcpy(&l->columns[l->ncolumns], results, sizeof(results));
	l->ncolumns += RFL_ARRAY_LEN(results);
	if (!l->people)
		l->columns[l->ncolumns++] =
			(struct rfl_column){ .key = "differences", .title = "differences" };
}

/* --- what differs ---------------------------------------------------------------------------- */

/* Facts that both know, and in which a pair that can be compared differs. */
static bool differs(const struct rfl_compared *p, const struct rfl_fact *f)
{
	return p->a && p->b && f->role != RFL_FACT_WORK &&
	       !rfl_fact_same(f, p->a->row, p->b->row) && rfl_fact_known(f, p->a->row) &&
	       rfl_fact_known(f, p->b->row);
}

static void put_difference(const struct rfl_compared *p, const struct rfl_fact *f,
			   struct rfl_buf *out)
{
	char x[RFL_NUM_MAX], y[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s %s -> %s", f->name,
		       rfl_field_write(&rfl_ledger_fields[f->column], p->a->row, x),
		       rfl_field_write(&rfl_ledger_fields[f->column], p->b->row, y));
}

static void put_differences(struct rfl_table *t, const struct rfl_compared *p)
{
	struct rfl_buf list;

	rfl_buf_init(&list, 0);
	for (size_t i = 0; i < rfl_nfacts; i++)
		if (differs(p, &rfl_facts[i])) {
			rfl_buf_puts(&list, list.len ? "; " : "");
			put_difference(p, &rfl_facts[i], &list);
		}
	rfl_table_text(t, list.len ? rfl_buf_str(&list) : NULL);
	rfl_buf_fini(&list);
}

/* "differs: threads 2 -> 4 (9 of 9)", a line for each fact. */
static void note_differences(struct rfl_table *t, const struct rfl_comparison *c)
{
	size_t pairs = 0;

	for (size_t i = 0; i < c->n; i++)
		pairs += c->pairs[i].a && c->pairs[i].b;
	for (size_t k = 0; k < rfl_nfacts; k++) {
		const struct rfl_compared *first = NULL;
		struct rfl_buf text;
		size_t n = 0;
		bool alike = true;

		for (size_t i = 0; i < c->n; i++) {
			const struct rfl_compared *p = &c->pairs[i];

			if (!differs(p, &rfl_facts[k]))
				continue;
			first = first ? first : p;
			alike = alike && rfl_fact_same(&rfl_facts[k], first->a->row, p->a->row) &&
				rfl_fact_same(&rfl_facts[k], first->b->row, p->b->row);
			n++;
		}
		if (!first)
			continue;
		rfl_buf_init(&text, 0);
		put_difference(first, &rfl_facts[k], &text);
		rfl_table_note(t, "differs: %s (%zu of %zu%s)", rfl_buf_str(&text), n, pairs,
			       alike ? "" : ", in several ways; the first");
		rfl_buf_fini(&text);
	}
}

/* --- rows ------------------------------------------------------------------------------------ */

/* What the ratio is of; NaN where a value is not above 0. */
static double geometric_mean(const struct rfl_repeats_config *c)
{
	double sum = 0;

	for (size_t i = 0; i < c->n; i++)
		sum += c->runs[i].value > 0 ? log(c->runs[i].value) : (double)NAN;
	return c->n ? exp(sum / (double)c->n) : (double)NAN;
}

static void put_side(struct rfl_table *t, const struct rfl_repeats_config *c)
{
	if (!c) {
		rfl_table_null(t);
		rfl_table_null(t);
		return;
	}
	rfl_table_int(t, (int64_t)c->n);
	rfl_table_real(t, geometric_mean(c));
}

static void put_row(struct rfl_table *t, const struct rfl_comparison *c, const struct layout *l,
		    const struct rfl_compared *p)
{
	const struct rfl_ledger_row *row = row_of(p);
	char number[RFL_NUM_MAX];

	for (size_t k = 0; k < l->nfacts; k++) {
		const struct rfl_fact *f = l->facts[k];

		if (!rfl_fact_known(f, row))
			rfl_table_null(t);
		else if (rfl_ledger_fields[f->column].kind == RFL_FIELD_INT)
			rfl_table_int(
				t, (int64_t)rfl_field_number(&rfl_ledger_fields[f->column], row));
		else
			rfl_table_text(t,
				       rfl_field_write(&rfl_ledger_fields[f->column], row, number));
	}
	if (!l->people) {
		rfl_table_text(t, p->a ? p->a->row->env : NULL);
		rfl_table_text(t, p->b ? p->b->row->env : NULL);
		rfl_table_text(t, c->metric->name);
	}
	put_side(t, p->a);
	put_side(t, p->b);
	rfl_table_real(t, p->ratio.value);
	rfl_table_real(t, p->ratio.lo);
	rfl_table_real(t, p->ratio.hi);
	rfl_table_text(t, rfl_speed_verdict_names[p->verdict]);
	rfl_table_text(t, p->why[0] ? p->why : NULL);
	if (!l->people)
		put_differences(t, p);
}

static void put_notes(struct rfl_table *t, const struct rfl_comparison *c,
		      const char *const names[2], const char *lines)
{
	rfl_table_note(t,
		       "A: %s; B: %s; %s, geometric means; B : A is B's speed over A's, with its "
		       "95 %% interval; threshold %g %%",
		       names[0], names[1], c->metric->title, 100 * c->threshold);
	rfl_table_note(t, "%zu same, %zu faster, %zu slower, %zu unclear, %zu missing on one side",
		       c->count[RFL_SPEED_SAME], c->count[RFL_SPEED_FASTER],
		       c->count[RFL_SPEED_SLOWER], c->count[RFL_SPEED_UNCLEAR],
		       c->count[RFL_SPEED_MISSING]);
	note_differences(t, c);
	rfl_table_note_lines(t, lines);
}

enum rfl_rc rfl_comparison_table(const struct rfl_comparison *c, enum rfl_format format,
				 const char *const names[2], const char *lines, struct rfl_buf *out,
				 struct rfl_err *err)
{
	struct layout l = { .people = format == RFL_FORMAT_TABLE || format == RFL_FORMAT_MD };
	struct rfl_table *t;
	enum rfl_rc rc;

	choose_columns(c, &l);
	t = rfl_table_new(l.columns, l.ncolumns);
	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "compare: out of memory");
	for (size_t i = 0; i < c->n; i++)
		put_row(t, c, &l, &c->pairs[i]);
	put_notes(t, c, names, lines);
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
