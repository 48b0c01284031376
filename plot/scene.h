/*
 * scene.h - a picture as a list of primitives in drawing order, created by the layout and drawn by
 * a surface. Coordinates are in points (1/72 inch) from the upper left corner. A scene's arena owns
 * everything it points to.
 */
#ifndef RFL_PLOT_SCENE_H
#define RFL_PLOT_SCENE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

RFL_API_BEGIN

/* ---- text metrics: Liberation Sans is compiled in, so that the layout of a figure
 * depends neither on its format nor on FreeType ---- */

enum rfl_face { RFL_FACE_REGULAR, RFL_FACE_BOLD, RFL_FACE_COUNT };

/** File names of the fonts under <data>/fonts. */
extern const char *const rfl_face_files[RFL_FACE_COUNT];

/** Extent of a line of text above and below its baseline in em, with accents and descenders. */
#define RFL_TEXT_ASCENT  0.76
#define RFL_TEXT_DESCENT 0.22

/** Height of a capital letter in em; half of it centres a line of digits on a mark. */
#define RFL_TEXT_CAP 0.69

/** The character at the beginning of a text. @return its length; 0 if it is not valid UTF-8 */
size_t rfl_text_decode(const char *text, size_t left, uint32_t *code);

/** Width of a line of UTF-8 text in the unit of `size` (the em), without kerning. */
double rfl_text_width(const char *text, enum rfl_face face, double size) RFL_WARN_UNUSED;

/** The same in regular type. */
static inline double rfl_width(const char *text, double size)
{
	return rfl_text_width(text, RFL_FACE_REGULAR, size);
}

/** The length of the first line of a text, broken at a blank if possible, else anywhere. */
size_t rfl_text_line(const char *text, enum rfl_face face, double size,
		     double width) RFL_WARN_UNUSED;

struct rfl_color {
	uint8_t r, g, b, a;
};

#define RFL_COLOR_NONE ((struct rfl_color){ 0, 0, 0, 0 })

struct rfl_xy {
	double x, y;
};

struct rfl_box {
	double x, y, w, h;
};

enum rfl_dash {
	RFL_DASH_SOLID,
	RFL_DASH_DASHED,
	RFL_DASH_DOTTED,
	RFL_DASH_MIXED, /**< long and short dashes */
	RFL_DASH_SHORT,
	RFL_DASH_COUNT
};
/** Part of the text to the left of its position, in halves of its width. */
enum rfl_anchor { RFL_ANCHOR_START, RFL_ANCHOR_MIDDLE, RFL_ANCHOR_END };

enum rfl_marker {
	RFL_MARKER_CIRCLE,
	RFL_MARKER_SQUARE,
	RFL_MARKER_TRIANGLE,
	RFL_MARKER_DIAMOND,
	RFL_MARKER_TRIANGLE_DOWN,
	RFL_MARKER_PENTAGON,
	RFL_MARKER_PLUS,
	RFL_MARKER_COUNT,
	/* arrowheads for marks beyond the edge of the plot */
	RFL_MARKER_LEFT = RFL_MARKER_COUNT,
	RFL_MARKER_RIGHT,
};

enum rfl_prim_kind {
	RFL_PRIM_LINE,
	RFL_PRIM_POLYGON,
	RFL_PRIM_RECT,
	RFL_PRIM_MARKER,
	RFL_PRIM_TEXT,
};

/** The number of `numbers` of a primitive. */
static inline size_t rfl_prim_count(enum rfl_prim_kind kind)
{
	return kind == RFL_PRIM_MARKER ? 3 : kind == RFL_PRIM_LINE || kind == RFL_PRIM_RECT ? 4 : 0;
}

struct rfl_prim_text {
	const char *text; /**< valid UTF-8 without control characters */
	double x, y;      /**< position of the anchor on the baseline */
	double size;      /**< em */
	double angle;     /**< radians, counterclockwise on the page */
	enum rfl_face face;
	enum rfl_anchor anchor;
	struct rfl_color halo; /**< stroke of halo_width under the text; alpha 0: none */
	double halo_width;
};

