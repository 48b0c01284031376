/*
 * record.c - the record of an environment in env.json: made, compared with the one that is
 * there, and kept in its history when it no longer holds.
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

/* Of a record: members that are not facts of the machine, or change from minute to minute. */
static const char *const beside[] = { "recorded_utc", "recorded_by", "now",         "notes",
				      "history",      "missing",     "replaced_utc" };

/* ---- comparing ---- */

/* A copy of the facts alone. Engines and the folder of images are those of a run: what another run
 * used is no change. */
static json_t *facts_of(const json_t *record)
{
	json_t *copy = json_deep_copy(record);
	json_t *interfaces = json_object_get(json_object_get(copy, "network"), "interfaces");
	json_t *one;
	size_t i;

	for (size_t k = 0; k < RFL_ARRAY_LEN(beside); k++)
		(void)json_object_del(copy, beside[k]);
	(void)json_object_del(json_object_get(copy, "storage"), "data");
	(void)json_object_del(json_object_get(json_object_get(copy, "storage"), "logs"),
			      "size_bytes"); /* of a pool (ZFS) it changes with what others write */
	json_array_foreach(interfaces, i, one)
	{
		(void)json_object_del(one, "up");
		(void)json_object_del(one, "speed_bit_per_s");
	}
	return copy;
}

/* What differs, up to three of them, as "processor.cores was 4, is 8". */
struct differences {
	struct rfl_buf text;
	size_t n;
};

static void add_difference(struct differences *d, const char *path, const json_t *was,
			   const json_t *is)
{
	char a[64], b[64];

	if (d->n++ < 3)
		rfl_buf_printf(&d->text, "%s%s was %s, is %s", d->n > 1 ? "; " : "", path,
			       was ? rfl_json_show(was, a, sizeof(a)) : "absent",
			       is ? rfl_json_show(is, b, sizeof(b)) : "absent");
}

static void compare(struct differences *d, const char *path, const json_t *was, const json_t *is)
{
	char below[512];
	const char *key;
	const json_t *value;

	if (!json_is_object(was) || !json_is_object(is)) {
		if (!json_equal(was, is))
			add_difference(d, path, was, is);
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)was, key, value)
	{
		snprintf(below, sizeof(below), "%.400s%s%.100s", path, *path ? "." : "", key);
		compare(d, below, value, json_object_get(is, key));
	}
	json_object_foreach((json_t *)(uintptr_t)is, key, value)
	{
		snprintf(below, sizeof(below), "%.400s%s%.100s", path, *path ? "." : "", key);
		if (!json_object_get(was, key))
			add_difference(d, below, NULL, value);
	}
}

/* An engine that was not asked now is as it was recorded, and so is the folder of images. */
static enum rfl_rc take_over(const json_t *was, json_t *is)
{
	json_t *engines = json_object_get(is, "engines"), *missing = json_object_get(is, "missing");
	json_t *storage = json_object_get(is, "storage");
	json_t *data = json_object_get(json_object_get(was, "storage"), "data");
	const char *key;
	json_t *value;
	int failed = 0;

	json_object_foreach(json_object_get(was, "engines"), key, value)
	{
		const json_t *mine = json_object_get(engines, key);
		const char *fact;
		json_t *old;

		if (!mine) {
			failed |= json_object_set(engines, key, value);
			continue;
		}
		json_object_foreach(value, fact, old)
		{
			char path[256];

			if (json_is_null(old) || !json_is_null(json_object_get(mine, fact)))
				continue;
			failed |= json_object_set((json_t *)(uintptr_t)mine, fact, old);
			snprintf(path, sizeof(path), "/engines/%.100s/%.100s", key, fact);
			(void)json_object_del(missing, path);
		}
	}
	if (json_is_object(data) && json_is_null(json_object_get(storage, "data"))) {
		failed |= json_object_set(storage, "data", data);
		(void)json_object_del(missing, "/storage/data");
	}
	return failed ? RFL_ENOMEM : RFL_OK;
}

/* A new engine, or a folder of images that was not known, is added without a word. */
static bool adds_something(const json_t *was, const json_t *is)
{
	const json_t *old = json_object_get(was, "engines");
	const json_t *data = json_object_get(json_object_get(was, "storage"), "data");
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(is, "engines"), key, value)
	{
		if (!json_equal(json_object_get(old, key), value))
			return true;
	}
	return !json_equal(data, json_object_get(json_object_get(is, "storage"), "data"));
}

