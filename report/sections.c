/* sections.c - the sections of a report on design, environments, complexity, rates and counters. */
#include "report/report_impl.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "report/runs.h"
#include "roofline/step_time.h"
#include "runner/env/record.h"
#include "runner/run.h"

#define GIB          1073741824.0
#define BATCHES_MOST 16
#define RUNS_NAMED   20 /* maximum number of missing runs to list */

/* ---- design ---- */

/* A row of the table of the design: the batches of one model in one precision and environment. */
struct design {
	const char *env, *model, *precision;
	const char *batches; /* "16, 32, 64", at most BATCHES_MOST */
	size_t nbatches;
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
	if (d->nbatches++ < BATCHES_MOST)
		rfl_buf_printf(&d->text, "%s%s", d->text.len ? ", " : "", word);
	else if (d->nbatches == BATCHES_MOST + 1)
		rfl_buf_puts(&d->text, ", ...");
}

static void design_table(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t nconfigs = r->repeats ? r->repeats->n : 0;
	const size_t most = (r->matrix ? r->matrix->ncells : 0) + nconfigs;
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
	for (size_t i = 0; rows && !r->matrix && i < nconfigs; i++) {
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
	const bool sequences = r->kind == RFL_REPORT_LM || r->kind == RFL_REPORT_ATTENTION;
	struct rfl_facts_apart apart = { .first = { NULL } };
	char number[RFL_NUM_MAX];
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	for (size_t i = 0; r->repeats && i < r->repeats->n; i++)
		rfl_facts_apart_add(&apart, r->repeats->configs[i].row);
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_field *f = &rfl_ledger_fields[rfl_facts[i].column];

		if (apart.first[i] && !apart.differs[i] &&
		    rfl_fact_known(&rfl_facts[i], apart.first[i]) &&
		    rfl_facts[i].column != RFL_LEDGER_AT_env &&
		    rfl_facts[i].column != RFL_LEDGER_AT_micro_batch &&
		    !(rfl_facts[i].column == RFL_LEDGER_AT_layout && sequences)) {
			rfl_buf_puts(&out, out.len ? ", " : "");
			rfl_fact_say(rfl_facts[i].name, rfl_field_write(f, apart.first[i], number),
				     &out);
		}
	}
	if (out.len)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "The same in all runs: %s.",
			      rfl_buf_str(&out));
	page->failed |= out.failed;
	rfl_buf_fini(&out);
}

void rfl_report__design(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_matrix *m = r->matrix;
	char label[RFL_LABEL_MAX + 1];
	size_t left, named = 0;

	if (!r->repeats && !m) {
		(void)rfl_report__have(page, NULL, "runs", "--metrics", "roofline run");
		return;
	}
	if (m)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "The matrix %s asks for %zu run%s: %zu configuration%s, each %d "
			      "time%s. %zu %s done.",
			      m->name ? m->name : m->path, r->coverage->nruns,
			      plural(r->coverage->nruns), m->ncells, plural(m->ncells), m->repeats,
			      plural((size_t)m->repeats), r->coverage->done,
			      r->coverage->done == 1 ? "is" : "are");
	else
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "The ledger has %zu configuration%s in %zu run%s. No matrix was "
			      "given (--matrix FILE), so runs that were planned but are missing "
			      "are not listed.",
			      r->repeats->n, plural(r->repeats->n), r->runs->n, plural(r->runs->n));
	design_table(r, page);
	same_in_all(r, page);
	if (m && r->coverage->foreign)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "%zu row%s of the ledger belong%s to no cell of the matrix; the "
			      "table above "
			      "does not count %s, the sections below do.",
			      r->coverage->foreign, plural(r->coverage->foreign),
			      r->coverage->foreign == 1 ? "s" : "",
			      r->coverage->foreign == 1 ? "it" : "them");
	if (!m || r->coverage->done == r->coverage->nruns)
		return;
	left = r->coverage->missing + r->coverage->failed;
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "%zu run%s missing or failed; 'roofline matrix run %s%s' runs %s, with the "
		      "folder of the ledger as --log-dir or, if another program wrote the ledger, "
		      "as --done-in:",
		      left, left == 1 ? " is" : "s are", m->path,
		      r->coverage->failed ? " --retry-failed" : "", left == 1 ? "it" : "them");
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

