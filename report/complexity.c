/*
 * complexity.c - the tables of work and memory: all columns, the choice of columns for a table, and
 * its rows, heading and notes.
 */
#include "report/complexity_impl.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* The values of a row. */
struct line {
	const char *model, *name, *kind, *output;
	int64_t context, batch, params, trained, buffers;
	int64_t forward_macs, forward_flops, macs_excl_padding, training_flops; /* per sample */
	int64_t batch_forward_flops;
	int64_t macs, flops, pass_flops[RFL_PASS_COUNT], elementwise, bytes[RFL_FUSION_COUNT];
	double params_pct, flops_pct, bytes_pct[RFL_FUSION_COUNT], ai[RFL_FUSION_COUNT];
	struct rfl_memory memory;
	int64_t saved_bytes;
	const char *peak_phase, *peak_at;
	double time_s, time_pct, samples_per_s, attainable_flop_per_s;
	const char *bound, *notes;
	double key;   /* of --sort; 0: none */
	size_t place; /* lines of equal cost remain in order */
};

/* The rows for which a column is available. */
enum scope { ANYWHERE, OF_MODELS, OF_PARTS, OF_LAYERS };

enum { NEEDS_MEMORY = 1, NEEDS_ROOF = 2, NEEDS_TRAIN = 4, NEEDS_BOTH = 8 };

struct column {
	struct rfl_column column;
	enum scope scope;
	unsigned needs;
	int level; /* 1 + level of fusion; 0: independent of fusion */
	const char *help;
};

