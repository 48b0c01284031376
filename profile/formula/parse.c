/*
 * parse.c - the text of a formula file. docs/formulas.md describes the syntax.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "profile/formula/parse.h"

#define USE_DEPTH_MAX 4
#define TERMS_MAX     4096

/* ---- arrays ---- */

/* Room for one more element. */
static enum rfl_rc room(const struct rfl_parser *p, void **array, size_t n, size_t *cap,
			size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *grown;

	if (n < *cap)
		return RFL_OK;
	grown = realloc(*array, want * size);
	if (!grown)
		return rfl_parser_no_memory(p);
	*array = grown;
	*cap = want;
	return RFL_OK;
}

/* ---- terms ---- */

static bool is_number(const struct rfl_token *t)
{
	return t->kind == RFL_TOKEN_WORD &&
	       ((t->at[0] >= '0' && t->at[0] <= '9') ||
		(t->at[0] == '.' && t->len > 1 && t->at[1] >= '0' && t->at[1] <= '9'));
}

static enum rfl_rc take_weight(struct rfl_parser *p, double *weight)
{
	char text[RFL_WORD_MAX + 1];
	double value;

	(void)snprintf(text, sizeof(text), "%.*s", (int)p->t.len, p->t.at);
	if (rfl_num_parse_double(text, "weight", &value, NULL) != RFL_OK || value <= 0)
		return rfl_parser_fail(p, &p->t, "the weight '%s' is not a number above 0", text);
	*weight *= value;
	return rfl_parser_next(p);
}

/* The quantity of a word, RFL_QUANTITY_COUNT for none. */
static enum rfl_quantity quantity_of(const struct rfl_token *t)
{
	char text[64];

	if (t->kind != RFL_TOKEN_WORD || t->len >= sizeof(text))
		return RFL_QUANTITY_COUNT;
	(void)snprintf(text, sizeof(text), "%.*s", (int)t->len, t->at);
	return rfl_quantity_find(text);
}

static bool is_operator(const struct rfl_token *t)
{
	static const char *const operators[] = { "|", "+", "-", "*", "/", "=", "|=" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(operators); i++)
		if (t->len == strlen(operators[i]) && memcmp(t->at, operators[i], t->len) == 0)
			return true;
	return false;
}

/* 'Memory Throughput [byte/s]': the name, and the unit that tells it from others of that name. */
static enum rfl_rc split_unit(struct rfl_parser *p, size_t *len, const char **unit)
{
	const char *open = memchr(p->t.at, '[', p->t.len);

	*len = p->t.len;
	*unit = NULL;
	if (!open || p->t.at[p->t.len - 1] != ']' || open == p->t.at || open[-1] != ' ')
		return RFL_OK;
	*len = (size_t)(open - p->t.at) - 1;
	*unit = rfl_arena_printf(p->f->arena, "%.*s", (int)(p->t.len - *len - 3), open + 1);
	return *unit ? RFL_OK : rfl_parser_no_memory(p);
}

static enum rfl_rc take_metric(struct rfl_parser *p, size_t *slot)
{
	char there[64];
	size_t len = p->t.len;
	const char *unit = NULL;
	enum rfl_rc rc = RFL_OK;

	if ((p->t.kind != RFL_TOKEN_WORD && p->t.kind != RFL_TOKEN_NAME) ||
	    (p->t.kind == RFL_TOKEN_WORD && (is_operator(&p->t) || is_number(&p->t))))
		return rfl_parser_fail(p, &p->t, "the name of a metric belongs here, not %s",
				       rfl_parser_shown(p, there));
	if (p->t.kind == RFL_TOKEN_NAME)
		rc = split_unit(p, &len, &unit);
	if (rc != RFL_OK)
		return rc;
	*slot = rfl_formulas__slot_add(p->f, p->t.at, len, unit, p->t.kind == RFL_TOKEN_NAME);
	if (*slot == SIZE_MAX)
		return rfl_parser_no_memory(p);
	if (*slot == RFL_SLOTS_MAX)
		return rfl_parser_fail(p, &p->t, "a family names %d metrics at most",
				       RFL_SLOTS_MAX);
	return rfl_parser_next(p);
}

