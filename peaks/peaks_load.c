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

#define GIGA 1e9 /* values in the file are in GFLOP/s and GB/s */

static enum rfl_rc no_memory(const char *path, struct rfl_err *err)
{
	return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
}

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

/* Context for reading one environment. */
struct parse {
	struct rfl_arena *arena;
	struct rfl_peaks_env *env;
	struct rfl_where *w;
	struct rfl_err *err;
};

/* Copy a string member; NULL if absent. @return false if out of memory */
static bool take_text(const json_t *object, const char *key, struct rfl_arena *arena,
		      const char **ret)
{
	const char *text = json_string_value(json_object_get(object, key));

	*ret = text ? rfl_arena_strdup(arena, text) : NULL;
	return !text || *ret;
}

/* A number member times GIGA; NaN if absent or null. */
static double take_rate(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) * GIGA : (double)NAN;
}

/* The strings of a list as "a, b"; NULL if there are none. @return false if out of memory */
static bool take_list(const json_t *list, struct rfl_arena *arena, const char **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		*ret = rfl_arena_printf(arena, "%s%s%s", *ret ? *ret : "", *ret ? ", " : "",
					json_string_value(json_array_get(list, i)));
		if (!*ret)
			return false;
	}
	return true;
}

/* Copy a list of strings. @return false if out of memory */
static bool take_texts(const json_t *list, struct rfl_arena *arena, const char ***ret, size_t *n)
{
	*ret = rfl_arena_array(arena, json_array_size(list) + 1, sizeof(**ret));
	for (*n = 0; *ret && *n < json_array_size(list); ++*n) {
		(*ret)[*n] = rfl_arena_strdup(arena, json_string_value(json_array_get(list, *n)));
		if (!(*ret)[*n])
			return false;
	}
	return *ret != NULL;
}

static bool take_peak(const json_t *value, struct rfl_arena *arena, struct rfl_peak *peak)
{
	const json_t *source = json_object_get(value, "source");
	const json_t *method = json_object_get(value, "method");
	const json_t *stats = json_object_get(value, "stats");
	const json_t *conditions = json_object_get(value, "conditions");
	const json_t *clock = json_object_get(conditions, "clock_mhz");
	const json_t *limit = json_object_get(conditions, "power_limit_w");

	*peak = (struct rfl_peak){
		.status = (enum rfl_peak_status)rfl_peaks__status(
			json_string_value(json_object_get(value, "status"))),
		.value = take_rate(value, "value"),
		.spec = take_rate(value, "spec"),
		.upper_bound = take_rate(value, "upper_bound"),
		.threads = (int)json_integer_value(json_object_get(conditions, "threads")),
		.clock_hz = json_is_number(clock) ? json_number_value(clock) * 1e6 : (double)NAN,
		.power_limit_w = json_is_number(limit) ? json_number_value(limit) : (double)NAN,
		.working_set_bytes =
			json_integer_value(json_object_get(method, "working_set_bytes")),
		.nt_stores = json_is_true(json_object_get(method, "nt_stores")),
		.stats = { .n = json_integer_value(json_object_get(stats, "n")),
			   .median = take_rate(stats, "median"),
			   .min = take_rate(stats, "min"),
			   .max = take_rate(stats, "max") },
	};
	return take_texts(json_object_get(conditions, "doubts"), arena, &peak->doubts,
			  &peak->ndoubts) &&
	       take_text(value, "reason", arena, &peak->reason) &&
	       take_text(source, "title", arena, &peak->source) &&
	       take_text(source, "formula", arena, &peak->formula) &&
	       take_list(json_object_get(conditions, "throttle_reasons"), arena,
			 &peak->throttled) &&
	       take_text(method, "kernel", arena, &peak->kernel) &&
	       take_text(method, "measured_at", arena, &peak->measured_at);
}

