/*
 * input_record.c - CSV records of a window, in place. The common record (on one line, quotes only
 * around whole fields) is cut by bit masks of 64 bytes at a time, and only behind the fields that
 * it has in common with the record before it: profilers write the kernel's name, block and grid in
 * front of every metric. Any other record is cut byte by byte.
 */
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "profile/import/input_impl.h"

#define FIELDS_MAX ((size_t)1 << 16)

enum cut_result {
	CUT_DONE,
	CUT_MORE,  /* the window ends in the record */
	CUT_EXACT, /* not a common one */
	CUT_REFUSED,
	CUT_NO_MEMORY,
};

/* --- fields ---------------------------------------------------------------------------------- */

static bool reserve(struct rfl_input *in)
{
	size_t cap = in->fields_cap ? 2 * in->fields_cap : 64;
	struct rfl_span *fields;
	struct rfl_input_cut *cuts;

	if (in->nfields < in->fields_cap)
		return true;
	cuts = realloc(in->cuts, cap * sizeof(*cuts));
	if (!cuts)
		return false;
	in->cuts = cuts;
	fields = realloc(in->fields, cap * sizeof(*fields));
	if (!fields)
		return false;
	in->fields = fields;
	in->fields_cap = cap;
	return true;
}

static void hand_out(struct rfl_input *in, const char *record)
{
	for (size_t i = 0; i < in->nfields; i++) {
		const struct rfl_input_cut *cut = &in->cuts[i];

		in->fields[i].at = (cut->undone ? in->undone : record) + cut->at;
		in->fields[i].len = cut->len;
	}
}

/* --- the common record ----------------------------------------------------------------------- */

/* Bit i: byte i of the 64 is c. */
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

