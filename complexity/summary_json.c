/*
 * summary_json.c - the JSON document of several models; docs/complexity.schema.json describes it.
 */
#include "complexity/summary.h"

#include <stdlib.h>

#include "base/json.h"

#define I(value) ((json_int_t)(value))

static json_t *elementwise(const struct rfl_elementwise *e)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "add", I(e->add), "mul", I(e->mul), "compare",
			 I(e->compare), "special", I(e->special));
}

static json_t *levels(const int64_t bytes[RFL_FUSION_COUNT])
{
	json_t *o = json_object();

	for (int level = 0; level < RFL_FUSION_COUNT; level++)
		if (json_object_set_new(o, rfl_fusion_names[level],
					json_integer(I(bytes[level]))) != 0) {
			json_decref(o);
			return NULL;
		}
	return o;
}

static json_t *level_texts(void)
{
	return json_pack("{s:s, s:s, s:s}", "unfused",
			 "every operation reads its inputs and writes its output", "fused",
			 "normalisation, activation, dropout and reshapes ride on the operation "
			 "before them; an addition reads only the residual",
			 "compulsory", "parameters, input and result once");
}

static json_t *convention(const struct rfl_summary_options *options, const struct rfl_count *any)
{
	bool master = any->options.master_weights;
	int64_t value = rfl_dtype_bytes(any->options.dtype);

	return json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:s, s:o, s:o}", "mac",
		"one multiply-add of a convolution or matrix product", "flops_per_mac", 2,
		"padding", "included", "bias", "apart", "elementwise", "apart", "first_layer_dgrad",
		options->input_grad, "precision", options->precision, "value_bytes", I(value),
		"param_bytes", I(master ? rfl_dtype_bytes(RFL_DTYPE_F32) : value), "optimizer",
		rfl_optimizer_names[options->optimizer], "fusion", level_texts(), "scopes",
		json_pack("{s:s, s:s, s:s}", "forward", "one inference", "forward_backward",
			  "forward in training, loss, and both gradients", "training",
			  "forward_backward and one update of the parameters"));
}

/* What one scope moves and multiplies at one batch. */
static json_t *scope_of(const struct rfl_count *count, enum rfl_scope scope)
{
	int64_t flops = scope == RFL_SCOPE_FORWARD ? rfl_count_forward_flops(count)
						   : rfl_count_training_flops(count);
	int64_t bytes[RFL_FUSION_COUNT];

	for (int level = 0; level < RFL_FUSION_COUNT; level++)
		bytes[level] = rfl_count_bytes(count, (enum rfl_fusion)level, scope);
	return json_pack("{s:I, s:I, s:o}", "macs", I(flops / 2), "flops", I(flops), "bytes",
			 levels(bytes));
}

static json_t *batch_of(const struct rfl_summary *s, size_t i)
{
	return json_pack("{s:I, s:o, s:o, s:o}", "batch", I(s->forward[i]->options.batch),
			 "forward", scope_of(s->forward[i], RFL_SCOPE_FORWARD), "forward_backward",
			 scope_of(s->training[i], RFL_SCOPE_FORWARD_BACKWARD), "training",
			 scope_of(s->training[i], RFL_SCOPE_STEP));
}

static json_t *forward_of(const struct rfl_count *count)
{
	const struct rfl_cost *t = &count->total;

	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "macs", I(t->macs[RFL_PASS_FORWARD]),
			 "macs_excl_padding", I(t->macs_excl_padding), "flops",
			 I(rfl_count_forward_flops(count)), "bias_adds", I(t->bias_adds),
			 "elementwise", elementwise(&t->elementwise[RFL_PASS_FORWARD]));
}

static json_t *training_of(const struct rfl_count *count)
{
	const struct rfl_cost *t = &count->total;
	int64_t flops = rfl_count_training_flops(count);

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:{s:o, s:o, s:o}}", "macs", I(flops / 2),
			 "flops", I(flops), "forward_macs", I(t->macs[RFL_PASS_FORWARD]),
			 "dgrad_macs", I(t->macs[RFL_PASS_DGRAD]), "wgrad_macs",
			 I(t->macs[RFL_PASS_WGRAD]), "bias_adds", I(t->bias_adds), "elementwise",
			 "forward", elementwise(&t->elementwise[RFL_PASS_FORWARD]), "dgrad",
			 elementwise(&t->elementwise[RFL_PASS_DGRAD]), "wgrad",
			 elementwise(&t->elementwise[RFL_PASS_WGRAD]));
}

