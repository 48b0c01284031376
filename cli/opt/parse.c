/*
 * parse.c - option rows over getopt_long: which words of a command line are options, values and
 * operands, and what to say when a word is none of them. Values are checked in opt/value.c.
 *
 * getopt runs in "+" order, so that each word that is not an option comes here: it belongs to the
 * list option before it, or is an operand. Abbreviations, which getopt_long would take, are
 * refused: they would break with the next option that begins alike.
 */
#include "cli/opt/opt.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define LONG_BASE 0x100 /* codes of long options: LONG_BASE + 2 * slot, + 1 for --no-name */

const struct rfl_opt rfl_opt_global_rows[] = {
	{ .letter = 'h',
	  .name = "help",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct rfl_opt_globals, help),
	  .help = "show this page" },
	{ .letter = 'q',
	  .name = "quiet",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct rfl_opt_globals, quiet),
	  .help = "print errors only: no progress, no other messages" },
	{ .letter = 'v',
	  .name = "verbose",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct rfl_opt_globals, verbose),
	  .help = "print more on standard error" },
	{ .name = "version",
	  .kind = RFL_OPT_FLAG,
	  .offset = offsetof(struct rfl_opt_globals, version),
	  .help = "print the version" },
	{ .name = NULL },
};

static const struct rfl_opt no_rows[] = { { .name = NULL } };

/* Options that are one and the same: each spelling is taken wherever a command has one of them. */
static const char *const spellings[][3] = {
	{ "arch", "model", "models" },
	{ "batch-size", "batch-sizes" },
};

struct slot {
	const struct rfl_opt *row;
	void *base; /* what row->offset counts from */
	bool seen;
};

struct parser {
	const struct rfl_cmd *cmd; /* NULL before the command */
	struct rfl_arena *arena;
	size_t nslots;
	struct slot *slots;
	struct option *longs;
	size_t nlongs;
	const char **names; /* of longs, without hidden ones and other spellings, for suggestions */
	char *shorts;
	struct slot *open; /* the list option that takes the next word */
	struct rfl_opt_list *operands;
	struct rfl_opt_arity arity;
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

/* The other spellings of a row's name that are not options of their own here. */
static void add_spellings(struct parser *p, size_t slot)
{
	const size_t most = RFL_ARRAY_LEN(spellings[0]);

	for (size_t i = 0; i < RFL_ARRAY_LEN(spellings); i++)
		for (size_t k = 0; k < most && spellings[i][k]; k++) {
			if (strcmp(spellings[i][k], p->slots[slot].row->name) != 0)
				continue;
			for (size_t j = 0; j < most && spellings[i][j]; j++)
				if (!is_long(p, spellings[i][j], strlen(spellings[i][j])))
					add_long(p, spellings[i][j], slot, false);
		}
}

/* The slots of all rows, and the tables that getopt_long wants. */
static enum rfl_rc parser_init(struct parser *p, const struct rfl_opt *rows, void *args,
			       struct rfl_opt_globals *globals)
{
	const size_t nrows = count_rows(rows);
	size_t nshorts = 0, nnames = 0;

	p->nslots = nrows + count_rows(rfl_opt_global_rows);
	p->arena = rfl_arena_new(0);
	if (p->arena) {
		p->slots = rfl_arena_array(p->arena, p->nslots, sizeof(*p->slots));
		p->longs = rfl_arena_array(
			p->arena, 2 * p->nslots + 1 + sizeof(spellings) / sizeof(**spellings),
			sizeof(*p->longs));
		p->names = rfl_arena_array(p->arena, 2 * p->nslots + 1, sizeof(*p->names));
		p->shorts = rfl_arena_array(p->arena, 2 * p->nslots + 3, 1);
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

static const char *nearest_name(const struct parser *p, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; p->names[i] && len > 0; i++)
		if (strncmp(p->names[i], name, len) == 0)
			return p->names[i];
	return rfl_text_nearest(name, p->names);
}

/* The first command that has an option; NULL: none. */
static const struct rfl_cmd *command_with(const char *name)
{
	const struct rfl_cmd *cmd;

	for (size_t i = 0; (cmd = rfl_cmd_at(i)); i++)
		for (const struct rfl_opt *row = cmd->opts; row && row->name; row++)
			if (!cmd->hidden && !row->hidden && strcmp(row->name, name) == 0)
				return cmd;
	return NULL;
}

static enum rfl_rc unknown_long(struct parser *p, const char *word)
{
	char *name = rfl_arena_strdup(p->arena, word + 2);
	const struct rfl_cmd *other;
	const char *near;

