/*
 * surface_cairo_missing.c - the rows of PNG and PDF in a program that was built without cairo.
 */
#include "plot/surface_impl.h"

#define HOW "built without cairo (install libcairo2-dev, configure with -DRFL_CAIRO=ON)"

const struct rfl_surface_ops rfl_surface_png = {
	.name = "png",
	.summary = "pixels, at any resolution",
	.missing = HOW,
	.suffix = "png",
};

const struct rfl_surface_ops rfl_surface_pdf = {
	.name = "pdf",
	.summary = "for papers: scalable, fonts embedded",
	.missing = HOW,
	.suffix = "pdf",
};
