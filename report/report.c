/* report.c - the order of the sections in each kind of report, and the data for page.js. */
#include "report/report_impl.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "roofline/verdict.h"

const char *const rfl_report_kinds[] = { "run", "project", "lm", "attention", "training", NULL };

/* ---- names ---- */

const char *rfl_report__name(const struct rfl_report *r, struct rfl_page *page,
			     const struct rfl_repeats_config *c)
{
	static const enum rfl_ledger_at block[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						    RFL_LEDGER_AT_precision };
	const struct rfl_repeats_config *all = r->repeats->configs, *end = all + r->repeats->n;
	struct rfl_buf out = { .len = 0 };
	RFL_AUTO(buf) facts = { .len = 0 };
	struct rfl_report_work *w = r->work;

	if (!w->first || c < w->first || c >= w->end) {
		w->apart = (struct rfl_facts_apart){ .first = { NULL } };
		w->first = w->end = c;
		while (w->first > all &&
		       rfl_ledger_same(block, RFL_ARRAY_LEN(block), c->row, w->first[-1].row))
			w->first--;
		while (w->end < end &&
		       rfl_ledger_same(block, RFL_ARRAY_LEN(block), c->row, w->end->row))
			w->end++;
		for (const struct rfl_repeats_config *o = w->first; o < w->end; o++)
			rfl_facts_apart_add(&w->apart, o->row);
	}
	rfl_buf_printf(&out, "%s %s bs%lld on %s", c->row->model, c->row->precision,
		       (long long)c->row->batch, c->row->env);
	rfl_facts_apart_put(&w->apart, c->row, &facts);
	rfl_buf_puts(&out, facts.len ? ", " : "");
	rfl_variant_say(rfl_buf_str(&facts), &out);
	return rfl_page_keep(page, &out);
}

const char *rfl_report__step_name(struct rfl_page *page, const struct rfl_point *p)
{
	struct rfl_buf out = { .len = 0 };

	rfl_buf_puts(&out, p->model ? p->model : "a network");
	if (p->precision)
		rfl_buf_printf(&out, " %s", p->precision);
	if (p->batch >= 0)
		rfl_buf_printf(&out, " bs%lld", (long long)p->batch);
	if (p->mode && strcmp(p->mode, "train") != 0)
		rfl_buf_printf(&out, " %s", p->mode);
	rfl_buf_printf(&out, " on %s%s", p->env, p->variant ? ", " : "");
	rfl_variant_say(p->variant, &out);
	return rfl_page_keep(page, &out);
}

size_t rfl_report__env(struct rfl_texts *envs, const char *env)
{
	return rfl_texts_put(envs, env ? env : "");
}

/* ---- what is missing ---- */

void rfl_report__lacks(const struct rfl_report *r, struct rfl_page *page, const char *fmt, ...)
{
	struct rfl_report_work *w = r->work;
	struct rfl_buf out = { .len = 0 };
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	rfl_buf_vprintf(&out, fmt, ap);
	va_end(ap);
	text = rfl_page_keep(page, &out);
	for (size_t i = 0; i < w->nmissing; i++)
		if (strcmp(w->missing[i], text) == 0)
			return;
	rfl_reserve(&w->missing, &w->cap, w->nmissing + 1);
	w->missing[w->nmissing++] = text;
}

bool rfl_report__have(const struct rfl_report *r, struct rfl_page *page, const void *input,
		      const char *what, const char *option, const char *command)
{
	if (!input)
		rfl_report__lacks(r, page, "%s: create the file with '%s', and add %s FILE", what,
				  command, option);
	return input;
}

bool rfl_report__have_points(const struct rfl_report *r, struct rfl_page *page)
{
	if (!r->points && r->points_path && !r->parts)
		rfl_report__lacks(r, page,
				  "points in %s: 'roofline points' writes one for each "
				  "configuration that has a successful run",
				  r->points_path);
	else if (!r->points && !r->parts)
		(void)rfl_report__have(r, page, NULL, "points of whole steps", "--points",
				       "roofline points --metrics logs/metrics.csv --peaks "
				       "peaks.json --output roofline_points.csv");
	return r->points;
}

