/*
 * plot.h - pictures from points and ceilings. Read this first in the room.
 *
 * Two passes: rfl_plot_roofline() lays a figure out as a scene (scene.h), rfl_surface_draw()
 * replays the scene on a surface (surface.h: PNG, PDF, SVG, a text record). The same input gives
 * the same bytes: nothing here looks at the clock, the locale or the system's fonts.
 */
#ifndef RFL_PLOT_PLOT_H
#define RFL_PLOT_PLOT_H

#include "base/err.h"
#include "peaks/peaks.h"
#include "plot/scene.h"
#include "plot/surface.h"
#include "roofline/points.h"

/** Points are 1/72 inch. */
#define RFL_PLOT_WIDTH      1180.0
#define RFL_PLOT_HEIGHT     760.0
#define RFL_PLOT_MIN_WIDTH  320.0
#define RFL_PLOT_MIN_HEIGHT 240.0
#define RFL_PLOT_MAX_SIDE   8000.0

/** What one roofline figure is made of. Borrowed for the call only. */
struct rfl_plot_input {
	const struct rfl_points *points;       /**< of any environments; those of env are drawn */
	const struct rfl_peaks_env *env;       /**< its ceilings; env->name selects the points */
	const char *points_name, *points_hash; /**< for the footnote; NULL when not known */
	const char *peaks_name, *peaks_hash;
	const char *version;  /**< of the program; NULL to leave it out */
	const char *title;    /**< NULL: made from the data */
	double width, height; /**< points; 0: RFL_PLOT_WIDTH, RFL_PLOT_HEIGHT */
};

/**
 * Lay out the roofline of one environment.
 *
 * @param ret  set on success only; release with rfl_scene_free()
 * @return RFL_OK; RFL_EMISSING when there is no point to draw or a ceiling is not known;
 *         RFL_EINVAL for a size that cannot be, or points made with other ceilings than these;
 *         RFL_ENOMEM
 */
enum rfl_rc rfl_plot_roofline(const struct rfl_plot_input *in, struct rfl_scene **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

#endif
