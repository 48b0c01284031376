/*
 * counters_join.c - which configuration of the ledger a capture is of.
 */
#include "roofline/counters_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
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

bool rfl_counters__bears(const struct rfl_runs *runs, const struct rfl_run *run,
			 const struct rfl_capture *c)
{
	size_t len;

	if (is_text(c->run_id))
		return rfl_text_same(c->run_id, rfl_runs_times(runs, run)->run_id);
	if (!is_text(c->label) || !is_text(run->label))
		return false;
	len = rfl_label_unstamped(c->label);
	return strcmp(run->label, c->label) == 0 ||
	       (strlen(run->label) == len && memcmp(run->label, c->label, len) == 0);
}

/* --- what a capture is of --- */

/* "" and -1: it does not say. */
struct identity {
	char env[49], precision[16], mode[8];
	char model[64];
	int64_t batch;
	struct rfl_label label;
	const struct rfl_run *home;
};

/* The label, read with the longest name of a model that the ledger has and the label contains. */
static void read_label(const struct rfl_runs *runs, const struct rfl_capture *c,
		       struct rfl_label *ret)
{
	const char *label = c->label ? c->label : "";

	rfl_label_parse(label, NULL, ret);
	for (size_t i = 0; i < runs->likes.n; i++) {
		const struct rfl_ledger_row *row = runs->likes.rows[i];
		struct rfl_label parts;

		if (!is_text(row->model) || rfl_text_same(row->model, ret->model))
			continue;
		rfl_label_parse(label, row->model, &parts);
		if (strlen(parts.model) > strlen(ret->model))
			*ret = parts;
	}
}

/* Rows of one label that are not of one configuration say nothing. */
static bool agree(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b)
{
	return rfl_text_same(a->model, b->model) && rfl_text_same(a->precision, b->precision) &&
	       rfl_text_same(a->mode, b->mode) && rfl_text_same(a->env, b->env) &&
	       a->batch == b->batch;
}

/* The row with the capture's label: one that ended well where there is one. */
static enum rfl_rc find_home(const struct rfl_merge_inputs *in, const struct rfl_capture *c,
			     const struct rfl_run **ret, struct rfl_buf *why)
{
	const struct rfl_run *home = NULL;

	for (size_t i = 0; i < in->runs->n; i++) {
		const struct rfl_run *run = &in->runs->runs[i];

		if (!rfl_counters__bears(in->runs, run, c))
			continue;
		if (home && !agree(home->like, run->like)) {
			rfl_buf_printf(why,
				       "%s:%zu and :%zu have its label and are different runs; "
				       "give every run a label of its own",
				       in->runs->files[0].path, home->line, run->line);
			return RFL_ENOTFOUND;
		}
		if (!home || (!rfl_text_same(home->like->status, "ok") &&
			      rfl_text_same(run->like->status, "ok")))
			home = run;
	}
	*ret = home;
	return RFL_OK;
}

static void take_text(char *to, size_t size, const char *first, const char *second)
{
	(void)snprintf(to, size, "%s", is_text(first) ? first : second);
}

/* A label has the batch of one forward, as --batch-size has it. */
static int64_t label_batch(const struct rfl_ledger_row *row)
{
	return row->micro_batch > 0 ? row->micro_batch : row->batch;
}

static enum rfl_rc identify(const struct rfl_merge_inputs *in, const struct rfl_capture *c,
			    struct identity *id, struct rfl_buf *why)
{
	const struct rfl_ledger_row *h;
	enum rfl_rc rc = find_home(in, c, &id->home, why);

	if (rc != RFL_OK)
		return rc;
	h = id->home ? id->home->like : NULL;
	read_label(in->runs, c, &id->label);
	take_text(id->model, sizeof(id->model), h ? h->model : NULL, id->label.model);
	take_text(id->precision, sizeof(id->precision), h ? h->precision : NULL,
		  id->label.precision);
	take_text(id->mode, sizeof(id->mode), h ? h->mode : NULL, id->label.mode);
	id->batch = h && h->batch > 0 ? label_batch(h) : id->label.batch;
	take_text(id->env, sizeof(id->env), h ? h->env : NULL, id->label.env);
	if (id->env[0] && id->model[0])
		return RFL_OK;
	if (id->label.not_env[0])
		rfl_buf_printf(why,
			       "'%s' is not a valid environment name (a lower-case letter, then "
			       "lower-case letters, digits and '_'): rename the file, or give the "
			       "run that was profiled this label (--label) and --env",
			       id->label.not_env);
	else
		rfl_buf_printf(why,
			       "its label '%s' does not name %s: name the file "
			       "{env}_{model}_{precision}_bs{batch}_prof, or give the run that was "
			       "profiled this label (--label)",
			       c->label ? c->label : "",
			       id->model[0] ? "an environment" : "a model of the ledger");
	return RFL_ENOTFOUND;
}

/* --- which configurations that can be --- */

