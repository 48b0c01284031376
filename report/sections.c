/* sections.c - the sections of a report on design, environments, complexity, rates and counters. */
#include "report/report_impl.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "base/text.h"
#include "ledger/facts.h"
#include "report/runs.h"
#include "roofline/step_time.h"
#include "runner/env/record.h"
#include "runner/run.h"

#define GIB          1073741824.0
#define BATCHES_MOST 16
#define RUNS_NAMED   20  /* maximum number of missing runs to list */
#define CHART_POINTS 300 /* configurations in a chart */
#define CHART_BARS   40

/* ---- design ---- */

/* A row of the table of the design: the batches of one model in one precision and environment. */
struct design {
	const char *env, *model, *precision;
	const char *batches; /* "16, 32, 64", at most BATCHES_MOST */
	size_t nbatches;
	int64_t configs, wanted, done, failed;
};
static const struct rfl_column of_design[] = {
	{ TEXT(struct design, env, "Environment") },
	{ TEXT(struct design, model, "Model") },
	{ TEXT(struct design, precision, "Precision") },
	{ TEXT(struct design, batches, "Batch sizes") },
	{ INT(struct design, configs, "Configurations") },
	{ INT(struct design, wanted, "Runs planned"), .when = 1 },
	{ INT(struct design, done, "Runs done") },
	{ INT(struct design, failed, "Failed") },
};

/* Find or add the row of a configuration, and count its batch size. */
static struct design *design_of(struct rfl_page *page, struct design *rows, size_t *n,
				const char *env, const char *model, const char *precision,
				int64_t batch)
{
	const char *word = rfl_page_printf(page, "%lld", (long long)batch);
	struct rfl_span rest, field;
	struct design *d = rows;

	while (d < rows + *n && !(rfl_text_same(d->env, env) && rfl_text_same(d->model, model) &&
				  rfl_text_same(d->precision, precision)))
		d++;
	if (d == rows + *n)
		rows[(*n)++] = (struct design){
			.env = env, .model = model, .precision = precision, .batches = ""
		};
	d->configs++;
	rest = rfl_span_of(d->batches);
	while (rfl_span_next_field(&rest, ',', &field))
		if (rfl_span_is(field, word))
			return d;
	if (d->nbatches++ < BATCHES_MOST)
		d->batches =
			rfl_page_printf(page, "%s%s%s", d->batches, *d->batches ? ", " : "", word);
	else if (d->nbatches == BATCHES_MOST + 1)
		d->batches = rfl_page_printf(page, "%s, ...", d->batches);
	return d;
}

static void design_table(const struct rfl_report *r, struct rfl_page *page)
{
	const size_t nconfigs = r->repeats ? r->repeats->n : 0;
	const size_t ncells = r->matrix ? r->matrix->ncells : 0;
	struct design *rows = rfl_arena_array(page->arena, ncells + nconfigs, sizeof(*rows)), *d;
	struct rfl_table *t = rfl_table_of(of_design, RFL_ARRAY_LEN(of_design), r->matrix ? 1 : 0);
	size_t n = 0;

	for (size_t i = 0; i < ncells; i++) {
		const struct rfl_matrix_cell *c = &r->matrix->cells[i];

		d = design_of(page, rows, &n, c->env, c->model, c->precision, c->batch);
		for (size_t k = i; k < r->coverage->nruns; k += ncells) {
			d->wanted++;
			d->done += r->coverage->runs[k].state == RFL_MATRIX_DONE;
			d->failed += r->coverage->runs[k].state == RFL_MATRIX_FAILED;
		}
	}
	for (size_t i = 0; !r->matrix && i < nconfigs; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];

		d = design_of(page, rows, &n, c->row->env, c->row->model, c->row->precision,
			      c->row->batch);
		d->done += (int64_t)c->n;
		d->failed += (int64_t)c->failed;
	}
	rfl_table_add(t, rows, n, sizeof(*rows));
	rfl_page_table(page, "Models, precisions and batch sizes", t);
}

