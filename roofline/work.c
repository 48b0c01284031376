/*
 * work.c - the FLOPs and bytes of one step. They are read from a file written by `roofline
 * complexity` (docs/complexity.schema.json) if it has the step, else counted from the network. If
 * both exist, they are compared. A file may contain models that are unknown to this program.
 */
#include "roofline/work.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bind.h"
#include "base/file.h"
#include "complexity/lm.h"
#include "complexity/plan/plan.h"
#include "complexity/net/file.h"
#include "complexity/op.h"
#include "complexity/zoo.h"
#include "ledger/step.h"
#include "machine/terms.h"

#define SCHEMA "roofline.complexity/1"

const char *const rfl_train_factor_names[] = { "exact", "2", "3", NULL };

/* The work of one forward pass, with the other passes of a scope. */
struct scope {
	double flops; /* NaN: the file does not have this scope */
	double bytes[RFL_FUSION_COUNT];
};

#define SCOPES 3 /* number of enum rfl_scope values */

struct batch {
	int64_t batch;
	struct scope scopes[SCOPES];
};

struct model {
	const char *name;
	int64_t image_size, classes, context_length; /* -1: unknown */
	bool recomputes; /* the backward pass repeats parts of the forward pass */
	size_t nbatches;
	struct batch *batches;
};

struct rfl_work_file {
	const char *path;
	enum rfl_dtype dtype;
	bool master_weights;
	int optimizer;      /* enum rfl_optimizer_kind */
	int attention;      /* enum rfl_attention; -1: another program's */
	const char *unlike; /* describes counted work that no run performs; NULL: none */
	size_t nmodels;
	struct model *models;
	struct rfl_arena *arena; /* owns everything above */
};

/* The index of a name in a list that ends with NULL; -1: not in it. */
static int index_of(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* ---- reading the file ---- */

static void skip(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)b;
	(void)value;
	(void)member;
}

static void read_count(struct rfl_bind *b, const json_t *value, void *member)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		rfl_bind_must(b, value, "a positive integer");
	*(double *)member = (double)json_integer_value(value);
}

#define OTHER(key_, read_, offset_) \
	.key = key_, .kind = RFL_BIND_OTHER, .read = read_, .offset = offset_
#define SKIPPED(key_)                \
	{                            \
		OTHER(key_, skip, 0) \
	}

static void read_bytes(struct rfl_bind *b, const json_t *value, void *member)
{
	for (size_t k = 0; k < RFL_FUSION_COUNT; k++)
		rfl_bind_key(b, value,
			     &(struct rfl_member){
				     OTHER(rfl_fusion_names[k], read_count, k * sizeof(double)),
				     .must = true },
			     member);
	if (!b->rc)
		b->rc = rfl_where_only_keys(&b->at, value, rfl_fusion_names, b->err);
}

static const struct rfl_member of_scope[] = {
	SKIPPED("macs"),
	{ OTHER("flops", read_count, offsetof(struct scope, flops)), .must = true },
	{ OTHER("bytes", read_bytes, offsetof(struct scope, bytes)), .must = true },
	{ .key = NULL },
};

static void read_batch(struct rfl_bind *b, const json_t *value, void *member)
{
#define SCOPE(key_, i)                                                                \
	{                                                                             \
		key_, RFL_MEMBER(OBJECT, struct batch, scopes[i]), .object = of_scope \
	}
	static const struct rfl_member of_batch[] = {
		{ "batch", RFL_MEMBER(INT, struct batch, batch), .min = 1, .must = true },
		SCOPE("forward", RFL_SCOPE_FORWARD),
		SCOPE("forward_backward", RFL_SCOPE_FORWARD_BACKWARD),
		SCOPE("training", RFL_SCOPE_STEP),
		SKIPPED("memory"),
		SKIPPED("attained"),
		{ .key = NULL },
	};
	struct batch *batch = member;

	for (int i = 0; i < SCOPES; i++)
		batch->scopes[i].flops = NAN;
	rfl_bind_read(b, value, of_batch, batch);
}

/* The image size in "input": [3, 224, 224]. Other shapes have no image size. */
static void read_shape(struct rfl_bind *b, const json_t *value, void *member)
{
	const json_t *size = json_array_get(value, 2);

	(void)b;
	if (json_array_size(value) == 3 && json_is_integer(size))
		*(int64_t *)member = json_integer_value(size);
}