static json_t *optimizer_of(const struct rfl_count *count)
{
	return json_pack(
		"{s:s, s:I, s:I, s:I, s:o}", "name", rfl_optimizer_names[count->options.optimizer],
		"state_bytes", I(rfl_count_state_bytes(count)), "read_bytes",
		I(count->optimizer.read_bytes), "write_bytes", I(count->optimizer.write_bytes),
		"elementwise", elementwise(&count->optimizer_flops));
}

static json_t *work_of(const struct rfl_summary_work *w)
{
	return json_pack("{s:I, s:I, s:I, s:o}", "macs", I(w->macs), "flops", I(2 * w->macs),
			 "elementwise", I(w->elementwise), "bytes", levels(w->bytes));
}

/* The rows of --by at every batch, as an array. */
static json_t *breakdown_of(const struct rfl_summary *s, const struct rfl_summary_options *options,
			    struct rfl_err *err)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->nbatches; i++) {
		struct rfl_summary_row *rows = NULL;
		size_t n = 0;

		if (rfl_summary_rows(s, i, options->by, options->depth, &rows, &n, err) != RFL_OK) {
			json_decref(list);
			return NULL;
		}
		for (size_t k = 0; k < n; k++) {
			const struct rfl_summary_row *r = &rows[k];

			/* a failure here is seen by the caller: the packed value is NULL */
			if (json_array_append_new(
				    list,
				    json_pack("{s:I, s:s, s:s, s:s, s:I, s:o, s:o}", "batch",
					      I(s->forward[i]->options.batch), "name", r->name,
					      "kind", r->kind, "output", r->output, "params",
					      I(r->params), "forward", work_of(&r->forward),
					      "training", work_of(&r->training))) != 0) {
				json_decref(list);
				list = NULL;
				break;
			}
		}
		free(rows);
		if (!list)
			break;
	}
	return list;
}

static json_t *model_of(const struct rfl_summary *s, const struct rfl_summary_options *options,
			struct rfl_err *err)
{
	const struct rfl_shape *in = &s->net->nodes[0].shape;
	json_t *batches = json_array(), *shape = json_array(), *model;
	int failed = 0;

	for (int i = 0; i < in->ndim; i++)
		failed |= json_array_append_new(shape, json_integer(I(in->dim[i])));
	for (size_t i = 0; i < s->nbatches; i++)
		failed |= json_array_append_new(batches, batch_of(s, i));
	model = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "model",
			  s->model->name, "title", s->model->title, "family", s->model->family,
			  "input", shape, "classes", I(s->net->classes), "params",
			  I(s->one_forward->params), "buffers", I(s->one_forward->buffers),
			  "forward", forward_of(s->one_forward), "training",
			  training_of(s->one_training), "optimizer", optimizer_of(s->one_training),
			  "batches", batches);
	if (model && options->by != RFL_BY_MODEL)
		failed |= json_object_set_new(model, "rows", breakdown_of(s, options, err));
	if (model && failed) {
		json_decref(model);
		model = NULL;
	}
	return model;
}

enum rfl_rc rfl_summary_json(struct rfl_summary *const *summaries, size_t n,
			     const struct rfl_summary_options *options, const char *version,
			     json_t **ret, struct rfl_err *err)
{
	json_t *models = json_array(), *root;

	for (size_t i = 0; i < n; i++) {
		if (json_array_append_new(models, model_of(summaries[i], options, err)) == 0)
			continue;
		json_decref(models);
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", summaries[i]->model->name);
	}
	root = json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "roofline.complexity/1", "version",
			 version, "by", rfl_by_names[options->by], "convention",
			 n > 0 ? convention(options, summaries[0]->one_forward) : json_null(),
			 "models", models);
	if (!root)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	*ret = root;
	return RFL_OK;
}
