/* sections.c - what the sections of a report say, apart from the analysis (analysis.c). */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "plot/plot.h"
#include "report/runs.h"
#include "roofline/roofline.h"
#include "runner/env/record.h"
#include "runner/run.h"

#define RUNS_NAMED 20 /* maximum number of missing runs to list */
#define PARTS_MOST 30 /* rows of the table of layers or kernels */

const char *const rfl_report_kinds[] = { "run", "project", NULL };

#define TEXT(type_, member_, title_) RFL_CELL(type_, member_), .key = (title_), .title = (title_)
#define INT(type_, member_, title_)  TEXT(type_, member_, title_), .kind = RFL_COLUMN_INT
#define REAL(type_, member_, title_, scale_) \
	TEXT(type_, member_, title_), .kind = RFL_COLUMN_REAL, .scale = (scale_)

static void paragraph(struct rfl_page *page, const char *text)
{
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "%s", text);
}

/* ---- names ---- */

const char *rfl_report__name(const struct rfl_report *r, const struct rfl_repeats_config *c,
			     struct rfl_buf *out)
{
	static const enum rfl_ledger_at block[] = { RFL_LEDGER_AT_env, RFL_LEDGER_AT_model,
						    RFL_LEDGER_AT_precision };
	struct rfl_facts_apart apart = { .first = { NULL } };
	size_t len;

	for (size_t i = 0; i < r->repeats->n; i++)
		if (rfl_ledger_same(block, RFL_ARRAY_LEN(block), c->row,
				    r->repeats->configs[i].row))
			rfl_facts_apart_add(&apart, r->repeats->configs[i].row);
	rfl_buf_reset(out);
	rfl_buf_printf(out, "%s %s bs%lld on %s, ", c->row->model, c->row->precision,
		       (long long)c->row->batch, c->row->env);
	len = out->len;
	rfl_facts_apart_put(&apart, c->row, out);
	if (out->len == len && !out->failed) /* nothing sets it apart: without the comma */
		out->data[out->len = len - 2] = '\0';
	return rfl_buf_str(out);
}

const char *rfl_report__point_name(const struct rfl_point *p, struct rfl_buf *out)
{
	rfl_buf_reset(out);
	rfl_buf_printf(out, "%s", p->model ? p->model : "a point");
	if (p->precision)
		rfl_buf_printf(out, " %s", p->precision);
	if (p->batch >= 0)
		rfl_buf_printf(out, " bs%lld", (long long)p->batch);
	if (p->mode && strcmp(p->mode, "train") != 0)
		rfl_buf_printf(out, " %s", p->mode);
	rfl_buf_printf(out, " on %s", p->env);
	if (p->part)
		rfl_buf_printf(out, ", %s %s", p->part_kind ? p->part_kind : "part", p->part);
	if (p->variant)
		rfl_buf_printf(out, ", %s", p->variant);
	return rfl_buf_str(out);
}

const struct rfl_ledger_row *rfl_report__row(const struct rfl_report *r, const struct rfl_run *run)
{
	return &r->runs->ledger->rows[run - r->runs->runs];
}

/* ---- missing inputs ---- */

/* Say that an input is missing and how to get it. @return whether it is there */
static bool have(struct rfl_page *page, const void *input, const char *what, const char *option,
		 const char *command)
{
	if (!input)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "Missing: %s. Create the file with '%s', then add %s FILE to the "
			      "command of this report.",
			      what, command, option);
	return input;
}

#define HAVE_POINTS(page, r)                                                  \
	have((page), (r)->points, "points under the roof", "--points",        \
	     "roofline points --metrics logs/metrics.csv --peaks peaks.json " \
	     "--output roofline_points.csv")
#define HAVE_PEAKS(page, r)                                      \
	have((page), (r)->peaks, "measured ceilings", "--peaks", \
	     "roofline peaks measure --env NAME --output peaks.json")

/* ---- design ---- */

/* A row of the table of the design: the batches of one model in one precision and environment. */
struct design {
	const char *env, *model, *precision;
	const char *batches; /* "16, 32, 64" */
	int64_t configs, wanted, done, failed;
	struct rfl_buf text;
};
#define OF struct design
static const struct rfl_column of_design[] = {
	{ TEXT(OF, env, "Environment") },       { TEXT(OF, model, "Model") },
	{ TEXT(OF, precision, "Precision") },   { TEXT(OF, batches, "Batch sizes") },
	{ INT(OF, configs, "Configurations") }, { INT(OF, wanted, "Runs planned"), .when = 1 },
	{ INT(OF, done, "Runs done") },         { INT(OF, failed, "Failed") },
};
#undef OF

