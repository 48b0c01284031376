/*
 * sections_lm.c - the sections of a report on language models or on the attention benchmark: the
 * tables of 'bench lm', 'bench attention' and 'bench decode', read back from the ledger.
 */
#include "report/report_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ledger/step.h"
#include "report/accumulate.h"
#include "report/generation.h"
#include "report/sweep.h"

/* The mode of a row of another program follows from its times. */
static const char *mode_of(const struct rfl_ledger_row *row)
{
	if (row->mode)
		return row->mode;
	if (!isnan(row->opt_ms_mean))
		return "train";
	return isnan(row->bwd_ms_mean) ? "fwd" : "fwd_bwd";
}

bool rfl_report_shows(enum rfl_report_kind kind, const char *model, int64_t context)
{
	if (kind == RFL_REPORT_LM)
		return model && context > 0 && !rfl_sweep_is_attention(model);
	if (kind == RFL_REPORT_ATTENTION)
		return rfl_sweep_is_attention(model);
	return kind != RFL_REPORT_TRAINING || context <= 0;
}

/* The runs of a configuration or, if it has only failed, those. @param ret  room for all runs
 * @return their number */
static size_t runs_of(const struct rfl_report *r, const struct rfl_repeats_config *c,
		      const struct rfl_run **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		ret[n++] = c->runs[i].run;
	for (size_t i = 0; c->n == 0 && i < r->runs->n; i++)
		if (r->runs->runs[i].like == c->row)
			ret[n++] = &r->runs->runs[i];
	return n;
}

/* Add a configuration as a row. @param found, runs  room for all runs */
static void add_row(const struct rfl_report *r, struct rfl_page *page,
		    const struct rfl_repeats_config *c, const struct rfl_run **found,
		    struct rfl_sweep_run *runs, struct rfl_sweep *s)
{
	const struct rfl_ledger_row *row = c->row;
	struct rfl_sweep_row *to = &s->rows[s->n++];
	const size_t n = runs_of(r, c, found);

	rfl_sweep_row_init(to);
	to->env = row->env;
	to->model = row->model;
	to->precision = row->precision;
	to->attention = row->attention ? row->attention : "auto";
	to->mode = mode_of(row);
	to->optimizer = strcmp(to->mode, "train") == 0 ? row->optimizer : NULL;
	to->clips = row->grad_clip > 0;
	to->grad_clip = to->clips ? row->grad_clip : (double)NAN;
	to->context = row->context_length;
	to->batch = row->batch;
	to->warmup = row->warmup >= 0 ? row->warmup : RFL_INT_UNKNOWN;
	to->graph = row->cuda_graph == 1;
	for (size_t i = 0; i < n; i++)
		runs[i] = (struct rfl_sweep_run){
			.row = rfl_runs_row(r->runs, found[i]),
			.steps = c->n ? rfl_report__beside(r, page, found[i], "steps") : NULL,
		};
	rfl_sweep_collect(s, to, runs, n);
}

struct rfl_sweep *rfl_report__sweep_new(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t n = r->repeats ? r->repeats->n : 0, nruns = r->runs ? r->runs->n : 0;
	struct rfl_sweep_run *runs = rfl_arena_array(page->arena, nruns + 1, sizeof(*runs));
	const struct rfl_run **found =
		rfl_arena_array(page->arena, nruns + 1, sizeof(struct rfl_run *));
	struct rfl_sweep *s = rfl_arena_array(page->arena, 1, sizeof(*s));
	struct rfl_sweep_row *rows = rfl_arena_array(page->arena, n + 1, sizeof(*rows));

	*s = (struct rfl_sweep){
		.arena = page->arena, .rows = rows, .in_report = true, .narrow = true
	};
	for (size_t i = 0; i < n; i++)
		if (r->repeats->configs[i].row->precision &&
		    r->repeats->configs[i].row->batch > 0 &&
		    !rfl_step_caches(r->repeats->configs[i].row->mode))
			add_row(r, page, &r->repeats->configs[i], found, runs, s);
	rfl_sweep_place(s, r->peaks);
	return s;
}

