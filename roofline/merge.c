/*
 * merge.c - turns a ledger into points. Takes the configurations of the summary, finds their roofs
 * and counts their work. Then either reports all missing values, or fills in the points and names
 * their variants.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "ledger/step.h"
#include "peaks/devices.h"
#include "roofline/parts.h"

char *rfl_merge__keep(struct rfl_merge_job *job, struct rfl_buf *take_text)
{
	char *text = rfl_arena_strdup(job->arena, rfl_buf_str(take_text));

	rfl_buf_fini(take_text);
	return text;
}

const char *rfl_merge__text(struct rfl_merge_job *job, const char *fmt, ...)
{
	struct rfl_buf text = { .len = 0 };
	va_list ap;

	va_start(ap, fmt);
	rfl_buf_vprintf(&text, fmt, ap);
	va_end(ap);
	return rfl_merge__keep(job, &text);
}

int64_t rfl_merge__roofs(const struct rfl_ledger_row *row)
{
	if (row->world_size <= 1)
		return 1;
	if (rfl_text_same(row->backend, "cuda"))
		return row->world_size;
	return rfl_text_same(row->launcher, "roofline") ? 1 : 0;
}

int64_t rfl_merge__processes(const struct rfl_ledger_row *row)
{
	const int64_t roofs = rfl_merge__roofs(row);

	return row->world_size > 1 && roofs > 0 ? row->world_size / roofs : 1;
}

int64_t rfl_merge__batch(const struct rfl_ledger_row *row)
{
	const int64_t roofs = rfl_merge__roofs(row);

	return roofs > 1 && row->batch % roofs == 0 ? row->batch / roofs : row->batch;
}

static void leave_out(struct rfl_merge_job *job, const struct rfl_run *run, const char *why)
{
	struct rfl_buf *notes = &job->report->notes;

	rfl_buf_puts(notes, "skipped ");
	rfl_runs_where(job->in->runs, run, notes);
	rfl_buf_printf(notes, ": %s\n", why);
}

/* Add a configuration if it has a roof. */
static enum rfl_rc add_config(struct rfl_merge_job *job, const struct rfl_repeats_config *from,
			      struct rfl_err *err)
{
	const struct rfl_runs *runs = job->in->runs;
	const struct rfl_run *run = from->runs[0].run;
	const struct rfl_ledger_row *row = run->like;
	const double samples = (double)row->batch;
	/* These columns are required to find the FLOPs and the roof. */
	const char *lacks = !row->mode ? "mode" : !row->backend ? "backend" : NULL;
	enum rfl_rc rc;

	if (lacks) {
		RFL_AUTO(buf) where = { .len = 0 };

		rfl_runs_where(runs, run, &where);
		rc = rfl_fail(err, RFL_EFORMAT, 0,
			      "%s: column '%s' is empty; fill it in for runs with status ok, or "
			      "for all rows with --map '%s=\"%s\"'",
			      rfl_buf_str(&where), lacks, lacks, row->mode ? "cpu" : "train");
		return rc;
	}
	if (rfl_merge__roofs(row) == 0) {
		leave_out(job, run, "the number of machines that its processes used is unknown");
		return RFL_OK;
	}
	if (!(samples / from->stats.max > 0 && isfinite(samples / from->stats.min)) ||
	    from->stats.min <= 0) {
		leave_out(job, run, "samples_per_s is not a positive rate");
		return RFL_OK;
	}
	job->configs[job->n++] = (struct rfl_config){
		.env = row->env,
		.row = row,
		.runs = from->runs,
		.nruns = from->n,
		.rate = from->stats,
		.measured = &rfl_counters__none,
		.is_program = rfl_text_same(row->mode, RFL_LEDGER_PROGRAM),
		.flops_why = "",
		.bytes_why = "",
	};
	return RFL_OK;
}

static enum rfl_rc group(struct rfl_merge_job *job, struct rfl_err *err)
{
	const struct rfl_repeats_options o = {
		.metric = &rfl_ledger_metrics[0], /* samples_per_s */
		.filters = { { RFL_LEDGER_AT_env, job->options->envs, job->options->nenvs } },
	};
	const struct rfl_repeats *r;
	enum rfl_rc rc;

