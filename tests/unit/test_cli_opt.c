/* Option rows: which arguments are options, values and operands, and messages for wrong ones. */
#include <math.h>
#include <string.h>

#include "cli/opt/opt.h"
#include "rfl_test.h"

struct args {
	struct rfl_opt_list files;
	bool pin, augment, shout;
	int64_t iters, level;
	double rate, dpi;
	const char *data;
	int format, colour, bare;
	struct rfl_opt_list models, kinds;
	struct rfl_opt_int_list sizes;
};

static const char *const formats[] = { "table", "csv", "json", NULL };
static const char *const kinds[] = { "conv", "linear", NULL };

#define AT(member) .offset = offsetof(struct args, member)

static const struct rfl_opt opts[] = {
	{ .letter = 'p', .name = "pin-memory", .kind = RFL_OPT_FLAG, AT(pin), .help = "pin" },
	{ .name = "augment", .kind = RFL_OPT_FLAG, AT(augment), .negatable = true, .def = "on" },
	{ .name = "shout", .kind = RFL_OPT_FLAG, AT(shout), .negatable = true },
	{ .letter = 'i',
	  .name = "iters",
	  .meta = "N",
	  .kind = RFL_OPT_INT,
	  AT(iters),
	  .min = 1,
	  .max = 1000,
	  .def = "100" },
	{ .name = "level", .meta = "N", .kind = RFL_OPT_INT, AT(level) },
	{ .name = "rate",
	  .meta = "X",
	  .kind = RFL_OPT_REAL,
	  AT(rate),
	  .rmin = 0.5,
	  .rmax = 2.5,
	  .def = "1.5" },
	{ .name = "dpi", .meta = "N", .kind = RFL_OPT_REAL, AT(dpi), .rmin = 1, .rmax = 2400 },
	{ .letter = 'd', .name = "data", .meta = "DIR", .kind = RFL_OPT_TEXT, AT(data) },
	{ .name = "format",
	  .meta = "FMT",
	  .kind = RFL_OPT_CHOICE,
	  AT(format),
	  .choices = formats,
	  .def = "csv" },
	{ .name = "colour", .meta = "C", .kind = RFL_OPT_CHOICE, AT(colour), .choices = formats },
	{ .name = "bare",
	  .meta = "[FMT]",
	  .kind = RFL_OPT_CHOICE,
	  AT(bare),
	  .choices = formats,
	  .def = "table",
	  .bare = "json" },
	{ .letter = 'm',
	  .name = "models",
	  .meta = "NAME",
	  .kind = RFL_OPT_LIST,
	  AT(models),
	  .def = "a b" },
	{ .name = "kinds", .meta = "K", .kind = RFL_OPT_LIST, AT(kinds), .choices = kinds },
	{ .name = "batch-sizes",
	  .meta = "N",
	  .kind = RFL_OPT_INT_LIST,
	  AT(sizes),
	  .min = 1,
	  .max = -1,
	  .def = "16, 32" },
	{ .name = "secret", .kind = RFL_OPT_FLAG, AT(shout), .hidden = true },
	{ .name = NULL },
};

static const struct rfl_cmd with_files = {
	.name = "test",
	.opts = opts,
	.operands = "FILE...",
	.args_size = sizeof(struct args),
};

static const struct rfl_cmd no_files = {
	.name = "test",
	.opts = opts,
	.args_size = sizeof(struct args),
};

/* Parses one line, split at blanks; '_' in a word stands for a blank. */
static enum rfl_rc parse(const struct rfl_cmd *cmd, const char *line, struct args *args,
			 struct rfl_opt_globals *globals, struct rfl_err *err)
{
	static char copy[1024]; /* RFL_OPT_TEXT points into it */
	char *argv[64] = { copy };
	int argc = 1;

	memset(args, 0, sizeof(*args));
	snprintf(copy, sizeof(copy), "test %s", line);
	for (char *c = copy; *c != '\0'; c++)
		if (*c == ' ') {
			*c = '\0';
			argv[argc++] = c + 1;
		}
	if (line[0] == '\0')
		argc = 1;
	for (int i = 0; i < argc; i++)
		for (char *c = argv[i]; *c != '\0'; c++)
			if (*c == '_')
				*c = ' ';
	return rfl_opt_parse(cmd, argc, argv, args, globals, err);
}

static void good(const struct rfl_cmd *cmd, const char *line, struct args *args)
{
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(parse(cmd, line, args, &globals, &err), &err);
}

