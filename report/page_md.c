/* page_md.c - writes a page as CommonMark with tables. */
#include "report/page.h"

/* Write plain text: markup characters are escaped, and line breaks become spaces. */
static void put_plain(struct rfl_buf *out, const char *text)
{
	rfl_buf_puts(out, *text == '#' ? "\\" : "");
	rfl_md_put(out, text, "<>]", " ");
}

/* Write a fenced block; the fence is longer than any run of backquotes in the text. */
static void put_code(struct rfl_buf *out, const char *text)
{
	size_t fence = 3, run = 0;

	for (const char *s = text; *s; s++) {
		run = *s == '`' ? run + 1 : 0;
		fence = run >= fence ? run + 1 : fence;
	}
	for (size_t i = 0; i < fence; i++)
		rfl_buf_putc(out, '`');
	rfl_buf_printf(out, "sh\n%s\n", text);
	for (size_t i = 0; i < fence; i++)
		rfl_buf_putc(out, '`');
	rfl_buf_putc(out, '\n');
}

void rfl_page__md(const struct rfl_page *p, struct rfl_buf *out)
{
	rfl_buf_puts(out, "# ");
	put_plain(out, p->title);
	rfl_buf_putc(out, '\n');
	for (const struct rfl_block *b = p->blocks; b < p->blocks + p->n; b++) {
		if (b->kind != RFL_BLOCK_ITEM || (b > p->blocks && b[-1].kind != RFL_BLOCK_ITEM))
			rfl_buf_putc(out, '\n');
		switch (b->kind) {
		case RFL_BLOCK_SECTION:
		case RFL_BLOCK_PART:
			rfl_buf_puts(out, b->kind == RFL_BLOCK_SECTION ? "## " : "### ");
			put_plain(out, b->text);
			break;
		case RFL_BLOCK_PARAGRAPH:
			put_plain(out, b->text);
			break;
		case RFL_BLOCK_ITEM:
			rfl_buf_puts(out, "- ");
			put_plain(out, b->text);
			break;
		case RFL_BLOCK_AUTHOR:
			rfl_buf_puts(out, "> **Author:** ");
			put_plain(out, b->text);
			break;
		case RFL_BLOCK_CODE:
			put_code(out, b->text);
			continue;
		case RFL_BLOCK_TABLE:
			if (*b->text) {
				rfl_buf_puts(out, "**");
				put_plain(out, b->text);
				rfl_buf_puts(out, "**\n\n");
			}
			rfl_table_render(b->table, RFL_FORMAT_MD, out);
			continue;
		case RFL_BLOCK_FIGURE:
		case RFL_BLOCK_PICTURE:
			rfl_buf_puts(out, "![");
			put_plain(out, b->text);
			rfl_buf_printf(out, "](%s)", b->name);
			break;
		case RFL_BLOCK_LIVE:
			break;
		}
		rfl_buf_putc(out, '\n');
	}
}