	if (!job->in->runs) {
		rfl_merge__captures(job);
		return RFL_OK;
	}
	rc = rfl_repeats_new(job->in->runs, &o, &job->repeats, err);
	r = job->repeats;
	if (rc != RFL_OK)
		return rc;
	rfl_buf_puts(&job->report->notes, rfl_buf_str(&r->notes));
	job->configs = rfl_arena_array(job->arena, r->n, sizeof(*job->configs));
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		if (r->configs[i].n > 0)
			rc = add_config(job, &r->configs[i], err);
	return rc;
}

struct rfl_work_query rfl_work_query_of(const struct rfl_ledger_row *row)
{
	return (struct rfl_work_query){
		.model = row->model,
		.net_file = row->net_digest && *row->net_digest ? "" : NULL,
		.precision = row->precision,
		.mode = row->mode,
		.optimizer = rfl_step_optimizer(row),
		.no_momentum =
			row->momentum == 0, /* momentum is used unless the file specifies 0 */
		.batch = rfl_merge__batch(row),
		.processes = rfl_merge__processes(row),
		.micro_batch = row->micro_batch,
		.accum = row->accum,
		.image_size = row->img_size,
		.classes = row->context_length > 0 ? row->vocab : row->classes,
		.context_length = row->context_length,
		.past = row->past,
		.steps = row->iters,
		.int8_weights = rfl_text_same(row->weights, "int8"),
		.attention = row->attention,
		.fused_attention = rfl_step_fused_attention(row),
		.planned = rfl_text_same(row->engine, "planned"),
		.grad_clip = row->grad_clip > 0,
		.autocast = row->autocast && *row->autocast,
	};
}

static struct rfl_work_query query_of(struct rfl_merge_job *job, const struct rfl_config *c)
{
	const struct rfl_merge_options *o = job->options;
	struct rfl_work_query query = rfl_work_query_of(c->row);
	struct rfl_buf file = { .len = 0 };

	if (job->in->runs && rfl_runs_network(job->in->runs, c->runs[0].run, &file))
		query.net_file = rfl_merge__keep(job, &file);
	query.factor = o->factor;
	query.as = o->as;
	return query;
}

/* The columns that rfl_work_query_of() reads. */
static const enum rfl_ledger_at of_work[] = {
	RFL_LEDGER_AT_model,      RFL_LEDGER_AT_precision, RFL_LEDGER_AT_mode,
	RFL_LEDGER_AT_optimizer,  RFL_LEDGER_AT_momentum,  RFL_LEDGER_AT_batch,
	RFL_LEDGER_AT_world_size, RFL_LEDGER_AT_backend,   RFL_LEDGER_AT_launcher,
	RFL_LEDGER_AT_accum,      RFL_LEDGER_AT_img_size,  RFL_LEDGER_AT_micro_batch,
	RFL_LEDGER_AT_classes,    RFL_LEDGER_AT_vocab,     RFL_LEDGER_AT_context_length,
	RFL_LEDGER_AT_attention,  RFL_LEDGER_AT_engine,    RFL_LEDGER_AT_engine_version,
	RFL_LEDGER_AT_grad_clip,  RFL_LEDGER_AT_autocast,  RFL_LEDGER_AT_net_digest,
	RFL_LEDGER_AT_past,       RFL_LEDGER_AT_weights,   RFL_LEDGER_AT_iters,
};

