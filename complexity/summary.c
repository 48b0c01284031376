/*
 * summary.c - build a network, count it, sum the costs of its operations by row, and move it from
 * batch to batch; find the largest batch that fits into a memory, and options that lower its peak.
 * The memory used for counting is released between networks.
 */
#include "complexity/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "complexity/op.h"

enum { STEP_ROWS = 2 }; /* the loss and the update */

const char *const rfl_summary_by_names[] = { "model", "module", "layer", "kind", NULL };

/* --- rows ------------------------------------------------------------------------------------ */

/* The name of the row for a node, borrowed from the net or allocated in the arena. */
static const char *row_name(const struct rfl_summary *s, const struct rfl_node *node,
			    struct rfl_arena *arena)
{
	const enum rfl_summary_by by = s->options.by;
	const char *op = rfl_op_info_of(node->op)->name, *end = node->name;

	if (by == RFL_SUMMARY_BY_MODEL)
		return s->name;
	if (by == RFL_SUMMARY_BY_KIND)
		return op;
	if (by == RFL_SUMMARY_BY_LAYER)
		return *node->name ? node->name : op;
	if (!*node->name)
		return "(top)";
	for (int part = 0; part < s->options.depth && *end; part++)
		end += strcspn(end + (part > 0), ".") + (size_t)(part > 0);
	if (!*end)
		return node->name;
	return rfl_arena_printf(arena, "%.*s", (int)(end - node->name), node->name);
}

static void make_rows(struct rfl_summary *s)
{
	const bool one_row = s->options.by == RFL_SUMMARY_BY_MODEL;
	const bool layers = s->options.by == RFL_SUMMARY_BY_LAYER;
	const char *loss = rfl_op_info_of(RFL_OP_CROSS_ENTROPY)->name;
	const size_t nnodes = (size_t)s->net->nnodes, parts = nnodes + STEP_ROWS;
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_summary_rows *r = rfl_arena_array(arena, 1, sizeof(*r));

	*r = (struct rfl_summary_rows){
		.rows = rfl_arena_array(arena, one_row ? 1 : parts, sizeof(*r->rows)),
		.row_of = rfl_arena_array(arena, parts, sizeof(*r->row_of)),
		.times = rfl_arena_array(arena, parts, sizeof(*r->times)),
		.total = { .name = "total", .kind = "" },
		.arena = arena,
	};
	for (size_t i = 0; i < nnodes; i++) {
		const struct rfl_node *node = &s->net->nodes[i];
		const char *name = row_name(s, node, arena);
		size_t at =
			layers ? 0 : r->n; /* index of the row with this name, plus 1; 0: none */

		while (at > 0 && strcmp(r->rows[at - 1].name, name) != 0)
			at--;
		if (at == 0) {
			struct rfl_summary_row *row = &r->rows[r->n++];

			row->name = name;
			row->kind = layers ? rfl_op_info_of(node->op)->name : "";
			if (layers)
				(void)rfl_shape_text(&node->shape, row->output,
						     sizeof(row->output));
			at = r->n;
		}
		r->row_of[i] = at - 1;
		r->rows[at - 1].params += rfl_node_param_count(s->net, node);
		r->total.params += rfl_node_param_count(s->net, node);
	}
	if (!one_row) { /* a model's only row also holds the loss and the update */
		r->row_of[nnodes] = r->n;
		r->rows[r->n++] =
			(struct rfl_summary_row){ .name = loss, .kind = loss, .step_only = true };
		r->row_of[nnodes + 1] = r->n;
		r->rows[r->n++] = (struct rfl_summary_row){
			.name = "optimizer",
			.kind = rfl_optimizer_names[s->options.work.count.optimizer],
			.step_only = true
		};
	}
	s->rows = r;
}

