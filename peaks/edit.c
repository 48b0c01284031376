/*
 * edit.c - edits a peaks file in memory: merges a measured environment, or sets a ceiling given by
 * the user, in the long or the short form.
 */
#include "peaks/edit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "peaks/peaks.h"
#include "peaks/rules.h"
#include "rfl_config.h"

/* Prefix of notes written by a measurement, before the key of the ceiling that they are about. */
#define NOTE_MEASURED "measured: "

#define SPARSE_TOLERANCE 0.03 /* data sheets round */

struct rfl_peaks_edit {
	char *path;
	json_t *root;
	struct rfl_buf said; /* the changes, for a message when they are saved */
	int lock;            /* the file, locked until the edit is closed */
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Get a member of an object; create it if absent. */
static json_t *member_of(json_t *object, const char *key, json_t *(*make)(void))
{
	if (!json_object_get(object, key))
		json_object_set_new(object, key, make());
	return json_object_get(object, key);
}

/* --- open, save --- */

/* Apply the same checks as when a file is read. */
static enum rfl_rc check(const char *path, json_t *root, struct rfl_err *err)
{
	struct rfl_peaks p = { .path = path, .arena = rfl_arena_new() };
	enum rfl_rc rc = rfl_peaks__parse(root, &p, err);

	rfl_arena_free(p.arena);
	return rc;
}

static enum rfl_rc read_checked(const char *path, json_t **root, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_peaks__read(path, root, err);

	return rc ? rc : check(path, *root, err);
}

enum rfl_rc rfl_peaks_edit_open(const char *path, struct rfl_peaks_edit **ret, struct rfl_err *err)
{
	RFL_AUTOPTR(peaks_edit) e = rfl_alloc_array(1, sizeof(*e));
	enum rfl_rc rc;

	e->path = rfl_strdup(path);
	e->lock = -1;
	if ((rc = rfl_file_check_use(path, RFL_FILE_REPLACED, err)) ||
	    (rc = rfl_file_mkdirs_for(path, err)) || (rc = rfl_file_lock(path, &e->lock, err)))
		return rc;
	if (rfl_file_size(path) == 0) /* created by the lock, now or by a process that was killed */
		e->root = json_pack("{s:s, s:{}}", "schema_version", RFL_PEAKS_SCHEMA_VERSION,
				    "environments");
	else
		rc = read_checked(path, &e->root, err);
	if (rc != RFL_OK)
		return rc;

	*ret = e;
	e = NULL;
	return rc;
}

void rfl_peaks_edit_close(struct rfl_peaks_edit *e)
{
	if (!e)
		return;
	if (e->lock >= 0 && rfl_file_size(e->path) == 0)
		(void)remove(e->path); /* nothing was saved; who waits for the lock sees this */
	(void)!rfl_file_unlock(e->lock, e->path, NULL);
	json_decref(e->root);
	rfl_buf_fini(&e->said);
	free(e->path);
	free(e);
}

/* The environments of a file in the long form. A file in the short form is converted; its
 * environments are not changed. */
static json_t *long_envs(struct rfl_peaks_edit *e)
{
	json_t *envs = rfl_peaks__environments(e->root), *root;

	if (envs != e->root)
		return envs;
	root = json_pack("{s:s, s:o}", "schema_version", RFL_PEAKS_SCHEMA_VERSION, "environments",
			 envs);
	rfl_log(RFL_LOG_INFO, "%s: converted to the long form; its environments are not changed",
		e->path);
	e->root = root;
	return envs;
}

enum rfl_rc rfl_peaks_edit_save(struct rfl_peaks_edit *e, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (rfl_peaks__environments(e->root) != e->root)
		json_object_set_new(e->root, "generated_by", json_string("roofline " RFL_VERSION));
	if ((rc = check(e->path, e->root, err)) || (rc = rfl_json_save(e->path, e->root, err)))
		return rc;
	if (e->said.len)
		rfl_log(RFL_LOG_INFO, "%s: %s", e->path, rfl_buf_str(&e->said));
	return RFL_OK;
}

enum rfl_rc rfl_peaks_edit_add(struct rfl_peaks_edit *e, const char *path, bool replace,
			       struct rfl_err *err)
{
	json_t *envs = long_envs(e), *value;
	json_auto_t *other = NULL;
	const char *name;
	enum rfl_rc rc = read_checked(path, &other, err);
	size_t n = 0;

