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

#include "base/alloc.h"
#include "base/json.h"
#include "complexity/op.h"
#include "complexity/zoo.h"
#include "machine/terms.h"

#define SCHEMA           "roofline.complexity/1"
#define FORWARD          "forward"
#define FORWARD_BACKWARD "forward_backward"
#define TRAINING         "training"

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

static const char *const scope_names[SCOPES] = { FORWARD, FORWARD_BACKWARD, TRAINING };

/* The index of a name in a list that ends with NULL; -1: not in it. */
static int index_of(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* ---- reading the file ---- */

/* Get a member of this type; an integer must be positive, and a text not empty. The location is
 * not restored after a failure. */
static enum rfl_rc need(struct rfl_where *at, const json_t *obj, const char *key, json_type type,
			const json_t **ret, struct rfl_err *err)
{
	static const char *const types[] = { [JSON_OBJECT] = "an object",
					     [JSON_ARRAY] = "a list",
					     [JSON_STRING] = "a text",
					     [JSON_INTEGER] = "a positive integer" };
	const json_t *v = *ret = json_object_get(obj, key);

	if (v && json_typeof(v) == type && (type != JSON_STRING || *json_string_value(v)) &&
	    (type != JSON_INTEGER || json_integer_value(v) > 0))
		return RFL_OK;
	(void)rfl_where_key(at, key);
	if (!v && (type == JSON_STRING || type == JSON_INTEGER))
		return rfl_where_fail(at, err, "is missing");
	return rfl_where_fail(at, err, "must be %s", types[type]);
}

static enum rfl_rc positive(struct rfl_where *at, const json_t *obj, const char *key, int64_t *ret,
			    struct rfl_err *err)
{
	const json_t *v;
	enum rfl_rc rc = need(at, obj, key, JSON_INTEGER, &v, err);

	if (rc == RFL_OK)
		*ret = json_integer_value(v);
	return rc;
}

static enum rfl_rc only_keys(const struct rfl_where *at, const json_t *obj, const char *const *keys,
			     struct rfl_err *err)
{
	return rfl_json_only_keys(obj, keys, at->file, at->pointer, err);
}

static enum rfl_rc read_batch(struct rfl_where *at, const json_t *obj, struct batch *ret,
			      struct rfl_err *err)
{
	static const char *const keys[] = { "batch",  FORWARD,  FORWARD_BACKWARD,
					    TRAINING, "memory", "attained",
					    NULL };
	static const char *const scope_keys[] = { "macs", "flops", "bytes", NULL };
	enum rfl_rc rc;

	if ((rc = only_keys(at, obj, keys, err)) ||
	    (rc = positive(at, obj, "batch", &ret->batch, err)))
		return rc;
	for (int s = 0; s < SCOPES; s++) {
		const json_t *scope = json_object_get(obj, scope_names[s]);
		const json_t *bytes = json_object_get(scope, "bytes");
		const size_t mark = rfl_where_key(at, scope_names[s]);
		int64_t value = 0;

		ret->scopes[s].flops = NAN;
		if (scope) {
			if ((rc = only_keys(at, scope, scope_keys, err)) ||
			    (rc = positive(at, scope, "flops", &value, err)))
				return rc;
			ret->scopes[s].flops = (double)value;
			(void)rfl_where_key(at, "bytes");
			rc = only_keys(at, bytes, rfl_fusion_names, err);
		}
		for (int k = 0; k < RFL_FUSION_COUNT && scope && rc == RFL_OK; k++) {
			rc = positive(at, bytes, rfl_fusion_names[k], &value, err);
			ret->scopes[s].bytes[k] = (double)value;
		}
		if (rc)
			return rc;
		rfl_where_up(at, mark);
	}
	return RFL_OK;
}

static enum rfl_rc read_model(struct rfl_work_file *f, struct rfl_where *at, const json_t *obj,
			      struct model *ret, struct rfl_err *err)
{
	static const char *const keys[] = { "model",   "title",          "family",   "input",
					    "classes", "context_length", "params",   "trained",
					    "buffers", "forward",        "training", "optimizer",
					    "batches", "rows",           "peers",    "fit",
					    NULL };
	const json_t *shape = json_object_get(obj, "input"), *name, *list;
	enum rfl_rc rc;

	ret->image_size = ret->classes = ret->context_length = -1;
	/* The image size in "input": [3, 224, 224]. Other shapes have no image size. */
	if (json_array_size(shape) == 3 && json_is_integer(json_array_get(shape, 2)))
		ret->image_size = json_integer_value(json_array_get(shape, 2));
	if ((rc = only_keys(at, obj, keys, err)) ||
	    (rc = need(at, obj, "model", JSON_STRING, &name, err)) ||
	    (json_object_get(obj, "classes") &&
	     (rc = positive(at, obj, "classes", &ret->classes, err))) ||
	    (json_is_integer(json_object_get(obj, "context_length")) &&
	     (rc = positive(at, obj, "context_length", &ret->context_length, err))) ||
	    (rc = need(at, obj, "batches", JSON_ARRAY, &list, err)))
		return rc;
	(void)rfl_where_key(at, "batches");
	ret->recomputes = json_integer_value(json_object_get(json_object_get(obj, "training"),
							     "recompute_macs")) > 0;
	ret->nbatches = json_array_size(list);
	ret->name = rfl_arena_strdup(f->arena, json_string_value(name));
	ret->batches = rfl_arena_array(f->arena, ret->nbatches, sizeof(*ret->batches));
	rc = rfl_arena_check(f->arena, at->file, err);
	for (size_t i = 0; i < ret->nbatches && rc == RFL_OK; i++) {
		const size_t mark = rfl_where_index(at, i);

		rc = read_batch(at, json_array_get(list, i), &ret->batches[i], err);
		rfl_where_up(at, mark);
	}
	return rc;
}

static enum rfl_rc read_convention(struct rfl_work_file *f, struct rfl_where *at, const json_t *obj,
				   struct rfl_err *err)
{
	const json_t *precision, *optimizer;
	/* optional keys */
	const char *attention = json_string_value(json_object_get(obj, "attention"));
	const char *causal = json_string_value(json_object_get(obj, "causal"));
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if ((rc = need(at, obj, "precision", JSON_STRING, &precision, err)) ||
	    (rc = need(at, obj, "optimizer", JSON_STRING, &optimizer, err)))
		return rc;
	if (json_is_true(json_object_get(obj, "first_layer_dgrad")))
		f->unlike = "gradients of the input";
	else if (json_is_true(json_object_get(obj, "auxiliary")))
		f->unlike = "auxiliary heads";
	else if (json_integer_value(json_object_get(obj, "checkpoint")) > 0)
		f->unlike = "checkpointed blocks";
	else if (json_array_size(json_object_get(obj, "frozen")) > 0)
		f->unlike = "frozen modules";
	else if (causal && strcmp(causal, "full") != 0)
		f->unlike = "half of causal attention";
	f->attention = attention ? index_of(rfl_attention_names, attention) : RFL_ATTENTION_AUTO;
	if (rfl_precision_storage(json_string_value(precision), &f->dtype, &f->master_weights,
				  &why) != RFL_OK) {
		(void)rfl_where_key(at, "precision");
		return rfl_where_fail(at, err, "%s", why.msg);
	}
	f->optimizer = index_of(rfl_optimizer_names, json_string_value(optimizer));
	if (f->optimizer >= 0)
		return RFL_OK;
	(void)rfl_where_key(at, "optimizer");
	return rfl_where_fail(at, err, "is not a valid optimizer name");
}

static enum rfl_rc read_root(struct rfl_work_file *f, const json_t *root, struct rfl_err *err)
{
	static const char *const keys[] = { "schema", "version", "by", "convention",
					    "models", "roof",    NULL };
	const json_t *schema = json_object_get(root, "schema"), *models, *convention;
	struct rfl_where at;
	size_t mark;
	enum rfl_rc rc;

	rfl_where_begin(&at, f->path, "");
	/* An older summary has forward MACs per sample and no schema. */
	if (!schema)
		return rfl_where_fail(&at, err,
				      "is not a summary of 'roofline complexity' (no \"schema\"); "
				      "forward MACs per sample do not determine the FLOPs and "
				      "bytes of a training step. Create one with roofline "
				      "complexity --models ... --batch-sizes ... --output-dir DIR");
	if (!json_is_string(schema) || strcmp(json_string_value(schema), SCHEMA) != 0) {
		(void)rfl_where_key(&at, "schema");
		return rfl_where_fail(&at, err, "must be \"" SCHEMA "\"");
	}
	if ((rc = only_keys(&at, root, keys, err)) ||
	    (rc = need(&at, root, "models", JSON_ARRAY, &models, err)) ||
	    json_array_size(models) == 0 ||
	    (rc = need(&at, root, "convention", JSON_OBJECT, &convention, err)))
		return rc;
	mark = rfl_where_key(&at, "convention");
	if ((rc = read_convention(f, &at, convention, err)))
		return rc;
	rfl_where_up(&at, mark);
	(void)rfl_where_key(&at, "models");
	f->nmodels = json_array_size(models);
	f->models = rfl_arena_array(f->arena, f->nmodels, sizeof(*f->models));
	rc = rfl_arena_check(f->arena, f->path, err);
	for (size_t i = 0; i < f->nmodels && rc == RFL_OK; i++) {
		mark = rfl_where_index(&at, i);
		rc = read_model(f, &at, json_array_get(models, i), &f->models[i], err);
		rfl_where_up(&at, mark);
	}
	return rc;
}

enum rfl_rc rfl_work_file_load(const char *path, struct rfl_work_file **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_work_file *f = rfl_arena_array(arena, 1, sizeof(*f));
	json_t *root = NULL;
	enum rfl_rc rc = rfl_arena_check(arena, path, err);

	if (rc || (rc = rfl_json_load(path, &root, err)))
		goto done;
	f->arena = arena;
	f->path = rfl_arena_strdup(arena, path);
	if ((rc = rfl_arena_check(arena, path, err)) || (rc = read_root(f, root, err)))
		goto done;
	*ret = f;
	arena = NULL;
done:
	rfl_arena_free(arena);
	json_decref(root);
	return rc;
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
		return rfl_fail(err, RFL_EINVAL, 0,
				"mode '%s' is not valid; use train, fwd_bwd or fwd", q->mode);
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
	if ((rc = rfl_zoo_build(q->model, &sizes, &ret->net, err)) ||
	    (rc = rfl_count_net(ret->net, &options, &ret->count, err)))
		return rc;
	ret->recomputes = ret->count->total.macs[RFL_PASS_RECOMPUTE] > 0;
	return RFL_OK;
}

/* Replace the FLOPs by those of another counter, which counts the forward pass. */
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
		if (p->q->as)
			rc = count_as_peer(p, &c, scopes, ret, err);
	}
	counted_fini(&c);
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

