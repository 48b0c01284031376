/* JSON read as a stream: tokens, texts and numbers, and each kind of damage with its line. */
#include <math.h>

#include "base/json_stream.h"
#include "tests/unit/rfl_test.h"

/* All tokens of a text, one letter each, with the texts of keys and values; then the failure. */
static void read_all(const char *text, size_t len, struct rfl_buf *out)
{
	static const char letters[] = "!$OA)ksnw";
	struct rfl_input *in = rfl_input_open_text(text, len, "t.json");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_json_stream s = { .in = in, .err = &err };
	enum rfl_json_token token;

	rfl_buf_reset(out);
	do {
		token = rfl_json_next(&s);
		rfl_buf_putc(out, letters[token]);
		if (token >= RFL_JSON_KEY)
			rfl_buf_printf(out, "<%s>", s.text);
		assert_true(isnan(s.number) == (token != RFL_JSON_NUMBER));
	} while (token > RFL_JSON_END);
	assert_int_equal(rfl_json_next(&s), token); /* again */
	rfl_buf_puts(out, err.msg);
	rfl_input_close(in);
}

static void reads_every_kind_of_value(void **state)
{
	static const struct {
		const char *text, *tokens;
	} cases[] = {
		{ "{\"a\": [1, -2.5e3, \"x\"], \"b\": {\"c\": null}}",
		  "Ok<a>An<1>n<-2.5e3>s<x>)k<b>Ok<c>w<null>))$" },
		{ " [ ] \n", "A)$" },
		{ "[true, NaN, -Infinity,]", "Aw<true>w<NaN>w<-Infinity>)$" },
		{ "\"\\u0041\\u00e9\\u20ac\\ud83d\\\"\\\\\\/\\n\"",
		  "s<A\xc3\xa9\xe2\x82\xac?\"\\/?>$" },
	};
	RFL_AUTO(buf) out = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		read_all(cases[i].text, strlen(cases[i].text), &out);
		assert_string_equal(rfl_buf_str(&out), cases[i].tokens);
	}
}

static void names_the_line_of_damage(void **state)
{
	static const struct {
		const char *text, *tokens;
	} cases[] = {
		{ "", "!t.json:1: the file is cut off" },
		{ "[1,\n\n", "An<1>!t.json:3: the file is cut off" },
		{ "[tru", "A!t.json:1: the file is cut off" },
		{ "{\"a\"", "O!t.json:1: the file is cut off" },
		{ "{\"a\n", "O!t.json:2: the file is cut off inside a string" },
		{ "[1 2]", "An<1>!t.json:1: not JSON: expected a comma or a closing bracket" },
		{ "{\n1}", "O!t.json:2: not JSON: expected a key" },
		{ "{\"a\" 1}", "O!t.json:1: not JSON: expected ':' after a key" },
		{ "[1}", "An<1>!t.json:1: not JSON: unexpected closing bracket" },
		{ "{\"a\":}", "Ok<a>!t.json:1: not JSON: unexpected closing bracket" },
		{ "]", "!t.json:1: not JSON: unexpected closing bracket" },
		{ "[]\n[]", "A)!t.json:2: not JSON: text after the last bracket" },
		{ "[\"\\q\"]", "A!t.json:1: not JSON: unknown escape in a string" },
		{ "[\"\\u12\"]", "A!t.json:1: not JSON: unknown escape in a string" },
		{ "[x]", "A!t.json:1: not JSON: neither a value nor a closing bracket" },
		{ "[1e999]", "A!t.json:1: not JSON: neither a value nor a closing bracket" },
	};
	RFL_AUTO(buf) out = { .len = 0 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		read_all(cases[i].text, strlen(cases[i].text), &out);
		assert_string_equal(rfl_buf_str(&out), cases[i].tokens);
	}
	read_all("[\0]", 3, &out);
	assert_string_equal(rfl_buf_str(&out),
			    "A!t.json:1: not JSON: neither a value nor a closing bracket");
}

/* Texts and files longer than the window, depth, and skipping. */
static void is_bounded(void **state)
{
	RFL_AUTO(buf) text = { .len = 0 };
	RFL_AUTO(buf) out = { .len = 0 };
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	for (int i = 0; i < RFL_JSON_DEPTH_MAX; i++)
		rfl_buf_putc(&text, '[');
	read_all(text.data, text.len, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "the file is cut off"));
	rfl_buf_putc(&text, '[');
	read_all(text.data, text.len, &out);
	assert_non_null(strstr(rfl_buf_str(&out), "nested too deeply"));

	rfl_buf_reset(&text);
	rfl_buf_puts(&text, "[[[1,{\"x\":[2]}],\"");
	for (int i = 0; i < 600000; i++)
		rfl_buf_puts(&text, i % 100 == 0 ? "\n" : "a");
	rfl_buf_puts(&text, "\"],\n7]");
	struct rfl_input *in = rfl_input_open_text(text.data, text.len, "t.json");
	struct rfl_json_stream s = { .in = in, .err = &err };
	assert_int_equal(rfl_json_next(&s), RFL_JSON_ARRAY);
	assert_int_equal(rfl_json_skip(&s, rfl_json_next(&s)), RFL_JSON_CLOSE);
	assert_int_equal(s.depth, 1);
	assert_int_equal(s.len, RFL_JSON_TEXT_MAX);
	assert_int_equal(rfl_json_next(&s), RFL_JSON_NUMBER);
	assert_true(s.number == 7);
	rfl_json_settle(&s);
	assert_int_equal(in->line, 6002);
	rfl_input_close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_kind_of_value),
		cmocka_unit_test(names_the_line_of_damage),
		cmocka_unit_test(is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
