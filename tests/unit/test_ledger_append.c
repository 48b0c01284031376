/*
 * Rows into a ledger: beside others, after a power cut, on a full disk, into files of older
 * versions and of other programs.
 */
#include "tests/unit/log_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "ledger/ledger.h"
#include "tests/unit/file_rig.h"

/* ---- a row, a file ---- */

static void set(char **field, const char *text)
{
	rfl_field_set(field, text);
}

static enum rfl_rc try_append(const char *path, const char *run_id, struct rfl_err *err)
{
	struct rfl_ledger_row row;
	enum rfl_rc rc;

	rfl_ledger_row_init(&row);
	row.schema_version = RFL_LEDGER_SCHEMA;
	row.batch = 8;
	row.step_ms_mean = 0.1;
	set(&row.run_id, run_id);
	set(&row.label, "lab_cpu_resnet18_fp32_bs8_run1");
	set(&row.status, "ok");
	set(&row.version, "0.1.0");
	rc = rfl_ledger_append(path, &row, err);
	rfl_ledger_row_fini(&row);
	return rc;
}

static void append(const char *path, const char *run_id)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(try_append(path, run_id, &err), &err);
}

static struct rfl_ledger *load(const char *path)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l = NULL;

	assert_ok(rfl_ledger_load(path, &l, &err), &err);
	return l;
}

/* The run_ids of a ledger, "one two". */
static void assert_runs(const char *path, const char *expected)
{
	struct rfl_ledger *l = load(path);
	char have[4096] = "";

	for (size_t i = 0; i < l->nrows; i++)
		snprintf(have + strlen(have), sizeof(have) - strlen(have), "%s%s", i ? " " : "",
			 l->rows[i].run_id);
	assert_string_equal(have, expected);
	rfl_ledger_free(l);
}

static void assert_contains(const char *path, const char *word)
{
	char *text = content(path);

	if (!strstr(text, word))
		fail_msg("%s lacks '%s':\n%s", path, word, text);
	free(text);
}

static void write_bytes(const char *path, const char *bytes, size_t len)
{
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(rfl_file_write(path, bytes, len, &err), &err);
}

static void add_bytes(const char *path, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "ab");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* ---- the mirror ---- */

/* Every line is an object with the ledger's columns, in as many lines as the ledger has rows. */
static void assert_mirrored(const char *csv, const char *mirror)
{
	struct rfl_ledger *l = load(csv);
	char *text = content(mirror), *line = text, *rest = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	for (size_t i = 0; i < l->nrows; i++) {
		json_t *row = NULL;

		rest = strchr(line, '\n');
		assert_non_null(rest);
		assert_ok(rfl_json_loads(line, (size_t)(rest - line), mirror, &row, &err), &err);
		for (size_t c = 0; c < RFL_LEDGER_NCOLUMNS; c++)
			assert_non_null(json_object_get(row, rfl_ledger_fields[c].name));
		assert_string_equal(json_string_value(json_object_get(row, "run_id")),
				    l->rows[i].run_id);
		if (l->rows[i].batch == -1)
			assert_true(json_is_null(json_object_get(row, "batch")));
		else
			assert_int_equal(json_integer_value(json_object_get(row, "batch")),
					 l->rows[i].batch);
		assert_true(json_is_null(json_object_get(row, "error_text")));
		json_decref(row);
		line = rest + 1;
	}
	assert_int_equal(*line, '\0');
	free(text);
	rfl_ledger_free(l);
}

/* Only later rows are read, unless no row ends at that byte. */
static void rows_since_a_size(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	struct rfl_ledger *l = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t size;

	append(path, "one");
	size = rfl_file_size(path);
	append(path, "two");
	append(path, "three");
	assert_ok(rfl_ledger_load_columns(path, "run_id", size, &l, &err), &err);
	assert_int_equal(l->nrows, 2);
	assert_string_equal(l->rows[0].run_id, "two");
	assert_string_equal(l->rows[1].run_id, "three");
	rfl_ledger_free(l);
	l = NULL;
	assert_ok(rfl_ledger_load_columns(path, "run_id", rfl_file_size(path), &l, &err), &err);
	assert_int_equal(l->nrows, 0);
	rfl_ledger_free(l);
	l = NULL;
	assert_int_equal(rfl_ledger_load_columns(path, "run_id", size + 1, &l, &err), RFL_EFORMAT);
	rfl_err_clear(&err);
	assert_int_equal(rfl_ledger_load_columns(path, "run_id", size + (1 << 20), &l, &err),
			 RFL_EFORMAT);
	assert_null(l);
}