/* Whether there are runs in modes decode and prefill. */
static bool has_generation(const struct rfl_report *r)
{
	for (size_t i = 0; r->repeats && i < r->repeats->n; i++)
		if (rfl_step_caches(r->repeats->configs[i].row->mode))
			return true;
	return false;
}

/* If there are no runs, explain how to measure some. */
static bool have_runs(const struct rfl_report *r, struct rfl_page *page)
{
	const bool lm = r->kind == RFL_REPORT_LM;

	if (r->work->sweep->n == 0 && has_generation(r))
		return false; /* a report on generation */
	return rfl_report__have(r, page, r->work->sweep->n ? r : NULL,
				lm ? "runs of language models" : "runs of the attention benchmark",
				"--metrics",
				lm ? "roofline bench lm --models S" : "roofline bench attention");
}

/* Whether two rows belong to one table: only model and context differ, and the form of the
 * attention in its own benchmark. */
static bool is_same_table(const struct rfl_report *r, const struct rfl_sweep_row *a,
			  const struct rfl_sweep_row *b)
{
	const unsigned free = r->kind == RFL_REPORT_ATTENTION
				      ? RFL_SWEEP_OTHER_SIZE | RFL_SWEEP_OTHER_ATTENTION
				      : RFL_SWEEP_OTHER_SIZE;

	return !(rfl_sweep_differs(a, b) & ~free);
}

/* "lab_gpu: bf16, compiled, no warm-up steps, batch size 4, mode fwd_bwd" */
static const char *title_of(const struct rfl_report *r, struct rfl_page *page,
			    const struct rfl_sweep_row *row)
{
	struct rfl_buf out = { .len = 0 };

	rfl_buf_printf(&out, "%s: %s%s", row->env, row->precision,
		       row->graph ? ", compiled (CUDA graph)" : "");
	if (row->warmup == 0)
		rfl_buf_puts(&out, ", no warm-up");
	else if (row->warmup != RFL_INT_UNKNOWN)
		rfl_buf_printf(&out, ", %lld warm-up step%s", (long long)row->warmup,
			       plural((size_t)row->warmup));
	rfl_buf_printf(&out, ", batch size %lld, mode %s", (long long)row->batch, row->mode);
	if (row->optimizer)
		rfl_buf_printf(&out, ", %s", row->optimizer);
	if (row->clips)
		rfl_buf_puts(&out, ", gradients clipped");
	if (r->kind == RFL_REPORT_LM && strcmp(row->attention, "auto") != 0)
		rfl_buf_printf(&out, ", attention %s", row->attention);
	return rfl_page_keep(page, &out);
}

/* A table for each environment and setting. */
void rfl_report__sweep(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_sweep *s = r->work->sweep;
	struct rfl_sweep of = *s;
	bool *done;

	if (!have_runs(r, page))
		return;
	of.rows = rfl_arena_array(page->arena, s->n, sizeof(*of.rows));
	done = rfl_arena_array(page->arena, s->n, sizeof(*done));
	for (size_t i = 0; i < s->n; i++) {
		of.n = 0;
		for (size_t k = i; k < s->n && !done[i]; k++)
			if (is_same_table(r, &s->rows[i], &s->rows[k])) {
				of.rows[of.n++] = s->rows[k];
				done[k] = k > i;
			}
		if (of.n > 0)
			rfl_page_table(page, title_of(r, page, &s->rows[i]),
				       rfl_sweep_table(&of,
						       r->kind == RFL_REPORT_LM
							       ? RFL_SWEEP_LM
							       : RFL_SWEEP_ATTENTION,
						       RFL_SWEEP_BY_NONE));
	}
}

/* The range of the speed-ups as a statement. @return a row to which they refer; NULL: there are
 * none
 */