	json_object_foreach(rc ? NULL : rfl_peaks__environments(other), name, value)
	{
		const json_t *old = json_object_get(envs, name);

		if (rc == RFL_OK && old && !replace && !json_equal(old, value))
			rc = rfl_fail(
				err, RFL_EINVAL, 0,
				"%s and %s differ in environment %s; use --replace to use the "
				"one of %s, or rename it",
				e->path, path, name, path);
		n += !old || !json_equal(old, value);
		json_object_set(envs, name, value);
	}
	rfl_buf_printf(&e->said, "%s%zu environment%s of %s", e->said.len ? ", " : "merged ", n,
		       n == 1 ? "" : "s", path);
	return rc;
}

/* --- ceilings --- */

static bool is_from_sheet(const json_t *ceiling)
{
	return strcmp(text_of(ceiling, "status"), "spec") == 0 ||
	       strcmp(text_of(ceiling, "status"), "derived") == 0;
}

/* Merge the ceiling `new` into `old` (may be NULL). @return a new reference */
static json_t *merge_ceiling(json_t *old, json_t *new)
{
	const bool old_value = json_is_number(json_object_get(old, "value"));
	const bool has_value = json_is_number(json_object_get(new, "value"));
	json_t *result, *spec = NULL;

	if (old_value && !has_value)
		return json_incref(old);
	if (old_value && !is_from_sheet(old) && is_from_sheet(new)) {
		json_object_set(old, "spec", json_object_get(new, "value"));
		if (!json_object_get(old, "source"))
			json_object_set(old, "source", json_object_get(new, "source"));
		return json_incref(old);
	}
	result = json_deep_copy(new);
	/* keep a data sheet value of the old entry: its `spec`, or its value with status spec */
	if (has_value && !is_from_sheet(new) && !json_is_number(json_object_get(new, "spec"))) {
		spec = json_object_get(old, "spec");
		if (!json_is_number(spec))
			spec = is_from_sheet(old) ? json_object_get(old, "value") : NULL;
	}
	if (spec)
		json_object_set(result, "spec", spec);
	if (spec && !json_object_get(new, "source") && strcmp(text_of(old, "status"), "user") != 0)
		json_object_set(result, "source", json_object_get(old, "source"));
	return result;
}

/* Add a level to the list of an environment: merge it with the level of the same name and scope, or
 * insert it in order, fastest first. */
static void put_level(json_t *memory, json_t *take_level)
{
	static const char *const facts[] = { "capacity_bytes", "sweep" };

	for (size_t i = 0; i < json_array_size(memory); i++) {
		json_t *old = json_array_get(memory, i);

		if (strcmp(text_of(old, "level"), text_of(take_level, "level")) != 0 ||
		    strcmp(text_of(old, "scope"), text_of(take_level, "scope")) != 0)
			continue;
		json_object_set_new(old, "gbs",
				    merge_ceiling(json_object_get(old, "gbs"),
						  json_object_get(take_level, "gbs")));
		for (size_t k = 0; k < RFL_ARRAY_LEN(facts); k++)
			if (json_object_get(take_level, facts[k]))
				json_object_set(old, facts[k],
						json_object_get(take_level, facts[k]));
		json_decref(take_level);
		return;
	}
	rfl_rules__insert_level(memory, take_level);
}

static void put_compute(json_t *compute, const char *key, json_t *take_ceiling)
{
	json_object_set_new(compute, key,
			    merge_ceiling(json_object_get(compute, key), take_ceiling));
	json_decref(take_ceiling);
}

enum rfl_rc rfl_peaks_edit_fits(const struct rfl_peaks_edit *e, const char *env, const char *kind,
				const char *device, struct rfl_err *err)
{
	const json_t *old = json_object_get(rfl_peaks__environments(e->root), env);
	const char *name = text_of(json_object_get(old, "device"), "name");

	if (!old || rfl_peaks__is_short(old))
		return RFL_OK;
	if (strcmp(text_of(old, "kind"), kind) != 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' is for a %s, this device is a %s; choose "
				"another name with --env",
				e->path, env, text_of(old, "kind"), kind);
	if (strcmp(name, device) != 0 && strcmp(name, RFL_PEAKS_NO_DEVICE) != 0 &&
	    strcmp(device, RFL_PEAKS_NO_DEVICE) != 0)
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' is for '%s', not for '%s'; choose "
				"another name with --env, or replace its measurements with --force",
				e->path, env, name, device);
	return RFL_OK;
}

