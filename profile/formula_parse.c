/*
 * formula_parse.c - the text of a formula file. docs/formulas.md describes the syntax.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "profile/formula_impl.h"

#define USE_DEPTH_MAX 4
#define TERMS_MAX     4096
#define WORD_MAX      256

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_NAME };

struct token {
	enum token_kind kind;
	const char *at; /* without quotes */
	size_t len;
	size_t line, column;
};

struct parser {
	struct rfl_formulas *f;
	const char *name;
	const char *at, *end;
	const char *line_start;
	size_t line;
	int depth;      /* of `use` */
	struct token t; /* the one that is looked at */
	struct rfl_err *err;
};

static enum rfl_rc fail_at(const struct parser *p, const struct token *t, const char *fmt, ...)
	RFL_PRINTF(3, 4);

static enum rfl_rc fail_at(const struct parser *p, const struct token *t, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return rfl_fail(p->err, RFL_EFORMAT, 0, "%s:%zu:%zu: %s", p->name, t->line, t->column,
			what);
}

static enum rfl_rc no_memory(const struct parser *p)
{
	return rfl_fail(p->err, RFL_ENOMEM, 0, "%s: out of memory", p->name);
}

/* ---- tokens ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_to_newline(struct parser *p)
{
	while (p->at < p->end && *p->at != '\n')
		p->at++;
}

static void next_line(struct parser *p)
{
	p->at++;
	p->line++;
	p->line_start = p->at;
}

/* Skip blanks, comments and ends of lines behind which the statement goes on: lines that begin
 * with a blank. True when the statement ends here. */
static bool skip_blanks(struct parser *p)
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

static enum rfl_rc read_quoted(struct parser *p, char quote)
{
	p->t.kind = quote == '"' ? TOKEN_STRING : TOKEN_NAME;
	p->t.at = ++p->at;
	while (p->at < p->end && *p->at != quote && *p->at != '\n')
		p->at++;
	if (p->at == p->end || *p->at != quote)
		return fail_at(p, &p->t, "the %c that begins here does not end in this line",
			       quote);
	p->t.len = (size_t)(p->at - p->t.at);
	p->at++;
	if (p->t.len == 0)
		return fail_at(p, &p->t, "nothing stands between these quotes");
	for (size_t i = 0; i < p->t.len; i++)
		if ((unsigned char)p->t.at[i] < ' ')
			return fail_at(p, &p->t, "a control character stands between these quotes");
	return RFL_OK;
}

static enum rfl_rc next(struct parser *p)
{
	bool ended = skip_blanks(p);

	p->t = (struct token){
		.line = p->line,
		.column = (size_t)(p->at - p->line_start) + 1,
	};
	if (ended)
		return RFL_OK;
	if (*p->at == '"' || *p->at == '\'')
		return read_quoted(p, *p->at);
	p->t.kind = TOKEN_WORD;
	p->t.at = p->at;
	while (p->at < p->end && !is_blank(*p->at) && *p->at != '\n')
		p->at++;
	p->t.len = (size_t)(p->at - p->t.at);
	for (size_t i = 0; i < p->t.len; i++)
		if (p->t.at[i] < ' ' || p->t.at[i] > '~' || strchr("'\"", p->t.at[i]))
			return fail_at(p, &p->t, "a name holds letters, digits and punctuation");
	if (p->t.len > WORD_MAX)
		return fail_at(p, &p->t, "a name has %d characters at most", WORD_MAX);
	return RFL_OK;
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->t.kind == TOKEN_WORD && p->t.len == strlen(word) &&
	       memcmp(p->t.at, word, p->t.len) == 0;
}

/* What stands there, for a message. */
static const char *shown(const struct parser *p, char out[64])
{
	if (p->t.kind == TOKEN_END)
		(void)snprintf(out, 64, "the end of the statement");
	else
		(void)snprintf(out, 64, "'%.*s%s'", (int)(p->t.len < 48 ? p->t.len : 48), p->t.at,
			       p->t.len > 48 ? "..." : "");
	rfl_text_one_line(out);
	return out;
}

