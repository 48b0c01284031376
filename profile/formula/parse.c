/*
 * parse.c - parses formula files (docs/reference/formulas.md describes the syntax) and finds the
 * compiled-in ones: a family for each chip, and the parts that families share.
 */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "profile/chips.h"
#include "profile/formula.h"

#define USE_DEPTH_MAX 4
#define REASON        "a reason in \"quotes\""

enum token_kind { END, WORD, STRING, NAME };

/* After a failure, which stays in `rc`, nothing is read and no word matches. */
struct parser {
	struct rfl_formulas *f;
	const char *name, *at, *end;
	const char *stop; /* the end of the current statement */
	size_t line;
	int depth; /* nesting of `use` */
	enum token_kind kind;
	struct rfl_span t; /* the current token, without quotes */
	enum rfl_rc rc;
	struct rfl_err *err;
};

static void fail(struct parser *p, const char *expected)
{
	if (p->rc == RFL_OK)
		p->rc = rfl_fail(p->err, RFL_EFORMAT, 0, "%s:%zu: expected %s, not '%.*s'", p->name,
				 p->line, expected, RFL_SPAN_ARG(p->t));
}

/* ---- tokens ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Read the next token, or END at the end of the statement; skip comments. */
static void next(struct parser *p)
{
	bool comment = false, good = true;

	if (p->rc != RFL_OK)
		return;
	for (; p->at < p->stop && (comment || is_blank(*p->at) || *p->at == '#'); p->at++) {
		comment = (comment || *p->at == '#') && *p->at != '\n';
		p->line += *p->at == '\n';
	}
	p->kind = END;
	p->t = rfl_span_of("the end of the statement");
	if (p->at == p->stop)
		return;
	const char quote = *p->at == '"' || *p->at == '\'' ? *p->at : '\0';
	p->kind = quote == '"' ? STRING : quote ? NAME : WORD;
	p->at += quote != '\0';
	p->t = (struct rfl_span){ .at = p->at };
	while (p->at < p->stop && (quote ? *p->at != quote : !is_blank(*p->at)))
		good = (unsigned char)*p->at++ >= ' ' && good;
	p->t.len = (size_t)(p->at - p->t.at);
	if (!good || p->t.len == 0 || (quote && p->at == p->stop))
		fail(p, "text, with both quotes on one line");
	if (p->kind == WORD && p->t.len > RFL_WORD_MAX)
		fail(p, "a shorter name");
	p->at += quote != '\0';
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->rc == RFL_OK && p->kind == WORD && rfl_span_is(p->t, word);
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
	if (p->kind != kind)
		fail(p, what);
	if (p->rc != RFL_OK)
		return NULL;
	const char *text = rfl_arena_printf(p->f->arena, "%.*s", (int)p->t.len, p->t.at);
	next(p);
	return text;
}

/* ---- terms ---- */

/* Consume an optional weight; the default is 1. */
static double take_weight(struct parser *p)
{
	double value = 1;

	if (p->rc != RFL_OK || p->kind != WORD ||
	    !(isdigit((unsigned char)p->t.at[0]) || p->t.at[0] == '.'))
		return 1;
	if (!rfl_span_number(p->t, &value) || value <= 0)
		fail(p, "a weight above 0");
	next(p);
	return value;
}

/* The quantity that the current token names, or RFL_QUANTITY_COUNT if it names none. */
static enum rfl_quantity quantity_of(const struct parser *p)
{
	char text[64];

	return p->kind != WORD || p->t.len >= sizeof(text)
		       ? RFL_QUANTITY_COUNT
		       : rfl_quantity_find(rfl_span_copy(p->t, text, sizeof(text)));
}

/* Consume a metric: a word, or a quoted name from a report. In "Memory Throughput [byte/s]" the
 * unit distinguishes metrics of the same name. */
static size_t take_metric(struct parser *p)
{
	const bool is_name = p->kind == NAME;
	const struct rfl_span s = p->t;
	const char *unit = NULL;
	struct rfl_formulas *f = p->f;
	size_t len = s.len;
	bool added;

	if (!is_name && !(p->kind == WORD && isalpha((unsigned char)s.at[0])))
		fail(p, "a metric");
	if (p->rc != RFL_OK)
		return 0;
	const size_t open = rfl_span_find(s, " [");
	if (is_name && rfl_span_ends(s, "]") && open > 0 && open < len) {
		len = open;
		unit = rfl_arena_printf(f->arena, "%.*s", (int)(s.len - len - 3), s.at + len + 2);
	}
	const uint32_t number = rfl_keys_add(&f->names, f->arena, s.at, len, &added);
	if (number > RFL_SLOTS_MAX)
		fail(p, "fewer metrics");
	if (added) {
		rfl_arena_reserve(f->arena, &f->slots, &f->slots_cap, number);
		f->slots[f->nslots++] = (struct rfl_formula_slot){
			.name = f->names.keys[number - 1].at, .unit = unit, .is_report = is_name
		};
	}
	next(p);
	return number - 1;
}