/* Find or add the row of a model. */
static struct design *design_of(struct design *rows, size_t *n, const char *env, const char *model,
				const char *precision)
{
	for (struct design *d = rows; d < rows + *n; d++)
		if (rfl_text_same(d->env, env) && rfl_text_same(d->model, model) &&
		    rfl_text_same(d->precision, precision))
			return d;
	rows[*n] = (struct design){ .env = env, .model = model, .precision = precision };
	rfl_buf_init(&rows[*n].text, 0);
	return &rows[(*n)++];
}

static void add_batch(struct design *d, int64_t batch)
{
	char word[24];
	struct rfl_span rest, field;

	(void)snprintf(word, sizeof(word), "%lld", (long long)batch);
	rest = rfl_span_of(rfl_buf_str(&d->text));
	d->configs++;
	while (rfl_span_next_field(&rest, ',', &field))
		if (rfl_span_is(field, word))
			return;
	rfl_buf_printf(&d->text, "%s%s", d->text.len ? ", " : "", word);
}

static void design_table(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t most = (r->matrix ? r->matrix->ncells : 0) + r->repeats->n;
	struct design *rows = rfl_arena_array(page->arena, most + 1, sizeof(*rows)), *d;
	struct rfl_table *t = rfl_table_of(of_design, RFL_ARRAY_LEN(of_design), r->matrix ? 1 : 0);
	size_t n = 0;

	page->failed |= !rows;
	for (size_t i = 0; rows && r->matrix && i < r->matrix->ncells; i++) {
		const struct rfl_matrix_cell *c = &r->matrix->cells[i];

		d = design_of(rows, &n, c->env, c->model, c->precision);
		add_batch(d, c->batch);
		for (size_t k = i; k < r->coverage->nruns; k += r->matrix->ncells) {
			d->wanted++;
			d->done += r->coverage->runs[k].state == RFL_MATRIX_DONE;
			d->failed += r->coverage->runs[k].state == RFL_MATRIX_FAILED;
		}
	}
	for (size_t i = 0; rows && !r->matrix && i < r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];

		d = design_of(rows, &n, c->row->env, c->row->model, c->row->precision);
		add_batch(d, c->row->batch);
		d->done += (int64_t)c->n;
		d->failed += (int64_t)c->failed;
	}
	for (size_t i = 0; i < n; i++) {
		rows[i].batches = rfl_buf_str(&rows[i].text);
		rfl_table_add(t, &rows[i], 1, sizeof(rows[i]));
		rfl_buf_fini(&rows[i].text);
	}
	rfl_page_table(page, "Models, precisions and batch sizes", t);
}

/* "mode train, layout nhwc, ...": the facts that all runs share. */
static void same_in_all(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_facts_apart apart = { .first = { NULL } };
	char number[RFL_NUM_MAX];
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	for (size_t i = 0; i < r->repeats->n; i++)
		rfl_facts_apart_add(&apart, r->repeats->configs[i].row);
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_field *f = &rfl_ledger_fields[rfl_facts[i].column];

		if (apart.first[i] && !apart.differs[i] &&
		    rfl_fact_known(&rfl_facts[i], apart.first[i]) &&
		    rfl_facts[i].role != RFL_FACT_NOTE &&
		    rfl_facts[i].column != RFL_LEDGER_AT_env &&
		    rfl_facts[i].column != RFL_LEDGER_AT_micro_batch)
			rfl_buf_printf(&out, "%s%s %s", out.len ? ", " : "", rfl_facts[i].name,
				       rfl_field_write(f, apart.first[i], number));
	}
	if (out.len)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "The same in all runs: %s.",
			      rfl_buf_str(&out));
	page->failed |= out.failed;
	rfl_buf_fini(&out);
}

