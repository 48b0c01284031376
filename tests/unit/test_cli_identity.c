/*
 * What each option of run and train identifies: rows of runs that differ in one option differ in
 * what runner/run/facts.inc says that it identifies, and in nothing else; and the command of a row
 * repeats its run. With the engine that computes nothing. A new option is tested without a change
 * here, unless its value is a text.
 */
#include "tests/unit/rfl_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/num.h"
#include "cli/cmd/run_config.h"
#include "runner/run/facts.h"

#define WORDS_MOST 64
#define RECORD     3073 /* bytes of an image of CIFAR-10 */
#define HASHED     64   /* a bit besides those of enum rfl_identity: another config_hash */

static const struct {
	size_t offset;
	unsigned identity;
} table[] = {
#define FACT(kind, member, identity, ...) \
	{ offsetof(struct rfl_run_args, config.member), (identity) },
#define RAW(kind, member, identity, ...) { offsetof(struct rfl_run_args, member), (identity) },
#define TRAIN(kind, key, member, identity, column) \
	{ offsetof(struct rfl_run_args, config.member), (identity) },
#include "runner/run/facts.inc"
};

/* Values of texts; "@x" is in the temporary directory. */
static const struct {
	const char *name, *values[2];
} texts[] = {
	{ "arch", { "resnet34", "@own.json" } },
	{ "engine", { NULL } }, /* there is one */
	{ "data", { "@b" } },
	{ "label", { "mine" } },
	{ "env", { "desk" } },
	{ "until", { "stdrel=90%" } },
	{ "world", { "2" } },
	{ "log-dir", { "@other" } },
	{ "checkpoint-dir", { "@checkpoints" } },
	{ "output-dir", { "@out" } },
};

/* Command lines in which each option has an effect in at least one. */
#define COMMON " --engine fake --threads 1 --log-dir @logs"
#define IMAGES "roofline run --arch cifar_cnn --data @a --workers 1 --batch-size 4"
#define RANDOM "roofline run --synthetic --batch-size 4"
#define STEPS  " --warmup-iters 3 --iters 4"
static const char *const bases[][5] = {
	{ IMAGES STEPS " --backend cuda" COMMON,
	  RANDOM STEPS " --arch resnet18 --image-size 32 --optimizer adam --backend cpu" COMMON,
	  RANDOM STEPS " --arch tiny_lm --context-length 16 --backend cuda" COMMON,
	  RANDOM STEPS " --arch resnet18 --image-size 32 --backend cpu --world 2" COMMON,
	  RANDOM STEPS " --arch @lm.json --mode decode --backend cpu" COMMON },
	{ "roofline train --data @a --workers 1 --epochs 2 --batch-size 4 --lr-step 1 --devices "
	  "cpu" COMMON,
	  "roofline train --data @a --workers 1 --epochs 2 --batch-size 4 --optimizer sgd "
	  "--devices cpu "
	  "--arch @net.json" COMMON,
	  "roofline train --data @a --workers 1 --epochs 2 --batch-size 4 --devices cuda" COMMON },
};

/* A command line of words. */
struct line {
	char text[8192], *end;
	char *argv[WORDS_MOST + 1];
	int argc;
};

static void add(void *state, struct line *l, const char *word, size_t len)
{
	const bool ours = *word == '@';
	const int n = snprintf(l->end, (size_t)(l->text + sizeof(l->text) - l->end), "%s%s%.*s",
			       ours ? (const char *)state : "", ours ? "/" : "", (int)len - ours,
			       word + ours);

	assert_true(l->argc < WORDS_MOST && l->end + n + 1 < l->text + sizeof(l->text));
	l->argv[l->argc++] = l->end;
	l->end += n + 1;
}

/* Split a command; "@x" is in the temporary directory. With `name`, this option has a value; NULL:
 * it is a flag. */
static void split(void *state, const char *command, const char *name, const char *value,
		  struct line *ret)
{
	char option[64];
	size_t len;

	ret->argc = 0;
	ret->end = ret->text;
	(void)snprintf(option, sizeof(option), "--%s", name ? name : "");
	for (const char *at = command; *at; at += len + (at[len] == ' ')) {
		len = strcspn(at, " ");
		if (!name || strlen(option) != len || strncmp(at, option, len) != 0) {
			add(state, ret, at, len);
			continue;
		}
		at += len + 1; /* and the value */
		len = strcspn(at, " ");
	}
	if (name)
		add(state, ret, option, strlen(option));
	if (name && value)
		add(state, ret, value, strlen(value));
}

static const char *value_of(const struct line *l, const char *option)
{
	for (int i = 0; i + 1 < l->argc; i++)
		if (strcmp(l->argv[i], option) == 0)
			return l->argv[i + 1];
	return NULL;
}

