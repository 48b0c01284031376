/*
 * counters_join.c - assigns captures to configurations, finds the number of training steps by which
 * their totals are divided, and checks whether that number is plausible.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/label.h"

static bool is_text(const char *text)
{
	return text && *text;
}

const char *rfl_counters__name(const struct rfl_capture *c)
{
	return is_text(c->path) ? c->path : is_text(c->label) ? c->label : "?";
}

static int by_bearer(const void *x, const void *y)
{
	const struct rfl_bearer *a = x, *b = y;
	const int order = strcmp(a->name, b->name);

	return order ? order : (a->run > b->run) - (a->run < b->run);
}

static enum rfl_rc bearers_new(const struct rfl_runs *runs, struct rfl_bearers *ret,
			       struct rfl_err *err)
{
	ret->labels = rfl_alloc_array(runs->n + 1, sizeof(*ret->labels));
	ret->ids = rfl_alloc_array(runs->n + 1, sizeof(*ret->ids));
	if (!ret->labels || !ret->ids)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < runs->n; i++) {
		const struct rfl_run *run = &runs->runs[i];
		const char *id = run->id;

		if (is_text(run->label))
			ret->labels[ret->nlabels++] =
				(struct rfl_bearer){ .name = run->label, .run = run };
		if (is_text(id))
			ret->ids[ret->nids++] = (struct rfl_bearer){ .name = id, .run = run };
	}
	qsort(ret->labels, ret->nlabels, sizeof(*ret->labels), by_bearer);
	qsort(ret->ids, ret->nids, sizeof(*ret->ids), by_bearer);
	return RFL_OK;
}

void rfl_counters__bearers_fini(struct rfl_bearers *b)
{
	free(b->labels);
	free(b->ids);
}

/* Compare the beginning of a name with a text. */
static int compare(const char *name, const char *text, size_t len)
{
	const int order = strncmp(name, text, len);

	return order ? order : name[len] != '\0';
}

/* Find the runs with a name. @return the first of them */
static const struct rfl_bearer *find(const struct rfl_bearer *list, size_t n, const char *text,
				     size_t len, size_t *found)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(list[middle].name, text, len) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (*found = 0; low + *found < n && !compare(list[low + *found].name, text, len);)
		++*found;
	return list + low;
}

/* Find the runs with the run_id of a capture or, if it has none, with its label. The time stamps in
 * names of log files are ignored if no run has the whole name. */
static const struct rfl_bearer *bearers_of(const struct rfl_bearers *b, const struct rfl_capture *c,
					   size_t *n)
{
	const struct rfl_bearer *first;

	*n = 0;
	if (is_text(c->run_id))
		return find(b->ids, b->nids, c->run_id, strlen(c->run_id), n);
	if (!is_text(c->label))
		return NULL;
	first = find(b->labels, b->nlabels, c->label, strlen(c->label), n);
	return *n ? first : find(b->labels, b->nlabels, c->label, rfl_label_unstamped(c->label), n);
}

/* The identity of a capture. NULL, "" and -1: unknown. */
struct identity {
	const char *env, *model, *precision, *mode; /* from the row or the label */
	int64_t batch;
	struct rfl_label label;
	const struct rfl_run *home; /* the run with the label of the capture */
};

static const char *either(const char *first, const char *second)
{
	return is_text(first) ? first : second;
}

/* The batch in a label is that of one forward pass, like --batch-size. */
static int64_t label_batch(const struct rfl_ledger_row *row)
{
	return row->micro_batch > 0 ? row->micro_batch : row->batch;
}