static const struct rfl_column of_env[] = { { .title = "Field" }, { .title = "Value" } };

static void add_field(const char *field, const char *value, void *ctx)
{
	rfl_table_text(ctx, field);
	rfl_table_text(ctx, value);
}

void rfl_report__environment(const struct rfl_report *r, struct rfl_page *page)
{
	if (!rfl_report__have(page, r->nenvs ? r->envs : NULL, "the record of the environments",
			      "--env", "roofline env"))
		return;
	const size_t first = page->n;

	for (size_t i = 0; i < r->nenvs; i++) {
		const char *name;
		json_t *record;

		json_object_foreach(json_object_get(r->envs[i], "environments"), name, record)
		{
			const char *at = json_string_value(json_object_get(record, "recorded_utc"));
			struct rfl_table *t = rfl_table_new(of_env, RFL_ARRAY_LEN(of_env));

			rfl_env_each_field(record, add_field, t);
			rfl_table_note(t, "Recorded %s.", at ? at : "at an unknown time");
			rfl_page_table(page, name, t);
		}
	}
	if (page->n == first)
		rfl_page_text(
			page, RFL_BLOCK_PARAGRAPH,
			"The files of --env contain no environment; 'roofline env' adds this one.");
}

/* One command per configuration, of its first run. */
void rfl_report__commands(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	if (r->matrix)
		rfl_buf_printf(&out, "roofline matrix run %s\n", r->matrix->path);
	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];

		if (i == RFL_REPORT_ROWS) {
			rfl_buf_printf(&out, "# and %zu more configurations\n", r->repeats->n - i);
			break;
		}
		if (c->n == 0 || !rfl_runs_row(r->runs, c->runs[0].run)->run_id)
			continue; /* failed, or run by another program */
		rfl_run_command(rfl_runs_row(r->runs, c->runs[0].run), &out);
		rfl_buf_putc(&out, '\n');
	}
	rfl_buf_puts(&out, r->command);
	rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
		      "One command per configuration, without options that have their default. "
		      "They write to the folder logs, or to the one of --log-dir. Commands of runs "
		      "of an older version are reconstructed from the columns of the ledger, and "
		      "lack what these do not have, such as the folder of the data (--data). The "
		      "last command writes this report.");
	rfl_page_text(page, RFL_BLOCK_CODE, "%s", rfl_buf_str(&out));
	page->failed |= out.failed;
	rfl_buf_fini(&out);
}

/* ---- complexity ---- */

