/*
 * complexity_json.c - the JSON document of several models; docs/complexity.schema.json describes
 * it.
 */
#include "report/complexity_impl.h"

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

static json_t *names_of(const char *const *names, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, json_string(names[i])) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *convention(const struct rfl_summary_options *options, const struct rfl_count *any)
{
	bool master = any->options.master_weights;
	int64_t value = rfl_dtype_bytes(any->options.dtype);

	return json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:s, s:s, s:s, s:b, s:I, s:o, s:s, "
		"s:s, s:I, s:o, s:o}",
		"mac", "one multiply-add of a convolution or matrix product", "flops_per_mac", 2,
		"padding", "included", "bias", "apart", "elementwise", "apart", "first_layer_dgrad",
		options->input_grad, "precision", options->precision, "value_bytes", I(value),
		"param_bytes", I(master ? rfl_dtype_bytes(RFL_DTYPE_F32) : value), "optimizer",
		rfl_optimizer_names[options->optimizer], "attention",
		rfl_attention_names[options->sizes.attention], "causal",
		options->causal_half ? "half" : "full", "auxiliary", options->auxiliary,
		"checkpoint", I(options->checkpoint), "frozen",
		names_of(options->frozen, options->nfrozen), "device",
		options->device == RFL_MEMORY_CPU ? "cpu" : "gpu", "update",
		rfl_update_names[options->update], "accumulate",
		I(options->accumulate > 1 ? options->accumulate : 1), "fusion", level_texts(),
		"scopes",
		json_pack("{s:s, s:s, s:s}", "forward", "one inference", "forward_backward",
			  "forward in training, loss, and both gradients", "training",
			  "forward_backward and one update of the parameters"));
}

/* Add a value that may be absent. Returns 0, or not 0 when memory is short. */
static int set_new(json_t *o, const char *key, json_t *value)
{
	return value ? json_object_set_new(o, key, value) : -1;
}

/* --- work --- */

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

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:o, s:o, s:o, s:o}}", "macs",
			 I(flops / 2), "flops", I(flops), "model_flops",
			 I(rfl_count_model_flops(count)), "forward_macs",
			 I(t->macs[RFL_PASS_FORWARD]), "dgrad_macs", I(t->macs[RFL_PASS_DGRAD]),
			 "wgrad_macs", I(t->macs[RFL_PASS_WGRAD]), "recompute_macs",
			 I(t->macs[RFL_PASS_RECOMPUTE]), "bias_adds", I(t->bias_adds),
			 "elementwise", "forward", elementwise(&t->elementwise[RFL_PASS_FORWARD]),
			 "dgrad", elementwise(&t->elementwise[RFL_PASS_DGRAD]), "wgrad",
			 elementwise(&t->elementwise[RFL_PASS_WGRAD]), "recompute",
			 elementwise(&t->elementwise[RFL_PASS_RECOMPUTE]));
}

static json_t *optimizer_of(const struct rfl_count *count)
{
	return json_pack(
		"{s:s, s:I, s:I, s:I, s:o}", "name", rfl_optimizer_names[count->options.optimizer],
		"state_bytes", I(rfl_count_state_bytes(count)), "read_bytes",
		I(count->optimizer.read_bytes), "write_bytes", I(count->optimizer.write_bytes),
		"elementwise", elementwise(&count->optimizer_flops));
}

/* --- memory, time --- */

static json_t *memory_of(const struct rfl_summary *s, const struct rfl_memory *m)
{
	json_t *classes = json_object(), *phases = json_object(), *o;
	int phase_count = m->options.count.training ? RFL_PHASE_COUNT : RFL_PHASE_FORWARD + 1;
	int failed = 0;

	for (int i = 0; i < RFL_SAVED_CLASS_COUNT; i++)
		failed |= set_new(classes, rfl_saved_class_names[i],
				  json_integer(I(m->saved_class[i])));
	for (int i = 0; i < phase_count; i++)
		failed |= set_new(phases, rfl_phase_names[i], json_integer(I(m->phase_peak[i])));
	o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:s, s:s?}",
		      "weights_bytes", I(m->weights), "buffers_bytes", I(m->buffers),
		      "gradients_bytes", I(m->options.count.training ? m->gradients : 0),
		      "state_bytes", I(m->options.count.training ? m->state : 0),
		      "weight_copies_bytes", I(m->weight_copies), "input_bytes", I(m->input),
		      "saved_bytes", I(m->saved), "saved", classes, "phases", phases, "peak_bytes",
		      I(m->peak), "peak_phase", rfl_phase_names[m->peak_phase], "peak_at",
		      m->peak_node < 0 ? NULL : s->net->nodes[m->peak_node].name);
	if (o && failed) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

