/*
 * parse.c - parse a command line into the argument struct of a command, with getopt_long.
 *
 * Because of "+", getopt stops at every word that is not an option: it is a value of the preceding
 * list option, or an operand. Abbreviations, which getopt_long accepts, are rejected: a new option
 * with the same beginning would break them.
 */
#include "cli/opt/opt.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/num.h"
#include "base/text.h"

#define LIST_MAX  4096 /* maximum number of values of an option */
#define TOO_MANY  "a list has more than %d values; use fewer"
#define LONG_BASE 0x100 /* code of a long option: LONG_BASE + 2 * slot, + 1 for --no-name */

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
	bool lower = false, upper = false;

	if (real) {
		rfl_num_exact(row->rmin, lo);
		rfl_num_exact(row->rmax, hi);
		lower = is_bounded(row);
		upper = lower && row->rmax >= row->rmin && strcmp(hi, "inf") != 0;
	} else if (whole) {
		snprintf(lo, sizeof(lo), "%lld", (long long)row->min);
		snprintf(hi, sizeof(hi), "%lld", (long long)row->max);
		lower = has_lower(row);
		upper = has_upper(row);
	}
	if (lower && upper)
		snprintf(out, out_size, "number from %s to %s", lo, hi);
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
	return rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not a %s%s", row->name, text,
			whole ? "" : "whole ", rfl_opt_range(row, range, sizeof(range)));
}

static enum rfl_rc find_choice(const struct rfl_opt *row, const char *text, int *ret,
			       struct rfl_err *err)
{
	struct rfl_buf names;
	const char *near;
	enum rfl_rc rc;

	for (int i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], text) == 0) {
			*ret = i + row->first;
			return RFL_OK;
		}
	}
	rfl_buf_init(&names, 0);
	for (int i = 0; row->choices[i]; i++)
		rfl_buf_printf(&names, "%s%s", i > 0 ? ", " : "", row->choices[i]);
	near = rfl_text_nearest(text, row->choices);
	if (near && strlen(text) <= 3 && near[0] != text[0]) /* not "cpu" for "gpu" */
		near = NULL;
	rc = rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not one of %s%s%s%s", row->name, text,
		      rfl_buf_str(&names), near ? "; did you mean " : "", near ? near : "",
		      near ? "?" : "");
	rfl_buf_fini(&names);
	return rc;
}

static enum rfl_rc list_add(struct rfl_opt_list *list, const char *text, struct rfl_err *err)
{
	enum rfl_rc rc;

	if (list->n >= LIST_MAX)
		return rfl_fail(err, RFL_EUSAGE, 0, TOO_MANY, LIST_MAX);
	rc = rfl_grow(&list->items, &list->cap, list->n + 2, SIZE_MAX, err);
	if (rc != RFL_OK)
		return rc;
	list->items[list->n] = strdup(text);
	if (!list->items[list->n])
		return rfl_fail(err, RFL_ENOMEM, 0, "command line: out of memory");
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
		return rfl_fail(err, RFL_EUSAGE, 0, TOO_MANY, LIST_MAX);
	if ((rc = parse_int(row, text, &value, err)) ||
	    (rc = rfl_grow(&numbers->items, &numbers->cap, numbers->n + 1, SIZE_MAX, err)))
		return rc;
	numbers->items[numbers->n++] = value;
	return RFL_OK;
}

/* Add the values of a list, which are separated by any of `separators`. */
static enum rfl_rc add_items(const struct rfl_opt *row, void *member, const char *text,
			     const char *separators, struct rfl_err *err)
{
	char *copy = strdup(text), *rest = copy, *part;
	enum rfl_rc rc =
		copy ? RFL_OK : rfl_fail(err, RFL_ENOMEM, 0, "command line: out of memory");

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
			rc = rfl_fail(err, RFL_EUSAGE, 0,
				      "--%s: '%s' has an empty value; remove a comma", row->name,
				      text);
	}
	free(copy);
	return rc;
}

/* Parse a value, and store it in the member of a row or append it to the list there. */
static enum rfl_rc set(const struct rfl_opt *row, void *base, const char *text, struct rfl_err *err)
{
	void *member = (char *)base + row->offset;
	enum rfl_rc rc = RFL_OK;
	char range[128];
	double value;
	int index;