/* "mode train, layout nhwc, ...": the fields that all runs share. */
static void same_in_all(const struct rfl_report *r, struct rfl_page *page)
{
	const bool sequences = r->kind == RFL_REPORT_LM || r->kind == RFL_REPORT_ATTENTION;
	struct rfl_facts_apart apart = { .first = { NULL } };
	RFL_AUTO(buf) out = { .len = 0 };
	char number[RFL_NUM_MAX];

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
		rfl_page_para(page, "The same in all runs: %s.", rfl_buf_str(&out));
}

void rfl_report__design(const struct rfl_report *r, struct rfl_page *page)
{
	const struct rfl_matrix *m = r->matrix;
	char label[RFL_LABEL_MAX + 1];
	size_t left, named = 0;

	if (!rfl_report__have(r, page, r->repeats ? (const void *)r->repeats : m, "runs",
			      "--metrics", "roofline run"))
		return;
	if (m)
		rfl_page_para(page,
			      "The matrix %s asks for %zu run%s: %zu configuration%s, each %d "
			      "time%s. %zu %s done.",
			      m->name ? m->name : m->path, r->coverage->nruns,
			      plural(r->coverage->nruns), m->ncells, plural(m->ncells), m->repeats,
			      plural((size_t)m->repeats), r->coverage->done,
			      r->coverage->done == 1 ? "is" : "are");
	else
		rfl_page_para(page, "The ledger has %zu configuration%s in %zu run%s.",
			      r->repeats->n, plural(r->repeats->n),
			      r->repeats->nruns + r->repeats->nfailed,
			      plural(r->repeats->nruns + r->repeats->nfailed));
	if (!m)
		rfl_report__lacks(r, page,
				  "runs that were planned but are missing: add --matrix FILE, if a "
				  "matrix was run");
	design_table(r, page);
	same_in_all(r, page);
	if (m && r->coverage->foreign)
		rfl_page_para(page,
			      "%zu row%s of the ledger belong%s to no configuration of the matrix; "
			      "the table above does not count %s, the sections below do.",
			      r->coverage->foreign, plural(r->coverage->foreign),
			      r->coverage->foreign == 1 ? "s" : "",
			      r->coverage->foreign == 1 ? "it" : "them");
	if (!m || r->coverage->done == r->coverage->nruns)
		return;
	left = r->coverage->missing + r->coverage->failed;
	rfl_page_para(page,
		      "%zu run%s missing or failed; 'roofline matrix run %s%s' runs %s, with the "
		      "directory of the ledger as --log-dir or, if another program wrote the "
		      "ledger, as --done-in:",
		      left, left == 1 ? " is" : "s are", m->path,
		      r->coverage->failed ? " --retry-failed" : "", left == 1 ? "it" : "them");
	for (size_t i = 0; i < r->coverage->nruns && named < RUNS_NAMED; i++) {
		const struct rfl_matrix_run *run = &r->coverage->runs[i];

		if (run->state == RFL_MATRIX_DONE)
			continue;
		rfl_matrix_label(&m->cells[run->cell], run->repeat, label);
		rfl_page_item(page, "%s: %s", label,
			      run->state == RFL_MATRIX_FAILED ? "failed" : "missing");
		named++;
	}
	if (left > named)
		rfl_page_item(page, "and %zu more", left - named);
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
	(void)rfl_report__have(r, page, page->n > first ? r : NULL, "record of the environments",
			       "--env", "roofline env");
}