/* The counter has checked that the sums over all nodes and passes fit. */
static void add_passes(struct rfl_summary_work *work, const struct rfl_cost *cost, int passes)
{
	for (int pass = 0; pass < passes; pass++) {
		work->macs += cost->macs[pass];
		work->pass_macs[pass] += cost->macs[pass];
		work->elementwise += rfl_elementwise_sum(&cost->elementwise[pass]);
		for (int level = 0; level < RFL_FUSION_COUNT; level++)
			work->bytes[level] += cost->traffic[level][pass].read_bytes +
					      cost->traffic[level][pass].write_bytes;
	}
	work->elementwise += cost->bias_adds;
}

/* Sum the rows of an inference or of a training step. */
static void sum_work(struct rfl_summary *s, bool training)
{
	const struct rfl_count *count = s->count[training];
	const struct rfl_attained_roof *roof = s->options.roof;
	struct rfl_summary_rows *r = s->rows;
	const size_t *row_of = r->row_of;
	const size_t nnodes = (size_t)s->net->nnodes;

	for (size_t i = 0; i < nnodes; i++)
		add_passes(&r->rows[row_of[i]].work[training], &count->nodes[i],
			   training ? RFL_PASS_COUNT : 1);
	if (training) {
		struct rfl_summary_work *update = &r->rows[row_of[nnodes + 1]].work[1];

		add_passes(&r->rows[row_of[nnodes]].work[1], &count->loss, RFL_PASS_COUNT);
		update->elementwise += rfl_elementwise_sum(&count->optimizer_flops);
		for (int i = 0; i < RFL_FUSION_COUNT; i++)
			update->bytes[i] +=
				rfl_count_bytes(count, (enum rfl_fusion)i, RFL_SCOPE_STEP) -
				rfl_count_bytes(count, (enum rfl_fusion)i,
						RFL_SCOPE_FORWARD_BACKWARD);
	}
	if (!roof)
		return;
	memset(r->times, 0, (nnodes + STEP_ROWS) * sizeof(*r->times));
	roof->attain(roof, count, r->times);
	for (size_t i = 0; i < nnodes + STEP_ROWS; i++)
		rfl_attained_add(&r->rows[row_of[i]].work[training].attained, &r->times[i]);
}

void rfl_summary_sum(struct rfl_summary *s)
{
	struct rfl_summary_rows *r = s->rows;
	struct rfl_summary_row *total = &r->total;

	memset(total->work, 0, sizeof(total->work));
	total->saved_bytes = 0;
	for (size_t i = 0; i < r->n; i++) {
		memset(r->rows[i].work, 0, sizeof(r->rows[i].work));
		r->rows[i].saved_bytes = 0;
	}
	for (int training = 0; training < 2; training++)
		if (s->count[training])
			sum_work(s, training);
	for (int i = 0; s->memory[1] && i < s->net->nnodes; i++)
		r->rows[r->row_of[i]].saved_bytes += s->memory[1]->node_saved[i];
	for (size_t k = 0; k < r->n; k++) {
		for (int training = 0; training < 2; training++) {
			struct rfl_summary_work *sum = &total->work[training];
			const struct rfl_summary_work *work = &r->rows[k].work[training];

			sum->macs += work->macs;
			sum->elementwise += work->elementwise;
			for (int i = 0; i < RFL_FUSION_COUNT; i++)
				sum->bytes[i] += work->bytes[i];
			for (int i = 0; i < RFL_PASS_COUNT; i++)
				sum->pass_macs[i] += work->pass_macs[i];
			rfl_attained_add(&sum->attained, &work->attained);
		}
		total->saved_bytes += r->rows[k].saved_bytes;
	}
}

/* --- counts ---------------------------------------------------------------------------------- */

/* Create the missing counts and memory, at batch 1. The first call counts both inference and
 * training, because the numbers for one sample include both. */
static enum rfl_rc wake(struct rfl_summary *s, struct rfl_err *err)
{
	const struct rfl_summary_options *o = &s->options;
	struct rfl_memory_options work = o->work;
	enum rfl_rc rc = rfl_precision_storage(o->precision, &work.count.dtype,
					       &work.count.master_weights, err);

