/* complexity_plan.c - `roofline complexity --plan`: the steps of the planned engine. */
#include "report/complexity_impl.h"

#include <string.h>

#include "base/num.h"
#include "complexity/op.h"
#include "complexity/plan/plan.h"

struct line {
	const char *model, *pass, *op, *layer, *fused;
	int64_t batch, step, read, written, live;
};

#define TEXT(member, ...) RFL_COLUMN(TEXT, struct line, member, #member, __VA_ARGS__)
#define BYTES(member, key_, title_)                                                 \
	{                                                                           \
		RFL_CELL(struct line, member), .kind = RFL_COLUMN_INT, .key = key_, \
					       .title = title_                      \
	}

static const struct rfl_column columns[] = {
	{ RFL_CELL(struct line, model), .key = "model", .title = "Model", .setting = true },
	{ RFL_CELL(struct line, batch), .kind = RFL_COLUMN_INT, .key = "batch", .title = "Batch",
	  .setting = true },
	{ RFL_CELL(struct line, step), .kind = RFL_COLUMN_INT, .key = "step", .title = "Step" },
	TEXT(pass, "Pass"),
	TEXT(op, "Operation"),
	TEXT(layer, "Layer"),
	TEXT(fused, "With"),
	BYTES(read, "read_bytes", "Read (bytes)"),
	BYTES(written, "written_bytes", "Written (bytes)"),
	BYTES(live, "live_bytes", "Live (bytes)"),
};

/* What a step does besides its operation: "add, relu", "relu", "sum of gradients". */
static const char *fused_text(const struct rfl_plan_step *s)
{
	static const char *const texts[][3] = {
		{ "", "relu", "relu6" },
		{ "add", "add, relu", "add, relu6" },
	};
	const bool residual =
		s->op == RFL_PLAN_NORM &&
		s->buffer[s->pass == RFL_PLAN_FORWARD ? RFL_PLAN_OTHER : RFL_PLAN_DOTHER] >= 0;

	if (s->op == RFL_PLAN_NORM && s->buffer[RFL_PLAN_DY2] >= 0)
		return s->activation ? "relu, sum of two gradients" : "sum of two gradients";
	if (s->op == RFL_PLAN_ACTIVATION || (s->op == RFL_PLAN_ADD && s->pass == RFL_PLAN_FORWARD))
		return "";
	return s->op == RFL_PLAN_ADD ? "sum of two gradients" : texts[residual][s->activation];
}

static int64_t live_at(const struct rfl_plan *plan, int step)
{
	int64_t sum = 0;

	for (int i = 0; i < plan->nbuffers; i++)
		if (plan->buffers[i].first <= step && step <= plan->buffers[i].last)
			sum += plan->buffers[i].bytes;
	return sum;
}

/* The update reads the gradient, and reads and writes the parameters and its state, in float32. */
static int64_t update_bytes(const struct rfl_summary *s, enum rfl_optimizer_kind optimizer)
{
	const int states = optimizer == RFL_OPT_SGD ? 0 : optimizer == RFL_OPT_MOMENTUM ? 1 : 2;

	return 4 * (3 + 2 * states) * rfl_net_param_count(s->net);
}

static void note_plan(struct rfl_table *t, const struct rfl_summary *s, const struct rfl_plan *plan,
		      int64_t moved)
{
	const bool training = plan->setup.training;
	const struct rfl_summary_work *work = &s->rows->total.work[training];
	char a[RFL_NUM_MAX], b[RFL_NUM_MAX], c[RFL_NUM_MAX], d[RFL_NUM_MAX];

	rfl_table_note(
		t,
		"%s: %d forward and %d backward steps on %d tensors in one block of %s MiB "
		"(%s MiB are needed at once), without workspaces of a library, parameters and "
		"the optimizer's state.",
		s->name, plan->nforward, plan->nsteps - plan->nforward, plan->nbuffers,
		rfl_num_fixed((double)plan->bytes / RFL_MIB, 1, a),
		rfl_num_fixed((double)plan->live_bytes / RFL_MIB, 1, b));
	rfl_table_note(
		t,
		"%s: the plan moves %s MB%s; unfused it would be %s, fused %s, compulsory %s "
		"MB.",
		s->name, rfl_num_fixed((double)moved * 1e-6, 1, a),
		training ? ", the update included" : "",
		rfl_num_fixed((double)work->bytes[RFL_FUSION_UNFUSED] * 1e-6, 1, b),
		rfl_num_fixed((double)work->bytes[RFL_FUSION_FUSED] * 1e-6, 1, c),
		rfl_num_fixed((double)work->bytes[RFL_FUSION_COMPULSORY] * 1e-6, 1, d));
}

static enum rfl_rc add_plan(struct rfl_table *t, const struct rfl_complexity *r,
			    struct rfl_summary *s, int64_t batch, struct rfl_err *err)
{
	struct rfl_plan_setup setup = {
		.batch = batch,
		.training = r->train,
		.dropout = true,
		.auxiliary_weight = r->options.work.count.auxiliary ? 1 : 0,
	};
	RFL_AUTOPTR(plan) plan = NULL;
	enum rfl_dtype dtype;
	bool masters;
	int64_t moved = 0;
	enum rfl_rc rc = rfl_precision_storage(r->options.precision, &dtype, &masters, err);

	setup.value_bytes = dtype == RFL_DTYPE_F32 ? 4 : 2;
	if (rc != RFL_OK || (rc = rfl_summary_at(s, batch, err)) ||
	    (rc = rfl_plan_new(s->net, &setup, &plan, err)))
		return rc;
	rfl_summary_sum(s);
	rfl_plan_place(plan);
	for (int i = 0; i < plan->nsteps; i++) {
		const struct rfl_plan_step *step = &plan->steps[i];
		char name[512] = "loss";
		struct line line = { .model = s->name,
				     .batch = batch,
				     .step = i,
				     .pass = rfl_plan_pass_names[step->pass],
				     .op = rfl_plan_op_names[step->op],
				     .layer = name,
				     .fused = fused_text(step),
				     .live = live_at(plan, i) };

		if (step->node < s->net->nnodes)
			(void)rfl_op_layer_name(&s->net->nodes[step->node], name, sizeof(name));
		rfl_plan_traffic(plan, step, &line.read, &line.written);
		moved += line.read + line.written;
		rfl_table_add(t, &line, 1, sizeof(line));
	}
	if (r->train)
		moved += update_bytes(s, r->options.work.count.optimizer);
	note_plan(t, s, plan, moved);
	return RFL_OK;
}

enum rfl_rc rfl_complexity_plan_table(const struct rfl_complexity *r, enum rfl_format format,
				      struct rfl_buf *out, struct rfl_err *err)
{
	RFL_AUTOPTR(table) t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < r->n && rc == RFL_OK; i++)
		for (size_t k = 0; k < r->nbatches && rc == RFL_OK; k++)
			rc = add_plan(t, r, r->items[i], r->batches[k], err);
	if (rc != RFL_OK)
		return rc;
	rfl_table_note(t, "Live: the sizes of all tensors that exist during the step.");
	if (rfl_format_for_people(format))
		rfl_table_trim(t);
	rfl_table_render(t, format, out);
	return RFL_OK;
}