static void write_design(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_matrix *m = r->matrix;
	char label[RFL_LABEL_MAX + 1];
	size_t left, named = 0;

	if (!r->repeats) {
		(void)have(page, NULL, "runs", "--metrics", "roofline run");
		return;
	}
	if (m)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "The matrix %s asks for %zu runs: %zu configurations, each %d times. "
			      "%zu are done.",
			      m->name ? m->name : m->path, r->coverage->nruns, m->ncells,
			      m->repeats, r->coverage->done);
	else
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "%zu configurations were measured in %zu runs. No matrix was given "
			      "(--matrix FILE), so runs that were planned but not made are not "
			      "listed.",
			      r->repeats->n, r->runs->n);
	design_table(r, page);
	same_in_all(r, page);
	if (!m || r->coverage->done == r->coverage->nruns)
		return;
	left = r->coverage->missing + r->coverage->failed;
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "%zu run%s missing or failed; 'roofline matrix run %s' runs %s:", left,
		      left == 1 ? " is" : "s are", m->path, left == 1 ? "it" : "them");
	for (size_t i = 0; i < r->coverage->nruns && named < RUNS_NAMED; i++) {
		const struct rfl_matrix_run *run = &r->coverage->runs[i];

		if (run->state == RFL_MATRIX_DONE)
			continue;
		rfl_matrix_label(&m->cells[run->cell], run->repeat, label);
		rfl_page_text(page, RFL_BLOCK_ITEM, "%s: %s", label,
			      run->state == RFL_MATRIX_FAILED ? "failed" : "missing");
		named++;
	}
	if (left > named)
		rfl_page_text(page, RFL_BLOCK_ITEM, "and %zu more", left - named);
}

/* ---- environment and commands ---- */

struct env_row {
	const char *field, *value;
};

static const struct rfl_column of_env[] = {
	{ TEXT(struct env_row, field, "Field") },
	{ TEXT(struct env_row, value, "Value") },
};

static void add_field(const char *field, const char *value, void *ctx)
{
	rfl_table_add(ctx, &(struct env_row){ field, value }, 1, sizeof(struct env_row));
}

static void write_environment(const struct rfl_report *r, struct rfl_page *page)
{
	if (!have(page, r->nenvs ? r->envs : NULL, "the record of the environments", "--env",
		  "roofline env"))
		return;
	for (size_t i = 0; i < r->nenvs; i++) {
		const char *name;
		json_t *record;

		json_object_foreach(json_object_get(r->envs[i], "environments"), name, record)
		{
			const char *at = json_string_value(json_object_get(record, "recorded_utc"));
			struct rfl_table *t = rfl_table_new(of_env, RFL_ARRAY_LEN(of_env));

			page->failed |= rfl_env_each_field(record, add_field, t, NULL) != RFL_OK;
			rfl_table_note(t, "Recorded %s.", at ? at : "at an unknown time");
			rfl_page_table(page, name, t);
		}
	}
}

/* One command per configuration, of its first run. */
static void write_commands(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	if (r->matrix)
		rfl_buf_printf(&out, "roofline matrix run %s\n", r->matrix->path);
	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];

		if (c->n == 0 || !rfl_report__row(r, c->runs[0].run)->run_id)
			continue; /* failed, or run by another program */
		rfl_run_command(rfl_report__row(r, c->runs[0].run), &out);
		rfl_buf_putc(&out, '\n');
	}
	rfl_buf_puts(&out, r->command);
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "The runs are reconstructed from the facts in the ledger, one command per "
		      "configuration, without options that have their default. The ledger has "
		      "neither the folder of the data (--data) nor that of the results "
		      "(--log-dir). The last command writes this report.");
	rfl_page_text(page, RFL_BLOCK_CODE, "%s", rfl_buf_str(&out));
	page->failed |= out.failed;
	rfl_buf_fini(&out);
}

/* ---- complexity ---- */

struct cost {
	const char *model;
	int64_t params;
	double macs, flops, train_flops;
	int64_t batch;
	double ai[RFL_FUSION_COUNT]; /* of a training step */
	double memory;
};
#define OF struct cost
static const struct rfl_column of_costs[] = {
	{ TEXT(OF, model, "Model") },
	{ INT(OF, params, "Parameters (M)"), .scale = 1e6, .decimals = 2 },
	{ REAL(OF, macs, "Forward GMACs", 1e9) },
	{ REAL(OF, flops, "Forward GFLOPs", 1e9) },
	{ REAL(OF, train_flops, "Training GFLOPs", 1e9) },
	{ INT(OF, batch, "Batch") },
	{ REAL(OF, ai[RFL_FUSION_UNFUSED], "FLOP/byte unfused", 1), .digits = 3 },
	{ REAL(OF, ai[RFL_FUSION_FUSED], "fused", 1), .digits = 3 },
	{ REAL(OF, ai[RFL_FUSION_COMPULSORY], "compulsory", 1), .digits = 3 },
	{ REAL(OF, memory, "Peak memory (GiB)", 1073741824.0), .digits = 3 },
};
#undef OF

