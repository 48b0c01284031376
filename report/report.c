/* report.c - the order of the sections in each kind of report, and the data for page.js. */
#include "report/report_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "roofline/verdict.h"

const char *const rfl_report_kinds[] = { "run", "project", "lm", "attention", "training", NULL };

/* ---- names ---- */

/* Configurations of the same environment, model and precision are next to each other. */
struct rfl_report_block {
	const struct rfl_repeats_config *first, *end; /* the last one that was used */
	struct rfl_facts_apart apart;
};

/* Go to the block of a configuration. */
static void find_block(const struct rfl_repeats *all, const struct rfl_repeats_config *c,
		       struct rfl_report_block *ret)
{
	static const enum rfl_ledger_at block[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						    RFL_LEDGER_AT_precision };

	*ret = (struct rfl_report_block){ .first = c, .end = c };
	while (ret->first > all->configs &&
	       rfl_ledger_same(block, RFL_ARRAY_LEN(block), c->row, ret->first[-1].row))
		ret->first--;
	while (ret->end < all->configs + all->n &&
	       rfl_ledger_same(block, RFL_ARRAY_LEN(block), c->row, ret->end->row))
		ret->end++;
	for (c = ret->first; c < ret->end; c++)
		rfl_facts_apart_add(&ret->apart, c->row);
}

const char *rfl_report__name(const struct rfl_report *r, struct rfl_page *page,
			     const struct rfl_repeats_config *c)
{
	struct rfl_buf facts, out;

	rfl_buf_init(&facts, 0);
	rfl_buf_init(&out, 0);
	if (c < r->block->first || c >= r->block->end)
		find_block(r->repeats, c, r->block);
	rfl_buf_printf(&out, "%s %s bs%lld on %s", c->row->model, c->row->precision,
		       (long long)c->row->batch, c->row->env);
	rfl_facts_apart_put(&r->block->apart, c->row, &facts);
	rfl_buf_puts(&out, facts.len ? ", " : "");
	rfl_variant_say(rfl_buf_str(&facts), &out);
	out.failed |= facts.failed;
	rfl_buf_fini(&facts);
	return rfl_page_keep(page, &out);
}

const char *rfl_report__point_name(struct rfl_page *page, const struct rfl_point *p)
{
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	rfl_buf_printf(&out, "%s", p->model ? p->model : "a point");
	if (p->precision)
		rfl_buf_printf(&out, " %s", p->precision);
	if (p->batch >= 0)
		rfl_buf_printf(&out, " bs%lld", (long long)p->batch);
	if (p->mode && strcmp(p->mode, "train") != 0)
		rfl_buf_printf(&out, " %s", p->mode);
	rfl_buf_printf(&out, " on %s", p->env);
	if (p->part)
		rfl_buf_printf(&out, ", %s %s", p->part_kind ? p->part_kind : "part", p->part);
	rfl_buf_puts(&out, p->variant ? ", " : "");
	rfl_variant_say(p->variant, &out);
	return rfl_page_keep(page, &out);
}

bool rfl_report__have(struct rfl_page *page, const void *input, const char *what,
		      const char *option, const char *command)
{
	if (!input)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "Missing: %s. Create the file with '%s', and add %s FILE to the "
			      "command of this report.",
			      what, command, option);
	return input;
}

bool rfl_report__have_points(struct rfl_page *page, const struct rfl_report *r)
{
	if (r->points || !r->points_path)
		return rfl_report__have(page, r->points, "points under the roof", "--points",
					"roofline points --metrics logs/metrics.csv --peaks "
					"peaks.json --output roofline_points.csv");
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "%s has no points; 'roofline points' writes one for each configuration that "
		      "has a successful run.",
		      r->points_path);
	return false;
}

size_t rfl_report__rows(struct rfl_page *page, size_t n, const char *what, const char *others)
{
	if (n > RFL_REPORT_ROWS)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "The first %zu of %zu %s; %s.",
			      RFL_REPORT_ROWS, n, what, others);
	return n < RFL_REPORT_ROWS ? n : RFL_REPORT_ROWS;
}

/* ---- the kinds of reports ---- */

struct section {
	int level; /* of the heading */
	const char *heading;
	const char *author; /* task for the author of a project; NULL: none */
	rfl_section *write; /* may be NULL */
};

