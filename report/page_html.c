/*
 * page_html.c - writes a page as one HTML file, which sends no requests: it contains styles,
 * script, data and figures, and its Content-Security-Policy allows nothing else.
 */
#include "report/page.h"

#include <string.h>

#include "base/text.h"

void rfl_html_escape(struct rfl_buf *out, const char *text)
{
	static const char *const entities[] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};

	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c < RFL_ARRAY_LEN(entities) && entities[c])
			rfl_buf_puts(out, entities[c]);
		else
			rfl_buf_putc(out, *text);
	}
}

static void put_element(struct rfl_buf *out, const char *open, const char *text, const char *close)
{
	rfl_buf_puts(out, open);
	rfl_html_escape(out, text);
	rfl_buf_puts(out, close);
}

static void put_base64(struct rfl_buf *out, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i += 3) {
		const size_t n = len - i < 3 ? len - i : 3;
		const unsigned v = (unsigned)bytes[i] << 16 | (n > 1 ? bytes[i + 1] : 0U) << 8 |
				   (n > 2 ? bytes[i + 2] : 0U);

		for (size_t k = 0; k < 4; k++)
			rfl_buf_putc(out, k > n ? '=' : digits[v >> (18 - 6 * k) & 63]);
	}
}

/* An SVG file as an element: without its XML declaration, and without the id of its background,
 * because a page may have several figures. */
static void put_svg(struct rfl_buf *out, const char *file)
{
	static const char paper[] = "<rect id=\"paper\"";
	const char *svg = strstr(file, "<svg"), *rect = strstr(file, paper);

	if (svg && rect > svg) {
		rfl_buf_append(out, svg, (size_t)(rect - svg));
		rfl_buf_puts(out, "<rect");
		svg = rect + sizeof(paper) - 1;
	}
	rfl_buf_puts(out, svg ? svg : file);
}

/* JSON in <script>: '<' occurs only in strings, where its escape has the same meaning. */
static void put_data(struct rfl_buf *out, const char *json)
{
	rfl_buf_puts(out, "<script type=\"application/json\" id=\"roofline-data\">");
	for (size_t len; *json; json += len) {
		len = strcspn(json, "<");
		rfl_buf_append(out, json, len);
		for (; json[len] == '<'; len++)
			rfl_buf_puts(out, "\\u003c");
	}
	rfl_buf_puts(out, "</script>\n");
}

static void put_head(const struct rfl_page *p, struct rfl_buf *out)
{
	rfl_buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			  "'none'; style-src 'unsafe-inline'; font-src data:; img-src data: blob:; "
			  "base-uri 'none'; form-action 'none'; script-src 'sha256-");
	put_base64(out, rfl_page__page_js.sha256, sizeof(rfl_page__page_js.sha256));
	rfl_buf_puts(
		out,
		"'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
	put_element(out, "<meta name=\"generator\" content=\"", p->generator, "\">\n");
	put_element(out, "<title>", p->title, "</title>\n<style>\n");
	rfl_buf_append(out, rfl_page__page_css.text, rfl_page__page_css.len);
	rfl_buf_puts(out, "</style>\n</head>\n<body>\n");
	put_element(out, "<header>\n<h1>", p->title, "</h1>\n</header>\n");
	rfl_buf_puts(out, "<nav aria-label=\"Contents\">\n<ul>\n");
	for (size_t i = 0; i < p->n; i++) {
		if (p->blocks[i].kind != RFL_BLOCK_SECTION)
			continue;
		rfl_buf_printf(out, "<li><a href=\"#section-%zu\">", i);
		put_element(out, "", p->blocks[i].text, "</a></li>\n");
	}
	rfl_buf_puts(out, "</ul>\n</nav>\n<main>\n");
}

static void put_block(const struct rfl_page *p, size_t i, bool *in_section, struct rfl_buf *out)
{
	const struct rfl_block *b = &p->blocks[i];

	switch (b->kind) {
	case RFL_BLOCK_SECTION:
		rfl_buf_printf(out, "%s<section id=\"section-%zu\">\n",
			       *in_section ? "</section>\n" : "", i);
		*in_section = true;
		put_element(out, "<h2>", b->text, "</h2>\n");
		break;
	case RFL_BLOCK_PART:
		put_element(out, "<h3>", b->text, "</h3>\n");
		break;
	case RFL_BLOCK_PARAGRAPH:
		put_element(out, "<p>", b->text, "</p>\n");
		break;
	case RFL_BLOCK_ITEM:
		if (i == 0 || b[-1].kind != RFL_BLOCK_ITEM)
			rfl_buf_puts(out, "<ul>\n");
		put_element(out, "<li>", b->text, "</li>\n");
		if (i + 1 == p->n || b[1].kind != RFL_BLOCK_ITEM)
			rfl_buf_puts(out, "</ul>\n");
		break;
	case RFL_BLOCK_AUTHOR:
		put_element(out, "<p class=\"author\"><strong>Author:</strong> ", b->text,
			    "</p>\n");
		break;
	case RFL_BLOCK_CODE:
		put_element(out, "<pre><code>", b->text, "</code></pre>\n");
		break;
	case RFL_BLOCK_TABLE:
		put_element(out, "<figure class=\"table\">\n<figcaption>", b->text,
			    "</figcaption>\n");
		rfl_table_render(b->table, RFL_FORMAT_HTML, out);
		rfl_buf_puts(out, "</figure>\n");
		break;
	case RFL_BLOCK_FIGURE:
		put_element(out, "<details class=\"picture\" open>\n<summary>Figure for print: ",
			    b->text, "</summary>\n<figure class=\"picture\">\n");
		put_svg(out, b->body);
		put_element(out, "<figcaption>", b->text, "</figcaption>\n</figure>\n</details>\n");
		break;
	case RFL_BLOCK_PICTURE: /* as an image of its own, because its ids occur in others too */
		put_element(out, "<figure class=\"picture\">\n<img alt=\"", b->text, "\" src=\"");
		rfl_buf_puts(out, rfl_span_ends(rfl_span_of(b->name), ".png")
					  ? "data:image/png;base64,"
					  : "data:image/svg+xml;base64,");
		put_base64(out, b->body, b->body_len);
		put_element(out, "\">\n<figcaption>", b->text, "</figcaption>\n</figure>\n");
		break;
	case RFL_BLOCK_LIVE:
		rfl_buf_puts(out, "<div id=\"roofline\"></div>\n");
		break;
	}
}

void rfl_page__html(const struct rfl_page *p, struct rfl_buf *out)
{
	bool in_section = false;

	put_head(p, out);
	for (size_t i = 0; i < p->n; i++)
		put_block(p, i, &in_section, out);
	rfl_buf_puts(out, in_section ? "</section>\n</main>\n" : "</main>\n");
	if (p->data.len)
		put_data(out, p->data.data);
	rfl_buf_puts(out, "<script>");
	rfl_buf_append(out, rfl_page__page_js.text, rfl_page__page_js.len);
	rfl_buf_puts(out, "</script>\n</body>\n</html>\n");
}
