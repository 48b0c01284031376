/*
 * complexity_columns.c - the columns that a table may have: one row each, with where its numbers
 * come from. Which of them a table has is in complexity_choice.c.
 */
#include "report/complexity_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- cells --- */

static void model(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_text(t, v->s->name);
}

static void context(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	if (v->s->context_length)
		rfl_table_int(t, v->s->context_length);
	else
		rfl_table_null(t);
}

static void batch(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->s->batch);
}

static void name(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_text(t, v->row->name);
}

static void kind(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_text(t, v->row->kind);
}

static void output(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_text(t, v->row->output);
}

static void params(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->row->params);
}

static void trained(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->s->one_training.trained);
}

static void buffers(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->s->one_forward.buffers);
}

/* per MAC: 1 or 2 */
static void forward_of_sample(const struct rfl_summary_view *v, int per_mac, struct rfl_table *t)
{
	rfl_table_int(t, rfl_count_forward_flops(&v->s->one_forward) / 2 * per_mac);
}

static void forward_of_batch(const struct rfl_summary_view *v, int per_mac, struct rfl_table *t)
{
	rfl_table_int(t, rfl_count_forward_flops(v->s->forward) / 2 * per_mac);
}

static void real_macs(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->s->one_forward.total.macs_excl_padding);
}

static void training_of_sample(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, rfl_count_training_flops(&v->s->one_training));
}

static void work_macs(const struct rfl_summary_view *v, int per_mac, struct rfl_table *t)
{
	rfl_table_int(t, v->work->macs * per_mac);
}

static void pass_flops(const struct rfl_summary_view *v, int pass, struct rfl_table *t)
{
	rfl_table_int(t, 2 * v->work->pass_macs[pass]);
}

static void elementwise(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->work->elementwise);
}

static void bytes(const struct rfl_summary_view *v, int level, struct rfl_table *t)
{
	rfl_table_int(t, v->work->bytes[level]);
}

/* A part of nothing is not known. */
static void ratio(double part, double whole, struct rfl_table *t)
{
	rfl_table_real(t, whole > 0 ? part / whole : NAN);
}

static void intensity(const struct rfl_summary_view *v, int level, struct rfl_table *t)
{
	ratio(2.0 * (double)v->work->macs, (double)v->work->bytes[level], t);
}

static void params_pct(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	ratio(100.0 * (double)v->row->params, (double)v->s->rows->total.params, t);
}

static void flops_pct(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	ratio(100.0 * (double)v->work->macs, (double)v->total->macs, t);
}

static void bytes_pct(const struct rfl_summary_view *v, int level, struct rfl_table *t)
{
	ratio(100.0 * (double)v->work->bytes[level], (double)v->total->bytes[level], t);
}

static void saved(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_int(t, v->options->by == RFL_BY_MODEL ? v->memory->saved : v->row->saved_bytes);
}

static void time_s(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_real(t, rfl_attained_time(&v->work->attained));
}

static void time_pct(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	ratio(100 * rfl_attained_time(&v->work->attained), rfl_attained_time(&v->total->attained),
	      t);
}

static void bound(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_text(t, rfl_limit_names[rfl_attained_bound(&v->work->attained)]);
}

static void samples_per_s(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	ratio((double)v->s->batch, rfl_attained_time(&v->work->attained), t);
}

static void attained_flops(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	ratio(2.0 * (double)v->work->macs, rfl_attained_time(&v->work->attained), t);
}

/* A member of struct rfl_memory, by its offset. */
static void memory_bytes(const struct rfl_summary_view *v, int offset, struct rfl_table *t)
{
	rfl_table_int(t, *(const int64_t *)(const void *)((const char *)v->memory + offset));
}

static void peak_phase(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	(void)arg;
	rfl_table_text(t, rfl_phase_names[v->memory->peak_phase]);
}

static void peak_node(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	int node = v->memory->peak_node;

	(void)arg;
	rfl_table_text(t, node < 0 ? NULL : v->s->net->nodes[node].name);
}

/* The three models of the older report, with what it prints as MACs per sample (G). */
static const struct {
	const char *model;
	double printed;
} reported[] = { { "resnet50", 8.178 }, { "vgg16", 30.968 }, { "mobilenet_v2", 0.602 } };

