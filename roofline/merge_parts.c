/*
 * merge_parts.c - points of the kernels or layers of a step. Times, FLOPs and bytes are those of a
 * capture, summed over the launches of each part; FLOPs and bytes of layers that were not counted
 * there are counted from the network. The step supplies the columns that describe the run, and the
 * bandwidth.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "roofline/verdict.h"

const char *const rfl_by_names[] = { "step", "layer", "kernel", NULL };

#define FORWARD  "fwd/"
#define BACKWARD "bwd/"

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

/* Sum the ranges of each part, sorted by name, over blocks, grids and passes. */
static enum rfl_rc gather(const struct rfl_capture *c, enum rfl_range_kind kind,
			  struct rfl_part **ret, size_t *n, struct rfl_err *err)
{
	struct rfl_part *parts = rfl_alloc_array(c->nranges + 1, sizeof(*parts));
	size_t all = 0, kept = 0;

	if (!parts)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == kind)
			parts[all++] = part_of(&c->ranges[i], i);
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
	*n = kept;
	return RFL_OK;
}

/* Replace times and numbers of launches with those of another capture, which has all the kernels.
 * The other amounts are scaled to its launches; kernels that only it has are added.
 * @return RFL_ENOTFOUND: the other capture lacks a kernel */
static enum rfl_rc take_times(struct rfl_parts *parts, const struct rfl_capture *from,
			      struct rfl_err *err)
{
	struct rfl_part *timed = NULL;
	size_t n = 0;
	enum rfl_rc rc = gather(from, parts->kind, &timed, &n, err);

	for (size_t i = 0; i < parts->n && rc == RFL_OK; i++) {
		const struct rfl_part *p = &parts->parts[i];
		struct rfl_part *t = bsearch(p, timed, n, sizeof(*timed), by_name);

		if (!t || p->sum.launches < 1 || t->sum.launches < 1) {
			rc = RFL_ENOTFOUND;
			break;
		}
		for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
			struct rfl_amount *a = &t->sum.amount[q];

			if (q == RFL_QUANTITY_TIME)
				continue;
			*a = p->sum.amount[q];
			a->value *= (double)t->sum.launches / (double)p->sum.launches;
			a->launches = a->launches < p->sum.launches ? 0 : t->sum.launches;
		}
	}
	if (rc == RFL_OK) {
		free(parts->parts);
		parts->parts = timed;
		parts->n = n;
		timed = NULL;
	}
	free(timed);
	return rc;
}

/* Use the kernel times of a tool that recorded only times and therefore did not slow kernels down.
 */
static enum rfl_rc find_times(const struct rfl_config *c, struct rfl_parts *parts,
			      struct rfl_err *err)
{
	for (size_t i = 0; i < c->ncounted; i++) {
		const struct rfl_joined *other = &c->counted[i];
		enum rfl_rc rc;

		if (other->left_out || other == parts->counted ||
		    !has(other->capture, RFL_RANGE_KERNEL, RFL_QUANTITY_TIME) ||
		    has_work(other->capture))
			continue;
		rc = take_times(parts, other->capture, err);
		if (rc == RFL_OK)
			parts->timed = other;
		if (rc != RFL_ENOTFOUND)
			return rc;
	}
	return RFL_OK;
}

static int by_layer_name(const void *part, const void *layer)
{
	return strcmp(((const struct rfl_part *)part)->name,
		      ((const struct rfl_work_layer *)layer)->name);
}

/* Count the layers from the network. Report FLOPs in layers that the capture does not have. */
static enum rfl_rc count_layers(const struct rfl_config *c, struct rfl_parts *parts,
				const struct rfl_work_query *query, struct rfl_merge_report *report,
				struct rfl_err *err)
{
	struct rfl_work_layers *work = &parts->work;
	double all = 0, matched = 0;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_work_count_layers(query, work, &why);

	if (rc == RFL_ENOTFOUND) /* a network known only from --complexity-json */
		return RFL_OK;
	if (rc != RFL_OK)
		return rfl_err_pass(err, &why);
	for (size_t i = 0; i < work->n; i++)
		all += work->layers[i].flops;
	for (size_t i = 0; i < parts->n && rc == RFL_OK; i++) {
		struct rfl_part *p = &parts->parts[i];

		p->work = bsearch(p, work->layers, work->n, sizeof(*work->layers), by_layer_name);
		matched += p->work ? p->work->flops : 0;
	}
	if (matched < all)
		rfl_buf_printf(&report->notes,
			       "counters: %s has no ranges of layers with %.2g %% of the FLOPs of "
			       "%s; it may be of another network\n",
			       rfl_counters__name(parts->counted->capture),
			       100 * (1 - matched / all), c->row->model);
	return rc;
}

