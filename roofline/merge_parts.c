/*
 * merge_parts.c - points of the kernels, layers or operators of a step. Times, FLOPs and bytes come
 * from a capture, summed over the launches of each part; FLOPs and bytes of layers that were not
 * counted there are counted from the network. The step supplies the columns that describe the run,
 * and the bandwidth.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "roofline/verdict.h"

const char *const rfl_by_names[] = { "step", "layer", "phase", "kernel", "op", NULL };
static const enum rfl_range_kind kinds[] = { [RFL_BY_LAYER] = RFL_RANGE_LAYER,
					     [RFL_BY_PHASE] = RFL_RANGE_PHASE,
					     [RFL_BY_KERNEL] = RFL_RANGE_KERNEL,
					     [RFL_BY_OP] = RFL_RANGE_OP };

#define FORWARD  "fwd/"
#define BACKWARD "bwd/"

/* Return true for parts that a profiler records one by one. */
static bool is_launched(enum rfl_range_kind kind)
{
	return kind == RFL_RANGE_KERNEL || kind == RFL_RANGE_OP;
}

/* ---- finding the parts ---- */

static bool has(const struct rfl_capture *c, enum rfl_range_kind kind, enum rfl_quantity q)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == kind && !isnan(c->ranges[i].amount[q].value))
			return true;
	return false;
}

/* Return true if a capture has FLOPs or bytes of single kernels. */
static bool has_work(const struct rfl_capture *c)
{
	return has(c, RFL_RANGE_KERNEL, RFL_QUANTITY_FLOPS) ||
	       has(c, RFL_RANGE_KERNEL, RFL_QUANTITY_DRAM);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct rfl_part *)a)->name, ((const struct rfl_part *)b)->name);
}

static int by_index(const void *a, const void *b)
{
	const size_t x = ((const struct rfl_part *)a)->index;
	const size_t y = ((const struct rfl_part *)b)->index;

	return (x > y) - (x < y);
}

static int by_name_and_index(const void *a, const void *b)
{
	const int order = by_name(a, b);

	return order ? order : by_index(a, b);
}

static double time_of(const struct rfl_part *p)
{
	return p->sum.amount[RFL_QUANTITY_TIME].value;
}

static int by_time(const void *a, const void *b)
{
	const double x = time_of(a), y = time_of(b);

	if (isnan(x) != isnan(y))
		return isnan(x) ? 1 : -1;
	return x > y || x < y ? (x < y) - (x > y) : by_name(a, b);
}

static void add_time(double *sum, double time_s)
{
	if (!isnan(time_s))
		*sum = isnan(*sum) ? time_s : *sum + time_s;
}

/* Convert a range to a part. The ranges of a layer are "fwd/conv1" and "bwd/conv1". */
static struct rfl_part part_of(const struct rfl_range *r, size_t index)
{
	struct rfl_part p = {
		.name = r->name ? r->name : "", .index = index, .fwd_s = NAN, .bwd_s = NAN
	};
	const bool forward = strncmp(p.name, FORWARD, strlen(FORWARD)) == 0;
	const bool backward = strncmp(p.name, BACKWARD, strlen(BACKWARD)) == 0;

	rfl_amounts_clear(&p.sum);
	rfl_amounts_add(&p.sum, r->amount, r->launches);
	if (r->kind == RFL_RANGE_LAYER && (forward || backward)) {
		p.name += strlen(FORWARD);
		add_time(forward ? &p.fwd_s : &p.bwd_s, time_of(&p));
	}
	return p;
}

/* Sum the ranges of each part, sorted by name, over blocks, grids and passes.
 * @return their number */
static size_t gather(struct rfl_merge_job *job, const struct rfl_capture *c,
		     enum rfl_range_kind kind, struct rfl_part **ret)
{
	struct rfl_part *parts = rfl_arena_array(job->arena, c->nranges, sizeof(*parts));
	size_t all = 0, kept = 0;

	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == kind)
			parts[all++] = part_of(&c->ranges[i], i);
	if (all)
		qsort(parts, all, sizeof(*parts), by_name_and_index);
	for (size_t i = 0; i < all; i++) {
		struct rfl_part *to = kept > 0 ? &parts[kept - 1] : NULL;

		if (!to || by_name(to, &parts[i]) != 0) {
			parts[kept++] = parts[i];
			continue;
		}
		rfl_amounts_add(&to->sum, parts[i].sum.amount, parts[i].sum.launches);
		add_time(&to->fwd_s, parts[i].fwd_s);
		add_time(&to->bwd_s, parts[i].bwd_s);
	}
	*ret = parts;
	return kept;
}