/* Only the model at its own sizes is what the report was about. */
static bool is_reported(const struct rfl_summary *s, const char *model)
{
	return s->model && strcmp(s->model->name, model) == 0 &&
	       s->net->nodes[0].shape.dim[1] == s->model->image_size &&
	       s->net->classes == s->model->classes;
}

static void notes(const struct rfl_summary_view *v, int arg, struct rfl_table *t)
{
	double macs = (double)rfl_count_forward_flops(&v->s->one_forward) / 2;
	int64_t moved = v->row->forward.bytes[RFL_FUSION_FUSED];
	char text[160];
	int len = moved > 0 ? snprintf(text, sizeof(text), "%.1f FLOPs per byte fused",
				       2.0 * (double)v->row->forward.macs / (double)moved)
			    : snprintf(text, sizeof(text), "moves no bytes");

	(void)arg;
	for (size_t i = 0; i < RFL_ARRAY_LEN(reported); i++)
		if (is_reported(v->s, reported[i].model))
			(void)snprintf(text + len, sizeof(text) - (size_t)len,
				       "; a report gave %.3f, %.3f times these MACs",
				       reported[i].printed, reported[i].printed * 1e9 / macs);
	rfl_table_text(t, text);
}

/* --- the table of columns --- */

#define TEXT(key_, title_) .column = { .key = key_, .title = title_, .kind = RFL_COLUMN_TEXT }
#define INT(key_, title_, by_) \
	.column = { .key = key_, .title = title_, .kind = RFL_COLUMN_INT, .scale = (by_) }
#define REAL(key_, title_, by_) \
	.column = { .key = key_, .title = title_, .kind = RFL_COLUMN_REAL, .scale = (by_) }
#define PERCENT(key_, title_) \
	.column = { .key = key_, .title = title_, .kind = RFL_COLUMN_REAL, .decimals = 1 }
#define MODEL  .scope = RFL_SUMMARY_OF_MODELS
#define PARTS  .scope = RFL_SUMMARY_OF_PARTS
#define LAYERS .scope = RFL_SUMMARY_OF_LAYERS
#define ROOF   .roof = true
#define MEMORY(key_, title_, member_, ...)                                                    \
	{                                                                                     \
		INT(key_, title_, RFL_MIB),                                                   \
			.scope = RFL_SUMMARY_OF_MODELS, .memory = true, .cell = memory_bytes, \
			.arg = (int)offsetof(struct rfl_memory, member_), __VA_ARGS__         \
	}