/* The working sets that were tried for a level. @return false if out of memory */
static bool take_sweep(const json_t *list, struct rfl_arena *arena, struct rfl_peak_level *level)
{
	const size_t n = json_array_size(list);

	level->sweep = rfl_arena_array(arena, n + 1, sizeof(*level->sweep));
	for (size_t i = 0; level->sweep && i < n; i++) {
		const json_t *item = json_array_get(list, i);
		struct rfl_peak_size *s = &level->sweep[level->nsweep++];

		if (!take_text(item, "scope", arena, &s->scope))
			return false;
		s->working_set_bytes =
			json_integer_value(json_object_get(item, "working_set_bytes"));
		s->value = take_rate(item, "gbs");
	}
	return level->sweep != NULL;
}

/* The long form; rules.c checks it before anything is copied. */
static enum rfl_rc parse_long(struct parse *p, const json_t *value)
{
	struct rfl_peaks_env *env = p->env;
	struct rfl_arena *arena = p->arena;
	const json_t *device, *memory, *ceiling, *notes;
	json_t *compute;
	const char *key;
	enum rfl_rc rc;
	bool ok;

	if (json_is_null(value))
		return rfl_where_fail(p->w, p->err,
				      "must not be null; measure the environment with 'roofline "
				      "peaks measure' or remove it");
	rc = rfl_rules__check(value, rfl_rules_environment, p->w, p->err);
	if (rc != RFL_OK)
		return rc;
	device = json_object_get(value, "device");
	compute = json_object_get(value, "compute");
	memory = json_object_get(value, "memory");
	env->units = (int)json_integer_value(json_object_get(device, "units"));
	env->virtualised =
		json_is_true(json_object_get(json_object_get(value, "host"), "virtualised"));
	notes = json_object_get(value, "notes");
	for (size_t i = 0; i < json_array_size(notes); i++)
		env->ecc |= strcmp(json_string_value(json_array_get(notes, i)),
				   RFL_PEAKS_NOTE_ECC) == 0;
	env->compute = rfl_arena_array(arena, json_object_size(compute), sizeof(*env->compute));
	env->levels = rfl_arena_array(arena, json_array_size(memory), sizeof(*env->levels));
	ok = env->compute && env->levels && take_text(value, "kind", arena, &env->kind) &&
	     take_text(device, "name", arena, &env->device);
	json_object_foreach(compute, key, ceiling)
	{
		struct rfl_peak_compute *c = ok ? &env->compute[env->ncompute++] : NULL;

		if (!ok)
			break;
		c->key = rfl_arena_strdup(arena, key);
		c->cell = rfl_arena_printf(arena, "compute.%s", key);
		ok = c->key && c->cell && take_peak(ceiling, arena, &c->peak);
	}
	for (size_t i = 0; ok && i < json_array_size(memory); i++) {
		const json_t *item = json_array_get(memory, i);
		struct rfl_peak_level *l = &env->levels[env->nlevels++];

		l->capacity_bytes = json_integer_value(json_object_get(item, "capacity_bytes"));
		ok = take_text(item, "level", arena, &l->level) &&
		     take_text(item, "scope", arena, &l->scope) &&
		     take_peak(json_object_get(item, "gbs"), arena, &l->peak) &&
		     take_sweep(json_object_get(item, "sweep"), arena, l);
	}
	for (size_t i = 0; ok && i < env->nlevels; i++) {
		struct rfl_peak_level *l = &env->levels[i];

		l->cell = rfl_peaks_is_part(env, l)
				  ? rfl_arena_printf(arena, "memory.%s.%s.gbs", l->level, l->scope)
				  : rfl_arena_printf(arena, "memory.%s.gbs", l->level);
		ok = l->cell != NULL;
	}
	return ok ? RFL_OK : no_memory(p->w->file, p->err);
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
static enum rfl_rc add(struct parse *p, bool compute, const char *key, const json_t *value,
		       const char *source, const char *cell)
{
	struct rfl_peaks_env *env = p->env;
	struct rfl_peak peak = { .status = RFL_PEAK_UNKNOWN,
				 .value = NAN,
				 .spec = NAN,
				 .upper_bound = NAN,
				 .clock_hz = NAN,
				 .power_limit_w = NAN,
				 .stats = { .median = NAN, .min = NAN, .max = NAN } };
	const char *copy = rfl_arena_strdup(p->arena, cell);

	if (!copy)
		return no_memory(p->w->file, p->err);
	for (size_t i = 0; compute && i < env->ncompute; i++)
		if (strcmp(env->compute[i].key, key) == 0)
			return rfl_where_fail(p->w, p->err, "also given as %s; remove one of them",
					      env->compute[i].cell);
	if (json_is_null(value)) {
		peak.reason = "null in the peaks file";
	} else {
		enum rfl_rc rc =
			rfl_rules__positive(value, "write null if it is unknown", p->w, p->err);

		if (rc != RFL_OK)
			return rc;
		peak.status = RFL_PEAK_USER;
		peak.value = json_number_value(value) * GIGA;
		peak.source = source;
	}
	if (compute) {
		env->compute[env->ncompute++] =
			(struct rfl_peak_compute){ .key = key, .cell = copy, .peak = peak };
	} else if (env->nlevels == 0) {
		env->levels[env->nlevels++] = (struct rfl_peak_level){
			.level = "DRAM", .scope = "device", .cell = copy, .peak = peak
		};
	} else {
		const struct rfl_peak_level *l = &env->levels[0];

		if (peak.value != l->peak.value && !(isnan(peak.value) && isnan(l->peak.value)))
			return rfl_where_fail(
				p->w, p->err,
				"differs from %s; bandwidth does not depend on precision, so write "
				"one peak_gbps next to the precisions",
				l->cell);
	}
	return RFL_OK;
}

/* Read a member of the environment: "peak_gflops" or "peak_gbps" with one value or an object of
 * precisions, or a precision with an object of these two. */
static enum rfl_rc take_member(struct parse *p, const json_t *env, const char *name,
			       const char *source)
{
	const bool precision = strncmp(name, "peak_", 5) != 0;
	const char *const *keys = precision ? peak_keys : precisions;
	const json_t *item = json_object_get(env, name);
	const size_t mark = rfl_where_key(p->w, name);
	enum rfl_rc rc = RFL_OK;

	if (!item)
		goto done;
	if (!json_is_object(item)) {
		rc = precision ? rfl_where_fail(p->w, p->err,
						"must be an object such as {\"peak_gflops\": 420}")
			       : add(p, strcmp(name, "peak_gflops") == 0, "*", item, source, name);
		goto done;
	}
	rc = rfl_json_only_keys(item, keys, p->w->file, p->w->pointer, p->err);
	if (rc == RFL_OK && json_object_size(item) == 0)
		rc = rfl_where_fail(
			p->w, p->err,
			precision ? "is empty; add the key \"peak_gflops\""
				  : "must be a number, null, or a non-empty object of precisions");
	for (size_t i = 0; rc == RFL_OK && keys[i]; i++) {
		const json_t *each = json_object_get(item, keys[i]);
		const size_t inner = rfl_where_key(p->w, keys[i]);
		char cell[64];

		snprintf(cell, sizeof(cell), "%s.%s", name, keys[i]);
		if (each)
			rc = add(p, strcmp(precision ? keys[i] : name, "peak_gflops") == 0,
				 precision ? name : keys[i], each, source, cell);
		rfl_where_up(p->w, inner);
	}
done:
	rfl_where_up(p->w, mark);
	return rc;
}

static enum rfl_rc parse_short(struct parse *p, const json_t *value)
{
	struct rfl_peaks_env *env = p->env;
	const json_t *given = json_object_get(value, "source");
	const char *source = "entered by the user (short form)";
	enum rfl_rc rc = rfl_json_only_keys(value, env_keys, p->w->file, p->w->pointer, p->err);

