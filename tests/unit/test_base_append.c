/* Rows appended by several processes, by processes that are killed, and to disks that are full. */
#include "tests/unit/rfl_test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"

enum { WRITERS = 6, ROWS = 40, TEXT_LENGTH = 2000 };

static const char *const header[] = { "writer", "row", "text" };

static enum rfl_rc append(const char *path, int writer, int row, const char *text,
			  struct rfl_err *err)
{
	char w[16], r[16];
	const char *const fields[] = { w, r, text };
	struct rfl_buf line;
	enum rfl_rc rc;

	snprintf(w, sizeof(w), "%d", writer);
	snprintf(r, sizeof(r), "%d", row);
	rfl_buf_init(&line, 0);
	rfl_csv_write_row(&line, fields, 3);
	rc = rfl_csv_append_rows(path, header, 3, &line, err);
	rfl_buf_fini(&line);
	return rc;
}

static void assert_content(const char *path, const char *expected)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf b = { 0 };

	assert_ok(rfl_file_read(path, &b, &err), &err);
	assert_string_equal(rfl_buf_str(&b), expected);
	rfl_buf_fini(&b);
}

static void creates_then_appends(void **state)
{
	const char *path = tmp_path(*state, "m.csv");
	struct rfl_err err = RFL_ERR_INIT;

	assert_ok(append(path, 1, 1, "a,b", &err), &err);
	assert_ok(append(path, 1, 2, "", &err), &err);
	assert_content(path, "writer,row,text\n1,1,\"a,b\"\n1,2,\n");
	assert_int_equal(append(tmp_path(*state, "no/such/m.csv"), 1, 1, "", &err), RFL_EIO);
	assert_says(&err, "no/such/m.csv");
	assert_int_equal(err.native, ENOENT);
}

static void refuses_another_layout(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "writer,line,text\n", "column 2 is 'line' instead of 'row'" },
		{ "writer,row\n", "column 'text' is missing" },
		{ "writer,row,text,more\n", "unknown column 'more'" },
		{ "\n\n", "is empty" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = write_file(*state, "other.csv", cases[i].text);
		struct rfl_err err = RFL_ERR_INIT;

		assert_int_equal(append(path, 1, 1, "x", &err), RFL_EFORMAT);
		assert_says(&err, "other.csv");
		assert_says(&err, cases[i].word);
		assert_content(path, cases[i].text);
	}
}

/* Whatever a power cut left at the end, the new row stands on a line of its own. */
static void ends_a_torn_line_first(void **state)
{
	static const struct {
		const char *before, *after;
	} cases[] = {
		{ "", "writer,row,text\n7,1,new\n" },
		{ "writer,ro", "writer,row,text\n7,1,new\n" },
		{ "writer,row,text", "writer,row,text\n7,1,new\n" },
		{ "writer,row,text\n1,2", "writer,row,text\n1,2\n7,1,new\n" },
		{ "writer,row,text\n1,2,x", "writer,row,text\n1,2,x\n7,1,new\n" },
		{ "writer,row,text\n1,2,\"x", "writer,row,text\n1,2,\"x\"\n7,1,new\n" },
		{ "writer,row,text\n1,2,\"x\n", "writer,row,text\n1,2,\"x\n\"\n7,1,new\n" },
		{ "writer,row,text\n1,2,\"x\"\"", "writer,row,text\n1,2,\"x\"\"\"\n7,1,new\n" },
	};

	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const char *path = write_file(*state, "torn.csv", cases[i].before);
		struct rfl_err err = RFL_ERR_INIT;
		struct rfl_csv *csv = NULL;
		char last[8] = "";
		bool more;

		assert_ok(append(path, 7, 1, "new", &err), &err);
		assert_content(path, cases[i].after);
		assert_ok(rfl_csv_open(path, &csv, &err), &err);
		for (;;) {
			assert_ok(rfl_csv_next(csv, &more, &err), &err);
			if (!more)
				break;
			snprintf(last, sizeof(last), "%s", rfl_csv_text(csv, 2));
		}
		assert_string_equal(last, "new");
		rfl_csv_close(csv);
	}
}

/* Whether the current row is one that a writer wrote, from its beginning to its end. */
static bool is_whole(const struct rfl_csv *csv)
{
	return csv->nfields == 3 && strlen(rfl_csv_text(csv, 2)) == TEXT_LENGTH;
}

/* The writer and the number of the current row. */
static void row_of(const struct rfl_csv *csv, int64_t *writer, int64_t *row)
{
	struct rfl_err err = RFL_ERR_INIT;

	*writer = *row = -1;
	assert_ok(rfl_csv_int(csv, 0, -1, writer, &err), &err);
	assert_ok(rfl_csv_int(csv, 1, -1, row, &err), &err);
	assert_in_range(*writer, 0, WRITERS - 1);
}

/* Every row once, each whole, the rows of one writer in their order. Returns how many there are. */
static int read_whole(const char *path)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	int64_t counts[WRITERS] = { 0 }, writer, row;
	int n = 0;
	bool more;

	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	for (;; n++) {
		assert_ok(rfl_csv_next(csv, &more, &err), &err);
		if (!more)
			break;
		assert_false(csv->torn);
		assert_true(is_whole(csv));
		row_of(csv, &writer, &row);
		assert_int_equal(row, counts[writer]++);
	}
	rfl_csv_close(csv);
	return n;
}

