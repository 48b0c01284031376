/*
 * parse.c - parse a command line into the argument struct of a command.
 *
 * Not getopt_long: it accepts abbreviations, which a new option with the same beginning would
 * break, and knows neither lists of words nor which option an error message should name.
 */
#include "cli/opt/opt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#define LIST_MAX  4096 /* maximum number of values of an option */
#define SLOTS_MAX 128  /* options of a command */
#define TOO_MANY  "a list has more than %d values; use fewer"

/* ---- values ---- */

static bool is_bounded(const struct rfl_opt *row)
{
	return row->kind == RFL_OPT_REAL ? row->rmin != 0 || row->rmax != 0
					 : row->min != 0 || row->max != 0;
}

static bool has_upper(const struct rfl_opt *row)
{
	return is_bounded(row) && row->max >= row->min && row->max != INT64_MAX;
}

static bool has_lower(const struct rfl_opt *row)
{
	return is_bounded(row) && row->min != INT64_MIN;
}

char *rfl_opt_range(const struct rfl_opt *row, char *out, size_t out_size)
{
	const bool real = row->kind == RFL_OPT_REAL;
	const bool whole = row->kind == RFL_OPT_INT || row->kind == RFL_OPT_INT_LIST;
	char lo[RFL_NUM_MAX], hi[RFL_NUM_MAX];
	bool lower = whole && has_lower(row), upper = whole && has_upper(row);

	snprintf(lo, sizeof(lo), "%lld", (long long)row->min);
	snprintf(hi, sizeof(hi), "%lld", (long long)row->max);
	if (real) {
		rfl_num_exact(row->rmin, lo);
		rfl_num_exact(row->rmax, hi);
		lower = is_bounded(row);
		upper = lower && row->rmax >= row->rmin && strcmp(hi, "inf") != 0;
	}
	if (lower && upper)
		snprintf(out, out_size, "number from %s to %s%s", lo, hi,
			 row->length ? " points" : "");
	else if (lower || upper)
		snprintf(out, out_size, "number of at %s %s", lower ? "least" : "most",
			 lower ? lo : hi);
	else
		snprintf(out, out_size, "%s", real || whole ? "number" : "");
	return out;
}

static enum rfl_rc parse_int(const struct rfl_opt *row, const char *text, int64_t *ret,
			     struct rfl_err *err)
{
	enum rfl_rc rc;
	char range[128];
	double real;
	int64_t value;
	bool whole;

	rc = rfl_num_parse_int(text, row->name, &value, NULL);
	if (rc == RFL_OK && !(has_lower(row) && value < row->min) &&
	    !(has_upper(row) && value > row->max)) {
		*ret = value;
		return RFL_OK;
	}
	/* Report "not a whole number" for 1.5, but not for a whole number that is too large. */
	whole = rc != RFL_EFORMAT || rfl_num_parse_double(text, row->name, &real, NULL) != RFL_OK;
	return rfl_usage(err, "--%s: '%s' is not a %s%s", row->name, text, whole ? "" : "whole ",
			 rfl_opt_range(row, range, sizeof(range)));
}

static enum rfl_rc parse_real(const struct rfl_opt *row, const char *text, double *ret,
			      struct rfl_err *err)
{
	static const struct {
		const char *name;
		double points;
	} units[] = { { "mm", 72 / 25.4 }, { "cm", 72 / 2.54 }, { "in", 72 }, { "pt", 1 } };
	struct rfl_span number = rfl_span_of(text);
	char range[128], digits[RFL_NUM_MAX];
	double value, unit = 1;

	for (size_t i = 0; row->length && i < RFL_ARRAY_LEN(units); i++)
		if (rfl_span_ends(rfl_span_of(text), units[i].name)) {
			number.len -= strlen(units[i].name);
			unit = units[i].points;
		}
	(void)rfl_span_copy(rfl_span_trim(number), digits, sizeof(digits));
	if (rfl_num_parse_double(digits, row->name, &value, NULL) == RFL_OK &&
	    !(is_bounded(row) && value * unit < row->rmin) &&
	    !(is_bounded(row) && row->rmax >= row->rmin && value * unit > row->rmax)) {
		*ret = value * unit;
		return RFL_OK;
	}
	return rfl_usage(err, "--%s: '%s' is not a %s%s", row->name, text,
			 rfl_opt_range(row, range, sizeof(range)),
			 row->length ? "; add mm, cm or in for another unit, as in 85mm" : "");
}