	if (rc != RFL_OK)
		return rc;
	env->short_form = true;
	env->compute = rfl_arena_array(p->arena, RFL_ARRAY_LEN(precisions), sizeof(*env->compute));
	env->levels = rfl_arena_array(p->arena, 1, sizeof(*env->levels));
	if (given && (!json_is_string(given) || !*json_string_value(given))) {
		(void)rfl_where_key(p->w, "source");
		return rfl_where_fail(p->w, p->err, "must be a non-empty string");
	}
	if (given)
		source = rfl_arena_strdup(p->arena, json_string_value(given));
	if (!env->compute || !env->levels || !source)
		return no_memory(p->w->file, p->err);
	for (size_t i = 0; rc == RFL_OK && env_keys[i]; i++)
		if (strcmp(env_keys[i], "source") != 0)
			rc = take_member(p, value, env_keys[i], source);
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

static enum rfl_rc check_top(const json_t *root, struct rfl_where *w, struct rfl_err *err)
{
	static const char *const keys[] = { "$schema", "generated_by", "schema_version",
					    "environments", NULL };
	const json_t *version = json_object_get(root, "schema_version");
	const char *text = json_string_value(version);
	enum rfl_rc rc = rfl_json_only_keys(root, keys, w->file, w->pointer, err);

	if (rc == RFL_OK && !version)
		rc = rfl_where_fail(w, err,
				    "the key \"schema_version\" is missing; add "
				    "\"schema_version\": \"" RFL_PEAKS_SCHEMA_VERSION "\"");
	if (rc == RFL_OK && (!text || strcmp(text, RFL_PEAKS_SCHEMA_VERSION) != 0))
		rc = rfl_where_fail(w, err,
				    "schema_version must be \"" RFL_PEAKS_SCHEMA_VERSION
				    "\"%s%s%s; use a version of roofline that supports this file",
				    text ? ", is \"" : "", text ? text : "", text ? "\"" : "");
	for (size_t i = 0; rc == RFL_OK && i < 2; i++) {
		const json_t *value = json_object_get(root, keys[i]);
		const size_t mark = rfl_where_key(w, keys[i]);

		if (value && !json_is_string(value))
			rc = rfl_where_fail(w, err, "must be a string");
		rfl_where_up(w, mark);
	}
	if (rc == RFL_OK && !json_object_get(root, "environments"))
		rc = rfl_where_fail(
			w, err,
			"the key \"environments\" is missing; add an object of environments");
	return rc;
}

enum rfl_rc rfl_peaks__parse(json_t *root, struct rfl_peaks *p, struct rfl_err *err)
{
	const bool long_file = is_long_file(root);
	struct rfl_where w;
	const char *name;
	json_t *envs, *value;
	enum rfl_rc rc = RFL_OK;

