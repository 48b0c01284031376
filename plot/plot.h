/*
 * plot.h - draws roofline figures from points and ceilings; the public interface of plot/.
 *
 * There are two passes: rfl_plot_roofline() lays out a figure as a scene (scene.h), and
 * rfl_surface_draw() draws the scene on a surface (surface.h: PNG, PDF, SVG or a text record). The
 * same input gives the same bytes: the clock, the locale and the system's fonts are not used.
 */
#ifndef RFL_PLOT_PLOT_H
#define RFL_PLOT_PLOT_H

#include "base/err.h"
#include "peaks/peaks.h"
#include "plot/scene.h"
#include "plot/surface.h"
#include "roofline/points.h"

RFL_API_BEGIN

/** Sizes in points (1/72 inch). */
#define RFL_PLOT_WIDTH      1180.0
#define RFL_PLOT_HEIGHT     760.0
#define RFL_PLOT_MIN_WIDTH  200.0
#define RFL_PLOT_MIN_HEIGHT 150.0
#define RFL_PLOT_MAX_SIDE   8000.0
#define RFL_PLOT_MAX_CELLS  12

/** Names of the styles, NULL-terminated; the first is the default. */
extern const char *const rfl_plot_styles[];

/** Texts at the points. */
enum rfl_plot_labels {
	RFL_PLOT_LABELS_AUTO, /**< names as far as there is room, else numbers; of many points,
				 only a few names */
	RFL_PLOT_LABELS_ALL,  /**< as many names as there is room for, else numbers */
	RFL_PLOT_LABELS_NONE,
	RFL_PLOT_LABELS_NUMBERS, /**< only numbers: rows of the table or the key */
};

/** Kinds of rooflines, in the order of `plot --kind`. */
enum rfl_plot_kind {
	RFL_PLOT_ROOFLINE, /**< whole steps; all points if all are parts of steps */
	RFL_PLOT_LAYERS,
	RFL_PLOT_KERNELS,
	RFL_PLOT_HIERARCHICAL, /**< each point at its L1, L2 and DRAM intensities */
	RFL_PLOT_TRAJECTORY,   /**< from the smallest to the largest batch of each configuration */
	RFL_PLOT_COMPARE,      /**< arrows from the same configurations in `before` */
	RFL_PLOT_TIME,         /**< times of the bytes and the FLOPs at the ceilings */
};

/** Input for one roofline figure. Borrowed for the call only. */
struct rfl_plot_input {
	const struct rfl_points *points; /**< points; only points of `env` are drawn */
	const struct rfl_peaks_env *env; /**< ceilings; env->name selects the points */
	/** Several environments in one figure, instead of `env`; at most RFL_PLOT_MAX_CELLS. */
	const struct rfl_peaks_env *const *envs;
	size_t nenvs; /**< 0: `env` */
	bool overlay; /**< one plot for all, at most 7; otherwise a plot each, with common axes */
	/** All points, if `points` are only some of them, and how those were selected, for the
	 * footnote; NULL: `points` are all. */
	const struct rfl_points *all;
	const char *selection;
	const char *points_name, *points_hash; /**< for the footnote; NULL if unknown */
	const char *peaks_name, *peaks_hash;
	enum rfl_plot_kind kind;
	const struct rfl_points *before; /**< for RFL_PLOT_COMPARE: earlier points, of any env */
	const char *before_name;
	const char *version;     /**< program version; NULL to omit it */
	const char *title;       /**< NULL: generated from the data */
	const char *style;       /**< one of rfl_plot_styles; NULL: the first */
	double width, height;    /**< in points; 0: the default of the style */
	double xlim[2], ylim[2]; /**< range of an axis in FLOP/byte, GFLOP/s (RFL_PLOT_TIME:
				    ms); 0, 0: from the data */
	bool no_panel;           /**< a legend under the plot instead of the panel */
	enum rfl_plot_labels labels;
};

/** Check the range of an axis: positive and at least 3:1.
 * @param name  of the range, for the message
 * @return RFL_OK; RFL_EINVAL */
enum rfl_rc rfl_plot_check_limits(const char *name, const double limits[2],
				  struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Lay out the roofline of one environment, or of several.
 *
 * @param ret  set on success only; release with rfl_scene_free()
 * @return RFL_OK; RFL_EMISSING if there is no point to draw or a ceiling is unknown; RFL_EINVAL for
 * an invalid size or points computed with other ceilings
 */
enum rfl_rc rfl_plot_roofline(const struct rfl_plot_input *in, struct rfl_scene **ret,
			      struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Whether an environment has anything to show in a figure of this kind, whatever its ceilings.
 *
 * @param in  points, env (only its name is used), kind and before
 * @return RFL_OK; RFL_EMISSING if there is nothing
 */
enum rfl_rc rfl_plot_check(const struct rfl_plot_input *in, struct rfl_err *err) RFL_WARN_UNUSED;

RFL_API_END
#endif
