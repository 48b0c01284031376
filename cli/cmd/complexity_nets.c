/*
 * complexity_nets.c - which networks roofline complexity counts: models of the zoo at every context
 * length and networks from files; and what it writes of them beside standard output.
 */
#include "cli/cmd/complexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "complexity/net/file.h"

static const char *const default_models[] = { "resnet50", "vgg16", "mobilenet_v2" };

/* What was named twice stands there once. */
static bool is_there(const struct rfl_complexity_run *run, const char *name, int64_t context)
{
	for (size_t i = 0; i < run->r.n; i++)
		if (strcmp(run->r.items[i]->name, name) == 0 &&
		    run->r.items[i]->context_length == context)
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
static enum rfl_rc accept(struct rfl_complexity_run *run, bool named, struct rfl_err *err)
{
	struct rfl_summary *s = run->r.items[run->r.n++];

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
static enum rfl_rc add_at(struct rfl_complexity_run *run, const struct rfl_zoo_model *model,
			  const struct rfl_summary_options *options, bool named,
			  struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	int64_t context = options->sizes.context_length ? options->sizes.context_length
							: model->context_length;
	enum rfl_rc rc = rfl_grow(&run->r.items, &run->cap, run->r.n + 1, SIZE_MAX, err);

	if (rc != RFL_OK || is_there(run, model->name, context))
		return rc;
	rc = rfl_summary_new(model->name, options, &run->r.items[run->r.n], &why);
	if (rc == RFL_OK)
		return accept(run, named, err);
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
static enum rfl_rc add_model(struct rfl_complexity_run *run, const struct rfl_zoo_model *model,
			     bool named, struct rfl_err *err)
{
	const struct rfl_opt_int_list *contexts = &run->args->contexts;
	struct rfl_summary_options options = run->r.options;
	enum rfl_rc rc = RFL_OK;

	if (!named && model->context_length)
		options.sizes.image_size = 0;
	if (contexts->n == 0 || (!named && !model->context_length))
		return add_at(run, model, &options, named, err);
	for (size_t i = 0; i < contexts->n && rc == RFL_OK; i++) {
		options.sizes.context_length = contexts->items[i];
		rc = add_at(run, model, &options, named, err);
	}
	return rc;
}

static enum rfl_rc add_name(struct rfl_complexity_run *run, const char *name, struct rfl_err *err)
{
	const struct rfl_zoo_model *model = NULL;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = RFL_OK;

	if (strcmp(name, "all") == 0) {
		for (size_t i = 0; rc == RFL_OK && (model = rfl_zoo_at(i)); i++)
			rc = add_model(run, model, false, err);
		return rc;
	}
	rc = rfl_zoo_find(name, &model, &why);
	if (rc == RFL_ENOTFOUND)
		return rfl_fail(err, RFL_EUSAGE, 0, "--models: %s", why.msg);
	if (rc != RFL_OK)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	return add_model(run, model, true, err);
}

static enum rfl_rc add_file(struct rfl_complexity_run *run, const char *path, struct rfl_err *err)
{
	struct rfl_net *net = NULL;
	enum rfl_rc rc = rfl_grow(&run->r.items, &run->cap, run->r.n + 1, SIZE_MAX, err);

	if (rc == RFL_OK)
		rc = rfl_net_load(path, &net, err);
	if (rc == RFL_OK)
		rc = rfl_summary_of_net(net, &run->r.options, &run->r.items[run->r.n], err);
	return rc == RFL_OK ? accept(run, true, err) : rc;
}

/* --- what is frozen -------------------------------------------------------------------------- */

/* Whether a parameter belongs to the module at a path, or is what the path names. */
static bool freezes_of(const struct rfl_net *net, const char *path)
{
	size_t len = strlen(path);

	for (int i = 0; i < net->nparams; i++) {
		const char *name = net->params[i].name;

		if (strncmp(name, path, len) == 0 && (name[len] == '.' || !name[len]))
			return true;
	}
	return false;
}

static size_t parts_of(const char *name)
{
	size_t n = 1;

	for (; *name; name++)
		n += *name == '.';
	return n;
}

/* "layer1", "layer1.0" and so on for every parameter of a network: what may be frozen. */
static const char *const *paths_of(const struct rfl_net *net, struct rfl_arena *arena)
{
	const char **paths;
	size_t most = 1, n = 0;

	for (int i = 0; i < net->nparams; i++)
		most += parts_of(net->params[i].name);
	paths = rfl_arena_array(arena, most, sizeof(*paths));
	for (int i = 0; paths && i < net->nparams; i++) {
		const char *name = net->params[i].name;

		for (size_t len = strcspn(name, ".");; len += 1 + strcspn(name + len + 1, ".")) {
			paths[n] = rfl_arena_printf(arena, "%.*s", (int)len, name);
			if (!paths[n++])
				return NULL;
			if (!name[len])
				break;
		}
	}
	if (paths)
		paths[n] = NULL;
	return paths;
}

static enum rfl_rc no_path(const struct rfl_complexity_run *run, const char *path,
			   struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new(0);
	const char *nearest = NULL;
	enum rfl_rc rc = arena ? RFL_OK : RFL_ENOMEM;

	for (size_t i = 0; i < run->r.n && rc == RFL_OK && !nearest; i++) {
		const char *const *paths = paths_of(run->r.items[i]->net, arena);

		if (paths)
			nearest = rfl_text_nearest(path, paths);
		else
			rc = RFL_ENOMEM;
	}
	if (rc != RFL_OK)
		rc = rfl_fail(err, rc, 0, "--freeze: out of memory");
	else if (nearest)
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--freeze: no parameter lies under '%s'; did you mean '%s'?", path,
			      nearest);
	else
		rc = rfl_fail(err, RFL_EUSAGE, 0,
			      "--freeze: no parameter lies under '%s'; '--by layer' and "
			      "'--summary' show the paths",
			      path);
	rfl_arena_free(arena);
	return rc;
}

/* A path that freezes nothing anywhere is a typing error. */
static enum rfl_rc check_frozen(const struct rfl_complexity_run *run, struct rfl_err *err)
{
	for (size_t k = 0; k < run->r.options.nfrozen; k++) {
		const char *path = run->r.options.frozen[k];
		bool found = false;

		for (size_t i = 0; i < run->r.n && !found; i++)
			found = freezes_of(run->r.items[i]->net, path);
		if (!found)
			return no_path(run, path, err);
	}
	return RFL_OK;
}

enum rfl_rc rfl_complexity_add_nets(struct rfl_complexity_run *run, struct rfl_err *err)
{
	const struct rfl_complexity_args *a = run->args;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < a->models.n && rc == RFL_OK; i++)
		rc = add_name(run, a->models.items[i], err);
	for (size_t i = 0; i < a->nets.n && rc == RFL_OK; i++)
		rc = add_file(run, a->nets.items[i], err);
	if (!a->models.n && !a->nets.n)
		for (size_t i = 0; i < RFL_ARRAY_LEN(default_models) && rc == RFL_OK; i++)
			rc = add_name(run, default_models[i], err);
	if (rc == RFL_OK && run->r.n == 0)
		rc = rfl_fail(err, RFL_EUSAGE, 0, "--models: none of them takes these options");
	return rc == RFL_OK ? check_frozen(run, err) : rc;
}

/* --- files ----------------------------------------------------------------------------------- */

/* A model at several contexts has the context in the names of its files. */
static bool same_file(const struct rfl_complexity_run *run, const struct rfl_summary *a,
		      const struct rfl_summary *b)
{
	return strcmp(a->name, b->name) == 0 &&
	       (run->args->contexts.n < 2 || a->context_length == b->context_length);
}

/* Files of one name would replace each other. */
static enum rfl_rc check_names(const struct rfl_complexity_run *run, const char *dir,
			       struct rfl_err *err)
{
	for (size_t i = 0; i < run->r.n; i++)
		for (size_t k = 0; k < i; k++)
			if (same_file(run, run->r.items[i], run->r.items[k]))
				return rfl_fail(err, RFL_EUSAGE, 0,
						"%s: two networks are called %s, and only one file "
						"can be",
						dir, run->r.items[i]->name);
	return RFL_OK;
}

/* "DIR/gpt2.txt", "DIR/gpt2-256.txt". Free it. */
static enum rfl_rc path_of(const struct rfl_complexity_run *run, const struct rfl_summary *s,
			   const char *dir, const char *suffix, char **ret, struct rfl_err *err)
{
	struct rfl_buf name;
	enum rfl_rc rc;

	rfl_buf_init(&name, 0);
	if (s->context_length && run->args->contexts.n > 1)
		rfl_buf_printf(&name, "%s-%lld%s", s->name, (long long)s->context_length, suffix);
	else
		rfl_buf_printf(&name, "%s%s", s->name, suffix);
	rc = rfl_buf_check(&name, dir, err);
	if (rc == RFL_OK) {
		*ret = rfl_path_join(dir, rfl_buf_str(&name));
		if (!*ret)
			rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);
	}
	rfl_buf_fini(&name);
	return rc;
}