/* The ceiling `key` of an environment: "bf16.matrix", "DRAM", "DRAM.1socket". */
static const json_t *find_ceiling(const json_t *env, const char *key)
{
	const json_t *memory = json_object_get(env, "memory");

	for (size_t i = 0; i < json_array_size(memory); i++) {
		const json_t *item = json_array_get(memory, i);
		const char *level = text_of(item, "level"), *scope = text_of(item, "scope");
		const bool part = strcmp(level, "DRAM") == 0 && strcmp(scope, "node") != 0 &&
				  strcmp(scope, "device") != 0;
		char name[32];

		snprintf(name, sizeof(name), "%s%s%s", level, part ? ".1" : "", part ? scope : "");
		if (strcmp(key, name) == 0)
			return json_object_get(item, "gbs");
	}
	return json_object_get(json_object_get(env, "compute"), key);
}

/* The key of a note on a measurement; "" for other notes. */
static void key_of(const json_t *note, char key[32])
{
	const char *text = json_string_value(note);
	const size_t prefix = strlen(NOTE_MEASURED);

	key[0] = '\0';
	if (strncmp(text, NOTE_MEASURED, prefix) == 0)
		snprintf(key, 32, "%.*s", (int)strcspn(text + prefix, " ,:"), text + prefix);
}

/* Is it the user's note, or one on a ceiling of `old` that was not measured again? */
static bool still_holds(const json_t *note, const json_t *old, const json_t *new)
{
	const json_t *added = json_object_get(new, "notes");
	char key[32], other[32];

	key_of(note, key);
	for (size_t i = 0; i < json_array_size(added); i++) {
		key_of(json_array_get(added, i), other);
		if (*key && strcmp(key, other) == 0)
			return false;
	}
	return !*key || (find_ceiling(old, key) &&
			 !json_is_number(json_object_get(find_ceiling(new, key), "value")));
}

static void merge_long(json_t *old, const json_t *new)
{
	static const char *const replaced[] = { "kind", "device", "host" };
	json_t *compute = json_object_get(new, "compute"), *memory = json_object_get(new, "memory");
	json_t *added = json_object_get(new, "notes"), *notes, *ceiling;
	const char *key;

	for (size_t i = 0; i < RFL_ARRAY_LEN(replaced); i++) {
		json_t *part = json_object_get(new, replaced[i]);

		if (part && strcmp(text_of(part, "name"), RFL_PEAKS_NO_DEVICE) != 0)
			json_object_set(old, replaced[i], part); /* else keep the name */
	}
	notes = added ? member_of(old, "notes", json_array) : NULL;
	for (size_t i = json_array_size(notes); i-- > 0;)
		if (!still_holds(json_array_get(notes, i), old, new))
			json_array_remove(notes, i);
	json_object_foreach(compute, key, ceiling)
	{
		put_compute(json_object_get(old, "compute"), key, json_incref(ceiling));
	}
	for (size_t i = 0; i < json_array_size(memory); i++)
		put_level(json_object_get(old, "memory"),
			  json_deep_copy(json_array_get(memory, i)));
	if (added)
		json_array_extend(notes, added);
}

void rfl_peaks_edit_merge(struct rfl_peaks_edit *e, const char *env, const json_t *value)
{
	json_t *envs = long_envs(e), *old = json_object_get(envs, env), *result;
	char *text;

	if (old && !rfl_peaks__is_short(old)) {
		merge_long(old, value);
		return;
	}
	result = json_deep_copy(value);
	if (old) { /* the short form: keep the replaced values in a note */
		text = json_dumps(old, JSON_COMPACT);
		json_array_append_new(member_of(result, "notes", json_array),
				      json_sprintf("replaced the short form %s", text));
		rfl_log(RFL_LOG_WARN,
			"%s: environment '%s' in the short form was replaced; its values are kept "
			"in its notes: %s",
			e->path, env, text);
		free(text);
	}
	json_object_set_new(envs, env, result);
}

/* --- ceilings given by the user or a data sheet --- */

/* The memory level that a key names ("memory.DRAM.gbs" is DRAM); NULL if none. */
static const char *level_of(const char *key)
{
	const char *name = strncmp(key, "memory.", 7) == 0 ? key + 7 : key;

	for (size_t i = 0; rfl_peaks_levels[i]; i++) {
		const size_t len = strlen(rfl_peaks_levels[i]);

		if (strncmp(name, rfl_peaks_levels[i], len) == 0 &&
		    (!name[len] || strcmp(name + len, ".gbs") == 0))
			return rfl_peaks_levels[i];
	}
	return NULL;
}

