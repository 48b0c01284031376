/*
 * limitations.c - the limitations of a report: everything that was not measured, failed, was
 * skipped or is doubtful, with the reason.
 */
#include "report/report_impl.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "roofline/merge.h"

#define FAILURES_MOST 30 /* kinds of failed runs to list */

static void item(struct rfl_page *page, const char *text)
{
	rfl_page_text(page, RFL_BLOCK_ITEM, "%s", text);
}

static void say_missing_inputs(const struct rfl_report *r, struct rfl_page *page)
{
	const void *counters = r->captures;

	for (size_t i = 0; r->points && i < r->points->n; i++)
		if (r->points->points[i].counters_source)
			counters = r->points; /* measured values without their file */
	const struct {
		const void *input;
		const char *says;
	} inputs[] = {
		{ r->points, "No points: the report cannot relate the runs to the ceilings" },
		{ r->peaks, "No ceilings (--peaks)" },
		{ r->complexity, "No counts of the networks (--complexity-json)" },
		{ counters, "No hardware counters (--counters): no FLOPs or bytes are measured" },
		{ r->matrix, "No matrix: missing runs are unknown" },
		{ r->nenvs ? r->envs : NULL, "No record of the environments (--env)" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(inputs); i++)
		if (!inputs[i].input)
			rfl_page_text(page, RFL_BLOCK_ITEM, "%s.", inputs[i].says);
}

static void say_failed_runs(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_ledger *ledger = r->runs ? r->runs->ledger : NULL;
	size_t kinds = 0;

	for (size_t i = 0; ledger && i < ledger->nrows; i++) {
		const struct rfl_ledger_row *row = &ledger->rows[i];
		size_t n = 0;

		if (!row->status || strcmp(row->status, "ok") == 0)
			continue;
		for (size_t k = 0; k < ledger->nrows; k++) {
			if (!rfl_text_same(ledger->rows[k].status, row->status) ||
			    !rfl_text_same(ledger->rows[k].error_text, row->error_text))
				continue;
			if (k < i) /* already listed */
				break;
			n++;
		}
		if (n && kinds++ < FAILURES_MOST)
			rfl_page_text(page, RFL_BLOCK_ITEM,
				      "%zu run%s ended with status %s (first: %s)%s%s.", n,
				      plural(n), row->status, row->label ? row->label : "no label",
				      row->error_text ? ": " : "",
				      row->error_text ? row->error_text : "");
	}
	if (kinds > FAILURES_MOST)
		rfl_page_text(page, RFL_BLOCK_ITEM, "Runs ended with %zu other errors.",
			      kinds - FAILURES_MOST);
}

static void say_few_repeats(const struct rfl_report *r, struct rfl_page *page)
{
	size_t single = 0, n = 0;

	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		single += r->repeats->configs[i].n == 1;
		n += r->repeats->configs[i].n > 0;
	}
	if (single)
		rfl_page_text(page, RFL_BLOCK_ITEM,
			      "%zu of %zu configuration%s %s run once: %s spread is unknown.",
			      single, n, plural(n), single == 1 ? "was" : "were",
			      single == 1 ? "its" : "their");
}

static void say_flags(const struct rfl_report *r, struct rfl_page *page)
{
	static const struct {
		const char *flag, *says;
	} flags[] = {
		{ "unstable", "had unsteady step times" },
		{ "drift", "drifted within the measured window" },
		{ "loader_bound", "waited for the data loader" },
		{ "throttled", "ran throttled" },
		{ "not_warm", "began before the machine was warm" },
		{ "few_steps", "had too few steps for the statistics of their times" },
		{ "until_missed", "did not reach the value of --until" },
	};
	const struct rfl_ledger *ledger = r->runs ? r->runs->ledger : NULL;

	for (size_t f = 0; ledger && f < RFL_ARRAY_LEN(flags); f++) {
		size_t n = 0;

		for (size_t i = 0; i < ledger->nrows; i++) {
			struct rfl_span rest =
				rfl_span_of(ledger->rows[i].flags ? ledger->rows[i].flags : "");
			struct rfl_span word;

			while (rfl_span_next_word(&rest, &word))
				n += rfl_span_is(word, flags[f].flag);
		}
		if (n)
			rfl_page_text(page, RFL_BLOCK_ITEM, "%zu of %zu run%s %s (flag %s).", n,
				      ledger->nrows, plural(ledger->nrows), flags[f].says,
				      flags[f].flag);
	}
}