static enum rfl_rc text_of(struct parser *p, const char **ret)
{
	*ret = rfl_arena_printf(p->f->arena, "%.*s", (int)p->t.len, p->t.at);
	return *ret ? RFL_OK : no_memory(p);
}

static enum rfl_rc take_string(struct parser *p, const char *what, const char **ret)
{
	char there[64];
	enum rfl_rc rc;

	if (p->t.kind != TOKEN_STRING)
		return fail_at(p, &p->t, "%s in \"quotes\" belongs here, not %s", what,
			       shown(p, there));
	rc = text_of(p, ret);
	return rc ? rc : next(p);
}

/* ---- arrays ---- */

/* Room for one more element. */
static enum rfl_rc room(const struct parser *p, void **array, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *grown;

	if (n < *cap)
		return RFL_OK;
	grown = realloc(*array, want * size);
	if (!grown)
		return no_memory(p);
	*array = grown;
	*cap = want;
	return RFL_OK;
}

/* ---- terms ---- */

static bool is_number(const struct token *t)
{
	return t->kind == TOKEN_WORD &&
	       ((t->at[0] >= '0' && t->at[0] <= '9') ||
		(t->at[0] == '.' && t->len > 1 && t->at[1] >= '0' && t->at[1] <= '9'));
}

static enum rfl_rc take_weight(struct parser *p, double *weight)
{
	char text[WORD_MAX + 1];
	double value;

	(void)snprintf(text, sizeof(text), "%.*s", (int)p->t.len, p->t.at);
	if (rfl_num_parse_double(text, "weight", &value, NULL) != RFL_OK || value <= 0)
		return fail_at(p, &p->t, "the weight '%s' is not a number above 0", text);
	*weight *= value;
	return next(p);
}

/* The quantity of a word, RFL_QUANTITY_COUNT for none. */
static enum rfl_quantity quantity_of(const struct token *t)
{
	char text[64];

	if (t->kind != TOKEN_WORD || t->len >= sizeof(text))
		return RFL_QUANTITY_COUNT;
	(void)snprintf(text, sizeof(text), "%.*s", (int)t->len, t->at);
	return rfl_quantity_find(text);
}

static bool is_operator(const struct token *t)
{
	static const char *const operators[] = { "|", "+", "-", "*", "/", "=", "|=" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(operators); i++)
		if (t->len == strlen(operators[i]) && memcmp(t->at, operators[i], t->len) == 0)
			return true;
	return false;
}

/* 'Memory Throughput [byte/s]': the name, and the unit that tells it from others of that name. */
static enum rfl_rc split_unit(struct parser *p, size_t *len, const char **unit)
{
	const char *open = memchr(p->t.at, '[', p->t.len);

	*len = p->t.len;
	*unit = NULL;
	if (!open || p->t.at[p->t.len - 1] != ']' || open == p->t.at || open[-1] != ' ')
		return RFL_OK;
	*len = (size_t)(open - p->t.at) - 1;
	*unit = rfl_arena_printf(p->f->arena, "%.*s", (int)(p->t.len - *len - 3), open + 1);
	return *unit ? RFL_OK : no_memory(p);
}

static enum rfl_rc take_metric(struct parser *p, size_t *slot)
{
	char there[64];
	size_t len = p->t.len;
	const char *unit = NULL;
	enum rfl_rc rc = RFL_OK;

	if ((p->t.kind != TOKEN_WORD && p->t.kind != TOKEN_NAME) ||
	    (p->t.kind == TOKEN_WORD && (is_operator(&p->t) || is_number(&p->t))))
		return fail_at(p, &p->t, "the name of a metric belongs here, not %s",
			       shown(p, there));
	if (p->t.kind == TOKEN_NAME)
		rc = split_unit(p, &len, &unit);
	if (rc != RFL_OK)
		return rc;
	*slot = rfl_formulas__slot_add(p->f, p->t.at, len, unit, p->t.kind == TOKEN_NAME);
	if (*slot == SIZE_MAX)
		return no_memory(p);
	if (*slot == RFL_SLOTS_MAX)
		return fail_at(p, &p->t, "a family names %d metrics at most", RFL_SLOTS_MAX);
	return next(p);
}

