/*
 * peaks_load.c - reads peaks.json: parses the JSON, detects its form, and reads its environments.
 */
#include "peaks/peaks.h"

#include <math.h>
#include <stdio.h>
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
	const char *what, *hint = "";
	struct rfl_where w;
	enum rfl_rc rc = rfl_json_loads(text, len, path, ret, &first);

	if (rc == RFL_OK)
		return RFL_OK;
	if (first.native <= 0) /* the text does not begin like JSON */
		return rfl_err_pass(err, &first);
	rfl_where_begin(&w, path, "");
	find_place(text, (size_t)first.native < len ? (size_t)first.native : len, &w);
	what = first.msg + strlen(path) + 1;
	what += strspn(what, ":0123456789"); /* the line and column */
	if (strstr(what, "NaN") || strstr(what, "nan") || strstr(what, "Inf"))
		hint = "; JSON has no such number; write null in the short form, or {\"status\": "
		       "\"unknown\", \"value\": null, \"reason\": \"...\"} in the long form";
	else if (strstr(what, "duplicate"))
		hint = "; remove one of them";
	return rfl_fail(err, RFL_EFORMAT, 0, "%.*s %s:%s%s", (int)(what - first.msg), first.msg,
			w.len ? w.pointer : "/", what, hint);
}

enum rfl_rc rfl_peaks__read(const char *path, json_t **ret, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK)
		rc = read_text(rfl_buf_str(&text), text.len, path, ret, err);
	return rc;
}

/* --- one environment --- */

static void parse_long(struct rfl_bind *b, const json_t *value, struct rfl_peaks_env *env)
{
	if (json_is_null(value))
		rfl_bind_refuse(b, "must not be null; measure the environment with 'roofline "
				   "peaks measure' or remove it");
	rfl_bind_read(b, value, rfl_rules_environment, env);
	for (size_t i = 0; i < env->nnotes && !b->rc; i++)
		env->ecc |= strcmp(env->notes[i], RFL_PEAKS_NOTE_ECC) == 0;
	if (!b->rc)
		rfl_rules__name_cells(env, b->arena);
}

/*
 * The short form, for manual editing; null means unknown:
 *
 *   "lab_cpu": {"peak_gflops": 420, "peak_gbps": 92}
 *   "lab_gpu": {"peak_gflops": {"fp32": 30300, "amp": 121000}, "peak_gbps": 300}
 *   "lab_gpu": {"fp32": {"peak_gflops": 30300}, "amp": {"peak_gflops": 121000}, "peak_gbps": 300}
 */
#define PRECISIONS "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "amp"

const char *const rfl_peaks_precisions[] = { PRECISIONS, NULL };
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
static void add(struct rfl_bind *b, struct rfl_peaks_env *env, const char *key, const json_t *value,
		const char *source, const char *cell)
{
	const struct rfl_peak_level *l = &env->levels[0];
	struct rfl_peak peak = rfl_peak_none;

	for (size_t i = 0; key && i < env->ncompute; i++)
		if (strcmp(env->compute[i].key, key) == 0)
			rfl_bind_refuse(b, "also given as %s; remove one of them",
					env->compute[i].cell);
	if (json_is_null(value)) {
		peak.reason = "null in the peaks file";
	} else {
		rfl_rules__rate(b, value, "write null if it is unknown", &peak.value);
		peak.status = RFL_PEAK_USER;
		peak.source = source;
	}
	if (b->rc)
		return;
	cell = rfl_arena_strdup(b->arena, cell);
	if (key)
		env->compute[env->ncompute++] =
			(struct rfl_peak_compute){ .key = key, .cell = cell, .peak = peak };
	else if (env->nlevels == 0)
		env->levels[env->nlevels++] = (struct rfl_peak_level){
			.level = "DRAM", .scope = "device", .cell = cell, .peak = peak
		};
	else if (peak.value != l->peak.value && !(isnan(peak.value) && isnan(l->peak.value)))
		rfl_bind_refuse(b,
				"differs from %s; bandwidth does not depend on precision, so write "
				"one peak_gbps next to the precisions",
				l->cell);
}

/* Read a member of the environment: "peak_gflops" or "peak_gbps" with one value or an object of
 * precisions, or a precision with an object of these two. */
static void take_member(struct rfl_bind *b, struct rfl_peaks_env *env, const char *name,
			const json_t *item, const char *source)
{
	const bool precision = strncmp(name, "peak_", 5) != 0;
	const char *const *keys = precision ? peak_keys : rfl_peaks_precisions;

	if (!json_is_object(item) && precision)
		rfl_bind_refuse(b, "must be an object such as {\"peak_gflops\": 420}");
	else if (!json_is_object(item))
		add(b, env, strcmp(name, "peak_gflops") == 0 ? "*" : NULL, item, source, name);
	else if (!b->rc)
		b->rc = rfl_where_only_keys(&b->at, item, keys, b->err);
	if (json_is_object(item) && json_object_size(item) == 0)
		rfl_bind_refuse(
			b, precision
				   ? "is empty; add the key \"peak_gflops\""
				   : "must be a number, null, or a non-empty object of precisions");
	for (; json_is_object(item) && !b->rc && *keys; keys++) {
		const json_t *each = json_object_get(item, *keys);
		const bool compute = strcmp(precision ? *keys : name, "peak_gflops") == 0;
		const size_t mark = rfl_where_key(&b->at, *keys);
		char cell[64];

		snprintf(cell, sizeof(cell), "%s.%s", name, *keys);
		if (each)
			add(b, env, !compute ? NULL : precision ? name : *keys, each, source, cell);
		rfl_where_up(&b->at, mark);
	}
}

