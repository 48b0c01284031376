/*
 * merge.c - turns a ledger into points. Takes the configurations of the summary, finds their roofs
 * and counts their work. Then either reports all missing facts, or fills in the points and names
 * their variants.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/step.h"
#include "roofline/parts.h"

static uint64_t hash_of_hash(const void *item)
{
	const struct rfl_run *run = item;

	return rfl_hash64(0, run->like->config_hash, strlen(run->like->config_hash));
}

static bool same_hash(const void *x, const void *y)
{
	const struct rfl_run *a = x, *b = y;

	return strcmp(a->like->config_hash, b->like->config_hash) == 0 &&
	       strcmp(a->like->env, b->like->env) == 0;
}

bool rfl_merge__wanted(const struct rfl_merge_options *o, const char *env)
{
	for (size_t i = 0; i < o->nenvs; i++)
		if (strcmp(o->envs[i], env) == 0)
			return true;
	return o->nenvs == 0;
}

int64_t rfl_merge__roofs(const struct rfl_ledger_row *row)
{
	if (row->world_size <= 1)
		return 1;
	if (rfl_text_same(row->backend, "cuda"))
		return row->world_size;
	return rfl_text_same(row->launcher, "roofline") ? 1 : 0;
}

int64_t rfl_merge__batch(const struct rfl_ledger_row *row)
{
	const int64_t roofs = rfl_merge__roofs(row);

	return roofs > 1 && row->batch % roofs == 0 ? row->batch / roofs : row->batch;
}

static void leave_out(const struct rfl_runs *runs, const struct rfl_run *run, const char *why,
		      struct rfl_merge_report *report)
{
	rfl_buf_puts(&report->notes, "left out ");
	rfl_runs_where(runs, run, &report->notes);
	rfl_buf_printf(&report->notes, ": %s\n", why);
}

/* Add a configuration if it has a roof. */
static enum rfl_rc add_config(const struct rfl_runs *runs, const struct rfl_repeats_config *from,
			      struct rfl_configs *cs, struct rfl_merge_report *report,
			      struct rfl_err *err)
{
	const struct rfl_run *run = from->runs[0].run, *first;
	const struct rfl_ledger_row *row = run->like;
	const double samples = (double)row->batch;
	const char *lacks = row->mode ? NULL : "mode";
	struct rfl_buf where;
	size_t i;
	enum rfl_rc rc;

	/* These columns are required to find the FLOPs and the roof. */
	if (!lacks && !row->backend)
		lacks = "backend";
	if (lacks) {
		rfl_buf_init(&where, 0);
		rfl_runs_where(runs, run, &where);
		(void)rfl_fail(err, RFL_EFORMAT, 0,
			       "%s: column '%s' is empty; fill it in for runs with status ok, or "
			       "for all rows with --map '%s=\"%s\"'",
			       rfl_buf_str(&where), lacks, lacks, row->mode ? "cpu" : "train");
		rfl_buf_fini(&where);
		return RFL_EFORMAT;
	}
	if (rfl_merge__roofs(row) == 0) {
		leave_out(runs, run, "the number of machines that its processes used is unknown",
			  report);
		return RFL_OK;
	}
	if (!(samples / from->stats.max > 0 && isfinite(samples / from->stats.min)) ||
	    from->stats.min <= 0) {
		leave_out(runs, run, "samples_per_s is not a positive rate", report);
		return RFL_OK;
	}
	cs->configs[cs->n++] = (struct rfl_config){
		.env = row->env,
		.row = row,
		.runs = from->runs,
		.nruns = from->n,
		.rate = from->stats,
	};

	/* Rows with equal config_hash must have equal work. */
	if (!row->config_hash)
		return RFL_OK;
	rc = rfl_row_index_put(&cs->hashes, run, &i, err);
	if (rc != RFL_OK)
		return rc;
	first = cs->hashes.rows[i];
	for (size_t k = 0; k < rfl_nfacts; k++)
		if (rfl_facts[k].role == RFL_FACT_WORK &&
		    !rfl_fact_same(&rfl_facts[k], first->like, row))
			return rfl_fail(err, RFL_EFORMAT, 0,
					"%s:%zu: has the config_hash %s of line %zu but a "
					"different '%s'; restore the row that was edited",
					runs->files[0].path, run->line, row->config_hash,
					first->line, rfl_facts[k].name);
	return RFL_OK;
}

