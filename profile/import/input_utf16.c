/*
 * input_utf16.c - UTF-16 to UTF-8: what `>` writes in Windows PowerShell.
 */
#include "profile/import/input_impl.h"

static unsigned unit_at(const struct rfl_input *in, size_t at)
{
	unsigned a = in->raw[at], b = in->raw[at + 1];

	return in->encoding == RFL_INPUT_UTF16LE ? a | b << 8 : a << 8 | b;
}

/* The next character; a half of a pair alone is U+FFFD. */
static unsigned next_character(struct rfl_input *in)
{
	unsigned high = unit_at(in, in->raw_at), low;

	in->raw_at += 2;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high > 0xdbff || in->raw_end - in->raw_at < 2)
		return 0xfffd;
	low = unit_at(in, in->raw_at);
	if (low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	in->raw_at += 2;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static size_t write_utf8(unsigned c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

size_t rfl_input__decode(struct rfl_input *in, char *out, size_t room, bool last)
{
	size_t need = last ? 2 : 4; /* of raw bytes: the second half of a pair may follow */
	size_t len = 0;

	while (in->raw_end - in->raw_at >= need && room - len >= 4)
		len += write_utf8(next_character(in), out + len);
	return len;
}