static void bad(const struct rfl_cmd *cmd, const char *line, const char *message)
{
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	struct rfl_err err = RFL_ERR_INIT;
	struct args args;

	assert_int_equal(parse(cmd, line, &args, &globals, &err), RFL_EUSAGE);
	assert_string_equal(err.msg, message);
	rfl_opt_free(cmd, &args);
}

static void is_list(const struct rfl_opt_list *list, const char *expected)
{
	char joined[512] = "";

	for (size_t i = 0; i < list->n; i++)
		snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s",
			 i > 0 ? "|" : "", list->items[i]);
	assert_string_equal(joined, expected);
	if (list->n > 0)
		assert_null(list->items[list->n]); /* the end that functions look for */
	else
		assert_null(list->items);
}

static void defaults_are_as_written(void **state)
{
	struct args a;

	(void)state;
	good(&no_files, "", &a);
	assert_false(a.pin);
	assert_true(a.augment);
	assert_false(a.shout);
	assert_int_equal(a.iters, 100);
	assert_int_equal(a.level, 0);
	assert_close(a.rate, 1.5, 0);
	assert_close(a.dpi, 0, 0);
	assert_null(a.data);
	assert_int_equal(a.format, 1);
	assert_int_equal(a.colour, 0);
	is_list(&a.models, "a|b");
	is_list(&a.kinds, "");
	assert_int_equal(a.sizes.n, 2);
	assert_int_equal(a.sizes.items[0], 16);
	assert_int_equal(a.sizes.items[1], 32);
	rfl_opt_free(&no_files, &a);
}

static void takes_every_spelling(void **state)
{
	struct args a;

	(void)state;
	good(&no_files, "-p --no-augment --iters 7 --level -3 --rate=2.5 --data=x --format json",
	     &a);
	assert_true(a.pin);
	assert_false(a.augment);
	assert_int_equal(a.iters, 7);
	assert_int_equal(a.level, -3);
	assert_close(a.rate, 2.5, 0);
	assert_string_equal(a.data, "x");
	assert_int_equal(a.format, 2);
	rfl_opt_free(&no_files, &a);

	good(&no_files, "-pi9 -d -", &a); /* joined letters; "-" is a value */
	assert_true(a.pin);
	assert_int_equal(a.iters, 9);
	assert_string_equal(a.data, "-");
	rfl_opt_free(&no_files, &a);

	good(&no_files, "--iters 7 --iters 8 --shout --no-shout", &a); /* the last one counts */
	assert_int_equal(a.iters, 8);
	assert_false(a.shout);
	rfl_opt_free(&no_files, &a);
}

/* What is one option has one member, whichever of its names the command lists; never an
 * abbreviation of them. */
static void takes_the_names_of_other_commands(void **state)
{
	struct args a;

	(void)state;
	good(&no_files, "--arch resnet50 --model vgg16 --models=a,b --batch-size 4", &a);
	is_list(&a.models, "resnet50|vgg16|a|b");
	assert_int_equal(a.sizes.n, 1);
	assert_int_equal(a.sizes.items[0], 4);
	rfl_opt_free(&no_files, &a);
	bad(&no_files, "--batch-si 4", "--batch-si is not an option; did you mean --batch-sizes?");
	bad(&no_files, "--batch-size", "--batch-sizes needs a value; use --batch-sizes N");
	bad(&no_files, "--batch-size x", "--batch-sizes: 'x' is not a number of at least 1");
	/* one that only other commands have is not taken for a mistake of spelling */
	bad(&no_files, "--net x.json",
	    "--net is an option of 'roofline complexity', not of test; leave it out");
	bad(&no_files, "--peaks=x",
	    "--peaks is an option of 'roofline complexity', not of test; leave it out");
}

/* An option with an optional value. If the command takes operands, the value needs an equals sign.
 */
