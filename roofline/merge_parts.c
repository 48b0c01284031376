/*
 * merge_parts.c - points of the kernels of a step: their FLOPs, bytes and times are those of a
 * capture, summed over the launches of each kernel. The step supplies the columns that describe the
 * run, and the bandwidth.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "roofline/verdict.h"

const char *const rfl_by_names[] = { "step", "kernel", NULL };

/* ---- finding the parts ---- */

static bool has(const struct rfl_capture *c, enum rfl_quantity q)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == RFL_RANGE_KERNEL && !isnan(c->ranges[i].amount[q].value))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct rfl_part *)a)->name, ((const struct rfl_part *)b)->name);
}

static double time_of(const struct rfl_part *p)
{
	return p->sum.amount[RFL_QUANTITY_TIME].value;
}

static int by_time(const void *a, const void *b)
{
	const double x = time_of(a), y = time_of(b);

	if (isnan(x) != isnan(y))
		return isnan(x) - isnan(y);
	return x > y || x < y ? (x < y) - (x > y) : by_name(a, b);
}

/* Sum the ranges of each kernel over blocks and grids, sorted by name. */
static enum rfl_rc gather(const struct rfl_capture *c, struct rfl_part **ret, size_t *n,
			  struct rfl_err *err)
{
	struct rfl_part *parts = rfl_alloc_array(c->nranges + 1, sizeof(*parts));
	size_t all = 0, kept = 0;

	if (!parts)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];

		if (r->kind != RFL_RANGE_KERNEL)
			continue;
		parts[all].name = r->name ? r->name : "?";
		rfl_amounts_clear(&parts[all].sum);
		rfl_amounts_add(&parts[all++].sum, r->amount, r->launches);
	}
	qsort(parts, all, sizeof(*parts), by_name);
	for (size_t i = 0; i < all; i++)
		if (kept > 0 && by_name(&parts[kept - 1], &parts[i]) == 0)
			rfl_amounts_add(&parts[kept - 1].sum, parts[i].sum.amount,
					parts[i].sum.launches);
		else
			parts[kept++] = parts[i];
	*ret = parts;
	*n = kept;
	return RFL_OK;
}

/* Replace times and numbers of launches by those of another capture, which has all of the kernels.
 * The other amounts are scaled to the launches there; kernels that only it has are added.
 * @return RFL_ENOTFOUND: the other capture lacks a kernel */
static enum rfl_rc take_times(struct rfl_parts *parts, const struct rfl_capture *from,
			      struct rfl_err *err)
{
	struct rfl_part *timed = NULL;
	size_t n = 0;
	enum rfl_rc rc = gather(from, &timed, &n, err);

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

enum rfl_rc rfl_parts__find(struct rfl_config *c, struct rfl_err *err)
{
	static const enum rfl_quantity wanted[] = { RFL_QUANTITY_FLOPS, RFL_QUANTITY_DRAM,
						    RFL_QUANTITY_TIME };
	struct rfl_parts *parts = &c->parts;
	enum rfl_rc rc;