/* The title, and possibly other members of struct rfl_column, follow the member and the key. */
#define COLUMN(kind_, member_, ...) .column = RFL_COLUMN(kind_, struct line, member_, __VA_ARGS__)
#define TEXT(key_, ...)             COLUMN(TEXT, key_, #key_, __VA_ARGS__)
#define INT(key_, ...)              COLUMN(INT, key_, #key_, __VA_ARGS__)
#define REAL(key_, ...)             COLUMN(REAL, key_, #key_, __VA_ARGS__)
#define MODEL(key_, ...)            INT(key_, __VA_ARGS__), .scope = OF_MODELS
#define FLOPS(key_, title_, pass_) \
	COLUMN(INT, pass_flops[RFL_PASS_##pass_], key_, title_, .scale = 1e9)
#define OF_LEVEL(level_, kind_, member_, ...) \
	COLUMN(kind_, member_[RFL_FUSION_##level_], __VA_ARGS__), .level = 1 + RFL_FUSION_##level_
#define BYTES(level_, key_, title_) \
	OF_LEVEL(level_, INT, bytes, key_ "_bytes", title_ " (MB)", .scale = 1e6)
#define SHARE(level_, key_, title_)                                                   \
	OF_LEVEL(level_, REAL, bytes_pct, key_ "_pct", title_ " (%)", .decimals = 1), \
		.help = "share of " key_ "_bytes"
#define INTENSITY(level_, key_) \
	OF_LEVEL(level_, REAL, ai, key_ "_ai", "FLOP/B " key_), .help = "flops / " key_ "_bytes"
#define MEMORY(key_, title_, member_, more_)                                           \
	COLUMN(INT, memory.member_, key_ "_bytes", title_ " (MiB)", .scale = RFL_MIB), \
		.scope = OF_MODELS, .needs = NEEDS_MEMORY | (more_)

static const struct column all_columns[] = {
	{ TEXT(model, "Model"), .help = "name of the network" },
	{ INT(context, "Context"), .help = "tokens per sample" },
	{ INT(batch, "Batch"), .help = "samples per pass" },
	{ TEXT(name, "Name"), .scope = OF_PARTS, .help = "name of the module, layer or kind" },
	{ TEXT(kind, "Kind"), .scope = OF_LAYERS, .help = "operation of the layer" },
	{ TEXT(output, "Output"), .scope = OF_LAYERS, .help = "output shape for one sample" },
	{ INT(params, "Params"), .help = "parameters" },
	{ REAL(params_pct, "Params (%)", .decimals = 1), .help = "share of params" },
	{ MODEL(trained, "Trained"), .help = "parameters that are not frozen" },
	{ MODEL(buffers, "Buffers"), .help = "running statistics" },
	{ MODEL(forward_macs, "GMACs/sample", .scale = 1e9),
	  .help = "MACs of the forward pass for one sample" },
	{ MODEL(forward_flops, "GFLOPs/sample", .scale = 1e9), .help = "2 x forward_macs" },
	{ MODEL(macs_excl_padding, "GMACs unpadded", .scale = 1e9),
	  .help = "forward_macs without taps in the padding" },
	{ MODEL(training_flops, "Train GFLOPs/sample", .scale = 1e9),
	  .help = "FLOPs of forward pass, both gradients and recomputation for one sample" },
	{ MODEL(batch_forward_flops, "Batch GFLOPs", .scale = 1e9), .needs = NEEDS_BOTH,
	  .help = "FLOPs of the forward pass for the batch" },
	{ INT(macs, "GMACs", .scale = 1e9),
	  .help = "MACs for the batch; with --train, for the step" },
	{ INT(flops, "GFLOPs", .scale = 1e9), .help = "2 x macs" },
	{ REAL(flops_pct, "FLOPs (%)", .decimals = 1), .help = "share of flops" },
	{ FLOPS("fwd_flops", "Fwd GFLOPs", FORWARD), .help = "FLOPs of the forward pass" },
	{ FLOPS("dgrad_flops", "Dgrad GFLOPs", DGRAD), .needs = NEEDS_TRAIN,
	  .help = "FLOPs of the gradients of inputs" },
	{ FLOPS("wgrad_flops", "Wgrad GFLOPs", WGRAD), .needs = NEEDS_TRAIN,
	  .help = "FLOPs of the gradients of parameters" },
	{ FLOPS("recompute_flops", "Recompute GFLOPs", RECOMPUTE), .needs = NEEDS_TRAIN,
	  .help = "FLOPs repeated in the backward pass" },
	{ INT(elementwise, "Elem. (M)", .scale = 1e6),
	  .help = "elementwise additions, multiplications, comparisons and special functions" },
	{ BYTES(UNFUSED, "unfused", "Unfused"), .help = "bytes moved if no operations are fused" },
	{ BYTES(FUSED, "fused", "Fused"),
	  .help = "bytes moved if elementwise operations are fused with their neighbours" },
	{ BYTES(COMPULSORY, "compulsory", "Compulsory"),
	  .help = "bytes that must be moved in any case" },
	{ SHARE(UNFUSED, "unfused", "Unfused") },
	{ SHARE(FUSED, "fused", "Fused") },
	{ SHARE(COMPULSORY, "compulsory", "Compulsory") },
	{ INTENSITY(UNFUSED, "unfused") },
	{ INTENSITY(FUSED, "fused") },
	{ INTENSITY(COMPULSORY, "compulsory") },
	{ MEMORY("weights", "Weights", weights, 0), .help = "parameters" },
	{ MEMORY("buffers", "Buffers", buffers, 0), .help = "running statistics" },
	{ MEMORY("gradients", "Gradients", gradients, NEEDS_TRAIN),
	  .help = "gradients of all trained parameters" },
	{ MEMORY("state", "Optimizer", state, NEEDS_TRAIN),
	  .help = "optimizer state, such as moments" },
	{ MEMORY("weight_copies", "16-bit weights", weight_copies, 0),
	  .help = "copies kept by autocast during the passes" },
	{ MEMORY("input", "Input", input, 0), .help = "batch and labels" },
	{ INT(saved_bytes, "Saved (MiB)", .scale = RFL_MIB), .needs = NEEDS_MEMORY | NEEDS_TRAIN,
	  .help = "tensors kept from the forward pass for the backward pass" },
	{ MEMORY("peak", "Peak", peak, 0), .help = "maximum memory allocated at any time" },
	{ TEXT(peak_phase, "Peak in"), .scope = OF_MODELS, .needs = NEEDS_MEMORY,
	  .help = "phase of the peak: forward, backward or step" },
	{ TEXT(peak_at, "Peak at"), .scope = OF_MODELS, .needs = NEEDS_MEMORY,
	  .help = "operation at the peak; empty for the loss and the update" },
	{ REAL(time_s, "Minimum time (ms)", .scale = 1e-3), .needs = NEEDS_ROOF,
	  .help = "minimum time under the ceilings of --env" },
	{ REAL(time_pct, "Time (%)", .decimals = 1), .needs = NEEDS_ROOF,
	  .help = "share of time_s" },
	{ TEXT(bound, "Bound"), .needs = NEEDS_ROOF,
	  .help = "limit for most of time_s: compute, vector or memory" },
	{ REAL(samples_per_s, "Max samples/s"), .scope = OF_MODELS, .needs = NEEDS_ROOF,
	  .help = "batch / time_s" },
	{ REAL(attainable_flop_per_s, "Max GFLOP/s", .scale = 1e9), .needs = NEEDS_ROOF,
	  .help = "flops / time_s" },
};

/* The table of older reports (--columns report), with its titles and column order. */
static const struct column report_columns[] = {
	{ TEXT(model, "Model") },
	{ INT(params, "Params (M)", .scale = 1e6) },
	{ INT(forward_macs, "Forward MACs/sample (G)", .scale = 1e9) },
	{ INT(batch_forward_flops, "Forward FLOPs/batch (G)", .digits = 7, .scale = 1e9),
	  .needs = NEEDS_BOTH },
	{ TEXT(notes, "Notes") },
};

static const struct column *find_column(const char *key, size_t len)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(all_columns); i++)
		if (strlen(all_columns[i].column.key) == len &&
		    memcmp(all_columns[i].column.key, key, len) == 0)
			return &all_columns[i];
	return NULL;
}

static void put_scope(struct rfl_table *t, const void *row)
{
	static const char *const scopes[] = { "anything", "models", "parts", "layers" };

	rfl_table_text(t, scopes[((const struct column *)row)->scope]);
}

static void put_needs(struct rfl_table *t, const void *row)
{
	const unsigned needs = ((const struct column *)row)->needs;

	rfl_table_text(t, needs & NEEDS_ROOF    ? "--peaks, --env"
			  : needs & NEEDS_TRAIN ? "--train"
						: "");
}

struct rfl_table *rfl_complexity_columns_table(void)
{
	static const struct rfl_column columns[] = {
		{ .key = "column", .title = "Column", RFL_CELL(struct column, column.key) },
		{ .key = "title", .title = "Title", RFL_CELL(struct column, column.title) },
		{ .key = "of", .title = "Of", .put = put_scope },
		{ .key = "needs", .title = "Needs", .put = put_needs },
		{ .key = "help", .title = "Meaning", RFL_CELL(struct column, help) },
	};
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));

	rfl_table_add(t, all_columns, RFL_ARRAY_LEN(all_columns), sizeof(all_columns[0]));
	rfl_table_note(t, "--columns report selects the table of older reports: model, params, "
			  "forward_macs, batch_forward_flops and notes.");
	return t;
}