static void read_training(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)b;
	*(bool *)member = json_integer_value(json_object_get(value, "recompute_macs")) > 0;
}

static void read_model(struct rfl_bind *b, const json_t *value, void *member)
{
	static const struct rfl_member of_model[] = {
		{ "model", RFL_MEMBER(TEXT, struct model, name), .must = true, .filled = true },
		{ OTHER("input", read_shape, offsetof(struct model, image_size)) },
		{ "classes", RFL_MEMBER(INT, struct model, classes), .min = 1 },
		{ "context_length", RFL_MEMBER(INT, struct model, context_length), .min = 1,
		  .null = true },
		{ OTHER("training", read_training, offsetof(struct model, recomputes)) },
		{ "batches", RFL_MEMBERS(OTHER, struct model, batches, nbatches), .must = true,
		  .read = read_batch },
		SKIPPED("title"),
		SKIPPED("family"),
		SKIPPED("params"),
		SKIPPED("trained"),
		SKIPPED("buffers"),
		SKIPPED("forward"),
		SKIPPED("optimizer"),
		SKIPPED("rows"),
		SKIPPED("peers"),
		SKIPPED("fit"),
		{ .key = NULL },
	};
	struct model *model = member;

	model->image_size = model->classes = model->context_length = -1;
	rfl_bind_read(b, value, of_model, model);
}

static void read_precision(struct rfl_bind *b, const json_t *value, void *member)
{
	const char *text = json_string_value(value);
	struct rfl_work_file *f = member;
	struct rfl_err why = RFL_ERR_INIT;

	if (!text)
		rfl_bind_must(b, value, "a string");
	else if (rfl_precision_storage(text, &f->dtype, &f->master_weights, &why) != RFL_OK)
		rfl_bind_refuse(b, "%s", why.msg);
}

/* It may have keys that other programs need. */
static void read_convention(struct rfl_bind *b, const json_t *value, void *member)
{
	static const struct rfl_member rows[] = {
		{ OTHER("precision", read_precision, 0), .must = true },
		{ "optimizer", RFL_MEMBER(CHOICE, struct rfl_work_file, optimizer), .must = true,
		  .choices = rfl_optimizer_names },
	};
	const char *attention = json_string_value(json_object_get(value, "attention"));
	const char *causal = json_string_value(json_object_get(value, "causal"));
	struct rfl_work_file *f = member;

	if (!json_is_object(value))
		rfl_bind_must(b, value, "an object");
	for (size_t i = 0; i < RFL_ARRAY_LEN(rows); i++)
		rfl_bind_key(b, value, &rows[i], f);
	if (json_is_true(json_object_get(value, "first_layer_dgrad")))
		f->unlike = "gradients of the input";
	else if (json_is_true(json_object_get(value, "auxiliary")))
		f->unlike = "auxiliary heads";
	else if (json_integer_value(json_object_get(value, "checkpoint")) > 0)
		f->unlike = "checkpointed blocks";
	else if (json_array_size(json_object_get(value, "frozen")) > 0)
		f->unlike = "frozen modules";
	else if (causal && strcmp(causal, "full") != 0)
		f->unlike = "half of causal attention";
	f->attention = attention ? index_of(rfl_attention_names, attention) : RFL_ATTENTION_AUTO;
}

static const struct rfl_member of_file[] = {
	{ "schema", RFL_CHECKED(TEXT) },
	SKIPPED("version"),
	SKIPPED("by"),
	{ OTHER("convention", read_convention, 0), .must = true },
	{ "models", RFL_MEMBERS(OTHER, struct rfl_work_file, models, nmodels), .must = true,
	  .read = read_model },
	SKIPPED("roof"),
	{ .key = NULL },
};

