/*
 * record.c - records an environment in env.json. If its values have changed, the old record moves
 * to the history.
 */
#include "runner/env/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "rfl_config.h"

/* Members of a record that are volatile or not values about the machine. */
static const char *const volatile_keys[] = { "recorded_utc", "recorded_by", "now",         "notes",
					     "history",      "missing",     "replaced_utc" };

/* ---- comparing ---- */

/* A copy of the values, without the data directory, which may differ between runs. */
static json_t *facts_of(const json_t *record)
{
	json_t *copy = json_deep_copy(record), *storage = json_object_get(copy, "storage"), *one;
	size_t i;

	for (size_t k = 0; k < RFL_ARRAY_LEN(volatile_keys); k++)
		(void)json_object_del(copy, volatile_keys[k]);
	(void)json_object_del(storage, "data");
	/* the size of a ZFS file system depends on the others in its pool */
	(void)json_object_del(json_object_get(storage, "logs"), "size_bytes");
	json_array_foreach(json_object_get(json_object_get(copy, "network"), "interfaces"), i, one)
	{
		(void)json_object_del(one, "up");
		(void)json_object_del(one, "speed_bit_per_s");
	}
	return copy;
}

/* Up to three differences, such as "processor.cores was 4, is 8". */
struct differences {
	struct rfl_buf text;
	size_t n;
};

/* New engines and new values about an engine do not count as differences. */
static void compare(struct differences *d, const char *path, const json_t *was, const json_t *is)
{
	const bool may_grow = strncmp(path, "engines", strlen("engines")) == 0;
	char below[512], a[64], b[64];
	const char *key;
	const json_t *value;

	if (json_is_object(was) && json_is_object(is)) {
		json_object_foreach((json_t *)(uintptr_t)was, key, value)
		{
			snprintf(below, sizeof(below), "%.400s%s%.100s", path, *path ? "." : "",
				 key);
			compare(d, below, value, json_object_get(is, key));
		}
		json_object_foreach((json_t *)(uintptr_t)is, key, value)
		{
			snprintf(below, sizeof(below), "%.400s%s%.100s", path, *path ? "." : "",
				 key);
			if (!json_object_get(was, key))
				compare(d, below, NULL, value);
		}
	} else if (!(may_grow && (!was || json_is_null(was))) && !json_equal(was, is) &&
		   d->n++ < 3) {
		rfl_buf_printf(&d->text, "%s%s was %s, is %s", d->n > 1 ? "; " : "", path,
			       was ? rfl_json_show(was, a, sizeof(a)) : "absent",
			       is ? rfl_json_show(is, b, sizeof(b)) : "absent");
	}
}

/* Copy engines and the data directory from the old record if the new one lacks them. */
static void take_over(const json_t *was, json_t *is)
{
	json_t *engines = json_object_get(is, "engines"), *missing = json_object_get(is, "missing");
	json_t *storage = json_object_get(is, "storage"), *value, *old;
	json_t *data = json_object_get(json_object_get(was, "storage"), "data");
	const char *key, *fact;
	char path[256];

	json_object_foreach(json_object_get(was, "engines"), key, value)
	{
		json_t *mine = json_object_get(engines, key);

		if (!mine)
			(void)json_object_set(engines, key, value);
		json_object_foreach(mine ? value : NULL, fact, old)
		{
			if (json_is_null(old) || !json_is_null(json_object_get(mine, fact)))
				continue;
			(void)json_object_set(mine, fact, old);
			snprintf(path, sizeof(path), "/engines/%.100s/%.100s", key, fact);
			(void)json_object_del(missing, path);
		}
	}
	if (json_is_object(data) && json_is_null(json_object_get(storage, "data"))) {
		(void)json_object_set(storage, "data", data);
		(void)json_object_del(missing, "/storage/data");
	}
}

enum rfl_rc rfl_env_check_note(const char *note, struct rfl_err *err)
{
	size_t key = strspn(note, "abcdefghijklmnopqrstuvwxyz0123456789_");

	if (key == 0 || key > 48 || note[key] != '=')
		return rfl_fail(err, RFL_EINVAL, 0,
				"note '%.60s' is not KEY=VALUE; use a key of a-z, 0-9 and _, for "
				"example zone=us-central1-a",
				note);
	for (const char *at = note + key + 1; *at;) {
		size_t n = rfl_text_utf8(at, strlen(at));

		if (n == 0 || rfl_text_control(at) > 0)
			return rfl_fail(err, RFL_EINVAL, 0, "note '%.*s': the value must be %s",
					(int)key, note, n == 0 ? "UTF-8" : "one line of text");
		at += n;
	}
	return RFL_OK;
}

/* ---- the file ---- */

static enum rfl_rc load(const char *path, json_t **ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc;

	if (!rfl_file_exists(path)) {
		*ret = json_pack("{s:s, s:{}}", "schema_version", RFL_ENV_SCHEMA, "environments");
		return RFL_OK;
	}
	rc = rfl_json_load(path, ret, &why);
	if (rc)
		return rfl_fail(err, rc, why.native, "%s%s", why.msg,
				rc == RFL_EFORMAT
					? "; it is left unchanged: repair it or move it away"
					: "");
	if (rfl_text_same(json_string_value(json_object_get(*ret, "schema_version")),
			  RFL_ENV_SCHEMA) &&
	    json_is_object(json_object_get(*ret, "environments")))
		return RFL_OK;
	return rfl_fail(err, RFL_EFORMAT, 0,
			"%s: not an env.json of this program (schema_version %s): move it away, or "
			"use another --log-dir",
			path, RFL_ENV_SCHEMA);
}

