/*
 * font.h - text metrics: how wide a text is in Liberation Sans.
 *
 * Every surface lays out with these numbers, which are compiled in, so that a figure has one
 * layout in every format, and whether or not FreeType was there at build time. A unit test compares
 * the table with the faces as FreeType reads them.
 */
#ifndef RFL_PLOT_FONT_H
#define RFL_PLOT_FONT_H

#include "base/compiler.h"

enum rfl_face { RFL_FACE_REGULAR, RFL_FACE_BOLD, RFL_FACE_COUNT };

/** File names of the faces under <data>/fonts. */
extern const char *const rfl_face_files[RFL_FACE_COUNT];

/** What a line of text covers above and below its baseline, in em: accents and descenders. */
#define RFL_TEXT_ASCENT  0.76
#define RFL_TEXT_DESCENT 0.22

/** Height of a capital, in em: half of it centres a line of figures on a mark. */
#define RFL_TEXT_CAP 0.69

/** Width of a line of UTF-8, in the unit of `size` (the em), without kerning. */
double rfl_text_width(const char *text, enum rfl_face face, double size) RFL_WARN_UNUSED;

#endif
