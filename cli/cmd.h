/*
 * cmd.h - subcommands and their option rows. A command is a file in cli/cmd/ that defines an
 * rfl_cmd, and a row in cli/cli.c. Parsing, checks, defaults, --help and the documentation tests
 * are all driven by the option rows.
 */
#ifndef RFL_CLI_CMD_H
#define RFL_CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "report/table.h"

/** Fail because of the command line. */
#define rfl_usage(err, ...) rfl_fail((err), RFL_EUSAGE, 0, __VA_ARGS__)

/** The values of a list option. */
struct rfl_opt_list {
	size_t n, cap;
	/** NULL-terminated; NULL if n is 0. Released by rfl_opt_free(). */
	const char **items;
};

struct rfl_opt_int_list {
	size_t n, cap;
	int64_t *items;
};

/** The type of the member at `offset` in the command's argument struct. */
enum rfl_opt_kind {
	RFL_OPT_FLAG,   /**< bool; set by --name, cleared by --no-name if .negatable; def is "on" */
	RFL_OPT_INT,    /**< int64_t within [min, max]; no upper bound if max is below min */
	RFL_OPT_REAL,   /**< double within [rmin, rmax] */
	RFL_OPT_TEXT,   /**< const char *; "" is rejected unless .may_be_empty */
	RFL_OPT_CHOICE, /**< int: index into .choices, plus .first */
	RFL_OPT_LIST,   /**< struct rfl_opt_list; checked against .choices unless that is NULL */
	RFL_OPT_INT_LIST, /**< struct rfl_opt_int_list, each within [min, max] */
};

struct rfl_opt {
	/** Heading above this row on the help page; NULL: none. */
	const char *group;
	char letter;      /**< letter of the short form; 0: none */
	const char *name; /**< "batch-size" */
	const char *meta; /**< "N", "FILE"; NULL for a flag */
	enum rfl_opt_kind kind;
	size_t offset;
	const char *const *choices; /**< NULL-terminated; for TEXT, CHOICE and LIST */
	int first;                  /**< the value of the first choice */
	/** As typed on the command line ("16 32"); NULL: zero, NULL or empty. If a list default
	 * begins with a newline, each line is a value. */
	const char *def;
	int64_t min, max;  /**< both 0: no bounds; for text, `max` is the length */
	double rmin, rmax; /**< both 0: no bounds */
	bool length; /**< REAL only: in points of 1/72 inch, or with the unit mm, cm, in or pt */
	bool required;
	bool negatable;
	bool may_be_empty;
	bool whole;  /**< for a list: a comma does not separate values */
	bool hidden; /**< omitted from --help */
	bool often;  /**< on the short help page of a command with many options */
	/** The value of a project that is the default (cli/project.h): "peaks"; NULL: none. */
	const char *project;
	bool found; /**< the project's file is the default only if it exists */
	/** The option has no default if one of these is used or, as "by=layer", has the value;
	 * separated by blanks. */
	const char *unless;
	bool main; /**< a word without an option is probably a value of this one, for messages */
	const char *against; /**< conflicting options, separated by blanks; NULL: none */
	/** The option has no effect, and is rejected, unless one of these is used or, as
	 * "format=json", has the value; separated by blanks. The message names the first. */
	const char *needs;
	/** Value of the option if none is given; NULL: a value is required. In a command with
	 * operands, a value must be given as "--name=value". */
	const char *bare;
	size_t given;     /**< offset of a bool that is set if the user wrote the option; 0: none */
	const char *help; /**< one line without a full stop; range and default are appended to it */
};

/** The row of an option that is stored in a member of the argument struct `type`:
 * RFL_OPT(struct run_args, TEXT, log_dir, .name = "log-dir", .meta = "DIR", .help = "..."). */
#define RFL_OPT(type, kind_, member, ...)                                              \
	{                                                                              \
		.kind = RFL_OPT_##kind_, .offset = offsetof(type, member), __VA_ARGS__ \
	}

/** The row of --format: a CHOICE stored in an int that holds an enum rfl_format. */
#define RFL_OPT_FORMAT                                                               \
	.letter = 'f', .name = "format", .meta = "FMT", .choices = rfl_format_names, \
	.def = "table", .often = true, .help = "output format"