static enum rfl_rc find_choice(const struct rfl_opt *row, const char *text, int *ret,
			       struct rfl_err *err)
{
	char advice[RFL_ADVICE_SIZE];

	for (int i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], text) == 0) {
			*ret = i + row->first;
			return RFL_OK;
		}
	}
	return rfl_usage(err, "--%s: '%s' is not valid; %s", row->name, text,
			 rfl_text_advice(text, row->choices, 1, NULL, advice));
}

static enum rfl_rc list_add(struct rfl_opt_list *list, const char *text, struct rfl_err *err)
{
	if (list->n >= LIST_MAX)
		return rfl_usage(err, TOO_MANY, LIST_MAX);
	rfl_reserve(&list->items, &list->cap, list->n + 2);
	list->items[list->n] = rfl_strdup(text);
	list->items[++list->n] = NULL;
	return RFL_OK;
}

static void list_fini(struct rfl_opt_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free((void *)list->items[i]);
	free(list->items);
	*list = (struct rfl_opt_list){ .n = 0 };
}

bool rfl_opt_list_has(const struct rfl_opt_list *list, const char *text)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

static enum rfl_rc add_item(const struct rfl_opt *row, void *member, const char *text,
			    struct rfl_err *err)
{
	struct rfl_opt_int_list *numbers = member;
	int64_t value = 0;
	enum rfl_rc rc = RFL_OK;
	int index;

	if (row->kind == RFL_OPT_LIST) {
		if (row->choices)
			rc = find_choice(row, text, &index, err);
		return rc ? rc : list_add(member, text, err);
	}
	if (numbers->n >= LIST_MAX)
		return rfl_usage(err, TOO_MANY, LIST_MAX);
	rc = parse_int(row, text, &value, err);
	if (rc == RFL_OK) {
		rfl_reserve(&numbers->items, &numbers->cap, numbers->n + 1);
		numbers->items[numbers->n++] = value;
	}
	return rc;
}

/* Add the values of a list, which are separated by any of `separators`. */
static enum rfl_rc add_items(const struct rfl_opt *row, void *member, const char *text,
			     const char *separators, struct rfl_err *err)
{
	RFL_AUTOFREE char *copy = rfl_strdup(text);
	char *rest = copy, *part;
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && rest) {
		part = rest;
		rest += strcspn(rest, separators);
		if (*rest != '\0')
			*rest++ = '\0';
		else
			rest = NULL;
		if (*part != '\0')
			rc = add_item(row, member, part, err);
		else if (strcmp(separators, ",") == 0) /* defaults may have empty values */
			rc = rfl_usage(err, "--%s: '%s' has an empty value; remove a comma",
				       row->name, text);
	}
	return rc;
}

static bool is_of_paths(const struct rfl_opt *row)
{
	return row->meta && (strcmp(row->meta, "FILE") == 0 || strcmp(row->meta, "DIR") == 0);
}

/* Parse a value, and store it in the member of a row or append it to the list there. */
static enum rfl_rc set(const struct rfl_opt *row, void *base, const char *text, struct rfl_err *err)
{
	void *member = (char *)base + row->offset;
	enum rfl_rc rc = RFL_OK;
	int index;

	switch (row->kind) {
	case RFL_OPT_FLAG:
		*(bool *)member = strcmp(text, "on") == 0;
		return RFL_OK;
	case RFL_OPT_INT:
		return parse_int(row, text, member, err);
	case RFL_OPT_REAL:
		return parse_real(row, text, member, err);
	case RFL_OPT_TEXT:
		if (*text == '\0' && !row->may_be_empty)
			return rfl_usage(err,
					 "--%s: empty value; give one, or leave out the option",
					 row->name);
		if (row->max > 0 && strlen(text) > (size_t)row->max)
			return rfl_usage(err, "--%s: longer than %lld characters", row->name,
					 (long long)row->max);
		if (row->choices)
			rc = find_choice(row, text, &index, err);
		if (rc == RFL_OK)
			*(const char **)member = text;
		return rc;
	case RFL_OPT_CHOICE:
		return find_choice(row, text, member, err);
	case RFL_OPT_LIST:
	case RFL_OPT_INT_LIST: { /* the name of a file or directory may contain a comma */
		const bool whole = row->whole || (is_of_paths(row) &&
						  (rfl_file_exists(text) || rfl_dir_exists(text)));

		return add_items(row, member, text, whole && *text ? "" : ",", err);
	}
	}
	return rfl_fail(err, RFL_EINVAL, 0, "--%s: invalid kind of option", row->name);
}