/* One command per configuration, of its first run. */
void rfl_report__commands(const struct rfl_report *r, struct rfl_page *page)
{
	RFL_AUTO(buf) out = { .len = 0 };

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
		if (c->n > 1)
			rfl_buf_printf(&out, " # %zu times", c->n);
		rfl_buf_putc(&out, '\n');
	}
	rfl_buf_puts(&out, r->command);
	rfl_page_para(page,
		      "One command per configuration, without options that have their default; a "
		      "comment shows how often it was run. They write to the directory logs, or to the one of --log-dir. Commands of "
		      "runs of an older version are reconstructed from the columns of the ledger, "
		      "and lack what these do not have, such as the directory of the data "
		      "(--data). The last command writes this report.");
	rfl_page_text(page, RFL_BLOCK_CODE, "%s", rfl_buf_str(&out));
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
static const struct rfl_column of_costs[] = {
	{ TEXT(struct cost, model, "Model") },
	{ TEXT(struct cost, input, "Input") },
	{ INT(struct cost, params, "Parameters (M)"), .scale = 1e6, .decimals = 2 },
	{ REAL(struct cost, macs, "Forward GMACs", 1e9) },
	{ REAL(struct cost, flops, "Forward GFLOPs", 1e9) },
	{ REAL(struct cost, train_flops, "Training GFLOPs", 1e9) },
	{ INT(struct cost, batch, "Batch") },
	{ REAL(struct cost, ai[RFL_FUSION_UNFUSED], "FLOP/byte unfused", 1), .digits = 3 },
	{ REAL(struct cost, ai[RFL_FUSION_FUSED], "fused", 1), .digits = 3 },
	{ REAL(struct cost, ai[RFL_FUSION_COMPULSORY], "compulsory", 1), .digits = 3 },
	{ REAL(struct cost, state, "Weights and optimizer (GiB)", GIB), .digits = 3 },
	{ REAL(struct cost, saved, "Activations (GiB)", GIB), .digits = 3 },
	{ REAL(struct cost, memory, "Peak memory (GiB)", GIB), .digits = 3 },
};

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
	struct rfl_buf out = { .len = 0 };
	const json_t *size;
	size_t i;

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
	(void)rfl_report__have(
		r, page, rfl_table_rows(t) ? t : NULL, "cost of the networks", "--complexity-json",
		"roofline complexity --models MODEL... --batch-sizes N... --output-dir DIR");
	rfl_table_note(t,
		       "Counted from the networks, not measured. MACs and FLOPs are per sample, 2 "
		       "FLOPs per MAC, convolutions and matmuls only. FLOP/byte and memory "
		       "are of a training step of the batch in %s with the optimizer %s ('roofline "
		       "complexity --optimizer').",
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
			rfl_page_para(page,
				      "The memory was computed for %s, but %s was trained with %s: "
				      "create the file again with --optimizer %s.",
				      optimizer, r->repeats->configs[i].row->model,
				      r->repeats->configs[i].row->optimizer,
				      r->repeats->configs[i].row->optimizer);
			break;
		}
}

/* ---- throughput, phases ---- */

void rfl_report__throughput(const struct rfl_report *r, struct rfl_page *page)
{
	static const char notes[] =
		"n: runs; warmup, iters: steps before and in the measured window of a run; CV: Std "
		"/ Mean; the flags of runs are explained under Limitations\n";
	const size_t n = r->repeats ? r->repeats->n : 0;
	struct rfl_repeats shown;
	bool ours = false; /* runs of this program */
	const char **names;

	if (!rfl_report__have(r, page, n ? r : NULL, "runs", "--metrics", "roofline run"))
		return;
	for (size_t i = 0; i < r->runs->ledger->nrows && !ours; i++)
		ours = r->runs->ledger->rows[i].run_id;
	if (ours)
		rfl_page_para(page, "A run executes its warm-up steps, then times a window of "
				    "further steps with the monotonic clock. Samples per second "
				    "cover the whole window, including the wait for data.");
	shown = *r->repeats;
	shown.n = rfl_report__rows(page, n, "configurations", "'roofline summary' prints all");
	rfl_page_table(page, "Samples per second", rfl_repeats_table(&shown, true, notes));
	rfl_report__charts(r, page, "throughput", 2, CHART_POINTS, "Samples per second");
	names = rfl_arena_array(page->arena, shown.n, sizeof(*names));
	for (size_t i = 0; i < shown.n; i++)
		names[i] = rfl_report__name(r, page, &shown.configs[i]);
	rfl_page_table(page, "Samples per second of each run",
		       rfl_repeats_values(&shown, names, page));
}

