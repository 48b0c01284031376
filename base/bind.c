/* bind.c - reads and writes structs as JSON objects by tables. */
#include "base/bind.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define KEYS_MAX 64 /* rows of a table */

void rfl_bind_refuse(struct rfl_bind *b, const char *fmt, ...)
{
	char text[RFL_ERR_MSG_MAX];
	va_list ap;

	if (b->rc)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	b->rc = rfl_where_fail(&b->at, b->err, "%s", text);
}

void rfl_bind_must(struct rfl_bind *b, const json_t *value, const char *what)
{
	char shown[80];

	rfl_bind_refuse(b, "must be %s, not %s", what, rfl_json_show(value, shown, sizeof(shown)));
}

static bool has_limits(const struct rfl_member *m)
{
	return m->min != 0 || m->max != 0;
}

/* Words for a number: "an integer from 1 to 8". */
static const char *what_number(const struct rfl_member *m, const char *noun, char *out, size_t size)
{
	char least[RFL_NUM_MAX], most[RFL_NUM_MAX];

	rfl_num_exact(m->min, least);
	rfl_num_exact(m->max, most);
	if (!has_limits(m))
		return noun;
	if (m->max == 0 || isinf(m->max))
		(void)snprintf(out, size, "%s of at least %s", noun, least);
	else
		(void)snprintf(out, size, "%s from %s to %s", noun, least, most);
	return out;
}

const char *rfl_bind_what(const struct rfl_member *m, char *out, size_t size)
{
	size_t len;

	if (m->what)
		return m->what;
	switch (m->kind) {
	case RFL_BIND_FLAG:
		return "true or false";
	case RFL_BIND_INT:
		return what_number(m, "an integer", out, size);
	case RFL_BIND_REAL:
		return what_number(m, "a number", out, size);
	case RFL_BIND_CHOICE:
		len = (size_t)snprintf(out, size, "one of ");
		for (size_t i = 0; m->choices[i] && len < size; i++)
			len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "",
						m->choices[i]);
		return out;
	case RFL_BIND_TEXT:
	case RFL_BIND_CHARS:
		return m->filled ? "a non-empty string" : "a string";
	default:
		return "an object";
	}
}

static void refuse_value(struct rfl_bind *b, const json_t *value, const struct rfl_member *m)
{
	const char *near = json_is_string(value) && m->kind == RFL_BIND_CHOICE
				   ? rfl_text_nearest(json_string_value(value), m->choices)
				   : NULL;
	char what[1024], shown[80];

	rfl_bind_refuse(b, "must be %s, not %s%s%s%s%s%s", rfl_bind_what(m, what, sizeof(what)),
			rfl_json_show(value, shown, sizeof(shown)), m->fix ? "; " : "",
			m->fix ? m->fix : "", near ? "; did you mean " : "", near ? near : "",
			near ? "?" : "");
}

/* Store an integer in a member, which may be narrower. @return false if it does not fit */
static bool store_int(void *at, size_t size, json_int_t value)
{
	if (size == sizeof(int)) {
		if (value < INT_MIN || value > INT_MAX)
			return false;
		*(int *)at = (int)value;
	} else if (size) {
		*(int64_t *)at = (int64_t)value;
	}
	return true;
}

static bool store_choice(const struct rfl_member *m, const json_t *value, void *at)
{
	const char *text = json_string_value(value);

	for (int i = 0; text && m->choices[i]; i++)
		if (strcmp(m->choices[i], text) == 0) {
			if (m->size == sizeof(int))
				*(int *)at = i;
			else if (m->size)
				*(const char **)at = m->choices[i];
			return true;
		}
	return false;
}

static bool store_text(const struct rfl_bind *b, const struct rfl_member *m, const json_t *value,
		       void *at)
{
	const char *text = json_string_value(value);

	if (!text || (m->filled && !*text) || (m->valid && !m->valid(text)))
		return false;
	if (m->kind == RFL_BIND_CHARS)
		(void)snprintf(at, m->size, "%s", text);
	else if (m->size)
		*(const char **)at = b->arena ? rfl_arena_strdup(b->arena, text) : text;
	return true;
}

/* Store a value of a simple kind. @return false if it is not valid */
static bool store(const struct rfl_bind *b, const struct rfl_member *m, const json_t *value,
		  void *at)
{
	const double number = json_number_value(value);
	const bool inside =
		!has_limits(m) || (number >= m->min && (number <= m->max || m->max == 0));

	switch (m->kind) {
	case RFL_BIND_FLAG:
		if (m->size && json_is_boolean(value))
			*(bool *)at = json_is_true(value);
		return json_is_boolean(value);
	case RFL_BIND_INT:
		return json_is_integer(value) && inside &&
		       store_int(at, m->size, json_integer_value(value));
	case RFL_BIND_REAL:
		if (!json_is_number(value) || !inside)
			return false;
		if (m->size)
			*(double *)at = m->unit != 0 ? number * m->unit : number;
		return true;
	case RFL_BIND_CHOICE:
		return store_choice(m, value, at);
	default:
		return store_text(b, m, value, at);
	}
}