void rfl_report__missing(const struct rfl_report *r, struct rfl_page *page)
{
	for (size_t i = 0; i < r->work->nmissing; i++)
		rfl_page_item(page, "%c%s.", toupper((unsigned char)*r->work->missing[i]),
			      r->work->missing[i] + 1);
}

size_t rfl_report__rows(struct rfl_page *page, size_t n, const char *what, const char *others)
{
	if (n > RFL_REPORT_ROWS)
		rfl_page_para(page, "The first %zu of %zu %s; %s.", RFL_REPORT_ROWS, n, what,
			      others);
	return n < RFL_REPORT_ROWS ? n : RFL_REPORT_ROWS;
}

/* ---- the kinds of reports ---- */

struct section {
	enum rfl_block_kind level; /* of the heading */
	const char *heading;
	const char *author; /* task for the author of a project; NULL: none */
	rfl_section *write; /* may be NULL */
};

#define MISSING "What is missing, and how to get it"

#define SECTION RFL_BLOCK_SECTION
#define PART    RFL_BLOCK_PART

static const struct section run_sections[] = {
	{ SECTION, "Summary", NULL, rfl_report__summary },
	{ SECTION, "Design", NULL, rfl_report__design },
	{ SECTION, "Environment", NULL, rfl_report__environment },
	{ SECTION, "Complexity", NULL, rfl_report__complexity },
	{ SECTION, "Throughput and variability", NULL, rfl_report__throughput },
	{ SECTION, "Phases", NULL, rfl_report__phases },
	{ SECTION, "Generation", NULL, rfl_report__generation },
	{ SECTION, "Duration, memory and power", NULL, rfl_report__resources },
	{ SECTION, "Counters", NULL, rfl_report__counters },
	{ SECTION, "Ceilings", NULL, rfl_report__peaks },
	{ SECTION, "Rooflines", NULL, rfl_report__figures },
	{ SECTION, "Points", NULL, rfl_report__points },
	{ SECTION, "Layers and kernels", NULL, rfl_report__parts },
	{ SECTION, "Other figures", NULL, rfl_report__pictures },
	{ SECTION, "Analysis", NULL, rfl_report__analysis },
	{ SECTION, "Limitations", NULL, rfl_report__limitations },
	{ SECTION, "Commands", NULL, rfl_report__commands },
	{ SECTION, MISSING, NULL, rfl_report__missing },
	{ SECTION, "Files", NULL, rfl_report__files },
};

