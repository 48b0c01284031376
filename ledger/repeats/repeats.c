/*
 * repeats.c - sorts rows into configurations, selects the rows to include, notes why others are
 * skipped, and computes the statistics of each configuration.
 */
#include "ledger/repeats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/label.h"
#include "ledger/repeats/row_index.h"

#define LINES_MOST 20 /* of one kind */

/* The deviation of an outlier from the median exceeds both limits. */
#define OUTLIER_DEVIATIONS 5.0
#define OUTLIER_SHARE      0.02
#define MAD_TO_SIGMA       1.4826 /* 1 / third quartile of the standard normal distribution */

/* Kinds of notes with one line per run. */
enum kind { TWICE, MIXED, FAILED, OUTLIER, KINDS };

/* Reasons for skipping a row. The note only names the position of the first row. */
enum why { RANK, PROFILED, NO_VALUE, MADE_GOOD, WHYS };

/* An ok run. */
struct entry {
	const struct rfl_run *run;
	size_t config;
	size_t before; /* previous entry with this label that is not replaced; SIZE_MAX: none */
	bool replaced; /* replaced by a later row of the same run */
};

struct builder {
	const struct rfl_runs *runs;
	const struct rfl_repeats_options *o;
	struct rfl_row_index configs, labels;
	/* Configurations by the fields that all have: lists in the order of appearance. */
	struct rfl_row_index names;
	struct list {
		size_t first, last;
	} * lists;    /* of each name */
	size_t *next; /* configuration of the same name; SIZE_MAX: none */
	size_t nentries;
	struct entry *entries;
	size_t *last;   /* last entry of each label; SIZE_MAX: none */
	size_t *failed; /* number of failed runs of each configuration */
	struct rfl_repeats *r;
	struct rfl_buf *notes;
	size_t lines[KINDS]; /* lines requested; only the first LINES_MOST are written */
	size_t left[WHYS];
	const struct rfl_run *first[WHYS];
};

/* Begin a line about a run. Return false if there are already too many lines of this kind. */
static bool note(struct builder *b, enum kind kind, const char *what, const struct rfl_run *run)
{
	if (++b->lines[kind] > LINES_MOST)
		return false;
	rfl_buf_printf(b->notes, "%s: %s", what, run->label ? run->label : "(no label)");
	return true;
}

static void put_where(struct builder *b, const char *before, const struct rfl_run *run)
{
	rfl_buf_puts(b->notes, before);
	rfl_runs_where(b->runs, run, b->notes);
}

static void leave_out(struct builder *b, enum why why, const struct rfl_run *run)
{
	if (b->left[why]++ == 0)
		b->first[why] = run;
}

static void end_notes(struct builder *b)
{
	static const char *const kinds[KINDS] = {
		[TWICE] = "rows are duplicates",
		[MIXED] = "labels name two configurations",
		[FAILED] = "runs failed",
		[OUTLIER] = "repeats are outliers",
	};
	static const struct {
		const char *what, *why;
	} texts[WHYS] = {
		[RANK] = { "row", " of single ranks; the row for all processes is used" },
		[PROFILED] = { "run", " recorded under a profiler, which slows runs" },
		[NO_VALUE] = { "row", " with status ok but without " },
		[MADE_GOOD] = { "failed attempt", "; a retry succeeded" },
	};

	for (size_t i = 0; i < KINDS; i++)
		if (b->lines[i] > LINES_MOST)
			rfl_buf_printf(b->notes, "%zu more %s\n", b->lines[i] - LINES_MOST,
				       kinds[i]);
	for (size_t i = 0; i < WHYS; i++) {
		if (b->left[i] == 0)
			continue;
		rfl_buf_printf(b->notes, "skipped %zu %s%s%s%s", b->left[i], texts[i].what,
			       b->left[i] == 1 ? "" : "s", texts[i].why,
			       i == NO_VALUE ? b->r->metric->name : "");
		put_where(b, " (first: ", b->first[i]);
		rfl_buf_puts(b->notes, ")\n");
	}
}

static uint64_t label_hash(const void *item)
{
	const struct rfl_run *run = item;

	return rfl_hash64((uint64_t)run->repeat, run->label, rfl_label_unstamped(run->label));
}

/* Labels are alike if they are equal except for the time in a log file name. In tables of other
 * programs, the repeat number may be in a separate column. */
static bool label_alike(const void *x, const void *y)
{
	const struct rfl_run *a = x, *b = y;
	size_t n = rfl_label_unstamped(a->label);

	return a->repeat == b->repeat && n == rfl_label_unstamped(b->label) &&
	       memcmp(a->label, b->label, n) == 0;
}