	rfl_where_begin(&w, p->path, "");
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
				      "must be an object with at least one environment; create one "
				      "with 'roofline peaks measure'");
	p->envs = rfl_arena_array(p->arena, json_object_size(envs), sizeof(*p->envs));
	if (!p->envs)
		return no_memory(p->path, err);
	json_object_foreach(envs, name, value)
	{
		const size_t mark = rfl_where_key(&w, name);
		struct rfl_peaks_env *env = &p->envs[p->nenvs];
		struct parse one = { .arena = p->arena, .env = env, .w = &w, .err = err };

		if (!rfl_text_is_env_name(name))
			return rfl_where_fail(&w, err,
					      "not a valid environment name; " RFL_ENV_NAME_RULE);
		env->name = rfl_arena_strdup(p->arena, name);
		if (!env->name)
			return no_memory(p->path, err);
		p->nenvs++;
		if (rfl_peaks__is_short(value))
			rc = parse_short(&one, value);
		else if (long_file)
			rc = parse_long(&one, value);
		else if (json_object_get(value, "compute") || json_object_get(value, "memory"))
			rc = rfl_where_fail(&w, err,
					    "an environment in the long form must be a member of "
					    "\"environments\"; also add \"schema_version\": "
					    "\"" RFL_PEAKS_SCHEMA_VERSION "\"");
		else
			rc = rfl_where_fail(&w, err,
					    "must be an object such as {\"peak_gflops\": 420, "
					    "\"peak_gbps\": 92}");
		rfl_where_up(&w, mark);
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
	if (!p || !(p->arena = rfl_arena_new(0)) || !(p->path = rfl_arena_strdup(p->arena, path)) ||
	    !(p->text = rfl_arena_strdup(p->arena, text))) {
		rc = no_memory(path, err);
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