static enum rfl_rc identify(const struct rfl_merge_inputs *in, const struct rfl_bearers *bearers,
			    const struct rfl_capture *c, struct identity *id, struct rfl_buf *why)
{
	static const struct rfl_ledger_row none = { .batch = -1 };
	const struct rfl_ledger_row *h = &none;
	const struct rfl_runs *runs = in->runs;
	size_t n;
	const struct rfl_bearer *bearer = bearers_of(bearers, c, &n);

	/* Find the run with the same label, preferably one with status ok. */
	for (size_t i = 0; i < n; i++) {
		const struct rfl_run *run = bearer[i].run;
		const struct rfl_ledger_row *row = run->like;

		if (id->home &&
		    (!rfl_text_same(h->model, row->model) || h->batch != row->batch ||
		     !rfl_text_same(h->precision, row->precision) ||
		     !rfl_text_same(h->mode, row->mode) || !rfl_text_same(h->env, row->env))) {
			rfl_buf_printf(why,
				       "%s:%zu and :%zu are different runs with its label; use "
				       "unique labels",
				       runs->files[0].path, id->home->line, run->line);
			return RFL_ENOTFOUND;
		}
		if (!id->home ||
		    (!rfl_text_same(h->status, "ok") && rfl_text_same(row->status, "ok"))) {
			id->home = run;
			h = row;
		}
	}

	/* Parse the label with the longest model name in the ledger that occurs in it, unless the
	 * run has everything. */
	const bool known = is_text(h->env) && is_text(h->model) && is_text(h->precision) &&
			   is_text(h->mode) && h->batch > 0;

	rfl_label_parse(c->label, known ? h->model : NULL, &id->label);
	for (size_t i = 0; i < runs->likes.n && !known; i++) {
		const struct rfl_ledger_row *row = runs->likes.rows[i];
		struct rfl_label parts;

		if (!is_text(row->model) || rfl_text_same(row->model, id->label.model))
			continue;
		rfl_label_parse(c->label, row->model, &parts);
		if (strlen(parts.model) > strlen(id->label.model))
			id->label = parts;
	}

	id->env = either(h->env, id->label.env);
	id->model = either(h->model, id->label.model);
	id->precision = either(h->precision, id->label.precision);
	id->mode = either(h->mode, id->label.mode);
	id->batch = h->batch > 0 ? label_batch(h) : id->label.batch;
	if (id->env[0] && id->model[0])
		return RFL_OK;
	if (id->label.not_env[0])
		rfl_buf_printf(why,
			       "'%s' is not a valid environment name (a lower-case letter, then "
			       "lower-case letters, digits and '_'); rename the file, or use this "
			       "label (--label) and an --env for the profiled run",
			       id->label.not_env);
	else
		rfl_buf_printf(why,
			       "its label '%s' does not name %s; name the file "
			       "{env}_{model}_{precision}_bs{batch}_prof, or use this label "
			       "(--label) for the profiled run",
			       c->label ? c->label : "",
			       id->model[0] ? "an environment" : "a model of the ledger");
	return RFL_ENOTFOUND;
}

/* Candidates may differ in the first three columns, by which captures are joined, and in the
 * others, which determine FLOPs and bytes: work, library and device. */
static const enum rfl_ledger_at facts[] = {
	RFL_LEDGER_AT_precision,      RFL_LEDGER_AT_batch,     RFL_LEDGER_AT_mode,
	RFL_LEDGER_AT_layout,         RFL_LEDGER_AT_optimizer, RFL_LEDGER_AT_micro_batch,
	RFL_LEDGER_AT_accum,          RFL_LEDGER_AT_img_size,  RFL_LEDGER_AT_classes,
	RFL_LEDGER_AT_context_length, RFL_LEDGER_AT_engine,    RFL_LEDGER_AT_engine_version,
	RFL_LEDGER_AT_device_name,    RFL_LEDGER_AT_attention,
};
enum { JOINING = 3 };

/* Return the first of these facts, beginning at an index, in which two runs differ. Unknown values
 * are ignored except in the first three. */
static const struct rfl_field *differ(size_t from, const struct rfl_ledger_row *a,
				      const struct rfl_ledger_row *b)
{
	for (size_t i = from; i < RFL_ARRAY_LEN(facts); i++) {
		const struct rfl_field *f = &rfl_ledger_fields[facts[i]];
		const bool known = rfl_field_known(f, a) && rfl_field_known(f, b) &&
				   rfl_field_number(f, a) != 0 && rfl_field_number(f, b) != 0;

		if (!rfl_field_same(f, a, b) && (known || i < JOINING))
			return f;
	}
	return NULL;
}

static void words(const struct identity *id, struct rfl_buf *out)
{
	rfl_buf_printf(out, "%s %s", id->env, id->model);
	if (id->precision[0])
		rfl_buf_printf(out, " %s", id->precision);
	if (id->batch > 0)
		rfl_buf_printf(out, " bs%lld", (long long)id->batch);
	if (id->mode[0])
		rfl_buf_printf(out, " %s", id->mode);
}

/* Mark the configurations of a capture among `list` in `hit`. RFL_ENOTFOUND: the reason is written
 * to `why`. */
