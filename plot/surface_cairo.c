/*
 * surface_cairo.c - PNG and PDF by cairo, with glyphs from the carried font files through
 * FreeType; fontconfig is never asked, so that a figure is the same on a machine without fonts.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <cairo-ft.h>
#include <cairo-pdf.h>
#include <cairo.h>

#include "base/file.h"
#include "plot/png_write.h"
#include "plot/surface_impl.h"

/* A FreeType face with a library of its own. cairo keeps fonts in a cache beyond the life of a
 * surface, so the pair belongs to cairo's font face and dies with it. */
struct glyphs {
	FT_Library library;
	FT_Face face;
};

struct faces {
	cairo_font_face_t *cairo[RFL_FACE_COUNT];
};

static const cairo_user_data_key_t glyphs_key;

struct canvas {
	struct rfl_surface base;
	double dpi;
	struct faces faces;
	cairo_surface_t *surface;
	cairo_t *cr;
};

static struct canvas *canvas_of(struct rfl_surface *s)
{
	assert(s->ops == &rfl_surface_png || s->ops == &rfl_surface_pdf);
	return (struct canvas *)s;
}

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

static void faces_close(struct faces *f)
{
	for (int i = 0; i < RFL_FACE_COUNT; i++)
		if (f->cairo[i])
			cairo_font_face_destroy(f->cairo[i]);
}

static enum rfl_rc face_open(const char *path, cairo_font_face_t **ret, struct rfl_err *err)
{
	struct glyphs *g = calloc(1, sizeof(*g));
	cairo_font_face_t *face = NULL;
	enum rfl_rc rc = RFL_OK;

	if (!g || FT_Init_FreeType(&g->library) != 0) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: no memory for a font", path);
		goto done;
	}
	if (FT_New_Face(g->library, path, 0, &g->face) != 0) {
		g->face = NULL;
		rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
			      "%s: the font of the figures is missing or not a font; install "
			      "fonts-liberation and build again, or copy the file there "
			      "(--format svg needs no font)",
			      path);
		goto done;
	}
	face = cairo_ft_font_face_create_for_ft_face(g->face, FT_LOAD_NO_HINTING);
	if (cairo_font_face_set_user_data(face, &glyphs_key, g, glyphs_free) !=
	    CAIRO_STATUS_SUCCESS) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "%s: no memory for a font", path);
		cairo_font_face_destroy(face);
		goto done;
	}
	g = NULL; /* of the face from here on */
	*ret = face;
done:
	glyphs_free(g);
	return rc;
}

static enum rfl_rc faces_open(struct faces *f, const char *dir, struct rfl_err *err)
{
	enum rfl_rc rc = RFL_OK;

	if (!dir)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"no folder of fonts was found beside the program; "
				"--format svg needs none");
	for (int i = 0; rc == RFL_OK && i < RFL_FACE_COUNT; i++) {
		char *path = rfl_path_join(dir, rfl_face_files[i]);

		rc = path ? face_open(path, &f->cairo[i], err)
			  : rfl_fail(err, RFL_ENOMEM, 0, "no memory for a font");
		free(path);
	}
	return rc;
}

static enum rfl_rc cairo_probe(const struct rfl_surface_spec *spec, struct rfl_err *err)
{
	struct faces f = { { NULL } };
	enum rfl_rc rc = faces_open(&f, spec ? spec->font_dir : NULL, err);

	faces_close(&f);
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

/* One drawing state for both surfaces: no hinting, grey antialiasing, exact advances. */
static void prepare(struct canvas *c, const struct rfl_scene *scene)
{
	cairo_font_options_t *options = cairo_font_options_create();

	cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
	cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
	cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
	cairo_set_font_options(c->cr, options);
	cairo_font_options_destroy(options);
	cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
	set_color(c->cr, scene->paper);
	cairo_paint(c->cr);
}

static enum rfl_rc canvas_open(const struct rfl_surface_ops *ops,
			       const struct rfl_surface_spec *spec, const struct rfl_scene *scene,
			       struct rfl_buf *out, struct rfl_surface **ret, struct rfl_err *err)
{
	struct canvas *c = calloc(1, sizeof(*c));
	enum rfl_rc rc = RFL_OK;
	double zoom = 1;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "no memory for a picture");
	c->base.ops = ops;
	c->base.out = out;
	c->dpi = spec->dpi > 0 ? spec->dpi : RFL_SURFACE_DPI;
	if (!spec->no_text) {
		rc = faces_open(&c->faces, spec->font_dir, err);
		if (rc != RFL_OK)
			goto done;
	}
	if (ops == &rfl_surface_png) {
		zoom = c->dpi / 72;
		c->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24,
							(int)lround(scene->width * zoom),
							(int)lround(scene->height * zoom));
	} else {
		c->surface = cairo_pdf_surface_create_for_stream(append, out, scene->width,
								 scene->height);
		cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_TITLE, scene->title);
		/* Not now: the same input gives the same bytes. */
		cairo_pdf_surface_set_metadata(c->surface, CAIRO_PDF_METADATA_CREATE_DATE,
					       "2000-01-01T00:00:00Z");
	}
	c->cr = cairo_create(c->surface);
	if (cairo_status(c->cr) != CAIRO_STATUS_SUCCESS) {
		rc = rfl_fail(err, RFL_ENOMEM, 0, "a picture of %.0f x %.0f points at %.0f dpi: %s",
			      scene->width, scene->height, c->dpi,
			      cairo_status_to_string(cairo_status(c->cr)));
		goto done;
	}
	cairo_scale(c->cr, zoom, zoom);
	prepare(c, scene);
	*ret = &c->base;
	c = NULL;