enum rfl_rc rfl_parts__find(struct rfl_config *c, enum rfl_by by,
			    const struct rfl_work_query *query, struct rfl_merge_report *report,
			    struct rfl_err *err)
{
	static const enum rfl_quantity wanted[] = { RFL_QUANTITY_FLOPS, RFL_QUANTITY_DRAM,
						    RFL_QUANTITY_TIME };
	struct rfl_parts *parts = &c->parts;
	enum rfl_rc rc;

	parts->kind = by == RFL_BY_KERNEL ? RFL_RANGE_KERNEL : RFL_RANGE_LAYER;
	for (size_t q = 0; q < RFL_ARRAY_LEN(wanted) && !parts->counted; q++)
		for (size_t i = 0; i < c->ncounted && !parts->counted; i++)
			if (!c->counted[i].left_out &&
			    has(c->counted[i].capture, parts->kind, wanted[q]))
				parts->counted = &c->counted[i];
	if (!parts->counted)
		return RFL_OK;
	rc = gather(parts->counted->capture, parts->kind, &parts->parts, &parts->n, err);
	parts->timed = parts->counted;
	if (rc == RFL_OK && by == RFL_BY_KERNEL && has_work(parts->counted->capture))
		rc = find_times(c, parts, err);
	else if (rc == RFL_OK && by == RFL_BY_LAYER && c->work.flops > 0)
		rc = count_layers(c, parts, query, report, err);
	if (rc == RFL_OK)
		qsort(parts->parts, parts->n, sizeof(*parts->parts),
		      by == RFL_BY_KERNEL ? by_time : by_index);
	return rc;
}

void rfl_parts__fini(struct rfl_parts *parts)
{
	free(parts->parts);
	rfl_work_layers_fini(&parts->work);
}

/* ---- filling in the points ---- */

/* Copy the columns that describe the run. */
static enum rfl_rc copy_run(const struct rfl_point *step, struct rfl_point *p, struct rfl_err *err)
{
	static const char *const columns[] = {
		"env",         "model",       "precision",
		"batch",       "mode",        "layout",
		"backend",     "data_mode",   "engine",
		"device_name", "threads",     "config_hash",
		"variant",     "runs",        "compute_key",
		"peak_gflops", "peak_gbps",   "peak_gbps_status",
		"peaks_hash",  "ledger_hash", "context_length",
	};
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(columns) && rc == RFL_OK; i++) {
		const struct rfl_field *f = &rfl_point_fields[rfl_fields_find(
			rfl_point_fields, RFL_POINT_NCOLUMNS, columns[i])];

		if (f->kind == RFL_FIELD_TEXT)
			rc = rfl_field_set(rfl_field_text_at(f, p), *rfl_field_text_at(f, step),
					   err);
		else if (f->kind == RFL_FIELD_INT)
			*rfl_field_int_at(f, p) = *rfl_field_int_at(f, step);
		else
			*rfl_field_real_at(f, p) = *rfl_field_real_at(f, step);
	}
	return rc;
}

/* A point that is being filled in. */
struct filling {
	const struct rfl_merge_options *options;
	const struct rfl_config *config;
	const struct rfl_part *part;
	struct rfl_point *point;
	bool flops_counted;                  /* by counters */
	char flops_why[560], bytes_why[560]; /* reasons not to use counters, or "" */
	struct rfl_buf note;                 /* for counters_note */
};

/* The FLOPs of the part. */
static enum rfl_rc fill_flops(struct filling *f, double steps, struct rfl_err *err)
{
	const struct rfl_parts *parts = &f->config->parts;
	const struct rfl_work_layer *work = f->part->work;
	const struct rfl_amount *flops = &f->part->sum.amount[RFL_QUANTITY_FLOPS];
	const enum rfl_flops_of of = f->options->flops;
	struct rfl_range r = { .kind = parts->kind,
			       .name = f->part->name,
			       .launches = f->part->sum.launches };
	struct rfl_point *p = f->point;

