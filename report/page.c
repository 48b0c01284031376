/* page.c - builds the list of blocks of a page. page_md.c and page_html.c write it. */
#include "report/page.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"

struct rfl_page *rfl_page_new(enum rfl_format format, const char *title, const char *generator)
{
	struct rfl_page *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->format = format;
	p->arena = rfl_arena_new(0);
	p->title = p->arena ? rfl_arena_strdup(p->arena, title) : NULL;
	p->generator = p->title ? rfl_arena_strdup(p->arena, generator) : NULL;
	if (!p->generator) {
		rfl_page_free(p);
		return NULL;
	}
	return p;
}

void rfl_page_free(struct rfl_page *p)
{
	if (!p)
		return;
	rfl_arena_free(p->arena);
	free(p->blocks);
	free(p);
}

static const char *keep(struct rfl_page *p, const struct rfl_buf *text)
{
	const char *copy = text->failed ? NULL : rfl_arena_strdup(p->arena, rfl_buf_str(text));

	p->failed |= !copy;
	return copy ? copy : "";
}

static struct rfl_block *add(struct rfl_page *p, enum rfl_block_kind kind)
{
	static struct rfl_block none; /* written but never read after the page has failed */

	p->failed |= rfl_grow(&p->blocks, &p->cap, p->n + 1, SIZE_MAX, NULL) != RFL_OK;
	if (p->failed)
		return &none;
	p->blocks[p->n] = (struct rfl_block){ .kind = kind, .text = "", .body = "", .name = "" };
	return &p->blocks[p->n++];
}

static void add_text(struct rfl_page *p, enum rfl_block_kind kind, int level, const char *fmt,
		     va_list ap)
{
	struct rfl_block *b = add(p, kind);
	struct rfl_buf text;

	rfl_buf_init(&text, 0);
	rfl_buf_vprintf(&text, fmt, ap);
	b->level = level;
	b->text = keep(p, &text);
	rfl_buf_fini(&text);
}

void rfl_page_heading(struct rfl_page *p, int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_text(p, RFL_BLOCK_HEADING, level, fmt, ap);
	va_end(ap);
}

void rfl_page_text(struct rfl_page *p, enum rfl_block_kind kind, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add_text(p, kind, 0, fmt, ap);
	va_end(ap);
}

void rfl_page_rendered(struct rfl_page *p, const char *caption, const struct rfl_buf *body)
{
	struct rfl_block *b = add(p, RFL_BLOCK_TABLE);

	b->body = keep(p, body);
	b->text = rfl_arena_strdup(p->arena, caption);
	p->failed |= !b->text;
}

void rfl_page_table(struct rfl_page *p, const char *caption, struct rfl_table *take_table)
{
	struct rfl_buf body;

	rfl_buf_init(&body, 0);
	if (take_table && rfl_table_rows(take_table) == 0)
		rfl_table_free(take_table);
	else if (rfl_table_finish(take_table, p->format, &body, NULL) != RFL_OK)
		p->failed = true;
	else
		rfl_page_rendered(p, caption, &body);
	rfl_buf_fini(&body);
}

void rfl_page_figure(struct rfl_page *p, const char *caption, const char *name,
		     const struct rfl_buf *svg)
{
	struct rfl_block *b = add(p, RFL_BLOCK_FIGURE);

	b->body = keep(p, svg);
	b->text = rfl_arena_strdup(p->arena, caption);
	b->name = rfl_arena_strdup(p->arena, name);
	p->failed |= !b->text || !b->name;
}

void rfl_page_data(struct rfl_page *p, const struct rfl_buf *json)
{
	p->data = keep(p, json);
}

enum rfl_rc rfl_page_write(const struct rfl_page *p, struct rfl_buf *out, struct rfl_err *err)
{
	if (p->failed)
		return rfl_fail(err, RFL_ENOMEM, 0, "report: out of memory");
	if (p->format == RFL_FORMAT_HTML)
		rfl_page__html(p, out);
	else
		rfl_page__md(p, out);
	rfl_text_mask_from(out, 0);
	return rfl_buf_check(out, "report", err);
}
