/*
 * counters_steps.c - how many training steps a capture covers, and whether that can be: totals are
 * per step only after this.
 */
#include "roofline/parts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

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
				"--counter-steps: '%.100s' is not a number of steps from 1, with "
				"LABEL= in front or without",
				number);
	ret->steps = steps;
	return RFL_OK;
}

bool rfl_counters__whole_process(const struct rfl_joined *counted)
{
	const struct rfl_capture *c = counted->capture;

	/* a file that covers a process has its set-up, whatever says the steps */
	return c->total_kind == RFL_RANGE_PROCESS && (c->path || c->steps <= 0);
}

/* What the user says of this label, and of all; 0: nothing. */
static int64_t given(const struct rfl_merge_inputs *in, const char *label)
{
	for (size_t i = 0; i < in->counters.nsteps; i++) {
		const struct rfl_counter_steps *s = &in->counters.steps[i];

		if (label ? s->label && strcmp(s->label, label) == 0 : !s->label)
			return s->steps;
	}
	return 0;
}

/* The largest number of which all launches are multiples; 0: no kernels. */
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

/* The steps of the rows that have its label, when they agree. */
static void from_ledger(const struct rfl_merge_inputs *in, struct rfl_joined *counted)
{
	const bool process = rfl_counters__whole_process(counted);
	const struct rfl_run *first = NULL;
	int64_t steps = -1;

	for (size_t i = 0; i < in->runs->n; i++) {
		const struct rfl_run *run = &in->runs->runs[i];
		const struct rfl_ledger_row *row = run->like;
		int64_t n = row->iters;

		/* of the window: with its warm-up when the whole process was counted */
		if (!rfl_counters__bears(in->runs, run, counted->capture) ||
		    !rfl_text_same(row->status, "ok") || n < 1 ||
		    (process && (row->warmup < 0 || !rfl_num_add(row->iters, row->warmup, &n))))
			continue;
		if (first && n != steps) {
			(void)snprintf(counted->unknown, sizeof(counted->unknown),
				       "rows %zu and %zu of the ledger have its label, with %lld "
				       "and %lld steps",
				       first->line, run->line, (long long)steps, (long long)n);
			return;
		}
		first = run;
		steps = n;
	}
	if (!first) {
		(void)snprintf(counted->unknown, sizeof(counted->unknown), "%s",
			       counted->home ? "the row with its label does not say how "
					       "many steps it ran"
					     : "no row of the ledger has its label");
		return;
	}
	counted->home = first;
	counted->steps = steps;
	counted->from = process ? RFL_STEPS_PROCESS : RFL_STEPS_LEDGER;
}

void rfl_counters__steps(const struct rfl_merge_inputs *in, struct rfl_joined *counted)
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
	from_ledger(in, counted);
	if (counted->steps > 0)
		return;
	all = given(in, NULL);
	if (all > 0) {
		counted->steps = all;
		counted->from = RFL_STEPS_GIVEN;
		return;
	}
	/* the launches may suggest the number that the user is asked for */
	common = common_launches(c);
	len = strlen(counted->unknown);
	if (common > 1)
		(void)snprintf(counted->unknown + len, size - len,
			       "; every kernel ran a multiple of %lld times", (long long)common);
}

/* How many kernels were launched a number of times that is not a multiple of `steps`. */
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

/* --- what does not fit --- */

/* Ranked lines: "(1) ...; (2) ...". */
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

/* Was the warm-up profiled too? Then every kernel ran in those steps as well. @return steps of the
 * window and of the warm-up together; 0: it was not */
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
	/* an even number of launches per step fits 20 steps as well as 10: then the FLOPs decide */
	if (without.off == 0 && !(fabs(ratio * (double)counted->steps / (double)all - 1) < 0.1))
		return 0;
	return all;
}

/* With the number that would fit, by the FLOPs or else by the launches. */
static void cause_steps(struct causes *c, const struct rfl_joined *counted, double ratio)
{
	const char *label = counted->capture->label ? counted->capture->label : "LABEL";
	int64_t common = common_launches(counted->capture);
	char fit[64] = "";

	if (ratio * (double)counted->steps >= 1)
		(void)snprintf(fit, sizeof(fit), " (%.0f would fit)",
			       ratio * (double)counted->steps);
	else if (common > 1)
		(void)snprintf(fit, sizeof(fit), " (every kernel ran a multiple of %lld times)",
			       (long long)common);
	cause(c, "the run that was profiled had another number of steps%s: --counter-steps %s=N",
	      fit, label);
}

static void write_causes(const struct rfl_joined *counted, double ratio,
			 const struct launch_check *off, struct rfl_measured *m)
{
	static const char uncounted_text[] =
		"FLOPs of another precision were not counted (matrix units in TF32 or 16 bits): "
		"'roofline counters list --ncu' has them";
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
		cause(&c, "rows of the file could not be read and were left out");
	if (all)
		cause(&c,
		      "the warm-up was profiled too, %lld steps in all: --counter-steps %s=%lld, "
		      "or profile the window alone (ncu --profile-from-start off)",
		      (long long)all, label, (long long)all);
	if (steps && !launches_fit)
		cause_steps(&c, counted, ratio);
	if (ratio > 1 && tiles)
		cause(&c, "matrix units work on whole tiles, padding included, and small or "
			  "windowed matrices waste most");
	if (ratio > 1 && !isnan(m->part[RFL_QUANTITY_FLOPS_FP32]))
		cause(&c, "elementwise work and the optimizer are in the counters, not in the core "
			  "count");
	if (ratio < 1) {
		/* what was not counted comes first where every kernel is there */
		if (uncounted && !off->off)
			cause(&c, "%s", uncounted_text);
		if (!live)
			cause(&c, "not every kernel was profiled (a launch count or a filter of "
				  "the profiler)");
		if (uncounted && off->off)
			cause(&c, "%s", uncounted_text);
		cause(&c, "convolutions ran by an algorithm with fewer multiplications (Winograd, "
			  "FFT)");
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
				       "%s%zu of %zu kernels were launched a number of times that "
				       "is no multiple of %lld",
				       m->doubt.len ? "; " : "", off.off, off.kernels, steps);
		rfl_buf_printf(&m->doubt, " (%lld step%s)", steps, steps == 1 ? "" : "s");
		write_causes(counted, ratio, &off, m);
		return;
	}
	if (off.off)
		rfl_buf_printf(&m->note,
			       "; %zu of %zu kernels ran a number of times that is no multiple of "
			       "%lld steps (set-up, tuning)",
			       off.off, off.kernels, steps);
	if (over_unfused > RFL_COUNTERS_MOST_BYTES) { /* more than any order of work moves */
		struct causes c = { .out = &m->causes };

		m->doubtful = true;
		rfl_buf_printf(&m->doubt,
			       "%.3g x the bytes of operation after operation (%lld step%s)",
			       over_unfused, steps, steps == 1 ? "" : "s");
		if (counted->from != RFL_STEPS_OWN)
			cause_steps(&c, counted, NAN);
		cause(&c, "others moved bytes at the same time");
	}
}
