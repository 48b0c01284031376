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
#include "peaks/rules.h"
#include "rfl_config.h"

/* Prefix of notes written by a measurement, before the key of the ceiling that they are about. */
#define NOTE_MEASURED "measured: "

#define SPARSE_TOLERANCE 0.03 /* data sheets round */

struct rfl_peaks_edit {
	char *path;
	json_t *root;
};

static enum rfl_rc no_memory(const struct rfl_peaks_edit *e, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", e->path);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Get a member of an object; create it if absent. NULL if out of memory. */
static json_t *member_of(json_t *object, const char *key, json_t *(*make)(void))
{
	json_t *member = json_object_get(object, key);

	if (member)
		return member;
	member = make();
	return json_object_set_new(object, key, member) == 0 ? member : NULL;
}

/* --- open, save --- */

/* Apply the same checks as when a file is read. */
static enum rfl_rc check(const struct rfl_peaks_edit *e, struct rfl_err *err)
{
	struct rfl_peaks p = { .path = e->path };
	enum rfl_rc rc;

	p.arena = rfl_arena_new();
	if (!p.arena)
		return no_memory(e, err);
	rc = rfl_peaks__parse(e->root, &p, err);
	rfl_arena_free(p.arena);
	return rc;
}

enum rfl_rc rfl_peaks_edit_open(const char *path, struct rfl_peaks_edit **ret, struct rfl_err *err)
{
	struct rfl_peaks_edit *e = calloc(1, sizeof(*e));
	enum rfl_rc rc = RFL_OK;

	if (!e || !(e->path = strdup(path))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	if (!rfl_file_exists(path)) {
		e->root = json_pack("{s:s, s:{}}", "schema_version", RFL_PEAKS_SCHEMA_VERSION,
				    "environments");
		rc = e->root ? RFL_OK : no_memory(e, err);
	} else {
		rc = rfl_peaks__read(path, &e->root, err);
		if (rc == RFL_OK)
			rc = check(e, err);
	}
	if (rc != RFL_OK)
		goto done;

	*ret = e;
	e = NULL;
done:
	rfl_peaks_edit_close(e);
	return rc;
}

void rfl_peaks_edit_close(struct rfl_peaks_edit *e)
{
	if (!e)
		return;
	json_decref(e->root);
	free(e->path);
	free(e);
}

/* The environments of a file in the long form. A file in the short form is converted; its
 * environments are not changed. NULL if out of memory. */
static json_t *long_envs(struct rfl_peaks_edit *e)
{
	json_t *envs = rfl_peaks__environments(e->root);
	json_t *root;

	if (envs != e->root)
		return envs;
	root = json_pack("{s:s, s:O}", "schema_version", RFL_PEAKS_SCHEMA_VERSION, "environments",
			 envs);
	if (!root)
		return NULL;
	rfl_log(RFL_LOG_INFO, "%s: converted to the long form; its environments are not changed",
		e->path);
	json_decref(e->root);
	e->root = root;
	return json_object_get(root, "environments");
}

enum rfl_rc rfl_peaks_edit_save(struct rfl_peaks_edit *e, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (rfl_peaks__environments(e->root) != e->root &&
	    json_object_set_new(e->root, "generated_by", json_string("roofline " RFL_VERSION)) != 0)
		return no_memory(e, err);
	rc = check(e, err);
	if (rc == RFL_OK)
		rc = rfl_file_mkdirs_for(e->path, err);
	if (rc == RFL_OK)
		rc = rfl_json_save(e->path, e->root, err);
	return rc;
}

enum rfl_rc rfl_peaks_edit_add(struct rfl_peaks_edit *e, const char *path, bool replace,
			       struct rfl_err *err)
{
	json_t *envs = long_envs(e), *value;
	struct rfl_peaks_edit *other = NULL;
	const char *name;
	enum rfl_rc rc = envs ? RFL_OK : no_memory(e, err);

	if (rc == RFL_OK && !rfl_file_exists(path))
		rc = rfl_fail(err, RFL_EIO, 0, "%s: no such file", path);
	if (rc || (rc = rfl_peaks_edit_open(path, &other, err)))
		return rc;
	json_object_foreach(rfl_peaks__environments(other->root), name, value)
	{
		const json_t *old = json_object_get(envs, name);

		if (old && !replace && !json_equal(old, value))
			rc = rfl_fail(
				err, RFL_EINVAL, 0,
				"%s and %s differ in environment %s; use --replace to use the "
				"one of %s, or rename it",
				e->path, path, name, path);
		else if (json_object_set(envs, name, value) != 0)
			rc = no_memory(e, err);
		if (rc)
			break;
	}
	rfl_peaks_edit_close(other);
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
	const bool has_value = json_is_number(json_object_get(new, "value"));
	json_t *result, *spec = NULL;

	if (json_is_number(json_object_get(old, "value")) && !has_value)
		return json_incref(old);
	if (json_is_number(json_object_get(old, "value")) && !is_from_sheet(old) &&
	    is_from_sheet(new)) {
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
	if (result && spec && json_object_set(result, "spec", spec) != 0) {
		json_decref(result);
		return NULL;
	}
	if (spec && !json_object_get(new, "source") && strcmp(text_of(old, "status"), "user") != 0)
		json_object_set(result, "source", json_object_get(old, "source"));
	return result;
}

/* Add a level to the list of an environment: merge it with the level of the same name and scope, or
 * insert it in order, fastest first. False if out of memory. */
static bool put_level(json_t *memory, json_t *take_level)
{
	static const char *const facts[] = { "capacity_bytes", "sweep" };

	if (!take_level)
		return false;
	for (size_t i = 0; i < json_array_size(memory); i++) {
		json_t *old = json_array_get(memory, i);
		json_t *gbs;
		bool ok;

		if (strcmp(text_of(old, "level"), text_of(take_level, "level")) != 0 ||
		    strcmp(text_of(old, "scope"), text_of(take_level, "scope")) != 0)
			continue;
		gbs = merge_ceiling(json_object_get(old, "gbs"),
				    json_object_get(take_level, "gbs"));
		ok = gbs && json_object_set_new(old, "gbs", gbs) == 0;
		for (size_t k = 0; k < RFL_ARRAY_LEN(facts) && ok; k++) {
			json_t *fact = json_object_get(take_level, facts[k]);

			ok = !fact || json_object_set(old, facts[k], fact) == 0;
		}
		json_decref(take_level);
		return ok;
	}
	return rfl_rules__insert_level(memory, take_level);
}

static bool put_compute(json_t *compute, const char *key, json_t *take_ceiling)
{
	json_t *merged =
		take_ceiling ? merge_ceiling(json_object_get(compute, key), take_ceiling) : NULL;

	json_decref(take_ceiling);
	return json_object_set_new(compute, key, merged) == 0;
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
		const bool whole = strcmp(level, "DRAM") != 0 || strcmp(scope, "node") == 0 ||
				   strcmp(scope, "device") == 0;
		char part[32];

		snprintf(part, sizeof(part), "%s.1%s", level, scope);
		if (strcmp(key, whole ? level : part) == 0)
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

static bool merge_long(json_t *old, const json_t *new)
{
	static const char *const replaced[] = { "kind", "device", "host" };
	json_t *compute = json_object_get(new, "compute"), *memory = json_object_get(new, "memory");
	json_t *added = json_object_get(new, "notes"), *notes, *ceiling;
	const char *key;

	for (size_t i = 0; i < RFL_ARRAY_LEN(replaced); i++) {
		json_t *part = json_object_get(new, replaced[i]);

		if (strcmp(text_of(part, "name"), RFL_PEAKS_NO_DEVICE) == 0)
			continue; /* keep the name */
		if (part && json_object_set(old, replaced[i], part) != 0)
			return false;
	}
	notes = added ? member_of(old, "notes", json_array) : NULL;
	for (size_t i = json_array_size(notes); i-- > 0;)
		if (!still_holds(json_array_get(notes, i), old, new))
			json_array_remove(notes, i);
	json_object_foreach(compute, key, ceiling)
	{
		if (!put_compute(json_object_get(old, "compute"), key, json_incref(ceiling)))
			return false;
	}
	for (size_t i = 0; i < json_array_size(memory); i++)
		if (!put_level(json_object_get(old, "memory"),
			       json_deep_copy(json_array_get(memory, i))))
			return false;
	return !added || json_array_extend(notes, added) == 0;
}

enum rfl_rc rfl_peaks_edit_merge(struct rfl_peaks_edit *e, const char *env, const json_t *value,
				 struct rfl_err *err)
{
	json_t *envs = long_envs(e), *old = json_object_get(envs, env), *result, *notes;
	char *text;
	bool ok;

	if (old && !rfl_peaks__is_short(old))
		return merge_long(old, value) ? RFL_OK : no_memory(e, err);
	result = json_deep_copy(value);
	if (!old)
		return json_object_set_new(envs, env, result) == 0 ? RFL_OK : no_memory(e, err);

	/* the short form: keep the replaced values in a note */
	text = json_dumps(old, JSON_COMPACT);
	notes = text && result ? member_of(result, "notes", json_array) : NULL;
	ok = json_array_append_new(notes, json_sprintf("replaced the short form %s", text)) == 0;
	if (ok)
		rfl_log(RFL_LOG_WARN,
			"%s: environment '%s' in the short form was replaced; its values are kept "
			"in its notes: %s",
			e->path, env, text);
	free(text);
	if (ok)
		ok = json_object_set_new(envs, env, result) == 0;
	else
		json_decref(result);
	return ok ? RFL_OK : no_memory(e, err);
}

/* --- ceilings given by the user, and those of a data sheet --- */

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
	struct rfl_devices *devices = NULL;
	enum rfl_rc rc = rfl_devices_load(&devices, err);
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
	rfl_devices_free(devices);
	return rc;
}

static enum rfl_rc set_long(struct rfl_peaks_edit *e, json_t *env, const struct rfl_peaks_set *set,
			    struct rfl_err *err)
{
	const char *key = strncmp(set->key, "compute.", 8) == 0 ? set->key + 8 : set->key;
	const char *level = level_of(set->key), *near;
	json_t *ceiling;
	enum rfl_rc rc;
	bool ok;

	if (!level && !rfl_rules__is_compute_key(key)) {
		near = rfl_text_nearest(key, rfl_peaks_compute_keys);
		return rfl_fail(err, RFL_EINVAL, 0,
				"'%s' is neither a compute key such as fp32.vector nor a memory "
				"level such as DRAM%s%s%s",
				set->key, near ? "; did you mean '" : "", near ? near : "",
				near ? "'?" : "");
	}
	rc = level ? RFL_OK
		   : refuse_sparse(text_of(json_object_get(env, "device"), "name"), key, set, err);
	if (rc != RFL_OK)
		return rc;
	ceiling = json_pack("{s:s, s:f, s:{s:s}}", "status", "user", "value", set->value, "source",
			    "title", set->source);
	if (!level) {
		ok = put_compute(json_object_get(env, "compute"), key, ceiling);
	} else {
		ok = put_level(json_object_get(env, "memory"),
			       json_pack("{s:s, s:s, s:o}", "level", level, "scope",
					 scope_of(env, level), "gbs", ceiling));
	}
	return ok ? RFL_OK : no_memory(e, err);
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
	if (object && !json_is_object(object))
		return rfl_fail(
			err, RFL_EINVAL, 0,
			"%s: environment '%s' has one value for all precisions; '%s' cannot be set",
			e->path, set->env, set->key);
	if (json_object_set_new(object, dot ? dot + 1 : set->key, json_real(set->value)) != 0 ||
	    json_object_set_new(env, "source", json_string(set->source)) != 0)
		return no_memory(e, err);
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
		if (json_object_set_new(long_envs(e), set->env, env) != 0)
			return no_memory(e, err);
	}
	return set_long(e, env, set, err);
}

/* A ceiling of a data sheet: computed if the vendor's figure was not read. */
static json_t *sheet_ceiling(const struct rfl_device_sheet *sheet, double value)
{
	const bool read = strstr(sheet->evidence, "ds") || strstr(sheet->evidence, "dq");

	return json_pack(
		"{s:s, s:f, s:{s:o, s:s}}", "status",
		!read && strstr(sheet->evidence, "calc") ? "derived" : "spec", "value", value / 1e9,
		"source", "title",
		json_sprintf("data sheet of %s (evidence %s)", sheet->label, sheet->evidence),
		"where", sheet->source);
}

/* Does the environment name a device with another data sheet? */
static enum rfl_rc fits_sheet(const struct rfl_peaks_edit *e, const char *name, const json_t *env,
			      const struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	const char *device = text_of(json_object_get(env, "device"), "name");
	struct rfl_devices *devices = NULL;
	enum rfl_rc rc = rfl_devices_load(&devices, err);
	const struct rfl_device_sheet *own = rfl_devices_get(devices, device);

	if (rc == RFL_OK && (strcmp(text_of(env, "kind"), sheet->kind) != 0 ||
			     (own && strcmp(own->label, sheet->label) != 0)))
		rc = rfl_fail(err, RFL_EINVAL, 0,
			      "%s: environment '%s' is for the %s '%s', not for %s; use another "
			      "name for the environment",
			      e->path, name, text_of(env, "kind"), device, sheet->label);
	rfl_devices_free(devices);
	return rc;
}

enum rfl_rc rfl_peaks_edit_sheet(struct rfl_peaks_edit *e, const char *name,
				 const struct rfl_device_sheet *sheet, struct rfl_err *err)
{
	json_t *envs, *env = json_object_get(rfl_peaks__environments(e->root), name), *device;
	const char *level = "DRAM";
	bool ok = true;
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
		ok = json_object_set_new(envs, name, env) == 0;
	}
	for (size_t i = 0; ok && i < RFL_DEVICE_RATE_COUNT; i++)
		ok = isnan(sheet->flop_per_s[i]) ||
		     put_compute(json_object_get(env, "compute"), rfl_device_keys[i],
				 sheet_ceiling(sheet, sheet->flop_per_s[i]));
	if (find_level(env, "HBM"))
		level = "HBM";
	if (ok && !isnan(sheet->bandwidth_bytes_per_s))
		ok = put_level(json_object_get(env, "memory"),
			       json_pack("{s:s, s:s, s:o}", "level", level, "scope",
					 scope_of(env, level), "gbs",
					 sheet_ceiling(sheet, sheet->bandwidth_bytes_per_s)));
	return ok ? RFL_OK : no_memory(e, err);
}