/* @param before  the previous configuration, which often has the same work; NULL: none */
static enum rfl_rc count_work(struct rfl_merge_job *job, const struct rfl_config *before,
			      struct rfl_config *c, struct rfl_err *err)
{
	const struct rfl_merge_options *o = job->options;
	const struct rfl_work_query query = query_of(job, c);
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!job->in->runs)
		return RFL_OK;
	if (c->is_program) {
		c->work = (struct rfl_work){ .flops = NAN,
					     .bytes = { NAN, NAN, NAN },
					     .plan_bytes = NAN };
		return RFL_OK;
	}
	if (before && before->work.flops > 0 &&
	    rfl_ledger_same(of_work, RFL_ARRAY_LEN(of_work), before->row, c->row)) {
		c->work = before->work;
		return RFL_OK;
	}
	rc = rfl_work_count(&query, job->in->work, &job->report->notes, &c->work, &why);
	if (rc == RFL_EMISSING && (o->by != RFL_BY_STEP ||
				   (o->flops == RFL_FLOPS_COUNTERS && o->ai == RFL_AI_COUNTERS))) {
		/* counters suffice */
		c->work = (struct rfl_work){ .flops = NAN,
					     .bytes = { NAN, NAN, NAN },
					     .plan_bytes = NAN };
		return RFL_OK;
	}
	if (rc == RFL_EMISSING)
		rfl_missing_add(
			job, c, why.msg,
			"run roofline complexity with --models NAME, or --net FILE for your own "
			"network, with --batch-sizes and --output-dir DIR, then use "
			"--complexity-json DIR/summary.json; for another program whose FLOPs and "
			"bytes were counted, use --flops counters --ai counters");
	else if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s:%zu: %s", job->in->runs->files[0].path,
				c->runs[0].run->line, why.msg);
	return RFL_OK;
}

/* Omit configurations without parts. Fail if none has any. */
static enum rfl_rc check_parts(struct rfl_merge_job *job, struct rfl_err *err)
{
	const enum rfl_by by = job->options->by;
	const struct rfl_config *first = NULL;
	size_t n = 0, found = 0;

	for (size_t i = 0; i < job->n; i++) {
		struct rfl_config *c = &job->configs[i];

		found += c->parts.n > 0;
		if (c->parts.n > 0 || c->missing)
			continue;
		c->missing = true;
		first = first ? first : c;
		n++;
	}
	job->report->left_out += n;
	if (first && !found && !job->in->runs)
		return rfl_fail(err, RFL_EMISSING, 0,
				"%s: the file has no %ss; use --by step for a point of the program",
				rfl_counters__name(first->counted->capture),
				rfl_part_word(rfl_by_names[by]));
	if (first && !found)
		return rfl_fail(
			err, RFL_EMISSING, 0, "%s: no counters have %ss of any of its runs: %s",
			job->in->runs->files[0].path, rfl_part_word(rfl_by_names[by]),
			by == RFL_BY_OP
				? "profile a run with torch.profiler and record_shapes=True, name "
				  "the trace after the run's label, and use it with --counters"
			: by == RFL_BY_KERNEL
				? "profile a run with ncu, nsys, nvprof or rocprof, name the file "
				  "after the run's label, and use --ncu-dir; or use "
				  "--counters with the file of roofline run --counters "
				  "step on a GPU"
			: by == RFL_BY_PHASE
				? "use roofline run --counters phase, or mark the regions of a "
				  "program (share/roofline/region) and use roofline profile"
				: "repeat a run with roofline run --counters layer, which "
				  "also records the time of each layer where nothing can "
				  "be counted, and use --counters logs/counters.csv");
	if (first)
		rfl_buf_printf(&job->report->notes,
			       "skipped %zu of %zu configurations without counters of %ss (first: "
			       "%s %s %s bs%lld %s)\n",
			       n, job->n, rfl_by_names[by], first->env, first->row->model,
			       first->row->precision, (long long)first->row->batch,
			       first->row->mode);
	return RFL_OK;
}

/* Note the first configuration whose work differs from the FLOPs that the runner wrote to the
 * ledger, and the number of others. */
static void compare_with_ledger(struct rfl_merge_job *job)
{
	const struct rfl_config *first = NULL;
	const struct rfl_run *run = NULL;
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++) {
		const struct rfl_config *c = &job->configs[i];
		const double count = c->work.flops * (double)rfl_merge__roofs(c->row);
		bool differs = false;

		for (size_t k = 0; k < c->nruns && !c->missing && !differs; k++) {
			const int64_t flops = c->runs[k].run->like->model_flops_per_step;

			differs = flops >= 0 && (double)flops != count;
			if (differs && !first) {
				first = c;
				run = c->runs[k].run;
			}
		}
		n += differs;
	}
	if (!first)
		return;
	rfl_buf_printf(&job->report->notes,
		       "%s:%zu: %s: the ledger has %lld FLOPs per step, the count %.0f; the count "
		       "is used",
		       job->in->runs->files[0].path, run->line, run->like->model,
		       (long long)run->like->model_flops_per_step, first->work.flops);
	if (n > 1)
		rfl_buf_printf(&job->report->notes, ", also for %zu other configurations", n - 1);
	rfl_buf_puts(&job->report->notes, "\n");
}

