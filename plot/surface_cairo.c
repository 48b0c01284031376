/*
 * surface_cairo.c - PNG and PDF with cairo, with glyphs from roofline's font files through
 * FreeType. fontconfig is not used, so that a figure is the same on a machine without fonts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairo-ft.h>
#include <cairo-pdf.h>
#include <cairo.h>
#include <png.h>

#include "base/alloc.h"
#include "base/file.h"
#include "plot/surface.h"
#include "plot/surface_data.h"

#define DPI   144.0
#define LEVEL 3 /* compression of PNG files */

/* A FreeType face with a separate library. cairo may keep fonts in its cache after a surface is
 * destroyed, so that the pair belongs to cairo's font face, which frees it. */
struct glyphs {
	FT_Library library;
	FT_Face face;
};

static const cairo_user_data_key_t glyphs_key;

struct canvas {
	double dpi;
	cairo_font_face_t *faces[RFL_FACE_COUNT];
	cairo_surface_t *surface;
	cairo_t *cr;
};

static void glyphs_free(void *data)
{
	struct glyphs *g = data;

	if (!g)
		return;
	if (g->face)
		FT_Done_Face(g->face);
	if (g->library)
		FT_Done_FreeType(g->library);
	free(g);
}

static void faces_close(cairo_font_face_t *faces[RFL_FACE_COUNT])
{
	for (int i = 0; i < RFL_FACE_COUNT; i++)
		if (faces[i])
			cairo_font_face_destroy(faces[i]);
}

static enum rfl_rc faces_open(cairo_font_face_t *faces[RFL_FACE_COUNT], const char *dir,
			      struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!dir)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"no font directory was found next to the program; use --format "
				"svg, which needs no fonts");
	for (int i = 0; rc == RFL_OK && i < RFL_FACE_COUNT; i++) {
		RFL_AUTOFREE char *path = rfl_path_join(dir, rfl_face_files[i]);
		struct glyphs *g = rfl_alloc_array(1, sizeof(*g));

		if (FT_Init_FreeType(&g->library) != 0)
			rfl_out_of_memory();
		if (FT_New_Face(g->library, path, 0, &g->face) != 0) {
			g->face = NULL;
			rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
				      "%s: not found or not a font; install fonts-liberation and "
				      "build again, or use --format svg, which needs no fonts",
				      path);
		} else {
			faces[i] =
				cairo_ft_font_face_create_for_ft_face(g->face, FT_LOAD_NO_HINTING);
			if (cairo_font_face_set_user_data(faces[i], &glyphs_key, g, glyphs_free) !=
			    CAIRO_STATUS_SUCCESS)
				rfl_out_of_memory();
			g = NULL; /* owned by the face from here on */
		}
		glyphs_free(g);
	}
	return rc;
}

static enum rfl_rc cairo_probe(const struct rfl_surface_spec *spec, struct rfl_err *err)
{
	cairo_font_face_t *faces[RFL_FACE_COUNT] = { NULL };
	enum rfl_rc rc = faces_open(faces, spec ? spec->font_dir : NULL, err);

	faces_close(faces);
	return rc;
}

static cairo_status_t append(void *closure, const unsigned char *data, unsigned len)
{
	struct rfl_buf *out = closure;

	rfl_buf_append(out, data, len);
	return out->failed ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static void set_color(cairo_t *cr, struct rfl_color c)
{
	cairo_set_source_rgba(cr, c.r / 255.0, c.g / 255.0, c.b / 255.0, c.a / 255.0);
}

static enum rfl_rc canvas_begin(struct rfl_surface *s, struct rfl_err *err)
{
	const struct rfl_surface_spec *spec = s->spec;
	const struct rfl_scene *scene = s->scene;
	const bool raster = s->ops == &rfl_surface_png;
	struct canvas *c = rfl_alloc_array(1, sizeof(*c));
	cairo_font_options_t *options;
	enum rfl_rc rc;

	s->state = c;
	c->dpi = spec->dpi > 0 ? spec->dpi : DPI;
	const double zoom = raster ? c->dpi / 72 : 1;

	if (!spec->no_text) {
		rc = faces_open(c->faces, spec->font_dir, err);
		if (rc != RFL_OK)
			return rc;
	}
	if (!raster && spec->cairo) {
		c->cr = cairo_reference(spec->cairo);
		c->surface = cairo_surface_reference(cairo_get_target(c->cr));
	} else if (raster) {
		c->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24,
							(int)lround(scene->width * zoom),
							(int)lround(scene->height * zoom));
	} else {
		c->surface = cairo_pdf_surface_create_for_stream(append, s->out, scene->width,
								 scene->height);
		cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_TITLE, scene->title);
		cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_SUBJECT,
					       scene->caption);
		/* Not the current time: the same input gives the same bytes. */
		cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_CREATE_DATE,
					       "2000-01-01T00:00:00Z");
	}
	c->cr = c->cr ? c->cr : cairo_create(c->surface);
	if (cairo_status(c->cr) != CAIRO_STATUS_SUCCESS)
		return rfl_fail(err, RFL_ENOMEM, 0, "picture of %.0f x %.0f points at %.0f dpi: %s",
				scene->width, scene->height, c->dpi,
				cairo_status_to_string(cairo_status(c->cr)));
	/* Use one drawing state for both formats: no hinting, grey antialiasing, exact advances. */
	options = cairo_font_options_create();
	cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
	cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
	cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
	cairo_scale(c->cr, zoom, zoom);
	cairo_set_font_options(c->cr, options);
	cairo_font_options_destroy(options);
	cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
	set_color(c->cr, scene->paper);
	cairo_save(c->cr);
	if (spec->cairo) {
		cairo_rectangle(c->cr, 0, 0, scene->width, scene->height);
		cairo_clip(c->cr);
	}
	cairo_paint(c->cr);
	cairo_restore(c->cr);
	return RFL_OK;
}