/* The number at a path of keys; NaN: absent. */
static double number_at(const json_t *from, const char *const *keys)
{
	for (; *keys; keys++)
		from = json_object_get(from, *keys);
	return json_is_number(from) ? json_number_value(from) : (double)NAN;
}
#define AT(from, ...) number_at((from), (const char *const[]){ __VA_ARGS__, NULL })

static int64_t integer_at(const json_t *from, const char *key)
{
	const json_t *value = json_object_get(from, key);

	return json_is_integer(value) ? json_integer_value(value) : RFL_INT_UNKNOWN;
}

static void write_complexity(const struct rfl_report *r, struct rfl_page *page)
{
	static const char *const levels[] = {
		[RFL_FUSION_UNFUSED] = "unfused",
		[RFL_FUSION_FUSED] = "fused",
		[RFL_FUSION_COMPULSORY] = "compulsory",
	};
	const json_t *models = json_object_get(r->complexity, "models");
	struct rfl_table *t;
	const json_t *m, *b;
	size_t i, k;

	if (!have(page, r->complexity, "the cost of the networks", "--complexity-json",
		  "roofline complexity --models MODEL... --batch-sizes N... --output-dir DIR"))
		return;
	t = rfl_table_new(of_costs, RFL_ARRAY_LEN(of_costs));
	json_array_foreach(models, i, m)
	{
		json_array_foreach(json_object_get(m, "batches"), k, b)
		{
			struct cost row = {
				.model = json_string_value(json_object_get(m, "model")),
				.params = integer_at(m, "params"),
				.macs = AT(m, "forward", "macs"),
				.flops = AT(m, "forward", "flops"),
				.train_flops = AT(m, "training", "flops"),
				.batch = integer_at(b, "batch"),
				.memory = AT(b, "memory", "training", "peak_bytes"),
			};

			for (size_t l = 0; l < RFL_FUSION_COUNT; l++)
				row.ai[l] = AT(b, "training", "flops") /
					    AT(b, "training", "bytes", levels[l]);
			rfl_table_add(t, &row, 1, sizeof(row));
		}
	}
	rfl_table_note(t, "Counted from the networks, not measured. MACs and FLOPs are per sample, "
			  "2 FLOPs per MAC, convolutions and matrix products only. FLOP/byte and "
			  "memory are of a training step of the batch.");
	rfl_table_note(t, "unfused: every operation reads its inputs and writes its output; fused: "
			  "normalisation and activation are part of the operation before them; "
			  "compulsory: parameters, input and result are moved once.");
	rfl_page_table(page, "Cost of a sample and of a training step", t);
}

/* ---- throughput, phases ---- */

static void write_throughput(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_buf body;

	if (!r->repeats || r->repeats->n == 0) {
		(void)have(page, NULL, "runs with a result", "--metrics", "roofline run");
		return;
	}
	rfl_buf_init(&body, 0);
	page->failed |= rfl_repeats_table(r->repeats, r->format, "", &body, NULL) != RFL_OK;
	rfl_page_rendered(page, "Samples per second", &body);
	rfl_buf_fini(&body);
}

struct phases {
	const char *name;
	double data, upload, forward, backward, optimizer, step;
};
#define OF struct phases
static const struct rfl_column of_phases[] = {
	{ TEXT(OF, name, "Configuration") },        { REAL(OF, data, "Wait for data (ms)", 1) },
	{ REAL(OF, upload, "Upload (ms)", 1) },     { REAL(OF, forward, "Forward (ms)", 1) },
	{ REAL(OF, backward, "Backward (ms)", 1) }, { REAL(OF, optimizer, "Optimizer (ms)", 1) },
	{ REAL(OF, step, "Step (ms)", 1) },
};
#undef OF