static const struct section run_sections[] = {
	{ 2, "Summary", NULL, rfl_report__summary },
	{ 2, "Design", NULL, rfl_report__design },
	{ 2, "Environment", NULL, rfl_report__environment },
	{ 2, "Complexity", NULL, rfl_report__complexity },
	{ 2, "Throughput and variability", NULL, rfl_report__throughput },
	{ 2, "Phases", NULL, rfl_report__phases },
	{ 2, "Counters", NULL, rfl_report__counters },
	{ 2, "Ceilings", NULL, rfl_report__peaks },
	{ 2, "Rooflines", NULL, rfl_report__figures },
	{ 2, "Points", NULL, rfl_report__points },
	{ 2, "Layers and kernels", NULL, rfl_report__parts },
	{ 2, "Analysis", NULL, rfl_report__analysis },
	{ 2, "Limitations", NULL, rfl_report__limitations },
	{ 2, "Commands", NULL, rfl_report__commands },
	{ 2, "Files", NULL, rfl_report__files },
};

/* The sections of the rubric with their weights. */
static const struct section project_sections[] = {
	{ 2, "Abstract",
	  "Write at most 150 words: the context, what was measured where, and the two or three "
	  "main findings with their numbers. Add your name, the course, and the commit of the "
	  "repository. The main numbers:",
	  rfl_report__summary },
	{ 2, "1. Experiment design (10 %)", NULL, NULL },
	{ 3, "Objective and hypothesis",
	  "What is the experiment to decide? Which models did you expect to be memory-bound and "
	  "which compute-bound in each environment, before you saw the results, and why?",
	  NULL },
	{ 3, "Environments, models and run matrix",
	  "Why these environments, models, batch sizes and precisions?", rfl_report__design },
	{ 2, "2. Complexity estimation (20 %)",
	  "Explain the expected memory traffic against compute of each model, and how the batch "
	  "sizes follow from parameters, gradients, optimizer state and activations.",
	  rfl_report__complexity },
	{ 2, "3. Measurement (15 %)",
	  "What else ran on the machines? Which profilers did you use, with which options, and how "
	  "much time did they add?",
	  NULL },
	{ 3, "Throughput", NULL, rfl_report__throughput },
	{ 3, "Phases of a step", NULL, rfl_report__phases },
	{ 3, "Counters", NULL, rfl_report__counters },
	{ 2, "4. Roofline modelling (20 %)", NULL, rfl_report__method },
	{ 3, "Ceilings", NULL, rfl_report__peaks },
	{ 3, "Rooflines", NULL, rfl_report__figures },
	{ 3, "Points",
	  "Explain the place of each point, and what would move it up or to the right: data reuse, "
	  "fusion, precision, batch size.",
	  rfl_report__points },
	{ 3, "Layers and kernels", NULL, rfl_report__parts },
	{ 2, "5. Analysis (35 %)",
	  "Interpret the statements below: which did you expect, which contradict the hypothesis, "
	  "and what explains the differences between environments (bare metal and cloud, "
	  "virtualisation), models and precisions?",
	  rfl_report__analysis },
	{ 3, "Limitations", "What do these limitations mean for your conclusions?",
	  rfl_report__limitations },
	{ 2, "6. Reproducibility",
	  "Add what the record does not have: zone and instance type, container image and digest, "
	  "storage, the origin of the data.",
	  rfl_report__environment },
	{ 3, "Commands", NULL, rfl_report__commands },
	{ 2, "7. References and appendix",
	  "Cite the tools, data sets, data sheets and papers that you used.", NULL },
	{ 3, "Files", NULL, rfl_report__files },
};

/* Also those of attention. */
static const struct section lm_sections[] = {
	{ 2, "Summary", NULL, rfl_report__summary },
	{ 2, "Design", NULL, rfl_report__design },
	{ 2, "Environment", NULL, rfl_report__environment },
	{ 2, "Commands", NULL, rfl_report__commands },
	{ 2, "Times", NULL, rfl_report__sweep },
	{ 2, "Speed-ups", NULL, rfl_report__speedups },
	{ 2, "Scaling with the context length", NULL, rfl_report__scaling },
	{ 2, "Memory", NULL, rfl_report__memory },
	{ 2, "Ceilings", NULL, rfl_report__peaks },
	{ 2, "Rooflines", NULL, rfl_report__figures },
	{ 2, "Analysis", NULL, rfl_report__analysis },
	{ 2, "Limitations", NULL, rfl_report__limitations },
	{ 2, "Files", NULL, rfl_report__files },
};