static void the_mirror_has_every_row(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *mirror = tmp_path(*state, "metrics.jsonl");
	struct stat before, after;

	append(path, "one");
	assert_mirrored(path, mirror);
	assert_int_equal(stat(mirror, &before), 0);
	append(path, "two");
	assert_mirrored(path, mirror);
	assert_int_equal(stat(mirror, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino); /* it was added to, not made anew */
	assert_contains(mirror, "\"step_ms_mean\":0.1,");
	assert_string_equal(said, "");
}

static void a_mirror_that_is_behind_is_made_anew(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *mirror = tmp_path(*state, "metrics.jsonl");
	char *text;

	append(path, "one");
	assert_int_equal(unlink(mirror), 0);
	append(path, "two"); /* absent */
	assert_mirrored(path, mirror);

	text = content(mirror);
	write_bytes(mirror, text, strlen(text) - 20);
	append(path, "three"); /* torn */
	assert_mirrored(path, mirror);
	free(text);

	text = content(mirror);
	append(path, "four");
	write_bytes(mirror, text, strlen(text));
	append(path, "five"); /* a row after it */
	assert_mirrored(path, mirror);
	free(text);

	add_bytes(mirror, "\0\0\0", 3);
	append(path, "six");
	assert_mirrored(path, mirror);
	assert_string_equal(said, "");
}

static void a_ledger_is_mended_without_a_row(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *mirror = tmp_path(*state, "metrics.jsonl");
	char *text;

	assert_int_equal(rfl_ledger_mend(path, NULL), RFL_OK);
	assert_false(rfl_file_exists(path)); /* nothing to mend is nothing to make */

	append(path, "one");
	text = content(mirror);
	append(path, "two");
	write_bytes(mirror, text, strlen(text)); /* killed before the mirror had it */
	assert_int_equal(rfl_ledger_mend(path, NULL), RFL_OK);
	assert_mirrored(path, mirror);
	assert_runs(path, "one two");
	assert_string_equal(said, "");
	free(text);

	add_bytes(path, "3,x,", 4);
	assert_int_equal(rfl_ledger_mend(path, NULL), RFL_OK);
	assert_non_null(strstr(said, "was moved to"));
	assert_runs(path, "one two");
	assert_mirrored(path, mirror);
}

/* At the end of a run there is no time to copy a million rows. */
static void the_mirror_of_a_large_ledger_is_not_built_by_a_run(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *mirror = tmp_path(*state, "metrics.jsonl");
	char *text;
	FILE *f;

	append(path, "one");
	f = fopen(path, "ae");
	assert_non_null(f);
	for (int i = 0; i < 17; i++) { /* 17 MiB of rows */
		fprintf(f, "4,big%d,,,,,%0*d", i, 1 << 20, 0);
		for (int k = 7; k < RFL_LEDGER_NCOLUMNS; k++)
			fputc(',', f);
		fputs("1\n", f);
	}
	assert_int_equal(fclose(f), 0);
	append(path, "two");
	assert_false(rfl_file_exists(mirror)); /* half of one would be mistaken for all of it */
	assert_non_null(strstr(said, "removed, because it lacked rows"));
	said[0] = '\0';
	append(path, "three");
	assert_false(rfl_file_exists(mirror));
	assert_string_equal(said, "");
	assert_int_equal(rfl_ledger_mend(path, NULL), RFL_OK);
	assert_mirrored(path, mirror);
	append(path, "four");
	assert_mirrored(path, mirror);
	text = content(mirror);
	write_bytes(mirror, text, strlen(text) - 10); /* killed before it had the row */
	append(path, "five");
	assert_mirrored(path, mirror);
	assert_string_equal(said, "");
	free(text);
}

/* A name that is known beforehand could be a link that waits for us. */
static void the_new_mirror_has_no_known_name(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *mirror = tmp_path(*state, "metrics.jsonl");
	const char *victim = write_file(*state, "victim", "kept");
	char *text;

	append(path, "one");
	assert_int_equal(unlink(mirror), 0);
	assert_int_equal(symlink(victim, tmp_path(*state, "metrics.jsonl.new")), 0);
	append(path, "two");
	assert_mirrored(path, mirror);
	text = content(victim);
	assert_string_equal(text, "kept");
	free(text);
}

static void a_mirror_that_cannot_be_written_costs_no_row(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	const char *mirror = tmp_path(*state, "metrics.jsonl");

	assert_int_equal(mkdir(mirror, 0777), 0);
	append(path, "one");
	assert_runs(path, "one");
	assert_non_null(strstr(said, "metrics.jsonl"));
	assert_non_null(strstr(said, "not in its JSON mirror"));
	assert_int_equal(rmdir(mirror), 0);
	append(path, "two");
	assert_mirrored(path, mirror);
}

/* ---- torn rows ---- */

static const char whole[] = "3,x,,,,,lab_cpu_resnet18_fp32_bs8_run1";

/* What a power cut leaves after two whole rows, and what is kept of it. */
static void torn_rows_are_set_aside(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *kept; /* in metrics.torn.csv after the time */
	} cases[] = {
		{ "3,half", 6, ",4,0,\"3,half\"\n" },
		{ "3,half,\"said \"\"no", 17, ",4,0,\"3,half,\"\"said \"\"\"\"no\"\n" },
		{ "3,half\0\0\0", 9, ",4,3,\"3,half\"\n" },
		{ "\0\0\0\0", 4, ",4,4,\n" },
		{ "\0\0\n", 3, ",4,2," },
		{ whole, sizeof(whole) - 1, ",4,0,\"3,x" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[64], place[64];
		const char *path, *torn;
		struct rfl_ledger *l;

		snprintf(name, sizeof(name), "%zu/metrics.csv", i);
		path = tmp_path(*state, name);
		snprintf(name, sizeof(name), "%zu/metrics.torn.csv", i);
		torn = tmp_path(*state, name);
		append(path, "one");
		append(path, "two");
		add_bytes(path, cases[i].bytes, cases[i].len);

		said[0] = '\0';
		l = load(path); /* a reader leaves it out and changes nothing */
		assert_int_equal(l->nrows, 2);
		assert_true(l->torn);
		rfl_ledger_free(l);
		assert_non_null(strstr(said, "skipped"));
		assert_false(rfl_file_exists(torn));

		said[0] = '\0';
		append(path, "three");
		snprintf(place, sizeof(place), "metrics.csv:4: ");
		assert_non_null(strstr(said, place));
		assert_non_null(strstr(said, "metrics.torn.csv"));
		assert_contains(torn, "found_utc,line,zero_bytes,text\n");
		assert_contains(torn, cases[i].kept);
		assert_runs(path, "one two three");
		snprintf(name, sizeof(name), "%zu/metrics.jsonl", i);
		assert_mirrored(path, tmp_path(*state, name));
		said[0] = '\0';
		append(path, "four");
		assert_string_equal(said, ""); /* said once */
	}
}

/* A file system may bring zeros into a file that was appended to afterwards. */
static void rows_behind_a_torn_one_stay(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	char *two;
	struct rfl_ledger *l;

	append(path, "one");
	two = content(path);
	add_bytes(path, "3,half\0\0", 8);
	add_bytes(path, strchr(two, '\n') + 1, strlen(strchr(two, '\n') + 1)); /* "one" again */
	add_bytes(path, "3,end", 5);
	l = load(path);
	assert_int_equal(l->nrows, 2);
	assert_int_equal(l->rows[1].line, 3);
	rfl_ledger_free(l);
	append(path, "two");
	assert_runs(path, "one one two");
	assert_contains(tmp_path(*state, "metrics.torn.csv"), ",3,2,\"3,half\"\n");
	assert_contains(tmp_path(*state, "metrics.torn.csv"), ",4,0,\"3,end\"\n");
	free(two);
}

/* An unclosed quote hides no whole row. */
static void an_open_quote_costs_its_own_line_only(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	char *text;

	append(path, "one");
	text = content(path);
	add_bytes(path, "3,\"oops,\n", 9);
	add_bytes(path, strchr(text, '\n') + 1, strlen(strchr(text, '\n') + 1));
	assert_runs(path, "one one");
	assert_non_null(strstr(said,
			       "metrics.csv:3: the row is skipped because it is incomplete or "
			       "has a stray quote"));
	append(path, "two"); /* the last row is whole: nothing is looked for */
	assert_runs(path, "one one two");
	add_bytes(path, "3,half", 6);
	append(path, "three");
	assert_runs(path, "one one two three");
	assert_contains(tmp_path(*state, "metrics.torn.csv"), ",3,0,\"3,\"\"oops,\n\"\n");
	assert_contains(tmp_path(*state, "metrics.torn.csv"), ",6,0,\"3,half\"\n");
	free(text);
}

static void a_header_that_was_cut_is_written_again(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	static const char zeros[100];

	write_bytes(path, "schema_version,run", 18);
	assert_runs(path, ""); /* neither a reader nor a run to be is stopped by it */
	assert_non_null(strstr(said, "the header is incomplete and there are no rows"));
	append(path, "one");
	assert_runs(path, "one");
	write_bytes(path, "schema_version,run\0\0", 20);
	append(path, "one");
	assert_runs(path, "one");
	write_bytes(path, zeros, sizeof(zeros));
	append(path, "one");
	assert_runs(path, "one");
	write_bytes(path, "", 0);
	append(path, "one");
	assert_runs(path, "one");
}

/* Two of them do not pair up over the whole rows between, which the mirror has as well. */
static void stray_quotes_cost_their_own_rows_only(void **state)
{
	static const char *const runs[] = { "one", "two", "three", "four" };
	const char *path = tmp_path(*state, "metrics.csv");
	char *text, *first, *third;
	struct rfl_buf broken;
	struct rfl_ledger *l;

	for (size_t i = 0; i < RFL_ARRAY_LEN(runs); i++)
		append(path, runs[i]);
	text = content(path);
	first = strstr(text, "one") + 1;
	third = strstr(text, "three") + 1;
	rfl_buf_init(&broken, 0);
	rfl_buf_printf(&broken, "%.*s\"%.*s\"%s", (int)(first - text), text, (int)(third - first),
		       first, third);
	write_bytes(path, broken.data, broken.len);
	assert_runs(path, "two four");
	assert_non_null(strstr(said, "metrics.csv:2: the row is skipped"));
	assert_non_null(strstr(said, "metrics.csv:4: the row is skipped"));
	assert_int_equal(unlink(tmp_path(*state, "metrics.jsonl")), 0);
	append(path, "five");
	assert_runs(path, "two four five");
	assert_mirrored(path, tmp_path(*state, "metrics.jsonl"));
	l = load(path);
	assert_true(l->torn);
	rfl_ledger_free(l);
	rfl_buf_fini(&broken);
	free(text);
}

/* What is whole is read, wherever the power went; now and then a row is added, too. */
static void a_power_cut_at_any_byte_costs_one_row_at_most(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	static const char *const expected[] = { "", "one", "one two" };
	static const char *const then[] = { "new", "one new", "one two new" };
	struct rfl_err err = RFL_ERR_INIT;
	char *text;

	append(path, "one");
	append(path, "two");
	text = content(path);
	for (size_t len = 1, rows = 0, lines = 0; len <= strlen(text); len++) {
		lines += text[len - 1] == '\n';
		rows = lines > 1 ? lines - 1 : 0;
		assert_int_equal(unlink(path), 0);
		add_bytes(path, text, len); /* as quick as can be: this is done often */
		said[0] = '\0';
		assert_ok(rfl_ledger_check(path, &err), &err);
		assert_runs(path, expected[rows]);
		assert_int_equal(said[0] != '\0', text[len - 1] != '\n');
		if (len % 97 != 0)
			continue;
		append(path, "new");
		assert_runs(path, then[rows]);
	}
	free(text);
}

/* ---- older files ---- */

/* A ledger with the columns that these names leave, and one row of the version. */
static const char *write_older(void *dir, const char *name, int version, const char *const *without,
			       const char *more, const char *values)
{
	struct rfl_buf header, row;
	const char *column, *path;

	rfl_buf_init(&header, 0);
	rfl_buf_init(&row, 0);
	for (size_t i = 0; i < RFL_LEDGER_NCOLUMNS; i++) {
		column = rfl_ledger_fields[i].name;
		bool later = false;

		for (size_t k = 0; without[k]; k++)
			later |= strcmp(column, without[k]) == 0;
		if (later)
			continue;
		rfl_buf_printf(&header, "%s%s", i ? "," : "", column);
		rfl_buf_puts(&row, i ? "," : "");
		if (strcmp(column, "schema_version") == 0)
			rfl_buf_printf(&row, "%d", version);
		if (strcmp(column, "run_id") == 0)
			rfl_buf_puts(&row, "old");
		if (strcmp(column, "device_name") == 0)
			rfl_buf_puts(&row, "\"Some CPU, 2 GHz\"");
		if (strcmp(column, "step_ms_mean") == 0)
			rfl_buf_puts(&row, "12.50"); /* not as we would write it */
		if (strcmp(column, "version") == 0)
			rfl_buf_puts(&row, "0.0.9");
	}
	rfl_buf_printf(&header, "%s\n%s%s\n", more, rfl_buf_str(&row), values);
	path = write_file(dir, name, rfl_buf_str(&header));
	rfl_buf_fini(&header);
	rfl_buf_fini(&row);
	return path;
}

#define NAME_OF(kind, name, meaning) #name,
static const char *const of_version_2[] = { "cell", "lr", "loss_hash", "kernel", NULL };
static const char *const of_version_1[] = { "cell", "lr", "loss_hash", "kernel",
					    RFL_LEDGER_COUNTER_COLUMNS(NAME_OF) NULL };

static const char *const of_version_4[] = {
	"epochs",       "lr_step",    "lr_gamma",  "rotation",     "beta1",       "beta2",   "eps",
	"bucket_bytes", "net_digest", "data_name", "data_samples", "data_digest", "command", NULL
};

static void older_files_are_upgraded(void **state)
{
	static const struct {
		int version;
		const char *const *without;
		const char *kept;
	} cases[] = { { 1, of_version_1, "metrics.v1.csv" },
		      { 2, of_version_2, "metrics.v2.csv" },
		      { 4, of_version_4, "metrics.v4.csv" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *path = write_older(*state, "metrics.csv", cases[i].version,
					       cases[i].without, ",my note", ",\"fan, on\"");
		char *before = content(path), *kept;
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_ledger *l;

		said[0] = '\0';
		assert_runs(path, "old"); /* read as ever, and left as it is */
		assert_ok(rfl_ledger_check(path, &err), &err);
		assert_string_equal(said, "");
		append(path, "new");
		assert_non_null(strstr(said, cases[i].kept));
		assert_non_null(strstr(said, "to 5"));
		kept = content(tmp_path(*state, cases[i].kept));
		assert_string_equal(kept, before);
		l = load(path);
		assert_int_equal(l->nrows, 2);
		assert_int_equal(l->rows[0].schema_version, cases[i].version);
		assert_string_equal(l->rows[0].device_name, "Some CPU, 2 GHz");
		assert_null(l->rows[0].cell);
		assert_int_equal(l->rows[0].epochs, RFL_UNKNOWN);
		assert_null(l->rows[0].command);
		assert_int_equal(l->rows[1].schema_version, RFL_LEDGER_SCHEMA);
		rfl_ledger_free(l);
		assert_contains(path, ",12.50,");
		assert_contains(path, ",version,my note\n");
		assert_contains(path, ",0.0.9,\"fan, on\"\n");
		assert_contains(path, ",0.1.0,\n"); /* ours has no note */
		assert_mirrored(path, tmp_path(*state, "metrics.jsonl"));
		assert_contains(tmp_path(*state, "metrics.jsonl"), "\"my note\":\"fan, on\"");
		said[0] = '\0';
		append(path, "newer");
		assert_string_equal(said, ""); /* once */
		assert_runs(path, "old new newer");
		free(before);
		free(kept);
	}
	/* the next one to keep does not overwrite the first */
	write_older(*state, "metrics.csv", 2, of_version_2, "", "");
	append(tmp_path(*state, "metrics.csv"), "new");
	assert_true(rfl_file_exists(tmp_path(*state, "metrics.v2_2.csv")));
	assert_contains(tmp_path(*state, "metrics.v2.csv"), "fan, on");
}

/* Killed between keeping the old file and putting the new one in its place. */
static void an_upgrade_that_was_cut_short_is_done_again(void **state)
{
	const char *path = write_older(*state, "metrics.csv", 2, of_version_2, "", "");
	char *before = content(path), *kept;

	assert_int_equal(link(path, tmp_path(*state, "metrics.v2.csv")), 0);
	append(path, "new");
	assert_runs(path, "old new");
	assert_false(rfl_file_exists(tmp_path(*state, "metrics.v2_2.csv")));
	kept = content(tmp_path(*state, "metrics.v2.csv"));
	assert_string_equal(kept, before);
	free(before);
	free(kept);
}

/* Both at once: the torn row of an older file. */
static void a_torn_older_file_is_mended_and_upgraded(void **state)
{
	const char *path = write_older(*state, "metrics.csv", 2, of_version_2, "", "");

	add_bytes(path, "2,half", 6);
	append(path, "new");
	assert_runs(path, "old new");
	assert_contains(tmp_path(*state, "metrics.torn.csv"), "2,half");
	assert_true(rfl_file_exists(tmp_path(*state, "metrics.v2.csv")));
}

static void columns_of_others_survive(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	struct rfl_buf moved;
	char *text, *newline;

	append(path, "one"); /* and then a note is put in front of it, by hand */
	text = content(path);
	newline = strchr(text, '\n');
	assert_non_null(newline);
	*newline = '\0';
	rfl_buf_init(&moved, 0);
	rfl_buf_printf(&moved, "note,%s\nkeep,%s", text, newline + 1);
	write_bytes(path, moved.data, moved.len);
	append(path, "two");
	assert_runs(path, "one two");
	assert_contains(path, "\nkeep,5,one,");
	assert_contains(path, "\n,5,two,");
	assert_false(rfl_file_exists(tmp_path(*state, "metrics.v3.csv"))); /* nothing lacked */
	rfl_buf_fini(&moved);
	free(text);
}

static void files_of_others_are_refused(void **state)
{
	static const char *const texts[] = { "label,arch,images_per_sec\na,b,1\n",
					     "schema_version,run_id\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *path = write_file(*state, "metrics.csv", texts[i]);
		struct rfl_err err = RFL_ERR_INIT;
		char *after;

		assert_int_equal(rfl_ledger_check(path, &err), RFL_EFORMAT);
		assert_says(&err, "metrics.csv");
		rfl_err_clear(&err);
		assert_int_equal(try_append(path, "x", &err), RFL_EFORMAT);
		assert_says(&err, "not a ledger of this program");
		assert_says(&err, "another --log-dir");
		assert_says(&err, "roofline summary");
		after = content(path);
		assert_string_equal(after, texts[i]);
		free(after);
	}
}

static void empty_lines_are_nobodys_file(void **state)
{
	const char *path = write_file(*state, "metrics.csv", "\r\n\n");

	assert_int_equal(rfl_ledger_check(path, NULL), RFL_OK);
	append(path, "x");
	assert_runs(path, "x");
}

/* ---- beside others, and without room ---- */

/* Each of n processes appends `rows` rows, while the parent reads; none is lost or torn. */
static void write_at_once(const char *path, int n, int rows, size_t before)
{
	pid_t pids[8];
	size_t last = before;
	int left = n;

	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			for (int r = 0; r < rows; r++) {
				char id[32];

				snprintf(id, sizeof(id), "p%d-%d", i, r);
				if (try_append(path, id, NULL) != RFL_OK)
					_exit(1);
			}
			_exit(0);
		}
	}
	while (left > 0) {
		struct rfl_ledger *l;
		int status;

		while (left > 0 && waitpid(-1, &status, WNOHANG) > 0) {
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			left--;
		}
		if (!rfl_file_exists(path))
			continue;
		if (rfl_file_size(path) == 0)
			continue;
		l = load(path);
		assert_false(l->torn);
		assert_true(l->nrows >= last); /* rows come, none goes */
		last = l->nrows;
		rfl_ledger_free(l);
	}
	assert_int_equal(last >= before, 1);
}