/* What candidates may differ in: three that join, then what the work of a step depends on and who
 * does it. Another library or another device moves other bytes. */
static const char *const facts[] = {
	"precision",   "batch",          "mode",        "layout",  "optimizer",
	"micro_batch", "accum",          "img_size",    "classes", "context_length",
	"engine",      "engine_version", "device_name", NULL,
};
static const char *const *const work_facts = facts + 3;

static const char *value_of(const struct rfl_ledger_row *row, const char *fact,
			    char number[RFL_NUM_MAX])
{
	return rfl_field_write(&rfl_ledger_fields[rfl_ledger_column_find(fact)], row, number);
}

/* The first of these facts in which two runs differ; what one of them does not say of its work
 * makes no difference. */
static const char *differ(const char *const *fact, const struct rfl_ledger_row *a,
			  const struct rfl_ledger_row *b)
{
	for (; *fact; fact++) {
		char x[RFL_NUM_MAX], y[RFL_NUM_MAX];
		const char *of_a = value_of(a, *fact, x), *of_b = value_of(b, *fact, y);
		bool known = is_text(of_a) && is_text(of_b) && strcmp(of_a, "0") != 0 &&
			     strcmp(of_b, "0") != 0;

		if (strcmp(of_a, of_b) != 0 && (known || fact < work_facts))
			return *fact;
	}
	return NULL;
}

static bool is_it(const struct identity *id, const struct rfl_config *c)
{
	const struct rfl_ledger_row *row = c->row;

	return strcmp(id->env, c->env) == 0 && rfl_text_same(id->model, row->model) &&
	       (!id->precision[0] || rfl_text_same(id->precision, row->precision)) &&
	       (!id->mode[0] || rfl_text_same(id->mode, row->mode)) &&
	       (id->batch < 0 || id->batch == label_batch(row));
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

static void say_ambiguous(const struct rfl_merge_inputs *in, const struct identity *id,
			  const struct rfl_config *a, const struct rfl_config *b, const char *what,
			  struct rfl_buf *why)
{
	char number[RFL_NUM_MAX];

	rfl_buf_printf(why, "its label does not say the %s, and %s has ", what,
		       in->runs->files[0].path);
	words(id, why);
	rfl_buf_printf(why, " with %s", value_of(a->row, what, number));
	rfl_buf_printf(why, " and %s: ", value_of(b->row, what, number));
	if (strcmp(what, "batch") == 0 || strcmp(what, "precision") == 0 ||
	    strcmp(what, "mode") == 0)
		rfl_buf_puts(why, "put it into the name "
				  "({env}_{model}_{precision}_bs{batch}_{mode}_prof), or ");
	rfl_buf_puts(why, "give the run that was profiled this label (--label), so that the ledger "
			  "has a row of it");
}

static void say_none(const struct rfl_merge_inputs *in, const struct identity *id,
		     const char *mismatch, struct rfl_buf *why)
{
	if (mismatch) {
		rfl_buf_printf(why,
			       "%s:%zu, the run that was profiled, has another '%s' than the timed "
			       "runs of ",
			       in->runs->files[0].path, id->home->line, mismatch);
		words(id, why);
		return;
	}
	rfl_buf_printf(why, "%s has no timed run of ", in->runs->files[0].path);
	words(id, why);
	rfl_buf_puts(why, " (runs whose label says _prof are not timed): run it without the "
			  "profiler too");
}

/* Mark the configurations that a capture is of in `hit`. RFL_ENOTFOUND with `why`. */
static enum rfl_rc candidates(const struct rfl_merge_inputs *in, const struct rfl_configs *cs,
			      const struct identity *id, bool *hit, struct rfl_buf *why)
{
	const struct rfl_config *first = NULL;
	const char *mismatch = NULL;

	for (size_t i = 0; i < cs->n; i++) {
		const struct rfl_config *c = &cs->configs[i];
		const char *what;

		hit[i] = is_it(id, c);
		if (!hit[i])
			continue;
		what = id->home ? differ(work_facts, id->home->like, c->row) : NULL;
		if (what) {
			mismatch = what;
			hit[i] = false;
			continue;
		}
		what = first ? differ(facts, first->row, c->row) : NULL;
		if (what) {
			say_ambiguous(in, id, first, c, what, why);
			return RFL_ENOTFOUND;
		}
		first = first ? first : c;
	}
	if (!first) {
		say_none(in, id, mismatch, why);
		return RFL_ENOTFOUND;
	}
	return RFL_OK;
}

/* --- handing over --- */

static enum rfl_rc add(struct rfl_config *c, const struct rfl_capture *capture,
		       const struct rfl_run *home, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_grow(&c->counted, &c->counted_cap, c->ncounted + 1, SIZE_MAX, err);

	if (rc != RFL_OK)
		return rc;
	c->counted[c->ncounted++] = (struct rfl_joined){
		.capture = capture,
		.home = home,
		.steps = -1,
	};
	return RFL_OK;
}

/* Counters of the label of a timed run: was it that run that the profiler slowed down? */
static void warn_slowed(const struct rfl_merge_inputs *in, const struct rfl_capture *c,
			const struct identity *id, struct rfl_merge_report *report)
{
	static const char *const slow[] = { "ncu", "nvprof", NULL };
	struct rfl_label parts;

	if (!id->home || is_text(c->run_id) || !rfl_text_same(id->home->like->status, "ok"))
		return;
	rfl_label_parse(id->home->label ? id->home->label : "", id->home->like->model, &parts);
	for (size_t i = 0; slow[i] && !parts.profiled; i++)
		if (rfl_text_same(c->source, slow[i]))
			rfl_buf_printf(&report->notes,
				       "counters: %s has the label of %s:%zu, whose times are in "
				       "the points; if that run was made under %s they are slowed: "
				       "label such runs _prof\n",
				       rfl_counters__name(c), in->runs->files[0].path,
				       id->home->line, slow[i]);
}

static enum rfl_rc join_one(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			    const struct rfl_capture *capture, struct rfl_configs *cs, bool *hit,
			    struct rfl_merge_report *report, struct rfl_err *err)
{
	struct identity id = { .batch = -1 };
	struct rfl_buf why;
	enum rfl_rc rc;

	rfl_buf_init(&why, 1 << 16);
	rc = identify(in, capture, &id, &why);
	if (rc == RFL_OK && !rfl_merge__wanted(o, id.env)) {
		report->other_captures++;
		goto done;
	}
	if (rc == RFL_OK)
		rc = candidates(in, cs, &id, hit, &why);
	if (rc == RFL_ENOTFOUND && rfl_buf_check(&why, "counters", err) != RFL_OK) {
		rc = RFL_ENOMEM;
		goto done;
	}
	if (rc == RFL_ENOTFOUND) {
		report->unjoined++;
		rfl_buf_printf(&report->notes, "counters: %s joins no run: %s\n",
			       rfl_counters__name(capture), rfl_buf_str(&why));
		rc = RFL_OK;
		goto done;
	}
	warn_slowed(in, capture, &id, report);
	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++)
		if (hit[i])
			rc = add(&cs->configs[i], capture, id.home, err);
done:
	rfl_buf_fini(&why);
	return rc;
}