static enum rfl_rc group(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
			 struct rfl_configs *ret, struct rfl_merge_report *report,
			 struct rfl_err *err)
{
	const struct rfl_repeats_options o = {
		.metric = &rfl_ledger_metrics[0], /* samples_per_s */
		.envs = options->envs,
		.nenvs = options->nenvs,
	};
	enum rfl_rc rc = rfl_repeats_new(in->runs, &o, &ret->repeats, err);
	const struct rfl_repeats *r = ret->repeats;

	if (rc != RFL_OK)
		return rc;
	rfl_buf_puts(&report->notes, rfl_buf_str(&r->notes));
	ret->hashes = (struct rfl_row_index){ .hash = hash_of_hash, .alike = same_hash };
	ret->configs = rfl_alloc_array(r->n, sizeof(*ret->configs));
	if (!ret->configs)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		if (r->configs[i].n > 0)
			rc = add_config(in->runs, &r->configs[i], ret, report, err);
	return rc;
}

static void configs_fini(struct rfl_configs *configs)
{
	for (size_t i = 0; i < configs->n; i++) {
		struct rfl_measured *m = &configs->configs[i].measured;

		if (!configs->configs[i].alike)
			free(configs->configs[i].counted);
		rfl_parts__fini(&configs->configs[i].parts);
		rfl_buf_fini(&m->zero_kernels);
		rfl_buf_fini(&m->zero_longest);
		rfl_buf_fini(&m->doubt);
		rfl_buf_fini(&m->causes);
		rfl_buf_fini(&m->note);
	}
	free(configs->configs);
	rfl_counters__bearers_fini(&configs->bearers);
	rfl_row_index_fini(&configs->hashes);
	rfl_repeats_free(configs->repeats);
}

static struct rfl_work_query query_of(const struct rfl_config *c, const struct rfl_merge_options *o)
{
	const struct rfl_ledger_row *row = c->row;
	const int64_t together = row->world_size > 1 ? row->world_size / rfl_merge__roofs(row) : 1;

	return (struct rfl_work_query){
		.model = row->model,
		.precision = row->precision,
		.mode = row->mode,
		.optimizer = row->optimizer,
		.no_momentum =
			row->momentum == 0, /* momentum is used unless the file specifies 0 */
		.batch = rfl_merge__batch(row),
		.micro_batch = row->micro_batch,
		.accum = row->accum > 0 ? row->accum * together : row->accum,
		.image_size = row->img_size,
		.classes = row->context_length > 0 ? row->vocab : row->classes,
		.context_length = row->context_length,
		.attention = row->attention,
		.fused_attention = rfl_step_fused_attention(row),
		.grad_clip = row->grad_clip > 0,
		.autocast = row->autocast && *row->autocast,
		.factor = o->factor,
		.as = o->as,
	};
}

static bool same_query(const struct rfl_work_query *a, const struct rfl_work_query *b)
{
	return rfl_text_same(a->model, b->model) && rfl_text_same(a->precision, b->precision) &&
	       rfl_text_same(a->mode, b->mode) && rfl_text_same(a->optimizer, b->optimizer) &&
	       a->no_momentum == b->no_momentum && a->batch == b->batch &&
	       a->micro_batch == b->micro_batch && a->accum == b->accum &&
	       a->image_size == b->image_size && a->classes == b->classes &&
	       a->context_length == b->context_length &&
	       rfl_text_same(a->attention, b->attention) &&
	       a->fused_attention == b->fused_attention && a->grad_clip == b->grad_clip &&
	       a->autocast == b->autocast && a->factor == b->factor;
}