static const struct rfl_summary_column all_columns[] = {
	{ TEXT("model", "Model"), .cell = model, .help = "name of the network" },
	{ INT("context", "Context", 1), .cell = context, .help = "tokens of a sample" },
	{ INT("batch", "Batch", 1), .cell = batch, .help = "samples of a pass" },
	{ TEXT("name", "Name"), PARTS, .cell = name, .help = "module, layer or kind of a row" },
	{ TEXT("kind", "Kind"), LAYERS, .cell = kind, .help = "operation of a layer" },
	{ TEXT("output", "Output"), LAYERS, .cell = output, .help = "shape of one sample" },
	{ INT("params", "Params", 1), .cell = params, .help = "parameters" },
	{ PERCENT("params_pct", "Params (%)"), .cell = params_pct, .help = "share of them" },
	{ INT("trained", "Trained", 1), MODEL, .cell = trained, .help = "without frozen ones" },
	{ INT("buffers", "Buffers", 1), MODEL, .cell = buffers, .help = "running statistics" },
	{ INT("forward_macs", "GMACs", 1e9), MODEL, .cell = forward_of_sample, .arg = 1,
	  .help = "of the forward pass of one sample" },
	{ INT("forward_flops", "GFLOPs", 1e9), MODEL, .cell = forward_of_sample, .arg = 2,
	  .help = "2 x forward_macs" },
	{ INT("macs_excl_padding", "GMACs unpadded", 1e9), MODEL, .cell = real_macs,
	  .help = "forward_macs without taps in the padding" },
	{ INT("training_flops", "Train GFLOPs", 1e9), MODEL, .cell = training_of_sample,
	  .help = "forward, both gradients and recomputation of one sample" },
	{ INT("batch_forward_flops", "Batch GFLOPs", 1e9), MODEL, .cell = forward_of_batch,
	  .arg = 2, .help = "of the forward pass of the batch" },
	{ INT("macs", "GMACs", 1e9), .cell = work_macs, .arg = 1,
	  .help = "of the batch; with --train of the step" },
	{ INT("flops", "GFLOPs", 1e9), .cell = work_macs, .arg = 2, .help = "2 x macs" },
	{ PERCENT("flops_pct", "FLOPs (%)"), .cell = flops_pct, .help = "share of the flops" },
	{ INT("fwd_flops", "Fwd GFLOPs", 1e9), .cell = pass_flops, .arg = RFL_PASS_FORWARD,
	  .help = "of flops: the forward pass" },
	{ INT("dgrad_flops", "Dgrad GFLOPs", 1e9), .train = true, .cell = pass_flops,
	  .arg = RFL_PASS_DGRAD, .help = "of flops: gradients of inputs" },
	{ INT("wgrad_flops", "Wgrad GFLOPs", 1e9), .train = true, .cell = pass_flops,
	  .arg = RFL_PASS_WGRAD, .help = "of flops: gradients of parameters" },
	{ INT("recompute_flops", "Again GFLOPs", 1e9), .train = true, .cell = pass_flops,
	  .arg = RFL_PASS_RECOMPUTE, .help = "of flops: what the backward pass does again" },
	{ INT("elementwise", "Elem. (M)", 1e6), .cell = elementwise,
	  .help = "elementwise additions, products, comparisons, special functions" },
	{ INT("unfused_bytes", "Unfused (MB)", 1e6), .levelled = true, .cell = bytes,
	  .arg = RFL_FUSION_UNFUSED, .help = "bytes moved, every operation for itself" },
	{ INT("fused_bytes", "Fused (MB)", 1e6), .levelled = true, .cell = bytes,
	  .arg = RFL_FUSION_FUSED,
	  .help = "bytes moved where elementwise steps ride on their neighbours" },
	{ INT("compulsory_bytes", "Compulsory (MB)", 1e6), .levelled = true, .cell = bytes,
	  .arg = RFL_FUSION_COMPULSORY, .help = "bytes that no schedule avoids" },
	{ PERCENT("unfused_pct", "Unfused (%)"), .levelled = true, .cell = bytes_pct,
	  .arg = RFL_FUSION_UNFUSED, .help = "share of unfused_bytes" },
	{ PERCENT("fused_pct", "Fused (%)"), .levelled = true, .cell = bytes_pct,
	  .arg = RFL_FUSION_FUSED, .help = "share of fused_bytes" },
	{ PERCENT("compulsory_pct", "Compulsory (%)"), .levelled = true, .cell = bytes_pct,
	  .arg = RFL_FUSION_COMPULSORY, .help = "share of compulsory_bytes" },
	{ REAL("unfused_ai", "FLOP/B unfused", 1), .levelled = true, .cell = intensity,
	  .arg = RFL_FUSION_UNFUSED, .help = "flops over unfused_bytes" },
	{ REAL("fused_ai", "FLOP/B fused", 1), .levelled = true, .cell = intensity,
	  .arg = RFL_FUSION_FUSED, .help = "flops over fused_bytes" },
	{ REAL("compulsory_ai", "FLOP/B compulsory", 1), .levelled = true, .cell = intensity,
	  .arg = RFL_FUSION_COMPULSORY, .help = "flops over compulsory_bytes" },
	MEMORY("weights_bytes", "Weights (MiB)", weights, .help = "parameters"),
	MEMORY("buffers_bytes", "Buffers (MiB)", buffers, .help = "running statistics"),
	MEMORY("gradients_bytes", "Gradients (MiB)", gradients, .train = true,
	       .help = "of all trained parameters"),
	MEMORY("state_bytes", "Optimizer (MiB)", state, .train = true,
	       .help = "moments that the optimizer keeps"),
	MEMORY("weight_copies_bytes", "16-bit weights (MiB)", weight_copies,
	       .help = "copies that autocast keeps during the passes"),
	MEMORY("input_bytes", "Input (MiB)", input, .help = "the batch and its labels"),
	{ INT("saved_bytes", "Saved (MiB)", RFL_MIB), .memory = true, .train = true, .cell = saved,
	  .help = "kept from the forward pass for the backward pass" },
	MEMORY("peak_bytes", "Peak (MiB)", peak, .help = "most that is allocated at any moment"),
	{ TEXT("peak_phase", "Peak in"), MODEL, .memory = true, .cell = peak_phase,
	  .help = "phase of the peak: forward, backward, step" },
	{ TEXT("peak_at", "Peak at"), MODEL, .memory = true, .cell = peak_node,
	  .help = "operation at the peak; none: loss or update" },
	{ REAL("time_s", "Least time (ms)", 1e-3), ROOF, .cell = time_s,
	  .help = "under the ceilings of --env" },
	{ PERCENT("time_pct", "Time (%)"), ROOF, .cell = time_pct, .help = "share of time_s" },
	{ TEXT("bound", "Bound"), ROOF, .cell = bound,
	  .help = "what most of that time goes to: compute, vector, memory" },
	{ REAL("samples_per_s", "Samples/s at most", 1), ROOF, MODEL, .cell = samples_per_s,
	  .help = "batch over time_s" },
	{ REAL("attainable_flop_per_s", "GFLOP/s at most", 1e9), ROOF, .cell = attained_flops,
	  .help = "flops over time_s" },
};

