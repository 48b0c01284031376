/*
 * counters_measure.c - combines the captures of a configuration into one measurement per step, the
 * median of the repeats. Captures that count different quantities complement each other. Two
 * captures that count the same quantity but are not repeats are an error. Also finds the share of
 * FLOPs in the precision of the run, their coverage of the time, and the time in kernels without
 * FLOPs.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stats.h"
#include "base/text.h"
#include "profile/capture.h"

static const struct own {
	const char *backend, *precision;
	double least; /* minimum share of all FLOPs; with less, the run used another precision */
	size_t n;
	enum rfl_quantity parts[3];
} own_parts[] = {
#define Q(part) RFL_QUANTITY_FLOPS_##part
	{ "cuda", "fp32", 0.9, 2, { Q(FP32), Q(TENSOR_FP32) } },
	{ "cuda", "fp64", 0.9, 2, { Q(FP64), Q(TENSOR_FP64) } },
	{ "cuda", "tf32", 0.5, 1, { Q(TENSOR_TF32) } },
	{ "cuda", "amp", 0.5, 1, { Q(TENSOR_FP16) } },
	{ "cuda", "fp16", 0.5, 1, { Q(TENSOR_FP16) } },
	{ "cuda", "bf16", 0.5, 1, { Q(TENSOR_BF16) } },
	{ "cpu", "fp32", 0.9, 2, { Q(FP32), Q(MIXED) } },
	{ "cpu", "fp64", 0.9, 2, { Q(FP64), Q(MIXED) } },
	{ "cpu", "amp", 0.5, 3, { Q(TENSOR_BF16), Q(FP16), Q(MIXED) } },
	{ "cpu", "bf16", 0.5, 3, { Q(TENSOR_BF16), Q(FP16), Q(MIXED) } },
	{ "cpu", "fp16", 0.5, 3, { Q(TENSOR_FP16), Q(FP16), Q(MIXED) } },
#undef Q
};

static const struct own *find_own(const struct rfl_config *c)
{
	const struct rfl_ledger_row *row = c->row;

	for (size_t i = 0; i < RFL_ARRAY_LEN(own_parts); i++)
		if (rfl_text_same(own_parts[i].backend, row->backend) &&
		    rfl_text_same(own_parts[i].precision, row->precision))
			return &own_parts[i];
	return NULL;
}

/* Find the share of FLOPs in the precision of the run, and the largest other part. */
static void find_precision(const struct rfl_config *config, struct rfl_measured *m)
{
	const struct own *own = find_own(config);
	double all = 0, mine = 0, most = 0;

	if (!own || !config->nruns) /* without a ledger, most FLOPs have the precision */
		return;
	for (enum rfl_quantity q = 0; q < RFL_QUANTITY_COUNT; q++) {
		bool is_own = false;

		if (!rfl_quantity_is_flops(q) || isnan(m->part[q]))
			continue;
		for (size_t i = 0; i < own->n; i++)
			is_own = is_own || own->parts[i] == q;
		all += m->part[q];
		if (is_own) {
			mine += m->part[q];
		} else if (m->part[q] > most) {
			most = m->part[q];
			m->foreign = q;
		}
	}
	if (!(all > 0))
		return;
	m->expected_share = mine / all;
	if (m->expected_share >= own->least)
		m->foreign = RFL_QUANTITY_COUNT;
}

/* Return the first known part of the FLOPs in the precision of the run, else flops.total. */
static enum rfl_quantity own_part(const struct rfl_config *config, const struct rfl_joined *counted)
{
	const struct own *own = find_own(config);

	for (size_t i = 0; own && i < own->n; i++)
		if (!isnan(counted->capture->total[own->parts[i]].value))
			return own->parts[i];
	return RFL_QUANTITY_FLOPS;
}

/* Return true if a capture has a quantity. FLOPs must include those in the precision of the run. */
static bool knows(const struct rfl_config *config, const struct rfl_joined *counted,
		  enum rfl_quantity q)
{
	const struct rfl_amount *total = counted->capture->total;
	const struct own *own = find_own(config);

