/*
 * counters_join.c - assigns captures to configurations, finds the number of training steps by which
 * their totals are divided, and checks whether that number is plausible.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/label.h"
#include "profile/chips.h"

static bool is_text(const char *text)
{
	return text && *text;
}

const char *rfl_counters__name(const struct rfl_capture *c)
{
	return is_text(c->path) ? c->path : is_text(c->label) ? c->label : "?";
}

const char *rfl_counters__source(const struct rfl_capture *c, bool given)
{
	return given                               ? RFL_POINT_GIVEN
	       : rfl_text_same(c->source, "torch") ? RFL_POINT_OF_SHAPES
						   : rfl_ai_names[RFL_AI_COUNTERS];
}

static int by_bearer(const void *x, const void *y)
{
	const struct rfl_bearer *a = x, *b = y;
	const int order = strcmp(a->name, b->name);

	return order ? order : (a->run > b->run) - (a->run < b->run);
}

static void find_bearers(struct rfl_merge_job *job)
{
	const struct rfl_runs *runs = job->in->runs;
	struct rfl_bearers *lists[] = { &job->labels, &job->ids };

	for (size_t k = 0; k < RFL_ARRAY_LEN(lists); k++) {
		struct rfl_bearers *b = lists[k];

		b->list = rfl_arena_array(job->arena, runs->n, sizeof(*b->list));
		for (size_t i = 0; i < runs->n; i++) {
			const struct rfl_run *run = &runs->runs[i];
			const char *name = k ? run->id : run->label;

			if (is_text(name))
				b->list[b->n++] = (struct rfl_bearer){ .name = name, .run = run };
		}
		qsort(b->list, b->n, sizeof(*b->list), by_bearer);
	}
}

/* Compare the beginning of a name with a text. */
static int compare(const char *name, const char *text, size_t len)
{
	const int order = strncmp(name, text, len);

	return order ? order : name[len] != '\0';
}

/* Find the runs with a name. @return the first of them */
static const struct rfl_bearer *find(const struct rfl_bearers *b, const char *text, size_t len,
				     size_t *found)
{
	size_t low = 0, high = b->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(b->list[middle].name, text, len) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (*found = 0; low + *found < b->n && !compare(b->list[low + *found].name, text, len);)
		++*found;
	return b->list + low;
}

/* Find the runs with the run_id of a capture or, if it has none, with its label. The time stamps in
 * names of log files are ignored if no run has the whole name. */
static const struct rfl_bearer *bearers_of(const struct rfl_merge_job *job,
					   const struct rfl_capture *c, size_t *n)
{
	const struct rfl_bearer *first;

	*n = 0;
	if (is_text(c->run_id))
		return find(&job->ids, c->run_id, strlen(c->run_id), n);
	if (!is_text(c->label))
		return NULL;
	first = find(&job->labels, c->label, strlen(c->label), n);
	return *n ? first : find(&job->labels, c->label, rfl_label_unstamped(c->label), n);
}

/* The columns by which captures are joined, and others which determine FLOPs and bytes: work,
 * library and device. */
static const enum rfl_ledger_at facts[] = {
	RFL_LEDGER_AT_env,       RFL_LEDGER_AT_model,          RFL_LEDGER_AT_precision,
	RFL_LEDGER_AT_mode,      RFL_LEDGER_AT_batch,          RFL_LEDGER_AT_layout,
	RFL_LEDGER_AT_optimizer, RFL_LEDGER_AT_micro_batch,    RFL_LEDGER_AT_accum,
	RFL_LEDGER_AT_img_size,  RFL_LEDGER_AT_classes,        RFL_LEDGER_AT_context_length,
	RFL_LEDGER_AT_engine,    RFL_LEDGER_AT_engine_version, RFL_LEDGER_AT_device_name,
	RFL_LEDGER_AT_attention, RFL_LEDGER_AT_net_digest,
};
enum { NAMED = 4, JOINING = 5 }; /* without and with the batch */

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

/* The batch in a label is for one forward pass, like --batch-size. */
static int64_t label_batch(const struct rfl_ledger_row *row)
{
	return row->micro_batch > 0 ? row->micro_batch : row->batch;
}