/* Bit i: an odd number of bits up to and with i is set. */
static inline uint64_t parity(uint64_t bits)
{
	for (int shift = 1; shift < 64; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

/* How many bytes two texts have in common, up to n. */
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

/* Keep the leading fields that are those of the record before. @return where the next begins */
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

/* A field [from, end) of the record; `quoted` counts those in quotes. */
static inline bool add_common(struct rfl_input *in, const char *record, size_t from, size_t end,
			      size_t *quoted)
{
	struct rfl_input_cut *cut;
	size_t len = end - from;

	if (in->nfields == in->fields_cap && !reserve(in))
		return false;
	cut = &in->cuts[in->nfields++];
	cut->end = (uint32_t)end + 1;
	cut->undone = false;
	if (record[from] == '"' && len >= 2 && record[end - 1] == '"') {
		++*quoted;
		from++;
		len -= 2;
	}
	cut->at = (uint32_t)from;
	cut->len = (uint32_t)len;
	return true;
}

/* What is known of a record while its blocks are looked at. */
struct progress {
	const char *record;
	size_t from, quotes, quoted; /* where the field begins; marks; fields in quotes */
	uint64_t inside;             /* all ones: the block begins inside quotes */
};

/* One block, of which `valid` bytes are there. @return the newline's place + 1; 0: none here */
static inline enum cut_result cut_block(struct rfl_input *in, struct progress *p, size_t at,
					uint64_t valid, char delimiter, size_t *newline)
{
	const char *block = p->record + at;
	uint64_t quote = mask_of(block, '"') & valid, nl = mask_of(block, '\n') & valid;
	uint64_t inside = parity(quote) ^ p->inside, before = ~UINT64_C(0), bits;

	if (nl & ~inside)
		before = ((nl & ~inside) & -(nl & ~inside)) - 1;
	if (nl & inside & before)
		return CUT_EXACT;
	bits = mask_of(block, delimiter) & valid & ~inside & before;
	p->quotes += (size_t)__builtin_popcountll(quote & before);
	p->inside = -(inside >> 63); /* all of its bits as the last */
	for (; bits; bits &= bits - 1) {
		size_t end = at + (size_t)__builtin_ctzll(bits);

		if (!add_common(in, p->record, p->from, end, &p->quoted))
			return CUT_NO_MEMORY;
		p->from = end + 1;
	}
	*newline = ~before ? at + (size_t)__builtin_ctzll(nl & ~inside) + 1 : 0;
	return CUT_DONE;
}

/* @param ret  the record's length without its newline */
static enum cut_result cut_common(struct rfl_input *in, char delimiter, size_t *ret)
{
	size_t at = keep_same(in), left = in->end - in->at, newline = 0, end;
	struct progress p = { .record = in->window + in->at, .from = at };
	enum cut_result result;

	in->nfields = in->same;
	for (; at < left && newline == 0; at += 64) {
		uint64_t valid = left - at >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (left - at)) - 1;

		result = cut_block(in, &p, at, valid, delimiter, &newline);
		if (result != CUT_DONE)
			return result;
		if (in->nfields > FIELDS_MAX)
			return CUT_EXACT; /* which says so */
	}
	if (newline == 0 && !in->eof)
		return CUT_MORE;
	if (newline == 0 && p.inside)
		return CUT_EXACT; /* the same */
	*ret = end = newline ? newline - 1 : left;
	if (end > p.from && p.record[end - 1] == '\r')
		end--;
	if (!add_common(in, p.record, p.from, end, &p.quoted))
		return CUT_NO_MEMORY;
	return p.quotes == 2 * p.quoted ? CUT_DONE : CUT_EXACT;
}

/* --- any record ------------------------------------------------------------------------------ */

static bool undo(struct rfl_input *in, const char *text, size_t len)
{
	size_t cap = in->undone_cap ? in->undone_cap : 4096;
	char *undone;

	while (cap - in->undone_len < len)
		cap *= 2;
	if (cap != in->undone_cap) {
		undone = realloc(in->undone, cap);
		if (!undone)
			return false;
		in->undone = undone;
		in->undone_cap = cap;
	}
	memcpy(in->undone + in->undone_len, text, len);
	in->undone_len += len;
	return true;
}

/* The field in quotes that begins at *at; *at is behind its closing quote then. */
static enum cut_result cut_quoted(struct rfl_input *in, size_t *at, struct rfl_input_cut *cut)
{
	const char *record = in->window + in->at;
	size_t left = in->end - in->at, from = *at + 1, start = in->undone_len;
	const char *q;

	for (;;) {
		q = memchr(record + from, '"', left - from);
		if (!q || ((size_t)(q - record) + 1 == left && !in->eof))
			return CUT_MORE;
		if (q[1] != '"' || (size_t)(q - record) + 1 == left)
			break;
		if (!undo(in, record + from, (size_t)(q - record) + 1 - from))
			return CUT_NO_MEMORY;
		from = (size_t)(q - record) + 2;
	}
	cut->undone = in->undone_len > start;
	if (cut->undone && !undo(in, record + from, (size_t)(q - record) - from))
		return CUT_NO_MEMORY;
	cut->at = (uint32_t)(cut->undone ? start : from);
	cut->len = (uint32_t)(cut->undone ? in->undone_len - start : (size_t)(q - record) - from);
	*at = (size_t)(q - record) + 1;
	return CUT_DONE;
}

/* A field without quotes around it; quotes in it are text. */
static void cut_plain(const struct rfl_input *in, char delimiter, size_t *at,
		      struct rfl_input_cut *cut)
{
	const char *record = in->window + in->at;
	size_t left = in->end - in->at, end = *at;

	while (end < left && record[end] != delimiter && record[end] != '\n')
		end++;
	*cut = (struct rfl_input_cut){ .at = (uint32_t)*at, .len = (uint32_t)(end - *at) };
	if (cut->len > 0 && record[end - 1] == '\r' && (end == left || record[end] == '\n'))
		cut->len--;
	*at = end;
}

/* What must follow a field: a delimiter, the end of the line, or the end of the file. */
static enum cut_result end_field(struct rfl_input *in, char delimiter, size_t begin, size_t *at,
				 bool *last, struct rfl_err *err)
{
	const char *record = in->window + in->at;
	size_t left = in->end - in->at;

	if (*at + 1 < left && record[*at] == '\r' && record[*at + 1] == '\n')
		++*at;
	*last = *at == left || record[*at] == '\n';
	if (*last)
		return *at == left && !in->eof ? CUT_MORE : CUT_DONE;
	if (record[*at] == '\r' && *at + 1 == left) {
		++*at;
		*last = true;
		return in->eof ? CUT_DONE : CUT_MORE;
	}
	if (record[*at] == delimiter) {
		++*at;
		return CUT_DONE;
	}
	if (memchr(record + begin, '\n', *at - begin))
		(void)rfl_input__refuse(
			in, in->at + begin, err,
			"a quoted field begins here and does not end on its line: was "
			"the line cut off?");
	else
		(void)rfl_input__refuse(in, in->at + *at, err,
					"text behind a closing quote: is a quote in a field not "
					"doubled?");
	return CUT_REFUSED;
}

static enum cut_result cut_exact(struct rfl_input *in, char delimiter, size_t *ret,
				 struct rfl_err *err)
{
	enum cut_result result = CUT_DONE;
	size_t at = 0, begin = 0;
	bool last = false;

	in->nfields = in->same = in->undone_len = 0;
	in->record_len = 0;
	while (!last && result == CUT_DONE) {
		struct rfl_input_cut cut = { 0 };

		if (in->nfields == FIELDS_MAX) {
			(void)rfl_input__refuse(in, in->at + at, err, "more than %zu fields",
						FIELDS_MAX);
			return CUT_REFUSED;
		}
		if (!reserve(in))
			return CUT_NO_MEMORY;
		begin = at;
		if (at < in->end - in->at && in->window[in->at + at] == '"')
			result = cut_quoted(in, &at, &cut);
		else
			cut_plain(in, delimiter, &at, &cut);
		if (result == CUT_DONE)
			result = end_field(in, delimiter, begin, &at, &last, err);
		if (result == CUT_DONE)
			in->cuts[in->nfields++] = cut;
	}
	if (result == CUT_MORE && in->eof) {
		(void)rfl_input__refuse(in, in->at + begin, err,
					"the file ends inside a quoted field that begins here");
		result = CUT_REFUSED;
	}
	*ret = at;
	return result;
}

static size_t count_lines(const char *text, size_t len)
{
	size_t lines = 0;
	const char *nl;

	for (; (nl = memchr(text, '\n', len)) != NULL; lines++) {
		len -= (size_t)(nl - text) + 1;
		text = nl + 1;
	}
	return lines;
}

/* --- handing out ----------------------------------------------------------------------------- */

/* Cut the record at in->at, reading on until all of it is there. */
static enum rfl_rc cut_record(struct rfl_input *in, char delimiter, size_t *len, bool *common,
			      struct rfl_err *err)
{
	for (;;) {
		enum cut_result result = cut_common(in, delimiter, len);
		enum rfl_rc rc;

		*common = result == CUT_DONE;
		if (result == CUT_EXACT)
			result = cut_exact(in, delimiter, len, err);
		if (result == CUT_DONE)
			return rfl_input__check_nul(in, in->at + *len, err);
		if (result == CUT_REFUSED)
			return RFL_EFORMAT; /* err is filled */
		if (result == CUT_NO_MEMORY)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s:%zu: out of memory", in->name,
					in->line);
		rc = rfl_input__more(in, err);
		if (rc != RFL_OK)
			return rc;
	}
}

enum rfl_rc rfl_input_record(struct rfl_input *in, char delimiter, const struct rfl_span **fields,
			     size_t *nfields, bool *more, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_input__ready(in, err);
	bool common = false;
	size_t len = 0;

	if (rc != RFL_OK)
		return rc;
	*more = in->at < in->end;
	if (!*more)
		return RFL_OK;
	in->line = in->next_line;
	rc = cut_record(in, delimiter, &len, &common, err);
	if (rc != RFL_OK)
		return rc;
	in->torn = in->at + len == in->end;
	hand_out(in, in->window + in->at);
	*fields = in->fields;
	*nfields = in->nfields;
	in->record_len = common ? len : 0;
	rfl_input__pass(in, in->at + len + (in->torn ? 0 : 1),
			common ? 1 : 1 + count_lines(in->window + in->at, len));
	return RFL_OK;
}

size_t rfl_input_same_fields(const struct rfl_input *in)
{
	return in->same;
}
