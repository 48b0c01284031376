/*
 * complexity_nets.c - which networks roofline complexity counts: models of the zoo at every context
 * length, and networks from files.
 */
#include "cli/cmd/complexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "complexity/net/file.h"

static const char *const default_models[] = { "resnet50", "vgg16", "mobilenet_v2" };

static enum rfl_rc grow(struct rfl_complexity_report *r, struct rfl_err *err)
{
	size_t cap = r->cap ? 2 * r->cap : 16;
	void *bigger;

	if (r->n < r->cap)
		return RFL_OK;
	bigger = realloc(r->items, cap * sizeof(struct rfl_summary *));
	if (!bigger)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	r->items = bigger;
	r->cap = cap;
	return RFL_OK;
}

/* What was named twice stands there once. */
static bool is_there(const struct rfl_complexity_report *r, const char *name, int64_t context)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->items[i]->name, name) == 0 && r->items[i]->context_length == context)
			return true;
	return false;
}

/* The option that was refused. */
static const char *guilty(const struct rfl_zoo_model *model, const struct rfl_zoo_options *sizes)
{
	if (model->score_bias && sizes->attention == RFL_ATTENTION_SDPA)
		return "--attention";
	if (sizes->context_length)
		return "--context-length";
	if (sizes->image_size)
		return "--image-size";
	return model->context_length ? "--models" : "--image-size";
}

/* Take the newest network in. A model that was named, or a file, must have the blocks that are to
 * be run again; of 'all' models those without have nothing to checkpoint. */
static enum rfl_rc accept(struct rfl_complexity_report *r, bool named, struct rfl_err *err)
{
	struct rfl_summary *s = r->items[r->n++];

	if (!s->options.checkpoint || s->net->nblocks)
		return RFL_OK;
	if (named)
		return rfl_fail(err, RFL_EUSAGE, 0,
				"--checkpoint: %s has no repeated blocks that could be run again",
				s->name);
	s->options.checkpoint = 0;
	return RFL_OK;
}

/* One model at one context length; 0 is its own. A model that was named must take what is asked; of
 * 'all' models those that cannot are left out, and the log says which and why. */
static enum rfl_rc add_at(struct rfl_complexity_report *r, const struct rfl_zoo_model *model,
			  const struct rfl_summary_options *options, bool named,
			  struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	int64_t context = options->sizes.context_length ? options->sizes.context_length
							: model->context_length;
	enum rfl_rc rc = grow(r, err);

	if (rc != RFL_OK || is_there(r, model->name, context))
		return rc;
	rc = rfl_summary_new(model->name, options, &r->items[r->n], &why);
	if (rc == RFL_OK)
		return accept(r, named, err);
	if (rc == RFL_EINVAL && !named) {
		rfl_log(RFL_LOG_WARN, "left out: %s", why.msg);
		return RFL_OK;
	}
	if (rc == RFL_EINVAL)
		return rfl_fail(err, RFL_EUSAGE, 0, "%s: %s", guilty(model, &options->sizes),
				why.msg);
	return rfl_fail(err, rc, why.native, "%s", why.msg);
}

/* Of 'all' models those that read images have no context length, and the others no image size. */
static enum rfl_rc add_model(struct rfl_complexity_report *r, const struct rfl_zoo_model *model,
			     bool named, struct rfl_err *err)
{
	const struct rfl_opt_int_list *contexts = &r->args->contexts;
	struct rfl_summary_options options = r->options;
	enum rfl_rc rc = RFL_OK;

	if (!named && model->context_length)
		options.sizes.image_size = 0;
	if (contexts->n == 0 || (!named && !model->context_length))
		return add_at(r, model, &options, named, err);
	for (size_t i = 0; i < contexts->n && rc == RFL_OK; i++) {
		options.sizes.context_length = contexts->items[i];
		rc = add_at(r, model, &options, named, err);
	}
	return rc;
}

static enum rfl_rc add_name(struct rfl_complexity_report *r, const char *name, struct rfl_err *err)
{
	const struct rfl_zoo_model *model = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;

	if (strcmp(name, "all") == 0) {
		for (size_t i = 0; rc == RFL_OK && (model = rfl_zoo_at(i)); i++)
			rc = add_model(r, model, false, err);
		return rc;
	}
	rc = rfl_zoo_find(name, &model, &why);
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--models: %s", why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	return add_model(r, model, true, err);
}

static enum rfl_rc add_file(struct rfl_complexity_report *r, const char *path, struct rfl_err *err)
{
	struct rfl_net *net = NULL;
	enum rfl_rc rc = grow(r, err);

	if (rc == RFL_OK)
		rc = rfl_net_load(path, &net, err);
	if (rc == RFL_OK)
		rc = rfl_summary_of_net(net, &r->options, &r->items[r->n], err);
	return rc == RFL_OK ? accept(r, true, err) : rc;
}

enum rfl_rc rfl_complexity_add_nets(struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = r->args;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < a->models.n && rc == RFL_OK; i++)
		rc = add_name(r, a->models.items[i], err);
	for (size_t i = 0; i < a->nets.n && rc == RFL_OK; i++)
		rc = add_file(r, a->nets.items[i], err);
	if (!a->models.n && !a->nets.n)
		for (size_t i = 0; i < RFL_ARRAY_LEN(default_models) && rc == RFL_OK; i++)
			rc = add_name(r, default_models[i], err);
	if (rc == RFL_OK && r->n == 0)
		rc = rfl_fail(err, RFL_EUSAGE, 0, "--models: none of them takes these options");
	return rc == RFL_OK ? rfl_complexity_check_frozen(r, err) : rc;
}