static enum rfl_rc candidates(const struct rfl_merge_inputs *in, struct rfl_config *const *list,
			      size_t n, const struct identity *id, bool *hit, struct rfl_buf *why)
{
	const char *ledger = in->runs->files[0].path;
	const struct rfl_config *first = NULL;
	const struct rfl_field *mismatch = NULL;
	char number[RFL_NUM_MAX];

	for (size_t i = 0; i < n; i++) {
		const struct rfl_config *c = list[i];
		const struct rfl_ledger_row *row = c->row;
		const struct rfl_field *f;

		hit[i] = strcmp(id->env, c->env) == 0 && rfl_text_same(id->model, row->model) &&
			 (!id->precision[0] || rfl_text_same(id->precision, row->precision)) &&
			 (!id->mode[0] || rfl_text_same(id->mode, row->mode)) &&
			 (id->batch < 0 || id->batch == label_batch(row));
		if (!hit[i])
			continue;
		f = id->home ? differ(JOINING, id->home->like, row) : NULL;
		if (f) {
			mismatch = f;
			hit[i] = false;
			continue;
		}
		f = first ? differ(0, first->row, row) : NULL;
		if (f) {
			rfl_buf_printf(why, "its label does not contain the %s, and %s has ",
				       f->name, ledger);
			words(id, why);
			rfl_buf_printf(why, " with %s", rfl_field_write(f, first->row, number));
			rfl_buf_printf(why, " and %s: ", rfl_field_write(f, row, number));
			for (size_t k = 0; k < JOINING; k++)
				if (f == &rfl_ledger_fields[facts[k]])
					rfl_buf_puts(why, "add it to the name "
							  "({env}_{model}_{precision}_bs{batch}_{"
							  "mode}_prof), or ");
			rfl_buf_puts(why, "use this label (--label) for the profiled run, so that "
					  "the ledger has a row for it");
			return RFL_ENOTFOUND;
		}
		first = first ? first : c;
	}
	if (first)
		return RFL_OK;
	if (mismatch)
		rfl_buf_printf(
			why,
			"%s:%zu, the profiled run, has a different '%s' from the timed runs of ",
			ledger, id->home->line, mismatch->name);
	else
		rfl_buf_printf(why, "%s has no timed run of ", ledger);
	words(id, why);
	if (!mismatch)
		rfl_buf_puts(why, " (runs labelled _prof are not timed); run it without the "
				  "profiler as well");
	return RFL_ENOTFOUND;
}

static bool is_profiled(const struct rfl_run *run)
{
	struct rfl_label parts;

	rfl_label_parse(run->label, run->like->model, &parts);
	return parts.profiled;
}

/* Configurations whose own runs were counted do not use counters of other timed runs of equal work.
 * The others, if they have equal work, get the same captures, which only the first of them, their
 * leader, lists. */
struct owners {
	size_t *config_of; /* of a run; SIZE_MAX: none */
	bool *own;         /* the configuration has such counters */
	size_t nall;
	struct rfl_config **all; /* those with own counters, and the leaders */
	/* the leaders with equal names as lists: the first by the name of a configuration, and the
	 * next after a leader */
	size_t *name_of;
	struct rfl_config **first, **next;
	/* scratch of join_one() */
	struct rfl_config **list;
	bool *hit;
};

static void owners_fini(struct owners *o)
{
	free(o->config_of);
	free(o->own);
	free(o->all);
	free(o->name_of);
	free(o->first);
	free(o->next);
	free(o->list);
	free(o->hit);
}

static uint64_t hash_of_name(const void *item)
{
	const struct rfl_run *run = item;
	const uint64_t h = rfl_hash64(0, run->like->env, strlen(run->like->env));
	const int64_t batch = label_batch(run->like);

	return rfl_hash64(h, &batch, sizeof(batch));
}

/* Whether two runs have the same environment, model, precision, mode and batch. */
static bool same_name(const void *x, const void *y)
{
	const struct rfl_ledger_row *a = ((const struct rfl_run *)x)->like;
	const struct rfl_ledger_row *b = ((const struct rfl_run *)y)->like;

	return strcmp(a->env, b->env) == 0 && rfl_text_same(a->model, b->model) &&
	       rfl_text_same(a->precision, b->precision) && rfl_text_same(a->mode, b->mode) &&
	       label_batch(a) == label_batch(b);
}