/* Return true if the label names a single run, not all repeats of a configuration. */
static bool names_a_run(const struct rfl_run *run)
{
	return run->label && run->label[0] && run->repeat >= 0;
}

static bool is_profiled(const struct rfl_run *run)
{
	struct rfl_label parts;

	if (!run->label || !strstr(run->label, "_prof"))
		return false;
	rfl_label_parse(run->label, run->like->model, &parts);
	return parts.profiled;
}

static bool is_rank(const struct rfl_run *run)
{
	return run->like->world_size > 1 && run->like->rank >= 0;
}

static bool is_wanted(const struct builder *b, const struct rfl_run *run)
{
	bool in = true;

	for (size_t i = 0; i < RFL_ARRAY_LEN(b->o->filters) && in; i++) {
		const struct rfl_field *f = &rfl_ledger_fields[b->o->filters[i].column];

		in = b->o->filters[i].n == 0;
		for (size_t k = 0; k < b->o->filters[i].n && !in; k++)
			in = rfl_text_same(*rfl_field_text_at(f, run->like),
					   b->o->filters[i].list[k]);
	}
	return in;
}

/* Check that a requested value occurs in the ledgers, with any status. */
static enum rfl_rc check_filter(const struct rfl_runs *runs, enum rfl_ledger_at column,
				const char *asked, struct rfl_err *err)
{
	const struct rfl_field *f = &rfl_ledger_fields[column];
	RFL_AUTO(texts) known = { .arena = NULL };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < runs->likes.n; i++)
		rfl_texts_keep(&known, *rfl_field_text_at(f, runs->likes.rows[i]));
	if (!rfl_texts_has(&known, asked)) {
		rc = rfl_texts_unknown(&known, f->name, asked, err);
		rfl_err_prefix(err, "%s", runs->files[0].path);
	}
	return rc;
}

static bool known(const char *text)
{
	return text && *text;
}

/* Replace an earlier run with the same label and configuration. A run with a recorded memory and
 * one without are two runs: the one has the memory, and the window of both is timed alike. */
static void replace_before(struct builder *b, struct entry *e)
{
	const struct rfl_ledger_row *row = e->run->like, *other;
	size_t *at = &e->before, i = 0;
	char x[RFL_NUM_MAX], y[RFL_NUM_MAX];
	struct rfl_label parts;
	bool other_profile = false;
	struct entry *old;

	if (*at == SIZE_MAX)
		return;
	old = &b->entries[*at];
	while (*at != SIZE_MAX && (b->entries[*at].config != e->config ||
				   b->entries[*at].run->profiled != e->run->profiled)) {
		other_profile |= b->entries[*at].config == e->config;
		at = &b->entries[*at].before;
	}
	if (*at != SIZE_MAX) {
		old = &b->entries[*at];
		old->replaced = true;
		*at = old->before;
		if (note(b, TWICE, "duplicate", e->run)) {
			put_where(b, " is ok in ", old->run);
			put_where(b, " and in ", e->run);
			rfl_buf_puts(b->notes, "; only the last is used\n");
		}
		return;
	}

	if (other_profile)
		return;
	/* Cells of a matrix may share a label: their options differ on purpose. */
	if (known(row->cell) && known(old->run->like->cell) &&
	    strcmp(row->cell, old->run->like->cell) != 0)
		return;
	/* Only note labels that name a single run; a label such as "baseline" does not. */
	rfl_label_parse(e->run->label, row->model, &parts);
	if (parts.run < 0 || !note(b, MIXED, "mixed", e->run))
		return;
	put_where(b, " names two configurations, in ", old->run);
	put_where(b, " and in ", e->run);
	other = old->run->like;
	while (i < rfl_nfacts && (!(rfl_facts[i].identity & rfl_facts_identity(row)) ||
				  rfl_fact_same(&rfl_facts[i], other, row)))
		i++;
	if (i < rfl_nfacts)
		rfl_buf_printf(b->notes, " (%s '%s' and '%s'", rfl_facts[i].name,
			       rfl_field_write(&rfl_ledger_fields[rfl_facts[i].column], other, x),
			       rfl_field_write(&rfl_ledger_fields[rfl_facts[i].column], row, y));
	else
		rfl_buf_puts(b->notes, " (another config_hash");
	rfl_buf_puts(b->notes, "); they are averaged separately\n");
}

static const enum rfl_ledger_at naming[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
					     RFL_LEDGER_AT_precision, RFL_LEDGER_AT_batch };

static uint64_t name_hash(const void *row)
{
	return rfl_ledger_hash(naming, RFL_ARRAY_LEN(naming), row);
}