enum { MAX_COLUMNS = 64 };

/* A table and its columns. */
struct sheet {
	struct rfl_table *table; /* NULL: the table is not shown */
	enum rfl_summary_by by;  /* its rows */
	size_t n;
	const struct column *items[MAX_COLUMNS];
	struct rfl_column columns[MAX_COLUMNS]; /* with the titles of this table */
	char title[64];
	bool report;               /* --columns report */
	const struct column *sort; /* of --sort; NULL: none */
};

bool rfl_complexity_has_text(const struct rfl_complexity *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->items[i]->context_length)
			return true;
	return false;
}

static bool is_key(const struct column *c, const char *key)
{
	return strcmp(c->column.key, key) == 0;
}

static void add(struct sheet *sheet, const struct column *c)
{
	sheet->items[sheet->n] = c;
	sheet->columns[sheet->n++] = c->column;
}

/* Why a column cannot have these rows; NULL: it can. */
static const char *scope_of(const struct column *c, enum rfl_summary_by by)
{
	if (c->scope == OF_MODELS && by != RFL_SUMMARY_BY_MODEL)
		return "describes a whole model; use --by model";
	if (c->scope == OF_PARTS && by == RFL_SUMMARY_BY_MODEL)
		return "describes a part; use --by module, layer or kind";
	if (c->scope == OF_LAYERS && by != RFL_SUMMARY_BY_LAYER)
		return "describes one operation; use --by layer";
	return NULL;
}

/* Add the columns with these keys, separated by blanks, except columns that would be empty. */
static void add_keys(struct sheet *sheet, const struct rfl_complexity *r, const char *keys)
{
	for (; *keys; keys += strcspn(keys, " "), keys += strspn(keys, " ")) {
		const struct column *c = find_column(keys, strcspn(keys, " "));

		assert(c && sheet->n < MAX_COLUMNS);
		if (scope_of(c, sheet->by) ||
		    (is_key(c, "context") && !rfl_complexity_has_text(r)) ||
		    (c->level && r->fusion >= 0 && c->level != 1 + r->fusion) ||
		    (c->needs & NEEDS_MEMORY && !r->options.memory) ||
		    (c->needs & NEEDS_ROOF && !r->options.roof) ||
		    (c->needs & NEEDS_TRAIN && !r->train))
			continue;
		add(sheet, c);
	}
}

#define LEVEL_BYTES "unfused_bytes fused_bytes compulsory_bytes "
#define LEVEL_PCT   "unfused_pct fused_pct compulsory_pct "
#define LEVEL_AI    "unfused_ai fused_ai compulsory_ai "
#define OF_MEMORY   "weights_bytes gradients_bytes state_bytes saved_bytes peak_bytes peak_phase "

/* Choose the columns of bytes for people: with times, the level of fusion used for the times, else
 * as many of the requested levels as fit 160 columns. Compulsory bytes are omitted for parts
 * because they are less useful there. */
static const char *levels_for_people(const struct rfl_complexity *r, bool one)
{
	static const char *const timed[RFL_FUSION_COUNT] = {
		"unfused_bytes unfused_ai ",
		"fused_bytes fused_ai ",
		"compulsory_bytes compulsory_ai ",
	};
	const enum rfl_summary_by by = r->options.by;

	if (r->options.roof)
		return timed[r->options.roof->fusion];
	if (r->fusion == RFL_FUSION_AUTO)
		return "fused_ai ";
	if (by == RFL_SUMMARY_BY_MODEL || r->fusion >= 0)
		return by == RFL_SUMMARY_BY_MODEL ? LEVEL_BYTES LEVEL_AI
						  : LEVEL_BYTES LEVEL_PCT LEVEL_AI;
	return by == RFL_SUMMARY_BY_LAYER || !one
		       ? "unfused_bytes fused_bytes unfused_ai fused_ai "
		       : "unfused_bytes unfused_pct fused_bytes unfused_ai fused_ai ";
}