	memcpy(r.amount, f->part->sum.amount, sizeof(r.amount));
	p->flops_counters = rfl_counters__flops(f->config, parts->counted, &r, f->flops_why,
						sizeof(f->flops_why)) /
			    steps;
	p->coverage = f->flops_why[0] ? 0 : rfl_range_share(&r, RFL_QUANTITY_FLOPS);
	if (f->flops_why[0])
		rfl_buf_printf(&f->note, "; %s", f->flops_why);
	else if (flops->reason)
		rfl_buf_printf(&f->note, "; flops.total: %s", flops->reason);
	f->flops_counted = of != RFL_FLOPS_MODEL && !f->flops_why[0];
	if (f->flops_counted) {
		p->flops_per_step = p->flops_counters;
		return rfl_field_set(&p->flops_source, "counters", err);
	}
	if (!work || of == RFL_FLOPS_COUNTERS)
		return RFL_OK;
	p->flops_per_step = work->flops;
	return rfl_merge__set_source(&p->flops_source, parts->work.flops_source,
				     of == RFL_FLOPS_MODEL ? "" : f->flops_why, err);
}

/* The bytes of the part, and its intensity. */
static enum rfl_rc fill_bytes(struct filling *f, double steps, struct rfl_err *err)
{
	const struct rfl_work_layer *work = f->part->work;
	const struct rfl_amount *bytes = &f->part->sum.amount[RFL_QUANTITY_DRAM];
	const struct rfl_amount *flops = &f->part->sum.amount[RFL_QUANTITY_FLOPS];
	const enum rfl_ai ai = f->options->ai;
	const bool wanted = ai == RFL_AI_AUTO || ai == RFL_AI_COUNTERS;
	struct rfl_point *p = f->point;
	enum rfl_fusion fusion = ai == RFL_AI_FUSED ? RFL_FUSION_FUSED : RFL_FUSION_UNFUSED;
	enum rfl_rc rc = RFL_OK;

	p->bytes_counters = bytes->value / steps;
	if (isnan(bytes->value))
		(void)snprintf(f->bytes_why, sizeof(f->bytes_why), "DRAM bytes unavailable%s%s",
			       bytes->reason ? ": " : "", bytes->reason ? bytes->reason : "");
	else if (f->flops_counted && flops->launches != bytes->launches)
		(void)snprintf(f->bytes_why, sizeof(f->bytes_why),
			       "FLOPs and bytes are from different launches");
	else if (bytes->validity == RFL_VALID_MARKED && ai == RFL_AI_AUTO && work)
		(void)snprintf(f->bytes_why, sizeof(f->bytes_why),
			       "the self-test deviated by more than 2 %%");
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
	if (wanted && !f->bytes_why[0]) {
		p->bytes_per_step = p->bytes_counters;
		rc = rfl_field_set(&p->bytes_source, rfl_ai_names[RFL_AI_COUNTERS], err);
	} else if (ai == RFL_AI_LOWER_BOUND) {
		const struct rfl_roof roof = {
			.compute_flop_per_s = f->config->compute->value,
			.bandwidth_byte_per_s = f->config->dram->value,
		};

		p->bytes_per_step = p->flops_per_step /
				    rfl_roof_lower_bound_ai(&roof, p->flops_per_step / p->step_s);
		rc = rfl_field_set(&p->bytes_source, rfl_ai_names[ai], err);
	} else if (work && ai != RFL_AI_COUNTERS) {
		p->bytes_per_step = work->bytes[fusion];
		rc = rfl_merge__set_source(&p->bytes_source, rfl_fusion_names[fusion],
					   wanted ? f->bytes_why : "", err);
	} else {
		p->bytes_per_step = p->bytes_counters;
	}
	if (p->flops_per_step > 0 && p->bytes_per_step > 0 && p->bytes_source)
		p->ai = p->flops_per_step / p->bytes_per_step;
	return rc;
}

/* The intensity of a cache: the FLOPs of the point over the counted bytes. */
static double cache_ai(struct filling *f, enum rfl_quantity usual, double steps)
{
	const struct rfl_amount *amount = f->part->sum.amount;
	const enum rfl_quantity q = rfl_counters__cache_as(amount, usual);

	if (!(amount[q].value > 0) || !(f->point->flops_per_step > 0) ||
	    (f->flops_counted && amount[q].launches != amount[RFL_QUANTITY_FLOPS].launches))
		return NAN;
	rfl_buf_printf(&f->note, "; %s: %s", rfl_quantity_info(q)->name,
		       rfl_quantity_info(q)->meaning);
	return f->point->flops_per_step / (amount[q].value / steps);
}

/* Find the ceiling of the precision that dominates the FLOPs of a part, or use that of the run.
 * @return the key of a ceiling that the peaks file lacks, or NULL */
