/*
 * parse.c - the text of a formula file (docs/formulas.md describes the syntax), and the files that
 * were compiled in: families by chip, and the parts that they share.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "profile/formula.h"

#define USE_DEPTH_MAX 4
#define TERMS_MAX     4096

enum token_kind { END, WORD, STRING, NAME };

struct token {
	enum token_kind kind;
	const char *at; /* without quotes */
	size_t len;
	size_t line, column;
};

/* A failure stays in `rc`; nothing is read after it, and every word that is looked for is absent.
 */
struct parser {
	struct rfl_formulas *f;
	const char *name;
	const char *at, *end;
	const char *line_start;
	size_t line;
	int depth;      /* of `use` */
	struct token t; /* the current one */
	enum rfl_rc rc;
	struct rfl_err *err;
};

/* "file:line:column: ..." */
static void fail_at(struct parser *p, const struct token *t, const char *fmt, ...) RFL_PRINTF(3, 4);
static void fail_at(struct parser *p, const struct token *t, const char *fmt, ...)
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

static void no_memory(struct parser *p)
{
	if (p->rc == RFL_OK)
		p->rc = rfl_fail(p->err, RFL_ENOMEM, 0, "%s: out of memory", p->name);
}

/* The token, for a message. */
static const char *shown(const struct parser *p, char out[64])
{
	if (p->t.kind == END)
		(void)snprintf(out, 64, "the end of the statement");
	else
		(void)snprintf(out, 64, "'%.*s%s'", (int)(p->t.len < 48 ? p->t.len : 48), p->t.at,
			       p->t.len > 48 ? "..." : "");
	return out;
}

