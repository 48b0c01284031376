/*
 * surface_impl.h - what the files surface_*.c share. A surface embeds struct rfl_surface first and
 * gets back to itself by a checked downcast: assert(s->ops == &rfl_surface_svg).
 */
#ifndef RFL_PLOT_SURFACE_IMPL_H
#define RFL_PLOT_SURFACE_IMPL_H

#include "plot/surface.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_surface {
	const struct rfl_surface_ops *ops;
	struct rfl_buf *out;
};

extern const struct rfl_surface_ops rfl_surface_png, rfl_surface_pdf;
extern const struct rfl_surface_ops rfl_surface_svg;
extern const struct rfl_surface_ops rfl_surface_record;

#define RFL_SURFACE_DPI 144.0

/** Append a coordinate with at most `digits` decimals and no trailing zeros ("-0" is "0"). */
void rfl_surface__number(struct rfl_buf *out, double value, int digits);

/** On and off lengths of a dash for a stroke of this width; returns false for a solid line. */
bool rfl_surface__dash(enum rfl_dash dash, double width, double lengths[2]);

#ifdef __cplusplus
}
#endif
#endif
