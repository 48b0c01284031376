/* Records of a window, small and large, against a reader that goes byte by byte: the same fields,
 * the same lines refused, on the same line numbers. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"

static size_t window_size;
#define RFL_INPUT_WINDOW window_size
#include "base/input.c"

struct plain {
	const char *text;
	size_t len, at, line;
};

/* One field from *at. @return false: it is refused */
static bool plain_field(const struct plain *p, size_t *at, struct rfl_buf *out, size_t *lines)
{
	if (*at < p->len && p->text[*at] == '"') {
		for (++*at;; ++*at) {
			if (*at == p->len)
				return false;
			if (p->text[*at] == '"' && (*at + 1 == p->len || p->text[*at + 1] != '"'))
				break;
			*at += p->text[*at] == '"';
			*lines += p->text[*at] == '\n';
			rfl_buf_putc(out, p->text[*at]);
		}
		++*at;
		if (*at < p->len && p->text[*at] == '\r' &&
		    (*at + 1 == p->len || p->text[*at + 1] == '\n'))
			++*at;
		return *at == p->len || p->text[*at] == ',' || p->text[*at] == '\n';
	}
	for (; *at < p->len && p->text[*at] != ',' && p->text[*at] != '\n'; ++*at)
		if (p->text[*at] != '\r' || (*at + 1 < p->len && p->text[*at + 1] != '\n'))
			rfl_buf_putc(out, p->text[*at]);
	return true;
}

/* The next record as "field\x1f...". @return 1; 0: refused; -1: the end */
static int plain_record(struct plain *p, struct rfl_buf *out)
{
	size_t at = p->at, lines = 1;
	const char *nl;
	bool refused = false;

	rfl_buf_reset(out);
	if (p->at == p->len)
		return -1;
	do {
		refused = !plain_field(p, &at, out, &lines);
		rfl_buf_putc(out, '\x1f');
	} while (!refused && at < p->len && p->text[at] == ',' && ++at);
	if (!refused && !memchr(p->text + p->at, '\0', at - p->at)) {
		p->at = at + (at < p->len);
		p->line += lines;
		return 1;
	}
	nl = memchr(p->text + p->at, '\n', p->len - p->at);
	p->at = nl ? (size_t)(nl - p->text) + 1 : p->len;
	p->line++;
	return 0;
}

static void check_records(struct rfl_input *in, struct plain *p)
{
	struct rfl_buf wanted, got;
	bool more = true;

	rfl_buf_init(&wanted, 0);
	rfl_buf_init(&got, 0);
	for (;;) {
		struct rfl_err err = RFL_ERR_INIT;
		const struct rfl_span *fields;
		size_t n, line = p->line;
		int found = plain_record(p, &wanted);
		enum rfl_rc rc = rfl_input_record(in, ',', &fields, &n, &more, &err);

		FUZZ_ASSERT((rc == RFL_OK) == (found != 0));
		if (rc != RFL_OK) {
			fuzz_check(rc, NULL, &err, "input");
			continue;
		}
		FUZZ_ASSERT(more == (found > 0));
		if (!more)
			break;
		rfl_buf_reset(&got);
		for (size_t i = 0; i < n; i++) {
			rfl_buf_append(&got, fields[i].at, fields[i].len);
			rfl_buf_putc(&got, '\x1f');
		}
		FUZZ_ASSERT(in->line == line);
		FUZZ_ASSERT(in->same <= n);
		FUZZ_ASSERT(got.len == wanted.len && memcmp(got.data, wanted.data, got.len) == 0);
	}
	rfl_buf_fini(&wanted);
	rfl_buf_fini(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t windows[] = { 24, 24 + size % 73, 128, (size_t)256 << 10 };

	if (size >= 2 && (memcmp(data, "\xff\xfe", 2) == 0 || memcmp(data, "\xfe\xff", 2) == 0))
		return 0; /* decoded: import_ncu has some of it */
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		bool mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0;
		struct plain p = {
			.text = (const char *)data, .len = size, .at = mark ? 3 : 0, .line = 1
		};
		struct rfl_input *in = NULL;

		window_size = windows[i];
		in = rfl_input_open_text(p.text, size, "input");
		check_records(in, &p);
		rfl_input_close(in);
	}
	return 0;
}
