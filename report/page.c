/* page.c - builds the list of blocks of a page. page_md.c, page_html.c and page_pdf.c write it. */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

/* Copy a text, without control characters or invalid UTF-8. */
static const char *copy(struct rfl_page *p, const char *text)
{
	char *kept = rfl_arena_strdup(p->arena, text);

	kept[rfl_text_mask(kept, strlen(kept), true)] = '\0';
	return kept;
}

struct rfl_page *rfl_page_new(enum rfl_format format, const char *title, const char *generator)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_page *p = rfl_arena_array(arena, 1, sizeof(*p));

	p->format = format;
	p->arena = arena;
	p->title = copy(p, title);
	p->generator = copy(p, generator);
	return p;
}

void rfl_page_free(struct rfl_page *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		rfl_scene_free(p->blocks[i].scene);
		rfl_table_free(p->blocks[i].table);
	}
	free(p->blocks);
	rfl_buf_fini(&p->data);
	rfl_arena_free(p->arena);
}

const char *rfl_page_keep(struct rfl_page *p, struct rfl_buf *take_text)
{
	const char *text = copy(p, rfl_buf_str(take_text));

	rfl_buf_fini(take_text);
	return text;
}

static const char *format_text(struct rfl_page *p, const char *fmt, va_list ap)
{
	struct rfl_buf text = { .len = 0 };

	rfl_buf_vprintf(&text, fmt, ap);
	return rfl_page_keep(p, &text);
}

const char *rfl_page_printf(struct rfl_page *p, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = format_text(p, fmt, ap);
	va_end(ap);
	return text;
}

static struct rfl_block *add(struct rfl_page *p, enum rfl_block_kind kind)
{
	rfl_reserve(&p->blocks, &p->cap, p->n + 1);
	p->blocks[p->n] = (struct rfl_block){ .kind = kind, .text = "", .body = "", .name = "" };
	return &p->blocks[p->n++];
}

void rfl_page_text(struct rfl_page *p, enum rfl_block_kind kind, const char *fmt, ...)
{
	struct rfl_block *b = add(p, kind);
	va_list ap;

	va_start(ap, fmt);
	b->text = format_text(p, fmt, ap);
	va_end(ap);
}

void rfl_page_table(struct rfl_page *p, const char *caption, struct rfl_table *take_table)
{
	struct rfl_block *b;

	rfl_table_trim(take_table);
	if (rfl_table_rows(take_table) == 0) {
		rfl_table_free(take_table);
		return;
	}
	b = add(p, RFL_BLOCK_TABLE);
	b->table = take_table;
	b->text = copy(p, caption);
}

void rfl_page_figure(struct rfl_page *p, enum rfl_block_kind kind, const char *caption,
		     const char *name, struct rfl_scene *take_scene)
{
	struct rfl_block *b = add(p, kind);
	const struct rfl_surface_spec spec = { .dpi = 144 };
	RFL_AUTO(buf) svg = { .len = 0 };

	b->text = copy(p, caption);
	b->name = copy(p, name);
	if (p->format == RFL_FORMAT_PDF) {
		b->scene = take_scene;
		return;
	}
	/* an id may occur only once in an HTML page, which may have several figures */
	for (size_t i = 0; p->format == RFL_FORMAT_HTML && i < take_scene->n; i++)
		take_scene->prims[i].id = "";
	if (rfl_surface_draw(&rfl_surface_svg, &spec, take_scene, &svg, &p->err) == RFL_OK)
		b->body = rfl_page_keep(p, &svg);
	b->body_len = strlen(b->body);
	rfl_scene_free(take_scene);
}

void rfl_page_picture(struct rfl_page *p, const char *caption, const char *name,
		      const struct rfl_buf *file, double dpi)
{
	struct rfl_block *b = add(p, RFL_BLOCK_PICTURE);
	char *body = rfl_arena_array(p->arena, file->len + 1, 1);

	memcpy(body, rfl_buf_str(file), file->len);
	b->text = copy(p, caption);
	b->name = copy(p, name);
	b->body = body;
	b->body_len = file->len;
	b->dpi = dpi;
}

enum rfl_rc rfl_page_check(enum rfl_format format, struct rfl_err *err)
{
#ifndef RFL_HAVE_PANGO
	if (format == RFL_FORMAT_PDF)
		return rfl_fail(err, RFL_EUNAVAILABLE, 0,
				"a PDF report needs pango, and this program was built without it "
				"(install libpango1.0-dev, configure with -DRFL_PANGO=ON); use a "
				"name that ends in .html");
#endif
	(void)format;
	(void)err;
	return RFL_OK;
}

enum rfl_rc rfl_page_write(const struct rfl_page *p, struct rfl_buf *out, struct rfl_err *err)
{
	enum rfl_rc rc = rfl_page_check(p->format, err);

	if (rc == RFL_OK && p->err.rc != RFL_OK)
		rc = rfl_fail(err, p->err.rc, p->err.native, "%s", p->err.msg);
	if (rc != RFL_OK)
		return rc;
#ifdef RFL_HAVE_PANGO
	if (p->format == RFL_FORMAT_PDF)
		return (rc = rfl_page__pdf(p, out, err)) ? rc : rfl_buf_check(out, "report", err);
#endif
	if (p->format == RFL_FORMAT_HTML)
		rfl_page__html(p, out);
	else
		rfl_page__md(p, out);
	rfl_text_mask_from(out, 0);
	return rfl_buf_check(out, "report", err);
}