/* Replace times and numbers of launches by another capture's, if it has all the kernels.
 * The other amounts are scaled to its launches; kernels that only it has are added. */
static bool take_times(struct rfl_merge_job *job, struct rfl_parts *parts,
		       const struct rfl_capture *from)
{
	struct rfl_part *timed = NULL;
	const size_t n = gather(job, from, parts->kind, &timed);

	for (size_t i = 0; i < parts->n; i++) {
		const struct rfl_part *p = &parts->parts[i];
		struct rfl_part *t = n ? bsearch(p, timed, n, sizeof(*timed), by_name) : NULL;

		if (!t || p->sum.launches < 1 || t->sum.launches < 1)
			return false;
		for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
			struct rfl_amount *a = &t->sum.amount[q];

			if (q == RFL_QUANTITY_TIME)
				continue;
			*a = p->sum.amount[q];
			a->value *= (double)t->sum.launches / (double)p->sum.launches;
			a->launches = a->launches < p->sum.launches ? 0 : t->sum.launches;
		}
	}
	parts->parts = timed;
	parts->n = n;
	return true;
}

/* Use the kernel times of a tool that recorded only times and therefore did not slow kernels down.
 */
static void find_times(struct rfl_merge_job *job, const struct rfl_config *c,
		       struct rfl_parts *parts)
{
	for (size_t i = 0; i < c->ncounted && parts->timed == parts->counted; i++) {
		const struct rfl_joined *other = &c->counted[i];

		if (!other->left_out && other != parts->counted &&
		    has(other->capture, RFL_RANGE_KERNEL, RFL_QUANTITY_TIME) &&
		    !has_work(other->capture) && take_times(job, parts, other->capture))
			parts->timed = other;
	}
}

static int by_layer_name(const void *part, const void *layer)
{
	return strcmp(((const struct rfl_part *)part)->name,
		      ((const struct rfl_work_layer *)layer)->name);
}

/* Count the layers from the network. Report FLOPs in layers that the capture does not have. */
static enum rfl_rc count_layers(struct rfl_merge_job *job, const struct rfl_config *c,
				struct rfl_parts *parts, const struct rfl_work_query *query,
				struct rfl_err *err)
{
	struct rfl_work_layers *work = &parts->work;
	double all = 0, matched = 0;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_work_count_layers(query, job->arena, work, &why);

	if (rc == RFL_ENOTFOUND) /* a network known only from --complexity-json */
		return RFL_OK;
	if (rc != RFL_OK)
		return rfl_err_pass(err, &why);
	for (size_t i = 0; i < work->n; i++)
		all += work->layers[i].flops;
	for (size_t i = 0; i < parts->n; i++) {
		struct rfl_part *p = &parts->parts[i];

		p->work = bsearch(p, work->layers, work->n, sizeof(*work->layers), by_layer_name);
		matched += p->work ? p->work->flops : 0;
	}
	if (matched < all) /* both are sums in the order of the names */
		rfl_buf_printf(&job->report->notes,
			       "counters: %s has no ranges of layers with %.2g %% of the FLOPs of "
			       "%s; it may be of another network\n",
			       rfl_counters__name(parts->counted->capture),
			       100 * (1 - matched / all), c->row->model);
	return RFL_OK;
}

enum rfl_rc rfl_parts__find(struct rfl_merge_job *job, struct rfl_config *c,
			    const struct rfl_work_query *query, struct rfl_err *err)
{
	static const enum rfl_quantity wanted[] = { RFL_QUANTITY_FLOPS, RFL_QUANTITY_DRAM,
						    RFL_QUANTITY_TIME };
	const bool layers = job->options->by == RFL_BY_LAYER;
	struct rfl_parts *parts = &c->parts;
	enum rfl_rc rc = RFL_OK;

	parts->kind = kinds[job->options->by];
	for (size_t q = 0; q < RFL_ARRAY_LEN(wanted) && !parts->counted; q++)
		for (size_t i = 0; i < c->ncounted && !parts->counted; i++)
			if (!c->counted[i].left_out &&
			    has(c->counted[i].capture, parts->kind, wanted[q]))
				parts->counted = &c->counted[i];
	if (!parts->counted)
		return RFL_OK;
	parts->n = gather(job, parts->counted->capture, parts->kind, &parts->parts);
	parts->timed = parts->counted;
	if (parts->kind == RFL_RANGE_KERNEL && has_work(parts->counted->capture))
		find_times(job, c, parts);
	else if (layers && c->work.flops > 0)
		rc = count_layers(job, c, parts, query, err);
	if (parts->n)
		qsort(parts->parts, parts->n, sizeof(*parts->parts),
		      is_launched(parts->kind) ? by_time : by_index);
	return rc;
}