struct cost {
	const char *model, *input;
	int64_t params;
	double macs, flops, train_flops;
	int64_t batch;
	double ai[RFL_FUSION_COUNT]; /* of a training step */
	double state, saved, memory; /* of a training step, in bytes */
};
#define OF struct cost
static const struct rfl_column of_costs[] = {
	{ TEXT(OF, model, "Model") },
	{ TEXT(OF, input, "Input") },
	{ INT(OF, params, "Parameters (M)"), .scale = 1e6, .decimals = 2 },
	{ REAL(OF, macs, "Forward GMACs", 1e9) },
	{ REAL(OF, flops, "Forward GFLOPs", 1e9) },
	{ REAL(OF, train_flops, "Training GFLOPs", 1e9) },
	{ INT(OF, batch, "Batch") },
	{ REAL(OF, ai[RFL_FUSION_UNFUSED], "FLOP/byte unfused", 1), .digits = 3 },
	{ REAL(OF, ai[RFL_FUSION_FUSED], "fused", 1), .digits = 3 },
	{ REAL(OF, ai[RFL_FUSION_COMPULSORY], "compulsory", 1), .digits = 3 },
	{ REAL(OF, state, "Weights and optimizer (GiB)", GIB), .digits = 3 },
	{ REAL(OF, saved, "Activations (GiB)", GIB), .digits = 3 },
	{ REAL(OF, memory, "Peak memory (GiB)", GIB), .digits = 3 },
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

/* "3x224x224": the sizes of a sample. NULL: unknown */
static const char *input_of(const json_t *model, struct rfl_page *page)
{
	struct rfl_buf out;
	const json_t *size;
	size_t i;

	rfl_buf_init(&out, 0);
	json_array_foreach(json_object_get(model, "input"), i, size)
	{
		rfl_buf_printf(&out, "%s%lld", i ? "x" : "", (long long)json_integer_value(size));
	}
	return out.len ? rfl_page_keep(page, &out) : NULL;
}

void rfl_report__complexity(const struct rfl_report *r, struct rfl_page *page)
{
	static const char *const levels[] = {
		[RFL_FUSION_UNFUSED] = "unfused",
		[RFL_FUSION_FUSED] = "fused",
		[RFL_FUSION_COMPULSORY] = "compulsory",
	};
	const json_t *models = json_object_get(r->complexity, "models");
	const json_t *convention = json_object_get(r->complexity, "convention");
	const char *precision = json_string_value(json_object_get(convention, "precision"));
	const char *optimizer = json_string_value(json_object_get(convention, "optimizer"));
	struct rfl_table *t;
	const json_t *m, *b;
	size_t i, k;

	if (!rfl_report__have(
		    page, r->complexity, "the cost of the networks", "--complexity-json",
		    "roofline complexity --models MODEL... --batch-sizes N... --output-dir DIR"))
		return;
	t = rfl_table_new(of_costs, RFL_ARRAY_LEN(of_costs));
	json_array_foreach(models, i, m)
	{
		const char *input = input_of(m, page);

		json_array_foreach(json_object_get(m, "batches"), k, b)
		{
			struct cost row = {
				.model = json_string_value(json_object_get(m, "model")),
				.input = input,
				.params = integer_at(m, "params"),
				.macs = AT(m, "forward", "macs"),
				.flops = AT(m, "forward", "flops"),
				.train_flops = AT(m, "training", "flops"),
				.batch = integer_at(b, "batch"),
				.state = AT(b, "memory", "training", "weights_bytes") +
					 AT(b, "memory", "training", "buffers_bytes") +
					 AT(b, "memory", "training", "gradients_bytes") +
					 AT(b, "memory", "training", "state_bytes"),
				.saved = AT(b, "memory", "training", "saved_bytes"),
				.memory = AT(b, "memory", "training", "peak_bytes"),
			};

			for (size_t l = 0; l < RFL_FUSION_COUNT; l++)
				row.ai[l] = AT(b, "training", "flops") /
					    AT(b, "training", "bytes", levels[l]);
			rfl_table_add(t, &row, 1, sizeof(row));
		}
	}
	if (rfl_table_rows(t) == 0)
		rfl_page_text(
			page, RFL_BLOCK_PARAGRAPH,
			"The counts of the networks contain no model with a batch size; create the "
			"file again with 'roofline complexity --models MODEL... --batch-sizes "
			"N... --output-dir DIR'.");
	rfl_table_note(t,
		       "Counted from the networks, not measured. MACs and FLOPs are per sample, "
		       "2 FLOPs per MAC, convolutions and matrix products only. FLOP/byte and "
		       "memory are of a training step of the batch in %s with the "
		       "optimizer %s ('roofline complexity --optimizer').",
		       precision ? precision : "an unknown precision",
		       optimizer ? optimizer : "of the default");
	rfl_table_note(t, "unfused: every operation reads its inputs and writes its output; fused: "
			  "normalisation and activation are part of the operation before them; "
			  "compulsory: parameters, input and result are moved once. Weights and "
			  "optimizer: with their gradients; activations: results that the forward "
			  "pass keeps for the backward pass.");
	rfl_page_table(page, "Cost of a sample and of a training step", t);
	for (i = 0; r->kind == RFL_REPORT_TRAINING && r->repeats && i < r->repeats->n; i++)
		if (optimizer && r->repeats->configs[i].row->optimizer &&
		    strcmp(optimizer, r->repeats->configs[i].row->optimizer) != 0) {
			rfl_page_text(
				page, RFL_BLOCK_PARAGRAPH,
				"The memory is that of %s, but %s was trained with %s: create "
				"the file again with --optimizer %s.",
				optimizer, r->repeats->configs[i].row->model,
				r->repeats->configs[i].row->optimizer,
				r->repeats->configs[i].row->optimizer);
			break;
		}
}

/* ---- throughput, phases ---- */

void rfl_report__throughput(const struct rfl_report *r, struct rfl_page *page)
{
	static const char notes[] = "n: runs; warmup, iters: steps before and in the measured "
				    "window of a run; CV: Std / "
				    "Mean; the flags of runs are explained under Limitations\n";
	struct rfl_repeats shown;
	bool ours = false; /* runs of this program */

	if (!r->repeats || r->repeats->n == 0) {
		(void)rfl_report__have(page, NULL, "runs with a result", "--metrics",
				       "roofline run");
		return;
	}
	for (size_t i = 0; i < r->runs->ledger->nrows && !ours; i++)
		ours = r->runs->ledger->rows[i].run_id;
	if (ours)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH,
			      "A run executes its warm-up steps, then times a window of further "
			      "steps with the monotonic clock. Samples per second cover the whole "
			      "window, including the wait for data.");
	shown = *r->repeats;
	shown.n =
		rfl_report__rows(page, shown.n, "configurations", "'roofline summary' prints all");
	rfl_page_table(page, "Samples per second", rfl_repeats_table(&shown, true, notes));
}