/* What follows a '*': a metric, or a quantity that is found before `of`. */
static enum rfl_rc take_factor(struct parser *p, enum rfl_quantity of, struct rfl_term *term)
{
	enum rfl_quantity q = quantity_of(&p->t);
	size_t slot;
	enum rfl_rc rc;

	if (q != RFL_QUANTITY_COUNT) {
		if (term->per_quantity >= 0)
			return fail_at(p, &p->t, "a product has one quantity at most");
		if (q >= of)
			return fail_at(p, &p->t, "%s is not found before %s",
				       rfl_quantity_info(q)->name, rfl_quantity_info(of)->name);
		term->per_quantity = (int)q;
		return next(p);
	}
	if (term->per_slot >= 0)
		return fail_at(p, &p->t, "a product has two metrics at most");
	rc = take_metric(p, &slot);
	if (rc == RFL_OK)
		term->per_slot = (int)slot;
	return rc;
}

/* [weight] metric { * factor } [ / metric ] */
static enum rfl_rc take_term(struct parser *p, enum rfl_quantity of, double sign)
{
	struct rfl_term term = {
		.weight = sign, .per_slot = -1, .over_slot = -1, .per_quantity = -1
	};
	struct rfl_formulas *f = p->f;
	size_t slot;
	enum rfl_rc rc = RFL_OK;

	if (f->nterms == TERMS_MAX)
		return fail_at(p, &p->t, "a family has %d terms at most", TERMS_MAX);
	if (is_number(&p->t))
		rc = take_weight(p, &term.weight);
	if (rc == RFL_OK)
		rc = take_metric(p, &term.slot);
	while (rc == RFL_OK && is_word(p, "*")) {
		rc = next(p);
		if (rc == RFL_OK)
			rc = take_factor(p, of, &term);
	}
	if (rc == RFL_OK && is_word(p, "/")) {
		rc = next(p);
		if (rc == RFL_OK)
			rc = take_metric(p, &slot);
		if (rc == RFL_OK)
			term.over_slot = (int)slot;
	}
	if (rc == RFL_OK)
		rc = room(p, (void **)&f->terms, f->nterms, &f->terms_cap, sizeof(term));
	if (rc == RFL_OK)
		f->terms[f->nterms++] = term;
	return rc;
}

/* ---- ways ---- */

/* [ partial | estimate | caveat "words" ] behind the terms of a way. */
static enum rfl_rc take_remark(struct parser *p, struct rfl_formula_way *way)
{
	static const struct {
		const char *word;
		enum rfl_way_kind kind;
	} remarks[] = {
		{ "partial", RFL_WAY_PARTIAL },
		{ "estimate", RFL_WAY_ESTIMATE },
		{ "caveat", RFL_WAY_FULL },
	};
	enum rfl_rc rc;

	for (size_t i = 0; i < RFL_ARRAY_LEN(remarks); i++) {
		if (!is_word(p, remarks[i].word))
			continue;
		way->kind = remarks[i].kind;
		rc = next(p);
		return rc ? rc : take_string(p, "a remark", &way->caveat);
	}
	return RFL_OK;
}

static enum rfl_rc take_way(struct parser *p, enum rfl_quantity q)
{
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	struct rfl_formula_way way = { .first = p->f->nterms };
	enum rfl_rc rc = take_term(p, q, 1);

	while (rc == RFL_OK && (is_word(p, "+") || is_word(p, "-"))) {
		double sign = is_word(p, "-") ? -1 : 1;

		rc = next(p);
		if (rc == RFL_OK)
			rc = take_term(p, q, sign);
	}
	way.nterms = p->f->nterms - way.first;
	if (rc == RFL_OK)
		rc = take_remark(p, &way);
	if (rc == RFL_OK)
		rc = room(p, (void **)&quantity->ways, quantity->nways, &quantity->cap,
			  sizeof(way));
	if (rc == RFL_OK)
		quantity->ways[quantity->nways++] = way;
	return rc;
}

static enum rfl_rc take_ways(struct parser *p, enum rfl_quantity q)
{
	enum rfl_rc rc = next(p);