static json_t *attained_of(const struct rfl_attained *a)
{
	json_t *limits = json_object();

	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		if (set_new(limits, rfl_limit_names[i], rfl_json_real(a->limit_s[i])) != 0) {
			json_decref(limits);
			return NULL;
		}
	return json_pack("{s:o, s:s?, s:o}", "time_s", rfl_json_real(rfl_attained_time(a)), "bound",
			 rfl_limit_names[rfl_attained_bound(a)], "limits_s", limits);
}

static json_t *both(json_t *forward, json_t *training)
{
	return json_pack("{s:o, s:o}", "forward", forward, "training", training);
}

/* The summary is at the batch, its rows too. */
static json_t *batch_of(const struct rfl_summary *s, const struct rfl_summary_options *options)
{
	const struct rfl_summary_row *total = &s->rows->total;
	json_t *o = json_pack("{s:I, s:o, s:o, s:o}", "batch", I(s->batch), "forward",
			      scope_of(s->forward, RFL_SCOPE_FORWARD), "forward_backward",
			      scope_of(s->training, RFL_SCOPE_FORWARD_BACKWARD), "training",
			      scope_of(s->training, RFL_SCOPE_STEP));
	int failed = 0;

	if (o && s->training_memory)
		failed |= set_new(
			o, "memory",
			both(memory_of(s, s->forward_memory), memory_of(s, s->training_memory)));
	if (o && options->roof)
		failed |= set_new(o, "attained",
				  both(attained_of(&total->forward.attained),
				       attained_of(&total->training.attained)));
	if (o && failed) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

/* --- rows --- */

static json_t *work_of(const struct rfl_summary_work *w, const struct rfl_summary_options *options)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:o}", "macs", I(w->macs), "flops", I(2 * w->macs),
			      "elementwise", I(w->elementwise), "bytes", levels(w->bytes));

	if (o && options->roof && set_new(o, "attained", attained_of(&w->attained)) != 0) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

static json_t *row_of(const struct rfl_summary *s, const struct rfl_summary_options *options,
		      const struct rfl_summary_row *r)
{
	const int64_t *macs = r->training.pass_macs;
	json_t *o =
		json_pack("{s:I, s:s, s:s, s:s, s:I, s:o, s:o, s:{s:I, s:I, s:I, s:I}}", "batch",
			  I(s->batch), "name", r->name, "kind", r->kind, "output", r->output,
			  "params", I(r->params), "forward", work_of(&r->forward, options),
			  "training", work_of(&r->training, options), "training_macs", "forward",
			  I(macs[RFL_PASS_FORWARD]), "dgrad", I(macs[RFL_PASS_DGRAD]), "wgrad",
			  I(macs[RFL_PASS_WGRAD]), "recompute", I(macs[RFL_PASS_RECOMPUTE]));

	if (o && s->training_memory &&
	    set_new(o, "saved_bytes", json_integer(I(r->saved_bytes))) != 0) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

/* --- fits --- */

static json_t *known_int(bool known, int64_t value)
{
	return known ? json_integer(I(value)) : json_null();
}

static json_t *fit_of(const struct rfl_summary *s, const struct rfl_fit_device *device)
{
	const struct rfl_fit *f = s->fit;
	json_t *o = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:o}", "mode",
		f->training ? "training" : "forward", "device", device->name, "memory_bytes",
		I(device->memory_bytes), "reserve_bytes", I(device->reserve_bytes), "usable_bytes",
		I(f->bytes), "largest_batch", I(f->batch), "peak_bytes", I(f->at.peak), "peak_at",
		f->peak_at, "weights_bytes", I(rfl_fit_weights(f)), "state_bytes", I(f->at.state),
		"rest_bytes", I(f->at.peak - rfl_fit_weights(f) - f->at.state), "next_peak_bytes",
		known_int(f->batch > 0 && f->next_peak >= 0, f->next_peak));
	int failed = 0;

	if (o && f->has_context) {
		failed |= set_new(o, "context_batch", json_integer(I(f->context_batch)));
		failed |= set_new(o, "largest_context", json_integer(I(f->context)));
		failed |= set_new(o, "context_peak_bytes",
				  known_int(f->context > 0, f->context_peak));
	}
	if (o && failed) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