	if (counted->left_out || isnan(total[q].value))
		return false;
	if (!own || q != RFL_QUANTITY_FLOPS || config->is_program ||
	    own_part(config, counted) != RFL_QUANTITY_FLOPS)
		return true;
	/* an fp32 run may have used TF32 */
	return own->parts[0] == RFL_QUANTITY_FLOPS_FP32 &&
	       total[RFL_QUANTITY_FLOPS_TENSOR_TF32].value > 0;
}

/* Return true if all ranges in the total have a time. */
static bool all_timed(const struct rfl_capture *c)
{
	for (size_t i = 0; i < c->nranges; i++)
		if (c->ranges[i].kind == c->total_kind &&
		    isnan(c->ranges[i].amount[RFL_QUANTITY_TIME].value))
			return false;
	return true;
}

static bool is_product(const struct rfl_range *r)
{
	return rfl_kernel_classify(r->name ? r->name : "") == RFL_KERNEL_MATRIX;
}

/* Return the part of the FLOPs without which those of a range are incomplete: a sum of FLOPs is
 * known if any part is known, but it is complete only if FP32 is known or, for GEMMs and
 * ranges other than kernels, the precision of the run. */
static enum rfl_quantity needed_part(const struct rfl_config *config,
				     const struct rfl_joined *counted, const struct rfl_range *r)
{
	const bool has_fp32 = !isnan(counted->capture->total[RFL_QUANTITY_FLOPS_FP32].value);

	return r->kind == RFL_RANGE_KERNEL && has_fp32 && !is_product(r)
		       ? RFL_QUANTITY_FLOPS_FP32
		       : own_part(config, counted);
}

/* The share of the time in which a quantity was counted, or of the launches if times are unknown.
 * NaN: no ranges. */
static double coverage_of(const struct rfl_config *config, const struct rfl_joined *counted,
			  enum rfl_quantity q)
{
	const struct rfl_capture *c = counted->capture;
	const bool timed = all_timed(c);
	double all = 0, had = 0;

	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];
		double weight = timed ? r->amount[RFL_QUANTITY_TIME].value : (double)r->launches;
		enum rfl_quantity needed = q;

		if (r->kind != c->total_kind)
			continue;
		if (q == RFL_QUANTITY_FLOPS)
			needed = needed_part(config, counted, r);
		all += weight;
		had += weight * rfl_range_share(r, needed);
	}
	return all > 0 ? had / all : NAN;
}

struct idle_kernel {
	const char *name;
	double time_s;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct idle_kernel *)a)->name, ((const struct idle_kernel *)b)->name);
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct idle_kernel *)a)->time_s;
	double y = ((const struct idle_kernel *)b)->time_s;

	return x != y ? (x < y) - (x > y) : by_name(a, b);
}

/* @param most,length  limits for the number and length of names */
static const char *write_names(struct rfl_merge_job *job, const struct idle_kernel *list, size_t n,
			       double all, size_t most, int length)
{
	const size_t shown = n < most ? n : most;
	struct rfl_buf text = { .len = 0 };

	for (size_t i = 0; i < shown; i++)
		rfl_buf_printf(&text, "%s%.*s%s %.2g %%", i ? "; " : "", length, list[i].name,
			       strlen(list[i].name) > (size_t)length ? "..." : "",
			       100 * list[i].time_s / all);
	if (n > shown)
		rfl_buf_printf(&text, "; %zu more", n - shown);
	return rfl_merge__keep(job, &text);
}

/* Return true if 0 was counted for all likely precisions. The sum alone is not sufficient: it is
 * also 0 if the only precision used by the kernel was not counted. */
static bool has_no_flop(const struct rfl_range *r, bool half)
{
	const enum rfl_quantity needed[] = { RFL_QUANTITY_FLOPS, RFL_QUANTITY_FLOPS_FP32,
					     half ? RFL_QUANTITY_FLOPS_FP16
						  : RFL_QUANTITY_FLOPS_FP32 };

	if (r->amount[RFL_QUANTITY_FLOPS].value != 0)
		return false;
	for (size_t i = 0; i < RFL_ARRAY_LEN(needed); i++)
		if (rfl_range_share(r, needed[i]) < 1)
			return false;
	/* a GEMM may have used Tensor Cores */
	return !is_product(r) || (!isnan(r->amount[RFL_QUANTITY_FLOPS_TENSOR_FP16].value) &&
				  !isnan(r->amount[RFL_QUANTITY_FLOPS_TENSOR_BF16].value) &&
				  !isnan(r->amount[RFL_QUANTITY_FLOPS_TENSOR_TF32].value));
}