struct phases {
	const char *name;
	struct rfl_step_time time;
	double memory; /* bytes */
};
#define OF struct phases
static const struct rfl_column of_phases[] = {
	{ TEXT(OF, name, "Configuration") },
	{ REAL(OF, time.phase_ms[RFL_TIMED_DATA_WAIT], "Wait for data (ms)", 1) },
	{ REAL(OF, time.phase_ms[RFL_TIMED_UPLOAD], "Upload (ms)", 1) },
	{ REAL(OF, time.phase_ms[RFL_TIMED_FORWARD], "Forward (ms)", 1) },
	{ REAL(OF, time.phase_ms[RFL_TIMED_BACKWARD], "Backward (ms)", 1) },
	{ REAL(OF, time.phase_ms[RFL_TIMED_OPTIMIZER], "Optimizer (ms)", 1) },
	{ REAL(OF, time.step_s, "Step (ms)", 1e-3) },
	{ REAL(OF, memory, "Peak memory (GiB)", GIB), .digits = 3 },
};
#undef OF

/* The largest peak over the runs: of the process on a processor, whose engine has no allocator of
 * its own. NaN: not measured */
static double peak_memory(const struct rfl_report *r, const struct rfl_repeats_config *c)
{
	double peak = NAN;

	for (size_t k = 0; k < c->n; k++) {
		const struct rfl_ledger_row *row = rfl_runs_row(r->runs, c->runs[k].run);

		peak = fmax(peak, rfl_text_same(row->backend, "cpu") ? row->host_peak_bytes
								     : row->mem_alloc_peak_bytes);
	}
	return peak;
}

void rfl_report__phases(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t = rfl_table_new(of_phases, RFL_ARRAY_LEN(of_phases));

	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		if (rfl_table_rows(t) == RFL_REPORT_ROWS) {
			rfl_table_note(t, "The first %zu configurations with these times.",
				       RFL_REPORT_ROWS);
			break;
		}
		const struct rfl_repeats_config *c = &r->repeats->configs[i];
		struct phases p = { .time = rfl_step_time_of(r->runs, c) };

		if (isnan(p.time.phase_ms[RFL_TIMED_FORWARD] + p.time.phase_ms[RFL_TIMED_BACKWARD]))
			continue;
		p.name = rfl_report__name(r, page, c);
		p.memory = peak_memory(r, c);
		rfl_table_add(t, &p, 1, sizeof(p));
	}
	if (rfl_table_rows(t) == 0)
		rfl_page_text(page, RFL_BLOCK_PARAGRAPH, "%s",
			      "No run has the times of the phases; 'roofline run' records them.");
	rfl_table_note(
		t, "Step: the time at the mean samples per second of the repeats, as in the "
		   "points; the phases are means over the repeats with the same weights. -: not "
		   "measured, or there is no such phase. On a GPU the host prepares the next "
		   "batch during a step, so the phases may not add up to it.");
	rfl_table_note(
		t,
		"Peak memory: of the engine's allocator on a GPU, of the process on a processor.");
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

void rfl_report__counters(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t;

	if (!rfl_report__have(page, r->captures, "measured FLOPs and bytes", "--counters",
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
