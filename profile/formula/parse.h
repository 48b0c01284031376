/*
 * parse.h - the state of reading a formula file, for formula/token.c and formula/parse.c.
 */
#ifndef RFL_PROFILE_FORMULA_PARSE_H
#define RFL_PROFILE_FORMULA_PARSE_H

#include "profile/formula/impl.h"

enum rfl_token_kind { RFL_TOKEN_END, RFL_TOKEN_WORD, RFL_TOKEN_STRING, RFL_TOKEN_NAME };

struct rfl_token {
	enum rfl_token_kind kind;
	const char *at; /* without quotes */
	size_t len;
	size_t line, column;
};

struct rfl_parser {
	struct rfl_formulas *f;
	const char *name;
	const char *at, *end;
	const char *line_start;
	size_t line;
	int depth;          /* of `use` */
	struct rfl_token t; /* the one that is looked at */
	struct rfl_err *err;
};

/** "file:line:column: ..." */
enum rfl_rc rfl_parser_fail(const struct rfl_parser *p, const struct rfl_token *t, const char *fmt,
			    ...) RFL_PRINTF(3, 4);
enum rfl_rc rfl_parser_no_memory(const struct rfl_parser *p);

/** Look at the next token: RFL_TOKEN_END where a statement ends. */
enum rfl_rc rfl_parser_next(struct rfl_parser *p) RFL_WARN_UNUSED;
bool rfl_parser_is_word(const struct rfl_parser *p, const char *word);
/** The token in words, for a message. @return out */
const char *rfl_parser_shown(const struct rfl_parser *p, char out[64]);
/** The token's text, for the life of the formulas, and on to the next one.
 * @param kind, what  that belongs here, for a message */
enum rfl_rc rfl_parser_take(struct rfl_parser *p, enum rfl_token_kind kind, const char *what,
			    const char **ret) RFL_WARN_UNUSED;

#endif
