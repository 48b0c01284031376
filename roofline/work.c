/*
 * work.c - the FLOPs and bytes of one step. They are read from a file written by `roofline
 * complexity` (docs/complexity.schema.json) if it has the step, else counted from the network. If
 * both exist, they are compared. A file may contain models that are unknown to this program.
 */
#include "roofline/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "complexity/op.h"
#include "complexity/zoo.h"

#define SCHEMA           "roofline.complexity/1"
#define FORWARD          "forward"
#define FORWARD_BACKWARD "forward_backward"
#define TRAINING         "training"

const char *const rfl_train_factor_names[] = { "exact", "2", "3", NULL };

#define SCOPES 3 /* number of enum rfl_scope values */

struct scope {
	double flops; /* NaN: the file does not have this scope */
	double bytes[RFL_FUSION_COUNT];
};

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
	int optimizer;         /* enum rfl_optimizer_kind */
	const char *attention; /* one of rfl_attention_names */
	const char *unlike;    /* describes counted work that no run performs; NULL: none */
	size_t nmodels;
	struct model *models;
	struct rfl_arena *arena; /* owns everything above */
};

static const char *const scope_names[SCOPES] = { FORWARD, FORWARD_BACKWARD, TRAINING };

/* Read a positive integer. */
static enum rfl_rc positive(struct rfl_where *at, const json_t *obj, const char *key, int64_t *ret,
			    struct rfl_err *err)
{
	const json_t *v = json_object_get(obj, key);

	if (json_is_integer(v) && json_integer_value(v) > 0) {
		*ret = json_integer_value(v);
		return RFL_OK;
	}
	(void)rfl_where_key(at, key);
	return rfl_where_fail(at, err, v ? "must be a positive integer" : "is missing");
}

static enum rfl_rc text(struct rfl_where *at, const json_t *obj, const char *key, const char **ret,
			struct rfl_err *err)
{
	const json_t *v = json_object_get(obj, key);

	if (json_is_string(v) && *json_string_value(v)) {
		*ret = json_string_value(v);
		return RFL_OK;
	}
	(void)rfl_where_key(at, key);
	return rfl_where_fail(at, err, v ? "must be a text" : "is missing");
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
		if (scope && ((rc = only_keys(at, scope, scope_keys, err)) ||
			      (rc = positive(at, scope, "flops", &value, err))))
			return rc;
		if (scope) {
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
	const json_t *list = json_object_get(obj, "batches");
	const json_t *shape = json_object_get(obj, "input");
	const char *name = NULL;
	enum rfl_rc rc;

	ret->image_size = ret->classes = ret->context_length = -1;
	/* The image size in "input": [3, 224, 224]. Other shapes have no image size. */
	if (json_array_size(shape) == 3 && json_is_integer(json_array_get(shape, 2)))
		ret->image_size = json_integer_value(json_array_get(shape, 2));
	if ((rc = only_keys(at, obj, keys, err)) || (rc = text(at, obj, "model", &name, err)) ||
	    (json_object_get(obj, "classes") &&
	     (rc = positive(at, obj, "classes", &ret->classes, err))) ||
	    (json_is_integer(json_object_get(obj, "context_length")) &&
	     (rc = positive(at, obj, "context_length", &ret->context_length, err))))
		return rc;
	(void)rfl_where_key(at, "batches");
	if (!json_is_array(list))
		return rfl_where_fail(at, err, "must be a list");
	ret->recomputes = json_integer_value(json_object_get(json_object_get(obj, "training"),
							     "recompute_macs")) > 0;
	ret->nbatches = json_array_size(list);
	ret->name = rfl_arena_strdup(f->arena, name);
	ret->batches = rfl_arena_array(f->arena, ret->nbatches + 1, sizeof(*ret->batches));
	if (!ret->name || !ret->batches)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", at->file);
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
	const char *precision = NULL, *optimizer = NULL;
	/* optional keys */
	const char *attention = json_string_value(json_object_get(obj, "attention"));
	const char *causal = json_string_value(json_object_get(obj, "causal"));
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!json_is_object(obj))
		return rfl_where_fail(at, err, "must be an object");
	if ((rc = text(at, obj, "precision", &precision, err)) ||
	    (rc = text(at, obj, "optimizer", &optimizer, err)))
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
	f->attention = rfl_arena_strdup(f->arena, attention ? attention : rfl_attention_names[0]);
	if (!f->attention)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", at->file);
	if (rfl_precision_storage(precision, &f->dtype, &f->master_weights, &why) != RFL_OK) {
		(void)rfl_where_key(at, "precision");
		return rfl_where_fail(at, err, "%s", why.msg);
	}
	for (f->optimizer = 0; rfl_optimizer_names[f->optimizer]; f->optimizer++)
		if (strcmp(rfl_optimizer_names[f->optimizer], optimizer) == 0)
			return RFL_OK;
	(void)rfl_where_key(at, "optimizer");
	return rfl_where_fail(at, err, "is not a valid optimizer name");
}