/* Return true if a run computes in 16 bits, so that its FLOPs include flops.fp16. */
static bool is_half(const struct rfl_config *config)
{
	const char *precision = config->row->precision;

	return !rfl_text_same(precision, "fp32") && !rfl_text_same(precision, "tf32") &&
	       !rfl_text_same(precision, "fp64");
}

double rfl_counters__flops(struct rfl_merge_job *job, const struct rfl_config *config,
			   const struct rfl_range *r, const char **why)
{
	const struct rfl_amount *flops = &r->amount[RFL_QUANTITY_FLOPS];
	const enum rfl_quantity needed = needed_part(config, config->parts.counted, r);
	const struct own *own = find_own(config);
	/* if nothing was counted, give the reason for the precision of the run */
	const enum rfl_quantity part = needed == RFL_QUANTITY_FLOPS && own ? own->parts[0] : needed;
	const char *reason = r->amount[part].reason ? r->amount[part].reason : flops->reason;

	*why = "";
	/* from shapes, which are known for all types of operands or for none */
	if (strcmp(config->parts.counted->capture->source, "torch") == 0 && !isnan(flops->value))
		return flops->value;
	/* 0 in the precision of the run is not enough for a kernel */
	if (flops->value == 0 && r->kind == RFL_RANGE_KERNEL
		    ? has_no_flop(r, is_half(config))
		    : rfl_range_share(r, needed) > 0 && !isnan(flops->value))
		return flops->value;
	if (flops->value == 0 && rfl_range_share(r, needed) > 0)
		*why = "0 FLOPs in the counted precisions, but others were not counted";
	else
		*why = rfl_merge__text(job, "%s unavailable%s%s", rfl_quantity_info(part)->name,
				       reason ? ": " : "", reason ? reason : "");
	return NAN;
}

/* Set m->zero_*: the share of kernel time in kernels without FLOPs, and their names. They are
 * unchanged if the share is unknown. */
static void find_zero_flop(struct rfl_merge_job *job, const struct rfl_config *config,
			   const struct rfl_joined *counted, struct rfl_measured *m)
{
	const struct rfl_capture *c = counted->capture;
	const bool half = is_half(config);
	struct idle_kernel *list;
	double all = 0, idle = 0;
	size_t n = 0, names = 0;

	if (c->total_kind != RFL_RANGE_KERNEL || !all_timed(c) ||
	    isnan(c->total[RFL_QUANTITY_FLOPS_FP32].value))
		return;
	list = rfl_arena_array(job->arena, c->nranges, sizeof(*list));
	for (size_t i = 0; i < c->nranges; i++) {
		const struct rfl_range *r = &c->ranges[i];
		const double time_s = r->amount[RFL_QUANTITY_TIME].value;

		if (r->kind != RFL_RANGE_KERNEL)
			continue;
		all += time_s;
		if (!has_no_flop(r, half))
			continue;
		idle += time_s;
		list[n++] =
			(struct idle_kernel){ .name = r->name ? r->name : "?", .time_s = time_s };
	}
	/* A kernel has one range for each grid: merge them. */
	qsort(list, n, sizeof(*list), by_name);
	for (size_t i = 0; i < n; i++)
		if (names && strcmp(list[i].name, list[names - 1].name) == 0)
			list[names - 1].time_s += list[i].time_s;
		else
			list[names++] = list[i];
	qsort(list, names, sizeof(*list), by_time);
	if (all > 0) {
		m->zero_share = idle / all;
		m->zero_kernels = write_names(job, list, names, all, 100, 160);
		m->zero_longest = write_names(job, list, names, all, 3, 60);
	}
}

static bool has_id(const struct rfl_joined *c)
{
	return c->capture->run_id && c->capture->run_id[0];
}

/* Return true if two captures are repeats: different runs measured with the same tool. */
static bool repeats(const struct rfl_joined *a, const struct rfl_joined *b)
{
	const struct rfl_capture *x = a->capture, *y = b->capture;

	if (!rfl_text_same(x->source, y->source))
		return false;
	if (has_id(a) && has_id(b))
		return strcmp(x->run_id, y->run_id) != 0;
	return a->number >= 0 && b->number >= 0 && a->number != b->number;
}