static bool same_work(const void *x, const void *y)
{
	const struct rfl_ledger_row *a = ((const struct rfl_run *)x)->like;
	const struct rfl_ledger_row *b = ((const struct rfl_run *)y)->like;
	bool same = strcmp(a->env, b->env) == 0 && rfl_text_same(a->model, b->model);

	for (size_t i = 0; same && i < RFL_ARRAY_LEN(facts); i++)
		same = rfl_field_same(&rfl_ledger_fields[facts[i]], a, b);
	return same;
}

/* Set `alike` of the configurations without counters of their own to their leader. */
static enum rfl_rc find_leaders(struct rfl_configs *cs, const struct owners *o, struct rfl_err *err)
{
	struct rfl_row_index works = { .hash = hash_of_name, .alike = same_work };
	struct rfl_config **leaders = rfl_alloc_array(cs->n + 1, sizeof(struct rfl_config *));
	enum rfl_rc rc = leaders ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");

	for (size_t i = 0, at; i < cs->n && rc == RFL_OK; i++) {
		struct rfl_config *c = &cs->configs[i];

		if (o->own[i] || (rc = rfl_row_index_put(&works, c->runs[0].run, &at, err)))
			continue;
		leaders[at] = leaders[at] ? leaders[at] : c;
		c->alike = leaders[at] == c ? NULL : leaders[at];
	}
	rfl_row_index_fini(&works);
	free(leaders);
	return rc;
}

static enum rfl_rc find_owners(const struct rfl_merge_inputs *in, struct rfl_configs *cs,
			       struct owners *o, struct rfl_err *err)
{
	const struct rfl_captures *captures = in->counters.captures;
	struct rfl_row_index names = { .hash = hash_of_name, .alike = same_name };
	enum rfl_rc rc = RFL_OK;

	o->config_of = rfl_alloc_array(in->runs->n + 1, sizeof(*o->config_of));
	o->own = rfl_alloc_array(cs->n + 1, sizeof(*o->own));
	o->all = rfl_alloc_array(cs->n + 1, sizeof(struct rfl_config *));
	o->name_of = rfl_alloc_array(cs->n + 1, sizeof(*o->name_of));
	o->first = rfl_alloc_array(cs->n + 1, sizeof(struct rfl_config *));
	o->next = rfl_alloc_array(cs->n + 1, sizeof(struct rfl_config *));
	o->list = rfl_alloc_array(cs->n + 1, sizeof(struct rfl_config *));
	o->hit = rfl_alloc_array(cs->n + 1, sizeof(*o->hit));
	if (!o->config_of || !o->own || !o->all || !o->name_of || !o->first || !o->next ||
	    !o->list || !o->hit)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < in->runs->n; i++)
		o->config_of[i] = SIZE_MAX;
	for (size_t i = 0; i < cs->n; i++)
		for (size_t k = 0; k < cs->configs[i].nruns; k++)
			o->config_of[cs->configs[i].runs[k].run - in->runs->runs] = i;
	for (size_t i = 0; i < captures->n; i++) {
		const struct rfl_amount *total = captures->captures[i]->total;
		size_t n;
		const struct rfl_bearer *b = bearers_of(&cs->bearers, captures->captures[i], &n);

		if (isnan(total[RFL_QUANTITY_FLOPS].value) && isnan(total[RFL_QUANTITY_DRAM].value))
			continue;
		for (size_t k = 0; k < n; k++) {
			const size_t at = o->config_of[b[k].run - in->runs->runs];

			if (at != SIZE_MAX)
				o->own[at] = true;
		}
	}
	rc = find_leaders(cs, o, err);
	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++) {
		rc = rfl_row_index_put(&names, cs->configs[i].runs[0].run, &o->name_of[i], err);
		if (!cs->configs[i].alike)
			o->all[o->nall++] = &cs->configs[i];
	}
	for (size_t i = cs->n; i-- > 0 && rc == RFL_OK;)
		if (!cs->configs[i].alike && !o->own[i]) {
			o->next[i] = o->first[o->name_of[i]];
			o->first[o->name_of[i]] = &cs->configs[i];
		}
	rfl_row_index_fini(&names);
	return rc;
}

static int64_t run_number(const struct rfl_capture *c, const struct rfl_run *home)
{
	struct rfl_label parts;

	rfl_label_parse(c->label, home ? home->like->model : NULL, &parts);
	return parts.run;
}