/* @return NULL, or the reason why the capture cannot be identified */
static const char *identify(struct rfl_merge_job *job, const struct rfl_capture *c,
			    struct identity *id)
{
	static const struct rfl_ledger_row none = { .batch = -1 };
	const struct rfl_ledger_row *h = &none;
	const struct rfl_runs *runs = job->in->runs;
	size_t n;
	const struct rfl_bearer *bearer = bearers_of(job, c, &n);

	/* Find the run with the same label, preferably one with status ok. */
	for (size_t i = 0; i < n; i++) {
		const struct rfl_run *run = bearer[i].run;
		const struct rfl_ledger_row *row = run->like;

		if (id->home && !rfl_ledger_same(facts, JOINING, h, row))
			return rfl_merge__text(job,
					       "%s:%zu and :%zu are different runs with its label; "
					       "use unique labels",
					       runs->files[0].path, id->home->line, run->line);
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
		return NULL;
	if (id->label.not_env[0])
		return rfl_merge__text(
			job,
			"'%s' is not a valid environment name (a lower-case letter, then "
			"lower-case letters, digits and '_'); rename the file, or use this "
			"label (--label) and an --env for the profiled run",
			id->label.not_env);
	return rfl_merge__text(job,
			       "its label '%s' does not name %s; name the file "
			       "{env}_{model}_{precision}_bs{batch}_prof, or use this label "
			       "(--label) for the profiled run",
			       c->label ? c->label : "",
			       id->model[0] ? "an environment" : "a model of the ledger");
}

/* Return the first of these fields, beginning at an index, in which two runs differ. Unknown values
 * are ignored except in those that join. */
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

static const char *words(struct rfl_merge_job *job, const struct identity *id)
{
	char batch[32] = "";

	if (id->batch > 0)
		(void)snprintf(batch, sizeof(batch), " bs%lld", (long long)id->batch);
	return rfl_merge__text(job, "%s %s%s%s%s%s%s", id->env, id->model,
			       id->precision[0] ? " " : "", id->precision, batch,
			       id->mode[0] ? " " : "", id->mode);
}

/* Why a capture cannot be of a run, as far as their devices are known; NULL: it can. Chips of one
 * compute capability are not distinguished, because a file may contain nothing else. */
static const char *other_device(struct rfl_merge_job *job, const struct rfl_capture *c,
				const struct rfl_ledger_row *row)
{
	const bool gpu = rfl_capture_is_of_gpu(c), named = is_text(row->device_name);
	const bool on_gpu = is_text(row->backend) ? strcmp(row->backend, "cpu") != 0 : gpu;
	const struct rfl_chip *chip = c->chip ? rfl_chip_find(c->chip) : NULL;
	const struct rfl_chip *of = named ? rfl_chip_of_device(row->device_name, 0) : NULL;

	/* a program has captures of both; the one of the CPU has no work of the GPU, but may have
	 * what the user knows */
	if (!gpu && rfl_text_same(row->mode, RFL_LEDGER_PROGRAM))
		return NULL;
	if (gpu == on_gpu && (!chip || !of || chip->capability == of->capability))
		return NULL;
	return rfl_merge__text(
		job,
		"it was counted on %s%s, but %s %s ran on %s; use the label of a run "
		"on that device (--label)",
		gpu ? "a GPU" : "a CPU", chip ? rfl_merge__text(job, " (%s)", chip->name) : "",
		row->env, row->model, named ? row->device_name : row->backend);
}

/* Find the configurations of a capture in `list`, and copy them to `hits`.
 * @return NULL, or the reason why there are none */
static const char *candidates(struct rfl_merge_job *job, const struct rfl_capture *capture,
			      struct rfl_config *const *list, size_t n, const struct identity *id,
			      struct rfl_config **hits, size_t *nhits)
{
	const char *ledger = job->in->runs->files[0].path;
	const struct rfl_field *mismatch = NULL, *f;
	const char *elsewhere = NULL, *why;
	char one[RFL_NUM_MAX], other[RFL_NUM_MAX];