/* ---- filling in the points ---- */

/* Copy the columns that describe the run; the texts are shared. */
static void copy_run(const struct rfl_point *step, struct rfl_point *p)
{
	static const char *const columns[] = {
		"env",         "model",          "precision", "batch",  "mode",
		"layout",      "backend",        "data_mode", "engine", "device_name",
		"threads",     "config_hash",    "variant",   "runs",   "peaks_hash",
		"ledger_hash", "context_length", "past",
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++) {
		const struct rfl_field *f = &rfl_point_fields[rfl_fields_find(
			rfl_point_fields, RFL_POINT_NCOLUMNS, columns[i])];

		if (f->kind == RFL_FIELD_TEXT)
			*rfl_field_text_at(f, p) = *rfl_field_text_at(f, step);
		else if (f->kind == RFL_FIELD_INT)
			*rfl_field_int_at(f, p) = *rfl_field_int_at(f, step);
		else
			*rfl_field_real_at(f, p) = *rfl_field_real_at(f, step);
	}
}

/* A point that is being filled in. */
struct filling {
	struct rfl_merge_job *job;
	const struct rfl_config *config;
	const struct rfl_part *part;
	struct rfl_point *point;
	double steps;
	bool flops_counted;                /* by counters */
	const char *flops_why, *bytes_why; /* reasons not to use counters, or "" */
	struct rfl_buf note;               /* for counters_note */
};

/* The FLOPs of the part. */
static void fill_flops(struct filling *f)
{
	const struct rfl_parts *parts = &f->config->parts;
	const struct rfl_work_layer *work = f->part->work;
	const struct rfl_amount *flops = &f->part->sum.amount[RFL_QUANTITY_FLOPS];
	const enum rfl_flops_of of = f->job->options->flops;
	struct rfl_range r = { .kind = parts->kind,
			       .name = f->part->name,
			       .launches = f->part->sum.launches };
	struct rfl_point *p = f->point;

	memcpy(r.amount, f->part->sum.amount, sizeof(r.amount));
	p->flops_counters = rfl_counters__flops(f->job, f->config, &r, &f->flops_why) / f->steps;
	p->coverage = f->flops_why[0] ? 0 : rfl_range_share(&r, RFL_QUANTITY_FLOPS);
	if (f->flops_why[0])
		rfl_buf_printf(&f->note, "; %s", f->flops_why);
	else if (flops->reason)
		rfl_buf_printf(&f->note, "; flops.total: %s", flops->reason);
	f->flops_counted = of != RFL_FLOPS_MODEL && !f->flops_why[0];
	if (f->flops_counted) {
		p->flops_per_step = p->flops_counters;
		p->flops_source =
			rfl_merge__copy(f->job, rfl_counters__source(parts->counted->capture,
								     rfl_amount_is_given(flops)));
	} else if (work && of != RFL_FLOPS_COUNTERS) {
		p->flops_per_step = work->flops;
		p->flops_source = rfl_merge__source(f->job, parts->work.flops_source,
						    of == RFL_FLOPS_MODEL ? "" : f->flops_why);
	}
}

