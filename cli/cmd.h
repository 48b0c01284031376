/*
 * cmd.h - subcommands and their option rows. A command is a file in cli/cmd/ that defines a
 * `const struct rfl_cmd`, and one row in cli/cli.c; parsing, checks, defaults, --help and the
 * documentation tests come from the rows.
 */
#ifndef RFL_CLI_CMD_H
#define RFL_CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "report/table.h"

/** A list option: `--models a b`, `--models a,b` or repeated. */
struct rfl_opt_list {
	size_t n, cap;
	/** Owned by the parser, freed by rfl_opt_free(). NULL after the last; NULL when n is 0. */
	const char **items;
};

struct rfl_opt_int_list {
	size_t n, cap;
	int64_t *items;
};

/** The type of the member at `offset` in the command's argument struct. */
enum rfl_opt_kind {
	RFL_OPT_FLAG,   /**< bool; --name sets it, --no-name clears it when .negatable; def "on" */
	RFL_OPT_INT,    /**< int64_t within [min, max]; max below min: no upper bound */
	RFL_OPT_REAL,   /**< double within [rmin, rmax] */
	RFL_OPT_TEXT,   /**< const char *; "" is refused unless .may_be_empty */
	RFL_OPT_CHOICE, /**< int: index into .choices, plus .first */
	RFL_OPT_LIST,   /**< struct rfl_opt_list; checked against .choices when they are given */
	RFL_OPT_INT_LIST, /**< struct rfl_opt_int_list, each within [min, max] */
};

struct rfl_opt {
	/** Heading of the help page above this row and those after it; NULL: as the row before. */
	const char *group;
	char letter;      /**< short form, 0 for none */
	const char *name; /**< "batch-size" */
	const char *meta; /**< "N", "FILE"; NULL for a flag */
	enum rfl_opt_kind kind;
	size_t offset;
	const char *const *choices; /**< NULL-terminated */
	int first;                  /**< the value of the first choice */
	const char *def;   /**< as on a command line (a list: "16 32"); NULL: zero, NULL, empty */
	int64_t min, max;  /**< both 0: no bounds */
	double rmin, rmax; /**< both 0: no bounds */
	bool required;
	bool negatable;
	bool may_be_empty;
	bool whole;          /**< of a list: a comma is part of a value */
	bool hidden;         /**< not in --help */
	const char *against; /**< options that it contradicts, separated by blanks; NULL: none */
	/** Value of an option written without one. A value is given as "--name=value" or, in a
	 * command without operands, as "--name value". NULL: a value is required. */
	const char *bare;
	size_t given;     /**< offset of a bool, set when the user wrote the option; 0: none */
	const char *help; /**< one line, without a full stop; range and default are appended */
};

/** The row of an option that sets a member of the argument struct `type`:
 * RFL_OPT(struct run_args, TEXT, log_dir, .name = "log-dir", .meta = "DIR", .help = "..."). */
#define RFL_OPT(type, kind_, member, ...)                                              \
	{                                                                              \
		.kind = RFL_OPT_##kind_, .offset = offsetof(type, member), __VA_ARGS__ \
	}

/** The row of --format: a CHOICE in an int, which will hold an enum rfl_format. */
#define RFL_OPT_FORMAT                                                               \
	.letter = 'f', .name = "format", .meta = "FMT", .choices = rfl_format_names, \
	.def = "table", .help = "output format"

struct rfl_cli;
struct rfl_opt_globals;

struct rfl_cmd {
	const char *name;    /**< "complexity"; a nested command: "peaks measure" */
	const char *summary; /**< one line of the command list */
	/** "FILE.json..."; NULL: none. One word per operand: "[X]" is optional, "X..." may be
	 * repeated; the parser checks the number. They are stored in a struct rfl_opt_list at the
	 * beginning of the argument struct. */
	const char *operands;
	const char *description;    /**< paragraphs under the usage line; may be NULL */
	const char *example;        /**< one or more full command lines; may be NULL */
	const struct rfl_opt *opts; /**< ended by a row with name NULL; may be NULL */
	size_t args_size;           /**< of the command's argument struct, zeroed before parsing */
	bool hidden;
	bool holds_signals; /**< the command itself calls rfl_stop_catch() or rfl_stop_let() */
	/** @param args  the filled argument struct. RFL_EFAILED with an empty err: the result was
	 * printed and is "no" (exit 1, no message). */
	enum rfl_rc (*run)(struct rfl_cli *cli, const void *args, struct rfl_err *err);
};

