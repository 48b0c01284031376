/*
 * edit_merge.c - a measured environment into one that is there.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "peaks/edit_impl.h"
#include "peaks/peaks_parse.h"

/* Notes of an earlier measurement begin with this word and go when the next one comes. */
#define NOTE_MEASURED "measured: "

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool has_value(const json_t *ceiling)
{
	return json_is_number(json_object_get(ceiling, "value"));
}

enum rfl_rc rfl_peaks_edit_fits(const struct rfl_peaks_edit *e, const char *env, const char *kind,
				const char *device, struct rfl_err *err)
{
	const json_t *old = json_object_get(rfl_peaks__environments(e->root), env);
	const json_t *old_device = json_object_get(old, "device");

	if (!old || rfl_peaks__is_short(old))
		return RFL_OK;
	if (strcmp(text_of(old, "kind"), kind) != 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' is a %s, this is a %s; choose another --env",
				e->path, env, text_of(old, "kind"), kind);
	if (strcmp(text_of(old_device, "name"), device) != 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' is of '%s', this machine is '%s'; choose "
				"another --env, or --force to replace what was measured there",
				e->path, env, text_of(old_device, "name"), device);
	return RFL_OK;
}

/* The data sheet's value of an older entry: its `spec`, or its value when that is one. New ref. */
static json_t *spec_of(const json_t *old)
{
	json_t *spec = json_object_get(old, "spec");

	if (json_is_number(spec))
		return json_incref(spec);
	if (strcmp(text_of(old, "status"), "spec") == 0)
		return json_incref(json_object_get(old, "value"));
	return NULL;
}

/* What stands in the file after `new` came to `old` (NULL: nothing was there). New reference. */
static json_t *merge_ceiling(json_t *old, json_t *new)
{
	json_t *result, *spec;

	if (old && has_value(old) && !has_value(new))
		return json_incref(old);
	result = json_deep_copy(new);
	spec = old && has_value(new) && !json_is_number(json_object_get(new, "spec")) ? spec_of(old)
										      : NULL;
	if (result && spec && json_object_set(result, "spec", spec) != 0) {
		json_decref(result);
		result = NULL;
	}
	json_decref(spec);
	return result;
}

static int rank_of(const json_t *level)
{
	static const char *const order[] = { "L1",   "shared", "L2",     "L3",  "SLC",
					     "DRAM", "HBM",    "remote", "link" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(order); i++) {
		if (strcmp(text_of(level, "level"), order[i]) == 0)
			return (int)i;
	}
	return (int)RFL_ARRAY_LEN(order);
}

bool rfl_peaks_edit__put_level(json_t *memory, json_t *take_level)
{
	size_t at = json_array_size(memory);

	if (!take_level)
		return false;
	for (size_t i = 0; i < json_array_size(memory); i++) {
		json_t *old = json_array_get(memory, i);

		if (strcmp(text_of(old, "level"), text_of(take_level, "level")) != 0 ||
		    strcmp(text_of(old, "scope"), text_of(take_level, "scope")) != 0)
			continue;
		json_t *gbs = merge_ceiling(json_object_get(old, "gbs"),
					    json_object_get(take_level, "gbs"));
		json_t *capacity = json_object_get(take_level, "capacity_bytes");
		bool ok = gbs && json_object_set_new(old, "gbs", gbs) == 0;

		if (ok && capacity)
			ok = json_object_set(old, "capacity_bytes", capacity) == 0;
		json_decref(take_level);
		return ok;
	}
	while (at > 0 && rank_of(json_array_get(memory, at - 1)) > rank_of(take_level))
		at--;
	return json_array_insert_new(memory, at, take_level) == 0;
}

bool rfl_peaks_edit__put_compute(json_t *compute, const char *key, json_t *take_ceiling)
{
	json_t *merged =
		take_ceiling ? merge_ceiling(json_object_get(compute, key), take_ceiling) : NULL;

	json_decref(take_ceiling);
	return json_object_set_new(compute, key, merged) == 0;
}

static bool merge_compute(json_t *old, const json_t *new)
{
	const char *key;
	json_t *ceiling;

	json_object_foreach((json_t *)(uintptr_t) new, key, ceiling)
	{
		if (!rfl_peaks_edit__put_compute(old, key, json_incref(ceiling)))
			return false;
	}
	return true;
}

static bool merge_memory(json_t *old, const json_t *new)
{
	for (size_t i = 0; i < json_array_size(new); i++) {
		if (!rfl_peaks_edit__put_level(old, json_deep_copy(json_array_get(new, i))))
			return false;
	}
	return true;
}

static bool merge_notes(json_t *old_env, const json_t *new_env)
{
	json_t *notes = json_object_get(old_env, "notes");
	const json_t *new = json_object_get(new_env, "notes");

	if (!new)
		return true;
	if (!notes) {
		notes = json_array();
		if (json_object_set_new(old_env, "notes", notes) != 0)
			return false;
	}
	for (size_t i = json_array_size(notes); i-- > 0;) {
		const char *text = json_string_value(json_array_get(notes, i));

		if (text && strncmp(text, NOTE_MEASURED, strlen(NOTE_MEASURED)) == 0)
			json_array_remove(notes, i);
	}
	return json_array_extend(notes, (json_t *)(uintptr_t) new) == 0;
}

/* The measured environment with a note that says what it replaced. */
static json_t *replace_short(const struct rfl_peaks_edit *e, const char *env, const json_t *old,
			     const json_t *value)
{
	char *text = json_dumps(old, JSON_COMPACT);
	json_t *result = json_deep_copy(value);
	json_t *notes = json_object_get(result, "notes");
	bool ok = text && result;

	if (ok && !notes) {
		notes = json_array();
		ok = json_object_set_new(result, "notes", notes) == 0;
	}
	ok = ok &&
	     json_array_append_new(notes, json_sprintf("replaced the short form %s", text)) == 0;
	if (ok)
		rfl_log(RFL_LOG_WARN,
			"%s: environment '%s' was in the short form and is replaced; its values "
			"are "
			"kept in its notes: %s",
			e->path, env, text);
	free(text);
	if (!ok) {
		json_decref(result);
		return NULL;
	}
	return result;
}

enum rfl_rc rfl_peaks_edit_merge(struct rfl_peaks_edit *e, const char *env, const json_t *value,
				 struct rfl_err *err)
{
	static const char *const replaced[] = { "kind", "device", "host" };
	json_t *envs = rfl_peaks_edit__envs(e, true);
	json_t *old = json_object_get(envs, env);
	bool ok = envs != NULL;

	if (ok && !old)
		ok = json_object_set_new(envs, env, json_deep_copy(value)) == 0;
	else if (ok && rfl_peaks__is_short(old))
		ok = json_object_set_new(envs, env, replace_short(e, env, old, value)) == 0;
	else if (ok) {
		for (size_t i = 0; i < RFL_ARRAY_LEN(replaced) && ok; i++) {
			json_t *part = json_object_get(value, replaced[i]);

			ok = !part || json_object_set(old, replaced[i], part) == 0;
		}
		ok = ok &&
		     merge_compute(json_object_get(old, "compute"),
				   json_object_get(value, "compute")) &&
		     merge_memory(json_object_get(old, "memory"),
				  json_object_get(value, "memory")) &&
		     merge_notes(old, value);
	}
	return ok ? RFL_OK : rfl_peaks_edit__no_memory(e, err);
}