/* The bytes of the part, and its intensity. */
static void fill_bytes(struct filling *f)
{
	const struct rfl_work_layer *work = f->part->work;
	const struct rfl_amount *bytes = &f->part->sum.amount[RFL_QUANTITY_DRAM];
	const struct rfl_amount *flops = &f->part->sum.amount[RFL_QUANTITY_FLOPS];
	const enum rfl_ai ai = f->job->options->ai;
	const bool wanted = ai == RFL_AI_AUTO || ai == RFL_AI_COUNTERS;
	struct rfl_point *p = f->point;
	enum rfl_fusion fusion = ai == RFL_AI_FUSED ? RFL_FUSION_FUSED : RFL_FUSION_UNFUSED;

	p->bytes_counters = bytes->value / f->steps;
	f->bytes_why = "";
	if (isnan(bytes->value))
		f->bytes_why = rfl_merge__text(f->job, "DRAM bytes unavailable%s%s",
					       bytes->reason ? ": " : "",
					       bytes->reason ? bytes->reason : "");
	else if (f->flops_counted && flops->launches != bytes->launches)
		f->bytes_why = RFL_COUNTERS_APART;
	else if (bytes->validity == RFL_VALID_MARKED && ai == RFL_AI_AUTO && work)
		f->bytes_why = "the self-test deviated by more than 2 %";
	if (f->bytes_why[0])
		rfl_buf_printf(&f->note, "; %s", f->bytes_why);
	else if (bytes->reason)
		rfl_buf_printf(&f->note, "; dram_bytes: %s", bytes->reason);
	if (!f->bytes_why[0] && p->flops_counters > 0 && bytes->value > 0)
		p->ai_counters = p->flops_counters / p->bytes_counters;
	if (work && work->flops > 0) {
		p->ai_unfused = work->flops / work->bytes[RFL_FUSION_UNFUSED];
		p->ai_fused = work->flops / work->bytes[RFL_FUSION_FUSED];
		p->flops_measured_over_counted = p->flops_counters / work->flops;
	}
	if (work)
		p->bytes_over_unfused = p->bytes_counters / work->bytes[RFL_FUSION_UNFUSED];
	p->bytes_per_step = p->bytes_counters;
	if (wanted && !f->bytes_why[0]) {
		p->bytes_source = rfl_merge__copy(
			f->job, rfl_counters__source(f->config->parts.counted->capture,
						     rfl_amount_is_given(bytes)));
	} else if (ai == RFL_AI_LOWER_BOUND) {
		const struct rfl_roof roof = {
			.compute_flop_per_s = f->config->compute->value,
			.bandwidth_byte_per_s = f->config->dram->value,
		};

		p->bytes_per_step = p->flops_per_step /
				    rfl_roof_lower_bound_ai(&roof, p->flops_per_step / p->step_s);
		p->bytes_source = rfl_merge__copy(f->job, rfl_ai_names[ai]);
	} else if (work && ai != RFL_AI_COUNTERS) {
		p->bytes_per_step = work->bytes[fusion];
		p->bytes_source = rfl_merge__source(f->job, rfl_fusion_names[fusion],
						    wanted ? f->bytes_why : "");
	}
	if (p->flops_per_step > 0 && p->bytes_per_step > 0 && p->bytes_source)
		p->ai = p->flops_per_step / p->bytes_per_step;
}

/* The intensity of a cache: the FLOPs of the point over the counted bytes. */
static double cache_ai(struct filling *f, enum rfl_quantity usual)
{
	const struct rfl_amount *amount = f->part->sum.amount;
	const enum rfl_quantity q = rfl_counters__cache_as(amount, usual);

	if (!(amount[q].value > 0) || !(f->point->flops_per_step > 0) ||
	    (f->flops_counted && amount[q].launches != amount[RFL_QUANTITY_FLOPS].launches))
		return NAN;
	rfl_buf_printf(&f->note, "; %s: %s", rfl_quantity_info(q)->name,
		       rfl_quantity_info(q)->meaning);
	return f->point->flops_per_step / (amount[q].value / f->steps);
}

/* Find the ceiling of the precision that dominates the FLOPs of a part, or use the run's ceiling.
 * @return the key of a ceiling that the peaks file lacks, or NULL */
static const char *choose_ceiling(const struct filling *f, const struct rfl_peak **ret,
				  const char **key)
{
	const struct rfl_config *c = f->config;
	const enum rfl_quantity most =
		f->flops_counted ? rfl_amounts_most_flops(f->part->sum.amount) : RFL_QUANTITY_COUNT;
	const char *own = rfl_merge__ceiling_of(most);
	const struct rfl_peak *peak;

	*ret = c->compute;
	*key = c->key;
	if (own && !c->nruns)
		f->point->precision = rfl_arena_strdup(f->job->arena, rfl_quantity_precision(most));
	if (!own || strcmp(own, c->key) == 0)
		return NULL;
	/* CPU counters do not distinguish AMX and SME from the vector units */
	if (!rfl_text_same(c->row->backend, "cuda") &&
	    strncmp(own, c->key, strcspn(own, ".") + 1) == 0)
		return NULL;
	peak = rfl_peaks_compute(c->penv, own);
	if (!peak || !rfl_peak_usable(peak))
		return own;
	*ret = peak;
	*key = own;
	return NULL;
}