static enum rfl_rc write_dir(const struct rfl_complexity_run *run, json_t *document,
			     struct rfl_err *err)
{
	const char *dir = run->args->output_dir;
	char *path = rfl_path_join(dir, "summary.json");
	enum rfl_rc rc = path ? rfl_json_save(path, document, err)
			      : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", dir);

	free(path);
	for (size_t i = 0; i < run->r.n && rc == RFL_OK; i++) {
		struct rfl_summary *s = run->r.items[i];
		struct rfl_buf text;

		path = NULL;
		rfl_buf_init(&text, 0);
		rc = rfl_complexity_layers(&run->r, s, &text, err);
		if (rc == RFL_OK)
			rc = path_of(run, s, dir, ".txt", &path, err);
		if (rc == RFL_OK)
			rc = rfl_file_write(path, text.data, text.len, err);
		free(path);
		rfl_buf_fini(&text);
	}
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %s/summary.json and %zu list%s of layers", dir,
			run->r.n, run->r.n == 1 ? "" : "s");
	return rc;
}

static enum rfl_rc write_nets(const struct rfl_complexity_run *run, struct rfl_err *err)
{
	const char *dir = run->args->write_net;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < run->r.n && rc == RFL_OK; i++) {
		char *path = NULL;

		rc = path_of(run, run->r.items[i], dir, ".json", &path, err);
		if (rc == RFL_OK)
			rc = rfl_net_save(path, run->r.items[i]->net, err);
		free(path);
	}
	if (rc == RFL_OK)
		rfl_log(RFL_LOG_INFO, "wrote %zu network%s to %s", run->r.n,
			run->r.n == 1 ? "" : "s", dir);
	return rc;
}

enum rfl_rc rfl_complexity_write(const struct rfl_complexity_run *run, json_t *document,
				 struct rfl_err *err)
{
	const char *const dirs[] = { run->args->output_dir, run->args->write_net };
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; i < RFL_ARRAY_LEN(dirs) && rc == RFL_OK; i++) {
		if (!dirs[i])
			continue;
		rc = check_names(run, dirs[i], err);
		if (rc == RFL_OK)
			rc = rfl_file_mkdirs(dirs[i], err);
		if (rc == RFL_OK)
			rc = i == 0 ? write_dir(run, document, err) : write_nets(run, err);
	}
	return rc;
}
