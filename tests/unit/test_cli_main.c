/* Dispatch, exit codes and streams of the whole program, called as a function. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "rfl_config.h"
#include "rfl_test.h"

struct output {
	char *out, *err;
	size_t nout, nerr;
};

/* Runs one line, split at blanks. */
static int call(const char *line, struct output *o)
{
	char copy[512];
	char *argv[32];
	static const char *const no_dirs[] = { NULL };
	struct rfl_cli cli = { .data_dir = "/nonexistent", .plugin_dirs = no_dirs };
	int argc = 0, code;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = copy; word;) {
		char *blank = strchr(word, ' ');

		if (blank)
			*blank = '\0';
		argv[argc++] = word;
		word = blank ? blank + 1 : NULL;
	}
	argv[argc] = NULL;
	*o = (struct output){ .out = NULL };
	cli.out = open_memstream(&o->out, &o->nout);
	cli.err = open_memstream(&o->err, &o->nerr);
	assert_non_null(cli.out);
	assert_non_null(cli.err);
	code = rfl_cli_main(&cli, argc, argv);
	fclose(cli.out);
	fclose(cli.err);
	return code;
}

static void output_fini(struct output *o)
{
	free(o->out);
	free(o->err);
}

/* Colours pass, other codes for a terminal do not. */
static void only_colors_reach_the_terminal(void **state)
{
	static const char given[] = "\033[38;5;32mblue\033[0m \033[2J\033]0;title\007 \033[31 m\n";
	static const char printed[] = "\033[38;5;32mblue\033[0m ?[2J?]0;title? ?[31 m\n";
	struct rfl_err err = RFL_ERR_INIT;
	struct output o = { .out = NULL };
	struct rfl_cli cli = { .terminal = true, .out = open_memstream(&o.out, &o.nout) };
	struct rfl_buf text;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, given);
	assert_non_null(cli.out);
	assert_ok(rfl_cli_put_colored(&cli, &text, "text", &err), &err);
	fclose(cli.out);
	assert_string_equal(o.out, printed);
	rfl_buf_fini(&text);
	output_fini(&o);
}

static void dispatches(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *out, *err; /* a part of it; NULL: empty */
	} cases[] = {
		{ "roofline version", 0, "roofline " RFL_VERSION "\n", NULL },
		{ "roofline --version", 0, "roofline " RFL_VERSION "\n", NULL },
		{ "roofline version --version", 0, "roofline " RFL_VERSION "\n", NULL },
		{ "roofline -q version", 0, "roofline " RFL_VERSION "\n", NULL },
		{ "roofline --help", 0, "\n  version ", NULL },
		{ "roofline help", 0, "\n  version ", NULL },
		{ "roofline help version", 0, "Usage: roofline version ", NULL },
		{ "roofline version -h", 0, "Usage: roofline version ", NULL },
		{ "roofline", 0, "  list all commands\n", NULL },
		{ "roofline -q", 0, "  list all commands\n", NULL },
		{ "roofline nonsense", 2, NULL,
		  "roofline: 'nonsense' is not a command; 'roofline --help' lists them\n" },
		{ "roofline vesrion", 2, NULL,
		  "roofline: 'vesrion' is not a command; did you mean version?\n" },
		{ "roofline help nonsense", 2, NULL,
		  "roofline help: 'nonsense' is not a command; 'roofline --help' lists them\n" },
		{ "roofline help vesrion", 2, NULL,
		  "roofline help: 'vesrion' is not a command; did you mean version?\n" },
		{ "roofline help peaks shwo", 2, NULL, "did you mean peaks show?\n" },
		{ "roofline help peaks", 0, "Usage: roofline peaks COMMAND", NULL },
		/* an escape sequence in a name does not reach the terminal */
		{ "roofline \x1b[31mred", 2, NULL, "'?[31mred' is not a command" },
		{ "roofline complexity --models \x1b[2Jx\r", 2, NULL, "no model '?[2Jx?'" },
		{ "roofline --nonsense", 2, NULL,
		  "roofline: --nonsense is not an option; run 'roofline --help' for a list\n" },
		{ "roofline version --format cvs", 2, NULL,
		  "roofline version: --format: 'cvs' is not valid; use one of table, json\n" },
		{ "roofline version x", 2, NULL,
		  "roofline version: 'x': version takes no operands; leave it out\n" },
		{ "roofline list modles", 2, NULL, "did you mean models?\n" },
		{ "roofline probe", 2, NULL, "roofline probe: ENGINE is missing; usage: " },
		{ "roofline completion fihs", 2, NULL,
		  "'fihs' is not a supported shell; did you mean fish?\n" },
	};

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		struct output o;
		int code = call(cases[i].line, &o);

		print_message("%s\n", cases[i].line);
		assert_int_equal(code, cases[i].code);
		if (cases[i].out)
			assert_non_null(strstr(o.out, cases[i].out));
		else
			assert_string_equal(o.out, "");
		if (cases[i].err)
			assert_non_null(strstr(o.err, cases[i].err));
		else
			assert_string_equal(o.err, "");
		output_fini(&o);
	}
}