static void write_phases(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t = rfl_table_new(of_phases, RFL_ARRAY_LEN(of_phases));
	struct rfl_buf name;

	rfl_buf_init(&name, 0);
	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];
		struct phases p = { .data = 0 };

		for (size_t k = 0; k < c->n; k++) {
			const struct rfl_ledger_row *row = rfl_report__row(r, c->runs[k].run);
			const double n = (double)c->n;

			p.data += row->data_wait_ms_mean / n;
			p.upload += row->upload_ms_mean / n;
			p.forward += row->fwd_ms_mean / n;
			p.backward += row->bwd_ms_mean / n;
			p.optimizer += row->opt_ms_mean / n;
			p.step += row->step_ms_mean / n;
		}
		if (c->n == 0 || isnan(p.forward))
			continue;
		p.name = rfl_report__name(r, c, &name);
		rfl_table_add(t, &p, 1, sizeof(p));
	}
	rfl_buf_fini(&name);
	if (rfl_table_rows(t) == 0)
		paragraph(page, "No run has the times of the phases; 'roofline run' records them.");
	rfl_table_note(t, "Means of the steps, over repeats means of these. On a GPU the host "
			  "prepares the next batch meanwhile, so the phases may not add up to the "
			  "step.");
	rfl_page_table(page, "Phases of a step", t);
}

/* ---- counters ---- */

struct counted {
	const char *label, *source, *device, *validity;
	int64_t steps;
	double time, flops, bytes, ai, coverage;
};
#define OF struct counted
static const struct rfl_column of_counters[] = {
	{ TEXT(OF, label, "Run") },
	{ TEXT(OF, source, "Source") },
	{ TEXT(OF, device, "Device") },
	{ INT(OF, steps, "Steps") },
	{ REAL(OF, time, "Time (ms)", 1e-3) },
	{ REAL(OF, flops, "GFLOP", 1e9) },
	{ REAL(OF, bytes, "DRAM (GB)", 1e9) },
	{ REAL(OF, ai, "FLOP/byte", 1), .digits = 3 },
	{ REAL(OF, coverage, "Coverage %", 0.01), .digits = 3 },
	{ TEXT(OF, validity, "Validity of FLOPs") },
};
#undef OF

static void write_counters(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t;

	if (!have(page, r->captures, "measured FLOPs and bytes", "--counters",
		  "roofline run --counters step"))
		return;
	t = rfl_table_new(of_counters, RFL_ARRAY_LEN(of_counters));
	for (size_t i = 0; i < r->captures->n; i++) {
		const struct rfl_capture *c = r->captures->captures[i];
		const struct rfl_amount *total = c->total;

		rfl_table_add(
			t,
			&(struct counted){
				.label = c->label,
				.source = c->source,
				.device = c->device ? c->device : c->chip,
				.steps = c->steps >= 0 ? c->steps : RFL_INT_UNKNOWN,
				.time = total[RFL_QUANTITY_TIME].value,
				.flops = total[RFL_QUANTITY_FLOPS].value,
				.bytes = total[RFL_QUANTITY_DRAM].value,
				.ai = rfl_amounts_ai(total),
				.coverage = rfl_capture_coverage(c, RFL_QUANTITY_FLOPS),
				.validity = rfl_validity_names[total[RFL_QUANTITY_FLOPS].validity],
			},
			1, sizeof(struct counted));
	}
	rfl_table_note(t, "Totals over the counted steps of each capture. Coverage: share of the "
			  "time in which FLOPs were counted.");
	rfl_page_table(page, "Work and traffic by hardware counters", t);
}

/* ---- peaks ---- */

struct ceiling {
	const char *env, *cell, *unit, *status, *how, *at;
	struct rfl_peak peak;
	double giga, of_sheet, spread;
	int64_t threads;
};
#define OF struct ceiling
static const struct rfl_column of_ceilings[] = {
	{ TEXT(OF, env, "Environment") },
	{ TEXT(OF, cell, "Ceiling") },
	{ REAL(OF, giga, "Value", 1) },
	{ TEXT(OF, unit, "Unit") },
	{ TEXT(OF, status, "Status") },
	{ REAL(OF, of_sheet, "% of data sheet", 0.01), .digits = 3 },
	{ REAL(OF, spread, "Above median %", 0.01), .digits = 2 },
	{ INT(OF, threads, "Threads") },
	{ TEXT(OF, how, "Kernel, source or reason") },
	{ TEXT(OF, at, "Measured at") },
};
#undef OF

