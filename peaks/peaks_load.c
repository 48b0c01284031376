/*
 * peaks_load.c - reads peaks.json: parses the JSON, detects its form, and reads its environments.
 */
#include "peaks/peaks.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "peaks/rules.h"

/* Find the JSON pointer of the position text + at. Values nested deeper than DEPTH_MAX get the
 * pointer of the object or list at that depth. */
static void find_place(const char *text, size_t at, struct rfl_where *w)
{
	enum { DEPTH_MAX = 32, KEY_MAX = 64 };
	struct {
		bool list, in_value;
		size_t index, mark;
	} frames[DEPTH_MAX], *f;
	const char *const end = text + at;
	size_t depth = 0;

	for (const char *s = text; s < end; s++) {
		f = depth > 0 && depth <= DEPTH_MAX ? &frames[depth - 1] : NULL;
		if (*s == '"') {
			const char *const begin = ++s;
			char key[KEY_MAX];

			while (s < end && *s != '"')
				s += *s == '\\' && s + 1 < end ? 2 : 1;
			if (!f || f->list || f->in_value)
				continue;
			snprintf(key, sizeof(key), "%.*s", (int)(s - begin), begin);
			rfl_where_up(w, f->mark);
			(void)rfl_where_key(w, key);
		} else if (*s == '{' || *s == '[') {
			if (depth++ >= DEPTH_MAX)
				continue;
			f = &frames[depth - 1];
			f->list = *s == '[';
			f->in_value = false;
			f->index = 0;
			f->mark = w->len;
			if (f->list)
				(void)rfl_where_index(w, 0);
		} else if ((*s == '}' || *s == ']') && depth > 0) {
			depth--;
			if (f)
				rfl_where_up(w, f->mark);
		} else if (*s == ':' && f) {
			f->in_value = true;
		} else if (*s == ',' && f) {
			f->in_value = false;
			if (!f->list)
				continue;
			rfl_where_up(w, f->mark);
			(void)rfl_where_index(w, ++f->index);
		}
	}
}

/* Syntax errors are reported with a JSON pointer, like all other errors in the file. */
static enum rfl_rc read_text(const char *text, size_t len, const char *path, json_t **ret,
			     struct rfl_err *err)
{
	struct rfl_err first = RFL_ERR_INIT;
	json_error_t je = { .line = -1 };
	const char *hint = "";
	struct rfl_where w;
	json_t *root;
	size_t at;
	enum rfl_rc rc = rfl_json_loads(text, len, path, ret, &first);

	if (rc == RFL_OK)
		return RFL_OK;
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	json_decref(root);
	if (rc != RFL_EFORMAT || root || strncmp(je.text, "'['", 3) == 0)
		/* the text does not begin like JSON, or the error is not in its syntax */
		return rfl_err_pass(err, &first);
	at = je.position > 0 ? (size_t)je.position : 0;
	rfl_where_begin(&w, path, "");
	find_place(text, at < len ? at : len, &w);
	if (strstr(je.text, "NaN") || strstr(je.text, "nan") || strstr(je.text, "Inf"))
		hint = "; JSON has no such number; write null in the short form, or {\"status\": "
		       "\"unknown\", \"value\": null, \"reason\": \"...\"} in the long form";
	else if (strstr(je.text, "duplicate"))
		hint = "; remove one of them";
	return rfl_fail(err, RFL_EFORMAT, 0, "%s:%d:%d: %s: %s%s", path, je.line, je.column,
			w.len ? w.pointer : "/", je.text, hint);
}

enum rfl_rc rfl_peaks__read(const char *path, json_t **ret, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK)
		rc = read_text(rfl_buf_str(&text), text.len, path, ret, err);
	rfl_buf_fini(&text);
	return rc;
}

/* --- one environment --- */

static enum rfl_rc parse_long(const json_t *value, struct rfl_peaks_env *env, struct rfl_reader *r)
{
	const json_t *notes = json_object_get(value, "notes");
	enum rfl_rc rc;

