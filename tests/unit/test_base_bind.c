/* Structs as JSON objects. */
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bind.h"

struct size {
	const char *scope;
	int64_t bytes;
	double rate;
};

struct doc {
	const char *title, *fixed;
	char name[8];
	bool on;
	int color, few;
	int64_t many;
	double time_s, limit;
	const char **words;
	size_t nwords;
	int64_t *batches;
	size_t nbatches;
	struct size first, *sizes;
	size_t nsizes;
	int sum;
};

static const char *const scopes[] = { "core", "node", "device", NULL };
static const char *const colors[] = { "red", "green", NULL };

static const struct rfl_member of_size[] = {
	{ "scope", RFL_MEMBER(CHOICE, struct size, scope), .choices = scopes, .must = true },
	{ "bytes", RFL_MEMBER(INT, struct size, bytes), .min = 1 },
	{ "rate", RFL_MEMBER(REAL, struct size, rate), .null = true },
	{ .key = NULL },
};

/* An OTHER: "1+2" is 3. */
static void read_sum(struct rfl_bind *b, const json_t *value, void *member)
{
	const char *text = json_string_value(value);

	if (text && strlen(text) == 3 && text[1] == '+')
		*(int *)member = text[0] - '0' + text[2] - '0';
	else
		rfl_bind_must(b, value, "a sum of two digits");
}

static json_t *write_sum(const void *member)
{
	return json_sprintf("0+%d", *(const int *)member);
}

static bool is_lower(const char *text)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyz")] == '\0';
}

#define D(kind, member) RFL_MEMBER(kind, struct doc, member)

static const struct rfl_member of_doc[] = {
	{ "title", D(TEXT, title), .must = true, .filled = true, .example = "\"...\"" },
	{ "fixed", D(TEXT, fixed), .null = true, .valid = is_lower, .what = "lower-case letters" },
	{ "name", D(CHARS, name) },
	{ "on", D(FLAG, on) },
	{ "color", D(CHOICE, color), .choices = colors },
	{ "few", D(INT, few), .min = 1, .max = 9 },
	{ "many", D(INT, many) },
	{ "time_ms", D(REAL, time_s), .unit = 1e-3 },
	{ "limit", D(REAL, limit), .null = true, .max = 1 },
	{ "words", RFL_MEMBERS(TEXT, struct doc, words, nwords), .or_one = true, .filled = true },
	{ "batches", RFL_MEMBERS(INT, struct doc, batches, nbatches), .min = 1, .null = true },
	{ "first", D(OBJECT, first), .object = of_size },
	{ "sizes", RFL_MEMBERS(OBJECT, struct doc, sizes, nsizes), .object = of_size },
	{ "checked", RFL_CHECKED(INT), .max = INFINITY },
	{ "sum", D(OTHER, sum), .read = read_sum, .write = write_sum },
	{ .key = NULL },
};

static enum rfl_rc read_doc(const char *text, struct rfl_arena *arena, struct doc *doc,
			    struct rfl_err *err)
{
	struct rfl_bind b = { .arena = arena, .err = err };
	json_t *root = NULL;

	assert_ok(rfl_json_loads(text, strlen(text), "doc", &root, NULL), err);
	rfl_where_begin(&b.at, "doc.json", "");
	rfl_bind_read(&b, root, of_doc, doc);
	json_decref(root);
	return b.rc;
}