static void some_options_may_stand_alone(void **state)
{
	static const struct {
		const struct rfl_cmd *cmd;
		const char *line;
		int value;
		size_t files;
	} cases[] = {
		{ &no_files, "", 0, 0 },
		{ &no_files, "--bare", 2, 0 },
		{ &no_files, "--bare csv", 1, 0 },
		{ &no_files, "--bare=csv", 1, 0 },
		{ &no_files, "--bare --iters 7", 2, 0 },
		{ &no_files, "--bare -i7", 2, 0 },
		{ &no_files, "--bare csv --bare", 2, 0 },
		{ &with_files, "--bare csv", 2, 1 },
		{ &with_files, "--bare=csv csv", 1, 1 },
	};
	struct args a;

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		good(cases[i].cmd, cases[i].line, &a);
		assert_int_equal(a.bare, cases[i].value);
		assert_int_equal(a.files.n, cases[i].files);
		rfl_opt_free(cases[i].cmd, &a);
	}
	bad(&no_files, "--bare cvs", "--bare: 'cvs' is not valid; did you mean csv?");
	bad(&no_files, "--bare xsv", "--bare: 'xsv' is not valid; use one of table, csv, json");
	bad(&no_files, "--bar", "--bar is not an option; did you mean --bare?");
}

static void lists_have_three_spellings(void **state)
{
	static const char *const lines[] = {
		"--models a b c --batch-sizes 1 2 3",
		"--models a,b,c --batch-sizes 1,2,3",
		"--models a --models b --batch-sizes 1 -m c --batch-sizes 2 --batch-sizes=3",
		"--batch-sizes 1,2 3 --models=a,b --models c",
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(lines); i++) {
		struct args a;

		good(&no_files, lines[i], &a);
		is_list(&a.models, "a|b|c");
		assert_int_equal(a.sizes.n, 3);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(a.sizes.items[k], k + 1);
		rfl_opt_free(&no_files, &a);
	}
}

static void operands_are_told_from_values(void **state)
{
	struct args a;

	(void)state;
	good(&with_files, "x.json --pin-memory y,z.json", &a);
	is_list(&a.files, "x.json|y,z.json"); /* a comma belongs to the name of a file */
	is_list(&a.models, "a|b");
	rfl_opt_free(&with_files, &a);

	good(&with_files, "x --models m n --iters 3 y", &a);
	is_list(&a.files, "x|y");
	is_list(&a.models, "m|n");
	rfl_opt_free(&with_files, &a);

	good(&with_files, "--models=m x", &a); /* an equals sign closes the list */
	is_list(&a.files, "x");
	is_list(&a.models, "m");
	rfl_opt_free(&with_files, &a);

	good(&with_files, "--models m -- --iters -x", &a);
	is_list(&a.files, "--iters|-x");
	is_list(&a.models, "m");
	rfl_opt_free(&with_files, &a);
}

/* An empty word is what "$UNSET" leaves; as the name of a file it would mean this directory. */
static void empty_words_are_refused_where_they_name_something(void **state)
{
	static const struct rfl_opt title[] = {
		{ .name = "title",
		  .meta = "TEXT",
		  .kind = RFL_OPT_TEXT,
		  .may_be_empty = true,
		  AT(data) },
		{ .name = NULL },
	};
	static const struct rfl_cmd cmd = { .name = "test",
					    .opts = title,
					    .args_size = sizeof(struct args) };
	char *words[] = { (char[]){ "test" }, (char[]){ "x.json" }, (char[]){ "" }, NULL };
	struct rfl_err err = RFL_ERR_INIT;
	struct args a = { .pin = false };

	(void)state;
	assert_int_equal(rfl_opt_parse(&with_files, 3, words, &a, NULL, &err), RFL_EUSAGE);
	assert_string_equal(err.msg, "empty operand; test accepts FILE...");
	rfl_opt_free(&with_files, &a);

	good(&cmd, "--title=", &a);
	assert_string_equal(a.data, "");
	rfl_opt_free(&cmd, &a);
}

static void says_what_is_wrong_with_a_value(void **state)
{
	(void)state;
	bad(&no_files, "--dpi abc", "--dpi: 'abc' is not a number from 1 to 2400");
	bad(&no_files, "--dpi 0.5", "--dpi: '0.5' is not a number from 1 to 2400");
	bad(&no_files, "--dpi nan", "--dpi: 'nan' is not a number from 1 to 2400");
	bad(&no_files, "--dpi=", "--dpi: '' is not a number from 1 to 2400");
	bad(&no_files, "--rate 2.51", "--rate: '2.51' is not a number from 0.5 to 2.5");
	bad(&no_files, "--iters 0", "--iters: '0' is not a number from 1 to 1000");
	bad(&no_files, "--iters 1001", "--iters: '1001' is not a number from 1 to 1000");
	bad(&no_files, "--iters 1.5", "--iters: '1.5' is not a whole number from 1 to 1000");
	bad(&no_files, "--iters 10x", "--iters: '10x' is not a number from 1 to 1000");
	bad(&no_files, "--level 9223372036854775808",
	    "--level: '9223372036854775808' is not a number");
	bad(&no_files, "--level x", "--level: 'x' is not a number");
	bad(&no_files, "--batch-sizes 16 0", "--batch-sizes: '0' is not a number of at least 1");
	bad(&no_files, "--batch-sizes 16,,32",
	    "--batch-sizes: '16,,32' has an empty value; remove a comma");
	bad(&no_files, "--models a,", "--models: 'a,' has an empty value; remove a comma");
	bad(&no_files, "--data=", "--data: empty value; give one, or leave out the option");
	bad(&no_files, "--format tabel", "--format: 'tabel' is not valid; did you mean table?");
	bad(&no_files, "--format x", "--format: 'x' is not valid; use one of table, csv, json");
	bad(&no_files, "--kinds conv linaer",
	    "--kinds: 'linaer' is not valid; did you mean linear?");
}