	work.count.batch = 1;
	for (int training = 0; training < 2 && rc == RFL_OK; training++) {
		work.count.training = training;
		if (!s->count[training] && (!s->counted || !o->unwanted[training]))
			rc = rfl_count_net(s->net, &work.count, &s->count[training], err);
	}
	for (int training = 0; training < 2 && rc == RFL_OK && !s->counted; training++) {
		struct rfl_count *one = &s->one[training];

		*one = *s->count[training];
		one->nodes = NULL;
		one->links = NULL;
		one->arena = NULL;
		if (!o->unwanted[training])
			continue;
		rfl_count_free(s->count[training]);
		s->count[training] = NULL;
	}
	s->counted = s->counted || rc == RFL_OK;
	for (int training = 1; training >= 0 && rc == RFL_OK; training--) {
		/* an inference rejects the options of a training step */
		work.count.training = training;
		work.count.checkpoint = training ? o->work.count.checkpoint : 0;
		work.accumulate = training ? o->work.accumulate : 1;
		if (o->memory && !o->unwanted[training] && !s->memory[training])
			rc = rfl_memory_new(s->net, &work, &s->memory[training], err);
	}
	if (rc == RFL_OK && !s->rows)
		make_rows(s);
	return rc;
}

enum rfl_rc rfl_summary_at(struct rfl_summary *s, int64_t batch, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (s->batch == batch)
		return RFL_OK;
	s->batch = 0; /* until everything is complete */
	rc = wake(s, err);
	for (int training = 0; training < 2 && rc == RFL_OK; training++)
		if (s->count[training] && s->count[training]->options.batch != batch)
			rc = rfl_count_at(s->count[training], batch, err);
	for (int training = 0; training < 2 && rc == RFL_OK; training++)
		if (s->memory[training] && s->memory[training]->options.count.batch != batch)
			rc = rfl_memory_at(s->memory[training], batch, err);
	if (rc == RFL_OK)
		s->batch = batch;
	else
		rfl_summary_rest(s); /* partial results are useless */
	return rc;
}

enum rfl_rc rfl_summary_want_both(struct rfl_summary *s, struct rfl_err *err)
{
	if (s->options.unwanted[0] || s->options.unwanted[1])
		s->batch = 0;
	s->options.unwanted[0] = s->options.unwanted[1] = false;
	return s->batch ? RFL_OK : rfl_summary_at(s, 1, err);
}

void rfl_summary_rest(struct rfl_summary *s)
{
	if (s->rows)
		rfl_arena_free(s->rows->arena);
	s->rows = NULL;
	for (int training = 0; training < 2; training++) {
		rfl_count_free(s->count[training]);
		rfl_memory_free(s->memory[training]);
		s->count[training] = NULL;
		s->memory[training] = NULL;
	}
	s->batch = 0;
}

enum rfl_rc rfl_summary_new(const char *model, const struct rfl_summary_options *options,
			    struct rfl_summary **ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *found = NULL;
	struct rfl_net *net = NULL;
	enum rfl_rc rc = rfl_zoo_find(model, &found, err);

	if (rc == RFL_OK)
		rc = rfl_zoo_build(model, &options->sizes, &net, err);
	if (rc != RFL_OK)
		return rc;
	*ret = rfl_summary_of_net(net, options);
	(*ret)->model = found;
	(*ret)->name = net->model;
	(*ret)->title = found->title;
	(*ret)->about = found->summary;
	return RFL_OK;
}

struct rfl_summary *rfl_summary_of_net(struct rfl_net *take_net,
				       const struct rfl_summary_options *options)
{
	struct rfl_summary *s = rfl_alloc_array(1, sizeof(*s));

	s->options = *options;
	s->net = take_net;
	s->name = take_net->model;
	s->title = take_net->title ? take_net->title : take_net->model;
	s->about = "from a file";
	if (take_net->nodes[0].dtype == RFL_DTYPE_I64 || take_net->ninputs > 1)
		s->context_length = take_net->nodes[0].shape.dim[0];
	return s;
}