static void fail_expecting(struct parser *p, const char *what)
{
	char there[64];

	fail_at(p, &p->t, "%s belongs here, not %s", what, shown(p, there));
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

/* Skip blanks, comments and ends of lines after which the statement continues: lines that begin
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

static void read_quoted(struct parser *p, char quote)
{
	p->t.kind = quote == '"' ? STRING : NAME;
	p->t.at = ++p->at;
	while (p->at < p->end && *p->at != quote && *p->at != '\n')
		p->at++;
	if (p->at == p->end || *p->at != quote) {
		fail_at(p, &p->t, "the %c that begins here does not end in this line", quote);
		return;
	}
	p->t.len = (size_t)(p->at - p->t.at);
	p->at++;
	if (p->t.len == 0)
		fail_at(p, &p->t, "nothing stands between these quotes");
	for (size_t i = 0; i < p->t.len; i++)
		if ((unsigned char)p->t.at[i] < ' ')
			fail_at(p, &p->t, "a control character stands between these quotes");
}

/* Look at the next token: END where a statement ends. */
static void next(struct parser *p)
{
	bool ended;

	if (p->rc != RFL_OK)
		return;
	ended = skip_blanks(p);
	p->t = (struct token){
		.line = p->line,
		.column = (size_t)(p->at - p->line_start) + 1,
	};
	if (ended)
		return;
	if (*p->at == '"' || *p->at == '\'') {
		read_quoted(p, *p->at);
		return;
	}
	p->t.kind = WORD;
	p->t.at = p->at;
	while (p->at < p->end && !is_blank(*p->at) && *p->at != '\n')
		p->at++;
	p->t.len = (size_t)(p->at - p->t.at);
	for (size_t i = 0; i < p->t.len; i++)
		if (p->t.at[i] < ' ' || p->t.at[i] > '~' || strchr("'\"", p->t.at[i]))
			fail_at(p, &p->t, "a name holds letters, digits and punctuation");
	if (p->t.len > RFL_WORD_MAX)
		fail_at(p, &p->t, "a name has %d characters at most", RFL_WORD_MAX);
}

static bool is_word(const struct parser *p, const char *word)
{
	return p->rc == RFL_OK && p->t.kind == WORD && p->t.len == strlen(word) &&
	       memcmp(p->t.at, word, p->t.len) == 0;
}

/* Take a word off, when it is there. */
static bool take_word(struct parser *p, const char *word)
{
	if (!is_word(p, word))
		return false;
	next(p);
	return p->rc == RFL_OK;
}

/* The token's text, for the life of the formulas. @param what  belongs here, for a message */
static const char *take(struct parser *p, enum token_kind kind, const char *what)
{
	const char *text = NULL;

	if (p->rc != RFL_OK)
		return NULL;
	if (p->t.kind != kind) {
		fail_expecting(p, what);
		return NULL;
	}
	text = rfl_arena_printf(p->f->arena, "%.*s", (int)p->t.len, p->t.at);
	if (!text)
		no_memory(p);
	next(p);
	return text;
}

/* ---- terms ---- */

static bool is_number(const struct token *t)
{
	const char *c = t->at;

	return t->kind == WORD && ((c[0] >= '0' && c[0] <= '9') ||
				   (c[0] == '.' && t->len > 1 && c[1] >= '0' && c[1] <= '9'));
}

/* A weight, when there is one; else 1. */
static double take_weight(struct parser *p)
{
	char text[RFL_WORD_MAX + 1];
	double value = 1;

	if (p->rc != RFL_OK || !is_number(&p->t))
		return 1;
	(void)snprintf(text, sizeof(text), "%.*s", (int)p->t.len, p->t.at);
	if (rfl_num_parse_double(text, "weight", &value, NULL) != RFL_OK || value <= 0)
		fail_at(p, &p->t, "the weight '%s' is not a number above 0", text);
	next(p);
	return value;
}

/* The quantity of a word, RFL_QUANTITY_COUNT for none. */
static enum rfl_quantity quantity_of(const struct token *t)
{
	char text[64];

	if (t->kind != WORD || t->len >= sizeof(text))
		return RFL_QUANTITY_COUNT;
	(void)snprintf(text, sizeof(text), "%.*s", (int)t->len, t->at);
	return rfl_quantity_find(text);
}

static bool is_operator(const struct parser *p)
{
	static const char *const operators[] = { "|", "+", "-", "*", "/", "=", "|=" };

	for (size_t i = 0; i < RFL_ARRAY_LEN(operators); i++)
		if (is_word(p, operators[i]))
			return true;
	return false;
}

/* A metric: a word, or a quoted name from a report, "Memory Throughput [byte/s]", with the unit
 * that distinguishes it from others of that name. */
static size_t take_metric(struct parser *p)
{
	const bool is_name = p->t.kind == NAME;
	const char *unit = NULL, *open;
	size_t len = p->t.len, slot;

	if (p->rc != RFL_OK)
		return 0;
	if (!is_name && (p->t.kind != WORD || is_operator(p) || is_number(&p->t))) {
		fail_expecting(p, "the name of a metric");
		return 0;
	}
	open = is_name ? memchr(p->t.at, '[', len) : NULL;
	if (open && p->t.at[len - 1] == ']' && open > p->t.at && open[-1] == ' ') {
		len = (size_t)(open - p->t.at) - 1;
		unit = rfl_arena_printf(p->f->arena, "%.*s", (int)(p->t.len - len - 3), open + 1);
		if (!unit)
			no_memory(p);
	}
	slot = rfl_formulas__slot_add(p->f, p->t.at, len, unit, is_name);
	if (slot == SIZE_MAX)
		no_memory(p);
	else if (slot == RFL_SLOTS_MAX)
		fail_at(p, &p->t, "a family names %d metrics at most", RFL_SLOTS_MAX);
	next(p);
	return slot;
}

/* What follows a '*': a metric, or a quantity that is found before `of`. */
static void take_factor(struct parser *p, enum rfl_quantity of, struct rfl_term *term)
{
	const enum rfl_quantity q = quantity_of(&p->t);

	if (q == RFL_QUANTITY_COUNT) {
		if (term->per_slot >= 0)
			fail_at(p, &p->t, "a product has two metrics at most");
		term->per_slot = (int)take_metric(p);
		return;
	}
	if (term->per_quantity >= 0)
		fail_at(p, &p->t, "a product has one quantity at most");
	else if (q >= of)
		fail_at(p, &p->t, "%s is not found before %s", rfl_quantity_info(q)->name,
			rfl_quantity_info(of)->name);
	term->per_quantity = (int)q;
	next(p);
}

/* [weight] metric { * factor } [ / metric ] */
static void take_term(struct parser *p, enum rfl_quantity of, double sign)
{
	struct rfl_formulas *f = p->f;
	struct rfl_term term = { .per_slot = -1, .over_slot = -1, .per_quantity = -1 };

	if (f->nterms == TERMS_MAX)
		fail_at(p, &p->t, "a family has %d terms at most", TERMS_MAX);
	term.weight = sign * take_weight(p);
	term.slot = take_metric(p);
	while (take_word(p, "*"))
		take_factor(p, of, &term);
	if (take_word(p, "/"))
		term.over_slot = (int)take_metric(p);
	if (p->rc != RFL_OK)
		return;
	if (rfl_grow(&f->terms, &f->terms_cap, f->nterms + 1, TERMS_MAX, NULL) != RFL_OK)
		no_memory(p);
	else
		f->terms[f->nterms++] = term;
}

/* Terms that are added, and [ partial | estimate | caveat "words" ]. */
static void take_way(struct parser *p, enum rfl_quantity q)
{
	static const char *const remarks[] = {
		[RFL_WAY_PARTIAL] = "partial",
		[RFL_WAY_ESTIMATE] = "estimate",
		[RFL_WAY_FULL] = "caveat",
	};
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	struct rfl_formula_way way = { .first = p->f->nterms };

	take_term(p, q, 1);
	while (is_word(p, "+") || is_word(p, "-")) {
		const double sign = is_word(p, "-") ? -1 : 1;

		next(p);
		take_term(p, q, sign);
	}
	way.nterms = p->f->nterms - way.first;
	for (size_t i = 0; i < RFL_ARRAY_LEN(remarks); i++) {
		if (!take_word(p, remarks[i]))
			continue;
		way.kind = (enum rfl_way_kind)i;
		way.caveat = take(p, STRING, "a remark in \"quotes\"");
		break;
	}
	if (p->rc != RFL_OK)
		return;
	if (rfl_grow(&quantity->ways, &quantity->cap, quantity->nways + 1, SIZE_MAX, NULL) !=
	    RFL_OK)
		no_memory(p);
	else
		quantity->ways[quantity->nways++] = way;
}

/* ---- statements ---- */

/* <quantity> = way { | way }, <quantity> |= way { | way }, <quantity> impossible "why" */
static void quantity_statement(struct parser *p, enum rfl_quantity q)
{
	struct rfl_formula_quantity *quantity = &p->f->quantities[q];
	const struct token first = p->t;
	bool adds;

	next(p);
	adds = is_word(p, "|=");
	if (!adds && !is_word(p, "=") && !is_word(p, "impossible")) {
		fail_expecting(p, "'=', '|=' or 'impossible'");
		return;
	}
	if (!adds && (quantity->impossible || quantity->nways > 0)) {
		fail_at(p, &first, "%s has its formula already; '|=' adds ways to it",
			rfl_quantity_info(q)->name);
		return;
	}
	if (take_word(p, "impossible")) {
		quantity->impossible = take(p, STRING, "the reason in \"quotes\"");
		return;
	}
	do {
		next(p);
		take_way(p, q);
	} while (is_word(p, "|"));
	if (adds && quantity->impossible)
		quantity->nways = 0; /* a shared part cannot know it */
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

/* subtract <quantity> weight metric "why" */
static void subtract_statement(struct parser *p)
{
	const enum rfl_quantity q = take_quantity(p);
	const double weight = take_weight(p);
	const size_t slot = take_metric(p);
	const char *reason = take(p, STRING, "the reason in \"quotes\"");

	if (p->rc != RFL_OK)
		return;
	p->f->quantities[q].less.weight = weight;
	p->f->quantities[q].less.slot = slot;
	p->f->quantities[q].less.reason = reason;
}

/* exclude <quantity> metric = weight metric "why" */
static void exclude_statement(struct parser *p)
{
	struct rfl_formulas *f = p->f;
	struct rfl_trap trap;

	trap.quantity = take_quantity(p);
	trap.equal = take_metric(p);
	if (!take_word(p, "="))
		fail_expecting(p, "'='");
	trap.weight = take_weight(p);
	trap.other = take_metric(p);
	trap.reason = take(p, STRING, "the reason in \"quotes\"");
	if (p->rc != RFL_OK)
		return;
	if (rfl_grow(&f->traps, &f->traps_cap, f->ntraps + 1, SIZE_MAX, NULL) != RFL_OK)
		no_memory(p);
	else
		f->traps[f->ntraps++] = trap;
}

static void family_statement(struct parser *p)
{
	if (p->depth > 0)
		fail_at(p, &p->t, "a part that others use is not a family");
	p->f->family = take(p, WORD, "the family's name");
}

static void chips_statement(struct parser *p)
{
	struct rfl_formulas *f = p->f;

	while (p->rc == RFL_OK && p->t.kind == WORD) {
		if (rfl_grow(&f->chips, &f->chips_cap, f->nchips + 1, SIZE_MAX, NULL) != RFL_OK) {
			no_memory(p);
			return;
		}
		f->chips[f->nchips] = take(p, WORD, "a chip");
		f->nchips += f->chips[f->nchips] != NULL;
	}
}

/* alias <beginning of names> <beginning of those that the formulas have> */
static void alias_statement(struct parser *p)
{
	struct rfl_formulas *f = p->f;
	struct rfl_formula_alias alias;

	alias.from = take(p, WORD, "the beginning of a name");
	alias.to = take(p, WORD, "the beginning of a name");
	if (p->rc != RFL_OK)
		return;
	if (rfl_grow(&f->aliases, &f->aliases_cap, f->naliases + 1, SIZE_MAX, NULL) != RFL_OK)
		no_memory(p);
	else
		f->aliases[f->naliases++] = alias;
}

static void command_statement(struct parser *p)
{
	p->f->command = take(p, STRING, "a command in \"quotes\"");
}

static const struct rfl_formula_file *file_named(const struct token *t)
{
	const struct rfl_formula_file *file;

	for (size_t i = 0; (file = rfl_formulas__file_at(i)); i++)
		if (strlen(file->name) == t->len && memcmp(file->name, t->at, t->len) == 0)
			return file;
	return NULL;
}

static void statements(struct parser *p);

/* use <part> { <part> } */
static void use_statement(struct parser *p)
{
	do {
		const struct rfl_formula_file *file;
		struct parser part;
		char there[64];

		if (p->t.kind != WORD) {
			fail_expecting(p, "the name of a part");
			return;
		}
		file = file_named(&p->t);
		if (!file)
			fail_at(p, &p->t, "there is no part %s", shown(p, there));
		else if (p->depth == USE_DEPTH_MAX)
			fail_at(p, &p->t, "parts use each other more than %d deep", USE_DEPTH_MAX);
		if (p->rc != RFL_OK)
			return;
		part = (struct parser){
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
	static const struct {
		const char *word;
		void (*take)(struct parser *p);
	} words[] = {
		{ "family", family_statement },     { "chips", chips_statement },
		{ "use", use_statement },           { "command", command_statement },
		{ "subtract", subtract_statement }, { "exclude", exclude_statement },
		{ "alias", alias_statement },
	};
	const enum rfl_quantity q = quantity_of(&p->t);
	char there[64];

	if (q != RFL_QUANTITY_COUNT) {
		quantity_statement(p, q);
		return;
	}
	for (size_t i = 0; i < RFL_ARRAY_LEN(words); i++) {
		if (!is_word(p, words[i].word))
			continue;
		next(p);
		if (p->rc == RFL_OK)
			words[i].take(p);
		return;
	}
	fail_at(p, &p->t, "%s is neither a statement nor a quantity", shown(p, there));
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
			fail_at(p, &p->t, "%s is one too many here", shown(p, there));
	}
}

enum rfl_rc rfl_formulas_parse(const char *text, size_t len, const char *name,
			       struct rfl_formulas **ret, struct rfl_err *err)
{
	struct rfl_formulas *f = calloc(1, sizeof(*f));
	struct parser p = { .f = f, .name = name, .at = text, .end = text + len, .err = err };

	if (f)
		f->arena = rfl_arena_new(0);
	if (!f || !f->arena)
		no_memory(&p);
	statements(&p);
	if (p.rc == RFL_OK && !f->family)
		p.rc = rfl_fail(err, RFL_EFORMAT, 0, "%s:1:1: 'family' and its name are missing",
				name);
	if (p.rc != RFL_OK) {
		rfl_formulas_free(f);
		return p.rc;
	}
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		for (size_t w = 0; w < f->quantities[q].nways; w++)
			f->quantities[q].ways[w].terms = f->terms + f->quantities[q].ways[w].first;
	*ret = f;
	return RFL_OK;
}

/* ---- the files that were compiled in ---- */

/* What follows `keyword` in the line of a file that begins with it; NULL: there is none. */
static const char *line_of(const struct rfl_formula_file *file, const char *keyword, size_t *len)
{
	const size_t word = strlen(keyword);
	const char *end = file->text + file->len;

	for (const char *at = file->text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		if ((size_t)(stop - at) > word && memcmp(at, keyword, word) == 0 &&
		    at[word] == ' ') {
			*len = (size_t)(stop - at) - word - 1;
			return at + word + 1;
		}
		at = stop + 1;
	}
	return NULL;
}

/* The i-th file of a family: the others are parts. */
static const struct rfl_formula_file *family_at(size_t i)
{
	const struct rfl_formula_file *file;
	size_t len;

	for (size_t k = 0; (file = rfl_formulas__file_at(k)); k++)
		if (line_of(file, "family", &len) && i-- == 0)
			return file;
	return NULL;
}

const char *rfl_formulas_family_at(size_t i)
{
	const struct rfl_formula_file *file = family_at(i);

	return file ? file->name : NULL;
}

static bool has_chip(const struct rfl_formula_file *file, const char *chip)
{
	size_t len = 0, word = strlen(chip);
	const char *at = line_of(file, "chips", &len);

	for (size_t i = 0; at && word > 0 && i + word <= len; i++)
		if ((i == 0 || at[i - 1] == ' ') && memcmp(at + i, chip, word) == 0 &&
		    (i + word == len || at[i + word] == ' '))
			return true;
	return false;
}

enum rfl_rc rfl_formulas_new(const char *chip, struct rfl_formulas **ret, struct rfl_err *err)
{
	const char *name = chip ? chip : "any", *at;
	const struct rfl_formula_file *file;
	struct rfl_buf known;
	enum rfl_rc rc;
	size_t len = 0;

	for (size_t i = 0; (file = family_at(i)); i++)
		if (strcmp(file->name, name) == 0 || has_chip(file, name))
			return rfl_formulas_parse(file->text, file->len, file->name, ret, err);
	rfl_buf_init(&known, 0);
	for (size_t i = 0; (file = family_at(i)); i++) {
		rfl_buf_printf(&known, "%s%s", i > 0 ? ", " : "", file->name);
		at = line_of(file, "chips", &len);
		if (at)
			rfl_buf_printf(&known, " (%.*s)", (int)len, at);
	}
	rc = rfl_fail(err, RFL_ENOTFOUND, 0,
		      "there are no formulas for '%s'; families and their chips: %s", name,
		      rfl_buf_str(&known));
	rfl_buf_fini(&known);
	return rc;
}
