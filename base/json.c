/*
 * json.c - jansson with the strictness that configuration files need.
 */
#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/where.h"

/*
 * jansson's lexer calls a failed allocation a syntax error. So that a large file on a small machine
 * is not called wrong, its allocator is wrapped once to remember that an allocation failed.
 */
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static json_malloc_t inner_malloc;
static _Thread_local bool out_of_memory;

static void *watched_malloc(size_t size)
{
	void *p = inner_malloc(size);

	if (!p)
		out_of_memory = true;
	return p;
}

static void watch_allocator(void)
{
	json_free_t inner_free;

	json_get_alloc_funcs(&inner_malloc, &inner_free);
	json_set_alloc_funcs(watched_malloc, inner_free);
}

static enum rfl_rc fail_load(struct rfl_err *err, const char *name, json_error_t *je)
{
	if (out_of_memory || je->text[0] == '\0' || json_error_code(je) == json_error_out_of_memory)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	if (je->line < 1)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s", name, je->text);
	return rfl_fail(err, RFL_EFORMAT, 0, "%s:%d:%d: %s", name, je->line, je->column, je->text);
}

/* What a text is that does not even begin as JSON does; NULL: it does. */
static const char *not_json(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	if (at == len)
		return "is empty";
	if (text[at] == '{' || text[at] == '[')
		return NULL;
	if (len - at >= 3 && memcmp(text + at, "\xef\xbb\xbf", 3) == 0)
		return "begins with a byte order mark: save it without one";
	while (at < len && text[at] != '\n' && text[at] != ',')
		at++;
	return at < len && text[at] == ',' ? "not JSON (looks like CSV): is this the ledger?"
					   : "not JSON";
}

enum rfl_rc rfl_json_loads(const char *text, size_t len, const char *name, json_t **ret,
			   struct rfl_err *err)
{
	json_error_t je;
	const char *why = not_json(text, len);
	json_t *value;

	if (why)
		return rfl_fail(err, RFL_EFORMAT, 0, "%s: %s", name, why);
	pthread_once(&watch_once, watch_allocator);
	out_of_memory = false;
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!value)
		return fail_load(err, name, &je);
	*ret = value;
	return RFL_OK;
}

enum rfl_rc rfl_json_load(const char *path, json_t **ret, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK)
		rc = rfl_json_loads(rfl_buf_str(&text), text.len, path, ret, err);
	rfl_buf_fini(&text);
	return rc;
}

static bool is_allowed(const char *key, const char *const *allowed)
{
	for (; *allowed; allowed++)
		if (strcmp(key, *allowed) == 0)
			return true;
	return false;
}

static enum rfl_rc fail_unknown(struct rfl_err *err, struct rfl_where *at, const char *key,
				const char *const *allowed)
{
	const char *nearest = rfl_text_nearest(key, allowed);
	struct rfl_buf known;
	enum rfl_rc rc;

	(void)rfl_where_key(at, key);
	if (nearest)
		return rfl_where_fail(at, err, "unknown key; did you mean '%s'?", nearest);
	rfl_buf_init(&known, 2048);
	for (size_t i = 0; allowed[i]; i++)
		rfl_buf_printf(&known, "%s%s", i ? ", " : "", allowed[i]);
	rc = rfl_where_fail(at, err, "unknown key; known are %s", rfl_buf_str(&known));
	rfl_buf_fini(&known);
	return rc;
}

enum rfl_rc rfl_json_only_keys(const json_t *obj, const char *const *allowed, const char *file,
			       const char *path, struct rfl_err *err)
{
	json_t *o = (json_t *)(uintptr_t)obj; /* iterators take it without const, and only read */
	struct rfl_where at;

	rfl_where_begin(&at, file, path);
	if (!json_is_object(obj))
		return rfl_where_fail(&at, err, "must be an object");
	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const char *key = json_object_iter_key(it);

		if (!is_allowed(key, allowed))
			return fail_unknown(err, &at, key, allowed);
	}
	return RFL_OK;
}

const char *rfl_json_show(const json_t *value, char *out, size_t size)
{
	char *text;

	if (json_is_object(value))
		return json_object_size(value) ? "an object" : "an empty object";
	if (json_is_array(value))
		return json_array_size(value) ? "a list" : "an empty list";
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
	snprintf(out, size, "%.60s%s", text ? text : "?", text && strlen(text) > 60 ? "..." : "");
	free(text);
	return out;
}

json_t *rfl_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

enum rfl_rc rfl_json_save(const char *path, const json_t *value, struct rfl_err *err)
{
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rfl_json_write(&text, value);
	rfl_buf_putc(&text, '\n');
	rc = rfl_buf_check(&text, path, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	rfl_buf_fini(&text);
	return rc;
}
