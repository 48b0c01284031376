/* arguments.h - the command line of the programs that create data: options and one directory. */
#ifndef RFL_TOOLS_ARGUMENTS_H
#define RFL_TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

/** An option "--name N" from `least` to `most`, or the flag "--name". A list ends with name NULL.
 */
struct tool_option {
	const char *name, *help;
	int64_t *number; /**< holds the default; NULL: a flag */
	int64_t least, most;
	bool *flag;
};

/** Parse the command line; print help or an error. @return the directory; NULL: exit with `code` */
const char *tool_arguments(int argc, char **argv, const char *program, const char *about,
			   const struct tool_option *options, int *code);

#endif