static void draw_text(const struct canvas *c, const struct rfl_prim *p)
{
	const struct rfl_prim_text *t = &p->at.text;
	const double back = rfl_text_width(t->text, t->face, t->size) * t->anchor / 2;

	cairo_save(c->cr);
	cairo_translate(c->cr, t->x, t->y);
	cairo_rotate(c->cr, -t->angle);
	cairo_set_font_face(c->cr, c->faces[t->face]);
	cairo_set_font_size(c->cr, t->size);
	if (t->halo.a != 0) {
		cairo_move_to(c->cr, -back, 0);
		cairo_text_path(c->cr, t->text);
		set_color(c->cr, t->halo);
		cairo_set_line_width(c->cr, t->halo_width);
		cairo_set_dash(c->cr, NULL, 0, 0);
		/* coarse, as it mostly paints paper colour on paper: takes a third of the time */
		cairo_set_antialias(c->cr, CAIRO_ANTIALIAS_FAST);
		cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_BEVEL);
		cairo_stroke(c->cr);
	}
	cairo_move_to(c->cr, -back, 0);
	set_color(c->cr, p->fill);
	cairo_show_text(c->cr, t->text);
	cairo_new_path(c->cr);
	cairo_restore(c->cr);
}

static void canvas_draw(struct rfl_surface *s, const struct rfl_prim *p)
{
	const struct canvas *c = s->state;
	cairo_t *cr = c->cr;
	double lengths[4];

	switch (p->kind) {
	case RFL_PRIM_LINE:
		cairo_move_to(cr, p->at.line.x0, p->at.line.y0);
		cairo_line_to(cr, p->at.line.x1, p->at.line.y1);
		break;
	case RFL_PRIM_POLYGON:
		for (size_t i = 0; i < p->at.polygon.n; i++)
			cairo_line_to(cr, p->at.polygon.points[i].x, p->at.polygon.points[i].y);
		cairo_close_path(cr);
		break;
	case RFL_PRIM_RECT:
		cairo_rectangle(cr, p->at.rect.x, p->at.rect.y, p->at.rect.w, p->at.rect.h);
		break;
	case RFL_PRIM_MARKER:
		cairo_new_sub_path(cr);
		cairo_arc(cr, p->at.marker.x, p->at.marker.y, p->at.marker.r, 0, 2 * acos(-1));
		cairo_close_path(cr);
		break;
	case RFL_PRIM_TEXT:
		draw_text(c, p);
		return;
	}
	if (p->fill.a != 0) {
		set_color(cr, p->fill);
		cairo_fill_preserve(cr);
	}
	if (p->stroke.a != 0) {
		set_color(cr, p->stroke);
		cairo_set_line_width(cr, p->width);
		cairo_set_dash(cr, lengths, rfl_surface__dash(p->dash, p->width, lengths), 0);
		cairo_stroke_preserve(cr);
	}
	cairo_new_path(cr);
}

static enum rfl_rc check(const struct canvas *c, struct rfl_err *err)
{
	cairo_status_t status = cairo_status(c->cr);

	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_status(c->surface);
	if (status != CAIRO_STATUS_SUCCESS)
		return rfl_fail(err, RFL_EFAILED, (int)status, "cairo: %s",
				cairo_status_to_string(status));
	return RFL_OK;
}

/* A PNG file in progress, and the message of libpng if it failed. */
struct encoder {
	png_structp png;
	png_infop info;
	struct rfl_buf *out;
	char message[128];
};

