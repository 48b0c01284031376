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

static void page_is_exact(void **state)
{
	static const char expected[] =
		"Usage: roofline draw FILE... --peaks FILE [options]\n"
		"\n"
		"Draw a figure.\n"
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
		"  -h, --help                show this page\n"
		"  -q, --quiet               print only error messages\n"
		"  -v, --verbose             print more messages on standard error\n"
		"      --version             print the version\n"
		"\n"
		"Examples:\n"
		"  roofline draw a\n"
		"  roofline draw b\n";
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	rfl_cmd_help(f, &cmd);
	fclose(f);
	assert_string_equal(text, expected);
	free(text);
}

/* Whatever the rows say, no line is too wide for a window of 100 columns. */
static void pages_are_narrow(void **state)
{
	(void)state;
	for (size_t i = 0; rfl_cmd_at(i); i++) {
		char *text = NULL, *line;
		size_t len = 0;
		FILE *f = open_memstream(&text, &len);

		assert_non_null(f);
		rfl_cmd_help(f, rfl_cmd_at(i));
		fclose(f);
		for (line = strstr(text, "Options"); line && *line != '\0';) {
			size_t width = strcspn(line, "\n");

			if (strncmp(line, "Examples:", 9) == 0)
				break; /* command lines are shown as they are */
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
		cmocka_unit_test(pages_are_narrow),
		cmocka_unit_test(overview_has_every_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