enum rfl_rc rfl_work_file_load(const char *path, struct rfl_work_file **ret, struct rfl_err *err)
{
	struct rfl_bind b = { .err = err };
	struct rfl_work_file *f;
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	if (rc)
		return rc;
	b.arena = rfl_arena_new();
	f = rfl_arena_array(b.arena, 1, sizeof(*f));
	f->arena = b.arena;
	f->path = rfl_arena_strdup(b.arena, path);
	rfl_where_begin(&b.at, path, "");
	/* An older summary has forward MACs per sample and no schema. */
	if (!json_object_get(root, "schema"))
		rfl_bind_refuse(&b, "is not a summary of 'roofline complexity' (no \"schema\"); "
				    "forward MACs per sample do not determine the FLOPs and "
				    "bytes of a training step. Create one with roofline "
				    "complexity --models ... --batch-sizes ... --output-dir DIR");
	else
		rfl_bind_schema(&b, root, SCHEMA, "a summary of 'roofline complexity'");
	rfl_bind_read(&b, root, of_file, f);
	json_decref(root);
	if (b.rc)
		rfl_arena_free(b.arena);
	else
		*ret = f;
	return b.rc;
}

void rfl_work_file_free(struct rfl_work_file *file)
{
	if (file)
		rfl_arena_free(file->arena);
}

/* ---- what is counted ---- */

/* The terms of a query. -1: not valid. */
struct plan {
	const struct rfl_work_query *q;
	enum rfl_scope scope, again; /* of the first forward pass of a step, and of the others */
	bool stored; /* the precision is valid: `dtype` and `master_weights` are set */
	enum rfl_dtype dtype;
	bool master_weights;
	int optimizer, attention;
	int64_t batch;           /* samples of a forward pass */
	int64_t passes, updates; /* of a step: forward passes and updates of all processes */
};

static enum rfl_rc plan_of(const struct rfl_work_query *q, struct plan *ret, struct rfl_err *err)
{
	static const char *const modes[] = { "fwd", "fwd_bwd", "train", NULL };
	static const enum rfl_optimizer_kind kinds[] = { RFL_OPT_MOMENTUM, RFL_OPT_ADAM,
							 RFL_OPT_ADAMW };
	const int64_t processes = q->processes > 1 ? q->processes : 1;
	const int64_t accum = q->accum > 1 && q->micro_batch > 0 ? q->accum : 1;
	const int mode = index_of(modes, q->mode);
	const int rule = index_of(rfl_optimizer_rule_names, q->optimizer ? q->optimizer : "");
	struct plan p = { .q = q,
			  .optimizer = rule < 0 ? -1 : (int)kinds[rule],
			  .attention = q->attention && *q->attention
					       ? index_of(rfl_attention_names, q->attention)
					       : RFL_ATTENTION_AUTO,
			  .batch = accum > 1 ? q->micro_batch : q->batch / processes,
			  .passes = accum * processes,
			  .updates = processes };

	if (mode < 0)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"mode '%s' is not valid; use train, fwd_bwd, fwd, decode or prefill",
			q->mode);
	p.scope = (enum rfl_scope)mode;
	p.again = p.scope == RFL_SCOPE_STEP ? RFL_SCOPE_FORWARD_BACKWARD : p.scope;
	/* sgd has momentum unless the row specifies 0 */
	if (p.optimizer == RFL_OPT_MOMENTUM && q->no_momentum)
		p.optimizer = RFL_OPT_SGD;
	p.stored = rfl_precision_storage(q->precision, &p.dtype, &p.master_weights, NULL) == RFL_OK;
	if (q->autocast && p.dtype != RFL_DTYPE_F32)
		p.master_weights = true;
	*ret = p;
	return RFL_OK;
}

static double flops_of(const struct plan *p, double forward, double training)
{
	if (p->scope == RFL_SCOPE_FORWARD)
		return forward;
	if (p->q->factor == RFL_TRAIN_EXACT)
		return training;
	return (p->q->factor == RFL_TRAIN_2 ? 2 : 3) * forward;
}

static const char *source_of(const struct plan *p, bool recomputes)
{
	if (p->scope == RFL_SCOPE_FORWARD)
		return "counted: forward";
	if (p->q->factor == RFL_TRAIN_EXACT)
		return recomputes ? "counted: forward + dgrad + wgrad + recomputed"
				  : "counted: forward + dgrad + wgrad";
	return p->q->factor == RFL_TRAIN_2 ? "2 x forward, as in older reports"
					   : "3 x forward, as in older reports";
}