static void encoder_append(png_structp png, png_bytep data, size_t len)
{
	struct encoder *e = png_get_io_ptr(png);

	rfl_buf_append(e->out, data, len);
}

static void encoder_flush(png_structp png)
{
	(void)png;
}

static void encoder_fail(png_structp png, png_const_charp message)
{
	struct encoder *e = png_get_error_ptr(png);

	(void)snprintf(e->message, sizeof(e->message), "%s", message);
	png_longjmp(png, 1);
}

static void encoder_warn(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

/* Write a PNG with libpng: cairo's writer supports neither resolution nor compression level.
 * Rows without filters compress best, as most pixels equal the one above and left, and level 3
 * takes half the time of level 6 for 5 % more bytes. No time stamp is written, so that the same
 * input gives the same bytes. @return false after an error of libpng */
static bool encode(struct encoder *e, cairo_surface_t *surface, double dpi, const char *data)
{
	static const uint32_t first_byte = 1; /* on a little-endian machine */
	const uint32_t per_meter = (uint32_t)lround(dpi / 0.0254);
	const size_t stride = (size_t)cairo_image_surface_get_stride(surface);
	const int height = cairo_image_surface_get_height(surface);
	unsigned char *pixels = cairo_image_surface_get_data(surface);
	const bool little = *(const unsigned char *)&first_byte == 1;

	if (setjmp(png_jmpbuf(e->png)) != 0)
		return false;
	png_set_write_fn(e->png, e, encoder_append, encoder_flush);
	png_set_IHDR(e->png, e->info, (png_uint_32)cairo_image_surface_get_width(surface),
		     (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_pHYs(e->png, e->info, per_meter, per_meter, PNG_RESOLUTION_METER);
	if (data) {
		png_text text = { .compression = PNG_ITXT_COMPRESSION_zTXt,
				  .key = (png_charp)(uintptr_t)RFL_DATA_PNG_KEYWORD,
				  .text = (png_charp)(uintptr_t)data };

		png_set_text(e->png, e->info, &text, 1);
		png_set_text_compression_level(e->png, LEVEL);
	}
	png_set_filter(e->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
	png_set_compression_level(e->png, LEVEL);
	png_set_compression_mem_level(e->png, 7); /* tables that a cache holds */
	png_write_info(e->png, e->info);
	/* cairo's pixels are 0x..RRGGBB in native byte order */
	png_set_filler(e->png, 0, little ? PNG_FILLER_AFTER : PNG_FILLER_BEFORE);
	if (little)
		png_set_bgr(e->png);
	for (int y = 0; y < height; y++)
		png_write_row(e->png, pixels + (size_t)y * stride);
	png_write_end(e->png, e->info);
	return true;
}

static enum rfl_rc png_finish(struct rfl_surface *s, struct rfl_err *err)
{
	const struct canvas *c = s->state;
	struct encoder e = { .out = s->out };
	enum rfl_rc rc = check(c, err);

	if (rc != RFL_OK)
		return rc;
	cairo_surface_flush(c->surface);
	e.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &e, encoder_fail, encoder_warn);
	e.info = e.png ? png_create_info_struct(e.png) : NULL;
	if (!e.info)
		rfl_out_of_memory();
	if (!encode(&e, c->surface, c->dpi, s->scene->data))
		rc = rfl_fail(err, RFL_EFAILED, 0, "libpng: %s", e.message);
	png_destroy_write_struct(&e.png, &e.info);
	return rc;
}

static enum rfl_rc pdf_finish(struct rfl_surface *s, struct rfl_err *err)
{
	const struct canvas *c = s->state;

	if (!s->spec->cairo) {
		cairo_show_page(c->cr);
		cairo_surface_finish(c->surface);
	}
	return check(c, err);
}

static void canvas_close(struct rfl_surface *s)
{
	struct canvas *c = s->state;

	if (!c)
		return;
	if (c->cr)
		cairo_destroy(c->cr);
	if (c->surface)
		cairo_surface_destroy(c->surface);
	faces_close(c->faces);
	free(c);
}

const struct rfl_surface_ops rfl_surface_png = {
	.name = "png",
	.summary = "raster image of any resolution",
	.suffix = "png",
	.probe = cairo_probe,
	.begin = canvas_begin,
	.draw = canvas_draw,
	.finish = png_finish,
	.close = canvas_close,
};

const struct rfl_surface_ops rfl_surface_pdf = {
	.name = "pdf",
	.summary = "scalable, with embedded fonts, for papers",
	.suffix = "pdf",
	.probe = cairo_probe,
	.begin = canvas_begin,
	.draw = canvas_draw,
	.finish = pdf_finish,
	.close = canvas_close,
};