static void assert_all_there(const char *path, int n, int rows, size_t others)
{
	struct rfl_ledger *l = load(path);

	assert_int_equal(l->nrows, (size_t)(n * rows) + others);
	for (int i = 0; i < n; i++) {
		for (int r = 0, found; r < rows; r++) {
			char id[32];

			snprintf(id, sizeof(id), "p%d-%d", i, r);
			found = 0;
			for (size_t k = 0; k < l->nrows; k++)
				found += strcmp(l->rows[k].run_id, id) == 0;
			assert_int_equal(found, 1);
		}
	}
	rfl_ledger_free(l);
}

static void processes_lose_nothing(void **state)
{
	const char *two = tmp_path(*state, "two/metrics.csv");
	const char *eight = tmp_path(*state, "eight/metrics.csv");

	write_at_once(two, 2, 25, 0);
	assert_all_there(two, 2, 25, 0);
	assert_mirrored(two, tmp_path(*state, "two/metrics.jsonl"));
	write_at_once(eight, 8, 10, 0);
	assert_all_there(eight, 8, 10, 0);
	assert_mirrored(eight, tmp_path(*state, "eight/metrics.jsonl"));
}

/* All of them find an old file: one upgrades it, and the others continue in the new one. */
static void processes_upgrade_once(void **state)
{
	const char *path = write_older(*state, "metrics.csv", 2, of_version_2, "", "");

	write_at_once(path, 8, 5, 1);
	assert_all_there(path, 8, 5, 1);
	assert_true(rfl_file_exists(tmp_path(*state, "metrics.v2.csv")));
	assert_false(rfl_file_exists(tmp_path(*state, "metrics.v2_2.csv")));
	assert_false(rfl_file_exists(tmp_path(*state, "metrics.v3.csv")));
}

