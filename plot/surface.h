/*
 * surface.h - output formats for scenes. All are in one table, with instructions for those that
 * were not built and reasons for those that do not work here.
 */
#ifndef RFL_PLOT_SURFACE_H
#define RFL_PLOT_SURFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "plot/scene.h"

RFL_API_BEGIN

#define RFL_TERMINAL_COLUMNS 100
#define RFL_TERMINAL_ROWS    32

struct rfl_surface_spec {
	double dpi;           /**< pixels per inch of a raster image; 0: 144 */
	const char *font_dir; /**< directory with roofline's fonts; may be NULL if none is needed */
	bool no_text;         /**< omit texts, to compare only the geometry */
	int columns, rows;    /**< size of a terminal, at least two rows; 0: default */
	bool ansi;            /**< the terminal has colours */
	struct _cairo *cairo; /**< PDF: draw on this page, at its origin, instead of in a file */
};

struct rfl_surface_ops;

/** One drawing in progress. */
struct rfl_surface {
	const struct rfl_surface_ops *ops;
	const struct rfl_surface_spec *spec;
	const struct rfl_scene *scene;
	struct rfl_buf *out; /**< contents of the file, complete after finish() */
	void *state;         /**< private to the backend; NULL at first */
};

/** One output format. */
struct rfl_surface_ops {
	const char *name, *summary;
	const char *missing; /**< if it was not built, how to get it; the rest is NULL then */
	const char *suffix;  /**< suffix of file names, without the dot */
	bool printed;        /**< written to standard output instead of a file */
	bool markers; /**< draws all marker shapes; otherwise only circles, and other shapes are
			 passed as polygons */
	/** RFL_OK if it works here, or RFL_EUNAVAILABLE with the reason. NULL: it always works. */
	enum rfl_rc (*probe)(const struct rfl_surface_spec *spec, struct rfl_err *err);
	enum rfl_rc (*begin)(struct rfl_surface *s, struct rfl_err *err);
	/** Draw one primitive of any kind; a text is one of the scene. */
	void (*draw)(struct rfl_surface *s, const struct rfl_prim *p);
	/** Called after the last primitive; may be NULL. */
	enum rfl_rc (*finish)(struct rfl_surface *s, struct rfl_err *err);
	/** Release the state, also if begin() failed; may be NULL. */
	void (*close)(struct rfl_surface *s);
};

extern const struct rfl_surface_ops rfl_surface_png, rfl_surface_pdf, rfl_surface_svg,
	rfl_surface_terminal;

/** Row i in order of preference, NULL past the end. */
const struct rfl_surface_ops *rfl_surface_at(size_t i);

/** Find a row by name; NULL with RFL_ENOTFOUND, or RFL_EUNAVAILABLE if it was not built. */
const struct rfl_surface_ops *rfl_surface_find(const char *name, struct rfl_err *err);

/** The names of all formats for an option, NULL-terminated. */
extern const char *const rfl_surface_formats[];

/**
 * Draw a scene.
 *
 * @param out  the contents of the file are appended
 * @return RFL_OK; RFL_EUNAVAILABLE with the reason and a fix
 */
enum rfl_rc rfl_surface_draw(const struct rfl_surface_ops *ops, const struct rfl_surface_spec *spec,
			     const struct rfl_scene *scene, struct rfl_buf *out,
			     struct rfl_err *err) RFL_WARN_UNUSED;

/* For surface implementations. */

/** Append a coordinate with at most `digits` decimals and no trailing zeros ("-0" is "0"). */
void rfl_surface__number(struct rfl_buf *out, double value, int digits);

/** Set the on and off lengths of a dash for this stroke width. @return their number */
int rfl_surface__dash(enum rfl_dash dash, double width, double lengths[4]);

RFL_API_END
#endif