static void says_what_is_wrong_with_an_option(void **state)
{
	(void)state;
	bad(&no_files, "--batchsize 4",
	    "--batchsize is not an option; did you mean --batch-sizes?");
	bad(&no_files, "--iter 4", "--iter is not an option; did you mean --iters?");
	bad(&no_files, "--iter=4", "--iter is not an option; did you mean --iters?");
	bad(&no_files, "--no-aug", "--no-aug is not an option; did you mean --no-augment?");
	bad(&no_files, "--no-pin-memory",
	    "--no-pin-memory is not an option; did you mean --pin-memory?");
	bad(&no_files, "--secre",
	    "--secre is not an option; run 'roofline test --help all' for a list");
	bad(&no_files, "--mod", "--mod is not an option; did you mean --models?");
	bad(&no_files, "--pin=yes", "--pin is not an option; did you mean --pin-memory?");
	bad(&no_files, "--no-aug=yes", "--no-aug is not an option; did you mean --no-augment?");
	bad(&no_files, "-\xc3\xa9",
	    "-\xc3\xa9 is not an option; leave it out"); /* half a letter is none */
	bad(&no_files, "--zzzzzz",
	    "--zzzzzz is not an option; run 'roofline test --help all' for a list");
	bad(&no_files, "-z", "-z is not an option; leave it out");
	bad(&no_files, "-pz", "-z is not an option; leave it out");
	bad(&no_files, "-format", "-f is not an option; did you mean --format?");
	bad(&no_files, "--iters", "--iters needs a value; use --iters N");
	bad(&no_files, "-i", "--iters needs a value; use --iters N");
	bad(&no_files, "--data --pin-memory", "--data needs a value; use --data DIR");
	bad(&no_files, "--models", "--models needs a value; use --models NAME");
	bad(&no_files, "--pin-memory=yes", "--pin-memory takes no value; leave it out");
	bad(&no_files, "--no-augment=yes", "--no-augment takes no value; leave it out");
	bad(&no_files, "--quiet=1", "--quiet takes no value; leave it out");
}

static void counts_operands(void **state)
{
	static const struct rfl_cmd two = { .name = "peaks set",
					    .operands = "FILE KEY=VALUE...",
					    .args_size = sizeof(struct args) };
	static const struct rfl_cmd some = { .name = "show",
					     .operands = "A [B...]",
					     .args_size = sizeof(struct args) };
	static const struct rfl_cmd maybe = { .name = "help",
					      .operands = "[COMMAND]",
					      .args_size = sizeof(struct args) };
	struct args a;

	(void)state;
	bad(&no_files, "x", "'x': test takes no operands; leave it out");
	bad(&no_files, "--iters 3 x", "'x': test takes no operands; leave it out");
	bad(&with_files, "", "FILE... is missing; usage: roofline test FILE...");
	bad(&two, "f", "an operand is missing; usage: roofline peaks set FILE KEY=VALUE...");
	bad(&maybe, "a b", "unexpected operand 'b': help accepts only [COMMAND]");
	good(&two, "f a=1 b=2", &a);
	is_list(&a.files, "f|a=1|b=2");
	rfl_opt_free(&two, &a);
	good(&maybe, "", &a);
	is_list(&a.files, "");
	rfl_opt_free(&maybe, &a);
	bad(&some, "", "A [B...] is missing; usage: roofline show A [B...]");
	good(&some, "a b c d", &a);
	is_list(&a.files, "a|b|c|d");
	rfl_opt_free(&some, &a);
}