static bool one_name(const struct rfl_complexity *r)
{
	for (size_t i = 1; i < r->n; i++)
		if (strcmp(r->items[i]->name, r->items[0]->name) != 0)
			return false;
	return true;
}

static void add_for_people(struct sheet *sheet, const struct rfl_complexity *r)
{
	const bool layers = r->options.by == RFL_SUMMARY_BY_LAYER, one = one_name(r);
	const bool parts = r->options.by != RFL_SUMMARY_BY_MODEL;
	const bool much = r->fusion != RFL_FUSION_AUTO;

	add_keys(sheet, r, one && parts ? "context" : "model context");
	add_keys(sheet, r, !parts ? "params batch" : r->nbatches > 1 ? "batch" : "");
	add_keys(sheet, r, !parts ? "macs flops" : "name kind output params macs flops");
	if (parts && !layers)
		add_keys(sheet, r, much || r->options.roof ? "flops_pct elementwise" : "flops_pct");
	add_keys(sheet, r, levels_for_people(r, one || !parts));
	add_keys(sheet, r, parts ? "time_s time_pct bound" : "time_s bound samples_per_s");
	if (parts && much && !r->options.roof)
		add_keys(sheet, r, "saved_bytes");
}

static void add_for_programs(struct sheet *sheet, const struct rfl_complexity *r)
{
	add_keys(sheet, r,
		 "model context name kind output params forward_macs forward_flops training_flops "
		 "batch macs flops ");
	if (r->train && r->options.by == RFL_SUMMARY_BY_MODEL)
		add_keys(sheet, r, "fwd_flops dgrad_flops wgrad_flops recompute_flops");
	add_keys(sheet, r,
		 "elementwise " LEVEL_BYTES LEVEL_AI OF_MEMORY "time_s bound samples_per_s");
}

/* Find the column of a key that the user chose with an option. */
static enum rfl_rc choose(const struct sheet *sheet, const struct rfl_complexity *r,
			  const char *option, const char *key, const struct column **ret,
			  struct rfl_err *err)
{
	const struct column *c = find_column(key, strlen(key));
	const char *keys[RFL_ARRAY_LEN(all_columns) + 2] = { NULL }, *why;
	const char *otherwise = "'--columns help' lists the columns";
	char advice[RFL_ADVICE_SIZE], titled[64];

	if (!c) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(all_columns); i++) {
			const char *title[] = { all_columns[i].column.title, NULL };

			keys[i] = all_columns[i].column.key;
			if (rfl_text_nearest(key, title)) { /* gmacs: the column is macs */
				snprintf(titled, sizeof(titled), "did you mean %s?", keys[i]);
				otherwise = titled;
			}
		}
		keys[RFL_ARRAY_LEN(all_columns)] = "report";
		return rfl_fail(err, RFL_EUSAGE, 0, "%s: no column '%s'; %s", option, key,
				rfl_text_advice(key, keys, 3, otherwise, advice));
	}
	why = scope_of(c, sheet->by);
	if (!why && c->needs & NEEDS_ROOF && !r->options.roof)
		why = "needs ceilings; use --peaks FILE --env NAME";
	else if (!why && c->needs & NEEDS_TRAIN && !r->train)
		why = "describes a training step; use --train";
	if (why)
		return rfl_fail(err, RFL_EUSAGE, 0, "%s: '%s' %s", option, key, why);
	if (sheet->n == MAX_COLUMNS)
		return rfl_fail(err, RFL_EUSAGE, 0, "%s: more than %d columns; choose fewer",
				option, MAX_COLUMNS);
	*ret = c;
	return RFL_OK;
}

/* The key of the column to sort by; the short names follow the other options. */
static const char *sort_key(const struct rfl_complexity *r)
{
	static const char *const bytes[] = { "unfused_bytes", "fused_bytes", "compulsory_bytes" };
	const bool models = r->options.by == RFL_SUMMARY_BY_MODEL;

	if (!r->sort)
		return NULL;
	if (strcmp(r->sort, "time") == 0)
		return "time_s";
	if (strcmp(r->sort, "memory") == 0)
		return models ? "peak_bytes" : "saved_bytes";
	if (strcmp(r->sort, "bytes") == 0)
		return bytes[r->fusion < 0 ? RFL_FUSION_FUSED : r->fusion];
	return r->sort;
}

