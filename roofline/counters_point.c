/*
 * counters_point.c - what a point stands on where there are counters, its columns, the roof of
 * FLOPs in several precisions, and the words that counters add to a verdict.
 */
#include "roofline/counters_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

const char *const rfl_flops_names[] = { "auto", "model", "counters", NULL };

/* --- choosing --- */

/* Why a measure is not fit to stand under a point. NULL: it is.
 * @param demanded  the user asked for counters: then only what is wrong keeps them out */
static bool obstacle(const struct rfl_measured *m, const struct rfl_measure *x, bool demanded,
		     char *why, size_t size)
{
	if (isnan(x->value)) {
		(void)snprintf(why, size, "%s", x->why);
		return true;
	}
	if (!(x->value > 0)) {
		(void)snprintf(why, size, "counted as %g", x->value);
		return true;
	}
	if (m->doubtful && !(demanded && m->sure)) {
		(void)snprintf(why, size, "they do not fit: %s; counters_note has the causes",
			       rfl_buf_str(&m->doubt));
		return true;
	}
	if (demanded)
		return false;
	if (x->validity == RFL_VALID_MARKED) {
		(void)snprintf(why, size, "the self-test was off by more than 2 %%");
		return true;
	}
	if (x->validity == RFL_VALID_PARTIAL && !(x->coverage >= RFL_COUNTERS_COVERAGE)) {
		(void)snprintf(why, size, "counted in %.3g %% of the time only", 100 * x->coverage);
		return true;
	}
	if (m->process)
		(void)snprintf(why, size,
			       "counted over a whole process, set-up included; --ai counters takes "
			       "them all the same");
	return m->process;
}

static enum rfl_rc demand(struct rfl_config *c, const char *what, const struct rfl_measure *x,
			  const char *why, struct rfl_missing *missing, struct rfl_err *err)
{
	const struct rfl_ledger_row *row = c->row;
	const char *fix =
		"take them again with the metrics that it names ('roofline counters list "
		"--chip CHIP --ncu' prints those of a GPU), or take the count (--ai auto, "
		"--flops auto)";
	struct rfl_buf fact;
	size_t before;
	enum rfl_rc rc;

	if (c->measured.refused && isnan(x->value))
		fix = "as it says ('roofline counters check' shows when it works), or take "
		      "the count (--ai auto, --flops auto)";
	else if (!c->measured.any)
		fix = "roofline run --counters step; or profile a run whose label ends in _prof, "
		      "and give its file with --ncu-dir, --perf-dir or --counters";
	else if (c->measured.no_steps || c->measured.doubtful)
		fix = "--counter-steps LABEL=N with the steps that the profiled run did, or take "
		      "the count (--ai auto, --flops auto)";
	rfl_buf_init(&fact, 1 << 16);
	rfl_buf_printf(&fact, "%s by counters of %s %s %s bs%lld %s%s%s: %s", what, c->env,
		       row->model, row->precision, (long long)row->batch, row->mode,
		       row->layout && *row->layout ? " " : "", row->layout ? row->layout : "", why);
	before = missing->n;
	rc = rfl_missing_add(missing, rfl_buf_str(&fact), fix, c, err);
	missing->of_counters += missing->n - before;
	rfl_buf_fini(&fact);
	return rc;
}

/* Of a run that was to be counted, and of which no counters are in the files: why. */
static void say_none(const struct rfl_config *c, char *why, size_t size)
{
	const char *status = NULL;

	for (size_t i = 0; i < c->nruns && !(status && *status); i++)
		status = c->runs[i].run->like->counters_status;
	(void)snprintf(why, size, "no counters belong to it%s%s",
		       status && *status ? "; its row of the ledger says: " : "",
		       status ? status : "");
}

static enum rfl_rc choose_bytes(const struct rfl_merge_options *o, struct rfl_config *c,
				struct rfl_missing *missing, struct rfl_err *err)
{
	bool demanded = o->ai == RFL_AI_COUNTERS;
	char why[sizeof(c->bytes_why)];