	switch (row->kind) {
	case RFL_OPT_FLAG:
		*(bool *)member = strcmp(text, "on") == 0;
		return RFL_OK;
	case RFL_OPT_INT:
		return parse_int(row, text, member, err);
	case RFL_OPT_REAL:
		if (rfl_num_parse_double(text, row->name, &value, NULL) != RFL_OK ||
		    (is_bounded(row) && value < row->rmin) ||
		    (is_bounded(row) && row->rmax >= row->rmin && value > row->rmax))
			return rfl_fail(err, RFL_EUSAGE, 0, "--%s: '%s' is not a %s", row->name,
					text, rfl_opt_range(row, range, sizeof(range)));
		*(double *)member = value;
		return RFL_OK;
	case RFL_OPT_TEXT:
		if (*text == '\0' && !row->may_be_empty)
			return rfl_fail(err, RFL_EUSAGE, 0,
					"--%s: empty value; give one, or leave out the option",
					row->name);
		if (row->choices)
			rc = find_choice(row, text, &index, err);
		if (rc == RFL_OK)
			*(const char **)member = text;
		return rc;
	case RFL_OPT_CHOICE:
		return find_choice(row, text, member, err);
	case RFL_OPT_LIST:
	case RFL_OPT_INT_LIST:
		return add_items(row, member, text, row->whole && *text ? "" : ",", err);
	}
	return rfl_fail(err, RFL_EINVAL, 0, "--%s: invalid kind of option", row->name);
}

enum rfl_rc rfl_opt_set_default(const struct rfl_opt *row, void *base, struct rfl_err *err)
{
	if (!row->def)
		return RFL_OK;
	if (row->kind != RFL_OPT_LIST && row->kind != RFL_OPT_INT_LIST)
		return set(row, base, row->def, err);
	return add_items(row, (char *)base + row->offset, row->def, *row->def == '\n' ? "\n" : " ,",
			 err);
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

/* ---- the tables of getopt ---- */

#define OPT(member, ...) RFL_OPT(struct rfl_opt_globals, FLAG, member, __VA_ARGS__)

const struct rfl_opt rfl_opt_global_rows[] = {
	OPT(help, .letter = 'h', .name = "help", .help = "show this page"),
	OPT(quiet, .letter = 'q', .name = "quiet", .help = "print only error messages"),
	OPT(verbose, .letter = 'v', .name = "verbose",
	    .help = "print more messages on standard error"),
	OPT(version, .name = "version", .help = "print the version"),
	{ .name = NULL },
};

static const struct rfl_opt no_rows[] = { { .name = NULL } };

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
};

struct parser {
	const struct rfl_cmd *cmd; /* NULL: options before the command */
	struct rfl_arena *arena;
	size_t nslots;
	struct slot *slots;
	struct option *longs;
	size_t nlongs;
	const char **names; /* names of visible options, for suggestions */
	char *shorts;
	struct slot *open;             /* list option to which the next word is added */
	struct rfl_opt_list *operands; /* NULL: not allowed */
	size_t least, most;            /* number of operands */
	struct rfl_err *err;
};

static size_t count_rows(const struct rfl_opt *rows)
{
	size_t n = 0;

	while (rows[n].name)
		n++;
	return n;
}

static void add_long(struct parser *p, const char *name, size_t slot, bool negated)
{
	const struct rfl_opt *row = p->slots[slot].row;

	p->longs[p->nlongs++] = (struct option){
		.name = name,
		.has_arg = row->kind == RFL_OPT_FLAG ? no_argument
			   : row->bare               ? optional_argument
						     : required_argument,
		.val = LONG_BASE + (int)(2 * slot) + (negated ? 1 : 0),
	};
}

static bool is_long(const struct parser *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->nlongs; i++)
		if (strlen(p->longs[i].name) == len && strncmp(p->longs[i].name, name, len) == 0)
			return true;
	return false;
}

/* Add the alternative names of an option, unless the command has separate options with them. */
static void add_spellings(struct parser *p, size_t slot)
{
	const size_t i = spelling_of(p->slots[slot].row->name);

	for (size_t k = 0; i < RFL_ARRAY_LEN(spellings) && k < RFL_ARRAY_LEN(spellings[0]); k++)
		if (spellings[i][k] && !is_long(p, spellings[i][k], strlen(spellings[i][k])))
			add_long(p, spellings[i][k], slot, false);
}