static void a_document_is_read_and_written_back(void **state)
{
	static const char text[] =
		"{\"title\": \"t\", \"fixed\": \"abc\", \"name\": \"n\", \"on\": true, "
		"\"color\": \"green\", \"few\": 9, \"many\": 5000000000, \"time_ms\": 2.0, "
		"\"limit\": 0.5, \"words\": [\"a\", \"b\"], \"batches\": [1, 2], "
		"\"first\": {\"scope\": \"core\", \"rate\": 2.5}, "
		"\"sizes\": [{\"scope\": \"node\", \"bytes\": 4}], \"sum\": \"0+7\"}";
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_err err = RFL_ERR_INIT;
	struct doc doc = { .first.rate = NAN };
	json_t *out = json_object(), *in = NULL;

	(void)state;
	assert_ok(read_doc(text, arena, &doc, &err), &err);
	assert_string_equal(doc.title, "t");
	assert_string_equal(doc.name, "n");
	assert_true(doc.on);
	assert_int_equal(doc.color, 1);
	assert_int_equal(doc.few, 9);
	assert_true(doc.many == 5000000000);
	assert_close(doc.time_s, 0.002, 1e-15);
	assert_int_equal(doc.nwords, 2);
	assert_string_equal(doc.words[1], "b");
	assert_true(doc.batches[1] == 2);
	assert_ptr_equal(doc.first.scope, scopes[0]);
	assert_int_equal(doc.nsizes, 1);
	assert_true(doc.sizes[0].bytes == 4);
	assert_int_equal(doc.sum, 7);

	doc.sizes[0].rate = NAN; /* unknown is left out */
	rfl_bind_write(out, of_doc, &doc);
	assert_ok(rfl_json_loads(text, strlen(text), "doc", &in, &err), &err);
	assert_true(json_equal(in, out));
	json_decref(in);
	json_decref(out);
	rfl_arena_free(arena);
}

static void absent_members_remain(void **state)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_err err = RFL_ERR_INIT;
	struct doc doc = { .few = 3, .limit = 0.25, .fixed = "before" };
	json_t *out = json_object();
	char *text;

	(void)state;
	assert_ok(
		read_doc("{\"title\": \"t\", \"limit\": null, \"fixed\": null}", arena, &doc, &err),
		&err);
	assert_int_equal(doc.few, 3);
	assert_true(isnan(doc.limit)); /* null */
	assert_null(doc.fixed);
	doc.nbatches = 1; /* null for a list: an empty one */
	assert_ok(read_doc("{\"title\": \"t\", \"batches\": null}", arena, &doc, &err), &err);
	assert_int_equal(doc.nbatches, 0);
	doc.few = 0;
	doc.time_s = NAN;
	doc.first.rate = NAN;
	doc.name[0] = '\0';
	doc.sum = 1;
	rfl_bind_write(out, of_doc, &doc);
	text = json_dumps(out, JSON_COMPACT);
	assert_string_equal(text, "{\"title\":\"t\",\"color\":\"red\",\"first\":{\"scope\":null},"
				  "\"sum\":\"0+1\"}");
	free(text);
	json_decref(out);
	rfl_arena_free(arena);
}

static void every_error_names_its_place(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "[]", "/: must be an object, not an empty list" },
		{ "{}", "/: the key \"title\" is missing; write \"title\": \"...\"" },
		{ "{\"title\": \"\"}", "/title: must be a non-empty string, not \"\"" },
		{ "{\"title\": \"t\", \"tilte\": 1}", "/tilte: unknown key; did you mean title?" },
		{ "{\"title\": \"t\", \"fixed\": \"A\"}",
		  "/fixed: must be lower-case letters, not \"A\"" },
		{ "{\"title\": \"t\", \"batches\": [1, null]}",
		  "/batches/1: must be an integer of at least 1, not null" },
		{ "{\"title\": \"t\", \"on\": 1}", "/on: must be true or false, not 1" },
		{ "{\"title\": \"t\", \"color\": \"gren\"}",
		  "/color: must be one of red, green, not \"gren\"; did you mean green?" },
		{ "{\"title\": \"t\", \"few\": 10}",
		  "/few: must be an integer from 1 to 9, not 10" },
		{ "{\"title\": \"t\", \"few\": 1.5}",
		  "/few: must be an integer from 1 to 9, not 1.5" },
		{ "{\"title\": \"t\", \"many\": null}", "/many: must be an integer, not null" },
		{ "{\"title\": \"t\", \"limit\": 2}",
		  "/limit: must be a number from 0 to 1, not 2" },
		{ "{\"title\": \"t\", \"words\": []}",
		  "/words: is an empty list; add an entry or remove the key" },
		{ "{\"title\": \"t\", \"words\": [\"a\", 1]}",
		  "/words/1: must be a non-empty string, not 1" },
		{ "{\"title\": \"t\", \"words\": 1}", "/words: must be a non-empty string, not 1" },
		{ "{\"title\": \"t\", \"batches\": 1}", "/batches: must be a list, not 1" },
		{ "{\"title\": \"t\", \"batches\": [0]}",
		  "/batches/0: must be an integer of at least 1, not 0" },
		{ "{\"title\": \"t\", \"sizes\": [{\"bytes\": 1}]}",
		  "/sizes/0: the key \"scope\" is missing; add it" },
		{ "{\"title\": \"t\", \"sizes\": [{\"scope\": \"node\", \"byte\": 1}]}",
		  "/sizes/0/byte: unknown key; did you mean bytes?" },
		{ "{\"title\": \"t\", \"first\": 1}", "/first: must be an object, not 1" },
		{ "{\"title\": \"t\", \"checked\": -1}",
		  "/checked: must be an integer of at least 0, not -1" },
		{ "{\"title\": \"t\", \"sum\": 3}", "/sum: must be a sum of two digits, not 3" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_arena *arena = rfl_arena_new();
		struct rfl_err err = RFL_ERR_INIT;
		struct doc doc = { 0 };
		char want[256];

		snprintf(want, sizeof(want), "doc.json: %s", cases[i].message);
		assert_int_equal(read_doc(cases[i].text, arena, &doc, &err), RFL_EFORMAT);
		assert_string_equal(err.msg, want);
		rfl_arena_free(arena);
	}
}

