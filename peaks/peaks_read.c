/*
 * peaks_read.c - a peaks file as JSON. Where the text is not JSON, or names a key twice, the
 * message has the JSON path as well as line and column: that is how the rest of the room speaks of
 * places.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "peaks/peaks_parse.h"

enum { DEPTH_MAX = 32, KEY_MAX = 64 };

/* One object or list that is open at some place of a text. */
struct frame {
	bool list;
	bool in_value;     /* of an object: behind the colon */
	size_t index;      /* of a list */
	char key[KEY_MAX]; /* of an object: the last key, as it is written */
};

struct place {
	size_t depth; /* may exceed DEPTH_MAX: then the outermost frames are known */
	struct frame frames[DEPTH_MAX];
};

static struct frame *top(struct place *p)
{
	return p->depth > 0 && p->depth <= DEPTH_MAX ? &p->frames[p->depth - 1] : NULL;
}

static void open_frame(struct place *p, bool list)
{
	p->depth++;
	if (top(p))
		*top(p) = (struct frame){ .list = list };
}

/* A text from its opening quote; keeps it when it is a key. @return the place behind it */
static const char *skip_string(struct place *p, const char *s, const char *end)
{
	struct frame *f = top(p);
	const char *begin = ++s;

	while (s < end && *s != '"')
		s += *s == '\\' && s + 1 < end ? 2 : 1;
	if (f && !f->list && !f->in_value)
		snprintf(f->key, sizeof(f->key), "%.*s", (int)(s - begin), begin);
	return s < end ? s + 1 : s;
}

/* What is open at text + at. */
static void find_place(const char *text, size_t at, struct place *p)
{
	const char *end = text + at;

	p->depth = 0;
	for (const char *s = text; s < end;) {
		struct frame *f = top(p);

		if (*s == '"') {
			s = skip_string(p, s, end);
			continue;
		}
		if (*s == '{' || *s == '[')
			open_frame(p, *s == '[');
		else if ((*s == '}' || *s == ']') && p->depth > 0)
			p->depth--;
		else if (*s == ':' && f)
			f->in_value = true;
		else if (*s == ',' && f) {
			f->in_value = false;
			f->index++;
		}
		s++;
	}
}

static void spell_place(const struct place *p, struct rfl_where *w)
{
	for (size_t i = 0; i < p->depth && i < DEPTH_MAX; i++) {
		const struct frame *f = &p->frames[i];

		if (f->list)
			(void)rfl_where_index(w, f->index);
		else if (f->key[0])
			(void)rfl_where_key(w, f->key);
	}
}

static const char *hint(const json_error_t *je)
{
	if (strstr(je->text, "NaN") || strstr(je->text, "nan") || strstr(je->text, "Inf"))
		return "; JSON has no such number: write null in the short form, "
		       "{\"status\": \"unknown\", \"value\": null, \"reason\": \"...\"} in the "
		       "long one";
	if (strstr(je->text, "duplicate"))
		return "; leave one of them out";
	return "";
}

/* The failure of the JSON reader again, with the JSON path. */
static enum rfl_rc explain(const char *path, const struct rfl_buf *text,
			   const struct rfl_err *first, struct rfl_err *err)
{
	struct rfl_where w;
	struct place place;
	json_error_t je = { .line = -1 };
	json_t *root = json_loadb(rfl_buf_str(text), text->len, JSON_REJECT_DUPLICATES, &je);

	json_decref(root);
	if (root || strncmp(je.text, "'['", 3) == 0) /* it does not begin as JSON does */
		return rfl_fail(err, first->rc, 0, "%s", first->msg);
	const size_t at = je.position > 0 ? (size_t)je.position : 0;

	rfl_where_init(&w, path);
	find_place(rfl_buf_str(text), at < text->len ? at : text->len, &place);
	spell_place(&place, &w);
	return rfl_fail(err, RFL_EFORMAT, 0, "%s:%d:%d: %s: %s%s", path, je.line, je.column,
			w.len ? w.pointer : "/", je.text, hint(&je));
}

enum rfl_rc rfl_peaks__read(const char *path, json_t **ret, uint64_t *hash, struct rfl_err *err)
{
	struct rfl_err first = RFL_ERR_INIT;
	struct rfl_buf text;
	enum rfl_rc rc;

	rfl_buf_init(&text, 0);
	rc = rfl_file_read(path, &text, err);
	if (rc != RFL_OK)
		goto done;
	if (hash)
		*hash = rfl_hash64(0, rfl_buf_str(&text), text.len);
	rc = rfl_json_loads(rfl_buf_str(&text), text.len, path, ret, &first);
	if (rc == RFL_EFORMAT)
		rc = explain(path, &text, &first, err);
	else if (rc != RFL_OK)
		rc = rfl_fail(err, rc, first.native, "%s", first.msg);
done:
	rfl_buf_fini(&text);
	return rc;
}
