/*
 * completion.c - roofline completion: print a completion script for a shell. The scripts are thin:
 * each passes the words of the command line to the hidden command `complete`, which finds the
 * candidates in the tables of commands and options.
 */
#include "cli/cmd.h"

#include <string.h>

#include "base/text.h"
#include "cli/opt/opt.h"

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

/* In the order of `shells`. Without candidates, all of them complete to file names. */
static const char *const scripts[] = {
	"# bash completion for roofline; made by `roofline completion bash`\n"
	"_roofline()\n"
	"{\n"
	"\tmapfile -t COMPREPLY < <(\"${COMP_WORDS[0]/#\\~/$HOME}\" complete -- "
	"\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"\tCOMPREPLY=(\"${COMPREPLY[@]%%$'\\t'*}\")\n"
	"}\n\n"
	"complete -o default -F _roofline roofline\n",

	"#compdef roofline\n"
	"# zsh completion for roofline; made by `roofline completion zsh`\n"
	"_roofline()\n"
	"{\n"
	"\tlocal -a rows\n"
	"\trows=(${(f)\"$(${~words[1]} complete -- \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
	"\trows=(\"${(@)rows/$'\\t'/:}\")\n"
	"\t(( $#rows )) && _describe roofline rows || _files\n"
	"}\n\n"
	"if [[ $funcstack[1] == _roofline ]]; then _roofline; else compdef _roofline roofline; "
	"fi\n",

	"# fish completion for roofline; made by `roofline completion fish`\n"
	"function __roofline_complete\n"
	"\tset -l words (commandline -opc) (commandline -ct)\n"
	"\tset words[1] (string replace -r '^~' $HOME -- $words[1])\n"
	"\t$words[1] complete -- $words[2..-1] 2>/dev/null; or __fish_complete_path $words[-1]\n"
	"end\n\n"
	"complete -c roofline -f -a '(__roofline_complete)'\n",
};

struct completion_args {
	struct rfl_opt_list words;
};

static enum rfl_rc run_completion(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const char *shell = ((const struct completion_args *)args)->words.items[0];
	RFL_AUTO(buf) script = { .len = 0 };
	char advice[RFL_ADVICE_SIZE];
	size_t i = 0;

	while (shells[i] && strcmp(shells[i], shell) != 0)
		i++;
	if (!shells[i])
		return rfl_usage(err, "'%s' is not a supported shell; %s", shell,
				 rfl_text_advice(shell, shells, 1, NULL, advice));
	rfl_buf_puts(&script, scripts[i]);
	return rfl_cli_put(cli, &script, "completion script", err);
}

const struct rfl_cmd rfl_cmd_completion = {
	.name = "completion",
	.summary = "print a completion script for the shell",
	.operands = "bash|zsh|fish",
	.example = "source <(roofline completion bash)\n"
		   "source <(roofline completion zsh)\n"
		   "roofline completion fish | source",
	.args_size = sizeof(struct completion_args),
	.run = run_completion,
};

/* ---- candidates ---- */

/* The word to complete, as "prefix" and "begin" of "--format=js": "--format=" and "js". */
struct candidates {
	struct rfl_arena *arena;
	struct rfl_buf *out;
	const char *begin;
	int prefix_len;
	const char *prefix;
};

/* Append "word<tab>help" if this is a candidate. @param help  NULL: none */
static void put(const struct candidates *c, const char *before, struct rfl_span word,
		const char *help)
{
	RFL_AUTO(buf) text = { .len = 0 };

	rfl_buf_printf(&text, "%s%.*s", before, (int)word.len, word.at);
	if (strncmp(rfl_buf_str(&text), c->begin, strlen(c->begin)) == 0)
		rfl_buf_printf(c->out, "%.*s%s%s%s\n", c->prefix_len, c->prefix, rfl_buf_str(&text),
			       help ? "\t" : "", help ? help : "");
}

static void put_options(const struct candidates *c, const struct rfl_opt *rows)
{
	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		if (row->hidden)
			continue;
		put(c, "--", rfl_span_of(row->name), row->help);
		if (row->negatable)
			put(c, "--no-", rfl_span_of(row->name), row->help);
	}
}

static void put_choices(const struct candidates *c, const struct rfl_opt *row)
{
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		put(c, "", rfl_span_of(row->choices[i]), NULL);
}