/* The reason why a part cannot be compared with the roof. */
static const char *obstacle(const struct filling *f)
{
	const struct rfl_point *p = f->point;
	const struct rfl_parts *parts = &f->config->parts;

	if (isnan(p->flops_per_step) && parts->kind != RFL_RANGE_LAYER)
		return "its FLOPs were not counted in full; counters_note has the reason";
	if (isnan(p->flops_per_step))
		return parts->work.n > 0 ? "its FLOPs were not counted, and the network has no "
					   "layer of this name"
					 : "its FLOPs were not counted, and the program does not "
					   "know the network";
	if (isnan(p->step_s))
		return "its time was not recorded";
	if (!(p->step_s > 0))
		return "its time is 0";
	return f->bytes_why[0] ? "its bytes are unknown; counters_note has the reason"
			       : "it moved no bytes";
}

/* Compare the part with the roof. */
static void fill_roof(struct filling *f)
{
	const struct rfl_config *c = f->config;
	const char *source = c->parts.timed->capture->source, *key, *lacks;
	struct rfl_point *p = f->point;
	struct rfl_verdict_facts facts = { .env = c->penv,
					   .dram = c->dram,
					   .factor = f->job->options->factor != RFL_TRAIN_EXACT,
					   .step_compulsory_bytes = NAN,
					   .sheet_clock_hz = c->sheet_clock_hz };
	struct rfl_buf verdict = { .len = 0 };

	lacks = choose_ceiling(f, &facts.compute, &key);
	rfl_point_set_roof(p, key, facts.compute->value, facts.compute->status, c->dram,
			   f->job->arena);
	if (p->step_s > 0)
		p->attained_gflops = p->flops_per_step / p->step_s / 1e9;
	if (c->parts.timed == c->parts.counted)
		p->clock_hz = rfl_merge__clock(c->parts.counted->capture, f->part->sum.amount);
	if (p->flops_per_step == 0)
		rfl_buf_puts(&verdict, f->flops_counted && c->parts.kind != RFL_RANGE_OP
					       ? "no FLOPs"
					       : "no multiply-adds");
	if (p->step_s > 0 && p->bytes_source &&
	    ((p->ai > 0 && p->attained_gflops > 0) ||
	     (p->flops_per_step == 0 && p->bytes_per_step > 0))) {
		rfl_point_judge(p, &facts, f->job->arena);
		rfl_buf_puts(&verdict, verdict.len ? "; " : "");
		rfl_verdict_write(p, &facts, &verdict);
	} else if (p->flops_per_step != 0) {
		rfl_buf_printf(&verdict, "not comparable with the roof: %s", obstacle(f));
	}
	if (lacks)
		rfl_buf_printf(
			&verdict,
			"; most of its FLOPs are under %s, which has no ceiling in the peaks "
			"file, so %s is used",
			lacks, key);
	if (c->parts.kind == RFL_RANGE_LAYER && f->flops_counted && c->measured->doubtful)
		rfl_buf_puts(&verdict, "; the counters of the step disagree with its count");
	if (c->parts.kind == RFL_RANGE_LAYER)
		rfl_buf_puts(&verdict, "; time in a step that was synchronised at every layer");
	else if (!isnan(p->step_s))
		rfl_buf_printf(
			&verdict, "; time as profiled by %s%s", source ? source : "another program",
			isnan(p->clock_hz) && rfl_text_same(source, "ncu") ? ", at ncu's clock"
									   : "");
	if (c->parts.kind == RFL_RANGE_KERNEL && !isnan(p->step_s) && p->clock_hz > 0)
		rfl_buf_printf(&verdict, ", at %.0f MHz", p->clock_hz / 1e6);
	p->verdict = rfl_merge__keep(f->job, &verdict);
}

