/*
 * complexity_json.c - creates the JSON document of several models, which
 * docs/complexity.schema.json describes.
 */
#include "report/complexity_impl.h"

#include "base/json.h"

#define I(value) ((json_int_t)(value))

static const char *const pass_names[] = { "forward", "dgrad", "wgrad", "recompute" };

/* Create an object with one integer for each name. */
static json_t *named_ints(const char *const *names, const int64_t *values, int n)
{
	json_t *o = json_object();

	for (int i = 0; i < n; i++)
		rfl_json_put(&o, names[i], json_integer(I(values[i])));
	return o;
}

static json_t *known_int(int64_t value)
{
	return value == RFL_INT_UNKNOWN ? json_null() : json_integer(I(value));
}

static json_t *elementwise(const struct rfl_elementwise *e)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "add", I(e->add), "mul", I(e->mul), "compare",
			 I(e->compare), "special", I(e->special));
}

static json_t *convention(const struct rfl_complexity *r)
{
	const struct rfl_summary_options *o = &r->options;
	const struct rfl_count_options *c = &o->work.count, *stored = &r->items[0]->one[0].options;
	int64_t value = rfl_dtype_bytes(stored->dtype);
	json_t *frozen = json_array();

	for (size_t i = 0; i < c->nfrozen; i++)
		rfl_json_append(&frozen, json_string(c->frozen[i]));
	return json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:s, s:s, s:s, s:b, s:I, s:o, s:s, "
		"s:s, s:I, s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s}}",
		"mac", "one multiply-add of a convolution or matmul", "flops_per_mac", 2, "padding",
		"included", "bias", "apart", "elementwise", "apart", "first_layer_dgrad",
		c->input_grad, "precision", o->precision, "value_bytes", I(value), "param_bytes",
		I(stored->master_weights ? rfl_dtype_bytes(RFL_DTYPE_F32) : value), "optimizer",
		rfl_optimizer_names[c->optimizer], "attention",
		rfl_attention_names[o->sizes.attention], "causal", c->causal_half ? "half" : "full",
		"auxiliary", c->auxiliary, "checkpoint", I(c->checkpoint), "frozen", frozen,
		"device", o->work.device == RFL_MEMORY_CPU ? "cpu" : "gpu", "update",
		rfl_update_names[o->work.update], "accumulate",
		I(o->work.accumulate > 1 ? o->work.accumulate : 1), "fusion", "unfused",
		"every operation reads its inputs and writes its output", "fused",
		"normalisation, activation, dropout and reshapes are fused into the operation "
		"before them; an addition reads only the residual",
		"compulsory", "parameters, input and result are moved once", "scopes", "forward",
		"one inference", "forward_backward",
		"forward pass in training, loss, and both gradients", "training",
		"forward_backward and one update of the parameters");
}

static json_t *facts_of(const struct rfl_summary *s)
{
	const struct rfl_shape *input = &s->net->nodes[0].shape;
	const struct rfl_count *inference = &s->one[0], *training = &s->one[1];
	const struct rfl_cost *f = &inference->total, *t = &training->total;
	const int64_t flops = rfl_count_training_flops(training);
	json_t *shape = json_array(), *passes = json_object(), *forward, *step, *o;

	for (int i = 0; i < input->ndim; i++)
		rfl_json_append(&shape, json_integer(I(input->dim[i])));
	for (int i = 0; i < RFL_PASS_COUNT; i++)
		rfl_json_put(&passes, pass_names[i], elementwise(&t->elementwise[i]));
	forward = json_pack("{s:I, s:I, s:I, s:I, s:o}", "macs", I(f->macs[RFL_PASS_FORWARD]),
			    "macs_excl_padding", I(f->macs_excl_padding), "flops",
			    I(rfl_count_forward_flops(inference)), "bias_adds", I(f->bias_adds),
			    "elementwise", elementwise(&f->elementwise[RFL_PASS_FORWARD]));
	step = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "macs", I(flops / 2),
			 "flops", I(flops), "model_flops", I(rfl_count_model_flops(training)),
			 "forward_macs", I(t->macs[RFL_PASS_FORWARD]), "dgrad_macs",
			 I(t->macs[RFL_PASS_DGRAD]), "wgrad_macs", I(t->macs[RFL_PASS_WGRAD]),
			 "recompute_macs", I(t->macs[RFL_PASS_RECOMPUTE]), "bias_adds",
			 I(t->bias_adds), "elementwise", passes);
	o = json_pack(
		"{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:{s:s, s:I, s:I, s:I, s:o}}",
		"model", s->name, "title", s->title, "family", s->net->family, "input", shape,
		"classes", I(s->net->classes), "params", I(inference->params), "trained",
		I(training->trained), "buffers", I(inference->buffers), "forward", forward,
		"training", step, "optimizer", "name",
		rfl_optimizer_names[training->options.optimizer], "state_bytes",
		I(rfl_count_state_bytes(training)), "read_bytes", I(training->optimizer.read_bytes),
		"write_bytes", I(training->optimizer.write_bytes), "elementwise",
		elementwise(&training->optimizer_flops));
	if (s->net->uncounted)
		rfl_json_put(&o, "uncounted", rfl_json_text(s->net->uncounted));
	if (s->context_length)
		rfl_json_put(&o, "context_length", json_integer(I(s->context_length)));
	return o;
}