static enum rfl_rc read_root(struct rfl_work_file *f, const json_t *root, struct rfl_err *err)
{
	static const char *const keys[] = { "schema", "version", "by", "convention",
					    "models", "roof",    NULL };
	const json_t *schema = json_object_get(root, "schema");
	const json_t *models = json_object_get(root, "models");
	struct rfl_where at;
	size_t mark;
	enum rfl_rc rc;

	rfl_where_begin(&at, f->path, "");
	/* An older summary has forward MACs per sample and no schema. */
	if (!json_is_object(root) || !schema)
		return rfl_where_fail(&at, err,
				      "is not a summary of 'roofline complexity' (no \"schema\"); "
				      "forward MACs per sample do not determine the FLOPs and "
				      "bytes of a training step. Create one with roofline "
				      "complexity --models ... --batch-sizes ... --output-dir DIR");
	if (!json_is_string(schema) || strcmp(json_string_value(schema), SCHEMA) != 0) {
		(void)rfl_where_key(&at, "schema");
		return rfl_where_fail(&at, err, "must be \"" SCHEMA "\"");
	}
	rc = only_keys(&at, root, keys, err);
	if (rc || (json_is_array(models) && json_array_size(models) == 0))
		return rc;
	mark = rfl_where_key(&at, "models");
	if (!json_is_array(models))
		return rfl_where_fail(&at, err, "must be a list");
	rfl_where_up(&at, mark);
	(void)rfl_where_key(&at, "convention");
	rc = read_convention(f, &at, json_object_get(root, "convention"), err);
	if (rc)
		return rc;
	rfl_where_up(&at, mark);
	(void)rfl_where_key(&at, "models");
	f->nmodels = json_array_size(models);
	f->models = rfl_arena_array(f->arena, f->nmodels, sizeof(*f->models));
	if (!f->models)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", f->path);
	for (size_t i = 0; i < f->nmodels && rc == RFL_OK; i++) {
		mark = rfl_where_index(&at, i);
		rc = read_model(f, &at, json_array_get(models, i), &f->models[i], err);
		rfl_where_up(&at, mark);
	}
	return rc;
}