/* @param before  the previous configuration, which often has the same work; NULL: none */
static enum rfl_rc count_work(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			      const struct rfl_config *before, struct rfl_config *c,
			      struct rfl_missing *missing, struct rfl_merge_report *report,
			      struct rfl_err *err)
{
	const struct rfl_work_query query = query_of(c, o);
	const struct rfl_work_query other = before ? query_of(before, o) : query;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (before && before->work.flops > 0 && same_query(&query, &other)) {
		c->work = before->work;
		return RFL_OK;
	}
	rc = rfl_work_count(&query, in->work, &report->notes, &c->work, &why);
	if (rc == RFL_EMISSING && o->by != RFL_BY_STEP) { /* counters suffice */
		c->work = (struct rfl_work){ .flops = NAN,
					     .bytes = { NAN, NAN, NAN },
					     .flops_source = "" };
		return RFL_OK;
	}
	if (rc == RFL_EMISSING)
		return rfl_missing_add(
			missing, why.msg,
			"run roofline complexity with --models, --batch-sizes and --output-dir "
			"DIR, then use --complexity-json DIR/summary.json",
			c, err);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s:%zu: %s", in->runs->files[0].path,
				c->runs[0].run->line, why.msg);
	return RFL_OK;
}

/* Omit configurations without parts. Fail if none has any. */
static enum rfl_rc check_parts(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			       struct rfl_configs *cs, struct rfl_merge_report *report,
			       struct rfl_err *err)
{
	const struct rfl_config *first = NULL;
	size_t n = 0, found = 0;

	for (size_t i = 0; i < cs->n; i++) {
		struct rfl_config *c = &cs->configs[i];

		found += c->parts.n > 0;
		if (c->parts.n > 0 || c->missing)
			continue;
		c->missing = true;
		first = first ? first : c;
		n++;
	}
	report->left_out += n;
	if (first && !found)
		return rfl_fail(
			err, RFL_EMISSING, 0, "%s: no counters have %ss of any of its runs: %s",
			in->runs->files[0].path, rfl_by_names[o->by],
			o->by == RFL_BY_KERNEL
				? "profile a run with ncu, nsys, nvprof or rocprof, name the file "
				  "after the run's label, and use --ncu-dir; or use "
				  "--counters with the file of roofline run --counters "
				  "step on a GPU"
				: "repeat a run with roofline run --counters layer, which "
				  "also records the time of each layer where nothing can "
				  "be counted, and use --counters logs/counters.csv");
	if (first)
		rfl_buf_printf(&report->notes,
			       "left out %zu of %zu configurations without counters of %ss (first: "
			       "%s %s %s bs%lld %s)\n",
			       n, cs->n, rfl_by_names[o->by], first->env, first->row->model,
			       first->row->precision, (long long)first->row->batch,
			       first->row->mode);
	return RFL_OK;
}

/* Find roof, work and counters of every configuration, and choose between counts and counters. */
static enum rfl_rc resolve(const struct rfl_merge_inputs *in, const struct rfl_merge_options *o,
			   struct rfl_configs *cs, struct rfl_missing *missing,
			   struct rfl_merge_report *report, struct rfl_err *err)
{
	const struct rfl_counter_inputs *counters = &in->counters;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < cs->n; i++) {
		struct rfl_config *c = &cs->configs[i];

		rc = rfl_merge__roof(in->peaks, c, missing, err);
		if (rc == RFL_OK && c->key)
			rc = count_work(in, o, i > 0 ? c - 1 : NULL, c, missing, report, err);
		if (rc)
			return rc;
		/* Compare with the FLOPs that the runner wrote to the ledger. */
		for (size_t k = 0;
		     k < c->nruns && !c->missing && o->factor == RFL_TRAIN_EXACT && !o->as; k++) {
			const struct rfl_run *run = c->runs[k].run;
			const int64_t flops = run->like->model_flops_per_step;

			if (flops < 0 ||
			    (double)flops == c->work.flops * (double)rfl_merge__roofs(c->row))
				continue;
			rfl_buf_printf(&report->notes,
				       "%s:%zu: %s: the ledger has %lld FLOPs per step, the count "
				       "%.0f; the count is used\n",
				       in->runs->files[0].path, run->line, run->like->model,
				       (long long)flops, c->work.flops);
			break;
		}
	}
	rc = rfl_counters__join(in, o, cs, report, err);
	/* Report --counter-steps options that match no capture. */
	for (size_t i = 0; i < counters->nsteps; i++) {
		const struct rfl_counter_steps *s = &counters->steps[i];
		bool found = !s->label;

		for (size_t k = 0; counters->captures && k < counters->captures->n && !found; k++)
			found = counters->captures->captures[k]->label &&
				strcmp(counters->captures->captures[k]->label, s->label) == 0;
		if (!found)
			rfl_buf_printf(&report->notes,
				       "--counter-steps %s=%lld: no counters have this label; "
				       "correct it\n",
				       s->label, (long long)s->steps);
	}
	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++) {
		struct rfl_config *c = &cs->configs[i];
		const struct rfl_work_query query = query_of(c, o);

		/* The counters of an unknown model cannot be compared with a count. */
		if (!c->missing || c->work.flops > 0)
			rc = rfl_counters__measure(in, &cs->bearers, c, report, err);
		if (rc == RFL_OK && o->by != RFL_BY_STEP)
			rc = rfl_parts__find(c, o->by, &query, report, err);
		else if (rc == RFL_OK && (!c->missing || c->work.flops > 0))
			rc = rfl_merge__choose(o, c, missing, err);
		report->left_out += c->missing;
	}
	return rc;
}