static enum rfl_rc add_capture(struct rfl_config *c, const struct rfl_capture *capture,
			       const struct identity *id, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_grow(&c->counted, &c->counted_cap, c->ncounted + 1, SIZE_MAX, err);

	if (rc == RFL_OK)
		c->counted[c->ncounted++] =
			(struct rfl_joined){ .capture = capture,
					     .home = id->home,
					     .steps = -1,
					     .number = run_number(capture, id->home) };
	return rc;
}

/* Add a note if a capture has the label of a timed run, which the profiler may have slowed down. */
static void note_slowed(const struct rfl_merge_inputs *in, const struct rfl_capture *capture,
			const struct identity *id, struct rfl_merge_report *report)
{
	const char *source = capture->source;

	if (id->home && !is_text(capture->run_id) && rfl_text_same(id->home->like->status, "ok") &&
	    (rfl_text_same(source, "ncu") || rfl_text_same(source, "nvprof") ||
	     rfl_text_same(source, "rocprof")) &&
	    !is_profiled(id->home))
		rfl_buf_printf(&report->notes,
			       "counters: %s has the label of %s:%zu, a run with times that are "
			       "used in the points; if the run was slowed down by %s, use a label "
			       "that ends in _prof\n",
			       rfl_counters__name(capture), in->runs->files[0].path, id->home->line,
			       source);
}

static enum rfl_rc join_one(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			    const struct rfl_capture *capture, struct rfl_configs *cs,
			    struct owners *owners, struct rfl_merge_report *report,
			    struct rfl_err *err)
{
	bool *hit = owners->hit;
	struct rfl_config **list = owners->all, *mine = NULL;
	size_t own, n = owners->nall;
	const char *name = rfl_counters__name(capture);
	struct identity id = { .batch = -1 };
	struct rfl_buf why;
	enum rfl_rc rc;

	rfl_buf_init(&why, 1 << 16);
	rc = identify(in, &cs->bearers, capture, &id, &why);
	if (rc == RFL_OK && !rfl_merge__wanted(o, id.env)) {
		report->other_captures++;
		goto done;
	}
	own = rc == RFL_OK && id.home && !is_profiled(id.home)
		      ? owners->config_of[id.home - in->runs->runs]
		      : SIZE_MAX;
	if (own != SIZE_MAX) {
		/* without useful counters of its own, it may have a leader, or be one */
		mine = cs->configs[own].alike ? cs->configs[own].alike : &cs->configs[own];
		rc = add_capture(mine, capture, &id, err);
		list = owners->list;
		n = 0;
		if (mine == &cs->configs[own])
			for (struct rfl_config *c = owners->first[owners->name_of[own]]; c;
			     c = owners->next[c - cs->configs])
				list[n++] = c;
	}
	if (rc == RFL_OK && (own == SIZE_MAX || n > 0))
		rc = candidates(in, list, n, &id, hit, &why);
	if (rc == RFL_ENOTFOUND && own != SIZE_MAX) {
		rc = RFL_OK; /* only its own configuration */
		n = 0;
	}
	if (rc == RFL_ENOTFOUND) {
		rc = rfl_buf_check(&why, "counters", err);
		if (rc == RFL_OK) {
			report->unjoined++;
			rfl_buf_printf(&report->notes, "counters: %s matches no run: %s\n", name,
				       rfl_buf_str(&why));
		}
		goto done;
	}
	note_slowed(in, capture, &id, report);
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		if (hit[i] && list[i] != mine)
			rc = add_capture(list[i], capture, &id, err);
done:
	rfl_buf_fini(&why);
	return rc;
}

static bool is_time(const struct rfl_capture *c)
{
	return rfl_text_same(c->source, "time");
}

/* Write one note for a folder that only contains time logs, which have no counts. */
static void note_time_logs(const struct rfl_captures *all, size_t first,
			   struct rfl_merge_report *report)
{
	const char *path = all->captures[first]->path;
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t n = 0, len = slash ? (size_t)(slash - path) : 0;

	for (size_t i = 0; i < all->n && len > 0; i++) {
		const char *other = all->captures[i]->path;

		if (!other || strncmp(other, path, len + 1) != 0 || strchr(other + len + 1, '/'))
			continue;
		if (i < first || !is_time(all->captures[i]))
			return; /* the folder is already noted or contains other captures */
		n++;
	}
	if (n > 0)
		rfl_buf_printf(&report->notes,
			       "counters: nothing in %.*s is used: time logs (%zu) contain neither "
			       "FLOPs nor bytes; use perf stat or likwid\n",
			       (int)len, path, n);
}