/* The work of a step. Every pass repeats everything except the update. */
static void sum_up(const struct plan *p, double forward_flops, const struct scope scopes[SCOPES],
		   bool recomputes, struct rfl_work *ret)
{
	const double updates = (double)p->updates, passes = (double)p->passes;

	ret->flops = passes * flops_of(p, forward_flops, scopes[p->scope].flops);
	(void)snprintf(ret->flops_source, sizeof(ret->flops_source), "%s",
		       source_of(p, recomputes));
	for (int f = 0; f < RFL_FUSION_COUNT; f++)
		ret->bytes[f] = updates * scopes[p->scope].bytes[f] +
				(passes - updates) * scopes[p->again].bytes[f];
}

/* A network and its count for one forward pass. */
struct counted {
	struct rfl_net *net;
	struct rfl_count *count;
	bool recomputes;
};

static void counted_fini(struct counted *c)
{
	rfl_count_free(c->count);
	rfl_net_free(c->net);
}

static enum rfl_rc count_net(const struct plan *p, struct counted *ret, struct rfl_err *err)
{
	const struct rfl_work_query *q = p->q;
	const struct rfl_zoo_options sizes = {
		.image_size = q->image_size > 0 ? q->image_size : 0,
		.classes = q->classes > 0 ? q->classes : 0,
		.context_length = q->context_length > 0 ? q->context_length : 0,
		.attention = (enum rfl_attention)p->attention,
	};
	struct rfl_count_options options = { .batch = p->batch,
					     .training = p->scope != RFL_SCOPE_FORWARD,
					     .dtype = p->dtype,
					     .master_weights = p->master_weights,
					     .grad_clip = q->grad_clip,
					     .fused_attention = q->fused_attention };
	enum rfl_rc rc;

	*ret = (struct counted){ .net = NULL };
	if (!p->stored)
		return rfl_precision_storage(q->precision, &options.dtype, &options.master_weights,
					     err);
	if (p->scope == RFL_SCOPE_STEP && p->optimizer < 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"optimizer '%s' is not valid; use sgd, adam or adamw",
				q->optimizer ? q->optimizer : "");
	if (p->attention < 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"attention '%s' is not valid; use auto, composed, naive or sdpa",
				q->attention);
	if (p->scope == RFL_SCOPE_STEP)
		options.optimizer = (enum rfl_optimizer_kind)p->optimizer;
	if (q->net_file && !rfl_file_exists(q->net_file))
		return rfl_fail(err, RFL_ENOTFOUND, 0, "%s: no such file", q->net_file);
	if ((rc = q->net_file ? rfl_net_load(q->net_file, &ret->net, err)
			      : rfl_zoo_build(q->model, &sizes, &ret->net, err)) ||
	    (rc = rfl_count_net(ret->net, &options, &ret->count, err)))
		return rc;
	ret->recomputes = ret->count->total.macs[RFL_PASS_RECOMPUTE] > 0;
	return RFL_OK;
}

/* Replace the FLOPs by another tool's, which counts the forward pass. */
static enum rfl_rc count_as_peer(const struct plan *p, const struct counted *c,
				 const struct scope scopes[SCOPES], struct rfl_work *ret,
				 struct rfl_err *err)
{
	const struct rfl_peer *as = p->q->as;
	const double exact = (double)p->passes * scopes[p->scope].flops;
	struct rfl_peer_count sample = { .total = 0 };
	enum rfl_rc rc;

	if (p->scope != RFL_SCOPE_FORWARD && p->q->factor == RFL_TRAIN_EXACT)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--as %s: it counts the forward pass only; use --train-factor 2 or "
				"3 for runs in mode %s",
				as->name, p->q->mode);
	if ((rc = rfl_peer_count(as, c->net, &sample, NULL, err)))
		return rc;
	ret->flops =
		(double)p->passes * flops_of(p,
					     (as->is_flops ? 1.0 : 2.0) * (double)sample.total *
						     (double)c->count->options.batch,
					     scopes[p->scope].flops);
	(void)snprintf(ret->flops_source, sizeof(ret->flops_source),
		       "%s as counted by %s %s; counting every pass gives %.4g times as many",
		       p->scope == RFL_SCOPE_FORWARD ? "forward"
		       : p->q->factor == RFL_TRAIN_2 ? "2 x forward"
						     : "3 x forward",
		       as->name, as->version, exact / ret->flops);
	return RFL_OK;
}