	if (rc == RFL_OK)
		rc = take_way(p, q);
	while (rc == RFL_OK && is_word(p, "|")) {
		rc = next(p);
		if (rc == RFL_OK)
			rc = take_way(p, q);
	}
	return rc;
}

/* ---- statements ---- */

/* <quantity> = ways, <quantity> |= ways, <quantity> impossible "why" */
static enum rfl_rc quantity_statement(struct parser *p, enum rfl_quantity q)
{
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	struct token first = p->t;
	char there[64];
	enum rfl_rc rc = next(p);

	if (rc != RFL_OK)
		return rc;
	if (is_word(p, "=") || is_word(p, "impossible")) {
		if (quantity->impossible || quantity->nways > 0)
			return fail_at(p, &first,
				       "%s has its formula already; '|=' adds ways to it",
				       rfl_quantity_info(q)->name);
		if (is_word(p, "="))
			return take_ways(p, q);
		rc = next(p);
		return rc ? rc : take_string(p, "the reason", &quantity->impossible);
	}
	if (!is_word(p, "|="))
		return fail_at(p, &p->t, "'=', '|=' or 'impossible' belongs here, not %s",
			       shown(p, there));
	rc = take_ways(p, q);
	if (rc == RFL_OK && quantity->impossible)
		quantity->nways = 0; /* a shared part cannot know it */
	return rc;
}

static enum rfl_rc take_quantity(struct parser *p, enum rfl_quantity *ret)
{
	char there[64];

	if (p->t.kind == TOKEN_END)
		return fail_at(p, &p->t, "a quantity belongs here, not %s", shown(p, there));
	*ret = quantity_of(&p->t);
	if (*ret == RFL_QUANTITY_COUNT)
		return fail_at(p, &p->t, "%s is no quantity", shown(p, there));
	return next(p);
}

/* subtract <quantity> weight metric "why" */
static enum rfl_rc subtract_statement(struct parser *p)
{
	struct rfl_formula_less less = { .weight = 1 };
	enum rfl_quantity q;
	enum rfl_rc rc = take_quantity(p, &q);

	if (rc == RFL_OK && is_number(&p->t))
		rc = take_weight(p, &less.weight);
	if (rc == RFL_OK)
		rc = take_metric(p, &less.slot);
	if (rc == RFL_OK)
		rc = take_string(p, "the reason", &less.reason);
	if (rc == RFL_OK)
		p->f->quantities[q].less = less;
	return rc;
}

/* exclude <quantity> metric = weight metric "why" */
static enum rfl_rc exclude_statement(struct parser *p)
{
	struct rfl_formulas *f = p->f;
	struct rfl_trap trap = { .weight = 1 };
	char there[64];
	enum rfl_rc rc = take_quantity(p, &trap.quantity);

	if (rc == RFL_OK)
		rc = take_metric(p, &trap.equal);
	if (rc == RFL_OK && !is_word(p, "="))
		return fail_at(p, &p->t, "'=' belongs here, not %s", shown(p, there));
	if (rc == RFL_OK)
		rc = next(p);
	if (rc == RFL_OK && is_number(&p->t))
		rc = take_weight(p, &trap.weight);
	if (rc == RFL_OK)
		rc = take_metric(p, &trap.other);
	if (rc == RFL_OK)
		rc = take_string(p, "the reason", &trap.reason);
	if (rc == RFL_OK)
		rc = room(p, (void **)&f->traps, f->ntraps, &f->traps_cap, sizeof(trap));
	if (rc == RFL_OK)
		f->traps[f->ntraps++] = trap;
	return rc;
}

static enum rfl_rc family_statement(struct parser *p)
{
	char there[64];
	enum rfl_rc rc;

	if (p->depth > 0)
		return fail_at(p, &p->t, "a part that others use is no family");
	if (p->t.kind != TOKEN_WORD)
		return fail_at(p, &p->t, "the family's name belongs here, not %s", shown(p, there));
	rc = text_of(p, &p->f->family);
	return rc ? rc : next(p);
}