/* Fill the slots of all rows and the tables of getopt_long. */
static enum rfl_rc parser_init(struct parser *p, const struct rfl_opt *rows, void *args,
			       struct rfl_opt_globals *globals)
{
	const size_t nrows = count_rows(rows);
	const size_t most = 2 * (nrows + count_rows(rfl_opt_global_rows)) + 1;
	size_t nshorts = 0, nnames = 0;

	p->nslots = nrows + count_rows(rfl_opt_global_rows);
	p->arena = rfl_arena_new(0);
	if (p->arena) {
		p->slots = rfl_arena_array(p->arena, p->nslots, sizeof(*p->slots));
		p->longs = rfl_arena_array(p->arena, most + sizeof(spellings) / sizeof(**spellings),
					   sizeof(*p->longs));
		p->names = rfl_arena_array(p->arena, most, sizeof(*p->names));
		p->shorts = rfl_arena_array(p->arena, most + 2, 1);
	}
	if (!p->slots || !p->longs || !p->names || !p->shorts)
		return rfl_fail(p->err, RFL_ENOMEM, 0, "options: out of memory");
	p->shorts[nshorts++] = '+';
	p->shorts[nshorts++] = ':';
	for (size_t i = 0; i < p->nslots; i++) {
		const struct rfl_opt *row = i < nrows ? &rows[i] : &rfl_opt_global_rows[i - nrows];

		p->slots[i].row = row;
		p->slots[i].base = i < nrows ? args : (void *)globals;
		add_long(p, row->name, i, false);
		if (row->negatable) {
			const char *name = rfl_arena_printf(p->arena, "no-%s", row->name);

			if (!name)
				return rfl_fail(p->err, RFL_ENOMEM, 0, "options: out of memory");
			add_long(p, name, i, true);
		}
		if (row->letter) {
			p->shorts[nshorts++] = row->letter;
			if (row->kind != RFL_OPT_FLAG)
				p->shorts[nshorts++] = ':';
		}
	}
	for (size_t i = 0; i < p->nlongs; i++)
		if (!p->slots[(p->longs[i].val - LONG_BASE) / 2].row->hidden)
			p->names[nnames++] = p->longs[i].name;
	for (size_t i = 0; i < p->nslots; i++)
		add_spellings(p, i);
	return RFL_OK;
}

/* ---- errors reported by getopt ---- */

static const char *nearest_name(const struct parser *p, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; p->names[i] && len > 0; i++)
		if (strncmp(p->names[i], name, len) == 0)
			return p->names[i];
	return rfl_text_nearest(name, p->names);
}

static enum rfl_rc unknown_long(struct parser *p, const char *word)
{
	char *name = rfl_arena_strdup(p->arena, word + 2);
	const struct rfl_cmd *cmd;
	const char *near;

	if (!name)
		return rfl_fail(p->err, RFL_ENOMEM, 0, "options: out of memory");
	name[strcspn(name, "=")] = '\0';
	for (size_t i = 0; (cmd = rfl_cmd_at(i)); i++)
		for (const struct rfl_opt *row = cmd->opts; row && row->name; row++)
			if (!cmd->hidden && !row->hidden && strcmp(row->name, name) == 0)
				return rfl_fail(p->err, RFL_EUSAGE, 0,
						"--%s is an option of 'roofline %s', not of %s; "
						"leave it out",
						name, cmd->name,
						p->cmd ? p->cmd->name : "the program");
	near = nearest_name(p, name);
	if (near)
		return rfl_fail(p->err, RFL_EUSAGE, 0, "--%s is not an option; did you mean --%s?",
				name, near);
	return rfl_fail(p->err, RFL_EUSAGE, 0,
			"--%s is not an option; run 'roofline %s%s--help' for a list", name,
			p->cmd ? p->cmd->name : "", p->cmd ? " " : "");
}

static struct slot *slot_of(struct parser *p, int code)
{
	if (code >= LONG_BASE)
		return &p->slots[(code - LONG_BASE) / 2];
	for (size_t i = 0; i < p->nslots; i++)
		if (p->slots[i].row->letter == code)
			return &p->slots[i];
	return NULL;
}

