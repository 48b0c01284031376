/*
 * counters_measure.c - the captures of a configuration as one measurement per step: repeats give a
 * median, captures that count different things complete each other, and two that count the same
 * without being repeats are an error.
 */
#include "roofline/counters_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stats.h"
#include "base/text.h"
#include "ledger/label.h"

static void init(struct rfl_measured *m)
{
	static const struct rfl_measure unknown = {
		.value = NAN,
		.lo = NAN,
		.hi = NAN,
		.validity = RFL_VALID_UNAVAILABLE,
		.coverage = NAN,
	};

	*m = (struct rfl_measured){
		.ai = NAN,
		.steps = -1,
		.zero_share = NAN,
		.expected_share = NAN,
	};
	m->flops = m->bytes = unknown;
	m->foreign = RFL_QUANTITY_COUNT;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		m->part[q] = NAN;
	rfl_buf_init(&m->zero_kernels, 1 << 16);
	rfl_buf_init(&m->zero_longest, 1 << 16);
	rfl_buf_init(&m->doubt, 1 << 16);
	rfl_buf_init(&m->causes, 1 << 16);
	rfl_buf_init(&m->note, 1 << 16);
}

void rfl_measured_fini(struct rfl_measured *m)
{
	rfl_buf_fini(&m->zero_kernels);
	rfl_buf_fini(&m->zero_longest);
	rfl_buf_fini(&m->doubt);
	rfl_buf_fini(&m->causes);
	rfl_buf_fini(&m->note);
}

/* --- one quantity over the captures that know it --- */

static int64_t run_number(const struct rfl_joined *c)
{
	struct rfl_label parts;
	const char *label = c->capture->label;

	rfl_label_parse(label ? label : "", c->home ? c->home->like->model : NULL, &parts);
	return parts.run;
}

/* Are two captures repeats: of one tool, and of runs that are distinguished? */
static bool repeats(const struct rfl_joined *a, const struct rfl_joined *b)
{
	const struct rfl_capture *x = a->capture, *y = b->capture;

	if (!rfl_text_same(x->source, y->source))
		return false;
	if (x->run_id && *x->run_id && y->run_id && *y->run_id)
		return strcmp(x->run_id, y->run_id) != 0;
	return run_number(a) >= 0 && run_number(b) >= 0 && run_number(a) != run_number(b);
}

/* Of two that count the same without being repeats, an error, or one is left out: the second, if
 * the steps of the first are known. */
static enum rfl_rc leave_out_clashes(const struct rfl_merge_inputs *in, struct rfl_config *config,
				     enum rfl_quantity q, struct rfl_merge_report *report,
				     struct rfl_err *err)
{
	const struct rfl_ledger_row *row = config->row;

	for (size_t i = 1; i < config->ncounted; i++) {
		struct rfl_joined *c = &config->counted[i], *other = config->counted, *last;
		const char *name = rfl_counters__name(c->capture), *others;
		struct rfl_err why = RFL_ERR_INIT, *to = in->counters.keep_going ? &why : err;
		enum rfl_rc rc;

		if (!rfl_counters__knows(config, c, q))
			continue;
		while (other < c && (!rfl_counters__knows(config, other, q) || repeats(other, c)))
			other++;
		if (other == c)
			continue;
		others = rfl_counters__name(other->capture);
		if (rfl_text_same(others, name))
			rc = rfl_fail(to, RFL_EFORMAT, 0,
				      "counters: %s is there twice: as a file and in a "
				      "counters.csv, or twice in that; remove one of them",
				      name);
		else
			rc = rfl_fail(to, RFL_EFORMAT, 0,
				      "counters: %s and %s both have the %s of %s %s %s bs%lld "
				      "%s, and are not repeats (..._run1, ..._run2 by one "
				      "profiler): remove one of them",
				      others, name,
				      q == RFL_QUANTITY_FLOPS ? "FLOPs" : "DRAM bytes", config->env,
				      row->model, row->precision, (long long)row->batch, row->mode);
		if (!in->counters.keep_going)
			return rc;
		last = other->steps < 1 && c->steps > 0 ? other : c;
		last->left_out = true;
		rfl_buf_printf(&report->notes, "%s; %s is left out\n", why.msg,
			       rfl_counters__name(last->capture));
	}
	return RFL_OK;
}