static void read_one(struct rfl_bind *b, const json_t *value, const struct rfl_member *m, void *at)
{
	if (json_is_null(value) && m->null) {
		if (m->kind == RFL_BIND_REAL && m->size)
			*(double *)at = (double)NAN;
		else if (m->kind == RFL_BIND_TEXT && m->size)
			*(const char **)at = NULL;
	} else if (m->kind == RFL_BIND_OTHER) {
		m->read(b, value, at);
	} else if (m->kind != RFL_BIND_OBJECT) {
		if (!store(b, m, value, at))
			refuse_value(b, value, m);
	} else if (json_is_object(value)) {
		rfl_bind_read(b, value, m->object, at);
	} else {
		refuse_value(b, value, m);
	}
}

static void read_list(struct rfl_bind *b, const json_t *value, const struct rfl_member *m, void *to)
{
	const bool many = json_is_array(value), none = json_is_null(value) && m->null;
	const size_t n = many ? json_array_size(value) : !none;
	struct rfl_member item = *m;
	char *items = NULL;

	item.null = false;
	if (!many && !none && !m->or_one)
		rfl_bind_must(b, value, m->filled ? "a non-empty list" : "a list");
	else if (n == 0 && !none && m->filled)
		rfl_bind_refuse(b, "is an empty list; add an entry or remove the key");
	else if (n > RFL_BIND_ITEMS_MAX)
		rfl_bind_refuse(b, "has more than %d entries", RFL_BIND_ITEMS_MAX);
	if (b->rc)
		return;
	if (m->size) {
		items = rfl_arena_array(b->arena, n, m->size);
		memcpy((char *)to + m->offset, &items, sizeof(items));
		memcpy((char *)to + m->count, &n, sizeof(n));
	}
	for (size_t i = 0; i < n && !b->rc; i++) {
		const size_t mark = many ? rfl_where_index(&b->at, i) : b->at.len;

		read_one(b, many ? json_array_get(value, i) : value, &item,
			 items ? items + i * m->size : NULL);
		rfl_where_up(&b->at, mark);
	}
}

void rfl_bind_value(struct rfl_bind *b, const json_t *value, const struct rfl_member *m, void *to)
{
	if (b->rc)
		return;
	if (m->list)
		read_list(b, value, m, to);
	else
		read_one(b, value, m, to ? (char *)to + m->offset : NULL);
}

void rfl_bind_key(struct rfl_bind *b, const json_t *object, const struct rfl_member *m, void *to)
{
	const json_t *value = json_object_get(object, m->key);
	size_t mark;

	if (!value && m->must)
		rfl_bind_refuse(b, "the key \"%s\" is missing; %s%s%s%s", m->key,
				m->example ? "write \"" : "add it", m->example ? m->key : "",
				m->example ? "\": " : "", m->example ? m->example : "");
	if (b->rc || !value)
		return;
	mark = rfl_where_key(&b->at, m->key);
	rfl_bind_value(b, value, m, to);
	rfl_where_up(&b->at, mark);
}

void rfl_bind_only(struct rfl_bind *b, const json_t *object, const struct rfl_member *table)
{
	const char *allowed[KEYS_MAX + 1] = { NULL };

	for (size_t n = 0; table[n].key && n < KEYS_MAX; n++)
		allowed[n] = table[n].key;
	if (!b->rc && !json_is_object(object))
		rfl_bind_must(b, object, "an object");
	if (!b->rc && !b->open)
		b->rc = rfl_where_only_keys(&b->at, object, allowed, b->err);
}

void rfl_bind_read(struct rfl_bind *b, const json_t *value, const struct rfl_member *table,
		   void *to)
{
	rfl_bind_only(b, value, table);
	for (const struct rfl_member *m = table; m->key && !b->rc; m++)
		rfl_bind_key(b, value, m, to);
}

/* What a document of this program is; NULL: not known. */
static const char *kind_of(const json_t *root)
{
	static const struct {
		const char *schema, *what;
	} kinds[] = {
		{ "roofline.complexity/", "the counts of models by 'roofline complexity'" },
		{ "roofline.counters/", "counters by 'roofline counters'" },
		{ "roofline.matrix/", "a matrix" },
		{ "roofline.net/", "a network" },
		{ "roofline.project/", "a project file" },
		{ "roofline.study/", "a study" },
		{ "roofline.training/", "the result of 'roofline train'" },
	};
	const char *schema = json_string_value(json_object_get(root, "schema"));
	json_t *environments = json_object_get(root, "environments");
	void *first = json_object_iter((json_t *)(uintptr_t)root);

	for (size_t i = 0; schema && i < RFL_ARRAY_LEN(kinds); i++)
		if (strncmp(schema, kinds[i].schema, strlen(kinds[i].schema)) == 0)
			return kinds[i].what;
	if (json_is_object(environments) ||
	    (first && json_object_get(json_object_iter_value(first), "peak_gflops")))
		return "a file of ceilings, peaks.json";
	return json_object_get(root, "processor") ? "the record of a machine, env.json" : NULL;
}

