/*
 * zoo.c - the list of families, and finding and building a model by its name.
 */
#include "complexity/zoo.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "complexity/zoo_impl.h"

static const struct rfl_zoo_family *const families[] = {
	&rfl_zoo_resnet,
	&rfl_zoo_vgg,
	&rfl_zoo_mobilenet,
};

enum { MAX_MODELS = 512, SUGGESTIONS = 3 };

static const struct rfl_zoo_entry *entry_at(size_t i, const struct rfl_zoo_family **family)
{
	for (size_t f = 0; f < RFL_ARRAY_LEN(families); f++) {
		if (i < families[f]->nentries) {
			*family = families[f];
			return &families[f]->entries[i];
		}
		i -= families[f]->nentries;
	}
	return NULL;
}

const struct rfl_zoo_model *rfl_zoo_at(size_t i)
{
	const struct rfl_zoo_family *family = NULL;
	const struct rfl_zoo_entry *entry = entry_at(i, &family);

	return entry ? &entry->model : NULL;
}

static enum rfl_rc not_found(const char *name, struct rfl_err *err)
{
	const char *names[MAX_MODELS + 1] = { 0 };
	const struct rfl_zoo_model *model;
	struct rfl_buf near;
	enum rfl_rc rc;

	for (size_t i = 0; i < MAX_MODELS && (model = rfl_zoo_at(i)); i++)
		names[i] = model->name;
	rfl_buf_init(&near, 0);
	if (rfl_text_suggest(name, names, SUGGESTIONS, &near) > 0)
		rc = rfl_fail(err, RFL_ENOTFOUND, 0, "no model '%s'; did you mean %s?", name,
			      rfl_buf_str(&near));
	else
		rc = rfl_fail(err, RFL_ENOTFOUND, 0,
			      "no model '%s'; 'roofline list models' names all", name);
	rfl_buf_fini(&near);
	return rc;
}

static const struct rfl_zoo_entry *find_entry(const char *name,
					      const struct rfl_zoo_family **family)
{
	const struct rfl_zoo_entry *entry;

	for (size_t i = 0; (entry = entry_at(i, family)); i++)
		if (strcmp(entry->model.name, name) == 0)
			return entry;
	return NULL;
}

enum rfl_rc rfl_zoo_find(const char *name, const struct rfl_zoo_model **ret, struct rfl_err *err)
{
	const struct rfl_zoo_family *family = NULL;
	const struct rfl_zoo_entry *entry = find_entry(name, &family);

	if (!entry)
		return not_found(name, err);
	*ret = &entry->model;
	return RFL_OK;
}

enum rfl_rc rfl_zoo_build(const char *name, const struct rfl_zoo_options *options,
			  struct rfl_net **ret, struct rfl_err *err)
{
	const struct rfl_zoo_family *family = NULL;
	const struct rfl_zoo_entry *entry = find_entry(name, &family);
	struct rfl_net_builder *b;
	int64_t image, classes;
	enum rfl_rc rc;

	if (!entry)
		return not_found(name, err);
	image = options && options->image_size ? options->image_size : entry->model.image_size;
	classes = options && options->classes ? options->classes : entry->model.classes;
	if (image < 1 || classes < 1)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: image size %lld and %lld classes: both must be 1 or more",
				name, (long long)image, (long long)classes);
	b = rfl_net_builder_new(entry->model.name, family->name);
	if (!b)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	rc = rfl_net_finish(
		b, family->build(b, rfl_net_input(b, 3, image, image), entry->config, classes), ret,
		err);
	if (rc != RFL_OK)
		rfl_err_prefix(err, "image size %lld", (long long)image);
	return rc;
}
