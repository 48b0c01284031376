/*
 * peaks_load.c - peaks.json from a file: which form it is in, and its environments one by one.
 */
#include "peaks/peaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "peaks/peaks_parse.h"

static const char *const top_keys[] = { "$schema", "schema_version", "generated_by", "environments",
					NULL };

enum rfl_rc rfl_peaks__no_memory(const struct rfl_where *w, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", w->file);
}

struct rfl_peak rfl_peaks__blank(void)
{
	return (struct rfl_peak){
		.status = RFL_PEAK_UNKNOWN,
		.value = NAN,
		.spec = NAN,
		.upper_bound = NAN,
		.stats = { .median = NAN, .min = NAN, .max = NAN },
	};
}

static bool is_long_file(const json_t *root)
{
	return json_object_get(root, "environments") || json_object_get(root, "schema_version");
}

json_t *rfl_peaks__environments(json_t *root)
{
	return is_long_file(root) ? json_object_get(root, "environments") : root;
}

static enum rfl_rc check_text_member(const json_t *root, const char *key, struct rfl_where *w,
				     struct rfl_err *err)
{
	const json_t *value = json_object_get(root, key);
	enum rfl_rc rc = RFL_OK;

	if (value && !json_is_string(value)) {
		const size_t mark = rfl_where_key(w, key);

		rc = rfl_where_fail(w, err, "must be a text in quotes");
		rfl_where_up(w, mark);
	}
	return rc;
}

static enum rfl_rc check_top(const json_t *root, struct rfl_where *w, struct rfl_err *err)
{
	const json_t *version = json_object_get(root, "schema_version");
	const char *text = json_string_value(version);
	enum rfl_rc rc = rfl_json_only_keys(root, top_keys, w->file, w->pointer, err);

	if (rc == RFL_OK && !version)
		rc = rfl_where_fail(w, err,
				    "the key \"schema_version\" is missing; write "
				    "\"schema_version\": \"" RFL_PEAKS_SCHEMA_VERSION "\"");
	if (rc == RFL_OK && (!text || strcmp(text, RFL_PEAKS_SCHEMA_VERSION) != 0))
		rc = rfl_where_fail(w, err,
				    "schema_version must be \"" RFL_PEAKS_SCHEMA_VERSION
				    "\"%s%s%s; a file of another version needs a program that "
				    "knows it",
				    text ? ", is \"" : "", text ? text : "", text ? "\"" : "");
	if (rc == RFL_OK)
		rc = check_text_member(root, "$schema", w, err);
	if (rc == RFL_OK)
		rc = check_text_member(root, "generated_by", w, err);
	if (rc == RFL_OK && !json_object_get(root, "environments"))
		rc = rfl_where_fail(w, err, "the key \"environments\" is missing");
	return rc;
}

static enum rfl_rc parse_env(const char *name, const json_t *value, bool long_file,
			     struct rfl_peaks *p, struct rfl_where *w, struct rfl_err *err)
{
	struct rfl_peaks_env *env = &p->envs[p->nenvs];

	if (!rfl_text_is_env_name(name))
		return rfl_where_fail(
			w, err,
			"not a name for an environment; use a letter a-z, then a-z, 0-9 "
			"and _, at most 48 characters, for example lab_cpu");
	env->name = rfl_arena_strdup(p->arena, name);
	if (!env->name)
		return rfl_peaks__no_memory(w, err);
	p->nenvs++;
	if (rfl_peaks__is_short(value))
		return rfl_peaks__parse_short(value, p->arena, env, w, err);
	if (long_file)
		return rfl_peaks__parse_long(value, p->arena, env, w, err);
	if (json_object_get(value, "compute") || json_object_get(value, "memory"))
		return rfl_where_fail(
			w, err,
			"an environment of the long form belongs under \"environments\", "
			"beside \"schema_version\": \"" RFL_PEAKS_SCHEMA_VERSION "\"");
	return rfl_where_fail(
		w, err, "must be an object such as {\"peak_gflops\": 420, \"peak_gbps\": 92}");
}

enum rfl_rc rfl_peaks__parse(json_t *root, struct rfl_peaks *p, struct rfl_err *err)
{
	struct rfl_where w;
	const bool long_file = is_long_file(root);
	const char *name;
	json_t *envs, *value;
	enum rfl_rc rc = RFL_OK;

	rfl_where_init(&w, p->path);
	if (!json_is_object(root))
		return rfl_where_fail(&w, err, "must be an object of environments");
	if (long_file)
		rc = check_top(root, &w, err);
	if (rc != RFL_OK)
		return rc;
	envs = rfl_peaks__environments(root);
	if (long_file)
		(void)rfl_where_key(&w, "environments");
	if (!json_is_object(envs) || json_object_size(envs) == 0)
		return rfl_where_fail(&w, err,
				      "must be an object with at least one environment; "
				      "'roofline peaks measure' makes one");
	p->envs = rfl_arena_array(p->arena, json_object_size(envs), sizeof(*p->envs));
	if (!p->envs)
		return rfl_peaks__no_memory(&w, err);
	json_object_foreach(envs, name, value)
	{
		const size_t mark = rfl_where_key(&w, name);

		rc = parse_env(name, value, long_file, p, &w, err);
		rfl_where_up(&w, mark);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}

enum rfl_rc rfl_peaks_load(const char *path, struct rfl_peaks **ret, struct rfl_err *err)
{
	json_t *root = NULL;
	struct rfl_peaks *p = NULL;
	uint64_t hash = 0;
	enum rfl_rc rc = rfl_peaks__read(path, &root, &hash, err);

	if (rc != RFL_OK)
		goto done;
	p = calloc(1, sizeof(*p));
	if (!p || !(p->arena = rfl_arena_new(0)) || !(p->path = rfl_arena_strdup(p->arena, path))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	rc = rfl_peaks__parse(root, p, err);
	if (rc != RFL_OK)
		goto done;

	rfl_hash64_text(hash, p->hash);
	*ret = p;
	p = NULL;
done:
	rfl_peaks_free(p);
	json_decref(root);
	return rc;
}

void rfl_peaks_free(struct rfl_peaks *p)
{
	if (!p)
		return;
	rfl_arena_free(p->arena);
	free(p);
}
