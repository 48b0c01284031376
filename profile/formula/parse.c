/*
 * parse.c - parses formula files (docs/formulas.md describes the syntax) and finds the compiled-in
 * ones: a family for each chip, and the parts that families share.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/chips.h"
#include "profile/formula.h"

#define USE_DEPTH_MAX 4
#define TERMS_MAX     64

enum token_kind { END, WORD, STRING, NAME };

struct token {
	enum token_kind kind;
	struct rfl_span s; /* without quotes */
	size_t line, column;
};

/* After a failure, which stays in `rc`, nothing is read and no word matches. */
struct parser {
	struct rfl_formulas *f;
	const char *name;
	const char *at, *end;
	const char *line_start;
	size_t line;
	int depth;      /* nesting of `use` */
	struct token t; /* the current token */
	enum rfl_rc rc;
	struct rfl_err *err;
};

/* Fail with "file:line:column: ...". */
static RFL_PRINTF(3, 4) void fail_at(struct parser *p, const struct token *t, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (p->rc == RFL_OK)
		p->rc = rfl_fail(p->err, RFL_EFORMAT, 0, "%s:%zu:%zu: %s", p->name, t->line,
				 t->column, what);
}

/* The current token, for a message. */
static const char *shown(const struct parser *p, char out[64])
{
	const struct rfl_span *s = &p->t.s;

	if (p->t.kind == END)
		(void)snprintf(out, 64, "the end of the statement");
	else
		(void)snprintf(out, 64, "'%.*s%s'", (int)(s->len < 48 ? s->len : 48), s->at,
			       s->len > 48 ? "..." : "");
	return out;
}

static void fail_expecting(struct parser *p, const char *what)
{
	char there[64];

	fail_at(p, &p->t, "expected %s, not %s", what, shown(p, there));
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

/* Skip blanks, comments, and newlines before continuation lines, which begin with a blank. @return
 * true at the end of the statement */
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
		/* Empty lines and comments in the first column do not end a statement. */
		do {
			p->at++;
			p->line++;
			p->line_start = p->at;
			if (p->at < p->end && *p->at == '#')
				skip_to_newline(p);
		} while (p->at < p->end && *p->at == '\n');
		if (p->at == p->end || !is_blank(*p->at))
			return true;
	}
}

/* Read the next token, or END at the end of a statement. */
static void next(struct parser *p)
{
	struct rfl_span *s = &p->t.s;

	if (p->rc != RFL_OK)
		return;
	bool ended = skip_blanks(p);
	p->t = (struct token){
		.line = p->line,
		.column = (size_t)(p->at - p->line_start) + 1,
	};
	if (ended)
		return;
	if (*p->at == '"' || *p->at == '\'') {
		const char quote = *p->at;

		p->t.kind = quote == '"' ? STRING : NAME;
		s->at = ++p->at;
		while (p->at < p->end && *p->at != quote && *p->at != '\n')
			p->at++;
		if (p->at == p->end || *p->at != quote) {
			fail_at(p, &p->t, "the closing %c is missing on this line", quote);
			return;
		}
		s->len = (size_t)(p->at++ - s->at);
		if (s->len == 0)
			fail_at(p, &p->t, "the quotes are empty");
		for (size_t i = 0; i < s->len; i++)
			if ((unsigned char)s->at[i] < ' ')
				fail_at(p, &p->t, "a control character inside quotes");
		return;
	}
	p->t.kind = WORD;
	s->at = p->at;
	while (p->at < p->end && !is_blank(*p->at) && *p->at != '\n')
		p->at++;
	s->len = (size_t)(p->at - s->at);
	for (size_t i = 0; i < s->len; i++)
		if (s->at[i] < ' ' || s->at[i] > '~' || strchr("'\"", s->at[i]))
			fail_at(p, &p->t, "use only letters, digits and punctuation in names");
	if (s->len > RFL_WORD_MAX)
		fail_at(p, &p->t, "a name has at most %d characters", RFL_WORD_MAX);
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->rc == RFL_OK && p->t.kind == WORD && rfl_span_is(p->t.s, word);
}

/* Consume a word if it is the current token. */
static bool take_word(struct parser *p, const char *word)
{
	if (!is_word(p, word))
		return false;
	next(p);
	return p->rc == RFL_OK;
}