/** The row of --output; its help follows. */
#define RFL_OPT_OUTPUT .letter = 'o', .name = "output", .meta = "FILE", .often = true

struct rfl_cli;
struct rfl_opt_globals;
struct json_t;

struct rfl_cmd {
	const char *name;    /**< "complexity"; a nested command: "peaks measure" */
	const char *summary; /**< the line in the list of commands */
	/** "FILE.json..."; NULL: none. One word for each operand: "[X]" is optional, "X..." may be
	 * repeated, and "[-- X...]" comes after the options. If it begins with "-- ", the first
	 * operand ends the options. The parser checks the number of operands and stores them in a
	 * struct rfl_opt_list at the beginning of the argument struct. */
	const char *operands;
	const char *description;    /**< paragraphs below the usage line; may be NULL */
	const char *example;        /**< one or more full command lines; may be NULL */
	const struct rfl_opt *opts; /**< terminated by a row with name NULL; may be NULL */
	size_t args_size;           /**< size of the argument struct; it is zeroed before parsing */
	bool hidden;
	bool holds_signals; /**< the command calls rfl_stop_catch() or rfl_stop_let() itself */
	/** @param args  the filled argument struct. @return RFL_EFAILED with an empty err if the
	 * printed result is negative: exit code 1, no message */
	enum rfl_rc (*run)(struct rfl_cli *cli, const void *args, struct rfl_err *err);
};

/** The context in which a command runs; tests supply their own. */
struct rfl_cli {
	FILE *out;                      /**< the result */
	FILE *err;                      /**< messages and progress */
	bool terminal;                  /**< whether `out` is a terminal */
	bool progress;                  /**< whether `err` is a terminal and -q was not given */
	int verbosity;                  /**< -1 with -q, 1 with -v, else 0 */
	const char *self;               /**< path of the running program */
	const char *data_dir;           /**< directory of fonts and other data files */
	const char *const *plugin_dirs; /**< NULL-terminated */
	const char *torch_dir;          /**< directory of PyTorch's libraries; NULL: none */
	int argc;                       /**< the complete command line, which is recorded */
	char *const *argv;
	struct rfl_arena *arena; /**< owns the texts and lists of the command, until it ends */
	int exit_status; /**< of a program that the command ran; 0: the command's result decides */
	int write_errno; /**< errno of the first failed write to `out`; 0: no failure, or unknown */
	struct {
		int64_t at_ns; /**< time of the last update */
		size_t width;  /**< number of characters on the screen */
		/** Prefix of every line, such as "[3/12] ". Borrowed; NULL: none. */
		const char *prefix;
	} line; /**< state of rfl_cli_progress() */
};

/** Run the command on the command line and report its failure. @return the exit code */
int rfl_cli_main(struct rfl_cli *cli, int argc, char **argv);

/**
 * Parse the arguments of one command. Option names cannot be abbreviated. "--" ends the options.
 * The values of a list option are all words up to the next option, unless it was written as
 * --name=value.
 * @param argv  as in main(): argv[0] is the name of the command and is ignored; RFL_OPT_TEXT values
 * point into the array's strings
 * @param args     cmd->args_size zeroed bytes; release with rfl_opt_free() in any case
 * @param globals  set to the values of the common options (opt/opt.h); may be NULL. With --help or
 * --version, no option is required
 * @return RFL_OK; RFL_EUSAGE with "--dpi: 'abc' is not a number from 1 to 2400"
 */
enum rfl_rc rfl_opt_parse(const struct rfl_cmd *cmd, int argc, char *const *argv, void *args,
			  struct rfl_opt_globals *globals, struct rfl_err *err) RFL_WARN_UNUSED;
void rfl_opt_free(const struct rfl_cmd *cmd, void *args);

/** Append the command line that parses to these arguments: "roofline run --arch resnet18". Options
 * that have their default, and lists of numbers, are omitted. */
void rfl_opt_write(const struct rfl_cmd *cmd, const void *args, struct rfl_buf *out);

/** Print the help page of a command: the short one, or with all options. */
void rfl_cmd_help(FILE *out, const struct rfl_cmd *cmd, bool all);

/** Whether the list contains this value. */
bool rfl_opt_list_has(const struct rfl_opt_list *list, const char *text);

