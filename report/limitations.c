/*
 * limitations.c - the limitations of a report: everything that was not measured, failed, was
 * skipped or is doubtful, with the reason.
 */
#include "report/report_impl.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "roofline/doubts.h"

#define FAILURES_MOST 30 /* kinds of failed runs to list */

static void item(struct rfl_page *page, const char *text)
{
	rfl_page_item(page, "%s.", text);
}

/* "3 of 4 points ...", unless there are none. */
static void say_share(struct rfl_page *page, const char *before, size_t n, size_t of,
		      const char *what, const char *says)
{
	if (n)
		rfl_page_item(page, "%s%zu of %zu %s%s %s.", before, n, of, what, plural(of), says);
}

static const enum rfl_ledger_at failure[] = { RFL_LEDGER_AT_status, RFL_LEDGER_AT_error_text };

static uint64_t failure_hash(const void *row)
{
	return rfl_ledger_hash(failure, RFL_ARRAY_LEN(failure), row);
}

static bool failures_alike(const void *a, const void *b)
{
	return rfl_ledger_same(failure, RFL_ARRAY_LEN(failure), a, b);
}

/* Failed runs, with the number of each status and error. */
static void say_failed_runs(const struct rfl_report *r, struct rfl_page *page)
{
	RFL_AUTO(row_index) kinds = { .hash = failure_hash, .alike = failures_alike };
	const size_t n = r->repeats ? r->repeats->nfailed : 0;
	size_t *count = rfl_arena_array(page->arena, n, sizeof(*count));

	for (size_t i = 0; i < n; i++)
		count[rfl_row_index_put(&kinds, rfl_runs_row(r->runs, r->repeats->failed[i]))]++;
	for (size_t i = 0; i < kinds.n && i < FAILURES_MOST; i++) {
		const struct rfl_ledger_row *row = kinds.rows[i];

		rfl_page_item(page, "%zu run%s ended with status %s (first: %s)%s%s.", count[i],
			      plural(count[i]), row->status ? row->status : "unknown",
			      row->label ? row->label : "no label", row->error_text ? ": " : "",
			      row->error_text ? row->error_text : "");
	}
	if (kinds.n > FAILURES_MOST)
		rfl_page_item(page, "Runs ended with %zu other errors.", kinds.n - FAILURES_MOST);
}

/* Configurations that ran once, and those that 'points --skip-missing' omitted. */
static void say_configurations(const struct rfl_report *r, struct rfl_page *page)
{
	size_t single = 0, n = 0;

	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		single += r->repeats->configs[i].n == 1;
		n += r->repeats->configs[i].n > 0;
	}
	say_share(page, "", single, n, "configuration",
		  "had only one run, so the spread is unknown");
	say_share(page, "", r->points && n > r->points->n ? n - r->points->n : 0, n,
		  "configuration",
		  "with a successful run had no ceiling or no count for 'roofline points', or ran "
		  "after it");
}

static void say_flags(const struct rfl_report *r, struct rfl_page *page)
{
	static const struct {
		const char *flag, *says;
	} flags[] = {
		{ "unstable", "had unsteady step times (flag unstable)" },
		{ "drift", "drifted within the measured window (flag drift)" },
		{ "busy", "ran beside other programs (flag busy)" },
		{ "loader_bound", "waited for the data loader (flag loader_bound)" },
		{ "throttled", "ran throttled (flag throttled)" },
		{ "not_warm", "began before the machine was warm (flag not_warm)" },
		{ "few_steps",
		  "had too few steps for the statistics of their times (flag few_steps)" },
		{ "until_missed", "did not reach the value of --until (flag until_missed)" },
	};
	const struct rfl_repeats *all = r->repeats;

	for (size_t f = 0; all && f < RFL_ARRAY_LEN(flags); f++) {
		size_t n = 0;

		for (size_t i = 0; i < all->nruns; i++) {
			const char *text = all->runs[i].run->like->flags;
			struct rfl_span rest = rfl_span_of(text ? text : ""), word;

			while (rfl_span_next_word(&rest, &word))
				n += rfl_span_is(word, flags[f].flag);
		}
		say_share(page, "", n, all->nruns, "run", flags[f].says);
	}
}

