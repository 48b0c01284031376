/* Help pages made from rows: aligned, wrapped, with ranges, choices and defaults. */
#include <stdlib.h>
#include <string.h>

#include "cli/opt/opt.h"
#include "rfl_test.h"

struct args {
	struct rfl_opt_list files;
	int64_t dpi;
	double rate;
	int format;
	bool quick, pretty;
	const char *peaks;
	struct rfl_opt_list names;
};

static const char *const formats[] = { "png", "svg", NULL };

#define AT(member) .offset = offsetof(struct args, member)

static const struct rfl_opt opts[] = {
	{ .name = "peaks",
	  .meta = "FILE",
	  .kind = RFL_OPT_TEXT,
	  AT(peaks),
	  .required = true,
	  .help = "ceilings" },
	{ .group = "Figure",
	  .letter = 'd',
	  .name = "dpi",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  AT(dpi),
	  .min = 1,
	  .max = 2400,
	  .def = "144",
	  .help = "pixels per inch" },
	{ .name = "rate",
	  .meta = "X",
	  .kind = RFL_OPT_REAL,
	  AT(rate),
	  .rmin = 0.5,
	  .rmax = 2,
	  .help = "how fast" },
	{ .name = "format",
	  .meta = "FMT",
	  .kind = RFL_OPT_CHOICE,
	  AT(format),
	  .choices = formats,
	  .def = "png",
	  .help = "of the figure" },
	{ .name = "names",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  AT(names),
	  .help = "a long explanation that does not fit on one line of the page and therefore "
		  "continues "
		  "on the next one" },
	{ .name = "a-name-that-is-very-long-indeed",
	  .kind = RFL_OPT_FLAG,
	  AT(quick),
	  .help = "quick" },
	{ .name = "pretty",
	  .kind = RFL_OPT_FLAG,
	  AT(pretty),
	  .negatable = true,
	  .def = "on",
	  .help = "with care" },
	{ .name = "secret", .kind = RFL_OPT_FLAG, AT(quick), .hidden = true, .help = "hidden" },
	{ .name = NULL },
};

static const struct rfl_cmd cmd = {
	.name = "draw",
	.summary = "draw a figure",
	.operands = "FILE...",
	.description = "First paragraph of some words.\n\nSecond paragraph.",
	.example = "roofline draw a\nroofline draw b",
	.opts = opts,
	.args_size = sizeof(struct args),
};

/* @param ret  the help page of a command; release with free() */
static void print_page(const struct rfl_cmd *c, bool all, char **ret)
{
	size_t len = 0;
	FILE *f = open_memstream(ret, &len);

	assert_non_null(f);
	rfl_cmd_help(f, c, all);
	fclose(f);
}

static void page_is_exact(void **state)
{
	static const char expected[] =
		"Draw a figure.\n"
		"\n"
		"Usage: roofline draw FILE... --peaks FILE [options]\n"
		"\n"
		"Examples:\n"
		"  roofline draw a\n"
		"  roofline draw b\n"
		"\n"
		"First paragraph of some words.\n"
		"\n"
		"Second paragraph.\n"
		"\n"
		"Options:\n"
		"      --peaks FILE          ceilings (required)\n"
		"\n"
		"Figure:\n"
		"  -d, --dpi N               pixels per inch (1 to 2400; default 144)\n"
		"      --rate X              how fast (0.5 to 2)\n"
		"      --format FMT          of the figure (png, svg; default png)\n"
		"      --names NAME...       a long explanation that does not fit on one line of "
		"the page and\n"
		"                            therefore continues on the next one\n"
		"      --a-name-that-is-very-long-indeed\n"
		"                            quick\n"
		"      --[no-]pretty         with care (on by default)\n"
		"\n"
		"Common options:\n"
		"  -h, --help [PAGE]         show the main options; all: everything (short, all)\n"
		"  -q, --quiet               print only results and error messages\n"
		"  -v, --verbose             print more messages on standard error\n"
		"      --version             print the version\n";
	char *text = NULL;

	(void)state;
	print_page(&cmd, true, &text);
	assert_string_equal(text, expected);
	free(text);
}

/* With many options, the short page has those that are used often, without headings. */
static void short_page_is_exact(void **state)
{
	static const struct rfl_opt more[] = {
		{ .group = "A", .name = "a", .often = true, .help = "first" },
		{ .name = "b", .help = "b" },
		{ .name = "c", .help = "c" },
		{ .name = "d", .help = "d" },
		{ .name = "e", .help = "e" },
		{ .name = "f", .meta = "X", .required = true, .kind = RFL_OPT_TEXT, .help = "f" },
		{ .name = "g", .hidden = true, .often = true, .help = "g" },
		{ .group = "B", .name = "h", .often = true, .help = "last" },
		{ .name = "i", .help = "i" },
		{ .name = "j", .help = "j" },
		{ .name = "k", .help = "k" },
		{ .name = "l", .help = "l" },
		{ .name = NULL },
	};
	static const struct rfl_cmd many = {
		.name = "draw all",
		.summary = "draw",
		.description = "Not on this page.",
		.opts = more,
	};
	char *text = NULL, *few = NULL;

	(void)state;
	print_page(&many, false, &text);
	print_page(&cmd, false, &few);
	assert_string_equal(text, "Draw.\n"
				  "\n"
				  "Usage: roofline draw all --f X [options]\n"
				  "\n"
				  "Options:\n"
				  "      --a                   first\n"
				  "      --f X                 f (required)\n"
				  "      --h                   last\n"
				  "\n"
				  "8 more options: roofline draw all --help all, or man "
				  "roofline-draw-all\n");
	assert_non_null(strstr(few, "\n\nFigure:\n"));
	assert_non_null(strstr(few, "\n\nMore: roofline draw --help all, or man roofline-draw\n"));
	free(text);
	free(few);
}

/* Whatever the rows say, no line is too wide for a window of 100 columns. */
static void pages_are_narrow(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		char *text = NULL;

		print_page(rfl_cmd_at(i), true, &text);
		for (char *line = strstr(text, "Options"); line && *line != '\0';) {
			size_t width = strcspn(line, "\n");

			if (width > 100)
				fail_msg("roofline %s --help: %.*s", rfl_cmd_at(i)->name,
					 (int)width, line);
			line += width + (line[width] == '\n');
		}
		free(text);
	}
}

static void overview_has_every_command(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	rfl_help_overview(f);
	fclose(f);
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		char line[128];

		snprintf(line, sizeof(line), "\n  %s ", rfl_cmd_at(i)->name);
		assert_int_equal(strstr(text, line) != NULL, !rfl_cmd_at(i)->hidden);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_is_exact),
		cmocka_unit_test(short_page_is_exact),
		cmocka_unit_test(pages_are_narrow),
		cmocka_unit_test(overview_has_every_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
