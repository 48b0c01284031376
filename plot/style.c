/*
 * style.c - the styles of figures: colours, sizes, page and parts, one row each. Sizes are in
 * points on a page of RFL_PLOT_WIDTH x RFL_PLOT_HEIGHT; `scale` converts them to the page of the
 * style. tests/unit/test_plot_style.c checks the contrast of all text, and that categories remain
 * distinct in greyscale and for colour-blind readers.
 */
#include <math.h>
#include <string.h>

#include "plot/figure.h"

#define HEX(rgb)                                                    \
	{                                                           \
		(rgb) >> 16 & 255, (rgb) >> 8 & 255, (rgb)&255, 255 \
	}

/* Rows are composed of these groups. The categories are Okabe and Ito's palette, with lightness
 * spread so that they also differ in greyscale. */
#define COLORS_LIGHT                                                                \
	.paper = HEX(0xffffff), .ink = HEX(0x1f2328), .soft = HEX(0x636c76),        \
	.faint = HEX(0xd5d9de), .grid = HEX(0xdfe3e8), .grid_minor = HEX(0xeef0f3), \
	.roof = HEX(0x1f2328), .roof_quiet = HEX(0x6e7781), .band = HEX(0xd3d6da),  \
	.leader = HEX(0x8c959f), .alarm = HEX(0xc4122f),                            \
	.category = { HEX(0x0973b3), HEX(0xe7a003), HEX(0x24ac80), HEX(0xd65f01),   \
		      HEX(0x883f76), HEX(0x7bcdff), HEX(0x434343) },                \
	.phase = { HEX(0xb7a3d9), HEX(0x7a5ba6), HEX(0x43306b), HEX(0xb3b8be), HEX(0x7d848c) }
#define TINTS_LIGHT .memory = HEX(0xf5fafe), .compute = HEX(0xfffaf3)
#define TINTS_NONE  .memory = HEX(0xffffff), .compute = HEX(0xffffff)
#define COLORS_DARK                                                                  \
	.paper = HEX(0x0d1117), .ink = HEX(0xe6edf3), .soft = HEX(0x9da7b3),         \
	.faint = HEX(0x30363d), .grid = HEX(0x2b3138), .grid_minor = HEX(0x1d232a),  \
	.memory = HEX(0x0f1a26), .compute = HEX(0x1e1810), .roof = HEX(0xf0f6fc),    \
	.roof_quiet = HEX(0x8b949e), .band = HEX(0x3a414a), .leader = HEX(0x6e7681), \
	.alarm = HEX(0xff7b72),                                                      \
	.category = { HEX(0x4a98dc), HEX(0xf8ae20), HEX(0x82fecd), HEX(0xd25b00),    \
		      HEX(0xe28dbc), HEX(0x91dbff), HEX(0x6b6b6b) },                 \
	.phase = { HEX(0xcdbdee), HEX(0x9c82d4), HEX(0x6a4fa3), HEX(0x8b949e), HEX(0x59626d) }
#define COLORS_GREY                                                                 \
	.paper = HEX(0xffffff), .ink = HEX(0x000000), .soft = HEX(0x555555),        \
	.faint = HEX(0xd0d0d0), .grid = HEX(0xe0e0e0), .grid_minor = HEX(0xf0f0f0), \
	.roof = HEX(0x000000), .roof_quiet = HEX(0x6e6e6e), .band = HEX(0xd6d6d6),  \
	.leader = HEX(0x8c8c8c), .alarm = HEX(0x000000),                            \
	.category = { HEX(0x575757), HEX(0xb4b4b4), HEX(0x1f1f1f), HEX(0x949494),   \
		      HEX(0x3a3a3a), HEX(0xd4d4d4), HEX(0x757575) },                \
	.phase = { HEX(0xb4b4b4), HEX(0x575757), HEX(0x1f1f1f), HEX(0xd4d4d4), HEX(0x8a8a8a) }

#define TYPE                                                                                     \
	.title = 17, .subtitle = 11, .axis = 12, .tick = 11, .label = 10.5, .label_second = 9.2, \
	.ceiling = 10.5, .ceiling_quiet = 9.5, .heading = 12, .table = 10, .table_head = 9.2,    \
	.legend = 9.8, .footnote = 8.6, .halo = 3.2