/** One primitive. Alpha 0 in `stroke` or `fill` disables stroking or filling. */
struct rfl_prim {
	enum rfl_prim_kind kind;
	const char *id;  /**< stable name of the element, "" if none */
	const char *tip; /**< tooltip, "" if none */
	struct rfl_color stroke, fill;
	double width; /**< stroke width */
	enum rfl_dash dash;
	union {
		double numbers[4]; /**< of a line, a rectangle (4) or a marker (3) */
		struct {
			double x0, y0, x1, y1;
		} line;
		struct {
			const struct rfl_xy *points;
			size_t n;
		} polygon;
		struct rfl_box rect;
		struct {
			double x, y, r;
			enum rfl_marker shape;
		} marker;
		struct rfl_prim_text text;
	} at;
};

struct rfl_arena;

struct rfl_scene {
	double width, height;
	struct rfl_color paper;
	const char *title;   /**< title in the file's metadata */
	const char *caption; /**< title, subtitle and all notes, for the metadata; "" if none */
	bool has_caption;    /**< the picture itself has a title and notes */
	const char *data;    /**< text that PNG and SVG files carry; NULL: none. Borrowed */
	size_t n, cap;
	struct rfl_prim *prims;
	struct rfl_arena *arena; /**< owns everything above, including this struct */
};

/** Create an empty page. */
struct rfl_scene *rfl_scene_new(double width, double height) RFL_WARN_UNUSED;

/** Accepts NULL. */
void rfl_scene_free(struct rfl_scene *s);

/* Each function below appends a primitive and returns it, so that the caller can set its id, dash
 * or halo; the next call may move it. */
struct rfl_prim *rfl_scene_line(struct rfl_scene *s, double x0, double y0, double x1, double y1,
				struct rfl_color color, double width);
struct rfl_prim *rfl_scene_polygon(struct rfl_scene *s, const struct rfl_xy *points, size_t n,
				   struct rfl_color fill);
struct rfl_prim *rfl_scene_rect(struct rfl_scene *s, struct rfl_box box, struct rfl_color fill);
struct rfl_prim *rfl_scene_marker(struct rfl_scene *s, enum rfl_marker shape, double x, double y,
				  double r, struct rfl_color fill, struct rfl_color stroke,
				  double width);
struct rfl_prim *rfl_scene_text(struct rfl_scene *s, const char *text, double x, double y,
				double size, struct rfl_color color);

/** Draw the primitives [from, to) after all those that follow them. */
void rfl_scene_raise(struct rfl_scene *s, size_t from, size_t to);

/** Ascending orders of doubles and of int64_t, for qsort() and bsearch(). */
int rfl_by_double(const void *a, const void *b);
int rfl_by_int(const void *a, const void *b);

/** Sort values and keep each once. @return their number */
size_t rfl_distinct(int64_t *values, size_t n);

/** Format a string owned by the scene. Invalid UTF-8 and controls become '?'. */
const char *rfl_scene_printf(struct rfl_scene *s, const char *fmt, ...) RFL_PRINTF(2, 3);
const char *rfl_scene_vprintf(struct rfl_scene *s, const char *fmt, va_list ap) RFL_VPRINTF(2);

/** The area of a horizontal text of width w, from its left end on the baseline. */
static inline struct rfl_box rfl_text_box(double x, double y, double w, double size)
{
	const struct rfl_box box = { x, y - RFL_TEXT_ASCENT * size, w,
				     (RFL_TEXT_ASCENT + RFL_TEXT_DESCENT) * size };

	return box;
}

/** The corners of the area of a rotated text, beginning at its lower left. */
void rfl_prim_text_corners(const struct rfl_prim *p, struct rfl_xy corners[4]);

#define RFL_MARKER_MAX_POINTS 12

/** The outline of a marker of radius r around the origin; all shapes have about the same area.
 * @return the number of corners; 0 for a circle of radius r */
size_t rfl_marker_outline(enum rfl_marker shape, double r,
			  struct rfl_xy out[RFL_MARKER_MAX_POINTS]);

RFL_API_END
#endif