/* The bytes that the planned engine moves in a step. NaN: it cannot run the network. */
static double plan_bytes_of(const struct plan *p, const struct counted *c)
{
	const struct rfl_plan_setup setup = {
		.batch = p->batch,
		.value_bytes = p->dtype == RFL_DTYPE_F32 ? 4 : 2,
		.training = p->scope != RFL_SCOPE_FORWARD,
		.dropout = true,
	};
	RFL_AUTOPTR(plan) plan = NULL;
	const double update = p->scope == RFL_SCOPE_STEP
				      ? (double)c->count->optimizer.read_bytes +
						(double)c->count->optimizer.write_bytes
				      : 0;
	double pass = 0;

	if (!p->q->planned || rfl_plan_new(c->net, &setup, &plan, NULL) != RFL_OK)
		return NAN;
	for (int i = 0; i < plan->nsteps; i++) {
		int64_t read, written;

		rfl_plan_traffic(plan, &plan->steps[i], &read, &written);
		pass += (double)read + (double)written;
	}
	return (double)p->passes * pass + (double)p->updates * update;
}

static enum rfl_rc count_own(const struct plan *p, struct rfl_work *ret, struct rfl_err *err)
{
	struct scope scopes[SCOPES] = { { .flops = 0 } };
	struct counted c;
	enum rfl_rc rc = count_net(p, &c, err);

	for (enum rfl_scope s = 0; s <= p->scope && rc == RFL_OK; s++) {
		scopes[s].flops =
			(double)(s == RFL_SCOPE_FORWARD ? rfl_count_forward_flops(c.count)
							: rfl_count_training_flops(c.count));
		for (enum rfl_fusion f = 0; f < RFL_FUSION_COUNT; f++)
			scopes[s].bytes[f] = (double)rfl_count_bytes(c.count, f, s);
	}
	if (rc == RFL_OK) {
		sum_up(p, scopes[RFL_SCOPE_FORWARD].flops, scopes, c.recomputes, ret);
		ret->plan_bytes = plan_bytes_of(p, &c);
		if (p->q->as)
			rc = count_as_peer(p, &c, scopes, ret, err);
	}
	counted_fini(&c);
	return rc;
}

/* The mean of the steps of a run with a cache. */
static enum rfl_rc count_cached(const struct rfl_work_query *q, struct rfl_work *ret,
				struct rfl_err *err)
{
	const bool decode = strcmp(q->mode, "decode") == 0;
	struct rfl_lm_step step =
		rfl_lm_step_of(q->precision, q->int8_weights, q->batch, q->past, q->context_length);
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_err why = RFL_ERR_INIT;
	struct rfl_lm lm;
	enum rfl_rc rc = rfl_lm_named(q->net_file ? q->net_file : q->model, arena, &lm, NULL, &why);

	if (q->as)
		rc = rfl_fail(&why, RFL_EUSAGE, 0, "--as %s: it does not count mode %s",
			      q->as->name, q->mode);
	*ret = (struct rfl_work){ .flops = NAN, .plan_bytes = NAN };
	for (enum rfl_fusion f = 0; rc == RFL_OK && f < RFL_FUSION_COUNT; f++) {
		struct rfl_lm_op mean;

		step.fusion = f;
		mean = rfl_lm_mean(&lm, &step, decode && q->steps > 0 ? q->steps : 1);
		ret->flops = mean.flops;
		ret->bytes[f] = rfl_lm_traffic(&mean);
	}
	(void)snprintf(ret->flops_source, sizeof(ret->flops_source), "counted: %s", q->mode);
	rfl_arena_free(arena);
	if (rc == RFL_ENOTFOUND || rc == RFL_EIO)
		rc = RFL_EMISSING;
	if (rc)
		rfl_fail(err, rc, 0, "%s", why.msg);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct rfl_work_layer *)a)->name,
		      ((const struct rfl_work_layer *)b)->name);
}