const char *rfl_opt_default(const struct rfl_opt *row)
{
	return row->project && !row->found ? rfl_project_usual(row->project) : row->def;
}

enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base, struct rfl_err *err)
{
	const char *def = rfl_opt_default(row);

	if (!def)
		return RFL_OK;
	if (row->kind != RFL_OPT_LIST && row->kind != RFL_OPT_INT_LIST)
		return set(row, base, def, err);
	return add_items(row, (char *)base + row->offset, def, *def == '\n' ? "\n" : " ,", err);
}

void rfl_opt_free(const struct rfl_cmd *cmd, void *args)
{
	for (const struct rfl_opt *row = cmd->opts; row && row->name; row++) {
		void *member = (char *)args + row->offset;
		struct rfl_opt_int_list *numbers = member;

		if (row->kind == RFL_OPT_LIST)
			list_fini(member);
		if (row->kind == RFL_OPT_INT_LIST) {
			free(numbers->items);
			*numbers = (struct rfl_opt_int_list){ .n = 0 };
		}
	}
	if (cmd->operands)
		list_fini(args);
}

const char *rfl_opt_text(const struct rfl_opt *row, const void *args, char number[RFL_NUM_MAX])
{
	const void *at = (const char *)args + row->offset;

	switch (row->kind) {
	case RFL_OPT_FLAG:
		return *(const bool *)at ? "on" : "off";
	case RFL_OPT_TEXT:
		return *(const char *const *)at;
	case RFL_OPT_CHOICE:
		return row->choices[*(const int *)at - row->first];
	case RFL_OPT_INT:
		(void)snprintf(number, RFL_NUM_MAX, "%" PRId64, *(const int64_t *)at);
		return number;
	case RFL_OPT_REAL:
		return rfl_num_exact(*(const double *)at, number);
	default:
		return NULL;
	}
}

void rfl_opt_write(const struct rfl_cmd *cmd, const void *args, struct rfl_buf *out)
{
	rfl_buf_printf(out, "roofline %s", cmd->name);
	for (const struct rfl_opt *row = cmd->opts; row->name; row++) {
		const struct rfl_opt_list *list = (const void *)((const char *)args + row->offset);
		char number[RFL_NUM_MAX], exact[RFL_NUM_MAX];
		const char *text = rfl_opt_text(row, args, number), *def = rfl_opt_default(row);
		RFL_AUTO(buf) items = { .len = 0 };
		double value;

		if (row->kind == RFL_OPT_FLAG) {
			if (strcmp(text, "on") == 0)
				rfl_buf_printf(out, " --%s", row->name);
			continue;
		}
		if (row->kind == RFL_OPT_REAL && def &&
		    rfl_num_parse_double(def, row->name, &value, NULL) == RFL_OK)
			def = rfl_num_exact(value, exact);
		for (size_t i = 0; row->kind == RFL_OPT_LIST && i < list->n; i++) {
			rfl_buf_printf(&items, "%s%s", i ? "," : "", list->items[i]);
			text = rfl_buf_str(&items);
		}
		if (text && *text && !rfl_text_same(text, def)) {
			rfl_buf_printf(out, " --%s ", row->name);
			rfl_text_shell_word(text, out);
		}
	}
}

/* ---- rows ---- */

#define OPT(kind, member, ...) RFL_OPT(struct rfl_opt_globals, kind, member, __VA_ARGS__)

/* In the order of enum rfl_help. */
static const char *const pages[] = { "short", "all", NULL };

const struct rfl_opt rfl_opt_global_rows[] = {
	OPT(CHOICE, help, .letter = 'h', .name = "help", .meta = "[PAGE]", .choices = pages,
	    .first = RFL_HELP_SHORT, .bare = "short",
	    .help = "show the main options; all: everything"),
	OPT(FLAG, quiet, .letter = 'q', .name = "quiet",
	    .help = "print only results and error messages"),
	OPT(FLAG, verbose, .letter = 'v', .name = "verbose",
	    .help = "print more messages on standard error"),
	OPT(FLAG, version, .name = "version", .help = "print the version"),
	{ .name = NULL },
};