static void add_ceiling(struct rfl_table *t, const struct rfl_peaks_env *env, const char *cell,
			const char *unit, const struct rfl_peak *p)
{
	const struct ceiling row = {
		.env = env->name,
		.cell = cell,
		.unit = unit,
		.status = rfl_peak_status_name(p->status),
		.how = p->kernel   ? p->kernel
		       : p->source ? p->source
				   : p->reason,
		.at = p->measured_at,
		.giga = p->value * 1e-9,
		.of_sheet = p->value / p->spec,
		.spread = p->stats.n > 0 ? (p->value - p->stats.median) / p->stats.median
					 : (double)NAN,
		.threads = p->threads > 0 ? p->threads : RFL_INT_UNKNOWN,
	};

	rfl_table_add(t, &row, 1, sizeof(row));
}

static void write_peaks(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t;

	if (!HAVE_PEAKS(page, r))
		return;
	t = rfl_table_new(of_ceilings, RFL_ARRAY_LEN(of_ceilings));
	for (size_t i = 0; i < r->peaks->nenvs; i++) {
		const struct rfl_peaks_env *env = &r->peaks->envs[i];

		for (size_t k = 0; k < env->ncompute; k++)
			add_ceiling(t, env, env->compute[k].cell, "GFLOP/s", &env->compute[k].peak);
		for (size_t k = 0; k < env->nlevels; k++)
			add_ceiling(t, env, env->levels[k].cell, "GB/s", &env->levels[k].peak);
	}
	rfl_table_note(t, "A measured ceiling is the fastest of several repeats; 'above median' is "
			  "its distance to their median.");
	rfl_page_table(page, "Ceilings of the machines and how they are known", t);
}

/* ---- figures, points ---- */

static void draw_figure(const struct rfl_report *r, const struct rfl_peaks_env *env,
			struct rfl_page *page)
{
	const struct rfl_plot_input in = {
		.points = r->points,
		.env = env,
		.points_name = rfl_path_base(r->points_path),
		.points_hash = r->points->hash,
		.peaks_name = rfl_path_base(r->peaks->path),
		.peaks_hash = r->peaks->hash,
		.version = r->version,
	};
	const struct rfl_surface_spec spec = { .dpi = 144 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_scene *scene = NULL;
	const char *caption, *name;
	struct rfl_buf svg;
	enum rfl_rc rc;

	rfl_buf_init(&svg, 0);
	rc = rfl_plot_roofline(&in, &scene, &err);
	/* an id may occur only once in a page, and a page may have several figures */
	for (size_t i = 0; rc == RFL_OK && r->format == RFL_FORMAT_HTML && i < scene->n; i++)
		scene->prims[i].id = "";
	if (rc == RFL_OK)
		rc = rfl_surface_draw(&rfl_surface_svg, &spec, scene, &svg, &err);
	caption = rfl_arena_printf(page->arena,
				   "Roofline of %s: attained performance against arithmetic "
				   "intensity, both logarithmic, below the ceilings in use",
				   env->name);
	name = rfl_arena_printf(page->arena, "%s_roofline_%s.svg", r->stem, env->name);
	page->failed |= !caption || !name;
	if (rc == RFL_OK && !page->failed)
		rfl_page_figure(page, caption, name, &svg);
	else if (rc != RFL_OK)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "No figure of %s: %s.", env->name,
			      err.msg);
	rfl_scene_free(scene);
	rfl_buf_fini(&svg);
}

static bool is_first_of_env(const struct rfl_points *points, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (rfl_text_same(points->points[k].env, points->points[i].env))
			return false;
	return true;
}

static void write_figures(const struct rfl_report *r, struct rfl_page *page)
{
	const bool points = HAVE_POINTS(page, r), peaks = HAVE_PEAKS(page, r);

	if (points && peaks && r->format == RFL_FORMAT_HTML)
		rfl_page_text(page, RFL_BLOCK_LIVE, "%s", "");
	for (size_t i = 0; points && peaks && i < r->points->n; i++) {
		const char *name = r->points->points[i].env;
		const struct rfl_peaks_env *env = rfl_peaks_find(r->peaks, name);

		if (!is_first_of_env(r->points, i))
			continue;
		if (env && rfl_text_is_env_name(name))
			draw_figure(r, env, page);
		else
			rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
				      "No figure of %s: the peaks file has no ceilings for it; "
				      "'roofline peaks measure --env NAME' measures them.",
				      name);
	}
}

static void write_points(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_buf body;

	if (HAVE_POINTS(page, r)) {
		rfl_buf_init(&body, 0);
		page->failed |= rfl_points_table(r->points, r->format, &body, NULL) != RFL_OK;
		rfl_page_rendered(page, "Points under the roof", &body);
		rfl_buf_fini(&body);
	}
	if (r->peer)
		rfl_report__as_peer(r, page);
}

