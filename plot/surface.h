/*
 * surface.h - outputs that a scene is drawn on. Each is a row of a table that never loses a row:
 * what was not built says how to get it, what cannot work here says why.
 */
#ifndef RFL_PLOT_SURFACE_H
#define RFL_PLOT_SURFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "plot/scene.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a surface does by itself; surface.c stands in for what it does not. */
enum rfl_surface_caps {
	RFL_SURFACE_VECTOR = 1,     /**< lines and text stay lines and text */
	RFL_SURFACE_SELECTABLE = 2, /**< text can be searched and copied */
	RFL_SURFACE_NEEDS_FONT = 4, /**< draws glyphs from the carried font files */
	RFL_SURFACE_SHAPES = 8, /**< takes every marker; else circles only, the rest as polylines */
	RFL_SURFACE_TIPS = 16,  /**< shows a primitive's tip and keeps its id */
};

struct rfl_surface_spec {
	double dpi;           /**< pixels per inch of a raster; 0: 144 */
	const char *font_dir; /**< folder of the carried fonts; NULL where none is needed */
	bool no_text;         /**< leave texts out: for comparing geometry alone */
};

struct rfl_surface; /* one open output */

/** One row. The eight calls draw a primitive of their kind; slots may be NULL where noted. */
struct rfl_surface_ops {
	const char *name, *summary;
	const char *missing; /**< how to get it when it was not built in; then the rest is NULL */
	const char *suffix;  /**< of file names, without the dot */
	unsigned caps;
	/** Can it work now? RFL_OK, or RFL_EUNAVAILABLE with the reason. */
	enum rfl_rc (*probe)(const struct rfl_surface_spec *spec, struct rfl_err *err);
	/** @param out  what it writes into, at the latest in finish; borrowed until close */
	enum rfl_rc (*open)(const struct rfl_surface_spec *spec, const struct rfl_scene *scene,
			    struct rfl_buf *out, struct rfl_surface **ret, struct rfl_err *err);
	void (*line)(struct rfl_surface *s, const struct rfl_prim *p);
	void (*polyline)(struct rfl_surface *s, const struct rfl_prim *p);
	void (*rect)(struct rfl_surface *s, const struct rfl_prim *p);
	void (*marker)(struct rfl_surface *s, const struct rfl_prim *p);
	void (*text)(struct rfl_surface *s, const struct rfl_prim *p);
	void (*clip)(struct rfl_surface *s, const struct rfl_prim *p);
	/** NULL: the compiled metrics of font.h, which are what layout uses */
	double (*measure_text)(struct rfl_surface *s, const char *text, enum rfl_face face,
			       double size);
	enum rfl_rc (*finish)(struct rfl_surface *s, struct rfl_err *err);
	/** Accepts what open made, finished or not. */
	void (*close)(struct rfl_surface *s);
};

/** Row i in order of preference, NULL behind the last. */
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

#ifdef __cplusplus
}
#endif
#endif