void rfl_summary_free(struct rfl_summary *s)
{
	if (!s)
		return;
	rfl_summary_rest(s);
	rfl_net_free(s->net);
	free(s->fit);
	free(s);
}

/* --- largest batch and context --------------------------------------------------------------- */

static enum rfl_rc fit_batch(struct rfl_summary *s, struct rfl_memory *memory, struct rfl_fit *fit,
			     struct rfl_err *err)
{
	const char *phase, *node;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_memory_fit(memory, fit->bytes, &fit->batch, err);

	if (rc != RFL_OK)
		return rc;
	fit->at = *memory;
	fit->at.node_saved = NULL;
	fit->at.workspace = NULL;
	phase = rfl_phase_names[memory->peak_phase];
	node = memory->peak_node < 0 ? "" : s->net->nodes[memory->peak_node].name;
	(void)snprintf(fit->peak_at, sizeof(fit->peak_at), "%s%s%s", phase,
		       *node                                  ? " of "
		       : memory->peak_phase == RFL_PHASE_STEP ? ""
							      : " of the loss",
		       node);
	fit->next_peak = memory->peak;
	if (!fit->batch)
		return RFL_OK;
	rc = rfl_memory_at(memory, fit->batch + 1, &why);
	fit->next_peak = rc == RFL_OK ? memory->peak : -1;
	return rc == RFL_EOVERFLOW || rc == RFL_OK ? RFL_OK : rfl_err_pass(err, &why);
}

/* Bisect for the largest context that fits; the peak never decreases with more tokens. */
static enum rfl_rc fit_context(const struct rfl_summary *s, const struct rfl_memory *memory,
			       struct rfl_fit *fit, struct rfl_err *err)
{
	struct rfl_zoo_options sizes = s->options.sizes;
	struct rfl_memory_options at = memory->options;
	int64_t limit = s->model->max_context_length, fails;

	fit->has_context = true;
	fit->context_limit = limit ? limit : RFL_FIT_MAX_CONTEXT;
	fails = fit->context_limit + 1;
	at.count.batch = fit->context_batch;
	while (fails - fit->context > 1) {
		struct rfl_memory *other = NULL;
		struct rfl_err why = RFL_ERR_INIT;
		struct rfl_net *net = NULL;
		enum rfl_rc rc;

		sizes.context_length = fit->context + (fails - fit->context) / 2;
		rc = rfl_zoo_build(s->model->name, &sizes, &net, &why);
		if (rc == RFL_OK)
			rc = rfl_memory_new(net, &at, &other, &why);
		if (rc == RFL_OK && other->peak <= fit->bytes) {
			fit->context = sizes.context_length;
			fit->context_peak = other->peak;
		} else {
			fails = sizes.context_length;
		}
		rfl_memory_free(other);
		rfl_net_free(net);
		if (rc != RFL_OK && rc != RFL_EOVERFLOW) /* above 63 bits: too large */
			return rfl_err_pass(err, &why);
	}
	return RFL_OK;
}

enum rfl_rc rfl_summary_fit(struct rfl_summary *s, bool training, int64_t bytes,
			    int64_t context_batch, struct rfl_err *err)
{
	struct rfl_fit fit = { .training = training,
			       .bytes = bytes,
			       .context_batch = context_batch };
	enum rfl_rc rc = rfl_summary_at(s, 1, err);

	if (rc != RFL_OK)
		return rc;
	rc = fit_batch(s, s->memory[training], &fit, err);
	if (rc == RFL_OK && s->model && s->model->context_length)
		rc = fit_context(s, s->memory[training], &fit, err);
	rfl_summary_rest(s);
	if (rc == RFL_OK) {
		s->fit = s->fit ? s->fit : rfl_alloc_array(1, sizeof(*s->fit));
		*s->fit = fit;
	}
	return rc;
}