enum rfl_rc rfl_work_file_load(const char *path, struct rfl_work_file **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = NULL;
	struct rfl_work_file *f = NULL;
	json_t *root = NULL;
	enum rfl_rc rc = rfl_json_load(path, &root, err);

	if (rc != RFL_OK)
		return rc;
	arena = rfl_arena_new(0);
	f = arena ? rfl_arena_array(arena, 1, sizeof(*f)) : NULL;
	if (!f) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	f->arena = arena;
	f->path = rfl_arena_strdup(arena, path);
	rc = f->path ? read_root(f, root, err)
		     : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	if (rc != RFL_OK)
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

static enum rfl_rc scope_of(const char *mode, enum rfl_scope *ret, struct rfl_err *err)
{
	if (strcmp(mode, "train") == 0)
		*ret = RFL_SCOPE_STEP;
	else if (strcmp(mode, "fwd_bwd") == 0)
		*ret = RFL_SCOPE_FORWARD_BACKWARD;
	else if (strcmp(mode, "fwd") == 0)
		*ret = RFL_SCOPE_FORWARD;
	else
		return rfl_fail(err, RFL_EINVAL, 0,
				"mode '%s' is not valid; use train, fwd_bwd or fwd", mode);
	return RFL_OK;
}

/* sgd has momentum unless the row specifies 0. */
static enum rfl_rc optimizer_of(const struct rfl_work_query *q, enum rfl_optimizer_kind *ret,
				struct rfl_err *err)
{
	const char *optimizer = q->optimizer ? q->optimizer : "";

	if (strcmp(optimizer, "sgd") == 0)
		*ret = q->no_momentum ? RFL_OPT_SGD : RFL_OPT_MOMENTUM;
	else if (strcmp(optimizer, "adam") == 0)
		*ret = RFL_OPT_ADAM;
	else if (strcmp(optimizer, "adamw") == 0)
		*ret = RFL_OPT_ADAMW;
	else
		return rfl_fail(err, RFL_EINVAL, 0,
				"optimizer '%s' is not valid; use sgd, adam or adamw", optimizer);
	return RFL_OK;
}

static enum rfl_rc storage_of(const struct rfl_work_query *q, enum rfl_dtype *dtype, bool *master,
			      struct rfl_err *err)
{
	enum rfl_rc rc = rfl_precision_storage(q->precision, dtype, master, err);

	if (rc == RFL_OK && q->autocast && *dtype != RFL_DTYPE_F32)
		*master = true;
	return rc;
}

static enum rfl_rc attention_of(const struct rfl_work_query *q, enum rfl_attention *ret,
				struct rfl_err *err)
{
	const char *name = q->attention && *q->attention ? q->attention : rfl_attention_names[0];

	for (int i = 0; rfl_attention_names[i]; i++)
		if (strcmp(rfl_attention_names[i], name) == 0) {
			*ret = (enum rfl_attention)i;
			return RFL_OK;
		}
	return rfl_fail(err, RFL_EINVAL, 0,
			"attention '%s' is not valid; use auto, composed, naive or sdpa", name);
}

static double flops_of(enum rfl_scope scope, enum rfl_train_factor factor, double forward,
		       double training)
{
	if (scope == RFL_SCOPE_FORWARD)
		return forward;
	if (factor == RFL_TRAIN_EXACT)
		return training;
	return (factor == RFL_TRAIN_2 ? 2 : 3) * forward;
}

static const char *source_of(enum rfl_scope scope, enum rfl_train_factor factor, bool recomputes)
{
	if (scope == RFL_SCOPE_FORWARD)
		return "counted: forward";
	if (factor == RFL_TRAIN_EXACT)
		return recomputes ? "counted: forward + dgrad + wgrad + recomputed"
				  : "counted: forward + dgrad + wgrad";
	return factor == RFL_TRAIN_2 ? "2 x forward, as in older reports"
				     : "3 x forward, as in older reports";
}

/* A network and its count for one forward pass. */
struct counted {
	struct rfl_net *net;
	struct rfl_count *count;
	int64_t forwards; /* forward passes per step; they repeat everything except the optimizer */
};

static void counted_fini(struct counted *c)
{
	rfl_count_free(c->count);
	rfl_net_free(c->net);
}

static enum rfl_rc count_net(const struct rfl_work_query *q, enum rfl_scope scope,
			     struct counted *ret, struct rfl_err *err)
{
	struct rfl_zoo_options sizes = {
		.image_size = q->image_size > 0 ? q->image_size : 0,
		.classes = q->classes > 0 ? q->classes : 0,
		.context_length = q->context_length > 0 ? q->context_length : 0,
	};
	struct rfl_count_options options = { .batch = q->batch,
					     .training = scope != RFL_SCOPE_FORWARD,
					     .grad_clip = q->grad_clip,
					     .fused_attention = q->fused_attention };
	enum rfl_rc rc;

	*ret = (struct counted){ .forwards = 1 };
	if (q->accum > 1 && q->micro_batch > 0) {
		options.batch = q->micro_batch;
		ret->forwards = q->accum;
	}
	if ((rc = storage_of(q, &options.dtype, &options.master_weights, err)) ||
	    (scope == RFL_SCOPE_STEP && (rc = optimizer_of(q, &options.optimizer, err))) ||
	    (rc = attention_of(q, &sizes.attention, err)) ||
	    (rc = rfl_zoo_build(q->model, &sizes, &ret->net, err)))
		return rc;
	return rfl_count_net(ret->net, &options, &ret->count, err);
}

/* The FLOPs of a forward pass by another counter. */
static enum rfl_rc peer_flops(const struct rfl_work_query *q, enum rfl_scope scope,
			      const struct counted *c, double *ret, struct rfl_err *err)
{
	struct rfl_peer_count sample = { .total = 0 };
	enum rfl_rc rc;

	if (scope != RFL_SCOPE_FORWARD && q->factor == RFL_TRAIN_EXACT)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--as %s: it counts the forward pass only; use --train-factor 2 or "
				"3 for runs in mode %s",
				q->as->name, q->mode);
	rc = rfl_peer_count(q->as, c->net, &sample, NULL, err);
	*ret = (q->as->is_flops ? 1.0 : 2.0) * (double)sample.total *
	       (double)c->count->options.batch;
	return rc;
}