/* What follows a '*': a metric, or a quantity that is found before `of`. */
static enum rfl_rc take_factor(struct rfl_parser *p, enum rfl_quantity of, struct rfl_term *term)
{
	enum rfl_quantity q = quantity_of(&p->t);
	size_t slot;
	enum rfl_rc rc;

	if (q != RFL_QUANTITY_COUNT) {
		if (term->per_quantity >= 0)
			return rfl_parser_fail(p, &p->t, "a product has one quantity at most");
		if (q >= of)
			return rfl_parser_fail(p, &p->t, "%s is not found before %s",
					       rfl_quantity_info(q)->name,
					       rfl_quantity_info(of)->name);
		term->per_quantity = (int)q;
		return rfl_parser_next(p);
	}
	if (term->per_slot >= 0)
		return rfl_parser_fail(p, &p->t, "a product has two metrics at most");
	rc = take_metric(p, &slot);
	if (rc == RFL_OK)
		term->per_slot = (int)slot;
	return rc;
}

/* [weight] metric { * factor } [ / metric ] */
static enum rfl_rc take_term(struct rfl_parser *p, enum rfl_quantity of, double sign)
{
	struct rfl_term term = {
		.weight = sign, .per_slot = -1, .over_slot = -1, .per_quantity = -1
	};
	struct rfl_formulas *f = p->f;
	size_t slot;
	enum rfl_rc rc = RFL_OK;

	if (f->nterms == TERMS_MAX)
		return rfl_parser_fail(p, &p->t, "a family has %d terms at most", TERMS_MAX);
	if (is_number(&p->t))
		rc = take_weight(p, &term.weight);
	if (rc == RFL_OK)
		rc = take_metric(p, &term.slot);
	while (rc == RFL_OK && rfl_parser_is_word(p, "*")) {
		rc = rfl_parser_next(p);
		if (rc == RFL_OK)
			rc = take_factor(p, of, &term);
	}
	if (rc == RFL_OK && rfl_parser_is_word(p, "/")) {
		rc = rfl_parser_next(p);
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
static enum rfl_rc take_remark(struct rfl_parser *p, struct rfl_formula_way *way)
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
		if (!rfl_parser_is_word(p, remarks[i].word))
			continue;
		way->kind = remarks[i].kind;
		rc = rfl_parser_next(p);
		return rc ? rc : rfl_parser_take(p, RFL_TOKEN_STRING, "a remark", &way->caveat);
	}
	return RFL_OK;
}

static enum rfl_rc take_way(struct rfl_parser *p, enum rfl_quantity q)
{
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	struct rfl_formula_way way = { .first = p->f->nterms };
	enum rfl_rc rc = take_term(p, q, 1);