static bool name_alike(const void *a, const void *b)
{
	return rfl_ledger_same(naming, RFL_ARRAY_LEN(naming), a, b);
}

/* Return the number of a configuration; a new one is appended to the list of its name. */
static size_t put_config(struct builder *b, const struct rfl_ledger_row *row)
{
	const size_t nconfigs = b->configs.n, nnames = b->names.n;
	const size_t config = rfl_row_index_put(&b->configs, row);
	size_t name;

	if (b->configs.n == nconfigs)
		return config;
	name = rfl_row_index_put(&b->names, row);
	b->next[config] = SIZE_MAX;
	if (b->names.n > nnames)
		b->lists[name].first = config;
	else
		b->next[b->lists[name].last] = config;
	b->lists[name].last = config;
	return config;
}

/* Add a run if it is ok. */
static enum rfl_rc take_run(struct builder *b, const struct rfl_run *run, struct rfl_err *err)
{
	struct entry *e = &b->entries[b->nentries];
	const char *empty;
	struct rfl_buf where;
	size_t label;

	if (is_rank(run)) {
		leave_out(b, RANK, run);
		return RFL_OK;
	}
	if (is_profiled(run)) {
		leave_out(b, PROFILED, run);
		return RFL_OK;
	}
	if (!rfl_text_same(run->like->status, "ok"))
		return RFL_OK; /* handled later, because a retry may have succeeded */
	empty = rfl_facts_lack(run->like);
	if (empty) {
		rfl_buf_init(&where, 0);
		rfl_runs_where(b->runs, run, &where);
		(void)rfl_fail(
			err, RFL_EFORMAT, 0,
			"%s: column '%s' has no valid value; correct it for runs with status ok",
			rfl_buf_str(&where), empty);
		rfl_buf_fini(&where);
		return RFL_EFORMAT;
	}
	if (isnan(run->value)) {
		leave_out(b, NO_VALUE, run);
		return RFL_OK;
	}
	*e = (struct entry){ .run = run, .before = SIZE_MAX };
	e->config = put_config(b, run->like);
	if (names_a_run(run)) {
		label = rfl_row_index_put(&b->labels, run);
		e->before = b->last[label];
		b->last[label] = b->nentries;
		replace_before(b, e);
	}
	b->nentries++;
	return RFL_OK;
}

/* Count a run that is not ok; called after all ok runs were added. */
static void take_failed(struct builder *b, const struct rfl_run *run)
{
	const struct rfl_ledger_row *row = run->like;
	const unsigned identity = rfl_facts_identity(row);
	size_t i = names_a_run(run) ? rfl_row_index_find(&b->labels, run) : SIZE_MAX, config;

	/* Skip the run if a retry succeeded. Other runs with this label may differ in fields such
	 * as threads. */
	i = i == SIZE_MAX ? i : b->last[i];
	while (i != SIZE_MAX && !rfl_facts_agree(b->entries[i].run->like, row, identity))
		i = b->entries[i].before;
	if (i != SIZE_MAX) {
		if (!rfl_text_same(run->like->status, "interrupted")) /* by the user */
			leave_out(b, MADE_GOOD, run);
		return;
	}
	b->r->failed[b->r->nfailed++] = run;
	if (note(b, FAILED, "failed", run)) {
		rfl_buf_printf(b->notes, ": %s%s%s", row->status ? row->status : "no status",
			       row->error_text ? ": " : "", row->error_text ? row->error_text : "");
		put_where(b, " (", run);
		rfl_buf_puts(b->notes, ")\n");
	}
	if (rfl_facts_lack(row))
		return; /* the run failed before its configuration was known */

	/* If parts of its configuration are unknown, use the first one that matches the known
	 * parts. */
	config = rfl_row_index_find(&b->configs, row);
	if (config == SIZE_MAX && (i = rfl_row_index_find(&b->names, row)) != SIZE_MAX)
		for (config = b->lists[i].first; config != SIZE_MAX; config = b->next[config])
			if (rfl_facts_agree(b->configs.rows[config], row, identity))
				break;
	if (config == SIZE_MAX)
		config = put_config(b, row);
	b->failed[config]++;
}

/* Assign its runs to each configuration, in the order of the rows. */
static void fill_configs(struct builder *b)
{
	struct rfl_repeats *r = b->r;
	size_t used = 0;

	r->n = b->configs.n;
	r->configs = rfl_arena_array(r->arena, r->n, sizeof(*r->configs));
	r->runs = rfl_arena_array(r->arena, b->nentries, sizeof(*r->runs));
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
	r->nruns = used;
	for (size_t i = 0; i < b->nentries; i++) {
		const struct entry *e = &b->entries[i];
		struct rfl_repeats_config *c = &r->configs[e->config];

		if (!e->replaced)
			c->runs[c->n++] =
				(struct rfl_repeat){ .run = e->run, .value = e->run->value };
	}
}