/* Ceilings that limit points and were not measured, and those that are unknown. */
static void say_ceilings(const struct rfl_report *r, struct rfl_page *page)
{
	size_t given = 0, n = 0;

	for (size_t i = 0; r->points && i < r->points->n; i++) {
		const struct rfl_point *p = &r->points->points[i];

		n += isfinite(p->percent_of_attainable);
		given += isfinite(p->percent_of_attainable) &&
			 !(rfl_text_same(p->peak_gflops_status, "measured") &&
			   rfl_text_same(p->peak_gbps_status, "measured"));
	}
	if (given)
		rfl_page_text(page, RFL_BLOCK_ITEM,
			      "%zu of %zu point%s %s under a ceiling that was not measured on the "
			      "machine; %s of the roof depends on a value from elsewhere.",
			      given, n, plural(n), given == 1 ? "is" : "are",
			      given == 1 ? "its share" : "their share");
	for (size_t i = 0; r->peaks && i < r->peaks->nenvs; i++) {
		const struct rfl_peaks_env *env = &r->peaks->envs[i];

		for (size_t k = 0; k < env->ncompute + env->nlevels; k++) {
			const bool memory = k >= env->ncompute;
			const struct rfl_peak *p = memory ? &env->levels[k - env->ncompute].peak
							  : &env->compute[k].peak;

			/* a unit that the processor lacks limits nothing */
			if (!rfl_peak_usable(p) && p->status != RFL_PEAK_UNSUPPORTED)
				rfl_page_text(page, RFL_BLOCK_ITEM, "%s: %s is %s%s%s.", env->name,
					      memory ? env->levels[k - env->ncompute].cell
						     : env->compute[k].cell,
					      rfl_peak_status_name(p->status),
					      p->reason ? ": " : "", p->reason ? p->reason : "");
		}
	}
}

static void doubt(const char *env, const char *cell, const char *text, void *ctx)
{
	rfl_page_text(ctx, RFL_BLOCK_ITEM, "Doubtful: %s: %s: %s.", env, cell, text);
}

static void say_doubts(const struct rfl_report *r, struct rfl_page *page)
{
	if (r->peaks)
		(void)rfl_peaks_check(r->peaks, NULL, doubt, page);
	if (r->peaks && r->points)
		(void)rfl_merge_check_devices(r->points, r->peaks, doubt, page);
}

static void say_bytes(const struct rfl_report *r, struct rfl_page *page)
{
	size_t counted = 0, lower = 0, doubtful = 0, n = 0;

	for (size_t i = 0; r->points && i < r->points->n; i++) {
		const struct rfl_point *p = &r->points->points[i];
		const char *source = p->bytes_source ? p->bytes_source : "";

		n++;
		lower += strcmp(source, "lower-bound") == 0;
		counted += strncmp(source, "unfused", 7) == 0 || strcmp(source, "fused") == 0 ||
			   strcmp(source, "compulsory") == 0;
		doubtful += p->counters_validity && strcmp(p->counters_validity, "ok") != 0;
	}
	if (counted)
		rfl_page_text(page, RFL_BLOCK_ITEM,
			      "The bytes of %zu of %zu point%s are counted from the network, not "
			      "measured: caches and fused kernels can move fewer, padding and "
			      "copies more.",
			      counted, n, plural(n));
	if (lower)
		rfl_page_text(page, RFL_BLOCK_ITEM,
			      "The bytes of %zu of %zu point%s are a lower bound (rate / "
			      "bandwidth), which places them on the roof.",
			      lower, n, plural(n));
	if (doubtful)
		rfl_page_text(page, RFL_BLOCK_ITEM,
			      "The counters of %zu point%s are incomplete, estimated or doubtful.",
			      doubtful, plural(doubtful));
}