static void requires_what_is_required(void **state)
{
	static const struct rfl_opt rows[] = {
		{ .name = "peaks",
		  .meta = "FILE",
		  .kind = RFL_OPT_TEXT,
		  AT(data),
		  .required = true,
		  .help = "file with the ceilings" },
		{ .name = NULL },
	};
	static const struct rfl_cmd cmd = { .name = "points",
					    .opts = rows,
					    .args_size = sizeof(struct args) };
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	struct rfl_err err = RFL_ERR_INIT;
	struct args a;

	(void)state;
	bad(&cmd, "", "--peaks FILE is required: file with the ceilings");
	good(&cmd, "--peaks p.json", &a);
	assert_string_equal(a.data, "p.json");
	assert_ok(parse(&cmd, "--help", &a, &globals, &err), &err); /* help asks for nothing */
	assert_int_equal(globals.help, RFL_HELP_SHORT);
	assert_ok(parse(&cmd, "--help all", &a, &globals, &err), &err);
	assert_int_equal(globals.help, RFL_HELP_ALL);
}

static void options_without_effect_are_refused(void **state)
{
	static const struct rfl_opt rows[] = {
		{ .name = "train", .kind = RFL_OPT_FLAG, AT(pin), .negatable = true },
		{ .name = "format",
		  .meta = "FMT",
		  .kind = RFL_OPT_CHOICE,
		  AT(format),
		  .choices = formats,
		  .def = "csv" },
		{ .name = "rate",
		  .meta = "X",
		  .kind = RFL_OPT_REAL,
		  AT(rate),
		  .needs = "train format=json" },
		{ .name = "level",
		  .meta = "N",
		  .kind = RFL_OPT_INT,
		  AT(level),
		  .needs = "format=csv" },
		{ .name = NULL },
	};
	static const struct rfl_cmd cmd = { .name = "test",
					    .opts = rows,
					    .args_size = sizeof(struct args) };
	struct args a;

	(void)state;
	bad(&cmd, "--rate 1", "--rate has no effect without --train; add it, or leave out --rate");
	bad(&cmd, "--rate 1 --no-train",
	    "--rate has no effect without --train; add it, or leave out --rate");
	bad(&cmd, "--level 1 --format table",
	    "--level has no effect without --format=csv; add it, or leave out --level");
	good(&cmd, "--rate 1 --train", &a);
	good(&cmd, "--rate 1 --format json", &a);
	good(&cmd, "--level 1", &a); /* a default counts as given */
}

/* A word that is not an option in a command without operands. */
static void names_the_option_that_a_word_is_for(void **state)
{
	static const struct rfl_opt rows[] = {
		{ .name = "models",
		  .meta = "NAME",
		  .kind = RFL_OPT_LIST,
		  AT(models),
		  .main = true },
		{ .name = "fit", .meta = "DEVICE", .kind = RFL_OPT_TEXT, AT(data) },
		{ .name = "kind",
		  .meta = "K",
		  .kind = RFL_OPT_CHOICE,
		  AT(colour),
		  .choices = kinds },
		{ .name = NULL },
	};
	static const struct rfl_cmd cmd = { .name = "test",
					    .opts = rows,
					    .args_size = sizeof(struct args) };

	(void)state;
	bad(&cmd, "resnet50", "'resnet50': test takes no operands; use --models resnet50");
	bad(&cmd, "linear", "'linear': test takes no operands; use --kind linear");
	bad(&cmd, "--fit NVIDIA L4",
	    "'L4': --fit takes one word; quote it, as in --fit 'NVIDIA L4'");
	bad(&cmd, "--fit=NVIDIA L4", "'L4': test takes no operands; use --models L4");
}

static void every_command_takes_global_options(void **state)
{
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	struct rfl_err err = RFL_ERR_INIT;
	struct args a;

	(void)state;
	assert_ok(parse(&no_files, "-q --iters 3 -v", &a, &globals, &err), &err);
	assert_true(globals.quiet);
	assert_true(globals.verbose);
	assert_int_equal(globals.help, RFL_HELP_NONE);
	assert_int_equal(a.iters, 3);
	rfl_opt_free(&no_files, &a);
}