/* Find roof, work and counters of every configuration, and choose between counts and counters. */
static enum rfl_rc resolve(struct rfl_merge_job *job, struct rfl_err *err)
{
	const struct rfl_merge_options *o = job->options;
	const struct rfl_counter_inputs *counters = &job->in->counters;
	RFL_AUTOPTR(devices)
	sheets = counters->captures && counters->captures->n ? rfl_devices_new() : NULL;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < job->n; i++) {
		struct rfl_config *c = &job->configs[i];
		const struct rfl_device_sheet *sheet;

		rfl_merge__roof(job, c);
		sheet = rfl_devices_get(sheets, c->penv ? c->penv->device : NULL);
		c->sheet_clock_hz = sheet ? sheet->clock_hz : (double)NAN;
		if (c->key && (rc = count_work(job, i > 0 ? c - 1 : NULL, c, err)))
			return rc;
	}
	if (o->factor == RFL_TRAIN_EXACT && !o->as)
		compare_with_ledger(job);
	if (job->in->runs)
		rfl_counters__join(job);
	/* Report --counter-steps options that match no capture. */
	for (size_t i = 0; i < counters->nsteps; i++) {
		const struct rfl_counter_steps *s = &counters->steps[i];
		bool found = !s->label;

		for (size_t k = 0; counters->captures && k < counters->captures->n && !found; k++)
			found = counters->captures->captures[k]->label &&
				strcmp(counters->captures->captures[k]->label, s->label) == 0;
		if (!found)
			rfl_buf_printf(&job->report->notes,
				       "--counter-steps %s=%lld: no counters have this label; "
				       "correct it\n",
				       s->label, (long long)s->steps);
	}
	for (size_t i = 0; i < job->n && rc == RFL_OK; i++) {
		struct rfl_config *c = &job->configs[i];
		const struct rfl_work_query query = query_of(job, c);
		/* The counters of an unknown model cannot be compared with a count. */
		const bool comparable = !c->missing || c->work.flops > 0;

		if (comparable)
			rc = rfl_counters__measure(job, c, err);
		if (rc == RFL_OK && o->by != RFL_BY_STEP)
			rc = rfl_parts__find(job, c, &query, err);
		else if (rc == RFL_OK && comparable)
			rfl_merge__choose(job, c);
		job->report->left_out += c->missing;
	}
	return rc;
}

/* Fail or, with --skip-missing, note the configurations omitted. */
static enum rfl_rc report_missing(struct rfl_merge_job *job, struct rfl_err *err)
{
	const struct rfl_missing *missing = &job->missing;
	const char *path = job->in->peaks->path ? job->in->peaks->path : "peaks";
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = RFL_OK;

