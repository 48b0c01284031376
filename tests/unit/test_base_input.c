/*
 * test_base_input.c - the window over a file: lines and records from memory, files and pipes, of
 * any length, with byte order marks, UTF-16, zero bytes and quotes that do not match.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/buf.h"

/* The reader itself, with a window of any size. */
static size_t window_size = (size_t)256 << 10;
#define RFL_INPUT_WINDOW window_size
#include "base/input.c"

#include "tests/unit/long_line.h"
#include "tests/unit/rfl_test.h"

/* All records of a text, as "field|field\n"; a refused line is "!<message>\n". */
static void read_records(struct rfl_input *in, char delimiter, struct rfl_buf *out)
{
	const struct rfl_span *fields;
	size_t n;
	bool more = true;

	rfl_buf_reset(out);
	while (more) {
		struct rfl_err err = RFL_ERR_INIT;

		if (rfl_input_record(in, delimiter, &fields, &n, &more, &err) != RFL_OK) {
			assert_int_equal(err.rc, RFL_EFORMAT);
			rfl_buf_printf(out, "!%s\n", err.msg);
			more = true;
			continue;
		}
		for (size_t i = 0; more && i < n; i++) {
			rfl_buf_printf(out, "%s", i > 0 ? "|" : "");
			rfl_buf_append(out, fields[i].at, fields[i].len);
		}
		if (more)
			rfl_buf_putc(out, '\n');
	}
}

static void expect_records(const char *text, const char *wanted)
{
	struct rfl_input *in = NULL;
	struct rfl_buf out;

	rfl_buf_init(&out, 0);
	in = rfl_input_open_text(text, strlen(text), "t.csv");
	read_records(in, ',', &out);
	assert_string_equal(rfl_buf_str(&out), wanted);
	rfl_input_close(in);
	rfl_buf_fini(&out);
}

static void cuts_records(void **state)
{
	(void)state;
	expect_records("", "");
	expect_records("a", "a\n");
	expect_records("a,b\n", "a|b\n");
	expect_records("a,b\r\nc,\r\n", "a|b\nc|\n");
	expect_records("\n\na\n", "\n\na\n");
	expect_records("\xef\xbb\xbf\"a\",b\n", "a|b\n");
	expect_records("\"a,b\",\"\",c", "a,b||c\n");
	expect_records("\"a\"\"b\",\"\"\"\"\r\n\"x\"\n", "a\"b|\"\nx\n");
	expect_records("\"two\nlines\",b\nc\n", "two\nlines|b\nc\n");
	expect_records("5\" disk,b\n", "5\" disk|b\n");
	expect_records("==PROF== Profiling \"k\" - 0: 0%\n\"0\",\"1\"\n",
		       "==PROF== Profiling \"k\" - 0: 0%\n0|1\n");
	expect_records("a,b\r", "a|b\n");
	expect_records("\"a\",\"b\"\r", "a|b\n");
}

static void goes_on_behind_a_refused_line(void **state)
{
	(void)state;
	expect_records("\"0\",\"cut\n\"1\",\"whole\"\n",
		       "!t.csv:1:5: this quoted field does not end on its line; check whether it "
		       "is cut off\n1|whole\n");
	expect_records("a,b\n\"0\",\"cut",
		       "a|b\n!t.csv:2:5: the file ends inside this quoted field\n");
	expect_records(
		"\"a\"b,c\nd\n",
		"!t.csv:1:4: text after a closing quote; double the quotes inside fields\nd\n");
}

static void refuses_zero_bytes_with_their_place(void **state)
{
	static const char text[] = "a,b\nc,\0d\ne,f\n\0";
	struct rfl_input *in = NULL;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	in = rfl_input_open_text(text, sizeof(text) - 1, "z.csv");
	read_records(in, ',', &out);
	assert_string_equal(rfl_buf_str(&out),
			    "a|b\n!z.csv:2:3: a zero byte: this is not text\ne|f\n"
			    "!z.csv:4:1: a zero byte: this is not text\n");
	rfl_input_close(in);
	rfl_buf_fini(&out);
}

