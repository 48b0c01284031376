/*
 * counters_join.c - which configuration of the ledger a capture is of.
 */
#include "roofline/parts.h"

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

/* NULL, "" and -1: it does not say. */
struct identity {
	const char *env, *model, *precision, *mode; /* of the row, or of the label */
	int64_t batch;
	struct rfl_label label;
	const struct rfl_run *home; /* the run with the capture's label */
};

static const char *either(const char *first, const char *second)
{
	return is_text(first) ? first : second;
}

/* A label has the batch of one forward, as --batch-size has it. */
static int64_t label_batch(const struct rfl_ledger_row *row)
{
	return row->micro_batch > 0 ? row->micro_batch : row->batch;
}

static enum rfl_rc identify(const struct rfl_merge_inputs *in, const struct rfl_capture *c,
			    struct identity *id, struct rfl_buf *why)
{
	static const struct rfl_ledger_row none = { .batch = -1 };
	const struct rfl_ledger_row *h = &none;
	const struct rfl_runs *runs = in->runs;

	/* the run with its label: one that ended well where there is one */
	for (size_t i = 0; i < runs->n; i++) {
		const struct rfl_run *run = &runs->runs[i];
		const struct rfl_ledger_row *row = run->like;

		if (!rfl_counters__bears(runs, run, c))
			continue;
		if (id->home &&
		    (!rfl_text_same(h->model, row->model) || h->batch != row->batch ||
		     !rfl_text_same(h->precision, row->precision) ||
		     !rfl_text_same(h->mode, row->mode) || !rfl_text_same(h->env, row->env))) {
			rfl_buf_printf(why,
				       "%s:%zu and :%zu have its label and are different runs; "
				       "give every run a label of its own",
				       runs->files[0].path, id->home->line, run->line);
			return RFL_ENOTFOUND;
		}
		if (!id->home ||
		    (!rfl_text_same(h->status, "ok") && rfl_text_same(row->status, "ok"))) {
			id->home = run;
			h = row;
		}
	}