enum rfl_rc rfl_counters__join(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			       struct rfl_configs *cs, struct rfl_merge_report *report,
			       struct rfl_err *err)
{
	const struct rfl_captures *all = in->counters.captures;
	struct owners owners = { .own = NULL };
	enum rfl_rc rc;

	if (!all || !all->n)
		return RFL_OK;
	if ((rc = bearers_new(in->runs, &cs->bearers, err)) ||
	    (rc = find_owners(in, cs, &owners, err)))
		goto done;
	for (size_t i = 0; i < all->n && rc == RFL_OK; i++)
		if (is_time(all->captures[i]))
			note_time_logs(all, i, report);
		else
			rc = join_one(in, o, all->captures[i], cs, &owners, report, err);
	for (struct rfl_config *c = cs->configs; c < cs->configs + cs->n; c++)
		if (c->alike) {
			c->counted = c->alike->counted;
			c->ncounted = c->alike->ncounted;
		}
done:
	owners_fini(&owners);
	return rc;
}

enum rfl_rc rfl_counter_steps_parse(char *room, struct rfl_counter_steps *ret, struct rfl_err *err)
{
	char *number = strrchr(room, '=');
	int64_t steps = 0;

	*ret = (struct rfl_counter_steps){ .label = NULL };
	if (number) {
		*number++ = '\0';
		ret->label = room;
	} else {
		number = room;
	}
	if (rfl_num_parse_int(number, "steps", &steps, NULL) != RFL_OK || steps < 1 ||
	    (ret->label && !*ret->label))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--counter-steps: '%.100s' is not valid; use N or LABEL=N with N "
				"at least 1",
				number);
	ret->steps = steps;
	return RFL_OK;
}

bool rfl_counters__whole_process(const struct rfl_joined *counted)
{
	const struct rfl_capture *c = counted->capture;

	/* A file with counts of a process includes its set-up, even if the number of steps is
	 * known. */
	return c->total_kind == RFL_RANGE_PROCESS && (c->path || c->steps <= 0);
}

/* The number of steps given for this label or, if it is NULL, for all captures. 0: none given. */
static int64_t given(const struct rfl_merge_inputs *in, const char *label)
{
	for (size_t i = 0; i < in->counters.nsteps; i++) {
		const struct rfl_counter_steps *s = &in->counters.steps[i];

		if (label ? s->label && strcmp(s->label, label) == 0 : !s->label)
			return s->steps;
	}
	return 0;
}

/* The greatest common divisor of all launch counts. 0: no kernels. */
static int64_t common_launches(const struct rfl_capture *c)
{
	int64_t common = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		int64_t a = c->ranges[i].launches;

		if (c->ranges[i].kind != RFL_RANGE_KERNEL || a < 1)
			continue;
		while (common) {
			int64_t rest = a % common;

			a = common;
			common = rest;
		}
		common = a;
	}
	return common;
}

/* Take the number of steps from the rows with the same label, if they agree. */
static void from_ledger(const struct rfl_bearers *bearers, struct rfl_joined *counted)
{
	const bool process = rfl_counters__whole_process(counted);
	const struct rfl_run *first = NULL;
	int64_t steps = -1;

	size_t nbearers;
	const struct rfl_bearer *bearer = bearers_of(bearers, counted->capture, &nbearers);

	for (size_t i = 0; i < nbearers; i++) {
		const struct rfl_run *run = bearer[i].run;
		const struct rfl_ledger_row *row = run->like;
		int64_t n = row->iters;

		/* steps in the window, plus warm-up if the whole process was counted */
		if (!rfl_text_same(row->status, "ok") || n < 1 ||
		    (process && (row->warmup < 0 || !rfl_num_add(row->iters, row->warmup, &n))))
			continue;
		if (first && n != steps) {
			(void)snprintf(counted->unknown, sizeof(counted->unknown),
				       "rows %zu and %zu of the ledger have its label but %lld and "
				       "%lld steps",
				       first->line, run->line, (long long)steps, (long long)n);
			return;
		}
		first = run;
		steps = n;
	}
	if (!first) {
		(void)snprintf(counted->unknown, sizeof(counted->unknown), "%s",
			       counted->home ? "the row with its label has no number of steps"
					     : "no row of the ledger has its label");
		return;
	}
	counted->home = first;
	counted->steps = steps;
	counted->from = process ? RFL_STEPS_PROCESS : RFL_STEPS_LEDGER;
}