static const struct section training_sections[] = {
	{ 2, "Summary", NULL, rfl_report__training_summary },
	{ 2, "Configuration", NULL, rfl_report__training_design },
	{ 2, "Environment", NULL, rfl_report__environment },
	{ 2, "Complexity", NULL, rfl_report__complexity },
	{ 2, "Loss, accuracy and time", NULL, rfl_report__training_results },
	{ 2, "Curves", NULL, rfl_report__training_curves },
	{ 2, "Phases", NULL, rfl_report__phases },
	{ 2, "Rooflines", NULL, rfl_report__figures },
	{ 2, "Analysis", NULL, rfl_report__analysis },
	{ 2, "Limitations", NULL, rfl_report__limitations },
	{ 2, "Commands", NULL, rfl_report__training_commands },
	{ 2, "Files", NULL, rfl_report__files },
};

#define KIND(title_, sections_, runs_, command_)                             \
	{                                                                    \
		title_, sections_, RFL_ARRAY_LEN(sections_), runs_, command_ \
	}

static const struct {
	const char *title;
	const struct section *sections;
	size_t n;
	const char *runs, *command; /* what it shows and the command that runs it; NULL: any runs */
} kinds[] = {
	[RFL_REPORT_RUN] = KIND("Roofline report", run_sections, NULL, NULL),
	[RFL_REPORT_PROJECT] = KIND("Performance modelling of neural network training with the "
				    "roofline model",
				    project_sections, NULL, NULL),
	[RFL_REPORT_LM] = KIND("Language models: time, memory and roofline", lm_sections,
			       "runs of language models", "roofline bench lm"),
	[RFL_REPORT_ATTENTION] =
		KIND("Attention: time, memory and roofline", lm_sections,
		     "runs of the attention benchmark", "roofline bench attention"),
	[RFL_REPORT_TRAINING] =
		KIND("Training to accuracy", training_sections, "trainings", "roofline train"),
};

static void write_sections(const struct rfl_report *r, const struct section *s, size_t n,
			   struct rfl_page *page)
{
	for (; n-- > 0; s++) {
		rfl_page_heading(page, s->level, "%s", s->heading);
		if (s->author)
			rfl_page_text(page, RFL_BLOCK_AUTHOR, "%s", s->author);
		if (s->write)
			s->write(r, page);
	}
}

/* The words for the verdicts, by the column 'bound'. */
static json_t *words_of_bounds(void)
{
	json_t *all = json_object();

	for (enum rfl_bound b = 0; b < RFL_BOUND_UNKNOWN; b++)
		(void)json_object_set_new(all, rfl_bound_words[b].word,
					  json_pack("{s:s, s:s}", "adjective",
						    rfl_bound_words[b].adjective, "means",
						    rfl_bound_words[b].means));
	return all;
}

/* The bandwidth of a level that all cores share, in GB/s; NaN: not in the file. */
static double bandwidth_of(const struct rfl_peaks_env *env, const char *level)
{
	for (size_t i = 0; env && i < env->nlevels; i++) {
		const struct rfl_peak_level *l = &env->levels[i];

		if (rfl_text_same(l->level, level) && rfl_peak_usable(&l->peak) &&
		    !(rfl_text_same(l->scope, "core") && env->units > 1))
			return l->peak.value / 1e9;
	}
	return NAN;
}

/* The verdicts on a point under the bandwidth of each level of memory. */
static json_t *verdicts_of(const struct rfl_point *p, const struct rfl_peaks_env *env)
{
	const struct {
		const char *level;
		double ai;
	} levels[] = { { "DRAM", p->ai }, { "L2", p->ai_l2 }, { "L1", p->ai_l1 } };
	json_t *all = json_object();

	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++) {
		struct rfl_point at = *p;
		struct rfl_point_verdict v;

		if (i > 0) {
			at.ai = levels[i].ai;
			at.ai_lo = at.ai_hi = at.uncertainty = NAN;
			at.bound = at.bytes_source = at.verdict = NULL;
			at.peak_gbps = bandwidth_of(env, levels[i].level);
		}
		v = rfl_point_verdict(&at);
		if (v.bound != RFL_BOUND_UNKNOWN && v.roof != RFL_BOUND_UNKNOWN && levels[i].ai > 0)
			(void)json_object_set_new(
				all, levels[i].level,
				json_pack("{s:s, s:s, s:b}", "bound", rfl_bound_words[v.bound].word,
					  "roof", rfl_bound_words[v.roof].word, "over", v.over));
	}
	return all;
}

