/*
 * groups.c - sorts the rows of ledgers into configurations, decides which of them count, and notes
 * why the others do not. The statistics are in repeats/describe.c.
 */
#include "ledger/repeats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/label.h"
#include "ledger/repeats/parts.h"
#include "ledger/repeats/row_index.h"

#define LINES_MOST  20 /* of one kind */
#define VALUES_MOST 20

/* --- notes ----------------------------------------------------------------------------------- */

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

static void note_twice(struct rfl_repeats__notes *n, const struct rfl_run *before,
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

static void note_mixed(struct rfl_repeats__notes *n, const struct rfl_run *a,
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

static void note_failed(struct rfl_repeats__notes *n, const struct rfl_run *run)
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

static void note_left(struct rfl_repeats__notes *n, enum rfl_repeats__why why,
		      const struct rfl_run *run)
{
	if (n->left[why]++ == 0)
		n->first[why] = run;
}

/* What was only counted. */
static void end_notes(struct rfl_repeats__notes *n)
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

/* The values of a text column, each once, at most 20, and the nearest to one that is not among
 * them: "lab_cpu, lab_gpu); did you mean 'lab_cpu'?". */
static void list_values(const struct rfl_runs *runs, enum rfl_ledger_at column, const char *asked,
			struct rfl_buf *out)
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

/* --- rows ------------------------------------------------------------------------------------ */

/* A run that is ok. */
struct entry {
	const struct rfl_run *run;
	size_t config;
	size_t before; /* the one before it with the same label, not replaced; SIZE_MAX: none */
	bool replaced; /* by a later row of the same run */
};

struct builder {
	const struct rfl_runs *runs;
	const struct rfl_repeats_options *o;
	struct rfl_row_index configs, labels;
	size_t nentries;
	struct entry *entries;
	size_t *last;   /* by number of a label: its last entry; SIZE_MAX: none */
	size_t *failed; /* by number of a configuration */
	struct rfl_repeats__notes notes;
	struct rfl_repeats *r;
};

static enum rfl_rc fail_no_memory(struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "summary of runs: out of memory");
}

/* --- labels ---------------------------------------------------------------------------------- */

static uint64_t label_hash(const void *item)
{
	const struct rfl_run *run = item;

	return rfl_hash64((uint64_t)run->repeat, run->label, rfl_label_unstamped(run->label));
}

/* The same but for the time in the name of a log. Labels of others may leave the number of the
 * repeat to a column of its own. */
static bool label_alike(const void *x, const void *y)
{
	const struct rfl_run *a = x, *b = y;
	size_t n = rfl_label_unstamped(a->label);

	return a->repeat == b->repeat && n == rfl_label_unstamped(b->label) &&
	       memcmp(a->label, b->label, n) == 0;
}

/* Does the label name one run, and not all repeats of a configuration? */
static bool names_a_run(const struct rfl_run *run)
{
	return run->label && run->label[0] && run->repeat >= 0;
}

/* Does the label by itself say which run it is? "baseline" does not. */
static bool label_tells_run(const struct rfl_run *run)
{
	struct rfl_label parts;

	rfl_label_parse(run->label, run->like->model, &parts);
	return parts.run >= 0;
}

static bool is_profiled(const struct rfl_run *run)
{
	struct rfl_label parts;

	if (!run->label || !strstr(run->label, "_prof"))
		return false;
	rfl_label_parse(run->label, run->like->model, &parts);
	return parts.profiled;
}

/* --- configurations of rows ------------------------------------------------------------------ */

static uint64_t config_hash(const void *row)
{
	return rfl_facts_hash(row);
}

static bool config_alike(const void *a, const void *b)
{
	return rfl_facts_repeats(a, b);
}

/* --- which rows ------------------------------------------------------------------------------ */

static bool is_in(const char *text, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (rfl_text_same(text, list[i]))
			return true;
	return n == 0;
}

static bool is_wanted(const struct rfl_repeats_options *o, const struct rfl_ledger_row *row)
{
	return is_in(row->env, o->envs, o->nenvs) && is_in(row->model, o->models, o->nmodels) &&
	       is_in(row->precision, o->precisions, o->nprecisions);
}

static enum rfl_rc check_row(const struct builder *b, const struct rfl_run *run,
			     struct rfl_err *err)
{
	const struct rfl_ledger_row *row = run->like;
	const char *empty = NULL;
	struct rfl_buf where;

	if (!row->env)
		empty = "env";
	else if (!row->model)
		empty = "model";
	else if (!row->precision)
		empty = "precision";
	else if (row->batch < 1)
		empty = "batch";
	if (!empty)
		return RFL_OK;
	rfl_buf_init(&where, 0);
	rfl_runs_where(b->runs, run, &where);
	(void)rfl_fail(err, RFL_EFORMAT, 0, "%s: column '%s' is empty; runs with status ok need it",
		       rfl_buf_str(&where), empty);
	rfl_buf_fini(&where);
	return RFL_EFORMAT;
}

/* The newest entry of its label takes the place of the one in the same configuration. */
static void replace_before(struct builder *b, struct entry *e)
{
	size_t *at = &e->before;

	while (*at != SIZE_MAX && b->entries[*at].config != e->config)
		at = &b->entries[*at].before;
	if (*at != SIZE_MAX) {
		struct entry *old = &b->entries[*at];

		old->replaced = true;
		*at = old->before;
		note_twice(&b->notes, old->run, e->run);
	} else if (e->before != SIZE_MAX && label_tells_run(e->run)) {
		note_mixed(&b->notes, b->entries[e->before].run, e->run);
	}
}

/* A run of a configuration that is ok. */
static enum rfl_rc add_entry(struct builder *b, const struct rfl_run *run, struct rfl_err *err)
{
	struct entry *e = &b->entries[b->nentries];
	size_t label;
	enum rfl_rc rc;

	*e = (struct entry){ .run = run, .before = SIZE_MAX };
	rc = rfl_row_index_put(&b->configs, run->like, &e->config, err);
	if (rc == RFL_OK && names_a_run(run)) {
		rc = rfl_row_index_put(&b->labels, run, &label, err);
		if (rc != RFL_OK)
			return rc;
		e->before = b->last[label];
		b->last[label] = b->nentries;
		replace_before(b, e);
	}
	b->nentries += rc == RFL_OK;
	return rc;
}

static enum rfl_rc take_run(struct builder *b, const struct rfl_run *run, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = run->like;
	enum rfl_rc rc;

	if (row->world_size > 1 && row->rank >= 0) {
		note_left(&b->notes, RFL_REPEATS__RANK, run);
		return RFL_OK;
	}
	if (is_profiled(run)) {
		note_left(&b->notes, RFL_REPEATS__PROFILED, run);
		return RFL_OK;
	}
	if (!rfl_text_same(row->status, "ok"))
		return RFL_OK; /* when it is known which runs are ok in another row */
	rc = check_row(b, run, err);
	if (rc != RFL_OK)
		return rc;
	if (isnan(run->value)) {
		note_left(&b->notes, RFL_REPEATS__NO_VALUE, run);
		return RFL_OK;
	}
	return add_entry(b, run, err);
}

static bool is_failed(const struct rfl_run *run)
{
	const struct rfl_ledger_row *row = run->like;

	return !rfl_text_same(row->status, "ok") && !(row->world_size > 1 && row->rank >= 0) &&
	       !is_profiled(run);
}

/* Is the run of a row that is not ok there once more, and ok? The label alone does not say so: it
 * may have been run in another way, with other threads say. */
static bool is_made_good(const struct builder *b, const struct rfl_run *run)
{
	size_t label = names_a_run(run) ? rfl_row_index_find(&b->labels, run) : SIZE_MAX;
	size_t i = label == SIZE_MAX ? SIZE_MAX : b->last[label];

	while (i != SIZE_MAX && !rfl_facts_agree(b->entries[i].run->like, run->like))
		i = b->entries[i].before;
	return i != SIZE_MAX;
}

/* The configuration of a run that is not ok. One that ended early may not know all of it: then the
 * first with which it agrees in what it does know. */
static enum rfl_rc config_of_failed(struct builder *b, const struct rfl_ledger_row *row,
				    size_t *ret, struct rfl_err *err)
{
	*ret = rfl_row_index_find(&b->configs, row);
	for (size_t i = 0; *ret == SIZE_MAX && i < b->configs.n; i++) {
		const struct rfl_ledger_row *other = b->configs.rows[i];

		if (other->batch == row->batch && rfl_facts_agree(other, row))
			*ret = i;
	}
	return *ret == SIZE_MAX ? rfl_row_index_put(&b->configs, row, ret, err) : RFL_OK;
}

static enum rfl_rc take_failed(struct builder *b, const struct rfl_run *run, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = run->like;
	size_t config;
	enum rfl_rc rc;

	if (is_made_good(b, run)) {
		note_left(&b->notes, RFL_REPEATS__MADE_GOOD, run);
		return RFL_OK;
	}
	note_failed(&b->notes, run);
	if (!row->env || !row->model || !row->precision || row->batch < 1)
		return RFL_OK; /* it ended before it said what it was */
	rc = config_of_failed(b, row, &config, err);
	if (rc == RFL_OK)
		b->failed[config]++;
	return rc;
}

/* --- filters --------------------------------------------------------------------------------- */

/* Whatever was asked for must be in the ledgers, with whatever status. */
static enum rfl_rc check_filter(const struct builder *b, enum rfl_ledger_at column,
				const char *const *list, size_t n, struct rfl_err *err)
{
	const struct rfl_row_index *likes = &b->runs->likes;
	char number[RFL_NUM_MAX];

	for (size_t k = 0; k < n; k++) {
		struct rfl_buf there;
		size_t i = 0;

		while (i < likes->n &&
		       strcmp(rfl_field_write(&rfl_ledger_fields[column], likes->rows[i], number),
			      list[k]) != 0)
			i++;
		if (i < likes->n)
			continue;
		rfl_buf_init(&there, 1 << 16);
		list_values(b->runs, column, list[k], &there);
		(void)rfl_fail(err, RFL_ENOTFOUND, 0, "%s: no run has %s '%s' (known: %s",
			       b->runs->files[0].path, rfl_ledger_fields[column].name, list[k],
			       rfl_buf_str(&there));
		rfl_buf_fini(&there);
		return RFL_ENOTFOUND;
	}
	return RFL_OK;
}

static enum rfl_rc check_filters(const struct builder *b, struct rfl_err *err)
{
	const struct rfl_repeats_options *o = b->o;
	enum rfl_rc rc = check_filter(b, RFL_LEDGER_AT_env, o->envs, o->nenvs, err);

	if (rc == RFL_OK)
		rc = check_filter(b, RFL_LEDGER_AT_model, o->models, o->nmodels, err);
	if (rc == RFL_OK)
		rc = check_filter(b, RFL_LEDGER_AT_precision, o->precisions, o->nprecisions, err);
	return rc;
}

/* --- configurations -------------------------------------------------------------------------- */

/* Hand every configuration its runs, in the order of the rows. */
static enum rfl_rc fill_configs(struct builder *b, struct rfl_err *err)
{
	struct rfl_repeats *r = b->r;
	size_t used = 0;

	r->n = b->configs.n;
	r->configs = rfl_alloc_array(r->n, sizeof(*r->configs));
	r->runs = rfl_alloc_array(b->nentries, sizeof(*r->runs));
	if (!r->configs || !r->runs)
		return fail_no_memory(err);
	for (size_t i = 0; i < b->nentries; i++)
		if (!b->entries[i].replaced)
			r->configs[b->entries[i].config].n++;
	for (size_t i = 0; i < r->n; i++) {
		r->configs[i].row = b->configs.rows[i];
		r->configs[i].failed = b->failed[i];
		r->configs[i].runs = &r->runs[used];
		used += r->configs[i].n;
		r->configs[i].n = 0;
	}
	for (size_t i = 0; i < b->nentries; i++) {
		const struct entry *e = &b->entries[i];
		struct rfl_repeats_config *c = &r->configs[e->config];

		if (!e->replaced)
			c->runs[c->n++] =
				(struct rfl_repeat){ .run = e->run, .value = e->run->value };
	}
	return RFL_OK;
}

static enum rfl_rc build(struct builder *b, struct rfl_err *err)
{
	const struct rfl_run *runs = b->runs->runs;
	size_t n = b->runs->n;
	enum rfl_rc rc = check_filters(b, err);

	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		b->last[i] = SIZE_MAX;
		if (is_wanted(b->o, runs[i].like))
			rc = take_run(b, &runs[i], err);
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		if (is_failed(&runs[i]) && is_wanted(b->o, runs[i].like))
			rc = take_failed(b, &runs[i], err);
	rfl_row_index_fini(&b->labels); /* the largest of what is no longer needed */
	if (rc == RFL_OK)
		rc = fill_configs(b, err);
	for (size_t i = 0; rc == RFL_OK && i < b->r->n; i++)
		rc = rfl_repeats__describe(&b->r->configs[i], &b->notes, err);
	if (rc == RFL_OK)
		rc = rfl_repeats__order(b->r, err);
	if (rc == RFL_OK)
		rfl_repeats__scale(b->r);
	end_notes(&b->notes);
	return rc == RFL_OK ? rfl_buf_check(&b->r->notes, "notes", err) : rc;
}

enum rfl_rc rfl_repeats_new(const struct rfl_runs *runs, const struct rfl_repeats_options *options,
			    struct rfl_repeats **ret, struct rfl_err *err)
{
	struct builder b = {
		.runs = runs,
		.o = options,
		.configs = { .hash = config_hash, .alike = config_alike },
		.labels = { .hash = label_hash, .alike = label_alike },
	};
	size_t n = runs->n;
	enum rfl_rc rc;

	b.r = calloc(1, sizeof(*b.r));
	b.entries = rfl_alloc_array(n, sizeof(*b.entries));
	b.last = rfl_alloc_array(n, sizeof(*b.last));
	b.failed = rfl_alloc_array(n, sizeof(*b.failed));
	if (!b.r || !b.entries || !b.last || !b.failed) {
		rc = fail_no_memory(err);
		goto done;
	}
	b.r->metric = options->metric;
	rfl_buf_init(&b.r->notes, 0);
	b.notes = (struct rfl_repeats__notes){ .runs = runs,
					       .metric = options->metric,
					       .out = &b.r->notes };
	rc = build(&b, err);
	if (rc == RFL_OK) {
		*ret = b.r;
		b.r = NULL;
	}
done:
	rfl_repeats_free(b.r);
	rfl_row_index_fini(&b.configs);
	rfl_row_index_fini(&b.labels);
	free(b.entries);
	free(b.last);
	free(b.failed);
	return rc;
}

void rfl_repeats_free(struct rfl_repeats *r)
{
	if (!r)
		return;
	rfl_buf_fini(&r->notes);
	free(r->configs);
	free(r->runs);
	free(r);
}