	*nhits = 0;
	for (size_t i = 0; i < n; i++) {
		struct rfl_config *c = list[i];
		const struct rfl_ledger_row *row = c->row;
		bool joining = false;

		if (strcmp(id->env, c->env) != 0 || !rfl_text_same(id->model, row->model) ||
		    (id->precision[0] && !rfl_text_same(id->precision, row->precision)) ||
		    (id->mode[0] && !rfl_text_same(id->mode, row->mode)) ||
		    (id->batch >= 0 && id->batch != label_batch(row)))
			continue;
		if (id->home && (f = differ(JOINING, id->home->like, row))) {
			mismatch = f;
			continue;
		}
		if ((why = other_device(job, capture, row))) {
			elsewhere = why;
			continue;
		}
		f = *nhits ? differ(0, hits[0]->row, row) : NULL;
		hits[(*nhits)++] = c;
		if (!f)
			continue;
		for (size_t k = 0; k < JOINING; k++)
			joining = joining || f == &rfl_ledger_fields[facts[k]];
		return rfl_merge__text(
			job,
			"its label does not contain the %s, and %s has %s with %s and %s: %suse "
			"this label (--label) for the profiled run, so that the ledger has a row "
			"for it",
			f->name, ledger, words(job, id), rfl_field_write(f, hits[0]->row, one),
			rfl_field_write(f, row, other),
			joining ? "add it to the name "
				  "({env}_{model}_{precision}_bs{batch}_{mode}_prof), or "
				: "");
	}
	if (*nhits || elsewhere)
		return *nhits ? NULL : elsewhere;
	if (mismatch)
		return rfl_merge__text(job,
				       "%s:%zu, the profiled run, has a different '%s' from the "
				       "timed runs of %s",
				       ledger, id->home->line, mismatch->name, words(job, id));
	return rfl_merge__text(job,
			       "%s has no timed run of %s (runs labelled _prof are not timed); run "
			       "it without the profiler as well",
			       ledger, words(job, id));
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
	struct rfl_config **of_run; /* the configuration of a run, or NULL */
	size_t nall;
	struct rfl_config **all;   /* those with own counters, and the leaders */
	struct rfl_config **first; /* the first leader with each name */
	/* scratch of join_one() */
	struct rfl_config **list, **hits;
};

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

	return rfl_ledger_same(facts, NAMED, a, b) && label_batch(a) == label_batch(b);
}

static bool same_work(const void *x, const void *y)
{
	const struct rfl_ledger_row *a = ((const struct rfl_run *)x)->like;
	const struct rfl_ledger_row *b = ((const struct rfl_run *)y)->like;

	return rfl_ledger_same(facts, RFL_ARRAY_LEN(facts), a, b);
}

/* Set name, leader and next of every configuration. */
static void find_leaders(struct rfl_merge_job *job, struct owners *o)
{
	RFL_AUTO(row_index) names = { .hash = hash_of_name, .alike = same_name };
	RFL_AUTO(row_index) works = { .hash = hash_of_name, .alike = same_work };
	struct rfl_config **leaders =
		rfl_arena_array(job->arena, job->n, sizeof(struct rfl_config *));

	for (struct rfl_config *c = job->configs; c < job->configs + job->n; c++) {
		c->name = rfl_row_index_put(&names, c->runs[0].run);
		if (!c->own_counters) {
			const size_t at = rfl_row_index_put(&works, c->runs[0].run);

			leaders[at] = leaders[at] ? leaders[at] : c;
			c->alike = leaders[at] == c ? NULL : leaders[at];
		}
		if (!c->alike)
			o->all[o->nall++] = c;
	}
	for (size_t i = job->n; i-- > 0;) {
		struct rfl_config *c = &job->configs[i];

		if (!c->alike && !c->own_counters) {
			c->next = o->first[c->name];
			o->first[c->name] = c;
		}
	}
}

