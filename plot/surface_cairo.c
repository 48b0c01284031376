/*
 * surface_cairo.c - PNG and PDF with cairo, with glyphs from roofline's font files through
 * FreeType. fontconfig is not used, so that a figure is the same on a machine without fonts.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cairo-ft.h>
#include <cairo-pdf.h>
#include <cairo.h>
#include <png.h>
#include <zlib.h>

#include "base/file.h"
#include "plot/surface.h"
#include "plot/surface_data.h"

#define DPI 144.0

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
				"no font folder was found next to the program; use --format svg, "
				"which needs no fonts");
	for (int i = 0; rc == RFL_OK && i < RFL_FACE_COUNT; i++) {
		char *path = rfl_path_join(dir, rfl_face_files[i]);
		struct glyphs *g = calloc(1, sizeof(*g));

		if (!path || !g || FT_Init_FreeType(&g->library) != 0) {
			rc = rfl_fail(err, RFL_ENOMEM, 0, "font: out of memory");
		} else if (FT_New_Face(g->library, path, 0, &g->face) != 0) {
			g->face = NULL;
			rc = rfl_fail(err, RFL_EUNAVAILABLE, 0,
				      "%s: not found or not a font; install fonts-liberation and "
				      "build again, or use --format svg, which needs no fonts",
				      path);
		} else {
			faces[i] =
				cairo_ft_font_face_create_for_ft_face(g->face, FT_LOAD_NO_HINTING);
			if (cairo_font_face_set_user_data(faces[i], &glyphs_key, g, glyphs_free) ==
			    CAIRO_STATUS_SUCCESS) {
				g = NULL; /* owned by the face from here on */
			} else {
				rc = rfl_fail(err, RFL_ENOMEM, 0, "font: out of memory");
				cairo_font_face_destroy(faces[i]);
				faces[i] = NULL;
			}
		}
		glyphs_free(g);
		free(path);
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
	struct canvas *c = calloc(1, sizeof(*c));
	cairo_font_options_t *options;
	enum rfl_rc rc;

	if (!c)
		return rfl_fail(err, RFL_ENOMEM, 0, "picture: out of memory");
	s->state = c;
	c->dpi = spec->dpi > 0 ? spec->dpi : DPI;
	const double zoom = raster ? c->dpi / 72 : 1;

	if (!spec->no_text) {
		rc = faces_open(c->faces, spec->font_dir, err);
		if (rc != RFL_OK)
			return rc;
	}
	if (raster) {
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
	c->cr = cairo_create(c->surface);
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
	cairo_paint(c->cr);
	return RFL_OK;
}