static const char *quantity_name(enum rfl_quantity q)
{
	return q == RFL_QUANTITY_FLOPS ? "FLOPs" : "DRAM bytes";
}

/* Fail if two captures count the same quantity but are not repeats. With keep_going, leave one out:
 * the second, unless only its number of steps is known. */
static enum rfl_rc leave_out_clashes(struct rfl_merge_job *job, struct rfl_config *config,
				     enum rfl_quantity q, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = config->row;

	for (size_t i = 1; i < config->ncounted; i++) {
		struct rfl_joined *c = &config->counted[i], *other = config->counted, *last;
		const char *name = rfl_counters__name(c->capture), *others, *why;

		if (!knows(config, c, q))
			continue;
		while (other < c && (!knows(config, other, q) || repeats(other, c)))
			other++;
		if (other == c)
			continue;
		others = rfl_counters__name(other->capture);
		if (rfl_text_same(others, name))
			why = rfl_merge__text(job,
					      "counters: %s exists twice: as a file and in a "
					      "counters.csv, or twice in that file; remove one of "
					      "them",
					      name);
		else
			why = rfl_merge__text(
				job,
				"counters: %s and %s both have the %s of %s %s %s bs%lld %s, and "
				"are not repeats (..._run1, ..._run2 from one profiler); remove "
				"one of them",
				others, name, quantity_name(q), config->env, row->model,
				row->precision, (long long)row->batch, row->mode);
		if (!job->in->counters.keep_going)
			return rfl_fail(err, RFL_EFORMAT, 0, "%s", why);
		last = other->steps < 1 && c->steps > 0 ? other : c;
		last->left_out = true;
		rfl_buf_printf(&job->report->notes, "%s; %s is skipped\n", why,
			       rfl_counters__name(last->capture));
	}
	return RFL_OK;
}

/* Compute median and range per step over the captures that have a quantity.
 * @param first  set to the first of them
 * @return their number */
static size_t measure(struct rfl_merge_job *job, const struct rfl_config *config,
		      enum rfl_quantity q, struct rfl_measure *ret, const struct rfl_joined **first)
{
	double *values = rfl_arena_array(job->arena, config->ncounted, sizeof(*values));
	struct rfl_stats stats;
	size_t n = 0;

	*first = NULL;
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_joined *c = &config->counted[i];
		const struct rfl_amount *a = &c->capture->total[q];
		double coverage;

		if (!knows(config, c, q) || c->steps < 1)
			continue;
		coverage = coverage_of(config, c, q);
		values[n++] = a->value / (double)c->steps;
		ret->given = ret->given || rfl_amount_is_given(a);
		if (!*first || a->validity > ret->validity)
			ret->validity = a->validity;
		if (!*first || coverage < ret->coverage)
			ret->coverage = coverage;
		*first = *first ? *first : c;
	}
	stats = rfl_stats_of(values, n);
	ret->value = stats.median;
	ret->lo = stats.min;
	ret->hi = stats.max;
	return n;
}

enum rfl_quantity rfl_counters__cache_as(const struct rfl_amount *amount, enum rfl_quantity usual)
{
	const enum rfl_quantity other =
		usual == RFL_QUANTITY_L2 ? RFL_QUANTITY_L2_RETURN : RFL_QUANTITY_L1_RETURN;

	return isnan(amount[usual].value) && !isnan(amount[other].value) ? other : usual;
}

/* Measure the bytes of a cache, as defined by the first capture that has any. */
static void measure_cache(struct rfl_merge_job *job, const struct rfl_config *config,
			  enum rfl_quantity usual, struct rfl_measure *ret, enum rfl_quantity *as)
{
	const struct rfl_joined *first;

	*as = usual;
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_amount *total = config->counted[i].capture->total;

		*as = rfl_counters__cache_as(total, usual);
		if (!config->counted[i].left_out && !isnan(total[*as].value))
			break;
	}
	(void)measure(job, config, *as, ret, &first);
}

#define NOT_COUNTED "not counted: "