/* Alternative names of options, accepted if a command has one of them. */
static const char *const spellings[][3] = {
	{ "arch", "model", "models" },
	{ "batch-size", "batch-sizes", "batch" },
};

/* The row of `spellings` with a name; the number of rows if none has it. */
static size_t spelling_of(const char *name)
{
	size_t i = 0;

	for (; i < RFL_ARRAY_LEN(spellings); i++)
		for (size_t k = 0; k < RFL_ARRAY_LEN(spellings[0]) && spellings[i][k]; k++)
			if (strcmp(spellings[i][k], name) == 0)
				return i;
	return i;
}

bool rfl_opt_same_name(const char *a, const char *b)
{
	const size_t i = spelling_of(a);

	return strcmp(a, b) == 0 || (i < RFL_ARRAY_LEN(spellings) && i == spelling_of(b));
}

struct slot {
	const struct rfl_opt *row;
	void *base; /* the struct to which row->offset applies */
	bool seen;
	const char *text; /* the value on the command line; "on" or "off" of a flag */
};

struct parser {
	const struct rfl_cmd *cmd; /* NULL: options before the command */
	int argc, next;            /* number of words; index of the next one */
	char *const *argv;
	size_t nslots;
	struct slot slots[SLOTS_MAX];
	struct slot *open; /* list option to which the next word is added */
	struct slot *last; /* the option whose value was the last word, unless it is a list */
	struct rfl_err *err;
};

/* @param cmd  NULL: only the common options */
static void parser_init(struct parser *p, const struct rfl_cmd *cmd, int argc, char *const *argv,
			void *args, struct rfl_opt_globals *globals, struct rfl_err *err)
{
	*p = (struct parser){ .cmd = cmd, .argc = argc, .next = 1, .argv = argv, .err = err };
	for (const struct rfl_opt *row = cmd ? cmd->opts : NULL; row && row->name; row++) {
		assert(p->nslots < SLOTS_MAX - RFL_ARRAY_LEN(rfl_opt_global_rows));
		p->slots[p->nslots++] = (struct slot){ .row = row, .base = args };
	}
	for (const struct rfl_opt *row = rfl_opt_global_rows; row->name; row++)
		p->slots[p->nslots++] = (struct slot){ .row = row, .base = globals };
}

/* Find a long option by its name or, if there is none, by another spelling. */
static struct slot *find_long(struct parser *p, const char *name, bool *negated)
{
	*negated = false;
	for (struct slot *s = p->slots; s < p->slots + p->nslots; s++) {
		*negated = s->row->negatable && strncmp(name, "no-", 3) == 0 &&
			   strcmp(name + 3, s->row->name) == 0;
		if (*negated || strcmp(name, s->row->name) == 0)
			return s;
	}
	for (struct slot *s = p->slots; s < p->slots + p->nslots; s++)
		if (rfl_opt_same_name(name, s->row->name) || /* --arch also takes a file */
		    (strcmp(name, "net") == 0 && strcmp(s->row->name, "arch") == 0))
			return s;
	return NULL;
}

/* ---- unknown options ---- */

/* The visible option whose name begins with or resembles `name`, for a suggestion.
 * @param negated  search only the options that can be negated */
static const char *nearest_name(const struct parser *p, const char *name, bool negated)
{
	const char *names[SLOTS_MAX + 1] = { NULL };
	size_t n = 0;

	for (const struct slot *s = p->slots; s < p->slots + p->nslots; s++) {
		if (s->row->hidden || (negated && !s->row->negatable))
			continue;
		if (*name && strncmp(s->row->name, name, strlen(name)) == 0)
			return s->row->name;
		names[n++] = s->row->name;
	}
	return rfl_text_nearest(name, names);
}

static enum rfl_rc unknown_long(const struct parser *p, const char *name)
{
	const bool negated = strncmp(name, "no-", 3) == 0;
	const char *near = negated ? nearest_name(p, name + 3, true) : NULL,
		   *no = near ? "no-" : "";
	const struct rfl_cmd *cmd = p->cmd;
	struct rfl_span rest = rfl_span_of(cmd && cmd->operands ? cmd->operands : ""), word;