	while (rc == RFL_OK && (rfl_parser_is_word(p, "+") || rfl_parser_is_word(p, "-"))) {
		double sign = rfl_parser_is_word(p, "-") ? -1 : 1;

		rc = rfl_parser_next(p);
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

static enum rfl_rc take_ways(struct rfl_parser *p, enum rfl_quantity q)
{
	enum rfl_rc rc = rfl_parser_next(p);

	if (rc == RFL_OK)
		rc = take_way(p, q);
	while (rc == RFL_OK && rfl_parser_is_word(p, "|")) {
		rc = rfl_parser_next(p);
		if (rc == RFL_OK)
			rc = take_way(p, q);
	}
	return rc;
}

/* ---- statements ---- */

/* <quantity> = ways, <quantity> |= ways, <quantity> impossible "why" */
static enum rfl_rc quantity_statement(struct rfl_parser *p, enum rfl_quantity q)
{
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	struct rfl_token first = p->t;
	char there[64];
	enum rfl_rc rc = rfl_parser_next(p);

	if (rc != RFL_OK)
		return rc;
	if (rfl_parser_is_word(p, "=") || rfl_parser_is_word(p, "impossible")) {
		if (quantity->impossible || quantity->nways > 0)
			return rfl_parser_fail(p, &first,
					       "%s has its formula already; '|=' adds ways to it",
					       rfl_quantity_info(q)->name);
		if (rfl_parser_is_word(p, "="))
			return take_ways(p, q);
		rc = rfl_parser_next(p);
		return rc ? rc
			  : rfl_parser_take(p, RFL_TOKEN_STRING, "the reason",
					    &quantity->impossible);
	}
	if (!rfl_parser_is_word(p, "|="))
		return rfl_parser_fail(p, &p->t, "'=', '|=' or 'impossible' belongs here, not %s",
				       rfl_parser_shown(p, there));
	rc = take_ways(p, q);
	if (rc == RFL_OK && quantity->impossible)
		quantity->nways = 0; /* a shared part cannot know it */
	return rc;
}

static enum rfl_rc take_quantity(struct rfl_parser *p, enum rfl_quantity *ret)
{
	char there[64];

	if (p->t.kind == RFL_TOKEN_END)
		return rfl_parser_fail(p, &p->t, "a quantity belongs here, not %s",
				       rfl_parser_shown(p, there));
	*ret = quantity_of(&p->t);
	if (*ret == RFL_QUANTITY_COUNT)
		return rfl_parser_fail(p, &p->t, "%s is no quantity", rfl_parser_shown(p, there));
	return rfl_parser_next(p);
}

/* subtract <quantity> weight metric "why" */
static enum rfl_rc subtract_statement(struct rfl_parser *p)
{
	struct rfl_formula_less less = { .weight = 1 };
	enum rfl_quantity q = RFL_QUANTITY_COUNT;
	enum rfl_rc rc = take_quantity(p, &q);

	if (rc == RFL_OK && is_number(&p->t))
		rc = take_weight(p, &less.weight);
	if (rc == RFL_OK)
		rc = take_metric(p, &less.slot);
	if (rc == RFL_OK)
		rc = rfl_parser_take(p, RFL_TOKEN_STRING, "the reason", &less.reason);
	if (rc == RFL_OK)
		p->f->quantities[q].less = less;
	return rc;
}

/* exclude <quantity> metric = weight metric "why" */
static enum rfl_rc exclude_statement(struct rfl_parser *p)
{
	struct rfl_formulas *f = p->f;
	struct rfl_trap trap = { .weight = 1 };
	char there[64];
	enum rfl_rc rc = take_quantity(p, &trap.quantity);

	if (rc == RFL_OK)
		rc = take_metric(p, &trap.equal);
	if (rc == RFL_OK && !rfl_parser_is_word(p, "="))
		return rfl_parser_fail(p, &p->t, "'=' belongs here, not %s",
				       rfl_parser_shown(p, there));
	if (rc == RFL_OK)
		rc = rfl_parser_next(p);
	if (rc == RFL_OK && is_number(&p->t))
		rc = take_weight(p, &trap.weight);
	if (rc == RFL_OK)
		rc = take_metric(p, &trap.other);
	if (rc == RFL_OK)
		rc = rfl_parser_take(p, RFL_TOKEN_STRING, "the reason", &trap.reason);
	if (rc == RFL_OK)
		rc = room(p, (void **)&f->traps, f->ntraps, &f->traps_cap, sizeof(trap));
	if (rc == RFL_OK)
		f->traps[f->ntraps++] = trap;
	return rc;
}

static enum rfl_rc family_statement(struct rfl_parser *p)
{
	if (p->depth > 0)
		return rfl_parser_fail(p, &p->t, "a part that others use is no family");
	return rfl_parser_take(p, RFL_TOKEN_WORD, "the family's name", &p->f->family);
}

static enum rfl_rc chips_statement(struct rfl_parser *p)
{
	struct rfl_formulas *f = p->f;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && p->t.kind == RFL_TOKEN_WORD) {
		rc = room(p, (void **)&f->chips, f->nchips, &f->chips_cap, sizeof(*f->chips));
		if (rc == RFL_OK)
			rc = rfl_parser_take(p, RFL_TOKEN_WORD, "a chip", &f->chips[f->nchips]);
		f->nchips += rc == RFL_OK;
	}
	return rc;
}

/* alias <beginning of names> <beginning of those that the formulas have> */
static enum rfl_rc alias_statement(struct rfl_parser *p)
{
	struct rfl_formulas *f = p->f;
	struct rfl_formula_alias alias;
	enum rfl_rc rc = rfl_parser_take(p, RFL_TOKEN_WORD, "the beginning of a name", &alias.from);