static void a_list_is_not_endless(void **state)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_bind b = { .arena = arena, .err = &err };
	json_t *list = json_array(), *root = json_pack("{s:s, s:o}", "title", "t", "sizes", list);
	struct doc doc = { 0 };

	(void)state;
	for (int i = 0; i <= RFL_BIND_ITEMS_MAX; i++)
		json_array_append_new(list, json_null());
	rfl_where_begin(&b.at, "f", "");
	rfl_bind_read(&b, root, of_doc, &doc);
	assert_string_equal(err.msg, "f: /sizes: has more than 1000000 entries");
	json_decref(root);
	rfl_arena_free(arena);
}

/* The members of an object by name, of a list by index; the first failure ends it. */
static void note(struct rfl_bind *b, const char *key, const json_t *value, void *to)
{
	char *out = to;

	if (!json_is_integer(value))
		rfl_bind_must(b, value, "an integer");
	else
		snprintf(out + strlen(out), 64 - strlen(out), "%s=%d ", key ? key : "-",
			 (int)json_integer_value(value));
}

static void each_member_or_item(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_bind b = { .err = &err };
	json_t *object = json_pack("{s:i, s:i}", "a", 1, "b", 2);
	json_t *list = json_pack("[i, s, i]", 3, "x", 4);
	char out[64] = "";

	(void)state;
	rfl_where_begin(&b.at, "f", "/top");
	rfl_bind_each(&b, object, note, out);
	rfl_bind_each(&b, list, note, out);
	assert_string_equal(out, "a=1 b=2 -=3 ");
	assert_string_equal(err.msg, "f: /top/1: must be an integer, not \"x\"");
	json_decref(object);
	json_decref(list);
}

static void a_message_without_words(void **state)
{
	static const struct rfl_member few = { "few", D(INT, few), .min = 1, .max = 9 };
	struct doc doc = { .few = 5 };
	json_t *value = json_integer(10);

	(void)state;
	assert_false(rfl_bind_get(&few, value, &doc));
	assert_false(rfl_bind_get(&few, NULL, &doc));
	assert_int_equal(doc.few, 5);
	json_integer_set(value, 6);
	assert_true(rfl_bind_get(&few, value, &doc));
	assert_int_equal(doc.few, 6);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_is_read_and_written_back),
		cmocka_unit_test(absent_members_remain),
		cmocka_unit_test(every_error_names_its_place),
		cmocka_unit_test(a_list_is_not_endless),
		cmocka_unit_test(each_member_or_item),
		cmocka_unit_test(a_message_without_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