	for (size_t q = 0; q < RFL_ARRAY_LEN(wanted) && !parts->counted; q++)
		for (size_t i = 0; i < c->ncounted && !parts->counted; i++)
			if (!c->counted[i].left_out && has(c->counted[i].capture, wanted[q]))
				parts->counted = &c->counted[i];
	if (!parts->counted)
		return RFL_OK;
	rc = gather(parts->counted->capture, &parts->parts, &parts->n, err);
	parts->timed = parts->counted;
	/* A tool that only recorded times did not slow the kernels down. */
	for (size_t i = 0; i < c->ncounted && rc == RFL_OK && parts->timed == parts->counted; i++) {
		const struct rfl_joined *other = &c->counted[i];

		if (other->left_out || other == parts->counted ||
		    !has(other->capture, RFL_QUANTITY_TIME) ||
		    has(other->capture, RFL_QUANTITY_FLOPS) ||
		    has(other->capture, RFL_QUANTITY_DRAM))
			continue;
		rc = take_times(parts, other->capture, err);
		if (rc == RFL_OK)
			parts->timed = other;
		else if (rc == RFL_ENOTFOUND)
			rc = RFL_OK;
	}
	if (rc == RFL_OK)
		qsort(parts->parts, parts->n, sizeof(*parts->parts), by_time);
	return rc;
}

/* ---- filling in the points ---- */

/* Copy the columns that describe the run. */
static enum rfl_rc copy_run(const struct rfl_point *step, struct rfl_point *p, struct rfl_err *err)
{
	static const char *const columns[] = {
		"env",
		"model",
		"precision",
		"batch",
		"mode",
		"layout",
		"backend",
		"data_mode",
		"engine",
		"device_name",
		"threads",
		"config_hash",
		"variant",
		"runs",
		"compute_key",
		"peak_gflops",
		"peak_gbps",
		"peak_gbps_status",
		"peak_gflops_status",
		"knee_ai",
		"peaks_hash",
		"ledger_hash",
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

/* The bytes of a cache by the usual definition, else by that of ncu's hierarchical roofline. */
static double cache_ai(const struct rfl_part *part, enum rfl_quantity first,
		       enum rfl_quantity second, struct rfl_buf *note)
{
	const struct rfl_amount *flops = &part->sum.amount[RFL_QUANTITY_FLOPS];
	const enum rfl_quantity q = isnan(part->sum.amount[first].value) ? second : first;
	const struct rfl_amount *bytes = &part->sum.amount[q];

	if (!(bytes->value > 0) || bytes->launches != flops->launches || !(flops->value > 0))
		return NAN;
	rfl_buf_printf(note, "; %s: %s", rfl_quantity_info(q)->name, rfl_quantity_info(q)->meaning);
	return flops->value / bytes->value;
}

/* Use the ceiling of the precision that dominates the FLOPs of a part.
 * @return the key of a ceiling that the peaks file lacks, or NULL */
static const char *choose_ceiling(const struct rfl_config *c, const struct rfl_part *part,
				  const struct rfl_peak **ret, const char **key)
{
	enum rfl_quantity most = RFL_QUANTITY_COUNT;
	const struct rfl_peak *peak;
	const char *own;

	*ret = c->compute;
	*key = c->key;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (rfl_quantity_is_flops((enum rfl_quantity)q) && part->sum.amount[q].value > 0 &&
		    (most == RFL_QUANTITY_COUNT ||
		     part->sum.amount[q].value > part->sum.amount[most].value))
			most = (enum rfl_quantity)q;
	own = most == RFL_QUANTITY_COUNT ? NULL : rfl_merge__ceiling_of(most);
	if (!own || strcmp(own, c->key) == 0)
		return NULL;
	peak = rfl_peaks_compute(c->penv, own);
	if (!peak || !rfl_peak_usable(peak))
		return own;
	*ret = peak;
	*key = own;
	return NULL;
}

/* Where the FLOPs, bytes and times are from, and what they cover. */
static void put_note(const struct rfl_parts *parts, struct rfl_buf *out)
{
	const struct rfl_joined *j = parts->counted;

	rfl_buf_puts(out, rfl_counters__name(j->capture));
	if (parts->timed != j)
		rfl_buf_printf(out, ", times of %s", rfl_counters__name(parts->timed->capture));
	if (parts->timed->steps > 0)
		rfl_buf_printf(out, ": %lld step%s", (long long)parts->timed->steps,
			       parts->timed->steps == 1 ? "" : "s");
	else
		rfl_buf_puts(out, ": the number of steps is unknown, so FLOPs, bytes and times are "
				  "sums over the capture");
}

/* Fill in the rate, the intensity and their comparison with the roof.
 * @param flops_why,  bytes_why  why they are unknown, else "" */
static enum rfl_rc fill_model(const struct rfl_config *c, const struct rfl_part *part,
			      struct rfl_point *p, const char *flops_why, const char *bytes_why,
			      struct rfl_err *err)
{
	const struct rfl_peak *compute = c->compute;
	const char *key = c->key, *lacks = NULL, *source = c->parts.timed->capture->source;
	struct rfl_verdict_facts facts = {
		.point = p, .env = c->penv, .dram = c->dram, .step_compulsory_bytes = NAN
	};
	struct rfl_roof roof = { .bandwidth_byte_per_s = c->dram->value };
	struct rfl_buf verdict;
	enum rfl_rc rc = RFL_OK;

	lacks = choose_ceiling(c, part, &compute, &key);
	facts.compute = compute;
	roof.compute_flop_per_s = compute->value;
	p->peak_gflops = compute->value / 1e9;
	p->knee_ai = rfl_roof_knee(&roof);
	p->attained_gflops = p->flops_per_step / p->step_s / 1e9;
	if ((rc = rfl_field_set(&p->compute_key, key, err)) ||
	    (rc = rfl_field_set(&p->peak_gflops_status, rfl_peak_status_name(compute->status),
				err)))
		return rc;
	rfl_buf_init(&verdict, 1 << 16);
	if (p->flops_per_step == 0) {
		rfl_buf_puts(&verdict, "no FLOPs");
	} else if (!isnan(p->ai) && !isnan(p->attained_gflops)) {
		p->attainable_gflops = rfl_roof_attainable(&roof, p->ai) / 1e9;
		p->percent_of_attainable = 100 * p->attained_gflops / p->attainable_gflops;
		p->headroom_s = p->step_s * (1 - p->attained_gflops / p->attainable_gflops);
		rc = rfl_field_set(&p->bound,
				   rfl_bound_names[rfl_roof_bound(&roof, p->ai, NAN, NAN)], err);
		if (rc == RFL_OK)
			rfl_verdict_write(&facts, &verdict);
	} else {
		rfl_buf_printf(&verdict, "not comparable with the roof: %s",
			       flops_why[0]       ? flops_why
			       : bytes_why[0]     ? bytes_why
			       : isnan(p->step_s) ? "its time was not recorded"
						  : "no bytes were moved");
	}
	if (lacks)
		rfl_buf_printf(
			&verdict,
			"; most of its FLOPs are under %s, which has no ceiling in the peaks "
			"file, so %s is used",
			lacks, key);
	if (!isnan(p->step_s))
		rfl_buf_printf(&verdict, "; time as profiled by %s%s",
			       source ? source : "another program",
			       rfl_text_same(source, "ncu") ? ", at ncu's clock" : "");
	if (rc == RFL_OK && (rc = rfl_buf_check(&verdict, "verdict", err)) == RFL_OK)
		rc = rfl_field_set(&p->verdict, rfl_buf_str(&verdict), err);
	rfl_buf_fini(&verdict);
	return rc;
}

static enum rfl_rc fill_part(const struct rfl_config *c, const struct rfl_part *part, double all_s,
			     struct rfl_point *p, struct rfl_err *err)
{
	const struct rfl_parts *parts = &c->parts;
	const double steps = parts->timed->steps > 0 ? (double)parts->timed->steps : 1;
	const struct rfl_amount *amount = part->sum.amount, *bytes = &amount[RFL_QUANTITY_DRAM];
	const char *source = parts->timed->capture->source;
	const struct rfl_amount *flops = &amount[RFL_QUANTITY_FLOPS];
	struct rfl_range r = { .kind = RFL_RANGE_KERNEL,
			       .name = part->name,
			       .launches = part->sum.launches };
	char flops_why[560], bytes_why[560] = "", times[100];
	enum rfl_validity worst = RFL_VALID_UNAVAILABLE;
	struct rfl_buf note;
	enum rfl_rc rc;

	memcpy(r.amount, amount, sizeof(r.amount));
	p->launches = part->sum.launches;
	p->step_s = time_of(part) / steps;
	p->time_share = time_of(part) / all_s;
	p->flops_counters = p->flops_per_step =
		rfl_counters__flops(c, parts->counted, &r, flops_why, sizeof(flops_why)) / steps;
	p->bytes_counters = p->bytes_per_step = bytes->value / steps;
	if (isnan(bytes->value))
		(void)snprintf(bytes_why, sizeof(bytes_why), "DRAM bytes unavailable%s%s",
			       bytes->reason ? ": " : "", bytes->reason ? bytes->reason : "");
	else if (flops->launches != bytes->launches)
		(void)snprintf(bytes_why, sizeof(bytes_why),
			       "FLOPs and bytes are from different launches");
	if (p->flops_per_step > 0 && !bytes_why[0] && bytes->value > 0)
		p->ai = p->ai_counters = flops->value / bytes->value;
	p->counters_steps = parts->timed->steps > 0 ? parts->timed->steps : RFL_UNKNOWN;
	p->coverage = isnan(p->flops_per_step) ? 0 : rfl_range_share(&r, RFL_QUANTITY_FLOPS);
	if (!isnan(p->flops_per_step))
		worst = flops->validity;
	if (!isnan(bytes->value) && (worst == RFL_VALID_UNAVAILABLE || bytes->validity > worst))
		worst = bytes->validity;

	rfl_buf_init(&note, 1 << 16);
	put_note(parts, &note);
	if (flops_why[0])
		rfl_buf_printf(&note, "; %s", flops_why);
	if (bytes_why[0])
		rfl_buf_printf(&note, "; %s", bytes_why);
	for (int q = 0; q < 2; q++)
		if (!isnan((q ? bytes : flops)->value) && (q ? bytes : flops)->reason)
			rfl_buf_printf(&note, "; %s: %s", q ? "dram_bytes" : "flops.total",
				       (q ? bytes : flops)->reason);
	if (!flops_why[0]) {
		p->ai_l2 = cache_ai(part, RFL_QUANTITY_L2, RFL_QUANTITY_L2_RETURN, &note);
		p->ai_l1 = cache_ai(part, RFL_QUANTITY_L1, RFL_QUANTITY_L1_RETURN, &note);
	}
	(void)snprintf(times, sizeof(times), "kernel times of %s",
		       source ? source : "the profiler");
	if ((rc = rfl_buf_check(&note, "counters", err)) ||
	    (rc = rfl_field_set(&p->part, part->name, err)) ||
	    (rc = rfl_field_set(&p->part_kind, "kernel", err)) ||
	    (!isnan(p->step_s) && (rc = rfl_field_set(&p->step_source, times, err))) ||
	    (!flops_why[0] && (rc = rfl_field_set(&p->flops_source, "counters", err))) ||
	    (!isnan(bytes->value) && (rc = rfl_field_set(&p->bytes_source, "counters", err))) ||
	    (rc = rfl_field_set(&p->counters_source, parts->counted->capture->source, err)) ||
	    (rc = rfl_field_set(&p->counters_validity, rfl_validity_names[worst], err)) ||
	    (rc = rfl_field_set(&p->counters_note, rfl_buf_str(&note), err)))
		goto done;
	rc = fill_model(c, part, p, flops_why, bytes_why, err);
done:
	rfl_buf_fini(&note);
	return rc;
}

enum rfl_rc rfl_parts__points(const struct rfl_configs *cs, const struct rfl_points *steps,
			      struct rfl_points **ret, struct rfl_err *err)
{
	struct rfl_points *pts = NULL;
	size_t n = 0, step = 0, k = 0;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < cs->n; i++)
		n += cs->configs[i].missing ? 0 : cs->configs[i].parts.n;
	pts = rfl_points_new(n);
	if (!pts)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < cs->n && rc == RFL_OK; i++) {
		const struct rfl_config *c = &cs->configs[i];
		double all_s = 0;

		if (c->missing)
			continue;
		for (size_t j = 0; j < c->parts.n; j++)
			all_s += isnan(time_of(&c->parts.parts[j])) ? 0
								    : time_of(&c->parts.parts[j]);
		for (size_t j = 0; j < c->parts.n && rc == RFL_OK; j++, k++) {
			rc = copy_run(&steps->points[step], &pts->points[k], err);
			if (rc == RFL_OK)
				rc = fill_part(c, &c->parts.parts[j], all_s, &pts->points[k], err);
		}
		step++;
	}
	if (rc == RFL_OK)
		*ret = pts;
	else
		rfl_points_free(pts);
	return rc;
}