	if (!name)
		return rfl_fail(p->err, RFL_ENOMEM, 0, "options: out of memory");
	name[strcspn(name, "=")] = '\0';
	other = command_with(name);
	if (other)
		return rfl_fail(p->err, RFL_EUSAGE, 0,
				"--%s is an option of 'roofline %s', not of %s", name, other->name,
				p->cmd ? p->cmd->name : "the program itself");
	near = nearest_name(p, name);
	if (near)
		return rfl_fail(p->err, RFL_EUSAGE, 0, "--%s is not an option; did you mean --%s?",
				name, near);
	return rfl_fail(p->err, RFL_EUSAGE, 0, "--%s is not an option; see 'roofline %s%s--help'",
			name, p->cmd ? p->cmd->name : "", p->cmd ? " " : "");
}

/* -batch-size: one dash too few is the usual cause of an unknown letter. */
static enum rfl_rc unknown_letter(struct parser *p, const char *word)
{
	const char *near;

	if (optopt < ' ' || optopt > '~') /* a byte out of a longer character */
		return rfl_fail(p->err, RFL_EUSAGE, 0, "%s is not an option", word);
	near = strlen(word) > 2 && word[1] == optopt ? nearest_name(p, word + 1) : NULL;

	return rfl_fail(p->err, RFL_EUSAGE, 0, "-%c is not an option%s%s%s", optopt,
			near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
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
	return rfl_fail(p->err, RFL_EUSAGE, 0, "--%s needs a value: --%s %s", slot->row->name,
			slot->row->name, slot->row->meta ? slot->row->meta : "VALUE");
}

/* False for an abbreviation, which getopt_long takes and we do not. */
static bool is_whole_name(const struct parser *p, const char *word)
{
	return is_long(p, word + 2, strcspn(word + 2, "="));
}

/* getopt answered '?' or ':'. */
static enum rfl_rc complain(struct parser *p, int code, const char *word)
{
	struct slot *slot = optopt ? slot_of(p, optopt) : NULL;

	if (slot && optopt >= LONG_BASE && !is_whole_name(p, word))
		return unknown_long(p, word);
	if (code == ':' && slot)
		return needs_value(p, slot);
	if (slot && optopt >= LONG_BASE)
		return rfl_fail(p->err, RFL_EUSAGE, 0, "--%.*s takes no value",
				(int)strcspn(word + 2, "="), word + 2);
	if (optopt)
		return unknown_letter(p, word);
	return unknown_long(p, word);
}

/* One option that getopt recognised. `word` is where it stands, `separate` says that its value is
 * the next word. */
static enum rfl_rc take_option(struct parser *p, int code, const char *word, const char *value,
			       bool separate)
{
	struct slot *slot = slot_of(p, code);
	const struct rfl_opt *row;

	assert(slot); /* getopt knows only our tables */
	row = slot->row;
	if (code >= LONG_BASE && !is_whole_name(p, word))
		return unknown_long(p, word);
	slot->seen = true;
	if (row->given)
		*(bool *)((char *)slot->base + row->given) = true;
	p->open = NULL;
	if (row->kind == RFL_OPT_FLAG)
		return rfl_opt_set(row, slot->base,
				   code >= LONG_BASE && (code - LONG_BASE) % 2 ? "off" : "on",
				   p->err);
	if (separate && strncmp(value, "--", 2) == 0)
		return needs_value(p, slot);
	if (separate && (row->kind == RFL_OPT_LIST || row->kind == RFL_OPT_INT_LIST))
		p->open = slot;
	return rfl_opt_set(row, slot->base, value, p->err);
}

static enum rfl_rc take_word(struct parser *p, const char *word)
{
	if (p->open)
		return rfl_opt_set(p->open->row, p->open->base, word, p->err);
	if (p->operands && *word == '\0')
		return rfl_fail(p->err, RFL_EUSAGE, 0, "'' is out of place: %s takes %s",
				p->cmd->name, p->cmd->operands);
	if (p->operands && p->operands->n < p->arity.most)
		return rfl_opt_list_add(p->operands, word, strlen(word), p->err);
	if (p->operands)
		return rfl_fail(p->err, RFL_EUSAGE, 0, "'%s' is one too many: %s takes %s", word,
				p->cmd->name, p->cmd->operands);
	return rfl_fail(p->err, RFL_EUSAGE, 0, "'%s' is out of place: %s takes options only", word,
			p->cmd->name);
}

/* Options up to the first word that is not one. Returns at the end, at "--", or at that word. */
static enum rfl_rc take_options(struct parser *p, int argc, char *const *argv, bool *ended)
{
	for (;;) {
		int before = optind > 0 ? optind : 1;
		int code = getopt_long(argc, argv, p->shorts, p->longs, NULL);
		const struct slot *slot;
		bool separate;
		enum rfl_rc rc;

		if (code == -1) {
			*ended = optind > before; /* "--" was skipped */
			return RFL_OK;
		}
		if (code == '?' || code == ':')
			return complain(p, code, argv[before]);
		slot = slot_of(p, code);
		separate = optarg && optarg == argv[optind - 1];
		if (slot && slot->row->bare && !optarg) /* its value may be the next word, where
							 words have no other meaning */
			optarg = p->operands || optind >= argc || argv[optind][0] == '-'
					 ? (char *)slot->row->bare
					 : argv[optind++];
		rc = take_option(p, code, argv[before], optarg, separate);
		if (rc != RFL_OK)
			return rc;
	}
}

static enum rfl_rc take_words(struct parser *p, int argc, char *const *argv)
{
	bool ended = false;
	enum rfl_rc rc = RFL_OK;

