/*
 * theme.h - colours, sizes and strokes of a figure in one place. Sizes are points at scale 1, the
 * scale of a figure of 1180 x 760 points; smaller and larger figures multiply them.
 */
#ifndef RFL_PLOT_THEME_H
#define RFL_PLOT_THEME_H

#include "plot/scene.h"

#define RFL_THEME_COLORS 7

struct rfl_theme {
	struct rfl_color paper, ink, soft, faint; /* page, main text, secondary text, hairlines */
	struct rfl_color grid, grid_minor;
	struct rfl_color memory, compute; /* tint left and right of the knee */
	struct rfl_color roof, roof_quiet, band;
	struct rfl_color leader, alarm;
	struct rfl_color category[RFL_THEME_COLORS]; /* Okabe and Ito's palette, by distance */
	struct rfl_color phase[4];                   /* forward, backward, optimizer, data */
	double title, subtitle, axis, tick;
	double label, label_second, ceiling, ceiling_quiet;
	double heading, table, table_head, legend, footnote;
	double marker; /* radius */
	double stroke_roof, stroke_quiet, stroke_axis, stroke_grid, stroke_mark, stroke_thin;
	double halo; /* width of the stroke under a text */
};

/** White paper. */
extern const struct rfl_theme rfl_theme_light;

#endif