	while (rfl_span_next_word(&rest, &word))
		if (word.len == strlen(name) && strncasecmp(word.at, name, word.len) == 0)
			return rfl_usage(
				p->err, "--%s is not an option; it is an operand: 'roofline %s %s'",
				name, cmd->name, cmd->operands);
	for (size_t i = 0; (cmd = rfl_cmd_at(i)) && !cmd->hidden; i++)
		for (const struct rfl_opt *row = cmd->opts; row && row->name; row++)
			if (!row->hidden && strcmp(row->name, name) == 0)
				return rfl_usage(p->err,
						 "--%s is an option of 'roofline %s', not of %s; "
						 "leave it out",
						 name, cmd->name,
						 p->cmd ? p->cmd->name : "the program");
	near = near ? near : nearest_name(p, name, false);
	if (near)
		return rfl_usage(p->err, "--%s is not an option; did you mean --%s%s?", name, no,
				 near);
	return rfl_usage(p->err, "--%s is not an option; run 'roofline %s%s--help%s' for a list",
			 name, p->cmd ? p->cmd->name : "", p->cmd ? " " : "", p->cmd ? " all" : "");
}

static enum rfl_rc unknown_letter(const struct parser *p, const char *word, const char *letter)
{
	const char *near = NULL;

	if (*letter < ' ' || *letter > '~') /* a byte of a multi-byte character */
		return rfl_usage(p->err, "%s is not an option; leave it out", word);
	if (letter == word + 1 && letter[1]) /* -batch-size instead of --batch-size */
		near = nearest_name(p, letter, false);
	return rfl_usage(p->err, "-%c is not an option%s%s%s", *letter,
			 near ? "; did you mean --" : "; leave it out", near ? near : "",
			 near ? "?" : "");
}

static bool is_choice(const struct rfl_opt *row, const char *word)
{
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		if (strcmp(row->choices[i], word) == 0)
			return true;
	return false;
}

/* Reject an operand of a command without operands, and name the option that was probably meant: the
 * one whose value ends here for lack of quotes, one with this choice, or the command's main one. */
static enum rfl_rc stray_word(const struct parser *p, const char *word)
{
	const struct slot *meant = NULL;

	if (p->last && p->last->row->kind == RFL_OPT_TEXT && p->last->row->meta &&
	    strcmp(p->last->row->meta, "DIR") == 0)
		return rfl_usage(p->err, "'%s': --%s takes one directory", word,
				 p->last->row->name);
	if (p->last && p->last->row->kind == RFL_OPT_TEXT)
		return rfl_usage(p->err, "'%s': --%s takes one word; quote it, as in --%s '%s %s'",
				 word, p->last->row->name, p->last->row->name, p->last->text, word);
	for (const struct slot *s = p->slots; s < p->slots + p->nslots; s++) {
		if (s->row->hidden)
			continue;
		if (is_choice(s->row, word) && (!meant || !meant->row->choices))
			meant = s;
		if ((s->row->main || s->row->required) && !meant)
			meant = s;
	}
	if (meant)
		return rfl_usage(p->err, "'%s': %s takes no operands; use --%s %s", word,
				 p->cmd->name, meant->row->name, word);
	return rfl_usage(p->err, "'%s': %s takes no operands; leave it out", word, p->cmd->name);
}

/* ---- parsing ---- */

/* Set an option. @param value  NULL: the next word */
static enum rfl_rc give(struct parser *p, struct slot *slot, const char *value)
{
	const struct rfl_opt *row = slot->row;

	p->open = p->last = NULL;
	if (!value && row->bare) { /* the next word may be the value */
		const char *next = p->next < p->argc ? p->argv[p->next] : "-";
		const bool page = row == rfl_opt_global_rows && is_choice(row, next);
		const bool alone = *next == '-' || ((!p->cmd || p->cmd->operands) && !page);

		value = alone ? row->bare : p->argv[p->next++];
	} else if (!value) {
		if (p->next >= p->argc || strncmp(p->argv[p->next], "--", 2) == 0)
			return rfl_usage(p->err, "--%s needs a value; use --%s %s", row->name,
					 row->name, row->meta ? row->meta : "VALUE");
		value = p->argv[p->next++];
		if (row->kind == RFL_OPT_LIST || row->kind == RFL_OPT_INT_LIST)
			p->open = slot;
		else
			p->last = slot;
	}
	slot->seen = true;
	slot->text = value;
	if (row->given)
		*(bool *)((char *)slot->base + row->given) = true;
	return set(row, slot->base, value, p->err);
}

static enum rfl_rc take_long(struct parser *p, const char *word)
{
	const size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;
	char name[256];
	bool negated;
	struct slot *slot;