void rfl_counters__steps(const struct rfl_merge_inputs *in, const struct rfl_bearers *bearers,
			 struct rfl_joined *counted)
{
	const struct rfl_capture *c = counted->capture;
	const size_t size = sizeof(counted->unknown);
	const int64_t of_label = given(in, c->label ? c->label : "");
	int64_t all, common;
	size_t len;

	if (c->steps > 0 || of_label > 0) {
		counted->steps = c->steps > 0 ? c->steps : of_label;
		counted->from = c->steps > 0 ? RFL_STEPS_OWN : RFL_STEPS_LABEL;
		return;
	}
	counted->steps = -1;
	counted->from = RFL_STEPS_UNKNOWN;
	from_ledger(bearers, counted);
	if (counted->steps > 0)
		return;
	all = given(in, NULL);
	if (all > 0) {
		counted->steps = all;
		counted->from = RFL_STEPS_GIVEN;
		return;
	}
	/* The launch counts may suggest the number. */
	common = common_launches(c);
	len = strlen(counted->unknown);
	if (common > 1)
		(void)snprintf(counted->unknown + len, size - len,
			       "; all launch counts are multiples of %lld", (long long)common);
}

/* Kernels, and those with a launch count that is not a multiple of `steps`. */
struct launch_check {
	size_t kernels, off;
};

static struct launch_check check_launches(const struct rfl_joined *counted, int64_t steps)
{
	const struct rfl_capture *c = counted->capture;
	struct launch_check ret = { .kernels = 0 };

	for (size_t i = 0; i < c->nranges; i++) {
		if (c->ranges[i].kind != RFL_RANGE_KERNEL || c->ranges[i].launches < 1)
			continue;
		ret.kernels++;
		ret.off += c->ranges[i].launches % steps != 0;
	}
	return ret;
}

/* Writes a ranked list: "(1) ...; (2) ...". */
struct causes {
	struct rfl_buf *out;
	int n;
};

static RFL_PRINTF(2, 3) void cause(struct causes *c, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rfl_buf_printf(c->out, "%s(%d) %s", c->n ? "; " : " ", c->n + 1, text);
	c->n++;
}

/* Check whether the warm-up was profiled too.
 * @return number of steps in window and warm-up; 0: the warm-up was not profiled */
static int64_t with_warmup(const struct rfl_joined *counted, double ratio)
{
	const struct rfl_run *home = counted->home;
	struct launch_check with, without;
	int64_t all;

	if (counted->from != RFL_STEPS_LEDGER || !home || home->like->warmup < 1 ||
	    !rfl_num_add(counted->steps, home->like->warmup, &all))
		return 0;
	with = check_launches(counted, all);
	without = check_launches(counted, counted->steps);
	if (!with.kernels || with.off)
		return 0;
	/* The launch counts may be multiples of both numbers, such as 10 and 20. In that case
	 * compare the FLOPs. */
	if (without.off == 0 && !(fabs(ratio * (double)counted->steps / (double)all - 1) < 0.1))
		return 0;
	return all;
}

/* Suggest a number of steps derived from the FLOPs or, failing that, from the launch counts. */
static void cause_steps(struct causes *c, const struct rfl_joined *counted, double ratio)
{
	const char *label = counted->capture->label ? counted->capture->label : "LABEL";
	int64_t common = common_launches(counted->capture);
	char fit[64] = "";

	if (ratio * (double)counted->steps >= 1)
		(void)snprintf(fit, sizeof(fit), " (%.0f would match)",
			       ratio * (double)counted->steps);
	else if (common > 1)
		(void)snprintf(fit, sizeof(fit), " (all launch counts are multiples of %lld)",
			       (long long)common);
	cause(c, "the profiled run had a different number of steps%s: use --counter-steps %s=N",
	      fit, label);
}