done:
	if (c)
		ops->close(&c->base);
	return rc;
}

static enum rfl_rc png_open(const struct rfl_surface_spec *spec, const struct rfl_scene *scene,
			    struct rfl_buf *out, struct rfl_surface **ret, struct rfl_err *err)
{
	return canvas_open(&rfl_surface_png, spec, scene, out, ret, err);
}

static enum rfl_rc pdf_open(const struct rfl_surface_spec *spec, const struct rfl_scene *scene,
			    struct rfl_buf *out, struct rfl_surface **ret, struct rfl_err *err)
{
	return canvas_open(&rfl_surface_pdf, spec, scene, out, ret, err);
}

/* Fill and stroke the current path as the primitive says, and forget the path. */
static void paint(cairo_t *cr, const struct rfl_prim *p)
{
	double lengths[2];

	if (p->fill.a != 0) {
		set_color(cr, p->fill);
		cairo_fill_preserve(cr);
	}
	if (p->stroke.a != 0) {
		set_color(cr, p->stroke);
		cairo_set_line_width(cr, p->width);
		if (rfl_surface__dash(p->dash, p->width, lengths))
			cairo_set_dash(cr, lengths, 2, 0);
		else
			cairo_set_dash(cr, NULL, 0, 0);
		cairo_stroke_preserve(cr);
	}
	cairo_new_path(cr);
}

static void cairo_draw_line(struct rfl_surface *s, const struct rfl_prim *p)
{
	cairo_t *cr = canvas_of(s)->cr;

	cairo_move_to(cr, p->at.line.x0, p->at.line.y0);
	cairo_line_to(cr, p->at.line.x1, p->at.line.y1);
	paint(cr, p);
}

static void cairo_draw_polyline(struct rfl_surface *s, const struct rfl_prim *p)
{
	cairo_t *cr = canvas_of(s)->cr;

	for (size_t i = 0; i < p->at.polyline.n; i++)
		cairo_line_to(cr, p->at.polyline.points[i].x, p->at.polyline.points[i].y);
	if (p->at.polyline.closed)
		cairo_close_path(cr);
	paint(cr, p);
}

static void cairo_draw_rect(struct rfl_surface *s, const struct rfl_prim *p)
{
	cairo_t *cr = canvas_of(s)->cr;

	cairo_rectangle(cr, p->at.rect.x, p->at.rect.y, p->at.rect.w, p->at.rect.h);
	paint(cr, p);
}

static void cairo_draw_marker(struct rfl_surface *s, const struct rfl_prim *p)
{
	cairo_t *cr = canvas_of(s)->cr;

	cairo_new_sub_path(cr);
	cairo_arc(cr, p->at.marker.x, p->at.marker.y, p->at.marker.r, 0, 2 * acos(-1));
	cairo_close_path(cr);
	paint(cr, p);
}

static void cairo_draw_text(struct rfl_surface *s, const struct rfl_prim *p)
{
	struct canvas *c = canvas_of(s);
	const struct rfl_prim_text *t = &p->at.text;
	double w = rfl_text_width(t->text, t->face, t->size);
	double back = t->anchor == RFL_ANCHOR_END ? w : t->anchor == RFL_ANCHOR_MIDDLE ? w / 2 : 0;

	cairo_save(c->cr);
	cairo_translate(c->cr, t->x, t->y);
	cairo_rotate(c->cr, -t->angle);
	cairo_set_font_face(c->cr, c->faces.cairo[t->face]);
	cairo_set_font_size(c->cr, t->size);
	if (t->halo.a != 0) {
		cairo_move_to(c->cr, -back, 0);
		cairo_text_path(c->cr, t->text);
		set_color(c->cr, t->halo);
		cairo_set_line_width(c->cr, t->halo_width);
		cairo_set_dash(c->cr, NULL, 0, 0);
		cairo_stroke(c->cr);
	}
	cairo_move_to(c->cr, -back, 0);
	set_color(c->cr, p->fill);
	cairo_show_text(c->cr, t->text);
	cairo_new_path(c->cr);
	cairo_restore(c->cr);
}