static void find_owners(struct rfl_merge_job *job, struct owners *o)
{
	const struct rfl_captures *captures = job->in->counters.captures;
	const struct rfl_run *runs = job->in->runs->runs;
	struct rfl_config ***const lists[] = { &o->of_run, &o->all, &o->first, &o->list, &o->hits };

	for (size_t i = 0; i < RFL_ARRAY_LEN(lists); i++)
		*lists[i] = rfl_arena_array(job->arena, i ? job->n : job->in->runs->n,
					    sizeof(struct rfl_config *));
	for (struct rfl_config *c = job->configs; c < job->configs + job->n; c++)
		for (size_t k = 0; k < c->nruns; k++)
			o->of_run[c->runs[k].run - runs] = c;
	for (size_t i = 0; i < captures->n; i++) {
		const struct rfl_amount *total = captures->captures[i]->total;
		size_t n;
		const struct rfl_bearer *b = bearers_of(job, captures->captures[i], &n);

		/* work is equal in other runs, but the times of parts are not */
		if (job->options->by == RFL_BY_STEP && isnan(total[RFL_QUANTITY_FLOPS].value) &&
		    isnan(total[RFL_QUANTITY_DRAM].value))
			continue;
		for (size_t k = 0; k < n; k++)
			if (o->of_run[b[k].run - runs] &&
			    !other_device(job, captures->captures[i], b[k].run->like))
				o->of_run[b[k].run - runs]->own_counters = true;
	}
	/* programs of the same name need not do the same work */
	for (struct rfl_config *c = job->configs; c < job->configs + job->n; c++)
		c->own_counters = c->own_counters || c->is_program;
	find_leaders(job, o);
}

static bool is_wanted(const struct rfl_merge_options *o, const char *env)
{
	for (size_t i = 0; i < o->nenvs; i++)
		if (strcmp(o->envs[i], env) == 0)
			return true;
	return o->nenvs == 0;
}

static void add_capture(struct rfl_merge_job *job, struct rfl_config *c,
			const struct rfl_capture *capture, const struct identity *id)
{
	struct rfl_joined *to = rfl_arena_append(job->arena, &c->counted, &c->ncounted);
	struct rfl_label parts;

	rfl_label_parse(capture->label, id->home ? id->home->like->model : NULL, &parts);
	*to = (struct rfl_joined){ .capture = capture,
				   .home = id->home,
				   .steps = -1,
				   .number = parts.run,
				   .unknown = "" };
}

/* Add a note if a capture has the label of a timed run, which the profiler may have slowed down. */
static void note_slowed(struct rfl_merge_job *job, const struct rfl_capture *capture,
			const struct identity *id)
{
	const char *source = capture->source;

	if (id->home && !is_text(capture->run_id) && rfl_text_same(id->home->like->status, "ok") &&
	    (rfl_text_same(source, "ncu") || rfl_text_same(source, "nvprof") ||
	     rfl_text_same(source, "rocprof")) &&
	    !is_profiled(id->home))
		rfl_buf_printf(&job->report->notes,
			       "counters: %s has the label of %s:%zu, a run with times that are "
			       "used in the points; if the run was slowed down by %s, use a label "
			       "that ends in _prof\n",
			       rfl_counters__name(capture), job->in->runs->files[0].path,
			       id->home->line, source);
}

static void join_one(struct rfl_merge_job *job, const struct rfl_capture *capture,
		     struct owners *owners)
{
	struct rfl_config **list = owners->all, *own = NULL, *mine = NULL;
	struct identity id = { .batch = -1 };
	const char *why = identify(job, capture, &id);
	size_t n = owners->nall, nhits = 0;

	if (!why && !is_wanted(job->options, id.env)) {
		job->report->other_captures++;
		return;
	}
	if (!why && id.home && !is_profiled(id.home))
		own = owners->of_run[id.home - job->in->runs->runs];
	if (own && (why = other_device(job, capture, own->row)))
		own = NULL;
	if (own) {
		/* without useful counters of its own, it may have a leader, or be one */
		mine = own->alike ? own->alike : own;
		add_capture(job, mine, capture, &id);
		list = owners->list;
		n = 0;
		for (struct rfl_config *c = mine == own ? owners->first[own->name] : NULL; c;
		     c = c->next)
			list[n++] = c;
	}
	if (!why)
		why = candidates(job, capture, list, n, &id, owners->hits, &nhits);
	if (own && (why || job->options->by != RFL_BY_STEP)) /* only its own configuration */
		nhits = 0;
	if (why && !own) {
		job->report->unjoined++;
		rfl_buf_printf(&job->report->notes, "counters: %s matches no run: %s\n",
			       rfl_counters__name(capture), why);
		return;
	}
	note_slowed(job, capture, &id);
	for (size_t i = 0; i < nhits; i++)
		if (owners->hits[i] != mine)
			add_capture(job, owners->hits[i], capture, &id);
}

