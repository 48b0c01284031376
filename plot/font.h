/*
 * font.h - text metrics: how wide a text is in Liberation Sans.
 *
 * Every surface lays out with these numbers, which are compiled in, so that a figure has one
 * layout whether it becomes PNG, PDF or SVG, and whether or not FreeType was there at build time.
 * A unit test compares the table with the faces as FreeType reads them.
 */
#ifndef RFL_PLOT_FONT_H
#define RFL_PLOT_FONT_H

#include <stdint.h>

#include "base/compiler.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rfl_face { RFL_FACE_REGULAR, RFL_FACE_BOLD, RFL_FACE_COUNT };

/** File names of the faces under <data>/fonts. */
extern const char *const rfl_face_files[RFL_FACE_COUNT];

/** What a line of text covers above and below its baseline, in em: accents and descenders. */
#define RFL_TEXT_ASCENT  0.76
#define RFL_TEXT_DESCENT 0.22

/** Height of a capital, in em: half of it centres a line of figures on a mark. */
#define RFL_TEXT_CAP 0.69

/** Width of a line of UTF-8, in the unit of `size` (the em). No kerning, as it will be drawn. */
double rfl_text_width(const char *text, enum rfl_face face, double size) RFL_WARN_UNUSED;

/** True when the table knows the width of a code point. */
int rfl_font_has(uint32_t code);

/** The next code point; advances *text. 0 at the end, U+FFFD for a byte that is not UTF-8. */
uint32_t rfl_utf8_next(const char **text);

#ifdef __cplusplus
}
#endif
#endif
