/*
 * input.c - reads lines and CSV records through a window that slides over a file, a pipe or a text
 * in memory. The window grows only for a line that exceeds it.
 *
 * A common record (on one line, with quotes only around whole fields) is split with bit masks of 64
 * bytes, starting after the fields that equal the previous record's, because profilers print
 * the kernel's name, block and grid before every metric. Other records are split byte by byte.
 */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/alloc.h"
#include "base/file.h"

#ifndef RFL_INPUT_WINDOW /* tests use smaller windows, of at least 24 bytes */
#define RFL_INPUT_WINDOW ((size_t)256 << 10)
#endif
#define PAD             64 /* readable bytes after the window, since whole blocks are read */
#define FIELDS_MAX      ((size_t)1 << 16)
#define UTF16_MAX       ((size_t)2 << 30)
#define FREE_QUOTES_MAX ((size_t)64 << 10) /* length of a record with undoubled quotes */

/* The position of a field, relative to the beginning of its record. */
struct rfl_cut {
	uint32_t at, len, end; /* end: offset after its delimiter or newline */
	bool undone;           /* doubled quotes were replaced: `at` is an offset into `undone` */
};

struct rfl_gunzip {
	z_stream z;
	bool between; /* a member has ended */
	size_t cap;
	unsigned char raw[]; /* cap bytes */
};

struct rfl_input *rfl_input_open_text(const char *text, size_t len, const char *name)
{
	struct rfl_input *in = rfl_alloc_array(1, sizeof(*in));

	/* For a short text, a window of twice its length is enough. */
	in->cap = len < RFL_INPUT_WINDOW / 2 ? 2 * len + 64 : RFL_INPUT_WINDOW;
	if (in->cap > RFL_INPUT_WINDOW)
		in->cap = RFL_INPUT_WINDOW;
	in->fd = -1;
	in->text = text;
	in->text_len = len;
	in->next_line = 1;
	in->line_max = RFL_INPUT_LINE_MAX;
	rfl_buf_init(&in->undone, 0);
	rfl_buf_init(&in->utf8, UTF16_MAX);
	in->name = rfl_strdup(name);
	in->window = rfl_alloc_array(in->cap + PAD, 1);
	return in;
}

static void open_fd(int fd, const char *name, struct rfl_input **ret)
{
	*ret = rfl_input_open_text(NULL, SIZE_MAX, name);
	(*ret)->fd = fd;
}

enum rfl_rc rfl_input_open(const char *path, struct rfl_input **ret, struct rfl_err *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return rfl_fail_errno(err, "%s", path);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		return rfl_fail(err, RFL_EIO, EISDIR, "%s: this is a directory, not a file", path);
	}
	open_fd(fd, path, ret);
	return RFL_OK;
}

enum rfl_rc rfl_input_open_any(const char *path, struct rfl_input **ret, struct rfl_err *err)
{
	if (strcmp(path, "-") != 0)
		return rfl_input_open(path, ret, err);
	open_fd(STDIN_FILENO, "standard input", ret);
	return RFL_OK;
}

enum rfl_rc rfl_input_seek(struct rfl_input *in, size_t offset, struct rfl_err *err)
{
	if (lseek(in->fd, (off_t)offset, SEEK_SET) < 0)
		return rfl_fail_errno(err, "%s", in->name);
	in->base = offset;
	in->at = in->end = in->record_len = 0;
	in->eof = false;
	return RFL_OK;
}

void rfl_input_close(struct rfl_input *in)
{
	if (!in)
		return;
	if (in->fd >= 0 && in->fd != STDIN_FILENO)
		close(in->fd);
	rfl_buf_fini(&in->undone);
	rfl_buf_fini(&in->utf8);
	if (in->gunzip)
		(void)inflateEnd(&in->gunzip->z);
	free(in->gunzip);
	free(in->cuts);
	free(in->fields);
	free(in->window);
	free(in->name);
	free(in);
}