/* Fail or, with --skip-missing, note the configurations left out. */
static enum rfl_rc report_missing(const struct rfl_merge_inputs *in,
				  const struct rfl_merge_options *o,
				  const struct rfl_missing *missing,
				  struct rfl_merge_report *report, struct rfl_err *err)
{
	const char *path = in->peaks->path ? in->peaks->path : "peaks";
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	if (!missing->n)
		return RFL_OK;
	rfl_buf_init(&text, 0);
	rfl_missing_text(missing, false, &text);
	if (o->skip_missing) {
		rfl_buf_printf(&report->notes,
			       "left out %zu of the configurations because these values are "
			       "missing:\n%s\n",
			       report->left_out, rfl_buf_str(&text));
		goto done;
	}
	if (missing->of_counters == missing->n)
		path = in->runs->files[0].path;
	if (text.len > RFL_ERR_MSG_MAX - 512) {
		rfl_buf_reset(&text);
		rfl_missing_text(missing, true, &text);
	}
	rc = rfl_fail(err, RFL_EMISSING, 0,
		      "%s: the points need %zu value%s missing; add %s as follows, or leave these "
		      "points out with --skip-missing\n%s",
		      path, missing->n, missing->n == 1 ? " that is" : "s that are",
		      missing->n == 1 ? "it" : "them", rfl_buf_str(&text));
done:
	rfl_buf_fini(&text);
	return rc;
}

/* A point and the row of its configuration. */
struct member {
	struct rfl_point *point;
	const struct rfl_ledger_row *row;
};

static int by_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_name(const void *x, const void *y)
{
	const struct rfl_point *a = ((const struct member *)x)->point;
	const struct rfl_point *b = ((const struct member *)y)->point;
	int order = by_text(a->env, b->env);

	order = order ? order : by_text(a->model, b->model);
	order = order ? order : by_text(a->precision, b->precision);
	order = order ? order : by_text(a->mode, b->mode);
	return order ? order : (a->batch > b->batch) - (a->batch < b->batch);
}

static int by_words(const void *x, const void *y)
{
	return by_text(((const struct member *)x)->point->variant,
		       ((const struct member *)y)->point->variant);
}

/* Add a column to the variants of points that differ in it but are otherwise equal so far. */
static enum rfl_rc add_column(struct member *group, size_t n, const struct rfl_field *f,
			      struct rfl_buf *words, struct rfl_err *err)
{
	char number[RFL_NUM_MAX];
	enum rfl_rc rc = RFL_OK;
	size_t end;

	qsort(group, n, sizeof(*group), by_words);
	for (size_t begin = 0; begin < n; begin = end) {
		bool differ = false;

		for (end = begin + 1; end < n && by_words(&group[begin], &group[end]) == 0; end++)
			differ = differ || !rfl_field_same(f, group[begin].row, group[end].row);
		for (size_t i = begin; i < end && differ && rc == RFL_OK; i++) {
			char **variant = &group[i].point->variant;

			if (!rfl_field_known(f, group[i].row))
				continue;
			rfl_buf_reset(words);
			rfl_buf_printf(words, "%s%s%s %s", *variant ? *variant : "",
				       *variant ? ", " : "", f->name,
				       rfl_field_write(f, group[i].row, number));
			rc = rfl_field_set(variant, rfl_buf_str(words), err);
		}
	}
	return rc;
}

