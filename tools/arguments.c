/* arguments.c - see arguments.h. */
#include "tools/arguments.h"

#include <getopt.h>
#include <stdio.h>

#include "base/num.h"

enum { MAX_OPTIONS = 8 };

static void print_help(const char *program, const char *about, const struct tool_option *o)
{
	printf("Usage: %s [OPTION]... DIR\n%s\n", program, about);
	for (; o->name; o++)
		if (o->number)
			printf("  --%s N: %s (%lld to %lld, default %lld)\n", o->name, o->help,
			       (long long)o->least, (long long)o->most, (long long)*o->number);
		else
			printf("  --%s: %s\n", o->name, o->help);
}

const char *tool_arguments(int argc, char **argv, const char *program, const char *about,
			   const struct tool_option *options, int *code)
{
	struct option rows[MAX_OPTIONS + 2] = { { "help", no_argument, NULL, 'h' } };
	int c, i = 0;

	for (const struct tool_option *o = options; o->name; o++)
		rows[o - options + 1] =
			(struct option){ o->name, o->number ? required_argument : no_argument, NULL,
					 'o' };
	*code = 2;
	while ((c = getopt_long(argc, argv, "h", rows, &i)) != -1) {
		const struct tool_option *o;

		if (c == 'h') {
			print_help(program, about, options);
			*code = 0;
		}
		if (c != 'o')
			return NULL;
		o = &options[i - 1]; /* after the row of --help */
		if (!o->number) {
			*o->flag = true;
		} else if (rfl_num_parse_int(optarg, o->name, o->number, NULL) != RFL_OK ||
			   *o->number < o->least || *o->number > o->most) {
			fprintf(stderr, "%s: --%s: '%s' is not a number from %lld to %lld\n",
				program, o->name, optarg, (long long)o->least, (long long)o->most);
			return NULL;
		}
	}
	if (optind + 1 == argc)
		return argv[optind];
	fprintf(stderr, "%s: name exactly one directory; run '%s --help' for help\n", program,
		program);
	return NULL;
}