static void parse_short(struct rfl_bind *b, const json_t *value, struct rfl_peaks_env *env)
{
	const struct rfl_member source = { "source", .kind = RFL_BIND_TEXT,
					   .size = sizeof(const char *), .filled = true };
	const char *given = "entered by the user (short form)";

	b->rc = rfl_where_only_keys(&b->at, value, env_keys, b->err);
	rfl_bind_key(b, value, &source, &given);
	env->short_form = true;
	env->compute = rfl_arena_array(b->arena, RFL_ARRAY_LEN(rfl_peaks_precisions),
				       sizeof(*env->compute));
	env->levels = rfl_arena_array(b->arena, 1, sizeof(*env->levels));
	for (const char *const *key = env_keys; !b->rc && *key; key++) {
		const json_t *item = json_object_get(value, *key);
		const size_t mark = rfl_where_key(&b->at, *key);

		if (item && strcmp(*key, "source") != 0)
			take_member(b, env, *key, item, given);
		rfl_where_up(&b->at, mark);
	}
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

/* Read after the other members. */
static void no_value(struct rfl_bind *b, const json_t *value, void *member)
{
	(void)b, (void)value, (void)member;
}

static bool is_version(const char *text)
{
	return strcmp(text, RFL_PEAKS_SCHEMA_VERSION) == 0;
}

static void check_top(struct rfl_bind *b, const json_t *root)
{
	static const struct rfl_member top[] = {
		{ "$schema", RFL_CHECKED(TEXT) },
		{ "generated_by", RFL_CHECKED(TEXT) },
		{ "schema_version", RFL_CHECKED(TEXT), .must = true, .valid = is_version,
		  .what = "\"" RFL_PEAKS_SCHEMA_VERSION "\"",
		  .fix = "use a version of roofline that supports this file",
		  .example = "\"" RFL_PEAKS_SCHEMA_VERSION "\"" },
		{ "environments", .kind = RFL_BIND_OTHER, .must = true, .read = no_value,
		  .example = "{...}" },
		{ .key = NULL },
	};

	rfl_bind_read(b, root, top, NULL);
}

static void parse_env(struct rfl_bind *b, const char *name, const json_t *value, void *to)
{
	struct rfl_peaks *p = to;
	struct rfl_peaks_env *env = &p->envs[p->nenvs++];

	if (!rfl_text_is_env_name(name))
		rfl_bind_refuse(b, "not a valid environment name; " RFL_ENV_NAME_RULE);
	env->name = rfl_arena_strdup(p->arena, name);
	if (b->rc)
		return;
	if (rfl_peaks__is_short(value))
		parse_short(b, value, env);
	else if (b->ctx)
		parse_long(b, value, env);
	else if (json_object_get(value, "compute") || json_object_get(value, "memory"))
		rfl_bind_refuse(b, "an environment in the long form must be a member of "
				   "\"environments\"; also add \"schema_version\": "
				   "\"" RFL_PEAKS_SCHEMA_VERSION "\"");
	else
		rfl_bind_refuse(b, "must be an object such as {\"peak_gflops\": 420, "
				   "\"peak_gbps\": 92}");
}

enum rfl_rc rfl_peaks__parse(json_t *root, struct rfl_peaks *p, struct rfl_err *err)
{
	const bool long_file = is_long_file(root);
	struct rfl_bind b = { .arena = p->arena, .err = err, .ctx = long_file ? p : NULL };
	json_t *envs;

	rfl_where_begin(&b.at, p->path, "");
	if (!json_is_object(root))
		rfl_bind_refuse(&b, "must be an object of environments");
	else if (long_file)
		check_top(&b, root);
	envs = rfl_peaks__environments(root);
	if (long_file)
		(void)rfl_where_key(&b.at, "environments");
	if (!json_is_object(envs) || json_object_size(envs) == 0)
		rfl_bind_refuse(&b, "must be an object with at least one environment; create one "
				    "with 'roofline peaks measure'");
	if (b.rc)
		return b.rc;
	p->envs = rfl_arena_array(p->arena, json_object_size(envs), sizeof(*p->envs));
	rfl_bind_each(&b, envs, parse_env, p);
	return b.rc;
}

enum rfl_rc rfl_peaks_loads(const char *text, size_t len, const char *path, struct rfl_peaks **ret,
			    struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_peaks *p = rfl_arena_array(arena, 1, sizeof(*p));
	json_auto_t *root = NULL;
	enum rfl_rc rc = read_text(text, len, path, &root, err);

	p->arena = arena;
	p->path = rfl_arena_strdup(arena, path);
	p->text = rfl_arena_strdup(arena, text);
	rfl_hash64_text(rfl_hash64(0, text, len), p->hash);
	if (rc == RFL_OK)
		rc = rfl_peaks__parse(root, p, err);
	if (rc == RFL_OK)
		*ret = p;
	else
		rfl_peaks_free(p);
	return rc;
}

enum rfl_rc rfl_peaks_load(const char *path, struct rfl_peaks **ret, struct rfl_err *err)
{
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc;

	rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK)
		rc = rfl_peaks_loads(rfl_buf_str(&text), text.len, path, ret, err);
	return rc;
}

void rfl_peaks_free(struct rfl_peaks *p)
{
	if (p)
		rfl_arena_free(p->arena);
}