/* The level of this name in an environment, rather of the whole machine than of a core; or NULL. */
static const json_t *find_level(const json_t *env, const char *level)
{
	const json_t *memory = json_object_get(env, "memory"), *found = NULL;

	for (size_t i = 0; i < json_array_size(memory); i++) {
		const json_t *item = json_array_get(memory, i);

		if (strcmp(text_of(item, "level"), level) == 0 &&
		    (!found || strcmp(text_of(found, "scope"), "core") == 0))
			found = item;
	}
	return found;
}

/* The scope of a level in an environment, or the usual one. */
static const char *scope_of(const json_t *env, const char *level)
{
	const json_t *old = find_level(env, level);

	if (old)
		return text_of(old, "scope");
	if (strcmp(text_of(env, "kind"), "gpu") == 0)
		return "device";
	return strcmp(level, "L1") == 0 || strcmp(level, "L2") == 0 ? "core" : "node";
}

enum rfl_rc rfl_peaks_rate(const char *text, const char *key, double *ret, struct rfl_err *err)
{
	static const char *const rates[] = { "FLOP/s", "FLOPS", "op/s", "OPS" };
	static const char prefixes[] = "MGTP";
	static const double factors[] = { 1e-3, 1, 1e3, 1e6 };
	const bool memory = level_of(key) || strstr(key, "peak_gbps");
	const struct rfl_span all = rfl_span_trim(rfl_span_of(text));
	const size_t len = rfl_span_number_len(all);
	char unit[16];
	const char *prefix;
	double value;
	bool known;

	rfl_span_copy(rfl_span_trim(rfl_span_from(all, len)), unit, sizeof(unit));
	if (!rfl_span_number((struct rfl_span){ .at = all.at, .len = len }, &value) || !(value > 0))
		return rfl_fail(err, RFL_EUSAGE, 0,
				"VALUE: '%s' is not a number greater than 0, in %s", text,
				memory ? "GB/s" : "GFLOP/s");
	prefix = *unit ? strchr(prefixes, toupper((unsigned char)*unit)) : &prefixes[1];
	known = !*unit || (memory && strcasecmp(unit + 1, "B/s") == 0);
	for (size_t i = 0; i < RFL_ARRAY_LEN(rates) && !memory; i++)
		known = known || strcasecmp(unit + 1, rates[i]) == 0;
	if (!prefix || !known)
		return rfl_fail(err, RFL_EUSAGE, 0, "VALUE: '%s' is not a unit of %s; use %s", unit,
				key, memory ? "GB/s or TB/s" : "GFLOP/s, TFLOP/s or TOPS");
	*ret = value * factors[prefix - prefixes];
	return RFL_OK;
}

static json_t *not_given(const char *env, const char *key)
{
	return json_pack(
		"{s:s, s:n, s:o}", "status", "unknown", "value", "reason",
		json_sprintf("not given; set it with 'roofline peaks set FILE %s %s VALUE'", env,
			     key));
}

/* `compute` and `memory` are required; their ceilings are unknown at first. */
static json_t *new_env(const char *name, const char *kind, json_t *take_device)
{
	return json_pack("{s:s, s:o, s:{s:o}, s:[{s:s, s:s, s:o}]}", "kind", kind, "device",
			 take_device, "compute", "fp32.vector", not_given(name, "fp32.vector"),
			 "memory", "level", "DRAM", "scope",
			 strcmp(kind, "gpu") == 0 ? "device" : "node", "gbs",
			 not_given(name, "DRAM"));
}

/* Data sheets print rates with sparsity, which are twice the dense ones. */
static enum rfl_rc refuse_sparse(const char *device, const char *key,
				 const struct rfl_peaks_set *set, struct rfl_err *err)
{
	RFL_AUTOPTR(devices) devices = rfl_devices_new();
	enum rfl_rc rc = RFL_OK;
	const struct rfl_device_sheet *sheet = rfl_devices_get(devices, device);
	const double dense = sheet && strstr(key, ".matrix") ? rfl_device_ceiling(sheet, key) / 1e9
							     : (double)NAN;

	if (fabs(set->value / (2 * dense) - 1) < SPARSE_TOLERANCE)
		rc = rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: %g GFLOP/s is twice the dense rate of the data sheet of %s, so it "
			"is a rate with sparsity%s; use %gGFLOP/s",
			key, set->value, sheet->label,
			strcmp(key, "fp16.matrix") == 0 || strcmp(key, "fp8.matrix") == 0
				? " or with FP16 accumulation"
				: "",
			dense);
	return rc;
}