/* The sections of the rubric with their weights. */
static const struct section project_sections[] = {
	{ SECTION, "Abstract",
	  "Write at most 150 words: the context, what was measured where, and the two or three "
	  "main findings with their numbers. Add your name, the course, and the commit of the "
	  "repository. The main numbers:",
	  rfl_report__summary },
	{ SECTION, "1. Experiment design (10 %)", NULL, NULL },
	{ PART, "Objective and hypothesis",
	  "What is the experiment to decide? Which models did you expect to be memory-bound and "
	  "which compute-bound in each environment, before you saw the results, and why?",
	  NULL },
	{ PART, "Environments, models and run matrix",
	  "Why these environments, models, batch sizes and precisions?", rfl_report__design },
	{ SECTION, "2. Complexity estimation (20 %)",
	  "Explain the expected memory traffic against compute of each model, and how the batch "
	  "sizes follow from parameters, gradients, optimizer state and activations.",
	  rfl_report__complexity },
	{ SECTION, "3. Measurement (15 %)",
	  "What else ran on the machines? Which profilers did you use, with which options, and how "
	  "much time did they add?",
	  NULL },
	{ PART, "Throughput", NULL, rfl_report__throughput },
	{ PART, "Phases of a step", NULL, rfl_report__phases },
	{ PART, "Generation", NULL, rfl_report__generation },
	{ PART, "Duration, memory and power", NULL, rfl_report__resources },
	{ PART, "Counters", NULL, rfl_report__counters },
	{ SECTION, "4. Roofline modelling (20 %)", NULL, rfl_report__method },
	{ PART, "Ceilings", NULL, rfl_report__peaks },
	{ PART, "Rooflines", NULL, rfl_report__figures },
	{ PART, "Points",
	  "Explain the place of each point, and what would move it up or to the right: data reuse, "
	  "fusion, precision, batch size.",
	  rfl_report__points },
	{ PART, "Layers and kernels", NULL, rfl_report__parts },
	{ PART, "Other figures", NULL, rfl_report__pictures },
	{ SECTION, "5. Analysis (35 %)",
	  "Interpret the statements below: which did you expect, which contradict the hypothesis, "
	  "and what explains the differences between environments (bare metal and cloud, "
	  "virtualisation), models and precisions?",
	  rfl_report__analysis },
	{ PART, "Limitations", "What do these limitations mean for your conclusions?",
	  rfl_report__limitations },
	{ SECTION, "6. Reproducibility",
	  "Add what the record does not have: zone and instance type, container image and digest, "
	  "storage, the origin of the data.",
	  rfl_report__environment },
	{ PART, "Commands", NULL, rfl_report__commands },
	{ SECTION, "7. References and appendix",
	  "Cite the tools, data sets, data sheets and papers that you used.", NULL },
	{ PART, MISSING, NULL, rfl_report__missing },
	{ PART, "Files", NULL, rfl_report__files },
};

/* Also of attention. */
static const struct section lm_sections[] = {
	{ SECTION, "Summary", NULL, rfl_report__summary },
	{ SECTION, "Design", NULL, rfl_report__design },
	{ SECTION, "Environment", NULL, rfl_report__environment },
	{ SECTION, "Commands", NULL, rfl_report__commands },
	{ SECTION, "Times", NULL, rfl_report__sweep },
	{ SECTION, "Speed-ups", NULL, rfl_report__speedups },
	{ SECTION, "Scaling with the context length", NULL, rfl_report__scaling },
	{ SECTION, "Generation", NULL, rfl_report__generation },
	{ SECTION, "Memory", NULL, rfl_report__memory },
	{ SECTION, "Ceilings", NULL, rfl_report__peaks },
	{ SECTION, "Rooflines", NULL, rfl_report__figures },
	{ SECTION, "Other figures", NULL, rfl_report__pictures },
	{ SECTION, "Analysis", NULL, rfl_report__analysis },
	{ SECTION, "Limitations", NULL, rfl_report__limitations },
	{ SECTION, MISSING, NULL, rfl_report__missing },
	{ SECTION, "Files", NULL, rfl_report__files },
};

static const struct section training_sections[] = {
	{ SECTION, "Summary", NULL, rfl_report__training_summary },
	{ SECTION, "Configuration", NULL, rfl_report__training_design },
	{ SECTION, "Environment", NULL, rfl_report__environment },
	{ SECTION, "Complexity", NULL, rfl_report__complexity },
	{ SECTION, "Loss, accuracy and time", NULL, rfl_report__training_results },
	{ SECTION, "Curves", NULL, rfl_report__training_curves },
	{ SECTION, "Phases", NULL, rfl_report__phases },
	{ SECTION, "Rooflines", NULL, rfl_report__figures },
	{ SECTION, "Other figures", NULL, rfl_report__pictures },
	{ SECTION, "Analysis", NULL, rfl_report__analysis },
	{ SECTION, "Limitations", NULL, rfl_report__limitations },
	{ SECTION, "Commands", NULL, rfl_report__training_commands },
	{ SECTION, MISSING, NULL, rfl_report__missing },
	{ SECTION, "Files", NULL, rfl_report__files },
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
	[RFL_REPORT_PROJECT] =
		KIND("Performance modelling of neural network training with the roofline model",
		     project_sections, NULL, NULL),
	[RFL_REPORT_LM] = KIND("Language models: time, memory and roofline", lm_sections,
			       "runs of language models", "roofline bench lm"),
	[RFL_REPORT_ATTENTION] =
		KIND("Attention: time, memory and roofline", lm_sections,
		     "runs of the attention benchmark", "roofline bench attention"),
	[RFL_REPORT_TRAINING] =
		KIND("Training to accuracy", training_sections, "training runs", "roofline train"),
};