/* Name the differences between points of the same environment, model, precision, mode and batch, as
 * in the summary. */
static enum rfl_rc name_variants(const struct rfl_configs *configs, struct rfl_points *points,
				 struct rfl_err *err)
{
	/* The config_hash also depends on these columns, which are not facts. If they are equal as
	 * well, the hash itself is used. */
	static const enum rfl_ledger_at hashed[] = { RFL_LEDGER_AT_momentum,
						     RFL_LEDGER_AT_weight_decay,
						     RFL_LEDGER_AT_config_hash };
	struct member *members = rfl_alloc_array(points->n + 1, sizeof(*members));
	struct rfl_buf words;
	size_t n = 0, end;
	enum rfl_rc rc = RFL_OK;

	if (!members)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	rfl_buf_init(&words, 0);
	for (size_t i = 0; i < configs->n; i++)
		if (!configs->configs[i].missing) {
			members[n] = (struct member){ .point = &points->points[n],
						      .row = configs->configs[i].row };
			n++;
		}
	qsort(members, n, sizeof(*members), by_name);
	for (size_t begin = 0; begin < n && rc == RFL_OK; begin = end) {
		struct rfl_facts_apart apart = { .first = { NULL } };

		for (end = begin; end < n && by_name(&members[begin], &members[end]) == 0; end++)
			rfl_facts_apart_add(&apart, members[end].row);
		if (end - begin < 2)
			continue;
		for (size_t i = begin; i < end && rc == RFL_OK; i++) {
			rfl_buf_reset(&words);
			rfl_facts_apart_put(&apart, members[i].row, &words);
			rc = rfl_field_set(&members[i].point->variant, rfl_buf_str(&words), err);
		}
		for (size_t k = 0; k < RFL_ARRAY_LEN(hashed) && rc == RFL_OK; k++)
			rc = add_column(&members[begin], end - begin, &rfl_ledger_fields[hashed[k]],
					&words, err);
		if (rc == RFL_OK)
			rc = rfl_buf_check(&words, "variants of the points", err);
	}
	rfl_buf_fini(&words);
	free(members);
	return rc;
}

enum rfl_rc rfl_merge(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
		      struct rfl_points **ret, struct rfl_merge_report *report, struct rfl_err *err)
{
	struct rfl_configs cs = { .n = 0 };
	struct rfl_missing missing = { .n = 0 };
	struct rfl_points *pts = NULL, *parts = NULL;
	size_t k = 0;
	enum rfl_rc rc;

	*report = (struct rfl_merge_report){ .unjoined = 0 };
	rfl_buf_init(&report->notes, 0);
	if ((rc = group(in, options, &cs, report, err)) ||
	    (rc = resolve(in, options, &cs, &missing, report, err)) ||
	    (rc = report_missing(in, options, &missing, report, err)) ||
	    (options->by != RFL_BY_STEP && (rc = check_parts(in, options, &cs, report, err))))
		goto done;

	pts = rfl_points_new(cs.n - report->left_out);
	if (!pts) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		goto done;
	}
	for (size_t i = 0; i < cs.n && rc == RFL_OK; i++)
		if (!cs.configs[i].missing)
			rc = rfl_merge__point(in, options, &cs.configs[i], &pts->points[k++], err);
	if (rc || (rc = name_variants(&cs, pts, err)) ||
	    (rc = rfl_buf_check(&report->notes, "notes of the points", err)))
		goto done;
	if (options->by != RFL_BY_STEP) {
		rc = rfl_parts__points(options, &cs, pts, &parts, err);
		*ret = rc ? *ret : parts;
		goto done;
	}
	*ret = pts;
	pts = NULL;
done:
	rfl_points_free(pts);
	rfl_missing_fini(&missing);
	configs_fini(&cs);
	return rc;
}