/* --- the window ------------------------------------------------------------------------------ */

/* Read from the text or the file. @return as read() */
static ssize_t read_raw(struct rfl_input *in, void *to, size_t room)
{
	ssize_t got;

	if (in->fd < 0) {
		got = (ssize_t)(in->text_len < room ? in->text_len : room);
		if (got > 0)
			memcpy(to, in->text, (size_t)got);
		in->text += got;
		in->text_len -= (size_t)got;
		return got;
	}
	do
		got = read(in->fd, to, room);
	while (got < 0 && errno == EINTR);
	return got;
}

/* Read and decompress. Bytes after the last member are ignored, as gzip does. @return as read() */
static ssize_t read_gzip(struct rfl_input *in, void *to, size_t room)
{
	struct rfl_gunzip *g = in->gunzip;
	z_stream *z = &g->z;

	z->next_out = to;
	z->avail_out = (uInt)room;
	while (z->avail_out == room && !in->broken) {
		if (z->avail_in == 0) {
			const ssize_t got = read_raw(in, g->raw, g->cap);

			if (got < 0)
				return got;
			if (got == 0 && !g->between)
				in->broken = "the compressed file is cut off";
			if (got == 0)
				return 0;
			z->next_in = g->raw;
			z->avail_in = (uInt)got;
		}
		if (g->between && (*z->next_in != 0x1f || inflateReset(z) != Z_OK))
			return 0;
		const int rc = inflate(z, Z_NO_FLUSH);
		g->between = rc == Z_STREAM_END;
		if (rc != Z_OK && rc != Z_STREAM_END)
			in->broken = "the compressed data are damaged";
	}
	return (ssize_t)(room - z->avail_out);
}

/* Fill the window, or read to the end of the source; a pipe needs several reads. */
static enum rfl_rc fill(struct rfl_input *in, struct rfl_err *err)
{
	size_t from = in->end, room;
	ssize_t got = 1;

	while (got > 0 && (room = in->cap - in->end) >= 6) {
		char *to = in->window + in->end;

		got = in->gunzip ? read_gzip(in, to, room) : read_raw(in, to, room);
		if (got < 0)
			return rfl_fail(err, RFL_EIO, errno, "%s: cannot read: %s", in->name,
					strerror(errno));
		in->end += (size_t)got;
	}
	in->eof = got == 0;
	memset(in->window + in->end, 0, PAD);
	in->nuls = in->nuls || memchr(in->window + from, '\0', in->end - from);
	if (in->hashed)
		in->hash = rfl_hash64(in->hash, in->window + from, in->end - from);
	return RFL_OK;
}

/* Decompress a gzipped source; its first bytes are in the window. */
static enum rfl_rc begin_gunzip(struct rfl_input *in, struct rfl_err *err)
{
	in->gunzip = rfl_alloc_array(1, sizeof(*in->gunzip) + in->cap);
	in->gunzip->cap = in->cap;
	memcpy(in->gunzip->raw, in->window, in->end);
	in->gunzip->z.next_in = in->gunzip->raw;
	in->gunzip->z.avail_in = (uInt)in->end;
	if (inflateInit2(&in->gunzip->z, 16 + MAX_WBITS) != Z_OK)
		rfl_out_of_memory();
	in->end = 0;
	in->nuls = false;
	return fill(in, err);
}

/* The index of the low byte in the code units of a UTF-16 source, which has a mark or begins with
 * two ASCII characters; -1: another encoding. @param mark  set to the size of the mark */
static int find_utf16(const struct rfl_input *in, size_t *mark)
{
	const char *w = in->window; /* padded with zeros */

	*mark = 2;
	if (memcmp(w, "\xff\xfe", 2) == 0 || memcmp(w, "\xfe\xff", 2) == 0)
		return w[0] == '\xff' ? 0 : 1;
	*mark = 0;
	for (int i = 0; i <= 1 && in->end >= 4; i++)
		if (w[i] > 0 && w[i + 2] > 0 && !w[1 - i] && !w[3 - i])
			return i;
	return -1;
}