/* Fill in the columns with the sources of the numbers. */
static void fill_sources(struct filling *f)
{
	const struct rfl_parts *parts = &f->config->parts;
	const struct rfl_amount *bytes = &f->part->sum.amount[RFL_QUANTITY_DRAM];
	const char *source = parts->timed->capture->source;
	enum rfl_validity worst = RFL_VALID_UNAVAILABLE;
	struct rfl_point *p = f->point;

	if (!f->flops_why[0])
		worst = f->part->sum.amount[RFL_QUANTITY_FLOPS].validity;
	if (!isnan(bytes->value) && (worst == RFL_VALID_UNAVAILABLE || bytes->validity > worst))
		worst = bytes->validity;
	p->counters_validity = rfl_merge__copy(f->job, rfl_validity_names[worst]);
	p->counters_source = rfl_merge__copy(f->job, parts->counted->capture->source);
	p->counters_note = rfl_merge__keep(f->job, &f->note);
	if (isnan(p->step_s))
		return;
	p->step_source = is_launched(parts->kind)
				 ? rfl_arena_printf(f->job->arena, "%s times of %s",
						    rfl_range_kind_names[parts->kind],
						    source ? source : "a profiler")
				 : rfl_merge__copy(f->job, "a counted step");
}

static void fill_part(struct filling *f, double all_s)
{
	const struct rfl_parts *parts = &f->config->parts;
	const struct rfl_part *part = f->part;
	const int64_t known = parts->timed->steps;
	struct rfl_point *p = f->point;

	f->steps = known > 0 ? (double)known : 1;
	p->launches = part->sum.launches;
	p->step_s = time_of(part) / f->steps;
	p->time_share = time_of(part) / all_s;
	p->fwd_ms = 1e3 * part->fwd_s / f->steps;
	p->bwd_ms = 1e3 * part->bwd_s / f->steps;
	p->counters_steps = known > 0 ? known : RFL_UNKNOWN;
	rfl_buf_puts(&f->note, rfl_counters__name(parts->counted->capture));
	if (parts->timed != parts->counted)
		rfl_buf_printf(&f->note, ", times of %s",
			       rfl_counters__name(parts->timed->capture));
	if (parts->timed->from == RFL_STEPS_CAPTURE)
		rfl_buf_puts(&f->note, ": sums over the capture");
	else if (known > 0)
		rfl_buf_printf(&f->note, ": %lld step%s", (long long)known, known == 1 ? "" : "s");
	else
		rfl_buf_puts(&f->note,
			     ": the number of steps is unknown, so FLOPs, bytes and times "
			     "are sums over the capture");
	p->part = rfl_merge__copy(f->job, part->name[0] ? part->name : "?");
	p->part_kind = rfl_merge__copy(f->job, rfl_range_kind_names[parts->kind]);
	fill_flops(f);
	fill_bytes(f);
	p->ai_l2 = cache_ai(f, RFL_QUANTITY_L2);
	p->ai_l1 = cache_ai(f, RFL_QUANTITY_L1);
	fill_sources(f);
	fill_roof(f);
}

/* Order by the time that could be saved, unknown last. */
static int by_headroom(const void *a, const void *b)
{
	const struct rfl_point *x = a, *y = b;
	const double s = isnan(x->headroom_s) ? -1 : x->headroom_s;
	const double t = isnan(y->headroom_s) ? -1 : y->headroom_s;

	if (s < t || s > t)
		return s > t ? -1 : 1;
	return x->step_s > y->step_s ? -1 : x->step_s < y->step_s;
}

void rfl_parts__points(struct rfl_merge_job *job, struct rfl_points *points)
{
	const struct rfl_point *step = points->points;
	struct rfl_point *ret, *p;
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++)
		n += job->configs[i].missing ? 0 : job->configs[i].parts.n;
	p = ret = rfl_point__array(n);
	for (size_t i = 0; i < job->n; i++) {
		const struct rfl_config *c = &job->configs[i];
		double all_s = 0;

		if (c->missing)
			continue;
		for (size_t k = 0; k < c->parts.n; k++)
			add_time(&all_s, time_of(&c->parts.parts[k]));
		for (size_t k = 0; k < c->parts.n; k++, p++) {
			struct filling f = {
				.job = job, .config = c, .part = &c->parts.parts[k], .point = p
			};

			copy_run(step, p);
			fill_part(&f, all_s);
		}
		if (c->parts.kind == RFL_RANGE_OP && c->parts.n > 0)
			qsort(p - c->parts.n, c->parts.n, sizeof(*p), by_headroom);
		step++;
	}
	free(points->points);
	points->points = ret;
	points->n = n;
}