static char *printed; /* by the last command */

/* Execute a command. @return its ledger, of which the last row is that of the run; NULL: refused */
static struct rfl_ledger *execute(void *state, struct line *l)
{
	static const char *const dirs[] = { RFL_TEST_BUILD "/tests/engines", NULL };
	static int runs;
	char path[1024];
	size_t n = 0;
	struct rfl_cli cli = { .self = RFL_TEST_BUILD "/bin/roofline", .plugin_dirs = dirs };
	struct rfl_ledger *ledger = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int code;

	(void)snprintf(path, sizeof(path), "%s/meet%d", (const char *)state, runs++);
	(void)mkdir(path, 0777);
	setenv("RFL_FAKE_WORLD", path, 1);
	free(printed);
	cli.out = cli.err = open_memstream(&printed, &n);
	cli.argc = l->argc;
	cli.argv = l->argv;
	code = rfl_cli_main(&cli, l->argc, l->argv);
	fclose(cli.out);
	(void)snprintf(path, sizeof(path), "%s/metrics.csv", value_of(l, "--log-dir"));
	if (code == 0)
		assert_ok(rfl_ledger_load(path, &ledger, &err), &err);
	return ledger;
}

/* The last row that is not of a single rank. */
static const struct rfl_ledger_row *last(const struct rfl_ledger *l)
{
	size_t i = l->nrows;

	while (i > 0 && l->rows[i - 1].rank >= 0 && l->rows[i - 1].world_size > 1)
		i--;
	assert_true(i > 0);
	return &l->rows[i - 1];
}

/* What differs between two runs: bits of enum rfl_identity, and HASHED. */
static unsigned apart(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b)
{
	unsigned ret = 0;

	for (size_t i = 0; i < rfl_nfacts; i++)
		if (!rfl_fact_same(&rfl_facts[i], a, b))
			ret |= rfl_facts[i].identity;
	if (strcmp(a->config_hash, b->config_hash) != 0)
		ret |= SPEED;
	assert_int_equal(rfl_facts_repeats(a, b), !(ret & (a->epochs > 0 ? BOTH : SPEED)));
	return ret | (strcmp(a->config_hash, b->config_hash) != 0 ? HASHED : 0U);
}

/* The command in the ledger repeats the run. */
static void assert_repeats(void *state, const char *log, const struct rfl_ledger_row *row)
{
	struct rfl_ledger *ledger;
	struct line l;

	split(state, row->command, "log-dir", log, &l);
	ledger = execute(state, &l);

	if (!ledger || apart(row, last(ledger)) != 0)
		fail_msg("%s: %s", row->command, ledger ? last(ledger)->command : printed);
	assert_true(rfl_facts_repeats(row, last(ledger)));
	assert_string_equal(row->command, last(ledger)->command);
	rfl_ledger_free(ledger);
}

/* The i-th value of an option other than `now`. "": a flag. NULL: none is left */
static const char *value_at(const struct rfl_opt *o, const char *now, int i, char out[64])
{
	const char *text = now ? now : o->def ? o->def : "0";
	double x = 0;

	if (o->kind == RFL_OPT_FLAG) /* a training run that is complete adds no row */
		return i == 0 && strcmp(o->name, "resume") != 0 ? "" : NULL;
	if (o->choices)
		return o->choices[i];
	for (size_t k = 0; o->kind == RFL_OPT_TEXT && k < RFL_ARRAY_LEN(texts); k++)
		if (strcmp(texts[k].name, o->name) == 0)
			return i < 2 ? texts[k].values[i] : NULL;
	if (o->kind == RFL_OPT_TEXT || o->kind == RFL_OPT_LIST)
		fail_msg("--%s: add a value to texts[]", o->name);
	assert_int_equal(rfl_num_parse_double(text, o->name, &x, NULL), RFL_OK);
	if (i > 1)
		return NULL;
	if (o->kind == RFL_OPT_INT)
		(void)snprintf(out, 64, "%.0f", i == 0 ? x + 1 : 2 * x + 2);
	else
		(void)snprintf(out, 64, "%.17g", i == 0 && x != 0 ? x / 2 : x + 1000);
	return out;
}

/* Change an option in each base until everything is seen that it identifies. */
static void check_option(void *state, size_t command, const struct rfl_opt *o, unsigned expected,
			 struct rfl_ledger *const first[])
{
	unsigned seen = 0;
	bool repeated = false;