/* Median and range per step over the captures that know a quantity; `first` is one of them. */
static enum rfl_rc measure(const struct rfl_config *config, enum rfl_quantity q,
			   struct rfl_measure *ret, const struct rfl_joined **first, size_t *n,
			   struct rfl_err *err)
{
	double *values = rfl_alloc_array(config->ncounted + 1, sizeof(*values));
	struct rfl_stats stats;
	enum rfl_rc rc = RFL_OK;

	*first = NULL;
	*n = 0;
	if (!values)
		return rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_joined *c = &config->counted[i];
		struct rfl_amount a = rfl_counters__total(c, q);
		double coverage;

		if (!rfl_counters__knows(config, c, q) || c->steps < 1)
			continue;
		coverage = rfl_counters__coverage(config, c, q);
		values[(*n)++] = a.value / (double)c->steps;
		if (!*first || a.validity > ret->validity)
			ret->validity = a.validity;
		if (!*first || coverage < ret->coverage)
			ret->coverage = coverage;
		*first = *first ? *first : c;
	}
	if (*n)
		rc = rfl_stats_describe(values, *n, &stats, err);
	if (rc == RFL_OK && *n) {
		ret->value = stats.median;
		ret->lo = stats.min;
		ret->hi = stats.max;
	}
	free(values);
	return rc;
}

#define NOT_COUNTED "not counted: "

/* perf's file does not say which processor it is of, and its reason names the events of one: those
 * of the processor that ran, by the formulas for it, take their place. */
static void put_events(const char *cpu, enum rfl_quantity q, struct rfl_buf *out)
{
	static const struct {
		const char *word, *family, *on;
	} processors[] = {
		{ "AMD", "cpu-amd", " (Zen 2 to 4)" },
		{ "AMD", "cpu-amd-zen5", " (Zen 5)" },
		{ "Intel", "cpu-intel", "" },
		{ "Neoverse-V1", "cpu-neoverse-v1", "" },
		{ "Neoverse-N2", "cpu-neoverse-v2", "" },
		{ "Neoverse-V2", "cpu-neoverse-v2", "" },
	};
	const bool bytes = q == RFL_QUANTITY_DRAM; /* of which all kinds of AMD have the same */
	struct rfl_formulas *f = NULL;
	struct rfl_buf text;

	for (size_t i = 0; i < RFL_ARRAY_LEN(processors); i++) {
		if (!cpu || !strstr(cpu, processors[i].word) || (bytes && out->len > 0) ||
		    rfl_formulas_new(processors[i].family, &f, NULL) != RFL_OK)
			continue;
		rfl_buf_init(&text, 0);
		rfl_formula_reason(f, f->quantities[q].nways > 0 ? q : RFL_QUANTITY_FLOPS_MIXED,
				   NULL, NULL, &text);
		rfl_buf_printf(out, "%s%s%s", out->len ? ", or " : "",
			       rfl_buf_str(&text) + (out->len ? strlen(NOT_COUNTED) : 0),
			       bytes ? "" : processors[i].on);
		rfl_buf_fini(&text);
		rfl_formulas_free(f);
	}
	if (out->len == 0)
		rfl_buf_puts(out, "not counted; the events of each processor for 'perf stat -e' "
				  "are in docs/appendix/events.md");
}

/* With the reason of the capture: of the part that the run's precision uses, where that says more
 * than the sum does. */
static void say_unavailable(struct rfl_config *config, const struct rfl_joined *c,
			    enum rfl_quantity q, struct rfl_measure *ret)
{
	enum rfl_quantity part = q == RFL_QUANTITY_FLOPS ? rfl_counters__main_part(config) : q;
	struct rfl_amount all = rfl_counters__total(c, q), a = rfl_counters__total(c, part);
	const char *reason = isnan(a.value) && a.reason ? a.reason : all.reason;
	struct rfl_buf events;

	rfl_buf_init(&events, 0);
	if (reason && rfl_text_same(c->capture->family, "cpu") &&
	    strncmp(reason, NOT_COUNTED, strlen(NOT_COUNTED)) == 0) {
		put_events(config->row->device_name, part, &events);
		reason = rfl_buf_str(&events);
	}
	config->measured.refused = config->measured.refused || c->capture->nrefusals > 0 ||
				   !c->capture->path; /* live: its reason says what to do */
	if (isnan(all.value))
		(void)snprintf(ret->why, sizeof(ret->why), "%s unavailable%s%s",
			       q == RFL_QUANTITY_FLOPS ? "FLOPs" : "DRAM bytes", reason ? ": " : "",
			       reason ? reason : "");
	else
		(void)snprintf(ret->why, sizeof(ret->why),
			       "%s has no %s, the FLOPs of the run's precision (%s)%s%s",
			       rfl_counters__name(c->capture), rfl_quantity_info(part)->name,
			       config->row->precision, reason ? ": " : "", reason ? reason : "");
	rfl_buf_fini(&events);
}