struct phases {
	const char *name;
	struct rfl_step_time time;
};
static const struct rfl_column of_phases[] = {
	{ TEXT(struct phases, name, "Configuration") },
	{ REAL(struct phases, time.phase_ms[RFL_TIMED_DATA_WAIT], "Wait for data (ms)", 1) },
	{ REAL(struct phases, time.phase_ms[RFL_TIMED_UPLOAD], "Upload (ms)", 1) },
	{ REAL(struct phases, time.phase_ms[RFL_TIMED_FORWARD], "Forward (ms)", 1) },
	{ REAL(struct phases, time.phase_ms[RFL_TIMED_BACKWARD], "Backward (ms)", 1) },
	{ REAL(struct phases, time.phase_ms[RFL_TIMED_OPTIMIZER], "Optimizer (ms)", 1) },
	{ REAL(struct phases, time.step_s, "Step (ms)", 1e-3) },
};

void rfl_report__phases(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t = rfl_table_new(of_phases, RFL_ARRAY_LEN(of_phases));

	for (size_t i = 0; r->repeats && i < r->repeats->n; i++) {
		const struct rfl_repeats_config *c = &r->repeats->configs[i];
		struct phases p = { .time = rfl_step_time_of(r->runs, c) };

		if (isnan(p.time.phase_ms[RFL_TIMED_FORWARD] + p.time.phase_ms[RFL_TIMED_BACKWARD]))
			continue;
		if (rfl_table_rows(t) == RFL_REPORT_ROWS) {
			rfl_table_note(t, "The first %zu configurations with these times.",
				       RFL_REPORT_ROWS);
			break;
		}
		p.name = rfl_report__name(r, page, c);
		rfl_table_add(t, &p, 1, sizeof(p));
	}
	if (rfl_table_rows(t) == 0)
		rfl_report__lacks(r, page, "times of the phases: 'roofline run' records them");
	rfl_table_note(t, "Step: the time at the mean samples per second of the repeats, as in the "
			  "points; the phases are means over the repeats with the same weights. -: "
			  "not measured, or there is no such phase. On a GPU the host prepares the "
			  "next batch during a step, so the phases may not add up to it.");
	rfl_page_table(page, "Phases of a step", t);
	rfl_report__charts(r, page, "phases", 2, CHART_BARS, "Time of the phases per sample");
}

/* ---- duration, memory and power ---- */

static const struct {
	const char *title;
	enum rfl_ledger_at column;
	double unit;
} of_resources[] = {
	{ "Window (s)", RFL_LEDGER_AT_wall_s, 1 },
	{ "Setup (s)", RFL_LEDGER_AT_setup_s, 1 },
	{ "Process peak (GiB)", RFL_LEDGER_AT_host_peak_bytes, GIB },
	{ "Allocator peak (GiB)", RFL_LEDGER_AT_mem_alloc_peak_bytes, GIB },
	{ "Device peak (GiB)", RFL_LEDGER_AT_device_memory_peak_bytes, GIB },
	{ "Idle between steps %", RFL_LEDGER_AT_launch_gap, 0.01 },
	{ "SM clock (MHz)", RFL_LEDGER_AT_sm_clock_mean_hz, 1e6 },
	{ "Power (W)", RFL_LEDGER_AT_power_mean_w, 1 },
	{ "Samples/J", RFL_LEDGER_AT_samples_per_j, 1 },
	{ "Temperature (C)", RFL_LEDGER_AT_temperature_max_c, 1 },
};