/* Decode a UTF-16 source to UTF-8, and read from that. An unpaired surrogate becomes U+FFFD. */
static enum rfl_rc decode_utf16(struct rfl_input *in, size_t low, size_t mark, struct rfl_err *err)
{
	static const unsigned char leads[] = { 0, 0xc0, 0xe0, 0xf0 };
	RFL_AUTO(buf) raw = { .max = UTF16_MAX };
	enum rfl_rc rc = RFL_OK;

	while (rc == RFL_OK && in->end > 0) {
		rfl_buf_append(&raw, in->window, in->end);
		in->end = 0;
		rc = fill(in, err);
	}
	for (size_t i = mark; rc == RFL_OK && i + 1 < raw.len; i += 2) {
		const unsigned char *u = (const unsigned char *)raw.data + i;
		unsigned c = u[low] | (unsigned)u[1 - low] << 8, more;
		unsigned next = i + 3 < raw.len ? u[2 + low] | (unsigned)u[3 - low] << 8 : 0;

		if (c >= 0xd800 && c <= 0xdbff && next >= 0xdc00 && next <= 0xdfff) {
			c = 0x10000 + ((c - 0xd800) << 10) + (next - 0xdc00);
			i += 2;
		} else if (c >= 0xd800 && c <= 0xdfff) {
			c = 0xfffd;
		}
		more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
		rfl_buf_putc(&in->utf8, (char)(leads[more] | c >> 6 * more));
		while (more-- > 0)
			rfl_buf_putc(&in->utf8, (char)(0x80 | (c >> 6 * more & 0x3f)));
	}
	if (rc == RFL_OK && (rc = rfl_buf_check(&raw, in->name, err)) == RFL_OK)
		rc = rfl_buf_check(&in->utf8, in->name, err);
	if (rc != RFL_OK)
		return rc;
	if (in->fd >= 0 && in->fd != STDIN_FILENO)
		close(in->fd);
	in->fd = -1;
	in->text = rfl_buf_str(&in->utf8); /* not NULL if nothing follows the mark */
	in->text_len = in->utf8.len;
	in->nuls = false;
	return fill(in, err);
}

/* The first zero byte of the window from in->at to `place`, or NULL. */
static const char *find_nul(const struct rfl_input *in, size_t place)
{
	return in->nuls ? memchr(in->window + in->at, '\0', place - in->at) : NULL;
}

/* Fail with RFL_EFORMAT at `place` in the window, or at a zero byte before it, which is the likely
 * cause. The line at in->at will be skipped. */
static RFL_PRINTF(4, 5) enum rfl_rc
	refuse(struct rfl_input *in, size_t place, struct rfl_err *err, const char *fmt, ...)
{
	char what[512] = "a zero byte: this is not text";
	const char *nul = find_nul(in, place), *nl;
	size_t line = in->line, from = in->at;
	va_list ap;

	va_start(ap, fmt);
	if (nul)
		place = (size_t)(nul - in->window);
	else
		vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	while ((nl = memchr(in->window + from, '\n', place - from)) != NULL) {
		from = (size_t)(nl - in->window) + 1;
		line++;
	}
	in->record_len = 0;
	in->skipping = true;
	in->next_line = in->line + 1;
	return rfl_fail(err, RFL_EFORMAT, 0, "%s:%zu:%zu: %s", in->name, line, place - from + 1,
			what);
}

/* Move the next line to the front of the window and read more bytes after it, unless in->eof.
 * RFL_EFORMAT: the line is too long. */
static enum rfl_rc read_more(struct rfl_input *in, struct rfl_err *err)
{
	size_t cap = 2 * in->cap;