static void say_ceilings(const struct rfl_report *r, struct rfl_page *page)
{
	for (size_t i = 0; r->peaks && i < r->peaks->nenvs; i++) {
		const struct rfl_peaks_env *env = &r->peaks->envs[i];

		for (size_t k = 0; k < env->ncompute + env->nlevels; k++) {
			const bool memory = k >= env->ncompute;
			const struct rfl_peak *p = memory ? &env->levels[k - env->ncompute].peak
							  : &env->compute[k].peak;

			/* a unit that the CPU lacks limits nothing */
			if (!rfl_peak_usable(p) && p->status != RFL_PEAK_UNSUPPORTED)
				rfl_page_item(page, "%s: %s is %s%s%s.", env->name,
					      memory ? env->levels[k - env->ncompute].cell
						     : env->compute[k].cell,
					      rfl_peak_status_name(p->status),
					      p->reason ? ": " : "", p->reason ? p->reason : "");
		}
	}
}

/* One line for each cause of doubts about the ceilings in use. */
static void say_doubts(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_points *const all[] = { r->points, r->parts };
	RFL_AUTO(buf) lines = { .len = 0 };
	struct rfl_span rest, line;

	if (!r->peaks)
		return;
	if (r->points)
		(void)rfl_points_doubts(r->points, r->peaks, NULL, &lines);
	else
		(void)rfl_peaks_doubts(r->peaks, NULL, NULL, 0, &lines);
	if (r->points)
		(void)rfl_points_other_devices(r->points, r->peaks, &lines);
	rest = rfl_span_of(rfl_buf_str(&lines));
	while (rfl_span_next_line(&rest, &line))
		rfl_page_item(page, "Doubtful ceilings: %.*s.", (int)line.len, line.at);
	rfl_buf_reset(&lines);
	for (size_t i = 0; i < r->peaks->nenvs; i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(all); k++)
			if (all[k])
				rfl_points_caveats(all[k], &r->peaks->envs[i],
						   rfl_path_base(r->peaks->path), &lines);
	rest = rfl_span_of(rfl_buf_str(&lines));
	while (rfl_span_next_line(&rest, &line))
		rfl_page_item(page, "%.*s.", (int)line.len, line.at);
}

static void say_points(const struct rfl_report *r, struct rfl_page *page)
{
	size_t rated = 0, given = 0, counted = 0, lower = 0, doubtful = 0;
	const size_t n = r->points ? r->points->n : 0;
	bool ledger = false, peaks = false; /* computed from other files than the report's */

	for (size_t i = 0; i < n; i++) {
		const struct rfl_point *p = &r->points->points[i];
		const char *source = p->bytes_source ? p->bytes_source : "";
		const bool has_rate = isfinite(p->percent_of_attainable);

		rated += has_rate;
		given += has_rate && !(rfl_text_same(p->peak_gflops_status, "measured") &&
				       rfl_text_same(p->peak_gbps_status, "measured"));
		lower += strcmp(source, "lower-bound") == 0;
		counted += strncmp(source, "unfused", 7) == 0 || strcmp(source, "fused") == 0 ||
			   strcmp(source, "compulsory") == 0;
		doubtful += p->counters_validity && strcmp(p->counters_validity, "ok") != 0;
		ledger |=
			r->runs_hash && p->ledger_hash && strcmp(p->ledger_hash, r->runs_hash) != 0;
		peaks |= r->peaks && p->peaks_hash && strcmp(p->peaks_hash, r->peaks->hash) != 0;
	}
	if (ledger)
		item(page, "The points were computed from a different state of the ledger; run "
			   "'roofline points' again");
	if (peaks)
		item(page, "The points were computed with different ceilings; run 'roofline "
			   "points' again");
	say_share(page, "The shares of the roof of ", given, rated, "point",
		  "depend on a ceiling that was not measured on the machine");
	say_share(page, "The bytes of ", counted, n, "point",
		  "are counted from the network, not measured: caches and fused kernels can move "
		  "fewer, padding and copies more");
	say_share(page, "The bytes of ", lower, n, "point",
		  "are a lower bound (rate / bandwidth), which places them on the roof");
	say_share(page, "The counters of ", doubtful, n, "point",
		  "are incomplete, estimated or doubtful");
}