/* The bytes and FLOPs of one scope. */
static json_t *scope_of(const struct rfl_count *count, enum rfl_scope scope)
{
	int64_t flops = scope == RFL_SCOPE_FORWARD ? rfl_count_forward_flops(count)
						   : rfl_count_training_flops(count);
	int64_t bytes[RFL_FUSION_COUNT];

	for (int level = 0; level < RFL_FUSION_COUNT; level++)
		bytes[level] = rfl_count_bytes(count, (enum rfl_fusion)level, scope);
	return json_pack("{s:I, s:I, s:o}", "macs", I(flops / 2), "flops", I(flops), "bytes",
			 named_ints(rfl_fusion_names, bytes, RFL_FUSION_COUNT));
}

static json_t *memory_of(const struct rfl_summary *s, const struct rfl_memory *m)
{
	const bool training = m->options.count.training;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:s, s:s?}",
			 "weights_bytes", I(m->weights), "buffers_bytes", I(m->buffers),
			 "gradients_bytes", I(training ? m->gradients : 0), "state_bytes",
			 I(training ? m->state : 0), "weight_copies_bytes", I(m->weight_copies),
			 "input_bytes", I(m->input), "saved_bytes", I(m->saved), "saved",
			 named_ints(rfl_saved_class_names, m->saved_class, RFL_SAVED_CLASS_COUNT),
			 "phases",
			 named_ints(rfl_phase_names, m->phase_peak,
				    training ? RFL_PHASE_COUNT : RFL_PHASE_FORWARD + 1),
			 "peak_bytes", I(m->peak), "peak_phase", rfl_phase_names[m->peak_phase],
			 "peak_at", m->peak_node < 0 ? NULL : s->net->nodes[m->peak_node].name);
}

static json_t *attained_of(const struct rfl_attained *a)
{
	json_t *limits = json_object();

	for (int i = 0; i < RFL_LIMIT_COUNT; i++)
		rfl_json_put(&limits, rfl_limit_names[i], rfl_json_real(a->limit_s[i]));
	return json_pack("{s:o, s:s?, s:o}", "time_s", rfl_json_real(rfl_attained_time(a)), "bound",
			 rfl_limit_names[rfl_attained_bound(a)], "limits_s", limits);
}

static json_t *batch_of(const struct rfl_summary *s)
{
	const struct rfl_summary_work *work = s->rows->total.work;
	json_t *o = json_pack("{s:I, s:o, s:o, s:o}", "batch", I(s->batch), "forward",
			      scope_of(s->count[0], RFL_SCOPE_FORWARD), "forward_backward",
			      scope_of(s->count[1], RFL_SCOPE_FORWARD_BACKWARD), "training",
			      scope_of(s->count[1], RFL_SCOPE_STEP));

	if (s->memory[1])
		rfl_json_put(&o, "memory",
			     json_pack("{s:o, s:o}", "forward", memory_of(s, s->memory[0]),
				       "training", memory_of(s, s->memory[1])));
	if (s->options.roof)
		rfl_json_put(&o, "attained",
			     json_pack("{s:o, s:o}", "forward", attained_of(&work[0].attained),
				       "training", attained_of(&work[1].attained)));
	return o;
}

static json_t *work_of(const struct rfl_summary_work *w, bool times)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:o}", "macs", I(w->macs), "flops", I(2 * w->macs),
			      "elementwise", I(w->elementwise), "bytes",
			      named_ints(rfl_fusion_names, w->bytes, RFL_FUSION_COUNT));

	if (times)
		rfl_json_put(&o, "attained", attained_of(&w->attained));
	return o;
}

