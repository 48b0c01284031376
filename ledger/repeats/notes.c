/*
 * notes.c - lines that say which rows of a ledger count in its summary, and why not the
 * others.
 */
#include "ledger/repeats/parts.h"

#include <string.h>

#include "base/text.h"
#include "ledger/facts.h"

#define LINES_MOST  20 /* of one kind */
#define VALUES_MOST 20

/* Is there room for one more line of a kind? */
static bool has_room(size_t *lines)
{
	return ++*lines <= LINES_MOST;
}

static void end_kind(struct rfl_repeats__notes *n, size_t lines, const char *what)
{
	if (lines > LINES_MOST)
		rfl_buf_printf(n->out, "%zu more %s\n", lines - LINES_MOST, what);
}

static const char *label_of(const struct rfl_run *run)
{
	return run->label ? run->label : "(no label)";
}

void rfl_repeats__note_twice(struct rfl_repeats__notes *n, const struct rfl_run *before,
			     const struct rfl_run *last)
{
	if (!has_room(&n->twice))
		return;
	rfl_buf_printf(n->out, "duplicate: %s is ok in ", label_of(last));
	rfl_runs_where(n->runs, before, n->out);
	rfl_buf_puts(n->out, " and in ");
	rfl_runs_where(n->runs, last, n->out);
	rfl_buf_puts(n->out, "; the last counts\n");
}

/* "threads 2 and 4", of the first fact in which two rows differ. */
static void put_difference(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b,
			   struct rfl_buf *out)
{
	char x[RFL_NUM_MAX], y[RFL_NUM_MAX];
	size_t i = 0;

	while (i < rfl_nfacts &&
	       (rfl_facts[i].role == RFL_FACT_NOTE || rfl_fact_same(&rfl_facts[i], a, b)))
		i++;
	if (i == rfl_nfacts) {
		rfl_buf_puts(out, "another config_hash");
		return;
	}
	rfl_buf_printf(out, "%s '%s' and '%s'", rfl_facts[i].name,
		       rfl_field_write(&rfl_ledger_fields[rfl_facts[i].column], a, x),
		       rfl_field_write(&rfl_ledger_fields[rfl_facts[i].column], b, y));
}

void rfl_repeats__note_mixed(struct rfl_repeats__notes *n, const struct rfl_run *a,
			     const struct rfl_run *b)
{
	if (!has_room(&n->mixed))
		return;
	rfl_buf_printf(n->out, "mixed: %s is of two configurations, in ", label_of(b));
	rfl_runs_where(n->runs, a, n->out);
	rfl_buf_puts(n->out, " and in ");
	rfl_runs_where(n->runs, b, n->out);
	rfl_buf_puts(n->out, " (");
	put_difference(a->like, b->like, n->out);
	rfl_buf_puts(n->out, "); they are not averaged\n");
}

void rfl_repeats__note_failed(struct rfl_repeats__notes *n, const struct rfl_run *run)
{
	const struct rfl_ledger_row *row = run->like;

	if (!has_room(&n->failed))
		return;
	rfl_buf_printf(n->out, "failed: %s: %s%s%.300s (", label_of(run),
		       row->status ? row->status : "no status", row->error_text ? ": " : "",
		       row->error_text ? row->error_text : "");
	rfl_runs_where(n->runs, run, n->out);
	rfl_buf_puts(n->out, ")\n");
}

void rfl_repeats__note_outlier(struct rfl_repeats__notes *n, const struct rfl_repeats_config *c,
			       const struct rfl_repeat *run)
{
	if (!has_room(&n->outliers))
		return;
	rfl_buf_printf(n->out, "outlier: %s, %.5g where the median of %zu repeats is %.5g (",
		       label_of(run->run), run->value, c->n, c->stats.median);
	rfl_runs_where(n->runs, run->run, n->out);
	rfl_buf_puts(n->out, "); it counts all the same\n");
}

void rfl_repeats__note_left(struct rfl_repeats__notes *n, enum rfl_repeats__why why,
			    const struct rfl_run *run)
{
	if (n->left[why]++ == 0)
		n->first[why] = run;
}

void rfl_repeats__notes_end(struct rfl_repeats__notes *n)
{
	static const struct {
		const char *what, *why;
	} texts[RFL_REPEATS__WHYS] = {
		[RFL_REPEATS__RANK] = { "row",
					" of single ranks: the row of all processes counts" },
		[RFL_REPEATS__PROFILED] = { "run",
					    " made under a profiler, which slows runs down" },
		[RFL_REPEATS__NO_VALUE] = { "row", " with status ok but without" },
		[RFL_REPEATS__MADE_GOOD] = { "failed attempt", "; a retry succeeded" },
	};

	end_kind(n, n->twice, "rows are duplicates");
	end_kind(n, n->mixed, "labels are of two configurations");
	end_kind(n, n->failed, "runs failed");
	end_kind(n, n->outliers, "repeats are outliers");
	for (size_t i = 0; i < RFL_REPEATS__WHYS; i++) {
		if (n->left[i] == 0)
			continue;
		rfl_buf_printf(n->out, "skipped %zu %s%s%s", n->left[i], texts[i].what,
			       n->left[i] == 1 ? "" : "s", texts[i].why);
		if (i == RFL_REPEATS__NO_VALUE)
			rfl_buf_printf(n->out, " %s", n->metric->name);
		rfl_buf_puts(n->out, " (first: ");
		rfl_runs_where(n->runs, n->first[i], n->out);
		rfl_buf_puts(n->out, ")\n");
	}
}

void rfl_repeats__list_values(const struct rfl_runs *runs, enum rfl_ledger_at column,
			      const char *asked, struct rfl_buf *out)
{
	const char *seen[VALUES_MOST + 1], *near;
	char number[RFL_NUM_MAX];
	size_t n = 0;

	for (size_t i = 0; i < runs->likes.n && n < VALUES_MOST; i++) {
		const char *text =
			rfl_field_write(&rfl_ledger_fields[column], runs->likes.rows[i], number);
		size_t k = 0;

		while (k < n && strcmp(seen[k], text) != 0)
			k++;
		if (k < n || !*text)
			continue;
		rfl_buf_printf(out, "%s%s", n ? ", " : "", text);
		seen[n++] = text;
	}
	seen[n] = NULL;
	near = rfl_text_nearest(asked, seen);
	rfl_buf_puts(out, n ? ")" : "none)");
	if (near)
		rfl_buf_printf(out, "; did you mean '%s'?", near);
}