	memmove(in->window, in->window + in->at, in->end - in->at);
	in->base += in->at;
	in->end -= in->at;
	in->at = in->record_len = 0; /* the previous record is overwritten */
	if (in->cap - in->end >= in->cap / 4)
		return fill(in, err);
	if (in->end > in->line_max)
		return refuse(in, 0, err, "a line longer than %zu MiB", in->line_max >> 20);
	if (in->cap > in->line_max)
		return fill(in, err);
	if (cap > in->line_max)
		cap = in->line_max + RFL_INPUT_WINDOW;
	in->cap += PAD;
	rfl_reserve(&in->window, &in->cap, cap + PAD);
	in->cap = cap;
	return fill(in, err);
}

/* Read the first bytes, and skip the rest of a refused line. */
static enum rfl_rc make_ready(struct rfl_input *in, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!in->started) {
		size_t mark;

		rc = fill(in, err);
		if (rc == RFL_OK && !in->strict && in->end >= 2 &&
		    memcmp(in->window, "\x1f\x8b", 2) == 0)
			rc = begin_gunzip(in, err);
		const int low = rc == RFL_OK && !in->strict ? find_utf16(in, &mark) : -1;
		if (low >= 0)
			rc = decode_utf16(in, (size_t)low, mark, err);
		if (rc == RFL_OK && in->end >= 3 && memcmp(in->window, "\xef\xbb\xbf", 3) == 0)
			in->at = 3;
		in->started = rc == RFL_OK;
	}
	while (rc == RFL_OK && in->skipping) {
		const char *nl = memchr(in->window + in->at, '\n', in->end - in->at);

		in->at = nl ? (size_t)(nl - in->window) + 1 : in->end;
		in->skipping = !nl && !in->eof;
		if (in->skipping)
			rc = read_more(in, err);
	}
	if (rc == RFL_OK && in->at == in->end && !in->eof)
		rc = read_more(in, err);
	if (rc == RFL_OK && in->at == in->end && in->broken) {
		rc = rfl_fail(err, RFL_EFORMAT, 0, "%s: %s", in->name, in->broken);
		in->broken = NULL; /* reported once: the next call is at the end of the file */
	}
	return rc;
}

static inline enum rfl_rc get_ready(struct rfl_input *in, struct rfl_err *err)
{
	return in->started && !in->skipping && in->at < in->end ? RFL_OK : make_ready(in, err);
}

enum rfl_rc rfl_input_peek(struct rfl_input *in, size_t most, struct rfl_span *ret,
			   struct rfl_err *err)
{
	enum rfl_rc rc = get_ready(in, err);

	while (rc == RFL_OK && in->end - in->at < most && !in->eof)
		rc = read_more(in, err);
	if (rc != RFL_OK)
		return rc;
	ret->at = in->window + in->at;
	ret->len = in->end - in->at < most ? in->end - in->at : most;
	return RFL_OK;
}

void rfl_input_skip(struct rfl_input *in, size_t len)
{
	const char *at = in->window + in->at, *end = at + len;

	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		in->next_line++;
		at++;
	}
	in->at += len;
	in->line = in->next_line;
	in->record_len = 0;
}

/* Consume the line or record that ends at `end`, and its newline. */
static void pass(struct rfl_input *in, size_t end, size_t lines)
{
	in->torn = end == in->end;
	in->keep = in->at;
	in->offset = in->base + in->at;
	in->at = in->torn ? end : end + 1;
	in->next_offset = in->base + in->at;
	in->next_line = in->line + lines;
}

enum rfl_rc rfl_input_line(struct rfl_input *in, struct rfl_span *ret, bool *more,
			   struct rfl_err *err)
{
	enum rfl_rc rc = get_ready(in, err);
	size_t len = 0; /* the part of the line searched so far */
	const char *nl;