/* Add the cost of a node or of the loss in all passes of a scope. */
static void add_cost(const struct plan *p, const struct rfl_cost *cost, struct rfl_work_layer *to)
{
	const int last = p->scope == RFL_SCOPE_FORWARD ? RFL_PASS_FORWARD : RFL_PASS_COUNT - 1;
	const double times = (double)p->passes;
	double macs = 0;

	for (int pass = 0; pass <= last; pass++) {
		macs += (double)cost->macs[pass];
		for (int f = 0; f < RFL_FUSION_COUNT; f++)
			to->bytes[f] += times * ((double)cost->traffic[f][pass].read_bytes +
						 (double)cost->traffic[f][pass].write_bytes);
	}
	to->flops += times * flops_of(p, 2 * (double)cost->macs[RFL_PASS_FORWARD], 2 * macs);
}

enum rfl_rc rfl_work_count_layers(const struct rfl_work_query *q, struct rfl_arena *arena,
				  struct rfl_work_layers *ret, struct rfl_err *err)
{
	struct rfl_work_layers l = { .n = 0 };
	struct counted c = { .net = NULL };
	struct plan p;
	size_t n = 0;
	enum rfl_rc rc;

	if (rfl_step_caches(q->mode))
		return rfl_fail(err, RFL_ENOTFOUND, 0, "the layers of mode %s are not counted",
				q->mode);
	if ((rc = plan_of(q, &p, err)) || (rc = count_net(&p, &c, err)))
		goto done;
	n = (size_t)c.count->nnodes + 2;
	l.layers = rfl_arena_array(arena, n, sizeof(*l.layers));
	for (int i = 0; i < c.count->nnodes; i++) {
		const int len = rfl_op_layer_name(&c.net->nodes[i], NULL, 0);
		char *name = rfl_arena_array(arena, (size_t)len + 1, 1);

		(void)rfl_op_layer_name(&c.net->nodes[i], name, (size_t)len + 1);
		l.layers[i].name = name;
		add_cost(&p, &c.count->nodes[i], &l.layers[i]);
	}
	l.layers[n - 2].name = "loss";
	add_cost(&p, &c.count->loss, &l.layers[n - 2]);
	l.layers[n - 1].name = "opt";
	for (int f = 0; f < RFL_FUSION_COUNT && p.scope == RFL_SCOPE_STEP; f++)
		l.layers[n - 1].bytes[f] =
			(double)p.updates * ((double)c.count->optimizer.read_bytes +
					     (double)c.count->optimizer.write_bytes);
	qsort(l.layers, n, sizeof(*l.layers), by_name);
	for (size_t i = 0; i < n; i++) {
		struct rfl_work_layer *last = l.n ? &l.layers[l.n - 1] : NULL;

		if (!last || by_name(last, &l.layers[i]) != 0) {
			l.layers[l.n] = l.layers[i];
			l.layers[l.n++].bytes[RFL_FUSION_COMPULSORY] = NAN;
			continue;
		}
		last->flops += l.layers[i].flops;
		for (int f = 0; f < RFL_FUSION_COUNT; f++)
			last->bytes[f] += l.layers[i].bytes[f];
	}
	l.flops_source = source_of(&p, c.recomputes);
	*ret = l;
done:
	counted_fini(&c);
	return rc;
}

/* Return a difference between the step counted in the file and the run's step. NULL: none. A study
 * has one file, but may run several precisions, optimizers and attention implementations. */
static const char *other_step(const struct rfl_work_file *f, const struct plan *p)
{
	if (!p->stored || rfl_dtype_bytes(p->dtype) != rfl_dtype_bytes(f->dtype) ||
	    p->master_weights != f->master_weights)
		return "another precision";
	if (p->attention < 0 || p->attention != f->attention)
		return "another attention implementation";
	if (p->scope == RFL_SCOPE_STEP && p->optimizer != f->optimizer)
		return "another optimizer";
	if (p->scope == RFL_SCOPE_STEP && p->q->grad_clip)
		return "no clipping of gradients";
	return NULL;
}

/* Read the counts of a step from the file.
 * @return the reason why the file does not have them, or NULL */