static enum rfl_rc needs_value(struct parser *p, const struct slot *slot)
{
	return rfl_fail(p->err, RFL_EUSAGE, 0, "--%s needs a value; use --%s %s", slot->row->name,
			slot->row->name, slot->row->meta ? slot->row->meta : "VALUE");
}

/* Whether the name of a long option is not abbreviated. */
static bool is_whole_name(const struct parser *p, const char *word)
{
	return is_long(p, word + 2, strcspn(word + 2, "="));
}

/* Report the error for which getopt returned '?' or ':'. */
static enum rfl_rc complain(struct parser *p, int code, const char *word)
{
	const struct slot *slot = optopt ? slot_of(p, optopt) : NULL;
	const char *near = NULL;

	if (!optopt || (slot && optopt >= LONG_BASE && !is_whole_name(p, word)))
		return unknown_long(p, word);
	if (code == ':' && slot)
		return needs_value(p, slot);
	if (slot && optopt >= LONG_BASE)
		return rfl_fail(p->err, RFL_EUSAGE, 0, "--%.*s accepts no value; leave it out",
				(int)strcspn(word + 2, "="), word + 2);
	if (optopt < ' ' || optopt > '~') /* a byte of a multi-byte character */
		return rfl_fail(p->err, RFL_EUSAGE, 0, "%s is not an option; leave it out", word);
	if (strlen(word) > 2 && word[1] == optopt) /* -batch-size instead of --batch-size */
		near = nearest_name(p, word + 1);
	return rfl_fail(p->err, RFL_EUSAGE, 0, "-%c is not an option%s%s%s", optopt,
			near ? "; did you mean --" : "; leave it out", near ? near : "",
			near ? "?" : "");
}

/* ---- parsing ---- */

/* Parse options up to the first word that is not an option, "--" or the end. */
static enum rfl_rc take_options(struct parser *p, int argc, char *const *argv, bool *ended)
{
	for (;;) {
		int before = optind > 0 ? optind : 1;
		int code = getopt_long(argc, argv, p->shorts, p->longs, NULL);
		const char *word = argv[before], *value = optarg;
		const struct rfl_opt *row;
		struct slot *slot;
		bool separate; /* whether the value is a separate word */
		enum rfl_rc rc;

		if (code == -1) {
			*ended = optind > before; /* "--" was skipped */
			return RFL_OK;
		}
		if (code == '?' || code == ':')
			return complain(p, code, word);
		slot = slot_of(p, code);
		assert(slot); /* all codes are from our tables */
		row = slot->row;
		separate = value && value == argv[optind - 1];
		if (row->bare && !value) /* the next word may be the value */
			value = p->operands || optind >= argc || argv[optind][0] == '-'
					? row->bare
					: argv[optind++];
		if (code >= LONG_BASE && !is_whole_name(p, word))
			return unknown_long(p, word);
		slot->seen = true;
		if (row->given)
			*(bool *)((char *)slot->base + row->given) = true;
		p->open = NULL;
		if (row->kind == RFL_OPT_FLAG)
			value = code >= LONG_BASE && (code - LONG_BASE) % 2 ? "off" : "on";
		else if (separate && strncmp(value, "--", 2) == 0)
			return needs_value(p, slot);
		else if (separate && (row->kind == RFL_OPT_LIST || row->kind == RFL_OPT_INT_LIST))
			p->open = slot;
		rc = set(row, slot->base, value, p->err);
		if (rc != RFL_OK)
			return rc;
	}
}

/* Reject an option if a conflicting one was also given. */
static enum rfl_rc check_against(const struct parser *p, const struct rfl_opt *row)
{
	for (const char *name = row->against ? row->against : ""; *name;) {
		size_t len = strcspn(name, " ");

		for (size_t i = 0; i < p->nslots; i++)
			if (p->slots[i].seen && strlen(p->slots[i].row->name) == len &&
			    strncmp(p->slots[i].row->name, name, len) == 0)
				return rfl_fail(p->err, RFL_EUSAGE, 0,
						"--%s and --%s cannot be used together", row->name,
						p->slots[i].row->name);
		name += len;
		name += strspn(name, " ");
	}
	return RFL_OK;
}