static json_t *row_of(const struct rfl_summary *s, const struct rfl_summary_row *r)
{
	const bool times = s->options.roof != NULL;
	json_t *o = json_pack("{s:I, s:s, s:s, s:s, s:I, s:o, s:o, s:o}", "batch", I(s->batch),
			      "name", r->name, "kind", r->kind, "output", r->output, "params",
			      I(r->params), "forward", work_of(&r->work[0], times), "training",
			      work_of(&r->work[1], times), "training_macs",
			      named_ints(pass_names, r->work[1].pass_macs, RFL_PASS_COUNT));

	if (s->memory[1])
		rfl_json_put(&o, "saved_bytes", json_integer(I(r->saved_bytes)));
	return o;
}

static json_t *fit_of(const struct rfl_fit *f, const struct rfl_fit_device *device)
{
	const int64_t weights = rfl_complexity__weights(f);
	json_t *o = json_pack(
		"{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:o}", "mode",
		f->training ? "training" : "forward", "device", device->name, "memory_bytes",
		I(device->memory_bytes), "reserve_bytes", I(device->reserve_bytes), "usable_bytes",
		I(f->bytes), "largest_batch", I(f->batch), "peak_bytes", I(f->at.peak), "peak_at",
		f->peak_at, "weights_bytes", I(weights), "state_bytes", I(f->at.state),
		"rest_bytes", I(f->at.peak - weights - f->at.state), "next_peak_bytes",
		known_int(f->batch > 0 && f->next_peak >= 0 ? f->next_peak : RFL_INT_UNKNOWN));

	if (f->has_context) {
		rfl_json_put(&o, "context_batch", json_integer(I(f->context_batch)));
		rfl_json_put(&o, "largest_context", json_integer(I(f->context)));
		rfl_json_put(&o, "context_peak_bytes",
			     known_int(f->context > 0 ? f->context_peak : RFL_INT_UNKNOWN));
	}
	return o;
}

/* Append a model, which is incomplete on failure. */
static enum rfl_rc model_of(const struct rfl_complexity *r, struct rfl_summary *s, json_t **models,
			    struct rfl_err *err)
{
	const bool with_rows = r->options.by != RFL_SUMMARY_BY_MODEL;
	json_t *batches, *rows = NULL, *peers = NULL, *model;
	enum rfl_rc rc = rfl_summary_want_both(s, err);

	if (rc != RFL_OK)
		return rc;
	model = facts_of(s);
	rfl_json_append(models, model);
	rfl_json_put(&model, "batches", batches = json_array());
	if (with_rows)
		rfl_json_put(&model, "rows", rows = json_array());
	if (r->npeers)
		rfl_json_put(&model, "peers", peers = json_array());
	for (size_t i = 0; i < r->nbatches; i++) {
		rc = rfl_summary_at(s, r->batches[i], err);
		if (rc != RFL_OK)
			return rc;
		rfl_summary_sum(s);
		rfl_json_append(&batches, batch_of(s));
		for (size_t k = 0; with_rows && k < s->rows->n; k++)
			rfl_json_append(&rows, row_of(s, &s->rows->rows[k]));
	}
	for (size_t i = 0; i < r->npeers && rc == RFL_OK; i++) {
		const struct rfl_peer *p = r->peers[i];
		struct rfl_peer_line line;

		rc = rfl_complexity__peer(s, p, &line, err);
		if (rc == RFL_OK)
			rfl_json_append(&peers,
					json_pack("{s:s, s:s, s:s, s:b, s:o, s:I, s:s?, s:s, s:s?}",
						  "tool", p->name, "version", p->version, "prints",
						  p->prints, "is_flops", p->is_flops, "total",
						  known_int(line.total), "core", I(line.core),
						  "reason",
						  line.why.rc == RFL_OK ? NULL : line.why.msg,
						  "rule", p->rule, "wrong", p->wrong));
	}
	if (s->fit)
		rfl_json_put(&model, "fit", fit_of(s->fit, &r->device));
	return rc;
}

enum rfl_rc rfl_complexity_json(const struct rfl_complexity *r, const char *version, json_t **ret,
				struct rfl_err *err)
{
	const struct rfl_attained_roof *roof = r->options.roof;
	json_t *models = json_array(), *root;

	for (size_t i = 0; i < r->n; i++) {
		enum rfl_rc rc = model_of(r, r->items[i], &models, err);

		rfl_summary_rest(r->items[i]);
		if (rc != RFL_OK) {
			json_decref(models);
			return rc;
		}
	}
	root = json_pack("{s:s, s:s, s:s, s:o, s:o}", "schema", "roofline.complexity/1", "version",
			 version, "by", rfl_summary_by_names[r->options.by], "convention",
			 convention(r), "models", models);
	if (roof)
		rfl_json_put(&root, "roof",
			     json_pack("{s:s, s:s, s:s}", "env", roof->env, "fusion",
				       rfl_fusion_names[roof->fusion], "about", roof->about));
	*ret = root;
	return RFL_OK;
}