	if (json_is_null(value))
		return rfl_where_fail(&r->where, r->err,
				      "must not be null; measure the environment with 'roofline "
				      "peaks measure' or remove it");
	rc = rfl_rules__read(value, rfl_rules_environment, env, r);
	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < json_array_size(notes); i++)
		env->ecc |= strcmp(json_string_value(json_array_get(notes, i)),
				   RFL_PEAKS_NOTE_ECC) == 0;
	for (struct rfl_peak_level *l = env->levels; l < env->levels + env->nlevels; l++) {
		const bool part = rfl_peaks_is_part(env, l);

		l->cell = rfl_arena_printf(r->arena, "memory.%s%s%s.gbs", l->level, part ? "." : "",
					   part ? l->scope : "");
		if (!l->cell)
			return rfl_rules__no_memory(r);
	}
	return RFL_OK;
}

/*
 * The short form, for manual editing; null means unknown:
 *
 *   "lab_cpu": {"peak_gflops": 420, "peak_gbps": 92}
 *   "lab_gpu": {"peak_gflops": {"fp32": 30300, "amp": 121000}, "peak_gbps": 300}
 *   "lab_gpu": {"fp32": {"peak_gflops": 30300}, "amp": {"peak_gflops": 121000}, "peak_gbps": 300}
 */
#define PRECISIONS "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "amp"

static const char *const precisions[] = { PRECISIONS, NULL };
static const char *const env_keys[] = { "peak_gflops", "peak_gbps", "source", PRECISIONS, NULL };
static const char *const peak_keys[] = { "peak_gflops", "peak_gbps", NULL };

bool rfl_peaks__is_short(const json_t *value)
{
	for (size_t i = 0; env_keys[i]; i++)
		if (strcmp(env_keys[i], "source") != 0 && json_object_get(value, env_keys[i]))
			return true;
	return false;
}

/* Add one number in GFLOP/s or GB/s, or null. Bandwidth does not depend on precision: it may be
 * repeated, but all values must be equal. */
static enum rfl_rc add(struct rfl_peaks_env *env, const char *key, const json_t *value,
		       const char *source, const char *cell, struct rfl_reader *r)
{
	const struct rfl_peak_level *l = &env->levels[0];
	struct rfl_peak peak = rfl_rules__no_peak;
	enum rfl_rc rc;

	for (size_t i = 0; key && i < env->ncompute; i++)
		if (strcmp(env->compute[i].key, key) == 0)
			return rfl_where_fail(&r->where, r->err,
					      "also given as %s; remove one of them",
					      env->compute[i].cell);
	if (json_is_null(value)) {
		peak.reason = "null in the peaks file";
	} else {
		rc = rfl_rules__rate(value, "write null if it is unknown", &peak.value, r);
		if (rc != RFL_OK)
			return rc;
		peak.status = RFL_PEAK_USER;
		peak.source = source;
	}
	cell = rfl_arena_strdup(r->arena, cell);
	if (!cell)
		return rfl_rules__no_memory(r);
	if (key)
		env->compute[env->ncompute++] =
			(struct rfl_peak_compute){ .key = key, .cell = cell, .peak = peak };
	else if (env->nlevels == 0)
		env->levels[env->nlevels++] = (struct rfl_peak_level){
			.level = "DRAM", .scope = "device", .cell = cell, .peak = peak
		};
	else if (peak.value != l->peak.value && !(isnan(peak.value) && isnan(l->peak.value)))
		return rfl_where_fail(
			&r->where, r->err,
			"differs from %s; bandwidth does not depend on precision, so write one "
			"peak_gbps next to the precisions",
			l->cell);
	return RFL_OK;
}

/* Read a member of the environment: "peak_gflops" or "peak_gbps" with one value or an object of
 * precisions, or a precision with an object of these two. */