static int by_time(const void *a, const void *b)
{
	const struct rfl_run *x = ((const struct rfl_repeat *)a)->run;
	const struct rfl_run *y = ((const struct rfl_repeat *)b)->run;
	int order = x->time && y->time ? strcmp(x->time, y->time) : 0;

	return order ? order : (x > y) - (x < y); /* in the order of the files */
}

/* Sort the runs of a configuration by time and compute their statistics. */
static void describe(struct builder *b, struct rfl_repeats_config *c)
{
	double far;
	RFL_AUTOFREE double *values = rfl_alloc_array(c->n, sizeof(*values));
	bool timed = true;

	c->cv = c->drift = (double)NAN;
	for (size_t i = 0; i < c->n; i++)
		timed = timed && c->runs[i].run->time;
	if (timed)
		qsort(c->runs, c->n, sizeof(*c->runs), by_time);
	for (size_t i = 0; i < c->n; i++)
		values[i] = c->runs[i].value;
	c->stats = rfl_stats_of(values, c->n);
	if (c->n == 1)
		c->stats.std = c->runs[0].run->std;
	if (c->n == 1 && c->runs[0].run->n > 1) {
		c->stats.n = (size_t)c->runs[0].run->n;
		c->stats.ci95 = rfl_stats_t95((double)(c->stats.n - 1)) * c->stats.std /
				sqrt((double)c->stats.n);
	}
	if (c->stats.mean != 0)
		c->cv = c->stats.std / fabs(c->stats.mean);
	if (c->cv > RFL_REPEATS_CV_MAX)
		c->flags |= RFL_REPEATS_UNSTABLE;
	/* A line through two points has no residual. */
	if (c->stats.mean != 0 && c->n >= 3) {
		const struct rfl_stats_trend trend = rfl_stats_trend(values, c->n);

		c->drift = trend.rise / fabs(c->stats.mean);
		if (fabs(c->drift) > RFL_REPEATS_DRIFT_MAX && fabs(trend.rise) > trend.ci95)
			c->flags |= RFL_REPEATS_DRIFT;
	}
	far = fmax(OUTLIER_DEVIATIONS * MAD_TO_SIGMA * c->stats.mad,
		   OUTLIER_SHARE * fabs(c->stats.median));
	for (size_t i = 0; i < c->n && c->n >= RFL_REPEATS_OUTLIER_MIN; i++) {
		if (!(fabs(values[i] - c->stats.median) > far))
			continue;
		c->flags |= RFL_REPEATS_OUTLIER;
		if (!note(b, OUTLIER, "outlier", c->runs[i].run))
			continue;
		rfl_buf_printf(b->notes, ", %.5g (the median of %zu repeats is %.5g)", values[i],
			       c->n, c->stats.median);
		put_where(b, " (", c->runs[i].run);
		rfl_buf_puts(b->notes, "); it is included in the statistics\n");
	}
}

/* Compute the weak-scaling efficiency, relative to one process with the same options and batch per
 * process. */
static double efficiency(const struct rfl_repeats *r, const struct rfl_repeats_config *c)
{
	const struct rfl_ledger_row *many = c->row;

	for (size_t i = 0; i < r->n; i++) {
		const struct rfl_ledger_row *one = r->configs[i].row;
		bool same = r->configs[i].n > 0 && one->world_size <= 1 &&
			    one->batch * many->world_size == many->batch;

		for (size_t k = 0; k < rfl_nfacts && same; k++) {
			const struct rfl_fact *f = &rfl_facts[k];

			same = !(f->identity & rfl_facts_identity(many)) ||
			       f->column == RFL_LEDGER_AT_world_size ||
			       f->column == RFL_LEDGER_AT_batch ||
			       rfl_fact_follows(f, RFL_LEDGER_AT_world_size) ||
			       rfl_fact_same(f, one, many);
		}
		if (same)
			return c->stats.mean /
			       ((double)many->world_size * r->configs[i].stats.mean);
	}
	return (double)NAN;
}

static const enum rfl_ledger_at block[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
					    RFL_LEDGER_AT_precision };

static uint64_t block_hash(const void *row)
{
	return rfl_ledger_hash(block, RFL_ARRAY_LEN(block), row);
}

static bool block_alike(const void *a, const void *b)
{
	return rfl_ledger_same(block, RFL_ARRAY_LEN(block), a, b);
}