	if (job->nprograms > 0)
		rfl_buf_printf(&job->report->notes,
			       "skipped %zu program%s without FLOPs or bytes (first: %s %s: %s); "
			       "pass --flops and --bytes to 'roofline profile', or count on a "
			       "machine with hardware counters\n",
			       job->nprograms, job->nprograms == 1 ? "" : "s", job->program->env,
			       job->program->row->model, job->program_why);
	if (!missing->n)
		return RFL_OK;
	rfl_missing_text(missing, false, &text);
	if (job->options->skip_missing) {
		rfl_buf_printf(&job->report->notes,
			       "skipped %zu of the configurations because these values are "
			       "missing:\n%s\n",
			       job->report->left_out, rfl_buf_str(&text));
	} else {
		if (missing->of_counters == missing->n && job->in->runs)
			path = job->in->runs->files[0].path;
		if (text.len > RFL_ERR_MSG_MAX - 512) {
			rfl_buf_reset(&text);
			rfl_missing_text(missing, true, &text);
		}
		rc = rfl_fail(
			err, RFL_EMISSING, 0,
			"%s: the points need %zu value%s missing; add %s as follows, or leave "
			"these points out with --skip-missing\n%s",
			path, missing->n, missing->n == 1 ? " that is" : "s that are",
			missing->n == 1 ? "it" : "them", rfl_buf_str(&text));
	}
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
static void add_column(struct rfl_merge_job *job, struct member *group, size_t n,
		       const struct rfl_field *f)
{
	char number[RFL_NUM_MAX];
	size_t end;

	qsort(group, n, sizeof(*group), by_words);
	for (size_t begin = 0; begin < n; begin = end) {
		bool differ = false;

		for (end = begin + 1; end < n && by_words(&group[begin], &group[end]) == 0; end++)
			differ = differ || !rfl_field_same(f, group[begin].row, group[end].row);
		for (size_t i = begin; i < end && differ; i++) {
			char **variant = &group[i].point->variant;

			if (rfl_field_known(f, group[i].row))
				*variant = rfl_arena_printf(
					job->arena, "%s%s%s %s", *variant ? *variant : "",
					*variant ? ", " : "", f->name,
					rfl_field_write(f, group[i].row, number));
		}
	}
}

/* Name the differences between points of the same environment, model, precision, mode and batch, as
 * in the summary. */
static void name_variants(struct rfl_merge_job *job, struct rfl_points *points)
{
	/* The config_hash also depends on these columns, which are not such fields. If they are
	 * equal as well, the hash itself is used. */
	static const enum rfl_ledger_at hashed[] = { RFL_LEDGER_AT_momentum,
						     RFL_LEDGER_AT_weight_decay,
						     RFL_LEDGER_AT_config_hash };
	struct member *members = rfl_arena_array(job->arena, points->n, sizeof(*members));
	size_t n = 0, end;

	for (size_t i = 0; i < job->n; i++)
		if (!job->configs[i].missing) {
			members[n] = (struct member){ .point = &points->points[n],
						      .row = job->configs[i].row };
			n++;
		}
	qsort(members, n, sizeof(*members), by_name);
	for (size_t begin = 0; begin < n; begin = end) {
		struct rfl_facts_apart apart = { .first = { NULL } };

		for (end = begin; end < n && by_name(&members[begin], &members[end]) == 0; end++)
			rfl_facts_apart_add(&apart, members[end].row);
		if (end - begin < 2)
			continue;
		for (size_t i = begin; i < end; i++) {
			struct rfl_buf words = { .len = 0 };

			rfl_facts_apart_put(&apart, members[i].row, &words);
			if (words.len)
				members[i].point->variant = rfl_merge__keep(job, &words);
		}
		for (size_t k = 0; k < RFL_ARRAY_LEN(hashed); k++)
			add_column(job, &members[begin], end - begin,
				   &rfl_ledger_fields[hashed[k]]);
	}
}

enum rfl_rc rfl_merge(const struct rfl_merge_inputs *in, const struct rfl_merge_options *options,
		      struct rfl_points **ret, struct rfl_merge_report *report, struct rfl_err *err)
{
	RFL_AUTOPTR(points) pts = rfl_points_new(0);
	struct rfl_merge_job job = {
		.in = in, .options = options, .report = report, .arena = pts->arena
	};
	enum rfl_rc rc;

	*report = (struct rfl_merge_report){ .unjoined = 0 };
	if ((rc = group(&job, err)) || (rc = resolve(&job, err)) ||
	    (rc = report_missing(&job, err)) ||
	    (options->by != RFL_BY_STEP && (rc = check_parts(&job, err))))
		goto done;
	free(pts->points);
	pts->points = rfl_point__array(job.n - report->left_out);
	for (size_t i = 0; i < job.n; i++)
		if (!job.configs[i].missing)
			rfl_merge__point(&job, &job.configs[i], &pts->points[pts->n++]);
	name_variants(&job, pts);
	if (options->by != RFL_BY_STEP)
		rfl_parts__points(&job, pts);
	*ret = pts;
	pts = NULL;
done:
	rfl_repeats_free(job.repeats);
	return rc;
}
