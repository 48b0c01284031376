/*
 * font_widths - print plot/font_widths.inc: the advance widths of a regular and a bold font, so
 * that figures have the same layout without FreeType or the fonts.
 *
 *	font_widths LiberationSans-Regular.ttf LiberationSans-Bold.ttf > plot/font_widths.inc
 */
#include <stdio.h>

#include <ft2build.h>
#include FT_FREETYPE_H

/* Latin, Greek, Cyrillic, punctuation, superscripts, currency, letterlike, arrows, mathematics. */
static const struct {
	unsigned first, last;
} ranges[] = {
	{ 0x0020, 0x007e }, { 0x00a0, 0x017f }, { 0x0370, 0x03ff },
	{ 0x0400, 0x045f }, { 0x2010, 0x2044 }, { 0x2070, 0x208e },
	{ 0x20a0, 0x20b5 }, { 0x2190, 0x2195 }, { 0x2202, 0x2265 },
};

#define NRANGES (sizeof(ranges) / sizeof(ranges[0]))

static long advance(FT_Face face, FT_UInt glyph)
{
	if (FT_Load_Glyph(face, glyph, FT_LOAD_NO_SCALE | FT_LOAD_NO_HINTING) != 0)
		return -1;
	return face->glyph->metrics.horiAdvance;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "regular", "bold" };
	FT_Library library;

	if (argc != 3) {
		fprintf(stderr, "usage: font_widths REGULAR.ttf BOLD.ttf\n");
		return 2;
	}
	if (FT_Init_FreeType(&library) != 0)
		return 1;
	printf("/* Made by tools/font_widths.c from Liberation Sans; do not edit. Included by "
	       "scene.c alone.\n"
	       " * Advance widths in units of 1/2048 em, one entry per code point of the ranges. "
	       "*/\n\n"
	       "/* clang-format off */\n"
	       "static const struct {\n\tuint16_t first, last;\n} ranges[] = {\n");
	for (size_t r = 0; r < NRANGES; r++)
		printf("\t{ 0x%04x, 0x%04x },\n", ranges[r].first, ranges[r].last);
	printf("};\n");
	for (int i = 0; i < 2; i++) {
		FT_Face face;

		if (FT_New_Face(library, argv[i + 1], 0, &face) != 0 ||
		    face->units_per_EM != 2048) {
			fprintf(stderr,
				"font_widths: %s: not a font with 2048 units per em; use "
				"Liberation Sans\n",
				argv[i + 1]);
			return 1;
		}
		printf("\nstatic const uint16_t %s_missing = %ld;\n", names[i], advance(face, 0));
		printf("static const uint16_t %s[] = {\n", names[i]);
		for (size_t r = 0; r < NRANGES; r++) {
			printf("\t/* U+%04X */", ranges[r].first);
			for (unsigned c = ranges[r].first; c <= ranges[r].last; c++) {
				long w = advance(face, FT_Get_Char_Index(face, c));

				if (w < 0)
					return 1;
				printf("%s%ld,", (c - ranges[r].first) % 15 ? " " : "\n\t", w);
			}
			printf("\n");
		}
		printf("};\n");
		FT_Done_Face(face);
	}
	FT_Done_FreeType(library);
	return fflush(stdout) != 0;
}