/* What only fills a null, or brings an engine, is no other machine. */
static void forget_additions(json_t *was, const json_t *is)
{
	json_t *old = json_object_get(was, "engines");
	const char *key, *fact;
	json_t *value, *mine;

	json_object_foreach(json_object_get(is, "engines"), key, value)
	{
		if (!json_object_get(old, key))
			json_object_set(old, key, value);
		json_object_foreach(value, fact, mine)
		{
			json_t *engine = json_object_get(old, key);

			if (json_is_null(json_object_get(engine, fact)))
				json_object_set(engine, fact, mine);
		}
	}
}

/* ---- notes ---- */

enum rfl_rc rfl_env_check_note(const char *note, struct rfl_err *err)
{
	size_t key = strspn(note, "abcdefghijklmnopqrstuvwxyz0123456789_");

	if (key == 0 || key > 48 || note[key] != '=')
		return rfl_fail(err, RFL_EINVAL, 0,
				"note '%.60s' is not KEY=VALUE with a key of a-z, 0-9 and _, for "
				"example zone=us-central1-a",
				note);
	for (const char *at = note + key + 1; *at;) {
		size_t n = rfl_text_utf8(at, strlen(at));

		if (n == 0 || rfl_text_control(at) > 0)
			return rfl_fail(err, RFL_EINVAL, 0, "note '%.*s': its value is not %s",
					(int)key, note, n == 0 ? "UTF-8" : "one line of text");
		at += n;
	}
	return RFL_OK;
}

static enum rfl_rc set_notes(const struct rfl_env_spec *spec, json_t *notes, bool *changed,
			     struct rfl_err *err)
{
	for (size_t i = 0; i < spec->nnotes; i++) {
		const char *note = spec->notes[i], *value;
		enum rfl_rc rc = rfl_env_check_note(note, err);
		char key[64];

		if (rc)
			return rc;
		value = strchr(note, '=') + 1;
		snprintf(key, sizeof(key), "%.*s", (int)(value - 1 - note), note);
		*changed = true;
		if (!*value) {
			(void)json_object_del(notes, key);
			continue;
		}
		if (json_object_set_new(notes, key, json_string(value)) != 0)
			return rfl_fail(err, RFL_ENOMEM, 0, "notes: out of memory");
	}
	return RFL_OK;
}

/* ---- the file ---- */

static enum rfl_rc load(const char *path, json_t **ret, struct rfl_err *err)
{
	struct rfl_err why = RFL_ERR_INIT;
	const char *version;
	enum rfl_rc rc;

	if (!rfl_file_exists(path)) {
		*ret = json_pack("{s:s, s:{}}", "schema_version", RFL_ENV_SCHEMA, "environments");
		return *ret ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	}
	rc = rfl_json_load(path, ret, &why);
	if (rc == RFL_EFORMAT)
		return rfl_fail(err, rc, why.native,
				"%s; it is left as it is: mend it or move it away", why.msg);
	if (rc)
		return rfl_fail(err, rc, why.native, "%s", why.msg);
	version = json_string_value(json_object_get(*ret, "schema_version"));
	if (version && strcmp(version, RFL_ENV_SCHEMA) == 0 &&
	    json_is_object(json_object_get(*ret, "environments")))
		return RFL_OK;
	rc = rfl_fail(
		err, RFL_EFORMAT, 0,
		"%s: is no env.json of this program (schema_version %s): move it away, or give "
		"another --log-dir",
		path, RFL_ENV_SCHEMA);
	json_decref(*ret);
	*ret = NULL;
	return rc;
}

/* The old record moves into the history; a record with the same facts as the new one moves out. */
static enum rfl_rc remember(json_t *history, const json_t *was, const json_t *is, const char *now)
{
	json_t *facts = facts_of(is), *old = json_deep_copy(was), *entry;
	int failed = !facts || !old;
	size_t i = 0;

	while (i < json_array_size(history)) {
		entry = facts_of(json_array_get(history, i));
		if (json_equal(entry, facts))
			failed |= json_array_remove(history, i);
		else
			i++;
		json_decref(entry);
	}
	(void)json_object_del(old, "history");
	failed |= json_object_set_new(old, "replaced_utc", json_string(now));
	failed |= json_array_append_new(history, old);
	json_decref(facts);
	return failed ? RFL_ENOMEM : RFL_OK;
}

/* What holds of the old record, and whether the new one has to be written. */
static enum rfl_rc settle(const struct rfl_env_spec *spec, const char *path, const json_t *was,
			  json_t *is, const char *now, json_t *history, struct rfl_env_result *r,
			  struct rfl_err *err)
{
	struct differences d = { .n = 0 };
	json_t *old_facts = NULL, *new_facts = NULL;
	enum rfl_rc rc = take_over(was, is);