/* Consume a term, [weight] metric { * factor } [ / metric ]. A factor is a second metric, or a
 * quantity that is computed before `of`. */
static struct rfl_term take_term(struct parser *p, enum rfl_quantity of, double sign)
{
	struct rfl_term term = { .slot = { -1, -1, -1 }, .quantity = -1 };

	term.weight = sign * take_weight(p);
	term.slot[0] = (int)take_metric(p);
	while (take_word(p, "*")) {
		const enum rfl_quantity q = quantity_of(p);

		if (q == RFL_QUANTITY_COUNT && term.slot[1] < 0) {
			term.slot[1] = (int)take_metric(p);
			continue;
		}
		if (q >= of || term.quantity >= 0)
			fail(p, "a second metric, or one quantity that is computed earlier");
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
	const bool again = quantity->impossible || quantity->nways > 0;

	next(p);
	if (!is_word(p, "|=") && (again || (!is_word(p, "=") && !is_word(p, "impossible"))))
		fail(p, again ? "'|=' after an earlier formula" : "'=', '|=' or 'impossible'");
	if (take_word(p, "impossible")) {
		quantity->impossible = take(p, STRING, REASON);
		return;
	}
	do {
		struct rfl_formula_way way = { .nterms = 0 };

		do { /* the current token is '=', '|=', '|', '+' or '-' */
			const double sign = is_word(p, "-") ? -1 : 1;
			struct rfl_term *term;

			next(p);
			term = rfl_arena_append(p->f->arena, &way.terms, &way.nterms);
			*term = take_term(p, q, sign);
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
		*(struct rfl_formula_way *)rfl_arena_append(p->f->arena, &quantity->ways,
							    &quantity->nways) = way;
	} while (is_word(p, "|"));
	if (quantity->impossible)
		quantity->nways = 0; /* of a shared part */
}

static enum rfl_quantity take_quantity(struct parser *p)
{
	const enum rfl_quantity q = quantity_of(p);

	if (q == RFL_QUANTITY_COUNT)
		fail(p, "a quantity");
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
		const struct rfl_formula_file *file = find_file(rfl_formula_parts, p->t);

		if (!file || p->kind != WORD || p->depth == USE_DEPTH_MAX)
			fail(p, file ? "fewer levels of 'use'" : "the name of a part");
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
		if ((p->rc = part.rc) != RFL_OK)
			rfl_err_prefix(p->err, "%s:%zu", p->name, p->line);
		next(p);
	} while (p->rc == RFL_OK && p->kind != END);
}

static void statement(struct parser *p)
{
	const enum rfl_quantity q = quantity_of(p);
	struct rfl_formulas *f = p->f;

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
		const char *reason = take(p, STRING, REASON);

		if (p->rc != RFL_OK)
			return;
		f->quantities[of].less.weight = weight;
		f->quantities[of].less.slot = slot;
		f->quantities[of].less.reason = reason;
	} else if (is_word(p, "exclude") || is_word(p, "doubt")) {
		/* <quantity> metric = weight metric "reason"; for a doubt '>' */
		struct rfl_trap *trap = rfl_arena_append(f->arena, &f->traps, &f->ntraps);

		trap->is_doubt = is_word(p, "doubt");
		next(p);
		trap->quantity = take_quantity(p);
		trap->slot = take_metric(p);
		if (!take_word(p, trap->is_doubt ? ">" : "="))
			fail(p, trap->is_doubt ? "'>'" : "'='");
		trap->weight = take_weight(p);
		trap->other = take_metric(p);
		trap->reason = take(p, STRING, REASON);
	} else if (take_word(p, "alias")) { /* <prefix> <prefix in formulas> */
		struct rfl_formula_alias *alias =
			rfl_arena_append(f->arena, &f->aliases, &f->naliases);

		alias->from = take(p, WORD, "a prefix of names");
		alias->to = take(p, WORD, "a prefix of names");
	} else if (p->kind != END) {
		fail(p, "a statement or a quantity");
	}
	if (p->kind != END)
		fail(p, "the end of the statement");
}

static void statements(struct parser *p)
{
	for (p->line = 1; p->rc == RFL_OK && p->at < p->end;) {
		/* a line that begins with a blank or a comment, or is empty, continues it */
		for (p->stop = p->at + 1; p->stop < p->end; p->stop++)
			if (p->stop[-1] == '\n' && !is_blank(*p->stop) && *p->stop != '#')
				break;
		next(p);
		statement(p);
	}
}

enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_formulas *f = rfl_arena_array(arena, 1, sizeof(*f));
	struct parser p = { .f = f, .name = name, .at = text, .end = text + len, .err = err };

	f->arena = arena;
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
	RFL_AUTO(buf) known = { 0 };

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
	return rc;
}

struct rfl_formulas *rfl_formulas_or_any(const char *chip)
{
	struct rfl_formulas *f = NULL;

	if (rfl_formulas_new(chip, &f, NULL) != RFL_OK)
		(void)!rfl_formulas_new("any", &f, NULL);
	return f;
}
