/* families.c - the list of families; finds and builds a model by name. */
#include "complexity/zoo.h"

#include <string.h>

#include "base/text.h"
#include "complexity/zoo/blocks.h"

const char *const rfl_attention_names[] = { "auto", "composed", "naive", "sdpa", NULL };

static const struct rfl_zoo_family *const families[] = {
#define F(name_) &rfl_zoo_##name_,
	RFL_ZOO_FAMILIES(F)
#undef F
};

enum { MAX_NAMES = 512, SUGGESTIONS = 3 };

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

/* Numbered models, which are last, are not listed: there is one for every number. */
const struct rfl_zoo_model *rfl_zoo_at(size_t i)
{
	const struct rfl_zoo_family *family = NULL;
	const struct rfl_zoo_entry *entry = entry_at(i, &family);

	return entry && !entry->model.numbered ? &entry->model : NULL;
}

/* The number in "attention_d64" for the pattern "attention_d<N>", or 0. */
static int64_t number_in(const char *name, const char *pattern)
{
	const size_t len = strcspn(pattern, "<");
	int64_t n = 0;

	if (strncmp(name, pattern, len) != 0 || name[len] == '0' ||
	    name[len + strspn(name + len, "0123456789")] != '\0' || strlen(name + len) > 7)
		return 0;
	for (const char *digit = name + len; *digit; digit++)
		n = 10 * n + (*digit - '0');
	return n;
}

/* Find the model with this name or alias; RFL_ENOTFOUND suggests the nearest. */
static enum rfl_rc find(const char *name, const struct rfl_zoo_entry **ret,
			const struct rfl_zoo_family **family, struct rfl_err *err)
{
	const char *names[MAX_NAMES + 1];
	const struct rfl_zoo_entry *entry;
	char advice[RFL_ADVICE_SIZE];
	size_t n = 0;

	for (size_t i = 0; (entry = entry_at(i, family)); i++) {
		const char *const *alias = entry->model.aliases;

		if (entry->model.numbered && number_in(name, entry->model.name)) {
			*ret = entry;
			return RFL_OK;
		}
		for (const char *next = entry->model.numbered ? NULL : entry->model.name; next;
		     next = alias ? *alias++ : NULL) {
			if (strcmp(next, name) == 0) {
				*ret = entry;
				return RFL_OK;
			}
			if (n < MAX_NAMES)
				names[n++] = next;
		}
	}
	names[n] = NULL;
	return rfl_fail(err, RFL_ENOTFOUND, 0, "no model '%s'; %s", name,
			rfl_text_advice(name, names, SUGGESTIONS,
					"run 'roofline list models' for a list", advice));
}

enum rfl_rc rfl_zoo_find(const char *name, const struct rfl_zoo_model **ret, struct rfl_err *err)
{
	const struct rfl_zoo_family *family = NULL;
	const struct rfl_zoo_entry *entry = NULL;
	enum rfl_rc rc = find(name, &entry, &family, err);

	if (rc == RFL_OK)
		*ret = &entry->model;
	return rc;
}

/* Apply the user's options to the model's defaults. */
static enum rfl_rc resolve(const struct rfl_zoo_entry *entry, const struct rfl_zoo_options *options,
			   struct rfl_zoo_sizes *ret, struct rfl_err *err)
{
	static const struct rfl_zoo_options none;
	const struct rfl_zoo_options *o = options ? options : &none;
	const struct rfl_zoo_model *m = &entry->model;
	const struct {
		const char *what;
		int64_t size;
	} given[] = { { "image size", o->image_size },
		      { "classes", o->classes },
		      { "context length", o->context_length } };
	bool text = m->context_length > 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(given); i++)
		if (given[i].size < 0)
			return rfl_fail(err, RFL_EINVAL, 0,
					"%s: %s %lld is too small; it must be at least 1", m->name,
					given[i].what, (long long)given[i].size);
	if (text && o->image_size)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s reads text and has no image size; remove it or set a context length",
			m->name);
	if (!text && o->context_length)
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s reads images and has no context length; remove it or set an image size",
			m->name);
	if (m->max_context_length && o->context_length > m->max_context_length)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s supports at most %lld tokens, not %lld; use a shorter context",
				m->name, (long long)m->max_context_length,
				(long long)o->context_length);
	if (m->score_bias && o->attention == RFL_ATTENTION_SDPA)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: attention 'sdpa' does not support the model's learned score "
				"bias; use 'naive' or 'composed'",
				m->name);
	*ret = (struct rfl_zoo_sizes){
		.image_size = o->image_size ? o->image_size : m->image_size,
		.channels = m->channels ? m->channels : 3,
		.classes = o->classes ? o->classes : m->classes,
		.context_length = o->context_length ? o->context_length : m->context_length,
		.attention = o->attention,
		.config = entry->config,
	};
	return RFL_OK;
}

enum rfl_rc rfl_zoo_build(const char *name, const struct rfl_zoo_options *options,
			  struct rfl_net **ret, struct rfl_err *err)
{
	const struct rfl_zoo_family *family = NULL;
	const struct rfl_zoo_entry *entry = NULL;
	struct rfl_zoo_sizes sizes;
	struct rfl_net_builder *b;
	enum rfl_rc rc = find(name, &entry, &family, err);
	int x;

	if (rc == RFL_OK)
		rc = resolve(entry, options, &sizes, err);
	if (rc != RFL_OK)
		return rc;
	if (entry->model.numbered)
		sizes.classes = number_in(name, entry->model.name);
	b = rfl_net_builder_new(entry->model.numbered ? name : entry->model.name,
				entry->model.family);
	if (!b)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	b->title = entry->model.title;
	x = entry->model.numbered ? rfl_net_sequence(b, "q", sizes.context_length, sizes.classes)
	    : sizes.context_length
		    ? rfl_net_tokens(b, sizes.context_length)
		    : rfl_net_input(b, sizes.channels, sizes.image_size, sizes.image_size);
	rc = rfl_net_finish(b, family->build(b, x, &sizes), ret, err);
	if (rc == RFL_OK || rc == RFL_ENOMEM) /* does not depend on the size */
		return rc;
	if (sizes.context_length)
		rfl_err_prefix(err, "context length %lld", (long long)sizes.context_length);
	else
		rfl_err_prefix(err, "image size %lld", (long long)sizes.image_size);
	return rc;
}