	rfl_buf_init(&d.text, 0);
	if (rc)
		goto done;
	r->written = adds_something(was, is);
	old_facts = facts_of(was);
	new_facts = facts_of(is);
	if (!old_facts || !new_facts) {
		rc = RFL_ENOMEM;
		goto done;
	}
	forget_additions(old_facts, new_facts);
	compare(&d, "", old_facts, new_facts);
	if (d.n == 0)
		goto done;
	r->changed = r->written = true;
	rfl_log(RFL_LOG_WARN,
		"%s: environment '%s' is not as it was recorded: %s%s; the old record is kept in "
		"its "
		"history (another machine needs another --env)",
		path, spec->env, rfl_buf_str(&d.text), d.n > 3 ? "; and more" : "");
	rc = remember(history, was, is, now);
done:
	json_decref(old_facts);
	json_decref(new_facts);
	rfl_buf_fini(&d.text);
	return rc ? rfl_fail(err, rc, 0, "%s: out of memory", path) : RFL_OK;
}

static enum rfl_rc update(const struct rfl_env_spec *spec, const char *path, json_t *document,
			  struct rfl_env_result *r, struct rfl_err *err)
{
	json_t *environments = json_object_get(document, "environments"), *is = NULL;
	json_t *was = json_object_get(environments, spec->env);
	json_t *notes = json_object_get(was, "notes"), *history = json_object_get(was, "history");
	char now[RFL_TIME_ISO_SIZE];
	bool noted = false;
	enum rfl_rc rc = rfl_env__facts(spec, &is, err);

	if (rc)
		return rc;
	rfl_clock_iso(now);
	notes = notes ? json_incref(notes) : json_object();
	history = history ? json_incref(history) : json_array();
	r->created = r->written = !was;
	if (was)
		rc = settle(spec, path, was, is, now, history, r, err);
	if (rc == RFL_OK)
		rc = set_notes(spec, notes, &noted, err);
	r->written |= noted || spec->refresh;
	if (rc == RFL_OK && r->written &&
	    (json_object_set_new(is, "recorded_utc", json_string(now)) != 0 ||
	     json_object_set_new(is, "recorded_by", json_string("roofline " RFL_VERSION)) != 0 ||
	     json_object_set(is, "notes", notes) != 0 ||
	     json_object_set(is, "history", history) != 0 ||
	     json_object_set(environments, spec->env, is) != 0))
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", path);
	json_decref(notes);
	json_decref(history);
	json_decref(is);
	return rc;
}

/* A page that was written by hand is left alone. */
static enum rfl_rc write_page(const char *path, const json_t *document, struct rfl_err *err)
{
	static const char mark[] = RFL_ENV__PAGE_MARK;
	struct rfl_buf text;
	enum rfl_rc rc = RFL_OK;

	rfl_buf_init(&text, 0);
	if (rfl_file_size(path) > 0)
		rc = rfl_file_read(path, &text, err);
	if (rc == RFL_OK && text.len > 0 &&
	    (text.len < strlen(mark) || memcmp(text.data, mark, strlen(mark)) != 0)) {
		rfl_log(RFL_LOG_WARN,
			"%s: was not made by this program and is left as it is; 'roofline env "
			"--format md' prints what would be there",
			path);
		goto done;
	}
	rfl_buf_reset(&text);
	if (rc == RFL_OK)
		rc = rfl_env_page(document, NULL, true, &text, err);
	if (rc == RFL_OK)
		rc = rfl_file_write(path, text.data, text.len, err);
done:
	rfl_buf_fini(&text);
	return rc;
}

enum rfl_rc rfl_env_record(const struct rfl_env_spec *spec, struct rfl_env_result *ret,
			   struct rfl_err *err)
{
	char *path = rfl_path_join(spec->log_dir, "env.json");
	char *page = rfl_path_join(spec->log_dir, "env_info.md");
	struct rfl_env_result r = { .document = NULL };
	enum rfl_rc rc;

	if (!path || !page)
		rc = rfl_fail(err, RFL_ENOMEM, 0, "environment: out of memory");
	else
		rc = rfl_file_check_use(path, RFL_FILE_OPTIONAL, err);
	if (rc == RFL_OK)
		rc = load(path, &r.document, err);
	if (rc == RFL_OK)
		rc = update(spec, path, r.document, &r, err);
	if (rc == RFL_OK && r.written)
		rc = rfl_file_mkdirs(spec->log_dir, err);
	if (rc == RFL_OK && r.written)
		rc = rfl_json_save(path, r.document, err);
	if (rc == RFL_OK && (r.written || !rfl_file_exists(page)))
		rc = write_page(page, r.document, err);
	if (rc == RFL_OK) {
		*ret = r;
		r.document = NULL;
	}
	json_decref(r.document);
	free(path);
	free(page);
	return rc;
}

void rfl_env_result_fini(struct rfl_env_result *r)
{
	json_decref(r->document);
	r->document = NULL;
}