enum rfl_rc rfl_opt_parse(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			  struct rfl_opt_globals *globals, struct rfl_err *err)
{
	struct rfl_opt_globals ignored = { .help = false };
	struct parser p = { .cmd = cmd, .err = err };
	const char *word;
	bool optional = false, ended = false;
	enum rfl_rc rc;

	if (!globals)
		globals = &ignored;
	if (cmd->operands)
		p.operands = args;
	for (word = cmd->operands ? cmd->operands : ""; *word != '\0';) {
		const size_t len = strcspn(word, " ");
		const char *dots = strstr(word, "...");

		optional = optional || word[0] == '[';
		p.least += !optional;
		if (dots && dots < word + len)
			p.most = SIZE_MAX;
		else if (p.most != SIZE_MAX)
			p.most++;
		word += len + strspn(word + len, " ");
	}
	rc = parser_init(&p, cmd->opts ? cmd->opts : no_rows, args, globals);
	optind = 0; /* restart getopt_long() */
	opterr = 0;
	while (rc == RFL_OK) {
		if (!ended)
			rc = take_options(&p, argc, argv, &ended);
		if (ended)
			p.open = NULL;
		if (rc != RFL_OK || optind >= argc)
			break;
		word = argv[optind++];
		if (p.open)
			rc = set(p.open->row, p.open->base, word, err);
		else if (!p.operands)
			rc = rfl_fail(err, RFL_EUSAGE, 0,
				      "'%s': %s accepts no operands; leave it out", word,
				      cmd->name);
		else if (*word == '\0')
			rc = rfl_fail(err, RFL_EUSAGE, 0,
				      "empty operand: %s accepts %s; leave it out", cmd->name,
				      cmd->operands);
		else if (p.operands->n >= p.most)
			rc = rfl_fail(err, RFL_EUSAGE, 0,
				      "unexpected operand '%s': %s accepts only %s", word,
				      cmd->name, cmd->operands);
		else
			rc = list_add(p.operands, word, err);
	}
	if (globals->help || globals->version)
		goto done;
	for (const struct slot *s = p.slots; rc == RFL_OK && s < p.slots + p.nslots; s++) {
		const char *value = NULL;

		if (!s->seen && globals->project && s->row->meta && !s->row->no_project &&
		    (s->row->kind == RFL_OPT_TEXT || strcmp(s->row->meta, "FILE") == 0))
			rc = rfl_project_value(globals->project,
					       strcmp(s->row->name, "env") == 0 &&
							       strcmp(s->row->meta, "FILE") == 0
						       ? "env FILE"
						       : s->row->name,
					       &value, err);
		if (rc)
			break;
		if (s->seen)
			rc = check_against(&p, s->row);
		else if (value && s->row->kind == RFL_OPT_LIST) /* one path, also with a comma */
			rc = add_items(s->row, (char *)s->base + s->row->offset, value, "\n", err);
		else if (value)
			rc = set(s->row, s->base, value, err);
		else if (s->row->required)
			rc = rfl_fail(err, RFL_EUSAGE, 0, "--%s %s is required; add it",
				      s->row->name, s->row->meta ? s->row->meta : "");
		else
			rc = rfl_opt_set_default(s->row, s->base, err);
	}
	if (rc == RFL_OK && p.operands && p.operands->n < p.least)
		rc = rfl_fail(err, RFL_EUSAGE, 0, "%s is missing; add it: roofline %s %s",
			      p.operands->n ? "an operand" : cmd->operands, cmd->name,
			      cmd->operands);
done:
	rfl_arena_free(p.arena);
	return rc;
}

enum rfl_rc rfl_opt_parse_front(int argc, char *const *argv, struct rfl_opt_globals *globals,
				int *next, struct rfl_err *err)
{
	struct parser p = { .cmd = NULL, .err = err };
	bool ended = false;
	enum rfl_rc rc;

	rc = parser_init(&p, no_rows, NULL, globals);
	optind = 0;
	opterr = 0;
	if (rc == RFL_OK)
		rc = take_options(&p, argc, argv, &ended);
	if (rc == RFL_OK)
		*next = optind;
	rfl_arena_free(p.arena);
	return rc;
}