/* The place of a zero byte moves with the window. */
static void finds_zero_bytes_through_any_window(void **state)
{
	const size_t whole = window_size;
	struct rfl_buf text, wanted, out;
	struct rfl_input *in = NULL;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_init(&wanted, 0);
	rfl_buf_init(&out, 0);
	for (int i = 0; i < 60; i++) {
		rfl_buf_append(&text, "a,b\n\"c\",\0d\n", 11);
		rfl_buf_printf(&wanted, "a|b\n!z:%d:5: a zero byte: this is not text\n", 2 * i + 2);
	}
	for (window_size = 24; window_size < 90; window_size++) {
		in = rfl_input_open_text(text.data, text.len, "z");
		read_records(in, ',', &out);
		assert_string_equal(rfl_buf_str(&out), wanted.data);
		rfl_input_close(in);
	}
	window_size = whole;
	rfl_buf_fini(&text);
	rfl_buf_fini(&wanted);
	rfl_buf_fini(&out);
}

static void decodes_utf16(void **state)
{
	static const char little[] = "\xff\xfe"
				     "a\0,\0\xe9\0\xac\x20\r\0\n\0\x3d\xd8\x00\xde\x00\xd8x";
	static const char big[] = "\xfe\xff\0a\0,\0b\0\n";
	struct rfl_input *in = NULL;
	struct rfl_buf out;

	(void)state;
	rfl_buf_init(&out, 0);
	in = rfl_input_open_text(little, sizeof(little) - 1, "u");
	read_records(in, ',', &out);
	assert_string_equal(rfl_buf_str(&out),
			    "a|\xc3\xa9\xe2\x82\xac\n\xf0\x9f\x98\x80\xef\xbf\xbd\n");
	rfl_input_close(in);
	in = rfl_input_open_text(big, sizeof(big) - 1, "u");
	read_records(in, ',', &out);
	assert_string_equal(rfl_buf_str(&out), "a|b\n");
	rfl_input_close(in);
	rfl_buf_fini(&out);
}

/* UTF-16 beyond the window: every line comes out. */
static void decodes_long_utf16(void **state)
{
	const char *path = tmp_path(*state, "wide.csv");
	FILE *f = fopen(path, "wb");
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_span line;
	bool more;
	char wanted[32];

	assert_non_null(f);
	(void)fwrite("\xff\xfe", 1, 2, f);
	for (int i = 0; i < 60000; i++) {
		int n = snprintf(wanted, sizeof(wanted), "line %d\n", i);

		for (int k = 0; k < n; k++) {
			(void)fputc(wanted[k], f);
			(void)fputc(0, f);
		}
	}
	assert_int_equal(fclose(f), 0);
	assert_ok(rfl_input_open(path, &in, &err), &err);
	for (int i = 0; i < 60000; i++) {
		(void)snprintf(wanted, sizeof(wanted), "line %d", i);
		assert_ok(rfl_input_line(in, &line, &more, &err), &err);
		assert_true(more);
		assert_int_equal(line.len, strlen(wanted));
		assert_memory_equal(line.at, wanted, line.len);
	}
	assert_ok(rfl_input_line(in, &line, &more, &err), &err);
	assert_false(more);
	rfl_input_close(in);
}

/* --- against a reader that does it byte by byte ---------------------------------------------- */

struct naive {
	const char *text;
	size_t len, at;
};

/* One record of well-formed text. */
static bool naive_record(struct naive *n, struct rfl_buf *out)
{
	bool quoted = false, begins = true;

	if (n->at == n->len)
		return false;
	for (; n->at < n->len; n->at++) {
		char c = n->text[n->at];

		if (quoted && c == '"' && n->at + 1 < n->len && n->text[n->at + 1] == '"')
			rfl_buf_putc(out, n->text[n->at++]);
		else if (c == '"' && (quoted || begins))
			quoted = !quoted;
		else if (!quoted && c == '\n')
			break;
		else
			rfl_buf_putc(out, !quoted && c == ',' ? '|' : c);
		begins = !quoted && c == ',';
	}
	n->at += n->at < n->len;
	rfl_buf_putc(out, '\n');
	return true;
}

static unsigned long long seed = 1;
static unsigned draw(unsigned n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % n;
}

/* A field of well-formed CSV; long ones at times, so that records span windows. */
static unsigned longest = 3000;
static void draw_field(struct rfl_buf *b, bool plain_only)
{
	static const char letters[] = "abcdefgh(), \n\"0123";
	unsigned len = draw(50) == 0 ? draw(longest) : draw(12);
	bool quoted = plain_only ? draw(2) == 0 : draw(3) > 0;
	unsigned n = !quoted ? 8 : plain_only ? 12 : (unsigned)sizeof(letters) - 1;

	if (quoted)
		rfl_buf_putc(b, '"');
	for (unsigned i = 0; i < len; i++) {
		char c = letters[draw(n)];

		rfl_buf_putc(b, c);
		if (c == '"')
			rfl_buf_putc(b, c);
	}
	if (quoted)
		rfl_buf_putc(b, '"');
}