enum { CHECKPOINT, AMP, BF16, SGD, FUSED_UPDATE, NO_ACCUMULATION, HELPS };

static const char *const helps[HELPS] = { "--checkpoint 1",  "--precision amp", "--precision bf16",
					  "--optimizer sgd", "--update fused",  "--accumulate 1" };

/* False if the option is already in use or has no effect on the network. */
static bool apply(int help, const struct rfl_net *net, struct rfl_memory_options *o)
{
	const struct rfl_memory_options before = *o;
	struct rfl_count_options *c = &o->count;

	/* `run` trains with weights in fp32, whatever the precision */
	if (help == (c->training ? AMP : BF16) && c->dtype == RFL_DTYPE_F32) {
		c->dtype = help == AMP ? RFL_DTYPE_F16 : RFL_DTYPE_BF16;
		c->master_weights = help == AMP;
		return true;
	}
	if (!c->training || help == AMP || help == BF16)
		return false;
	if (help == CHECKPOINT && net->nblocks && !c->checkpoint)
		c->checkpoint = 1;
	else if (help == SGD)
		c->optimizer = RFL_OPT_SGD;
	else if (help == FUSED_UPDATE)
		o->update = RFL_UPDATE_FUSED;
	else if (help == NO_ACCUMULATION && o->accumulate > 1)
		o->accumulate = 1;
	return c->checkpoint != before.count.checkpoint || c->optimizer != before.count.optimizer ||
	       o->update != before.update || o->accumulate != before.accumulate;
}

/* The peak of one sample with these options. */
static enum rfl_rc peak_with(const struct rfl_summary *s, const struct rfl_memory_options *options,
			     int64_t *peak, struct rfl_err *err)
{
	RFL_AUTOPTR(memory) memory = NULL;
	enum rfl_rc rc = rfl_memory_new(s->net, options, &memory, err);

	if (rc == RFL_OK)
		*peak = memory->peak;
	return rc;
}

/* Append "--precision bf16 (peak 3,072.0 MiB)", in the unit of the table. */
static void put_peak(struct rfl_buf *text, const char *before, const char *with, int64_t peak)
{
	char mib[RFL_NUM_MAX];

	rfl_buf_printf(text, "%s%s (peak %s MiB)", before, with,
		       rfl_num_fixed((double)peak / (1 << 20), 1, mib));
}

enum rfl_rc rfl_summary_fit_help(const struct rfl_summary *s, struct rfl_buf *text,
				 struct rfl_err *err)
{
	struct rfl_memory_options now = s->fit->at.options, all;
	struct rfl_buf used = { .len = 0 }; /* options that lower the peak */
	int64_t peak = 0;
	enum rfl_rc rc = RFL_OK;

	now.count.batch = 1;
	all = now;
	for (int i = 0; i < HELPS && rc == RFL_OK; i++) {
		struct rfl_memory_options o = now;

		if (!apply(i, s->net, &o))
			continue;
		rc = peak_with(s, &o, &peak, err);
		if (rc != RFL_OK || peak >= s->fit->at.peak)
			continue;
		if (peak <= s->fit->bytes)
			put_peak(text, text->len ? ", or " : " It fits with ", helps[i], peak);
		(void)apply(i, s->net, &all);
		rfl_buf_printf(&used, "%s%s", used.len ? " " : "", helps[i]);
	}
	if (rc == RFL_OK && !text->len && used.len) {
		rc = peak_with(s, &all, &peak, err);
		if (rc == RFL_OK)
			put_peak(text,
				 peak <= s->fit->bytes ? " It fits with "
						       : " It is too large even with ",
				 rfl_buf_str(&used), peak);
	}
	if (text->len)
		rfl_buf_putc(text, '.');
	rfl_buf_fini(&used);
	return rc;
}