/* A section that has nothing to show is omitted with its heading. */
static void write_sections(const struct rfl_report *r, const struct section *s, size_t n,
			   struct rfl_page *page)
{
	for (; n-- > 0; s++) {
		const size_t at = page->n;

		rfl_page_text(page, s->level, "%s", s->heading);
		if (s->author)
			rfl_page_text(page, RFL_BLOCK_AUTHOR, "%s", s->author);
		if (s->write)
			s->write(r, page);
		if (s->write && page->n == at + 1)
			page->n = at;
	}
}

/* The words for the verdicts, by the column 'bound'. */
static json_t *words_of_bounds(void)
{
	json_t *all = json_object();

	for (enum rfl_bound b = 0; b < RFL_BOUND_UNKNOWN; b++)
		rfl_json_put(&all, rfl_bound_words[b].word,
			     json_pack("{s:s, s:s}", "adjective", rfl_bound_words[b].adjective,
				       "means", rfl_bound_words[b].means));
	return all;
}

/* The verdicts on a point under the bandwidth of each level of memory. */
static json_t *verdicts_of(const struct rfl_point *p)
{
	const struct {
		const char *level;
		double ai, gbps;
	} levels[] = { { "DRAM", p->ai, p->peak_gbps },
		       { "L2", p->ai_l2, p->peak_l2_gbps },
		       { "L1", p->ai_l1, p->peak_l1_gbps } };
	json_t *all = json_object();

	for (size_t i = 0; i < RFL_ARRAY_LEN(levels); i++) {
		struct rfl_point at = *p;
		struct rfl_point_verdict v;

		at.ai_l2 = at.ai_l1 = NAN;
		if (i > 0) {
			at.ai = levels[i].ai;
			at.ai_lo = at.ai_hi = at.uncertainty = NAN;
			at.bound = at.bytes_source = at.verdict = NULL;
			at.peak_gbps = levels[i].gbps;
		}
		v = rfl_point_verdict(&at);
		if (v.bound != RFL_BOUND_UNKNOWN && v.roof != RFL_BOUND_UNKNOWN && levels[i].ai > 0)
			rfl_json_put(&all, levels[i].level,
				     json_pack("{s:s, s:s, s:b, s:f}", "bound",
					       rfl_bound_words[v.bound].word, "roof",
					       rfl_bound_words[v.roof].word, "over", v.over,
					       "share", v.share));
	}
	return all;
}

/* A point as a JSON object with the known columns. Texts may contain invalid UTF-8, which the
 * writer replaces. */
static json_t *point_of(const struct rfl_point *p)
{
	json_t *o = json_object();
	RFL_AUTO(buf) words = { .len = 0 };

	rfl_variant_say(p->variant, &words);
	for (size_t i = 0; i < RFL_POINT_NCOLUMNS; i++) {
		const struct rfl_field *f = &rfl_point_fields[i];
		const char *text = i == RFL_POINT_AT_variant   ? rfl_buf_str(&words)
				   : f->kind == RFL_FIELD_TEXT ? *rfl_field_text_at(f, p)
							       : NULL;

		if (rfl_field_known(f, p))
			rfl_json_put(&o, f->name,
				     text ? json_string_nocheck(text)
				     : f->kind == RFL_FIELD_INT
					     ? json_integer(*rfl_field_int_at(f, p))
					     : rfl_json_real(*rfl_field_real_at(f, p)));
	}
	rfl_json_put(&o, "verdicts", verdicts_of(p));
	return o;
}