static void cairo_draw_clip(struct rfl_surface *s, const struct rfl_prim *p)
{
	struct canvas *c = canvas_of(s);
	const struct rfl_box *b = &p->at.clip.box;

	cairo_reset_clip(c->cr);
	if (!p->at.clip.on)
		return;
	cairo_rectangle(c->cr, b->x, b->y, b->w, b->h);
	cairo_clip(c->cr);
}

static double cairo_measure_text(struct rfl_surface *s, const char *text, enum rfl_face face,
				 double size)
{
	struct canvas *c = canvas_of(s);
	cairo_text_extents_t extents;

	if (!c->faces.cairo[face])
		return rfl_text_width(text, face, size);
	cairo_set_font_face(c->cr, c->faces.cairo[face]);
	cairo_set_font_size(c->cr, size);
	cairo_text_extents(c->cr, text, &extents);
	return extents.x_advance;
}

static enum rfl_rc check(struct canvas *c, struct rfl_err *err)
{
	cairo_status_t status = cairo_status(c->cr);

	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_status(c->surface);
	if (status != CAIRO_STATUS_SUCCESS)
		return rfl_fail(err, RFL_EFAILED, (int)status, "cairo: %s",
				cairo_status_to_string(status));
	return RFL_OK;
}

static enum rfl_rc png_finish(struct rfl_surface *s, struct rfl_err *err)
{
	struct canvas *c = canvas_of(s);
	enum rfl_rc rc = check(c, err);
	struct rfl_png_image image;

	if (rc != RFL_OK)
		return rc;
	cairo_surface_flush(c->surface);
	image = (struct rfl_png_image){
		.width = cairo_image_surface_get_width(c->surface),
		.height = cairo_image_surface_get_height(c->surface),
		.stride = (size_t)cairo_image_surface_get_stride(c->surface),
		.rows = cairo_image_surface_get_data(c->surface),
		.dpi = c->dpi,
	};
	return rfl_png_write(&image, s->out, err);
}

static enum rfl_rc pdf_finish(struct rfl_surface *s, struct rfl_err *err)
{
	struct canvas *c = canvas_of(s);
	enum rfl_rc rc;

	cairo_show_page(c->cr);
	cairo_surface_finish(c->surface);
	rc = check(c, err);
	return rc != RFL_OK ? rc : rfl_buf_check(s->out, "PDF", err);
}

static void canvas_close(struct rfl_surface *s)
{
	struct canvas *c = canvas_of(s);

	if (c->cr)
		cairo_destroy(c->cr);
	if (c->surface)
		cairo_surface_destroy(c->surface);
	faces_close(&c->faces);
	free(c);
}

const struct rfl_surface_ops rfl_surface_png = {
	.name = "png",
	.summary = "pixels, at any resolution",
	.suffix = "png",
	.caps = RFL_SURFACE_NEEDS_FONT,
	.probe = cairo_probe,
	.open = png_open,
	.line = cairo_draw_line,
	.polyline = cairo_draw_polyline,
	.rect = cairo_draw_rect,
	.marker = cairo_draw_marker,
	.text = cairo_draw_text,
	.clip = cairo_draw_clip,
	.measure_text = cairo_measure_text,
	.finish = png_finish,
	.close = canvas_close,
};

const struct rfl_surface_ops rfl_surface_pdf = {
	.name = "pdf",
	.summary = "for papers: scalable, fonts embedded",
	.suffix = "pdf",
	.caps = RFL_SURFACE_VECTOR | RFL_SURFACE_SELECTABLE | RFL_SURFACE_NEEDS_FONT,
	.probe = cairo_probe,
	.open = pdf_open,
	.line = cairo_draw_line,
	.polyline = cairo_draw_polyline,
	.rect = cairo_draw_rect,
	.marker = cairo_draw_marker,
	.text = cairo_draw_text,
	.clip = cairo_draw_clip,
	.measure_text = cairo_measure_text,
	.finish = pdf_finish,
	.close = canvas_close,
};