static const struct rfl_sweep_row *say_speedups(struct rfl_page *page, const struct rfl_sweep *s,
						const char *what)
{
	const struct rfl_sweep_row *least = NULL, *most = NULL;
	const char *to;

	for (const struct rfl_sweep_row *row = s->rows; row < s->rows + s->n; row++) {
		if (!(row->speedup_step > 0) || row->base == row)
			continue;
		if (!least || row->speedup_step < least->speedup_step)
			least = row;
		if (!most || row->speedup_step > most->speedup_step)
			most = row;
	}
	if (!most)
		return NULL;
	to = most == least
		     ? ""
		     : rfl_page_printf(page, " to %.3g (%s, context %lld, %s)", most->speedup_step,
				       most->model, (long long)most->context, most->precision);
	rfl_page_para(
		page,
		"%s: the speed of a step changes by a factor of %.3g (%s, context %lld, %s)%s.",
		what, least->speedup_step, least->model, (long long)least->context,
		least->precision, to);
	return most->base;
}

/* The setting of a row to which speed-ups refer. */
static const char *setting_of(struct rfl_page *page, const struct rfl_sweep_row *row,
			      enum rfl_sweep_by by)
{
	if (by == RFL_SWEEP_BY_PRECISION)
		return row->precision;
	if (by == RFL_SWEEP_BY_ATTENTION)
		return rfl_page_printf(page, "attention %s", row->attention);
	if (by == RFL_SWEEP_BY_WARMUP)
		return rfl_page_printf(page, "%lld warm-up step%s", (long long)row->warmup,
				       plural((size_t)row->warmup));
	return row->graph ? "a CUDA graph" : "no CUDA graph";
}

/* A table for each setting that differs between rows that are otherwise equal. */
void rfl_report__speedups(const struct rfl_report *r, struct rfl_page *page)
{
	static const struct {
		enum rfl_sweep_by by;
		const char *what;
	} settings[] = {
		{ RFL_SWEEP_BY_PRECISION, "Precision" },
		{ RFL_SWEEP_BY_GRAPH, "Compiled (CUDA graph)" },
		{ RFL_SWEEP_BY_ATTENTION, "Attention implementation" },
		{ RFL_SWEEP_BY_WARMUP, "Warm-up" },
	};
	const size_t first = page->n;

	if (!have_runs(r, page))
		return;
	for (size_t k = 0; k < RFL_ARRAY_LEN(settings); k++) {
		const struct rfl_sweep_row *base;
		struct rfl_table *t;

		rfl_sweep_compare(r->work->sweep, settings[k].by);
		base = say_speedups(page, r->work->sweep, settings[k].what);
		t = rfl_sweep_table(r->work->sweep, RFL_SWEEP_SPEEDUPS, RFL_SWEEP_BY_NONE);
		if (base)
			rfl_table_note(t, "Speed-ups over the otherwise equal row with %s.",
				       setting_of(page, base, settings[k].by));
		rfl_page_table(page, settings[k].what, t);
	}
	if (page->n == first)
		rfl_page_para(page,
			      "No two configurations differ in precision, CUDA graph, form of "
			      "attention or warm-up only. 'roofline %s --precision fp32 bf16' "
			      "measures two precisions.",
			      r->kind == RFL_REPORT_LM ? "bench lm" : "bench attention");
}

static void put_sums(struct rfl_page *page)
{
	rfl_page_section(page, "Sums in low precision");
	rfl_page_para(
		page,
		"The same sum in several precisions, as by 'roofline bench accumulate'. It is "
		"computed, not measured: additions are rounded to nearest as IEEE 754 requires.");
	rfl_page_table(page, "0.01, added 1000 times", rfl_accumulate_table(0.01, 1000));
}