	say_none(c, why, sizeof(why));
	if (!demanded && (o->ai != RFL_AI_AUTO || !c->measured.any))
		return RFL_OK;
	if (c->measured.any &&
	    !obstacle(&c->measured, &c->measured.bytes, demanded, why, sizeof(why))) {
		c->bytes_counted = true;
		return RFL_OK;
	}
	if (demanded)
		return demand(c, "DRAM bytes", &c->measured.bytes, why, missing, err);
	memcpy(c->bytes_why, why, sizeof(why));
	return RFL_OK;
}

static enum rfl_rc choose_flops(const struct rfl_merge_options *o, struct rfl_config *c,
				struct rfl_missing *missing, struct rfl_err *err)
{
	const struct rfl_measured *m = &c->measured;
	char why[sizeof(c->flops_why)];

	say_none(c, why, sizeof(why));
	if (o->flops != RFL_FLOPS_COUNTERS) {
		if (m->any && isnan(m->flops.value))
			(void)snprintf(c->flops_why, sizeof(c->flops_why), "%s", m->flops.why);
		return RFL_OK;
	}
	c->flops_counted = m->any && !obstacle(m, &m->flops, true, why, sizeof(why));
	if (c->flops_counted && !rfl_counters_own_precision(m)) {
		c->flops_counted = false;
		(void)snprintf(why, sizeof(why),
			       "%.3g %% of them are not %s but %s, which has another ceiling",
			       100 * (1 - m->expected_share), c->row->precision,
			       rfl_quantity_info(m->foreign)->name);
	}
	return c->flops_counted ? RFL_OK : demand(c, "FLOPs", &m->flops, why, missing, err);
}

enum rfl_rc rfl_counters__choose(const struct rfl_merge_options *o, struct rfl_config *c,
				 struct rfl_missing *missing, struct rfl_err *err)
{
	enum rfl_rc rc = choose_bytes(o, c, missing, err);

	return rc == RFL_OK ? choose_flops(o, c, missing, err) : rc;
}

/* --- columns --- */

enum rfl_rc rfl_counters_columns(const struct rfl_measured *m, const struct rfl_work *work,
				 struct rfl_point *p, struct rfl_err *err)
{
	const struct rfl_measure *const known[] = { &m->flops, &m->bytes };
	const char *validity = rfl_validity_names[RFL_VALID_UNAVAILABLE];
	enum rfl_validity worst = RFL_VALID;
	struct rfl_buf note;
	enum rfl_rc rc;

	if (!m->any)
		return RFL_OK;
	p->flops_counters = m->flops.value;
	p->bytes_counters = m->bytes.value;
	p->ai_counters = m->ai;
	p->flops_measured_over_counted = m->flops.value / work->flops;
	p->bytes_over_compulsory = m->bytes.value / work->bytes[RFL_FUSION_COMPULSORY];
	p->bytes_over_unfused = m->bytes.value / work->bytes[RFL_FUSION_UNFUSED];
	p->counters_steps = m->steps;
	p->counters_repeats = m->repeats;
	p->coverage = isnan(m->flops.value) ? m->bytes.coverage : m->flops.coverage;
	p->zero_flop_share = m->zero_share;
	rfl_buf_init(&note, 1 << 16);
	rfl_buf_puts(&note, rfl_buf_str(&m->note));
	if (m->doubtful)
		rfl_buf_printf(&note, "; does not fit: %s; likely causes:%s",
			       rfl_buf_str(&m->doubt), rfl_buf_str(&m->causes));
	for (size_t i = 0; i < RFL_ARRAY_LEN(known); i++) {
		if (known[i]->why[0])
			rfl_buf_printf(&note, "; %s", known[i]->why);
		if (isnan(known[i]->value))
			continue;
		worst = known[i]->validity > worst ? known[i]->validity : worst;
		validity = rfl_validity_names[worst];
	}
	const struct rfl_merge_text texts[] = {
		{ &p->counters_note, rfl_buf_str(&note) },
		{ &p->counters_source, m->source },
		{ &p->counters_validity, m->doubtful ? "doubtful" : validity },
		{ &p->zero_flop_kernels, rfl_buf_str(&m->zero_kernels) },
	};