	/* the label, read with the longest name of a model that the ledger has and it contains */
	rfl_label_parse(c->label, NULL, &id->label);
	for (size_t i = 0; i < runs->likes.n; i++) {
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
static const enum rfl_ledger_at facts[] = {
	RFL_LEDGER_AT_precision,      RFL_LEDGER_AT_batch,     RFL_LEDGER_AT_mode,
	RFL_LEDGER_AT_layout,         RFL_LEDGER_AT_optimizer, RFL_LEDGER_AT_micro_batch,
	RFL_LEDGER_AT_accum,          RFL_LEDGER_AT_img_size,  RFL_LEDGER_AT_classes,
	RFL_LEDGER_AT_context_length, RFL_LEDGER_AT_engine,    RFL_LEDGER_AT_engine_version,
	RFL_LEDGER_AT_device_name,
};
enum { JOINING = 3 };

/* The first of these facts, from one on, in which two runs differ; what one of them does not say of
 * its work makes no difference. */
static const struct rfl_field *differ(size_t from, const struct rfl_ledger_row *a,
				      const struct rfl_ledger_row *b)
{
	for (size_t i = from; i < RFL_ARRAY_LEN(facts); i++) {
		const struct rfl_field *f = &rfl_ledger_fields[facts[i]];
		char x[RFL_NUM_MAX], y[RFL_NUM_MAX];
		const char *of_a = rfl_field_write(f, a, x), *of_b = rfl_field_write(f, b, y);
		const bool known = is_text(of_a) && is_text(of_b) && strcmp(of_a, "0") != 0 &&
				   strcmp(of_b, "0") != 0;

		if (strcmp(of_a, of_b) != 0 && (known || i < JOINING))
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

static void say_ambiguous(const char *ledger, const struct identity *id, const struct rfl_config *a,
			  const struct rfl_config *b, const struct rfl_field *f,
			  struct rfl_buf *why)
{
	char number[RFL_NUM_MAX];

	rfl_buf_printf(why, "its label does not say the %s, and %s has ", f->name, ledger);
	words(id, why);
	rfl_buf_printf(why, " with %s", rfl_field_write(f, a->row, number));
	rfl_buf_printf(why, " and %s: ", rfl_field_write(f, b->row, number));
	for (size_t i = 0; i < JOINING; i++)
		if (f == &rfl_ledger_fields[facts[i]])
			rfl_buf_puts(why, "put it into the name "
					  "({env}_{model}_{precision}_bs{batch}_{mode}_prof), or ");
	rfl_buf_puts(why, "give the run that was profiled this label (--label), so that the ledger "
			  "has a row of it");
}

/* Mark the configurations that a capture is of in `hit`. RFL_ENOTFOUND with `why`. */
static enum rfl_rc candidates(const struct rfl_merge_inputs *in, const struct rfl_configs *cs,
			      const struct identity *id, bool *hit, struct rfl_buf *why)
{
	const char *ledger = in->runs->files[0].path;
	const struct rfl_config *first = NULL;
	const struct rfl_field *mismatch = NULL;

	for (size_t i = 0; i < cs->n; i++) {
		const struct rfl_config *c = &cs->configs[i];
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
			say_ambiguous(ledger, id, first, c, f, why);
			return RFL_ENOTFOUND;
		}
		first = first ? first : c;
	}
	if (first)
		return RFL_OK;
	if (mismatch)
		rfl_buf_printf(why,
			       "%s:%zu, the run that was profiled, has another '%s' than the timed "
			       "runs of ",
			       ledger, id->home->line, mismatch->name);
	else
		rfl_buf_printf(why, "%s has no timed run of ", ledger);
	words(id, why);
	if (!mismatch)
		rfl_buf_puts(why, " (runs whose label says _prof are not timed): run it without "
				  "the profiler too");
	return RFL_ENOTFOUND;
}

/* --- handing over --- */

static bool is_profiled(const struct rfl_run *run)
{
	struct rfl_label parts;

	rfl_label_parse(run->label, run->like->model, &parts);
	return parts.profiled;
}

static enum rfl_rc join_one(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			    const struct rfl_capture *capture, struct rfl_configs *cs, bool *hit,
			    struct rfl_merge_report *report, struct rfl_err *err)
{
	const char *name = rfl_counters__name(capture), *source = capture->source;
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
	if (rc == RFL_ENOTFOUND) {
		rc = rfl_buf_check(&why, "counters", err);
		if (rc == RFL_OK) {
			report->unjoined++;
			rfl_buf_printf(&report->notes, "counters: %s joins no run: %s\n", name,
				       rfl_buf_str(&why));
		}
		goto done;
	}
	/* counters of the label of a timed run: was it that run that the profiler slowed down? */
	if (id.home && !is_text(capture->run_id) && rfl_text_same(id.home->like->status, "ok") &&
	    (rfl_text_same(source, "ncu") || rfl_text_same(source, "nvprof")) &&
	    !is_profiled(id.home))
		rfl_buf_printf(&report->notes,
			       "counters: %s has the label of %s:%zu, whose times are in the "
			       "points; if that run was made under %s they are slowed: label such "
			       "runs _prof\n",
			       name, in->runs->files[0].path, id.home->line, source);
	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++) {
		struct rfl_config *c = &cs->configs[i];

		if (!hit[i])
			continue;
		rc = rfl_grow(&c->counted, &c->counted_cap, c->ncounted + 1, SIZE_MAX, err);
		if (rc == RFL_OK)
			c->counted[c->ncounted++] = (struct rfl_joined){ .capture = capture,
									 .home = id.home,
									 .steps = -1 };
	}
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

/* A configuration whose own runs were counted needs no counters of a timed run of another one of
 * equal work. */
static void give_back(struct rfl_config *c)
{
	bool own = false;
	size_t n = 0;

	for (size_t i = 0; i < c->ncounted; i++) {
		const struct rfl_joined *j = &c->counted[i];
		const struct rfl_amount *total = j->capture->total;

		own = own || (j->home && has_run(c, j->home) &&
			      !(isnan(total[RFL_QUANTITY_FLOPS].value) &&
				isnan(total[RFL_QUANTITY_DRAM].value)));
	}
	for (size_t i = 0; i < c->ncounted && own; i++) {
		const struct rfl_run *home = c->counted[i].home;

		if (!home || has_run(c, home) || is_profiled(home))
			c->counted[n++] = c->counted[i];
	}
	if (own)
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
