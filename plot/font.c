/*
 * font.c - text metrics from the compiled tables; no file and no library is asked.
 */
#include "plot/font.h"

#include <stddef.h>

#include "plot/font_widths.h"

const char *const rfl_face_files[RFL_FACE_COUNT] = {
	[RFL_FACE_REGULAR] = "LiberationSans-Regular.ttf",
	[RFL_FACE_BOLD] = "LiberationSans-Bold.ttf",
};

uint32_t rfl_utf8_next(const char **text)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)*text;
	uint32_t c = p[0];
	int more;

	if (c == 0)
		return 0;
	*text += 1;
	if (c < 0x80)
		return c;
	more = c >= 0xf0 && c < 0xf5   ? 3
	       : c >= 0xe0 && c < 0xf0 ? 2
	       : c >= 0xc2 && c < 0xe0 ? 1
				       : 0;
	if (more == 0)
		return 0xfffd;
	c &= 0x3fU >> more;
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0xfffd;
		c = c << 6 | (p[i] & 0x3fU);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0xfffd;
	*text += more;
	return c;
}

/* The index of a code point in the tables, or -1. */
static int find(uint32_t code)
{
	int index = 0;

	for (size_t i = 0; rfl_font__ranges[i].first; i++) {
		if (code >= rfl_font__ranges[i].first && code <= rfl_font__ranges[i].last)
			return index + (int)(code - rfl_font__ranges[i].first);
		index += rfl_font__ranges[i].last - rfl_font__ranges[i].first + 1;
	}
	return -1;
}

int rfl_font_has(uint32_t code)
{
	return find(code) >= 0;
}

double rfl_text_width(const char *text, enum rfl_face face, double size)
{
	const uint16_t *widths = face == RFL_FACE_BOLD ? rfl_font__bold : rfl_font__regular;
	int missing = face == RFL_FACE_BOLD ? rfl_font__bold_missing : rfl_font__regular_missing;
	long units = 0;
	uint32_t code;

	while ((code = rfl_utf8_next(&text)) != 0) {
		int i = find(code);

		units += i < 0 ? missing : widths[i];
	}
	return (double)units * size / 2048;
}