	in->record_len = in->same = 0;
	if (rc != RFL_OK)
		return rc;
	*more = in->at < in->end;
	if (!*more)
		return RFL_OK;
	in->line = in->next_line;
	while (!(nl = memchr(in->window + in->at + len, '\n', in->end - in->at - len)) &&
	       !in->eof) {
		len = in->end - in->at;
		rc = read_more(in, err);
		if (rc != RFL_OK)
			return rc;
	}
	len = (nl ? (size_t)(nl - in->window) : in->end) - in->at;
	rc = find_nul(in, in->at + len) ? refuse(in, in->at + len, err, "%s", "") : RFL_OK;
	if (rc != RFL_OK)
		return rc;
	ret->at = in->window + in->at;
	ret->len = len > 0 && ret->at[len - 1] == '\r' ? len - 1 : len;
	pass(in, in->at + len, 1);
	return RFL_OK;
}

/* --- the common record ----------------------------------------------------------------------- */

enum cut_result {
	CUT_DONE,
	CUT_MORE,  /* the record continues after the window */
	CUT_EXACT, /* not a common record */
	CUT_REFUSED,
};

/* Make room for one more field. `cuts` grows first, so it is never smaller than `fields`. */
static inline void reserve(struct rfl_input *in)
{
	if (in->nfields < in->fields_cap)
		return;
	rfl_reserve(&in->cuts, &in->cuts_cap, in->nfields + 1);
	rfl_reserve(&in->fields, &in->fields_cap, in->nfields + 1);
}

/* A mask: bit i is set if byte i of the 64 is `c`. */
static inline uint64_t mask_of(const char *block, char c)
{
	uint64_t mask = 0;
#if defined(__SSE2__)
	__m128i wanted = _mm_set1_epi8(c);

	for (int i = 0; i < 4; i++) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i));
		int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted));

		mask |= (uint64_t)(unsigned)bits << 16 * i;
	}
#else
	for (int i = 0; i < 64; i++)
		mask |= (uint64_t)(block[i] == c) << i;
#endif
	return mask;
}

/* The length of the common prefix of two texts, at most n. */
static size_t common_length(const char *a, const char *b, size_t n)
{
	size_t i = 0;

#if defined(__SSE2__)
	for (; i + 16 <= n; i += 16) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)(a + i));
		__m128i y = _mm_loadu_si128((const __m128i *)(const void *)(b + i));
		unsigned same = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y));

		if (same != 0xffff)
			return i + (size_t)__builtin_ctz(~same);
	}
#endif
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

/* Keep the leading fields that equal the previous record's. @return offset of the next */
static size_t keep_same(struct rfl_input *in)
{
	size_t n = in->end - in->at, same = in->same, common;

	in->same = 0;
	if (in->record_len == 0)
		return 0;
	common = common_length(in->window + in->keep, in->window + in->at,
			       n < in->record_len ? n : in->record_len);
	while (same > 0 && in->cuts[same - 1].end > common)
		same--;
	while (same + 1 < in->nfields && in->cuts[same].end <= common)
		same++;
	in->same = same;
	return same > 0 ? in->cuts[same - 1].end : 0;
}

/* Add the field [from, end) of the record; `quoted` counts fields in quotes. */
static inline void add_common(struct rfl_input *in, const char *record, size_t from, size_t end,
			      size_t *quoted)
{
	size_t len = end - from, i = in->nfields;

	reserve(in);
	in->cuts[i].end = (uint32_t)end + 1;
	in->cuts[i].undone = false;
	if (record[from] == '"' && len >= 2 && record[end - 1] == '"') {
		++*quoted;
		from++;
		len -= 2;
	}
	in->cuts[i].at = (uint32_t)from;
	in->cuts[i].len = (uint32_t)len;
	in->fields[i] = (struct rfl_span){ .at = record + from, .len = len };
	in->nfields++;
}