static int by_share(const void *x, const void *y)
{
	const struct rfl_point *a = x, *b = y;

	if (a->time_share != b->time_share) /* unknown shares last */
		return !(a->time_share > b->time_share) ? 1 : -1;
	return 0;
}

/* The layers or kernels with the largest share of the time of their step. */
static void write_parts(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t n = r->parts ? r->parts->n : 0;
	struct rfl_points most = { .n = n < PARTS_MOST ? n : PARTS_MOST };
	struct rfl_buf body;

	if (!have(page, n ? r->parts : NULL, "points of layers or kernels", "--points",
		  "roofline points --by layer --output FILE"))
		return;
	most.points = rfl_arena_array(page->arena, n, sizeof(*most.points));
	if (!most.points) {
		page->failed = true;
		return;
	}
	memcpy(most.points, r->parts->points, n * sizeof(*most.points));
	qsort(most.points, n, sizeof(*most.points), by_share);
	if (most.n < n)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "The %zu of %zu parts with the largest share of the time:", most.n,
			      n);
	rfl_buf_init(&body, 0);
	page->failed |= rfl_points_table(&most, r->format, &body, NULL) != RFL_OK;
	rfl_page_rendered(page, "Parts of a step under the roof", &body);
	rfl_buf_fini(&body);
}

static void write_method(const struct rfl_report *r, struct rfl_page *page)
{
	(void)r;
	paragraph(page, "A point has the arithmetic intensity AI = FLOPs of a step / bytes of a "
			"step, and the attained rate = FLOPs of a step x samples per second / "
			"batch. Its attainable rate is min(AI x bandwidth, compute ceiling); the "
			"two ceilings meet at the knee, compute / bandwidth. Left of the knee a "
			"point is memory-bound, right of it compute-bound, and within 10 % of it "
			"both limit it.");
}

/* ---- files ---- */

#define OF struct rfl_report_file
static const struct rfl_column of_files[] = {
	{ TEXT(OF, path, "File") },
	{ TEXT(OF, contents, "Contents") },
	{ TEXT(OF, command, "Written by") },
	{ TEXT(OF, hash, "Fingerprint") },
};
#undef OF

static void write_files(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t = rfl_table_new(of_files, RFL_ARRAY_LEN(of_files));

	rfl_table_add(t, r->files, r->nfiles, sizeof(*r->files));
	rfl_table_note(t, "The fingerprint is a 64-bit hash of the contents (FNV-1a). Points carry "
			  "those of the ledger and of the peaks file from which they were made.");
	rfl_page_table(page, "Files of this report", t);
}

/* ---- the two kinds of reports ---- */

struct section {
	int level; /* of the heading */
	const char *heading;
	const char *author; /* what the author of a project has to write here; NULL: nothing */
	void (*write)(const struct rfl_report *r, struct rfl_page *page); /* may be NULL */
};

static const struct section run_sections[] = {
	{ 2, "Design", NULL, write_design },
	{ 2, "Environment", NULL, write_environment },
	{ 2, "Complexity", NULL, write_complexity },
	{ 2, "Throughput and variability", NULL, write_throughput },
	{ 2, "Phases", NULL, write_phases },
	{ 2, "Counters", NULL, write_counters },
	{ 2, "Ceilings", NULL, write_peaks },
	{ 2, "Rooflines", NULL, write_figures },
	{ 2, "Points", NULL, write_points },
	{ 2, "Layers and kernels", NULL, write_parts },
	{ 2, "Analysis", NULL, rfl_report__analysis },
	{ 2, "Limitations", NULL, rfl_report__limitations },
	{ 2, "Commands", NULL, write_commands },
	{ 2, "Files", NULL, write_files },
};