/* --- a network --- */

static json_t *shape_of(const struct rfl_shape *shape)
{
	json_t *list = json_array();

	for (int i = 0; i < shape->ndim; i++)
		if (json_array_append_new(list, json_integer(I(shape->dim[i]))) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* What does not depend on the batch. */
static json_t *facts_of(const struct rfl_summary *s)
{
	json_t *o = json_pack(
		"{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "model", s->name,
		"title", s->title, "family", s->net->family, "input",
		shape_of(&s->net->nodes[0].shape), "classes", I(s->net->classes), "params",
		I(s->one_forward.params), "trained", I(s->one_training.trained), "buffers",
		I(s->one_forward.buffers), "forward", forward_of(&s->one_forward), "training",
		training_of(&s->one_training), "optimizer", optimizer_of(&s->one_training));

	if (o && s->context_length &&
	    set_new(o, "context_length", json_integer(I(s->context_length))) != 0) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

/* The batches, and the rows of --by at every batch. */
static enum rfl_rc sweep(struct rfl_summary *s, const struct rfl_summary_options *options,
			 json_t *batches, json_t *rows, struct rfl_err *err)
{
	for (size_t i = 0; i < options->nbatches; i++) {
		int failed;
		enum rfl_rc rc = rfl_summary_at(s, options->batches[i], err);

		if (rc != RFL_OK)
			return rc;
		if (rows || options->roof)
			rfl_summary_rows_update(s->rows, s, options->roof);
		failed = json_array_append_new(batches, batch_of(s, options));
		for (size_t k = 0; rows && k < s->rows->n; k++)
			failed |=
				json_array_append_new(rows, row_of(s, options, &s->rows->rows[k]));
		if (failed)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	}
	return RFL_OK;
}

static enum rfl_rc model_of(struct rfl_summary *s, const struct rfl_summary_options *options,
			    const struct rfl_fit_device *device, json_t *models,
			    struct rfl_err *err)
{
	enum rfl_rc rc = rfl_summary_want_both(s, err);
	json_t *model = rc == RFL_OK ? facts_of(s) : NULL, *batches = json_array(), *rows = NULL,
	       *peers = NULL;
	int failed;

	if (rc != RFL_OK) {
		json_decref(batches);
		return rc;
	}
	failed = json_array_append_new(models, model); /* takes the model, also on failure */
	if (failed) {
		json_decref(batches);
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	}
	failed = set_new(model, "batches", batches);
	if (!failed && options->by != RFL_BY_MODEL)
		failed |= set_new(model, "rows", rows = json_array());
	if (!failed && options->npeers)
		failed |= set_new(model, "peers", peers = json_array());
	if (!failed && s->fit && device)
		failed |= set_new(model, "fit", fit_of(s, device));
	if (failed)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	rc = sweep(s, options, batches, rows, err);
	if (rc == RFL_OK && peers)
		rc = rfl_summary_peers_json(s, options, peers, err);
	return rc;
}

enum rfl_rc rfl_summary_json(struct rfl_summary *const *summaries, size_t n,
			     const struct rfl_summary_options *options,
			     const struct rfl_fit_device *device, const char *version, json_t **ret,
			     struct rfl_err *err)
{
	json_t *models = json_array(), *root;

	for (size_t i = 0; i < n; i++) {
		enum rfl_rc rc = model_of(summaries[i], options, device, models, err);

		rfl_summary_rest(summaries[i]);
		if (rc == RFL_OK)
			continue;
		json_decref(models);
		return rc;
	}
	root = json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "roofline.complexity/1", "version",
			 version, "by", rfl_by_names[options->by], "convention",
			 n > 0 ? convention(options, &summaries[0]->one_forward) : json_null(),
			 "models", models);
	if (!root)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	if (options->roof && set_new(root, "roof",
				     json_pack("{s:s, s:s, s:s}", "env", options->roof->env,
					       "fusion", rfl_fusion_names[options->roof->fusion],
					       "about", options->roof->about)) != 0) {
		json_decref(root);
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	}
	*ret = root;
	return RFL_OK;
}