static void a_full_disk_leaves_the_file_as_it_was(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rlimit old, small;
	char *before, *after;
	enum rfl_rc rc;

	append(path, "one");
	before = content(path);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_IGN);
	small = old;
	small.rlim_cur = strlen(before) + 10; /* some of the row fits */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	rc = try_append(path, "two", &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(rc, RFL_EIO);
	assert_says(&err, "metrics.csv: cannot append");
	after = content(path);
	assert_string_equal(after, before);
	assert_runs(path, "one");
	rfl_err_clear(&err);
	assert_int_equal(try_append("/dev/full", "x", &err), RFL_EIO);
	assert_says(&err, "No space left");
	free(before);
	free(after);
}

static void rows_together_are_all_there(void **state)
{
	const char *path = tmp_path(*state, "metrics.csv");
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_ledger *l;

	append(path, "one");
	append(path, "two");
	l = load(path);
	assert_ok(rfl_ledger_append_rows(tmp_path(*state, "b/metrics.csv"), l->rows, 2, &err),
		  &err);
	assert_runs(tmp_path(*state, "b/metrics.csv"), "one two");
	assert_mirrored(tmp_path(*state, "b/metrics.csv"), tmp_path(*state, "b/metrics.jsonl"));
	rfl_ledger_free(l);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, log_rig_make, log_rig_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rows_since_a_size),
		TEST(the_mirror_has_every_row),
		TEST(a_mirror_that_is_behind_is_made_anew),
		TEST(a_ledger_is_mended_without_a_row),
		TEST(the_mirror_of_a_large_ledger_is_not_built_by_a_run),
		TEST(the_new_mirror_has_no_known_name),
		TEST(a_mirror_that_cannot_be_written_costs_no_row),
		TEST(torn_rows_are_set_aside),
		TEST(rows_behind_a_torn_one_stay),
		TEST(an_open_quote_costs_its_own_line_only),
		TEST(stray_quotes_cost_their_own_rows_only),
		TEST(a_power_cut_at_any_byte_costs_one_row_at_most),
		TEST(a_header_that_was_cut_is_written_again),
		TEST(older_files_are_upgraded),
		TEST(an_upgrade_that_was_cut_short_is_done_again),
		TEST(a_torn_older_file_is_mended_and_upgraded),
		TEST(columns_of_others_survive),
		TEST(files_of_others_are_refused),
		TEST(empty_lines_are_nobodys_file),
		TEST(processes_lose_nothing),
		TEST(processes_upgrade_once),
		TEST(a_full_disk_leaves_the_file_as_it_was),
		TEST(rows_together_are_all_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