/* A point as a JSON object with the known columns. Texts may contain invalid UTF-8, which the
 * writer replaces. NULL: out of memory */
static json_t *point_of(const struct rfl_point *p, const struct rfl_peaks_env *env)
{
	json_t *o = json_object();
	struct rfl_buf words;

	rfl_buf_init(&words, 0);
	rfl_variant_say(p->variant, &words);
	for (size_t i = 0; o && i < RFL_POINT_NCOLUMNS; i++) {
		const struct rfl_field *f = &rfl_point_fields[i];
		json_t *value;

		if (!rfl_field_known(f, p))
			continue;
		if (i == RFL_POINT_AT_variant)
			value = words.failed ? NULL : json_string_nocheck(rfl_buf_str(&words));
		else if (f->kind == RFL_FIELD_TEXT)
			value = json_string_nocheck(*rfl_field_text_at(f, p));
		else if (f->kind == RFL_FIELD_INT)
			value = json_integer(*rfl_field_int_at(f, p));
		else
			value = rfl_json_real(*rfl_field_real_at(f, p));
		if (json_object_set_new(o, f->name, value) != 0) {
			json_decref(o);
			o = NULL;
		}
	}
	rfl_buf_fini(&words);
	(void)json_object_set_new(o, "verdicts", verdicts_of(p, env));
	return o;
}

/* The name of a file without its folder, and its hash. */
static json_t *file_of(const char *path, const char *hash)
{
	/* a name may contain invalid UTF-8, which the writer replaces */
	return json_pack("{s:o, s:s}", "name", json_string_nocheck(path ? rfl_path_base(path) : ""),
			 "hash", hash);
}

/* The data for page.js: points of steps, then of parts. */
static void add_data(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_points *const lists[] = { r->points, r->parts };
	json_t *points = json_array(), *data;
	struct rfl_buf text;

	for (size_t l = 0; l < RFL_ARRAY_LEN(lists); l++)
		for (size_t i = 0; lists[l] && i < lists[l]->n; i++)
			(void)json_array_append_new(
				points, point_of(&lists[l]->points[i],
						 r->peaks ? rfl_peaks_find(r->peaks,
									   lists[l]->points[i].env)
							  : NULL));
	data = json_pack(
		"{s:s, s:o, s:o, s:O?, s:{s:o, s:o}}", "schema", "roofline.page/1", "points",
		points, "bounds", words_of_bounds(), "peaks", r->peaks_json, "files", "points",
		file_of(r->points ? r->points_path : NULL, r->points ? r->points->hash : ""),
		"peaks", file_of(r->peaks ? r->peaks->path : NULL, r->peaks ? r->peaks->hash : ""));
	rfl_buf_init(&text, 0);
	rfl_json_write_line(&text, data);
	rfl_page_data(page, &text);
	json_decref(data);
}

enum rfl_rc rfl_report_build(const struct rfl_report *r, struct rfl_page **ret, struct rfl_err *err)
{
	const bool nothing = !(r->repeats && r->repeats->n) && !r->points && !r->parts &&
			     !r->peaks && !r->complexity;
	struct rfl_report_block block = { .first = NULL };
	struct rfl_report of = *r;
	struct rfl_page *page;
	char generator[64];

	if (nothing && kinds[r->kind].runs)
		return rfl_fail(err, RFL_EMISSING, 0,
				"nothing to report: no %s; run '%s', and name its ledger "
				"with --metrics",
				kinds[r->kind].runs, kinds[r->kind].command);
	if (nothing)
		return rfl_fail(err, RFL_EMISSING, 0,
				"nothing to report: no runs, points, ceilings or counts; name "
				"files with --metrics, --points, --peaks or --complexity-json");
	(void)snprintf(generator, sizeof(generator), "roofline %s", r->version);
	page = rfl_page_new(r->format, r->title ? r->title : kinds[r->kind].title, generator);
	if (!page)
		return rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
	of.block = &block;
	if (r->kind == RFL_REPORT_LM || r->kind == RFL_REPORT_ATTENTION)
		of.sweep = rfl_report__sweep_new(r, page);
	if (r->kind == RFL_REPORT_TRAINING)
		of.trainings = rfl_report__trainings_new(r, page);
	if (!page->failed)
		write_sections(&of, kinds[r->kind].sections, kinds[r->kind].n, page);
	if (r->format == RFL_FORMAT_HTML)
		add_data(r, page);
	if (page->failed) {
		rfl_page_free(page);
		return rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
	}
	*ret = page;
	return RFL_OK;
}