/* @param group  put only its commands, without its name; "": commands and groups */
static void put_commands(const struct candidates *c, const char *group)
{
	const struct rfl_cmd *cmd;
	struct rfl_span last = { .len = 0 };

	for (size_t i = 0; (cmd = rfl_cmd_at(i)) && !cmd->hidden; i++) {
		struct rfl_span word = { cmd->name, strcspn(cmd->name, " ") };

		if (rfl_cmd_in_group(cmd, group))
			put(c, "", rfl_span_from(rfl_span_of(cmd->name), strlen(group) + 1),
			    cmd->summary);
		else if (!*group && !cmd->name[word.len])
			put(c, "", word, cmd->summary);
		else if (!*group && !rfl_span_same(word, last))
			put(c, "", word,
			    rfl_cmd_names(c->arena, rfl_arena_printf(c->arena, "%.*s",
								     (int)word.len, word.at)));
		last = word;
	}
}

/* The keywords among the operands: "zsh" in "bash|zsh|fish", "models" in "[models|TEXT]...". */
static void put_operands(const struct candidates *c, const char *operands)
{
	for (const char *at = operands ? operands : ""; *at != '\0'; at++) {
		const size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz");

		if (len && (at == operands || strchr("[|", at[-1])))
			put(c, "", (struct rfl_span){ at, len }, NULL);
		at += len - (len > 0);
	}
}

/* The row of an option as typed: "--format" or "-f". NULL: none */
static const struct rfl_opt *find_row(const struct rfl_opt *rows, struct rfl_span word)
{
	for (const struct rfl_opt *row = rows; row && row->name; row++) {
		char name[64];

		if (word.len == 2 && row->letter && word.at[1] == row->letter)
			return row;
		if (word.len > 2 && word.len < sizeof(name) + 2 &&
		    rfl_opt_same_name(rfl_span_copy(rfl_span_from(word, 2), name, sizeof(name)),
				      row->name))
			return row;
	}
	return rows == rfl_opt_global_rows ? NULL : find_row(rfl_opt_global_rows, word);
}

/* @param words  the words of the command line up to the one to complete, which may be empty */
static void complete(struct rfl_cli *cli, const char *const *words, size_t n, struct rfl_buf *out)
{
	struct candidates c = {
		.arena = cli->arena,
		.out = out,
		.begin = n ? words[n - 1] : "",
		.prefix = "",
	};
	const struct rfl_opt *open = NULL; /* the option to which the next word may belong */
	const struct rfl_cmd *cmd = NULL;
	const char *group = "";
	const bool list_kinds[] = { [RFL_OPT_LIST] = true, [RFL_OPT_INT_LIST] = true };
	const size_t len = strcspn(c.begin, "=");

	for (size_t i = 0; i + 1 < n; i++) {
		const char *word = words[i];

		if (strcmp(word, "=") == 0) /* bash separates "--format=json" there */
			continue;
		if (strcmp(word, "--") == 0)
			return;
		if (*word == '-') {
			open = find_row(cmd ? cmd->opts : NULL, rfl_span_of(word));
			open = open && open->kind == RFL_OPT_FLAG ? NULL : open;
		} else if (open) {
			open = list_kinds[open->kind] ? open : NULL;
		} else if (!cmd && !*group && rfl_cmd_is_group(word)) {
			group = word;
		} else if (!cmd && (*group || strcmp(word, "help") != 0)) {
			cmd = rfl_cmd_find(
				*group ? rfl_arena_printf(cli->arena, "%s %s", group, word) : word);
			if (!cmd)
				return;
		} else if (cmd && cmd->operands && strncmp(cmd->operands, "-- ", 3) == 0) {
			return; /* the words of another program */
		}
	}
	if (strcmp(c.begin, "=") == 0)
		c.begin = "";
	if (*c.begin == '-' && c.begin[len]) {
		open = find_row(cmd ? cmd->opts : NULL, (struct rfl_span){ c.begin, len });
		c.prefix = c.begin;
		c.prefix_len = (int)len + 1;
		c.begin += len + 1;
		if (open)
			put_choices(&c, open);
	} else if (*c.begin == '-') {
		put_options(&c, cmd ? cmd->opts : NULL);
		put_options(&c, rfl_opt_global_rows);
	} else if (open) {
		put_choices(&c, open);
	} else if (cmd) {
		put_operands(&c, cmd->operands);
	} else {
		put_commands(&c, group);
	}
}

static enum rfl_rc run_complete(struct rfl_cli *cli, const void *args, struct rfl_err *err)
{
	const struct rfl_opt_list *words = &((const struct completion_args *)args)->words;
	RFL_AUTO(buf) out = { .len = 0 };

	complete(cli, words->items, words->n, &out);
	return out.len ? rfl_cli_put(cli, &out, "candidates", err) : RFL_EFAILED;
}

const struct rfl_cmd rfl_cmd_complete = {
	.name = "complete",
	.summary = "print the words that may come next (for 'completion')",
	.operands = "-- [WORD...]",
	.args_size = sizeof(struct completion_args),
	.hidden = true,
	.run = run_complete,
};