/* Consume a token of a kind. @param what  its name in messages @return a copy in the arena */
static const char *take(struct parser *p, enum token_kind kind, const char *what)
{
	if (p->t.kind != kind)
		fail_expecting(p, what);
	if (p->rc != RFL_OK)
		return NULL;
	const char *text = rfl_arena_printf(p->f->arena, "%.*s", (int)p->t.s.len, p->t.s.at);
	next(p);
	return text;
}

/* ---- terms ---- */

static bool is_number(const struct token *t)
{
	const char *c = t->s.at;

	return t->kind == WORD && ((c[0] >= '0' && c[0] <= '9') ||
				   (c[0] == '.' && t->s.len > 1 && c[1] >= '0' && c[1] <= '9'));
}

/* Consume an optional weight; the default is 1. */
static double take_weight(struct parser *p)
{
	double value = 1;

	if (p->rc != RFL_OK || !is_number(&p->t))
		return 1;
	if (!rfl_span_number(p->t.s, &value) || value <= 0)
		fail_at(p, &p->t, "the weight '%.*s' is not a number above 0", (int)p->t.s.len,
			p->t.s.at);
	next(p);
	return value;
}

/* The quantity that a token names, or RFL_QUANTITY_COUNT if it names none. */
static enum rfl_quantity quantity_of(const struct token *t)
{
	char text[64];

	if (t->kind != WORD || t->s.len >= sizeof(text))
		return RFL_QUANTITY_COUNT;
	return rfl_quantity_find(rfl_span_copy(t->s, text, sizeof(text)));
}

/* Consume a metric: a word, or a quoted name from a report. In "Memory Throughput [byte/s]" the
 * unit distinguishes metrics of the same name. */
static size_t take_metric(struct parser *p)
{
	static const char *const operators[] = { "|", "+", "-", "*", "/", "=", "|=" };
	const bool is_name = p->t.kind == NAME;
	const struct rfl_span s = p->t.s;
	const char *unit = NULL, *open = NULL;
	struct rfl_formulas *f = p->f;
	size_t len = s.len;
	bool added, wanted = is_name || (p->t.kind == WORD && !is_number(&p->t));

	if (p->rc != RFL_OK)
		return 0;
	for (size_t i = 0; i < RFL_ARRAY_LEN(operators); i++)
		wanted = wanted && !is_word(p, operators[i]);
	if (!wanted) {
		fail_expecting(p, "a metric");
		return 0;
	}
	if (is_name)
		open = memchr(s.at, '[', len);
	if (open && s.at[len - 1] == ']' && open > s.at && open[-1] == ' ') {
		len = (size_t)(open - s.at) - 1;
		unit = rfl_arena_printf(f->arena, "%.*s", (int)(s.len - len - 3), open + 1);
	}
	const uint32_t number = rfl_keys_add(&f->names, f->arena, s.at, len, &added);
	if (number > RFL_SLOTS_MAX)
		fail_at(p, &p->t, "a family has at most %d metrics", RFL_SLOTS_MAX);
	if (added) {
		rfl_reserve(&f->slots, &f->slots_cap, number);
		f->slots[f->nslots++] = (struct rfl_formula_slot){
			.name = f->names.keys[number - 1].at, .unit = unit, .is_report = is_name
		};
	}
	next(p);
	return number - 1;
}

/* Consume a term, [weight] metric { * factor } [ / metric ]. A factor is a metric, or a quantity
 * that is computed before `of`. */
static struct rfl_term take_term(struct parser *p, enum rfl_quantity of, double sign)
{
	struct rfl_term term = { .slot = { -1, -1, -1 }, .quantity = -1 };

	term.weight = sign * take_weight(p);
	term.slot[0] = (int)take_metric(p);
	while (take_word(p, "*")) {
		const enum rfl_quantity q = quantity_of(&p->t);

		if (q == RFL_QUANTITY_COUNT) {
			if (term.slot[1] >= 0)
				fail_at(p, &p->t, "a product has at most two metrics");
			term.slot[1] = (int)take_metric(p);
			continue;
		}
		if (term.quantity >= 0)
			fail_at(p, &p->t, "a product has at most one quantity");
		else if (q >= of)
			fail_at(p, &p->t, "%s is not computed before %s",
				rfl_quantity_info(q)->name, rfl_quantity_info(of)->name);
		term.quantity = (int)q;
		next(p);
	}
	if (take_word(p, "/"))
		term.slot[2] = (int)take_metric(p);
	return term;
}