	if (rc == RFL_OK)
		rc = rfl_parser_take(p, RFL_TOKEN_WORD, "the beginning of a name", &alias.to);
	if (rc == RFL_OK)
		rc = room(p, (void **)&f->aliases, f->naliases, &f->aliases_cap, sizeof(alias));
	if (rc == RFL_OK)
		f->aliases[f->naliases++] = alias;
	return rc;
}

static enum rfl_rc command_statement(struct rfl_parser *p)
{
	return rfl_parser_take(p, RFL_TOKEN_STRING, "a command", &p->f->command);
}

static enum rfl_rc parse(struct rfl_parser *p);

static enum rfl_rc use_part(struct rfl_parser *p)
{
	char name[64], there[64];
	const struct rfl_formula_file *file;
	struct rfl_parser part;
	enum rfl_rc rc;

	if (p->t.kind != RFL_TOKEN_WORD)
		return rfl_parser_fail(p, &p->t, "the name of a part belongs here, not %s",
				       rfl_parser_shown(p, there));
	(void)snprintf(name, sizeof(name), "%.*s", (int)(p->t.len < 63 ? p->t.len : 63), p->t.at);
	file = rfl_formulas__file(name);
	if (!file)
		return rfl_parser_fail(p, &p->t, "there is no part %s", rfl_parser_shown(p, there));
	if (p->depth == USE_DEPTH_MAX)
		return rfl_parser_fail(p, &p->t, "parts use each other more than %d deep",
				       USE_DEPTH_MAX);
	part = (struct rfl_parser){
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

static enum rfl_rc use_statement(struct rfl_parser *p)
{
	enum rfl_rc rc;

	do {
		rc = use_part(p);
		if (rc == RFL_OK)
			rc = rfl_parser_next(p);
	} while (rc == RFL_OK && p->t.kind != RFL_TOKEN_END);
	return rc;
}

static enum rfl_rc statement(struct rfl_parser *p)
{
	static const struct {
		const char *word;
		enum rfl_rc (*take)(struct rfl_parser *p);
	} statements[] = {
		{ "family", family_statement },     { "chips", chips_statement },
		{ "use", use_statement },           { "command", command_statement },
		{ "subtract", subtract_statement }, { "exclude", exclude_statement },
		{ "alias", alias_statement },
	};
	enum rfl_quantity q = quantity_of(&p->t);
	char there[64];
	enum rfl_rc rc;

	if (q != RFL_QUANTITY_COUNT)
		return quantity_statement(p, q);
	for (size_t i = 0; i < RFL_ARRAY_LEN(statements); i++) {
		if (!rfl_parser_is_word(p, statements[i].word))
			continue;
		rc = rfl_parser_next(p);
		return rc ? rc : statements[i].take(p);
	}
	return rfl_parser_fail(p, &p->t, "%s is neither a statement nor a quantity",
			       rfl_parser_shown(p, there));
}

static enum rfl_rc parse(struct rfl_parser *p)
{
	char there[64];
	enum rfl_rc rc = RFL_OK;

	p->line = 1;
	p->line_start = p->at;
	while (rc == RFL_OK) {
		rc = rfl_parser_next(p);
		if (rc != RFL_OK || (p->t.kind == RFL_TOKEN_END && p->at == p->end))
			break;
		if (p->t.kind == RFL_TOKEN_END)
			continue; /* empty lines before the first statement */
		rc = statement(p);
		if (rc == RFL_OK && p->t.kind != RFL_TOKEN_END)
			rc = rfl_parser_fail(p, &p->t, "%s is one too many here",
					     rfl_parser_shown(p, there));
	}
	return rc;
}

static struct rfl_formulas *new_empty(void)
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
	struct rfl_parser p = {
		.f = new_empty(),
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