static const char *take(const struct rfl_work_file *f, const struct plan *p, struct rfl_work *ret)
{
	const struct rfl_work_query *q = p->q;
	const struct rfl_zoo_model *known = NULL;
	const struct model *m = NULL;
	const struct scope *scopes = NULL;
	const char *lacks = "no such model";
	int64_t context = q->context_length;

	/* Use the default context length of the model. */
	if (context <= 0 && rfl_zoo_find(q->model, &known, NULL) == RFL_OK)
		context = known->context_length;
	/* The file may contain the model with several sizes. */
	for (size_t i = 0; i < f->nmodels && lacks; i++) {
		m = &f->models[i];
		if (strcmp(m->name, q->model) != 0)
			continue;
		lacks = NULL;
		if (q->image_size > 0 && m->image_size > 0 && q->image_size != m->image_size)
			lacks = "another image size";
		else if (q->classes > 0 && m->classes > 0 && q->classes != m->classes)
			lacks = "another number of classes";
		else if (context > 0 && m->context_length > 0 && context != m->context_length)
			lacks = "another context length";
		else if (q->fused_attention == RFL_FUSED_NEVER && m->recomputes)
			lacks = "fused attention";
	}
	if (!lacks)
		lacks = f->unlike ? f->unlike : other_step(f, p);
	if (lacks)
		return lacks;
	for (size_t i = 0; i < m->nbatches && !scopes; i++)
		if (m->batches[i].batch == p->batch)
			scopes = m->batches[i].scopes;
	if (!scopes)
		return "no such batch size";
	if (isnan(scopes[p->scope].flops) || isnan(scopes[RFL_SCOPE_FORWARD].flops) ||
	    (p->passes > 1 && isnan(scopes[p->again].flops)))
		return "no counts for that mode";
	sum_up(p, scopes[RFL_SCOPE_FORWARD].flops, scopes, m->recomputes, ret);
	return NULL;
}

/* Write a note once: configurations that differ only in layout or machine have the same
 * disagreement. */
static RFL_PRINTF(4, 5) void note_once(struct rfl_buf *notes, const struct rfl_work_file *f,
				       const struct rfl_work_query *q, const char *fmt, ...)
{
	RFL_AUTO(buf) line = { .len = 0 };
	va_list ap;

	rfl_buf_printf(&line, "%s: %s at batch %lld, %s: the file has ", f->path, q->model,
		       (long long)q->batch, q->mode);
	va_start(ap, fmt);
	rfl_buf_vprintf(&line, fmt, ap);
	va_end(ap);
	rfl_buf_putc(&line, '\n');
	if (!strstr(rfl_buf_str(notes), rfl_buf_str(&line)))
		rfl_buf_puts(notes, rfl_buf_str(&line));
}

enum rfl_rc rfl_work_count(const struct rfl_work_query *q, const struct rfl_work_file *f,
			   struct rfl_buf *notes, struct rfl_work *ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *model = NULL;
	const bool known = q->net_file ? rfl_file_exists(q->net_file)
				       : rfl_zoo_find(q->model, &model, NULL) == RFL_OK;
	struct rfl_work own = { .flops = NAN }, file = { .flops = NAN };
	const char *lacks = "no file";
	struct plan p;
	enum rfl_rc rc;

	if (rfl_step_caches(q->mode))
		return count_cached(q, ret, err);
	if ((rc = plan_of(q, &p, err)) || (known && (rc = count_own(&p, &own, err))))
		return rc;
	if (f)
		lacks = q->as ? "no counts of that counter" : take(f, &p, &file);
	if (lacks && !known && f)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is unknown to this program, and %s has no counts for "
				"it at batch %lld: %s",
				q->model, f->path, (long long)q->batch, lacks);
	if (lacks && !known && q->net_file)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is a network file, and there is no copy of it%s%s",
				q->model, *q->net_file ? ": " : "", q->net_file);
	if (lacks && !known)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is unknown; use one listed by 'roofline list models'",
				q->model);
	*ret = lacks ? own : file;
	ret->plan_bytes = known ? own.plan_bytes : NAN;
	if (f && lacks && (f->unlike || !other_step(f, &p)))
		note_once(notes, f, q, "%s; counts from the network are used", lacks);
	if (lacks || !known)
		return RFL_OK;
	if (own.flops != file.flops)
		note_once(notes, f, q, "%.0f FLOPs per step, the network %.0f; the file is used",
			  file.flops, own.flops);
	for (int k = 0; k < RFL_FUSION_COUNT; k++)
		if (own.bytes[k] != file.bytes[k])
			note_once(notes, f, q,
				  "%.0f bytes per step %s, the network %.0f; the file is used",
				  file.bytes[k], rfl_fusion_names[k], own.bytes[k]);
	return RFL_OK;
}