/* The table of the older reports: its titles, in the order of its columns. */
static const struct rfl_summary_column report_columns[] = {
	{ TEXT("model", "Model"), .cell = model },
	{ INT("params", "Params (M)", 1e6), .cell = params },
	{ INT("forward_macs", "Forward MACs/sample (G)", 1e9), .cell = forward_of_sample,
	  .arg = 1 },
	{ .column = { .key = "batch_forward_flops",
		      .title = "Forward FLOPs/batch (G)",
		      .kind = RFL_COLUMN_INT,
		      .digits = 7,
		      .scale = 1e9 },
	  .cell = forward_of_batch,
	  .arg = 2 },
	{ TEXT("notes", "Notes"), .cell = notes },
};

const struct rfl_summary_column *rfl_summary_report_column_at(size_t i)
{
	return i < RFL_ARRAY_LEN(report_columns) ? &report_columns[i] : NULL;
}

const struct rfl_summary_column *rfl_summary_column_at(size_t i)
{
	return i < RFL_ARRAY_LEN(all_columns) ? &all_columns[i] : NULL;
}

const struct rfl_summary_column *rfl_summary_column_find(const char *key, size_t len)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(all_columns); i++)
		if (strlen(all_columns[i].column.key) == len &&
		    memcmp(all_columns[i].column.key, key, len) == 0)
			return &all_columns[i];
	return NULL;
}

enum rfl_rc rfl_summary_columns_table(enum rfl_format format, struct rfl_buf *out,
				      struct rfl_err *err)
{
	static const struct rfl_column columns[] = {
		{ .key = "column", .title = "Column", .kind = RFL_COLUMN_TEXT },
		{ .key = "title", .title = "Title", .kind = RFL_COLUMN_TEXT },
		{ .key = "of", .title = "Of", .kind = RFL_COLUMN_TEXT },
		{ .key = "needs", .title = "Needs", .kind = RFL_COLUMN_TEXT },
		{ .key = "help", .title = "What it is", .kind = RFL_COLUMN_TEXT },
	};
	static const char *const scopes[] = { "anything", "models", "parts", "layers" };
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	for (size_t i = 0; i < RFL_ARRAY_LEN(all_columns); i++) {
		const struct rfl_summary_column *c = &all_columns[i];

		rfl_table_text(t, c->column.key);
		rfl_table_text(t, c->column.title);
		rfl_table_text(t, scopes[c->scope]);
		rfl_table_text(t, c->roof ? "--peaks, --env" : c->train ? "--train" : "");
		rfl_table_text(t, c->help);
	}
	rfl_table_note(t, "--columns report is the table of older reports: model, params, "
			  "forward_macs, batch_forward_flops and notes.");
	rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}