static void draw_text(const struct canvas *c, const struct rfl_prim *p)
{
	const struct rfl_prim_text *t = &p->at.text;
	double w = rfl_text_width(t->text, t->face, t->size);
	double back = t->anchor == RFL_ANCHOR_END ? w : t->anchor == RFL_ANCHOR_MIDDLE ? w / 2 : 0;

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
	double lengths[2];

	switch (p->kind) {
	case RFL_PRIM_LINE:
		cairo_move_to(cr, p->at.line.x0, p->at.line.y0);
		cairo_line_to(cr, p->at.line.x1, p->at.line.y1);
		break;
	case RFL_PRIM_POLYLINE:
		for (size_t i = 0; i < p->at.polyline.n; i++)
			cairo_line_to(cr, p->at.polyline.points[i].x, p->at.polyline.points[i].y);
		if (p->at.polyline.closed)
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
		if (rfl_surface__dash(p->dash, p->width, lengths))
			cairo_set_dash(cr, lengths, 2, 0);
		else
			cairo_set_dash(cr, NULL, 0, 0);
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

static void put_word(unsigned char out[4], size_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Append a chunk of a PNG file: length, name, data, checksum of name and data. */
static void put_chunk(struct rfl_buf *out, const char *name, const void *data, size_t len)
{
	unsigned char word[4];
	uLong crc = crc32(crc32(0, (const Bytef *)name, 4), data, (uInt)len);

	put_word(word, len);
	rfl_buf_append(out, word, 4);
	rfl_buf_append(out, name, 4);
	rfl_buf_append(out, data, len);
	put_word(word, crc);
	rfl_buf_append(out, word, 4);
}

/* Append the scene's data as compressed text. */
static void put_data(struct rfl_buf *out, const char *text)
{
	static const char head[] =
		RFL_DATA_PNG_KEYWORD "\0\1\0\0"; /* no language, no translation */
	const size_t len = strlen(text);
	uLongf size = compressBound(len);
	unsigned char *packed = malloc(sizeof(head) + size);

	if (packed && len <= RFL_DATA_MAX &&
	    compress(packed + sizeof(head), &size, (const Bytef *)text, len) == Z_OK) {
		memcpy(packed, head, sizeof(head));
		put_chunk(out, "iTXt", packed, sizeof(head) + size);
	} else {
		out->failed = true;
	}
	free(packed);
}

/* Write a PNG with libpng: cairo's writer supports neither resolution nor compression level.
 * libpng's fast mode uses no filters and little search; more would take twice the time to save a
 * tenth of the size. No time is written, so that the same input gives the same bytes. */
static enum rfl_rc png_finish(struct rfl_surface *s, struct rfl_err *err)
{
	const struct canvas *c = s->state;
	const uint32_t per_meter = (uint32_t)lround(c->dpi / 0.0254);
	png_image image = { .version = PNG_IMAGE_VERSION };
	unsigned char resolution[9];
	unsigned char *pixels, *to, *file = NULL;
	png_alloc_size_t size;
	size_t stride;
	enum rfl_rc rc = check(c, err);

	if (rc != RFL_OK)
		return rc;
	cairo_surface_flush(c->surface);
	image.width = (png_uint_32)cairo_image_surface_get_width(c->surface);
	image.height = (png_uint_32)cairo_image_surface_get_height(c->surface);
	image.format = PNG_FORMAT_RGB;
	image.flags = PNG_IMAGE_FLAG_FAST;
	/* pack cairo's pixels, which are 0x..RRGGBB in native byte order, in place */
	pixels = to = cairo_image_surface_get_data(c->surface);
	stride = (size_t)cairo_image_surface_get_stride(c->surface);
	for (size_t y = 0; y < image.height; y++)
		for (size_t x = 0; x < image.width; x++) {
			uint32_t word;

			memcpy(&word, pixels + y * stride + 4 * x, sizeof(word));
			*to++ = (unsigned char)(word >> 16);
			*to++ = (unsigned char)(word >> 8);
			*to++ = (unsigned char)word;
		}
	put_word(resolution, per_meter);
	put_word(resolution + 4, per_meter);
	resolution[8] = PNG_RESOLUTION_METER;
	size = PNG_IMAGE_PNG_SIZE_MAX(image);
	file = malloc(size);
	if (!file)
		return rfl_fail(err, RFL_ENOMEM, 0, "PNG: out of memory");
	if (png_image_write_to_memory(&image, file, &size, 0, pixels, 0, NULL)) {
		/* not written in this mode: chunks after the 33 bytes of the header */
		rfl_buf_append(s->out, file, 33);
		put_chunk(s->out, "pHYs", resolution, sizeof(resolution));
		if (s->scene->data)
			put_data(s->out, s->scene->data);
		rfl_buf_append(s->out, file + 33, size - 33);
	} else {
		rc = rfl_fail(err, RFL_EFAILED, 0, "libpng: %s", image.message);
	}
	png_image_free(&image);
	free(file);
	return rc;
}

static enum rfl_rc pdf_finish(struct rfl_surface *s, struct rfl_err *err)
{
	const struct canvas *c = s->state;

	cairo_show_page(c->cr);
	cairo_surface_finish(c->surface);
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