	rc = rfl_buf_check(&note, "counters", err);
	if (rc == RFL_OK)
		rc = rfl_merge__texts(texts, RFL_ARRAY_LEN(texts), err);
	rfl_buf_fini(&note);
	return rc;
}

/* --- roof --- */

/* A part of the FLOPs smaller than this share weighs nothing. */
#define LEAST_PART 0.005

bool rfl_counters_roof(const struct rfl_measured *m, const struct rfl_peaks_env *env,
		       const char *key, struct rfl_mixed_roof *ret)
{
	struct rfl_mixed_roof mixed = { .key = "" };
	double all = 0, time = 0;
	size_t len = 0, n = 0;

	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (rfl_quantity_is_flops((enum rfl_quantity)q) && m->part[q] > 0)
			all += m->part[q];
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		const char *part = rfl_counters_ceiling((enum rfl_quantity)q);
		const struct rfl_peak *peak;

		if (!rfl_quantity_is_flops((enum rfl_quantity)q) ||
		    !(m->part[q] >= LEAST_PART * all))
			continue;
		peak = part ? rfl_peaks_compute(env, part) : NULL;
		if (!peak || !rfl_peak_usable(peak))
			return false;
		time += m->part[q] / peak->value;
		len += (size_t)snprintf(mixed.key + len, sizeof(mixed.key) - len, "%s%.2f %s",
					n ? " + " : "", m->part[q] / all, part);
		if (len >= sizeof(mixed.key))
			return false;
		n++;
	}
	if (n < 2 || env->short_form || !strstr(mixed.key, key))
		return false;
	mixed.flop_per_s = all / time;
	*ret = mixed;
	return true;
}

/* --- verdict --- */

static void write_foreign(const struct rfl_measured *m, const struct rfl_peaks_env *env,
			  const struct rfl_point *p, struct rfl_buf *out)
{
	const char *key = rfl_counters_ceiling(m->foreign);
	const struct rfl_peak *peak = key ? rfl_peaks_compute(env, key) : NULL;
	char roof[48] = "not in the peaks file";

	if (peak && rfl_peak_usable(peak) && !env->short_form)
		rfl_num_si(peak->value, "FLOP/s", 3, roof, sizeof(roof));
	rfl_buf_printf(out, "; only %.3g %% of the counted FLOPs are %s: most of the rest is %s",
		       100 * m->expected_share, p->precision ? p->precision : "of its precision",
		       rfl_quantity_info(m->foreign)->name);
	if (key)
		rfl_buf_printf(out, ", whose ceiling is %s (%s), not %s", key, roof,
			       p->compute_key ? p->compute_key : "this one");
}

void rfl_counters_verdict(const struct rfl_measured *m, const struct rfl_peaks_env *env,
			  const struct rfl_point *p, struct rfl_buf *out)
{
	if (!m->any)
		return;
	if (p->bytes_source && strncmp(p->bytes_source, "counters", 8) == 0)
		rfl_buf_printf(out, "; bytes measured by %s: %.3g x the compulsory, %.3g x unfused",
			       m->source, p->bytes_over_compulsory, p->bytes_over_unfused);
	if (!rfl_counters_own_precision(m))
		write_foreign(m, env, p, out);
	if (p->flops_source && strcmp(p->flops_source, "counters") == 0 && p->compute_key &&
	    !strstr(p->compute_key, " + ") && m->expected_share < 1 - LEAST_PART)
		rfl_buf_printf(out,
			       "; %.2g %% of the FLOPs are of another precision, without a ceiling "
			       "in the peaks file: all stand under %s",
			       100 * (1 - m->expected_share), p->compute_key);
	if (m->doubtful)
		rfl_buf_puts(out, "; the counters do not fit the count");
	if (m->zero_share >= 0.05)
		rfl_buf_printf(out, "; %.2g %% of the kernels' time has no FLOP (%s)",
			       100 * m->zero_share, rfl_buf_str(&m->zero_longest));
}
