/*
 * page.h - a document as a list of blocks, written as Markdown, as one self-contained HTML file or
 * as a PDF. Text is plain: each format escapes it.
 */
#ifndef RFL_REPORT_PAGE_H
#define RFL_REPORT_PAGE_H

#include "plot/surface.h"
#include "report/table.h"

enum rfl_block_kind {
	RFL_BLOCK_SECTION, /**< a heading */
	RFL_BLOCK_PART,    /**< the heading of a part of a section */
	RFL_BLOCK_PARAGRAPH,
	RFL_BLOCK_ITEM,   /**< adjacent items form one list */
	RFL_BLOCK_CODE,   /**< line breaks are preserved */
	RFL_BLOCK_AUTHOR, /**< a question that the author of the report answers here */
	RFL_BLOCK_TABLE,
	RFL_BLOCK_FIGURE,
	RFL_BLOCK_PICTURE, /**< a figure that page.js does not draw as well */
	RFL_BLOCK_LIVE,    /**< place for the drawing of page.js; empty without data */
};

struct rfl_block {
	enum rfl_block_kind kind;
	const char *text; /**< caption of a table or figure */
	const char *body; /**< an SVG file, or the PNG file of a picture in a PDF */
	size_t body_len;
	double dpi;              /**< resolution of a PNG file */
	const char *name;        /**< file name of a figure next to a Markdown page */
	struct rfl_scene *scene; /**< a figure of a PDF, owned by the page; NULL otherwise */
	struct rfl_table *table; /**< owned by the page; NULL otherwise */
};

struct rfl_page {
	enum rfl_format format; /**< RFL_FORMAT_MD, RFL_FORMAT_HTML or RFL_FORMAT_PDF */
	const char
		*font_dir; /**< PDF only: directory of the program's fonts, borrowed; may be NULL */
	bool letter;       /**< PDF only: paper of 8.5 x 11 in instead of A4 */
	const char *title;
	const char *generator; /**< name and version of the program */
	struct rfl_buf data;   /**< JSON for page.js; empty: none */
	size_t n, cap;
	struct rfl_block *blocks;
	struct rfl_arena *arena; /**< owns all texts */
	struct rfl_err err;      /**< of a figure; reported by rfl_page_write() */
};

/** Create an empty page. Texts are copied. */
struct rfl_page *rfl_page_new(enum rfl_format format, const char *title,
			      const char *generator) RFL_WARN_UNUSED;
void rfl_page_free(struct rfl_page *p); /* accepts NULL */
RFL_AUTOPTR_TYPE(page, free);

/** Keep the text of a buffer as long as the page, and release the buffer. */
const char *rfl_page_keep(struct rfl_page *p, struct rfl_buf *take_text);

/** Format a text that lives as long as the page, likewise. */
const char *rfl_page_printf(struct rfl_page *p, const char *fmt, ...) RFL_PRINTF(2, 3);

/** Append a block that only has text. */
void rfl_page_text(struct rfl_page *p, enum rfl_block_kind kind, const char *fmt, ...)
	RFL_PRINTF(3, 4);
#define rfl_page_para(p, ...)    rfl_page_text((p), RFL_BLOCK_PARAGRAPH, __VA_ARGS__)
#define rfl_page_item(p, ...)    rfl_page_text((p), RFL_BLOCK_ITEM, __VA_ARGS__)
#define rfl_page_section(p, ...) rfl_page_text((p), RFL_BLOCK_SECTION, __VA_ARGS__)
#define rfl_page_part(p, ...)    rfl_page_text((p), RFL_BLOCK_PART, __VA_ARGS__)

/** Append a table, trimmed; one without rows is omitted. @param caption  "": none, in Markdown */
void rfl_page_table(struct rfl_page *p, const char *caption, struct rfl_table *take_table);

/** Append a figure or a picture. @param name  of its file next to a Markdown page */
void rfl_page_figure(struct rfl_page *p, enum rfl_block_kind kind, const char *caption,
		     const char *name, struct rfl_scene *take_scene);

/** Append a picture from a file. @param name  of its file next to a Markdown page, with its suffix
 * @param dpi  resolution of a PNG file */
void rfl_page_picture(struct rfl_page *p, const char *caption, const char *name,
		      const struct rfl_buf *file, double dpi);

/** RFL_OK, or RFL_EUNAVAILABLE if this build cannot write pages in a format. */
enum rfl_rc rfl_page_check(enum rfl_format format, struct rfl_err *err) RFL_WARN_UNUSED;

/** Write the page. @return RFL_OK; RFL_EOVERFLOW; for a PDF also RFL_EUNAVAILABLE, RFL_EFAILED */
enum rfl_rc rfl_page_write(const struct rfl_page *p, struct rfl_buf *out,
			   struct rfl_err *err) RFL_WARN_UNUSED;

/* Inside report/. */

void rfl_page__md(const struct rfl_page *p, struct rfl_buf *out);
void rfl_page__html(const struct rfl_page *p, struct rfl_buf *out);
enum rfl_rc rfl_page__pdf(const struct rfl_page *p, struct rfl_buf *out, struct rfl_err *err);

/** Append text with HTML characters escaped, for content and quoted attributes. */
void rfl_html_escape(struct rfl_buf *out, const char *text);

/** Append text with Markdown's markup escaped. An underscore within a word is text.
 * @param more  other characters to escape */
void rfl_md_put(struct rfl_buf *out, const char *text, const char *more, const char *line_break);

/** The style sheet and the script, compiled in. */
struct rfl_page_file {
	const char *text;
	size_t len;
	unsigned char sha256[32];
};
extern const struct rfl_page_file rfl_page__page_css, rfl_page__page_js;

#endif