void rfl_report__memory(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_sweep *s = r->work->sweep;
	size_t measured = 0, out = 0;
	double least = INFINITY, most = 0;

	if (!have_runs(r, page))
		return;
	for (size_t i = 0; i < s->n; i++) {
		const double ratio = s->rows[i].ratio;

		out += strcmp(s->rows[i].status, "oom") == 0;
		if (!(ratio > 0))
			continue;
		measured++;
		least = fmin(least, ratio);
		most = fmax(most, ratio);
	}
	if (measured)
		rfl_page_para(page,
			      "The measured peak of %zu of %zu configuration%s is %.3g%s times the "
			      "predicted one.",
			      measured, s->n, plural(s->n), least,
			      most - least < 5e-4 ? "" : rfl_page_printf(page, " to %.3g", most));
	else
		rfl_page_para(
			page,
			"Memory was not measured, only predicted; --profile-memory records it.");
	if (out)
		rfl_page_para(page, "%zu configuration%s ran out of memory: 'oom' in the tables.",
			      out, plural(out));
	rfl_page_table(page, "Predicted and measured memory of a step",
		       rfl_sweep_table(s, RFL_SWEEP_MEMORY, RFL_SWEEP_BY_NONE));
	rfl_report__charts(r, page, "timeline", 1, SIZE_MAX, "Memory over the layers of a step");
	if (r->kind == RFL_REPORT_LM)
		put_sums(page);
}

void rfl_report__scaling(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t at = page->n;

	if (!have_runs(r, page))
		return;
	rfl_page_para(page,
		      "The charts show the times of the forward pass, the backward pass and the "
		      "step, and the peak memory, against the context length.");
	rfl_report__charts(r, page, "scaling", 1, SIZE_MAX,
			   "Time and memory against the context length");
	if (page->n == at + 1)
		page->n = at;
}

/* Add the table of one mode in one environment. */
static void put_generation(const struct rfl_report *r, struct rfl_page *page, const char *env,
			   const char *mode, const char *title)
{
	const struct rfl_run **runs =
		rfl_arena_array(page->arena, r->runs->n + 1, sizeof(struct rfl_run *));
	const struct rfl_ledger_row **rows =
		rfl_arena_array(page->arena, r->runs->n + 1, sizeof(struct rfl_ledger_row *));
	struct rfl_generation *of = rfl_arena_array(page->arena, r->repeats->n, sizeof(*of));
	size_t n = 0, nruns;

	for (size_t i = 0; i < r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];
		RFL_AUTO(buf) net = { .len = 0 };

		if (!rfl_text_same(c->row->mode, mode) || !rfl_text_same(c->row->env, env) ||
		    !c->row->precision || c->row->batch < 1 || !(nruns = runs_of(r, c, runs)))
			continue;
		for (size_t k = 0; k < nruns; k++)
			rows[k] = rfl_runs_row(r->runs, runs[k]);
		rfl_generation_of(rows, nruns,
				  rfl_runs_network(r->runs, runs[0], &net) ? rfl_buf_str(&net)
									   : NULL,
				  r->peaks, page->arena, &of[n++]);
	}
	rfl_page_table(page, rfl_page_printf(page, "%s: %s", env, title),
		       rfl_generation_table(of, n, false));
}

void rfl_report__generation(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t n = r->repeats ? r->repeats->n : 0;
	RFL_AUTO(texts) envs = { .arena = NULL };

	for (size_t i = 0; i < n; i++)
		if (rfl_step_caches(r->repeats->configs[i].row->mode))
			(void)rfl_report__env(&envs, r->repeats->configs[i].row->env);
	if (!has_generation(r))
		return;
	(void)HAVE_PEAKS(r, page);
	for (size_t k = 0; k < envs.index.n; k++) {
		const char *env = envs.index.rows[k];

		put_generation(r, page, env, "decode", "steps that generate a token per sequence");
		put_generation(r, page, env, "prefill",
			       "prompts; the step is the time to the first token");
	}
	rfl_report__charts(r, page, "decode", 2, SIZE_MAX, "Tokens per second against the batch");
}
