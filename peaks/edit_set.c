/*
 * edit_set.c - one ceiling given by the user, in either form.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "peaks/edit_impl.h"
#include "peaks/peaks_parse.h"

static const char *const level_names[] = { "L1",   "shared", "L2",     "L3",   "SLC",
					   "DRAM", "HBM",    "remote", "link", NULL };

/* "memory.DRAM.gbs" -> "DRAM" when it is a level's name, else NULL. */
static const char *level_of(const char *key)
{
	char name[16];

	if (strncmp(key, "memory.", 7) == 0)
		key += 7;
	const size_t len = strcspn(key, ".");

	if (len >= sizeof(name) || (key[len] && strcmp(key + len, ".gbs") != 0))
		return NULL;
	memcpy(name, key, len);
	name[len] = '\0';
	for (size_t i = 0; level_names[i]; i++) {
		if (strcmp(name, level_names[i]) == 0)
			return level_names[i];
	}
	return NULL;
}

static json_t *user_ceiling(const struct rfl_peaks_set *set)
{
	return json_pack("{s:s, s:f, s:{s:s}}", "status", "user", "value", set->value, "source",
			 "title", set->source);
}

static json_t *not_given(const char *env, const char *key)
{
	return json_pack(
		"{s:s, s:n, s:o}", "status", "unknown", "value", "reason",
		json_sprintf("not given; 'roofline peaks set FILE %s %s VALUE' sets it", env, key));
}

/* An environment must have compute and memory; what the user has not given yet says so. */
static json_t *new_env(const struct rfl_peaks_set *set)
{
	const bool gpu = strcmp(set->kind, "gpu") == 0;

	return json_pack("{s:s, s:{s:s}, s:{s:o}, s:[{s:s, s:s, s:o}]}", "kind", set->kind,
			 "device", "name", set->device ? set->device : "not recorded", "compute",
			 "fp32.vector", not_given(set->env, "fp32.vector"), "memory", "level",
			 "DRAM", "scope", gpu ? "device" : "node", "gbs",
			 not_given(set->env, "DRAM"));
}

/* The scope under which the environment has a level already, or the usual one. */
static const char *scope_of(const json_t *env, const char *level)
{
	const json_t *memory = json_object_get(env, "memory");
	const char *kind = json_string_value(json_object_get(env, "kind"));

	for (size_t i = 0; i < json_array_size(memory); i++) {
		const json_t *each = json_array_get(memory, i);
		const char *name = json_string_value(json_object_get(each, "level"));

		if (name && strcmp(name, level) == 0)
			return json_string_value(json_object_get(each, "scope"));
	}
	if (kind && strcmp(kind, "gpu") == 0)
		return "device";
	return strcmp(level, "L1") == 0 || strcmp(level, "L2") == 0 ? "core" : "node";
}

static enum rfl_rc set_long(struct rfl_peaks_edit *e, json_t *env, const struct rfl_peaks_set *set,
			    struct rfl_err *err)
{
	const char *key = strncmp(set->key, "compute.", 8) == 0 ? set->key + 8 : set->key;
	const char *level = level_of(set->key);
	bool ok;

	if (level) {
		ok = rfl_peaks_edit__put_level(json_object_get(env, "memory"),
					       json_pack("{s:s, s:s, s:o}", "level", level, "scope",
							 scope_of(env, level), "gbs",
							 user_ceiling(set)));
	} else if (rfl_rules__is_compute_key(key)) {
		ok = rfl_peaks_edit__put_compute(json_object_get(env, "compute"), key,
						 user_ceiling(set));
	} else {
		const char *near = rfl_text_nearest(key, rfl_rules__compute_keys());

		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is neither a compute key such as fp32.vector nor a level of "
				"memory such as DRAM%s%s%s",
				set->key, near ? "; did you mean '" : "", near ? near : "",
				near ? "'?" : "");
	}
	return ok ? RFL_OK : rfl_peaks_edit__no_memory(e, err);
}

/* The member that a cell of the short form names ("peak_gbps", "fp32.peak_gflops",
 * "peak_gflops.fp32"): its object, made when it is absent, and its key in it. */
static json_t *short_member(json_t *env, const char *cell, const char **key)
{
	const char *dot = strchr(cell, '.');
	char outer[64];

	*key = dot ? dot + 1 : cell;
	if (!dot)
		return env;
	snprintf(outer, sizeof(outer), "%.*s", (int)(dot - cell), cell);
	json_t *inner = json_object_get(env, outer);

	if (!inner) {
		inner = json_object();
		if (json_object_set_new(env, outer, inner) != 0)
			return NULL;
	}
	return inner;
}

static enum rfl_rc set_short(struct rfl_peaks_edit *e, json_t *env, const struct rfl_peaks_set *set,
			     struct rfl_err *err)
{
	const char *key;
	json_t *object;

	if (!strstr(set->key, "peak_gflops") && !strstr(set->key, "peak_gbps"))
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: environment '%s' is in the short form, whose keys are peak_gflops, "
			"peak_gbps, and per precision fp32.peak_gflops or peak_gflops.fp32; "
			"'%s' is none of them",
			e->path, set->env, set->key);
	object = short_member(env, set->key, &key);
	if (!json_is_object(object))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' has one value there, not one per precision: "
				"'%s' has no place",
				e->path, set->env, set->key);
	if (json_object_set_new(object, key, json_real(set->value)) != 0 ||
	    json_object_set_new(env, "source", json_string(set->source)) != 0)
		return rfl_peaks_edit__no_memory(e, err);
	return RFL_OK;
}

enum rfl_rc rfl_peaks_edit_set(struct rfl_peaks_edit *e, const struct rfl_peaks_set *set,
			       struct rfl_err *err)
{
	json_t *envs = rfl_peaks_edit__envs(e, false);
	json_t *env = json_object_get(envs, set->env);

	if (!rfl_text_is_env_name(set->env))
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"'%s' is not a name for an environment; use a letter a-z, then a-z, "
			"0-9 and _, at most 48 characters",
			set->env);
	if (!(set->value > 0) || !isfinite(set->value))
		return rfl_fail(err, RFL_EINVAL, 0, "%s: a ceiling is a number greater than 0",
				set->key);
	if (!set->source || !*set->source)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: say where the value is from, with --source", set->key);
	if (env && rfl_peaks__is_short(env))
		return set_short(e, env, set, err);
	if (!env) {
		envs = rfl_peaks_edit__envs(e, true);
		env = new_env(set);
		if (!envs || json_object_set_new(envs, set->env, env) != 0)
			return rfl_peaks_edit__no_memory(e, err);
	}
	return set_long(e, env, set, err);
}