/* The baseline CPU has no popcount instruction: __builtin_popcountll() would be a call. */
static inline size_t count_ones(uint64_t x)
{
	x -= x >> 1 & 0x5555555555555555;
	x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
	return ((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56;
}

/* Split a common record. @param ret  its length without the newline */
static enum cut_result cut_common(struct rfl_input *in, char delimiter, size_t *ret)
{
	const char *record = in->window + in->at;
	size_t at = keep_same(in), from = at, left = in->end - in->at, end = 0;
	size_t quotes = 0, quoted = 0; /* quote characters; fields in quotes */
	uint64_t carry = 0;            /* all ones if the block begins inside quotes */
	bool newline = false;

	in->nfields = in->same;
	for (; at < left && !newline; at += 64) {
		uint64_t valid = left - at >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (left - at)) - 1;
		uint64_t quote = mask_of(record + at, '"') & valid, inside = quote;
		uint64_t nl = mask_of(record + at, '\n') & valid, before = ~UINT64_C(0), bits;

		/* Bit i is set if the number of quotes up to and including byte i is odd. */
		for (int shift = 1; shift < 64 && quote; shift *= 2)
			inside ^= inside << shift;
		inside ^= carry;
		newline = nl & ~inside;
		if (newline) {
			before = ((nl & ~inside) & -(nl & ~inside)) - 1;
			end = at + (size_t)__builtin_ctzll(nl & ~inside);
		}
		if (nl & inside & before)
			return CUT_EXACT;
		quotes += count_ones(quote & before);
		carry = -(inside >> 63);
		for (bits = mask_of(record + at, delimiter) & valid & ~inside & before; bits;
		     bits &= bits - 1) {
			size_t place = at + (size_t)__builtin_ctzll(bits);

			add_common(in, record, from, place, &quoted);
			from = place + 1;
		}
		if (in->nfields > FIELDS_MAX)
			return CUT_EXACT; /* cut_exact() reports it */
	}
	if (!newline && !in->eof)
		return CUT_MORE;
	if (!newline && carry)
		return CUT_EXACT; /* cut_exact() reports it */
	*ret = end = newline ? end : left;
	if (end > from && record[end - 1] == '\r')
		end--;
	add_common(in, record, from, end, &quoted);
	return quotes == 2 * quoted ? CUT_DONE : CUT_EXACT;
}

/* Split a record byte by byte. Quotes are special only at the beginning of a field.
 * @param width  0, or the number of fields of a record in which undoubled quotes are text: only one
 * before a delimiter or a newline closes a field */
static enum cut_result cut_exact(struct rfl_input *in, char delimiter, size_t width, size_t *ret,
				 struct rfl_err *err)
{
	const char *record = in->window + in->at;
	size_t at = 0, left = in->end - in->at;

	in->nfields = in->same = in->record_len = 0;
	rfl_buf_reset(&in->undone);
	for (;;) {
		size_t begin = at, undone = in->undone.len;
		struct rfl_cut cut = { .at = (uint32_t)at };

		if (in->nfields == (width > 0 ? width : FIELDS_MAX)) {
			(void)refuse(in, in->at + at, err, "more than %zu fields", FIELDS_MAX);
			return CUT_REFUSED;
		}
		reserve(in);
		while (at < left && record[begin] != '"' && record[at] != delimiter &&
		       record[at] != '\n' && !(in->strict && record[at] == '"'))
			at++;
		cut.len = (uint32_t)(at - begin);
		if (at > begin && record[at - 1] == '\r' && (at == left || record[at] == '\n'))
			cut.len--;
		/* Read to the closing quote, and replace doubled quotes. */
		for (size_t from = begin + 1; begin < left && record[begin] == '"';) {
			const char *q = memchr(record + from, '"', left - from);

			at = q ? (size_t)(q - record) + 1 : left;
			if ((!q && in->eof) || (width > 0 && at > FREE_QUOTES_MAX)) {
				in->torn = !q;
				(void)refuse(in, in->at + begin, err,
					     "the file ends inside this quoted field");
				return CUT_REFUSED;
			}
			if (at == left && !in->eof)
				return CUT_MORE;
			const bool doubled = at < left && record[at] == '"';
			cut.undone = in->undone.len > undone;
			if (!doubled && (width == 0 || at == left || record[at] == delimiter ||
					 record[at] == '\n' || record[at] == '\r')) {
				if (cut.undone)
					rfl_buf_append(&in->undone, record + from, at - 1 - from);
				cut.at = (uint32_t)(cut.undone ? undone : begin + 1);
				cut.len = (uint32_t)(cut.undone ? in->undone.len - undone
								: at - begin - 2);
				if (cut.undone)
					rfl_buf_putc(&in->undone, '\0');
				break;
			}
			rfl_buf_append(&in->undone, record + from, at - from);
			from = at + doubled;
		}
		/* A delimiter, a newline or the end of the file must follow. */
		if (at < left && record[at] == '\r' && (at + 1 == left || record[at + 1] == '\n'))
			at++;
		if (at == left && !in->eof)
			return CUT_MORE;
		in->cuts[in->nfields++] = cut;
		*ret = at;
		if (at == left || record[at] == '\n')
			return width == 0 || in->nfields == width ? CUT_DONE : CUT_REFUSED;
		if (record[at++] == delimiter)
			continue;
		if (memchr(record + begin, '\n', at - 1 - begin))
			(void)refuse(in, in->at + begin, err,
				     "this quoted field does not end on its line; check whether it "
				     "is cut off");
		else
			(void)refuse(in, in->at + at - 1, err, "%s",
				     in->strict ? "not CSV: a field that contains a quote must be "
						  "quoted, and that quote doubled"
						: "text after a closing quote; double the quotes "
						  "inside fields");
		return CUT_REFUSED;
	}
}

enum rfl_rc rfl_input_record(struct rfl_input *in, char delimiter, const struct rfl_span **fields,
			     size_t *nfields, bool *more, struct rfl_err *err)
{
	enum cut_result result = CUT_MORE;
	bool common = false;
	size_t len = 0, lines = 1;
	enum rfl_rc rc = get_ready(in, err);

	while (rc == RFL_OK && in->strict && in->at < in->end &&
	       (in->window[in->at] == '\r' || in->window[in->at] == '\n')) {
		in->next_line += in->window[in->at++] == '\n';
		rc = get_ready(in, err);
	}
	if (rc != RFL_OK)
		return rc;
	*more = in->at < in->end;
	if (!*more)
		return RFL_OK;
	in->line = in->next_line;
	while (result == CUT_MORE) { /* until the window contains the whole record */
		struct rfl_err why;

		result = cut_common(in, delimiter, &len);
		common = result == CUT_DONE;
		if (result == CUT_EXACT) {
			why.rc = RFL_OK;
			result = cut_exact(in, delimiter, 0, &len, &why);
			if (result == CUT_REFUSED && in->width > 0) {
				result = cut_exact(in, delimiter, in->width, &len, NULL);
				in->skipping = result == CUT_REFUSED;
			}
			if (result == CUT_REFUSED)
				return rfl_err_pass(err, &why);
		}
		if (result == CUT_MORE && (rc = read_more(in, err)) != RFL_OK)
			return rc;
	}
	rc = find_nul(in, in->at + len) ? refuse(in, in->at + len, err, "%s", "") : RFL_OK;
	if (rc != RFL_OK)
		return rc;
	for (size_t i = 0; i < len && !common; i++)
		lines += in->window[in->at + i] == '\n';
	const char *undone = in->undone.data, *record = in->window + in->at;
	*fields = in->fields;
	*nfields = in->nfields;
	/* cut_common() set new fields, but fields kept from the previous record have moved. */
	for (size_t i = 0, n = common ? in->same : in->nfields; i < n; i++) {
		const struct rfl_cut *cut = &in->cuts[i];

		in->fields[i].at = (cut->undone ? undone : record) + cut->at;
		in->fields[i].len = cut->len;
	}
	in->record_len = common && !in->strict ? len : 0;
	pass(in, in->at + len, lines);
	return RFL_OK;
}
