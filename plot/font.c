/*
 * font.c - text metrics from the compiled tables.
 */
#include "plot/font.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "plot/font_widths.inc"

const char *const rfl_face_files[RFL_FACE_COUNT] = {
	[RFL_FACE_REGULAR] = "LiberationSans-Regular.ttf",
	[RFL_FACE_BOLD] = "LiberationSans-Bold.ttf",
};

/* The index of a code point in the tables, or -1. */
static int find(uint32_t code)
{
	int index = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(ranges); i++) {
		if (code >= ranges[i].first && code <= ranges[i].last)
			return index + (int)(code - ranges[i].first);
		index += ranges[i].last - ranges[i].first + 1;
	}
	return -1;
}

double rfl_text_width(const char *text, enum rfl_face face, double size)
{
	const uint16_t *widths = face == RFL_FACE_BOLD ? bold : regular;
	const int missing = face == RFL_FACE_BOLD ? bold_missing : regular_missing;
	long units = 0;

	for (size_t left = strlen(text), n; left > 0; left -= n, text += n) {
		uint32_t code = (unsigned char)text[0];
		int i = -1;

		n = rfl_text_utf8(text, left);
		if (n > 1)
			code &= 0x7fU >> n;
		for (size_t k = 1; k < n; k++)
			code = code << 6 | ((unsigned char)text[k] & 0x3fU);
		if (n > 0)
			i = find(code);
		else
			n = 1; /* not UTF-8: drawn as the box for a missing character */
		units += i < 0 ? missing : widths[i];
	}
	return (double)units * size / 2048;
}