/* What is in a file after writers were killed. */
struct remains {
	int64_t last; /* number of the last whole row */
	int rows;     /* whole ones */
	int pieces;   /* of others: a kill may stop write() between two pages of a row */
	bool torn;    /* the last piece was not ended by a row after it */
};

/* Numbers rise by one; a row of which a piece is left may have had one that is not used again. */
static struct remains read_remains(const char *path)
{
	struct remains r = { .last = -1 };
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_csv *csv = NULL;
	int64_t writer, row;

	assert_ok(rfl_csv_open(path, &csv, &err), &err);
	while (!r.torn) {
		bool more = true;
		enum rfl_rc rc = rfl_csv_next(csv, &more, &err);

		if (!more)
			break;
		r.torn = csv->torn;
		if (!r.torn)
			assert_ok(rc, &err);
		if (r.torn || !is_whole(csv)) {
			r.pieces++;
			continue;
		}
		row_of(csv, &writer, &row);
		assert_in_range(row, r.last + 1, r.last + 2);
		r.last = row;
		r.rows++;
	}
	rfl_csv_close(csv);
	return r;
}

static void long_text(char out[TEXT_LENGTH + 1], int writer)
{
	memset(out, 'a' + writer, TEXT_LENGTH);
	out[1000] = '"';
	out[1001] = '\n';
	out[TEXT_LENGTH] = '\0';
}

static void concurrent_writers_lose_nothing(void **state)
{
	const char *path = tmp_path(*state, "shared.csv");
	pid_t pids[WRITERS];

	for (int w = 0; w < WRITERS; w++) {
		pids[w] = fork();
		assert_true(pids[w] >= 0);
		if (pids[w] == 0) {
			char text[TEXT_LENGTH + 1];

			long_text(text, w);
			for (int r = 0; r < ROWS; r++)
				if (append(path, w, r, text, NULL) != RFL_OK)
					_exit(1);
			_exit(0);
		}
	}
	for (int w = 0; w < WRITERS; w++) {
		int status;

		assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(read_whole(path), WRITERS * ROWS);
}

/* Append from row `first` on until killed. */
static pid_t start_endless_writer(const char *path, int first)
{
	char text[TEXT_LENGTH + 1];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	long_text(text, 0);
	for (int r = first; append(path, 0, r, text, NULL) == RFL_OK; r++)
		;
	_exit(1);
}

/* A writer that dies at any moment leaves whole rows and at most a piece of one, and a file that
 * takes the next row. */
static void a_killed_writer_leaves_whole_rows(void **state)
{
	const char *path = tmp_path(*state, "killed.csv");
	struct rfl_err err = RFL_ERR_INIT;
	char text[TEXT_LENGTH + 1];
	const int rounds = 12;
	struct remains before;

	long_text(text, 0);
	assert_ok(append(path, 0, 0, text, &err), &err);
	before = read_remains(path);
	for (int round = 0; round < rounds; round++) {
		const struct timespec pause = { .tv_nsec = 2000000 + round * 1700000 };
		pid_t pid = start_endless_writer(path, (int)before.last + 1);
		struct remains left, after;

		nanosleep(&pause, NULL);
		while (round + 1 == rounds && read_remains(path).rows == before.rows)
			nanosleep(&pause, NULL); /* a busy machine: wait for one row at least */
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		left = read_remains(path);
		assert_true(left.rows >= before.rows);
		assert_int_equal(left.pieces, before.pieces + left.torn);
		assert_ok(append(path, 0, (int)left.last + 1 + left.torn, text, &err), &err);
		after = read_remains(path);
		assert_false(after.torn);
		assert_int_equal(after.last, left.last + 1 + left.torn);
		assert_int_equal(after.rows + after.pieces, left.rows + left.pieces + 1);
		before = after;
	}
	assert_true(before.rows > rounds + 1); /* some rows were the writers' */
}

static void a_full_disk_is_an_error(void **state)
{
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	assert_int_equal(append("/dev/full", 1, 1, "x", &err), RFL_EIO);
	assert_says(&err, "/dev/full");
	assert_int_equal(err.native, ENOSPC);
}

/* A file that may not grow: the row that does not fit leaves the file as it was. */
static void a_row_that_does_not_fit_is_taken_back(void **state)
{
	const char *path = write_file(*state, "small.csv", "writer,row,text\n0,0,x\n");
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		const struct rlimit limit = { .rlim_cur = 1000, .rlim_max = 1000 };
		struct rfl_err err = RFL_ERR_INIT;
		char text[TEXT_LENGTH + 1];

		long_text(text, 0);
		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
			_exit(2);
		_exit(append(path, 0, 1, text, &err) == RFL_EIO ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_content(path, "writer,row,text\n0,0,x\n");
}

#define in_tmpdir(f) cmocka_unit_test_setup_teardown(f, tmpdir_make, tmpdir_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_tmpdir(creates_then_appends),
		in_tmpdir(refuses_another_layout),
		in_tmpdir(ends_a_torn_line_first),
		in_tmpdir(concurrent_writers_lose_nothing),
		in_tmpdir(a_killed_writer_leaves_whole_rows),
		cmocka_unit_test(a_full_disk_is_an_error),
		in_tmpdir(a_row_that_does_not_fit_is_taken_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
