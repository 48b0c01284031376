/* Pages: what is text stays text in all formats, and the data can be read back. */
#include "rfl_test.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "report/page.h"

#define BAD "<script>\"x\" & 'y'</script><!-- *_z_ | `"

static struct rfl_page *page_of(enum rfl_format format)
{
	static const struct rfl_column columns[] = {
		{ .key = "name", .title = "Name <1>" },
		{ .key = "value", .title = "Value", .kind = RFL_COLUMN_REAL },
	};
	struct rfl_table *t = rfl_table_new(columns, RFL_ARRAY_LEN(columns));
	struct rfl_page *p = rfl_page_new(format, BAD, "roofline 0");

	assert_non_null(p);
	rfl_page_section(p, "Section %s", BAD);
	rfl_page_text(p, RFL_BLOCK_PARAGRAPH, "%s", BAD);
	rfl_page_text(p, RFL_BLOCK_ITEM, "one");
	rfl_page_text(p, RFL_BLOCK_ITEM, "two\nlines");
	rfl_page_text(p, RFL_BLOCK_AUTHOR, "why %s", BAD);
	rfl_page_text(p, RFL_BLOCK_CODE, "a ``` b\nc");
	rfl_table_text(t, BAD);
	rfl_table_real(t, 1234.5678);
	rfl_table_text(t, NULL);
	rfl_table_real(t, (double)NAN);
	rfl_table_note(t, "note %s", BAD);
	rfl_page_table(p, "Caption " BAD, t);
	return p;
}

static void write_page(struct rfl_page *take_p, struct rfl_buf *out)
{
	struct rfl_err err = RFL_ERR_INIT;

	rfl_buf_init(out, 0);
	assert_int_equal(rfl_page_write(take_p, out, &err), RFL_OK);
	rfl_page_free(take_p);
}

static size_t count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void html_escapes_everything(void **state)
{
	struct rfl_page *p = page_of(RFL_FORMAT_HTML);
	struct rfl_buf out;

	(void)state;
	rfl_buf_puts(&p->data, "{\"a\":\"</script><!--\"}");
	write_page(p, &out);
	assert_non_null(strstr(out.data, "\n<script>"));
	*strstr(out.data, "\n<script>") = '\0'; /* the program, whose comments may have tags */
	assert_int_equal(count(out.data, "<script"), 1); /* the data */
	assert_int_equal(count(out.data, "</script"), 1);
	assert_int_equal(count(out.data, "<!--"), 0);
	assert_non_null(strstr(out.data, "<title>&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;"));
	assert_non_null(strstr(out.data, "<th scope=\"col\">Name &lt;1&gt;</th>"));
	assert_non_null(strstr(out.data, "<td class=\"n\" data-value=\"1234.5678\">1,235</td>"));
	assert_non_null(strstr(out.data, "<td class=\"n\">-</td>"));
	assert_non_null(strstr(out.data, "<th scope=\"row\" class=\"w\">&lt;script")); /* long */
	assert_non_null(strstr(out.data, "<ul>\n<li>one</li>\n<li>two\nlines</li>\n</ul>"));
	assert_int_equal(count(out.data, "<section"), count(out.data, "</section>"));
	rfl_buf_fini(&out);
}

static void data_reads_back(void **state)
{
	struct rfl_page *p = page_of(RFL_FORMAT_HTML);
	struct rfl_buf out;
	const char *begin, *end;
	json_t *root;

	(void)state;
	rfl_buf_puts(&p->data, "{\"a\":\"</script><!--\"}");
	write_page(p, &out);
	begin = strstr(out.data, "id=\"roofline-data\">") + strlen("id=\"roofline-data\">");
	end = strstr(begin, "</script>");
	root = json_loadb(begin, (size_t)(end - begin), 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "a")), "</script><!--");
	json_decref(root);
	rfl_buf_fini(&out);
}

static void markdown_escapes_everything(void **state)
{
	struct rfl_buf out;

	(void)state;
	write_page(page_of(RFL_FORMAT_MD), &out);
	assert_int_equal(count(out.data, "<script"), count(out.data, "\\<script"));
	assert_int_equal(count(out.data, "<!--"), count(out.data, "\\<!--"));
	assert_non_null(strstr(out.data, "\n- one\n- two lines\n"));
	assert_non_null(strstr(out.data, "\n> **Author:** why \\<"));
	assert_non_null(strstr(out.data, "\n````sh\na ``` b\nc\n````\n"));
	assert_non_null(strstr(out.data, "'y'\\</script>\\<!-- \\*\\_z\\_ \\| \\` | 1,235 |"));
	rfl_buf_fini(&out);
}

static void a_table_without_rows_is_left_out(void **state)
{
	static const struct rfl_column columns[] = { { .key = "name", .title = "Name" } };
	struct rfl_page *p = rfl_page_new(RFL_FORMAT_MD, "Title", "roofline 0");
	struct rfl_buf out;

	(void)state;
	rfl_page_table(p, "Nothing", rfl_table_new(columns, 1));
	assert_int_equal(p->n, 0);
	write_page(p, &out);
	assert_string_equal(out.data, "# Title\n");
	rfl_buf_fini(&out);
}

/* Sheets have a number each, the titles of a long table, and nothing else that the same input could
 * change. */
static void a_pdf_has_sheets_and_an_outline(void **state)
{
	struct rfl_buf out[2];
	char name[16];

	(void)state;
	if (rfl_page_check(RFL_FORMAT_PDF, NULL) != RFL_OK)
		skip();
	for (int i = 0; i < 2; i++) {
		static const struct rfl_column columns[] = { { .key = "a", .title = "Name" },
							     { .key = "b", .title = "Value" } };
		struct rfl_page *p = page_of(RFL_FORMAT_PDF);
		struct rfl_table *t = rfl_table_new(columns, 2);

		rfl_page_part(p, "Part \xe9\xbb\x84 \x1b[31m\xff");
		for (int row = 0; row < 200; row++) {
			(void)snprintf(name, sizeof(name), "row %d", row);
			rfl_table_text(t, name);
			rfl_table_text(t, BAD);
		}
		rfl_page_table(p, "Long", t);
		write_page(p, &out[i]);
	}
	assert_int_equal(out[0].len, out[1].len);
	assert_memory_equal(out[0].data, out[1].data, out[0].len);
	assert_memory_equal(out[0].data, "%PDF-", 5);
	for (size_t i = 0; i < out[0].len; i++) /* streams are binary */
		out[0].data[i] = out[0].data[i] ? out[0].data[i] : ' ';
	assert_int_equal(count(out[0].data, "/Type /Page %"), 5);
	assert_true(count(out[0].data, "/Dest") >= 2); /* a link and entries of the outline */
	/* regular, bold and mono are embedded, and a font of the system if one has the character */
	assert_true(count(out[0].data, "/FontFile2") >= 3);
	rfl_buf_fini(&out[0]);
	rfl_buf_fini(&out[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(html_escapes_everything),
		cmocka_unit_test(data_reads_back),
		cmocka_unit_test(markdown_escapes_everything),
		cmocka_unit_test(a_table_without_rows_is_left_out),
		cmocka_unit_test(a_pdf_has_sheets_and_an_outline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