	for (size_t b = 0; b < 5 && bases[command][b]; b++) {
		const struct rfl_ledger_row *was = last(first[b]);
		struct line base;
		char option[64], number[64];
		const char *value, *now;
		bool done = expected ? seen == expected : b == 1 || b == 2;

		(void)snprintf(option, sizeof(option), "--%s", o->name);
		split(state, bases[command][b], NULL, NULL, &base);
		now = value_of(&base, option);
		for (int i = 0; !done && (value = value_at(o, now, i, number)); i++) {
			struct rfl_ledger *changed;
			struct line l;
			unsigned is;

			if (*value && strcmp(value, now ? now : o->def ? o->def : "") == 0)
				continue;
			split(state, bases[command][b], o->name, *value ? value : NULL, &l);
			changed = execute(state, &l);
			if (changed) {
				is = apart(was, last(changed));
				seen |= is;
				done = is != 0 || expected == 0;
				if (is & ~expected)
					fail_msg("--%s %s: differs in %x, not only %x", o->name,
						 value, is, expected);
				if (done && !repeated)
					assert_repeats(state, value_of(&l, "--log-dir"),
						       last(changed));
				repeated |= done;
			}
			rfl_ledger_free(changed);
		}
	}
	/* there is one engine, and images of one size */
	if (seen != expected && strcmp(o->name, "engine") != 0 &&
	    (command == 0 || strcmp(o->name, "image-size") != 0))
		fail_msg("--%s: differs in %x, not %x", o->name, seen, expected);
}

static void check_command(void *state, size_t command, const char *name)
{
	const struct rfl_cmd *cmd = rfl_cmd_find(name);
	struct rfl_ledger *first[5] = { NULL };

	for (size_t b = 0; b < 5 && bases[command][b]; b++) {
		struct line l;

		split(state, bases[command][b], NULL, NULL, &l);
		first[b] = execute(state, &l);
		if (!first[b])
			fail_msg("%s: %s", bases[command][b], printed);
		assert_repeats(state, value_of(&l, "--log-dir"), last(first[b]));
	}
	for (const struct rfl_opt *o = cmd->opts; o->name; o++) {
		unsigned expected = 0;

		/* in struct train_args, too, the configuration is the first member */
		for (size_t i = 0; i < RFL_ARRAY_LEN(table); i++)
			if (o->offset == table[i].offset &&
			    (command == 0 || o->offset < sizeof(struct rfl_run_config)))
				expected = table[i].identity & (BOTH | REPEAT);
		if (strcmp(o->name, "devices") == 0)
			expected = SPEED;
		/* the contents of data are compared by columns only */
		if ((expected & SPEED) && strcmp(o->name, "data") != 0)
			expected |= HASHED;
		check_option(state, command, o, expected, first);
	}
	for (size_t b = 0; b < 5; b++)
		rfl_ledger_free(first[b]);
}

/* CIFAR-10 with ten training images and two test images. */
static void put_data(void *state, const char *name)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf b;
	char path[256];

	rfl_buf_init(&b, 0);
	for (int i = 0; i < 2 * RECORD; i++)
		rfl_buf_putc(&b,
			     i % RECORD ? name[0] : '\1'); /* of the same size, but not the same */
	for (int i = 0; i <= 5; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/", (const char *)state, name);
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path),
			       i ? "data_batch_%d.bin" : "test_batch.bin", i);
		assert_ok(rfl_file_mkdirs_for(path, &err), &err);
		assert_ok(rfl_file_write(path, b.data, b.len, &err), &err);
	}
	rfl_buf_fini(&b);
}

static void put_net(void *state, const char *name, int width)
{
	char text[512];

	(void)snprintf(
		text, sizeof(text),
		"{\"schema\": \"roofline.net/1\", \"model\": \"own\", \"input\": {\"image\": "
		"[3, 32, 32]}, \"nodes\": [{\"op\": \"flatten\"}, {\"name\": \"a\", \"op\": "
		"\"linear\", \"out_features\": %d}, {\"name\": \"b\", \"op\": \"linear\", "
		"\"out_features\": 10}]}",
		width);
	write_file(state, name, text);
}

static void prepare(void *state)
{
	setenv("RFL_FAKE_DEVICE", "cuda", 1);
	setenv("RFL_CUPTI_PATH", "/nonexistent", 1);
	put_data(state, "a");
	put_data(state, "b");
	put_net(state, "net.json", 8);
	put_net(state, "own.json", 16);
	write_file(state, "lm.json",
		   "{\"model_type\": \"llama\", \"num_hidden_layers\": 1, \"hidden_size\": 16, "
		   "\"intermediate_size\": 32, \"num_attention_heads\": 2, "
		   "\"num_key_value_heads\": 1, \"vocab_size\": 32}");
}

static void options_of_run_identify_what_the_table_says(void **state)
{
	prepare(*state);
	check_command(*state, 0, "run");
}

static void options_of_train_identify_what_the_table_says(void **state)
{
	prepare(*state);
	check_command(*state, 1, "train");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(options_of_run_identify_what_the_table_says),
		TEST(options_of_train_identify_what_the_table_says),
	};

	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return failed;
}