	(void)snprintf(name, sizeof(name), "%.*s", len < sizeof(name) ? (int)len : 200, word);
	slot = find_long(p, name, &negated);
	if (!slot)
		return unknown_long(p, name);
	if (slot->row->kind != RFL_OPT_FLAG)
		return give(p, slot, value);
	if (value)
		return rfl_usage(p->err, "--%s takes no value; leave it out", name);
	return give(p, slot, negated ? "off" : "on");
}

/* Take "-q", "-qv", "-i7" or the two words "-i 7". */
static enum rfl_rc take_letters(struct parser *p, const char *word)
{
	enum rfl_rc rc = RFL_OK;
	bool flag = true;

	for (const char *letter = word + 1; *letter && flag && rc == RFL_OK; letter++) {
		struct slot *slot = p->slots;

		while (slot < p->slots + p->nslots && slot->row->letter != *letter)
			slot++;
		if (slot == p->slots + p->nslots)
			return unknown_letter(p, word, letter);
		flag = slot->row->kind == RFL_OPT_FLAG;
		rc = give(p, slot, flag ? "on" : letter[1] ? letter + 1 : NULL);
	}
	return rc;
}

/* Parse options up to the first word that is not an option, "--" or the end.
 * @return whether the options have ended with "--" */
static bool take_options(struct parser *p, enum rfl_rc *rc)
{
	while (*rc == RFL_OK && p->next < p->argc) {
		const char *word = p->argv[p->next];

		if (word[0] != '-' || word[1] == '\0')
			return false;
		p->next++;
		if (strcmp(word, "--") == 0)
			return true;
		*rc = word[1] == '-' ? take_long(p, word + 2) : take_letters(p, word);
	}
	return false;
}

/* Whether an option is on the command line, or has the value: "train", "mode=train". */
static bool is_used(const struct parser *p, struct rfl_span word)
{
	const size_t len = rfl_span_find(word, "=");
	const struct rfl_span name = { word.at, len };

	for (const struct slot *s = p->slots; s < p->slots + p->nslots; s++) {
		const char *text = s->seen ? s->text : s->row->def;

		if (!rfl_span_is(name, s->row->name))
			continue;
		return len < word.len ? text && rfl_span_is(rfl_span_from(word, len + 1), text)
				      : s->seen && strcmp(text, "off") != 0;
	}
	return false;
}

/* Reject an option together with a conflicting one, or without one that it needs. */
static enum rfl_rc check_others(const struct parser *p, const struct rfl_opt *row)
{
	struct rfl_span rest = rfl_span_of(row->against ? row->against : ""), name;
	bool needs = row->needs != NULL;

	while (rfl_span_next_word(&rest, &name))
		for (size_t i = 0; i < p->nslots; i++)
			if (p->slots[i].seen && rfl_span_is(name, p->slots[i].row->name))
				return rfl_usage(p->err, "--%s and --%s cannot be used together",
						 row->name, p->slots[i].row->name);
	rest = rfl_span_of(row->needs ? row->needs : "");
	while (needs && rfl_span_next_word(&rest, &name))
		needs = !is_used(p, name);
	if (!needs)
		return RFL_OK;
	rest = rfl_span_of(row->needs);
	(void)rfl_span_next_word(&rest, &name);
	return rfl_usage(p->err, "--%s has no effect without --%.*s; add it, or leave out --%s",
			 row->name, RFL_SPAN_ARG(name), row->name);
}

/* The default of an option in the log directory of the study that is used as a matrix:
 * "study/logs/metrics.csv" for "logs/metrics.csv". NULL: none. */
static const char *default_of_study(const struct parser *p, const struct rfl_opt *row,
				    const struct rfl_opt_list *operands, struct rfl_arena *arena)
{
	const bool has_file = operands && operands->n && rfl_cmd_in_group(p->cmd, "matrix");
	const char *file = has_file ? operands->items[0] : NULL, *logs;

	for (const struct slot *s = p->slots; s < p->slots + p->nslots; s++)
		if (s->seen && strcmp(s->row->name, "matrix") == 0)
			file = s->text;
	logs = file ? rfl_study_logs(file, arena) : NULL;
	return logs ? rfl_project_below("log_dir", logs, row->project, arena) : NULL;
}