	optind = 0; /* glibc: begin anew */
	opterr = 0;
	for (;;) {
		if (!ended) {
			rc = take_options(p, argc, argv, &ended);
			if (ended)
				p->open = NULL;
		}
		if (rc != RFL_OK || optind >= argc)
			return rc;
		rc = take_word(p, argv[optind++]);
		if (rc != RFL_OK)
			return rc;
	}
}

/* Refuse an option next to one that it contradicts. */
static enum rfl_rc check_against(const struct parser *p, const struct rfl_opt *row)
{
	for (const char *name = row->against ? row->against : ""; *name;) {
		size_t len = strcspn(name, " ");

		for (size_t i = 0; i < p->nslots; i++)
			if (p->slots[i].seen && strlen(p->slots[i].row->name) == len &&
			    strncmp(p->slots[i].row->name, name, len) == 0)
				return rfl_fail(p->err, RFL_EUSAGE, 0,
						"--%s and --%s contradict each other; use one",
						row->name, p->slots[i].row->name);
		name += len;
		name += strspn(name, " ");
	}
	return RFL_OK;
}

static enum rfl_rc finish(struct parser *p)
{
	for (size_t i = 0; i < p->nslots; i++) {
		const struct slot *s = &p->slots[i];
		enum rfl_rc rc;

		if (s->seen) {
			rc = check_against(p, s->row);
			if (rc != RFL_OK)
				return rc;
			continue;
		}
		if (s->row->required)
			return rfl_fail(p->err, RFL_EUSAGE, 0, "--%s %s is required", s->row->name,
					s->row->meta ? s->row->meta : "");
		rc = rfl_opt_set_default(s->row, s->base, p->err);
		if (rc != RFL_OK)
			return rc;
	}
	if (p->operands && p->operands->n < p->arity.least)
		return rfl_fail(p->err, RFL_EUSAGE, 0, "%s is missing: roofline %s %s",
				p->operands->n ? "an operand" : p->cmd->operands, p->cmd->name,
				p->cmd->operands);
	return RFL_OK;
}

struct rfl_opt_arity rfl_opt_arity(const char *operands)
{
	struct rfl_opt_arity arity = { .least = 0, .most = 0 };

	for (const char *word = operands ? operands : ""; *word != '\0';) {
		size_t len = strcspn(word, " ");

		if (word[0] != '[')
			arity.least++;
		if (arity.most != SIZE_MAX)
			arity.most++;
		for (size_t i = 0; i + 3 <= len; i++)
			if (strncmp(word + i, "...", 3) == 0)
				arity.most = SIZE_MAX;
		word += len + strspn(word + len, " ");
	}
	return arity;
}

enum rfl_rc rfl_opt_parse_all(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			      struct rfl_opt_globals *globals, struct rfl_err *err)
{
	struct parser p = { .cmd = cmd, .arity = rfl_opt_arity(cmd->operands), .err = err };
	enum rfl_rc rc;

	if (cmd->operands && cmd->operands_offset >= 0)
		p.operands = (void *)((char *)args + cmd->operands_offset);
	rc = parser_init(&p, cmd->opts ? cmd->opts : no_rows, args, globals);
	if (rc != RFL_OK)
		goto done;
	rc = take_words(&p, argc, argv);
	if (rc != RFL_OK)
		goto done;
	if (!globals->help && !globals->version)
		rc = finish(&p);
done:
	rfl_arena_free(p.arena);
	return rc;
}

enum rfl_rc rfl_opt_parse(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			  struct rfl_err *err)
{
	struct rfl_opt_globals globals = { .help = false };

	return rfl_opt_parse_all(cmd, argc, argv, args, &globals, err);
}

enum rfl_rc rfl_opt_parse_front(int argc, char *const *argv, struct rfl_opt_globals *globals,
				int *next, struct rfl_err *err)
{
	struct parser p = { .cmd = NULL, .err = err };
	bool ended = false;
	enum rfl_rc rc;

	rc = parser_init(&p, no_rows, NULL, globals);
	if (rc != RFL_OK)
		goto done;
	optind = 0;
	opterr = 0;
	rc = take_options(&p, argc, argv, &ended);
	if (rc == RFL_OK)
		*next = optind;
done:
	rfl_arena_free(p.arena);
	return rc;
}

void rfl_opt_free(const struct rfl_cmd *cmd, void *args)
{
	for (const struct rfl_opt *row = cmd->opts; row && row->name; row++) {
		void *member = (char *)args + row->offset;

		if (row->kind == RFL_OPT_LIST)
			rfl_opt_list_fini(member);
		if (row->kind == RFL_OPT_INT_LIST) {
			struct rfl_opt_int_list *list = member;

			free(list->items);
			*list = (struct rfl_opt_int_list){ .n = 0, .items = NULL };
		}
	}
	if (cmd->operands && cmd->operands_offset >= 0)
		rfl_opt_list_fini((void *)((char *)args + cmd->operands_offset));
}