static bool has_run(const struct rfl_config *c, const struct rfl_run *run)
{
	for (size_t i = 0; i < c->nruns; i++)
		if (c->runs[i].run == run)
			return true;
	return false;
}

/* Was a timed run of another configuration counted, one of equal work? */
static bool is_borrowed(const struct rfl_config *c, const struct rfl_joined *counted)
{
	struct rfl_label parts;

	if (!counted->home || has_run(c, counted->home))
		return false;
	rfl_label_parse(counted->home->label ? counted->home->label : "",
			counted->home->like->model, &parts);
	return !parts.profiled;
}

/* A configuration whose own runs were counted needs no counters of another one. */
static void give_back(struct rfl_config *c)
{
	bool own = false;
	size_t n = 0;

	for (size_t i = 0; i < c->ncounted; i++) {
		const struct rfl_amount *total = c->counted[i].capture->total;

		own = own || (c->counted[i].home && has_run(c, c->counted[i].home) &&
			      !(isnan(total[RFL_QUANTITY_FLOPS].value) &&
				isnan(total[RFL_QUANTITY_DRAM].value)));
	}
	if (!own)
		return;
	for (size_t i = 0; i < c->ncounted; i++)
		if (!is_borrowed(c, &c->counted[i]))
			c->counted[n++] = c->counted[i];
	c->ncounted = n;
}

static bool is_time(const struct rfl_capture *c)
{
	return rfl_text_same(c->source, "time");
}

/* A folder of time logs, which count nothing: said of the first of them. */
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
			return; /* it has been said, or others are there */
		n++;
	}
	if (n > 0)
		rfl_buf_printf(&report->notes,
			       "counters: nothing in %.*s is used: time logs (%zu) count neither "
			       "FLOPs nor bytes; perf stat and likwid do\n",
			       (int)len, path, n);
}

enum rfl_rc rfl_counters__join(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			       struct rfl_configs *cs, struct rfl_merge_report *report,
			       struct rfl_err *err)
{
	const struct rfl_captures *all = in->counters.captures;
	bool *hit = rfl_alloc_array(cs->n + 1, sizeof(*hit));
	enum rfl_rc rc = RFL_OK;

	if (!hit)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; all && i < all->n && rc == RFL_OK; i++)
		if (is_time(all->captures[i]))
			note_time_logs(all, i, report);
		else
			rc = join_one(in, o, all->captures[i], cs, hit, report, err);
	for (size_t i = 0; i < cs->n; i++)
		give_back(&cs->configs[i]);
	free(hit);
	return rc;
}