/** The environment of a command; tests supply their own. */
struct rfl_cli {
	FILE *out;            /**< the result */
	FILE *err;            /**< messages and progress */
	bool terminal;        /**< out is one */
	bool progress;        /**< err is a terminal and -q was not given */
	int verbosity;        /**< -1 with -q, 0, 1 with -v */
	const char *self;     /**< path of the running program */
	const char *data_dir; /**< folder of fonts and other data files, relative to the program */
	const char *const *plugin_dirs; /**< NULL-terminated */
	int argc;                       /**< the whole command line, to be recorded */
	char *const *argv;
	int write_errno; /**< errno of the first failed write to `out`; 0: none, or unknown */
	struct {
		int64_t at_ns; /**< when the line was last written */
		size_t width;  /**< number of characters on the screen */
		/** Before every text, to say of which work it is a part. Borrowed; NULL: none. */
		const char *prefix;
	} line; /**< state of rfl_cli_progress() */
};

/** The whole program: parse, dispatch, report. @return the exit code */
int rfl_cli_main(struct rfl_cli *cli, int argc, char **argv);

/**
 * Parse the arguments of one command. Option names are not abbreviated; "--" ends the options; a
 * list option takes the words that follow it up to the next option, unless it was written
 * --name=value.
 * @param argv  as main() has it: argv[0] is the command's own name and is not read; the texts
 * of RFL_OPT_TEXT point into it
 * @param args     cmd->args_size zeroed bytes; release with rfl_opt_free() in any case
 * @param globals  the options of every command (opt/opt.h); NULL: not wanted. With --help or
 *                 --version nothing is required
 * @return RFL_OK; RFL_EUSAGE with "--dpi: 'abc' is not a number from 1 to 2400"
 */
enum rfl_rc rfl_opt_parse(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			  struct rfl_opt_globals *globals, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_opt_free(const struct rfl_cmd *cmd, void *args);

/** The help page of a command, made from its rows. */
void rfl_cmd_help(FILE *out, const struct rfl_cmd *cmd);

/** Whether a list has this value. */
bool rfl_opt_list_has(const struct rfl_opt_list *list, const char *text);

/** All commands, in the order of the help page; NULL after the last. */
const struct rfl_cmd *rfl_cmd_at(size_t i);

/** The command of exactly this name ("peaks measure"), or NULL. */
const struct rfl_cmd *rfl_cmd_find(const char *name);

/** Whether the command belongs to the group: "peaks measure" to "peaks". */
bool rfl_cmd_in_group(const struct rfl_cmd *cmd, const char *group);

/** Whether any command belongs to the group. */
bool rfl_cmd_is_group(const char *word);

/**
 * Print the text of a buffer. Control characters become '?'.
 *
 * A failed write is not a failure of the command: rfl_cli_main() notices it, reports it once, and
 * exits with 1.
 * @param what  names the text when the buffer has failed
 * @return RFL_OK; RFL_ENOMEM or RFL_EOVERFLOW when the buffer has failed: nothing is already
 * printed
 */
enum rfl_rc rfl_cli_put(struct rfl_cli *cli, struct rfl_buf *text, const char *what,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** The same for text in a format. CSV is printed unchanged, except on a terminal; JSON has
 * such characters escaped. */
enum rfl_rc rfl_cli_put_as(struct rfl_cli *cli, enum rfl_format format, struct rfl_buf *text,
			   const char *what, struct rfl_err *err) RFL_WARN_UNUSED;

/** Render a table, print it like rfl_cli_put_as() and free it.
 * @param take_table  NULL: RFL_ENOMEM */
enum rfl_rc rfl_cli_put_table(struct rfl_cli *cli, struct rfl_table *take_table,
			      enum rfl_format format, struct rfl_err *err) RFL_WARN_UNUSED;

/** Flush standard output; an error is kept in write_errno. */
void rfl_cli_flush(struct rfl_cli *cli);

/** printf to standard output, for people: control characters become '?'. */
void rfl_cli_printf(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

/** A progress line on stderr, rewritten in place, at most ten times a second, on a terminal only.
 * fmt NULL ends it. */
void rfl_cli_progress(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Print a message on stderr, in place of the progress line. From any thread. */
void rfl_cli_say(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Fail with RFL_EUSAGE and the nearest command, or where the commands are listed. */
enum rfl_rc rfl_cli_unknown_command(const char *name, struct rfl_err *err);

/** Exit code of a return code: 0, 1, 2 (usage), 3 (missing fact), 77 (not available here). */
int rfl_exit_code(enum rfl_rc rc);

#endif