/* Find the column to sort by, and show it. */
static enum rfl_rc choose_sort(struct sheet *sheet, const struct rfl_complexity *r,
			       struct rfl_err *err)
{
	const char *key = sort_key(r);
	enum rfl_rc rc;

	if (!key)
		return RFL_OK;
	rc = choose(sheet, r, "--sort", key, &sheet->sort, err);
	if (rc == RFL_OK && sheet->sort->column.kind == RFL_COLUMN_TEXT)
		rc = rfl_fail(err, RFL_EUSAGE, 0, "--sort: '%s' is text; choose a number", key);
	for (size_t i = 0; rc == RFL_OK && i < sheet->n; i++)
		if (sheet->items[i] == sheet->sort)
			return RFL_OK;
	if (rc == RFL_OK)
		add(sheet, sheet->sort);
	return rc;
}

static bool is_report(const struct rfl_complexity *r)
{
	return r->ncolumns == 1 && strcmp(r->columns[0], "report") == 0;
}

static enum rfl_rc choose_columns(struct sheet *sheet, const struct rfl_complexity *r, bool people,
				  struct rfl_err *err)
{
	static const char *const part_titles[] = { "Model", "Module", "Layer", "Kind" };
	const struct column *c;
	enum rfl_rc rc = RFL_OK;

	if (is_report(r) && r->options.by != RFL_SUMMARY_BY_MODEL)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--columns: 'report' has one row per model; use --by model");
	sheet->report = is_report(r);
	for (size_t i = 0; sheet->report && i < RFL_ARRAY_LEN(report_columns); i++) {
		if (r->nbatches > 1 && is_key(&report_columns[i], "batch_forward_flops"))
			add_keys(sheet, r, "batch");
		add(sheet, &report_columns[i]);
	}
	for (size_t i = 0; !sheet->report && i < r->ncolumns && rc == RFL_OK; i++)
		if (!(rc = choose(sheet, r, "--columns", r->columns[i], &c, err)))
			add(sheet, c);
	if (!r->ncolumns && people)
		add_for_people(sheet, r);
	else if (!r->ncolumns)
		add_for_programs(sheet, r);
	if (rc == RFL_OK)
		rc = choose_sort(sheet, r, err);
	(void)snprintf(sheet->title, sizeof(sheet->title), "Forward FLOPs/batch (G, bs%lld)",
		       (long long)r->batches[0]);
	for (size_t i = 0; i < sheet->n; i++) {
		if (is_key(sheet->items[i], "name"))
			sheet->columns[i].title = part_titles[r->options.by];
		if (is_key(sheet->items[i], "fused_ai") && !r->ncolumns && !r->options.roof &&
		    r->fusion == RFL_FUSION_AUTO)
			sheet->columns[i].title = "FLOP/B";
		if (is_key(sheet->items[i], "batch_forward_flops") && sheet->report &&
		    r->nbatches == 1)
			sheet->columns[i].title = sheet->title;
	}
	return rc;
}

void rfl_complexity_needs(struct rfl_complexity *r, bool document)
{
	unsigned needs = document ? NEEDS_MEMORY | NEEDS_BOTH : is_report(r) ? NEEDS_BOTH : 0U;

	if (!r->ncolumns && r->train)
		needs |= NEEDS_MEMORY;
	for (size_t i = 0; i <= r->ncolumns; i++) {
		const char *key = i < r->ncolumns ? r->columns[i] : sort_key(r);
		const struct column *c = key ? find_column(key, strlen(key)) : NULL;

		needs |= c ? c->needs : 0U;
	}
	r->options.memory = (needs & NEEDS_MEMORY) != 0;
	r->options.unwanted[!r->train] = !(needs & NEEDS_BOTH);
}

/* The three models of the older report, with its figures for MACs per sample (G). */
static const struct {
	const char *model;
	double printed;
} reported[] = { { "resnet50", 8.178 }, { "vgg16", 30.968 }, { "mobilenet_v2", 0.602 } };

/* NaN if the whole is 0. */
static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : (double)NAN;
}

