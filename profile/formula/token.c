/*
 * token.c - the words of a formula file, and messages that name their place.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profile/formula/parse.h"

enum rfl_rc rfl_parser_fail(const struct rfl_parser *p, const struct rfl_token *t, const char *fmt,
			    ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return rfl_fail(p->err, RFL_EFORMAT, 0, "%s:%zu:%zu: %s", p->name, t->line, t->column,
			what);
}

enum rfl_rc rfl_parser_no_memory(const struct rfl_parser *p)
{
	return rfl_fail(p->err, RFL_ENOMEM, 0, "%s: out of memory", p->name);
}

/* ---- tokens ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_to_newline(struct rfl_parser *p)
{
	while (p->at < p->end && *p->at != '\n')
		p->at++;
}

static void next_line(struct rfl_parser *p)
{
	p->at++;
	p->line++;
	p->line_start = p->at;
}

/* Skip blanks, comments and ends of lines behind which the statement goes on: lines that begin
 * with a blank. True when the statement ends here. */
static bool skip_blanks(struct rfl_parser *p)
{
	for (;;) {
		while (p->at < p->end && is_blank(*p->at))
			p->at++;
		if (p->at < p->end && *p->at == '#')
			skip_to_newline(p);
		if (p->at == p->end)
			return true;
		if (*p->at != '\n')
			return false;
		/* Empty lines and comments in the first column end nothing. */
		do {
			next_line(p);
			if (p->at < p->end && *p->at == '#')
				skip_to_newline(p);
		} while (p->at < p->end && *p->at == '\n');
		if (p->at == p->end || !is_blank(*p->at))
			return true;
	}
}

static enum rfl_rc read_quoted(struct rfl_parser *p, char quote)
{
	p->t.kind = quote == '"' ? RFL_TOKEN_STRING : RFL_TOKEN_NAME;
	p->t.at = ++p->at;
	while (p->at < p->end && *p->at != quote && *p->at != '\n')
		p->at++;
	if (p->at == p->end || *p->at != quote)
		return rfl_parser_fail(p, &p->t,
				       "the %c that begins here does not end in this line", quote);
	p->t.len = (size_t)(p->at - p->t.at);
	p->at++;
	if (p->t.len == 0)
		return rfl_parser_fail(p, &p->t, "nothing stands between these quotes");
	for (size_t i = 0; i < p->t.len; i++)
		if ((unsigned char)p->t.at[i] < ' ')
			return rfl_parser_fail(p, &p->t,
					       "a control character stands between these quotes");
	return RFL_OK;
}

enum rfl_rc rfl_parser_next(struct rfl_parser *p)
{
	bool ended = skip_blanks(p);

	p->t = (struct rfl_token){
		.line = p->line,
		.column = (size_t)(p->at - p->line_start) + 1,
	};
	if (ended)
		return RFL_OK;
	if (*p->at == '"' || *p->at == '\'')
		return read_quoted(p, *p->at);
	p->t.kind = RFL_TOKEN_WORD;
	p->t.at = p->at;
	while (p->at < p->end && !is_blank(*p->at) && *p->at != '\n')
		p->at++;
	p->t.len = (size_t)(p->at - p->t.at);
	for (size_t i = 0; i < p->t.len; i++)
		if (p->t.at[i] < ' ' || p->t.at[i] > '~' || strchr("'\"", p->t.at[i]))
			return rfl_parser_fail(p, &p->t,
					       "a name holds letters, digits and punctuation");
	if (p->t.len > RFL_WORD_MAX)
		return rfl_parser_fail(p, &p->t, "a name has %d characters at most", RFL_WORD_MAX);
	return RFL_OK;
}

bool rfl_parser_is_word(const struct rfl_parser *p, const char *word)
{
	return p->t.kind == RFL_TOKEN_WORD && p->t.len == strlen(word) &&
	       memcmp(p->t.at, word, p->t.len) == 0;
}

/* What stands there, for a message. */
const char *rfl_parser_shown(const struct rfl_parser *p, char out[64])
{
	if (p->t.kind == RFL_TOKEN_END)
		(void)snprintf(out, 64, "the end of the statement");
	else
		(void)snprintf(out, 64, "'%.*s%s'", (int)(p->t.len < 48 ? p->t.len : 48), p->t.at,
			       p->t.len > 48 ? "..." : "");
	return out;
}

enum rfl_rc rfl_parser_take(struct rfl_parser *p, enum rfl_token_kind kind, const char *what,
			    const char **ret)
{
	char there[64];

	if (p->t.kind != kind)
		return rfl_parser_fail(p, &p->t, "%s%s belongs here, not %s", what,
				       kind == RFL_TOKEN_STRING ? " in \"quotes\"" : "",
				       rfl_parser_shown(p, there));
	*ret = rfl_arena_printf(p->f->arena, "%.*s", (int)p->t.len, p->t.at);
	return *ret ? rfl_parser_next(p) : rfl_parser_no_memory(p);
}