/* for a small page: few sizes that differ little */
#define TYPE_SMALL                                                                                \
	.title = 13, .subtitle = 10.7, .axis = 12, .tick = 11, .label = 11, .label_second = 10.7, \
	.ceiling = 10.8, .ceiling_quiet = 10.2, .heading = 11.5, .table = 10.2,                   \
	.table_head = 10.2, .legend = 10.4, .footnote = 10.2, .halo = 3

#define STROKES                                                                                   \
	.marker = 7, .stroke_roof = 2, .stroke_quiet = 0.9, .stroke_axis = 1, .stroke_grid = 0.7, \
	.stroke_mark = 0.8, .stroke_thin = 0.9
#define HAIRLINES                                                                   \
	.marker = 6.2, .stroke_roof = 1.8, .stroke_quiet = 0.7, .stroke_axis = 0.7, \
	.stroke_grid = 0.4, .stroke_mark = 0.7, .stroke_thin = 0.7

#define PAGE_SCREEN                                                                   \
	.width = RFL_PLOT_WIDTH, .height = RFL_PLOT_HEIGHT, .scale = 1, .least = 0.7, \
	.has_panel = true, .has_title = true, .has_footnote = true
#define MARGINS .left = 92, .right = 32, .top = 84, .below = 62, .title_x = 42, .title_y = 58

const struct rfl_theme rfl_themes[] = {
	{ .name = "screen", COLORS_LIGHT, TINTS_LIGHT, TYPE, STROKES, PAGE_SCREEN, MARGINS },
	{ .name = "paper",
	  COLORS_LIGHT,
	  TINTS_NONE,
	  TYPE,
	  HAIRLINES,
	  .width = 504,
	  .scale = 0.72,
	  .least = 0.72,
	  .has_title = true,
	  .has_footnote = true,
	  .left = 72,
	  .right = 16,
	  .top = 74,
	  .below = 56,
	  .title_x = 40,
	  .title_y = 54 },
	{ .name = "column",
	  COLORS_LIGHT,
	  TINTS_NONE,
	  TYPE_SMALL,
	  HAIRLINES,
	  .width = 241,
	  .scale = 0.6,
	  .least = 0.6,
	  .names_only = true,
	  .left = 58,
	  .right = 12,
	  .top = 10,
	  .below = 48,
	  .title_x = 36,
	  .title_y = 46 },
	{ .name = "slides",
	  COLORS_LIGHT,
	  TINTS_LIGHT,
	  TYPE_SMALL,
	  STROKES,
	  .width = 960,
	  .height = 540,
	  .scale = 1.4,
	  .least = 0.6,
	  .names_only = true,
	  .has_title = true,
	  .left = 66,
	  .right = 20,
	  .top = 70,
	  .below = 52,
	  .title_x = 38,
	  .title_y = 48 },
	{ .name = "dark", COLORS_DARK, TYPE, STROKES, PAGE_SCREEN, MARGINS },
	{ .name = "mono", COLORS_GREY, TINTS_NONE, TYPE, STROKES, PAGE_SCREEN, MARGINS },
};

const char *const rfl_plot_styles[] = {
	"screen", "paper", "column", "slides", "dark", "mono", NULL
};

const struct rfl_theme *rfl_theme_find(const char *name)
{
	for (size_t i = 0; i < RFL_ARRAY_LEN(rfl_themes) && name; i++)
		if (strcmp(rfl_themes[i].name, name) == 0)
			return &rfl_themes[i];
	return name ? NULL : rfl_themes;
}

bool rfl_theme_is_tinted(const struct rfl_theme *t)
{
	return memcmp(&t->memory, &t->paper, sizeof(t->paper)) != 0;
}

/* Relative luminance as defined by WCAG. */
static double luminance(struct rfl_color c)
{
	static const double weights[3] = { .2126, .7152, .0722 };
	const double parts[3] = { c.r / 255.0, c.g / 255.0, c.b / 255.0 };
	double sum = 0;

	for (int i = 0; i < 3; i++)
		sum += weights[i] * (parts[i] <= .04045 ? parts[i] / 12.92
							: pow((parts[i] + .055) / 1.055, 2.4));
	return sum;
}

double rfl_color_contrast(struct rfl_color a, struct rfl_color b)
{
	const double x = luminance(a), y = luminance(b);

	return (fmax(x, y) + .05) / (fmin(x, y) + .05);
}