/* Records in runs that have the front in common. */
static void draw_table(struct rfl_buf *b, size_t len, bool plain_only)
{
	struct rfl_buf front;

	rfl_buf_init(&front, 0);
	while (b->len < len) {
		rfl_buf_reset(&front);
		for (unsigned i = draw(6); i > 0; i--) {
			draw_field(&front, plain_only);
			rfl_buf_putc(&front, ',');
		}
		for (unsigned rows = draw(9); rows > 0; rows--) {
			rfl_buf_append(b, rfl_buf_str(&front), front.len);
			for (unsigned i = draw(4); i > 0; i--) {
				draw_field(b, plain_only);
				rfl_buf_putc(b, ',');
			}
			draw_field(b, plain_only);
			rfl_buf_putc(b, '\n');
		}
	}
	rfl_buf_fini(&front);
}

/* @param tail  bytes of the text that are left away */
static void check_table(size_t len, bool plain_only, size_t tail)
{
	struct rfl_buf text, got, wanted;
	struct rfl_input *in = NULL;
	struct naive naive;

	rfl_buf_init(&text, 0);
	rfl_buf_init(&got, 0);
	rfl_buf_init(&wanted, 0);
	draw_table(&text, len, plain_only);
	text.len -= tail;
	naive = (struct naive){ .text = text.data, .len = text.len };
	while (naive_record(&naive, &wanted))
		continue;
	in = rfl_input_open_text(text.data, text.len, "n");
	read_records(in, ',', &got);
	assert_int_equal(got.len, wanted.len);
	assert_memory_equal(got.data, wanted.data, got.len);
	rfl_input_close(in);
	rfl_buf_fini(&text);
	rfl_buf_fini(&got);
	rfl_buf_fini(&wanted);
}

static void agrees_with_a_plain_reader(void **state)
{
	(void)state;
	for (int round = 0; round < 6; round++)
		check_table(700000, round % 2 == 0, round == 5); /* once no newline at the end */
}

/* Windows that end anywhere in a record, a field, and a block of 64 bytes. */
static void agrees_through_windows_of_any_size(void **state)
{
	const size_t whole = window_size;

	(void)state;
	longest = 60;
	for (window_size = 24; window_size < 320; window_size++)
		for (size_t tail = 0; tail < 2; tail++) {
			check_table(6000, true, tail);
			check_table(6000, false, tail);
		}
	longest = 3000;
	window_size = whole;
}

#define SIXTY "012345678901234567890123456789012345678901234567890123456789"

/* What is said to be the same is the same, and is found. */
static void tells_the_fields_in_common(void **state)
{
	/* Commas in quotes after the first 64 bytes are no reason to go byte by byte. */
	static const char text[] = "a,bb,c\na,bb,d\na,bx,d\nb,bx,d\n\"a\nb\",c\n\"a\nb\",c\n"
				   "\"" SIXTY ",,,,,,,,,,\",c\n\"" SIXTY ",,,,,,,,,,\",d\n";
	static const size_t wanted[] = { 0, 2, 1, 0, 0, 0, 0, 1 };
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_span *fields;
	bool more;
	size_t n;

	(void)state;
	in = rfl_input_open_text(text, sizeof(text) - 1, "s");
	for (size_t i = 0; i < RFL_ARRAY_LEN(wanted); i++) {
		assert_ok(rfl_input_record(in, ',', &fields, &n, &more, &err), &err);
		assert_int_equal(in->same, wanted[i]);
		assert_int_equal(in->line, i < 5 ? i + 1 : i + 2 + (i > 5));
	}
	rfl_input_close(in);
}

/* --- lines ----------------------------------------------------------------------------------- */