/* perf output does not name the CPU, so write the events of the CPU that was used,
 * taken from its formulas. */
static const char *events_of(struct rfl_merge_job *job, const char *cpu, enum rfl_quantity q)
{
	static const struct {
		const char *word, *family, *on;
	} processors[] = {
		{ "AMD", "cpu-amd", " (Zen 2 to 4)" },
		{ "AMD", "cpu-amd-zen5", " (Zen 5 and 6)" },
		{ "Intel", "cpu-intel", "" },
		{ "Neoverse-V1", "cpu-neoverse-v1", "" },
		{ "Neoverse-N2", "cpu-neoverse-v2", "" },
		{ "Neoverse-V2", "cpu-neoverse-v2", "" },
	};
	const bool bytes = q == RFL_QUANTITY_DRAM; /* all AMD CPUs use the same events */
	struct rfl_formulas *f = NULL;
	struct rfl_buf out = { .len = 0 };
	RFL_AUTO(buf) text = { .len = 0 };

	for (size_t i = 0; i < RFL_ARRAY_LEN(processors); i++) {
		if (!cpu || !strstr(cpu, processors[i].word) || (bytes && out.len > 0) ||
		    rfl_formulas_new(processors[i].family, &f, NULL) != RFL_OK)
			continue;
		rfl_buf_reset(&text);
		rfl_formula_reason(f, f->quantities[q].nways > 0 ? q : RFL_QUANTITY_FLOPS_MIXED,
				   NULL, NULL, &text);
		rfl_buf_printf(&out, "%s%s%s", out.len ? ", or " : "",
			       rfl_buf_str(&text) + (out.len ? strlen(NOT_COUNTED) : 0),
			       bytes ? "" : processors[i].on);
		rfl_formulas_free(f);
	}
	if (out.len == 0)
		rfl_buf_puts(&out, "not counted; see docs/reference/events.md for the events of "
				   "each CPU for 'perf stat -e'");
	return rfl_merge__keep(job, &out);
}

/* The reason stored in a capture, preferably for FLOPs in the precision of the run. */
static const char *say_unavailable(struct rfl_merge_job *job, const struct rfl_config *config,
				   const struct rfl_capture *c, enum rfl_quantity q)
{
	const struct own *own = q == RFL_QUANTITY_FLOPS ? find_own(config) : NULL;
	const enum rfl_quantity part = own ? own->parts[0] : q;
	const struct rfl_amount *all = &c->total[q], *a = &c->total[part];
	const char *reason = isnan(a->value) && a->reason ? a->reason : all->reason;
	const char *colon = reason ? ": " : "";

	if (reason && rfl_text_same(c->family, "cpu") &&
	    strncmp(reason, NOT_COUNTED, strlen(NOT_COUNTED)) == 0)
		reason = events_of(job, config->row->device_name, part);
	if (isnan(all->value))
		return rfl_merge__text(job, "%s unavailable%s%s", quantity_name(q), colon,
				       reason ? reason : "");
	return rfl_merge__text(job, "%s has no %s, the FLOPs in the precision of the run (%s)%s%s",
			       rfl_counters__name(c), rfl_quantity_info(part)->name,
			       config->row->precision, colon, reason ? reason : "");
}

/* Report why a quantity is unknown: the number of steps is unknown, or no capture has the
 * quantity. */
static void say_unknown(struct rfl_merge_job *job, const struct rfl_config *config,
			enum rfl_quantity q, struct rfl_measured *m, struct rfl_measure *ret)
{
	const struct rfl_capture *first = config->counted[0].capture;

	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_joined *c = &config->counted[i];

		if (!knows(config, c, q))
			continue;
		ret->why = rfl_merge__text(
			job, "the number of steps of %s is unknown: %s; use --counter-steps %s=N",
			rfl_counters__name(c->capture), c->unknown,
			c->capture->label ? c->capture->label : "LABEL");
		/* note it once for FLOPs and bytes of one capture */
		if (!m->no_steps)
			rfl_buf_printf(&job->report->notes, "counters: %s\n", ret->why);
		m->no_steps = true;
		return;
	}
	ret->why = say_unavailable(job, config, first, q);
	/* counted live: the reason contains the fix */
	m->refused = m->refused || first->nrefusals > 0 || !first->path;
}

