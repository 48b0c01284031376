/*
 * surface.h - output formats for scenes. All are in one table; those that were not built say how to
 * get them, and those that cannot work here say why.
 */
#ifndef RFL_PLOT_SURFACE_H
#define RFL_PLOT_SURFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "plot/scene.h"

struct rfl_surface_spec {
	double dpi;           /**< pixels per inch of a raster; 0: 144 */
	const char *font_dir; /**< folder of roofline's fonts; NULL if none is needed */
	bool no_text;         /**< omit texts, to compare geometry alone */
};

struct rfl_surface_ops;

/** One drawing in progress. */
struct rfl_surface {
	const struct rfl_surface_ops *ops;
	const struct rfl_surface_spec *spec;
	const struct rfl_scene *scene;
	struct rfl_buf *out; /**< the file's bytes, at the latest after finish */
	void *state;         /**< the backend's own; NULL at first */
};

/** One row. */
struct rfl_surface_ops {
	const char *name, *summary;
	const char *missing; /**< how to get it if it was not built; the rest is NULL then */
	const char *suffix;  /**< of file names, without the dot */
	bool markers;        /**< draws every shape of marker; else only circles, and the other
			      *   shapes arrive as polylines */
	/** RFL_OK if it works here, or RFL_EUNAVAILABLE with the reason. NULL: it always works. */
	enum rfl_rc (*probe)(const struct rfl_surface_spec *spec, struct rfl_err *err);
	enum rfl_rc (*begin)(struct rfl_surface *s, struct rfl_err *err);
	/** One primitive, of any kind. */
	void (*draw)(struct rfl_surface *s, const struct rfl_prim *p);
	/** After the last primitive; may be NULL. */
	enum rfl_rc (*finish)(struct rfl_surface *s, struct rfl_err *err);
	/** Release the state, also after a failed begin; may be NULL. */
	void (*close)(struct rfl_surface *s);
};

extern const struct rfl_surface_ops rfl_surface_png, rfl_surface_pdf, rfl_surface_svg;

/** Row i in order of preference, NULL past the end. */
const struct rfl_surface_ops *rfl_surface_at(size_t i);

/** A row by name; NULL with RFL_ENOTFOUND, or RFL_EUNAVAILABLE when it was not built in. */
const struct rfl_surface_ops *rfl_surface_find(const char *name, struct rfl_err *err);

/** The names of the rows, NULL at the end: for an option. */
extern const char *const rfl_surface_formats[];

/**
 * Draw a scene.
 *
 * @param out  the file's bytes are appended to it
 * @return RFL_OK; RFL_EUNAVAILABLE naming what is missing and how to get it; RFL_ENOMEM
 */
enum rfl_rc rfl_surface_draw(const struct rfl_surface_ops *ops, const struct rfl_surface_spec *spec,
			     const struct rfl_scene *scene, struct rfl_buf *out,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* For backends. */

/** Append a coordinate with at most `digits` decimals and no trailing zeros ("-0" is "0"). */
void rfl_surface__number(struct rfl_buf *out, double value, int digits);

/** On and off lengths of a dash for a stroke of this width; returns false for a solid line. */
bool rfl_surface__dash(enum rfl_dash dash, double width, double lengths[2]);

#endif