static void hands_out_lines(void **state)
{
	static const char text[] = "\xef\xbb\xbfone\r\n\ntwo, \"three\"\nlast";
	static const char *const wanted[] = { "one", "", "two, \"three\"", "last" };
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_span line = { 0 }, ahead = { 0 };
	bool more;

	(void)state;
	in = rfl_input_open_text(text, sizeof(text) - 1, "l");
	assert_ok(rfl_input_peek(in, RFL_INPUT_HEAD, &ahead, &err), &err);
	assert_int_equal(ahead.len, sizeof(text) - 4);
	for (size_t i = 0; i < 4; i++) {
		assert_ok(rfl_input_peek(in, RFL_INPUT_AHEAD, &ahead, &err), &err);
		assert_ok(rfl_input_line(in, &line, &more, &err), &err);
		assert_true(more);
		assert_int_equal(line.len, strlen(wanted[i]));
		assert_memory_equal(line.at, wanted[i], line.len);
		assert_true(ahead.len >= line.len && line.at == ahead.at);
		assert_int_equal(in->line, i + 1);
		assert_int_equal(in->torn, i == 3);
	}
	assert_ok(rfl_input_peek(in, RFL_INPUT_AHEAD, &ahead, &err), &err);
	assert_int_equal(ahead.len, 0);
	assert_ok(rfl_input_line(in, &line, &more, &err), &err);
	assert_false(more);
	rfl_input_close(in);
}

/* Lines and records of one file, in turn, across windows. */
static void mixes_lines_and_records(void **state)
{
	struct rfl_buf text;
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_span *fields;
	struct rfl_span line;
	char wanted[64];
	size_t n;
	bool more;

	(void)state;
	rfl_buf_init(&text, 0);
	for (int i = 0; i < 40000; i++)
		rfl_buf_printf(&text, "\"k\",\"%d\"\nnoise %d\n", i, i);
	in = rfl_input_open_text(text.data, text.len, "m");
	for (int i = 0; i < 40000; i++) {
		assert_ok(rfl_input_record(in, ',', &fields, &n, &more, &err), &err);
		(void)snprintf(wanted, sizeof(wanted), "%d", i);
		assert_int_equal(n, 2);
		assert_int_equal(fields[1].len, strlen(wanted));
		assert_memory_equal(fields[1].at, wanted, fields[1].len);
		assert_ok(rfl_input_line(in, &line, &more, &err), &err);
		(void)snprintf(wanted, sizeof(wanted), "noise %d", i);
		assert_int_equal(line.len, strlen(wanted));
		assert_memory_equal(line.at, wanted, line.len);
		assert_int_equal(in->line, 2 * i + 2);
	}
	rfl_input_close(in);
	rfl_buf_fini(&text);
}

/* --- long lines ------------------------------------------------------------------------------ */

static void reads_a_line_of_megabytes(void **state)
{
	struct rfl_buf text;
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_span *fields;
	size_t n;
	bool more;

	(void)state;
	rfl_buf_init(&text, 0);
	rfl_buf_puts(&text, "a,b\n\"");
	for (int i = 0; i < 7000; i++)
		rfl_buf_printf(&text, "%01023d,", i);
	rfl_buf_puts(&text, "\",end\nc,d\n");
	in = rfl_input_open_text(text.data, text.len, "big");
	for (int i = 0; i < 3; i++) {
		assert_ok(rfl_input_record(in, ',', &fields, &n, &more, &err), &err);
		assert_int_equal(n, 2);
		assert_int_equal(fields[0].len, i == 1 ? 7000 * 1024 : 1);
	}
	rfl_input_close(in);
	rfl_buf_fini(&text);
}

static void refuses_a_line_of_a_gigabyte(void **state)
{
	struct long_line line = { .before = "a,b\n", .after = "\nc,d\n" };
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;
	long before = peak_kib();

	(void)state;
	rfl_buf_init(&out, 0);
	long_line_begin(&line);
	assert_ok(rfl_input_open(line.path, &in, &err), &err);
	read_records(in, ',', &out);
	assert_non_null(strstr(rfl_buf_str(&out), ":2:1: a line longer than 8 MiB\nc|d\n"));
	rfl_input_close(in);
	long_line_end(&line);
	rfl_buf_fini(&out);
	if (before > 0)
		assert_true(peak_kib() - before < 32 << 10);
}

static volatile sig_atomic_t signals;
static void count_signal(int number)
{
	(void)number;
	signals = signals + 1;
}