static bool knows_any(const struct rfl_config *config, const struct rfl_joined *c)
{
	return knows(config, c, RFL_QUANTITY_FLOPS) || knows(config, c, RFL_QUANTITY_DRAM);
}

/* The note names at most this many captures. */
#define CAPTURES_NAMED 50

/* List the sources, or those tried if nothing was counted. For each capture, note the origin of its
 * number of steps: "logs/ncu/x.csv: 30 steps as in metrics.csv:3". */
static void name_captures(const struct rfl_merge_inputs *in, const struct rfl_config *config,
			  struct rfl_measured *m, struct rfl_buf *note)
{
	const char *ledger = in->runs ? in->runs->files[0].path : "";
	bool any = false;

	for (size_t i = 0; i < config->ncounted; i++)
		any = any || knows_any(config, &config->counted[i]);
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_joined *c = &config->counted[i];
		const char *source = c->capture->source;
		const size_t len = strlen(m->source);

		if (source && len + 16 < sizeof(m->source) && !strstr(m->source, source) &&
		    (!any || knows_any(config, c)))
			(void)snprintf(m->source + len, sizeof(m->source) - len, "%s%.12s",
				       len ? " + " : "", source);
		if (i == CAPTURES_NAMED)
			rfl_buf_printf(note, "; %zu more", config->ncounted - i);
		if (i >= CAPTURES_NAMED)
			continue;
		rfl_buf_printf(note, "%s%s", i ? "; " : "", rfl_counters__name(c->capture));
		if (c->left_out)
			rfl_buf_puts(note, ": skipped");
		if (c->steps < 1 || c->from == RFL_STEPS_CAPTURE)
			continue;
		rfl_buf_printf(note, ": %lld step%s", (long long)c->steps,
			       c->steps == 1 ? "" : "s");
		if (c->from == RFL_STEPS_LEDGER)
			rfl_buf_printf(note, " as in %s:%zu", ledger, c->home->line);
		else if (c->from == RFL_STEPS_PROCESS)
			rfl_buf_printf(note,
				       ", including warm-up, as in %s:%zu; set-up is also included",
				       ledger, c->home->line);
		else if (c->from != RFL_STEPS_OWN)
			rfl_buf_puts(note, " as given by --counter-steps");
	}
}

/* Add the IPC of a CPU, which does not depend on steps, and the notes of the captures. */
static void note_remarks(const struct rfl_config *config, struct rfl_buf *note)
{
	for (size_t i = 0; i < config->ncounted && i < CAPTURES_NAMED; i++) {
		double ipc = rfl_capture_ipc(config->counted[i].capture);

		if (ipc > 0)
			rfl_buf_printf(note, "; IPC %.3g", ipc);
	}
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_capture *c = config->counted[i].capture;

		for (size_t n = 0; n < c->nnotes; n++)
			if (!strstr(rfl_buf_str(note),
				    c->notes[n])) /* repeats have the same notes */
				rfl_buf_printf(note, "; %s", c->notes[n]);
		if (c->rows_left_out > 0)
			rfl_buf_printf(note, "; %lld rows could not be read and were skipped",
				       (long long)c->rows_left_out);
	}
}

/* Return true if the number of steps of a capture is certain. */
static bool is_sure(const struct rfl_joined *c)
{
	return !c || c->from == RFL_STEPS_OWN || c->from == RFL_STEPS_LABEL;
}

#define UNKNOWN                                                                        \
	{                                                                              \
		.value = NAN, .lo = NAN, .hi = NAN, .validity = RFL_VALID_UNAVAILABLE, \
		.coverage = NAN, .why = ""                                             \
	}
const struct rfl_measured rfl_counters__none = {
	.flops = UNKNOWN,
	.bytes = UNKNOWN,
	.l2 = UNKNOWN,
	.l1 = UNKNOWN,
	.ai = NAN,
	.steps = -1,
	.zero_share = NAN,
	.expected_share = NAN,
	.foreign = RFL_QUANTITY_COUNT,
	.zero_kernels = "",
	.zero_longest = "",
	.doubt = "",
	.causes = "",
	.note = "",
};