/* The sections of the rubric with their weights. */
static const struct section project_sections[] = {
	{ 2, "Abstract",
	  "Write at most 150 words: the context, what was measured where, and the two or three "
	  "main "
	  "findings with their numbers, which are in the analysis. Add your name, the course, and "
	  "the commit of the repository.",
	  NULL },
	{ 2, "1. Experiment design (10 %)", NULL, NULL },
	{ 3, "Objective and hypothesis",
	  "What is the experiment to decide? Which models did you expect to be memory-bound and "
	  "which compute-bound in each environment, before you saw the results, and why?",
	  NULL },
	{ 3, "Environments, models and run matrix",
	  "Why these environments, models, batch sizes and precisions?", write_design },
	{ 2, "2. Complexity estimation (20 %)",
	  "Explain the expected memory traffic against compute of each model, and how the batch "
	  "sizes follow from parameters, gradients, optimizer state and activations.",
	  write_complexity },
	{ 2, "3. Measurement (15 %)",
	  "How was the measured section timed, which warm-up did it have, and what else ran on the "
	  "machines?",
	  NULL },
	{ 3, "Throughput", NULL, write_throughput },
	{ 3, "Phases of a step", NULL, write_phases },
	{ 3, "Counters", NULL, write_counters },
	{ 2, "4. Roofline modelling (20 %)", NULL, write_method },
	{ 3, "Ceilings", NULL, write_peaks },
	{ 3, "Rooflines", NULL, write_figures },
	{ 3, "Points",
	  "Explain the place of each point, and what would move it up or to the right: data reuse, "
	  "fusion, precision, batch size.",
	  write_points },
	{ 3, "Layers and kernels", NULL, write_parts },
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
	  write_environment },
	{ 3, "Commands", NULL, write_commands },
	{ 2, "7. References and appendix",
	  "Cite the tools, data sets, data sheets and papers that you used.", NULL },
	{ 3, "Files", NULL, write_files },
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

/* A point as a JSON object with the known columns. */
static void put_point(struct rfl_buf *out, const struct rfl_point *p)
{
	const char *before = "{";

	for (size_t i = 0; i < RFL_POINT_NCOLUMNS; i++) {
		const struct rfl_field *f = &rfl_point_fields[i];

		if (!rfl_field_known(f, p))
			continue;
		rfl_buf_printf(out, "%s\"%s\":", before, f->name);
		before = ",";
		if (f->kind == RFL_FIELD_TEXT) {
			const char *text = *rfl_field_text_at(f, p);

			rfl_json_write_string(out, text, strlen(text));
		} else if (f->kind == RFL_FIELD_INT) {
			rfl_buf_printf(out, "%lld", (long long)*rfl_field_int_at(f, p));
		} else {
			rfl_json_write_real(out, *rfl_field_real_at(f, p));
		}
	}
	rfl_buf_putc(out, '}');
}

/* The data for page.js: points of steps, then of parts. */
static void add_data(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_points *const lists[] = { r->points, r->parts };
	struct rfl_buf json;
	const char *before = "";

	rfl_buf_init(&json, 0);
	rfl_buf_puts(&json, "{\"schema\":\"roofline.page/1\",\"points\":[");
	for (size_t l = 0; l < RFL_ARRAY_LEN(lists); l++)
		for (size_t i = 0; lists[l] && i < lists[l]->n; i++) {
			rfl_buf_puts(&json, before);
			put_point(&json, &lists[l]->points[i]);
			before = ",\n";
		}
	rfl_buf_puts(&json, "],\"peaks\":");
	if (r->peaks_json)
		rfl_json_write_line(&json, r->peaks_json);
	else
		rfl_buf_puts(&json, "null");
	rfl_buf_puts(&json, "}");
	rfl_page_data(page, &json);
	rfl_buf_fini(&json);
}

enum rfl_rc rfl_report_build(const struct rfl_report *r, struct rfl_page **ret, struct rfl_err *err)
{
	const bool project = r->kind == RFL_REPORT_PROJECT;
	struct rfl_page *page;
	char generator[64];

	if (!(r->repeats && r->repeats->n) && !r->points && !r->parts && !r->peaks &&
	    !r->complexity)
		return rfl_fail(err, RFL_EMISSING, 0,
				"nothing to report: no runs, points, ceilings or counts; name "
				"files with --metrics, --points, --peaks or --complexity-json");
	(void)snprintf(generator, sizeof(generator), "roofline %s", r->version);
	page = rfl_page_new(r->format,
			    r->title  ? r->title
			    : project ? "Performance modelling of neural network training with the "
					"roofline model"
				      : "Roofline report",
			    generator);
	if (!page)
		return rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
	if (project)
		write_sections(r, project_sections, RFL_ARRAY_LEN(project_sections), page);
	else
		write_sections(r, run_sections, RFL_ARRAY_LEN(run_sections), page);
	if (r->format == RFL_FORMAT_HTML)
		add_data(r, page);
	if (page->failed) {
		rfl_page_free(page);
		return rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
	}
	*ret = page;
	return RFL_OK;
}