static void write_causes(const struct rfl_joined *counted, double ratio,
			 const struct launch_check *off, struct rfl_measured *m)
{
	static const char uncounted_text[] =
		"FLOPs of another precision were not counted (matrix units in TF32 or 16 bits): "
		"'roofline counters %s' lists their metrics";
	const bool amd = rfl_text_same(counted->capture->source, "rocprof");
	const char *lister = amd ? "import" : "list --ncu";
	const char *label = counted->capture->label ? counted->capture->label : "LABEL";
	const bool live = counted->from == RFL_STEPS_OWN;
	const bool uncounted = isnan(m->part[RFL_QUANTITY_FLOPS_TENSOR_TF32]) ||
			       isnan(m->part[RFL_QUANTITY_FLOPS_TENSOR_FP16]) ||
			       isnan(m->part[RFL_QUANTITY_FLOPS_TENSOR_BF16]);
	const bool in_range = ratio >= RFL_COUNTERS_LEAST_RATIO && ratio <= RFL_COUNTERS_MOST_RATIO;
	const bool launches_fit = off->kernels && !off->off;
	const int64_t all = with_warmup(counted, ratio);
	const bool steps = !live && (off->off || !in_range) && !all;
	struct causes c = { .out = &m->causes };
	bool tiles = false;

	for (int q = RFL_QUANTITY_FLOPS_TENSOR_FP16; q < RFL_QUANTITY_FLOPS; q++)
		tiles = tiles || m->part[q] > 0;
	if (counted->capture->rows_left_out > 0)
		cause(&c, "some rows of the file could not be read and were left out");
	if (all)
		cause(&c,
		      "the warm-up was profiled too, %lld steps in total: use --counter-steps "
		      "%s=%lld, or profile only the window%s",
		      (long long)all, label, (long long)all,
		      amd ? "" : " (ncu --profile-from-start off)");
	if (steps && !launches_fit)
		cause_steps(&c, counted, ratio);
	if (ratio > 1 && tiles)
		cause(&c, "matrix units compute whole tiles including padding, which adds most to "
			  "small or windowed matrices");
	if (ratio > 1 && !isnan(m->part[RFL_QUANTITY_FLOPS_FP32]))
		cause(&c, "the counters include elementwise work and the optimizer, but the core "
			  "count does not");
	if (ratio < 1) {
		/* the most likely cause if no kernel is missing */
		if (uncounted && !off->off)
			cause(&c, uncounted_text, lister);
		if (!live)
			cause(&c, "not every kernel was profiled (because of a launch limit or "
				  "filter of the profiler)");
		if (uncounted && off->off)
			cause(&c, uncounted_text, lister);
		cause(&c,
		      "convolutions used an algorithm with fewer multiplications (Winograd, FFT)");
	}
	if (steps && launches_fit)
		cause_steps(&c, counted, ratio);
}

void rfl_counters__doubt(const struct rfl_joined *counted, const struct rfl_work *work,
			 double flops, double bytes, struct rfl_measured *m)
{
	double ratio = flops / work->flops;
	const long long steps = (long long)counted->steps;
	double over_unfused = bytes / work->bytes[RFL_FUSION_UNFUSED];
	struct launch_check off = { .kernels = 0 };

	if (counted->from != RFL_STEPS_OWN)
		off = check_launches(counted, counted->steps);
	m->doubtful = ratio < RFL_COUNTERS_LEAST_RATIO || ratio > RFL_COUNTERS_MOST_RATIO ||
		      2 * off.off > off.kernels || with_warmup(counted, ratio) > 0;
	if (m->doubtful) {
		if (!isnan(ratio))
			rfl_buf_printf(&m->doubt, "%.3g x the FLOPs counted from the network",
				       ratio);
		if (off.off)
			rfl_buf_printf(&m->doubt,
				       "%s%zu of %zu kernels have a launch count that is not a "
				       "multiple of %lld",
				       m->doubt.len ? "; " : "", off.off, off.kernels, steps);
		rfl_buf_printf(&m->doubt, " (%lld step%s)", steps, steps == 1 ? "" : "s");
		write_causes(counted, ratio, &off, m);
		return;
	}
	if (off.off)
		rfl_buf_printf(&m->note,
			       "; %zu of %zu kernels have a launch count that is not a multiple of "
			       "%lld steps (set-up, tuning)",
			       off.off, off.kernels, steps);
	if (over_unfused > RFL_COUNTERS_MOST_BYTES) {
		struct causes c = { .out = &m->causes };

		m->doubtful = true;
		rfl_buf_printf(&m->doubt, "%.3g x the bytes of unfused operations (%lld step%s)",
			       over_unfused, steps, steps == 1 ? "" : "s");
		if (counted->from != RFL_STEPS_OWN)
			cause_steps(&c, counted, NAN);
		cause(&c, "other programs accessed memory at the same time");
	}
}