/* The values of a row. @param arena  owns its notes */
static struct line line_of(const struct rfl_complexity *r, const struct rfl_summary *s,
			   const struct rfl_summary_row *row, struct rfl_arena *arena)
{
	const struct rfl_summary_work *w = &row->work[r->train];
	const struct rfl_summary_work *all = &s->rows->total.work[r->train];
	const struct rfl_memory *memory = s->memory[r->train];
	const double time_s = rfl_attained_time(&w->attained), flops = 2.0 * (double)w->macs;
	const int64_t moved = row->work[0].bytes[RFL_FUSION_FUSED];
	struct line l = {
		.model = s->name,
		.name = row->name,
		.kind = row->kind,
		.output = row->output,
		.context = s->context_length ? s->context_length : RFL_INT_UNKNOWN,
		.batch = s->batch,
		.params = row->params,
		.params_pct = ratio(100.0 * (double)row->params, (double)s->rows->total.params),
		.trained = s->one[1].trained,
		.buffers = s->one[0].buffers,
		.forward_macs = rfl_count_forward_flops(&s->one[0]) / 2,
		.forward_flops = rfl_count_forward_flops(&s->one[0]),
		.macs_excl_padding = s->one[0].total.macs_excl_padding,
		.training_flops = rfl_count_training_flops(&s->one[1]),
		.batch_forward_flops =
			s->count[0] ? rfl_count_forward_flops(s->count[0]) : RFL_INT_UNKNOWN,
		.macs = w->macs,
		.flops = 2 * w->macs,
		.flops_pct = ratio(100.0 * (double)w->macs, (double)all->macs),
		.elementwise = w->elementwise,
		.time_s = time_s,
		.time_pct = ratio(100 * time_s, rfl_attained_time(&all->attained)),
		.bound = rfl_limit_names[rfl_attained_bound(&w->attained)],
		.samples_per_s = ratio((double)s->batch, time_s),
		.attainable_flop_per_s = ratio(flops, time_s),
		.notes = moved > 0
				 ? rfl_arena_printf(arena, "%.1f FLOPs per byte if fused",
						    2.0 * (double)row->work[0].macs / (double)moved)
				 : "moves no bytes",
	};

	for (int i = 0; i < RFL_PASS_COUNT; i++)
		l.pass_flops[i] = 2 * w->pass_macs[i];
	for (int i = 0; i < RFL_FUSION_COUNT; i++) {
		l.bytes[i] = w->bytes[i];
		l.bytes_pct[i] = ratio(100.0 * (double)w->bytes[i], (double)all->bytes[i]);
		l.ai[i] = ratio(flops, (double)w->bytes[i]);
	}
	if (memory) {
		l.memory = *memory;
		l.saved_bytes =
			r->options.by == RFL_SUMMARY_BY_MODEL ? memory->saved : row->saved_bytes;
		l.peak_phase = rfl_phase_names[memory->peak_phase];
		l.peak_at = memory->peak_node < 0 ? NULL : s->net->nodes[memory->peak_node].name;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(reported); i++)
		/* the figures in the report are for the default sizes */
		if (s->model && strcmp(s->model->name, reported[i].model) == 0 &&
		    s->net->nodes[0].shape.dim[1] == s->model->image_size &&
		    s->net->classes == s->model->classes)
			l.notes = rfl_arena_printf(
				arena, "%s; an older report has %.3f, %.3f times these MACs",
				l.notes, reported[i].printed,
				reported[i].printed * 1e9 / (double)l.forward_macs);
	return l;
}

/* Lines that are sorted before they are added to a table. */
struct lines {
	size_t n, cap;
	struct line *items;
	struct rfl_arena *arena; /* owns their notes */
};

static int by_cost(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->key != y->key && !(isnan(x->key) && isnan(y->key)))
		return isnan(y->key) || x->key > y->key ? -1 : 1;
	if (x->macs != y->macs)
		return x->macs > y->macs ? -1 : 1;
	if (x->bytes[0] != y->bytes[0])
		return x->bytes[0] > y->bytes[0] ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

/* Add the lines to the table, all in order or, with --sort or --top, the largest.
 * @param memory  also add them to this table; may be NULL */
static void add_lines(struct sheet *sheet, struct rfl_table *memory, const struct rfl_complexity *r,
		      struct lines *lines)
{
	const struct rfl_column *by = sheet->sort ? &sheet->sort->column : NULL;
	const size_t n = r->top && r->top < lines->n ? r->top : lines->n;

	for (size_t i = 0; i < lines->n; i++) {
		const void *at = (const char *)&lines->items[i] + (by ? by->at : 0);

		lines->items[i].place = i;
		if (by)
			lines->items[i].key = by->kind == RFL_COLUMN_REAL
						      ? *(const double *)at
						      : (double)*(const int64_t *)at;
	}
	if (lines->n && (r->top || r->sort))
		qsort(lines->items, lines->n, sizeof(*lines->items), by_cost);
	rfl_table_add(sheet->table, lines->items, n, sizeof(*lines->items));
	if (memory)
		rfl_table_add(memory, lines->items, n, sizeof(*lines->items));
	lines->n = 0;
}

/* Return true for a group that only contains the input or reshapes; it is omitted. */
static bool is_empty(const struct rfl_complexity *r, const struct rfl_summary_row *row)
{
	const struct rfl_summary_work *w = &row->work[r->train];
	int level = r->fusion < 0 ? RFL_FUSION_UNFUSED : r->fusion;

	return (r->options.by == RFL_SUMMARY_BY_KIND || r->options.by == RFL_SUMMARY_BY_MODULE) &&
	       !w->macs && !w->elementwise && !w->bytes[level] && !row->params && !row->saved_bytes;
}

/* Add one network at every batch: its parts and their sum, and one row of memory per batch. Whole
 * models are only collected, because they are sorted together. */