static void say_counters(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_buf sets;

	rfl_buf_init(&sets, 0);
	for (size_t i = 0; r->captures && i < r->captures->n; i++) {
		const struct rfl_capture *c = r->captures->captures[i];

		for (size_t k = 0; k < c->nrefusals; k++) {
			rfl_buf_reset(&sets);
			if (rfl_capture_refused_alike(c, k, &sets))
				rfl_page_text(page, RFL_BLOCK_ITEM,
					      "Counters of %s: %s not counted: %s.",
					      c->label ? c->label : "a run", rfl_buf_str(&sets),
					      c->refusals[k].reason);
		}
	}
	rfl_buf_fini(&sets);
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
				rfl_page_text(page, RFL_BLOCK_ITEM,
					      "%s of %zu capture%s: %s (first: %s): %s.",
					      totals[q].name, n, plural(n),
					      rfl_validity_names[t->validity],
					      label ? label : "no label", t->reason);
		}
}

static void say_synthetic(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_ledger *ledger = r->runs ? r->runs->ledger : NULL;
	size_t n = 0;

	for (size_t i = 0; ledger && i < ledger->nrows; i++)
		n += rfl_text_same(ledger->rows[i].data_mode, "synthetic");
	if (n)
		rfl_page_text(page, RFL_BLOCK_ITEM,
			      "%zu of %zu run%s used synthetic data, without reading or decoding "
			      "%s.",
			      n, ledger->nrows, plural(ledger->nrows),
			      r->kind == RFL_REPORT_LM || r->kind == RFL_REPORT_ATTENTION
				      ? "files"
				      : "images");
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
			rfl_page_text(page, RFL_BLOCK_ITEM, "%.*s.", (int)line.len, line.at);
}

/* Report points that were computed from files other than those of the report. */
static void say_other_files(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_point *p = r->points ? r->points->points : NULL;
	bool ledger = false, peaks = false;

	for (size_t i = 0; p && i < r->points->n; i++, p++) {
		ledger |=
			r->runs_hash && p->ledger_hash && strcmp(p->ledger_hash, r->runs_hash) != 0;
		peaks |= r->peaks && p->peaks_hash && strcmp(p->peaks_hash, r->peaks->hash) != 0;
	}
	if (ledger)
		item(page, "The points were computed from a different state of the ledger; "
			   "run 'roofline points' again.");
	if (peaks)
		item(page, "The points were computed with different ceilings; run 'roofline "
			   "points' again.");
}

/* Report successful configurations that 'points --skip-missing' left out. */
static void say_left_out(const struct rfl_report *r, struct rfl_page *page)
{
	size_t n = 0;

	for (size_t i = 0; r->points && r->repeats && i < r->repeats->n; i++)
		n += r->repeats->configs[i].n > 0;
	if (r->points && n > r->points->n)
		rfl_page_text(
			page, RFL_BLOCK_ITEM,
			"%zu of %zu configurations with a successful run have no point: "
			"'roofline points' found no ceiling or no count for them, or the file "
			"is older.",
			n - r->points->n, n);
}

static void (*const limitations[])(const struct rfl_report *r, struct rfl_page *page) = {
	say_missing_inputs, say_other_files, say_left_out, say_failed_runs, say_few_repeats,
	say_flags,          say_ceilings,    say_doubts,   say_bytes,       say_counters,
	say_totals,         say_synthetic,   say_notes,
};

void rfl_report__limitations(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t first = page->n;

	for (size_t i = 0; i < RFL_ARRAY_LEN(limitations); i++)
		limitations[i](r, page);
	if (page->n == first)
		item(page, "These files show none.");
}