/** The command at index i, in the order of the help page, then the hidden ones; NULL after the
 * last.
 */
const struct rfl_cmd *rfl_cmd_at(size_t i);

/** The command with exactly this name ("peaks measure"), or NULL. */
const struct rfl_cmd *rfl_cmd_find(const char *name);

/** Whether the command belongs to the group, as "peaks measure" belongs to "peaks". */
bool rfl_cmd_in_group(const struct rfl_cmd *cmd, const char *group);

/** Whether any command belongs to the group. */
bool rfl_cmd_is_group(const char *word);

/** The commands of a group without its name: "measure, show, check". */
const char *rfl_cmd_names(struct rfl_arena *arena, const char *group);

/**
 * Print the text in a buffer, with control characters replaced by '?'.
 *
 * A failed write does not make the command fail: rfl_cli_main() reports it once and returns 1.
 * @param what  name of the text, for the error message
 * @return RFL_OK; RFL_EOVERFLOW if the buffer has failed; nothing is printed then
 */
enum rfl_rc rfl_cli_put(struct rfl_cli *cli, struct rfl_buf *text, const char *what,
			struct rfl_err *err) RFL_WARN_UNUSED;

/** Print text in a format. Unlike rfl_cli_put(), this prints CSV and JSON unchanged, except on a
 * terminal. */
enum rfl_rc rfl_cli_put_as(struct rfl_cli *cli, enum rfl_format format, struct rfl_buf *text,
			   const char *what, struct rfl_err *err) RFL_WARN_UNUSED;

/** Print text that may contain colour codes such as "\033[1m"; other control characters become
 * '?'.
 */
enum rfl_rc rfl_cli_put_colored(struct rfl_cli *cli, const struct rfl_buf *text, const char *what,
				struct rfl_err *err) RFL_WARN_UNUSED;

/** Write text to a file, or print it like rfl_cli_put_as() if `path` is NULL. */
enum rfl_rc rfl_cli_deliver(struct rfl_cli *cli, const char *path, enum rfl_format format,
			    struct rfl_buf *text, const char *what,
			    struct rfl_err *err) RFL_WARN_UNUSED;

/** Print JSON, with a line break after it. */
enum rfl_rc rfl_cli_put_json(struct rfl_cli *cli, const struct json_t *value, const char *what,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/** Render a table, print it like rfl_cli_put_as() and free it. */
enum rfl_rc rfl_cli_put_table(struct rfl_cli *cli, struct rfl_table *take_table,
			      enum rfl_format format, struct rfl_err *err) RFL_WARN_UNUSED;

/** Flush standard output; store an error in write_errno. */
void rfl_cli_flush(struct rfl_cli *cli);

/** Print formatted text to standard output, with control characters replaced by '?'. */
void rfl_cli_printf(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Update the progress line on stderr in place, at most ten times a second. Does nothing unless
 * stderr is a terminal. fmt NULL removes the line. */
void rfl_cli_progress(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Remove the progress line and print a message on stderr. Can be called from any thread. */
void rfl_cli_say(struct rfl_cli *cli, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Attribute a failure to an option ("--as"). @return RFL_EUSAGE */
enum rfl_rc rfl_usage_of(const char *option, struct rfl_err *err);

/** Append " word" for each word, quoted for a shell. */
void rfl_cli_quote(const char *const *words, size_t n, struct rfl_buf *out);

/** Join a directory and a name with "/". Owned by cli->arena. */
const char *rfl_cli_path(struct rfl_cli *cli, const char *dir, const char *name);

/** The words of the command line, separated by blanks. Owned by cli->arena. */
const char *rfl_cli_line(struct rfl_cli *cli);

/** Fail with RFL_EUSAGE; the message suggests the nearest command, if any. */
enum rfl_rc rfl_cli_unknown_command(const char *name, struct rfl_err *err);

/** Print what to do next, from the files in the current directory and its project (cli/next.c). */
enum rfl_rc rfl_cli_next(struct rfl_cli *cli, struct rfl_err *err) RFL_WARN_UNUSED;

/** The exit code: 0, 1 (failure), 2 (usage), 3 (missing value) or 77 (not available). */
int rfl_exit_code(enum rfl_rc rc);

#endif