static enum rfl_rc count_own(const struct rfl_work_query *q, enum rfl_scope scope,
			     struct rfl_work *ret, struct rfl_err *err)
{
	const enum rfl_scope again = scope == RFL_SCOPE_STEP ? RFL_SCOPE_FORWARD_BACKWARD : scope;
	const char *source;
	double forward, exact;
	struct counted c;
	enum rfl_rc rc = count_net(q, scope, &c, err);

	if (rc)
		goto done;
	forward = (double)rfl_count_forward_flops(c.count);
	exact = (double)c.forwards * flops_of(scope, RFL_TRAIN_EXACT, forward,
					      (double)rfl_count_training_flops(c.count));
	source = source_of(scope, q->factor, c.count->total.macs[RFL_PASS_RECOMPUTE] > 0);
	if (q->as && (rc = peer_flops(q, scope, &c, &forward, err)))
		goto done;
	ret->flops = (double)c.forwards *
		     flops_of(scope, q->factor, forward, (double)rfl_count_training_flops(c.count));
	if (q->as)
		(void)snprintf(ret->flops_source, sizeof(ret->flops_source),
			       "%s as counted by %s %s; counting every pass gives %.4g times as "
			       "many",
			       scope == RFL_SCOPE_FORWARD ? "forward"
			       : q->factor == RFL_TRAIN_2 ? "2 x forward"
							  : "3 x forward",
			       q->as->name, q->as->version, exact / ret->flops);
	else
		(void)snprintf(ret->flops_source, sizeof(ret->flops_source), "%s", source);
	for (int f = 0; f < RFL_FUSION_COUNT; f++)
		ret->bytes[f] = (double)rfl_count_bytes(c.count, (enum rfl_fusion)f, scope) +
				(double)(c.forwards - 1) *
					(double)rfl_count_bytes(c.count, (enum rfl_fusion)f, again);
done:
	counted_fini(&c);
	return rc;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct rfl_work_layer *)a)->name,
		      ((const struct rfl_work_layer *)b)->name);
}