static enum rfl_rc take_member(struct rfl_peaks_env *env, const char *name, const json_t *item,
			       const char *source, struct rfl_reader *r)
{
	const bool precision = strncmp(name, "peak_", 5) != 0;
	const char *const *keys = precision ? peak_keys : precisions;
	enum rfl_rc rc;

	if (!json_is_object(item))
		return precision
			       ? rfl_where_fail(&r->where, r->err,
						"must be an object such as {\"peak_gflops\": 420}")
			       : add(env, strcmp(name, "peak_gflops") == 0 ? "*" : NULL, item,
				     source, name, r);
	rc = rfl_json_only_keys(item, keys, r->where.file, r->where.pointer, r->err);
	if (rc == RFL_OK && json_object_size(item) == 0)
		rc = rfl_where_fail(
			&r->where, r->err,
			precision ? "is empty; add the key \"peak_gflops\""
				  : "must be a number, null, or a non-empty object of precisions");
	for (; rc == RFL_OK && *keys; keys++) {
		const json_t *each = json_object_get(item, *keys);
		const bool compute = strcmp(precision ? *keys : name, "peak_gflops") == 0;
		const size_t mark = rfl_where_key(&r->where, *keys);
		char cell[64];

		snprintf(cell, sizeof(cell), "%s.%s", name, *keys);
		if (each)
			rc = add(env,
				 !compute    ? NULL
				 : precision ? name
					     : *keys,
				 each, source, cell, r);
		rfl_where_up(&r->where, mark);
	}
	return rc;
}

static enum rfl_rc parse_short(const json_t *value, struct rfl_peaks_env *env, struct rfl_reader *r)
{
	const json_t *given = json_object_get(value, "source");
	const char *source = "entered by the user (short form)";
	enum rfl_rc rc =
		rfl_json_only_keys(value, env_keys, r->where.file, r->where.pointer, r->err);

	if (rc != RFL_OK)
		return rc;
	env->short_form = true;
	env->compute = rfl_arena_array(r->arena, RFL_ARRAY_LEN(precisions), sizeof(*env->compute));
	env->levels = rfl_arena_array(r->arena, 1, sizeof(*env->levels));
	if (given && (!json_is_string(given) || !*json_string_value(given))) {
		(void)rfl_where_key(&r->where, "source");
		return rfl_where_fail(&r->where, r->err, "must be a non-empty string");
	}
	if (given)
		source = rfl_arena_strdup(r->arena, json_string_value(given));
	if (!env->compute || !env->levels || !source)
		return rfl_rules__no_memory(r);
	for (const char *const *key = env_keys; rc == RFL_OK && *key; key++) {
		const json_t *item = json_object_get(value, *key);
		const size_t mark = rfl_where_key(&r->where, *key);

		if (item && item != given)
			rc = take_member(env, *key, item, source, r);
		rfl_where_up(&r->where, mark);
	}
	return rc;
}

/* --- the file --- */

static bool is_long_file(const json_t *root)
{
	return json_object_get(root, "environments") || json_object_get(root, "schema_version");
}

json_t *rfl_peaks__environments(json_t *root)
{
	return is_long_file(root) ? json_object_get(root, "environments") : root;
}

static enum rfl_rc check_top(const json_t *root, struct rfl_reader *r)
{
	static const char *const keys[] = { "$schema", "generated_by", "schema_version",
					    "environments", NULL };
	const struct rfl_where *w = &r->where;
	const json_t *version = json_object_get(root, "schema_version");
	const char *text = json_string_value(version);
	enum rfl_rc rc = rfl_json_only_keys(root, keys, w->file, w->pointer, r->err);

	if (rc == RFL_OK && !version)
		rc = rfl_where_fail(w, r->err,
				    "the key \"schema_version\" is missing; add "
				    "\"schema_version\": \"" RFL_PEAKS_SCHEMA_VERSION "\"");
	if (rc == RFL_OK && (!text || strcmp(text, RFL_PEAKS_SCHEMA_VERSION) != 0))
		rc = rfl_where_fail(w, r->err,
				    "schema_version must be \"" RFL_PEAKS_SCHEMA_VERSION
				    "\"%s%s%s; use a version of roofline that supports this file",
				    text ? ", is \"" : "", text ? text : "", text ? "\"" : "");
	for (size_t i = 0; rc == RFL_OK && i < 2; i++) {
		const json_t *value = json_object_get(root, keys[i]);
		const size_t mark = rfl_where_key(&r->where, keys[i]);

		if (value && !json_is_string(value))
			rc = rfl_where_fail(w, r->err, "must be a string");
		rfl_where_up(&r->where, mark);
	}
	if (rc == RFL_OK && !json_object_get(root, "environments"))
		rc = rfl_where_fail(
			w, r->err,
			"the key \"environments\" is missing; add an object of environments");
	return rc;
}