static bool is_time(const struct rfl_capture *c)
{
	return rfl_text_same(c->source, "time");
}

/* Write one note for a directory that only contains time logs, which have no counts. */
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
			return; /* the directory is already noted or contains other captures */
		n++;
	}
	if (n > 0)
		rfl_buf_printf(&report->notes,
			       "counters: nothing in %.*s is used: time logs (%zu) contain neither "
			       "FLOPs nor bytes; use perf stat or likwid\n",
			       (int)len, path, n);
}

void rfl_counters__join(struct rfl_merge_job *job)
{
	const struct rfl_captures *all = job->in->counters.captures;
	struct owners owners = { .nall = 0 };

	if (!all || !all->n)
		return;
	find_bearers(job);
	find_owners(job, &owners);
	for (size_t i = 0; i < all->n; i++)
		if (is_time(all->captures[i]))
			note_time_logs(all, i, job->report);
		else
			join_one(job, all->captures[i], &owners);
	for (struct rfl_config *c = job->configs; c < job->configs + job->n; c++)
		if (c->alike) {
			c->counted = c->alike->counted;
			c->ncounted = c->alike->ncounted;
		}
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

/* The launch counts of the kernels of a capture. */
struct launches {
	size_t kernels, off; /* `off`: those with a count that is not a multiple of `steps` */
	int64_t common;      /* the greatest common divisor of the counts; 0: no kernels */
};

static struct launches launches_of(const struct rfl_capture *c, int64_t steps)
{
	struct launches ret = { .kernels = 0 };

	for (size_t i = 0; i < c->nranges; i++) {
		int64_t a = c->ranges[i].launches, rest;

		if (c->ranges[i].kind != RFL_RANGE_KERNEL || a < 1)
			continue;
		ret.kernels++;
		ret.off += a % steps != 0;
		for (; ret.common; ret.common = rest) {
			rest = a % ret.common;
			a = ret.common;
		}
		ret.common = a;
	}
	return ret;
}

/* Take the number of steps from the rows with the same label, if they agree. */
static void from_ledger(struct rfl_merge_job *job, struct rfl_joined *counted)
{
	const bool process = rfl_counters__whole_process(counted);
	const struct rfl_run *first = NULL;
	int64_t steps = -1;
	size_t nbearers;
	const struct rfl_bearer *bearer = bearers_of(job, counted->capture, &nbearers);

	for (size_t i = 0; i < nbearers; i++) {
		const struct rfl_run *run = bearer[i].run;
		const struct rfl_ledger_row *row = run->like;
		int64_t n = row->iters;

		/* steps in the window, plus warm-up if the whole process was counted */
		if (!rfl_text_same(row->status, "ok") || n < 1 ||
		    (process && (row->warmup < 0 || !rfl_num_add(row->iters, row->warmup, &n))))
			continue;
		if (first && n != steps) {
			counted->unknown = rfl_merge__text(
				job,
				"rows %zu and %zu of the ledger have its label but "
				"%lld and %lld steps",
				first->line, run->line, (long long)steps, (long long)n);
			return;
		}
		first = run;
		steps = n;
	}
	if (!first) {
		counted->unknown = counted->home ? "the row with its label has no number of steps"
						 : "no row of the ledger has its label";
		return;
	}
	counted->home = first;
	counted->steps = steps;
	counted->from = process ? RFL_STEPS_PROCESS : RFL_STEPS_LEDGER;
}

void rfl_counters__steps(struct rfl_merge_job *job, struct rfl_joined *counted)
{
	const struct rfl_capture *c = counted->capture;
	const int64_t of_label = given(job->in, c->label ? c->label : "");
	const int64_t all = given(job->in, NULL), common = launches_of(c, 1).common;

	if (c->steps > 0 || of_label > 0) {
		counted->steps = c->steps > 0 ? c->steps : of_label;
		counted->from = c->steps > 0 ? RFL_STEPS_OWN : RFL_STEPS_LABEL;
		return;
	}
	counted->steps = -1;
	counted->from = RFL_STEPS_UNKNOWN;
	if (job->in->runs)
		from_ledger(job, counted);
	if (counted->steps < 1 && all > 0) {
		counted->steps = all;
		counted->from = RFL_STEPS_GIVEN;
	}
	if (counted->steps < 1 && !job->in->runs) {
		counted->steps = 1;
		counted->from = RFL_STEPS_CAPTURE;
	}
	if (counted->steps < 1 && common > 1) /* the launch counts may suggest the number */
		counted->unknown =
			rfl_merge__text(job, "%s; all launch counts are multiples of %lld",
					counted->unknown, (long long)common);
}

/* Check whether the warm-up was profiled too.
 * @param without  checked with the steps of the window only
 * @return number of steps in window and warm-up; 0: the warm-up was not profiled */
static int64_t with_warmup(const struct rfl_joined *counted, double ratio,
			   const struct launches *without)
{
	const struct rfl_run *home = counted->home;
	struct launches with;
	int64_t all;

	if (counted->from != RFL_STEPS_LEDGER || !home || home->like->warmup < 1 ||
	    !rfl_num_add(counted->steps, home->like->warmup, &all))
		return 0;
	with = launches_of(counted->capture, all);
	if (!with.kernels || with.off)
		return 0;
	/* The launch counts may be multiples of both numbers, such as 10 and 20. In that case
	 * compare the FLOPs. */
	if (without->off == 0 && !(fabs(ratio * (double)counted->steps / (double)all - 1) < 0.1))
		return 0;
	return all;
}

struct cause {
	bool likely;
	const char *text;
};

/* The likely causes as " (1) ...; (2) ...". */
static const char *rank(struct rfl_merge_job *job, const struct cause *causes, size_t n)
{
	struct rfl_buf text = { .len = 0 };
	int shown = 0;

	for (size_t i = 0; i < n; i++)
		if (causes[i].likely) {
			rfl_buf_printf(&text, "%s(%d) %s", shown ? "; " : " ", shown + 1,
				       causes[i].text);
			shown++;
		}
	return rfl_merge__keep(job, &text);
}

/* Suggest a number of steps derived from the FLOPs or, failing that, from the launch counts. */
static const char *other_steps(struct rfl_merge_job *job, const struct rfl_joined *counted,
			       double ratio)
{
	const char *label = counted->capture->label ? counted->capture->label : "LABEL";
	const int64_t common = launches_of(counted->capture, 1).common;
	const char *fit = "";

	if (ratio * (double)counted->steps >= 1)
		fit = rfl_merge__text(job, " (%.0f would match)", ratio * (double)counted->steps);
	else if (common > 1)
		fit = rfl_merge__text(job, " (all launch counts are multiples of %lld)",
				      (long long)common);
	return rfl_merge__text(job,
			       "the profiled run had a different number of steps%s: use "
			       "--counter-steps %s=N",
			       fit, label);
}

/* @param all  the number of steps with the warm-up, if that was profiled too; else 0 */
static const char *causes_of(struct rfl_merge_job *job, const struct rfl_joined *counted,
			     double ratio, const struct launches *launches, int64_t all,
			     const double *part)
{
	const bool amd = rfl_text_same(counted->capture->source, "rocprof");
	const char *label = counted->capture->label ? counted->capture->label : "LABEL";
	const bool live = counted->from == RFL_STEPS_OWN;
	const bool uncounted = isnan(part[RFL_QUANTITY_FLOPS_TENSOR_TF32]) ||
			       isnan(part[RFL_QUANTITY_FLOPS_TENSOR_FP16]) ||
			       isnan(part[RFL_QUANTITY_FLOPS_TENSOR_BF16]);
	const bool in_range = ratio >= RFL_COUNTERS_LEAST_RATIO && ratio <= RFL_COUNTERS_MOST_RATIO;
	const bool off = launches->off > 0, fit = launches->kernels && !off;
	const bool steps = !live && (off || !in_range) && !all;
	const char *const of_steps = other_steps(job, counted, ratio);
	const char *const of_precision = rfl_merge__text(
		job,
		"FLOPs of another precision were not counted (Tensor Cores in TF32 or 16 bits): "
		"'roofline counters %s' lists their metrics",
		amd ? "import" : "list --ncu");
	bool tiles = false;

	for (int q = RFL_QUANTITY_FLOPS_TENSOR_FP16; q < RFL_QUANTITY_FLOPS; q++)
		tiles = tiles || part[q] > 0;
	const struct cause causes[] = {
		{ counted->capture->rows_left_out > 0,
		  "some rows of the file could not be read and were skipped" },
		{ all > 0, rfl_merge__text(job,
					   "the warm-up was profiled too, %lld steps in total: use "
					   "--counter-steps %s=%lld, or profile only the window%s",
					   (long long)all, label, (long long)all,
					   amd ? "" : " (ncu --profile-from-start off)") },
		{ steps && !fit, of_steps },
		{ ratio > 1 && tiles, "Tensor Cores compute whole tiles including padding, which "
				      "adds most to small or windowed matrices" },
		{ ratio > 1 && !isnan(part[RFL_QUANTITY_FLOPS_FP32]),
		  "the counters include elementwise work and the optimizer, but the core count "
		  "does not" },
		/* the most likely cause if no kernel is missing */
		{ ratio < 1 && uncounted && !off, of_precision },
		{ ratio < 1 && !live, "not every kernel was profiled (because of a launch limit or "
				      "filter of the profiler)" },
		{ ratio < 1 && uncounted && off, of_precision },
		{ ratio < 1, "convolutions used an algorithm with fewer multiplications "
			     "(Winograd, FFT)" },
		{ steps && fit, of_steps },
	};

	return rank(job, causes, RFL_ARRAY_LEN(causes));
}

void rfl_counters__doubt(struct rfl_merge_job *job, const struct rfl_joined *counted,
			 const struct rfl_work *work, double flops, double bytes,
			 struct rfl_measured *m, struct rfl_buf *note)
{
	const double ratio = flops / work->flops;
	const double over_unfused = bytes / work->bytes[RFL_FUSION_UNFUSED];
	const bool live = counted->from == RFL_STEPS_OWN;
	const char *const of_steps = rfl_merge__text(
		job, "(%lld step%s)", (long long)counted->steps, counted->steps == 1 ? "" : "s");
	const struct launches launches = launches_of(counted->capture, live ? 1 : counted->steps);
	const int64_t all = with_warmup(counted, ratio, &launches);
	const char *off = "", *flops_text = "";

	if (launches.off)
		off = rfl_merge__text(
			job,
			"%zu of %zu kernels have a launch count that is not a multiple of %lld",
			launches.off, launches.kernels, (long long)counted->steps);
	if (ratio < RFL_COUNTERS_LEAST_RATIO || ratio > RFL_COUNTERS_MOST_RATIO ||
	    2 * launches.off > launches.kernels || all > 0) {
		if (!isnan(ratio))
			flops_text = rfl_merge__text(
				job, "%.3g x the FLOPs counted from the network", ratio);
		m->doubtful = true;
		m->doubt = rfl_merge__text(job, "%s%s%s %s", flops_text,
					   flops_text[0] && off[0] ? "; " : "", off, of_steps);
		m->causes = causes_of(job, counted, ratio, &launches, all, m->part);
		return;
	}
	if (launches.off)
		rfl_buf_printf(note, "; %s steps (set-up, tuning)", off);
	if (over_unfused > RFL_COUNTERS_MOST_BYTES) {
		const struct cause causes[] = {
			{ !live, other_steps(job, counted, NAN) },
			{ true, "other programs accessed memory at the same time" },
		};

		m->doubtful = true;
		m->doubt = rfl_merge__text(job, "%.3g x the bytes of unfused operations %s",
					   over_unfused, of_steps);
		m->causes = rank(job, causes, RFL_ARRAY_LEN(causes));
	}
}