/* "0.81" or, if the runs differ, "0.81 to 1.32". NULL: unknown in all */
static const char *range_of(const struct rfl_report *r, struct rfl_page *page,
			    const struct rfl_repeats_config *c, size_t column)
{
	const struct rfl_field *f = &rfl_ledger_fields[of_resources[column].column];
	double lo = NAN, hi = NAN; /* ignored by fmin() and fmax() */
	char from[RFL_NUM_MAX], to[RFL_NUM_MAX];

	for (size_t i = 0; i < c->n; i++) {
		const double value = rfl_field_number(f, rfl_runs_row(r->runs, c->runs[i].run)) /
				     of_resources[column].unit;

		lo = fmin(lo, value);
		hi = fmax(hi, value);
	}
	if (isnan(lo))
		return NULL;
	rfl_num_people(lo, 3, from);
	rfl_num_people(hi, 3, to);
	return strcmp(from, to) == 0 ? rfl_page_printf(page, "%s", from)
				     : rfl_page_printf(page, "%s to %s", from, to);
}

void rfl_report__resources(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_column columns[1 + RFL_ARRAY_LEN(of_resources)] = {
		{ .title = "Configuration" }
	};
	const size_t n = r->repeats ? r->repeats->n : 0;
	struct rfl_table *t;
	double time_s = 0;
	bool power = false;

	for (size_t k = 0; k < RFL_ARRAY_LEN(of_resources); k++)
		columns[1 + k].title = of_resources[k].title;
	t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	for (size_t i = 0; n && i < r->repeats->nruns; i++) {
		const struct rfl_ledger_row *row = rfl_runs_row(r->runs, r->repeats->runs[i].run);

		time_s += isnan(row->wall_s) ? 0 : row->wall_s;
		power |= !isnan(row->power_mean_w);
	}
	if (time_s > 0)
		rfl_page_para(page, "The measured windows of the successful runs take %.3g %s.",
			      time_s < 120 ? time_s : time_s / 60, time_s < 120 ? "s" : "min");
	for (size_t i = 0; i < n && rfl_table_rows(t) < RFL_REPORT_ROWS; i++) {
		const char *cells[RFL_ARRAY_LEN(of_resources)];
		bool known = false;

		for (size_t k = 0; k < RFL_ARRAY_LEN(cells); k++) {
			cells[k] = range_of(r, page, &r->repeats->configs[i], k);
			known |= cells[k] != NULL;
		}
		if (!known)
			continue;
		rfl_table_text(t, rfl_report__name(r, page, &r->repeats->configs[i]));
		for (size_t k = 0; k < RFL_ARRAY_LEN(cells); k++)
			rfl_table_text(t, cells[k]);
	}
	rfl_table_note(t, "Ranges over the runs. The device's memory includes other programs.");
	rfl_page_table(page, "Duration, memory and power of the runs", t);
	if (power)
		rfl_report__charts(r, page, "power", 2, CHART_POINTS, "Mean power of the GPU");
}

/* ---- counters ---- */

struct counted {
	const char *label, *source, *device, *validity;
	int64_t steps;
	double time, flops, bytes, ai, coverage;
};
static const struct rfl_column of_counters[] = {
	{ TEXT(struct counted, label, "Run") },
	{ TEXT(struct counted, source, "Source") },
	{ TEXT(struct counted, device, "Device") },
	{ INT(struct counted, steps, "Steps") },
	{ REAL(struct counted, time, "Time (ms)", 1e-3) },
	{ REAL(struct counted, flops, "GFLOP", 1e9) },
	{ REAL(struct counted, bytes, "DRAM (GB)", 1e9) },
	{ REAL(struct counted, ai, "FLOP/byte", 1), .digits = 3 },
	{ REAL(struct counted, coverage, "Coverage %", 0.01), .digits = 3 },
	{ TEXT(struct counted, validity, "Validity of FLOPs") },
};

/* Whether points have measured values, although their file is not among the inputs. */
static bool has_counters(const struct rfl_points *points)
{
	for (size_t i = 0; points && i < points->n; i++)
		if (points->points[i].counters_source)
			return true;
	return false;
}

void rfl_report__counters(const struct rfl_report *r, struct rfl_page *page)
{
	struct rfl_table *t;

	if (!r->captures && (has_counters(r->points) || has_counters(r->parts)))
		return;
	if (!rfl_report__have(r, page, r->captures, "measured FLOPs and bytes", "--counters",
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