/* The default of an option in the study, else in the project; NULL: none. */
static enum rfl_rc default_of_project(const struct parser *p, const struct rfl_opt *row,
				      const struct rfl_opt_list *operands,
				      struct rfl_project *project, const char **ret,
				      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!(*ret = default_of_study(p, row, operands, project->arena)))
		rc = rfl_project_path(project, row->project, ret, err);
	if (row->found && *ret && !rfl_project_has(row->project, *ret, project->arena))
		*ret = NULL;
	return rc;
}

/* Set an option that is not on the command line to its default. */
static enum rfl_rc complete(const struct parser *p, const struct slot *s,
			    const struct rfl_opt_list *operands, struct rfl_project *project,
			    struct rfl_err *err)
{
	const struct rfl_opt *row = s->row;
	struct rfl_span rest = rfl_span_of(row->unless ? row->unless : ""), name;
	const char *value = NULL;
	enum rfl_rc rc = RFL_OK;

	while (rfl_span_next_word(&rest, &name))
		if (is_used(p, name))
			return RFL_OK;
	if (project && row->project)
		rc = default_of_project(p, row, operands, project, &value, err);
	if (rc)
		return rc;
	if (value && row->kind == RFL_OPT_LIST) /* one path, also with a comma */
		return add_items(row, (char *)s->base + row->offset, value, "\n", err);
	if (value)
		return set(row, s->base, value, err);
	if (row->required)
		return rfl_usage(err, "--%s %s is required: %s", row->name,
				 row->meta ? row->meta : "", row->help ? row->help : "");
	return rfl_opt_set_default(row, s->base, err);
}

enum rfl_rc rfl_opt_parse(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			  struct rfl_opt_globals *globals, struct rfl_err *err)
{
	struct rfl_opt_globals ignored = { .help = RFL_HELP_NONE };
	struct rfl_opt_list *operands = cmd->operands ? args : NULL;
	struct rfl_span rest = rfl_span_of(cmd->operands ? cmd->operands : ""), word;
	size_t least = 0, most = 0; /* number of operands */
	bool optional = false, ended = false;
	struct parser p;
	enum rfl_rc rc = RFL_OK;

	const bool is_command = cmd->operands && strncmp(cmd->operands, "-- ", 3) == 0;

	if (is_command)
		(void)rfl_span_next_word(&rest, &word);
	while (rfl_span_next_word(&rest, &word)) {
		optional = optional || word.at[0] == '[';
		least += !optional;
		most = rfl_span_has(word, "...") || most == SIZE_MAX ? SIZE_MAX : most + 1;
	}
	globals = globals ? globals : &ignored;
	parser_init(&p, cmd, argc, argv, args, globals, err);
	for (;;) {
		const char *text;

		if (!ended && (ended = take_options(&p, &rc)))
			p.open = NULL;
		if (rc != RFL_OK || p.next >= argc)
			break;
		text = argv[p.next++];
		if (p.open)
			rc = set(p.open->row, p.open->base, text, err);
		else if (!operands)
			rc = stray_word(&p, text);
		else if (*text == '\0' && !is_command)
			rc = rfl_usage(err, "empty operand; %s accepts %s", cmd->name,
				       cmd->operands);
		else if (operands->n >= most)
			rc = rfl_usage(err, "unexpected operand '%s': %s accepts only %s", text,
				       cmd->name, cmd->operands);
		else
			rc = list_add(operands, text, err);
		ended = ended || is_command;
	}
	if (globals->help || globals->version)
		return rc;
	if (is_command && globals->project) /* nothing is printed before the command ends */
		globals->project->announced = true;
	for (const struct slot *s = p.slots; rc == RFL_OK && s < p.slots + p.nslots; s++)
		rc = s->seen ? check_others(&p, s->row)
			     : complete(&p, s, operands, globals->project, err);
	if (rc == RFL_OK && operands && operands->n < least)
		rc = rfl_usage(err, "%s is missing; usage: roofline %s %s",
			       operands->n  ? "an operand"
			       : is_command ? "COMMAND"
					    : cmd->operands,
			       cmd->name, cmd->operands);
	return rc;
}

enum rfl_rc rfl_opt_parse_front(int argc, char *const *argv, struct rfl_opt_globals *globals,
				int *next, struct rfl_err *err)
{
	struct parser p;
	enum rfl_rc rc = RFL_OK;

	parser_init(&p, NULL, argc, argv, NULL, globals, err);
	(void)take_options(&p, &rc);
	if (rc == RFL_OK)
		*next = p.next;
	return rc;
}