static enum rfl_rc add_network(struct sheet *work, struct sheet *memory,
			       const struct rfl_complexity *r, struct rfl_summary *s, bool people,
			       struct lines *lines, struct rfl_err *err)
{
	const bool models = r->options.by == RFL_SUMMARY_BY_MODEL;
	enum rfl_rc rc = RFL_OK;

	for (size_t b = 0; b < r->nbatches && !(rc = rfl_summary_at(s, r->batches[b], err)); b++) {
		struct line total;

		rfl_summary_sum(s);
		for (size_t i = 0; i < s->rows->n; i++) {
			const struct rfl_summary_row *row = &s->rows->rows[i];

			if ((row->step_only && !r->train) || (people && is_empty(r, row)))
				continue;
			rfl_reserve(&lines->items, &lines->cap, lines->n + 1);
			lines->items[lines->n++] = line_of(r, s, row, lines->arena);
		}
		if (models)
			continue;
		add_lines(work, NULL, r, lines);
		total = line_of(r, s, &s->rows->total, lines->arena);
		if (people)
			rfl_table_add(work->table, &total, 1, sizeof(total));
		if (memory->table)
			rfl_table_add(memory->table, &total, 1, sizeof(total));
	}
	rfl_summary_rest(s);
	return rc;
}

/* Begins with the name of the network, such as "ResNet-50, ", if there is only one. */
static void put_heading(const struct rfl_complexity *r, const char *what, bool train,
			enum rfl_summary_by by, struct rfl_buf *out)
{
	static const char *const parts[] = { "", ", by module", ", by layer",
					     ", by kind of operation" };

	if (r->n == 1)
		rfl_buf_printf(out, "%s, %s", r->items[0]->title, what);
	else
		rfl_buf_printf(out, "%c%s", toupper((unsigned char)what[0]), what + 1);
	if (train)
		rfl_buf_printf(out, " of one training step in %s with %s", r->options.precision,
			       rfl_optimizer_names[r->options.work.count.optimizer]);
	else
		rfl_buf_printf(out, " of one inference in %s", r->options.precision);
	rfl_buf_printf(out, "%s\n\n", parts[by]);
}

static bool has(const struct sheet *sheet, const char *key)
{
	for (size_t i = 0; i < sheet->n; i++)
		if (is_key(sheet->items[i], key))
			return true;
	return false;
}

static void note_work(struct sheet *sheet, const struct rfl_complexity *r)
{
	const struct rfl_summary_options *o = &r->options;
	struct rfl_table *t = sheet->table;
	bool levels = false;

	rfl_table_note(t, "%s", RFL_COMPLEXITY_CONVENTION);
	if (has(sheet, "elementwise"))
		rfl_table_note(t,
			       "Elem.: elementwise operations, such as normalisation, "
			       "activation and pooling%s, and additions of a bias.",
			       r->train ? ", loss and update" : "");
	if (strcmp(o->precision, "amp") == 0)
		rfl_table_note(t, "amp: activations and a copy of the weights are counted as 2 "
				  "bytes per value, even where autocast uses 4; parameters, "
				  "gradients and optimizer state are counted as 4.");
	if (r->train)
		rfl_table_note(
			t,
			"A step consists of the forward pass, gradients of inputs (dgrad) and of "
			"weights (wgrad), and the %s update; the first layer has %s dgrad.%s",
			rfl_optimizer_names[o->work.count.optimizer],
			o->work.count.input_grad ? "a" : "no",
			o->work.accumulate > 1 ? " It has one pass and one update." : "");
	if (o->work.count.causal_half)
		rfl_table_note(t, "Matmuls with a causal mask are counted for the unmasked "
				  "triangle only.");
	rfl_complexity__note_checkpoint(t, o);
	if (o->work.count.nfrozen)
		rfl_table_note(t, "Frozen parameters have no gradients and no update.");
	if (r->top)
		rfl_table_note(t, "The %zu rows with the %s%s%s.", r->top,
			       sheet->sort ? "largest " : "most MACs",
			       sheet->sort ? sheet->sort->column.key : "",
			       o->by == RFL_SUMMARY_BY_MODEL ? "" : " for each model and batch");
	for (size_t i = 0; i < sheet->n; i++)
		levels = levels || sheet->items[i]->level;
	if (levels && !r->ncolumns && !r->options.roof && r->fusion == RFL_FUSION_AUTO)
		rfl_table_note(t,
			       "FLOP/B: FLOPs per byte read from and written to memory, with "
			       "elementwise operations fused into the operation before them; use "
			       "'--fusion all' to show the bytes for every level of fusion.");
	else if (levels)
		rfl_table_note(t,
			       "Bytes read from and written to memory, MB = 10^6 - unfused: every "
			       "operation reads its inputs and writes its output; fused: "
			       "elementwise operations are fused into the operation before them%s. "
			       "FLOP/B: FLOPs per byte, without elementwise operations.",
			       r->fusion >= 0 || r->options.by == RFL_SUMMARY_BY_MODEL
				       ? "; compulsory: parameters, input and result are moved once"
				       : "");
}