/* Why a quantity is not known: its steps are not known, or no capture has it. */
static void say_unknown(struct rfl_config *config, enum rfl_quantity q, struct rfl_measure *ret,
			struct rfl_merge_report *report)
{
	for (size_t i = 0; i < config->ncounted && !ret->why[0]; i++) {
		const struct rfl_joined *c = &config->counted[i];

		if (!rfl_counters__knows(config, c, q))
			continue;
		(void)snprintf(ret->why, sizeof(ret->why),
			       "how many steps %s covers is not known: %s (--counter-steps %s=N)",
			       rfl_counters__name(c->capture), c->unknown,
			       c->capture->label ? c->capture->label : "LABEL");
		/* once for FLOPs and bytes of one capture */
		if (!config->measured.no_steps)
			rfl_buf_printf(&report->notes, "counters: %s\n", ret->why);
		config->measured.no_steps = true;
	}
	for (size_t i = 0; i < config->ncounted && !ret->why[0]; i++)
		say_unavailable(config, &config->counted[i], q, ret);
}

/* --- all of it --- */

static bool knows_any(const struct rfl_config *config, const struct rfl_joined *c)
{
	return rfl_counters__knows(config, c, RFL_QUANTITY_FLOPS) ||
	       rfl_counters__knows(config, c, RFL_QUANTITY_DRAM);
}

/* Who counted, each once; where nothing is known, who tried. */
static void name_sources(const struct rfl_config *config, struct rfl_measured *m)
{
	bool any = false;

	for (size_t i = 0; i < config->ncounted; i++)
		any = any || knows_any(config, &config->counted[i]);
	for (size_t i = 0; i < config->ncounted; i++) {
		const char *source = config->counted[i].capture->source;
		size_t len = strlen(m->source);

		if (!source || len + 16 >= sizeof(m->source) || strstr(m->source, source) ||
		    (any && !knows_any(config, &config->counted[i])))
			continue;
		(void)snprintf(m->source + len, sizeof(m->source) - len, "%s%.12s",
			       len ? " + " : "", source);
	}
}

/* "logs/ncu/x.csv: 30 steps as in metrics.csv:3" for each capture. */
static void note_captures(const struct rfl_merge_inputs *in, const struct rfl_config *config,
			  struct rfl_buf *out)
{
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_joined *c = &config->counted[i];

		rfl_buf_printf(out, "%s%s", i ? "; " : "", rfl_counters__name(c->capture));
		if (c->left_out)
			rfl_buf_puts(out, ": left out");
		if (c->steps < 1)
			continue;
		rfl_buf_printf(out, ": %lld step%s", (long long)c->steps, c->steps == 1 ? "" : "s");
		if (c->from == RFL_STEPS_LEDGER)
			rfl_buf_printf(out, " as in %s:%zu", in->runs->files[0].path,
				       c->home->line);
		else if (c->from == RFL_STEPS_PROCESS)
			rfl_buf_printf(out, ", warm-up included, as in %s:%zu; set-up is in it",
				       in->runs->files[0].path, c->home->line);
		else if (c->from != RFL_STEPS_OWN)
			rfl_buf_puts(out, " as --counter-steps says");
	}
}

/* IPC of a processor, which needs no number of steps, then what importers and sources say. */
static void note_remarks(const struct rfl_config *config, struct rfl_measured *m)
{
	for (size_t i = 0; i < config->ncounted; i++) {
		double ipc = rfl_capture_ipc(config->counted[i].capture);

		if (ipc > 0)
			rfl_buf_printf(&m->note, "; IPC %.3g", ipc);
	}
	for (size_t i = 0; i < config->ncounted; i++) {
		const struct rfl_capture *c = config->counted[i].capture;

		for (size_t n = 0; n < c->nnotes; n++)
			if (!strstr(rfl_buf_str(&m->note), c->notes[n])) /* repeats say the same */
				rfl_buf_printf(&m->note, "; %s", c->notes[n]);
		if (c->rows_left_out > 0)
			rfl_buf_printf(&m->note, "; %lld rows of it were left out",
				       (long long)c->rows_left_out);
	}
}