static void say_counters(const struct rfl_report *r, struct rfl_page *page)
{
	RFL_AUTO(buf) sets = { .len = 0 };

	for (size_t i = 0; r->captures && i < r->captures->n; i++) {
		const struct rfl_capture *c = r->captures->captures[i];

		for (size_t k = 0; k < c->nrefusals; k++) {
			rfl_buf_reset(&sets);
			if (rfl_capture_refused_alike(c, k, &sets))
				rfl_page_item(page, "Counters of %s: %s not counted: %s.",
					      c->label ? c->label : "a run", rfl_buf_str(&sets),
					      c->refusals[k].reason);
		}
	}
}

/* List totals that are not sound, with the number of captures for each reason. */
static void say_totals(const struct rfl_report *r, struct rfl_page *page)
{
	static const struct {
		enum rfl_quantity quantity;
		const char *name;
	} totals[] = { { RFL_QUANTITY_FLOPS, "FLOPs" }, { RFL_QUANTITY_DRAM, "DRAM bytes" } };
	const struct rfl_captures *all = r->captures;

	for (size_t q = 0; all && q < RFL_ARRAY_LEN(totals); q++)
		for (size_t i = 0; i < all->n; i++) {
			const struct rfl_amount *t = &all->captures[i]->total[totals[q].quantity];
			const char *label = all->captures[i]->label;
			size_t n = 0, before = 0;

			if (t->validity == RFL_VALID || !t->reason)
				continue;
			for (size_t k = 0; k < all->n; k++) {
				const struct rfl_amount *o =
					&all->captures[k]->total[totals[q].quantity];
				const bool alike = o->validity == t->validity &&
						   rfl_text_same(o->reason, t->reason);

				n += alike;
				before += alike && k < i;
			}
			if (before == 0)
				rfl_page_item(page, "%s of %zu capture%s: %s (first: %s): %s.",
					      totals[q].name, n, plural(n),
					      rfl_validity_names[t->validity],
					      label ? label : "no label", t->reason);
		}
}

static void say_synthetic(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t all = r->repeats ? r->repeats->nruns : 0;
	size_t n = 0;

	for (size_t i = 0; i < all; i++)
		n += rfl_text_same(r->repeats->runs[i].run->like->data_mode, "synthetic");
	say_share(page, "", n, all, "run",
		  "used synthetic data, without reading or decoding files");
}

static void say_notes(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_span rest, line;

	if (!r->repeats)
		return;
	rest = rfl_span_of(rfl_buf_str(&r->repeats->notes));
	while (rfl_span_next_line(&rest, &line))
		/* see say_failed_runs(); labels do not have the context length */
		if (!rfl_span_starts(line, "failed: ") &&
		    !(rfl_span_starts(line, "mixed: ") && r->kind >= RFL_REPORT_LM))
			rfl_page_item(page, "%.*s.", (int)line.len, line.at);
}

static rfl_section *const limitations[] = {
	say_failed_runs, say_configurations, say_flags,  say_points,    say_ceilings,
	say_doubts,      say_counters,       say_totals, say_synthetic, say_notes,
};

void rfl_report__limitations(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t first = page->n;

	for (size_t i = 0; i < RFL_ARRAY_LEN(limitations); i++)
		limitations[i](r, page);
	if (page->n == first)
		item(page, "These files show none");
}
