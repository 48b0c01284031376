/* JSON in and out. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

static json_t *load(const char *text)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *value = NULL;

	assert_ok(rfl_json_loads(text, strlen(text), "text", &value, &err), &err);
	return value;
}

static void errors_name_line_and_column(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ " \n", "bad.json: is empty" },
		{ "time,env\n1,2\n",
		  "bad.json: not JSON but CSV; was the ledger passed by mistake?" },
		{ "\xef\xbb\xbf{}", "bad.json: begins with a byte order mark" },
		{ "{\n  \"a\": 1,\n  \"a\": 2\n}\n", "bad.json:3:5: duplicate object key" },
		{ "{\n  \"a\": 1\n  \"b\": 2\n}\n", "bad.json:3:5: '}' expected" },
		{ "{\"a\": NaN}", "bad.json:1:9: " },
		{ "{\"a\": 1e999}", "bad.json:1:11: real number overflow" },
		{ "[1, 2", "bad.json:1:5: ']' expected near end of file" },
		{ "{} {}", "bad.json:1:4: end of file expected" },
		{ "7", "bad.json: not JSON" },
		{ "{\"a\": \"\xff\"}", "bad.json:" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct rfl_err err = RFL_ERR_INIT;
		json_t *value = NULL;

		assert_int_equal(
			rfl_json_load(write_file(*state, "bad.json", cases[i].text), &value, &err),
			RFL_EFORMAT);
		assert_says(&err, cases[i].word);
		assert_null(value);
	}
}

static void utf_16(void **state)
{
	static const char with_mark[] = "\xff\xfe{\0\"\0a\0,\0", without[] = "{\0\"\0a\0,\0";
	struct rfl_err err = RFL_ERR_INIT;
	json_t *value = NULL;

	(void)state;
	assert_int_equal(rfl_json_loads(with_mark, sizeof(with_mark), "f", &value, &err),
			 RFL_EFORMAT);
	assert_string_equal(err.msg, "f: is in UTF-16 or not a text; save it in UTF-8");
	rfl_err_clear(&err);
	assert_int_equal(rfl_json_loads(without, sizeof(without), "f", &value, &err), RFL_EFORMAT);
	assert_string_equal(err.msg, "f: is in UTF-16 or not a text; save it in UTF-8");
}

static void a_file_that_cannot_be_read(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;
	json_t *value = NULL;

	assert_int_equal(rfl_json_load(tmp_path(*state, "none.json"), &value, &err), RFL_EIO);
	assert_int_equal(err.native, ENOENT);
	assert_says(&err, "none.json");
	assert_null(value);
}

static enum rfl_rc only_keys(const json_t *obj, const char *const *allowed, const char *file,
			     const char *path, struct rfl_err *err)
{
	struct rfl_where w;

	rfl_where_begin(&w, file, path);
	return rfl_where_only_keys(&w, obj, allowed, err);
}

static void unknown_keys_are_refused(void **state)
{
	static const char *const allowed[] = { "peak_gflops", "peak_gbps", NULL };
	struct rfl_err err = RFL_ERR_INIT;
	json_t *good = load("{\"peak_gbps\": 1}");
	json_t *near = load("{\"peak_gbps\": 1, \"peak_glops\": 2}");
	json_t *far = load("{\"colour\": 1}");
	json_t *array = load("[]");

	(void)state;
	assert_ok(only_keys(good, allowed, "p.json", "/lab", &err), &err);
	assert_int_equal(only_keys(near, allowed, "p.json", "/lab", &err), RFL_EFORMAT);
	assert_string_equal(err.msg,
			    "p.json: /lab/peak_glops: unknown key; did you mean peak_gflops?");
	rfl_err_clear(&err);
	assert_int_equal(only_keys(far, allowed, "p.json", "", &err), RFL_EFORMAT);
	assert_string_equal(err.msg,
			    "p.json: /colour: unknown key; use one of peak_gflops, peak_gbps");
	rfl_err_clear(&err);
	assert_int_equal(only_keys(array, allowed, "p.json", "", &err), RFL_EFORMAT);
	assert_string_equal(err.msg, "p.json: /: must be an object");
	json_decref(good);
	json_decref(near);
	json_decref(far);
	json_decref(array);
}

/* Whatever a file has for keys: a place that is right (RFC 6901), one line, and the reason. */
static void keys_are_shown_on_one_line(void **state)
{
	static const char *const allowed[] = { "k", NULL };
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"a/b~c\": 1}", "p.json: /lab/a~1b~0c: unknown key; use k" },
		{ "{\"a\\nb\\u001b[1m\": 1}", "p.json: /lab/a?b?[1m: unknown key; use k" },
		{ "{\"\\u009b1m\\u007f\xc3\xa9\": 1}",
		  "p.json: /lab/?1m?\xc3\xa9: unknown key; use k" },
	};
	struct rfl_err err = RFL_ERR_INIT;
	char key[5000];
	json_t *obj;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		obj = load(cases[i].text);
		assert_int_equal(only_keys(obj, allowed, "p.json", "/lab", &err), RFL_EFORMAT);
		assert_string_equal(err.msg, cases[i].message);
		rfl_err_clear(&err);
		json_decref(obj);
	}
	memset(key, 'x', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	obj = json_pack("{s:i}", key, 1);
	assert_int_equal(only_keys(obj, allowed, "p.json", "/lab", &err), RFL_EFORMAT);
	assert_says(&err, "p.json: /lab/xxx");
	assert_says(&err, "xxx...: unknown key; use k");
	json_decref(obj);

	rfl_err_clear(&err);
	obj = NULL;
	assert_int_equal(rfl_json_loads("[\x1b]", 3, "p.json", &obj, &err), RFL_EFORMAT);
	assert_null(obj);
	assert_string_equal(err.msg, "p.json:1:2: invalid token near '?'");
}