void rfl_bind_schema(struct rfl_bind *b, const json_t *root, const char *schema, const char *what)
{
	const json_t *value = json_object_get(root, "schema");
	const char *have = json_string_value(value), *is = kind_of(root);
	const size_t name = strcspn(schema, "/") + 1;

	if (!json_is_object(root))
		rfl_bind_must(b, root, "an object");
	else if (have && strcmp(have, schema) == 0)
		return;
	else if (have && strncmp(have, schema, name) == 0)
		rfl_bind_refuse(b, "schema must be \"%s\"; for \"%s\", use a program that knows it",
				schema, have);
	else if (is)
		rfl_bind_refuse(b, "this is %s, not %s", is, what);
	else if (!value)
		rfl_bind_refuse(b, "not %s; begin it with \"schema\": \"%s\"", what, schema);
	else
		rfl_bind_refuse(b, "schema must be \"%s\"", schema);
}

void rfl_bind_each(struct rfl_bind *b, const json_t *value,
		   void (*item)(struct rfl_bind *b, const char *key, const json_t *value, void *to),
		   void *to)
{
	json_t *v = (json_t *)(uintptr_t)value; /* no const in jansson's iterators */
	size_t mark = b->at.len;

	for (size_t i = 0; i < json_array_size(value) && !b->rc; i++) {
		(void)rfl_where_index(&b->at, i);
		item(b, NULL, json_array_get(value, i), to);
		rfl_where_up(&b->at, mark);
	}
	for (void *it = json_object_iter(v); it && !b->rc; it = json_object_iter_next(v, it)) {
		(void)rfl_where_key(&b->at, json_object_iter_key(it));
		item(b, json_object_iter_key(it), json_object_iter_value(it), to);
		rfl_where_up(&b->at, mark);
	}
}

bool rfl_bind_get(const struct rfl_member *m, const json_t *value, void *to)
{
	struct rfl_bind b = { .rc = RFL_OK };

	if (value)
		rfl_bind_value(&b, value, m, to);
	return value && b.rc == RFL_OK;
}

/* --- writing --------------------------------------------------------------------------------- */

static int64_t int_of(const struct rfl_member *m, const void *at)
{
	return m->size == sizeof(int) ? *(const int *)at : *(const int64_t *)at;
}

static json_t *write_one(const struct rfl_member *m, const void *at)
{
	json_t *object;

	switch (m->kind) {
	case RFL_BIND_FLAG:
		return json_boolean(*(const bool *)at);
	case RFL_BIND_INT:
		return json_integer(int_of(m, at));
	case RFL_BIND_REAL:
		return rfl_json_real(m->unit != 0 ? *(const double *)at / m->unit
						  : *(const double *)at);
	case RFL_BIND_CHARS:
		return rfl_json_text(at);
	case RFL_BIND_CHOICE:
		if (m->size == sizeof(int))
			return json_string(m->choices[*(const int *)at]);
		return rfl_json_text(*(const char *const *)at);
	case RFL_BIND_TEXT:
		return rfl_json_text(*(const char *const *)at);
	case RFL_BIND_OTHER:
		return m->write(at);
	case RFL_BIND_OBJECT:
		break;
	}
	object = json_object();
	rfl_bind_write(object, m->object, at);
	return object;
}

json_t *rfl_bind_json(const struct rfl_member *m, const void *from)
{
	const char *at = (const char *)from + m->offset, *items;
	json_t *list;
	size_t n;

	if (!m->list)
		return write_one(m, at);
	memcpy(&items, at, sizeof(items));
	memcpy(&n, (const char *)from + m->count, sizeof(n));
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, write_one(m, items + i * m->size));
	return list;
}

/* Whether a value is not a struct's before it is read. */
static bool is_set(const json_t *value)
{
	return !json_is_null(value) && !json_is_false(value) &&
	       !(json_is_string(value) && json_string_length(value) == 0) &&
	       !(json_is_integer(value) &&
		 (json_integer_value(value) == 0 || json_integer_value(value) == -1)) &&
	       !(json_is_array(value) && json_array_size(value) == 0) &&
	       !(json_is_object(value) && json_object_size(value) == 0);
}

void rfl_bind_write(json_t *object, const struct rfl_member *table, const void *from)
{
	for (const struct rfl_member *m = table; m->key; m++) {
		json_t *value =
			m->size || m->kind == RFL_BIND_OBJECT ? rfl_bind_json(m, from) : NULL;

		if (value && (m->must || m->kind == RFL_BIND_OTHER || is_set(value)))
			(void)json_object_set_new(object, m->key, value);
		else
			json_decref(value);
	}
}