static const char *choose_ceiling(const struct filling *f, const struct rfl_peak **ret,
				  const char **key)
{
	const struct rfl_amount *amount = f->part->sum.amount;
	const struct rfl_config *c = f->config;
	enum rfl_quantity most = RFL_QUANTITY_COUNT;
	const struct rfl_peak *peak;
	const char *own;

	*ret = c->compute;
	*key = c->key;
	for (int q = 0; q < RFL_QUANTITY_COUNT && f->flops_counted; q++)
		if (rfl_quantity_is_flops((enum rfl_quantity)q) && amount[q].value > 0 &&
		    (most == RFL_QUANTITY_COUNT || amount[q].value > amount[most].value))
			most = (enum rfl_quantity)q;
	own = most == RFL_QUANTITY_COUNT ? NULL : rfl_merge__ceiling_of(most);
	if (!own || strcmp(own, c->key) == 0)
		return NULL;
	/* CPU counters do not distinguish the matrix unit from the vector units */
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

	if (isnan(p->flops_per_step) && parts->kind == RFL_RANGE_KERNEL)
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
static enum rfl_rc fill_roof(struct filling *f, struct rfl_err *err)
{
	const struct rfl_config *c = f->config;
	const char *source = c->parts.timed->capture->source, *key, *lacks;
	struct rfl_point *p = f->point;
	struct rfl_verdict_facts facts = { .point = p,
					   .env = c->penv,
					   .dram = c->dram,
					   .factor = f->options->factor != RFL_TRAIN_EXACT,
					   .step_compulsory_bytes = NAN };
	struct rfl_roof roof = { .bandwidth_byte_per_s = c->dram->value };
	struct rfl_buf verdict;
	enum rfl_rc rc;

	lacks = choose_ceiling(f, &facts.compute, &key);
	roof.compute_flop_per_s = facts.compute->value;
	p->peak_gflops = roof.compute_flop_per_s / 1e9;
	p->knee_ai = rfl_roof_knee(&roof);
	if (p->step_s > 0)
		p->attained_gflops = p->flops_per_step / p->step_s / 1e9;
	if ((rc = rfl_field_set(&p->compute_key, key, err)) ||
	    (rc = rfl_field_set(&p->peak_gflops_status, rfl_peak_status_name(facts.compute->status),
				err)))
		return rc;
	rfl_buf_init(&verdict, 1 << 16);
	if (p->flops_per_step == 0) {
		rfl_buf_puts(&verdict, f->flops_counted ? "no FLOPs" : "no multiply-adds");
	} else if (p->ai > 0 && p->attained_gflops > 0) {
		p->attainable_gflops = rfl_roof_attainable(&roof, p->ai) / 1e9;
		p->percent_of_attainable = 100 * p->attained_gflops / p->attainable_gflops;
		p->headroom_s = p->step_s * (1 - p->attained_gflops / p->attainable_gflops);
		rc = rfl_field_set(&p->bound,
				   rfl_bound_names[rfl_roof_bound(&roof, p->ai, NAN, NAN)], err);
		if (rc == RFL_OK)
			rfl_verdict_write(&facts, &verdict);
	} else {
		rfl_buf_printf(&verdict, "not comparable with the roof: %s", obstacle(f));
	}
	if (lacks)
		rfl_buf_printf(
			&verdict,
			"; most of its FLOPs are under %s, which has no ceiling in the peaks "
			"file, so %s is used",
			lacks, key);
	if (c->parts.kind == RFL_RANGE_LAYER && f->flops_counted && c->measured.doubtful)
		rfl_buf_puts(&verdict, "; the counters of the step disagree with its count");
	if (c->parts.kind == RFL_RANGE_LAYER)
		rfl_buf_puts(&verdict, "; time in a step that was synchronised at every layer");
	else if (!isnan(p->step_s))
		rfl_buf_printf(&verdict, "; time as profiled by %s%s",
			       source ? source : "another program",
			       rfl_text_same(source, "ncu") ? ", at ncu's clock" : "");
	if (rc == RFL_OK && (rc = rfl_buf_check(&verdict, "verdict", err)) == RFL_OK)
		rc = rfl_field_set(&p->verdict, rfl_buf_str(&verdict), err);
	rfl_buf_fini(&verdict);
	return rc;
}

/* Fill in the columns with the sources of the numbers. */
static enum rfl_rc fill_sources(struct filling *f, struct rfl_err *err)
{
	const struct rfl_parts *parts = &f->config->parts;
	const struct rfl_amount *bytes = &f->part->sum.amount[RFL_QUANTITY_DRAM];
	const char *source = parts->timed->capture->source;
	enum rfl_validity worst = RFL_VALID_UNAVAILABLE;
	struct rfl_point *p = f->point;
	char times[100];
	enum rfl_rc rc;

	if (!f->flops_why[0])
		worst = f->part->sum.amount[RFL_QUANTITY_FLOPS].validity;
	if (!isnan(bytes->value) && (worst == RFL_VALID_UNAVAILABLE || bytes->validity > worst))
		worst = bytes->validity;
	(void)snprintf(times, sizeof(times), "kernel times of %s", source ? source : "a profiler");
	if ((rc = rfl_field_set(&p->counters_validity, rfl_validity_names[worst], err)) ||
	    (rc = rfl_field_set(&p->counters_source, parts->counted->capture->source, err)) ||
	    (rc = rfl_buf_check(&f->note, "counters", err)) ||
	    (rc = rfl_field_set(&p->counters_note, rfl_buf_str(&f->note), err)) || isnan(p->step_s))
		return rc;
	return rfl_field_set(&p->step_source,
			     parts->kind == RFL_RANGE_LAYER ? "a counted step" : times, err);
}

static enum rfl_rc fill_part(struct filling *f, double all_s, struct rfl_err *err)
{
	const struct rfl_parts *parts = &f->config->parts;
	const struct rfl_part *part = f->part;
	const int64_t known = parts->timed->steps;
	const double steps = known > 0 ? (double)known : 1;
	struct rfl_point *p = f->point;
	enum rfl_rc rc;

	p->launches = part->sum.launches;
	p->step_s = time_of(part) / steps;
	p->time_share = time_of(part) / all_s;
	p->fwd_ms = 1e3 * part->fwd_s / steps;
	p->bwd_ms = 1e3 * part->bwd_s / steps;
	p->counters_steps = known > 0 ? known : RFL_UNKNOWN;
	rfl_buf_puts(&f->note, rfl_counters__name(parts->counted->capture));
	if (parts->timed != parts->counted)
		rfl_buf_printf(&f->note, ", times of %s",
			       rfl_counters__name(parts->timed->capture));
	if (known > 0)
		rfl_buf_printf(&f->note, ": %lld step%s", (long long)known, known == 1 ? "" : "s");
	else
		rfl_buf_puts(&f->note,
			     ": the number of steps is unknown, so FLOPs, bytes and times "
			     "are sums over the capture");
	if ((rc = rfl_field_set(&p->part, part->name[0] ? part->name : "?", err)) ||
	    (rc = rfl_field_set(&p->part_kind, rfl_range_kind_names[parts->kind], err)) ||
	    (rc = fill_flops(f, steps, err)) || (rc = fill_bytes(f, steps, err)))
		return rc;
	p->ai_l2 = cache_ai(f, RFL_QUANTITY_L2, steps);
	p->ai_l1 = cache_ai(f, RFL_QUANTITY_L1, steps);
	rc = fill_sources(f, err);
	return rc ? rc : fill_roof(f, err);
}

enum rfl_rc rfl_parts__points(const struct rfl_merge_options *options, const struct rfl_configs *cs,
			      const struct rfl_points *steps, struct rfl_points **ret,
			      struct rfl_err *err)
{
	struct rfl_points *pts = NULL;
	size_t n = 0, step = 0, k = 0;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < cs->n; i++)
		n += cs->configs[i].missing ? 0 : cs->configs[i].parts.n;
	pts = rfl_points_new(n);
	if (!pts)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < cs->n; i++) {
		const struct rfl_config *c = &cs->configs[i];
		double all_s = 0;

		if (c->missing)
			continue;
		for (size_t j = 0; j < c->parts.n; j++)
			add_time(&all_s, time_of(&c->parts.parts[j]));
		for (size_t j = 0; j < c->parts.n && rc == RFL_OK; j++, k++) {
			struct filling f = { .options = options,
					     .config = c,
					     .part = &c->parts.parts[j],
					     .point = &pts->points[k] };

			rfl_buf_init(&f.note, 1 << 16);
			rc = copy_run(&steps->points[step], f.point, err);
			if (rc == RFL_OK)
				rc = fill_part(&f, all_s, err);
			rfl_buf_fini(&f.note);
		}
		step++;
	}
	if (rc == RFL_OK)
		*ret = pts;
	else
		rfl_points_free(pts);
	return rc;
}