/* "lab: fp32.vector is now 420 GFLOP/s (was 400)" */
static void say_set(struct rfl_peaks_edit *e, const struct rfl_peaks_set *set, bool memory,
		    const json_t *old)
{
	rfl_buf_printf(&e->said, "%s: %s is now %g %s", set->env, set->key, set->value,
		       memory ? "GB/s" : rfl_peaks_unit(set->key));
	if (json_is_number(old))
		rfl_buf_printf(&e->said, " (was %g)", json_number_value(old));
}

static enum rfl_rc set_long(struct rfl_peaks_edit *e, json_t *env, const struct rfl_peaks_set *set,
			    struct rfl_err *err)
{
	const char *key = strncmp(set->key, "compute.", 8) == 0 ? set->key + 8 : set->key;
	const char *level = level_of(set->key), *near = NULL;
	const json_t *old;
	json_t *ceiling;
	enum rfl_rc rc;

	if (!level && !rfl_rules__is_compute_key(key)) {
		for (size_t i = 0; rfl_peaks_compute_keys[i] && !near; i++)
			if (rfl_span_starts(rfl_span_of(rfl_peaks_compute_keys[i]), key))
				near = rfl_peaks_compute_keys[i]; /* "fp32" */
		near = near ? near : rfl_text_nearest(key, rfl_peaks_compute_keys);
		near = near ? near : rfl_text_nearest(key, rfl_peaks_levels);
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is neither a compute key such as fp32.vector nor a memory "
				"level such as DRAM%s%s%s",
				set->key, near ? "; did you mean " : "", near ? near : "",
				near ? "?" : "");
	}
	rc = level ? RFL_OK
		   : refuse_sparse(text_of(json_object_get(env, "device"), "name"), key, set, err);
	if (rc != RFL_OK)
		return rc;
	old = level ? json_object_get(find_level(env, level), "gbs")
		    : json_object_get(json_object_get(env, "compute"), key);
	say_set(e, set, level, json_object_get(old, "value"));
	ceiling = json_pack("{s:s, s:f, s:{s:s}}", "status", "user", "value", set->value, "source",
			    "title", set->source);
	if (level)
		put_level(json_object_get(env, "memory"),
			  json_pack("{s:s, s:s, s:o}", "level", level, "scope",
				    scope_of(env, level), "gbs", ceiling));
	else
		put_compute(json_object_get(env, "compute"), key, ceiling);
	return RFL_OK;
}

/* Accepts "peak_gbps", "fp32.peak_gflops" and "peak_gflops.fp32". */
static enum rfl_rc set_short(struct rfl_peaks_edit *e, json_t *env, const struct rfl_peaks_set *set,
			     struct rfl_err *err)
{
	const char *dot = strchr(set->key, '.');
	json_t *object = env;
	char outer[64];

	if (!strstr(set->key, "peak_gflops") && !strstr(set->key, "peak_gbps"))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' is in the short form, which has no key '%s'; "
				"use peak_gflops, peak_gbps, or for one precision fp32.peak_gflops "
				"or peak_gflops.fp32",
				e->path, set->env, set->key);
	if (dot) {
		snprintf(outer, sizeof(outer), "%.*s", (int)(dot - set->key), set->key);
		object = member_of(env, outer, json_object);
	}
	if (!json_is_object(object))
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: environment '%s' has one value for all precisions; '%s' cannot be set",
			e->path, set->env, set->key);
	say_set(e, set, strstr(set->key, "peak_gbps"),
		json_object_get(object, dot ? dot + 1 : set->key));
	json_object_set_new(object, dot ? dot + 1 : set->key, json_real(set->value));
	json_object_set_new(env, "source", json_string(set->source));
	return RFL_OK;
}

enum rfl_rc rfl_peaks_edit_set(struct rfl_peaks_edit *e, const struct rfl_peaks_set *set,
			       struct rfl_err *err)
{
	json_t *env = json_object_get(rfl_peaks__environments(e->root), set->env);

	if (env && rfl_peaks__is_short(env))
		return set_short(e, env, set, err);
	if (!env) {
		env = new_env(set->env, set->kind,
			      json_pack("{s:s}", "name",
					set->device ? set->device : RFL_PEAKS_NO_DEVICE));
		json_object_set_new(long_envs(e), set->env, env);
	}
	return set_long(e, env, set, err);
}