/* The name of a file without its directory, and its hash. */
static json_t *file_of(const char *path, const char *hash)
{
	/* a name may contain invalid UTF-8, which the writer replaces */
	return json_pack("{s:o, s:s}", "name", json_string_nocheck(path ? rfl_path_base(path) : ""),
			 "hash", hash);
}

/* The data for page.js: points of steps, then of parts. Points are written one by one, because a
 * tree of all would be large. */
static void add_data(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_points *const lists[] = { &r->work->steps, &r->work->parts };
	json_t *head = json_pack(
		"{s:s, s:o, s:O?, s:{s:o, s:o}}", "schema", "roofline.page/1", "bounds",
		words_of_bounds(), "peaks", r->peaks_json, "files", "points",
		file_of(r->points ? r->points_path : NULL, r->points ? r->points->hash : ""),
		"peaks", file_of(r->peaks ? r->peaks->path : NULL, r->peaks ? r->peaks->hash : ""));
	size_t n = 0;

	rfl_json_write_line(&page->data, head);
	json_decref(head);
	page->data.len--; /* its end */
	rfl_buf_puts(&page->data, ", \"points\": [");
	for (size_t l = 0; l < RFL_ARRAY_LEN(lists); l++)
		for (size_t i = 0; i < lists[l]->n; i++) {
			const struct rfl_point *p = &lists[l]->points[i];
			json_auto_t *o = point_of(p);

			rfl_buf_puts(&page->data, n++ ? ", " : "");
			rfl_json_write_line(&page->data, o);
		}
	rfl_buf_puts(&page->data, "]}");
}

static struct rfl_points thinned(const struct rfl_points *all, struct rfl_page *page)
{
	const size_t step = all ? (all->n + RFL_REPORT_DRAWN - 1) / RFL_REPORT_DRAWN : 0;
	struct rfl_points ret = all ? *all : (struct rfl_points){ .n = 0 };

	if (step < 2)
		return ret;
	ret.points = rfl_arena_array(page->arena, RFL_REPORT_DRAWN, sizeof(*ret.points));
	for (ret.n = 0; ret.n * step < all->n; ret.n++)
		ret.points[ret.n] = all->points[ret.n * step];
	return ret;
}

enum rfl_rc rfl_report_build(const struct rfl_report *r, struct rfl_page **ret, struct rfl_err *err)
{
	const bool nothing = !(r->repeats && r->repeats->n) && !r->points && !r->parts &&
			     !r->peaks && !r->complexity;
	struct rfl_report of = *r;
	struct rfl_page *page;
	char generator[64];

	if (nothing && kinds[r->kind].runs)
		return rfl_fail(
			err, RFL_EMISSING, 0,
			"nothing to report: no %s; run '%s', and name its ledger with --metrics",
			kinds[r->kind].runs, kinds[r->kind].command);
	if (nothing)
		return rfl_fail(err, RFL_EMISSING, 0,
				"nothing to report: no runs, points, ceilings or counts; create "
				"them with 'roofline run', 'roofline peaks measure' and 'roofline "
				"points', or name files with --metrics, --points and --peaks");
	(void)snprintf(generator, sizeof(generator), "roofline %s", r->version);
	page = rfl_page_new(r->format, r->title ? r->title : kinds[r->kind].title, generator);
	of.work = rfl_arena_array(page->arena, 1, sizeof(*of.work));
	of.work->steps = thinned(r->points, page);
	of.work->parts = thinned(r->parts, page);
	if (r->kind == RFL_REPORT_LM || r->kind == RFL_REPORT_ATTENTION)
		of.work->sweep = rfl_report__sweep_new(&of, page);
	if (r->kind == RFL_REPORT_TRAINING)
		of.work->trainings = rfl_report__trainings_new(&of, page);
	write_sections(&of, kinds[r->kind].sections, kinds[r->kind].n, page);
	if (r->format == RFL_FORMAT_HTML)
		add_data(&of, page);
	free(of.work->missing);
	*ret = page;
	return RFL_OK;
}
