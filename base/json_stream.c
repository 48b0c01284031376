/* json_stream.c - a tokenizer for JSON (RFC 8259) that checks the structure of what it reads. */
#include "base/json_stream.h"

#include <math.h>

void rfl_json_settle(struct rfl_json_stream *s)
{
	rfl_input_skip(s->in, s->at);
	if (s->at > 0)
		s->window = rfl_span_from(s->window, s->at);
	s->at = 0;
}

static enum rfl_json_token fail(struct rfl_json_stream *s, const char *what)
{
	rfl_json_settle(s);
	s->rc = rfl_fail(s->err, RFL_EFORMAT, 0, "%s:%zu: %s", s->in->name, s->in->line, what);
	return RFL_JSON_ERROR;
}

/* Return the next byte without consuming it; -1 at the end of the file or after a failure. */
static int peek(struct rfl_json_stream *s)
{
	if (s->at == s->window.len && s->rc == RFL_OK) {
		rfl_json_settle(s);
		s->rc = rfl_input_peek(s->in, RFL_INPUT_HEAD, &s->window, s->err);
	}
	return s->rc == RFL_OK && s->at < s->window.len ? (unsigned char)s->window.at[s->at] : -1;
}

static int peek_past_blanks(struct rfl_json_stream *s)
{
	int c = peek(s);

	for (; c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek(s))
		s->at++;
	return c;
}

static void put(struct rfl_json_stream *s, char c)
{
	if (s->len < RFL_JSON_TEXT_MAX)
		s->text[s->len++] = c;
}

/* Read the four digits of "\u1234", and append the character; half a surrogate pair is '?'. */
static bool read_unicode(struct rfl_json_stream *s)
{
	unsigned code = 0;

	for (int i = 0; i < 4; i++, s->at++) {
		const int c = peek(s), lower = c | 0x20;

		if (c >= '0' && c <= '9')
			code = code * 16 + (unsigned)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			code = code * 16 + (unsigned)(lower - 'a') + 10;
		else
			return false;
	}
	if (code < 0x80) {
		put(s, (char)code);
	} else if (code >= 0xd800 && code < 0xe000) {
		put(s, '?');
	} else {
		if (code >= 0x800)
			put(s, (char)(0xe0 | code >> 12));
		put(s, (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3f) : 0xc0 | code >> 6));
		put(s, (char)(0x80 | (code & 0x3f)));
	}
	return true;
}

/* Read a string; its first quote is next. */
static bool read_string(struct rfl_json_stream *s)
{
	static const char codes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	int c;

	s->len = 0;
	s->at++;
	while ((c = peek(s)) != '"') {
		if (c < 0)
			return false;
		s->at++;
		if (c != '\\') {
			put(s, (char)c);
			continue;
		}
		c = peek(s);
		const char *code = c > 0 ? strchr(codes, c) : NULL;
		s->at += c >= 0;
		if (code)
			put(s, meant[code - codes]);
		else if (c != 'u' || !read_unicode(s))
			return false;
	}
	s->at++;
	s->len = rfl_text_mask(s->text, s->len, false);
	s->text[s->len] = '\0';
	return true;
}

/* Read a number or a word. */
static enum rfl_json_token read_word(struct rfl_json_stream *s)
{
	static const char *const words[] = { "true",     "false",     "null", "NaN",  "nan", "-nan",
					     "Infinity", "-Infinity", "inf",  "-inf", NULL };
	size_t i = 0;
	int c;

	for (s->len = 0; (c = peek(s)) > ' ' && c < 0x7f && !strchr(",]}:\"[{", c); s->at++)
		put(s, (char)c);
	s->text[s->len] = '\0';
	while (words[i] && strcmp(words[i], s->text) != 0)
		i++;
	if (words[i])
		return RFL_JSON_WORD;
	if (rfl_span_number((struct rfl_span){ s->text, s->len }, &s->number))
		return RFL_JSON_NUMBER;
	return c < 0 ? fail(s, "the file is cut off")
		     : fail(s, "not JSON: neither a value nor a closing bracket");
}

enum rfl_json_token rfl_json_next(struct rfl_json_stream *s)
{
	int c = peek_past_blanks(s);

	s->number = NAN;
	if (c == ',' && s->after_value && s->depth > 0) {
		s->at++;
		s->after_value = false;
		c = peek_past_blanks(s);
	} else if (s->after_value && c >= 0 && c != ']' && c != '}') {
		return fail(s, s->depth > 0 ? "not JSON: expected a comma or a closing bracket"
					    : "not JSON: text after the last bracket");
	}
	if (s->rc != RFL_OK)
		return RFL_JSON_ERROR;
	if (c < 0)
		return s->after_value && s->depth == 0 ? RFL_JSON_END
						       : fail(s, "the file is cut off");
	const bool in_object = s->depth > 0 && s->is_object[s->depth - 1];
	if (c == ']' || c == '}') {
		if (s->depth == 0 || s->after_key || in_object != (c == '}'))
			return fail(s, "not JSON: unexpected closing bracket");
		s->at++;
		s->depth--;
		s->after_value = true;
		return RFL_JSON_CLOSE;
	}
	if (c == '"') {
		if (!read_string(s))
			return s->rc ? RFL_JSON_ERROR
				     : fail(s, peek(s) < 0
						       ? "the file is cut off inside a string"
						       : "not JSON: unknown escape in a string");
		if (!in_object || s->after_key) {
			s->after_key = false;
			s->after_value = true;
			return RFL_JSON_STRING;
		}
		if ((c = peek_past_blanks(s)) != ':')
			return s->rc ? RFL_JSON_ERROR
				     : fail(s, c < 0 ? "the file is cut off"
						     : "not JSON: expected ':' after a key");
		s->at++;
		s->after_key = true;
		return RFL_JSON_KEY;
	}
	if (in_object && !s->after_key)
		return fail(s, "not JSON: expected a key");
	s->after_key = false;
	if (c != '{' && c != '[') {
		s->after_value = true;
		return read_word(s);
	}
	if (s->depth == RFL_JSON_DEPTH_MAX)
		return fail(s, "nested too deeply: more than 64 levels");
	s->at++;
	s->is_object[s->depth++] = c == '{';
	return c == '{' ? RFL_JSON_OBJECT : RFL_JSON_ARRAY;
}

enum rfl_json_token rfl_json_skip(struct rfl_json_stream *s, enum rfl_json_token token)
{
	const size_t depth = s->depth;

	if (token == RFL_JSON_OBJECT || token == RFL_JSON_ARRAY)
		while (token > RFL_JSON_END && s->depth >= depth)
			token = rfl_json_next(s);
	return token;
}