static void note_memory(struct sheet *sheet, const struct rfl_complexity *r)
{
	/* in the order of enum rfl_update */
	static const char *const update_texts[] = {
		"foreach, all parameters at once",
		"for-loop, one parameter at a time",
		"fused, in one kernel",
	};

	if (has(sheet, "saved_bytes"))
		rfl_table_note(sheet->table, "Saved: tensors kept from the forward pass for the "
					     "backward pass. MiB = 2^20 bytes.");
	if (!has(sheet, "peak_bytes"))
		return;
	rfl_table_note(sheet->table,
		       "Peak: the maximum size of all tensors at any time, on a %s; workspaces and "
		       "the device context are not included.",
		       r->options.work.device == RFL_MEMORY_CPU ? "CPU" : "GPU");
	if (r->train)
		rfl_table_note(sheet->table, "Update (--update): %s%s.",
			       update_texts[r->options.work.update],
			       r->options.work.accumulate > 1
				       ? ", with gradients accumulated over several passes"
				       : "");
}

static void put_notes(struct sheet *sheet, const struct rfl_complexity *r)
{
	unsigned needs = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->items[i]->net->uncounted)
			rfl_table_note(sheet->table, "%s: incomplete, without %s.",
				       r->items[i]->name, r->items[i]->net->uncounted);
	if (sheet->report) {
		rfl_table_note(
			sheet->table,
			"A MAC is one multiply-add; FLOPs = 2 x MACs. Reports with 8.178 G "
			"\"MACs\" for ResNet-50 give its FLOPs: the figure is 2 times the MACs "
			"(some, such as that for VGG-16, also include 2 FLOPs per bias).");
		return;
	}
	note_work(sheet, r);
	if (r->ncolumns) /* else the memory table has this note */
		note_memory(sheet, r);
	for (size_t i = 0; i < sheet->n; i++)
		needs |= sheet->items[i]->needs;
	if (!(needs & NEEDS_ROOF))
		return;
	rfl_table_note(sheet->table, "%s", r->options.roof->about);
	rfl_table_note(
		sheet->table,
		"Minimum time: the time of every operation and pass is the longest of three: for "
		"its multiply-adds (compute), elementwise operations (vector) and %s "
		"bytes (memory) at these rates; the sum is a lower bound if operations run "
		"one after another. Bound: the limit for most of that time.",
		rfl_fusion_names[r->options.roof->fusion]);
}

enum rfl_rc rfl_complexity_tables(const struct rfl_complexity *r, bool people,
				  struct rfl_table *ret[2], struct rfl_err *err)
{
	struct sheet work = { .by = r->options.by }, memory = { .by = RFL_SUMMARY_BY_MODEL };
	struct lines lines = { .n = 0 };
	enum rfl_rc rc = choose_columns(&work, r, people, err);

	ret[0] = ret[1] = NULL;
	if (rc != RFL_OK)
		return rc;
	lines.arena = rfl_arena_new();
	work.table = rfl_table_new(work.columns, work.n);
	/* programs read only one table, which includes the memory */
	if (people && !r->ncolumns && r->train && r->options.memory) {
		add_keys(&memory, r,
			 r->options.by == RFL_SUMMARY_BY_MODEL || !one_name(r)
				 ? "model context batch "
				 : "context batch ");
		add_keys(&memory, r, OF_MEMORY);
		memory.table = rfl_table_new(memory.columns, memory.n);
	}
	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		rc = add_network(&work, &memory, r, r->items[i], people, &lines, err);
	add_lines(&work, memory.table, r, &lines);
	free(lines.items);
	rfl_arena_free(lines.arena);
	if (rc != RFL_OK) {
		rfl_table_free(work.table);
		rfl_table_free(memory.table);
		return rc;
	}
	put_notes(&work, r);
	note_memory(&memory, r);
	ret[0] = work.table;
	ret[1] = memory.table;
	return RFL_OK;
}

enum rfl_rc rfl_complexity_table(const struct rfl_complexity *r, enum rfl_format format,
				 struct rfl_buf *out, struct rfl_err *err)
{
	struct rfl_table *tables[2];
	const bool people = rfl_format_for_people(format);
	enum rfl_rc rc = rfl_complexity_tables(r, people, tables, err);

	if (rc != RFL_OK)
		return rc;
	if (people && !r->ncolumns)
		put_heading(r, "work and traffic", r->train, r->options.by, out);
	rfl_table_finish(tables[0], format, out);
	if (tables[1]) {
		rfl_buf_putc(out, '\n');
		put_heading(r, "memory", true, RFL_SUMMARY_BY_MODEL, out);
		rfl_table_finish(tables[1], format, out);
	}
	return RFL_OK;
}