/* ---- statements ---- */

/* <quantity> = way { | way }, <quantity> |= way { | way }, or <quantity> impossible "reason". A way
 * is a sum of terms, optionally followed by partial, estimate or caveat and a "remark". */
static void quantity_statement(struct parser *p, enum rfl_quantity q)
{
	static const char *const remarks[] = {
		[RFL_WAY_PARTIAL] = "partial",
		[RFL_WAY_ESTIMATE] = "estimate",
		[RFL_WAY_FULL] = "caveat",
	};
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	const struct token first = p->t;

	next(p);
	bool adds = is_word(p, "|=");
	if (!adds && !is_word(p, "=") && !is_word(p, "impossible")) {
		fail_expecting(p, "'=', '|=' or 'impossible'");
		return;
	}
	if (!adds && (quantity->impossible || quantity->nways > 0)) {
		fail_at(p, &first, "%s already has a formula; use '|=' to add ways",
			rfl_quantity_info(q)->name);
		return;
	}
	if (take_word(p, "impossible")) {
		quantity->impossible = take(p, STRING, "the reason in \"quotes\"");
		return;
	}
	do {
		struct rfl_formula_way way = { .nterms = 0 };
		struct rfl_term terms[TERMS_MAX];

		do { /* the current token is '=', '|=', '|', '+' or '-' */
			const double sign = is_word(p, "-") ? -1 : 1;

			if (way.nterms == TERMS_MAX)
				fail_at(p, &p->t, "a way has at most %d terms", TERMS_MAX);
			next(p);
			if (p->rc == RFL_OK)
				terms[way.nterms++] = take_term(p, q, sign);
		} while (is_word(p, "+") || is_word(p, "-"));
		for (size_t i = 0; i < RFL_ARRAY_LEN(remarks); i++) {
			if (!take_word(p, remarks[i]))
				continue;
			way.kind = (enum rfl_way_kind)i;
			way.caveat = take(p, STRING, "a remark in \"quotes\"");
			break;
		}
		if (p->rc != RFL_OK)
			return;
		way.terms = rfl_arena_array(p->f->arena, way.nterms, sizeof(*terms));
		memcpy(way.terms, terms, way.nterms * sizeof(*terms));
		rfl_reserve(&quantity->ways, &quantity->cap, quantity->nways + 1);
		quantity->ways[quantity->nways++] = way;
	} while (is_word(p, "|"));
	if (quantity->impossible)
		quantity->nways = 0; /* those of a shared part */
}

static enum rfl_quantity take_quantity(struct parser *p)
{
	const enum rfl_quantity q = quantity_of(&p->t);
	char there[64];

	if (p->t.kind == END)
		fail_expecting(p, "a quantity");
	else if (q == RFL_QUANTITY_COUNT)
		fail_at(p, &p->t, "%s is not a quantity", shown(p, there));
	next(p);
	return q;
}

static void statements(struct parser *p);

/* Find a file by its name; NULL: there is none. */
static const struct rfl_formula_file *find_file(const struct rfl_formula_file *files,
						struct rfl_span name)
{
	while (files->name && !rfl_span_is(name, files->name))
		files++;
	return files->name ? files : NULL;
}

/* use <part> { <part> } */
static void use_statement(struct parser *p)
{
	do {
		char there[64];

		if (p->t.kind != WORD) {
			fail_expecting(p, "the name of a part");
			return;
		}
		const struct rfl_formula_file *file = find_file(rfl_formula_parts, p->t.s);
		if (!file)
			fail_at(p, &p->t, "%s is not a known part", shown(p, there));
		else if (p->depth == USE_DEPTH_MAX)
			fail_at(p, &p->t, "more than %d levels of 'use'", USE_DEPTH_MAX);
		if (p->rc != RFL_OK)
			return;
		struct parser part = {
			.f = p->f,
			.name = file->name,
			.at = file->text,
			.end = file->text + file->len,
			.depth = p->depth + 1,
			.err = p->err,
		};
		statements(&part);
		if (part.rc != RFL_OK)
			rfl_err_prefix(p->err, "%s:%zu:%zu", p->name, p->t.line, p->t.column);
		p->rc = part.rc;
		next(p);
	} while (p->rc == RFL_OK && p->t.kind != END);
}