static enum rfl_rc chips_statement(struct parser *p)
{
	struct rfl_formulas *f = p->f;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && p->t.kind == TOKEN_WORD) {
		rc = room(p, (void **)&f->chips, f->nchips, &f->chips_cap, sizeof(*f->chips));
		if (rc == RFL_OK)
			rc = text_of(p, &f->chips[f->nchips]);
		if (rc == RFL_OK) {
			f->nchips++;
			rc = next(p);
		}
	}
	return rc;
}

static enum rfl_rc command_statement(struct parser *p)
{
	return take_string(p, "a command", &p->f->command);
}

static enum rfl_rc parse(struct parser *p);

static enum rfl_rc use_part(struct parser *p)
{
	char name[64], there[64];
	const struct rfl_formula_file *file;
	struct parser part;
	enum rfl_rc rc;

	if (p->t.kind != TOKEN_WORD)
		return fail_at(p, &p->t, "the name of a part belongs here, not %s",
			       shown(p, there));
	(void)snprintf(name, sizeof(name), "%.*s", (int)(p->t.len < 63 ? p->t.len : 63), p->t.at);
	file = rfl_formulas__file(name);
	if (!file)
		return fail_at(p, &p->t, "there is no part %s", shown(p, there));
	if (p->depth == USE_DEPTH_MAX)
		return fail_at(p, &p->t, "parts use each other more than %d deep", USE_DEPTH_MAX);
	part = (struct parser){
		.f = p->f,
		.name = file->name,
		.at = file->text,
		.end = file->text + file->len,
		.depth = p->depth + 1,
		.err = p->err,
	};
	rc = parse(&part);
	if (rc != RFL_OK)
		rfl_err_prefix(p->err, "%s:%zu:%zu", p->name, p->t.line, p->t.column);
	return rc;
}

static enum rfl_rc use_statement(struct parser *p)
{
	enum rfl_rc rc;

	do {
		rc = use_part(p);
		if (rc == RFL_OK)
			rc = next(p);
	} while (rc == RFL_OK && p->t.kind != TOKEN_END);
	return rc;
}

static enum rfl_rc statement(struct parser *p)
{
	static const struct {
		const char *word;
		enum rfl_rc (*take)(struct parser *p);
	} statements[] = {
		{ "family", family_statement },     { "chips", chips_statement },
		{ "use", use_statement },           { "command", command_statement },
		{ "subtract", subtract_statement }, { "exclude", exclude_statement },
	};
	enum rfl_quantity q = quantity_of(&p->t);
	char there[64];
	enum rfl_rc rc;

	if (q != RFL_QUANTITY_COUNT)
		return quantity_statement(p, q);
	for (size_t i = 0; i < RFL_ARRAY_LEN(statements); i++) {
		if (!is_word(p, statements[i].word))
			continue;
		rc = next(p);
		return rc ? rc : statements[i].take(p);
	}
	return fail_at(p, &p->t, "%s is neither a statement nor a quantity", shown(p, there));
}

static enum rfl_rc parse(struct parser *p)
{
	char there[64];
	enum rfl_rc rc = RFL_OK;

	p->line = 1;
	p->line_start = p->at;
	while (rc == RFL_OK) {
		rc = next(p);
		if (rc != RFL_OK || (p->t.kind == TOKEN_END && p->at == p->end))
			break;
		if (p->t.kind == TOKEN_END)
			continue; /* empty lines before the first statement */
		rc = statement(p);
		if (rc == RFL_OK && p->t.kind != TOKEN_END)
			rc = fail_at(p, &p->t, "%s is one too many here", shown(p, there));
	}
	return rc;
}

struct rfl_formulas *rfl_formulas__new_empty(void)
{
	struct rfl_formulas *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->arena = rfl_arena_new(0);
	if (f->arena)
		return f;
	free(f);
	return NULL;
}

enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err)
{
	struct parser p = {
		.f = rfl_formulas__new_empty(),
		.name = name,
		.at = text,
		.end = text + len,
		.err = err,
	};
	enum rfl_rc rc;

	if (!p.f)
		return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", name);
	rc = parse(&p);
	if (rc == RFL_OK && !p.f->family)
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s:1:1: 'family' and its name are missing",
			      name);
	if (rc == RFL_OK)
		*ret = p.f;
	else
		rfl_formulas_free(p.f);
	return rc;
}