/* Add the cost of a node or of the loss in all passes of a scope. */
static void add_cost(const struct rfl_work_query *q, enum rfl_scope scope,
		     const struct rfl_cost *cost, int64_t forwards, struct rfl_work_layer *to)
{
	const int last = scope == RFL_SCOPE_FORWARD ? RFL_PASS_FORWARD : RFL_PASS_COUNT - 1;
	const double times = (double)forwards;
	double macs = 0;

	for (int pass = 0; pass <= last; pass++) {
		macs += (double)cost->macs[pass];
		for (int f = 0; f < RFL_FUSION_COUNT; f++)
			to->bytes[f] += times * ((double)cost->traffic[f][pass].read_bytes +
						 (double)cost->traffic[f][pass].write_bytes);
	}
	to->flops += times *
		     flops_of(scope, q->factor, 2 * (double)cost->macs[RFL_PASS_FORWARD], 2 * macs);
}

enum rfl_rc rfl_work_count_layers(const struct rfl_work_query *q, struct rfl_work_layers *ret,
				  struct rfl_err *err)
{
	struct rfl_work_layers l = { .arena = rfl_arena_new(0) };
	enum rfl_scope scope = RFL_SCOPE_STEP;
	struct counted c = { .net = NULL };
	size_t n = 0, kept = 0;
	enum rfl_rc rc;

	if ((rc = scope_of(q->mode, &scope, err)) || (rc = count_net(q, scope, &c, err)))
		goto done;
	n = (size_t)c.count->nnodes + 2;
	if (l.arena)
		l.layers = rfl_arena_array(l.arena, n, sizeof(*l.layers));
	if (!l.layers) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
		goto done;
	}
	for (int i = 0; i < c.count->nnodes; i++) {
		const int len = rfl_op_layer_name(&c.net->nodes[i], NULL, 0);
		char *name = rfl_arena_array(l.arena, (size_t)len + 1, 1);

		if (!name) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "points: out of memory");
			goto done;
		}
		(void)rfl_op_layer_name(&c.net->nodes[i], name, (size_t)len + 1);
		l.layers[i].name = name;
		add_cost(q, scope, &c.count->nodes[i], c.forwards, &l.layers[i]);
	}
	l.layers[n - 2].name = "loss";
	add_cost(q, scope, &c.count->loss, c.forwards, &l.layers[n - 2]);
	l.layers[n - 1].name = "opt";
	for (int f = 0; f < RFL_FUSION_COUNT && scope == RFL_SCOPE_STEP; f++)
		l.layers[n - 1].bytes[f] = (double)c.count->optimizer.read_bytes +
					   (double)c.count->optimizer.write_bytes;
	qsort(l.layers, n, sizeof(*l.layers), by_name);
	for (size_t i = 0; i < n; i++) {
		struct rfl_work_layer *to = kept > 0 ? &l.layers[kept - 1] : NULL;

		if (!to || by_name(to, &l.layers[i]) != 0) {
			l.layers[kept++] = l.layers[i];
			continue;
		}
		to->flops += l.layers[i].flops;
		for (int f = 0; f < RFL_FUSION_COUNT; f++)
			to->bytes[f] += l.layers[i].bytes[f];
	}
	for (size_t i = 0; i < kept; i++)
		l.layers[i].bytes[RFL_FUSION_COMPULSORY] = NAN;
	l.n = kept;
	l.flops_source = source_of(scope, q->factor, c.count->total.macs[RFL_PASS_RECOMPUTE] > 0);
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
static const char *other_convention(const struct rfl_work_file *f, const struct rfl_work_query *q,
				    enum rfl_scope scope)
{
	enum rfl_dtype dtype = RFL_DTYPE_F32;
	enum rfl_optimizer_kind optimizer = RFL_OPT_SGD;
	enum rfl_attention attention = RFL_ATTENTION_AUTO;
	bool master = false;