struct place {
	size_t block; /* index of its environment, model and precision */
	size_t first; /* index of its configuration by first appearance */
	struct rfl_repeats_config config;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const int64_t p = x->config.row->batch, q = y->config.row->batch;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	if (p != q)
		return p < q ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static void order(struct rfl_repeats *r)
{
	RFL_AUTO(row_index) blocks = { .hash = block_hash, .alike = block_alike };
	RFL_AUTOFREE struct place *places = rfl_alloc_array(r->n, sizeof(*places));

	for (size_t i = 0; i < r->n; i++)
		places[i] = (struct place){
			.config = r->configs[i],
			.first = i,
			.block = rfl_row_index_put(&blocks, r->configs[i].row),
		};
	qsort(places, r->n, sizeof(*places), by_place);
	for (size_t i = 0; i < r->n; i++)
		r->configs[i] = places[i].config;
}

enum rfl_rc rfl_repeats_new(const struct rfl_runs *runs, const struct rfl_repeats_options *o,
			    struct rfl_repeats **ret, struct rfl_err *err)
{
	struct builder b = {
		.runs = runs,
		.o = o,
		.configs = { .hash = rfl_facts_hash,
			     .alike = o->losses ? rfl_facts_repeat_losses : rfl_facts_repeats },
		.labels = { .hash = label_hash, .alike = label_alike },
		.names = { .hash = name_hash, .alike = name_alike },
	};
	const enum rfl_ledger_at of = o->metric->column;
	const bool rate = of == RFL_LEDGER_AT_samples_per_s || of == RFL_LEDGER_AT_tokens_per_s ||
			  of == RFL_LEDGER_AT_compute_samples_per_s || of == RFL_LEDGER_AT_tflops;
	RFL_AUTOPTR(arena) scratch = rfl_arena_new();
	const size_t n = runs->n;
	size_t lack = 0;
	enum rfl_rc rc = RFL_OK;

	b.r = rfl_alloc_array(1, sizeof(*b.r));
	b.r->arena = rfl_arena_new();
	b.r->metric = o->metric;
	b.r->failed = rfl_arena_array(b.r->arena, n, sizeof(*b.r->failed));
	b.entries = rfl_arena_array(scratch, n, sizeof(*b.entries));
	b.last = rfl_arena_array(scratch, n, sizeof(*b.last));
	b.failed = rfl_arena_array(scratch, n, sizeof(*b.failed));
	b.lists = rfl_arena_array(scratch, n, sizeof(*b.lists));
	b.next = rfl_arena_array(scratch, n, sizeof(*b.next));
	b.notes = &b.r->notes;
	for (size_t i = 0; i < RFL_ARRAY_LEN(o->filters); i++)
		for (size_t k = 0; k < o->filters[i].n && rc == RFL_OK; k++)
			rc = check_filter(runs, o->filters[i].column, o->filters[i].list[k], err);

	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		b.last[i] = SIZE_MAX;
		if (is_wanted(&b, &runs->runs[i]))
			rc = take_run(&b, &runs->runs[i], err);
	}
	for (size_t i = 0; i < n && rc == RFL_OK; i++) {
		const struct rfl_run *run = &runs->runs[i];

		if (!rfl_text_same(run->like->status, "ok") && !is_rank(run) && !is_profiled(run) &&
		    is_wanted(&b, run))
			take_failed(&b, run);
	}
	rfl_row_index_fini(&b.labels); /* large and no longer needed */
	if (rc)
		goto done;
	fill_configs(&b);
	for (size_t i = 0; i < b.r->n; i++)
		describe(&b, &b.r->configs[i]);
	order(b.r);
	for (size_t i = 0; i < b.r->n; i++) {
		struct rfl_repeats_config *c = &b.r->configs[i];
		const bool several = c->row->world_size > 1 && c->n > 0 && rate;

		c->efficiency = several ? efficiency(b.r, c) : (double)NAN;
		lack += several && isnan(c->efficiency);
	}
	if (lack)
		rfl_buf_printf(
			b.notes,
			"%zu configuration%s of several processes: no efficiency; add runs of one "
			"process with the same batch per process, threads and options\n",
			lack, lack == 1 ? "" : "s");
	end_notes(&b);
	*ret = b.r;
	b.r = NULL;
done:
	rfl_repeats_free(b.r);
	rfl_row_index_fini(&b.configs);
	rfl_row_index_fini(&b.names);
	return rc;
}

void rfl_repeats_free(struct rfl_repeats *r)
{
	if (!r)
		return;
	rfl_buf_fini(&r->notes);
	rfl_arena_free(r->arena);
	free(r);
}
