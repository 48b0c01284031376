/*
 * work_file.c - read the file that `roofline complexity` wrote (docs/complexity.schema.json): only
 * what a point needs of it. It may hold models that this program does not know.
 */
#include "roofline/work_parts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "complexity/zoo.h"

#define SCHEMA           "roofline.complexity/1"
#define FORWARD          "forward"
#define FORWARD_BACKWARD "forward_backward"
#define TRAINING         "training"

/* In the order of enum rfl_scope. */
static const char *const scope_names[RFL_WORK_SCOPES] = { FORWARD, FORWARD_BACKWARD, TRAINING };

/* A whole number above zero. */
static enum rfl_rc positive(struct rfl_where *at, const json_t *obj, const char *key, int64_t *ret,
			    struct rfl_err *err)
{
	const json_t *v = json_object_get(obj, key);

	if (json_is_integer(v) && json_integer_value(v) > 0) {
		*ret = json_integer_value(v);
		return RFL_OK;
	}
	(void)rfl_where_key(at, key);
	return rfl_where_fail(at, err, v ? "must be a whole number above 0" : "is missing");
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

static enum rfl_rc read_scope(struct rfl_where *at, const json_t *obj, struct rfl_work__scope *ret,
			      struct rfl_err *err)
{
	static const char *const keys[] = { "macs", "flops", "bytes", NULL };
	const json_t *bytes = json_object_get(obj, "bytes");
	int64_t value = 0;
	enum rfl_rc rc;

	if ((rc = only_keys(at, obj, keys, err)) || (rc = positive(at, obj, "flops", &value, err)))
		return rc;
	ret->flops = (double)value;
	(void)rfl_where_key(at, "bytes");
	rc = only_keys(at, bytes, rfl_fusion_names, err);
	for (int f = 0; f < RFL_FUSION_COUNT && rc == RFL_OK; f++) {
		rc = positive(at, bytes, rfl_fusion_names[f], &value, err);
		ret->bytes[f] = (double)value;
	}
	return rc;
}

static enum rfl_rc read_batch(struct rfl_where *at, const json_t *obj, struct rfl_work__batch *ret,
			      struct rfl_err *err)
{
	static const char *const keys[] = { "batch",  FORWARD,  FORWARD_BACKWARD,
					    TRAINING, "memory", "attained",
					    NULL };
	enum rfl_rc rc;

	if ((rc = only_keys(at, obj, keys, err)) ||
	    (rc = positive(at, obj, "batch", &ret->batch, err)))
		return rc;
	for (int s = 0; s < RFL_WORK_SCOPES && rc == RFL_OK; s++) {
		const json_t *scope = json_object_get(obj, scope_names[s]);
		const size_t mark = rfl_where_key(at, scope_names[s]);

		ret->scopes[s].flops = NAN;
		if (scope)
			rc = read_scope(at, scope, &ret->scopes[s], err);
		rfl_where_up(at, mark);
	}
	return rc;
}

/* "input": [3, 224, 224]; other shapes have no image size. */
static int64_t image_size_of(const json_t *model)
{
	const json_t *shape = json_object_get(model, "input");
	const json_t *last = json_array_get(shape, 2);

	if (json_array_size(shape) != 3 || !json_is_integer(last))
		return -1;
	return json_integer_value(last);
}

static enum rfl_rc read_model(struct rfl_work_file *f, struct rfl_where *at, const json_t *obj,
			      struct rfl_work__model *ret, struct rfl_err *err)
{
	static const char *const keys[] = { "model",   "title",          "family",   "input",
					    "classes", "context_length", "params",   "trained",
					    "buffers", "forward",        "training", "optimizer",
					    "batches", "rows",           "peers",    "fit",
					    NULL };
	const json_t *list = json_object_get(obj, "batches");
	const char *name = NULL;
	enum rfl_rc rc;

	ret->image_size = image_size_of(obj);
	ret->classes = ret->context_length = -1;
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

/* A word of the convention that files may leave out. */
static const char *word(const json_t *obj, const char *key, const char *otherwise)
{
	const char *value = json_string_value(json_object_get(obj, key));

	return value ? value : otherwise;
}

/* What was asked for that no run does, or NULL. */
static const char *unlike_a_run(const json_t *obj)
{
	if (json_is_true(json_object_get(obj, "first_layer_dgrad")))
		return "gradients of the input";
	if (json_is_true(json_object_get(obj, "auxiliary")))
		return "auxiliary heads";
	if (json_integer_value(json_object_get(obj, "checkpoint")) > 0)
		return "checkpointed blocks";
	if (json_array_size(json_object_get(obj, "frozen")) > 0)
		return "frozen modules";
	if (strcmp(word(obj, "causal", "full"), "full") != 0)
		return "half of causal attention";
	return NULL;
}

/* What the counts are of. */
static enum rfl_rc read_convention(struct rfl_work_file *f, struct rfl_where *at, const json_t *obj,
				   struct rfl_err *err)
{
	const char *precision = NULL, *optimizer = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!json_is_object(obj))
		return rfl_where_fail(at, err, "must be an object");
	if ((rc = text(at, obj, "precision", &precision, err)) ||
	    (rc = text(at, obj, "optimizer", &optimizer, err)))
		return rc;
	f->unlike = unlike_a_run(obj);
	f->attention = rfl_arena_strdup(f->arena, word(obj, "attention", rfl_attention_names[0]));
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
	return rfl_where_fail(at, err, "is not the name of an optimizer");
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

	rfl_where_init(&at, f->path);
	/* an older summary has forward MACs per sample and no schema */
	if (!json_is_object(root) || !schema)
		return rfl_where_fail(
			&at, err,
			"is not a summary of 'roofline complexity' (no \"schema\"); forward "
			"MACs per sample do not give the FLOPs and bytes of a training step. "
			"Make one with roofline complexity --models ... --batch-sizes ... "
			"--output-dir DIR");
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
