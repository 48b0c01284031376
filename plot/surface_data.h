/*
 * surface_data.h - the data that a picture carries: points, ceilings and options, from which it can
 * be redrawn. PNG files have it in an iTXt chunk, SVG files in a <metadata> element.
 */
#ifndef RFL_PLOT_SURFACE_DATA_H
#define RFL_PLOT_SURFACE_DATA_H

#include "base/json.h"
#include "peaks/peaks.h"
#include "roofline/points.h"

#define RFL_DATA_SCHEMA      "roofline.figure/1"
#define RFL_DATA_PNG_KEYWORD "roofline"
#define RFL_DATA_SVG_ID      "roofline-data"

/** Largest text that is written or read, in bytes, and most points that are written. */
#define RFL_DATA_MAX    ((size_t)64 << 20)
#define RFL_DATA_POINTS 20000

struct rfl_figure_data {
	struct rfl_points *points;
	struct rfl_peaks *peaks;
	struct rfl_points *before; /**< earlier points of `compare`; NULL: none */
	/** Names of the files, without their directories. */
	const char *points_name, *peaks_name, *before_name;
	json_t *options; /**< an object of strings and lists of strings, by option name */
	json_t *root;    /**< owns the names and options of loaded data; otherwise NULL */
};

/** Prepare points for a picture that others will see: in every text, absolute paths lose their
 * directories, and control characters and invalid UTF-8 become '?'. */
void rfl_figure_data_clean(struct rfl_points *points);

/** Append the text that a picture carries, a JSON object on one line.
 * @param data  points cleaned by rfl_figure_data_clean()
 * @param envs  the environments drawn, each once; only their points and ceilings are written
 * @return RFL_OK; RFL_EOVERFLOW if there are too many points */
enum rfl_rc rfl_figure_data_write(const struct rfl_figure_data *data, const char *const *envs,
				  size_t nenvs, struct rfl_buf *out,
				  struct rfl_err *err) RFL_WARN_UNUSED;

/**
 * Load the data of a PNG or SVG file.
 *
 * @param ret  set on success only; release with rfl_figure_data_free()
 * @return RFL_OK; RFL_EIO; RFL_EMISSING if the picture carries no data; RFL_EFORMAT if it is
 * damaged or not a picture
 */
enum rfl_rc rfl_figure_data_load(const char *path, struct rfl_figure_data **ret,
				 struct rfl_err *err) RFL_WARN_UNUSED;

/** Release loaded data. Accepts NULL. */
void rfl_figure_data_free(struct rfl_figure_data *data);
RFL_AUTOPTR_TYPE(figure_data, free);

#endif