static void front_options_stop_at_the_command(void **state)
{
	char *argv[] = { (char[]){ "roofline" }, (char[]){ "-q" }, (char[]){ "run" },
			 (char[]){ "--help" }, NULL };
	char *page[] = { (char[]){ "roofline" }, (char[]){ "--help" }, (char[]){ "run" }, NULL };
	char *wrong[] = { (char[]){ "roofline" }, (char[]){ "--hlep" }, NULL };
	struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
	struct rfl_err err = RFL_ERR_INIT;
	int next = 0;

	(void)state;
	assert_ok(rfl_opt_parse_front(4, argv, &globals, &next, &err), &err);
	assert_int_equal(next, 2);
	assert_true(globals.quiet);
	assert_int_equal(globals.help, RFL_HELP_NONE);
	assert_ok(rfl_opt_parse_front(3, page, &globals, &next, &err), &err);
	assert_int_equal(next, 2); /* a command is not a page */
	assert_int_equal(globals.help, RFL_HELP_SHORT);
	assert_int_equal(rfl_opt_parse_front(2, wrong, &globals, &next, &err), RFL_EUSAGE);
	assert_string_equal(err.msg, "--hlep is not an option; did you mean --help?");
}

static void a_list_has_an_end(void **state)
{
	static char text[3 * 5000];
	char *argv[] = { (char[]){ "test" }, (char[]){ "--models" }, text, NULL };
	struct rfl_err err = RFL_ERR_INIT;
	struct args a = { .pin = false };

	(void)state;
	for (size_t i = 0; i < 4999; i++)
		memcpy(text + 2 * i, "x,", 2);
	text[2 * 4999 - 1] = '\0';
	assert_int_equal(rfl_opt_parse(&no_files, 3, argv, &a, NULL, &err), RFL_EUSAGE);
	assert_says(&err, "more than 4096 values");
	rfl_opt_free(&no_files, &a);
}

/* Any arguments are either accepted with every value in bounds, or there is a message. */
static void survives_any_words(void **state)
{
	static const char *const words[] = {
		"--models",   "--models=a,b", "-m",      "a,b,",     "--",
		"-",          "--iters",      "12",      "-5",       "--iters=12",
		"--no-shout", "--no-",        "-pi3",    "-",        "--batch-",
		"16,32",      "--rate",       "1e300",   "--format", "json",
		"--=",        "-p",           "--help",  "x",        "--data",
		"",           "---",          "--kinds", "conv",     "-qv",
	};
	uint32_t random = 1;
	size_t taken = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char *argv[8] = { (char[]){ "test" } };
		struct rfl_opt_globals globals = { .help = RFL_HELP_NONE };
		struct rfl_err err = RFL_ERR_INIT;
		struct args a = { .pin = false };
		const struct rfl_cmd *cmd = round % 2 ? &with_files : &no_files;
		int argc = 1 + round % 7;

		for (int i = 1; i < argc; i++) {
			random = random * 1664525u + 1013904223u;
			argv[i] = (char *)words[(random >> 8) % RFL_ARRAY_LEN(words)];
		}
		if (rfl_opt_parse(cmd, argc, argv, &a, &globals, &err) == RFL_OK) {
			taken++;
			assert_string_equal(err.msg, "");
			assert_true(globals.help != RFL_HELP_NONE || (a.iters >= 1 && a.iters <= 1000));
			assert_true(globals.help != RFL_HELP_NONE || (a.rate >= 0.5 && a.rate <= 2.5));
			for (size_t i = 0; i < a.sizes.n; i++)
				assert_true(a.sizes.items[i] >= 1);
		} else {
			assert_int_equal(err.rc, RFL_EUSAGE);
			assert_string_not_equal(err.msg, "");
		}
		rfl_opt_free(cmd, &a);
	}
	assert_true(taken > 1000); /* and it was not all nonsense */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_as_written),
		cmocka_unit_test(takes_every_spelling),
		cmocka_unit_test(takes_the_names_of_other_commands),
		cmocka_unit_test(some_options_may_stand_alone),
		cmocka_unit_test(lists_have_three_spellings),
		cmocka_unit_test(operands_are_told_from_values),
		cmocka_unit_test(empty_words_are_refused_where_they_name_something),
		cmocka_unit_test(says_what_is_wrong_with_a_value),
		cmocka_unit_test(says_what_is_wrong_with_an_option),
		cmocka_unit_test(counts_operands),
		cmocka_unit_test(requires_what_is_required),
		cmocka_unit_test(options_without_effect_are_refused),
		cmocka_unit_test(names_the_option_that_a_word_is_for),
		cmocka_unit_test(every_command_takes_global_options),
		cmocka_unit_test(front_options_stop_at_the_command),
		cmocka_unit_test(a_list_has_an_end),
		cmocka_unit_test(survives_any_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