/* Move the old record to the history, and remove records from it that match the new values. */
static void remember(json_t *history, const json_t *was, const json_t *facts, const char *now)
{
	json_t *old = json_deep_copy(was), *entry;
	size_t i = 0;

	while (i < json_array_size(history)) {
		entry = facts_of(json_array_get(history, i));
		if (json_equal(entry, facts))
			(void)json_array_remove(history, i);
		else
			i++;
		json_decref(entry);
	}
	(void)json_object_del(old, "history");
	(void)json_object_set_new(old, "replaced_utc", json_string(now));
	(void)json_array_append_new(history, old);
}

static enum rfl_rc update(const struct rfl_env_spec *spec, const char *path, json_t *document,
			  struct rfl_env_result *r, struct rfl_err *err)
{
	json_t *environments = json_object_get(document, "environments");
	json_t *was = json_object_get(environments, spec->env);
	json_auto_t *is = NULL, *notes = NULL, *history = NULL;
	json_auto_t *old_facts = NULL, *new_facts = NULL;
	struct differences d = { .n = 0 };
	char now[RFL_TIME_ISO_SIZE];
	enum rfl_rc rc = rfl_env__facts(spec, &is, err);

	if (rc)
		return rc;
	rfl_clock_iso(now);
	notes = json_incref(json_object_get(was, "notes"));
	notes = notes ? notes : json_object();
	history = json_incref(json_object_get(was, "history"));
	history = history ? history : json_array();
	r->created = r->written = !was;
	rfl_buf_init(&d.text, 0);

	/* add a new engine or data directory without a warning */
	if (was) {
		take_over(was, is);
		r->written = !json_equal(json_object_get(was, "engines"),
					 json_object_get(is, "engines")) ||
			     !json_equal(json_object_get(json_object_get(was, "storage"), "data"),
					 json_object_get(json_object_get(is, "storage"), "data"));
		old_facts = facts_of(was);
		new_facts = facts_of(is);
		compare(&d, "", old_facts, new_facts);
	}
	if (d.n > 0) {
		r->changed = r->written = true;
		rfl_log(RFL_LOG_WARN,
			"%s: environment '%s' has changed: %s%s; the old record is in its history "
			"(for another machine, use another --env)",
			path, spec->env, rfl_buf_str(&d.text), d.n > 3 ? "; and more" : "");
		remember(history, was, new_facts, now);
	}

	for (size_t i = 0; i < spec->nnotes; i++) {
		const char *value = strchr(spec->notes[i], '=');
		char key[64];

		if ((rc = rfl_env_check_note(spec->notes[i], err)))
			goto done;
		snprintf(key, sizeof(key), "%.*s", (int)(value - spec->notes[i]), spec->notes[i]);
		if (value[1])
			(void)json_object_set_new(notes, key, json_string(value + 1));
		else
			(void)json_object_del(notes, key);
		r->written = true;
	}

	r->written |= spec->refresh;
	if (r->written) {
		(void)json_object_set_new(is, "recorded_utc", json_string(now));
		(void)json_object_set_new(is, "recorded_by", json_string("roofline " RFL_VERSION));
		(void)json_object_set(is, "notes", notes);
		(void)json_object_set(is, "history", history);
		(void)json_object_set(environments, spec->env, is);
	}
done:
	rfl_buf_fini(&d.text);
	return rc;
}

/* Write the page, but keep an existing one that this program did not generate. */
static enum rfl_rc write_page(const char *path, const json_t *document, struct rfl_err *err)
{
	static const char mark[] = RFL_ENV__PAGE_MARK;
	RFL_AUTO(buf) text = { .len = 0 };
	enum rfl_rc rc = RFL_OK;

	if (rfl_file_size(path) > 0)
		rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK && text.len > 0 &&
	    (text.len < strlen(mark) || memcmp(text.data, mark, strlen(mark)) != 0)) {
		rfl_log(RFL_LOG_WARN,
			"%s: not generated by this program and left unchanged; print the page with "
			"'roofline env --format md'",
			path);
		return rc;
	}
	rfl_buf_reset(&text);
	rfl_env_page(document, NULL, true, &text);
	if (rc == RFL_OK && (rc = rfl_buf_check(&text, path, err)) == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
	return rc;
}

enum rfl_rc rfl_env_record(const struct rfl_env_spec *spec, struct rfl_env_result *ret,
			   struct rfl_err *err)
{
	RFL_AUTOFREE char *path = rfl_path_join(spec->log_dir, "env.json");
	RFL_AUTOFREE char *page = rfl_path_join(spec->log_dir, "env_info.md");
	RFL_AUTO(env_result) r = { .document = NULL };
	enum rfl_rc rc;

	if ((rc = rfl_file_check_use(path, RFL_FILE_OPTIONAL, err)) ||
	    (rc = rfl_file_check_use(page, RFL_FILE_OPTIONAL, err)) ||
	    (rc = load(path, &r.document, err)) || (rc = update(spec, path, r.document, &r, err)))
		return rc;
	if (r.written && ((rc = rfl_file_mkdirs(spec->log_dir, err)) ||
			  (rc = rfl_json_save(path, r.document, err))))
		return rc;
	if ((r.written || !rfl_file_exists(page)) && (rc = write_page(page, r.document, err)))
		return rc;
	*ret = r;
	r.document = NULL;
	return RFL_OK;
}

void rfl_env_result_fini(struct rfl_env_result *r)
{
	json_decref(r->document);
	r->document = NULL;
}