static void writes_as_people_read(void **state)
{
	static const char text[] = "{\n"
				   "  \"z\": \"q\\\"\\\\\\n\\u0001\xc3\xa9\",\n"
				   "  \"a\": [1, 3, 224, 0.1],\n"
				   "  \"names\": [\n"
				   "    \"x\",\n"
				   "    null\n"
				   "  ],\n"
				   "  \"nested\": [\n"
				   "    {\n"
				   "      \"t\": true,\n"
				   "      \"f\": false\n"
				   "    }\n"
				   "  ],\n"
				   "  \"one\": 1.0,\n"
				   "  \"big\": 1e+30,\n"
				   "  \"max\": 9223372036854775807,\n"
				   "  \"none\": [],\n"
				   "  \"empty\": {}\n"
				   "}";
	json_t *value = load(text);
	struct rfl_buf out = { 0 };

	(void)state;
	rfl_json_write(&out, value);
	assert_string_equal(rfl_buf_str(&out), text);
	rfl_buf_fini(&out);
	json_decref(value);
}

/* load(store(x)) == x, with reals of every size. */
static void a_small_object_on_one_line(void **state)
{
	json_t *value = json_pack("{s:s, s:[i,i], s:{s:b, s:[s,s]}, s:{}}", "name", "conv1",
				  "kernel", 1, 7, "more", "bias", 0, "inputs", "a", "b", "empty");
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	rfl_json_write_line(&out, value);
	assert_string_equal(rfl_buf_str(&out),
			    "{\"name\": \"conv1\", \"kernel\": [1, 7], \"more\": {\"bias\": "
			    "false, \"inputs\": [\"a\", \"b\"]}, \"empty\": {}}");
	rfl_buf_fini(&out);
	json_decref(value);
}

static void what_is_saved_loads_again(void **state)
{
	const char *path = tmp_path(*state, "x.json");
	struct rfl_err err = RFL_ERR_INIT;
	json_t *array = json_array(), *back = NULL;
	uint64_t bits = 88172645463325252u;

	for (int i = 0; i < 2000; i++) {
		double real;

		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&real, &bits, sizeof(real));
		if (isfinite(real))
			json_array_append_new(array, rfl_json_real(real));
		json_array_append_new(array, json_integer((json_int_t)bits));
	}
	assert_ok(rfl_json_save(path, array, &err), &err);
	assert_ok(rfl_json_load(path, &back, &err), &err);
	assert_true(json_equal(array, back));
	json_decref(array);
	json_decref(back);
}

static void what_is_not_known_is_null(void **state)
{
	struct rfl_buf out = { 0 };
	json_t *array = json_array();

	(void)state;
	json_array_append_new(array, rfl_json_real(NAN));
	json_array_append_new(array, rfl_json_real(-INFINITY));
	rfl_json_write(&out, array);
	assert_string_equal(rfl_buf_str(&out), "[\n  null,\n  null\n]");
	rfl_buf_reset(&out);
	rfl_json_write_real(&out, NAN);
	assert_string_equal(rfl_buf_str(&out), "null");
	rfl_buf_fini(&out);
	json_decref(array);
}

static void bytes_that_are_no_text(void **state)
{
	static const struct {
		const char *in;
		const char *out;
	} cases[] = {
		{ "a\xff"
		  "b",
		  "\"a\xef\xbf\xbd"
		  "b\"" },
		{ "\xc3", "\"\xef\xbf\xbd\"" },                                 /* cut short */
		{ "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },                 /* overlong */
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* surrogate */
		{ "\xf0\x9f\x93\x88", "\"\xf0\x9f\x93\x88\"" },
		{ "\xe2\x82\xac", "\"\xe2\x82\xac\"" },
		/* what could steer a terminal is escaped as well */
		{ "\x7f\xc2\x9b\xc2\xa0", "\"\\u007f\\u009b\xc2\xa0\"" },
		{ "\xe2\x80\xae\xe2\x81\xa6\xef\xbf\xbe", "\"\\u202e\\u2066\\ufffe\"" },
	};
	struct rfl_buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		rfl_buf_reset(&out);
		rfl_json_write_string(&out, cases[i].in, strlen(cases[i].in));
		assert_string_equal(rfl_buf_str(&out), cases[i].out);
	}
	rfl_buf_fini(&out);
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tmpdir(errors_name_line_and_column),
		cmocka_unit_test(utf_16),
		in_tmpdir(a_file_that_cannot_be_read),
		cmocka_unit_test(unknown_keys_are_refused),
		cmocka_unit_test(keys_are_shown_on_one_line),
		cmocka_unit_test(writes_as_people_read),
		cmocka_unit_test(a_small_object_on_one_line),
		in_tmpdir(what_is_saved_loads_again),
		cmocka_unit_test(what_is_not_known_is_null),
		cmocka_unit_test(bytes_that_are_no_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