static void codes_are_documented(void **state)
{
	(void)state;
	assert_int_equal(rfl_exit_code(RFL_OK), 0);
	assert_int_equal(rfl_exit_code(RFL_EFAILED), 1);
	assert_int_equal(rfl_exit_code(RFL_EINVAL), 1);
	assert_int_equal(rfl_exit_code(RFL_EFORMAT), 1);
	assert_int_equal(rfl_exit_code(RFL_EIO), 1);
	assert_int_equal(rfl_exit_code(RFL_ENOTFOUND), 1);
	assert_int_equal(rfl_exit_code(RFL_EUSAGE), 2);
	assert_int_equal(rfl_exit_code(RFL_EMISSING), 3);
	assert_int_equal(rfl_exit_code(RFL_EUNAVAILABLE), 77);
}

/* /dev/full takes everything into the buffer and nothing onto the disk. */
static void fails_on_a_full_disk(int argc, char **argv)
{
	struct rfl_cli cli = { .out = fopen("/dev/full", "w") };
	char *text = NULL;
	size_t len = 0;

	if (!cli.out)
		skip();
	cli.err = open_memstream(&text, &len);
	assert_non_null(cli.err);
	assert_int_equal(rfl_cli_main(&cli, argc, argv), 1);
	fclose(cli.out);
	fclose(cli.err);
	assert_string_equal(text, "roofline: standard output: No space left on device\n");
	free(text);
}

/* Whether the result fits the buffer or not, the reason is said, and said once. */
static void a_full_disk_is_a_failure(void **state)
{
	char *small[] = { (char[]){ "roofline" }, (char[]){ "version" }, NULL };
	char *large[] = { (char[]){ "roofline" }, (char[]){ "help" }, (char[]){ "--markdown" },
			  NULL };
	char *json[] = { (char[]){ "roofline" },
			 (char[]){ "complexity" },
			 (char[]){ "--by" },
			 (char[]){ "layer" },
			 (char[]){ "--format" },
			 (char[]){ "json" },
			 NULL };

	(void)state;
	fails_on_a_full_disk(2, small);
	fails_on_a_full_disk(3, large);
	fails_on_a_full_disk(6, json);
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == c;
	return n;
}

static void progress_is_rare_and_leaves_nothing(void **state)
{
	struct rfl_cli cli = { .progress = true };
	char *text = NULL;
	size_t len = 0;

	(void)state;
	cli.err = open_memstream(&text, &len);
	assert_non_null(cli.err);
	for (int i = 0; i < 1000; i++)
		rfl_cli_progress(&cli, "step %d of 1000, and so on", i);
	fflush(cli.err);
	assert_true(count(text, '\r') >= 1);
	assert_true(count(text, '\r') <= 10); /* a thousand calls within far less than a second */
	rfl_cli_progress(&cli, NULL);
	fflush(cli.err);
	assert_int_equal(text[len - 1], '\r'); /* the next message begins on an empty line */
	assert_int_equal(cli.line.width, 0);
	fclose(cli.err);
	free(text);
}

static void *say_much(void *cli)
{
	for (int i = 0; i < 300; i++)
		rfl_cli_say(cli, "message\n");
	return NULL;
}

/* A message never follows another thread's progress on the same line: there is at least a
 * carriage return between them. */
static void messages_from_threads_have_their_own_lines(void **state)
{
	struct rfl_cli cli = { .progress = true };
	char *text = NULL;
	size_t len = 0;
	pthread_t thread;

	(void)state;
	cli.err = open_memstream(&text, &len);
	assert_non_null(cli.err);
	assert_int_equal(pthread_create(&thread, NULL, say_much, &cli), 0);
	for (int i = 0; i < 300; i++) {
		rfl_cli_progress(&cli, "step %d", i);
		rfl_cli_progress(&cli, NULL); /* the next is drawn at once */
	}
	pthread_join(thread, NULL);
	fclose(cli.err);
	for (const char *at = text; (at = strstr(at, "message\n")); at++)
		assert_true(at == text || at[-1] == '\r' || at[-1] == '\n');
	free(text);
}

static void progress_is_for_terminals_only(void **state)
{
	struct rfl_cli cli = { .progress = false };
	char *text = NULL;
	size_t len = 0;

	(void)state;
	cli.err = open_memstream(&text, &len);
	assert_non_null(cli.err);
	rfl_cli_progress(&cli, "step %d", 1);
	rfl_cli_progress(&cli, NULL);
	fclose(cli.err);
	assert_int_equal(len, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_colors_reach_the_terminal),
		cmocka_unit_test(dispatches),
		cmocka_unit_test(codes_are_documented),
		cmocka_unit_test(a_full_disk_is_a_failure),
		cmocka_unit_test(progress_is_rare_and_leaves_nothing),
		cmocka_unit_test(messages_from_threads_have_their_own_lines),
		cmocka_unit_test(progress_is_for_terminals_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