/* A pipe that gives a few bytes at a time, and signals while it is waited for. */
static void waits_for_a_slow_pipe(void **state)
{
	const struct sigaction action = { .sa_handler = count_signal }; /* without SA_RESTART */
	const struct itimerval often = { .it_interval.tv_usec = 500, .it_value.tv_usec = 500 };
	const struct itimerval never = { 0 };
	struct sigaction before;
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf out;
	char path[32];
	int ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		static const char text[] = "a,b\n\"c,d\",e\n";

		close(ends[0]);
		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			const struct timespec moment = { .tv_nsec = 3000000 };

			nanosleep(&moment, NULL);
			if (write(ends[1], text + i, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	rfl_buf_init(&out, 0);
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	assert_ok(rfl_input_open(path, &in, &err), &err);
	read_records(in, ',', &out);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_string_equal(rfl_buf_str(&out), "a|b\nc,d|e\n");
	assert_true(signals > 0);
	rfl_input_close(in);
	rfl_buf_fini(&out);
	close(ends[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void refuses_what_is_no_file(void **state)
{
	struct rfl_input *in = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	assert_int_equal(rfl_input_open(tmp_path(*state, "absent"), &in, &err), RFL_EIO);
	assert_says(&err, "absent: No such file");
	rfl_err_clear(&err);
	assert_int_equal(rfl_input_open(*state, &in, &err), RFL_EIO);
	assert_says(&err, "is a directory");
	assert_null(in);
}

/* Compress a text as a member of a gzip file. */
static void put_gzip(const char *text, size_t len, struct rfl_buf *out)
{
	unsigned char packed[4096];
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)text, .avail_in = (uInt)len };

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
			 Z_OK);
	z.next_out = packed;
	z.avail_out = sizeof(packed);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	rfl_buf_append(out, packed, sizeof(packed) - z.avail_out);
	assert_int_equal(deflateEnd(&z), Z_OK);
}

static void expect_gzip(const struct rfl_buf *packed, size_t len, const char *wanted)
{
	struct rfl_input *in = rfl_input_open_text(packed->data, len, "t.csv");
	RFL_AUTO(buf) out = { .len = 0 };

	read_records(in, ',', &out);
	assert_string_equal(rfl_buf_str(&out), wanted);
	rfl_input_close(in);
}

/* Members one after the other, bytes after the last, a cut at each byte, damage. */
static void reads_gzip(void **state)
{
	RFL_AUTO(buf) packed = { .len = 0 };
	struct rfl_err err = RFL_ERR_INIT;
	const struct rfl_span *f;
	size_t first, both, n;
	bool more;

	(void)state;
	put_gzip("a,b\nc", 5, &packed);
	first = packed.len;
	put_gzip("d,e\n", 4, &packed);
	both = packed.len;
	for (window_size = 24; window_size < 2000; window_size += window_size / 3) {
		expect_gzip(&packed, first, "a|b\nc\n");
		expect_gzip(&packed, both, "a|b\ncd|e\n");
		expect_gzip(&packed, both - 1,
			    "a|b\ncd|e\n!t.csv: the compressed file is cut off\n");
	}
	for (size_t len = 2; len < first; len++) {
		struct rfl_input *in = rfl_input_open_text(packed.data, len, "t.csv");
		RFL_AUTO(buf) out = { .len = 0 };

		read_records(in, ',', &out);
		assert_non_null(
			strstr(rfl_buf_str(&out), "!t.csv: the compressed file is cut off"));
		rfl_input_close(in);
	}
	rfl_buf_puts(&packed, "rubbish");
	expect_gzip(&packed, packed.len, "a|b\ncd|e\n");
	packed.data[first - 8] ^= 1; /* the checksum */
	expect_gzip(&packed, first, "a|b\nc\n!t.csv: the compressed data are damaged\n");

	struct rfl_input *in = rfl_input_open_text(packed.data, both, "t.csv");
	in->strict = true; /* a ledger */
	assert_int_equal(rfl_input_record(in, ',', &f, &n, &more, &err), RFL_EFORMAT);
	rfl_input_close(in);
	window_size = (size_t)256 << 10;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_gzip),
		cmocka_unit_test(cuts_records),
		cmocka_unit_test(goes_on_behind_a_refused_line),
		cmocka_unit_test(refuses_zero_bytes_with_their_place),
		cmocka_unit_test(finds_zero_bytes_through_any_window),
		cmocka_unit_test(decodes_utf16),
		cmocka_unit_test_setup_teardown(decodes_long_utf16, tmpdir_make, tmpdir_remove),
		cmocka_unit_test(agrees_with_a_plain_reader),
		cmocka_unit_test(agrees_through_windows_of_any_size),
		cmocka_unit_test(tells_the_fields_in_common),
		cmocka_unit_test(hands_out_lines),
		cmocka_unit_test(mixes_lines_and_records),
		cmocka_unit_test(waits_for_a_slow_pipe),
		cmocka_unit_test(reads_a_line_of_megabytes),
		cmocka_unit_test(refuses_a_line_of_a_gigabyte),
		cmocka_unit_test_setup_teardown(refuses_what_is_no_file, tmpdir_make,
						tmpdir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