/* A ceiling of a data sheet: computed if the vendor's figure was not read. */
static json_t *sheet_ceiling(const struct rfl_device_sheet *sheet, double value)
{
	const bool read = strstr(sheet->evidence, "ds") || strstr(sheet->evidence, "dq");

	return json_pack("{s:s, s:f, s:{s:o, s:o}}", "status",
			 !read && strstr(sheet->evidence, "calc") ? "derived" : "spec", "value",
			 value / 1e9, "source", "title",
			 json_sprintf("data sheet of %s", sheet->label), "where",
			 json_sprintf("%s (evidence %s)", sheet->source, sheet->evidence));
}

/* Does the environment name a device with another data sheet? */
static enum rfl_rc fits_sheet(const struct rfl_peaks_edit *e, const char *name, const json_t *env,
			      const struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	const char *device = text_of(json_object_get(env, "device"), "name");
	RFL_AUTOPTR(devices) devices = rfl_devices_new();
	enum rfl_rc rc = RFL_OK;
	const struct rfl_device_sheet *own = rfl_devices_get(devices, device);

	if (strcmp(text_of(env, "kind"), sheet->kind) != 0 ||
	    (own && strcmp(own->label, sheet->label) != 0))
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: environment '%s' is for the %s '%s', not for %s; use another "
			      "name for the environment",
			      e->path, name, text_of(env, "kind"), device, sheet->label);
	return rc;
}

enum rfl_rc rfl_peaks_edit_sheet(struct rfl_peaks_edit *e, const char *name,
				 const struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	json_t *envs, *env = json_object_get(rfl_peaks__environments(e->root), name), *device;
	const char *level = "DRAM";
	enum rfl_rc rc;

	if (env && rfl_peaks__is_short(env))
		return rfl_fail(err, RFL_EINVAL, 0,
				"%s: environment '%s' is in the short form, which has no place for "
				"a data sheet; use another name",
				e->path, name);
	if (env && (rc = fits_sheet(e, name, env, sheet, err)))
		return rc;
	envs = long_envs(e);
	if (!env) {
		device = json_pack("{s:s, s:s, s:s*, s:I}", "name", sheet->name, "vendor",
				   sheet->vendor, "compute_capability", sheet->compute_capability,
				   "units", (json_int_t)sheet->units);
		env = new_env(name, sheet->kind, device);
		json_object_set_new(envs, name, env);
	}
	for (size_t i = 0; i < RFL_DEVICE_RATE_COUNT; i++)
		if (!isnan(sheet->flop_per_s[i]))
			put_compute(json_object_get(env, "compute"), rfl_device_keys[i],
				    sheet_ceiling(sheet, sheet->flop_per_s[i]));
	rfl_buf_printf(&e->said, "%s: wrote the data sheet of %s", name, sheet->label);
	if (find_level(env, "HBM"))
		level = "HBM";
	if (!isnan(sheet->bandwidth_bytes_per_s))
		put_level(json_object_get(env, "memory"),
			  json_pack("{s:s, s:s, s:o}", "level", level, "scope",
				    scope_of(env, level), "gbs",
				    sheet_ceiling(sheet, sheet->bandwidth_bytes_per_s)));
	return RFL_OK;
}

enum rfl_rc rfl_peaks_of_sheet(const struct rfl_device_sheet *sheet, struct rfl_peaks **ret,
			       struct rfl_err *err)
{
	struct rfl_peaks_edit e = {
		.path = (char *)(uintptr_t)sheet->label,
		.root = json_pack("{s:s, s:{}}", "schema_version", RFL_PEAKS_SCHEMA_VERSION,
				  "environments"),
	};
	RFL_AUTO(buf) text = { .len = 0 };
	char name[49] = "sheet";
	enum rfl_rc rc;

	if (isalpha((unsigned char)sheet->label[0]))
		(void)snprintf(name, sizeof(name), "%s", sheet->label);
	for (char *c = name; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
	rc = rfl_peaks_edit_sheet(&e, name, sheet, err);
	rfl_json_write(&text, e.root);
	if (rc == RFL_OK)
		rc = rfl_peaks_loads(rfl_buf_str(&text), text.len, sheet->label, ret, err);
	rfl_buf_fini(&e.said);
	json_decref(e.root);
	return rc;
}