enum rfl_rc rfl_work_count_layers(const struct rfl_work_query *q, struct rfl_work_layers *ret,
				  struct rfl_err *err)
{
	struct rfl_work_layers l = { .arena = rfl_arena_new() };
	struct counted c = { .net = NULL };
	struct plan p;
	size_t n = 0;
	enum rfl_rc rc;

	if ((rc = plan_of(q, &p, err)) || (rc = count_net(&p, &c, err)))
		goto done;
	n = (size_t)c.count->nnodes + 2;
	l.layers = rfl_arena_array(l.arena, n, sizeof(*l.layers));
	for (int i = 0; l.layers && i < c.count->nnodes; i++) {
		const int len = rfl_op_layer_name(&c.net->nodes[i], NULL, 0);
		char *name = rfl_arena_array(l.arena, (size_t)len + 1, 1);

		if (name)
			(void)rfl_op_layer_name(&c.net->nodes[i], name, (size_t)len + 1);
		l.layers[i].name = name;
		add_cost(&p, &c.count->nodes[i], &l.layers[i]);
	}
	if ((rc = rfl_arena_check(l.arena, "points", err)))
		goto done;
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
	l.arena = NULL;
done:
	counted_fini(&c);
	rfl_arena_free(l.arena);
	return rc;
}