static void statement(struct parser *p)
{
	static const char why[] = "the reason in \"quotes\"", beginning[] = "a prefix of names";
	const enum rfl_quantity q = quantity_of(&p->t);
	struct rfl_formulas *f = p->f;
	char there[64];

	if (q != RFL_QUANTITY_COUNT) {
		quantity_statement(p, q);
	} else if (take_word(p, "use")) {
		use_statement(p);
	} else if (take_word(p, "command")) {
		f->command = take(p, STRING, "a command in \"quotes\"");
	} else if (take_word(p, "subtract")) { /* <quantity> weight metric "reason" */
		const enum rfl_quantity of = take_quantity(p);
		const double weight = take_weight(p);
		const size_t slot = take_metric(p);
		const char *reason = take(p, STRING, why);

		if (p->rc != RFL_OK)
			return;
		f->quantities[of].less.weight = weight;
		f->quantities[of].less.slot = slot;
		f->quantities[of].less.reason = reason;
	} else if (is_word(p, "exclude") || is_word(p, "doubt")) {
		/* <quantity> metric = weight metric "reason"; for a doubt '>' */
		struct rfl_trap trap = { .is_doubt = is_word(p, "doubt") };
		const char *sign = trap.is_doubt ? ">" : "=";

		next(p);
		trap.quantity = take_quantity(p);
		trap.slot = take_metric(p);
		if (!take_word(p, sign))
			fail_expecting(p, trap.is_doubt ? "'>'" : "'='");
		trap.weight = take_weight(p);
		trap.other = take_metric(p);
		trap.reason = take(p, STRING, why);
		rfl_reserve(&f->traps, &f->traps_cap, f->ntraps + 1);
		f->traps[f->ntraps++] = trap;
	} else if (take_word(p, "alias")) { /* <prefix> <prefix in formulas> */
		struct rfl_formula_alias alias = { .from = take(p, WORD, beginning) };

		alias.to = take(p, WORD, beginning);
		rfl_reserve(&f->aliases, &f->aliases_cap, f->naliases + 1);
		f->aliases[f->naliases++] = alias;
	} else {
		fail_at(p, &p->t, "%s is neither a statement nor a quantity", shown(p, there));
	}
}

static void statements(struct parser *p)
{
	char there[64];

	p->line = 1;
	p->line_start = p->at;
	for (next(p); p->rc == RFL_OK && (p->t.kind != END || p->at < p->end); next(p)) {
		if (p->t.kind == END)
			continue; /* empty lines before the first statement */
		statement(p);
		if (p->rc == RFL_OK && p->t.kind != END)
			fail_at(p, &p->t, "unexpected %s", shown(p, there));
	}
}

enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err)
{
	struct rfl_formulas *f = rfl_alloc_array(1, sizeof(*f));
	struct parser p = { .f = f, .name = name, .at = text, .end = text + len, .err = err };

	f->arena = rfl_arena_new();
	f->family = rfl_arena_strdup(f->arena, name);
	statements(&p);
	if (p.rc != RFL_OK) {
		rfl_formulas_free(f);
		return p.rc;
	}
	*ret = f;
	return RFL_OK;
}

/* ---- compiled-in files ---- */

enum rfl_rc rfl_formulas_new(const char *chip, struct rfl_formulas **ret, struct rfl_err *err)
{
	const struct rfl_chip *c = chip ? rfl_chip_find(chip) : NULL;
	const char *name = c ? c->family : chip ? chip : "any";
	const struct rfl_formula_file *file = find_file(rfl_formula_families, rfl_span_of(name));
	struct rfl_buf known = { 0 };

	if (file)
		return rfl_formulas_parse(file->text, file->len, file->name, ret, err);
	for (file = rfl_formula_families; file->name; file++) {
		const char *sep = " (";

		rfl_buf_printf(&known, "%s%s", known.len ? ", " : "", file->name);
		for (size_t i = 0; (c = rfl_chip_at(i)); i++) {
			if (strcmp(c->family, file->name) != 0)
				continue;
			rfl_buf_printf(&known, "%s%s", sep, c->name);
			sep = " ";
		}
		rfl_buf_puts(&known, sep[1] ? "" : ")");
	}
	enum rfl_rc rc =
		rfl_fail(err, RFL_ENOTFOUND, 0, "no formulas for '%s'; choose a family or chip: %s",
			 name, rfl_buf_str(&known));
	rfl_buf_fini(&known);
	return rc;
}
