/*
 * theme.c - the values of theme.h.
 */
#include "plot/theme.h"

#define HEX(rgb)                                                    \
	{                                                           \
		(rgb) >> 16 & 255, (rgb) >> 8 & 255, (rgb)&255, 255 \
	}

const struct rfl_theme rfl_theme_light = {
	.paper = HEX(0xffffff),
	.ink = HEX(0x1f2328),
	.soft = HEX(0x636c76),
	.faint = HEX(0xd5d9de),
	.grid = HEX(0xdfe3e8),
	.grid_minor = HEX(0xeef0f3),
	.memory = HEX(0xf5fafe),
	.compute = HEX(0xfffaf3),
	.roof = HEX(0x1f2328),
	.roof_quiet = HEX(0x6e7781),
	.band = HEX(0xd3d6da),
	.leader = HEX(0x8c959f),
	.alarm = HEX(0xd55e00),
	.category = { HEX(0x0072b2), HEX(0xe69f00), HEX(0x009e73), HEX(0xd55e00), HEX(0xcc79a7),
		      HEX(0x56b4e9), HEX(0x4d4d4d) },
	.phase = { HEX(0x56b4e9), HEX(0x0072b2), HEX(0xe69f00), HEX(0xb3b8be) },
	.title = 17,
	.subtitle = 11,
	.axis = 12,
	.tick = 11,
	.label = 10.5,
	.label_second = 9.2,
	.ceiling = 10.5,
	.ceiling_quiet = 9.5,
	.heading = 12,
	.table = 10,
	.table_head = 9.2,
	.legend = 9.8,
	.footnote = 8.6,
	.marker = 7,
	.stroke_roof = 2,
	.stroke_quiet = 0.9,
	.stroke_axis = 1,
	.stroke_grid = 0.7,
	.stroke_mark = 0.8,
	.stroke_thin = 0.9,
	.halo = 3.2,
};