	if (f->unlike)
		return f->unlike;
	if (storage_of(q, &dtype, &master, NULL) != RFL_OK ||
	    rfl_dtype_bytes(dtype) != rfl_dtype_bytes(f->dtype) || master != f->master_weights)
		return "another precision";
	if (attention_of(q, &attention, NULL) != RFL_OK ||
	    strcmp(f->attention, rfl_attention_names[attention]) != 0)
		return "another form of attention";
	if (scope == RFL_SCOPE_STEP &&
	    (optimizer_of(q, &optimizer, NULL) != RFL_OK || (int)optimizer != f->optimizer))
		return "another optimizer";
	if (scope == RFL_SCOPE_STEP && q->grad_clip)
		return "no clipping of gradients";
	return NULL;
}

/* Read the counts of a step from the file.
 * @return the reason why the file does not have them, or NULL */
static const char *take(const struct rfl_work_file *f, const struct rfl_work_query *q,
			enum rfl_scope scope, struct rfl_work *ret)
{
	const bool accum = q->accum > 1 && q->micro_batch > 0;
	const int64_t batch = accum ? q->micro_batch : q->batch;
	const enum rfl_scope again = scope == RFL_SCOPE_STEP ? RFL_SCOPE_FORWARD_BACKWARD : scope;
	const double forwards = accum ? (double)q->accum : 1;
	const struct rfl_zoo_model *known = NULL;
	const struct model *m = NULL;
	const struct batch *b = NULL;
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
		lacks = other_convention(f, q, scope);
	if (lacks)
		return lacks;
	for (size_t i = 0; i < m->nbatches && !b; i++)
		if (m->batches[i].batch == batch)
			b = &m->batches[i];
	if (!b)
		return "no such batch size";
	if (isnan(b->scopes[scope].flops) || isnan(b->scopes[RFL_SCOPE_FORWARD].flops) ||
	    (accum && isnan(b->scopes[again].flops)))
		return "no counts for that mode";
	ret->flops = forwards * flops_of(scope, q->factor, b->scopes[RFL_SCOPE_FORWARD].flops,
					 b->scopes[scope].flops);
	(void)snprintf(ret->flops_source, sizeof(ret->flops_source), "%s",
		       source_of(scope, q->factor, m->recomputes));
	for (int k = 0; k < RFL_FUSION_COUNT; k++)
		ret->bytes[k] =
			b->scopes[scope].bytes[k] + (forwards - 1) * b->scopes[again].bytes[k];
	return NULL;
}

/* Write a note once: configurations that differ only in layout or machine have the same
 * disagreement. */
static void note_once(struct rfl_buf *notes, const struct rfl_work_file *f,
		      const struct rfl_work_query *q, const char *says)
{
	struct rfl_buf line;

	rfl_buf_init(&line, 1 << 16);
	rfl_buf_printf(&line, "%s: %s at batch %lld, %s: %s\n", f->path, q->model,
		       (long long)q->batch, q->mode, says);
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
	enum rfl_scope scope = RFL_SCOPE_STEP;
	const char *lacks = "no file";
	char says[200];
	enum rfl_rc rc;

	if ((rc = scope_of(q->mode, &scope, err)) ||
	    (known && (rc = count_own(q, scope, &own, err))))
		return rc;
	if (f && q->as)
		lacks = "no counts of that counter";
	else if (f)
		lacks = take(f, q, scope, &file);
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
	if (f && lacks) {
		(void)snprintf(says, sizeof(says),
			       "the file has %s; counts from the network are used", lacks);
		note_once(notes, f, q, says);
	}
	if (lacks || !known)
		return RFL_OK;
	if (own.flops != file.flops) {
		(void)snprintf(
			says, sizeof(says),
			"the file has %.0f FLOPs per step, the network %.0f; the file is used",
			file.flops, own.flops);
		note_once(notes, f, q, says);
	}
	for (int k = 0; k < RFL_FUSION_COUNT; k++) {
		if (own.bytes[k] == file.bytes[k])
			continue;
		(void)snprintf(
			says, sizeof(says),
			"the file has %.0f bytes per step %s, the network %.0f; the file is used",
			file.bytes[k], rfl_fusion_names[k], own.bytes[k]);
		note_once(notes, f, q, says);
	}
	return RFL_OK;
}