enum rfl_rc rfl_peaks__parse(json_t *root, struct rfl_peaks *p, struct rfl_err *err)
{
	const bool long_file = is_long_file(root);
	struct rfl_reader r = { .arena = p->arena, .err = err };
	struct rfl_where *const w = &r.where;
	const char *name;
	json_t *envs, *value;
	enum rfl_rc rc;

	rfl_where_begin(w, p->path, "");
	if (!json_is_object(root))
		return rfl_where_fail(w, err, "must be an object of environments");
	if (long_file && (rc = check_top(root, &r)))
		return rc;
	envs = rfl_peaks__environments(root);
	if (long_file)
		(void)rfl_where_key(w, "environments");
	if (!json_is_object(envs) || json_object_size(envs) == 0)
		return rfl_where_fail(w, err,
				      "must be an object with at least one environment; create one "
				      "with 'roofline peaks measure'");
	p->envs = rfl_arena_array(p->arena, json_object_size(envs), sizeof(*p->envs));
	if (!p->envs)
		return rfl_rules__no_memory(&r);
	json_object_foreach(envs, name, value)
	{
		const size_t mark = rfl_where_key(w, name);
		struct rfl_peaks_env *env = &p->envs[p->nenvs++];

		if (!rfl_text_is_env_name(name))
			return rfl_where_fail(w, err,
					      "not a valid environment name; " RFL_ENV_NAME_RULE);
		if (!(env->name = rfl_arena_strdup(p->arena, name)))
			return rfl_rules__no_memory(&r);
		if (rfl_peaks__is_short(value))
			rc = parse_short(value, env, &r);
		else if (long_file)
			rc = parse_long(value, env, &r);
		else if (json_object_get(value, "compute") || json_object_get(value, "memory"))
			rc = rfl_where_fail(w, err,
					    "an environment in the long form must be a member of "
					    "\"environments\"; also add \"schema_version\": "
					    "\"" RFL_PEAKS_SCHEMA_VERSION "\"");
		else
			rc = rfl_where_fail(w, err,
					    "must be an object such as {\"peak_gflops\": 420, "
					    "\"peak_gbps\": 92}");
		rfl_where_up(w, mark);
		if (rc != RFL_OK)
			return rc;
	}
	return RFL_OK;
}

enum rfl_rc rfl_peaks_loads(const char *text, size_t len, const char *path, struct rfl_peaks **ret,
			    struct rfl_err *err)
{
	json_t *root = NULL;
	struct rfl_peaks *p = NULL;
	enum rfl_rc rc = read_text(text, len, path, &root, err);

	if (rc != RFL_OK)
		goto done;
	p = calloc(1, sizeof(*p));
	if (!p || !(p->arena = rfl_arena_new()) || !(p->path = rfl_arena_strdup(p->arena, path)) ||
	    !(p->text = rfl_arena_strdup(p->arena, text))) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
		goto done;
	}
	rc = rfl_peaks__parse(root, p, err);
	if (rc != RFL_OK)
		goto done;

	rfl_hash64_text(rfl_hash64(0, text, len), p->hash);
	*ret = p;
	p = NULL;
done:
	rfl_peaks_free(p);
	json_decref(root);
	return rc;
}

enum rfl_rc rfl_peaks_load(const char *path, struct rfl_peaks **ret, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_loads(rfl_buf_str(&text), text.len, path, ret, err);
	rfl_buf_fini(&text);
	return rc;
}

void rfl_peaks_free(struct rfl_peaks *p)
{
	if (!p)
		return;
	rfl_arena_free(p->arena);
	free(p);
}