/* Compare the captures of FLOPs and bytes, which may be the same capture, with the count. */
static void compare(struct rfl_merge_job *job, const struct rfl_config *config,
		    const struct rfl_joined *flops, const struct rfl_joined *bytes,
		    struct rfl_measured *m, struct rfl_buf *note)
{
	const struct rfl_joined *first = flops ? flops : bytes;

	if (!first)
		return;
	m->steps = first->steps;
	m->sure = is_sure(flops) && is_sure(bytes);
	m->process = (flops && rfl_counters__whole_process(flops)) ||
		     (bytes && rfl_counters__whole_process(bytes));
	rfl_counters__doubt(job, first, &config->work, m->flops.value,
			    first == bytes ? m->bytes.value : NAN, m, note);
	if (bytes && bytes != first && !m->doubtful) {
		first = bytes;
		rfl_counters__doubt(job, bytes, &config->work, NAN, m->bytes.value, m, note);
	}
	if (m->doubtful)
		rfl_buf_printf(&job->report->notes,
			       "counters: %s disagrees with the count: %s; likely causes:%s\n",
			       rfl_counters__name(first->capture), m->doubt, m->causes);
	if (flops && bytes) {
		/* The intensity is known only if both are known for all kernels. */
		const bool whole = flops->capture == bytes->capture
					   ? !isnan(rfl_amounts_ai(flops->capture->total))
					   : m->flops.validity != RFL_VALID_PARTIAL &&
						     m->bytes.validity != RFL_VALID_PARTIAL;

		if (whole)
			m->ai = m->flops.value / m->bytes.value;
		else if (m->bytes.value > 0)
			rfl_buf_puts(note, "; " RFL_COUNTERS_APART
					   ", so the arithmetic intensity is unknown");
	}
}

enum rfl_rc rfl_counters__measure(struct rfl_merge_job *job, struct rfl_config *config,
				  struct rfl_err *err)
{
	const struct rfl_joined *flops = NULL, *bytes = NULL;
	const struct rfl_config *alike = config->alike;
	struct rfl_buf note = { .len = 0 };
	struct rfl_measured *m;
	size_t nflops, nbytes;
	enum rfl_rc rc;

	if (!config->ncounted)
		return RFL_OK;
	if (alike && alike->measured->any && alike->work.flops == config->work.flops &&
	    memcmp(alike->work.bytes, config->work.bytes, sizeof(config->work.bytes)) == 0) {
		config->measured = alike->measured;
		return RFL_OK;
	}
	m = rfl_arena_array(job->arena, 1, sizeof(*m));
	*m = rfl_counters__none;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		m->part[q] = NAN;
	m->any = true;
	config->measured = m;
	for (size_t i = 0; i < config->ncounted; i++)
		rfl_counters__steps(job, &config->counted[i]);
	if ((rc = leave_out_clashes(job, config, RFL_QUANTITY_FLOPS, err)) ||
	    (rc = leave_out_clashes(job, config, RFL_QUANTITY_DRAM, err)))
		return rc;
	nflops = measure(job, config, RFL_QUANTITY_FLOPS, &m->flops, &flops);
	nbytes = measure(job, config, RFL_QUANTITY_DRAM, &m->bytes, &bytes);
	measure_cache(job, config, RFL_QUANTITY_L2, &m->l2, &m->l2_as);
	measure_cache(job, config, RFL_QUANTITY_L1, &m->l1, &m->l1_as);
	name_captures(job->in, config, m, &note);
	m->repeats = (int64_t)(nflops > nbytes ? nflops : nbytes);
	/* The shares are similar in all repeats: use the first. */
	for (enum rfl_quantity q = 0; flops && q < RFL_QUANTITY_COUNT; q++)
		if (rfl_quantity_is_flops(q))
			m->part[q] = flops->capture->total[q].value / (double)flops->steps;
	if (flops) {
		find_precision(config, m);
		find_zero_flop(job, config, flops, m);
	} else {
		say_unknown(job, config, RFL_QUANTITY_FLOPS, m, &m->flops);
	}
	if (!bytes)
		say_unknown(job, config, RFL_QUANTITY_DRAM, m, &m->bytes);
	compare(job, config, flops, bytes, m, &note);
	note_remarks(config, &note);
	m->note = rfl_merge__keep(job, &note);
	return RFL_OK;
}