void rfl_work_layers_fini(struct rfl_work_layers *layers)
{
	rfl_arena_free(layers->arena);
	*layers = (struct rfl_work_layers){ .n = 0 };
}

/* Return a difference between the work counted in the file and that of the run. NULL: none. */
static const char *other_convention(const struct rfl_work_file *f, const struct plan *p)
{
	if (f->unlike)
		return f->unlike;
	if (!p->stored || rfl_dtype_bytes(p->dtype) != rfl_dtype_bytes(f->dtype) ||
	    p->master_weights != f->master_weights)
		return "another precision";
	if (p->attention < 0 || p->attention != f->attention)
		return "another form of attention";
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
		lacks = other_convention(f, p);
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
	struct rfl_buf line = { .len = 0 };
	va_list ap;

	rfl_buf_printf(&line, "%s: %s at batch %lld, %s: the file has ", f->path, q->model,
		       (long long)q->batch, q->mode);
	va_start(ap, fmt);
	rfl_buf_vprintf(&line, fmt, ap);
	va_end(ap);
	rfl_buf_putc(&line, '\n');
	if (!strstr(rfl_buf_str(notes), rfl_buf_str(&line)))
		rfl_buf_puts(notes, rfl_buf_str(&line));
	rfl_buf_fini(&line);
}

enum rfl_rc rfl_work_count(const struct rfl_work_query *q, const struct rfl_work_file *f,
			   struct rfl_buf *notes, struct rfl_work *ret, struct rfl_err *err)
{
	const struct rfl_zoo_model *model = NULL;
	const bool known = rfl_zoo_find(q->model, &model, NULL) == RFL_OK;
	struct rfl_work own = { .flops = NAN }, file = { .flops = NAN };
	const char *lacks = "no file";
	struct plan p;
	enum rfl_rc rc;

	if ((rc = plan_of(q, &p, err)) || (known && (rc = count_own(&p, &own, err))))
		return rc;
	if (f)
		lacks = q->as ? "no counts of that counter" : take(f, &p, &file);
	if (lacks && !known && f)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is unknown to this program, and %s has no counts for "
				"it at batch %lld: %s",
				q->model, f->path, (long long)q->batch, lacks);
	if (lacks && !known)
		return rfl_fail(err, RFL_EMISSING, 0,
				"model '%s' is unknown; use one listed by 'roofline list models'",
				q->model);
	*ret = lacks ? own : file;
	if (f && lacks)
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