/* Is a capture's number of steps beyond doubt? */
static bool is_sure(const struct rfl_joined *c)
{
	return !c || c->from == RFL_STEPS_OWN || c->from == RFL_STEPS_LABEL;
}

static bool is_process(const struct rfl_joined *c)
{
	return c && rfl_counters__whole_process(c);
}

/* The captures of FLOPs and bytes, which may be one, against the count. */
static void check(struct rfl_config *config, const struct rfl_joined *flops,
		  const struct rfl_joined *bytes, struct rfl_merge_report *report)
{
	struct rfl_measured *m = &config->measured;
	const struct rfl_joined *first = flops ? flops : bytes;
	const struct rfl_joined *doubted = first;

	m->steps = first->steps;
	m->sure = is_sure(flops) && is_sure(bytes);
	m->process = is_process(flops) || is_process(bytes);
	rfl_counters__doubt(first, &config->work, m->flops.value,
			    first == bytes ? m->bytes.value : NAN, m);
	if (bytes && bytes != first && !m->doubtful) {
		doubted = bytes;
		rfl_counters__doubt(bytes, &config->work, NAN, m->bytes.value, m);
	}
	if (m->doubtful)
		rfl_buf_printf(&report->notes, "counters: %s does not fit: %s; likely causes:%s\n",
			       rfl_counters__name(doubted->capture), rfl_buf_str(&m->doubt),
			       rfl_buf_str(&m->causes));
}

enum rfl_rc rfl_counters__measure(const struct rfl_merge_inputs *in, struct rfl_config *config,
				  struct rfl_merge_report *report, struct rfl_err *err)
{
	struct rfl_measured *m = &config->measured;
	const struct rfl_buf *const texts[] = { &m->note, &m->doubt, &m->causes, &m->zero_kernels,
						&m->zero_longest };
	const struct rfl_joined *flops = NULL, *bytes = NULL;
	size_t nflops = 0, nbytes = 0;
	enum rfl_rc rc;

	init(m);
	if (!config->ncounted)
		return RFL_OK;
	m->any = true;
	for (size_t i = 0; i < config->ncounted; i++)
		rfl_counters__steps(in, &config->counted[i]);
	if ((rc = leave_out_clashes(in, config, RFL_QUANTITY_FLOPS, report, err)) ||
	    (rc = leave_out_clashes(in, config, RFL_QUANTITY_DRAM, report, err)))
		return rc;
	name_sources(config, m);
	note_captures(in, config, &m->note);
	if ((rc = measure(config, RFL_QUANTITY_FLOPS, &m->flops, &flops, &nflops, err)) ||
	    (rc = measure(config, RFL_QUANTITY_DRAM, &m->bytes, &bytes, &nbytes, err)))
		return rc;
	m->repeats = (int64_t)(nflops > nbytes ? nflops : nbytes);
	/* of repeats the first: shares do not change from one to the next */
	for (int q = 0; flops && q < RFL_QUANTITY_COUNT; q++)
		if (rfl_quantity_is_flops((enum rfl_quantity)q))
			m->part[q] = rfl_counters__total(flops, (enum rfl_quantity)q).value /
				     (double)flops->steps;
	if (flops) {
		rfl_counters__precision(config);
		rc = rfl_counters__zero_flop(config, flops, m, err);
		if (rc)
			return rc;
	} else {
		say_unknown(config, RFL_QUANTITY_FLOPS, &m->flops, report);
	}
	if (!bytes)
		say_unknown(config, RFL_QUANTITY_DRAM, &m->bytes, report);
	if (flops || bytes)
		check(config, flops, bytes, report);
	if (flops && bytes) {
		/* an intensity only where both are known of all kernels */
		const bool whole = flops->capture == bytes->capture
					   ? !isnan(rfl_amounts_ai(flops->capture->total))
					   : m->flops.validity != RFL_VALID_PARTIAL &&
						     m->bytes.validity != RFL_VALID_PARTIAL;

		if (whole)
			m->ai = m->flops.value / m->bytes.value;
		else if (m->bytes.value > 0)
			rfl_buf_puts(&m->note, "; FLOPs and bytes are of different launches, so "
					       "that they make no intensity");
	}
	note_remarks(config, m);
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts) && rc == RFL_OK; i++)
		rc = rfl_buf_check(texts[i], "counters", err);
	return rc;
}
